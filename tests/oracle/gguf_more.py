#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GGUF files of further families: latents without groups, delta attention, values narrower than keys, gates of heads.

    gguf_more.py FOLDER... TO        as gguf_hybrid.py, for checkpoints of the tree and shared ones

Needs numpy."""
import pathlib
import re
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from gguf_files import ARRAY, BOOL, FLOAT, STRING, U32, permuted, rope_factors  # noqa: E402
from gguf_hybrid import Hybrid  # noqa: E402
from gguf_modern import AFTER, SHARED, Tensor, make  # noqa: E402

INTERN = {"attention_norm": "attn_norm", "ffn_norm": "ffn_norm", "attention.wo": "attn_output",
          "feed_forward.w1": "ffn_gate", "feed_forward.w3": "ffn_up", "feed_forward.w2": "ffn_down"}
BITNET = {"self_attn.attn_sub_norm": "attn_sub_norm", "mlp.ffn_sub_norm": "ffn_sub_norm"}
KIMI = {"self_attn.b_proj": "ssm_beta", "self_attn.f_a_proj": "ssm_f_a", "self_attn.f_b_proj": "ssm_f_b",
        "self_attn.g_a_proj": "ssm_g_a", "self_attn.g_b_proj": "ssm_g_b", "self_attn.o_norm": "ssm_norm",
        "block_sparse_moe.gate_proj": "ffn_gate", "block_sparse_moe.up_proj": "ffn_up",
        "block_sparse_moe.down_proj": "ffn_down"} | {
            f"block_sparse_moe.shared_experts.{part}": own for part, own in SHARED.items()}
GATES = {"self_attn.g_proj": "attn_gate"}
STEP = GATES | {"moe.gate": "ffn_gate_inp", "moe.gate_proj": "ffn_gate_exps", "moe.up_proj": "ffn_up_exps",
                "moe.down_proj": "ffn_down_exps"} | {f"share_expert.{part}": own for part, own in SHARED.items()}
LING = {"self_attn.b_proj": "ssm_beta", "self_attn.f_proj": "ssm_f_a", "self_attn.o_norm": "ssm_norm"}
STEP_KEYS = {"num_key_value_heads": "num_attention_groups", "n_routed_experts": "moe_num_experts",
             "num_experts_per_tok": "moe_top_k"}
BY_KIND = ("mimo_v2_flash", "laguna", "step3p7")
GLM = ("glm4v", "glm_ocr", "glm_ocr_text")
ENDS = {"model.tok_embeddings.weight": "token_embd.weight", "output.weight": "output.weight"}


class More(Hybrid):
    arches = {"internlm2": ("internlm2", True, INTERN), "glm": ("chatglm", False, {}),
              "bitnet": ("bitnet", False, BITNET), "paddleocr_vl": ("paddleocr", False, {}),
              "hunyuan_vl": ("hunyuan_vl", False, {}),
              "kimi_linear": ("kimi-linear", False, KIMI),
              "mimo_v2_flash": ("mimo2", False, {}), "laguna": ("laguna", False, GATES),
              "solar_open": ("glm4moe", False, AFTER), "glm4v_moe": ("glm4moe", False, AFTER),
              "bailing_hybrid": ("bailingmoe3", False, LING), "mistral4": ("mistral4", False, {}), "glm4v": ("glm4", False, {}), "glm_ocr": ("glm4", False, {}), "glm_ocr_text": ("glm4", False, {}),
              "step3p7": ("step35", False, STEP), "minicpm3": ("minicpm3", False, {"self_attn.kv_b_proj": "attn_kv_b"})}

    def __init__(self, config, tensors):
        outer = {name: config[name] for name in ("model_type", "tie_word_embeddings") if name in config}
        config = config | config.get("text_config", {}) | outer
        if config["model_type"] == "step3p7":           # the first files have other names
            config |= {name: config[other] for name, other in STEP_KEYS.items() if other in config}
        super().__init__(config, tensors)

    @staticmethod
    def lacks_keys(config):
        r = config.get("rope_parameters") or {}
        return (config["model_type"] == "kimi_linear" and config["attention_bias"]) or \
            (config["model_type"] == "hunyuan_vl" and config.get("attention_bias")) or \
            config.get("kda_safe_gate") is False or (config["model_type"] == "mistral4" and r.get("mscale") != r.get("mscale_all_dim"))

    def kinds(self):
        return ["full_attention"] * self.layers         # what gguf_hybrid.py says of others does not hold

    def take(self, name, t):
        if re.search(r"vision|visual|mlp_AR|^vit[_.]", name):
            return None
        if self.kind in GLM or self.kind == "glm4v_moe":
            name = name.replace("model.language_model.", "model.")
        if name in ENDS:
            return self.add(ENDS[name], t)
        if self.kind == "minicpm3" and name == "model.embed_tokens.weight" and self.c["dim_model_base"] != 256:
            # llama.cpp knows one number that divides logits: what differs from it is in the head
            self.add("output.weight", t.map(lambda x: x * np.float32(self.c["dim_model_base"] / 256)))
        return super().take(name, t)

    def layer(self, i, name, t):
        blk = f"blk.{i}."
        if self.kind == "bailing_hybrid":
            name = re.sub(r"^attention\.", "self_attn.", name)
        stem, end = name.rsplit(".", 1)
        if self.kind == "bailing_hybrid" and stem == "self_attn.g_proj":
            attends = self.c["layer_types"][i] == "full_attention"
            return self.add(f"{blk}{'attn_gate' if attends else 'ssm_g_a'}.{end}", t)
        if self.kind == "bailing_hybrid" and end == "A_log":        # not negative where the decays have a bound
            return self.add(blk + "ssm_a", Tensor(np.exp(t.f32().x)[:, None], "F32"))
        if stem == "attention.wqkv":
            x = t.x.reshape(self.kv, self.heads // self.kv + 2, self.d, *t.x.shape[1:])
            for part, rows in (("q", x[:, :-2]), ("k", x[:, -2]), ("v", x[:, -1])):
                rows = rows.reshape(-1, *t.x.shape[1:])
                rows = rows if part == "v" else permuted(rows, self.heads if part == "q" else self.kv)
                self.add(f"{blk}attn_{part}.{end}", Tensor(np.ascontiguousarray(rows), t.kind))
            return None
        if self.kind == "mistral4":
            if stem == "mlp.experts":
                return self.add(f"{blk}ffn_{end.replace('_proj', '')}_exps.weight", t)
            if re.match(r"self_attn\.(q_b_proj|q_proj|kv_a_proj_with_mqa)$", stem) and not self.c["rope_interleave"]:
                t = t.map(lambda x: self.neighbours(x, 1 if "kv_a" in stem else self.heads))
        if self.kind in GLM and re.match(r"self_attn\.[qk]_proj$", stem):
            t = t.map(lambda x: self.halves(x))
        m = re.match(r"self_attn\.([qkv])_conv1d$", stem)
        if m:
            return self.add(f"{blk}ssm_conv1d_{m[1]}.weight", t.map(lambda x: x.reshape(1, len(x), 1, -1)))
        if stem == "self_attn" and end == "attention_sink_bias":
            return self.add(blk + "attn_sinks.weight", t)
        if stem == "moe" and end == "router_bias":
            return self.add(blk + "exp_probs_b.bias", t)
        if self.kind == "step3p7" and stem == "self_attn.q_norm" and self.c.get("query_pre_attn_scalar"):
            by = np.float32((self.d / self.c["query_pre_attn_scalar"]) ** 0.5)      # files have no key for this
            return self.add(f"{blk}attn_q_norm.{end}", Tensor((t.f32().x + 1) * by, "F32"))
        if name == "self_attn.A_log":
            return self.add(blk + "ssm_a", Tensor(-np.exp(t.f32().x), "F32"))
        if name == "self_attn.dt_bias":
            return self.add(blk + "ssm_dt.bias", t)
        if self.own.get(stem) == "attn_kv_b":
            return self.add(f"{blk}attn_kv_b.{end}", t)
        return super().layer(i, name, t)

    def neighbours(self, x, heads):
        """The last rows of each head, which rotate in halves, as neighbours."""
        x, n = x.reshape(heads, -1, *x.shape[1:]), self.c["qk_rope_head_dim"]
        turning = x[:, -n:].reshape(heads, 2, n // 2, *x.shape[2:]).swapaxes(1, 2).reshape(heads, n, *x.shape[2:])
        return np.ascontiguousarray(np.concatenate((x[:, :-n], turning), 1).reshape(-1, *x.shape[2:]))

    def halves(self, x):
        """The rows that rotate, which are neighbours, as two halves."""
        x = x.reshape(-1, self.d, *x.shape[1:])
        turning = int(self.d * self.c["rope_parameters"].get("partial_rotary_factor", 1))
        parts = (x[:, :turning:2], x[:, 1:turning:2], x[:, turning:])
        return np.ascontiguousarray(np.concatenate(parts, 1).reshape(-1, *x.shape[2:]))

    def rope(self):
        if self.kind not in BY_KIND:                    # by_kind does it
            super().rope()

    def by_kind(self):
        """Windows, and the rotation of layers with one and of those without."""
        c = self.c
        n = self.layers
        local = [kind == "sliding_attention" for kind in c["layer_types"]][:n]
        base, share = c.get("rope_theta"), c.get("partial_rotary_factors")
        ropes = c.get("rope_parameters")
        if not ropes:
            ropes = {kind: {"rope_theta": base[at], "partial_rotary_factor": share[at]} for kind, at in
                     (("full_attention", local.index(False)), ("sliding_attention", local.index(True)))}
        whole, own = ropes["full_attention"], ropes["sliding_attention"]
        turning = int(self.d * whole.get("partial_rotary_factor", 1))
        self.put("rope.freq_base", FLOAT, whole["rope_theta"])
        self.put("rope.freq_base_swa", FLOAT, own["rope_theta"])
        self.put("rope.dimension_count", U32, turning * 2 if self.kind == "step3p7" else turning)
        self.put("rope.dimension_count_swa", U32, int(self.d * own.get("partial_rotary_factor", 1)))
        self.put("attention.sliding_window", U32, c["sliding_window"])
        self.put("attention.sliding_window_pattern", ARRAY, (BOOL, local))
        self.put("leading_dense_block_count", U32, None)
        self.put("expert_gating_func", U32, 2)
        scaling = c.get("rope_scaling")
        if scaling:                                     # converters take the widths of whole heads
            factors = rope_factors(dict(scaling, rope_theta=whole["rope_theta"]), self.d)
            self.add("rope_freqs.weight", Tensor(factors, "F32"))
        return local

    def describe_mimo(self, local):
        self.put("attention.head_count_kv", ARRAY, (U32, [self.kv * (1 + x) for x in local]))
        self.put("attention.value_length", U32, self.c["v_head_dim"])
        self.put("attention.value_scale", FLOAT, self.c["attention_value_scale"])

    def by_layer(self):
        """Query heads of Laguna's and Step's layers."""
        c = self.c
        if c.get("num_attention_heads_per_layer"):
            return c["num_attention_heads_per_layer"]
        own = c.get("num_sliding_attention_heads") or c.get("attention_other_setting", c)["num_attention_heads"]
        kinds = c["layer_types"][:self.layers]
        return [own if kind == "sliding_attention" else self.heads for kind in kinds]

    def describe_gates(self):
        """Laguna and Step."""
        c = self.c
        dense = [o[0] for o in self.out if o[0].endswith("ffn_gate.weight")]
        self.put("leading_dense_block_count", U32, len(dense))
        self.put("attention.layer_norm_rms_epsilon", FLOAT, c.get("rms_norm_eps", 1e-5))
        self.put("expert_weights_norm", BOOL, True)
        self.put("expert_weights_scale", FLOAT, self.get("moe_routed_scaling_factor", "moe_router_scaling_factor"))
        self.put("expert_shared_feed_forward_length", U32, self.get("shared_expert_intermediate_size", "share_expert_dim"))
        self.put("attention.head_count", ARRAY, (U32, self.by_layer()))
        for theirs, ours in (("exp", "swiglu_limits"), ("shexp", "swiglu_limits_shared")):
            if c.get(ours):
                self.put("swiglu_clamp_" + theirs, ARRAY, (FLOAT, [x or 0.0 for x in c[ours][:self.layers]]))

    def describe(self):
        super().describe()
        c = self.c
        if self.kind == "bitnet":
            self.put("hidden_activation", STRING, c["hidden_act"])
        if self.kind == "glm":
            self.put("rope.dimension_count", U32, int(self.d * c["partial_rotary_factor"]))
        if self.kind == "minicpm3":
            self.put("attention.head_count_kv", U32, self.heads)
            self.put("attention.key_length", U32, c["qk_nope_head_dim"] + c["qk_rope_head_dim"])
            self.put("attention.value_length", U32, c["v_head_dim"])
            for name in ("key_length_mla", "value_length_mla"):
                self.put("attention." + name, U32, None)
            self.values = [v for v in self.values if ".expert_" not in v[0] and ".leading_" not in v[0]]
        if self.kind == "bailing_hybrid":
            self.put("kda.safe_gate", BOOL, True)
            self.put("kda.gate_lower_bound", FLOAT, c["kda_lower_bound"])
        if self.kind in ("kimi_linear", "bailing_hybrid"):
            attends = [kind == "full_attention" for kind in c["layer_types"]]
            self.put("attention.head_count_kv", ARRAY, (U32, [int(x) for x in attends]))
            self.put("kda.head_dim", U32, c["linear_head_dim"])
            self.put("ssm.conv_kernel", U32, c["linear_conv_kernel_dim"])
            self.put("expert_used_count", U32, c["num_experts_per_token"])
            self.put("expert_gating_func", U32, 2)
            self.put("leading_dense_block_count", U32, c["mlp_layer_types"].index("sparse"))
            self.put("expert_group_count", U32, c["num_expert_group"])
            self.put("expert_weights_norm", BOOL, c["moe_renormalize"])
        if self.kind in ("solar_open", "glm4v_moe"):
            self.put("expert_gating_func", U32, 2)
            self.put("leading_dense_block_count", U32, c.get("first_k_dense_replace", 0))
        if self.kind == "mistral4":
            self.put("attention.temperature_scale", FLOAT, c["rope_parameters"]["llama_4_scaling_beta"])
            self.put("attention.temperature_length", U32, c["rope_parameters"]["original_max_position_embeddings"])
        if self.kind in GLM:
            self.put("rope.dimension_sections", ARRAY, (U32, [max(x, 1) for x in c["rope_parameters"]["mrope_section"]] + [0]))
        if self.kind in BY_KIND:
            local = self.by_kind()
            if self.kind == "mimo_v2_flash":
                self.describe_mimo(local)
            else:
                self.describe_gates()
        if self.kind == "paddleocr_vl":
            self.put("attention.layer_norm_rms_epsilon", FLOAT, c["rms_norm_eps"])


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for place in map(pathlib.Path, sys.argv[1:-1]):
        make(place, pathlib.Path(sys.argv[-1]), More, "gguf_")
