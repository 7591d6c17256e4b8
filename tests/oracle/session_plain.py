#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden runs under a KV budget of what is new in the newer families: sinks, latents, chunks and layers without
positions, by the forward passes of families_plain.py with eviction inside the loop over tokens.

    python3 tests/oracle/session_plain.py tests/golden

For each checkpoint of checkpoints/modern session/modern/NAME.json and NAME.safetensors, as session.py writes them. What a
layer keeps follows from that layer's own rows, so the layers are computed one after another, each token by token: room
is made, the token takes its place, its queries attend to what is cached and can be seen. A row of the policies is the
mean of a KV head's query heads; a sink takes part in the softmax and is then left out. The worth of a token is taken
from policies.py, in float64; cases in which a decision, a choice of experts or a greedy token hangs on rounding are
left out."""
import json
import pathlib
import sys

import numpy as np
from safetensors.numpy import load_file, save_file

import families_plain as plain
import policies

MARGIN, GREEDY, LENGTH, KEEP = 1e-4, 16, 40, 8
TRIED = ["window", "h2o", "h2o:recent=4", "tova", "tova:sinks=2,recent=3", "scissorhands:window=12,recent=3,drop=2",
         "scissorhands:window=16,recent=2,drop=0.25,threshold=i", "snapkv:recent=5,kernel=3", "streaming:sinks=2",
         "snapkv:recent=4,kernel=5,pool=max"]
# Query heads that share keys and values; of each layer its window, and whether it is a chunk.
SHAPES = {"sinks": (2, [(7, False), (0, False)]), "latent": (3, [(0, False)] * 3),
          "chunks": (2, [(6, True)] * 3 + [(0, False)])}


class Rows:
    """What policies.py looks at in a head."""

    def __init__(self, window, group, prefill):
        self.s = {"window": window, "group": group, "prefill": prefill, "rows": "live"}
        self.seed = 0


class Layer:
    """The caches of one layer's KV heads."""

    def __init__(self, text, budget, prefill, group, window, is_chunk):
        self.name, self.o = policies.parse(text)
        self.worth = policies.POLICIES[self.name][0]
        self.budget, self.prefill, self.group = budget, prefill, group
        self.window, self.is_chunk = window, is_chunk
        self.margin = np.inf

    def first_seen(self, t):
        if not self.window:
            return 0
        return t // self.window * self.window if self.is_chunk else max(0, t + 1 - self.window)

    def make_room(self, story, t, room, drop, leaves):
        over = len(story.cached) - room + 1
        dead = sorted(j for j in story.cached if j < self.first_seen(t))
        n = over if len(dead) >= over else len(dead) + max(drop, over - len(dead))
        w = self.worth(story, t, self.o)
        alive = [j for j in story.cached if j not in dead and j >= self.o.get("sinks", 0) and
                 j < t - self.o.get("recent", 0)]
        alive.sort(key=lambda j: (w[j], j))
        if len(dead) < n:
            counts = policies.POLICIES[self.name][2] == -1 or self.name == "window" or self.name == "streaming"
            self.margin = min(self.margin, policies.gap(alive, w, n - len(dead), counts, False))
        for j in (dead + alive)[:n]:
            leaves[j] = t
            story.cached.remove(j)

    def attend(self, q, k, v, scale, sinks):
        """q [T, group, d], k [T, group or 1, d]: rows [group, T, T], outputs [T, group, .], when each token leaves."""
        t_all = len(q)
        room = min([self.budget, t_all] + ([self.window] if self.window else []))
        if self.name == "full":
            room = t_all
        drop = self.o.get("drop", 1)
        drop = max(1, int(drop * room) if drop < 1 else drop)
        story = policies.Story(Rows(self.window, self.group, self.prefill), room)
        p = np.zeros((self.group, t_all, t_all))
        out, leaves = np.zeros((t_all, self.group, v.shape[-1])), [-1] * t_all
        for t in range(t_all):
            if t >= self.prefill and len(story.cached) >= room:
                self.make_room(story, t, room, drop, leaves)
            story.cached.append(t)
            seen = [j for j in story.cached if j >= self.first_seen(t)]
            row = {j: 0.0 for j in story.cached}
            for g in range(self.group):
                score = np.array([q[t, g] @ k[j, g] for j in seen]) * scale
                most = max(score.max(), sinks[g] if sinks is not None else -np.inf)
                e = np.exp(score - most)
                e /= e.sum() + (np.exp(sinks[g] - most) if sinks is not None else 0)
                p[g, t, seen] = e
                out[t, g] = e @ v[seen, g]
                for j, x in zip(seen, e):
                    row[j] += x / self.group
            story.rows.append(row)
        self.margin = min(self.margin, story.slack)
        return p, out, leaves


class Run:
    """One pass over a text: stands in for families_plain's attention."""

    def __init__(self, name, text, budget, prefill):
        self.group, self.layers = SHAPES[name]
        self.what = text, budget, prefill
        self.leaves, self.margin, self.chosen_by = [], np.inf, np.inf

    def attend(self, q, k, v, scale, sees, sinks=None):
        window, is_chunk = self.layers[len(self.leaves)]
        heads, per = q.shape[1], q.shape[1] // k.shape[1]
        k, v = np.repeat(k, per, 1), np.repeat(v, per, 1)
        rows, out, leaves = [], [], []
        for first in range(0, heads, self.group):
            own = slice(first, first + self.group)
            layer = Layer(*self.what, self.group, window, is_chunk)
            p, y, gone = layer.attend(q[:, own], k[:, own], v[:, own], scale, None if sinks is None else sinks[own])
            rows.append(p)
            out.append(y)
            leaves.append(gone)
            self.margin = min(self.margin, layer.margin)
        self.leaves.append(leaves)
        return np.concatenate(rows), np.concatenate(out, 1)

    def best(self, x, n):
        order = np.argsort(-x, -1, kind="stable")
        if n < x.shape[-1]:
            values = np.take_along_axis(x, order, -1)
            between = (values[:, n - 1] - values[:, n])[np.isfinite(values[:, n])]
            self.chosen_by = min(self.chosen_by, between.min(initial=np.inf))
        return order[:, :n]


def read(name, weights, tokens, *what):
    run = Run(name, *what)
    plain.attend, plain.best = run.attend, run.best
    logits = plain.CASES[name][1](weights, np.array(tokens))[3]
    return run, logits


def case(name, weights, tokens, *what):
    """The greedy continuation too; None: something hangs on rounding."""
    all_tokens = list(tokens)
    for _ in range(GREEDY - 1):
        _, logits = read(name, weights, all_tokens, *what)
        all_tokens.append(int(logits[-1].argmax()))
    run, logits = read(name, weights, all_tokens, *what)
    tail = np.sort(logits[len(tokens) - 1:], -1)
    sure = (tail[:, -1] - tail[:, -2]).min()
    if min(run.margin, run.chosen_by, sure) < MARGIN:
        return None
    return run.leaves, logits, all_tokens[len(tokens):] + [int(logits[-1].argmax())]


def make(golden):
    folder = golden / "session/modern"
    folder.mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate(SHAPES):
        config, weights = plain.CASES[name][0], plain.Weights(0)
        weights.update(load_file(golden / "checkpoints/modern" / name / "model.safetensors"))
        cases, tensors, left = [], {}, []
        pick = np.unique(np.linspace(0, LENGTH - 1, KEEP).round().astype(int))
        for number, text in enumerate(TRIED):
            for budget, prefill in ((8, 0), (12, 16)):
                for attempt in range(40):
                    random = np.random.default_rng([seed, number, budget, attempt])
                    tokens = random.integers(3, config["vocab_size"], LENGTH).tolist()
                    found = case(name, weights, tokens, text, budget, prefill)
                    if found:
                        break
                else:
                    left.append((text, budget))
                    continue
                leaves, logits, greedy = found
                label = f"c{len(cases)}"
                each = np.log(np.exp(logits[:LENGTH]).sum(-1))
                nll = each[:-1] - logits[np.arange(LENGTH - 1), tokens[1:]]
                cases.append({"name": label, "policy": text, "budget": [budget] * len(leaves), "prefill": prefill,
                              "tokens": tokens, "greedy": greedy, "mean_nll": float(nll.mean())})
                tensors[label + ".evict_step"] = np.array(leaves, np.int8)
                tensors[label + ".logits"] = logits[pick].astype(np.float32)
                tensors[label + ".nll"] = nll.astype(np.float32)
        print(name, len(cases), "cases; left out for want of a margin:", left)
        save_file(tensors, folder / (name + ".safetensors"))
        (folder / (name + ".safetensors")).chmod(0o644)
        (folder / (name + ".json")).write_text(json.dumps(
            {"checkpoint": "modern/" + name, "rows": pick.tolist(), "cases": cases}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    make(pathlib.Path(sys.argv[1]))
