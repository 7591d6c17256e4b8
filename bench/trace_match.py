# SPDX-License-Identifier: Apache-2.0
"""The scores that the GPU records, compared with the CPU's: every golden checkpoint is traced on both, every head is exported
and compared score by score. A line of JSON for each checkpoint and dtype; status 1 if one is off by more than its
limit.

    python3 bench/trace_match.py --shears ./shears --checkpoints tests/golden/checkpoints --work /tmp/match
"""
import argparse
import array
import json
import os
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

# Sums in another order, and what rounding operands may move a score by (tests/unit/test_forward.c: 4.9e-3, 2.7e-2).
LIMITS = {"f32": 2e-5, "f16": 5e-3, "bf16": 2.7e-2}
HALF = ("opt", "llama_gqa", "gpt2", "bloom")            # those that are traced in 16 bits, too


def run(a, *arguments):
    done = subprocess.run([a.shears, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"shears {arguments[0]}: status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def numbers(path):
    """The float32 numbers of a .npy file."""
    raw = open(path, "rb").read()
    size, = struct.unpack("<H", raw[8:10])
    assert b"'<f4'" in raw[10:10 + size], path
    os.remove(path)
    return array.array("f", raw[10 + size:])


def head(a, store, sequence, layer, h):
    path = f"{store}-{sequence}-{layer}-{h}.npy"
    run(a, "export", "--db", store, "--sequence", sequence, "--layer", layer, "--head", h, "-o", path)
    return numbers(path)


def traced(a, name, dtype, backend):
    store = f"{a.work}/match-{name}-{dtype}-{backend}.db"
    if os.path.exists(store):
        os.remove(store)
    said = run(a, "trace", "--model", f"{a.checkpoints}/{name}", "--tokens", f"{a.work}/match-{name}.jsonl", "--db",
               store, "--codec", "f32", "--dtype", dtype, "--backend", backend, "--json", "-q")
    return store, json.loads(said)


def compare(a, pool, name, dtype):
    with open(f"{a.checkpoints}/{name}/ref.json") as f, open(f"{a.work}/match-{name}.jsonl", "w") as to:
        to.writelines(json.dumps(s["tokens"]) + "\n" for s in json.load(f)["sequences"])
    (cpu, said), (cuda, _) = (traced(a, name, dtype, backend) for backend in ("cpu", "cuda"))
    places = [(s, l, h) for s in range(said["sequences"]) for l in range(said["layers"]) for h in range(said["heads"])]
    worst = count = 0
    heads = [pool.map(lambda at, store=store: head(a, store, *at), places) for store in (cpu, cuda)]
    for x, y in zip(*heads):
        assert len(x) == len(y)
        count += len(x)
        worst = max(worst, max(abs(i - j) if i == i and j == j else float("inf") for i, j in zip(x, y)))
    for store in (cpu, cuda):
        os.remove(store)
    return {"checkpoint": name, "dtype": dtype, "scores": count, "worst_difference": worst, "limit": LIMITS[dtype],
            "within": worst <= LIMITS[dtype]}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--shears", required=True)
    p.add_argument("--checkpoints", required=True)
    p.add_argument("--work", required=True)
    a = p.parse_args()
    names = sorted(n for n in os.listdir(a.checkpoints) if os.path.exists(f"{a.checkpoints}/{n}/ref.json"))
    cases = [(n, "f32") for n in names] + [(n, d) for n in HALF if n in names for d in ("f16", "bf16")]
    bad = 0
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        for name, dtype in cases:
            try:
                row = compare(a, pool, name, dtype)
            except RuntimeError as e:                   # the other ones stand
                row = {"checkpoint": name, "dtype": dtype, "failed": str(e), "within": False}
            bad += not row["within"]
            print(json.dumps(row), flush=True)
    print(f"{len(cases) - bad} of {len(cases)} traces are the CPU's within their limits", file=sys.stderr)
    sys.exit(1 if bad or not cases else 0)


main()
