# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests of the command line. They run in a folder of their own, which goes at exit;
# what the program makes belongs into its folder out/, so that `refuse` can see that nothing is left
# there. Every assertion looks at exit status, stdout and stderr by themselves; one TAP line each.
set -u
export LC_ALL=C
: "${SHEARS:?the built program}" "${SH_GOLDEN:?tests/golden}"
cli=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
checkpoints=$SH_GOLDEN/checkpoints
tokenizer=$SH_GOLDEN/tokenizers/opt_bpe

# A sanitizer's complaint must not look like one of the program's own exit statuses.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}exitcode=99:allocator_may_return_null=1"
export LSAN_OPTIONS="${LSAN_OPTIONS:+$LSAN_OPTIONS:}exitcode=99"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:+$UBSAN_OPTIONS:}exitcode=99:halt_on_error=1:print_stacktrace=1"

command -v python3 >/dev/null || { echo "1..0 # SKIP python3 is not here"; exit 0; }
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" && mkdir out log nothing || exit 99
export SH_MODULE_DIR=$work/nothing      # the CPU alone, whatever was built; who wants more sets its own

n_test=0
status=0

ok() { n_test=$((n_test + 1)); echo "ok $n_test - $1"; }
not_ok() { n_test=$((n_test + 1)); echo "not ok $n_test - $1"; }
skip() { n_test=$((n_test + 1)); echo "ok $n_test - $1 # SKIP $2"; }
finish() { echo "1..$n_test"; }

# Run the program: $status, log/out, log/err. $search, if set, is its PATH.
run() {
    PATH=${search-$PATH} "$SHEARS" "$@" >log/out 2>log/err </dev/null
    status=$?
}

# What is wrong with a stream: "" asks for an empty one, anything else is a regular expression.
stream_fault() { # name, file, expression
    if [ -z "$3" ] && [ -s "$2" ]; then
        echo "# $1: expected nothing, found:"
        head -n 12 "$2" | sed 's/^/#   /'
    elif [ -n "$3" ] && ! grep -Eqe "$3" "$2"; then
        echo "# $1: expected /$3/, found:"
        head -n 12 "$2" | sed 's/^/#   /'
    fi
}

faults() { # status, stdout, stderr
    [ "$status" = "$1" ] || echo "# exit status: expected $1, found $status"
    stream_fault stdout log/out "$2"
    stream_fault stderr log/err "$3"
}

verdict() { # description, faults
    if [ -z "$2" ]; then ok "$1"; else not_ok "$1"; echo "$2"; fi
}

# The last run ended like this.
expect() { # description, status, stdout, stderr
    verdict "$1" "$(faults "$2" "$3" "$4")"
}

# The program refuses: status, one sentence on stderr, nothing on stdout, nothing in out/.
refuse() { # description, status, stderr, arguments...
    local what=$1 wanted=$2 sentence=$3
    shift 3
    run "$@"
    verdict "$what" "$(
        faults "$wanted" "" "^shears: .*$sentence"
        left=$(find out -mindepth 1)
        [ -z "$left" ] || echo "# left behind: $left"
    )"
    rm -rf out && mkdir out
}

# A command succeeds; what it says otherwise is shown.
holds() { # description, command...
    local what=$1 said
    shift
    if said=$("$@" 2>&1); then ok "$what"; else not_ok "$what"; head -n 12 <<<"$said" | sed 's/^/# /'; fi
}

# python3 - with the numbers of exported heads at hand, see scores.py
python() { PYTHONPATH=$cli PYTHONDONTWRITEBYTECODE=1 python3 "$@"; }

# $numeric: a Python that has numpy. Debian's packages are for its own Python, which may not be the first one here.
find_numeric() {
    for numeric in python3 /usr/bin/python3; do
        "$numeric" -c 'import numpy' 2>/dev/null && return
    done
    echo "1..0 # SKIP no python3 here has numpy (Debian: python3-numpy)"
    exit 0
}

# $modules: the folder of the CUDA module that is tested, the emulated one unless SH_TEST_MODULES names another;
# empty: there is none. $emulated: 1, or empty.
find_modules() {
    emulated=$([ -n "${SH_TEST_MODULES-}" ] || echo 1)
    modules=${SH_TEST_MODULES:-$(dirname "$SHEARS")/tests/emu/modules}
    [ -e "$modules/cuda.so" ] || modules=
}

# The token ids of a golden checkpoint's sequences, one a line.
golden_tokens() { # checkpoint
    python -c 'import json, sys
for s in json.load(open(sys.argv[1]))["sequences"]: print(json.dumps(s["tokens"]))' "$checkpoints/$1/ref.json"
}

# Two stores hold the same.
hash_of() { "$SHEARS" info "$1" --hash --json | python -c 'import json, sys; print(json.load(sys.stdin)["hash"])'; }
same() {
    local a b
    a=$(hash_of "$1") b=$(hash_of "$2")
    [ -n "$a" ] && [ "$a" = "$b" ] || { echo "$1 $a, $2 $b"; false; }
}

# Go on in mounts of our own, where there may be such: file systems of a chosen size come and go with
# them. Without that, $alone is empty.
own_mounts() {
    alone=${SH_ALONE-}
    [ -n "$alone" ] && return
    local how
    for how in -m -rm; do
        if unshare $how mount -t tmpfs none "$work/out" 2>/dev/null; then
            cd / && rm -rf "$work"
            SH_ALONE=1 exec unshare $how bash "$cli/${0##*/}"
        fi
    done
}
