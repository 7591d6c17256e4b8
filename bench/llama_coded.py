# SPDX-License-Identifier: Apache-2.0
"""Hub folders of a LLaMA-shaped one with its layers' matrices in the codes of other programs: each group of numbers is
rounded to the nearest codes of its own scale. Needs safetensors and torch.

    llama_coded.py FOLDER FORMAT OUT        llama_coded.py model awq model-awq
"""
import json
import os
import sys

import torch
from safetensors.torch import load_file, save_file

GROUP = 128
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def words(codes, bits, dim):
    """Codes to 32-bit words along a dimension, the first in the lowest bits."""
    codes = codes.to(torch.int64).unflatten(dim, (-1, 32 // bits))
    shift = bits * torch.arange(32 // bits).reshape([-1 if i == dim + 1 else 1 for i in range(codes.dim())])
    all_bits = (codes << shift).sum(dim + 1)
    return torch.where(all_bits >= 1 << 31, all_bits - (1 << 32), all_bits).to(torch.int32).contiguous()


def ranges(w, least, most):
    """w [rows, cols] in groups of columns: codes [rows, cols], scales and zero points [rows, groups]."""
    groups = w.unflatten(1, (-1, GROUP))
    low, high = groups.amin(2).clamp(max=0), groups.amax(2).clamp(min=0)
    scale = ((high - low) / (most - least)).to(torch.float16).float().clamp(min=1e-6)
    zero = (least - low / scale).round().clamp(least, most)
    codes = (groups / scale[..., None] + zero[..., None]).round().clamp(least, most)
    return codes.flatten(1), scale.to(torch.float16), zero


def even(w, most, group):
    """The same around zero: codes from -most - 1 to most."""
    groups = w.unflatten(1, (-1, group))
    scale = (groups.abs().amax(2) / most).to(torch.bfloat16).clamp(min=1e-6)
    codes = (groups / scale[..., None].float()).round().clamp(-most - 1, most)
    return codes.flatten(1), scale


def awq(w):
    codes, scale, zero = ranges(w, 0, 15)
    mixed = lambda x: words(x.T.unflatten(1, (-1, 8))[..., AWQ_ORDER].flatten(1), 4, 1)
    return {"qweight": mixed(codes), "qzeros": mixed(zero), "scales": scale.T.contiguous()}


def gptq(w):
    codes, scale, zero = ranges(w, 0, 15)
    return {"qweight": words(codes.T, 4, 0), "qzeros": words((zero.T - 1) % 16, 4, 1), "scales": scale.T.contiguous(),
            "g_idx": torch.arange(w.shape[1], dtype=torch.int32) // GROUP}


def int4(w):
    codes, scale = even(w, 7, GROUP)
    return {"weight_packed": words(codes + 8, 4, 1), "weight_scale": scale, "weight_shape": torch.tensor(w.shape)}


def int8(w):
    codes, scale = even(w, 127, w.shape[1])
    return {"weight": codes.to(torch.int8), "weight_scale": scale}


def fp8(w):
    blocks = w.unflatten(1, (-1, GROUP)).unflatten(0, (-1, GROUP))
    scale = blocks.abs().amax((1, 3)) / 448
    codes = (blocks / scale[:, None, :, None]).flatten(2).flatten(0, 1).to(torch.float8_e4m3fn)
    return {"weight": codes, "weight_scale_inv": scale}


def mxfp8(w):
    parts = w.unflatten(1, (-1, 32))
    power = (parts.abs().amax(2) / 448).log2().ceil().clamp(-127, 127)
    codes = (parts / power.exp2()[..., None]).flatten(1).to(torch.float8_e4m3fn)
    return {"weight": codes, "weight_scale": (power + 127).to(torch.uint8)}


NF4 = torch.tensor([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
                    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
                    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
                    0.7229568362236023, 1.0])


def nf4(w):
    spans = w.reshape(-1, 64)
    most = spans.abs().amax(1)
    codes = torch.bucketize(spans / most.clamp(min=1e-12)[:, None], (NF4[1:] + NF4[:-1]) / 2).flatten()
    state = {"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": list(w.shape)}
    return {"weight": (codes[0::2] << 4 | codes[1::2]).to(torch.uint8)[:, None], "weight.absmax": most,
            "weight.quant_map": NF4.clone(),
            "weight.quant_state.bitsandbytes__nf4": torch.tensor(list(json.dumps(state).encode()), dtype=torch.uint8)}


FP4 = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6])


def nvfp4(w):
    parts = w.unflatten(1, (-1, 16))
    factor = w.abs().max() / (448 * 6)
    scale = (parts.abs().amax(2) / 6 / factor).to(torch.float8_e4m3fn)
    x = parts / (scale.float() * factor).clamp(min=1e-12)[..., None]
    codes = (torch.bucketize(x.abs(), (FP4[1:] + FP4[:-1]) / 2) + 8 * (x < 0)).flatten(1)
    return {"weight": (codes[:, 0::2] | codes[:, 1::2] << 4).to(torch.uint8), "weight_scale": scale,
            "weight_scale_2": factor}


def groups(kind, bits, strategy, **more):
    weights = {"num_bits": bits, "type": "int", "strategy": strategy, "symmetric": True} | more
    return {"quant_method": "compressed-tensors", "format": kind, "ignore": ["lm_head"],
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}


FORMATS = {
    "awq": (awq, {"quant_method": "awq", "bits": 4, "group_size": GROUP, "version": "gemm", "zero_point": True}),
    "gptq": (gptq, {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": False, "sym": False}),
    "int4": (int4, groups("pack-quantized", 4, "group", group_size=GROUP)),
    "int8": (int8, groups("int-quantized", 8, "channel")),
    "mxfp8": (mxfp8, {"quant_method": "modelopt", "quant_algo": "MXFP8"}),
    "nf4": (nf4, {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}),
    "nvfp4": (nvfp4, {"quant_method": "modelopt", "quant_algo": "NVFP4"}),
    "fp8": (fp8, {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [GROUP, GROUP]})}


def write(folder, kind, out):
    encode, settings = FORMATS[kind]
    with open(os.path.join(folder, "config.json")) as f:
        config = json.load(f)
    tensors = {}
    for name, t in load_file(os.path.join(folder, "model.safetensors")).items():
        stem = name.removesuffix("weight")
        if t.dim() == 2 and ".layers." in name:
            tensors |= {stem + end: x for end, x in encode(t.float()).items()}
        else:
            tensors[name] = t.to(torch.float16)
    os.makedirs(out, exist_ok=True)
    save_file(tensors, os.path.join(out, "model.safetensors"))
    with open(os.path.join(out, "config.json"), "w") as f:
        json.dump(config | {"quantization_config": settings}, f, indent=1)


if __name__ == "__main__":
    write(*sys.argv[1:])
