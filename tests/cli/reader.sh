#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A second reader (tests/oracle/shears_trace.py), written from doc/trace-format.md, against the program: every codec and
# level, rows that are not causal, vectors, statistics, damaged blobs.
. "$(dirname "$0")/lib.sh"
find_numeric
reader() { PYTHONPATH=$cli:${SH_TOP:?the source tree}/tests/oracle PYTHONDONTWRITEBYTECODE=1 "$numeric" "$@"; }

opt=$checkpoints/opt
golden_tokens opt >tokens.jsonl
for codec in f32 f16 log8; do
    run trace --model "$opt" --db $codec.db --tokens tokens.jsonl --codec $codec --vectors qkv -q
    holds "full, $codec" reader "$cli/reader.py" whole $codec.db
done
for codec in f32 log8; do
    run trace --model "$opt" --db sparse-$codec.db --tokens tokens.jsonl --codec $codec --record sparse -q
    holds "sparse, $codec" reader "$cli/reader.py" whole sparse-$codec.db
done
run trace --model "$opt" --db summary.db --tokens tokens.jsonl --record summary -q
run trace --model "$checkpoints/mistral" --db window.db --tokens <(golden_tokens mistral) -q
holds "a window" reader "$cli/reader.py" whole window.db
run import --db both.db --attention "$opt/ref.safetensors" --kind bidirectional -q
holds "rows over the same keys" reader "$cli/reader.py" whole both.db
holds "vectors: as the store has them" reader - <<'P'
import numpy as np, shears_trace
f32, f16 = shears_trace.Store("f32.db"), shears_trace.Store("f16.db")
for kind in "qkv":
    a, b = f32.vectors(1, 1, kind, 2), f16.vectors(1, 1, kind, 2)
    assert a.shape == (88, 8) and np.allclose(a, b, rtol=2**-11, atol=1e-7) and a.std() > 0.01, (kind, a.shape)
# what they are: queries and keys give the scores
q, k, p = f32.vectors(1, 1, "q", 2).astype("f8"), f32.vectors(1, 1, "k", 2).astype("f8"), f32.matrix(1, 1, 2)
s = np.where(np.tri(88, dtype=bool), q @ k.T / 8**0.5, -np.inf)
e = np.exp(s - s.max(1, keepdims=True))
assert np.abs(e / e.sum(1, keepdims=True) - p).max() < 1e-5
P
run persistence --db f32.db --alpha 5/t --recent 10 -q --json
holds "persistence per layer: columns model, alpha, recent" reader - <<'P'
import json, shears_trace
said = json.load(open("log/out"))
rows = [r for r in shears_trace.Store("f32.db").persistence_per_layer() if (r["alpha"], r["recent"]) == ("5/t", 10)]
assert [(r["model"], r["layer"], r["split"], r["run"]) for r in rows] == [("opt", 0, 0.5, 0), ("opt", 1, 0.5, 0)], rows
for row, layer in zip(rows, said["layers"]):
    assert all(row[k] == layer[k] for k in ("ratio", "density", "lift", "auc")), (row, layer)
P
run eval -q --model "$checkpoints/opt" --tokens tokens.jsonl --policy window --budget 0.5 --db f32.db --json
holds "sums of each text of an evaluation" reader - <<'P'
import json, shears_trace
r, = json.load(open("log/out"))["results"]
sums = {json.loads(s)["policy"]: x for s, x in shears_trace.Store("f32.db").sequence_sums().items()}
assert set(sums) == {"window", "full"} and len(sums["window"]) == r["sequences"], sums
tokens, rows, nll, change, kl = sums["window"].sum(0)
assert tokens == r["tokens"] and abs(nll / tokens - r["nll"]) < 1e-9 and abs(change / tokens - r["nll_change"]) < 1e-9
assert abs(kl / rows - r["kl"]) < 1e-9 and sums["full"][:, 3:].any() == False
assert shears_trace.Store("f16.db").sequence_sums() == {}
P
module=${SHEARS%/*}/shears_sql
if command -v sqlite3 >/dev/null && sqlite3 :memory: ".load $module" "SELECT 1" >/dev/null 2>&1; then
    holds "statistics: every number is that of shears_stats_json" reader "$cli/reader.py" stats summary.db "$module"
    holds "statistics of a sparse run" reader "$cli/reader.py" stats sparse-log8.db "$module"
else
    skip "statistics" "the SQL functions cannot be loaded here"
fi
both=$module
reader -c 'import sqlite3, sys; d = sqlite3.connect(":memory:"); d.enable_load_extension(True); d.load_extension(sys.argv[1])' \
    "$module" 2>/dev/null || both=
for db in f32 f16 log8 sparse-f32 sparse-log8 window both summary; do
    [ $db = summary ] && both=
    holds "damaged blobs of $db${both:+, as shears_sql takes them}" reader "$cli/reader.py" fuzz $db.db "$both"
done
sed -n '/^## Reading it from Python/,/^This reader/s/^    //p' "$SH_TOP/doc/trace-format.md" >short.py
for db in f32 f16 both; do
    [ $db = both ] && rm both.db && run import --db both.db --attention "$opt/ref.safetensors" --kind bidirectional --codec f32 -q
    run export --db $db.db --sequence 1 --layer 1 --head 2 -o program.npy
    holds "the reader in doc/trace-format.md, $db" reader -c 'import subprocess, sys, numpy as np
subprocess.run([sys.executable, "short.py", *sys.argv[1:]], check=True)
assert (np.load("short.npy") == np.load("program.npy")).all() and 10 < len(open("short.py").readlines()) <= 21
' $db.db 1 1 2 short.npy
done
for db in log8 sparse-log8; do
    reader short.py $db.db 1 1 2 none.npy >log/out 2>log/err
    status=$?
    expect "  of $db it says what to do" 1 "" "found log8 or sparse scores: use the package shears"
done
holds "what is not in a store is named" reader - <<'P'
import shears_trace
store = shears_trace.Store("log8.db")
for at in (99, 0, 0), (0, 99, 0), (0, 0, 99):
    try:
        store.matrix(*at)
        raise SystemExit(f"{at} was found")
    except ValueError as e:
        assert str(e) == "no scores of sequence %d, layer %d, head %d: the store's sequences are 0, 1" % at, e
P
holds "a store of another version, a file of another kind" reader - <<'P'
import shutil, sqlite3, shears_trace
shutil.copy("log8.db", "other.db")
db = sqlite3.connect("other.db"); db.execute("PRAGMA user_version = 9"); db.commit()
for path, why in ("other.db", "version"), ("tokens.jsonl", "not a database"):
    try:
        shears_trace.Store(path)
        raise SystemExit(f"{path} was taken")
    except (ValueError, sqlite3.DatabaseError) as e:
        assert why in str(e), e
P
finish
