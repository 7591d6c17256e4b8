#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Encoding speed: shears' tokenizer compared with the `tokenizers` library (sentencepiece where the folder has only a
tokenizer.model), one thread each, turn by turn in one run on one machine, ids compared.

Two ways to hand over the text: as a whole, and in documents of about 4 KiB, cut at line ends. Each side's best of
--times runs counts; opening the vocabulary is not in it. By hand:

    make bench-tokenizer
    python3 bench/tokenizer_speed.py --encode bench/tokenizer_encode --text book.txt FOLDER...

A folder holds tokenizer.json, vocab.json + merges.txt, or tokenizer.model. Prints one JSON object a line; the exit
status is 1 when ids differ.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

os.environ["RAYON_NUM_THREADS"] = "1"  # before the library is loaded
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy  # noqa: E402


def reference(folder):
    """(name, function from text to ids)"""
    def path(name):
        return os.path.join(folder, name)

    if os.path.exists(path("tokenizer.json")) or os.path.exists(path("vocab.json")):
        import tokenizers
        if os.path.exists(path("tokenizer.json")):
            t = tokenizers.Tokenizer.from_file(path("tokenizer.json"))
        else:
            t = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(path("vocab.json"), path("merges.txt")))
            t.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        return "tokenizers " + tokenizers.__version__, lambda text: t.encode(text, add_special_tokens=False).ids
    import sentencepiece
    p = sentencepiece.SentencePieceProcessor(model_file=path("tokenizer.model"))
    return "sentencepiece " + sentencepiece.__version__, p.encode


def documents(text, size):
    """The text in parts of at least `size` characters that end at line ends; 0: as a whole."""
    if not size:
        return [text]
    parts, begin = [], 0
    while begin < len(text):
        end = text.find("\n", begin + size) + 1 or len(text)
        parts.append(text[begin:end])
        begin = end
    return parts


def ours(encode, folder, parts, times, work):
    source, lengths, out = (os.path.join(work, n) for n in ("text", "lengths", "ids"))
    data = [p.encode() for p in parts]
    with open(source, "wb") as f:
        f.write(b"".join(data))
    numpy.array([len(d) for d in data], dtype=numpy.uint64).tofile(lengths)
    said = subprocess.run([encode, folder, source, lengths, str(times), out], check=True, capture_output=True, text=True).stdout
    return float(said.split()[2]), numpy.fromfile(out, dtype=numpy.int32)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--encode", required=True)
    parser.add_argument("--text", required=True)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--bytes", type=int, default=1 << 20, help="of the text, from its beginning")
    parser.add_argument("folder", nargs="+")
    arguments = parser.parse_args()
    with open(arguments.text, "rb") as f:
        text = f.read(arguments.bytes).decode(errors="ignore")
    differ = False
    for folder in arguments.folder:
        library, encode = reference(folder)
        for size in (0, 4096):
            parts = documents(text, size)
            slow = []
            for _ in range(arguments.times):
                begin = time.perf_counter()
                ids = [encode(p) for p in parts]
                slow.append(time.perf_counter() - begin)
            with tempfile.TemporaryDirectory() as work:
                fast, got = ours(arguments.encode, folder, parts, arguments.times, work)
            same = numpy.array_equal(got, numpy.array([i for part in ids for i in part], dtype=numpy.int32))
            differ |= not same
            n = len(text.encode()) / 1e6
            print(json.dumps({"tokenizer": os.path.basename(os.path.normpath(folder)), "documents": len(parts),
                              "tokens": int(got.size), "library": library, "library MB/s": round(n / min(slow), 2),
                              "shears MB/s": round(n / fast, 2), "ratio": round(min(slow) / fast, 2), "same ids": same}), flush=True)
    sys.exit(differ)


main()
