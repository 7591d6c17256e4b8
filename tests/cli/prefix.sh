#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shears simulate with a prefix cache: traces that name their texts and what is wrong with them, sizes, tiers, sessions,
# both loops; and, where they are here, the hits on Mooncake's trace against the oracle's.
. "$(dirname "$0")/lib.sh"

base="--model opt-125m --gpu A100-SXM-80GB"
sim() { run simulate $base --json "$@"; }
check() { # description, Python expression over r (the first result) and rows
    holds "$1" python -c 'import json, sys
rows = json.load(open("log/out"))["results"]
r = rows[0]
assert ('"$2"'), rows'
}

# ---- Mooncake's traces ----

cat >m.jsonl <<'END'
{"timestamp": 0, "input_length": 1100, "output_length": 5, "hash_ids": [0, 1, 2]}
{"timestamp": 9000, "input_length": 1500, "output_length": 5, "hash_ids": [0, 1, 3]}

{"timestamp": 18000, "input_length": 1024, "output_length": 5, "hash_ids": [0, 1]}
{"timestamp": 27000, "input_length": 600, "output_length": 0, "hash_ids": [0, 1]}
{"timestamp": 36000, "input_length": 1537, "output_length": 1, "hash_ids": [0, 1, 4, 5]}
END
sim --workload m.jsonl
expect "Mooncake's lines are requests" 0 '"results"' ""
check "  times are milliseconds, what has no answer is left out" 'r["requests"] == 4 and r["tokens_in"] == 5161 and
    abs(r["rate_requests_per_s"] - 3 / 36) < 1e-9 and "prefix_hit_share" not in r'
cp log/out plain
sim --workload m.jsonl --prefix-cache none
holds "--prefix-cache none: as without it" cmp log/out plain
sim --workload m.jsonl --prefix-cache all
check "a prefix cache: full blocks, but one token is left to read" 'r["prefix_hit_blocks"] == 2 + 1 + 2 and
    r["prefix_blocks"] == 2 + 2 + 2 + 3 and r["tokens_reused"] == 5 * 512 and
    abs(r["prefix_hit_share"] - 5 * 512 / 5161) < 1e-12'
sim --workload m.jsonl --prefix-cache all --block 128
check "smaller blocks within the pieces that have an id" 'r["prefix_hit_blocks"] == 8 + 7 + 8'
sim --workload m.jsonl --prefix-cache all --block 1024
check "blocks of two pieces" 'r["prefix_hit_blocks"] == 1 + 0 + 1'
sim --workload m.jsonl --prefix-cache 19M
check "room for one block: the first" 'r["prefix_cache_blocks"] == 1 and r["prefix_hit_blocks"] == 3'
sim --workload m.jsonl --prefix-cache 0 --host-cache 80M --host-bandwidth 1e9 --disk-cache 1G --disk-bandwidth 1e8
check "none on the GPU, some of the host" 'r["prefix_hit_blocks_host"] == r["prefix_hit_blocks"] == 5'
sim --workload m.jsonl --requests 2
check "--requests: the first of a file" 'r["requests"] == 2'
run simulate $base --workload m.jsonl --prefix-cache all
expect "text: the share of tokens that were reused" 0 "^  cache .* reused +hits" ""

bad() { # description, line, message
    printf '%s\n' '{"timestamp": 5, "input_length": 9, "output_length": 1}' "$2" >w.jsonl
    run simulate $base --workload w.jsonl
    expect "$1" 1 "" "w.jsonl: line 2: $3"
}
bad "not JSON" '{"timestamp": 5' 'not valid JSON'
bad "no object" '[1, 2]' 'expected a JSON object'
bad "a missing key" '{"timestamp": 5, "input_length": 9}' 'output_length: expected'
bad "a duplicate key" '{"timestamp": 5, "timestamp": 6, "input_length": 9, "output_length": 1}' 'not valid JSON'
bad "a negative length" '{"timestamp": 5, "input_length": -9, "output_length": 1}' 'input_length: expected'
bad "too long" '{"timestamp": 5, "input_length": 1048576, "output_length": 1, "hash_ids": []}' '.*1048577 tokens'
bad "too few ids" '{"timestamp": 5, "input_length": 513, "output_length": 1, "hash_ids": [1]}' 'hash_ids: found 1, expected 2'
bad "an id that is no number" '{"timestamp": 5, "input_length": 9, "output_length": 1, "hash_ids": ["a"]}' 'hash_ids: number 1'
bad "time that runs back" '{"timestamp": 4, "input_length": 9, "output_length": 1}' 'arrives 0.001 s before'
bad "a row of CSV" '5,9,1' 'not valid JSON'

# ---- sessions ----

printf 'arrival_s,session,prompt_tokens,output_tokens\n0,a,100,21\n9,b,100,20\n18,a,150,5\n27,,150,5\n36,,150,5\n' >s.csv
sim --workload s.csv --prefix-cache all
check "a session: its prompts begin with all before, answers as well" 'r["prefix_hit_blocks"] == 120 // 16 and
    r["requests"] == 5'
sim --workload s.csv
check "  without a cache nothing is reused" '"tokens_reused" not in r'
printf 'arrival_s,session,prompt_tokens,output_tokens,session\n0,a,1,1,b\n' >w.csv
run simulate $base --workload w.csv
expect "two columns of sessions" 1 "" 'line 1: duplicate column "session"'

# ---- generated ----

sim --rate 5 --requests 50 --prompt 200 --output 10 --prefix-tokens 100 --prefix-cache all
check "a beginning that all prompts share" 'r["prefix_hit_blocks"] == 49 * 6'
sim --rate 5 --requests 50 --prompt 200 --output 10 --prefix-tokens 100 --prefixes 1000000 --prefix-cache all
check "as many beginnings as prompts" 'r["prefix_hit_blocks"] == 0'
sim --rate 5 --requests 50 --prompt 200 --output 10 --prefix-tokens 100 --prefix-cache 50% --budget 0.5 --db p.db
cp log/out first
sim --rate 5 --requests 50 --prompt 200 --output 10 --prefix-tokens 100 --prefix-cache 50% --budget 0.5 --db p.db
check "results with a prefix cache are kept" 'rows[0]["prefix_hit_blocks"] == rows[1]["prefix_hit_blocks"] == 294 and
    rows == json.load(open("first"))["results"]'
sim --rate 5 --requests 50 --prompt 200 --output 10 --prefix-tokens 100 --budget 0.5 --db p.db
check "  apart from those without" '"prefix_hit_blocks" not in r'

# ---- replicas ----

many="--rate 200 --requests 300 --prompt 200 --output 10 --prefix-tokens 100 --prefixes 10 --prefix-cache all"
sim $many --replicas 1
cp log/out first
sim $many
holds "one replica: as without" cmp log/out first
sim $many --replicas 4
check "four replicas: each reads each beginning" 'r["prefix_hit_blocks"] <= (300 - 40) * 6 and r["finished"] == 300'
sim $many --replicas 4 --router prefix --db p.db
check "  a router that knows what they have" 'r["prefix_hit_blocks"] > (300 - 40) * 6'
sim $many --replicas 4 --router least-loaded --log r.csv
holds "  --log: each request once" sh -c 'test "$(tail -n +2 r.csv | cut -d, -f6 | sort -nu | wc -l)" = 300'

# ---- clients ----

server="--model llama-3.1-8b --gpu H100-SXM --engine vllm"
apart="$server --concurrency 8 --requests 200 --prompt 400 --output 1-40 --prefix-tokens 320 --prefixes 2 --json --prefill-workers 2 --transfer 1e10"
run simulate $apart
check "prompts on other GPUs, without a prefix cache" '"prefix_hit_blocks" not in r'
cp log/out first
run simulate $apart --prefix-cache all --budget 0.5
check "  with one on each worker: both read each beginning" 'all(20 * (200 - 16) <= x["prefix_hit_blocks"] <= 20 * 196 and
    x["ttft_s"]["mean"] < json.load(open("first"))["results"][0]["ttft_s"]["mean"] for x in rows) and len(rows) == 2'
run simulate $apart --prefill-tp 2 --tp 4 --decode-workers 3 --weights-attention f8
check "  GPUs of both kinds of workers" 'r["gpus"] == 2 * 2 + 3 * 4'
cp log/out first
run simulate $apart --prefill-tp 4 --tp 4 --decode-workers 3 --weights-attention f8
check "  prompts are read faster on more of them" 'r["ttft_s"]["mean"] < json.load(open("first"))["results"][0]["ttft_s"]["mean"]'
for poll in 1 40; do
    run simulate --model llama-3.1-8b --gpu H100-SXM --engine sglang --concurrency 8 --requests 200 --prompt 400 --output 20-60 --poll $poll --json
    cp log/out poll$poll
done
check "a scheduler that looks for requests less often has them wait" 'r["ttft_s"]["p50"] > json.load(open("poll1"))["results"][0]["ttft_s"]["p50"]'
sim --workload m.jsonl --speed 1,4
check "a file four times as fast" 'abs(rows[1]["rate_requests_per_s"] / rows[0]["rate_requests_per_s"] - 4) < 1e-9'
shared="$server --concurrency 12 --requests 600 --prompt 400 --output 1-40 --prefix-tokens 320 --prefixes 8 --prefix-cache all --json --price 2"
for router in round-robin least-loaded prefix; do
    run simulate $shared --replicas 3 --router $router
    cp log/out $router
done
check "clients of three replicas: GPUs, tokens" '[r["gpus"], r["requests"], r["tokens_in"]] == [3, 600, 240000]'
check "  the router that knows what they have finds most" 'r["prefix_hit_blocks"] > 20 * (600 - 3 * 8) and
    all(json.load(open(x))["results"][0]["prefix_hit_blocks"] <= 20 * 600 - 20 * 8 for x in ("round-robin", "least-loaded"))'
check "  and cost is that of all" 'abs(r["usd_per_million_tokens"] - 2 * 3 / 3600 / r["throughput_tokens_per_s"] * 1e6) < 1e-6'
run simulate $shared --replicas 1
cp log/out one
run simulate $shared
holds "  one replica: as without" cmp log/out one
run simulate $server --concurrency 1,4 --workload m.jsonl --prefix-cache all --slo-ttft 1 --json
check "clients that send a file's requests" '[x["requests"] for x in rows] == [4, 4] and r["prefix_hit_blocks"] == 5 and
    r["good_share"] == 1'
run simulate $server --concurrency 4 --requests 100 --prompt 1000 --output 50 --prefix-tokens 800 --budget 0.25 \
    --prefix-cache all --slo-ttft 1ms --json
check "and generated ones: a budget reuses whole blocks, too" 'len(rows) == 2 and rows[0]["prefix_hit_blocks"] >= 96 * 50
    and rows[1]["prefix_hit_blocks"] >= 96 * 50 and rows[0]["good_share"] == 0'
printf '{"timestamp": 0, "input_length": 9, "output_length": 0}\n' >w.jsonl
run simulate $server --concurrency 4 --workload w.jsonl
expect "a file without a request" 1 "" "w.jsonl: .*no requests"

# ---- what cannot be ----

misuse() { # description, message, words...
    local what=$1 says=$2
    shift 2
    run simulate "$@"
    expect "$what" 2 "" "$says"
}
printf 'arrival_s,prompt_tokens,output_tokens\n0,10,1\n' >w.csv
misuse "a file that does not name its texts" 'w.csv does not say which prompts' $base --workload w.csv --prefix-cache all
misuse "prompts that nobody shares" '--prefix-cache requires --prefix-tokens' $base --rate 1 --prompt 9 --output 9 --prefix-cache all
misuse "a size of nothing" '--prefix-cache: found "lots"' $base --workload m.jsonl --prefix-cache lots
misuse "blocks across pieces" '--block: found 100' $base --workload m.jsonl --prefix-cache all --block 100
misuse "blocks of no cache" '--block requires --prefix-cache' $base --workload m.jsonl --block 16
misuse "a host without a bandwidth" 'host-bandwidth' $base --workload m.jsonl --prefix-cache all --host-cache 1G
misuse "an unknown router" 'router.*round-robin' $base --rate 1 --prompt 9 --output 9 --replicas 2 --router best
misuse "a router of one" '--router requires --replicas' $base --rate 1 --prompt 9 --output 9 --router prefix
misuse "a router by texts without a cache" '--router prefix requires' $base --rate 1 --prompt 9 --output 9 --replicas 2 --router prefix
misuse "a router of one, with clients" '--router requires --replicas' $base --engine vllm --concurrency 2 --prompt 9 --output 9 --router prefix
misuse "replicas of prompts on other GPUs" '--prefill-workers cannot be combined with --replicas' $base --engine vllm --concurrency 2 --prompt 9 --output 9 --replicas 2 --prefill-workers 1 --transfer 1e9
misuse "one cache over time, of several" '--replicas cannot' $base --rate 1 --prompt 9 --output 9 --replicas 2 --timeline
misuse "slots" 'allocator slots' $base --workload m.jsonl --prefix-cache all --allocator slots
misuse "eviction within a prompt" 'evict chunk' $base --workload m.jsonl --prefix-cache all --evict chunk
misuse "windows" '--windows ignore' --model gemma-3-27b --gpu H200 --workload m.jsonl --prefix-cache all
misuse "recurrent states" 'qwen3-next.* recurrent state, which holds' --model qwen3-next-80b-a3b --gpu H200 --tp 2 --workload m.jsonl --prefix-cache all
misuse "  of prompts on other GPUs" 'recurrent state, which holds' --model qwen3-next-80b-a3b --gpu H200 --tp 2 --prompt 40 --output 4 --prefix-tokens 32 --prefix-cache all --engine vllm --concurrency 2 --prefill-workers 1 --transfer 1e9
misuse "generated prefixes of a file" '--prefix-tokens cannot' $base --workload m.jsonl --prefix-tokens 5

# ---- Mooncake's conversation trace against the oracle ----

trace=${SH_TOP:-.}/../shared/data/workloads/mooncake_conversation_trace.jsonl
if [ -f "$trace" ]; then
    python "$cli/../oracle/prefix.py" "$trace" 1000 10000 50000 >hits.json
    for n in 1000 10000 50000; do
        run simulate --model llama-3.1-8b --gpu H100-SXM --workload "$trace" --max-seqs 1 --memory 16T \
            --prefix-cache $((n * 512 * 131072)) --json
        check "hits of $n blocks" "(lambda h: h['hits'][[1000, 10000, 50000].index($n)] == r['prefix_hit_blocks'] and
            h['asked'] == r['prefix_blocks'] and r['prefix_cache_blocks'] == $n)(json.load(open('hits.json')))"
    done
else
    skip "hits on Mooncake's trace" "the shared data are not here"
fi

finish
