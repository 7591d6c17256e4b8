#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Commands whose calls fail, and that are killed (tests/faults/sweep.py says what must hold): a sample, the same in
# every run. SH_FAULTS=N tries up to N calls of each kind and command, and N / 4 kills of each that writes.
. "$(dirname "$0")/lib.sh"
if [ -n "${SH_SANITIZED-}" ]; then
    echo "1..0 # SKIP a sanitizer has its own allocator, and comes before any other library"
    exit 0
fi
how=(--sample 28 --kills 1)
[ -n "${SH_FAULTS-}" ] && how=(--most "$SH_FAULTS" --kills $((SH_FAULTS / 4)))
cd "$SH_TOP" && PYTHONDONTWRITEBYTECODE=1 python3 tests/faults/sweep.py --shears "$SHEARS" --faults "$SH_FAULTS_SO" \
    --model demo/model --text demo/text/natural.txt --work "$work" "${how[@]}"
