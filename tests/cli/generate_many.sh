#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shears generate with many prompts: side by side each text is what it is alone, whatever the policy, the cache and
# the batch; they come in order; what cannot work is refused.
. "$(dirname "$0")/lib.sh"

mkdir model && cp "$SH_GOLDEN"/tasks/model/* \
    "$tokenizer"/{vocab.json,merges.txt,special_tokens_map.json,tokenizer_config.json} model
chmod -R u+w model
python3 - <<'E'
import json
texts = ["The old man", "And it came to pass in those days that there went out a decree",
         "Once upon a time there was a small house in the wood", "The sea", "", "A", "Who was there? The old man was.",
         "It was the best of times and the worst of times, and the old man and the sea were there to see it all the day"]
with open("prompts.jsonl", "w") as f:
    for i, t in enumerate(texts):
        f.write(json.dumps({"id": i, "text": t, "other": "x" + t}) + "\n")
for i, t in enumerate(texts):
    if t:
        open(f"one.{i}", "w").write(t)
E
go=(generate --model model)
lines="0 1 2 3 5 6 7"                   # line 4 is empty

# What is alone with these options, and what is side by side.
alike() { # name, options…
    local name=$1 i n
    shift
    for i in $lines; do
        run "${go[@]}" --prompt-file one.$i "$@" --dump-kept kept.$i --repetition --json -q
        cp log/out alone.$i
    done
    for n in $batches; do
        [ $n != all ] || n=
        run "${go[@]}" --jsonl prompts.jsonl ${n:+--batch $n} "$@" --dump-kept kept --repetition --json -q
        holds "$name: each of ${n:-as many as fit} side by side is what it is alone" python3 "$cli/generate_many.py" "$n" $lines
    done
}
batches="1 3 all"
alike "full cache" --max-tokens 30
batches="3 all"
alike "window, prompts as one block" --max-tokens 30 --policy window --budget 14 --prefill-mode once
alike "streaming, token by token" --max-tokens 30 --policy streaming:sinks=2 --budget 12 --prefill-mode stream
alike "h2o in blocks" --max-tokens 30 --policy h2o --budget 12 --prefill-block 5
alike "scissorhands, a prefill" --max-tokens 30 --policy scissorhands:recent=4 --budget 16 --prefill 20
alike "a share of the text" --max-tokens 30 --policy h2o --budget 0.6
alike "positions inside the cache" --max-tokens 150 --policy streaming:sinks=4 --budget 32 --positions cache
alike "4-bit codes, some texts fit and some do not" --max-tokens 20 --policy h2o --budget 30 --kv-bits 4 --kv-group 8
alike "the released rule over the padded text" --max-tokens 20 --budget 16 \
    --policy scissorhands-released:of=text,recent=4,first_layer=0,last_layer=9
alike "operands in f16" --max-tokens 20 --temperature 1 --dtype f16
alike "drawn at random, to the end token or the positions" --max-tokens 90 --temperature 1.2 --top-k 40 --stop-at-end

# More texts than the products of a few rows take together (8): whole weights, so still the same texts.
python3 -c 'for n in range(12): print([2] + [(7 * i + n) % 550 + 5 for i in range(5 + n)])' >twelve
for batch in 1 12; do
    for type in f32 f16; do
        run "${go[@]}" --tokens twelve --count 12 --batch $batch --dtype $type --max-tokens 25 --temperature 1 --json -q
        cp log/out twelve.$type.$batch
    done
done
holds "twelve side by side are what they are one by one" python3 -c 'import json
for type in "f32", "f16":
    one, all = (json.load(open(f"twelve.{type}.{n}"))["texts"] for n in (1, 12))
    assert len(one) == 12 and [t["ids"] for t in one] == [t["ids"] for t in all], type'

# An architecture whose angles follow the length of the text.
python3 - <<'E'
import json, os
folder = os.environ["SH_GOLDEN"] + "/checkpoints"
for name in sorted(os.listdir(folder)):
    config = json.load(open(f"{folder}/{name}/config.json")) if os.path.exists(f"{folder}/{name}/config.json") else {}
    rope = config.get("rope_scaling") or config.get("rope_parameters") or {}
    if (rope.get("rope_type") or rope.get("type")) in ("dynamic", "longrope"):
        print(name, file=open("follows", "w"))
E
if [ -s follows ]; then
    python3 -c 'for n in 5, 9, 14, 30: print([(7 * i + n) % 50 for i in range(n)])' >ids
    follows=(generate --model "$checkpoints/$(tail -n 1 follows)" --max-tokens 30 --json -q)
    for i in 1 2 3 4; do
        sed -n ${i}p ids >ids.$i
        run "${follows[@]}" --tokens ids.$i
        cp log/out alone.$i
    done
    run "${follows[@]}" --tokens ids --count 9
    holds "angles that follow the length are each text's own" python3 -c 'import json
many = json.load(open("log/out"))["texts"]
assert len(many) == 4, len(many)
for i, t in enumerate(many):
    assert t["ids"] == json.load(open(f"alone.{i + 1}"))["ids"], i'
else
    not_ok "there is a checkpoint whose angles follow the length"
fi

# A place that is used again: the most that a head had in use is some text's, whichever place it had.
echo "[$(seq -s, 5 24)]
[5]" >uneven
for batch in 1 2; do
    run "${go[@]}" --tokens uneven --count 2 --batch $batch --max-tokens 3 --json -q
    holds "tokens a head at most, $batch side by side" python3 -c 'import json
r = json.load(open("log/out"))
assert r["peak_tokens"] == 22 and r["texts"][0]["prompt_tokens"] == 20, r["peak_tokens"]'
done

# Positions inside the cache: the block of one text and the length of another together are more than the model has.
echo "[$(seq -s, 5 64)]
[5, 6]" >apart
run "${go[@]}" --tokens apart --count 2 --max-tokens 2 --policy window --budget 50 --prefill-block 60 --positions cache --json -q
holds "texts that each can be are written, if not in one session" python3 -c 'import json
assert [t["generated_tokens"] for t in json.load(open("log/out"))["texts"]] == [2, 2]'

# A tokenizer that leaves out the space in front of a text: behind a prompt it is there.
python3 "$cli/checkpoint.py" holes spaced vocab_size=682
cp "$SH_GOLDEN"/tokenizers/llama2_sp/tokenizer.* spaced
echo '{"text": "The old man"}' >old.jsonl
for seed in 1 2 3 4 5 6 7 8; do
    run generate --model spaced --prompt "The old man" --max-tokens 9 --temperature 1 --seed $seed -q
    cat log/out >>one.shown
    run generate --model spaced --jsonl old.jsonl --max-tokens 9 --temperature 1 --seed $seed -q
    sed 1d log/out >>many.shown
    run generate --model spaced --jsonl old.jsonl --max-tokens 9 --temperature 1 --seed $seed --json -q
    python3 -c 'import json; print(json.load(open("log/out"))["texts"][0]["text"])' >>json.shown
done
holds "a text among many is what it is alone, to the space in front" cmp one.shown many.shown
holds "in JSON, too" cmp one.shown json.shown
holds "there are such texts" grep -q "^ [^ ]" one.shown

# What a layer works on is for the texts that are side by side, however many are to come.
python3 -c 'for i in range(300): print([5 + i, 7])' >crowd
for count in 2 300; do
    run "${go[@]}" --tokens crowd --count $count --batch 2 --max-tokens 2 --json -q
    cp log/out crowd.$count
done
run "${go[@]}" --tokens crowd --count 300 --max-tokens 2 --json -q
holds "activations are those of the batch, which is 256 at most unless asked" python3 -c 'import json
few, many, all = (json.load(open(n)) for n in ("crowd.2", "crowd.300", "log/out"))
assert few["activation_bytes"] == many["activation_bytes"] and many["n_texts"] == 300, (few, many)
assert [t["ids"] for t in many["texts"]] == [t["ids"] for t in all["texts"]]
assert 1 <= all["batch"] <= 256'

# ---- how they come ----
run "${go[@]}" --jsonl prompts.jsonl --max-tokens 12 --batch 2
cp log/out shown
expect "texts with the lines they come from, what it took on stderr" 0 "^== prompts.jsonl:7$" \
    "7 prompts of [0-9]+ tokens .*[0-9.]+ tokens/s; 84 .* 2 texts"
run "${go[@]}" --jsonl prompts.jsonl --max-tokens 12 --batch 2 --json -q
holds "texts come in the order of their prompts, the empty one left out" python3 -c 'import json
r = json.load(open("log/out"))
assert [t["source"] for t in r["texts"]] == [f"prompts.jsonl:{i}" for i in (0, 1, 2, 3, 5, 6, 7)], r
assert r["n_texts"] == 7 and r["batch"] == 2 and r["generated_tokens"] == 84, r
shown = "".join("== %s\n%s\n" % (t["source"], t["text"]) for t in r["texts"])
found = open("shown", newline="", encoding="utf8").read().replace("\0", "\ufffd")
assert found == shown, (found, shown)'
run "${go[@]}" --jsonl prompts.jsonl --field other --count 2 --max-tokens 4 --json -q
holds "--field and --count" python3 -c 'import json
r = json.load(open("log/out"))
assert len(r["texts"]) == 2 and r["batch"] == 2, r'
python3 - <<'E'
import json
with open("long.jsonl", "w") as f:
    for n in 2, 25: f.write(json.dumps({"text": "word " * n}) + "\n")
E
run "${go[@]}" --jsonl long.jsonl --max-tokens 60
expect "where the positions end" 0 "." "1 of them stopped at the model's 100 positions"

run "${go[@]}" --jsonl old.jsonl --max-tokens 3
expect "one is one" 0 "." "^shears: 1 prompt of .*, .* 1 text "
run "${go[@]}" --jsonl prompts.jsonl --count 2 --max-tokens 3 --csv --columns source,id -q
holds "tokens of many texts as a table" python3 -c 'import csv
rows = [*csv.reader(open("log/out"))]
assert rows[0] == ["source", "id"] and len(rows) == 7, rows
assert [r[0] for r in rows[1:]] == 3 * ["prompts.jsonl:0"] + 3 * ["prompts.jsonl:1"], rows'

# A text that breaks off takes none of the others with it: the third one's token 100 is no number.
python - "$checkpoints/llama_gqa" <<'P'
import json, os, struct, sys
from checkpoint import read, write
os.mkdir("broken")
config = json.load(open(sys.argv[1] + "/config.json"))
header, data = read(sys.argv[1] + "/model.safetensors")
table = header["model.embed_tokens.weight"]
begin, end = table["data_offsets"]
header["lm_head.weight"] = {**table, "data_offsets": [len(data), len(data) + end - begin]}
config["tie_word_embeddings"] = False
data += data[begin:end]
at = begin + 100 * 4 * table["shape"][1]
data[at:at + 4] = struct.pack("<f", float("nan"))
write("broken/model.safetensors", header, data)
json.dump(config, open("broken/config.json", "w"))
long = [5 + i % 20 for i in range(config["max_position_embeddings"] - 2)]
open("breaks", "w").write("[5, 6, 7]\n%s\n[100]\n[8]\n" % long)
P
run generate --model broken --tokens breaks --count 4 --batch 2 --max-tokens 12 -q
expect "what was written before a text broke off is shown" 1 "^== breaks:1" "row 100, column 0 is nan"
holds "in order, and no more than there is" python3 -c 'import re
shown = re.findall(r"== breaks:([0-9])\n([0-9 ]*)\n", open("log/out").read())
assert [(n, len(ids.split())) for n, ids in shown] == [("0", 3), ("1", 3)], shown'

# ---- bad input ----
refuse "columns of what is no table" 2 "--columns .*--csv" "${go[@]}" --prompt a --columns model
refuse "a field of no document" 2 "--field .*--jsonl FILE" "${go[@]}" --prompt a --field text
refuse "steps of no dump" 2 "--dump-every .*--dump-kept FILE" "${go[@]}" --prompt a --dump-every 2
refuse "a batch of one prompt" 2 "--batch .*--jsonl FILE" "${go[@]}" --prompt a --batch 4
refuse "a count of one prompt" 2 "--count .*--jsonl FILE" "${go[@]}" --prompt a --count 4
refuse "two sources" 2 "--prompt TEXT, --prompt-file FILE, --jsonl FILE" "${go[@]}" --prompt a --jsonl prompts.jsonl
refuse "no such file" 1 "none.jsonl: cannot be read" "${go[@]}" --jsonl none.jsonl
refuse "no such field" 1 "prompts.jsonl: line 1: no text in field \"title\"" "${go[@]}" --jsonl prompts.jsonl --field title
echo '{"text": ""}' >empty.jsonl
refuse "nothing but empty documents" 1 "empty.jsonl: " "${go[@]}" --jsonl empty.jsonl
python3 -c 'import json
for n in 3, 200: print(json.dumps({"text": "word " * n}))' >beyond.jsonl
refuse "a document longer than the model's positions" 2 "beyond.jsonl:1: the prompt has [0-9]+ tokens, .* 100 positions" \
    "${go[@]}" --jsonl beyond.jsonl
echo "[$(seq -s, 5 34)]
[5, 6]" >mixed
refuse "a text whose share of tokens is too small, before another is written" 2 "mixed:1: streaming: a budget of [0-9] tokens" \
    "${go[@]}" --tokens mixed --count 2 --max-tokens 5 --policy streaming --budget 0.4 --dump-kept out/kept
refuse "a text with more places than the model has" 2 "mixed:0: positions inside the cache reach" \
    "${go[@]}" --tokens mixed --count 2 --max-tokens 80 --positions cache
holds "what would help" grep -q "^hint: .*--policy .*--budget" log/err
refuse "a dump over the prompts" 2 "prompts.jsonl" "${go[@]}" --jsonl prompts.jsonl --dump-kept prompts.jsonl

# Angles that follow a text as it is written: below the trained length, across it, beyond it, and however many tokens are
# asked for. A policy whose budget is the text keeps all; the tokens of a text that is read anew are dumped once.
for model in phi3_longrope llama_dynamic_rope; do
    python3 - $model "$SH_GOLDEN" <<'E' >wanted
import json, sys
for c in json.load(open(sys.argv[2] + "/generated.json")):
    if c["model"] == sys.argv[1]:
        print(json.dumps(c))
E
    python3 -c 'import json
for line in open("wanted"): print(json.loads(line)["prompt"])' >ids
    for how in "--max-tokens 30" "--max-tokens 9" "--max-tokens 30 --batch 1 --prefill-mode stream" \
        "--max-tokens 30 --policy h2o --budget 48 --prefill-mode blocks --prefill-block 5"; do
        run generate --model "$checkpoints/$model" --tokens ids --count 6 $how --dump-kept out/kept --json -q
        holds "$model $how: what transformers writes" python3 -c 'import json
mine, wanted = json.load(open("log/out"))["texts"], [json.loads(line) for line in open("wanted")]
assert len(mine) == len(wanted) == 6
for m, w in zip(mine, wanted):
    ids = [i["id"] for i in m["ids"]]
    n = min(len(ids), len(w["ids"]))
    assert n >= 5 and ids[:n] == w["ids"][:n], (len(w["prompt"]), ids, w["ids"])
rows = {}
for line in open("out/kept"):
    r = json.loads(line)
    key = r["sequence"], r["layer"], r["head"]
    assert r["step"] == rows.get(key, -1) + 1, (key, r["step"])
    rows[key] = r["step"]
for i, m in enumerate(mine):
    assert rows[i, 0, 0] == m["prompt_tokens"] + m["generated_tokens"] - 2, (i, rows[i, 0, 0])'
        rm -f out/kept
    done
done

# Places in the cache have angles of their own: a text that passes the trained length is not read anew for them.
for original in 16 40; do
    mkdir trained.$original
    cp "$checkpoints/phi3_longrope"/* trained.$original
    chmod -R u+w trained.$original
    python3 - trained.$original/config.json $original <<'E'
import json, sys
c = json.load(open(sys.argv[1]))
c["original_max_position_embeddings"] = int(sys.argv[2])
c["rope_scaling"]["attention_factor"] = 1.1
json.dump(c, open(sys.argv[1], "w"))
E
    run generate --model trained.$original --tokens ids --count 1 --max-tokens 30 --positions cache --csv --columns id -q \
        --policy streaming:sinks=2 --budget 8 --prefill-mode blocks --prefill-block 4 --dump-kept kept.$original
    cp log/out ids.$original
done
holds "places in the cache do not turn at the trained length" cmp ids.16 ids.40
holds "and keep what they kept" cmp kept.16 kept.40
holds "the text passes it" test "$(wc -l <ids.16)" = 31
finish
