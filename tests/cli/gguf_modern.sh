#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The newer families as GGUF files, which tests/oracle/gguf_modern.py writes of the shared fixtures: they give what
# PyTorch computed on the checkpoints.
. "$(dirname "$0")/lib.sh"

fixtures=${SH_FIXTURES:-nowhere}/modern
test_modern=$(dirname "$SHEARS")/tests/unit/test_modern
if [ ! -d "$fixtures" ]; then skip "GGUF files of the newer families" "the shared fixtures are not here"; finish; exit; fi
if [ ! -x "$test_modern" ]; then skip "GGUF files of the newer families" "tests/unit/test_modern is not built"; finish; exit; fi
folders=()
for folder in "$fixtures"/*/; do [ -f "$folder/ref.json" ] && folders+=("$folder"); done
find_numeric
names=$(PYTHONDONTWRITEBYTECODE=1 "$numeric" "$SH_TOP/tests/oracle/gguf_modern.py" "${folders[@]}" gguf) || names=
[ "$(wc -l <<<"$names")" -ge 52 ] && ok "at least 52 are written" || not_ok "at least 52 are written"
# shellcheck disable=SC2086
SH_FIXTURES=$PWD/gguf "$test_modern" $names >found || true
while IFS= read -r line; do
    case $line in
        "ok "*) ok "${line##* - }" ;;
        "not ok "*) not_ok "${line##* - }" ;;
        "#"*) echo "$line" ;;
    esac
done <found
finish
