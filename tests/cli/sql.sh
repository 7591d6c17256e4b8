#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The SQL functions and views, from the sqlite3 shell: the scores they give are those that export writes.
. "$(dirname "$0")/lib.sh"

module=${SHEARS%/*}/shears_sql
query() { sqlite3 -batch "$@" 2>log/err; }
command -v sqlite3 >/dev/null || { echo "1..0 # SKIP the sqlite3 program is not here"; exit 0; }
if ! query :memory: ".load $module" "SELECT 1" >/dev/null && grep -q ASan log/err; then
    echo "1..0 # SKIP the module holds a sanitizer, sqlite3 does not"
    exit 0
fi

golden_tokens opt >tokens.jsonl
for record in full sparse; do
    run trace --model "$checkpoints/opt" --tokens tokens.jsonl --db out/$record.db --record $record -q
    expect "a $record store" 0 . ""
    run export --db out/$record.db --sequence 1 --layer 1 --head 2 -o out/$record.tsv
    query out/$record.db ".load $module" "SELECT q.value || '	' || k.value || '	' || printf('%.9g',
            shears_score(blob, codec, first_row, n_rows, window, q.value, k.value))
        FROM scores, json_each('[0,1,17,64,87]') AS q, json_each('[0,1,5,17,40,87]') AS k
        WHERE sequence = 1 AND layer = 1 AND head = 2 AND k.value <= q.value" | sort >sql.tsv
    grep -P '^(0|1|17|64|87)\t(0|1|5|17|40|87)\t' out/$record.tsv | sort >export.tsv
    holds "$record: shears_score gives what export writes" python - <<'P'
read = lambda path: [[float(x) for x in line.split()] for line in open(path)]
sql, exported = read("sql.tsv"), read("export.tsv")
assert len(sql) == len(exported) == 18, (len(sql), len(exported))
for a, b in zip(sql, exported):
    assert a[:2] == b[:2] and abs(a[2] - b[2]) <= 1e-8 * max(a[2], b[2]), (a, b)
P
done
holds "a row as JSON sums to 1" python -c "
import json, sys
row = json.loads(sys.argv[1]); assert len(row) == 31 and abs(sum(row) - 1) < 0.05, row" \
    "$(query out/full.db ".load $module" "SELECT shears_row_json(blob, codec, first_row, n_rows, window, 30)
        FROM scores WHERE sequence = 1 AND layer = 0 AND head = 0")"
verdict "a row as a blob has four bytes a key" "$(
    got=$(query out/full.db ".load $module" "SELECT length(shears_row(blob, codec, first_row, n_rows, window, 30)),
        shears_row(blob, codec, first_row, n_rows, window, 88) IS NULL FROM scores WHERE sequence = 1 LIMIT 1")
    [ "$got" = "124|1" ] || echo "# expected 124|1, found $got")"
query out/full.db ".load $module" "SELECT shears_row(substr(blob, 1, 40), codec, first_row, n_rows, window, 3) FROM scores" >/dev/null
verdict "a damaged blob is an SQL error" "$(grep -q damaged log/err || { echo "# expected damaged, found:"; sed 's/^/# /' log/err; })"

cp out/full.db older.db
query older.db "PRAGMA user_version = 1" >/dev/null
query older.db ".load $module" >/dev/null
verdict "a store of an older version is refused" "$(grep -q 'version 1, shears_sql reads version 2' log/err || sed 's/^/# /' log/err)"

run persistence --db out/full.db -q
verdict "the views answer" "$(
    got=$(query out/full.db "SELECT sequences, tokens, layers_done, layers_wanted FROM trace_summary")
    [ "$got" = "2|128|4|4" ] || echo "# trace_summary: $got"
    got=$(query out/full.db "SELECT count(*) FROM persistence_per_layer WHERE settings LIKE '%\"row\", \"recent\": 0,%'")
    [ "$got" = 2 ] || echo "# persistence_per_layer: $got"
    got=$(query out/full.db "SELECT sum(blocks), sum(bytes) > 0 FROM bytes_per_layer")
    [ "$got" = "16|1" ] || echo "# bytes_per_layer: $got")"
finish
