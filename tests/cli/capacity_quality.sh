#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Capacity at a quality that was measured: the smallest budget of a store that is good enough, with its evidence; plans
# in shears capacity and shears simulate; and where evidence is missing or of something else.
. "$(dirname "$0")/lib.sh"
command -v sqlite3 >/dev/null || { echo "1..0 # SKIP sqlite3 is not here"; exit 0; }

golden_tokens opt >tokens.jsonl
run trace -q --model "$checkpoints/opt" --tokens tokens.jsonl --db q.db
run replay -q --db q.db --policy h2o tova oracle full --budget 0.2,0.4,0.6,0.8
run replay -q --db q.db --policy scissorhands-released --budget 0.2,0.8   # drops nothing in a model of few layers
run eval -q --model "$checkpoints/opt" --tokens tokens.jsonl --policy h2o window --budget 0.2,0.6,17 --db q.db
expect "a store with results" 0 "full cache: perplexity" ""

ask="--model $checkpoints/opt --gpu H100-SXM --memory 4G"
check() { # description, Python expression over r, rows and ev: (command, policy, budget) -> value
    holds "$1" python -c 'import json, math, sqlite3
rows = json.load(open("log/out"))["results"]
r = rows[0]
ev = {}
for c, s, m, v in sqlite3.connect("q.db").execute("""SELECT command, settings, metric, value FROM result
        WHERE layer IS NULL AND metric IN ("kept_mass", "nll_change")"""):
    s = json.loads(s)
    if s["policy"] not in ("oracle", "full", "scissorhands-released"):
        ev[c, s["policy"], s["budget"]] = math.exp(v) - 1 if c == "eval" else v
least = lambda c, ok: min(float(b) for (k, _, b), v in ev.items() if k == c and "." in b and ok(v))
assert ('"$2"'), (r, ev)'
}

for limit in 0.7 0.8 0.9; do
    run capacity $ask --length 64 --db q.db --min-recall $limit --json
    check "the least budget with a kept mass of $limit" \
        "float(r['budget']) == least('replay', lambda v: v >= $limit) and 'q.db' in r['evidence'] and
        abs(ev['replay', r['measured_policy'], r['budget']] - r['measured_value']) < 1e-12"
done
run capacity $ask --length 4000 --db q.db --max-ppl-increase 200% --json
check "the least share that raises perplexity no more" \
    "float(r['budget']) == least('eval', lambda v: v <= 2) and 'another model' not in r['evidence'] and
    'not measured' in r['evidence']"
run capacity $ask --length 64 --db q.db --policy window --max-ppl-increase 200% --json
check "of one policy" "r['measured_policy'] == 'window'"
run capacity $ask --length 64 --db q.db
expect "a table says in few words what each budget was measured to cost" 0 "  h2o +perplexity \\+?-?[0-9.]+ % \\(" ""
holds "  no cell has 200 letters, and rows differ" python - <<'P'
import re
rows = open("log/out").read().splitlines()[2:]
rows = rows[:rows.index("") if "" in rows else len(rows)]
assert len(rows) > 5 and len(set(rows)) == len(rows) and all(len(c) < 80 for r in rows for c in re.split("  +", r)), rows
P
run capacity $ask --length 64 --db q.db --json
check "without a limit: all that was measured, without bounds, whole caches and what keeps more than a budget" \
    "len(rows) == len(ev) and {x['measured_policy'] for x in rows} == {'h2o', 'tova', 'window'}"
run capacity --model opt-125m --gpu H100-SXM --length 64 --db q.db --min-recall 0.8
expect "evidence of another model is said in its line" 0 "^evidence +measured on another model, opt: " ""
run capacity --model opt-125m --gpu H100-SXM,A100-SXM-40GB --length 64 --db q.db --min-recall 0.8
expect "and in each row of a table" 0 "H100-SXM .*measured on another model, opt: " ""

refused() { # description, status, message, words...
    local what=$1 wanted=$2 says=$3
    shift 3
    run capacity $ask --length 64 "$@"
    expect "$what" "$wanted" "" "$says"
}
refused "nothing is good enough: the best is named" 1 "no measured budget keeps .* the best is .* at 0.8" --db q.db --min-recall 1
refused "nothing at 4 bits" 1 "with 4-bit" --db q.db --min-recall 0.5 --kv int4
refused "no such policy" 1 "no replay of snapkv" --db q.db --min-recall 0.5 --policy snapkv
refused "a limit without a store" 2 "--min-recall .*--db" --min-recall 0.5
refused "two limits" 2 "expected one of them" --db q.db --min-recall 0.5 --max-ppl-increase 1%
refused "1 is 100 %, not 1 %" 2 "--max-ppl-increase: found 1, which is 100 %" --db q.db --max-ppl-increase 1
expect "and what to write instead" 2 "" "write 1% or 0.01"
refused "not a share" 2 '"lots"' --db q.db --max-ppl-increase lots
refused "a store and a budget" 2 "expected one of them" --db q.db --budget 0.5
refused "not a store" 1 "tokens.jsonl" --db tokens.jsonl --min-recall 0.5
run capacity $ask --length 6400 --db q.db --policy window --min-recall 0.1
expect "nothing of window was replayed" 1 "" "no replay of window"

if command -v gnuplot >/dev/null; then
    run capacity $ask --length 64 --db q.db --plot-frontier out/f.svg --plot-memory out/m.svg
    expect "figures are drawn beside the table" 0 "measured with +cost" ""
    holds "frontier: what was measured" grep -q "perplexity, measured" out/f.svg
    holds "memory: parts" grep -q "left over" out/m.svg
    cp q.db apart.db
    run replay -q --db apart.db --policy h2o:recent=3 --budget 0.2,0.4,0.6,0.8
    run replay -q --db apart.db --policy h2o --budget 0.2,0.4,0.6,0.8 --prefill 8
    run capacity $ask --length 64 --db apart.db --plot-frontier out/f.svg
    holds "frontier: other knobs, and another beginning, are lines of their own with names of their own" python - <<'P'
import re
text = open("out/f.svg").read()
said = re.findall(r">([^<>]*h2o[^<>]*)<", text)
assert {"h2o:recent=3, prefill 0", "h2o, prefill 0", "h2o, prefill 8"} <= set(said), said
P
    rm -f out/*
else
    skip "figures" "gnuplot is not here"
fi

# ---- plans ----

run plan -q --db q.db --policy h2o --budget 0.3 --allocator pyramid -o plan.json
expect "a plan" 0 "^policy +h2o" ""
run capacity $ask --length 88 --plan plan.json --json
check "a plan: bytes are those of its budgets" "(lambda p: r['kv_bytes_per_sequence_per_gpu'] ==
    sum(-(-sum(row) // 4) * 4 * 2 * 8 * 2 for row in p['budgets']))(json.load(open('plan.json')))"
check "a plan: its evidence" "'kept_mass' in r['evidence'] and 'another' not in r['evidence']"
python - <<'END'
import json
p = json.load(open("plan.json"))
p["budgets"] = [[10, 20, 30, 40], [41, 30, 20, 6]]
p["shares"] = [[n / p["n_token"] for n in row] for row in p["budgets"]]
p["total_tokens"] = sum(map(sum, p["budgets"]))
p["mean_tokens"] = p["total_tokens"] / 8
p["share"] = p["mean_tokens"] / p["n_token"]
json.dump(p, open("uneven.json", "w"))
END
# Two ranks: heads 0 and 1 keep 30 + 71 tokens, heads 2 and 3 keep 70 + 26, so the first is the fuller one.
for expected in "1 25+25 4" "2 15+36 2" "4 10+41 1"; do
    read -r tp layers heads <<<"$expected"
    run capacity $ask --length 88 --plan uneven.json --tp "$tp" --json
    check "a plan on $tp ranks: the fullest one counts" \
        "r['kv_bytes_per_sequence_per_gpu'] == ($layers) * $heads * 2 * 8 * 2"
done
run simulate --model "$checkpoints/opt" --gpu H100-SXM --memory 400k --rate 100000 --requests 200 --prompt 40 --output 40 \
    --plan plan.json --json
check "simulate: the whole cache and the plan" "[x['plan'] for x in rows] == ['full', 'plan.json'] and
    rows[1]['kv_occupancy_mean'] < rows[0]['kv_occupancy_mean'] and 'kept_mass' in rows[1]['evidence']"
for command in "capacity --length 64" "simulate --rate 1 --prompt 5 --output 5"; do
    run $command --model opt-125m --gpu H100-SXM --plan plan.json
    expect "${command%% *}: a plan of another depth" 1 "" "plan.json.* opt \(2 layers of 4 KV heads\).* opt-125m has 12"
done

finish
