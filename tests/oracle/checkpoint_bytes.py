#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/checkpoints/expected.tsv: for each OPT checkpoint next to it every tensor by role
and layer, with its type, shape, name and the CRC-32 of its bytes, as the safetensors package reads
them. Needs torch and safetensors. Usage: checkpoint_bytes.py tests/golden/checkpoints"""
import glob
import os
import sys
import zlib

import torch
from safetensors import safe_open

OUTER = {
    "tok_embed": "embed_tokens.weight", "pos_embed": "embed_positions.weight",
    "proj_in": "project_in.weight", "proj_out": "project_out.weight",
    "final_norm_w": "final_layer_norm.weight", "final_norm_b": "final_layer_norm.bias",
    "head": "embed_tokens.weight",
}
LAYER = {}
for role, name in [("attn_norm", "self_attn_layer_norm"), ("q", "self_attn.q_proj"),
                   ("k", "self_attn.k_proj"), ("v", "self_attn.v_proj"), ("o", "self_attn.out_proj"),
                   ("mlp_norm", "final_layer_norm"), ("up", "fc1"), ("down", "fc2")]:
    LAYER[role + "_w"] = name + ".weight"
    LAYER[role + "_b"] = name + ".bias"
TYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}


def read(folder):
    tensors = {}
    for path in sorted(glob.glob(os.path.join(folder, "model*.safetensors"))):
        with safe_open(path, framework="pt") as f:
            for name in f.keys():
                tensors[name] = f.get_tensor(name)
    return tensors


def row(checkpoint, role, layer, tensors, name):
    full = next((p + name for p in ("model.decoder.", "decoder.") if p + name in tensors), None)
    if full is None:
        return [checkpoint, role, layer, "-", 0, 0, "-", 0]
    t = tensors[full]
    rows, cols = t.shape if t.dim() == 2 else (1, t.shape[0])
    crc = zlib.crc32(t.contiguous().view(torch.uint8).numpy().tobytes())
    return [checkpoint, role, layer, TYPES[t.dtype], rows, cols, full, crc]


def main():
    top = sys.argv[1]
    with open(os.path.join(top, "expected.tsv"), "w") as out:
        for config in sorted(glob.glob(os.path.join(top, "*", "config.json"))):
            folder = os.path.dirname(config)
            tensors = read(folder)
            checkpoint = os.path.basename(folder)
            n_layer = 1 + max(int(n.split("layers.")[1].split(".")[0]) for n in tensors if "layers." in n)
            rows = [row(checkpoint, r, -1, tensors, n) for r, n in OUTER.items()]
            rows += [row(checkpoint, r, i, tensors, f"layers.{i}.{n}") for i in range(n_layer) for r, n in LAYER.items()]
            assert len({r[6] for r in rows} - {"-"}) == len(tensors)
            for r in rows:
                print(*r, sep="\t", file=out)


main()
