#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shears capacity: what people have posted about memory, reproduced; the contract's keys; tables of many; a user's
# own catalogues; and every request that makes no sense, refused by a sentence.
. "$(dirname "$0")/lib.sh"

# A row with what a comparison needs of the last run's JSON: r, kv (bytes of a sequence), G and M, n rows.
check() { # description, Python expression over r, rows
    holds "$1" python -c 'import json, sys
rows = json.load(open("log/out"))["results"]
r, G, M = rows[0], 2**30, 2**20
kv, token, weights = (r[k + "_per_gpu"] for k in ("kv_bytes_per_sequence", "kv_bytes_per_token", "weights_bytes"))
assert ('"$2"'), {k: v for k, v in r.items() if not isinstance(v, list)}'
}
ask() { # model, gpu, length, more...
    local model=$1 gpu=$2 length=$3
    shift 3
    run capacity --model "$model" --gpu "$gpu" --length "$length" --json "$@"
}

# ---- the contract ----

ask opt-6.7b A100-SXM-80GB 2048
expect "JSON: exit 0, nothing on stderr" 0 '"results"' ""
check "JSON: the keys of the contract" 'all(k in r for k in """model gpu tp pp length batch room_bytes_per_gpu
    weights_bytes_per_gpu kv_bytes_per_token_per_gpu kv_bytes_per_sequence_per_gpu max_batch max_length
    decode_tokens_per_s prefill_tokens_per_s usd_per_million_tokens bound evidence""".split())'
check "JSON: terms add up to the limit" '(lambda t: t["limit"] == t["weights"] + t["overhead"] + t["room for the cache"] and
    t["room for the cache"] == t["cache in use"] + t["left over"])({t["term"]: t["bytes"] for t in r["terms"]})'
check "JSON: every guess is a range with a source" 'r["server"] and all(t["low_bytes"] <= t["high_bytes"] and t["source"]
    for t in r["server"])'
check "JSON: the frontier falls with the length" '[f["max_batch"] for f in r["frontier"]] == [270, 135, 67]'
run capacity --model opt-6.7b --gpu A100-SXM-80GB --length 2048
expect "text: GiB and GB of each term" 0 "weights +13316947968 +12.402 +13.317" ""
run capacity --model opt-6.7b --gpu A100-SXM-80GB --length 2048 --csv
expect "CSV: one line of names" 0 "^model,gpu,tp,pp,length,batch,room_bytes_per_gpu" ""
for kv in f16 q4_0,nvfp4; do
    run capacity --model llama-3.1-8b --gpu H100-SXM --length 8192 --kv $kv -q --columns kv,kv_bytes_per_token_per_gpu
    expect "--columns in text: names of --json, $kv" 0 "^  KV +KV per token$" ""
done
run capacity --model opt-6.7b --gpu A100-SXM-80GB --length 2048 --columns term,bytes
expect "--columns in text: a table next to the figures" 0 "^  weights +13316947968$" ""

# ---- Scissorhands, Tables 1 and 2 ----

paper() { # model, GiB of cache for 128 x 2048, bytes of weights, GiB of weights as printed, batch then, batch by bytes
    ask "$1" A100-SXM-80GB 2048 --batch 128 --memory 640G --util 1
    check "Table 1: $1, $2 GiB of cache, $3 bytes of weights" "kv * 128 == $2 * G and weights == $3"
    check "Table 2: $1, $6 sequences next to these bytes in 640 GiB" "r['max_batch'] == $6"
    ask "$1" A100-SXM-80GB 2048 --memory $(((640 - $4) * (1 << 30) + $3))
    check "Table 2: $1, $5 next to the weights as Table 1 rounds them" "r['max_batch'] == $5"
}
paper opt-175b 1152 349208936448 325 35 34
paper llama-65b 640 130571321344 130 102 103
paper bloom-176b 980 352494542848 352 37 40
ask opt-175b A100-SXM-80GB 2048 --budget 410 --kv int4 --memory 640G --batch 128
check "a fifth of the tokens at 4 bits: 64.86 GiB, not a twentieth of 1152" 'round(kv * 128 / G, 2) == 64.86'

# ---- posted by users of other programs ----

ask qwen3-235b-a22b H100-SXM 4096 --tp 4
check "SGLang: 367404 tokens are 8.23 GiB of keys and as much of values" 'round(367404 * token / 2 / G, 2) == 8.23'
ask gemma-3-4b A100-SXM-80GB 131072 --windows llama:512
check "llama.cpp: 2560 + 174 MiB, gemma-3-4b with 512 tokens in flight" 'kv == (2560 + 174) * M and
    r["kv_fixed_bytes_per_sequence_per_gpu"] == 174 * M'
ask llama-2-70b A100-SXM-80GB 2048 --tp 2
check "llama.cpp: 640 MiB, Llama-70B at 2048" 'kv * 2 == 640 * M'
ask gpt-oss-120b H100-SXM 8192 --windows ignore
check "vLLM: 78384 tokens in 5.38 GiB, gpt-oss-120b; 65248815744 bytes of weights" 'round(78384 * token / G, 2) == 5.38 and
    weights == 65248815744'
ask mistral-small-24b-2501 H100-SXM 15049 --page 128
check "118 pages of 128 for 15049 tokens" 'kv == 118 * 128 * token and token == 163840'
cat >qwen.txt <<'ROW'
qwen3.6-27b layers=64 hidden=5120 heads=24 kv_heads=4 head_dim=256 ffn=17408 vocab=248320 gated qk_norm query_gate pattern=SSSG ssm=3 ssm_key_heads=16 ssm_heads=48 ssm_head_dim=128 ssm_conv=4
ROW
ask qwen3.6-27b H100-SXM 262144 --models qwen.txt
check "llama.cpp: 16384 MiB in 16 of 64 layers, from a row of one's own" 'token * 262144 == 16384 * M'
for row in "gemma-3-27b 131072 10.41" "deepseek-v3 163840 10.72" "kimi-k2 262144 17.16" "qwen3-0.6b 40960 4.38"; do
    set -- $row
    ask "$1" B200 "$2"
    check "$1 at $2: $3 GiB" "abs(kv / G - $3) <= 0.005"
done
ask mistral-7b-v0.1 H100-SXM 32768
check "a window of 4096 caps the cache: 0.537 GB" 'kv == 536870912'
ask falcon-7b H100-SXM 2048
check "one KV head of 64: 8192 bytes a token" 'token == 8192'
ask nemotron-h-56b H200-SXM 8192
check "attention in 10 of 118 layers and states: 0.795 GB" 'kv == 795164672'
ask "$SH_GOLDEN/checkpoints/modern/falcon_h1" H100-SXM 60
check "keys, values and a state in each of 3 layers: 24 x 6 numbers and the last 3 rows of 48 channels" 'token == 144 and
    kv == 60 * 144 + 3 * 2 * (24 * 6 + 3 * 48) and r["kv_fixed_bytes_per_sequence_per_gpu"] == 3 * 2 * (24 * 6 + 3 * 48)'
cat >hybrid.txt <<'ROW'
hybrid layers=3 hidden=16 heads=4 kv_heads=2 head_dim=6 ffn=24 vocab=48 gated pattern=H ssm=2 ssm_heads=4 ssm_head_dim=6 ssm_state=6 ssm_groups=2 ssm_conv=4 ssm_unnormed
ROW
ask hybrid H100-SXM 60 --models hybrid.txt
check "the same from a row" 'kv == 60 * 144 + 3 * 2 * (24 * 6 + 3 * 48)'

# What vLLM left for the cache on one or two H100, GiB; the last column is --gpu-memory-utilization.
while read -r model left tp util more; do
    ask "$model" H100-SXM 4096 --tp "$tp" --util "$util" $more
    check "vLLM: $model${more:+ $more}, tp $tp: $left GiB lie inside the range, which is +-2.5 at most" "(lambda a, b:
        a <= $left * G <= b and b - a <= 5 * G)(r['expected_room_bytes_per_gpu_low'], r['expected_room_bytes_per_gpu_high'])"
done <<'MEASURED'
qwen3-0.6b 64.45 1 0.9
llama-3.1-8b 51.38 1 0.9
gpt-oss-20b 50.28 1 0.9
mistral-small-3.1-24b 28.20 1 0.95
qwen3-32b 4.45 1 0.9
qwen3-32b 34.49 2 0.9
llama-3.1-70b 32.00 2 0.9 --weights f8
gpt-oss-120b 3.33 1 0.95
MEASURED

# ---- budgets as they cost ----

while read -r model gpu length batch more; do
    ask "$model" "$gpu" "$length" $more
    check "$model, $length tokens, ${more:-whole}: $batch sequences" "r['max_batch'] == $batch"
done <<'ANCHORS'
opt-6.7b A100-SXM-80GB 2048 67
opt-6.7b A100-SXM-80GB 2048 337 --budget 0.2
opt-6.7b A100-SXM-80GB 2048 332 --budget 0.2 --page 16
opt-66b A100-SXM-80GB 2048 43 --tp 4
opt-66b A100-SXM-80GB 2048 219 --tp 4 --budget 0.2
opt-175b A100-SXM-80GB 2048 34 --tp 8
opt-175b A100-SXM-80GB 2048 174 --tp 8 --budget 0.2
llama-3.1-8b H100-SXM 131072 3 --util 0.9
llama-3.1-8b H100-SXM 131072 113 --util 0.9 --budget 4096
llama-3.1-8b H100-SXM 131072 112 --util 0.9 --budget 4096 --headroom 31
llama-3.1-8b H100-SXM 131072 100 --reserve 0.1 --budget 4+4092 --headroom 512
ANCHORS
ask llama-3.1-8b H100-SXM 131072 --util 0.9 --budget 4096
check "81 others while one prompt is whole" 'r["max_batch_with_prompt"] == 81'
check "a budget is not said to be free" '"not measured" in r["evidence"]'
ask opt-6.7b A100-SXM-80GB 2048 --batch 337
check "the budget that 337 sequences need: 410 tokens" 'r["max_budget_tokens"] == 410 and not r["fits"]'
ask opt-6.7b A100-SXM-80GB 2048 --batch 67
check "67 need none" 'r["max_budget_tokens"] == 2048 and r["fits"]'
ask opt-6.7b A100-SXM-80GB 2048 --budget 0.2 --page 16
check "without compaction nearly every page stays" '0.96 < r["kv_scattered_bytes_per_sequence_per_gpu"] / G < 0.98'
ask llama-3.1-8b H100-SXM 16384 --budget pyramid:1024-128
check "a runtime with one size needs the widest layer's" 'r["kv_uniform_bytes_per_sequence_per_gpu"] == 1024 * 131072 and
    kv < 0.57 * 1024 * 131072'
ask opt-6.7b A100-SXM-80GB 2048 --batch 64
check "1591 tokens/s for 64 sequences" 'round(r["decode_tokens_per_s"]) == 1591'
ask opt-6.7b A100-SXM-80GB 2048 --batch 330 --budget 0.2 --price 1.8
check "7988 tokens/s for 330, a million for 0.0626 USD" 'round(r["decode_tokens_per_s"]) == 7988 and
    abs(r["usd_per_million_tokens"] - 1.8 / 3600 / r["decode_tokens_per_s"] * 1e6) < 1e-12'
run capacity --model gemma-3-27b --gpu H100-SXM --length 131072 --budget 1024
expect "windowed layers that gain nothing are counted" 0 "The budget frees nothing in 52 layers" ""
run capacity --model opt-6.7b --gpu A100-SXM-80GB --length 64 --batch 4
expect "not your bottleneck, when it is not" 0 "cache is not .*bottleneck" ""

run capacity --model opt-125m --gpu L4 --length 100 --util 0.9
expect "the share of the memory in words" 0 "^GPUs .*, 90 % of the memory$" ""
run capacity --model opt-125m --gpu L4 --length 100
expect "all of it" 0 "^GPUs .*, all of the memory$" ""

# ---- what does not fit is an answer ----

run capacity --model llama-3.1-70b --gpu L4 --length 100
expect "weights that do not fit: what is said of the cache" 0 "^The cache is not .*bottleneck: .*no room for weights" ""

ask llama-3.1-70b H100-SXM 8192 --util 0.9
expect "weights that do not fit: exit 0" 0 '"unfit_term": "weights"' ""
check "batch 0, the term and the shortfall" 'r["max_batch"] == 0 and not r["fits"] and r["bound"] == "memory" and
    r["shortfall_bytes"] == 141107412992 - 76968728985 and r["decode_tokens_per_s"] is None'
ask llama-3.1-8b L4 131072
check "a cache that does not fit" 'r["unfit_term"] == "cache of the sequences" and r["max_batch"] == 0 and r["max_length"] > 0'
ask llama-3.1-8b H100-SXM 8192 --batch 1000
check "a batch that does not fit" 'r["unfit_term"] == "cache of the sequences" and 0 < r["max_batch"] < 1000'

# ---- many at once ----

run capacity --model llama-3.1-70b --gpu all --tp auto --length 8192 --batch 16 --json
check "--tp auto: the smallest group first, and it fits" 'len(rows) >= 25 and r["fits"] and
    [x["memory_bytes"] * x["gpus"] for x in rows if x["fits"]] == sorted(x["memory_bytes"] * x["gpus"] for x in rows if x["fits"])'
run capacity --model all --gpu all --length 2048 --json
check "--model all --gpu all: a row for each pair, what fits first" 'len(rows) > 45 * 25 and
    [x["fits"] for x in rows] == sorted((x["fits"] for x in rows), reverse=True)'
run capacity --model opt-6.7b,opt-13b --gpu L4,H100-SXM --tp 1,2 --kv f16,int4 --budget 0.2,0.5 --length 2048 --json
check "lists: every combination" 'len(rows) == 2 * 2 * 2 * 2 * 2'
run info gpus --json
expect "info gpus" 0 '"gpu": "H100-SXM"' ""
run info models --json
expect "info models" 0 '"model": "deepseek-v3"' ""

# ---- a user's own ----

echo 'H100-SXM gb=1 mib=1024 gbps=1 f16=1' >gpus.txt
ask opt-125m h100-sxm 128 --gpus gpus.txt
check "a row of one's own hides the built-in one" 'r["memory_bytes"] == G'
printf 'mine layers=2 hidden=8 heads=2 ffn=16 vocab=9\n\nbad layers=0\n' >models.txt
refuse "a bad row is named by its line" 1 'models.txt: line 3: bad: layers: found "0"' \
    capacity --model mine --gpu L4 --length 8 --models models.txt
echo 'mine layers=2 hidden=8 heads=2 ffn=16 vocab=9 layers=3' >models.txt
refuse "two values of a key of a model" 1 'models.txt: line 1: mine: layers: found twice' \
    capacity --model mine --gpu L4 --length 8 --models models.txt
cp "$checkpoints/opt/config.json" config.json
ask config.json L4 64
check "a config.json" 'r["parameters"] > 0 and kv > 0'
ask "$checkpoints/opt" L4 64
check "a folder with one" 'r["model"] == "opt"'

# Files of packed weights say themselves what they take; what is not packed is what info says of it.
python -c 'import json, struct, sys
BLOCK = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84), 11: (256, 110),
         12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292), 30: (1, 2)}   # numbers, bytes of a block (ggml)
f = open(sys.argv[1], "rb")
take = lambda form: struct.unpack("<" + form, f.read(struct.calcsize("<" + form)))[0]
word = lambda: f.read(take("Q"))
def value(kind):
    if kind == 8:
        return word()
    if kind == 9:
        inner, n = take("I"), take("Q")
        return [value(inner) for _ in range(n)]
    return take("BbHhIif?"[kind] if kind < 8 else "QQqd"[kind - 9])
f.read(8)
tensors, pairs, total = take("Q"), take("Q"), 0
for _ in range(pairs):
    word(), value(take("I"))
for _ in range(tensors):
    word()
    n = 1
    for _ in range(take("I")):
        n *= take("Q")
    numbers, size = BLOCK[take("I")]
    total += n // numbers * size
    take("Q")
print(total)' "$SH_GOLDEN/gguf/quantised.gguf" >total
ask "$SH_GOLDEN/gguf/quantised.gguf" L4 64
check "a .gguf file: its own bytes" "weights == $(cat total) and r['weights'] == 'stored'"
ask "$SH_GOLDEN/gguf/quantised.gguf" L4 64 --weights f16
check "a .gguf file with --weights: those" 'weights == 2 * r["parameters"]'

# ---- refused ----

no() { # description, status, sentence, arguments...
    local what=$1 wanted=$2 sentence=$3
    shift 3
    refuse "$what" "$wanted" "$sentence" capacity "$@"
}
base=(--model opt-6.7b --gpu A100-SXM-80GB)
no "nothing" 2 "capacity .*--model NAME, --gpu NAME and --length N$"
no "no length" 2 "capacity .*--length N$" "${base[@]}"
no "no GPU" 2 "capacity .*--gpu NAME$" --model opt-6.7b --length 9
no "unknown model" 2 'model "opt-6.8b" is not known' --model opt-6.8b --gpu L4 --length 9
holds "unknown model: the nearest is named" grep -q '^hint: did you mean opt-6.7b' log/err
no "a model's short name" 2 'model "llama3" is not known' --model llama3 --gpu L4 --length 9
holds "a model's short name: those that begin so" grep -q '^hint: did you mean .*llama-3-8b.*[?] shears info models lists them' log/err
no "no model's name at all" 2 'model "xyzzy" is not known' --model xyzzy --gpu L4 --length 9
holds "no model's name at all: none is named" grep -q '^hint: shears info models lists them; a folder' log/err
no "unknown GPU" 2 'GPU "H100-SXN" is not known' --model opt-6.7b --gpu H100-SXN --length 9
holds "unknown GPU: the nearest are named" grep -q '^hint: did you mean H100-SXM or .*[?] shears info gpus lists them' log/err
no "negative length" 2 "length: -5 " "${base[@]}" --length -5
no "length beyond any" 2 "length: 99999999999 " "${base[@]}" --length 99999999999
no "length that overflows" 2 "length: found .*, expected a whole number" "${base[@]}" --length 99999999999999999999999
no "tp that does not divide" 2 "32 heads .*--tp 3" "${base[@]}" --length 9 --tp 3
run capacity "${base[@]}" --length 9 --tp 3 --uneven
expect "tp that does not divide, with --uneven: computed, with a warning" 0 "servers refuse this shape" ""
no "tp 0" 2 "--tp: found 0" "${base[@]}" --length 9 --tp 0
no "tp auto without a batch" 2 "--tp auto .*--batch" "${base[@]}" --length 9 --tp auto
no "more stages than layers" 2 "33 pipeline stages, expected at most 32" "${base[@]}" --length 9 --pp 33
no "ep without experts" 2 "--ep 2: the model has no experts" "${base[@]}" --length 9 --ep 2
no "unknown format" 2 'number format "f7"' "${base[@]}" --length 9 --kv f7
no "budget above the whole" 2 'budget: found "1.5"' "${base[@]}" --length 9 --budget 1.5
no "empty budget" 2 "--budget: .*0 tokens" "${base[@]}" --length 9 --budget 0
no "budget of another depth" 2 "--budget: found 2 numbers, .*opt-6.7b has 32" "${base[@]}" --length 9 --budget 4/5
no "headroom without a budget" 2 "--headroom .*--budget" "${base[@]}" --length 9 --headroom 4
no "unknown windows" 2 'windows: found "odd"' "${base[@]}" --length 9 --windows odd
no "util and reserve" 2 "--util and --reserve" "${base[@]}" --length 9 --util 0.9 --reserve 0.1
no "link of an unlinked board" 2 "--link: .*H100-SXM" --model opt-6.7b --gpu H100-SXM --gpus gpus.txt --length 9 --tp 2 --link
no "an empty word" 2 "--model: .*opt-6.7b,.* empty" --model opt-6.7b, --gpu L4 --length 9
no "a stray word" 2 '"here"' here "${base[@]}" --length 9
dsa() { # attention's format, bytes of a token, changes of the object c
    python -c 'import json
c = dict(model_type="glm_moe_dsa", num_hidden_layers=4, hidden_size=96, num_attention_heads=6, intermediate_size=160,
    vocab_size=131, max_position_embeddings=256, kv_lora_rank=32, q_lora_rank=40, qk_rope_head_dim=8, qk_nope_head_dim=16,
    v_head_dim=16, n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=24, n_shared_experts=1,
    first_k_dense_replace=1, index_head_dim=160, index_n_heads=3, index_topk=16)
'"$3"'
json.dump(c, open("dsa.json", "w"))'
    ask dsa.json L4 100 --kv "$1" --tp 2
    check "an index key of 160 + 2 scales in its layers, $1, $3: $2 bytes a token" "token == $2 and kv == $2 * 100"
}
dsa f16 $((4 * (40 * 2 + 168))) ""
dsa f16 $((4 * 40 * 2 + 2 * 168)) "c['index_topk_pattern'] = 'FSSF'"
dsa f8 $((4 * 40 + 2 * 168)) "c['indexer_types'] = ['full', 'shared', 'full', 'shared']"
dsa f8 $((4 * 40 + 2 * 168)) "c['index_topk_freq'] = 4"
no_dsa() { # change of the object c, the key that is refused
    python -c 'import json
c = json.load(open("dsa.json"))
'"$1"'
json.dump(c, open("odd.json", "w"))'
    no "config.json: $1" 1 "odd.json: key '$2'" --model odd.json --gpu L4 --length 9
}
no_dsa "c['index_topk_freq'] = -1" index_topk_freq
no_dsa "del c['index_topk_freq']; c['index_topk_pattern'] = 'FSX'" index_topk_pattern
no_dsa "c['indexer_types'] = ['full', 'odd']" indexer_types.1
no_dsa "c['indexer_types'] = ['full']" indexer_types.1
no_dsa "c['mlp_layer_types'] = ['sparse', 'dense', 'sparse', 'sparse']" mlp_layer_types.1
no_dsa "del c['index_n_heads']" index_n_heads
no_dsa "c['layer_types'] = ['full_attention'] * 4" layer_types.0
no_dsa "c['model_type'] = 'deepseek_v3'" index_topk
config() { # description, sentence, Python expression that changes the object c
    python -c 'import json, sys
c = json.load(open("config.json"))
'"$3"'
json.dump(c, open("odd.json", "w"))'
    no "config.json: $1" 1 "odd.json: $2" --model odd.json --gpu L4 --length 9
}
config "missing field" "key 'num_hidden_layers' is missing" "del c['num_hidden_layers']"
config "absurd field" "key 'num_hidden_layers': found -2, expected" "c['num_hidden_layers'] = -2"
config "a key that changes the answer" "key 'kv_lora_rank': found 512" "c['kv_lora_rank'] = 512"
config "an unknown kind of model" "key 'model_type': found \"rwkv9\"" "c['model_type'] = 'rwkv9'"
config "a state that does not grow" "key 'model_type': found \"falcon_mamba\", whose state does not grow" \
    "c['model_type'] = 'falcon_mamba'"
holds "a state that does not grow: nothing is hinted" test -z "$(grep hint: log/err)"
config "an encoder with a decoder" "key 'model_type': found \"whisper\", an encoder with a decoder" \
    "c['model_type'] = 'whisper'"
echo '{"model_type": ' >broken.json
no "config.json: not JSON" 1 "broken.json: line [0-9]+: not valid JSON" --model broken.json --gpu L4 --length 9
no "no such catalogue" 1 "nowhere.txt" "${base[@]}" --length 9 --gpus nowhere.txt
printf 'mine gb=1 gbps=1 f16=1\nother gb=1 gbps=1 f16=1\nMINE gb=2 gbps=1 f16=1\n' >twice.txt
no "catalogue: two rows of a name" 1 "twice.txt: line 3: MINE: found twice, before in twice.txt: line 1" "${base[@]}" \
    --length 9 --gpus twice.txt
echo 'mine gb=1 gbps=1 gb=2 f16=1' >twice.txt
no "catalogue: two values of a key" 1 "twice.txt: line 1: mine: gb: found twice" "${base[@]}" --length 9 \
    --gpus twice.txt
printf 'mine gb=1 gbps=1 f16=1\0 f16=2\n' >nul.txt
no "catalogue: a NUL byte" 1 "nul.txt: found a NUL byte, expected text" "${base[@]}" --length 9 --gpus nul.txt
seq -f 'g%.0f gb=1 gbps=1 f16=1' 5000 >many.txt
no "catalogue: more rows than can be compared" 1 "many.txt: found more than 4096 lines" "${base[@]}" --length 9 \
    --gpus many.txt
seq -f 'g%.0f gb=1 gbps=1 f16=1' 4096 >many.txt
no "catalogue: as many as can be" 2 "GPU \"nosuch\" is not known" --model opt-6.7b --gpu nosuch --length 9 \
    --gpus many.txt

# ---- adapters, a shared prefix ----

lora() { # what, bytes of an adapter on a GPU, arguments...
    run capacity --length 4096 -q --json --lora 1 "${@:3}"
    holds "$1" grep -q "\"lora_bytes_per_gpu\": $2," log/out
}
lora "an adapter has the numbers that PEFT counts" 41943040 --model llama-3.1-8b --gpu H100-SXM --lora-rank 8
lora "  and of another model" 40370176 --model qwen2.5-7b --gpu H100-SXM --lora-rank 8
lora "  one factor of two is on both GPUs, the rank is 16" $((2 * 16 * 32 * (4 * 4096 + 2 * 2048 + 2 * 512 + 3 * 4096 + 3 * 7168))) --model llama-3.1-8b --gpu H100-SXM --tp 2
run capacity --model llama-3.1-8b --gpu H100-SXM --length 4096 --lora 4000 --lora-rank 64 --json
holds "too many adapters are named" grep -q '"unfit_term": "adapters"' log/out
no "a rank of nothing" 2 "--lora-rank requires --lora" --model llama-3.1-8b --gpu H100-SXM --length 9 --lora-rank 8
no "adapters of latent attention" 2 "deepseek-v3 has layers with latent attention" --model deepseek-v3 --gpu B200 --length 9 --lora 1
run capacity --model llama-3.1-8b --gpu H100-SXM --length 4000 --shared-prefix 3008 --page 16 --engine vllm --json -q
cp log/out one
holds "no batch for lengths without a token after the prefix" python3 -c 'import json
d = json.load(open("log/out"))
r = d["results"][0] if "results" in d else d
assert [x["length"] for x in r["frontier"]][0] == 4096 and all(x["max_batch"] < 1 << 31 for x in r["frontier"])'
run simulate --model llama-3.1-8b --gpu H100-SXM --engine vllm --concurrency 1 --prompt 4000 --output 2 --requests 400 --prefix-tokens 3008 --prefix-cache all --json -q
holds "after the shared prefix: as a second request in simulate" python -c 'import json
one, two = json.load(open("one")), json.load(open("log/out"))["results"][0]
a = (one["results"][0] if "results" in one else one)["expected_time_to_first_token_after_prefix_s"]
assert abs(a / two["ttft_s"]["p50"] - 1) < 1e-3, (a, two["ttft_s"])'
run capacity --model gemma-3-27b --gpu H100-SXM --length 4000 --shared-prefix 3008 --engine vllm --json -q
holds "  not where windows drop the prefix" sh -c '! grep -q after_prefix log/out'

# ---- what does not fit ----

told() { # what, the least tp or nothing, arguments...
    run capacity "${@:3}" -q
    verdict "$1: ${2:-none} is named" "$([ $status = 0 ] || cat log/err
        found=$(sed -n 's/^It fits on [0-9]* GPUs: --tp \([0-9]*\)\.$/\1/p' log/out)
        [ "$found" = "$2" ] || echo "# found '$found'")"
    [ -z "$2" ] && return
    run capacity "${@:3}" --tp "$2" -q --json
    holds "  done so: it fits" grep -q '"fits": true' log/out
}
told "70B in 16 bits on one H100" 2 --model llama-3.1-70b --gpu H100-SXM --length 8192
told "405B" 16 --model llama-3.1-405b --gpu H100-SXM --length 8192
told "a batch" 4 --model llama-3.1-70b --gpu H100-SXM --length 8192 --batch 20
told "what fits" "" --model llama-3.1-8b --gpu H100-SXM --length 8192
told "what no group holds" "" --model llama-3.1-70b --gpu H100-SXM --length 8192 --batch 1000000

finish
