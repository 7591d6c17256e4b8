#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of tests/fuzz/corpus/experts: mixtures of one layer, each config.json, NUL, header, NUL, data.

    fuzz_experts.py DIR
"""
import json
import pathlib
import random
import struct
import sys

WIDTH, WIDE, HEADS, HEAD, VOCAB, EXPERTS = 32, 32, 2, 8, 12, 4
BYTES = {"BF16": 2, "F32": 4, "U8": 1, "F8_E4M3": 1}
COMMON = {"num_hidden_layers": 1, "hidden_size": WIDTH, "num_attention_heads": HEADS, "num_key_value_heads": 1,
          "vocab_size": VOCAB, "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
          "tie_word_embeddings": True}
R = random.Random(30)


def number(dtype, what):
    if what == "one":
        return b"\x80\x3f" if dtype == "BF16" else struct.pack("<f", 1)
    if dtype == "U8":
        return bytes([R.randrange(256) if what == "code" else 120 + R.randrange(4)])
    if dtype == "F8_E4M3":
        return bytes([R.randrange(2) << 7 | R.randrange(0x60)])
    raw = struct.pack("<f", R.gauss(0, 0.3))
    return raw[2:] if dtype == "BF16" else raw


def write(path, config, tensors):
    header, data = {}, b""
    for name, dtype, shape, what in tensors:
        count = 1
        for n in shape:
            count *= n
        blob = b"".join(number(dtype, what) for _ in range(count))
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(blob)]}
        data += blob
    path.write_bytes(json.dumps(COMMON | config).encode() + b"\0" + json.dumps(header).encode() + b"\0" + data)


def ends(dtype):
    return [("model.embed_tokens.weight", dtype, [VOCAB, WIDTH], ""), ("model.norm.weight", dtype, [WIDTH], "one"),
            ("model.layers.0.input_layernorm.weight", dtype, [WIDTH], "one"),
            ("model.layers.0.post_attention_layernorm.weight", dtype, [WIDTH], "one")]


def attention(dtype, bias=False):
    shapes = {"q": [HEADS * HEAD, WIDTH], "k": [HEAD, WIDTH], "v": [HEAD, WIDTH], "o": [WIDTH, HEADS * HEAD]}
    at = "model.layers.0.self_attn."
    tensors = [(f"{at}{part}_proj.weight", dtype, shape, "") for part, shape in shapes.items()]
    return tensors + [(f"{at}{part}_proj.bias", dtype, shape[:1], "") for part, shape in shapes.items() if bias]


def mixtral():
    at = "model.layers.0.block_sparse_moe."
    experts = [(f"{at}experts.{i}.{part}.weight", "BF16", [WIDTH, WIDE], "") for i in range(EXPERTS)
               for part in ("w1", "w3", "w2")]
    return {"model_type": "mixtral", "intermediate_size": WIDE, "num_local_experts": EXPERTS, "num_experts_per_tok": 2,
            "head_dim": HEAD}, ends("BF16") + attention("BF16") + experts + [
                (at + "gate.weight", "BF16", [EXPERTS, WIDTH], "")]


def gpt_oss():
    at, experts = "model.layers.0.mlp.", []
    for part, rows, cols in (("gate_up", 2 * WIDE, WIDTH), ("down", WIDTH, WIDE)):
        experts += [(f"{at}experts.{part}_proj_blocks", "U8", [EXPERTS, rows, cols // 32, 16], "code"),
                    (f"{at}experts.{part}_proj_scales", "U8", [EXPERTS, rows, cols // 32], "exponent"),
                    (f"{at}experts.{part}_proj_bias", "BF16", [EXPERTS, rows], "")]
    return {"model_type": "gpt_oss", "intermediate_size": WIDE, "num_local_experts": EXPERTS, "num_experts_per_tok": 2,
            "head_dim": HEAD, "sliding_window": 8, "attention_bias": True,
            "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]}
            }, ends("BF16") + attention("BF16", True) + experts + [
                ("model.layers.0.self_attn.sinks", "BF16", [HEADS], ""),
                (at + "router.weight", "BF16", [EXPERTS, WIDTH], ""), (at + "router.bias", "BF16", [EXPERTS], "")]


def fp8(name, rows, cols):
    return [(name, "F8_E4M3", [rows, cols], ""), (name + "_scale_inv", "F32", [-(-rows // 16), -(-cols // 16)], "one")]


def deepseek():
    rank, rope, nope, value, at = 8, 4, 4, 4, "model.layers.0."
    tensors = ends("F32") + [(at + "self_attn.kv_a_layernorm.weight", "F32", [rank], "one"),
                             (at + "mlp.gate.weight", "F32", [EXPERTS, WIDTH], ""),
                             (at + "mlp.gate.e_score_correction_bias", "F32", [EXPERTS], "")]
    for name, rows, cols in (("q_proj", HEADS * (nope + rope), WIDTH), ("kv_a_proj_with_mqa", rank + rope, WIDTH),
                             ("kv_b_proj", HEADS * (nope + value), rank), ("o_proj", WIDTH, HEADS * value)):
        tensors += fp8(f"{at}self_attn.{name}.weight", rows, cols)
    for mlp in [f"experts.{i}" for i in range(EXPERTS)] + ["shared_experts"]:
        for part in ("gate", "up", "down"):
            tensors += fp8(f"{at}mlp.{mlp}.{part}_proj.weight", WIDE, WIDTH)
    return {"model_type": "deepseek_v3", "intermediate_size": 48, "moe_intermediate_size": WIDE, "q_lora_rank": None,
            "kv_lora_rank": rank, "qk_nope_head_dim": nope, "qk_rope_head_dim": rope, "v_head_dim": value,
            "num_key_value_heads": HEADS, "n_routed_experts": EXPERTS, "n_shared_experts": 1, "num_experts_per_tok": 2,
            "n_group": 2, "topk_group": 1, "first_k_dense_replace": 0, "norm_topk_prob": True,
            "scoring_func": "sigmoid", "topk_method": "noaux_tc", "routed_scaling_factor": 2.5,
            "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [16, 16]}}, tensors


def granitemoe():
    at = "model.layers.0.block_sparse_moe."
    return {"model_type": "granitemoe", "intermediate_size": WIDE, "num_local_experts": EXPERTS,
            "num_experts_per_tok": 2, "attention_multiplier": 0.3, "embedding_multiplier": 2.0,
            "residual_multiplier": 0.5, "logits_scaling": 2.0, "head_dim": HEAD
            }, ends("F32") + attention("F32") + [
                (at + "input_linear.weight", "BF16", [EXPERTS, 2 * WIDE, WIDTH], ""),
                 (at + "output_linear.weight", "BF16", [EXPERTS, WIDTH, WIDE], ""),
                 (at + "router.layer.weight", "F32", [EXPERTS, WIDTH], "")]


if __name__ == "__main__":
    for make in (mixtral, gpt_oss, deepseek, granitemoe):
        write(pathlib.Path(sys.argv[1]) / f"ok-{make.__name__}", *make())
