#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A rank that hangs (SIGSTOP) and one that is late (SIGSTOP, then SIGCONT): others do its unit, the content is one
# process's, and no process and no file is left. Replay by ranks: layers are shared, and what a job that was killed
# had finished is found again.
. "$(dirname "$0")/lib.sh"
n_sequence=12
. "$cli/ranks_lib.sh"

run "${trace[@]}" --db one.db -q
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
    expect "a rank hangs: the others do its unit" 0 "$traced" "^shears: 1 of 3 ranks lost; others"
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
finish
