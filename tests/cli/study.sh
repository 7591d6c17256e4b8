#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shears study: one command from a model to the page that begins with the answer; it resumes; what it is given must make
# sense.
. "$(dirname "$0")/lib.sh"

mkdir model && cp "$SH_GOLDEN"/tasks/model/* \
    "$tokenizer"/{vocab.json,merges.txt,special_tokens_map.json,tokenizer_config.json} model
chmod -R u+w model
python - <<'P' >docs.jsonl
import json
words = "the old man went down to the sea and said that it was good to be there in the light of the day".split()
for d in range(8):
    print(json.dumps({"text": " ".join(words[(7 * i * (d + 1) + i // 5) % len(words)] for i in range(100))}))
P
given=(--model model --jsonl docs.jsonl --gpu L4,H100-SXM --length 64 -q --json)

refuse "no model" 2 "study .*--model" study --jsonl docs.jsonl -o out/x
refuse "nothing to read" 2 "--text FILE.* --jsonl FILE" study --model model -o out/x
refuse "no such text" 1 "nowhere.txt: cannot be read" study --model model --text nowhere.txt -o out/x
refuse "1 is 100 %" 2 "found 1, which is 100 %" study --model model --jsonl docs.jsonl --target-ppl-increase 1 -o out/x
refuse "a target of nothing" 2 "expected more than 0" study --model model --jsonl docs.jsonl --target-ppl-increase 0 -o out/x

run study "${given[@]}" --target-ppl-increase 900% -o out/s
if ! command -v gnuplot >/dev/null; then skip "a study" "gnuplot is not here"; finish; exit; fi
cp log/out first.json
expect "a study runs to its end" 0 '"status": "met"' ""
holds "  with the answer of the smallest bound within the target, on eight texts" python - <<'P'
import json, sqlite3
said = json.load(open("first.json"))
assert said["steps_failed"] == 0 and said["steps_run"] > 12 and not said["left_out"], said
assert "On one L4" in said["buys"] and "8 sequences from 8 texts" in said["measured"] and "docs.jsonl" in said["measured"]
assert "of the cache is enough to stay within 900 %" in said["answer"], said["answer"]
page = open("out/s/report.html").read()
assert "to stay within 900 %" in page[:page.index("<nav")]
P
run study "${given[@]}" --target-ppl-increase 900% -o out/s
holds "again: nothing is run, the same answer" python - <<'P'
import json
first, again = json.load(open("first.json")), json.load(open("log/out"))
assert again["steps_run"] == 0 and again["steps_known"] == first["steps_run"] and again["answer"] == first["answer"], again
P
rm out/s/capacity.txt out/s/simulate.txt out/s/report.txt
run study "${given[@]}" --target-ppl-increase 900% -o out/s
holds "what is missing is run" python -c 'import json; assert json.load(open("log/out"))["steps_run"] == 3'
run study "${given[@]}" --target-ppl-increase 0.0001% -o out/s
holds "a target that no budget is shown to meet: the best is named" python - <<'P'
import json
said = json.load(open("log/out"))
assert said["status"] == "not_shown" and said["answer"].startswith("No measured budget is shown"), said
assert said["buys"] is None and said["steps_run"] == 1, said
P
finish
