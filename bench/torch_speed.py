# SPDX-License-Identifier: Apache-2.0
"""What PyTorch gets out of the same GPU for the operations of kernels_speed.c: copies, products and attention at the
shapes of a layer of OPT-6.7B. A line of JSON each, the fastest of five runs, timed by events on the device.

    python3 bench/torch_speed.py [--on cpu]             (cpu: to try the program, with small shapes)
"""
import argparse
import json
import sys
import time

try:
    import torch
except ImportError as e:
    print(f"PyTorch is left out: {e}", file=sys.stderr)
    sys.exit(3)


def fastest(run, on, repeat=5):
    best = float("inf")
    for i in range(repeat + 2):                         # two warm up
        if on == "cpu":
            began = time.perf_counter()
            run()
            took = time.perf_counter() - began
        else:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            run()
            end.record()
            torch.cuda.synchronize()
            took = begin.elapsed_time(end) / 1e3
        if i >= 2:
            best = min(best, took)
    return best


def say(operation, seconds, **more):
    print(json.dumps({"operation": operation} | more | {"seconds": seconds}), flush=True)


def copies(on, nbytes):
    there = torch.empty(nbytes, dtype=torch.uint8, device=on).random_()
    other, pageable = torch.empty_like(there), torch.empty(nbytes, dtype=torch.uint8).random_()
    s = fastest(lambda: other.copy_(there), on)
    say("copy on the device", s, bytes=nbytes, moved_bytes_per_s=2 * nbytes / s)
    hosts = {"pageable": pageable} | ({} if on == "cpu" else {"pinned": pageable.pin_memory()})
    for kind, host in hosts.items():
        for name, run in (("put", lambda: there.copy_(host, non_blocking=True)),
                          ("get", lambda: host.copy_(there, non_blocking=True))):
            s = fastest(run, on)
            say(f"{name}, {kind}", s, bytes=nbytes, bytes_per_s=nbytes / s)


def products(on, rows, width):
    shapes = [(rows, width, width), (rows, width, 4 * width), (rows, 4 * width, width)]
    shapes += [(few, width, 4 * width) for few in (1, 16, 64, 256) if few < rows]
    for kind in (torch.float16, torch.float32):
        for n, k, m in shapes:
            x, w = torch.randn(n, k, device=on).to(kind), torch.randn(m, k, device=on).to(kind)
            s = fastest(lambda: torch.nn.functional.linear(x, w), on)
            say("linear", s, type=str(kind)[6:], rows=n, **{"in": k, "out": m}, flop_per_s=2 * n * k * m / s,
                weight_bytes_per_s=w.nbytes / s)


def attention(on, rows, heads, width=128):
    for kind in (torch.float32, torch.float16):
        q, k, v = (torch.randn(1, heads, rows, width, device=on).to(kind) for _ in range(3))
        mask = torch.ones(rows, rows, dtype=torch.bool, device=on).tril()

        def eager():
            scores = (q @ k.transpose(-1, -2) * width ** -0.5).masked_fill(~mask, float("-inf"))
            return torch.softmax(scores, -1, dtype=torch.float32).to(kind) @ v

        fused = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        for name, run in (("attention, eager", eager), ("attention, sdpa", fused)):
            say(name, fastest(run, on), type=str(kind)[6:], rows=rows, heads=heads, d_head=width)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--on", choices=("cuda", "cpu"), default="cuda")
    a = p.parse_args()
    if a.on == "cuda" and not torch.cuda.is_available():
        print("PyTorch is left out: it sees no GPU", file=sys.stderr)
        sys.exit(3)
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    small = a.on == "cpu"
    name = "CPU" if small else torch.cuda.get_device_name(0)
    print(json.dumps({"torch": torch.__version__, "device": name, "tf32": False}), flush=True)
    with torch.no_grad():
        copies(a.on, 1 << (20 if small else 30))
        products(a.on, *((64, 128) if small else (2048, 4096)))
        attention(a.on, *((64, 2) if small else (2048, 32)))


main()
