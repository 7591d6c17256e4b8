#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shears eval: kept sets, logits and perplexities are those of PyTorch, figures follow from the logits,
# results are kept and found again, and what makes no sense is refused before any work.
. "$(dirname "$0")/lib.sh"

# ---- against PyTorch with eviction in its decoding loop ----

in_loop() { # checkpoint, case, policy, budget, prefill
    python "$cli/evals.py" tokens "$1" "$2" >ids.jsonl
    run eval -q --json --model "$checkpoints/$1" --tokens ids.jsonl --policy "$3" --budget "$4" --prefill "$5" \
        --dump-kept log/kept.jsonl --logits log/logits.npy
    cp log/out said.json
    holds "$1: $3 with $4, prefill $5" python "$cli/evals.py" case "$1" "$2" said.json log/kept.jsonl log/logits.npy
}
in_loop opt full full 1.0 0
in_loop opt window_b24 window 24 0
in_loop opt scissorhands_prefill48 scissorhands:window=32,recent=6,drop=6 24 48
in_loop llama streaming_b24_s4 streaming:sinks=4 24 0
in_loop llama_gqa h2o_b24_r8 h2o:recent=8 24 0
in_loop llama_gqa scissorhands_thr_t_b24 scissorhands:window=20,recent=4,drop=6,threshold=t 24 0

# ---- texts, end to end ----

for name in e2e_opt e2e_gpt2 e2e_llama2 e2e_llama3; do
    folder=${SH_FIXTURES:-nowhere}/$name
    if [ ! -f "$folder/ref_text.json" ]; then skip "$name: perplexity of texts" "the shared fixtures are not here"; continue; fi
    python - "$folder" >text.jsonl <<'P'
import json, sys
for c in json.load(open(sys.argv[1] + "/ref_text.json"))["cases"]: print(json.dumps({"text": c["text"]}))
P
    run eval -q --json --model "$folder" --jsonl text.jsonl --field text
    cp log/out said.json
    holds "$name: perplexity of texts" python - "$folder" <<'P'
import json, sys
cases = json.load(open(sys.argv[1] + "/ref_text.json"))["cases"]
said = json.load(open("said.json"))
n = [len(c["ids"]) - 1 for c in cases]
assert said["results"][0]["tokens"] == sum(n), (said["results"][0]["tokens"], n)
want = sum(c["mean_nll"] * k for c, k in zip(cases, n)) / sum(n)
assert abs(said["results"][0]["nll"] - want) < 1e-4, (said["results"][0]["nll"], want)
P
done

# Trained models: within 0.1 % of PyTorch.
data=${SH_TOP:-.}/../shared/data
if [ -d "$data/models" ]; then
    python - "$SH_GOLDEN/session/perplexity.json" <<'P'
import json, sys
for i, c in enumerate(json.load(open(sys.argv[1]))):
    open(f"ids{i}.jsonl", "w").write("".join(json.dumps(ids) + "\n" for ids in c["ids"]))
P
    for i in 0 1; do
        model=$(python -c "import json, sys; print(json.load(open(sys.argv[1]))[$i]['model'])" "$SH_GOLDEN/session/perplexity.json")
        run eval -q --json --model "$data/$model" --tokens ids$i.jsonl --policy window scissorhands:recent=2 tova --budget 0.5
        cp log/out said.json
        holds "$model: perplexity" python - "$SH_GOLDEN/session/perplexity.json" $i <<'P'
import json, math, sys
want = json.load(open(sys.argv[1]))[int(sys.argv[2])]
said = json.load(open("said.json"))
assert abs(said["full_ppl"] / math.exp(want["nll"]) - 1) < 1e-3, (said["full_ppl"], math.exp(want["nll"]))
for r in said["results"]:
    assert r["tokens"] == want["tokens"] and r["ppl"] > 0.98 * said["full_ppl"] and r["kl"] > 0, r
    assert r["kv_bytes"] < said["full_kv_bytes"] * (1 if r["policy"] != "scissorhands" else 2), r
P
    done
else
    skip "trained models: perplexity" "the shared data are not here"
fi

# ---- figures ----

golden_tokens opt >tokens.jsonl
run eval -q --json --model "$checkpoints/opt" --tokens tokens.jsonl --policy full h2o --budget 0.2,17 --prefill 8
cp log/out said.json
run eval -q --model "$checkpoints/opt" --tokens tokens.jsonl --logits full.npy
run eval -q --model "$checkpoints/opt" --tokens tokens.jsonl --logits h2o.npy --policy h2o --budget 17 --prefill 8
holds "--json: the contract's keys; kl, agreement and change follow from the logits" python - <<'P'
import json, math
from evals import npy
said = json.load(open("said.json"))
rows = said["results"]
assert [(r["policy"], r["budget"]) for r in rows] == [("full", 0.2), ("full", 17), ("h2o", 0.2), ("h2o", 17)]
for r in rows:
    assert isinstance(r["knobs"], str)
    for key in ("kv_bits", "tokens", "nll", "ppl", "ppl_stderr", "kl", "top1_agreement", "kv_bytes", "tokens_per_s"):
        assert isinstance(r[key], (int, float)), (key, r[key])
assert rows[0]["kl"] == 0 and rows[1]["top1_agreement"] == 1 and rows[0]["nll"] == said["full_nll"]
full, h2o = npy("full.npy"), npy("h2o.npy")
texts = [json.loads(line) for line in open("tokens.jsonl")]
assert len(full) == len(h2o) == sum(map(len, texts))

def log_p(row):
    most = max(row)
    total = most + math.log(sum(math.exp(x - most) for x in row))
    return [x - total for x in row]

kl, same, change, at = [], 0, [], 0
for ids in texts:
    for i in range(len(ids)):
        p, q = log_p(full[at + i]), log_p(h2o[at + i])
        kl.append(sum(math.exp(a) * (a - b) for a, b in zip(p, q)))
        same += full[at + i].index(max(full[at + i])) == h2o[at + i].index(max(h2o[at + i]))
        if i + 1 < len(ids):
            change.append(p[ids[i + 1]] - q[ids[i + 1]])
    at += len(ids)
r = rows[3]
mean = sum(change) / len(change)
error = math.sqrt(sum((x - mean) ** 2 for x in change) / (len(change) - 1) / len(change))
assert abs(sum(kl) / len(kl) - r["kl"]) < 1e-4 and abs(same / len(kl) - r["top1_agreement"]) < 1e-9
assert abs(mean - r["nll_change"]) < 1e-4 and abs(error - r["nll_change_stderr"]) < 1e-4 and r["kl"] > 1e-3
P

run eval -q --json --model "$checkpoints/llama_gqa" --tokens tokens.jsonl --policy full --kv-bits 4 --kv-group 16
cp log/out four.json
run eval -q --json --model "$checkpoints/llama_gqa" --tokens tokens.jsonl --policy full --kv-bits 16
cp log/out sixteen.json
run eval -q --json --model "$checkpoints/llama_gqa" --tokens tokens.jsonl --policy tova --budget 16 --kv-bits 8 --kv-group 8
cp log/out eight.json
holds "fewer bits take fewer bytes and cost something" python - <<'P'
import json
four, sixteen, eight = (json.load(open(f))["results"][0] for f in ("four.json", "sixteen.json", "eight.json"))
assert four["kv_bits"] == 4 and four["kv_bytes"] < sixteen["kv_bytes"], (four["kv_bytes"], sixteen["kv_bytes"])
assert 0 < sixteen["kl"] < 1e-4 < four["kl"] < 1, (sixteen["kl"], four["kl"])
assert eight["peak_tokens"] == 16 and eight["kv_bytes"] < four["kv_bytes"]
P

for type in f32 bf16 f16; do
    run eval -q --json --model "$checkpoints/llama_gqa" --tokens tokens.jsonl --dtype $type --policy h2o --budget 20
    cp log/out $type.json
done
holds "products of 16 bits are close to those of 32" python - <<'P'
import json
said = {t: json.load(open(t + ".json")) for t in ("f32", "bf16", "f16")}
for t, bits, near in (("bf16", 16, 0.03), ("f16", 16, 0.004), ("f32", 32, 0)):
    r = said[t]["results"][0]
    assert r["kv_bits"] == bits and said[t]["dtype"] == t
    off = abs(said[t]["full_nll"] - said["f32"]["full_nll"])
    assert off <= near and (off > 0) == (t != "f32"), (t, off)
    assert abs(r["nll"] - said["f32"]["results"][0]["nll"]) < 0.1
P

# ---- results are kept ----

run eval -q --json --model "$checkpoints/opt" --tokens tokens.jsonl --policy window tova --budget 9,0.5 --db results.db
cp log/out first.json
run eval -q --json --model "$checkpoints/opt" --tokens tokens.jsonl --policy window tova h2o --budget 9,0.5 --db results.db
cp log/out second.json
holds "what the store has is not done again" python - <<'P'
import json, sqlite3
first, second = (json.load(open(f))["results"] for f in ("first.json", "second.json"))
assert first == second[:4] and len(second) == 6, [a for a, b in zip(first, second) if a != b]
db = sqlite3.connect("results.db")
assert db.execute("SELECT count(DISTINCT settings) FROM result WHERE command = 'eval'").fetchone()[0] == 7
P
run eval -q --model "$checkpoints/opt" --tokens tokens.jsonl --policy window --budget 9 --db results.db
expect "text says what came from the store" 0 "1 of 1 rows are from the store" ""
run eval -q --model "$checkpoints/opt" --tokens tokens.jsonl --policy window --budget 9 --db results.db --force
verdict "--force does it again" "$(faults 0 "window" ""; ! grep -q "from the store" log/out || echo "# it did not")"

# Interrupted behind the first 16 caches: they stay, and the same command goes on.
for i in $(seq 15); do cat tokens.jsonl; done >many.jsonl
sweep=(eval -q --json --threads 1 --model "$checkpoints/opt" --tokens many.jsonl --policy window h2o:recent=1 --budget 0.06..0.9/24)
python - "$SHEARS" "${sweep[@]}" --db sweep.db <<'P' >log/out 2>log/err
import signal, sqlite3, subprocess, sys, time
run = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

def kept():
    try:
        with sqlite3.connect("file:sweep.db?mode=ro", uri=True, timeout=10) as db:
            return db.execute("SELECT count(DISTINCT settings) FROM result").fetchone()[0]
    except sqlite3.Error:
        return 0

while run.poll() is None and kept() < 17:
    time.sleep(0.005)
run.send_signal(signal.SIGINT)
said = run.communicate(timeout=120)[1]
assert run.returncode == 1 and "interrupted" in said and "goes on from there" in said, (run.returncode, said)
assert 17 <= kept() < 49, kept()
print(kept())
P
expect "Ctrl-C: what is finished is kept" 0 "^(17|33)$" ""
run "${sweep[@]}" --db sweep.db
cp log/out resumed.json
run "${sweep[@]}"
cp log/out fresh.json
holds "and the same command gives what one run gives" python - <<'P'
import json
a, b = (json.load(open(f))["results"] for f in ("resumed.json", "fresh.json"))
assert len(a) == len(b) == 48
for x, y in zip(a, b):
    for key in x:
        assert key == "tokens_per_s" or x[key] == y[key], (key, x[key], y[key])
P

# ---- refusals ----

opt=(--model "$checkpoints/opt" --tokens tokens.jsonl)
refuse "nothing to read" 2 "something to read" eval --model "$checkpoints/opt"
refuse "no model" 2 "--model" eval --tokens tokens.jsonl
refuse "an unknown policy" 2 "--policy: .*lru" eval "${opt[@]}" --policy lru
refuse "a budget that is protected whole" 2 "14 tokens.*can never leave" eval "${opt[@]}" --policy scissorhands:recent=12,sinks=4 --budget 14 --db out/r.db
refuse "a policy that looks ahead" 2 "oracle needs" eval "${opt[@]}" --policy oracle --budget 14
refuse "a policy that decides at the prompt's end" 2 "observed.*prefill" eval "${opt[@]}" --policy observed --budget 30
refuse "five bits" 2 "--kv-bits: 5" eval "${opt[@]}" --kv-bits 5
refuse "budgets of nobody" 2 "--budget: no --policy" eval "${opt[@]}" --budget 5
refuse "logits of two caches" 2 "--logits: there are 2 results" eval "${opt[@]}" --policy window --budget 4,5 --logits out/l.npy
refuse "a file that cannot be written" 1 "out/no/l.npy" eval "${opt[@]}" --logits out/no/l.npy
echo "[1, 2, 999]" >bad.jsonl
refuse "a token that there is not" 1 "element 2 is no token id" eval --model "$checkpoints/opt" --tokens bad.jsonl

finish
