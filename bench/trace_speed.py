# SPDX-License-Identifier: Apache-2.0
"""Tracing speed: shears beside what people run today, in one go on one machine.

Both sides get the same checkpoint (OPT-125M's shape, random weights) and the same 1024-token
sequences, and both end with every attention score of every layer and head in a SQLite file:

  PyTorch   transformers' OPT, attn_implementation="eager", output_attentions=True, one sequence at a
            time, each layer's [heads, T, T] stored as an f16 blob. Timed without imports and loading.
  shears    `shears trace --record full`, the whole command, loading the weights included.

The limit: the products of the decoder layers alone, at the matrix speed that PyTorch reaches on one
large product of the same dtype in the same run. By hand:

    python3 bench/trace_speed.py --shears ./shears --work /tmp/bench

needs torch, transformers, safetensors. Prints one JSON object; nothing here is run by make.
"""
import argparse
import json
import os
import sqlite3
import subprocess
import time

import torch
from safetensors.torch import save_file
from transformers import OPTConfig, OPTForCausalLM

LAYERS, WIDTH, HEADS, FFN, VOCAB = 12, 768, 12, 3072, 50272


def make_checkpoint(folder):
    """OPT-125M's shape with fresh weights; f32 so that neither side converts."""
    config = OPTConfig(num_hidden_layers=LAYERS, hidden_size=WIDTH, num_attention_heads=HEADS, ffn_dim=FFN,
                       vocab_size=VOCAB, max_position_embeddings=2048, word_embed_proj_dim=WIDTH, dropout=0.0)
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(0)
    model = OPTForCausalLM(config).eval()
    tensors = {k: v.contiguous() for k, v in model.state_dict().items() if k != "lm_head.weight"}
    save_file(tensors, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    config.architectures = ["OPTForCausalLM"]
    config.save_pretrained(folder)


def pytorch(folder, sequences, dtype, path):
    model = OPTForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=dtype).eval()
    with torch.no_grad():
        model(torch.tensor([sequences[0][:64]]), output_attentions=True)
        db = sqlite3.connect(path)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE attention (sequence INTEGER, layer INTEGER, scores BLOB)")
        began = time.perf_counter()
        for i, ids in enumerate(sequences):
            out = model(torch.tensor([ids]), output_attentions=True, use_cache=False)
            for layer, a in enumerate(out.attentions):
                db.execute("INSERT INTO attention VALUES (?, ?, ?)", (i, layer, a[0].half().numpy().tobytes()))
            db.commit()
        seconds = time.perf_counter() - began
        db.close()
    return seconds


def shears(program, folder, tokens, path, dtype, codec):
    command = [program, "trace", "--model", folder, "--tokens", tokens, "--db", path, "--dtype", dtype,
               "--codec", codec, "--json", "-q"]
    began = time.perf_counter()
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return time.perf_counter() - began, json.loads(out)


def matrix_speed(dtype):
    """FLOP/s of one large product, the best of several."""
    a, b = torch.randn(2048, 2048).to(dtype), torch.randn(2048, 2048).to(dtype)
    best = 0.0
    for _ in range(6):
        began = time.perf_counter()
        a @ b
        best = max(best, 2 * 2048**3 / (time.perf_counter() - began))
    return best


def fresh(path):
    for ending in ("", "-wal", "-shm", "-journal"):
        if os.path.exists(path + ending):
            os.remove(path + ending)
    return path


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--shears", required=True)
    p.add_argument("--work", required=True)
    p.add_argument("--length", type=int, default=1024)
    p.add_argument("--sequences", type=int, default=4)
    p.add_argument("--repeat", type=int, default=2)
    a = p.parse_args()
    model, tokens = os.path.join(a.work, "opt-125m-random"), os.path.join(a.work, "tokens.jsonl")
    make_checkpoint(model)
    torch.manual_seed(1)
    sequences = torch.randint(0, VOCAB, (a.sequences, a.length)).tolist()
    with open(tokens, "w") as f:
        f.writelines(json.dumps(s) + "\n" for s in sequences)
    total = a.sequences * a.length
    flop = 2 * LAYERS * (4 * WIDTH * WIDTH + 2 * WIDTH * FFN)           # per token, products of the layers
    cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "CPU")
    result = {"date": time.strftime("%Y-%m-%d"), "cpu": cpu, "cores": os.cpu_count(), "torch": torch.__version__,
              "cpu_capability": torch.backends.cpu.get_cpu_capability(), "length": a.length,
              "sequences": a.sequences, "runs": []}
    speed = 0.0
    for name, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        theirs = min(pytorch(model, sequences, dtype, fresh(os.path.join(a.work, "torch.db"))) for _ in range(a.repeat))
        speed = max(matrix_speed(dtype), speed)         # bf16 may be emulated: then f32 is the limit of both
        limit = speed / flop
        for codec in ("log8", "f16"):
            ours, report = min((shears(a.shears, model, tokens, fresh(os.path.join(a.work, "shears.db")), name, codec)
                                for _ in range(a.repeat)), key=lambda r: r[0])
            result["runs"].append({
                "dtype": name, "codec": codec, "pytorch_tokens_per_s": total / theirs,
                "shears_tokens_per_s": total / ours, "shears_without_loading_tokens_per_s": report["tokens_per_s"],
                "ratio": theirs / ours, "limit_tokens_per_s": limit, "share_of_limit": total / ours / limit,
                "bytes_per_score": report["bytes_per_score"], "peak_memory_bytes": report["peak_memory_bytes"]})
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
