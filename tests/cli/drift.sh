#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shears drift: kept sets of a live cache compared with those of the replay. In layer 0 they are the same; after
# it they are compared with the sets that eval and replay themselves dump.
. "$(dirname "$0")/lib.sh"

model=$checkpoints/llama_gqa
python -c 'import json, os
case = json.load(open(os.environ["SH_GOLDEN"] + "/session/llama_gqa.json"))["cases"][0]["tokens"]
print(json.dumps(case)); print(json.dumps(case[40:] + case[:40]))' >ids
run trace --model "$model" --db trace.db --tokens ids --record full --codec f32 --vectors qkv -q
expect "the trace" 0 "layers finished +4" ""

policies=(window streaming:sinks=4 h2o:recent=8 tova scissorhands:window=16,recent=4,drop=8 knorm keydiff)
run drift --model "$model" --db trace.db --policy "${policies[@]}" --budget 24 0.4 --every 1 --json -q
cp log/out drift.json
holds "layer 0 agrees at every step, and so does the first eviction" python - <<'E'
import json
r = json.load(open("drift.json"))
assert r["sequences"] == 2 and len(r["results"]) == 14, r
for x in r["results"]:
    first = x["layers"][0]
    assert first["layer"] == 0 and first["jaccard"] == first["least_jaccard"] == first["same_first_eviction"] == 1, x
    assert first["first_difference"] is None and all(s["jaccard"] == 1 for s in first["steps"]), x
    assert len(first["steps"]) == 104, len(first["steps"])
E
holds "after it what looks at attention drifts, and what does not cannot" python - <<'E'
import json
for x in json.load(open("drift.json"))["results"]:
    second = x["layers"][1]
    if x["policy"] in ("window", "streaming"):
        assert second["jaccard"] == 1 and second["first_difference"] is None, x
    if x["policy"] in ("tova", "scissorhands"):
        assert second["jaccard"] < 1 and second["first_difference"] >= 24, x
E

# The same from the two dumps.
head -n 1 ids >one
run trace --model "$model" --db one.db --tokens one --record full --codec f32 -q
for policy in tova scissorhands:window=16,recent=4,drop=8; do
    run eval --model "$model" --tokens one --policy $policy --budget 24 --dump-kept live.jsonl -q
    run replay --db one.db --policy $policy --budget 24 --dump-kept replay.jsonl -q
    run drift --model "$model" --db one.db --policy $policy --budget 24 --every 1 --json -q
    holds "$policy: the numbers are those of the dumped sets" python - <<'E'
import collections, json
def read(path):
    return {(d["layer"], d["head"], d["step"]): set(d["kept"]) for d in map(json.loads, open(path))}
live, replayed = read("live.jsonl"), read("replay.jsonl")
assert live.keys() == replayed.keys() and len(live) > 100
at, least, first, gone = collections.defaultdict(list), {}, {}, {}
sums = collections.defaultdict(list)
for (l, h, t) in sorted(live, key=lambda k: (k[0], k[2], k[1])):
    a, b = live[l, h, t], replayed[l, h, t]
    like = len(a & b) / len(a | b)
    at[l, t].append(like)
    least[l] = min(least.get(l, 1), like)
    gone[l, h] = gone.get((l, h)) or len(a) <= t or len(b) <= t
    if gone[l, h]:
        sums[l].append(like)
    if a != b:
        first.setdefault(l, t)
for x in json.load(open("log/out"))["results"][0]["layers"]:
    l = x["layer"]
    assert abs(x["jaccard"] - sum(sums[l]) / len(sums[l])) < 1e-12, x
    assert x["least_jaccard"] == least[l] and x["first_difference"] == first.get(l), x
    for s in x["steps"]:
        assert abs(s["jaccard"] - sum(at[l, s["step"]]) / len(at[l, s["step"]])) < 1e-12, s
E
done

# Changes of scores: the histogram adds up, what left is what the kept sets lack.
run drift --model "$model" --db one.db --policy tova --budget 24 --every 1 --json -q
cp log/out drift.json
run eval --model "$model" --tokens one --policy tova --budget 24 --dump-kept live.jsonl -q
holds "changes of scores: shares add up, and what left is what the live cache lacks" python - <<'E'
import json
c = json.load(open("drift.json"))["score_changes"][0]
bins = c["bins"]
assert len(bins) == 42 and bins[0]["from"] == bins[0]["to"] == -1 and bins[41]["to"] is None
assert abs(sum(b["pairs"] for b in bins) - 1) < 1e-9 and abs(sum(b["mass"] for b in bins) - 1) < 1e-9
assert c["pairs_left"] == bins[0]["pairs"] and c["mass_left"] == bins[0]["mass"] < c["pairs_left"]
n = len(json.loads(open("one").readline()))
step = -(-n // 64)
gone = all_pairs = 0
for x in map(json.loads, open("live.jsonl")):
    t = x["step"]
    if t % step == step - 1 and len(x["kept"]) <= t:
        gone += t + 1 - len(x["kept"])
        all_pairs += t + 1
assert abs(c["pairs_left"] - gone / all_pairs) < 1e-6, (c["pairs_left"], gone / all_pairs)
E
run plot score-change --db one.db -o out/s.gp --script
verdict "score-change is drawn" "$(faults 0 "" ""; { grep -q "'tova, budget 24'" out/s.gp && grep -q "'llama_gqa: attention" out/s.gp; } ||
    grep title out/s.gp)"
run plot drift --db one.db -o out/d.gp --script
verdict "drift is drawn, a line a layer" "$(faults 0 "" ""; grep -q "'layer 1'" out/d.gp || grep label out/d.gp)"
rm -f out/*

if command -v sqlite3 >/dev/null; then
    sqlite3 one.db "SELECT count(*), min(value), max(value) FROM result WHERE command = 'drift' AND layer = 0
        AND metric = 'jaccard'" >kept
    holds "results are kept in the store" grep -qx '2|1.0|1.0' kept
else
    skip "results are kept in the store" "sqlite3 is not here"
fi
run drift --model "$model" --db one.db --policy tova --budget 24 -q
expect "a table, one line a layer" 0 '^  tova +24.0 +1 +0\.' ""

refuse "nothing to do" 2 "drift .*--model DIR, --policy NAME and --budget LIST$" drift --db one.db
refuse "another model" 1 "run 1: found model llama_gqa" drift --model "$checkpoints/llama" --db one.db --policy tova --budget 24
refuse "a policy that looks into the future" 2 "oracle needs future attention" \
    drift --model "$model" --db one.db --policy oracle --budget 24
refuse "a policy of keys on a trace without" 1 "knorm .*keys" drift --model "$model" --db one.db --policy knorm --budget 24
refuse "a budget that what is protected fills" 2 "protects 4" \
    drift --model "$model" --db one.db --policy streaming:sinks=4 --budget 4
run trace --model "$model" --db thin.db --tokens one --record summary -q
refuse "a summary" 1 "recorded summary, expected full rows" drift --model "$model" --db thin.db --policy tova --budget 24
finish
