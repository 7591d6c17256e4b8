/* SPDX-License-Identifier: Apache-2.0 */
/* The KV cache on the device (kernels/slots.h), as kernels see it. A head of a layer of a sequence has the
 * slots [slot_at, slot_at + capacity) of its sequence; slots of a sequence follow those of the one before.
 *
 * Keys: TILE slots lie together, of each first 16 bytes, then of each the next 16, … : threads that each
 * have a slot read 128 consecutive bytes eight at a time, and each multiplies its own key without asking
 * its neighbours. Values: slot after slot, so that the threads of a row share its channels and each adds up
 * its own. Both in units of 8 numbers, UNIT_BYTES = bits bytes each, the last one padded with zeros.
 *
 * pos: a slot's token; negative: free, and then -2 - pos is the next free slot, -1 the end. So the free
 * slots take no memory of their own.
 *
 * Every token is seen by the policy once and in order: a slot's token came with the row of its position. */
#ifndef SH_KERNELS_CUDA_SLOTS_CUH
#define SH_KERNELS_CUDA_SLOTS_CUH

#include "kernels/cuda/cuda.cuh"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/numbers.cuh"

enum {
    SLOTS_TILE = 8, SLOTS_CHUNK = 16, SLOTS_UNIT = 8,
    SLOTS_THREADS = 128,
    SLOTS_SPLIT = 256,                  /* slots of a block of the attention, at most             */
    SLOTS_GROUP = 8                     /* query heads of such a block, at most                   */
};

/* BITS: what a number of the rows takes, as a constant. */
#define BY_BITS(bits, BITS, ...)                               \
    do {                                                       \
        if ((bits) == 32) {                                    \
            enum { BITS = 32 };                                \
            __VA_ARGS__;                                       \
        } else if ((bits) == 16) {                             \
            enum { BITS = 16 };                                \
            __VA_ARGS__;                                       \
        } else if ((bits) == 8) {                              \
            enum { BITS = 8 };                                 \
            __VA_ARGS__;                                       \
        } else {                                               \
            enum { BITS = 4 };                                 \
            __VA_ARGS__;                                       \
        }                                                      \
    } while (0)

struct slots_head {                     /* of a layer                                              */
    int slot_at, budget, capacity, recent, drop, window;
    int ring_at, ring_words;            /* words of a row of the ring, and where it begins          */
};

struct slots_state {                    /* of a head of a sequence                                 */
    int n_slot, n;                      /* slots in use so far; live ones                          */
    int next_free;                      /* -1: none                                                */
};

struct slots {                          /* passed to kernels by value                              */
    int n_seq, n_layer, n_head, n_kv_head, d, units, chunks;
    int n_own, group;                   /* of the layer at work: its KV heads, at most n_kv_head; queries of each */
    int code_group, n_code_group, meta_is_f32;
    int slots_each, ring_each, most_slots;      /* of a sequence; of the largest head              */
    int split, n_split;                 /* slots of a block; blocks of a head, at most             */
    int prefill, keep_rows;
    struct sh_slots_policy policy;
    const struct slots_head *head;      /* [n_layer * n_kv_head]                                   */
    struct slots_state *state;          /* [n_seq, n_layer, n_kv_head]                             */
    char *k, *v;
    void *k_meta, *v_meta;              /* [slots, n_code_group] pairs of scale and minimum        */
    int *pos;
    float *sum;                         /* what a slot received                                    */
    uint16_t *low, *before;             /* low rows; of the epoch before                           */
    uint32_t *ring;                     /* [look_back, ring_words] bits of each head               */
    float *scores;                      /* [n_seq, n_head, most_slots] before softmax              */
    float *rows;                        /* [n_seq, n_kv_head, most_slots] of the running layer     */
    float *top, *total;                 /* [n_seq, n_head, n_split]                                */
    float *part;                        /* [n_seq, n_head, n_split, d]                             */
    const float *slopes;                /* [n_head] or NULL                                        */
};

/* Where a block of a prompt is at work, one layer of one sequence at a time (slots_block.cu). A head has columns
 * for the slots of the cache, in their order, rounded up to whole warps, and then for the block's tokens. So
 * nothing that is cached moves, and what stays of it stays where it is. */
struct slots_wide {
    int columns;                        /* of a head, at most; a multiple of WARP                  */
    int cached;                         /* of them for the cache's slots, at most; likewise        */
    int rows, ring_rows;                /* rows of a tile, and of the ring, at most                */
    int *pos;                           /* [n_kv_head, columns]; negative: free, or it has left    */
    float *sum;                         /* likewise: what struct slots has by slot                 */
    uint16_t *low, *before;
    uint32_t *ring;                     /* [n_kv_head, ring_rows, columns / WARP], from the block's first row on */
    float *k, *v;                       /* [n_kv_head, cached, d]: out of the cache's format       */
    float *scores;                      /* [n_head, rows, columns], then probabilities             */
    float *out;                         /* [rows, n_head * d]: where the caller's is not of f32    */
    float *limit;                       /* [n_kv_head, rows]: what is below is low                 */
    float *mean;                        /* [n_kv_head, rows, columns]: the rows, when they are looked at */
    int *list;                          /* [n_kv_head, columns]: free slots                        */
    int *to, *from;                     /* likewise, or -1: a block token's slot; the column of a slot's token */
};

enum { SLOTS_WIDE_PARTS = 14 };

struct slots_block {                    /* one at work                                             */
    int layer, sequence, first, n;      /* tokens [first, first + n)                               */
    int row;                            /* of the caller's matrices: its first                     */
    int cached;                         /* columns for the cache's slots: so many may be in use    */
};

struct sh_slots {
    struct slots at;                    /* n_own and group are set by what begins a layer          */
    struct slots_wide wide;
    int bits, block;                    /* block: rows of one, at most; 0: nothing of `wide` is there */
    struct slots_head *host_head;       /* what at.head has                                        */
    void *memory[40];                   /* all that was allocated, and the bytes of each           */
    size_t bytes[40];
};

static __device__ __forceinline__ size_t slots_state_at(const struct slots &s, int sequence, int layer, int head)
{
    return ((size_t)sequence * (size_t)s.n_layer + (size_t)layer) * (size_t)s.n_kv_head + (size_t)head;
}

static __device__ __forceinline__ size_t slots_base(const struct slots &s, int sequence, const struct slots_head &h)
{
    return (size_t)sequence * (size_t)s.slots_each + (size_t)h.slot_at;
}

/* Byte `byte` of a slot's key; slot counts from the start of everything. */
static __device__ __forceinline__ size_t slots_key_at(const struct slots &s, size_t slot, int byte)
{
    size_t tile = slot / SLOTS_TILE * (size_t)(SLOTS_TILE * s.chunks);
    size_t chunk = (size_t)(byte / SLOTS_CHUNK) * SLOTS_TILE;
    return (tile + chunk + slot % SLOTS_TILE) * SLOTS_CHUNK + (size_t)(byte % SLOTS_CHUNK);
}

/* Pair i of a scale and a minimum. */
static __device__ __forceinline__ float2 slots_pair(const struct slots &s, const void *meta, size_t i)
{
    if (s.meta_is_f32)
        return ((const float2 *)meta)[i];
    unsigned two = ((const unsigned *)meta)[i];
    return make_float2(half_of(two, 0), half_of(two, 1));
}

/* That of the numbers from channel c on. */
static __device__ __forceinline__ float2 slots_scale(const struct slots &s, const void *meta, size_t slot, int c)
{
    return slots_pair(s, meta, slot * (size_t)s.n_code_group + (size_t)(c / s.code_group));
}

/* x is low when x < limit: 1 / n rounded up. */
static __device__ __forceinline__ float low_limit(int n)
{
    double exact = __ddiv_rn(1.0, (double)n);
    float f = (float)exact;
    return (double)f < exact ? __uint_as_float(__float_as_uint(f) + 1) : f;
}

static inline int slots_counts_low(const struct slots *s)
{
    return s->policy.rule == SH_SLOTS_LOW_RING || s->policy.rule == SH_SLOTS_LOW_EPOCHS;
}

/* slots_room.cu, slots_attend.cu */
void cuda_slots_admit(struct sh_dev *d, struct sh_slots *s, const struct sh_slots_step *a);
void cuda_slots_scores(struct sh_dev *d, struct sh_slots *s, const struct sh_slots_step *a);
void cuda_slots_see(struct sh_dev *d, struct sh_slots *s, const struct sh_slots_step *a);
/* slots_block.cu: the shape and the bytes of each part for blocks of n rows, 0: none; then their places. */
void cuda_slots_wide_sizes(const struct slots *s, int n, struct slots_wide *w, size_t bytes[SLOTS_WIDE_PARTS]);
void cuda_slots_wide_place(struct slots_wide *w, void *const memory[SLOTS_WIDE_PARTS]);
void cuda_slots_block(struct sh_dev *d, struct sh_slots *s, const struct sh_slots_block *a);
/* slots_rows.cu: what the rows [first, first + n) of a block attend over, n up to w.rows; and the policy sees them. */
void cuda_slots_rows(struct sh_dev *d, const struct sh_slots *s, const struct sh_slots_block *a,
                     const struct slots_block *b, int first, int n);
/* slots_room.cu: room, and slots for those that stay. */
void cuda_slots_settle(struct sh_dev *d, const struct sh_slots *s, const struct sh_slots_block *a,
                       const struct slots_block *b);
extern const struct sh_slots_ops cuda_slots_ops;
extern const struct sh_graph_ops cuda_graph_ops;

#endif
