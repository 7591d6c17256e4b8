#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shears recommend: the rows of an independent search (tests/oracle/recommend.py), margins, reasons, commands, prices,
# measured budgets, and what is wrong with a question.
. "$(dirname "$0")/lib.sh"

check() { # description, Python expression over r
    holds "$1" python -c 'import json, sys
r = json.load(open("log/out"))
rows = r.get("results", [])
assert ('"$2"'), str(r)[:400]'
}

# ---- the same rows as by brute force ----

python - "$SH_GOLDEN/recommend.json" <<'END'
import json, sys
for i, c in enumerate(json.load(open(sys.argv[1]))["cases"]):
    for name, lines in (("gpus", c["gpus"]), ("models", [c["row"]]), ("tsv", c["profile"])):
        with open(f"case{i}.{name}", "w") as f:
            f.write("\n".join(lines) + "\n")
    options = ["--model", c["row"].split()[0], "--weights", c["weights"], "--rate", c["rate"],
               "--prompt", "%d-%d" % tuple(c["prompt"]), "--output", "%d-%d" % tuple(c["output"]),
               "--requests", c["requests"], "--seed", c["seed"], "--goal", c["goal"], "--machine", c["machine"],
               "--most-gpus", c["most"], "--slo-ttft", c["slo_ttft"], "--slo-tpot", c["slo_tpot"],
               "--gpu", ",".join(b[0] for b in c["boards"])]
    if c["budgets"]:
        options += ["--budget", ",".join(c["budgets"])]
    with open(f"case{i}.options", "w") as f:
        f.write(" ".join(map(str, options)))
    with open(f"case{i}.rows", "w") as f:
        json.dump(c["rows"], f)
END
for at in case*.options; do
    i=${at%.options}
    run recommend $(cat "$at") --gpus "$i.gpus" --models "$i.models" --engine "$i.tsv" --json
    check "$i: the rows of the brute force, in their order" '(lambda w: len(w) == len(rows) and all(
        all(a[k] == b[k] for k in ("gpu", "gpus", "replicas", "tp", "ep", "dp", "pp", "plan", "usd_per_hour")) and
        all(abs(a[t]["at_goal"] / b[t] - 1) < 1e-9 for t in ("ttft_s", "tpot_s"))
        for a, b in zip(rows, w)))(json.load(open("'"$i"'.rows")))'
    check "$i: and every next smaller one fails for a reason" 'all(any(x in w["next_smaller"] for x in (
        "memory", "TTFT", "TPOT", "throughput", "nothing is smaller")) for w in rows)'
done

# ---- real models ----

load="--rate 8 --prompt 2000 --output 200 --slo-ttft 2 --slo-tpot 50ms"
run recommend --model llama-3.1-70b --weights f8 $load --budget 0.2 --json
expect "JSON: exit 0, nothing on stderr" 0 '"results"' ""
check "every GPU is looked at, few are simulated" 'r["screened"] > 600 and 0 < r["simulations"] < 120'
check "margins are what the limits leave" 'all(abs(2 / w["ttft_s"]["at_goal"] - 1 - w["ttft_margin"]) < 1e-9 and
    w["ttft_margin"] >= 0 and w["tpot_margin"] >= 0 and w["good_share"] >= 0.99 for w in rows)'
check "without prices the fewest GPUs come first" '[w["gpus"] for w in rows] == sorted(w["gpus"] for w in rows) and
    rows[0]["is_fewest_gpus"] and not any(w["is_cheapest"] for w in rows) and rows[0]["usd_per_hour"] is None'
check "the error of the expected times next to each" 'all(w["clock_error"] in ("within margin", "margin smaller", "not measured")
    and ((w["tpot_error"] is None) == (w["clock_error"] == "not measured")) for w in rows)'
cp log/out first
run recommend --model llama-3.1-70b --weights f8 $load --budget 0.2 --json
holds "the same question gives the same bytes" cmp log/out first

run recommend --model llama-3.1-70b --weights f8 $load --gpu H100-SXM,L40S --price H100-SXM=2.5,L40S=0.8 --json
check "cheapest first" '[w["usd_per_hour"] for w in rows] == sorted(w["usd_per_hour"] for w in rows) and
    rows[0]["is_cheapest"] and sum(w["is_fewest_gpus"] for w in rows) == 1'
check "cost per token" 'all(abs(w["usd_per_hour"] / 3600 / (8 * 200) * 1e6 - w["usd_per_million_tokens"]) < 1e-6
    for w in rows)'
run recommend --model llama-3.1-70b --weights f8 $load --gpu H100-SXM --price 2.5 --budget 0.2 --top 1
expect "text: a command for vLLM" 0 "vllm serve llama-3.1-70b --tensor-parallel-size .*--quantization fp8" ""
expect "text: a command for SGLang" 0 "sglang.launch_server --model-path llama-3.1-70b --tp-size .*--context-length 2200" ""
expect "text: why the next smaller one fails" 0 "the next smaller one fails, tp " ""
expect "text: the error and the margin" 0 " error " ""
run recommend --model llama-3.1-8b $load --gpu A100-SXM-80GB --budget 0.2
expect "text: nothing like it was measured" 0 "nothing like it was measured" ""
expect "text: servers have no option for a budget" 0 "option for an eviction budget" ""
run recommend --model llama-3.1-8b $load --gpu H100-SXM --kv q8_0
expect "text: a cache format that servers do not have" 0 "no option for the cache format q8_0" ""
run recommend --model llama-3.1-8b $load --gpu H100-SXM --kv f8 --chunk 4096 --max-seqs 64
expect "text: formats and settings" 0 "--max-num-seqs 64 --max-num-batched-tokens 4096 .*--kv-cache-dtype fp8" ""
run recommend --model llama-3.1-8b --rate 40 --prompt 100 --output 20 --slo-ttft 30 --slo-tpot 1 --gpu H100-SXM
expect "text: runs that are too short for the limit" 0 "a queue that grows slowly" ""
run recommend --model llama-3.1-8b $load --gpu H100-SXM --csv
expect "CSV" 0 "^1,H100-SXM,1," ""
run recommend --model llama-3.1-8b $load --gpu H100-SXM --columns gpu,vllm
expect "columns by name" 0 "vllm serve llama-3.1-8b" ""

run recommend --model gpt2-xl --rate 2 --prompt 200 --output 20 --slo-ttft 1 --slo-tpot 0.05 --gpu L4 --json
check "layouts that servers refuse are named" '[x["tp"] for x in r["refused"]] == [2, 4, 8] and
    all("25 heads" in x["why"] for x in r["refused"]) and all(w["tp"] == 1 for w in rows)'
run recommend --model qwen3-235b-a22b --weights f8:block=128 --rate 1 --prompt 500 --output 50 --slo-ttft 2 --slo-tpot 0.1 \
    --gpu H200-SXM --json
check "experts that cannot be cut are spread" 'all(w["ep"] == w["tp"] * w["dp"] for w in rows if w["tp"] == 8)'
run recommend --model deepseek-v3 --rate 4 --prompt 500 --output 50 --slo-ttft 2 --slo-tpot 0.1 --gpu H200-SXM --json
check "a mixture: expert parallelism has its option" 'all(("--enable-expert-parallel" in w["vllm"]) == (w["ep"] > 1) and
    ("--enable-dp-attention" in w["sglang"]) == (w["dp"] > 1) for w in rows) and rows'

# ---- measured budgets ----

golden_tokens opt >tokens.jsonl
run trace -q --model "$checkpoints/opt" --tokens tokens.jsonl --db q.db
run eval -q --model "$checkpoints/opt" --tokens tokens.jsonl --policy h2o --budget 0.2,0.6 --db q.db
tiny="--model $checkpoints/opt --gpu H100-SXM --rate 2 --prompt 40 --output 8 --slo-ttft 1 --slo-tpot 0.05"
run recommend $tiny --db q.db --max-ppl-increase 1000% --json
check "the smallest measured budget, with its evidence" 'sorted(w["plan"] for w in rows) == ["0.2", "full"] and
    all(("q.db" in (w["evidence"] or "")) == (w["plan"] != "full") for w in rows)'
# h2o stores a float for each token that it keeps
counts_state() { # description, command
    run "${@:2}" --json --policy-state
    cp log/out policy.out
    run "${@:2}" --json --state 4
    holds "$1: --policy-state counts what the policy stores" cmp log/out policy.out
    run "${@:2}" --json
    holds "  which is more than nothing" bash -c "! cmp -s log/out policy.out"
}
run plan -q --db q.db --policy h2o --budget 0.6 -o h2o.json
served="--model $checkpoints/opt --gpu L4 --memory 1M --overhead 0 --prompt 40 --output 8 --requests 200"
counts_state "simulate with a plan" simulate -q $served --rate 1e6 --plan h2o.json
counts_state "simulate with a measured budget" simulate -q $served --rate 1e6 --quality-db q.db --max-ppl-increase 1000%
counts_state "simulated clients" simulate -q $served --concurrency 8 --engine vllm --plan h2o.json
counts_state "recommend" recommend $tiny --db q.db --max-ppl-increase 1000%
# Scissorhands' history: a plan for 40 tokens stores less than requests of 4080 tokens need
run plan -q --db q.db --policy scissorhands:counts=rate,recent=2 --budget 0.6 -o history.json
run capacity --model "$checkpoints/opt" --gpu L4 --length 4080 --windows ignore --plan history.json --policy-state --json
state=$(python -c 'import json; print((json.load(open("log/out"))["results"][0]["kv_bytes_per_token_per_gpu"] - 256) // 8)')
holds "the history is 400 steps long" test "$state" -ge 50
long="simulate -q --model $checkpoints/opt --gpu L4 --memory 100M --overhead 0 --windows ignore --prompt 4000 --output 80
    --requests 50 --plan history.json"
for how in "--rate 1e6" "--concurrency 4 --engine vllm"; do
    run $long $how --policy-state --json
    cp log/out policy.out
    run $long $how --state "$state" --json
    holds "simulate $how: as much as requests of that length need" cmp log/out policy.out
done
run simulate -q $served --rate 1e6 --plan h2o.json --budget 0.5 --policy-state
expect "a budget of no policy" 2 "" "--policy-state cannot be combined with --budget"
run recommend $tiny --db q.db --min-recall 0.5
expect "no budget was measured this way" 1 "" "q.db"
run recommend $tiny --db q.db --max-ppl-increase 1000% --min-recall 0.5
expect "two limits" 2 "" "expected one of them"

# ---- what cannot be answered ----

wrong() { # description, exit status, text, options
    run recommend "${@:4}"
    expect "$1" "$2" "" "$3"
}
one="--model llama-3.1-8b --gpu H100-SXM"
wrong "no limits" 2 "--slo-ttft" $one --rate 8 --prompt 200 --output 20
wrong "no rate" 2 "--rate" $one --prompt 200 --output 20 --slo-ttft 1 --slo-tpot 1
wrong "a rate of 0" 2 "--rate" $one --rate 0 --prompt 200 --output 20 --slo-ttft 1 --slo-tpot 1
wrong "an unknown model" 2 "llama-9" $load --model llama-9
wrong "an unknown GPU" 2 "H1000" $load --model llama-3.1-8b --gpu H1000
wrong "a GPU twice" 2 "twice" $load --model llama-3.1-8b --gpu H100-SXM,H100-SXM
wrong "an unknown engine" 2 "tgi" $load $one --engine tgi
wrong "a price that is none" 2 "--price" $load $one --price H100-SXM=x
wrong "a price of an unknown GPU" 2 "H1000" $load $one --price H1000=2
wrong "a price of another GPU" 2 "L4" $load $one --price L4=2
wrong "a price below 0" 2 "--price" $load $one --price -2
wrong "a budget that is none" 2 "--budget" $load $one --budget x
wrong "a format that is none" 2 "--kv" $load $one --kv f7
wrong "two formats" 2 "--kv" $load $one --kv f16,f8
wrong "a limit without a store" 2 "--db" $load $one --max-ppl-increase 1%
wrong "a store without a limit" 2 "--max-ppl-increase" $load $one --db no.db
wrong "a store that is not there" 1 "no.db" $load $one --db no.db --max-ppl-increase 1%
wrong "longer than the context" 2 "2048" --model opt-6.7b --gpu H100-SXM --rate 1 --prompt 2000 --output 100 \
    --slo-ttft 1 --slo-tpot 1
wrong "times that the engine has" 2 "--flops" $load $one --flops 1e15
wrong "transfers, too" 2 "--link" $load $one --link
wrong "an argument" 2 "unexpected argument" $load $one more
wrong "no time is short enough" 1 "TPOT" $one --rate 8 --prompt 200 --output 20 --slo-ttft 1 --slo-tpot 1us
wrong "no first token is soon enough" 1 "TTFT" $one --rate 8 --prompt 200 --output 20 --slo-ttft 1us --slo-tpot 1
wrong "no room" 1 "memory" --model llama-3.1-405b --gpu L4 --machine 1 $load
wrong "too few GPUs" 1 "throughput" $one --most-gpus 1 --rate 10000 --prompt 200 --output 200 --slo-ttft 1 --slo-tpot 1

finish
