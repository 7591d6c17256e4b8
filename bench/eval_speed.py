#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`shears eval` layer by layer and token by token (--stream), side by side in one run: a LLaMA shape of 134 M random
weights, a text of 1,024 tokens, one setting, then 20 settings together. The figure is the time per setting, with the full
cache's run that every evaluation needs; the ratio is the stream's time for one setting to it.

    bench/eval_speed.py [--shears ./shears] --work /tmp/bench [--tokens 1024] [--dtype f32] > FILE.json

The stream reads the same text once (--repeat counts for the sweep alone; the stream takes long). Needs numpy. Run it on an
idle machine.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time

import random_model

ONE = ["--policy", "h2o", "--budget", "0.2"]
MANY = ["--policy", "h2o", "tova", "scissorhands", "window", "--budget", "0.1,0.2,0.3,0.4,0.5"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--shears", default="./shears")
    p.add_argument("--work", required=True)
    p.add_argument("--tokens", type=int, default=1024)
    p.add_argument("--dtype", default="f32")
    p.add_argument("--repeat", type=int, default=3)
    a = p.parse_args()
    os.makedirs(a.work, exist_ok=True)
    model = os.path.join(a.work, "llama-134m")
    if not os.path.exists(model):
        random_model.make(model, "llama-134m")
    text = os.path.join(a.work, "eval_speed.jsonl")
    draw = random.Random(1)
    with open(text, "w") as f:
        f.write(json.dumps([draw.randrange(5, 31990) for _ in range(a.tokens)]) + "\n")

    def run(what, more):
        begin = time.perf_counter()
        said = json.loads(subprocess.run([a.shears, "eval", "--model", model, "--tokens", text, "--dtype", a.dtype, "-q",
                                          "--json", *what, *more], check=True, capture_output=True, text=True).stdout)
        seconds = time.perf_counter() - begin
        print(f"{len(said['results'])} settings, {said['stream']}: {seconds:.2f} s", file=sys.stderr)
        return said, seconds

    one = [run(ONE, [])[1] for _ in range(a.repeat)]
    said, _ = run(ONE, [])
    many = [run(MANY, [])[1] for _ in range(a.repeat)]
    stream, token_by_token = run(ONE, ["--stream"])
    drift = abs(said["results"][0]["nll"] - stream["results"][0]["nll"])
    one, many = statistics.median(one), statistics.median(many)
    print(json.dumps({
        "device": said["device"], "dtype": a.dtype, "tokens": a.tokens, "settings": 20,
        "one_setting_s": round(one, 3), "twenty_settings_s": round(many, 3), "stream_one_setting_s": round(token_by_token, 3),
        "ratio_one": round(token_by_token / one, 2), "ratio_per_setting_of_twenty": round(token_by_token / (many / 20), 2),
        "nll_difference": drift}, indent=1))


if __name__ == "__main__":
    main()
