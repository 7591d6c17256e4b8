# SPDX-License-Identifier: Apache-2.0
"""What a smaller KV cache buys on a GPU: tokens per second of decoding, side by side in one run.

For each shape (random weights, random_model.py), f16, and each stated memory: the full cache, a fifth of it, and a
fifth in 4-bit codes, each with the largest batch that fits. Beside them PyTorch's own decoding with a full cache,
at the largest batch of powers of two and their halves that it takes, and what `shears capacity` predicts, with the
error of that: predicted_error_percent, 100 (predicted / measured - 1). By hand, where there is a GPU, after
`make bench-engine`:

    python3 bench/engine_gpu.py --driver ./bench/engine_gpu --shears ./shears --work /tmp/bench >FILE.json

Each row goes to stderr as soon as it is there; with --minutes, what has not begun by then is left out and said to
be. Tokens per second are those of whole decoding steps, each token the likeliest one, which the device looks for,
behind a prompt of context - steps random tokens, which is not counted. kv_read_share is the bytes of keys and
values that a step's attention reads (its kept tokens), over the median step's time and the memory bandwidth
that a large copy reaches in the same run: a lower bound of the attention's own share, for the step also reads
the weights. steps_read_share counts these as well. PyTorch's rows need torch and transformers, the shares torch;
without them they are left out with a word, and predictions go by the catalogue's bandwidth of --gpu. On the emulated device (tests/emu), to try the program itself:

    SH_MODULE_DIR=tests/emu/modules python3 bench/engine_gpu.py --driver ./bench/engine_gpu --shears ./shears \\
        --work /tmp/bench --shape small small-opt --memory 1e9 --context 64 --steps 12 --batch 3
"""
import argparse
import json
import os
import subprocess
import sys
import time

import random_model

try:
    import torch
except ImportError:
    torch = None
try:
    from transformers import AutoModelForCausalLM
except ImportError:
    AutoModelForCausalLM = None
HAS_GPU = torch is not None and torch.cuda.is_available()


def say(row):
    print(json.dumps(row), file=sys.stderr, flush=True)


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


def pytorch(folder, context, steps, memory, end):
    """The library's decoding with its own full cache, at the largest batch that goes through."""
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, memory / total))
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float16).eval().cuda()
    best = None
    for batch in sorted({n for k in range(8) for n in (1 << k, 3 << k >> 1)} - {0}):
        if time.monotonic() > end:
            break
        try:
            ids = torch.randint(0, model.config.vocab_size, (batch, context), device="cuda")
            with torch.no_grad():
                past = None
                for at in range(0, context - steps, 256):
                    out = model(ids[:, at:min(at + 256, context - steps)], past_key_values=past, use_cache=True,
                                logits_to_keep=1)
                    past = out.past_key_values
                times = []
                for _ in range(steps):
                    torch.cuda.synchronize()
                    began = time.perf_counter()
                    out = model(out.logits[:, -1:].argmax(-1), past_key_values=past, use_cache=True)
                    past = out.past_key_values
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
    return best


def error_percent(predicted, measured):
    """How far the prediction is above what was measured, in percent of that; None where one of them is lacking."""
    return 100 * (predicted / measured - 1) if predicted and measured else None


def predicted(a, folder, row, budget, bits, bandwidth, memory):
    """What capacity's roofline says of the same batch, with the bandwidth that was measured, and how far it is off."""
    kv = "f16" if bits == 16 else f"int{bits}"
    said = subprocess.run([a.shears, "capacity", "--model", folder, "--gpu", a.gpu, "--length", str(a.context),
                           "--batch", str(row["batch"]), "--kv", kv, "--budget", str(budget), "--memory", str(memory),
                           "--json", "-q"] + (["--bandwidth", str(int(bandwidth))] if bandwidth else []),
                          capture_output=True, text=True)
    if said.returncode:
        return {"refused": said.stderr.strip()}
    result = json.loads(said.stdout)["results"][0]
    rate, kv_bytes = result.get("decode_tokens_per_s"), result.get("kv_bytes_per_sequence_per_gpu")
    return {"bandwidth_of": "a copy here" if bandwidth else a.gpu, "decode_tokens_per_s": rate,
            "predicted_error_percent": error_percent(rate, row["tokens_per_s"]),
            "kv_bytes_per_sequence_per_gpu": kv_bytes,
            "kv_bytes_error_percent": error_percent(kv_bytes, row["kv_bytes"] / row["batch"])}


def shares(a, row, folder, config, budget, bits, bandwidth):
    """What a step reads, over its time and the bandwidth."""
    width = config["hidden_size"] // config["num_attention_heads"]
    heads = config.get("num_key_value_heads", config["num_attention_heads"])
    read = row["batch"] * budget * 2 * config["num_hidden_layers"] * heads * width * bits / 8
    weights = random_model.weight_bytes(folder)
    return {"kv_read_share": read / row["step_s_p50"] / bandwidth,
            "steps_read_share": (read + weights) / row["step_s_p50"] / bandwidth}


def ours(a, shape, folder, memory, policy, budget, bits, bandwidth):
    ran = subprocess.run([a.driver, folder, a.backend, str(int(memory)), policy, str(budget), str(bits),
                          str(a.context), str(a.steps), str(a.batch)], capture_output=True, text=True)
    row = {"shape": shape, "memory_bytes": int(memory), "policy": policy, "kv_bits": bits}
    if ran.returncode:
        return row | {"failed": ran.stderr.strip() or f"status {ran.returncode}"}
    row = json.loads(ran.stdout) | row
    row["p99_over_p50"] = row["step_s_p99"] / row["step_s_p50"]
    row["taken_over_predicted"] = row["cache_bytes_taken"] / (row["kv_bytes"] + row["scratch_bytes"])
    if bandwidth:
        row |= shares(a, row, folder, random_model.config_of(shape), budget, bits, bandwidth)
    row["predicted"] = predicted(a, folder, row, budget, bits, bandwidth, int(memory))
    return row


def theirs(a, shape, folder, memory, end):
    row = {"shape": shape, "memory_bytes": int(memory), "policy": "PyTorch, full cache"}
    try:
        return row | (pytorch(folder, a.context, a.steps, memory, end) or {"failed": "not even one sequence"})
    except Exception as e:                              # the other rows stand
        return row | {"failed": f"{type(e).__name__}: {e}"}
    finally:
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(1.0)


def rows(a, bandwidth, end):
    for shape in a.shape:
        folder, fifth = f"{a.work}/{shape}", a.context // 5
        random_model.make(folder, shape)
        for memory in a.memory:
            if HAS_GPU:
                memory = min(memory, torch.cuda.mem_get_info()[0] * 0.96)
            for policy, budget, bits in (("full", a.context, 16), (a.policy, fifth, 16), (a.policy, fifth, 4)):
                if time.monotonic() > end:
                    yield {"shape": shape, "memory_bytes": int(memory), "policy": policy, "kv_bits": bits,
                           "left_out": f"{a.minutes} minutes were over"}
                else:
                    yield ours(a, shape, folder, memory, policy, budget, bits, bandwidth)
            if not a.without_pytorch:
                yield theirs(a, shape, folder, memory, end)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--driver", default="./bench/engine_gpu")
    p.add_argument("--shears", default="./shears")
    p.add_argument("--work", required=True)
    p.add_argument("--backend", default="cuda")
    p.add_argument("--shape", nargs="+", default=["opt-6.7b", "llama-7b"], choices=random_model.SHAPES)
    p.add_argument("--memory", type=float, nargs="+", default=[40e9, 80e9], help="bytes; the device's own where larger")
    p.add_argument("--gpu", default="H200-SXM", help="capacity's name of it; its memory is --memory, its bandwidth that of a copy, if torch is here")
    p.add_argument("--context", type=int, default=2048)
    p.add_argument("--steps", type=int, default=128)
    p.add_argument("--batch", type=int, default=0, help="0: the largest that fits")
    p.add_argument("--policy", default="scissorhands:counter=epochs", help="of the small caches")
    p.add_argument("--minutes", type=float, default=0, help="begin nothing after so many; 0: no limit")
    p.add_argument("--without-pytorch", action="store_true")
    a = p.parse_args()
    end = time.monotonic() + 60 * a.minutes if a.minutes else float("inf")
    answer = {"date": time.strftime("%Y-%m-%d"), "context": a.context, "steps": a.steps, "rows": []}
    bandwidth = None
    if not a.without_pytorch and not (HAS_GPU and AutoModelForCausalLM):
        answer["pytorch"] = "left out: " + ("no torch" if torch is None else "no GPU that torch sees" if not HAS_GPU
                                            else "no transformers")
        say(answer["pytorch"])
        a.without_pytorch = True
    if HAS_GPU:
        answer["device"] = torch.cuda.get_device_name(0)
        bandwidth = answer["copy_bytes_per_s"] = copy_bandwidth()
        torch.cuda.empty_cache()
    for row in rows(a, bandwidth, end):
        answer["rows"].append(row)
        say(row)
    print(json.dumps(answer, indent=1))
    sys.exit(any("failed" in row for row in answer["rows"]))


main()
