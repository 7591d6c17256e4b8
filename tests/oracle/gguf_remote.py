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
from gguf_files import BOOL, FLOAT, STRING, U32, permuted  # noqa: E402
from gguf_modern import File, Tensor, make  # noqa: E402

CHATGLM = {"self_attention.query_key_value": "attn_qkv", "self_attention.dense": "attn_output",
           "mlp.dense_h_to_4h": "ffn_up", "mlp.dense_4h_to_h": "ffn_down"}
QWEN = {"attn.c_attn": "attn_qkv", "mlp.w1": "ffn_up", "mlp.w2": "ffn_gate"}
LING = {"attention.query_key_value": "attn_qkv", "attention.dense": "attn_output",
        "attention.query_layernorm": "attn_q_norm", "attention.key_layernorm": "attn_k_norm"}


class Remote(File):
    arches = {"minicpm": ("minicpm", True, {}), "orion": ("orion", False, {}), "xverse": ("xverse", True, {}),
              "chatglm": ("chatglm", False, CHATGLM), "qwen": ("qwen", False, QWEN),
              "bailing_moe": ("bailingmoe", True, LING), "bailing_moe_v2": ("bailingmoe2", False, LING)}
    same = {"num_layers": "num_hidden_layers", "padded_vocab_size": "vocab_size", "seq_length": "max_position_embeddings",
            "ffn_hidden_size": "intermediate_size", "multi_query_group_num": "num_key_value_heads",
            "layernorm_epsilon": "rms_norm_eps", "num_shared_experts": "n_shared_experts"}

    def __init__(self, config, tensors):
        config = {self.same.get(key, key): value for key, value in config.items()}
        if "BailingMoeV2ForCausalLM" in config["architectures"]:
            config["model_type"] = "bailing_moe_v2"
        super().__init__(config, {re.sub(r"^transformer\.encoder\.", "model.", n): t for n, t in tensors.items()})

    @staticmethod
    def lacks_keys(config):
        """Factors for long texts alone, with original positions that converters do not write."""
        r = config.get("rope_scaling") or {}
        return r.get("original_max_position_embeddings", config.get("max_position_embeddings")) != config.get(
            "max_position_embeddings")

    def take(self, name, t):
        ends = {"transformer.embedding.word_embeddings.weight": "token_embd.weight",
                "transformer.output_layer.weight": "output.weight"}
        if name in ends:
            return self.add(ends[name], t)
        if name == "lm_head.weight" and self.c.get("norm_head"):
            t = t.map(lambda x: x / (np.sqrt((x * x).sum(0, keepdims=True)) + np.float32(1e-7)))
        return super().take(name, t)

    def layer(self, i, name, t):
        if self.kind == "bailing_moe" and name.startswith("attention.query_key_value."):
            end = name.rsplit(".", 1)[1]
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
        key("rope.scaling.type", STRING, kind)
        key("rope.scaling.factor", FLOAT, r.get("factor"))
        for which in ("short", "long") if kind == "longrope" else ():
            self.add(f"rope_factors_{which}.weight", Tensor(np.array(r[which + "_factor"], "<f4"), "F32"))

    def describe(self):
        super().describe()
        c = self.c
        if self.kind == "minicpm":
            self.key("embedding_scale", FLOAT, float(c["scale_emb"]))
            self.key("residual_scale", FLOAT, c["scale_depth"] / self.layers ** 0.5)
            self.key("logit_scale", FLOAT, self.width / c["dim_model_base"])
        if self.kind == "orion":
            self.put("attention.layer_norm_epsilon", FLOAT, c["rms_norm_eps"])
            self.put("attention.layer_norm_rms_epsilon", FLOAT, None)
        if self.kind == "qwen":
            self.put("attention.layer_norm_rms_epsilon", FLOAT, c["layer_norm_epsilon"])
            self.put("attention.layer_norm_epsilon", FLOAT, None)
            self.put("attention.head_count_kv", U32, None)
        if self.kind.startswith("bailing"):
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
