#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# eval in a cache of 8- and 4-bit codes that evicts, on the CPU and with the cache on the device: logits and kept
# sets are those that tests/oracle/codes.py computes by itself from the checkpoint and the ids.
. "$(dirname "$0")/lib.sh"
find_numeric
find_modules

oracle() { PYTHONDONTWRITEBYTECODE=1 "$numeric" "$SH_TOP/tests/oracle/codes.py" "$@"; }
cases=$SH_GOLDEN/session/codes.json

on_backend() { # backend, what the answer says of where its cache is
    local name="$1: $policy, $bits bits, $model"
    run eval --model "$checkpoints/$model" --tokens text.ids --policy "$policy" --budget "$budget" --kv-bits "$bits" \
        --kv-group "$group" --backend "$1" --dump-kept kept.jsonl --logits logits.npy --json -q
    expect "$name: the cache is where the model is" 0 "$2" ""
    holds "$name: logits and kept sets are the oracle's" oracle check "$checkpoints" "$cases" "$n" kept.jsonl logits.npy
}

n=0
while read -r model policy budget bits group tokens; do
    echo "$tokens" >text.ids
    on_backend cpu '"backend": "cpu"'
    if [ -n "$modules" ]; then SH_MODULE_DIR=$modules on_backend cuda '"cache_on": "device"'; fi
    n=$((n + 1))
done < <(oracle list "$cases")
holds "four policies, both numbers of bits, two checkpoints" test $n = 16
[ -n "$modules" ] || skip "the same on the device" "there is no emulated module (no C++ compiler)"
finish
