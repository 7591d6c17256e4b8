#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ranks: replay by one and by two of one thread each, on a trace of the embedded model; and what handing out
# work to 64 ranks costs, in units that sleep. Run in the build folder after `make bench-ranks`, best on a
# machine that does nothing else; one JSON line each.
set -euo pipefail
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
[ -n "${1-}" ] && cp "$1" "$work/traces.db" || {
    "$here/shears" demo "$work/demo" -q >/dev/null
    "$here/shears" trace --model "$work/demo/demo-opt" --text "$work/demo/natural.txt" --length 512 --count 4 \
        --vectors v --db "$work/traces.db" -q >/dev/null
}
replay=(replay --db "$work/traces.db" --policy all --budget 0.05..0.5/4
    --threads 1 --force -q)
for n in 1 2; do
    begin=$(date +%s%N)
    if [ $n = 1 ]; then
        "$here/shears" "${replay[@]}" >/dev/null
    else
        mpirun --oversubscribe -n $n "$here/shears" "${replay[@]}" >/dev/null
    fi
    echo "{\"what\": \"replay\", \"ranks\": $n, \"seconds\": $(($(date +%s%N) - begin))e-9}"
done
for s in 1; do
    SH_MODULE_DIR=$here/src/ranks mpirun --oversubscribe -n 64 "$here/bench/ranks_overhead" 5 $s
done
