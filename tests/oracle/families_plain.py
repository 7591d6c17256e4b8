#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tiny checkpoints of the newer families' ideas, with the numbers of a forward pass written down here in plain numpy.

    families_plain.py DIR          makes them in DIR

qwen3_5_moe: the gated delta rule next to gated attention, stacked experts, a shared expert behind a sigmoid. sinks
(gpt_oss): sinks, windows in turn, YaRN, clamped SwiGLU. latent (deepseek_v3): latent attention, groups of experts, a
corrected choice, shared experts. chunks (llama4): chunked layers, one without positions and with temperature.

Each folder as published, with ref.json and ref.safetensors (sN.attn of attn_layers, sN.hidden, sN.final, sN.logits).
Computed in float64 on the float32 weights that the file holds."""
import json
import pathlib
import sys

import numpy as np


class Weights(dict):
    """Random tensors, made when they are first asked for."""

    def __init__(self, seed):
        super().__init__()
        self.random = np.random.default_rng(seed)

    def make(self, name, *shape, scale=0.3, around=0.0):
        if name not in self:
            self[name] = (around + scale * self.random.standard_normal(shape)).astype(np.float32)
        return self[name].astype(np.float64)


def save(path, tensors):
    header, at = {}, 0
    for name, x in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(x.shape), "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for x in tensors.values():
            f.write(np.ascontiguousarray(x, np.float32).tobytes())


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rms(x, weight, eps=1e-6):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def turn(x, frequencies, by=1.0, in_pairs=False):
    """x [T, heads, d]: its first 2 * len(frequencies) elements, as halves or as neighbouring pairs."""
    n = len(frequencies)
    angle = np.arange(x.shape[0])[:, None, None] * frequencies
    c, s = np.cos(angle) * by, np.sin(angle) * by
    out = x.copy()
    a, b = (x[..., 0:2 * n:2], x[..., 1:2 * n:2]) if in_pairs else (x[..., :n], x[..., n:2 * n])
    if in_pairs:
        out[..., 0:2 * n:2], out[..., 1:2 * n:2] = a * c - b * s, b * c + a * s
    else:
        out[..., :n], out[..., n:2 * n] = a * c - b * s, b * c + a * s
    return out


def plain(base, d):
    return base ** (-np.arange(0, d, 2) / d)


def attend(q, k, v, scale, sees, sinks=None):
    """q [T, heads, d], k, v [T, kv heads, .]; sees(query, key). Rows [heads, T, T], what they give [T, heads, .]."""
    t, heads = q.shape[0], q.shape[1]
    group = heads // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    score = np.einsum("qhd,khd->hqk", q, k) * scale
    i = np.arange(t)
    score = np.where(sees(i[:, None], i[None, :]) & (i[None, :] <= i[:, None]), score, -np.inf)
    if sinks is not None:
        score = np.concatenate([score, np.broadcast_to(sinks[:, None, None], (heads, t, 1))], -1)
    p = softmax(score)[..., :t]
    return p, np.einsum("hqk,khd->qhd", p, v)


def everything(query, key):
    return key >= 0


def feed(w, stem, x, d, width):
    gate, up = w.make(stem + ".gate_proj.weight", width, d), w.make(stem + ".up_proj.weight", width, d)
    return (silu(x @ gate.T) * (x @ up.T)) @ w.make(stem + ".down_proj.weight", d, width).T


def best(x, n):
    """The indices of the n largest of each row."""
    return np.argsort(-x, -1, kind="stable")[:, :n]


def mix(x, chosen, weight, expert):
    """Each row's sum of weight * expert(number, row) over its chosen ones."""
    out = np.zeros_like(x)
    for t in range(len(x)):
        for number, by in zip(chosen[t], weight[t]):
            out[t] += by * expert(number, x[t])
    return out


# ---- Qwen 3.5 with experts ----

QWEN = {"architectures": ["Qwen3_5MoeForConditionalGeneration"], "model_type": "qwen3_5_moe", "text_config": {
    "model_type": "qwen3_5_moe_text", "vocab_size": 64, "hidden_size": 24, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "hidden_act": "silu", "rms_norm_eps": 1e-6,
    "max_position_embeddings": 256, "attention_bias": True, "tie_word_embeddings": False,
    "layer_types": ["linear_attention", "full_attention", "linear_attention"], "linear_conv_kernel_dim": 3,
    "linear_key_head_dim": 6, "linear_value_head_dim": 6, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
    "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 10, "shared_expert_intermediate_size": 12,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0, "partial_rotary_factor": 0.5,
                        "mrope_section": [1, 1, 0], "mrope_interleaved": True}}}


def delta_rule(w, stem, x, c):
    d, n_k, n_v = c["linear_key_head_dim"], c["linear_num_key_heads"], c["linear_num_value_heads"]
    taps, width, keys, values = c["linear_conv_kernel_dim"], x.shape[1], n_k * d, n_v * d
    mixed = x @ w.make(stem + ".in_proj_qkv.weight", 2 * keys + values, width).T
    conv = w.make(stem + ".conv1d.weight", 2 * keys + values, 1, taps, scale=0.6)[:, 0]
    padded = np.concatenate([np.zeros((taps - 1, mixed.shape[1])), mixed])
    mixed = silu(sum(padded[j:j + len(x)] * conv[:, j] for j in range(taps)))
    z = (x @ w.make(stem + ".in_proj_z.weight", values, width).T).reshape(-1, n_v, d)
    strength = sigmoid(x @ w.make(stem + ".in_proj_b.weight", n_v, width).T)
    step = x @ w.make(stem + ".in_proj_a.weight", n_v, width).T + w.make(stem + ".dt_bias", n_v)
    keep = np.exp(-np.exp(w.make(stem + ".A_log", n_v)) * np.log1p(np.exp(step)))
    q, k, v = np.split(mixed, [keys, 2 * keys], -1)
    q, k, v = q.reshape(-1, n_k, d), k.reshape(-1, n_k, d), v.reshape(-1, n_v, d)
    q, k = (y / np.sqrt((y * y).sum(-1, keepdims=True) + 1e-6) for y in (q, k))
    q = q / np.sqrt(d)
    out = np.zeros_like(v)
    for h in range(n_v):
        state = np.zeros((d, d))
        for t in range(len(x)):
            key, own = k[t, h * n_k // n_v], state * keep[t, h]
            state = own + np.outer(key, (v[t, h] - key @ own) * strength[t, h])
            out[t, h] = q[t, h * n_k // n_v] @ state
    out = rms(out, w.make(stem + ".norm.weight", d, around=1.0)) * silu(z)
    return out.reshape(len(x), values) @ w.make(stem + ".out_proj.weight", width, values).T


def gated_attention(w, stem, x, c):
    d, heads, kv, width = c["head_dim"], c["num_attention_heads"], c["num_key_value_heads"], x.shape[1]

    def product(name, out):
        return x @ w.make(f"{stem}.{name}.weight", out, width).T + w.make(f"{stem}.{name}.bias", out)

    both = product("q_proj", 2 * heads * d).reshape(-1, heads, 2 * d)
    q, gate = both[..., :d], both[..., d:]
    k, v = product("k_proj", kv * d).reshape(-1, kv, d), product("v_proj", kv * d).reshape(-1, kv, d)
    q, k = rms(q, 1 + w.make(stem + ".q_norm.weight", d)), rms(k, 1 + w.make(stem + ".k_norm.weight", d))
    rope = c["rope_parameters"]
    f = plain(rope["rope_theta"], int(d * rope["partial_rotary_factor"]))
    p, y = attend(turn(q, f), turn(k, f), v, d ** -0.5, everything)
    y = (y * sigmoid(gate)).reshape(len(x), heads * d)
    return p, y @ w.make(stem + ".o_proj.weight", width, heads * d).T + w.make(stem + ".o_proj.bias", width)


def qwen_experts(w, stem, x, c):
    d, n, width = x.shape[1], c["num_experts"], c["moe_intermediate_size"]
    score = softmax(x @ w.make(stem + ".gate.weight", n, d, scale=1.0).T)
    chosen = best(score, c["num_experts_per_tok"])
    weight = np.take_along_axis(score, chosen, -1)
    weight /= weight.sum(-1, keepdims=True)
    both = w.make(stem + ".experts.gate_up_proj", n, 2 * width, d)
    down = w.make(stem + ".experts.down_proj", n, d, width)
    out = mix(x, chosen, weight, lambda i, y: down[i] @ (silu(both[i, :width] @ y) * (both[i, width:] @ y)))
    gate = sigmoid(x @ w.make(stem + ".shared_expert_gate.weight", 1, d).T)
    return out + gate * feed(w, stem + ".shared_expert", x, d, c["shared_expert_intermediate_size"])


def qwen3_5_moe(w, tokens):
    c, stem, rows, hidden = QWEN["text_config"], "model.language_model.", [], []
    d = c["hidden_size"]
    h = w.make(stem + "embed_tokens.weight", c["vocab_size"], d, scale=1.0)[tokens]
    for i, kind in enumerate(c["layer_types"]):
        layer = f"{stem}layers.{i}."
        hidden.append(h)
        x = rms(h, 1 + w.make(layer + "input_layernorm.weight", d))
        if kind == "full_attention":
            p, y = gated_attention(w, layer + "self_attn", x, c)
            rows.append(p)
        else:
            y = delta_rule(w, layer + "linear_attn", x, c)
        h = h + y
        h = h + qwen_experts(w, layer + "mlp", rms(h, 1 + w.make(layer + "post_attention_layernorm.weight", d)), c)
    final = rms(h, 1 + w.make(stem + "norm.weight", d))
    return rows, hidden, final, final @ w.make("lm_head.weight", c["vocab_size"], d).T


# ---- gpt-oss ----

OSS = {"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "vocab_size": 64, "hidden_size": 24,
       "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
       "intermediate_size": 12, "num_local_experts": 4, "num_experts_per_tok": 2, "hidden_act": "silu",
       "rms_norm_eps": 1e-5, "max_position_embeddings": 256, "initial_context_length": 64, "sliding_window": 7,
       "layer_types": ["sliding_attention", "full_attention"], "attention_bias": True, "swiglu_limit": 2.0,
       "tie_word_embeddings": False, "rope_theta": 5000.0, "rope_scaling": {
           "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 32.0,
           "beta_slow": 1.0, "truncate": False}}


def yarn(base, d, r):
    """Frequencies, and what cos and sin are multiplied by (arXiv 2309.00071)."""
    turns = [d * np.log(r["original_max_position_embeddings"] / (n * 2 * np.pi)) / (2 * np.log(base))
             for n in (r["beta_fast"], r["beta_slow"])]
    low, high = max(turns[0], 0), min(turns[1], d - 1)
    ramp = np.clip((np.arange(d // 2) - low) / (high - low), 0, 1)
    f = plain(base, d)
    return f / r["factor"] * ramp + f * (1 - ramp), 0.1 * np.log(r["factor"]) + 1


def sinks(w, tokens):
    c, rows, hidden = OSS, [], []
    d, n, width, heads, kv, hd = (c[k] for k in ("hidden_size", "num_local_experts", "intermediate_size",
                                                 "num_attention_heads", "num_key_value_heads", "head_dim"))
    f, by = yarn(c["rope_theta"], hd, c["rope_scaling"])
    h = w.make("model.embed_tokens.weight", c["vocab_size"], d, scale=1.0)[tokens]
    for i, kind in enumerate(c["layer_types"]):
        at = f"model.layers.{i}."
        hidden.append(h)
        x = rms(h, w.make(at + "input_layernorm.weight", d, around=1.0), 1e-5)

        def product(name, out, y, wide):
            return y @ w.make(f"{at}self_attn.{name}.weight", out, wide).T + w.make(f"{at}self_attn.{name}.bias", out)

        q, k, v = (product(name, m * hd, x, d).reshape(-1, m, hd)
                   for name, m in (("q_proj", heads), ("k_proj", kv), ("v_proj", kv)))
        window = c["sliding_window"] if kind == "sliding_attention" else len(tokens)
        p, y = attend(turn(q, f, by), turn(k, f, by), v, hd ** -0.5, lambda a, b: b > a - window,
                      w.make(at + "self_attn.sinks", heads, scale=1.0))
        rows.append(p)
        h = h + product("o_proj", d, y.reshape(len(tokens), heads * hd), heads * hd)
        x = rms(h, w.make(at + "post_attention_layernorm.weight", d, around=1.0), 1e-5)
        logits = x @ w.make(at + "mlp.router.weight", n, d, scale=1.0).T + w.make(at + "mlp.router.bias", n)
        chosen = best(logits, c["num_experts_per_tok"])
        both, down = (w.make(f"{at}mlp.experts.{name}", n, *shape) for name, shape in
                      (("gate_up_proj", (d, 2 * width)), ("down_proj", (width, d))))
        more = [w.make(f"{at}mlp.experts.{name}_proj_bias", n, m) for name, m in (("gate_up", 2 * width), ("down", d))]

        def expert(number, y):
            z = y @ both[number] + more[0][number]
            gate = np.minimum(z[::2], c["swiglu_limit"])
            up = np.clip(z[1::2], -c["swiglu_limit"], c["swiglu_limit"])
            return ((up + 1) * gate * sigmoid(1.702 * gate)) @ down[number] + more[1][number]

        h = h + mix(x, chosen, softmax(np.take_along_axis(logits, chosen, -1)), expert)
    final = rms(h, w.make("model.norm.weight", d, around=1.0), 1e-5)
    return rows, hidden, final, final @ w.make("lm_head.weight", c["vocab_size"], d).T


# ---- DeepSeek V3 ----

DEEPSEEK = {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "vocab_size": 64,
            "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 3, "num_key_value_heads": 3,
            "q_lora_rank": 10, "kv_lora_rank": 8, "qk_nope_head_dim": 6, "qk_rope_head_dim": 4, "v_head_dim": 5,
            "intermediate_size": 20, "moe_intermediate_size": 8, "n_routed_experts": 8, "n_shared_experts": 2,
            "num_experts_per_tok": 3, "n_group": 4, "topk_group": 2, "norm_topk_prob": True,
            "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "topk_method": "noaux_tc",
            "first_k_dense_replace": 1, "moe_layer_freq": 1, "hidden_act": "silu", "rms_norm_eps": 1e-6,
            "rope_theta": 1000.0, "rope_scaling": None, "max_position_embeddings": 256, "attention_bias": False,
            "tie_word_embeddings": False}


def latent(w, tokens):
    c, rows, hidden = DEEPSEEK, [], []
    d, heads, rank, nope, rope, dv = (c[k] for k in ("hidden_size", "num_attention_heads", "kv_lora_rank",
                                                     "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"))
    f, t = plain(c["rope_theta"], rope), len(tokens)
    h = w.make("model.embed_tokens.weight", c["vocab_size"], d, scale=1.0)[tokens]
    for i in range(c["num_hidden_layers"]):
        at = f"model.layers.{i}."
        own = at + "self_attn."
        hidden.append(h)
        x = rms(h, w.make(at + "input_layernorm.weight", d, around=1.0))
        qa = rms(x @ w.make(own + "q_a_proj.weight", c["q_lora_rank"], d).T,
                 w.make(own + "q_a_layernorm.weight", c["q_lora_rank"], around=1.0))
        q = (qa @ w.make(own + "q_b_proj.weight", heads * (nope + rope), c["q_lora_rank"]).T).reshape(t, heads, -1)
        a = x @ w.make(own + "kv_a_proj_with_mqa.weight", rank + rope, d).T
        b = (rms(a[:, :rank], w.make(own + "kv_a_layernorm.weight", rank, around=1.0)) @
             w.make(own + "kv_b_proj.weight", heads * (nope + dv), rank).T).reshape(t, heads, -1)
        shared = np.repeat(turn(a[:, None, rank:], f, in_pairs=True), heads, 1)
        q = np.concatenate([q[..., :nope], turn(q[..., nope:], f, in_pairs=True)], -1)
        p, y = attend(q, np.concatenate([b[..., :nope], shared], -1), b[..., nope:], (nope + rope) ** -0.5, everything)
        rows.append(p)
        h = h + y.reshape(t, -1) @ w.make(own + "o_proj.weight", d, heads * dv).T
        x = rms(h, w.make(at + "post_attention_layernorm.weight", d, around=1.0))
        h = h + (latent_experts(w, at + "mlp", x, c) if i >= c["first_k_dense_replace"]
                 else feed(w, at + "mlp", x, d, c["intermediate_size"]))
    final = rms(h, w.make("model.norm.weight", d, around=1.0))
    return rows, hidden, final, final @ w.make("lm_head.weight", c["vocab_size"], d).T


def latent_experts(w, stem, x, c):
    d, n, width, groups = x.shape[1], c["n_routed_experts"], c["moe_intermediate_size"], c["n_group"]
    score = sigmoid(x @ w.make(stem + ".gate.weight", n, d, scale=1.0).T)
    rank = score + w.make(stem + ".gate.e_score_correction_bias", n)
    by_group = np.sort(rank.reshape(len(x), groups, -1), -1)[..., -2:].sum(-1)
    kept = np.zeros((len(x), groups), bool)
    np.put_along_axis(kept, best(by_group, c["topk_group"]), True, -1)
    chosen = best(np.where(np.repeat(kept, n // groups, -1), rank, -np.inf), c["num_experts_per_tok"])
    weight = np.take_along_axis(score, chosen, -1)
    weight = weight / weight.sum(-1, keepdims=True) * c["routed_scaling_factor"]
    for i in range(n):                          # all are in the file, whether a token asks for them or not
        feed(w, f"{stem}.experts.{i}", x[:1], d, width)
    out = mix(x, chosen, weight, lambda i, y: feed(w, f"{stem}.experts.{i}", y[None], d, width)[0])
    return out + feed(w, stem + ".shared_experts", x, d, width * c["n_shared_experts"])


# ---- Llama 4 ----

LLAMA4 = {"architectures": ["Llama4ForCausalLM"], "model_type": "llama4_text", "vocab_size": 64, "hidden_size": 24,
          "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
          "intermediate_size": 10, "intermediate_size_mlp": 20, "num_local_experts": 4, "num_experts_per_tok": 1,
          "interleave_moe_layer_step": 1, "attention_chunk_size": 6, "no_rope_layers": [1, 1, 1, 0],
          "use_qk_norm": True, "attn_temperature_tuning": True, "attn_scale": 0.3, "floor_scale": 4,
          "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 1000.0, "rope_scaling": None,
          "max_position_embeddings": 256, "attention_bias": False, "tie_word_embeddings": False}


def chunks(w, tokens):
    c, rows, hidden, t = LLAMA4, [], [], len(tokens)
    d, heads, kv, hd, n, width = (c[k] for k in ("hidden_size", "num_attention_heads", "num_key_value_heads",
                                                 "head_dim", "num_local_experts", "intermediate_size"))
    f, chunk = plain(c["rope_theta"], hd), c["attention_chunk_size"]
    h = w.make("model.embed_tokens.weight", c["vocab_size"], d, scale=1.0)[tokens]
    for i, turns in enumerate(c["no_rope_layers"]):
        at = f"model.layers.{i}."
        hidden.append(h)
        x = rms(h, w.make(at + "input_layernorm.weight", d, around=1.0), 1e-5)
        q, k, v = ((x @ w.make(f"{at}self_attn.{name}.weight", m * hd, d).T).reshape(t, m, hd)
                   for name, m in (("q_proj", heads), ("k_proj", kv), ("v_proj", kv)))
        if turns:
            q, k = (rms(turn(y, f, in_pairs=True), 1.0, 1e-5) for y in (q, k))
        else:
            by = 1 + c["attn_scale"] * np.log1p(np.floor((np.arange(t) + 1) / c["floor_scale"]))
            q = q * by[:, None, None]
        p, y = attend(q, k, v, hd ** -0.5, (lambda a, b: b >= a // chunk * chunk) if turns else everything)
        rows.append(p)
        h = h + y.reshape(t, -1) @ w.make(at + "self_attn.o_proj.weight", d, heads * hd).T
        x = rms(h, w.make(at + "post_attention_layernorm.weight", d, around=1.0), 1e-5)
        stem = at + "feed_forward."
        logits = x @ w.make(stem + "router.weight", n, d, scale=1.0).T
        chosen = best(logits, 1)
        both = w.make(stem + "experts.gate_up_proj", n, d, 2 * width)
        down = w.make(stem + "experts.down_proj", n, width, d)
        scaled = x * sigmoid(np.take_along_axis(logits, chosen, -1))
        out = mix(scaled, chosen, np.ones((t, 1)),
                  lambda e, y: (silu(y @ both[e][:, :width]) * (y @ both[e][:, width:])) @ down[e])
        h = h + out + feed(w, stem + "shared_expert", x, d, width)
    final = rms(h, w.make("model.norm.weight", d, around=1.0), 1e-5)
    return rows, hidden, final, final @ w.make("lm_head.weight", c["vocab_size"], d).T


CASES = {"qwen3_5_moe": (QWEN, qwen3_5_moe, [1]), "sinks": (OSS, sinks, [0, 1]),
         "latent": (DEEPSEEK, latent, [0, 1, 2]), "chunks": (LLAMA4, chunks, [0, 1, 2, 3])}


def make(folder, cases, first, sparse=()):
    for seed, (name, (config, run, attends)) in enumerate(cases.items(), start=first):
        place = pathlib.Path(folder) / name
        place.mkdir(parents=True, exist_ok=True)
        w, random, tensors, sequences = Weights(seed), np.random.default_rng(100 + seed), {}, []
        for i, n in enumerate((9, 26)):
            tokens = random.integers(3, 64, n)
            rows, hidden, final, logits = run(w, tokens)
            kept = {"rows": [1, n // 2, n - 1]} if name in sparse else {}
            for what, x in (("attn", rows), ("hidden", hidden), ("final", final), ("logits", logits)):
                x = np.asarray(x, np.float32)
                tensors[f"s{i}.{what}_rows" if kept else f"s{i}.{what}"] = x[..., kept["rows"], :] if kept else x
            sequences.append({"id": f"s{i}", "tokens": tokens.tolist()} | kept)
        save(place / "model.safetensors", w)
        save(place / "ref.safetensors", tensors)
        (place / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        (place / "ref.json").write_text(json.dumps({"attn_layers": attends, "sequences": sequences}) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    make(sys.argv[1], CASES, first=1)
