#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes by coverage, for so many minutes of processor time a target, with AFL++ and both sanitizers:
#
#     ./configure --enable-sanitizers --without-cuda CC=afl-clang-fast CXX=afl-clang-fast++ && make
#     tests/fuzz/long.sh 30 [TARGET…]
#
# From the folder of the build; all targets unless some are named (dense, sql, …). A line a target as it ends, 1 when
# something was found. Inputs that crash or hang lie in fuzzed/TARGET/default/{crashes,hangs}, and inputs that reach
# something of their own in …/queue. Started again, a target goes on from there: fuzzed/TARGET/seconds holds the time
# it has had (without that file it begins anew).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
minutes=${1?minutes of processor time a target}
shift
[ $# -gt 0 ] || set -- $(cd "$here/corpus" && ls -d */ | tr -d /)
AFL_QUIET=1 make -s "${@/#/tests/fuzz/fuzz_}"
export AFL_NO_UI=1 AFL_SKIP_CPUFREQ=1 AFL_NO_AFFINITY=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1
export ASAN_OPTIONS=abort_on_error=1:symbolize=0:detect_leaks=0:allocator_may_return_null=1:malloc_context_size=0
export UBSAN_OPTIONS=halt_on_error=1:abort_on_error=1
found=0
TIMEFORMAT='%U %S'
scratch=$(mktemp -d)                   # targets are killed, and leave their files
trap 'rm -rf "$scratch"' EXIT

words() { # the dictionary of a target: what its corpus is made of, and numbers at the ends of types
    {
        cat "$here/corpus/$1"/* | { LC_ALL=C grep -aoE '"[A-Za-z_.0-9]{2,30}"|[A-Za-z_.]{4,30}' || true; } |
            LC_ALL=C sort | uniq -c | sort -rn | awk 'NR <= 180 { print $2 }'
        printf '%s\n' null true -1 1e999 18446744073709551616 9223372036854775807 4294967296 '{}' '[]' '""'
    } | sed 's/\\/\\\\/g; s/"/\\x22/g; s/.*/"&"/'
}

for target in "$@"; do
    out=fuzzed/$target used=0
    mkdir -p "$out"
    [ ! -f "$out/seconds" ] || used=$(cat "$out/seconds")
    words "$target" >"$out/words"
    while [ "$used" -lt $((minutes * 60)) ]; do
        left=$((minutes * 60 - used + 5))
        from=$here/corpus/$target
        [ ! -d "$out/default/queue" ] || from=-
        { time TMPDIR=$scratch afl-fuzz -i "$from" -o "$out" -x "$out/words" -V $((left < 600 ? left : 600)) \
            -t 5000 -m none -- "tests/fuzz/fuzz_$target" >"$out/log" 2>&1; } 2>"$out/time" ||
            { tail -n 20 "$out/log"; exit 1; }
        used=$(awk -v used="$used" '{ print int(used + $1 + $2) }' "$out/time")
        echo "$used" >"$out/seconds"
    done
    stat() { sed -n "s/^$1 *: //p" "$out/default/fuzzer_stats"; }
    crashes=$(stat saved_crashes) hangs=$(stat saved_hangs)
    echo "$target: $((used / 60)) minutes, $(stat execs_done) inputs, $(stat corpus_count) of them kept," \
         "$crashes crashes, $hangs hangs"
    [ "$((crashes + hangs))" = 0 ] || found=1
done
exit $found
