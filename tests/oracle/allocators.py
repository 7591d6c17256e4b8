# SPDX-License-Identifier: Apache-2.0
"""Golden budgets of every allocator, from their descriptions and in exact rational arithmetic.

    python3 tests/oracle/allocators.py tests/golden/allocators.json

Shares between limits are found from the breakpoints of their sum as a function of the multiplier; greedy is
every way to share a small total out, tried one by one. Evidence is in 64ths, which floats hold exactly. A case
whose remainders are nearly but not quite equal is drawn again: floats could not tell them apart.
"""
import itertools
import json
import math
import random
import sys
from fractions import Fraction as Q


def clip(x, low, high):
    return min(max(x, low), high)


def multiplier(weights, base, low, high, total):
    """lambda with sum of clip(base + lambda w, low, high) = total; the sum is piecewise linear and rises."""
    def at(x):
        return sum(clip(base + x * w, low, high) for w in weights)
    ends = sorted({Q(0)} | {(limit - base) / w for w in weights for limit in (low, high) if limit > base})
    for a, b in zip(ends, ends[1:]):
        if at(a) <= total <= at(b):
            return a if at(a) == at(b) else a + (b - a) * (total - at(a)) / (at(b) - at(a))
    return ends[0] if at(ends[0]) >= total else ends[-1]


class NearTie(Exception):
    pass


def whole(shares, total, high):
    """Largest remainders, the first of equals."""
    budgets = [x.numerator // x.denominator for x in shares]
    rest = [x - b for x, b in zip(shares, budgets)]
    for a, b in zip(sorted(rest), sorted(rest)[1:]):
        if a != b and b - a < Q(1, 10**4):
            raise NearTie
    if any(0 < r < Q(1, 10**4) or r > 1 - Q(1, 10**4) for r in rest):
        raise NearTie
    order = sorted((i for i in range(len(shares)) if budgets[i] < high), key=lambda i: (-rest[i], i))
    for i in order[:total - sum(budgets)]:
        budgets[i] += 1
    assert sum(budgets) == total
    return budgets


def heads_of(case):
    return case.get("heads") or [case["n_head"]] * case["n_layer"]


def split(case, flat, each):
    """What a flat list has of each layer, `each` numbers a head."""
    ends = [0, *itertools.accumulate(n * each for n in heads_of(case))]
    return [flat[a:b] for a, b in zip(ends, ends[1:])]


def spread(case, weights, base):
    total = len(weights) * case["mean"]
    x = multiplier(weights, base, case["floor"], case["n_token"], total)
    return whole([clip(base + x * w, Q(case["floor"]), Q(case["n_token"])) for w in weights], total, case["n_token"])


def by_layer(case, weights, base):
    return spread(case, [w for w, n in zip(weights, heads_of(case)) for _ in range(n)], base)


def uniform(case):
    return [case["mean"]] * sum(heads_of(case))


def pyramid(case, beta, up=False):
    """PyramidKV: min = (B - w) / beta, max = 2 (B - w) - min, layers on a line, w what is protected."""
    w, n = case["floor"] - 1, case["n_layer"]
    mean = Q(case["mean"] - w)
    least = mean / beta
    most = 2 * mean - least
    line = [most - (most - least) * l / (n - 1) if n > 1 else mean for l in range(n)]
    if up:
        line.reverse()
    if mean == 0:
        return uniform(case)
    return by_layer(case, line, Q(w))


def persistence(case, c):
    return by_layer(case, [c + 1 - Q(p) for p in case["persistence"]], Q(0))


def entropy(case):
    return spread(case, [Q(x) for x in case["entropy"]], Q(0))


def adakv(case, alpha):
    """What is protected is kept anyhow; the best keys besides it are ranked."""
    own = max(case["floor"], alpha * case["mean"] // 1)
    own_ranks = own - (case["floor"] - 1)
    n, budgets = case["n_token"], []
    for h, score in zip(heads_of(case), split(case, case["score"], n)):
        heads = [score[i * n:(i + 1) * n] for i in range(h)]
        pool = sorted((-s, i, rank) for i, row in enumerate(heads) for rank, s in enumerate(row) if own_ranks <= rank <= n - case["floor"])
        taken = [i for _, i, _ in pool[:h * (case["mean"] - own)]]
        budgets += [own + taken.count(i) for i in range(h)]
    return [int(b) for b in budgets]


def envelope(points, values, tokens):
    """The least concave curve above the points: the highest chord."""
    best = None
    for (a, ya), (b, yb) in itertools.combinations_with_replacement(list(zip(points, values)), 2):
        if a <= tokens <= b:
            y = ya if a == b else ya + (yb - ya) * Q(tokens - a, b - a)
            best = y if best is None else max(best, y)
    return best


def greedy(case):
    """All ways to share the total out; the best sum, and the budgets when no other reaches it."""
    n, k = sum(heads_of(case)), len(case["point"])
    heads = [[Q(v) for v in case["curve"][i * k:(i + 1) * k]] for i in range(n)]
    low, high = case["floor"], case["n_token"]
    value = [{t: envelope(case["point"], row, t) for t in range(low, high + 1)} for row in heads]
    best, ways = None, []
    for budgets in itertools.product(range(low, high + 1), repeat=n):
        if sum(budgets) == case.get("total", n * case["mean"]):
            total = sum(value[i][b] for i, b in enumerate(budgets))
            if best is None or total > best:
                best, ways = total, [budgets]
            elif total == best:
                ways.append(budgets)
    return best, ways


def falling(y):
    """Isotonic regression by its min-max formula: the mean of the worst stretch."""
    def mean(i, j):
        return sum(y[i:j + 1]) / (j - i + 1)
    return [max(min(mean(i, j) for i in range(k + 1)) for j in range(k, len(y))) for k in range(len(y))]


def loss(case):
    """One token to every head of the layer that it saves most, until none is left; heads as greedy among themselves."""
    low, high, k = case["floor"], case["n_token"], len(case["loss_point"])
    points = case["loss_point"] + [high]
    curves = []
    for layer in range(case["n_layer"]):
        y = falling(case["loss"][layer * k:(layer + 1) * k]) + [0.0]
        c = [-(y[i] + (y[i + 1] - y[i]) * math.log(b / points[i]) / math.log(points[i + 1] / points[i]))
             for i in range(k) for b in range(points[i], points[i + 1])] + [0.0]
        xs = list(range(low, high + 1))
        curves.append([max(c[i] + (c[j] - c[i]) * (x - xs[i]) / (xs[j] - xs[i]) if i < j else c[i]
                           for i in range(x - low + 1) for j in range(x - low, len(xs))) for x in xs])
    heads = heads_of(case)
    at, tokens, left = [0] * case["n_layer"], [low * n for n in heads], sum(heads) * (case["mean"] - low)
    while left:
        gain = sorted((((curve[i + 1] - curve[i]) / heads[layer], -layer) for layer, (curve, i) in
                       enumerate(zip(curves, at)) if i < high - low), reverse=True)
        if len(gain) > 1 and gain[0][0] - gain[1][0] < 1e-7:
            raise NearTie
        layer = -gain[0][1]
        given = min(heads[layer], left)
        at[layer] += 1
        tokens[layer] += given
        left -= given
    budgets = []
    for n, total, curve in zip(heads, tokens, split(case, case["curve"], len(case["point"]))):
        ways = greedy(dict(case, n_layer=1, heads=[n], total=total, curve=curve))[1]
        if len(ways) > 1:
            raise NearTie
        budgets += ways[0]
    return list(budgets)


def draw_shape(r, small=False):
    n_token = r.randint(5, 9) if small else r.randint(20, 400)
    floor = r.randint(1, 3) if small else r.choice([1, 2, 5, 15])
    return dict(n_layer=r.randint(1, 2) if small else r.choice([1, 2, 3, 12, 31]),
                n_head=r.randint(1, 2) if small else r.choice([1, 2, 8, 12]),
                n_token=n_token, floor=floor, mean=r.randint(floor, n_token))


def draw_heads(r, case):
    """Some layers with fewer heads."""
    case["n_head"] = max(case["n_head"], 2)
    case["heads"] = [case["n_head"] if r.random() < 0.5 else r.randint(1, case["n_head"])
                     for _ in range(case["n_layer"])]


def draw(r, kind, ragged=False):
    case = draw_shape(r, kind in ("greedy", "loss"))
    if kind == "adakv":
        case["n_layer"] = min(case["n_layer"], 3)
    if kind == "loss":
        case["n_layer"] = r.randint(1, 4)
    if ragged:
        draw_heads(r, case)
    heads = sum(heads_of(case))
    name, answer = kind, None
    if kind == "uniform":
        answer = uniform(case)
    elif kind in ("pyramid", "funnel"):
        beta = r.choice([1, 2, 5, 20, 100])
        name = f"{kind}:beta={beta}"
        answer = pyramid(case, beta, kind == "funnel")
    elif kind == "persistence":
        c = r.choice([Q(0), Q(1, 8), Q(1, 2), Q(3)])
        case["persistence"] = [r.randint(20, 62) / 64 for _ in range(case["n_layer"])]
        name = f"persistence:c={float(c)}"
        answer = persistence(case, c)
    elif kind == "entropy":
        case["entropy"] = [r.randint(1, 384) / 64 for _ in range(heads)]
        answer = entropy(case)
    elif kind == "adakv":
        alpha = r.choice([Q(0), Q(1, 4), Q(1, 2), Q(1)])
        case["n_token"] = min(case["n_token"], 60)
        case["mean"] = min(case["mean"], case["n_token"])
        case["score"] = sum((sorted((r.randint(0, 40) ** 2 / 64 for _ in range(case["n_token"])), reverse=True)
                             for _ in range(heads)), [])
        name = f"adakv:alpha={float(alpha)}"
        answer = adakv(case, alpha)
    elif kind == "loss":
        low, high = case["floor"], case["n_token"]
        case["point"] = list(range(low, high + 1))
        case["curve"] = []
        for _ in range(heads):
            y = [r.randint(0, 4)]
            for step in sorted((r.randint(0, 40) for _ in case["point"][1:]), reverse=True):
                y.append(y[-1] + step)
            case["curve"] += [v / 512 for v in y]
        case["loss_point"] = [low] + [t for t in range(low + 1, high) if r.random() < 0.6]
        case["loss"] = [r.randint(0, 64) / 64 / (1 + i % len(case["loss_point"]))
                        for i in range(case["n_layer"] * len(case["loss_point"]))]
        answer = loss(case)
    else:
        concave = r.random() < 0.6
        low, high = case["floor"], case["n_token"]
        inner = [t for t in range(low + 1, high) if concave or r.random() < 0.7]
        case["point"] = sorted({low, high} | set(inner))
        case["curve"] = []
        for _ in range(heads):
            steps = sorted((r.randint(0, 9) for _ in case["point"][1:]), reverse=True)
            if not concave:
                r.shuffle(steps)
            y = [r.randint(0, 4)]
            for s in steps:
                y.append(y[-1] + s)
            case["curve"] += [v / 64 for v in y]
        best, ways = greedy(case)
        case["best"] = float(best)
        answer = list(ways[0]) if len(ways) == 1 else None
        case["concave"] = concave
    return dict(allocator=name, **case, budget=answer)


def main(path):
    cases = []
    for seed, ragged in ((7, False), (8, True)):
        r = random.Random(seed)
        for kind in ("uniform", "funnel", "pyramid", "persistence", "entropy", "adakv", "greedy", "loss"):
            n = 0
            while n < (10 if ragged else 60 if kind == "greedy" else 25):
                try:
                    cases.append(draw(r, kind, ragged))
                    n += 1
                except NearTie:
                    pass
    with open(path, "w") as f:
        f.write('{"cases": [\n' + ",\n".join(json.dumps(c) for c in cases) + "\n]}\n")


main(sys.argv[1])
