#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configs of models whose layers differ: lists, patterns, widths and limits that cannot be are refused by the name of
# their key; what transformers takes for absent or null is taken, too.
. "$(dirname "$0")/lib.sh"

echo '[5, 6, 7, 8, 9, 10, 11]' >tokens.jsonl
# One process changes all configs: a line of keys for each.
coproc editor { python -u -c '
import json, sys
for line in sys.stdin:
    path = "model/config.json"
    config = json.load(open(path))
    text = config.get("text_config", config)
    for key, value in json.loads(line).items():
        text.pop(key, None)
        if value != "-":
            text[key] = value
    with open(path, "w") as f:
        json.dump(config, f)
    print("done")'; }
with() { # folder, keys as JSON (null: null; "-": left out): the checkpoint with them
    local answer=
    rm -rf model
    cp -r "$SH_GOLDEN/checkpoints/modern/$1" model
    chmod -R u+w model
    printf '%s\n' "$2" >&"${editor[1]}"
    read -r answer <&"${editor[0]}"
    [ "$answer" = done ] || not_ok "the keys $2"
    rm -f one.db
    run trace -q --model model --tokens tokens.jsonl --db one.db
}
refuses() { # folder, keys, message
    with "$1" "$2"
    expect "$1 $2" 1 "" "config.json: $3"
}

attention="at least one layer of attention"
refuses lfm2 '{"layer_types": ["conv", "conv", "conv"]}' "key 'layer_types': .*$attention"
refuses lfm2 '{"layer_types": ["conv", "wavy", "full_attention"]}' "key 'layer_types.1': found \"wavy\""
refuses lfm2 '{"layer_types": "-", "full_attn_idxs": 5}' "key 'full_attn_idxs': found 5, expected a list"
refuses lfm2 '{"layer_types": "-", "full_attn_idxs": [3]}' "key 'full_attn_idxs.0': found 3"
refuses lfm2 '{"conv_L_cache": 17}' "key 'conv_L_cache': found 17"
refuses bamba '{"attn_layer_indices": "1"}' "key 'attn_layer_indices': found \"1\", expected a list"
refuses bamba '{"attn_layer_indices": null}' "key 'attn_layer_indices': .*$attention"
refuses bamba '{"mamba_n_groups": 3}' "key 'mamba_n_heads': found 4, expected a multiple of the number of groups"
refuses bamba '{"mamba_expand": 3}' "key 'mamba_n_heads': .*wide together"
refuses bamba '{"mamba_d_head": "wide"}' "key 'mamba_d_head': found \"wide\""
refuses bamba '{"time_step_limit": [0.5]}' "key 'time_step_limit': .*a list of two numbers"
refuses bamba '{"time_step_limit": [0.5, 0.2]}' "key 'time_step_limit.1': found 0.2"
refuses bamba '{"time_step_limit": [0.0, 0.0]}' "key 'time_step_limit.1': found 0.0"
refuses granitemoehybrid '{"hidden_size": 4294977, "mamba_expand": 1000, "mamba_n_heads": 1, "mamba_d_head": "auto"}' \
    "key 'mamba_n_heads': .*at most 10"
refuses granitemoehybrid '{"hidden_size": 500000, "mamba_d_state": 100000, "mamba_n_groups": 1, "mamba_d_head": "auto"}' \
    "key 'mamba_n_heads': .*states of at most 2\^30"
refuses granitemoehybrid '{"position_embedding_type": "waves"}' "key 'position_embedding_type': found \"waves\""
refuses falcon_h1 '{"key_multiplier": 0}' "key 'key_multiplier': found 0, expected a number from 1e-6 to 1e6"
refuses falcon_h1 '{"attention_in_multiplier": -1.0}' "key 'attention_in_multiplier': found -1.0"
refuses falcon_h1 '{"lm_head_multiplier": 0.0}' "key 'lm_head_multiplier': found 0.0, expected a number from 1e-6"
refuses falcon_h1 '{"mlp_multipliers": [1.0]}' "key 'mlp_multipliers': .*a list of 2 numbers from 1e-6 to 1e6"
refuses falcon_h1 '{"ssm_multipliers": [1.0, 1.0, 0.0, 1.0, 1.0]}' "key 'ssm_multipliers': .*a list of 5 numbers above 0"
refuses falcon_h1 '{"mlp_multipliers": [1e-50, 1.0]}' "key 'mlp_multipliers': .*a list of 2 numbers from 1e-6"
refuses falcon_h1 '{"ssm_in_multiplier": 1e7}' "key 'ssm_in_multiplier': found 10000000"
refuses falcon_h1 '{"mamba_d_ssm": 25}' "key 'mamba_n_heads': .*heads that are mamba_d_ssm wide together"
refuses falcon_h1 '{"mamba_d_ssm": "-"}' "key 'mamba_n_heads': .*heads that are mamba_d_ssm wide together"
refuses falcon_h1 '{"hidden_act": "gelu"}' "key 'hidden_act': found \"gelu\", expected \"silu\""
refuses olmo_hybrid '{"linear_num_key_heads": 3}' "key 'linear_num_value_heads': found 4, expected a multiple of"
refuses olmo_hybrid '{"linear_key_head_dim": null, "hidden_size": 2048}' "key 'linear_key_head_dim': .*1 to 256"
refuses olmo_hybrid '{"layer_types": ["linear_attention", "linear_attention", "linear_attention", "linear_attention"]}' \
    "key 'layer_types': .*$attention"
refuses olmo_hybrid_rope '{"partial_rotary_factor": 0.5}' "key 'partial_rotary_factor': found 0.5, expected 1"
lists='"layer_types": "-", "linear_attn_config"'
refuses kimi_linear "{$lists: {\"full_attn_layers\": [1, 3], \"kda_layers\": [2]}}" \
    "key 'linear_attn_config.kda_layers': .*all layers that full_attn_layers does not name"
refuses kimi_linear "{$lists: {\"full_attn_layers\": [1, 3], \"kda_layers\": [2, 3, 4]}}" \
    "key 'linear_attn_config.kda_layers.1': found 3, expected the number of a layer, from 1 on, in one list only"
refuses kimi_linear "{$lists: {\"full_attn_layers\": [0], \"kda_layers\": [2]}}" "key '.*full_attn_layers.0': found 0"
refuses kimi_linear "{$lists: {\"num_heads\": 3, \"head_dim\": 6}}" "key 'layer_types': .*$attention"
refuses kimi_linear '{"linear_attn_config": {"gate_lower_bound": -5.0}}' "key '.*gate_lower_bound': found -5.0"
refuses kimi_linear '{"mla_use_nope": false}' "key 'mla_use_nope': found false, expected true"
refuses bailing_hybrid '{"kda_lower_bound": 0}' "key 'kda_lower_bound': found 0, expected a number from -1000 to 0"
refuses bailing_hybrid '{"expert_swiglu_limit_list": [0, 0, 0, 4.0]}' "key 'expert_swiglu_limit_list.3': found 4.0"
refuses bailing_hybrid '{"architectures": ["BailingMoeV2_5ForCausalLM"]}' "key 'architectures': .*BailingMoeV3"
refuses bailing_hybrid_unbounded '{"partial_rotary_factor": 0.5}' "key 'partial_rotary_factor': .*rotation is scaled"
refuses axk2 '{"gated_norm_rank": 0}' "key 'gated_norm_rank': found 0"
refuses axk2 '{"q_lora_rank": null}' "key 'q_lora_rank': found nothing, expected a whole number"
refuses mistral_large4 '{"kv_source_layers": [0, 0]}' "key 'kv_source_layers.1': found 0, expected 1: layers that share"
refuses mistral_large4 '{"kv_source_layers": [0]}' "key 'kv_source_layers': .*a list with a number for each layer"
refuses mistral_large4 '{"no_rope_layers": [1]}' "key 'no_rope_layers.1': .*0 or 1 for each layer"
refuses mistral_large4 '{"no_rope_layers": [1, 2]}' "key 'no_rope_layers.1': found 2"
refuses mistral_large4 '{"no_rope_layers": 4}' "key 'no_rope_layers': found 4, expected a list"
refuses mistral_large4 '{"no_rope_layers": null, "no_rope_layer_interval": 0}' "key 'no_rope_layer_interval': found 0"
refuses mistral_large4 '{"indexer_types": ["shared", "full"]}' "key 'indexer_types.0': found \"shared\", expected an index in"
refuses mistral_large4 '{"indexer_types": null, "index_topk_pattern": "SF"}' "key 'index_topk_pattern': .*an index in the first"
refuses mistral_large4 '{"indexer_types": "-", "index_topk_freq": 2, "index_skip_topk_offset": 0}' \
    "key 'index_skip_topk_offset': found 0, expected an index in the first layer"
refuses mistral_large4 '{"layer_types": ["indexed_attention", "full_attention"]}' "key 'layer_types.1': found \"full"
refuses mistral_large4 '{"layer_types": []}' "key 'layer_types': .*a list with a word for each layer"
refuses mistral_large4 '{"indexer_types": "full"}' "key 'indexer_types': found \"full\", expected a list with a word"
refuses mistral_large4 '{"q_lora_rank": 8}' "key 'q_lora_rank': found 8, expected null"
refuses mistral_large4 '{"final_logit_softcapping": null}' "key 'final_logit_softcapping': .*a number greater than 0"
refuses mistral_large4 '{"final_logit_softcapping": 0}' "key 'final_logit_softcapping': found 0, expected a number greater"
refuses mistral_large4 '{"qk_rope_head_dim": 514}' "key 'qk_rope_head_dim': found 514, expected at most 512"
rope='"rope_parameters": {"rope_theta": 500.0, "rope_type"'
refuses mistral_large4 "{$rope: \"linear\", \"factor\": 2.0, \"mscale_all_dim\": 1.0}}" \
    "key 'rope_parameters.mscale_all_dim': found 1.0, expected none, unless rope_type is \"yarn\""
refuses mistral_large4 "{$rope: \"default\", \"partial_rotary_factor\": 0.5}}" \
    "key 'rope_parameters.partial_rotary_factor': found 0.5, expected 1"
refuses flint '{"sliding_window": null}' "key 'sliding_window': found nothing, expected a whole number"
refuses flint '{"mlp_only_layers": [4]}' "key 'mlp_only_layers.0': found 4"
refuses flint '{"shared_expert_intermediate_size": 0}' "key 'shared_expert_intermediate_size': found 0"
refuses flint '{"layer_types": ["full_attention"]}' "key 'layer_types.1'"
kind='"rope_parameters": {"sliding_attention": {"rope_type": "default"'
refuses cohere_compass "{$kind}, \"full_attention\": null}}" "key 'rope_parameters.sliding_attention.rope_theta'"
refuses cohere_compass "{$kind, \"rope_theta\": 50.0}}}" "key 'rope_parameters.full_attention': .*or null for none"
refuses cohere_compass '{"sliding_window": null}' "key 'sliding_window': found nothing, expected a whole number"
refuses cohere_compass '{"rope_parameters": {"rope_type": "default", "rope_theta": 50.0}}' \
    "key 'rope_parameters.sliding_attention': .*or null for none"
refuses modernbert_decoder '{"sliding_window": -1}' "key 'sliding_window': found -1"
refuses modernbert_decoder '{"sliding_window": "-", "local_attention": null}' "key 'local_attention': found nothing"
refuses modernbert_decoder '{"sliding_window": "-", "local_attention": 1}' "key 'local_attention': found 1"
refuses modernbert_decoder '{"classifier_activation": "mish"}' "key 'classifier_activation': found \"mish\""
refuses modernbert_decoder '{"rope_scaling": {"rope_type": "linear", "factor": 2.0}}' "key 'rope_scaling': .*expected none"
pictures="key 'vocabulary_map': .*expected an object that gives successive whole numbers below 53 to IMGIMG"
refuses chameleon '{"vocabulary_map": "-"}' "key 'vocabulary_map' is missing"
refuses chameleon '{"vocabulary_map": [4, 5]}' "$pictures"
refuses chameleon '{"vocabulary_map": {"IMGIMGAZ": 4, "x": 5, "IMGIMGBZ": 6}}' "$pictures"
refuses chameleon '{"vocabulary_map": {"IMGIMGAZ": 52, "IMGIMGBZ": 53}}' "$pictures"
refuses chameleon '{"vocabulary_map": {"IMGIMGAZ": -1, "IMGIMGBZ": 0}}' "$pictures"
refuses chameleon '{"vocabulary_map": {"IMGIMGAZ": "4"}}' "$pictures"
refuses chameleon '{"swin_norm": 1}' "key 'swin_norm': found 1, expected true or false"
refuses chameleon '{"head_dim": 4}' "key 'head_dim': found 4, expected null"
with chameleon '{"vocabulary_map": {"IMGIMGAZ": 9}}'
holds "chameleon: parts of pictures can be read" test "$status" = 0
refuse "chameleon: … but not predicted" 1 "element 4: found token 9, expected none from 9 to 9: the model never predicts" \
    eval --model model --tokens tokens.jsonl --policy h2o --budget 5
refuses kosmos2 '{"pad_token_id": -1}' "key 'pad_token_id': found -1"
refuses kosmos2 '{"pad_token_id": 1001}' "key 'pad_token_id': found 1001, expected a whole number from 0 to 1000"
refuses kosmos2 '{"add_cross_attention": true}' "key 'add_cross_attention': found true, expected false"
refuses kosmos2 '{"embed_dim": 18, "attention_heads": 4}' "key 'embed_dim': found 18, expected a multiple of 'attention_heads'"
refuses gpt_neox_japanese '{"intermediate_multiple_size": 0}' "key 'intermediate_multiple_size': found 0"
refuses gpt_neox_japanese '{"hidden_size": 100000, "intermediate_multiple_size": 5000}' \
    "key 'intermediate_multiple_size': found 5000, expected at most 10.8 / hidden_size"
refuses gpt_neox_japanese '{"rope_scaling": {"type": "linear", "factor": 2.0}}' "key 'rope_scaling': .*expected null"
refuses cosmos3_edge '{"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 50.0}}' \
    "key 'rope_parameters.rope_type': found \"linear\", expected \"default\""
refuses dory '{"recurrent_kv_cache_mode": "last_loop"}' "key 'recurrent_kv_cache_mode': found \"last_loop\", expected"
run generate --model "$SH_GOLDEN/checkpoints/modern/dory" --tokens tokens.jsonl --policy h2o --budget 5 \
    --positions cache --max-tokens 2
expect "dory: positions in the text alone" 2 "" "--positions cache: .*learned factors after their rotation"
run capacity --model "$SH_GOLDEN/checkpoints/modern/dory" --gpu H100-SXM --length 64 --pp 4 --json
holds "dory: each stage of a pipeline has the weights of its layers" python -c 'import json
found = [stage["weights_bytes_per_gpu"] for stage in json.load(open("log/out"))["results"][0]["stages"]]
layer = 4 * (3 * 24 * 16 + 2 * 12 * 16 + 3 * 24 * 16 + 2 * 24 + 2 * 24 + 2 * 16)
assert found == [2 * layer + 4 * (48 * 16 + 48), 2 * layer, 2 * layer, 2 * layer + 4 * 48 * 16], (found, layer)'
refuse "dory: no adapters" 2 "--lora: .*layers that run several times" capacity --lora 4 \
    --model "$SH_GOLDEN/checkpoints/modern/dory" --gpu H100-SXM --length 64
refuse "windows with places in the cache hold what is protected" 2 "7 tokens \(layer 0, head 0\), but 10 are protected" \
    generate --model "$SH_GOLDEN/checkpoints/modern/cohere_compass" --tokens tokens.jsonl --policy h2o:recent=10 \
    --budget 12 --positions cache --max-tokens 12
refuses dory '{"n_recurrent_loops": 0}' "key 'n_recurrent_loops': found 0"
refuses dory '{"n_recurrent_loops": 9999}' "key 'n_recurrent_loops': found 9999, expected at most 10000 layers"
refuses dory '{"n_input_layers": 0, "n_recurrent_layers": 6}' "found 4 layers, of which n_input_layers are 0, n_rec"
refuses dory '{"n_recurrent_layers": 0, "n_input_layers": 6}' "found 4 layers, of which n_input_layers are 3, n_rec.*0"
refuses dory '{"sliding_window": null}' "key 'sliding_window': found nothing, expected a whole number"
refuses dory '{"ngpt_alpha_init": 0}' "key 'ngpt_alpha_init': found 0, expected a number above 0"
refuses dory '{"initializer_range": 0}' "key 'initializer_range': found 0, expected a number above 0"
refuses dory '{"rope_parameters": {"full_attention": {"rope_type": "default"}}}' \
    "key 'rope_parameters.full_attention.rope_theta'"
refuses dory '{"layer_types": ["full_attention", "mlp", "wavy", "mlp"]}' "key 'layer_types.2': found \"wavy\""
refuses lara_mini '{"sliding_window": null}' "key 'sliding_window': found nothing, expected a whole number"
refuses lara_mini '{"hidden_act": "gelu"}' "key 'hidden_act': found \"gelu\", expected \"silu\""
refuses lara_mini '{"partial_rotary_factor": 0.34}' "key 'partial_rotary_factor': found 0.34, expected 1"
refuses lara_mini '{"layer_types": ["linear_attention", "wavy", "full_attention", "full_attention"]}' \
    "key 'layer_types.1': found \"wavy\""
refuses axk2 '{"moe_layer_freq": 2}' "key 'moe_layer_freq': found 2, expected 1"
refuses longcat_flash '{"num_hidden_layers": 5}' "key 'num_hidden_layers': found 5, expected twice num_layers"
refuses longcat_flash '{"num_layers": "-", "num_hidden_layers": 3}' "key 'num_hidden_layers': found 3, expected an even"
refuses longcat_flash '{"num_layers": 5001}' "key 'num_layers': found 5001, expected a whole number from 1 to 5000"
refuses longcat_flash '{"head_dim": "-"}' "key 'head_dim': .*the same as qk_rope_head_dim"
refuses longcat_flash '{"qk_head_dim": 12}' "key 'qk_head_dim': found 12, expected qk_nope_head_dim . qk_rope_head_dim"
refuses longcat_flash '{"zero_expert_num": -1}' "key 'zero_expert_num': found -1"
refuses longcat_flash '{"zero_expert_type": "drop"}' "key 'zero_expert_type': found \"drop\", expected \"identity\""
refuses longcat_flash '{"moe_topk": 7}' "found 4 experts and 2 that compute nothing, of which each token uses 7"
refuses minimax '{"layer_types": ["linear_attention", "linear_attention", "linear_attention", "linear_attention"]}' \
    "key 'layer_types': .*$attention"
refuses minimax '{"layer_types": ["linear_attention", "wavy", "linear_attention", "full_attention"]}' \
    "key 'layer_types.1': found \"wavy\""
refuses minimax '{"mlp_beta_factor": 0}' "key 'mlp_beta_factor': found 0, expected a number above 0"
refuses minimax '{"linear_attn_alpha_factor": -1}' "key 'linear_attn_alpha_factor': found -1"
refuses minimax '{"head_dim": 100000}' "key 'num_attention_heads': .*states of at most"
refuses minimax '{"num_attention_heads": 32, "num_key_value_heads": 2}' "key 'num_attention_heads': .*no more heads than"
refuses zamba2 '{"layers_block_type": ["mamba", "mamba", "mamba", "mamba"]}' "key 'layers_block_type': .*$attention"
refuses zamba2 '{"layers_block_type": ["mamba", "mamba", "wavy", "hybrid"]}' "key 'layers_block_type.2': found \"wavy\""
refuses zamba2 '{"layers_block_type": "-"}' "key 'layers_block_type': .*unless there are 54 layers"
refuses zamba2 '{"n_mamba_heads": 3}' "key 'n_mamba_heads': found 3, expected heads that are"
refuses zamba2 '{"num_attention_heads": 64}' "key 'num_attention_heads': found 64, expected no more heads than"
refuses zamba2 '{"num_key_value_heads": 2}' "key 'use_shared_attention_adapter': found true, expected false, unless"
refuses zamba2 '{"use_long_context": true}' "key 'use_long_context': found true, expected false"
refuses step3p7 '{"swiglu_limits": [0, 0.1, 0]}' "key 'swiglu_limits.1': found 0.1.*, expected 0, or a number of at least"
refuses step3p7 '{"swiglu_limits": [2.0, null, 3.0]}' "key 'swiglu_limits.2': found 3.0, expected 0, or .*the same"
refuses step3p7 '{"swiglu_limits_shared": [1, 1]}' "key 'swiglu_limits_shared': .*a list with a number or null"
refuses step3p7 '{"swiglu_limits": [-1, 0, 0]}' "key 'swiglu_limits.0': found -1"
refuses step3p7 '{"query_pre_attn_scalar": 0}' "key 'query_pre_attn_scalar': found 0, expected a number above 0"
refuses step3p7 '{"per_layer_config": {"1": {"num_attention_heads": 5}}}' \
    "key 'per_layer_config': layer 1: found 5 query heads and 2 KV heads, expected a multiple"
refuses step3p7 '{"per_layer_config": {"1": {"head_dim": 6}}}' "key 'per_layer_config.1': .*num_attention_heads alone"
refuses step3p7 '{"per_layer_config": "-", "num_sliding_attention_heads": 5}' \
    "key 'num_sliding_attention_heads': layer 0: found 5 query heads and 2 KV heads, expected a multiple"
refuses step3p7 '{"sliding_window": null}' "key 'sliding_window': found nothing, expected a number of tokens"
refuses step3p7 '{"rope_parameters": {"rope_theta": 1e6}}' "key 'rope_parameters': .*full_attention and sliding"
refuses step3p7_published '{"moe_layers_enum": "1,x"}' "key 'moe_layers_enum': found \"1,x\", expected numbers of layers"
refuses step3p7_published '{"rope_theta": [5.0, 7.0, 7.0, 8.0]}' "key 'rope_theta.3': found 8.0, expected one number for"
refuses step3p7_published '{"rope_theta": [5.0, 7.0]}' "key 'rope_theta.2': found nothing, expected one number for"
refuses step3p7_published '{"rope_theta": 1}' "key 'rope_theta': found 1, expected numbers above 1"
refuses step3p7_published '{"yarn_only_types": ["sliding_attention"]}' "key 'yarn_only_types': .*full_attention"
refuses step3p7_published '{"rope_scaling": {"type": "linear", "factor": 2}}' "key 'rope_scaling': .*with rope_type"
refuses step3p7_published '{"partial_rotary_factors": [0.4, 1, 1, 1]}' "key 'partial_rotary_factors': .*even number"
refuses hy_v4 '{"hc_mult": 1}' "key 'hc_mult': found 1, expected at least 2 streams"
refuses hy_v4 '{"hc_mult": 65}' "key 'hc_mult': found 65, expected a whole number from 1 to 64"
with hy_v4 '{"hc_mult": 3}'
expect "hy_v4 hc_mult 3" 1 "" "hc_fn': found shape .8, 64., expected .6, 48. .weights of hyper-connections, streams x model width"
refuses hy_v4 '{"hc_magnitude": -1.0}' "key 'hc_magnitude': found -1.0"
refuses hy_v4 '{"swiglu_limit": 0}' "key 'swiglu_limit': found 0, expected a number of at least 0.5"
refuses hy_v4 '{"q_lora_rank": null}' "key 'q_lora_rank': found nothing, expected a whole number"
refuses hy_v4 '{"rope_interleave": true}' "key 'rope_interleave': found true, expected false"
refuses hy_v4_vl '{"rope_interleave": false}' "key 'rope_interleave': found false, expected true"
refuses hy_v4_vl '{"tie_word_embeddings": true}' "key 'tie_word_embeddings': found true, expected false"
refuses glm5_next '{"hc_mult": 1}' "key 'hc_mult': found 1, expected at least 2 streams"
refuses glm5_next '{"hc_sinkhorn_iters": 0}' "key 'hc_sinkhorn_iters': found 0, expected a whole number from 1"
refuses glm5_next '{"index_kpool": 5}' "key 'index_kpool': found 5, expected a divisor of index_topk"
refuses glm5_next '{"index_kpool_always_select_tail": false}' "key '.*select_tail': found false, expected true"
refuses glm5_next '{"qk_rope_head_dim": 4}' "key 'qk_rope_head_dim': found 4, expected 0"
refuses glm5_next '{"q_lora_rank": null}' "key 'q_lora_rank': found nothing, expected a whole number"
refuses glm5_next '{"linear_lower_bound": 1.0}' "key 'linear_lower_bound': found 1.0"
refuses glm5_next '{"swiglu_limit": 0.1}' "key 'swiglu_limit': found 0.1, expected a number of at least 0.5"
refuses glm5_next '{"layer_types": ["linear_attention", "linear_attention", "linear_attention", "linear_attention"]}' \
    "key 'layer_types': .*$attention"
refuses qwen4_exp '{"hc_count": 1}' "key 'hc_count': found 1, expected at least 2 streams"
refuses qwen4_exp '{"hc_lowrank": 0}' "key 'hc_lowrank': found 0, expected a whole number from 1"
refuses qwen4_exp '{"indexer_compress_ratio": 5}' "key 'indexer_compress_ratio': found 5, expected a divisor of indexer_budget"
refuses qwen4_exp '{"indexer_n_heads": null}' "key 'indexer_n_heads': found nothing, expected a whole number from 1 on, since"
refuses qwen4_exp '{"indexer_kv_heads": 2}' "key 'indexer_kv_heads': found 2, expected 1"
refuses qwen4_exp '{"indexer_head_dim": 6}' "key 'indexer_head_dim': found 6, expected at least the rotated part of head_dim"
refuses qwen4_exp '{"layer_types": ["linear_attention", "linear_attention", "linear_attention", "linear_attention"]}' \
    "key 'layer_types': .*$attention"
refuses qwen4_exp '{"ple_layer_ids": [4]}' "key 'ple_layer_ids.0': found 4, expected the number of a layer of linear_attention"
refuses qwen4_exp '{"ple_layer_ids": [0]}' "key 'ple_layer_ids.0': found 0, expected a whole number from 1 to 4"
refuses qwen4_exp '{"ple_layer_ids": 3}' "key 'ple_layer_ids': found 3, expected a list"
refuses qwen4_exp '{"ple_embed_dim": 14}' "key 'ple_embed_dim': found 14, expected a multiple of"
refuses qwen4_exp '{"eos_token_id": null}' "key 'eos_token_id': found nothing, expected the number of a token"
refuses qwen4_exp '{"eos_token_id": [48, 1]}' "key 'eos_token_id.0': found 48, expected a whole number from 0 to 47"
refuses qwen4_exp '{"ngram_size": 1}' "key 'ngram_size': found 1, expected a whole number from 2 to 16"
refuses qwen4_exp '{"heads_per_ngram": 129}' "key 'heads_per_ngram': found 129, expected at most 256 heads"
refuses qwen4_exp '{"ple_conv_kernel_size": 7}' "key 'ple_conv_kernel_size': found 7, expected at most 16 tokens from the first"
refuses qwen4_exp '{"ngram_vocab_size_base": 100000000, "heads_per_ngram": 12, "ple_embed_dim": 24}' \
    "key 'ngram_vocab_size_base': found 100000000, expected tables of fewer than 2.31 rows"
with qwen4_exp '{"ngram_vocab_size_base": 24}'
expect "qwen4_exp: a table of other primes" 1 "" "shard_0.weight': found 120 rows in all parts of the table, expected 144"
with qwen4_exp '{"split_ngram_parts": 2}'
expect "qwen4_exp: two of three parts of a table" 1 "" "shard_0.weight': found 80 rows in all parts of the table, expected 120"
with qwen4_exp '{"seed": 4}'
expect "qwen4_exp: other multipliers" 1 "" "layer_multipliers': element 0: found [0-9]*, expected [0-9]*, which follows from"
refuses qwen4_exp '{"output_gate_type": "gelu"}' "key 'output_gate_type': found \"gelu\", expected one of silu sigmoid"
refuses minimax_m3 '{"layer_types": ["full_attention", "sliding_attention", "full_attention"]}' \
    "key 'layer_types.1': found \"sliding_attention\", expected one of full_attention minimax_m3_sparse"
refuses minimax_m3 '{"layer_types": "-", "sparse_attention_config": {"sparse_attention_freq": [0, 1]}}' \
    "key 'sparse_attention_config.sparse_attention_freq.2': found nothing, expected 0 or 1 for each layer"
refuses minimax_m3 '{"sparse_attention_config": {"sparse_block_size": 0}}' "key 'sparse_attention_config.sparse_block_size'"
refuses minimax_m3 '{"mlp_layer_types": ["dense"]}' "key 'mlp_layer_types.1': "
refuses minimax_m3 '{"first_k_dense_replace": 2}' "key 'first_k_dense_replace': found 2, expected what mlp_layer_types"
refuses minimax_m3 '{"rotary_dim": 6}' "key 'rotary_dim': found 6, expected partial_rotary_factor times head_dim"
refuses minimax_m3 '{"n_shared_experts": 2}' "key 'n_shared_experts': found 2, expected 1"
refuses minimax_m3 '{"moe_intermediate_size": 24}' "key 'moe_intermediate_size': found 24, expected 12"
refuses minimax_m3 '{"hidden_act": "gelu"}' "key 'hidden_act': found \"gelu\", expected one of silu swigluoai"
with minimax_m3 '{"index_block_size": 2, "index_topk_blocks": 3}'
expect "minimax_m3: a text longer than what the index chooses" 1 "" "line 1: found 7 tokens, expected at most 6"
refuses doge '{"is_moe": true}' "key 'is_moe': found true, expected false"
refuses doge '{"keep_window_size": 0}' "key 'keep_window_size': found 0, expected a whole number from 1"
with doge '{"keep_window_size": 6}'
expect "doge: a text longer than keep_window_size" 1 "" "line 1: found 7 tokens, expected at most 6"
refuses laguna '{"num_attention_heads_per_layer": [4, 3, 4]}' "key '.*': layer 1: found 3 query heads and 2 KV heads"
refuses laguna '{"num_attention_heads_per_layer": [4, 4]}' "key 'num_attention_heads_per_layer.2': found nothing, expected"
refuses laguna '{"num_attention_heads_per_layer": [4, 0, 4]}' "key 'num_attention_heads_per_layer': .*numbers from 1 on"
refuses openelm '{"num_kv_heads": [2, 3]}' "key 'num_kv_heads': .*a number for each layer"
refuses openelm '{"num_query_heads": [4, 5, 8]}' "key 'num_query_heads': layer 1: found 5 query heads and 3 KV heads"
refuses openelm '{"ffn_with_glu": false}' "key 'ffn_with_glu': found false, expected true"
refuses openelm '{"ffn_multipliers": [0.5, 0.75, 1.0, 2.0]}' "key 'ffn_multipliers': .*two numbers or one for each layer"
refuses openelm_unlisted '{"qkv_multipliers": [0.5, -1]}' "key 'qkv_multipliers.1': found -1"
refuses openelm_unlisted '{"qkv_multipliers": 1e4, "model_dim": 1000000}' "key 'qkv_multipliers': .*1 to 10.5 heads"
refuses deci '{"block_configs": []}' "key 'intermediate_size' is missing"
one='{"attention": {"n_heads_in_group": 1}, "ffn": {"ffn_mult": 1}}'
for block in "window_length 8 attention" "num_sink_tokens 4 attention" "n_heads_in_group 3 attention" "moe 1 ffn" "ffn_mult 0 ffn" \
    "ffn_mult 100000 ffn" "gated false ffn"; do
    read -r key value part <<<"$block"
    other=$(sed "s/\"$part\": {/&\"$key\": $value, /; s/\(\"$key\": $value\), \"$key\": 1/\1/" <<<"$one")
    refuses deci "{\"block_configs\": [$one, $one, $one, $one, $other]}" "key 'block_configs.4.$part.$key': found $value"
done
refuses deci '{"block_configs": [{}]}' "key 'block_configs': .*an object for each layer"
refuses deci_7b '{"num_key_value_heads_per_layer": [4, 3, 2]}' "key '.*': layer 1: found 4 query heads and 3 KV heads"
refuses deci_7b '{"num_key_value_heads_per_layer": [4, 0, 2]}' "key 'num_key_value_heads_per_layer': .*numbers from 1 on"
refuses jamba '{"attn_layer_offset": 2}' "key 'attn_layer_offset': found 2, expected less than the period"
refuses jamba '{"mamba_dt_rank": "many"}' "key 'mamba_dt_rank': found \"many\""
refuses nemotron_h '{"layers_block_type": "-", "hybrid_override_pattern": "M-*", "num_hidden_layers": 4}' \
    "key 'hybrid_override_pattern': found \"M-\*\""
refuses nemotron_h '{"num_hidden_layers": 3}' "key 'layers_block_type': .*one string for each layer"
refuses nemotron_h_moe '{"mlp_bias": true}' "key 'mlp_bias': found true"
refuses nemotron_h_latent '{"moe_latent_size": 17}' "key 'moe_latent_size': found 17, expected at most hidden_size"
with nemotron_h_latent '{"moe_latent_size": null}'
expect "nemotron_h_latent without its latent" 1 "" "found shape .12, 8., expected .12, 16"
refuses exaone_moe '{"mlp_layer_types": 5}' "key 'mlp_layer_types': found 5"
refuses cwm '{"rope_parameters": null}' "key 'rope_parameters' is missing"
refuses cwm '{"hidden_act": "xielu"}' "key 'hidden_act': found \"xielu\", expected an activation without parameters"
refuses recurrent_gemma '{"block_types": ["recurrent"]}' "key 'block_types': .*$attention"
refuses recurrent_gemma '{"block_types": ["recurrent", "attention", "wavy"]}' "key 'block_types.2': found \"wavy\""
refuses recurrent_gemma '{"block_types": []}' "key 'block_types': .*a list of recurrent and attention"
refuses recurrent_gemma '{"lru_width": 18}' "key 'lru_width': found 18, expected .*a multiple of num_attention_heads"
refuses recurrent_gemma '{"conv1d_width": 17}' "key 'conv1d_width': found 17"
refuses recurrent_gemma '{"intermediate_size": 1}' "key 'intermediate_size': found 1, expected at least 2"
refuses recurrent_gemma '{"logits_soft_cap": null}' "key 'logits_soft_cap': found nothing, expected a number above 0"
refuses recurrent_gemma '{"attention_window_size": 0}' "key 'attention_window_size': found 0"
refuses recurrent_gemma '{"rope_scaling": {"rope_type": "linear", "factor": 2.0}}' "found scaled rotary positions"
with recurrent_gemma_wide '{"lru_width": 24}'
expect "recurrent_gemma: another width" 1 "" "linear_y.weight.: found shape .20, 16., expected .24, 16"
refuses openai_gpt '{"afn": "gelu_new"}' "key 'afn': found \"gelu_new\", expected one of gelu relu silu swish"
refuses ctrl '{"n_embd": 15}' "key 'n_embd': found 15, expected an even number"
refuses ctrl '{"n_positions": 100000000}' "key 'n_positions': found 100000000, expected at most 10.9 / n_embd"
refuses molmo2 '{"qk_norm_type": "wavy"}' "key 'qk_norm_type': found \"wavy\""
refuses molmo2 '{"additional_vocab_size": 0}' "key 'additional_vocab_size': found 0"
refuses molmo2_olmo '{"rope_scaling_layers": [0, -1]}' "key 'rope_scaling_layers.1': found -1"
refuses molmo2_olmo '{"rope_scaling_layers": 1}' "key 'rope_scaling_layers': found 1, expected a list of layers"
with molmo2 '{"additional_vocab_size": 6}'
expect "molmo2: rows of the embedding" 1 "" "embedding.: found 48 and 5 rows, expected 54 together"
with molmo2_olmo '{"additional_vocab_size": 6}'
expect "molmo2_olmo: rows of the embedding" 1 "" "embed_tokens.weight.: found shape .55, 16., expected .54, 16"

perplexity() {
    "$SHEARS" eval -q --json --model model --tokens tokens.jsonl --policy window --budget 4 |
        python -c 'import json, sys; print([r["ppl"] for r in json.load(sys.stdin)["results"]])'
}
takes() { # folder, keys: as before
    local before after
    with "$1" '{}'
    before=$(perplexity)
    with "$1" "$2"
    after=$(perplexity)
    if [ "$status" = 0 ] && [ -n "$before" ] && [ "$before" = "$after" ]; then ok "$1 $2: the same"; else not_ok "$1 $2: the same"; fi
}
takes bamba '{"time_step_limit": null}'
takes falcon_h1_plain '{"mlp_multipliers": null, "ssm_multipliers": null, "mamba_d_head": "auto", "head_dim": 4}'
takes falcon_h1_plain '{"mamba_d_ssm": 32}'
takes nemotron_h '{"layers_block_type": "-", "hybrid_override_pattern": "M-*-", "num_hidden_layers": 4}'
takes nemotron_h '{"tie_word_embeddings": true}'
takes olmo_hybrid '{"layer_types": "-", "linear_num_key_heads": null, "linear_key_head_dim": null}'
takes olmo_hybrid '{"rope_parameters": null, "rope_theta": null}'
takes kimi_linear '{"layer_types": "-", "first_k_dense_replace": 1, "mlp_layer_types": "-", "head_dim": 72}'
takes bailing_hybrid '{"layer_types": "-", "rope_parameters": null, "rope_theta": "-", "partial_rotary_factor": 0.5}'
takes bailing_hybrid '{"expert_swiglu_limit_list": [0, 0, 0, 0], "share_expert_swiglu_limit_list": null}'
takes minimax '{"layer_types": "-", "block_size": 0}'
takes zamba2 '{"layers_block_type": "-", "layer_types": ["mamba", "hybrid", "hybrid", "hybrid"]}'
takes longcat_flash '{"num_layers": "-", "num_hidden_layers": 4, "num_key_value_heads": null}'
takes step3p7 '{"num_sliding_attention_heads": null, "mlp_layer_types": "-", "moe_layers_enum": [2, 1, 7]}'
takes step3p7_published '{"swiglu_limits": [null, 0, 0, 0.3], "moe_layers_enum": " 3 ,1,2", "yarn_only_types": "-"}'
takes minimax_m3 '{"layer_types": "-", "mlp_layer_types": null, "moe_layer_freq": [0, 1, 1], "hidden_act": "swigluoai"}'
takes minimax_m3 '{"layer_types": null, "sparse_attention_config": {"sparse_attention_freq": [0, 1, 1]}, "rotary_dim": 4}'
takes doge '{"keep_window_size": 7, "num_experts": 16384, "is_moe": null}'
takes lfm2 '{"layer_types": "-", "full_attn_idxs": [0]}'
takes molmo2 '{"qkv_bias": "-", "attention_bias": true, "layer_norm_eps": "-", "mlp_bias": true, "rope_scaling_layers": []}'
takes ctrl '{"n_positions": 80000000}'
takes recurrent_gemma '{"lru_width": null, "block_types": "-", "head_dim": "-", "mlp_bias": false}'
takes recurrent_gemma '{"attention_window_size": "-", "sliding_window": 10, "max_position_embeddings": null}'
finish
