#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stores tell texts, models and runs apart: results name what they were measured on, nothing mixes different texts, a
# policy that was never evaluated is said to be so, evidence has true lengths, and two writers get along.
. "$(dirname "$0")/lib.sh"
command -v sqlite3 >/dev/null || { echo "1..0 # SKIP sqlite3 is not here"; exit 0; }

opt=$checkpoints/opt
mkdir other
python - <<'P'
ids = lambda s, n: [(7 * i * i + 3 * s + i) % 50 + 4 for i in range(n)]
for path, seeds, n in (("a.jsonl", (1, 2), 40), ("b.jsonl", (5, 6, 7), 40), ("other/a.jsonl", (8, 9), 40),
                       ("long.jsonl", (3,), 60)):
    open(path, "w").writelines(str(ids(s, n)) + "\n" for s in seeds)
P
quietly() { run "$@"; [ $status = 0 ] || { not_ok "$1"; sed 's/^/# /' log/err; }; }
evaluate() { quietly eval -q --model "$opt" --tokens "$1" --db "$2" "${@:3}"; }
field() { python -c 'import json, sys; print(json.load(open("log/out"))[sys.argv[1]])' "$1"; }

# ---- names ----

quietly trace -q --model "$opt" --tokens a.jsonl --db t.db
evaluate a.jsonl t.db --policy h2o:recent=5 window --budget 0.3,0.6 --json
holds "eval --json: the text" [ "$(field text)" = a.jsonl ]
hash=$(field text_hash)
quietly replay -q --db t.db --policy h2o:recent=5 --budget 0.3,0.6 --json
holds "replay --json: the text" [ "$(field text)" = a.jsonl ]
holds "a trace and an evaluation of the same texts say so" [ "$(field text_hash)" = "$hash" ]
holds "both are stored with the results" [ "$(sqlite3 t.db "SELECT DISTINCT command, name, texts, tokens, hash FROM measured" |
    tr '\n' ' ')" = "eval|a.jsonl|2|80|$hash replay|a.jsonl|2|80|$hash " ]
run eval -q --model "$opt" --tokens a.jsonl --count 1 --policy window --budget 0.5 --json
holds "fewer texts of a file are others" [ "$(field text)" = a.jsonl -a "$(field text_hash)" != "$hash" ]

# ---- a policy that was never evaluated ----

refuse "h2o:recent=5 is not h2o" 1 "t.db: h2o was never evaluated with prefill 0; evaluated: .*h2o:recent=5" \
    plan --db t.db --policy h2o --target-ppl 1e6 -o out/plan.json
run plan --db t.db --policy h2o --target-ppl 1e6
holds "how to ask for what was" grep -q "^hint: --policy h2o:recent=5 names what was evaluated" log/err
refuse "tova was never evaluated" 1 "t.db: tova was never evaluated .*window" \
    plan --db t.db --policy tova --target-ppl 1e6 -o out/plan.json
refuse "nor window with another prefill" 1 "window was never evaluated with prefill 8; evaluated: .*window .prefill 0." \
    plan --db t.db --policy window --prefill 8 --target-ppl 1e6 -o out/plan.json
run plan -q --db t.db --policy h2o:recent=5 --target-ppl 1e6 --json
expect "what was evaluated is planned" 0 . ""
holds "its evidence names the text" python -c 'import json
said = {(e["metric"], e["text"]) for e in json.load(open("log/out"))["evidence"]}
assert said >= {("ppl", "a.jsonl"), ("kept_mass", "a.jsonl")}, said'

# ---- several texts ----

run plan -q --db t.db --policy window --target-ppl 1e6 --json
cp log/out before.json
cp t.db one.db
evaluate b.jsonl t.db --policy window --budget 0.3,0.6
refuse "plan: two texts" 2 't.db: .*"a.jsonl".*"b.jsonl"' plan --db t.db --policy window --target-ppl 1e6 -o out/plan.json
run plan --db t.db --policy window --target-ppl 1e6
holds "how to choose" grep -q "^hint: .*--measured-on \"a.jsonl\"" log/err
run plan -q --db t.db --policy window --target-ppl 1e6 --measured-on a.jsonl --json
holds "plan: the one that was named, as before" python -c 'import json
old, new = json.load(open("before.json")), json.load(open("log/out"))
assert old["evidence"] == new["evidence"] and old["mean_tokens"] == new["mean_tokens"], (old["evidence"], new["evidence"])'
run plan -q --db t.db --policy h2o:recent=5 --target-ppl 1e6
expect "plan: this policy has one text, nothing to choose" 0 . ""
refuse "no such text" 2 '--measured-on c.jsonl: .*"a.jsonl"' \
    plan --db t.db --policy window --target-ppl 1e6 --measured-on c.jsonl -o out/plan.json
refuse "nothing is looked up" 2 "--measured-on requires --target-ppl" \
    plan --db t.db --policy window --budget 0.5 --measured-on a.jsonl -o out/plan.json

ask=(capacity --model "$opt" --gpu H100-SXM --memory 4G)
refuse "capacity: two texts" 2 't.db: .*"a.jsonl".*"b.jsonl"' "${ask[@]}" --length 40 --db t.db --max-ppl-increase 900%
run "${ask[@]}" --length 40 --db t.db --max-ppl-increase 900% --measured-on b.jsonl --json
holds "capacity: the one that was named" python -c 'import json
r, = json.load(open("log/out"))["results"]
assert r["measured_text"] == "b.jsonl" and " over 117 predicted tokens of b.jsonl" in r["evidence"], r["evidence"]'
run "${ask[@]}" --length 40 --db t.db --max-ppl-increase 900% --policy h2o
expect "capacity: this policy has one text, nothing to choose" 0 " a.jsonl, t.db$" ""
refuse "a text without a store" 2 "--measured-on requires --db" "${ask[@]}" --length 40 --measured-on a.jsonl
run "${ask[@]}" --length 40 --db t.db --json
holds "capacity without a limit: each row has its text" python -c 'import json
assert {r["measured_text"] for r in json.load(open("log/out"))["results"]} == {"a.jsonl", "b.jsonl"}'

# ---- true lengths ----

lengths() { # the lengths that the evidence names
    python -c 'import json, re
rows = json.load(open("log/out"))["results"]
print(*sorted({re.search("texts have ([0-9]+) tokens", r["evidence"])[1] for r in rows}))'
}
run "${ask[@]}" --length 4000 --db one.db --json
holds "evidence has the length of the texts, whatever the budget" [ "$(lengths)" = 40 ]
cp one.db old.db && sqlite3 old.db "DROP TABLE measured"        # a store from before texts had names
run "${ask[@]}" --length 4000 --db old.db --json
holds "also of results from before" [ "$(lengths)" = 40 ]

# ---- the same name, and none ----

evaluate other/a.jsonl one.db --policy window --budget 0.3
refuse "two files of one name: hashes" 2 'one.db: .*"a.jsonl .2 texts, 80 tokens, [0-9a-f]{6}.".*"a.jsonl ' \
    plan --db one.db --policy window --target-ppl 1e6 -o out/plan.json
run plan --db one.db --policy window --target-ppl 1e6
label=$(grep -Eo '"a.jsonl [^"]*"' log/err | head -n 1 | tr -d '"')
run plan -q --db one.db --policy window --target-ppl 1e6 --measured-on "$label"
expect "such a label is a name" 0 . ""
run plan -q --db one.db --policy window --target-ppl 1e6 --measured-on "${hash:0:8}"
expect "the beginning of a hash is one, too" 0 . ""
evaluate long.jsonl old.db --policy window --budget 0.3
refuse "without a name: unknown" 2 'old.db: .*"unknown"' plan --db old.db --policy window --target-ppl 1e6 -o out/plan.json
run plan -q --db old.db --policy window --target-ppl 1e6 --measured-on unknown
expect "which can be asked for" 0 . ""
run replay -q --db old.db --policy h2o:recent=5 --budget 0.3,0.6
expect "results from before are found again" 0 "2 of 2 rows .*store" ""

# ---- figures and the report ----

quietly trace -q --model "$opt" --tokens b.jsonl --db t.db
quietly replay -q --db t.db --run 2 --policy h2o:recent=5 window --budget 0.3,0.6 --json
holds "a replay of the second run is of its text" [ "$(field text)" = b.jsonl ]
for figure in budget-curve leaderboard compression; do
    refuse "$figure: two texts" 2 't.db: .*"a.jsonl".*"b.jsonl"' plot $figure --db t.db -o out/f.gp --script
    run plot $figure --db t.db --measured-on b.jsonl -o out/f.gp --script
    expect "$figure: the one that was named" 0 "" ""
    holds "$figure: is drawn" test -s out/f.gp
    rm -f out/*
done
run plot compression --db one.db -o out/f.gp --script
expect "compression: one budget on another text is no other curve" 0 "" ""
rm -f out/*
if command -v gnuplot >/dev/null; then
    run report -q --db t.db -o out/all.html --length 40
    expect "the report of two texts" 0 . ""
    holds "has a column and figures for each" python -c 'import re
page = open("out/all.html").read()
assert page.count("Measured on a.jsonl") == 1 and page.count("Measured on b.jsonl") == 1, "compression"
for i in "fig-budget-curve", "fig-budget-curve-2", "fig-compression", "fig-compression-2", "fig-leaderboard-2":
    assert f"id=\"{i}\"" in page, i
assert len(re.findall("<td[^>]*>a.jsonl", page)) > 4 and len(re.findall("<td[^>]*>b.jsonl", page)) > 4'
    run report -q --db t.db -o out/a.html --length 40 --measured-on a.jsonl
    holds "of the one that was named: nothing of the other" python -c 'import re
page = open("out/a.html").read()
assert "fig-budget-curve-2" not in page and len(re.findall("<td[^>]*>a.jsonl", page)) > 4
assert len(re.findall("<td[^>]*>b.jsonl", page)) == 1, "only in the table of traced texts"'
    rm -f out/*
    refuse "of a text that is not there" 2 '--measured-on c.jsonl' report --db t.db -o out/c.html --measured-on c.jsonl
else
    skip "the report" "gnuplot is not here"
fi

# ---- runs and models in one store ----

run trace --model "$opt" --tokens other/a.jsonl --db t.db
expect "another run of the model: said at once" 0 . "^shears: t.db: contains run 1 of this model .*this is run 3.*--run N"
run trace --model "$opt" --tokens other/a.jsonl --db t.db
expect "but once" 0 . ""
golden_tokens llama_gqa >gqa.jsonl
gqa=$checkpoints/llama_gqa
cp one.db many.db
run trace --model "$gqa" --tokens gqa.jsonl --db many.db
expect "another model: said at once" 0 . "^shears: many.db: contains run 1 of another model .opt, .*this is run 2 .*--run N"
cp one.db import.db
run import --db import.db --attention "$gqa/ref.safetensors"
expect "an import of another model, too" 0 . "^shears: import.db: contains run 1 of another model .opt, .*this is run 2 .*--run N"
cp one.db quiet.db
run trace -q --model "$gqa" --tokens gqa.jsonl --db quiet.db
expect "not with -q" 0 . ""
run replay -q --db many.db --policy window --budget 0.5
expect "without a model: --run" 2 "" "many.db: contains runs of several models"
for model in "$opt" "$gqa"; do
    run drift -q --model "$model" --db many.db --policy window --budget 0.5 --json
    holds "with --model ${model##*/}: the only run of it" [ $status = 0 -a "$(field model)" = "${model##*/}" ]
done
run drift -q --model "$checkpoints/mistral" --db many.db --policy window --budget 0.5
expect "none of this model" 2 "" "contains runs of several models"
quietly eval -q --model "$gqa" --tokens gqa.jsonl --db many.db --policy window --budget 0.2,0.4
run capacity --model "$gqa" --gpu H100-SXM --memory 4G --length 40 --db many.db --max-ppl-increase 900% --json
holds "capacity: the evidence of its own model" python -c 'import json
r, = json.load(open("log/out"))["results"]
assert r["measured_text"] == "gqa.jsonl" and "another model" not in r["evidence"], r["evidence"]'

# ---- two writers ----

python "$cli/checkpoint.py" random model num_hidden_layers=6 hidden_size=128 num_attention_heads=4 ffn_dim=512 \
    vocab_size=512
python -c 'for i in range(32): print([(7 * i + 3 * j * j + i * j) % 512 for j in range(256)])' >many.jsonl
both=(trace --model model --random-weights --tokens many.jsonl --codec f32 --threads 1 -q --db out/x.db)
"$SHEARS" "${both[@]}" >log/first.out 2>log/first.err </dev/null &
first=$!
run "${both[@]}"
sed -i '/: in use by another program; waiting/d' log/err
expect "the same trace twice at once: the one" 0 "^layers finished +192" ""
wait $first
status=$?
cp log/first.out log/out && sed '/: in use by another program; waiting/d' log/first.err >log/err
expect "and the other" 0 "^layers finished +192" ""
run verify -q --db out/x.db
expect "all of it is there, once" 0 "^complete +yes" ""
sqlite3 out/x.db "UPDATE run SET seconds = 2; DELETE FROM done WHERE layer > 2;
    DELETE FROM scores WHERE layer > 2; DELETE FROM head_stats WHERE layer > 2"
run info --json out/x.db
holds "an unfinished run: half of the layers are half of the speed" python -c 'import json
r = json.load(open("log/out"))
assert r["tokens_done"] == r["tokens"] / 2 and r["tokens_per_s"] == r["tokens"] / 4, r'
python - <<'P' &
import fcntl, os, struct, time
fd = os.open("out/x.db", os.O_RDWR)                             # what a trace that is running holds
fcntl.fcntl(fd, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 1 << 62, 1, 0))       # F_OFD_SETLK
open("claimed", "w").close()
while not os.path.exists("enough"): time.sleep(0.02)
P
holder=$!
while [ ! -e claimed ] && kill -0 $holder; do sleep 0.02; done
"$SHEARS" "${both[@]}" >log/out 2>log/err </dev/null &
second=$!
for _ in $(seq 300); do
    [ -s log/err ] && break
    sleep 0.1
done
kill -0 $second
waits=$?
touch enough
wait $holder
wait $second
status=$?
holds "it waits as long as the other has the store" [ $waits = 0 ]
expect "says so, and goes on" 0 "^layers finished +192" "^shears: out/x.db: in use by another program; waiting"
holds "once" [ "$(wc -l <log/err)" = 1 ]
finish
