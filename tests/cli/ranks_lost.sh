#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A unit that costs three ranks their lives is given up: the job ends with an error that names it, and what was gathered
# stays. Every rank stands still as soon as it has a unit, since its store is locked, and is killed there; rank 0 goes on
# when no other has one.
. "$(dirname "$0")/lib.sh"
n_sequence=1
. "$cli/ranks_lib.sh"
limit=(timeout -s KILL 300)

# Two units. One of them stays with rank 0; of five that are killed three had the same, whoever came first.
sweep=(simulate --model opt-125m --gpu A100-SXM-80GB --rate 20,40 --requests 200 --prompt 300 --output 20 -q)
run "${sweep[@]}" --db whole.db
expect "one process" 0 . ""
run "${sweep[@]/20,40/30}" --db out/x.db.rank-0009              # as a job that was killed leaves it
expect "another question" 0 . ""
run merge --db both.db whole.db out/x.db.rank-0009 -q
expect "both" 0 "^sets of results, new +3" ""

hold out/x.db 0 1 2 3 4 5
start 6 "${sweep[@]}" --db out/x.db --rank-timeout 6
while kill -0 $launcher 2>/dev/null && [ -z "$(pid_of 5)" ]; do sleep 0.05; done
killed=0 last=$SECONDS                  # after --rank-timeout a lost rank's unit goes to another, if to any
while [ $killed -lt 5 ] && [ $((SECONDS - last)) -lt $((killed < 3 ? 300 : 15)) ] && kill -0 $launcher 2>/dev/null; do
    for rank in 1 2 3 4 5; do
        p=$(pid_of $rank)
        [ -n "$p" ] && has_unit $p $rank out/x.db && kill -9 $p && killed=$((killed + 1)) last=$SECONDS
    done
    sleep 0.1
done
let_go
ended
holds "three ranks at least have died ($killed)" [ $killed -ge 3 ]
holds "the job ends with an error that names the unit" \
    grep -Eq "^shears: unit [01] .*3 ranks .*--rank-timeout" log/err
holds "once" [ "$(grep -c "given up" log/err)" = 1 ]
holds "how many were lost is said" grep -Eq "^shears: [3-5] of 6 ranks lost$" log/err
holds "what is kept is said" \
    grep -q "^hint: finished work is kept in out/x.db; run the same command again" log/err
holds "what was gathered is there" \
    [ "$(sqlite3 out/x.db "SELECT count(DISTINCT settings) BETWEEN 1 AND 2 FROM result")" = 1 ]
holds "no rank is left" gone out/x.db
holds "one file is left" only x.db
ranks 2 "${sweep[@]}" --db out/x.db
expect "the same command finishes" 0 . ""
holds "with all of it" same both.db out/x.db
tidy "the same command finishes" out/x.db
finish
