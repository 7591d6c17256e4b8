#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parameter counts and layer kinds of small models of many types, by transformers:
tests/oracle/capacity_configs.py [TYPE...] > tests/golden/capacity_configs.json

Each model is built without storage from a config of classic keys; the config as transformers writes it today is
kept next to it and must be read to the same answer. Made with transformers 5.23.0 and torch 2.15.0."""
import json
import sys

import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForImageTextToText

BASE = dict(num_hidden_layers=4, hidden_size=96, num_attention_heads=6, intermediate_size=160, vocab_size=131,
            max_position_embeddings=256)
GQA = dict(BASE, num_key_value_heads=2)
MOE = dict(GQA, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24)
DSA = dict(BASE, num_key_value_heads=6, kv_lora_rank=32, q_lora_rank=40, qk_rope_head_dim=8, qk_nope_head_dim=16,
           v_head_dim=16, n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=24, n_shared_experts=1,
           first_k_dense_replace=1, n_group=1, topk_group=1, index_head_dim=24, index_n_heads=3, index_topk=16)
STILL = dict({k: v for k, v in DSA.items() if k != "first_k_dense_replace"}, qk_rope_head_dim=0,
             mlp_layer_types=["dense"] + 3 * ["sparse"], linear_num_heads=5, linear_head_dim=16, pad_token_id=0)
V4 = dict(num_hidden_layers=4, hidden_size=96, num_attention_heads=6, head_dim=32, vocab_size=131, q_lora_rank=40,
          max_position_embeddings=256, o_groups=2, o_lora_rank=24, n_routed_experts=4, num_experts_per_tok=2,
          moe_intermediate_size=24, index_head_dim=16, index_n_heads=3, index_topk=8, partial_rotary_factor=0.25)
QWEN4 = dict({k: v for k, v in MOE.items() if k != "intermediate_size"}, head_dim=32, linear_num_key_heads=2,
             shared_expert_intermediate_size=48, linear_num_value_heads=4, linear_key_head_dim=16,
             linear_value_head_dim=24, indexer_n_heads=3, indexer_kv_heads=1, indexer_head_dim=40, indexer_budget=16,
             indexer_compress_ratio=4)
NEMOTRON = dict(BASE, num_hidden_layers=6, num_key_value_heads=2, head_dim=16, mamba_num_heads=8, mamba_head_dim=16,
                ssm_state_size=16, n_groups=2, conv_kernel=4)
CONFIGS = [
    ("opt", dict(num_hidden_layers=3, hidden_size=48, num_attention_heads=4, ffn_dim=100, vocab_size=131,
                 max_position_embeddings=64, word_embed_proj_dim=48)),
    ("opt", dict(num_hidden_layers=3, hidden_size=48, num_attention_heads=4, ffn_dim=100, vocab_size=131,
                 max_position_embeddings=64, word_embed_proj_dim=32, do_layer_norm_before=False)),
    ("gpt2", dict(n_layer=3, n_embd=48, n_head=4, n_positions=64, vocab_size=131)),
    ("gpt2", dict(n_layer=3, n_embd=48, n_head=4, n_positions=64, vocab_size=131, n_inner=100)),
    ("gpt_neo", dict(num_layers=4, hidden_size=48, num_heads=4, max_position_embeddings=64, vocab_size=131, window_size=16,
                     attention_types=[[["global", "local"], 2]])),
    ("gptj", dict(n_layer=3, n_embd=48, n_head=4, n_positions=64, vocab_size=131, rotary_dim=8)),
    ("gpt_neox", dict(BASE)),
    ("bloom", dict(n_layer=3, hidden_size=48, n_head=4, vocab_size=131)),
    ("llama", dict(GQA)), ("llama", dict(GQA, attention_bias=True, mlp_bias=True, tie_word_embeddings=True, head_dim=24)),
    ("mistral", dict(GQA, sliding_window=32)), ("mistral", dict(GQA, sliding_window=None, head_dim=32)),
    ("mixtral", dict(GQA, num_local_experts=4, num_experts_per_tok=2, sliding_window=None)),
    ("qwen2", dict(GQA, tie_word_embeddings=True)),
    ("qwen2", dict(GQA, use_sliding_window=True, sliding_window=32, max_window_layers=2)),
    ("qwen3", dict(GQA, head_dim=24)),
    ("qwen2_moe", dict(MOE, shared_expert_intermediate_size=48)), ("qwen3_moe", dict(MOE, head_dim=24)),
    ("qwen3_moe", dict(MOE, head_dim=16, decoder_sparse_step=2)),
    ("qwen3_next", dict(MOE, head_dim=32, shared_expert_intermediate_size=48, linear_num_key_heads=2, linear_num_value_heads=4,
                        linear_key_head_dim=16, linear_value_head_dim=16, linear_conv_kernel_dim=4)),
    ("qwen3_vl_text", dict(GQA, head_dim=24, tie_word_embeddings=True)), ("qwen3_vl_moe_text", dict(MOE, head_dim=24, tie_word_embeddings=False)),
    ("qwen3_5_text", dict(GQA, head_dim=32, linear_num_key_heads=2, linear_num_value_heads=6, linear_key_head_dim=16,
                          linear_value_head_dim=16, linear_conv_kernel_dim=4)),
    ("qwen3_5_moe_text", dict(MOE, num_hidden_layers=5, head_dim=32, shared_expert_intermediate_size=48, linear_num_key_heads=2,
                              linear_num_value_heads=4, linear_key_head_dim=16, linear_value_head_dim=16,
                              linear_conv_kernel_dim=4, full_attention_interval=2)),
    ("minimax_m2", dict(GQA, head_dim=24, num_local_experts=4, num_experts_per_tok=2, attn_type_list=[1, 1, 1, 1],
                        use_qk_norm=True, qk_norm_type="per_layer", shared_intermediate_size=0)),
    ("mimo", dict(GQA, head_dim=24, attention_bias=True, num_nextn_predict_layers=1, use_sliding_window=False,
                  sliding_window=32)),
    ("gemma", dict(GQA, head_dim=24)),
    ("gemma2", dict(GQA, head_dim=24, sliding_window=32)), ("gemma3_text", dict(GQA, num_hidden_layers=7, head_dim=24, sliding_window=32)),
    ("gemma4_text", dict(MOE, num_experts_per_tok=None, top_k_experts=2, num_hidden_layers=6, num_attention_heads=4, head_dim=24,
                         global_head_dim=48, num_global_key_value_heads=1, attention_k_eq_v=True, enable_moe_block=True,
                         hidden_size_per_layer_input=0, num_kv_shared_layers=0, sliding_window=32)),
    ("gemma4_text", dict(GQA, num_hidden_layers=6, num_attention_heads=4, head_dim=24, global_head_dim=48,
                         hidden_size_per_layer_input=0, num_kv_shared_layers=0, sliding_window=32)),
    ("phi3", dict(GQA, sliding_window=32, pad_token_id=0)),
    ("falcon", dict(num_hidden_layers=3, hidden_size=96, num_attention_heads=6, vocab_size=131, multi_query=True,
                    new_decoder_architecture=False, parallel_attn=True, bias=False, alibi=False)),
    ("falcon", dict(num_hidden_layers=3, hidden_size=96, num_attention_heads=6, num_kv_heads=2, vocab_size=131,
                    new_decoder_architecture=True, bias=False, alibi=False)),
    ("falcon", dict(num_hidden_layers=3, hidden_size=96, num_attention_heads=6, vocab_size=131, multi_query=False,
                    new_decoder_architecture=False, parallel_attn=False, bias=True, alibi=False)),
    ("mpt", dict(n_layers=3, d_model=48, n_heads=4, max_seq_len=64, vocab_size=131, no_bias=True, attn_config={"alibi": True})),
    ("deepseek_v2", dict(BASE, num_key_value_heads=6, kv_lora_rank=32, q_lora_rank=None, qk_rope_head_dim=8,
                         qk_nope_head_dim=16, v_head_dim=16, n_routed_experts=4, num_experts_per_tok=2,
                         moe_intermediate_size=24, n_shared_experts=2, first_k_dense_replace=1, n_group=1, topk_group=1)),
    ("deepseek_v3", dict(BASE, num_key_value_heads=6, kv_lora_rank=32, q_lora_rank=40, qk_rope_head_dim=8,
                         qk_nope_head_dim=16, v_head_dim=16, n_routed_experts=4, num_experts_per_tok=2,
                         moe_intermediate_size=24, n_shared_experts=1, first_k_dense_replace=2, n_group=1, topk_group=1)),
    ("deepseek_v32", dict(DSA)), ("glm_moe_dsa", dict(DSA, first_k_dense_replace=2)),
    ("glm_moe_dsa", dict(DSA, num_hidden_layers=7, index_topk_freq=3, index_skip_topk_offset=2, num_nextn_predict_layers=1)),
    ("glm_moe_dsa", dict(DSA, indexer_types=["full", "shared", "full", "shared"])),
    ("glm_moe_dsa", dict(DSA, index_topk_pattern="FSSF")),
    ("gpt_oss", dict(GQA, head_dim=16, num_local_experts=4, num_experts_per_tok=2, sliding_window=32)),
    ("nemotron_h", dict(BASE, num_hidden_layers=6, num_key_value_heads=2, head_dim=16, hybrid_override_pattern="M-M*M-",
                        mamba_num_heads=8, mamba_head_dim=16, ssm_state_size=16, n_groups=2, conv_kernel=4)),
    ("nemotron_h", dict(NEMOTRON, hybrid_override_pattern="ME-*EM", n_routed_experts=4, num_experts_per_tok=2,
                        moe_intermediate_size=24, moe_shared_expert_intermediate_size=40, n_shared_experts=1)),
    ("nemotron_h", dict(NEMOTRON, layers_block_type=["mamba", "moe", "mamba", "attention", "moe", "mlp"], n_routed_experts=4,
                        num_experts_per_tok=2, moe_intermediate_size=24, moe_shared_expert_intermediate_size=40,
                        moe_latent_size=32, num_nextn_predict_layers=1, mtp_layers_block_type=["attention", "moe"])),
    ("jamba", dict(GQA, num_hidden_layers=8, num_experts=4, num_experts_per_tok=2, attn_layer_period=4, attn_layer_offset=2,
                   expert_layer_period=2, expert_layer_offset=1, mamba_d_state=8, mamba_d_conv=4, mamba_expand=2,
                   mamba_dt_rank=6, use_mamba_kernels=False)),
    ("llama4_text", dict(GQA, num_hidden_layers=8, head_dim=16, intermediate_size_mlp=200, num_local_experts=4,
                         num_experts_per_tok=1, interleave_moe_layer_step=2, attention_chunk_size=32)),
    # More numbers of experts in a layer than 32 bits count. (transformers gives experts that compute nothing numbers, too.)
    ("qwen3_moe", dict(MOE, num_hidden_layers=2, hidden_size=4096, num_experts=513, moe_intermediate_size=2048,
                       head_dim=16)),
    ("longcat_flash", dict(num_layers=2, hidden_size=6144, num_attention_heads=6, vocab_size=131, max_position_embeddings=256,
                           kv_lora_rank=32, q_lora_rank=40, qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=16,
                           ffn_hidden_size=160, n_routed_experts=512, zero_expert_num=0, moe_topk=12,
                           expert_ffn_hidden_size=2048)),
    # Query heads of their own in layers with a window.
    ("laguna", dict(MOE, head_dim=16, shared_expert_intermediate_size=40, sliding_window=32,
                    layer_types=["full_attention"] + ["sliding_attention"] * 3, num_attention_heads_per_layer=[6, 8, 8, 8])),
    ("step3p5", dict(BASE, num_attention_groups=2, head_dim=16, moe_num_experts=4, moe_top_k=2, moe_intermediate_size=24,
                     share_expert_dim=40, moe_layers_enum="1,3", sliding_window=32, num_nextn_predict_layers=1,
                     layer_types=["full_attention"] + ["sliding_attention"] * 3 + ["full_attention"],
                     attention_other_setting={"num_attention_heads": 8, "num_attention_groups": 2, "head_dim": 16})),
    ("minimax_m3_vl_text", dict(GQA, head_dim=16, num_local_experts=4, num_experts_per_tok=2, dense_intermediate_size=200,
                                shared_intermediate_size=40, moe_layer_freq=[0, 1, 1, 1], sparse_attention_config={
                                    "sparse_attention_freq": [0, 0, 1, 1], "sparse_block_size": 8, "sparse_topk_blocks": 4,
                                    "sparse_num_index_heads": 2, "sparse_index_dim": 24})),
    ("qwen2_vl_text", dict(GQA, tie_word_embeddings=True)), ("qwen2_5_vl_text", dict(GQA)),
    ("glm4v_text", dict(GQA)), ("glm4v_moe_text", dict(GQA, head_dim=24, n_routed_experts=4, num_experts_per_tok=2,
                                                      moe_intermediate_size=24, first_k_dense_replace=1)),
    ("aria_text", dict(GQA, head_dim=24, moe_num_experts=4, moe_topk=2, moe_num_shared_experts=3)),
    ("deepseek_v4", dict(V4)), ("deepseek_v4", dict(V4, o_groups=3, hc_mult=3, layer_types=[
        "sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention", "compressed_sparse_attention"],
        compress_rates={"compressed_sparse_attention": 2, "heavily_compressed_attention": 16})),
    ("glm5_next_text", dict(STILL)), ("glm5_next_text", dict(
        STILL, hc_mult=2, index_kpool=8, linear_conv_kernel_dim=3, attention_bias=True, layer_types=[
            "indexed_attention", "linear_attention", "indexed_attention", "linear_attention"])),
    ("qwen4_exp_text", dict(QWEN4)), ("qwen4_exp_text", dict(
        QWEN4, hc_count=3, hc_lowrank=20, ple_layer_ids=[4, 1], ple_embed_dim=80, ngram_size=6, heads_per_ngram=4,
        ngram_vocab_size_base=1000, ple_conv_kernel_size=2, eos_token_id=[3, 4], layer_types=[
            "linear_attention", "full_attention", "indexed_attention", "linear_attention"])),
]


# Text parts of models with pictures have no head of their own in transformers; models it does not know are built as
# the type they are made from: MiMo is Qwen2, whose heads it gives a width.
HEADLESS = ("qwen3_vl_text", "qwen3_vl_moe_text", "qwen2_vl_text", "qwen2_5_vl_text", "glm4v_text", "glm4v_moe_text",
            "glm5_next_text")
WITH_EYES = {"step3p5": "step3p7"}      # text parts that transformers builds with their vision tower alone
SIBLING = {"mimo": ("qwen2", ("attention_bias", "num_nextn_predict_layers"))}


def count(kind, keys):
    kind, unknown = SIBLING.get(kind, (kind, ()))
    config = AutoConfig.for_model(kind, **{k: v for k, v in keys.items() if k not in unknown})
    if kind in WITH_EYES:
        eyes = dict(width=8, layers=1, heads=1, image_size=28, patch_size=14)
        whole = AutoConfig.for_model(WITH_EYES[kind], text_config=dict(keys), vision_config=eyes)
        with torch.device("meta"):
            model = AutoModelForImageTextToText.from_config(whole)
        model.model, config = model.model.language_model, whole.text_config
    else:
        with torch.device("meta"):
            model = (AutoModel if kind in HEADLESS else AutoModelForCausalLM).from_config(config)
    text = getattr(config, "layer_types", None)
    if text and "indexed_attention" in text:        # which layers have an index of their own, the model itself shows
        names = [name for name, _ in model.named_parameters() if ".indexer." in name]
        index = "indexed_blocks" if kind == "qwen4_exp_text" else "indexed_attention"
        text = [index if any(f"layers.{i}." in n for n in names) else
                "shared_index" if kind == "indexed_attention" else kind for i, kind in enumerate(text)]
    buffers = ("e_score_correction_bias",)
    seen, total = set(), 0
    for name, p in model.named_parameters():
        if kind in HEADLESS and name.endswith("embed_tokens.weight") and not getattr(config, "tie_word_embeddings", False):
            total += p.numel()          # the head
        if id(p) not in seen and not name.endswith(buffers):
            seen.add(id(p))
            total += p.numel()
    if getattr(config, "tie_word_embeddings", True) and model.get_output_embeddings() is not None:
        head, embed = model.get_output_embeddings().weight, model.get_input_embeddings().weight
        if head is not embed:           # ties are made when weights are loaded
            total -= head.numel()
    today = json.loads(config.to_json_string(use_diff=False))
    return total, text, {**today, **{k: keys[k] for k in unknown if k in keys}}


def as_published(kind, keys):
    """A model of text and pictures keeps what it says of its text in an object."""
    if kind not in HEADLESS and kind not in WITH_EYES:
        return dict(keys, model_type=kind)
    return {"model_type": WITH_EYES.get(kind, kind[:-len("_text")]), "text_config": dict(keys, model_type=kind), "vision_config": {"depth": 2}}


asked = sys.argv[1:]                    # of these types alone
out = []
for kind, keys in CONFIGS:
    if asked and kind not in asked:
        continue
    try:
        parameters, layer_types, today = count(kind, dict(keys))
    except Exception as error:
        print(f"{kind}: {type(error).__name__}: {error}", file=sys.stderr)
        continue
    out.append({"config": as_published(kind, keys), "today": dict(today, model_type=kind), "parameters": parameters,
                "layer_types": layer_types})
print("[\n" + ",\n".join(json.dumps(o, default=str) for o in out) + "\n]")
