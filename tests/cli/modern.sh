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
mkdir tokens texts log/said
found=()
for name in $folders; do
    folder=$SH_GOLDEN/checkpoints/modern/$name
    [ -d "$folder" ] || folder=${SH_FIXTURES:-nowhere}/modern/$name
    if [ -f "$folder/ref.json" ]; then found+=("$folder"); else skip "$name" "the shared fixtures are not here"; fi
done
python - "${found[@]}" <<'P'
import json, os, sys
for folder in sys.argv[1:]:
    with open("tokens/" + os.path.basename(folder), "w") as f:
        json.dump(json.load(open(folder + "/ref.json"))["sequences"][0]["tokens"], f)
        f.write("\n")
P
# Where little time is given (SH_TEST_FULL), what depends least on a family is left out.
for folder in "${found[@]}"; do
    said=log/said/$(basename "$folder") tokens=tokens/$(basename "$folder")
    step() { run "$@"; [ "$status" = 0 ] || { echo "# $1: exit status $status"; sed 's/^/# /' log/err; } >>"$said"; }
    rm -f out/*
    touch "$said"
    step trace -q --model "$folder" --tokens "$tokens" --db out/one.db
    step eval -q --model "$folder" --tokens "$tokens" --policy h2o --budget 12
    if [ -n "${SH_TEST_FULL-1}" ]; then
        step verify -q out/one.db
        step capacity -q --model "$folder" --gpu "NVIDIA H100 80GB HBM3" --length 128
    fi
    step generate -q --json --model "$folder" --tokens "$tokens" --max-tokens 8
    cp log/out "texts/$(basename "$folder")"
done
python - "${found[@]}" <<'P'
import json, os, sys
for folder in sys.argv[1:]:
    name = os.path.basename(folder)
    want = json.load(open(folder + "/ref.json"))["sequences"][0].get("greedy")
    text = open("texts/" + name).read()
    found = [i["id"] for i in json.loads(text)["ids"]] if text else None
    if want and found != want[:8]:
        print("# greedy:", found, "expected", want[:8], file=open("log/said/" + name, "a"))
P
for folder in "${found[@]}"; do
    verdict "$(basename "$folder")" "$(cat "log/said/$(basename "$folder")")"
done
finish
