#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tiny models whose matrices are 4-bit floats, with what transformers computes on the numbers that these stand for.

    coded_models.py GOLDEN         makes in GOLDEN/checkpoints and GOLDEN/gguf (torch, transformers, safetensors; gguf
                                   0.19.0 from PyPI, an independent reader of blocks)
    coded_models.py --seed FILE    makes tests/fuzz/corpus/gguf/ok-nvfp4

checkpoints/llama_nvfp4 is as modelopt writes it, llama_nvfp4_packed and llama_mxfp4_packed as compressed-tensors does;
gguf/quantised_nv.gguf is as llama.cpp's converter makes it from the former: NVFP4 blocks, and a scale for each matrix
of its own. gguf/nvfp4.gguf and nvfp4.f32: matrices alone, with and without such a scale, and a stack with one for each.
Codes and scales are drawn; the numbers of hub folders are made as coded.py makes them."""
import json
import pathlib
import sys

import numpy as np
import torch
import transformers
from gguf.constants import GGMLQuantizationType
from gguf.quants import dequantize
from safetensors.torch import save_file

from coded import FP4, Typed, f32, float8, nibbles, safetensors
from families import LLAMA, fill, reference
from gguf_files import ARRAY, F16, F32, FLOAT, STRING, U32, encode, metadata, restored, their_name, write

NVFP4 = 40


class Matrices:
    """Draws matrices of numbers near 0.3, as families.fill does."""
    def __init__(self, seed):
        self.g = np.random.default_rng(seed)

    def nvfp4(self, shape):
        """Codes, bytes of scales, and the scale of these."""
        q = self.g.integers(0, 16, shape)
        s = self.g.integers(0x58, 0x7f, (*shape[:-1], shape[-1] // 16)).astype(np.uint8)      # 16 to 448
        return q, s, f32(self.g.uniform(0.8, 1.2) * 0.1 / 150)

    def mxfp4(self, shape):
        return self.g.integers(0, 16, shape), self.g.integers(122, 125, (shape[0], shape[1] // 32)).astype(np.uint8)


# ---- hub folders ----

def of_modelopt(m, name, shape):
    q, s, second = m.nvfp4(shape)
    stem = name[:-len("weight")]
    tensors = {name: nibbles(q), stem + "weight_scale": Typed("F8_E4M3", s),
               stem + "weight_scale_2": second.reshape(()), stem + "input_scale": np.ones((), f32)}
    if ".k_proj." in name or ".v_proj." in name:
        tensors[stem + name.split("_proj")[0][-1] + "_scale"] = np.ones((), f32)
    return tensors, FP4[q] * np.repeat(float8(s) * second, 16, 1)


def packed_nvfp4(m, name, shape):
    q, s, second = m.nvfp4(shape)
    over = f32(1) / second
    tensors = {name + "_packed": nibbles(q), name + "_scale": Typed("F8_E4M3", s),
               name + "_global_scale": over.reshape(1), name[:-6] + "input_global_scale": np.ones(1, f32)}
    return tensors, FP4[q] * np.repeat(float8(s) / over, 16, 1)


def packed_mxfp4(m, name, shape):
    q, e = m.mxfp4(shape)
    return {name + "_packed": nibbles(q), name + "_scale": e}, np.ldexp(FP4[q], np.repeat(e, 32, 1).astype(int) - 127)


def scheme(form, strategy, size):
    weights = {"num_bits": 4, "type": "float", "strategy": strategy, "group_size": size, "symmetric": True}
    return {"quant_method": "compressed-tensors", "format": form, "ignore": ["lm_head"],
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights, "format": form}}}


MODELOPT = {"producer": {"name": "modelopt", "version": "0.47.0"}, "quantization": {
    "quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "group_size": 16, "exclude_modules": ["lm_head"]}}
FOLDERS = {"llama_nvfp4": (of_modelopt, MODELOPT),
           "llama_nvfp4_packed": (packed_nvfp4, scheme("nvfp4-pack-quantized", "tensor_group", 16)),
           "llama_mxfp4_packed": (packed_mxfp4, scheme("mxfp4-pack-quantized", "group", 32))}


def is_coded(name, p):
    return p.dim() == 2 and "embed" not in name and "lm_head" not in name


def folder(place, make, settings, seed):
    config = transformers.LlamaConfig(**dict(LLAMA, hidden_size=32, intermediate_size=64))
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    fill(model, seed)
    place.mkdir(exist_ok=True)
    m, tensors = Matrices(seed), {}
    for name, p in model.named_parameters():
        if not is_coded(name, p):
            tensors[name] = p.detach().numpy()
            continue
        coded, numbers = make(m, name, tuple(p.shape))
        tensors |= coded
        with torch.no_grad():
            p.copy_(torch.from_numpy(numbers.astype(f32)))
    (place / "model.safetensors").write_bytes(safetensors(tensors))
    config = config.to_diff_dict() | {"architectures": ["LlamaForCausalLM"]}
    if settings is MODELOPT:
        (place / "hf_quant_config.json").write_text(json.dumps(settings, indent=1) + "\n")
    else:
        config["quantization_config"] = settings
    (place / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    ref, sequences = reference(model, [24], 100 + seed)
    save_file(ref, place / "ref.safetensors")
    (place / "ref.json").write_text(json.dumps({"sequences": sequences}) + "\n")


# ---- GGUF ----

def blocks(q, s):
    """[..., 36 bytes] for each 64 codes: four scales, then of each 16 the first eight in low nibbles."""
    q, s = q.reshape(-1, 4, 2, 8), s.reshape(-1, 4)
    return np.concatenate([s, (q[:, :, 0] | q[:, :, 1] << 4).reshape(-1, 32)], 1).astype(np.uint8)


def gguf_matrix(m, shape, bytes_more=()):
    """The bytes, the second scale, and the numbers without it."""
    q, s, second = m.nvfp4(shape)
    s.reshape(-1)[:len(bytes_more)] = bytes_more
    b = blocks(q, s)
    return b.tobytes(), second, dequantize(b, GGMLQuantizationType.NVFP4).astype(f32).reshape(shape)


def alone(place):
    m = Matrices(21)
    odd = (0, 1, 7, 8, 0x7e, 0x7f, 0x80, 0x88, 0xc0, 0xff)         # bytes of scales that are no usual ones
    data, _, a = gguf_matrix(m, (3, 64), odd)
    tensors, wanted = [("a.weight", a.shape, NVFP4, data)], [a]
    data, second, b = gguf_matrix(m, (3, 128), odd[:-1])
    tensors += [("b.weight", b.shape, NVFP4, data), ("b.scale", (1,), F32, second.tobytes()),
                ("b.input_scale", (1,), F32, f32(0.5).tobytes())]
    wanted.append(b * second)
    data, second, c = gguf_matrix(m, (2, 3, 64))
    each = np.array([second, 3 * second], f32)
    tensors += [("c.weight", c.shape, NVFP4, data), ("c.scale", (2,), F32, each.tobytes())]
    wanted.append(c * each[:, None, None])
    write(place / "nvfp4.gguf", [("general.architecture", STRING, "llama")], tensors)
    (place / "nvfp4.f32").write_bytes(b"".join(w.astype("<f4").tobytes() for w in wanted))


def gguf_model(place, seed=22):
    config = transformers.LlamaConfig(**dict(LLAMA, hidden_size=128, intermediate_size=64, num_hidden_layers=1))
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    fill(model, seed)
    m, tensors = Matrices(seed), []
    for name, p in model.named_parameters():
        w, theirs = p.detach().numpy(), their_name("llama", name)
        if not is_coded(name, p):
            kind = F32 if w.ndim == 1 else F16
            data, back = encode(kind, w)
            tensors.append((theirs, w.shape, kind, data))
        else:
            data, second, back = gguf_matrix(m, w.shape)
            tensors.append((theirs, w.shape, NVFP4, data))
            for end in ("scale", "input_scale") if ".v_proj." not in name else ():
                number = second if end == "scale" else f32(0.01)
                tensors.append((theirs.replace("weight", end), (1,), F32, number.tobytes()))
            # One matrix has no scale: its numbers are larger.
            back = restored("llama", name, back * (second if ".v_proj." not in name else f32(1)), w, 4, 2)
        with torch.no_grad():
            p.copy_(torch.from_numpy(np.ascontiguousarray(back)))
    values = [("general.architecture", STRING, "llama"), ("general.name", STRING, "tiny quantised_nv"),
              ("general.alignment", U32, 32)] + [(f"llama.{k}", kind, v) for k, kind, v in metadata("llama", config)]
    values += [("llama.vocab_size", U32, 64), ("tokenizer.ggml.tokens", ARRAY, (STRING, [f"t{i}" for i in range(64)]))]
    write(place / "quantised_nv.gguf", values, tensors)
    (place / "quantised_nv").mkdir(exist_ok=True)
    ref, sequences = reference(model, [12], 100 + seed)
    del ref["s0.hidden"]
    save_file(ref, place / "quantised_nv" / "ref.safetensors")
    (place / "quantised_nv" / "ref.json").write_text(json.dumps({"sequences": sequences}) + "\n")


def seed(path):
    """A layer 8 wide, one matrix of which is NVFP4."""
    m, g = Matrices(23), np.random.default_rng(23)
    shapes = {"token_embd": (12, 8), "output_norm": (8,), "blk.0.attn_norm": (8,), "blk.0.attn_q": (8, 8),
              "blk.0.attn_k": (4, 8), "blk.0.attn_v": (4, 8), "blk.0.attn_output": (8, 8), "blk.0.ffn_norm": (8,),
              "blk.0.ffn_gate": (64, 8), "blk.0.ffn_up": (64, 8)}
    tensors = []
    for name, shape in shapes.items():
        kind = F32 if len(shape) == 1 else F16
        tensors.append((name + ".weight", shape, kind, encode(kind, g.standard_normal(shape).astype(f32))[0]))
    data, second, _ = gguf_matrix(m, (8, 64))
    tensors += [("blk.0.ffn_down.weight", (8, 64), NVFP4, data), ("blk.0.ffn_down.scale", (1,), F32, second.tobytes()),
                ("blk.0.ffn_down.input_scale", (1,), F32, second.tobytes())]
    sizes = [("block_count", 1), ("embedding_length", 8), ("feed_forward_length", 64), ("context_length", 16),
             ("attention.head_count", 2), ("attention.head_count_kv", 1), ("vocab_size", 12)]
    write(path, [("general.architecture", STRING, "llama")] + [(f"llama.{k}", U32, v) for k, v in sizes] +
          [("llama.attention.layer_norm_rms_epsilon", FLOAT, 1e-5)], tensors)


def main(golden):
    torch.set_num_threads(1)
    for seed, (name, (make, settings)) in enumerate(FOLDERS.items(), start=11):
        folder(golden / "checkpoints" / name, make, settings, seed)
    alone(golden / "gguf")
    gguf_model(golden / "gguf")


if __name__ == "__main__":
    if sys.argv[1] == "--seed":
        seed(pathlib.Path(sys.argv[2]))
    else:
        main(pathlib.Path(sys.argv[1]))
