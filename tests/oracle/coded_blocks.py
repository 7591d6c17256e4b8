#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Coded matrices that have blocks (src/model/coded_blocks.h), in folders as those of coded.py: groups of 128, 64 and 32
columns, whole rows, zero points of all kinds, scales in f16 and bf16.

    coded_blocks.py DIR              writes tests/golden/coded/blocks_…"""
import json
import pathlib
import sys

import numpy as np

import coded
from coded import bf16, f32, scales, scheme, words

coded.G = G = np.random.default_rng(31)


def awq():
    t, want = {}, {}
    coded.awq_matrix(t, want, "a", 24, 384, 128)
    coded.awq_matrix(t, want, "b", 40, 128, 128)
    return {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm", "zero_point": True}, t, want


def gptq():
    """A list of groups in order; one out of order, whose matrix has no blocks; short groups."""
    t, want = {}, {}
    coded.gptq_matrix(t, want, "a", 4, 16, 256, 64, 1, np.arange(256, dtype=np.int32) // 64)
    coded.gptq_matrix(t, want, "b", 4, 24, 256, 64, 1, G.permutation(np.arange(256, dtype=np.int32) // 64))
    coded.gptq_matrix(t, want, "c", 4, 8, 96, 64, 1, np.arange(96, dtype=np.int32) // 64)
    return {"quant_method": "gptq", "bits": 4, "group_size": 64, "desc_act": True, "sym": False}, t, want


def gptq8():
    """Zero points of 128, and others, whose matrix has no blocks."""
    t, want = {}, {}
    for name, zero in (("a", 128), ("b", 127)):
        q, z = G.integers(0, 256, (12, 256)), np.full((2, 12), 128)
        z[1, 5] = zero
        s = scales(2, 12).astype(np.float16)
        of = np.arange(256, dtype=np.int32) // 128
        t |= {name + ".qweight": words(q.T, 8, 0), name + ".qzeros": words(z - 1, 8, 1), name + ".scales": s}
        want[name + ".weight"] = (q - z[of].T).astype(f32) * s[of].T.astype(f32)
    return {"quant_method": "gptq", "bits": 8, "group_size": 128, "desc_act": False, "sym": True}, t, want


def compressed():
    groups = {"group_0": scheme(num_bits=4, type="int", strategy="group", group_size=128, symmetric=True),
              "group_1": scheme(num_bits=4, type="int", strategy="channel", symmetric=True),
              "group_2": scheme(num_bits=8, type="int", strategy="channel", symmetric=True),
              "group_3": scheme(num_bits=8, type="int", strategy="group", group_size=128, symmetric=True)}
    t, want = {}, {}
    for name, bits, cols, n in (("a", 4, 512, 4), ("b", 4, 160, 1), ("c", 8, 256, 2)):
        q, s = G.integers(0, 1 << bits, (19, cols)), bf16(scales(19, n))
        t |= {name + ".weight_packed": words(q, bits, 1), name + ".weight_scale": s[1],
              name + ".weight_shape": np.array([19, cols])}
        want[name + ".weight"] = (q - (1 << bits - 1)).astype(f32) * np.repeat(s[0], cols // n, 1)
    q, s = G.integers(-128, 128, (33, 256)), scales(33, 1)
    t |= {"d.weight": q.astype(np.int8), "d.weight_scale": s}
    want["d.weight"] = q.astype(f32) * s
    q, s = G.integers(0, 16, (9, 128)), scales(9, 1)
    t |= {"e.weight_packed": words(q, 4, 1), "e.weight_scale": s, "e.weight_shape": np.array([9, 128])}
    want["e.weight"] = (q - 8).astype(f32) * s              # scales of f32: no blocks
    return {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": groups}, t, want


def fp8():
    t, want = {}, {}
    for name, shape, e5m2 in (("a.weight", (150, 384), False), ("b.weight", (128, 256), True), ("stack", (2, 128, 128), 0)):
        c = coded.codes8(shape, e5m2)
        s = scales(*shape[:-2], -(-shape[-2] // 128), shape[-1] // 128)
        t[name], t[name + "_scale_inv"] = coded.Typed("F8_E5M2" if e5m2 else "F8_E4M3", c), s
        want[name] = coded.float8(c, e5m2) * coded.spread(s, *shape[-2:], (128, 128))
    return {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}, t, want


def fp8_rows():
    t, want = {}, {}
    for name, n in (("a", 9), ("b", 1)):
        c, s = coded.codes8((9, 256)), bf16(scales(n, 1))
        t[name + ".weight"], t[name + ".weight_scale"] = coded.Typed("F8_E4M3", c), s[1]
        want[name + ".weight"] = coded.float8(c) * s[0]
    return {"quant_method": "fp8", "activation_scheme": "dynamic"}, t, want


def fp4_matrix(rows, cols):
    q, s = G.integers(0, 16, (rows, cols)), coded.codes8((rows, cols // 16))
    return q, s, (q[:, 0::2] | q[:, 1::2] << 4).astype(np.uint8), coded.Typed("F8_E4M3", s)


def nvfp4():
    q, s, bytes_of_two, stored = fp4_matrix(21, 384)
    factor = f32(0.0123)
    t = {"a.weight": bytes_of_two, "a.weight_scale": stored, "a.weight_scale_2": np.array(factor)}
    want = coded.FP4[q] * np.repeat(coded.float8(s) * factor, 16, 1)
    return {"quant_method": "modelopt", "quant_algo": "NVFP4"}, t, {"a.weight": want}


def nvfp4_packed():
    q, s, bytes_of_two, stored = fp4_matrix(17, 256)
    factor = f32(1234.5)
    t = {"a.weight_packed": bytes_of_two, "a.weight_scale": stored, "a.weight_global_scale": np.array([factor])}
    want = coded.FP4[q] * np.repeat(coded.float8(s) / factor, 16, 1)
    groups = {"group_0": scheme(num_bits=4, type="float", strategy="tensor_group", group_size=16, symmetric=True)}
    return {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "config_groups": groups}, t, \
        {"a.weight": want}


NF4 = np.array([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
                -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
                0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023,
                1.0], f32)


def bnb():
    """Plain scales, coded ones, and a matrix whose rows begin within a span."""
    t, want = {}, {}
    for name, shape, nested in (("a", (9, 192), 0), ("b", (20, 128), 256), ("c", (6, 96), 0)):
        coded.bnb_matrix(t, want, name, shape, 64, nested, "nf4", NF4)
    return {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, t, want


def fp8_short():
    """Columns that are no multiple of 128; groups of 32 with scales that are powers of two. E5M2 has no short blocks, nor
    have powers above 100."""
    t, want = {}, {}
    coded.mxfp8_matrix(t, want, "a", 23, 160, (90, 150))
    coded.mxfp8_matrix(t, want, "b", 8, 128, (228, 240))
    for name, e5m2 in (("c", False), ("d", True)):
        c, s = coded.codes8((9, 96), e5m2), scales(9, 1)
        t[name + ".weight"], t[name + ".weight_scale"] = coded.Typed("F8_E5M2" if e5m2 else "F8_E4M3", c), s
        want[name + ".weight"] = coded.float8(c, e5m2) * s
    groups = {"group_0": scheme(num_bits=8, type="float", strategy="group", group_size=32, symmetric=True,
                                scale_dtype="torch.uint8"),
              "group_1": scheme(num_bits=8, type="float", strategy="channel", symmetric=True)}
    return {"quant_method": "compressed-tensors", "format": "mixed-precision", "config_groups": groups}, t, want


def in_3_bits(codes):
    """32 codes along the first axis in three words, as AutoGPTQ writes them (qlinear_cuda.pack)."""
    out = []
    for c in codes.reshape(-1, 32, codes.shape[1]).astype(np.uint64):
        word = [sum(c[i] << np.uint64(3 * i) for i in range(10)) | c[10] << np.uint64(30),
                c[10] >> np.uint64(2) & np.uint64(1) | sum(c[11 + i] << np.uint64(3 * i + 1) for i in range(10)) |
                c[21] << np.uint64(31),
                c[21] >> np.uint64(1) & np.uint64(3) | sum(c[22 + i] << np.uint64(3 * i + 2) for i in range(10))]
        out += [w & np.uint64(0xffffffff) for w in word]
    return np.array(out).astype(np.uint32).view(np.int32)


def gptq_small(bits):
    """a: groups in order; b: short ones, which have other blocks."""
    pack = in_3_bits if bits == 3 else lambda q: words(q, bits, 0)
    t, want = {}, {}
    for name, rows, cols, group in (("a", 32, 256, 128), ("b", 64, 96, 32)):
        n = cols // group
        q, z = G.integers(0, 1 << bits, (rows, cols)), G.integers(1, 1 << bits, (n, rows))
        s, of = scales(n, rows).astype(np.float16), np.arange(cols) // group
        t |= {name + ".qweight": pack(q.T), name + ".scales": s,
              name + ".qzeros": np.ascontiguousarray(pack((z - 1).T).T)}
        want[name + ".weight"] = (q - z[of].T).astype(f32) * s[of].T.astype(f32)
    return t, want


def gptq2():
    t, want = gptq_small(2)
    return {"quant_method": "gptq", "bits": 2, "group_size": 128, "desc_act": False, "dynamic": {"b": {}}}, t, want


def gptq3():
    t, want = gptq_small(3)
    return {"quant_method": "gptq", "bits": 3, "group_size": 128, "desc_act": False, "dynamic": {"b": {}}}, t, want


def bnb8():
    t, want = {"whole.weight": scales(4, 4)}, {}
    for name, rows, cols in (("a", 17, 256), ("b", 6, 100)):
        q, s = G.integers(-128, 128, (rows, cols)), scales(rows)
        t |= {name + ".weight": q.astype(np.int8), name + ".SCB": s, name + ".weight_format": np.zeros((), np.uint8)}
        want[name + ".weight"] = q.astype(f32) * (s * (f32(1) / f32(127)))[:, None]
    return {"quant_method": "bitsandbytes", "load_in_8bit": True, "load_in_4bit": False, "llm_int8_threshold": 6.0}, t, want


def bitnet_matrix(t, want, name, rows, cols, scale, divides):
    """As transformers packs it: the first quarter of the rows in the lowest two bits. scale: the numbers, and the tensor."""
    q = G.integers(0, 4, (rows, cols))                      # 3 stands for 2, which no checkpoint has
    packed = sum(q[i * rows // 4:(i + 1) * rows // 4] << 2 * i for i in range(4)).astype(np.uint8)
    t |= {name + ".weight": packed, name + ".weight_scale": scale[1]}
    want[name + ".weight"] = (q - 1).astype(f32) * (f32(1) / scale[0] if divides else scale[0])


def bitnet():
    """Scales that f16 numbers can be, one that they cannot, and rows without blocks."""
    t, want = {"whole.weight": scales(4, 4)}, {}
    bitnet_matrix(t, want, "a", 20, 512, bf16(scales(1) + f32(0.5)), False)
    bitnet_matrix(t, want, "b", 12, 256, [np.array([f32(0.1)])] * 2, False)
    bitnet_matrix(t, want, "c", 8, 96, bf16(scales(1)), False)
    return {"quant_method": "bitnet", "linear_class": "autobitlinear", "quantization_mode": "offline",
            "modules_to_not_convert": None}, t, want


def bitnet_divides():
    t, want = {}, {}
    bitnet_matrix(t, want, "a", 16, 256, bf16(np.array([f32(54.25)])), True)
    bitnet_matrix(t, want, "b", 16, 256, bf16(np.array([f32(64)])), True)
    return {"quant_method": "bitnet", "modules_to_not_convert": None}, t, want


def main(folder):
    for make in (awq, gptq, gptq8, compressed, fp8, fp8_rows, nvfp4, nvfp4_packed, bnb, fp8_short, bitnet, bitnet_divides, bnb8,
                 gptq2, gptq3):
        config, tensors, want = make()
        at = folder / f"blocks_{make.__name__}"
        at.mkdir(parents=True, exist_ok=True)
        (at / "config.json").write_text(json.dumps({"quantization_config": config}, indent=1) + "\n")
        (at / "model.safetensors").write_bytes(coded.safetensors(tensors))
        (at / "expected.safetensors").write_bytes(coded.safetensors(want))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[-1]))
