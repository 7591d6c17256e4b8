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

numbers() { PYTHONPATH=$SH_TOP/tests/oracle PYTHONDONTWRITEBYTECODE=1 python3 "$@"; }
ask="--model $checkpoints/opt --gpu H100-SXM --memory 4G"
check() { # description, Python expression over r, rows, ev and bound: (command, policy, budget) -> value
    holds "$1" numbers -c 'import json, math, sqlite3
rows = json.load(open("log/out"))["results"]
r = rows[0]
from clustered import student
of, ev, bound = {}, {}, {}
for c, s, m, v in sqlite3.connect("q.db").execute("SELECT command, settings, metric, value FROM result" +
                                                  " WHERE layer IS NULL AND command IN (?, ?)", ("eval", "replay")):
    s = json.loads(s)
    if s["policy"] not in ("oracle", "full", "scissorhands-released"):
        of.setdefault((c, s["policy"], s["budget"]), {})[m] = v
for at, x in of.items():
    ev[at] = x["kept_mass"] if at[0] == "replay" else math.expm1(x["nll_change"])
    if at[0] == "eval":
        t = student(0.95, (x["error_sequences"] or x["tokens"]) - 1)
        bound[at] = math.expm1(x["nll_change"] + t * x["nll_change_stderr"])
least = lambda of, c, ok: min(float(b) for (k, _, b), v in of.items() if k == c and "." in b and ok(v))
assert ('"$2"'), (r, ev)'
}

for limit in 0.7 0.8 0.9; do
    run capacity $ask --length 64 --db q.db --min-recall $limit --json
    check "the least budget with a kept mass of $limit" \
        "float(r['budget']) == least(ev, 'replay', lambda v: v >= $limit) and 'q.db' in r['evidence'] and
        abs(ev['replay', r['measured_policy'], r['budget']] - r['measured_value']) < 1e-12"
done
cp q.db state.db
run replay -q --db state.db --policy snapkv scissorhands roco reservoir window --budget 0.2,0.25,0.3,0.35,0.4,0.45,0.5,0.55,0.6,0.65,0.7,0.75,0.8
run capacity $ask --length 64 --db state.db --policy-state --json
cp log/out all.json
for limit in 0.7 0.75 0.8 0.85 0.9 0.95; do
    run capacity $ask --length 64 --db state.db --min-recall $limit --policy-state --json
    python3 -c 'import json; print(json.dumps(json.load(open("log/out"))["results"][0]))' >>chosen.jsonl
done
holds "with --policy-state, the smallest budget is that of the fewest bytes, not of the fewest tokens" python - <<'P'
import json
rows = [r for r in json.load(open("all.json"))["results"] if "kept mass" in r["evidence"]]
size, differ = (lambda r: r["kv_bytes_per_sequence_per_gpu"]), 0
for limit, chosen in zip((0.7, 0.75, 0.8, 0.85, 0.9, 0.95), map(json.loads, open("chosen.jsonl"))):
    enough = [r for r in rows if r["measured_value"] >= limit]
    assert size(chosen) == min(map(size, enough)) and chosen["measured_value"] >= limit, (limit, chosen)
    differ += float(chosen["budget"]) > min(float(r["budget"]) for r in enough)
assert differ, "no limit tells bytes from tokens"
P
run capacity $ask --length 4000 --db q.db --max-ppl-increase 200% --json
check "the least share that raises perplexity no more" \
    "float(r['budget']) == least(bound, 'eval', lambda v: v <= 2) and 'another model' not in r['evidence'] and
    abs(bound['eval', r['measured_policy'], r['budget']] - r['measured_bound']) < 1e-6 and
    (r['measured_sequences'], r['measured_texts'], r['measured_length']) == (0, 2, 64) and
    'if tokens were independent' in r['evidence'] and
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
check "without a limit: all that was measured, without bounds, full caches and what keeps more than a budget" \
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

# ---- the bound decides, over texts ----

golden_tokens opt | python -c 'import json, sys
ids = sum(map(json.loads, sys.stdin), [])
for i in range(8): print(json.dumps([ids[(7 * i + 13 * k * k) % len(ids)] for k in range(60)]))' >eight.jsonl
run eval -q --model "$checkpoints/opt" --tokens eight.jsonl --policy window --budget 0.5 --db bare.db
run capacity --model "$checkpoints/opt" --gpu L4 --length 24 --db bare.db
expect "a store without a trace: results of this model are known by its fingerprint" 0 "^evidence +window at 0\.5, " ""
run capacity --model "$checkpoints/llama" --gpu L4 --length 24 --db bare.db
expect "and those of others, too" 0 "^evidence +measured on another model, [0-9a-f]{16}: window at 0\.5" ""
run eval -q --model "$checkpoints/opt" --tokens eight.jsonl --policy h2o window --budget 0.3,0.5,0.7,0.9 --db q8.db --json
cp log/out eight.json
run plan -q --db q.db --policy h2o --budget 0.6 --allocator pyramid -o six.json
limits() { # policy: limits just above each bound and just below it, and the budgets that they take
    python - $1 <<'P'
import json, sys
rows = [r for r in json.load(open("eight.json"))["results"] if r["policy"] == sys.argv[1]]
for r in rows:
    limit = r["ppl_increase_bound"]
    for l in (limit * (1 + 1e-6), limit * (1 - 1e-6)):
        took = [x["budget"] for x in rows if x["ppl_increase_bound"] <= l]
        if 0 <= l < 0.99:
            print(repr(l), min(took) if took else "none")
P
}
for policy in h2o window; do
    limits $policy >limits.txt
    holds "$policy: some limits" test -s limits.txt
    while read -r limit budget; do
        run capacity $ask --length 64 --db q8.db --policy $policy --max-ppl-increase "$limit" --json
        if [ "$budget" = none ]; then
            expect "$policy: no bound is below $limit, and the best is named with its bound" 1 ""                 "is shown to raise .* the best is .* %, over 8 sequences\)"
        else
            holds "$policy: the bound decides: $budget at $limit" python -c 'import json, sys
r, = json.load(open("log/out"))["results"]
want, = [x for x in json.load(open("eight.json"))["results"] if (x["policy"], x["budget"]) == (sys.argv[1], float(sys.argv[2]))]
assert float(r["budget"]) == want["budget"] and r["measured_sequences"] == r["measured_texts"] == 8, r
assert abs(r["measured_bound"] - want["ppl_increase_bound"]) < 1e-9 and abs(r["measured_value"] - want["ppl_increase"]) < 1e-9
assert "over 8 sequences of 8 texts" in r["evidence"] and "eight.jsonl" in r["evidence"], r["evidence"]' $policy "$budget"
        fi
    done <limits.txt
done
for policy in window h2o scissorhands:counts=rate,recent=2 keydiff; do
    run plan -q --db q.db --policy $policy --budget 0.6 --allocator pyramid -o stored.json
    run eval -q --model "$checkpoints/opt" --tokens eight.jsonl --plan stored.json --json
    cp log/out held.json
    run capacity --model "$checkpoints/opt" --gpu L4 --length 60 --kv f32 --plan stored.json --policy-state --json
    holds "$policy: --policy-state counts what the engine's cache stores" python - <<'P'
import json, os
held = json.load(open("held.json"))["results"][0]["kv_bytes"]
found = json.load(open("log/out"))["results"][0]["kv_bytes_per_sequence_per_gpu"]
if not os.path.exists("tokens"):                        # a window: 16 numbers of f32 and a position for each token
    open("tokens", "w").write(str(held // 68))
    assert held % 68 == 0 and held > 68 * 200, held
tokens = int(open("tokens").read())
assert held - 4 * tokens <= found < held - 3 * tokens, (held, found, tokens)
P
done
refuse "--policy-state without a policy" 2 "--policy-state requires --plan FILE or measured budgets \(--db FILE" capacity --model opt-125m \
    --gpu L4 --length 60 --budget 0.5 --policy-state
refuse "--policy-state and --state" 2 "--state and --policy-state cannot be combined" capacity --model "$checkpoints/opt" \
    --gpu L4 --length 60 --plan six.json --policy-state --state 4
run eval -q --model "$checkpoints/opt" --tokens eight.jsonl --plan six.json --db q8.db --json
cp log/out plan8.json
run capacity $ask --length 88 --db q8.db --json
holds "a plan's evaluation is evidence, too" python - <<'P'
import json
want, = json.load(open("plan8.json"))["results"]
found = [r for r in json.load(open("log/out"))["results"] if abs(r["measured_value"] - want["ppl_increase"]) < 1e-9]
assert len(found) == 1 and "divided by a plan" in found[0]["evidence"], found
assert found[0]["kv_uniform_bytes_per_sequence_per_gpu"] is None, found     # a store has only the plan's mean
assert abs(float(found[0]["budget"]) - 0.6) < 0.01
P
run eval -q --model "$checkpoints/opt" --tokens tokens.jsonl --policy h2o --budget 0.9 --db q8.db
run capacity $ask --length 64 --db q8.db --max-ppl-increase 900%
expect "different texts are not mixed" 2 "" "results of 2 texts, which are not mixed"

if command -v gnuplot >/dev/null; then
    run capacity $ask --length 64 --db q.db --plot-frontier out/f.svg --plot-memory out/m.svg
    expect "figures are drawn after the table" 0 "measured with +cost" ""
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
check "a plan: its evidence" "'h2o: kept mass 0.' in r['evidence'] and 'another' not in r['evidence']"
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
# At other lengths heads keep the same shares, rounded, and no fewer tokens than the policy needs.
for length in 20 61 352; do
    run capacity $ask --length $length --plan uneven.json --json
    check "a plan at $length tokens: shares, not tokens" "r['kv_bytes_per_sequence_per_gpu'] == sum(-(-sum(
        min(max((2 * n * $length + 88) // 176, 1), $length) for n in row) // 4) * 4 * 2 * 8 * 2
        for row in json.load(open('uneven.json'))['budgets'])"
    holds "  and the evidence says so" grep -q 'budgets for texts of 88 tokens, the same shares of these' log/out
done
holds "  which for longer texts was not measured" grep -q 'longer ones were not measured' log/out
run eval -q --model "$checkpoints/opt" --tokens eight.jsonl --plan uneven.json --columns budget_tokens --csv
check_tokens=$(tail -n 1 log/out)
run capacity $ask --length 60 --plan uneven.json --json
check "  as in the live cache" "abs(r['kv_bytes_per_sequence_per_gpu'] / (2 * 4 * 2 * 8 * 2) - $check_tokens) < 1"
longer=(simulate --model "$checkpoints/opt" --gpu H100-SXM --memory 4M --rate 1 --requests 200 --allocator slots --json)
run "${longer[@]}" --prompt 128 --output 64 --plan uneven.json --budget 0.29
check "simulate: the same shares of longer requests" "abs(rows[2]['kv_occupancy_mean'] / rows[1]['kv_occupancy_mean'] - 1) < 0.1
    and 'the same shares of others' in rows[2]['evidence']"
run simulate --model "$checkpoints/opt" --gpu H100-SXM --memory 400k --rate 100000 --requests 200 --prompt 40 --output 40 \
    --plan plan.json --json
check "simulate: the full cache and the plan" "[x['plan'] for x in rows] == ['full', 'plan.json'] and
    rows[1]['kv_occupancy_mean'] < rows[0]['kv_occupancy_mean'] and 'kept mass ' in rows[1]['evidence']"
for command in "capacity --length 64" "simulate --rate 1 --prompt 5 --output 5"; do
    run $command --model opt-125m --gpu H100-SXM --plan plan.json
    expect "${command%% *}: a plan of another depth" 1 "" "plan.json.* opt \(2 layers of 4 KV heads\).* opt-125m has 12"
done

# ---- the measured budget on a simulated server ----

served=(simulate --model "$checkpoints/opt" --gpu H100-SXM --memory 400k --rate 100000 --requests 200 --prompt 40 --output 24)
for limit in "--min-recall 0.8" "--max-ppl-increase 200%"; do
    run capacity $ask --length 64 --db q.db $limit --json
    cp log/out least.json
    run "${served[@]}" --quality-db q.db $limit --json
    check "simulate $limit: the budget and the evidence of capacity" "(lambda c: [x['plan'] for x in rows] ==
        ['full', c['budget']] and rows[1]['evidence'] == c['evidence'])(json.load(open('least.json'))['results'][0])"
done
cp log/out limited.json
run "${served[@]}" --budget "$(python -c 'import json; print(json.load(open("least.json"))["results"][0]["budget"])')" --json
check "  figures are those of --budget" "(lambda c: all(c[k] == rows[1][k] for k in c if k != 'evidence'))(
    json.load(open('limited.json'))['results'][1])"
run "${served[@]}" --budget 0.5 --quality-db q.db --min-recall 0.8 --policy tova
expect "  a remark says which policy, budget and store; other budgets stay" 0 "^0\.[0-9]: tova.* at 0\.[0-9], kept mass .*tokens\.jsonl, *(q\.db)?$" ""
holds "  " sh -c 'grep -q "^0.5: quality under this budget was not measured" log/out && grep -Eq "(^|jsonl, )q\.db$" log/out'
cp q.db both.db
run "${served[@]}" --db both.db --quality-db both.db --min-recall 0.8 --json
cp log/out first
run "${served[@]}" --db both.db --quality-db both.db --min-recall 0.8 --json
holds "one store may hold the measured budgets and the results" python - <<'P'
import json, sqlite3
a, b = (json.load(open(p))["results"] for p in ("first", "log/out"))
assert a == b and sqlite3.connect("both.db").execute("SELECT count(DISTINCT settings) FROM result WHERE command = 'simulate'").fetchone() == (2,)
P
printf 'arrival_s,prompt_tokens,output_tokens\n0,10,5\n1,4000,5\n' >w.csv
run simulate --model "$checkpoints/opt" --gpu H100-SXM --workload w.csv --quality-db q.db --max-ppl-increase 1000% --json
check "a budget in tokens does not hold for a request longer than what was measured" "'.' in rows[1]['plan'] and
    'longer ones were not measured' in rows[1]['evidence']"
unserved() { # description, status, message, words...
    local what=$1 wanted=$2 says=$3
    shift 3
    run "${served[@]}" "$@"
    expect "$what" "$wanted" "" "$says"
}
unserved "simulate: nothing is good enough" 1 "no measured budget keeps .* the best is" --quality-db q.db --min-recall 1
unserved "simulate: a limit without a store" 2 "--max-ppl-increase requires --quality-db FILE" --max-ppl-increase 1%
unserved "simulate: --db is not that store" 2 "--db FILE is where simulate keeps its own results" --db q.db --min-recall 0.5
unserved "simulate: a store without a limit" 2 "--quality-db requires --max-ppl-increase F or --min-recall F" --quality-db q.db
unserved "simulate: two limits" 2 "expected one of them" --quality-db q.db --min-recall 0.5 --max-ppl-increase 1%
unserved "simulate: a log over the measured budgets" 2 "is also the input file" --quality-db q.db --min-recall 0.5 --log q.db

finish
