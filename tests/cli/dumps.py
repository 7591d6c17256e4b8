# SPDX-License-Identifier: Apache-2.0
"""Dumps of attention as other programs leave them: safetensors and .npy files. Standard library only. A tensor
is (type, shape, list of numbers), type one of F32, F16, BF16, F64."""
import json
import math
import os
import random
import struct

from scores import read_safetensors

REFERENCES = os.environ["SH_GOLDEN"] + "/checkpoints/%s/ref.safetensors"


def pack(kind, numbers):
    if kind == "BF16":                  # to the nearest, ties to even
        bits = struct.unpack("<%dI" % len(numbers), struct.pack("<%df" % len(numbers), *numbers))
        return struct.pack("<%dH" % len(numbers), *[(b + 0x7fff + (b >> 16 & 1)) >> 16 for b in bits])
    return struct.pack("<%d%s" % (len(numbers), {"F32": "f", "F16": "e", "F64": "d"}[kind]), *numbers)


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, (kind, shape, numbers) in tensors.items():
        raw = pack(kind, numbers)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def write_npy(path, kind, shape, numbers):
    facts = {"descr": {"F32": "<f4", "F16": "<f2", "F64": "<f8"}[kind], "fortran_order": False, "shape": tuple(shape)}
    text = repr(facts).encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + pack(kind, numbers))


def reference(checkpoint, sequence=0):
    """PyTorch's attention of a golden checkpoint: shape [layers, heads, T, T], numbers."""
    shape, numbers = read_safetensors(REFERENCES % checkpoint)[f"s{sequence}.attn"]
    return shape, list(numbers)


def softmax_rows(heads, rows, keys, seed=1, causal=False):
    """[heads, rows, keys] of rows that sum to 1."""
    rng, out = random.Random(seed), []
    for _ in range(heads):
        for q in range(rows):
            e = [math.exp(2 * rng.gauss(0, 1)) if not causal or k <= q else 0.0 for k in range(keys)]
            out += [x / sum(e) for x in e]
    return out


def near(a, b, tolerance, where=""):
    """The same JSON but for numbers, which are within a tolerance."""
    if isinstance(a, dict):
        assert isinstance(b, dict) and a.keys() == b.keys(), f"{where}: {a.keys()} and {b.keys()}"
        for key in a:
            near(a[key], b[key], tolerance, f"{where}.{key}")
    elif isinstance(a, list):
        assert isinstance(b, list) and len(a) == len(b), f"{where}: {a} and {b}"
        for i, (x, y) in enumerate(zip(a, b)):
            near(x, y, tolerance, f"{where}[{i}]")
    elif isinstance(a, (int, float)) and not isinstance(a, bool) and isinstance(b, (int, float)):
        assert abs(a - b) <= tolerance * max(1, abs(b)), f"{where}: {a} and {b}"
    else:
        assert a == b, f"{where}: {a} and {b}"
