# SPDX-License-Identifier: Apache-2.0
"""Golden kept sets of every eviction policy, by an implementation that follows the policies' descriptions
literally: at each decision every figure is taken anew from the list of all rows so far, in double.

    python3 tests/oracle/policies.py tests/golden/policies/rivals.json

Inputs are made from whole numbers by the generator below, which the test repeats; the file holds what
leaves when. Seeds are chosen so that no decision hangs on rounding: between what leaves and what stays
lies a relative gap of MARGIN at least, or an exact tie where float arithmetic is exact.
"""
import json
import math
import sys

import numpy as np

T, D, LAYER, HEAD, MARGIN = 60, 10, 6, 1, 3e-5
SYMBOLS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
MASK = (1 << 64) - 1
INF = math.inf

SCENARIOS = [
    dict(kind="random", group=1, prefill=0, window=0, rows="renormalised"),
    dict(kind="random", group=2, prefill=30, window=0, rows="renormalised"),
    dict(kind="sinks", group=2, prefill=0, window=20, rows="renormalised"),
    dict(kind="ties", group=1, prefill=0, window=0, rows="recorded"),
    dict(kind="onehot", group=1, prefill=30, window=0, rows="recorded"),
    dict(kind="uniform", group=1, prefill=0, window=0, rows="recorded"),
    dict(kind="sinks", group=2, prefill=0, window=0, rows="recorded"),
]
BUDGETS = [16, 24, 41]


# ---------------------------------------------------------------- inputs

def rng(seed, n):
    z = (seed + (n + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return z ^ z >> 31


def uniform(seed, n):
    return ((rng(seed, n) >> 11) + 0.5) * 2.0 ** -53


def weights(kind, seed, g, t, first):
    key, n = rng(seed, 1000 + g), t + 1 - first
    w = [0] * (t + 1)
    if kind == "onehot":
        w[first + rng(key, 64 * t) % n] = 1
    elif kind == "ties":
        for unit in range(16):
            w[first + rng(key, 64 * t + unit) % n] += 1
    for j in range(first, t + 1):
        if kind == "uniform":
            w[j] = 1
        elif kind in ("random", "sinks"):
            important = 1 + 64 // (1 + rng(rng(seed, 999), j) % 64)
            w[j] = (1 + 65536 // (1 + rng(key, 64 * t + j) % 4096)) * important
            if kind == "sinks" and j < 2:
                w[j] += 1 << (24 - 3 * j)
    return w


def vectors(seed, stream, n):
    key = rng(seed, 2000 + stream)
    return [[(rng(key, i * D + c) % 16 - 8 + (8 if c == 0 else 0)) / 8 for c in range(D)] for i in range(n)]


class Head:
    def __init__(self, scenario, seed):
        self.s, self.seed = scenario, seed
        self.rows = []
        for t in range(T):
            first = max(0, t + 1 - scenario["window"]) if scenario["window"] else 0
            per_head = []
            for g in range(scenario["group"]):
                w = weights(scenario["kind"], seed, g, t, first)
                total = sum(w)
                per_head.append([float(np.float32(x / total)) for x in w])
            self.rows.append(per_head)
        self.k, self.v = vectors(seed, 0, T), vectors(seed, 1, T)
        self.q = [vectors(seed, 2 + g, T) for g in range(scenario["group"])]


# ---------------------------------------------------------------- what a policy may look at

class Story:
    """One cache: rows[i][j] is what row i gave to token j, for the tokens that were cached then."""

    def __init__(self, head, budget):
        self.head, self.rows, self.cached = head, [], []
        self.prefill, self.budget = head.s["prefill"], budget
        self.slack = INF                # of comparisons other than the last one
        self.exact = head.s["rows"] == "recorded" and head.s["group"] == 1

    def received(self, j):
        return [self.rows[i][j] for i in range(j, len(self.rows))]

    def less(self, a, b):
        """a < b, noting how close it was."""
        if not self.exact:
            self.slack = min(self.slack, abs(a - b) / max(abs(a), abs(b), 1e-300))
        return a < b


def norm(x):
    return math.sqrt(sum(a * a for a in x))


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def cosine(a, b):
    return dot(a, b) / (norm(a) * norm(b)) if norm(a) and norm(b) else 0.0


# ---------------------------------------------------------------- policies: worth of token j for the decision at t

def position(s, t, o):
    return {j: float(j) for j in s.cached}


def random(s, t, o):
    key = rng(s.head.seed, LAYER << 32 | HEAD)
    return {j: uniform(key, j) for j in s.cached}


def knorm(s, t, o):
    return {j: -norm(s.head.k[j]) for j in s.cached}


def h2o(s, t, o):
    out = {}
    for j in s.cached:
        got = s.received(j)
        if o["score"] == "mean":
            out[j] = sum(got) / len(got)
        elif o["score"] == "decay":
            out[j] = sum(x * o["gamma"] ** (len(got) - 1 - i) for i, x in enumerate(got))
        else:
            out[j] = sum(got)
    return out


def observed(s, t, o):
    out = {}
    for j in s.cached:
        got = s.received(j)
        if j < s.prefill:
            got = got[:s.prefill - j]
        out[j] = sum(got) / len(got)
    return out


def vatp(s, t, o):
    return {j: sum(s.received(j)) * sum(abs(x) for x in s.head.v[j]) for j in s.cached}


def recent_of(o, budget):
    n = o.get("recent", 0)
    return int(n * budget) if n < 1 else n


def tova(s, t, o):
    return {j: s.rows[-1][j] for j in s.cached}


def roco(s, t, o):
    spread = {}
    for j in s.cached:
        got = s.received(j)
        mean = sum(got) / len(got)
        held = j < o["sinks"] or j >= t - recent_of(o, s.budget)
        spread[j] = INF if held else math.sqrt(sum((x - mean) ** 2 for x in got) / len(got))
    order = sorted(s.cached, key=lambda j: (spread[j], j))
    n = max(0, len(order) - int(o["ratio"] * s.budget))
    if 0 < n < len(order) and spread[order[n]] < INF:
        a, b = spread[order[n - 1]], spread[order[n]]
        s.slack = min(s.slack, (b - a) / b if b else 0)
    return {j: sum(s.received(j)) / len(s.received(j)) if j in order[:n] else INF for j in s.cached}


def threshold(s, i, t, which):
    window = s.head.s["window"]
    seen = [j for j in s.rows[i] if not window or j > i - window]
    return 1 / {"n": len(seen), "i": i + 1, "t": t}[which]


def low_rows(s, j, t, first, which):
    """A row of one entry holds exactly 1, which is not below 1."""
    rows = [i for i in range(max(first, j), t) if len(s.rows[i]) > 1 or which == "t"]
    return sum(s.less(s.rows[i][j], threshold(s, i, t, which)) for i in rows)


def scissorhands(s, t, o):
    w, out = o["window"], {}
    for j in s.cached:
        if o["counter"] == "epochs":
            which = "i" if o["threshold"] == "t" else o["threshold"]
            begun = (t - 1) // w * w    # the running epoch's first row
            low = low_rows(s, j, t, begun, which)
            before = low_rows(s, j, begun, begun - w, which) if begun else 0
            out[j] = -(low + before * (1 - (t - begun) / w))
        else:
            out[j] = -low_rows(s, j, t, max(0, t - w), o["threshold"])
        if o["counts"] == "rate":
            out[j] /= min(t - j, w)
    return out


def released(s, t, o):
    hits = {j: 0 for j in s.cached}
    for i in range(max(0, t - o["window"]), t):
        row = s.rows[i]
        padded = sorted(row.values())
        if o["of"] == "text":
            padded = [0.0] * (T - len(padded)) + padded
        limit = padded[int(o["percentile"] * len(padded))]
        for j in s.cached:
            if j <= i:
                if row[j] != limit:
                    s.less(limit, row[j])
                hits[j] += row[j] > limit
    return {j: float(n) for j, n in hits.items()}


def reservoir(s, t, o):
    key, out = rng(s.head.seed, LAYER << 32 | HEAD), {}
    for j in s.cached:
        seen = t - j
        weight = (seen + 1 - low_rows(s, j, t, 0, o["threshold"])) / (seen + 1)
        out[j] = math.log(uniform(key, j)) / weight
    return out


def keyformer(s, t, o):
    key, out = rng(s.head.seed, LAYER << 32 | HEAD), {j: 0.0 for j in s.cached}
    for i in range(t):
        tau = 1 + o["heat"] * (0 if i < s.prefill else i + 1 - s.prefill)
        noised = {}
        for j, p in s.rows[i].items():
            gumbel = -math.log(-math.log(uniform(rng(key, i), j)))
            noised[j] = (math.log(p) + gumbel) / tau if p > 0 else -INF
        top = max(noised.values())
        if top == -INF:
            continue
        total = sum(math.exp(x - top) for x in noised.values())
        for j in out:
            if j <= i:
                out[j] += math.exp(noised[j] - top) / total
    recents = int(o["recents"] * s.budget)
    return {j: INF if j >= t - recents else x for j, x in out.items()}


def pooled(s, score, end, kernel, pool):
    out = dict(score)
    for j in s.cached:
        if j < end:
            near = [score[k] for k in s.cached if k < end and abs(k - j) <= kernel // 2]
            out[j] = max(near) if pool == "max" else sum(near) / kernel
    return out


def snapkv(s, t, o):
    w = max(o["recent"], 1)
    votes = {j: sum(s.rows[i].get(j, 0.0) for i in range(max(0, t - w), t)) for j in s.cached}
    return pooled(s, votes, t - o["recent"], o["kernel"], o["pool"])


def expected(s, t, o):
    """When was j scored last? When it came, or at a round row behind the end of the prompt."""
    out = {}
    for j in s.cached:
        scored = max([j] + [i for i in range(j, t) if i + 1 >= s.prefill and (i + 1 - s.prefill) % o["every"] == 0])
        q = np.array([q[i] for i in range(scored + 1) for q in s.head.q])
        k = np.array(s.head.k[j])
        mean, cov = q.mean(0), np.cov(q.T, bias=True) if len(q) > 1 else np.zeros((D, D))
        out[j] = float(k @ mean / math.sqrt(D) + k @ cov @ k / (2 * D)) + math.log(norm(s.head.v[j]))
    return out


def keydiff(s, t, o):
    units = {j: np.array(s.head.k[j]) / (norm(s.head.k[j]) or 1) for j in s.cached}
    anchor = sum(units.values()) / len(units)
    return {j: -float(u @ anchor) for j, u in units.items()}


def lagkv(s, t, o):
    """Ranks are given when a lag is complete, among what is cached at that moment."""
    g, sinks = o["lag"], o["sinks"]
    out = {}
    for j in s.cached:
        lag = (j - sinks) // g
        done = sinks + (lag + 2) * g - 1                # the row that completes the next lag
        if j < sinks or done >= t:
            out[j] = INF
            continue
        there = list(s.rows[done])                      # cached then
        own = [i for i in there if 0 <= i - sinks - lag * g < g]
        following = [i for i in there if 0 <= i - sinks - (lag + 1) * g < g]
        score = {i: 0.0 for i in own}
        for x in (s.head.k, s.head.v):
            least = [min(x[i][c] for i in following) for c in range(D)]
            most = [max(x[i][c] for i in following) for c in range(D)]
            spread = {i: np.std([(x[i][c] - a) / (b - a) if b > a else 0.0 for c, (a, b) in enumerate(zip(least, most))],
                                ddof=1) for i in own}
            total = sum(math.exp(y) for y in spread.values())
            for i in own:
                score[i] += math.exp(spread[i]) / total / 2
        order = sorted(own, key=lambda i: (score[i], i))
        for a, b in zip(order, order[1:]):
            s.slack = min(s.slack, (score[b] - score[a]) / score[b])
        out[j] = float(order.index(j))
    return out


def caote(s, t, o):
    base = {j: sum(s.received(j)) if o["base"] == "h2o" else s.rows[-1][j] for j in s.cached}
    total = sum(base.values())
    p = {j: x / total if total else 0.0 for j, x in base.items()}
    v = {j: np.array(s.head.v[j]) for j in s.cached}
    centre = sum(p[j] * v[j] for j in p) if o["centre"] == "output" else sum(v.values()) / len(v)
    return {j: p[j] / (1 - p[j]) * float(np.linalg.norm(centre - v[j])) if p[j] < 1 else INF for j in p}


def rkv(s, t, o):
    w, end = max(o["recent"], 1), t - o["recent"]
    rows = [s.rows[i] for i in range(max(0, t - w), t)]
    share = {j: 0.0 for j in s.cached}
    for row in rows:
        mass = sum(row.get(j, 0.0) for j in s.cached if j < end)
        for j in share:
            share[j] += row.get(j, 0.0) / mass / len(rows) if mass else 0
    attention = pooled(s, share, end, o["kernel"], "max")
    like = {i: {j: 0.0 if i == j else cosine(s.head.k[i], s.head.k[j]) for j in s.cached} for i in s.cached}
    for i in s.cached:
        for x in like[i].values():
            s.slack = min(s.slack, abs(x - 0.5))
        alike = [j for j in s.cached if like[i][j] > 0.5]
        if alike:
            like[i][max(alike)] = 0.0
    mean = {j: sum(like[i][j] for i in s.cached) / len(s.cached) for j in s.cached}
    total = sum(math.exp(x) for x in mean.values())
    return {j: o["lambda"] * attention[j] - (1 - o["lambda"]) * math.exp(mean[j]) / total for j in s.cached}


def oracle(s, t, o):
    group = s.head.s["group"]
    return {j: sum(p[j] for i in range(t, T) for p in s.head.rows[i]) / group for j in s.cached}


BASIC = dict(sinks=0, recent=0)
SCISSORS = dict(sinks=0, recent=10, drop=0.5, window=400, threshold="n", counts="raw", counter="ring")
# name: worth, defaults, and whether worths that are equal here are so in float: 1, with dyadic rows; -1, always
# (counts, ranks, a maximum of the same token's); 0, never.
POLICIES = {
    "full": (position, {}, 1),
    "window": (position, {}, 1),
    "streaming": (position, dict(sinks=4), 1),
    "random": (random, BASIC, 0),
    "knorm": (knorm, BASIC, 1),
    "h2o": (h2o, dict(BASIC, score="sum", gamma=0.99), 1),
    "observed": (observed, BASIC, 1),
    "vatp": (vatp, dict(BASIC, sinks=1), 1),
    "tova": (tova, BASIC, 1),
    "roco": (roco, dict(sinks=4, recent=10, ratio=0.3), 0),
    "scissorhands": (scissorhands, SCISSORS, -1),
    "scissorhands-released": (released, dict(sinks=0, recent=10, window=100, percentile=0.9, of="row",
                                             first_layer=5, last_layer=35), -1),
    "reservoir": (reservoir, dict(sinks=0, recent=10, threshold="n"), 0),
    "keyformer": (keyformer, dict(sinks=0, recents=0.3, heat=0.01), 0),
    "snapkv": (snapkv, dict(sinks=0, recent=32, kernel=5, pool="mean"), -1),
    "expected": (expected, dict(sinks=4, recent=0, every=32), 0),
    "keydiff": (keydiff, dict(BASIC, drop=1), 0),
    "lagkv": (lagkv, dict(sinks=4, recent=0, lag=128), -1),
    "caote": (caote, dict(BASIC, base="h2o", centre="output"), 0),
    "r-kv": (rkv, dict(sinks=0, recent=8, drop=0.5, kernel=7, **{"lambda": 0.07}), 0),
    "oracle": (oracle, BASIC, 1),
}
TRIED = """full window streaming streaming:sinks=0 random random:sinks=2,recent=3 knorm knorm:recent=6
    h2o h2o:score=mean,recent=5 h2o:score=decay,gamma=0.5 h2o:recent=0.5 tova:sinks=2,recent=0.25
    observed observed:recent=4 vatp vatp:sinks=0,recent=4
    tova tova:sinks=2,recent=3 roco roco:sinks=0,recent=3,ratio=0.5
    roco:sinks=0,recent=0,ratio=0.9 roco:sinks=1,recent=0.4 scissorhands:window=12,recent=0.3,drop=2
    scissorhands scissorhands:window=20,drop=1 scissorhands:window=12,threshold=i,drop=3,recent=2
    scissorhands:window=12,threshold=t,drop=0.25 scissorhands:window=16,counts=rate,drop=2
    scissorhands:window=16,counter=epochs,drop=1,recent=4
    scissorhands:window=8,counter=epochs,threshold=i,drop=2,recent=4
    scissorhands-released scissorhands-released:first_layer=7 scissorhands-released:last_layer=5
    scissorhands-released:first_layer=6,last_layer=6,of=text,window=15,recent=4,percentile=0.8
    reservoir reservoir:threshold=i,recent=2 keyformer keyformer:recents=0,heat=0.1
    snapkv:recent=6 snapkv:recent=4,kernel=7,pool=max snapkv:recent=5,kernel=1,sinks=2
    expected expected:every=1,sinks=0 expected:every=8,recent=3
    keydiff keydiff:drop=0.25,recent=2 lagkv:lag=5,sinks=2 lagkv:lag=12 lagkv:lag=3,sinks=0
    caote caote:base=tova,recent=2 caote:centre=mean,sinks=1
    r-kv r-kv:recent=4,drop=1,kernel=3 r-kv:lambda=0.7,drop=2,recent=3 oracle oracle:recent=3""".split()


# ---------------------------------------------------------------- the cache

def parse(text):
    name, _, knobs = text.partition(":")
    o = dict(POLICIES[name][1])
    for item in filter(None, knobs.split(",")):
        key, value = item.split("=")
        o[key] = value if isinstance(o[key], str) else float(value) if "." in value else int(value)
    return name, o


def gap(candidates, worth, n, exact, cancels):
    """How far the n that leave are from those that stay, relative; to the largest where worths are differences."""
    if n >= len(candidates):
        return INF
    a, b = worth[candidates[n - 1]], worth[candidates[n]]
    if a == b:
        return INF if exact or a in (0.0, INF) else 0.0
    if math.isinf(a) or math.isinf(b):
        return INF
    return (b - a) / max(abs(worth[j]) for j in (candidates if cancels else candidates[n - 1:n + 1]) if abs(worth[j]) < INF)


def run(text, head, budget):
    """When each token leaves (-1: never), and the smallest margin."""
    name, o = parse(text)
    worth, _, exact = POLICIES[name]
    window, prefill = head.s["window"], head.s["prefill"]
    keeps_all = name == "full" or name == "scissorhands-released" and not o["first_layer"] <= LAYER <= o["last_layer"]
    room = min([T if keeps_all else budget, T] + ([window] if window else []))
    drop = o.get("drop", 1)
    drop, recent = max(1, int(drop * room) if drop < 1 else drop), recent_of(o, room)
    s, leaves, margin = Story(head, room), [-1] * T, INF
    exact = exact == -1 or exact and s.exact
    cancels = name in ("keydiff", "expected", "r-kv")
    for t in range(T):
        if t >= prefill and len(s.cached) >= room:
            over = len(s.cached) - room + 1
            dead = sorted(j for j in s.cached if window and j < t + 1 - window)
            n = over if len(dead) >= over else len(dead) + max(drop, over - len(dead))  # a drop is of what can be seen
            w = worth(s, t, o)
            alive = [j for j in s.cached if j not in dead and j >= o.get("sinks", 0) and j < t - recent]
            alive.sort(key=lambda j: (w[j], j))
            if len(dead) < n:
                margin = min(margin, gap(alive, w, n - len(dead), exact, cancels))
            for j in (dead + alive)[:n]:
                leaves[j] = t
                s.cached.remove(j)
        s.cached.append(t)
        row = {j: 0.0 for j in s.cached}
        for p in head.rows[t]:
            mass = sum(p[j] for j in s.cached) if head.s["rows"] == "renormalised" else 1.0
            for j in s.cached:
                row[j] += (p[j] / mass if mass else p[j]) / head.s["group"]
        s.rows.append(row)
    return leaves, min(margin, s.slack)


def main(path):
    heads, cases, refused = {}, [], []
    for text in TRIED:
        for i, scenario in enumerate(SCENARIOS):
            for budget in BUDGETS:
                for seed in range(1, 13):
                    if (i, seed) not in heads:
                        heads[i, seed] = Head(scenario, seed)
                    leaves, margin = run(text, heads[i, seed], budget)
                    if margin > MARGIN:
                        cases.append([text, i, seed, budget, "".join(SYMBOLS[x] if x >= 0 else "." for x in leaves)])
                        break
                else:
                    refused.append((text, i, budget, margin))
    print(len(cases), "cases; left out for want of a margin:", *refused, sep="\n  ")
    with open(path, "w") as f:
        f.write('{"n_token": %d, "d_head": %d, "layer": %d, "head": %d,\n "scenarios": [\n' % (T, D, LAYER, HEAD))
        f.write(",\n".join("  " + json.dumps(s) for s in SCENARIOS) + "],\n \"defaults\": ")
        json.dump({name: ["%s=%s" % item for item in p[1].items()] for name, p in POLICIES.items()}, f)
        f.write(",\n \"cases\": [\n")
        f.write(",\n".join("  " + json.dumps(c, separators=(",", ":")) for c in cases) + "]}\n")


if __name__ == "__main__":
    main(sys.argv[1])
