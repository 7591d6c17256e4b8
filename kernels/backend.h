/* SPDX-License-Identifier: Apache-2.0 */
/* The only seam between the models and the hardware. A backend is one constant table of operations
 * over memory that it owns; the forward pass is written once against this table.
 *
 * Memory: `alloc` gives device memory (for the CPU plain host memory), `put` and `get` copy. A
 * struct sh_mat is a view and never owns what it points at. Weights are handed over once with
 * `weight`, which converts them to the layout that the backend's products want.
 *
 * Errors: operations only queue work and return nothing. The first failure sticks to the device,
 * later operations do nothing, and `sync` reports it. So the forward pass has no error branches.
 *
 * Types: the residual stream, q, k, v and biases are f32. The other operands of products (`x` of
 * linear, `out` of norm, attend and of linears that feed a product) are all f32 or all bf16.
 * Products and softmax sums accumulate in f32 whatever the types. */
#ifndef SH_KERNELS_BACKEND_H
#define SH_KERNELS_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"
#include "src/base/num.h"

#define SH_BACKEND_ABI 1

struct sh_dev;                          /* an opened device; the backend's own struct              */
struct sh_weight;                       /* a matrix in the backend's own layout                    */

struct sh_mat {                         /* row-major view                                          */
    void *at;
    enum sh_type type;
    int rows, cols;
    size_t stride;                      /* elements from one row to the next                       */
};

enum sh_act { SH_ACT_NONE, SH_ACT_RELU, SH_ACT_GELU, SH_ACT_GELU_TANH };

/* out[i] (+)= act(x w^T + bias): x [n, in], w [out, in], bias [out] f32 or NULL. */
struct sh_linear {
    struct sh_mat out, x;
    const struct sh_weight *w;
    const float *bias;
    enum sh_act act;
    int add;                            /* 1: add to what `out` (f32) holds                        */
};

/* Layer norm of each row: (x - mean) / sqrt(var + eps) * weight + bias. */
struct sh_norm {
    struct sh_mat out, x;               /* x is f32; out may be x itself                           */
    const float *weight, *bias;         /* [cols]; NULL: 1 and 0                                   */
    float eps;
};

/* How recorded attention leaves an attend: one packed number per visible key, rows one after
 * another (causal: query t has t + 1 scores), see src/base/score.h for the formats. */
enum sh_pack { SH_PACK_F32, SH_PACK_F16, SH_PACK_LOG8 };

struct sh_tap {
    enum sh_pack pack;
    /* Rows [first_row, first_row + n_rows) of one head of one sequence of the call. For one
     * (sequence, head) rows arrive in order and from one thread; different ones arrive at the
     * same time. `packed` is valid during the call only. NULL: nothing is recorded. */
    void (*rows)(void *to, int sequence, int head, int first_row, int n_rows, const void *packed);
    void *to;
    const unsigned char *wanted;        /* [n_seq]: 0 leaves a sequence out; NULL: all are wanted  */
};

/* Causal attention of n_seq sequences laid one after another: sequence s has the rows
 * [start[s], start[s + 1]) of q, k, v and out. Query i of a sequence sees its keys j <= i. */
struct sh_attend {
    struct sh_mat q, out;               /* [rows, n_head * d_head]; q f32. out.at NULL: the        */
                                        /* probabilities are wanted, not what they give            */
    struct sh_mat k, v;                 /* [rows, n_kv_head * d_head] f32                          */
    int n_head, n_kv_head, d_head;      /* head h uses KV head h / (n_head / n_kv_head)            */
    float scale;                        /* scores = scale * q k                                    */
    int n_seq;
    const int *start;                   /* [n_seq + 1]                                             */
    struct sh_tap tap;
};

struct sh_props {
    char chip[128];                     /* "Intel Xeon …, AVX-512 kernels"                         */
    int native_bf16;                    /* products of bf16 are faster than those of f32           */
    int is_host;                        /* device memory is host memory: nothing need be copied    */
};

struct sh_backend {
    unsigned abi;                       /* SH_BACKEND_ABI; the loader refuses others               */
    const char *name, *summary;
    struct sh_dev *(*open)(int ordinal, int n_threads, struct sh_err *e); /* NULL: e says why not  */
    void  (*close)(struct sh_dev *d);                                     /* NULL is fine          */
    void  (*props)(const struct sh_dev *d, struct sh_props *out);
    void *(*alloc)(struct sh_dev *d, size_t bytes, struct sh_err *e);     /* NULL: does not fit    */
    void  (*release)(struct sh_dev *d, void *at);                         /* NULL is fine          */
    void  (*put)(struct sh_dev *d, void *to, const void *from, size_t bytes);
    void  (*get)(struct sh_dev *d, void *to, const void *from, size_t bytes);
    /* A host matrix [rows, cols] of type `from`, kept for products whose operands have type `to`. */
    struct sh_weight *(*weight)(struct sh_dev *d, const void *at, enum sh_type from, int rows, int cols,
                                enum sh_type to, struct sh_err *e);
    void  (*drop)(struct sh_dev *d, struct sh_weight *w);                 /* NULL is fine          */
    void  (*linear)(struct sh_dev *d, const struct sh_linear *a);
    void  (*norm)  (struct sh_dev *d, const struct sh_norm *a);
    void  (*cast)  (struct sh_dev *d, struct sh_mat out, struct sh_mat x);  /* x f32; out of its own type */
    void  (*attend)(struct sh_dev *d, const struct sh_attend *a);
    int   (*sync)(struct sh_dev *d, struct sh_err *e);
};

/* The backend of that name: "cpu" is linked in, "auto" is the best one there is. NULL with the
 * reason (status SH_ABSENT) when it is known but not here, SH_MISUSED when nobody knows it. */
const struct sh_backend *sh_backend_find(const char *name, struct sh_err *e);

#endif
