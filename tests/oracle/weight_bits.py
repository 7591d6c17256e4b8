#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attention of models whose layers' matrices went through codes of 8 and 4 bits, by transformers in float32.

    weight_bits.py CHECKPOINTS DIR [NAME...]      (torch, transformers, safetensors)

The rounding, in numpy, float32: a group is up to 64 consecutive inputs of one output; scale = f16((max - min) / top),
least = f16(min), code = clip(rint((x - least) / scale), 0, top), x' = code * scale + least. Embeddings, the output head,
projections outside the layers, norms and biases stay as they are.

DIR/NAME.safetensors gets b8.attn and b4.attn [layer, head, query, key] of the first tokens of the checkpoint's first
sequence; DIR/changes.json how far each is from the attention of the unrounded weights, at most."""
import json
import pathlib
import sys

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import AutoModel
from transformers.pytorch_utils import Conv1D

GROUP, TOKENS, NAMES = 64, 24, ["gpt2", "llama_gqa", "opt", "opt_350m_style", "gpt_neox"]


def through_codes(w, bits):
    """w: float32 [outputs, inputs]"""
    top, out = np.float32(2**bits - 1), np.empty_like(w)
    for at in range(0, w.shape[1], GROUP):
        x = w[:, at:at + GROUP]
        low, high = x.min(1, keepdims=True), x.max(1, keepdims=True)
        scale = ((high - low) / top).astype(np.float16).astype(np.float32)
        least = low.astype(np.float16).astype(np.float32)
        code = np.clip(np.rint((x - least) / np.where(scale == 0, np.float32(1), scale)), 0, top)
        out[:, at:at + GROUP] = np.where(scale == 0, np.float32(0), code) * scale + least
    return out


def matrices(model):
    """The linear maps of the layers: (parameter, whether it is stored as [inputs, outputs])."""
    lists = [m for m in model.modules() if isinstance(m, torch.nn.ModuleList)]
    layers = max(lists, key=lambda m: sum(p.numel() for p in m.parameters()))
    for m in layers.modules():
        if isinstance(m, (torch.nn.Linear, Conv1D)):
            yield m.weight, isinstance(m, Conv1D)


def attention(folder, tokens, bits):
    model = AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    count = 0
    with torch.no_grad():
        for p, turned in matrices(model) if bits else ():
            w = (p.T if turned else p).contiguous().numpy()
            rounded = torch.from_numpy(through_codes(w, bits))
            p.copy_(rounded.T if turned else rounded)
            count += 1
        out = model(torch.tensor([tokens]), output_attentions=True, use_cache=False)
    return torch.stack([a[0] for a in out.attentions]).contiguous(), count


def main():
    checkpoints, to = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    to.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    changes = {}
    for name in sys.argv[3:] or NAMES:
        tokens = json.loads((checkpoints / name / "ref.json").read_text())["sequences"][0]["tokens"][:TOKENS]
        plain, _ = attention(checkpoints / name, tokens, 0)
        tensors, changes[name] = {}, {"tokens": tokens}
        for bits in 8, 4:
            tensors[f"b{bits}.attn"], count = attention(checkpoints / name, tokens, bits)
            assert count, f"{name}: no matrix was found"
            changes[name][f"b{bits}"] = float((tensors[f"b{bits}.attn"] - plain).abs().max())
        save_file(tensors, to / f"{name}.safetensors")
        print(name, count, "matrices", changes[name])
    (to / "changes.json").write_text(json.dumps(changes) + "\n")


if __name__ == "__main__":
    main()
