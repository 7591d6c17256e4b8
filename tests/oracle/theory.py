# SPDX-License-Identifier: Apache-2.0
"""Reference figures for test_powerlaw and test_theory. Writes tests/golden/theory/.

    python tests/oracle/theory.py FIXTURES OUT

FIXTURES is the shared fixture folder: its tail fits, synthetic samples, table of bounds and output
errors are converted, not recomputed (metrics.json, *.f32; the attention of the tail fits is in
tests/golden/persistence). cases.json is computed here, straight from the definitions in double
precision: scans over samples with ties, likelihood ratios with a searched optimum, and Theorem 3.1
in the model's full width.
"""
import json
import math
import os
import sys

import numpy as np
from safetensors.numpy import load_file

rng = np.random.Generator(np.random.PCG64(20230526))


def save(out, name, x):
    np.asarray(x, "<f4").tofile(os.path.join(out, name))
    return np.asarray(x, "<f4").astype(float)


def dump(out, name, data):
    with open(os.path.join(out, name), "w") as f:
        json.dump(data, f, separators=(",", ":"), allow_nan=False)
        f.write("\n")


# ---- the shared fixtures ----

def convert(fixtures, out):
    folder = os.path.join(fixtures, "metrics")
    with open(os.path.join(folder, "metrics.json")) as f:
        metrics = json.load(f)
    tensors = load_file(os.path.join(folder, "metrics.safetensors"))
    sources = [{"file": s["checkpoint"] + ".f32", "T": s["T"], "split": s["split"], "windows": s["windows"],
                "heads": [{k: h[k] for k in ("layer", "head", "tail")} for h in s["heads"]]}
               for s in metrics["sources"]]
    for entry in metrics["synthetic"]:
        entry["file"] = entry.pop("tensor") + ".f32"
        save(out, entry["file"], tensors[entry["file"][:-4]])
    A = tensors["bound.attn"]
    save(out, "bound.attn.f32", A[np.tril_indices(len(A))])
    save(out, "bound.v.f32", tensors["bound.v"])
    dump(out, "metrics.json", {"sources": sources, "synthetic": metrics["synthetic"],
                               "bound_table": metrics["bound_table"],
                               "output_error": metrics["output_error"]["cases"]})


# ---- power laws ----

def fit(x, xmin):
    tail = np.sort(x[x >= xmin])
    n, total = len(tail), math.fsum(np.log(tail / xmin))
    if not total > 0:
        return None
    a = 1 + n / total
    below = np.searchsorted(tail, tail, side="left") / n
    ks = np.abs(1 - (tail / xmin) ** (1 - a) - below).max()
    return {"xmin": float(xmin), "n_tail": n, "exponent": a, "sigma": (a - 1) / math.sqrt(n), "ks": float(ks)}


def scan(x):
    best = None
    for xmin in np.unique(x)[:-1]:
        f = fit(x, xmin)
        if f and (best is None or f["ks"] < best["ks"]):
            best = f
    return best


def exponential_ratio(x, f):
    tail = x[x >= f["xmin"]]
    power = np.log((f["exponent"] - 1) / f["xmin"]) - f["exponent"] * np.log(tail / f["xmin"])
    rate = 1 / (tail.mean() - f["xmin"])
    gap = power - (math.log(rate) - rate * (tail - f["xmin"]))
    return {"ratio": float(gap.sum()), "p": math.erfc(abs(gap.sum()) / math.sqrt(2 * len(gap) * gap.var()))}


def log_beyond(t):
    """ln P(Z > t); the usual expansion where erfc would be too small."""
    if t < 25:
        return math.log(0.5 * math.erfc(t / math.sqrt(2)))
    return -t * t / 2 - math.log(t * math.sqrt(2 * math.pi)) + math.log1p(-1 / t**2 + 3 / t**4 - 15 / t**6)


def lognormal_loglik(y, mu, s):
    """Of y = ln(x / xmin) under a normal law cut at 0."""
    return -((y - mu) ** 2).sum() / (2 * s * s) - len(y) * (math.log(s * math.sqrt(2 * math.pi)) + log_beyond(-mu / s))


def lognormal_ratio(x, f):
    y = np.log(x[x >= f["xmin"]] / f["xmin"])
    rate = f["exponent"] - 1
    power = len(y) * math.log(rate) - rate * y.sum()
    at, best = (0.0, 0.0), -math.inf            # (mu, ln s): a pattern search, smaller and smaller steps
    step = 1.0
    while step > 1e-9:
        trial = [(at[0] + i * step, at[1] + j * step) for i in (-2, -1, 0, 1, 2) for j in (-1, 0, 1)]
        value, where = max((lognormal_loglik(y, m, math.exp(s)), (m, s)) for m, s in trial if -5 < s < 5)
        if value > best:
            best, at = value, where
        else:
            step /= 2
    ratio = min(power - best, 0)
    return {"ratio": float(ratio), "p": 0.5 * math.erfc(math.sqrt(-ratio))}


def powerlaw_cases(out):
    n = 1500
    u = rng.random(n)
    samples = {
        "ties": np.round(16 * np.log2(u ** (-1 / 1.3) * 0.2)) / 16,         # a lattice of logarithms
        "wide": np.exp(rng.normal(-6, 4, n)),
        "curved": np.exp(np.abs(rng.normal(0.3, 0.8, n))),
        "thin": 1 + rng.exponential(1.0, n),
    }
    samples["ties"] = 2.0 ** samples["ties"]
    cases = []
    for name, x in samples.items():
        x = save(out, name + ".f32", x)
        f, one = scan(x), fit(x, 1.0)
        cases.append({"file": name + ".f32", "n": n, "scan": f, "fixed_xmin_1": one,
                      "exponential": exponential_ratio(x, one), "lognormal": lognormal_ratio(x, one)})
    return cases


# ---- Theorem 3.1 ----

def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def shift_head(n, d):
    """A head that turns e_j into e_j+1 and undoes it in its keys: tokens stay nearly orthogonal, and the
    next token is nearly what attention made, so the theorem has something to say."""
    P = np.roll(np.eye(d), 1, axis=1)
    rows = np.tril(rng.random((n, n)) * 0.004)
    rows[np.diag_indices(n)] = 0
    rows[np.diag_indices(n)] = 1 - rows.sum(1)
    x = np.zeros((n, d))
    x[0, 0] = 1
    for t in range(n - 1):
        x[t + 1] = unit(rows[t, :t + 1] @ x[:t + 1] @ P + 2e-5 * rng.normal(size=d))
    return x, rows, P, P @ P @ np.diag(rng.uniform(0.9, 1.1, d)), P, np.eye(d)


def random_head(n, d, p):
    """Nothing in particular."""
    logits = np.where(np.tri(n) > 0, rng.normal(0, 2, (n, n)), -np.inf)
    rows = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    return (unit(rng.normal(size=(n, d))), rows, rng.normal(size=(d, p)) / 3, rng.normal(size=(d, p)) / 3,
            rng.normal(size=(d, p)) / 3, rng.normal(size=(p, d)) / 3)


def theorem_case(out, name, head):
    x, rows, wq, wk, wv, wo = (np.asarray(m, "<f4").astype(float) for m in head)
    n, lam = len(x), math.prod(np.linalg.svd(w, compute_uv=False)[0] for w in (wq, wk, wv, wo))
    q, k, v = x @ wq, x @ wk, x @ wv
    g = x @ wv @ wo @ wq @ wk.T @ x.T                       # g[j, l]
    count = {"pairs": 0, "positive": 0, "informative": 0, "above_zero": 0, "violations": 0}
    all_eps, steps, lemma, cosines, margin = [], [], 0.0, [], math.inf
    for t in range(n - 1):
        a = rows[t, :t + 1] @ x[:t + 1] @ wv @ wo
        norm = np.linalg.norm(a)
        cosines.append(float(a @ x[t + 1] / (norm * np.linalg.norm(x[t + 1]))))
        for l in range(t + 1):
            count["pairs"] += 1
            other = max((abs(g[j, l]) for j in range(t + 1) if j != l), default=0.0)
            now, score = a @ wq @ wk.T @ x[l], rows[t, l]
            if other > 0:
                lemma = max(lemma, abs(now - score * g[l, l]) / other)
            if not g[l, l] > 0:
                continue
            eps = max(other, lam * math.sqrt(max(1 - cosines[t], 0))) / g[l, l]
            after, factor = x[t + 1] @ wq @ wk.T @ x[l], g[l, l] / norm
            low, high = factor * (score - 3 * eps), factor * (score + 3 * eps)
            count["positive"] += 1
            count["informative"] += 3 * eps < 1
            count["above_zero"] += score - 3 * eps > 0
            count["violations"] += not low <= after <= high
            margin = min(margin, abs(3 * eps - 1), abs(score - 3 * eps))
            all_eps.append(eps)
            steps.append(abs(after - now / norm) / factor)
    assert margin > 1e-6 and count["violations"] == 0, (name, margin, count)
    parts = [q, k, v, rows[np.tril_indices(n)], wq, wk, wv, wo]
    save(out, name + ".f32", np.concatenate([p.ravel() for p in parts]))
    return {"file": name + ".f32", "n": n, "d_model": wq.shape[0], "d_head": wq.shape[1], "cosine": cosines,
            "lambda": lam, **{key: int(value) for key, value in count.items()}, "least_eps": float(min(all_eps)),
            "mean_eps": float(np.mean(all_eps)), "step": float(np.mean(steps)), "lemma": float(lemma)}


def main():
    fixtures, out = sys.argv[1:]
    os.makedirs(out, exist_ok=True)
    convert(fixtures, out)
    dump(out, "cases.json", {"powerlaw": powerlaw_cases(out),
                             "theorem": [theorem_case(out, "shift", shift_head(10, 12)),
                                         theorem_case(out, "random", random_head(24, 20, 6))]})


main()
