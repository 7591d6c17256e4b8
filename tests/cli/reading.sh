#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One store, several programs: commands that read it while a trace writes, results that are kept meanwhile, a reader that
# takes its time, two traces at once, and a finished store that may only be read.
. "$(dirname "$0")/lib.sh"
own_mounts

python "$cli/checkpoint.py" random model num_hidden_layers=8 hidden_size=256 num_attention_heads=8 ffn_dim=1024 \
    vocab_size=512
python -c 'for i in range(24): print([(7 * i + 3 * j * j + i * j) % 512 for j in range(256)])' >tokens.jsonl
command=(trace --model model --random-weights --tokens tokens.jsonl --codec f32 --threads 1 -q)
run "${command[@]}" --db whole.db
expect "an undisturbed run" 0 "^layers finished +192" ""
same_as_whole() {
    python - "$1" <<'P'
import sys
from scores import *
same_blobs(blobs(sys.argv[1]), blobs("whole.db"))
P
}

# A fast machine must not be done before anybody has read: the trace stands still two thirds of the time.
pause() {
    while kill -STOP "$tracer"; do
        sleep 0.02
        kill -CONT "$tracer"
        sleep 0.01
    done 2>/dev/null
}
start() { # store: $tracer
    "$SHEARS" "${command[@]}" --db "$1" >log/trace.out 2>log/trace.err </dev/null &
    tracer=$!
    pause &
    while writes && ! "$SHEARS" info "$1" 2>/dev/null | grep -Eq "^layers finished +[1-9]"; do
        sleep 0.01
    done
}
# On a slow disk a writer may wait for some seconds where nobody holds the file for long.
forget_waiting() { sed -i '/: in use by another program; waiting/d' log/err; }
writes() { kill -0 "$tracer" 2>/dev/null; }
ended() { wait "$tracer" && status=0 || status=$?; cp log/trace.out log/out; cp log/trace.err log/err; }

# ---- commands during a trace ----

met=0
for what in info verify persistence replay hash; do
    case $what in
        info) words=(info out/x.db) says="^layers finished" ;;
        verify) words=(verify --db out/x.db -q) says="^sound +yes" ;;
        persistence) words=(persistence --db out/x.db -q) says="^layers not finished" ;;
        replay) words=(replay --db out/x.db --policy window h2o --budget 0.25 --threads 1 -q) says="h2o" ;;
        hash) words=(info out/x.db --hash) says="^layers finished" ;;
    esac
    rm -rf out && mkdir out
    start out/x.db
    for _ in 1 2 3; do
        writes || break
        met=$((met + 1))
        run "${words[@]}"
        expect "$what during a trace" 0 "$says" ""
    done
    ended
    forget_waiting
    expect "$what: the trace comes to its end" 0 "^layers finished +192" ""
    holds "$what: with all of it" same_as_whole out/x.db
    holds "$what: no other file is left" [ "$(ls -A out)" = x.db ]
done
holds "commands met a trace that was writing ($met did)" [ $met -ge 5 ]

# ---- a reader that takes its time ----

rm -rf out && mkdir out
start out/x.db
kill -KILL "$tracer"
ended 2>/dev/null
run info out/x.db                       # undoes what was half-way
expect "a trace that was killed" 0 "^layers finished +([1-9]|[1-9][0-9]|1[0-8][0-9])$" ""
cp out/x.db part.db
hold() { # seconds, store: a statement that reads stays open
    rm -f held
    python3 - "$@" <<'P' &
import sqlite3, sys, time
q = sqlite3.connect(sys.argv[2]).execute("SELECT * FROM scores")
q.fetchone()
open("held", "w").close()
time.sleep(float(sys.argv[1]))
P
    holder=$!
    while [ ! -e held ]; do sleep 0.01; done
}
go_on() { "$SHEARS" "${command[@]}" --db out/x.db >log/trace.out 2>log/trace.err </dev/null & tracer=$!; }
hold 8 out/x.db
go_on
ended
wait $holder
expect "a reader of eight seconds: the trace waits, says so once, and ends" 0 "^layers finished +192" \
    "^shears: out/x.db: in use by another program; waiting"
holds "a reader of eight seconds: one sentence" [ "$(wc -l <log/err)" = 1 ]
holds "a reader of eight seconds: all of it" same_as_whole out/x.db

cp part.db out/x.db
hold 60 out/x.db
go_on
sleep 0.5
since=$SECONDS
kill -INT "$tracer"
ended
holds "interrupted while it waits: not to the reader's end" [ $((SECONDS - since)) -lt 30 ]
kill $holder && wait $holder 2>/dev/null
expect "interrupted while it waits: it ends" 1 "" "^shears: "
run verify --db out/x.db -q
expect "interrupted while it waits: what is there is sound" 0 "^sound +yes" ""
run "${command[@]}" --db out/x.db
expect "interrupted while it waits: the same command goes on" 0 "^layers finished +192" ""
holds "interrupted while it waits: all of it" same_as_whole out/x.db

# ---- two traces into one store ----

rm -rf out && mkdir out
"$SHEARS" "${command[@]}" --codec f16 --db out/x.db >log/other.out 2>log/other.err </dev/null &
other=$!
run "${command[@]}" --db out/x.db
forget_waiting
expect "two traces at once: the one" 0 "^layers finished +192" ""
wait $other
status=$?
cp log/other.out log/out && cp log/other.err log/err
forget_waiting
expect "two traces at once: the other" 0 "^layers finished +192" ""
run verify --db out/x.db -q
expect "two traces at once: all is there" 0 "^complete +yes" ""

# ---- who may only read ----

if [ -n "$alone" ]; then
    mkdir fixed && cp whole.db fixed/x.db && mount --bind fixed fixed && mount -o remount,bind,ro fixed || exit 99
    run info fixed/x.db
    expect "a folder that cannot be written to: info" 0 "^layers finished +192" ""
    run verify --db fixed/x.db -q
    expect "a folder that cannot be written to: verify" 0 "^sound +yes" ""
    umount fixed
    python - <<'P'
import shutil, sqlite3
c = sqlite3.connect("whole.db", isolation_level=None)
c.execute("PRAGMA cache_size = 1")
c.execute("BEGIN")
c.execute("UPDATE scores SET first_row = 7")
for end in ("", "-journal"):
    shutil.copy("whole.db" + end, "fixed/x.db" + end)
c.execute("ROLLBACK")
P
    mount --bind fixed fixed && mount -o remount,bind,ro fixed || exit 99
    run info fixed/x.db
    expect "half a change, which cannot be undone there" 1 "" "^shears: fixed/x.db: "
    holds "what to do is said" grep -q "^hint: .*shears info FILE" log/err
    umount fixed
    run info fixed/x.db
    expect "half a change, which can be undone" 0 "^layers finished +192" ""
else
    skip "who may only read" "no file system can be mounted here"
fi
finish
