#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GGUF files of the checkpoints that families_remote.py makes, whose code comes with their files.

    gguf_remote.py FOLDER... TO      as gguf_modern.py; the names of what it makes begin with gguf_

Needs numpy."""
import pathlib
import re
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from gguf_files import ARRAY, BOOL, FLOAT, STRING, U32, permuted, rope_factors  # noqa: E402
from gguf_modern import File, Tensor, make  # noqa: E402

CHATGLM = {"self_attention.query_key_value": "attn_qkv", "self_attention.dense": "attn_output",
           "mlp.dense_h_to_4h": "ffn_up", "mlp.dense_4h_to_h": "ffn_down"}
QWEN = {"attn.c_attn": "attn_qkv", "mlp.w1": "ffn_up", "mlp.w2": "ffn_gate"}
LING = {"attention.query_key_value": "attn_qkv", "attention.dense": "attn_output",
        "attention.query_layernorm": "attn_q_norm", "attention.key_layernorm": "attn_k_norm"}

DBRX = {"norm_attn_norm.norm_1": "attn_norm", "norm_attn_norm.norm_2": "attn_output_norm",
        "norm_attn_norm.attn.Wqkv": "attn_qkv", "norm_attn_norm.attn.out_proj": "attn_output",
        "ffn.router.layer": "ffn_gate_inp"}
INTERNLM2 = {"attention_norm": "attn_norm", "ffn_norm": "ffn_norm", "attention.wo": "attn_output",
             "feed_forward.w1": "ffn_gate", "feed_forward.w3": "ffn_up", "feed_forward.w2": "ffn_down"}
ARCTIC = {"residual_layernorm": "ffn_norm", "post_attention_layernorm": "ffn_norm_exps", "residual_mlp.w1": "ffn_gate",
          "residual_mlp.w3": "ffn_up", "residual_mlp.w2": "ffn_down"}
OPENELM = {"attn.qkv_proj": "attn_qkv", "attn.out_proj": "attn_output", "attn.q_norm": "attn_q_norm",
           "attn.k_norm": "attn_k_norm", "attn_norm": "attn_norm", "ffn_norm": "ffn_norm", "ffn.proj_2": "ffn_down"}
DECI = {"self_attn.linear_attn": "attn_output"}
APART = {"bailing_moe": "attention.query_key_value.", "baichuan": "self_attn.W_pack.",      # what converters divide
         "internlm2": "attention.wqkv."}


class Remote(File):
    arches = {"minicpm": ("minicpm", True, {}), "orion": ("orion", False, {}), "xverse": ("xverse", True, {}),
              "chatglm": ("chatglm", False, CHATGLM), "qwen": ("qwen", False, QWEN),
              "bailing_moe": ("bailingmoe", True, LING), "bailing_moe_v2": ("bailingmoe2", False, LING),
              "baichuan": ("baichuan", True, {}), "plm": ("plm", False, {}), "dbrx": ("dbrx", False, DBRX),
              "minicpm3": ("minicpm3", False, {}), "deepseek": ("deepseek", True, {}),
              "internlm2": ("internlm2", True, INTERNLM2), "arctic": ("arctic", True, ARCTIC),
              "openelm": ("openelm", False, OPENELM), "deci": ("deci", True, DECI),
              "nemotron-nas": ("deci", True, DECI),
              "smallthinker": ("smallthinker", False, {"block_sparse_moe.primary_router": "ffn_gate_inp"})}
    same = {"num_layers": "num_hidden_layers", "padded_vocab_size": "vocab_size",
            "seq_length": "max_position_embeddings", "ffn_hidden_size": "intermediate_size",
            "multi_query_group_num": "num_key_value_heads", "layernorm_epsilon": "rms_norm_eps",
            "num_shared_experts": "n_shared_experts", "model_max_length": "max_position_embeddings",
            "model_dim": "hidden_size", "num_transformer_layers": "num_hidden_layers",
            "max_context_length": "max_position_embeddings", "rope_freq_constant": "rope_theta"}

    def __init__(self, config, tensors):
        config = {self.same.get(key, key): value for key, value in config.items()}
        if "BailingMoeV2ForCausalLM" in config["architectures"]:
            config["model_type"] = "bailing_moe_v2"
        if config["model_type"] == "dbrx":
            a, f = config["attn_config"], config["ffn_config"]
            config |= {"num_key_value_heads": a["kv_n_heads"], "rope_theta": a["rope_theta"], "clip_qkv": a["clip_qkv"],
                       "intermediate_size": f["ffn_hidden_size"], "num_experts": f["moe_num_experts"],
                       "num_experts_per_tok": f["moe_top_k"], "layer_norm_epsilon": 1e-5}
        if config["model_type"] == "openelm":
            config |= {"rms_norm_eps": 1e-6, "num_attention_heads": max(config["num_query_heads"])}
        groups = [one["attention"]["n_heads_in_group"] for one in config.get("block_configs", ())]
        self.by_layer = config.get("num_key_value_heads_per_layer") or [
            config["num_attention_heads"] // n if n else 0 for n in groups]
        super().__init__(config, {re.sub(r"^transformer\.encoder\.", "model.", n): t for n, t in tensors.items()})

    @staticmethod
    def lacks_keys(config):
        """Factors for long texts alone, with original positions that converters do not write; layers of Baichuan."""
        if config["model_type"] == "minicpm3":
            return (config["scale_emb"], config["scale_depth"], config["dim_model_base"]) != (12, 1.4, 256)
        if config["model_type"] == "openelm":       # whose norms of queries and keys and tied head go without saying
            return not (config.get("normalize_qk_projections") and config.get("share_input_output_layers"))
        if "block_configs" in config:
            return any(one["ffn"]["replace_with_linear"] for one in config["block_configs"])
        if config["model_type"] == "deci":
            return False
        if config["model_type"] == "baichuan":      # 32 say that the model rotates, 40 that it has ALiBi
            return config["num_hidden_layers"] != (32 if "max_position_embeddings" in config else 40)
        r = config.get("rope_scaling") or {}
        return r.get("original_max_position_embeddings", config.get("max_position_embeddings")) != config.get(
            "max_position_embeddings")

    def take(self, name, t):
        ends = {"transformer.token_embeddings.weight": "token_embd.weight",
                "model.tok_embeddings.weight": "token_embd.weight", "output.weight": "output.weight",
                "transformer.embedding.word_embeddings.weight": "token_embd.weight",
                "transformer.output_layer.weight": "output.weight"}
        if name in ends:
            return self.add(ends[name], t)
        if name == "lm_head.weight" and self.c.get("norm_head"):
            t = t.map(lambda x: x / (np.sqrt((x * x).sum(0, keepdims=True)) + np.float32(1e-7)))
        return super().take(name, t)

    def layer(self, i, name, t):
        if self.by_layer:
            self.kv = self.by_layer[i]
        if name == "ffn.proj_1.weight":
            half = t.x.shape[0] // 2
            self.add(f"blk.{i}.ffn_gate.weight", t.map(lambda x: x[:half]))
            return self.add(f"blk.{i}.ffn_up.weight", t.map(lambda x: x[half:]))
        m = re.match(r"block_sparse_moe\.experts\.(\d+)\.(gate|up|down)\.weight$", name)
        if m:
            return self.stack(i, f"ffn_{m[2]}_exps", int(m[1]), t)
        if self.kind in ("plm", "minicpm3") and name == "self_attn.kv_b_proj.weight":
            return self.add(f"blk.{i}.attn_kv_b.weight", t)
        if name.startswith("ffn.experts.mlp."):
            n = self.c["num_experts"]
            part = {"w1": "gate", "v1": "up", "w2": "down"}[name.rsplit(".", 1)[1]]
            x = t.x.reshape(n, -1, t.x.shape[1])
            x = np.ascontiguousarray(x.swapaxes(1, 2)) if part == "down" else x
            return self.add(f"blk.{i}.ffn_{part}_exps.weight", Tensor(x, t.kind))
        if name.startswith(APART.get(self.kind, "-")):
            end = name.rsplit(".", 1)[1]
            if self.kind == "internlm2":        # KV head by KV head
                x = t.x.reshape(self.kv, -1, self.d, *t.x.shape[1:])
                q, k, v = (p.reshape(-1, *t.x.shape[1:]) for p in (x[:, :-2], x[:, -2], x[:, -1]))
            else:
                q, k, v = np.split(t.x, np.cumsum([self.heads * self.d, self.kv * self.d]))
            self.add(f"blk.{i}.attn_q.{end}", Tensor(permuted(q, self.heads), t.kind))
            self.add(f"blk.{i}.attn_k.{end}", Tensor(permuted(k, self.kv), t.kind))
            return self.add(f"blk.{i}.attn_v.{end}", Tensor(np.ascontiguousarray(v), t.kind))
        stem, end = name.rsplit(".", 1)
        return self.add(f"blk.{i}.{self.own[stem]}.{end}", t) if stem in self.own else super().layer(i, name, t)

    def put(self, name, kind, value):
        self.values = [v for v in self.values if v[0] != f"{self.arch}.{name}"]
        self.key(name, kind, value)

    def rope(self):
        """Base, turning elements and linear scaling; factors of longrope as tensors."""
        c, key = self.c, self.key
        r = c.get("rope_scaling") or {}
        share = c.get("partial_rotary_factor", c.get("rotary_pct", 0.5 if self.kind == "chatglm" else 1.0))
        base = c.get("rope_theta", c.get("rotary_emb_base", 10000.0 * c.get("rope_ratio", 1.0)))
        key("rope.freq_base", FLOAT, float(base))
        key("rope.dimension_count", U32, int(self.d * (share if self.kind != "bailing_moe" else 1)))
        kind = r.get("rope_type", r.get("type"))
        if kind == "llama3":
            return self.add("rope_freqs.weight", Tensor(rope_factors(dict(r, rope_theta=base), self.d), "F32"))
        if kind == "dynamic":                           # which converters do not write
            return None
        key("rope.scaling.type", STRING, kind)
        key("rope.scaling.factor", FLOAT, r.get("factor"))
        for which in ("short", "long") if kind == "longrope" else ():
            self.add(f"rope_factors_{which}.weight", Tensor(np.array(r[which + "_factor"], "<f4"), "F32"))
        return None

    def each(self):
        """Heads, KV heads and widths of layers; heads without KV heads: one matrix in place of attention."""
        c, shapes = self.c, {name: shape for name, shape, *_ in self.out}
        if self.kind == "deci":
            return self.put("attention.head_count_kv", ARRAY, (U32, self.by_layer))
        heads, kv = c.get("num_query_heads"), c.get("num_kv_heads") or self.by_layer
        heads = heads or [self.heads * (f"blk.{i}.attn_output.weight" in shapes) for i in range(self.layers)]
        widths = [shapes.get(f"blk.{i}.ffn_gate.weight", (0,))[0] for i in range(self.layers)]
        for name, numbers in (("attention.head_count", heads), ("attention.head_count_kv", kv),
                              ("feed_forward_length", widths)):
            self.put(name, ARRAY, (U32, numbers))
        self.put("attention.key_length", U32, self.d)
        return self.put("attention.value_length", U32, self.d)

    def describe(self):
        super().describe()
        c = self.c
        if self.kind in ("openelm", "deci", "nemotron-nas"):
            self.each()
        if self.kind == "minicpm":
            self.key("embedding_scale", FLOAT, float(c["scale_emb"]))
            self.key("residual_scale", FLOAT, c["scale_depth"] / self.layers ** 0.5)
            self.key("logit_scale", FLOAT, self.width / c["dim_model_base"])
        if self.kind == "orion":
            self.put("attention.layer_norm_epsilon", FLOAT, c["rms_norm_eps"])
            self.put("attention.layer_norm_rms_epsilon", FLOAT, None)
        if self.kind == "smallthinker":
            self.put("expert_count", U32, c["moe_num_primary_experts"])
            self.put("expert_used_count", U32, c["moe_num_active_primary_experts"])
            self.put("expert_feed_forward_length", U32, c["moe_ffn_hidden_size"])
            self.put("feed_forward_length", U32, c["moe_ffn_hidden_size"])
            self.put("expert_gating_func", U32, 1 if c["moe_primary_router_apply_softmax"] else 2)
            window = c["sliding_window_size"] if any(c["sliding_window_layout"]) else None
            self.put("attention.sliding_window", U32, window)
        if self.kind in ("plm", "minicpm3"):
            self.put("attention.head_count_kv", U32, self.heads)
            self.put("attention.key_length", U32, c["qk_nope_head_dim"] + c["qk_rope_head_dim"])
            self.put("attention.value_length", U32, c["v_head_dim"] if self.kind == "plm" else None)
            self.put("rope.dimension_count", U32, c["qk_rope_head_dim"])
            for name in ("attention.key_length_mla", "attention.value_length_mla", "leading_dense_block_count",
                         "expert_feed_forward_length", "expert_shared_count"):
                self.put(name, U32, None)
        if self.kind == "deepseek":
            self.put("expert_weights_scale", FLOAT, 1.0)
            self.put("expert_weights_norm", BOOL, None)
        if self.kind == "qwen":
            self.put("attention.layer_norm_rms_epsilon", FLOAT, c["layer_norm_epsilon"])
            self.put("attention.layer_norm_epsilon", FLOAT, None)
            self.put("attention.head_count_kv", U32, None)
        if self.kind.startswith("bailing"):
            self.put("attention.sliding_window", U32, None)     # which is not in use
            self.put("expert_shared_count", U32, c["n_shared_experts"])
            self.put("expert_weights_norm", BOOL, c["norm_topk_prob"])
            self.put("expert_weights_scale", FLOAT, c.get("routed_scaling_factor", 1.0))
        if self.kind == "bailing_moe_v2":
            self.put("expert_gating_func", U32, 2)
            self.put("expert_shared_feed_forward_length", U32, c["n_shared_experts"] * c["moe_intermediate_size"])


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for place in map(pathlib.Path, sys.argv[1:-1]):
        make(place, pathlib.Path(sys.argv[-1]), Remote, "gguf_")
