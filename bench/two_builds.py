#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same work by two builds of the program, in turns: what a change costs or gains. Whole commands (trace, replay,
persistence, eval, plan, simulate), the replay driver and the decode driver of each build folder; the median of --repeat
runs each, and the ratio of the speeds, after to before (above 1: the newer build is faster).

    make bench-replay bench-decode        # in both build folders
    bench/two_builds.py --before DIR --after DIR --work /tmp/bench [--repeat 7] > FILE.json

DIR is a build folder, with `shears`, bench/replay_speed and bench/decode_speed. Needs numpy. Run it on an idle machine.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import random_model
import replay_speed


def flat(tree, path=""):
    """Every number of a tree of JSON, by its path."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from flat(value, f"{path}.{key}" if path else key)
    elif isinstance(tree, list):
        for i, value in enumerate(tree):
            yield from flat(value, f"{path}[{i}]")
    elif isinstance(tree, float):
        yield path, tree


def commands(work, model, text):
    """Name and arguments of commands, in order: each may read what earlier ones made."""
    store, kept = os.path.join(work, "two_builds.db"), ["-q", "--threads", "2"]
    texts = ["--model", model, "--text", text, "--length", "512"]
    yield "trace full", [store], ["trace", *texts, "--count", "8", "--vectors", "kv", "--db", store, *kept]
    yield "trace summary", [store + ".s"], ["trace", *texts, "--count", "8", "--record", "summary", "--db", store + ".s",
                                            *kept]
    yield "replay", [], ["replay", "--db", store, "--policy", "h2o", "scissorhands:drop=1", "tova", "snapkv", "window",
                         "--budget", "0.1,0.2,0.5", "--force", *kept]
    yield "persistence", [], ["persistence", "--db", store, *kept]
    yield "eval", [], ["eval", *texts, "--count", "2", "--policy", "h2o", "scissorhands", "--budget", "0.2", *kept]
    yield "plan", [], ["plan", "--db", store, "--policy", "h2o", "--target-recall", "0.9", "--allocator", "greedy", "-o",
                       os.path.join(work, "two_builds.json"), *kept]
    yield "simulate", [], ["simulate", "--model", "llama-2-7b", "--gpu", "A100-SXM-80GB", "--rate", "20", "--requests",
                           "20000", "--prompt", "500", "--output", "200", *kept]


def run(build, args, gone):
    for path in gone:
        if os.path.exists(path):
            os.unlink(path)
    begin = time.perf_counter()
    subprocess.run([os.path.join(build, "shears"), *args], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--before", required=True)
    p.add_argument("--after", required=True)
    p.add_argument("--work", required=True)
    p.add_argument("--repeat", type=int, default=7)
    a = p.parse_args()
    os.makedirs(a.work, exist_ok=True)
    top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    model, text = os.path.join(top, "demo", "model"), os.path.join(top, "demo", "text", "natural.txt")
    builds, times = {"before": a.before, "after": a.after}, {}

    def note(name, which, speed):
        times.setdefault(name, {"before": [], "after": []})[which].append(speed)

    rows = os.path.join(a.work, "two_builds.rows")
    with open(rows, "wb") as f:                         # head by head, as the driver reads them
        made = replay_speed.make_rows(768, 8)
        for head in range(8):
            for row in made:
                f.write(row[head].tobytes())
    llama = os.path.join(a.work, "llama-134m")
    if not os.path.exists(llama):
        random_model.make(llama, "llama-134m")
    for i in range(a.repeat):
        order = list(builds.items())[:: 1 if i % 2 else -1]
        for name, gone, args in commands(a.work, model, text):
            for which, build in order:
                note(f"shears {name}", which, 1 / run(build, args, gone))
        for which, build in order:
            said = json.loads(subprocess.run([os.path.join(build, "bench", "replay_speed"), rows, "768", "8"], check=True,
                                             capture_output=True, text=True).stdout)
            for name, speed in flat(said):
                if "mean_kept" in name or "bits" in name:       # no speeds
                    continue
                note(f"replay_speed {name}", which, speed)
        for which, build in order:
            said = json.loads(subprocess.run([os.path.join(build, "bench", "decode_speed"), llama, "f32", "16", "16", "1",
                                              "256", "32", "h2o", "128", "1"], check=True, capture_output=True,
                                             text=True).stdout)
            note("decode_speed prompt", which, 1 / said["prompt_s"][0])
            note("decode_speed step", which, 1 / statistics.median(said["step_s"][0]))
        print(f"{i + 1} of {a.repeat}", file=sys.stderr)
    result = {"repeat": a.repeat, "rows": []}
    for name, t in times.items():
        before, after = statistics.median(t["before"]), statistics.median(t["after"])
        result["rows"].append({"name": name, "before": round(before, 5), "after": round(after, 5),
                               "ratio": round(after / before, 4), "best_ratio": round(max(t["after"]) / max(t["before"]), 4)})
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
