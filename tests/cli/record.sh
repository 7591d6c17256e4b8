#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Recordings through the library: what they write is what shears import writes of the same attention.
. "$(dirname "$0")/lib.sh"
find_numeric
built=$(dirname "$SHEARS")
[ -e "$built/libshears.so.0" ] || { echo "1..0 # SKIP the library was not built here"; exit 0; }
[ -z "${SH_SANITIZED-}" ] || { echo "1..0 # SKIP Python does not begin with the sanitizers' runtime"; exit 0; }
export PYTHONDONTWRITEBYTECODE=1 SHEARS_LIBRARY=$built/libshears.so.0 PYTHONPATH=${SH_TOP:?the source tree}/python
asked() { "$numeric" "$cli/record.py" "$1"; }
holds "content: as shears import writes it" asked content
holds "codes from logits" asked logits
holds "layers that do not attend, narrow vectors, sinks" asked silent
holds "a layer with fewer query heads" asked uneven
holds "attention that is not causal" asked orderless
holds "what makes no sense" asked errors
finish
