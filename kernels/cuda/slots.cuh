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

enum {
    SLOTS_TILE = 8, SLOTS_CHUNK = 16, SLOTS_UNIT = 8,
    SLOTS_THREADS = 128,
    SLOTS_SPLIT = 256,                  /* slots of a block of the attention, at most             */
    SLOTS_GROUP = 8                     /* query heads of such a block, at most                   */
};

struct slots_head {                     /* of a layer                                              */
    int slot_at, budget, capacity, drop, window;
    int ring_at, ring_words;            /* words of a row of the ring, and where it begins          */
};

struct slots_state {                    /* of a head of a sequence                                 */
    int n_slot, n;                      /* slots in use so far; live ones                          */
    int next_free;                      /* -1: none                                                */
};

struct slots {                          /* passed to kernels by value                              */
    int n_seq, n_layer, n_head, n_kv_head, group, d, units, chunks;
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

struct sh_slots {
    struct slots at;
    int bits;
    struct slots_head *host_head;       /* what at.head has                                        */
    void *memory[24];                   /* all that was allocated, and the bytes of each           */
    size_t bytes[24];
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

/* Scale and minimum of the numbers from channel c on. */
static __device__ __forceinline__ float2 slots_scale(const struct slots &s, const void *meta, size_t slot, int c)
{
    size_t i = slot * (size_t)s.n_code_group + (size_t)(c / s.code_group);
    if (s.meta_is_f32)
        return ((const float2 *)meta)[i];
    const __half *pair = (const __half *)meta + 2 * i;
    return make_float2(__half2float(pair[0]), __half2float(pair[1]));
}

/* slots_room.cu, slots_attend.cu, slots_see.cu */
void cuda_slots_admit(struct sh_dev *d, struct sh_slots *s, const struct sh_slots_step *a);
void cuda_slots_scores(struct sh_dev *d, struct sh_slots *s, const struct sh_slots_step *a);
void cuda_slots_see(struct sh_dev *d, struct sh_slots *s, const struct sh_slots_step *a);
extern const struct sh_slots_ops cuda_slots_ops;
extern const struct sh_graph_ops cuda_graph_ops;

#endif
