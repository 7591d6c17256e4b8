# SPDX-License-Identifier: Apache-2.0
"""Golden runs under a KV budget, cut out of the reference fixtures (their README says how those were made:
float32, eviction inside the decoding loop, cases chosen so that no decision hangs on rounding).

    python3 tests/oracle/session.py FIXTURES tests/golden/session

For each checkpoint: NAME.json (policies as they are typed, budgets per layer, tokens, greedy continuation) and
NAME.safetensors (evict_step as int8, nll, logits at some positions). And opt_wide's runs with a quantised cache.
"""
import json
import os
import shutil
import sys

import numpy as np
from safetensors.numpy import load_file, save_file

KEEP = 8                # rows of logits of a case


def save(tensors, path):
    save_file(tensors, path)
    os.chmod(path, 0o644)


def typed(case):
    knobs = []
    for key, value in case["params"].items():
        if not key.startswith("budget"):
            knobs.append(f"{'window' if key == 'history_window' else key}={value}")
    if case["policy"] == "streaming" and "sinks" not in case["params"]:
        knobs.append("sinks=4")
    if "recent" not in case["params"] and case["policy"] in ("h2o", "scissorhands"):
        knobs.append("recent=0")
    return case["policy"] + (":" + ",".join(knobs) if knobs else "")


def thin(rows):
    pick = np.unique(np.linspace(0, len(rows) - 1, KEEP).round().astype(int))
    return pick, [rows[i] for i in pick]


def policies(fixtures, out, name):
    ref = json.load(open(f"{fixtures}/policies/{name}.json"))
    tensors = load_file(f"{fixtures}/policies/{name}.safetensors")
    pick, rows = thin(ref["logits_rows"])
    layers = json.load(open(f"{fixtures}/{name}/ref.json"))["n_layers"]
    cases, kept = [], {}
    for c in ref["cases"]:
        budget = c["params"].get("budget_per_layer") or [c["params"].get("budget", len(c["tokens"]) + 15)] * layers
        cases.append({"name": c["name"], "policy": typed(c), "budget": budget, "prefill": c["prefill"],
                      "tokens": c["tokens"], "greedy": c["greedy"], "mean_nll": c["mean_nll"]})
        evict = tensors[c["name"] + ".evict_step"]
        assert evict.max() < 128
        kept[c["name"] + ".evict_step"] = evict.astype(np.int8)
        kept[c["name"] + ".logits"] = tensors[c["name"] + ".logits_rows"][pick]
        kept[c["name"] + ".nll"] = tensors[c["name"] + ".nll"]
    json.dump({"checkpoint": name, "rows": rows, "cases": cases}, open(f"{out}/{name}.json", "w"),
              separators=(",", ":"))
    save(kept, f"{out}/{name}.safetensors")


def quantised(fixtures, out):
    ref = json.load(open(f"{fixtures}/quant/quant.json"))
    tensors = load_file(f"{fixtures}/quant/quant.safetensors")
    pick, rows = thin(ref["logits_rows"])
    cases = [{k: c[k] for k in ("name", "mode", "bits", "group", "meta", "tokens")} for c in ref["logit_cases"]]
    keys = ["m1.K.b4.g32", "m1.V.b4.g32", "m1.K.b4.g64.f16", "m1.V.b4.g64.f16", "m1.K.b8.g64.f16", "m1.V.b8.g32"]
    matrices = [{k: m[k] for k in ("key", "input", "scheme", "bits", "group", "meta", "min_distance_to_rounding_tie")}
                for m in ref["matrices"] if m["key"] in keys]
    assert len(matrices) == len(keys)
    json.dump({"rows": rows, "cases": cases, "matrices": matrices}, open(f"{out}/quant.json", "w"),
              separators=(",", ":"))
    kept = {c["name"]: tensors[c["name"] + ".logits_rows"][pick] for c in cases}
    for m in matrices:
        for what in ("scale", "min", "codes", "packed"):
            if f"{m['key']}.{what}" in tensors:
                kept[f"{m['key']}.{what}"] = tensors[f"{m['key']}.{what}"]
        kept[m["input"]] = tensors[m["input"]]
    save(kept, f"{out}/quant.safetensors")
    os.makedirs(f"{out}/opt_wide", exist_ok=True)
    for file in ("config.json", "model.safetensors"):
        shutil.copyfile(f"{fixtures}/opt_wide/{file}", f"{out}/opt_wide/{file}")


def main():
    fixtures, out = sys.argv[1:]
    os.makedirs(out, exist_ok=True)
    for name in ("opt", "llama", "llama_gqa"):
        policies(fixtures, out, name)
    quantised(fixtures, out)


main()
