#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""blocks.gguf and blocks.f32 for tests/golden/gguf (numpy; gguf 0.19.0 from PyPI, an independent reader).

    gguf_blocks.py DIR

A tensor of three rows of random blocks in each format of few bits: Q2_K, Q3_K, MXFP4, the IQ types, TQ1_0, TQ2_0 and
Q1_0, and the numbers that the package `gguf` reads from them, one tensor after the other in the order of their names.
The package cannot read Q1_0: a scale in f16 and 128 signs."""
import pathlib
import sys

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as T
from gguf.quants import dequantize

from gguf_files import STRING, write

# Where the f16 scales lie in a block; IQ1_M has its scale in the upper bits of four words.
SCALES = {T.Q2_K: (80, 82), T.Q3_K: (108,), T.MXFP4: (), T.TQ1_0: (52,), T.TQ2_0: (64,)}
KINDS = [T.Q2_K, T.Q3_K, T.MXFP4, T.IQ1_S, T.IQ1_M, T.IQ2_XXS, T.IQ2_XS, T.IQ2_S, T.IQ3_XXS, T.IQ3_S, T.IQ4_NL,
         T.IQ4_XS, T.TQ1_0, T.TQ2_0, T.Q1_0]


def blocks(kind, n, g):
    b = g.integers(0, 256, (n, GGML_QUANT_SIZES[kind][1]), np.uint8)
    scale = lambda: (g.standard_normal(n) * 10.0 ** g.integers(-6, 2, n)).astype("<f2").view(np.uint8).reshape(n, 2)
    for at in () if kind == T.IQ1_M else SCALES.get(kind, (0,)):
        b[:, at:at + 2] = scale()
    if kind == T.IQ1_M:
        word = scale().view("<u2").astype(np.uint16)
        for i in range(4):
            b[:, 49 + 2 * i] = (b[:, 49 + 2 * i] & 15) | (word[:, 0] >> 4 * i & 15) << 4
    if kind == T.MXFP4:
        b[:, 0] = g.integers(0, 254, n)
        b[:3, 0] = 0, 1, 2
    return b


def numbers(b, kind):
    if kind != T.Q1_0:
        return dequantize(b, kind)
    sign = np.unpackbits(b[:, 2:], axis=1, bitorder="little") * np.float32(2) - 1
    return b[:, :2].copy().view("<f2").astype("<f4") * sign


def main(folder):
    g = np.random.default_rng(11)
    tensors, expected = [], []
    for kind in sorted(KINDS, key=lambda k: k.name):
        size = GGML_QUANT_SIZES[kind][0]
        width = max(256, size) if size > 32 else 64
        b = blocks(kind, 3 * width // size, g)
        tensors.append((kind.name.lower(), (3, width), int(kind), b.tobytes()))
        expected.append(numbers(b, kind).astype("<f4").tobytes())
    write(folder / "blocks.gguf", [("general.architecture", STRING, "llama")], tensors)
    (folder / "blocks.f32").write_bytes(b"".join(expected))


main(pathlib.Path(sys.argv[1]))
