#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shears calibrate, simulate --concurrency and capacity --engine: times of engines, profiles, benchmarks and what is
# wrong with them.
. "$(dirname "$0")/lib.sh"

server="--model llama-3.1-8b --gpu H100-SXM --weights f8 --kv f8"
check() { # description, Python expression over r
    holds "$1" python -c 'import json, sys
r = json.load(open("log/out"))
rows = r.get("results", [])
assert ('"$2"'), r'
}
table() { printf 'model\tgpu\tengine\tweights\tkv\tisl\tosl\tconcurrency\tttft_ms\ttpot_ms\n'"$1" >t.tsv; }

# ---- the closed loop ----

loop() { run simulate $server --engine "$1" --json "${@:2}"; }
loop vllm --concurrency 16,4,64 --prompt 819-1024 --output 100-128
expect "JSON: exit 0, nothing on stderr" 0 '"results"' ""
check "one result for each number of clients, in order" '[x["concurrency"] for x in rows] == [16, 4, 64]'
check "the keys of the contract" 'all(k in x[g] for x in rows for g in ("ttft_s", "tpot_s")
    for k in ("mean", "p50", "p90", "p99")) and all(x["throughput_tokens_per_s"] > 0 for x in rows)'
check "ten requests for each client" '[x["requests"] for x in rows] == [160, 40, 640]'
check "more clients: longer, and more in all" 'rows[1]["tpot_s"]["mean"] < rows[0]["tpot_s"]["mean"] <
    rows[2]["tpot_s"]["mean"] and rows[1]["throughput_tokens_per_s"] < rows[2]["throughput_tokens_per_s"]'
check "no price: no cost" 'rows[0]["usd_per_million_tokens"] is None'
cp log/out first
loop vllm --concurrency 16,4,64 --prompt 819-1024 --output 100-128
holds "the same seed gives the same bytes" cmp log/out first
loop sglang --concurrency 8 --prompt 1024 --output 64 --tp 2 --price 3 --requests 100
check "per GPU and per dollar" 'abs(rows[0]["throughput_tokens_per_s"] / 2 - rows[0]["throughput_tokens_per_s_per_gpu"])
    < 1e-6 and abs(rows[0]["usd_per_million_tokens"] - 6e6 / 3600 / rows[0]["throughput_tokens_per_s"]) < 1e-6'
loop trtllm --concurrency 8 --prompt 1024 --output 64 --budget 0.5
check "a budget: after the full cache" '[x["plan"] for x in rows] == ["full", "0.5"] and
    rows[1]["tpot_s"]["mean"] <= rows[0]["tpot_s"]["mean"]'
run simulate $server --engine vllm --concurrency 8 --prompt 1024 --output 64
expect "text: how far off such times are" 0 "vllm on H100-SXM, dense: " ""
run simulate --model llama-3.1-8b --gpu A100-SXM-80GB --engine vllm --concurrency 8 --prompt 1024 --output 64
expect "text: nothing like it was measured" 0 "nothing like it was measured" ""
run simulate --model gpt-oss-120b --gpu B200 --engine trtllm --concurrency 64 --prompt 1024 --output 64 --ep 4 --dp 4 --json
check "copies of attention" 'rows[0]["gpus"] == 4'
run simulate --model llama-3.1-70b --gpu H100-SXM --tp 2 --pp 2 --engine vllm --concurrency 8 --prompt 100 --output 9 --json
check "a pipeline" 'rows[0]["gpus"] == 4'

wrong() { # description, text, options
    run simulate "${@:3}"
    expect "$1" 2 "" "$2"
}
loop vllm --concurrency 16 --prompt 1024 --output 128
cp log/out plain
loop vllm --concurrency 16 --prompt 1024 --output 128 --speculate 3 --accept 0
holds "speculation: tokens that are never accepted are not proposed" cmp log/out plain
loop vllm --concurrency 16 --prompt 1024 --output 128 --speculate 3 --accept 0.7
check "  tokens that are accepted shorten an answer" 'rows[0]["tpot_s"]["mean"] <
    0.7 * json.load(open("plain"))["results"][0]["tpot_s"]["mean"] and rows[0]["tokens_out"] == 160 * 128'
wrong "tokens without a probability" "--accept" $server --engine vllm --concurrency 4 --prompt 100 --output 10 --speculate 2
wrong "speculation in the open loop" "--speculate requires --concurrency" $server --engine vllm --rate 4 --prompt 100 --output 10 --speculate 2 --accept 1
loop vllm --concurrency 1 --prompt 1024 --output 128
cp log/out plain
loop vllm --concurrency 1 --prompt 1024 --output 128 --prefill-workers 1 --transfer 1e18
check "prefill workers: one client, a link without a limit: as on one server" '(lambda a, b: b["gpus"] == 2 and all(
    abs(a[k]["mean"] / b[k]["mean"] - 1) < 1e-9 for k in ("ttft_s", "tpot_s")))(
    json.load(open("plain"))["results"][0], rows[0])'
loop vllm --concurrency 1 --prompt 1024 --output 128 --prefill-workers 1 --transfer 1e9
check "  a slow link: the bytes of a prompt later" 'abs(rows[0]["tpot_s"]["mean"] - 1024 * 65536 / 1e9 / 127 -
    json.load(open("plain"))["results"][0]["tpot_s"]["mean"]) < 1e-6'
loop vllm --concurrency 64 --prompt 1024 --output 128 --prefill-workers 2 --decode-workers 3 --tp 2 --transfer 1e11 --budget 0.5
check "  several workers, and a budget" 'rows[0]["gpus"] == 2 * 2 + 3 * 2 and len(rows) == 2 and
    rows[1]["tpot_s"]["mean"] < rows[0]["tpot_s"]["mean"]'
wrong "a link that is not given" "--transfer" $server --engine vllm --concurrency 4 --prompt 100 --output 10 --prefill-workers 2
wrong "decode workers alone" "--decode-workers requires" $server --engine vllm --concurrency 4 --prompt 100 --output 10 --decode-workers 2
wrong "prefill workers in the open loop" "--prefill-workers requires --concurrency" $server --engine vllm --rate 4 --prompt 100 --output 10 --prefill-workers 2 --transfer 1e9
wrong "no engine" "--engine" $server --concurrency 4 --prompt 100 --output 10
wrong "an unknown engine" "tgi" $server --engine tgi --concurrency 4 --prompt 100 --output 10
wrong "no lengths" "--prompt" $server --engine vllm --concurrency 4
wrong "no clients" "--concurrency" $server --engine vllm --concurrency 0 --prompt 100 --output 10
wrong "a rate, too" "--rate" $server --engine vllm --concurrency 4 --prompt 100 --output 10 --rate 3
wrong "experts of a dense model" "--ep" $server --engine vllm --concurrency 4 --prompt 100 --output 10 --ep 2
wrong "copies without a closed loop" "--dp" $server --engine vllm --rate 4 --prompt 100 --output 10 --dp 2
wrong "times of its own" "--efficiency" $server --engine vllm --rate 4 --prompt 100 --output 10 --efficiency weights=0.5
run simulate --model llama-3.1-70b --gpu H100-SXM --engine vllm --concurrency 4 --prompt 100 --output 10
expect "weights that do not fit" 1 "" "no room for the weights"
run simulate $server --engine vllm --memory 10G --concurrency 4 --prompt 100000 --output 10
expect "a request that does not fit" 1 "" "llama-3.1-8b: a request"

# ---- the open loop ----

run simulate $server --engine vllm --rate 4 --requests 200 --prompt 500 --output 50 --json
check "with the clock of the engine" 'len(rows) == 1 and rows[0]["tpot_s"]["p50"] > 0.003'
tpot=$(python -c 'import json; print(json.load(open("log/out"))["results"][0]["tpot_s"]["p50"])')
run simulate $server --rate 4 --requests 200 --prompt 500 --output 50 --json
check "the bound is less" "rows[0]['tpot_s']['p50'] < $tpot"

# ---- capacity ----

run capacity $server --length 2048 --batch 16 --engine vllm --json
check "expected besides the bound" 'rows[0]["expected_time_per_token_s"] > rows[0]["time_per_token_s"] and
    rows[0]["engine"] == "vllm" and "expected_error" in rows[0]'
run capacity $server --length 2048 --batch 16 --engine vllm
expect "text: expected, and how far off" 0 "expected .* tokens/s" ""
run capacity $server --length 2048 --batch 16 --json
check "no engine: the keys of before" '"engine" not in rows[0]'

# ---- profiles from benchmarks ----

# What the clock itself says of a server half as fast in everything: the fit finds it.
loop vllm --concurrency 1,4,16,64 --prompt 1000 --output 100 --seed 0
python - <<'END'
import json
rows = json.load(open("log/out"))["results"]
with open("t.tsv", "w") as f:
    f.write("model\tgpu\tengine\tweights\tkv\tisl\tosl\tconcurrency\tttft_ms\ttpot_ms\n")
    for r in rows:
        f.write("llama-3.1-8b\tH100-SXM\tvllm\tf8\tf8\t1000\t100\t%d\t%.6f\t%.6f\n" % (
            r["concurrency"], 1500 * r["ttft_s"]["mean"], 1500 * r["tpot_s"]["mean"]))
END
run calibrate t.tsv -o mine.tsv --json
expect "a profile is written" 0 '"after"' ""
check "the errors before and after" '25 < r["before"]["tpot_percent"] < 40 and r["after"]["tpot_percent"] < 8'
run simulate $server --engine mine.tsv --concurrency 4 --prompt 1000 --output 100 --json
expect "--engine takes it" 0 '"results"' ""
run calibrate t.tsv --engine mine.tsv --only-errors --rows --json
check "and it says what the fit said" 'r["before"]["tpot_percent"] < 8 and len(r["rows"]) == 4'
# Files as the three programs write them.
files=$SH_TOP/tests/fuzz/corpus/benchmark
cp "$files/ok-vllm.json" vllm.json
run calibrate vllm.json --engine vllm $server --rows --json
check "vLLM's file" 'r["runs"] == 1 and r["rows"][0]["concurrency"] == 8 and r["rows"][0]["tpot_s"] == 0.00925'
run calibrate "$files/ok-vllm-detailed.json" --engine vllm $server --only-errors --rows --json
check "vLLM's file with details: a request that failed has no answer" 'r["runs"] == 1'
run calibrate "$files/ok-vllm-sweep.json" --engine vllm $server --only-errors --rows --json
check "vLLM's sweep: a list" '[x["concurrency"] for x in r["rows"]] == [4, 8]'
run calibrate "$files/ok-sglang.jsonl" --engine sglang $server --only-errors --rows --json
check "SGLang's lines, with Python's Infinity" '[x["concurrency"] for x in r["rows"]] == [16, 4] and
    r["rows"][0]["ttft_s"] == 0.1105'
tpot=$(python -c 'import json; print(json.load(open("log/out"))["rows"][0]["tpot_predicted_s"])')
run simulate $server --engine sglang --concurrency 16 --prompt 512-1024 --output 64-128 --requests 160 --seed 0 --json
check "SGLang's random lengths are those between its settings" "abs(rows[0]['tpot_s']['mean'] - $tpot) < 1e-9"
run calibrate "$files/ok-guidellm.json" --engine vllm $server --only-errors --rows --json
check "GuideLLM's file: synchronous is one client, TPOT is that after the first token" '
    [(x["concurrency"], x["tpot_s"]) for x in r["rows"]] == [(1, 0.0066), (4, 0.008)]'
run calibrate "$files/ok-guidellm-0.3.json" --engine vllm $server --only-errors --json
check "GuideLLM 0.3's file" 'r["runs"] == 1'
run calibrate "$files/open-loop.json" --engine vllm $server --only-errors
expect "GuideLLM: an open loop" 1 "" "streams"
run calibrate "$files/no-clients.json" --engine sglang $server --only-errors
expect "SGLang: no --max-concurrency" 1 "" "max_concurrency"

run calibrate vllm.json --engine vllm
expect "a JSON file on an unknown server: the options that name it" 1 "" "--model NAME and --gpu NAME"
bad() { # description, text that must be there, table or file
    [ -e "$3" ] || table "$3"
    run calibrate $([ -e "$3" ] && echo "$3" || echo t.tsv) --only-errors
    expect "$1" "${4:-1}" "" "$2"
}
row='llama-3.1-8b\tH100-SXM\tvllm\tf8\tf8\t1000\t100\t4\t90\t9\n'
bad "an unknown model" "run 1" "${row/llama-3.1-8b/llama-9}" 2
bad "an unknown GPU" "run 1" "${row/H100-SXM/H1000}" 2
bad "an unknown engine" "line 2: engine" "${row/vllm/tgi}"
bad "a field is missing" "line 3" "${row}llama-3.1-8b\tH100-SXM\n"
bad "a field too many" "line 2" "${row/9\\n/9\\t1\\n}"
bad "no clients" "line 2: concurrency" "${row/\\t4\\t/\\t0\\t}"
bad "a time below 0" "line 2: tpot_ms" "${row/9\\n/-9\\n}"
bad "a time that is none" "line 2: tpot_ms" "${row/9\\n/nan\\n}"
bad "no rows" "no runs" ""
printf 'a\tb\n1\t2\n' >other.tsv
bad "other columns" "model" other.tsv
printf 'a\0b\n' >zero.tsv
bad "bytes that are no text" "zero byte" zero.tsv
echo '{"mean_ttft_ms": 3}' >short.json
bad "JSON: no clients" "max_concurrency" short.json
echo '{"mean_ttft_ms": "x", "max_concurrency": 1e99}' >huge.json
bad "JSON: clients that cannot be" "max_concurrency" huge.json
echo '{"mean_ttft_ms": 50, "mean_tpot_ms": 9, "max_concurrency": 4, "completed": 9, "total_output_tokens": 90,
    "input_lens": [1, 4000000]}' >lengths.json
bad "JSON: a length that cannot be" "input_lens: found 4e.06" lengths.json
echo '{"mean_ttft_ms": 50, "mean_tpot_ms": 9, "max_concurrency": 4, "completed": 1e9, "total_input_tokens": 2e11,
    "total_output_tokens": 2e10}' >endless.json
timeout -k 1 60 "$SHEARS" calibrate endless.json --engine vllm --model llama-3.1-8b --gpu H100-SXM --only-errors \
    >log/out 2>log/err
status=$?
expect "JSON: more requests than anyone can wait for" 0 "^TPOT" ""
echo '{"x": [1, 2' >cut.json
bad "JSON: cut off" "cut.json" cut.json
echo '[1]' >list.json
bad "JSON: a list of numbers" "element 1: found an integer" list.json
run calibrate vllm.json --engine vllm --gpu H100-SXM
expect "JSON: of which model?" 1 "" "model"
table "$row${row/H100-SXM/B200}"
run calibrate t.tsv
expect "a profile of two generations" 2 "" "one generation"
run calibrate
expect "no file" 2 "" "FILE"
sed 's/^constant\tlayer.*/constant\tlayer\t-1\t1\ts\tx/' mine.tsv >broken.tsv
run simulate $server --engine broken.tsv --concurrency 4 --prompt 100 --output 10
expect "a profile that is damaged" 1 "" "broken.tsv: line .*layer"
run calibrate t.tsv -o t.tsv
expect "the output is an input" 2 "" "t.tsv"

finish
