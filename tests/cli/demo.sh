#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The demonstration: it ends by naming what to open, the trained model persists beyond recency and its
# random twin does not, the default codec is as small as promised on real text, and again is no work.
. "$(dirname "$0")/lib.sh"
[ -z "${SH_SANITIZED-}" ] || { echo "1..0 # SKIP under sanitizers: minutes of what other tests do in seconds"; exit 0; }

# A folder in which the demonstration has run, to save the time; else it runs here.
[ -z "${SH_DEMO-}" ] || cp -r "$SH_DEMO" out/d
run demo out/d --json
cp log/out demo.json
expect "the demonstration runs and shows its commands" 0 '"comparison"' '^\$ shears trace --model'
holds "trained: lift at R = 10, K = 5 of at least 1.3; random: nothing is pivotal" python - <<'P'
import json
rows = {(r["weights"], r["alpha"]): r for r in json.load(open("demo.json"))["comparison"]}
assert rows["trained", "5/t"]["lift"] >= 1.3, rows["trained", "5/t"]
assert rows["random", "5/t"]["lift"] is None and rows["random", "5/t"]["density"] == 0, rows["random", "5/t"]
assert rows["random", "1/t"]["ratio"] > 0.95 and abs(rows["random", "1/t"]["lift"] - 1) < 0.02, rows["random", "1/t"]
P
holds "the README shows the same comparison, to within 2 %" python - <<'P'
import json, os, re
rows = json.load(open("demo.json"))["comparison"]
shown = re.findall(r"^      (trained|random) +(\S+) +(\d+) +(\S.*)$", open(os.environ["SH_TOP"] + "/README.md").read(), re.M)
assert len(shown) == len(rows) == 4, shown
for r, (weights, alpha, least, rest) in zip(rows, shown):
    assert (weights, alpha) == (r["weights"], r["alpha"]), (r, weights, alpha)
    for name, text in zip(("ratio", "density", "lift", "relative_risk", "auc"), rest.split()):
        found = r[name]
        assert (found is None) == (text == "-"), (r, name, text)
        assert found is None or abs(found - float(text)) <= 0.02 * abs(found), (r, name, text)
P
run info out/d/trained.db --json
holds "log8 takes at most 0.85 byte a score, no more than 0.12 above its entropy" python - <<'P'
import json
said = json.load(open("log/out"))
assert said["codec"] == "log8" and said["bytes_per_score"] <= 0.85, said["bytes_per_score"]
assert said["bytes_per_score"] <= said["code_entropy_bytes"] + 0.12, (said["bytes_per_score"], said["code_entropy_bytes"])
P
run trace --model out/d/demo-opt --db out/sparse.db --text out/d/natural.txt --length 512 --count 3 --record sparse -q --json
holds "sparse takes at most 0.25 byte a score" python -c '
import json; said = json.load(open("log/out")); assert said["bytes_per_score"] <= 0.25, said["bytes_per_score"]'
run verify --db out/d/trained.db -q
expect "its store is whole" 0 'complete +yes' ""
run demo out/d -q
if PATH=${search-$PATH} command -v gnuplot >/dev/null; then
    expect "again: names the report to open" 0 'Open out/d/report.html' ""
    holds "the figures are there" test -s out/d/report.html -a -s out/d/persistence.svg -a -s out/d/persistence-grid.svg -a -s out/d/heads.svg -a -s out/d/heatmap.svg
else
    expect "again, without gnuplot: names the table to open" 0 'Open out/d/persistence-trained.txt' ""
fi
verdict "again traced nothing new" "$(
    for kind in natural recall; do
        grep -Eq '^layers finished +24$' out/d/trained-$kind.txt || { echo "# trained-$kind.txt:"; sed 's/^/# /' out/d/trained-$kind.txt; }
    done)"

# Examples: those of the README and of doc/commands.md print what is shown there, those of the manual pages succeed and
# print something. Both lists run at the same time, the manual's in a folder of its own.
judge_examples() { # label, file with the output of examples.py
    while read -r line; do
        case $line in
            "ok "*"# SKIP"*) skip "$1: ${line#*- }" "" ;;
            "ok "*) ok "$1: ${line#*- }" ;;
            "not ok "*) not_ok "$1: ${line#*- }" ;;
            "# "*) echo "$line" ;;
        esac
    done < <(sed 's/ # SKIP .*/ # SKIP/' "$2")
    verdict "$1: every example was tried" "$(grep -Eq '^1\.\.[1-9]' "$2" || echo "# examples.py did not come to its end")"
}
ln -s out/d shears-demo
mkdir manual
cp -r out/d manual/shears-demo
run help --man manual
(
    cd manual
    ln -s shears-demo/demo-opt opt-125m
    cp shears-demo/*.db .
    head -c 2000 shears-demo/natural.txt >book.txt
    printf '%s\n' arrival_s,prompt_tokens,output_tokens 0,100,20 0.5,200,30 >trace.csv
    for clients in 8 64; do
        printf '{"max_concurrency": %d, "completed": 80, "total_input_tokens": 80000, "total_output_tokens": 8000,
            "mean_ttft_ms": %d, "mean_tpot_ms": 9}\n' "$clients" $((clients * 9)) >"c$clients.json"
    done
    printf '{"text": "%s"}\n' "And it came to pass" "In those days" >prompts.jsonl
    python "$cli/examples.py" manual shears-*.1 >tap 2>&1
) &
python "$cli/examples.py" document "$SH_TOP/README.md" "$SH_TOP/doc/commands.md" >document.tap 2>&1
wait
judge_examples document document.tap
judge_examples manual manual/tap
finish
