#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shears theory: its figures follow from exported heads, it says plainly what does not hold, results are
# kept; and the figures that are drawn of replays, of the theory and of plans.
. "$(dirname "$0")/lib.sh"

golden_tokens opt >tokens.jsonl
golden_tokens llama_gqa >gqa.jsonl
traced() { # store, model, tokens, arguments...
    local db=$1 model=$2 tokens=$3
    shift 3
    run trace --db "$db" -q --model "$checkpoints/$model" --tokens "$tokens" --codec f32 "$@"
    [ $status = 0 ] || { not_ok "trace $model into $db"; sed 's/^/# /' log/err; }
}
traced opt.db opt tokens.jsonl --vectors qkv
traced gqa.db llama_gqa gqa.jsonl
traced gqav.db llama_gqa gqa.jsonl --vectors v
traced sparse.db opt tokens.jsonl --record sparse
shape() { # checkpoint: layers and heads
    python -c 'import json, sys; r = json.load(open(sys.argv[1])); print(r["num_hidden_layers"], r["num_attention_heads"])' \
        "$checkpoints/$1/config.json"
}

# ---- what it says is so ----

run theory --db opt.db -q --json --per head --budget 0.5,0.1,0.9 --epsilon 0.05 --replicas 5 \
    --model "$checkpoints/opt"
cp log/out said.json
holds "opt: laws, dropped mass, output error and Theorem 3.1, computed again" \
    python "$cli/theory.py" opt.db said.json 2 4 0.05 "$checkpoints/opt"
run theory --db gqa.db -q --json --per head --budget 0.2,0.7 --replicas 0
cp log/out said.json
holds "grouped heads, no values: computed again" python "$cli/theory.py" gqa.db said.json $(shape llama_gqa) 0
run theory --db gqav.db -q --json --per head --budget 0.2,0.7 --replicas 0
cp log/out said.json
holds "grouped heads share their values" python "$cli/theory.py" gqav.db said.json $(shape llama_gqa) 0

# ---- plain words ----

run theory --db opt.db -q --budget 0.1,0.2 --replicas 20
expect "text: the verdict on the power law" 0 'A power law is .*rejected' ''
expect "text: what the printed theorem says" 0 'Theorem 4.1 .*\(epsilon 0\).* [12] of 2 budgets' ''
expect "text: the bound on the output error" 0 'Output error <= 2 \(1 - kept\) max\|v\| in 16 of 16 cases' ''
run theory --db gqa.db -q --replicas 0
expect "text: no test, no values, both said" 0 'was not tested \(--replicas 0\)' ''
expect "text: how to get output errors" 0 'output error.*--vectors v' ''
run theory --db opt.db -q --per head --replicas 3 --csv
holds "--per head: one row a head" [ "$(wc -l <log/out)" -ge 9 ]
run theory --db opt.db -q --json --threads 1 --replicas 10
cp log/out one.json
run theory --db opt.db -q --json --threads 2 --replicas 10
holds "threads change nothing" cmp log/out one.json
holds "results are kept in the store, once" python - <<'P'
from scores import *
said = load("one.json")
rows = query("opt.db", "SELECT metric, layer, value FROM result WHERE command = 'theory' AND settings LIKE '%\"replicas\": 10,%'")
kept = {(m, l): v for m, l, v in rows}
assert len(kept) == len(rows), "twice"
for l in said["layers"]:
    assert kept["exponent", l["layer"]] == l["exponent"]
for b in said["budgets"]:
    assert kept["dropped_mass@%.15g" % b["budget_share"], None] == b["dropped_mass"]
P

# ---- refusals ----

refuse "no store" 2 "theory .*--db FILE" theory
refuse "a budget above 1" 2 '--budget: .*1.5' theory --db opt.db --budget 0.2,1.5
refuse "a budget that is no number" 2 '--budget' theory --db opt.db --budget 0.2,x
refuse "no such table" 2 '--per: "row", expected layer or head' theory --db opt.db --per row
refuse "epsilon not below the budgets" 2 '--epsilon: .* 0.1$' \
    theory --db opt.db --budget 0.3,0.1 --epsilon 0.1
refuse "sparse rows" 1 'recorded sparse, expected full rows' theory --db sparse.db
expect "sparse rows: what to do" 1 '' 'trace with --record full'
refuse "Theorem 3.1 without queries" 1 'Theorem 3.1 .*queries, keys and values' \
    theory --db gqav.db -q --replicas 0 --model "$checkpoints/llama_gqa"
traced turned.db llama_gqa gqa.jsonl --vectors qkv
refuse "Theorem 3.1 of a model that turns its queries" 1 'Theorem 3.1 .*x W_Q and x W_K' \
    theory --db turned.db -q --replicas 0 --model "$checkpoints/llama_gqa"
refuse "Theorem 3.1 with another model" 1 'opt.db: run 1 .*model' \
    theory --db opt.db -q --replicas 0 --model "$checkpoints/llama_gqa"
cp opt.db bad.db
python - <<'P'
import sqlite3
db = sqlite3.connect("bad.db")
db.execute("UPDATE scores SET blob = zeroblob(length(blob)) WHERE sequence = 1 AND layer = 1 AND head = 2")
db.commit()
P
refuse "a damaged block: where it is" 1 'bad.db: sequence 1, layer 1: head 2: rows from 0 on' \
    theory --db bad.db --replicas 0

# ---- the policies' list ----

run info policies
expect "info policies: what needs what" 0 '^ *knorm +keys' ''
cp opt.db copy.db
run info policies --json
cp log/out policies.json
holds "info policies: every policy can be replayed with the knobs it names" python - <<'P'
from scores import *
said = load("policies.json")
by = {p["policy"]: p for p in said["policies"]}
assert len(by) == len(said["policies"]) > 10 and {"full", "h2o", "oracle"} <= set(by)
assert by["window"]["one_pass"] is True and by["oracle"]["is_bound"] is True and by["h2o"]["is_bound"] is False
assert "values" in by["vatp"]["needs"] and by["window"]["needs"] == "nothing"
for k in said["knobs"]:
    assert k["policy"] in by and k["help"] and k["values"], k
    assert f'{k["knob"]}={k["default"]}' in by[k["policy"]]["knobs"].split(","), k
for p in said["policies"]:
    spec = p["policy"] + (":" + p["knobs"] if p["knobs"] else "")
    shears("replay", "--db", "copy.db", "-q", "--policy", spec,
           "--budget", "80", "--prefill", "20", "--json")
P

# ---- figures of results ----

refuse "no results to draw: the command that makes them" 1 'opt.db: found no results of shears replay' \
    plot budget-curve --db opt.db --script -o out/x.gp
expect "no results to draw: the command that makes them" 1 '' 'shears replay --db opt.db --policy all --budget'
refuse "no plan to draw" 2 'allocation .*--plan FILE' plot allocation --script -o out/x.gp
expect "no plan to draw: the command that makes one" 2 '' 'shears plan --db FILE'
run replay --db opt.db -q --json --policy full window h2o h2o:recent=5 oracle --budget 0.2..1.0/5
cp log/out replay.json
run replay --db opt.db -q --policy window --budget 0.3 --rows recorded
run plot budget-curve --db opt.db -q --script -o out/curve.gp
expect "budget-curve: drawn from the results" 0 '' ''
run plot leaderboard --db opt.db -q --script -o out/board.gp
expect "leaderboard: drawn from the results" 0 '' ''
holds "the curves are the largest group of results, and the heights their means" python - <<'P'
import re
from scores import *
text = open("out/curve.gp").read()
names = re.findall(r"set label 3\d\d '([^']*)' at graph", text)         # at the lines' ends, in every panel
assert set(names) == {"window", "h2o", "h2o:recent=5", "oracle"} and len(names) % 4 == 0, names
assert "keeps more than its budget" in text
said = load("replay.json")
default = next(r["knobs"] for r in said["results"] if r["policy"] == "h2o")
curves = {}
for r in said["results"]:
    name = r["policy"] + (":recent=5" if r["policy"] == "h2o" and r["knobs"] != default else "")
    curves.setdefault(name, []).append(r)
blocks = re.findall(r"\$s0c(\d+) << EOD\n#.*\n((?:.*\n)*?)EOD", text)
assert len(blocks) == 5
shown = {}
for i, body in blocks:
    shown[int(i)] = [[float(x) for x in line.split()] for line in body.splitlines() if not line.startswith("#")]
places = re.findall(r"'([^']*)' (\d+)", re.search(r"set ytics \((.*)\)", open("out/board.gp").read()).group(1))
assert len(places) == 5
heights = {int(l.split()[0]): float(l.split()[1]) for l in
           re.search(r"\$board0 << EOD\n#.*\n((?:.*\n)*?)EOD", open("out/board.gp").read()).group(1).splitlines()}
for name, place in places:
    r, s = curves[name], shown[int(place)]
    assert [x["kept_mass"] for x in r] == [x[1] for x in s], name
    assert [x["output_error"] for x in r] == [x[6] for x in s], name
    n = sum(map(len, tokens("opt.db"))) / len(tokens("opt.db"))
    x, y = [b["budget_tokens"] / n for b in r], [b["kept_mass"] for b in r]
    assert max(abs(a - b[0]) for a, b in zip(x, s)) < 1e-9
    area = sum((x[i + 1] - x[i]) * (y[i] + y[i + 1]) / 2 for i in range(4)) / (x[4] - x[0])
    assert abs(heights[int(place)] - area) < 1e-9, (name, heights, area)
assert [p[0] for p in places][-1] == "full" and places[0][0] == "oracle"
assert "(other settings are left out)" in text
P
run plot dropped-mass --db opt.db -q --script -o out/dropped.gp
expect "dropped-mass: measured and drawn" 0 '' ''
python - <<'P'
import sqlite3
db = sqlite3.connect("opt.db")
for settings in ("{", "[]", '{"policy": 3}', '{"policy": "x\'y", "knobs": "`touch pwned`", "budget": "0.5", "sequences": 1, "tokens": 9}'):
    for metric in "kept_mass", "budget_tokens":
        db.execute("INSERT INTO result (command, settings, metric, value) VALUES ('replay', ?, ?, 1)", (settings, metric))
db.commit()
P
cp out/curve.gp log/before.gp
run plot budget-curve --db opt.db -q --script -o out/curve.gp
holds "results that are none of a replay's change nothing" cmp out/curve.gp log/before.gp
run plan --db gqa.db -q --policy h2o --budget 0.4 --allocator pyramid -o plan.json
run plot allocation --plan plan.json -q --script -o out/plan.gp
expect "allocation: drawn of a plan" 0 '' ''
holds "allocation: the plan's budgets, layer by KV head" python - <<'P'
import re
from scores import *
budgets = load("plan.json")["budgets"]
body = re.search(r"\$plan0 << EOD\n((?:.*\n)*?)EOD", open("out/plan.gp").read()).group(1)
assert [[int(x) for x in line.split()] for line in body.splitlines()] == budgets, (body, budgets)
assert len({tuple(b) for b in budgets}) > 1, "every layer has the same"
P
rm -rf out && mkdir out
echo '{"format": "shears-plan", "budgets": [[1e99]]}' >bad.json
refuse "a plan that is none" 1 'bad.json' plot allocation --plan bad.json --script -o out/x.gp
finish
