#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Simulate and eval by ranks into a new --db that end with an error, since a unit failed or somebody interrupted them:
# what was gathered is in the store, and the same command goes on from there. A store for which nothing was found goes.
. "$(dirname "$0")/lib.sh"
n_sequence=1
. "$cli/ranks_lib.sh"

golden_tokens opt >golden.jsonl
command_of() { # which: $words, and $other, another question
    case $1 in
        simulate) words=(simulate --model opt-125m --gpu A100-SXM-80GB,RTX-4090 --rate 20,40,80 --budget 0.2
            --requests 2000 --prompt 300 --output 200 -q)
            other=("${words[@]/20,40,80/30}") ;;
        eval) words=(eval --model "$checkpoints/opt" --tokens golden.jsonl --policy window h2o --threads 1
            --budget 0.2..0.8/8 -q)
            other=("${words[@]}" --count 1) ;;
    esac
}
apart() { # words...: two ranks, the second of which cannot make its store; mpirun's own words go
    "${limit[@]}" mpirun --oversubscribe -n 1 "$SHEARS" "$@" --db out/x.db : -n 1 "$SHEARS" "$@" --db nowhere/x.db \
        >log/all 2>log/said </dev/null
    status=$?
    grep -E '^(shears|hint):' log/said >log/err
    grep -vE '^-|^$|^Primary|a non-zero' log/all >log/out
}
sets() { sqlite3 "$1" "SELECT count(*) FROM (SELECT DISTINCT command, settings FROM result)"; }
found() { # least, most: so many sets of results are in the store
    local n
    n=$(sets out/x.db)
    echo "found $n, expected $1 to $2"
    [ "$n" -ge "$1" ] && [ "$n" -le "$2" ]
}

for which in simulate eval; do
    command_of $which
    run "${words[@]}" --db $which.db
    expect "$which: one process" 0 . ""
    run "${other[@]}" --db other.db
    expect "$which: another question" 0 . ""
    n_other=$(sets other.db)
    run merge --db both.db $which.db other.db -q
    expect "$which: both" 0 "^sets of results, new" ""

    mv other.db out/x.db.rank-0005              # as a job that was killed leaves it
    apart "${words[@]}"
    expect "$which: a unit fails" 1 "" "^shears: rank 1: nowhere/x.db.rank-0001: "
    holds "$which: a unit fails: it is told that something is kept" \
        grep -q "^hint: finished work is kept in out/x.db; run the same command again" log/err
    holds "$which: a unit fails: one file is left" only x.db
    holds "$which: a unit fails: it has what was gathered" found "$n_other" 99
    ranks 2 "${words[@]}" --db out/x.db
    expect "$which: a unit failed: the same command finishes" 0 . ""
    holds "$which: with all of it" same both.db out/x.db
    rm both.db
    tidy "$which: a unit failed" out/x.db

    # A rank that stands still with a unit: the others come to their end, but not to that of the job.
    hold out/x.db 1
    start 2 "${words[@]}" --db out/x.db
    second=
    until [ -n "$second" ] && has_unit $second 1 out/x.db && committed out/x.db.rank-0000; do
        kill -0 $launcher 2>/dev/null || break
        sleep 0.05
        second=$(pid_of 1)
    done
    kill -INT $(pid_of 0)
    let_go
    ended
    holds "$which: interrupted, and it says so" grep -q "^shears: .*interrupted" log/err
    holds "$which: interrupted: it is told that something is kept" grep -q "^hint: .*kept" log/err
    holds "$which: interrupted: one file is left" only x.db
    holds "$which: interrupted: it has what was gathered" found 1 "$(sets $which.db)"
    ranks 2 "${words[@]}" --db out/x.db
    expect "$which: interrupted: the same command finishes" 0 . ""
    holds "$which: with one process's content" same $which.db out/x.db
    tidy "$which: interrupted" out/x.db
done

# A trace that fails at its start, after the results of a rank of another job have come.
cp eval.db out/x.db.rank-0005
echo noise >out/x.db.rank-0006
ranks 2 "${trace[@]}" --db out/x.db -q
holds "a rank's store that is none ends a trace" grep -q "^shears: out/x.db.rank-0006: " log/err
holds "what came before it stays" [ "$(sets out/x.db)" = "$(sets eval.db)" ]
rm out/x.db.rank-0006
ranks 2 "${trace[@]}" --db out/x.db -q
expect "without it the trace joins it" 0 "$traced" ""
rm -rf out && mkdir out

apart "${words[@]}" --policy window --budget 0.5 --dtype f7
expect "ranks that find nothing" 2 "" "^shears: --dtype"
holds "leave no store" only ""
finish
