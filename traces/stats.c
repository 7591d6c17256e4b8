/* SPDX-License-Identifier: Apache-2.0 */
/* See stats.h. Each row becomes one bit set over the keys per lane, and one of the low scores. */
#include "traces/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/num.h"
#include "src/base/row_figures.h"
#include "traces/stats_work.h"

const int sh_stats_lag[SH_STATS_LAGS] = {1, 8, 64};

/* limit[lane]: in a row of n keys, scores above it are pivotal. */
static void limits(const struct sh_stats *s, int n, float limit[SH_STATS_MAX_LANES])
{
    for (int lane = 0; lane < s->n_lane; lane++) {
        const struct sh_stats_limit *l = &s->work->limit[lane];
        limit[lane] = sh_round_down(l->per_key ? l->value / n : l->value);
    }
}

/* ---- row sums ---- */

SH_CLONES static int count_below(const float *row, int n, float limit)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count += row[i] < limit;
    return count;
}

static void add_sums(struct sh_row_sums *sums, int n, int below_mean, const struct sh_row_figures *f)
{
    sums->rows++;
    sums->entries += (uint64_t)n;
    sums->below_mean += (uint64_t)below_mean;
    sums->below_1pct += f->below_1pct;
    sums->entropy += f->entropy;
    if (n > 1) {
        sums->rows_of_two++;
        sums->normalised_entropy += f->entropy / log((double)n);
    }
    sums->mass_top += f->mass_top;
}

/* ---- rows ---- */

/* Make room for row q: the words of this block's keys that it no longer sees are cleared. Returns whether the row's
 * own words are needed. */
static int open_row(struct sh_stats *s, int q, int first_key)
{
    struct sh_stats_work *w = s->work;
    if (!w)
        return 0;
    if (q % 64 == 0)
        w->block_word = first_key / 64;
    w->first_key = first_key;
    size_t gap = (size_t)(first_key / 64 - w->block_word) * sizeof *w->bits;
    memset(words_at(w, q, w->block_word), 0, gap * w->side);
    memset(low_at(w, q, w->block_word), 0, gap);
    return 1;
}

static void drop_work(struct sh_stats *s)
{
    struct sh_stats_work *w = s->work;
    if (!w)
        return;
    void *all[] = {w->bits, w->low, w->sets, w->total, w->seen, w->any, w->pending, w->alike, w};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    s->work = NULL;
}

static void close_row(struct sh_stats *s, int q)
{
    if (s->work) {
        sh_stats_compare(s, q);
        if (q % 64 == 63 || q == s->length - 1)
            sh_stats_fold(s, q / 64 * 64, q % 64 + 1);
    }
    if (++s->n_row == s->length && s->work) {
        sh_stats_put_likeness(s);
        drop_work(s);
    }
}

static int is_next(const struct sh_stats *s, int q, int first_key, int n)
{
    return q == s->n_row && q < s->length && first_key >= 0 && first_key <= q && n == q - first_key + 1 &&
           (!s->work || first_key >= s->work->first_key);
}

/* Transpose: lanes `stride` apart in `from` become adjacent in `to`. */
SH_INLINE void place_words(uint64_t *to, const uint64_t *from, size_t stride, int n, size_t side, int n_lane)
{
    for (int at = 0; at < n; at++, from++, to += side)
        for (int lane = 0; lane < n_lane; lane++)
            to[lane] = from[(size_t)lane * stride];
}

/* The words of the row's sets, `stride` apart from lane to lane; the first one holds the row's first key. Words
 * around the row's keys are left out, so no position is ever outside the arrays. */
SH_CLONES static void place_sets(struct sh_stats *s, int q, int first_key, const uint64_t *sets, size_t stride)
{
    struct sh_stats_work *w = s->work;
    int first = first_key / 64, n = q / 64 - first + 1, usual = 7;
    uint64_t *to = words_at(w, q, first), *low = low_at(w, q, first), begin = ~(uint64_t)0 << first_key % 64;
    if (s->n_lane == usual)                             /* the default settings: the compiler unrolls this call */
        place_words(to, sets, stride, n, STATS_LINE, usual);
    else
        place_words(to, sets, stride, n, w->side, s->n_lane);
    memcpy(low, sets + (size_t)s->n_lane * stride, (size_t)n * sizeof *low);
    low[0] &= begin;
    low[n - 1] &= up_to(q % 64);
    for (size_t lane = 0; lane < w->side; lane++) {
        to[lane] &= begin;
        to[(size_t)(n - 1) * w->side + lane] &= up_to(q % 64);
    }
}

/* Set the words of row q; a word that the row covers only in part is padded. */
static void mark(struct sh_stats *s, int q, int first_key, const float *row, int n)
{
    float limit[SH_STATS_MAX_LANES], low = sh_round_up(1.0 / n), part[64];
    uint64_t *sets = s->work->sets;
    int first = first_key / 64;
    limits(s, n, limit);
    for (int j = first_key; j <= q;) {
        int n_word = (q - j + 1) / 64, begin = j % 64;
        const float *x = row + (j - first_key);
        if (begin || !n_word) {
            int end = q - j < 63 - begin ? begin + q - j : 63;
            for (int i = 0; i < 64; i++)
                part[i] = NAN;                          /* compares false with every limit */
            memcpy(part + begin, x, (size_t)(end - begin + 1) * sizeof *part);
            x = part;
            n_word = 1;
        }
        sh_row_bits(x, (size_t)n_word, limit, s->n_lane, low, sets + j / 64 - first, s->work->low_word);
        j = 64 * (j / 64 + n_word);
    }
    place_sets(s, q, first_key, sets, s->work->low_word);
}

int sh_stats_row(struct sh_stats *s, int q, int first_key, const float *row, int n)
{
    if (!is_next(s, q, first_key, n))
        return -1;
    struct sh_row_figures figures;
    sh_row_figures(row, n, &figures);
    add_sums(&s->sums, n, count_below(row, n, sh_round_up(1.0 / n)), &figures);
    if (open_row(s, q, first_key))
        mark(s, q, first_key, row, n);
    close_row(s, q);
    return 0;
}

/* Keys first_key .. q of a set whose first word contains first_key. */
SH_CLONES static int count_set(const uint64_t *word, int first_key, int q)
{
    int rest = q / 64 - first_key / 64, count = 0;
    uint64_t begin = ~(uint64_t)0 << first_key % 64;
    for (; rest; rest--, begin = ~(uint64_t)0)
        count += __builtin_popcountll(*word++ & begin);
    return count + __builtin_popcountll(*word & begin & up_to(q % 64));
}

int sh_stats_row_sets(struct sh_stats *s, int q, int first_key, const uint64_t *bits, int first_word, int n_word,
                      const struct sh_row_figures *figures)
{
    if (!is_next(s, q, first_key, q - first_key + 1) || first_word > first_key / 64 || n_word <= q / 64 - first_word)
        return -1;
    bits += first_key / 64 - first_word;
    const uint64_t *low = bits + (size_t)s->n_lane * (size_t)n_word;
    add_sums(&s->sums, q - first_key + 1, count_set(low, first_key, q), figures);
    if (open_row(s, q, first_key))
        place_sets(s, q, first_key, bits, (size_t)n_word);
    close_row(s, q);
    return 0;
}

/* Words of a sparse row: all visible keys are low and none is pivotal, except for the stored ones. */
static void mark_sparse(struct sh_stats *s, int q, int first_key, const int *key, const float *score, int n_stored)
{
    float limit[SH_STATS_MAX_LANES], low = sh_round_up(1.0 / (q - first_key + 1));
    limits(s, q - first_key + 1, limit);
    struct sh_stats_work *work = s->work;
    uint64_t *lows = low_at(work, q, 0), *sets = words_at(work, q, 0);
    memset(words_at(work, q, first_key / 64), 0, (size_t)(q / 64 - first_key / 64 + 1) * work->side * sizeof *sets);
    for (int w = first_key / 64; w <= q / 64; w++)
        lows[w] = w == q / 64 ? up_to(q % 64) : ~(uint64_t)0;
    lows[first_key / 64] &= ~(uint64_t)0 << first_key % 64;
    for (int i = 0; i < n_stored; i++) {
        uint64_t bit = (uint64_t)1 << key[i] % 64;
        for (int lane = 0; lane < s->n_lane; lane++)
            if (score[i] > limit[lane])
                sets[(size_t)(key[i] / 64) * work->side + (size_t)lane] |= bit;
        if (!(score[i] < low))
            lows[key[i] / 64] &= ~bit;
    }
}

int sh_stats_row_sparse(struct sh_stats *s, int q, int first_key, int n, const int *key, const float *score,
                        int n_stored)
{
    if (!is_next(s, q, first_key, n))
        return -1;
    for (int i = 0; i < n_stored; i++)
        if (key[i] < (i ? key[i - 1] + 1 : first_key) || key[i] > q)
            return -1;
    s->sparse = 1;
    if (open_row(s, q, first_key))
        mark_sparse(s, q, first_key, key, score, n_stored);
    close_row(s, q);
    return 0;
}

/* ---- life ---- */

int sh_stats_is_complete(const struct sh_stats *s)
{
    return s->n_row == s->length;
}

static void take_lane(struct sh_stats *s, int lane, const struct sh_stats *exact, int from)
{
    size_t n = (size_t)s->length, to_cells = (size_t)s->spec.n_recent, from_cells = (size_t)exact->spec.n_recent;
    memcpy(s->last + (size_t)lane * n, exact->last + (size_t)from * n, n * sizeof *s->last);
    for (size_t i = 0; i < to_cells; i++)
        for (size_t k = 0; k < from_cells; k++) {
            size_t to_cell = (size_t)lane * to_cells + i, from_cell = (size_t)from * from_cells + k;
            if (s->spec.recent[i] != exact->spec.recent[k])
                continue;
            memcpy(s->first + to_cell * n, exact->first + from_cell * n, n * sizeof *s->first);
            memcpy(s->jaccard + to_cell * SH_STATS_LAGS, exact->jaccard + from_cell * SH_STATS_LAGS,
                   SH_STATS_LAGS * sizeof *s->jaccard);
        }
}

void sh_stats_take_exact(struct sh_stats *s, const struct sh_stats *exact)
{
    const struct sh_stats_spec *to = &s->spec, *from = &exact->spec;
    for (int i = 0; i < to->n_alpha && s->n_lane && exact->n_lane; i++)
        for (int k = 0; k < from->n_alpha; k++) {
            if (sh_stats_log8_can(&to->alpha[i]) || !sh_alpha_equal(&to->alpha[i], &from->alpha[k]))
                continue;
            if (to->alpha[i].kind != SH_ALPHA_SPLIT) {
                take_lane(s, sh_stats_lane(to, i, 0), exact, sh_stats_lane(from, k, 0));
                continue;
            }
            for (int a = 0; a < to->n_split; a++)
                for (int b = 0; b < from->n_split; b++)
                    if (to->split[a] == from->split[b])
                        take_lane(s, sh_stats_lane(to, i, a), exact, sh_stats_lane(from, k, b));
        }
}

struct sh_stats *sh_stats_new_finished(const struct sh_stats_spec *spec, int length)
{
    struct sh_stats *s = xcalloc(1, sizeof *s);
    s->spec = *spec;
    s->length = length;
    s->n_lane = sh_stats_n_lane(spec);
    if (!s->n_lane)
        return s;
    size_t lanes = (size_t)s->n_lane, recents = (size_t)spec->n_recent, keys = (size_t)length;
    s->last = xcalloc(lanes * keys, sizeof *s->last);
    s->first = xcalloc(lanes * recents * keys, sizeof *s->first);
    memset(s->last, 0xff, lanes * keys * sizeof *s->last);
    memset(s->first, 0xff, lanes * recents * keys * sizeof *s->first);
    s->low = xcalloc((size_t)spec->n_split * keys, sizeof *s->low);
    s->jaccard = xcalloc(lanes * recents * SH_STATS_LAGS, sizeof *s->jaccard);
    return s;
}

struct sh_stats *sh_stats_new(const struct sh_stats_spec *spec, int length)
{
    struct sh_stats *s = sh_stats_new_finished(spec, length);
    if (!s->n_lane)
        return s;
    size_t lanes = (size_t)s->n_lane;
    struct sh_stats_work *w = s->work = xcalloc(1, sizeof *w);
    sh_stats_limits(spec, length, w->limit);
    w->n_word = ((size_t)length + 63) / 64 | 1;
    w->side = (lanes + STATS_LINE - 1) / STATS_LINE * STATS_LINE;
    w->low_word = (((size_t)length + 64 * STATS_LINE - 1) / (64 * STATS_LINE) | 1) * STATS_LINE;
    size_t words = w->n_word * w->side;
    w->bits = xcalloc(STATS_SLOTS * words, sizeof *w->bits);
    w->low = xcalloc(STATS_SLOTS * w->low_word, sizeof *w->low);
    w->sets = xcalloc((lanes + 1) * w->low_word, sizeof *w->sets);
    w->total = xcalloc(STATS_SLOTS * w->side, sizeof *w->total);
    w->seen = xcalloc((size_t)spec->n_recent * words, sizeof *w->seen);
    w->any = xcalloc(words, sizeof *w->any);
    w->pending = xcalloc(words, sizeof *w->pending);
    w->alike = xcalloc((size_t)spec->n_recent * SH_STATS_LAGS, sizeof *w->alike);
    return s;
}

void sh_stats_free(struct sh_stats *s)
{
    if (!s)
        return;
    drop_work(s);
    free(s->last);
    free(s->first);
    free(s->low);
    free(s->jaccard);
    free(s);
}
