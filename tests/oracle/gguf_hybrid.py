#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GGUF files of models with layers that carry a state in place of attention, and of their contemporaries.

    gguf_hybrid.py FOLDER... TO      as gguf_modern.py, whose names, keys and conventions these files share; the names of
                                     what it makes begin with gguf_

llama.cpp calls a layer recurrent where attention.head_count_kv is 0. Needs numpy."""
import json
import pathlib
import re
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from gguf_files import ARRAY, BOOL, FLOAT, STRING, U32  # noqa: E402
from gguf_modern import SHARED, File, Tensor, make  # noqa: E402

ATTENTION = {f"{part}_proj": f"attn_{part}" for part in "qkv"} | {"o_proj": "attn_output", "out_proj": "attn_output"}
LFM2 = {"operator_norm": "attn_norm", "ffn_norm": "ffn_norm", "self_attn.out_proj": "attn_output",
        "self_attn.q_layernorm": "attn_q_norm", "self_attn.k_layernorm": "attn_k_norm", "feed_forward.w1": "ffn_gate",
        "feed_forward.w3": "ffn_up", "feed_forward.w2": "ffn_down", "feed_forward.gate": "ffn_gate_inp",
        "conv.in_proj": "shortconv.in_proj", "conv.out_proj": "shortconv.out_proj"}
NEMOTRON = {f"mixer.{name}": own for name, own in ATTENTION.items() if name != "out_proj"} | {
    "norm": "attn_norm", "mixer.up_proj": "ffn_up", "mixer.down_proj": "ffn_down", "mixer.gate": "ffn_gate_inp",
    "mixer.fc1_latent_proj": "ffn_latent_down", "mixer.fc2_latent_proj": "ffn_latent_up",
    "mixer.shared_experts.up_proj": "ffn_up_shexp", "mixer.shared_experts.down_proj": "ffn_down_shexp"}
EXAONE = {f"attn.attention.{name}": own for name, own in ATTENTION.items()} | {
    "mlp.c_fc_0": "ffn_gate", "mlp.c_fc_1": "ffn_up"}
SARVAM = {"attention.query_key_value": "attn_qkv", "attention.dense": "attn_output",
          "attention.query_layernorm": "attn_q_norm", "attention.key_layernorm": "attn_k_norm"}
INDEX = {f"self_attn.indexer.{name}": f"indexer.{own}" for name, own in {
    "wq_b": "attn_q_b", "wk": "attn_k", "k_norm": "k_norm", "weights_proj": "proj"}.items()}
SWASH = {"block_sparse_moe.experts.gate_up_proj": "ffn_gate_up_exps", "block_sparse_moe.router.weight": "ffn_gate_inp",
         "block_sparse_moe.experts.down_proj": "ffn_down_exps", "shared_mlp.input_linear.weight": "ffn_up_shexp",
         "shared_mlp.output_linear.weight": "ffn_down_shexp"}
ARCHES = {"granitemoehybrid": ("granitehybrid", True, {}), "jamba": ("jamba", False, {"pre_ff_layernorm": "ffn_norm"}),
          "lfm2": ("lfm2", False, LFM2), "lfm2_moe": ("lfm2moe", False, LFM2),
          "nemotron_h": ("nemotron_h", False, NEMOTRON), "granitemoeshared": ("granitemoe", True, {}),
          "hunyuan_v1_moe": ("hunyuan-moe", False, {"mlp.gate.wg": "ffn_gate_inp"}),
          "glm4_moe_lite": ("deepseek2", False, {}), "exaone_moe": ("exaone-moe", False, {}), "exaone": ("exaone", False, EXAONE),
          "falcon_h1": ("falcon-h1", False, {"pre_ff_layernorm": "ffn_norm"}),
          "internlm3": ("llama", True, {}), "iquestcoder": ("llama", True, {}), "jais2": ("jais2", False, {}),
          "sarvam_moe": ("bailingmoe2", False, SARVAM), "sarvam_mla": ("deepseek2", False, {}),
          "mellum": ("mellum", False, {}), "hy_v3": ("hy_v3", False, {}),
          "granite_swa": ("granite_swa", True, {}), "granitemoe_swa": ("granite_swa", True, {}),
          "cohere2_moe": ("cohere2moe", False, {}), "deepseek_v32": ("deepseek32", False, INDEX),
          "glm_moe_dsa": ("glm-dsa", False, INDEX)}
STATE = {"in_proj": "ssm_in", "out_proj": "ssm_out", "x_proj": "ssm_x", "dt_proj": "ssm_dt",
         "dt_layernorm": "ssm_dt_norm", "b_layernorm": "ssm_b_norm", "c_layernorm": "ssm_c_norm"}
PARTS = {"gate_proj": "gate", "up_proj": "up", "down_proj": "down", "w1": "gate", "w3": "up", "w2": "down"}


class Hybrid(File):
    arches = ARCHES

    def __init__(self, config, tensors):
        kinds = config.get("layers_block_type") or config.get("layer_types")
        super().__init__(dict({"num_hidden_layers": len(kinds or ())}, **config), tensors)

    def multiplied(self, name, t):
        """Falcon-H1: weights times the multipliers of what they read and give."""
        c = self.c
        own = {"q_proj": 1, "k_proj": c["key_multiplier"], "v_proj": 1}
        by = {f"self_attn.{part}": n * c["attention_in_multiplier"] for part, n in own.items()} | {
            "self_attn.o_proj": c["attention_out_multiplier"], "mamba.out_proj": c["ssm_out_multiplier"],
            "feed_forward.gate_proj": c["mlp_multipliers"][0], "feed_forward.down_proj": c["mlp_multipliers"][1],
            "lm_head": c["lm_head_multiplier"], "embed_tokens": c["embedding_multiplier"]}
        stem = re.sub(r"^model\.(layers\.\d+\.)?", "", name).rsplit(".", 1)[0]
        if stem == "mamba.in_proj":
            inner = c["mamba_n_heads"] * c["mamba_d_head"]
            widths = [inner, inner] + [c["mamba_n_groups"] * c["mamba_d_state"]] * 2 + [c["mamba_n_heads"]]
            rows = np.repeat(np.array(c["ssm_multipliers"], "<f4") * np.float32(c["ssm_in_multiplier"]), widths)
            return t.map(lambda x: x * rows[:, None])
        return t.map(lambda x: x * np.float32(by[stem])) if stem in by else t

    def take(self, name, t):
        if self.kind == "falcon_h1":
            t = self.multiplied(name, t)
        name = re.sub(r"^backbone\.", "model.", name)
        if self.kind == "nemotron_h" and self.c.get("n_routed_experts") and "moe" in self.kinds():
            self.arch = "nemotron_h_moe"
            self.values[0] = (*self.values[0][:2], self.arch)
        own = {"model.embedding_norm.weight": "token_embd_norm.weight", "model.embeddings.weight": "token_embd.weight"}
        if name in own:
            return self.add(own[name], t)
        return super().take(name, t)

    def kinds(self):
        c = self.c
        if self.kind == "jamba":
            return ["attention" if i % c["attn_layer_period"] == c["attn_layer_offset"] else "mamba"
                    for i in range(self.layers)]
        return c.get("layers_block_type") or c.get("layer_types") or ["full_attention"] * self.layers

    def state(self, blk, name, t):
        """Of Mamba: -exp(A_log); what each head has one of is a column; norms of groups are rows."""
        groups = self.get("mamba_n_groups", "n_groups")
        stem, _, end = name.rpartition(".")
        if name == "conv1d.weight":
            return self.add(blk + "ssm_conv1d.weight", t.map(lambda x: x[:, 0]))
        if name == "conv1d.bias":
            return self.add(blk + "ssm_conv1d.bias", t)
        if name in ("A_log", "D"):
            x = -np.exp(t.f32().x) if name == "A_log" else t.f32().x
            return self.add(blk + ("ssm_a" if name == "A_log" else "ssm_d"), Tensor(x[:, None] if groups else x, "F32"))
        if name == "dt_bias":
            return self.add(blk + "ssm_dt.bias", t)
        if name == "norm.weight":
            return self.add(blk + "ssm_norm.weight", t.map(lambda x: x.reshape(groups, -1)))
        return self.add(f"{blk}{STATE[stem]}.{end}", t)

    def layer(self, i, name, t):
        blk = f"blk.{i}."
        m = re.match(r"(?:feed_forward|mixer)\.experts\.(\d+)\.(\w+)\.weight$", name)
        if m:
            return self.stack(i, f"ffn_{PARTS[m[2]]}_exps", int(m[1]), t)
        m = re.match(r"mlp\.shared_mlp\.(\w+)\.weight$", name)
        if m:
            return self.add(f"{blk}{SHARED[m[1]]}.weight", t)
        if self.kind == "granitemoe_swa" and name in SWASH:
            return self.add(f"{blk}{SWASH[name]}.weight", t)
        if self.kind == "hy_v3" and name == "mlp.expert_bias":
            return self.add(blk + "exp_probs_b", t)
        m = re.match(r"shared_mlp\.(input|output)_linear\.weight$", name)
        if m:
            end = "_shexp" if self.c.get("num_local_experts") else ""
            if m[1] == "output":
                return self.add(f"{blk}ffn_down{end}.weight", t)
            half = t.x.shape[0] // 2
            self.add(f"{blk}ffn_gate{end}.weight", t.map(lambda x: x[:half]))
            return self.add(f"{blk}ffn_up{end}.weight", t.map(lambda x: x[half:]))
        if name == "pre_ff_layernorm.weight" and self.kind == "falcon_h1":      # without ".weight"
            return self.add(blk + "ffn_norm", t)
        if name == "conv.conv.weight":
            return self.add(blk + "shortconv.conv.weight", t.map(lambda x: x[:, 0]))
        if name.startswith("mamba.") or (name.startswith("mixer.") and self.kinds()[i] == "linear_attention"):
            return self.state(blk, name.split(".", 1)[1], t)
        return super().layer(i, name, t)

    @staticmethod
    def lacks_keys(config):
        rope = config.get("rope_parameters") or {}
        return ((config["model_type"] == "mellum" and "dense" in config["mlp_layer_types"])
                or len(set(config.get("layer_rope_theta") or ()) - {0}) > 1
                or config.get("shared_expert_combination_strategy") == "sum"
                or rope.get("mscale") != rope.get("mscale_all_dim"))

    def put(self, name, kind, value):
        self.values = [v for v in self.values if v[0] != f"{self.arch}.{name}"]
        self.key(name, kind, value)

    def describe(self):
        super().describe()
        c, kinds = self.c, self.kinds()
        both = self.kind == "falcon_h1"
        attends = [both or kind == "attention" or kind.endswith("_attention") and kind != "linear_attention"
                   for kind in kinds]
        if not all(attends):
            self.put("attention.head_count_kv", ARRAY, (U32, [self.kv if x else 0 for x in attends]))
        if self.kind == "nemotron_h":
            widths = {"mlp": c["intermediate_size"], "moe": c["moe_intermediate_size"]}
            self.put("feed_forward_length", ARRAY, (U32, [widths.get(kind, 0) for kind in kinds]))
            self.put("expert_shared_feed_forward_length", U32, c["moe_shared_expert_intermediate_size"])
            if c.get("moe_latent_size"):
                self.put("moe_latent_size", U32, c["moe_latent_size"])
            if "moe" not in kinds:
                self.values = [v for v in self.values if not v[0].startswith("nemotron_h.expert")]
        if self.kind == "lfm2":
            width = self.out[[o[0] for o in self.out].index("blk.0.ffn_up.weight")][1][0]
            self.put("feed_forward_length", U32, width)
        if self.kind.startswith("lfm2"):
            self.put("attention.layer_norm_rms_epsilon", FLOAT, c["norm_eps"])
            self.put("attention.layer_norm_epsilon", FLOAT, None)
            self.put("shortconv.l_cache", U32, c["conv_L_cache"])
            self.put("expert_gating_func", U32, 2 if self.kind == "lfm2_moe" else None)
        if self.kind.startswith("granitemoe"):
            self.put("expert_shared_feed_forward_length", U32, c["shared_intermediate_size"])
        if self.kind == "granitemoehybrid":
            self.put("rope.scaling.finetuned", BOOL, c.get("position_embedding_type") == "rope")
            if not c["num_local_experts"]:
                self.put("feed_forward_length", U32, c["shared_intermediate_size"])
                self.put("expert_shared_feed_forward_length", U32, None)
        if self.kind == "hunyuan_v1_moe":
            self.put("expert_used_count", U32, c["moe_topk"])
            self.put("expert_feed_forward_length", U32, c["intermediate_size"])
            self.put("expert_shared_feed_forward_length", U32, c["intermediate_size"])
            self.put("rope.freq_base", FLOAT, c["rope_parameters"]["rope_theta"] *
                     c["rope_parameters"]["alpha"] ** (self.d / (self.d - 2)))
            self.put("rope.scaling.type", FLOAT, None)
        if self.kind == "glm4_moe_lite":
            self.put("leading_dense_block_count", U32, c["mlp_layer_types"].count("dense"))
            self.put("expert_gating_func", U32, 2)
        if self.kind == "exaone_moe":
            self.put("attention.sliding_window_pattern", ARRAY, (BOOL, [x == "sliding_attention" for x in kinds]))
            self.put("expert_gating_func", U32, 2)
            self.put("expert_shared_feed_forward_length", U32, c["num_shared_experts"] * c["moe_intermediate_size"])
        if "sliding_attention" in kinds and self.kind in ("mellum", "granite_swa", "granitemoe_swa", "cohere2_moe"):
            self.put("attention.sliding_window_pattern", ARRAY, (BOOL, [x == "sliding_attention" for x in kinds]))
        self.describe_newest()
        if both or any(not x and kind in ("mamba", "linear_attention") for x, kind in zip(attends, kinds)):
            heads = self.get("mamba_n_heads", "mamba_num_heads")
            inner = heads * self.get("mamba_d_head", "mamba_head_dim") if heads else c["mamba_expand"] * self.width
            for name, n in (("conv_kernel", self.get("mamba_d_conv", "conv_kernel")), ("inner_size", inner),
                            ("state_size", self.get("mamba_d_state", "ssm_state_size")),
                            ("group_count", self.get("mamba_n_groups", "n_groups")),
                            ("time_step_rank", heads or c["mamba_dt_rank"])):
                self.put("ssm." + name, U32, n)

    def fuse(self):
        """Queries, keys and values of each layer in one tensor, as converters do if they are asked to."""
        parts = {name: (shape, kind, data) for name, shape, kind, data in self.out}
        for i in range(self.layers):
            for end in ("weight", "bias"):
                q, k, v = (parts.pop(f"blk.{i}.attn_{part}.{end}") for part in "qkv")
                parts[f"blk.{i}.attn_qkv.{end}"] = ((q[0][0] + k[0][0] + v[0][0], *q[0][1:]), q[1], q[2] + k[2] + v[2])
        self.out = [(name, *part) for name, part in parts.items()]

    def describe_newest(self):
        c = self.c
        if self.kind in ("internlm3", "jais2"):
            self.fuse()
        if self.kind == "mellum":
            whole, local = (c["rope_parameters"][f"{kind}_attention"] for kind in ("full", "sliding"))
            self.put("rope.freq_base", FLOAT, whole["rope_theta"])
            self.put("rope.freq_base_swa", FLOAT, local["rope_theta"])
            self.put("rope.scaling.type", STRING, whole["rope_type"])
            self.put("rope.scaling.factor", FLOAT, whole["factor"])
            self.put("rope.scaling.original_context_length", U32, whole["original_max_position_embeddings"])
            self.put("expert_weights_norm", BOOL, None)
        if self.kind == "hy_v3":
            self.put("expert_gating_func", U32, 2)
            self.put("expert_weights_scale", FLOAT, c["router_scaling_factor"])
            self.put("expert_weights_norm", BOOL, True)
            self.put("expert_shared_feed_forward_length", U32, c["num_shared_experts"] * c["moe_intermediate_size"])
            self.put("expert_shared_count", U32, None)
        if self.kind in ("sarvam_moe", "sarvam_mla", "deepseek_v32"):
            self.put("expert_gating_func", U32, 2)
        if self.kind == "sarvam_moe":
            self.put("expert_shared_feed_forward_length", U32, c["n_shared_experts"] * c["moe_intermediate_size"])
        if c.get("layer_rope_theta"):
            self.put("rope.freq_base", FLOAT, max(c["layer_rope_theta"]))
            self.put("attention.rope_pattern", ARRAY, (BOOL, [x > 0 for x in c["layer_rope_theta"]]))
        if self.kind == "cohere2_moe":
            self.put("feed_forward_length", U32, c["prefix_dense_intermediate_size"] or c["intermediate_size"])
            self.put("expert_feed_forward_length", U32, c["intermediate_size"])
            self.put("expert_shared_feed_forward_length", U32, c["num_shared_experts"] * c["intermediate_size"])
            self.put("leading_dense_block_count", U32, c["mlp_layer_types"].count("dense"))
            self.put("expert_gating_func", U32, 2 if c["expert_selection_fn"] == "sigmoid" else 1)
        if self.kind in ("deepseek_v32", "glm_moe_dsa"):
            self.put("leading_dense_block_count", U32, c["mlp_layer_types"].count("dense"))
            self.put("attention.indexer.head_count", U32, c["index_n_heads"])
            self.put("attention.indexer.key_length", U32, c["index_head_dim"])
            self.put("attention.indexer.top_k", U32, c["index_topk"])
            if c.get("indexer_types"):
                self.put("attention.indexer.types", ARRAY, (BOOL, [x == "full" for x in c["indexer_types"]]))


class Text(Hybrid):
    """The text part of a model with pictures, whose tower converters write to another file."""
    arches = {"qwen2_vl": ("qwen2vl", False, {}), "qwen3_vl": ("qwen3vl", False, {}),
              "qwen3_vl_moe": ("qwen3vlmoe", False, {}), "llava": ("llama", True, {}), "idefics3": ("llama", True, {})}

    def __init__(self, config, tensors):
        text = config | config.get("text_config", {}) | {
            "model_type": config["model_type"], "tie_word_embeddings": config.get("tie_word_embeddings")}
        text["mlp_only_layers"] = text["sliding_window"] = None
        text.pop("layer_types", None)
        own = {}
        for name, t in tensors.items():
            name = re.sub(r"language_model\.lm_head", "lm_head", name)
            name = re.sub(r"^(model\.)?(language_model|text_model)\.(model\.)?", "model.", name)
            if not name.startswith(("model.layers.", "model.embed_tokens.", "model.norm.", "lm_head.")):
                continue
            part = re.search(r"\.mlp\.experts\.(gate_up|down)_proj$", name)
            for i, x in enumerate(t.x.transpose(0, 2, 1) if part else ()):     # published as [expert, in, out]
                rows = {"gate": x[:len(x) // 2], "up": x[len(x) // 2:]} if part[1] == "gate_up" else {"down": x}
                for kind, w in rows.items():
                    own[f"{name[:part.start(1)]}{i}.{kind}_proj.weight"] = Tensor(np.ascontiguousarray(w), t.kind)
            if not part:
                own[name] = t
        super().__init__(text, own)


def class_of(folder):
    config = json.loads((folder / "config.json").read_text())
    return Text if config["model_type"] in Text.arches and "vision_config" in config else Hybrid


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for place in map(pathlib.Path, sys.argv[1:-1]):
        make(place, pathlib.Path(sys.argv[-1]), class_of(place), "gguf_")
