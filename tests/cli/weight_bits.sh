#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shears trace --weight-bits: attention of models whose weights went through codes is that of
# transformers with weights rounded alike (tests/oracle/weight_bits.py), on the CPU and on the emulated
# device; the option; what a run says and how it is told from others.
. "$(dirname "$0")/lib.sh"

golden=$SH_GOLDEN/weight_bits
modules=$(dirname "$SHEARS")/tests/emu/modules
export SH_EMU_STREAMS=lazy

tokens_of() { # checkpoint
    python -c 'import json, sys
print(json.load(open(sys.argv[1]))[sys.argv[2]]["tokens"])' "$golden/changes.json" "$1"
}
traced() { # store, arguments...: must go well
    local db=$1
    shift
    run trace --db "out/$db" -q --json --codec f32 "$@"
    [ $status = 0 ] || { not_ok "trace $* into $db"; sed 's/^/# /' log/err; }
}

# Every score of a store against a tensor of a golden file.
attention() { # store, golden file, tensor, limit
    python - "$@" <<'P'
import sys
from scores import *
store, path, name, limit = sys.argv[1:5]
(layers, heads, n, _), scores = read_safetensors(path)[name]
worst = 0
for layer in range(layers):
    for h in range(heads):
        ours = head(store, 0, layer, h)
        assert len(ours) == n, f"{len(ours)} rows, expected {n}"
        at = (layer * heads + h) * n * n
        worst = max(worst, max(abs(ours[q][k] - scores[at + q * n + k]) for q in range(n) for k in range(n)))
assert worst <= float(limit), f"worst difference {worst}, limit {limit}"
P
}

# The largest change that the codes make, of two stores, is what the oracle measured.
change() { # store, store, checkpoint, bits
    python - "$golden/changes.json" "$@" <<'P'
import sys
from scores import *
changes, plain, coded, name, bits = sys.argv[1:6]
expected = load(changes)[name][f"b{bits}"]
layers, heads = query(plain, "SELECT n_layer, n_head FROM model")[0]
worst = max(abs(x - y) for layer in range(layers) for h in range(heads)
            for a, b in zip(head(plain, 0, layer, h), head(coded, 0, layer, h)) for x, y in zip(a, b))
assert abs(worst - expected) <= 4e-5, f"{worst}, expected {expected}"
P
}

# opt_350m_style has projections outside the layers, which are not quantised.
for name in gpt2 gpt_neox llama_gqa opt opt_350m_style; do
    tokens_of $name >$name.jsonl
    given=(--model "$checkpoints/$name" --tokens $name.jsonl)
    traced $name.16.db "${given[@]}"
    for bits in 8 4; do
        traced $name.$bits.db "${given[@]}" --weight-bits $bits
        expect "$name: the run says $bits bits" 0 "\"weight_bits\": $bits" ""
        holds "$name, $bits bits: scores are transformers' within 2e-5" \
            attention out/$name.$bits.db "$golden/$name.safetensors" b$bits.attn 2e-5
        holds "$name, $bits bits: they differ from those of whole weights by what the oracle says" \
            change out/$name.16.db out/$name.$bits.db $name $bits
        if [ -e "$modules/cuda.so" ]; then
            SH_MODULE_DIR=$modules traced $name.$bits.cuda.db "${given[@]}" --weight-bits $bits --backend cuda
            holds "$name, $bits bits, on the emulated device: within 2e-5" \
                attention out/$name.$bits.cuda.db "$golden/$name.safetensors" b$bits.attn 2e-5
        else
            skip "$name, $bits bits, on the emulated device" "there is no emulated module (no C++ compiler)"
        fi
    done
done

# ---- memory ----

if [ -e "$modules/cuda.so" ]; then
    python "$cli/checkpoint.py" random wide hidden_size=768 ffn_dim=1536 vocab_size=64
    echo '[3, 5, 7, 9, 11, 13]' >few.jsonl
    wide=(--model wide --random-weights --tokens few.jsonl --backend cuda)
    for bits in 16 8 4; do
        SH_MODULE_DIR=$modules traced wide.$bits.db "${wide[@]}" --weight-bits $bits
        cp log/out wide.$bits.json
    done
    holds "device memory: planned is at least what is taken, and less with fewer bits" python - <<'P'
from scores import *
said = {bits: load(f"wide.{bits}.json") for bits in (16, 8, 4)}
for bits in said:
    assert 0 < said[bits]["device_peak_bytes"] <= said[bits]["device_needs_bytes"], (bits, said[bits])
needs = {bits: said[bits]["device_needs_bytes"] for bits in said}
weights = 4 * 768 * 768 + 2 * 768 * 1536                                # of a layer
assert needs[8] - needs[4] == 2 * weights // 2, needs                   # of two layers at once
assert needs[16] - needs[8] > weights * (8 - 17 / 8) - (20 << 20), needs    # the numbers of a panel are in the plan
open("least", "w").write(str(needs[4]))
P
    SH_MODULE_DIR=$modules traced exact.db "${wide[@]}" --weight-bits 4 --device-memory "$(cat least)"
    expect "device memory: what was planned is enough" 0 '"weight_bits": 4' ""
    rm -rf out && mkdir out
    SH_MODULE_DIR=$modules refuse "device memory: not enough for whole weights" 1 "bytes of device memory" \
        trace --db out/none.db "${wide[@]}" --device-memory "$(cat least)" -q
else
    skip "device memory" "there is no emulated module (no C++ compiler)"
fi

# ---- the option ----

rm -rf out && mkdir out

for bad in 2 5 12 16.5 x ""; do
    refuse "--weight-bits '$bad' is refused" 2 "weight-bits" trace --model "$checkpoints/opt" --tokens opt.jsonl \
        --db out/bad.db --weight-bits "$bad"
done
run trace --help
expect "trace --help tells of it" 0 "--weight-bits 16\|8\|4" ""

traced same.db --model "$checkpoints/opt" --tokens opt.jsonl --weight-bits 8
traced same.db --model "$checkpoints/opt" --tokens opt.jsonl --weight-bits 16
traced same.db --model "$checkpoints/opt" --tokens opt.jsonl --weight-bits 8
holds "runs of other bits are other runs, the same bits the same" python - <<'P'
from scores import *
runs = query("out/same.db", "SELECT command FROM run")
assert len(runs) == 2 and "--weight-bits 8" in runs[0][0] and "--weight-bits 16" in runs[1][0], runs
P
finish
