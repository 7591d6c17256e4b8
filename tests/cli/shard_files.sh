#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A shard's file has no command and no settings in its name. Parts of a trace and of what is asked of it stand in one
# file, and merge together, before or after what came earlier; a part of another job of the same command is refused
# before anything is written, and what is there is named.
. "$(dirname "$0")/lib.sh"

golden_tokens opt >tokens.jsonl
model=$checkpoints/opt
trace=(trace --model "$model" --tokens tokens.jsonl --vectors v --threads 1 -q)
replay=(replay --policy window h2o --budget 0.25,0.5 -q)
evaluate=(eval --model "$model" --tokens tokens.jsonl --policy window h2o --budget 0.5 --threads 1 -q)
parts=(out/x.db.shard-1-of-2 out/x.db.shard-2-of-2)
both() { for i in 1 2; do run "$@" --db out/x.db --shard $i/2; expect "$1, shard $i" 0 . ""; done; }
joined() { # what, new layers, new sets of results
    run merge --db out/x.db "${parts[@]}" -q
    expect "$1: merged" 0 "^layers of sequences, new +$2$" ""
    holds "$1: so many sets of results are new" grep -Eq "^sets of results, new +$3$" log/out
}
seconds() { sqlite3 out/x.db "SELECT sum(seconds) FROM run"; }

# ---- one command after the other, into the same files ----

run "${trace[@]}" --db one.db
cells=$(sqlite3 one.db "SELECT count(*) FROM done")
run "${replay[@]}" --db one.db
run "${evaluate[@]}" --db one.db
both "${trace[@]}"
joined "a trace" $cells 0
took=$(seconds)
both "${replay[@]}"
joined "its replay" 0 4
holds "the time of the trace counts once" [ "$(seconds)" = "$took" ]
both "${evaluate[@]}"
joined "an eval" 0 3
holds "all three are what one process writes" same one.db out/x.db
joined "once more" 0 0
run verify --db out/x.db -q
expect "all of it is there" 0 "^complete +yes" ""
run merge --db out/y.db "${parts[0]}" -q
run verify --db out/y.db -q
expect "what is missing is told of each command" 0 "^shards missing +.*trace 2.*of 2" ""
holds "of replay" grep -Eq "^shards missing .*replay 2" log/out
run merge --db out/y.db "${parts[1]}" -q
holds "all three at once: the same" same one.db out/y.db

# ---- what it was measured on, and how it was asked for ----

texts() { sqlite3 "$1" "SELECT command, settings, name, texts, tokens, hash FROM measured ORDER BY 1, 2"; }
for db in x y; do
    holds "$db: the text of each set of results goes along" cmp <(texts one.db) <(texts out/$db.db)
done

asked() { sqlite3 "$1" "SELECT command, settings FROM typed ORDER BY 1, 2"; }
for db in x y; do
    holds "$db: how each set of results was asked for goes along" cmp <(asked one.db) <(asked out/$db.db)
done
lines() { sqlite3 out/x.db "SELECT DISTINCT line FROM typed WHERE command = 'replay' ORDER BY 1"; }
for i in 1 2; do echo "${replay[*]} --db out/x.db --shard $i/2"; done >typed
holds "as it was typed" cmp typed <(lines)
sqlite3 out/x.db "DELETE FROM typed; INSERT INTO typed SELECT DISTINCT command, settings, 'mine' FROM result
    WHERE command = 'eval'"
joined "once more" 0 0
holds "it comes back" cmp <(asked one.db) <(asked out/x.db)
holds "but replaces nothing" [ "$(sqlite3 out/x.db "SELECT count(*) FROM typed WHERE line = 'mine'")" = 3 ]
for db in out/x.db "${parts[@]}"; do cp $db old.${db##*/} && sqlite3 old.${db##*/} "DROP TABLE typed; DROP TABLE measured"; done
run merge --db old.x.db "${parts[@]}" -q
expect "a store from before, without such a table, takes the rest" 0 "^files +2$" ""
run merge --db out/z.db old.x.db.shard-* -q
expect "and gives it" 0 "^files +2$" ""
holds "with the same content" same one.db out/z.db

# ---- another job of the same command ----

kept() { # what, message, arguments...: refused, and the file is as it was
    sqlite3 "${parts[0]}" .dump >log/before
    run "${@:3}" --db out/x.db --shard 1/2
    expect "$1 is refused by name" 1 "" "^shears: out/x.db.shard-1-of-2: holds .*$2"
    holds "$1: what to do is said" grep -q "^hint: merge the shards of that job and remove them" log/err
    sqlite3 "${parts[0]}" .dump >log/after
    holds "$1: before anything is written" cmp log/before log/after
}
kept "a trace with another codec" "another trace: trace .*--shard 1/2" "${trace[@]}" --codec f32
kept "a replay of other budgets" "another replay: replay .*0.25,0.5" "${replay[@]/0.25,0.5/0.75}"
kept "a replay of more budgets" "part 1 of 2 of another replay" "${replay[@]/0.25,0.5/0.25,0.5,0.75}"
kept "an eval of another prefill" "another eval: eval " "${evaluate[@]}" --prefill 3
sqlite3 "${parts[0]}" "UPDATE shard SET program = '0.0.9' WHERE command = 'eval'"
kept "a part of another version" "version 0.0.9 of this program" "${evaluate[@]}"
sqlite3 "${parts[0]}" "DELETE FROM shard; DROP TABLE held; DELETE FROM typed"
kept "results that no mark and no command names" 'another replay: \{' "${replay[@]/0.25,0.5/0.75}"
rm "${parts[@]}"
run "${replay[@]/0.25,0.5/0.75}" --db out/x.db --shard 1/2
expect "when they are away a new job begins" 0 . ""
sweep=(simulate --model opt-125m --gpu A100-SXM-80GB --budget 0.2 --requests 20 --prompt 300 --output 30 -q)
both "${sweep[@]}" --rate 20
kept "another sweep" "another simulate: simulate .*--rate 20" "${sweep[@]}" --rate 40
finish
