#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Simulate by ranks: one process's answer and content, found again, and a rank that is killed costs its cell, which
# another one runs. A store whose lock somebody holds, as a rank may that hangs: said, and nothing is lost.
. "$(dirname "$0")/lib.sh"
n_sequence=12
. "$cli/ranks_lib.sh"

sweep=(simulate --model opt-125m --gpu A100-SXM-80GB,RTX-4090 --kv f16,int8 --rate 20,40,80,160 --budget 0.2 --requests 3000
    --prompt 300 --output 200)
run "${sweep[@]}" --db swept.db -q
cp log/out swept
ranks 4 "${sweep[@]}" --db out/sweep.db -q
expect "four ranks simulate" 0 "^ +0\.2 .*[0-9]" ""
holds "the same answer" cmp log/out swept
holds "the same content" same swept.db out/sweep.db
asked() { sqlite3 "$1" "SELECT command, settings FROM typed ORDER BY 1, 2"; }
holds "and how it was asked for" cmp <(asked swept.db) <(asked out/sweep.db)
ranks 2 "${sweep[@]}" --db out/sweep.db
expect "ranks find what is kept" 0 "^32 of 32 rows .*store; --force" ""
ranks 2 "${sweep[@]}" --db out/sweep.db --force
expect "ranks run it again" 0 "^ +0\.2 .*[0-9]" ""
holds "and know none" bash -c '! grep -q "rows .*store; --force" log/out'
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
expect "what only one process has is refused" 0 "" "^shears: --log .*--shard"

# ---- killed in the middle of a change of the file itself ----

run "${trace[@]}" --db traced.db -q
expect "traces" 0 "$traced" ""
rm -rf out && mkdir out
cp traced.db half
python - <<'P'
import shutil, sqlite3
c = sqlite3.connect("half", isolation_level=None)
c.execute("PRAGMA cache_size = 1")
c.execute("BEGIN")
c.execute("UPDATE scores SET first_row = 7")            # more pages than fit: the file has some of them now
for end in ("", "-journal"):
    shutil.copy("half" + end, "out/x.db.rank-0002" + end)
c.execute("ROLLBACK")
P
touch out/x.db.rank-0003.shears-new out/x.db.rank-0003.shears-new-journal
holds "a store with half a change in it" [ -s out/x.db.rank-0002-journal ]
ranks 2 "${trace[@]}" --db out/x.db -q
expect "what a killed rank left is used" 0 "$traced" ""
holds "without the half change" same traced.db out/x.db
tidy "what a killed rank left is used" out/x.db

# ---- locked ----

hold() { # seconds, file, statement or "file": its lock, in the background
    python3 - "$@" <<'P' &
import fcntl, sqlite3, sys, time
seconds, path, what = float(sys.argv[1]), sys.argv[2], sys.argv[3]
if what == "file":                          # as a process in the middle of closing it does
    f = open(path, "r+b")
    fcntl.lockf(f, fcntl.LOCK_EX, 512, 0x40000000)
else:
    q = sqlite3.connect(path).execute(what)
    q.fetchone()
open("held", "w").close()
time.sleep(seconds)
P
    holder=$!
    while [ ! -e held ]; do sleep 0.02; done
    rm held
}
replay=(replay --policy h2o window --budget 0.2,0.5 --threads 1 -q)
cp traced.db replayed.db
run "${replay[@]}" --db replayed.db
cp traced.db out/x.db
hold 60 out/x.db "SELECT * FROM scores"
ranks 2 "${replay[@]}" --db out/x.db
kill $holder && wait $holder 2>/dev/null
expect "the results cannot be stored while somebody reads" 0 "" "^shears: out/x.db: storing results: locked by another program"
expect "what to do is said" 0 "" "^hint: .*rank.* next to out/x.db"
holds "what ranks found is kept" ls out/x.db.rank-0000 out/x.db.rank-0001
ranks 2 "${replay[@]}" --db out/x.db
expect "the same command goes on" 0 "^ +h2o .*0\.[0-9]+" ""
holds "to one process's bits" same replayed.db out/x.db
tidy "the same command goes on" out/x.db

cp traced.db out/x.db
for i in 1 2; do cp traced.db out/x.db.rank-000$i; done
hold 60 out/x.db.rank-0001 file
ranks 2 "${trace[@]}" --db out/x.db -q
kill $holder && wait $holder 2>/dev/null
expect "a rank's store that is locked is named" 0 "" "^shears: out/x.db.rank-0001: .*locked by another program"
holds "the others are joined" [ ! -e out/x.db.rank-0002 ]
ranks 2 "${trace[@]}" --db out/x.db -q
expect "the same command joins it, too" 0 "$traced" ""
holds "with the same content" same traced.db out/x.db
tidy "the same command joins it, too" out/x.db
finish
