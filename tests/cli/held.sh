#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a shard held is noted next to its mark: verify names the shards of which something is gone, merge refuses such a
# file, and one that is marked as another part than it is. Stores without the note are taken as they were before.
. "$(dirname "$0")/lib.sh"

golden_tokens opt >tokens.jsonl
model=$checkpoints/opt
command_of() { # which: $words
    case $1 in
        trace) words=(trace --model "$model" --tokens tokens.jsonl --vectors q --alpha 0.05) ;;
        replay) words=(replay --policy window h2o tova --budget 0.25,0.5) ;;
        eval) words=(eval --model "$model" --tokens tokens.jsonl --policy window h2o tova --budget 0.5,0.75) ;;
        simulate) words=(simulate --model opt-125m --gpu A100-SXM-80GB --kv f16,int8 --rate 20,40,60,60 --budget 0.2
            --requests 20 --prompt 300 --output 30) ;;
    esac
}
sql() { sqlite3 "$@"; }
# One layer, or one set of results that the second shard alone has.
only_in_second="(SELECT settings FROM second.result EXCEPT SELECT settings FROM first.result EXCEPT
    SELECT settings FROM third.result ORDER BY settings LIMIT 1)"
gone() { # which, file: something of the second shard goes from it
    case $1 in
        trace) sql "$2" "ATTACH 'trace.db.shard-2-of-3' AS second; CREATE TEMP TABLE one AS SELECT * FROM second.done
            LIMIT 1; DELETE FROM main.done WHERE (sequence, layer) IN one; DELETE FROM main.scores WHERE
            (sequence, layer) IN one; DELETE FROM main.vectors WHERE (sequence, layer) IN one; DELETE FROM
            main.head_stats WHERE (sequence, layer) IN one" ;;
        *) sql "$2" "ATTACH '$1.db.shard-1-of-3' AS first; ATTACH '$1.db.shard-2-of-3' AS second;
            ATTACH '$1.db.shard-3-of-3' AS third; DELETE FROM main.result WHERE settings IN $only_in_second" ;;
    esac
}
verified() { # description, file, complete, holes
    run verify --db "$2" -q
    local wanted=0 said=
    [ "$4" = none ] || wanted=1 said="results of these shards are missing: .*$4"
    expect "$1: $3" $wanted "^complete +$3" "$said"
    expect "$1: holes: $4" $wanted "^shards with holes +$4$" "$said"
}

for which in trace replay eval simulate; do
    command_of $which
    [ $which != replay ] || { cp trace.whole replay.db && cp trace.whole replay.whole; }
    run "${words[@]}" --db $which.whole -q
    for i in 1 2 3; do run "${words[@]}" --db $which.db --shard $i/3 -q; done
    expect "$which: three shards" 0 . ""
    holds "$which: as many rows are noted as there are" python - $which <<'P'
import collections, sqlite3, sys
which, there, noted = sys.argv[1], set(), 0
blocks = """SELECT sequence || ' ' || layer, count(*) FROM (SELECT sequence, layer FROM scores UNION ALL
    SELECT sequence, layer FROM vectors UNION ALL SELECT sequence, layer FROM head_stats) GROUP BY 1"""
for i in 1, 2, 3:
    db = sqlite3.connect(f"{which}.db.shard-{i}-of-3")
    rows = dict(db.execute(blocks if which == "trace" else "SELECT settings, count(*) FROM result GROUP BY 1"))
    if which == "eval":                                 # the full cache is each shard's, and so nobody's
        rows = {s: n for s, n in rows.items() if '"full"' not in s}
    held = db.execute("SELECT part, n_rows FROM held").fetchall()
    more = collections.Counter(n for _, n in held) - collections.Counter(rows.values())
    assert not more and {part for part, _ in held} <= {i}, (i, held, rows)
    there |= rows.keys()
    noted += len(held)
assert noted == len(there) > 3, (noted, there)          # what two have is one's
P
    parts=($which.db.shard-?-of-3) whole=$which.whole
    if [ $which = trace ] || [ $which = eval ]; then    # one process's last digits may be others
        whole=$which.joined
        run merge --db $whole "${parts[@]}" -q
    fi
    cp $which.whole out/x.db 2>/dev/null && sql out/x.db "DELETE FROM result" && [ $which = replay ] || rm -f out/x.db
    run merge --db out/x.db "${parts[@]}" -q
    verified "$which: merged" out/x.db yes none
    holds "$which: merged: the whole content" same $whole out/x.db
    gone $which out/x.db
    verified "$which: something is gone" out/x.db no "$which 2 of 3"
    run merge --db out/x.db $which.db.shard-2-of-3 -q
    verified "$which: merged again" out/x.db yes none
    holds "$which: merged again: the whole content" same $whole out/x.db
    if [ $which != trace ]; then
        sql out/x.db "DELETE FROM result WHERE id = (SELECT max(id) FROM result WHERE settings NOT LIKE '%\"full\"%')"
        run verify --db out/x.db --json -q
        expect "$which: one figure is gone" 1 "\"shards_with_holes\": ?\"$which [123] of 3\"" "results of these shards are missing"
    fi
    rm -rf out && mkdir out

    cp $which.db.shard-2-of-3 second
    gone $which second
    refuse "$which: a shard with a hole is refused by name" 1 \
        "second: part 2 of 3 of its $which .*: 1 of [0-9]+ " merge --db out/x.db $which.db.shard-1-of-3 second
    grep -q -e "--shard 2/3" log/err || not_ok "$which: what to do is said"
    cp $which.db.shard-2-of-3 kept && mv second $which.db.shard-2-of-3
    run "${words[@]}" --db $which.db --shard 2/3 -q
    expect "$which: its command makes it again" 0 . ""
    holds "$which: with what it had" same kept $which.db.shard-2-of-3
    verified "$which: made again" $which.db.shard-2-of-3 no none

    cp $which.db.shard-2-of-3 lies
    sql lies "UPDATE shard SET part = 3"
    refuse "$which: a mark that is not its own is refused by name" 1 \
        "lies: damaged: .*part 2 of job [0-9a-f]{16}" \
        merge --db out/x.db $which.db.shard-1-of-3 lies
    sql lies "UPDATE held SET part = 3"
    refuse "$which: nor is what another part holds taken" 1 \
        "lies: part 3 of job [0-9a-f]{16} .*$which.db.shard-2-of-3, part 2" \
        merge --db out/x.db $which.db.shard-1-of-3 $which.db.shard-2-of-3 lies
    refuse "$which: in whatever order" 1 "$which.db.shard-2-of-3: part 2 .* lies, part 3" \
        merge --db out/x.db lies $which.db.shard-2-of-3
    run merge --db earlier.db $which.db.shard-2-of-3 -q
    sql earlier.db .dump >log/before
    run merge --db earlier.db $which.db.shard-1-of-3 lies -q
    expect "$which: nor what an earlier merge brought" 1 "" \
        "^shears: lies: part 3 .* earlier.db, part 2"
    sql earlier.db .dump >log/after
    holds "$which: before anything is written" cmp log/before log/after
    run merge --db earlier.db "${parts[@]}" -q
    cp earlier.db in.db
    run merge --db earlier.db in.db -q
    expect "$which: what is merged may be merged" 0 "already there" ""

    for part in "${parts[@]}"; do sql $part "DROP TABLE held"; done
    cp $which.whole out/x.db && sql out/x.db "DELETE FROM result" && [ $which = replay ] || rm -f out/x.db
    run merge --db out/x.db "${parts[@]}" -q
    verified "$which: without the note" out/x.db yes none
    holds "$which: without the note: the same content" same $whole out/x.db
    gone $which out/x.db
    run verify --db out/x.db -q
    expect "$which: nothing is known of holes then" 0 "^shards with holes +none" ""
    rm -rf out earlier.db in.db && mkdir out
done

# ---- a trace that was not finished ----

command_of trace
cp trace.db.shard-1-of-3 half
sql half "DELETE FROM done; DELETE FROM scores; DELETE FROM vectors; DELETE FROM head_stats"
run merge --db out/x.db half -q
expect "a shard that was killed, and holds nothing for sure, is merged" 0 "^layers of sequences, new +0" ""
verified "and verify tells that" out/x.db no none

# ---- results that were not finished, or that another store knew ----

sweep=(simulate --model opt-125m --gpu A100-SXM-80GB --kv f16,int8 --rate "$(seq -s, 10 40)" --budget 0.2
    --requests 3000 --prompt 300 --output 200 -q)
rm -rf out && mkdir out
sets() { sql "$1" "SELECT count(DISTINCT settings) FROM result" 2>/dev/null || echo 0; }
"$SHEARS" "${sweep[@]}" --db killed.db --shard 1/2 >/dev/null 2>&1 &
pid=$!
while [ "$(sets killed.db.shard-1-of-2)" = 0 ] && kill -0 $pid 2>/dev/null; do sleep 0.02; done
kill -9 $pid 2>/dev/null
wait $pid 2>/dev/null
run merge --db out/x.db killed.db.shard-1-of-2 -q
expect "a shard of a sweep that was killed is merged" 0 "^sets of results, new +[0-9]" ""
had=$(sets out/x.db)
run verify --db out/x.db -q
expect "its part is known, and the other one" 0 "^shards missing +simulate 2 of 2" ""
expect "the store is not complete" 0 "^complete +no" ""
[ "$had" = 62 ] || expect "it is told that more is to come" 0 "^shards unfinished +simulate 1 of 2" ""
run "${sweep[@]}" --db killed.db --shard 1/2
run merge --db out/x.db killed.db.shard-1-of-2 -q
run verify --db out/x.db -q
expect "when it was done and merged again nothing is" 0 "^shards unfinished +none" ""
rm -rf out && mkdir out

cp trace.whole read.db
command_of replay
run replay --policy window h2o --budget 0.25 --db read.db -q
for i in 1 2; do run "${words[@]}" --db read.db --shard $i/2 -q; done
run merge --db out/x.db read.db.shard-* -q
verified "shards whose store knew some of it, elsewhere" out/x.db no none
expect "that something is to come" 0 "^shards unfinished +replay [12] of 2" ""
run merge --db read.db read.db.shard-* -q
verified "and there" read.db yes none
run merge --db out/x.db read.db -q
verified "and where both come together" out/x.db yes none
rm -rf out && mkdir out

# A job that began and found nothing is none in another one's way.
cp replay.whole out/x.db
run replay --policy window --budget 0.3 --db out/x.db --shard 1/2 -q
begun=$(sql out/x.db.shard-1-of-2 "SELECT count(*) FROM held")
holds "what it expects is noted" [ "$begun" -ge 1 ]
sql out/x.db.shard-1-of-2 "DELETE FROM result; UPDATE held SET n_rows = 0"
run replay --policy window --budget 0.4 --db out/x.db --shard 1/2 -q
expect "another one begins in its place" 0 . ""
holds "and the first is forgotten" [ "$(sql out/x.db.shard-1-of-2 "SELECT count(*) FROM shard")" = 1 ]
rm -rf out && mkdir out

# ---- foreign values ----

damaged() { # what, message, SQL
    cp trace.whole bad.db
    sql bad.db "CREATE TABLE shard (job, part, parts, command, program, model);
        INSERT INTO shard VALUES ('a', 1, 2, 'trace', '1', '2'); CREATE TABLE held (job, part, item, n_rows); $3"
    run verify --db bad.db -q
    expect "$1" 1 "" "^shears: bad.db: $2"
}
damaged "a job that is no text" ".*table held.*job" "INSERT INTO held VALUES (NULL, 1, 5, 1)"
damaged "a part that is a text" ".*table held.*part" "INSERT INTO held VALUES ('a', 'x', 5, 1)"
damaged "an item that is a real number" ".*table held.*item" "INSERT INTO held VALUES ('a', 1, 0.5, 1)"
damaged "more rows than there can be" ".*table held.*n_rows" "INSERT INTO held VALUES ('a', 1, 5, 1 << 40)"
damaged "fewer rows than none" ".*table held.*n_rows" "INSERT INTO held VALUES ('a', 1, 5, -1)"
damaged "the same twice" "damaged: table held: item 5 of part 1 " \
    "INSERT INTO held VALUES ('a', 1, 5, 1), ('a', 1, 5, 2)"
damaged "what another part held" "damaged: .*part 2 of job a" \
    "INSERT INTO held VALUES ('a', 2, 5, 1)"
finish
