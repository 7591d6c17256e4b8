/* SPDX-License-Identifier: Apache-2.0 */
/* The architecture of a decoder-only transformer: all parameters of the forward pass, for every family. Filled from
 * config.json (config.h). The facts for the capacity arithmetic (facts.h) are derived from it and, in families whose
 * memory is only counted, from further keys of their configs. */
#ifndef SH_MODEL_ARCH_H
#define SH_MODEL_ARCH_H

#include "kernels/backend.h"
#include "src/base/num.h"
#include "src/model/layers/rope.h"

enum sh_norm_place {
    SH_NORM_PRE,                /* before each block                                              */
    SH_NORM_POST,               /* after each block's residual sum                                */
    SH_NORM_BOTH,               /* before each block, and on its output before the residual sum   */
    SH_NORM_OUT,                /* only on the output of each block, before the residual sum      */
    SH_NORM_TAKEN,              /* before each block, whose output is added to the norm's output  */
    SH_NORM_BY_KIND             /* SH_NORM_OUT in layers that attend, SH_NORM_PRE in others       */
};
/* SH_POS_WAVES: computed rows of sines and cosines (Vaswani et al., 2017), which are added like learned positions. */
enum sh_pos_kind { SH_POS_LEARNED, SH_POS_ROTARY, SH_POS_ALIBI, SH_POS_NONE, SH_POS_WAVES };

enum sh_arch_flag {
    SH_TIED_HEAD = 1,           /* the output head is the token embedding                         */
    SH_HAS_BIAS = 2,            /* the products that make q, k and v have biases                  */
    SH_HAS_NORM_AFFINE = 4,     /* norms have weights (and biases)                                */
    SH_HAS_FINAL_NORM = 8,      /* a norm after the last layer                                    */
    SH_HAS_PROJECTION = 16,     /* d_embed != d_model: projections before and after the layers    */
    SH_HAS_OUT_BIAS = 32,       /* the product after attention has a bias                         */
    SH_HAS_MLP_BIAS = 64,       /* the products of the feed-forward block have biases             */
    SH_GATED = 128,             /* feed-forward: act(gate x) * (up x), in place of act(up x)      */
    SH_PARALLEL = 256,          /* both blocks of a layer read the layer's input                  */
    SH_NORM_PLUS_ONE = 512,     /* the weights of norms are stored less 1                         */
    SH_HAS_QK_NORM = 1024,      /* queries and keys are normed per head, before the rotation      */
    SH_SCALED_BY_LAYER = 2048,  /* the scores of layer l are also divided by l + 1                */
    SH_QK_NORM_WIDE = 1 << 12,  /* … one norm over all heads together                             */
    SH_QK_NORM_EACH = 1 << 13,  /* … each head has its own weights                                */
    SH_QK_NORM_LATE = 1 << 14,  /* … and it comes after the rotation, in layers that have one     */
    SH_ONE_NORM = 1 << 15,      /* parallel: both blocks read one norm's output                   */
    SH_HAS_HEAD_BIAS = 1 << 16, /* the output head has a bias                                     */
    SH_HAS_EMBED_NORM = 1 << 17,/* a norm on the embedding, even without weights                  */
    SH_HAS_SUB_NORM = 1 << 18,  /* a norm before the last product of each block                   */
    SH_IN_PAIRS = 1 << 19,      /* rotary pairs are neighbours (2i, 2i + 1): layout.c separates them */
    SH_HAS_TWO_NORMS = 1 << 20, /* parallel: each block reads a norm of its own                   */
    SH_ATTENTION_GATE = 1 << 21,/* attention's output is multiplied by a gate: gate_act(gate x)   */
    SH_TEMPER_STILL = 1 << 22,  /* queries are scaled by position only in layers without rotation */
    SH_MIX_NORMED = 1 << 23,    /* the weights of a token's experts are divided by their sum      */
    SH_Q_LATENT = 1 << 25,      /* latent attention: queries come from a latent of their own      */
    SH_HAS_CORRECTION = 1 << 24,/* the choice of experts is corrected (SH_ROUTER_CHOICE)          */
    SH_HAS_SINKS = 1 << 26,     /* each head has a score without a key (sh_attend)                */
    SH_CHUNKED = 1 << 27,       /* windows are chunks: sh_attend's `chunk`                        */
    SH_ROUNDS_SLOPES = 1 << 28, /* ALiBi in Falcon's form                                         */
    SH_SHARED_LAYER = 1 << 29,  /* only in sh_arch_flags: the layer's mixture has a shared expert */
    SH_EXPERT_LAYER = 1 << 30   /* only in sh_arch_flags: the layer's feed-forward block is a mixture */
};

/* Whether the rows or the columns of the output head are divided by their lengths when it is read. */
enum sh_head_norm { SH_HEAD_PLAIN, SH_HEAD_ROWS, SH_HEAD_COLUMNS };

/* How the scores of experts follow from the router's products, and the weights of the chosen experts from the
 * scores. */
enum sh_route {
    SH_ROUTE_SOFTMAX,           /* softmax over all experts                                       */
    SH_ROUTE_CHOSEN,            /* softmax over the chosen experts                                */
    SH_ROUTE_SIGMOID,
    SH_ROUTE_CHOSEN_SIGMOID,    /* chosen by the products themselves, weighted by their sigmoids  */
    SH_ROUTE_SPARSEMIXER        /* two experts, each by a softmax over the scores near its own (arXiv 2409.12136) */
};

/* Layers with both experts and a plain feed-forward block. SH_NEXT_TO_PLAIN: both come after attention, each with norms
 * of its own (Gemma 4). SH_NEXT_TO_ATTENTION: the experts read the layer's input, parallel to attention and the plain
 * block (Arctic). */
enum sh_next_to { SH_NEXT_TO_NOTHING, SH_NEXT_TO_PLAIN, SH_NEXT_TO_ATTENTION };

enum { SH_MOST_LAYERS = 10048 };            /* a multiple of 64                                   */

/* A mixture of experts in place of a feed-forward block (mixture.c). */
struct sh_mixture {
    int n, used, width;                     /* experts; experts per token; width of each; n 0: no mixture */
    int zero;                               /* number of further experts that return their input  */
    int shared_width;                       /* width of the expert that every token uses; 0: none */
    int latent;                             /* width of what the other experts read and give, by two products; 0: */
                                            /* that of the model, without products                */
    int groups, used_groups;                /* experts are chosen only from the best groups; 0: from all */
    int by_best_two;                        /* … a group ranks by the sum of its two best scores, else by its best */
    int others_are_0;                       /* … experts of other groups get a score of 0 and may still be chosen */
    enum sh_route route;
    int attends;                            /* attention has experts, too (attention_experts.c)   */
    enum sh_next_to next_to;
    int late;                               /* as SH_NEXT_TO_PLAIN, but added at the end of the next layer, */
                                            /* which has no experts (LongCat)                     */
    int early;                              /* the router reads the layer's input, without a norm (SmallThinker) */
    float router_scale;                     /* factor of the router's products; 0: 1              */
    int weighs_input;                       /* the weights multiply an expert's input, not its output */
    float scale, shared_scale;              /* factors of the weights, of the shared expert (0: 1) */
    float jitter;                           /* SH_ROUTE_SPARSEMIXER: how near                     */
    uint64_t dense[SH_MOST_LAYERS / 64];    /* bit of a layer: it has a plain feed-forward block  */
};

/* Limits in gated feed-forward blocks: the activated gate is at most `gate`, its other factor within [-up, up]
 * (limits.c). */
enum sh_limited { SH_LIMITS_EXPERTS, SH_LIMITS_OTHERS, SH_N_LIMITED };     /* of routed experts; of other blocks */
struct sh_limits {
    float gate, up;
    uint64_t at[SH_MOST_LAYERS / 64];       /* bit of a layer: the limits apply in it             */
};

/* Latent attention (latent.c): one latent for keys and values, and possibly another for queries. With it, d_head is
 * d_rope + rank and n_kv_head is 1. A layer whose own d_head is rank has no rotary elements; it has d_nope + d_rope
 * others. */
struct sh_latent {
    int rank, q_rank;                       /* widths of the latents; 0: no latent attention, no latent of queries */
    int d_rope, d_nope, d_v;                /* a head's widths: rotary and other elements of queries and keys; values */
    float by;                               /* factor of the latent of keys and values after its norm; 0: 1 */
    float eps;                              /* of the norms of latents; 0: 1e-6                   */
    int both;                               /* queries and a gate of values read the latent normed and unnormed */
};

/* What recurrent layers compute in place of attention, or next to it (recurrent.c): each text has a state of fixed
 * size, which every token updates. */
enum sh_recurrence {
    SH_DELTA_RULE,             /* the gated delta rule, after a convolution                       */
    SH_STATE_SPACE,              /* a selective state space (Mamba), after a convolution          */
    SH_SHORT_CONV,              /* a short convolution alone                                      */
    SH_LIGHTNING,               /* linear attention with a decay for each head and layer (2401.04658) */
    SH_GATED_LRU                /* a gated linear recurrence (RG-LRU, 2402.19427), after a convolution */
};
struct sh_recurrent {
    enum sh_recurrence kind;
    /* Delta rule: numbers of heads of queries and keys, and of values; their widths. State space: groups, heads, size
     * of a channel's state, channels of a head. Convolution: n_v is 1, d_v the number of channels. Linear attention: as
     * for the delta rule, with kernel 1. Gated recurrence: blocks of its gates and their width, n_k 0, d_k 1. n_v 0: no
     * layer is recurrent. */
    int n_k, n_v, d_k, d_v;
    int kernel;                             /* width of the convolution in tokens                 */
    int in_turns;                           /* kernels/backend.h's struct sh_delta                */
    float strength;                         /* as in struct sh_delta; 0: 1                        */
    int own_decays;                         /* as in struct sh_delta                              */
    float decay_bound;                      /* `least` of struct sh_delta; 0: none                */
    int gate_rank;                          /* delta rule: rank of the products that make a and z from x; 0: full */
    enum sh_act z_act;                      /* … activation of z; SH_ACT_NONE: SiLU               */
    float norm_eps;                         /* of the norm of its output; 0: the model's          */
    int rank;                               /* state space: rank of the steps' product (Mamba); 0: full (Mamba-2) */
    int normed, gated_last;                 /* … its output is normed in n_k parts: after the gate, or before it */
    int has_bias, has_out_bias, has_conv_bias;      /* biases of its products of x, its last product, its convolution */
    float least, most;                      /* … limits of the steps; most 0: none                */
    float factor[5];                        /* Mamba-2: factors of z, x, b, c and steps after their products; 0: 1 */
    int next_to;                            /* recurrent layers also attend, and add both outputs */
};

/* The blocks whose output is added to the hidden states. */
enum sh_adding { SH_ADDS_ATTENTION, SH_ADDS_RECURRENCE, SH_ADDS_FEED, SH_N_ADDING };

/* What a token carries from layer to layer besides d_model numbers, and what is done with it (streams.c). */
struct sh_streams {
    int n, active;                          /* number of residual streams; the one that layers work on; n < 2: one */
    int scales;                             /* the active stream is scaled before the layers' own embeddings read it */
    int laurel;                             /* rank of the path next to attention; 0: none        */
    int d_own, n_own;                       /* width of a layer's own embedding; rows of its table; 0: none */
    int hyper;                              /* blocks read a weighted sum of all streams and add to each (hyper.c) */
    int rank;                               /* … with a weight for each number, by products of this rank */
                                            /* (stream_mixer.c); 0: with one for each stream      */
    int rounds;                             /* … after so many divisions of what mixes the streams; 0: not mixed */
    float least, most, least_added;         /* … weights of inputs: up to 1 + least; of outputs: most + least_added */
};

/* Embeddings of n-grams (ngrams.h): before its blocks, a layer of `at` adds to all streams what it has found in a table
 * for a token and those before it. `heads` numbers are hashed from each length of n-grams, 2 to n; what they select,
 * together d numbers, passes a convolution over tokens that are n apart. */
enum { SH_NGRAM_LAYERS = 64, SH_NGRAM_HEADS = 256, SH_NGRAM_MOST = 16 };
struct sh_ngrams {
    int n_layer;                            /* 0: no layer has any                                */
    int n, heads, d, kernel;
    int parts;                              /* tensors that a table is cut into                   */
    int end;                                /* the token that ends a text: no n-gram reaches across one */
    uint64_t seed;
    struct sh_ngram_layer {
        int layer, rows;                    /* of its table                                       */
        int after;                          /* its numbers are hashed modulo the next primes after this */
    } at[SH_NGRAM_LAYERS];
    int rows;                               /* in sh_arch_at's copy: of the layer's table         */
};

/* Transformer blocks that several layers share (shared_block.c): some recurrent layers run one of them first, in turn.
 * The blocks also read the token's embedding. Each of these layers has low-rank adapters of its own. */
struct sh_shared {
    int n;                                  /* number of blocks; 0: no layer uses one             */
    int rank, adapts;                       /* rank of the adapters; whether queries, keys and values have them, too */
    uint64_t at[SH_MOST_LAYERS / 64];       /* bit of a layer: it uses a block                    */
};

/* What a layer has in the place of attention, or of its feed-forward block: the usual block, nothing, or the product of
 * the block's input with a matrix [d_model, d_model]. */
enum sh_block_kind { SH_BLOCK_USUAL, SH_BLOCK_NONE, SH_BLOCK_PRODUCT };

/* Sizes of one layer; a size of 0 is that of the model. */
struct sh_layer_sizes {
    int n_head, n_kv_head, d_head, d_ff;
    enum sh_block_kind attention, feed;
};

/* Layers from `first` on, n of them, run `times` times (loop.c); n_layer counts each pass. n 0: none. */
struct sh_loop { int first, n, times; };

struct sh_arch {
    int n_layer, n_head, n_kv_head;         /* query head h uses KV head h / (n_head / n_kv_head) */
    int d_head, d_model, d_embed, d_ff;     /* d_embed: width of the token embedding              */
    /* [n_layer], if layers differ: then n_head, n_kv_head, d_head and d_ff are the largest. The config that this was
     * read from owns it (sh_config_sizes). NULL: all are alike. */
    const struct sh_layer_sizes *sizes;
    int n_vocab;
    enum sh_head_norm head_norm;
    int n_out;                              /* rows of the output head, for the first n_out tokens; 0: n_vocab */
    int mute, n_mute;                       /* this token and those after it, so many, never come next              */
    int max_pos, pos_offset;                /* position p is row p + pos_offset of the table      */
    enum sh_norm_kind norm;
    enum sh_norm_place norm_place;
    enum sh_act act;
    enum sh_pos_kind pos;
    int waves_of_half;                      /* SH_POS_WAVES: frequencies by i / half, else by i / (half - 1) */
    enum sh_type type;                      /* type that the config states; each tensor has its own */
    float final_eps;                        /* norm_eps of the norm after the last layer; 0: norm_eps */
    float post_eps;                         /* … of the norms of blocks' outputs (SH_NORM_BOTH); 0: norm_eps */
    int final_whole;                        /* SH_NORM_PLUS_ONE: not for the norm after the last layer */
    float norm_eps, scale;                  /* attention scores = scale * q k                     */
    float qk_layer_eps;                     /* SH_HAS_QK_NORM: queries and keys have layer norms with this epsilon; */
                                            /* 0: they are normed as all else is                  */
    int last_out_bias;                      /* SH_HAS_OUT_BIAS: only in the last layer            */
    float query_scale;                      /* SH_HAS_QK_NORM: factor of queries after their norm; 0: 1 */
    struct sh_loop loop;
    float learned_start, rate_start;        /* nGPT (ngpt.c): the number that is stored for a learned factor, and the */
                                            /* value of a rate, before training; 0: none          */
    int first_bare;                         /* the first layer's first block reads hidden states without a norm */
    enum sh_act dense_act;                  /* of the dense layer before the output product (head.c), if there is one */
    int dense_bias;                         /* … it has a bias                                    */
    int norm_rank;                          /* rank of the gates of norms before blocks (block_norm.c); 0: none */
    float softcap, head_softcap;            /* caps of scores and of logits, see sh_attend; 0: none */
    float embed_scale;                      /* factor of the token embedding                      */
    float residual_scale, logit_scale;      /* factors of what a block adds; of the logits before their cap */
    float own_scale[SH_N_ADDING];           /* a further factor of each block's output; 0: 1      */
    float kept_scale[SH_N_ADDING];          /* SH_NORM_TAKEN: factor of what each block's output is added to; 0: 1 */
    float gate_scale;                       /* factor of a feed-forward block's gate before its activation; 0: 1 */
    /* Factors of the biases of attention's products, and of those of a recurrent layer's products of x; 0: 1. If a
     * model multiplies the input of a product by a number, this number becomes part of another factor, which multiplies
     * the output; the bias is divided by it here. */
    float attention_bias_scale, recurrent_bias_scale;
    float knob[2];                          /* parameters of the activation, if it has any (kernels/backend.h) */
    float clip;                             /* queries, keys and values lie within [-clip, clip]; 0: anywhere */
    /* Queries at position p are multiplied by 1 + temper * ln(1 + floor((p + temper_offset) / temper_length)); they are
     * not if temper is 0. */
    float temper, temper_length;
    int temper_offset;
    int tempers_heads;                      /* temper 1: the factor is ln(1 + p), used by head (head_temper.c) */
    float init_std;                         /* deviation of fresh weights, for random models      */
    float rotary_share;                     /* rotated part of each head; n_rot = d_head * rotary_share */
    int n_rot;                              /* rotary elements of a head                          */
    /* local_rope, if its base is set: of layers with a window, and of those whose bit of other_rope is set. */
    struct sh_rope rope, local_rope;
    uint64_t other_rope[SH_MOST_LAYERS / 64];
    int window;                             /* 0: no layer has one                                */
    uint64_t whole[SH_MOST_LAYERS / 64];    /* bit of a layer: full attention despite the window  */
    uint64_t still[SH_MOST_LAYERS / 64];    /* bit of a layer: it does not rotate                 */
    uint64_t left_out[SH_MOST_LAYERS / 64]; /* bit of a layer number that the names of tensors skip */
    int local_n_rot;                        /* n_rot of layers with a window; 0: n_rot            */
    int values_are_keys;                    /* in layers without a window, the product of keys also gives the values */
    int norms_values;                       /* values are normed per head, without weights        */
    /* Width of a head's values after their product, at most d_head: in the cache and in attention they are padded with
     * zeros to the width of keys (values.c); 0: as wide as keys. value_scale: the factor of these values. */
    int d_value;
    float value_scale;
    int d_key;                              /* differential attention: width of a head's queries and keys, half of */
                                            /* d_head (differential.c); 0: none                   */
    int has_key_bias;                       /* keys have d_key numbers and one that is added to scores (key_bias.c) */
    int local_sinks;                        /* SH_HAS_SINKS: only layers with a window have them  */
    int gates_heads;                        /* SH_ATTENTION_GATE: the gate has one number for each head */
    enum sh_act gate_act;                   /* … activation of the gate; SH_ACT_NONE: a sigmoid   */
    int borrows_from;                       /* from this layer on, keys and values are those of the last layer */
                                            /* before it of the same kind (with or without a window); 0: none */
    float cut;                              /* of a gate: let c = the row's mean + cut deviations; x becomes */
    uint64_t cuts[SH_MOST_LAYERS / 64];     /* max(x - c, 0); bit of a layer: it applies there    */
    struct sh_limits limits[SH_N_LIMITED];
    struct sh_streams streams;
    struct sh_ngrams ngrams;
    struct sh_mixture mix;
    struct sh_latent latent;
    struct sh_recurrent recurrent;
    uint64_t linear[SH_MOST_LAYERS / 64];   /* bit of a layer: it is recurrent (recurrent.next_to: and attends) */
    struct sh_shared shared;
    int one_block;                          /* a layer is one block: attention, recurrence or feed-forward */
    uint64_t feeds[SH_MOST_LAYERS / 64];    /* bit of a layer: with one_block, it is feed-forward */
    unsigned flags;                         /* enum sh_arch_flag                                  */
};

/* May the token come next? */
int sh_arch_predicts(const struct sh_arch *a, int token);

/* The number of keys that a query of the layer sees, its own included; 0: all. */
int sh_arch_window(const struct sh_arch *a, int layer);
void sh_arch_see_all(struct sh_arch *a, int layer);

/* Does the layer attend? Others have no keys, no values and no attention to record. */
int sh_arch_attends(const struct sh_arch *a, int layer);
/* The number of a layer in the names of tensors, which skips the numbers that are left out. */
int sh_arch_number(const struct sh_arch *a, int layer);
/* The first layer that has the weights of this one, which a loop may repeat. */
int sh_arch_first_pass(const struct sh_arch *a, int layer);
/* From now on no layer has this number. Returns 0 if it was left out already, else 1. */
int sh_arch_leave_out(struct sh_arch *a, int number);
/* Where the layer's norms are; never SH_NORM_BY_KIND. */
enum sh_norm_place sh_arch_norm_place(const struct sh_arch *a, int layer);
/* Is the layer recurrent? Does it have a feed-forward block? */
int sh_arch_recurs(const struct sh_arch *a, int layer);
int sh_arch_feeds(const struct sh_arch *a, int layer);
/* What the layer has in the place of attention, and of the feed-forward block. */
enum sh_block_kind sh_arch_attention_kind(const struct sh_arch *a, int layer);
enum sh_block_kind sh_arch_feed_kind(const struct sh_arch *a, int layer);
void sh_arch_make_linear(struct sh_arch *a, int layer);
void sh_arch_make_feed(struct sh_arch *a, int layer);
/* The layer's query heads, at most n_head; the KV heads that it caches, at most n_kv_head. 0: it does not attend. */
int sh_arch_query_heads(const struct sh_arch *a, int layer);
int sh_arch_kv_heads(const struct sh_arch *a, int layer);
/* How many numbers a token's keys and values have in the layer. */
size_t sh_arch_kept(const struct sh_arch *a, int layer);
/* The most query heads that share a KV head, in any layer. */
int sh_arch_widest_group(const struct sh_arch *a);
int sh_arch_d_head(const struct sh_arch *a, int layer);
int sh_arch_d_ff(const struct sh_arch *a, int layer);
int sh_arch_n_rot(const struct sh_arch *a, int layer);
/* The widths of the layer's latent attention. */
struct sh_latent sh_arch_latent(const struct sh_arch *a, int layer);
/* Do the layers that attend differ in the width of their heads? */
int sh_arch_widths_differ(const struct sh_arch *a);
/* Does the layer use the keys and values of another layer? Do other layers use those of this layer? */
int sh_arch_borrows(const struct sh_arch *a, int layer);
int sh_arch_lends(const struct sh_arch *a, int layer);
/* `a`, or a copy of it in which n_head, n_kv_head, d_head, d_ff and the latent are the layer's. */
const struct sh_arch *sh_arch_at(const struct sh_arch *a, int layer, struct sh_arch *copy);

/* How many numbers a token carries from layer to layer: its streams [n, d_model]; the layers' own embeddings [n_layer,
 * d_own]; the lent keys and values of layers with a window, then of those without; and [d_model] the experts' output
 * that is added late or, for layers with a shared block, the token's embedding again; the token itself, if layers have
 * embeddings of n-grams. It is d_model if there is only one stream. The next four give the offsets, in this row, of the
 * layer's own embedding, of the keys (then values) that it lends or borrows, and of the last two parts. */
size_t sh_arch_row(const struct sh_arch *a);
size_t sh_arch_own_at(const struct sh_arch *a, int layer);
size_t sh_arch_lent_at(const struct sh_arch *a, int layer);
size_t sh_arch_late_at(const struct sh_arch *a);
size_t sh_arch_token_at(const struct sh_arch *a);
/* The layer's embeddings of n-grams; NULL: it has none. */
const struct sh_ngram_layer *sh_arch_ngrams(const struct sh_arch *a, int layer);
/* Does the layer use a shared block? The layer that has the block's tensors; the number of layers before that use
 * one. */
int sh_arch_shares(const struct sh_arch *a, int layer);
int sh_arch_block_layer(const struct sh_arch *a, int layer);
int sh_arch_block_number(const struct sh_arch *a, int layer);
void sh_arch_make_shared(struct sh_arch *a, int layer);

/* The number of channels that pass through the convolution of a recurrent layer; the size of a text's state there: the
 * last rows before the convolution [kernel - 1, channels], then the state of the rule or of the state space, n_v * d_k
 * * d_v. */
int sh_recurrent_channels(const struct sh_recurrent *r);
size_t sh_recurrent_state(const struct sh_recurrent *r);
/* The size of a text's whole state in a layer: that one and, after it, the last inputs of the convolution of n-grams
 * [kernel n - n, streams * d_model] and the last n - 1 tokens, plus 1 (0: the text began later). The most that a layer
 * has. */
size_t sh_arch_state(const struct sh_arch *a, int layer);
size_t sh_arch_most_state(const struct sh_arch *a);

/* The number of weights that a block's hyper-connections (hyper.c) take from a token's streams. */
int sh_hyper_weights(const struct sh_streams *s);

/* Does the layer rotate its queries and keys? */
int sh_arch_turns(const struct sh_arch *a, int layer);
void sh_arch_keep_still(struct sh_arch *a, int layer);
/* The layer has local_rope despite having no window. */
void sh_arch_turn_apart(struct sh_arch *a, int layer);
/* Are the layer's queries multiplied by factors that depend on their positions? */
int sh_arch_tempers(const struct sh_arch *a, int layer);

void sh_arch_keep_dense(struct sh_arch *a, int layer);
int sh_arch_cuts(const struct sh_arch *a, int layer);
void sh_arch_make_cut(struct sh_arch *a, int layer);
/* The limits of the layer's blocks of a kind; NULL: none. */
const struct sh_limits *sh_arch_limits(const struct sh_arch *a, int layer, enum sh_limited what);
void sh_arch_limit(struct sh_arch *a, int layer, enum sh_limited what);
/* The width of the widest feed-forward block, experts included. */
int sh_arch_widest_ff(const struct sh_arch *a);

/* Is a block's output multiplied by a number before it is added? By which number? */
int sh_arch_scales(const struct sh_arch *a);
float sh_arch_added_by(const struct sh_arch *a, enum sh_adding what);

/* Whether attention's output is f32 whatever the operands' type, because a norm or an elementwise product follows. */
int sh_arch_mixes_f32(const struct sh_arch *a);

/* Whether the output product reads something other than attention's output. */
int sh_arch_has_sub(const struct sh_arch *a);

/* The bits of enum sh_arch_flag, with SH_SHARED_LAYER and SH_EXPERT_LAYER as they apply to the layer. */
unsigned sh_arch_flags(const struct sh_arch *a, int layer);

/* The factor of the layer's products of queries and keys. */
float sh_arch_scale(const struct sh_arch *a, int layer);

/* The rotary parameters of the layer. */
const struct sh_rope *sh_arch_rope(const struct sh_arch *a, int layer);
/* Do the angles of a rotary scaling depend on the length of the text (dynamic, longrope)? */
int sh_arch_follows_length(const struct sh_arch *a);

/* ALiBi: the slope of each head, for free(); NULL: the model has none. */
float *sh_arch_slopes(const struct sh_arch *a);

#endif
