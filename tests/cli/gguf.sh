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

# ---- blocks on a device: as they are stored, and read by products of few rows and of many ----

modules=$(dirname "$SHEARS")/tests/emu/modules
for model in quantised quantised_k; do
    [ -e "$modules/cuda.so" ] || break
    tokens_of $model >tokens.jsonl
    SH_MODULE_DIR=$modules traced $model.cuda.db "$golden/$model.gguf" --tokens tokens.jsonl --backend cuda --dtype f32
    holds "$model on a device: PyTorch's attention" attention out/$model.cuda.db $model
    holds "$model on a device: what is taken stays within what is said" python - <<'P'
import json
said = json.load(open("log/out"))
assert 0 < said["device_peak_bytes"] <= said["device_needs_bytes"], said
P
    for backend in cpu cuda; do         # token by token on the device: products of one row
        [ $backend = cpu ] && stream= || stream=--stream
        SH_MODULE_DIR=$modules run eval --model "$golden/$model.gguf" --tokens tokens.jsonl --backend $backend \
            --dtype f32 --policy h2o --budget 8 --prefill 6 -q --json $stream
        cp log/out $backend.json
    done
    holds "$model on a device: the perplexity of the processor" python - <<'P'
import json
cpu, cuda = (json.load(open(f"{b}.json"))["results"][0]["ppl"] for b in ("cpu", "cuda"))
assert abs(cpu - cuda) <= 1e-5 * cpu, (cpu, cuda)
P
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

# ---- the file's own tokenizer ----

# The tokenizers of tests/golden/tokenizers, with fresh weights: a text's ids are those of the reference. The files end
# with their metadata and say of what shape a model is; how many tokens it has is seen from the table that is added.
says() { # kind
    python - "$SH_GOLDEN/tokenizers/$1/cases.json" "$golden/tok_$1.gguf" <<'P'
import base64, json, struct, sys
root = json.load(open(sys.argv[1]))
case = max((c for c in root["cases"] if len(c["ids"]) < 60), key=lambda c: len(c["ids"]))
open("said.txt", "wb").write(base64.b64decode(case["b64"]))
bos = [] if root["bos_id"] is None else [root["bos_id"]]
json.dump(bos + case["ids"], open("said.json", "w"))
name, n, data = b"token_embd.weight", root["vocab_size"], open(sys.argv[2], "rb").read()
table = struct.pack("<Q", len(name)) + name + struct.pack("<IQQIQ", 2, 16, n, 1, 0) + bytes(2 * 16 * n)
open("tok.gguf", "wb").write(data[:8] + struct.pack("<Q", 1) + data[16:] + table)
P
}
for kind in gpt2_bpe llama2_sp qwen2_bpe llama3_bpe; do
    says $kind
    traced $kind.db tok.gguf --random-weights --text said.txt
    holds "$kind in a GGUF file: a text's ids" python -c 'import json, sys
from scores import *
ours, wanted = tokens(sys.argv[1]), json.load(open("said.json"))
assert ours == [wanted], (ours, wanted)' out/$kind.db
done

# llama.gguf with 64 tokens that can be spoken: the text gives what its ids give.
python - "$golden/llama.gguf" spoken.gguf <<'P'
import struct, sys
data = open(sys.argv[1], "rb").read()
text = lambda s: struct.pack("<Q", len(s.encode())) + s.encode()
key, old = lambda k, kind: text("tokenizer.ggml." + k) + struct.pack("<I", kind), [f"t{i}" for i in range(64)]
strings = lambda k, items: key(k, 9) + struct.pack("<IQ", 8, 64) + b"".join(map(text, items))
numbers = lambda k, kind, code, items: key(k, 9) + struct.pack("<IQ", kind, 64) + struct.pack(f"<64{code}", *items)
spoken = ["<unk>", "<s>", "</s>", "\u2581", "a", "b", "c", "ab"] + [f"<{i}>" for i in range(8, 64)]
values = (key("model", 8) + text("llama") + strings("tokens", spoken) + numbers("scores", 6, "f", [0.0] * 64) +
          numbers("token_type", 5, "i", [2, 3, 3] + [1] * 61))
tokens = strings("tokens", old)
at = data.index(tokens)
n_tensor, n_value = struct.unpack_from("<QQ", data, 8)
end = at + len(tokens)
for _ in range(n_tensor):
    end += 8 + struct.unpack_from("<Q", data, end)[0]
    end += 4 + 8 * struct.unpack_from("<I", data, end)[0] + 12
head = data[:16] + struct.pack("<Q", n_value + 3) + data[24:at] + values + data[at + len(tokens):end]
open(sys.argv[2], "wb").write(head + bytes(-len(head) % 32) + data[(end + 31) // 32 * 32:])
P
printf 'abca b' >said.txt
echo '[1, 3, 7, 6, 4, 3, 5]' >said.jsonl
traced said.db spoken.gguf --text said.txt
traced ids.db spoken.gguf --tokens said.jsonl
holds "a model that speaks: its text is its ids" python -c 'from scores import *
assert tokens("out/said.db") == tokens("out/ids.db") == [[1, 3, 7, 6, 4, 3, 5]], tokens("out/said.db")
same_blobs(blobs("out/said.db"), blobs("out/ids.db"))'

# ---- info, refusals ----

run info --model "$golden/quantised_k.gguf" --json
expect "info names the format" 0 '^ "dtype": "Q6_K",$' ""
rm -rf out && mkdir out
cp "$golden/gpt2.gguf" two
refuse "two models in a folder" 1 "two: found 2 GGUF models, expected one" info --model two
head -c 2000 "$golden/gpt2.gguf" >cut.gguf
refuse "a file that is cut short" 1 "cut.gguf: .*truncated" trace --model cut.gguf --tokens tokens.jsonl --db out/x.db
sed 's/qwen2/qwen9/g' "$golden/qwen2.gguf" >other.gguf
refuse "an unknown architecture" 1 "key 'general.architecture': found 'qwen9', expected one of llama" \
    info --model other.gguf
sed 's/qwen2/mamba/g' "$golden/qwen2.gguf" >other.gguf
refuse "an architecture whose state does not grow" 1 \
    "other.gguf: key 'general.architecture': found \"mamba\", whose state does not grow" info --model other.gguf
refuse "an absent file" 1 "absent.gguf: cannot be opened: No such file" info --model absent.gguf
refuse "a model without a tokenizer" 1 "llama.gguf: key 'tokenizer.ggml.model': found nothing, expected llama, t5, gpt2 or gemma4" \
    trace --model "$golden/llama.gguf" --text said.txt --db out/x.db
finish
