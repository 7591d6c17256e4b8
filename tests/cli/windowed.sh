#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Policies in windowed layers: what the window leaves behind leaves the cache and takes nobody with it; replay decides
# as the model does; kept sets hold what a query can see.
. "$(dirname "$0")/lib.sh"

python - <<'E' >tokens.jsonl
import random
random.seed(4)
print([random.randrange(3, 60) for _ in range(100)])
E
mistral=(--model "$checkpoints/mistral" --tokens tokens.jsonl)      # a window of 24 in each of its layers
run trace "${mistral[@]}" --db out/w.db --codec f32 -q
expect "the text is traced" 0 "." ""

# A budget of the text, of the window, or of more.
dropping=(scissorhands:recent=2 scissorhands:recent=2,counter=epochs,drop=7 keydiff:drop=8 r-kv:drop=3)
run replay --db out/w.db --policy full scissorhands:recent=2 scissorhands:recent=2,counter=epochs,drop=7 \
    --budget 24,60,100,200 --csv --columns policy,kept_mass,peak_tokens -q
holds "replay: all mass is kept" python -c 'import csv
rows = list(csv.DictReader(open("log/out")))
assert len(rows) == 12, rows
for r in rows:
    assert abs(float(r["kept_mass"]) - 1) < 1e-6 and float(r["peak_tokens"]) == 24, r'
run eval "${mistral[@]}" --policy full "${dropping[@]}" --budget 24,100,200 --csv --columns policy,knobs,ppl,kl -q
holds "eval: the perplexity is that of the full cache" python -c 'import csv
rows = list(csv.DictReader(open("log/out")))
full = [float(r["ppl"]) for r in rows if r["policy"] == "full"][0]
assert len(rows) >= 13 and full > 1, rows
for r in rows:
    assert abs(float(r["ppl"]) / full - 1) < 1e-5 and float(r["kl"]) < 1e-6, r'

# Below the window: the first layer reads the same in both.
for policy in scissorhands:recent=2,drop=4,window=20 scissorhands:recent=2,drop=0.5,counts=rate,window=9 \
    h2o:recent=3 reservoir:recent=2; do
    run replay --db out/w.db --policy $policy --budget 16 --dump-kept out/replayed -q
    run eval "${mistral[@]}" --policy $policy --budget 16 --dump-kept out/lived -q
    holds "$policy: the model keeps what replay keeps, within the window" python -c 'import json
def read(name):
    rows = (json.loads(line) for line in open("out/" + name))
    return {(r["head"], r["step"]): sorted(r["kept"]) for r in rows if r["layer"] == 0}
a, b = read("replayed"), read("lived")
assert len(a) == len(b) >= 100, (len(a), len(b))
for key in a:
    assert a[key] == b[key], (key, a[key], b[key])
    assert min(a[key]) > key[1] - 24 and key[1] in a[key] and len(a[key]) <= 16, (key, a[key])'
    rm out/replayed out/lived
done
finish
