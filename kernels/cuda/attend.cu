/* SPDX-License-Identifier: Apache-2.0 */
/* Causal attention, tile by tile (tile.cuh): products by cuBLAS, one batch for all KV heads, softmax and
 * packing by our kernels. A tile covers only the keys that some query of it sees, and so few queries that
 * all heads' scores stay within TILE_BYTES, which fits the second-level cache of the larger chips; nothing
 * is ever expanded for grouped queries: member g of all groups is one batch against the same keys.
 *
 * All of it is f32 whatever the operands' type, as on the CPU, and only the output is rounded: the scores are the
 * result, and rounding q, k or v to 16 bits would change those of the next layers by several thousandths. */
#include "kernels/cuda/cuda.cuh"
#include "kernels/cuda/tile.cuh"

enum { TILE_BYTES = 48 << 20, LEAST_ROWS = 16, MOST_ROWS = 1024, WIDTH_STEP = 8 };

struct plan {                           /* what one attend takes, for its longest sequence         */
    int n_rows;                         /* of a tile                                               */
    size_t score_bytes, weight_bytes, row_bytes, out_bytes;
    struct cuda_layout layout;
};

static size_t whole(size_t bytes, size_t step)
{
    return (bytes + step - 1) / step * step;
}

static int width_of(int keys)
{
    return (keys + WIDTH_STEP - 1) / WIDTH_STEP * WIDTH_STEP;
}

/* The words of a set over the keys that the rows [first_row, first_row + n_rows) see. */
static int words_of(const struct sh_attend *a, int first_row, int n_rows)
{
    return (first_row + n_rows - 1) / 64 - tile_first_key(first_row, a->window) / 64 + 1;
}

/* The memory of those rows of all heads, with sets of `words` words. */
static struct cuda_layout layout_of(const struct sh_attend *a, const struct sh_tap *tap, int sequence, int first_row,
                                    int n_rows, int words)
{
    struct cuda_layout l = {};
    size_t scores = tile_scores_before(first_row + n_rows, a->window) - tile_scores_before(first_row, a->window);
    size_t heads = (size_t)a->n_head, rows = heads * (size_t)n_rows;
    if (tap->pack != SH_PACK_SETS) {
        l.head_bytes = scores * (tap->pack == SH_PACK_F32 ? 4 : tap->pack == SH_PACK_F16 ? 2 : 1);
        l.bytes = l.fetch_bytes = heads * l.head_bytes;
        return l;
    }
    const struct sh_lanes *lanes = &tap->lanes[sequence];
    l.bits_at = rows * sizeof(struct sh_row_figures);
    l.count_at = l.bits_at + rows * (size_t)(lanes->n + 1) * (size_t)words * sizeof(uint64_t);
    size_t counts_end = l.count_at + (rows + 1) * sizeof(uint32_t);
    l.fetch_bytes = lanes->values ? counts_end : l.count_at;
    l.value_at = whole(counts_end, 16);
    l.bytes = l.value_at + (lanes->values ? heads * scores * sizeof(float) : 0);
    return l;
}

static int is_wanted(const struct sh_attend *a, int sequence)
{
    return a->tap.rows && (!a->tap.wanted || a->tap.wanted[sequence]);
}

/* With tiles of at most `most_rows` rows. */
static struct plan plan_of(const struct sh_attend *a, int most_rows)
{
    struct plan p = {};
    int longest = 0;
    for (int s = 0; s < a->n_seq; s++)
        longest = a->start[s + 1] - a->start[s] > longest ? a->start[s + 1] - a->start[s] : longest;
    size_t heads = (size_t)a->n_head, most = (size_t)longest;
    size_t keys = a->window > 0 && (size_t)a->window + MOST_ROWS < most ? (size_t)a->window + MOST_ROWS : most;
    size_t width = (size_t)width_of((int)keys), row = heads * width * 2 * sizeof(float);
    size_t fit = TILE_BYTES / row / LEAST_ROWS * LEAST_ROWS;
    p.n_rows = fit < LEAST_ROWS ? LEAST_ROWS : fit > MOST_ROWS ? MOST_ROWS : (int)fit;
    p.n_rows = p.n_rows > most_rows ? most_rows : p.n_rows;
    p.n_rows = p.n_rows > (int)most ? (int)most : p.n_rows;
    size_t rows = heads * (size_t)p.n_rows;
    p.score_bytes = rows * width * sizeof(float);
    p.weight_bytes = a->out.at ? p.score_bytes : 0;
    p.row_bytes = rows * 2 * sizeof(float);
    if (a->out.at && a->out.type != SH_F32)
        p.out_bytes = (size_t)a->out.rows * (size_t)a->out.cols * sizeof(float);
    for (int s = 0; s < a->n_seq && a->tap.rows; s++) {
        int n = a->start[s + 1] - a->start[s], last = n < p.n_rows ? n : p.n_rows;
        for (const struct sh_tap *tap = n > 0 && is_wanted(a, s) ? &a->tap : NULL; tap; tap = tap->also) {
            /* no tile has more words */
            struct cuda_layout l = layout_of(a, tap, s, n - last, last, words_of(a, n - last, last) + 1);
            if (l.bytes > p.layout.bytes)
                p.layout = l;
        }
    }
    return p;
}

/* Where pinned memory is short tiles are of fewer rows, so that what they record finds room. */
static struct plan plan_within(struct sh_dev *d, const struct sh_attend *a)
{
    struct plan p = plan_of(a, MOST_ROWS);
    if (!p.layout.bytes)
        return p;
    size_t room = cuda_drain_room(d, p.layout.bytes, plan_of(a, 1).layout.bytes);
    while (p.layout.bytes > room && p.n_rows > 1)
        p = plan_of(a, p.n_rows / 2);
    return p;
}

size_t cuda_attend_bytes(const struct sh_dev *d, const struct sh_attend *a)
{
    (void)d;
    struct plan p = plan_of(a, MOST_ROWS);
    size_t sum = whole(p.score_bytes, 512) + whole(p.weight_bytes, 512) + whole(p.row_bytes, 512) + 1024 +
                 whole(p.out_bytes, 512) + CUDA_SLOTS * whole(p.layout.bytes, 512);
    return sum + (size_t)((a->slopes != NULL) + (a->sinks != NULL)) * whole((size_t)a->n_head * sizeof(float), 512);
}

static const float *floats_at(const struct sh_mat *m, int row)
{
    return (const float *)m->at + (size_t)row * m->stride;
}

/* s = scale q k^T; as columns: [keys, d] [d, queries]. */
static void multiply_keys(struct sh_dev *d, const struct sh_attend *a, const struct cuda_tile *t, int row0, int n_key)
{
    const float *k = floats_at(&a->k, row0 + t->first_key), *q = floats_at(&a->q, row0 + t->first_row);
    size_t group = (size_t)(a->n_head / a->n_kv_head), head = (size_t)a->d_head;
    size_t scores = (size_t)t->n_rows * (size_t)t->width;
    for (size_t g = 0; g < group; g++) {
        struct cuda_product p = {CUBLAS_OP_T, n_key, t->n_rows, a->d_head, a->scale, 0,
                                 {k, a->k.stride, head}, {q + g * head, a->q.stride, group * head},
                                 {t->s + g * scores, (size_t)t->width, group * scores}};
        if (cuda_multiply(d, "attend", &p, a->n_kv_head))
            return;
    }
}

/* out = p v; as columns: [d, keys] [keys, queries]. */
static void multiply_values(struct sh_dev *d, const struct sh_attend *a, const struct sh_mat *out,
                            const struct cuda_tile *t, int row0, int n_key)
{
    const float *v = floats_at(&a->v, row0 + t->first_key);
    float *to = (float *)out->at + (size_t)(row0 + t->first_row) * out->stride;
    size_t group = (size_t)(a->n_head / a->n_kv_head), head = (size_t)a->d_head;
    size_t scores = (size_t)t->n_rows * (size_t)t->width;
    for (size_t g = 0; g < group; g++) {
        struct cuda_product p = {CUBLAS_OP_N, a->d_head, t->n_rows, n_key, 1, 0, {v, a->v.stride, head},
                                 {t->p + g * scores, (size_t)t->width, group * scores},
                                 {to + g * head, out->stride, group * head}};
        if (cuda_multiply(d, "attend", &p, a->n_kv_head))
            return;
    }
}

static void record(struct sh_dev *d, const struct sh_attend *a, const struct sh_tap *tap, const struct plan *p,
                   const struct cuda_tile *t, int sequence)
{
    int words = words_of(a, t->first_row, t->n_rows);
    struct cuda_layout layout = layout_of(a, tap, sequence, t->first_row, t->n_rows, words);
    struct cuda_job *job = cuda_drain_job(d, &layout, p->layout.bytes);
    if (!job)
        return;
    job->tap = *tap;
    job->sequence = sequence;
    job->n_head = t->n_head;
    job->first_row = t->first_row;
    job->n_rows = t->n_rows;
    cuda_stage_begin(d, tap->pack == SH_PACK_SETS ? SH_STAGE_STATISTICS : SH_STAGE_SOFTMAX);
    if (tap->pack == SH_PACK_SETS) {
        const struct sh_lanes *lanes = &tap->lanes[sequence];
        char *at = (char *)job->device;
        job->n_lane = lanes->n;
        job->values = lanes->values;
        job->first_word = tile_first_key(t->first_row, t->window) / 64;
        job->n_word = words;
        struct cuda_sets sets = {(struct sh_row_figures *)at, (uint64_t *)(at + layout.bits_at),
                                 (uint32_t *)(at + layout.count_at),
                                 lanes->values ? (float *)(at + layout.value_at) : NULL, job->first_word, job->n_word};
        cuda_sets(t, lanes, &sets, d->compute);
    } else {
        cuda_pack(t, tap->pack, job->device, d->compute);
    }
    cuda_stage_end(d);
    if (cuda_check(d, "attend", cudaGetLastError()))
        return;
    cuda_drain_send(d, job);
    if (tap->also && !cuda_has_failed(d))             /* sets are last: they leave p where s was */
        record(d, a, tap->also, p, t, sequence);
}

static void attend_tile(struct sh_dev *d, const struct sh_attend *a, const struct plan *p, const struct sh_mat *out,
                        struct cuda_tile *t, int sequence)
{
    int row0 = a->start[sequence];
    t->first_key = tile_first_key(t->first_row, a->window);
    int n_key = t->first_row + t->n_rows - t->first_key;
    t->width = width_of(n_key);
    cuda_stage_begin(d, SH_STAGE_ATTENTION);
    multiply_keys(d, a, t, row0, n_key);
    cuda_stage_end(d);
    if (cuda_has_failed(d))
        return;
    cuda_stage_begin(d, SH_STAGE_SOFTMAX);
    struct cuda_bends bends = {a->softcap, a->scale, a->slopes ? (const float *)d->slopes.at : NULL,
                               a->sinks ? (const float *)d->sinks.at : NULL, NULL, a->rounds_slopes};
    if (a->sinks && a->mass)
        bends.mass = a->mass + (size_t)(row0 + t->first_row) * (size_t)a->n_head;
    cuda_softmax(t, &bends, d->fault, sequence + 1, d->compute);
    cuda_stage_end(d);
    if (a->out.at) {
        cuda_stage_begin(d, SH_STAGE_ATTENTION);
        multiply_values(d, a, out, t, row0, n_key);
        cuda_stage_end(d);
    }
    if (is_wanted(a, sequence) && !cuda_has_failed(d))
        record(d, a, &a->tap, p, t, sequence);
}

void cuda_attend(struct sh_dev *d, const struct sh_attend *a)
{
    if (cuda_begin(d, "attend") || !a->start[a->n_seq])
        return;
    struct plan p = plan_within(d, a);
    struct cuda_tile t = {};
    t.s = (float *)cuda_scratch_at(d, &d->scores, p.score_bytes);
    t.p = p.weight_bytes ? (float *)cuda_scratch_at(d, &d->weights, p.weight_bytes) : NULL;
    t.top = (float *)cuda_scratch_at(d, &d->rows, p.row_bytes);
    t.n_head = a->n_head;
    t.window = a->window;
    t.chunk = a->chunk;
    if (a->sinks && cuda_scratch_at(d, &d->sinks, (size_t)a->n_head * sizeof(float)))
        cuda_put(d, d->sinks.at, a->sinks, (size_t)a->n_head * sizeof(float));
    if (a->slopes && cuda_scratch_at(d, &d->slopes, (size_t)a->n_head * sizeof(float)))
        cuda_put(d, d->slopes.at, a->slopes, (size_t)a->n_head * sizeof(float));
    struct sh_mat out = a->out;
    if (p.out_bytes)
        out = (struct sh_mat){cuda_scratch_at(d, &d->out, p.out_bytes), SH_F32, out.rows, out.cols, (size_t)out.cols};
    for (int s = 0; s < a->n_seq; s++) {
        int n = a->start[s + 1] - a->start[s];
        for (int row = 0; row < n && !cuda_has_failed(d); row += p.n_rows) {
            t.first_row = row;
            t.n_rows = n - row < p.n_rows ? n - row : p.n_rows;
            t.sum = t.top + (size_t)t.n_head * (size_t)t.n_rows;
            attend_tile(d, a, &p, &out, &t, s);
        }
    }
    if (p.out_bytes)
        cuda_convert(d, &a->out, &out, d->compute);
    cuda_end(d, "attend");
}
