#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recording costs on the CPU: the plain forward (the last layer recorded alone), `summary`, `sparse` and `full` of
one model in one run, at 2,048 and 8,192 tokens, taken in turns; medians of whole commands, and ratios to the plain
forward. The stages are those of one more run, with --timing. LLaMA's shape of 134 M random weights, random tokens.

    bench/summary_speed.py --shears ./shears --work /tmp/bench [--dtype f32 bf16] [--repeat 3] > FILE.json
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time

import random_model

LEVELS = {"plain": ["--record", "summary", "--layers", "11-11"], "summary": ["--record", "summary"],
          "sparse": ["--record", "sparse"], "full": ["--record", "full"]}


def trace(shears, work, tokens, dtype, level, *more):
    """Seconds, and what it said."""
    store = os.path.join(work, "summary_speed.db")
    if os.path.exists(store):
        os.unlink(store)
    command = [shears, "trace", "--model", os.path.join(work, "llama-134m"), "--tokens", tokens, "--db", store, "-q",
               "--backend", "cpu", "--dtype", dtype, "--json", *LEVELS[level], *more]
    begin = time.perf_counter()
    said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    seconds = time.perf_counter() - begin
    os.unlink(store)
    return seconds, said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shears", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--dtype", nargs="+", default=["f32", "bf16"])
    parser.add_argument("--lengths", nargs="+", type=int, default=[2048, 8192])
    parser.add_argument("--repeat", type=int, default=3)
    a = parser.parse_args()
    os.makedirs(a.work, exist_ok=True)
    if not os.path.exists(os.path.join(a.work, "llama-134m")):
        random_model.make(os.path.join(a.work, "llama-134m"), "llama-134m")
    results = []
    for dtype in a.dtype:
        for length in a.lengths:
            tokens, draw = os.path.join(a.work, f"{length}.jsonl"), random.Random(length)
            with open(tokens, "w") as file:
                print(json.dumps([draw.randrange(3, 32000) for _ in range(length)]), file=file)
            runs = {level: [] for level in LEVELS}
            for _ in range(a.repeat):
                for level in LEVELS:
                    runs[level].append(trace(a.shears, a.work, tokens, dtype, level)[0])
            seconds = {level: statistics.median(runs[level]) for level in LEVELS}
            for level in LEVELS:
                said = trace(a.shears, a.work, tokens, dtype, level, "--timing")[1]
                results.append({"dtype": dtype, "tokens": length, "record": level, "seconds": seconds[level],
                                "to_plain": seconds[level] / seconds["plain"], "runs": runs[level],
                                "stages": {row["stage"]: row["seconds"] for row in said["timing"]}})
                print(f"{dtype} {length} {level:8} {seconds[level]:8.3f} s  {seconds[level] / seconds['plain']:.3f}",
                      file=sys.stderr)
    json.dump({"device": said["device"], "repeat": a.repeat, "results": results}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
