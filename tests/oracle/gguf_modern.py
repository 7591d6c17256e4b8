#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GGUF files of the newer families, from checkpoints as the hub has them.

    gguf_modern.py FOLDER... TO      each FOLDER becomes TO/modern/NAME with NAME.gguf and the folder's reference, and
                                     is named, unless no such file can say what it does

The files are as llama.cpp's converters write them: names, keys, rows of queries and keys, experts in stacks, norms that
multiply. What is written follows the hub's names and shapes alone; numbers stay as they are (F32, F16, BF16, and MXFP4
in its blocks), so that the results must be those of the checkpoint. Needs numpy."""
import json
import math
import pathlib
import re
import shutil
import statistics
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from gguf_files import ARRAY, BOOL, FLOAT, STRING, U32, permuted, rope_factors, write  # noqa: E402

TYPES = {"F32": (0, "<f4"), "F16": (1, "<f2"), "BF16": (30, "<u2"), "U8": (None, "u1")}
MXFP4 = 39


class Tensor:
    def __init__(self, x, kind):
        self.x, self.kind = x, kind

    def map(self, f):
        return Tensor(np.ascontiguousarray(f(self.x)), self.kind)

    def f32(self):
        x = (self.x.astype(np.uint32) << 16).view("<f4") if self.kind == "BF16" else self.x.astype("<f4")
        return Tensor(x, "F32")


def read(folder):
    tensors = {}
    for path in sorted(folder.glob("model*.safetensors")):
        data = path.read_bytes()
        n = int.from_bytes(data[:8], "little")
        for name, t in json.loads(data[8:8 + n]).items():
            if name != "__metadata__" and t["dtype"] in TYPES:
                a, b = t["data_offsets"]
                x = np.frombuffer(data[8 + n + a:8 + n + b], TYPES[t["dtype"]][1]).reshape(t["shape"])
                tensors[name] = Tensor(x, t["dtype"])
    return tensors


# ---- architectures: name, how the rows of q and k lie, names of tensors that differ ----

NAMES = {
    "embed_tokens.weight": "token_embd.weight", "norm.weight": "output_norm.weight", "norm.bias": "output_norm.bias",
    "lm_head.weight": "output.weight", "lm_head.bias": "output.bias", "final_layernorm.weight": "output_norm.weight",
    "final_layernorm.bias": "output_norm.bias", "word_embeddings.weight": "token_embd.weight",
    "ln_f.weight": "output_norm.weight", "ln_f.bias": "output_norm.bias", "wte.weight": "token_embd.weight",
    "wpe.weight": "position_embd.weight", "norm_f.weight": "output_norm.weight"}
LAYER = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "self_attn.dense": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "self_attn.query_layernorm": "attn_q_norm", "self_attn.key_layernorm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "mlp.gate_up_proj": "ffn_up",
    "mlp.fc1": "ffn_up", "mlp.fc2": "ffn_down", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
    "mlp.gate": "ffn_gate_inp", "mlp.router": "ffn_gate_inp", "mlp.router.gate": "ffn_gate_inp",
    "block_sparse_moe.gate": "ffn_gate_inp", "block_sparse_moe.router.layer": "ffn_gate_inp",
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp", "self_attn.gate_proj": "attn_gate",
    "self_attn.q_a_proj": "attn_q_a", "self_attn.q_a_layernorm": "attn_q_a_norm", "self_attn.q_b_proj": "attn_q_b",
    "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa", "self_attn.kv_a_layernorm": "attn_kv_a_norm",
    "self_attention.dense": "attn_output", "mlp.dense_h_to_4h": "ffn_up", "mlp.dense_4h_to_h": "ffn_down",
    "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "ln_1": "attn_norm", "ln_2": "ffn_norm",
    "attn.Wqkv": "attn_qkv", "attn.out_proj": "attn_output", "norm_1": "attn_norm", "norm_2": "ffn_norm",
    "ffn.up_proj": "ffn_up", "ffn.down_proj": "ffn_down", "ln_attn": "attn_norm_2", "ln_mlp": "attn_norm",
    "post_feedforward_layernorm": "post_ffw_norm", "pre_mlp_layernorm": "ffn_norm",
    "post_mlp_layernorm": "post_ffw_norm", "post_self_attn_layernorm": "post_attention_norm"}
SHARED = {"gate_proj": "ffn_gate_shexp", "up_proj": "ffn_up_shexp", "down_proj": "ffn_down_shexp"}
AFTER = {"post_attention_layernorm": "post_attention_norm"}
ARCHES = {
    "llama": ("llama", True, {}), "mixtral": ("llama", True, {}), "qwen2_moe": ("qwen2moe", False, {}),
    "qwen3_moe": ("qwen3moe", False, {}), "olmoe": ("olmoe", False, {}), "phimoe": ("phimoe", False, {}),
    "gpt_oss": ("gpt-oss", False, AFTER), "glm4_moe": ("glm4moe", False, AFTER), "dots1": ("dots1", False, {}),
    "minimax_m2": ("minimax-m2", False, {}), "afmoe": ("afmoe", False, AFTER),
    "ernie4_5_moe": ("ernie4_5-moe", False, {}), "deepseek_v2": ("deepseek2", False, {}),
    "deepseek_v3": ("deepseek2", False, {}), "youtu": ("deepseek2", False, {}), "granitemoe": ("granitemoe", True, {}),
    "granite": ("granite", True, {}), "cohere": ("command-r", False, {}), "cohere2": ("cohere2", False, {}),
    "olmo": ("olmo", True, {}), "olmo2": ("olmo2", False, AFTER), "olmo3": ("olmo2", False, AFTER),
    "arcee": ("arcee", True, {}), "hunyuan_v1_dense": ("hunyuan-dense", False, {}), "ernie4_5": ("ernie4_5", False, {}),
    "gemma": ("gemma", False, {}), "exaone4": ("exaone4", False, AFTER), "smollm3": ("smollm3", True, {}),
    "seed_oss": ("seed_oss", False, AFTER), "glm4": ("glm4", False, {}), "glm": ("chatglm", False, {}),
    "stablelm": ("stablelm", False, {}),
    "phi": ("phi2", False, {}), "starcoder2": ("starcoder2", False, {}), "gpt_bigcode": ("starcoder", False, {}),
    "qwen3_next": ("qwen3next", False, AFTER), "gemma3n_text": ("gemma3n", False, AFTER),
    "nemotron": ("nemotron", False, {}), "falcon": ("falcon", False, {}), "mpt": ("mpt", False, {}),
    "ministral3": ("mistral3", True, {}), "qwen3_5_text": ("qwen35", False, AFTER),
    "qwen3_5_moe_text": ("qwen35moe", False, AFTER), "gemma4_text": ("gemma4", False, AFTER),
    "llama4_text": ("llama4", False, {}), "apertus": ("apertus", False, {})}
PLUS_ONE = ("gemma", "nemotron", "qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "step3p7")
GEMMA = {"pre_feedforward_layernorm": "ffn_norm", "altup.router_norm": "altup_router_norm",
         "altup.modality_router": "altup_router", "altup.prediction_coefs": "altup_predict_coef",
         "altup.correction_coefs": "altup_correct_coef", "laurel.linear_left": "laurel_l",
         "laurel.linear_right": "laurel_r", "laurel.post_laurel_norm": "laurel_post_norm",
         "per_layer_input_gate": "inp_gate", "per_layer_projection": "proj", "post_per_layer_input_norm": "post_norm",
         "layer_scalar": "layer_output_scale", "router.proj": "ffn_gate_inp",
         "pre_feedforward_layernorm_2": "pre_ffw_norm_2", "post_feedforward_layernorm_1": "post_ffw_norm_1",
         "post_feedforward_layernorm_2": "post_ffw_norm_2", "experts.gate_up_proj": "ffn_gate_up_exps",
         "experts.down_proj": "ffn_down_exps", "attention_layernorm": "attn_norm", "feedforward_layernorm": "ffn_norm",
         "feed_forward.gate_proj": "ffn_gate", "feed_forward.up_proj": "ffn_up", "feed_forward.down_proj": "ffn_down",
         "feed_forward.router": "ffn_gate_inp", "linear_attn.in_proj_ba": "ssm_ba", "linear_attn.norm": "ssm_norm", "linear_attn.out_proj": "ssm_out"}
GEMMA_ENDS = {"embed_tokens_per_layer.weight": "per_layer_token_embd.weight",
              "per_layer_model_projection.weight": "per_layer_model_proj.weight",
              "per_layer_projection_norm.weight": "per_layer_proj_norm.weight"}


class File:
    arches = ARCHES

    def __init__(self, config, tensors):
        self.c, self.kind = config, config["model_type"]
        self.arch, self.pairs, self.own = self.arches[self.kind]
        self.heads = self.get("num_attention_heads", "n_head", "n_heads")
        self.kv = self.get("num_key_value_heads") or self.heads
        self.layers = self.get("num_hidden_layers", "n_layer", "n_layers")
        self.more = config.get("num_nextn_predict_layers", 0) if self.kind == "glm4_moe" else 0
        self.width = self.get("hidden_size", "n_embd", "d_model")
        self.d = self.get("head_dim") or self.width // self.heads
        self.out, self.stacks, self.xielu, self.values = [], {}, {}, [("general.architecture", STRING, self.arch),
                                                      ("general.file_type", U32, 0)]
        if self.kind == "falcon":
            self.kv = config.get("num_kv_heads", self.heads) if config["new_decoder_architecture"] else 1
        for name, t in tensors.items():
            self.take(name, t)
        for name, parts in self.stacks.items():
            kinds = {p.kind for p in parts.values()}
            self.add(name, Tensor(np.stack([parts[i].x for i in sorted(parts)]), kinds.pop()))

    @staticmethod
    def lacks_keys(config):
        """Is there no way to say in such a file what this checkpoint does?"""
        return False

    def get(self, *names):
        return next((self.c[n] for n in names if self.c.get(n) is not None), None)

    # ---- tensors ----

    def add(self, name, t):
        vector = t.x.ndim == 1 or "norm" in name or "conv1d" in name
        t = t.f32() if vector and t.kind in ("F16", "BF16") else t
        number = TYPES[t.kind][0] if t.kind != "MXFP4" else MXFP4
        shape = t.x.shape if t.kind != "MXFP4" else t.x.shape[:-1] + (t.x.shape[-1] // 17 * 32,)
        self.out.append((name, shape, number, np.ascontiguousarray(t.x).tobytes()))

    def take(self, name, t):
        if re.search(r"masked_bias|rotary_emb|\.attn\.bias$|vision|audio|multi_modal", name):
            return
        m = re.match(r"(?:model\.|transformer\.)?(?:layers|h|blocks)\.(\d+)\.(.*)", name)
        if m:
            if int(m[1]) < self.layers + self.more:
                self.layer(int(m[1]), m[2], t)
            return
        short = re.sub(r"^(model|transformer)\.", "", name)
        if short == "lm_head.weight" and self.get("tie_word_embeddings") is not False and \
                self.kind in ("cohere", "cohere2", "gemma", "falcon", "mpt", "starcoder2", "gpt_bigcode", "ernie4_5"):
            return
        m = re.match(r"altup_(unembed_)?projections\.(\d)\.weight$", short)
        if m:
            self.stacks.setdefault(f"altup_{'unembd_' if m[1] else ''}proj.weight", {})[int(m[2])] = t
            return
        if self.kind in PLUS_ONE and short == "norm.weight":
            t = Tensor(t.f32().x + np.float32(1), "F32")
        self.add(GEMMA_ENDS.get(short) or NAMES[short], t)

    def stack(self, layer, what, number, t, end="weight"):
        self.stacks.setdefault(f"blk.{layer}.{what}.{end}", {})[number] = t

    def layer(self, i, name, t):
        blk = f"blk.{i}."
        c = self.c
        m = re.match(r"(?:mlp|block_sparse_moe)\.experts\.(\d+)\.(\w+)\.weight$", name)
        if m:
            part = {"gate_proj": "gate", "up_proj": "up", "down_proj": "down", "w1": "gate", "w3": "up", "w2": "down"}
            return self.stack(i, f"ffn_{part[m[2]]}_exps", int(m[1]), t)
        m = re.match(r"self_attn\.([qk])_layernorm\.norms\.(\d+)\.weight$", name)
        if m:
            return self.stack(i, f"attn_{m[1]}_norm", int(m[2]), t)
        m = re.match(r"mlp\.act_fn\.(alpha_p|alpha_n|beta|eps)$", name)
        if m:
            self.xielu.setdefault(m[1], []).append(float(t.f32().x.ravel()[0]))
            return None
        if name in ("router.scale", "router.per_expert_scale"):
            return self.add(blk + ("ffn_gate_inp.scale" if name == "router.scale" else "ffn_down_exps.scale"), t)
        if self.kind == "llama4_text" and name.startswith("feed_forward.experts."):
            t = t.map(lambda x: x.swapaxes(1, 2))
            half = t.x.shape[1] // 2
            if name.endswith("down_proj"):
                return self.add(blk + "ffn_down_exps.weight", t)
            self.add(blk + "ffn_gate_exps.weight", t.map(lambda x: x[:, :half]))
            return self.add(blk + "ffn_up_exps.weight", t.map(lambda x: x[:, half:]))
        if name == "layer_scalar" or name.startswith("experts."):       # Gemma 4's have no ".weight"
            name += ".weight"
        m = re.match(r"(?:mlp\.shared_experts?|feed_forward\.shared_expert)\.(\w+)\.weight$", name)
        if m:
            return self.add(f"{blk}{SHARED[m[1]]}.weight", t)
        if name.endswith(("e_score_correction_bias", "expert_bias")):
            return self.add(blk + "exp_probs_b.bias", t.map(np.ravel))
        if name == "self_attn.sinks":
            return self.add(blk + "attn_sinks.weight", t)
        if name in ("mlp.experts.gate_up_proj", "mlp.experts.down_proj") and self.kind == "qwen3_5_moe_text":
            half = t.x.shape[1] // 2
            if name.endswith("down_proj"):
                return self.add(blk + "ffn_down_exps.weight", t)
            self.add(blk + "ffn_gate_exps.weight", t.map(lambda x: x[:, :half]))
            return self.add(blk + "ffn_up_exps.weight", t.map(lambda x: x[:, half:]))
        if name.startswith("mlp.experts."):
            return self.oss(blk, name[12:], t)
        if name == "block_sparse_moe.input_linear.weight":
            half = t.x.shape[1] // 2
            self.add(blk + "ffn_gate_exps.weight", t.map(lambda x: x[:, :half]))
            return self.add(blk + "ffn_up_exps.weight", t.map(lambda x: x[:, half:]))
        if name == "block_sparse_moe.output_linear.weight":
            return self.add(blk + "ffn_down_exps.weight", t)
        if name == "self_attn.kv_b_proj.weight":
            nope, v = c["qk_nope_head_dim"], c["v_head_dim"]
            both = t.map(lambda x: x.reshape(self.heads, nope + v, -1))
            self.add(blk + "attn_k_b.weight", both.map(lambda x: x[:, :nope].swapaxes(1, 2)))
            return self.add(blk + "attn_v_b.weight", both.map(lambda x: x[:, nope:]))
        if name.startswith("self_attention.query_key_value."):
            per = self.heads // self.kv
            x = t.map(lambda x: x.reshape(self.kv, per + 2, self.d, *x.shape[1:]))
            parts = [x.x[:, :per], x.x[:, per:per + 1], x.x[:, per + 1:]]
            flat = np.concatenate([p.reshape(-1, *t.x.shape[1:]) for p in parts])
            return self.add(blk + "attn_qkv." + name.rsplit(".", 1)[1], Tensor(flat, t.kind))
        if re.match(r"eh_proj|enorm|hnorm|shared_head|embed_tokens", name):
            return self.add(f"{blk}nextn.{re.sub('shared_head.', 'shared_head_', name)}", t)
        if name.startswith("linear_attn.") and self.delta(blk, name[12:], t):
            return None
        if name == "altup.correct_output_scale":
            return self.add(blk + "altup_correct_scale.weight", t)
        stem, end = name.rsplit(".", 1)
        if self.kind.startswith("deepseek") or self.kind == "youtu":
            stem = stem.replace("self_attn.q_proj", "self_attn.q_b_proj") if c.get("q_lora_rank") else stem
        if self.pairs and stem in ("self_attn.q_proj", "self_attn.k_proj"):
            t = t.map(lambda x: permuted(x, self.heads if "q_proj" in stem else self.kv))
        if self.kind in PLUS_ONE and name.endswith("norm.weight") and not name.startswith("linear_attn."):
            t = Tensor(t.f32().x + np.float32(1), "F32")
        if name == "mlp.shared_expert_gate.weight":
            t = t.map(np.ravel)
        self.add(f"{blk}{self.own.get(stem, GEMMA.get(stem, LAYER.get(stem)))}.{end}", t)

    def in_turns(self, t, axis=0, first=0):
        """Value heads of Qwen 3.5 along an axis, from a place on: one of each key head, then the next of each."""
        n_k = self.c["linear_num_key_heads"]
        per = self.c["linear_num_value_heads"] // n_k

        def turn(x):
            x = np.moveaxis(x, axis, 0)
            heads = x[first:].reshape(n_k, per, -1, *x.shape[1:]).swapaxes(0, 1)
            return np.moveaxis(np.concatenate([x[:first], heads.reshape(x[first:].shape)]), 0, axis)
        return t.map(turn)

    def delta(self, blk, name, t):
        """The delta rule's: queries, keys and values of all heads in one tensor, z in another."""
        c = self.c
        if self.kind.startswith("qwen3_5") and name != "norm.weight":
            keys = 2 * c["linear_num_key_heads"] * c["linear_key_head_dim"]
            t = self.in_turns(t, int(name == "out_proj.weight"), keys if name in ("conv1d.weight", "in_proj_qkv.weight") else 0)
            own = {"in_proj_qkv": "attn_qkv", "in_proj_z": "attn_gate", "in_proj_b": "ssm_beta",
                   "in_proj_a": "ssm_alpha", "out_proj": "ssm_out"}.get(name.split(".")[0])
            if own:
                self.add(f"{blk}{own}.weight", t)
                return True
        if name == "in_proj_qkvz.weight":
            n_k, d_k = c["linear_num_key_heads"], c["linear_key_head_dim"]
            more = c["linear_num_value_heads"] // n_k * c["linear_value_head_dim"]
            parts = np.split(t.x.reshape(n_k, 2 * d_k + 2 * more, -1), np.cumsum([d_k, d_k, more]), 1)
            q, k, v, z = (np.ascontiguousarray(p).reshape(-1, t.x.shape[1]) for p in parts)
            self.add(blk + "attn_qkv.weight", Tensor(np.concatenate([q, k, v]), t.kind))
            self.add(blk + "attn_gate.weight", Tensor(z, t.kind))
        elif name == "conv1d.weight":
            self.add(blk + "ssm_conv1d.weight", t.map(lambda x: x[:, 0]))
        elif name == "A_log":
            self.add(blk + "ssm_a", Tensor(-np.exp(t.f32().x), "F32"))
        elif name == "dt_bias":
            self.add(blk + "ssm_dt.bias", t)
        else:
            return False
        return True

    def oss(self, blk, name, t):
        """Experts of gpt-oss: [in, out] with gate and up in turn, or MXFP4's blocks and scales of [out, in]."""
        if name.endswith("_scales"):
            stem, scales = name[:-7], t.x
            blocks = self.stacks.pop("blocks " + blk + stem)
            nibbles = np.stack([blocks & 15, blocks >> 4], -1).reshape(*blocks.shape[:-1], 32)
            packed = nibbles[..., :16] | nibbles[..., 16:] << 4         # low half first, as ggml's blocks have it
            whole = np.concatenate([scales[..., None], packed], -1).astype(np.uint8)
            whole = whole.reshape(*whole.shape[:2], -1)
            if stem == "down_proj":
                return self.add(blk + "ffn_down_exps.weight", Tensor(whole, "MXFP4"))
            self.add(blk + "ffn_gate_exps.weight", Tensor(whole[:, ::2], "MXFP4"))
            return self.add(blk + "ffn_up_exps.weight", Tensor(whole[:, 1::2], "MXFP4"))
        if name.endswith("_blocks"):
            self.stacks["blocks " + blk + name[:-7]] = t.x
            return None
        end = "bias" if name.endswith("_bias") else "weight"
        turned = t if end == "bias" else t.map(lambda x: x.swapaxes(1, 2))
        if name.startswith("down_proj"):
            return self.add(f"{blk}ffn_down_exps.{end}", turned)
        self.add(f"{blk}ffn_gate_exps.{end}", turned.map(lambda x: x[:, ::2]))
        return self.add(f"{blk}ffn_up_exps.{end}", turned.map(lambda x: x[:, 1::2]))

    # ---- keys ----

    def key(self, name, kind, value):
        if value is not None:
            self.values.append((f"{self.arch}.{name}", kind, value))

    def describe(self):
        c, key = self.c, self.key
        key("block_count", U32, self.layers + self.more)
        key("nextn_predict_layers", U32, self.more or None)
        key("context_length", U32, self.get("max_position_embeddings", "n_positions", "max_seq_len") or 2048)
        key("embedding_length", U32, self.width)
        key("attention.head_count", U32, self.heads)
        latent = c.get("kv_lora_rank")
        key("attention.head_count_kv", U32, 1 if latent else 1 if self.kind == "gpt_bigcode" else self.kv)
        wide = self.get("intermediate_size_mlp", "intermediate_size", "n_inner", "ffn_hidden_size")
        key("feed_forward_length", U32, wide or 4 * self.width)
        key("attention.layer_norm_rms_epsilon", FLOAT, c.get("rms_norm_eps"))
        key("attention.layer_norm_epsilon", FLOAT, self.get("layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps")
            or (1e-5 if self.kind in ("mpt", "olmo") else None))
        if latent:
            key("attention.kv_lora_rank", U32, latent)
            key("attention.q_lora_rank", U32, c.get("q_lora_rank"))
            key("attention.key_length", U32, latent + c["qk_rope_head_dim"])
            key("attention.value_length", U32, latent)
            key("attention.key_length_mla", U32, c["qk_nope_head_dim"] + c["qk_rope_head_dim"])
            key("attention.value_length_mla", U32, c["v_head_dim"])
        elif c.get("head_dim"):
            key("attention.key_length", U32, self.d)
            key("attention.value_length", U32, self.d)
        if self.kind == "gemma4_text":
            self.by_layer()
        else:
            self.rope()
        self.experts()
        for name, numbers in self.xielu.items():
            self.values.append(("xielu." + name, ARRAY, (FLOAT, numbers)))
        if self.kind == "llama4_text":      # the first three are always 8192, 0.1 and 8192 in llama.cpp
            key("attention.sliding_window", U32, c["attention_chunk_size"])
            key("attention.temperature_scale", FLOAT, c["attn_scale"])
            key("attention.temperature_length", U32, c["floor_scale"])
            key("interleave_moe_layer_step", U32, c["interleave_moe_layer_step"])
        if c.get("sliding_window") and self.kind not in ("qwen2_moe", "qwen3_moe"):
            key("attention.sliding_window", U32, c["sliding_window"])
            if c.get("layer_types") and self.kind in ("olmo3", "exaone4", "afmoe", "gemma3n_text"):
                local = [t == "sliding_attention" for t in c["layer_types"]]
                key("attention.sliding_window_pattern", ARRAY, (BOOL, local))
        if self.kind.startswith("granite"):
            for theirs, ours in (("attention.scale", "attention_multiplier"), ("embedding_scale", "embedding_multiplier"),
                                 ("residual_scale", "residual_multiplier"), ("logit_scale", "logits_scaling")):
                key(theirs, FLOAT, c.get(ours))
        elif self.kind.startswith("cohere"):
            key("logit_scale", FLOAT, c["logit_scale"])
        key("attention.clamp_kqv", FLOAT, c.get("attn_config", c).get("clip_qkv"))
        if self.kind == "mpt":
            key("attention.max_alibi_bias", FLOAT, 8.0)
        if self.kind == "gemma3n_text":
            for theirs, ours in (("altup.active_idx", "altup_active_idx"), ("altup.num_inputs", "altup_num_inputs"),
                                 ("embedding_length_per_layer_input", "hidden_size_per_layer_input"),
                                 ("attention.shared_kv_layers", "num_kv_shared_layers")):
                key(theirs, U32, c[ours])
            normal = statistics.NormalDist()
            key("activation_sparsity_scale", ARRAY, (FLOAT, [normal.inv_cdf(s) if s else -math.inf for s in
                                                             c["activation_sparsity_pattern"]]))
        if self.kind == "qwen3_next" or self.kind.startswith("qwen3_5"):
            values = c["linear_num_value_heads"]
            for theirs, n in (("conv_kernel", c["linear_conv_kernel_dim"]), ("state_size", c["linear_key_head_dim"]),
                              ("group_count", c["linear_num_key_heads"]), ("time_step_rank", values),
                              ("inner_size", values * c["linear_value_head_dim"])):
                key("ssm." + theirs, U32, n)
            key("full_attention_interval", U32, c.get("full_attention_interval"))
        if self.kind == "stablelm":
            key("use_parallel_residual", BOOL, c["use_parallel_residual"])

    def by_layer(self):
        """Gemma 4: layers with a window and others have heads and bases of their own. Keys that come twice replace."""
        c, key = self.c, self.key
        local = [t == "sliding_attention" for t in c["layer_types"]]
        both = c["rope_parameters"]
        own = {"attention.key_length": c["global_head_dim"], "attention.value_length": c["global_head_dim"],
               "attention.key_length_swa": self.d, "attention.value_length_swa": self.d,
               "rope.dimension_count": c["global_head_dim"], "rope.dimension_count_swa": self.d,
               "attention.shared_kv_layers": c["num_kv_shared_layers"],
               "embedding_length_per_layer_input": c["hidden_size_per_layer_input"]}
        lists = {}
        if c.get("use_double_wide_mlp"):
            late = self.layers - c["num_kv_shared_layers"]
            lists["feed_forward_length"] = [c["intermediate_size"] * (1 + (i >= late)) for i in range(self.layers)]
        if c.get("num_global_key_value_heads"):
            lists["attention.head_count_kv"] = [self.kv if x else c["num_global_key_value_heads"] for x in local]
        replaced = {f"{self.arch}.{name}" for name in [*own, *lists]}
        self.values = [v for v in self.values if v[0] not in replaced]
        for name, n in own.items():
            key(name, U32, n)
        for name, n in lists.items():
            key(name, ARRAY, (U32, n))
        key("attention.sliding_window_pattern", ARRAY, (BOOL, local))
        key("rope.freq_base", FLOAT, both["full_attention"]["rope_theta"])
        key("rope.freq_base_swa", FLOAT, both["sliding_attention"]["rope_theta"])
        key("final_logit_softcapping", FLOAT, c.get("final_logit_softcapping"))
        pairs = c["global_head_dim"] // 2
        turn = int(c["global_head_dim"] * both["full_attention"]["partial_rotary_factor"] / 2)
        self.add("rope_freqs.weight", Tensor(np.array([1.0] * turn + [1e30] * (pairs - turn), "<f4"), "F32"))

    def rope(self):
        c, key = self.c, self.key
        if self.kind in ("gpt_bigcode", "mpt"):
            return
        r = c.get("rope_parameters") or dict(c.get("rope_scaling") or {}, rope_theta=c.get("rope_theta", 10000.0))
        kind, base = r.get("rope_type", r.get("type")), r.get("rope_theta")
        share = self.get("partial_rotary_factor") or r.get("partial_rotary_factor")
        turning = int(self.d * share) if share else self.d
        turning = c.get("qk_rope_head_dim") or c.get("rotary_dim") or turning
        if self.kind in ("glm", "glm4"):
            turning = self.d // 2
        if self.kind == "hunyuan_v1_dense" and r.get("alpha"):
            base, kind = base * r["alpha"] ** (self.d / (self.d - 2)), None
        if self.kind == "hunyuan_vl":
            key("rope.scaling.alpha", FLOAT, r["alpha"])
        key("rope.freq_base", FLOAT, base)
        key("rope.dimension_count", U32, turning)
        if r.get("mrope_section"):
            key("rope.dimension_sections", ARRAY, (U32, (r["mrope_section"] + [0])[:4]))
        if kind in ("yarn", "linear"):
            key("rope.scaling.type", STRING, kind)
            key("rope.scaling.factor", FLOAT, r["factor"])
        if kind == "yarn":
            key("rope.scaling.original_context_length", U32, r["original_max_position_embeddings"])
            key("rope.scaling.yarn_beta_fast", FLOAT, r.get("beta_fast"))
            key("rope.scaling.yarn_beta_slow", FLOAT, r.get("beta_slow"))
            if self.kind == "ministral3":
                key("rope.scaling.yarn_log_multiplier", FLOAT, r["mscale_all_dim"])
                key("attention.temperature_scale", FLOAT, r["llama_4_scaling_beta"])
            if self.c.get("kv_lora_rank"):
                key("rope.scaling.yarn_log_multiplier", FLOAT, 0.1 * r.get("mscale_all_dim", 0))
        if kind == "llama3":
            self.add("rope_freqs.weight", Tensor(rope_factors(dict(r, rope_theta=base), self.d), "F32"))

    def experts(self):
        c, key = self.c, self.key
        n = self.get("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
        if not n:
            if c.get("kv_lora_rank"):
                key("leading_dense_block_count", U32, self.layers)
                key("expert_feed_forward_length", U32, c["intermediate_size"])
                key("expert_shared_count", U32, 0)
            return
        key("expert_count", U32, n)
        key("expert_used_count", U32, self.get("num_experts_per_tok", "moe_k", "top_k_experts"))
        own = c.get("moe_intermediate_size")
        if own or self.kind in ("gpt_oss", "minimax_m2", "llama4_text"):
            key("expert_feed_forward_length", U32, own or c["intermediate_size"])
        key("expert_shared_feed_forward_length", U32, c.get("shared_expert_intermediate_size"))
        key("expert_shared_count", U32, self.get("n_shared_experts", "num_shared_experts", "moe_num_shared_experts"))
        key("leading_dense_block_count", U32, self.get("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index"))
        key("interleave_moe_layer_step", U32, c.get("moe_layer_interval"))
        key("expert_weights_scale", FLOAT, self.get("routed_scaling_factor", "route_scale"))
        key("expert_weights_norm", BOOL, c.get("norm_topk_prob", c.get("route_norm"))
            if self.kind not in ("qwen2_moe", "qwen3_moe", "qwen3_next", "olmoe") else None)
        key("expert_group_count", U32, c.get("n_group"))
        key("expert_group_used_count", U32, c.get("topk_group"))
        if self.kind in ("glm4_moe", "dots1", "minimax_m2", "afmoe") or c.get("scoring_func") == "sigmoid":
            key("expert_gating_func", U32, 2)


def make(folder, to, file=File, prefix=""):
    config = json.loads((folder / "config.json").read_text())
    kind = config["model_type"]
    no_key = config.get("alibi") or config.get("attn_config", {}).get("softmax_scale") or config.get("mlp_only_layers") or config.get("mamba_proj_bias") or config.get("conv_bias") or \
        (kind == "llama4_text" and not config["use_qk_norm"])       # said by 128 experts alone
    if kind not in file.arches or no_key or file.lacks_keys(config) or ("quantization_config" in config and kind != "gpt_oss"):
        return
    name = prefix + folder.name
    print(name)
    f = file(config, read(folder))
    f.describe()
    place = to / "modern" / name
    place.mkdir(parents=True, exist_ok=True)
    for old in place.iterdir():
        old.unlink()
    write(place / (name + ".gguf"), f.values, f.out)
    for one in ("ref.json", "ref.safetensors"):
        shutil.copy(folder / one, place / one)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for place in sys.argv[1:-1]:
        make(pathlib.Path(place), pathlib.Path(sys.argv[-1]))
