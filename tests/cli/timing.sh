#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --timing: the stages that a command goes through, and no others, with seconds that fit into the run.
. "$(dirname "$0")/lib.sh"

for i in 0 1 2 3; do
    python3 -c "print([(7 * k * k + $i * 13 + k) % 90 + 1 for k in range(60)])"
done >tokens.jsonl

# The stages of log/out are those named; each took time. On one thread of the host, those that the command goes through
# one after another, all but the writer's, fit into its run.
stages() { # stages in order, with commas
    python3 - "$1" "${backend-cpu}" <<'P'
import json, sys
timing = json.load(open("log/out"))["timing"]
names = [row["stage"] for row in timing]
assert names == sys.argv[1].split(",") + ["run"], names
run = timing[-1]["seconds"]
assert timing[-1]["share"] == 1 and run > 0, timing[-1]
for row in timing:
    assert row["seconds"] > 0, row
    assert abs(row["share"] - row["seconds"] / run) < 1e-9, row
inside = sum(row["seconds"] for row in timing[:-1] if row["stage"] != "writer")
assert sys.argv[2] != "cpu" or inside <= run * 1.001, (inside, run)
P
}
timed() { # description, stages, arguments
    local what=$1 wanted=$2
    shift 2
    run "$@" --timing --json -q --threads "${threads-1}" --backend "${backend-cpu}"
    expect "$what" 0 '"timing"' ""
    holds "$what: its stages" stages "$wanted"
}

for level in full sparse summary; do
    case $level in
    full) wanted=products,attention,softmax_packing,copy,compression,writer,tokens ;;
    *) wanted=products,attention,softmax_packing,copy,statistics,compression,writer,tokens ;;
    esac
    timed "trace, $level" $wanted trace --model "$checkpoints/opt" --tokens tokens.jsonl --record $level --db $level.db
done
threads=2 timed "trace, two threads" products,attention,softmax_packing,copy,statistics,compression,writer,tokens \
    trace --model "$checkpoints/llama_gqa" --tokens tokens.jsonl --record full --alpha 3/t --vectors qkv --db two.db
live=products,attention,softmax_packing,copy
timed "eval" $live,statistics,tokens,eviction eval --model "$checkpoints/opt" --tokens tokens.jsonl --policy h2o --budget 9
timed "generate, a budget" $live,tokens,eviction \
    generate --model "$checkpoints/llama_gqa" --tokens tokens.jsonl --max-tokens 9 --policy h2o --budget 20
timed "generate, token by token" $live,tokens,eviction \
    generate --model "$checkpoints/opt" --tokens tokens.jsonl --max-tokens 9 --prefill-mode stream --policy window --budget 20

# On the emulated device: events, and those that a graph of decoding steps records.
modules=$(dirname "$SHEARS")/tests/emu/modules
if [ -e "$modules/cuda.so" ]; then
    export SH_MODULE_DIR=$modules
    backend=cuda timed "trace on a device" products,attention,softmax_packing,copy,compression,writer,tokens \
        trace --model "$checkpoints/opt" --tokens tokens.jsonl --db device.db
    backend=cuda timed "trace on a device, summary" \
        products,attention,softmax_packing,copy,statistics,compression,writer,tokens \
        trace --model "$checkpoints/opt" --tokens tokens.jsonl --record summary --db device-summary.db
    backend=cuda timed "generate on a device" $live,tokens,eviction \
        generate --model "$checkpoints/llama_gqa" --tokens tokens.jsonl --max-tokens 9 --policy h2o --budget 20
    attention() { python3 -c 'import json
print(next(r["seconds"] for r in json.load(open("log/out"))["timing"] if r["stage"] == "attention"))'; }
    decoded() { # tokens: seconds of attention in steps of one token, of which all but two run as graphs
        run generate --model "$checkpoints/opt" --tokens tokens.jsonl --max-tokens "$1" --policy h2o --budget 40 --timing \
            --json -q --backend cuda
        attention
    }
    few=$(decoded 3) many=$(decoded 60)
    holds "generate on a device: what runs as a graph counts" python3 -c "assert $many > 3 * $few, ($few, $many)"
    export SH_MODULE_DIR=$work/nothing
else
    skip "on a device" "there is no emulated module (no C++ compiler)"
fi

run trace --model "$checkpoints/opt" --tokens tokens.jsonl --db without.db --json -q
holds "without --timing there is none" sh -c '! grep -q timing log/out'
run generate --model "$checkpoints/opt" --tokens tokens.jsonl --max-tokens 9 --timing -q
expect "generate: the text goes to stdout, the table to stderr" 0 '^[0-9 ]+$' '^ +products +[0-9.]+ +[0-9.]+$'
run trace --model "$checkpoints/opt" --tokens tokens.jsonl --db table.db -q --timing
expect "trace: a table" 0 '^ +run +[0-9.]+ +1.0000$' ""
finish
