#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what `shears eval --task` said with tests/golden/tasks/golden.json.
    tasks.py ITEMS REPORT TASK SHOTS [CELL...]    ITEMS: what --items wrote; CELL in the order of the results"""
import json
import math
import os
import sys


def near(a, b, limit):
    return abs(a - b) <= limit if a is not None and b is not None else a is b


def main(items, report, task, shots, *cells):
    golden = {(g["task"], g["shots"], g["cell"]): g
              for g in json.load(open(os.environ["SH_GOLDEN"] + "/tasks/golden.json"))}
    report = json.load(open(report))
    lines = [json.loads(line) for line in open(items)]
    n, wrong = report["items"], []
    wanted = ["full", *cells]
    assert len(lines) == n * len(wanted), (len(lines), n, wanted)
    for k, cell in enumerate(wanted):
        g = golden[task, int(shots), cell]
        assert n == len(g["items"]), (n, len(g["items"]))
        figures = report if k == 0 else report["results"][k - 1]
        for key in "acc", "stderr", "acc_norm", "acc_norm_stderr":
            # what a task has no norm for is null here
            if figures[key] is not None and not near(figures[key], g[key], 1e-12):
                wrong.append((cell, key, figures[key], g[key]))
        for line, i in zip(lines[k * n:(k + 1) * n], g["items"]):
            mine = [c["loglikelihood"] for c in line["choices"]]
            if not all(near(a, b, 1e-4 + 2e-6 * abs(b)) for a, b in zip(mine, i["sums"], strict=True)):
                wrong.append((cell, line["line"], mine, i["sums"]))
            for key, value in (("tokens", i["tokens"]), ("context_tokens", i["context"]), ("greedy", i["greedy"])):
                if [c[key] for c in line["choices"]] != value:
                    wrong.append((cell, line["line"], key, value))
            if (line["choice"], line["choice_norm"], line["gold"]) != (i["choice"], i["choice_norm"], i["gold"]):
                wrong.append((cell, line["line"], "choice"))
        if task == "lambada":
            sums = [i["sums"][0] for i in g["items"]]
            if not math.isclose(figures["ppl"], math.exp(-sum(sums) / n), rel_tol=1e-5):
                wrong.append((cell, "ppl", figures["ppl"]))
    for w in wrong[:5]:
        print(*w)
    return len(wrong) > 0


sys.exit(main(*sys.argv[1:]))
