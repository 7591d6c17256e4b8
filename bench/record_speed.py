#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The recorder against eager attention whose weights go to SQLite: time and memory of one pass.

    SHEARS_LIBRARY=$PWD/libshears.so.0 PYTHONPATH=python TORCH_PYTHON bench/record_speed.py [TOKENS] [LAYERS] [FOLDER]

A model of GPT-2's width (12 heads of 64, random weights, LAYERS layers, by default 2) reads TOKENS tokens (by default 4096),
in a process of its own for each way and run, in turn, three times:

    plain     the model's own sdpa attention, nothing recorded
    eager     output_attentions, every head's matrix as a blob of float32 in one SQLite file, one transaction a layer
    f16       the same in float16
    recorder  shears.record, full, log8

Seconds are those of the pass and of closing the file, without loading; MiB the growth of the process's peak during them. The
least of three runs counts. What the model takes without attention shows in the plain pass: GPT-2's feed-forward part takes more
than the recorder. Both files lie in FOLDER (by default a temporary one)."""
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time


def model_of(layers, tokens):
    import torch
    import transformers
    torch.manual_seed(1)
    config = transformers.GPT2Config(n_layer=layers, n_positions=tokens, vocab_size=1000, bos_token_id=None,
                                     eos_token_id=None)
    return transformers.GPT2LMHeadModel(config).eval().transformer


def to_sqlite(path, attentions, kind):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE attention (layer INTEGER, head INTEGER, blob BLOB)")
        for layer, a in enumerate(attentions):
            for head, matrix in enumerate(a[0].numpy()):
                db.execute("INSERT INTO attention VALUES (?, ?, ?)", (layer, head, matrix.astype(kind).tobytes()))
            db.commit()


def one(how, tokens, layers, path):
    import torch
    import shears
    model = model_of(layers, tokens)
    most = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    text = torch.randint(1000, (1, tokens), generator=torch.Generator().manual_seed(2))
    model.set_attn_implementation("sdpa" if how in ("plain", "recorder") else "eager")
    with torch.no_grad():
        model(text[:, :64])
        before, began = most(), time.monotonic()
        if how == "plain":
            model(text)
        elif how == "recorder":
            with shears.record(model, path):
                model(text)
        else:
            to_sqlite(path, model(text, output_attentions=True).attentions, "f4" if how == "eager" else "f2")
        print(time.monotonic() - began, most() - before, os.path.getsize(path) / 2**20 if os.path.exists(path) else 0)


def main(tokens=4096, layers=2, folder=None):
    with tempfile.TemporaryDirectory(dir=folder) as work:
        found = {}
        for turn in range(3):
            for how in "plain", "eager", "f16", "recorder":
                path = os.path.join(work, "%s-%d.db" % (how, turn))
                words = [sys.executable, __file__, "--one", how, str(tokens), str(layers), path]
                line = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
                found.setdefault(how, []).append([float(x) for x in line.split()])
                if os.path.exists(path):
                    os.remove(path)
    print("%d tokens, %d layers of 12 heads\n" % (tokens, layers))
    print("| way | seconds | MiB | file, MiB |\n| --- | --- | --- | --- |")
    least = {how: [min(column) for column in zip(*runs)] for how, runs in found.items()}
    for how, (seconds, memory, size) in least.items():
        print("| %s | %.2f | %.0f | %.0f |" % (how, seconds, memory, size))
    (seconds, memory, _), (slow, much, _), (_, plain, _) = (least[how] for how in ("recorder", "eager", "plain"))
    print("\nrecorder: %.1f times as fast as eager, %.1f %% of its memory; beyond a plain pass %.0f MiB of %.0f, %.1f %%" % (
        slow / seconds, 100 * memory / much, memory - plain, much - plain, 100 * (memory - plain) / (much - plain)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    else:
        main(*(int(x) for x in sys.argv[1:3]), *sys.argv[3:4])
