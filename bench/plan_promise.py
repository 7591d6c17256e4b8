#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do plans keep their promise? Draws of texts, a plan on each, and its increase on texts that it was not made with.

    python3 bench/plan_promise.py ./shears --draws 200 \\
        --case recall demo/model demo/text/recall.jsonl --case natural demo/model demo/text/natural.txt

A case is a name, a model and a text (documents of a .jsonl file, or a text in blocks of --characters). In each draw
documents are shuffled; --give of them go to `shears plan` for each target, the rest are fresh. Reported per case and
target: plans that are met; of these, how many have a larger increase on the fresh texts; the share of the cache; and
tokens against an oracle's: the largest factor by which the plan's own budgets could shrink and still hold the target
on the fresh texts (interpolated between factors that are evaluated).

The fresh texts are few as well: their noise counts as broken promises, and as gain or loss of the oracle.
"""
import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile

FACTORS = [1, 0.94, 0.88, 0.8, 0.7, 0.6, 0.5]


def documents(path, characters):
    if path.endswith(".jsonl"):
        return [json.loads(line)["text"] for line in open(path) if line.strip()]
    text = open(path).read()
    return [text[i:i + characters] for i in range(0, len(text) - characters + 1, characters)]


def write(path, texts):
    with open(path, "w") as f:
        for text in texts:
            print(json.dumps({"text": text}), file=f)


def run(*args):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, args))}: {done.stderr}")
    return json.loads(done.stdout)


def shrunk(plan, factor, floor, path):
    n = plan["n_token"]
    budgets = [[max(floor, round(b * factor)) for b in row] for row in plan["budgets"]]
    total = sum(map(sum, budgets))
    with open(path, "w") as f:
        json.dump(dict(plan, budgets=budgets, shares=[[b / n for b in row] for row in budgets], total_tokens=total), f)
    return total


def judge(args, model, plan, folder):
    """Increase on the fresh texts, and the tokens that would do there as a share of the plan's."""
    floor = min(min(row) for row in plan["budgets"])
    paths = [f"{folder}/plan-{k}.json" for k in range(len(FACTORS))]
    totals = [shrunk(plan, f, floor, p) for f, p in zip(FACTORS, paths)]
    r = run(args.shears, "eval", "-q", "--json", "--model", model, "--jsonl", f"{folder}/fresh.jsonl", "--length",
            args.length, "--plan", *paths)["results"]
    increase = [math.expm1(x["nll_change"]) for x in r]
    target, needed = plan["target"]["value"], totals[0]
    for i in range(1, len(totals)):
        if increase[i] > target:
            if increase[i - 1] <= target:
                part = (target - increase[i - 1]) / (increase[i] - increase[i - 1])
                needed = totals[i - 1] + part * (totals[i] - totals[i - 1])
            break
        needed = totals[i]
    return increase[0], totals[0] / needed


def draw(args, name, model, texts, seed, seen):
    order = list(texts)
    random.Random(seed).shuffle(order)
    give = min(args.give, len(order) * 2 // 3)
    with tempfile.TemporaryDirectory() as folder:
        write(f"{folder}/given.jsonl", order[:give])
        write(f"{folder}/fresh.jsonl", order[give:])
        for target in args.target:
            r = run(args.shears, "plan", "-q", "--json", "--model", model, "--jsonl", f"{folder}/given.jsonl",
                    "--length", args.length, "--target-ppl-increase", target, "--seed", seed, "--db",
                    f"{folder}/plan.db", "--policy", *args.policy, "--allocator", *args.allocator, "-o",
                    f"{folder}/plan.json")
            one = dict(case=name, target=target, seed=seed, status=r["status"], share=r["share"], policy=r["policy"],
                       bound=r["ppl_increase_bound"], sequences=r["sequences"])
            if r["status"] == "met":
                one["fresh"], one["surplus"] = judge(args, model, json.load(open(f"{folder}/plan.json")), folder)
            print(json.dumps(one), flush=True)
            seen.append(one)


def table(seen):
    print("| case | target | draws | met | broken on fresh texts | increase there | cache | tokens / oracle's |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for key in sorted({(s["case"], s["target"]) for s in seen}):
        all_ = [s for s in seen if (s["case"], s["target"]) == key]
        met = [s for s in all_ if "fresh" in s]
        mean = lambda what: sum(s[what] for s in met) / len(met) if met else math.nan
        broken = sum(s["fresh"] > float(key[1]) for s in met)
        print(f"| {key[0]} | {float(key[1]):.0%} | {len(all_)} | {len(met)} | {broken} | {mean('fresh'):.2%} | "
              f"{mean('share'):.1%} | {mean('surplus'):.2f} |")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("shears", type=os.path.abspath)
    p.add_argument("--case", nargs=3, action="append", required=True, metavar=("NAME", "MODEL", "TEXT"))
    p.add_argument("--draws", type=int, default=200)
    p.add_argument("--first", type=int, default=1, help="seed of the first draw")
    p.add_argument("--give", type=int, default=48)
    p.add_argument("--length", type=int, default=512)
    p.add_argument("--characters", type=int, default=2000)
    p.add_argument("--target", nargs="+", default=["0.01", "0.02", "0.05"])
    p.add_argument("--policy", nargs="+", default=["h2o:recent=16", "window", "scissorhands:counts=rate"])
    p.add_argument("--allocator", nargs="+", default=["loss"])
    args = p.parse_args()
    seen = []
    cases = [(name, model, documents(path, args.characters)) for name, model, path in args.case]
    for seed in range(args.first, args.first + args.draws):
        for name, model, texts in cases:
            draw(args, name, model, texts, seed, seen)
    table(seen)


main()
