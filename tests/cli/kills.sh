#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One of four ranks is killed at a moment by chance, in trace, replay, eval and simulate: the others finish, with one
# process's content, and no process and no file is left. Rank 0 is killed: the same command finishes. A rank that is
# killed while MPI starts may end the job, but no more. SH_TEST_KILLS=10 kills ten times in each (default: once);
# SH_TEST_SEED chooses the moments.
. "$(dirname "$0")/lib.sh"
n_sequence=24
. "$cli/ranks_lib.sh"

: "${SH_TEST_SEED:=1}"    # so that a failure can be seen again
echo "# SH_TEST_SEED=$SH_TEST_SEED"
RANDOM=$SH_TEST_SEED
run "${trace[@]}" --db traced.db -q
expect "one process traces" 0 "$traced" ""
golden_tokens opt >golden.jsonl
command_of() { # which: $words
    case $1 in
        trace) words=("${trace[@]}" -q) ;;
        replay) words=(replay --policy h2o window scissorhands --budget 0.1,0.2,0.3,0.5 --threads 1 -q) ;;
        eval) words=(eval --model "$checkpoints/opt" --tokens golden.jsonl --policy window h2o streaming tova --threads 1
            --budget 0.2..0.8/16 -q) ;;
        simulate) words=(simulate --model opt-125m --gpu A100-SXM-80GB,RTX-4090 --kv f16,int8 --rate 20,40,80,160
            --budget 0.2 --requests 8000 --prompt 300 --output 200 -q) ;;
    esac
}
# Where it begins: replay needs traces.
lay() { rm -rf out && mkdir out && { [ "$1" != replay ] || cp traced.db out/x.db; }; }
kill_one() { # rank, seconds, since: after its process is there, or its store; $hit, or empty
    while kill -0 $launcher 2>/dev/null && [ -z "$(pid_of "$1")" ]; do sleep 0.01; done
    while [ "$3" = store ] && kill -0 $launcher 2>/dev/null && [ ! -e "out/x.db.rank-000$1" ]; do sleep 0.01; done
    sleep "$2"
    hit=$(pid_of "$1")
    [ -n "$hit" ] && kill -9 "$hit" 2>/dev/null
}

n_hit=0
for which in trace replay eval simulate; do
    command_of $which
    [ $which != replay ] || cp traced.db replay.db
    run "${words[@]}" --db $which.db
    expect "$which: one process" 0 . ""
    for i in $(seq "${SH_TEST_KILLS:-1}"); do
        rank=$((1 + RANDOM % 3)) moment=$(printf 0.%03d $((RANDOM % 250))) since=store
        [ $((i % 2)) = 1 ] || since=start
        lay $which
        start 4 "${words[@]}" --db out/x.db --rank-timeout 2
        kill_one $rank $moment $since
        ended
        what="$which, rank $rank killed $moment s after its $since"
        [ -n "$hit" ] && n_hit=$((n_hit + 1)) || what="$which, rank $rank was through $moment s after its $since"
        holds "$what: no rank is left" gone out/x.db
        if grep -q "not all ranks have started" log/all; then
            echo "# MPI was starting: the same command again"
            ranks 4 "${words[@]}" --db out/x.db
        fi
        holds "$what: the same content" same $which.db out/x.db
        holds "$what: one file is left" only x.db
    done
done
holds "ranks were hit while they lived ($n_hit)" [ $n_hit -ge 1 ]

lose_rank_0() {
    lay trace
    start 4 "${words[@]}" --db out/x.db --rank-timeout 2
    at_work 0 out/x.db
    [ -n "$hit" ] && kill -9 $hit
    ended
    holds "$1: no rank is left" gone out/x.db
}
command_of trace
lose_rank_0 "rank 0 killed"
ranks 3 "${words[@]}" --db out/x.db
expect "rank 0 killed: the same command finishes" 0 "$traced" ""
holds "rank 0 killed: the same content" same traced.db out/x.db
holds "rank 0 killed: one file is left" only x.db

lose_rank_0 "rank 0 killed again"
left=$(find out -name 'x.db.rank-????' | sort)
if [ -n "$left" ]; then
    run merge --db out/x.db $left -q
    expect "rank 0 killed: merge takes what the ranks wrote" 0 "^layers of sequences, new +[1-9]" ""
    done_in() { for file; do sqlite3 $file "SELECT sequence, layer FROM done"; done | sort -u; }
    holds "rank 0 killed: all of it" [ -z "$(comm -23 <(done_in $left) <(done_in out/x.db))" ]
    rm out/x.db.rank-*
    run "${words[@]}" --db out/x.db
    expect "rank 0 killed: one process goes on from there" 0 "$traced" ""
else
    skip "rank 0 killed: merge takes what the ranks wrote" "it was through before"
fi
holds "rank 0 killed: merged, the same content" same traced.db out/x.db
holds "rank 0 killed: merged, one file is left" only x.db
finish
