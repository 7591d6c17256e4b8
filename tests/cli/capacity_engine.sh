#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What shears capacity predicts of a sequence's cache is what the engine allocates for it: keys and
# values in their format, and what is kept with each token (its position, the policy's score).
. "$(dirname "$0")/lib.sh"

python -c 'print([(7 * i + 3) % 120 for i in range(40)])' >tokens.jsonl
same() { # checkpoint, policy, budget, bits, format, bytes kept with a token, options of eval
    local what="$1, $2, budget $3, $4 bits${7:+, $7}"
    run eval --model "$checkpoints/$1" --tokens tokens.jsonl --policy "$2" --budget "$3" --kv-bits "$4" ${7:-} -q --json
    [ $status = 0 ] || { not_ok "$what: eval"; sed 's/^/# /' log/err; return; }
    cp log/out engine.json
    run capacity --model "$checkpoints/$1/config.json" --gpu H100-SXM --length 40 --budget "$3" --kv "$5" --state "$6" --json
    [ $status = 0 ] || { not_ok "$what: capacity"; sed 's/^/# /' log/err; return; }
    holds "$what" python - <<'P'
import json
engine = json.load(open("engine.json"))["results"][0]["kv_bytes"]
predicted = json.load(open("log/out"))["results"][0]["kv_bytes_per_sequence_per_gpu"]
assert engine == predicted, f"the engine has {engine} bytes, capacity says {predicted}"
P
}
codes() { echo "int$1:group=$2:scale=16:zero=16"; }      # a group is no longer than a head
same opt window 12 32 f32 4
same opt window 12 16 f16 4
same opt h2o 20 16 f16 8
same opt tova 20 8 "$(codes 8 8)" 4
same opt window 9 4 "$(codes 4 8)" 4
same llama_gqa window 12 16 f16 4
same llama_gqa h2o 17 32 f32 8
same llama_gqa tova 25 4 "$(codes 4 12)" 4
same mistral window 12 16 f16 4
same gpt2 streaming 16 8 "$(codes 8 8)" 4
same qwen2 h2o:recent=4 0.5 16 f16 8
by_channel() { echo "--kv-keys channel --kv-group $1 --kv-residual $2"; }
same opt window 20 4 "$(codes 4 8):residual=4" 4 "$(by_channel 8 4)"
same opt h2o 21 8 "$(codes 8 8):residual=8" 8 "$(by_channel 8 8)"
same gpt2 streaming 19 4 "$(codes 4 8):residual=30" 4 "$(by_channel 8 30)"
finish
