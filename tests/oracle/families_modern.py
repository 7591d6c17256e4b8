#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tiny checkpoints of newer families that the shared fixtures do not have, with the numbers that transformers computes
on them.

    families_modern.py DIR [NAME...]    makes all, or these, in DIR (torch, transformers)

Layers that carry a state in place of attention: short convolutions (lfm2, lfm2_bias, lfm2_moe), Mamba-2
(granitemoehybrid, granitemoehybrid_plain, bamba), Mamba (jamba), and layers of one block (nemotron_h, nemotron_h_moe);
Mamba-2 next to attention (falcon_h1 and those that begin so); the delta rule (olmo_hybrid, olmo_hybrid_rope, lara_mini,
lara_mini_untied), also with a decay for each number of a key (kimi_linear, bailing_hybrid and those that begin so);
pairs of layers with experts across them (longcat_flash, longcat_flash_yarn); linear attention (minimax, minimax_plain);
transformer blocks that layers share (zamba2, zamba2_plain); gated linear recurrences (recurrent_gemma,
recurrent_gemma_wide). The others are mixtures of what older families have. Each
is a folder as published, with ref.json (token ids, the layers that attend, the greedy continuation of the first
sequence) and ref.safetensors (sN.attn, sN.hidden, sN.final, sN.logits). Eager attention, float32, one thread."""
import json
import pathlib
import re
import sys

import torch
import transformers as t
from safetensors.torch import load_file, save_file

from families import fill

SMALL = dict(vocab_size=48, hidden_size=16, num_attention_heads=4, num_key_value_heads=2, intermediate_size=24,
             max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=0)
MAMBA = dict(mamba_n_heads=4, mamba_d_state=6)
IN_TURNS = ["sliding_attention", "full_attention", "sliding_attention"]
make_config = t.AutoConfig.for_model
ATTENDS = ("full_attention", "sliding_attention", "indexed_attention", "hybrid", "minimax_m3_sparse",
           "reference_sliding_attention")
BLOCKS = dict(head_dim=6, mamba_num_heads=4, mamba_head_dim=8, n_groups=2, ssm_state_size=6)
TURNS = dict(num_hidden_layers=3, layer_types=["linear_attention", "full_attention", "linear_attention"])
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
FACTORS = dict(embedding_multiplier=2.0, attention_multiplier=0.3, residual_multiplier=0.7, logits_scaling=1.5)
STATES = dict(mamba_d_ssm=24, mamba_n_heads=4, mamba_n_groups=2, mamba_d_state=6)
MULTIPLIERS = dict(
    embedding_multiplier=2.2, lm_head_multiplier=0.7, key_multiplier=0.6, attention_in_multiplier=1.3,
    attention_out_multiplier=0.8, ssm_in_multiplier=1.25, ssm_out_multiplier=0.45, mlp_multipliers=[0.7, 1.6],
    ssm_multipliers=[0.8, 1.4, 0.6, 1.7, 0.5])
EXPERTS = dict(moe_intermediate_size=12, num_experts_per_tok=2)
ALL_EXPERTS = {key: value for key, value in SMALL.items() if key != "intermediate_size"}
LATENT = dict(SMALL, num_key_value_heads=4, q_lora_rank=10, kv_lora_rank=8, qk_rope_head_dim=4, qk_nope_head_dim=6,
              v_head_dim=8)
ZAMBA = dict(n_mamba_heads=4, mamba_d_state=6, adapter_rank=5)
INDEX = dict(index_topk=48, index_head_dim=8, index_n_heads=2)
LARGE = {key: value for key, value in LATENT.items() if key != "q_lora_rank"} | EXPERTS | INDEX
PAIRS = {key: value for key, value in LATENT.items() if key != "intermediate_size"} | dict(
    head_dim=4, ffn_hidden_size=24, expert_ffn_hidden_size=12)

HY_EYES = dict(hidden_size=4, num_hidden_layers=1, num_attention_heads=1, num_key_value_heads=1, intermediate_size=4,
               out_hidden_size=16, patch_size=2, max_image_size=8)
BLOCK_EYES = dict(hidden_size=4, intermediate_size=4, num_hidden_layers=1, num_attention_heads=1, image_size=4,
                  patch_size=2)
BLOCKS_M3 = dict(head_dim=8, num_local_experts=6, num_experts_per_tok=2, intermediate_size=12, index_n_heads=2,
                 dense_intermediate_size=24, shared_intermediate_size=20, index_head_dim=8, index_block_size=8,
                 index_topk_blocks=6)
EYES = dict(hidden_size=4, intermediate_size=4, num_hidden_layers=1, num_attention_heads=1, image_size=28, patch_size=14)
LARA = ALL_EXPERTS | EXPERTS | dict(linear_key_head_dim=5, linear_value_head_dim=6, linear_conv_kernel_dim=3)
GLM_EYES = dict(hidden_size=4, intermediate_size=4, depth=1, num_heads=1, patch_size=2)
STILL = LATENT | dict(qk_rope_head_dim=0)
QWEN4 = ALL_EXPERTS | dict(
    num_experts_per_tok=2,
    head_dim=8, shared_expert_intermediate_size=10, moe_intermediate_size=12, linear_key_head_dim=5, linear_value_head_dim=6,
    linear_conv_kernel_dim=3, ngram_vocab_size_base=20, make_ngram_vocab_size_divisible_by=8, indexer_n_heads=2,
    indexer_kv_heads=1, indexer_head_dim=10, indexer_budget=48, indexer_compress_ratio=3)
QWEN4_EYES = dict(depth=1, hidden_size=4, num_heads=1, intermediate_size=4, out_hidden_size=16, patch_size=2,
                  num_position_embeddings=4)
PHI = SMALL | dict(num_attention_heads=2, num_key_value_heads=1)
PHI_EYES = EYES | dict(crop_size=28)
PHI_EARS = dict(hidden_size=4, intermediate_size=4, num_blocks=1, num_attention_heads=1, ext_pw_out_channel=4,
                depthwise_separable_out_channel=4, nemo_conv_channels=4, input_size=8, bias_max_distance=4)
QWEN_EYES = dict(depth=1, hidden_size=16, embed_dim=4, num_heads=1, patch_size=2, out_hidden_size=16, mlp_ratio=1,
                 intermediate_size=4, num_position_embeddings=4, deepstack_visual_indexes=[0], fullatt_block_indexes=[0])
BERT = {key: value for key, value in SMALL.items() if key != "num_key_value_heads"}
COMPASS_EYES = dict(depth=1, hidden_size=4, intermediate_size=4, num_heads=1, out_hidden_size=16, patch_size=2,
                    num_position_embeddings=4, deepstack_visual_indexes=[0])
GLM_EYES = dict(depth=1, hidden_size=4, num_heads=1, patch_size=2, image_size=4, out_hidden_size=16, intermediate_size=4)
EARS = dict(d_model=4, encoder_layers=1, encoder_attention_heads=1, encoder_ffn_dim=4, num_mel_bins=2, output_dim=16,
            max_source_positions=4, downsample_hidden_size=2)
LLAMA_EYES = dict(hidden_size=4, intermediate_size=4, num_hidden_layers=1, num_global_layers=1, attention_heads=1,
                  image_size=28, patch_size=14, max_num_tiles=1, intermediate_layers_indices=[0], vision_output_dim=8,
                  supported_aspect_ratios=[[1, 1]])
THREE = ROPE | {"mrope_section": [2, 1, 1]}
STEP_EYES = dict(width=4, layers=1, heads=1, image_size=28, patch_size=14, mlp_ratio=1.0)
STEP = {key: value for key, value in SMALL.items() if key != "num_key_value_heads"} | dict(
    num_attention_groups=2, head_dim=8, num_hidden_layers=4, sliding_window=10, moe_num_experts=6, moe_top_k=2,
    moe_intermediate_size=12, share_expert_dim=20, moe_router_scaling_factor=3.0, moe_layers_enum="1,2,3",
    layer_types=["full_attention"] + ["sliding_attention"] * 3 + ["full_attention"], num_nextn_predict_layers=1,
    rope_theta=[500.0, 100.0, 100.0, 100.0, 500.0], partial_rotary_factors=[0.5, 1.0, 1.0, 1.0, 0.5],
    rope_scaling={"rope_type": "llama3", "factor": 2.0, "original_max_position_embeddings": 32, "low_freq_factor": 1.0,
                  "high_freq_factor": 32.0}, yarn_only_types=["full_attention"], swiglu_limits=[0, 0, 0, 0.3, 0],
    swiglu_limits_shared=[0, 0, 0, 0.4, 0], use_head_wise_attn_gate=True, use_moe_router_bias=True,
    moe_router_activation="sigmoid", norm_expert_weight=True, attention_other_setting={
        "attention_type": "sliding_attention", "num_attention_heads": 4, "num_attention_groups": 2, "head_dim": 8})
STEP_HEADS = STEP | dict(
    num_hidden_layers=3, moe_num_experts=4, moe_intermediate_size=6, share_expert_dim=10, moe_layers_enum="2",
    layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention"],
    rope_theta=[500.0, 100.0, 100.0, 500.0], partial_rotary_factors=[0.5, 1.0, 1.0, 0.5],
    swiglu_limits=[0, 0, 0.3, 0], swiglu_limits_shared=[0, 0, 0.4, 0],
    attention_other_setting=STEP["attention_other_setting"] | {"num_attention_heads": 6})
GRIFFIN = dict(vocab_size=48, hidden_size=16, num_attention_heads=4, intermediate_size=44, bos_token_id=1,
               eos_token_id=2, pad_token_id=0)
GPT = dict(vocab_size=48, n_embd=12, n_head=3, n_positions=46, bos_token_id=1, eos_token_id=2, pad_token_id=0)
MOLMO = dict(SMALL, head_dim=6)
MOLMO_EYES = dict(
    vision_config=dict(hidden_size=4, intermediate_size=4, num_hidden_layers=1, num_attention_heads=1, head_dim=4,
                       num_key_value_heads=1, image_size=[4, 4], patch_size=2),
    adapter_config=dict(hidden_size=4, intermediate_size=4, num_attention_heads=1, num_key_value_heads=1, head_dim=4,
                        vision_feature_layer=[0], text_hidden_size=16))

# A GroupNorm of its has 32 parts; nothing of it is kept.
QUANTISER = dict(base_channels=32, channel_multiplier=[1], num_res_blocks=1, attn_resolutions=[], embed_dim=4,
                 latent_channels=4, resolution=32, num_embeddings=4, codebook_size=4, hidden_size=32)
PICTURES = {"<image>": 3, "a": 10} | {f"IMGIMG{c}Z": 48 + i for i, c in enumerate("ABCD")}
KOSMOS = dict(vocab_size=48, embed_dim=16, layers=2, ffn_dim=24, attention_heads=4, max_position_embeddings=64)
EDGE_EYES = dict(hidden_size=4, intermediate_size=4, num_hidden_layers=1, num_attention_heads=1, patch_size=2,
                 num_patches=4)
HUNYUAN_EYES = dict(hidden_size=4, intermediate_size=4, num_hidden_layers=1, num_attention_heads=1, patch_size=2,
                    out_hidden_size=16, max_image_size=8, min_image_size=4, img_max_token_num=4)
ALPHA = {"rope_type": "dynamic", "alpha": 100.0, "factor": 1.0, "rope_theta": 10000.0}
SAM = dict(hidden_size=4, output_channels=2, num_hidden_layers=1, num_attention_heads=1, image_size=4, patch_size=2,
           window_size=2, global_attn_indexes=[0], mlp_dim=4, downsample_channels=[2, 4])
OCR_EYES = dict(sam_config=SAM, encoder_config=dict(
    vocab_size=8, hidden_size=4, intermediate_size=4, num_hidden_layers=1, num_attention_heads=1, num_key_value_heads=1))
UNLIMITED_EYES = dict(sam_config=SAM, encoder_config=dict(
    hidden_size=4, intermediate_size=4, num_hidden_layers=1, num_attention_heads=1, image_size=4, patch_size=2))
DOCLING_EYES = dict(hidden_size=4, intermediate_size=4, num_hidden_layers=1, num_attention_heads=1, image_size=8,
                    patch_size=2, out_hidden_size=16, scale_factor=2, deepstack_visual_indexes=[0])

MUSE_EYES = dict(hidden_size=4, intermediate_size=4, num_hidden_layers=1, num_attention_heads=1, patch_size=2,
                 pos_emb_height=2, pos_emb_width=2)


def cases():
    return {
        "lfm2_bias": t.Lfm2Config(
            **SMALL, num_hidden_layers=3, layer_types=["conv", "full_attention", "conv"], conv_bias=True,
            conv_L_cache=4, block_multiple_of=8, block_ffn_dim_multiplier=1.2, tie_word_embeddings=False),
        "lfm2_moe": t.Lfm2MoeConfig(
            **SMALL, num_hidden_layers=3, layer_types=["conv", "full_attention", "conv"], moe_intermediate_size=12,
            num_experts=4, num_experts_per_tok=2, num_dense_layers=1, routed_scaling_factor=1.5),
        "granitemoehybrid": t.GraniteMoeHybridConfig(
            **SMALL, **MAMBA, **TURNS, num_local_experts=4, num_experts_per_tok=2, shared_intermediate_size=20,
            mamba_n_groups=2, **FACTORS),
        "granitemoehybrid_plain": t.GraniteMoeHybridConfig(
            **SMALL, **MAMBA, **TURNS, num_local_experts=0, num_experts_per_tok=0, shared_intermediate_size=20,
            mamba_n_groups=1, position_embedding_type="rope", mamba_proj_bias=True, attention_bias=True,
            mamba_conv_bias=False, time_step_limit=(0.3, 1.0)),
        "bamba": t.BambaConfig(**SMALL, **MAMBA, num_hidden_layers=3, attn_layer_indices=[1], mamba_n_groups=2),
        "jamba": t.JambaConfig(
            **SMALL, num_hidden_layers=4, attn_layer_period=2, attn_layer_offset=1, expert_layer_period=2,
            expert_layer_offset=1, num_experts=4, mamba_d_state=6, mamba_dt_rank=5),
        "nemotron_h": t.NemotronHConfig(
            **SMALL, **BLOCKS, layers_block_type=["linear_attention", "mlp", "full_attention", "mlp"]),
        "cwm": t.CwmConfig(**SMALL, head_dim=6, num_hidden_layers=5, sliding_window=10, rope_parameters=ROPE),
        "solar_open": t.SolarOpenConfig(**ALL_EXPERTS, **EXPERTS, head_dim=6, num_hidden_layers=2,
                                        n_routed_experts=4, n_group=2, routed_scaling_factor=1.3),
        "hunyuan_v1_moe": t.HunYuanMoEV1Config(
            **SMALL, head_dim=6, num_hidden_layers=2, num_experts=4, moe_topk=2,
            rope_parameters=ROPE | {"rope_type": "dynamic", "alpha": 1000.0, "factor": 1.0}),
        "glm4_moe_lite": t.Glm4MoeLiteConfig(**LATENT, **EXPERTS, num_hidden_layers=2, n_routed_experts=4),
        "exaone_moe": t.ExaoneMoeConfig(
            **SMALL, **EXPERTS, num_hidden_layers=5, num_experts=4, num_shared_experts=2, sliding_window=10,
            first_k_dense_replace=2, rope_parameters=ROPE),
        "granitemoeshared": t.GraniteMoeSharedConfig(
            **SMALL, num_hidden_layers=2, num_local_experts=4, num_experts_per_tok=2, shared_intermediate_size=20,
            **FACTORS),
        "exaone": t.ExaoneConfig(**SMALL, num_hidden_layers=2),
        "hyperclovax": t.HyperCLOVAXConfig(**SMALL, num_hidden_layers=2, **FACTORS),
        "minicpm3": t.MiniCPM3Config(**LATENT, num_hidden_layers=2, dim_model_base=8),
        "nemotron_h_moe": t.NemotronHConfig(
            **SMALL, **BLOCKS, layers_block_type=["linear_attention", "moe", "full_attention", "moe"],
            n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=12,
            moe_shared_expert_intermediate_size=20, n_group=2, topk_group=1, routed_scaling_factor=1.5),
        "lfm2": t.Lfm2Config(**SMALL, num_hidden_layers=3, layer_types=["full_attention", "conv", "conv"],
                             block_multiple_of=8),
        "mimo": t.Qwen2Config(**SMALL, head_dim=6, num_hidden_layers=2),
        "olmo3_by_kind": t.Olmo3Config(
            **SMALL, num_hidden_layers=4, sliding_window=10, rope_parameters={
                "full_attention": {"rope_type": "yarn", "rope_theta": 20000.0, "factor": 4.0,
                                   "original_max_position_embeddings": 16},
                "sliding_attention": ROPE}),
        "gemma4_kv_heads": t.Gemma4TextConfig(
            **SMALL | {"num_key_value_heads": 4}, head_dim=6, global_head_dim=8, num_hidden_layers=4, sliding_window=10,
            layer_types=["sliding_attention", "full_attention"] * 2, attention_k_eq_v=True,
            num_global_key_value_heads=1, num_kv_shared_layers=0, hidden_size_per_layer_input=0,
            vocab_size_per_layer_input=48, rope_parameters={
                "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.5, "rope_theta": 20000.0},
                "sliding_attention": ROPE}),
        "deepseek_wide_values": t.DeepseekV3Config(
            **LATENT | {"v_head_dim": 14, "qk_nope_head_dim": 12}, **EXPERTS, num_hidden_layers=2, n_routed_experts=4, n_group=2, topk_group=1,
            first_k_dense_replace=1),
        "dots1_window": t.Dots1Config(
            **SMALL, **EXPERTS, head_dim=6, num_hidden_layers=3, n_routed_experts=4, n_shared_experts=1, sliding_window=10,
            max_window_layers=1),
        "smollm3_window": t.SmolLM3Config(
            **SMALL, num_hidden_layers=4, no_rope_layers=[1, 0, 1, 0], use_sliding_window=True, sliding_window=10),
        "qwen2_moe_window": t.Qwen2MoeConfig(
            **SMALL, **EXPERTS, num_hidden_layers=4, num_experts=4, shared_expert_intermediate_size=20,
            use_sliding_window=True, sliding_window=10, max_window_layers=3),
        "falcon_h1": t.FalconH1Config(
            **SMALL, **STATES, **MULTIPLIERS, num_hidden_layers=3, head_dim=6, attention_bias=True, mlp_bias=True,
            mamba_proj_bias=True, projectors_bias=True, mamba_rms_norm=True, mamba_conv_bias=False),
        "falcon_h1_gated_first": t.FalconH1Config(
            **SMALL, **STATES, **MULTIPLIERS, num_hidden_layers=2, head_dim=6, mamba_rms_norm=True,
            mamba_norm_before_gate=False),
        "falcon_h1_plain": t.FalconH1Config(**SMALL, num_hidden_layers=2, mamba_d_ssm=None, mamba_n_heads=4,
                                            mamba_d_state=6),
        "internlm3": make_config("internlm3", **SMALL, head_dim=6, num_hidden_layers=2, rms_norm_eps=1e-3,
                                 attention_bias=True, mlp_bias=True, rope_parameters={
                                     "rope_type": "dynamic", "factor": 6.0, "rope_theta": 10000.0}),
        "iquestcoder": make_config("iquestcoder", **SMALL, head_dim=6, num_hidden_layers=2, rms_norm_eps=1e-3),
        "jais2": make_config("jais2", **SMALL, num_hidden_layers=2, layer_norm_eps=1e-3),
        "sarvam_moe": make_config("sarvam_moe", **SMALL, **EXPERTS, head_dim=6, num_hidden_layers=3,
                                  n_routed_experts=6, n_group=3, topk_group=2, attention_bias=True),
        "sarvam_mla": make_config(
            "sarvam_mla", **(LATENT | {"q_lora_rank": None}), **EXPERTS, num_hidden_layers=2, n_routed_experts=4,
            n_shared_experts=2, rope_parameters={
                "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "mscale": 1.0,
                "mscale_all_dim": 0.8, "rope_theta": 10000.0}),
        "axk1": make_config("axk1", **LATENT, **EXPERTS, num_hidden_layers=4, n_routed_experts=6, n_group=3,
                            topk_group=2, mlp_layer_types=["dense", "sparse"] * 2),
        "kolibri1": make_config(
            "kolibri1", **ALL_EXPERTS, **EXPERTS, head_dim=6, num_hidden_layers=3, num_experts=6, sliding_window=10,
            shared_expert_intermediate_size=20, layer_types=IN_TURNS),
        "mellum": make_config(
            "mellum", **SMALL, **EXPERTS, head_dim=8, num_hidden_layers=3, num_experts=6, sliding_window=10,
            layer_types=IN_TURNS, mlp_layer_types=["sparse", "dense", "sparse"], rope_parameters={
                "full_attention": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16,
                                   "rope_theta": 500000.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}}),
        "hy_v3": make_config("hy_v3", **SMALL, **EXPERTS, head_dim=6, num_hidden_layers=3, num_experts=6,
                             num_shared_experts=2, attention_bias=True),
        "granite_swa": make_config("granite_swa", **SMALL, **FACTORS, num_hidden_layers=4, sliding_window=10,
                                   layer_rope_theta=[0, 100.0, 100.0, 0], attention_bias=True),
        "granitemoe_swa": make_config(
            "granitemoe_swa", **SMALL, **FACTORS, num_hidden_layers=3, sliding_window=10, num_local_experts=6,
            num_experts_per_tok=2, shared_intermediate_size=20, layer_types=IN_TURNS,
            layer_rope_theta=[50.0, 900.0, 50.0]),
        "cohere2_moe": make_config(
            "cohere2_moe", **SMALL, head_dim=6, num_hidden_layers=3, sliding_window=10, num_experts=6,
            num_experts_per_tok=2, num_shared_experts=2, prefix_dense_intermediate_size=20, layer_types=[
                "full_attention", "sliding_attention", "full_attention"],
            mlp_layer_types=["dense", "sparse", "sparse"]),
        "cohere2_moe_sigmoid": make_config(
            "cohere2_moe", **SMALL, head_dim=6, num_hidden_layers=2, sliding_window=10, num_experts=6,
            num_experts_per_tok=2, expert_selection_fn="sigmoid", norm_topk_prob=False, num_shared_experts=1,
            shared_expert_combination_strategy="sum", rms_norm_eps=1e-3, sliding_window_pattern=2),
        "deepseek_v32": make_config(
            "deepseek_v32", **LATENT, **EXPERTS, num_hidden_layers=3, n_routed_experts=6, n_group=3, topk_group=2,
            index_topk=48, index_head_dim=8, index_n_heads=2, mlp_layer_types=["dense", "sparse", "sparse"],
            rope_parameters={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "mscale": 1.0,
                             "mscale_all_dim": 0.8, "rope_theta": 10000.0}),
        "glm_moe_dsa": make_config(
            "glm_moe_dsa", **LATENT, **EXPERTS, num_hidden_layers=3, n_routed_experts=6, index_topk=48,
            index_head_dim=8, index_n_heads=2, index_topk_freq=2, first_k_dense_replace=1),
        "lfm3": make_config(
            "lfm3", **SMALL, head_dim=8, num_hidden_layers=4, sliding_window=10, conv_L_cache=5, conv_bias=True,
            attention_bias=True, layer_types=["conv", "sliding_attention", "full_attention", "conv"]),
        "laguna": make_config(
            "laguna", **SMALL, **EXPERTS, head_dim=8, num_hidden_layers=3, num_experts=6, sliding_window=10,
            shared_expert_intermediate_size=20, moe_routed_scaling_factor=1.7, layer_types=IN_TURNS),
        "laguna_elements": make_config(
            "laguna", **SMALL, **EXPERTS, head_dim=8, num_hidden_layers=2, num_experts=6, gating="per-element",
            shared_expert_intermediate_size=20, attention_bias=True, mlp_layer_types=["sparse", "dense"]),
        "mellum_experts": make_config(
            "mellum", **SMALL, **EXPERTS, head_dim=8, num_hidden_layers=3, num_experts=6, sliding_window=10,
            layer_types=IN_TURNS, mlp_layer_types=["sparse"] * 3, rope_parameters={
                "full_attention": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16,
                                   "rope_theta": 5000.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 5000.0}}),
        "granitemoe_swa_still": make_config(
            "granitemoe_swa", **SMALL, **FACTORS, num_hidden_layers=3, sliding_window=10, num_local_experts=6,
            num_experts_per_tok=2, shared_intermediate_size=20, layer_types=IN_TURNS,
            layer_rope_theta=[90.0, 0, 90.0]),
        "deepseek_v32_plain": make_config(
            "deepseek_v32", **LATENT, **EXPERTS, num_hidden_layers=3, n_routed_experts=6, n_group=3, topk_group=2,
            index_topk=48, index_head_dim=8, index_n_heads=2, mlp_layer_types=["dense", "sparse", "sparse"]),
        "olmo_hybrid": make_config(
            "olmo_hybrid", **SMALL, num_hidden_layers=4, rope_parameters={"rope_type": "default", "rope_theta": None}),
        "olmo_hybrid_rope": make_config(
            "olmo_hybrid", **SMALL, num_hidden_layers=4, layer_types=["full_attention", "linear_attention"] * 2,
            rope_parameters=ROPE | {"rope_theta": 5000.0}, attention_bias=True, rms_norm_eps=1e-3,
            linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=5, linear_value_head_dim=6,
            linear_conv_kernel_dim=3, linear_allow_neg_eigval=False, tie_word_embeddings=True),
        "kimi_linear": make_config(
            "kimi_linear", **LATENT | {"q_lora_rank": None}, **EXPERTS, num_hidden_layers=4, num_local_experts=6,
            linear_attn_config={"num_heads": 3, "head_dim": 6, "short_conv_kernel_size": 3,
                                "full_attn_layers": [2, 4], "kda_layers": [1, 3]}),
        "kimi_linear_groups": make_config(
            "kimi_linear", **LATENT, **EXPERTS, num_hidden_layers=5, num_local_experts=6, n_group=3, topk_group=2,
            num_shared_experts=2, attention_bias=True, linear_num_heads=2, linear_head_dim=10, rms_norm_eps=1e-3,
            mlp_layer_types=["sparse", "dense"] * 2 + ["sparse"], moe_renormalize=False),
        "bailing_hybrid": make_config(
            "bailing_hybrid", **LATENT | {"q_lora_rank": None}, **EXPERTS, num_hidden_layers=4, num_local_experts=6,
            n_group=3, topk_group=2, head_dim=6, layer_group_size=2, first_k_dense_replace=1),
        "bailing_hybrid_unbounded": make_config(
            "bailing_hybrid", **LATENT, **EXPERTS, num_hidden_layers=3, num_local_experts=6, n_group=1, topk_group=1,
            num_shared_experts=2, head_dim=10, attention_bias=True, rms_norm_eps=1e-3, kda_safe_gate=False,
            short_conv_kernel_size=3, layer_types=["full_attention", "linear_attention", "full_attention"],
            mlp_layer_types=["sparse", "dense", "sparse"], rope_parameters={
                "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "mscale": 1.0,
                "mscale_all_dim": 0.8, "rope_theta": 10000.0}),
        "longcat_flash": make_config(
            "longcat_flash", **PAIRS, num_layers=2, n_routed_experts=4, zero_expert_num=2, moe_topk=3),
        "longcat_flash_yarn": make_config(
            "longcat_flash", **PAIRS, num_layers=1, n_routed_experts=3, zero_expert_num=5, moe_topk=4,
            routed_scaling_factor=1.5, attention_bias=True, rms_norm_eps=1e-3, tie_word_embeddings=True,
            rope_parameters={
                "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "mscale": 1.0,
                "mscale_all_dim": 0.8, "rope_theta": 10000.0}),
        "axk2": make_config(
            "axk2", **LATENT, **EXPERTS, **INDEX, num_hidden_layers=3, n_routed_experts=6, gated_norm_rank=3),
        "axk2_groups": make_config(
            "axk2", **LATENT | {"v_head_dim": 9}, **EXPERTS, **INDEX, num_hidden_layers=2, n_routed_experts=6,
            n_group=3, topk_group=2, n_shared_experts=2, gated_norm_rank=5, attention_bias=True, rms_norm_eps=1e-3,
            norm_topk_prob=False, mlp_layer_types=["sparse", "dense"], tie_word_embeddings=True, rope_parameters={
                "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "mscale": 1.0,
                "mscale_all_dim": 0.8, "rope_theta": 10000.0}),
        "minimax": make_config(
            "minimax", **SMALL, num_hidden_layers=4, num_local_experts=4, block_size=7, full_attn_alpha_factor=1.6,
            full_attn_beta_factor=0.8, linear_attn_alpha_factor=2.3, linear_attn_beta_factor=1.2,
            mlp_alpha_factor=1.9, mlp_beta_factor=0.7),
        "minimax_plain": make_config(
            "minimax", **SMALL, num_hidden_layers=3, num_local_experts=3, block_size=4, head_dim=6, rms_norm_eps=1e-3,
            layer_types=["linear_attention", "full_attention", "linear_attention"], sliding_window=9,
            tie_word_embeddings=True),
        "zamba2": make_config(
            "zamba2", **SMALL | {"num_key_value_heads": 4}, **ZAMBA, num_hidden_layers=4, num_mem_blocks=2,
            mamba_ngroups=2, use_mem_rope=True, use_shared_attention_adapter=True,
            layers_block_type=["linear_attention", "hybrid", "hybrid", "hybrid"]),
        "zamba2_plain": make_config(
            "zamba2", **SMALL, **ZAMBA, num_hidden_layers=3, add_bias_linear=True, rms_norm_eps=1e-3,
            time_step_min=0.4, tie_word_embeddings=False, layers_block_type=["hybrid", "linear_attention", "hybrid"]),
        "mimo_v2": make_config(
            "mimo_v2_flash", **SMALL | {"num_key_value_heads": 1}, **EXPERTS, num_hidden_layers=3, n_routed_experts=6,
            n_group=3, topk_group=2, head_dim=12, v_head_dim=8, sliding_window=10, layer_types=IN_TURNS,
            attention_bias=True, routed_scaling_factor=1.3, mlp_layer_types=["sparse", "dense", "sparse"],
            rope_parameters={
                "full_attention": ROPE | {"rope_theta": 5000.0, "partial_rotary_factor": 0.334},
                "sliding_attention": ROPE | {"rope_theta": 100.0, "partial_rotary_factor": 0.5}}),
        "mimo_v2_published": make_config(
            "mimo_v2_flash", **SMALL | {"num_key_value_heads": 1}, **EXPERTS, num_hidden_layers=3, n_routed_experts=4,
            head_dim=12, v_head_dim=8, sliding_window=10),
        "gemma4_unified": make_config(
            "gemma4_unified_text", **SMALL, head_dim=6, global_head_dim=8, num_hidden_layers=3, sliding_window=10,
            layer_types=list(IN_TURNS),         # which Gemma changes
            attention_k_eq_v=True, num_global_key_value_heads=1, final_logit_softcapping=4.0),
        "gemma4_unified_lent": make_config(
            "gemma4_unified_text", **SMALL, head_dim=6, global_head_dim=8, num_hidden_layers=4, sliding_window=10,
            layer_types=["sliding_attention", "full_attention"] * 2, num_kv_shared_layers=2, use_double_wide_mlp=True,
            rope_parameters={
                "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.5, "rope_theta": 20000.0},
                "sliding_attention": ROPE}),
        "diffllama": make_config(
            "diffllama", **SMALL | {"num_attention_heads": 8, "num_key_value_heads": 4}, head_dim=6, num_hidden_layers=3,
            attention_bias=True, rms_norm_eps=1e-3),
        "diffllama_plain": make_config("diffllama", **SMALL | {"num_key_value_heads": 4}, num_hidden_layers=2),
        "apertus1p5": make_config("apertus1p5_text", **SMALL, num_hidden_layers=2, output_vocab_size=47,
                                  rope_parameters=ROPE, attention_bias=True),
        "step3p7": make_config("step3p7", vision_config=STEP_EYES, text_config=SMALL | EXPERTS | dict(
            head_dim=8, num_hidden_layers=3, n_routed_experts=6, share_expert_dim=20, sliding_window=10,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
            mlp_layer_types=["dense", "sparse", "sparse"], moe_router_scaling_factor=1.7,
            attention_bias=True, query_pre_attn_scalar=5, swiglu_limits=[0.0, 0.3, None],
            swiglu_limits_shared=[0.35, None, 0.35], rope_parameters={
                "full_attention": ROPE | {"rope_theta": 5000.0, "partial_rotary_factor": 0.5},
                "sliding_attention": ROPE | {"rope_theta": 100.0}})),
        "step3p7_published": make_config("step3p7", vision_config=STEP_EYES, text_config=dict(STEP)),
        "hy_v4": make_config("hy_v4", **LATENT, **EXPERTS, **INDEX, num_hidden_layers=3, n_routed_experts=6),
        "hy_v4_groups": make_config(
            "hy_v4", **LATENT | {"v_head_dim": 9}, **EXPERTS, **INDEX, num_hidden_layers=2, n_routed_experts=6,
            n_group=3, topk_group=2, n_shared_experts=2, hc_mult=3, hc_magnitude=1.3, hc_eps=0.05, swiglu_limit=0.6,
            attention_bias=True, rms_norm_eps=1e-3, norm_topk_prob=False, mlp_layer_types=["sparse", "dense"],
            indexer_types=["full", "shared"], tie_word_embeddings=True, rope_parameters={
                "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "mscale": 1.0,
                "mscale_all_dim": 0.8, "rope_theta": 10000.0}),
        "hy_v4_vl": make_config("hy_v4_vl", vision_config=HY_EYES, text_config=LATENT | EXPERTS | INDEX | dict(
            num_hidden_layers=2, n_routed_experts=4, rms_norm_eps=1e-2, hc_mult=2,
            rope_parameters=ROPE | {"mrope_section": [1, 1, 0]})),
        "minimax_m3": make_config(
            "minimax_m3_vl", vision_config=BLOCK_EYES, projector_hidden_size=4, text_config=SMALL | BLOCKS_M3 | dict(
                num_hidden_layers=3, layer_types=["full_attention", "minimax_m3_sparse", "minimax_m3_sparse"],
                mlp_layer_types=["dense", "sparse", "sparse"], rope_parameters=ROPE | {
                    "rope_theta": 500.0, "partial_rotary_factor": 0.5})),
        "minimax_m3_text": make_config(
            "minimax_m3_vl_text", **SMALL | BLOCKS_M3 | {"num_local_experts": 4}, num_hidden_layers=2,
            layer_types=["minimax_m3_sparse", "full_attention"], mlp_layer_types=["sparse", "dense"], swiglu_limit=0.6,
            swiglu_alpha=1.2, rms_norm_eps=1e-3, routed_scaling_factor=1.3, tie_word_embeddings=True),
        "doge": make_config("doge", **SMALL, num_hidden_layers=3, attention_bias=True, mlp_bias=True, rms_norm_eps=1e-3,
                            keep_window_size=48),
        "doge_window": make_config("doge", **SMALL | {"num_key_value_heads": 4}, head_dim=8, num_hidden_layers=2,
                                   sliding_window=10, tie_word_embeddings=True),
        "llava": make_config("llava", vision_config=EYES | dict(projection_dim=4), text_config=SMALL | dict(
            model_type="llama", num_hidden_layers=2, rms_norm_eps=1e-5)),
        "idefics3": make_config("idefics3", vision_config=EYES, scale_factor=1, text_config=SMALL | dict(
            model_type="llama", num_hidden_layers=2), tie_word_embeddings=True),
        "mistral3": make_config("mistral3", vision_config=EYES | dict(head_dim=4), text_config=SMALL | dict(
            model_type="mistral", num_hidden_layers=2, head_dim=6, sliding_window=10), tie_word_embeddings=False),
        "qwen2_vl": make_config("qwen2_vl", vision_config=QWEN_EYES, text_config=SMALL | dict(
            num_hidden_layers=2, rope_parameters=ROPE | {"mrope_section": [1, 1, 0]}), tie_word_embeddings=True),
        "qwen2_5_vl": make_config("qwen2_5_vl", vision_config=QWEN_EYES, text_config=SMALL | dict(
            num_hidden_layers=3, use_sliding_window=True, sliding_window=10, max_window_layers=1,
            rope_parameters=ROPE | {"mrope_section": [1, 1, 0]})),
        "qwen3_vl": make_config("qwen3_vl", vision_config=QWEN_EYES, text_config=SMALL | dict(
            head_dim=8, num_hidden_layers=2, attention_bias=True, rope_parameters=THREE)),
        "qwen3_vl_moe": make_config("qwen3_vl_moe", vision_config=QWEN_EYES, text_config=SMALL | EXPERTS | dict(
            head_dim=8, num_hidden_layers=2, num_experts=4, num_local_experts=4,
            rope_parameters=THREE)),
        "glm4v": make_config("glm4v", vision_config=GLM_EYES, text_config=SMALL | dict(
            num_hidden_layers=2, rope_parameters=ROPE | {"mrope_section": [1, 0, 0], "partial_rotary_factor": 0.5})),
        "glm4v_moe": make_config("glm4v_moe", vision_config=GLM_EYES, text_config=SMALL | EXPERTS | dict(
            head_dim=8, num_hidden_layers=2, n_routed_experts=4, routed_scaling_factor=1.3, use_qk_norm=True,
            rope_parameters=ROPE | {"mrope_section": [1, 1, 0], "partial_rotary_factor": 0.5})),
        "kimi_k25": make_config("kimi_k25", vision_config=EYES | dict(pos_emb_height=2, pos_emb_width=2,
            pos_emb_time=1), projection_hidden_size=4, text_config=LATENT | EXPERTS | dict(
            model_type="deepseek_v3", head_dim=4, num_hidden_layers=2, n_routed_experts=4, n_group=1, topk_group=1,
            first_k_dense_replace=1), tie_word_embeddings=False),
        "qwen2_5_omni": make_config(
            "qwen2_5_omni_thinker", vision_config=QWEN_EYES, audio_config=EARS, vision_start_token_id=47,
            tie_word_embeddings=False, text_config=SMALL | dict(
                num_hidden_layers=2, rope_parameters=ROPE | {"mrope_section": [1, 1, 0]})),
        "qwen3_omni_moe": make_config(
            "qwen3_omni_moe_thinker", vision_config=QWEN_EYES, audio_config=EARS, vision_start_token_id=47,
            text_config=SMALL | EXPERTS | dict(
                head_dim=8, num_hidden_layers=2, num_experts=4, mlp_only_layers=[1], rope_parameters=THREE)),
        "cohere2_vision": make_config(
            "cohere2_vision", vision_config=EYES, alignment_intermediate_size=8, text_config=SMALL | dict(
                model_type="cohere2", num_hidden_layers=2, sliding_window=10,
                layer_types=["sliding_attention", "full_attention"])),
        "internvl_chat": make_config(
            "internvl", vision_config=EYES | dict(image_size=[28, 28], patch_size=[14, 14]), text_config=SMALL | dict(
                model_type="qwen2", num_hidden_layers=2), tie_word_embeddings=False),
        "mllama": make_config(
            "mllama", vision_config=LLAMA_EYES, text_config=SMALL | dict(
                num_hidden_layers=5, cross_attention_layers=[1, 3], rope_parameters=ROPE | {
                    "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 3.0,
                    "original_max_position_embeddings": 16}), tie_word_embeddings=False),
        "mistral4": make_config(
            "mistral4", **LATENT, **EXPERTS, num_hidden_layers=2, n_routed_experts=6, n_group=3, topk_group=2,
            first_k_dense_replace=1, routed_scaling_factor=1.3, rope_parameters={
                "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8, "mscale": 1.0,
                "mscale_all_dim": 0.8, "rope_theta": 10000.0, "llama_4_scaling_beta": 0.3,
                "max_position_embeddings": 64}),
        "mistral4_experts": make_config(
            "mistral4", **LATENT | {"v_head_dim": 9, "q_lora_rank": None}, **EXPERTS, num_hidden_layers=2,
            n_routed_experts=4, n_shared_experts=2, rms_norm_eps=1e-3, tie_word_embeddings=True, attention_bias=False,
            norm_topk_prob=False, rope_interleave=False, rope_parameters={
                "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 500.0,
                "llama_4_scaling_beta": 0.1}),
        "aria": make_config("aria", vision_config=EYES, projector_patch_to_query_dict={4: 2}, text_config=SMALL | dict(
            head_dim=6, num_hidden_layers=2, moe_num_experts=5, moe_topk=3, moe_num_shared_experts=1,
            attention_bias=True, rms_norm_eps=1e-3), tie_word_embeddings=False),
        "internlm2": make_config("llama", **SMALL, num_hidden_layers=2, attention_bias=True, rms_norm_eps=1e-3,
                                 rope_parameters={"rope_type": "linear", "factor": 3.0, "rope_theta": 500.0}),
        "ernie4_5_vl_moe": make_config(
            "ernie4_5_vl_moe", vision_config=QWEN_EYES | dict(spatial_merge_size=1, temporal_merge_size=1), text_config=
            SMALL | dict(
                num_hidden_layers=3, moe_num_experts=4, moe_k=2, moe_intermediate_size=[12, 6], moe_num_shared_experts=1,
                mlp_layer_types=["dense", "sparse", "sparse"], head_dim=8,
                rope_parameters=ROPE | {"mrope_section": [1, 1, 2]})),
        "glm_ocr": make_config("glm_ocr", vision_config=GLM_EYES, text_config=SMALL | dict(
            num_hidden_layers=2, head_dim=8, rope_parameters=ROPE | {
                "mrope_section": [1, 1, 0], "partial_rotary_factor": 0.5})),
        "paddleocr_vl": make_config("paddleocr_vl", vision_config=EYES | dict(spatial_merge_size=1), text_config=SMALL |
            dict(num_hidden_layers=2, head_dim=8, use_bias=True, rope_parameters=THREE)),
        "laguna_heads": make_config(
            "laguna", **SMALL, **EXPERTS | {"moe_intermediate_size": 8}, head_dim=8, num_hidden_layers=4, num_experts=4,
            sliding_window=10, shared_expert_intermediate_size=10, gating="per-head",
            layer_types=["full_attention"] + ["sliding_attention"] * 3, num_attention_heads_per_layer=[4, 6, 6, 6]),
        "laguna_heads_each": make_config(
            "laguna", **SMALL, **EXPERTS, head_dim=4, num_hidden_layers=3, num_experts=4, sliding_window=10,
            shared_expert_intermediate_size=10, gating="per-element", attention_bias=True,
            layer_types=["full_attention", "sliding_attention", "full_attention"],
            num_attention_heads_per_layer=[2, 8, 6]),
        "step3p7_heads": make_config("step3p7", vision_config=STEP_EYES, text_config=SMALL | EXPERTS | dict(
            head_dim=8, num_hidden_layers=3, n_routed_experts=4, share_expert_dim=10, sliding_window=10,
            layer_types=IN_TURNS, mlp_layer_types=["dense", "sparse", "sparse"], num_sliding_attention_heads=2,
            rope_parameters={
                "full_attention": ROPE | {"rope_theta": 5000.0, "partial_rotary_factor": 0.5},
                "sliding_attention": ROPE | {"rope_theta": 100.0}})),
        "step3p7_heads_published": make_config("step3p7", vision_config=STEP_EYES, text_config=dict(STEP_HEADS)),
        "mistral_large4": make_config(
            "mistral_large4", vision_config=EYES | dict(head_dim=4), text_config=LARGE | dict(
                num_hidden_layers=2, n_routed_experts=6, n_group=3, topk_group=2, routed_scaling_factor=1.3,
                no_rope_layers=[1, 0])),
        "mistral_large4_shared": make_config(
            "mistral_large4", vision_config=EYES | dict(head_dim=4), text_config=LARGE | dict(
                num_hidden_layers=3, n_routed_experts=4, n_shared_experts=2, rms_norm_eps=1e-3, v_head_dim=9,
                attention_bias=True, final_logit_softcapping=4.0, no_rope_layers=[0, 1, 0], first_k_dense_replace=2,
                indexer_types=["full", "shared", "full"], rope_parameters={
                    "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8, "mscale": 1.0,
                    "mscale_all_dim": 0.8, "rope_theta": 500.0})),
        "flint": make_config(
            "flint", **SMALL, **EXPERTS, num_hidden_layers=4, head_dim=6, num_experts=5, sliding_window=7,
            shared_expert_intermediate_size=20, mlp_only_layers=[0]),
        "flint_bias": make_config(
            "flint", **SMALL, **EXPERTS, num_hidden_layers=3, head_dim=8, num_experts=4, sliding_window=5,
            shared_expert_intermediate_size=10, attention_bias=True, norm_topk_prob=False, tie_word_embeddings=True,
            mlp_only_layers=[], layer_types=IN_TURNS, rms_norm_eps=1e-3, rope_parameters=ROPE | {
                "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}),
        "phi4_multimodal": make_config(
            "phi4_multimodal", **PHI, num_hidden_layers=2, sliding_window=7, vision_config=PHI_EYES,
            audio_config=PHI_EARS),
        "phi4_multimodal_published": make_config(
            "phi4_multimodal", **PHI, num_hidden_layers=2, tie_word_embeddings=True, vision_config=PHI_EYES,
            audio_config=PHI_EARS, original_max_position_embeddings=16, rope_parameters={
                "rope_type": "longrope", "rope_theta": 500.0, "partial_rotary_factor": 0.75,
                "short_factor": [1.0, 1.5, 2.5], "long_factor": [1.2, 3.0, 5.0]}),
        "lara_mini": make_config(
            "lara_mini", **LARA, num_hidden_layers=4, head_dim=6, num_experts=5, sliding_window=7,
            shared_expert_intermediate_size=20, linear_num_key_heads=2, linear_num_value_heads=4),
        "lara_mini_untied": make_config(
            "lara_mini", **LARA, num_hidden_layers=3, head_dim=8, num_experts=4, sliding_window=5,
            shared_expert_intermediate_size=10, linear_num_key_heads=3, linear_num_value_heads=3,
            attention_bias=True, norm_topk_prob=False, tie_word_embeddings=False, rms_norm_eps=1e-3,
            layer_types=["full_attention", "linear_attention", "sliding_attention"], rope_parameters=ROPE | {
                "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}),
        "cohere_compass": make_config(
            "cohere_compass_text", **SMALL, num_hidden_layers=4, sliding_window=7, logit_scale=0.3,
            layer_types=["sliding_attention"] * 3 + ["full_attention"], rope_parameters={
                "sliding_attention": ROPE | {"mrope_section": [1, 1, 0], "mrope_interleaved": True},
                "full_attention": None}),
        "cohere_compass_vision": make_config(
            "cohere_compass", vision_config=COMPASS_EYES, text_config=SMALL | dict(
                num_hidden_layers=2, sliding_window=5, attention_bias=True, layer_norm_eps=1e-3, logit_scale=2.5,
                layer_types=IN_TURNS[:2], rope_parameters={
                    "sliding_attention": ROPE | {"mrope_section": [1, 1, 0]}, "full_attention": {
                        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16,
                        "rope_theta": 500.0}})),
        "modernbert_decoder": make_config("modernbert-decoder", **BERT, num_hidden_layers=4, local_attention=11),
        "modernbert_decoder_biases": make_config(
            "modernbert-decoder", **BERT, num_hidden_layers=3, local_attention=14, norm_bias=True, attention_bias=True,
            mlp_bias=True, decoder_bias=False, classifier_bias=True, classifier_activation="silu",
            hidden_activation="relu", tie_word_embeddings=False, norm_eps=1e-3, layer_types=IN_TURNS,
            rope_parameters={"full_attention": ROPE | {"rope_type": "linear", "factor": 3.0},
                             "sliding_attention": ROPE | {"rope_theta": 77.0}}),
        "dory": make_config(
            "dory", **SMALL, num_hidden_layers=4, head_dim=6, sliding_window=7, n_input_layers=1, n_output_layers=1,
            n_recurrent_loops=3),
        "dory_published": make_config(
            "dory", **SMALL, num_hidden_layers=3, head_dim=4, sliding_window=5, n_input_layers=1, n_output_layers=0,
            attention_bias=True, mlp_bias=True, hidden_act="gelu", ngpt_alpha_init=0.3, initializer_range=0.1,
            layer_types=IN_TURNS, rope_parameters={
                "full_attention": ROPE | {"rope_type": "linear", "factor": 3.0}, "sliding_attention": ROPE}),
        "glm5_next": make_config("glm5_next", vision_config=GLM_EYES, text_config=STILL | EXPERTS | INDEX | dict(
            num_hidden_layers=4, n_routed_experts=5, mlp_layer_types=["dense", "sparse", "sparse", "sparse"],
            linear_num_heads=3, linear_head_dim=6)),
        "glm5_next_published": make_config(
            "glm5_next", vision_config=GLM_EYES, text_config=STILL | EXPERTS | INDEX | dict(
                num_hidden_layers=3, n_routed_experts=6, n_group=3, topk_group=2, n_shared_experts=2, index_kpool=4,
                mlp_layer_types=["sparse", "dense", "sparse"], hc_mult=3, hc_eps=0.05, hc_sinkhorn_iters=2,
                swiglu_limit=0.6, rms_norm_eps=1e-3, norm_topk_prob=False, routed_scaling_factor=1.3,
                attention_bias=True, layer_types=["indexed_attention", "linear_attention", "indexed_attention"],
                linear_attn_config=dict(head_dim=8, num_heads=2, short_conv_kernel_size=3, safe_gate=False,
                                        gate_lower_bound=None))),
        "nemotron_h_latent": t.NemotronHConfig(
            **SMALL, **BLOCKS, layers_block_type=["linear_attention", "moe", "full_attention", "moe"],
            n_routed_experts=6, num_experts_per_tok=3, moe_intermediate_size=12, moe_latent_size=8,
            moe_shared_expert_intermediate_size=20, n_group=1, topk_group=1, routed_scaling_factor=2.5),
        "recurrent_gemma": t.RecurrentGemmaConfig(
            **GRIFFIN, num_hidden_layers=3, num_key_value_heads=1, attention_window_size=10, logits_soft_cap=4.0),
        "recurrent_gemma_wide": t.RecurrentGemmaConfig(
            **GRIFFIN, num_hidden_layers=4, num_key_value_heads=2, lru_width=20, attention_window_size=7,
            block_types=["attention", "recurrent", "recurrent"], conv1d_width=3, attention_bias=True,
            hidden_activation="silu", tie_word_embeddings=False, rms_norm_eps=1e-3,
            rope_parameters={"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 1.0}),
        "molmo2": make_config("molmo2", **MOLMO_EYES, text_config=MOLMO | dict(
            num_hidden_layers=2, attention_bias=True, additional_vocab_size=5, rope_parameters=ROPE)),
        "molmo2_olmo": make_config("molmo2", **MOLMO_EYES, text_config=MOLMO | dict(
            num_hidden_layers=3, qk_norm_type="olmo", norm_after=True, additional_vocab_size=7, rms_norm_eps=1e-3,
            rope_scaling_layers=[1], rope_parameters=ROPE | dict(
                rope_type="yarn", factor=4.0, original_max_position_embeddings=16, rope_theta=500.0))),
        "openai_gpt": t.OpenAIGPTConfig(**GPT, n_layer=2),
        "ctrl": t.CTRLConfig(**GPT, n_layer=2, dff=28, layer_norm_epsilon=1e-2),
        "qwen4_exp": make_config("qwen4_exp", vision_config=QWEN4_EYES, text_config=QWEN4 | dict(
            num_hidden_layers=4, eos_token_id=39, hc_count=3, hc_lowrank=5, ple_layer_ids=[3, 1], ple_embed_dim=12,
            ple_conv_kernel_size=3, heads_per_ngram=2, split_ngram_parts=3, linear_num_key_heads=2,
            linear_num_value_heads=4, num_experts=3)),
        "qwen4_exp_text": make_config("qwen4_exp_text", **QWEN4 | dict(
            num_hidden_layers=3, layer_types=["indexed_attention", "linear_attention", "full_attention"], hc_count=2,
            hc_lowrank=7, eos_token_id=[21, 47], ple_layer_ids=[2], ple_embed_dim=9, ngram_size=2, heads_per_ngram=3,
            seed=7, linear_num_key_heads=3, linear_num_value_heads=3, num_experts=4, output_gate_type="sigmoid",
            norm_topk_prob=False, rms_norm_eps=1e-3, attention_bias=True,
            rope_parameters=ROPE | {"partial_rotary_factor": 0.5})),
        "emu3": make_config("emu3_text_model", **SMALL, num_hidden_layers=2),
        "emu3_vision": make_config("emu3", vq_config=QUANTISER, vocabulary_map={"<image>": 3}, text_config=SMALL | dict(
            num_hidden_layers=2, head_dim=6, rms_norm_eps=1e-3, rope_parameters=ROPE | {
                "rope_type": "linear", "factor": 3.0})),
        "chameleon": make_config(
            "chameleon", **SMALL | dict(vocab_size=53), num_hidden_layers=2, vq_config=QUANTISER,
            vocabulary_map=PICTURES),
        "chameleon_swin": make_config(
            "chameleon", **SMALL | dict(num_key_value_heads=4, vocab_size=53), num_hidden_layers=2, vq_config=QUANTISER,
            vocabulary_map=PICTURES, swin_norm=True, attention_bias=True, mlp_bias=True, rms_norm_eps=1e-3,
            rope_parameters=ROPE | {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}),
        "gpt_neox_japanese": make_config("gpt_neox_japanese", **BERT | dict(intermediate_size=64), num_hidden_layers=2),
        "gpt_neox_japanese_part": make_config(
            "gpt_neox_japanese", **BERT | dict(intermediate_size=64), num_hidden_layers=2, intermediate_multiple_size=3,
            tie_word_embeddings=False, rotary_pct=0.5, rotary_emb_base=500, hidden_act="relu", layer_norm_eps=1e-3),
        "cosmos3_edge": make_config(
            "cosmos3_edge", vision_config=EDGE_EYES, projector_hidden_size=4, text_config=SMALL | dict(
                num_hidden_layers=2, head_dim=8, rope_parameters=THREE)),
        "cosmos3_edge_names": make_config(
            "cosmos3_edge", vision_config=EDGE_EYES, projector_hidden_size=4, text_config=SMALL | dict(
                num_hidden_layers=2, head_dim=8, attention_bias=True, mlp_bias=True, hidden_act="silu",
                rms_norm_eps=1e-3, rope_parameters=THREE | {"rope_theta": 500.0})),
        "kosmos2": make_config("kosmos-2", vision_config=EYES, latent_query_num=2, text_config=KOSMOS),
        "kosmos2_pad": make_config(
            "kosmos-2", vision_config=EYES, latent_query_num=2, tie_word_embeddings=False, text_config=KOSMOS | dict(
                tie_word_embeddings=False, pad_token_id=0, scale_embedding=False, activation_function="relu",
                layer_norm_eps=1e-3)),
        "hunyuan_vl": make_config("hunyuan_vl", vision_config=HUNYUAN_EYES, text_config=SMALL | dict(
            num_hidden_layers=2, head_dim=8, rope_parameters=ALPHA | {"mrope_section": [1, 1, 1, 1]})),
        "hunyuan_vl_published": make_config("hunyuan_vl", vision_config=HUNYUAN_EYES, text_config=SMALL | dict(
            num_hidden_layers=2, head_dim=6, attention_bias=True, rope_parameters=ALPHA | {"mrope_section": [2, 1]})),
        "deepseek_ocr2": make_config("deepseek_ocr2", vision_config=OCR_EYES, text_config=SMALL | EXPERTS | dict(
            num_hidden_layers=2, n_routed_experts=4, mlp_layer_types=["sparse", "dense"], routed_scaling_factor=1.4)),
        "deepseek_ocr2_groups": make_config("deepseek_ocr2", vision_config=OCR_EYES, text_config=SMALL | EXPERTS | dict(
            num_hidden_layers=2, n_routed_experts=6, n_group=3, topk_group=2, topk_method="group_limited_greedy",
            n_shared_experts=1, mlp_layer_types=["sparse", "sparse"], attention_bias=True)),
        "unlimited_ocr": make_config("unlimited_ocr", vision_config=UNLIMITED_EYES, text_config=SMALL | EXPERTS | {
            "num_hidden_layers": 2, "num_key_value_heads": 4, "n_routed_experts": 4, "sliding_window": 40}),
        "granite_docling": make_config(
            "granite_docling", vision_config=DOCLING_EYES, text_config=SMALL | FACTORS | dict(num_hidden_layers=2)),
        "granite_docling_untied": make_config(
            "granite_docling", vision_config=DOCLING_EYES, tie_word_embeddings=False, text_config=SMALL | dict(
                num_hidden_layers=2, mlp_bias=True, attention_bias=True)),
        "dbrx_saved": t.DbrxConfig(
            d_model=16, n_heads=4, n_layers=2, max_seq_len=64, vocab_size=48, bos_token_id=1, eos_token_id=2,
            attn_config=dict(kv_n_heads=2, clip_qkv=0.6, rope_theta=500.0), rope_parameters=ROPE | {"rope_theta": 500.0},
            ffn_config=dict(ffn_hidden_size=12, moe_num_experts=4, moe_top_k=2)),
        "muse_glimmer": make_config(
            "muse_glimmer", vision_config=MUSE_EYES, out_hidden_size=16, projector_hidden_size=4, text_config=SMALL | dict(
                num_hidden_layers=3, head_dim=6, sliding_window=10, output_multiplier=0.7, final_logit_softcapping=3.0)),
        "muse_glimmer_mixed": make_config(
            "muse_glimmer", vision_config=MUSE_EYES, out_hidden_size=16, projector_hidden_size=4, text_config=SMALL | dict(
                num_hidden_layers=2, head_dim=8, sliding_window=10, attention_bias=True, post_norm_eps=1e-2,
                qk_scale_factor=1.7, layer_types=["full_attention", "sliding_attention"],
                layer_rope_theta=[500.0, 0], rope_parameters=ROPE | {"rope_theta": 500.0}))}


def stack_heads(rows):
    """Of all layers in one tensor: after a layer's own heads, zeros up to the most heads of any."""
    most = max(map(len, rows))
    return torch.stack([torch.cat([a, a.new_zeros(most - len(a), *a.shape[1:])]) for a in rows])


def passes(config):
    """Layers that run several times count each time."""
    loops = getattr(config, "n_recurrent_loops", 0)
    return loops and config.num_hidden_layers + (loops - 1) * config.n_recurrent_layers


def streams(model):
    """How many streams the hidden states have, one after another."""
    return getattr(model.config.get_text_config(), "hc_count", 0)


def calm(model):
    """Dory's learned factors near the values that they begin with, which are small: squares of others are large."""
    start = model.config.get_text_config().initializer_range if model.config.model_type == "dory" else 1
    with torch.no_grad():
        for name, x in model.named_parameters() if start != 1 else []:
            if name.endswith(("sqk", "s_gate", "logit_scale")) or re.search(r"lambda_\d$", name):
                x.mul_(start).add_(start - start * start)


NEVER = -1e30           # shears' logit of a token that never comes next, such as a part of a picture


def run(model, tokens):
    inputs = []
    body = getattr(model, "model", getattr(model, "gpt_neox_japanese", None))
    body = getattr(body, "text_model", getattr(body, "language_model", body))
    layers = body.layers if body else getattr(model.transformer, "h", None) or model.transformer.blocks
    if model.config.model_type == "longcat_flash":      # of both halves: the norms read what these read
        layers = [norm for layer in layers for norm in layer.input_layernorm]
    hooks = [layer.register_forward_pre_hook(
        lambda m, a, k: inputs.append((a[0] if a else k["hidden_states"])[0].clone()), with_kwargs=True)
        for layer in layers]
    with torch.no_grad():
        out = model(tokens, output_attentions=True, output_hidden_states=True, use_cache=False)
    for hook in hooks:
        hook.remove()
    scores = [a[0] for a in out.attentions if a is not None and a.shape[-1] == tokens.shape[1]]  # minimax: states, too
    inputs = [x[:, 0] if x.dim() == 3 else x for x in inputs]       # the first of several streams
    inputs = [x[:, :model.config.get_text_config().hidden_size] if streams(model) else x for x in inputs]
    return {"attn": stack_heads(scores), "hidden": torch.stack(inputs),
            "final": out.hidden_states[-1][0], "logits": out.logits[0].clamp(min=NEVER)}


def become_mimo(place):
    """transformers does not have MiMo: Qwen 2 with layers that predict further tokens and other keys."""
    path = place / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {
        "model_type": "mimo", "architectures": ["MiMoForCausalLM"], "attention_bias": True,
        "num_nextn_predict_layers": 1}, indent=2) + "\n")
    tensors = load_file(place / "model.safetensors")
    tensors["model.mtp_layers.0.input_layernorm.weight"] = torch.ones(config["hidden_size"])
    save_file(tensors, place / "model.safetensors")


def forget_layer_types(place):
    """As release 4 wrote it: which layers have the window follows from other keys."""
    path = place / "config.json"
    config = json.loads(path.read_text())
    config.pop("layer_types", None)
    path.write_text(json.dumps(config, indent=2) + "\n")


def become_step(place, text=STEP):
    """The text part's config as the first files have it."""
    path = place / "config.json"
    config = json.loads(path.read_text())
    config["text_config"] = text | {"model_type": "step3p5", "architectures": ["Step3p5ForCausalLM"]}
    path.write_text(json.dumps(config, indent=2) + "\n")


def become_flat(place):
    """As published: the text part's keys are outside, positions of pictures in rope_scaling."""
    path = place / "config.json"
    config = json.loads(path.read_text())
    text = config.pop("text_config")
    for key in ("model_type", "architectures", "layer_types", "rope_parameters", "tie_word_embeddings"):
        text.pop(key, None)
    path.write_text(json.dumps(text | config | {
        "rope_theta": 10000.0, "rope_scaling": {"type": "mrope", "mrope_section": [1, 1, 0]}}, indent=2) + "\n")


def rename_all(place, new_name):
    tensors = load_file(place / "model.safetensors")
    save_file({new_name(name): x for name, x in tensors.items()}, place / "model.safetensors")


def rename(place, old, new):
    rename_all(place, lambda name: name.replace(old, new))


def turn_stacks(place):
    """As published: [expert, in, out]."""
    tensors = load_file(place / "model.safetensors")
    save_file({name: x.transpose(1, 2).contiguous() if ".mlp.experts." in name else x for name, x in tensors.items()},
              place / "model.safetensors")


def say_nothing_of_ties(place):
    path = place / "config.json"
    config = json.loads(path.read_text())
    del config["tie_word_embeddings"]
    config["text_config"].pop("tie_word_embeddings", None)
    path.write_text(json.dumps(config, indent=2) + "\n")


def become_kimi(place):
    rename(place, "language_model.model.blocks.", "language_model.model.layers.")
    path = place / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {
        "architectures": ["KimiK25ForConditionalGeneration"]}, indent=2) + "\n")


def become_thinker(place):
    """As published: within a model that also talks."""
    rename_all(place, lambda name: "thinker." + name)
    path = place / "config.json"
    config = json.loads(path.read_text())
    kind = config["model_type"].removesuffix("_thinker")
    name = {"qwen2_5_omni": "Qwen2_5OmniModel", "qwen3_omni_moe": "Qwen3OmniMoeForConditionalGeneration"}[kind]
    path.write_text(json.dumps({
        "architectures": [name], "model_type": kind, "thinker_config": config}, indent=2) + "\n")


def become_internlm2(place):
    """transformers does not have InternLM 2: LLaMA with other names and with q, k and v in one tensor."""
    path = place / "config.json"
    config = json.loads(path.read_text())
    scaling = config.pop("rope_parameters")
    bias = config.pop("attention_bias")
    for key in ("head_dim", "mlp_bias", "pretraining_tp"):
        config.pop(key, None)
    path.write_text(json.dumps(config | {
        "model_type": "internlm2", "architectures": ["InternLM2ForCausalLM"], "bias": bias,
        "rope_theta": scaling["rope_theta"], "rope_scaling": {"type": "linear", "factor": scaling["factor"]}},
        indent=2) + "\n")
    names = {"self_attn.o_proj": "attention.wo", "mlp.gate_proj": "feed_forward.w1", "mlp.up_proj": "feed_forward.w3",
             "mlp.down_proj": "feed_forward.w2", "input_layernorm": "attention_norm", "lm_head": "output",
             "post_attention_layernorm": "ffn_norm", "embed_tokens": "tok_embeddings"}
    tensors, out, groups = load_file(place / "model.safetensors"), {}, config["num_key_value_heads"]
    for name, x in tensors.items():
        if "q_proj" in name:
            parts = [tensors[name.replace("q_proj", part)] for part in ("q_proj", "k_proj", "v_proj")]
            x = torch.cat([p.reshape(groups, -1, *p.shape[1:]) for p in parts], dim=1).flatten(0, 1)
            name = name.replace("self_attn.q_proj", "attention.wqkv")
        elif "k_proj" in name or "v_proj" in name:
            continue
        for old, new in names.items():
            name = name.replace(old, new)
        out[name] = x.contiguous()
    save_file(out, place / "model.safetensors")


def become_phi(place):
    """Phi-4-multimodal as published, with adapters for pictures next to the matrices; without eyes and ears."""
    path = place / "config.json"
    config = json.loads(path.read_text())
    rope = config.pop("rope_parameters")
    for key in ("vision_config", "audio_config"):
        config.pop(key)
    config |= {"model_type": "phi4mm", "architectures": ["Phi4MMForCausalLM"], "rope_theta": rope["rope_theta"],
               "partial_rotary_factor": rope["partial_rotary_factor"], "lm_head_bias": False, "attention_bias": False,
               "rope_scaling": {"type": "longrope"} | {k: rope[k] for k in ("short_factor", "long_factor")},
               "vision_lora": {"layer": "layers.*((self_attn\\.(qkv_proj|o_proj))|(mlp\\.(gate_up|down)_proj))", "r": 2}}
    path.write_text(json.dumps(config, indent=2) + "\n")
    tensors = {name: x for name, x in load_file(place / "model.safetensors").items() if "_extend" not in name}
    out = {}
    for name, x in tensors.items():
        if re.search("_proj.weight$", name):
            out[name.replace("weight", "lora_A.vision.weight")] = torch.ones(2, x.shape[1])
            out[name.replace("weight", "lora_B.vision.weight")] = torch.ones(x.shape[0], 2)
            name = name.replace("weight", "base_layer.weight")
        out[name] = x
    save_file(out, place / "model.safetensors")


def drop_eyes(place):
    tensors = load_file(place / "model.safetensors")
    eyes = (r"\.(visual|vision_|multi_modal_)|"
            r"\b(vqmodel|projector|patch_merger|vision_model|image_to_text_projection|sam_model|qwen2_model)\b")
    save_file({name: x for name, x in tensors.items() if not re.search(eyes, name)}, place / "model.safetensors")


def become_hunyuan(place):
    """HunyuanOCR as published: no text_config, older names of keys and of the scaling."""
    drop_eyes(place)
    path = place / "config.json"
    config = json.loads(path.read_text())
    text = config.pop("text_config")
    rope = text.pop("rope_parameters")
    sections = rope.pop("mrope_section")
    config |= {key: value for key, value in text.items() if key != "model_type"} | {
        "attention_head_dim": text["head_dim"], "org_vocab_size": text["vocab_size"],
        "rope_theta": rope.pop("rope_theta"),
        "rope_scaling": {"type": "xdrope", "alpha": rope["alpha"], "factor": 1.0, "xdrope_section": sections}}
    path.write_text(json.dumps(config, indent=2) + "\n")


def become_chat(place):
    """The first files of InternVL, whose code comes with them."""
    path = place / "config.json"
    config = json.loads(path.read_text())
    config["llm_config"] = config.pop("text_config") | {"architectures": ["Qwen2ForCausalLM"]}
    path.write_text(json.dumps(config | {
        "architectures": ["InternVLChatModel"], "model_type": "internvl_chat"}, indent=2) + "\n")


def become_dory(place):
    """As published: blocks are numbered through."""
    tensors = {}
    for name, x in load_file(place / "model.safetensors").items():
        layer = re.match(r"backbone\.layers\.(\d+)\.", name)
        if layer:
            second = ".mlp." in name or name.endswith("lambda_2")
            for old, new in (("self_attn", "mixer"), ("mlp", "mixer"), ("lambda_1", "attn_alpha"), ("lambda_2", "mlp_alpha")):
                name = re.sub(rf"\b{old}\b", new, name)
            name = name.replace(layer[0], f"backbone.layers.{2 * int(layer[1]) + second}.")
        tensors[name] = x
    save_file(tensors, place / "model.safetensors")


def become_molmo(place):
    """Molmo 2 as published: the embedding in a table of the head's size and one of further rows; older keys."""
    drop_eyes(place)
    path = place / "config.json"
    config = json.loads(path.read_text())
    text = config["text_config"]
    text |= {"qkv_bias": text.pop("attention_bias"), "layer_norm_eps": text.pop("rms_norm_eps"),
             "rope_theta": text.pop("rope_parameters")["rope_theta"], "rope_scaling": None, "rope_scaling_layers": None}
    path.write_text(json.dumps(config, indent=2) + "\n")
    tensors, wte = load_file(place / "model.safetensors"), "model.transformer.wte."
    all_rows = torch.cat([tensors[wte + part] for part in ("embedding", "new_embedding")])
    n = text["vocab_size"]
    save_file(tensors | {wte + "embedding": all_rows[:n].clone(), wte + "new_embedding": all_rows[n:].clone()},
              place / "model.safetensors")


def as_published(name, place):
    change = {
        "mimo": become_mimo, "step3p7_published": become_step,
        "step3p7_heads_published": lambda place: become_step(place, STEP_HEADS),
        "qwen2_vl": become_flat, "paddleocr_vl": become_flat,
        "qwen3_vl_moe": turn_stacks, "mistral3": say_nothing_of_ties, "kimi_k25": become_kimi,
        "qwen2_5_omni": become_thinker, "qwen3_omni_moe": become_thinker, "internvl_chat": become_chat,
        "internlm2": become_internlm2, "phi4_multimodal_published": become_phi, "dory_published": become_dory,
        "glm5_next": drop_eyes, "glm5_next_published": drop_eyes, "molmo2": become_molmo, "molmo2_olmo": drop_eyes,
        "qwen4_exp": drop_eyes, "emu3_vision": drop_eyes, "chameleon": drop_eyes, "chameleon_swin": drop_eyes,
        "cosmos3_edge": drop_eyes, "cosmos3_edge_names": drop_eyes, "kosmos2": drop_eyes, "kosmos2_pad": drop_eyes,
        "hunyuan_vl_published": become_hunyuan, "deepseek_ocr2": drop_eyes,
        "deepseek_ocr2_groups": drop_eyes, "unlimited_ocr": drop_eyes, "granite_docling": drop_eyes,
        "granite_docling_untied": drop_eyes, "muse_glimmer": drop_eyes, "muse_glimmer_mixed": drop_eyes}
    change.get(name, lambda place: None)(place)


def show_sinks():
    """Granite Swash scales what attention gives in place of its weights: take the weights that come to the same."""
    from transformers.models.gpt_oss.modeling_gpt_oss import eager_attention_forward as with_sinks
    for kind in (t.models.granite_swa.modeling_granite_swa, t.models.granitemoe_swa.modeling_granitemoe_swa):
        def attend(*args, own=kind.eager_attention_forward, **more):
            return own(*args, **more)[0], with_sinks(*args, **more)[1]
        kind.eager_attention_forward = attend


def new_model(kind, config):
    if config.model_type == "emu3_text_model":          # no name among the automatic ones
        config._attn_implementation = "eager"
        return t.Emu3ForCausalLM(config).float().eval()
    return kind.from_config(config, attn_implementation="eager").float().eval()


def speaker(model):
    """What can be called with a text alone: Kosmos-2 as a whole wants a picture."""
    return model.text_model if model.config.model_type == "kosmos-2" else model


def make(folder, names):
    torch.set_num_threads(1)
    show_sinks()
    for seed, (name, config) in enumerate(cases().items(), start=1):
        if names and name not in names:
            continue
        torch.manual_seed(seed)
        text, kind = config, t.AutoModelForCausalLM
        if hasattr(config, "text_config"):
            text, kind = config.text_config, t.AutoModelForMultimodalLM
        elif config.model_type in ("mistral4", "chameleon"):        # where transformers files them
            kind = t.AutoModelForMultimodalLM
        model = new_model(kind, config)
        speaks = speaker(model)
        g = torch.Generator().manual_seed(seed)
        fill(model, seed)
        calm(model)
        with torch.no_grad():
            for buffer, x in model.named_buffers():
                if "bias" in buffer and x.dim() < 4:    # corrections of the choice of experts, not GPT's mask
                    x.add_(torch.randn(x.shape, generator=g) * 0.1)
        place = pathlib.Path(folder) / name
        # The names that transformers has in memory, where published files have others.
        model.save_pretrained(place, save_original_format=name not in (
            "mistral_large4_shared", "glm5_next", "molmo2_olmo", "qwen4_exp_text", "cosmos3_edge"))
        (place / "generation_config.json").unlink(missing_ok=True)
        kinds = ["full_attention"] * passes(text) if passes(text) else getattr(text, "layer_types", None) or getattr(text, "layers_block_type", None) or \
            ["full_attention"] * (text.num_hidden_layers - len(getattr(text, "cross_attention_layers", [])))
        ref = {"sequences": [], "attn_layers": [i for i, kind in enumerate(kinds) if kind in ATTENDS]}
        tensors = {}
        for i, n in enumerate((9, 26)):
            tokens = torch.randint(3, SMALL["vocab_size"], (1, n), generator=g)
            tensors |= {f"s{i}.{key}": x.contiguous() for key, x in run(speaks, tokens).items()}
            ref["sequences"].append({"id": f"s{i}", "tokens": tokens[0].tolist()})
            if not i:
                speaks.generation_config.eos_token_id = None
                with torch.no_grad():
                    # With a cache, minimax takes positions from layer 0, which has none if it is linear, and zamba2
                    # has no limit of the steps.
                    more = speaks.generate(tokens, do_sample=False, max_new_tokens=12,
                                          use_cache=config.model_type not in ("minimax", "zamba2"))
                ref["sequences"][0]["greedy"] = more[0, n:].tolist()
        as_published(name, place)
        if name.endswith("_window"):
            forget_layer_types(place)
        save_file(tensors, place / "ref.safetensors")
        (place / "ref.json").write_text(json.dumps(ref, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    make(sys.argv[1], sys.argv[2:])
