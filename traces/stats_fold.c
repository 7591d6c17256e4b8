/* SPDX-License-Identifier: Apache-2.0 */
/* See stats_work.h: after every 64 rows, the union of their sets gives the keys whose first or last pivotal row must
 * be determined, and the low scores are counted per key. */
#include "traces/stats_work.h"

#define PLANES 7                        /* bits of a count up to 64                             */

/* position[k] = q for every bit k of `which`. */
SH_INLINE void note(int32_t *position, uint64_t which, int q)
{
    for (; which; which &= which - 1)
        position[__builtin_ctzll(which)] = q;
}

/* One word of a lane in the consecutive rows of a block, and what is known of its keys. */
struct place {
    int lane, at, q0, n_row;
    const uint64_t *word;               /* in row q0 */
    size_t step;                        /* to the next row */
};

SH_INLINE struct place place_of(const struct sh_stats *s, int lane, int at, int q0, int n_row)
{
    return (struct place){lane, at, q0, n_row, words_at(s->work, q0, at) + lane, s->work->n_word * s->work->side};
}

/* The newest row of the block in which each of these keys is pivotal. */
SH_INLINE void note_last(struct sh_stats *s, const struct place *p, uint64_t which)
{
    int32_t *last = s->last + (size_t)p->lane * (size_t)s->length + 64 * (size_t)p->at;
    for (int r = p->n_row - 1; which && r >= 0; r--) {
        uint64_t found = p->word[(size_t)r * p->step] & which;
        note(last, found, p->q0 + r);
        which &= ~found;
    }
}

/* The oldest row, for the keys in `any` that have none yet; for words whose keys no recent window excludes. */
SH_INLINE void note_first_far(struct sh_stats *s, const struct place *p, uint64_t any)
{
    size_t n_recent = (size_t)s->spec.n_recent, n = (size_t)s->length, next = s->work->n_word * s->work->side;
    uint64_t *seen = s->work->seen + (size_t)p->at * s->work->side + p->lane, left = 0;
    int32_t *first = s->first + (size_t)p->lane * n_recent * n + 64 * (size_t)p->at;
    for (size_t i = 0; i < n_recent; i++)
        left |= any & ~seen[i * next];
    for (int r = 0; left && r < p->n_row; r++) {
        uint64_t found = p->word[(size_t)r * p->step] & left;
        for (size_t i = 0; i < n_recent && found; i++) {
            note(first + i * n, found & ~seen[i * next], p->q0 + r);
            seen[i * next] |= found;
        }
        left &= ~found;
    }
}

/* The same, per recent window. */
SH_INLINE void note_first_near(struct sh_stats *s, const struct place *p, uint64_t any)
{
    size_t n_recent = (size_t)s->spec.n_recent, n = (size_t)s->length, next = s->work->n_word * s->work->side;
    for (size_t i = 0; i < n_recent; i++) {
        uint64_t *seen = s->work->seen + i * next + (size_t)p->at * s->work->side + p->lane, left = any & ~*seen;
        int32_t *first = s->first + ((size_t)p->lane * n_recent + i) * n + 64 * (size_t)p->at;
        int near = 64 * p->at + s->spec.recent[i] - p->q0;  /* rows too close to all of these keys */
        for (int r = near > 0 ? near : 0; left && r < p->n_row; r++) {
            uint64_t found = p->word[(size_t)r * p->step] & left & up_to(r - near < 63 ? r - near : 63);
            note(first, found, p->q0 + r);
            left &= ~found;
            *seen |= found;
        }
    }
}

/* mask[k]: the rows of this block within the history window of split k, whose position is t[k]. */
static int windows(const struct sh_stats *s, int q0, int t[SH_STATS_MAX], uint64_t mask[SH_STATS_MAX])
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

/* Add one row to bit-sliced counters: bit k of plane[b] is bit b of key k's count. */
SH_INLINE void count_row(uint64_t plane[PLANES][STATS_LINE], const uint64_t *row)
{
    uint64_t carry[STATS_LINE];
    for (int w = 0; w < STATS_LINE; w++)
        carry[w] = row[w];
    for (int b = 0; b < PLANES; b++)
        for (int w = 0; w < STATS_LINE; w++) {
            uint64_t both = plane[b][w] & carry[w];
            plane[b][w] ^= carry[w];
            carry[w] = both;
        }
}

/* Expand eight bits to eight bytes. */
SH_INLINE uint64_t spread(uint64_t bits)
{
    uint64_t apart = bits * 0x0101010101010101u & 0x8040201008040201u;
    return (apart + 0x7f7f7f7f7f7f7f7fu) >> 7 & 0x0101010101010101u;
}

/* low[k] += count of key k, for the first `keys` keys of a word. */
SH_INLINE void add_counts(int32_t *low, const uint64_t plane[PLANES][STATS_LINE], int w, int keys)
{
    for (int k = 0; k < keys; k += 8) {
        uint64_t counts = 0;
        for (int b = 0; b < PLANES; b++)
            counts += spread(plane[b][w] >> k & 0xff) << b;
        for (int i = k; i < keys && i < k + 8; i++, counts >>= 8)
            low[i] += (int32_t)(counts & 0xff);
    }
}

/* Count, per split, the rows of the block in which each key is low. */
SH_INLINE void fold_low(struct sh_stats *s, int q0)
{
    int t[SH_STATS_MAX], begin = s->work->block_word;
    uint64_t mask[SH_STATS_MAX];
    int any = windows(s, q0, t, mask);
    for (int i = 0; i < s->spec.n_split && any; i++) {
        int32_t *low = s->low + (size_t)i * (size_t)s->length;
        int end = mask[i] ? (t[i] + 63) / 64 : 0;       /* words with keys before the split */
        end = end > q0 / 64 + 1 ? q0 / 64 + 1 : end;
        for (int line = begin / STATS_LINE * STATS_LINE; line < end; line += STATS_LINE) {
            uint64_t plane[PLANES][STATS_LINE] = {{0}};
            for (uint64_t rows = mask[i]; rows; rows &= rows - 1)
                count_row(plane, low_at(s->work, q0 + __builtin_ctzll(rows), line));
            for (int w = line < begin ? begin - line : 0; w < STATS_LINE && line + w < end; w++) {
                int keys = t[i] - 64 * (line + w);
                add_counts(low + 64 * (line + w), plane, w, keys < 64 ? keys : 64);
            }
        }
    }
}

SH_INLINE void fold_word(struct sh_stats *s, int lane, int at, int q0, int n_row)
{
    size_t i = (size_t)at * s->work->side + (size_t)lane;
    uint64_t any = s->work->any[i], gone = s->work->pending[i] & ~any;
    struct place place;
    if (gone) {
        place = place_of(s, lane, at, q0 - 64, 64);
        note_last(s, &place, gone);
    }
    if (any) {
        place = place_of(s, lane, at, q0, n_row);
        if (64 * at + 63 + s->spec.recent[s->spec.n_recent - 1] <= q0)
            note_first_far(s, &place, any);
        else
            note_first_near(s, &place, any);
        if (q0 + n_row == s->length)
            note_last(s, &place, any);
    }
    s->work->pending[i] = any;
    s->work->any[i] = 0;
}

/* Most keys that are pivotal in one block are pivotal in the next, too: the last row of a key is determined only once
 * a block has passed without it, so the rows of the preceding block are kept. Words that the window has passed are in
 * no union, so their pending bits are dropped. */
SH_CLONES void sh_stats_fold(struct sh_stats *s, int q0, int n_row)
{
    for (int at = s->work->pending_word; at <= q0 / 64; at++)
        for (int lane = 0; lane < s->n_lane; lane++)
            fold_word(s, lane, at, q0, n_row);
    s->work->pending_word = s->work->block_word;
    fold_low(s, q0);
}
