# SPDX-License-Identifier: Apache-2.0
"""Perplexity of one model in the formats of GGUF: shears, llama.cpp and PyTorch, on the same files and tokens.

    perplexity_peers.py --program ./shears --model FOLDER --text FILE --work DIR [--length 256] [--count 16]

FOLDER is a LLaMA-shaped hub folder with a tokenizer.json. llama.cpp's own quantiser makes the files (llama_gguf.py);
"holds" is what is in them, since tensors whose width does not suit a format get another one. PyTorch computes in f32
with the numbers that gguf's own code unpacks. shears reads whole texts in f32 from the codes, and token by token with
the other operand of a product rounded to 16 bits; llama.cpp rounds it to 8 bits, as shears with --activation-bits 8
(with one scale for 32 numbers; llama.cpp has one for 256 in the K formats). Texts are cut into sequences of
--length tokens, and every token but the first of each is judged. Needs gguf, llama-cpp-python, torch, transformers,
tokenizers. Prints one JSON object; nothing here depends on the machine's load.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import llama_gguf  # noqa: E402


def nll_of(logits, ids):
    x = logits[:-1].astype(np.float64)
    top = x.max(1, keepdims=True)
    return float((np.log(np.exp(x - top).sum(1)) + top[:, 0] - x[np.arange(len(x)), ids[1:]]).sum())


def of_llama(path, sequences, vocab):
    import llama_cpp as l

    m = l.llama_model_load_from_file(path.encode(), l.llama_model_default_params())
    p = l.llama_context_default_params()
    length = max(map(len, sequences))
    p.n_ctx = p.n_batch = p.n_ubatch = length
    p.n_threads = p.n_threads_batch = os.cpu_count()
    p.type_k = p.type_v = 0                             # f32, as shears
    p.flash_attn_type = 0
    context = l.llama_init_from_model(m, p)
    nll = 0
    for ids in sequences:
        l.llama_memory_clear(l.llama_get_memory(context), True)
        b = l.llama_batch_init(length, 0, 1)
        b.n_tokens = len(ids)
        for i, token in enumerate(ids):
            b.token[i], b.pos[i], b.n_seq_id[i], b.seq_id[i][0], b.logits[i] = token, i, 1, 0, 1
        if l.llama_decode(context, b):
            raise SystemExit("llama.cpp: a text failed")
        nll += nll_of(np.ctypeslib.as_array(l.llama_get_logits(context), (len(ids), vocab)).copy(), ids)
        l.llama_batch_free(b)
    l.llama_free(context)
    l.llama_model_free(m)
    return nll


def of_torch(folder, path, sequences):
    import gguf
    import torch
    from transformers import AutoModelForCausalLM

    c = llama_gguf.config_of(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    stored = {t.name: t for t in gguf.GGUFReader(path).tensors}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name == "lm_head.weight" and c.get("tie_word_embeddings"):
                continue
            t, n = stored[llama_gguf.gguf_name(name)], llama_gguf.heads_of(c, name)
            x = gguf.quants.dequantize(t.data, t.tensor_type).reshape(parameter.shape).astype(np.float32)
            parameter.copy_(torch.from_numpy(llama_gguf.turned(x, n, True) if n else np.array(x)))
        return sum(nll_of(model(torch.tensor([ids])).logits[0].numpy(), ids) for ids in sequences)


def holds(path):
    import gguf

    n = {}
    for t in gguf.GGUFReader(path).tensors:
        if len(t.shape) > 1:
            n[t.tensor_type.name] = n.get(t.tensor_type.name, 0) + int(t.n_elements)
    return dict(sorted(n.items(), key=lambda x: -x[1]))


def of_shears(program, path, tokens, kernels, *more):
    env = dict(os.environ, **({"SH_KERNELS": kernels} if kernels else {}))
    command = [program, "eval", "--model", path, "--tokens", tokens, *more, "-q", "--json"]
    out = subprocess.run(command, check=True, env=env, stdout=subprocess.PIPE).stdout
    r = json.loads(out)
    full = next(x for x in r["results"] if x["policy"] == "full") if "results" in r else r
    return full["ppl"]


def main():
    p = argparse.ArgumentParser()
    for name in ("program", "model", "text", "work"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--length", type=int, default=256)
    p.add_argument("--count", type=int, default=16)
    p.add_argument("--formats", nargs="+", choices=llama_gguf.FORMATS, default=list(llama_gguf.FORMATS))
    p.add_argument("--kernels", nargs="+", default=[""], help="values of SH_KERNELS to run shears with")
    a = p.parse_args()
    from tokenizers import Tokenizer

    os.makedirs(a.work, exist_ok=True)
    with open(a.text, encoding="utf-8") as f:
        ids = Tokenizer.from_file(os.path.join(a.model, "tokenizer.json")).encode(f.read(), add_special_tokens=False).ids
    sequences = [ids[i * a.length:(i + 1) * a.length] for i in range(a.count)]
    if len(sequences[-1]) < a.length:
        raise SystemExit(f"{a.text} has {len(ids)} tokens, fewer than --count {a.count} times --length {a.length}")
    judged = a.count * (a.length - 1)
    vocab, rows = llama_gguf.config_of(a.model)["vocab_size"], []
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", dir=a.work) as tokens:
        for s in sequences:
            tokens.write(json.dumps(s) + "\n")
        tokens.flush()
        for kind in a.formats:
            path = os.path.join(a.work, f"model-{kind}.gguf")
            if not os.path.exists(path):
                llama_gguf.write(a.model, kind, path)
            row = {"format": kind, "holds": holds(path)}
            for k in a.kernels:
                name = "shears" + (f", {k}" if k else "")
                row[name] = of_shears(a.program, path, tokens.name, k)
                row[name + ", token by token"] = of_shears(a.program, path, tokens.name, k, "--stream")
                if any(h not in ("F32", "F16", "BF16") for h in row["holds"]):
                    row[name + ", 8 bits"] = of_shears(a.program, path, tokens.name, k, "--activation-bits", "8")
            row["llama.cpp"] = float(np.exp(of_llama(path, sequences, vocab) / judged))
            row["PyTorch"] = float(np.exp(of_torch(a.model, path, sequences) / judged))
            own = row[next(k for k in row if k.startswith("shears"))]
            row["from llama.cpp, %"] = 100 * (own / row["llama.cpp"] - 1)
            row["from PyTorch, %"] = 100 * (own / row["PyTorch"] - 1)
            eight = next((row[k] for k in row if k.endswith(", 8 bits")), own)
            row["8 bits from llama.cpp, %"] = 100 * (eight / row["llama.cpp"] - 1)
            rows.append(row)
            print(kind, file=sys.stderr, flush=True)
    print(json.dumps({"text": os.path.basename(a.text), "sequences": a.count, "length": a.length,
                      "llama_cpp_python": version("llama-cpp-python"), "gguf": version("gguf"),
                      "torch": version("torch"), "perplexity": rows}, indent=1))


if __name__ == "__main__":
    main()
