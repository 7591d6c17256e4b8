#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GGUF files for tests/golden/gguf, each with what must come out of it.

    gguf_files.py DIR              makes all of them (numpy, torch, transformers, safetensors)
    gguf_files.py --tokenizers DIR makes only tok_*.gguf
    gguf_files.py --seeds DIR      makes the seeds of tests/fuzz/corpus/gguf: models of a dozen tokens (numpy)
    gguf_files.py --token-seeds DIR  makes those of tests/fuzz/corpus/tok_gguf

NAME.gguf with NAME/ref.json and NAME/ref.safetensors: tiny models with random weights, in the form that llama.cpp's
convert_hf_to_gguf.py gives them (names, order of rows, norms, metadata), with what transformers computes on the same
weights. types.gguf with types.f32: a tensor of random blocks of every format that is read, and the numbers that they
stand for, one tensor after the other in the order of their names. tok_NAME.gguf: the tokenizer of
tests/golden/tokenizers/NAME (a tokenizer.json, with the ids that are expected in its cases.json) as metadata, and those
of a model without its tensors. Written from the description of the format
("gguf.md" and the block layouts in ggml-common.h); no library of GGUF's own is used."""
import json
import math
import pathlib
import struct
import sys

import numpy as np

F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 = 0, 1, 30, 2, 3, 6, 7, 8
Q4_K, Q5_K, Q6_K = 12, 13, 14
U8, I8, U16, I16, U32, I32, FLOAT, BOOL, STRING, ARRAY, U64, I64, DOUBLE = range(13)
PLAIN = {U8: "<B", I8: "<b", U16: "<H", I16: "<h", U32: "<I", I32: "<i", FLOAT: "<f", BOOL: "<B", U64: "<Q",
         I64: "<q", DOUBLE: "<d"}


# ---- the file ----

def text(s):
    s = s.encode()
    return struct.pack("<Q", len(s)) + s


def value(kind, v):
    if kind == STRING:
        return text(v)
    if kind == ARRAY:
        item, items = v
        return struct.pack("<IQ", item, len(items)) + b"".join(value(item, x) for x in items)
    return struct.pack(PLAIN[kind], v)


def write(path, values, tensors, version=3, alignment=32):
    """values: (key, kind, value); tensors: (name, numpy shape, type number, bytes)."""
    out = [b"GGUF", struct.pack("<IQQ", version, len(tensors), len(values))]
    out += [text(k) + struct.pack("<I", kind) + value(kind, v) for k, kind, v in values]
    at = 0
    for name, shape, number, data in tensors:
        out.append(text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape)) +
                   struct.pack("<IQ", number, at))
        at += -(-len(data) // alignment) * alignment
    head = b"".join(out)
    body = b"".join(d + bytes(-len(d) % alignment) for _, _, _, d in tensors)
    pathlib.Path(path).write_bytes(head + bytes(-len(head) % alignment) + body)


# ---- blocks: packing, and the numbers that blocks stand for, both in the order of the block's bytes ----

def nibbles(q):
    """[..., 32] numbers below 16 to 16 bytes: the first half in the low nibbles."""
    return (q[..., :16] | q[..., 16:] << 4).astype(np.uint8)


def fifth(q):
    """The fifth bits of 32 numbers as 4 bytes."""
    bits = (q >> 4 & 1).astype(np.uint32)
    return (bits << np.arange(32, dtype=np.uint32)).sum(-1, dtype=np.uint32)[..., None].view(np.uint8)


def six_bits(s, t):
    """Eight pairs of numbers below 64 to 12 bytes."""
    low = np.concatenate([s[..., :4] | s[..., 4:] >> 4 << 6, t[..., :4] | t[..., 4:] >> 4 << 6,
                          (s[..., 4:] & 15) | (t[..., 4:] & 15) << 4], -1)
    return low.astype(np.uint8)


def half(x):
    return x.astype("<f2")[..., None].view(np.uint8)


def random_parts(kind, n, g):
    """Scales, numbers and so on of n blocks, as drawn."""
    f16 = lambda: (g.standard_normal(n) * 10.0 ** g.integers(-7, 2, n)).astype(np.float16)
    big = kind in (Q4_K, Q5_K, Q6_K)
    top = {Q4_0: 16, Q4_1: 16, Q5_0: 32, Q5_1: 32, Q8_0: 256, Q4_K: 16, Q5_K: 32, Q6_K: 64}[kind]
    return {"d": f16(), "m": f16(), "q": g.integers(0, top, (n, 256 if big else 32)),
            "s": g.integers(0, 64, (n, 8)), "t": g.integers(0, 64, (n, 8)), "s8": g.integers(-128, 128, (n, 16))}


def pack(kind, p):
    """Parts to [blocks, bytes]."""
    d, m, q = half(p["d"]), half(p["m"]), p["q"]
    if kind == Q4_0:
        return np.concatenate([d, nibbles(q)], -1)
    if kind == Q4_1:
        return np.concatenate([d, m, nibbles(q)], -1)
    if kind == Q5_0:
        return np.concatenate([d, fifth(q), nibbles(q & 15)], -1)
    if kind == Q5_1:
        return np.concatenate([d, m, fifth(q), nibbles(q & 15)], -1)
    if kind == Q8_0:
        return np.concatenate([d, q.astype(np.uint8)], -1)
    n = len(q)
    if kind == Q6_K:
        q = q.reshape(n, 2, 4, 32)                                      # [half, run, place]
        low = (q[:, :, :2] & 15 | (q[:, :, 2:] & 15) << 4).reshape(n, 128)
        high = (q >> 4 << (2 * np.arange(4))[:, None]).sum(2).reshape(n, 64)
        return np.concatenate([low, high, p["s8"] & 255], -1).astype(np.uint8), d
    runs = q.reshape(n, 8, 32)
    high = ((runs >> 4 & 1) << np.arange(8)[:, None]).sum(1)
    low = (runs[:, 0::2] & 15 | (runs[:, 1::2] & 15) << 4).reshape(n, 128)
    scales = six_bits(p["s"], p["t"])
    parts = [d, m, scales] + ([high] if kind == Q5_K else []) + [low]
    return np.concatenate([x.astype(np.uint8) for x in parts], -1)


def packed(kind, p):
    b = pack(kind, p)
    return np.concatenate(b, -1).astype(np.uint8).tobytes() if isinstance(b, tuple) else b.tobytes()


def numbers(kind, p):
    """What the blocks stand for, in f32."""
    f = np.float32
    d, m, q = p["d"].astype(f)[:, None], p["m"].astype(f)[:, None], p["q"]
    if kind in (Q4_0, Q5_0):
        return d * (q - (8 if kind == Q4_0 else 16)).astype(f)
    if kind in (Q4_1, Q5_1):
        return d * q.astype(f) + m
    if kind == Q8_0:
        return d * q.astype(np.uint8).view(np.int8).astype(f)
    if kind == Q6_K:
        return d * np.repeat(p["s8"], 16, 1).astype(f) * (q - 32).astype(f)
    return d * np.repeat(p["s"], 32, 1).astype(f) * q.astype(f) - m * np.repeat(p["t"], 32, 1).astype(f)


def quantise(kind, w):
    """Parts whose numbers are near those of w [rows, cols]."""
    big = kind in (Q4_K, Q5_K, Q6_K)
    x = w.reshape(-1, 256 if big else 32).astype(np.float64)
    n = len(x)
    p = {k: np.zeros((n, k8), np.int64) for k, k8 in (("s", 8), ("t", 8), ("s8", 16))} | {"m": np.zeros(n, np.float16)}
    up = lambda a: np.maximum(a, 1e-8)
    if kind in (Q4_0, Q5_0, Q8_0):
        top, zero = {Q4_0: (7, 8), Q5_0: (15, 16), Q8_0: (127, 0)}[kind]
        p["d"] = (up(np.abs(x).max(1)) / top).astype(np.float16)
        q = np.rint(x / p["d"].astype(np.float64)[:, None]).clip(-top, top).astype(np.int64)
        p["q"] = q + zero if zero else q & 255
    elif kind in (Q4_1, Q5_1):
        top = 15 if kind == Q4_1 else 31
        p["m"] = x.min(1).astype(np.float16)
        p["d"] = (up(x.max(1) - x.min(1)) / top).astype(np.float16)
        p["q"] = np.rint((x - p["m"].astype(np.float64)[:, None]) / p["d"].astype(np.float64)[:, None]).clip(0, top)
        p["q"] = p["q"].astype(np.int64)
    elif kind == Q6_K:
        runs = x.reshape(n, 16, 16)
        scale = up(np.abs(runs).max(2)) / 31
        p["d"] = (scale.max(1) / 127).astype(np.float16)
        p["s8"] = np.rint(scale / p["d"].astype(np.float64)[:, None]).clip(1, 127).astype(np.int64)
        step = (p["s8"] * p["d"].astype(np.float64)[:, None])[..., None]
        p["q"] = (np.rint(runs / step).clip(-32, 31) + 32).astype(np.int64).reshape(n, 256)
    else:
        top = 15 if kind == Q4_K else 31
        runs = x.reshape(n, 8, 32)
        least = np.maximum(-runs.min(2), 0)
        scale = up(runs.max(2) + least) / top
        p["d"], p["m"] = ((up(a.max(1)) / 63).astype(np.float16) for a in (scale, least))
        p["s"] = np.rint(scale / p["d"].astype(np.float64)[:, None]).clip(1, 63).astype(np.int64)
        p["t"] = np.rint(least / p["m"].astype(np.float64)[:, None]).clip(0, 63).astype(np.int64)
        step = (p["s"] * p["d"].astype(np.float64)[:, None])[..., None]
        low = (p["t"] * p["m"].astype(np.float64)[:, None])[..., None]
        p["q"] = np.rint((runs + low) / step).clip(0, top).astype(np.int64).reshape(n, 256)
    return p


def encode(kind, w):
    """An array as bytes of a format, and as what comes back from them."""
    w = np.ascontiguousarray(w, dtype=np.float32)
    if kind == F32:
        return w.tobytes(), w
    if kind == F16:
        return w.astype("<f2").tobytes(), w.astype("<f2").astype(np.float32)
    if kind == BF16:
        bits = w.view(np.uint32)
        bits = (bits + 0x7fff + (bits >> 16 & 1)) >> 16
        return bits.astype("<u2").tobytes(), (bits << 16).view(np.float32)
    p = quantise(kind, w)
    return packed(kind, p), numbers(kind, p).reshape(w.shape)


def random_types(folder, seed=5):
    g = np.random.default_rng(seed)
    tensors, expected = [], []
    names = {Q4_0: "q4_0", Q4_1: "q4_1", Q5_0: "q5_0", Q5_1: "q5_1", Q8_0: "q8_0", Q4_K: "q4_k", Q5_K: "q5_k",
             Q6_K: "q6_k"}
    for kind, name in sorted(names.items(), key=lambda item: item[1]):
        width = 256 if kind in (Q4_K, Q5_K, Q6_K) else 64
        p = random_parts(kind, 3 * width // (256 if width == 256 else 32), g)
        tensors.append((name, (3, width), kind, packed(kind, p)))
        expected.append(numbers(kind, p).astype("<f4").tobytes())
    g.shuffle(tensors)
    values = [("general.architecture", STRING, "llama"), ("all.u8", U8, 200), ("all.i8", I8, -100),
              ("all.u16", U16, 60000), ("all.i16", I16, -30000), ("all.u32", U32, 4000000000), ("all.i32", I32, -5),
              ("all.f32", FLOAT, 0.25), ("all.bool", BOOL, True), ("all.string", STRING, "a word"),
              ("all.u64", U64, 2**63 + 1), ("all.i64", I64, -2**62), ("all.f64", DOUBLE, 1e300),
              ("list.strings", ARRAY, (STRING, ["", "one", "\u00fcber", "four"])), ("list.none", ARRAY, (STRING, [])),
              ("list.reals", ARRAY, (FLOAT, [0.5, -2.0])), ("list.whole", ARRAY, (I32, [3, -4, 5])),
              ("list.flags", ARRAY, (BOOL, [True, False])), ("list.lists", ARRAY, (ARRAY, [(U8, [1, 2]), (STRING, ["x"])])),
              ("general.alignment", U32, 64)]
    write(folder / "types.gguf", values, tensors, version=2, alignment=64)
    (folder / "types.f32").write_bytes(b"".join(expected))


# ---- models ----

def permuted(w, heads):
    """Rows of each head from halves to neighbours, as the converter does for the architecture llama."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def apart(w, heads):
    """Head by head q, k, v to all q, all k, all v."""
    return w.reshape(heads, 3, -1, *w.shape[1:]).swapaxes(0, 1).reshape(w.shape)


LLAMA_NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up",
    "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down"}
GEMMA_NAMES = LLAMA_NAMES | {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
                             "post_feedforward_layernorm": "post_ffw_norm"}
NEOX_NAMES = {
    "gpt_neox.embed_in": "token_embd", "gpt_neox.final_layer_norm": "output_norm", "embed_out": "output",
    "lm_head": "output", "input_layernorm": "attn_norm", "attention.query_key_value": "attn_qkv",
    "attention.dense": "attn_output", "post_attention_layernorm": "ffn_norm", "mlp.dense_h_to_4h": "ffn_up",
    "mlp.dense_4h_to_h": "ffn_down"}
GPT2_NAMES = {
    "transformer.wte": "token_embd", "transformer.wpe": "position_embd", "transformer.ln_f": "output_norm",
    "lm_head": "output", "ln_1": "attn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "ln_2": "ffn_norm",
    "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
BLOOM_NAMES = {
    "transformer.word_embeddings": "token_embd", "transformer.word_embeddings_layernorm": "token_embd_norm",
    "transformer.ln_f": "output_norm", "lm_head": "output", "input_layernorm": "attn_norm",
    "self_attention.query_key_value": "attn_qkv", "self_attention.dense": "attn_output",
    "post_attention_layernorm": "ffn_norm", "mlp.dense_h_to_4h": "ffn_up", "mlp.dense_4h_to_h": "ffn_down"}
NAMES = {"gemma2": GEMMA_NAMES, "gemma3": GEMMA_NAMES, "gptneox": NEOX_NAMES, "gpt2": GPT2_NAMES, "bloom": BLOOM_NAMES}


def their_name(arch, name):
    stem, end = name.rsplit(".", 1)
    for mark in ("model.layers.", "gpt_neox.layers.", "transformer.h."):
        if stem.startswith(mark):
            layer, stem = stem[len(mark):].split(".", 1)
            return f"blk.{layer}.{NAMES.get(arch, LLAMA_NAMES)[stem]}.{end}"
    return f"{NAMES.get(arch, LLAMA_NAMES)[stem]}.{end}"


def converted(arch, name, w, heads, kv_heads):
    if arch == "llama" and ".q_proj." in name:
        return permuted(w, heads)
    if arch == "llama" and ".k_proj." in name:
        return permuted(w, kv_heads)
    if arch in ("gptneox", "bloom") and "query_key_value" in name:
        return apart(w, heads)
    if arch == "gpt2" and w.ndim == 2 and (".c_" in name):
        return w.T
    if arch.startswith("gemma") and name.endswith("norm.weight"):
        return w + np.float32(1)
    return w


def restored(arch, name, w, like, heads, kv_heads):
    """The other way, for what came back from a format that loses something; never of norms, which stay f32."""
    if arch == "llama" and (".q_proj." in name or ".k_proj." in name):
        heads = heads if ".q_proj." in name else kv_heads
        return w.reshape(heads, -1, 2, *w.shape[1:]).swapaxes(1, 2).reshape(like.shape)
    if arch in ("gptneox", "bloom") and "query_key_value" in name:
        return w.reshape(3, heads, -1, *w.shape[1:]).swapaxes(0, 1).reshape(like.shape)
    return w.T if w.shape != like.shape or (arch == "gpt2" and w.ndim == 2 and ".c_" in name) else w


def rope_factors(r, dim):
    """The tensor rope_freqs.weight of LLaMA 3's scaling."""
    out = []
    for i in range(0, dim, 2):
        wave = 2 * math.pi * r["rope_theta"] ** (i / dim)
        low, high = r["low_freq_factor"], r["high_freq_factor"]
        turns = r["original_max_position_embeddings"] / wave
        s = (turns - low) / (high - low) if high > low else 2 if turns > low else -1
        out.append(1 if s > 1 else r["factor"] if s < 0 else 1 / ((1 - s) / r["factor"] + s))
    return np.array(out, np.float32)


def metadata(arch, c):
    heads = c.num_attention_heads
    dim = getattr(c, "head_dim", None) or c.hidden_size // heads
    m = [("block_count", U32, c.num_hidden_layers), ("context_length", U32, c.max_position_embeddings
                                                     if arch != "bloom" else 2048),
         ("embedding_length", U32, c.hidden_size), ("attention.head_count", U32, heads),
         ("feed_forward_length", U32, getattr(c, "intermediate_size", None) or 4 * c.hidden_size)]
    if arch in ("gpt2", "bloom", "gptneox"):
        eps = c.layer_norm_eps if arch == "gptneox" else c.layer_norm_epsilon
        m += [("attention.layer_norm_epsilon", FLOAT, eps)]
    else:
        m += [("attention.layer_norm_rms_epsilon", FLOAT, c.rms_norm_eps),
              ("attention.head_count_kv", U32, c.num_key_value_heads)]
        if dim != c.hidden_size // heads or arch.startswith("gemma"):
            m += [("attention.key_length", U32, dim), ("attention.value_length", U32, dim)]
    if arch in ("gpt2", "bloom"):
        return m
    r = c.rope_parameters
    r = r.get("full_attention", r)
    m += [("rope.freq_base", FLOAT, r["rope_theta"])]
    if arch in ("llama", "phi3", "gptneox"):
        m += [("rope.dimension_count", U32, int(dim * r.get("partial_rotary_factor", 1)))]
    if r["rope_type"] in ("linear", "yarn"):
        m += [("rope.scaling.type", STRING, r["rope_type"]), ("rope.scaling.factor", FLOAT, r["factor"])]
    if r["rope_type"] == "yarn":
        m += [("rope.scaling.original_context_length", U32, r["original_max_position_embeddings"]),
              ("rope.scaling.yarn_beta_fast", FLOAT, r["beta_fast"])]
    if r["rope_type"] == "longrope":
        original = c.original_max_position_embeddings
        m += [("rope.scaling.original_context_length", U32, original),
              ("rope.scaling.attn_factor", FLOAT,
               math.sqrt(1 + math.log(c.max_position_embeddings / original) / math.log(original)))]
    if arch == "gptneox":
        m += [("use_parallel_residual", BOOL, c.use_parallel_residual)]
    if arch == "phi3" or arch.startswith("gemma"):
        m += [("attention.sliding_window", U32, c.sliding_window or 0)]
    if arch == "gemma2":
        m += [("attn_logit_softcapping", FLOAT, c.attn_logit_softcapping),
              ("final_logit_softcapping", FLOAT, c.final_logit_softcapping)]
    if arch == "gemma3":
        m += [("attention.sliding_window_pattern", ARRAY, (BOOL, [t == "sliding_attention" for t in c.layer_types])),
              ("rope.freq_base_swa", FLOAT, c.rope_parameters["sliding_attention"]["rope_theta"])]
    return m


def cases():
    import transformers as t
    small = dict(vocab_size=64, hidden_size=16, num_attention_heads=4, num_hidden_layers=2, max_position_embeddings=64,
                 bos_token_id=1, eos_token_id=2, pad_token_id=0)
    llama = dict(small, num_key_value_heads=2, intermediate_size=24)
    rope = lambda kind, **more: {"rope_type": kind, "rope_theta": 10000.0, **more}
    llama3 = lambda low, high, original: rope("llama3", factor=8.0, low_freq_factor=low, high_freq_factor=high,
                                              original_max_position_embeddings=original)
    gemma = dict(llama, head_dim=8, query_pre_attn_scalar=8, num_key_value_heads=1, sliding_window=6)
    wide = dict(llama, hidden_size=256, head_dim=4, intermediate_size=32, num_hidden_layers=1)
    tied = dict(tie_word_embeddings=True)
    flat = dict(llama, num_hidden_layers=1, **tied)
    k_types = {"embed_tokens": Q6_K, "q_proj": Q4_K, "k_proj": Q6_K, "v_proj": Q5_K, "o_proj": F16,
               "gate_proj": Q4_K, "up_proj": Q5_K, "down_proj": Q5_0}
    old_types = {"embed_tokens": Q8_0, "q_proj": Q4_0, "k_proj": Q5_1, "v_proj": Q4_1, "o_proj": Q5_0, "gate_proj": Q4_1,
                 "up_proj": Q8_0, "down_proj": F16}
    return {  # name: (architecture, config, tokens, format of matrices)
        "llama": ("llama", t.LlamaConfig(**llama), 14, F16),
        "llama3": ("llama", t.LlamaConfig(**llama, **tied, head_dim=8, rope_parameters=llama3(1.0, 4.0, 100)), 10, BF16),
        "llama3_turns": ("llama", t.LlamaConfig(**flat, head_dim=16, rope_parameters=llama3(1.5, 12.0, 100)), 9,
                         F16),
        "llama_bias": ("llama", t.LlamaConfig(**flat, attention_bias=True, mlp_bias=True, head_dim=8, rope_parameters=llama3(
            1.0, 4.0, 40)), 9, F16),
        "llama_yarn": ("llama", t.LlamaConfig(**flat, rope_parameters=rope(
            "yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=4.0)), 12, F16),
        "qwen2": ("qwen2", t.Qwen2Config(**flat, rope_parameters=rope("linear", factor=2.0)), 12, F32),
        "qwen3": ("qwen3", t.Qwen3Config(**flat, head_dim=8), 9, F16),
        "phi3": ("phi3", t.Phi3Config(**llama, sliding_window=6, rope_parameters=rope(
            "default", partial_rotary_factor=0.5)), 12, F16),
        "gemma2": ("gemma2", t.Gemma2Config(**gemma, attn_logit_softcapping=6.0, final_logit_softcapping=5.0), 12, F16),
        "gemma3": ("gemma3", t.Gemma3TextConfig(**dict(gemma, num_hidden_layers=3), layer_types=[
            "sliding_attention", "full_attention", "sliding_attention"], rope_parameters={
                "full_attention": rope("linear", factor=4.0) | {"rope_theta": 1e6},
                "sliding_attention": rope("default")}), 12, F16),
        "gpt2": ("gpt2", t.GPT2Config(vocab_size=64, n_embd=16, n_layer=2, n_head=4, n_positions=64), 9, F16),
        "gptneox": ("gptneox", t.GPTNeoXConfig(**small, intermediate_size=48, rope_parameters=rope(
            "default", partial_rotary_factor=0.5)), 9, F16),
        "bloom": ("bloom", t.BloomConfig(vocab_size=64, hidden_size=16, n_layer=2, n_head=4), 9, F16),
        "quantised": ("llama", t.LlamaConfig(**dict(flat, hidden_size=32, intermediate_size=64)), 9, old_types),
        "quantised_k": ("llama", t.LlamaConfig(**wide, **tied), 9, k_types),
        "phi3_long": ("phi3", t.Phi3Config(
            **llama, original_max_position_embeddings=10, rope_parameters=rope(
                "longrope", short_factor=[1.0, 1.5], long_factor=[1.5, 4.0])), 14, F16),
        "llama3_step": ("llama", t.LlamaConfig(**flat, head_dim=16, rope_parameters=llama3(1.0, 1.0, 100)), 9, F16),
    }


def format_of(formats, name, w):
    if w.ndim == 1:
        return F32
    return formats if isinstance(formats, int) else next(v for k, v in formats.items() if k in name)


def convert(arch, config, model, formats):
    """The tensors of the file; the model's own become what the file holds."""
    import torch
    heads = config.num_attention_heads
    kv_heads = getattr(config, "num_key_value_heads", heads)
    tensors, seen = [], set()
    for name, p in model.named_parameters():
        w = p.detach().numpy()
        there = np.ascontiguousarray(converted(arch, name, w, heads, kv_heads))
        kind = format_of(formats, name, w)
        data, back = encode(kind, there)
        if kind != F32:
            with torch.no_grad():
                p.copy_(torch.from_numpy(np.ascontiguousarray(restored(arch, name, back, w, heads, kv_heads))))
        assert name not in seen
        seen.add(name)
        tensors.append((their_name(arch, name), there.shape, kind, data))
    r = getattr(config, "rope_parameters", None) or {}
    if r.get("rope_type") == "llama3":
        f = rope_factors(r, getattr(config, "head_dim", None) or config.hidden_size // heads)
        tensors.append(("rope_freqs.weight", f.shape, F32, f.tobytes()))
    for kind in ("long", "short") if r.get("rope_type") == "longrope" else ():
        f = np.array(r[kind + "_factor"], np.float32)
        tensors.append((f"rope_factors_{kind}.weight", f.shape, F32, f.tobytes()))
    return tensors


def make(folder):
    import torch
    import transformers
    from safetensors.torch import save_file
    from families import fill, reference
    torch.set_num_threads(1)
    for seed, (name, (arch, config, n, formats)) in enumerate(cases().items(), start=1):
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
        fill(model, seed)
        tensors = convert(arch, config, model, formats)
        values = [("general.architecture", STRING, arch), ("general.name", STRING, f"tiny {name}"),
                  ("general.alignment", U32, 32), ("general.quantization_version", U32, 2)]
        values += [(f"{arch}.{k}", kind, v) for k, kind, v in metadata(arch, config)]
        values += [("tokenizer.ggml.tokens", ARRAY, (STRING, [f"t{i}" for i in range(64)]))]
        write(folder / f"{name}.gguf", values, tensors)
        place = folder / name
        place.mkdir(exist_ok=True)
        ref, sequences = reference(model, [n], 100 + seed)
        del ref["s0.hidden"]
        save_file(ref, place / "ref.safetensors")
        (place / "ref.json").write_text(json.dumps({"sequences": sequences}) + "\n")
        if name == "llama":
            halves = [tensors[:5], tensors[5:]]
            for i, part in enumerate(halves):
                split = [("split.no", U16, i), ("split.count", U16, 2), ("split.tensors.count", I32, len(tensors))]
                write(folder / f"split-{i + 1:05}-of-00002.gguf", (values if i == 0 else []) + split, part)


# ---- tokenizers ----

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)


def vocabulary(kind, root):
    """Tokens, their types and, for the model "llama", their scores: the higher, the sooner a token is put together."""
    model = root["model"]
    ids = model["vocab"] | {a["content"]: a["id"] for a in root["added_tokens"]}
    tokens = sorted(ids, key=ids.get)
    assert [ids[t] for t in tokens] == list(range(len(tokens)))
    types = [NORMAL] * len(tokens)
    for a in root["added_tokens"]:
        types[a["id"]] = CONTROL if a["special"] else USER
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    if kind == "gpt2":
        return tokens, types, merges
    for i, t in enumerate(tokens):
        if len(t) == 6 and t.startswith("<0x"):
            types[i] = BYTE
    types[ids[model["unk_token"]]] = UNKNOWN
    scores = [0.0] * len(tokens)
    for i, merge in reversed(list(enumerate(merges))):
        scores[ids[merge.replace(" ", "")]] = -1.0 - i
    return tokens, types, scores


def tokenizer(kind, root, pre=None, bos=None, **more):
    tokens, types, third = vocabulary(kind, root)
    values = [("model", STRING, kind), ("tokens", ARRAY, (STRING, tokens)), ("token_type", ARRAY, (I32, types)),
              ("merges", ARRAY, (STRING, third)) if kind == "gpt2" else ("scores", ARRAY, (FLOAT, third))]
    values += [("pre", STRING, pre)] if pre else []
    values += [("bos_token_id", U32, tokens.index(bos))] if bos else []
    return [(f"tokenizer.ggml.{k}", *v) for k, *v in values + list(more.values())], len(tokens)


def tokenizers(folder):
    kinds = {"gpt2_bpe": dict(kind="gpt2", pre="gpt-2"), "llama2_sp": dict(kind="llama", bos="<s>"),
             "qwen2_bpe": dict(kind="gpt2", pre="qwen2", flag=("add_bos_token", BOOL, False)),
             "llama3_bpe": dict(kind="gpt2", pre="llama-bpe", bos="<|begin_of_text|>")}
    for name, how in kinds.items():
        root = json.loads((folder.parent / "tokenizers" / name / "tokenizer.json").read_text())
        values, n = tokenizer(root=root, **how)
        shape = [("block_count", 1), ("context_length", 64), ("embedding_length", 16), ("feed_forward_length", 24),
                 ("attention.head_count", 4), ("attention.head_count_kv", 2), ("vocab_size", n)]
        write(folder / f"tok_{name}.gguf", [("general.architecture", STRING, "llama"), ("general.alignment", U32, 1)] + [
            (f"llama.{k}", U32, v) for k, v in shape] + [("llama.attention.layer_norm_rms_epsilon", FLOAT, 1e-5)] + values,
              [], alignment=1)


# ---- seeds ----

def seed(folder, name, arch, more, formats, d=32, biases=False, fused=False, extra=()):
    """A model of one layer, d wide, whose matrices take turns in the formats."""
    g = np.random.default_rng(len(name))
    qkv = [("attn_q", (d, d)), ("attn_k", (d // 2, d)), ("attn_v", (d // 2, d))]
    if biases or fused:
        qkv = [("attn_qkv", (3 * d if biases else 2 * d, d))]
    shapes = [("token_embd", (12, d)), ("output_norm", (d,)), ("blk.0.attn_norm", (d,))]
    shapes += [(f"blk.0.{n}", s) for n, s in qkv] + [("blk.0.attn_output", (d, d)), ("blk.0.ffn_norm", (d,))]
    shapes += [("blk.0.ffn_up", (2 * d if fused else d, d)), ("blk.0.ffn_down", (d, d))] + list(extra)
    tensors = []
    for i, (stem, shape) in enumerate(shapes):
        w = g.standard_normal(shape).astype(np.float32)
        kind = F32 if len(shape) == 1 else formats[i % len(formats)]
        tensors.append((stem + ".weight", shape, kind, encode(kind, w)[0]))
        if biases and stem not in ("token_embd", "position_embd"):
            tensors.append((stem + ".bias", shape[:1], F32, encode(F32, w.reshape(shape[0], -1)[:, 0])[0]))
    eps = "attention.layer_norm_epsilon" if biases else "attention.layer_norm_rms_epsilon"
    values = [("block_count", U32, 1), ("embedding_length", U32, d), ("feed_forward_length", U32, d),
              ("context_length", U32, 16), ("attention.head_count", U32, 2 if d == 8 else 4), (eps, FLOAT, 1e-5)]
    values += [] if biases else [("attention.head_count_kv", U32, 1 if d == 8 else 2)]
    values = [("general.architecture", STRING, arch)] + [(f"{arch}.{k}", kind, v) for k, kind, v in values + more]
    values.append(("tokenizer.ggml.tokens", ARRAY, (STRING, [f"t{i}" for i in range(12)])))
    write(folder / name, values, tensors)


def seeds(folder):
    gate = lambda d: ("blk.0.ffn_gate", (d, d))
    norms = lambda d: [("blk.0.post_attention_norm", (d,)), ("blk.0.post_ffw_norm", (d,)), gate(d)]
    head_norms = lambda d: [("blk.0.attn_q_norm", (d,)), ("blk.0.attn_k_norm", (d,))]
    width = lambda d: [("attention.key_length", U32, d), ("attention.value_length", U32, d)]
    window = ("attention.sliding_window", U32, 4)
    seed(folder, "ok-llama", "llama", [("rope.dimension_count", U32, 8), ("expert_count", U32, 0)], [Q4_0, Q8_0],
         extra=[gate(32)])
    seed(folder, "ok-llama-f16", "llama", [("rope.scaling.type", STRING, "yarn"), ("rope.scaling.factor", FLOAT, 2)],
         [F16, BF16], 8, extra=[gate(8), ("output", (12, 8))])
    seed(folder, "ok-qwen3", "qwen3", width(8), [Q4_1, Q5_0, Q5_1], extra=[gate(32)] + head_norms(8))
    seed(folder, "ok-phi3", "phi3", [window, ("rope.dimension_count", U32, 2)], [F16], 8, fused=True)
    seed(folder, "ok-gemma2", "gemma2", width(4) + [window, ("attn_logit_softcapping", FLOAT, 5)], [F16], 8,
         extra=norms(8))
    seed(folder, "ok-gemma3", "gemma3", width(4) + [window, ("rope.freq_base_swa", FLOAT, 1e4), (
        "attention.sliding_window_pattern", ARRAY, (BOOL, [True]))], [BF16], 8, extra=norms(8) + head_norms(4))
    seed(folder, "ok-gpt2", "gpt2", [], [F16], 8, biases=True, extra=[("position_embd", (16, 8))])
    seed(folder, "ok-gptneox", "gptneox", [("use_parallel_residual", BOOL, True), ("rope.dimension_count", U32, 2)],
         [F16], 8, biases=True)
    random_types(folder)
    (folder / "types.f32").unlink()
    (folder / "types.gguf").rename(folder / "types")


def token_seeds(folder):
    """Tokenizers of a dozen tokens, with every key that is read in one of them."""
    pieces = ["<unk>", "<s>", "</s>", "\u2581", "a", "b", "ab", "\u2581a", "[x]"]
    types = [UNKNOWN, CONTROL, CONTROL] + [NORMAL] * 5 + [USER]
    scores = [0.0, 0, 0, -5, -6, -7, -1, -2, 0]
    kinds = {
        "ok-llama": ("llama", pieces, types, scores, [("add_space_prefix", BOOL, False), ("bos_token_id", U32, 1)]),
        "ok-t5": ("t5", pieces, types, scores, [("remove_extra_whitespaces", BOOL, True), ("eos_token_id", U32, 2),
                                                ("unknown_token_id", U32, 0)]),
        "ok-bytes": ("llama", [f"<0x{i:02X}>" for i in range(256)] + pieces, [BYTE] * 256 + types, [0.0] * 256 + scores,
                     [("bos_token_id", U32, 257), ("eos_token_id", U32, 258), ("add_eos_token", BOOL, True)]),
        "ok-gpt2": ("gpt2", ["a", "b", "c", "\u0120", "ab", "\u0120ab", "1", "<s>", "[PAD]"], [NORMAL] * 7 + [CONTROL, UNUSED],
                    ["a b", "\u0120 ab"], [("pre", STRING, "llama-bpe"), ("bos_token_id", U32, 7)])}
    for name, (kind, tokens, types, third, more) in kinds.items():
        values = [("model", STRING, kind), ("tokens", ARRAY, (STRING, tokens)), ("token_type", ARRAY, (I32, types)),
                  ("merges", ARRAY, (STRING, third)) if kind == "gpt2" else ("scores", ARRAY, (FLOAT, third))]
        write(folder / name, [(f"tokenizer.ggml.{k}", *v) for k, *v in values + more], [])


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--token-seeds":
        token_seeds(pathlib.Path(sys.argv[2]))
        sys.exit()
    if len(sys.argv) == 3 and sys.argv[1] == "--seeds":
        seeds(pathlib.Path(sys.argv[2]))
        sys.exit()
    if len(sys.argv) == 3 and sys.argv[1] == "--tokenizers":
        tokenizers(pathlib.Path(sys.argv[2]))
        sys.exit()
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    tokenizers(pathlib.Path(sys.argv[1]))
    random_types(pathlib.Path(sys.argv[1]))
    make(pathlib.Path(sys.argv[1]))
