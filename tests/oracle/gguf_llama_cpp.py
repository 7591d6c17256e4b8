# SPDX-License-Identifier: Apache-2.0
"""Does llama.cpp read the GGUF files that gguf_modern.py, gguf_hybrid.py, gguf_remote.py and gguf_more.py write, and as
PyTorch reads the checkpoint?

    gguf_llama_cpp.py FOLDER...      each a fixture with its reference: how far llama.cpp's logits are from PyTorch's,
                                     and the largest of these; or what it says of the file

Not part of make check: it needs llama-cpp-python and safetensors. Weights are widened to F32, since llama.cpp rounds
what it multiplies by F16 and BF16. It reads GELU from a table of 16 bits (0.003), fixes numbers that files may say
otherwise (layers of DeepSeek lite, streams of Gemma 3n, windows of EXAONE 4 and StarCoder 2, chunks and temperature of
Llama 4), chooses groups of experts
in one way, has no least step of Nemotron-H and no factor of LFM2-MoE's experts, and rounds the range of YaRN's correction; shapes that rest on these differ or are refused. It leaves out
biases and the factor of experts of MiMo-V2, takes Laguna's windows from a period alone and Step's divisors of frequencies as if whole heads rotated, and
may know no activation of BitNet but SiLU. Texts of HunyuanVL have position 0 in a fourth section. It refuses DeciLM where the first layer has no attention, and forgets
attention where a layer has no feed-forward block."""
import json
import pathlib
import sys
import tempfile

import llama_cpp
import numpy as np
from safetensors.numpy import load_file

import gguf_hybrid
import gguf_modern
import gguf_more
import gguf_remote
from gguf_files import STRING, U32, write


def kind_of(config):
    kinds = gguf_modern.File, gguf_hybrid.Hybrid, gguf_remote.Remote, gguf_more.More
    return next((c for c in kinds if config["model_type"] in c.arches), None)


def logits(folder, config, tokens):
    tensors = {n: t.f32() if t.kind in ("F16", "BF16") else t for n, t in gguf_modern.read(folder).items()}
    f = kind_of(config)(config, tensors)
    f.describe()
    f.values += [("tokenizer.ggml.model", STRING, "none"), (f.arch + ".vocab_size", U32, f.c["vocab_size"])]
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place) / "model.gguf"
        write(path, f.values, f.out)
        model = llama_cpp.Llama(str(path), n_ctx=128, logits_all=True, verbose=False, flash_attn=False, type_k=0,
                                type_v=0)
        model.eval(tokens)
        return np.array(model.scores[:len(tokens)])


def main():
    for folder in map(pathlib.Path, sys.argv[1:]):
        config = json.loads((folder / "config.json").read_text())
        if not kind_of(config) or "quantization_config" in config:
            continue
        first, expected = json.loads((folder / "ref.json").read_text())["sequences"][0], load_file(folder / "ref.safetensors")
        tokens, rows = first["tokens"], first.get("rows", slice(None))
        expected = expected["s0.logits"][rows] if "s0.logits" in expected else expected["s0.logits_rows"]
        try:
            off = np.abs(logits(folder, config, tokens)[rows] - expected).max()
            print(f"{folder.name}: off by {off:.1e}, the largest is {np.abs(expected).max():.2f}")
        except ValueError as e:
            print(f"{folder.name}: {e}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main()
