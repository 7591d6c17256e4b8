#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A trace that is killed or interrupted: the store opens, holds whole layers only, and the same
# command goes on to the very bytes of a run that nobody disturbed.
. "$(dirname "$0")/lib.sh"

python "$cli/checkpoint.py" random model num_hidden_layers=6 hidden_size=128 num_attention_heads=8 ffn_dim=512 \
    vocab_size=512
python -c 'for i in range(24): print([(7 * i + 3 * j * j + i * j) % 512 for j in range(192)])' >tokens.jsonl
command=(trace --model model --random-weights --tokens tokens.jsonl -q)

now_ms() { python -c 'import time; print(int(time.monotonic() * 1000))'; }
begin=$(now_ms)
run "${command[@]}" --db whole.db
took=$(($(now_ms) - begin))
expect "the undisturbed run" 0 "^layers finished +144" ""
echo "# it took $took ms"

# Run the command for a part of that time, in thousandths, then send the signal. Delays are fixed; what
# they meet differs with the machine's load, which is as good as random.
disturbed() { # signal, thousandths, store, arguments...
    local signal=$1 ms=$(($2 * took / 1000)) db=$3
    shift 3
    timeout --foreground --preserve-status -s "$signal" "$((ms / 1000)).$(printf %03d $((ms % 1000)))" \
        "$SHEARS" "${command[@]}" --db "$db" "$@" >log/out 2>log/err </dev/null
    status=$?
} 2>/dev/null

# A store that has no table yet is no store yet.
begun() { [ -e "$1" ] && python -c 'import sys; from scores import *; sys.exit(not query(sys.argv[1], "SELECT 1 FROM sqlite_schema"))' "$1"; }

layers_done() { python -c 'import sys; from scores import *; print(query(sys.argv[1], "SELECT count(*) FROM done")[0][0])' "$1"; }

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

# ---- twenty kills: each store is killed until its run comes through, or four times ----

killed=0 kept=0 store=0 on_store=0
fall_back() { # finish the store, compare it
    run "${command[@]}" --db "out/$store.db"
    expect "store $store: after $on_store kills the same command finishes" 0 "^layers finished +144" ""
    holds "store $store: it equals the undisturbed run" equal_to_whole "out/$store.db"
    holds "store $store: no other file is left" [ "$(ls -A out)" = "$store.db" ]
    rm -rf out && mkdir out
    store=$((store + 1)) on_store=0
}
for part in 130 860 40 530 710 330 950 90 610 210 10 480 770 160 280 910 60 400 660 560; do
    memory=()
    [ $((part % 20)) = 0 ] && memory=(--memory 1)
    disturbed KILL $part "out/$store.db" ${memory[@]+"${memory[@]}"}
    what="kill after $part/1000 of the time, store $store"
    on_store=$((on_store + 1))
    case $status in
    137) killed=$((killed + 1)) ;;
    0) echo "# $what: the run was faster" ;;
    *) faults 137 "" "" ;;
    esac
    if begun "out/$store.db"; then
        run verify --db "out/$store.db" -q
        expect "$what: what is in the store is sound" 0 "^sound +yes" ""
        kept=$((kept + $(layers_done "out/$store.db")))
    else
        ok "$what: there was no store yet"
    fi
    [ $on_store = 4 ] && fall_back
done
[ $on_store = 0 ] || fall_back
holds "at least half of the signals met a running program ($killed did)" [ $killed -ge 10 ]
holds "some layers had been finished ($kept in all)" [ $kept -gt 0 ]

# ---- Ctrl-C ----

for signal in INT TERM; do
    disturbed $signal 400 "out/$signal.db"
    expect "SIG$signal: status 1, and the sentence says so" 1 "" "^shears: interrupted in layer [0-9] of 6"
    holds "SIG$signal: the hint tells how to go on" grep -q "^hint: .*out/$signal.db.*the same command goes on" log/err
    run verify --db out/$signal.db -q --json
    expect "SIG$signal: the store is sound" 0 '"sound": true' ""
    run "${command[@]}" --db out/$signal.db
    expect "SIG$signal: the same command goes on" 0 "^layers finished +144" ""
    holds "SIG$signal: it equals the undisturbed run" equal_to_whole out/$signal.db
done
holds "no other file is left" [ "$(ls -A out | tr '\n' ' ')" = "INT.db TERM.db " ]
finish
