# SPDX-License-Identifier: Apache-2.0
"""Perplexity of the two small trained models, by transformers in float32 with its own tokenizer.

    python3 tests/oracle/perplexity.py DATA tests/golden/session/perplexity.json

DATA holds models/ and text/. The file has, for each model, ids of some sequences and the mean negative
log-likelihood of their tokens (all but each sequence's first).
"""
import json
import sys

import torch
import transformers

WHAT = [("models/stories260k/hf-derived", "text/tinystories-sample/tinystories.txt", 400, 3, 20000),
        ("models/jt-shakespeare-gpt/hf-derived-opt", "text/tinyshakespeare/input.txt", 48, 20, 2000)]


def main():
    data, out = sys.argv[1:]
    answer = []
    for model, text, length, count, chars in WHAT:
        tokenizer = transformers.AutoTokenizer.from_pretrained(f"{data}/{model}")
        net = transformers.AutoModelForCausalLM.from_pretrained(f"{data}/{model}", dtype=torch.float32,
                                                                attn_implementation="eager").eval()
        ids = tokenizer(open(f"{data}/{text}").read()[:chars], add_special_tokens=False)["input_ids"]
        lines = [ids[i * length:(i + 1) * length] for i in range(count)]
        assert all(len(line) == length for line in lines)
        total, n = 0.0, 0
        with torch.no_grad():
            for line in lines:
                t = torch.tensor(line)
                log_p = net(t[None]).logits[0].double().log_softmax(-1)
                total -= log_p[:-1].gather(1, t[1:, None]).sum().item()
                n += length - 1
        answer.append({"model": model, "text": text, "ids": lines, "tokens": n, "nll": total / n})
        print(model, n, total / n)
    json.dump(answer, open(out, "w"), separators=(",", ":"))


main()
