# SPDX-License-Identifier: Apache-2.0
"""What a smaller KV cache buys on a GPU: tokens per second of decoding, side by side in one run.

For each shape (random weights, random_model.py), f16, and each stated memory: the full cache, a fifth of it, and a
fifth in 4-bit codes, each with the largest batch that fits. Beside them PyTorch's own decoding with a full cache,
at the largest batch of powers of two and their halves that it takes (transformers, eager, a static cache, sdpa), and
what `shears capacity` predicts, with the error of that: predicted_error_percent, 100 (predicted / measured - 1). With
--batch N... these batches in place of the largest, on both sides. By hand, where there is a GPU, after `make
bench-engine`:

    python3 bench/engine_gpu.py --driver ./bench/engine_gpu --shears ./shears --work /tmp/bench >FILE.json

Each row goes to stderr as soon as it is there, with --lines to stdout and nothing else does; with --minutes, what has not begun by then is left out and said to
be. Tokens per second are those of whole decoding steps, each token the likeliest one, which the device looks for,
after a prompt of context - steps random tokens, which is not counted. kv_read_share is the bytes of keys and
values that a step's attention reads (its kept tokens), over the median step's time and the memory bandwidth
that a large copy reaches in the same run: a lower bound of the attention's own share, for the step also reads
the weights. steps_read_share counts these as well. PyTorch's rows need torch and transformers, the shares torch;
without them they are left out with a word, and predictions go by the catalogue's bandwidth of --gpu. On the emulated
device (tests/emu), to try the program itself:

    SH_MODULE_DIR=tests/emu/modules python3 bench/engine_gpu.py --driver ./bench/engine_gpu --shears ./shears \\
        --work /tmp/bench --shape small small-opt --memory 1e9 --context 64 --steps 12 --batch 3
"""
import argparse
import json
import os
import re
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
NO_ROOM = re.compile("are left of the device|do(es)? not fit")
HAS_GPU = torch is not None and torch.cuda.is_available()


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


def static_cache(model, batch, context):
    """Room for `context` tokens of each sequence, which never moves."""
    from transformers import StaticCache
    names = StaticCache.__init__.__code__.co_varnames[:StaticCache.__init__.__code__.co_argcount]
    more = {"max_batch_size": batch, "device": model.device, "dtype": model.dtype}
    return StaticCache(config=model.config, max_cache_len=context, **{k: v for k, v in more.items() if k in names})


def library_steps(model, batch, context, steps):
    """The library's own decoding of one token at a time after a prompt: seconds of a step, sorted."""
    ids = torch.randint(0, model.config.vocab_size, (batch, context), device=model.device)
    prompt, times = context - steps, []
    with torch.no_grad():
        cache = static_cache(model, batch, context)
        for at in range(0, prompt, 256):
            places = torch.arange(at, min(at + 256, prompt), device=model.device)
            out = model(ids[:, at:at + len(places)], past_key_values=cache, use_cache=True, cache_position=places,
                        position_ids=places[None].expand(batch, -1), logits_to_keep=1)
        for step in range(steps):
            synchronize()
            began = time.perf_counter()
            place = torch.tensor([prompt + step], device=model.device)
            out = model(out.logits[:, -1:].argmax(-1), past_key_values=cache, use_cache=True, cache_position=place,
                        position_ids=place[None].expand(batch, -1))
            synchronize()
            times.append(time.perf_counter() - began)
    return sorted(times[4:] or times)


def synchronize():
    if HAS_GPU:
        torch.cuda.synchronize()


def library_model(folder, memory):
    if HAS_GPU and memory:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, memory / total))
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float16, attn_implementation="sdpa").eval()
    return model.cuda() if HAS_GPU else model


def library_row(model, batch, context, steps):
    try:
        times = library_steps(model, batch, context, steps)
        return {"batch": batch, "tokens_per_s": batch * len(times) / sum(times), "step_s_p50": times[len(times) // 2]}
    except torch.OutOfMemoryError:
        return {"batch": batch, "does_not_fit": True}
    finally:
        if HAS_GPU:
            torch.cuda.empty_cache()


def pytorch(a, folder, memory, end):
    """Rows of the library's decoding with its own full cache: at the batches asked for, or the largest that fits."""
    model, best = library_model(folder, memory), None
    chosen = [n for n in a.batch if n]
    for batch in chosen or sorted({n for k in range(8) for n in (1 << k, 3 << k >> 1)} - {0}):
        if time.monotonic() > end:
            break
        row = library_row(model, batch, a.context, a.steps)
        if chosen:
            yield row
        if "does_not_fit" in row:
            break
        best = row
    if not chosen:
        yield best or {"failed": "not even one sequence"}


def error_percent(predicted, measured):
    """How far the prediction is above what was measured, in percent of that; None where one of them is lacking."""
    return 100 * (predicted / measured - 1) if predicted and measured else None


def predicted(a, folder, row, budget, bits, bandwidth, memory):
    """What capacity's roofline says of the same batch, with the bandwidth that was measured, and how far it is off."""
    kv = "f16" if bits == 16 else f"int{bits}"
    said = subprocess.run([a.shears, "capacity", "--model", folder, "--gpu", a.gpu, "--length", str(a.context),
                           "--batch", str(row["batch"]), "--kv", kv, "--budget", str(budget), "--json", "-q"] +
                          (["--memory", str(memory)] if memory else []) +
                          (["--bandwidth", str(int(bandwidth))] if bandwidth else []), capture_output=True, text=True)
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


def ours(a, shape, folder, memory, batch, policy, budget, bits, bandwidth):
    ran = subprocess.run([a.driver, folder, a.backend, str(int(memory)), policy, str(budget), str(bits),
                          str(a.context), str(a.steps), str(batch)], capture_output=True, text=True)
    row = {"shape": shape, "memory_bytes": int(memory), "policy": policy, "kv_bits": bits}
    if ran.returncode:
        why = ran.stderr.strip() or f"status {ran.returncode}"
        return row | {"batch": batch, "does_not_fit" if batch and NO_ROOM.search(why) else "failed": why}
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
        for found in pytorch(a, folder, memory, end):
            yield row | found
    except Exception as e:                              # the other rows stand
        yield row | {"failed": f"{type(e).__name__}: {e}"}
    finally:
        if HAS_GPU:
            torch.cuda.empty_cache()
            torch.cuda.set_per_process_memory_fraction(1.0)


def caches(a):
    """Policy, budget and bits by name. A cache of codes that never evicts would be on the host: whole4 drops the first
    token at the last step."""
    fifth = a.context // 5
    known = {"full16": ("full", a.context, 16), "whole4": ("window", a.context - 1, 4),
             "fifth16": (a.policy, fifth, 16), "fifth4": (a.policy, fifth, 4)}
    return [known[name] for name in a.cache]


def rows(a, bandwidth, end):
    for shape in a.shape:
        folder = f"{a.work}/{shape}"
        random_model.make(folder, shape)
        for memory in a.memory:
            if HAS_GPU and memory:
                memory = min(memory, torch.cuda.mem_get_info()[0] * 0.96)
            for batch in () if a.only == "pytorch" else a.batch:
                for policy, budget, bits in caches(a):
                    if time.monotonic() > end:
                        yield {"shape": shape, "memory_bytes": int(memory), "policy": policy, "kv_bits": bits,
                               "left_out": f"{a.minutes} minutes were over"}
                    else:
                        yield ours(a, shape, folder, memory, batch, policy, budget, bits, bandwidth)
            if not a.without_pytorch:
                yield from theirs(a, shape, folder, memory, end)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--driver", default="./bench/engine_gpu")
    p.add_argument("--shears", default="./shears")
    p.add_argument("--work", required=True)
    p.add_argument("--backend", default="cuda")
    p.add_argument("--shape", nargs="+", default=["opt-6.7b", "llama-7b"], choices=random_model.SHAPES)
    p.add_argument("--memory", type=float, nargs="+", default=[40e9, 80e9], help="bytes; the device's own where larger, or for 0")
    p.add_argument("--gpu", default="H200-SXM", help="capacity's name of it; its memory is --memory, its bandwidth that of a copy, if torch is here")
    p.add_argument("--context", type=int, default=2048)
    p.add_argument("--steps", type=int, default=128)
    p.add_argument("--batch", type=int, nargs="+", default=[0], help="0: the largest that fits")
    p.add_argument("--cache", nargs="+", default=["full16", "fifth16", "fifth4"],
                   choices=("full16", "whole4", "fifth16", "fifth4"), help="what is kept of a text, and its bits")
    p.add_argument("--policy", default="scissorhands:counter=epochs", help="of the small caches")
    p.add_argument("--minutes", type=float, default=0, help="begin nothing after so many; 0: no limit")
    p.add_argument("--without-pytorch", action="store_true")
    p.add_argument("--only", choices=("pytorch",), help="nothing of ours")
    p.add_argument("--pytorch-on-cpu", action="store_true", help="to try its part of this program without a GPU")
    p.add_argument("--lines", action="store_true", help="each row a line of JSON on stdout, as soon as it is there")
    a = p.parse_args()
    end = time.monotonic() + 60 * a.minutes if a.minutes else float("inf")
    answer = {"date": time.strftime("%Y-%m-%d"), "context": a.context, "steps": a.steps, "rows": []}
    bandwidth = None
    has_library = AutoModelForCausalLM and (HAS_GPU or (torch and a.pytorch_on_cpu))
    if not a.without_pytorch and not has_library:
        answer["pytorch"] = "left out: " + ("no torch" if torch is None else "no GPU that torch sees" if not HAS_GPU
                                            else "no transformers")
        print(f"PyTorch is {answer['pytorch']}", file=sys.stderr, flush=True)
        a.without_pytorch = True
        if a.only:
            sys.exit(3)
    if HAS_GPU:
        answer["device"] = torch.cuda.get_device_name(0)
        bandwidth = answer["copy_bytes_per_s"] = copy_bandwidth()
        torch.cuda.empty_cache()
    if a.lines:
        print(json.dumps({k: v for k, v in answer.items() if k != "rows"}), flush=True)
    for row in rows(a, bandwidth, end):
        answer["rows"].append(row)
        print(json.dumps(row), file=sys.stdout if a.lines else sys.stderr, flush=True)
    if not a.lines:
        print(json.dumps(answer, indent=1))
    sys.exit(any("failed" in row for row in answer["rows"]))


main()
