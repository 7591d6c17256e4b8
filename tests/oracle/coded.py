#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Coded matrices of every format, and the numbers that they stand for (numpy).

    coded.py DIR              writes tests/golden/coded
    coded.py --seeds DIR      writes the seeds of tests/fuzz/corpus/coded: each config.json, NUL, header, NUL, data

NAME/config.json (quantization_config alone), NAME/model.safetensors, NAME/expected.safetensors: for each matrix its
float32 numbers under the name that it has in a whole checkpoint. Each is packed from drawn codes, scales and zeros by
the rules of the programs that write the format, and its numbers are (code - zero) * scale of these, in float32."""
import json
import pathlib
import struct
import sys

import numpy as np

G = np.random.default_rng(30)
NAMES = {"float32": "F32", "float16": "F16", "uint8": "U8", "int8": "I8", "int32": "I32", "int64": "I64"}
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
FP4 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6], np.float32)
f32 = np.float32


class Typed:
    """Bytes of a dtype that numpy does not have."""
    def __init__(self, dtype, data):
        self.dtype, self.data, self.shape = dtype, data, data.shape


def safetensors(tensors):
    header, blob = {}, b""
    for name, t in tensors.items():
        raw = (t.data if isinstance(t, Typed) else t).tobytes()
        dtype = t.dtype if isinstance(t, Typed) else NAMES[str(t.dtype)]
        header[name] = {"dtype": dtype, "shape": list(t.shape), "data_offsets": [len(blob), len(blob) + len(raw)]}
        blob += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + blob


def bf16(x):
    """Rounded toward zero: the numbers, and the tensor."""
    bits = np.asarray(x, f32).view(np.uint32) >> 16
    return (bits << 16).astype(np.uint32).view(f32), Typed("BF16", bits.astype("<u2"))


def scales(*shape):
    return (G.uniform(0.5, 2, shape) * 10.0 ** G.integers(-4, 0, shape)).astype(f32)


def words(codes, bits, axis):
    """Codes to 32-bit words along an axis, the first in the lowest bits, the last word filled with zeros."""
    codes = np.moveaxis(np.asarray(codes, np.uint32), axis, -1)
    per = 32 // bits
    codes = np.concatenate([codes, np.zeros((*codes.shape[:-1], -codes.shape[-1] % per), np.uint32)], -1)
    codes = codes.reshape(*codes.shape[:-1], -1, per) << (bits * np.arange(per, dtype=np.uint32))
    return np.ascontiguousarray(np.moveaxis(codes.sum(-1, dtype=np.uint32), -1, axis)).view(np.int32)


def spread(s, rows, cols, block):
    """A scale for each number."""
    return np.repeat(np.repeat(s, block[0], -2)[..., :rows, :], block[1], -1)[..., :cols]


# ---- 8-bit floats ----

def float8(codes, e5m2=False):
    codes = codes.astype(np.int64)
    if e5m2:
        return (codes << 8).astype("<u2").view(np.float16).astype(f32)
    exponent, mantissa = codes >> 3 & 15, codes & 7
    x = np.where(exponent > 0, (8 + mantissa) * 2.0 ** (exponent - 10), mantissa * 2.0 ** -9)
    return np.where(codes & 128, -x, x).astype(f32)


def codes8(shape, e5m2=False):
    c = G.integers(0, 256, shape).astype(np.uint8)
    bad = (c & 127) >= 124 if e5m2 else (c & 127) == 127
    return np.where(bad, c & 128, c).astype(np.uint8)


def fp8():
    t, want = {}, {}
    def add(name, shape, s, block, stored=None, end="_scale_inv", e5m2=False):
        c = codes8(shape, e5m2)
        t[name] = Typed("F8_E5M2" if e5m2 else "F8_E4M3", c)
        t[name + end] = s if stored is None else stored
        want[name] = float8(c, e5m2) * spread(s, *shape[-2:], block)
    add("a.weight", (40, 70), scales(3, 3), (16, 32))
    add("b.weight", (16, 32), scales(1, 1), (16, 32), e5m2=True)
    add("stack", (3, 20, 40), scales(3, 2, 2), (16, 32))
    e = G.integers(110, 130, (2, 2)).astype(np.uint8)
    add("c.weight", (20, 40), np.ldexp(f32(1), e.astype(np.int32) - 127).astype(f32), (16, 32), Typed("F8_E8M0", e))
    t["a.input_scale"] = scales(1)
    t["whole.weight"] = scales(4, 4)
    return {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [16, 32]}, t, want


def fp8_tensor():
    t, want = {}, {}
    for name, n in (("a.weight", 1), ("b.weight", 9)):
        c, s = codes8((9, 5)), scales(n, 1)
        t[name], t[name + "_scale"] = Typed("F8_E4M3", c), s[0, 0] if n == 1 else s[:, 0]
        want[name] = float8(c) * s
    return {"quant_method": "fp8", "activation_scheme": "static"}, t, want


# ---- compressed-tensors ----

def scheme(**keys):
    return {"targets": ["Linear"], "weights": keys}


def compressed():
    groups = {
        "group_0": scheme(num_bits=4, type="int", strategy="group", group_size=16, symmetric=False, actorder="group"),
        "group_1": scheme(num_bits=8, type="int", strategy="channel", symmetric=True),
        "attention": scheme(num_bits=8, type="float", strategy="channel", symmetric=True),
        "group_3": scheme(num_bits=8, type="int", strategy="channel", symmetric=False),
        "group_4": scheme(num_bits=8, type="float", strategy="block", symmetric=True, block_structure=[8, 16])}
    t, want = {}, {}
    q, z, s = G.integers(0, 16, (11, 40)), G.integers(0, 16, (11, 3)), bf16(scales(11, 3))
    groups_of = G.permutation(np.arange(40, dtype=np.int32) // 16)
    t |= {"a.weight_packed": words(q, 4, 1), "a.weight_scale": s[1], "a.weight_shape": np.array([11, 40]),
          "a.weight_zero_point": words(z, 4, 0), "a.weight_g_idx": groups_of}
    want["a.weight"] = (q - z[:, groups_of]).astype(f32) * s[0][:, groups_of]
    q, s = G.integers(0, 256, (6, 10)), bf16(scales(6, 1))
    t |= {"b.weight_packed": words(q, 8, 1), "b.weight_scale": s[1], "b.weight_shape": np.array([6, 10])}
    want["b.weight"] = (q - 128).astype(f32) * s[0]
    c, s = codes8((7, 12)), bf16(scales(7, 1))
    t |= {"c.weight": Typed("F8_E4M3", c), "c.weight_scale": s[1], "c.input_scale": scales(1)}
    want["c.weight"] = float8(c) * s[0]
    q, z, s = G.integers(-128, 128, (7, 12)), G.integers(-9, 9, (7, 1)), scales(7, 1)
    t |= {"d.weight": q.astype(np.int8), "d.weight_scale": s, "d.weight_zero_point": z.astype(np.int8)}
    want["d.weight"] = (q - z).astype(f32) * s
    c, s = codes8((20, 40)), scales(3, 3)
    t |= {"e.weight": Typed("F8_E4M3", c), "e.weight_scale": s}
    want["e.weight"] = float8(c) * spread(s, 20, 40, (8, 16))
    t["lm_head.weight"] = scales(4, 4)
    return {"quant_method": "compressed-tensors", "format": "mixed-precision", "config_groups": groups,
            "ignore": ["lm_head"]}, t, want


# ---- GPTQ, AWQ ----

def gptq_matrix(t, want, name, bits, rows, cols, group, less, order=None):
    n = -(-cols // group)
    q, z = G.integers(0, 1 << bits, (rows, cols)), G.integers(0, 1 << bits, (n, rows))
    s = scales(n, rows).astype(np.float16)
    of = np.arange(cols, dtype=np.int32) // group if order is None else order
    z[0, 0] = 0
    t |= {name + ".qweight": words(q.T, bits, 0), name + ".qzeros": words((z - less) % (1 << bits), bits, 1),
          name + ".scales": s}
    if order is not None:
        t[name + ".g_idx"] = of
    want[name + ".weight"] = (q - z[of].T).astype(f32) * s[of].T.astype(f32)


def gptq():
    t, want = {"whole.weight": scales(3, 5), "a.bias": scales(16)}, {}
    gptq_matrix(t, want, "a", 4, 16, 48, 16, 1)
    gptq_matrix(t, want, "b", 4, 40, 48, 16, 1, G.permutation(np.arange(48, dtype=np.int32) // 16))
    return {"quant_method": "gptq", "bits": 4, "group_size": 16, "desc_act": False, "sym": False}, t, want


def gptq_v2():
    t, want = {}, {}
    gptq_matrix(t, want, "a", 8, 20, 24, 24, 0)
    gptq_matrix(t, want, "b", 4, 24, 32, 8, 0, np.arange(32, dtype=np.int32) // 8)
    return {"quant_method": "gptq", "bits": 8, "group_size": -1, "checkpoint_format": "gptq_v2",
            "dynamic": {"+:b": {"bits": 4, "group_size": 8}}}, t, want


def awq_matrix(t, want, name, rows, cols, group):
    n = -(-cols // group)
    q, z, s = G.integers(0, 16, (cols, rows)), G.integers(0, 16, (n, rows)), scales(n, rows).astype(np.float16)
    mixed = lambda x: words(x.reshape(len(x), -1, 8)[..., AWQ_ORDER].reshape(len(x), -1), 4, 1)
    of = np.arange(cols) // group
    t |= {name + ".qweight": mixed(q), name + ".qzeros": mixed(z), name + ".scales": s}
    want[name + ".weight"] = (q - z[of]).T.astype(f32) * s[of].T.astype(f32)


def awq():
    t, want = {}, {}
    awq_matrix(t, want, "a", 16, 40, 16)
    awq_matrix(t, want, "b", 24, 8, 16)
    return {"quant_method": "awq", "bits": 4, "group_size": 16, "version": "gemm", "zero_point": True}, t, want


# ---- bitsandbytes, MXFP4 ----

def bnb_matrix(t, want, name, shape, size, nested, kind, table=None):
    n, weight = shape[0] * shape[1], name + ".weight"
    q = G.integers(0, 16, n + n % 2)
    table = np.sort(G.uniform(-1, 1, 16)).astype(f32) if table is None else table
    state = {"quant_type": kind, "blocksize": size, "dtype": "bfloat16", "shape": list(shape)}
    absmax = scales(-(-n // size))
    t |= {weight: (q[0::2] << 4 | q[1::2]).astype(np.uint8)[:, None], weight + ".quant_map": table,
          weight + ".absmax": absmax}
    if nested:
        codes = G.integers(0, 256, len(absmax)).astype(np.uint8)
        near, big = scales(256), scales(-(-len(absmax) // nested))
        state |= {"nested_blocksize": nested, "nested_dtype": "float32", "nested_offset": 0.3}
        absmax = near[codes] * np.repeat(big, nested)[:len(codes)] + f32(0.3)
        t |= {weight + ".absmax": codes, weight + ".nested_quant_map": near, weight + ".nested_absmax": big}
    t[f"{weight}.quant_state.bitsandbytes__{kind}"] = np.frombuffer(json.dumps(state).encode(), np.uint8)
    want[weight] = (table[q[:n]] * np.repeat(absmax, size)[:n]).reshape(shape)


def bnb():
    t, want = {}, {}
    bnb_matrix(t, want, "a", (5, 7), 16, 0, "nf4")
    bnb_matrix(t, want, "b", (12, 20), 64, 0, "fp4")
    bnb_matrix(t, want, "c", (24, 16), 8, 4, "nf4")
    t["whole.weight"] = scales(3, 5)
    return {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, t, want


def mxfp4():
    q, e = G.integers(0, 16, (3, 5, 2, 32)), G.integers(0, 250, (3, 5, 2)).astype(np.uint8)
    e[0, 0] = 0, 1
    t = {"experts.up_blocks": (q[..., 0::2] | q[..., 1::2] << 4).astype(np.uint8), "experts.up_scales": e,
         "router.weight": scales(3, 4)}
    want = np.ldexp(FP4[q], e[..., None].astype(np.int32) - 127).astype(f32)
    return {"quant_method": "mxfp4"}, t, {"experts.up": want.reshape(3, 5, 64)}


# ---- 4-bit floats of modelopt and compressed-tensors, MXFP8 ----

def nibbles(q):
    return (q[:, 0::2] | q[:, 1::2] << 4).astype(np.uint8)


def nvfp4_matrix(t, want, name, rows, cols, divides):
    q, s, one = G.integers(0, 16, (rows, cols)), codes8((rows, cols // 16)), scales(1)
    # The second scale of modelopt is small and multiplies, that of compressed-tensors is large and divides.
    one = (one if not divides else 1 / one).astype(f32)
    t |= {name + (".weight_packed" if divides else ".weight"): nibbles(q), name + ".weight_scale": Typed("F8_E4M3", s),
          name + (".weight_global_scale" if divides else ".weight_scale_2"): one if divides else one.reshape(())}
    s = float8(s) / one if divides else float8(s) * one
    want[name + ".weight"] = FP4[q] * np.repeat(s, 16, 1)


def mxfp4_matrix(t, want, name, rows, cols):
    q, e = G.integers(0, 16, (rows, cols)), G.integers(0, 250, (rows, cols // 32)).astype(np.uint8)
    t |= {name + ".weight_packed": nibbles(q), name + ".weight_scale": e}
    want[name + ".weight"] = np.ldexp(FP4[q], np.repeat(e, 32, 1).astype(np.int32) - 127).astype(f32)


def mxfp8_matrix(t, want, name, rows, cols, powers=(0, 240)):
    c, e = codes8((rows, cols)), G.integers(*powers, (rows, -(-cols // 32))).astype(np.uint8)
    t |= {name + ".weight": Typed("F8_E4M3", c), name + ".weight_scale": e}
    e = np.repeat(e, 32, 1)[:, :cols].astype(np.int32)
    want[name + ".weight"] = np.ldexp(float8(c), e - 127).astype(f32)


def nvfp4():
    t, want = {"a.input_scale": scales(1)[0], "k_proj.k_scale": scales(1), "whole.weight": scales(4, 4)}, {}
    nvfp4_matrix(t, want, "a", 9, 48, False)
    nvfp4_matrix(t, want, "b", 20, 16, False)
    group = {"input_activations": {"dynamic": False, "num_bits": 4, "type": "float", "group_size": 16},
             "weights": {"dynamic": False, "num_bits": 4, "type": "float", "group_size": 16}, "targets": ["Linear"]}
    return {"config_groups": {"group_0": group}, "ignore": ["whole"], "quant_algo": "NVFP4",
            "kv_cache_scheme": {"dynamic": False, "num_bits": 8, "type": "float"}, "quant_method": "modelopt"}, t, want


def modelopt_mixed():
    t, want = {"a.input_scale": scales(1)[0], "d.input_scale": scales(1)[0]}, {}
    nvfp4_matrix(t, want, "a", 6, 64, False)
    mxfp8_matrix(t, want, "b", 5, 64)
    for name, n in (("c", 7), ("d", 1)):
        c, s = codes8((7, 40)), scales(n, 1)
        t |= {name + ".weight": Typed("F8_E4M3", c), name + ".weight_scale": s[:, 0] if n > 1 else s[0, 0]}
        want[name + ".weight"] = float8(c) * s
    layers = {"a": {"quant_algo": "NVFP4", "group_size": 16}, "b": {"quant_algo": "MXFP8", "group_size": 32},
              "c": {"quant_algo": "FP8_PER_CHANNEL_PER_TOKEN"}, "d": {"quant_algo": "FP8"}}
    return {"quant_algo": "MIXED_PRECISION", "quantized_layers": layers, "quant_method": "modelopt"}, t, want


def compressed_fp4():
    floats = dict(type="float", symmetric=True, dynamic=False)
    groups = {
        "group_0": scheme(num_bits=4, strategy="tensor_group", group_size=16, scale_dtype="torch.float8_e4m3fn",
                          **floats),
        "group_1": scheme(num_bits=4, strategy="group", group_size=32, scale_dtype="torch.uint8", **floats),
        "group_2": scheme(num_bits=8, strategy="group", group_size=32, scale_dtype="torch.uint8", **floats),
        "group_3": scheme(num_bits=8, strategy="channel", **floats),
        "group_4": scheme(num_bits=4, type="int", strategy="channel", symmetric=True)}
    for i, name in enumerate(("nvfp4-pack-quantized", "mxfp4-pack-quantized", "mxfp8-quantized", "float-quantized",
                              "pack-quantized")):
        groups[f"group_{i}"]["format"] = name
    t, want = {"a.input_global_scale": scales(1), "whole.weight": scales(4, 4)}, {}
    nvfp4_matrix(t, want, "a", 19, 64, True)
    mxfp4_matrix(t, want, "b", 18, 96)
    mxfp8_matrix(t, want, "c", 7, 96)
    c, s = codes8((7, 64)), bf16(scales(7, 1))
    t |= {"d.weight": Typed("F8_E4M3", c), "d.weight_scale": s[1]}
    want["d.weight"] = float8(c) * s[0]
    q, s = G.integers(0, 16, (6, 10)), bf16(scales(6, 1))
    t |= {"e.weight_packed": words(q, 4, 1), "e.weight_scale": s[1], "e.weight_shape": np.array([6, 10])}
    want["e.weight"] = (q - 8).astype(f32) * s[0]
    return {"quant_method": "compressed-tensors", "format": "mixed-precision", "config_groups": groups,
            "ignore": ["lm_head"]}, t, want


ALL = [fp8, fp8_tensor, compressed, gptq, gptq_v2, awq, bnb, mxfp4, nvfp4, modelopt_mixed, compressed_fp4]


def main(folder, seeds):
    for make in ALL:
        config, tensors, want = make()
        if seeds:
            file = safetensors(tensors)
            n = 8 + struct.unpack("<Q", file[:8])[0]
            text = json.dumps({"quantization_config": config}).encode()
            (folder / f"ok-{make.__name__}").write_bytes(text + b"\0" + file[8:n] + b"\0" + file[n:])
            continue
        at = folder / make.__name__
        at.mkdir(parents=True, exist_ok=True)
        (at / "config.json").write_text(json.dumps({"quantization_config": config}, indent=1) + "\n")
        (at / "model.safetensors").write_bytes(safetensors(tensors))
        (at / "expected.safetensors").write_bytes(safetensors(want))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[-1]), "--seeds" in sys.argv)
