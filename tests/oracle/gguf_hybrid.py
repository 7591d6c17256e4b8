#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GGUF files of models with layers that carry a state in place of attention, and of their contemporaries.

    gguf_hybrid.py FOLDER... TO      as gguf_modern.py, whose names, keys and conventions these files share; the names of
                                     what it makes begin with gguf_

llama.cpp calls a layer recurrent where attention.head_count_kv is 0. Needs numpy."""
import pathlib
import re
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from gguf_files import ARRAY, BOOL, FLOAT, U32  # noqa: E402
from gguf_modern import SHARED, File, Tensor, make  # noqa: E402

ATTENTION = {f"{part}_proj": f"attn_{part}" for part in "qkv"} | {"o_proj": "attn_output", "out_proj": "attn_output"}
LFM2 = {"operator_norm": "attn_norm", "ffn_norm": "ffn_norm", "self_attn.out_proj": "attn_output",
        "self_attn.q_layernorm": "attn_q_norm", "self_attn.k_layernorm": "attn_k_norm", "feed_forward.w1": "ffn_gate",
        "feed_forward.w3": "ffn_up", "feed_forward.w2": "ffn_down", "feed_forward.gate": "ffn_gate_inp",
        "conv.in_proj": "shortconv.in_proj", "conv.out_proj": "shortconv.out_proj"}
NEMOTRON = {f"mixer.{name}": own for name, own in ATTENTION.items() if name != "out_proj"} | {
    "norm": "attn_norm", "mixer.up_proj": "ffn_up", "mixer.down_proj": "ffn_down", "mixer.gate": "ffn_gate_inp",
    "mixer.shared_experts.up_proj": "ffn_up_shexp", "mixer.shared_experts.down_proj": "ffn_down_shexp"}
EXAONE = {f"attn.attention.{name}": own for name, own in ATTENTION.items()} | {
    "mlp.c_fc_0": "ffn_gate", "mlp.c_fc_1": "ffn_up"}
ARCHES = {"granitemoehybrid": ("granitehybrid", True, {}), "jamba": ("jamba", False, {"pre_ff_layernorm": "ffn_norm"}),
          "lfm2": ("lfm2", False, LFM2), "lfm2_moe": ("lfm2moe", False, LFM2),
          "nemotron_h": ("nemotron_h", False, NEMOTRON), "granitemoeshared": ("granitemoe", True, {}),
          "hunyuan_v1_moe": ("hunyuan-moe", False, {"mlp.gate.wg": "ffn_gate_inp"}),
          "glm4_moe_lite": ("deepseek2", False, {}), "exaone_moe": ("exaone-moe", False, {}), "exaone": ("exaone", False, EXAONE),
          "falcon_h1": ("falcon-h1", False, {"pre_ff_layernorm": "ffn_norm"})}
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

    def put(self, name, kind, value):
        self.values = [v for v in self.values if v[0] != f"{self.arch}.{name}"]
        self.key(name, kind, value)

    def describe(self):
        super().describe()
        c, kinds = self.c, self.kinds()
        beside = self.kind == "falcon_h1"
        attends = [beside or kind in ("attention", "full_attention", "sliding_attention") for kind in kinds]
        if not all(attends):
            self.put("attention.head_count_kv", ARRAY, (U32, [self.kv if x else 0 for x in attends]))
        if self.kind == "nemotron_h":
            widths = {"mlp": c["intermediate_size"], "moe": c["moe_intermediate_size"]}
            self.put("feed_forward_length", ARRAY, (U32, [widths.get(kind, 0) for kind in kinds]))
            self.put("expert_shared_feed_forward_length", U32, c["moe_shared_expert_intermediate_size"])
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
        if beside or any(not x and kind in ("mamba", "linear_attention") for x, kind in zip(attends, kinds)):
            heads = self.get("mamba_n_heads", "mamba_num_heads")
            inner = heads * self.get("mamba_d_head", "mamba_head_dim") if heads else c["mamba_expand"] * self.width
            for name, n in (("conv_kernel", self.get("mamba_d_conv", "conv_kernel")), ("inner_size", inner),
                            ("state_size", self.get("mamba_d_state", "ssm_state_size")),
                            ("group_count", self.get("mamba_n_groups", "n_groups")),
                            ("time_step_rank", heads or c["mamba_dt_rank"])):
                self.put("ssm." + name, U32, n)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for place in sys.argv[1:-1]:
        make(pathlib.Path(place), pathlib.Path(sys.argv[-1]), Hybrid, "gguf_")
