#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do plans keep their promise? `shears plan` on draws of texts, and what each plan costs on texts that were not drawn.

    python3 bench/plan_promise.py ./shears --draws 200 --keep /tmp/promise \\
        --case recall demo/model demo/text/recall.jsonl --case natural demo/model demo/text/natural.txt

A case is a name, a model and a text (documents of a .jsonl file, or a text in blocks of --characters). Its documents
are shuffled --splits times. In each split the program searches --search of them, for each target. The order of the
budgets that are then judged follows from the search alone. So one run of the program, which reads all other documents
under these budgets and stores its sums per document, serves every draw: --judged of them are drawn with replacement,
and the walk chooses a budget by its bound over the sums of these. The program's own walk stops where the bound over all
of them does; where a draw goes further, `shears plan --budget` measures the next budget.

Reported per case and target: draws with a plan; of these, how many exceed the target over all documents that were not
searched, and how many on those of them that were not drawn (few, so that their noise counts as broken promises); the
share of the cache; and tokens against an oracle's, which walks the same budgets and knows the mean over all documents
that were not searched. --keep is a folder for what was measured: the same command goes on from it.

With --causes, a line for each target shows what the tokens above the oracle's are spent on: the tokens, divided by the
oracle's, of the walk, of one that does not end at the first failure, of one with a normal bound, and of one by the mean
alone.
"""
import argparse
import itertools
import json
import math
import os
import random
import sqlite3
import subprocess
import sys
import tempfile

import numpy

from plan_walk import FIRST, FIRST_ALONE, SECOND, following, high, second_means


def documents(path, characters):
    if path.endswith(".jsonl"):
        return [json.loads(line)["text"] for line in open(path) if line.strip()]
    text = open(path).read()
    return [text[i:i + characters] for i in range(0, len(text) - characters + 1, characters)]


def sums(db, policy, knobs):
    """{mean tokens: (change [documents], tokens [documents])} of the largest set of documents that the store has."""
    rows = sqlite3.connect(db).execute("SELECT settings, metric, value FROM result WHERE command = 'plan'")
    of = {}
    for settings, metric, value in rows:
        of.setdefault(settings, {})[metric] = value
    found = {}
    for settings, at in of.items():
        s, n = json.loads(settings), sum(m.startswith("change_") for m in at)
        if (s["policy"], s["knobs"]) == (policy, knobs):
            found.setdefault((n, s["texts"]), {})[round(at["mean_tokens"])] = (
                numpy.array([at[f"change_{i}"] for i in range(n)]), numpy.array([at[f"tokens_{i}"] for i in range(n)]))
    return found[max(found)]


def least_budget(knobs):
    """One more token than the policy protects (planner/policy/policy.c)."""
    sinks, recent = (float(knobs.get(k, 0)) for k in ("sinks", "recent"))
    if not 0 < recent < 1:
        return 1 + int(sinks + recent)
    return next(b for b in itertools.count(1) if b - int(recent * b) > sinks)


class Split:
    """One search, and the sums of the documents that it did not see."""

    def __init__(self, args, model, texts, target, folder):
        self.args, self.model, self.texts, self.target, self.folder = args, model, texts, target, folder
        policies = ["--policy", *args.policy] if args.policy else []
        r = self.plan("--target-ppl-increase", target, *policies, "--allocator", args.allocator)
        chosen = next(s for s in r["searched"] if s["chosen"])
        self.n_token, self.policy, self.knobs = r["n_token"], r["policy"], r["knobs"]
        self.found = chosen["mean_tokens"] if chosen["holds"] else self.n_token
        self.floor = least_budget(dict(k.split("=") for k in self.knobs.split(",") if k))
        self.goal = math.log1p(float(target))
        self.measured = sums(f"{folder}/plan.db", self.policy, self.knobs)

    def plan(self, *how):
        done = subprocess.run(
            [self.args.shears, "plan", "-q", "--json", "--model", self.model, "--jsonl", self.texts, "--length",
             str(self.args.length), "--search-first", str(self.args.search), "--sequences", "100000", "--db",
             f"{self.folder}/plan.db", "-o", f"{self.folder}/plan.json", *how], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"shears plan {' '.join(how)}: {done.stderr}")
        return json.loads(done.stdout)

    def at(self, mean):
        """change and tokens of every document with that mean"""
        if mean not in self.measured:
            knobs = self.knobs and ":" + self.knobs
            self.plan("--budget", str(mean), "--policy", self.policy + knobs, "--allocator", self.args.allocator)
            self.measured = sums(f"{self.folder}/plan.db", self.policy, self.knobs)
        return self.measured[mean]

    def walk(self, holds):
        """The last mean in the program's order before one that does not hold; None: not even the first."""
        chosen, mean = None, following(self.n_token, self.found, self.n_token, self.floor)
        while mean and holds(*self.at(mean)):
            chosen, mean = mean, following(mean, self.found, self.n_token, self.floor)
        return chosen

    def both_walks(self, judged):
        """What the program chooses by its bounds over these documents."""
        bound = lambda level: lambda x, w: high(x[judged], w[judged], level) <= self.goal
        second = self.second()
        mean = self.walk(bound(FIRST if second else FIRST_ALONE))
        for larger in [] if mean else second:
            if not bound(SECOND)(*self.at(larger)):
                break
            mean = larger
        return mean

    def second(self):
        first = following(self.n_token, self.found, self.n_token, self.floor)
        return second_means(first, self.n_token) if self.found < self.n_token else []

    def draws(self, n, n_judged, seed):
        """(mean, more on the fresh documents, more on all, the oracle's mean) of n plans; mean None: none was met"""
        rng, all_ = numpy.random.default_rng(seed), len(next(iter(self.measured.values()))[0])
        oracle = self.walk(lambda x, w: x.sum() / w.sum() <= self.goal)
        for _ in range(n):
            judged = rng.choice(all_, n_judged)
            fresh = numpy.setdiff1d(numpy.arange(all_), judged)
            mean = self.both_walks(judged)
            if mean is None:
                yield None, None, None, oracle
                continue
            x, w = self.at(mean)
            yield mean, x[fresh].sum() / w[fresh].sum(), x.sum() / w.sum(), oracle


    def causes(self, n, n_judged, seed):
        """The spread, in targets; for four ways to choose, tokens / oracle's and the share that breaks the promise."""
        def normal(x, w):
            mean = x.sum() / w.sum()
            return mean + 1.645 * ((x - mean * w) / w.mean()).std() / math.sqrt(len(x)) <= self.goal

        def least(holds):
            return min((b for b in walked if holds(*self.at(b))), default=None)

        rng, all_ = numpy.random.default_rng(seed), len(next(iter(self.measured.values()))[0])
        oracle = self.walk(lambda x, w: x.sum() / w.sum() <= self.goal)
        if oracle is None:              # no budget of the walk keeps the mean within the target
            return math.nan, {}
        walked = [following(self.n_token, self.found, self.n_token, self.floor)]
        while walked[-1] and self.at(walked[-1])[0].sum() / self.at(walked[-1])[1].sum() <= 1.5 * self.goal:
            walked.append(following(walked[-1], self.found, self.n_token, self.floor))
        walked = [b for b in walked if b]
        chosen = {"walk": [], "no stop": [], "normal bound": [], "mean alone": []}
        for _ in range(n):
            judged = rng.choice(all_, n_judged)
            bound = lambda x, w: high(x[judged], w[judged], FIRST if self.second() else FIRST_ALONE) <= self.goal
            chosen["walk"].append(self.both_walks(judged))
            chosen["no stop"].append(least(bound))
            chosen["normal bound"].append(self.walk(lambda x, w: normal(x[judged], w[judged])))
            chosen["mean alone"].append(self.walk(lambda x, w: x[judged].sum() / w[judged].sum() <= self.goal))
        more = lambda b: self.at(b)[0].sum() / self.at(b)[1].sum()
        x, w = self.at(oracle)
        return (x / w).std() / self.goal, {
            way: (numpy.mean([b / oracle for b in of if b]), numpy.mean([more(b) > self.goal for b in of if b]))
            for way, of in chosen.items()}


def case(args, name, model, path, folder):
    texts, seen = documents(path, args.characters), {(t, n): [] for t in args.target for n in args.judged}
    for split in range(args.splits):
        at = f"{folder}/{name}-{split}"
        os.makedirs(at, exist_ok=True)
        order = list(texts)
        random.Random(split).shuffle(order)
        with open(f"{at}/texts.jsonl", "w") as f:
            f.writelines(json.dumps({"text": t}) + "\n" for t in order[:args.documents])
        n = args.draws // args.splits + (split < args.draws % args.splits)
        for target in args.target:
            s = Split(args, model, f"{at}/texts.jsonl", target, at)
            for judged in args.judged:
                seen[target, judged] += [(s.n_token, s.goal, *one) for one in s.draws(n, judged, split)]
            print(f"{name}, split {split}, {target}: {s.policy}, {s.found} of {s.n_token}", file=sys.stderr, flush=True)
            for judged in args.judged if args.causes else []:
                spread, ways = s.causes(n, judged, split)
                print(f"{name}, {target}, {judged} judged: spread {spread:.1f} of the target; "
                      + ", ".join(f"{way} {ratio:.2f} ({broken:.0%} broken)" for way, (ratio, broken) in ways.items()),
                      flush=True)
    for (target, judged), of in seen.items():
        row(name, target, judged, of)


def row(name, target, judged, seen):
    met = [s for s in seen if s[2]]
    mean = lambda values: numpy.mean(list(values)) if met else math.nan
    print(f"| {name} | {float(target):.0%} | {judged} | {len(met)} of {len(seen)} | "
          f"{100 * mean(more > goal for _, goal, _, _, more, _ in met):.1f} | "
          f"{100 * mean(fresh > goal for _, goal, _, fresh, _, _ in met):.1f} | "
          f"{math.expm1(mean(more for *_, more, _ in met)):.2%} | "
          f"{mean(m / n for n, _, m, *_ in met):.1%} | "
          f"{mean(m / oracle for _, _, m, _, _, oracle in met if oracle):.2f} |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("shears", type=os.path.abspath)
    p.add_argument("--case", nargs=3, action="append", required=True, metavar=("NAME", "MODEL", "TEXT"))
    p.add_argument("--draws", type=int, default=200)
    p.add_argument("--splits", type=int, default=4)
    p.add_argument("--documents", type=int, default=120, help="of each split, at most")
    p.add_argument("--search", type=int, default=24)
    p.add_argument("--judged", type=int, nargs="+", default=[24])
    p.add_argument("--length", type=int, default=512)
    p.add_argument("--characters", type=int, default=2000)
    p.add_argument("--target", nargs="+", default=["0.01", "0.02", "0.05"])
    p.add_argument("--policy", nargs="+", help="default: those that the program tries")
    p.add_argument("--allocator", default="loss")
    p.add_argument("--causes", action="store_true", help="also say what the tokens above the oracle's are spent on")
    p.add_argument("--keep", help="folder for what was measured, which is then not measured again")
    args = p.parse_args()
    print("| case | target | judged | met | broken, % | on those not drawn, % | increase | cache | tokens / oracle's |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as temporary:
        for name, model, path in args.case:
            case(args, name, model, path, args.keep or temporary)


if __name__ == "__main__":
    main()
