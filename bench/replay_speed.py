# SPDX-License-Identifier: Apache-2.0
"""Replay speed: recorded scores per second, compared with an H2O in NumPy on the same rows in the same run.

    make bench-replay && python3 bench/replay_speed.py --program bench/replay_speed

The rows are made here: 32 heads of a text with attention sinks, heavy hitters and a power law for the rest.
The C side (bench/replay_speed.c) takes them through

  one pass       each stack policy, every budget from its protected tokens to the text's length;
  the grid       20 cells of a policy at budget 0.2 n, rows renormalised over what is kept;
  oracle-readmit the bound, every budget;
  log8 blobs     reading and decoding them as a trace keeps them;

the numpy side simulates H2O (sums of recorded scores, no protected tokens) for all 32 heads at once,
touching kept tokens only, in arrays allocated once: with the figures that the C side takes from every
row (kept mass, the same without sinks, pivotal recall), and once more for nothing but the kept mass. Both
report the mean kept mass of the same budget, which must agree.

Speeds count recorded scores (the causal triangle of every head), of processor time. The limit of any
replay is reading each score once: "sum_of_f32_rows" is that, in the same run. Needs numpy. Prints one
JSON object; nothing here is run by make check.
"""
import argparse
import json
import os
import platform
import subprocess
import tempfile
import time

import numpy as np


def make_rows(n_token, n_head, seed=0):
    """A row for each t: [n_head, t + 1], f32, sums to 1."""
    rng = np.random.default_rng(seed)
    heavy = rng.pareto(1.5, (n_head, n_token)) + 0.05
    heavy[:, 0] = heavy.max(axis=1) * 20
    rows = []
    for t in range(n_token):
        near = 20.0 / (t + 1.0 - np.arange(t + 1))
        row = (heavy[:, : t + 1] + near) * np.exp(1.5 * rng.standard_normal((n_head, t + 1)))
        rows.append((row / row.sum(axis=1, keepdims=True)).astype(np.float32))
    return rows


class Cache:
    """H2O at one budget, all heads at once: the kept tokens lie in `budget` slots, arrays are allocated once."""

    def __init__(self, n_head, budget):
        self.budget, self.head = budget, np.arange(n_head)
        self.received = np.zeros((n_head, budget), np.float32)
        self.place = np.zeros((n_head, budget), np.int64)
        self.score = np.empty((n_head, budget), np.float32)
        self.flat = np.empty((n_head, budget), np.int64)
        self.mass = np.zeros(n_head)
        self.no_sink = np.zeros(n_head)
        self.recall = np.zeros(n_head)

    def step(self, t, row, whole):
        """Token t comes with its row. whole: the row's own mass, mass without sinks and itself, pivotal keys."""
        if t < self.budget:
            self.place[:, t] = t
            self.received[:, : t + 1] += row
            self.mass += 1
            self.no_sink += 1
            self.recall += 1
            return
        slot = self.received.argmin(axis=1)
        self.received[self.head, slot] = 0
        self.place[self.head, slot] = t
        np.add(self.place, (self.head * (t + 1))[:, None], out=self.flat)
        np.take(row.reshape(-1), self.flat, out=self.score, mode="clip")
        self.received += self.score
        kept = self.score.sum(axis=1)
        if whole is None:
            self.mass += kept
            return
        mass, no_sink, pivotal, limit = whole
        self.mass += kept / mass
        sinks = np.where(self.place < 4, self.score, 0).sum(axis=1)
        self.no_sink += (kept - sinks - row[:, t]) / no_sink
        self.recall += (self.score > limit).sum(axis=1) / np.maximum(pivotal, 1)


def h2o(rows, budgets, figures):
    """Mean kept mass of the first budget; with `figures` also the other figures that shears computes. What a row has by
    itself is computed once for all budgets."""
    caches = [Cache(rows[0].shape[0], budget) for budget in budgets]
    for t, row in enumerate(rows):
        whole = None
        if figures and t >= min(budgets):
            limit = np.float32(1 / (t + 1))
            mass = row.sum(axis=1)
            whole = (mass, mass - row[:, :4].sum(axis=1) - row[:, t], (row > limit).sum(axis=1), limit)
        for cache in caches:
            cache.step(t, row, whole)
    return float(caches[0].mass.mean() / len(rows))


def timed(work):
    """The best of two runs, in seconds of processor time."""
    best, result = float("inf"), None
    for _ in range(2):
        begin = time.process_time()
        result = work()
        best = min(best, time.process_time() - begin)
    return best, result


def chip():
    with open("/proc/cpuinfo") as f:
        names = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    return f"{names[0]}, {len(names)} cores" if names else platform.processor()


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    options.add_argument("--program", default="bench/replay_speed")
    options.add_argument("--tokens", type=int, default=2048)
    options.add_argument("--heads", type=int, default=32)
    o = options.parse_args()
    load = os.getloadavg()
    rows = make_rows(o.tokens, o.heads)
    scores = o.heads * o.tokens * (o.tokens + 1) / 2
    budgets = [o.tokens * i // 20 for i in range(1, 21)]
    with tempfile.NamedTemporaryFile() as f:
        for h in range(o.heads):
            f.write(np.concatenate([row[h] for row in rows]).tobytes())
        f.flush()
        ours = json.loads(subprocess.run([o.program, f.name, str(o.tokens), str(o.heads)], check=True,
                                         stdout=subprocess.PIPE).stdout)
    theirs, fifth, first = {"numpy": np.__version__}, o.tokens // 5, [o.tokens // 5]
    for name, figures in (("same_figures", True), ("kept_mass_only", False)):
        one_s, mass = timed(lambda: h2o(rows, first, figures))
        many_s, _ = timed(lambda: h2o(rows, budgets, figures))
        theirs[name] = {"h2o_one_budget": scores / one_s / 1e9, "h2o_20_budgets": scores / many_s / 1e9}
        heavy = ours["h2o"]
        if abs(heavy["mean_kept_mass_simulated"] - mass) > 1e-4:
            raise SystemExit(f"budget {fifth}: kept mass {heavy['mean_kept_mass_simulated']}, {mass} in numpy")
    ratios = {}
    for name in ("same_figures", "kept_mass_only"):
        one, many = theirs[name]["h2o_one_budget"], theirs[name]["h2o_20_budgets"]
        ratios[f"over_numpy_{name}"] = {"one_budget": heavy["one_budget"] / one,
                                        "curve_of_20_one_pass": heavy["20_budgets_stack"] / many,
                                        "curve_of_20_grid": heavy["20_budgets_grid"] / many}
    for kind, (one, two) in ours["two_threads"].items():
        ratios[f"two_threads_{kind}"] = two / one
    ratios["stack_h2o_of_reading_limit"] = ours["stack_all_budgets"]["h2o"] / ours["sum_of_f32_rows"]
    print(json.dumps({"chip": chip(), "load_before": load, "load_after": os.getloadavg(), "shears": ours,
                      "numpy": theirs, "ratios": ratios}, indent=1))


if __name__ == "__main__":
    main()
