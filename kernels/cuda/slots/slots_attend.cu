/* SPDX-License-Identifier: Apache-2.0 */
/* The attention of one token of each sequence over its slots, split over the slots: a block takes up to
 * SLOTS_SPLIT slots of one KV head and up to SLOTS_GROUP of the query heads that share it, so that a key or
 * value is read once for all of them. It leaves the largest score, the sum of exponentials under it and the
 * values weighted by these; slots_observe.cu puts the blocks of a head together.
 *
 * First each thread has a slot: its key against all queries, which lie in shared memory. Then the threads
 * divide the channels in units of 8, several slots at once, and their sums meet in shared memory. Of free
 * slots, and of tokens that a window hides, nothing is read. */
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

/* The queries, padded with zeros to whole chunks, four channels at once: query[g * FOURS + c / 4]. */
enum { FOURS = SH_SLOTS_WIDEST / 4 };

template <int G, typename Query>
static __device__ void load_queries(const struct slots &s, const struct query &a, const struct place &p, Query &query,
                                    int width)
{
    const float *q = a.q + (size_t)p.row * a.stride + (size_t)p.query_head * (size_t)s.d;
    for (int i = (int)threadIdx.x; i < G * FOURS; i += SLOTS_THREADS) {
        int g = i / FOURS, c = i % FOURS * 4;
        float x[4];
        for (int k = 0; k < 4; k++)
            x[k] = c + k < s.d && g < p.n_query ? q[(size_t)g * (size_t)s.d + (size_t)(c + k)] : 0.0f;
        if (c < width)
            query[i] = make_float4(x[0], x[1], x[2], x[3]);
    }
}

template <int BITS, int G, typename Query>
static __device__ void products(const struct slots &s, size_t slot, const Query &query, float *sum)
{
    enum { N = 128 / BITS };            /* numbers of a chunk                                      */
#pragma unroll
    for (int g = 0; g < G; g++)
        sum[g] = 0;
#pragma unroll 4
    for (int chunk = 0; chunk < s.chunks; chunk++) {
        float x[N];
        key_chunk<BITS>(s, slot, chunk, x);
#pragma unroll
        for (int i = 0; i < N; i += 4)
#pragma unroll
            for (int g = 0; g < G; g++) {
                float4 q = query[g * FOURS + (chunk * N + i) / 4];
                sum[g] += x[i] * q.x;
                sum[g] += x[i + 1] * q.y;
                sum[g] += x[i + 2] * q.z;
                sum[g] += x[i + 3] * q.w;
            }
    }
}

/* score[g * SLOTS_SPLIT + j] of the block's slots; -INFINITY where nothing is seen. */
template <int BITS, int G, typename Query, typename Score>
static __device__ void scores(const struct slots &s, const struct query &a, const struct place &p, const Query &query,
                              Score &score)
{
    int oldest = a.window > 0 ? p.t + 1 - a.window : 0;
    for (int j = (int)threadIdx.x; j < p.n; j += SLOTS_THREADS) {
        size_t slot = p.base + (size_t)(p.first + j);
        int pos = s.pos[slot], seen = pos >= 0 && pos >= oldest;
        float sum[G];
        if (seen)
            products<BITS, G>(s, slot, query, sum);
#pragma unroll
        for (int g = 0; g < G; g++) {
            if (g >= p.n_query)
                break;
            float x = seen ? score_of(s, a, sum[g], p.query_head + g, p.t - pos) : -INFINITY;
            score[g * SLOTS_SPLIT + j] = x;
            if (s.scores) {
                size_t row = (size_t)p.sequence * (size_t)s.n_head + (size_t)(p.query_head + g);
                s.scores[row * (size_t)s.most_slots + (size_t)(p.first + j)] = x;
            }
        }
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

enum { MIX_AT_ONCE = 4 };              /* values on their way to a thread: one would not keep the memory busy */

/* Sums of 8 channels over every step-th slot. */
template <int BITS, int G, typename Score>
static __device__ void mix(const struct slots &s, const struct place &p, const Score &score, int unit, int from,
                           int step, float sum[G][SLOTS_UNIT])
{
    for (int first = from; first < p.n; first += MIX_AT_ONCE * step) {
        value_unit<BITS> value[MIX_AT_ONCE];
        float weight[MIX_AT_ONCE][G], x[SLOTS_UNIT];
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
                value_load<BITS>(s, p.base + (size_t)(p.first + j), unit, value[k]);
        }
#pragma unroll
        for (int k = 0; k < MIX_AT_ONCE; k++) {
            value_numbers<BITS>(value[k], x);
#pragma unroll
            for (int g = 0; g < G; g++)
#pragma unroll
                for (int i = 0; i < SLOTS_UNIT; i++)
                    sum[g][i] += weight[k][g] * x[i];
        }
    }
}

/* What the threads of a unit have, added up in order, becomes the block's part of each query head. */
template <int G, typename Sums>
static __device__ void add_up(const struct slots &s, const struct place &p, Sums &sums, const float sum[G][SLOTS_UNIT])
{
    int lanes = SLOTS_THREADS / s.units, tid = (int)threadIdx.x;
#pragma unroll
    for (int g = 0; g < G; g++) {
        if (g >= p.n_query)             /* the same for the whole block                            */
            break;
#pragma unroll
        for (int i = 0; i < SLOTS_UNIT; i++)
            sums[i * SLOTS_THREADS + tid] = sum[g][i];
        __syncthreads();
        for (int c = tid; c < s.d; c += SLOTS_THREADS) {
            float all = 0;
            for (int r = 0; r < lanes; r++)
                all += sums[c % SLOTS_UNIT * SLOTS_THREADS + r * s.units + c / SLOTS_UNIT];
            size_t at = ((size_t)p.sequence * (size_t)s.n_head + (size_t)(p.query_head + g)) * (size_t)s.n_split +
                        (size_t)(p.first / s.split);
            s.part[at * (size_t)s.d + (size_t)c] = all;
        }
        __syncthreads();
    }
}

template <int BITS, int G> __global__ void __launch_bounds__(SLOTS_THREADS) slots_scores(struct slots s, struct query a)
{
    SH_SHARED(float4, query, FOURS * G);
    SH_SHARED(float, score, SLOTS_SPLIT * G);
    SH_SHARED(float, sums, SLOTS_UNIT * SLOTS_THREADS);
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
    load_queries<G>(s, a, p, query, s.chunks * 128 / BITS);
    __syncthreads();
    scores<BITS, G>(s, a, p, query, score);
    __syncthreads();
    exponentials(s, p, score);
    __syncthreads();
    float sum[G][SLOTS_UNIT] = {};
    if (tid < SLOTS_THREADS / s.units * s.units)
        mix<BITS, G>(s, p, score, tid % s.units, tid / s.units, SLOTS_THREADS / s.units, sum);
    add_up<G>(s, p, sums, sum);
}

template <int BITS> static void launch(struct sh_dev *d, const struct sh_slots *s, struct query a)
{
    int group = s->at.group, most = group > 4 ? SLOTS_GROUP : group > 2 ? 4 : group;
    a.n_part = (group + most - 1) / most;
    dim3 grid((unsigned)s->at.n_split, (unsigned)(s->at.n_kv_head * a.n_part), (unsigned)s->at.n_seq);
    if (most == 1)
        SH_LAUNCH((slots_scores<BITS, 1>), grid, dim3(SLOTS_THREADS), d->compute, s->at, a);
    else if (most == 2)
        SH_LAUNCH((slots_scores<BITS, 2>), grid, dim3(SLOTS_THREADS), d->compute, s->at, a);
    else if (most == 4)
        SH_LAUNCH((slots_scores<BITS, 4>), grid, dim3(SLOTS_THREADS), d->compute, s->at, a);
    else
        SH_LAUNCH((slots_scores<BITS, SLOTS_GROUP>), grid, dim3(SLOTS_THREADS), d->compute, s->at, a);
}

void cuda_slots_scores(struct sh_dev *d, struct sh_slots *s, const struct sh_slots_step *a)
{
    const struct sh_attend *w = a->what;
    struct query query;
    query.layer = a->layer;
    query.first = a->first;
    query.start = a->start;
    query.position = a->position;
    query.q = (const float *)w->q.at;
    query.stride = w->q.stride;
    query.scale = w->scale;
    query.softcap = w->softcap;
    query.window = w->window;
    query.n_part = 1;
    BY_BITS(s->bits, BITS, launch<BITS>(d, s, query));
}
