#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Commands whose calls fail, and that are killed (tests/faults/sweep.py says what must hold): a sample, the same in
# every run. SH_FAULTS=N tries up to N calls of each kind and command, and N / 4 kills of each that writes. Under
# sanitizers every command runs once undisturbed, and once more to compare.
. "$(dirname "$0")/lib.sh"
how=(--sample 28 --kills 1)
[ -n "${SH_FAULTS-}" ] && how=(--most "$SH_FAULTS" --kills $((SH_FAULTS / 4)))
[ -n "${SH_SANITIZED-}" ] && how=(--plain)      # a sanitizer has its own allocator, and comes before any other library
cd "$SH_TOP" && PYTHONDONTWRITEBYTECODE=1 python3 tests/faults/sweep.py --shears "$SHEARS" --faults "$SH_FAULTS_SO" \
    --model demo/model --text demo/text/natural.txt --work "$work" "${how[@]}"
