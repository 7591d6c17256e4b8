#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shears simulate over several servers, caches and rates: rows are those that separate commands give; with --db what is
# kept is not run again, whatever the cells of the next command; shards join to what one process finds; what stands
# behind a name decides, not the name. By ranks: ranks_sweep.sh.
. "$(dirname "$0")/lib.sh"

load="--requests 60 --prompt 300 --output 30"
sweep="--model opt-125m --gpu A100-SXM-80GB,RTX-4090 --tp 1,2 --kv f16,int8 --rate 20,40 --budget 0.2 $load"
rows() { python -c 'import json, sys
rows = json.load(open(sys.argv[1]))["results"]
r = rows[0]
assert ('"$2"'), rows' "$1"; }

# ---- the cells ----

run simulate $sweep --json --db one.db
expect "two GPUs, two groups, two formats, two caches, two rates" 0 '"results"' ""
cp log/out all.json
holds "a row for each, in that order" rows all.json "[(x['gpu'], x['tp'], x['kv'], x['plan'], x['rate_requests_per_s'] > 30)
    for x in rows] == [(g, t, k, p, s) for g in ('A100-SXM-80GB', 'RTX-4090') for t in (1, 2) for k in ('f16', 'int8')
    for p in ('full', '0.2') for s in (False, True)]"
run simulate --model opt-125m --gpu RTX-4090 --tp 2 --kv int8 --rate 40 --budget 0.2 $load --json
holds "each is what a command of its own finds" python - <<'END'
import json
alone, rows = json.load(open("log/out"))["results"], json.load(open("all.json"))["results"]
# A command of one rate gives its speed as 1.
assert [{**x, "speed": 2} for x in alone] == [rows[29], rows[31]], (alone, rows[29], rows[31])
END
run simulate $sweep
expect "text: what differs is a column, what a server holds is said" 0 "^RTX-4090, tp 2, f16: The cache has" ""
expect "text: the columns" 0 "^  cache +GPU +tp +kv +offered/s +served/s" ""

# ---- found again ----

run simulate $sweep --json --db one.db
holds "the store gives the same figures" cmp log/out all.json
run simulate $sweep --db one.db
expect "and says so" 0 "^32 of 32 rows .*store; --force" ""
run simulate ${sweep/20,40/40,80} --db one.db
expect "of another sweep what is there" 0 "^16 of 32 rows .*store; --force" ""
run simulate $sweep --db one.db --force
expect "--force runs all again" 0 "^A100-SXM-80GB, tp 1, f16: The cache" ""
holds "and finds none" bash -c '! grep -q "rows .*store; --force" log/out'
run simulate $sweep --db one.db --timeline --json
holds "what the store has not is run again" rows log/out "all(len(x['timeline']) > 10 for x in rows)"
run simulate ${sweep/f16,int8/f16} --slo-ttft 0.05 --max-rate --db most.db --json
cp log/out most.json
run simulate ${sweep/f16,int8/f16} --slo-ttft 0.05 --max-rate --db most.db --json
holds "a highest rate is found again" cmp log/out most.json
run simulate ${sweep/f16,int8/f16} --slo-ttft 0.05 --db most.db
expect "without the search it is another question" 0 "^A100" ""
holds "for which nothing is known" bash -c '! grep -q "rows .*store; --force" log/out'

small() { run simulate --model "${model:-opt-125m}" --gpu A100-SXM-80GB "$@"; }
h='arrival_s,prompt_tokens,output_tokens\n'
printf "${h}0,100,10\n0.5,200,5\n" >w.csv
small --workload w.csv --db w.db
small --workload w.csv --db w.db
expect "a file of requests is found again" 0 "^1 of 1 rows" ""
printf "${h}0,100,10\n0.5,200,6\n" >w.csv
small --workload w.csv --db w.db
holds "other requests in a file of that name are not" bash -c 'grep -q "^ *full" log/out && ! grep -q "rows are from" log/out'
small --workload <(printf "${h}0,100,10\n") --db w.db
expect "requests from a pipe cannot be kept" 1 "" "expected a regular file"
mkdir m
for layers in 2 2 3; do
    printf '{"model_type": "opt", "hidden_size": 64, "num_hidden_layers": %d, "num_attention_heads": 4, "ffn_dim": 128,
        "vocab_size": 500, "max_position_embeddings": 128, "word_embed_proj_dim": 64}' $layers >m/config.json
    model=m small --rate 5 $load --db m.db
    grep -c "rows .*store; --force" log/out
done >found
holds "a model is known by its shape, not by its path" [ "$(tr '\n' ' ' <found)" = "0 1 0 " ]
run persistence --db one.db
expect "a store without traces has none" 1 "" "one.db"

# ---- killed, then again ----

long=${sweep/--requests 60/--requests 4000}
run simulate $long --db whole.db
timeout -s KILL 0.2 "$SHEARS" simulate $long --db killed.db >log/out 2>&1
[ -e killed.db ] || "$SHEARS" simulate $sweep --db killed.db >log/out
run simulate $long --db killed.db
expect "a sweep that was killed goes on" 0 "^ +full" ""
echo "# $(grep "rows .*store; --force" log/out || echo "nothing was finished before")"
holds "to what one that was not killed finds" same whole.db killed.db

# ---- shards ----

for i in 1 2 3; do
    run simulate $sweep --db parts.db --shard $i/3
    expect "shard $i" 0 "^ +(full|0.2) " ""
done
holds "a shard shows its own rows" [ "$(grep -cE '^ +(full|0\.2) ' log/out)" = 10 ]
run merge --db parts.db parts.db.shard-1-of-3 parts.db.shard-3-of-3 -q
run verify --db parts.db -q
expect "a missing shard is told" 0 "^shards missing +simulate 2 of 3" ""
run merge --db parts.db parts.db.shard-* -q
run simulate $sweep --db clean.db
holds "joined they are what one process finds" same clean.db parts.db
run simulate $sweep --db parts.db --json
holds "with the same answer" cmp log/out all.json
run simulate ${sweep/20,40/20,50} --db other.db --shard 2/3
refuse "a shard of another sweep is refused by name" 1 \
    "other.db.shard-2-of-3: not a shard of the same job as parts.db.shard-1-of-3: its job" \
    merge --db out/x.db parts.db.shard-1-of-3 other.db.shard-2-of-3
run simulate ${sweep/opt-125m/opt-350m} --db model.db --shard 2/3
refuse "a shard of another model is refused by name" 1 "model.db.shard-2-of-3: .* its model's fingerprint is shape:" \
    merge --db out/x.db parts.db.shard-1-of-3 model.db.shard-2-of-3
sqlite3 parts.db .dump >log/before
run simulate $sweep --db parts.db --shard 2/4
run merge --db parts.db parts.db.shard-2-of-4 -q
expect "so is one of another split by a store of an earlier merge" 1 "" \
    "^shears: parts.db.shard-2-of-4: not a shard of the same job as parts.db: .*4 parts, expected .*3"
sqlite3 parts.db .dump >log/after
holds "before anything is written" cmp log/before log/after
rm parts.db.shard-2-of-4
golden_tokens opt >tokens.jsonl
run trace --model "$checkpoints/opt" --tokens tokens.jsonl -q --db traced.db
run merge --db traced.db parts.db.shard-* -q
expect "a store of traces takes them, too" 0 "^sets of results, new +32" ""
sqlite3 parts.db.shard-2-of-3 "UPDATE result SET value = 7 WHERE id = 3"
run merge --db parts.db parts.db.shard-2-of-3 -q
expect "other figures of the same cell are refused by name" 1 "" "parts.db.shard-2-of-3: the results of simulate differ"

# ---- misuse ----

misuse() { # description, message, words...
    refuse "$1" 2 "$2" simulate $sweep "${@:3}"
}
misuse "a shard without a store" "--shard .*--db" --shard 1/2
misuse "a shard's log" "--log .*--shard" --shard 1/2 --db out/x.db --log out/l.csv
misuse "a shard's figure" "--plot-latency .*--shard" --shard 1/2 --db out/x.db --plot-latency out/l.svg
misuse "--force without a store" "--force .*--db" --force
misuse "a search for the group" "--tp: .*numbers" --tp 1,auto
misuse "too many cells" "cells, expected at most 100000" --budget "$(seq -s, 100 131)" --gpu "$(yes A100-SXM-80GB |
    head -n 32 | paste -sd,)" --rate "$(seq -s, 1 64)"
printf 'prefill_tokens,decode_sequences,context_tokens,seconds\n512,0,0,0.004\n' >p.csv
misuse "steps of one server for several" "one --gpu, one --tp" --calibrate p.csv
refuse "a GPU that is too small is named" 1 "RTX-4090: .*no room for weights" simulate --model llama-3.1-70b \
    --gpu H200-SXM,RTX-4090 --tp 2 --rate 1 --prompt 5 --output 5
finish
