# SPDX-License-Identifier: Apache-2.0
"""Golden bounds of src/app/plan/plan_bound.h and counts of src/app/plan/judged_count.h, each from the equation that
defines it, solved by bisection.

    python3 tests/oracle/plan_bounds.py tests/golden/plan_bounds.json

The t distribution is integrated; Hall's transformation g(T) = T + a T^2 + a^2 T^3 / 3 + a / 2, a = skewness / (3 sqrt n),
is inverted as it stands; Wilson's limits are the p with |share - p| = z sqrt(p (1 - p) / n).
"""
import functools
import json
import math
import random
import sys


def solve(f, low, high):
    """f rises from below 0 to above."""
    for _ in range(200):
        middle = (low + high) / 2
        if f(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def t_below(x, df):
    """Simpson's rule over the density, with u = atan(t / sqrt(df)): it is cos(u)^(df - 1) up to a constant."""
    def area(to):
        n = 4000
        h = to / n
        return h / 3 * sum((1 if i in (0, n) else 4 if i % 2 else 2) * math.cos(i * h) ** (df - 1) for i in range(n + 1))
    return 0.5 + 0.5 * area(math.atan(x / math.sqrt(df))) / area(math.pi / 2)


@functools.lru_cache(None)
def t_of(p, df):
    u = solve(lambda u: t_below(math.sqrt(df) * math.tan(u), df) - p, 0, math.pi / 2 - 1e-9)
    return math.sqrt(df) * math.tan(u)


def z_of(p):
    return solve(lambda z: 0.5 * math.erfc(-z / math.sqrt(2)) - p, -10, 10)


def bound(x, w, confidence, is_share):
    both = [(a, b) for a, b in zip(x, w) if b > 0]
    n, weight = len(both), sum(b for _, b in both)
    mean = sum(a for a, _ in both) / weight
    r = [(a - mean * b) * n / weight for a, b in both]
    second, third = sum(v * v for v in r) / n, sum(v ** 3 for v in r) / n
    error = math.sqrt(second / (n - 1))
    t = t_of(confidence, n - 1)
    a = max(third / second ** 1.5 if second else 0, 0) / (3 * math.sqrt(n))
    quantile = solve(lambda T: T + a * T * T + a * a * T ** 3 / 3 + a / 2 + t, -1e3, 0)
    low, high = mean - t * error, mean - quantile * error
    if is_share:
        z = z_of(confidence)
        wilson = lambda p: (mean - p) - z * math.sqrt(p * (1 - p) / weight)
        low = max(0, min(low, solve(lambda p: -wilson(p), 0, mean) if mean else 0))
        high = min(1, max(high, solve(lambda p: (p - mean) - z * math.sqrt(p * (1 - p) / weight), mean, 1)
                          if mean < 1 else 1))
    return dict(n=n, mean=mean, error=error, low=low, high=high)


def line(points, mean):
    """The value at a mean between points (mean, value): straight in the logarithm, the same beyond the ends."""
    points = sorted(points)
    if mean <= points[0][0]:
        return points[0][1]
    for (a, x), (b, y) in zip(points, points[1:]):
        if mean <= b:
            return x + (y - x) * (math.log(mean) - math.log(a)) / (math.log(b) - math.log(a))
    return points[-1][1]


def count(seen, target, confidence, least, most):
    """Sequences to judge on: from the definition in src/app/plan/judged_count.h, the crossing found by bisection."""
    falling = sorted(seen, reverse=True)
    if falling[0][1] > target:
        return least
    values, spreads = [(m, v) for m, v, _ in seen], [(m, s) for m, _, s in seen]
    mean = falling[-1][0]
    for above, below in zip(falling, falling[1:]):
        if below[1] > target:
            mean = math.exp(solve(lambda x: target - line(values, math.exp(x)), math.log(below[0]), math.log(above[0])))
            break
    room, spread = target - line(values, 1.1 * mean), line(spreads, 1.1 * mean)
    enough = lambda n: t_of(confidence, n - 1) * spread / math.sqrt(n) <= room
    too_few, n = least - 1, most
    while n - too_few > 1:
        middle = (n + too_few) // 2
        too_few, n = (too_few, middle) if enough(middle) else (middle, n)
    return n


def counts(r):
    for i in range(24):
        top, fall = r.randint(200, 4000), r.choice([0.7, 0.85, 0.95])
        means = sorted({round(top * fall ** k) for k in range(r.randint(1, 12))})
        r.shuffle(means)
        scale, noise = r.choice([0.3, 1, 3]), r.choice([0, 0.001])
        seen = [(m, 0.01 * scale * (top / m - 1) + r.gauss(0, noise), r.choice([0.005, 0.02]) * (top / m) ** 0.5)
                for m in means]
        at = dict(seen=seen, target=0.01, confidence=r.choice([0.9, 0.95]), least=24, most=r.choice([24, 60, 96]))
        yield dict(**at, count=count(*at.values()))


def main(path):
    r, cases = random.Random(11), []
    for i in range(60):
        n, is_share = r.choice([2, 3, 6, 12, 13, 24, 48]), i % 3 == 2
        confidence = r.choice([0.9, 0.95, 0.99])
        w = [r.randint(0 if k > 2 else 1, 9 if is_share else 600) for k in range(n)]
        if is_share:
            p = r.choice([0.5, 0.9, 1])
            x = [sum(r.random() < p for _ in range(b)) for b in w]
        else:
            tail = r.choice([0, 0.5, 1.5])
            x = [b * (r.gauss(0.01, 0.01) if not tail else 0.01 * math.exp(r.gauss(0, tail)) - 0.005) for b in w]
        cases.append(dict(x=x, w=w, confidence=confidence, is_share=is_share, **bound(x, w, confidence, is_share)))
    with open(path, "w") as f:
        f.write('{"cases": [\n' + ",\n".join(json.dumps(c) for c in cases) + '\n],\n"counts": [\n' +
                ",\n".join(json.dumps(c) for c in counts(random.Random(12))) + "\n]}\n")


main(sys.argv[1])
