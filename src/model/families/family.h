/* SPDX-License-Identifier: Apache-2.0 */
/* A model family as constant tables: the config key for each field of sh_arch, and the names and dimensions of the
 * tensors or, for models whose memory is only computed, the facts that determine it. One reader (config_family.c) and
 * one binder (model.c) serve all families. */
#ifndef SH_MODEL_FAMILIES_FAMILY_H
#define SH_MODEL_FAMILIES_FAMILY_H

#include <stddef.h>

#include "src/base/err.h"
#include "src/model/arch.h"
#include "src/model/facts.h"

struct sh_config;

/* The role of a tensor. _W: a matrix [out, in] or a norm's weight [1, width], _B: a bias [1, width]. */
enum sh_role {
    SH_TOK_EMBED, SH_MORE_EMBED,            /* MORE: the table's further rows, if another tensor has them */
    SH_POS_EMBED, SH_PROJ_IN, SH_PROJ_OUT, SH_FINAL_NORM_W, SH_FINAL_NORM_B, SH_HEAD,
    SH_EMBED_NORM_W, SH_EMBED_NORM_B, SH_HEAD_B,
    SH_OWN_EMBED, SH_OWN_PROJ, SH_OWN_NORM_W,   /* embeddings of layers (streams.c)               */
    SH_STREAM_IN_1, SH_STREAM_IN_2, SH_STREAM_IN_3, SH_STREAM_OUT_1, SH_STREAM_OUT_2, SH_STREAM_OUT_3,
    SH_HYPER_HEAD_W, SH_HYPER_HEAD_BASE, SH_HYPER_HEAD_SCALE,                               /* hyper.c */
    SH_HEAD_DENSE_W, SH_HEAD_DENSE_B, SH_HEAD_NORM_W, SH_HEAD_NORM_B,   /* head.c */
    SH_MIXER_HEAD_NORM_W, SH_MIXER_HEAD_DOWN_W, SH_MIXER_HEAD_UP_W,                 /* stream_mixer.c */
    SH_LOGIT_FACTOR,                        /* [1, rows of the head]: ngpt.c                      */
    SH_ROPE_POWERS,                         /* [1, n_rot / 2]: sh_rope.power                      */
    SH_ATTN_NORM_W, SH_ATTN_NORM_B,         /* from here on: one for each layer                   */
    SH_Q_W, SH_Q_B, SH_K_W, SH_K_B, SH_V_W, SH_V_B, SH_O_W, SH_O_B,
    SH_MLP_NORM_W, SH_MLP_NORM_B, SH_UP_W, SH_UP_B, SH_DOWN_W, SH_DOWN_B,
    SH_GATE_W, SH_GATE_B,
    SH_Q_NORM_W, SH_K_NORM_W,               /* [1, d_head]                                        */
    SH_ATTN_POST_W, SH_MLP_POST_W,          /* norms of the blocks' outputs                       */
    SH_Q_NORM_B, SH_K_NORM_B,
    SH_O_NORM_W, SH_DOWN_NORM_W,            /* before the last product of each block              */
    SH_ATTN_GATE_W,                         /* [query heads x head width, d_model]                */
    SH_Q_A_W, SH_Q_A_NORM_W, SH_Q_B_W, SH_KV_A_W, SH_KV_A_NORM_W, SH_KV_B_W,    /* latent attention; Q_B may be alone */
    SH_Q_A_B, SH_KV_A_B,
    SH_SINKS,                               /* [1, n_head]                                        */
    SH_ROUTER_W, SH_ROUTER_B,               /* [experts, d_model], [1, experts]                   */
    SH_ROUTER_CHOICE,                       /* [1, experts]: added to scores for the choice, not for weights */
    SH_EXPERT_GATE_W, SH_EXPERT_GATE_B, SH_EXPERT_UP_W, SH_EXPERT_UP_B, SH_EXPERT_DOWN_W, SH_EXPERT_DOWN_B,
                                            /* numbered                                           */
    SH_SHARED_GATE_W, SH_SHARED_UP_W, SH_SHARED_DOWN_W, SH_SHARED_SCALE_W,  /* the last: [1, d_model] */
    SH_ACT_AP, SH_ACT_AN, SH_ACT_BETA, SH_ACT_EPS,  /* [1]: of xIELU                              */
    SH_ATTN_GATE_B,
    SH_RECUR_Q_W, SH_RECUR_K_W, SH_RECUR_V_W, SH_RECUR_Z_W, SH_RECUR_B_W, SH_RECUR_A_W,     /* recurrent.c */
    SH_RECUR_X_W, SH_RECUR_X_B, SH_RECUR_Z_B, SH_RECUR_B_B, SH_RECUR_A_B,       /* X: the convolution's input */
    SH_RECUR_MIX_W, SH_RECUR_STEP_W,        /* Mamba: the rank of steps, b and c; steps of their rank */
    SH_RECUR_STEP_NORM_W, SH_RECUR_B_NORM_W, SH_RECUR_C_NORM_W,
    SH_RECUR_CONV, SH_RECUR_CONV_B, SH_RECUR_LOG_A, SH_RECUR_STEP, SH_RECUR_SKIP, SH_RECUR_NORM_W, SH_RECUR_OUT_W,
    SH_RECUR_OUT_B,
    SH_OWN_GATE_W, SH_OWN_OUT_W, SH_OWN_POST_W, SH_LAYER_SCALE,                             /* streams.c */
    SH_ALTUP_NORM_W, SH_ALTUP_ROUTER_W, SH_ALTUP_PREDICT, SH_ALTUP_CORRECT, SH_ALTUP_SCALE,
    SH_LAUREL_LEFT_W, SH_LAUREL_RIGHT_W, SH_LAUREL_NORM_W,
    SH_EXPERT_NORM_W, SH_ROUTER_NORM_W, SH_EXPERT_SCALE, SH_MLP_POST_1_W, SH_MLP_POST_2_W,  /* next to a plain block */
    SH_ATTN_ROUTER_W, SH_Q_EXPERT_W, SH_O_EXPERT_W, SH_ATTN_MIX_B, SH_MIX_B,    /* attention_experts.c */
    SH_K_B_W, SH_V_B_W,                     /* GGUF: KV_B head by head: [rank, d_nope] and [d_v, rank] */
    SH_RECUR_CONV_K, SH_RECUR_CONV_V,       /* … then RECUR_CONV is the first part of three       */
    SH_RECUR_DECAY_W, SH_RECUR_INPUT_W,     /* of SH_GATED_LRU, numbered: its gates of each block, with A_B and B_B */
    SH_RECUR_A_IN_W, SH_RECUR_Z_IN_W,       /* [gate_rank, d_model]: x to the inputs of RECUR_A_W, RECUR_Z_W */
    SH_PAIR_NORM_W, SH_BLOCK_OUT_W, SH_Q_ADAPT_IN_W, SH_Q_ADAPT_W, SH_K_ADAPT_IN_W, SH_K_ADAPT_W, SH_V_ADAPT_IN_W,
    SH_V_ADAPT_W, SH_FEED_ADAPT_W, SH_GATE_ADAPT_W, SH_UP_ADAPT_W,                  /* shared_block.c */
    SH_ATTN_NORM_IN_W, SH_ATTN_NORM_OUT_W, SH_MLP_NORM_IN_W, SH_MLP_NORM_OUT_W,     /* block_norm.c */
    SH_LAMBDA_Q_1, SH_LAMBDA_K_1, SH_LAMBDA_Q_2, SH_LAMBDA_K_2,             /* differential.c */
    SH_KEY_BIAS_W, SH_KEY_BIAS_B, SH_KEY_DECAY,                             /* key_bias.c         */
    SH_ATTN_PRODUCT_W, SH_FEED_PRODUCT_W,   /* SH_BLOCK_PRODUCT: [d_model, d_model]               */
    SH_ATTN_KEEP, SH_MLP_KEEP,              /* [1, d_model]: factors of what a block is added to  */
    SH_EXPERT_IN_W, SH_EXPERT_OUT_W,        /* [latent, d_model], [d_model, latent] of struct sh_mixture */
    SH_HYPER_ATTN_W, SH_HYPER_ATTN_BASE, SH_HYPER_ATTN_SCALE, SH_HYPER_MLP_W, SH_HYPER_MLP_BASE, SH_HYPER_MLP_SCALE,
    SH_QUERY_LOG, SH_QUERY_KEPT,            /* [1, n_head]: head_temper.c                         */
    SH_QUERY_FACTOR, SH_ATTN_GATE_FACTOR, SH_GATE_FACTOR, SH_UP_FACTOR, SH_ATTN_RATE, SH_MLP_RATE,      /* ngpt.c */
    /* stream_mixer.c: [1, streams * d_model]; [rank, that], [that, rank], [streams, that]. */
    SH_MIXER_ATTN_NORM_W, SH_MIXER_ATTN_DOWN_W, SH_MIXER_ATTN_UP_W, SH_MIXER_ATTN_ADD_W,
    SH_MIXER_MLP_NORM_W, SH_MIXER_MLP_DOWN_W, SH_MIXER_MLP_UP_W, SH_MIXER_MLP_ADD_W,
    SH_NGRAM_EMBED,                         /* numbered: parts of a table (ngrams.c)              */
    SH_NGRAM_KEY_W, SH_NGRAM_VALUE_W, SH_NGRAM_KEY_NORM_W, SH_NGRAM_QUERY_NORM_W, SH_NGRAM_CONV_NORM_W, SH_NGRAM_CONV,
    SH_O_NORM_B, SH_DOWN_NORM_B,            /* of SH_O_NORM_W and SH_DOWN_NORM_W                */
    SH_N_ROLE
};
#define SH_LAYER_ROLE SH_ATTN_NORM_W        /* the first role that a layer has                    */

int sh_role_is_norm(enum sh_role role);     /* a norm's weight                                    */
int sh_role_is_less_one(enum sh_role role, const struct sh_arch *a);    /* … that is stored less 1 */

/* A named dimension, so that a wrong shape can be explained by the config keys that determine it. */
enum sh_dim {
    SH_ONE,                                 /* as `rows`: the tensor is a vector                  */
    SH_DIM_MODEL, SH_DIM_EMBED, SH_DIM_FF, SH_DIM_VOCAB,
    SH_DIM_OUT,                             /* n_out, or n_vocab                                  */
    SH_DIM_MORE,                            /* rows of the embedding beyond those of the head     */
    SH_DIM_POS,                             /* max_pos + pos_offset                               */
    SH_DIM_Q, SH_DIM_KV,                    /* n_head * d_head, n_kv_head * d_head                */
    SH_DIM_KV_VALUES,                       /* n_kv_head * d_value                                */
    SH_DIM_HEAD,                            /* d_head                                             */
    SH_DIM_HEADS, SH_DIM_KV_HEADS,          /* n_head, n_kv_head                                  */
    SH_DIM_GATES,                           /* n_head, or n_head * d_head: see gates_heads        */
    SH_DIM_Q_RANK, SH_DIM_KV_RANK, SH_DIM_KV_A,     /* of struct sh_latent: q_rank, rank, rank + d_rope */
    SH_DIM_Q_RANKS,                         /* q_rank, twice with `both`                          */
    SH_DIM_NORM_RANK,                       /* norm_rank                                          */
    SH_DIM_PAIR, SH_DIM_ADAPTER,            /* 2 d_model; of struct sh_shared: rank               */
    SH_DIM_Q_B, SH_DIM_KV_B, SH_DIM_VALUES, /* n_head times d_nope + d_rope, d_nope + d_v, d_v (or d_value) */
    SH_DIM_NOPE, SH_DIM_VALUE,              /* d_nope, d_v                                        */
    SH_DIM_KV_SET,                          /* SH_DIM_KV over the experts of a token              */
    SH_DIM_ONE_ROW,                         /* of a matrix with one row                           */
    SH_DIM_ROPE_PAIRS,                      /* n_rot / 2                                          */
    SH_DIM_RECUR_KEYS, SH_DIM_RECUR_VALUES, /* of struct sh_recurrent: n_k * d_k, n_v * d_v       */
    SH_DIM_RECUR_HEADS, SH_DIM_RECUR_HEAD,  /* n_v, d_v                                           */
    SH_DIM_RECUR_CHANNELS, SH_DIM_RECUR_KERNEL, SH_DIM_RECUR_STATE,     /* …, kernel, d_k         */
    SH_DIM_RECUR_RANK, SH_DIM_RECUR_RANK_B_C,       /* rank, rank + 2 d_k                         */
    SH_DIM_RECUR_DECAYS, SH_DIM_RECUR_GATE, /* n_v, or with own_decays times d_k; RG-LRU: channels; gate_rank */
    SH_DIM_OWN, SH_DIM_OWN_ALL, SH_DIM_OWN_ROWS,    /* of struct sh_streams: d_own, of all layers; n_own */
    SH_DIM_STREAMS, SH_DIM_STREAM_PAIRS, SH_DIM_LAUREL,     /* n, n * n, laurel                   */
    SH_DIM_HYPER, SH_DIM_HYPER_IN, SH_DIM_HYPER_SCALES,     /* weights, n * d_model, their kinds */
    SH_DIM_MIXER_RANK,                      /* rank                                               */
    SH_DIM_NGRAM, SH_DIM_NGRAM_HEAD,        /* of struct sh_ngrams: d; the width of one head      */
    SH_DIM_NGRAM_ROWS, SH_DIM_NGRAM_PARTS, SH_DIM_NGRAM_KERNEL,
    SH_DIM_EXPERTS, SH_DIM_ROUTES, SH_DIM_EXPERT_FF, SH_DIM_SHARED_FF,      /* of struct sh_mixture: n, n + zero, … */
    SH_DIM_EXPERT_IO                        /* latent, or d_model                                 */
};

enum sh_key_kind {
    SH_KEY_COUNT,                           /* whole number, 1 to `max`, into an int field        */
    SH_KEY_REAL,                            /* number, 0 to `max`, into a float field             */
    SH_KEY_FLAG,                            /* true or false, into the bit `flag` of the flags    */
    SH_KEY_ACT,                             /* name of an activation, into an enum sh_act field   */
    SH_KEY_TYPE                             /* the name of a number format, into an enum sh_type  */
};

enum { SH_MOST_NAMES = 4 };

struct sh_key {
    const char *json[SH_MOST_NAMES];        /* the first of these names that is present; if none is,
                                             * the family's `start` is used                       */
    enum sh_key_kind kind;
    size_t field;                           /* offset in struct sh_arch                           */
    unsigned flag;
    double max;
};

#define SH_COUNT_KEY(name, most, ...) \
    {.json = {__VA_ARGS__}, .kind = SH_KEY_COUNT, .field = offsetof(struct sh_arch, name), .max = most}
#define SH_REAL_KEY(name, most, ...) \
    {.json = {__VA_ARGS__}, .kind = SH_KEY_REAL, .field = offsetof(struct sh_arch, name), .max = most}
#define SH_FLAG_KEY(bits, ...) {.json = {__VA_ARGS__}, .kind = SH_KEY_FLAG, .flag = bits}
#define SH_ACT_KEY(...) {.json = {__VA_ARGS__}, .kind = SH_KEY_ACT, .field = offsetof(struct sh_arch, act)}
#define SH_TYPE_KEY(...) {.json = {__VA_ARGS__}, .kind = SH_KEY_TYPE, .field = offsetof(struct sh_arch, type)}

#define SH_WORDS(...) (const char *const[]){__VA_ARGS__, NULL}      /* a list that NULL ends       */

/* How a tensor is stored. Parameters with the same name are parts of one tensor, one after another in the order of the
 * table: q, k, v; gate, up. */
enum sh_form {
    SH_WHOLE_NAME = 1,                      /* `name` has no prefix                               */
    SH_TRANSPOSED = 2,                      /* the whole tensor is [cols, rows]                   */
    SH_INTERLEAVED = 4,                     /* KV head by KV head: its rows of every part         */
    SH_IN_FOURTHS = 8,                      /* fourth by fourth of the heads: its rows of every part */
    SH_ALTERNATING = 16,                    /* one row of every part in turn                      */
    SH_BY_HEAD = 32,                        /* query head by query head: its rows of every part   */
    SH_BY_RECUR_HEAD = 64,                  /* key head by key head of the delta rule: the same   */
    SH_OPTIONAL = 128,                      /* a file without it is whole: it would change nothing */
    SH_CUT_ANYWHERE = 512,                  /* a part of a matrix: only all parts together have a number of rows */
    SH_OF_BLOCK = 1024,                     /* of a shared block: '%' is its sh_arch_block_number */
    SH_FIRST_ROW = 4096,                    /* a vector: it may be the first of two rows          */
    SH_PAIR_FIRST = 16384,                  /* '#' is twice the layer's number: blocks are numbered */
    SH_PAIR_SECOND = 32768,                 /* … that and 1                                       */
    SH_EITHER_WAY = 2048                    /* SH_TRANSPOSED unless the shape shows that it is not */
};

/* If several entries of a role exist, they are its names in different files: the first one that is in the file
 * counts. */
struct sh_param {
    enum sh_role role;
    const char *name;                       /* after the prefix; '#' is the layer number, '%' sh_family.parts */
    enum sh_dim rows, cols;
    unsigned needs, unless;                 /* exists when all of `needs` and none of `unless` are among the flags */
    unsigned form;                          /* enum sh_form                                       */
    enum sh_dim count;                      /* how many, numbered: by '@' in the name, else slices of one tensor */
};

/* Entries of such a table. how: enum sh_form; needs, bias: the flags with which a tensor, or its bias, exists. */
#define SH_MATRIX(part, tensor, out, in, how) \
    {.role = SH_##part, .name = tensor, .rows = SH_DIM_##out, .cols = SH_DIM_##in, .form = how}
#define SH_VECTOR(part, tensor, width, flags, how) \
    {.role = SH_##part, .name = tensor, .rows = SH_ONE, .cols = SH_DIM_##width, .needs = flags, .form = how}
#define SH_LINEAR(part, stem, out, in, bias, how) \
    SH_MATRIX(part##_W, stem ".weight", out, in, how), \
    SH_VECTOR(part##_B, stem ".bias", out, bias, (how) & ~SH_TRANSPOSED)
#define SH_NORM_PAIR(part, stem, flags) \
    SH_VECTOR(part##_W, stem ".weight", MODEL, flags, 0), SH_VECTOR(part##_B, stem ".bias", MODEL, flags, 0)
/* A numbered role: a vector for each of `many`, in tensors of their own. */
#define SH_VECTORS(part, tensor, width, many, flags) \
    {.role = SH_##part, .name = tensor, .rows = SH_ONE, .cols = SH_DIM_##width, .needs = flags, \
     .count = SH_DIM_##many}
#define SH_NORM_WEIGHT(part, tensor, width, flags) SH_VECTOR(part##_W, tensor, width, flags, 0)
#define SH_HEAD_PARAM(tensor) \
    {.role = SH_HEAD, .name = tensor, .rows = SH_DIM_VOCAB, .cols = SH_DIM_EMBED, .unless = SH_TIED_HEAD, \
     .form = SH_WHOLE_NAME}

/* A count that affects only the memory. */
struct sh_fact_key {
    const char *json[2];                    /* the first of these names that is present           */
    size_t field;                           /* of an int in struct sh_kv_facts                    */
    int min, usual, needed;                 /* usual: the value if the key is absent, 0: unchanged */
};

/* Fixed; read from the key, else unchanged; else the given default; required. */
#define SH_FIXED_FACT(name, value) {.json = {""}, .field = offsetof(struct sh_kv_facts, name), .usual = value}
#define SH_FACT(name, least, ...) \
    {.json = {__VA_ARGS__}, .field = offsetof(struct sh_kv_facts, name), .min = least}
#define SH_USUAL_FACT(name, least, value, ...) \
    {.json = {__VA_ARGS__}, .field = offsetof(struct sh_kv_facts, name), .min = least, .usual = value}
#define SH_NEEDED_FACT(name, ...) \
    {.json = {__VA_ARGS__}, .field = offsetof(struct sh_kv_facts, name), .min = 1, .needed = 1}

/* How GGUF files describe the models of a family: llama.cpp's name for it, the config.json key for each of its
 * keys, and what else such files may contain (files/gguf_config.h). */
enum sh_gguf_trait {
    SH_GGUF_ROTARY = 1,                     /* rotary positions                                   */
    SH_GGUF_SHARE = 2,                      /* … that may cover only a part of each head          */
    SH_GGUF_HEAD = 4,                       /* the head width is independent of the model width   */
    SH_GGUF_WINDOW = 8,                     /* every layer may have a window                      */
    SH_GGUF_CAPS = 16,                      /* Gemma: caps, its own scale, windows by a pattern   */
    SH_GGUF_LOCAL_BASE = 32,                /* windowed layers have a rotary base of their own    */
    SH_GGUF_FACTORS = 64,                   /* rope_freqs.weight may scale the frequencies        */
    SH_GGUF_ALIBI = 128,
    SH_GGUF_QKV_BIAS = 256,                 /* q, k and v have biases, the product after attention none */
    SH_GGUF_IN_PAIRS = 512,                 /* rows of q and k are in another order (gguf_tensors.h) */
    SH_GGUF_LAYERS = 1024,                  /* the window is in the layers that a list names, or the family's rule */
    SH_GGUF_SCALE = 2048,                   /* an item takes over the scale of scores             */
    SH_GGUF_LATENT = 4096,                  /* latent attention: keys are a latent and a rotary part */
    SH_GGUF_COUNTS_TURNS = 8192,            /* `share_key` is a number of elements                */
    SH_GGUF_WHOLE_YARN = 16384,             /* YaRN's range of correction is not rounded          */
    SH_GGUF_BY_LAYER = 32768,               /* layers with a window have heads and bases of their own */
    SH_GGUF_SPARSE = 65536,                 /* lists of counts have 0 for layers without the block */
    SH_GGUF_LONG = 131072,                  /* rope_factors_short.weight, …_long.weight scale them ("longrope") */
    SH_GGUF_VERSIONS = 262144,              /* tensors tell which of DeepSeek's versions it is    */
    SH_GGUF_ROPES = 524288,                 /* layers with a window: a base (and with SHARE a share) of their own, no
                                             * scaling; rope_parameters                           */
    SH_GGUF_UNCORRECTED = 1048576,          /* files without exp_probs_b choose experts by the scores alone */
    SH_GGUF_INDEXED = 2097152,              /* tensors of an index are left alone                 */
    SH_GGUF_KV_BY_KIND = 4194304,           /* layers with a window have twice as many KV heads; values a width of */
                                            /* their own                                          */
    SH_GGUF_HALF_TURNS = 8388608,           /* layers without a window rotate half of rope.dimension_count */
    SH_GGUF_UNEVEN = 16777216,              /* layers may differ in their heads and feed-forward widths */
    SH_GGUF_FOUR_SECTIONS = 33554432        /* rope.dimension_sections may have four: a text has its position in all */
};

struct sh_gguf_item {                       /* a key that is taken over as it is                  */
    const char *name, *hub;                 /* without the architecture prefix; in config.json, maybe "a.b" */
    enum {
        SH_GGUF_COUNT,                      /* of at least `value`                                */
        SH_GGUF_NUMBER, SH_GGUF_FLAG,
        SH_GGUF_GATING,                     /* 1 or none: "softmax", 2: "sigmoid"; without `hub` only `value` */
        SH_GGUF_WORD,                       /* a text; without the key hub is `json`              */
        SH_GGUF_FIXED,                      /* no key: hub is always `json`                           */
        SH_GGUF_THERE,                      /* is there a tensor `name`? `json` if so, else `json_else` */
        SH_GGUF_ROWS,                       /* rows of the tensor `name`, '#' the first layer that
                                             * has it; optional: if it is there                   */
        SH_GGUF_DEVIATIONS,                 /* a list of deviations above the mean: shares of normal numbers below */
        SH_GGUF_SHARE_OF,                   /* a number: the one of the key `json` by this one    */
        SH_GGUF_BLOCKS,                     /* a list by tensors: full_attention, `json` (recurrent) */
                                            /* or, with `value`, mlp and moe                      */
        SH_GGUF_FEEDS,                      /* the same: dense or sparse                          */
        SH_GGUF_MUST,                       /* a flag that must be `value`, and there if not optional */
        SH_GGUF_SAME,                       /* a count: if it is there, it must equal that of `json` */
        SH_GGUF_BY_HEAD,                    /* has the tensor `name` a row for each head? the text `json`, else
                                             * `json_else`                                        */
        SH_GGUF_SECTIONS,                   /* true if there is a list whose first two numbers are not 0; without
                                             * `hub` refused then                                 */
        SH_GGUF_NUMBERS,                    /* if it is there, a number for each layer, or one for all: a list */
        SH_GGUF_LIST                        /* if it is there, a list of flags: `json` or `json_else`, or without
                                             * them the base of the rotation or 0                 */
    } kind;
    int optional;                           /* 2: a value of 0 also counts as absent              */
    const char *json, *json_else;           /* NULL: hub is left out                              */
    int value;
};
#define SH_GGUF_COUNT_ITEM(gguf, json) {.name = gguf, .hub = json, .kind = SH_GGUF_COUNT}
#define SH_GGUF_COUNT_ITEMS(layers, width, ff, heads, positions) \
    SH_GGUF_COUNT_ITEM("block_count", layers), SH_GGUF_COUNT_ITEM("embedding_length", width), \
    SH_GGUF_COUNT_ITEM("feed_forward_length", ff), SH_GGUF_COUNT_ITEM("attention.head_count", heads), \
    SH_GGUF_COUNT_ITEM("context_length", positions)
#define SH_GGUF_NUMBER_ITEM(gguf, json) {.name = gguf, .hub = json, .kind = SH_GGUF_NUMBER}
#define SH_GGUF_MAYBE(type, gguf, json) {.name = gguf, .hub = json, .kind = SH_GGUF_##type, .optional = 1}
#define SH_GGUF_IS(hub_key, text) {.hub = hub_key, .kind = SH_GGUF_FIXED, .json = text}
#define SH_GGUF_IF(tensor, hub_key, yes, no) \
    {.name = tensor, .hub = hub_key, .kind = SH_GGUF_THERE, .json = yes, .json_else = no}

struct sh_gguf_name {                       /* a tensor whose name differs from that of other families */
    int role;                               /* enum sh_role                                       */
    const char *name;
    unsigned needs;                         /* flags of the models with this name                 */
};

struct sh_gguf_form {
    const char *arch;                       /* general.architecture                               */
    const char *mixed_arch;                 /* … of files with experts; NULL: the same            */
    const struct sh_gguf_item *items;       /* ends with name == NULL                             */
    unsigned traits;                        /* enum sh_gguf_trait                                 */
    int period;                             /* each so many layers one without a window, the last; -n: the first */
    int large;                              /* CAPS: so many layers has the one that scales by the model's width */
    int window, cap, head_cap;              /* CAPS: the defaults                                 */
    int local_base;                         /* ROPES: of layers with a window, unless the file says; 0: as others */
    const char *share_key, *base_key;       /* config.json's names for them                       */
    const char *windowed_type;              /* WINDOW: model_type of files with one; NULL: the family's */
    const char *mixed_type;                 /* model_type of files with experts; NULL: the family's */
    const struct sh_gguf_name *names;       /* ends with name == NULL; NULL: none                 */
};

typedef int sh_shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e);

struct sh_family {
    const char *name;
    const char *special;                    /* for people: its features, for one line of a table   */
    const char *const *model_types;         /* "model_type" values that mean it; NULL ends        */
    const char *const *counted_types;       /* more of them, of which only the memory is counted; NULL: none */
    const char *const *architectures;       /* "architectures" values that it can run; NULL ends  */
    const char *const *prefixes;            /* tensor name prefixes found in the wild; NULL ends  */
    struct sh_arch start;                   /* fixed choices and defaults; 0: see sh_config_arch  */
    const struct sh_key *keys;              /* besides config_family.c's; ends with json[0] == NULL; may be NULL */
    const struct sh_param *params;          /* ends with name == NULL; NULL: memory is counted, nothing runs */
    int parts;                              /* so many layers share a number in names, where '%' tells them apart; */
                                            /* 0: 1                                               */
    const struct sh_gguf_form *gguf;        /* NULL: GGUF files of it are not known               */
    const struct sh_fact_key *facts;        /* ends with json[0] == NULL; NULL: none              */
    const char *pattern;                   /* of layers unless layer_types lists them (models.txt); NULL: see `shape` */
    const char *const *only;                /* "key=value": values in JSON of keys that may have no other; NULL ends */
    const char *const *unread;              /* usual keys that mean nothing in this family; NULL ends, NULL: none */
    const char *knows;  /* further keys for config_facts.c it may have, between blanks; NULL: none */
    /* Quirks; may be NULL. shape: what the memory depends on, too; finish: what only the forward pass needs;
     * count: what the memory depends on beyond struct sh_arch and `facts`, which are read. */
    sh_shape *shape, *finish;
    int (*count)(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e);
};

/* The place of a parameter within the tensor that holds it (layout.c): checkpoints fuse q, k and v (or gate and up)
 * into one tensor, interleave them head by head, or keep matrices transposed. The backends want the plain [rows,
 * cols]. */
struct sh_layout {                          /* of a vector the elements are the rows, cols is 1   */
    int rows, cols;                         /* of the parameter                                   */
    int total;                              /* rows of the whole tensor                           */
    int first, run, step;                   /* `run` rows from `first` on, again every `step` rows */
    int is_transposed;                      /* the tensor is [cols, total]                        */
    int n_rot, d_head, still;               /* n_rot of each d_head rows, after `still`, are in pairs; 0: none */
};

int sh_dim_size(const struct sh_arch *a, enum sh_dim dim);

/* Does the parameter exist in this layer of the model? */
int sh_param_exists(const struct sh_param *p, const struct sh_arch *a, int layer);

/* The numbers in the parameter's name: of '#', the layer or what it shares with others, and of '%', which tells these
 * apart. */
struct sh_numbers { int layer, part; };
struct sh_numbers sh_param_numbers(const struct sh_family *f, const struct sh_arch *a, const struct sh_param *p,
                                   int layer);

struct sh_layout sh_layout_of(const struct sh_family *f, const struct sh_arch *a, const struct sh_param *p, int layer);

/* 1: the parameter is stored as plain [rows, cols], from row `first` on. */
int sh_layout_is_plain(const struct sh_layout *l);

/* The tensor's row that is this row of the parameter. */
size_t sh_layout_row(const struct sh_layout *l, int row);

/* The plain matrix of elements of `bytes` bytes (2 or 4). */
void sh_layout_gather(const struct sh_layout *l, const void *from, void *to, size_t bytes);

#endif
