#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Recordings next to others, and their ends: the store stays whole.
. "$(dirname "$0")/lib.sh"
find_numeric
built=$(dirname "$SHEARS")
[ -e "$built/libshears.so.0" ] || { echo "1..0 # SKIP the library was not built here"; exit 0; }
[ -z "${SH_SANITIZED-}" ] || { echo "1..0 # SKIP Python does not begin with the sanitizers' runtime"; exit 0; }
export PYTHONDONTWRITEBYTECODE=1 SHEARS_LIBRARY=$built/libshears.so.0 PYTHONPATH=${SH_TOP:?the source tree}/python
asked() { "$numeric" "$cli/record.py" "$1"; }
holds "another run, sequences side by side, a claimed store" asked together
holds "fork, the end of the interpreter, a kill" asked ends
finish
