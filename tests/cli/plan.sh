#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shears plan and replay --allocator: budgets sum exactly, a target is met and one token less does not meet it,
# the file says what was measured and reads back, and what makes no sense is refused.
. "$(dirname "$0")/lib.sh"

golden_tokens opt >tokens.jsonl
golden_tokens llama_gqa >gqa.jsonl
traced() { # store, model, tokens, arguments...
    local db=$1 model=$2 tokens=$3
    shift 3
    run trace --db "$db" -q --model "$checkpoints/$model" --tokens "$tokens" --codec f32 "$@"
    [ $status = 0 ] || { not_ok "trace $model into $db"; sed 's/^/# /' log/err; }
}
traced opt.db opt tokens.jsonl --vectors v
traced gqa.db llama_gqa gqa.jsonl
traced half.db opt tokens.jsonl --layers 1-1
head -c 200 tokens.jsonl | head -n 1 | cut -d, -f1-30 | sed 's/$/]/' >short.jsonl
head -n 1 tokens.jsonl >>short.jsonl
traced mixed.db opt short.jsonl
python -c 'import json
t = max(map(json.loads, open("tokens.jsonl")), key=len)
print(t[:60]); print(t[20:80])' >even.jsonl
traced even.db opt even.jsonl --vectors v

# ---- the allocators ----

allocators="uniform funnel pyramid persistence entropy adakv greedy"
for name in $allocators; do
    for db in even gqa mixed; do
        run plan --db $db.db -q --json --policy h2o:recent=3 --budget 0.3 --allocator $name -o plan.$db.$name.json
        [ $status = 0 ] || { not_ok "plan $name on $db"; sed 's/^/# /' log/err; }
        run replay --db $db.db -q --json --policy h2o:recent=3 --budget 0.3 --allocator $name
        cp log/out replay.$db.$name.json
    done
done
holds "every allocator: exact sums, floors, and what a replay under these budgets measures" python - $allocators <<'P'
import json, sys
for name in sys.argv[1:]:
    for db in ("even", "gqa", "mixed"):
        p, r = json.load(open(f"plan.{db}.{name}.json")), json.load(open(f"replay.{db}.{name}.json"))["results"][0]
        m, n = p["model"], p["n_token"]
        flat = [b for row in p["budgets"] for b in row]
        mean = int(0.3 * n + 0.5)
        assert len(p["budgets"]) == m["n_layer"] and all(len(row) == m["n_kv_head"] for row in p["budgets"]), p
        assert sum(flat) == len(flat) * mean == p["total_tokens"], (name, db, flat, mean)
        assert all(4 <= b <= n for b in flat), (name, flat)
        assert all(abs(s - b / n) < 1e-9 for rs, rb in zip(p["shares"], p["budgets"]) for s, b in zip(rs, rb))
        assert r["allocator"].split(":")[0] == name == p["allocator"]["name"], r["allocator"]
        value = {e["metric"]: e["value"] for e in p["evidence"]}
        if db == "even":                # of one length, else a plan scales its budgets, and a replay solves anew
            assert abs(value["kept_mass"] - r["kept_mass"]) < 1e-9, (name, db, value, r["kept_mass"])
            assert abs(value["output_error"] - r["output_error"]) < 1e-9
        rows = p["budgets"]
        if name == "pyramid": assert sum(rows[0]) > sum(rows[-1]), rows
        if name == "funnel": assert sum(rows[0]) < sum(rows[-1]), rows
        if name == "adakv": assert len({sum(row) for row in rows}) == 1 and max(flat) > min(flat), rows
        if name == "uniform": even = value["kept_mass"]
    assert value["kept_mass"] > 0
for db in ("even", "gqa", "mixed"):
    mass = {name: json.load(open(f"replay.{db}.{name}.json"))["results"][0]["kept_mass"] for name in ("uniform", "greedy")}
    assert mass["greedy"] >= mass["uniform"] - 1e-3, (db, mass)
P
run replay --db even.db -q --json --policy h2o:recent=3 window --budget 0.3,40 --allocator pyramid
holds "several policies and budgets under an allocator, each as if alone" python - <<'P'
import json
said = json.load(open("log/out"))["results"]
alone = json.load(open("replay.even.pyramid.json"))["results"][0]
assert [(r["policy"], r["budget"]) for r in said] == [(p, b) for p in ("h2o", "window") for b in (0.3, 40)]
assert said[0] == alone and len({r["kept_mass"] for r in said}) == 4, said
P
run replay --db even.db -q --policy h2o:recent=3 --budget 0.3 --allocator pyramid
expect "asked again: from the store" 0 '1 of 1 rows .*store; --force' ''
run replay --db even.db -q --policy h2o:recent=3 --budget 0.3 --allocator pyramid:beta=4
holds "other knobs of the allocator are another result" [ "$(grep -c 'from the store' log/out)" = 0 ]

# ---- a target ----

run plan --db opt.db -q --json --policy h2o:recent=3 --target-recall 0.9 -o plan.json
cp log/out said.json
shares=$(python -c 'import json; n = int(json.load(open("plan.json"))["mean_tokens"]); print("%.9f,%.9f" % (n / 88, (n - 1) / 88))')
run replay --db opt.db -q --json --policy h2o:recent=3 --budget "$shares"
cp log/out near.json
holds "a kept mass: met, and one token less does not meet it" python - <<'P'
import json
said, p = json.load(open("said.json")), json.load(open("plan.json"))
mass, less = [r["kept_mass"] for r in json.load(open("near.json"))["results"]]
found = int(p["mean_tokens"])
assert mass >= 0.9 > less, (found, mass, less)
assert said["smaller_mean_tokens"] == found - 1 and abs(said["smaller_value"] - less) < 1e-9
assert abs(p["evidence"][0]["value"] - mass) < 1e-9 and p["evidence"][0]["metric"] == "kept_mass"
assert p["target"] == {"metric": "kept_mass", "value": 0.9}
assert found == said["mean_tokens"] and said["total_tokens"] == p["total_tokens"]
assert [l["layer"] for l in said["layers"]] == [0, 1]
assert [[h["tokens"] for h in l["heads"]] for l in said["layers"]] == p["budgets"]
P
run plan --db opt.db -q --json --policy h2o:recent=3 --target-error 0.05 -o error.json
cp log/out said.json
shares=$(python -c 'import json; n = int(json.load(open("error.json"))["mean_tokens"]); print("%.9f,%.9f" % (n / 88, (n - 1) / 88))')
run replay --db opt.db -q --json --policy h2o:recent=3 --budget "$shares"
holds "an output error: met, and one token less does not meet it" python - <<'P'
import json
said, p = json.load(open("said.json")), json.load(open("error.json"))
error, more = [r["output_error"] for r in json.load(open("log/out"))["results"]]
assert error <= 0.05 < more, (p["mean_tokens"], error, more)
assert said["smaller_mean_tokens"] == p["mean_tokens"] - 1 and abs(said["smaller_value"] - more) < 1e-9
P
run plan --db opt.db -q --json --policy h2o:recent=3 --target-recall 0.9 --allocator greedy -o greedy.json
holds "greedy needs fewer tokens for the same target" python - <<'P'
import json
even, greedy = json.load(open("plan.json")), json.load(open("greedy.json"))
assert greedy["total_tokens"] < even["total_tokens"], (greedy["total_tokens"], even["total_tokens"])
assert greedy["evidence"][0]["value"] >= 0.9
P
run plan --db opt.db -q --policy h2o:recent=3 --target-recall 0 -o least.json
holds "a target that the smallest cache meets: the smallest" python - <<'P'
import json
assert {b for row in json.load(open("least.json"))["budgets"] for b in row} == {4}
P
run plan --db opt.db -q --policy window --target-recall 1 -o most.json
holds "all of the mass: the full cache" python - <<'P'
import json
assert {b for row in json.load(open("most.json"))["budgets"] for b in row} == {88}
P

# ---- the file ----

holds "what the file says of where it comes from" python - <<'P'
import json, subprocess
p = json.load(open("plan.json"))
assert p["format"] == "shears-plan" and p["version"] == 1 and p["n_token"] == 88 and p["prefill"] == 0
assert p["policy"]["name"] == "h2o" and "recent=3" in p["policy"]["knobs"] and p["rows"] == "renormalised"
assert p["model"]["n_layer"] == 2 and p["model"]["n_head"] == p["model"]["n_kv_head"] == 4 and p["model"]["fingerprint"]
e = p["evidence"][0]
assert e["store"] == "opt.db" and e["sequences"] > 1 and e["tokens"] > 88 and e["program"] and e["run"] == 0
assert e["low"] <= e["value"] <= e["high"], e
assert {"kept_mass", "kept_mass_no_sink", "pivotal_recall", "output_error"} == {e["metric"] for e in p["evidence"]}
P
if command -v sqlite3 >/dev/null; then
    sqlite3 opt.db "SELECT json FROM plan WHERE name = 'plan.json'" >kept.json
    holds "the plan is kept in the store, once" cmp <(cat plan.json; echo) kept.json
else
    skip "the plan is kept in the store, once" "sqlite3 is not here"
fi
run plan --db opt.db -q --json --plan plan.json
holds "a plan measured again says the same" python - <<'P'
import json
said, p = json.load(open("log/out")), json.load(open("plan.json"))
for a, b in zip(said["evidence"], p["evidence"]):
    assert a["metric"] == b["metric"] and abs(a["value"] - b["value"]) < 1e-9, (a, b)
P
run plan --db mixed.db -q --json --plan plan.json -o other.json
holds "a plan measured on other texts: the same budgets, other evidence" python - <<'P'
import json
p, q = json.load(open("plan.json")), json.load(open("other.json"))
assert p["budgets"] == q["budgets"] and q["evidence"][0]["store"] == "mixed.db"
assert p["evidence"][0]["value"] != q["evidence"][0]["value"]
P
chmod a-w gqa.db
run plan --db gqa.db -q --csv --policy window --budget 9
holds "a store that cannot be written to is planned for all the same" [ $status = 0 ]
chmod u+w gqa.db

# ---- perplexities ----

refuse "no evaluations" 1 'opt.db: h2o:recent=3 was never evaluated with prefill 0; no policy of this model was' \
    plan --db opt.db --policy h2o:recent=3 --target-ppl 300 -o out/plan.json
expect "no evaluations: how to have some" 1 '' 'shears eval .* --policy h2o:recent=3 --budget 0.1,0.2,0.5 --prefill 0 --db opt.db$'
run eval --model "$checkpoints/opt" --tokens tokens.jsonl --db opt.db -q --json --policy h2o:recent=3 --budget 10,20,40,60
cp log/out eval.json
[ $status = 0 ] || { not_ok "eval"; sed 's/^/# /' log/err; }
goal=$(python -c 'import json
ppl = sorted(r["ppl"] for r in json.load(open("eval.json"))["results"] if r["policy"] == "h2o")
print((ppl[0] + ppl[1]) / 2)')
run plan --db opt.db -q --json --policy h2o:recent=3 --target-ppl "$goal" -o ppl.json
holds "the smallest evaluated budget that meets a perplexity" python - "$goal" <<'P'
import json, sys
rows = [r for r in json.load(open("eval.json"))["results"] if r["policy"] == "h2o"]
best = min(r["budget"] for r in rows if r["ppl"] <= float(sys.argv[1]))
p = json.load(open("ppl.json"))
assert p["mean_tokens"] == best, (p["mean_tokens"], best)
e = {e["metric"]: e for e in p["evidence"]}["ppl"]
assert abs(e["value"] - [r["ppl"] for r in rows if r["budget"] == best][0]) < 1e-6 and e["low"] < e["value"] < e["high"]
P
refuse "a perplexity that nothing has" 1 'budget .* perplexity 1:' \
    plan --db opt.db --policy h2o:recent=3 --target-ppl 1 -o out/plan.json

# ---- refusals ----

refuse "a plan into the store" 2 'input file opt.db' plan --db opt.db --policy window --budget 9 -o opt.db
refuse "no store" 2 "plan .*--db FILE" plan --policy window --budget 9
refuse "no policy" 2 "plan .*--policy NAME" plan --db opt.db --budget 9
refuse "no target" 2 "plan .*--budget, --target-recall" plan --db opt.db --policy window
refuse "two targets" 2 "plan .*--budget, --target-recall" \
    plan --db opt.db --policy window --target-recall 0.9 --budget 9
refuse "a kept mass above 1" 2 'target-recall' plan --db opt.db --policy window --target-recall 1.1
refuse "an error that even the full cache has" 1 'opt.db: .*output error of 0: the full cache has' \
    plan --db opt.db --policy window --target-error 0 -o out/plan.json
refuse "an error without values" 1 'gqa.db: --target-error .*values.* run 1' \
    plan --db gqa.db --policy window --target-error 0.1 -o out/plan.json
refuse "an unknown policy" 2 'unknown policy "h20"' plan --db opt.db --policy h20 --budget 9
refuse "a policy that looks into the future" 2 '--policy oracle: ' \
    plan --db opt.db --policy oracle --budget 9
refuse "an unknown allocator" 2 'unknown allocator "pyramyd"' plan --db opt.db --policy window --budget 9 --allocator pyramyd
expect "an unknown allocator: the nearest names" 2 '' 'did you mean pyramid'
refuse "an unknown allocator of a replay" 2 'unknown allocator "gready"' replay --db opt.db --allocator gready
refuse "an allocator's knob" 2 'pyramid: beta=0, expected a number from 1' \
    plan --db opt.db --policy window --budget 9 --allocator pyramid:beta=0
refuse "even budgets are what is evaluated" 2 '--target-ppl .*--allocator uniform' \
    plan --db opt.db --policy h2o --target-ppl 9 --allocator greedy
refuse "a budget below what is protected" 2 'budget 8 is 8 tokens, .*h2o protects 8' \
    plan --db opt.db --policy h2o:recent=8 --budget 8 -o out/plan.json
refuse "layers that were not traced" 1 'half.db: run 1: .*layers 1-1 of 2' \
    plan --db half.db --policy window --budget 9 -o out/plan.json
refuse "a ratio that no layer has" 1 'the allocator persistence needs persistence ratios, which layer 0 does not have' \
    plan --db opt.db --policy window --budget 9 --allocator persistence:recent=500 -o out/plan.json
refuse "a file that cannot be written" 1 'nowhere/plan.json' plan --db opt.db --policy window --budget 9 -o nowhere/plan.json
refuse "a plan for another model" 1 'plan.json: .* opt .2 layers of 4 KV heads.*llama_gqa has' \
    plan --db gqa.db --plan plan.json
sed 's/"fingerprint": "/&f/' plan.json >twin.json
refuse "a plan for another model of this shape" 1 'twin.json: .* opt .fingerprint f' plan --db opt.db --plan twin.json
refuse "a plan and a policy" 2 '--plan FILE .*policy' plan --db opt.db --plan plan.json --policy window
changed() { # description, sentence, Python that changes p
    python -c "import json
p = json.load(open('plan.json'))
$3
json.dump(p, open('bad.json', 'w'))"
    refuse "$1" 1 "bad.json: $2" plan --db opt.db --plan bad.json
}
changed "a plan: another version" '.*version 2, expected 1' 'p["version"] = 2'
changed "a plan: no plan" 'not a plan: "format"' 'p["format"] = "x"'
changed "a plan: a budget above the length" '"budgets": layer 1, head 2: .* 4 to 88' 'p["budgets"][1][2] = 89'
changed "a plan: a budget of nothing" '"budgets": layer 0, head 0: ' 'p["budgets"][0][0] = 3'
changed "a plan: heads missing" '"shares": layer 1: found 4 heads, expected 3 as in its budgets' 'del p["budgets"][1][0]'
changed "a plan: heads missing everywhere" 'the plan has budgets for 3 KV heads of layer 1, but .* has 4 there' \
    'p["total_tokens"] -= p["budgets"][1].pop(); p["shares"][1].pop()'
changed "a plan: heads that are too many" '"budgets": layer 1: found 5 heads, expected at most the model.s 4 KV heads' \
    'p["budgets"][1].append(10)'
changed "a plan: next to no heads" '"budgets": found 1 heads, expected at least one in 64 of the model.s 4096 layers of 4096 KV' \
    'p["model"].update(n_layer=4096, n_head=4096, n_kv_head=4096); p["budgets"] = 4095 * [[]] + [[20]]; p["shares"] = 4095 * [[]] + [[20 / p["n_token"]]]; p["total_tokens"] = 20'
changed "a plan: no heads" '"budgets": found no head' \
    'p["budgets"] = p["shares"] = [[] for _ in p["budgets"]]'
changed "a plan: a layer that is a number" '"budgets": layer 0: found an integer, expected the budgets' 'p["budgets"][0] = 7'
changed "a plan: layers missing" '"budgets": found 1 layers, .*2' 'del p["budgets"][1]'
changed "a plan: shares that lie" '"shares": layer 0, head 1: ' 'p["shares"][0][1] += 0.01'
changed "a plan: a sum that lies" '"total_tokens": found 1, expected .*budgets' 'p["total_tokens"] = 1'
changed "a plan: an unknown policy" 'unknown policy "h3o"' 'p["policy"]["name"] = "h3o"'
changed "a plan: evidence without a value" '"evidence" 0: "value": found a string, expected a number' 'p["evidence"][0]["value"] = "high"'
changed "a plan: no prefill" '"prefill": found nothing, expected a whole number' 'del p["prefill"]'
head -c 300 plan.json >bad.json
refuse "a plan that was cut" 1 'bad.json: expected a plan .* line' plan --db opt.db --plan bad.json
refuse "a plan that is not there" 1 'none.json: cannot be read: No such file' plan --db opt.db --plan none.json
finish
