#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The newer families as GGUF files, which tests/oracle/gguf_modern.py writes of the shared fixtures, gguf_hybrid.py and
# gguf_remote.py of the checkpoints in tests/golden and gguf_more.py of both: they give what PyTorch or NumPy computed on
# the checkpoints.
. "$(dirname "$0")/lib.sh"

test_modern=$(dirname "$SHEARS")/tests/unit/test_modern
if [ ! -x "$test_modern" ]; then skip "GGUF files of the newer families" "tests/unit/test_modern is not built"; finish; exit; fi
find_numeric

compare() { # script, how many at least, folders…
    local script=$1 least=$2 names
    shift 2
    names=$(PYTHONDONTWRITEBYTECODE=1 "$numeric" "$SH_TOP/tests/oracle/$script" "$@" gguf) || names=
    if [ "$(wc -w <<<"$names")" -ge "$least" ]; then ok "$script writes at least $least"; else not_ok "$script writes at least $least"; fi
    # shellcheck disable=SC2086
    SH_FIXTURES=$PWD/gguf "$test_modern" $names >found || true
    while IFS= read -r line; do
        case $line in
            "ok "*) ok "${line##* - }" ;;
            "not ok "*) not_ok "${line##* - }" ;;
            "#"*) echo "$line" ;;
        esac
    done <found
}

folders=()
for folder in "$SH_GOLDEN"/checkpoints/modern/*/; do folders+=("$folder"); done
compare gguf_hybrid.py 30 "${folders[@]}"
compare gguf_remote.py 23 "${folders[@]}"
compare gguf_more.py 20 "${folders[@]}"
fixtures=${SH_FIXTURES:-nowhere}/modern
if [ ! -d "$fixtures" ]; then skip "GGUF files of the shared fixtures" "they are not here"; finish; exit; fi
folders=()
for folder in "$fixtures"/*/; do [ -f "$folder/ref.json" ] && folders+=("$folder"); done
compare gguf_modern.py 53 "${folders[@]}"
compare gguf_more.py 2 "${folders[@]}"
finish
