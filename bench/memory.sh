#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Peak memory of tracing a model of OPT-6.7B's shape (13.3 GB of f16 weights, all zero: a sparse file
# that takes no room on disk). The tracer holds one layer, the activations of a chunk and the hidden
# states, so the peak must stay far below the weights.
#
#   bench/memory.sh ./shears /tmp/work [TOKENS]
set -euo pipefail
shears=$(realpath "$1") work=$2 tokens=${3:-512}
mkdir -p "$work/opt-6.7b-zero"
python3 - "$work" "$tokens" <<'E2'
import json, os, struct, sys
work, n = sys.argv[1], int(sys.argv[2])
L, D, H, F, V = 32, 4096, 32, 16384, 50272
folder = f"{work}/opt-6.7b-zero"
json.dump({"model_type": "opt", "architectures": ["OPTForCausalLM"], "num_hidden_layers": L, "hidden_size": D,
           "num_attention_heads": H, "ffn_dim": F, "vocab_size": V, "max_position_embeddings": 2048,
           "word_embed_proj_dim": D, "do_layer_norm_before": True, "activation_function": "relu",
           "torch_dtype": "float16"}, open(f"{folder}/config.json", "w"))
shapes = {"embed_tokens.weight": [V, D], "embed_positions.weight": [2050, D],
          "final_layer_norm.weight": [D], "final_layer_norm.bias": [D]}
for l in range(L):
    p = f"layers.{l}."
    for x in "qkv":
        shapes[f"{p}self_attn.{x}_proj.weight"], shapes[f"{p}self_attn.{x}_proj.bias"] = [D, D], [D]
    shapes[p + "self_attn.out_proj.weight"], shapes[p + "self_attn.out_proj.bias"] = [D, D], [D]
    shapes[p + "fc1.weight"], shapes[p + "fc1.bias"] = [F, D], [F]
    shapes[p + "fc2.weight"], shapes[p + "fc2.bias"] = [D, F], [D]
    for x in ("self_attn_layer_norm", "final_layer_norm"):
        shapes[f"{p}{x}.weight"], shapes[f"{p}{x}.bias"] = [D], [D]
header, at = {}, 0
for name, shape in shapes.items():
    size = 2
    for s in shape:
        size *= s
    header["model.decoder." + name] = {"dtype": "F16", "shape": shape, "data_offsets": [at, at + size]}
    at += size
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
with open(f"{folder}/model.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(text)) + text)
    f.truncate(8 + len(text) + at)
open(f"{work}/tokens.jsonl", "w").write(json.dumps([i * 97 % V for i in range(n)]) + "\n")
E2
rm -f "$work"/zero.db*
"$shears" trace --model "$work/opt-6.7b-zero" --tokens "$work/tokens.jsonl" --db "$work/zero.db" --record summary -v
