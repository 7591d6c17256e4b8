#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/tokenizers/sentencepiece: small tokenizer.model files of every kind that is read, and
what the sentencepiece library gives for the texts of gpt2_bpe/cases.json and a few more. Never run by make.

usage: tokenizer_models.py CORPUS OUT      (made with sentencepiece 0.2.3; CORPUS: the first
                                           300,000 bytes of tinyshakespeare)
"""
import base64
import json
import os
import sys
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as proto

HERE = os.path.dirname(os.path.abspath(__file__))
TEXTS = os.path.join(HERE, "..", "golden", "tokenizers", "gpt2_bpe", "cases.json")
MORE = ["  leading", "trailing  ", "a  b   c", " ", "   ", "▁", "▁▁a", "a▁b", "<s>x</s>", "<unk>", "<0x41>", "zzzqqq世界zz",
        "ﬁne ﬁsh Ⅷ", "<b>bold<b>x", "a<b>", "\n\n\n", "x\n\ny", "the the the", "世界 世 the 界", "世 the", "éé\u0301e\u0301",
        "user user2 user", "ing in ing", "Ⅷ  Ⅷ", "½ a ½", "\u3000wide\u3000", "a\tb\t\tc", "thethethe", "then<b>the<b>",
        "speak" * 9, "ab" * 40, "  <b>  <b>  "]
RULES = "0041\t0061\nFB01\t0066 0069\n2167\t0056 0049 0049 0049\n3000\t0020\n0009\t0020\n00BD\t0020 0031\n0065 0301\t00E9\n200B\t\n"
COMMON = dict(character_coverage=1.0, num_threads=1, minloglevel=2, hard_vocab_limit=False)
KINDS = {
    "llama": dict(model_type="bpe", vocab_size=600, byte_fallback=True, normalization_rule_name="identity",
                  remove_extra_whitespaces=False, split_digits=True, allow_whitespace_only_pieces=True),
    "bpe": dict(model_type="bpe", vocab_size=300, normalization_rule_name="identity", character_coverage=0.98,
                unk_surface=" ?? ", bos_id=-1, control_symbols=["<mask>"]),
    "gemma": dict(model_type="bpe", vocab_size=600, byte_fallback=True, normalization_rule_name="identity",
                  remove_extra_whitespaces=False, add_dummy_prefix=False, pad_id=0, eos_id=1, bos_id=2, unk_id=3,
                  bos_piece="<bos>", eos_piece="<eos>",
                  user_defined_symbols=["<b>", "\n\n", "▁▁", "▁▁▁", "user"]),
    "unigram": dict(model_type="unigram", vocab_size=500, rules=True, user_defined_symbols=["<b>", "user", "speak"]),
    "unigram_bytes": dict(model_type="unigram", vocab_size=600, byte_fallback=True,
                          normalization_rule_name="identity", remove_extra_whitespaces=False),
    "rules": dict(model_type="bpe", vocab_size=300, rules=True, user_defined_symbols=["<b>", "user"]),
    "unused": dict(model_type="bpe", vocab_size=400, byte_fallback=True, normalization_rule_name="identity",
                   unused=3),
    "lone": dict(model_type="bpe", vocab_size=400, byte_fallback=True, normalization_rule_name="identity",
                 renamed={"h": "Ж", "w": "Ц"}),
    "lone_unknown": dict(model_type="bpe", vocab_size=200, normalization_rule_name="identity",
                         renamed={"h": "Ж", "w": "Ц", "t": "Ш"}),
    "spaces": dict(model_type="bpe", vocab_size=400, normalization_rule_name="identity", split_by_whitespace=False,
                   remove_extra_whitespaces=False),
}


def train(corpus, kind, folder):
    options = dict(COMMON, **kind)
    unused, renamed = options.pop("unused", 0), options.pop("renamed", {})
    if options.pop("rules", False):
        path = os.path.join(folder, "rules.tsv")
        with open(path, "w") as f:
            f.write(RULES)
        options["normalization_rule_tsv"] = path
    prefix = os.path.join(folder, "m")
    sentencepiece.SentencePieceTrainer.train(input=corpus, model_prefix=prefix, **options)
    model = proto.ModelProto()
    with open(prefix + ".model", "rb") as f:
        model.ParseFromString(f.read())
    model.trainer_spec.input[:] = []
    model.trainer_spec.model_prefix = ""
    model.normalizer_spec.normalization_rule_tsv = ""
    for i, piece in enumerate(model.pieces):
        if unused and piece.type == piece.NORMAL and i % unused == 0:
            piece.type = piece.UNUSED
        piece.piece = renamed.get(piece.piece, piece.piece)
    return model.SerializeToString()


def main():
    corpus, out = sys.argv[1:]
    with open(TEXTS, encoding="utf-8") as f:
        texts = [base64.b64decode(c["b64"]).decode() for c in json.load(f)["cases"]][::8]
    result = {"texts": [base64.b64encode(t.encode()).decode() for t in texts + MORE], "models": {}}
    for name, kind in KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            blob = train(corpus, kind, folder)
        os.makedirs(os.path.join(out, name), exist_ok=True)
        with open(os.path.join(out, name, "tokenizer.model"), "wb") as f:
            f.write(blob)
        library = sentencepiece.SentencePieceProcessor(model_proto=blob)
        cases = []
        for text in texts + MORE:
            ids = library.encode(text)
            back = library.decode(ids)
            cases.append({"ids": ids} if back == text else {"ids": ids, "decoded": back})
        result["models"][name] = {"bos": library.bos_id(), "eos": library.eos_id(), "size": library.get_piece_size(),
                                  "all": library.decode(list(range(library.get_piece_size()))), "cases": cases}
    with open(os.path.join(out, "cases.json"), "w", encoding="utf-8") as f:
        json.dump(result, f, ensure_ascii=True, separators=(",", ":"))


main()
