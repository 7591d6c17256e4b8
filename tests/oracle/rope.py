#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/rope.json: configs with each kind of rotary scaling, as files of either age have them, and what
transformers makes of them: the frequencies and the factor of cos and sin for sequences of a length. Needs torch and
transformers. Usage: rope.py tests/golden/rope.json"""
import json
import sys

import transformers
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

BASE = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 1, "num_attention_heads": 2,
        "vocab_size": 8, "intermediate_size": 8}
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
FACTORS = {n: {"short_factor": [1 + i / 50 for i in range(n)], "long_factor": [1.5 + i * i / 40 for i in range(n)]}
           for n in (32, 48)}
LONG = {"type": "longrope", "original_max_position_embeddings": 4096, **FACTORS[48]}
CASES = [  # head width, positions, theta, length, scaling, in an old file?
    (128, 4096, 10000.0, 100, None, True),
    (64, 2048, 10000.0, 100, {"type": "linear", "factor": 2.5}, True),
    (128, 4096, 10000.0, 100, {"type": "dynamic", "factor": 2.0}, True),
    (128, 4096, 10000.0, 5000, {"type": "dynamic", "factor": 2.0}, True),
    (128, 4096, 10000.0, 8192, {"rope_type": "dynamic", "factor": 2.0}, False),
    (128, 131072, 500000.0, 9000, {"rope_type": "llama3", **LLAMA3}, True),
    (128, 131072, 500000.0, 9000, {"rope_type": "llama3", **LLAMA3, "factor": 32.0}, False),
    (128, 10485760, 500000.0, 9000, {"rope_type": "llama3", **LLAMA3, "factor": 16.0, "high_freq_factor": 1.0}, True),
    (128, 131072, 1000000.0, 40000, {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}, True),
    (128, 131072, 1000000.0, 9, {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768,
                                 "attention_factor": 1.25, "beta_fast": 16.0, "beta_slow": 2.0}, False),
    (64, 163840, 10000.0, 9, {"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096,
                              "mscale": 0.707, "mscale_all_dim": 1.0, "truncate": False}, False),
    (96, 131072, 10000.0, 4096, LONG, True),
    (96, 131072, 10000.0, 4097, LONG, True),
    (64, 8192, 10000.0, 70, {**LONG, **FACTORS[32], "attention_factor": 1.5}, False),
]


def case(width, positions, theta, length, scaling, old):
    config = BASE | {"hidden_size": 2 * width, "max_position_embeddings": positions}
    if old:
        config |= {"rope_theta": theta, "rope_scaling": scaling}
    else:
        config |= {"rope_parameters": scaling | {"rope_theta": theta}}
    read = transformers.LlamaConfig(**json.loads(json.dumps(config)))
    kind = read.rope_parameters["rope_type"]
    if kind == "default":
        f = [1 / theta ** (2 * i / width) for i in range(width // 2)]
        factor = 1.0
    else:
        f, factor = ROPE_INIT_FUNCTIONS[kind](read, "cpu", seq_len=length)
        f = f.tolist()
    return {"config": config, "length": length, "attention": float(factor), "frequencies": f}


with open(sys.argv[1], "w") as out:
    json.dump([case(*c) for c in CASES], out, indent=0)
    out.write("\n")
