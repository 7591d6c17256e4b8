#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares recorded queries, keys and values with what follows from a golden checkpoint: its weights,
and the input of each layer that PyTorch computed. Usage: vectors.py CHECKPOINT STORE"""
import array
import ctypes
import ctypes.util
import math
import sys

from scores import query, read_safetensors

HEADS = 4
zstd = ctypes.CDLL(ctypes.util.find_library("zstd"))
zstd.ZSTD_decompress.restype = ctypes.c_size_t
zstd.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]


def floats(blob, count):
    """A block of codec 0: zstd of four planes of bytes."""
    plain = ctypes.create_string_buffer(4 * count)
    assert zstd.ZSTD_decompress(plain, 4 * count, blob, len(blob)) == 4 * count, "a block of another size"
    planes = [plain.raw[i * count:(i + 1) * count] for i in range(4)]
    return array.array("f", bytes(b for number in zip(*planes) for b in number))


def norm(row, weight, bias):
    mean = sum(row) / len(row)
    scale = 1 / math.sqrt(sum((x - mean) ** 2 for x in row) / len(row) + 1e-5)
    return [(x - mean) * scale * w + b for x, w, b in zip(row, weight, bias)]


def linear(row, weight, bias):
    return [sum(x * w for x, w in zip(row, weight[i * len(row):(i + 1) * len(row)])) + b for i, b in enumerate(bias)]


def main(checkpoint, store):
    weights, reference = (read_safetensors(f"{checkpoint}/{name}.safetensors") for name in ("model", "ref"))
    compared = 0
    for sequence in 0, 1:
        (layers, n, width), hidden = reference[f"s{sequence}.hidden"]
        d = width // HEADS
        for layer in range(layers):
            get = lambda name: weights[f"model.decoder.layers.{layer}.self_attn{name}"][1]
            rows = [norm(hidden[(layer * n + t) * width:(layer * n + t + 1) * width], get("_layer_norm.weight"),
                         get("_layer_norm.bias")) for t in range(n)]
            for kind in "qkv":
                wanted = [linear(row, get(f".{kind}_proj.weight"), get(f".{kind}_proj.bias")) for row in rows]
                for head, blob in query(store, "SELECT head, blob FROM vectors WHERE sequence = ? AND layer = ? AND kind = ?"
                                        " AND codec = 0", sequence, layer, kind):
                    ours = floats(blob, n * d)
                    for t in range(n):
                        for i in range(d):
                            a, b = ours[t * d + i], wanted[t][head * d + i]
                            assert abs(a - b) < 1e-4 * abs(b) + 1e-5, \
                                f"sequence {sequence}, layer {layer}, {kind} of head {head}, token {t}: {a} for {b}"
                    compared += 1
    assert compared == 2 * layers * 3 * HEADS, f"{compared} heads were recorded"


main(*sys.argv[1:])
