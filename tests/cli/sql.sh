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

# ---- other levels, vectors, the table ----

for codec in f32 f16; do
    run trace --model "$checkpoints/opt" --tokens tokens.jsonl --db out/$codec.db --codec $codec --vectors qkv -q
    run export --db out/$codec.db --sequence 1 --layer 1 --head 2 -o out/$codec.tsv
done
run import --db out/both.db --attention "$checkpoints/opt/ref.safetensors" --kind bidirectional -q
run export --db out/both.db --sequence 1 --layer 1 --head 2 -o out/both.tsv
statement=$(sed -n '/^## Reading it by SQL/,/;$/s/^    //p' "${SH_TOP:?the source tree}/doc/trace-format.md" | grep -v '^\.load')
for db in full sparse f32 f16 both; do
    query -separator '	' out/$db.db ".load $module" "${statement/sequence = 0/sequence = 1}" >table.tsv
    holds "$db: the statement of doc/trace-format.md gives what export writes" python - out/$db.tsv $db <<'P'
import sys
read = lambda path, skip: {tuple(map(int, c[:2])): float(c[2]) for c in (l.split() for l in list(open(path))[skip:])}
sql, exported = read("table.tsv", 0), read(sys.argv[1], 1)
if sys.argv[2] == "sparse":
    exported = {at: x for at, x in exported.items() if x}
assert sql.keys() == exported.keys() and len(sql) > 500, (len(sql), len(exported))
assert all(abs(sql[at] - exported[at]) <= 1e-8 * exported[at] for at in sql)
P
done
verdict "a sparse row and its residual sum to 1" "$(
    got=$(query out/sparse.db ".load $module" "SELECT max(abs(total + shears_residual(blob, codec, first_row, n_rows, window, q) - 1)) < 0.04
        FROM (SELECT scores.*, q, sum(score) AS total FROM scores, shears_rows(blob, codec, first_row, n_rows, window)
        WHERE sequence = 1 GROUP BY scores.id, q)")
    [ "$got" = 1 ] || echo "# found $got: $(cat log/err)")"
verdict "a row that is asked for is found in the table" "$(
    got=$(query out/full.db ".load $module" "SELECT count(*), min(q), max(q) FROM scores,
        shears_rows(blob, codec, first_row, n_rows, window) WHERE sequence = 1 AND layer = 0 AND q = 70")
    [ "$got" = "284|70|70" ] || echo "# found $got")"
holds "queries and keys give the scores" python - "$(
    query out/f32.db ".load $module" "SELECT json_group_array(json(shears_vector_json(blob, codec, n_tokens, t.value)))
        FROM vectors JOIN sequence ON sequence.id = sequence, json_each('[0,1,2,3,4,5]') AS t
        WHERE sequence = 1 AND layer = 1 AND head = 2 AND kind = 'q'")" "$(
    query out/f32.db ".load $module" "SELECT json_group_array(json(shears_vector_json(blob, codec, n_tokens, t.value)))
        FROM vectors JOIN sequence ON sequence.id = sequence, json_each('[0,1,2,3,4,5]') AS t
        WHERE sequence = 1 AND layer = 1 AND head = 2 AND kind = 'k'")" "$(
    query out/f32.db ".load $module" "SELECT shears_row_json(blob, codec, first_row, n_rows, window, 5) FROM scores
        WHERE sequence = 1 AND layer = 1 AND head = 2 AND first_row = 0")" <<'P'
import json, math, sys
q, k, row = map(json.loads, sys.argv[1:])
assert len(q) == len(k) == 6 and len(q[0]) == 8
e = [math.exp(sum(x * y for x, y in zip(q[5], key)) / 8**0.5) for key in k]
assert max(abs(x / sum(e) - y) for x, y in zip(e, row)) < 1e-5, row
P
run trace --model "$checkpoints/opt" --tokens tokens.jsonl --db out/summary.db --record summary -q
holds "statistics as JSON" python - "$(query out/summary.db ".load $module" \
    "SELECT shears_stats_json(blob) FROM head_stats WHERE sequence = 1 AND layer = 1 AND head = 2")" <<'P'
import json, sys
from scores import head
said, rows = json.loads(sys.argv[1]), head("out/f32.db", 1, 1, 2)
assert said["length"] == 88 == said["rows"] and said["entries"] == 88 * 89 // 2
below = sum(x < 1 / (q + 1) for q, row in enumerate(rows) for x in row[:q + 1])
assert said["below_mean"] == below, (said["below_mean"], below)
last = [max((q for q in range(j, 88) if rows[q][j] > 1 / (q + 1)), default=None) for j in range(88)]
assert said["last"][0] == last, "the last rows for which a key was pivotal"
P
verdict "what is no block is an SQL error or NULL, never a crash" "$(
    for call in "shears_row(NULL, 2, 0, 5, 0, 1)" "shears_row('text', 'x', 0, 5, 0, 1)" "shears_row(x'', 2, 0, 5, 0, 1)" \
        "shears_row(zeroblob(100000), 2, 0, 5, 0, 1)" "shears_score(x'28b52ffd', 2, 0, 2147483647, 0, 1, 1)" \
        "shears_row(x'00', 2, 4194304, 4194304, -4194304, 4194305)" "shears_row(x'00', 2, 9e99, 5, 0, 1)" \
        "shears_vector(x'00', 0, 0, 0)" "shears_vector(x'00', 7, 3, 1)" "shears_stats_json(x'28b52ffd')" \
        "(SELECT count(*) FROM shears_rows(x'00', 2, 0, 3))" "(SELECT count(*) FROM shears_rows(NULL, 2, 0, 3, 0))"; do
        query :memory: ".load $module" "SELECT $call" >/dev/null
        code=$?
        [ $code -le 1 ] || echo "# $call: status $code"
    done)"

cp out/full.db older.db
query older.db "PRAGMA user_version = 1" >/dev/null
query older.db ".load $module" >/dev/null
verdict "a store of an older version is refused" "$(grep -q 'version 1, shears_sql reads versions 2 to 4' log/err || sed 's/^/# /' log/err)"

run persistence --db out/full.db -q
verdict "the views answer" "$(
    got=$(query out/full.db "SELECT sequences, tokens, layers_done, layers_wanted FROM trace_summary")
    [ "$got" = "2|128|4|4" ] || echo "# trace_summary: $got"
    got=$(query out/full.db "SELECT count(*) FROM persistence_per_layer WHERE settings LIKE '%\"row\", \"recent\": 0,%'")
    [ "$got" = 2 ] || echo "# persistence_per_layer: $got"
    got=$(query out/full.db "SELECT sum(blocks), sum(bytes) > 0 FROM bytes_per_layer")
    [ "$got" = "16|1" ] || echo "# bytes_per_layer: $got")"
finish
