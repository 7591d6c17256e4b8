# SPDX-License-Identifier: Apache-2.0
"""What a smaller KV cache buys on a GPU: tokens per second of decoding, side by side in one run.

For each shape (random weights), f16, and each stated memory: the full cache, a fifth of it, and a fifth in
4-bit codes, each with the largest batch that fits. Beside them PyTorch's own decoding with a full cache, at
the largest batch of powers of two and their halves that it takes, and what `shears capacity` predicts. By hand,
where there is a GPU, after `make bench-engine`:

    python3 bench/engine_gpu.py --driver ./bench/engine_gpu --shears ./shears --work /tmp/bench >FILE.json

Tokens per second are those of whole decoding steps, logits on the host included, behind a prompt of
context - steps random tokens; PyTorch's leave the prompt out as well. kv_read_share is the bytes of keys and
values that a step's attention reads (its kept tokens), over the median step's time and the memory bandwidth
that a large copy reaches in the same run: a lower bound of the attention's own share, for the step also reads
the weights. steps_read_share counts these as well. needs torch, transformers, safetensors.
"""
import argparse
import json
import os
import subprocess
import sys
import time

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, LlamaConfig, OPTConfig

SHAPES = {
    "opt-6.7b": OPTConfig(num_hidden_layers=32, hidden_size=4096, num_attention_heads=32, ffn_dim=16384,
                          vocab_size=50272, max_position_embeddings=2048, word_embed_proj_dim=4096, dropout=0.0),
    "llama-7b": LlamaConfig(num_hidden_layers=32, hidden_size=4096, num_attention_heads=32,
                            num_key_value_heads=32, intermediate_size=11008, vocab_size=32000,
                            max_position_embeddings=2048, tie_word_embeddings=False),
    "small": LlamaConfig(num_hidden_layers=2, hidden_size=64, num_attention_heads=4, num_key_value_heads=2,
                         intermediate_size=96, vocab_size=128, max_position_embeddings=2048,
                         tie_word_embeddings=False),
}
SHARD = 2 << 30


def make_checkpoint(folder, config):
    """Random f16 weights, in pieces, with an index."""
    if os.path.exists(f"{folder}/config.json"):
        return
    os.makedirs(folder, exist_ok=True)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    tied = "lm_head.weight" if config.tie_word_embeddings else None
    names = [(k, v.shape) for k, v in model.state_dict().items() if k != tied]
    generator, where, piece, held, n = torch.Generator().manual_seed(0), {}, {}, 0, 0
    for i, (name, shape) in enumerate(names):
        t = torch.randn(shape, generator=generator) * 0.02
        if name.endswith("norm.weight") or "layer_norm.weight" in name or "layernorm.weight" in name:
            t = torch.ones(shape)
        piece[name] = t.half().contiguous()
        held += piece[name].nbytes
        if held > SHARD or i == len(names) - 1:
            file = f"model-{n:05d}.safetensors"
            save_file(piece, f"{folder}/{file}", metadata={"format": "pt"})
            where.update({k: file for k in piece})
            piece, held, n = {}, 0, n + 1
    with open(f"{folder}/model.safetensors.index.json", "w") as f:
        json.dump({"metadata": {}, "weight_map": where}, f)
    config.architectures = ["OPTForCausalLM" if config.model_type == "opt" else "LlamaForCausalLM"]
    config.dtype = "float16"
    config.save_pretrained(folder)


def copy_bandwidth():
    """Bytes read and written per second by a copy of 2 GiB, the best of ten."""
    a = torch.empty(1 << 30, dtype=torch.float16, device="cuda").normal_()
    b, best = torch.empty_like(a), 0
    for _ in range(10):
        torch.cuda.synchronize()
        began = time.perf_counter()
        b.copy_(a)
        torch.cuda.synchronize()
        best = max(best, 2 * a.nbytes / (time.perf_counter() - began))
    return best


def pytorch(folder, context, steps, memory):
    """The library's decoding with its own full cache, at the largest batch that goes through."""
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, memory / total))
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float16).eval().cuda()
    best = None
    for batch in sorted({n for k in range(8) for n in (1 << k, 3 << k >> 1)} - {0}):
        try:
            ids = torch.randint(0, model.config.vocab_size, (batch, context), device="cuda")
            with torch.no_grad():
                past = None
                for at in range(0, context - steps, 256):
                    out = model(ids[:, at:min(at + 256, context - steps)], past_key_values=past, use_cache=True,
                                logits_to_keep=1)
                    past = out.past_key_values
                times = []
                for t in range(context - steps, context):
                    torch.cuda.synchronize()
                    began = time.perf_counter()
                    past = model(ids[:, t:t + 1], past_key_values=past, use_cache=True).past_key_values
                    torch.cuda.synchronize()
                    times.append(time.perf_counter() - began)
            times = sorted(times[4:] or times)
            best = {"batch": batch, "tokens_per_s": batch * len(times) / sum(times),
                    "step_s_p50": times[len(times) // 2]}
        except torch.OutOfMemoryError:
            break
        finally:
            past = out = None
            torch.cuda.empty_cache()
    del model
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(1.0)
    return best


def predicted(a, folder, row, budget, bits, bandwidth, memory):
    """What capacity's roofline says of the same batch, with the bandwidth that was measured."""
    kv = "f16" if bits == 16 else f"int{bits}"
    said = subprocess.run([a.shears, "capacity", "--model", folder, "--gpu", a.gpu, "--length", str(a.context),
                           "--batch", str(row["batch"]), "--kv", kv, "--budget", str(budget), "--memory", str(memory),
                           "--bandwidth", str(int(bandwidth)), "--json", "-q"], capture_output=True, text=True)
    if said.returncode:
        return {"refused": said.stderr.strip()}
    result = json.loads(said.stdout)["results"][0]
    return {k: result.get(k) for k in ("decode_tokens_per_s", "kv_bytes_per_sequence_per_gpu")}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--driver", default="./bench/engine_gpu")
    p.add_argument("--shears", default="./shears")
    p.add_argument("--work", required=True)
    p.add_argument("--backend", default="cuda")
    p.add_argument("--shape", nargs="+", default=["opt-6.7b", "llama-7b"], choices=SHAPES)
    p.add_argument("--memory", type=float, nargs="+", default=[40e9, 80e9], help="bytes; the device's own where larger")
    p.add_argument("--gpu", default="H100-SXM", help="capacity's name of it; memory and bandwidth are measured ones")
    p.add_argument("--context", type=int, default=2048)
    p.add_argument("--steps", type=int, default=128)
    p.add_argument("--batch", type=int, default=0, help="0: the largest that fits")
    p.add_argument("--policy", default="scissorhands:counter=epochs", help="of the small caches")
    p.add_argument("--without-pytorch", action="store_true")
    a = p.parse_args()
    answer = {"context": a.context, "steps": a.steps, "rows": []}
    bandwidth = None
    if a.backend == "cuda":
        answer["device"] = torch.cuda.get_device_name(0)
        bandwidth = answer["copy_bytes_per_s"] = copy_bandwidth()
        torch.cuda.empty_cache()
    for shape in a.shape:
        folder = f"{a.work}/{shape}"
        make_checkpoint(folder, SHAPES[shape])
        fifth = a.context // 5
        for memory in a.memory:
            if a.backend == "cuda":
                memory = min(memory, torch.cuda.mem_get_info()[0] * 0.96)
            for policy, budget, bits in (("full", a.context, 16), (a.policy, fifth, 16), (a.policy, fifth, 4)):
                ran = subprocess.run([a.driver, folder, a.backend, str(int(memory)), policy, str(budget), str(bits),
                                      str(a.context), str(a.steps), str(a.batch)], capture_output=True, text=True)
                row = {"shape": shape, "memory_bytes": int(memory), "policy": policy, "kv_bits": bits}
                row |= json.loads(ran.stdout) if ran.returncode == 0 else {"failed": ran.stderr.strip()}
                if ran.returncode == 0:
                    row["p99_over_p50"] = row["step_s_p99"] / row["step_s_p50"]
                    row["taken_over_predicted"] = row["cache_bytes_taken"] / (row["kv_bytes"] + row["scratch_bytes"])
                if ran.returncode == 0 and bandwidth:
                    config = SHAPES[shape]
                    width = config.hidden_size // config.num_attention_heads
                    heads = getattr(config, "num_key_value_heads", config.num_attention_heads)
                    token = 2 * config.num_hidden_layers * heads * width * bits / 8
                    read = row["batch"] * budget * token
                    weights = sum(os.path.getsize(f"{folder}/{f}") for f in os.listdir(folder) if f.startswith("model-"))
                    row["kv_read_share"] = read / row["step_s_p50"] / bandwidth
                    row["steps_read_share"] = (read + weights) / row["step_s_p50"] / bandwidth
                    row["predicted"] = predicted(a, folder, row, budget, bits, bandwidth, int(memory))
                answer["rows"].append(row)
                print(json.dumps(row), file=sys.stderr)
            if a.backend == "cuda" and not a.without_pytorch:
                row = {"shape": shape, "memory_bytes": int(memory), "policy": "PyTorch, full cache"}
                row |= pytorch(folder, a.context, a.steps, memory) or {"failed": "not even one sequence"}
                answer["rows"].append(row)
                print(json.dumps(row), file=sys.stderr)
    print(json.dumps(answer, indent=1))


main()
