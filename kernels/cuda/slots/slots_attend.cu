/* SPDX-License-Identifier: Apache-2.0 */
/* The attention of one token of each sequence over its slots, split over the slots: a block takes up to
 * SLOTS_SPLIT slots of one KV head and up to SLOTS_GROUP of the query heads that share it, so that a key or
 * value is read once for all of them. It leaves the largest score, the sum of exponentials under it and the
 * values weighted by these; slots_observe puts the blocks of a head together.
 *
 * First each thread has two slots: their keys against all queries, which are in shared memory and read once for both.
 * Then the threads divide the channels, 16 bytes of a value each where the rows allow it, several slots at once, and
 * their sums meet in shared memory. Of free slots, and of tokens that a window hides, nothing is read.
 *
 * Codes are multiplied as codes. With the scale s and the minimum m of a group of channels,
 *
 *     q . k = sum over groups of s (q . code) + m (sum of q)       out = sum_j (w_j s_j) code_j + sum_j w_j m_j
 *
 * so that a number costs one multiplication and what makes it a float (slots_unpack.cuh). */
#include "kernels/cuda/slots/slots.cuh"
#include "kernels/cuda/slots/slots_unpack.cuh"

enum { WARPS = SLOTS_THREADS / WARP };

struct query {                          /* what a step asks                                        */
    int layer, first;                   /* the number of each sequence's row                       */
    const int *start, *position;
    const float *q;                     /* [rows, stride]                                          */
    size_t stride;
    float scale, softcap;
    int window;
    int n_part;                         /* blocks for the query heads of a KV head                 */
};

struct place {                          /* of a block                                              */
    int sequence, head, query_head, n_query;    /* head: KV head; query_head: the first of n_query */
    int first, n;                       /* slots of the head                                       */
    size_t base;                        /* of the head's first slot                                */
    int t, row;
};

static __device__ __forceinline__ float score_of(const struct slots &s, const struct query &a, float product, int head,
                                                 int distance)
{
    float x = a.scale * product;
    x = a.softcap > 0 ? a.softcap * tanhf(x / a.softcap) : x;
    return s.slopes ? x - s.slopes[head] * (float)distance : x;
}

/* The queries, padded with zeros to whole chunks, four channels at once: query[g * FOURS + c / 4]. For codes divided
 * by what numbers_of multiplies these by, and sum[g * UNITS + c / 8] has the sums of 8 channels. */
enum { FOURS = SH_SLOTS_WIDEST / 4, UNITS = SH_SLOTS_WIDEST / SLOTS_UNIT };

template <int BITS, int G, typename Query, typename Sum>
static __device__ void load_queries(const struct slots &s, const struct query &a, const struct place &p, Query &query,
                                    Sum &sum, int width)
{
    const float *q = a.q + (size_t)p.row * a.stride + (size_t)p.query_head * (size_t)s.d;
    for (int i = (int)threadIdx.x; i < G * UNITS; i += SLOTS_THREADS) {
        int g = i / UNITS, c = i % UNITS * SLOTS_UNIT;
        float x[SLOTS_UNIT], all = 0;
        if (c >= width)
            continue;
#pragma unroll
        for (int k = 0; k < SLOTS_UNIT; k++) {
            x[k] = c + k < s.d && g < p.n_query ? q[(size_t)g * (size_t)s.d + (size_t)(c + k)] : 0.0f;
            all += x[k];
            if constexpr (BITS < 16)
                x[k] *= code_unit<BITS>(k);
        }
        query[g * FOURS + c / 4] = make_float4(x[0], x[1], x[2], x[3]);
        query[g * FOURS + c / 4 + 1] = make_float4(x[4], x[5], x[6], x[7]);
        if constexpr (BITS < 16)
            sum[i] = all;
    }
}

/* Slots of a thread, and 16-byte pieces of each that are on their way to it before the first is waited for. */
enum { PAIR = 2, KEYS_AT_ONCE = 2 };

/* Scales and minima of the slots' keys; those of a group are asked for where the one before begins to be used. */
struct scales {
    float2 now[PAIR], next[PAIR];
    int to_come, begins;                /* the group after `next`; the channel at which `next` begins */
};

static __device__ __forceinline__ void next_scales(const struct slots &s, const size_t *slot, struct scales *c)
{
#pragma unroll
    for (int k = 0; k < PAIR; k++) {
        c->now[k] = c->next[k];
        if (c->to_come < s.n_code_group)
            c->next[k] = slots_pair(s, s.k_meta, slot[k] * (size_t)s.n_code_group + (size_t)c->to_come);
    }
    c->begins = c->to_come * s.code_group;
    c->to_come++;
}

/* The products of a chunk's numbers with the queries. */
template <int BITS, int G, typename Query, typename Sum>
static __device__ __forceinline__ void chunk_products(const struct slots &s, const size_t *slot, const uint4 *from,
                                                      int chunk, const Query &query, const Sum &total,
                                                      struct scales *scale, float sum[PAIR][G])
{
    enum { N = 128 / BITS, STEP = N < SLOTS_UNIT ? N : SLOTS_UNIT };
    float x[PAIR][N];
#pragma unroll
    for (int k = 0; k < PAIR; k++)
        chunk_numbers<BITS>(from[k], x[k]);
#pragma unroll
    for (int u = 0; u < N; u += STEP) {
        float part[PAIR][G];
        int c = chunk * N + u;
#pragma unroll
        for (int g = 0; g < G; g++) {
#pragma unroll
            for (int k = 0; k < PAIR; k++)
                part[k][g] = BITS < 16 ? 0.0f : sum[k][g];
#pragma unroll
            for (int i = 0; i < STEP; i += 4) {
                float4 q = query[g * FOURS + (c + i) / 4];
#pragma unroll
                for (int k = 0; k < PAIR; k++) {
                    part[k][g] += x[k][u + i] * q.x;
                    part[k][g] += x[k][u + i + 1] * q.y;
                    part[k][g] += x[k][u + i + 2] * q.z;
                    part[k][g] += x[k][u + i + 3] * q.w;
                }
            }
        }
        if constexpr (BITS < 16)
            if (c == scale->begins)
                next_scales(s, slot, scale);
#pragma unroll
        for (int g = 0; g < G; g++)
#pragma unroll
            for (int k = 0; k < PAIR; k++)
                sum[k][g] = BITS < 16 ? sum[k][g] + scale->now[k].x * part[k][g] +
                                            scale->now[k].y * (float)total[g * UNITS + c / SLOTS_UNIT]
                                      : part[k][g];
    }
}

template <int BITS, int G, typename Query, typename Sum>
static __device__ void products(const struct slots &s, const size_t *slot, const Query &query, const Sum &total,
                                float sum[PAIR][G])
{
    struct scales scale = {};
    if constexpr (BITS < 16)
        next_scales(s, slot, &scale);
#pragma unroll 1
    for (int first = 0; first < s.chunks; first += KEYS_AT_ONCE) {
        uint4 key[KEYS_AT_ONCE][PAIR];
#pragma unroll
        for (int i = 0; i < KEYS_AT_ONCE; i++)
#pragma unroll
            for (int k = 0; k < PAIR; k++)
                if (first + i < s.chunks)
                    key[i][k] = key_load(s, slot[k], first + i);
#pragma unroll
        for (int i = 0; i < KEYS_AT_ONCE; i++)
            if (first + i < s.chunks)
                chunk_products<BITS, G>(s, slot, key[i], first + i, query, total, &scale, sum);
    }
}

/* score[g * SLOTS_SPLIT + j] of slot j of the block's; -INFINITY where nothing is seen. */
template <int G, typename Score>
static __device__ __forceinline__ void put_scores(const struct slots &s, const struct query &a, const struct place &p,
                                                  int j, int pos, const float *sum, Score &score)
{
#pragma unroll
    for (int g = 0; g < G; g++) {
        if (g >= p.n_query)
            break;
        float x = pos >= 0 ? score_of(s, a, sum[g], p.query_head + g, p.t - pos) : -INFINITY;
        score[g * SLOTS_SPLIT + j] = x;
        if (s.scores) {
            size_t row = (size_t)p.sequence * (size_t)s.n_head + (size_t)(p.query_head + g);
            s.scores[row * (size_t)s.most_slots + (size_t)(p.first + j)] = x;
        }
    }
}

template <int BITS, int G, typename Query, typename Sum, typename Score>
static __device__ void scores(const struct slots &s, const struct query &a, const struct place &p, const Query &query,
                              const Sum &total, Score &score)
{
    int oldest = a.window > 0 ? p.t + 1 - a.window : 0;
#pragma unroll 1
    for (int first = (int)threadIdx.x; first < p.n; first += PAIR * SLOTS_THREADS) {
        size_t slot[PAIR], other = 0;
        int pos[PAIR], any = 0;
        float sum[PAIR][G] = {};
#pragma unroll
        for (int k = 0; k < PAIR; k++) {
            int j = first + k * SLOTS_THREADS;
            slot[k] = p.base + (size_t)(p.first + j);
            pos[k] = j < p.n ? s.pos[slot[k]] : -1;
            pos[k] = pos[k] < oldest ? -1 : pos[k];
            if (pos[k] >= 0) {
                other = slot[k];
                any = 1;
            }
        }
#pragma unroll
        for (int k = 0; k < PAIR; k++)
            slot[k] = pos[k] >= 0 ? slot[k] : other;        /* of those not seen nothing is read */
        if (any)
            products<BITS, G>(s, slot, query, total, sum);
#pragma unroll
        for (int k = 0; k < PAIR; k++)
            if (first + k * SLOTS_THREADS < p.n)
                put_scores<G>(s, a, p, first + k * SLOTS_THREADS, pos[k], sum[k], score);
    }
}

/* Scores become exponentials under the largest of the block: a warp a query head. */
template <typename Score>
static __device__ void exponentials(const struct slots &s, const struct place &p, Score &score)
{
    int lane = (int)threadIdx.x % WARP;
    for (int g = (int)threadIdx.x / WARP; g < p.n_query; g += WARPS) {
        float top = -INFINITY, sum = 0;
        for (int j = lane; j < p.n; j += WARP)
            top = fmaxf(top, score[g * SLOTS_SPLIT + j]);
        for (int step = WARP / 2; step; step /= 2)
            top = fmaxf(top, __shfl_xor_sync(ALL_LANES, top, step));
        for (int j = lane; j < p.n; j += WARP) {
            float x = score[g * SLOTS_SPLIT + j], y = x == -INFINITY ? 0.0f : expf(x - top);
            score[g * SLOTS_SPLIT + j] = y;
            sum += y;
        }
        for (int step = WARP / 2; step; step /= 2)
            sum += __shfl_xor_sync(ALL_LANES, sum, step);
        size_t at = ((size_t)p.sequence * (size_t)s.n_head + (size_t)(p.query_head + g)) * (size_t)s.n_split +
                    (size_t)(p.first / s.split);
        if (lane == 0) {
            s.top[at] = top;
            s.total[at] = sum;
        }
    }
}

enum { MIX_AT_ONCE = 4, SUMS_STRIDE = SLOTS_THREADS + 1 };     /* values on their way to a thread; no bank conflicts */

/* Sums of N channels over every step-th slot. */
template <int BITS, int G, int N, typename Score>
static __device__ void mix(const struct slots &s, const struct place &p, const Score &score, int part, int from,
                           int step, float sum[G][N])
{
    float least[G] = {};                /* what the minima add to each channel                     */
#pragma unroll 1
    for (int first = from; first < p.n; first += MIX_AT_ONCE * step) {
        value_part<BITS, N> value[MIX_AT_ONCE];
        float weight[MIX_AT_ONCE][G], x[N];
#pragma unroll
        for (int k = 0; k < MIX_AT_ONCE; k++) {
            int j = first + k * step;
            float any = 0;
#pragma unroll
            for (int g = 0; g < G; g++) {
                weight[k][g] = g < p.n_query && j < p.n ? (float)score[g * SLOTS_SPLIT + j] : 0.0f;
                any += weight[k][g];
            }
            value[k] = {};
            if (any > 0)
                value_load(s, p.base + (size_t)(p.first + j), part, value[k]);
        }
#pragma unroll
        for (int k = 0; k < MIX_AT_ONCE; k++) {
            value_codes(value[k], x);
#pragma unroll
            for (int g = 0; g < G; g++) {
                float w = weight[k][g];
                if constexpr (BITS < 16) {
                    least[g] += w * value[k].scale.y;
                    w *= value[k].scale.x;
                }
#pragma unroll
                for (int i = 0; i < N; i++)
                    sum[g][i] += w * x[i];
            }
        }
    }
    if constexpr (BITS < 16)
#pragma unroll
        for (int g = 0; g < G; g++)
#pragma unroll
            for (int i = 0; i < N; i++)
                sum[g][i] = sum[g][i] * code_unit<BITS>(i) + least[g];
}

/* What the threads of a part of the channels have, added up in order, becomes the block's part of each query head. */
template <int G, int N, typename Sums>
static __device__ void add_up(const struct slots &s, const struct place &p, Sums &sums, int parts,
                              const float sum[G][N])
{
    int lanes = SLOTS_THREADS / parts, tid = (int)threadIdx.x;
#pragma unroll
    for (int g = 0; g < G; g++) {
        if (g >= p.n_query)             /* the same for the whole block                            */
            break;
#pragma unroll
        for (int i = 0; i < N; i++)
            sums[i * SUMS_STRIDE + tid] = sum[g][i];
        __syncthreads();
        for (int c = tid; c < s.d; c += SLOTS_THREADS) {
            float all = 0;
            for (int r = 0; r < lanes; r++)
                all += sums[c % N * SUMS_STRIDE + r * parts + c / N];
            size_t at = ((size_t)p.sequence * (size_t)s.n_head + (size_t)(p.query_head + g)) * (size_t)s.n_split +
                        (size_t)(p.first / s.split);
            s.part[at * (size_t)s.d + (size_t)c] = all;
        }
        __syncthreads();
    }
}

/* Registers for so many blocks of a multiprocessor: fewer do not keep the memory busy. */
enum { LEAST_BLOCKS = 5 };

template <int BITS, int G, int N>
__global__ void __launch_bounds__(SLOTS_THREADS, G == 1 ? LEAST_BLOCKS : 1) slots_scores(struct slots s, struct query a)
{
    SH_SHARED(float4, query, FOURS * G);
    SH_SHARED(float, total, BITS < 16 ? UNITS * G : 1);
    SH_SHARED(float, score, SLOTS_SPLIT * G);
    SH_SHARED(float, sums, N * SUMS_STRIDE);
    struct place p;
    p.sequence = (int)blockIdx.z;
    p.head = (int)blockIdx.y / a.n_part;
    int part = (int)blockIdx.y % a.n_part, tid = (int)threadIdx.x;
    p.query_head = p.head * s.group + part * G;
    p.n_query = min(G, s.group - part * G);
    p.row = a.start[p.sequence] + a.first;
    if (p.row >= a.start[p.sequence + 1])
        return;
    struct slots_head h = s.head[a.layer * s.n_kv_head + p.head];
    p.first = (int)blockIdx.x * s.split;
    p.n = min(s.split, s.state[slots_state_at(s, p.sequence, a.layer, p.head)].n_slot - p.first);
    p.base = slots_base(s, p.sequence, h);
    p.t = a.position[p.row];
    if (p.n <= 0)
        return;
    load_queries<BITS, G>(s, a, p, query, total, s.chunks * 128 / BITS);
    __syncthreads();
    scores<BITS, G>(s, a, p, query, total, score);
    __syncthreads();
    exponentials(s, p, score);
    __syncthreads();
    float sum[G][N] = {};
    int parts = s.units * SLOTS_UNIT / N;
    if (tid < SLOTS_THREADS / parts * parts)
        mix<BITS, G, N>(s, p, score, tid % parts, tid / parts, SLOTS_THREADS / parts, sum);
    add_up<G, N>(s, p, sums, parts, sum);
}

/* Numbers of a value that a thread takes at once: 16 bytes for one query, of which two have half. */
template <int BITS, int G> struct widest {
    enum { N = BITS < 16 && G == 1 ? 128 / BITS : BITS < 16 && G == 2 ? 64 / BITS : SLOTS_UNIT };
};

template <int BITS, int G> static void launch_group(struct sh_dev *d, const struct sh_slots *s, const struct query *a)
{
    enum { N = widest<BITS, G>::N };
    dim3 grid((unsigned)s->at.n_split, (unsigned)(s->at.n_own * a->n_part), (unsigned)s->at.n_seq);
    if (s->at.units * SLOTS_UNIT % N == 0 && s->at.code_group % N == 0)
        SH_LAUNCH((slots_scores<BITS, G, N>), grid, dim3(SLOTS_THREADS), d->compute, s->at, *a);
    else
        SH_LAUNCH((slots_scores<BITS, G, SLOTS_UNIT>), grid, dim3(SLOTS_THREADS), d->compute, s->at, *a);
}

template <int BITS> static void launch(struct sh_dev *d, const struct sh_slots *s, struct query a)
{
    int group = s->at.group, most = group > 4 ? SLOTS_GROUP : group > 2 ? 4 : group;
    a.n_part = (group + most - 1) / most;
    if (most == 1)
        launch_group<BITS, 1>(d, s, &a);
    else if (most == 2)
        launch_group<BITS, 2>(d, s, &a);
    else if (most == 4)
        launch_group<BITS, 4>(d, s, &a);
    else
        launch_group<BITS, SLOTS_GROUP>(d, s, &a);
}

void cuda_slots_scores(struct sh_dev *d, struct sh_slots *s, const struct sh_slots_step *a)
{
    const struct sh_attend *w = a->what;
    struct query query = {a->layer, a->first, a->start, a->position, (const float *)w->q.at, w->q.stride, w->scale,
                          w->softcap, w->window, 1};
    BY_BITS(s->bits, BITS, launch<BITS>(d, s, query));
}

/* ---- The parts of a head's attention put together, and what the policy learns of the row in the same pass: one
 * block a KV head of a sequence. With the largest score m_b and the sum l_b of each block b,
 *
 *     m = max m_b,  l = sum l_b e^(m_b - m),  out = sum part_b e^(m_b - m) / l
 *
 * and a slot's probability is e^(score - m) / l; the row is the mean over the KV head's query heads. ---- */

struct seeing {                         /* of a step                                               */
    int layer, first, window;
    int stride;                         /* of out; as an int it leaves no hole before the pointers */
    const int *start, *position;
    int *fault;
};

struct seen {                           /* by the block                                            */
    int sequence, head, row, t, n_slot, n_split;
    size_t base, heads;                 /* first slot; number of the first query head, over all sequences */
};

/* top[g] = m, inverse[g] = 1 / l; what is in s.top becomes the weight of the block's part. */
template <typename Each>
static __device__ void weigh(const struct slots &s, const struct seeing &a, const struct seen &p, Each &top,
                             Each &inverse)
{
    int lane = (int)threadIdx.x % WARP;
    for (int g = (int)threadIdx.x / WARP; g < s.group; g += WARPS) {
        size_t at = (p.heads + (size_t)g) * (size_t)s.n_split;
        float most = -INFINITY, sum = 0;
        for (int b = lane; b < p.n_split; b += WARP)
            most = fmaxf(most, s.top[at + (size_t)b]);
        for (int step = WARP / 2; step; step /= 2)
            most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, step));
        for (int b = lane; b < p.n_split; b += WARP)
            sum += s.total[at + (size_t)b] > 0 ? s.total[at + (size_t)b] * expf(s.top[at + (size_t)b] - most)
                                               : s.total[at + (size_t)b];     /* 0, or no number       */
        for (int step = WARP / 2; step; step /= 2)
            sum += __shfl_xor_sync(ALL_LANES, sum, step);
        float by = 1.0f / sum;
        for (int b = lane; b < p.n_split; b += WARP)
            s.top[at + (size_t)b] = s.total[at + (size_t)b] > 0 ? expf(s.top[at + (size_t)b] - most) * by : 0.0f;
        if (lane == 0) {
            top[g] = most;
            inverse[g] = by;
            if (!(sum < INFINITY))
                atomicMax(a.fault, 1 + p.sequence);
        }
    }
}

template <typename T> static __device__ void put_out(const struct slots &s, const struct seen &p, T *out, size_t stride)
{
    T *to = out + (size_t)p.row * stride + (size_t)(p.head * s.group) * (size_t)s.d;
    for (int i = (int)threadIdx.x; i < s.group * s.d; i += SLOTS_THREADS) {
        size_t at = (p.heads + (size_t)(i / s.d)) * (size_t)s.n_split;
        float sum = 0;
        for (int b = 0; b < p.n_split; b++)
            if (s.top[at + (size_t)b] > 0)
                sum += s.top[at + (size_t)b] * s.part[(at + (size_t)b) * (size_t)s.d + (size_t)(i % s.d)];
        to[i] = from_float<T>(sum);
    }
}

/* The group's mean probability of a slot. */
template <typename Each>
static __device__ float probability(const struct slots &s, const struct seen &p, int slot, const Each &top,
                                    const Each &inverse)
{
    float sum = 0;
    for (int g = 0; g < s.group; g++) {
        float x = s.scores[(p.heads + (size_t)g) * (size_t)s.most_slots + (size_t)slot];
        sum += x == -INFINITY ? 0.0f : expf(x - top[g]) * inverse[g];
    }
    return s.group > 1 ? __fdiv_rn(sum, (float)s.group) : sum;
}

/* How many slots the softmax ran over. */
template <typename Count>
static __device__ int count_seen(const struct slots &s, const struct seen &p, int oldest, Count &count)
{
    int n = 0;
    for (int i = (int)threadIdx.x; i < p.n_slot; i += SLOTS_THREADS) {
        int pos = s.pos[p.base + (size_t)i];
        n += pos >= 0 && pos >= oldest;
    }
    return block_count(count, n);
}

/* The bits of 32 slots, a warp: the row comes in, that of number t - look_back goes out of the counts. */
static __device__ void count_ring(const struct slots &s, const struct slots_head &h, const struct seen &p, int i,
                                  int low, int pos)
{
    size_t words = (size_t)h.ring_words;
    uint32_t *word = s.ring + (size_t)p.sequence * (size_t)s.ring_each + (size_t)h.ring_at +
                     (size_t)(p.t % s.policy.look_back) * words + (size_t)(i / WARP);
    unsigned come = __ballot_sync(ALL_LANES, low), went = *word;
    int lane = i % WARP, gone = p.t - s.policy.look_back;
    if (pos >= 0) {
        uint16_t *count = &s.low[p.base + (size_t)i];
        *count = (uint16_t)(*count + low - (int)((went >> lane & 1) && pos <= gone));
    }
    __syncwarp();
    if (lane == 0)
        *word = come;
}

static __device__ void count_epoch(const struct slots &s, const struct seen &p, int i, int low)
{
    size_t at = p.base + (size_t)i;
    int begins = p.t > 0 && p.t % s.policy.look_back == 0;
    if (begins)
        s.before[at] = s.low[at];
    s.low[at] = (uint16_t)((begins ? 0 : s.low[at]) + low);
}

/* A slot's share of the row, which every thread of a warp has one of; i may be after the last slot. */
static __device__ void learn(const struct slots &s, const struct slots_head &h, const struct seen &p, int i, float x,
                             float limit)
{
    int is_slot = i < p.n_slot, pos = is_slot ? s.pos[p.base + (size_t)i] : -1, low = pos >= 0 && x < limit;
    if (is_slot && s.keep_rows)
        s.rows[((size_t)p.sequence * (size_t)s.n_kv_head + (size_t)p.head) * (size_t)s.most_slots + (size_t)i] = x;
    switch (s.policy.rule) {
    case SH_SLOTS_SUM:
    case SH_SLOTS_MEAN:
        if (is_slot)
            s.sum[p.base + (size_t)i] = __fadd_rn(__fmul_rn(s.sum[p.base + (size_t)i], s.policy.decay), x);
        break;
    case SH_SLOTS_LOW_RING: count_ring(s, h, p, i, low, pos); break;
    case SH_SLOTS_LOW_EPOCHS:
        if (is_slot)
            count_epoch(s, p, i, low);
        break;
    default: break;
    }
}

template <typename T>
__global__ void __launch_bounds__(SLOTS_THREADS) slots_observe(struct slots s, struct seeing a, T *out)
{
    SH_SHARED(float, top, SH_SLOTS_MOST_GROUP);
    SH_SHARED(float, inverse, SH_SLOTS_MOST_GROUP);
    SH_SHARED(int, count, 1);
    struct seen p;
    p.head = (int)blockIdx.x;
    p.sequence = (int)blockIdx.y;
    p.row = a.start[p.sequence] + a.first;
    if (p.row >= a.start[p.sequence + 1])
        return;
    struct slots_head h = s.head[a.layer * s.n_kv_head + p.head];
    p.t = a.position[p.row];
    p.n_slot = s.state[slots_state_at(s, p.sequence, a.layer, p.head)].n_slot;
    p.n_split = (p.n_slot + s.split - 1) / s.split;
    p.base = slots_base(s, p.sequence, h);
    p.heads = (size_t)p.sequence * (size_t)s.n_head + (size_t)(p.head * s.group);
    weigh(s, a, p, top, inverse);
    __syncthreads();
    put_out(s, p, out, (size_t)a.stride);
    if (!s.scores)
        return;
    float limit = 0;
    if (s.low)
        limit = low_limit(s.policy.by_row ? p.t + 1
                                          : count_seen(s, p, a.window > 0 ? p.t + 1 - a.window : 0, count));
    for (int i = (int)threadIdx.x; i < (p.n_slot + WARP - 1) / WARP * WARP; i += SLOTS_THREADS)
        learn(s, h, p, i, i < p.n_slot ? probability(s, p, i, top, inverse) : 0.0f, limit);
}

void cuda_slots_see(struct sh_dev *d, struct sh_slots *s, const struct sh_slots_step *a)
{
    const struct sh_attend *w = a->what;
    struct seeing seeing = {a->layer, a->first, w->window, (int)w->out.stride, a->start, a->position, d->fault};
    dim3 grid((unsigned)s->at.n_own, (unsigned)s->at.n_seq);
    BY_TYPE(w->out.type, T,
            SH_LAUNCH((slots_observe<T>), grid, dim3(SLOTS_THREADS), d->compute, s->at, seeing, (T *)w->out.at));
}
