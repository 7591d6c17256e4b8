/* SPDX-License-Identifier: Apache-2.0 */
/* See stats_work.h: the similarity of rows a lag apart, counted on their bit sets. The intersection of two rows is
 * counted once for all recent windows, and the rest of each row backwards from its end. */
#include "traces/stats_work.h"

/* The end of the keys that two rows share, for one recent window: the bits `mask` of `word`. */
struct cut {
    int word, keys;                     /* keys: number that both rows can have                        */
    uint64_t mask;
    struct alike *to;
};

/* The cuts for two rows a lag apart, ascending. */
SH_INLINE int cuts_of(const struct sh_stats *s, int q, int i_lag, struct cut cut[SH_STATS_MAX])
{
    const struct sh_stats_spec *spec = &s->spec;
    int past = q - sh_stats_lag[i_lag], first = s->work->first_key, n = 0;
    for (int i = spec->n_recent - 1; i >= 0; i--) {
        int last = past - spec->recent[i];              /* newest key that both can use */
        if (last >= first)
            cut[n++] = (struct cut){last / 64, last - first + 1, up_to(last % 64),
                                    &s->work->alike[i * SH_STATS_LAGS + i_lag]};
    }
    return n;
}

/* Counts of the two rows, per lane. */
struct counts {
    uint64_t a[SH_STATS_MAX_LANES], b[SH_STATS_MAX_LANES], both[SH_STATS_MAX_LANES];
};

/* Subtract the bits of the words a and b under `mask` from the counts. */
SH_INLINE void take_off(struct counts *n, const uint64_t *a, const uint64_t *b, uint64_t mask, size_t side)
{
    for (size_t k = 0; k < side; k++) {
        n->a[k] -= (uint64_t)__builtin_popcountll(a[k] & mask);
        n->b[k] -= (uint64_t)__builtin_popcountll(b[k] & mask);
        n->both[k] -= (uint64_t)__builtin_popcountll(a[k] & b[k] & mask);
    }
}

/* Members of a, of b and of their intersection up to each cut, given those of the whole rows: what follows a cut is
 * subtracted, starting at the end. a and b: the words of the row's last key, which b lacks if it ends earlier. */
SH_INLINE void count_up_to(struct counts *n, const uint64_t *a, const uint64_t *b, int end, const struct cut *cut,
                           int n_cut, size_t side)
{
    for (int i = n_cut - 1; i >= 0; i--) {
        for (; end > cut[i].word; end--, a -= side, b -= side)
            take_off(n, a, b, ~(uint64_t)0, side);
        struct counts here = *n;
        take_off(&here, a, b, ~cut[i].mask, side);
        for (size_t k = 0; k < side; k++) {
            cut[i].to->a[k] = (int)here.a[k];
            cut[i].to->b[k] = (int)here.b[k];
            cut[i].to->both[k] = (int)here.both[k];
        }
    }
}

/* The similarity of all lanes at one cut: one division at a time would cost more than all the counting. A lane
 * without members adds nothing. */
SH_INLINE void liken(struct alike *to, int keys, size_t side)
{
    for (size_t k = 0; k < side; k++) {
        int any = to->a[k] + to->b[k];
        double product = (double)to->a[k] * to->b[k];
        double term = (double)to->both[k] / (double)(any - to->both[k]);
        double chance = product / ((double)any * keys - product);
        to->sum[k] += any ? term : 0;
        to->expected[k] += any ? chance : 0;
        to->rows[k] += any != 0;
    }
}

/* Count the members of row q, the newest, and add it to the union of its block. */
SH_INLINE void take_in(struct sh_stats_work *work, int q, size_t side)
{
    int first = work->first_key / 64;
    const uint64_t *row = words_at(work, q, first);
    uint64_t *any = work->any + (size_t)first * side, count[SH_STATS_MAX_LANES] = {0};
    size_t n = (size_t)(q / 64 - first + 1) * side;
    for (size_t i = 0; i < n; i++)
        any[i] |= row[i];
    for (size_t i = 0; i < n; i += side)
        for (size_t k = 0; k < side; k++)
            count[k] += (uint64_t)__builtin_popcountll(row[i + k]);
    for (size_t k = 0; k < side; k++)
        work->total[(unsigned)q % STATS_SLOTS * side + k] = (int)count[k];
    work->first_word[q % STATS_SLOTS] = first;
}

/* Members of both rows; of b, only those that the newest row can see. */
SH_INLINE void count_all(const struct sh_stats_work *work, struct counts *n, int q, int past, size_t side)
{
    int first = work->first_key / 64, at = work->first_word[past % STATS_SLOTS];
    const uint64_t *a = words_at(work, q, first), *b = words_at(work, past, at);
    for (size_t k = 0; k < side; k++) {
        n->a[k] = (uint64_t)work->total[(unsigned)q % STATS_SLOTS * side + k];
        n->b[k] = (uint64_t)work->total[(unsigned)past % STATS_SLOTS * side + k];
        n->both[k] = 0;
    }
    for (; at <= first; at++, b += side)                /* keys that the window has passed */
        for (size_t k = 0; k < side; k++) {
            uint64_t passed = at < first ? b[k] : b[k] & ~(~(uint64_t)0 << work->first_key % 64);
            n->b[k] -= (uint64_t)__builtin_popcountll(passed);
        }
    b = words_at(work, past, first);
    for (int w = first; w <= past / 64; w++, a += side, b += side)
        for (size_t k = 0; k < side; k++)
            n->both[k] += (uint64_t)__builtin_popcountll(a[k] & b[k]);
}

SH_INLINE void compare_lanes(struct sh_stats *s, int q, size_t side)
{
    struct sh_stats_work *work = s->work;
    take_in(work, q, side);
    for (int i = 0; i < SH_STATS_LAGS && q >= sh_stats_lag[i]; i++) {
        struct cut cut[SH_STATS_MAX];
        struct counts all;
        int past = q - sh_stats_lag[i], n = cuts_of(s, q, i, cut);
        if (!n)
            continue;
        count_all(work, &all, q, past, side);
        count_up_to(&all, words_at(work, q, q / 64), words_at(work, past, q / 64), q / 64, cut, n, side);
        for (int k = 0; k < n; k++)
            liken(cut[k].to, cut[k].keys, side);
    }
}

SH_INLINE void compare_rows(struct sh_stats *s, int q)
{
    if (s->work->side == STATS_LINE)
        compare_lanes(s, q, STATS_LINE);
    else
        compare_lanes(s, q, SH_STATS_MAX_LANES);
}

SH_CLONES static void compare_any(struct sh_stats *s, int q)
{
    compare_rows(s, q);
}

#ifdef SH_HAS_CLONES
/* Counts the words of eight lanes at a time; no x86-64 level includes this instruction, so it is named explicitly. */
__attribute__((target("arch=x86-64-v4,avx512vpopcntdq,prefer-vector-width=512")))
static void compare_wide(struct sh_stats *s, int q)
{
    compare_rows(s, q);
}
#endif

void sh_stats_compare(struct sh_stats *s, int q)
{
#ifdef SH_HAS_CLONES
    if (__builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("avx512bw")) {
        compare_wide(s, q);
        return;
    }
#endif
    compare_any(s, q);
}

void sh_stats_put_likeness(struct sh_stats *s)
{
    for (int lane = 0; lane < s->n_lane; lane++)
        for (int i = 0; i < s->spec.n_recent * SH_STATS_LAGS; i++) {
            const struct alike *from = &s->work->alike[i];
            s->jaccard[lane * s->spec.n_recent * SH_STATS_LAGS + i] =
                (struct sh_jaccard){from->sum[lane], from->expected[lane], from->rows[lane]};
        }
}
