#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The newer families' checkpoints, end to end: each is traced and its store verified, read under
# a budget, continued as PyTorch continued it, and counted from its config.json.
. "$(dirname "$0")/lib.sh"

run info families --json
holds "info families: more than fifty families run" python - <<'P'
import json
families = json.load(open("log/out"))["families"]
assert sum(f["runs"] for f in families) >= 50, len(families)
P
run info families --columns family,model_types,formats
expect "  named columns" 0 "^  mixtral +mixtral +hub coded GGUF\$" ""

for name in minimax zamba2; do
    run info --model "$SH_GOLDEN/checkpoints/modern/$name" --json
    holds "info --model $name: shared weights once, a cache in layers that attend" python - <<'P'
import json
said = json.load(open("log/out"))
assert said["weights_bytes"] == 4 * said["parameters"], said
attend = {"minimax": 2, "zamba2": 3}[said["family"]]
assert said["kv_bytes_per_token_f16"] == 2 * 2 * attend * said["kv_heads"] * said["head_dim"], said
P
done

folders=$(sed -n 's/#define MODERN.*//; s/X(\([a-z0-9_]*\), *\([a-z0-9_]*\))/\n\2\n/gp' "$SH_TOP/tests/unit/modern.h" |
    grep -E '^[a-z0-9_]+$')
[ -n "$folders" ] || not_ok "the folders of tests/unit/modern.h"
for name in $folders; do
    folder=$SH_GOLDEN/checkpoints/modern/$name
    [ -d "$folder" ] || folder=${SH_FIXTURES:-nowhere}/modern/$name
    if [ ! -f "$folder/ref.json" ]; then skip "$name" "the shared fixtures are not here"; continue; fi
    python - "$folder" >tokens.jsonl <<'P'
import json, sys
print(json.dumps(json.load(open(sys.argv[1] + "/ref.json"))["sequences"][0]["tokens"]))
P
    faults=
    step() { run "$@"; [ "$status" = 0 ] || { echo "# $1: exit status $status"; sed 's/^/# /' log/err; faults=1; }; }
    rm -f out/*
    step trace -q --model "$folder" --tokens tokens.jsonl --db out/one.db
    step verify -q out/one.db
    step eval -q --model "$folder" --tokens tokens.jsonl --policy h2o --budget 12
    step capacity -q --model "$folder" --gpu "NVIDIA H100 80GB HBM3" --length 128
    step generate -q --json --model "$folder" --tokens tokens.jsonl --max-tokens 8
    python - "$folder" <<'P' || faults=1
import json, sys
want = json.load(open(sys.argv[1] + "/ref.json"))["sequences"][0].get("greedy")
found = [i["id"] for i in json.load(open("log/out"))["ids"]]
if want and found != want[:8]:
    print("# greedy:", found, "expected", want[:8])
    sys.exit(1)
P
    if [ -z "$faults" ]; then ok "$name"; else not_ok "$name"; fi
done
finish
