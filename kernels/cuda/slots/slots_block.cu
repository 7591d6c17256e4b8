/* SPDX-License-Identifier: Apache-2.0 */
/* A block of a prompt's tokens (src/engine/block.c): the memory for it, what the cache holds opened into it, and
 * the order of its parts. How many tokens a head has cached is known on the device only; the host knows how many
 * slots may be in use, and free ones count nothing. So nothing waits for the device, unless rows are shown. */
#include <stdlib.h>

#include "kernels/cuda/slots/slots.cuh"
#include "kernels/cuda/slots/slots_unpack.cuh"

enum { TILE_BYTES = 48 << 20, LEAST_ROWS = 16 };        /* of scores, as in attend.cu               */

enum part { POS, SUM, LOW, BEFORE, RING, K, V, SCORES, OUT, LIMIT, MEAN, LIST, TO, FROM };
static_assert((int)FROM + 1 == (int)SLOTS_WIDE_PARTS, "one size a part");

static int whole_warps(int n)
{
    return (n + WARP - 1) / WARP * WARP;
}

void cuda_slots_wide_sizes(const struct slots *s, int n, struct slots_wide *w, size_t bytes[SLOTS_WIDE_PARTS])
{
    memset(w, 0, sizeof *w);
    memset(bytes, 0, SLOTS_WIDE_PARTS * sizeof *bytes);
    if (!n)
        return;
    enum sh_slots_rule rule = s->policy.rule;
    int is_ring = rule == SH_SLOTS_LOW_RING;
    w->cached = whole_warps(s->most_slots);
    w->columns = w->cached + whole_warps(n);
    size_t heads = (size_t)s->n_kv_head, all = heads * (size_t)w->columns, queries = (size_t)s->n_head;
    size_t fit = TILE_BYTES / (queries * (size_t)w->columns * sizeof(float)) / LEAST_ROWS * LEAST_ROWS;
    w->rows = fit < LEAST_ROWS ? LEAST_ROWS : fit > (size_t)n ? n : (int)fit;
    w->rows = w->rows > n ? n : w->rows;
    w->ring_rows = !is_ring ? 0 : s->policy.look_back < n ? s->policy.look_back : n;
    size_t rows = (size_t)w->rows;
    bytes[POS] = bytes[LIST] = bytes[TO] = bytes[FROM] = all * sizeof(int);
    bytes[SUM] = rule == SH_SLOTS_SUM || rule == SH_SLOTS_MEAN ? all * sizeof(float) : 0;
    bytes[LOW] = slots_counts_low(s) ? all * sizeof(uint16_t) : 0;
    bytes[BEFORE] = rule == SH_SLOTS_LOW_EPOCHS ? bytes[LOW] : 0;
    bytes[RING] = all / WARP * (size_t)w->ring_rows * sizeof(uint32_t);
    bytes[K] = bytes[V] = heads * (size_t)w->cached * (size_t)s->d * sizeof(float);
    bytes[SCORES] = queries * rows * (size_t)w->columns * sizeof(float);
    bytes[OUT] = queries * rows * (size_t)s->d * sizeof(float);
    bytes[LIMIT] = slots_counts_low(s) ? heads * rows * sizeof(float) : 0;
    bytes[MEAN] = s->keep_rows ? all * rows * sizeof(float) : 0;
}

void cuda_slots_wide_place(struct slots_wide *w, void *const memory[SLOTS_WIDE_PARTS])
{
    w->pos = (int *)memory[POS];
    w->sum = (float *)memory[SUM];
    w->low = (uint16_t *)memory[LOW];
    w->before = (uint16_t *)memory[BEFORE];
    w->ring = (uint32_t *)memory[RING];
    w->k = (float *)memory[K];
    w->v = (float *)memory[V];
    w->scores = (float *)memory[SCORES];
    w->out = (float *)memory[OUT];
    w->limit = (float *)memory[LIMIT];
    w->mean = (float *)memory[MEAN];
    w->list = (int *)memory[LIST];
    w->to = (int *)memory[TO];
    w->from = (int *)memory[FROM];
}

/* ---- what the cache holds ---- */

/* Which tokens are there, and what the policy knows of them; one thread for each column. */
__global__ void __launch_bounds__(SLOTS_THREADS) slots_open(struct slots s, struct slots_wide w, struct slots_block b)
{
    int head = (int)blockIdx.y, j = (int)(blockIdx.x * SLOTS_THREADS + threadIdx.x);
    if (j >= b.cached + b.n)
        return;
    struct slots_head h = s.head[b.layer * s.n_kv_head + head];
    int is_slot = j < b.cached && j < s.state[slots_state_at(s, b.sequence, b.layer, head)].n_slot;
    size_t slot = slots_base(s, b.sequence, h) + (size_t)j, at = (size_t)head * (size_t)w.columns + (size_t)j;
    w.pos[at] = j >= b.cached ? b.first + j - b.cached : is_slot ? s.pos[slot] : -1;
    if (w.sum)
        w.sum[at] = is_slot ? s.sum[slot] : 0;
    if (w.low)
        w.low[at] = is_slot ? s.low[slot] : 0;
    if (w.before)
        w.before[at] = is_slot ? s.before[slot] : 0;
}

/* The rows of the ring that the block's rows will take the place of. */
__global__ void slots_open_ring(struct slots s, struct slots_wide w, struct slots_block b)
{
    int row = (int)blockIdx.x, head = (int)blockIdx.y, words = w.columns / WARP;
    struct slots_head h = s.head[b.layer * s.n_kv_head + head];
    int n_slot = s.state[slots_state_at(s, b.sequence, b.layer, head)].n_slot, old = (n_slot + WARP - 1) / WARP;
    const uint32_t *from = s.ring + (size_t)b.sequence * (size_t)s.ring_each + (size_t)h.ring_at +
                           (size_t)((b.first + row) % s.policy.look_back) * (size_t)h.ring_words;
    uint32_t *to = w.ring + ((size_t)head * (size_t)w.ring_rows + (size_t)row) * (size_t)words;
    for (int i = (int)threadIdx.x; i < words; i += SLOTS_THREADS)
        to[i] = i < old ? from[i] : 0;
}

/* Keys and values as floats; zeros where no token is. */
template <int BITS>
__global__ void __launch_bounds__(SLOTS_THREADS) slots_floats(struct slots s, struct slots_wide w, struct slots_block b)
{
    enum { N = 128 / BITS };
    int head = (int)blockIdx.y, step = (int)gridDim.x * SLOTS_THREADS;
    int i = (int)(blockIdx.x * SLOTS_THREADS + threadIdx.x);
    size_t base = slots_base(s, b.sequence, s.head[b.layer * s.n_kv_head + head]);
    const int *pos = w.pos + (size_t)head * (size_t)w.columns;
    float *k = w.k + (size_t)head * (size_t)w.cached * (size_t)s.d, *v = w.v + (k - w.k);
    for (int at = i; at < b.cached * s.chunks; at += step) {    /* neighbours have neighbouring slots */
        int slot = at % b.cached, c = at / b.cached * N;
        float x[N] = {};
        if (pos[slot] >= 0)
            key_chunk<BITS>(s, base + (size_t)slot, c / N, x);
#pragma unroll
        for (int j = 0; j < N; j++)
            if (c + j < s.d)
                k[(size_t)slot * (size_t)s.d + (size_t)(c + j)] = x[j];
    }
    for (int at = i; at < b.cached * s.units; at += step) {     /* neighbouring units             */
        int slot = at / s.units, c = at % s.units * SLOTS_UNIT;
        float x[SLOTS_UNIT] = {};
        if (pos[slot] >= 0) {
            value_part<BITS, SLOTS_UNIT> unit;
            value_load(s, base + (size_t)slot, c / SLOTS_UNIT, unit);
            value_numbers(unit, x);
        }
#pragma unroll
        for (int j = 0; j < SLOTS_UNIT; j++)
            if (c + j < s.d)
                v[(size_t)slot * (size_t)s.d + (size_t)(c + j)] = x[j];
    }
}

static void open_cache(struct sh_dev *d, const struct sh_slots *s, const struct slots_block *b)
{
    const struct slots *at = &s->at;
    unsigned heads = (unsigned)at->n_own, columns = (unsigned)(b->cached + b->n);
    SH_LAUNCH(slots_open, dim3((columns + SLOTS_THREADS - 1) / SLOTS_THREADS, heads), dim3(SLOTS_THREADS), d->compute,
              *at, s->wide, *b);
    if (s->wide.ring)
        SH_LAUNCH(slots_open_ring, dim3((unsigned)(b->n < at->policy.look_back ? b->n : at->policy.look_back), heads),
                  dim3(SLOTS_THREADS), d->compute, *at, s->wide, *b);
    if (!b->cached)
        return;
    dim3 grid = grid_for((size_t)b->cached * (size_t)(at->chunks > at->units ? at->chunks : at->units), SLOTS_THREADS);
    grid.y = heads;
    BY_BITS(s->bits, BITS,
            SH_LAUNCH((slots_floats<BITS>), grid, dim3(SLOTS_THREADS), d->compute, *at, s->wide, *b));
}

/* ---- showing rows ---- */

static void show(struct sh_dev *d, const struct sh_slots *s, const struct sh_slots_block *a,
                 const struct slots_block *b, int first, int n)
{
    size_t columns = (size_t)s->wide.columns, rows = (size_t)s->wide.rows, used = (size_t)(b->cached + first + n);
    int *pos = (int *)malloc(used * sizeof *pos);
    float *row = (float *)malloc(used * sizeof *row);
    if (!pos || !row)
        cuda_fail(d, "slots: out of memory");
    for (size_t h = 0; h < (size_t)s->at.n_own && !cuda_has_failed(d); h++) {
        int live = 0;
        cuda_get(d, pos, s->wide.pos + h * columns, used * sizeof *pos);
        for (size_t j = 0; j < used && !cuda_has_failed(d); j++) {
            pos[j] = pos[j] < 0 ? -1 : pos[j];
            live += pos[j] >= 0 && pos[j] < b->first + first;
        }
        for (int i = 0; i < n && !cuda_has_failed(d); i++) {
            struct sh_slots_look seen = {b->cached + first + i + 1, live + i + 1, pos, row};
            cuda_get(d, row, s->wide.mean + (h * rows + (size_t)i) * columns, used * sizeof *row);
            if (!cuda_has_failed(d))
                a->look(a->to, (int)h, b->first + first + i, &seen);
        }
    }
    free(pos);
    free(row);
}

/* ---- the operation ---- */

/* Slots that may be in use by now: no head has more than it has room for, nor more than tokens have come. */
static int slots_in_use(const struct sh_slots *s, int layer, int n_token)
{
    int most = 0;
    for (int h = 0; h < s->at.n_own; h++) {
        int capacity = s->host_head[layer * s->at.n_kv_head + h].capacity;
        most = capacity > most ? capacity : most;
    }
    return most < n_token ? most : n_token;
}

void cuda_slots_block(struct sh_dev *d, struct sh_slots *s, const struct sh_slots_block *a)
{
    struct slots_block b = {a->layer, a->sequence, a->first, a->n, a->row,
                            whole_warps(slots_in_use(s, a->layer, a->first))};
    if (a->n < 1)
        return;
    if (a->n > s->block) {
        cuda_fail(d, "slots: found a block of %d rows, expected at most %d", a->n, s->block);
        return;
    }
    cuda_stage_begin(d, SH_STAGE_EVICTION);
    open_cache(d, s, &b);
    cuda_stage_end(d);
    for (int i = 0, n; i < a->n && !cuda_has_failed(d); i += n) {
        n = a->n - i < s->wide.rows ? a->n - i : s->wide.rows;
        cuda_slots_rows(d, s, a, &b, i, n);
        if (a->look && s->wide.mean)
            show(d, s, a, &b, i, n);
    }
    cuda_stage_begin(d, SH_STAGE_EVICTION);
    cuda_slots_settle(d, s, a, &b);
    cuda_stage_end(d);
}
