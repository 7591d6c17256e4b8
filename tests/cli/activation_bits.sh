#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shears eval --activation-bits: logits are those of tests/oracle/activation_bits.py, with every set of kernels, token
# by token, and on the emulated device; what the option refuses, and how results are told from others.
. "$(dirname "$0")/lib.sh"

golden=$SH_GOLDEN/activation_bits.json
modules=$(dirname "$SHEARS")/tests/emu/modules
export SH_EMU_STREAMS=lazy

# The worst difference of logits from those in the golden file, which must be at most `most` and at least `least`.
differs() { # file of logits, model, exact or rounded, least, most
    python - "$golden" "$@" <<'P'
import ast, json, struct, sys
golden, path, model, which, least, most = sys.argv[1:]
with open(path, "rb") as f:
    data = f.read()
length = struct.unpack("<H", data[8:10])[0]
shape = ast.literal_eval(data[10:10 + length].decode())["shape"]
expected = json.load(open(golden))[model][which]
x = struct.unpack(f"<{shape[0] * shape[1]}f", data[10 + length:])
assert shape == (len(expected), len(expected[0])), shape
worst = max(abs(x[i * shape[1] + j] - y) for i, row in enumerate(expected) for j, y in enumerate(row))
assert float(least) <= worst <= float(most), f"worst difference {worst}, expected {least} to {most}"
P
}

for model in quantised quantised_k; do
    python -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]]["tokens"])' "$golden" $model >$model.jsonl
    given=(eval --model "$SH_GOLDEN/gguf/$model.gguf" --tokens $model.jsonl -q --logits out/x.npy)
    for kernels in base avx2 avxvnni avx512 amx; do
        for way in "" --stream; do
            name="$model, $kernels${way:+, token by token}"
            if ! SH_KERNELS=$kernels "$SHEARS" "${given[@]}" --activation-bits 8 $way >log/out 2>log/err; then
                grep -q "SH_KERNELS" log/err && skip "$name" "this machine has no such instructions" || not_ok "$name"
                continue
            fi
            holds "$name: 8 bits are the oracle's" differs out/x.npy $model rounded 0 5e-5
            SH_KERNELS=$kernels run "${given[@]}" --activation-bits 32 $way
            holds "$name: 32 bits are exact" differs out/x.npy $model exact 0 5e-4
            SH_KERNELS=$kernels run "${given[@]}" --activation-bits 16 $way
            least=1e-3                  # without products in lanes only a row alone is rounded
            [ "$kernels$way" != base ] || least=0
            holds "$name: 16 bits are between" differs out/x.npy $model exact $least 2e-2
        done
    done
    if [ -e "$modules/cuda.so" ]; then
        SH_MODULE_DIR=$modules run "${given[@]}" --activation-bits 8 --backend cuda
        holds "$model, on the emulated device: 8 bits are the oracle's" differs out/x.npy $model rounded 0 5e-5
    else
        skip "$model, on the emulated device" "there is no emulated module (no C++ compiler)"
    fi
    run "${given[@]}"
    holds "$model: 32 bits without the option" differs out/x.npy $model exact 0 5e-4
done

# ---- the option ----

rm -rf out && mkdir out
given=(eval --model "$SH_GOLDEN/gguf/quantised.gguf" --tokens quantised.jsonl --policy h2o --budget 4 --db out/x.db)
run "${given[@]}" --json
cp log/out exact.json
run "${given[@]}" --json --activation-bits 8
cp log/out rounded.json
holds "results of 8 bits are others, and say so" python - <<'P'
from scores import *
exact, rounded = load("exact.json"), load("rounded.json")
assert "activation_bits" not in exact and rounded["activation_bits"] == 8
assert exact["results"][0]["ppl"] != rounded["results"][0]["ppl"]
settings = [json.loads(s) for s, in query("out/x.db", "SELECT DISTINCT settings FROM result WHERE command = 'eval'")]
assert sorted(s.get("activation_bits", 0) for s in settings if s["policy"] == "h2o") == [0, 8], settings
P
run report --db out/x.db -o out/report.html
holds "a report names them" grep -q "as stored, 8-bit activations" out/report.html

# Rows that were measured with one number of bits are not taken for those of another.
for bits in 16 32 8; do
    run "${given[@]}" --json --activation-bits $bits
    cp log/out $bits.json
done
holds "bits that are asked for are those that were measured" python - <<'P'
from scores import *
ppl = [load(f"{bits}.json")["results"][0]["ppl"] for bits in (16, 32, 8)]
assert len(set(ppl)) == 3, ppl
assert ppl[1:] == [load(f"{name}.json")["results"][0]["ppl"] for name in ("exact", "rounded")], ppl
P

python - <<'P'
import random
draw = random.Random(1)
with open("many.jsonl", "w") as f:
    for _ in range(40):
        print([draw.randrange(64) for _ in range(24)], file=f)
P
with=(--model "$SH_GOLDEN/gguf/quantised.gguf" --tokens many.jsonl --activation-bits 8)
run plan "${with[@]}" --target-ppl-increase 50% --policy h2o --db out/plan.db -o out/plan.json --judged out/judged.jsonl
expect "a plan says how to repeat its measurement" 0 "--activation-bits 8" ""
holds "a plan says what its weights met" grep -q '"weights": *"checkpoint,activations:8"' out/plan.json
holds "its results are of 8 bits" python - <<'P'
from scores import *
for command in ("plan", "judged"):
    settings = [json.loads(s) for s, in query("out/plan.db", f"SELECT DISTINCT settings FROM result WHERE command = '{command}'")]
    assert settings and all(s["activation_bits"] == 8 for s in settings), (command, settings)
P
run plan "${with[@]}" --activation-bits 16 --target-ppl-increase 50% --policy h2o
expect "of 16 bits, too" 0 "--activation-bits 16" ""
run repetition "${with[@]}" --prompt-tokens 8 --max-tokens 8 --policy h2o --budget 6 --db out/repetition.db
holds "text that is written with 8 bits says so" python - <<'P'
from scores import *
settings = [json.loads(s) for s, in query("out/repetition.db", "SELECT DISTINCT settings FROM result WHERE command = 'repetition'")]
assert settings and all(s["activation_bits"] == 8 for s in settings), settings
P

# ---- what is refused ----

rm -rf out && mkdir out
quantised=(--model "$SH_GOLDEN/gguf/quantised.gguf" --tokens quantised.jsonl)
refuse "other bits" 2 "--activation-bits: found 4, expected 32, 16 or 8" eval "${quantised[@]}" --activation-bits 4
refuse "a plan from a store, which reads no weights" 2 "--model, texts and their options require --target-ppl-increase" \
    plan --db store.db --policy h2o --target-recall 0.9 --activation-bits 8
refuse "no bits" 2 "--activation-bits" eval "${quantised[@]}" --activation-bits 0
refuse "weights that are pruned" 2 "--activation-bits 8 cannot be combined with --weight-prune" \
    eval "${quantised[@]}" --activation-bits 8 --weight-prune 0.5
refuse "weights that are recoded" 2 "--activation-bits 8 cannot be combined with --weight-bits" \
    eval "${quantised[@]}" --activation-bits 8 --weight-bits 4
refuse "weights in plain numbers" 2 "llama_gqa has no weights in integers that products read: expected GGUF" \
    eval --model "$checkpoints/llama_gqa" --tokens quantised.jsonl --activation-bits 8
refuse "the same, without texts" 2 "llama_gqa has no weights in integers that products read: expected GGUF" \
    generate --model "$checkpoints/llama_gqa" --tokens quantised.jsonl --activation-bits 8
for model in fp8_block_1 bnb_nf4_1 gptq8_1; do
    given=${SH_FIXTURES:-nowhere}/modern/quantised_$model
    [ -d "$given" ] || { skip "$model: no product rounds activations" "SH_FIXTURES has no such checkpoint"; continue; }
    refuse "$model: no product rounds activations" 2 "no weights in integers that products read" \
        eval --model "$given" --tokens quantised.jsonl --activation-bits 8
done
finish
