#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timed.sh DRIVER... : the driver of one test, and how long it took: "wall cpu" in seconds, in a file next to its log.
# .ci/run: unit tests that SH_MODULE_LATER names run without the module here, and tests that SH_LATER names do not run
# here; under sanitizers all of it runs.
# timed.sh --table N [FILE...] : the N slowest of those files, as a table.
set -u
if [ "${1-}" = --table ]; then
    n=$2
    shift 2
    [ $# -gt 0 ] || exit 0
    echo "slowest tests: seconds, of them on a processor"
    for file; do
        [ -s "$file" ] && echo "$(<"$file") ${file%.seconds}"
    done | sort -rn | awk -v n="$n" '{ wall += $1; cpu += $2 }
        NR <= n { printf "  %7.1f  %7.1f  %s\n", $1, $2, $3 } END { printf "  %7.1f  %7.1f  all %d\n", wall, cpu, NR }'
    exit 0
fi
log=
for ((i = 1; i < $#; i++)); do
    j=$((i + 1))
    [ "${!i}" = --log-file ] && log=${!j}
    [ "${!i}" = --test-name ] || continue
    [[ " ${SH_MODULE_LATER-} " == *" ${!j#tests/unit/} "* ]] && export SH_TEST_MODULE=
    [[ " ${SH_LATER-} " == *" ${!j%.sh} "* ]] && set -- "${@:1:$#-1}" "$(dirname "$0")/later.sh"
done
TIMEFORMAT='%R %U %S'
run() {
    { spent=$( { time "$@" >&3 2>&4; } 2>&1 ); status=$?; } 3>&1 4>&2
}
run "$@"
# LeakSanitizer's own end, seen once in some thousand runs, after the last test has passed: nothing is known of leaks.
if [ -n "$log" ] && grep -qs "LeakSanitizer has encountered a fatal error" "$log"; then
    echo "LeakSanitizer failed; once more: $log"
    run "$@"
fi
[ -z "$log" ] || awk '{ printf "%.1f %.1f\n", $1, $2 + $3 }' <<<"$spent" >"${log%.log}.seconds"
exit $status
