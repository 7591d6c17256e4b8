#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shears eval --task: prompts, log-likelihoods, choices and accuracies are those of a brute-force scorer
# (tests/oracle/tasks.py), over the full cache and with eviction inside the prompt; results are kept and
# found again; records that are no records are named by their line.
. "$(dirname "$0")/lib.sh"

records=$SH_GOLDEN/tasks
mkdir model && cp "$records"/model/* "$tokenizer"/{vocab.json,merges.txt,special_tokens_map.json,tokenizer_config.json} model

same_as_golden() { # task, shots, cells that answer to the policies asked for
    python "$cli/tasks.py" items log/out "$@"
}

for task in hellaswag piqa winogrande mathqa openbookqa arc_easy copa lambada; do
    for shots in 0 1; do
        run eval --model model --task $task --data "$records/$task.jsonl" --shots $shots --items items --json -q \
            --policy streaming:sinks=2 --budget 12
        cp log/out streaming.json
        holds "$task, $shots examples: full cache and streaming" \
            python "$cli/tasks.py" items streaming.json $task $shots streaming:sinks=2@12
        run eval --model model --task $task --data "$records/$task.jsonl" --shots $shots --items items --json -q \
            --policy h2o:recent=0 --budget 0.3
        holds "$task, $shots examples: h2o, a share of the longest choice" same_as_golden $task $shots h2o@0.3
    done
done

run eval --model model --task hellaswag --data "$records/hellaswag.jsonl" --shots 1 --json -q
holds "a prompt longer than the model's positions loses its beginning, and is counted" python -c 'import json, sys
r = json.load(open("log/out")); assert r["cut_choices"] > 0 and r["items"] == 3, r
assert r["results"][0]["policy"] == "full" and r["results"][0]["acc"] == r["acc"], r'

tail -n +2 "$records/piqa.jsonl" >rest.jsonl
head -n 1 "$records/piqa.jsonl" >first.jsonl
run eval --model model --task piqa --data rest.jsonl --shots 1 --shots-data first.jsonl --items items --json -q
holds "examples of a file of their own" same_as_golden piqa 1
run eval --model model --task piqa --data "$records/piqa.jsonl" --shots 1 --count 1 --json -q
holds "--count leaves the examples out" python -c 'import json
assert json.load(open("log/out"))["items"] == 1'

# Results are kept, and what is there is not done again.
ask=(eval --model model --task copa --data "$records/copa.jsonl" --db out/r.db --json -q --policy window h2o --budget 10)
run "${ask[@]}"
cp log/out first.json
printf '%s\n' "$(sqlite3 out/r.db "SELECT count(DISTINCT settings) FROM result WHERE command = 'task'" 2>/dev/null)" >count
run "${ask[@]/--json/--csv}"
expect "kept results are found again" 0 'copa' ""
run "${ask[@]}"
holds "the same figures" cmp first.json log/out
if command -v sqlite3 >/dev/null; then
    holds "one result for each policy, and the full cache's" grep -qx 3 count
else
    skip "one result for each policy, and the full cache's" "sqlite3 is not here"
fi
rm -rf out && mkdir out

run eval --model model --task copa --data "$records/copa.jsonl" -q --policy full --kv-bits 8 --budget 1.0
expect "a full cache of codes is a row of its own" 0 'full .* 8  copa' ""

# ---- bad input ----
refuse "an unknown task" 2 'unknown task "hellaswagg"$' \
    eval --model model --task hellaswagg --data "$records/copa.jsonl"
holds "an unknown task: the nearest is named" grep -q '^hint: did you mean hellaswag[?]' log/err
refuse "no data" 2 ".*--data FILE" eval --model model --task copa
refuse "data that is not there" 1 "none.jsonl: cannot be read" eval --model model --task copa --data none.jsonl
refuse "--shots without a task" 2 "--shots.* --task NAME" eval --model model --text first.jsonl --shots 2
refuse "a task with texts" 2 "--task .*--text" eval --model model --task copa --data first.jsonl --text first.jsonl
refuse "more examples than records" 2 "has only 3 records" eval --model model --task copa --data "$records/copa.jsonl" --shots 3
refuse "a budget that what is protected fills" 2 "line 1: streaming: a budget of 4 tokens" \
    eval --model model --task copa --data "$records/copa.jsonl" --policy streaming:sinks=4 --budget 4
refuse "a policy that looks into the future" 2 "oracle needs future attention" \
    eval --model model --task copa --data "$records/copa.jsonl" --policy oracle --budget 8 --db out/r.db

broken() { # description, sentence, record
    { cat "$records/copa.jsonl" && printf '%s\n' "$3"; } >broken.jsonl
    refuse "$1" 1 "broken.jsonl: line 4: $2" eval --model model --task copa --data broken.jsonl --db out/r.db
}
broken "not JSON" "not valid JSON" '{"premise": "The'
broken "no object" "expected a JSON object" '[1, 2]'
broken "a field that is not there" 'field "premise": found nothing' '{"choice1": "a"}'
broken "a field of another kind" 'field "choice1": found an integer' \
    '{"premise": "A b.", "question": "cause", "choice1": 7, "choice2": "b", "label": 0}'
broken "a label that is none of the choices" 'field "label": found 2, expected a whole number from 0 to 1' \
    '{"premise": "A b.", "question": "cause", "choice1": "a", "choice2": "b", "label": 2}'
broken "an empty choice" "choice 1 is empty" '{"query": "A b", "choices": ["a", ""], "gold": 0}'
broken "a NUL in a text" "not valid JSON: .u0000 is not allowed" '{"query": "A \u0000 b", "choices": ["a", "c"], "gold": 0}'
broken "a choice alone longer than the model" "choice 0: [0-9]* tokens, 3 of them before the choice: the model has only 100 positions" \
    "{\"query\": \"A b\", \"choices\": [\"$(printf 'word %.0s' {1..300})\", \"c\"], \"gold\": 0}"
: >empty.jsonl
refuse "no record" 1 "no records, expected one JSON object per line" eval --model model --task copa --data empty.jsonl
finish
