#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Models whose layers differ in the number of their KV heads, or of their query heads: traces say so, and replay, drift
# and plans have the heads that a live cache has.
. "$(dirname "$0")/lib.sh"

python -c 'import random
random.seed(1)
for _ in range(3):
    print([random.randrange(3, 46) for _ in range(60)])' >ids

# What the checkpoint's config says: KV heads of each layer, and query heads; the first layers up to one in which nothing
# is yet evicted by what another layer lost.
for case in mimo_v2_published:1,2,2:4,4,4:0 openelm:2,3,4:4,6,8:0 laguna_heads:2,2,2,2:4,6,6,6:0 deci_7b:4,1,2:4,4,4:0 \
    gemma4_kv_heads:4,1,4,1:4,4,4,4:0,1; do
    IFS=: read -r name heads queries exact <<<"$case"
    model=$checkpoints/modern/$name
    run trace --model "$model" --db $name.db --tokens ids --record full --codec f32 --vectors qkv -q
    run verify $name.db
    expect "$name: the trace is sound" 0 "rows checked" ""
    holds "$name: it has the query heads of each layer, and says so in its version" python - $name.db "$queries" <<'E'
import sqlite3, sys
db, queries = sqlite3.connect(sys.argv[1]), [int(x) for x in sys.argv[2].split(",")]
for table, kind in ("scores", ""), ("vectors", " AND kind = 'q'"):
    for layer, n in enumerate(queries):
        found = {h for h, in db.execute(f"SELECT head FROM {table} WHERE layer = {layer}{kind}")}
        assert found == set(range(n)), (table, layer, found)
assert db.execute("PRAGMA user_version").fetchone() == (4 if len(set(queries)) > 1 else 2,)
E
    run persistence --db $name.db --json -q
    holds "  persistence is of these heads" python - "$queries" <<'E'
import json, sys
layers = json.load(open("log/out"))["layers"]
assert [[h["head"] for h in l["heads"]] for l in layers] == [list(range(int(n))) for n in sys.argv[1].split(",")], layers
E

    run eval --model "$model" --tokens ids --policy h2o --budget 8 --dump-kept live.jsonl -q
    run replay --db $name.db --policy h2o --budget 8 --dump-kept replay.jsonl --json -q
    holds "$name: replay has the KV heads of the live cache, and their sets where queries are the same" \
        python - "$heads" "$exact" <<'E'
import json, sys
def read(path):
    return {(d["sequence"], d["layer"], d["head"], d["step"]): d["kept"] for d in map(json.loads, open(path))}
heads, exact = ([int(x) for x in a.split(",")] for a in sys.argv[1:])
live, replayed = read("live.jsonl"), read("replay.jsonl")
assert {k[1:3] for k in live} == {(l, h) for l, n in enumerate(heads) for h in range(n)}, heads
assert live.keys() == replayed.keys(), (len(live), len(replayed))
assert all(replayed[k] == v for k, v in live.items() if k[1] in exact)
E
    cp log/out replay.json
    holds "  bytes are those of the heads that there are, and the mean is within its interval" python - "$heads" <<'E'
import json, sys
heads = [int(x) for x in sys.argv[1].split(",")]
r = json.load(open("replay.json"))["results"][0]
assert r["peak_tokens"] == 8, r
per_token = r["resident_bytes"] / sum(heads) / 8
assert per_token == int(per_token), r
assert r["kept_mass_low"] < r["kept_mass"] < r["kept_mass_high"], r
assert r["output_error_low"] < r["output_error"] < r["output_error_high"], r
E

    run drift --model "$model" --db $name.db --policy window --budget 8 --every 1 --json -q
    holds "$name: a window is the same everywhere" python - <<'E'
import json
for layer in json.load(open("log/out"))["results"][0]["layers"]:
    assert layer["jaccard"] == layer["least_jaccard"] == layer["same_first_eviction"] == 1, layer
    assert layer["first_difference"] is None, layer
E

    for allocator in uniform pyramid entropy persistence adakv greedy; do
        run plan --db $name.db --policy h2o --allocator $allocator --budget 12 -o $allocator.json -q
    done
    holds "$name: plans divide the total among the heads that there are" \
        python - "$heads" "$name" <<'E'
import json, sys
heads, model = [int(x) for x in sys.argv[1].split(",")], sys.argv[2]
for name in "uniform", "pyramid", "entropy", "persistence", "adakv", "greedy":
    plan = json.load(open(name + ".json"))
    budgets, own = plan["budgets"], sum(plan["budgets"], [])
    assert [len(row) for row in budgets] == [len(row) for row in plan["shares"]] == heads, (name, budgets)
    assert plan["total_tokens"] == sum(own) == 12 * sum(heads) and plan["mean_tokens"] == 12, (name, budgets)
    # OpenELM's layers here have one persistence, by which their budgets are equal.
    assert name in ("uniform", "adakv") or len(set(own)) > 1 or (model, name) == ("openelm", "persistence"), (name, budgets)
E
    run eval --model "$model" --tokens ids --plan greedy.json --dump-kept live.jsonl -q
    holds "  the engine takes them" python - "$heads" <<'E'
import collections, json, sys
heads = [int(x) for x in sys.argv[1].split(",")]
budgets = json.load(open("greedy.json"))["budgets"]
most = collections.Counter()
for d in map(json.loads, open("live.jsonl")):
    most[d["layer"], d["head"]] = max(most[d["layer"], d["head"]], len(d["kept"]))
for (layer, head), n in most.items():
    assert n <= budgets[layer][head], (layer, head, n)
assert len(most) == sum(heads)
E

    run trace --model "$model" --db whole.db --tokens ids --record full --codec f32 --vectors qkv --shard 1/2 -q
    run trace --model "$model" --db whole.db --tokens ids --record full --codec f32 --vectors qkv --shard 2/2 -q
    run merge --db whole.db whole.db.shard-*-of-2 -q
    run replay --db whole.db --policy h2o --budget 8 --dump-kept merged.jsonl -q
    holds "$name: merged shards say it, too" cmp replay.jsonl merged.jsonl
    rm -f whole.db*
done

# Layers that do not attend have no heads.
hybrid=$checkpoints/modern/bamba
run trace --model "$hybrid" --db hybrid.db --tokens ids --record full --codec f32 -q
for allocator in uniform pyramid greedy; do
    run plan --db hybrid.db --policy h2o --allocator $allocator --target-recall 0.9 -o hybrid.json -q
    holds "a plan from a store of a hybrid model, $allocator: the layers that attend have budgets" python - <<'E'
import json
p = json.load(open("hybrid.json"))
own = sum(p["budgets"], [])
assert 0 < len(own) == sum(map(len, p["shares"])) < p["model"]["n_layer"] * p["model"]["n_kv_head"], p["budgets"]
assert sum(own) == p["total_tokens"] == p["mean_tokens"] * len(own), p
assert p["evidence"][0]["metric"] == "kept_mass" and p["evidence"][0]["value"] >= 0.9, p["evidence"]
E
done
for allocator in entropy persistence adakv; do
    refuse "  $allocator" 2 "the allocator $allocator needs the attention of every layer, but layer" \
        plan --db hybrid.db --policy h2o --allocator $allocator --budget 12 -q
done
run eval --model "$hybrid" --tokens ids --plan hybrid.json -q
expect "  the engine takes such a plan" 0 "perplexity" ""

# Sums alone, of the same heads.
run trace --model "$checkpoints/modern/openelm" --db summary.db --tokens ids --record summary -q
run verify summary.db
expect "a summary of layers that differ in their query heads is sound" 0 "layers finished *9" ""
run persistence --db summary.db --json -q
cp log/out summary.json
run persistence --db openelm.db --json -q
holds "  it gives the persistence of the rows" python - <<'E'
import json
a, b = (json.load(open(path))["layers"] for path in ("summary.json", "log/out"))
assert a == b and sum(len(layer["heads"]) for layer in a) == 18, (a, b)
E

sql() { python -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1]); db.execute(sys.argv[2]); db.commit()' "$@"; }
while IFS=: read -r what change sentence; do
    cp gemma4_kv_heads.db damaged.db
    sql damaged.db "$change"
    for command in "verify damaged.db" "replay --db damaged.db --policy tova --budget 8"; do
        refuse "$what: ${command%% *}" 1 "$sentence" $command
    done
done <<'E'
no heads:UPDATE vectors SET head = 0 WHERE kind = 'h':head is 0, expected a whole number from 1 to 3
less than none:UPDATE vectors SET head = -4 WHERE kind = 'h':head is -4, expected
more than the model:UPDATE vectors SET head = 5 WHERE kind = 'h':head is 5, expected
no divisor:UPDATE vectors SET head = 3 WHERE kind = 'h':found 4 query heads and 3 KV heads, expected a multiple
not fewer:UPDATE vectors SET head = 4 WHERE kind = 'h':head is 4, expected a whole number from 1 to 3
two numbers:INSERT INTO vectors (sequence, layer, kind, head, codec, blob) SELECT sequence, layer, kind, 2, codec, blob FROM vectors WHERE kind = 'h':found 1 and 2 KV heads, expected one number
E

while IFS=: read -r what change sentence; do
    cp openelm.db damaged.db
    sql damaged.db "$change"
    refuse "$what" 1 "$sentence" verify damaged.db
done <<'E'
more query heads than the model:UPDATE vectors SET head = 9 WHERE kind = 'a':head is 9, expected a whole number from 1 to 7
query heads that are no multiple:UPDATE vectors SET head = 5 WHERE kind = 'a' AND layer = 0:found 5 query heads and 2 KV heads, expected a multiple
fewer query heads than rows:UPDATE vectors SET head = 2 WHERE kind = 'a' AND layer = 0:found scores of head 2, expected 2 heads
query heads that are not said:DELETE FROM vectors WHERE kind = 'a' AND layer = 0:scores end at head 3, row 60, expected 8 heads of 60 rows
a query head without queries:DELETE FROM vectors WHERE kind = 'q' AND layer = 1 AND head = 5:found vectors of 13 heads, expected 14
E

# Rows of heads that the layer lacks have no sinks.
run trace --model "$checkpoints/modern/sinks" --db sinks.db --tokens ids --count 1 --record full --codec f32 -q
sql sinks.db "INSERT INTO scores (sequence, layer, head, first_row, n_rows, window, codec, blob)
    SELECT sequence, layer, head + 4, first_row, n_rows, window, codec, blob FROM scores"
refuse "rows of more query heads than the model has" 1 "found scores of head 4, expected 4 heads" verify sinks.db

# The middle layer has a product in the place of attention.
run trace --model "$checkpoints/modern/deci" --db product.db --tokens ids --record full -q
run plot heatmap --db product.db --script -o map.svg -q
holds "a map of scores is of a layer that attends" grep -q "layer [04], head 0" map.svg.gp

cp gemma4_kv_heads.db damaged.db
sql damaged.db "DELETE FROM vectors WHERE kind = 'h' AND sequence = 1"
refuse "sequences that differ in the heads of a layer" 1 "layer 1 has 1 KV heads in sequence 0, but 4 in sequence 1" \
    replay --db damaged.db --policy tova --budget 8
sql damaged.db "DELETE FROM vectors WHERE kind = 'h'"
refuse "a store that does not say it: drift has the model's" 1 "found 4 KV heads, expected the model's 1" \
    drift --model "$checkpoints/modern/gemma4_kv_heads" --db damaged.db --policy window --budget 8
sql damaged.db "UPDATE sequence SET run = 99"
refuse "a store without sequences: drift" 1 "contains no sequence" \
    drift --model "$checkpoints/modern/gemma4_kv_heads" --db damaged.db --policy window --budget 8
python - <<'E'
import json
p = json.load(open("greedy.json"))
p["budgets"][1] = p["budgets"][1] * 2
p["shares"][1] = p["shares"][1] * 2
p["total_tokens"] += p["budgets"][1][0]
json.dump(p, open("other.json", "w"))
E
refuse "a plan for other heads" 1 "the plan has budgets for 2 KV heads of layer 1, but .* has 1 there" \
    eval --model "$checkpoints/modern/gemma4_kv_heads" --tokens ids --plan other.json
finish
