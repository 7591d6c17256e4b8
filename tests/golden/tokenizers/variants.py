#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes variants.json: changes to gpt2_bpe or llama2_sp (tokenizer.json) and what the published
`tokenizers` library then gives for a few texts. Never run by make check.

usage: variants.py > variants.json      (made with tokenizers 0.23.3, seed 1)
"""
import json
import os
import random
import sys

from tokenizers import Tokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False, "trim_offsets": True}
LLAMA = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s+(?!\\S)|\\s+"
BLOOM = " ?[^(\\s|[.,!?…。，、।۔،])]+"
WORDS = ["²", "¼", "Ⅻ", "〇", "ⓐ", "🅰", "\x0b", "\x0b\n", "ª", "ǅ", "ा", "‿", "\u200d", "\x7f", "©", "B", "F0"]
O200K = "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def sequence(*steps):
    return {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [*steps, BYTES]}}


def added(text, **flags):
    token = dict(id=600, content="<|endoftext|>", single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
    return {"added_tokens": [token, dict(token, id=601, content=text, **flags)]}


def template(single):
    special = {name: {"id": name, "ids": [i], "tokens": [name]} for name, i in (("a", 64), ("b", 65))}
    return {"type": "TemplateProcessing", "single": single, "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": special}


def metaspace(scheme, cut):
    step = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": cut}
    return {"normalizer": None, "pre_tokenizer": step, "decoder": step}


def variants():
    for behavior in ("Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext"):
        for invert in (False, True):
            yield f"split {behavior} invert {invert}", "gpt2_bpe", sequence(split("\\s|[aeiou]", behavior, invert))
        yield f"split string {behavior}", "gpt2_bpe", sequence(split("e", behavior, kind="String"))
    yield "split with empty matches", "gpt2_bpe", sequence(split("x*", "MergedWithPrevious"))
    yield "llama regex", "gpt2_bpe", sequence(split(LLAMA))
    yield "bloom regex (set in set)", "gpt2_bpe", sequence(split(BLOOM))
    yield "o200k regex", "gpt2_bpe", sequence(split(O200K))
    yield "han and words", "gpt2_bpe", sequence(split("\\p{Han}+|\\w+|\\W+"))
    yield "anchors at lines, dot over lines", "gpt2_bpe", sequence(split("^.|(?m:a.b)|.$"))
    yield "digits one by one", "gpt2_bpe", sequence({"type": "Digits", "individual_digits": True})
    yield "digits together", "gpt2_bpe", sequence({"type": "Digits", "individual_digits": False})
    yield "prefix space", "gpt2_bpe", {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}}
    yield "no pre-tokenizer but bytes", "gpt2_bpe", {"pre_tokenizer": BYTES}
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        yield form, "gpt2_bpe", {"normalizer": {"type": form}}
    yield "replace by regex", "gpt2_bpe", {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": "_"}]}}
    yield "added lstrip", "gpt2_bpe", added("<x>", lstrip=True)
    yield "added rstrip", "gpt2_bpe", added("<x>", rstrip=True)
    yield "added single word", "gpt2_bpe", added("zed", single_word=True)
    yield "added ligature (ids only)", "gpt2_bpe", {"normalizer": {"type": "NFKC"}, **added("ﬁ", normalized=True, special=False)}
    yield "added fi, text has a ligature", "gpt2_bpe", {"normalizer": {"type": "NFKC"}, **added("fi", normalized=True, special=False)}
    yield "added prefix of another", "gpt2_bpe", added("<|end", special=False)
    for scheme in ("always", "first", "never"):
        for cut in (True, False):
            yield f"metaspace {scheme} split {cut}", "llama2_sp", metaspace(scheme, cut)
    yield "unknown, not fused", "llama2_sp", {"model": {"byte_fallback": False, "fuse_unk": False}}
    yield "unknown, fused", "llama2_sp", {"model": {"byte_fallback": False, "fuse_unk": True}}
    yield "no decoder", "llama2_sp", {"decoder": None}
    yield "whitespace", "gpt2_bpe", sequence({"type": "Whitespace"})
    yield "whitespace split", "gpt2_bpe", sequence({"type": "WhitespaceSplit"})
    for behavior in ("Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext"):
        yield f"punctuation {behavior}", "gpt2_bpe", sequence({"type": "Punctuation", "behavior": behavior})
    yield "falcon", "gpt2_bpe", sequence({"type": "Punctuation", "behavior": "Contiguous"}, {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}, split("[0-9][0-9][0-9]"))
    yield "lowercase", "gpt2_bpe", {"normalizer": {"type": "Lowercase"}}
    for left in (True, False):
        yield f"strip left {left}", "gpt2_bpe", {"normalizer": {"type": "Strip", "strip_left": left, "strip_right": True}}
    yield "strip right False", "gpt2_bpe", {"normalizer": {"type": "Strip", "strip_left": True, "strip_right": False}}
    yield "replace then lowercase", "gpt2_bpe", {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}, {"type": "Replace", "pattern": {"String": "the"}, "content": "re "}]}}
    yield "roberta", "gpt2_bpe", {"post_processor": {"type": "RobertaProcessing", "sep": ["b", 65], "cls": ["a", 64], "trim_offsets": True, "add_prefix_space": False}}
    yield "bert", "gpt2_bpe", {"post_processor": {"type": "BertProcessing", "sep": ["b", 65], "cls": ["a", 64]}}
    yield "template after", "gpt2_bpe", {"post_processor": template([{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "a", "type_id": 0}}])}
    yield "template around", "gpt2_bpe", {"post_processor": template([{"SpecialToken": {"id": "b", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "a", "type_id": 0}}])}
    yield "unigram without bytes", "unigram_sp", {"model": {"byte_fallback": False}}
    yield "unigram, no pre-tokenizer", "unigram_sp", {"pre_tokenizer": None}
    yield "unigram, T5's pre-tokenizer", "unigram_sp", {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}]}}
    with open(os.path.join(HERE, "llama2_sp/tokenizer.json"), encoding="utf-8") as f:
        merges = json.load(f)["model"]["merges"]
    random.Random(7).shuffle(merges)  # then what a merge makes may merge before what is on its way
    yield "merges in another order, long texts", "llama2_sp", {"model": {"merges": merges}}
    yield "words at edges", "gpt2_bpe", sequence(split("\\b\\w+\\b|\\B."))
    yield "words in sets", "gpt2_bpe", sequence(split("[\\w]+|[^\\s\\w]+"))
    yield "words by classes", "gpt2_bpe", sequence(split("[[:alpha:]]+|[[:digit:][:upper:]]+|[[:space:][:cntrl:]]+|[^[:ascii:]]"))
    yield "words by more classes", "gpt2_bpe", sequence(split("[[:alnum:]]+|[[:blank:]]+", invert=True), split("[[:lower:]]+"), split("[[:xdigit:]]"))
    yield "words and vertical tabs", "gpt2_bpe", {"normalizer": {"type": "Replace", "pattern": {"Regex": "[\\v]\\w"}, "content": "_"}, **sequence(split("\\v|[[:word:]]"))}


def patched(base, patch):
    with open(os.path.join(HERE, base, "tokenizer.json"), encoding="utf-8") as f:
        root = json.load(f)
    for key, value in patch.items():
        if key == "model":
            root["model"].update(value)
        else:
            root[key] = value
    return Tokenizer.from_str(json.dumps(root))


def texts(rng, more=()):
    odd = ["é", "e\u0301", "ﬁ", "中文", "〆", "ー", "ß", "İ", "\u017f", "½", "٣", "\u0085", "\u180e", "\u3000", "\u200b",
           "🙂", "\x00", "\t", "\r\n", "\n", "▁", "<x>", "the", "<|end", "<|endoftext|>", "'S", "'ll", "A", "zed", "zed", "012", "xx",
           "a\nb", "…", "।", "_", "\ue000", "नमस्ते", *more]
    yield ""
    for _ in range(14):
        yield "".join(rng.choice(odd) if rng.random() < 0.5 else rng.choice(["the ", "re", " ", "  ", "of", "e", "ing"])
                      for _ in range(rng.randint(1, 12)))


def main():
    rng = random.Random(1)
    out = []
    for name, base, patch in variants():
        tokenizer = patched(base, patch)
        cases = []
        for text in texts(rng, WORDS if name.startswith("words") else ()):
            if "long texts" in name:
                text = "".join(texts(rng)) + text
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            cases.append({"text": text, "ids": ids})
            if "ids only" not in name:  # releases differ in how they write such a token
                cases[-1]["decoded"] = tokenizer.decode(ids, skip_special_tokens=False)
            if "post_processor" in patch:
                cases[-1]["special"] = tokenizer.encode(text).ids
        out.append({"name": name, "base": base, "patch": patch, "cases": cases})
    sys.stdout.write("[\n" + ",\n".join(json.dumps(v, separators=(",", ":")) for v in out) + "\n]\n")


if __name__ == "__main__":
    main()
