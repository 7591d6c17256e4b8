/* SPDX-License-Identifier: Apache-2.0 */
/* One layer of a transformer on a backend: its weights loaded, then hidden states sent through it. The caller decides
 * how long a layer's weights stay. The operations only queue: errors of the device come out of the backend's sync. */
#ifndef SH_MODEL_LAYER_H
#define SH_MODEL_LAYER_H

#include "kernels/backend.h"
#include "src/model/model.h"

struct sh_layer;                        /* the weights of one layer on the device            */

/* The number of bits to pass to the backend's `linear_bytes`: fewer than 16 if the backend keeps packed weights. */
int sh_layer_scratch_bits(const struct sh_backend *b, const struct sh_model *m, enum sh_type dtype, int weight_bits);

/* Loads (and checks for NaN) the layer's weights for products of `dtype`, kept in `weight_bits` bits (as by
 * sh_backend.weight_bits). If the backend keeps packed weights, these stay in the checkpoint, which must outlive the
 * layer, or are copied from it in blocks (sh_packed.blocks). The model's own pages of the layer are released. Experts
 * are read when a token asks for one. Several threads may load layers of one model. NULL: e says which tensor and
 * why. */
struct sh_layer *sh_layer_load(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, int layer,
                               enum sh_type dtype, int weight_bits, struct sh_err *e);
void sh_layer_drop(struct sh_layer *l);                         /* NULL is fine */

/* The layer keeps experts up to `room` bytes; others are read again whenever rows need them. At first it keeps all. */
void sh_experts_limit(const struct sh_layer *l, size_t room);

/* The layer stays: its matrices may be copied into the order of the backend's kernels (sh_backend.settle), experts
 * when they have been used often enough (`settles`: sh_props), and then leave the pages of their files. */
void sh_layer_settle(struct sh_layer *l, int settles);

/* Reads the experts that take memory of their own: all except those that products read in the mapped file. */
int sh_experts_load_copies(const struct sh_layer *l, struct sh_err *e);

/* Bytes that the experts of a layer take on the backend; 0 if it has none. */
size_t sh_experts_bytes(const struct sh_backend *b, const struct sh_model *m, int layer, enum sh_type dtype,
                        int weight_bits);

/* After runs: -1 if an expert could not be read; the layer's outputs since then are invalid. */
int sh_layer_failed(const struct sh_layer *l, struct sh_err *e);

/* The sinks of the layer's query heads, on the host: [n_head], as in struct sh_attend. NULL: none. */
const float *sh_layer_sinks(const struct sh_layer *l);

/* cos and sin of the rotary positions on the device, filled when a layer first needs them. */
struct sh_turns {
    void *cosine, *sine;                /* [rows, n_rot / 2] f32                             */
    int length;                         /* sh_rope_length that the tables were made for; 0: none yet */
    int first, last;                    /* positions that hold angles                        */
};

/* Device memory for the activations of up to `rows` tokens. After sh_layer_run q, k, v hold the layer's queries [rows,
 * n_head * d_head] and keys, values [rows, n_kv_head * d_head], f32, as used for the scores: after the model's norms
 * and rotation. */
struct sh_activations {
    const struct sh_backend *backend;
    struct sh_dev *device;
    const struct sh_arch *arch;
    enum sh_type dtype;
    int rows, positions;                /* positions: rows of the rotary tables              */
    void *x, *q, *k, *v, *mixed, *up;   /* x [rows, d_model], mixed [rows, q], up [rows, the widest d_ff]: dtype; */
                                        /* mixed: f32 where sh_arch_mixes_f32                */
    void *gate, *gated;                 /* f32, like up: the factors of a gated or normed block */
    void *block;                        /* [rows, d_model] f32: a block's output, if it is normed or scaled */
    void *sink;                         /* [rows, n_head] f32: the sinks' share of each row  */
    void *narrow, *key_bias;            /* f32, [rows, (n_head + 2 n_kv_head) * d_key], [rows, n_kv_head] */
    void *value, *value_factor;         /* f32: [rows, n_kv_head * d_value], values before they are padded; */
                                        /* [d_value], their factor                           */
    void *sub, *attn_gate;              /* [rows, q]: input of the output product, of dtype, if it is not `mixed`; */
                                        /* f32: factors of attention's output */
    void *mix_logits, *mix_row, *mix_share; /* of a mixture: f32 [rows, experts]; int32, f32 [rows * used] */
    void *latent_a, *latent_x, *latent_q, *latent_kv;   /* of latent attention: [rows, q_rank] f32 and dtype; */
                                        /* [rows, n_head * (d_nope + d_rope)] dtype; [rows, rank + d_rope] f32 */
    void *latent_v;                     /* [rows, n_head * d_v] f32: values that a gate multiplies */
    /* Of recurrent layers, in this order; f32: [rows, channels]; twice [rows, n_v * d_v]; [rows, n_v]; the strengths,
     * or a product's output that is multiplied or split; one text's state; of dtype: the input of the next product. */
    void *recur_x, *recur_z, *recur_out, *recur_a, *recur_b, *recur_state, *recur_y;
    /* Factors of columns, f32: [n_v * d_v + channels + n_v], of z, x (with b and c) and steps; [the widest d_ff]. */
    void *recur_factor, *gate_factor;
    /* Of streams (streams.c), in this order; f32: [rows, d_model] twice; [rows, streams * d_model];
     * [streams^2 + 2 streams, rows]; [rows, d_own] twice; of dtype: [rows, d_own], [rows, rank]. Of mixtures next to a
     * plain block: [rows, d_model] once in f32 and twice of dtype. */
    void *stream_h, *laurel, *stream_was, *stream_share, *own_gate, *own_in, *own_y, *laurel_y;
    void *next_to, *next_to_x, *next_to_by;
    void *stream_mix, *stream_low;      /* f32: [rows, streams * d_model]; [rows, streams.rank]   */
    void *ngram, *ngram_x;              /* [rows, ngrams.d]: f32; of dtype                        */
    void *pair, *adapted;               /* of shared blocks, of dtype: [rows, 2 d_model], [rows, rank] */
    void *norm_y, *norm_gate, *norm_low;    /* of norms with a gate, [rows, d_model] f32 twice; [rows, norm_rank] */
    /* Of experts of attention: int32, f32 [rows * used]; [rows, the wider of d_model and a set of heads] dtype and f32;
     * on the host, [used * experts + 1]: where the rows of each expert begin. */
    void *query_row, *query_share, *query_x, *query_y;
    int *query_first;
    void *hidden;                       /* the layer's input                                      */
    void *mix_x, *mix_out;              /* [rows, d_model]: an expert's input, of dtype; its output, f32 */
    void *latent_in, *latent_out;       /* [rows, mix.latent]: what experts read, of dtype; the sum of them, f32 */
    struct sh_turns turns[2];           /* rotary tables of arch->rope, arch->local_rope     */
    void *temper;                       /* [positions] f32: factors of queries (sh_arch.temper) */
    int tempered;                       /* whether temper is filled                          */
    void *logged;                       /* [rows, q] f32: queries times the logarithm (sh_arch.tempers_heads) */
    float *slopes;                      /* host, [n_head]; NULL: no ALiBi                    */
};

int sh_activations_new(struct sh_activations *a, const struct sh_backend *b, struct sh_dev *d,
                       const struct sh_arch *arch, int rows, enum sh_type dtype, struct sh_err *e);
/* Extends the rotary tables to positions below `positions`; without this call they end at `rows`. -1: `a` has been
 * freed. */
int sh_activations_reach(struct sh_activations *a, int positions, struct sh_err *e);
void sh_activations_free(struct sh_activations *a);
size_t sh_activations_bytes(const struct sh_arch *arch, int rows, enum sh_type dtype);

struct sh_own_attention;

/* Rotates q and k [n_rows, …] of the layer by their positions, which begin at first[sequence] of `own`, or at 0. */
void sh_activations_turn(struct sh_activations *a, int layer, int n_rows, int n_seq, const int *start,
                         const struct sh_own_attention *own);

/* Multiplies x by the factors of queries by position. */
void sh_activations_temper(struct sh_activations *a, struct sh_mat x, int n_seq, const int *start,
                           const struct sh_own_attention *own);

/* A struct sh_attend for `rows` tokens of a layer: shapes, window and types, without pointers, sequences and tap. */
struct sh_attend sh_layer_attend(const struct sh_arch *arch, int layer, int rows, enum sh_type dtype);

/* Attention of the caller's own, for rows that also attend to tokens before this call. */
struct sh_own_attention {
    const int *first;                   /* host, [n_seq]: position of each sequence's first row */
    const int *position;                /* [rows] of each row, on the device; NULL: not there    */
    int length;                         /* text length for rotary scalings that depend on it; longer texts: their own */
    /* Fills what->out from what->q, k and v; all on the device, operations may still be queued. */
    void (*attend)(void *to, int layer, const struct sh_attend *what);
    void *to;
    float *state;                       /* device: each sequence's state in recurrent layers (sh_arch_state) */
    int turns;                          /* 1: q and k come as they are before the rotation       */
};

/* Runs the layer: hidden [n, sh_arch_row] f32 on the device, with n_seq sequences at start[0..n_seq], becomes the input
 * of the next layer. tap may be NULL. attention_only: stop once the probabilities are out; hidden is left as it was.
 * own: the caller's attention in place of the backend's, or NULL. */
void sh_layer_run(const struct sh_layer *l, struct sh_activations *a, void *hidden, int n_seq, const int *start,
                  const struct sh_tap *tap, int attention_only, const struct sh_own_attention *own);

/* A tensor of the model on the device, checked for NaN: a matrix for products of `dtype`, a vector as f32, where 1 is
 * added to a norm's weight that is stored without it. *out is NULL if the model has no such tensor. */
int sh_layer_matrix(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, enum sh_role role, int layer,
                    enum sh_type dtype, struct sh_weight **out, struct sh_err *e);
int sh_layer_vector(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, enum sh_role role, int layer,
                    float **out, struct sh_err *e);

static inline struct sh_mat sh_dense(void *at, enum sh_type type, int rows, int cols)
{
    return (struct sh_mat){at, type, rows, cols, (size_t)cols};
}

/* For several streams: multiplies `from`, f32 [rows, d_model] (of any stride), by the matrix into `to`, dense, and
 * scales each row to the length of the same row of `like`. Waits for the device. */
void sh_streams_match(const struct sh_backend *b, struct sh_dev *d, const struct sh_weight *w, struct sh_mat from,
                      struct sh_mat like, struct sh_mat to);

/* Tokens to the input of layer 0: token embedding (scaled; projected when d_embed differs from d_model) plus the
 * learned positions, then normed, as far as the model has these steps. A struct sh_entry holds all weights that this
 * needs except the tables, which are read in place. */
struct sh_entry;
struct sh_entry *sh_entry_new(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, struct sh_err *e);
void sh_entry_free(struct sh_entry *n);                         /* NULL is fine */

/* hidden [start[n_seq], sh_arch_row] f32 on the device; first: position of each sequence's first row, NULL: 0.
 * -1: a token or a position that the model does not have; nothing is queued. */
int sh_entry_run(struct sh_entry *n, const int32_t *tokens, int n_seq, const int *start, const int *first,
                 void *hidden, struct sh_err *e);

/* As sh_entry_run, for one sequence from position 0 on, into hidden [n_tokens, sh_arch_row] on the host. */
int sh_embed(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, const int32_t *tokens, int n_tokens,
             float *hidden, struct sh_err *e);

/* The output head: hidden states after the last layer to logits. Final norm, projection to the
 * embedding's width, product with the head's matrix (the token embedding where the model is tied),
 * soft cap; as far as the model has these. */
struct sh_head;

/* Loads the head's weights (checked for NaN) for products of `dtype`, and allocates all its device memory, sized for
 * calls of about `rows` rows. NULL: e says which tensor and why. */
struct sh_head *sh_head_new(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, enum sh_type dtype,
                            int rows, struct sh_err *e);
void sh_head_free(struct sh_head *h);                           /* NULL is fine */

/* Logits of rows [first, first + rows) of hidden [.., sh_arch_row] f32 on the device, into logits [rows, n_vocab] on
 * the host; tokens that never come next (sh_arch_predicts) get -1e30. Waits for the device and reports its errors,
 * earlier ones included. */
int sh_head_run(struct sh_head *h, const void *hidden, int first, int rows, float *logits, struct sh_err *e);

/* The most rows in one pass; more rows take several passes. */
int sh_head_rows(const struct sh_head *h);

/* The most likely token of each of these rows, into out [rows] on the host: found on the device, without copying the
 * logits. Not available if the device memory is the host's or if logits are capped. */
int sh_head_can_choose(const struct sh_head *h);
int sh_head_choose(struct sh_head *h, const void *hidden, int first, int rows, struct sh_best *out, struct sh_err *e);

#endif
