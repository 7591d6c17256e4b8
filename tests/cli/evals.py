# SPDX-License-Identifier: Apache-2.0
"""Checks of what `shears eval` says and writes. Usage:

    evals.py case NAME CASE said.json kept.jsonl logits.npy     against tests/golden/session/NAME
    evals.py tokens NAME CASE                                   its ids as a line for --tokens
"""
import json
import math
import os
import struct
import sys

GOLDEN = os.environ["SH_GOLDEN"] + "/session/"


def golden(name):
    with open(GOLDEN + name + ".json") as f:
        ref = json.load(f)
    with open(GOLDEN + name + ".safetensors", "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    return ref, header, data


def tensor(header, data, name):
    t = header[name]
    kind = {"F32": "f", "I8": "b"}[t["dtype"]]
    raw = data[slice(*t["data_offsets"])]
    return t["shape"], struct.unpack(f"<{len(raw) // struct.calcsize(kind)}{kind}", raw)


def npy(path):
    with open(path, "rb") as f:
        assert f.read(8) == b"\x93NUMPY\x01\x00"
        header = eval(f.read(struct.unpack("<H", f.read(2))[0]))
        raw = f.read()
    assert header["descr"] == "<f4" and not header["fortran_order"]
    rows, cols = header["shape"]
    values = struct.unpack(f"<{rows * cols}f", raw)
    return [values[i * cols:(i + 1) * cols] for i in range(rows)]


def nll(logits, tokens):
    total = 0.0
    for row, token in zip(logits, tokens[1:]):
        most = max(row)
        total += most + math.log(sum(math.exp(x - most) for x in row)) - row[token]
    return total / (len(tokens) - 1)


def check_case(name, case, said, kept, logits):
    ref, header, data = golden(name)
    c = next(x for x in ref["cases"] if x["name"] == case)
    n, rows = len(c["tokens"]), npy(logits)
    (layers, heads, steps), evict = tensor(header, data, case + ".evict_step")
    with open(kept) as f:
        lines = [json.loads(line) for line in f]
    assert len(lines) == layers * heads * n and {x["sequence"] for x in lines} == {0}
    for x in lines:
        first = (x["layer"] * heads + x["head"]) * steps
        want = [j for j in range(x["step"] + 1) if evict[first + j] < 0 or evict[first + j] > x["step"]]
        assert x["kept"] == want, (x, want)
    shape, wanted = tensor(header, data, case + ".logits")
    most = max(map(abs, wanted))
    for i, position in enumerate(ref["rows"]):
        if position < n:
            off = max(abs(a - b) for a, b in zip(rows[position], wanted[i * shape[1]:(i + 1) * shape[1]]))
            assert off <= 5e-5 * most, (position, off)
    with open(said) as f:
        r = json.load(f)["results"]
    assert len(r) == 1 and len(rows) == n and r[0]["tokens"] == n - 1
    assert abs(r[0]["nll"] - c["mean_nll"]) < 1e-4 and abs(nll(rows, c["tokens"]) - r[0]["nll"]) < 1e-4
    assert abs(r[0]["ppl"] - math.exp(r[0]["nll"])) < 1e-6 * r[0]["ppl"]


if __name__ == "__main__":
    if sys.argv[1] == "tokens":
        print(next(x for x in golden(sys.argv[2])[0]["cases"] if x["name"] == sys.argv[3])["tokens"])
    else:
        check_case(*sys.argv[2:])
