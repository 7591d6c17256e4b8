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
for d in range(20):
    print(json.dumps({"text": " ".join(words[(5 * i * (d + 1) + i // 5) % len(words)] for i in range(100))}))
P
given=(--model model --jsonl docs.jsonl --gpu L4,H100-SXM --length 64 -q --json)

refuse "no model" 2 "study .*--model" study --jsonl docs.jsonl -o out/x
refuse "nothing to read" 2 "--text FILE.* --jsonl FILE" study --model model -o out/x
refuse "no such text" 1 "nowhere.txt: cannot be read" study --model model --text nowhere.txt -o out/x
refuse "1 is 100 %" 2 "found 1, which is 100 %" study --model model --jsonl docs.jsonl --target-ppl-increase 1 -o out/x
refuse "a target of nothing" 2 "expected more than 0" study --model model --jsonl docs.jsonl --target-ppl-increase 0 -o out/x
refuse "a target of nine times as much" 2 "at most 100%" study --model model --jsonl docs.jsonl --target-ppl-increase 900% -o out/x

refuse "a column that is not known, before anything runs" 2 'columns: unknown column "bytes"' study --model model \
    --jsonl docs.jsonl --columns status,bytes -o out/x
refuse "a GPU that is not known, before anything runs" 2 'GPU "H10O" is not known' study --model model --jsonl docs.jsonl \
    --gpu L4,H10O -o out/x
printf 'And it \377\376 came' >bytes.txt
: >empty.txt
echo "the old man went" >short.txt
refuse "a text that is not UTF-8" 1 'bytes.txt: the text is not UTF-8: byte 0xFF at offset 7' study --model model \
    --text bytes.txt -o out/x
refuse "an empty text" 1 'empty.txt: found no text' study --model model --text empty.txt -o out/x
refuse "a text too short to be studied" 1 'short.txt: found no sequence, expected a text of at least' study \
    --model model --text short.txt -o out/x
cp -r model nan
python - <<'P'
import json, struct
data = bytearray(open("nan/model.safetensors", "rb").read())
n = struct.unpack("<Q", data[:8])[0]
tensors = json.loads(data[8:8 + n])
at = next(8 + n + t["data_offsets"][0] for name, t in tensors.items() if name.endswith("fc2.bias"))
data[at:at + 4] = b"\xff" * 4                       # a NaN in every float format
open("nan/model.safetensors", "wb").write(data)
P
refuse "a model with a NaN" 1 "nan: .*fc2.bias': element 0 .*nan" study --model nan --jsonl docs.jsonl --length 64 \
    -o out/x
refuse "longer than the model's positions" 2 "--length: found 8192, expected at most the model's" study --model model --jsonl docs.jsonl \
    --length 8k -o out/x
golden_tokens opt >tokens.jsonl
mkdir other
run trace -q --model "$checkpoints/opt" --tokens tokens.jsonl --db other/trained.db
refuse "a folder with the study of another model" 2 "other: holds a study of another model" study "${given[@]}" -o other
holds "  which stays as it was" test "$(ls other)" = trained.db

mkdir held
python3 - <<'P' &
import fcntl, os, time
at = os.open("held", os.O_RDONLY)
fcntl.flock(at, fcntl.LOCK_EX)
open("is-held", "w").close()
time.sleep(60)
P
holder=$!
until [ -e is-held ]; do sleep 0.05; done
refuse "a folder in which another study runs" 1 "held: another command is writing to this folder" study "${given[@]}" -o held
holds "  which stays empty" test -z "$(ls held)"
kill "$holder"

run study "${given[@]}" --target-ppl-increase 90% -o out/s
if ! command -v gnuplot >/dev/null; then skip "a study" "gnuplot is not here"; finish; exit; fi
cp log/out first.json
expect "a study runs to its end" 0 '"status": "met"' ""
holds "  with the answer of the plan, whose evidence it gives" python - <<'P'
import json
said, plan = json.load(open("first.json")), json.load(open("out/s/plan.json"))
assert said["steps_failed"] == 0 and said["steps_run"] > 12 and not said["left_out"], said
judged = {v["metric"]: v for v in plan["evidence"]}["ppl_increase"]
assert plan["status"] == "met" and plan["target"] == {"metric": "ppl_increase", "value": 0.9}
assert (said["ppl_increase"], said["ppl_increase_bound"], said["sequences"]) == (judged["value"], judged["high"], 12), said
assert said["ppl_increase_bound"] <= 0.9 and abs(said["share"] - plan["share"]) < 1e-5 and said["policy"] == plan["policy"]["name"]
assert "On one L4" in said["buys"] and "12 sequences of 64 tokens from docs.jsonl" in said["measured"], said
assert "A plan sets how many tokens" in said["how"] and "The cache can shrink to " in said["answer"] and "(allowed: 90 %)" in said["answer"], said["answer"]
P
resized() { # the plan with other budgets, [layer][head]
    python - "$1" <<'P'
import json, sys
plan, budgets = json.load(open("out/s/plan.json")), json.loads(sys.argv[1])
n, total, heads = plan["n_token"], sum(map(sum, budgets)), sum(map(len, budgets))
shares = [[b / n for b in row] for row in budgets]
print(json.dumps(plan | {"budgets": budgets, "shares": shares, "total_tokens": total, "mean_tokens": total / heads,
                         "share": total / heads / n}))
P
}
resized "[[1, 1], [3, 5]]" >uneven.json
run report --db out/s/trained.db --plan uneven.json --model model --gpu L4 --target-ppl-increase 90% -q -o out/uneven.html
holds "  fewer sizes: fewer requests, as the largest layer and head decide" python - <<'P'
import re
page = re.sub(r"<[^>]*>", "", open("out/uneven.html").read())
times, layers, one = map(float, re.search(r"up to ([0-9.]+) times .* size of its own. With one size for all heads of a layer, it is ([0-9.]+) times; with one size for all layers and heads, as in most servers, ([0-9.]+) times", page).groups())
assert abs(layers / times - 10 / 12) < 0.01 and abs(one / times - 10 / 20) < 0.01, (times, layers, one)
assert re.search(r"3\.91\s% of its tokens \(3\.91\s% of its bytes\)", page)     # the policy is window
P
resized "[[1, 1], [3, 60]]" >wide.json
run report --db out/s/trained.db --plan wide.json --model model --gpu L4 --target-ppl-increase 90% -q -o out/wide.html
holds "  with one size, a measured budget that fits more than the plan's largest head" python - <<'P'
import re
page = re.sub(r"<[^>]*>", "", open("out/wide.html").read())
one, policy = re.search(r"With one size for all layers and heads, as in most servers, it is ([0-9.]+) times \(with (\S+) at 20\s% instead of the plan\)", page).groups()
bar = re.search(r"\b20\s%(?:(?!×).)*?([0-9.]+)\s×", page[page.index("perplexity change"):], re.S)
assert bar[1] == one and 64 / 60 < float(one) < 1.01 * 64 / 13, (bar[1], one)       # 20 % of 64 are 13 tokens
P
rm out/uneven.html
holds "  nothing that was traced judges: 6 of 20 texts were, and 12 of the others are judged" python - <<'P'
lines = open("out/s/plan.txt").read().splitlines()
assert "--search-first 6 " in lines[0] + " " and "--sequences" not in lines[0], lines[0]
assert "--count 6" in open("out/s/trace.txt").readline()
P
holds "  the server runs with the plan and its measured quality, and the answer names the budget without a plan" python - <<'P'
import json, re
said, plan, served = json.load(open("first.json")), json.load(open("out/s/plan.json")), open("out/s/simulate.txt").read()
assert "--policy-state" in served and "--compare bytes" in open("out/s/plan.txt").readline()
assert "--plan out/s/plan.json" in served and "--budget" not in served and "not measured" not in served, served
judged = {v["metric"]: v for v in plan["evidence"]}["ppl_increase"]["value"]
assert f"{plan['policy']['name']}: perplexity {100 * judged:+.2f} % (" in served, served
assert re.search("Without a plan, .*, [0-9.]+ % is the smallest .*, with the policy [a-z0-9-]+(:[a-z0-9.,=]+)?, which ", said["how"]), said["how"]
page = open("out/s/report.html").read()
serving = page[page.index('<section id="serving">'):].split("</section>")[0]
assert re.search(r"With plan.json, at \d\d{4,} requests per second: ", serving), serving[-3000:]
assert f"Quality of plan.json: {plan['policy']['name']}: perplexity {100 * judged:+.2f} % (" in serving and "not measured" not in serving and "plan.json" in serving
P
run plan "${given[@]:0:4}" --length 64 --search-first 6 --target-ppl-increase 90% -q --json -o out/tried
cp log/out tried.json
rm out/tried
holds "  the plan's policy, and all others that plan tries, are evaluated without a plan, too" python - <<'P'
import json, sqlite3
rows = [json.loads(t) for t, in sqlite3.connect("out/s/trained.db").execute(
    "SELECT DISTINCT settings FROM result WHERE command = 'eval'")]
evaluated = {(s["policy"], s.get("knobs", "")) for s in rows if s["kv_bits"] == 32 and s["weight_bits"] == 16 and "plan" not in s}
plan = json.load(open("tried.json"))
tried = {(s["policy"], s["knobs"]) for s in plan["searched"] + plan.get("left_out", [])}
assert len({p for p, _ in tried}) == 4 and tried <= evaluated, (tried - evaluated, evaluated)
P
holds "  on a page that lacks nothing, whose sentences lead to what they rest on" python - <<'P'
import html, re
page = open("out/s/report.html").read()
first = page[:page.index("<nav")].replace("\u00a0", " ")
assert "(allowed: 90 %)" in first and "plan, " in first and first.count('class="is"') == 1
part = page[page.index('<section id="allocation">'):].split("</section>")[0]
for link, there in ("judged", "ppl_increase"), ("judged-texts", "divided in two"):
    assert first.count(f'href="#{link}"') == 1 and part.count(f'id="{link}"') == 1, link
    assert there in part[part.index(f'id="{link}"'):], link
assert part.index("divided in two") < part.index('id="judged"') < part.rindex("ppl_increase</a>")
import json
said = json.load(open("first.json"))
same = re.search(r"plan's bar was measured on 12 sequences that .* measured on 12 sequences of 64 tokens from judged.jsonl \(sequences that judged the plan\). On these alone, the change with the plan is ([−+]?)([0-9.]+)[^0-9]*%", html.unescape(first))
assert float(("-" if same[1] == "−" else "") + same[2]) == round(100 * said["ppl_increase"], 2), (same, said)
texts = re.search(r'href="#judged-texts">how that was measured', first)
assert texts and "Several sizes were tried in turn" in part
figure = page[page.index('id="fig-frontier"'):].split("</figure>")[0]
assert "<td>h2o:<wbr>recent=0.5</td>" in page and "scissorhands:<wbr>recent=0.5,<wbr>drop=1" in page
assert ">limit, 90 %<" in figure and ">L4<" not in figure       # the only GPU is in the title
assert 'class="missing"' not in page and 'class="lacks"' not in page
assert "shears plan --model model" in page and "--target-recall" not in page
P
run study "${given[@]:0:8}" -q --target-ppl-increase 90% --columns "status,what it buys,share,steps_run" -o out/s
expect "known columns are shown, also by their headings" 0 '^what it buys +On one L4' ""
holds "  and only they" sh -c '! grep -q -e "^answer" -e "^policy" log/out && grep -q "^status *met$" log/out'
run study "${given[@]}" --target-ppl-increase 90% -o out/s
holds "again: nothing is run, the same answer" python - <<'P'
import json
first, again = json.load(open("first.json")), json.load(open("log/out"))
assert again["steps_run"] == 0 and again["steps_known"] == first["steps_run"] and again["answer"] == first["answer"], again
P
rm out/s/capacity.txt out/s/simulate.txt out/s/plan.txt out/s/report.txt
run study "${given[@]}" --target-ppl-increase 90% -o out/s
holds "what is missing is run" python -c 'import json; assert json.load(open("log/out"))["steps_run"] == 7'
cp docs.jsonl other.jsonl
run study --model model --jsonl other.jsonl --gpu L4,H100-SXM --length 64 -q --json -o out/s
expect "a folder with the study of other texts" 2 "" "out/s: holds a study of other texts .*trace.*docs.jsonl"

# Killed once the replay is done: in an evaluation, the plan, or between steps.
"$SHEARS" study "${given[@]}" --target-ppl-increase 90% -o out/k >log/killed 2>&1 </dev/null &
killed=$!
until [ -e out/k/replay.txt ] || ! kill -0 $killed 2>/dev/null; do sleep 0.02; done
kill -9 $killed
wait $killed 2>/dev/null
holds "killed midway: no page" test -e out/k/replay.txt -a ! -e out/k/report.html
run study "${given[@]}" --target-ppl-increase 90% -o out/k
expect "the same command resumes" 0 '"status": "met"' ""
holds "  without what was done, to the same plan and answer" python - <<'P'
import json
first, again = json.load(open("first.json")), json.load(open("log/out"))
assert again["steps_known"] >= 5 and again["steps_known"] + again["steps_run"] == first["steps_run"], again
for key in "status", "answer", "buys", "measured", "share", "ppl_increase", "ppl_increase_bound":
    assert again[key] == first[key], key
assert json.load(open("out/k/plan.json"))["budgets"] == json.load(open("out/s/plan.json"))["budgets"]
P
run study "${given[@]}" --target-ppl-increase 0.0001% -o out/s
holds "another target: the plan and what follows it; where the plan misses it, a budget that holds answers" python - <<'P'
import json
said, plan = json.load(open("log/out")), json.load(open("out/s/plan.json"))
assert plan["status"] == "not_shown" and said["steps_run"] == 7 and said["ppl_increase_bound"] <= 1e-6, said
assert said["status"] == "met" and "out/s/plan.json is not shown to stay within" in said["how"] and "judged.jsonl" in said["measured"], said
P
holds "  whose server has the new plan alone" python - <<'P'
import json, sqlite3
plans = {(s["plan"], s["evidence"]) for (t,) in sqlite3.connect("out/s/trained.db").execute(
    "SELECT DISTINCT settings FROM result WHERE command = 'simulate'") for s in [json.loads(t)]}
assert len(plans) == 2, plans
P
run study "${given[@]}" --target-ppl-increase 0.0001% --seed 1 -o out/none
holds "a target that no budget is shown to meet: the best is named" python - <<'P'
import json
said, plan = json.load(open("log/out")), json.load(open("out/none/plan.json"))
assert said["status"] == plan["status"] == "not_shown" and said["answer"].startswith("No measured budget is shown"), said
assert said["buys"] is None and said["ppl_increase_bound"] > 1e-6, said
P
head -n 1 docs.jsonl >one.jsonl
run study --model model --jsonl one.jsonl --gpu L4 --length 64 -q --json -o out/one
expect "one text: all but a plan" 0 '"step": "plan: found 1 sequence, expected at least 2' ""
finish
