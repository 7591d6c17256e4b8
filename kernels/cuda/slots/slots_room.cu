/* SPDX-License-Identifier: Apache-2.0 */
/* Room for tokens, their slots, and their keys and values into them: token by token, and at the end of a block. */
#include "kernels/cuda/slots/slots_evict.cuh"

/* ---- a token's key and value of f32 into its slot, in the cache's format, by a block of SLOTS_THREADS threads ---- */

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
        for (int g = (int)threadIdx.x / WARP; g < s.n_code_group; g += SLOTS_THREADS / WARP)
            put_group<BITS>(s, is_key, slot, x, g * s.code_group, min(s.d - g * s.code_group, s.code_group));
}

struct slots_tokens {                   /* the caller's: [rows, n_kv_head * d], strides in numbers  */
    const float *k, *v;
    size_t k_stride, v_stride;
};

static inline struct slots_tokens slots_tokens_of(const struct sh_attend *a)
{
    return {(const float *)a->k.at, (const float *)a->v.at, a->k.stride, a->v.stride};
}

template <int BITS>
static __device__ void put_token(const struct slots &s, size_t slot, const struct slots_tokens &t, int row, int head)
{
    size_t c = (size_t)(head * s.d);
    put_row<BITS>(s, true, slot, t.k + (size_t)row * t.k_stride + c);
    put_row<BITS>(s, false, slot, t.v + (size_t)row * t.v_stride + c);
}

/* ---- token by token: one block a KV head of a sequence, which goes through its rows in order ---- */

/* Rows [first, end) of each sequence. */
template <int BITS>
__global__ void slots_admit(struct slots s, struct slots_tokens tokens, int layer, const int *start,
                            const int *position, int first, int end)
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
        int t = position[row];
        if (now.n >= h.budget && t >= s.prefill) {
            struct room r = room_of(s, h, sequence, &now, t);
            now.n -= leave(s, r, &now.next_free, part, bins, found, masks);
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
        put_token<BITS>(s, to, tokens, row, head);
        __syncthreads();
    }
    if (threadIdx.x == 0 && end > first)
        *at = now;
}

void cuda_slots_admit(struct sh_dev *d, struct sh_slots *s, const struct sh_slots_step *a)
{
    dim3 grid((unsigned)s->at.n_own, (unsigned)s->at.n_seq);
    BY_BITS(s->bits, BITS,
            SH_LAUNCH((slots_admit<BITS>), grid, dim3(SLOTS_THREADS), d->compute, s->at, slots_tokens_of(a->what),
                      a->layer, a->start, a->position, a->first, a->end));
}

/* ---- the end of a block of a prompt: room is made among the cached tokens and the block's, as for the next token;
 * the block's tokens that stay go, in order, into the lowest free slots, as in src/engine/block.c. Cached tokens stay
 * where they are. ---- */

/* How many come before this thread's, if it is one: *before of earlier calls, and those of earlier threads. */
template <typename Masks> static __device__ int rank_of(int is_one, int *before, Masks &masks)
{
    int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    unsigned own = __ballot_sync(ALL_LANES, is_one);
    if (lane == 0)
        masks[warp] = own;
    __syncthreads();
    int rank = *before + __popc(own & ((1u << lane) - 1));
    for (int i = 0; i < WARPS; i++) {
        int n = __popc((unsigned)masks[i]);
        rank += i < warp ? n : 0;
        *before += n;
    }
    __syncthreads();
    return rank;
}

/* What the policy knows of a column's token, to its slot. */
static __device__ void tell_slot(const struct slots &s, size_t slot, const struct slots_wide &w, size_t column)
{
    if (s.sum)
        s.sum[slot] = w.sum[column];
    if (s.low)
        s.low[slot] = w.low[column];
    if (s.before)
        s.before[slot] = w.before[column];
}

/* The columns as slots of a cache of one sequence, from which tokens leave as from any. */
static __device__ struct slots slots_of_columns(const struct slots &s, const struct slots_wide &w)
{
    struct slots wide = s;
    wide.pos = w.pos;
    wide.sum = w.sum;
    wide.low = w.low;
    wide.before = w.before;
    return wide;
}

/* One block of threads a KV head. */
__global__ void __launch_bounds__(SLOTS_THREADS) slots_settle(struct slots s, struct slots_wide w, struct slots_block b)
{
    SH_SHARED(unsigned long long, part, WARPS);
    SH_SHARED(int, bins, BINS);
    SH_SHARED(int, found, 2);
    SH_SHARED(unsigned, masks, WARPS);
    int head = (int)blockIdx.x, tid = (int)threadIdx.x, n_free = 0, n_stay = 0;
    struct slots_state *at = &s.state[slots_state_at(s, b.sequence, b.layer, head)], now = *at;
    struct slots_head h = s.head[b.layer * s.n_kv_head + head];
    size_t base = slots_base(s, b.sequence, h);
    size_t column = (size_t)head * (size_t)w.columns, own = column + (size_t)b.cached;
    int *list = w.list + column, *from = w.from + column;
    now.n += b.n;
    if (now.n >= h.budget && b.first + b.n >= s.prefill) {
        struct slots wide = slots_of_columns(s, w);
        struct slots_state all = {b.cached + b.n, now.n, -1};
        h.slot_at = (int)column;
        struct room r = room_of(wide, h, 0, &all, b.first + b.n);
        now.n -= leave(wide, r, &all.next_free, part, bins, found, masks);
    }
    for (int first = 0; first < now.n_slot; first += SLOTS_THREADS) {
        int i = first + tid, is_slot = i < now.n_slot, is_free = is_slot && w.pos[column + (size_t)i] < 0;
        int rank = rank_of(is_free, &n_free, masks);
        if (is_free)
            list[rank] = i;
        if (is_slot)
            from[i] = is_free ? -1 : i;
        if (is_slot && !is_free)
            tell_slot(s, base + (size_t)i, w, column + (size_t)i);
    }
    __syncthreads();                    /* the list can be read by all                             */
    for (int first = 0; first < b.n; first += SLOTS_THREADS) {
        int i = first + tid, stays = i < b.n && w.pos[own + (size_t)i] >= 0, rank = rank_of(stays, &n_stay, masks);
        int slot = !stays ? -1 : rank < n_free ? list[rank] : now.n_slot + rank - n_free;
        if (i < b.n)
            w.to[column + (size_t)i] = slot;
        if (!stays)
            continue;
        from[slot] = b.cached + i;
        s.pos[base + (size_t)slot] = b.first + i;
        tell_slot(s, base + (size_t)slot, w, own + (size_t)i);
    }
    for (int i = n_stay + tid; i < n_free; i += SLOTS_THREADS)
        s.pos[base + (size_t)list[i]] = -2 - (i + 1 < n_free ? list[i + 1] : -1);
    now.n_slot += max(n_stay - n_free, 0);
    now.next_free = n_stay < n_free ? list[n_stay] : -1;
    if (tid == 0)
        *at = now;
}

/* Keys and values of those that stay into their slots; a block of threads each. */
template <int BITS>
__global__ void __launch_bounds__(SLOTS_THREADS) slots_keep(struct slots s, struct slots_wide w, struct slots_block b,
                                                            struct slots_tokens tokens)
{
    int i = (int)blockIdx.x, head = (int)blockIdx.y, slot = w.to[(size_t)head * (size_t)w.columns + (size_t)i];
    if (slot < 0)
        return;
    size_t to = slots_base(s, b.sequence, s.head[b.layer * s.n_kv_head + head]) + (size_t)slot;
    put_token<BITS>(s, to, tokens, b.row + i, head);
}

/* Rows of the ring from columns back to slots. */
__global__ void __launch_bounds__(SLOTS_THREADS) slots_close_ring(struct slots s, struct slots_wide w,
                                                                  struct slots_block b)
{
    int row = (int)blockIdx.x, head = (int)blockIdx.y;
    struct slots_head h = s.head[b.layer * s.n_kv_head + head];
    int n_slot = s.state[slots_state_at(s, b.sequence, b.layer, head)].n_slot;
    const int *from = w.from + (size_t)head * (size_t)w.columns;
    const uint32_t *old = w.ring + ((size_t)head * (size_t)w.ring_rows + (size_t)row) * (size_t)(w.columns / WARP);
    uint32_t *to = s.ring + (size_t)b.sequence * (size_t)s.ring_each + (size_t)h.ring_at +
                   (size_t)((b.first + row) % s.policy.look_back) * (size_t)h.ring_words;
    for (int i = (int)threadIdx.x; i / WARP * WARP < n_slot; i += SLOTS_THREADS) {
        int column = i < n_slot ? from[i] : -1;
        unsigned word = __ballot_sync(ALL_LANES, column >= 0 && (old[column / WARP] >> (column % WARP) & 1));
        if (i % WARP == 0)
            to[i / WARP] = word;
    }
}

void cuda_slots_settle(struct sh_dev *d, const struct sh_slots *s, const struct sh_slots_block *a,
                       const struct slots_block *b)
{
    unsigned heads = (unsigned)s->at.n_own, look_back = (unsigned)s->at.policy.look_back, n = (unsigned)b->n;
    SH_LAUNCH(slots_settle, dim3(heads), dim3(SLOTS_THREADS), d->compute, s->at, s->wide, *b);
    if (s->wide.ring)
        SH_LAUNCH(slots_close_ring, dim3(n < look_back ? n : look_back, heads), dim3(SLOTS_THREADS), d->compute, s->at,
                  s->wide, *b);
    BY_BITS(s->bits, BITS,
            SH_LAUNCH((slots_keep<BITS>), dim3(n, heads), dim3(SLOTS_THREADS), d->compute, s->at, s->wide, *b,
                      slots_tokens_of(a->what)));
}
