#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/generated.json: what transformers writes, greedily, behind prompts with checkpoints whose angles
follow a text's length, from below the trained length to beyond it. Never run by make.

usage: generated.py CHECKPOINTS > generated.json      (CHECKPOINTS: tests/golden/checkpoints; made with transformers 5.23.0)
"""
import json
import os
import sys

import torch
import transformers

NEW = 30
LEAST = 1e-3                            # between the two likeliest logits: no rounding decides


def main():
    out = []
    for name in ("phi3_longrope", "llama_dynamic_rope"):
        folder = os.path.join(sys.argv[1], name)
        generator = torch.Generator().manual_seed(3)
        for n in (5, 12, 16, 17, 24, 28):   # a new model for each: the angles of "dynamic" outlive a text
            model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager",
                                                                      dtype=torch.float32).eval()
            prompt = torch.randint(3, model.config.vocab_size, (1, n), generator=generator)
            got = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=NEW, do_sample=False,
                                 eos_token_id=None, pad_token_id=0, output_logits=True, return_dict_in_generate=True)
            two = torch.stack([x[0].topk(2).values for x in got.logits])
            sure = int(((two[:, 0] - two[:, 1]) < LEAST).int().cumsum(0).eq(0).sum())
            out.append({"model": name, "prompt": prompt[0].tolist(), "ids": got.sequences[0, n:n + sure].tolist()})
    sys.stdout.write("[\n" + ",\n".join(json.dumps(o, separators=(",", ":")) for o in out) + "\n]\n")


main()
