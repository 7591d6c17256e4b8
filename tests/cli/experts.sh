#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Mixtures with more experts than may stay in memory or on a device: those that tokens ask for are read, the scores are
# the same, and what is taken stays within what is said; an expert that cannot be used is named when it is asked for.
. "$(dirname "$0")/lib.sh"

mkdir many one
python - <<'P'
import json
config = {"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "num_hidden_layers": 2, "hidden_size": 64,
          "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 64,
          "moe_intermediate_size": 128, "num_experts": 64, "num_experts_per_tok": 4, "norm_topk_prob": True,
          "vocab_size": 128, "max_position_embeddings": 512, "rms_norm_eps": 1e-6, "initializer_range": 0.3,
          "tie_word_embeddings": False}
json.dump(config, open("many/config.json", "w"))
for name, n, length in (("long", 3, 350), ("short", 6, 24)):
    with open(name + ".jsonl", "w") as f:
        for i in range(n):
            f.write(json.dumps([(7 * i + 3 * j * j + i * j) % 128 for j in range(length)]) + "\n")
open("one.jsonl", "w").write("[5]\n")
P
traced() { # store, arguments...: must go well
    local db=$1
    shift
    run trace --random-weights --model many --db "out/$db" -q --json "$@"
    [ $status = 0 ] || { not_ok "trace $* into $db"; sed 's/^/# /' log/err; }
}

# More tokens than go through a layer together: the experts are asked for twice.
traced all.db --tokens long.jsonl --record summary
traced few.db --tokens long.jsonl --record summary --memory 1M
holds "ten of 64 experts stay in memory: the same store" same out/all.db out/few.db
traced none.db --tokens long.jsonl --record summary --memory 1
holds "no expert stays: the same store" same out/all.db out/none.db
traced bits.db --tokens short.jsonl --weight-bits 8
traced few-bits.db --tokens short.jsonl --weight-bits 8 --memory 1
holds "no expert in codes of 8 bits stays: the same store" same out/bits.db out/few-bits.db

# ---- a device ----

find_modules
if [ -n "$modules" ]; then
    export SH_MODULE_DIR=$modules SH_EMU_STREAMS=lazy
    traced device.db --tokens short.jsonl --backend cuda --codec f32
    needs=$(python -c 'import json; print(json.load(open("log/out"))["device_needs_bytes"])')
    traced small.db --tokens short.jsonl --backend cuda --codec f32 --device-memory $((needs - 5000000))
    holds "a device that holds a fifth of a layer's experts: the same store" same out/device.db out/small.db
    holds "what is taken stays within what is said" python - $((needs - 5000000)) <<'P'
import json, sys
said, limit = json.load(open("log/out")), int(sys.argv[1])
assert 0 < said["device_peak_bytes"] <= said["device_needs_bytes"] <= limit, (said, limit)
P
    export SH_MODULE_DIR=$work/nothing
else
    skip "a device that holds a fifth of a layer's experts" "there is no emulated module (no C++ compiler)"
fi

# ---- checkpoints ----

# 16-bit numbers are multiplied where the file is mapped; the same numbers in f32 are copied.
from=$checkpoints/modern/qwen3_5_moe
python - "$from" <<'P'
import array, json, os, struct, sys
raw = open(sys.argv[1] + "/model.safetensors", "rb").read()
n, = struct.unpack("<Q", raw[:8])
header = json.loads(raw[8:8 + n])
def write(folder, edit):
    os.makedirs(folder, exist_ok=True)
    new, blobs, at = {}, [], 0
    for name, t in header.items():
        if name == "__metadata__":
            continue
        numbers = array.array("f", raw[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]])
        dtype, blob = edit(name, numbers)
        new[name] = {"dtype": dtype, "shape": t["shape"], "data_offsets": [at, at + len(blob)]}
        at += len(blob)
        blobs.append(blob)
    text = json.dumps(new).encode()
    text += b" " * (-len(text) % 8)
    open(folder + "/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + b"".join(blobs))
    open(folder + "/config.json", "w").write(open(sys.argv[1] + "/config.json").read())
def cut(numbers):
    return b"".join(b"\0\0" + numbers[i:i + 1].tobytes()[2:] for i in range(len(numbers)))
def short(numbers):
    return b"".join(numbers[i:i + 1].tobytes()[2:] for i in range(len(numbers)))
write("wide", lambda name, x: ("F32", cut(x) if ".experts." in name else x.tobytes()))
write("half", lambda name, x: ("BF16", short(x)) if ".experts." in name else ("F32", x.tobytes()))
for i in range(6):
    def bad(name, x):
        if name == "model.language_model.layers.0.mlp.experts.down_proj":
            x[i * len(x) // 6 + 7] = float("nan")
        return "F32", x.tobytes()
    write(f"bad{i}", bad)
P
python -c 'print([5 * i % 64 for i in range(64)])' >64.jsonl
for kind in wide half; do
    run eval -q --json --model $kind --tokens 64.jsonl --policy window --budget 1.0
    python -c 'import json; print(json.load(open("log/out"))["full_nll"])' >$kind.nll
done
holds "experts of 16 bits where they lie: the same loss as a copy" python - <<'P'
wide, half = (float(open(kind + ".nll").read()) for kind in ("wide", "half"))
assert wide > 1 and abs(wide - half) < 1e-6, (wide, half)
P

# A choice that cannot be made.
cut() { # key, value
    mkdir -p odd && cp "$checkpoints/modern/latent/model.safetensors" odd && python - "$@" <<'P'
import json, os, sys
config = json.load(open(os.environ["SH_GOLDEN"] + "/checkpoints/modern/latent/config.json"))
config[sys.argv[1]] = json.loads(sys.argv[2])
json.dump(config, open("odd/config.json", "w"))
P
}
rm -rf out && mkdir out
while read -r key value says; do
    cut "$key" "$value"
    refuse "$key $value" 1 "$says" trace -q --model odd --tokens one.jsonl --db out/odd.db
done <<'KEYS'
n_routed_experts 0 key 'n_routed_experts': found 0, expected a whole number
n_routed_experts 12 'model.layers.1.mlp.gate.weight': found shape .8, 24., expected .12, 24. .n_routed_experts
n_routed_experts 1e9 key 'n_routed_experts': found 1000000000.0
num_experts_per_tok 9 found 8 experts of width 8, of which each token uses 9
n_group 3 found 3 groups of 8 experts, of which 2 are used
topk_group 5 found 4 groups of experts, of which 5 are used
moe_intermediate_size -8 key 'moe_intermediate_size': found -8
moe_intermediate_size 9 'model.layers.1.mlp.*_proj.weight': found shape .*8.*, expected
KEYS

# One token uses two of six experts: a fault in another one is not seen, and one in those is named.
named=0 unseen=0
for i in 0 1 2 3 4 5; do
    rm -f out/*
    run trace -q --model bad$i --tokens one.jsonl --db out/one.db
    if [ $status = 0 ]; then
        unseen=$((unseen + 1))
    elif [ $status = 1 ] && grep -Eq "layers.0.mlp.experts.down_proj'?: element 7 .*nan, expected finite" log/err; then
        named=$((named + 1))
    else
        sed 's/^/# /' log/err
    fi
done
holds "a NaN in the two experts that are asked for is named, in others not seen" [ "$named$unseen" = 24 ]
run generate -q --model bad0 --tokens 64.jsonl --max-tokens 2
expect "generate: the same error" 1 "" "layers.0.mlp.experts.down_proj.*element 7 .*nan, expected finite"
# ---- scales of MXFP4 ----

python "$SH_TOP/bench/random_experts.py" oss small-gpt-oss >/dev/null
scaled() { # byte: a scale in the last row of each expert's down_proj
    rm -rf scaled && cp -r oss scaled
    python - "$1" <<'P'
import glob, json, struct, sys
for path in glob.glob("scaled/*.safetensors"):
    with open(path, "r+b") as f:
        head, = struct.unpack("<Q", f.read(8))
        for name, t in json.loads(f.read(head)).items():
            if name.endswith("layers.0.mlp.experts.down_proj_scales"):
                (begin, end), n = t["data_offsets"], t["shape"][0]
                for i in range(n):
                    f.seek(8 + head + begin + (end - begin) // n * (i + 1) - 1)
                    f.write(bytes([int(sys.argv[1])]))
P
}
scaled 255
rm -f out/*
refuse "a scale that is no number" 1 "down_proj.*(nan|inf), expected finite" \
    trace --model scaled --db out/nan.db --tokens one.jsonl -q
scaled 127
run trace --model scaled --db out/scaled.db --tokens one.jsonl -q
expect "a scale that is one" 0 "layers  " ""
finish
