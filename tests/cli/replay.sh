#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shears replay: kept sets and figures follow from the definitions, results are kept and found again,
# and what makes no sense is refused before any work.
. "$(dirname "$0")/lib.sh"

golden_tokens opt >tokens.jsonl
golden_tokens llama_gqa >gqa.jsonl
golden_tokens mistral >window.jsonl
traced() { # store, model, tokens, arguments...
    local db=$1 model=$2 tokens=$3
    shift 3
    run trace --db "$db" -q --model "$checkpoints/$model" --tokens "$tokens" --codec f32 "$@"
    [ $status = 0 ] || { not_ok "trace $model into $db"; sed 's/^/# /' log/err; }
}
traced opt.db opt tokens.jsonl --vectors qkv
traced gqa.db llama_gqa gqa.jsonl
traced window.db mistral window.jsonl
traced sparse.db opt tokens.jsonl --record sparse

# ---- the definitions ----

defined() { # store, query heads, KV heads, layers, window, prefill, rows, policy, budget
    run replay --db "$1" -q --json --force --prefill "$6" --rows "$7" --policy "$8" --budget "$9" --dump-kept log/kept.jsonl
    cp log/out said.json
    holds "$1: $8 with $9, prefill $6, $7 rows" \
        python "$cli/kept.py" "$1" "$2" "$3" "$4" "$5" said.json log/kept.jsonl "$6" "$7"
}
defined opt.db 4 4 2 0 0 renormalised window 12
defined opt.db 4 4 2 0 0 renormalised streaming:sinks=2 0.25
defined opt.db 4 4 2 0 0 renormalised h2o:recent=5 0.2
defined opt.db 4 4 2 0 20 recorded h2o 16
defined opt.db 4 4 2 0 0 renormalised scissorhands:window=12,recent=3,drop=4 0.5
heads=$(python -c 'import json; r = json.load(open("'"$checkpoints"'/llama_gqa/config.json")); print(r["num_attention_heads"], r["num_key_value_heads"], r["num_hidden_layers"])')
defined gqa.db $heads 0 0 renormalised tova:recent=2 11
defined gqa.db $heads 0 0 recorded h2o:recent=2,sinks=1 0.4
shape=$(python -c 'import json; r = json.load(open("'"$checkpoints"'/mistral/config.json")); print(r["num_attention_heads"], r["num_key_value_heads"], r["num_hidden_layers"], r["sliding_window"])')
defined window.db $shape 0 renormalised h2o:recent=2 14
defined window.db $shape 0 renormalised window 200

# ---- the contract ----

run replay --db opt.db -q --json --policy full window h2o oracle --budget 0.2,17
cp log/out said.json
holds "--json: the contract's keys, full keeps all, the oracle is best" python - <<'P'
from scores import *
said = load("said.json")
rows = said["results"]
assert [(r["policy"], r["budget"]) for r in rows] == \
    [(p, b) for p in ("full", "window", "h2o", "oracle") for b in (0.2, 17)]
for r in rows:
    for key in ("knobs", "allocator"):
        assert isinstance(r[key], str), key
    for key in ("budget_tokens", "kept_mass", "kept_mass_no_sink", "pivotal_recall", "output_error", "peak_tokens",
                "mean_tokens", "stability", "resident_bytes"):
        assert isinstance(r[key], (int, float)), (key, r[key])
    assert [l["layer"] for l in r["layers"]] == [0, 1] and all(0 < l["kept_mass"] <= 1.00001 for l in r["layers"])
full, window, h2o, oracle = rows[1], rows[3], rows[5], rows[7]
assert abs(full["kept_mass"] - 1) < 1e-6 and full["output_error"] < 1e-6 and full["peak_tokens"] == 88
assert window["kept_mass"] < oracle["kept_mass"] and h2o["kept_mass"] < oracle["kept_mass"]
assert window["peak_tokens"] == 17 and window["output_error"] > 0.01
P
run replay --db opt.db -q --json --policy full window h2o oracle --budget 0.2,17
holds "asked again: the same answer" cmp log/out said.json
run replay --db opt.db -q --policy full window h2o oracle --budget 0.2,17
expect "asked again: from the store, and it says so" 0 '8 of 8 rows .*store; --force' ''
run replay --db opt.db -q --policy full window h2o oracle --budget 0.2,17 --force
holds "--force: replayed" [ "$(grep -c 'from the store' log/out)" = 0 ]
chmod a-w opt.db
run replay --db opt.db -q --csv --policy tova --budget 9
holds "a store that cannot be written to is replayed all the same" [ "$(wc -l <log/out)" = 2 -a $status = 0 ]
chmod u+w opt.db
run replay --db opt.db -q --json --policy all --budget 0.5 --threads 1
cp log/out one.json
run replay --db opt.db -q --json --policy all --budget 0.5 --threads 2 --force
holds "all policies, and threads change nothing" cmp log/out one.json
run replay --db gqa.db -q --json --policy h2o --budget 0.1..0.9/5
holds "a span of budgets, and the area under its curve" python - <<'P'
from scores import *
said = json.load(open("log/out"))
mass = [r["kept_mass"] for r in said["results"]]
x = [r["budget_tokens"] for r in said["results"]]
assert [r["budget"] for r in said["results"]] == [0.1, 0.3, 0.5, 0.7, 0.9], said
area = sum((x[i + 1] - x[i]) * (mass[i] + mass[i + 1]) / 2 for i in range(4)) / (x[4] - x[0])
assert abs(said["curves"][0]["area"] - area) < 1e-9
P

# ---- refusals ----

refuse "no store" 2 "replay .*--db FILE" replay --policy window
refuse "an unknown policy" 2 'unknown policy "h20"' replay --db opt.db --policy h20
expect "an unknown policy: the nearest names" 2 '' 'did you mean h2o'
refuse "an unknown knob" 2 'h2o has no knob "recnt"' replay --db opt.db --policy h2o:recnt=2
expect "an unknown knob: the nearest names" 2 '' 'did you mean recent'
refuse "a knob's value" 2 'h2o: recent=-1, expected a whole number' replay --db opt.db --policy h2o:recent=-1
refuse "a knob's name" 2 'expected one of n, i, t' replay --db opt.db --policy scissorhands:threshold=x
refuse "a budget of nothing" 2 'budget "0": expected tokens' replay --db opt.db --budget 0
run replay --db opt.db --policy window --budget 0.5,1 -q
expect "a budget of one token next to a share" 0 'Budget 1 is one token per KV head'
run replay --db opt.db --policy window --budget 0.5,1.0 -q
holds "  not of the whole" sh -c '! grep -q "Budget 1 is" log/out'
refuse "a share above 1" 2 'budget "1.5": expected tokens' replay --db opt.db --budget 1.5
refuse "a span without a count" 2 'expected FROM..TO/COUNT' replay --db opt.db --budget 0.1..0.5
refuse "a budget below what is protected" 2 'is 8 tokens, .*h2o protects 8' replay --db opt.db --policy h2o:recent=8 --budget 8
refuse "  of every policy" 2 'is 8 tokens, .*h2o protects 9' replay --db opt.db --policy h2o:recent=9 streaming:sinks=9 --budget 8,5
refuse "  with a fraction of recent tokens" 2 'is 2 tokens, .*h2o protects 5' replay --db opt.db --policy h2o:sinks=4,recent=0.5 --budget 2
run replay --db opt.db --policy h2o:recent=8 tova --budget 8 -q --json
holds "  of one of several: it is left out" python -c 'import json
a, b = json.load(open("log/out"))["results"]
assert a["policy"] == "h2o" and a["kept_mass"] is None and b["policy"] == "tova" and b["kept_mass"] > 0, (a, b)'
cp log/out several.json
run replay --db opt.db --policy tova --budget 8 -q --json
holds "  the other is as if alone" python -c 'import json
a, b = (json.load(open(f))["results"][-1] for f in ("several.json", "log/out"))
assert a == b'
run replay --db opt.db --policy h2o:recent=8 tova --budget 8
expect "  and a remark names it with what it protects" 0 "not replayed.*: h2o:recent=8 \\(8\\)\\." ""
refuse "sparse rows" 1 'recorded sparse, expected full rows' replay --db sparse.db
refuse "vectors that were not recorded" 1 'policy knorm .*keys, .*run 1' \
    replay --db gqa.db --policy knorm
refuse "a prompt that was not said" 2 'observed .*--prefill' \
    replay --db opt.db --policy observed --budget 60
refuse "other rows" 2 '--rows: .*some.*renormalised or recorded' replay --db opt.db --rows some
refuse "a dump that cannot be written" 1 'nowhere/kept' replay --db opt.db --dump-kept nowhere/kept --policy window
refuse "a dump into the store" 2 '--dump-kept opt.db: .*input file opt.db' replay --db opt.db --dump-kept opt.db
holds "the store is still there" "$SHEARS" verify --db opt.db -q
refuse "a word too many" 2 '"more.db".*one store' replay --db opt.db more.db
echo good >kept.json
run replay --db sparse.db --dump-kept kept.json
holds "a dump that was there before stays when nothing comes of the new one" grep -q good kept.json
run replay --db opt.db -q --json
holds "the usual policies and budgets on a short text: what is too small is left out" python - <<'P'
import json
said = json.load(open("log/out"))
small = [r for r in said["results"] if r["policy"] == "scissorhands" and r["budget"] == 0.1]
assert said["unfinished"] == 0 and len(small) == 1 and small[0]["layers"], said
P
cp opt.db bad.db
sqlite3 bad.db "UPDATE scores SET blob = zeroblob(length(blob)) WHERE sequence = 1 AND layer = 1 AND head = 2" 2>/dev/null
refuse "a damaged block: where it is" 1 'bad.db: sequence 1, layer 1: KV head 2: rows from 0 on' \
    replay --db bad.db --policy window --budget 7
finish
