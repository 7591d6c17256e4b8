#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --shard I/N and merge: the joined file holds what one process would have written, by hash; merging is
# idempotent, refuses what does not belong by name, survives kills, and never touches what it reads.
. "$(dirname "$0")/lib.sh"

golden_tokens opt >tokens.jsonl
model=$checkpoints/opt
trace=(trace --model "$model" --tokens tokens.jsonl --vectors qkv -q)
n_layer=$("$SHEARS" info --model "$model" --json | python -c 'import json, sys; print(json.load(sys.stdin)["layers"])')
n_sequence=$(wc -l <tokens.jsonl)
cells=$((n_layer * n_sequence))

differ() { ! same "$1" "$2"; }
sums() { md5sum "$@" >log/sums; }
said() { # the hint of the last run begins like this; "": there is none
    holds "  the hint: ${1:-none}" [ "$(grep -o "^hint: $1" log/err)" = "${1:+hint: $1}" ]
}

# ---- the hash ----

run "${trace[@]}" --db one.db
run "${trace[@]}" --db two.db --threads 1
holds "the same content has the same hash" same one.db two.db
cp one.db wide.db
sqlite3 wide.db "UPDATE run SET id = 7, started = 'then', seconds = 9, command = 'x', device = 'y';
    UPDATE sequence SET id = id + 40, run = 7; UPDATE done SET sequence = sequence + 40;
    UPDATE scores SET sequence = sequence + 40, id = id + 100000; UPDATE vectors SET sequence = sequence + 40;
    VACUUM"
holds "it does not see numbers of rows, times, pages" same one.db wide.db
for change in "UPDATE sequence SET source = 'other' WHERE id = 0" "UPDATE scores SET head = 99 WHERE id = 1" \
    "DELETE FROM vectors WHERE id = 2" "DELETE FROM done WHERE layer = 0 AND sequence = 0" \
    "UPDATE scores SET blob = (SELECT blob FROM scores WHERE id = 3) WHERE id = 4" \
    "INSERT INTO result (command, settings, metric, value) VALUES ('eval', '{}', 'nll', 1)"; do
    cp one.db changed.db
    sqlite3 changed.db "$change"
    holds "it sees: $change" differ one.db changed.db
done

# ---- shards of a trace ----

for n in 2 $((n_sequence * 2 + 1)); do
    for i in $(seq $n); do
        "$SHEARS" "${trace[@]}" --db out/$n.db --shard $i/$n >/dev/null || not_ok "shard $i/$n"
    done
    sums out/*
    run merge --db out/$n.db out/$n.db.shard-*-of-$n -q
    expect "$n shards are merged" 0 "^layers of sequences, new +$cells" ""
    holds "$n shards: what one process writes" same one.db out/$n.db
    run merge --db out/$n.db out/$n.db.shard-*-of-$n -q
    expect "$n shards: once more changes nothing" 0 "^layers of sequences, new +0" ""
    holds "$n shards: what one process writes" same one.db out/$n.db
    holds "$n shards: the files are as they were" md5sum --quiet -c log/sums
    run verify --db out/$n.db -q
    expect "$n shards: complete" 0 "^complete +yes" ""
    rm out/$n.db
    [ $n = 2 ] || rm out/$n.db.*
done
for record in "sparse --codec f32" sparse summary; do
    name=${record// /}
    for i in 1 2; do
        "$SHEARS" trace --model "$model" --tokens tokens.jsonl --record $record -q --db $name.db --shard $i/2 >/dev/null ||
            not_ok "$record: shard $i/2"
    done
    "$SHEARS" trace --model "$model" --tokens tokens.jsonl --record $record -q --db $name-one.db >/dev/null
    run merge --db $name.db $name.db.shard-*-of-2 -q
    run merge --db $name.db $name.db.shard-*-of-2 -q
    expect "$record: twice is once" 0 "^layers of sequences, new +0" ""
    holds "$record: what one process writes" same $name-one.db $name.db
done
cp sparse-one.db changed.db
sqlite3 changed.db "UPDATE scores SET blob = (SELECT blob FROM scores WHERE id = 3) WHERE id = 4"
holds "sparse: another block is seen" differ sparse-one.db changed.db
run merge --db hole.db out/2.db.shard-2-of-2
run verify --db hole.db --json -q
expect "a hole is told" 0 '"shards_missing":"trace 1 of 2"|"shards_missing": "trace 1 of 2"' ""
expect "with the layers" 0 '"complete": ?false' ""

# ---- what does not belong ----

mv out/2.db.shard-1-of-2 first; mv out/2.db.shard-2-of-2 second; rm -rf out && mkdir out
other() { # name, what differs, arguments...
    local name=$1 what=$2
    shift 2
    "$SHEARS" "${trace[@]}" --db $name --shard 2/2 "$@" >/dev/null
    refuse "another $what is refused by name" 1 "$name.shard-2-of-2: not a shard of the same run as first: $what" \
        merge --db out/x.db first $name.shard-2-of-2
}
other dtype dtype --dtype bf16
other codec codec --codec f32
other record record --record summary --vectors ""
other layers "first layer" --layers 1-1
head -n 1 tokens.jsonl >less.jsonl
"$SHEARS" trace --model "$model" --tokens less.jsonl --vectors qkv -q --db less --shard 1/2 >/dev/null
refuse "other texts are refused by name" 1 "less.shard-1-of-2: .*texts" merge --db out/x.db first less.shard-1-of-2
cp second older
sqlite3 older "UPDATE run SET program = '0.0.9'; UPDATE shard SET program = '0.0.9'"
refuse "another version of the program" 1 "older: .*program version.*0\.0\.9" merge --db out/x.db first older
golden_tokens gpt2 >gpt2.jsonl
"$SHEARS" trace --model "$checkpoints/gpt2" --tokens gpt2.jsonl -q --db gpt2 --shard 1/1 >/dev/null
refuse "another model" 1 "gpt2.shard-1-of-1: .*model.*gpt2" merge --db out/x.db first gpt2.shard-1-of-1
cp first changed
sqlite3 changed "UPDATE scores SET blob = (SELECT blob FROM scores AS s WHERE s.sequence = scores.sequence AND
    s.layer = scores.layer AND s.head = scores.head + 1 AND s.first_row = scores.first_row) WHERE head = 0"
run merge --db out/x.db first changed
expect "an overlap that differs is named" 1 "" "^shears: changed: sequence [0-9]+, layer [0-9]+ differs from that in out/x.db"
rm -rf out && mkdir out
for record in full sparse; do
    "$SHEARS" "${trace[@]}" --record $record --db $record --shard 1/2 >/dev/null
    cp $record.shard-1-of-2 rotten
    sqlite3 rotten "UPDATE scores SET blob = substr(blob, 1, length(blob) - 1) || x'55' WHERE layer = (SELECT max(layer)
        FROM scores)"
    run merge --db out/x.db rotten
    expect "a blob that rotted, of --record $record, is named" 1 "" "^shears: rotten: sequence [0-9]+, layer [0-9]+: .*damaged"
    run verify --db out/x.db -q
    expect "and not taken over" 0 "^sound +yes" ""
    rm -rf out && mkdir out
done
"$SHEARS" "${trace[@]}" --db thirds --shard 2/3 >/dev/null
refuse "one of another number of shards" 1 "thirds.shard-2-of-3: .*it is one of 3 parts, expected one of 2" \
    merge --db out/x.db first thirds.shard-2-of-3
said "nothing was merged: leave out this file"
late() { # what, OUT that an earlier command made, file, message
    sqlite3 $2 .dump >log/before
    run merge --db $2 $3 -q
    expect "$1, when OUT is there, is refused by name" 1 "" "^shears: $3: not a shard of the same job as $2: (its? )?$4"
    sqlite3 $2 .dump >log/after
    holds "$1: before anything is written" cmp log/before log/after
}
run merge --db earlier.db first -q
late "a trace in another number of shards" earlier.db thirds.shard-2-of-3 "is one of 3 parts, expected one of 2"
head -c 3000 /dev/urandom >noise
refuse "noise" 1 "noise" merge --db out/x.db first noise
said ""
mkdir folder && mkfifo pipe
for missing in "folder: not a file" "pipe: not a file" "none: cannot be opened"; do
    refuse "$missing" 1 "$missing" merge --db out/x.db first ${missing%%:*}
    said ""
done
refuse "nothing to merge" 2 "merge .*files" merge --db out/x.db
cp first out/first
run merge --db out/first second out/first
expect "OUT among the files is refused" 2 "" ".*input file out/first"
rm -rf out && mkdir out
ln -s out/x.db link
for order in "link first" "first link"; do
    refuse "so is a link to it, before it is there" 2 "--db out/x.db: .*input file link" \
        merge --db out/x.db $order
done
ln -s x.db out/link
run merge --db out/link first
expect "a link to nothing is not replaced" 1 "" "^shears: out/link: a link to a file that does not exist"
holds "it stays" [ -L out/link ]
cp second out/x.db
run merge --db out/link first -q
expect "one to a store is followed" 0 "^layers of sequences, new +[1-9]" ""
holds "and stays" [ -L out/link ]
holds "with all of it in the store" same one.db out/x.db
rm -rf out && mkdir out
for wrong in 0/2 3/2 1/0 x 1/2x; do
    refuse "--shard $wrong" 2 "--shard: .*$wrong.* I/N" "${trace[@]}" --db out/x.db --shard $wrong
done

# ---- shards of replay and eval ----

cp one.db all.db && cp one.db parts.db
replay=(replay --policy window h2o tova --budget 0.25,0.5,0.75 -q)
run "${replay[@]}" --db all.db
sums parts.db
for i in 1 2 3; do run "${replay[@]}" --db parts.db --shard $i/3; expect "replay, shard $i" 0 "kept mass" ""; done
holds "a shard does not write to the store it reads" md5sum --quiet -c log/sums
run merge --db parts.db parts.db.shard-1-of-3 parts.db.shard-3-of-3
run verify --db parts.db -q
expect "a missing shard of replay is told" 0 "^shards missing +replay 2 of 3" ""
run merge --db parts.db parts.db.shard-*
holds "replay in shards: what one process finds" same all.db parts.db
run "${replay[@]}" --db parts.db
expect "and it is found there" 0 "9 of 9 rows .*store; --force" ""
run "${replay[@]}" --db one.db --shard 2/4
refuse "a shard of another split" 1 "one.db.shard-2-of-4: not a shard of the same job as parts.db.shard-1-of-3: .*4 parts, expected .*3" \
    merge --db out/x.db parts.db.shard-1-of-3 one.db.shard-2-of-4
late "a replay in another number of shards" parts.db one.db.shard-2-of-4 "is one of 4 parts, expected one of 3"
evaluate=(eval --model "$model" --tokens tokens.jsonl --policy full window h2o --budget 0.5,0.75 -q)
run "${evaluate[@]}" --db e1.db
for i in 1 2; do run "${evaluate[@]}" --db e2.db --shard $i/2; done
run merge --db e2.db e2.db.shard-*
holds "eval in shards: what one process finds" same e1.db e2.db
run merge --db e3.db e2.db.shard-1-of-2 -q
cp e2.db.shard-2-of-2 older
sqlite3 older "UPDATE shard SET program = '0.0.9'"
late "an eval of another version of the program" e3.db older "program version is 0.0.9, expected"
"$SHEARS" "${evaluate[@]}" --db e3 --shard 2/3 >/dev/null
late "an eval in another number of shards" e3.db e3.shard-2-of-3 "is one of 3 parts, expected one of 2"
run merge --db e3.db parts.db.shard-*-of-3 e1.db -q
expect "a job of another command joins it" 0 "^sets of results, new +11" ""
run merge --db e3.db e2.db.shard-2-of-2 -q
run verify --db e3.db -q
expect "and what belongs there does" 0 "^shards missing +none" ""

cp e1.db other.db
sqlite3 other.db "UPDATE result SET value = value + 1 WHERE metric = 'kl'"
run merge --db out/kept.db e1.db other.db -q
expect "results that differ between two files are named" 1 "" "^shears: other.db: the results of eval differ"
said "merge replaces nothing: merge these files into another store"
holds "what was merged of the first stays" same e1.db out/kept.db
rm -rf out && mkdir out

# ---- dozens of shards ----

dozens() { # what, arguments...: 48 shards next to 48.db
    for i in $(seq 48); do "$SHEARS" "${@:2}" --db 48.db --shard $i/48 >/dev/null || not_ok "$1: shard $i/48"; done
    "$SHEARS" "${@:2}" --db whole.db >/dev/null
    run merge --db 48.db 48.db.shard-*-of-48 -q
    expect "$1: 48 shards are merged" 0 "^files +48$" ""
    holds "$1: what one process writes" same whole.db 48.db
    run verify --db 48.db -q
    expect "$1: complete" 0 "^complete +yes" ""
    for i in $(seq 48); do
        [ "$(sqlite3 "$(printf 48.db.shard-%02d-of-48 $i)" "SELECT (SELECT count(*) FROM done) +
            (SELECT count(DISTINCT settings) FROM result)")" = 1 ] || echo $i
    done >uneven
    holds "$1: each had a part of it" cmp uneven /dev/null
    rm 48.db* whole.db
}
python -c 'import json, sys
t = json.loads(open("tokens.jsonl").readline())
for i in range(48 // int(sys.argv[1])): print(t[i:i + 8])' $n_layer >short.jsonl
dozens trace trace --model "$model" --tokens short.jsonl --threads 1 -q
dozens simulate simulate --model opt-125m --gpu A100-SXM-80GB --rate "$(seq -s, 48)" --requests 20 --prompt 300 \
    --output 30 -q

# ---- killed while it merges ----

for i in $(seq $cells); do "$SHEARS" "${trace[@]}" --db many --shard $i/$cells >/dev/null; done
for ms in 005 010 020 040; do
    timeout -s KILL 0.$ms "$SHEARS" merge --db out/killed.db many.shard-* -q >log/out 2>&1 || true
    if [ -e out/killed.db ]; then
        run verify --db out/killed.db -q
        expect "killed after $ms ms: what is there is sound" 0 "^sound +yes" ""
    else
        ok "killed after $ms ms: there is no file yet"
    fi
done
run merge --db out/killed.db many.shard-* -q
expect "the same command finishes" 0 "^layers" ""
holds "the same content" same one.db out/killed.db
holds "no other file is left" [ "$(ls -A out)" = killed.db ]

# ---- ids that are no numbers must not become others in the output ----

cp one.db odd.db
python3 - <<'P'
import sqlite3
db = sqlite3.connect("odd.db")
db.executescript("""DROP VIEW trace_summary; CREATE TABLE loose (id, run, source, n_tokens, tokens);
INSERT INTO loose SELECT id, run, source, n_tokens, tokens FROM sequence; DROP TABLE sequence;
ALTER TABLE loose RENAME TO sequence; UPDATE sequence SET id = x'' WHERE id = (SELECT min(id) FROM sequence);""")
P
run merge --db out/odd.db odd.db -q
expect "a sequence whose id is no number" 1 "" "odd.db: damaged: table sequence: id is NULL"
finish
