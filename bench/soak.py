#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Long runs whose memory must stay flat: the engine writes a million tokens through a small cache, whose positions
stand in the cache so that the text may outgrow the model's; the simulator serves ten million requests. One JSON line
each: seconds, resident MiB once the run has settled (a tenth of its time), in its middle and at its end, and the peak.
Exit status 1: memory grew (but for the written tokens, 4 bytes each), or the result is not sane.

    python3 bench/soak.py --shears ./shears --work /tmp/work [--only h2o scissorhands simulate simulate-file]
"""
import argparse
import json
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import time

GROWTH = 2.0            # MiB from a tenth of the time to the end; what has been written so far is not counted


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


def engine(a, policy):
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
    p.add_argument("--model", default=str(pathlib.Path(__file__).parent.parent / "tests/golden/checkpoints/opt"))
    p.add_argument("--tokens", type=int, default=10**6)
    p.add_argument("--requests", type=int, default=10**7)
    p.add_argument("--only", nargs="+", default=["h2o", "scissorhands", "simulate", "simulate-file"])
    a = p.parse_args()
    os.makedirs(a.work, exist_ok=True)
    good = True
    for what in a.only:
        good &= simulator(a, what == "simulate-file") if what.startswith("simulate") else engine(a, what)
    sys.exit(not good)


if __name__ == "__main__":
    main()
