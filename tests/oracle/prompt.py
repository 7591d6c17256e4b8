# SPDX-License-Identifier: Apache-2.0
"""Golden runs of prompts in blocks and of positions inside the cache, by a forward pass of its own in float64: three
families (learned, rotary, ALiBi positions), every head with its own list of kept tokens.

    python3 tests/oracle/prompt.py tests/golden

writes tests/golden/session/prompt.json and prompt.safetensors, after it has reproduced the stream's golden runs
(tests/oracle/session.py), which were made by other code. Cases whose decisions hang on rounding are left out.

The rules. A token of the stream makes room, takes its place, attends. A block's tokens attend to what is kept and,
causally, to each other; then room is made as for the token behind it. Positions inside the cache: keys turn for how
many kept tokens are older (ALiBi likewise), a query stands at the end; learned ones are added once, for the place
behind the fullest head's tokens.
"""
import json
import math
import os
import sys

import numpy as np
import torch
from safetensors.numpy import save_file
from safetensors.torch import load_file

torch.set_default_dtype(torch.float64)
MARGIN = 1e-5


class Model:
    def __init__(self, folder):
        self.c = c = json.load(open(folder + "/config.json"))
        self.w = {k: v.double() for k, v in load_file(folder + "/model.safetensors").items()}
        self.kind = c["model_type"]
        self.layers = c.get("num_hidden_layers") or c["n_layer"]
        self.heads = c["num_attention_heads"]
        self.kv_heads = c.get("num_key_value_heads", self.heads)
        width = c.get("hidden_size") or c["n_embed"]
        self.d = c.get("head_dim", width // self.heads)
        self.max_pos = c.get("max_position_embeddings", 1 << 30)

    def get(self, name):
        return self.w[name] if name in self.w else self.w[name.replace("model.decoder.", "decoder.")]

    def norm(self, x, name, eps=1e-5):
        if self.kind == "llama":
            return x / torch.sqrt((x * x).mean(-1, keepdim=True) + self.c["rms_norm_eps"]) * self.get(name + ".weight")
        return torch.nn.functional.layer_norm(x, x.shape[-1:], self.get(name + ".weight"), self.get(name + ".bias"), eps)

    def linear(self, x, name):
        y = x @ self.get(name + ".weight").T
        return y + self.w[name + ".bias"] if name + ".bias" in self.w else y

    def embed(self, tokens, places):
        if self.kind == "llama":
            return self.get("model.embed_tokens.weight")[tokens]
        if self.kind == "opt":
            return (self.get("model.decoder.embed_tokens.weight")[tokens]
                    + self.get("model.decoder.embed_positions.weight")[torch.tensor(places) + 2])
        return self.norm(self.get("word_embeddings.weight")[tokens], "word_embeddings_layernorm")

    def qkv(self, l, x):
        """[n, heads, d], [n, kv_heads, d] twice; nothing turned."""
        if self.kind == "bloom":
            f = self.linear(self.norm(x, f"h.{l}.input_layernorm"), f"h.{l}.self_attention.query_key_value")
            f = f.view(len(x), self.heads, 3, self.d)
            return f[:, :, 0], f[:, :, 1], f[:, :, 2]
        p = f"model.layers.{l}." if self.kind == "llama" else f"model.decoder.layers.{l}."
        x = self.norm(x, p + ("input_layernorm" if self.kind == "llama" else "self_attn_layer_norm"))
        q, k, v = (self.linear(x, p + f"self_attn.{n}_proj") for n in "qkv")
        return (q.view(len(x), self.heads, self.d), k.view(len(x), self.kv_heads, self.d),
                v.view(len(x), self.kv_heads, self.d))

    def rest(self, l, x, mixed):
        if self.kind == "bloom":
            x = x + self.linear(mixed, f"h.{l}.self_attention.dense")
            y = self.linear(self.norm(x, f"h.{l}.post_attention_layernorm"), f"h.{l}.mlp.dense_h_to_4h")
            return x + self.linear(torch.nn.functional.gelu(y, approximate="tanh"), f"h.{l}.mlp.dense_4h_to_h")
        if self.kind == "opt":
            p = f"model.decoder.layers.{l}."
            x = x + self.linear(mixed, p + "self_attn.out_proj")
            y = torch.relu(self.linear(self.norm(x, p + "final_layer_norm"), p + "fc1"))
            return x + self.linear(y, p + "fc2")
        p = f"model.layers.{l}."
        x = x + self.linear(mixed, p + "self_attn.o_proj")
        y = self.norm(x, p + "post_attention_layernorm")
        y = torch.nn.functional.silu(self.linear(y, p + "mlp.gate_proj")) * self.linear(y, p + "mlp.up_proj")
        return x + self.linear(y, p + "mlp.down_proj")

    def logits(self, x):
        if self.kind == "bloom":
            return self.norm(x, "ln_f") @ self.get("word_embeddings.weight").T
        if self.kind == "opt":
            return self.norm(x, "model.decoder.final_layer_norm") @ self.get("model.decoder.embed_tokens.weight").T
        head = "lm_head.weight" if "lm_head.weight" in self.w else "model.embed_tokens.weight"
        return self.norm(x, "model.norm") @ self.get(head).T

    def turn(self, x, place):
        if self.kind != "llama":
            return x
        half = self.d // 2
        f = self.c["rope_theta"] ** (-2 * torch.arange(half) / self.d)
        a, b = x[..., :half], x[..., half:]
        c, s = torch.cos(place * f), torch.sin(place * f)
        return torch.cat([a * c - b * s, b * c + a * s], -1)

    def slope(self, h):
        return 2 ** (-8 * (h + 1) / self.heads) if self.kind == "bloom" else 0.0


class Close(Exception):
    pass


class Head:
    """What one KV head keeps: positions in order, rotary keys not turned."""

    def __init__(self, case):
        self.case, self.pos, self.k, self.v, self.score, self.evict = case, [], [], [], {}, {}

    def count_at(self, t):
        n, b = len(self.pos), self.case["budget"]
        return n + 1 if t < self.case["prefill"] or n < b else b

    def make_room(self, t):
        case_margin = self.case.get("margin", MARGIN)
        policy, knobs, b = self.case["name"], self.case["knobs"], self.case["budget"]
        while len(self.pos) >= b and t >= self.case["prefill"]:
            can = [p for p in self.pos if p >= knobs.get("sinks", 0) and p < t - knobs.get("recent", 0)]
            if policy in ("window", "streaming"):
                out = min(can)
            else:
                order = sorted(can, key=lambda p: (self.score[p], p))
                if len(order) > 1 and order[0] != order[1]:
                    a, b2 = self.score[order[0]], self.score[order[1]]
                    if abs(a - b2) < case_margin * max(abs(a), abs(b2)):
                        raise Close
                out = order[0]
            i = self.pos.index(out)
            self.evict[out] = t
            for x in (self.pos, self.k, self.v):
                x.pop(i)

    def observe(self, row):
        for p, a in zip(self.pos, row):
            self.score[p] = float(a) + (self.score.get(p, 0) if self.case["name"] == "h2o" else 0)


def attend(m, h, head, q, t, by_place):
    """Mixed values of the group's queries; the head observes the mean row."""
    group, rows, out = m.heads // m.kv_heads, [], []
    k, v, n = torch.stack(h.k), torch.stack(h.v), len(h.pos)
    place = torch.arange(n) if by_place else torch.tensor(h.pos)
    at = n - 1 if by_place else t
    keys = torch.stack([m.turn(k[i], place[i]) for i in range(n)])
    for g in range(group):
        s = keys @ m.turn(q[head * group + g], torch.tensor(at)) / math.sqrt(m.d)
        p = torch.softmax(s + m.slope(head * group + g) * (place - at), 0)
        rows.append(p)
        out.append(p @ v)
    h.observe(torch.stack(rows).mean(0))
    return torch.stack(out)


def run(m, case, tokens):
    """Logits of every token and evict_step; the first `prompt` tokens in blocks, the rest one by one."""
    heads = [[Head(case) for _ in range(m.kv_heads)] for _ in range(m.layers)]
    by_place, logits, t = case["positions"] == "cache", [], 0
    while t < len(tokens):
        in_block = case["block"] and t < case["prompt"]
        n = min(case["block"], case["prompt"] - t) if in_block else 1
        first = max(h.count_at(t) for l in heads for h in l) - 1 if by_place else t
        x = m.embed(torch.tensor(tokens[t:t + n]), [first + i for i in range(n)])
        for l in range(m.layers):
            q, k, v = m.qkv(l, x)
            mixed = torch.zeros(n, m.heads, m.d)
            for h, head in enumerate(heads[l]):
                for i in range(n):
                    if not in_block:
                        head.make_room(t)
                    head.pos.append(t + i), head.k.append(k[i, h]), head.v.append(v[i, h])
                    group = m.heads // m.kv_heads
                    mixed[i, h * group:(h + 1) * group] = attend(m, head, h, q[i], t + i, by_place)
                if in_block:
                    head.make_room(t + n)
            x = m.rest(l, x, mixed.reshape(n, -1))
        logits += list(m.logits(x))
        t += n
    evict = np.full((m.layers, m.kv_heads, len(tokens)), -1, np.int16)
    for l, layer in enumerate(heads):
        for h, head in enumerate(layer):
            for p, step in head.evict.items():
                evict[l, h, p] = step
    return torch.stack(logits).numpy(), evict


def parse(policy):
    name, _, rest = policy.partition(":")
    return name, {k: int(v) for k, v in (x.split("=") for x in rest.split(",") if x)}


def check(golden):
    """The stream, against what transformers computed."""
    for name in "opt", "llama_gqa":
        m, ref = Model(f"{golden}/checkpoints/{name}"), json.load(open(f"{golden}/session/{name}.json"))
        stored, done = load_file(f"{golden}/session/{name}.safetensors"), 0
        for c in ref["cases"]:
            if c["policy"].startswith("scissorhands"):
                continue
            policy, knobs = parse(c["policy"])
            if policy not in ("window", "streaming", "h2o", "tova") or len(set(c["budget"])) > 1 or "drop" in knobs:
                continue
            case = dict(name=policy, knobs=knobs, budget=c["budget"][0], prefill=c["prefill"], block=0, prompt=0,
                        positions="original", margin=0)
            logits, evict = run(m, case, c["tokens"])
            want = stored[c["name"] + ".evict_step"].numpy()[:, :, :len(c["tokens"])].astype(np.int16)
            want[want >= len(c["tokens"])] = -1
            assert (evict == want).all(), c["name"]
            nll = [-torch.log_softmax(torch.tensor(logits[i]), 0)[c["tokens"][i + 1]] for i in range(len(logits) - 1)]
            assert abs(np.array(nll) - stored[c["name"] + ".nll"].numpy()).max() < 1e-4, c["name"]
            done += 1
        assert done >= 4, done


POLICIES = ["window", "streaming:sinks=3", "h2o:recent=4,sinks=1", "tova:sinks=2,recent=2"]


def main():
    golden = sys.argv[1]
    check(golden)
    cases, kept = [], {}
    for checkpoint in "opt", "llama_gqa", "bloom":
        m = Model(f"{golden}/checkpoints/{checkpoint}")
        for policy in POLICIES:
            for positions, block in (("original", 7), ("original", 20), ("original", 44), ("cache", 0), ("cache", 9)):
                name, knobs = parse(policy)
                case = dict(name=name, knobs=knobs, budget=15, prefill=44 if block == 44 else 0, block=block, prompt=44,
                            positions=positions)
                for seed in range(40):
                    rng = np.random.default_rng(seed)
                    n = 200 if positions == "cache" and checkpoint != "bloom" and block == 0 and name in ("window", "streaming") else 64
                    tokens = [int(x) for x in np.concatenate([rng.permutation(np.arange(4, 120)) for _ in range(2)])[:n]]
                    try:
                        logits, evict = run(m, case, tokens)
                    except Close:
                        continue
                    break
                else:
                    raise SystemExit("no seed for " + str(case))
                at = sorted({0, 20, 43, 44, 63, n - 1})
                key = f"{len(cases)}"
                cases.append(dict(checkpoint=checkpoint, policy=policy, budget=15, prefill=case["prefill"], prompt=44,
                                  block=block, positions=positions, seed=seed, tokens=tokens, rows=at))
                kept[key + ".logits"] = logits[at].astype(np.float32)
                kept[key + ".evict"] = evict
    json.dump({"cases": cases}, open(f"{golden}/session/prompt.json", "w"), separators=(",", ":"))
    save_file(kept, f"{golden}/session/prompt.safetensors")
    os.chmod(f"{golden}/session/prompt.safetensors", 0o644)


main()
