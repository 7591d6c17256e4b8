#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# capacity --engine shears: what this program itself holds, against the engine's own count of its cache and against
# what the system counts of the process.
. "$(dirname "$0")/lib.sh"

own() { run capacity --engine shears --length 40 --json "$@"; }

refuse "with a GPU" 2 "cannot be combined with --gpu" capacity --engine shears --model "$checkpoints/opt" --gpu L4 --length 40
refuse "with a format of weights" 2 "cannot be combined with --weights" \
    capacity --engine shears --model "$checkpoints/opt" --weights int4 --length 40
refuse "a model of the catalogue" 1 "opt-6.7b" capacity --engine shears --model opt-6.7b --length 40
refuse "two formats of the cache" 2 "found several values of --kv" \
    capacity --engine shears --model "$checkpoints/opt" --length 40 --kv f16,f32
refuse "without a length" 2 "requires --length" capacity --engine shears --model "$checkpoints/opt"

own --model "$checkpoints/opt"
expect "JSON: exit 0, nothing on stderr" 0 '"terms"' ""
holds "terms add up, and so do formats" python - <<'P'
import json
r = json.load(open("log/out"))
t = {x["term"].strip(): x["bytes"] for x in r["terms"]}
assert t["weights"] == t["mapped"] + t["copied"] == sum(w["bytes"] for w in r["weights"]), t
assert t["own memory"] == t["copied"] + t["cache"] + t["activations"], t
P
own --model "$checkpoints/opt" --batch 3
cp log/out three.json
holds "three sequences have three caches" python - <<'P'
import json
t = {x["term"].strip(): x["bytes"] for x in json.load(open("three.json"))["terms"]}
assert t["cache"] == 3 * t["cache per sequence"] > 0, t
P

python -c 'print([(7 * i + 3) % 120 for i in range(40)])' >tokens.jsonl
for case in "opt 32 f32" "llama_gqa 16 f16" "qwen2 16 f16"; do
    read -r name bits kv <<<"$case"
    run eval --model "$checkpoints/$name" --tokens tokens.jsonl --policy window --budget 12 --kv-bits "$bits" -q --json
    cp log/out engine.json
    own --model "$checkpoints/$name" --budget 12 --kv "$kv"
    holds "the cache of $name in $kv is what the engine counts" python - <<'P'
import json
engine = json.load(open("engine.json"))["results"][0]["kv_bytes"]
said, = [x["bytes"] for x in json.load(open("log/out"))["terms"] if x["term"].strip() == "cache per sequence"]
assert engine == said > 0, (engine, said)
P
done

find_numeric
what="what the process has of memory, by format"
if [ -n "${SH_SANITIZED-}" ]; then
    skip "$what" "sanitizers take memory of their own"
elif ! grep -q RssAnon /proc/self/status 2>/dev/null; then
    skip "$what" "the system does not tell a process's own memory from mapped files"
else
    for format in q4_0 q6_k f16; do
        "$numeric" "$SH_TOP/bench/random_gguf.py" $format 4x1024x16x2816x8192 $format.gguf >/dev/null
    done
    holds "$what" "$numeric" "$cli/own_memory.py" "$SHEARS" q4_0 q6_k f16
fi
finish
