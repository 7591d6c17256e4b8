/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a block of a prompt: all of them attend together over the cache's slots and causally over the block's
 * tokens. Products by cuBLAS, one batch for all KV heads, in two parts, since the cached keys and values lie in
 * slots_wide and those of the block are the caller's; as in attend.cu, member g of all groups is one batch against
 * the same keys. Then the policy learns row by row, a thread a column. */
#include "kernels/cuda/slots/slots.cuh"

struct tile {                           /* rows that attend together                               */
    int row, n;                         /* numbers [row, row + n) of the block                     */
    int cached;                         /* columns of scores for cached tokens; 0: no row sees one */
    int first;                          /* the first of the block's tokens that has a column       */
    int columns, window;                /* that some row sees                                      */
};

struct part {                           /* keys or values of some columns                          */
    struct cuda_operand rows;
    int column, n;
};

/* ---- products ---- */

/* The scores of member g of all groups, in the columns of the part. */
static struct cuda_operand scores_of(const struct sh_slots *s, const struct part *p, size_t g)
{
    size_t columns = (size_t)s->wide.columns, each = (size_t)s->wide.rows * columns;
    return {s->wide.scores + g * each + (size_t)p->column, columns, (size_t)s->at.group * each};
}

/* Query rows, or rows of what comes out, of member g of all groups. */
static struct cuda_operand member(const struct sh_slots *s, const float *at, size_t stride, size_t g)
{
    size_t d = (size_t)s->at.d;
    return {at + g * d, stride, (size_t)s->at.group * d};
}

/* s = scale q k^T; as columns: [keys, d] [d, queries]. */
static void multiply_keys(struct sh_dev *d, const struct sh_slots *s, const struct sh_attend *w, const float *q, int n,
                          const struct part *keys)
{
    for (int g = 0; g < s->at.group && keys->n; g++) {
        struct cuda_product p = {CUBLAS_OP_T, keys->n, n, s->at.d, w->scale, 0, keys->rows,
                                 member(s, q, w->q.stride, (size_t)g), scores_of(s, keys, (size_t)g)};
        if (cuda_multiply(d, "slots", &p, s->at.n_own))
            return;
    }
}

/* out = p v, or more of it; as columns: [d, keys] [keys, queries]. */
static void multiply_values(struct sh_dev *d, const struct sh_slots *s, float *out, size_t stride, int n,
                            const struct part *values, float beta)
{
    for (int g = 0; g < s->at.group && values->n; g++) {
        struct cuda_product p = {CUBLAS_OP_N, s->at.d, n, values->n, 1, beta, values->rows,
                                 scores_of(s, values, (size_t)g), member(s, out, stride, (size_t)g)};
        if (cuda_multiply(d, "slots", &p, s->at.n_own))
            return;
    }
}

/* Of k or v: the columns of cached tokens, and those of the block's. */
static struct part cached_part(const struct sh_slots *s, const struct tile *t, const float *at)
{
    size_t d = (size_t)s->at.d;
    return {{at, d, (size_t)s->wide.cached * d}, 0, t->cached};
}

static struct part own_part(const struct sh_slots *s, const struct tile *t, const struct slots_block *b,
                            const struct sh_mat *m)
{
    const float *at = (const float *)m->at + (size_t)(b->row + t->first) * m->stride;
    return {{at, m->stride, (size_t)s->at.d}, t->cached, t->columns - t->cached};
}

/* ---- softmax ---- */

/* Scores of a row and query head become probabilities: 0 where nothing is, or comes later, or is before the
 * window. One block of threads each. */
__global__ void __launch_bounds__(SLOTS_THREADS)
slots_softmax(struct slots s, struct slots_wide w, struct slots_block b, struct tile t, float softcap, int *fault)
{
    SH_SHARED(float, part, SUM_PARTS(SLOTS_THREADS));
    int row = (int)blockIdx.x, head = (int)blockIdx.y, kv_head = head / s.group, now = b.first + t.row + row;
    int oldest = t.window > 0 && now + 1 > t.window ? now + 1 - t.window : 0;
    float *p = w.scores + ((size_t)head * (size_t)w.rows + (size_t)row) * (size_t)w.columns;
    const int *at = w.pos + (size_t)kv_head * (size_t)w.columns;
    float slope = s.slopes ? s.slopes[head] : 0.0f, top = -INFINITY, sum = 0, n = 0;
    for (int j = (int)threadIdx.x; j < t.columns; j += SLOTS_THREADS) {
        int pos = at[j < t.cached ? j : b.cached + t.first + j - t.cached], seen = pos >= oldest && pos <= now;
        float x = softcap > 0 ? softcap * tanhf(p[j] / softcap) : p[j];
        p[j] = x = seen ? x - slope * (float)(now - pos) : -INFINITY;
        top = fmaxf(top, x);
        n += (float)seen;                               /* exact: there are no 2^24 slots          */
    }
    top = block_max<SLOTS_THREADS>(part, top);
    for (int j = (int)threadIdx.x; j < t.columns; j += SLOTS_THREADS)
        sum += p[j] == -INFINITY ? 0.0f : expf(p[j] - top);
    sum = block_sum<SLOTS_THREADS>(part, sum);
    if (w.limit && !s.policy.by_row)
        n = block_sum<SLOTS_THREADS>(part, n);
    if (threadIdx.x == 0 && !(sum < INFINITY))
        atomicMax(fault, 1 + b.sequence);
    if (threadIdx.x == 0 && w.limit && head % s.group == 0)
        w.limit[(size_t)kv_head * (size_t)w.rows + (size_t)row] = low_limit(s.policy.by_row ? now + 1 : (int)n);
    float inverse = 1.0f / sum;
    for (int j = (int)threadIdx.x; j < t.columns; j += SLOTS_THREADS)
        p[j] = p[j] == -INFINITY ? 0.0f : __fmul_rn(expf(p[j] - top), inverse);
}

/* ---- the policy ---- */

struct known {                          /* of a column's token                                     */
    float sum;
    int low, before;
};

/* The rows' means over the group's query heads. */
static __device__ float mean_of(const struct slots &s, const struct slots_wide &w, int kv_head, int row, int j)
{
    float sum = 0;
    for (int g = 0; g < s.group; g++) {
        size_t head = (size_t)(kv_head * s.group + g);
        sum += w.scores[(head * (size_t)w.rows + (size_t)row) * (size_t)w.columns + (size_t)j];
    }
    return s.group > 1 ? __fdiv_rn(sum, (float)s.group) : sum;
}

/* The bits of a warp's columns: row t comes in, and t - look_back goes out of the counts of those that it was
 * there for. `number`: of the row in the block. */
static __device__ int count_ring(const struct slots &s, const struct slots_wide &w, int kv_head, int number, int t,
                                 int j, int pos, int is_low)
{
    size_t row = (size_t)kv_head * (size_t)w.ring_rows + (size_t)(number % s.policy.look_back);
    uint32_t *word = w.ring + row * (size_t)(w.columns / WARP) + (size_t)(j / WARP);
    unsigned come = __ballot_sync(ALL_LANES, is_low), went = *word;
    __syncwarp();
    if (j % WARP == 0)
        *word = come;
    __syncwarp();
    return is_low - (int)((went >> (j % WARP) & 1) && pos >= 0 && pos <= t - s.policy.look_back);
}

static __device__ void count_epoch(const struct slots &s, int t, int is_low, struct known &k)
{
    if (t > 0 && t % s.policy.look_back == 0) {
        k.before = k.low;
        k.low = 0;
    }
    k.low += is_low;
}

/* Rows [t.row, t.row + t.n), which have a column for every token; a token that comes later gets nothing. */
__global__ void __launch_bounds__(SLOTS_THREADS)
slots_learn(struct slots s, struct slots_wide w, struct slots_block b, struct tile t)
{
    int kv_head = (int)blockIdx.y, j = (int)(blockIdx.x * SLOTS_THREADS + threadIdx.x), is_column = j < t.columns;
    size_t at = (size_t)kv_head * (size_t)w.columns + (size_t)j;
    int pos = is_column ? w.pos[at] : -1;
    struct known k;
    k.sum = is_column && w.sum ? w.sum[at] : 0.0f;
    k.low = is_column && w.low ? w.low[at] : 0;
    k.before = is_column && w.before ? w.before[at] : 0;
    if (j / WARP * WARP >= t.columns)                   /* whole warps                             */
        return;
    for (int i = 0; i < t.n; i++) {
        int now = b.first + t.row + i;
        size_t row = (size_t)kv_head * (size_t)w.rows + (size_t)i;
        float x = is_column ? mean_of(s, w, kv_head, i, j) : 0.0f;
        int is_low = w.limit && pos >= 0 && pos <= now && x < w.limit[row];
        if (w.mean && is_column)
            w.mean[row * (size_t)w.columns + (size_t)j] = x;
        if (w.sum)
            k.sum = __fadd_rn(__fmul_rn(k.sum, s.policy.decay), x);
        if (w.ring)
            k.low += count_ring(s, w, kv_head, t.row + i, now, j, pos, is_low);
        else if (w.limit)
            count_epoch(s, now, is_low, k);
    }
    if (is_column && w.sum)
        w.sum[at] = k.sum;
    if (is_column && w.low)
        w.low[at] = (uint16_t)k.low;
    if (is_column && w.before)
        w.before[at] = (uint16_t)k.before;
}

/* ---- both ---- */

/* The columns that some row of the tile sees. A policy that learns, or a caller that looks, needs columns for all
 * tokens. */
static struct tile tile_of(const struct slots_block *b, int first, int n, int window, int learns)
{
    int hidden = !learns && window > 0 && first + 1 > window ? first + 1 - window : 0;
    int cached = !learns && window > 0 && first + 1 >= window ? 0 : b->cached;
    return {first, n, cached, hidden, cached + first + n - hidden, window};
}

void cuda_slots_rows(struct sh_dev *d, const struct sh_slots *s, const struct sh_slots_block *a,
                     const struct slots_block *b, int first, int n)
{
    const struct sh_attend *w = a->what;
    int learns = s->at.policy.rule != SH_SLOTS_OLDEST || s->wide.mean, row = b->row + first;
    struct tile t = tile_of(b, first, n, w->window, learns);
    const float *q = (const float *)w->q.at + (size_t)row * w->q.stride;
    struct sh_mat to = w->out, from;
    to.at = (char *)to.at + (size_t)row * to.stride * sh_type_bytes(to.type);
    to.rows = n;
    from = to;
    if (to.type != SH_F32) {
        from.at = s->wide.out;
        from.type = SH_F32;
        from.stride = (size_t)from.cols;
    }
    struct part keys = cached_part(s, &t, s->wide.k), own_keys = own_part(s, &t, b, &w->k);
    struct part values = cached_part(s, &t, s->wide.v), own_values = own_part(s, &t, b, &w->v);
    cuda_stage_begin(d, SH_STAGE_ATTENTION);
    multiply_keys(d, s, w, q, n, &keys);
    multiply_keys(d, s, w, q, n, &own_keys);
    cuda_stage_end(d);
    if (cuda_has_failed(d))
        return;
    cuda_stage_begin(d, SH_STAGE_SOFTMAX);
    SH_LAUNCH(slots_softmax, dim3((unsigned)n, (unsigned)w->n_head), dim3(SLOTS_THREADS), d->compute, s->at, s->wide,
              *b, t, w->softcap, d->fault);
    cuda_stage_end(d);
    cuda_stage_begin(d, SH_STAGE_ATTENTION);
    multiply_values(d, s, (float *)from.at, from.stride, n, &values, 0);
    multiply_values(d, s, (float *)from.at, from.stride, n, &own_values, values.n ? 1 : 0);
    cuda_stage_end(d);
    if (cuda_has_failed(d))
        return;
    if (to.type != SH_F32)
        cuda_convert(d, &to, &from, d->compute);
    dim3 columns((unsigned)((t.columns + SLOTS_THREADS - 1) / SLOTS_THREADS), (unsigned)s->at.n_own);
    if (!learns)
        return;
    cuda_stage_begin(d, SH_STAGE_EVICTION);
    SH_LAUNCH(slots_learn, columns, dim3(SLOTS_THREADS), d->compute, s->at, s->wide, *b, t);
    cuda_stage_end(d);
}
