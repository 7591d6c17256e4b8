#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shears plan: how many sequences are judged, where nobody says it: enough for 12,288 tokens, and more of a text whose
# sequences lose unequally.
. "$(dirname "$0")/lib.sh"

python3 - <<'P'
import random
r = random.Random(5)
for name, every in ("even", 1), ("uneven", 10):
    with open(f"{name}.jsonl", "w") as f:
        for i in range(280):            # one token repeated: there is little to lose
            print([r.randrange(4, 128) for _ in range(150)] if i % every == 0 else [9] * 150, file=f)
P
plan() { run plan -q --json --model "$checkpoints/opt" --policy h2o:recent=3 --allocator uniform --target-kl 0.07 \
    --confidence 0.99 "$@"; }

plan --tokens even.jsonl
holds "sequences that lose about the same: enough for 12,288 tokens" python - <<'P'
import json
r = json.load(open("log/out"))
assert (r["status"], r["sequences"], r["sequences_searched"]) == ("met", 82, 82), r
P
plan --tokens uneven.jsonl
cp log/out more.out
holds "a tenth of them loses most: more are judged, of those that are left" python - <<'P'
import json
r = json.load(open("log/out"))
assert r["status"] == "met" and r["sequences_searched"] == 82 and 120 <= r["sequences"] <= 280 - 82, r
P
plan --tokens uneven.jsonl --sequences 82
holds "unless their number is given; then the plan needs no fewer tokens" python - <<'P'
import json
r, more = json.load(open("log/out")), json.load(open("more.out"))
assert (r["status"], r["sequences"], r["sequences_searched"]) == ("met", 82, 82), r
assert r["mean_tokens"] >= more["mean_tokens"], (r["mean_tokens"], more["mean_tokens"])
assert r["searched"] == more["searched"]
P
head -n 170 uneven.jsonl >fewer.jsonl
plan --tokens fewer.jsonl
holds "as many as there are, if they are few" python - <<'P'
import json
r = json.load(open("log/out"))
assert (r["sequences_searched"], r["sequences"]) == (82, 88), r
P
finish
