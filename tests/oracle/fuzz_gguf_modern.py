#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seeds for fuzz_gguf of families whose files say more than others: fuzz_gguf_modern.py TO

Gemma 4 with what differs by layer (and with experts), Llama 4, Apertus with xIELU's numbers as metadata: models of a few
numbers, as gguf_modern.py writes them. Layers with a state, latents and groups of experts: checkpoints of
tests/golden, cut to their first layers and along every axis, as gguf_modern.py, gguf_hybrid.py and gguf_more.py write
those. Needs numpy."""
import json
import pathlib
import re
import sys

import numpy as np

import gguf_hybrid
import gguf_modern
import gguf_more
from gguf_files import write

WIDTH, VOCAB, FF = 4, 8, 4
COMMON = {"hidden_size": WIDTH, "intermediate_size": FF, "num_attention_heads": 2, "num_key_value_heads": 1,
          "max_position_embeddings": 16, "rms_norm_eps": 1e-5, "vocab_size": VOCAB}
ROPES = {"full_attention": {"rope_type": "proportional", "rope_theta": 1e4, "partial_rotary_factor": 0.5},
         "sliding_attention": {"rope_type": "default", "rope_theta": 1e3}}
GEMMA = COMMON | {
    "model_type": "gemma4_text", "head_dim": 2, "global_head_dim": 4, "layer_types": ["sliding_attention", "full_attention"],
    "num_hidden_layers": 2, "sliding_window": 4, "rope_parameters": ROPES, "final_logit_softcapping": 30.0,
    "num_kv_shared_layers": 0}
CASES = {
    "ok-gemma4": GEMMA | {"hidden_size_per_layer_input": 2, "attention_k_eq_v": False},
    "ok-gemma4-experts": GEMMA | {"hidden_size_per_layer_input": 0, "attention_k_eq_v": True, "num_experts": 2,
                                  "num_global_key_value_heads": 1, "top_k_experts": 1, "moe_intermediate_size": FF},
    "ok-llama4": COMMON | {
        "model_type": "llama4_text", "head_dim": 2, "num_hidden_layers": 1, "num_local_experts": 2,
        "num_experts_per_tok": 1, "intermediate_size_mlp": FF, "attention_chunk_size": 4, "attn_scale": 0.1,
        "floor_scale": 4, "interleave_moe_layer_step": 1, "rope_theta": 1e4},
    "ok-apertus": COMMON | {"model_type": "apertus", "num_hidden_layers": 1, "rope_theta": 1e4}}

CHECKPOINTS = pathlib.Path(__file__).parent.parent / "golden/checkpoints/modern"
SIZES = {4: 2, 5: 1, 6: 3, 8: 4, 10: 5, 12: 6, 16: 4, 17: 7, 20: 5, 24: 6, 32: 8, 40: 10, 48: 12, 56: 20, 64: 16, 92: 30}
CUTS = {                                # layers that are left, and what an axis is cut to
    "lfm2": (2, SIZES), "lfm2_moe": (2, SIZES), "granitemoehybrid": (2, SIZES), "jamba": (2, SIZES),
    "nemotron_h": (3, SIZES), "nemotron_h_moe": (3, SIZES | {4: 4, 8: 2, 24: 12, 92: 32}),
    "glm4_moe_lite": (2, SIZES | {56: 14}), "exaone_moe": (3, SIZES | {24: 12}),
    "falcon_h1_gated_first": (1, SIZES | {6: 2, 12: 4, 24: 4, 76: 18}), "hunyuan_v1_moe": (1, SIZES | {6: 4, 12: 8, 24: 8}),
    "kimi_linear": (2, SIZES | {18: 9, 56: 14}), "minicpm3": (1, SIZES | {56: 14}), "laguna": (2, SIZES | {16: 8}),
    "mimo_v2_published": (2, SIZES | {16: 8, 24: 12}), "step3p7": (3, SIZES | {16: 8}),
    "bailing_hybrid": (2, SIZES | {24: 6, 56: 14, 5: 5}), "internlm2": (1, SIZES | {32: 12}), "glm_ocr": (1, SIZES | {16: 8}),
    "qwen3_5_moe": (2, {4: 2, 6: 3, 10: 2, 12: 4, 20: 4, 24: 6, 32: 16, 48: 18, 64: 32})}


def names(c):
    """Shapes by the hub's names."""
    kind, heads, kv = c["model_type"], c["num_attention_heads"], c["num_key_value_heads"]
    has_experts = "num_experts" in c
    yield "model.embed_tokens.weight", (VOCAB, WIDTH)
    yield "model.norm.weight", (WIDTH,)
    if kind != "gemma4_text":
        yield "lm_head.weight", (VOCAB, WIDTH)
    own = c.get("hidden_size_per_layer_input")
    if own:
        yield "model.embed_tokens_per_layer.weight", (VOCAB, own * c["num_hidden_layers"])
        yield "model.per_layer_model_projection.weight", (own * c["num_hidden_layers"], WIDTH)
        yield "model.per_layer_projection_norm.weight", (own,)
    for i in range(c["num_hidden_layers"]):
        at = f"model.layers.{i}."
        is_full = kind == "gemma4_text" and c["layer_types"][i] == "full_attention"
        d = c["global_head_dim"] if is_full else c.get("head_dim", WIDTH // heads)
        for name, shape in (("q_proj", (heads * d, WIDTH)), ("k_proj", (kv * d, WIDTH)), ("v_proj", (kv * d, WIDTH)),
                            ("o_proj", (WIDTH, heads * d))):
            if not (name == "v_proj" and is_full and c["attention_k_eq_v"]):
                yield f"{at}self_attn.{name}.weight", shape
        if kind != "llama4_text":
            yield at + "self_attn.q_norm.weight", (d,)
            yield at + "self_attn.k_norm.weight", (d,)
        if kind == "apertus":
            yield from ((f"{at}{n}.weight", (WIDTH,)) for n in ("attention_layernorm", "feedforward_layernorm"))
            yield at + "mlp.up_proj.weight", (FF, WIDTH)
            yield at + "mlp.down_proj.weight", (WIDTH, FF)
            yield from ((f"{at}mlp.act_fn.{n}", (1,)) for n in ("alpha_p", "alpha_n", "beta", "eps"))
            continue
        yield from ((f"{at}{n}.weight", (WIDTH,)) for n in ("input_layernorm", "post_attention_layernorm"))
        if kind == "llama4_text":
            n = c["num_local_experts"]
            yield at + "feed_forward.router.weight", (n, WIDTH)
            yield at + "feed_forward.experts.gate_up_proj", (n, WIDTH, 2 * FF)
            yield at + "feed_forward.experts.down_proj", (n, FF, WIDTH)
            for name, shape in (("gate_proj", (FF, WIDTH)), ("up_proj", (FF, WIDTH)), ("down_proj", (WIDTH, FF))):
                yield f"{at}feed_forward.shared_expert.{name}.weight", shape
            continue
        yield from ((f"{at}{n}.weight", (WIDTH,)) for n in ("pre_feedforward_layernorm", "post_feedforward_layernorm"))
        for name, shape in (("gate_proj", (FF, WIDTH)), ("up_proj", (FF, WIDTH)), ("down_proj", (WIDTH, FF))):
            yield f"{at}mlp.{name}.weight", shape
        yield at + "layer_scalar", (1,)
        if own:
            yield at + "per_layer_input_gate.weight", (own, WIDTH)
            yield at + "per_layer_projection.weight", (WIDTH, own)
            yield at + "post_per_layer_input_norm.weight", (WIDTH,)
        if has_experts:
            n = c["num_experts"]
            yield at + "router.proj.weight", (n, WIDTH)
            yield at + "router.scale", (WIDTH,)
            yield at + "router.per_expert_scale", (n,)
            yield at + "experts.gate_up_proj", (n, 2 * FF, WIDTH)
            yield at + "experts.down_proj", (n, WIDTH, FF)
            for name in ("pre_feedforward_layernorm_2", "post_feedforward_layernorm_1", "post_feedforward_layernorm_2"):
                yield f"{at}{name}.weight", (WIDTH,)


def cut(name):
    """A checkpoint's config and tensors, smaller: sizes in the config are those of axes."""
    layers, sizes = CUTS[name]
    c = json.loads((CHECKPOINTS / name / "config.json").read_text())
    kind = c["model_type"]
    c = {k: sizes.get(v, v) if type(v) is int else v for k, v in c.get("text_config", c).items()}
    c |= {k: v[:layers] for k, v in c.items() if k in ("layer_types", "layers_block_type", "mlp_layer_types")}
    c |= {"num_hidden_layers": layers, "full_attention_interval": 2}    # the latter is read of Qwen 3.5 alone
    c |= {"model_type": kind} if kind in gguf_more.More.arches else {}
    experts = c.get("num_experts", sizes[4]) if kind in gguf_more.More.arches else sizes[4]
    tensors = {}
    for key, t in gguf_modern.read(CHECKPOINTS / name).items():
        expert = re.search(r"\.experts\.(\d+)\.", key)
        no_name = "qwen3_5" in name and re.search(r"self_attn\.\w+\.bias$", key)      # in such files
        if not no_name and (not expert or int(expert[1]) < experts):
            part = tuple(slice(sizes.get(n, n)) for n in t.x.shape)
            tensors[key.replace("language_model.", "")] = t.map(lambda x: x[part])
    return c, tensors


def main(to):
    draw = np.random.default_rng(1)
    for name, c in CASES.items():
        tensors = {n: gguf_modern.Tensor(draw.standard_normal(shape).astype("<f4"), "F32") for n, shape in names(c)}
        f = gguf_modern.File(c, tensors)
        f.describe()
        write(to / name, f.values, f.out)
    for name in CUTS:
        c, tensors = cut(name)
        f = next(kind for kind in (gguf_more.More, gguf_hybrid.Hybrid, gguf_modern.File)
                 if c["model_type"] in kind.arches)(c, tensors)
        f.describe()
        write(to / f"ok-{name}".replace("_", "-"), f.values, f.out)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
