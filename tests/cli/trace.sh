#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shears trace, info and export: what is recorded, from what, and that it does not depend on threads,
# on memory or on how often the command is given. Scores are compared with PyTorch's (golden).
. "$(dirname "$0")/lib.sh"

opt=$checkpoints/opt
golden_tokens opt >tokens.jsonl
python "$cli/checkpoint.py" random worded vocab_size=561
cp "$tokenizer"/{vocab.json,merges.txt,special_tokens_map.json,tokenizer_config.json} worded
python "$cli/checkpoint.py" random deep num_hidden_layers=4 hidden_size=64 vocab_size=128
traced() { # store, arguments...: must go well
    local db=$1
    shift
    run trace --db "out/$db" -q --json "$@"
    [ $status = 0 ] || { not_ok "trace $* into $db"; sed 's/^/# /' log/err; }
}

# ---- what it says ----

for codec in f32 f16 log8; do traced $codec.db --model "$opt" --tokens tokens.jsonl --codec $codec; done
cp log/out trace.json
expect "trace --json is quiet on stderr" 0 '^ "model": "opt",$' ""
run info out/log8.db --json
cp log/out info.json
expect "info --json" 0 '^ "model": "opt",$' ""
holds "trace and info: the contract's keys, and the right numbers" python - <<'P'
from scores import *
expected = {"model": "opt", "layers": 2, "heads": 4, "kv_heads": 4, "sequences": 2, "tokens": 40 + 88,
            "scores": 2 * 4 * (40 * 41 // 2 + 88 * 89 // 2), "backend": "cpu", "dtype": "f32"}
for path in "trace.json", "info.json":
    said = load(path)
    for key, value in expected.items():
        assert said[key] == value, f"{path}: {key} is {said[key]}, expected {value}"
    assert said["bytes"] == sum(len(b) for b in blobs("out/log8.db").values()), f"{path}: bytes"
    assert abs(said["bytes_per_score"] - said["bytes"] / said["scores"]) < 1e-12, f"{path}: bytes_per_score"
    assert said["seconds"] > 0 and abs(said["tokens_per_s"] * said["seconds"] / 128 - 1) < 1e-9, f"{path}: seconds"
P
run info out/log8.db --csv
expect "info --csv: one header, one run" 0 '^run,model,weights,record,codec' ""
run info --model "$opt" --json
holds "info --model: shape and weights" python - <<'P'
from scores import *
said = load("log/out")
assert (said["layers"], said["heads"], said["hidden_size"], said["ffn_dim"], said["vocab_size"],
        said["max_positions"], said["dtype"], said["weights_bytes"]) == (2, 4, 32, 96, 128, 160, "f32", 122368), said
assert said["parameters"] == 122368 // 4 and said["tied_head"] and said["position_kind"] == "learned", said
assert said["resident_bytes"] == said["step_bytes"] == said["weights_bytes"] - 4 * 32 * (162 + 2), said      # no positions, norm
assert said["kv_bytes_per_token_f16"] == 2 * 2 * 2 * 4 * said["head_dim"] and said["local_layers"] == "none", said
P
run info --model "$checkpoints/gemma3" --json
holds "info --model: which layers are local" python - <<'P'
from scores import *
config = load(__import__("os").environ["SH_GOLDEN"] + "/checkpoints/gemma3/config.json")
config = config.get("text_config", config)
said, layers = load("log/out"), range(config["num_hidden_layers"])
kinds = config.get("layer_types")
pattern = config.get("sliding_window_pattern") or config.get("_sliding_window_pattern")
local = [i for i in layers if (kinds[i] == "sliding_attention" if kinds else (i + 1) % pattern)]
told = [i for part in said["local_layers"].split(", ") for i in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)]
assert told == local and said["window"] == config["sliding_window"], (said, local)
P
run info backends --json
expect "info backends: the processor's is there" 0 '"backend": "cpu"' ""

# ---- scores, against PyTorch ----

for codec in f32 f16 log8; do
    holds "$codec: every score is PyTorch's, rows sum to 1, zeros where masked" python - $codec <<'P'
import os, sys
from scores import *
codec = sys.argv[1]
relative, least = {"f32": (1e-4, 1e-9), "f16": (1e-3, 1e-7), "log8": (0.04, 1e-8)}[codec]
reference = read_safetensors(os.environ["SH_GOLDEN"] + "/checkpoints/opt/ref.safetensors")
for sequence in 0, 1:
    (layers, heads, n, _), scores = reference[f"s{sequence}.attn"]
    for layer in range(layers):
        for h in range(heads):
            ours = head(f"out/{codec}.db", sequence, layer, h)
            assert len(ours) == n, f"{len(ours)} rows, expected {n}"
            for q in range(n):
                at = ((layer * heads + h) * n + q) * n
                for k in range(n):
                    off = abs(ours[q][k] - scores[at + k])
                    assert off <= relative * scores[at + k] + least, \
                        f"sequence {sequence}, layer {layer}, head {h}, query {q}, key {k}: {ours[q][k]} for {scores[at + k]}"
                assert not any(ours[q][q + 1:]), f"query {q} sees a later key"
                assert abs(sum(ours[q]) - 1) < relative + 1e-6, f"row {q} sums to {sum(ours[q])}"
P
done

for kind in npy tsv safetensors; do
    run export --db out/log8.db --sequence 1 --layer 1 --head 3 -o "out/head.$kind"
    expect "export to $kind" 0 "" ""
done
holds "export: the three formats say the same" python - <<'P'
from scores import *
a, b = read_npy("out/head.npy"), read_tsv("out/head.tsv")
shape, numbers = read_safetensors("out/head.safetensors")["attention"]
assert shape == [88, 88] and a == b and [x for row in a for x in row] == list(numbers)
P
holds "export: nothing else is left in the folder" [ "$(ls out/head*)" = "$(printf 'out/head.%s\n' npy safetensors tsv)" ]

# ---- which layers, which record ----

python -c 'for i in range(12): print([(7 * i + 3 * j * j + i * j) % 128 for j in range(128)])' >many.jsonl
deep=(--model deep --random-weights --tokens many.jsonl --codec f32)
traced whole.db "${deep[@]}"
traced middle.db "${deep[@]}" --layers 1-2
traced one.db "${deep[@]}" --layers 3
holds "--layers A-B: what the whole has of these layers, and nothing else" python - <<'P'
from scores import *
same_blobs(blobs("out/middle.db"), blobs("out/whole.db", 1, 2))
same_blobs(blobs("out/one.db"), blobs("out/whole.db", 3, 3))
assert head("out/middle.db", 11, 2, 3) == head("out/whole.db", 11, 2, 3)
P
run export --db out/middle.db --sequence 0 --layer 0 --head 0 -o out/none.npy
expect "--layers A-B: the layers left out are told apart from empty ones" 1 "" "no scores of layer 0, head 0"

traced sparse.db "${deep[@]}" --record sparse
traced sparse8.db --model deep --random-weights --tokens many.jsonl --record sparse
holds "sparse: the scores from the row's mean on, and no others" python - <<'P'
from scores import *
import struct
for codec, relative in ("sparse", 0), ("sparse8", 0.04):
    for place in ((0, 0, 0), (5, 2, 1), (11, 3, 3)):
        full, some = head("out/whole.db", *place), head(f"out/{codec}.db", *place)
        for q, (a, b) in enumerate(zip(full, some)):
            for k in range(q + 1):
                wanted = a[k] if a[k] * (q + 1) >= 1 else 0
                assert abs(b[k] - wanted) <= relative * wanted or abs(a[k] * (q + 1) - 1) < 1e-6, \
                    f"{codec} {place}, query {q}, key {k}: {b[k]} for {a[k]}"
            assert not any(b[q + 1:])
P
traced summary.db "${deep[@]}" --record summary
holds "summary: statistics of every head, no scores" python - <<'P'
from scores import *
assert query("out/summary.db", "SELECT count(*) FROM scores") == [(0,)]
assert query("out/summary.db", "SELECT count(*) FROM head_stats") == [(12 * 4 * 4,)]
P
run export --db out/summary.db --sequence 0 --layer 0 --head 0 -o out/none.npy
expect "summary: there is nothing to export" 1 "" "summary.db: sequence 0: no scores"
for db in whole middle one sparse sparse8 summary f16; do
    run verify --db out/$db.db -q --json
    expect "verify: $db" 0 '"complete": true' ""
done
holds "no temporary file is left next to the stores" [ -z "$(find out -mindepth 1 ! -name '*.db' ! -name 'head.*')" ]

# ---- vectors, against the layer's own input and weights ----

traced vectors.db --model "$opt" --tokens tokens.jsonl --codec f32 --vectors qkv
run verify --db out/vectors.db -q
expect "vectors: the store is sound" 0 "^complete +yes" ""
if python -c 'import ctypes.util, sys; sys.exit(not ctypes.util.find_library("zstd"))' 2>/dev/null; then
    holds "vectors: q, k and v are the layer's norm and projections of PyTorch's hidden states" \
        python "$cli/vectors.py" "$opt" out/vectors.db
else
    skip "vectors: q, k and v" "python3 finds no libzstd"
fi
traced keys.db --model "$opt" --tokens tokens.jsonl --vectors k
holds "vectors: only the kinds that were asked for" python - <<'P'
from scores import *
assert query("out/keys.db", "SELECT kind, count(*) FROM vectors GROUP BY kind") == [("k", 2 * 2 * 4)]
P

# ---- nothing depends on threads, memory or the time of day ----

traced threads1.db "${deep[@]}" --vectors qkv --threads 1
traced threads2.db "${deep[@]}" --vectors qkv --threads 2
traced spilled.db "${deep[@]}" --vectors qkv --memory 1
holds "1 and 2 threads record the same bytes" \
    python -c 'from scores import *; same_blobs(blobs("out/threads1.db"), blobs("out/threads2.db"))'
holds "hidden states in a file give the same bytes" \
    python -c 'from scores import *; same_blobs(blobs("out/threads2.db"), blobs("out/spilled.db"))'
holds "hidden states in a file: the file is gone" [ -z "$(find out -name 'shears-??????')" ]
traced seed1.db "${deep[@]}" --seed 1
holds "another seed makes other weights" python -c '
from scores import *
a, b = blobs("out/whole.db"), blobs("out/seed1.db")
assert a.keys() == b.keys() and all(a[k] != b[k] for k in a)'

cp trace.json before.json
traced log8.db --model "$opt" --tokens tokens.jsonl --codec log8
holds "the same command again: says the same, computes nothing, adds nothing" python - <<'P'
from scores import *
before, after = load("before.json"), load("log/out")
assert abs(after["seconds"] - before["seconds"]) < 0.5 * before["seconds"] + 0.05, (before["seconds"], after["seconds"])
for key in before:
    assert key in ("seconds", "tokens_per_s", "peak_memory_bytes") or before[key] == after[key], key
assert query("out/log8.db", "SELECT (SELECT count(*) FROM run), (SELECT count(*) FROM sequence)") == [(1, 2)]
P
traced log8.db --model "$opt" --tokens tokens.jsonl --codec log8 --record summary
holds "other settings: a second run in the same store" python - <<'P'
from scores import *
assert query("out/log8.db", "SELECT id, record FROM run") == [(1, "full"), (2, "summary")]
assert [s for s, in query("out/log8.db", "SELECT id FROM sequence ORDER BY run, id")] == [0, 1, 2, 3]
P
echo '[[1, 2], [3, 4]]' | python -c 'import json, sys
for line in json.load(sys.stdin): print(line)' >two.jsonl
echo '[1, 2, 3, 4]' >one.jsonl
traced cuts.db --model "$opt" --tokens two.jsonl
traced cuts.db --model "$opt" --tokens one.jsonl
holds "the same tokens cut otherwise are another run" \
    python -c 'from scores import *; t = tokens("out/cuts.db"); assert t == [[1, 2], [3, 4], [1, 2, 3, 4]], t'

# ---- texts ----

python - <<'P'
import json, os
cases = json.load(open(os.environ["SH_GOLDEN"] + "/tokenizers/e2e_opt/ref_text.json"))["cases"]
for i, case in enumerate(cases):
    open(f"text{i}.txt", "w").write(case["text"])
with open("texts.jsonl", "w") as f:
    for case in cases + cases[:1]:
        f.write(json.dumps({"id": 1, "body": case["text"]}) + "\n\n")
json.dump([case["ids"] for case in cases], open("ids.json", "w"))
json.dump(cases, open("cases.json", "w"))
P
words=(--model worded --random-weights --codec f32 --record summary)
traced text.db "${words[@]}" --text text0.txt text1.txt
traced cut.db "${words[@]}" --text text1.txt --text text0.txt --length 64
traced count.db "${words[@]}" --text text1.txt text0.txt --length 64 --count 2
traced jsonl.db "${words[@]}" --jsonl texts.jsonl --field body
traced short.db "${words[@]}" --jsonl texts.jsonl --field body --length 50 --count 2
holds "--text: each file, start token in front, as the tokenizers library cuts it" \
    python -c 'from scores import *; assert tokens("out/text.db") == load("ids.json")'
holds "--text --length: whole parts, each with a start token; a rest is left out" python - <<'P'
from scores import *
a, b = load("ids.json")
whole = lambda ids: [[2] + ids[1 + 63 * i:64 + 63 * i] for i in range(max(1, (len(ids) - 1) // 63))]
assert tokens("out/cut.db") == whole(b) + whole(a)
assert [s for s, in query("out/cut.db", "SELECT source FROM sequence ORDER BY id")] == \
    ["text1.txt:0", "text1.txt:1", "text0.txt:0"]
assert tokens("out/count.db") == whole(b)
P
holds "--jsonl --field: a sequence for each line" \
    python -c 'from scores import *; a, b = load("ids.json"); assert tokens("out/jsonl.db") == [a, b, a]'
holds "--jsonl --length --count: the first tokens of the first lines" \
    python -c 'from scores import *; a, b = load("ids.json"); assert tokens("out/short.db") == [a[:50], b[:50]]'
printf '{"tokens": [5, 6, 7], "id": "a"}\n[8, 9]\n\n{"ids": [1]}\n' >forms.jsonl
traced forms.db --model "$opt" --tokens forms.jsonl
holds "--tokens: arrays and objects" python -c 'from scores import *; assert tokens("out/forms.db") == [[5, 6, 7], [8, 9], [1]]'
run verify --db out/forms.db -q
expect "--tokens: a sequence of one token is traced too" 0 "^complete +yes" ""

# ---- the command that a run keeps can be typed as it stands ----

cp forms.jsonl "it's 'one' \$HOME.jsonl"
traced "quoted.db" --model "$opt" --tokens "it's 'one' \$HOME.jsonl"
run info out/quoted.db --json
eval "set -- $(python3 -c 'import json; print(json.load(open("log/out"))["command"])')"
holds "the kept command has every word as it was, apostrophes and all" \
    [ "$*" = "trace --db out/quoted.db -q --json --model $opt --tokens it's 'one' \$HOME.jsonl" -a $# = 9 ]

# ---- at the sqlite3 shell ----

run persistence --db out/whole.db -q
if command -v sqlite3 >/dev/null; then
    holds "view trace_summary" [ "$(sqlite3 out/whole.db 'SELECT run, model, weights, record, sequences, tokens, layers_done,
        layers_wanted FROM trace_summary')" = "1|deep|random:0|full|12|1536|48|48" ]
    holds "view bytes_per_layer" [ "$(sqlite3 out/whole.db 'SELECT layer, blocks, bytes = (SELECT sum(length(blob)) FROM scores
        AS s WHERE s.layer = b.layer) FROM bytes_per_layer AS b' | tr '\n' ' ')" = "0|48|1 1|48|1 2|48|1 3|48|1 " ]
    holds "view persistence_per_layer" [ "$(sqlite3 out/whole.db "SELECT count(*), min(ratio >= 0 AND ratio <= 1),
        min(abs(lift - ratio / density) < 0.5) FROM persistence_per_layer
        WHERE settings LIKE '%\"row\"%\"recent\": 0,%'")" = "4|1|1" ]
else
    skip "views" "there is no sqlite3 program"
fi
finish
