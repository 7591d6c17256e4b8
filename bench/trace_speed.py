# SPDX-License-Identifier: Apache-2.0
"""Tracing speed: shears compared with PyTorch, in one run on one machine.

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

Prints one JSON object, and each run on stderr as soon as it is there; with --lines every run is one line of JSON on
stdout instead, and --only takes some of the runs. PyTorch's run and the limits need torch, transformers and, for a
checkpoint in f32, safetensors: where they are absent, these are left out with a word. shears' runs need nothing.
Stages (shears trace --timing) are taken along where the program tells them. Nothing here is run by make.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import time

import random_model

try:
    import torch
    from transformers import OPTConfig, OPTForCausalLM
except ImportError as e:
    torch, ABSENT = None, str(e)

SHAPES = {  # layers, width, heads, feed-forward, vocabulary
    "opt-125m": (12, 768, 12, 3072, 50272),
    "opt-1.3b": (24, 2048, 32, 8192, 50272),
    "opt-6.7b": (32, 4096, 32, 16384, 50272),
    "opt-30b": (48, 7168, 56, 28672, 50272),
    "small-opt": (2, 64, 4, 96, 128),
}
SPARSE_FROM = 20e9  # bytes: a larger checkpoint is a file of holes, all weights zero
DTYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}


def config_of(shape):
    layers, width, heads, ffn, vocab = SHAPES[shape]
    return OPTConfig(num_hidden_layers=layers, hidden_size=width, num_attention_heads=heads, ffn_dim=ffn,
                     vocab_size=vocab, max_position_embeddings=2048, word_embed_proj_dim=width, dropout=0.0)


def n_parameters(shape):
    layers, width, _, ffn, vocab = SHAPES[shape]
    return layers * (4 * width * width + 2 * width * ffn) + (vocab + 2050) * width


def make_checkpoint(folder, shape, backend):
    """f32 on the CPU, so that neither side converts; f16 for a GPU, the file that engine_gpu.py takes, too."""
    if backend == "cuda" or 2 * n_parameters(shape) > SPARSE_FROM:
        random_model.make(folder, shape, 2 * n_parameters(shape) > SPARSE_FROM)
        return
    from safetensors.torch import save_file
    config = config_of(shape)
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(0)
    model = OPTForCausalLM(config).eval()
    tensors = {k: v.contiguous() for k, v in model.state_dict().items() if k != "lm_head.weight"}
    save_file(tensors, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    config.architectures = ["OPTForCausalLM"]
    config.save_pretrained(folder)


def pytorch(folder, sequences, dtype, backend, path):
    import sqlite3
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


def can_time(a):
    """Does the program tell its stages?"""
    return "--timing" in subprocess.run([a.shears, "trace", "--help"], capture_output=True, text=True).stdout


def shears(a, folder, tokens, path, dtype, options):
    command = [a.shears, "trace", "--model", folder, "--tokens", tokens, "--db", path, "--dtype", dtype,
               "--backend", a.backend, "--json", "-q", *(["--timing"] if can_time(a) else []), *options]
    began = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)       # its errors go where ours do
    if done.returncode:
        sys.exit(done.returncode)
    return time.perf_counter() - began, json.loads(done.stdout)


def best(repeat, run):
    return min((run() for _ in range(repeat)), key=lambda r: r[0] if isinstance(r, tuple) else r)


def matrix_speed(dtype, backend):
    """FLOP/s of one large product, the best of several."""
    n = 8192 if backend == "cuda" else 2048
    a, b = (torch.randn(n, n, device=backend).to(getattr(torch, DTYPES[dtype])) for _ in range(2))
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


def levels_of(a):
    """Of our runs, by name: the options. Recording one layer alone is nearly the plain forward."""
    last = SHAPES[a.shape][0] - 1
    return {"one layer only": ["--layers", f"{last}-{last}", "--record", "summary"], "full log8": [],
            "summary": ["--record", "summary"], "sparse": ["--record", "sparse"], "full f16": ["--codec", "f16"]}


def wanted(a, name):
    return not a.only or name in a.only


def pytorch_run(a, model, sequences, name):
    """tokens/s of PyTorch; None: not asked for, or absent."""
    if a.without_pytorch or not wanted(a, "pytorch"):
        return None
    if torch is None or (a.backend == "cuda" and not torch.cuda.is_available()):
        print(f"PyTorch is left out: {ABSENT if torch is None else 'it sees no GPU'}", file=sys.stderr, flush=True)
        if a.only == ["pytorch"]:
            sys.exit(3)
        return None
    path = os.path.join(a.store, "torch.db")
    few = sequences[:a.pytorch_sequences or None]
    seconds = best(a.repeat, lambda: pytorch(model, few, getattr(torch, DTYPES[name]), a.backend, fresh(path)))
    fresh(path)                                         # its room on the disk
    return len(few) * a.length / seconds


def runs_of(a, model, tokens, sequences, name):
    total, store = a.sequences * a.length, os.path.join(a.store, "shears.db")
    theirs = pytorch_run(a, model, sequences, name)
    if theirs and a.lines:
        yield {"dtype": name, "record": "pytorch", "sequences": a.sequences, "pytorch_tokens_per_s": theirs}
    for level, options in levels_of(a).items():
        if not wanted(a, level):
            continue
        ours, report = best(a.repeat, lambda: shears(a, model, tokens, fresh(store), name, options))
        fresh(store)
        keys = ("peak_memory_bytes", "device_needs_bytes", "device_peak_bytes", "bytes_per_score", "bytes", "timing")
        yield {"dtype": name, "record": level, "sequences": a.sequences, "pytorch_tokens_per_s": theirs,
               "shears_tokens_per_s": total / ours, "shears_without_loading_tokens_per_s": report["tokens_per_s"],
               "ratio": theirs and total / ours / theirs,
               **{k: report[k] for k in keys if k in report}}


def circumstances(a):
    cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "CPU")
    found = {"date": time.strftime("%Y-%m-%d"), "cpu": cpu, "cores": os.cpu_count(), "shape": a.shape,
             "length": a.length, "sequences": a.sequences, "zero_weights": 2 * n_parameters(a.shape) > SPARSE_FROM}
    if wanted(a, "limits"):
        found["store_write_bytes_per_s"] = write_speed(a.store)
    if torch is not None and not a.without_pytorch:
        found |= {"torch": torch.__version__, "cpu_capability": torch.backends.cpu.get_cpu_capability()}
        if a.backend == "cuda" and torch.cuda.is_available() and wanted(a, "limits"):
            found |= {"gpu": torch.cuda.get_device_name(), "copy_bytes_per_s": copy_speed()}
    return found


def can_multiply(a):
    return (torch is not None and not a.without_pytorch and wanted(a, "limits") and
            (a.backend == "cpu" or torch.cuda.is_available()))


def measured(a):
    """First the circumstances, then a row for each run."""
    model, tokens = os.path.join(a.work, a.shape), os.path.join(a.work, "tokens.jsonl")
    make_checkpoint(model, a.shape, a.backend)
    layers, width, _, ffn, vocab = SHAPES[a.shape]
    rng = random.Random(1)
    sequences = [[rng.randrange(vocab) for _ in range(a.length)] for _ in range(a.sequences)]
    with open(tokens, "w") as f:
        f.writelines(json.dumps(s) + "\n" for s in sequences)
    flop = 2 * layers * (4 * width * width + 2 * width * ffn)           # per token, products of the layers
    yield circumstances(a)
    speed = 0.0
    for name in a.dtype or (("f32", "bf16") if a.backend == "cpu" else ("f16", "f32")):
        if can_multiply(a):             # on a CPU bf16 may be emulated: then f32 is the limit of both
            speed = max(matrix_speed(name, a.backend), speed if a.backend == "cpu" else 0)
        limit = speed / flop
        for run in runs_of(a, model, tokens, sequences, name):
            ours = run.get("shears_tokens_per_s")
            yield run | ({"limit_tokens_per_s": limit, "share_of_limit": ours / limit} if limit and ours else {})


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--shears", required=True)
    p.add_argument("--work", required=True)
    p.add_argument("--store", help="folder of the stores (default: --work)")
    p.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    p.add_argument("--shape", choices=SHAPES, default="opt-125m")
    p.add_argument("--dtype", nargs="+", choices=DTYPES)
    p.add_argument("--length", type=int, default=1024)
    p.add_argument("--sequences", type=int, default=4)
    p.add_argument("--pytorch-sequences", type=int, default=0, help="of these; 0: all (a GPU's fill a disk in f16)")
    p.add_argument("--repeat", type=int, default=2)
    p.add_argument("--without-pytorch", action="store_true", help="for shapes that it has no room for")
    p.add_argument("--only", nargs="+", help="some of: limits, pytorch, and the record levels as they are printed")
    p.add_argument("--lines", action="store_true", help="each run a line of JSON on stdout, as soon as it is there")
    a = p.parse_args()
    a.store = a.store or a.work
    result = None
    for row in measured(a):
        if a.lines:
            print(json.dumps(row), flush=True)
        elif result is None:
            result = row | {"runs": []}
        else:
            result["runs"].append(row)
            print(json.dumps(row), file=sys.stderr, flush=True)
    if not a.lines:
        print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
