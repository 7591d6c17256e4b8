# SPDX-License-Identifier: Apache-2.0
"""Standard errors over sequences and the one-sided bound of a perplexity's increase, from their definitions:

    python3 clustered.py joint.json single.json...        one evaluation of all texts, and one of each text
    python3 clustered.py blocks joint.json full.npy other.npy ids.jsonl         the same of blocks of 512 tokens

Nothing of the program is used but the figures of single texts, or the logits.
"""
import json
import math
import sys


def student(p, df):
    """Quantile of Student's t: the density, integrated by Simpson's rule and bisected."""
    scale = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)

    def below(t, n=4000):
        f = [scale * (1 + (t * i / n) ** 2 / df) ** (-(df + 1) / 2) for i in range(n + 1)]
        return 0.5 + t / n / 3 * (f[0] + f[-1] + 4 * sum(f[1:-1:2]) + 2 * sum(f[2:-1:2]))

    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < p else (low, middle)
    return high


def clustered(means, weights):
    """Mean over tokens, and its standard error over clusters of so many tokens."""
    n, total = len(means), sum(weights)
    m = sum(x * w for x, w in zip(means, weights)) / total
    r = [(x - m) * w / (total / n) for x, w in zip(means, weights)]
    return m, math.sqrt(sum(x * x for x in r) / (n - 1) / n)


def near(found, wanted, what):
    assert abs(found - wanted) <= 1e-7 + 1e-5 * abs(wanted), (what, found, wanted)


def check(row, parts):
    """parts: of each sequence its predicted tokens, and nll, change and kl as means; kl over one row more or less."""
    tokens, rows = [p["tokens"] for p in parts], [p["rows"] for p in parts]
    assert row["error_sequences"] == len(parts), row
    for key, weights in (("nll", tokens), ("nll_change", tokens), ("kl", rows)):
        mean, error = clustered([p[key] for p in parts], weights)
        near(row[key], mean, key)
        near(row[key + "_stderr"], error, key + "_stderr")
    near(row["ppl_stderr"], row["ppl"] * row["nll_stderr"], "ppl_stderr")
    near(row["ppl_increase"], math.exp(row["nll_change"]) - 1, "ppl_increase")
    bound = row["nll_change"] + student(0.95, len(parts) - 1) * row["nll_change_stderr"]
    near(row["ppl_increase_bound"], math.exp(bound) - 1, "ppl_increase_bound")


def of_texts(joint, *single):
    every = [json.load(open(path))["results"] for path in single]
    for i, row in enumerate(json.load(open(joint))["results"]):
        check(row, [dict(x[i], rows=x[i]["tokens"] + 1) for x in every])


def log_p(row):
    most = max(row)
    total = most + math.log(sum(math.exp(x - most) for x in row))
    return [x - total for x in row]


def of_blocks(joint, full, other, ids):
    from evals import npy
    full, other, at, parts = npy(full), npy(other), 0, []
    for ids in (json.loads(line) for line in open(ids)):
        n, first = len(ids), 0
        while first < n:
            end = n if n - first < 512 + 256 else first + 512
            part = dict(tokens=0, rows=end - first, nll=0.0, nll_change=0.0, kl=0.0)
            for i in range(first, end):
                p, q = log_p(full[at + i]), log_p(other[at + i])
                part["kl"] += sum(math.exp(a) * (a - b) for a, b in zip(p, q)) / part["rows"]
                if i + 1 < n:
                    part["tokens"] += 1
                    part["nll"] -= q[ids[i + 1]]
                    part["nll_change"] += p[ids[i + 1]] - q[ids[i + 1]]
            part["nll"] /= part["tokens"]
            part["nll_change"] /= part["tokens"]
            parts.append(part)
            first = end
        at += n
    row, = json.load(open(joint))["results"]
    check(row, parts)


if __name__ == "__main__":
    if sys.argv[1] == "blocks":
        of_blocks(*sys.argv[2:])
    else:
        of_texts(*sys.argv[1:])
