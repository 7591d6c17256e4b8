#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A trace that is killed or interrupted: the store opens, holds whole layers only, and the same
# command goes on to the very bytes of a run that nobody disturbed.
. "$(dirname "$0")/lib.sh"

python "$cli/checkpoint.py" random model num_hidden_layers=6 hidden_size=128 num_attention_heads=8 ffn_dim=512 \
    vocab_size=512
python -c 'for i in range(12): print([(7 * i + 3 * j * j + i * j) % 512 for j in range(160)])' >tokens.jsonl
command=(trace --model model --random-weights --tokens tokens.jsonl -q)

now_ms() { python -c 'import time; print(int(time.monotonic() * 1000))'; }
took=1000000
for db in whole again; do
    begin=$(now_ms)
    run "${command[@]}" --db $db.db
    spent=$(($(now_ms) - begin))
    [ $spent -lt $took ] && took=$spent
    expect "an undisturbed run" 0 "^layers finished +72" ""
done
echo "# it took $took ms"

# Run the command for a part of that time, in thousandths, then send the signal. Delays are fixed; what
# they meet differs with the machine's load, which is as good as random.
disturbed() { # signal, thousandths, store, arguments...
    local signal=$1 ms=$(($2 * took / 1000)) db=$3
    shift 3
    timeout --foreground --preserve-status -s "$signal" "$((ms / 1000)).$(printf %03d $((ms % 1000)))" \
        "$SHEARS" "${command[@]}" --db "$db" "$@" >log/out 2>log/err </dev/null
    status=$?
}

equal_to_whole() { # store
    python - "$1" <<'P'
import sys
from scores import *
ours, whole = sys.argv[1], "whole.db"
same_blobs(blobs(ours), blobs(whole))
for table in "model", "sequence", "done":
    assert query(ours, f"SELECT * FROM {table}") == query(whole, f"SELECT * FROM {table}"), table
columns = "id, model, key, record, codec, statistics, first_layer, last_layer"
assert query(ours, f"SELECT {columns} FROM run") == query(whole, f"SELECT {columns} FROM run"), "run"
assert query(ours, "PRAGMA integrity_check") == [("ok",)]
P
}

holds "two undisturbed runs are equal" equal_to_whole again.db

# ---- twenty kills: each store is killed until its run comes through, or four times ----

killed=0 kept=0 store=0 on_store=0
only() { [ "$(ls -A out)" = "$1" ] || { ls -lA out; false; }; }
complete() { # finish the store, compare it
    run "${command[@]}" --db "out/$store.db"
    expect "store $store: the same command finishes" 0 "^layers finished +72" ""
    holds "store $store: it equals the undisturbed run" equal_to_whole "out/$store.db"
    holds "store $store: no other file is left" only "$store.db"
    rm -rf out && mkdir out
    store=$((store + 1)) on_store=0
}
for part in 130 780 40 530 710 330 850 90 610 210 20 480 680 160 280 820 60 400 640 560; do
    memory=()
    [ $((part % 20)) = 0 ] && memory=(--memory 1)
    disturbed KILL $part "out/$store.db" ${memory[@]+"${memory[@]}"}
    what="kill after $part/1000 of the time, store $store"
    on_store=$((on_store + 1))
    if [ $status = 0 ]; then
        echo "# $what: the run was faster"
        on_store=4 took=$((took * 2 / 3))       # the machine was busier when it was measured
    else
        holds "$what: it was killed" [ $status = 137 ]
        killed=$((killed + 1))
    fi
    if [ ! -e "out/$store.db" ]; then
        ok "$what: there is no store yet"
    else
        run verify --db "out/$store.db" -q
        if [ $status = 1 ] && grep -q "db: empty file, expected a trace store" log/err; then
            ok "$what: there is no table yet"
        else
            expect "$what: what is in the store is sound" 0 "^sound +yes" ""
            kept=$((kept + $(sed -n 's/^layers finished *//p' log/out)))
        fi
    fi
    [ $on_store = 4 ] && complete
done
[ $on_store = 0 ] || complete
holds "at least half of the signals met a running program ($killed did)" [ $killed -ge 10 ]
holds "some layers had been finished ($kept in all)" [ $kept -gt 0 ]

# ---- killed while it wrote to a finished store: SQLite's journal lies next to it ----

for db in hot1 hot2 hot3; do
    python - $db <<'P'
import shutil, sqlite3, sys
shutil.copy("whole.db", "writing.db")
db = sqlite3.connect("writing.db", isolation_level=None)
db.execute("PRAGMA cache_size = 1")
db.execute("BEGIN IMMEDIATE")
db.execute("UPDATE scores SET blob = zeroblob(length(blob))")
for end in "", "-journal":
    shutil.copy("writing.db" + end, f"out/{sys.argv[1]}.db{end}")
P
done
run verify --db out/hot1.db -q
expect "a store with a journal: verify finds it sound" 0 "^complete +yes" ""
run info out/hot2.db
expect "a store with a journal: info" 0 "^layers finished +72" ""
run persistence --db out/hot3.db -q
expect "a store with a journal: persistence" 0 "^layers not finished +0" ""
holds "a store with a journal: it equals the undisturbed run" equal_to_whole out/hot1.db
rm -rf out && mkdir out

# ---- Ctrl-C ----

for signal in INT TERM; do
    for part in 500 250 120; do                         # until it meets a running program
        rm -f out/$signal.db
        disturbed $signal $part "out/$signal.db"
        [ $status = 0 ] || break
    done
    expect "SIG$signal: status 1, and the sentence says so" 1 "" "^shears: interrupted in layer [0-9] of 6"
    holds "SIG$signal: the hint tells how to go on" grep -q "^hint: .*out/$signal.db.*the same command again" log/err
    run verify --db out/$signal.db -q --json
    expect "SIG$signal: the store is sound" 0 '"sound": true' ""
    run "${command[@]}" --db out/$signal.db
    expect "SIG$signal: the same command goes on" 0 "^layers finished +72" ""
    holds "SIG$signal: it equals the undisturbed run" equal_to_whole out/$signal.db
done
holds "no other file is left" [ "$(ls -A out | tr '\n' ' ')" = "INT.db TERM.db " ]
finish
