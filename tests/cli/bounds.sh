#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Standard errors over sequences, the bound of a perplexity's increase, the sums that stores keep for them, and what
# older stores have.
. "$(dirname "$0")/lib.sh"
oracle() { python "$SH_TOP/tests/oracle/clustered.py" "$@"; }

# Texts of unequal length out of the checkpoint's ids.
golden_tokens llama | python -c 'import json, sys
ids = sum(map(json.loads, sys.stdin), [])
for i in range(8):
    print(json.dumps([ids[(7 * i + 13 * k * k) % len(ids)] for k in range(20 + 15 * i)]))' >eight.jsonl
head -n 5 eight.jsonl >five.jsonl
model=$checkpoints/llama
ask=(--policy window h2o:recent=3 --budget 12,0.5)
measure() { run eval -q --json --model "$model" "$@" "${ask[@]}"; }

measure --tokens eight.jsonl --db e.db
cp log/out joint.json
for i in 1 2 3 4 5 6 7 8; do
    sed -n ${i}p eight.jsonl >one.jsonl
    measure --tokens one.jsonl
    cp log/out text$i.json
done
holds "errors and bounds are over texts, weighted by their tokens" oracle joint.json text[1-8].json
holds "the program says so" grep -q '"errors_over": "8 sequences"' joint.json
run eval -q --model "$model" --tokens eight.jsonl "${ask[@]}" --db e.db
expect "in words, too, and the bound is a column" 0 "standard errors over +8 sequences" ""
holds "  of the table" grep -Eq "ppl up by +95 % bound " log/out
measure --tokens eight.jsonl --db e.db
holds "the store has the same figures" python -c 'import json
old, new = (json.load(open(f))["results"] for f in ("joint.json", "log/out"))
assert [{k: v for k, v in r.items() if k != "tokens_per_s"} for r in old] == \
    [{k: v for k, v in r.items() if k != "tokens_per_s"} for r in new] and len(old) == 4'
holds "and the sums of each text: tokens, rows, nll, change, kl" python - <<'P'
import json, sqlite3, struct
singles = [{(r["policy"], r["budget"]): r for r in json.load(open(f"text{i}.json"))["results"]} for i in range(1, 9)]
found = 0
for settings, blob in sqlite3.connect("e.db").execute("SELECT settings, sums FROM sequence_sums WHERE command = 'eval'"):
    s = json.loads(settings)
    rows = list(struct.iter_unpack("<5d", blob))
    assert len(rows) == 8
    if s["policy"] == "full":
        continue
    found += 1
    for (tokens, n, nll, change, kl), single in zip(rows, singles):
        r = single[s["policy"], float(s["budget"])]
        assert (tokens, n) == (r["tokens"], r["tokens"] + 1)
        for total, key, weight in ((nll, "nll", tokens), (change, "nll_change", tokens), (kl, "kl", n)):
            assert abs(total / weight - r[key]) < 1e-7 + 1e-5 * abs(r[key]), (key, total / weight, r[key])
assert found == 4, found
P

# ---- fewer than six texts ----

measure --tokens five.jsonl
holds "fewer than six short texts: over tokens" python - <<'P'
import json, math
said = json.load(open("log/out"))
assert said["errors_over"].startswith("tokens")
for r in said["results"]:
    assert r["error_sequences"] == 0 and math.isclose(r["ppl_increase"], math.expm1(r["nll_change"]))
    assert 1.64 < (math.log1p(r["ppl_increase_bound"]) - r["nll_change"]) / r["nll_change_stderr"] < 1.66, r
P
mkdir long && cp "$model"/* long/
sed -i 's/"max_position_embeddings": 160/"max_position_embeddings": 4096/' long/config.json
python -c 'import json
ids = json.loads(open("eight.jsonl").readlines()[-1])
for n in (700, 2300, 30):
    print(json.dumps([ids[(k * k + k // 7) % len(ids)] for k in range(n)]))' >long.jsonl
long=(--model long --tokens long.jsonl)
run eval -q --json "${long[@]}" --policy h2o:recent=3 --budget 24
cp log/out long.json
run eval -q "${long[@]}" --policy h2o:recent=3 --budget 24 --logits h2o.npy
run eval -q "${long[@]}" --logits full.npy
holds "blocks of 512 tokens of long texts: 1 + 4 + 1" oracle blocks long.json full.npy h2o.npy long.jsonl

# ---- stores of before ----

cp e.db old.db
python -c 'import sqlite3
with sqlite3.connect("old.db") as db:
    db.execute("DELETE FROM result WHERE metric = ?", ("error_sequences",))
    db.execute("DROP TABLE sequence_sums")'
cp old.db older.db
measure --tokens eight.jsonl --db old.db
holds "a store without sums is read: errors are said to be over tokens" python - <<'P'
import json
said, want = json.load(open("log/out")), json.load(open("joint.json"))
assert said["errors_over"].startswith("tokens")
for r, w in zip(said["results"], want["results"]):
    assert r["error_sequences"] == 0 and r["ppl_increase_bound"] is not None
    assert all(r[k] == w[k] for k in ("nll", "nll_change", "tokens_per_s")), "nothing is computed again"
P
measure --tokens eight.jsonl --db old.db --force
holds "--force makes them" python -c 'import json; assert json.load(open("log/out"))["results"][0]["error_sequences"] == 8'
sums() { sqlite3 "$1" "SELECT command, settings, hex(sums) FROM sequence_sums ORDER BY 1, 2"; }
if command -v sqlite3 >/dev/null; then
    holds "  and stores them" [ "$(sums old.db)" = "$(sums e.db)" ]
    for i in 1 2; do run eval -q --model "$model" --tokens eight.jsonl "${ask[@]}" --db part.db --shard $i/2; done
    run merge -q --db merged.db part.db.shard-*
    expect "shards are merged" 0 "sets of results, new" ""
    holds "  with their sums" [ "$(sums merged.db)" = "$(sums e.db)" ]
else
    skip "sums in stores" "sqlite3 is not here"
fi

# ---- damage ----

python -c 'import sqlite3
with sqlite3.connect("e.db") as db:
    db.execute("UPDATE result SET value = -4 WHERE metric = ?", ("error_sequences",))'
refuse "a number of sequences that cannot be" 1 "error_sequences is -4, expected 0 to" \
    eval --model "$model" --tokens eight.jsonl "${ask[@]}" --db e.db
finish
