#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed on a busy machine: the same jobs on an idle machine and next to processes that never stop computing, with all
threads and with one.

    make bench-decode
    bench/busy.py --build DIR --work /tmp/bench [--other NAME=DIR ...] [--llama] [--rounds 5] > FILE.tsv

A row a program and job, speeds in jobs (decode and prefill: tokens) a second, the median of the rounds:

    idle, idle_1     all threads, one thread; nothing else runs
    busy, busy_1     the same next to --busy processes (default: as many as processors)
    kept             busy / idle. Fair shares of the processors would give 0.5
    over_one         busy / busy_1: below 1, one thread would have been better

decode and prefill are those of a LLaMA-shaped model of 134 M parameters with random weights in 8 bits, and of the
embedded model ("tiny"); trace, replay and eval are whole commands. --llama adds llama.cpp (q8_0, the same weights; its
Python package and gguf are needed). Needs numpy. Nothing else should run on the machine."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import decode_speed
import random_model

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TINY = os.path.join(TOP, "demo", "model")
TEXT = os.path.join(TOP, "demo", "text", "natural.txt")
PROMPT, TOKENS, TIMES = 256, 48, 1
TINY_PROMPT, TINY_TOKENS, TINY_TIMES = 256, 200, 30       # long enough to meet the other processes


def command(build, args, gone=None):
    if gone and os.path.exists(gone):
        os.unlink(gone)
    began = time.perf_counter()
    subprocess.run([os.path.join(build, "shears"), *args, "-q"], check=True, stdout=subprocess.DEVNULL)
    return 1 / (time.perf_counter() - began)


def session(build, threads, model, bits, prompt, n, times):
    """Tokens a second: of a prompt, and of what is written after it."""
    env = dict(os.environ, OMP_NUM_THREADS=str(threads))
    out = subprocess.run([os.path.join(build, "bench", "decode_speed"), model, "f32", bits, "16", "1", str(prompt), str(n),
                          "h2o", "128", str(times)], check=True, env=env, capture_output=True, text=True).stdout
    said = json.loads(out)
    return prompt * times / sum(said["prompt_s"]), n * times / sum(map(sum, said["step_s"]))


class Shears:
    """Speeds of every job of one build."""

    def __init__(self, name, build, a):
        self.name, self.build, self.work = name, build, a.work
        self.model = os.path.join(a.work, "llama-134m")
        self.store = os.path.join(a.work, f"busy-{name}.db")
        if not os.path.exists(self.model):
            random_model.make(self.model, "llama-134m")
        command(build, ["trace", "--model", TINY, "--text", TEXT, "--length", "512", "--count", "8", "--db", self.store],
                self.store)

    def run(self, threads):
        speed, t = {}, ["--threads", str(threads)]
        speed["prefill"], speed["decode"] = session(self.build, threads, self.model, "8", PROMPT, TOKENS,
                                                     TIMES)
        speed["prefill tiny"], speed["decode tiny"] = session(self.build, threads, TINY, "16", TINY_PROMPT,
                                                               TINY_TOKENS, TINY_TIMES)
        text = os.path.join(self.work, "busy.db")
        speed["trace"] = command(self.build, ["trace", "--model", TINY, "--text", TEXT, "--length", "512", "--count", "16",
                                              "--db", text, *t], text)
        speed["replay"] = command(self.build, ["replay", "--db", self.store, "--policy", "h2o", "scissorhands", "tova",
                                               "snapkv", "--budget", "0.1,0.2,0.5", "--force", *t])
        speed["eval"] = command(self.build, ["eval", "--model", TINY, "--text", TEXT, "--length", "512", "--count", "4",
                                             "--policy", "h2o", "scissorhands", "--budget", "0.2", *t])
        return speed


class Llama:
    """llama.cpp in a process of its own for each run."""
    name = "llama.cpp"

    def __init__(self, a):
        self.a = a
        decode_speed_folder = os.path.join(a.work, "busy-llama")
        os.makedirs(decode_speed_folder, exist_ok=True)
        self.path = os.path.join(decode_speed_folder, "model-q8_0.gguf")
        if not os.path.exists(self.path):
            make_gguf(self.path)

    def run(self, threads):
        out = subprocess.run([sys.executable, __file__, "--build", "-", "--work", self.a.work, "--engine", self.path,
                              str(threads)], check=True, capture_output=True, text=True).stdout
        return json.loads(out.splitlines()[-1])


def make_gguf(path):
    """The same shape, with random weights."""
    import gguf
    import numpy as np

    rng, d, ffn, vocab = np.random.default_rng(0), decode_speed.WIDTH, decode_speed.FFN, decode_speed.VOCAB
    w = gguf.GGUFWriter(path, "llama")
    w.add_block_count(decode_speed.LAYERS)
    w.add_context_length(4096)
    w.add_embedding_length(d)
    w.add_feed_forward_length(ffn)
    w.add_head_count(decode_speed.HEADS)
    w.add_head_count_kv(decode_speed.HEADS)
    w.add_rope_dimension_count(d // decode_speed.HEADS)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_vocab_size(vocab)
    w.add_tokenizer_model("no_vocab")
    shapes = {"token_embd": (vocab, d), "output": (vocab, d), "output_norm": (d,)}
    for i in range(decode_speed.LAYERS):
        shapes |= {f"blk.{i}.{name}": shape for name, shape in (
            ("attn_norm", (d,)), ("ffn_norm", (d,)), ("attn_q", (d, d)), ("attn_k", (d, d)), ("attn_v", (d, d)),
            ("attn_output", (d, d)), ("ffn_gate", (ffn, d)), ("ffn_up", (ffn, d)), ("ffn_down", (d, ffn)))}
    for name, shape in shapes.items():
        if len(shape) == 1:
            w.add_tensor(name + ".weight", np.ones(shape, np.float32))
        else:
            x = (0.02 * rng.standard_normal(shape)).astype(np.float32)
            w.add_tensor(name + ".weight", gguf.quants.quantize(x, gguf.GGMLQuantizationType.Q8_0),
                         raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def run_llama(path, threads):
    import numpy as np

    rng = np.random.default_rng(1)
    prompt = rng.integers(0, decode_speed.VOCAB, PROMPT).tolist()
    engine = decode_speed.LlamaCpp(path, threads, PROMPT + TOKENS)
    prefill, rate, _ = engine.run(prompt, prompt[:32], TOKENS)
    print(json.dumps({"prefill": PROMPT / prefill, "decode": rate}))


def measured(programs, threads, rounds, what):
    """Medians: {(program, job): speed}."""
    speeds = {}
    for i in range(rounds):
        for p in programs[:: 1 if i % 2 else -1]:
            for job, speed in p.run(threads).items():
                speeds.setdefault((p.name, job), []).append(speed)
        print(f"{what}: {i + 1} of {rounds}", file=sys.stderr)
    return {key: statistics.median(v) for key, v in speeds.items()}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", required=True)
    p.add_argument("--work", required=True)
    p.add_argument("--other", action="append", default=[], metavar="NAME=DIR", help="another build to compare with")
    p.add_argument("--llama", action="store_true")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--busy", type=int, default=os.cpu_count())
    p.add_argument("--engine", nargs=2, metavar=("GGUF", "THREADS"), help="llama.cpp once; what a run starts")
    a = p.parse_args()
    if a.engine:
        run_llama(a.engine[0], int(a.engine[1]))
        return
    os.makedirs(a.work, exist_ok=True)
    programs = [Shears("shears", a.build, a), *(Shears(*o.split("=", 1), a) for o in a.other)]
    programs += [Llama(a)] if a.llama else []
    columns = {"idle": measured(programs, a.threads, a.rounds, "idle"),
               "idle_1": measured(programs, 1, a.rounds, "idle, one thread")}
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(a.busy)]
    try:
        columns |= {"busy": measured(programs, a.threads, a.rounds, "busy"),
                    "busy_1": measured(programs, 1, a.rounds, "busy, one thread")}
    finally:
        for loop in loops:
            loop.kill()
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "CPU")
    print(f"# {time.strftime('%Y-%m-%d')}, {cpu}, {a.threads} threads, {a.busy} busy processes, median of {a.rounds}")
    print("program", "job", *columns, "kept", "over_one", sep="\t")
    for key in columns["idle"]:
        c = {name: column[key] for name, column in columns.items()}
        print(*key, *(f"{v:.4g}" for v in c.values()), f"{c['busy'] / c['idle']:.2f}", f"{c['busy'] / c['busy_1']:.2f}",
              sep="\t")


if __name__ == "__main__":
    main()
