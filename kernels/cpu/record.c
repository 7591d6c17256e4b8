/* SPDX-License-Identifier: Apache-2.0 */
/* Hands out a block's rows: packed, or as sets. Sets are taken from the very numbers that SH_PACK_F32 hands out. */
#include <math.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "kernels/cpu/attend.h"
#include "kernels/cpu/floats.h"
#include "kernels/cpu/vector.h"
#include "src/base/clones.h"
#include "src/base/log8.h"
#include "src/base/row_figures.h"
#include "src/base/row_lanes.h"

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
    r->guess = (struct sh_row_guess){0};
    r->value = values ? carve(base, at, BLOCK * columns * sizeof *r->value) : NULL;
}

void CPU_NAME(cpu_record_lay_out)(struct record *r, const struct sh_attend *a, int n_columns, char *base, size_t *at)
{
    for (const struct sh_tap *tap = a->tap.rows ? &a->tap : NULL; tap; tap = tap->also)
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

static void take_scores(struct scratch *w, const struct sh_attend *a, const struct sh_tap *tap, const struct block *b,
                        int i)
{
    struct record *r = &w->record;
    int t = b->q0 + i, first = first_key(a, t), n = t - first + 1;
    size_t from = (size_t)i * (size_t)w->s_pad + (size_t)(first - b->first_column), at = i ? r->n_packed : 0;
    float inverse = 1.0f / w->sum[i];
    if (tap->pack == SH_PACK_F32)
        pack_f32((float *)r->packed + at, w->p + from, n, inverse);
    else if (tap->pack == SH_PACK_F16)
        store_f16((uint16_t *)r->packed + at, w->p + from, (size_t)n, inverse);
    else
        pack_log8((uint8_t *)r->packed + at, w->s + from, w->p + from, n, w->top[i], w->sum[i]);
    r->n_packed = at + (size_t)n;
}

enum {
    PARTS = LANES / CPU_FLOATS,                         /* vectors of them                  */
    FLUSH = 8 * LANES,                                  /* terms of the entropy added as floats */
    PIECE = 8 * FLUSH                                   /* scores that stay in the nearest cache */
};
typedef int32_t ints __attribute__((vector_size(4 * CPU_FLOATS)));
#ifndef __SSE2__
typedef float halves __attribute__((vector_size(2 * CPU_FLOATS)));
#endif
typedef double doubles __attribute__((vector_size(4 * CPU_FLOATS)));

struct sums {
    doubles low[2 * PARTS], entropy[2 * PARTS];         /* low: only if asked for           */
    ints below[PARTS], beneath[PARTS];                  /* percent; near                    */
};

struct bounds {                                         /* of a row                         */
    float mean, percent;                                /* a score below is low; below 1 % of the largest */
    float near;                                         /* sh_row_guess                     */
    float top, lse;                                     /* the largest logit; ln of the sum of exp(s - top) */
};

/* to[0], to[1]: the numbers of a vector, its first half and its second. GCC 12 converts generic vectors piece by
 * piece. */
static inline void add_as_doubles(doubles *to, vec x)
{
#ifdef __AVX512DQ__
    to[0] += (doubles)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)x));
    to[1] += (doubles)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)x, 1));
#elif defined __AVX__
    to[0] += (doubles)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)x));
    to[1] += (doubles)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)x, 1));
#elif defined __SSE2__
    to[0] += (doubles)_mm_cvtps_pd((__m128)x);
    to[1] += (doubles)_mm_cvtps_pd(_mm_movehl_ps((__m128)x, (__m128)x));
#else
    union { vec all; halves half[2]; } both = {x};
    to[0] += __builtin_convertvector(both.half[0], doubles);
    to[1] += __builtin_convertvector(both.half[1], doubles);
#endif
}

/* -ln p is lse + (top - s), in this order: near the top the difference has no rounding. */
SH_INLINE void add_terms(struct sums *to, vec *part, int k, vec p, vec s, const struct bounds *b, int with_low)
{
    vec term = p * ((b->top - s) + b->lse);
    part[k] += (vec)((ints)term & (p > 0));
    if (with_low)
        add_as_doubles(to->low + 2 * k, (vec)((ints)p & (p < b->mean)));
    to->below[k] -= p < b->percent;
    to->beneath[k] -= p < b->near;
}

/* The last n scores, fewer than LANES. */
SH_INLINE void add_rest(struct sums *to, vec *part, const float *x, const float *s, int n, const struct bounds *b,
                        int with_low)
{
    float p[LANES] = {0}, q[LANES] = {0};
    vec one, other;
    for (int i = 0; i < n; i++) {
        p[i] = x[i];
        q[i] = s[i];
    }
    for (int k = 0; k < PARTS; k++) {
        memcpy(&one, p + k * CPU_FLOATS, sizeof one);
        memcpy(&other, q + k * CPU_FLOATS, sizeof other);
        add_terms(to, part, k, one, other, b, with_low);
        for (int i = 0; i < CPU_FLOATS; i++) {          /* the zeros that were put there    */
            to->below[k][i] -= k * CPU_FLOATS + i >= n;
            to->beneath[k][i] -= k * CPU_FLOATS + i >= n && b->near > 0;
        }
    }
}

/* x = p * inverse, the next n scores of a row, with the logits s; n is a multiple of FLUSH but at the row's end. The
 * sums are those of sh_row_figures, in its order. */
SH_INLINE void add_figures(struct sums *sums, float *x, const float *p, const float *s, int n, float inverse,
                           const struct bounds *b, int with_low)
{
    struct sums to = *sums;
    for (int i = 0, end; i < n; i = end) {
        vec part[PARTS] = {{0}};
        end = n - i < FLUSH ? n : i + FLUSH;
        for (; i + LANES <= end; i += LANES)
            for (int k = 0; k < PARTS; k++) {
                vec one = *(const vec *)(p + i + k * CPU_FLOATS) * inverse;
                *(vec *)(x + i + k * CPU_FLOATS) = one;
                add_terms(&to, part, k, one, *(const vec *)(s + i + k * CPU_FLOATS), b, with_low);
            }
        if (i < end) {
            pack_f32(x + i, p + i, end - i, inverse);
            add_rest(&to, part, x + i, s + i, end - i, b, with_low);
        }
        for (int k = 0; k < PARTS; k++)
            add_as_doubles(to.entropy + 2 * k, part[k]);
    }
    *sums = to;
}

static struct sh_row_figures figures_of(const struct sums *sums)
{
    struct sh_row_figures f = {.entropy = 0};
    int32_t below = 0;
    for (int k = 0; k < LANES; k++) {
        f.entropy += sums->entropy[k / (CPU_FLOATS / 2)][k % (CPU_FLOATS / 2)];
        f.low_mass += sums->low[k / (CPU_FLOATS / 2)][k % (CPU_FLOATS / 2)];
        below += sums->below[k / CPU_FLOATS][k % CPU_FLOATS];
    }
    f.below_1pct = (uint32_t)below;
    return f;
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

struct row {
    const float *p, *s;                                 /* scores times `sum`; logits               */
    float top, sum;                                     /* the largest logit; of exp(s - top)       */
    int first, last;                                    /* places of record.row, which begins with a word's first key */
};

/* What is around the row is NaN in r->row, which is in no set. */
static struct sh_row_figures take_row(struct record *r, const struct row *row, const struct sh_lanes *lanes,
                                      uint64_t *bits, size_t n_word)
{
    int first = row->first, seen = row->last - first + 1;
    float limit[SH_MAX_LANES], inverse = 1.0f / row->sum;
    const struct bounds bounds = {sh_round_up(1.0 / seen), sh_round_up(0.01 * (double)inverse),
                                  r->guess.least, row->top, logf(row->sum)};
    struct sums sums = {{{0}}, {{0}}, {{0}}, {{0}}};
    size_t done = 0;
    for (int l = 0; l < lanes->n; l++)
        limit[l] = sh_round_down(lanes->lane[l].per_key ? lanes->lane[l].value / seen : lanes->lane[l].value);
    for (int j = 0; j < first; j++)
        r->row[j] = NAN;
    for (int at = 0, n; at < seen; at += n) {
        float *x = r->row + first + at;
        n = seen - at < PIECE ? seen - at : PIECE;
        if (lanes->values)                              /* who wants no values wants no low mass */
            add_figures(&sums, x, row->p + at, row->s + at, n, inverse, &bounds, 1);
        else
            add_figures(&sums, x, row->p + at, row->s + at, n, inverse, &bounds, 0);
        size_t end = (size_t)(first + at + n), words = at + n < seen ? end / WORD : n_word;
        for (; at + n == seen && end < n_word * WORD; end++)
            r->row[end] = NAN;
        sh_row_bits(r->row + done * WORD, words - done, limit, lanes->n, bounds.mean, bits + done, n_word);
        done = words;
    }
    struct sh_row_figures f = figures_of(&sums);
    int from = seen;
    for (int k = 0; k < LANES; k++)
        from -= sums.beneath[k / CPU_FLOATS][k % CPU_FLOATS];
    f.mass_top = sh_row_mass_top_near(r->row + first, seen, from, &r->guess);
    return f;
}

struct words {                                          /* of a block's sets                */
    int first, n;
    size_t row;                                         /* of all sets of a row             */
};

static struct words words_of(const struct sh_attend *a, const struct sh_tap *tap, const struct block *b)
{
    int first = first_key(a, b->q0) / WORD, n = (b->q0 + b->n_rows - 1) / WORD - first + 1;
    return (struct words){first, n, (size_t)n * ((size_t)tap->lanes[b->sequence].n + 1)};
}

static void take_sets(struct scratch *w, const struct sh_attend *a, const struct sh_tap *tap, const struct block *b,
                      int i)
{
    struct record *r = &w->record;
    const struct sh_lanes *lanes = &tap->lanes[b->sequence];
    struct words words = words_of(a, tap, b);
    int t = b->q0 + i, first = first_key(a, t) - words.first * WORD, last = t - words.first * WORD;
    size_t from = (size_t)i * (size_t)w->s_pad + (size_t)(first_key(a, t) - b->first_column);
    uint64_t *bits = r->bits + (size_t)i * words.row;
    if (!i)
        r->value_end = r->value;
    const struct row row = {w->p + from, w->s + from, w->top[i], w->sum[i], first, last};
    r->figures[i] = take_row(r, &row, lanes, bits, (size_t)words.n);
    if (lanes->values)
        r->value_end = keep_values(r->value_end, r->row, bits + (size_t)lanes->n * (size_t)words.n, first, last);
}

void CPU_NAME(cpu_record_row)(struct scratch *w, const struct sh_attend *a, const struct block *b, int i)
{
    for (const struct sh_tap *tap = &a->tap; tap; tap = tap->also) {
        int is_sets = tap->pack == SH_PACK_SETS;
        unsigned long long since = sh_stage_begin(w->stages);
        (is_sets ? take_sets : take_scores)(w, a, tap, b, i);
        sh_stage_end(w->stages, is_sets ? SH_STAGE_STATISTICS : SH_STAGE_SOFTMAX, since, w->sharers);
    }
}

void CPU_NAME(cpu_record_block)(const struct scratch *w, const struct sh_attend *a, const struct block *b)
{
    const struct record *r = &w->record;
    for (const struct sh_tap *tap = &a->tap; tap; tap = tap->also) {
        const void *packed = r->packed;
        struct sh_row_sets sets;
        if (tap->pack == SH_PACK_SETS) {
            struct words words = words_of(a, tap, b);
            sets = (struct sh_row_sets){.first_word = words.first, .n_word = words.n, .bits = r->bits,
                                        .figures = r->figures,
                                        .value = tap->lanes[b->sequence].values ? r->value : NULL};
            packed = &sets;
        }
        tap->rows(tap->to, b->sequence, b->head, b->q0, b->n_rows, packed);
    }
}
