#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pre-tokenizers by their names in GGUF files: a vocabulary whose merges cross every cut, so that the ids of a text show
where it was cut.

    tokenizer_pre.py > ../golden/tokenizers/pre.json     (llama-cpp-python 0.3.36, tokenizers 0.23.3, gguf)

The ids are llama.cpp's or, for names whose regular expression llama.cpp only approximates, those of the tokenizers
library with the expression of the model's tokenizer.json."""
import json
import os
import random
import sys
import tempfile

import gguf
import llama_cpp
from tokenizers import Regex, Tokenizer, models, normalizers, trainers
from tokenizers import pre_tokenizers as pre

CHUNKS = ["the ", "cat ", "'ll", "'S", " don't", "123", "4567", "89", "1234567890", "\n", "\n\n", "\r\n", " \n ", "  ",
          "   ", "\t", " ", "中文", "日本語", "カタカナ", "한국어", "ㄅㄆ", "é", "İx", "ß", "ǅ", "Σίγμα", "привет", "नमस्ते", "ไทย", "ﬁ", "...",
          "?!", "--", "/path/x", "(a)", "<d>", "$5", "€", "_x_", "camelCase", "UPPER", "Title", "٣٤", "½", "🙂", "\u3000",
          "\u00a0", "。", "，", "！", "：", "「x」", "a1b2", "X9", " \u200b", "'re", "I'VE", "ａＢ", "　", "가나다", "က", "㐀", "ﾟ"]
SHORT = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER, LOWER = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}%s]", "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}%s]"
BEFORE, SPACES = "[^\\r\\n\\p{L}\\p{N}]?", "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
WORDS = ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+"
         "[\\r\\n]*|" + SPACES)


def cased(end, without=""):
    upper, lower = UPPER % without, LOWER % without
    return f"{BEFORE}{upper}*{lower}+{end}|{BEFORE}{upper}+{lower}*{end}"


O200K = cased(SHORT + "?") + "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" + SPACES
BY_EXPRESSION = {
    "gpt-4o": [O200K], "llama4": [O200K], "minimax-m2": [O200K], "kanana2": [O200K],
    "tekken": [cased("") + "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" + SPACES],
    "tiny_aya": ["\\d{1,3}(?=(?:\\d{3})*\\b)", O200K], "cohere2moe": ["\\d{1,3}(?=(?:\\d{3})*\\b)", O200K],
    "kimi-k2": ["[\\p{Han}]+|" + cased(SHORT + "?", "&&[^\\p{Han}]") + "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" + SPACES],
    "youtu": ["[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥\u3040-ゟ゠-ヿ]+",
              cased(SHORT + "?") + "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" + SPACES],
    "afmoe": ["\\p{N}{1,3}(?=(?:\\p{N}{3})*(?!\\p{N}))",
              "[一-\u9fff㐀-䶿\uf900-\ufaff\u3040-ゟ゠-ヿ･-ﾟ⼀-\u2fdfเ-\u0e7f\u0e80-\u0effក-\u17ffက-႟ꩠ-ꩿꧠ-\ua9ff가-\ud7afᄀ-ᇿ]+",
              WORDS],
    "deepseek-coder": ["[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", "[一-龥\u0800-一가-\ud7ff]+", "\\p{N}"]}
BY_LLAMA = """gpt-2 mpt olmo jais phi-2 exaone4 mellum a.x-4.0 gigachat starcoder refact command-r smollm codeshell exaone
    llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral lfm2 dbrx smaug-bpe glm4 chatglm-bpe qwen2 deepseek-r1-qwen
    stablelm2 hunyuan solar-open qwen35 seed-coder bloom falcon default deepseek-v3 hunyuan-dense joyai-llm minerva-7b
    mellum2 trillion granite-docling midm-2.0 glm5 jais-2 megrez kormo grok-2 laguna bailingmoe bailingmoe2 llada-moe
    minicpm5 exaone-moe poro-chat gpt3-finnish viking gemma4 sarvam-moe""".split()
RAW = ("gemma4", "sarvam-moe")


def text(rng, n):
    return "".join(rng.choice(CHUNKS) for _ in range(n))


def trained(rng):
    corpus = [text(rng, 30) for _ in range(1500)]
    alphabet = pre.ByteLevel.alphabet()
    by_bytes = Tokenizer(models.BPE())
    by_bytes.pre_tokenizer = pre.ByteLevel(add_prefix_space=False, use_regex=False)
    by_bytes.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=1000, initial_alphabet=alphabet))
    raw = Tokenizer(models.BPE(byte_fallback=True))
    raw.normalizer = normalizers.Replace(" ", "▁")
    first = ["<pad>", "<eos>", "<bos>", "<unk>"] + [f"<0x{i:02X}>" for i in range(256)]
    lines = [line for t in corpus for line in t.split("\n")] + ["\n\n", "\n"] * 50
    raw.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=700, special_tokens=first))
    return by_bytes, raw


def contents(tokenizer):
    """Tokens, types, merges."""
    model = json.loads(tokenizer.to_str())["model"]
    tokens = [t for t, _ in sorted(model["vocab"].items(), key=lambda item: item[1])]
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    types = [6 if t.startswith("<0x") else 2 if t == "<unk>" else 3 if t in ("<pad>", "<eos>", "<bos>") else 1
             for t in tokens]
    return tokens, types, merges


def by_llama(name, tokens, types, merges, texts):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.gguf")
        w = gguf.GGUFWriter(path, "llama")
        for put, number in ((w.add_block_count, 1), (w.add_context_length, 64), (w.add_embedding_length, 8),
                            (w.add_feed_forward_length, 8), (w.add_head_count, 1), (w.add_layer_norm_rms_eps, 1e-5),
                            (w.add_vocab_size, len(tokens)), (w.add_bos_token_id, 2), (w.add_eos_token_id, 1)):
            put(number)
        w.add_tokenizer_model("gemma4" if name == "gemma4" else "gpt2")
        w.add_tokenizer_pre(name)
        w.add_token_list(tokens)
        w.add_token_types(types)
        w.add_token_merges(merges)
        w.write_header_to_file()
        w.write_kv_data_to_file()
        w.close()
        model = llama_cpp.Llama(path, vocab_only=True, verbose=False)
        return [model.tokenize(t.encode(), add_bos=False, special=False) for t in texts]


def by_expression(tokenizer, expressions, texts):
    cut = Tokenizer.from_str(tokenizer.to_str())
    cut.pre_tokenizer = pre.Sequence([pre.Split(Regex(e), "isolated") for e in expressions] +
                                     [pre.ByteLevel(add_prefix_space=False, use_regex=False)])
    return [cut.encode(t, add_special_tokens=False).ids for t in texts]


def main():
    rng = random.Random(9)
    by_bytes, raw = trained(rng)
    texts = ["".join(rng.sample(CHUNKS, len(CHUNKS))) for _ in range(3)] + [text(rng, 30) for _ in range(2)]
    out = {"texts": texts, "ids": {}}
    for kind, tokenizer in (("bytes", by_bytes), ("raw", raw)):
        out[kind] = dict(zip(("tokens", "types", "merges"), contents(tokenizer)))
    for name in BY_LLAMA:
        out["ids"][name] = by_llama(name, *out["raw" if name in RAW else "bytes"].values(), texts)
    for name, expressions in BY_EXPRESSION.items():
        out["ids"][name] = by_expression(by_bytes, expressions, texts)
    json.dump(out, sys.stdout, separators=(",", ":"), ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
