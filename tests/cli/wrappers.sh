#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Text parts of models with pictures: configs that leave out what transformers' class says, heads that are or are not the
# embedding, and models that change their text part. tests/unit/test_modern.c compares their numbers.
. "$(dirname "$0")/lib.sh"

# As published: LLaVA 1.5 says only where it differs from LLaMA's class.
mkdir llava other
cat >llava/config.json <<'E'
{"architectures": ["LlavaForConditionalGeneration"], "ignore_index": -100, "image_token_index": 32000,
 "model_type": "llava", "pad_token_id": 32001, "projector_hidden_act": "gelu", "text_config": {
  "_name_or_path": "vicuna-7b-v1.5", "architectures": ["LlamaForCausalLM"], "max_position_embeddings": 4096,
  "model_type": "llama", "rms_norm_eps": 1e-05, "torch_dtype": "float16", "vocab_size": 32064},
 "tie_word_embeddings": false, "torch_dtype": "float16", "vision_config": {"hidden_size": 1024, "image_size": 336},
 "vocab_size": 32064}
E
run capacity --model llava --gpu h100-sxm --length 4096 --json
holds "llava-1.5-7b: as many parameters as transformers makes, in 16 bits" python - <<'E'
import json
said = json.load(open("log/out"))["results"][0]
assert said["weights_bytes_per_gpu"] == 2 * 6738939904, said["weights_bytes_per_gpu"]
E
sed 's/"hidden_size": 1024/"depth": 1/; s/LlavaFor/PaliGemmaFor/; s/"llava"/"paligemma"/' llava/config.json >other/config.json
echo '[3, 4, 5, 6, 7, 8, 9, 10]' >ids
refuse "a model whose prompt sees all of itself" 1 "'architectures': found .\"PaliGemmaFor.*expected a model whose text part" eval --model other --tokens ids --policy full

# A model that also talks: what it says of the whole is not the thinker's; nor is a config without its text part run.
omni=$checkpoints/modern/qwen2_5_omni
mkdir talks silent
cp "$omni/model.safetensors" talks
python - "$omni" <<'E'
import json, sys
c = json.load(open(sys.argv[1] + "/config.json"))
c.update(tie_word_embeddings=True, hidden_act="relu", sliding_window=3, use_sliding_window=True, attention_bias=False)
json.dump(c, open("talks/config.json", "w"))
c["thinker_config"]["text_config"] = None
json.dump(c, open("silent/config.json", "w"))
E
refuse "a model that talks without its text part" 1 "model_type" eval --model silent --tokens ids --policy full

ppl() { # folder
    run eval --model "$1" --tokens ids --policy full --json -q
    python -c 'import json; print(json.load(open("log/out"))["full_ppl"])' 2>/dev/null || sed 's/^/# /' log/err
}
# mistral3 says nothing of its head: the file has one. The same without, with a copy of the embedding, and with a config
# that says that both are one.
published=$checkpoints/modern/mistral3
cat >files.py <<'E'
import json, os, struct, sys
def read(path):
    raw = open(path + "/model.safetensors", "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    return {k: (v["dtype"], v["shape"], raw[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]])
            for k, v in json.loads(raw[8:8 + n]).items() if k != "__metadata__"}
def write(name, tensors, change):
    os.makedirs(name)
    header, at, blob = {}, 0, b""
    for k, (dtype, shape, data) in tensors.items():
        header[k] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
        blob += data
    text = json.dumps(header).encode()
    open(name + "/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + blob)
    config = json.load(open(sys.argv[1] + "/config.json"))
    change(config)
    json.dump(config, open(name + "/config.json", "w"))
E
PYTHONPATH=. python - "$published" <<'E'
import sys
from files import read, write
t = read(sys.argv[1])
head = next(k for k in t if k.endswith("lm_head.weight"))
embed = next(k for k in t if k.endswith("model.embed_tokens.weight"))
without = {k: v for k, v in t.items() if k != head}
write("own", t, lambda c: c.update(tie_word_embeddings=True))
write("none", without, lambda c: None)
write("copy", {**without, head: t[embed]}, lambda c: c.update(tie_word_embeddings=False))
write("lost", without, lambda c: c.update(tie_word_embeddings=False))
E
own=$(ppl "$published") said=$(ppl own) none=$(ppl none) copy=$(ppl copy)
verdict "a head that differs is used, whatever the config says" "$([ "$own" = "$said" ] || echo "# $own, $said")"
verdict "a file without head has the embedding in its place" "$([ "$none" = "$copy" ] || echo "# $none, $copy")"
verdict "  which is another model" "$([ "$own" != "$none" ] || echo "# $own, $none")"
# Keys of the whole model are not the text part's.
PYTHONPATH=. python - "$checkpoints/modern/llava" <<'E'
import sys
from files import read, write
write("leak", read(sys.argv[1]), lambda c: (c.update(rope_scaling={"type": "linear", "factor": 8.0}, attention_bias=True,
                                                     window_size=15), c["text_config"].pop("attention_bias", None)))
E
a=$(ppl "$checkpoints/modern/llava") b=$(ppl leak)
verdict "keys outside of text_config are not the text part's" "$([ "$a" = "$b" ] || echo "# $a, $b")"
run capacity --model leak --gpu h100-sxm --length 64
expect "  nor for its memory" 0 "5456 parameters" ""

a=$(ppl "$omni") b=$(ppl talks)
verdict "keys outside of thinker_config are not the thinker's" "$([ -n "$a" ] && [ "$a" = "$b" ] || echo "# $a, $b")"

# Experts one by one, as quantised files have them.
PYTHONPATH=. python - "$checkpoints/modern/qwen3_vl_moe" <<'E'
import struct, sys
from files import read, write
out = {}
for name, (kind, shape, data) in read(sys.argv[1]).items():
    if ".mlp.experts." not in name:
        out[name] = kind, shape, data
        continue
    experts, rows, cols = shape             # [expert, in, out]
    x = struct.unpack("<%df" % (experts * rows * cols), data)
    stem, part = name.rsplit(".", 1)
    for i in range(experts):
        w = [[x[(i * rows + r) * cols + c] for r in range(rows)] for c in range(cols)]
        parts = {"down": w} if part == "down_proj" else {"gate": w[:cols // 2], "up": w[cols // 2:]}
        for own, m in parts.items():
            out["%s.%d.%s_proj.weight" % (stem, i, own)] = kind, [len(m), rows], b"".join(struct.pack("<%df" % rows, *v) for v in m)
write("split", out, lambda c: None)
E
a=$(ppl "$checkpoints/modern/qwen3_vl_moe") b=$(ppl split)
verdict "experts in stacks or one by one" "$([ -n "$a" ] && [ "$a" = "$b" ] || echo "# $a, $b")"
refuse "a head that is lost" 1 "lm_head.weight' is missing" eval --model lost --tokens ids --policy full
finish
