# SPDX-License-Identifier: Apache-2.0
"""A hub folder of LLaMA's shape whose layers have random codes of another program's format: any bits are codes, scales
are such that numbers have a deviation of about 0.02. Embedding, head and norms are f16. Needs numpy.

    random_coded.py FORMAT SHAPE FOLDER         random_coded.py awq llama-7b /tmp/7b-awq

FORMAT: awq, gptq (in activation order), int4 (compressed-tensors), fp8 (blocks of 128); SHAPE: one of LLaMA's in
random_model.py."""
import json
import os
import struct
import sys

import numpy as np

import random_model

GROUP = 128
G = np.random.default_rng(1)
TYPES = {"I32": np.int32, "I64": np.int64, "F16": np.float16, "BF16": np.uint16, "F32": np.float32, "F8_E4M3": np.uint8}
QUANT = {"awq": {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True, "version": "gemm"},
         "gptq": {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": True, "sym": False},
         "int4": {"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"],
                  "config_groups": {"group_0": {"targets": ["Linear"], "weights": {
                      "num_bits": 4, "type": "int", "group_size": GROUP, "strategy": "group", "symmetric": True}}}},
         "fp8": {"quant_method": "fp8", "weight_block_size": [GROUP, GROUP]}}


def words(shape):
    return G.integers(-2 ** 31, 2 ** 31, shape, np.int64).astype(np.int32)


def coded(kind, rows, cols):
    """Tensors after the matrix's name: type and numbers."""
    scales = np.full((cols // GROUP, rows), 4e-3, np.float16)
    if kind == "awq":
        return {"qweight": ("I32", words((cols, rows // 8))), "qzeros": ("I32", words((cols // GROUP, rows // 8))),
                "scales": ("F16", scales)}
    if kind == "gptq":
        order = G.permutation(np.arange(cols, dtype=np.int32) // GROUP)
        return {"qweight": ("I32", words((cols // 8, rows))), "qzeros": ("I32", words((cols // GROUP, rows // 8))),
                "scales": ("F16", scales), "g_idx": ("I32", order)}
    if kind == "int4":
        return {"weight_packed": ("I32", words((rows, cols // 8))),
                "weight_scale": ("BF16", np.full((rows, cols // GROUP), 0x3b83, np.uint16)),
                "weight_shape": ("I64", np.array([rows, cols]))}
    codes = G.integers(0, 256, (rows, cols), np.uint8) & 0xbf               # below 2, no NaN
    return {"weight": ("F8_E4M3", codes),
            "weight_scale_inv": ("F32", np.full((-(-rows // GROUP), -(-cols // GROUP)), 0.05, np.float32))}


def tensors(kind, c):
    width, ffn, vocab = c["hidden_size"], c["intermediate_size"], c["vocab_size"]
    kv = width // c["num_attention_heads"] * c["num_key_value_heads"]
    yield "model.embed_tokens.weight", ("F16", (G.standard_normal((vocab, width)) * 0.02).astype(np.float16))
    yield "lm_head.weight", ("F16", (G.standard_normal((vocab, width)) * 0.02).astype(np.float16))
    yield "model.norm.weight", ("F16", np.ones(width, np.float16))
    for i in range(c["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        for name in ("input_layernorm", "post_attention_layernorm"):
            yield f"{layer}{name}.weight", ("F16", np.ones(width, np.float16))
        for name, rows, cols in (
                ("self_attn.q_proj", width, width), ("self_attn.k_proj", kv, width), ("self_attn.v_proj", kv, width),
                ("self_attn.o_proj", width, width), ("mlp.gate_proj", ffn, width), ("mlp.up_proj", ffn, width),
                ("mlp.down_proj", width, ffn)):
            for end, tensor in coded(kind, rows, cols).items():
                yield f"{layer}{name}.{end}", tensor


def main(kind, shape, folder):
    os.makedirs(folder, exist_ok=True)
    config = random_model.config_of(shape)
    header, at = {}, 0
    with open(os.path.join(folder, "model.safetensors.part"), "wb") as f:
        for name, (kind_of, x) in tensors(kind, config):
            header[name] = {"dtype": kind_of, "shape": list(x.shape), "data_offsets": [at, at + x.nbytes]}
            f.write(np.ascontiguousarray(x, TYPES[kind_of]).tobytes())
            at += x.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f, open(f.name + ".part", "rb") as data:
        f.write(struct.pack("<Q", len(text)) + text)
        while piece := data.read(1 << 26):
            f.write(piece)
    os.remove(os.path.join(folder, "model.safetensors.part"))
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config | {"quantization_config": QUANT[kind]}, f, indent=1)
    print(at, "bytes")


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in QUANT:
        sys.exit(__doc__)
    main(*sys.argv[1:])
