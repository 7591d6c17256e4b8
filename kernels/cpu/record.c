/* SPDX-License-Identifier: Apache-2.0 */
/* Hands out a block's rows: packed, or as sets. Sets are taken from the very numbers that SH_PACK_F32
 * hands out. */
#include <math.h>

#include "kernels/cpu/attend.h"
#include "kernels/cpu/floats.h"
#include "src/base/row_bits.h"
#include "src/base/score.h"

enum { WORD = 64 };                                     /* keys                             */

static int most_lanes(const struct sh_attend *a, const struct sh_tap *tap, int *values)
{
    int most = 0;
    *values = 0;
    for (int s = 0; s < a->n_seq; s++) {
        if (!is_wanted(a, s))
            continue;
        const struct sh_lanes *lanes = &tap->lanes[s];
        most = lanes->n > most ? lanes->n : most;
        *values |= lanes->values;
    }
    return most;
}

static void lay_out(struct record *r, const struct sh_attend *a, const struct sh_tap *tap, int n_columns, char *base,
                    size_t *at)
{
    static const size_t score_bytes[] = {[SH_PACK_F32] = 4, [SH_PACK_F16] = 2, [SH_PACK_LOG8] = 1};
    size_t columns = (size_t)n_columns, words = columns / WORD + 2;     /* both ends within a word */
    int values;
    if (tap->pack != SH_PACK_SETS) {
        r->packed = carve(base, at, BLOCK * columns * score_bytes[tap->pack]);
        return;
    }
    size_t sets = (size_t)most_lanes(a, tap, &values) + 1;
    r->figures = carve(base, at, BLOCK * sizeof *r->figures);
    r->bits = carve(base, at, BLOCK * sets * words * sizeof *r->bits);
    r->row = carve(base, at, words * WORD * sizeof *r->row);
    r->value = values ? carve(base, at, BLOCK * columns * sizeof *r->value) : NULL;
}

void CPU_NAME(cpu_record_lay_out)(struct record *r, const struct sh_attend *a, int n_columns, char *base, size_t *at)
{
    for (const struct sh_tap *tap = a->tap.rows ? &a->tap : NULL; tap; tap = tap->beside)
        lay_out(r, a, tap, n_columns, base, at);
}

static void pack_f32(float *to, const float *p, int n, float inverse)
{
#pragma omp simd
    for (int j = 0; j < n; j++)
        to[j] = p[j] * inverse;
}

/* p: of each key, not yet divided by the row's sum. The largest of a row is 1. */
static void pack_log8(uint8_t *to, const float *s, const float *p, int n, float top, float sum)
{
    float inverse = 1.0f / sum;
    const struct sh_log8 row = sh_log8_row(n, top, top + logf(sum), inverse);
#pragma omp simd
    for (int j = 0; j < n; j++)
        to[j] = sh_log8_code(&row, s[j], p[j] * inverse);
}

static void record_scores(const struct scratch *w, const struct sh_attend *a, const struct sh_tap *tap,
                          const struct block *b)
{
    size_t at = 0;
    for (int i = 0; i < b->n_rows; i++) {
        int t = b->q0 + i, first = first_key(a, t), n = t - first + 1;
        size_t from = (size_t)i * (size_t)w->s_pad + (size_t)(first - b->first_column);
        float inverse = 1.0f / w->sum[i];
        if (tap->pack == SH_PACK_F32)
            pack_f32((float *)w->record.packed + at, w->p + from, n, inverse);
        else if (tap->pack == SH_PACK_F16)
            store_f16((uint16_t *)w->record.packed + at, w->p + from, (size_t)n, inverse);
        else
            pack_log8((uint8_t *)w->record.packed + at, w->s + from, w->p + from, n, w->top[i], w->sum[i]);
        at += (size_t)n;
    }
    tap->rows(tap->to, b->sequence, b->head, b->q0, b->n_rows, w->record.packed);
}

/* The scores of row[first..last] that are in no word of `low`, which begins with row[0]. */
static float *keep_values(float *to, const float *row, const uint64_t *low, int first, int last)
{
    for (int w = first / WORD; w <= last / WORD; w++) {
        uint64_t keys = ~low[w];
        if (w == first / WORD)
            keys &= ~(uint64_t)0 << first % WORD;
        if (w == last / WORD)
            keys &= ~(uint64_t)0 >> (WORD - 1 - last % WORD);
        for (; keys; keys &= keys - 1)
            *to++ = row[w * WORD + __builtin_ctzll(keys)];
    }
    return to;
}

/* Keys outside of what a row sees are NaN in r->row: these are in no set. */
static void record_sets(const struct scratch *w, const struct sh_attend *a, const struct sh_tap *tap,
                        const struct block *b)
{
    const struct record *r = &w->record;
    const struct sh_lanes *lanes = &tap->lanes[b->sequence];
    int first_word = first_key(a, b->q0) / WORD, n_word = (b->q0 + b->n_rows - 1) / WORD - first_word + 1;
    size_t n = (size_t)n_word, all = n * ((size_t)lanes->n + 1);        /* words of a set, of a row */
    float *value = r->value;
    for (int i = 0; i < b->n_rows; i++) {
        int t = b->q0 + i, first = first_key(a, t) - first_word * WORD, last = t - first_word * WORD;
        int seen = last - first + 1;
        const float *p = w->p + (size_t)i * (size_t)w->s_pad + (first_key(a, t) - b->first_column);
        uint64_t *bits = r->bits + (size_t)i * all;
        float limit[SH_MAX_LANES];
        for (int l = 0; l < lanes->n; l++)
            limit[l] = sh_round_down(lanes->lane[l].per_key ? lanes->lane[l].value / seen : lanes->lane[l].value);
        for (int j = 0; j < first; j++)
            r->row[j] = NAN;
        pack_f32(r->row + first, p, seen, 1.0f / w->sum[i]);
        for (int j = last + 1; j < n_word * WORD; j++)
            r->row[j] = NAN;
        sh_row_bits(r->row, n, limit, lanes->n, sh_round_up(1.0 / seen), bits, n);
        sh_row_figures(r->row + first, seen, &r->figures[i]);
        if (lanes->values)
            value = keep_values(value, r->row, bits + (size_t)lanes->n * n, first, last);
    }
    struct sh_row_sets sets = {.first_word = first_word, .n_word = n_word, .bits = r->bits, .figures = r->figures,
                               .value = lanes->values ? r->value : NULL};
    tap->rows(tap->to, b->sequence, b->head, b->q0, b->n_rows, &sets);
}

static void record(const struct scratch *w, const struct sh_attend *a, const struct sh_tap *tap, const struct block *b)
{
    if (tap->pack == SH_PACK_SETS)
        record_sets(w, a, tap, b);
    else
        record_scores(w, a, tap, b);
    if (tap->beside)
        record(w, a, tap->beside, b);
}

void CPU_NAME(cpu_record)(const struct scratch *w, const struct sh_attend *a, const struct block *b)
{
    record(w, a, &a->tap, b);
}
