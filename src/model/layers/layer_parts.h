/* SPDX-License-Identifier: Apache-2.0 */
/* What layer.c shares with the files that compute parts of a layer: its weights, products and norms. */
#ifndef SH_MODEL_LAYER_PARTS_H
#define SH_MODEL_LAYER_PARTS_H

#include "src/model/layers/layer.h"

struct sh_expert {                      /* biases NULL: none                                      */
    struct sh_weight *gate, *up, *down;
    float *gate_bias, *up_bias, *down_bias;
};

struct sh_hyper {                       /* product and down NULL: none                            */
    struct sh_weight *product;
    float *base, *scale;                /* host                                                   */
    struct sh_weight *down, *up, *add;  /* stream_mixer.c; add NULL: nothing is added             */
    float *norm;                        /* … device, over the number of streams                   */
};

struct sh_layer {
    int index;
    const struct sh_backend *b;
    struct sh_dev *d;
    struct sh_model *m;
    enum sh_type dtype;
    int weight_bits;
    struct sh_weight *matrix[SH_N_ROLE];
    float *vector[SH_N_ROLE];
    float knob[4];                      /* parameters of the activation, if it has any            */
    struct sh_experts *experts;         /* NULL: the layer has none                               */
    int n_expert;
    struct sh_latent_head { struct sh_weight *key, *value; } *latent;   /* [n_latent]: of each head */
    int n_latent;
    struct sh_weight **query_expert;    /* [n_query_expert, 2]: matrices of queries, of outputs   */
    int n_query_expert;
    struct sh_weight **block_gate;      /* [n_block_gate, 2]: matrices of decays, of inputs (SH_GATED_LRU) */
    int n_block_gate;
    float *attention_bias, *mixture_bias;       /* host, [d_model]: SH_ATTN_MIX_B, SH_MIX_B; NULL: none */
    float *sinks;                       /* host, [n_head]; NULL: none                             */
    float lambda, *differential;        /* device, [d_head]; NULL: no differential attention      */
    float *query_log, *query_kept;      /* device, [n_head * d_head]; NULL: none (head_temper.c)  */
    float *choice, *expert_scale;       /* host, [n_expert]: SH_ROUTER_CHOICE, SH_EXPERT_SCALE; NULL: none */
    float *predict, *correct;           /* host: SH_ALTUP_PREDICT, SH_ALTUP_CORRECT; NULL: none   */
    float scale;                        /* factor of the layer's output: SH_LAYER_SCALE, or 1     */
    struct sh_hyper hyper[2];           /* before attention, before the feed-forward block        */
    struct sh_layer_ngrams *ngrams;     /* NULL: none (ngrams.c)                                  */
};

/* sh_layer_matrix for one tensor of a numbered role. is_sound: it need not be checked for NaN. *is_mapped: products
 * read the tensor in the mapped file; may be NULL. */
int sh_layer_numbered(const struct sh_layer *l, enum sh_role role, int number, int is_sound, struct sh_weight **out,
                      int *is_mapped, struct sh_err *e);

/* Whether products read a numbered role in the mapped file: codes, or 16-bit numbers for products in f32. */
int sh_layer_maps(const struct sh_layer *l, enum sh_role role);

/* Each column of x, f32, times its factor (device); NULL: nothing. */
void sh_layer_scale(const struct sh_layer *l, struct sh_mat x, const float *factor);

/* Several products of one x. */
void sh_layer_linears(const struct sh_layer *l, const struct sh_linear *a, int n);

/* Reads the learned factors of nGPT (ngpt.c). What a factor is when it multiplies. */
int sh_ngpt_load(struct sh_layer *l, struct sh_model *m, struct sh_err *e);
int sh_ngpt_factor(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, enum sh_role role, int layer,
                   float **out, struct sh_err *e);

/* After a layer: what follows if a section of layers that runs several times begins next (loop.c). */
void sh_loop_end(const struct sh_layer *l, const struct sh_activations *a, void *hidden, struct sh_mat h);

/* x = the norm of h that a block reads, maybe with a gate (norm_rank). */
void sh_block_norm(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat x, struct sh_mat h,
                   enum sh_role w, enum sh_role bias);
/* SH_NORM_TAKEN: replaces h by its norm, to which the block's output will be added; with SH_ATTN_KEEP or SH_MLP_KEEP,
 * by the norm times these factors. */
void sh_block_take(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat h, enum sh_adding what);
/* x = the input of the feed-forward block, from h, to which attention has been added. */
void sh_block_between(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat x, struct sh_mat h);

/* out = act(gate x) * (up x), or act(up x); the factors are kept in a->gate and a->gated. */
void sh_layer_feed(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat out, struct sh_mat x,
                   const struct sh_expert *w, enum sh_limited what);
/* Applies the gate's activation and the limits of both factors; only their product is left to do. */
void sh_limits_apply(const struct sh_layer *l, const struct sh_limits *limits, struct sh_gate *gate);

/* Prepares the experts of a layer, none of them read yet, and what routing needs. Returns 0 also if it has no
 * experts. */
int sh_experts_new(struct sh_layer *l, struct sh_model *m, struct sh_err *e);
void sh_experts_drop(struct sh_layer *l);
/* The numbers of the experts in the order of the file, in which callers should ask for them. */
const int *sh_experts_order(const struct sh_layer *l);
/* An expert for use until sh_experts_done; NULL: it cannot be read (sh_layer_failed). next: the expert that the caller
 * will ask for next, or -1. */
const struct sh_expert *sh_experts_get(const struct sh_layer *l, int number, int next);
void sh_experts_done(const struct sh_layer *l, int number);
void sh_experts_settle(const struct sh_layer *l, int settles);  /* each after its use (sh_layer_settle) */

/* For mixtures whose router, or whose experts, read the layer's input h: computes the router's products, or the
 * experts' norm, before h changes; x is scratch. */
void sh_mixture_begin(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat x, struct sh_mat h);
/* out (+)= the experts' output for x; the router reads the rows `by`. add 0: the first output replaces the content of
 * out. */
void sh_mixture_run(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat out, struct sh_mat x,
                    struct sh_mat by, int add);

/* Of two layers, the one with experts keeps their output for x; the next one, without experts, adds it to h. */
void sh_mixture_late(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat h, struct sh_mat x);

/* A part of the rows that go from layer to layer (sh_arch_row): `cols` numbers from `at` on. */
struct sh_mat sh_layer_part(const struct sh_arch *c, void *hidden, int rows, size_t at, int cols);

/* The `used` experts of each row, the best first, and their weights, [rows, used]; choice: SH_ROUTER_CHOICE or NULL. */
void sh_mixture_choose(const struct sh_arch *c, const float *choice, const float *logits, int rows, int *chosen,
                       float *weight);
/* Sets each row of `out`, f32 and dense, to `row` (host); NULL: to zeros. */
void sh_layer_fill(const struct sh_layer *l, struct sh_mat out, const float *row);
/* A vector of the layer on the host, for free(); *out is NULL if the model has none. */
int sh_layer_read(struct sh_layer *l, struct sh_model *m, enum sh_role role, float **out, struct sh_err *e);
/* Reads the parameters of the activation. */
int sh_layer_read_knobs(struct sh_layer *l, struct sh_model *m, struct sh_err *e);

/* out (+)= act(x w^T + bias) with the layer's own w and bias (SH_N_ROLE: none). */
void sh_layer_linear(const struct sh_layer *l, struct sh_mat out, struct sh_mat x, enum sh_role w, enum sh_role bias,
                     enum sh_act act, int add);
/* out (+)= the model's norm of x, by the layer's own w and bias (SH_N_ROLE: none). */
void sh_layer_norm(const struct sh_layer *l, const struct sh_arch *c, struct sh_mat out, struct sh_mat x,
                   enum sh_role w, enum sh_role bias, int add);

/* Columns [col, col + cols) of m. */
static inline struct sh_mat sh_columns(struct sh_mat m, int col, int cols)
{
    return (struct sh_mat){(char *)m.at + (size_t)col * sh_type_bytes(m.type), m.type, m.rows, cols, m.stride};
}

/* Columns [col, col + cols) of each of `parts` equal parts of the rows of m, dense, as one matrix. */
static inline struct sh_mat sh_columns_of(struct sh_mat m, int parts, int col, int cols)
{
    int width = m.cols / parts;
    return (struct sh_mat){(char *)m.at + (size_t)col * sh_type_bytes(m.type), m.type, m.rows * parts, cols,
                           (size_t)width};
}

/* Values narrower than keys. made: where their product writes them; widen: pads them into `v`, as wide as keys; narrow:
 * cuts attention's output `mixed` back to their width, in a->sub. In other models made returns v, and widen does
 * nothing. */
struct sh_mat sh_values_made(const struct sh_activations *a, struct sh_mat v);
void sh_values_widen(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat v);
struct sh_mat sh_values_narrow(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat mixed);

/* Differential attention. load: the layer's tensors for it; project: queries, keys and values of x, not yet rotated;
 * finish: the input of the output product, from attention's output `mixed`, which is overwritten. */
int sh_differential_load(struct sh_layer *l, struct sh_model *m, struct sh_err *e);
void sh_differential_project(const struct sh_layer *l, const struct sh_activations *a, const struct sh_attend *attend,
                             struct sh_mat x);
struct sh_mat sh_differential_finish(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat mixed);

/* Queries scaled by head and by the logarithm of the position (head_temper.c): loads the layer's factors; scales q,
 * rotated or not. */
int sh_head_temper_load(struct sh_layer *l, struct sh_model *m, struct sh_err *e);
void sh_head_temper_run(const struct sh_layer *l, struct sh_activations *a, struct sh_mat q, int n_seq,
                        const int *start, const struct sh_own_attention *own);

/* Keys with a number that is added to their scores: queries, keys and values of x, not yet rotated. */
void sh_key_bias_project(const struct sh_layer *l, const struct sh_activations *a, const struct sh_attend *attend,
                         struct sh_mat x);

/* Attention whose queries come from experts. project: queries, keys and values of x; finish: out = the experts' output
 * for attention's output `mixed`. */
int sh_attention_experts_load(struct sh_layer *l, struct sh_model *m, struct sh_err *e);
void sh_attention_experts_drop(struct sh_layer *l);
void sh_attention_experts_project(const struct sh_layer *l, const struct sh_activations *a,
                                  const struct sh_attend *attend, struct sh_mat x);
void sh_attention_experts_finish(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat out,
                                 struct sh_mat mixed);

/* Several streams, and the layers' own embeddings. begin returns the stream that the layer works on; end spreads the
 * result h over all streams; undo restores the streams as they were before begin. */
int sh_streams_load(struct sh_layer *l, struct sh_model *m, struct sh_err *e);
void sh_streams_drop(struct sh_layer *l);
struct sh_mat sh_streams_begin(const struct sh_layer *l, const struct sh_activations *a, void *hidden, int rows);
void sh_streams_undo(const struct sh_layer *l, const struct sh_activations *a, void *hidden, int rows);
void sh_streams_end(const struct sh_layer *l, const struct sh_activations *a, void *hidden, struct sh_mat h);
/* The path next to attention. run: computes it from x, attention's input; join: adds it to h, to which attention has
 * been added. */
void sh_laurel_run(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat x);
void sh_laurel_join(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat h);

/* Loads the tensors of hyper-connections: the three roles from `first` on. */
int sh_hyper_load(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, enum sh_role first, int layer,
                  struct sh_hyper *out, struct sh_err *e);
void sh_hyper_drop(const struct sh_backend *b, struct sh_dev *d, struct sh_hyper *h);
/* out = the weighted sum of the streams [rows, n * d_model], which do not change. The weights are left in `share`; with
 * `both`, also those of the block's output and of what mixes the streams. */
struct sh_hyper_place {
    const struct sh_backend *b;
    struct sh_dev *d;
    const struct sh_arch *arch;
    void *wide, *share;                 /* f32, [rows, n * d_model] and [rows, n or weights]      */
    void *mix, *low;                    /* stream_mixer.c: f32, like wide; [rows, rank]           */
};
struct sh_hyper_place sh_hyper_place(const struct sh_layer *l, const struct sh_activations *a);
void sh_hyper_join(const struct sh_hyper *y, const struct sh_hyper_place *p, struct sh_mat out, struct sh_mat streams,
                   int both);
/* begin: the input of a block of the layer; add: adds the block's output to all streams. */
struct sh_mat sh_hyper_begin(const struct sh_layer *l, const struct sh_activations *a, void *hidden, int rows,
                             int is_feed);
void sh_hyper_add(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat block);

/* The form of low rank. load: the tensors of the roles from `first` on; join: as sh_hyper_join; norm: each stream of x
 * [rows, n * d_model], dense, has weights of its own. */
int sh_mixer_load(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, enum sh_role first, int layer,
                  struct sh_hyper *out, struct sh_err *e);
void sh_mixer_join(const struct sh_hyper *y, const struct sh_hyper_place *p, struct sh_mat out, struct sh_mat streams);
void sh_mixer_norm(const struct sh_hyper_place *p, struct sh_mat out, struct sh_mat x, const float *weight);

/* Embeddings of n-grams, where the layer has any. run: adds them to all streams; state: as in sh_recurrent_run.
 * failed: -1 if rows of the table could not be read. */
int sh_ngrams_load(struct sh_layer *l, struct sh_model *m, struct sh_err *e);
void sh_ngrams_drop(struct sh_layer *l);
void sh_ngrams_run(const struct sh_layer *l, const struct sh_activations *a, void *hidden, int n_seq, const int *start,
                   float *state);
int sh_ngrams_failed(const struct sh_layer *l, struct sh_err *e);

/* Takes the keys and values that the layer borrows from the row of each token, or stores those that it lends there. */
void sh_streams_exchange(const struct sh_layer *l, const struct sh_activations *a, const struct sh_attend *attend);

/* Shared blocks. begin: attention's input, [rows, 2 d_model]; end: x, the input of the recurrence, from attention's
 * output `mixed`. adapt: adds the adapters' part to queries, keys and values of x; adapt_feed: to the factors of a
 * feed-forward block. */
struct sh_mat sh_shared_begin(const struct sh_layer *l, const struct sh_activations *a, int rows);
void sh_shared_end(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat h, struct sh_mat x,
                   struct sh_mat mixed);
void sh_shared_adapt(const struct sh_layer *l, const struct sh_activations *a, const struct sh_attend *attend,
                     struct sh_mat x);
void sh_shared_adapt_feed(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat gate,
                          struct sh_mat up, struct sh_mat x);

/* Loads the tensors of a recurrent layer that are not loaded like the others: the convolution, and gates of blocks. */
int sh_recurrent_load(struct sh_layer *l, struct sh_model *m, struct sh_err *e);
void sh_recurrent_drop(struct sh_layer *l);
/* Returns the input of a recurrent layer's last product, [rows, n_v * d_v]. own: it has the state of each sequence,
 * which is read and written; NULL: all sequences begin here. */
struct sh_mat sh_recurrent_run(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat x, int n_seq,
                               const int *start, const struct sh_own_attention *own);

/* Loads the tensors of latent attention that are not loaded like the others: those that make its keys and values. */
int sh_latent_load(struct sh_layer *l, struct sh_model *m, enum sh_type dtype, struct sh_err *e);
void sh_latent_drop(struct sh_layer *l);
/* Queries [rows, n_head * d_head] and keys [rows, d_head] of x, not yet rotated. */
void sh_latent_project(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat q, struct sh_mat k,
                       struct sh_mat x);
/* out [rows, n_head * d_v]: the heads' values, from attention's output `mixed`. */
void sh_latent_values(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat out,
                      struct sh_mat mixed);

#endif
