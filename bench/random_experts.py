# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of mixtures of experts in their true shapes and formats, as hub folders: gpt-oss-20b (MXFP4),
Qwen3-30B-A3B (bf16), DeepSeek-V3 (FP8 blocks). Weights are random, or with --holes those of the layers' matrices
are zeros that take no room on disk; routers and embeddings are random in any case, so that tokens choose different
experts. No library is needed.

    random_experts.py FOLDER SHAPE [--holes] [--layers N]
"""
import argparse
import json
import os
import random
import struct
import time

from random_model import random_block

CHUNK = 1 << 23
GPT_OSS = {
    "model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], "num_hidden_layers": 24, "hidden_size": 2880,
    "intermediate_size": 2880, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
    "vocab_size": 201088, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "rope_theta": 150000,
    "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0, "original_max_position_embeddings": 4096,
                     "rope_type": "yarn", "truncate": False},
    "num_local_experts": 32, "num_experts_per_tok": 4, "sliding_window": 128, "swiglu_limit": 7.0,
    "attention_bias": True, "tie_word_embeddings": False, "hidden_act": "silu", "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": [
        "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}}
QWEN3 = {
    "model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "num_hidden_layers": 48, "hidden_size": 2048,
    "intermediate_size": 6144, "moe_intermediate_size": 768, "num_attention_heads": 32, "num_key_value_heads": 4,
    "head_dim": 128, "vocab_size": 151936, "max_position_embeddings": 40960, "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0, "rope_scaling": None, "num_experts": 128, "num_experts_per_tok": 8,
    "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [], "attention_bias": False,
    "sliding_window": None, "use_sliding_window": False, "tie_word_embeddings": False, "hidden_act": "silu",
    "torch_dtype": "bfloat16"}
DEEPSEEK = {
    "model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "num_hidden_layers": 61,
    "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_attention_heads": 128,
    "num_key_value_heads": 128, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 129280, "max_position_embeddings": 163840,
    "rms_norm_eps": 1e-6, "rope_theta": 10000,
    "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0,
                     "original_max_position_embeddings": 4096, "type": "yarn"},
    "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "n_group": 8, "topk_group": 4,
    "first_k_dense_replace": 3, "moe_layer_freq": 1, "norm_topk_prob": True, "routed_scaling_factor": 2.5,
    "scoring_func": "sigmoid", "topk_method": "noaux_tc", "ep_size": 1, "attention_bias": False,
    "tie_word_embeddings": False, "hidden_act": "silu", "torch_dtype": "bfloat16",
    "quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8",
                            "weight_block_size": [128, 128]}}
SHAPES = {"gpt-oss-20b": GPT_OSS, "qwen3-30b-a3b": QWEN3, "deepseek-v3": DEEPSEEK,
          "small-gpt-oss": GPT_OSS | {"num_hidden_layers": 2, "hidden_size": 128, "intermediate_size": 96,
                                      "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
                                      "vocab_size": 256, "num_local_experts": 8}}
BYTES = {"BF16": 2, "F32": 4, "U8": 1, "F8_E4M3": 1}


def gpt_oss(c, layer):
    """(name, dtype, shape, what it holds) of one layer."""
    width, wide, heads = c["hidden_size"], c["intermediate_size"], c["num_attention_heads"]
    n, q, kv = c["num_local_experts"], heads * c["head_dim"], c["num_key_value_heads"] * c["head_dim"]
    at = f"model.layers.{layer}."
    for part, rows, cols in (("q", q, width), ("k", kv, width), ("v", kv, width), ("o", width, q)):
        yield f"{at}self_attn.{part}_proj.weight", "BF16", [rows, cols], "matrix"
        yield f"{at}self_attn.{part}_proj.bias", "BF16", [rows], "zeros"
    yield at + "self_attn.sinks", "BF16", [heads], "zeros"
    yield at + "mlp.router.weight", "BF16", [n, width], "router"
    yield at + "mlp.router.bias", "BF16", [n], "zeros"
    for part, rows, cols in (("gate_up", 2 * wide, width), ("down", width, wide)):
        yield f"{at}mlp.experts.{part}_proj_bias", "BF16", [n, rows], "zeros"
        yield f"{at}mlp.experts.{part}_proj_blocks", "U8", [n, rows, cols // 32, 16], "codes"
        yield f"{at}mlp.experts.{part}_proj_scales", "U8", [n, rows, cols // 32], "exponents"
    yield at + "input_layernorm.weight", "BF16", [width], "ones"
    yield at + "post_attention_layernorm.weight", "BF16", [width], "ones"


def qwen3(c, layer):
    width, heads, d = c["hidden_size"], c["num_attention_heads"], c["head_dim"]
    wide, kv, at = c["moe_intermediate_size"], c["num_key_value_heads"] * d, f"model.layers.{layer}."
    for part, rows, cols in (("q", heads * d, width), ("k", kv, width), ("v", kv, width), ("o", width, heads * d)):
        yield f"{at}self_attn.{part}_proj.weight", "BF16", [rows, cols], "matrix"
    for part in "qk":
        yield f"{at}self_attn.{part}_norm.weight", "BF16", [d], "ones"
    yield at + "mlp.gate.weight", "BF16", [c["num_experts"], width], "router"
    for i in range(c["num_experts"]):
        for part, rows, cols in (("gate", wide, width), ("up", wide, width), ("down", width, wide)):
            yield f"{at}mlp.experts.{i}.{part}_proj.weight", "BF16", [rows, cols], "matrix"
    yield at + "input_layernorm.weight", "BF16", [width], "ones"
    yield at + "post_attention_layernorm.weight", "BF16", [width], "ones"


def fp8(name, rows, cols):
    yield name, "F8_E4M3", [rows, cols], "fp8"
    yield name + "_scale_inv", "F32", [-(-rows // 128), -(-cols // 128)], "scales"


def deepseek(c, layer):
    width, heads, rank, q_rank = c["hidden_size"], c["num_attention_heads"], c["kv_lora_rank"], c["q_lora_rank"]
    nope, rope, value, at = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"], f"model.layers.{layer}."
    for part, rows, cols in (("q_a_proj", q_rank, width), ("q_b_proj", heads * (nope + rope), q_rank),
                             ("kv_a_proj_with_mqa", rank + rope, width), ("kv_b_proj", heads * (nope + value), rank),
                             ("o_proj", width, heads * value)):
        yield from fp8(f"{at}self_attn.{part}.weight", rows, cols)
    yield at + "self_attn.q_a_layernorm.weight", "BF16", [q_rank], "ones"
    yield at + "self_attn.kv_a_layernorm.weight", "BF16", [rank], "ones"
    mlps = [("mlp.", c["intermediate_size"])]
    if layer >= c["first_k_dense_replace"]:
        yield at + "mlp.gate.weight", "BF16", [c["n_routed_experts"], width], "router"
        yield at + "mlp.gate.e_score_correction_bias", "F32", [c["n_routed_experts"]], "zeros"
        mlps = [(f"mlp.experts.{i}.", c["moe_intermediate_size"]) for i in range(c["n_routed_experts"])]
        mlps += [("mlp.shared_experts.", c["moe_intermediate_size"] * c["n_shared_experts"])]
    for mlp, wide in mlps:
        for part, rows, cols in (("gate", wide, width), ("up", wide, width), ("down", width, wide)):
            yield from fp8(f"{at}{mlp}{part}_proj.weight", rows, cols)
    yield at + "input_layernorm.weight", "BF16", [width], "ones"
    yield at + "post_attention_layernorm.weight", "BF16", [width], "ones"


LAYERS = {"gpt_oss": gpt_oss, "qwen3_moe": qwen3, "deepseek_v3": deepseek}
IN_HOLES = {"matrix", "codes", "exponents", "fp8", "scales"}


def sources():
    """What tensors hold, as bytes that are repeated; exponents and scales keep a matrix's numbers near 0.02."""
    rng = random.Random(0)
    halves = random_block(rng)[:CHUNK]
    floats = struct.pack(f"<{CHUNK // 2}f", *struct.unpack(f"<{CHUNK // 2}e", halves))
    bf16 = bytearray(CHUNK)
    bf16[0::2], bf16[1::2] = floats[2::4], floats[3::4]
    bf16 = bytes(bf16)
    table = bytes(i & 0x80 | min(i & 0x7F, 0x60) for i in range(256))
    return {"matrix": bf16, "router": bf16, "codes": rng.randbytes(CHUNK),
            "exponents": bytes(120 + x % 2 for x in rng.randbytes(CHUNK)), "fp8": rng.randbytes(CHUNK).translate(table),
            "scales": struct.pack("<f", 0.004) * (CHUNK // 4), "zeros": bytes(CHUNK),
            "ones": b"\x80\x3f" * (CHUNK // 2)}


def write_shard(path, tensors, held, holes):
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, dtype, shape, _ in tensors:
        size = BYTES[dtype]
        for n in shape:
            size *= n
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    first = 8 + len(text)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(first + end)
        for i, (name, _, _, what) in enumerate(tensors):
            if what == "zeros" or (holes and what in IN_HOLES):
                continue
            begin, stop = header[name]["data_offsets"]
            at = i * 7919 * 16 % (CHUNK // 2) if what not in ("scales", "ones") else 0
            f.seek(first + begin)
            while begin < stop:
                n = min(stop - begin, CHUNK - at)
                f.write(memoryview(held[what])[at:at + n])
                begin, at = begin + n, 0
    return end


def make(folder, shape, holes=False, layers=None):
    """The checkpoint, unless it is there already; a shard for each layer. Its bytes of weights."""
    os.makedirs(folder, exist_ok=True)
    config, held, places, total = dict(SHAPES[shape]), sources(), {}, 0
    config["num_hidden_layers"] = layers or config["num_hidden_layers"]
    if config["model_type"] == "gpt_oss":
        config["layer_types"] = ["sliding_attention", "full_attention"] * (config["num_hidden_layers"] // 2)
    ends = [(f"{name}.weight", "BF16", [config["vocab_size"], config["hidden_size"]], "router")
            for name in ("model.embed_tokens", "lm_head")]
    ends.append(("model.norm.weight", "BF16", [config["hidden_size"]], "ones"))
    n = config["num_hidden_layers"]
    for i in range(n + 1):
        tensors = ends if i == n else list(LAYERS[config["model_type"]](config, i))
        shard = f"model-{i + 1:05d}-of-{n + 1:05d}.safetensors"
        total += write_shard(os.path.join(folder, shard), tensors, held, holes)
        places |= {name: shard for name, _, _, _ in tensors}
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as f:
        json.dump({"metadata": {"total_size": total}, "weight_map": places}, f)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f, indent=1)
    return total


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("--holes", action="store_true")
    parser.add_argument("--layers", type=int, help="of the model; without it all")
    a = parser.parse_args()
    began = time.perf_counter()
    size = make(a.folder, a.shape, a.holes, a.layers)
    print(json.dumps({"shape": a.shape, "weight_bytes": size, "seconds": round(time.perf_counter() - began, 2)}))
