# SPDX-License-Identifier: Apache-2.0
"""Attention statistics and persistence figures, computed straight from their definitions in double
precision, one set at a time. Writes tests/golden/persistence/: packed attention matrices
(*.f32) and the figures (*.json).

    python tests/oracle/persistence.py FIXTURES OUT

FIXTURES is the shared fixture folder (its matrices and metrics.json are converted, not recomputed).
A packed matrix is little-endian float32: for each head its rows, for each row its visible keys.
"""
import json
import math
import sys

import numpy as np

LAGS = (1, 8, 64)
DEFAULT = {"alphas": ["row", "2/t", "5/t", "10/t", "split"], "recents": [0, 1, 10, 50],
           "splits": [0.25, 0.5, 0.75], "window": 400}


# ---- definitions ----

def first_key(q, window):
    return max(0, q + 1 - window) if window else 0


def visible(T, window):
    q, j = np.arange(T)[:, None], np.arange(T)[None, :]
    return (j <= q) & ((j > q - window) if window else True)


def split_at(fraction, T):
    t = math.floor(T * fraction)
    return t if 1 <= t < T else 0


def thresholds(alpha, n_q, t):
    """alpha_q for every row; None when the split is impossible."""
    if alpha == "row":
        return 1.0 / n_q
    if alpha == "split":
        return np.full(len(n_q), 1.0 / t) if t else None
    if alpha.endswith("/t"):
        return float(alpha[:-2]) / n_q
    return np.full(len(n_q), float(alpha))


def pivotal(A, see, alpha, recent, t):
    T = len(A)
    limit = thresholds(alpha, see.sum(1).astype(float), t)
    if limit is None:
        return np.zeros((T, T), bool)
    old_enough = np.arange(T)[:, None] - np.arange(T)[None, :] >= recent
    return (A > limit[:, None]) & see & old_enough


def ratio_of(a, b):
    return a / b if b is not None and a is not None and b != 0 else None


def figures(A, see, alpha, recent, split, window):
    T = len(A)
    t = split_at(split, T)
    P = pivotal(A, see, alpha, recent, t)
    none = {k: None for k in ("ratio", "density", "lift", "relative_risk", "phi", "auc")}
    out = dict(none, t=t, first=0, second=0, both=0)
    if t:
        S1 = {j for j in range(t) if P[:t, j].any()}
        S2 = {j for j in range(t) if P[t:, j].any()}
        keys = set(range(t))
        a, b, c, d = len(S1 & S2), len(S1 - S2), len(S2 - S1), len(keys - S1 - S2)
        out.update(first=len(S1), second=len(S2), both=a)
        out["ratio"] = ratio_of(a, len(S2))
        out["density"] = len(S1) / t
        out["lift"] = ratio_of(out["ratio"], out["density"])
        out["relative_risk"] = ratio_of(ratio_of(a, a + b), ratio_of(c, c + d))
        product = (a + b) * (c + d) * (a + c) * (b + d)
        out["phi"] = ratio_of(a * d - b * c, math.sqrt(product))
        low = low_counts(A, see, t, window)
        pairs = [(p, n) for p in S2 for n in keys - S2]
        wins = sum(1.0 if low[p] < low[n] else 0.5 if low[p] == low[n] else 0.0 for p, n in pairs)
        out["auc"] = ratio_of(wins, len(pairs))
    return out


def low_counts(A, see, t, window):
    n_q = see.sum(1)
    low = (A < (1.0 / n_q)[:, None]) & see
    return [int(low[max(j, t - window):t, j].sum()) for j in range(t)]


def jaccards(A, see, alpha, recent, t, context):
    T = len(A)
    P = pivotal(A, see, alpha, recent, t)
    out = {"jaccard": [], "jaccard_chance": []}
    for d in LAGS:
        found, expected = [], []
        for q in range(d, T):
            low, high = first_key(q, context), q - d - recent
            n = high - low + 1
            if n <= 0:
                continue
            S = {j for j in range(low, high + 1) if P[q, j]}
            R = {j for j in range(low, high + 1) if P[q - d, j]}
            if S | R:
                found.append(len(S & R) / len(S | R))
                e = len(S) * len(R) / n
                expected.append(e / (len(S) + len(R) - e))
        out["jaccard"].append(math.fsum(found) / len(found) if found else None)
        out["jaccard_chance"].append(math.fsum(expected) / len(found) if found else None)
    return out


def row_figures(A, see):
    entropy, normalised, mass, mean, one = [], [], [], 0, 0
    for q in range(len(A)):
        row = A[q][see[q]]
        n = len(row)
        p = row[row > 0]
        h = -math.fsum(p * np.log(p))
        entropy.append(h)
        if n >= 2:
            normalised.append(h / math.log(n))
        mass.append(math.fsum(np.sort(row)[::-1][:math.ceil(0.2 * n)]))
        mean += int((row < 1.0 / n).sum())
        one += int((row < 0.01 * row.max()).sum())
    count = int(see.sum())
    return {"entropy": np.mean(entropy),
            "normalised_entropy": np.mean(normalised) if normalised else None,
            "mass_top": np.mean(mass), "below_mean": mean / count, "below_1pct": one / count}


def positions(A, see, spec):
    """first, last and low as the accumulator keeps them: one lane per threshold."""
    T = len(A)
    out = {"last": [], "first": [], "low": []}
    lanes = [(a, t) for a in spec["alphas"]
             for t in ([split_at(f, T) for f in spec["splits"]] if a == "split" else [0])]
    for alpha, t in lanes:
        P = pivotal(A, see, alpha, 0, t)
        out["last"].append([max(np.flatnonzero(P[:, j]), default=-1) for j in range(T)])
        for R in spec["recents"]:
            P = pivotal(A, see, alpha, R, t)
            out["first"].append([min(np.flatnonzero(P[:, j]), default=-1) for j in range(T)])
    for f in spec["splits"]:
        t = split_at(f, T)
        out["low"].append(low_counts(A, see, t, spec["window"]) + [0] * (T - t))
    return {k: [[int(x) for x in row] for row in v] for k, v in out.items()}


# ---- cases ----

def describe(A, context, spec):
    see = visible(len(A), context)
    A = A.astype(np.float64)
    cells, likeness = [], []
    for alpha in spec["alphas"]:
        for R in spec["recents"]:
            for f in spec["splits"]:
                cells.append(dict(figures(A, see, alpha, R, f, spec["window"]),
                                  alpha=alpha, recent=R, split=f))
                if alpha == "split" or f == spec["splits"][0]:
                    likeness.append(dict(jaccards(A, see, alpha, R, split_at(f, len(A)), context),
                                         alpha=alpha, recent=R, split=f))
    return {"cells": cells, "jaccards": likeness, "rows": row_figures(A, see)}


def softmax_rows(logits, context):
    see = visible(len(logits), context)
    x = np.where(see, logits, -np.inf)
    p = np.exp(x - x.max(1, keepdims=True))
    return (p / p.sum(1, keepdims=True)).astype(np.float32)


def random_head(rng, T, context=0, columns=1.5, noise=1.5):
    logits = columns * rng.standard_normal(T)[None, :] + noise * rng.standard_normal((T, T))
    return softmax_rows(logits, context)


def tied_head(rng, T):
    """Rows of few distinct values, many exactly the row's mean or a power of two; some zeros."""
    A = np.zeros((T, T), np.float32)
    for q in range(T):
        n = q + 1
        if q % 3 == 0:
            A[q, :n] = np.float32(1.0 / n)
        else:
            w = rng.choice([0, 1, 1, 2, 4, 8], n).astype(float)
            w[rng.integers(n)] += 1
            A[q, :n] = (w / (2.0 ** math.ceil(math.log2(w.sum())) if q % 3 == 1 else w.sum()))
    return A


def pack(A, context):
    return b"".join(A[q, first_key(q, context):q + 1].astype("<f4").tobytes()
                    for q in range(len(A)))


def clean(x):
    if isinstance(x, dict):
        return {k: clean(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [clean(v) for v in x]
    return float(x) if isinstance(x, np.floating) else x


def dump(path, value):
    with open(path, "w") as to:
        json.dump(clean(value), to, allow_nan=False, separators=(",", ":"))
        to.write("\n")


def read_tensor(path, name):
    with open(path, "rb") as f:
        n = int.from_bytes(f.read(8), "little")
        head = json.loads(f.read(n))[name]
        f.seek(8 + n + head["data_offsets"][0])
        data = f.read(head["data_offsets"][1] - head["data_offsets"][0])
    assert head["dtype"] == "F32"
    return np.frombuffer(data, "<f4").reshape(head["shape"])


def convert_fixtures(fixtures, out):
    metrics = json.load(open(f"{fixtures}/metrics/metrics.json"))
    kept = []
    for source in metrics["sources"]:
        path, tensor = source["source"].split(":")
        A = read_tensor(f"{fixtures}/{path}", tensor)
        windows = [w or 0 for w in source["windows"]]
        for layer in range(len(A)):
            assert not A[layer][:, ~visible(source["T"], windows[layer])].any()
        name = source["checkpoint"] + ".f32"
        with open(f"{out}/{name}", "wb") as to:
            for layer in range(len(A)):
                for head in A[layer]:
                    to.write(pack(head, windows[layer]))
        heads = [{k: v for k, v in h.items() if k != "tail"} for h in source["heads"]]
        kept.append({"file": name, "T": source["T"], "split": source["split"], "windows": windows,
                     "per_layer": source["per_layer"], "heads": heads})
    dump(f"{out}/metrics.json", kept)
    return read_tensor(f"{fixtures}/opt/ref.safetensors", "s1.attn")


def single_cases(rng, opt):
    wide = {"alphas": ["row", "2/t", "0.5/t", "10/t", "split", "0.01"], "recents": [0, 1, 10, 50],
            "splits": [0.25, 0.5, 0.75], "window": 400}
    short = {"alphas": ["row", "1.5/t", "split", "0.05"], "recents": [0, 3], "splits": [0.3, 0.9],
             "window": 20}
    ties = {"alphas": ["row", "2/t", "0.125", "0.25", "split"], "recents": [0, 1, 5],
            "splits": [0.25, 0.5, 0.75], "window": 30}
    yield "random", random_head(rng, 260), 0, wide
    yield "sharp", random_head(rng, 128, columns=3.0, noise=0.5), 0, dict(DEFAULT, window=50)
    yield "windowed", random_head(rng, 200, 33), 33, dict(DEFAULT, recents=[0, 1, 10], window=50)
    yield "wide_window", random_head(rng, 193, 100), 100, short
    yield "ties", tied_head(rng, 70), 0, ties
    yield "opt", opt, 0, short
    for T in (1, 2, 3, 5, 64, 65):
        yield f"length{T}", random_head(rng, T), 0, short


def group_case(rng, out):
    """Means over sequences, heads and layers; some ratios are undefined on purpose."""
    spec = {"alphas": ["0.3", "row"], "recents": [1], "splits": [0.5], "window": 400}
    heads, blob = [], b""
    for sequence, T in enumerate((24, 40, 3)):
        for layer in (1, 4):
            for head in (0, 1, 2):
                A = random_head(rng, T, columns=2.0)
                blob += pack(A, 0)
                heads.append(dict(sequence=sequence, layer=layer, head=head, T=T,
                                  **describe(A, 0, spec)))
    with open(f"{out}/group.f32", "wb") as to:
        to.write(blob)
    keys = ("ratio", "density", "lift", "relative_risk", "phi", "auc")

    def mean(values):
        values = [v for v in values if v is not None]
        return math.fsum(values) / len(values) if values else None

    result = []
    for c, alpha in enumerate(spec["alphas"]):
        per_head = {(l, h): {k: mean([x["cells"][c][k] for x in heads
                                      if (x["layer"], x["head"]) == (l, h)]) for k in keys}
                    for l in (1, 4) for h in (0, 1, 2)}
        per_layer = {l: {k: mean([per_head[l, h][k] for h in (0, 1, 2)]) for k in keys}
                     for l in (1, 4)}
        result.append({"alpha": alpha, "recent": 1, "split": 0.5,
                       "heads": [dict(layer=l, head=h, **v) for (l, h), v in per_head.items()],
                       "layers": [dict(layer=l, min_head=min(
                           (h for h in (0, 1, 2) if per_head[l, h]["ratio"] is not None),
                           key=lambda h: per_head[l, h]["ratio"], default=None), **v)
                           for l, v in per_layer.items()],
                       "all": {k: mean([per_layer[l][k] for l in (1, 4)]) for k in keys}})
    dump(f"{out}/group.json", {"file": "group.f32", "spec": spec, "cells": result, "heads": [
        {k: h[k] for k in ("sequence", "layer", "head", "T")} for h in heads]})


def main():
    fixtures, out = sys.argv[1:]
    rng = np.random.Generator(np.random.PCG64(20230526))
    opt = convert_fixtures(fixtures, out)
    cases = []
    for name, A, context, spec in single_cases(rng, opt[1][2]):
        with open(f"{out}/{name}.case.f32", "wb") as to:
            to.write(pack(A, context))
        case = {"file": f"{name}.case.f32", "T": len(A), "context": context, "spec": spec}
        if len(A) <= 70:
            case["positions"] = positions(A.astype(np.float64), visible(len(A), context), spec)
        cases.append(dict(case, **describe(A, context, spec)))
    dump(f"{out}/cases.json", cases)
    group_case(rng, out)


main()
