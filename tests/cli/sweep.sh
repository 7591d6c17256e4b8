#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# eval reads whole texts layer by layer; --stream reads them token by token through a cache for all layers. Both keep the
# same tokens and find the same likelihoods, for every kind of layer, cache and policy; cells that share work give what
# they give alone; and a plan's budgets are its own.
. "$(dirname "$0")/lib.sh"

cat >compare.py <<'P'
"""Two folders of one evaluation's files: the kept sets are equal line by line, and figures within a rounding."""
import json, sys
a, b = sys.argv[1:3]
kept = [sorted(open(f"{d}/kept.jsonl")) for d in (a, b)]
assert len(kept[0]) > 100 and len(kept[0]) == len(kept[1]), [len(k) for k in kept]
other = sum(x != y for x, y in zip(*kept))
assert other == 0, f"{other} of {len(kept[0])} kept sets differ"
x, y = (json.load(open(f"{d}/out.json")) for d in (a, b))
assert x["stream"] == "layer by layer" and y["stream"] == "token by token"
for p, q in zip(x["results"], y["results"], strict=True):
    for key in "nll", "nll_change", "kl":
        assert abs(p[key] - q[key]) <= 1e-5 * max(1, abs(q[key])), (key, p[key], q[key])
    for key in "tokens", "budget_tokens", "peak_tokens", "kv_bytes", "kv_bits", "budget":
        assert p[key] == q[key], (key, p[key], q[key])
    assert p["kl"] > 0
P
python3 -c 'for i in range(2): print([(7 * i + 3 * j * j + i * j) % 61 for j in range(44 + i)])' >texts.jsonl

both_ways() { # model, options of eval
    local model=$1 way
    shift
    rm -rf sweep stream && mkdir sweep stream
    for way in sweep stream; do
        run eval -q --model "$checkpoints/$model" --tokens texts.jsonl "$@" --json --dump-kept $way/kept.jsonl \
            $([ $way = sweep ] || echo --stream)
        [ $status = 0 ] || { not_ok "$model $*"; sed 's/^/# /' log/err; return; }
        cp log/out $way/out.json
    done
    holds "$model $*" python3 compare.py sweep stream
}

for model in opt llama_gqa mistral gemma2 gemma3 qwen2_window bloom gpt_neox gpt_neo phi3_longrope llama_dynamic_rope; do
    both_ways $model --policy h2o:recent=3 --budget 14
done
both_ways modern/sinks --policy h2o:recent=3 --budget 9
for policy in window streaming random tova roco:recent=3 scissorhands:window=12,recent=3,drop=4 caote keydiff; do
    both_ways llama_gqa --policy $policy --budget 14
    both_ways gemma2 --policy $policy --budget 14 --prefill 18
done
for bits in 16 8 4; do
    both_ways llama_gqa --policy h2o:recent=3 --budget 14 --kv-bits $bits --kv-group 8
    both_ways mistral --policy tova --budget 14 --kv-bits $bits --kv-group 8 --threads 1
done
both_ways llama_gqa --policy h2o:recent=3 --budget 14 --kv-bits 4 --kv-group 8 --kv-keys channel --kv-residual 4
both_ways llama_gqa --policy snapkv:recent=4 --budget 14 --prefill 20
both_ways opt --policy h2o:recent=3 --budget 14 --threads 2
for policy in h2o:recent=3 window scissorhands:window=12,recent=3,drop=4; do
    both_ways llama_gqa --policy $policy --budget 14 --prefill 30 --prefill-block 8
    both_ways gemma2 --policy $policy --budget 17 --prefill 60 --prefill-block 7
done
both_ways opt --policy snapkv:recent=4 --budget 14 --prefill 20 --prefill-block 8
refuse "blocks need a prompt" 2 "--prefill-block .*--prefill" eval --model "$checkpoints/opt" --tokens texts.jsonl \
    --policy h2o --budget 14 --prefill-block 8

# ---- cells together, and alone ----

eval=(eval -q --model "$checkpoints/llama_gqa" --tokens texts.jsonl --json)
same_rows() { # the first has the rows of the others, in order
    python3 - "$@" <<'P'
import json, sys
rows = [json.load(open(f))["results"] for f in sys.argv[1:]]
alone = [r for f in rows[1:] for r in f]
assert len(rows[0]) == len(alone) > 1
for p, q in zip(rows[0], alone):
    for key in q:
        assert key == "tokens_per_s" or p[key] == q[key], (q["policy"], key, p[key], q[key])
P
}
run "${eval[@]}" --policy full h2o:recent=3 tova --budget 14,44,60,1.0
cp log/out all.json
for policy in full h2o:recent=3 tova; do
    run "${eval[@]}" --policy $policy --budget 14,44,60,1.0
    cp log/out "one-${policy%%:*}.json"
done
holds "cells that share work have the figures that they have alone" same_rows all.json one-full.json one-h2o.json one-tova.json
zero() {
    python3 -c 'import json
rows = json.load(open("all.json"))["results"]
whole = [r for r in rows if r["policy"] != "full" and r["budget"] in (60, 1.0)]
assert len(whole) == 4 and all(r["kl"] == 0 and r["nll_change"] == 0 for r in whole), whole
assert all(r["kl"] > 0 for r in rows if r["budget"] == 14 and r["policy"] != "full")'
}
holds "a cache that keeps all tokens is the full cache" zero
finish
