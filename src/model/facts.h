/* SPDX-License-Identifier: Apache-2.0 */
/* The facts that determine a model's memory, from config.json (config.h) or from a row of a catalogue
 * (planner/catalog/models.txt explains the keys). */
#ifndef SH_MODEL_FACTS_H
#define SH_MODEL_FACTS_H

enum sh_norm_kind_kept { SH_KEPT_RMS, SH_KEPT_LAYER, SH_KEPT_SCALE };   /* 1, 2, 1 vectors per norm */

enum { SH_FACTS_PATTERN = 1024, SH_FACTS_NAME = 96 };

/* The sizes of one layer; 0: as in other layers. products: in the place of which blocks (bits) the layer has a matrix
 * [hidden, hidden]. still: it has latent attention without a rotary key. state_more: how many numbers more its state
 * holds, on each rank. */
enum { SH_FACTS_ATTENTION = 1, SH_FACTS_FEED = 2 };
struct sh_layer_facts { int heads, kv_heads, ffn, products, still, state_more; };

/* Matrices of a layer; those before GATE belong to attention or to what is in its place. STATE_STEPS: what makes decays
 * or steps; STATE_STRENGTHS: … strengths. */
enum sh_matrix_kind {
    SH_MATRIX_Q, SH_MATRIX_K, SH_MATRIX_V, SH_MATRIX_O, SH_MATRIX_GATE_OF_VALUES, SH_MATRIX_Q_A, SH_MATRIX_Q_B,
    SH_MATRIX_KV_A, SH_MATRIX_KV_B, SH_MATRIX_INDEX, SH_MATRIX_INDEX_K, SH_MATRIX_STATE, SH_MATRIX_STATE_GATE,
    SH_MATRIX_STATE_STEPS, SH_MATRIX_STATE_STRENGTHS, SH_MATRIX_STATE_OUT, SH_MATRIX_GATE, SH_MATRIX_UP, SH_MATRIX_DOWN,
    SH_MATRIX_EXPERT_GATE, SH_MATRIX_EXPERT_UP, SH_MATRIX_EXPERT_DOWN, SH_MATRIX_SHARED_GATE, SH_MATRIX_SHARED_UP,
    SH_MATRIX_SHARED_DOWN, SH_MATRIX_EXPERT_IN, SH_MATRIX_EXPERT_OUT, SH_N_MATRIX_KIND
};
enum { SH_FACTS_FORMATS = 16 };

struct sh_kv_facts {
    char name[SH_FACTS_NAME], family[SH_FACTS_NAME], pattern[SH_FACTS_PATTERN];
    char feeds[SH_FACTS_PATTERN];       /* as pattern, -: plain, E: experts; empty: dense_first and so on say which */
    char published[48], published_experts[48], published_attention[48];   /* the last two: "" means as `published` */
    /* Instead, if n_format is not 0: formats by name, and the number (from 1; 0: not quantised, as `published`) of each
     * layer's matrices and of the output head. */
    int n_format, head_format;
    char formats[SH_FACTS_FORMATS][48];
    unsigned char format[SH_FACTS_PATTERN][SH_N_MATRIX_KIND];
    int layers, hidden, heads, kv_heads, head_dim, ffn, vocab, max_pos;
    int gated, tied, norm, norms, qkv_bias, o_bias, mlp_bias, head_bias, router_bias, sinks;
    int qk_norm, qk_norm_wide, query_gate, head_gate, embed_norm, post_norm, positions, embed_width, window;
    /* sinks 2: only layers with a window have sinks. v_dim: set for latent attention, or if it differs from
     * head_dim. */
    int head_rows;                      /* of the output head; 0: vocab                           */
    int norm_more;                      /* how many numbers a layer's further norms and activations have */
    int global_kv_heads, global_head_dim, keys_are_values, router_scale;
    int window_heads;                   /* query heads of layers with a window; 0: heads           */
    int n_own;                          /* entries of `own`: layers, if the config says how they differ; 0 */
    struct sh_layer_facts own[SH_FACTS_PATTERN];
    int experts, used, expert_ffn, latent_ffn, shared_ffn, shared_gate, dense_first, moe_every, moe_offset;
    int latent, rope_dim, nope_dim, v_dim, q_latent, index_dim, index_heads, index_topk;
    int index_pool;                     /* tokens that share a key of the index; 0: 1             */
    /* Layers P and Q: how many tokens one of their entries stands for. o_rank, o_groups: the latent of what attention
     * gives, for each group of heads; 0: none. cached_once: keys are values, too, and are cached once. */
    int pool, wide_pool, o_rank, o_groups, cached_once;
    int ssm, ssm_inner, ssm_heads, ssm_head_dim, ssm_state, ssm_groups, ssm_conv, ssm_rank, ssm_key_heads, ssm_key_dim;
    int ssm_bare, ssm_biases;           /* the convolution has no bias; numbers in the layer's further biases */
    int ssm_unnormed;                   /* Mamba-2 without a norm of its output                   */
    int ssm_own_decays;                 /* the delta rule with a decay for each element of a key  */
    int ssm_wide_gate;                  /* … whose gate does not come from ssm_rank numbers, as decays do */
    /* borrowed: so many layers, the last ones, use keys and values of earlier layers; late_ffn: their d_ff if it
     * differs. */
    int borrowed, late_ffn;
    int again_from, again, loop;        /* `again` layers from `again_from` on have the weights of the `loop` before */
    int apart;                          /* ends_more includes attention and feed-forward of layers with a state */
    /* How many numbers a layer's further matrices have; its further vectors; other tensors before and after the
     * layers. */
    long long layer_more, vectors_more, ends_more;
    int no_vision;                      /* there is a vision tower with an unknown weight count   */
    long long vision, parameters;       /* parameters: the public count, 0: not known             */
};

#endif
