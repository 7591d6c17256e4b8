#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shears persistence: its figures follow from the definitions, whatever was recorded: full scores,
# sparse ones or statistics.
. "$(dirname "$0")/lib.sh"

opt=$checkpoints/opt
{
    golden_tokens opt
    python -c 'for i in 1, 2: print([(11 * i + 5 * j * j + i * j + j // 7) % 128 for j in range(160 - 19 * i)])'
} >tokens.jsonl
traced() { # store, arguments...: must go well
    local db=$1
    shift
    run trace --db "$db" -q --model "$opt" --tokens tokens.jsonl "$@"
    [ $status = 0 ] || { not_ok "trace $* into $db"; sed 's/^/# /' log/err; }
}
figures() { # result, store, arguments...: persistence as JSON
    local into=$1 db=$2
    shift 2
    run persistence --db "$db" -q --json "$@"
    cp log/out "$into"
    [ $status = 0 ] || { not_ok "persistence $db $*"; sed 's/^/# /' log/err; }
}
traced full.db --codec f32
traced log8.db
traced named.db --alpha row split 3/t 0.05
traced f16.db --codec f16
traced summary.db --record summary
traced sparse.db --record sparse --codec f32
traced sparse8.db --record sparse

# ---- the contract ----

figures full.json full.db
holds "--json: the contract's keys" python - <<'P'
from scores import *
said = load("full.json")
literal = said["literal"]
assert literal == {"ratio": said["grid"][0]["ratio"], "density": said["grid"][0]["density"],
                   "lift": said["grid"][0]["lift"], "split": 0.5}, literal
assert (said["model"], said["split"], said["alpha"], said["recent"]) == ("opt", 0.5, "row", 0), said
assert [l["layer"] for l in said["layers"]] == [0, 1]
for layer in said["layers"]:
    for key in "ratio", "density", "chance", "lift", "relative_risk", "auc", "min_head":
        assert isinstance(layer[key], float), (key, layer[key])
    assert [h["head"] for h in layer["heads"]] == [0, 1, 2, 3]
    assert all(isinstance(h[key], float) for h in layer["heads"] for key in ("ratio", "density"))
assert said["sequences"] == 4 and said["tokens"] == 40 + 88 + 141 + 122 and said["unfinished"] == 0
assert [(g["alpha"], g["recent"]) for g in said["grid"]] == \
    [(a, r) for a in ("row", "2/t", "5/t", "10/t") for r in (0, 1, 10, 50)]
P
run persistence --db full.db -q
expect "tables: alpha as people write it" 0 "^alpha +1/t$" ""
expect "tables: the label, too" 0 "^layer by layer: alpha 1/t, recent 0" ""
holds "tables: the density is the chance, told once" test \
    "$(grep -c '^ *\(layer\|alpha .* split\) *ratio *density = chance *lift' log/out):$(grep -c 'density *chance' log/out)" = 2:0
run persistence --db full.db -q --columns layer,density,chance
expect "--columns: both, where they are asked for" 0 "^ *layer *density *chance$" ""
run persistence --db full.db -q --csv
holds "--csv: the layers' table with every digit" python - <<'P'
import csv
from scores import *
rows = list(csv.DictReader(open("log/out")))
assert [float(r["ratio"]) for r in rows] == [l["ratio"] for l in load("full.json")["layers"]], rows
P
run persistence --db full.db -q --per head --csv
holds "--per head: a row for each head" python - <<'P'
import csv
from scores import *
rows = [(int(r["layer"]), int(r["head"]), float(r["ratio"])) for r in csv.DictReader(open("log/out"))]
assert rows == [(l["layer"], h["head"], h["ratio"]) for l in load("full.json")["layers"] for h in l["heads"]], rows
P
run persistence --db full.db -q --per head
holds "--per head: the text table has them too" [ "$(grep -cE '^ +[01] +[0-3] +0\.' log/out)" = 8 ]

# ---- the definitions ----

defined() { # arguments...
    figures said.json full.db "$@"
    holds "by definition: ${*:-the default}" python "$cli/figures.py" full.db said.json
}
defined
defined --alpha 5/t --recent 10
defined --alpha split --split 0.25
defined --alpha 0.05 --recent 3 --split 0.7 --window 16

# ---- whatever was recorded ----

all_alphas="row 2/t 5/t 10/t split"
same() { # description, store, arguments...: the very same JSON as from full f32 scores, but for the entropy's last digits
    local what=$1 db=$2
    shift 2
    figures a.json full.db "$@"
    figures b.json "$db" "$@"
    holds "$what" python - <<'P'
from scores import *
def walk(a, b, at):
    if isinstance(a, dict):
        assert a.keys() == b.keys(), (at, a.keys() ^ b.keys())
        for key in a: walk(a[key], b[key], f"{at}.{key}")
    elif isinstance(a, list):
        assert len(a) == len(b), f"{at}: {len(a)} and {len(b)} items"
        for i in range(len(a)): walk(a[i], b[i], f"{at}[{i}]")
    else:
        near = "entropy" in at and abs(a - b) <= 5e-7 * abs(a)      # from logits, not from scores
        assert a == b or near, f"{at}: {b}, full scores give {a}"
walk(load("a.json"), load("b.json"), "")
P
}
for db in summary sparse sparse8; do
    same "$db: the default, every number as from full scores" $db.db
    same "$db: all thresholds, windows and splits likewise" $db.db --alpha $all_alphas --recent 0,1,10,50 --split 0.25,0.5,0.75
done
same "sparse: a split that is not among the recorded ones" sparse8.db --alpha 5/t --split 0.4 --recent 7
holds "the whole grid was compared" python -c 'from scores import *; g = load("a.json")["grid"]; assert len(g) >= 1, len(g)'

on_edges="row 2/t 5/t 10/t"
for db in log8 named f16 full; do
    figures $db.json $db.db --alpha $on_edges --recent 0,1,10,50
    figures $db-between.json $db.db --alpha split 3/t 0.05 --recent 0,1,10,50
done
holds "log8: every figure of a threshold on its lattice is that of f32, the means over rows are near" python - <<'P'
from scores import *
near = "entropy_nats", "normalised_entropy", "mass_top20pct"
def walk(a, b, at, seen):
    if isinstance(a, dict):
        assert a.keys() == b.keys(), (at, a.keys() ^ b.keys())
        for key in a: walk(a[key], b[key], f"{at}.{key}", seen)
    elif isinstance(a, list):
        assert len(a) == len(b), at
        for i in range(len(a)): walk(a[i], b[i], f"{at}[{i}]", seen)
    elif at.rpartition(".")[2] in near:
        seen.append(abs(a - b))
        assert abs(a - b) < 1e-3, f"{at}: {b}, f32 gives {a}"
    else:
        assert a == b, f"{at}: {b}, f32 gives {a}"
seen, exact, found = [], load("full.json"), load("log8.json")
walk(exact, found, "", seen)
assert len(exact["grid"]) == 16 and len(seen) >= 6 and max(seen) > 0, (len(exact["grid"]), seen)
P
holds "f16 and, between its edges, log8: near the figures of f32" python - <<'P'
from scores import *
def off(exact, found):
    return [(abs(a[key] - b[key]), key, a["alpha"], a["recent"])
            for a, b in zip(load(exact)["grid"], load(found)["grid"])
            for key in ("ratio", "density", "auc") if a[key] is not None]
for exact, found, most, usual, count in (("full.json", "f16.json", 0.001, 0.0001, 16),
                                         ("full-between.json", "f16-between.json", 0.001, 0.0001, 13),
                                         ("full-between.json", "log8-between.json", 0.02, 0.004, 13)):
    o = off(exact, found)
    print(found, max(o), sum(x[0] for x in o) / len(o))
    assert len(o) == 3 * count, (found, len(o))
    assert max(o)[0] < most and sum(x[0] for x in o) / len(o) < usual, (found, max(o))
P
traced own.db --record summary --alpha row 0.05 3/t split --recent 0,7 --split 0.4 --window 16
same "summary: thresholds, windows and splits of one's own" own.db --alpha row 0.05 3/t split --recent 0,7 --split 0.4 --window 16

# ---- what was not recorded ----

lacks() { # store, sentence, arguments...
    local db=$1 sentence=$2
    shift 2
    refuse "$db has no $*" 2 "$db: run 1 recorded .*without statistics for $sentence" persistence --db "$db" -q "$@"
    holds "$db has no $*: the hint tells what it has" grep -q '^hint: it has {"alphas":' log/err
}
lacks summary.db "alpha 3/t, recent 0, split 0.5, window 400" --alpha 3/t
lacks summary.db "alpha row, recent 7" --recent 7
lacks summary.db "alpha row, recent 0, split 0.4" --split 0.5,0.4
lacks summary.db "alpha row, recent 0, split 0.5, window 100" --window 100
lacks sparse.db "alpha 0.05" --alpha 0.05
lacks sparse.db "alpha split, recent 0, split 0.4" --alpha split --split 0.4
lacks own.db "alpha row, recent 10" --recent 10 --window 16 --split 0.4

holds "log8, thresholds named while tracing: those are decided as by f32, too; the codes are the same" python - <<'P'
from scores import *
near = "entropy_nats", "normalised_entropy", "mass_top20pct"
def walk(a, b, at, seen):
    if isinstance(a, dict):
        for key in a: walk(a[key], b[key], f"{at}.{key}", seen)
    elif isinstance(a, list):
        assert len(a) == len(b), at
        for i in range(len(a)): walk(a[i], b[i], f"{at}[{i}]", seen)
    elif at.rpartition(".")[2] in near:
        assert abs(a - b) < 1e-3, f"{at}: {b}, f32 gives {a}"
    else:
        seen.append(a)
        assert a == b, f"{at}: {b}, f32 gives {a}"
seen = []
for figures in "", "-between": walk(load(f"full{figures}.json"), load(f"named{figures}.json"), "", seen)
assert len(seen) > 500, len(seen)
ratios = [[g["ratio"] for g in load(f"{db}-between.json")["grid"]] for db in ("full", "log8")]
assert ratios[0] != ratios[1], "the codes alone would do"
blobs = "SELECT blob FROM scores ORDER BY sequence, layer, head, first_row"
assert query("log8.db", blobs) == query("named.db", blobs)
P
run verify --db named.db -q
expect "log8 with thresholds: the store is whole" 0 "^complete +yes" ""
traced log8.db --alpha row 10/t
holds "thresholds that the codes decide make no other run" python - <<'P'
from scores import *
assert query("log8.db", "SELECT count(*) FROM run") == [(1,)] and not query("log8.db", "SELECT * FROM head_stats")
P

# ---- the untrained twin, and unfinished runs ----

traced twins.db --codec f32
traced twins.db --codec f32 --random-weights --seed 3
traced random.db --codec f32 --random-weights --seed 3
refuse "two models in one store: one has to be chosen" 2 "twins.db: .*runs of several models \(run 1: opt, checkpoint; run 2: opt, random:3\)" \
    persistence --db twins.db -q
same "--run 1: the trained one's" twins.db --run 1
figures a.json random.db
figures b.json twins.db --run 2
holds "--run 2: the twin's, with its name" python - <<'P'
from scores import *
a, b = load("a.json"), load("b.json")
assert a == b and b["weights"] == "random:3" and a["layers"] != load("full.json")["layers"]
P
run plot persistence --db full.db random.db --script -o out/both.gp -q
expect "plot persistence: both side by side" 0 "" ""
holds "plot persistence: the script names both" grep -q 'random' out/both.gp

python "$cli/checkpoint.py" damage nan-last "$opt" nan model.decoder.layers.1.fc1.weight
run trace --db part.db -q --model nan-last --tokens tokens.jsonl --codec f32
figures part.json part.db
holds "an unfinished store: what is there, and how much is missing" python - <<'P'
from scores import *
part, full = load("part.json"), load("full.json")
assert part["unfinished"] == 4 and part["layers"] == full["layers"][:1], part["unfinished"]
P

# ---- what is kept in the store ----

figures a.json full.db --alpha 5/t --recent 10
figures a.json full.db --alpha 5/t --recent 10
holds "results are kept in the store, once" python - <<'P'
from scores import *
said = load("a.json")
kept = query("full.db", "SELECT layer, value FROM result WHERE metric = 'ratio' AND settings LIKE '%\"5/t\", \"recent\": 10, \"split\": 0.5,"
             " \"window\": 400, \"run\": 0}' ORDER BY layer")
whole = [g["ratio"] for g in said["grid"] if (g["alpha"], g["recent"]) == ("5/t", 10)]
assert kept == [(None, *whole)] + [(l["layer"], l["ratio"]) for l in said["layers"]], kept
P
run verify --db full.db -q
expect "the store is still whole" 0 "^complete +yes" ""
for n in 1 2; do figures threads$n.json full.db --threads $n; done
holds "1 and 2 threads give the same figures" cmp threads1.json threads2.json
finish
