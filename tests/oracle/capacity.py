#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Expected answers of the capacity calculator: tests/oracle/capacity.py > tests/golden/capacity.json

Exact arithmetic over lists of layers, written from the formulas of doc/capacity.md and not from the program:
fractions in place of doubles, one entry for each layer and KV head where the program multiplies, the facts of
the models typed in again from their papers and config files. Needs nothing but Python."""
import json
import math
from fractions import Fraction

MIB, GIB = 2**20, 2**30
INFINITE = 10**30


def plain(bits):
    return lambda n: Fraction(n * bits, 8)


def grouped(bits, group, extra):
    return lambda n: Fraction(-(-n // group) * (group * bits + extra), 8)


TYPES = {
    "f32": plain(32), "f16": plain(16), "bf16": plain(16), "f8": plain(8), "int8": plain(8),
    "int4": grouped(4, 64, 32), "int4:group=64:scale=16:zero=0": grouped(4, 64, 16),
    "int4:group=32:scale=16:zero=16": grouped(4, 32, 32), "int8:scale=32": lambda n: Fraction(n * 8 + 32, 8),
    "q8_0": grouped(8, 32, 16), "q4_0": grouped(4, 32, 16), "mxfp4": grouped(4, 32, 8), "nvfp4": grouped(4, 16, 8),
}


class Model:
    """layers: a list of (kind, KV heads, key width, value width, window, matrices, other) for each layer, where
    matrices are (copies, rows, columns, is expert) and other counts numbers that are never quantised."""

    def __init__(self, layers, heads, first, last, tied, head_rows, count, experts=0, used=0, positions=0, native=None):
        self.layers, self.heads, self.first, self.last, self.tied = layers, heads, first, last, tied
        self.head_rows, self.count, self.experts, self.used = head_rows, count, experts, used
        self.positions, self.native = positions, native
        got = first + last + sum(other + sum(c * r * k for c, r, k, _ in m) for *_, m, other in layers)
        assert got == count, (got, count)


def llama(n, hidden, heads, kv, d, ffn, vocab, count, tied=False, qkv_bias=False, qk_norm=False, norms=2, kinds=None,
          window=0, experts=0, used=0):
    layers = []
    for i in range(n):
        kind = (kinds or ["full"])[i % len(kinds or ["full"])]
        m = [(1, heads * d, hidden, 0), (1, kv * d, hidden, 0), (1, kv * d, hidden, 0), (1, hidden, heads * d, 0)]
        other = norms * hidden + (2 * d if qk_norm else 0) + ((heads + 2 * kv) * d if qkv_bias else 0)
        if experts:
            m += [(experts, ffn, hidden, 1), (experts, ffn, hidden, 1), (experts, hidden, ffn, 1)]
            other += experts * hidden
        else:
            m += [(1, ffn, hidden, 0), (1, ffn, hidden, 0), (1, hidden, ffn, 0)]
        layers.append((kind, kv, d, d, window, m, other))
    return Model(layers, heads, vocab * hidden, hidden + (0 if tied else vocab * hidden), tied, vocab * hidden, count,
                 experts, used)


def opt(n, hidden, heads, count):
    d, ffn, vocab = hidden // heads, 4 * hidden, 50272
    m = [(4, hidden, hidden, 0), (1, ffn, hidden, 0), (1, hidden, ffn, 0)]
    layer = ("full", heads, d, d, 0, m, 4 * hidden + ffn + hidden + 4 * hidden)
    return Model([layer] * n, heads, vocab * hidden + 2050 * hidden, 2 * hidden, True, vocab * hidden, count,
                 positions=2050 * hidden)


def bloom(n, hidden, heads, count):
    d, ffn, vocab = hidden // heads, 4 * hidden, 250880
    m = [(4, hidden, hidden, 0), (1, ffn, hidden, 0), (1, hidden, ffn, 0)]
    layer = ("full", heads, d, d, 0, m, 4 * hidden + ffn + hidden + 4 * hidden)
    return Model([layer] * n, heads, vocab * hidden + 2 * hidden, 2 * hidden, True, vocab * hidden, count)


def deepseek_v3():
    hidden, heads, q_rank, rank, rope, nope, v, vocab = 7168, 128, 1536, 512, 64, 128, 128, 129280
    layers = []
    for i in range(61):
        m = [(1, q_rank, hidden, 0), (1, heads * (nope + rope), q_rank, 0), (1, rank + rope, hidden, 0),
             (1, heads * (nope + v), rank, 0), (1, hidden, heads * v, 0)]
        other = 2 * hidden + q_rank + rank
        if i < 3:
            m += [(2, 18432, hidden, 0), (1, hidden, 18432, 0)]
        else:
            m += [(512, 2048, hidden, 1), (256, hidden, 2048, 1), (2, 2048, hidden, 0), (1, hidden, 2048, 0)]
            other += 256 * hidden
        layers.append(("latent", 1, rank, rope, 0, m, other))
    return Model(layers, heads, vocab * hidden, hidden + vocab * hidden, False, vocab * hidden, 671026404352, 256, 8)


def deepseek_v4(n, hidden, heads, groups, q_rank, ffn, experts, topk, ratios, count):
    """A window in every layer and, by its ratio, an entry for each 4 or 128 tokens; one vector is key and value."""
    d, window, o_rank, index, index_heads, vocab, streams = 512, 128, 1024, 128, 64, 129280, 4
    layers, pools = [], []
    for ratio in ratios:
        m = [(1, q_rank, hidden, 0), (1, heads * d, q_rank, 0), (1, d, hidden, 0),
             (1, groups * o_rank, heads * d // groups, 0), (1, hidden, groups * o_rank, 0),
             (2 * experts, ffn, hidden, 1), (experts, hidden, ffn, 1), (2, ffn, hidden, 0), (1, hidden, ffn, 0)]
        mixes = streams * (streams + 2)
        other = 2 * hidden + q_rank + d + heads + experts * hidden + 2 * (mixes * streams * hidden + mixes + 3)
        for width, is_there in ((d, ratio), (index, ratio == 4)):
            series = 2 if ratio == 4 else 1
            other += (2 * series * width * hidden + ratio * series * width + width) if is_there else 0
        if ratio == 4:
            m.append((1, index_heads * index, q_rank, 0))
            other += index_heads * hidden
        layers.append(("pooled" if ratio else "window", 1, d, 0, window, m, other))
        pools.append((ratio, index * (ratio == 4), topk * ratio))
    assert len(layers) == n
    head = streams * streams * hidden + streams + 1
    model = Model(layers, heads, vocab * hidden + head, hidden + vocab * hidden, False, vocab * hidden, count, experts, 6)
    model.pools, model.index_heads, model.positions = pools, index_heads, head
    return model


def gpt_oss(n, experts, count):
    hidden, heads, kv, d, ffn, vocab = 2880, 64, 8, 64, 2880, 201088
    layers = []
    for i in range(n):
        m = [(1, heads * d, hidden, 0), (2, kv * d, hidden, 0), (1, hidden, heads * d, 0),
             (2 * experts, ffn, hidden, 1), (experts, hidden, ffn, 1)]
        other = (heads + 2 * kv) * d + hidden + heads + 2 * hidden + experts * (hidden + 1)
        layers.append(("window" if i % 2 == 0 else "full", kv, d, d, 128, m, (other, experts * (2 * ffn + hidden))))
    flat = [layer[:6] + (sum(layer[6]),) for layer in layers]
    model = Model(flat, heads, vocab * hidden, hidden + vocab * hidden, False, vocab * hidden, count, experts, 4)
    model.expert_vectors = [layer[6][1] for layer in layers]
    model.native = "mxfp4"
    return model


def nemotron():
    hidden, vocab = 8192, 131072
    pattern = "M-M-M-M*-" + 9 * "M-M-M-M-M*-" + 5 * "M-"
    layers = []
    for letter in pattern:
        if letter == "M":
            inner, groups, state, mamba_heads = 16384, 8, 256, 256
            conv = inner + 2 * groups * state
            m = [(1, inner + conv + mamba_heads, hidden, 0), (1, hidden, inner, 0)]
            layers.append(("state", 0, 0, 0, inner * state + conv * 3, m, conv * 4 + conv + 3 * mamba_heads + inner + hidden))
        elif letter == "*":
            m = [(1, 8192, hidden, 0), (2, 1024, hidden, 0), (1, hidden, 8192, 0)]
            layers.append(("full", 8, 128, 128, 0, m, hidden))
        else:
            layers.append(("none", 0, 0, 0, 0, [(1, 32768, hidden, 0), (1, hidden, 32768, 0)], hidden))
    return Model(layers, 64, vocab * hidden, hidden + vocab * hidden, False, vocab * hidden, 56324350464)


MODELS = {
    "opt-6.7b": opt(32, 4096, 32, 6658473984), "opt-66b": opt(64, 9216, 72, 65719701504),
    "opt-175b": opt(96, 12288, 96, 174604468224), "bloom-176b": bloom(70, 14336, 112, 176247271424),
    "llama-65b": llama(80, 8192, 64, 64, 128, 22016, 32000, 65285660672),
    "llama-2-70b": llama(80, 8192, 64, 8, 128, 28672, 32000, 68976648192),
    "llama-3.1-8b": llama(32, 4096, 32, 8, 128, 14336, 128256, 8030261248),
    "llama-3.1-70b": llama(80, 8192, 64, 8, 128, 28672, 128256, 70553706496),
    "llama-3.1-405b": llama(126, 16384, 128, 8, 128, 53248, 128256, 405853388800),
    "llama-3.2-1b": llama(16, 2048, 32, 8, 64, 8192, 128256, 1235814400, tied=True),
    "mistral-7b-v0.1": llama(32, 4096, 32, 8, 128, 14336, 32000, 7241732096, kinds=["window"], window=4096),
    "mixtral-8x7b": llama(32, 4096, 32, 8, 128, 14336, 32000, 46702792704, experts=8, used=2),
    "qwen2.5-7b": llama(28, 3584, 28, 4, 128, 18944, 152064, 7615616512, qkv_bias=True),
    "qwen3-32b": llama(64, 5120, 64, 8, 128, 25600, 151936, 32762123264, qk_norm=True),
    "qwen3-235b-a22b": llama(94, 4096, 64, 4, 128, 1536, 151936, 235093634560, qk_norm=True, experts=128, used=8),
    "gemma-2-9b": llama(42, 3584, 16, 8, 256, 14336, 256000, 9241705984, tied=True, norms=4, kinds=["window", "full"],
                        window=4096),
    "gemma-3-27b": llama(62, 5376, 32, 16, 128, 21504, 262208, 27009346304, tied=True, qk_norm=True, norms=4,
                         kinds=5 * ["window"] + ["full"], window=1024),
    "deepseek-v3": deepseek_v3(),
    "deepseek-v4-flash": deepseek_v4(43, 4096, 64, 8, 1024, 2048, 256, 512, [0, 0] + 20 * [4, 128] + [4], 284332230231),
    "deepseek-v4-pro": deepseek_v4(61, 7168, 128, 16, 1536, 3072, 384, 1024, [128] + 30 * [128, 4], 1572997179491),
    "gpt-oss-20b": gpt_oss(24, 32, 20914757184),
    "gpt-oss-120b": gpt_oss(36, 128, 116829156672), "nemotron-h-56b": nemotron(),
}
MEMORY = {"A100-SXM-80GB": 81920 * MIB, "H100-SXM": 81559 * MIB, "H200-SXM": 143771 * MIB, "RTX-4090": 24564 * MIB,
          "L4": 23034 * MIB, "B200": 183359 * MIB}


def layer_bytes(model, i, weights, experts_here):
    """Numbers that are never quantised take 2 bytes; of the experts only those that are here."""
    *_, m, other = model.layers[i]
    total = Fraction(0)
    vectors = getattr(model, "expert_vectors", [0] * len(model.layers))[i]
    for copies, rows, columns, is_expert in m:
        cell = TYPES["mxfp4" if weights == "published" and is_expert and model.native else
                     "f16" if weights == "published" else weights]
        total += (Fraction(copies * experts_here, model.experts) if is_expert else copies) * rows * cell(columns)
    wide = 4 if weights == "f32" else 2
    return total + wide * (other - vectors + Fraction(vectors * experts_here, model.experts or 1))


def budget_of(case, layer, length, n_layers):
    budget = case.get("budget")
    if budget is None:
        return INFINITE
    if budget.startswith("pyramid:"):
        a, b = (int(x) for x in budget[8:].split("-"))
        exact = a + Fraction((b - a) * layer, n_layers - 1)
        return math.floor(exact + Fraction(1, 2))
    if "/" in budget:
        return int(budget.split("/")[layer])
    if "." in budget:
        return math.ceil(length * Fraction(budget))
    return sum(int(x) for x in budget.split("+"))


def kept(case, model, layer, length, evict=True):
    """(shared tokens, own tokens before paging) of a layer."""
    kind, _, _, _, window, *_ = model.layers[layer]
    page = case.get("page", 1)
    if kind in ("state", "none"):
        return 0, 0
    shared = min(case.get("prefix", 0), length) // page * page if kind != "window" else 0
    own = length - shared
    how, _, flight = case.get("windows", "model").partition(":")
    if kind == "window" and how == "model":
        own = min(length, window)
    elif kind == "window" and how == "vllm":
        own = (-(-min(window - 1 + int(flight), length) // page) + 1) * page
    elif kind == "window" and how == "llama":
        own = min(length, -(-(window + int(flight)) // 256) * 256)
    if evict:
        own = min(own, budget_of(case, layer, length - shared, len(model.layers)) + case.get("headroom", 0))
    return shared, own


def cell(case, model, layer):
    kind, kv, d_k, d_v, *_ = model.layers[layer]
    k, _, v = case.get("kv", "f16").partition("+")
    key, value = TYPES[k], TYPES[v or k]
    if kind == "latent":                # one latent and one rotary key, on every rank
        return key(d_k) + key(d_v) + case.get("state", 0)
    if hasattr(model, "pools"):         # an entry, or its part for each token, and that of the index
        pool, index, _ = model.pools[layer]
        each = -(-key(d_k) // pool) if kind == "pooled" else key(d_k)
        return each + (-(-(index + 4 * -(-index // 128)) // pool) if index else 0)
    heads = -(-kv // case.get("tp", 1))
    return sum((key(d_k) + value(d_v) + case.get("state", 0) for _ in range(heads)), Fraction(0))


def sequence(case, model, layers, length, evict=True):
    """(bytes of a sequence, bytes of the shared prefix, bytes of a token)."""
    page, own_bytes, shared_bytes, token = case.get("page", 1), 0, 0, 0
    for i in layers:
        shared, own = kept(case, model, i, length, evict)
        one = cell(case, model, i)
        own_bytes += -(-own // page) * page * one
        if model.layers[i][0] == "pooled":
            own_bytes += -(-min(length, model.layers[i][4]) // page) * page * TYPES[case.get("kv", "f16")](model.layers[i][2])
        shared_bytes += shared * one
        token += one
        if model.layers[i][0] == "state":
            own_bytes += -(-model.layers[i][4] // case.get("tp", 1)) * (4 if case.get("kv", "f16").startswith("f32") else 2)
    return own_bytes, shared_bytes, token


def stages(case, model):
    n, pp = len(model.layers), case.get("pp", 1)
    return [range(i * n // pp, (i + 1) * n // pp) for i in range(pp)]


def adapter(case, model, layers):
    """Parameters of one LoRA adapter on one GPU. The matrices of llama() are queries, keys, values, output, and those of
    the block; each has a pair with one factor on every GPU and one that is cut as the matrix."""
    tp, n = case.get("tp", 1), 0
    for kind, kv, d_k, _, _, m, _ in (model.layers[i] for i in layers):
        for j, (_, rows, columns, is_expert) in enumerate(m):
            if is_expert:
                continue
            cut = -(-model.heads // tp) * d_k if j in (0, 3) else -(-kv // tp) * d_k if j in (1, 2) else \
                -(-(rows if j < 6 else columns) // tp)
            n += (rows if j in (3, 6) else columns) + cut
    return n * case["rank"]


def stage_weights(case, model, i, layers):
    tp, ep, pp, weights = case.get("tp", 1), case.get("ep", 1), case.get("pp", 1), case.get("weights", "published")
    here = -(-model.experts // ep)
    wide = 4 if weights == "f32" else 2
    total = sum((layer_bytes(model, k, weights, here) for k in layers), Fraction(0))
    if i == 0:
        total += wide * model.first
    if i == pp - 1:
        total += wide * (model.last + (model.head_rows if model.tied and pp > 1 else 0))
    return math.ceil(total / tp) + (case["lora"] * 2 * adapter(case, model, layers) if "lora" in case else 0)


def answer(case, only_batch=False):
    model, ep, pp, tp = MODELS[case["model"]], case.get("ep", 1), case.get("pp", 1), case.get("tp", 1)
    memory, length = case.get("memory") or MEMORY[case["gpu"]], case["length"]
    limit = math.floor(memory * Fraction(str(case.get("util", 1))))
    draft = MODELS.get(case.get("draft"))
    parts = []
    for i, layers in enumerate(stages(case, model)):
        weights = stage_weights(case, model, i, layers)
        extra = lambda n: (0, 0)
        if draft and i == pp - 1:
            alone = {k: v for k, v in case.items() if k not in ("budget", "headroom", "state", "pp", "ep", "weights")}
            weights += stage_weights(alone, draft, 0, range(len(draft.layers)))
            extra = lambda n: sequence(alone, draft, range(len(draft.layers)), n)[:2]
        parts.append((layers, weights, extra))

    def batch(n, evict=True):
        best = []
        for layers, weights, extra in parts:
            own, shared, _ = sequence(case, model, layers, n, evict)
            own, shared = own + extra(n)[0], shared + extra(n)[1]
            room = max(0, limit - weights - case.get("overhead", 0))
            best.append(max(0, (room - shared) // own) if room >= shared else 0)
        return min(best), best.index(min(best))

    most, fullest = batch(length)
    if only_batch:
        return most * ep
    low, high = 0, 2**30
    want = -(-case.get("batch", 1) // ep)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if batch(middle)[0] >= want else (low, middle - 1)
    layers, weights, extra = parts[fullest]
    own, shared, token = sequence(case, model, layers, length)
    room = max(0, limit - weights - case.get("overhead", 0))
    others = []
    for some, w, more in parts:
        whole = sequence(case, model, some, length, evict=False)[0] + more(length)[0]
        mine, prefix, _ = sequence(case, model, some, length)
        rest = max(0, limit - w - case.get("overhead", 0)) - whole - prefix - more(length)[1]
        others.append(max(0, rest // (mine + more(length)[0])))
    out = {"limit": limit, "weights": weights, "room": room, "sequence": int(own + extra(length)[0]),
           "prefix": int(shared + extra(length)[1]), "max_batch": int(most) * ep, "max_length": low}
    if not draft:
        out["token"] = int(token)
        out["with_prompt"] = int(min(others)) * ep if "budget" in case else int(most) * ep
    if "batch" in case:                 # every budget down from the length, by halves
        lowest, highest = 0, length
        while lowest < highest:
            middle = (lowest + highest + 1) // 2
            enough = answer(dict(case, budget=str(middle)), only_batch=True) >= case["batch"]
            lowest, highest = (middle, highest) if enough else (lowest, middle - 1)
        out["max_budget"] = lowest
    if pp == 1 and not draft:
        out["decode_rate"] = decode_rate(case, model, int(most) * ep, own + shared)
        out["prefill_rate"] = out["decode_rate"] and prefill_rate(case, model)
    return out


def pair(model, kind, d_k, d_v):
    """FLOPs of a query and one of the keys that it reads: its scores, and its part of the result."""
    return 2 * model.heads * (2 * 512 + 64 if kind == "latent" else 2 * d_k if hasattr(model, "pools") else d_k + d_v)


def seen(model, i, kind, window, t, own):
    """Keys that the query after t tokens reads in layer i, and FLOPs of the index besides, which every rank computes.
    `own` of the keys are kept."""
    if kind != "pooled":
        return own, 0
    pool, index, most = model.pools[i]
    return min(t, window) + (min(own, most) if index else own) / pool, 2 * model.index_heads * index * own / pool


def unread(case, model):
    """Bytes of a sequence that no step reads: entries that the index does not choose."""
    bytes_ = 0
    for i, (pool, index, most) in enumerate(getattr(model, "pools", ())):
        if index:
            left = max(0, sum(kept(case, model, i, case["length"])) - most)
            bytes_ += left * -(-TYPES[case.get("kv", "f16")](model.layers[i][2]) // pool)
    return bytes_


BANDWIDTH = {"A100-SXM-80GB": 2039, "H100-SXM": 3350, "H200-SXM": 4800, "RTX-4090": 1008, "L4": 300, "B200": 7700}
PEAK = {"A100-SXM-80GB": 312, "H100-SXM": 989, "H200-SXM": 989, "RTX-4090": 165.2, "L4": 121, "B200": 2250}
PEAK8 = {"H100-SXM": 1979, "H200-SXM": 1979, "RTX-4090": 330.3, "L4": 242, "B200": 4500}


def decode_rate(case, model, most, cache):
    """Tokens a second at the largest batch (or the batch asked for); None where nothing fits."""
    if case.get("batch", 1) > most or "gpu" not in case:
        return None
    whole = case.get("batch") or most
    tp, ep, weights = case.get("tp", 1), case.get("ep", 1), case.get("weights", "published")
    each = -(-whole // ep)
    touched = 1 - (1 - model.used / model.experts) ** (each * ep) if model.experts else 0
    here = -(-model.experts // ep)
    read = flops = 0.0
    for i, (kind, kv, d_k, d_v, window, m, other) in enumerate(model.layers):
        whole_layer = float(layer_bytes(model, i, weights, here))
        without = float(layer_bytes(model, i, weights, 0)) if model.experts else whole_layer
        read += without + (whole_layer - without) * touched
        vectors = getattr(model, "expert_vectors", [0] * len(model.layers))[i]
        share = model.used / model.experts if model.experts else 0
        used = other - vectors + vectors * share + sum(c * r * k * (share if x else 1) for c, r, k, x in m)
        keys, more = seen(model, i, kind, window, case["length"], sum(kept(case, model, i, case["length"])))
        flops += 2 * used + (pair(model, kind, d_k, d_v) * keys + tp * more if kind not in ("state", "none") else 0)
    wide = 4 if weights == "f32" else 2
    read += wide * (model.last + (model.head_rows if model.tied else 0))
    flops += 2 * model.head_rows
    if model.tied:
        flops += 0
    norm = model.last - (0 if model.tied else model.head_rows)
    flops += 2 * norm
    first = model.first - model.head_rows - model.positions     # the embedding's own norm
    read += wide * first
    flops += 2 * first
    peak = (PEAK8 if weights in ("f8", "int8", "f8:block=128") and case["gpu"] in PEAK8 else PEAK)[case["gpu"]]
    lora = adapter(case, model, range(len(model.layers))) if "lora" in case else 0
    different = case["lora"] * (1 - (1 - 1 / case["lora"]) ** each) if lora else 0
    seconds = max((read / tp + 2 * lora * different + each * float(cache - unread(case, model))) / (BANDWIDTH[case["gpu"]] * 1e9),
                  each * (flops / tp + 2 * lora) / (peak * 1e12))
    return each * ep / seconds


def prefill_rate(case, model):
    """Tokens a second of one prompt alone: every query sees what came before it, in its window."""
    tp, ep, weights, length = case.get("tp", 1), case.get("ep", 1), case.get("weights", "published"), case["length"]
    touched = 1 - (1 - model.used / model.experts) ** (length * ep) if model.experts else 0
    here, wide = -(-model.experts // ep), 4 if weights == "f32" else 2
    read = flops = 0.0
    for i, (kind, kv, d_k, d_v, window, m, other) in enumerate(model.layers):
        whole = float(layer_bytes(model, i, weights, here))
        without = float(layer_bytes(model, i, weights, 0)) if model.experts else whole
        read += without + (whole - without) * touched
        vectors = getattr(model, "expert_vectors", [0] * len(model.layers))[i]
        share = model.used / model.experts if model.experts else 0
        used = other - vectors + vectors * share + sum(c * r * k * (share if x else 1) for c, r, k, x in m)
        flops += 2 * used * length
        if kind not in ("state", "none"):
            each = [seen(model, i, kind, window, t, min(t, window) if kind == "window" else t) for t in range(1, length + 1)]
            flops += sum(pair(model, kind, d_k, d_v) * keys + tp * more for keys, more in each)
    norm, first = model.last - (0 if model.tied else model.head_rows), model.first - model.head_rows - model.positions
    read += wide * (norm + model.head_rows + first)
    flops += 2 * model.head_rows + 2 * (norm + first) * length
    f8 = weights in ("f8", "int8", "f8:block=128") and case["gpu"] in PEAK8
    lora = adapter(case, model, range(len(model.layers))) if "lora" in case else 0
    return length * ep / max((read / tp + 2 * lora) / (BANDWIDTH[case["gpu"]] * 1e9),
                             (flops / tp + 2 * lora * length) / ((PEAK8 if f8 else PEAK)[case["gpu"]] * 1e12))


def cases():
    a100, h100, h200 = {"gpu": "A100-SXM-80GB"}, {"gpu": "H100-SXM", "util": 0.9}, {"gpu": "H200-SXM"}
    every = [
        ("opt-6.7b", dict(a100, length=2048)), ("opt-6.7b", dict(a100, length=2048, budget="0.2")),
        ("opt-6.7b", dict(a100, length=2048, budget="0.2", page=16)), ("opt-6.7b", dict(a100, length=2048, batch=64)),
        ("opt-6.7b", dict(a100, length=2048, batch=337)), ("gemma-3-27b", dict(h100, length=131072, batch=24)),
        ("llama-3.1-8b", dict(h100, length=131072, batch=64, page=16)),
        ("opt-6.7b", dict(a100, length=2048, budget="0.2", batch=330)),
        ("opt-66b", dict(a100, length=2048, tp=4)), ("opt-66b", dict(a100, length=2048, tp=4, budget="0.2")),
        ("opt-175b", dict(a100, length=2048, tp=8)), ("opt-175b", dict(a100, length=2048, tp=8, budget="0.2")),
        ("opt-175b", dict(length=2048, memory=640 * GIB, batch=128)),
        ("llama-65b", dict(length=2048, memory=640 * GIB, batch=128)),
        ("bloom-176b", dict(length=2048, memory=640 * GIB, batch=128)),
        ("opt-175b", dict(length=2048, memory=640 * GIB, budget="410", kv="int4")),
        ("llama-3.1-8b", dict(h100, length=131072)), ("llama-3.1-8b", dict(h100, length=131072, budget="4096")),
        ("llama-3.1-8b", dict(h100, length=131072, budget="4096", headroom=512)),
        ("llama-3.1-8b", dict(h100, length=131072, budget="4+4092", kv="f8")),
        ("llama-3.1-8b", dict(h100, length=8192, kv="q8_0+q4_0")),
        ("llama-3.1-8b", dict(h100, length=8192, kv="nvfp4", page=16)),
        ("llama-3.1-8b", dict(h100, length=8192, kv="int8:scale=32")),
        ("llama-3.1-8b", dict(h100, length=8192, kv="int4:group=64:scale=16:zero=0", weights="f8")),
        ("llama-3.1-8b", dict(h100, length=8192, kv="int4:group=32:scale=16:zero=16", weights="int4")),
        ("llama-3.1-8b", dict(h100, length=32768, budget="0.1", state=4)),
        ("llama-3.1-8b", dict(h100, length=32768, prefix=8200, page=16)),
        ("llama-3.1-8b", dict(h100, length=32768, prefix=8192, budget="0.25")),
        ("llama-3.1-8b", dict(h100, length=16384, budget="pyramid:1024-128")),
        ("llama-3.1-8b", dict(h100, length=16384, budget="/".join(str(64 + 37 * i) for i in range(32)), page=16)),
        ("llama-3.1-8b", dict(gpu="RTX-4090", length=8192, weights="f32")),
        ("llama-3.1-70b", dict(h100, length=131072)), ("llama-3.1-70b", dict(h100, length=8192, tp=4, pp=2)),
        ("llama-3.1-70b", dict(h200, length=8192, tp=2, draft="llama-3.2-1b")),
        ("llama-3.1-70b", dict(h100, length=8192, tp=2, weights="f8", overhead=3 * GIB)),
        ("llama-3.1-405b", dict(h200, length=4096, tp=8, pp=2, batch=32)),
        ("llama-3.2-1b", dict(gpu="L4", length=4096, pp=3)), ("llama-2-70b", dict(h100, length=4096, tp=8)),
        ("llama-2-70b", dict(h100, length=4096, tp=16)), ("llama-2-70b", dict(h100, length=4096, tp=3)),
        ("mistral-7b-v0.1", dict(h100, length=32768)), ("mistral-7b-v0.1", dict(h100, length=32768, windows="ignore")),
        ("mistral-7b-v0.1", dict(h100, length=32768, windows="vllm:8192", page=16)),
        ("mixtral-8x7b", dict(h200, length=8192)), ("mixtral-8x7b", dict(h100, length=8192, tp=2, ep=2, batch=16)),
        ("mixtral-8x7b", dict(h100, length=8192, tp=2, weights="mxfp4")),
        ("qwen2.5-7b", dict(h100, length=32768, budget="2048")), ("qwen3-32b", dict(h100, length=4096)),
        ("qwen3-235b-a22b", dict(h200, length=16384, tp=4)), ("qwen3-235b-a22b", dict(h200, length=16384, tp=2, ep=3)),
        ("gemma-2-9b", dict(h100, length=8192)), ("gemma-2-9b", dict(h100, length=8192, windows="vllm:2048", page=16)),
        ("gemma-3-27b", dict(h100, length=131072)), ("gemma-3-27b", dict(h100, length=131072, budget="1024")),
        ("gemma-3-27b", dict(h100, length=131072, windows="ignore")),
        ("gemma-3-27b", dict(h100, length=131072, windows="llama:512")),
        ("deepseek-v3", dict(gpu="B200", length=32768, tp=8, weights="f8")),
        ("deepseek-v3", dict(gpu="B200", length=32768, tp=2, ep=8, weights="f8", budget="0.1")),
        ("deepseek-v4-flash", dict(gpu="B200", length=131072, tp=8, weights="f8")),
        ("deepseek-v4-flash", dict(gpu="B200", length=1000, tp=4, ep=2, weights="f8", kv="f8", page=64)),
        ("deepseek-v4-flash", dict(h200, length=16384, tp=8, weights="f8", budget="0.25", batch=256)),
        ("deepseek-v4-pro", dict(gpu="B200", length=65536, tp=16, weights="f8", prefix=4096, page=16)),
        ("gpt-oss-20b", dict(h100, length=131072)), ("gpt-oss-120b", dict(h100, length=131072)),
        ("gpt-oss-120b", dict(h100, length=8192, tp=2, windows="ignore")),
        ("llama-3.1-8b", dict(h100, length=8192, lora=1, rank=16)),
        ("llama-3.1-8b", dict(h100, length=8192, lora=32, rank=64, prefix=4096, page=16)),
        ("llama-3.1-8b", dict(h100, length=8192, lora=400, rank=64)),
        ("llama-3.1-70b", dict(h200, length=8192, tp=4, lora=100, rank=32, batch=9, weights="f8")),
        ("llama-3.1-70b", dict(h100, length=8192, tp=4, pp=2, lora=10, rank=8)),
        ("llama-2-70b", dict(h100, length=4096, tp=16, lora=64, rank=16)),
        ("mixtral-8x7b", dict(h100, length=8192, tp=2, ep=2, batch=16, lora=20, rank=128)),
        ("qwen3-32b", dict(h100, length=4096, lora=5, rank=256)),
        ("nemotron-h-56b", dict(h200, length=8192)), ("nemotron-h-56b", dict(h100, length=8192, tp=4, kv="f8")),
    ]
    for model, rest in every:
        yield dict(rest, model=model)


def main():
    out = [{"case": c, "expect": answer(c)} for c in cases()]
    assert len(out) >= 40
    print("[\n" + ",\n".join(json.dumps(o) for o in out) + "\n]")


main()
