#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tiny checkpoints of what the other fixtures leave out, with the numbers that transformers computes on them.

    families.py DIR                makes them in DIR (torch, transformers)
    families.py --cut FROM TO N    copies the checkpoint FROM to TO with only sequence N of its reference

Each is a folder as published: config.json as transformers writes it today, model.safetensors, ref.json (token ids) and
ref.safetensors (sN.attn, sN.hidden, sN.final, sN.logits). Plain attention, float32, one thread."""
import copy
import json
import pathlib
import shutil
import sys

import torch
from safetensors.torch import load_file, save_file

SMALL = dict(vocab_size=64, hidden_size=24, num_attention_heads=4, num_hidden_layers=2, max_position_embeddings=64)
LLAMA = dict(SMALL, num_key_value_heads=2, intermediate_size=40, bos_token_id=1, eos_token_id=2)


def rope(kind, **more):
    return {"rope_type": kind, "rope_theta": 10000.0, **more}


def cases():
    import transformers as t
    gemma = dict(LLAMA, num_hidden_layers=4, num_key_value_heads=1, head_dim=8, query_pre_attn_scalar=8,
                 sliding_window=10, pad_token_id=0,
                 layer_types=["sliding_attention", "full_attention", "full_attention", "sliding_attention"],
                 rope_parameters={"full_attention": rope("linear", factor=4.0) | {"rope_theta": 1e6},
                                  "sliding_attention": rope("default")})
    return {
        "llama_dynamic_rope": (t.LlamaConfig(**dict(LLAMA, max_position_embeddings=24),
                                             rope_parameters=rope("dynamic", factor=2.0)), [20, 40, 33]),
        "llama_yarn_rope": (t.LlamaConfig(**LLAMA, rope_parameters=rope(
            "yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=4.0)), [40]),
        "llama_bias": (t.LlamaConfig(**LLAMA, attention_bias=True, mlp_bias=True), [24]),
        "qwen2_window": (t.Qwen2Config(**LLAMA, use_sliding_window=True, sliding_window=10, max_window_layers=1), [32]),
        "gemma3_newer_config": (t.Gemma3TextConfig(**gemma), [32]),
        "gpt_neo": (t.GPTNeoConfig(vocab_size=64, hidden_size=24, num_heads=4, num_layers=4, intermediate_size=None,
                                   max_position_embeddings=64, window_size=10,
                                   attention_types=[[["global", "local"], 2]], bos_token_id=1, eos_token_id=2),
                    [9, 32]),
        "gpt_neox_sequential": (t.GPTNeoXConfig(**dict(SMALL, hidden_size=32), intermediate_size=40,
                                                use_parallel_residual=False, attention_bias=False, bos_token_id=1,
                                                eos_token_id=2), [24]),
        "bloom_six_heads": (t.BloomConfig(vocab_size=64, hidden_size=24, n_layer=2, n_head=6, bos_token_id=1,
                                          eos_token_id=2), [32]),
        "phi3_longrope": (t.Phi3Config(
            **dict(LLAMA, hidden_size=32, max_position_embeddings=48), pad_token_id=0, sliding_window=None,
            original_max_position_embeddings=16, rope_parameters=rope(
                "longrope", original_max_position_embeddings=16, partial_rotary_factor=0.75,
                short_factor=[1.0, 1.1, 1.3], long_factor=[1.2, 2.0, 4.5])), [12, 40, 33]),
        "gpt2_scaled_by_layer": (t.GPT2Config(vocab_size=64, n_embd=24, n_head=4, n_layer=3, n_positions=64,
                                              scale_attn_by_inverse_layer_idx=True, bos_token_id=1, eos_token_id=2),
                                 [32]),
    }


def fill(model, seed):
    """Weights large enough for attention that is far from even; norms near what they are made with."""
    g = torch.Generator().manual_seed(seed)
    for name, p in model.named_parameters():
        noise = torch.randn(p.shape, generator=g)
        with torch.no_grad():
            if p.dim() == 2:
                p.copy_(noise * (1.0 if "emb" in name or "wte" in name else 0.3))
            else:
                p.add_(noise * 0.2)


def reference(model, lengths, seed):
    g = torch.Generator().manual_seed(seed)
    tensors, sequences = {}, []
    for i, n in enumerate(lengths):
        ids = torch.randint(3, 64, (1, n), generator=g)
        with torch.no_grad():
            # Dynamic scaling would remember the longest sequence so far.
            out = copy.deepcopy(model)(ids, output_attentions=True, output_hidden_states=True, use_cache=False)
        tensors[f"s{i}.attn"] = torch.stack([a[0] for a in out.attentions]).contiguous()
        tensors[f"s{i}.hidden"] = torch.stack([h[0] for h in out.hidden_states[:-1]]).contiguous()
        tensors[f"s{i}.final"] = out.hidden_states[-1][0].contiguous()
        tensors[f"s{i}.logits"] = out.logits[0].contiguous()
        sequences.append({"id": f"s{i}", "tokens": ids[0].tolist()})
    return tensors, sequences


def make(folder):
    import transformers
    torch.set_num_threads(1)
    for seed, (name, (config, lengths)) in enumerate(cases().items(), start=1):
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
        fill(model, seed)
        place = pathlib.Path(folder) / name
        model.save_pretrained(place)
        (place / "generation_config.json").unlink(missing_ok=True)
        tensors, sequences = reference(model, lengths, 100 + seed)
        save_file(tensors, place / "ref.safetensors")
        (place / "ref.json").write_text(json.dumps({"sequences": sequences}, indent=1) + "\n")


def cut(source, target, keep):
    source, target = pathlib.Path(source), pathlib.Path(target)
    target.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "model.safetensors"):
        shutil.copy(source / name, target / name)
    ref = json.loads((source / "ref.json").read_text())
    ref["sequences"] = [ref["sequences"][keep]]
    (target / "ref.json").write_text(json.dumps(ref, indent=1) + "\n")
    tensors = {k.replace(f"s{keep}.", "s0."): v for k, v in load_file(source / "ref.safetensors").items()
               if k.startswith(f"s{keep}.")}
    save_file(tensors, target / "ref.safetensors")


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[1] == "--cut":
        cut(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    elif len(sys.argv) == 2:
        make(sys.argv[1])
    else:
        sys.exit(__doc__)
