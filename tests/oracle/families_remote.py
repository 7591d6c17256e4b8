#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tiny checkpoints of families whose code comes with their files, so that transformers has no class for them, with the
numbers of a forward pass in plain numpy.

    families_remote.py DIR          makes them in DIR

One pass serves all: a family says where its weights are and what it does differently (class Model). gguf_remote.py
writes the same as GGUF files, on which gguf_llama_cpp.py compares it with llama.cpp. Folders as families_plain.py makes
them."""
import sys

import numpy as np

from families_plain import attend, best, everything, make, mix, plain, rms, sigmoid, silu, softmax, turn

SMALL = {"vocab_size": 64, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "intermediate_size": 20, "hidden_act": "silu", "rms_norm_eps": 1e-5,
         "max_position_embeddings": 256, "tie_word_embeddings": False}


class Model:
    """LLaMA, in the names of transformers. Others replace what differs."""
    stem, layer_stem = "model.", "model.layers.{}."
    embed, final, head = "model.embed_tokens.weight", "model.norm", "lm_head.weight"
    norms = ("input_layernorm", "post_attention_layernorm")
    qkv, out = None, "self_attn.o_proj"
    feed_names = ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
    qk_norm = None
    layer_norm = in_pairs = False
    by_embed = by_block = by_logit = by_turn = 1.0
    qkv_bias = False

    def __init__(self, config, w, t):
        c = self.c = config
        self.w, self.t = w, t
        self.d, self.layers = c["hidden_size"], c.get("num_hidden_layers") or c["num_layers"]
        self.heads = c["num_attention_heads"]
        self.kv = c.get("num_key_value_heads", self.heads)
        self.hd = c.get("head_dim") or self.d // self.heads
        self.ff, self.vocab = c.get("intermediate_size"), c.get("vocab_size")
        self.eps = c.get("rms_norm_eps")
        self.f = plain(c.get("rope_theta", 10000.0), self.hd)
        self.more()

    def more(self):
        pass

    def linear(self, name, x, out, bias=False):
        y = x @ self.w.make(name + ".weight", out, x.shape[-1]).T
        return y + self.w.make(name + ".bias", out) if bias else y

    def norm(self, name, x):
        weight = self.w.make(name + ".weight", x.shape[-1], around=1.0)
        if not self.layer_norm:
            return rms(x, weight, self.eps)
        x = x - x.mean(-1, keepdims=True)
        return rms(x, weight, self.eps) + self.w.make(name + ".bias", x.shape[-1])

    def queries(self, at, x):
        sizes = [self.heads * self.hd, self.kv * self.hd, self.kv * self.hd]
        if self.qkv:
            parts = np.split(self.linear(at + self.qkv, x, sum(sizes), self.qkv_bias), np.cumsum(sizes)[:2], -1)
        else:
            parts = [self.linear(f"{at}self_attn.{p}_proj", x, n, self.qkv_bias) for p, n in zip("qkv", sizes)]
        q, k, v = (p.reshape(self.t, -1, self.hd) for p in parts)
        if self.qk_norm:
            q, k = (self.norm(at + name, y) for name, y in zip(self.qk_norm, (q, k)))
        return self.rotate(q), self.rotate(k), v

    def rotate(self, x):
        return turn(x, self.f, self.by_turn, self.in_pairs)

    def attend(self, q, k, v):
        return attend(q, k, v, self.hd ** -0.5, everything)

    def gated(self, names, x, width):
        gate, up, down = names
        return self.linear(down, silu(self.linear(gate, x, width)) * self.linear(up, x, width), self.d)

    def feed(self, at, i, x):
        return self.gated([at + n for n in self.feed_names], x, self.ff)

    def experts(self, chosen, weight, x, stem, width, parts=("gate_proj", "up_proj", "down_proj")):
        def expert(number, y):
            return self.gated([f"{stem}.{number}.{p}" for p in parts], y[None], width)[0]
        for number in range(self.c["num_experts"]):     # all are in the file
            expert(number, x[0])
        return mix(x, chosen, weight, expert)

    def head_matrix(self):
        if self.c.get("tie_word_embeddings"):
            return self.w[self.embed].astype(np.float64)
        return self.w.make(self.head, self.vocab, self.d)

    def enter(self, i):
        """Layers may have numbers of heads and widths of their own."""

    def attention(self, at, i, h):
        """Rows, if there are any, and what the block adds."""
        p, y = self.attend(*self.queries(at, self.norm(at + self.norms[0], h)))
        return p, self.linear(at + self.out, y.reshape(self.t, -1), self.d)

    def second(self, at, i, h):
        return self.feed(at, i, self.norm(at + self.norms[1], h))

    def run(self, tokens):
        rows, hidden = [], []
        h = self.w.make(self.embed, self.vocab, self.d, scale=1.0)[tokens] * self.by_embed
        for i in range(self.layers):
            at = self.layer_stem.format(i)
            self.enter(i)
            hidden.append(h)
            p, y = self.attention(at, i, h)
            rows.append(p)
            h = h + self.by_block * y
            h = h + self.by_block * self.second(at, i, h)
        final = self.norm(self.final, h)
        return rows, hidden, final, final @ self.head_matrix().T * self.by_logit


# ---- MiniCPM ----

class MiniCPM(Model):
    def more(self):
        c = self.c
        self.by_embed, self.by_block = c["scale_emb"], c["scale_depth"] / np.sqrt(self.layers)
        self.by_logit = c["dim_model_base"] / self.d
        r = c.get("rope_scaling") or {}
        if "factor" in r:
            self.f = self.f / r["factor"]
        if "long_factor" in r:
            n = r["original_max_position_embeddings"]
            self.f = self.f / np.array(r["long_factor" if c["max_position_embeddings"] > n else "short_factor"])
            self.by_turn = np.sqrt(1 + np.log(c["max_position_embeddings"] / n) / np.log(n))

    def feed(self, at, i, x):
        if not self.c.get("num_experts"):
            return super().feed(at, i, x)
        score = softmax(x @ self.w.make(at + "mlp.gate.weight", self.c["num_experts"], self.d, scale=1.0).T)
        chosen = best(score, self.c["num_experts_per_tok"])
        weight = np.take_along_axis(score, chosen, -1)
        return self.experts(chosen, weight / weight.sum(-1, keepdims=True), x, at + "mlp.experts", self.ff,
                            ("w1", "w3", "w2"))


MINICPM = {"architectures": ["MiniCPMForCausalLM"], "model_type": "minicpm", **SMALL, "scale_emb": 3,
           "scale_depth": 1.4, "dim_model_base": 8, "rope_theta": 5000.0}
LONG = {"rope_type": "longrope", "short_factor": [1.0, 1.5, 2.5], "long_factor": [1.0, 3.0, 8.0]}


# ---- Orion, XVERSE ----

class Orion(Model):
    layer_norm = True


ORION = {"architectures": ["OrionForCausalLM"], "model_type": "orion", **SMALL, "rope_theta": 2000.0,
         "rope_scaling": None, "attention_bias": False}
XVERSE = {"architectures": ["XverseForCausalLM"], "model_type": "xverse", **SMALL}


# ---- ChatGLM ----

class ChatGLM(Model):
    stem, layer_stem = "transformer.", "transformer.encoder.layers.{}."
    embed, final = "transformer.embedding.word_embeddings.weight", "transformer.encoder.final_layernorm"
    head = "transformer.output_layer.weight"
    qkv, out, in_pairs = "self_attention.query_key_value", "self_attention.dense", True

    def more(self):
        c = self.c
        self.kv, self.hd, self.ff = c["multi_query_group_num"], c["kv_channels"], c["ffn_hidden_size"]
        self.vocab, self.eps, self.qkv_bias = c["padded_vocab_size"], c["layernorm_epsilon"], c["add_qkv_bias"]
        self.f = plain(10000.0 * c["rope_ratio"], self.hd // 2)

    def feed(self, at, i, x):
        gate, up = np.split(self.linear(at + "mlp.dense_h_to_4h", x, 2 * self.ff), 2, -1)
        return self.linear(at + "mlp.dense_4h_to_h", silu(gate) * up, self.d)


CHATGLM = {"architectures": ["ChatGLMModel"], "model_type": "chatglm", "add_bias_linear": False, "add_qkv_bias": True,
           "apply_query_key_layer_scaling": True, "apply_residual_connection_post_layernorm": False,
           "ffn_hidden_size": 20, "hidden_size": 32, "kv_channels": 8, "layernorm_epsilon": 1e-5,
           "multi_query_attention": True, "multi_query_group_num": 2, "num_attention_heads": 4, "num_layers": 2,
           "original_rope": True, "padded_vocab_size": 64, "post_layer_norm": True, "rmsnorm": True, "rope_ratio": 0.5,
           "seq_length": 256, "tie_word_embeddings": False}


# ---- the first Qwen ----

class Qwen(Model):
    stem, layer_stem = "transformer.", "transformer.h.{}."
    embed, final, norms = "transformer.wte.weight", "transformer.ln_f", ("ln_1", "ln_2")
    qkv, out, qkv_bias = "attn.c_attn", "attn.c_proj", True
    feed_names = ("mlp.w2", "mlp.w1", "mlp.c_proj")

    def more(self):
        c = self.c
        self.ff, self.eps = c["intermediate_size"] // 2, c["layer_norm_epsilon"]
        self.f = plain(c["rotary_emb_base"], int(self.hd * c["rotary_pct"]))


QWEN = {"architectures": ["QWenLMHeadModel"], "model_type": "qwen", "hidden_size": 24, "intermediate_size": 40,
        "kv_channels": 6, "layer_norm_epsilon": 1e-6, "max_position_embeddings": 256, "no_bias": True,
        "num_attention_heads": 4, "num_hidden_layers": 2, "rotary_emb_base": 3000, "rotary_pct": 1.0,
        "scale_attn_weights": True, "seq_length": 256, "tie_word_embeddings": False, "use_dynamic_ntk": True,
        "use_logn_attn": True, "vocab_size": 64}


# ---- Ling, the first and the second ----

class Ling(Model):
    embed, qkv, out = "model.word_embeddings.weight", "attention.query_key_value", "attention.dense"

    def choose(self, at, x):
        c = self.c
        score = softmax(x @ self.w.make(at + "mlp.gate.weight", c["num_experts"], self.d, scale=1.0).T)
        return score, best(score, c["num_experts_per_tok"])

    def feed(self, at, i, x):
        c = self.c
        if i < c["first_k_dense_replace"]:
            return super().feed(at, i, x)
        width = c["moe_intermediate_size"]
        score, chosen = self.choose(at, x)
        weight = np.take_along_axis(score, chosen, -1)
        if c["norm_topk_prob"] and c["num_experts_per_tok"] > 1:
            weight = weight / weight.sum(-1, keepdims=True)
        out = self.experts(chosen, weight * c.get("routed_scaling_factor", 1.0), x, at + "mlp.experts", width)
        names = [f"{at}mlp.shared_experts.{p}_proj" for p in ("gate", "up", "down")]
        return out + self.gated(names, x, width * c["num_shared_experts"])

    def head_matrix(self):
        m = super().head_matrix()
        return m / (np.sqrt((m * m).sum(0, keepdims=True)) + 1e-7) if self.c.get("norm_head") else m


class Ling2(Ling):
    qk_norm = ("attention.query_layernorm", "attention.key_layernorm")

    def more(self):
        self.f = plain(self.c["rope_theta"], int(self.hd * self.c["partial_rotary_factor"]))

    def choose(self, at, x):
        c = self.c
        n, groups = c["num_experts"], c["n_group"]
        score = sigmoid(x @ self.w.make(at + "mlp.gate.weight", n, self.d, scale=1.0).T)
        rank = score + self.w.make(at + "mlp.gate.expert_bias", n)
        kept = best(np.sort(rank.reshape(self.t, groups, -1), -1)[..., -2:].sum(-1), c["topk_group"])
        open_to = np.zeros((self.t, groups), bool)
        np.put_along_axis(open_to, kept, True, -1)
        rank = np.where(np.repeat(open_to, n // groups, -1), rank, -np.inf)
        return score, best(rank, c["num_experts_per_tok"])


LING = {"architectures": ["BailingMoeForCausalLM"], "model_type": "bailing_moe", **SMALL, "head_dim": 8,
        "rope_theta": 4000.0, "num_experts": 5, "num_experts_per_tok": 2, "num_shared_experts": 2,
        "moe_intermediate_size": 8, "first_k_dense_replace": 0, "norm_topk_prob": True, "norm_head": True,
        "use_bias": False, "use_qkv_bias": False, "rope_scaling": None, "sliding_window": 4096, "max_window_layers": 28,
        "use_sliding_window": False}
LING2 = {**LING, "architectures": ["BailingMoeV2ForCausalLM"], "hidden_size": 32, "num_experts": 8,
         "num_shared_experts": 1, "n_group": 4, "topk_group": 2, "first_k_dense_replace": 1,
         "routed_scaling_factor": 2.5, "score_function": "sigmoid", "moe_router_enable_expert_bias": True,
         "use_qk_norm": True, "partial_rotary_factor": 0.5, "norm_head": False, "num_nextn_predict_layers": 0}


# ---- Baichuan ----

class Baichuan(Model):
    qkv = "self_attn.W_pack"

    def more(self):
        if "max_position_embeddings" not in self.c:
            power = 2 ** int(np.log2(self.heads))
            slopes = [2 ** (-8 * (h + 1) / power) for h in range(power)]
            self.slopes = slopes + [2 ** (-4 * (2 * h + 1) / power) for h in range(self.heads - power)]
            self.rotate = lambda x: x

    def attend(self, q, k, v):
        if "max_position_embeddings" in self.c:
            return super().attend(q, k, v)
        i = np.arange(self.t)
        score = np.einsum("qhd,khd->hqk", q, k) * self.hd ** -0.5
        score = score + np.array(self.slopes)[:, None, None] * (i[None, :] - i[:, None])
        p = softmax(np.where(i[None, :] <= i[:, None], score, -np.inf))
        return p, np.einsum("hqk,khd->qhd", p, v)

    def head_matrix(self):
        m = super().head_matrix()
        return m / np.maximum(np.sqrt((m * m).sum(-1, keepdims=True)), 1e-12) if "z_loss_weight" in self.c else m


BAICHUAN = {"architectures": ["BaichuanForCausalLM"], "model_type": "baichuan",
            **{key: value for key, value in SMALL.items() if key != "num_key_value_heads"}}


# ---- PLM ----

class Plm(Model):
    in_pairs = True

    def more(self):
        self.f = plain(self.c["rope_theta"], self.c["qk_rope_head_dim"])

    def latent_queries(self, at, x, wide):
        return self.linear(at + "q_proj", x, wide)

    def queries(self, at, x):
        c, at = self.c, at + "self_attn."
        nope, rope, rank, dv = (c[k] for k in ("qk_nope_head_dim", "qk_rope_head_dim", "kv_lora_rank", "v_head_dim"))
        q = self.latent_queries(at, x, self.heads * (nope + rope)).reshape(self.t, self.heads, -1)
        a = self.linear(at + "kv_a_proj_with_mqa", x, rank + rope)
        latent = rms(a[:, :rank], self.w.make(at + "kv_a_layernorm.weight", rank, around=1.0))
        b = self.linear(at + "kv_b_proj", latent, self.heads * (nope + dv)).reshape(self.t, self.heads, -1)
        shared = np.repeat(self.rotate(a[:, None, rank:]), self.heads, 1)
        q = np.concatenate([q[..., :nope], self.rotate(q[..., nope:])], -1)
        return q, np.concatenate([b[..., :nope], shared], -1), b[..., nope:]

    def attend(self, q, k, v):
        return attend(q, k, v, q.shape[-1] ** -0.5, everything)

    def feed(self, at, i, x):
        up = np.maximum(self.linear(at + "mlp.up_proj", x, self.ff), 0)
        return self.linear(at + "mlp.down_proj", up ** 2, self.d)


PLM = {"architectures": ["PLMForCausalLM"], "model_type": "plm", **SMALL, "num_key_value_heads": 4,
       "hidden_act": "relu2", "kv_lora_rank": 8, "q_lora_rank": None, "qk_nope_head_dim": 6, "qk_rope_head_dim": 4,
       "v_head_dim": 6, "rope_theta": 3000.0, "tie_word_embeddings": True, "attention_bias": False,
       "rms_norm_eps": 1e-6}


# ---- MiniCPM3, with the numbers that GGUF files take for granted, and DeepSeek-MoE ----

class MiniCPM3(Plm):
    in_pairs = False

    def more(self):
        super().more()
        self.by_embed, self.by_block, self.by_logit = 12.0, 1.4 / np.sqrt(self.layers), 256 / self.d

    def feed(self, at, i, x):
        return Model.feed(self, at, i, x)

    def latent_queries(self, at, x, wide):
        rank = self.c["q_lora_rank"]
        a = rms(self.linear(at + "q_a_proj", x, rank), self.w.make(at + "q_a_layernorm.weight", rank, around=1.0))
        return self.linear(at + "q_b_proj", a, wide)


MINICPM3 = {"architectures": ["MiniCPM3ForCausalLM"], "model_type": "minicpm3", **SMALL, "num_key_value_heads": 4,
            "kv_lora_rank": 8, "q_lora_rank": 10, "qk_nope_head_dim": 6, "qk_rope_head_dim": 4, "v_head_dim": 6,
            "rope_theta": 3000.0, "scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 256}


class DeepSeek(Ling):
    """The first, in LLaMA's names."""
    embed, qkv, out = Model.embed, None, Model.out

    def more(self):
        self.c = self.c | {"num_experts": self.c["n_routed_experts"], "num_shared_experts": self.c["n_shared_experts"]}


DEEPSEEK = {"architectures": ["DeepseekForCausalLM"], "model_type": "deepseek", **SMALL, "n_routed_experts": 5,
            "num_experts_per_tok": 2, "n_shared_experts": 2, "moe_intermediate_size": 8, "first_k_dense_replace": 1,
            "moe_layer_freq": 1, "norm_topk_prob": False, "scoring_func": "softmax", "rope_theta": 4000.0,
            "rope_scaling": None, "attention_bias": False}


# ---- Arctic ----

class Arctic(Model):
    norms = ("input_layernorm", "residual_layernorm")
    feed_names = ("residual_mlp.w1", "residual_mlp.w3", "residual_mlp.w2")

    def norm(self, name, x):
        if name.endswith("input_layernorm"):
            self.read = x
        return super().norm(name, x)

    def feed(self, at, i, x):
        n = self.c["num_local_experts"]
        plain_block = self.gated([at + name for name in self.feed_names], x, self.d)
        x = self.norm(at + "post_attention_layernorm", self.read)
        score = softmax(x @ self.w.make(at + "block_sparse_moe.gate.weight", n, self.d, scale=1.0).T)
        chosen = best(score, self.c["num_experts_per_tok"])
        weight = np.take_along_axis(score, chosen, -1)
        self.c["num_experts"] = n
        return plain_block + self.experts(chosen, weight / weight.sum(-1, keepdims=True), x,
                                          at + "block_sparse_moe.experts", self.ff, ("w1", "w3", "w2"))


ARCTIC = {"architectures": ["ArcticForCausalLM"], "model_type": "arctic", **SMALL, "intermediate_size": 10,
          "num_local_experts": 4, "num_experts_per_tok": 2, "moe_layer_frequency": 1, "parallel_attn_mlp_res": True,
          "use_residual": True, "rope_theta": 3000.0}


# ---- DBRX ----

class Dbrx(Model):
    layer_stem = "transformer.blocks.{}."
    embed, final, head = "transformer.wte.weight", "transformer.norm_f", "lm_head.weight"
    norms = ("norm_attn_norm.norm_1", "norm_attn_norm.norm_2")
    qkv, out = "norm_attn_norm.attn.Wqkv", "norm_attn_norm.attn.out_proj"

    def __init__(self, config, w, t):
        names = {"d_model": "hidden_size", "n_heads": "num_attention_heads", "n_layers": "num_hidden_layers"}
        super().__init__({names.get(key, key): value for key, value in config.items()} |
                         {"num_key_value_heads": config["attn_config"]["kv_n_heads"]} | config["attn_config"], w, t)

    def norm(self, name, x):
        x = x - x.mean(-1, keepdims=True)
        return rms(x, self.w.make(name + ".weight", x.shape[-1], around=1.0), 1e-5)

    def linear(self, name, x, out, bias=False):
        y = super().linear(name, x, out, bias)
        return np.clip(y, -self.c["clip_qkv"], self.c["clip_qkv"]) if name.endswith("Wqkv") else y

    def feed(self, at, i, x):
        c = self.c["ffn_config"]
        n, ff, stem = c["moe_num_experts"], c["ffn_hidden_size"], at + "ffn.experts.mlp."
        score = softmax(x @ self.w.make(at + "ffn.router.layer.weight", n, self.d, scale=1.0).T)
        chosen = best(score, c["moe_top_k"])
        weight = np.take_along_axis(score, chosen, -1)
        gate, up, down = (self.w.make(stem + name, n * ff, self.d).reshape(n, ff, -1) for name in ("w1", "v1", "w2"))
        return mix(x, chosen, weight / weight.sum(-1, keepdims=True),
                   lambda e, y: (silu(gate[e] @ y) * (up[e] @ y)) @ down[e])


DBRX = {"architectures": ["DbrxForCausalLM"], "model_type": "dbrx", "vocab_size": 64, "d_model": 24, "n_layers": 2,
        "n_heads": 4, "max_seq_len": 256, "tie_word_embeddings": False,
        "attn_config": {"kv_n_heads": 2, "clip_qkv": 1.5, "rope_theta": 500.0},
        "ffn_config": {"ffn_hidden_size": 10, "moe_num_experts": 4, "moe_top_k": 2, "moe_normalize_expert_weights": 1,
                       "ffn_act_fn": {"name": "silu"}}}


# ---- SmallThinker ----

class SmallThinker(Model):
    router_scale = 0.5

    def more(self):
        self.ff, self.layer = self.c["moe_ffn_hidden_size"], -1

    def queries(self, at, x):
        self.layer += 1
        return super().queries(at, x)

    def norm(self, name, x):
        if name.endswith("input_layernorm"):
            self.read = x
        return super().norm(name, x)

    def rotate(self, x):
        return super().rotate(x) if self.c["rope_layout"][self.layer] else x

    def attend(self, q, k, v):
        local = self.c["sliding_window_layout"][self.layer]
        window = self.c["sliding_window_size"] if local else self.t
        return attend(q, k, v, self.hd ** -0.5, lambda a, b: b > a - window)

    def gated(self, names, x, width):
        gate, up, down = names
        return self.linear(down, np.maximum(self.linear(gate, x, width), 0) * self.linear(up, x, width), self.d)

    def feed(self, at, i, x):
        at += "block_sparse_moe."
        n = self.c["moe_num_primary_experts"]
        logits = self.read @ self.w.make(at + "primary_router.weight", n, self.d, scale=self.router_scale).T
        chosen = best(logits, self.c["moe_num_active_primary_experts"])
        weight = np.take_along_axis(logits, chosen, -1)
        weight = softmax(weight) if self.c["moe_primary_router_apply_softmax"] else sigmoid(weight)
        self.c["num_experts"] = n
        return self.experts(chosen, weight / weight.sum(-1, keepdims=True), x, at + "experts", self.ff,
                            ("gate", "up", "down"))


class LoudThinker(SmallThinker):
    """Sigmoids of many products are 1 in float32: only the products themselves say which are best."""
    router_scale = 8.0


THINKER = {"architectures": ["SmallThinkerForCausalLM"], "model_type": "smallthinker",
           **{key: value for key, value in SMALL.items() if key not in ("intermediate_size", "hidden_act")},
           "head_dim": 8, "num_hidden_layers": 3, "rope_layout": [0, 1, 1], "sliding_window_layout": [0, 1, 1],
           "sliding_window_size": 7, "rope_theta": 2000.0, "moe_num_primary_experts": 4,
           "moe_num_active_primary_experts": 2, "moe_ffn_hidden_size": 8, "moe_primary_router_apply_softmax": False}


# ---- OpenELM ----

def divisible(x, by):
    """The multiple of by that is nearest to x, or the next where that is less than nine tenths of it."""
    n = max(by, int(x + by / 2) // by * by)
    return n + by if n < 0.9 * x else n


class OpenELM(Model):
    layer_stem = "transformer.layers.{}."
    embed, final = "transformer.token_embeddings.weight", "transformer.norm"
    norms, qkv, out = ("attn_norm", "ffn_norm"), "attn.qkv_proj", "attn.out_proj"

    def __init__(self, config, w, t):
        c = config
        n, groups, d, hd = c["num_transformer_layers"], c.get("num_gqa_groups", 1), c["model_dim"], c["head_dim"]
        by_layer = [int(divisible(d * by, hd * groups)) // hd for by in self.spread(c.get("qkv_multipliers", 1.0), n)]
        self.all_heads = c.get("num_query_heads") or by_layer
        self.all_kv = c.get("num_kv_heads") or [heads // groups for heads in by_layer]
        self.widths = [int(divisible(by * d, c.get("ffn_dim_divisor", 256)))
                       for by in self.spread(c.get("ffn_multipliers", 4.0), n)]
        if c.get("normalize_qk_projections"):
            self.qk_norm = "attn.q_norm", "attn.k_norm"
        super().__init__(c | {
            "hidden_size": d, "num_hidden_layers": n, "num_attention_heads": max(self.all_heads), "rms_norm_eps": 1e-6,
            "rope_theta": c.get("rope_freq_constant", 10000),
            "tie_word_embeddings": c.get("share_input_output_layers")}, w, t)

    @staticmethod
    def spread(by, n):
        """A number for each layer, of one for all, of the first and the last, or of all of them."""
        if not isinstance(by, list):
            return [by] * n
        return [round(float(x), 2) for x in np.linspace(*by, n)] if len(by) == 2 else by

    def enter(self, i):
        self.heads, self.kv, self.ff = self.all_heads[i], self.all_kv[i], self.widths[i]

    def feed(self, at, i, x):
        gate, up = np.split(self.linear(at + "ffn.proj_1", x, 2 * self.ff), 2, -1)
        return self.linear(at + "ffn.proj_2", silu(gate) * up, self.d)


OPENELM = {"architectures": ["OpenELMForCausalLM"], "model_type": "openelm", "activation_fn_name": "swish",
           "ffn_dim_divisor": 8, "ffn_multipliers": [0.5, 0.75, 1.0], "ffn_with_glu": True, "head_dim": 4,
           "max_context_length": 256, "model_dim": 32, "normalization_layer_name": "rms_norm",
           "normalize_qk_projections": True, "num_gqa_groups": 2, "num_kv_heads": [2, 3, 4],
           "num_query_heads": [4, 6, 8], "num_transformer_layers": 3, "qkv_multipliers": [0.5, 1.0],
           "rope_freq_constant": 500, "rope_max_length": 512, "share_input_output_layers": True, "vocab_size": 64}
# Rounded to two digits, the third multipliers give 6 heads and a width of 24; as they are, 8 and 32.
UNLISTED = {**{key: value for key, value in OPENELM.items() if key not in ("num_kv_heads", "num_query_heads")},
            "num_transformer_layers": 4, "qkv_multipliers": [0.503, 1.0], "ffn_multipliers": [0.35, 0.85],
            "normalize_qk_projections": False, "share_input_output_layers": False}
# One number for all layers, and what a file takes for granted that does not say more.
EVEN = {key: OPENELM[key] for key in ("architectures", "model_type", "head_dim", "ffn_dim_divisor", "vocab_size")} | {
    "model_dim": 16, "num_transformer_layers": 2, "ffn_multipliers": 1.3}


# ---- DeciLM ----

class Deci(Model):
    def more(self):
        r = self.c.get("rope_scaling") or {}
        if r.get("rope_type") == "llama3":
            turns = r["original_max_position_embeddings"] * self.f / (2 * np.pi)
            keep = np.clip((turns - r["low_freq_factor"]) / (r["high_freq_factor"] - r["low_freq_factor"]), 0, 1)
            self.f = self.f * (keep + (1 - keep) / r["factor"])
        self.qkv_bias = self.c.get("attention_bias", False)

    def linear(self, name, x, out, bias=False):
        biased = {"o_proj": self.qkv_bias, "gate_proj": self.c.get("mlp_bias"), "up_proj": self.c.get("mlp_bias"),
                  "down_proj": self.c.get("mlp_bias")}
        return super().linear(name, x, out, bias or biased.get(name.rsplit(".", 1)[1], False))

    def enter(self, i):
        if "block_configs" not in self.c:
            self.block = {"attention": {}, "ffn": {}}
            self.kv = self.c["num_key_value_heads_per_layer"][i]
            return
        self.block = self.c["block_configs"][i]
        group, by = self.block["attention"]["n_heads_in_group"], self.block["ffn"]["ffn_mult"]
        self.kv = self.heads // group if group else None
        self.ff = -(-int(2 * by * self.d / 3) // 256) * 256 if by else None

    def attention(self, at, i, h):
        own = self.block["attention"]
        if own.get("no_op"):
            return None, 0
        if own.get("replace_with_linear"):
            return None, self.linear(at + "self_attn.linear_attn", self.norm(at + self.norms[0], h), self.d)
        return super().attention(at, i, h)

    def second(self, at, i, h):
        own = self.block["ffn"]
        if own.get("no_op"):
            return 0
        if own.get("replace_with_linear"):
            return self.linear(at + "mlp.linear_mlp", self.norm(at + self.norms[1], h), self.d)
        return super().second(at, i, h)


def block(attention, ffn):
    """A layer's: heads in a group or a width's multiplier; "linear" in their place, or None for nothing."""
    def part(key, x, more):
        known = isinstance(x, (int, float))
        return {key: x if known else None, "no_op": x is None, "replace_with_linear": x == "linear"} | more

    return {"attention": part("n_heads_in_group", attention, {
                "num_sink_tokens": None, "sparsify": None, "unshifted_sink": False,
                "use_prefill_window_in_sink_attention": False, "window_length": None}),
            "ffn": part("ffn_mult", ffn, {"sparsify": None})}


NEMOTRON = {"architectures": ["DeciLMForCausalLM"], "model_type": "nemotron-nas", **SMALL, "attention_bias": False,
            "mlp_bias": False, "hidden_size": 8, "head_dim": 4, "intermediate_size": None, "num_key_value_heads": None,
            "num_hidden_layers": 5, "block_configs": [
                block(1, 28.0), block(None, 50.0), block("linear", 20.0), block(None, None), block(4, 30.0)],
            "rope_theta": 300.0, "rope_scaling": {
                "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                "original_max_position_embeddings": 16}}
DECI = {"architectures": ["DeciLMForCausalLM"], "model_type": "deci",
        **{key: value for key, value in SMALL.items() if key != "num_key_value_heads"}, "num_hidden_layers": 3,
        "num_key_value_heads_per_layer": [4, 1, 2], "rope_theta": 2000.0,
        "rope_scaling": {"type": "dynamic", "factor": 2.0}}


CASES = {
    "minicpm": (MINICPM | {"rope_scaling": LONG | {"original_max_position_embeddings": 256}}, MiniCPM),
    "minicpm_long": (MINICPM | {"rope_scaling": LONG | {"original_max_position_embeddings": 16},
                                "tie_word_embeddings": True, "num_hidden_layers": 1}, MiniCPM),
    "minicpm_experts": (MINICPM | {"rope_scaling": {"type": "linear", "factor": 2.0}, "num_experts": 4,
                                   "num_experts_per_tok": 2, "intermediate_size": 8}, MiniCPM),
    "orion": (ORION, Orion), "xverse": (XVERSE, Model), "chatglm": (CHATGLM, ChatGLM), "qwen": (QWEN, Qwen),
    "bailing_moe": (LING, Ling), "bailing_moe_v2": (LING2, Ling2),
    "baichuan": (BAICHUAN | {"z_loss_weight": 0}, Baichuan),
    "baichuan_alibi": ({**{key: value for key, value in BAICHUAN.items() if key != "max_position_embeddings"},
                        "num_attention_heads": 6, "model_max_length": 256}, Baichuan),
    "baichuan_7b": (BAICHUAN | {"hidden_size": 4, "intermediate_size": 4, "num_attention_heads": 1,
                                "num_hidden_layers": 32}, Baichuan),
    "plm": (PLM, Plm), "dbrx": (DBRX, Dbrx),
    "smallthinker": (THINKER, SmallThinker),
    "smallthinker_plain": (THINKER | {"sliding_window_layout": [0], "rope_layout": [1], "num_hidden_layers": 1,
                                      "moe_primary_router_apply_softmax": True, "tie_word_embeddings": True},
                           SmallThinker),
    "minicpm3_gguf": (MINICPM3, MiniCPM3), "deepseek_moe": (DEEPSEEK, DeepSeek),
    "arctic": (ARCTIC, Arctic),
    "smallthinker_loud": (THINKER | {"num_hidden_layers": 1, "rope_layout": [1], "sliding_window_layout": [0]},
                          LoudThinker),
    "deepseek_moe_one": (DEEPSEEK | {"num_experts_per_tok": 1, "norm_topk_prob": True}, DeepSeek),
    "openelm": (OPENELM, OpenELM), "openelm_unlisted": (UNLISTED, OpenELM), "openelm_even": (EVEN, OpenELM),
    "deci": (NEMOTRON, Deci),
    "deci_matrices": (NEMOTRON | {
        "rope_scaling": None, "num_hidden_layers": 4, "block_configs": [
            block(None, None), block("linear", "linear"), block(2, "linear"), block(1, None)]}, Deci),
    "deci_plain": ({**{key: value for key, value in NEMOTRON.items() if key != "head_dim"},
                    "num_attention_heads": 2, "num_hidden_layers": 3, "attention_bias": True, "mlp_bias": True,
                    "tie_word_embeddings": True, "rope_scaling": None, "block_configs": [
                        block(None, 28.0), block(1, None), block(2, 48.5)]}, Deci),
    "deci_7b": (DECI, Deci)}
# Of which only a few rows are kept, and attention of these layers.
SPARSE = {"baichuan_7b": [0, 15, 31], "openelm_unlisted": [0, 1, 2, 3]}


def attends(name):
    config = CASES[name][0]
    blocks = config.get("block_configs")
    if blocks:
        return [i for i, one in enumerate(blocks) if one["attention"]["n_heads_in_group"]]
    n = config.get("num_hidden_layers") or config.get("num_transformer_layers") or 2
    return SPARSE.get(name) or list(range(n))


def stacked(rows):
    """Of all layers as one array: after a layer's own heads, zeros up to the most heads of any."""
    most = max(map(len, rows))
    return [np.concatenate([p, np.zeros((most - len(p), *p.shape[1:]))]) for p in rows]


def run(name):
    config, model = CASES[name]

    def forward(w, tokens):
        rows, *others = model(dict(config), w, len(tokens)).run(tokens)
        return stacked([rows[i] for i in attends(name)]), *others
    return forward


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    make(sys.argv[1], {name: (CASES[name][0], run(name), attends(name)) for name in CASES}, first=101, sparse=SPARSE)
