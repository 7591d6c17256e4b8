/* SPDX-License-Identifier: Apache-2.0 */
/* Which tokens are evicted, found by one block of threads for one KV head of a sequence: those that
 * planner/policy/kept_slots.c and planner/policy/victims.c choose, by one 64-bit key a slot: score above, position
 * below, so that the `want` smallest leave and no two are the same. One victim is a minimum; more are found by their
 * want-th smallest key, eight bits at a time. */
#ifndef SH_KERNELS_CUDA_SLOTS_EVICT_CUH
#define SH_KERNELS_CUDA_SLOTS_EVICT_CUH

#include "kernels/cuda/slots/slots.cuh"

enum { WARPS = SLOTS_THREADS / WARP, BINS = 256, PER_LANE = BINS / WARP };

#define NO_KEY (~0ull)

struct room {                           /* of the head that the block serves                       */
    size_t base;                        /* its first slot                                          */
    int n_slot, from, to, dead;         /* tokens at [from, to) may leave, and before all those < dead */
    int over, drop;                     /* so many must leave; so many leave at once               */
    int t;                              /* the token that comes                                    */
    float kept;                         /* epochs: what is left of the one before                  */
};

/* A float as an unsigned number of the same order; NaN comes first. */
static __device__ __forceinline__ unsigned ordered(float x)
{
    unsigned bits = __float_as_uint(x + 0.0f);
    bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return x == x ? bits : 0;
}

static __device__ float low_score(const struct slots &s, const struct room &r, size_t slot, int pos)
{
    float count = (float)s.low[slot];
    if (s.policy.rule == SH_SLOTS_LOW_EPOCHS)
        count = __fadd_rn(count, __fmul_rn(r.kept, (float)s.before[slot]));
    int seen = r.t - pos;
    seen = seen < 1 ? 1 : seen < s.policy.look_back ? seen : s.policy.look_back;
    return s.policy.rate ? __fdiv_rn(-count, (float)seen) : -count;
}

static __device__ float score_of(const struct slots &s, const struct room &r, size_t slot, int pos)
{
    switch (s.policy.rule) {
    case SH_SLOTS_OLDEST: return (float)pos;
    case SH_SLOTS_SUM: return s.sum[slot];
    case SH_SLOTS_MEAN: return __fdiv_rn(s.sum[slot], (float)(r.t - pos));
    default: return low_score(s, r, slot, pos);
    }
}

static __device__ unsigned long long key_of(const struct slots &s, const struct room &r, int i)
{
    int pos = s.pos[r.base + (size_t)i];
    if (pos < 0)
        return NO_KEY;
    if (pos < r.dead)
        return (unsigned long long)pos;
    if (pos < r.from || pos >= r.to)
        return NO_KEY;
    return (unsigned long long)ordered(score_of(s, r, r.base + (size_t)i, pos)) << 32 | (unsigned)pos;
}

/* The smallest key of all; every thread gets it. */
template <typename Part> static __device__ unsigned long long least_key(const struct slots &s, const struct room &r,
                                                                        Part &part)
{
    unsigned long long least = NO_KEY;
    for (int i = (int)threadIdx.x; i < r.n_slot; i += SLOTS_THREADS)
        least = min(least, key_of(s, r, i));
    for (int step = WARP / 2; step; step /= 2)
        least = min(least, __shfl_xor_sync(ALL_LANES, least, step));
    if (threadIdx.x % WARP == 0)
        part[threadIdx.x / WARP] = least;
    __syncthreads();
    for (int i = 0; i < WARPS; i++)
        least = min(least, (unsigned long long)part[i]);
    __syncthreads();
    return least;
}

/* The first warp: which bin the want-th entry is in, and how many are before it. found: {bin, before}. */
template <typename Bins, typename Found> static __device__ void find_bin(Bins &bins, Found &found, int want)
{
    int lane = (int)threadIdx.x, own = 0;
    for (int i = 0; i < PER_LANE; i++)
        own += bins[lane * PER_LANE + i];
    int up_to = own;
    for (int step = 1; step < WARP; step *= 2) {
        int below = __shfl_up_sync(ALL_LANES, up_to, (unsigned)step);
        up_to += lane >= step ? below : 0;
    }
    int before = up_to - own;
    if (want <= before || want > up_to)
        return;
    for (int i = 0; i < PER_LANE; i++) {
        int n = bins[lane * PER_LANE + i];
        if (want <= before + n) {
            found[0] = lane * PER_LANE + i;
            found[1] = before;
            return;
        }
        before += n;
    }
}

/* The want-th smallest key, or the largest there is where there are fewer. */
template <typename Bins, typename Found>
static __device__ unsigned long long kth_key(const struct slots &s, const struct room &r, int want, Bins &bins,
                                             Found &found)
{
    unsigned long long prefix = 0;
    int tid = (int)threadIdx.x, n = 0;
    for (int i = tid; i < r.n_slot; i += SLOTS_THREADS)
        n += key_of(s, r, i) != NO_KEY;
    n = block_count(found, n);
    want = want < n ? want : n;
    for (int shift = 56; shift >= 0 && n; shift -= 8) {
        for (int i = tid; i < BINS; i += SLOTS_THREADS)
            bins[i] = 0;
        __syncthreads();
        for (int i = tid; i < r.n_slot; i += SLOTS_THREADS) {
            unsigned long long key = key_of(s, r, i);
            if (key != NO_KEY && (shift == 56 || key >> (shift + 8) == prefix))
                atomicAdd(&bins[(size_t)(key >> shift & 255)], 1);
        }
        __syncthreads();
        if (tid < WARP)
            find_bin(bins, found, want);
        __syncthreads();
        prefix = prefix << 8 | (unsigned)found[0];
        want -= found[1];
        __syncthreads();
    }
    return n ? prefix : NO_KEY;
}

/* Slots with keys up to `last` become free, each pointing to the one before it, the first to what was free
 * before. Returns how many; *next_free is the last one. */
template <typename Masks>
static __device__ int free_slots(const struct slots &s, const struct room &r, unsigned long long last, int *next_free,
                                 Masks &masks)
{
    int tid = (int)threadIdx.x, warp = tid / WARP, lane = tid % WARP, n = 0, newest = *next_free;
    for (int first = 0; first < r.n_slot; first += SLOTS_THREADS) {
        int i = first + tid, leaves = i < r.n_slot && key_of(s, r, i) <= last && last != NO_KEY;
        unsigned own = __ballot_sync(ALL_LANES, leaves), below = own & ((1u << lane) - 1);
        if (lane == 0)
            masks[warp] = own;
        __syncthreads();
        int previous = below ? first + warp * WARP + 31 - __clz((int)below) : -2;
        for (int w = warp - 1; w >= 0 && previous == -2; w--)
            if (masks[w])
                previous = first + w * WARP + 31 - __clz((int)(unsigned)masks[w]);
        if (leaves)
            s.pos[r.base + (size_t)i] = -2 - (previous == -2 ? newest : previous);
        for (int w = 0; w < WARPS; w++) {
            unsigned all = masks[w];
            n += __popc(all);
            newest = all ? first + w * WARP + 31 - __clz((int)all) : newest;
        }
        __syncthreads();
    }
    *next_free = newest;
    return n;
}

static __device__ struct room room_of(const struct slots &s, const struct slots_head &h, int sequence,
                                      const struct slots_state *now, int t)
{
    struct room r;
    r.base = slots_base(s, sequence, h);
    r.n_slot = now->n_slot;
    r.over = now->n - h.budget + 1;
    r.drop = h.drop;
    r.from = s.policy.sinks;
    r.to = t - h.recent;
    r.dead = h.window > 0 ? t + 1 - h.window : 0;
    r.t = t;
    r.kept = 0;
    if (s.policy.rule == SH_SLOTS_LOW_EPOCHS && t > s.policy.look_back)
        r.kept = 1.0f - __fdiv_rn((float)((t - 1) % s.policy.look_back + 1), (float)s.policy.look_back);
    return r;
}

/* How many leave: planner/policy/kept_slots.c's rule. Tokens before the window are not part of a drop. */
template <typename Found> static __device__ int how_many(const struct slots &s, const struct room &r, Found &found)
{
    if (r.drop == 1 || r.dead <= 0)
        return max(r.over, r.drop);
    int n = 0;
    for (int i = (int)threadIdx.x; i < r.n_slot; i += SLOTS_THREADS) {
        int pos = s.pos[r.base + (size_t)i];
        n += pos >= 0 && pos < r.dead;
    }
    int dead = block_count(found, n);
    return dead >= r.over ? r.over : dead + max(r.over - dead, r.drop);
}

/* Room for token r.t. The number of tokens that leave; *next_free is free_slots'. */
template <typename Part, typename Bins, typename Found, typename Masks>
static __device__ int leave(const struct slots &s, const struct room &r, int *next_free, Part &part, Bins &bins,
                            Found &found, Masks &masks)
{
    int want = how_many(s, r, found);
    unsigned long long last = want == 1 ? least_key(s, r, part) : kth_key(s, r, want, bins, found);
    return free_slots(s, r, last, next_free, masks);
}

#endif
