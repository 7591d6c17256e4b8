# SPDX-License-Identifier: Apache-2.0
"""Speed of a live session on the CPU: shears compared with PyTorch and llama.cpp, in one run on one machine.

    make bench-decode && python3 bench/decode_speed.py --program bench/decode_speed --work /tmp/bench

All get the same checkpoint, LLaMA-shaped with random weights (12 layers of width 768, 12 heads, SwiGLU
2048, vocabulary 32,000; bf16), the same random prompt and all cores, and go on greedily:

  PyTorch    transformers' generate with its cache; a step is the mean of a run
  llama.cpp  its Python package's bindings; the checkpoint as GGUF in f16, bf16, q8_0 (llama_gguf.py)
  shears     bench/decode_speed.c: f32, bf16, 8 and 4 bits

Rounds go through all of them in turn; the best of each counts. A step is the logits of one token and the
choice of the next. --part formats instead compares shears and llama.cpp on the same GGUF files, format by format, with
the kernels that --kernels names (values of SH_KERNELS; llama.cpp has those that it was built with) and activations of
the types that --dtypes names, and batches of 16 with one sequence; --gguf names files of other models for it
(gpt_oss_gguf.py). Then, shears alone: a batch of 16, and
a text of 2048 tokens from the first on with everything kept and with a fifth of it, whose steps are given by part of
the text (mean) and as percentiles.

The limit of decoding is reading every weight once: bytes of the weights that a step reads (all but the
embedding) over what the machine's memory gives to all cores, measured in the same run between rounds, from one
run of addresses a core and from four with prefetching; the limit is the larger one.
Needs torch, transformers, safetensors, gguf, llama-cpp-python. Prints one JSON object; nothing here is
run by make check.
"""
import argparse
import json
import os
import subprocess
import sys
import time
from importlib.metadata import version

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import llama_coded  # noqa: E402
import llama_gguf  # noqa: E402

LAYERS, WIDTH, HEADS, FFN, VOCAB = 12, 768, 12, 2048, 32000
LAYER_WEIGHTS, HEAD_WEIGHTS = LAYERS * (4 * WIDTH * WIDTH + 3 * WIDTH * FFN), VOCAB * WIDTH
LONG = 2048
OTHERS = (("PyTorch", "f32"), ("PyTorch", "bf16"), ("llama.cpp", "f16"), ("llama.cpp", "bf16"), ("llama.cpp", "q8_0"))
POLICIES = ("full", "scissorhands", "h2o")


def make_checkpoint(folder):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(num_hidden_layers=LAYERS, hidden_size=WIDTH, intermediate_size=FFN, vocab_size=VOCAB,
                         num_attention_heads=HEADS, max_position_embeddings=4096, tie_word_embeddings=False,
                         bos_token_id=None, eos_token_id=None)
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)


class PyTorch:
    def __init__(self, folder, dtype):
        import torch
        from transformers import LlamaForCausalLM

        self.torch = torch
        self.model = LlamaForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()

    def run(self, long_prompt, prompt, n):
        torch = self.torch
        with torch.no_grad():
            def generate(ids, count):
                began = time.perf_counter()
                out = self.model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)),
                                          max_new_tokens=count, do_sample=False, pad_token_id=0)
                if out.shape[1] != len(ids) + count:
                    raise SystemExit("PyTorch: a text ended early")
                return time.perf_counter() - began

            generate(prompt, 2)
            prefill = generate(long_prompt, 1)
            first = generate(prompt, 1)
            whole = generate(prompt, n + 1)
        return prefill, n / (whole - first), None


class LlamaCpp:
    def __init__(self, path, threads, positions):
        import llama_cpp

        self.l = llama_cpp
        llama_cpp.llama_backend_init()
        m = llama_cpp.llama_model_default_params()
        m.use_extra_bufts = "q8_0" not in path          # its own AMX product of q8_0 crashes (0.3.36)
        self.model = llama_cpp.llama_model_load_from_file(path.encode(), m)
        p = llama_cpp.llama_context_default_params()
        p.n_ctx, p.n_batch, p.n_threads, p.n_threads_batch = positions, 1024, threads, threads
        self.context = llama_cpp.llama_init_from_model(self.model, p)

    def step(self, ids):
        l = self.l
        tokens = (l.llama_token * len(ids))(*ids)
        if l.llama_decode(self.context, l.llama_batch_get_one(tokens, len(ids))):
            raise SystemExit("llama.cpp: a step failed")
        return int(np.ctypeslib.as_array(l.llama_get_logits_ith(self.context, -1), (VOCAB,)).argmax())

    def prompt(self, ids):
        self.l.llama_memory_clear(self.l.llama_get_memory(self.context), True)
        began = time.perf_counter()
        token = self.step(ids)
        return time.perf_counter() - began, token

    def run(self, long_prompt, prompt, n):
        self.prompt(prompt)
        prefill, _ = self.prompt(long_prompt)
        _, token = self.prompt(prompt)
        steps = []
        for _ in range(n):
            began = time.perf_counter()
            token = self.step([token])
            steps.append(time.perf_counter() - began)
        return prefill, n / sum(steps), steps


class Apart:
    """An engine in a process of its own: their thread pools do not bear each other."""

    def __init__(self, a, name, kind):
        self.command = [sys.executable, __file__, "--program", a.program, "--work", a.work, "--threads", str(a.threads),
                        "--long-prompt", str(a.long_prompt), "--prompt", str(a.prompt), "--tokens", str(a.tokens),
                        "--engine", name, kind, *(["--gguf", *a.gguf] if a.gguf else [])]

    def run(self, *_):
        out = subprocess.run(self.command, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout
        return json.loads(out.splitlines()[-1])


class Shears:
    def __init__(self, a, folder, dtype, weight_bits):
        self.a, self.folder, self.what = a, folder, (dtype, weight_bits)

    def ask(self, batch, prompt, n, policy="full", budget="1.0", repeat=2):
        dtype, bits = self.what
        kv = 32 if dtype == "f32" else 16
        return driver(self.a, self.folder, dtype, bits, kv, batch, prompt, n, policy, budget, repeat)

    def run(self, long_prompt, prompt, n):
        prefill = self.ask(1, len(long_prompt), 1)
        r = self.ask(1, len(prompt), n)
        self.own_bytes = r["own_bytes"]
        steps = min(r["step_s"], key=sum)
        return min(prefill["prompt_s"]), n / sum(steps), steps


def driver(a, *args):
    env = dict(os.environ, OMP_NUM_THREADS=str(a.threads))
    return json.loads(subprocess.run([a.program, *map(str, args)], check=True, env=env, stdout=subprocess.PIPE).stdout)


def percentiles(steps):
    p = np.percentile(steps, (50, 99)) * 1e3
    return {"p50_ms": p[0], "p99_ms": p[1], "p99_over_p50": p[1] / p[0]}


def read_bytes(kind):
    per = {"f32": (4, 4), "f16": (2, 2), "bf16": (2, 2), "q8_0": (34 / 32, 34 / 32), "8 bits": (68 / 64, 68 / 64),
           "4 bits": (36 / 64, 68 / 64)}[kind]
    return LAYER_WEIGHTS * per[0] + HEAD_WEIGHTS * per[1]


def long_texts(a, folder):
    runs = {}
    for name in a.policies:
        r = Shears(a, folder, "bf16", 16).ask(1, 1, LONG - 1, name, "1.0" if name == "full" else "0.2", 1)
        parts = [np.array_split(np.array(s), 8) for s in r["step_s"]]
        late = min((s[LONG // 4:] for s in r["step_s"]), key=sum)       # the cache of a budget is full by then
        runs[name] = {"tokens_per_s": max((LONG - 1) / sum(s) for s in r["step_s"]), "kv_bytes": r["kv_bytes"],
                      "mean_ms_by_eighth": [1e3 * min(p[i].mean() for p in parts) for i in range(8)],
                      "after_the_first_quarter": percentiles(late)}
    for name in a.policies[1:]:
        full, own = (np.array(runs[k]["mean_ms_by_eighth"]) for k in ("full", name))
        runs[name]["over_full_by_eighth"] = (own / full).tolist()
    return runs


def prompts(a):
    rng = np.random.default_rng(1)
    return [rng.integers(0, VOCAB, n).tolist() for n in (a.long_prompt, a.prompt)]


def run_engine(a, folder, ggufs, name, kind):
    if name == "PyTorch":
        import torch

        torch.set_num_threads(a.threads)
        engine = PyTorch(folder, {"f32": "float32", "bf16": "bfloat16"}[kind])
    else:
        engine = LlamaCpp(ggufs[kind], a.threads, a.long_prompt + a.tokens)
    print(json.dumps(engine.run(*prompts(a), a.tokens)), flush=True)


def side_by_side(a, folder, ggufs):
    long_prompt, prompt = prompts(a)
    engines = {(name, k): Apart(a, name, k) for name, k in OTHERS if name in a.against}
    engines |= {("shears", k): Shears(a, folder, *v) for k, v in
                {"f32": ("f32", 16), "bf16": ("bf16", 16), "8 bits": ("bf16", 8), "4 bits": ("bf16", 4)}.items()}
    best, bandwidth = {}, []
    for _ in range(a.rounds):
        for key, engine in engines.items():
            prefill, rate, steps = engine.run(long_prompt, prompt, a.tokens)
            old = best.get(key, (1e9, 0, None))
            best[key] = (min(prefill, old[0]), max(rate, old[1]), steps if rate > old[1] else old[2])
            if key[0] == "shears":
                bandwidth.append(driver(a, "read", a.threads)["read_bytes_per_s"])
    one_place, speed = (max(b) for b in zip(*bandwidth))
    runs = []
    for (name, kind), (prefill, rate, steps) in best.items():
        limit, plain = speed / read_bytes(kind), one_place / read_bytes(kind)
        run = {"engine": name, "weights": kind, "decode_tokens_per_s": rate, "limit_tokens_per_s": limit,
               "share_of_limit": rate / limit, "share_of_limit_from_one_place": rate / plain,
               "prefill_tokens_per_s": a.long_prompt / prefill}
        run |= percentiles(steps) if steps else {}
        run |= {"own_resident_bytes": engines[name, kind].own_bytes} if name == "shears" else {}
        runs.append(run)
    rate = {k: v[1] for k, v in best.items()}
    batch = Shears(a, folder, "bf16", 16).ask(16, a.prompt, a.tokens)
    together = 16 * a.tokens / min(map(sum, batch["step_s"]))
    ratios = {"8_bits_over_bf16": rate["shears", "8 bits"] / rate["shears", "bf16"],
              "4_bits_over_bf16": rate["shears", "4 bits"] / rate["shears", "bf16"],
              "batch_16_over_batch_1": together / rate["shears", "bf16"]}
    for name in a.against:
        ratios |= {f"decode_over_{name}_bf16": rate["shears", "bf16"] / rate[name, "bf16"],
                   f"prefill_over_{name}_bf16": best[name, "bf16"][0] / best["shears", "bf16"][0]}
    return {"torch": version("torch"), "llama_cpp_python": version("llama-cpp-python"),
            "prompt": a.prompt, "tokens": a.tokens, "long_prompt": a.long_prompt, "read_bytes_per_s": bandwidth,
            "runs": runs, "ratios": ratios, "batch_16_tokens_per_s": together}


class Packed:
    """shears on a GGUF file, with the kernels that SH_KERNELS names and activations of a type and of so many bits."""

    def __init__(self, a, path, kernels, dtype, bits):
        self.a, self.path, self.kernels, self.dtype, self.bits = a, path, kernels, dtype, bits

    def ask(self, batch, prompt, n):
        env = dict(os.environ, OMP_NUM_THREADS=str(self.a.threads), **({"SH_KERNELS": self.kernels} if self.kernels else {}))
        args = (self.path, self.dtype, 16, 16, batch, prompt, n, "full", "1.0", 2, self.bits)
        return json.loads(subprocess.run([self.a.program, *map(str, args)], check=True, env=env,
                                         stdout=subprocess.PIPE).stdout)

    def run(self, *_):
        a = self.a
        one, batch = self.ask(1, a.prompt, a.tokens), self.ask(16, a.prompt, a.tokens)
        self.batch = 16 * a.tokens / min(map(sum, batch["step_s"]))
        self.own_bytes, self.mapped_bytes = one["own_bytes"], one["mapped_bytes"]
        steps = min(one["step_s"], key=sum)
        return min(self.ask(1, a.long_prompt, 1)["prompt_s"]), a.tokens / sum(steps), steps


def bytes_of_step(path):
    """All matrices but the token embedding, which a step reads only a row of, and experts that are not used."""
    import gguf
    from safetensors import safe_open

    if os.path.isdir(path):
        with safe_open(os.path.join(path, "model.safetensors"), "pt") as f:
            return sum(f.get_tensor(k).nbytes for k in f.keys() if "embed_tokens" not in k)
    r = gguf.GGUFReader(path)
    count = {k.split(".")[-1]: f.contents() for k, f in r.fields.items()}
    share = count["expert_used_count"] / count["expert_count"] if count.get("expert_count") else 1
    return sum(t.n_bytes * (share if "_exps." in t.name else 1) for t in r.tensors if t.name != "token_embd.weight")


def formats(a, ggufs):
    """The same GGUF files in both, one format after another, in turns."""
    rows = []
    for kind, path in ggufs.items():
        engines = {} if os.path.isdir(path) else {"llama.cpp": Apart(a, "llama.cpp", kind)}
        engines |= {", ".join(filter(None, ("shears", k, d if d != "f32" else "", b if b != "16" else ""))):
                    Packed(a, path, k, d, b) for k in a.kernels for d in a.dtypes for b in a.activation_bits}
        best, batch, speed = {}, {}, 0
        for _ in range(a.rounds):
            for name, engine in engines.items():
                prefill, rate, _ = engine.run()
                old = best.get(name, (1e9, 0))
                best[name] = (min(prefill, old[0]), max(rate, old[1]))
                if name != "llama.cpp":
                    batch[name] = max(engine.batch, batch.get(name, 0))
            speed = max(speed, *driver(a, "read", a.threads)["read_bytes_per_s"])
        read = bytes_of_step(path)
        for name, (prefill, rate) in best.items():
            row = {"format": kind, "engine": name, "decode_tokens_per_s": rate, "share_of_limit": rate * read / speed,
                   "prefill_tokens_per_s": a.long_prompt / prefill}
            if name in batch:
                row |= {"batch_16_over_batch_1": batch[name] / rate, "own_bytes": engines[name].own_bytes,
                        "mapped_bytes": engines[name].mapped_bytes}
            if name in batch and "llama.cpp" in best:
                row |= {"decode_over_llama.cpp": rate / best["llama.cpp"][1],
                        "prefill_over_llama.cpp": best["llama.cpp"][0] / prefill}
            rows.append(row)
        print(f"{kind}: {rows[-1]}", file=sys.stderr, flush=True)
    return {"llama_cpp_python": version("llama-cpp-python"), "prompt": a.prompt, "tokens": a.tokens,
            "long_prompt": a.long_prompt, "rounds": a.rounds, "formats": rows}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--program", required=True)
    p.add_argument("--work", required=True)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--long-prompt", type=int, default=512, help="tokens that prefill is timed with")
    p.add_argument("--prompt", type=int, default=32)
    p.add_argument("--tokens", type=int, default=64)
    p.add_argument("--part", choices=("peers", "long", "formats"), help="of the run; the first two if not given")
    p.add_argument("--formats", nargs="+", choices=[*llama_gguf.FORMATS, *llama_coded.FORMATS],
                   help="of the part formats; hub folders (llama_coded.py) are read by shears alone",
                   default=["f16", "bf16", "q8_0", "q4_0", "q4_k_m", "q6_k"])
    p.add_argument("--gguf", nargs="+", default=[], metavar="NAME=FILE", help="files for the part formats, not --formats")
    p.add_argument("--kernels", nargs="+", default=[""], help="values of SH_KERNELS for the part formats")
    p.add_argument("--dtypes", nargs="+", default=["f32"], choices=("f32", "bf16"),
                   help="of activations, for shears in the part formats; llama.cpp chooses its own")
    p.add_argument("--activation-bits", nargs="+", default=["16"], choices=("32", "16", "8"),
                   help="of activations that meet packed weights, for the part formats")
    p.add_argument("--policies", nargs="+", default=POLICIES, help="of the long text; the first keeps everything")
    p.add_argument("--engine", nargs=2, metavar=("NAME", "WEIGHTS"), help="one of the others once; what a run starts")
    p.add_argument("--against", nargs="+", choices=("PyTorch", "llama.cpp"), default=["PyTorch", "llama.cpp"])
    p.add_argument("--only-prepare", action="store_true", help="write the checkpoints and stop")
    a = p.parse_args()
    folder = os.path.join(a.work, "model")
    named = dict(one.split("=", 1) for one in a.gguf)
    kinds = [] if named else a.formats if a.part == "formats" else ["f16", "bf16", "q8_0"]
    end = {k: "" if k in llama_coded.FORMATS else ".gguf" for k in kinds}
    ggufs = {k: os.path.join(a.work, f"model-{k}{end.get(k, '.gguf')}") for k in kinds + ([a.engine[1]] if a.engine and
             a.engine[0] == "llama.cpp" and a.engine[1] not in kinds and not named else [])} | named
    os.makedirs(a.work, exist_ok=True)
    if not named and not os.path.exists(os.path.join(folder, "model.safetensors")):
        make_checkpoint(folder)
    for kind, path in ggufs.items():
        if not os.path.exists(path):
            (llama_coded if kind in llama_coded.FORMATS else llama_gguf).write(folder, kind, path)
    if a.only_prepare:
        return
    if a.engine:
        run_engine(a, folder, ggufs, *a.engine)
        return
    cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "CPU")
    result = {"date": time.strftime("%Y-%m-%d"), "cpu": cpu, "threads": a.threads, "load_before": os.getloadavg()}
    if a.part == "formats":
        print(json.dumps(result | formats(a, ggufs) | {"load_after": os.getloadavg()}, indent=1), flush=True)
        return
    if a.part != "long":
        result |= side_by_side(a, folder, ggufs)
    if a.part != "peers":
        result["text_of_2048"] = long_texts(a, folder)
    print(json.dumps(result | {"load_after": os.getloadavg()}, indent=1), flush=True)


if __name__ == "__main__":
    main()
