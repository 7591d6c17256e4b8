#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shears simulate: the contract's keys, files of requests and what is wrong with them, plans, limits, calibration;
# and shears capacity at a quality that was measured.
. "$(dirname "$0")/lib.sh"

base="--model opt-125m --gpu A100-SXM-80GB"
sim() { run simulate $base --json "$@"; }
check() { # description, Python expression over r (the first result) and rows
    holds "$1" python -c 'import json, sys
rows = json.load(open("log/out"))["results"]
r = rows[0]
assert ('"$2"'), rows'
}
csv() { printf '%b' "$1" >w.csv; }

# ---- the contract ----

sim --rate 20 --requests 300 --prompt 200 --output 50
expect "JSON: exit 0, nothing on stderr" 0 '"results"' ""
check "JSON: the keys of the contract" 'all(k in r for k in """plan requests throughput_tokens_per_s
    goodput_requests_per_s ttft_s tpot_s preemptions kv_occupancy_mean""".split()) and
    all(k in r[g] for g in ("ttft_s", "tpot_s") for k in ("p50", "p99")) and r["plan"] == "full"'
check "tokens in and out are those of the requests" 'r["requests"] == r["finished"] == 300 and
    r["tokens_in"] == 300 * 200 and r["tokens_out"] == 300 * 50'
check "no step is faster than the weights can be read" 'r["tpot_s"]["p50"] > 2 * 85e6 / 2.039e12'
cp log/out first
sim --rate 20 --requests 300 --prompt 200 --output 50
holds "the same seed gives the same bytes" cmp log/out first
sim --rate 20 --requests 300 --prompt 200 --output 50 --seed 2
check "another seed gives other requests" "r['ttft_s'] != json.load(open('first'))['results'][0]['ttft_s']"
run simulate $base --rate 20 --requests 50 --prompt 200 --output 50 --csv
expect "CSV: groups are columns" 0 "^plan,.*,ttft_s.p50,ttft_s.p99," ""
run simulate $base --rate 20 --requests 50 --prompt 200 --output 50
expect "text: a table, and that nothing was calibrated" 0 "Steps take the least time" ""
run simulate --model "$checkpoints/opt" --gpu A100-SXM-80GB --rate 20 --requests 50 --prompt 20 --output 5 --step-overhead 4e-6 --columns ttft_s.p50,tpot_s.p99
expect "text: the times of a tiny model are microseconds" 0 "TTFT p50, µs +TPOT p99, µs" ""
cp log/out tiny.txt
run simulate $base --rate 20 --requests 50 --prompt 200 --output 50 --slo-ttft 1 --max-rate -q \
    --columns plan,gpu,ttft_s.p90,good_share,max_rate_requests_per_s
expect "text: any figure of --json by its name" 0 "^  cache +GPU +TTFT p90, [^ ]*s +good +max. rate$" ""
run simulate --model "$checkpoints/opt" --gpu A100-SXM-80GB --rate 20 --requests 50 --prompt 20 --output 5 --step-overhead 4e-6 --json
check "with three digits; JSON has seconds" '(lambda t: abs(float(t[0]) / (1e6 * r["ttft_s"]["p50"]) - 1) < 0.006 and
    abs(float(t[1]) / (1e6 * r["tpot_s"]["p99"]) - 1) < 0.006 and r["tpot_s"]["p99"] < 1e-3)(
    open("tiny.txt").read().split("\n")[2].split())'

# ---- files ----

csv 'arrival_s,prompt_tokens,output_tokens\n0,100,10\n0.5,200,1\n\n0.5,30,0\n2,50,7\n'
sim --workload w.csv --log log.csv
check "a file: rows without an answer are left out" 'r["requests"] == 3 and r["tokens_out"] == 18'
holds "--log: a line for each request" test "$(wc -l <log.csv)" = 4
csv 'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:05.9799600,318,8\n'
sim --workload w.csv
check "Azure: dates become seconds" 'r["requests"] == 2 and abs(r["rate_requests_per_s"] - 0.5) < 1e-6'
csv 'Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,x\n9,"a,b",9,0,9,x\n'
sim --workload w.csv
check "BurstGPT: quoted fields, failed requests" 'r["requests"] == 1'

bad() { # description, content, status, message
    csv "$2"
    run simulate $base --workload w.csv
    expect "$1" "$3" "" "$4"
}
h='arrival_s,prompt_tokens,output_tokens\n'
bad "unknown columns" 'a,b,c\n1,2,3\n' 1 'w.csv: line 1: found the header "a,b,c", expected arrival_s'
bad "a negative number, with its line" "${h}0,5,5\n1,-5,5\n" 1 'w.csv: line 3: found a prompt of "-5"'
bad "a missing field" "${h}0,5\n" 1 'w.csv: line 2: found 2 fields, expected 3'
bad "not a number" "${h}zero,5,5\n" 1 'w.csv: line 2: found an arrival of "zero"'
bad "time that runs back" "${h}5,5,5\n\n3,5,5\n" 1 'w.csv: line 4: arrives 2 s before'
bad "too many tokens" "${h}0,1048576,5\n" 1 'w.csv: line 2: .*1048576'
bad "a NUL byte" "${h}0,5,5\\\\0000,5\n" 1 'w.csv: line 2: '
bad "an empty file" '' 1 'w.csv: .*empty'
bad "only a header" "$h" 1 'no request'
run simulate $base --workload nothing.csv
expect "a file that is not there" 1 "" "nothing.csv: cannot be read: No such file"
csv "${h}0,600000,400000\n0,5,5\n"
sim --workload w.csv --memory 4G
check "what can never fit is refused and counted" 'r["refused"] == 1 and r["finished"] == 1'

# ---- caches side by side ----

sim --rate 200 --requests 400 --prompt 1000 --output 200 --memory 1G --budget 0.2,100 --evict chunk
check "a budget: fewer preemptions, less of the memory" 'len(rows) == 3 and rows[0]["preemptions"] > 0 and
    rows[1]["kv_occupancy_mean"] < rows[0]["kv_occupancy_mean"] and rows[2]["preemptions"] == 0'
sim --rate 200 --requests 400 --prompt 1000 --output 200 --memory 3G --allocator slots
check "slots: nothing is preempted" 'r["preemptions"] == 0 and r["kv_occupancy_peak"] <= 1'
sim --rate 50,100 --requests 200 --prompt 300 --output 20 --slo-ttft 0.1 --slo-tpot 0.01 --max-rate
check "rates: a run for each, one highest rate" 'len(rows) == 2 and rows[0]["max_rate_requests_per_s"] ==
    rows[1]["max_rate_requests_per_s"]'
python - <<'END'
import json
plan = {"version": 1, "model": {"name": "opt-125m", "weights": "w", "fingerprint": "f", "n_layer": 12, "n_head": 12,
        "n_kv_head": 12, "d_head": 64}, "policy": {"name": "h2o", "knobs": ""}}
json.dump(plan, open("half.json", "w"))
END
run simulate $base --rate 1 --prompt 5 --output 5 --plan half.json
expect "half a plan" 1 "" "half.json"

# ---- calibration ----

printf 'prefill_tokens,decode_sequences,context_tokens,seconds\n512,0,0,0.004\n0,1,100,0.002\n0,64,1000,0.003\n' >p.csv
run simulate $base --rate 5 --requests 20 --prompt 100 --output 10 --calibrate p.csv
expect "calibration is told" 0 "Calibrated on 3 steps" ""
printf 'prefill_tokens,decode_sequences,context_tokens,seconds\n512,0,0,0.004\n0,1,x,0.002\n' >p.csv
run simulate $base --rate 5 --prompt 100 --output 10 --calibrate p.csv
expect "a bad measurement, with its line" 1 "" "p.csv: line 3: expected four numbers"

# ---- over time ----

sim --rate 50 --requests 300 --prompt 300 --output 200 --timeline
check "a timeline: its mean is the occupancy" "abs(sum(t['kv_occupancy'] * (t['to_s'] - t['from_s']) for t in r['timeline'])
    / r['seconds'] - r['kv_occupancy_mean']) < 1e-9 and len(r['timeline']) > 100"
run simulate $base --rate 50 --requests 300 --prompt 300 --output 200 --timeline --csv
expect "a timeline as CSV" 0 "^plan,gpu,tp,kv,rate_requests_per_s,from_s,to_s,kv_occupancy" ""

# ---- figures ----

if command -v gnuplot >/dev/null; then
    run simulate $base --rate 5,20 --requests 50 --prompt 300 --output 20 --budget 0.2 --slo-ttft 1 \
        --plot-latency out/l.svg --plot-occupancy out/o.svg
    expect "figures are drawn after the table" 0 "TTFT p50" ""
    holds "latency: a limit and the two plans" grep -q "0.2, p99" out/l.svg
    holds "occupancy: a panel for each rate" grep -q ">5 requests/s<" out/o.svg
    csv "${h}0,1000,1\n1,1000000,1\n"
    run simulate $base --workload w.csv --memory 4G --plot-latency out/l.svg --plot-occupancy out/o.svg
    expect "figures of runs without any second token" 0 "TTFT p50" ""
    holds "an empty panel says so" grep -q "no values" out/l.svg
    rm -f out/*
else
    skip "figures" "gnuplot is not here"
fi
run simulate $base --rate 5 --prompt 300 --output 20 --plot-latency nowhere/l.svg
expect "a figure that cannot be written is told before the work" 1 "" "nowhere"
run plot latency --db x -o out/l.svg
expect "plot says who draws it" 2 "" "latency: shears simulate --plot-latency FILE"

# ---- what people read ----

over=(simulate $base --rate 5,20000 --prompt 300 --output 20 --budget 0.2 --slo-ttft 500ms)
run "${over[@]}" --requests 400
expect "served next to offered, and the share that is good" 0 "^  cache +offered/s +served/s +tokens/s +good +TTFT p50" ""
run "${over[@]}" --requests 400 --json
check "an overloaded server serves less than is offered" "rows[0]['served_requests_per_s'] > 0.8 * rows[0]['rate_requests_per_s']
    and rows[1]['served_requests_per_s'] < 0.8 * rows[1]['rate_requests_per_s'] and
    abs(r['served_requests_per_s'] - r['finished'] / r['seconds']) < 1e-9"
run "${over[@]}" --requests 400 --max-rate
expect "a highest rate of few requests: how many would be enough" 0 "^The highest rate rests on 4 of 400 requests; --requests 20000 would be enough" ""
holds "  the table fits a terminal" awk 'length > 120 && /^ / {exit 1}' log/out
run "${over[@]}" --requests 400 --goal 90% --max-rate
expect "  of another share" 0 "rests on 40 of 400 requests; --requests 2000 would be enough" ""
run "${over[@]}" --requests 400
expect "a share of few" 0 "^The share within the limits rests on 4 of 400 requests; --requests 1000 would be enough" ""
run "${over[@]}" --requests 1000
holds "  and of enough" sh -c '! grep -q "would be enough" log/out'
run "${over[@]}" --requests 20 --log out/l.csv
holds "the log's columns are those of the table" grep -q '^plan,gpu,tp,kv,speed,request,arrival_s' out/l.csv
rm -f out/*

# ---- misuse ----

misuse() { # description, message, words...
    local what=$1 says=$2
    shift 2
    run simulate "$@"
    expect "$what" 2 "" "$says"
}
misuse "no model" "simulate .*--model" --gpu A100-SXM-80GB
misuse "no workload" "simulate .*--workload" $base
misuse "both workloads" "--rate .*--workload" $base --workload w.csv --rate 4
misuse "a rate of nothing" "expected more than 0" $base --rate 0 --prompt 5 --output 5
misuse "no length" "prompt: found .none." $base --rate 1 --prompt none --output 5
misuse "a highest rate without limits" "slo-ttft" $base --prompt 5 --output 5 --max-rate
misuse "an unknown efficiency" "expected weights=F" $base --rate 1 --prompt 5 --output 5 --efficiency speed=2
misuse "a number of GPUs to be found" "--tp: .*numbers" $base --rate 1 --prompt 5 --output 5 --tp auto
misuse "an unknown GPU" "A100" --model opt-125m --gpu A1000 --rate 1 --prompt 5 --output 5
run simulate --model llama-3.1-70b --gpu A100-SXM-80GB --rate 1 --prompt 5 --output 5
expect "weights that do not fit" 1 "" "no room for weights: .* [0-9]+ bytes"


# ---- the model's context length ----

context=(simulate --model opt-125m --gpu T4 --requests 20 -q)
run "${context[@]}" --rate 1 --prompt 1948 --output 100
expect "requests as long as the model's context" 0 "continuous batching" ""
holds "  are served without a remark" sh -c '! grep -q "context length" log/out'
run "${context[@]}" --rate 1 --prompt 1949 --output 100
expect "longer ones: a remark with both numbers" 0 "^The longest request has 2049 tokens, .*context length of 2048" ""
printf 'arrival_s,prompt_tokens,output_tokens\n0,10,5\n1,4000,5\n' >long.csv
run "${context[@]:0:5}" --workload long.csv -q
expect "  also of a workload's file" 0 "^The longest request has 4005 tokens, .*context length of 2048" ""

finish
