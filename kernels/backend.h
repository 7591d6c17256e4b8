/* SPDX-License-Identifier: Apache-2.0 */
/* The only seam between the models and the hardware. A backend is one constant table of operations over memory that it
 * owns; the forward pass is written once against this table, and every backend has every operation.
 *
 * Memory: `alloc` gives device memory (for the CPU plain host memory), `put` and `get` copy. A struct sh_mat is a view
 * and never owns what it points at. Pointers in the structs below are device memory unless they say "host". Weights are
 * handed over once with `weight`, which converts them to the layout that the backend's products want.
 *
 * Errors: operations only queue work and return nothing. The first failure sticks to the device, later operations do
 * nothing, and `sync` reports it. So the forward pass has no error branches.
 *
 * Threads: operations, `put` and `get` among them, come from one thread; another one may go on after a `sync` or a
 * `get`. `alloc`, `release`, `weight`, `vector` and `drop` may run next to the operations of another thread, `weight`
 * and `vector` in one thread at a time: the next layer's weights are on their way while this one computes.
 *
 * Types: the residual stream, q, k, v and biases are f32. The other operands of products (`x` of linear, `out` of norm,
 * attend, gate and of linears that feed a product) are all f32, all f16 or all bf16. Products and softmax sums
 * accumulate in f32 whatever the types. */
#ifndef SH_KERNELS_BACKEND_H
#define SH_KERNELS_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/packed.h"
#include "kernels/slots.h"
#include "kernels/weight_bits.h"
#include "src/base/err.h"
#include "src/base/num.h"
#include "src/base/row_figures.h"
#include "src/base/stages.h"

#define SH_BACKEND_ABI 25

struct sh_dev;                          /* an opened device; the backend's own struct              */
struct sh_weight;                       /* a matrix in the backend's own layout                    */

struct sh_mat {                         /* row-major view                                          */
    void *at;
    enum sh_type type;
    int rows, cols;
    size_t stride;                      /* elements from one row to the next                       */
};

enum sh_act {
    SH_ACT_NONE, SH_ACT_RELU, SH_ACT_GELU, SH_ACT_GELU_TANH, SH_ACT_SILU,
    SH_ACT_RELU2,                       /* relu(x)^2                                               */
    SH_ACT_SIGMOID,
    SH_ACT_CLIP,                        /* of gate alone, with its `knob`: within [-knob[0], knob[0]] */
    SH_ACT_XIELU,                       /* the same (arXiv 2411.13010): knob = a+, a-, b, eps; x > 0: a+ x^2 + b x; */
                                        /* else a- (expm1(min(x, eps)) - x) + b x                  */
    SH_ACT_CLAMPED,                     /* the same (gpt-oss): g = min(x, knob[0]); g sigmoid(knob[1] g) times 1 more */
                                        /* than `up`, which is kept within [-knob[0], knob[0]]     */
    SH_ACT_SOFTPLUS                     /* of gate alone: ln(1 + e^x)                              */
};

/* out[i] = scale * table[id[i]] (+ position_table[position[i]]). Tables stay in host memory
 * (the mapped checkpoint): only the rows that are asked for travel. */
struct sh_embed {
    struct sh_mat out;                  /* f32 [n, width]                                          */
    const void *table;                  /* host, [vocabulary, width], dense                        */
    const int32_t *id, *position;       /* host, [n], checked by the caller                        */
    const void *position_table;         /* host, [positions, width], dense; NULL: none             */
    enum sh_type type, position_type;
    float scale;
};

/* out[i] (+)= act(x w^T + bias): x [n, in], w [out, in], bias [out] f32 or NULL. */
struct sh_linear {
    struct sh_mat out, x;
    const struct sh_weight *w;
    const float *bias;
    enum sh_act act;
    int add;                            /* 1: add to what `out` (f32) holds                        */
};

enum sh_norm_kind {
    SH_NORM_LAYER,                      /* (x - mean) / sqrt(var + eps) * weight + bias            */
    SH_NORM_RMS,                        /* x / sqrt(mean of squares + eps) * weight + bias         */
    SH_NORM_SCALE,                      /* x * weight + bias                                       */
    SH_NORM_CUT,                        /* max(0, x - mean - eps * sqrt(var)) * weight + bias      */
    SH_NORM_LENGTH                      /* x / sqrt(sum of squares + eps) * weight + bias          */
};

/* Norms each row. To norm every head of q or k, pass the view [rows * heads, d_head]. */
struct sh_norm {
    struct sh_mat out, x;               /* x is f32; out may be x itself                           */
    const float *weight, *bias;         /* [cols]; NULL: 1 and 0                                   */
    int n_own;                          /* rows in turn have so many weights [n_own, cols] and biases; 0: one */
    float eps;
    enum sh_norm_kind kind;
    int add;                            /* 1: add to what `out` (f32) holds                        */
};

/* Rotary positions, in place, on the first n_rot elements of each head of x f32 [rows, heads * d_head]:
 * elements j and j + n_rot / 2, (a, b), become (a cos - b sin, b cos + a sin). The caller's tables hold the scaled
 * frequencies. */
struct sh_rotary {
    struct sh_mat x;
    int d_head, n_rot;                  /* n_rot even, <= d_head; 0: nothing turns                 */
    const float *cos, *sin;             /* [positions, n_rot / 2]                                  */
    const float *factor;                /* [positions]: x is multiplied by it, too; NULL: 1        */
    int n_seq;
    const int *start;                   /* host, [n_seq + 1]: the rows of each sequence            */
    const int *first;                   /* host, [n_seq]: position of each sequence's first row; NULL: 0 */
    const int *position;                /* [rows]: of each row, instead of start and first; or NULL */
};

/* out = act(gate) * up, elementwise; gate and up f32, dense like out, which may be one of them. up.at NULL: 1. A gate
 * with fewer columns has one for so many neighbouring columns of out (a head); then it is not out. */
struct sh_gate {
    struct sh_mat out, gate, up;
    enum sh_act act;
    float knob[4];                      /* numbers of acts that have some                          */
};

/* out[i] = share[i] * x[row[i]]; both of one type. */
struct sh_gather {
    struct sh_mat out, x;
    const int *row;                     /* [out.rows]                                              */
    const float *share;                 /* [out.rows]; NULL: 1                                     */
};

/* out[row[i]] += by * share[i] * x[i]; both f32. */
struct sh_scatter {
    struct sh_mat out, x;
    const int *row;                     /* [x.rows], each once; NULL: i                            */
    const float *share;                 /* [x.rows]; NULL: 1                                       */
    float by;
};

/* How an attend hands out recorded attention: rows one after another, for query t the scores of the keys it sees, from
 * max(0, t + 1 - window) (0 without a window) to t. See src/base/log8.h for the number formats. SH_PACK_SETS hands out
 * a struct sh_row_sets instead. */
enum sh_pack { SH_PACK_F32, SH_PACK_F16, SH_PACK_LOG8, SH_PACK_SETS };

/* What statistics need of a row of n scores, instead of the scores themselves: for each lane the set of keys above the
 * lane's limit, the set of low keys, and a few figures. */
struct sh_lane {
    double value;                       /* limit: value / n with per_key, else value, in both      */
    int per_key;                        /* cases rounded down to f32 (sh_round_down)               */
};

#define SH_MAX_LANES 16

struct sh_lanes {
    int n;
    struct sh_lane lane[SH_MAX_LANES];
    int values;                         /* 1: the scores that are not low are wanted too           */
};

struct sh_row_sets {                    /* n_rows rows of one head                                 */
    int first_word, n_word;             /* of every set: the same for all these rows               */
    /* [n_rows][lanes + 1][n_word]: bit j % 64 of word j / 64 - first_word is key j, set when score > limit; in the last
     * set when score < 1 / n (sh_round_up). Keys that the row does not see are in no set. */
    const uint64_t *bits;
    const struct sh_row_figures *figures;   /* [n_rows]; low_mass only with `values`               */
    const float *value;                 /* with `values`: the scores that are not low, keys        */
};                                      /* ascending, rows one after another; else NULL            */

struct sh_tap {
    enum sh_pack pack;
    const struct sh_lanes *lanes;       /* of SH_PACK_SETS; host, [n_seq]: each sequence its own   */
    /* Rows [first_row, first_row + n_rows) of one head of one sequence of the call. For one (sequence, head) rows
     * arrive in order and from one thread; different ones arrive at the same time, at the latest before `sync` returns.
     * `packed` is host memory, valid during the call only. NULL: nothing is recorded. */
    void (*rows)(void *to, int sequence, int head, int first_row, int n_rows, const void *packed);
    void *to;
    const unsigned char *wanted;        /* host, [n_seq]: 0 leaves a sequence out; NULL: all wanted */
    const struct sh_tap *also;          /* NULL; or, if this tap packs scores, another one that       */
};                                      /* gets sets of the same rows, each time after the scores */

/* Causal attention of n_seq sequences laid one after another: sequence s has the rows [start[s], start[s + 1]) of q, k,
 * v and out. Query i of a sequence sees its keys j <= i, with a window only those with i - j < window. The score before
 * softmax is
 *     cap(scale * q k) + slopes[head] * (j - i),  cap(x) = softcap * tanh(x / softcap), or x.
 * Falcon's form of ALiBi rounds the slopes, and the slopes times the key's position j, to bf16, and scales them as it
 * scales q k: cap(scale * q k) + scale * bf16(bf16(slopes[head]) * j). */
struct sh_attend {
    struct sh_mat q, out;               /* [rows, n_head * d_head]; q f32. out.at NULL: not wanted */
    struct sh_mat k, v;                 /* [rows, n_kv_head * d_head] f32                          */
    int n_head, n_kv_head, d_head;      /* head h uses KV head h / (n_head / n_kv_head)            */
    int window;                         /* 0: none                                                 */
    float scale, softcap;               /* softcap 0: none                                         */
    const float *slopes;                /* host, [n_head] (ALiBi); NULL: none                      */
    int rounds_slopes;                  /* 1: Falcon's form                                        */
    /* host, [n_head]: a further score of every row, which takes part in the softmax, has no key and no value and is in
     * no row that is handed out, so that a row sums to less than 1; NULL: none */
    const float *sinks;
    float *mass;                        /* [rows, n_head]: what the sinks take of each row; NULL: not wanted */
    int chunk;                          /* 1: a query sees no key before the last multiple of the window    */
    int n_seq;
    const int *start;                   /* host, [n_seq + 1]                                       */
    struct sh_tap tap;
};

/* What layers without attention carry from token to token. The sequences of a call lie one after another; `state`, on
 * the device, is read and written: a sequence's begins state_step numbers after that of the one before. All 0 where a
 * text begins. */

/* A causal convolution over the last `kernel` rows, each channel by itself, in place: row t of a channel becomes
 * act(bias + sum over j < kernel of weight[j] x[t - kernel + 1 + j]). */
enum { SH_CONV_TAPS = 16 };             /* the most of `kernel`                                    */

struct sh_conv {
    struct sh_mat x;                    /* f32 [rows, channels]                                    */
    const float *weight, *bias;         /* [channels, kernel]; [channels], NULL: 0                 */
    enum sh_act act;                    /* SH_ACT_NONE or SH_ACT_SILU                              */
    int kernel;
    int n_seq;
    const int *start;                   /* host, [n_seq + 1]                                       */
    float *state;                       /* the last rows of x as it was, [kernel - 1, channels]    */
    size_t state_step;
};

/* Linear attention by the gated delta rule (arXiv 2412.06464). x's channels are queries [n_k, d_k], keys [n_k, d_k] and
 * values [n_v, d_v]. For each value head, with queries and keys of length 1 (queries over sqrt(d_k)):
 *     S = exp(-exp(log_a) softplus(a + step)) S;  S += k (x) (v - S^T k) strength sigmoid(b);  out = S^T q
 * With own_decays each of the d_k rows of S has its own a and step (Kimi Delta Attention, arXiv 2510.26692). With
 * `least` below 0 the exponent of the decay is least sigmoid(exp(log_a) (a + step)) instead. */
enum { SH_DELTA_KEY = 256 };            /* the most of d_k                                         */

struct sh_delta {
    struct sh_mat out, x;               /* f32 [rows, n_v * d_v], [rows, channels]; both dense     */
    const float *a, *b;                 /* [rows, n_v]; own_decays: a [rows, n_v * d_k]            */
    const float *log_a, *step;          /* [n_v]; own_decays: step [n_v * d_k]                     */
    int n_k, n_v, d_k, d_v, own_decays;
    int in_turns;                       /* value head h uses key head h % n_k, else h / (n_v / n_k) */
    float strength, least;
    int n_seq;
    const int *start;                   /* host, [n_seq + 1]                                       */
    float *state;                       /* S [n_v, d_k, d_v]                                       */
    size_t state_step;
};

/* A selective state space (Mamba, arXiv 2312.00752; Mamba-2, arXiv 2405.21060). For channel i of head h, whose group
 * has b and c, and each number n of its state, with dt = softplus(dt + dt_bias) within [least, most]:
 *     S[n] = exp(-exp(log_a) dt) S[n] + dt x b[n];  out = sum over n of c[n] S[n] + skip x */
struct sh_scan {
    struct sh_mat out, x;               /* f32 [rows, n_head * d_head]                             */
    struct sh_mat b, c;                 /* f32 [rows, n_group * d_state]; head h: group h / (n_head / n_group) */
    struct sh_mat dt;                   /* f32 [rows, n_head]                                      */
    const float *log_a;                 /* [n_head]; with own_decays [n_head, d_state]             */
    const float *dt_bias, *skip;        /* [n_head]                                                */
    int n_head, d_head, n_group, d_state, own_decays;
    float least, most;
    int n_seq;
    const int *start;                   /* host, [n_seq + 1]                                       */
    float *state;                       /* S [d_state, n_head * d_head]                            */
    size_t state_step;
};

/* A gated linear recurrence (RG-LRU, arXiv 2402.19427), each channel by itself:
 *     u = -8 softplus(rate) sigmoid(a);  S = exp(u) S + sqrt(1 - exp(2 u)) sigmoid(b) x;  out = S
 * At position 0 of a text S = sigmoid(b) x. */
struct sh_lru {
    struct sh_mat out, x, a, b;         /* f32 [rows, channels]                                    */
    const float *rate;                  /* [channels]                                              */
    int n_seq;
    const int *start;                   /* host, [n_seq + 1]                                       */
    const int *first, *position;        /* as in struct sh_rotary                                  */
    float *state;                       /* S [channels]                                            */
    size_t state_step;
};

struct sh_best {                        /* of a row: its greatest number, the first of equal ones; if some are */
    float value;                        /* NaN or infinitely large, the first of those            */
    int32_t column;
};

struct sh_open {                        /* what to open                                            */
    int ordinal, n_threads;             /* n_threads: host threads it may keep busy                */
    size_t memory_bytes;                /* of the device that it may take; 0: all that is free     */
    struct sh_stages *stages;           /* where operations count their time, or NULL; outlives the device */
    int x_bits;                         /* of rows that meet packed weights whose blocks are codes                 */
                                        /* (sh_packed_is_code): 0 or 32: f32; 16: where it is faster, integers of 16 */
                                        /* bits; 8: always those of round_x.h                     */
};

struct sh_props {
    char chip[128];                     /* "Intel Xeon …, AVX-512 kernels"                         */
    int native_bf16;                    /* products of bf16 are faster than those of f32           */
    int is_host;                        /* device memory is host memory: nothing need be copied    */
    int settles;                        /* with x_bits 16 or 8: the use of a matrix in codes at which `settle`, a */
                                        /* copy, pays: 1, the first; 0: it never does             */
    size_t memory_bytes;                /* that alloc and weight can still take; 0: not known      */
    size_t taken_bytes;                 /* that are in use, the backend's own included; 0: not known */
    size_t peak_bytes;                  /* the most that was at once; 0: not known                 */
    size_t used_bytes;                  /* the most by the device's own count, asked at each allocation and now: with */
                                        /* what libraries, kernels and other programs took meanwhile; 0: not known */
    int rows_at_once;                   /* tokens that should go through an operation together     */
    char why_eager[160];                /* why operations are no longer recorded as graphs (slots.h); empty: they are */
};

struct sh_backend {
    unsigned abi;                       /* SH_BACKEND_ABI; the loader refuses others               */
    const char *name, *summary;
    int   (*count)(struct sh_err *e);                                     /* devices; -1: e says why */
    struct sh_dev *(*open)(const struct sh_open *o, struct sh_err *e);    /* NULL: e says why not  */
    void  (*close)(struct sh_dev *d);                                     /* NULL is fine          */
    void  (*props)(const struct sh_dev *d, struct sh_props *out);
    void *(*alloc)(struct sh_dev *d, size_t bytes, struct sh_err *e);     /* NULL: does not fit    */
    void  (*release)(struct sh_dev *d, void *at);                         /* NULL is fine          */
    /* On return the host memory may be reused (put) or read (get, which runs after the queued operations). A put waits
     * for queued operations only if the memory in which puts are staged is full. */
    void  (*put)(struct sh_dev *d, void *to, const void *from, size_t bytes);
    void  (*get)(struct sh_dev *d, void *to, const void *from, size_t bytes);
    /* A host matrix [rows, cols] of type `from`, kept for products whose operands have type `to`. */
    struct sh_weight *(*weight)(struct sh_dev *d, const void *at, enum sh_type from, int rows, int cols,
                                enum sh_type to, struct sh_err *e);
    /* Matrices given to `weight` from now on are kept as codes of 8 or 4 bits (weight_bits.h), which products convert
     * back to the operands' type; with 16, as on a new device, they are kept in that type. Not while another thread is
     * in `weight`. */
    void  (*weight_bits)(struct sh_dev *d, int bits);
    /* n numbers of the host as device memory for `bias` and `weight` of linear and norm, and for get; given back
     * with `release`. On return the host memory may be reused. */
    float *(*vector)(struct sh_dev *d, const float *from, size_t n, struct sh_err *e);
    void  (*drop)(struct sh_dev *d, struct sh_weight *w);                 /* NULL is fine          */
    /* The most device memory that an attend with these shapes, types and tap takes for itself (of its pointers, only
     * `start` and those of the tap are read). The memory is kept for the next attend. */
    size_t (*attend_bytes)(const struct sh_dev *d, const struct sh_attend *a);
    /* The same for a linear of `rows` rows with a weight [out, in] for operands of the type, kept in `bits`. */
    size_t (*linear_bytes)(const struct sh_dev *d, int rows, int in, int out, enum sh_type type, int bits);
    void  (*embed) (struct sh_dev *d, const struct sh_embed *a);
    void  (*linear)(struct sh_dev *d, const struct sh_linear *a);
    void  (*norm)  (struct sh_dev *d, const struct sh_norm *a);
    void  (*cast)  (struct sh_dev *d, struct sh_mat out, struct sh_mat x);  /* of any types and strides */
    void  (*rotary)(struct sh_dev *d, const struct sh_rotary *a);
    void  (*gate)  (struct sh_dev *d, const struct sh_gate *a);
    void  (*gather)(struct sh_dev *d, const struct sh_gather *a);
    void  (*scatter)(struct sh_dev *d, const struct sh_scatter *a);
    void  (*attend)(struct sh_dev *d, const struct sh_attend *a);
    void  (*conv)  (struct sh_dev *d, const struct sh_conv *a);
    void  (*delta) (struct sh_dev *d, const struct sh_delta *a);
    void  (*scan)  (struct sh_dev *d, const struct sh_scan *a);
    void  (*lru)   (struct sh_dev *d, const struct sh_lru *a);
    int   (*sync)(struct sh_dev *d, struct sh_err *e);      /* -1: e says what failed first              */
    const struct sh_slots_ops *slots;   /* NULL: device memory is host memory, where the engine has its own cache */
    const struct sh_graph_ops *graph;   /* NULL: operations cost the host nothing to speak of                     */
    /* n products of the same x, none of which reads what another one writes. NULL: one by one is as fast. */
    void  (*linears)(struct sh_dev *d, const struct sh_linear *a, int n);
    /* Of each row of x, f32. out: device memory, [rows]. NULL: device memory is host memory. */
    void  (*best)(struct sh_dev *d, struct sh_best *out, struct sh_mat x);
    /* A matrix in the code of its checkpoint, for products whose operands have type `to`: kept as it is, or as blocks
     * (sh_packed.blocks), or, after weight_bits, in codes of these. NULL: the backend keeps no such code; `weight`
     * takes the numbers. */
    struct sh_weight *(*packed)(struct sh_dev *d, const struct sh_packed *p, enum sh_type to, struct sh_err *e);
    /* A matrix that was given by `packed` stays for many products: where these are faster from another order, it is
     * copied into that. 1: there is a copy, and the checkpoint's bytes are not read again as a rule. NULL: never. */
    int   (*settle)(struct sh_dev *d, struct sh_weight *w);
};

/* The name of a module's one exported symbol, a struct sh_backend. */
#define SH_BACKEND_SYMBOL "sh_backend_module"

/* "cpu" is linked in; other backends are modules, opened when they are asked for. NULL: e has the reason, with status
 * SH_ABSENT if the backend is not here, SH_MISUSED if the name is unknown. */
const struct sh_backend *sh_backend_find(const char *name, struct sh_err *e);

#endif
