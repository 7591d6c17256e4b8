#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shears import: PyTorch's attention of the golden checkpoints gives what our own trace of them gives; shapes,
# types and names; what is not causal; what is refused, and that nothing is left of it.
. "$(dirname "$0")/lib.sh"

good() { # description, arguments...: imports into out/
    local what=$1
    shift
    run import -q "$@"
    [ $status = 0 ] || { not_ok "$what"; sed 's/^/# /' log/err; }
}
rows_of() { # store: every row of it, by a sum over its blobs
    python -c 'import sys; from scores import blobs; import hashlib
print(hashlib.sha256(repr(sorted((str(k), v) for k, v in blobs(sys.argv[1]).items())).encode()).hexdigest())' "$1"
}

# ---- PyTorch's attention replays as our own trace ----

for name in opt llama_gqa mistral; do
    set -- --d-head $(python -c 'import json, sys; print(json.load(open(sys.argv[1]))["head_dim"])' "$checkpoints/$name/ref.json")
    [ $name = llama_gqa ] && set -- "$@" --kv-heads 2
    [ $name = mistral ] && set -- "$@" --window 24 --kv-heads 2
    golden_tokens $name >tokens.jsonl
    run trace --model "$checkpoints/$name" --db own.db --tokens tokens.jsonl --codec f32 -q
    good "import of $name" --db theirs.db --attention "$checkpoints/$name/ref.safetensors" --tokens tokens.jsonl \
        --codec f32 --name $name "$@"
    for db in own theirs; do
        run persistence --db $db.db --json -q && mv log/out persistence-$db.json
        run replay --db $db.db --policy window streaming:sinks=2 h2o:recent=3 scissorhands:window=20,recent=3,drop=1 oracle \
            --budget 0.2,0.5 --json -q && mv log/out replay-$db.json
    done
    holds "$name: persistence and replay of what PyTorch recorded are those of our trace, within 0.001" python - <<'P'
from dumps import *
for what in "persistence", "replay":
    mine, theirs = (json.load(open(f"{what}-{who}.json")) for who in ("own", "theirs"))
    mine["weights"], mine["db"] = theirs["weights"], theirs.get("db")
    theirs.setdefault("db", None)
    assert len(theirs.get("results", theirs.get("layers"))) > 1
    near(mine, theirs, 1e-3, what)
P
    rm -f own.db theirs.db
done

# ---- the same numbers in other shapes, names and types ----

python - <<'P'
from dumps import *
shape, x = reference("opt")
layers, heads, n, _ = shape
size = heads * n * n
part = lambda l: x[l * size:(l + 1) * size]
write_safetensors("stack.safetensors", {"attentions": ("F32", [layers, 1, heads, n, n], x)})
write_safetensors("names.safetensors", {f"s7.l{l}.attn": ("F32", [1, heads, n, n], part(l)) for l in range(layers)})
write_safetensors("other.safetensors", {f"dec.{l}.attn.w": ("F32", [heads, n, n], part(l)) for l in range(layers)})
write_npy("all.npy", "F32", shape, x)
for l in range(layers):
    write_npy(f"layer_{l}.npy", "F32", [1, heads, n, n], part(l))
for kind in "F16", "BF16":
    write_safetensors(f"{kind}.safetensors", {"s0.attn": (kind, shape, x)})
two = [y for l in range(layers) for _ in range(2) for y in part(l)]
write_safetensors("batch.safetensors", {"x": ("F32", [layers, 2, heads, n, n], two)})
P
good "opt, once more" --db one.db --attention all.npy --codec f32 --name x
one=$(rows_of one.db)
for how in stack names "other --key dec.{layer}.attn.w"; do
    set -- $how
    good "$how" --db out/$1.db --attention $1.safetensors --codec f32 --name x "${@:2}"
    verdict "the same rows from $how" "$([ "$(rows_of out/$1.db)" = "$one" ] || echo "# other rows")"
done
good "two .npy files" --db out/npy.db --attention layer_0.npy layer_1.npy --key 'layer_{layer}' --codec f32 --name x
verdict "the same rows from one .npy a layer" "$([ "$(rows_of out/npy.db)" = "$one" ] || echo "# other rows")"
good "a batch" --db out/batch.db --attention batch.safetensors --codec f32
run info out/batch.db --json
expect "a batch is as many sequences" 0 '^ "sequences": 2,$' ""
for kind in F16 BF16; do
    good "$kind" --db out/$kind.db --attention $kind.safetensors --codec f32
    holds "$kind: rounded scores" python - $kind <<'P'
import sys
from scores import head
for mine, theirs in zip(head(f"out/{sys.argv[1]}.db", 0, 1, 2), head("one.db", 0, 1, 2)):
    assert all(abs(a - b) <= b / 256 + 6e-8 for a, b in zip(mine, theirs))
P
done

good "log8" --db out/log8.db --attention all.npy
holds "log8: at most 4 % off, and above K/n what was above it" python - <<'P'
from scores import head
for layer, which in (0, 0), (1, 2):
    for q, (mine, theirs) in enumerate(zip(head("out/log8.db", 0, layer, which), head("one.db", 0, layer, which))):
        for a, b in zip(mine[:q + 1], theirs):
            assert abs(a - b) <= 0.04 * b or b < 1e-8, (q, a, b)
            assert all((a > k / (q + 1)) == (b > k / (q + 1)) for k in (1, 2, 5, 10)), (q, a, b)
P

# ---- again, and on behind what is there ----

whole() { python -c 'import sqlite3; print(*sqlite3.connect("one.db").iterdump(), sep="\n")' | sha256sum; }
sum=$(whole)
good "again" --db one.db --attention all.npy --codec f32 --name x
verdict "the same command again changes nothing" "$(
    got=$(python -c 'import sqlite3; d = sqlite3.connect("one.db")
print(*[d.execute("SELECT count(*) FROM " + t).fetchone()[0] for t in ("run", "sequence", "scores", "done")])')
    [ "$got" = "1 1 8 2" ] && [ "$sum" = "$(whole)" ] || echo "# $got, or other contents")"
python -c 'import sqlite3; d = sqlite3.connect("one.db")
for table in "done", "scores": d.execute(f"DELETE FROM {table} WHERE layer = 1")
d.commit()'
good "what is missing" --db one.db --attention all.npy --codec f32 --name x
verdict "an import goes on behind what was written" "$([ "$(rows_of one.db)" = "$one" ] || echo "# other rows")"

# ---- levels, vectors, padding ----

for record in sparse summary; do
    good "$record" --db out/$record.db --attention all.npy --record $record --codec f32 --name x
    for db in one out/$record; do run persistence --db $db.db --alpha 5/t --recent 10 --json -q && mv log/out $(basename $db).json; done
    holds "$record: persistence is that of the full rows" python -c 'import sys; from dumps import *
near(json.load(open("one.json")), json.load(open(sys.argv[1])), 1e-9)' $record.json
done
python - <<'P'
from dumps import *
n, d = 20, 4
rng = random.Random(3)
v = lambda heads: [rng.gauss(0, 1) for _ in range(heads * n * d)]
tensors = {"s0.l0.attn": ("F32", [4, n, n], softmax_rows(4, n, n, causal=True)), "s0.l0.q": ("F32", [4, n, d], v(4)),
           "s0.l0.k": ("F32", [2, n, d], v(2)), "s0.l0.v": ("F32", [2, n, d], v(2))}
write_safetensors("vectors.safetensors", tensors)
json.dump(tensors["s0.l0.v"][2], open("v.json", "w"))
json.dump(list(range(16)), open("short.jsonl", "w"))
P
good "vectors" --db out/vectors.db --attention vectors.safetensors --codec f32
run replay --db out/vectors.db --policy window --budget 0.5 --json -q
expect "with values a replay knows the output error" 0 '"output_error": 0\.' ""
run info out/vectors.db --json
expect "vectors say how many KV heads there are" 0 '"kv_heads": 2' ""
good "padding" --db out/padding.db --attention vectors.safetensors --codec f32 --tokens short.jsonl
run info out/padding.db --json
expect "a line of fewer tokens leaves the padding out" 0 '"tokens": 16' ""
run verify --db out/padding.db -q
expect "and what is there is sound" 0 "^complete +yes" ""

# ---- what is not causal ----

python - <<'P'
from dumps import *
write_safetensors("encoder.safetensors", {"s0.l0.attn": ("F32", [2, 30, 30], softmax_rows(2, 30, 30)),
                                          "s0.l1.attn": ("F32", [2, 30, 30], softmax_rows(2, 30, 30, 2))})
write_safetensors("cross.safetensors", {"s0.l0.attn": ("F32", [2, 9, 30], softmax_rows(2, 9, 30))})
P
version() { python -c 'import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute("PRAGMA user_version").fetchone()[0])' "$1"; }
for kind in encoder:bidirectional:3600 cross:cross:540; do
    IFS=: read -r name kind scores <<<"$kind"
    good "$name" --db out/$name.db --attention $name.safetensors --kind $kind --codec f32
    run verify --db out/$name.db -q
    expect "$kind: verify" 0 "^sound +yes" ""
    run info out/$name.db --json
    expect "$kind: every score is counted" 0 "\"scores\": $scores,\$" ""
    run export --db out/$name.db --sequence 0 --layer 0 --head 1 -o out/head.tsv
    holds "$kind: export gives what was imported" python - $name <<'P'
import sys
from dumps import *
(heads, n, keys), x = read_safetensors(sys.argv[1] + ".safetensors")["s0.l0.attn"]
lines = [line.split("\t") for line in open("out/head.tsv")][1:]
assert len(lines) == n * keys
for q, k, score in lines:
    assert abs(float(score) - x[n * keys + int(q) * keys + int(k)]) < 1e-9
P
    for command in "persistence" "replay --policy window --budget 0.5" "theory" "plan --policy h2o --budget 0.5 -o p.json"; do
        run $command --db out/$name.db -q
        expect "$kind: ${command%% *} says why not" 2 "" "run 1 \($name\).* not causal"
    done
    verdict "$kind: the store has version 3" "$([ "$(version out/$name.db)" = 3 ] || echo "# it has not")"
    run merge --db joined.db out/$name.db -q
    expect "$kind: merged" 0 "^layers of sequences, new +[1-9]" ""
    verdict "$kind: the merged store has it, too" "$([ "$(version joined.db)" = 3 ] || echo "# it has not")"
    rm joined.db
done
if command -v gnuplot >/dev/null; then
    run plot heatmap --db out/encoder.db --layer 1 -o out/map.svg
    expect "bidirectional: a heatmap" 0 "" ""
    run plot heatmap --db out/cross.db -o out/cross.svg
    expect "cross: a heatmap" 0 "" ""
fi

# ---- maps: of long texts a cell is several scores, and positions stay those of the text ----

python - <<'P'
from dumps import *
def seen(n, window):
    whole = softmax_rows(1, n, n, causal=True)
    rows = [[x if q - k < window else 0.0 for k, x in enumerate(whole[q * n:(q + 1) * n])] for q in range(n)]
    return [x / sum(row) for row in rows for x in row]
write_safetensors("long.safetensors", {"s0.l0.attn": ("F32", [1, 540, 540], softmax_rows(1, 540, 540, causal=True))})
write_safetensors("window.safetensors", {"s0.l0.attn": ("F32", [1, 530, 530], seen(530, 60))})
write_safetensors("keys.safetensors", {"s0.l0.attn": ("F32", [1, 20, 1030], softmax_rows(1, 20, 1030))})
P
for map in "long 0 0 17 538" "window 60 59 529" "keys -1 0 19"; do
    read -r name window rows <<<"$map"
    what="--window $window"
    [ "$window" != -1 ] || what="--kind cross"
    good "$name" --db out/$name.db --attention $name.safetensors --codec f32 $what
    run plot heatmap --db out/$name.db --rows "${rows// /,}" --script -o out/$name.gp --data out/$name.tsv
    expect "$name: its map" 0 "" ""
    holds "$name: cells that are several scores say so" grep -q "score, [123] × [123] pooled" out/$name.gp
    holds "$name: cells are the largest of their scores" python "$cli/maps.py" $name.safetensors out/$name.tsv $window $rows
done
run plot heatmap --db out/long.db --rows 3,540 --script -o out/x.gp
expect "a row beyond the text" 2 "" "--rows: out/long.db: sequence 0 has the queries 0 to 539, found 540"
verdict "and nothing is drawn" "$([ ! -e out/x.gp ] || echo "# out/x.gp is there")"
rm -rf out && mkdir out

# ---- what is refused ----

python - <<'P'
from dumps import *
n = 6
rows = softmax_rows(2, n, n, causal=True)
def spoilt(path, change, kind="F32", shape=[2, n, n]):
    x = list(rows)
    change(x)
    write_safetensors(path + ".safetensors", {"s0.l3.attn": (kind, shape, x)})
at = lambda head, q, k: (head * n + q) * n + k
def put(place, value):
    def change(x): x[place] = value
    return change
spoilt("fine", lambda x: None)
spoilt("nan", put(at(1, 4, 2), math.nan))
spoilt("negative", put(at(0, 2, 1), -0.25))
spoilt("later", lambda x: (put(at(1, 3, 5), 0.5)(x)))
spoilt("sum", put(at(1, 5, 0), 0.9))
spoilt("double", lambda x: None, "F64")
spoilt("flat", lambda x: None, shape=[2 * n, n])
spoilt("oblong", lambda x: None, shape=[1, 2 * n, n])
write_safetensors("holes.safetensors", {f"s{s}.l{l}.attn": ("F32", [2, n, n], rows) for s, l in ((0, 0), (0, 1), (1, 1))})
write_safetensors("heads.safetensors", {"s0.l0.attn": ("F32", [2, n, n], rows),
                                        "s0.l1.attn": ("F32", [1, n, n], rows[:n * n])})
write_safetensors("lone.safetensors", {"s0.l0.attn": ("F32", [2, n, n], rows), "s0.l0.q": ("F32", [3, n, 1], [0.5] * 3 * n)})
write_safetensors("infinite.safetensors", {"s0.l0.attn": ("F32", [2, n, n], rows),
                                           "s0.l0.q": ("F32", [2, n, 1], [0.5] * 7 + [math.inf] + [0.5] * 4)})
write_npy("f8.npy", "F64", [2, n, n], rows)
open("long.jsonl", "w").write(str(list(range(n + 1))))
open("none.npy", "wb").write(b"\x93NUMPY\1\0\x10\0{'descr': '<f4'}\n")
P
wrong() { refuse "$1" "$2" "$3" import --db out/x.db -q --attention "${@:4}"; }
wrong "a score that is no number" 1 "sequence 0, layer 3, head 1, row 4: found nan at key 2" nan.safetensors
wrong "a score below 0" 1 "head 0, row 2: found -0.25 at key 1" negative.safetensors
wrong "a score of a later key" 1 "head 1, row 3: found 0.5 at key 5, expected 0" later.safetensors
wrong "a row that does not sum to 1" 1 "head 1, row 5: its 6 scores sum to .*, expected 1 within 0.001" sum.safetensors
wrong "rows that a window cuts" 1 "row 2: its 2 scores sum to" fine.safetensors --window 2
wrong "a padded row" 1 "4 tokens|line 1: found 7 tokens, expected at most .*6 queries of sequence 0 of" fine.safetensors --tokens long.jsonl
wrong "f64" 1 "found dtype F64, expected F32, F16 or BF16" double.safetensors
wrong "f64 of numpy" 1 "found dtype F64" f8.npy
wrong "two dimensions" 1 "is \[12, 6\]: expected 3 to 5 dimensions" flat.safetensors
wrong "more queries than keys" 1 "12 queries and 6 keys" oblong.safetensors
wrong "a layer that is missing" 1 "sequence 1, layer 0, attn: is missing" holes.safetensors
wrong "another number of heads" 1 "layer 1, attn: found \[1, 6, 6\], expected \[2, 6, 6\]" heads.safetensors
wrong "vectors of other heads" 1 "layer 0, q: found \[3, 6, 1\], expected \[2, 6, 1\]" lone.safetensors
wrong "an infinite vector" 1 "q, head 1, token 1: found inf" infinite.safetensors
wrong "a header that ends early" 1 "none.npy: malformed header" none.npy
wrong "a name that fits nothing" 1 "no tensor name matches .*found 1: 's0.l3.attn'" fine.safetensors --key 'x{layer}'
wrong "a pattern with other braces" 2 "expected \{sequence\}, \{layer\} or \{kind\}" fine.safetensors --key 'x{head}'
wrong "KV heads that do not divide" 2 "--kv-heads: .*3.* 2 query heads" fine.safetensors --kv-heads 3
wrong "statistics of what is not causal" 2 "--kind bidirectional .*--record full" fine.safetensors --kind bidirectional --record summary
wrong "a window of what is not causal" 2 "--window .*--kind causal" fine.safetensors --kind cross --window 5
wrong "vectors that are not there" 2 "has no k" fine.safetensors --vectors k
wrong "no such file" 1 "nothing.safetensors: cannot be opened" nothing.safetensors
refuse "no file at all" 2 "import .*--attention FILE$" import --db out/x.db
cp fine.safetensors same.safetensors
run import --attention same.safetensors --db same.safetensors
expect "the store over its source" 2 "" "--db"
finish
