#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models whose layers' matrices were pruned by magnitude, by transformers in float32.

    weight_prune.py CHECKPOINTS DIR [NAME...]      (torch, transformers, safetensors)

Of each matrix of a layer (query, key, value, output, feed-forward; a tensor that holds several of them is taken apart
first) the round(F * n) numbers of smallest magnitude become 0, as torch.nn.utils.prune.l1_unstructured counts them; of
equal magnitudes those that come first go first, in the order of the matrix [outputs, inputs]. Where no magnitude is
there twice at the edge, the mask is checked to be torch's own.

DIR/NAME.safetensors gets pF.attn [layer, head, query, key] and pF.logits [token, vocabulary] of the first tokens of the
checkpoint's first sequence, F in per cent; DIR/changes.json how far they are from those of the whole weights, at most,
how many matrices have ties at the edge, and how a prompt of four of these tokens goes on, the likeliest token each
time."""
import json
import pathlib
import sys

import numpy as np
import torch
from safetensors.torch import save_file
from torch.nn.utils import prune
from transformers import AutoModelForCausalLM
from transformers.pytorch_utils import Conv1D

SHARES, TOKENS, PROMPT, MADE = (0.3, 0.65), 24, 4, 12
NAMES = ["gpt2", "llama_gqa", "opt", "opt_bf16"]


def pruned(w, share):
    """w: tensor [outputs, inputs]; gives the pruned copy and whether magnitudes tie at the edge."""
    flat = w.contiguous().flatten().clone()
    k = round(share * flat.numel())
    size = flat.abs().float().numpy()
    order = np.argsort(size, kind="stable")
    flat[torch.from_numpy(order[:k].copy())] = 0
    tie = 0 < k < len(size) and size[order[k - 1]] == size[order[k]]
    if not tie:
        m = torch.nn.Linear(w.shape[1], w.shape[0], bias=False)
        m.weight.data = w.contiguous().clone()
        prune.l1_unstructured(m, "weight", amount=share)
        assert torch.equal(m.weight.detach() == 0, (flat == 0).view(w.shape)), "torch prunes otherwise"
    return flat.view(w.shape), bool(tie)


def prune_layers(model, share):
    lists = [m for m in model.modules() if isinstance(m, torch.nn.ModuleList)]
    layers = max(lists, key=lambda m: sum(p.numel() for p in m.parameters()))
    count = ties = 0
    for name, m in layers.named_modules():
        if not isinstance(m, (torch.nn.Linear, Conv1D)):
            continue
        w = m.weight.data.T if isinstance(m, Conv1D) else m.weight.data
        parts = 3 if name.endswith("c_attn") else 1
        done = []
        for part in w.chunk(parts):
            out, tie = pruned(part, share)
            done.append(out)
            count, ties = count + 1, ties + tie
        w = torch.cat(done)
        m.weight.data = (w.T if isinstance(m, Conv1D) else w).contiguous()
    return count, ties


def look(folder, tokens, share):
    stored = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype="auto").eval()
    made = prune_layers(stored, share) if share else (0, 0)
    model, on = stored.float(), list(tokens[:PROMPT])
    with torch.no_grad():
        out = model(torch.tensor([tokens]), output_attentions=True, use_cache=False)
        for _ in range(MADE):
            on.append(int(model(torch.tensor([on]), use_cache=False).logits[0, -1].argmax()))
    return torch.stack([a[0] for a in out.attentions]).contiguous(), out.logits[0].contiguous(), on[PROMPT:], made


def main():
    checkpoints, to = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    to.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    changes = {}
    for name in sys.argv[3:] or NAMES:
        tokens = json.loads((checkpoints / name / "ref.json").read_text())["sequences"][0]["tokens"][:TOKENS]
        attn, logits, _, _ = look(checkpoints / name, tokens, 0)
        tensors, changes[name] = {}, {"tokens": tokens}
        for share in SHARES:
            a, l, made, (count, ties) = look(checkpoints / name, tokens, share)
            key = f"p{round(100 * share)}"
            tensors[f"{key}.attn"], tensors[f"{key}.logits"] = a, l
            changes[name][key] = {"attn": float((a - attn).abs().max()), "logits": float((l - logits).abs().max()),
                                  "matrices": count, "ties": ties, "prompt": tokens[:PROMPT], "made": made}
            assert count, f"{name}: no matrix was found"
        save_file(tensors, to / f"{name}.safetensors")
        print(name, changes[name])
    (to / "changes.json").write_text(json.dumps(changes) + "\n")


if __name__ == "__main__":
    main()
