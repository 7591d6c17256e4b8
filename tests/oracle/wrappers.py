#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Texts through models of text and pictures or sound: transformers' logits against those of the text part in shears.

    wrappers.py SHEARS DIR [MODEL_TYPE...]      every type of src/model/families/wrappers.c, or these (torch, transformers)

Each becomes a tiny checkpoint with random weights in DIR and reads one text of 20 tokens without pictures. Prints the
largest difference of a logit, and ends with 1 if one is above 1e-4 of the largest logit. Types whose vision needs
packages that are not installed are named. Float32, one thread."""
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy
import torch
import transformers as t
from safetensors.torch import load_file, save_file

SMALL = dict(vocab_size=64, hidden_size=32, num_attention_heads=4, num_key_value_heads=2, intermediate_size=24,
             num_hidden_layers=2, max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=0, head_dim=8)
EYES = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1, depth=1, num_heads=1,
            embed_dim=8, out_hidden_size=32, image_size=28, patch_size=14, num_layers=1)
EXPERTS = dict(moe_intermediate_size=12, num_experts_per_tok=2, num_experts=4, num_local_experts=4, n_routed_experts=4,
               n_group=1, topk_group=1, first_k_dense_replace=1)
LATENT = dict(num_key_value_heads=4, q_lora_rank=10, kv_lora_rank=8, qk_rope_head_dim=4, qk_nope_head_dim=6,
              v_head_dim=8, head_dim=4)
LAYERS = {"lfm": ["conv", "full_attention"], "minicpm": ["linear_attention", "full_attention"]}
WHOLE = {"perception_lm": {"vision_config": {"model_args": {"embed_dim": 8}}},
         "emu3": {"vocabulary_map": {"<image>": 3}}, "cosmos3_edge": {"projector_hidden_size": 4},
         "molmo2": {"adapter_config": {"vision_feature_layer": [0]}},
         "granite_docling": {"vision_config": {"out_hidden_size": 32}},
         "granite4_vision": {"downsample_rate": "1/2", "deepstack_layer_map": [], "spatial_target_layers": []}}
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
TEXT = {"mistral_large4": {"kv_source_layers": [0, 1], "no_rope_layers": [1, 0], "q_lora_rank": None,
                           "mlp_layer_types": ["dense", "sparse"]},
        "cohere_compass": {"layer_types": ["sliding_attention", "full_attention"],
                           "rope_parameters": {"sliding_attention": ROPE, "full_attention": None}},
        "cosmos3_edge": {"rope_parameters": ROPE | {"mrope_section": [1, 2, 1]}},
        "kosmos-2": {"embed_dim": 32, "layers": 2, "ffn_dim": 24, "attention_heads": 4},
        "mllama": {"num_hidden_layers": 3, "cross_attention_layers": [1]},
        "ernie4_5_vl_moe": {"moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": [12, 6],
                            "mlp_layer_types": ["dense", "sparse"], "rope_parameters": ROPE | {"mrope_section": [1, 1, 2]}},
        "hunyuan_vl": {"rope_parameters": ROPE | {"mrope_section": [1, 1, 1, 1]}},
        "deepseek_ocr2": {"mlp_layer_types": ["dense", "sparse"]},
        "unlimited_ocr": {"mlp_layer_types": ["dense", "sparse"], "num_key_value_heads": 4},
        "paddleocr_vl": {"rope_parameters": ROPE | {"mrope_section": [2, 1, 1]}}}
TALKERS = ("qwen2_5_omni", "qwen3_omni_moe")     # compute texts by their thinkers, which have types of their own
WRAPPERS = pathlib.Path(__file__).parents[2] / "src/model/families/wrappers.c"


def leave_towers_out():
    """Towers whose packages are not installed: a text does not pass through them."""
    usual = t.AutoModel.from_config
    t.AutoModel.from_config = lambda config, **more: torch.nn.Linear(1, 1) if config.model_type == "timm_wrapper" \
        else usual(config, **more)


def types():
    """The model types whose class is in the list."""
    names = set(re.findall(r'"(\w+ForConditionalGeneration)"', WRAPPERS.read_text()))
    auto = t.models.auto.modeling_auto
    found = {}
    for table in auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES, auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES:
        found |= {kind: name for kind, name in table.items() if name in names}
    return {kind: name for kind, name in found.items() if kind not in TALKERS}


def text_keys(kind, keys):
    own = {key: value for key, value in (SMALL | EXPERTS).items() if key in keys}
    if "kv_lora_rank" in keys:
        own |= LATENT
    if re.match(r"qwen[23].*(vl|omni)|glm(?!asr)", kind):
        own["rope_parameters"] = ROPE | {"mrope_section": [2, 1, 1]}
    if re.match(r"glm(?!asr)", kind):
        own["rope_parameters"] |= {"mrope_section": [1, 1, 0], "partial_rotary_factor": 0.5}
    if keys.get("layer_types"):
        own["layer_types"] = next((v for start, v in LAYERS.items() if kind.startswith(start)), keys["layer_types"][:2])
    return own | TEXT.get(kind, {})


def shrink(config, text):
    """Make all parts for pictures and sound small, also parts of parts."""
    for key in getattr(config, "sub_configs", {}):
        sub = getattr(config, key, None)
        if sub is None or sub is text or not hasattr(sub, "to_dict"):
            continue
        for name, value in EYES.items():
            if hasattr(sub, name):
                old = getattr(sub, name)
                setattr(sub, name, [value, value] if isinstance(old, (list, tuple)) else value)
        shrink(sub, text)


def config_of(kind):
    usual = t.CONFIG_MAPPING[kind]()
    text = usual.get_text_config()
    keys = text.to_dict()
    name = next((k for k in usual.sub_configs if getattr(usual, k, None) is text), "text_config")
    config = t.CONFIG_MAPPING[kind](**{name: keys | text_keys(kind, keys)}, **WHOLE.get(kind, {}))
    shrink(config, config.get_text_config())
    return config


def randomise(model):
    g = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1 or p.numel() > 1000:
                p.normal_(0, 0.3, generator=g)
            else:
                p.add_(torch.randn(p.shape, generator=g) * 0.1)
    return torch.randint(5, 60, (1, 20), generator=g)


def mend(folder):
    """Names of the text part that transformers confuses with those of the tower when it saves."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    save_file({re.sub(r"^(language_model\.model\.)(blocks|encoder\.layers)\.", r"\1layers.", name): x
               for name, x in tensors.items()}, path)


def off(shears, folder, kind, name):
    torch.manual_seed(0)
    model = getattr(t, name)(config_of(kind)).eval().float()
    tokens = randomise(model)
    with torch.no_grad():
        # Kosmos-2 as a whole wants a picture.
        speaks = model.text_model if kind == "kosmos-2" else model
        logits = speaks(input_ids=tokens, use_cache=False).logits[0].double().numpy()
    model.save_pretrained(folder)
    mend(folder)
    (folder / "ids").write_text(json.dumps(tokens[0].tolist()) + "\n")
    subprocess.run([shears, "eval", "--model", folder, "--tokens", folder / "ids", "--logits", folder / "logits.npy", "-q"],
                   check=True, stdout=subprocess.DEVNULL)
    got = numpy.load(folder / "logits.npy").reshape(len(logits), -1)[:, :logits.shape[1]]  # mllama: no head for some
    return abs(got - logits).max() / abs(logits).max()


def main(shears, folder, *kinds):
    torch.set_num_threads(1)
    leave_towers_out()
    bad = 0
    for kind, name in types().items():
        if kinds and kind not in kinds:
            continue
        place = pathlib.Path(folder) / kind
        place.mkdir(parents=True, exist_ok=True)
        try:
            x = off(os.path.abspath(shears), place, kind, name)
            print(f"{kind}: {x:.1e}")
            bad |= not x < 1e-4
        except ImportError as error:
            print(f"{kind}: not tried: {str(error).split('.')[0]}")
        for path in place.glob("model*"):
            path.unlink()
    sys.exit(bad)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
