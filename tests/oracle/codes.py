# SPDX-License-Identifier: Apache-2.0
"""A live cache that evicts over rows of 8- and 4-bit codes, read from its description: numpy, in float64, every head
with its own list of kept tokens. It knows the checkpoint and the ids of a text, and nothing of what the program says.

    codes.py find CHECKPOINTS codes.json        texts for the golden cases (tests/golden/session)
    codes.py list CODES.json                    a line a case: model, policy, budget, bits, group, token ids
    codes.py check CHECKPOINTS CODES.json NUMBER kept.jsonl logits.npy

The rules. A token makes room, takes its place as codes, attends to what is kept, read back from codes, itself included;
then the policy sees the row, the mean of the query heads that share the KV head. A row of a head is cut into groups of
channels: scale = (max - min) / (2^bits - 1) and min, both rounded to f16, code = round((x - min) / scale), ties to even.

A code, a scale or a decision that hangs on the rounding of floats would differ from processor to processor. So texts are
found token by token, such that all of them stay what they are if each number is off by twice SLACK of the largest one of
its row; and `check` looks at that again, with SLACK.
"""
import copy
import json
import math
import struct
import sys

import numpy as np

SLACK, GAP = 5e-6, 5e-5         # of codes and scales; of what decides who leaves, relative
LIMIT = 5e-5                    # of logits, as a share of the largest
N, BUDGET = 44, 14
POLICIES = {
    "window": dict(rule="oldest", sinks=0, recent=0, drop=1),
    "streaming:sinks=3": dict(rule="oldest", sinks=3, recent=0, drop=1),
    "h2o:recent=3": dict(rule="sum", sinks=0, recent=3, drop=1),
    "scissorhands:window=12,recent=3,drop=4": dict(rule="low", sinks=0, recent=3, drop=4, window=12),
}
FORMATS = {"llama_gqa": 8, "opt": 8}    # numbers of a group: heads of 12 channels have 8 and 4, heads of 8 have one


class Close(Exception):
    """Something hangs on rounding."""


class Model:
    def __init__(self, folder):
        with open(folder + "/config.json") as f:
            self.c = c = json.load(f)
        with open(folder + "/model.safetensors", "rb") as f:
            header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
            data = f.read()
        self.w = {}
        for name, t in header.items():
            if name != "__metadata__":
                assert t["dtype"] == "F32", name
                numbers = np.frombuffer(data[slice(*t["data_offsets"])], "<f4")
                self.w[name] = numbers.reshape(t["shape"]).astype(np.float64)
        self.is_llama = c["model_type"] == "llama"
        self.root = "model." if self.is_llama else "model.decoder."
        self.layers, self.heads, self.vocab = c["num_hidden_layers"], c["num_attention_heads"], c["vocab_size"]
        self.kv_heads = c.get("num_key_value_heads", self.heads)
        self.d = c["hidden_size"] // self.heads

    def linear(self, x, name):
        return self.w[name + ".weight"] @ x + self.w.get(name + ".bias", 0)

    def norm(self, x, name):
        if self.is_llama:
            return x / math.sqrt((x * x).mean() + self.c["rms_norm_eps"]) * self.w[name + ".weight"]
        return (x - x.mean()) / math.sqrt(x.var() + 1e-5) * self.w[name + ".weight"] + self.w[name + ".bias"]

    def turn(self, x, position):
        """Rotary positions of the rows of x [heads, d]."""
        half = self.d // 2
        angle = position * self.c["rope_theta"] ** (-2 * np.arange(half) / self.d)
        a, b = x[:, :half], x[:, half:]
        return np.hstack([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)])

    def enter(self, token, position):
        x = self.w[self.root + "embed_tokens.weight"][token]
        return x if self.is_llama else x + self.w[self.root + "embed_positions.weight"][position + 2]

    def qkv(self, layer, x, position):
        p = f"{self.root}layers.{layer}."
        y = self.norm(x, p + ("input_layernorm" if self.is_llama else "self_attn_layer_norm"))
        q, k, v = (self.linear(y, p + f"self_attn.{n}_proj").reshape(-1, self.d) for n in "qkv")
        return (self.turn(q, position), self.turn(k, position), v) if self.is_llama else (q, k, v)

    def rest(self, layer, x, mixed):
        p = f"{self.root}layers.{layer}."
        x = x + self.linear(mixed, p + ("self_attn.o_proj" if self.is_llama else "self_attn.out_proj"))
        if not self.is_llama:
            y = self.norm(x, p + "final_layer_norm")
            return x + self.linear(np.maximum(self.linear(y, p + "fc1"), 0), p + "fc2")
        y = self.norm(x, p + "post_attention_layernorm")
        gate = self.linear(y, p + "mlp.gate_proj")
        return x + self.linear(gate / (1 + np.exp(-gate)) * self.linear(y, p + "mlp.up_proj"), p + "mlp.down_proj")

    def logits(self, x):
        return self.w[self.root + "embed_tokens.weight"] @ self.norm(x, self.root + ("norm" if self.is_llama
                                                                                      else "final_layer_norm"))


def as_f16(x, off):
    """Rounded to f16, and that whatever is added up to `off`."""
    if np.float16(x - off) != np.float16(x + off):
        raise Close
    return float(np.float16(x))


def through_codes(row, bits, group):
    """The row as it is read back."""
    off, most, out = SLACK * abs(row).max(), 2 ** bits - 1, []
    for first in range(0, len(row), group):
        x = row[first:first + group]
        scale, least = as_f16((x.max() - x.min()) / most, 2 * off / most), as_f16(x.min(), off)
        at = (x - least) / scale
        inside = (at > 0.5) & (at < most - 0.5)     # beyond the last edge a code stays what it is
        if (abs(at - np.floor(at) - 0.5)[inside] < off / scale).any() or (abs(at - 0.5) < off / scale).any() \
                or (abs(at - most + 0.5) < off / scale).any():
            raise Close
        out.append(np.clip(np.rint(at), 0, most) * scale + least)
    return np.concatenate(out)


class Head:
    def __init__(self):
        self.pos, self.k, self.v = [], [], []
        self.sum, self.low = {}, {}             # of a token: what it received; the rows that gave it little

    def leaving(self, p, t):
        """Positions that leave before token t comes."""
        if len(self.pos) < BUDGET:
            return []
        can = [j for j in self.pos if j >= p["sinks"] and j < t - p["recent"]]
        worth = {j: (0 if p["rule"] == "oldest" else self.sum[j] if p["rule"] == "sum"
                     else -sum(r >= t - p["window"] for r in self.low[j])) for j in can}
        order = sorted(can, key=lambda j: (worth[j], j))
        n = max(p["drop"], len(self.pos) - BUDGET + 1)
        if p["rule"] == "sum" and worth[order[n]] - worth[order[n - 1]] < GAP * worth[order[n]]:
            raise Close
        return order[:n]

    def make_room(self, p, t):
        for j in self.leaving(p, t):
            i = self.pos.index(j)
            for one in self.pos, self.k, self.v:
                one.pop(i)

    def observe(self, p, t, row):
        for j, a in zip(self.pos, row):
            self.sum[j] = self.sum.get(j, 0) + a
            self.low.setdefault(j, [])
            if p["rule"] == "low" and len(row) > 1 and abs(a * len(row) - 1) < GAP:
                raise Close
            if a * len(row) < 1:
                self.low[j].append(t)


class Session:
    def __init__(self, model, policy, bits, group):
        self.m, self.p, self.bits, self.group, self.t = model, POLICIES[policy], bits, group, 0
        self.head = [[Head() for _ in range(model.kv_heads)] for _ in range(model.layers)]

    def attend(self, head, q, k, v):
        head.make_room(self.p, self.t)
        head.pos.append(self.t)
        head.k.append(through_codes(k, self.bits, self.group))
        head.v.append(through_codes(v, self.bits, self.group))
        score = np.array(head.k) @ q.T / math.sqrt(self.m.d)            # [kept, queries of the group]
        share = np.exp(score - score.max(0))
        share /= share.sum(0)
        head.observe(self.p, self.t, share.mean(1))
        head.leaving(self.p, self.t + 1)                                # is the next decision a clear one, too?
        return share.T @ np.array(head.v)

    def step(self, token):
        """Logits behind it, and what each layer's heads keep when it attends."""
        m, x, group = self.m, self.m.enter(token, self.t), self.m.heads // self.m.kv_heads
        for layer in range(m.layers):
            q, k, v = m.qkv(layer, x, self.t)
            mixed = [self.attend(head, q[h * group:(h + 1) * group], k[h], v[h])
                     for h, head in enumerate(self.head[layer])]
            x = m.rest(layer, x, np.concatenate(mixed).ravel())
        self.t += 1
        return m.logits(x), [[sorted(h.pos) for h in layer] for layer in self.head]


def find_text(model, policy, bits, group, seed):
    rng, behind, tokens = np.random.default_rng(seed), [Session(model, policy, bits, group)], []
    while len(tokens) < N:
        for token in rng.permutation(np.arange(4, model.vocab)):
            s = copy.deepcopy(behind[-1], {id(model): model})
            try:
                s.step(int(token))
            except Close:
                continue
            behind.append(s)
            tokens.append(int(token))
            break
        else:                           # nothing can follow: another token in front of it
            behind.pop()
            tokens.pop()
    return tokens


def find(checkpoints, path):
    global SLACK, GAP
    SLACK, GAP, cases = 2 * SLACK, 2 * GAP, []
    for name, group in FORMATS.items():
        model = Model(f"{checkpoints}/{name}")
        for policy in POLICIES:
            for bits in 8, 4:
                cases.append({"checkpoint": name, "policy": policy, "bits": bits, "group": group, "budget": BUDGET,
                              "tokens": find_text(model, policy, bits, group, len(cases))})
    with open(path, "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


def check(checkpoints, c, kept, logits):
    model = Model(f"{checkpoints}/{c['checkpoint']}")
    s, found = Session(model, c["policy"], c["bits"], c["group"]), np.load(logits)
    want = [s.step(token) for token in c["tokens"]]             # Close: the text does not fit
    with open(kept) as f:
        lines = [json.loads(line) for line in f]
    assert len(lines) == len(want) * model.layers * model.kv_heads, len(lines)
    assert len({(x["layer"], x["head"], x["step"]) for x in lines}) == len(lines)
    for x in lines:
        wanted = want[x["step"]][1][x["layer"]][x["head"]]
        assert sorted(x["kept"]) == wanted, (x, wanted)
    left = sum(set(a[0][0]) - set(b[0][0]) != set() for (_, a), (_, b) in zip(want, want[1:]))
    assert left >= 5, left                                      # tokens did leave
    wanted = np.array([x for x, _ in want])
    assert found.shape == wanted.shape, (found.shape, wanted.shape)
    off = abs(found - wanted).max() / abs(wanted).max()
    print(f"logits off by {off:.1e} of the largest")
    assert off <= LIMIT, off


def main():
    what, args = sys.argv[1], sys.argv[2:]
    if what == "find":
        return find(*args)
    with open(args[0 if what == "list" else 1]) as f:
        cases = json.load(f)
    if what == "check":
        return check(args[0], cases[int(args[2])], *args[3:])
    for c in cases:
        print(c["checkpoint"], c["policy"], c["budget"], c["bits"], c["group"], json.dumps(c["tokens"]))


main()
