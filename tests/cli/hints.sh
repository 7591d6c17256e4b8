#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What hints say can be done: every option that a hint names is one of the command it speaks of, and what it advises,
# done as it stands, goes on from the error.
. "$(dirname "$0")/lib.sh"
command -v sqlite3 >/dev/null || { echo "1..0 # SKIP sqlite3 is not here"; exit 0; }

golden_tokens opt >tokens.jsonl
model=$checkpoints/opt
fast=(--model "$model" --tokens tokens.jsonl -q)

# The options that a hint names and the command which it speaks of lacks: that of the words "shears COMMAND" before
# them or of a clause that begins with "trace", else the command that failed.
foreign_options() { # command, hint
    python - "$1" "$2" "$SHEARS" <<'P'
import re, subprocess, sys
failed, hint, program = sys.argv[1:]
commands = subprocess.run([program, "--help"], capture_output=True, text=True).stdout.split()
for clause in re.split(r"; |, or |: ", hint):
    said = re.findall(r"shears ([a-z]+)", clause) or re.findall(r"^(trace) ", clause) or [failed]
    for command in said:
        command = command if command in commands else ""
        known = subprocess.run([program] + [command] * (command != "") + ["--help"], capture_output=True, text=True).stdout
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", clause):
            if not re.search(re.escape(option) + r"(?![\w-])", known):
                print(f"# {command} has no {option}: {hint}")
P
}

# A command fails with a hint like this, left in $hint, whose options are there.
hinted() { # description, expression, arguments...
    local what=$1 wanted=$2
    shift 2
    run "$@"
    hint=$(sed -n 's/^hint: //p' log/err)
    verdict "$what: $(cut -c1-50 <<<"$hint")" "$(
        [ $status != 0 ] || echo "# it did not fail"
        grep -Eqe "$wanted" <<<"$hint" || { echo "# expected the hint /$wanted/, found:"; sed 's/^/#   /' log/err; }
        foreign_options "$1" "$hint"
    )"
}

done_so() { # description, arguments...
    local what=$1
    shift
    run "$@"
    verdict "  done so: $what" "$([ $status = 0 ] || sed 's/^/# /' log/err)"
}

# The hint's own command, with the words that stand for something replaced: sed expressions.
done_as_said() { # sed expression
    local line
    line=$(grep -oe 'shears .*' <<<"$hint" | sed -e 's/^shears //' -e "s|--model DIR|--model $model|" \
        -e 's|--text FILE|--tokens tokens.jsonl|' -e "$1")
    # shellcheck disable=SC2086
    done_so "$line" $line -q
}

# ---- which run ----

run trace "${fast[@]}" --db two.db
run trace "${fast[@]}" --db two.db --random-weights
policy=(--policy h2o:recent=3 --budget 0.5)
of_runs() { # command, arguments...
    hinted "$1, runs of two models" '--run N; shears info two.db lists them' "$@" --db two.db
    done_so "--run 1" "$@" --db two.db --run 1 -q
}
of_runs persistence
of_runs replay "${policy[@]}"
of_runs plan "${policy[@]}" -o out/plan.json
of_runs theory
done_so "drift: the only run of the checkpoint" drift --model "$model" "${policy[@]}" --db two.db -q
of_runs plot heads -o out/heads.gp --script
run info two.db
expect "  done so: shears info two.db" 0 "^ +2 +.*random" ""

# A better trace goes into the same store, where the old run stays.
better() { # what the old run has, what the hint says, command, arguments...
    local how=$1 wanted=$2
    shift 2
    rm -f better.db
    # shellcheck disable=SC2086
    run trace "${fast[@]}" --db better.db $how
    hinted "$1 of a run traced ${how:-without vectors}" "^trace $wanted, .*--run N" "$@" --db better.db
    # shellcheck disable=SC2086
    run trace "${fast[@]}" --db better.db $(grep -oe '--record full\|--vectors [qkv]*' <<<"$hint")
    done_so "that, and --run 2" "$@" --db better.db --run 2 -q
}
for thin in "--record summary" "--record sparse"; do
    better "$thin" "with --record full" replay "${policy[@]}"
done
better "--record summary" "with --record full" theory
better "--record summary" "with --record full" plan "${policy[@]}" -o out/plan.json
better "--record summary" "with --record full" drift --model "$model" "${policy[@]}"
better "--record summary" "with --record full" plot dropped-mass -o out/mass.gp --script
better "" "with --vectors qkv" replay --policy vatp --budget 0.5
better "" "with --vectors qkv" drift --model "$model" --policy vatp --budget 0.5
better "" "with --vectors qkv" theory --model "$model"
better "" "with --vectors v" plan --policy h2o:recent=3 --target-error 0.5 -o out/plan.json
better "--layers 1-1" "without --layers" plan "${policy[@]}" -o out/plan.json

# ---- budgets, prompts, names ----

run trace "${fast[@]}" --db fresh.db --vectors qkv
for command in replay "plan -o out/plan.json"; do
    # shellcheck disable=SC2086
    hinted "${command%% *}, a budget below what is protected" ' 9 tokens' $command --db two.db --run 1 \
        --policy h2o:recent=8 --budget 8
    # shellcheck disable=SC2086
    done_so "--budget 9" $command --db two.db --run 1 --policy h2o:recent=8 --budget 9 -q
done
for command in replay "drift --model $model"; do
    # shellcheck disable=SC2086
    hinted "${command%% *}, a policy that waits for the prompt" '--prefill N' $command --db two.db --run 1 \
        --policy observed --budget 0.9
    # shellcheck disable=SC2086
    done_so "--prefill 8" $command --db two.db --run 1 --policy observed --budget 0.9 --prefill 8 -q
done
live=(--policy observed --budget 20)
for command in "eval --tokens tokens.jsonl" "repetition --tokens tokens.jsonl --max-tokens 4"; do
    # shellcheck disable=SC2086
    hinted "${command%% *}, a policy that waits for the prompt" '--prefill N' $command --model "$model" "${live[@]}"
    # shellcheck disable=SC2086
    done_so "--prefill 8" $command --model "$model" "${live[@]}" --prefill 8 -q
done
hinted "a policy that looks into the future" 'shears replay measures it' eval "${fast[@]}" --policy oracle --budget 20
done_so "shears replay" replay --db fresh.db --policy oracle --budget 20 -q
positions=$(python -c 'import json, sys; print(json.load(open(sys.argv[1]))["max_position_embeddings"])' "$model/config.json")
python -c 'import sys; print([7 + i % 90 for i in range(int(sys.argv[1]) + 1)])' "$positions" >beyond.ids
hinted "a prompt beyond the model's positions" '--positions cache' generate --model "$model" --tokens beyond.ids --max-tokens 2
done_so "--positions cache" generate --model "$model" --tokens beyond.ids --max-tokens 2 --positions cache --policy window \
    --budget 20 -q
listed() { # description, what the hint says, what it lists, arguments...
    local what=$1 wanted=$2 name=$3
    hinted "$what" "$wanted" "${@:4}"
    # shellcheck disable=SC2086
    run $(grep -oe 'shears .*' <<<"$hint" | sed -e 's/^shears //' -e 's/ lists .*//')
    expect "  done so: it lists $name" 0 "$name" ""
}
listed "no such policy" 'shears info policies lists them' tova replay --db fresh.db --policy qqqq
listed "no such allocator" 'shears plan --help lists them' pyramid replay --db fresh.db --allocator qqqq
listed "no such task" 'shears eval --help lists the tasks' hellaswag eval --model "$model" --task qqqq --data tokens.jsonl
listed "no such option" 'shears drift --help lists the options' '--every' drift --qqqq
listed "no such command" 'shears --help lists the commands' persistence qqqq
listed "no such GPU" 'shears info gpus lists them' H100-SXM capacity --model opt-6.7b --gpu qqqq --length 9
listed "no such model" 'shears info models lists them' opt-6.7b capacity --model qqqq --gpu H100-SXM --length 9
row="X layers=2 hidden=64 heads=4 vocab=100 ffn=256"
echo "$row tide" >rows.txt
hinted "a key of a row of --models" 'did you mean tied' capacity --models rows.txt --model X --gpu H100-SXM --length 9
echo "$row tied" >rows.txt
done_so "tied" capacity --models rows.txt --model X --gpu H100-SXM --length 9
hinted "no such column" '--json shows all names' persistence --db two.db --run 1 --columns qqqq
done_so "--json" persistence --db two.db --run 1 --json -q
holds "  and a name that it shows is a column" grep -q '"ratio"' log/out

# ---- what was not measured yet ----

script=(-o out/figure.gp --script)
hinted "a plan without evaluations" 'shears eval' plan --db fresh.db --policy h2o:recent=3 --target-ppl 1e9 -o out/plan.json
done_as_said ''
done_so "then the plan" plan --db fresh.db --policy h2o:recent=3 --target-ppl 1e9 -o out/plan.json -q
for figure in budget-curve leaderboard drift score-change; do
    run trace "${fast[@]}" --db $figure.db --vectors qkv
    hinted "figure $figure, nothing measured" 'make them: shears' plot $figure --db $figure.db "${script[@]}"
    done_as_said ''
    done_so "then the figure" plot $figure --db $figure.db "${script[@]}"
done
hinted "figure compression, nothing measured" 'shears eval' plot compression --db drift.db "${script[@]}"
done_as_said ''
done_so "then the figure" plot compression --db drift.db "${script[@]}"
hinted "figure quant, nothing measured" 'once for each of 16, 8 and 4 bits: shears eval' plot quant --db leaderboard.db "${script[@]}"
for bits in 16 8 4; do done_as_said "s/--kv-bits 4/--kv-bits $bits/"; done
done_so "then the figure" plot quant --db leaderboard.db "${script[@]}"
hinted "figure allocation without a plan" 'shears plan' plot allocation "${script[@]}"
done_as_said 's/--db FILE/--db fresh.db/'
done_so "then the figure" plot allocation --plan plan.json "${script[@]}"

ask=(capacity --model "$model" --gpu H100-SXM --memory 4G --length 64)
run trace "${fast[@]}" --db none.db
for bits in 16 8; do
    kv=(--kv $([ $bits = 8 ] && echo int8 || echo f16))
    hinted "capacity at a perplexity, no eval of $bits bits" 'shears eval' "${ask[@]}" "${kv[@]}" --db none.db --max-ppl-increase 1000%
    done_as_said ''
    done_so "then the question" "${ask[@]}" "${kv[@]}" --db none.db --max-ppl-increase 1000%
done
hinted "capacity under a policy that was not measured" 'eval .*--policy tova' "${ask[@]}" --db none.db --policy tova
done_as_said ''
done_so "then the question" "${ask[@]}" --db none.db --policy tova
hinted "capacity at a kept mass, no replay" 'shears replay' "${ask[@]}" --db none.db --min-recall 0.1
done_as_said ''
done_so "then the question" "${ask[@]}" --db none.db --min-recall 0.1
hinted "capacity at a kept mass of few bits" '--kv f16' "${ask[@]}" --kv int4 --db none.db --min-recall 0.1
done_so "--kv f16" "${ask[@]}" --kv f16 --db none.db --min-recall 0.1
hinted "capacity in a group that does not divide" '--uneven' capacity --model opt-6.7b --gpu H100-SXM --length 9 --tp 3
done_so "--uneven" capacity --model opt-6.7b --gpu H100-SXM --length 9 --tp 3 --uneven

# ---- what is damaged, what is of another job ----

sqlite3 none.db "UPDATE result SET value = 7 WHERE metric = 'top1_agreement'"
again=(eval "${fast[@]}" --policy h2o --budget 0.1,0.2,0.5 --db none.db)
hinted "a kept result that is damaged" '^measure it again with shears eval --force' "${again[@]}"
done_so "--force" "${again[@]}" --force
done_so "then without" "${again[@]}"
sqlite3 drift.db "UPDATE result SET value = 7 WHERE metric = 'jaccard'"
hinted "a kept drift that is damaged" '^measure it again with shears drift, or' plot drift --db drift.db "${script[@]}"
done_so "measured again" drift --model "$model" --db drift.db --policy scissorhands --budget 0.33 -q
done_so "then the figure" plot drift --db drift.db "${script[@]}"
run trace "${fast[@]}" --db job.db --shard 1/2
run trace "${fast[@]}" --db other.db --shard 2/2 --dtype bf16
run trace "${fast[@]}" --db other.db --shard 1/2 --dtype bf16
hinted "a shard of another job" 'merge it with the shards of its own job into another store' \
    merge --db merged.db job.db.shard-1-of-2 other.db.shard-2-of-2
holds "  nothing was merged" [ ! -e merged.db ]
done_so "its own job" merge --db merged.db other.db.shard-1-of-2 other.db.shard-2-of-2 -q

# ---- files ----

hinted "a script by any name" '--script' plot heads --db two.db --run 1 -o out/any.gp
done_so "--script" plot heads --db two.db --run 1 -o out/any.gp --script
hinted "scores that were not recorded" 'shears info better.db' export --db better.db --sequence 0 --layer 0 --head 0 \
    -o out/x.npy
run info better.db
expect "  done so: shears info better.db" 0 "^first layer recorded" ""
hinted "import, rows that a window cuts" '--window W' import --db out/i.db --attention "$model/ref.safetensors" --window 2
done_so "the window of the attention" import --db out/i.db --attention "$model/ref.safetensors" --window 1000 -q
hinted "a knob that there is none of" 'its knobs are sinks, recent' replay --db fresh.db --policy h2o:qqqq=1
done_so "one of them" replay --db fresh.db --policy h2o:recent=1 --budget 0.5 -q
run trace "${fast[@]}" --db two.db --pipeline
verdict "what was misused has no hint that the same command goes on" "$([ -z "$(grep '^hint' log/err)" ] || cat log/err)"

# ---- a device without room: the options of whoever asked ----

modules=$(dirname "$SHEARS")/tests/emu/modules
if [ -e "$modules/cuda.so" ]; then
    export SH_MODULE_DIR=$modules SH_EMU_STREAMS=lazy
    little=(--backend cuda --device-memory 16M)
    python -c 'print([(7 + 3 * j * j) % 128 for j in range(60)])' >one.jsonl
    for command in "trace --db out/x.db --tokens one.jsonl" "eval --tokens one.jsonl ${policy[*]}" \
        "generate --tokens one.jsonl ${policy[*]} --max-tokens 4" "drift --db two.db --run 1 ${policy[*]}" \
        "repetition --tokens one.jsonl ${policy[*]} --max-tokens 4"; do
        # shellcheck disable=SC2086
        hinted "${command%% *} on a small device" '--device-memory' $command --model "$model" "${little[@]}" -q
    done
    run trace --db memory.db --tokens one.jsonl --model "$model" --backend cuda --device-memory 58900000 -q
    bytes=$(sed -n 's/^hint: set --device-memory to at least \([0-9]*\) .*/\1/p' log/err)
    done_so "trace with --device-memory ${bytes:-?}" trace --db memory.db --tokens one.jsonl --model "$model" \
        --backend cuda --device-memory "$bytes" -q
else
    skip "a device without room" "there is no emulated module (no C++ compiler)"
fi

finish
