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
expect "text says what came from the store" 0 "1 of 1 rows .*store; --force" ""
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
assert run.returncode == 1 and "interrupted" in said and "the same command again" in said, (run.returncode, said)
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

# Killed: the same, with nothing half kept.
python - "$SHEARS" "${sweep[@]}" --db killed.db <<'P' >log/out 2>log/err
import signal, sqlite3, subprocess, sys, time
run = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

def kept():
    try:
        with sqlite3.connect("file:killed.db?mode=ro", uri=True, timeout=10) as db:
            return db.execute("SELECT count(DISTINCT settings) FROM result").fetchone()[0]
    except sqlite3.Error:
        return 0

while run.poll() is None and kept() < 5:
    time.sleep(0.002)
run.kill()
assert run.wait() == -signal.SIGKILL, run.returncode
with sqlite3.connect("killed.db") as db:
    rows = db.execute("SELECT count(*) FROM result GROUP BY settings").fetchall()
assert 1 <= len(rows) < 49 and len(set(rows)) == 1, rows
P
expect "killed: what is finished is whole" 0 "" ""
run "${sweep[@]}" --db killed.db
cp log/out resumed.json
holds "and the same command gives what one run gives, too" python - <<'P'
import json
a, b = (json.load(open(f))["results"] for f in ("resumed.json", "fresh.json"))
assert [{k: v for k, v in x.items() if k != "tokens_per_s"} for x in a] == \
       [{k: v for k, v in x.items() if k != "tokens_per_s"} for x in b]
P

# ---- texts side by side ----

python -c '
import json
ids = [t for line in open("tokens.jsonl") for t in json.loads(line)]
for i, n in enumerate((20, 20, 20, 33, 20, 20)): print(json.dumps((ids * 4)[3 * i:3 * i + n]))' >batch.jsonl
for batch in 1 2 64; do
    run eval -q --json --model "$checkpoints/opt" --tokens batch.jsonl --policy h2o snapkv:recent=3 streaming --budget 8 --prefill 4 --batch $batch
    cp log/out batch-$batch.json
done
holds "texts side by side: what they give one after another" python - <<'P'
import json
one, *more = ([{k: v for k, v in x.items() if k != "tokens_per_s"} for x in json.load(open(f"batch-{n}.json"))["results"]]
              for n in (1, 2, 64))
assert one[0]["tokens"] == 5 * 19 + 32 and len(one) == 3
for other in more:
    for a, b in zip(one, other, strict=True):
        for k in a:
            same = abs(a[k] - b[k]) <= 1e-6 * max(1, abs(a[k])) if isinstance(a[k], float) else a[k] == b[k] or k.startswith("by_")
            assert same, (a["policy"], k, a[k], b[k])
P

# ---- parts of the texts ----

python -c '
import json
ids = [t for line in open("tokens.jsonl") for t in json.loads(line)]
for n in (20, 32, 33, 70): print(json.dumps((ids * 4)[:n]))' >parts.jsonl
part=(eval -q --model "$checkpoints/opt" --tokens parts.jsonl --policy h2o --budget 17)
run "${part[@]}" --json --db parts.db
cp log/out said.json
run "${part[@]}" --logits parts.npy
run "${part[@]}" --json --db parts.db
cp log/out again.json
holds "by position and by length: sums over the rows' own likelihoods, the same out of the store" python - <<'P'
import json, math
from evals import npy
said = json.load(open("said.json"))
rows, at = npy("parts.npy"), 0
position, length = {}, {}
def bucket(n):
    to = 32
    while n > to: to *= 2
    return to
for ids in map(json.loads, open("parts.jsonl")):
    for i in range(len(ids) - 1):
        row = rows[at + i]
        most = max(row)
        nll = most + math.log(sum(math.exp(x - most) for x in row)) - row[ids[i + 1]]
        position.setdefault(bucket(i + 2), []).append(nll)
        length.setdefault(bucket(len(ids)), []).append(nll)
    at += len(ids)
r = said["results"][0]
for name, want in (("by_position", position), ("by_length", length)):
    assert [x["to"] for x in r[name]] == sorted(want) == [32, 64, 128], (name, r[name])
    for x in r[name]:
        v = want[x["to"]]
        mean = sum(v) / len(v)
        error = math.sqrt(sum((y - mean) ** 2 for y in v) / (len(v) - 1) / len(v))
        assert x["tokens"] == len(v) and abs(x["nll"] - mean) < 1e-5 and abs(x["nll_stderr"] - error) < 1e-5, x
        assert abs(x["ppl"] - math.exp(x["nll"])) < 1e-9 * x["ppl"]
assert r["sequences"] == 4 and json.load(open("again.json"))["results"] == said["results"]
P
run "${part[@]}" --by length
expect "a table by length" 0 "^  h2o .* 65 +128 +69 " ""

# ---- answers ----

demo=${SH_TOP:-.}/demo
python - "$demo/text/recall.jsonl" <<'P'
import json, sys
lines = [json.loads(x) for x in open(sys.argv[1])][:2]
for d in lines: d["questions"] = d["questions"][:6]
open("recall.jsonl", "w").write("".join(json.dumps(d) + "\n" for d in lines))
P
recall=(eval -q --model "$demo/model" --jsonl recall.jsonl --answers questions --length 300)
run "${recall[@]}" --json --policy window --budget 40 --db recall.db
cp log/out said.json
run eval -q --model "$demo/model" --jsonl recall.jsonl --length 300 --policy window --budget 40 --logits recall.npy
run "${recall[@]}" --json --policy window --budget 40 --db recall.db
cp log/out again.json
run trace -q --model "$demo/model" --jsonl recall.jsonl --length 300 --record summary --layers 0 --db ids.db
holds "answers: tokens by their bytes, likeliest and likelihood by the logits" python - "$demo" <<'P'
import array, json, math, sqlite3, sys
from evals import npy
said, rows, at = json.load(open("said.json")), npy("recall.npy"), 0
vocab = json.load(open(sys.argv[1] + "/model/tokenizer.json"))["model"]["vocab"]
own = [*range(33, 127), *range(161, 173), *range(174, 256)]     # GPT-2's alphabet of bytes
chars = {chr(b): b for b in own}
chars.update({chr(256 + i): b for i, b in enumerate(b for b in range(256) if b not in own)})
size = {i: len(t) for t, i in vocab.items() if all(c in chars for c in t)}
texts = [array.array("i", x[0]).tolist() for x in sqlite3.connect("ids.db").execute("SELECT tokens FROM sequence ORDER BY id")]
right, nll, far = [], [], []
for doc, ids in zip(map(json.loads, open("recall.jsonl")), texts):
    first, begin = 0, []
    for i, token in enumerate(ids):
        begin.append(first)
        first += size[token] if i else 0                        # the start token has no bytes
    for q in doc["questions"]:
        end = q["at"] + len(q["answer"].encode())
        if end > first:
            continue
        tokens = [i for i in range(1, len(ids)) if begin[i] < end and begin[i] + size[ids[i]] > q["at"]]
        good = True
        for i in tokens:
            row = rows[at + i - 1]
            most = max(row)
            nll.append(most + math.log(sum(math.exp(x - most) for x in row)) - row[ids[i]])
            good &= row.index(most) == ids[i]
        right.append(good)
        said_at = max(i for i in range(1, len(ids)) if begin[i] <= q["said_at"])
        far += [good] * (tokens[0] - said_at > 64)
    at += len(ids)
r = said["results"][0]
assert r["answers"] == said["answers"] == len(right) > 6, (r["answers"], len(right))
assert abs(r["answer_exact"] - sum(right) / len(right)) < 1e-12, r
assert abs(r["answer_nll"] - sum(nll) / len(nll)) < 1e-4, (r["answer_nll"], sum(nll) / len(nll))
assert sum(x["answers"] for x in r["by_distance"]) == len(right) and said["full_answer_exact"] > r["answer_exact"]
assert sum(x["answers"] for x in r["by_distance"] if x["from"] > 64) == len(far) > 0
assert json.load(open("again.json"))["results"] == said["results"]
P

{ python -c 'import json
print(json.dumps({"text": " the", "questions": [{"at": 0, "answer": " the"}]}))'; cat recall.jsonl; } >behind.jsonl
run eval -q --model "$demo/model" --jsonl behind.jsonl --answers questions --length 300 --min-tokens 20 --json
cp log/out behind.json
run "${recall[@]}" --json
holds "answers are those of their document where a short one in front is left out" python - <<'P'
import json
a, b = (json.load(open(x)) for x in ("behind.json", "log/out"))
for key in ("answers", "full_answer_exact", "full_answer_ppl"): assert a[key] == b[key], (key, a[key], b[key])
P

# ---- plans ----

run trace -q --model "$checkpoints/opt" --tokens tokens.jsonl --record full --codec f32 --db plan.db
run plan -q --db plan.db --policy h2o:recent=2 --budget 0.3 --allocator greedy -o greedy.json
run plan -q --db plan.db --policy h2o:recent=2 --budget 0.3 -o uniform.json
run eval -q --json --model "$checkpoints/opt" --tokens tokens.jsonl --plan greedy.json uniform.json --policy h2o:recent=2 --budget 0.3 \
    --db plan.db
cp log/out said.json
head -n 1 tokens.jsonl >one.jsonl
run eval -q --model "$checkpoints/opt" --tokens one.jsonl --plan greedy.json --dump-kept kept.jsonl
holds "a plan: its budgets in every head, even ones as --budget, kept under a name of its own" python - <<'P'
import json, sqlite3
said = json.load(open("said.json"))["results"]
plan = json.load(open("greedy.json"))
assert [r["plan"] for r in said] == [None, "greedy.json", "uniform.json"], said
same = ("nll", "kl", "top1_agreement", "budget_tokens", "kv_bytes")
assert all(said[0][k] == said[2][k] for k in same) and said[1]["nll"] != said[2]["nll"]
n = len(json.loads(open("one.jsonl").readline()))
most = {}
for x in map(json.loads, open("kept.jsonl")):
    most[x["layer"], x["head"]] = max(most.get((x["layer"], x["head"]), 0), len(x["kept"]))
for l, row in enumerate(plan["budgets"]):
    for h, b in enumerate(row):
        want = min(n, max(3, int(b * n / plan["n_token"] + 0.5)))
        assert most[l, h] == want, (l, h, most[l, h], want)
assert len({b for row in plan["budgets"] for b in row}) > 1
found = sqlite3.connect("plan.db").execute("SELECT DISTINCT settings FROM result WHERE command = 'eval'").fetchall()
assert len({json.loads(x[0]).get("plan") for x in found}) == 3 and len(found) == 4, found
P
refuse "a plan of another model" 1 "greedy.json: .* opt .*llama_gqa has" \
    eval --model "$checkpoints/llama_gqa" --tokens tokens.jsonl --plan greedy.json
run plan -q --db plan.db --policy h2o:recent=2 --target-ppl 1e9 --json
holds "a plan for a perplexity: on how many texts it was measured, and that no run was" python - <<'P'
import json
e = {e["metric"]: e for e in json.load(open("log/out"))["evidence"]}
assert e["ppl"]["sequences"] == sum(1 for _ in open("tokens.jsonl")) and e["ppl"]["run"] is None, e
P

# ---- damaged results ----

damaged() { # what, metric, value, sentence, where it does not begin as these do: its beginning
    cp results.db damaged.db
    python -c 'import sqlite3, sys
with sqlite3.connect("damaged.db") as db:
    db.execute("UPDATE result SET value = " + sys.argv[2] + " WHERE command = ? AND metric = ? AND settings LIKE ?",
               ("eval", sys.argv[1], "%tova%"))' "$2" "$3"
    refuse "a kept result that cannot be: $1" 1 "damaged.db: ${5-.*result of eval is damaged}: $4" \
        eval --model "$checkpoints/opt" --tokens tokens.jsonl --policy tova --budget 9 --db damaged.db
}
damaged "a perplexity below 1" ppl 0.5 "ppl is 0.5, expected 1 or more"
damaged "a perplexity that is none" ppl NULL "ppl is nan, expected exp\(nll\)"
damaged "one that does not go with the likelihood" ppl 1000.25 "ppl is 1000.25, expected exp\(nll\)"
damaged "a text for a number" nll "'abc'" 'value is the text "abc", expected a number' "damaged: table result.*"
damaged "a negative count" tokens -3 "tokens is -3, expected 0 to"
damaged "an endless divergence" kl 9e999 "kl is inf, expected 0 or more"
damaged "a share above 1" top1_agreement 1.5 "top1_agreement is 1.5, expected 0 to 1"
cp results.db damaged.db
python -c 'import sqlite3
with sqlite3.connect("damaged.db") as db: db.execute("DELETE FROM result WHERE metric = ?", ("kl",))'
run eval --model "$checkpoints/opt" --tokens tokens.jsonl --policy tova --budget 9 --db damaged.db --json -q
holds "a result in pieces is measured again" python - <<'P'
import json
r = json.load(open("log/out"))["results"][0]
want = next(x for x in json.load(open("first.json"))["results"] if x["policy"] == "tova" and x["budget"] == 9)
assert r["kl"] == want["kl"] > 0 and r["nll"] == want["nll"]
P

# ---- figures of the store ----

run plot compression --db results.db -o out/c.gp --script
holds "compression: every policy's perplexities, from the full cache on" python - <<'P'
import json
text, want = open("out/c.gp").read(), {}
first = json.load(open("second.json"))
blocks = [b.split("EOD")[1].splitlines()[2:] for b in text.split("<< ")[1:]]
curves = sorted(tuple(round(float(line.split()[1]), 6) for line in b) for b in blocks if b)
for r in first["results"]:
    want.setdefault(r["policy"], []).append((-r["budget_tokens"], round(r["ppl"], 6)))
assert curves == sorted((round(first["full_ppl"], 6), *(y for _, y in sorted(v))) for v in want.values()), (curves, want)
P
rm -f out/c.gp
refuse "quant without codes" 1 "found no results of shears eval with --kv-bits 8 or 4" plot quant --db results.db -o out/q.gp --script
verdict "and what fills it" "$(grep -q "hint: .*shears eval .*--kv-bits 4 --db results.db" log/err || cat log/err)"
for bits in 16 4; do
    run eval -q --model "$checkpoints/opt" --tokens tokens.jsonl --policy full tova --budget 9 --kv-bits $bits --kv-group 8 --db results.db
done
run plot quant --db results.db -o out/q.gp --script
verdict "quant: the full cache and tova over bits and bytes" "$(faults 0 "" ""; grep -q "'tova, 9'" out/q.gp || grep "set label" out/q.gp)"
rm -f out/q.gp
run trace -q --model "$checkpoints/opt" --tokens one.jsonl --record summary --db empty.db
refuse "compression of a store without evaluations" 1 "no results of shears eval under a budget" plot compression --db empty.db -o out/c.gp --script
refuse "drift of a store without one" 1 "no results of shears drift" plot drift --db empty.db -o out/d.gp --script
refuse "score-change likewise" 1 "no results of shears drift" plot score-change --db empty.db -o out/d.gp --script

# ---- repetition ----

repeat=(repetition -q --model "$checkpoints/opt" --tokens tokens.jsonl --policy scissorhands:recent=2,drop=2 --budget 12
    --prompt-tokens 8 --max-tokens 24 --json)
run "${repeat[@]}"
cp log/out said.json
python -c 'import json; print(json.dumps(json.loads(open("tokens.jsonl").readline())[:8]))' >prompt.jsonl
for policy in scissorhands:recent=2,drop=2 random:sinks=0,recent=2; do
    run generate -q --model "$checkpoints/opt" --tokens prompt.jsonl --policy $policy --budget 12 --max-tokens 24 --repetition \
        --prefill-mode stream --json
    cp log/out ${policy%%:*}.json
done
run "${repeat[@]}" --count 1
holds "repetition: of one text what generate says of the two caches; differences are paired" python - <<'P'
import json
one, all_texts = json.load(open("log/out")), json.load(open("said.json"))
rows = {r["condition"]: r for r in one["results"]}
for name, file in (("policy", "scissorhands.json"), ("uniform", "random.json")):
    want = json.load(open(file))
    for key in ("rep_4", "distinct_1", "distinct_2", "longest_repeat_tokens"):
        assert abs(rows[name][key] - want[key]) < 1e-12, (name, key, rows[name][key], want[key])
    for key in ("row_likeness", "row_likeness_chance"):
        assert abs(rows[name][key] - want[key]) < 1e-9, (name, key, rows[name], want)
assert rows["uniform"]["policy"] == "random" and "recent=2" in rows["uniform"]["knobs"]
many = {r["condition"]: r for r in all_texts["results"]}
change = all_texts["differences"][1]
assert abs(change["rep_4_change"] - (many["uniform"]["rep_4"] - many["policy"]["rep_4"])) < 1e-12
assert abs(change["row_likeness_change"] - (many["uniform"]["row_likeness"] - many["policy"]["row_likeness"])) < 1e-12
assert all_texts["texts"] > 1 and change["rep_4_change_stderr"] >= 0
P
run "${repeat[@]/scissorhands:*/h2o:recent=0.25}" --count 1
holds "repetition: uniform retention has the policy's fraction of recent tokens" python - <<'P'
import json
knobs = {r["condition"]: r["knobs"] for r in json.load(open("log/out"))["results"]}
assert "recent=0.25" in knobs["policy"] and "recent=0.25" in knobs["uniform"], knobs
P
python - <<'P'
import json
for i, line in enumerate(open("tokens.jsonl")):
    open(f"text.{i}", "w").write(line)
P
for i in $(seq 0 $(($(wc -l <tokens.jsonl) - 1))); do
    run "${repeat[@]/tokens.jsonl/text.$i}"
    cp log/out said.$i
done
holds "repetition of many texts, side by side, is the mean of each alone" python - <<'P'
import json
all_texts = json.load(open("said.json"))
alone = [json.load(open(f"said.{i}")) for i in range(all_texts["texts"])]
for i, r in enumerate(all_texts["results"]):
    for key in "rep_4", "distinct_1", "distinct_2", "longest_repeat_tokens", "row_likeness", "row_likeness_chance":
        mean = sum(a["results"][i][key] for a in alone) / len(alone)
        assert len(alone) > 1 and abs(r[key] - mean) < 1e-6, (r["condition"], key, r[key], mean)
P
run eval -q --json --model "$checkpoints/opt" --tokens tokens.jsonl --policy scissorhands:recent=2,drop=2 --budget 12
holds "the texts' own perplexity is that of eval" python - <<'P'
import json
a = {r["condition"]: r["ppl"] for r in json.load(open("said.json"))["results"]}
b = json.load(open("log/out"))
assert a["full"] == b["full_ppl"] and a["policy"] == b["results"][0]["ppl"], (a, b["results"][0]["ppl"])
P
refuse "repetition without a budget" 2 "repetition .*--budget B$" repetition --model "$checkpoints/opt" --tokens tokens.jsonl --policy tova

# ---- refusals ----

opt=(--model "$checkpoints/opt" --tokens tokens.jsonl)
refuse "two kinds of texts" 2 "--text and --tokens cannot be combined" eval "${opt[@]}" --text tokens.jsonl
refuse "answers of plain ids" 2 "--answers requires --jsonl FILE" eval "${opt[@]}" --answers questions
refuse "a part that is none" 2 "--by week: expected position" eval "${opt[@]}" --by week
sed 's/"at": [0-9]*/"at": 1/' recall.jsonl >misplaced.jsonl
refuse "an answer that is not there" 1 "misplaced.jsonl: line 1: answer 1: .* at byte 1 of the text" \
    eval --model "$demo/model" --jsonl misplaced.jsonl --answers questions
refuse "documents without the field" 1 "recall.jsonl: line 1: field \"answers\"" \
    eval --model "$demo/model" --jsonl recall.jsonl --answers answers
printf '{"query": "a", "choices": ["b", "c"], "gold": 0}\n{"query": "a", "choices\n' >broken.jsonl
refuse "a task file with a broken line" 1 "broken.jsonl: line 2" eval --model "$demo/model" --task openbookqa --data broken.jsonl
refuse "nothing to read" 2 "requires one of" eval --model "$checkpoints/opt"
refuse "no model" 2 "--model" eval --tokens tokens.jsonl
refuse "an unknown policy" 2 "--policy: .*lru" eval "${opt[@]}" --policy lru
refuse "a budget that is protected whole" 2 "14 tokens.*protected from eviction" eval "${opt[@]}" --policy scissorhands:recent=12,sinks=4 --budget 14 --db out/r.db
refuse "a policy that looks ahead" 2 "oracle needs" eval "${opt[@]}" --policy oracle --budget 14
refuse "a policy that decides at the prompt's end" 2 "observed .*prompt" eval "${opt[@]}" --policy observed --budget 30
refuse "five bits" 2 "--kv-bits: .*5" eval "${opt[@]}" --kv-bits 5
refuse "budgets of nobody" 2 "--budget .*--policy" eval "${opt[@]}" --budget 5
refuse "logits of two caches" 2 "--logits: found 2 " eval "${opt[@]}" --policy window --budget 4,5 --logits out/l.npy
refuse "a file that cannot be written" 1 "out/no/l.npy" eval "${opt[@]}" --logits out/no/l.npy
echo "[1, 2, 999]" >bad.jsonl
refuse "a token that there is not" 1 "element 2 is not a token id" eval --model "$checkpoints/opt" --tokens bad.jsonl

# Latent attention (rank 8, rotary width 4, three layers): one latent a token, and its position, in f32 and in codes.
python -c 'print([5 * i % 64 for i in range(64)])' >latent.jsonl
for bits in 32:4992 16:2688 8:1920; do
    run eval -q --json --model "$checkpoints/modern/latent" --tokens latent.jsonl --policy window --budget 0.5 \
        --kv-bits "${bits%:*}"
    holds "latents of ${bits%:*} bits are kept once" python - "${bits#*:}" <<'P'
import json, sys
said = json.load(open("log/out"))
assert said["full_kv_bytes"] == 64 * 3 * (12 * 4 + 4), said["full_kv_bytes"]
assert said["results"][0]["kv_bytes"] == int(sys.argv[1]), said["results"][0]["kv_bytes"]
P
done
finish
