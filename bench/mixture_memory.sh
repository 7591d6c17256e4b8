#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Peak memory, pages of mapped files among it, of tracing mixtures of experts of a real model's shape (random_experts.py),
# and of decoding with one. gpt-oss-20b takes 14 GB of disk; of the others only routers and embeddings do.
#
#   bench/mixture_memory.sh ./shears /tmp/work [TOKENS]
set -euo pipefail
shears=$(realpath "$1") work=$2 tokens=${3:-64} here=$(dirname "$(realpath "$0")")
mkdir -p "$work"
python3 -c "print([(i * 7919 + 13) % 129280 for i in range($tokens)])" >"$work/tokens.jsonl"

peak() { # name, command...
    python3 - "$@" <<'P'
import json, resource, subprocess, sys, time
began = time.perf_counter()
done = subprocess.run(sys.argv[2:], capture_output=True, text=True)
took = time.perf_counter() - began
if done.returncode:
    raise SystemExit(done.stderr)
said = json.loads(done.stdout)
print(json.dumps({"run": sys.argv[1], "seconds": round(took, 1), "tokens_per_s": said.get("tokens_per_s"),
                  "peak_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10}))
P
}

for shape in gpt-oss-20b qwen3-30b-a3b deepseek-v3; do
    how=--holes only=
    [ $shape != gpt-oss-20b ] || how=
    [ $shape != deepseek-v3 ] || only="--layers 4-4 --memory 2G"     # of the last one attention alone is computed, so
                                                                    # one layer's experts (layer 3) run
    [ -f "$work/$shape/config.json" ] || python3 "$here/random_experts.py" "$work/$shape" $shape $how >&2
    rm -f "$work/trace.db"*
    peak "trace $shape" "$shears" trace -q --json --model "$work/$shape" --tokens "$work/tokens.jsonl" \
        --db "$work/trace.db" --record summary $only
done
rm -f "$work/trace.db"*
peak "generate gpt-oss-20b" "$shears" generate -q --json --model "$work/gpt-oss-20b" --tokens "$work/tokens.jsonl" \
    --max-tokens 16
