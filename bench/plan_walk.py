#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often does the walk of `shears plan` take a budget that is too small, and what does its bound cost?

    python3 bench/plan_walk.py ./shears --case stories models/stories260k stories.jsonl --length 512

`shears plan --budget` measures budgets of one policy and allocator on all sequences but the first --search ones, which
are searched. From the sums per sequence in its store, n of the sequences are drawn (and as many others for the search),
--draws times: the walk chooses a mean on the draw, and the increase of this mean is computed over all sequences.
Between measured means a sequence's loss is interpolated (in the logarithm of the mean). Reported for each target and n:
draws that have a budget at all; of these, how many break the promise; and the mean of tokens divided by the least with
which all sequences together hold the target.
"""
import argparse
import functools
import json
import math
import os
import sqlite3
import struct
import subprocess
import sys
import tempfile

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "oracle"))
from clustered import student                                                   # noqa: E402

TOP, FAR, NEAR, STRIDE, STEP = 1.2, 1.5, 1.2, 1.08, 1.015      # src/app/plan/live_judge.c
FIRST, SECOND, FIRST_ALONE = 0.955, 0.995, 0.95         # confidence of the two walks, together 0.95, and of one alone

student = functools.lru_cache(student)


def high(x, w, confidence):
    """src/app/plan/plan_bound.h"""
    n, mean = len(x), x.sum() / w.sum()
    r = (x - mean * w) / w.mean()
    second, t = (r * r).mean(), student(confidence, n - 1)
    a = (r ** 3).mean() / second ** 1.5 / (3 * math.sqrt(n)) if second > 0 else 0
    quantile = (numpy.cbrt(1 + 3 * a * (-t - a / 2)) - 1) / a if a > 1e-6 else -t
    return mean - quantile * math.sqrt(second / (n - 1))


def following(last, found, length, floor):
    """The mean that is judged after `last`, the length at first; 0: that was the least."""
    after = last / (STRIDE if last > NEAR * found else STEP)
    if last == length and found < length / TOP:
        after = min(length / TOP, FAR * found)
    after = max(min(math.floor(after + 0.5), last - 1), floor)
    return after if after < last else 0


def second_means(first, length):
    """Those of the second walk, which is due if the first mean of the first walk fails."""
    means, x = [], length / TOP
    while math.floor(x + 0.5) > first:
        if not means or means[-1] != math.floor(x + 0.5):
            means.append(math.floor(x + 0.5))
        x /= STRIDE
    return means


def fnv(data):
    h = 0xcbf29ce484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001b3 % 2**64
    return f"{h:016x}"


def measure(args, model, text, folder):
    """means [m], change [m][sequences], tokens [sequences], length"""
    db, means, change = f"{folder}/walk.db", [], []
    for share in numpy.geomspace(0.95, args.least, args.means):
        done = subprocess.run(
            [args.shears, "plan", "-q", "--json", "--model", model, "--jsonl", text, "--length", str(args.length),
             "--min-tokens", str(args.length), "--policy", args.policy, "--allocator", args.allocator, "--budget",
             f"{share:.6f}", "--search-first", str(args.search), "--sequences", "100000", "--db", db, "-o",
             f"{folder}/plan.json"], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        plan = json.load(open(f"{folder}/plan.json"))
        budgets = [b for row in plan["budgets"] for b in row]
        key = fnv(struct.pack(f"{len(budgets)}i", *budgets))
        rows = sqlite3.connect(db).execute(
            "SELECT settings, metric, value FROM result WHERE command = 'plan' AND settings LIKE ?", (f"%{key}%",))
        of = {}
        for settings, metric, value in rows:
            of.setdefault(settings, {})[metric] = value
        sums = max(of.values(), key=len)
        n = sum(m.startswith("change_") for m in sums)
        means.append(plan["mean_tokens"])
        change.append([sums[f"change_{i}"] for i in range(n)])
        tokens = [sums[f"tokens_{i}"] for i in range(n)]
    return numpy.array(means), numpy.array(change), numpy.array(tokens), plan["n_token"]


class Losses:
    def __init__(self, means, change, tokens, length):
        self.means, self.change, self.tokens, self.length = means[::-1], change[::-1], tokens, length
        self.known = {}

    def at(self, mean):
        """of each sequence with that mean, nats"""
        if mean not in self.known:
            x, grid = numpy.log(mean), numpy.log(numpy.append(self.means, self.length))
            values = numpy.vstack([self.change, numpy.zeros_like(self.tokens)])
            k = int(numpy.clip(numpy.searchsorted(grid, x), 1, len(grid) - 1))
            part = (x - grid[k - 1]) / (grid[k] - grid[k - 1])
            self.known[mean] = values[k - 1] + (values[k] - values[k - 1]) * part
        return self.known[mean]

    def holds(self, mean, who, target, confidence):
        x, w = self.at(mean)[who], self.tokens[who]
        if confidence is None:
            return x.sum() / w.sum() <= target
        return high(x, w, confidence) <= target

    def walk(self, means, who, target, confidence):
        last = None
        for mean in means:
            if not self.holds(mean, who, target, confidence):
                break
            last = mean
        return last

    def falling(self, top, ratio, least):
        means = []
        while top > least:
            if not means or round(top) < means[-1]:
                means.append(round(top))
            top /= ratio
        return means


def choose(losses, search, judged, target):
    least, length = losses.means[0], losses.length
    found = losses.walk(losses.falling(0.92 * length, 1.04, least), search, target, FIRST) or length
    means = [following(length, found, length, 1)]
    while means[-1] > least:
        means.append(following(means[-1], found, length, 1))
    second = second_means(means[0], length) if found < length else []
    chosen = losses.walk(means, judged, target, FIRST if second else FIRST_ALONE)
    return losses.walk(second, judged, target, SECOND) if chosen is None else chosen


def simulate(args, name, losses, seed):
    rng, everyone = numpy.random.default_rng(seed), numpy.arange(len(losses.tokens))
    for target in args.target:
        goal = numpy.log1p(float(target))
        needed = losses.walk(losses.falling(losses.length / 1.001, 1.002, losses.means[0]), everyone, goal, None)
        for n in args.judged:
            got, broken, surplus = 0, 0, []
            for _ in range(args.draws):
                mean = choose(losses, rng.choice(everyone, args.search), rng.choice(everyone, n), goal)
                if mean is None:
                    continue
                got += 1
                broken += losses.at(mean).sum() / losses.tokens.sum() > goal
                surplus.append(mean / needed)
            print(f"| {name} | {float(target):.0%} | {n} | {needed / losses.length:.1%} | {100 * got / args.draws:.1f} | "
                  f"{100 * broken / args.draws:.1f} | {numpy.mean(surplus) if surplus else numpy.nan:.2f} |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("shears", type=os.path.abspath)
    p.add_argument("--case", nargs=3, action="append", required=True, metavar=("NAME", "MODEL", "JSONL"))
    p.add_argument("--length", type=int, default=512)
    p.add_argument("--search", type=int, default=24)
    p.add_argument("--judged", type=int, nargs="+", default=[12, 24, 48])
    p.add_argument("--target", nargs="+", default=["0.01", "0.02", "0.05"])
    p.add_argument("--policy", default="h2o:recent=16")
    p.add_argument("--allocator", default="loss")
    p.add_argument("--means", type=int, default=40)
    p.add_argument("--least", type=float, default=0.06)
    p.add_argument("--draws", type=int, default=2000)
    p.add_argument("--keep", help="folder for what was measured, which is then not measured again")
    args = p.parse_args()
    print("| case | target | judged | needs | draws with a budget, % | broken, % | tokens / needed |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, model, text in args.case:
        kept = args.keep and f"{args.keep}/{name}.npz"
        if kept and os.path.exists(kept):
            at = numpy.load(kept)
            found = at["means"], at["change"], at["tokens"], int(at["length"])
        else:
            with tempfile.TemporaryDirectory() as folder:
                found = measure(args, model, text, folder)
            if kept:
                numpy.savez(kept, means=found[0], change=found[1], tokens=found[2], length=found[3])
        simulate(args, name, Losses(*found), 1)


if __name__ == "__main__":
    main()
