#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Experts in codes that a session copies as they are used, by each variant of the CPU backend: the perplexity is that of
# whole texts, whose experts are multiplied in f32 where the file is mapped.
. "$(dirname "$0")/lib.sh"

model=${SH_FIXTURES:-nowhere}/modern/gpt_oss_mxfp4
if [ ! -d "$model" ]; then skip "experts that are copied" "the shared fixtures are not here"; finish; exit; fi
python - "$model/config.json" >tokens.jsonl <<'P'
import json, sys
vocab = json.load(open(sys.argv[1]))["vocab_size"]
print(json.dumps([(i * i * 7919 + 13 * i) % vocab for i in range(200)]))
P
ppl() { run eval -q --json --model "$model" --tokens tokens.jsonl --policy full "$@"; [ "$status" = 0 ]; }
SH_KERNELS=base ppl || not_ok "whole texts"
cp log/out whole.out
for kernels in base avx2 avxvnni avx512 amx; do
    if ! SH_KERNELS=$kernels ppl --stream && grep -q "SH_KERNELS" log/err; then
        skip "$kernels" "this processor does not run it"
        continue
    fi
    holds "$kernels: 200 tokens one by one" python - whole.out <<'P'
import json, sys
whole, live = (json.load(open(f))["full_nll"] for f in (sys.argv[1], "log/out"))
assert abs(live - whole) < 2e-4 * whole and live != whole, (live, whole)
P
done
finish
