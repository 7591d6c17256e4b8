#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/tokenizers/ranks: small rank lists as three published classes have them, a small tekken.json, and
what the tiktoken library gives for texts. The expressions and special tokens are those of the classes' own code on the
hub, and of Mistral's published files.

usage: tokenizer_ranks.py OUT       (made with tiktoken 0.14.0; texts: gpt2_bpe/cases.json and the tree's own documents)
"""
import base64
import json
import pathlib
import random
import sys
import unicodedata

import tiktoken

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden" / "tokenizers"
SHORT, LETTERS, ENDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)", r"[^\r\n\p{L}\p{N}]?\p{L}+", r"\s*[\r\n]+|\s+(?!\S)|\s+"
MARKS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
BEFORE = r"[^\r\n\p{L}\p{N}]?"
KIMI = "|".join([r"[\p{Han}]+", BEFORE + UPPER + "*" + LOWER + "+" + SHORT + "?", BEFORE + UPPER + "+" + LOWER + "*" + SHORT + "?",
                 r"\p{N}{1,3}", MARKS, ENDS])
QWEN = "|".join([SHORT, LETTERS, r"\p{N}", MARKS, ENDS])
GLM = "|".join([SHORT, LETTERS, r"\p{N}{1,3}", MARKS, ENDS])


TEKKEN = "|".join([r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
                   r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*", r"\p{N}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
                   ENDS])


def added(names, first):
    return {str(first + i): {"content": name, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False,
                             "special": i % 2 == 0} for i, name in enumerate(names)}


def kimi(n):
    names = ["[BOS]", "[EOS]", "<|im_end|>", "<|im_user|>"]
    special = {f"<|reserved_token_{i}|>": i for i in range(n + len(names), n + 256)}
    special |= {name: n + i for i, name in enumerate(names)}
    return "tiktoken.model", {"tokenizer_class": "TikTokenTokenizer", "bos_token": "[BOS]", "eos_token": "[EOS]",
                              "added_tokens_decoder": added(names, n)}, special


def qwen(n):
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] + [f"<|extra_{i}|>" for i in range(205)]
    return "qwen.tiktoken", {"tokenizer_class": "QWenTokenizer"}, {name: n + i for i, name in enumerate(names)}


def glm(n):
    names = ["<|endoftext|>", "[MASK]", "[gMASK]", "[sMASK]", "<sop>", "<eop>", "<|user|>"]
    return "tokenizer.model", {"tokenizer_class": "ChatGLM4Tokenizer", "eos_token": "<|endoftext|>",
                               "added_tokens_decoder": added(names, n)}, {name: n + i for i, name in enumerate(names)}


def tekken(ranks):
    """Mistral's file: bytes first, in order; names for five special tokens of 24; more tokens than are used."""
    names = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"]
    tokens = [bytes([i]) for i in range(256)] + [t for t in ranks if len(t) > 1]
    return {"config": {"pattern": TEKKEN, "num_vocab_tokens": len(tokens), "default_vocab_size": len(tokens) - 40 + 24,
                       "default_num_special_tokens": 24, "version": "v11"},
            "vocab": [{"rank": i, "token_bytes": base64.b64encode(t).decode(), "token_str": None} for i, t in enumerate(tokens)],
            "special_tokens": [{"rank": i, "token_str": t, "is_control": True} for i, t in enumerate(names)][::-1]}


def tekken_special(file):
    names = {t["token_str"]: t["rank"] for t in file["special_tokens"]}
    return names | {f"<SPECIAL_{i}>": i for i in range(len(names), file["config"]["default_num_special_tokens"])}


def ranks_of(texts, chance):
    """All bytes in any order, then pieces of texts: some of shorter pieces, some that no merges lead to, and runs of one
    letter or two, where neighbours that give the same token overlap."""
    every = [bytes([i]) for i in range(256)]
    chance.shuffle(every)
    pieces = [b"a" * n for n in (2, 3, 4, 7)] + [b"aba", b"ba", b"ab", b"abab", b"  ", b"    ", "的".encode(), "世界".encode()]
    for _ in range(900):
        text = chance.choice(texts).encode()
        if len(text) > 2:
            at = chance.randrange(len(text) - 1)
            pieces.append(text[at:at + chance.choice([2, 2, 2, 3, 3, 4, 5, 6, 8])])
    pieces = [p for p in dict.fromkeys(pieces) if len(p) > 1]
    chance.shuffle(pieces)
    pieces.sort(key=lambda p: len(p) + chance.randrange(4))
    return {token: i for i, token in enumerate(every + pieces)}


def main(out):
    texts = [base64.b64decode(c["b64"]).decode() for c in json.load(open(GOLDEN / "gpt2_bpe" / "cases.json"))["cases"]]
    prose = (HERE.parent.parent / "doc" / "glossary.md").read_text()
    texts += [prose[i:i + 160] for i in range(0, 8000, 400)]
    texts += ["aaaaaaaaaaaaa", "abababaabaaba", "Caf\u00e9 Cafe\u0301 e\u0301\u0323", "世界的中文 mixedCaseWORDS'LL don'T 的的的", "12345678 1 22 333",
              "\u3000\u3000  \r\n\r\n x", "x" * 300, "ab" * 200 + "a" * 99, "ΑΒΓ αβγ'S ǅ ʰ", "\U0001f600\U0001f44d\U0001f3fd"]
    for name, make, pattern in (("kimi", kimi, KIMI), ("qwen", qwen, QWEN), ("glm", glm, GLM)):
        ranks = ranks_of(texts, random.Random(name))
        file, config, special = make(len(ranks))
        folder = pathlib.Path(out) / name
        folder.mkdir(parents=True, exist_ok=True)
        end = b"\r\n" if name == "glm" else b"\n"
        (folder / file).write_bytes(end.join(base64.b64encode(t) + b" %d" % i for t, i in ranks.items()) + end)
        (folder / "tokenizer_config.json").write_text(json.dumps(config, ensure_ascii=False, indent=1) + "\n")
        start = [special["[gMASK]"], special["<sop>"]] if name == "glm" else []
        cases_of(folder, texts, pattern, ranks, special, start)
    folder = pathlib.Path(out) / "tekken"
    folder.mkdir(parents=True, exist_ok=True)
    file = tekken(ranks_of(texts, random.Random("tekken")))
    (folder / "tekken.json").write_text(json.dumps(file).replace('}, {"rank"', '},\n{"rank"') + "\n")
    special, used = tekken_special(file), file["vocab"][:file["config"]["default_vocab_size"] - 24]
    ranks = {base64.b64decode(t["token_bytes"]): t["rank"] + 24 for t in used}
    cases_of(folder, texts, TEKKEN, ranks, special, [special["<s>"]])


def cases_of(folder, texts, pattern, ranks, special, start):
    """What tiktoken gives for the texts and for others with special tokens."""
    own = list(special)
    more = [f"{a}{s}{b}" for s in own[:6] + own[-3:] for a, b in (("", ""), ("a", " b"), (" ", "\n"))] + ["<|extra_205|>", "<|im_"]
    encoding = tiktoken.Encoding(folder.name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    cases = []
    for text in texts + more:
        seen = unicodedata.normalize("NFC", text) if folder.name == "qwen" else text
        case = {"b64": base64.b64encode(text.encode()).decode(), "ids": encoding.encode(seen, allowed_special="all")}
        if seen != text:
            case["decoded"] = seen
        cases.append(case)
    with open(folder / "cases.json", "w") as f:
        f.write(json.dumps({"start": start, "cases": cases}).replace('}, {"b64"', '},\n{"b64"') + "\n")
    print(folder.name, len(ranks), "tokens,", len(cases), "texts")


if __name__ == "__main__":
    main(sys.argv[1])
