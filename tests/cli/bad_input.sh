#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is handed to the program and cannot be worked with: each is refused by a sentence that names
# the file and the expectation, with the right status, and nothing half-written stays.
. "$(dirname "$0")/lib.sh"
own_mounts

opt=$checkpoints/opt
golden_tokens opt >tokens.jsonl
trace() { # description, status, stderr, model, arguments...
    local what=$1 wanted=$2 sentence=$3 model=$4
    shift 4
    refuse "$what" "$wanted" "$sentence" trace --model "$model" --db out/x.db -q "$@"
}

# ---- checkpoints ----

damaged() { # name of the case, sentence, how, tensor
    python "$cli/checkpoint.py" damage "$1" "$opt" "$3" ${4+"model.decoder.$4"} || exit 99
    trace "checkpoint: $1" 1 "$2" "$1" --tokens tokens.jsonl
}
damaged cut "cut/model.safetensors: .*data_offsets .* bytes of data" cut
damaged cut-header "cut-header/model.safetensors: found 100 bytes, expected at least [0-9]+ for its header" cut-header
damaged long-header "long-header/model.safetensors: found [0-9]+ bytes, expected at least [0-9]+ for its header" long-header
damaged overlap "overlap/model.safetensors: tensor '.*1.fc1.weight': .* overlap the data of" overlap layers.1.fc1.weight
damaged range "range/model.safetensors: tensor '.*1.fc1.weight': data_offsets .* 122368 bytes of data" \
    range layers.1.fc1.weight
damaged shape "shape/model.safetensors: tensor '.*1.fc1.weight': found shape \[32, 96\], expected \[96, 32\]" \
    shape layers.1.fc1.weight
damaged missing "missing: tensor '.*layers.1.self_attn.k_proj.weight' is missing" missing layers.1.self_attn.k_proj.weight
damaged no-embedding "no-embedding: found no token embedding, expected a tensor '.*embed_tokens.weight'" \
    missing embed_tokens.weight
damaged nan-first "nan-first: layer 0: tensor '.*layers.0.fc2.weight': .* is -?nan, expected finite numbers" nan layers.0.fc2.weight

typed() { # what, model type, sentence
    mkdir "$2" && cp "$opt/model.safetensors" "$2" && sed "s/\"opt\"/\"$2\"/" "$opt/config.json" >"$2/config.json"
    trace "checkpoint: $1" 1 "$2/config.json: key 'model_type': found .$2., $3" "$2" --tokens tokens.jsonl
}
typed "unknown architecture" quagga "expected .*opt"
typed "a state that does not grow" mamba "whose state does not grow with the text, so there is no cache .*; expected a decoder"
typed "an encoder" xlm-roberta "an encoder, which reads a whole text at once and keeps no cache, .*; expected a decoder"
typed "an encoder with a decoder" t5 "an encoder with a decoder, which shears does not run: the cache of its input does not grow; expected a decoder"
mkdir no-weights && cp "$opt/config.json" no-weights
trace "checkpoint: no weights" 1 "no-weights: found no weights, expected model.safetensors" no-weights --tokens tokens.jsonl
mkdir no-config && cp "$opt/model.safetensors" no-config
trace "checkpoint: no config.json" 1 "no-config/config.json: .*No such file" no-config --tokens tokens.jsonl
mkdir bad-config && { cp "$opt/model.safetensors" bad-config && echo '{"model_type": ' >bad-config/config.json; }
trace "checkpoint: config.json is no JSON" 1 "bad-config/config.json: line [0-9]+: not valid JSON" bad-config \
    --tokens tokens.jsonl
trace "checkpoint: no such folder" 1 "nowhere: cannot be opened: No such file" nowhere --tokens tokens.jsonl

# The embedding's last row is that of token 127; it is looked at when that token comes.
python "$cli/checkpoint.py" damage nan-embedding "$opt" nan model.decoder.embed_tokens.weight
echo '[3, 127, 5]' >uses-127.jsonl
trace "checkpoint: NaN in the token embedding" 1 \
    "tensor .*embed_tokens.weight: row 127, column 31 is -?nan, expected a finite number" nan-embedding --tokens uses-127.jsonl

python "$cli/checkpoint.py" damage huge "$opt" huge model.decoder.final_layer_norm.weight
run eval --model huge --tokens tokens.jsonl --policy window --budget 0.5 -q
expect "overflow after the last layer: eval refuses rather than compare" 1 "" \
    "tokens.jsonl:0: found logits that are not finite .NaN or infinite. with the full cache"

# A fault in the last layer shows when the layers before it are in the store: they stay, and are whole.
python "$cli/checkpoint.py" damage nan-last "$opt" nan model.decoder.layers.1.self_attn.q_proj.weight
run trace --model nan-last --db out/last.db --tokens tokens.jsonl -q --codec f32
expect "NaN in the last layer: refused, with a word on what is kept" 1 "" \
    "^shears: nan-last: layer 1: tensor '.*q_proj.weight': element 1023 \(row 31, column 31\) is -?nan, expected finite numbers"
holds "NaN in the last layer: the hint tells that the store goes on" grep -q '^hint: all layers committed to out/last.db are complete' log/err
run verify --db out/last.db --json -q
expect "NaN in the last layer: what was committed is sound" 0 '"sound": true' ""
holds "NaN in the last layer: layer 0 of both sequences is there" python - <<'P'
import json
v = json.load(open("log/out"))
assert v["layers_done"] == 2 and v["layers_missing"] == 2 and v["complete"] is False, v
P
run export --db out/last.db --sequence 1 --layer 0 --head 2 -o out/last.npy
expect "NaN in the last layer: layer 0 can be exported" 0 "" ""
rm -rf out && mkdir out
run trace --model "$opt" --db whole.db --tokens tokens.jsonl -q --codec f32
expect "a store to work with" 0 "layers finished +4" ""

# ---- texts ----

python "$cli/checkpoint.py" random worded vocab_size=561 max_position_embeddings=64
cp "$tokenizer"/{vocab.json,merges.txt,special_tokens_map.json,tokenizer_config.json} worded
words() { # description, sentence, arguments...
    local what=$1 sentence=$2
    shift 2
    trace "text: $what" 1 "$sentence" worded --random-weights "$@"
}
printf 'fine\nnot fine: \xff\xfe\n' >latin.txt
: >empty.txt
words "not UTF-8" "latin.txt: .*(not|no) .*UTF-8" --text latin.txt
words "empty" "empty.txt: found no text" --text empty.txt
words "no such file" "none.txt: cannot be read: No such file" --text none.txt
words "a folder" "out: cannot be read: Is a directory" --text out
printf '{"text": "good"}\n{"text": bad}\n' >bad.jsonl
words "a bad jsonl line" "bad.jsonl: line 2 is not JSON: " --jsonl bad.jsonl
printf '{"text": "good"}\n\n{"body": "no text"}\n' >missing.jsonl
words "a missing jsonl field" "missing.jsonl: line 3: no text in field \"text\", expected a string" --jsonl missing.jsonl
words "a missing jsonl field by name" "missing.jsonl: line 1: no text in field \"body\", expected a string" \
    --jsonl missing.jsonl --field body
words "an empty jsonl file" "empty.txt: .*expected one JSON value per line" --jsonl empty.txt
words "no tokenizer in the folder" "no-weights: .*tokenizer.json" --text none.txt --model no-weights
echo '[1, 2, 128]' >outside.jsonl
trace "tokens: an id outside the vocabulary" 1 \
    "outside.jsonl: line 1: element 2 is not a token id, expected .* from 0 to 127" "$opt" --tokens outside.jsonl
echo '[1, -2]' >outside.jsonl
trace "tokens: a negative id" 1 "outside.jsonl: line 1: element 1 is not a token id" "$opt" --tokens outside.jsonl
printf '[1, 2]\n{"text": [1]}\n' >outside.jsonl
trace "tokens: no array" 1 "outside.jsonl: line 2: expected a JSON array of token ids" "$opt" --tokens outside.jsonl
python -c 'print([5] * 161)' >long.jsonl
trace "tokens: more than the model's positions" 1 "long.jsonl: line 1: found 161 tokens, expected at most 160" "$opt" \
    --tokens long.jsonl
trace "--length beyond the model's positions" 2 "--length: .*161.* 160 positions" "$opt" --tokens tokens.jsonl \
    --length 161

# ---- stores ----

store() { # description, sentence, file: trace, info, persistence and verify all refuse it and leave it as it is
    local what=$1 sentence=$2 file=$3 before after
    before=$(cksum <"$file")
    refuse "store: $what: trace" 1 "$sentence" trace --model "$opt" --tokens tokens.jsonl -q --db "$file"
    refuse "store: $what: info" 1 "$sentence" info "$file"
    refuse "store: $what: persistence" 1 "$sentence" persistence --db "$file" -q
    refuse "store: $what: verify" 1 "$sentence" verify --db "$file" -q
    after=$(cksum <"$file")
    holds "store: $what: it was not touched" [ "$before" = "$after" -a ! -e "$file-wal" -a ! -e "$file-shm" -a ! -e "$file-journal" ]
}
python - <<'P'
import shutil, sqlite3
with sqlite3.connect("other.db") as db:
    db.execute("CREATE TABLE notes (text)")
    db.execute("PRAGMA application_id = 1234")
with sqlite3.connect("plain.db") as db:
    db.execute("CREATE TABLE notes (text)")
shutil.copy("whole.db", "newer.db")
with sqlite3.connect("newer.db") as db:
    db.execute("PRAGMA user_version = 99")
P
yes "This is no database." | head -n 999 >text.db
store "another program's" "other.db: .*application id 0x" other.db
store "another program's that set no id" "plain.db: .*application id 0x" plain.db
store "a newer version's" "newer.db: .*version 99, expected 2 to 4: .*newer" newer.db
store "a text file" "text.db: not a SQLite database" text.db
refuse "store: no such file" 1 "none.db: cannot be opened: No such file" verify --db none.db
refuse "store: a folder" 1 "out: not a file" persistence --db out
refuse "a folder that is no checkpoint" 1 "out/config.json: cannot be opened: No such file" info out
refuse "store: an empty file" 1 "empty.txt: empty file, expected a trace store" persistence --db empty.txt
refuse "store: below a file" 1 "tokens.jsonl/x.db: .*(Not a directory|cannot be)" trace --model "$opt" --tokens tokens.jsonl \
    --db tokens.jsonl/x.db -q
refuse "store: in a folder that is not there" 1 "nowhere/x.db: folder nowhere does not exist" trace --model "$opt" --tokens tokens.jsonl \
    --db nowhere/x.db -q
refuse "store: in /proc" 1 "/proc/x\.db" trace --model "$opt" --tokens tokens.jsonl --db /proc/x.db -q
refuse "store: its name is a folder's" 1 "log: " trace --model "$opt" --tokens tokens.jsonl --db log -q

refuse "export: no such sequence" 1 "whole.db: .*sequence 9" export --db whole.db --sequence 9 --layer 0 --head 0 -o out/x.npy
refuse "export: no such head" 1 "whole.db: sequence 0.*layer 0, head 4" export --db whole.db --sequence 0 \
    --layer 0 --head 4 -o out/x.npy
refuse "export: no such folder" 1 "nowhere/x.npy: cannot be written: No such file" export --db whole.db --sequence 0 \
    --layer 0 --head 0 -o nowhere/x.npy

# ---- a folder that cannot be written to ----

if [ -n "$alone" ] && mkdir fixed && mount -t tmpfs none fixed && cp whole.db fixed && mount -o remount,ro none fixed; then
    refuse "read-only folder: no store is made" 1 "fixed/x.db: folder fixed .*: Read-only file system" \
        trace --model "$opt" --tokens tokens.jsonl --db fixed/x.db -q
    refuse "read-only folder: a store is not added to" 1 "fixed/whole.db: folder fixed .*Read-only file system" \
        trace --model "$opt" --tokens tokens.jsonl --db fixed/whole.db -q
    refuse "read-only folder: no figure" 1 "fixed/x.gp: .*Read-only file system" plot persistence --db whole.db --script -o fixed/x.gp -q
    refuse "read-only folder: no export" 1 "fixed/x.tsv: .*Read-only file system" export --db whole.db --sequence 0 --layer 0 \
        --head 0 -o fixed/x.tsv
    run persistence --db fixed/whole.db -q
    expect "read-only folder: persistence of a store in it" 0 "^literal +ratio" ""
    run verify --db fixed/whole.db -q
    expect "read-only folder: verify of a store in it" 0 "^sound +yes" ""
    umount fixed
else
    skip "read-only folder" "no file system can be mounted here"
fi

# ---- figures ----

figure() { # description, status, sentence, arguments...
    local what=$1 wanted=$2 sentence=$3
    shift 3
    refuse "figure: $what" "$wanted" "$sentence" plot -q "$@"
}
figure "unknown kind of file" 2 "out/x.jpeg: expected a name ending in .svg, .png, .pdf, .eps or .tex" persistence --db whole.db -o out/x.jpeg
figure "unknown name" 2 'unknown figure "pie"' pie --db whole.db -o out/x.svg
figure "path below a file" 1 "tokens.jsonl/x.gp: .*Not a directory" persistence --db whole.db --script -o tokens.jsonl/x.gp
figure "folder that is not there" 1 "nowhere/x.gp: .*No such file" persistence --db whole.db --script -o nowhere/x.gp
figure "a device as its file" 2 "/dev/full: .*not a regular file" persistence --db whole.db --script -o /dev/full
figure "no such store" 1 "none.db: .*No such file" persistence --db none.db --script -o out/x.gp
figure "no such layer" 1 "whole.db: .*layer 7" heatmap --db whole.db --layer 7 --script -o out/x.gp
mkdir bin
search=$work/bin
figure "no gnuplot" 3 "out/x.svg: gnuplot is needed to draw it and is not on PATH" persistence --db whole.db -o out/x.svg
holds "figure: no gnuplot: the hint names the ways out" grep -q '^hint: install gnuplot .*--script' log/err
run plot persistence --db whole.db --script -o out/x.gp -q
expect "figure: no gnuplot: --script works without it" 0 "" ""
holds "figure: no gnuplot: a script came out, and nothing else" [ -s out/x.gp -a "$(ls -A out)" = x.gp ]
rm -f out/*
printf '#!/bin/sh\ncat >/dev/null\necho "line 3: undefined function: nosuch" >&2\nexit 1\n' >bin/gnuplot
chmod +x bin/gnuplot
search=$work/bin:$PATH
figure "gnuplot fails" 1 "out/x.svg: gnuplot failed: .*undefined function" persistence --db whole.db -o out/x.svg
unset search

# ---- misuse ----

misuse() { # sentence, arguments...
    local sentence=$1
    shift
    refuse "misuse: $(sed "s|$SH_GOLDEN/||g" <<<"$*")" 2 "$sentence" "$@"
}
run
expect "misuse: no command at all shows the commands" 2 "" "^usage: shears COMMAND"
hinted() { # the whole hint, sentence, arguments...
    local hint=$1
    shift
    misuse "$@"
    verdict "misuse: ${*:2}: the hint" "$(stream_fault stderr log/err "^hint: $hint\$")"
}
hinted "did you mean trace[?] shears --help lists the commands" "command \"tracce\"" tracce
hinted "did you mean replay[?] shears --help lists the commands" "command \"repaly\"" repaly
hinted "shears --help lists the commands" "command \"foo\"" foo
hinted "shears --help lists the commands" "option --model; expected a command first" --model x trace
hinted "did you mean --version[?] shears --help lists the commands" "option --vesrion; expected a command" --vesrion
hinted "did you mean --model[?] shears trace --help lists the options" "trace: .*option --modle" trace --modle x
hinted "did you mean --db[?] shears verify --help lists the options" "verify: .*option --database" verify --database=x.db
hinted "did you mean --policy[?] .*" "replay: .*option --policies" replay --policies h2o
hinted "did you mean --quiet[?] .*" "verify: .*option --qiet" verify --qiet
hinted "shears verify --help lists the options" "verify: .*option -z" verify -z
hinted "did you mean kept_mass, .*[?] --json shows all names" \
    '--columns: .*"keptmass"' replay --db whole.db --policy full --budget 4 --columns keptmass -q
misuse "--length: found \"many\", expected a whole number" trace --length many
misuse "--length: 0 .*1 to" trace --length 0
misuse "--threads: 0 .*1 to" trace --threads 0
misuse "--memory: found \"much\", expected a number of bytes" trace --memory much
misuse "--memory: 0 .*1 to" capacity --model opt-125m --gpu H100-SXM --length 10 --memory 0
misuse "--weight-bits: .*3, expected 16, 8 or 4" trace --model "$opt" --db out/x.db --tokens tokens.jsonl --weight-bits 3
misuse "h2o: recent=99999999, expected a whole number from 0 to 1048576" replay --db whole.db --policy h2o:recent=99999999
misuse 'model "odd\?\?\?" is not known' capacity --model $'odd\xff\x80\x1b' --gpu H100-SXM --length 10
misuse "--db .*value: --db FILE" verify --db
misuse "--json takes no value" verify --json=yes
misuse '--columns: .*"kept_mas"' replay --db whole.db --policy full --columns policy,kept_mas -q
run replay --db whole.db --policy full window --budget 4 -q --csv --columns kept_mass,policy
expect "--columns: these figures, in this order" 0 '^kept_mass,policy$' ""
holds "--columns: and nothing else" test "$(grep -cv '^[0-9.]*,\(full\|window\)$' log/out)" = 1
misuse "--json and --csv " info whole.db --json --csv
misuse "trace .*--model DIR and --db FILE$" trace --text x.txt
misuse "trace .*--model DIR$" trace --db x.db
misuse "trace .*--db FILE$" trace --model x
misuse "trace .*--text, --jsonl and --tokens" trace --model "$opt" --db out/x.db
misuse "trace: .*\"stray\"" trace stray
misuse "export: .*\"stray\"" export stray --db whole.db
misuse "export .*--layer L, --head H and -o FILE$" export --db whole.db --sequence 0
misuse "out/x.mat: expected .*.npy, .tsv or .safetensors" export --db whole.db --sequence 0 --layer 0 --head 0 -o out/x.mat
misuse "--split: .*1.5.* 0 to 1" persistence --db whole.db --split 1.5
misuse "--alpha: .*\"most\", expected row, split, a number" persistence --db whole.db --alpha most
misuse "--per: \"token\", expected layer or head" persistence --db whole.db --per token
misuse "whole.db: .*no run 7" persistence --db whole.db --run 7
set -- trace --model "$opt" --db out/x.db --tokens tokens.jsonl
misuse "--record: .*\"some\"" "$@" --record some
misuse "--codec: .*\"zip\"" "$@" --codec zip
misuse "--dtype: .*\"f8\"" "$@" --dtype f8
misuse "--record sparse .*--codec log8 or f32" "$@" --record sparse --codec f16
misuse "--vectors: \"qkx\", expected .*q, k, v" "$@" --vectors qkx
misuse "--layers: .*1-2.* layers 0-1" "$@" --layers 1-2
misuse "--layers: 1-0" "$@" --layers 1-0
misuse "--layers: found \"-1\", expected a range A-B or one number" "$@" --layers -1
misuse "--layers: found \"0-\", expected a range A-B or one number" "$@" --layers 0-
misuse "--layers: found \"0-1-2\", expected a range A-B or one number" "$@" --layers 0-1-2
misuse "--alpha, --recent, --split: .*recent 1: found 3, expected ascending" "$@" --recent 5,3
refuse "info of a word that is nearly one of its own" 1 "polices: cannot be opened" info polices
holds "the word is named" grep -qx 'hint: did you mean policies?' log/err
misuse "unknown backend \"abacus\".* auto, cpu.* cuda" "$@" --backend abacus

misuse "budget \"0.1..0.9/1000000000\": expected FROM..TO/COUNT with a count of 2 to 1024" \
    replay --db whole.db --policy h2o --budget 0.1..0.9/1000000000
misuse "--db: found an empty name, expected FILE" verify --db ""
misuse "--model: found an empty name, expected DIR" trace --model "" --db out/x.db --tokens tokens.jsonl

# ---- files that have no end, are folders, or lead in a circle ----

server=(simulate --model opt-125m --gpu L4)
if [ -r /dev/zero ]; then
    refuse "a workload without an end" 1 "/dev/zero: line 1: .*65536 bytes" "${server[@]}" --workload /dev/zero
else
    skip "a workload without an end" "there is no /dev/zero"
fi
refuse "a workload that is a folder" 1 "bin: line 1: cannot be read: Is a directory" "${server[@]}" --workload bin
trace "texts that are a folder" 1 "bin: cannot be read: Is a directory" "$opt" --tokens bin
trace "too short, all of them: the file is named" 1 "uses-127.jsonl: .*expected a text of at least 50" \
    "$opt" --tokens uses-127.jsonl --min-tokens 50
ln -s circle circle
trace "a store behind links in a circle" 1 "circle: cannot be opened: Too many levels" "$opt" --tokens tokens.jsonl --db circle
refuse "an output behind links in a circle" 1 "circle: cannot be written: Too many levels" \
    plan --db whole.db --policy window --budget 4 -o circle -q
holds "the links are still there" test -L circle
ln -s nowhere.db leads
trace "a store behind a link to nothing" 1 "leads: a link to a file that does not exist" \
    "$opt" --tokens tokens.jsonl --db leads
holds "the link is still there, and nothing behind it" [ -L leads -a ! -e nowhere.db ]
ln -s tokens.jsonl/store.db through
trace "a store behind a link through a file" 1 "through: cannot be opened: Not a directory" "$opt" --tokens tokens.jsonl \
    --db through
holds "this link is still there, too" [ -L through ]
: >nowhere.db
trace "one to an empty file, by a trace that fails" 1 "expected a text of at least 50" "$opt" --tokens uses-127.jsonl \
    --min-tokens 50 --db leads
holds "that link is still there as well" [ -L leads -a -e nowhere.db ]
: >nowhere.db
run trace --model "$opt" --tokens tokens.jsonl --db leads -q
expect "one to an empty file is followed" 0 "^model" ""
holds "it is a link to a store now" [ -L leads -a -s nowhere.db ]
rm leads nowhere.db
trace "a store below a file" 1 "folder tokens.jsonl .*: Not a directory" "$opt" --tokens tokens.jsonl \
    --db tokens.jsonl/x.db

# ---- one file for two things ----

cp whole.db twice.db
misuse "--log twice.db: .*same file.* --db" "${server[@]}" --rate 1 --prompt 9 --output 9 --db twice.db --log twice.db
holds "the store is what it was" cmp whole.db twice.db
misuse "--plot-latency out/l.svg: .*same file.* --log" "${server[@]}" --rate 1 --prompt 9 --output 9 --log out/l.svg \
    --plot-latency out/l.svg
misuse "--plot-frontier out/p.svg: .*same file.* --plot-memory" capacity --model opt-125m --gpu L4 --length 9 \
    --plot-memory out/p.svg --plot-frontier out/p.svg
figure "its data in itself" 2 "--data out/x.gp: .*same file.* -o" persistence --db whole.db --script -o out/x.gp \
    --data out/x.gp
figure "data that cannot be written: no figure either" 1 "nowhere/x.tsv: cannot be written: No such file" persistence \
    --db whole.db --script -o out/x.gp --data nowhere/x.tsv
evaluated=(eval --model "$opt" --tokens tokens.jsonl --policy window --budget 4 -q)
misuse "--logits out/x: .*same file.* --dump-kept" "${evaluated[@]}" --logits out/x --dump-kept out/x
misuse "--logits tokens.jsonl: .*input file tokens.jsonl" "${evaluated[@]}" --logits tokens.jsonl
cp uses-127.jsonl prompt.jsonl
misuse "--dump-kept prompt.jsonl: .*input file prompt.jsonl" generate --model "$opt" --tokens prompt.jsonl \
    --max-tokens 2 --dump-kept prompt.jsonl
holds "the prompt is what it was" cmp uses-127.jsonl prompt.jsonl

# ---- names that a terminal would obey ----

name=$'a\x1b[31m\xc2\x9b31m\xe2\x80\xaeb\xff.db'
cp whole.db "$name"
refuse "a file's name: what a terminal would obey is not shown" 1 "a[?]\[31m[?]31m[?]b[?].db: sequence 0: no scores" \
    export --db "$name" --sequence 0 --layer 9 --head 0 -o out/x.npy
run merge --db "out/$name" "$name" -q
expect "nor in a table" 0 "^store .* out/a[?]\[31m[?]31m[?]b[?].db$" ""
rm -f out/*

# ---- an output that cannot be written ----

output() { # description, stderr, arguments...: to a full device, then to nothing at all
    local what=$1 said=$2
    shift 2
    if [ -w /dev/full ]; then
        "$SHEARS" "$@" >/dev/full 2>log/err </dev/null
        status=$?
        : >log/out
        expect "full stdout: $what" 1 "" "$said"
    else
        skip "full stdout: $what" "there is no /dev/full"
    fi
    "$SHEARS" "$@" 2>log/err >&- </dev/null
    status=$?
    expect "closed stdout: $what" 1 "" "$said"
}
wrong="^shears: .*standard output"
output "--help" "$wrong" --help
output "info" "$wrong" info whole.db
output "persistence" "$wrong" persistence --db whole.db --json -q
output "verify" "$wrong" verify --db whole.db -q
output "trace" "$wrong" trace --model "$opt" --db out/o.db --tokens tokens.jsonl -q
run verify --db out/o.db -q --json
expect "closed stdout: the store of the trace is whole" 0 '"complete": true' ""
"$SHEARS" plot persistence --db whole.db --script -o out/c.gp -q <&- >&- 2>log/err
status=$?
: >log/out
expect "closed stdin and stdout: a figure's script" 0 "" ""
run plot persistence --db whole.db --script -o out/d.gp -q
holds "closed stdin and stdout: the script is what it should be" cmp out/c.gp <(sed 's/d\.svg/c.svg/' out/d.gp)
finish
