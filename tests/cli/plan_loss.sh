#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shears plan in the live model: a target that is met is met on the judged texts by the program's own evaluation, one that
# is not is not promised, killed work resumes to the same bytes, and what cannot be planned is refused.
. "$(dirname "$0")/lib.sh"

python3 - <<'P'
import random
r = random.Random(3)
for name, n in ("texts", 40), ("few", 14), ("one", 1), ("pair", 2), ("small", 40):
    with open(f"{name}.jsonl", "w") as f:
        for _ in range(n):
            print([r.randrange(4, 40 if name == "small" else 128) for _ in range(40)], file=f)
P
model=$checkpoints/opt
plan() { run plan -q --model "$model" --tokens texts.jsonl --policy h2o:recent=3 --sequences 24 "$@"; }

# ---- met ----

plan --allocator loss --target-kl 0.002 --json -o met.json --judged judged.jsonl --db met.db
cp log/out met.out
holds "met: the keys, and bounds that meet the target" python - <<'P'
import json
r, p = json.load(open("met.out")), json.load(open("met.json"))
assert r["status"] == "met" == p["status"] and r["policy"] == "h2o" and r["allocator"] == "loss", r["status"]
assert (r["sequences"], r["sequences_searched"]) == (24, 16) and r["confidence"] == 0.95 and r["sequences_more"] is None
assert r["kl"] < r["kl_bound"] <= 0.002 and r["ppl_increase"] < r["ppl_increase_bound"]
flat = [b for row in p["budgets"] for b in row]
assert sum(flat) == r["total_tokens"] == p["total_tokens"] and all(4 <= b <= 40 for b in flat), flat
assert abs(r["share"] - sum(flat) / 8 / 40) < 1e-9 and 0.1 < r["share"] < 1
e = {v["metric"]: v for v in p["evidence"]}
assert set(e) == {"ppl_increase", "kl"} and p["target"] == {"metric": "kl", "value": 0.002}
for v in e.values():
    assert v["sequences"] == 24 and v["tokens"] == 960 and v["confidence"] == 0.95 and len(v["text_hash"]) == 16
    assert v["low"] < v["value"] < v["high"] and v["text"] == "texts.jsonl"
assert abs(e["kl"]["high"] - r["kl_bound"]) < 1e-9
mean = [j["mean_tokens"] for j in r["judged"]]
assert mean == sorted(mean, reverse=True) and sum(j["chosen"] for j in r["judged"]) == 1
chosen = next(i for i, j in enumerate(r["judged"]) if j["chosen"])
assert all(j["bound"] <= 0.002 for j in r["judged"][:chosen + 1]) and mean[chosen] == r["mean_tokens"]
assert chosen + 1 == len(mean) or r["judged"][chosen + 1]["bound"] > 0.002
P
run eval -q --json --model "$model" --tokens texts.jsonl --plan met.json
holds "the plan, evaluated on all texts: about what was judged on half of them" python - <<'P'
import json
live, r = json.load(open("log/out"))["results"][0], json.load(open("met.out"))
assert abs(live["kl"] - r["kl"]) < 0.001 and live["budget_tokens"] == r["mean_tokens"], (live["kl"], r["kl"])
P
run eval -q --json --model "$model" --tokens judged.jsonl --plan met.json
holds "the judged sequences: exactly what was judged" python - <<'P'
import json
o, r = json.load(open("log/out")), json.load(open("met.out"))
live = o["results"][0]
assert o["sequences"] == r["sequences"] and o["text_hash"] == r["text_hash"]
for key in "kl", "ppl_increase":
    assert abs(live[key] - r[key]) < 1e-9, (key, live[key], r[key])
assert abs(o["full_ppl"] / r["ppl_full"] - 1) < 1e-9
P
plan --allocator loss --target-kl 0.002 -o met.json --judged judged.jsonl
expect "the command that repeats it is shown" 0 \
    "^To repeat the measurement: shears eval --model $model --plan met.json --tokens judged.jsonl --seed 0$" ""
eval "run $(sed -n 's/^To repeat the measurement: shears //p' log/out) -q"
expect "and runs as it is shown" 0 "h2o.*met.json" ""
run plan --model "$model" --tokens texts.jsonl --policy h2o:recent=3 --target-kl 0.002 -o met.txt.json
expect "it says how its table is meant and how to measure again" 0 "or the most that were tried where none do" ""
holds "  with the judged texts" grep -q "follow from the texts and --seed: the same command measures them again" log/out
plan --target-kl 0.002 --json --seed 5 -o other.json
holds "another seed, other judged texts" python - <<'P'
import json
a, b = (json.load(open(f))["evidence"][0]["text_hash"] for f in ("met.json", "other.json"))
assert a != b
P
plan --target-kl 0.002 --json --search-first 30 -o first.json
cp log/out first.out
sed -n '31,$p' texts.jsonl >rest.jsonl
run eval -q --json --model "$model" --tokens rest.jsonl --plan first.json
holds "the first 30 are searched; exactly the others are judged" python - <<'P'
import json
live, r = json.load(open("log/out"))["results"][0], json.load(open("first.out"))
assert (r["sequences"], r["sequences_searched"]) == (10, 30) and r["status"] == "not_shown", r
assert abs(live["kl"] - r["kl"]) < 1e-5, (live["kl"], r["kl"])
P
plan --target-kl 0.002 --search-first 40
expect "none to judge" 2 '' '--search-first: found 40, expected fewer than the 40 sequences'
plan --target-ppl-increase 2% --json
cp log/out percent.out
plan --target-ppl-increase 0.02 --json
holds "2% and 0.02 are the same" cmp log/out percent.out
plan --target-kl 0.02 --policy h2o:recent=3 streaming:sinks=2 keydiff --allocator greedy,x
expect "an unknown allocator" 2 '' 'unknown allocator "x"'
plan --target-kl 0.02 --policy h2o:recent=3,sinks=0,streaming:sinks=2 keydiff --allocator loss all --json
holds "policies and allocators: the fewest tokens that hold on the searched texts" python - <<'P'
import json
r = json.load(open("log/out"))
s = r["searched"]
assert len(s) == 24 and {(x["policy"], x["allocator"]) for x in s} >= {("keydiff", "loss"), ("h2o", "funnel")}
best = [x for x in s if x["chosen"]]
assert len(best) == 1 and best[0]["holds"] and best[0]["mean_tokens"] == min(x["mean_tokens"] for x in s if x["holds"])
assert r["status"] == "met" and (r["policy"], r["allocator"]) == (best[0]["policy"], best[0]["allocator"])
P
for by in tokens bytes; do
    plan --target-kl 0.002 --policy scissorhands:recent=3 h2o:recent=3 window --allocator loss --compare $by --json
    cp log/out $by.out
done
# A head of this model has keys and values of 8 numbers; h2o stores a float for each token, window nothing.
holds "compared by bytes, another policy: what it stores counts, and keys and values in 16 bits" python - <<'P'
import json
for by, policy, key, each in ("tokens", "h2o", "mean_tokens", 36), ("bytes", "window", "mean_bytes", 32):
    r = json.load(open(by + ".out"))
    best = [x for x in r["searched"] if x["chosen"]]
    assert [x["policy"] for x in best] == [policy] == [r["policy"]], r["searched"]
    assert best[0][key] == min(x[key] for x in r["searched"] if x["holds"])
    assert best[0]["mean_bytes"] == each * best[0]["mean_tokens"], best
    assert abs(r["bytes_share"] - r["total_tokens"] * each / (8 * 40 * 32)) < 1e-9, r["bytes_share"]
P
plan --budget 0.5 --compare bytes
expect "a comparison without a target" 2 '' '--compare requires a target'
# In two of four layers of this model only the newest ten tokens are kept; its layers differ in width.
uneven=$checkpoints/modern/gemma4_kv_heads
for policy in window h2o:recent=3; do
    run plan -q --model "$uneven" --tokens small.jsonl --policy $policy --allocator uniform --sequences 20 --budget 0.5 \
        --kv-bits 16 -o uneven.json --json
    cp log/out planned.out
    run eval -q --model "$uneven" --tokens small.jsonl --plan uneven.json --kv-bits 16 --json
    cp log/out kept.out
    run eval -q --model "$uneven" --tokens small.jsonl --policy full --kv-bits 16 --json
    holds "$policy: the share of the bytes is that of the engine's caches, but for positions" python - <<'P'
import json
share = json.load(open("planned.out"))["bytes_share"]
kept, full = (json.load(open(f))["results"][0]["kv_bytes"] for f in ("kept.out", "log/out"))
assert abs(share - kept / full) < 0.03, (share, kept / full)
P
done
# Keys and values of 8 numbers: codes, and a scale and a zero point for each
for bits in 8 4; do
    plan --policy window --budget 0.5 --kv-bits $bits --allocator uniform --json
    holds "$bits bits: keys and values are rows of their own" python - $bits <<'P'
import json, sys
x = next(x for x in json.load(open("log/out"))["searched"] if x["policy"] == "window")
assert x["mean_bytes"] == x["mean_tokens"] * (2 * int(sys.argv[1]) + 8), x
P
done
run plan -q --model "$checkpoints/modern/paddleocr_vl" --tokens small.jsonl --policy h2o:recent=3 window --allocator uniform \
    --sequences 18 --target-kl 0.05 --compare bytes --json
holds "a policy that may keep nearly all is tried" python - <<'P'
import json
r = json.load(open("log/out"))
assert [x["policy"] for x in r["searched"]] == ["h2o", "window"], r["searched"]
least = min((x for x in r["searched"] if x["holds"]), key=lambda x: x["mean_bytes"])
assert least["chosen"] and r["compare"] == "bytes", r["searched"]
P
plan --target-kl 0.002 --compare size
expect "an unknown comparison" 2 '' '--compare: unknown value "size", expected one of tokens, bytes'
plan --target-kl 0.02 --policy all --time 1ms --json
holds "all policies with a time: the first is tried" python - <<'P'
import json
r = json.load(open("log/out"))
assert len(r["searched"]) == 1 and r["policy"] == "h2o" and r["status"] == "met"
P
plan --target-kl 0.02 --policy all --allocator uniform --json
holds "all policies: each that a live cache can run" python - <<'P'
import json
names = {s["policy"] for s in json.load(open("log/out"))["searched"]}
assert {"h2o", "window", "tova", "keydiff", "r-kv", "caote"} <= names and not names & {"full", "oracle", "observed"}, names
P
plan --target-kl 0.002 --policy h2o:recent=3 r-kv --allocator loss --search-first 16 --json
cp log/out hopeless.out
run plan -q --model "$model" --tokens texts.jsonl --policy r-kv --allocator greedy --sequences 24 --search-first 16 \
    --budget "$(sed -n 's/.*with \([0-9]*\) tokens a head and the budgets of greedy.*/\1/p' hopeless.out)" -o greedy.json
head -16 texts.jsonl >searched.jsonl
run eval -q --json --model "$model" --tokens searched.jsonl --plan greedy.json
holds "a policy that loses many times the target is not probed, and named" python - <<'P'
import json, re
r, live = json.load(open("hopeless.out")), json.load(open("log/out"))["results"][0]
assert [s["policy"] for s in r["searched"]] == ["h2o"] and [s["policy"] for s in r["left_out"]] == ["r-kv"], r
tokens, times = re.search(r"with (\d+) tokens a head .* loses ([0-9.]+) times the target", r["left_out"][0]["why"]).groups()
assert int(tokens) == r["searched"][0]["mean_tokens"] == live["budget_tokens"], (tokens, live)
assert float(times) > 4 and abs(float(times) * 0.002 / live["kl"] - 1) < 0.005, (times, live["kl"])
P
plan --target-kl 1 --policy h2o:recent=3 h2o:recent=36,sinks=1 --allocator loss --json
holds "a policy that keeps more than the best one needs is left out" python - <<'P'
import json
r = json.load(open("log/out"))
assert len(r["searched"]) == 1 and r["left_out"][0]["why"] == "it keeps at least 38 tokens a head, and the best one so far needs 4", r
assert r["left_out"][0]["knobs"].startswith("sinks=1,recent=36,"), r["left_out"]
P

# ---- a given budget ----

plan --allocator loss --budget 0.5 --json -o half.json --judged halves.jsonl
cp log/out half.out
run eval -q --json --model "$model" --tokens halves.jsonl --plan half.json
holds "a given budget: its cost on the judged sequences, and no promise" python - <<'P'
import json
r, p, live = json.load(open("half.out")), json.load(open("half.json")), json.load(open("log/out"))["results"][0]
assert r["status"] is None and "status" not in p and p["target"] is None and r["sequences_more"] is None
assert r["mean_tokens"] == 20 and r["total_tokens"] == 160 and r["sequences"] == 24
assert live["kl"] > 0 and abs(live["kl"] - r["kl"]) < 1e-9 and r["kl"] < r["kl_bound"]
assert {v["metric"] for v in p["evidence"]} == {"ppl_increase", "kl"} and p["evidence"][0]["sequences"] == 24
assert len(r["judged"]) == 1 and "sequences, with 50.0 % of the cache" in r["verdict"], r["verdict"]
P
for allocator in loss uniform; do
    plan --allocator $allocator --budget 600 --json
    expect "$allocator: a budget above the length is the full cache" 0 '"mean_tokens": 40,' ''
done
run plan -q --model "$model" --tokens pair.jsonl --policy h2o:recent=3 --budget 0.5 --json
expect "one searched and one judged text: what is seen" 0 '"mean_tokens": 20,' ''
plan --allocator loss,uniform --budget 20 --json
holds "of several allocators the one that loses less on the searched sequences" python - <<'P'
import json
s = json.load(open("log/out"))["searched"]
assert [x["mean_tokens"] for x in s] == [20, 20]
assert min(s, key=lambda x: x["bound"])["chosen"], s
P
refuse "fewer tokens than the policy protects" 2 '--budget: found 2 tokens of 40, but h2o protects 3' plan -q \
    --model "$model" --tokens texts.jsonl --policy h2o:recent=3 --budget 2
refuse "a budget and a target" 2 'exactly one target in the live model or a --budget' plan -q --model "$model" \
    --tokens texts.jsonl --policy h2o:recent=3 --budget 20 --target-kl 1

# ---- as evidence ----

ask() { run capacity --model "$model" --gpu H100-SXM --memory 4G --length 40 --db met.db "$@" --json; }
ask --max-ppl-increase 90%
holds "capacity takes a judged plan, with its bound, sequences and texts" python - <<'P'
import json
(c,), r = json.load(open("log/out"))["results"], json.load(open("met.out"))
assert c["measured_policy"] == "h2o" and abs(float(c["budget"]) - r["share"]) < 1e-4
assert abs(c["measured_value"] - r["ppl_increase"]) < 1e-9 and abs(c["measured_bound"] - r["ppl_increase_bound"]) < 1e-9
assert (c["measured_sequences"], c["measured_texts"], c["measured_length"]) == (24, 24, 40)
assert "texts.jsonl" in c["evidence"] and "judged on texts that its search did not use" in c["evidence"], c["evidence"]
P
bound=$(python -c 'import json; print(json.load(open("met.out"))["ppl_increase_bound"])')
ask --max-ppl-increase "$(python -c "print($bound * (1 - 1e-6))")"
expect "by its bound" 1 "" "is shown to raise .* the best is h2o"
run simulate --model "$model" --gpu H100-SXM --rate 5 --prompt 20 --output 20 --requests 10 --quality-db met.db \
    --max-ppl-increase 90% --json
expect "simulate, too" 0 "judged on texts that its search did not use" ""
plan --allocator loss --target-kl 0.002 --confidence 0.8 --db eighty.db
run capacity --model "$model" --gpu H100-SXM --memory 4G --length 40 --db eighty.db --max-ppl-increase 90%
expect "not one of less confidence than the others" 1 "" "contains no eval"
plan --allocator greedy --target-kl 10 --prefill 37 --db prompt.db --policy window
expect "a plan of texts that are mostly read before anything is evicted" 0 'met' ""
run capacity --model "$model" --gpu H100-SXM --memory 4G --length 40 --db prompt.db --max-ppl-increase 90%
expect "  not in capacity, as it keeps more than its budget" 1 "" "contains no eval .*kept more than its budget"

run eval --model "$model" --tokens texts.jsonl --length 30 --plan half.json --json
expect "eval: texts of another length than the plan's" 0 ppl \
    "half.json: made for texts of 40 tokens, these have up to 30: heads keep the same shares"
run eval --model "$model" --tokens texts.jsonl --plan half.json --json
holds "  nothing is said of its own length" test -z "$(grep 'made for texts' log/err)"

# ---- text under a plan ----

echo "[5, 9, 2, 7, 11, 3, 8, 4, 6, 10, 12, 14, 13, 15, 9, 1, 22, 17, 5, 30]" >prompt.ids
write() { run generate -q --model "$model" --tokens prompt.ids --max-tokens 21 "$@"; }
python - <<'P'
import json
p = json.load(open("half.json"))
even = [[20] * len(row) for row in p["budgets"]]
json.dump(dict(p, budgets=even, shares=[[0.5] * len(row) for row in even], total_tokens=160), open("even.json", "w"))
P
write --policy h2o:recent=3 --budget 0.5
cp log/out budget.text
write --plan even.json
holds "generate: an even plan is a budget" cmp log/out budget.text
for mode in blocks once stream; do
    write --plan half.json --prefill-mode $mode --dump-kept kept.jsonl --json
    holds "generate ($mode): each head keeps its own budget" python - <<'P'
import json
p, r = json.load(open("half.json")), json.load(open("log/out"))
last = {}
for line in open("kept.jsonl"):
    k = json.loads(line)
    last[k["layer"], k["head"]] = len(k["kept"])
assert r["plan"] == "half.json" and r["policy"] == "h2o" and r["budget_tokens"] == 20, r
own = {(l, h): b for l, row in enumerate(p["budgets"]) for h, b in enumerate(row)}
assert last == own and len(set(own.values())) > 1, (last, own)
P
done
refuse "generate: a plan and a policy" 2 '--plan FILE sets policy' generate -q --model "$model" --tokens prompt.ids \
    --plan half.json --policy h2o --budget 8
refuse "generate: a plan of another model" 1 'half.json: the plan is for' generate -q --model "$checkpoints/llama_gqa" \
    --tokens prompt.ids --plan half.json
refuse "generate: not a plan" 1 'prompt.ids' generate -q --model "$model" --tokens prompt.ids --plan prompt.ids

# ---- from a trace ----

run trace -q --model "$model" --tokens texts.jsonl --db traced.db
run plan -q --json --model "$model" --db traced.db --policy h2o:recent=3 --target-kl 0.002 \
    --allocator loss --sequences 24
holds "the texts of a trace: the same plan" python - <<'P'
import json
a, b = json.load(open("log/out")), json.load(open("met.out"))
assert [l["heads"] for l in a["layers"]] == [l["heads"] for l in b["layers"]] and a["kl_bound"] == b["kl_bound"]
P
refuse "a trace of another model" 1 'texts of another model' plan -q --model "$checkpoints/llama_gqa" --db traced.db \
    --target-kl 0.002
refuse "loss without a live model" 2 'needs the losses of the live model' plan -q --db traced.db --policy h2o:recent=3 \
    --budget 0.5 --allocator loss

# ---- models whose layers differ, texts of two tokens ----

hybrid=$checkpoints/modern/qwen3_5_moe
python - <<'P'
import json
with open("small.jsonl", "w") as f:             # token ids below 64
    for line in open("texts.jsonl"):
        print([t // 2 for t in json.loads(line)], file=f)
P
for allocator in loss greedy uniform; do
    run plan -q --json --model "$hybrid" --tokens small.jsonl --policy h2o:recent=3 --allocator $allocator \
        --target-kl 0.01 -o hybrid.json --judged hybrid.jsonl
    cp log/out hybrid.out
    run eval -q --json --model "$hybrid" --tokens hybrid.jsonl --plan hybrid.json
    holds "$allocator: layers without attention have no part in the budgets, others have all" python - <<'P'
import json
r, live = json.load(open("hybrid.out")), json.load(open("log/out"))["results"][0]
assert abs(live["kl"] - r["kl"]) < 1e-9 and live["budget_tokens"] == r["mean_tokens"], (live["budget_tokens"], r)
assert r["sequences"] == 28 and 0.05 < r["share"] < 1 and r["kl"] > 0
P
done
run plan -q --json --model "$hybrid" --tokens small.jsonl --policy h2o:recent=3 --allocator all --target-kl 0.01
holds "all allocators: those that can do without some layers" python - <<'P'
import json
assert {s["allocator"] for s in json.load(open("log/out"))["searched"]} == {"uniform", "funnel", "pyramid", "greedy", "loss"}
P
python -c 'import random
random.seed(1)
for _ in range(50): print([random.randrange(1, 63) for _ in range(12)])' >twelve.jsonl
chunks="--model $checkpoints/modern/chunks --tokens twelve.jsonl --policy h2o:recent=1 --target-kl 0.001"
run plan -q --json $chunks --allocator all
holds "all allocators: one without its evidence is left out, with the reason" python - <<'P'
import json
r = json.load(open("log/out"))
assert len(r["searched"]) == 7 and all(s["allocator"] != "persistence" for s in r["searched"]), r["searched"]
assert len(r["left_out"]) == 1 and r["left_out"][0]["allocator"] == "persistence", r["left_out"]
assert "persistence ratios, which layer 0 does not have" in r["left_out"][0]["why"], r["left_out"]
P
refuse "an allocator without its evidence, by its name" 1 'persistence ratios, which layer 0 does not have' \
    plan -q $chunks --allocator all,persistence
refuse "an allocator that looks at every layer" 2 'the allocator entropy needs the attention of every layer, but layer 0' plan -q \
    --model "$hybrid" --tokens small.jsonl --policy h2o:recent=3 --allocator entropy --target-kl 0.01
python3 -c 'import random
random.seed(2)
for _ in range(20): print([random.randrange(1, 47) for _ in range(9)] + [49] + [random.randrange(1, 47) for _ in range(9)])' >drawn.jsonl
run trace -q --model "$checkpoints/modern/chameleon" --tokens drawn.jsonl --db drawn.db
refuse "recorded texts with tokens that are never predicted" 1 'sequence 1, element 9: found token 49, expected none from 48 to 5' \
    plan -q --model "$checkpoints/modern/chameleon" --db drawn.db --policy h2o:recent=2 --target-ppl-increase 1%
sed -E 's/^\[([0-9]+, [0-9]+),.*/[\1]/' texts.jsonl >pairs.jsonl
run plan -q --json --model "$model" --tokens pairs.jsonl --target-kl 0.01
expect "texts of two tokens: one stays" 0 '"mean_tokens": 1,' ''

# The searched texts lose nothing, so the first budget that is judged is too small: the second walk, from large budgets
# down to that one, with bounds of 99.5 % (2.807: Student's t of 23 degrees of freedom; skewness makes them larger).
python3 - >two.jsonl <<'P'
import random
r = random.Random(5)
for i in range(40):
    print([5] * 40 if i < 16 else [r.randrange(4, 128) for _ in range(40)])
P
run plan -q --json --model "$model" --tokens two.jsonl --policy h2o:recent=3 --sequences 24 --search-first 16 \
    --allocator uniform --target-kl 0.02 -o second.json --judged second.jsonl
cp log/out second.out
run eval -q --json --model "$model" --tokens second.jsonl --plan second.json
holds "the first judged budget fails: a second walk finds a larger one, by a stricter bound" python - <<'P'
import json
r, live = json.load(open("second.out")), json.load(open("log/out"))["results"][0]
judged, found = r["judged"], next(s["mean_tokens"] for s in r["searched"] if s["chosen"])
assert r["status"] == "met" and judged[-1]["mean_tokens"] == int(1.5 * found + 0.5), judged
assert judged[-1]["bound"] > 0.02 and judged[0]["mean_tokens"] == 33, judged
assert r["mean_tokens"] > judged[-1]["mean_tokens"] and r["kl_bound"] <= 0.02 and abs(live["kl"] - r["kl"]) < 1e-9
assert (r["kl_bound"] - r["kl"]) / live["kl_stderr"] >= 2.807, (r["kl_bound"], live)
assert [j["confidence"] for j in judged] == [0.995] * (len(judged) - 1) + [0.955], judged
P
python3 - >neither.jsonl <<'P'
import random
r = random.Random(5)
for i in range(26):
    print([5] * 10 if i < 12 else [r.randrange(4, 128) for _ in range(40)])
P
for target in 0.01 0.03 0.05 0.055 0.06 0.1; do
    run plan -q --json --model "$model" --tokens neither.jsonl --policy scissorhands --allocator uniform \
        --search-first 12 --sequences 14 --target-kl $target
    cp log/out "neither-$target.out"
done
holds "neither walk, or one of them: what is shown is the judged budget's bound, and it decides" python - <<'P'
import glob, json
found = set()
for path in glob.glob("neither-*.out"):
    r, target = json.load(open(path)), float(path[8:-4])
    found.add((r["status"], len({j["confidence"] for j in r["judged"]})))
    assert (r["status"] == "met") == (r["kl_bound"] <= target), (path, r["status"], r["kl_bound"])
    assert any(abs(j["bound"] - r["kl_bound"]) < 1e-12 for j in r["judged"]), path
    means = [j["mean_tokens"] for j in r["judged"]]
    assert len(means) == len(set(means)), means
assert ("not_shown", 2) in found, found
P

# ---- not shown ----

run plan -q --json --model "$model" --tokens few.jsonl --policy h2o:recent=3 --target-kl 0.02 -o few.json
cp log/out few.out
holds "too few sequences: nothing is shown, and how many more are needed" python - <<'P'
import json
r, p = json.load(open("few.out")), json.load(open("few.json"))
assert r["status"] == "not_shown" == p["status"] and r["sequences"] == 7 and r["sequences_more"] >= 5, r
assert "not shown" in r["verdict"] and "more" in r["verdict"] and p["total_tokens"] > 0
P
run eval -q --model "$model" --tokens few.jsonl --plan few.json
expect "it is a plan all the same" 0 'h2o' ''
plan --target-kl 1e-9 --json -o none.json
cp log/out none.out
holds "a target that cannot be met: the best there is" python - <<'P'
import json
r = json.load(open("none.out"))
assert r["status"] == "not_shown" and "best plan" in r["verdict"] and r["kl_bound"] > 1e-9, r["verdict"]
assert r["kl_bound"] == min(j["bound"] for j in r["judged"]) and json.load(open("none.json"))["status"] == "not_shown"
P

plan --target-ppl-increase 0.0001% --json
cp log/out none.out
holds "a target that is too small for two decimals: the verdict shows more" python - <<'P'
import json, re
r = json.load(open("none.out"))
low, high = re.search(r"changes by ([+-][0-9.]+) to ([+-][0-9.]+) %", r["verdict"]).groups()
assert r["status"] == "not_shown" and len(high.split(".")[1]) == 5 and r["ppl_increase_bound"] > 1e-6, r["verdict"]
assert abs(float(high) / 100 - r["ppl_increase_bound"]) < 1e-7 and float(low) < float(high), r
P
run plan -q --model "$model" --tokens texts.jsonl --policy h2o:recent=3 --sequences 11 --target-kl 0.02 --json
holds "eleven sequences: no promise" python - <<'P'
import json
r = json.load(open("log/out"))
assert r["status"] == "not_shown" and (r["sequences"], r["sequences_more"]) == (11, 0), r
assert "a larger budget and at least 1 more are needed" in r["verdict"], r["verdict"]
P
refuse "longer than the model's context" 2 "--length: found 100000, expected at most the model's 160 positions" plan -q \
    --model "$model" --tokens texts.jsonl --target-kl 0.02 --length 100000 -o out/long.json --db out/long.db
plan --target-kl 0.02 --length 60 --json
expect "--length above every text: the budgets are for the longest text" 0 '"n_token": 40,' ''
for confidence in 0 0.49 1 nan; do
    refuse "a confidence of $confidence" 2 '--confidence' plan -q --model "$model" --tokens texts.jsonl --target-kl 0.02 \
        --confidence $confidence -o out/confidence.json --db out/confidence.db
done
for confidence in 0.5 0.999; do
    plan --target-kl 0.02 --confidence $confidence --json
    cp log/out "at$confidence.out"
done
holds "more confidence takes more tokens, and the evidence says which it has" python - <<'P'
import json
low, high = (json.load(open(f"at{c}.out")) for c in ("0.5", "0.999"))
assert low["status"] == high["status"] == "met" and low["total_tokens"] < high["total_tokens"], (low, high)
assert [e["confidence"] for r in (low, high) for e in r["evidence"]] == [0.5, 0.5, 0.999, 0.999], low["evidence"]
P
plan --target-kl 0.02 --confidence 0.999
expect "its table, too" 0 'confidence  *sequences' ''
plan --target-kl 0.02 --policy all --time 1s --json
holds "all policies with a second: one of those tried in time is judged" python - <<'P'
import json
r = json.load(open("log/out"))
assert r["status"] == "met" and sum(s["chosen"] for s in r["searched"]) == 1, r
P

# ---- killed and resumed ----

again() { run plan -q --json --model "$model" --tokens texts.jsonl --policy h2o:recent=3 window --target-kl 0.002 "$@"; }
mkdir whole half
again --db whole/p.db -o whole/p.json
cp log/out whole/out
cp whole/p.db half/p.db
python - <<'P'
import sqlite3
db = sqlite3.connect("half/p.db")
last = [s for s, in db.execute("SELECT settings FROM result GROUP BY settings ORDER BY min(rowid)")]
for s in last[len(last) // 2:]:
    db.execute("DELETE FROM result WHERE settings = ?", (s,))
db.commit()
P
again --db half/p.db -o half/p.json
holds "half of what was measured: the rest is measured again, to the same bytes" cmp half/p.json whole/p.json
cp log/out half/out
sed -i 's/half\//whole\//' half/out
holds "and the same results" cmp half/out whole/out
mkdir killed
for t in 0.05 0.15 0.3 0.6; do
    "$SHEARS" plan -q --model "$model" --tokens texts.jsonl --policy h2o:recent=3 window --target-kl 0.002 \
        --db killed/p.db -o killed/p.json >/dev/null 2>&1 &
    sleep $t
    kill -9 $! 2>/dev/null
    wait $! 2>/dev/null
done
touch killed/p.db.rows-killed killed/p.db.rows-of-others killed/p.db.rows-in_use killed/p.db.rows-making.shears-new
exec 9<killed/p.db.rows-in_use
flock 9
again --db killed/p.db -o killed/p.json
exec 9<&-
holds "killed four times: the same bytes" cmp killed/p.json whole/p.json
holds "  temporary stores that killed plans left are removed; one in use and other files are not" \
    [ "$(cd killed && echo p.db.rows-*)" = "p.db.rows-in_use p.db.rows-of-others" ]

# ---- refused ----

cp -r "$model" nan && chmod -R u+w nan
python - <<'P'
import json, struct
path = "nan/model.safetensors"
data = bytearray(open(path, "rb").read())
n = struct.unpack("<Q", data[:8])[0]
tensors = json.loads(data[8:8 + n])
for name in tensors:                    # finite numbers whose sum is not
    if name.endswith("fc2.bias"):
        at = 8 + n + tensors[name]["data_offsets"][0]
        data[at:at + 4] = struct.pack("<f", 3e38)
open(path, "wb").write(data)
P
refuse "logits that are no numbers" 1 'nan: .*texts.jsonl.*logits that are not finite' plan -q --model nan --tokens \
    texts.jsonl --policy h2o:recent=3 --target-kl 0.002 -o out/nan.json --db out/nan.db
sed '18s/, [0-9]*/, 128/' texts.jsonl >beyond.jsonl
refuse "a token that the model does not have" 1 'beyond.jsonl: line 18: element 1 .*expected a whole number from 0 to 127' \
    plan -q --model "$model" --tokens beyond.jsonl --target-kl 0.002 -o out/beyond.json --db out/beyond.db
sed '18s/.*/x/' texts.jsonl >junk.jsonl
refuse "a line that is no text" 1 'junk.jsonl: line 18 is not JSON' plan -q --model "$model" --tokens junk.jsonl \
    --target-kl 0.002 -o out/junk.json --db out/junk.db
: >empty.jsonl
refuse "no text in the file" 1 'empty.jsonl: found no sequence' plan -q --model "$model" --tokens empty.jsonl \
    --target-kl 0.002 -o out/empty.json --db out/empty.db
mkdir words
cp "$SH_GOLDEN"/tasks/model/* "$tokenizer"/{vocab.json,merges.txt,special_tokens_map.json,tokenizer_config.json} words
printf '{"text": "a"}\n{"txt": "b"}\n' >fields.jsonl
refuse "a line without its field" 1 'fields.jsonl: line 2: no text in field "text"' plan -q --model words \
    --jsonl fields.jsonl --target-kl 0.002 -o out/fields.json --db out/fields.db
printf 'And it \377\376 came' >bytes.txt
refuse "a text that is not UTF-8" 1 'bytes.txt: the text is not UTF-8' plan -q --model words --text bytes.txt \
    --target-kl 0.002 -o out/bytes.json --db out/bytes.db
refuse "one sequence" 1 'found 1 sequence' plan -q --model "$model" --tokens one.jsonl --target-kl 0.002
refuse "two targets" 2 'exactly one target' plan -q --model "$model" --tokens texts.jsonl --target-kl 1 --target-ppl-increase 1%
refuse "a replay's target with it" 2 'exactly one target' plan -q --model "$model" --tokens texts.jsonl --target-kl 1 \
    --target-recall 0.9
refuse "no model" 2 'requires --model' plan -q --tokens texts.jsonl --target-kl 1
refuse "no texts" 2 'requires one of --text' plan -q --model "$model" --target-kl 1
refuse "no store" 1 'absent.db' plan -q --model "$model" --db out/absent.db --target-kl 1
refuse "texts without such a target" 2 'require --target-ppl-increase' plan -q --tokens texts.jsonl --policy h2o \
    --budget 0.5 --db met.db
refuse "an increase that is none" 2 'target-ppl-increase' plan -q --model "$model" --tokens texts.jsonl \
    --target-ppl-increase nan
refuse "1 is 100 %" 2 'found 1, which is 100 %' plan -q --model "$model" --tokens texts.jsonl --target-ppl-increase 1
refuse "more than all answers" 2 'target-answers' plan -q --model "$model" --tokens texts.jsonl --target-answers 1.5
refuse "answers without a field" 2 'requires --answers' plan -q --model "$model" --tokens texts.jsonl --target-answers 0.5
refuse "the future" 2 'future attention' plan -q --model "$model" --tokens texts.jsonl --target-kl 1 --policy oracle
refuse "the full cache" 2 'keeps every token' plan -q --model "$model" --tokens texts.jsonl --target-kl 1 --policy full
refuse "a policy that protects all" 2 'protects 64 tokens' plan -q --model "$model" --tokens texts.jsonl --target-kl 1 \
    --policy h2o:recent=64
refuse "a prompt's policy without prompt" 2 'requires --prefill' plan -q --model "$model" --tokens texts.jsonl \
    --target-kl 1 --policy observed
refuse "a prefill as long as the texts" 2 'prefill: found 39, expected at most 38' plan -q --model "$model" \
    --tokens texts.jsonl --target-kl 1 --prefill 39
refuse "the plan into the texts" 2 'texts.jsonl' plan -q --model "$model" --tokens texts.jsonl --target-kl 1 -o texts.jsonl
sed 's/"not_shown"/"perhaps"/' few.json >bad.json
refuse "a plan with another status" 1 'bad.json: .*status.*perhaps' eval -q --model "$model" --tokens texts.jsonl \
    --plan bad.json
finish
