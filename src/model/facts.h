/* SPDX-License-Identifier: Apache-2.0 */
/* The facts that determine a model's memory, from config.json (config.h) or from a row of a catalogue
 * (planner/catalog/models.txt explains the keys). */
#ifndef SH_MODEL_FACTS_H
#define SH_MODEL_FACTS_H

enum sh_norm_kind_kept { SH_KEPT_RMS, SH_KEPT_LAYER, SH_KEPT_SCALE };   /* 1, 2, 1 vectors a norm */

enum { SH_FACTS_PATTERN = 1024, SH_FACTS_NAME = 96 };

/* What a layer has of its own; 0: as others. products: matrices [hidden, hidden] in the place of attention (1), of the
 * feed-forward block (2). */
struct sh_layer_facts { int heads, kv_heads, ffn, products; };

struct sh_kv_facts {
    char name[SH_FACTS_NAME], family[SH_FACTS_NAME], pattern[SH_FACTS_PATTERN];
    char feeds[SH_FACTS_PATTERN];       /* -: plain, E: experts, as pattern; empty: dense_first and so on say it */
    char published[48], published_experts[48], published_attention[48];   /* the last two: "" as the first */
    int layers, hidden, heads, kv_heads, head_dim, ffn, vocab, max_pos;
    int gated, tied, norm, norms, qkv_bias, o_bias, mlp_bias, head_bias, router_bias, sinks;
    int qk_norm, qk_norm_wide, query_gate, head_gate, embed_norm, post_norm, positions, embed_width, window;
    /* sinks: 2: of layers with a window alone. v_dim: of latent attention, or where it differs from head_dim. */
    int head_rows;                      /* of the output head; 0: vocab                           */
    int norm_more;                      /* numbers of a layer's further norms and activations     */
    int global_kv_heads, global_head_dim, keys_are_values, router_scale;
    int window_heads;                   /* query heads of layers with a window; 0: heads           */
    int n_own;                          /* layers, if configs say how they differ; 0: they do not  */
    struct sh_layer_facts own[SH_FACTS_PATTERN];
    int experts, used, expert_ffn, latent_ffn, shared_ffn, shared_gate, dense_first, moe_every, moe_offset;
    int latent, rope_dim, nope_dim, v_dim, q_latent, index_dim, index_heads, index_topk;
    int ssm, ssm_inner, ssm_heads, ssm_head_dim, ssm_state, ssm_groups, ssm_conv, ssm_rank, ssm_key_heads, ssm_key_dim;
    int ssm_bare, ssm_biases;           /* the convolution has no bias; numbers of such a layer's further biases */
    int ssm_unnormed;                   /* Mamba-2 without a norm of what it gives                */
    int ssm_own_decays;                 /* the delta rule with a decay for each number of a key   */
    /* The last so many layers borrow keys and values of layers before; d_ff of these if another. */
    int borrowed, late_ffn;
    int apart;                          /* ends_more has attention and feed-forward of layers with a state */
    /* Numbers of a layer's further matrices; of its further vectors; of what else is before and after the layers. */
    long long layer_more, vectors_more, ends_more;
    int no_vision;                      /* there is a vision tower with an unknown weight count   */
    long long vision, parameters;       /* parameters: the public count, 0: not known             */
};

#endif
