/* SPDX-License-Identifier: Apache-2.0 */
/* Room for a token, its slot, and its key and value into it: one block a KV head of a sequence, which goes
 * through the rows that it is given in order. Who leaves is what planner/kept.c and planner/least.c say, by
 * one 64-bit key a slot: worth above, position below, so that the `want` smallest leave and no two are the
 * same. One victim is a minimum; more are found by their want-th smallest key, eight bits at a time. */
#include "kernels/cuda/slots.cuh"

enum { WARPS = SLOTS_THREADS / WARP, BINS = 256, PER_LANE = BINS / WARP };

#define NO_KEY (~0ull)

struct room {                           /* of the head that the block serves                       */
    size_t base;                        /* its first slot                                          */
    int n_slot, from, to, dead;         /* tokens at [from, to) may leave, and before all those < dead */
    int t;                              /* the token that comes                                    */
    float kept;                         /* epochs: what is left of the one before                  */
};

/* A float as an unsigned number of the same order; what is no number first. */
static __device__ __forceinline__ unsigned ordered(float x)
{
    unsigned bits = __float_as_uint(x + 0.0f);
    bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return x == x ? bits : 0;
}

static __device__ float low_worth(const struct slots &s, const struct room &r, size_t slot, int pos)
{
    float count = (float)s.low[slot];
    if (s.policy.rule == SH_SLOTS_LOW_EPOCHS)
        count = __fadd_rn(count, __fmul_rn(r.kept, (float)s.before[slot]));
    int seen = r.t - pos;
    seen = seen < 1 ? 1 : seen < s.policy.look_back ? seen : s.policy.look_back;
    return s.policy.rate ? __fdiv_rn(-count, (float)seen) : -count;
}

static __device__ float worth_of(const struct slots &s, const struct room &r, size_t slot, int pos)
{
    switch (s.policy.rule) {
    case SH_SLOTS_OLDEST: return (float)pos;
    case SH_SLOTS_SUM: return s.sum[slot];
    case SH_SLOTS_MEAN: return __fdiv_rn(s.sum[slot], (float)(r.t - pos));
    default: return low_worth(s, r, slot, pos);
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
    return (unsigned long long)ordered(worth_of(s, r, r.base + (size_t)i, pos)) << 32 | (unsigned)pos;
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

/* The first warp: which bin the want-th entry is in, and how many lie before it. found: {bin, before}. */
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
    if (tid == 0)
        found[0] = 0;
    __syncthreads();
    atomicAdd(&found[0], n);
    __syncthreads();
    n = found[0];
    want = want < n ? want : n;
    for (int shift = 56; shift >= 0 && n; shift -= 8) {
        __syncthreads();
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
    }
    __syncthreads();
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

/* ---- a row into its slot ---- */

static __device__ __forceinline__ char *place(const struct slots &s, bool is_key, size_t slot, int byte, int bits)
{
    return is_key ? s.k + slots_key_at(s, slot, byte) : s.v + slot * (size_t)(s.units * bits) + (size_t)byte;
}

template <int BITS> static __device__ void put_plain(const struct slots &s, bool is_key, size_t slot, const float *x)
{
    for (int c = (int)threadIdx.x; c < s.d; c += SLOTS_THREADS) {
        char *to = place(s, is_key, slot, c * BITS / 8, BITS);
        if constexpr (BITS == 32)
            *(float *)to = x[c];
        else
            *(__half *)to = __float2half_rn(x[c]);
    }
}

static __device__ __forceinline__ float stored(float x, int is_f32)
{
    return is_f32 ? x : __half2float(__float2half_rn(fminf(fmaxf(x, -65504.0f), 65504.0f)));
}

static __device__ __forceinline__ unsigned code_of(float x, float least, float scale, float most)
{
    float c = scale > 0 ? rintf(__fdiv_rn(__fsub_rn(x, least), scale)) : 0.0f;
    return (unsigned)fminf(fmaxf(c, 0.0f), most);
}

/* One group of n numbers from channel c on, by a warp. */
template <int BITS>
static __device__ void put_group(const struct slots &s, bool is_key, size_t slot, const float *x, int c, int n)
{
    int lane = (int)threadIdx.x % WARP;
    float low = INFINITY, high = -INFINITY, most = (float)((1 << BITS) - 1);
    for (int i = lane; i < n; i += WARP) {
        low = fminf(low, x[c + i]);
        high = fmaxf(high, x[c + i]);
    }
    for (int step = WARP / 2; step; step /= 2) {
        low = fminf(low, __shfl_xor_sync(ALL_LANES, low, step));
        high = fmaxf(high, __shfl_xor_sync(ALL_LANES, high, step));
    }
    float scale = stored(__fdiv_rn(__fsub_rn(high, low), most), s.meta_is_f32), least = stored(low, s.meta_is_f32);
    for (int i = 2 * lane; i < n; i += 2 * WARP) {
        unsigned one = code_of(x[c + i], least, scale, most);
        unsigned two = i + 1 < n ? code_of(x[c + i + 1], least, scale, most) : 0;
        unsigned char *to = (unsigned char *)place(s, is_key, slot, (c + i) * BITS / 8, BITS);
        to[0] = (unsigned char)(BITS == 4 ? one | two << 4 : one);
        if (BITS == 8 && i + 1 < n)
            to[1] = (unsigned char)two;
    }
    if (lane)
        return;
    size_t at = slot * (size_t)s.n_code_group + (size_t)(c / s.code_group);
    void *meta = is_key ? s.k_meta : s.v_meta;
    if (s.meta_is_f32) {
        ((float2 *)meta)[at] = make_float2(scale, least);
    } else {
        ((__half *)meta)[2 * at] = __float2half_rn(scale);
        ((__half *)meta)[2 * at + 1] = __float2half_rn(least);
    }
}

template <int BITS> static __device__ void put_row(const struct slots &s, bool is_key, size_t slot, const float *x)
{
    if constexpr (BITS >= 16)
        put_plain<BITS>(s, is_key, slot, x);
    else
        for (int g = (int)threadIdx.x / WARP; g < s.n_code_group; g += WARPS)
            put_group<BITS>(s, is_key, slot, x, g * s.code_group, min(s.d - g * s.code_group, s.code_group));
}

/* ---- the kernel ---- */

static __device__ struct room room_of(const struct slots &s, const struct slots_head &h, int sequence, int n_slot,
                                      int t)
{
    struct room r;
    r.base = slots_base(s, sequence, h);
    r.n_slot = n_slot;
    r.from = s.policy.sinks;
    r.to = t - s.policy.recent;
    r.dead = h.window > 0 ? t + 1 - h.window : 0;
    r.t = t;
    r.kept = 0;
    if (s.policy.rule == SH_SLOTS_LOW_EPOCHS && t > s.policy.look_back)
        r.kept = 1.0f - __fdiv_rn((float)((t - 1) % s.policy.look_back + 1), (float)s.policy.look_back);
    return r;
}

/* Rows [first, end) of each sequence, of k and v [rows, stride]. */
template <int BITS>
__global__ void slots_admit(struct slots s, int layer, const float *k, const float *v, size_t k_stride,
                            size_t v_stride, const int *start, const int *position, int first, int end)
{
    SH_SHARED(unsigned long long, part, WARPS);
    SH_SHARED(int, bins, BINS);
    SH_SHARED(int, found, 2);
    SH_SHARED(unsigned, masks, WARPS);
    int head = (int)blockIdx.x, sequence = (int)blockIdx.y, row = start[sequence] + first;
    struct slots_head h = s.head[layer * s.n_kv_head + head];
    struct slots_state *at = &s.state[slots_state_at(s, sequence, layer, head)], now = *at;
    end = min(end, start[sequence + 1] - start[sequence]);
    for (int i = first; i < end; i++, row++) {
        int t = position[row], over = now.n - h.budget + 1;
        if (over > 0 && t >= s.prefill) {
            struct room r = room_of(s, h, sequence, now.n_slot, t);
            int want = max(over, h.drop);
            unsigned long long last = want == 1 ? least_key(s, r, part) : kth_key(s, r, want, bins, found);
            now.n -= free_slots(s, r, last, &now.next_free, masks);
        }
        int slot = now.next_free >= 0 ? now.next_free : now.n_slot++;
        size_t to = slots_base(s, sequence, h) + (size_t)slot;
        __syncthreads();                /* what is free now can be read by all                     */
        now.next_free = now.next_free >= 0 ? -2 - s.pos[to] : -1;
        now.n++;
        __syncthreads();
        if (threadIdx.x == 0) {
            s.pos[to] = t;
            if (s.sum)
                s.sum[to] = 0;
            if (s.low)
                s.low[to] = 0;
            if (s.before)
                s.before[to] = 0;
        }
        size_t c = (size_t)(head * s.d);
        put_row<BITS>(s, true, to, k + (size_t)row * k_stride + c);
        put_row<BITS>(s, false, to, v + (size_t)row * v_stride + c);
        __syncthreads();
    }
    if (threadIdx.x == 0 && end > first)
        *at = now;
}

void cuda_slots_admit(struct sh_dev *d, struct sh_slots *s, const struct sh_slots_step *a)
{
    const struct sh_attend *w = a->what;
    dim3 grid((unsigned)s->at.n_kv_head, (unsigned)s->at.n_seq);
#define ADMIT(BITS)                                                                                                 \
    SH_LAUNCH((slots_admit<BITS>), grid, dim3(SLOTS_THREADS), d->compute, s->at, a->layer, (const float *)w->k.at, \
              (const float *)w->v.at, w->k.stride, w->v.stride, a->start, a->position, a->first, a->end)
    if (s->bits == 32)
        ADMIT(32);
    else if (s->bits == 16)
        ADMIT(16);
    else if (s->bits == 8)
        ADMIT(8);
    else
        ADMIT(4);
}
