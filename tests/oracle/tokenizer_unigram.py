#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/tokenizers/unigram_sp: a tokenizer.json with the pieces of sentencepiece/unigram_bytes, and what
the tokenizers library gives for the texts of gpt2_bpe/cases.json. Never run by make.

usage: tokenizer_unigram.py GOLDEN      (GOLDEN: tests/golden/tokenizers; made with tokenizers 0.23.3)
"""
import base64
import json
import os
import sys

from sentencepiece import sentencepiece_model_pb2 as proto
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors


def main():
    golden = sys.argv[1]
    model = proto.ModelProto()
    with open(os.path.join(golden, "sentencepiece/unigram_bytes/tokenizer.model"), "rb") as f:
        model.ParseFromString(f.read())
    vocab = [(p.piece, p.score) for p in model.pieces]
    tokenizer = Tokenizer(models.Unigram(vocab, unk_id=0, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    tokenizer.add_special_tokens(["<s>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    folder = os.path.join(golden, "unigram_sp")
    os.makedirs(folder, exist_ok=True)
    tokenizer.save(os.path.join(folder, "tokenizer.json"), pretty=False)
    with open(os.path.join(golden, "gpt2_bpe/cases.json"), encoding="utf-8") as f:
        texts = [c["b64"] for c in json.load(f)["cases"]]
    cases = []
    for b64 in texts:
        text = base64.b64decode(b64).decode()
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        back = tokenizer.decode(ids, skip_special_tokens=False)
        cases.append({"b64": b64, "ids": ids} if back == text else {"b64": b64, "ids": ids, "decoded": back})
    root = {"bos_id": 1, "vocab_size": tokenizer.get_vocab_size(), "cases": cases}
    with open(os.path.join(folder, "cases.json"), "w", encoding="utf-8") as f:
        json.dump(root, f, ensure_ascii=True, separators=(",", ":"))


main()
