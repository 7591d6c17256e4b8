#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shears generate: greedy continuations are PyTorch's, full cache and with eviction in the loop; text comes
# in whole characters; the same seed draws the same text; what cannot work is refused.
. "$(dirname "$0")/lib.sh"

same_ids() { # file of the expected ids, as JSON
    python -c 'import json, sys
mine, wanted = [i["id"] for i in json.load(open("log/out"))["ids"]], json.load(open(sys.argv[1]))
assert mine == wanted, (mine, wanted)' "$1"
}

# Every golden checkpoint that has a continuation.
python - <<'E' >cases
import json, os
folder = os.environ["SH_GOLDEN"] + "/checkpoints"
for name in sorted(os.listdir(folder)):
    path = f"{folder}/{name}/ref.json"
    if not os.path.exists(path):
        continue
    for i, s in enumerate(json.load(open(path))["sequences"]):
        if s.get("greedy"):
            json.dump(s["tokens"], open(f"{name}.{i}.ids", "w"))
            json.dump(s["greedy"], open(f"{name}.{i}.greedy", "w"))
            print(name, i, len(s["greedy"]))
E
while read -r name i n; do
    run generate --model "$checkpoints/$name" --tokens $name.$i.ids --max-tokens $n --json -q
    holds "$name: greedy continuation of sequence $i" same_ids $name.$i.greedy
done <cases
[ -s cases ] || not_ok "there are golden continuations"

# With eviction in the loop.
python - <<'E' >cases
import json, os
for name in "opt", "llama_gqa":
    for c in json.load(open(os.environ["SH_GOLDEN"] + f"/session/{name}.json"))["cases"]:
        if len(set(c["budget"])) == 1:
            case = f"{name}.{c['name']}"
            json.dump(c["tokens"], open(case + ".ids", "w"))
            json.dump(c["greedy"], open(case + ".greedy", "w"))
            print(name, case, c["policy"], c["budget"][0], c["prefill"])
E
while read -r name case policy budget prefill; do
    run generate --model "$checkpoints/$name" --tokens $case.ids --max-tokens 16 --policy $policy --budget $budget \
        --prefill $prefill --prefill-mode stream --json -q
    holds "$case: greedy continuation under the budget" same_ids $case.greedy
done <cases

# Text.
mkdir model && cp "$SH_GOLDEN"/tasks/model/* \
    "$tokenizer"/{vocab.json,merges.txt,special_tokens_map.json,tokenizer_config.json} model
chmod -R u+w model
warm=(generate --model model --max-tokens 40 --temperature 1.5)
run "${warm[@]}" --prompt "The old man" --seed 7
cp log/out text
expect "text on stdout, what it took on stderr" 0 "." "40 tokens written at [0-9.]+ tokens/s; cache [0-9]+ bytes"
run "${warm[@]}" --prompt "The old man" --seed 7 -q
expect "--quiet" 0 "." ""
holds "the same seed, the same text" cmp text log/out
run "${warm[@]}" --prompt "The old man" --seed 7 --json -q
cp log/out seven.json
holds "JSON holds the same text, and it is UTF-8" python -c 'import json
r = json.load(open("log/out", encoding="utf8"))
shown = open("text", "rb").read().decode("utf8")
assert shown.replace("\0", "\ufffd") == r["text"] + "\n", (shown, r["text"])
assert r["generated_tokens"] == 40 and r["stopped"] == "length" and r["peak_tokens"] == r["prompt_tokens"] + 39, r'
run "${warm[@]}" --prompt "The old man" --seed 8 --json -q
holds "another seed, another text" python -c 'import json
assert json.load(open("seven.json"))["ids"] != json.load(open("log/out"))["ids"]'
holds "JSON has a text's ids on one line" python -c 'import json
r = json.load(open("seven.json"))
line, = [l for l in open("seven.json") if l.lstrip().startswith("\"ids\"")]
assert json.loads("{" + line.strip().rstrip(",") + "}")["ids"] == r["ids"] and len(r["ids"]) == 40, line
assert len(open("seven.json").read().splitlines()) < 60'
printf 'The old man' >prompt.txt
for end in '' '\n'; do
    printf "The old man$end" | "$SHEARS" "${warm[@]}" --prompt - --seed 7 -q >log/out 2>log/err
    status=$?
    expect "--prompt - reads standard input" 0 . ""
    holds "  which gives the same text" cmp text log/out
done
run "${warm[@]}" --prompt - --seed 7
expect "--prompt - of nothing" 2 "" "standard input: the prompt is empty"
printf 'x\377' | "$SHEARS" "${warm[@]}" --prompt - -q >log/out 2>log/err
status=$?
expect "--prompt - of bytes" 1 "" "standard input: the text is not UTF-8"
"$SHEARS" "${warm[@]}" --prompt - -q >log/out 2>log/err <&-
status=$?
expect "--prompt - of a closed one" 1 "" "standard input: the prompt is empty|standard input: cannot be read"
run "${warm[@]}" --prompt-file prompt.txt --seed 7 -q
holds "the prompt from a file" cmp text log/out
run "${warm[@]}" --prompt "The old man" --top-k 1 --json -q
cp log/out one.json
run generate --model model --prompt "The old man" --max-tokens 40 --json -q
holds "of the likeliest one only: greedy" python -c 'import json
assert json.load(open("one.json"))["ids"] == json.load(open("log/out"))["ids"]'
run generate --model model --prompt "The old man" --max-tokens 500 --json -q
holds "it ends where the positions end" python -c 'import json
r = json.load(open("log/out"))
assert r["stopped"] == "positions" and r["prompt_tokens"] + r["generated_tokens"] == 101, r'
run generate --model model --prompt "The old man" --max-tokens 60 --policy h2o --budget 12 --dump-kept kept.jsonl --json -q
holds "the cache never holds more than the budget, and the dump says so" python -c 'import json
r = json.load(open("log/out")); sets = [json.loads(l)["kept"] for l in open("kept.jsonl")]
assert r["peak_tokens"] == 12 == max(map(len, sets)) and r["kept_tokens"] == 12, r
assert len(sets) == 4 * (r["prompt_tokens"] + 59), len(sets)'
for bits in 32 16 8 4; do
    run generate --model model --prompt "The old man" --max-tokens 60 --policy window --budget 40 --kv-bits $bits --json -q
    cp log/out bits.$bits.json
done
holds "fewer bits take fewer bytes" python -c 'import json
b = [json.load(open(f"bits.{n}.json"))["kv_bytes"] for n in (32, 16, 8, 4)]
assert b[0] > b[1] > b[2] > b[3], b'

# The end token: one that drawing writes for the first time behind others is declared to be one.
python - <<'E'
import json, shutil
ids = [i["id"] for i in json.load(open("seven.json"))["ids"]]
config = json.load(open("model/config.json"))
config["eos_token_id"] = [560] * 9 + [ids[next(i for i in range(3, 39) if ids[i] not in ids[:i])]]
shutil.copytree("model", "ending")
json.dump(config, open("ending/config.json", "w"))
config["eos_token_id"] = 1000           # the vocabulary has 561
shutil.copytree("model", "beyond")
json.dump(config, open("beyond/config.json", "w"))
del config["eos_token_id"]
shutil.copytree("model", "endless")
json.dump(config, open("endless/config.json", "w"))
E
run "${warm[@]}" --model ending --prompt "The old man" --seed 7 --stop-at-end --json -q
holds "--stop-at-end stops there" python -c 'import json
r, end = json.load(open("log/out")), json.load(open("ending/config.json"))["eos_token_id"][-1]
ids = [i["id"] for i in r["ids"]]
assert r["stopped"] == "end" and ids[-1] == end and end not in ids[:-1] and 3 < len(ids) < 40, r
assert json.load(open("seven.json"))["text"].startswith(r["text"]), r'
run "${warm[@]}" --model ending --prompt "The old man" --seed 7 --json -q
holds "without it, not" python -c 'import json
assert json.load(open("log/out"))["ids"] == json.load(open("seven.json"))["ids"]'

run "${warm[@]}" --model beyond --prompt "The old man" --seed 7 --json -q
holds "an end token that the model has not matters to nobody who does not stop there" python -c 'import json
assert json.load(open("log/out"))["ids"] == json.load(open("seven.json"))["ids"]'

run generate --model model --prompt "The old man" --max-tokens 60 --repetition
expect "--repetition says how much the text repeats itself" 0 "." \
    "rep-4 [01]\.[0-9]+, .* row similarity 0\.[0-9]+ "
run generate --model model --prompt "The old man" --max-tokens 60 --repetition --json -q
holds "rep-4, distinct-n, longest repeat by their definitions" python -c 'import json
r = json.load(open("log/out")); ids = [i["id"] for i in r["ids"]]
grams = lambda n: [tuple(ids[i:i + n]) for i in range(len(ids) - n + 1)]
share = lambda n: len(set(grams(n))) / len(grams(n))
assert abs(r["rep_4"] - (1 - share(4))) < 1e-12 and abs(r["distinct_1"] - share(1)) < 1e-12, r
assert abs(r["distinct_2"] - share(2)) < 1e-12, r
longest = max([n for n in range(1, 60) if share(n) < 1], default=0)
assert r["longest_repeat_tokens"] == longest, (r["longest_repeat_tokens"], longest)
assert 0 <= r["row_likeness"] <= 1 and 0 <= r["row_likeness_chance"] < 1, r'

go=(generate --model model)

# How prompts are read, and where tokens stand. (tests/unit/test_prompt.c has the numbers.)
long=$(printf 'The old man and the sea were there. %.0s' {1..4})
for mode in stream blocks once; do
    run "${go[@]}" --prompt "$long" --max-tokens 20 --policy window --budget 16 --prefill-mode $mode --json -q
    cp log/out way.$mode.json
done
run "${go[@]}" --prompt "$long" --max-tokens 20 --policy window --budget 16 --prefill-mode blocks --prefill-block 1 --json -q
cp log/out way.ones.json
holds "the way that a prompt takes is told, and what it takes is counted" python -c 'import json
w = {n: json.load(open(f"way.{n}.json")) for n in ("stream", "blocks", "once", "ones")}
n = w["once"]["prompt_tokens"]
assert n > 32 and [w[k]["prefill_block"] for k in ("stream", "once", "ones")] == [0, n, 1], w
assert w["blocks"]["prefill_mode"] == "blocks" and w["ones"]["stream"] == "in blocks of 1", w
assert len({w[k]["kv_bytes"] for k in w}) == 1, "the cache has the same size whatever the prompt did"
assert w["stream"]["prompt_block_bytes"] == 0 < w["ones"]["prompt_block_bytes"] < w["once"]["prompt_block_bytes"], w
assert w["ones"]["ids"] == w["stream"]["ids"], "blocks of one token are the stream"'
run "${go[@]}" --prompt "$long" --max-tokens 5 --policy window --budget 16
expect "what blocks take is told on stderr, too" 0 "." "blocks took [1-9][0-9]* bytes"
run "${go[@]}" --prompt "The old man" --max-tokens 400
expect "where the positions end" 0 "." \
    "stopped at the model's 100 positions; .*--positions cache, .*--policy .*--budget"
evicting=("${go[@]}" --prompt "The old man" --max-tokens 400 --policy h2o --budget 16)
run "${evicting[@]}"
expect "with a budget less is missing" 0 "." "stopped at the model's 100 positions; .*--positions cache "
run "${evicting[@]}" --positions cache
expect "and it goes on" 0 "." "400 tokens written"
streaming=("${go[@]}" --prompt "The old man" --policy streaming:sinks=4 --budget 32 --positions cache)
run "${streaming[@]}" --max-tokens 400 --json -q
cp log/out short.json
run "${streaming[@]}" --max-tokens 800 --json -q
holds "with positions inside the cache it goes on, and the cache stays as it is" python -c 'import json
a, b = json.load(open("short.json")), json.load(open("log/out"))
assert a["generated_tokens"] == 400 and b["generated_tokens"] == 800 and b["stopped"] == "length", b
assert a["ids"] == b["ids"][:400] and a["kv_bytes"] == b["kv_bytes"] and b["peak_tokens"] == 32, b'
if grep -q __asan_init "$SHEARS"; then
    skip "the process stays as large, too" "sanitizers keep what is freed"
else
    holds "the process stays as large, too" python - "${streaming[@]}" <<'P'
import json, os, resource, subprocess, sys
def most(tokens):                       # largest resident set in bytes of a child of its own
    pid = os.fork()
    if not pid:
        subprocess.run([os.environ["SHEARS"], *sys.argv[1:], "--max-tokens", str(tokens), "-q"], check=True,
                       stdout=subprocess.DEVNULL)
        with open("most", "w") as f:
            f.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    return 1024 * int(open("most").read())
a, b = max(most(40) for _ in range(3)), most(20000)      # it varies by 1 MB from run to run
cache = json.load(open("short.json"))["kv_bytes"] / 32 * 20000    # if nothing ever left
assert b - a < cache / 2, (a, b, cache)
P
fi
for policy in h2o scissorhands:recent=4; do
    for residual in 4 16; do
        run "${go[@]}" --prompt "The old man" --max-tokens 300 --policy $policy --budget 24 --kv-bits 4 --kv-keys channel \
            --kv-residual $residual --positions cache --json -q
        holds "$policy, 4 bits, scales along slots, $residual keys apart" python -c 'import json
r = json.load(open("log/out"))
assert r["generated_tokens"] == 300 and r["peak_tokens"] == 24, r'
    done
done
run "${go[@]}" --prompt "$long" --policy h2o --budget 20 --prefill 500 --max-tokens 5
expect "a prefill beyond the text" 0 "." "--prefill .*text's [0-9]+ tokens"

# ---- bad input ----
refuse "a way that is not known" 2 "expected one of stream, blocks, once" "${go[@]}" --prompt a --prefill-mode twice
refuse "positions that are not known" 2 "expected one of original, cache" "${go[@]}" --prompt a --positions here
refuse "blocks that nobody reads" 2 "--prefill-block .*--prefill-mode blocks" "${go[@]}" --prompt a --prefill-mode once --prefill-block 9
refuse "a prefill where all is one" 2 "--prefill-mode once .*--prefill" "${go[@]}" --prompt a --prefill-mode once --prefill 9
refuse "places that the model has not" 2 "positions inside the cache reach 1[0-9][0-9] .*the model has only 100" \
    "${go[@]}" --prompt "$long" --max-tokens 100 --policy h2o --budget 90 --prefill-block 30 --positions cache
budget=$(sed -n 's/^hint: a budget of \([0-9]*\) tokens per head fits.*/\1/p' log/err)
run "${go[@]}" --prompt "$long" --max-tokens 100 --policy h2o --budget "$budget" --prefill-block 30 --positions cache
expect "the budget of the hint has no more places than the model" 0 "." "100 tokens written"
refuse "places that a text wants which keeps everything" 2 "positions inside the cache reach .*the model has only 100" \
    "${go[@]}" --prompt "The old man" --max-tokens 400 --positions cache
holds "the hint says what is missing" grep -q "^hint: texts can be longer with a --policy that evicts" log/err
refuse "keys by channel that are no codes" 2 "--kv-keys .*--kv-bits 8 or 4.*32" "${go[@]}" --prompt a --kv-keys channel
refuse "keys apart that nobody has" 2 "--kv-residual .*--kv-keys channel" "${go[@]}" --prompt a --kv-bits 4 --kv-residual 8
refuse "no prompt" 2 "--prompt TEXT, --prompt-file FILE, --jsonl FILE" "${go[@]}"
refuse "two prompts" 2 "one of --prompt" "${go[@]}" --prompt a --prompt-file prompt.txt
refuse "an empty prompt" 2 "the prompt is empty" "${go[@]}" --prompt ""
: >empty
refuse "an empty file" 2 "empty: the prompt is empty" "${go[@]}" --prompt-file empty
refuse "no file" 1 "none: cannot be read" "${go[@]}" --prompt-file none
refuse "a prompt longer than the model's positions" 2 "100 positions" \
    "${go[@]}" --prompt "$(printf 'word %.0s' {1..200})"
printf 'a\377b' >bytes
refuse "a prompt that is no UTF-8" 1 "bytes: the text is not UTF-8" "${go[@]}" --prompt-file bytes
refuse "a folder without a tokenizer" 1 "" generate --model "$checkpoints/opt" --prompt a
refuse "a budget that what is protected fills" 2 "but 12 are protected from eviction" \
    "${go[@]}" --prompt a --policy streaming:sinks=12 --budget 12
refuse "a policy without a budget" 2 "h2o .*--budget" "${go[@]}" --prompt a --policy h2o
refuse "a budget without a policy" 2 "--budget .*--policy" "${go[@]}" --prompt a --budget 8
refuse "two budgets" 2 "--budget 8,9: .*one budget" "${go[@]}" --prompt a --policy h2o --budget 8,9
refuse "a policy that looks into the future" 2 "oracle needs future attention" \
    "${go[@]}" --prompt a --policy oracle --budget 8 --dump-kept out/kept
refuse "a policy that is not known" 2 "unknown policy" "${go[@]}" --prompt a --policy h3o --budget 8
refuse "bits that no cache has" 2 "expected 32, 16, 8 or 4" "${go[@]}" --prompt a --kv-bits 5
refuse "a cut without a temperature" 2 "--top-k .*--temperature" "${go[@]}" --prompt a --top-k 4
refuse "a share above 1" 2 "top-p" "${go[@]}" --prompt a --top-p 1.5
refuse "no end token to stop at" 1 "--stop-at-end: .*eos_token_id" generate --model endless --prompt a --stop-at-end
refuse "an end token beyond the vocabulary" 1 "eos_token_id" generate --model beyond --prompt a --stop-at-end
refuse "a dump that cannot be written" 1 "out/none/kept" "${go[@]}" --prompt a --dump-kept out/none/kept
finish
