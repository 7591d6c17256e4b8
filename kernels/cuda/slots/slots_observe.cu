/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a head's attention put together, and what the policy learns of the row in the same pass: one
 * block a KV head of a sequence. With the largest score m_b and the sum l_b of each block b,
 *
 *     m = max m_b,  l = sum l_b e^(m_b - m),  out = sum part_b e^(m_b - m) / l
 *
 * and a slot's probability is e^(score - m) / l; the row is the mean over the KV head's query heads. */
#include "kernels/cuda/slots/slots.cuh"

enum { WARPS = SLOTS_THREADS / WARP };

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
    if (threadIdx.x == 0)
        count[0] = 0;
    __syncthreads();
    for (int i = (int)threadIdx.x; i < p.n_slot; i += SLOTS_THREADS) {
        int pos = s.pos[p.base + (size_t)i];
        n += pos >= 0 && pos >= oldest;
    }
    atomicAdd(&count[0], n);
    __syncthreads();
    return count[0];
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

/* A slot's share of the row, which every thread of a warp has one of; i may lie behind the last slot. */
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
    if (s.policy.rule == SH_SLOTS_LOW_RING || s.policy.rule == SH_SLOTS_LOW_EPOCHS)
        limit = low_limit(s.policy.by_row ? p.t + 1
                                          : count_seen(s, p, a.window > 0 ? p.t + 1 - a.window : 0, count));
    for (int i = (int)threadIdx.x; i < (p.n_slot + WARP - 1) / WARP * WARP; i += SLOTS_THREADS)
        learn(s, h, p, i, i < p.n_slot ? probability(s, p, i, top, inverse) : 0.0f, limit);
}

void cuda_slots_see(struct sh_dev *d, struct sh_slots *s, const struct sh_slots_step *a)
{
    const struct sh_attend *w = a->what;
    struct seeing seeing;
    seeing.layer = a->layer;
    seeing.first = a->first;
    seeing.window = w->window;
    seeing.start = a->start;
    seeing.position = a->position;
    seeing.stride = (int)w->out.stride;
    seeing.fault = d->fault;
    dim3 grid((unsigned)s->at.n_kv_head, (unsigned)s->at.n_seq);
    BY_TYPE(w->out.type, T,
            SH_LAUNCH((slots_observe<T>), grid, dim3(SLOTS_THREADS), d->compute, s->at, seeing, (T *)w->out.at));
}
