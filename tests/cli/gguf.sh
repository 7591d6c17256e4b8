#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# GGUF models on the command line: what is recorded is PyTorch's attention (tests/oracle/gguf_files.py), whether the
# model is named by its file, by a folder that holds it, or by the first file of a split one; info; refusals.
. "$(dirname "$0")/lib.sh"

golden=$SH_GOLDEN/gguf
tokens_of() { # model
    python -c 'import json, sys
for s in json.load(open(sys.argv[1]))["sequences"]: print(json.dumps(s["tokens"]))' "$golden/$1/ref.json"
}
traced() { # store, model, arguments...: must go well
    local db=$1 model=$2
    shift 2
    run trace --db "out/$db" --model "$model" -q --json --codec f32 "$@"
    [ $status = 0 ] || { not_ok "trace $model into $db"; sed 's/^/# /' log/err; }
}

attention() { # store, model
    python - "$1" "$golden/$2/ref.safetensors" <<'P'
import sys
from scores import *
store, path = sys.argv[1:3]
(layers, heads, n, _), scores = read_safetensors(path)["s0.attn"]
worst = 0
for layer in range(layers):
    for h in range(heads):
        ours = head(store, 0, layer, h)
        assert len(ours) == n, f"{len(ours)} rows, expected {n}"
        at = (layer * heads + h) * n * n
        worst = max(worst, max(abs(ours[q][k] - scores[at + q * n + k]) for q in range(n) for k in range(n)))
assert worst <= 2e-5, f"worst difference {worst}"
P
}

for model in llama3 gemma3 quantised_k; do
    tokens_of $model >tokens.jsonl
    traced $model.db "$golden/$model.gguf" --tokens tokens.jsonl
    holds "$model: PyTorch's attention" attention out/$model.db $model
done

# ---- by folder, and in two files ----

tokens_of llama >tokens.jsonl
mkdir one two
cp "$golden/llama.gguf" one/any.gguf
cp "$golden"/split-0000?-of-00002.gguf two
traced one.db one --tokens tokens.jsonl
traced two.db two --tokens tokens.jsonl
holds "llama in a folder: PyTorch's attention" attention out/one.db llama
holds "llama in two files: the same" python -c 'from scores import *
same_blobs(blobs("out/one.db"), blobs("out/two.db"))'
run trace --db out/one.db --model one/any.gguf -q --codec f32 --tokens tokens.jsonl
expect "the file is the model that its folder is" 0 "^model +any$" ""
holds "so nothing is recorded again" python -c 'from scores import *
assert len(tokens("out/one.db")) == 1, tokens("out/one.db")'
traced twin.db one/any.gguf --tokens tokens.jsonl --random-weights
holds "fresh weights give other scores" python -c 'from scores import *
a, b = blobs("out/one.db"), blobs("out/twin.db")
assert a.keys() == b.keys() and a != b'

# ---- info, refusals ----

run info --model "$golden/quantised_k.gguf" --json
expect "info names the format" 0 '^ "dtype": "Q6_K",$' ""
rm -rf out && mkdir out
cp "$golden/gpt2.gguf" two
refuse "two models in a folder" 1 "two: found 2 GGUF models, expected one" info --model two
head -c 2000 "$golden/gpt2.gguf" >cut.gguf
refuse "a file that is cut short" 1 "cut.gguf: .*file cut short" trace --model cut.gguf --tokens tokens.jsonl --db out/x.db
sed 's/qwen2/qwen9/g' "$golden/qwen2.gguf" >other.gguf
refuse "an unknown architecture" 1 "key 'general.architecture': found 'qwen9', expected one of llama" \
    info --model other.gguf
refuse "an absent file" 1 "absent.gguf: cannot be opened: No such file" info --model absent.gguf
finish
