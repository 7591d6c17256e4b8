# SPDX-License-Identifier: Apache-2.0
"""Compares texts that were written side by side (log/out, kept) with each alone (alone.LINE, kept.LINE): tokens, how it
stopped, what was kept at every step, and how alike its rows are.

    generate_many.py BATCH LINE...      BATCH: as it was asked for, "" for none"""
import json
import sys

batch, lines = sys.argv[1], sys.argv[2:]
many = json.load(open("log/out"))
texts = many["texts"]
assert [t["source"] for t in texts] == [f"prompts.jsonl:{i}" for i in lines], [t["source"] for t in texts]
if batch:
    assert many["batch"] <= int(batch), many["batch"]


def kept(path):
    sets = {}
    for line in open(path):
        x = json.loads(line)
        sets.setdefault(x["sequence"], {})[x["layer"], x["head"], x["step"]] = x["kept"]
    return sets


side_by_side = kept("kept")
assert sorted(side_by_side) == list(range(len(lines))), sorted(side_by_side)
for i, (line, text) in enumerate(zip(lines, texts)):
    alone = json.load(open(f"alone.{line}"))
    for key in "ids", "text", "stopped", "prompt_tokens", "generated_tokens", "rep_4", "longest_repeat_tokens", "stream":
        assert text[key] == alone[key], (line, key, text[key], alone[key])
    for key in "row_likeness", "row_likeness_chance":
        a, b = text[key], alone[key]
        assert a == b or abs(a - b) < 1e-6, (line, key, a, b)
    assert side_by_side[i] == kept(f"kept.{line}")[0], (line, "kept sets")
