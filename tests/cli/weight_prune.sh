#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --weight-prune: attention, logits and continuations of models whose layers' matrices were pruned by magnitude are
# those of transformers with weights pruned alike (tests/oracle/weight_prune.py); what runs and results say of it.
. "$(dirname "$0")/lib.sh"

golden=$SH_GOLDEN/weight_prune

# Every number against a tensor of a golden file: a store's scores, or a file of logits.
against() { # store or .npy, golden file, tensor
    python - "$@" <<'P'
import array, struct, sys
from scores import *
ours, path, name = sys.argv[1:4]
shape, golden = read_safetensors(path)[name]
if ours.endswith(".npy"):
    raw = open(ours, "rb").read()
    found = array.array("f", raw[10 + struct.unpack("<H", raw[8:10])[0]:])
    assert len(found) == len(golden), (len(found), len(golden))
    worst = max(abs(x - y) for x, y in zip(found, golden))
else:
    layers, heads, n, _ = shape
    worst = 0
    for layer in range(layers):
        for h in range(heads):
            square, at = head(ours, 0, layer, h), (layer * heads + h) * n * n
            assert len(square) == n, (len(square), n)
            worst = max(worst, max(abs(square[q][k] - golden[at + q * n + k]) for q in range(n) for k in range(n)))
assert worst <= 5e-5, f"worst difference {worst}"
P
}
same_ids() { # checkpoint, key
    python - "$golden/changes.json" "$@" <<'P'
import json, sys
wanted = json.load(open(sys.argv[1]))[sys.argv[2]][sys.argv[3]]["made"]
mine = [i["id"] for i in json.load(open("log/out"))["ids"]]
assert mine == wanted, (mine, wanted)
P
}

# opt_bf16 has ties at the edge, gpt2 three matrices in one tensor.
for name in gpt2 llama_gqa opt opt_bf16; do
    python - "$golden/changes.json" $name <<'P'
import json, sys
said = json.load(open(sys.argv[1]))[sys.argv[2]]
print(said["tokens"], file=open(f"{sys.argv[2]}.jsonl", "w"))
print(said["p30"]["prompt"], file=open(f"{sys.argv[2]}.prompt", "w"))
P
    for share in 30 65; do
        given=(--model "$checkpoints/$name" --weight-prune 0.$share -q --json)
        run trace "${given[@]}" --tokens $name.jsonl --db out/$name.$share.db --codec f32
        expect "$name: the run says that 0.$share are pruned" 0 "\"weights\": \"pruned:0.${share%0}\"" ""
        holds "$name, 0.$share: scores are transformers' within 5e-5" \
            against out/$name.$share.db "$golden/$name.safetensors" p$share.attn
        run eval "${given[@]}" --tokens $name.jsonl --policy window --budget 1.0 --logits out/$name.$share.npy
        holds "$name, 0.$share: logits of eval are transformers' within 5e-5" \
            against out/$name.$share.npy "$golden/$name.safetensors" p$share.logits
        run generate "${given[@]}" --tokens $name.prompt --max-tokens 12
        holds "$name, 0.$share: generate goes on as transformers does" same_ids $name p$share
    done
done

# ---- what results say ----

given=(--model "$checkpoints/opt" --tokens opt.jsonl -q --json --db out/e.db --policy window --budget 0.5)
run eval "${given[@]}"
run eval "${given[@]}" --weight-prune 0.3
expect "eval says it" 0 '"weight_prune": 0.3' ""
run eval "${given[@]}" --weight-prune 0.3 --weight-bits 4
holds "three results: whole, pruned, pruned and in 4 bits; the pruned ones name the whole weights" python - <<'P'
import json
from scores import *
said = [json.loads(s) for s, in query("out/e.db", "SELECT DISTINCT settings FROM result WHERE command = 'eval' ORDER BY 1")]
said = [s for s in said if s["policy"] == "window"]
whole, = [s for s in said if "weight_prune" not in s]
pruned = [s for s in said if "weight_prune" in s]
assert sorted(s["weight_bits"] for s in pruned) == [4, 16], pruned
assert all(s["weight_prune"] == 0.3 and s["unpruned"] == whole["model"] != s["model"] for s in pruned), said
P
run trace --model "$checkpoints/opt" --tokens opt.jsonl --db out/two.db -q
run trace --model "$checkpoints/opt" --tokens opt.jsonl --db out/two.db -q --weight-prune 0.3
run trace --model "$checkpoints/opt" --tokens opt.jsonl --db out/two.db -q --weight-prune 0.3
run trace --model "$checkpoints/opt" --tokens opt.jsonl --db out/two.db -q --weight-prune 0.3 --random-weights
holds "pruned runs are other runs, the same share the same one" python - <<'P'
from scores import *
found = [w for w, in query("out/two.db", "SELECT m.weights FROM run r JOIN model m ON m.id = r.model ORDER BY r.id")]
assert found == ["checkpoint", "pruned:0.3", "random:0,pruned:0.3"], found
P

rm -rf out && mkdir out
for bad in 1 -0.1 x ""; do
    refuse "--weight-prune '$bad' is refused" 2 "weight-prune" trace --model "$checkpoints/opt" --tokens opt.jsonl \
        --db out/bad.db --weight-prune="$bad"
done
finish
