/* SPDX-License-Identifier: Apache-2.0 */
/* See stats.h. Each row becomes one bit set over the keys per lane, plus one of the low scores.
 * Likeness over time is counted on those bit sets. Every 64 rows the sets are transposed, which
 * leaves one word per key: its lowest bit is the first pivotal row, its highest the last, its
 * population a count. */
#include "traces/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clones.h"
#include "src/base/mem.h"
#include "src/base/num.h"
#include "src/base/row_bits.h"

#define SLOTS 65                        /* the newest row and the 64 before it                    */

const int sh_stats_lag[SH_STATS_LAGS] = {1, 8, 64};

/* Row q lives in slot q % SLOTS. Words below that of its first key are not valid, those above q's
 * neither. Lane n_lane holds the low scores. */
struct sh_stats_work {
    size_t n_word;                      /* words of a bit set over all keys                       */
    uint64_t *bits;                     /* [n_lane + 1][SLOTS][n_word]                            */
    uint32_t *before;                   /* [n_lane][SLOTS][n_word]: bits set in the words below   */
    uint64_t *seen;                     /* [n_lane][n_recent][n_word]: first is known             */
    struct sh_stats_limit limit[SH_STATS_MAX_LANES];
    int first_key;                      /* of the newest row                                      */
    int block_word;                     /* first valid word of the oldest row of this block of 64 */
};

struct row_set {                        /* one lane of one row                                    */
    uint64_t *bits;
    uint32_t *before;
};

/* ---- words ---- */

static inline uint64_t up_to(int bit)                   /* bits 0 .. bit */
{
    return ~(uint64_t)0 >> (63 - bit);
}

SH_INLINE int population(uint64_t word)
{
    return __builtin_popcountll(word);
}

/* Bit r of word k becomes bit k of word r (Warren, Hacker's Delight 7-3). */
SH_INLINE void transpose(uint64_t a[64])
{
    uint64_t mask = 0x00000000ffffffffu;
    for (int j = 32; j; j >>= 1, mask ^= mask << j)
        for (int k = 0; k < 64; k += 2 * j)
            for (int i = k; i < k + j; i++) {
                uint64_t t = (a[i] >> j ^ a[i + j]) & mask;
                a[i] ^= t << j;
                a[i + j] ^= t;
            }
}

/* ---- lanes ---- */

/* limit[lane]: a score is pivotal when it is above, for a row of n keys. */
static void limits(const struct sh_stats *s, int n, float limit[SH_STATS_MAX_LANES])
{
    for (int lane = 0; lane < s->n_lane; lane++) {
        const struct sh_stats_limit *l = &s->work->limit[lane];
        limit[lane] = sh_round_down(l->per_key ? l->value / n : l->value);
    }
}

SH_INLINE struct row_set set_of(const struct sh_stats *s, int lane, int q)
{
    size_t at = ((size_t)lane * SLOTS + (size_t)(q % SLOTS)) * s->work->n_word;
    return (struct row_set){s->work->bits + at, s->work->before + (lane < s->n_lane ? at : 0)};
}

/* ---- likeness over time ---- */

/* Members at positions <= j; j is not below the row's first word. */
SH_INLINE int members(struct row_set set, int j)
{
    return (int)set.before[j / 64] + population(set.bits[j / 64] & up_to(j % 64));
}

/* Both quotients are one division of two lanes: this runs for every row, lag and cell. */
SH_INLINE void liken(struct sh_jaccard *to, int a, int b, int both, int n)
{
    typedef double pair __attribute__((vector_size(16)));
    if (!a && !b)
        return;
    double product = (double)a * b;
    pair over = {both, product}, under = {a + b - both, (double)(a + b) * n - product};
    pair term = over / under;
    to->sum += term[0];
    to->expected += term[1];
    to->rows++;
}

/* The two rows of one lane, `lag` apart, for all recents: the common part is counted once. */
SH_INLINE void compare(struct sh_stats *s, int lane, int q, int i_lag)
{
    const struct sh_stats_spec *spec = &s->spec;
    int past = q - sh_stats_lag[i_lag], first = s->work->first_key, word = first / 64, both = 0;
    struct row_set a = set_of(s, lane, q), b = set_of(s, lane, past);
    int outside = first % 64 ? members(b, first - 1) : (int)b.before[word];
    struct sh_jaccard *to =
        s->jaccard + (size_t)lane * (size_t)spec->n_recent * SH_STATS_LAGS + i_lag;
    for (int i = spec->n_recent - 1; i >= 0; i--) {
        int cut = past - spec->recent[i];               /* the newest key that both can use */
        if (cut < first)
            continue;
        for (; word < cut / 64; word++)
            both += population(a.bits[word] & b.bits[word]);
        int rest = population(a.bits[word] & b.bits[word] & up_to(cut % 64));
        liken(&to[i * SH_STATS_LAGS], members(a, cut), members(b, cut) - outside, both + rest,
              cut - first + 1);
    }
}

SH_CLONES static void compare_all(struct sh_stats *s, int q)
{
    int words = q / 64 + 1;
    for (int lane = 0; lane < s->n_lane; lane++) {
        struct row_set set = set_of(s, lane, q);
        uint32_t count = 0;
        for (int w = s->work->first_key / 64; w < words; w++) {
            set.before[w] = count;
            count += (uint32_t)population(set.bits[w]);
        }
        for (int i = 0; i < SH_STATS_LAGS; i++)
            if (q >= sh_stats_lag[i])
                compare(s, lane, q, i);
    }
}

/* ---- every 64 rows ---- */

/* A word of every row of a block: word[r] belongs to row q0 + r; rows that are missing are empty.
 * Returns the union. */
static inline uint64_t gather(const struct sh_stats *s, int lane, int at, int q0, int n_row,
                              uint64_t word[64])
{
    const uint64_t *bits = set_of(s, lane, 0).bits + at;
    size_t stride = s->work->n_word, slot = (size_t)(q0 % SLOTS);
    uint64_t any = 0;
    for (int r = 0; r < n_row; r++) {
        any |= word[r] = bits[slot * stride];
        slot = slot + 1 == SLOTS ? 0 : slot + 1;
    }
    for (int r = n_row; r < 64; r++)
        word[r] = 0;
    return any;
}

/* position[k] = q for every bit k of `which`. */
static inline void note(int32_t *position, uint64_t which, int q)
{
    for (; which; which &= which - 1)
        position[__builtin_ctzll(which)] = q;
}

/* Newest row of the block in which each of the keys 64 at + k is pivotal. */
static inline void note_last(struct sh_stats *s, int lane, int at, int q0, const uint64_t word[64],
                             uint64_t any)
{
    int32_t *last = s->last + (size_t)lane * (size_t)s->length + 64 * (size_t)at;
    for (int r = 63; any; r--) {
        note(last, word[r] & any, q0 + r);
        any &= ~word[r];
    }
}

/* Oldest row, for those keys that have none yet and per recent window. */
static inline void note_first(struct sh_stats *s, int lane, int at, int q0, int n_row,
                              const uint64_t word[64], uint64_t any)
{
    size_t n_recent = (size_t)s->spec.n_recent, n_word = s->work->n_word;
    for (size_t i = 0; i < n_recent; i++) {
        size_t cell = (size_t)lane * n_recent + i;
        uint64_t *seen = &s->work->seen[cell * n_word + (size_t)at], left = any & ~*seen;
        int32_t *first = s->first + cell * (size_t)s->length + 64 * (size_t)at;
        int near = 64 * at + s->spec.recent[i] - q0;    /* rows too near to all of these keys */
        for (int r = near > 0 ? near : 0; left && r < n_row; r++) {
            uint64_t found = word[r] & left & up_to(r - near < 63 ? r - near : 63);
            note(first, found, q0 + r);
            left &= ~found;
            *seen |= found;
        }
    }
}

/* mask[k]: rows of this block that lie in the history window of split k, whose position is t[k]. */
static int windows(const struct sh_stats *s, int q0, int t[SH_STATS_MAX],
                   uint64_t mask[SH_STATS_MAX])
{
    int any = 0;
    for (int k = 0; k < s->spec.n_split; k++) {
        t[k] = sh_stats_split_at(s->spec.split[k], s->length);
        int from = t[k] - s->spec.window - q0, to = t[k] - q0;
        mask[k] = from >= 64 || to <= 0 ? 0 : up_to(to > 64 ? 63 : to - 1);
        if (from > 0 && from < 64)
            mask[k] &= ~(uint64_t)0 << from;
        any |= mask[k] != 0;
    }
    return any;
}

/* Rows of the block in which each key was low, per split. */
SH_INLINE void count_low(struct sh_stats *s, int at, const uint64_t column[64],
                             const int t[SH_STATS_MAX], const uint64_t mask[SH_STATS_MAX])
{
    for (int i = 0; i < s->spec.n_split; i++) {
        int32_t *low = s->low + (size_t)i * (size_t)s->length + 64 * (size_t)at;
        int keys = t[i] - 64 * at < 64 ? t[i] - 64 * at : 64;
        for (int k = 0; mask[i] && k < keys; k++)
            low[k] += population(column[k] & mask[i]);
    }
}

/* Fold the rows q0 .. q0 + n_row - 1, a block of at most 64, into first, last and low. */
SH_CLONES static void fold(struct sh_stats *s, int q0, int n_row)
{
    int t[SH_STATS_MAX], last_word = q0 / 64;
    uint64_t word[64], mask[SH_STATS_MAX];
    for (int lane = 0; lane < s->n_lane; lane++)
        for (int at = s->work->block_word; at <= last_word; at++) {
            uint64_t any = gather(s, lane, at, q0, n_row, word);
            note_last(s, lane, at, q0, word, any);
            note_first(s, lane, at, q0, n_row, word, any);
        }
    if (!windows(s, q0, t, mask))
        return;
    for (int at = s->work->block_word; at <= last_word; at++)
        if (gather(s, s->n_lane, at, q0, n_row, word)) {
            transpose(word);
            count_low(s, at, word, t, mask);
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

/* Make room for row q: words of this block's keys that it no longer sees are empty. Returns whether
 * its own words are wanted. */
static int open_row(struct sh_stats *s, int q, int first_key)
{
    struct sh_stats_work *w = s->work;
    if (!w)
        return 0;
    if (q % 64 == 0)
        w->block_word = first_key / 64;
    w->first_key = first_key;
    size_t gap = (size_t)(first_key / 64 - w->block_word) * sizeof *w->bits;
    for (int lane = 0; gap && lane <= s->n_lane; lane++)
        memset(set_of(s, lane, q).bits + w->block_word, 0, gap);
    return 1;
}

static void drop_work(struct sh_stats *s)
{
    if (s->work) {
        free(s->work->bits);
        free(s->work->before);
        free(s->work->seen);
        free(s->work);
        s->work = NULL;
    }
}

static void close_row(struct sh_stats *s, int q)
{
    if (s->work) {
        compare_all(s, q);
        if (q % 64 == 63 || q == s->length - 1)
            fold(s, q / 64 * 64, q % 64 + 1);
    }
    if (++s->n_row == s->length)
        drop_work(s);
}

static int is_next(const struct sh_stats *s, int q, int first_key, int n)
{
    return q == s->n_row && q < s->length && first_key >= 0 && first_key <= q &&
           n == q - first_key + 1 && (!s->work || first_key >= s->work->first_key);
}

/* Set the words of row q; a word that the row fills only in part is padded. */
static void mark(struct sh_stats *s, int q, int first_key, const float *row, int n)
{
    float limit[SH_STATS_MAX_LANES], low = sh_round_up(1.0 / n), part[64];
    uint64_t *bits = set_of(s, 0, q).bits;
    size_t stride = SLOTS * s->work->n_word;            /* from lane to lane */
    limits(s, n, limit);
    for (int j = first_key; j <= q;) {
        int n_word = (q - j + 1) / 64, begin = j % 64;
        const float *x = row + (j - first_key);
        if (begin || !n_word) {
            int end = q - j < 63 - begin ? begin + q - j : 63;
            for (int i = 0; i < 64; i++)
                part[i] = NAN;                          /* neither above nor below anything */
            memcpy(part + begin, x, (size_t)(end - begin + 1) * sizeof *part);
            x = part;
            n_word = 1;
        }
        sh_row_bits(x, (size_t)n_word, limit, s->n_lane, low, bits + j / 64, stride);
        j = 64 * (j / 64 + n_word);
    }
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

/* Words of the row's sets, the first one holding its first key: what lies around its keys is left
 * out, so that no position is ever beyond the arrays. */
static void copy_sets(struct sh_stats *s, int q, int first_key, const uint64_t *bits, int n_word)
{
    int first = first_key / 64, count = q / 64 - first + 1;
    for (int lane = 0; lane <= s->n_lane; lane++, bits += n_word) {
        uint64_t *to = set_of(s, lane, q).bits + first;
        memcpy(to, bits, (size_t)count * sizeof *to);
        to[0] &= ~(uint64_t)0 << first_key % 64;
        to[count - 1] &= up_to(q % 64);
    }
}

/* Keys first_key .. q of a set whose first word holds first_key. */
SH_CLONES static int count_set(const uint64_t *word, int first_key, int q)
{
    int rest = q / 64 - first_key / 64, count = 0;
    uint64_t begin = ~(uint64_t)0 << first_key % 64;
    for (; rest; rest--, begin = ~(uint64_t)0)
        count += population(*word++ & begin);
    return count + population(*word & begin & up_to(q % 64));
}

int sh_stats_row_sets(struct sh_stats *s, int q, int first_key, const uint64_t *bits, int first_word,
                      int n_word, const struct sh_row_figures *figures)
{
    if (!is_next(s, q, first_key, q - first_key + 1) || first_word > first_key / 64 ||
        n_word <= q / 64 - first_word)
        return -1;
    bits += first_key / 64 - first_word;
    const uint64_t *low = bits + (size_t)s->n_lane * (size_t)n_word;
    add_sums(&s->sums, q - first_key + 1, count_set(low, first_key, q), figures);
    if (open_row(s, q, first_key))
        copy_sets(s, q, first_key, bits, n_word);
    close_row(s, q);
    return 0;
}

/* Words of a sparse row: everything visible is low, nothing is pivotal, but for what is stored. */
static void mark_sparse(struct sh_stats *s, int q, int first_key, const int *key,
                        const float *score, int n_stored)
{
    float limit[SH_STATS_MAX_LANES], low = sh_round_up(1.0 / (q - first_key + 1));
    limits(s, q - first_key + 1, limit);
    struct row_set lows = set_of(s, s->n_lane, q);
    for (int w = first_key / 64; w <= q / 64; w++) {
        for (int lane = 0; lane < s->n_lane; lane++)
            set_of(s, lane, q).bits[w] = 0;
        lows.bits[w] = w == q / 64 ? up_to(q % 64) : ~(uint64_t)0;
    }
    lows.bits[first_key / 64] &= ~(uint64_t)0 << first_key % 64;
    for (int i = 0; i < n_stored; i++) {
        uint64_t bit = (uint64_t)1 << key[i] % 64;
        for (int lane = 0; lane < s->n_lane; lane++)
            if (score[i] > limit[lane])
                set_of(s, lane, q).bits[key[i] / 64] |= bit;
        if (!(score[i] < low))
            lows.bits[key[i] / 64] &= ~bit;
    }
}

int sh_stats_row_sparse(struct sh_stats *s, int q, int first_key, int n, const int *key,
                        const float *score, int n_stored)
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
    w->n_word = ((size_t)length + 63) / 64;
    w->bits = xcalloc((lanes + 1) * SLOTS * w->n_word, sizeof *w->bits);
    w->before = xcalloc(lanes * SLOTS * w->n_word, sizeof *w->before);
    w->seen = xcalloc(lanes * (size_t)spec->n_recent * w->n_word, sizeof *w->seen);
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
