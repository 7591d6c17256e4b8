#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/tokenizers/real.json: what the tokenizers and sentencepiece libraries give for whole texts with the
vocabularies of GPT-2/OPT, Mistral and LLaMA-2. Kept are the number of ids, the first ones, and a checksum of all of them
and of the decoded text (FNV-1a, 64 bits; ids as four bytes, little end first). Never run by make.

usage: tokenizer_real.py DATA > real.json      (made with tokenizers 0.23.3, sentencepiece 0.2.3)
"""
import json
import os
import struct
import sys

import sentencepiece
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

TEXTS = ["tinyshakespeare/input.txt", "wikitext2/wiki.valid.txt", "c4-sample/c4.jsonl", "tinystories-sample/tinystories.txt"]


def fnv(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{h:016x}"


def gpt2(folder):
    t = Tokenizer(models.BPE.from_file(os.path.join(folder, "gpt2-vocab.json"), os.path.join(folder, "gpt2-merges.txt")))
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    return hub(t)


def hub(t):
    return lambda text: t.encode(text, add_special_tokens=False).ids, lambda ids: t.decode(ids, skip_special_tokens=False)


def piece(folder):
    t = sentencepiece.SentencePieceProcessor(model_file=os.path.join(folder, "tokenizer.model"))
    return t.encode, t.decode


def main():
    data = sys.argv[1]
    folders = os.path.join(data, "tokenizers")
    tokenizers = {"opt-gpt2": gpt2(os.path.join(folders, "opt-gpt2")),
                  "mistral": hub(Tokenizer.from_file(os.path.join(folders, "mistral/tokenizer.json"))),
                  "llama2": piece(os.path.join(folders, "llama2"))}
    cases = []
    for name, (encode, decode) in tokenizers.items():
        for path in TEXTS:
            with open(os.path.join(data, "text", path), encoding="utf-8", newline="") as f:
                text = f.read()
            ids = encode(text)
            cases.append({"tokenizer": name, "text": path, "n": len(ids), "first": ids[:24], "ids": fnv(struct.pack(f"<{len(ids)}i", *ids)),
                          "decoded": fnv(decode(ids).encode())})
    print(json.dumps({"cases": cases}, separators=(",", ":")).replace('{"tokenizer"', '\n{"tokenizer"'))


main()
