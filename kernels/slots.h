/* SPDX-License-Identifier: Apache-2.0 */
/* A KV cache of fixed size on a device, for the decoding loop: part of the seam of backend.h, for backends
 * whose memory is not the host's. It does what src/engine/host_cache.c does on the host with
 * planner/policy/kept_slots.h: slots that are reused and never move, their positions, and for each token of each
 * sequence and KV head, in the order of planner/policy/policy.h,
 *
 *     room is made, the token takes a slot, its query attends over the slots, the policy sees the row,
 *
 * and the tokens that are kept are the same. A prompt may come in blocks, as src/engine/block.c has them.
 * Nothing of this comes back to the host unless it is looked at.
 *
 * Keys and values are kept as f32, f16 or codes (src/engine/quant.c, scales along a token's channels) and
 * read back into f32 where they are used. */
#ifndef SH_KERNELS_SLOTS_H
#define SH_KERNELS_SLOTS_H

#include <stddef.h>

#include "src/base/num.h"
#include "src/base/slots_rule.h"

struct sh_dev;
struct sh_err;
struct sh_attend;
struct sh_slots;                        /* the cache of a batch; the backend's own struct         */

struct sh_slots_head {                  /* a KV head of a layer                                   */
    int budget, capacity;               /* slots that are kept to, and that there are             */
    int recent;                         /* newest tokens that never leave                         */
    int drop;                           /* tokens that leave at once, at least                    */
    int window;                         /* the layer's window; 0: none                            */
};

enum { SH_SLOTS_WIDEST = 256, SH_SLOTS_MOST_GROUP = 128 };

struct sh_slots_setup {
    /* Heads: the most of any layer; the steps of a layer say how many it has, at most SH_SLOTS_MOST_GROUP query heads
     * of a KV head. */
    int n_seq, n_layer, n_head, n_kv_head;
    int d_head;                         /* at most SH_SLOTS_WIDEST                                */
    int bits, group;                    /* 32, 16, or codes of 8 or 4 in groups (a multiple of 8) */
    enum sh_type meta;                  /* type of scales and minima: SH_F16 or SH_F32            */
    int prefill;                        /* the first tokens see everything                        */
    int block;                          /* rows of a prompt's block, at most; 0: there are none   */
    int keep_rows;                      /* looks may ask for rows                                 */
    const struct sh_slots_head *head;   /* host, [n_layer * n_kv_head]; one that a layer does not have: capacity 1 */
    const float *slopes;                /* host, [n_head] (ALiBi); NULL: none                     */
    struct sh_slots_policy policy;
};

struct sh_slots_bytes {                 /* device memory                                          */
    size_t rows, meta;                  /* keys and values; scales and minima of codes            */
    size_t positions, policy;
    size_t scratch;                     /* bytes of a token's attention, for all layers together  */
    size_t block;                       /* bytes of a block's, for all layers and sequences together */
};

struct sh_slots_step {                  /* one layer's rows                                       */
    const struct sh_attend *what;       /* its start and n_seq are not looked at                  */
    int layer;
    const int *start, *position;        /* device: [n_seq + 1] the rows of each sequence; [rows]  */
    int first, end;                     /* of each sequence's rows those numbered [first, end)    */
};

struct sh_slots_count {                 /* counts of a head                                       */
    int n_slot, n;                      /* slots in use so far; live ones                         */
};

struct sh_slots_look {                  /* host copies of a head, after a step                    */
    int n_slot, n;                      /* slots in use so far; live ones                         */
    int *pos;                           /* [capacity]; -1: free                                   */
    float *row;                         /* [capacity]: the newest row of the layer; NULL: not wanted */
};

struct sh_slots_block {                 /* one layer's rows of one sequence                       */
    const struct sh_attend *what;       /* its start and n_seq are not looked at                  */
    int layer, sequence;
    int row, n, first;                  /* rows [row, row + n) of what's matrices are tokens first, first + 1, … */
    /* NULL, or, where the setup keeps rows: what the query of each token t attended over, head by head: the
     * cached tokens and those of the block up to t, in slots that they have for the time of the block.
     * Valid during the call; the device is waited for. */
    void (*look)(void *to, int head, int t, const struct sh_slots_look *seen);
    void *to;
};

struct sh_slots_ops {
    struct sh_slots_bytes (*bytes)(const struct sh_slots_setup *s);
    /* NULL: it does not fit. */
    struct sh_slots *(*make)(struct sh_dev *d, const struct sh_slots_setup *s, struct sh_err *e);
    void (*drop)(struct sh_dev *d, struct sh_slots *s);                 /* NULL is fine           */
    void (*restart)(struct sh_dev *d, struct sh_slots *s, int sequence);        /* queued: empty  */
    /* Sequence `to` becomes what sequence `from` of a cache with the same setup (but for n_seq) is; queued. */
    void (*copy)(struct sh_dev *d, struct sh_slots *s, int to, const struct sh_slots *other, int from);
    /* Room and slots for rows, token by token, when something else has computed their attention. */
    void (*store)(struct sh_dev *d, struct sh_slots *s, const struct sh_slots_step *a);
    /* The same and the attention of the one row `first` of each sequence that has it. */
    void (*attend)(struct sh_dev *d, struct sh_slots *s, const struct sh_slots_step *a);
    /* The rows attend over what is cached and causally over each other, the policy sees them in order, then
     * room is made as for the next token, and those of them that stay take slots. Not for graphs. */
    void (*block)(struct sh_dev *d, struct sh_slots *s, const struct sh_slots_block *a);
    void (*look)(struct sh_dev *d, struct sh_slots *s, int sequence, int layer, int head,
                 struct sh_slots_look *out);
    /* Of the sequences [first, first + n), host: [n, n_layer, n_kv_head]. The device is waited for, once. */
    void (*count)(struct sh_dev *d, const struct sh_slots *s, int first, int n, struct sh_slots_count *out);
};

/* Operations that are recorded once and run often, without the host's work in between. Between `begin` and
 * `end` operations are kept instead of run. They must have run before with the same arguments, so that
 * nothing is allocated, and copy nothing from or to the host. */
struct sh_graph;

/* If recording fails, the device itself has not failed: it records no further graphs (sh_props says why). Run the
 * operations as usual, those of the failed recording again. */
struct sh_graph_ops {
    int  (*begin)(struct sh_dev *d);                    /* -1: nothing is recorded                */
    struct sh_graph *(*end)(struct sh_dev *d);          /* NULL: what was recorded has not run    */
    void (*run)(struct sh_dev *d, struct sh_graph *g);
    void (*drop)(struct sh_dev *d, struct sh_graph *g);                 /* NULL is fine           */
};

#endif
