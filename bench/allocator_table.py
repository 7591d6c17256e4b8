#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What allocators lose at equal numbers of tokens, on sequences that they were not made with.

    python3 bench/allocator_table.py ./shears --case recall demo/model demo/text/recall.jsonl

A case is a name, a model and documents, cut to --length tokens; those with fewer than --least are left out. The first
--search of them are searched (rows, probes of layers); --judged others are read under the budgets of each allocator, for
each mean. Reported: the change of the nll in nats per token, with the standard error of the difference between the last
allocator and the one before, over sequences.
"""
import argparse
import json
import math
import os
import sqlite3
import struct
import subprocess
import sys
import tempfile


def fnv(data):
    h = 0xcbf29ce484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001b3 % 2**64
    return f"{h:016x}"


def changes(db, plan, n, mean):
    """Of each judged sequence: the change, nats, and its tokens. The store has the searched ones, too; the judged ones are
    those with the mean that the command says."""
    budgets = [b for row in plan["budgets"] for b in row]
    of = {}
    for settings, metric, value in sqlite3.connect(db).execute(
            "SELECT settings, metric, value FROM result WHERE command = 'plan' AND settings LIKE ?",
            (f"%{fnv(struct.pack(f'{len(budgets)}i', *budgets))}%",)):
        of.setdefault(settings, {})[metric] = value
    for read in of.values():
        change, tokens = ([read.get(f"{what}_{i}", 0) for i in range(n)] for what in ("change", "tokens"))
        if abs(sum(change) / sum(tokens) - mean) < 1e-6:
            return change, tokens
    sys.exit(f"{db}: no results with a mean of {mean}")


def measure(args, model, text, mean, allocator, folder):
    db, out = f"{folder}/table.db", f"{folder}/plan.json"
    done = subprocess.run(
        [args.shears, "plan", "-q", "--json", "--model", model, "--jsonl", text, "--length", str(args.length),
         "--min-tokens", str(args.least), "--policy", args.policy, "--allocator", allocator, "--budget", str(mean),
         "--search-first", str(args.search), "--sequences", str(args.judged), "--db", db, "-o", out],
        capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    shown = json.loads(done.stdout)
    return changes(db, json.load(open(out)), shown["sequences"], math.log1p(shown["ppl_increase"]))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("shears", type=os.path.abspath)
    p.add_argument("--case", nargs=3, action="append", required=True, metavar=("NAME", "MODEL", "JSONL"))
    p.add_argument("--length", type=int, default=512)
    p.add_argument("--least", type=int, default=256)
    p.add_argument("--search", type=int, default=12)
    p.add_argument("--judged", type=int, default=24)
    p.add_argument("--policy", default="h2o:recent=16")
    p.add_argument("--allocator", nargs="+", default=["uniform", "greedy", "loss"])
    p.add_argument("--mean", type=int, nargs="+", default=[51, 77, 102, 154])
    args = p.parse_args()
    print("| case | tokens a head |" + "".join(f" {a} |" for a in args.allocator) + " difference | ratio |")
    print("| --- |" + " --- |" * (len(args.allocator) + 3))
    for name, model, text in args.case:
        with tempfile.TemporaryDirectory() as folder:
            for mean in args.mean:
                lost = [measure(args, model, text, mean, a, folder) for a in args.allocator]
                (more, w), (less, _), n, all_ = lost[-1], lost[-2], len(lost[0][0]), sum(lost[0][1])
                average = [sum(change) / all_ for change, _ in lost]
                rest = [(a - b - (average[-1] - average[-2]) * t) * n / all_ for a, b, t in zip(more, less, w)]
                error = math.sqrt(sum(r * r for r in rest) / (n - 1) / n)
                print(f"| {name} | {mean} |" + "".join(f" {a:.4f} |" for a in average) +
                      f" {average[-1] - average[-2]:+.4f} ± {error:.4f} | {average[-1] / average[-2]:.2f} |", flush=True)


main()
