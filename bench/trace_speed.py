# SPDX-License-Identifier: Apache-2.0
"""Tracing speed: shears beside what people run today, in one go on one machine.

Both sides get the same checkpoint (random weights of a real model's shape) and the same sequences, and
both end with every attention score of every layer and head in a SQLite file:

  PyTorch   transformers' OPT, attn_implementation="eager", output_attentions=True, one sequence at a
            time, each layer's [heads, T, T] stored as an f16 blob. Timed without imports and loading.
  shears    `shears trace --record full`, the whole command, loading the weights included; then the
            other record levels, and one that records a single layer: nearly the plain forward.

The limits: the products of the decoder layers alone, at the matrix speed that PyTorch reaches on one
large product of the same dtype in the same run; on a GPU also the copies to the host and what the
store's folder takes. By hand:

    python3 bench/trace_speed.py --shears ./shears --work /tmp/bench
    python3 bench/trace_speed.py --shears ./shears --work /tmp/bench --backend cuda --shape opt-6.7b

needs torch, transformers, safetensors. Prints one JSON object, and each run on stderr as soon as it is there;
nothing here is run by make.
"""
import argparse
import json
import os
import sqlite3
import subprocess
import sys
import time

import random_model
import torch
from safetensors.torch import save_file
from transformers import OPTConfig, OPTForCausalLM

VOCAB = 50272
SHAPES = {  # layers, width, heads, feed-forward
    "opt-125m": (12, 768, 12, 3072),
    "opt-1.3b": (24, 2048, 32, 8192),
    "opt-6.7b": (32, 4096, 32, 16384),
    "opt-30b": (48, 7168, 56, 28672),
}
SPARSE_FROM = 20e9  # bytes: a larger checkpoint is a file of holes, all weights zero
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def config_of(shape):
    layers, width, heads, ffn = SHAPES[shape]
    return OPTConfig(num_hidden_layers=layers, hidden_size=width, num_attention_heads=heads, ffn_dim=ffn,
                     vocab_size=VOCAB, max_position_embeddings=2048, word_embed_proj_dim=width, dropout=0.0)


def n_parameters(shape):
    layers, width, _, ffn = SHAPES[shape]
    return layers * (4 * width * width + 2 * width * ffn) + (VOCAB + 2050) * width


def make_checkpoint(folder, shape, backend):
    """f32 on the CPU, so that neither side converts; f16 for a GPU, the file that engine_gpu.py takes, too."""
    if backend == "cuda" or 2 * n_parameters(shape) > SPARSE_FROM:
        random_model.make(folder, shape, 2 * n_parameters(shape) > SPARSE_FROM)
        return
    config = config_of(shape)
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(0)
    model = OPTForCausalLM(config).eval()
    tensors = {k: v.contiguous() for k, v in model.state_dict().items() if k != "lm_head.weight"}
    save_file(tensors, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    config.architectures = ["OPTForCausalLM"]
    config.save_pretrained(folder)


def pytorch(folder, sequences, dtype, backend, path):
    model = OPTForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=dtype).eval().to(backend)
    with torch.no_grad():
        model(torch.tensor([sequences[0][:64]], device=backend), output_attentions=True)
        db = sqlite3.connect(path)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE attention (sequence INTEGER, layer INTEGER, scores BLOB)")
        began = time.perf_counter()
        for i, ids in enumerate(sequences):
            out = model(torch.tensor([ids], device=backend), output_attentions=True, use_cache=False)
            for layer, a in enumerate(out.attentions):
                db.execute("INSERT INTO attention VALUES (?, ?, ?)", (i, layer, a[0].half().cpu().numpy().tobytes()))
            db.commit()
        seconds = time.perf_counter() - began
        db.close()
    del model
    if backend == "cuda":
        torch.cuda.empty_cache()
    return seconds


def shears(a, folder, tokens, path, dtype, options):
    command = [a.shears, "trace", "--model", folder, "--tokens", tokens, "--db", path, "--dtype", dtype,
               "--backend", a.backend, "--json", "-q", *options]
    began = time.perf_counter()
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return time.perf_counter() - began, json.loads(out)


def best(repeat, run):
    return min((run() for _ in range(repeat)), key=lambda r: r[0] if isinstance(r, tuple) else r)


def matrix_speed(dtype, backend):
    """FLOP/s of one large product, the best of several."""
    n = 8192 if backend == "cuda" else 2048
    a, b = (torch.randn(n, n, device=backend).to(dtype) for _ in range(2))
    fastest = 0.0
    for _ in range(6):
        began = time.perf_counter()
        a @ b
        if backend == "cuda":
            torch.cuda.synchronize()
        fastest = max(fastest, 2 * n**3 / (time.perf_counter() - began))
    return fastest


def copy_speed():
    """Bytes/s from the device into pinned memory."""
    there = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
    here = torch.empty(1 << 28, dtype=torch.uint8, pin_memory=True)
    fastest = 0.0
    for _ in range(6):
        torch.cuda.synchronize()
        began = time.perf_counter()
        here.copy_(there)
        torch.cuda.synchronize()
        fastest = max(fastest, there.numel() / (time.perf_counter() - began))
    return fastest


def write_speed(folder):
    """Bytes/s of one large file there, on disk when it is closed."""
    path, block = os.path.join(folder, "speed"), os.urandom(1 << 24)
    began = time.perf_counter()
    with open(path, "wb") as f:
        for _ in range(64):
            f.write(block)
        f.flush()
        os.fsync(f.fileno())
    seconds = time.perf_counter() - began
    os.remove(path)
    return 64 * len(block) / seconds


def fresh(path):
    for ending in ("", "-wal", "-shm", "-journal"):
        if os.path.exists(path + ending):
            os.remove(path + ending)
    return path


def runs_of(a, model, tokens, sequences, name):
    layers = SHAPES[a.shape][0]
    total, store = a.sequences * a.length, os.path.join(a.work, "shears.db")
    theirs = None
    few = sequences[:a.pytorch_sequences or None]
    if not a.without_pytorch:
        theirs = best(a.repeat, lambda: pytorch(model, few, DTYPES[name], a.backend,
                                                fresh(os.path.join(a.work, "torch.db"))))
        fresh(os.path.join(a.work, "torch.db"))         # its room on the disk
    levels = {"full log8": [], "full f16": ["--codec", "f16"], "sparse": ["--record", "sparse"],
              "summary": ["--record", "summary"],
              "one layer only": ["--layers", f"{layers - 1}-{layers - 1}", "--record", "summary"]}
    for level, options in levels.items():
        ours, report = best(a.repeat, lambda: shears(a, model, tokens, fresh(store), name, options))
        keys = ("peak_memory_bytes", "device_needs_bytes", "device_peak_bytes", "bytes_per_score", "bytes")
        yield {"dtype": name, "record": level, "pytorch_tokens_per_s": theirs and len(few) * a.length / theirs,
               "shears_tokens_per_s": total / ours, "shears_without_loading_tokens_per_s": report["tokens_per_s"],
               "ratio": theirs and theirs / len(few) / (ours / a.sequences),
               **{k: report[k] for k in keys if k in report}}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--shears", required=True)
    p.add_argument("--work", required=True)
    p.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    p.add_argument("--shape", choices=SHAPES, default="opt-125m")
    p.add_argument("--dtype", nargs="+", choices=DTYPES)
    p.add_argument("--length", type=int, default=1024)
    p.add_argument("--sequences", type=int, default=4)
    p.add_argument("--pytorch-sequences", type=int, default=0, help="of these; 0: all (a GPU's fill a disk in f16)")
    p.add_argument("--repeat", type=int, default=2)
    p.add_argument("--without-pytorch", action="store_true", help="for shapes that it has no room for")
    a = p.parse_args()
    model, tokens = os.path.join(a.work, a.shape), os.path.join(a.work, "tokens.jsonl")
    make_checkpoint(model, a.shape, a.backend)
    torch.manual_seed(1)
    sequences = torch.randint(0, VOCAB, (a.sequences, a.length)).tolist()
    with open(tokens, "w") as f:
        f.writelines(json.dumps(s) + "\n" for s in sequences)
    layers, width, _, ffn = SHAPES[a.shape]
    flop = 2 * layers * (4 * width * width + 2 * width * ffn)           # per token, products of the layers
    cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "CPU")
    result = {"date": time.strftime("%Y-%m-%d"), "cpu": cpu, "cores": os.cpu_count(), "torch": torch.__version__,
              "cpu_capability": torch.backends.cpu.get_cpu_capability(), "shape": a.shape, "length": a.length,
              "sequences": a.sequences, "zero_weights": 2 * n_parameters(a.shape) > SPARSE_FROM,
              "store_write_bytes_per_s": write_speed(a.work), "runs": []}
    if a.backend == "cuda":
        result |= {"gpu": torch.cuda.get_device_name(), "copy_bytes_per_s": copy_speed()}
    speed = 0.0
    for name in a.dtype or (("f32", "bf16") if a.backend == "cpu" else ("f16", "f32")):
        speed = max(matrix_speed(DTYPES[name], a.backend), speed if a.backend == "cpu" else 0)
        # on a CPU bf16 may be emulated: then f32 is the limit of both
        for run in runs_of(a, model, tokens, sequences, name):
            limit = speed / flop
            result["runs"].append(run | {"limit_tokens_per_s": limit,
                                         "share_of_limit": run["shears_tokens_per_s"] / limit})
            print(json.dumps(result["runs"][-1]), file=sys.stderr, flush=True)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
