/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the streaming attention statistics: a grid of thresholds and recent windows ("cells"), split points,
 * and the history window of the low counts.
 *
 * A key j is pivotal for the query at position q when score(q, j) > alpha_q and q - j >= recent. recent 0 includes
 * the token itself, recent 1 excludes it.
 *
 * A lane is one threshold: one per alpha, except for "split", which has one lane per split. */
#ifndef SH_TRACES_STATS_SPEC_H
#define SH_TRACES_STATS_SPEC_H

#include "src/base/err.h"

#define SH_STATS_MAX 8                  /* alphas, recents and splits, each                       */
#define SH_STATS_MAX_LANES (2 * SH_STATS_MAX)
#define SH_STATS_MAX_RECENT (1 << 24)
#define SH_STATS_MAX_WINDOW (1 << 24)
#define SH_ALPHA_NAME 40                /* bytes of the longest canonical spelling, with its NUL  */

enum sh_alpha_kind {
    SH_ALPHA_ROW,                       /* K / n_q, n_q = keys that the query can see; value = K  */
    SH_ALPHA_SPLIT,                     /* 1 / t, t = the split in question; value unused (0)     */
    SH_ALPHA_VALUE                      /* a constant in (0, 1)                                   */
};

struct sh_alpha {
    enum sh_alpha_kind kind;
    double value;
};

/* Counts may be 0: without alphas or recents there are no cells and only the row sums are kept. */
struct sh_stats_spec {
    int n_alpha, n_recent, n_split;
    int window;                         /* rows before a split whose low scores are counted       */
    struct sh_alpha alpha[SH_STATS_MAX];
    int recent[SH_STATS_MAX];           /* strictly ascending                                     */
    double split[SH_STATS_MAX];         /* fractions of the length, in (0, 1), strictly ascending */
};

/* "row", "K/t" (K > 0), "split", or a number in (0, 1). "1/t" is "row". */
int sh_alpha_parse(const char *text, struct sh_alpha *out, struct sh_err *e);
void sh_alpha_name(const struct sh_alpha *a, char out[SH_ALPHA_NAME]);   /* parses back to *a */
int sh_alpha_equal(const struct sh_alpha *a, const struct sh_alpha *b);

/* row, 2/t, 5/t, 10/t, split; recents 0, 1, 10, 50; splits 0.25, 0.5, 0.75; window 400. */
void sh_stats_spec_default(struct sh_stats_spec *out);

/* Everything within its caps, in order, without duplicates; else -1 with the reason. */
int sh_stats_spec_check(const struct sh_stats_spec *spec, struct sh_err *e);

/* Position t = floor(length * fraction) of a split; 0 when one side would be empty. */
int sh_stats_split_at(double fraction, int length);

/* The lane of an alpha (at split i_split, which matters only for the alpha "split"). */
int sh_stats_lane(const struct sh_stats_spec *spec, int i_alpha, int i_split);
int sh_stats_n_lane(const struct sh_stats_spec *spec);  /* 0 when there are no cells */

/* The lanes of a sequence of that length, in order: in a row of n keys a score is pivotal when it is above value / n
 * (per_key) or value, as real numbers. A split with an empty side has a lane with an unreachable threshold. Returns
 * their number, as sh_stats_n_lane does. */
struct sh_stats_limit {
    double value;
    int per_key;
};

int sh_stats_limits(const struct sh_stats_spec *spec, int length, struct sh_stats_limit out[SH_STATS_MAX_LANES]);

/* Do the scores >= 1/n of every row of n keys suffice for the threshold? */
int sh_stats_sparse_can(const struct sh_alpha *a);

/* Is the threshold a boundary between log8 codes (src/base/log8.h), so that codes decide exactly as scores do? */
int sh_stats_log8_can(const struct sh_alpha *a);

/* The spec as one line of JSON; free() it. Parsing it gives the same spec, bit by bit. */
char *sh_stats_spec_write(const struct sh_stats_spec *spec);
int sh_stats_spec_parse(const char *text, struct sh_stats_spec *out, struct sh_err *e);

#endif
