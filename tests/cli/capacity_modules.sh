#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Bytes of checkpoints in which only some matrices are quantised: lists of modules, groups with targets and
# quantized_layers, compared with what Python counts from the tensors' own names and shapes.
. "$(dirname "$0")/lib.sh"

cat >modules.py <<'P'
"""modules.py FOLDER SETTINGS: writes model/config.json with these settings; prints the bytes of all weights."""
import fnmatch, json, re, struct, sys
folder, settings = sys.argv[1], json.loads(sys.argv[2])
config = json.load(open(folder + "/config.json"))
text = config.get("text_config", config)
for part in (config, text):
    part.pop("torch_dtype", None)
    part.pop("vision_config", None)
    part["dtype"] = "bfloat16"
config["quantization_config"] = settings
json.dump(config, open("model/config.json", "w"))
with open(folder + "/model.safetensors", "rb") as f:
    tensors = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
FORMATS = {"NVFP4": "nvfp4", "FP8": "f8", "MXFP8": "mxfp8", "W4A16_NVFP4": "nvfp4"}


def size(form, rows, columns):
    up = lambda n, d: -(-n // d)
    return {"whole": 2 * rows * columns, "nvfp4": rows * up(columns, 16) * 9, "f8": rows * columns,
            "mxfp8": rows * up(columns, 32) * 33, "channel": rows * (columns + 2), "int4": rows * up(columns, 32) * 18,
            "block": rows * columns + 4 * up(rows, 128) * up(columns, 128)}[form]


def named(module, name):
    if name.startswith("re:"):
        return re.match(name[3:], module) is not None
    return fnmatch.fnmatchcase(module, name) or module.startswith(name + ".")


def form_of(module):
    left = settings.get("ignore", []) + settings.get("exclude_modules", [])
    if any(named(module, name) for name in left):
        return "whole"
    parts = settings.get("modules_to_not_convert") or []
    if any(module == p or module.endswith("." + p) or module.startswith(p + ".") or "." + p + "." in module for p in parts):
        return "whole"
    layers = settings.get("quantized_layers")
    if layers is not None:
        return next((FORMATS[v["quant_algo"]] for k, v in layers.items() if named(module, k)), "whole")
    if module.endswith("lm_head") and settings["quant_method"] != "compressed-tensors":
        return "whole"
    if settings["quant_method"] == "fp8":
        return "block" if "weight_block_size" in settings else "channel"
    if settings["quant_method"] == "compressed-tensors":
        forms, usual = {"4": "int4", "8": "channel"}, "whole"
        for group in settings["config_groups"].values():
            form = forms[str(group["weights"]["num_bits"])]
            if any(t != "Linear" and named(module, t) for t in group["targets"]):
                return form
            usual = form if "Linear" in group["targets"] else usual
        return usual
    return FORMATS[settings["quant_algo"]]


SMALL = ("embed_tokens", "embeddings", ".wte", ".gate", ".classifier", "weights_proj", "shared_expert_gate", "conv1d", "compress_ape",
         "compress_gate")
total = 0
for name, t in tensors.items():
    if name == "__metadata__" or any(p in name for p in ("vision", "visual", "projector", "patch_merge", "mtp")) or \
            name.endswith("e_score_correction_bias"):
        continue
    expert = re.search(r"experts\.(\d+)", name)
    if expert and int(expert[1]) >= text.get("n_routed_experts", 1000):
        continue                            # of no use: LongCat's experts that compute nothing
    rows = t["shape"][-2] if len(t["shape"]) > 1 else 1
    columns = t["shape"][-1]
    module = name.removesuffix(".weight")
    many = 1
    for n in t["shape"][:-2]:
        many *= n
    matrix = len(t["shape"]) == 2 and "norm" not in name and not any(module.endswith(s) for s in SMALL) and \
        "hc_" not in name and ".A_log" not in name and "conv1d" not in name
    matrix |= "experts" in name and len(t["shape"]) == 3
    total += many * size(form_of(module) if matrix else "whole", rows, columns)
print(total)
P
bytes() { # description, folder, settings
    mkdir -p model
    local expected
    expected=$(python modules.py "$SH_GOLDEN/checkpoints/modern/$2" "$3") || expected=none
    run capacity --model model/config.json --gpu H100-SXM --length 64 --json
    holds "$1 ($2)" python -c 'import json, sys
found = json.load(open("log/out"))["results"][0]["weights_bytes_per_gpu"]
assert str(found) == sys.argv[1], (found, sys.argv[1])' "$expected"
}
refuses() { # description, folder, settings, stderr
    mkdir -p model
    python modules.py "$SH_GOLDEN/checkpoints/modern/$2" "$3" >/dev/null 2>&1
    run capacity --model model/config.json --gpu H100-SXM --length 64 --json
    expect "$1 ($2)" 1 "" "$4"
}

nv='"quant_method": "modelopt", "quant_algo": "NVFP4"'
groups() { # targets of 4 bits, targets of 8 bits
    echo '"quant_method": "compressed-tensors", "config_groups": {
        "group_0": {"targets": ['"$1"'], "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32,
            "symmetric": true}},
        "group_1": {"targets": ['"$2"'], "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}}'
}
bytes "some latents, the index and the first layer are left out" deepseek_v32 "{$nv, \"exclude_modules\": [\"lm_head\",
    \"model.layers.0*\", \"model.layers.1.self_attn.indexer*\", \"model.layers.1.self_attn.kv_b_proj\",
    \"model.layers.1.self_attn.q_a_proj\", \"model.layers.7*\"]}"
bytes "all of attention in one layer" deepseek_v32 "{$nv, \"exclude_modules\": [\"model.layers.1.self_attn\"]}"
bytes "regular expressions" deepseek_v32 "{$nv, \"ignore\": [\"re:.*self_attn\\\\..*(a|b)_proj.*\",
    \"re:.*shared_experts.*\", \"re:.*lm_head\"]}"
bytes "patterns without a beginning" deepseek_v32 "{$nv, \"exclude_modules\": [\"*.self_attn.o_proj\", \"*shared_experts*\"]}"
bytes "names of modules, whole or their ends" deepseek_v32 '{"quant_method": "fp8", "weight_block_size": [128, 128],
    "modules_to_not_convert": ["gate", "e_score_correction_bias", "lm_head", "o_proj", "model.layers.1.mlp.experts",
        "model.layers.1.self_attn.indexer.k_norm"]}'
bytes "formats of modules by name" minimax_m3 '{"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION",
    "exclude_modules": ["lm_head", "vision_tower"], "quantized_layers": {
        "language_model.model.layers.1.block_sparse_moe.experts": {"quant_algo": "NVFP4", "group_size": 16},
        "language_model.model.layers.2.block_sparse_moe.experts": {"quant_algo": "FP8"},
        "language_model.model.layers.1.self_attn.q_proj": {"quant_algo": "MXFP8"},
        "language_model.model.layers.1.self_attn.index_q_proj": {"quant_algo": "MXFP8"},
        "language_model.model.layers.1.self_attn.index_k_proj": {"quant_algo": "MXFP8"},
        "language_model.model.layers.0.mlp.down_proj": {"quant_algo": "FP8"}}}'
bytes "states and the head" nemotron_h_moe '{"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION",
    "quantized_layers": {"backbone.layers.0.mixer.in_proj": {"quant_algo": "FP8"}, "lm_head": {"quant_algo": "NVFP4"},
        "backbone.layers.1.mixer.experts": {"quant_algo": "NVFP4"},
        "backbone.layers.1.mixer.shared_experts.up_proj": {"quant_algo": "FP8"}}}'
bytes "the delta rule and experts in stacks" qwen3_5_moe '{"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION",
    "quantized_layers": {"model.language_model.layers.0.linear_attn.in_proj_qkv": {"quant_algo": "FP8"},
        "model.language_model.layers.0.linear_attn.in_proj_z": {"quant_algo": "FP8"},
        "model.language_model.layers.0.linear_attn.out_proj": {"quant_algo": "NVFP4"},
        "model.language_model.layers.1.mlp.experts": {"quant_algo": "W4A16_NVFP4"},
        "model.language_model.layers.1.self_attn.o_proj": {"quant_algo": "FP8"}}}'
bytes "Kimi delta attention" kimi_linear "{$nv, \"exclude_modules\": [\"model.layers.0.self_attn*\", \"*.b_proj\"]}"
bytes "what is never quantised, as lists of whole files have it" glm5_next_published '{"quant_method": "fp8",
    "weight_block_size": [128, 128], "modules_to_not_convert": ["lm_head", "model.language_model.embed_tokens",
        "model.language_model.layers.1.hc_attn_fn", "model.language_model.layers.1.hc_ffn_base",
        "model.language_model.layers.1.self_attn.A_log", "model.language_model.layers.1.self_attn.dt_bias",
        "model.language_model.layers.1.self_attn.q_conv1d", "model.language_model.layers.1.self_attn.b_proj",
        "model.language_model.layers.0.self_attn.kv_a_layernorm", "model.language_model.layers.0.mlp.gate"]}'
bytes "groups with targets" deepseek_v32 "{$(groups '"re:.*experts.*"' '"Linear"')}"
bytes "groups with long names" deepseek_v32 "{$(groups '"re:.*experts.*"' '"Linear"' |
    sed "s/group_0/a_name_of_more_than_forty_letters_for_a_group/")}"
bytes "two blocks of attention in a layer" longcat_flash "{$(groups '"re:.*layers\\.0\\.self_attn\\.1\\..*"' '"Linear"'),
    \"ignore\": [\"lm_head\", \"model.layers.1.self_attn.1.o_proj\", \"model.layers.0.mlps.1\"]}"
left() { # modules
    echo "{$(groups '"re:none"' '"Linear"'), \"ignore\": [$(printf '"%s", ' "$@") \"lm_head\"]}"
}
bytes "keys of the index alone" deepseek_v32 "$(left model.layers.0.self_attn.indexer.wk)"
bytes "another name of the index" minimax_m3_text "$(left {language_model.,}model.layers.2.self_attn.indexer.k_proj)"
bytes "a gate next to queries" dory "$(left backbone.layers.0.self_attn.g_proj backbone.layers.1.self_attn.q_proj)"
bytes "queries, keys and values of a state" olmo_hybrid "$(left model.layers.0.linear_attn.{q,k,v}_proj)"
bytes "steps of a state" kimi_linear "$(left model.layers.0.self_attn.f_{a,b}_proj)"
bytes "layers of another name" exaone "$(left transformer.h.1.mlp.c_proj transformer.h.0.attn.attention.v_proj)"
bytes "groups, the head and a matrix left out" deepseek_v32 "{$(groups '"Linear"' '"re:.*o_proj", "re:.*q_b_proj"'),
    \"ignore\": [\"lm_head\", \"model.layers.0.self_attn.q_a_proj\"]}"
bytes "one group for some matrices" deepseek_v32 "{$(groups '"re:.*experts.*"' '"re:.*o_proj"')}"

refuses "a module of no known name" deepseek_v32 "{$nv, \"exclude_modules\": [\"lm_head\", \"model.layers.1.mlp.odd\"]}" \
    "key 'quantization_config.exclude_modules.1': found .model.layers.1.mlp.odd., expected lm_head, a router"
refuses "a pattern that nothing matches" deepseek_v32 "{$nv, \"exclude_modules\": [\"*odd*\"]}" "exclude_modules.0': found"
refuses "a broken expression" deepseek_v32 "{$nv, \"ignore\": [\"re:(\"]}" "'quantization_config.ignore.0': found .re:\(., expected a"
refuses "an unknown format of a module" deepseek_v32 '{"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION",
    "quantized_layers": {"model.layers.0.self_attn.o_proj": {"quant_algo": "W3"}}}' \
    "'quantization_config.quantized_layers': found model.layers.0.self_attn.o_proj with W3"
refuses "experts of one layer that differ" deepseek_v32 '{"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION",
    "quantized_layers": {"model.layers.1.mlp.experts.0.up_proj": {"quant_algo": "FP8"},
        "model.layers.1.mlp.experts.1.up_proj": {"quant_algo": "NVFP4"}}}' "found layers.1.mlp.experts.1.up_proj, expected"
refuses "mixed formats without names" deepseek_v32 '{"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}' \
    "key 'quantization_config.quant_algo': .*one format, or quantized_layers"
refuses "two groups for all matrices" deepseek_v32 "{$(groups '"Linear"' '"Linear"')}" "targets': found .*one group for all"
many=$(python -c 'print(", ".join("\"*a%d*\"" % i for i in range(300)))')
refuses "too many patterns" deepseek_v32 "{$nv, \"exclude_modules\": [$many]}" "at most 256 patterns"
# Expressions that would take forever are stopped.
mkdir -p model
python - "$SH_GOLDEN/checkpoints/modern/deepseek_v32/config.json" <<'P'
import json, sys
slow = ["re:(.*)*(.*)*(.*)*(.*)*x%d" % i for i in range(200)]
json.dump(json.load(open(sys.argv[1])) | {"quantization_config": {
    "quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": slow}}, open("model/config.json", "w"))
P
run capacity --model model/config.json --gpu H100-SXM --length 64 --json
expect "slow expressions" 1 "" "key 'quantization_config': its patterns take too long, expected at most 2 s"
# Lists may say the same thing over and over.
python - "$SH_GOLDEN/checkpoints/modern/lara_mini/config.json" <<'P'
import json, sys
config = json.load(open(sys.argv[1]))
config |= {"num_hidden_layers": 1000, "layer_types": ["full_attention"] * 1000, "quantization_config": {
    "quant_method": "fp8", "ignore": ["layers"] * 65000, "exclude_modules": ["layers"] * 65000}}
json.dump(config, open("model/config.json", "w"))
P
begun=$SECONDS
run capacity --model model/config.json --gpu H100-SXM --length 64 --json
expect "a list that names all layers 130000 times" 0 '"weights": "f(16|32)"' ""
holds "which takes no longer for that" test $((SECONDS - begun)) -lt 8
refuses "groups with names of many parts" deepseek_v32 "{$(groups '"Linear"' '"re:.*o_proj"' | sed s/group_1/a.b/)}" \
    "'quantization_config.config_groups': found .*, expected at most 16 groups with short names"
finish
