#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# doc/slurm's array job and its merge without a Slurm: the scripts, started with the variables that it would set.
. "$(dirname "$0")/lib.sh"

golden_tokens opt >tokens.jsonl
export MODEL=$checkpoints/opt OPTIONS="--tokens $work/tokens.jsonl" SHEARS DB=$work/array.db
unset SHARDS
run trace --model "$MODEL" --tokens tokens.jsonl -q --db one.db

task() { # of the array from .. to, which is all that Slurm tells of
    SLURM_ARRAY_TASK_ID=$1 SLURM_ARRAY_TASK_MIN=$2 SLURM_ARRAY_TASK_MAX=$3 SLURM_ARRAY_TASK_COUNT=$(($3 - $2 + 1)) \
        bash "$SH_TOP/doc/slurm/array.sbatch"
}
merge() { bash "$SH_TOP/doc/slurm/merge.sbatch"; }
fails_by() { # word, command...
    local word=$1 said
    shift
    ! said=$("$@" 2>&1) && grep -q "$word" <<<"$said" || { echo "expected an error with \"$word\", found: $said"; false; }
}
shard_is() { # I/N, task...
    local said wanted="--shard $1"
    shift
    said=$(SHEARS=echo task "$@" 2>&1)
    [[ $said = *"$wanted"* ]] || { echo "expected $wanted, found: $said"; false; }
}

export SHARDS=8
holds "a task makes its shard" shard_is 3/8 3 1 8
holds "submitted again by itself the same one" shard_is 3/8 3 3 3
unset SHARDS
for task in "3 1 8" "3 3 3" "1 1 1"; do
    holds "without SHARDS nothing is guessed: task ${task%% *} of ${task#* }" fails_by "SHARDS: is not set" task $task
done
holds "nor by the merge" fails_by "SHARDS: is not set" merge
holds "outside of an array job there is no task" fails_by "SLURM_ARRAY_TASK_ID: is not set" \
    env SHARDS=8 bash "$SH_TOP/doc/slurm/array.sbatch"

export SHARDS=3
holds "two tasks of three end" eval "task 1 1 3 && task 3 1 3"
holds "the merge fails while a shard is missing" fails_by "" merge
holds "and leaves the others" test -e array.db.shard-1-of-3 -a -e array.db.shard-3-of-3
holds "a task beyond the shards is refused" fails_by 4/3 task 4 1 4
holds "the third, by itself, ends" task 2 2 2
holds "the merge ends" merge
holds "they make what one process writes" same one.db array.db
holds "no shard is left" bash -c '! ls array.db.shard-* 2>/dev/null'
finish
