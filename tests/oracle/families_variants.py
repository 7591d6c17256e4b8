#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Variants of the newer families' checkpoints: each key of a config.json changed in turn, with what transformers
computes then.

    families_variants.py MODERN DIR [FOLDER[:KEY]...]      MODERN: the shared fixtures' folder of that name

Makes DIR/modern/FOLDER-KEY-N, each a checkpoint as published with ref.json and ref.safetensors, and prints the change.
Then `SH_FIXTURES=DIR tests/unit/test_modern FOLDER-KEY-N...` compares. A change that transformers itself refuses, or that
makes it fail, is left out. Models with a text_config only where they are named. Eager attention, float32, one
thread."""
import copy
import json
import pathlib
import shutil
import sys
import warnings

import torch
from safetensors.torch import save_file

from families_modern import NEVER, calm, new_model, passes, speaker, show_sinks, stack_heads, streams

LENGTHS = (9, 44)
ASIDE = set("""architectures torch_dtype dtype transformers_version bos_token_id eos_token_id pad_token_id use_cache
    model_type attention_dropout initializer_range hidden_dropout resid_pdrop embd_pdrop attn_pdrop is_encoder_decoder
    output_attentions output_hidden_states return_dict chunk_size_feed_forward id2label label2id problem_type
    _name_or_path attention_probs_dropout_prob output_router_logits is_decoder vocab_size max_position_embeddings
    router_aux_loss_coef load_balance_coeff add_cross_attention cross_attention_hidden_size task_specific_params summary_activation summary_first_dropout
    summary_proj_to_labels summary_type summary_use_proj layerdrop init_std decoder_start_token_id""".split())
NEEDED = set("""hidden_size intermediate_size num_attention_heads num_hidden_layers vocab_size num_experts n_embd n_head
    n_layer d_model n_heads n_layers moe_intermediate_size num_experts_per_tok kv_lora_rank qk_rope_head_dim v_head_dim
    qk_nope_head_dim n_routed_experts num_local_experts layer_types router_aux_loss_coef
    ngram_vocab_size_base""".split())
ACTS = ("gelu", "silu", "relu")
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
SCALINGS = (
    {"type": "linear", "factor": 3.0}, {"rope_type": "dynamic", "factor": 2.0}, dict(YARN, beta_fast=8.0, beta_slow=2.0),
    dict(YARN, mscale=0.7, mscale_all_dim=0.5, truncate=False), dict(YARN, attention_factor=0.8),
    {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 3.0,
     "original_max_position_embeddings": 32})
PLAIN = {"rope_type": "default", "rope_theta": 77.0}


def layer_lists(value, n):
    """Other lists of the same kinds."""
    kinds = sorted(set(value)) if value and isinstance(value[0], str) else [0, 1]
    if isinstance(kinds[0], str) and "sliding_attention" not in kinds and kinds == ["full_attention"]:
        kinds.append("sliding_attention")
    turned = value[1:] + value[:1]
    return [v for v in (turned, [kinds[i % len(kinds)] for i in range(n)], [kinds[-1]] * n, [kinds[0]] * n) if v != value]


def others(key, value, config):
    """Other values of a key."""
    layers = config.get("num_hidden_layers", config.get("n_layer", config.get("n_layers", 2)))
    if isinstance(value, bool):
        return [not value]
    if key in ("hidden_act", "activation_function", "hidden_activation", "afn"):
        return [a for a in ACTS if a != value]
    if key == "rope_scaling":
        return list(SCALINGS)
    if key == "rope_parameters" and isinstance(value, dict) and "rope_theta" in value:
        return [dict(s, rope_theta=value["rope_theta"],
                     **{k: v for k, v in value.items()
                        if k in ("partial_rotary_factor", "llama_4_scaling_beta", "mrope_section")})
                for s in SCALINGS] + [dict(value, rope_theta=77.0)]
    if key == "rope_parameters" and isinstance(value, dict):       # of each kind of layers
        return [dict(value, **{kind: other}) for kind, own in value.items()
                for other in [dict(s, rope_theta=500.0) for s in SCALINGS[:3]] + [PLAIN, None] if other != own]
    if key == "time_step_limit":
        return [[0.3, 1.0], [0.0, 0.5], None]
    if isinstance(value, list) and value and all(isinstance(v, float) for v in value):     # multipliers, one by one
        return [value[:i] + [v * 0.6] + value[i + 1:] for i, v in enumerate(value)] + [value[:-1], value + [1.0], None]
    if isinstance(value, list) and len(value) == layers:
        return layer_lists(value, layers)
    if isinstance(value, int):
        return [v for v in (value + 1, value - 1, 0) if v >= 0 and v != value]
    if isinstance(value, float):
        return [1e-2] if "eps" in key else [value * 0.6] if value else [0.5]
    if value is None:
        return [7, 0.7, True] if "window" not in key else [7]
    return []


def changes(base):
    import transformers
    known = transformers.AutoConfig.for_model(base["model_type"]).to_dict()
    extra = {k: v for k, v in known.items() if k not in base and not isinstance(v, (dict, int, list))
             or k not in base and isinstance(v, bool)}
    extra.setdefault("head_dim", None)
    extra.setdefault("rope_scaling", None)
    extra.setdefault("partial_rotary_factor", 1.0)
    for key, value in list(base.items()) + list(extra.items()):
        if key in ASIDE:
            continue
        values = [12, 10] if key == "head_dim" else others(key, value, base)
        for i, v in enumerate(dict.fromkeys(json.dumps(v) for v in values)):
            yield key, i, {key: json.loads(v)}
        if key == "use_sliding_window":
            yield key, 9, {key: True, "sliding_window": 7, "max_window_layers": 1}
    heads = base.get("num_attention_heads")
    if heads and "num_key_value_heads" in base:
        for i, kv in enumerate((1, 2, heads)):
            yield "kv", i, {"num_key_value_heads": kv}
        yield "wide", 0, {"hidden_size": 6 * base["hidden_size"] // heads, "num_attention_heads": 6,
                          "num_key_value_heads": 3, "vocab_size": 101}
    if "num_attention_heads_per_layer" in base:
        n, kv = base["num_hidden_layers"], base["num_key_value_heads"]
        for i, every in enumerate(((3, 2), (1, 4, 3), (5,))):
            yield "heads", i, {"num_attention_heads_per_layer": [kv * every[k % len(every)] for k in range(n)]}
    if "num_sliding_attention_heads" in base or "attention_other_setting" in base:
        own = base.get("attention_other_setting")
        for i, local in enumerate((2, 6, 8)):
            yield "heads", i, {"attention_other_setting": own | {"num_attention_heads": local}} if own else {
                "num_sliding_attention_heads": local, "per_layer_config": ...}
    # What is left out takes its default.
    for key in base:
        if key not in ASIDE | NEEDED:
            yield "without_" + key, 0, {key: ...}


def fill(model, seed):
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in sorted(model.named_parameters()):
            noise = torch.randn(p.shape, generator=g)
            if p.dim() >= 2:
                p.copy_(noise * (1.0 if "emb" in name or "wte" in name else 0.25))
            else:
                p.add_(noise * 0.2)
        for name, p in model.named_buffers():
            if name.endswith(("e_score_correction_bias", "expert_bias")):
                p.copy_(torch.randn(p.shape, generator=g) * 0.1)


def reference(model, vocab):
    g = torch.Generator().manual_seed(5)
    tensors, sequences, layers = {}, [], None
    for i, n in enumerate(LENGTHS):
        ids = torch.randint(3, vocab, (1, n), generator=g)
        with torch.no_grad():
            out = copy.deepcopy(model)(ids, output_attentions=True, output_hidden_states=True, use_cache=False)
        text = getattr(model.config, "text_config", model.config)
        kinds = getattr(text, "layer_types", None) or [""] * len(out.attentions)
        kinds = [""] * passes(text) if passes(text) else kinds
        attends = [k for k, kind in enumerate(kinds) if kind not in ("linear_attention", "conv", "mlp", "moe")]
        scores = [a for a in out.attentions if a is None or a.shape[-1] == n]       # minimax: states, too
        attn = [(k, a) for k, a in zip(attends, scores) if a is not None and a.dim() == 4]
        layers = [k for k, _ in attn]
        tensors[f"s{i}.attn"] = stack_heads([a[0] for _, a in attn]).contiguous()
        hidden = [h[0, :, :text.hidden_size] if streams(model) else h[0] for h in out.hidden_states[:-1]]
        # Dory changes them between two passes: what a layer gives is not what the next one reads.
        if hidden[0].dim() == 2 and len(hidden) == len(kinds) and not passes(text):
            tensors[f"s{i}.hidden"] = torch.stack(hidden).contiguous()
        tensors[f"s{i}.final"] = out.hidden_states[-1][0].contiguous() if hidden[0].dim() == 2 else None
        tensors[f"s{i}.logits"] = out.logits[0].clamp(min=NEVER).contiguous()
        if not all(torch.isfinite(t).all() for t in tensors.values() if t is not None):
            raise ValueError("not finite")
        sequences.append({"id": f"s{i}", "tokens": ids[0].tolist()})
    return {k: v for k, v in tensors.items() if v is not None}, sequences, layers


def make(folder, place, change, seed):
    import transformers
    config = json.loads((folder / "config.json").read_text())
    inner = config.get("text_config", config)
    for key, value in change.items():
        inner.pop(key, None)
        if value is not ...:
            inner[key] = value
    for nested in ("torch_dtype", "dtype"):
        if nested in config:
            config[nested] = "float32"
    if place.exists():
        shutil.rmtree(place)
    place.mkdir(parents=True)
    text = json.dumps(config, indent=1) + "\n"
    (place / "config.json").write_text(text)
    try:
        read = transformers.AutoConfig.from_pretrained(place)
        is_plain = inner is config and not hasattr(read, "text_config") and inner["model_type"] not in (
            "mistral4", "chameleon")
        model = new_model(transformers.AutoModelForCausalLM if is_plain else transformers.AutoModelForMultimodalLM, read)
        fill(model, seed)
        calm(model)
        model.save_pretrained(place)
        (place / "config.json").write_text(text)
        tensors, sequences, layers = reference(speaker(model), inner["vocab_size"])
    except Exception as why:  # noqa: BLE001: whatever transformers raises, the variant is none
        shutil.rmtree(place)
        return f"left out: {type(why).__name__}: {str(why)[:80]!r}"
    (place / "generation_config.json").unlink(missing_ok=True)
    save_file(tensors, place / "ref.safetensors")
    (place / "ref.json").write_text(json.dumps({"attn_layers": layers, "sequences": sequences}) + "\n")
    return "made"


def main():
    warnings.filterwarnings("ignore")
    import transformers
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    show_sinks()
    modern, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]) / "modern"
    asked = sys.argv[3:]
    for folder in sorted(modern.iterdir()):
        if not (folder / "config.json").exists() or folder.name.startswith("quantised"):
            continue
        base = json.loads((folder / "config.json").read_text())
        nested, base = "text_config" in base, base.get("text_config", base)
        names = [a.split(":") for a in asked if a.split(":")[0] == folder.name]
        if not names if asked else nested:
            continue
        for seed, (key, i, change) in enumerate([("none", 0, {}), *changes(base)]):
            if names and not any(len(n) < 2 or n[1] == key for n in names):
                continue
            name = f"{folder.name}-{key}-{i}"
            shown = {k: "(absent)" if v is ... else v for k, v in change.items()}
            print(name, json.dumps(shown), make(folder, out / name, change, seed), flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main()
