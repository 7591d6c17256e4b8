#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shears reproduce: killed once, it goes on with what was done and ends with the numbers of a run that nobody stopped;
# once more is no work; what was left out is named; each step's file begins with the command that repeats it.
. "$(dirname "$0")/lib.sh"

mkdir model && cp "$SH_GOLDEN"/tasks/model/* \
    "$tokenizer"/{vocab.json,merges.txt,special_tokens_map.json,tokenizer_config.json} model
chmod -R u+w model
python - <<'P' >docs.jsonl
import json
words = "the old man went down to the sea and said that it was good to be there in the light of the day".split()
for d in range(4):
    print(json.dumps({"text": " ".join(words[(7 * i * (d + 1) + i // 5) % len(words)] for i in range(60 + 20 * d))}))
P
given=(--model model --jsonl docs.jsonl --tasks "$SH_GOLDEN/tasks" --length 64 --count 2 --items 2 --shots 0 --json -q --columns model,ppl)

# All results of a folder's stores, but for what measures time.
results() { # folder, file
    python - "$1/model" <<'P' >"$2"
import sys
from scores import *
for db in "trained.db", "random.db":
    for row in query(f"{sys.argv[1]}/{db}", "SELECT command, settings, metric, layer, head, value FROM result "
                     "WHERE metric NOT LIKE '%per_s%' AND metric NOT LIKE '%seconds%' ORDER BY 1, 2, 3, 4, 5"):
        print(db, *row)
P
}

run reproduce "${given[@]}" -o out/whole
cp log/out whole.json
expect "the programme runs" 0 '"steps_failed": 0' ""
holds "one row a model, in which what was measured stands, and what was left out" python - <<'P'
import json
said = json.load(open("whole.json"))
row, = said["models"]
for key in "ratio", "density", "random_ratio", "ppl", "nll_half", "nll_fifth", "nll_bits", "nll_bits_interaction", \
        "nll_pruned", "nll_pruned_interaction":
    assert isinstance(row[key], (int, float)), (key, row)
assert row["model"] == "model" and row["ppl"] > 1 and 0 < row["ratio"] <= 1, row
left = {r["part"]: r["why"] for r in said["left_out"]}
assert any("openbookqa" in part and "needs " in why for part, why in left.items()), left      # has another name there
assert not any("hellaswag" in part for part in left), left
P
holds "the costs of pruned weights are what eval says, with the cache's taken off" python - <<'P'
import json
from scores import *
row, = json.load(open("whole.json"))["models"]
nll = [(json.loads(s), v) for s, v in query("out/whole/model/trained.db",
       "SELECT settings, value FROM result WHERE command = 'eval' AND metric = 'nll'")]
cut = {s["policy"]: v for s, v in nll if s.get("weight_prune")}
texts, = {s["texts"] for s, v in nll if s.get("weight_prune")}
at = {s["policy"]: v for s, v in nll if s["texts"] == texts and s["kv_bits"] == 32 and s["weight_bits"] == 16
      and not s.get("weight_prune") and (s["policy"] == "full" or s["budget"] == "0.5")}
alone, together = cut["full"] - at["full"], cut["scissorhands"] - at["full"]
assert abs(row["nll_pruned"] - alone) < 1e-4, (row, alone)
assert abs(row["nll_pruned_interaction"] - (together - alone - (at["scissorhands"] - at["full"]))) < 2e-4, row
P
verdict "every step's file begins with its command" "$(
    for f in out/whole/model/*.txt; do
        head -n 1 "$f" | grep -q '^\$ shears [a-z]' || echo "# $f: $(head -n 1 "$f")"
    done)"
if PATH=${search-$PATH} command -v gnuplot >/dev/null; then
    for f in figure-1-attention-map.svg figure-2-persistence.svg figure-3-compression.svg figure-4-score-change.svg \
        figure-5-random-weights.svg leaderboard.svg report.html; do
        holds "$f is there" test -s out/whole/model/$f
    done
fi

run reproduce "${given[@]}" -o out/whole
expect "once more is no work" 0 '"steps_done": 0' ""
run reproduce "${given[@]/--json/--csv}" -o out/whole
expect "--columns chooses among the figures, and no step takes them for its own" 0 "^model,[0-9.]+\$" ""
holds "  two of them" test "$(sed -n 1p log/out)" = model,ppl
cp -r out/whole out/other
run reproduce "${given[@]}" --items 3 -o out/whole
expect "other questions: those steps are done again" 0 '"steps_done": [1-9]' ""
holds "and the trace is not" python -c '
import json; said = json.load(open("log/out")); assert said["steps_known"] >= 9, said'

# Killed in the middle.
"$SHEARS" reproduce "${given[@]}" -o out/killed >log/killed 2>&1 </dev/null &
victim=$!
for ((i = 0; i < 600; i++)); do
    [ -e out/killed/model/eval.txt ] && break
    sleep 0.05
done
kill -9 $victim 2>/dev/null
wait $victim 2>/dev/null
run reproduce "${given[@]}" -o out/killed
expect "killed, the same command goes on" 0 '"steps_failed": 0' ""
holds "with what was done before" python -c '
import json; said = json.load(open("log/out")); assert said["steps_known"] >= 7 and said["steps_done"] >= 5, said'
results out/other whole.txt
results out/killed killed.txt
holds "and ends with the results of one that nobody stopped" cmp whole.txt killed.txt
holds "of which there are some" test -s whole.txt

rm -rf out && mkdir out
refuse "no model" 2 "reproduce .*--model" reproduce -o out/x --text docs.jsonl
refuse "nothing to read" 2 "--text FILE.* --jsonl FILE" reproduce --model model -o out/x
refuse "two kinds of texts" 2 "--text FILE.* --jsonl FILE" reproduce --model model -o out/x --text docs.jsonl --jsonl docs.jsonl
refuse "an unknown size" 2 "small, medium, full" reproduce --model model -o out/x --jsonl docs.jsonl --size huge
refuse "no such text" 1 "nowhere.jsonl: cannot be read" reproduce --model model -o out/x --jsonl nowhere.jsonl
refuse "no such model" 1 "nowhere" reproduce --model nowhere -o out/x --jsonl docs.jsonl
finish
