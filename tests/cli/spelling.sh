#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Values and names in their usual spellings: 8k, 20%, fp8, 200ms, what nvidia-smi and hubs call GPUs and models, headings
# for --columns; and hints where a model or a text of another kind was given.
. "$(dirname "$0")/lib.sh"

opt=$checkpoints/opt
golden_tokens opt >tokens.jsonl
says() { # description, expression on the last line of stdout, arguments...
    local what=$1 wanted=$2
    run "${@:3}"
    verdict "$what" "$([ $status = 0 ] || sed 's/^/# /' log/err
        tail -n 1 log/out | grep -Eqe "$wanted" || { echo "# expected /$wanted/, found:"; sed 's/^/# /' log/out; })"
}
same_as() { # description, arguments with a word @, spelling, the same
    local what=$1 a b
    shift
    run "${@:1:$#-2}" "${@: -2:1}"
    a=$(cat log/out log/err) b=$status
    run "${@:1:$#-2}" "${@: -1}"
    verdict "$what: ${*: -2:1} is ${*: -1}" "$([ "$b $status" = "0 0" ] || echo "# exit $b and $status: $a"
        [ "$a" = "$(cat log/out log/err)" ] || echo "# the answers differ")"
}

# ---- numbers ----

ask=(capacity --model opt-6.7b --gpu T4 --json)
for pair in "8k 8192" "1.5k 1536" "1K 1024" "0.5M 524288"; do
    # shellcheck disable=SC2086
    same_as "a whole number" "${ask[@]}" --length $pair
done
for pair in "20% 0.2" "4k 4096" "1k+2k 3072" "100% 1.0" "0.5,1k,5% 0.5,1024,0.05"; do
    # shellcheck disable=SC2086
    run "${ask[@]}" --length 8k --budget ${pair#* } && sed 's/"budget".*//' log/out >other
    run "${ask[@]}" --length 8k --budget ${pair% *}
    verdict "a budget of capacity: ${pair% *}" "$([ $status = 0 ] || cat log/err; sed 's/"budget".*//' log/out | cmp - other)"
done
same_as "layers of a pyramid" capacity --model opt-6.7b --gpu T4 --length 8k -q --csv --columns max_batch --budget \
    pyramid:1k-2k pyramid:1024-2048
run trace --model "$opt" --tokens tokens.jsonl --db store.db --vectors qkv -q
replay=(replay --db store.db --policy h2o -q --csv --columns budget,kept_mass --budget)
same_as "a budget of replay" "${replay[@]}" 20%,50% 0.2,0.5
same_as "a span of budgets" "${replay[@]}" 10%..50%/5 0.1..0.5/5
same_as "a knob" replay --db store.db --budget 0.5 -q --csv --columns kept_mass --policy h2o:recent=0.0078125k h2o:recent=8
same_as "a fraction" "${ask[@]}" --length 1k --util 90% 0.9
same_as "split points" persistence --db store.db --json --split 25%,50% 0.25,0.5
for layers in 0-0.0009765625k 0.0009765625k; do
    run trace --model "$opt" --tokens tokens.jsonl --db layers.db -q --layers $layers --columns last_layer
    expect "a range of layers: $layers" 0 "^last layer recorded +1\$" ""
    rm layers.db
done
load=(simulate --model opt-6.7b --gpu T4 --json --rate 1 --requests 50)
same_as "lengths of prompts" "${load[@]}" --output 1k --prompt 1k-2k 1024-2048
same_as "a spread" "${load[@]}" --output 1k --prompt lognormal:0.5k:0.8 lognormal:512:0.8
same_as "a spread" "${load[@]}" --output 1k --prompt exp:0.5k exp:512
for pair in "500ms 0.5" "1s 1" "2min 120" "1500us 0.0015"; do
    # shellcheck disable=SC2086
    same_as "a time" "${load[@]}" --prompt 10 --output 5 --slo-ttft $pair
done
same_as "formats" "${ask[@]}" --length 1k --weights fp8 f8
same_as "formats" "${ask[@]}" --length 1k --kv FP16,bfloat16,int8+fp8,i4:group=32 f16,bf16,int8+f8,int4:group=32
for pair in "half f16" "float16 f16" "fp32 f32" "BF16 bf16"; do
    # shellcheck disable=SC2086
    same_as "operands" eval --model "$opt" --tokens tokens.jsonl --policy full -q --csv --columns ppl,dtype --count 1 --dtype $pair
done
refuse "half a token" 2 '--length: found "1.3k".*k is 1024' "${ask[@]}" --length 1.3k
refuse "no unit" 2 '--length: found "8q"' "${ask[@]}" --length 8q
refuse "a percentage of a count" 2 '--length: found "20%"' "${ask[@]}" --length 20%
refuse "more than all" 2 'budget.* "120%"' "${ask[@]}" --length 1k --budget 120%
refuse "a fraction above 1" 2 '--util: 1.2 is out of range' "${ask[@]}" --length 1k --util 120%
refuse "no time" 2 '--slo-ttft: found "1day", .*ms' "${load[@]}" --prompt 10 --output 5 --slo-ttft 1day

# ---- names ----

is() { says "GPU $1" "^  $2\$" capacity --model opt-125m --gpu "$1" --length 9 -q --columns gpu; }
while IFS='|' read -r name row; do is "$name" "$row"; done <<'BOARDS'
NVIDIA H100 80GB HBM3|H100-SXM
NVIDIA H100 PCIe|H100-PCIe
NVIDIA H100 NVL|H100-NVL
NVIDIA H200|H200-SXM
NVIDIA GH200 480GB|GH200-96GB
NVIDIA A100-SXM4-80GB|A100-SXM-80GB
NVIDIA A100-SXM4-40GB|A100-SXM-40GB
NVIDIA A100 80GB PCIe|A100-PCIe-80GB
NVIDIA A100-PCIE-40GB|A100-PCIe-40GB
Tesla V100-SXM2-16GB|V100-SXM2-16GB
Tesla V100-PCIE-16GB|V100-PCIe-16GB
Tesla T4|T4
NVIDIA A10|A10
NVIDIA L40S|L40S
NVIDIA RTX A6000|RTX-A6000
NVIDIA RTX 6000 Ada Generation|RTX-6000-Ada
NVIDIA RTX PRO 6000 Blackwell Server Edition|RTX-PRO-6000-Blackwell-Server
NVIDIA GeForce RTX 4090|RTX-4090
rtx4090|RTX-4090
4090|RTX-4090
NVIDIA B200|B200
AMD Instinct MI300X OAM|MI300X
a100 sxm 80gb|A100-SXM-80GB
BOARDS
refuse "several GPUs" 2 '"h100".*H100-PCIe, H100-SXM or H100-NVL' capacity --model opt-125m --gpu h100 --length 9
refuse "several by memory" 2 '"A100-80GB".*A100-SXM-80GB or A100-PCIe-80GB' capacity --model opt-125m --gpu A100-80GB --length 9
hinted() { # description, status, error, hint, arguments...
    refuse "$1" "$2" "$3" "${@:5}"
    holds "  and the hint" grep -Eqe "^hint: .*$4" log/err
}
for group in 2xH100-SXM "2 x H100-SXM" "2*H100-SXM"; do
    hinted "a group of GPUs: $group" 2 "GPU .* is not known" "--gpu H100-SXM --tp 2" capacity --model opt-125m --gpu "$group" \
        --length 9
done
hinted "a digit too many" 2 'GPU "H1000" is not known' 'H100-SXM' capacity --model opt-125m --gpu H1000 --length 9
hinted "--gpus with a number" 1 "2: cannot be opened" "--tp 2" capacity --model opt-125m --gpu T4 --length 9 --gpus 2
hinted "a fraction with a slash" 2 "--budget: found 2 numbers.* 1/5 is 0.2" "20%" capacity --model opt-125m --gpu T4 \
    --length 9 --budget 1/5
hinted "a perplexity in per cent" 2 '--target-ppl: found "1%", expected a number' "--target-ppl-increase 1%" plan --db store.db \
    --policy h2o --target-ppl 1%
same_as "an engine's name" capacity --model llama-3.1-8b --gpu H100-SXM --length 1k --json --engine vLLM vllm
refuse "words that say nothing" 2 '"nvidia gpu" is not known' capacity --model opt-125m --gpu "nvidia gpu" --length 9
while IFS='|' read -r name row; do
    says "model $name" "^  $row\$" capacity --model "$name" --gpu T4 --length 9 -q --columns model
done <<'MODELS'
meta-llama/Llama-3.1-8B-Instruct|llama-3.1-8b
meta-llama/Meta-Llama-3.1-70B|llama-3.1-70b
llama-3-1-70b|llama-3.1-70b
meta-llama/Llama-3.3-70B-Instruct|llama-3.3-70b
Llama-2-7b-chat-hf|llama-2-7b
facebook/opt-6.7b|opt-6.7b
mistralai/Mistral-7B-Instruct-v0.1|mistral-7b-v0.1
Qwen/Qwen3-0.6B|qwen3-0.6b
MODELS
refuse "a model that none is" 2 '"meta-llama/Llama-9" is not known' capacity --model meta-llama/Llama-9 --gpu T4 --length 9
mkdir gpt2 && cp "$opt/config.json" gpt2
says "a row's exact name comes before a folder's" "^  gpt2" capacity --model gpt2 --gpu T4 --length 9 -q --columns model,parameters
mkdir -p org/Opt-6.7b && cp "$opt/config.json" org/Opt-6.7b
says "a folder comes before a spelling" "^ +[0-9]{5,6}\$" capacity --model org/Opt-6.7b --gpu T4 --length 9 -q --columns parameters
echo "Mine-1B layers=2 hidden=64 heads=4 vocab=100 ffn=256" >mine.txt
says "a user's own row" "^  Mine-1B" capacity --model org/mine-1b-instruct --gpu T4 --length 9 -q --columns model \
    --models mine.txt

# ---- headings ----

run simulate --model opt-6.7b --gpu T4 --rate 1 --prompt 10 --output 5 --requests 200 -q
heading=$(grep -oe 'TTFT p50, [µmns]*' log/out)
run simulate --model opt-6.7b --gpu T4 --rate 1 --prompt 10 --output 5 --requests 200 -q --columns "cache,$heading,tpot p99,KV in use"
expect "headings of a table, with and without their unit" 0 "^  cache +$heading +TPOT p99, .* +KV in use\$" ""
run simulate --model opt-6.7b --gpu T4 --rate 1 --prompt 10 --output 5 --requests 200 -q --columns "cache, $heading,tokens/s" --csv
expect "they are CSV's names there" 0 "^plan,ttft_s.p50,throughput_tokens_per_s\$" ""
run capacity --model opt-6.7b --gpu T4,L4 --length 2k -q
headings=$(sed -n 2p log/out | sed -e 's/^ *//' -e 's/  \+/,/g')
run capacity --model opt-6.7b --gpu T4,L4 --length 2k -q --columns "$headings"
verdict "all headings of capacity's table: $headings" "$([ $status = 0 ] || cat log/err
    [ "$(sed -n 2p log/out | sed -e 's/^ *//' -e 's/  \+/,/g')" = "$headings" ] || cat log/out)"
run replay --db store.db --policy h2o --budget 0.5 -q --columns "Policy,kept mass"
expect "headings of replay" 0 "^  policy +kept mass\$" ""

long="h2o:recent=4 h2o:recent=4,sinks=1,gamma=0.98 scissorhands:recent=4,window=200,drop=0.25,counts=rate,threshold=t"
opt_text="--model $opt --tokens tokens.jsonl"
for command in "replay --policy $long scissorhands-released oracle --budget 0.5" persistence "eval $opt_text --policy $long --budget 0.5" \
    "eval $opt_text --policy $long --budget 0.5 --kv-bits 4 --kv-group 8 --by position" "drift --model $opt --policy $long --budget 0.5"; do
    # shellcheck disable=SC2086
    run $command --db store.db -q
    holds "${command%% *}: its tables fit a terminal" awk 'length > 120 {print; bad = 1} END {exit bad || !NR}' log/out
done
for list in families models gpus policies; do
    run info $list
    holds "info $list: its tables fit a terminal" awk 'length > 120 {print; bad = 1} END {exit bad || NR < 10}' log/out
done
run info models --columns model,weights
expect "  a format is shown whole if its column is named" 0 "^  kimi-k2.5 +int4:group=32:scale=16:zero=0\$" ""
run replay --policy $long --db store.db -q --budget 0.5
expect "a policy is named with the knobs that were set" 0 "^  h2o:recent=4 +0.500 " ""
holds "  a long name goes on in a line of its own" grep -q "^    drop=0.25,window=200," log/out
run replay --policy $long --db store.db -q --budget 0.5 --columns policy,knobs,budget_tokens
expect "  named columns show what they hold" 0 "^  h2o +sinks=0,recent=4,score=sum,gamma=0.99 +[0-9.]+\$" ""
run replay --policy $long --db store.db -q --budget 0.5 --csv
expect "  and --csv has all of them" 0 "^policy,knobs,allocator,budget,budget_tokens,output_error,.*,kept_mass,.*,stability,peak_tokens,mean_tokens,resident_bytes" ""

# ---- a model's files ----

run info "$opt"
cp log/out whole.txt
run eval -q --model "$opt" --tokens tokens.jsonl --policy window --budget 0.5 --csv --columns ppl,kl
cp log/out evaluated.csv
cp -r "$opt" here && cp "$tokenizer"/{vocab.json,merges.txt,special_tokens_map.json,tokenizer_config.json} here
echo 'a b c' >abc.txt
for file in config.json model.safetensors; do
    run info "$opt/$file"
    holds "info: $file stands for its folder" diff whole.txt log/out
    run eval -q --model "$opt/$file" --tokens tokens.jsonl --policy window --budget 0.5 --csv --columns ppl,kl
    holds "eval: $file, too" diff evaluated.csv log/out
    run trace -q --model "$opt/$file" --tokens tokens.jsonl --db "file-$file.db" --columns model
    expect "trace: $file, too" 0 "^model +opt$" ""
    run trace -q --model "here/$file" --text abc.txt --db text.db
    expect "  with the folder's tokenizer" 1 "" "^shears: here/$file: the tokenizer has 561"
    run capacity -q --model "$opt/$file" --gpu T4 --length 9 --columns model
    expect "capacity: $file, too" 0 "^  opt" ""
done
cp here/model.safetensors . && cp here/config.json .
(cd here && "$SHEARS" info model.safetensors) >log/out 2>&1
holds "a file in the current folder" diff <(sed 's/^model .*//' whole.txt) <(sed 's/^model .*//' log/out)
rm model.safetensors config.json

# ---- what was meant ----

trace=(trace --db out/x.db -q)
mkdir lora && echo '{"peft_type": "LORA"}' >lora/adapter_config.json && touch lora/adapter_model.safetensors
hinted "a LoRA folder" 1 "lora: .*adapter_config.json" 'merge_and_unload\(\)' "${trace[@]}" --model lora --tokens tokens.jsonl
hinted "a hub's name" 1 "org-x/Some-Model: " 'hf download org-x/Some-Model --local-dir' "${trace[@]}" --model org-x/Some-Model \
    --tokens tokens.jsonl
hinted "a hub's name without an owner" 1 "distilgpt2: " 'hf download distilgpt2 --local-dir' "${trace[@]}" --model distilgpt2 \
    --tokens tokens.jsonl
for path in nowhere/at/all ./gone gone.json; do
    refuse "a path is no hub's name: $path" 1 "$path: " "${trace[@]}" --model $path --tokens tokens.jsonl
    holds "  and gets no such hint" sh -c '! grep -q "hf download" log/err'
done
python "$cli/checkpoint.py" random words vocab_size=561 max_position_embeddings=64
cp "$tokenizer"/{vocab.json,merges.txt,special_tokens_map.json,tokenizer_config.json} words
trace+=(--random-weights)
for words in "plain words" "и слова на русском языке"; do
    for kind in utf-16 utf-32 utf-16-le utf-16-be utf-32-le utf-32-be; do
        name=$(tr a-z A-Z <<<"$kind" | sed 's/-\([LB]E\)/\1/')
        printf '%s' "$words" | python -c 'import sys
sys.stdout.buffer.write(sys.stdin.buffer.read().decode().encode(sys.argv[1]))' $kind >wide.txt
        hinted "a text in $kind" 1 "wide.txt: .*is $name," "iconv -f $name " "${trace[@]}" --model words --text wide.txt
        verdict "  done so" "$(iconv -f $name -t UTF-8 wide.txt >back.txt && [ "$(cat back.txt)" = "$words" ] || cat back.txt)"
    done
done
printf '{"text": "plain"}\n' | python -c 'import sys; sys.stdout.buffer.write(sys.stdin.read().encode("utf-16"))' >utf16.jsonl
hinted "documents in UTF-16" 1 "utf16.jsonl: line 1" 'iconv -f UTF-16 ' "${trace[@]}" --model words --jsonl utf16.jsonl
printf '{"text": "plain"}\n' | python -c 'import sys; sys.stdout.buffer.write(sys.stdin.read().encode("utf-32-le"))' >utf32.jsonl
hinted "documents in UTF-32" 1 "utf32.jsonl: line 1" 'iconv -f UTF-32LE' "${trace[@]}" --model words --jsonl utf32.jsonl

# ---- what is not part of a text, and texts from standard input ----

echo 'some plain words, once and again some words' >plain.txt
python -c 'import json
for line in open("plain.txt"): print(json.dumps({"text": line}))' >plain.jsonl
golden_tokens opt >plain.ids
cat >same.py <<'P'
import sqlite3
a, b, c = (sqlite3.connect(f).execute("SELECT source, tokens FROM sequence ORDER BY id").fetchall() for f in ("a.db", "b.db", "c.db"))
assert [t for _, t in a] == [t for _, t in b] == [t for _, t in c], (a, b, c)
assert all(s.startswith("stdin:") for s, _ in c), c[0][0]
P
for option in text jsonl tokens; do
    file=plain.$(case $option in text) echo txt ;; tokens) echo ids ;; *) echo jsonl ;; esac)
    printf '\xef\xbb\xbf' | cat - "$file" >marked
    rm -f a.db b.db c.db
    run trace -q --random-weights --length 64 --model words --db a.db --$option "$file"
    run trace -q --random-weights --length 64 --model words --db b.db --$option marked
    expect "--$option: what has UTF-8's mark is traced" 0 "^sequences" ""
    "$SHEARS" trace -q --random-weights --length 64 --model words --db c.db --$option - <"$file" >log/out 2>log/err
    status=$?
    expect "--$option -: standard input is traced" 0 "^sequences" ""
    holds "  the tokens are the same" python same.py
done
"$SHEARS" eval -q --model "$opt" --tokens - --policy window --budget 0.5 --columns ppl --csv <plain.ids >log/in 2>&1
run eval -q --model "$opt" --tokens plain.ids --policy window --budget 0.5 --columns ppl --csv
holds "eval --tokens -: as from a file" cmp log/in log/out
"$SHEARS" "${trace[@]}" --model words --text - </dev/null >log/out 2>log/err
status=$?
expect "an empty input" 1 "" "^shears: stdin: found no text"
find_numeric
"$numeric" -c 'import numpy as np
a = np.random.default_rng(1).random((2, 6, 6)).astype(np.float32)
np.save("vit.npy", a / a.sum(-1, keepdims=True))'
"$numeric" -c 'import numpy as np
np.savez("vit.npz", a=np.load("vit.npy"))'
hinted "an archive of arrays" 1 "vit.npz: .*\.npz.*expected .*\.npy" 'python3 -m zipfile -e vit.npz FOLDER' \
    import --db out/vit.db --attention vit.npz -q
mkdir unpacked && "$numeric" -m zipfile -e vit.npz unpacked
run import --db npz.db --attention unpacked/*.npy -q --kind bidirectional
expect "  done so" 0 "^tokens +6" ""
hinted "a ViT's rows" 1 "vit.npy: .*sum to" '--kind bidirectional' import --db out/vit.db --attention vit.npy -q
run import --db out/vit.db --attention vit.npy -q --kind bidirectional
expect "  done so" 0 "^attention +bidirectional|^tokens +6" ""
finish
