#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A rank that hangs (SIGSTOP) and one that is late (SIGSTOP, then SIGCONT): others do its unit, the content is one
# process's, and no process and no file is left. Replay by ranks: layers are shared, and what a job that was killed
# had finished is found again. Simulate by ranks: a rank that is killed costs its cell, which another one runs.
. "$(dirname "$0")/lib.sh"
n_sequence=12
. "$cli/ranks_lib.sh"

run "${trace[@]}" --db one.db
expect "one process traces" 0 "$traced" ""
replay=(replay --policy h2o window scissorhands --budget 0.1,0.2,0.3,0.5 --threads 1)
cp one.db replayed.db
run "${replay[@]}" --db replayed.db -q
expect "one process replays" 0 "^ +h2o .*0\.[0-9]+" ""

start 3 "${trace[@]}" --db out/hang.db --rank-timeout 2
at_work 1 out/hang.db
[ -n "$hit" ] && kill -STOP $hit
ended
if [ -n "$hit" ]; then
    expect "a rank hangs: the others do its unit" 0 "$traced" "^shears: 1 of 3 ranks were lost; others did"
    holds "a rank hangs: the same content" same one.db out/hang.db
    tidy "a rank hangs" out/hang.db
else
    skip "a rank hangs" "the others were quicker"
fi

cp one.db out/replay.db
start 3 "${replay[@]}" --db out/replay.db --rank-timeout 1 -q
at_work 1 out/replay.db
[ -n "$hit" ] && kill -STOP $hit && sleep 1.5 && kill -CONT $hit
ended
holds "a rank of a replay is late: the others finish" [ $status = 0 ]
holds "a rank of a replay is late: the same bits" same replayed.db out/replay.db
tidy "a rank of a replay is late" out/replay.db

cp one.db out/replay.db
start 2 "${replay[@]}" --db out/replay.db --rank-timeout 1 -q
at_work 0 out/replay.db
[ -n "$hit" ] && kill -9 $hit
ended
holds "rank 0 of a replay killed: no rank is left" gone out/replay.db
[ -e out/replay.db.rank-0000 ] || echo "# it had finished before"
start 3 "${replay[@]}" --db out/replay.db -q
ended
holds "the same command finishes" [ $status = 0 ]
holds "the same command finishes: the same bits" same replayed.db out/replay.db
tidy "the same command finishes" out/replay.db

sweep=(simulate --model opt-125m --gpu A100-SXM-80GB,RTX-4090 --kv f16,int8 --rate 20,40,80,160 --budget 0.2 --requests 3000
    --prompt 300 --output 200)
run "${sweep[@]}" --db swept.db -q
cp log/out swept
ranks 4 "${sweep[@]}" --db out/sweep.db -q
expect "four ranks simulate" 0 "^ +0\.2 .*[0-9]" ""
holds "the same answer" cmp log/out swept
holds "the same content" same swept.db out/sweep.db
ranks 2 "${sweep[@]}" --db out/sweep.db
expect "ranks find what is kept" 0 "^32 of 32 rows are from the store" ""
ranks 2 "${sweep[@]}" --db out/sweep.db --force
expect "ranks run it again" 0 "^ +0\.2 .*[0-9]" ""
holds "and know none" bash -c '! grep -q "rows are from the store" log/out'
holds "with the same content" same swept.db out/sweep.db
tidy "sweeps" out/sweep.db
start 4 "${sweep[@]}" --db out/sweep.db --rank-timeout 1 -q
at_work 2 out/sweep.db
[ -n "$hit" ] && kill -9 $hit
ended
holds "a rank of a sweep is killed: the others finish" [ $status = 0 ]
holds "a rank of a sweep is killed: the same answer" cmp log/out swept
holds "a rank of a sweep is killed: the same content" same swept.db out/sweep.db
tidy "a rank of a sweep is killed" out/sweep.db
ranks 2 "${sweep[@]}" --db out/x.db --log out/log.csv -q
expect "what only one process has is refused" 0 "" "^shears: --log: one process has all of it"
finish
