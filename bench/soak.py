#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Long runs whose memory must stay flat: the engine writes a million tokens through a small cache, whose positions
stand in the cache so that the text may outgrow the model's; the simulator serves ten million requests. One JSON line
each: seconds, resident MiB once the run has settled (a tenth of its time), in its middle and at its end, and the peak.
Exit status 1: memory grew (but for the written tokens, 4 bytes each), or the result is not sane.

    python3 bench/soak.py --shears ./shears --work /tmp/work [--only h2o scissorhands simulate simulate-file]
    python3 bench/soak.py --shears ./shears --work /tmp/work --backend cuda --tokens 10000 --only h2o scissorhands

With --backend cuda the cache is on the device, where positions are the original ones: the model, whose positions have to
be rotary, is copied with a config that knows as many as there are tokens. The device's memory is looked at, too: a tenth
of the tokens is written before all of them are, and what the program had allocated there, as well as what the device
itself counted beyond that, may have grown by no more than the angles of the further positions.
"""
import argparse
import json
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import time

GROWTH = 2.0            # MiB from a tenth of the time to the end; what has been written so far is not counted
DEVICE_GROWTH = 4096    # bytes: what allocations are rounded up to
JSON_OF_A_TOKEN = 1024  # bytes, at most, of the answer while it is put together


def resident(pid):
    try:
        with open(f"/proc/{pid}/statm") as f:
            return int(f.read().split()[1]) * resource.getpagesize() / 2**20
    except (OSError, IndexError):
        return None


def watch(command, out):
    """Runs it; [(seconds, MiB)] twenty times a second."""
    samples, began = [], time.monotonic()
    with open(out, "wb") as to, open(f"{out}.err", "w+b") as err:
        p = subprocess.Popen(command, stdout=to, stderr=err)
        while p.poll() is None:
            mib = resident(p.pid)
            if mib:
                samples.append((time.monotonic() - began, mib))
            time.sleep(0.05)
        seconds = time.monotonic() - began
    told = pathlib.Path(f"{out}.err").read_text(errors="replace")
    if p.wait():
        sys.exit(f"{' '.join(command)}: {told[-500:]}")
    return samples, seconds, told


def report(what, samples, seconds, more, written=0):
    at = lambda share: next(m for t, m in samples if t >= share * samples[-1][0])
    start, middle, end = at(0.1), at(0.5), at(0.999)
    flat = end <= start + GROWTH + written / 2**20
    print(json.dumps({"what": what, "seconds": round(seconds, 1), **more, "mib_at_a_tenth": round(start, 2),
                      "mib_in_the_middle": round(middle, 2), "mib_at_the_end": round(end, 2),
                      "peak_mib": round(max(m for _, m in samples), 2), "flat": flat}), flush=True)
    return flat


def with_positions(a):
    """The model, in a copy that knows a position for every token."""
    model, copy = pathlib.Path(a.model), pathlib.Path(a.work) / "model"
    config = json.loads((model / "config.json").read_text())
    if "rope_theta" not in config:
        sys.exit(f"{model}: its positions are not rotary, and end at {config.get('max_position_embeddings')}")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(model, copy)
    (copy / "config.json").write_text(json.dumps(config | {"max_position_embeddings": a.tokens + 3}))
    return copy, config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])


def write_on_device(a, model, policy, n):
    (pathlib.Path(a.work) / "prompt.jsonl").write_text("[2, 5, 7]\n")
    samples, seconds, told = watch([a.shears, "generate", "--model", str(model), "--tokens",
                                    f"{a.work}/prompt.jsonl", "--policy", policy, "--budget", "16", "--temperature", "1",
                                    "--max-tokens", str(n), "--backend", a.backend, "--json"], f"{a.work}/text")
    if "on the host" in told:
        sys.exit(told)
    with open(f"{a.work}/text") as f:
        return samples, seconds, json.load(f)


def device_growth(early, late, more_tokens, width):
    """Bytes beyond the angles of further positions: of our own allocations, and of the device's count beyond these."""
    own = late["device_peak_bytes"] - early["device_peak_bytes"] - 4 * width * more_tokens
    beyond = [x["device_used_bytes"] - x["device_peak_bytes"] for x in (early, late)]
    return {"device_grew_bytes": max(0, own), "device_grew_beyond_bytes": max(0, beyond[1] - beyond[0])}


def engine_on_device(a, policy):
    model, width = with_positions(a)
    early = write_on_device(a, model, policy, a.tokens // 10)[2]
    samples, seconds, late = write_on_device(a, model, policy, a.tokens)
    grew = device_growth(early, late, a.tokens - a.tokens // 10, width)
    made, different = late["generated_tokens"], len({x["id"] for x in late["ids"]})
    flat = max(grew.values()) <= DEVICE_GROWTH
    flat &= report(f"engine, {policy} of 16, {a.backend}", samples, seconds,
                   {"tokens": made, "tokens_per_s": round(made / seconds), "different_tokens": different,
                    "peak_tokens_of_a_head": late["peak_tokens"], "device_peak_bytes": late["device_peak_bytes"],
                    "device_used_bytes": late["device_used_bytes"], **grew, "device_flat": flat}, JSON_OF_A_TOKEN * made)
    return flat and made == a.tokens and late["peak_tokens"] == 16 and different > 1


def engine(a, policy):
    if a.backend != "cpu":
        return engine_on_device(a, policy)
    work = pathlib.Path(a.work)
    (work / "prompt.jsonl").write_text("[2, 5, 7]\n")
    samples, seconds, told = watch([a.shears, "generate", "--model", a.model, "--tokens",
                              str(work / "prompt.jsonl"), "--policy", policy, "--budget", "16", "--positions", "cache",
                              "--temperature", "1", "--max-tokens", str(a.tokens), "--threads", "1"], work / "text")
    said = re.search(r"(\d+) written at .* (\d+) at most", told)
    made, most = int(said[1]), int(said[2])
    text = (work / "text").read_text(errors="replace").split()
    flat = report(f"engine, {policy} of 16", samples, seconds,
                  {"tokens": made, "tokens_per_s": round(made / seconds), "different_tokens": len(set(text)),
                   "peak_tokens_of_a_head": most}, 4 * made)
    return flat and made == a.tokens and most == 16


def simulator(a, from_file):
    work = pathlib.Path(a.work)
    load = ["--rate", "20", "--requests", str(a.requests), "--prompt", "lognormal:500:0.9", "--output", "exp:200"]
    if from_file:
        dice, now = random.Random(1), 0.0
        with open(work / "requests.csv", "w") as f:
            f.write("arrival_s,prompt_tokens,output_tokens\n")
            for _ in range(a.requests):
                now += dice.expovariate(20)
                f.write(f"{now:.4f},{max(1, int(dice.lognormvariate(5.8, 0.9)))},"
                        f"{max(1, int(dice.expovariate(1 / 200)))}\n")
        load = ["--workload", str(work / "requests.csv")]
    samples, seconds, _ = watch([a.shears, "simulate", "--model", "llama-3.1-8b", "--gpu", "H100-SXM", "--json", *load],
                             work / "simulated")
    with open(work / "simulated") as f:
        row = json.load(f)["results"][0]
    flat = report("simulator, " + ("a file" if from_file else "generated"), samples, seconds,
                  {"requests": row["requests"], "finished": row["finished"], "refused": row["refused"],
                   "requests_per_s": round(row["requests"] / seconds), "ttft_p50_s": row["ttft_s"]["p50"],
                   "batch": row["running_mean"]})
    (work / "requests.csv").unlink(missing_ok=True)
    # Little's law: those who run are those who come in a second, times the time that each runs.
    return flat and row["requests"] == row["finished"] + row["refused"] == a.requests and row["refused"] == 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--shears", required=True)
    p.add_argument("--work", required=True)
    p.add_argument("--backend", default="cpu", choices=["cpu", "cuda"], help="of the engine")
    p.add_argument("--model", help="a checkpoint (default: one of the tests')")
    p.add_argument("--tokens", type=int, default=10**6)
    p.add_argument("--requests", type=int, default=10**7)
    p.add_argument("--only", nargs="+", default=["h2o", "scissorhands", "simulate", "simulate-file"])
    a = p.parse_args()
    a.model = a.model or str(pathlib.Path(__file__).parent.parent / "tests/golden/checkpoints" /
                             ("opt" if a.backend == "cpu" else "llama_gqa"))
    os.makedirs(a.work, exist_ok=True)
    good = True
    for what in a.only:
        good &= simulator(a, what == "simulate-file") if what.startswith("simulate") else engine(a, what)
    sys.exit(not good)


if __name__ == "__main__":
    main()
