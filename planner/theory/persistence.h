/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of the persistence of importance, from the streaming statistics of heads.
 *
 * At a split, t = floor(T * fraction), with rows q and keys j:
 *     first  = { j : pivotal for some q < t }
 *     second = { j < t : pivotal for some q >= t }
 *     ratio = |first and second| / |second|, density = |first| / t.
 * A random set as large as `first` would have ratio = density, so lift = ratio / density. A figure that is not defined
 * (empty set, empty class, too short a sequence) is NaN.
 *
 * A head's figure is the mean over its sequences, a layer's the mean over its heads, the whole's the mean over its
 * layers; what is NaN is left out. So a mean lift is the mean of lifts, not the quotient of mean ratio and mean
 * density. */
#ifndef SH_PLANNER_THEORY_PERSISTENCE_H
#define SH_PLANNER_THEORY_PERSISTENCE_H

#include "src/base/err.h"
#include "traces/stats.h"

enum sh_persistence_figure {
    SH_RATIO, SH_DENSITY,
    SH_CHANCE,                          /* the ratio by chance: equals the density                */
    SH_LIFT,
    SH_RELATIVE_RISK,                   /* P(second | first) / P(second | not first)              */
    SH_PHI,                             /* phi coefficient of first and second among the keys < t */
    SH_AUC,                             /* ROC area of "fewer low scores in the history window
                                         * before t" as a predictor of `second`; ties: one half   */
    SH_JACCARD,                         /* [SH_STATS_LAGS]: likeness of sets that far apart       */
    SH_JACCARD_CHANCE = SH_JACCARD + SH_STATS_LAGS,     /* [SH_STATS_LAGS]: of random ones        */
    SH_ENTROPY = SH_JACCARD_CHANCE + SH_STATS_LAGS,     /* nats; from here on: means over rows,   */
    SH_NORMALISED_ENTROPY,              /* mean of entropy / ln n_q, rows with n_q >= 2           */
    SH_MASS_TOP,                        /* mass of the ceil(0.2 n_q) largest scores               */
    SH_BELOW_MEAN,                      /* share of scores < 1 / n_q                              */
    SH_BELOW_1PCT,                      /* share of scores < 0.01 of the row's largest            */
    SH_N_FIGURE
};

/* Which pivotal sets, and where to split. */
struct sh_persistence_cell {
    struct sh_alpha alpha;
    int recent;
    double split;
};

/* Of one head. `s` is complete. The alpha and the recent window must be in its spec; with alpha "split" so must the
 * split, else any fraction will do, though only a split of the spec has an AUC. What sparse rows cannot tell is NaN.
 * -1: the statistics lack the cell. */
int sh_persistence_head(const struct sh_stats *s, const struct sh_persistence_cell *cell,
                        double out[SH_N_FIGURE], struct sh_err *e);

/* Of many heads, in whatever order they come: results depend only on what was added. */
struct sh_persistence *sh_persistence_new(const struct sh_persistence_cell *cell, int n_cell);
void sh_persistence_free(struct sh_persistence *p);     /* NULL is fine */
int sh_persistence_add(struct sh_persistence *p, int sequence, int layer, int head,
                       const struct sh_stats *s, struct sh_err *e);

/* Take the means; nothing can be added afterwards. -1: a (sequence, layer, head) came twice. */
int sh_persistence_finish(struct sh_persistence *p, struct sh_err *e);

/* Layers and heads that were added, ascending; indices below count them, from 0. */
int sh_persistence_n_layer(const struct sh_persistence *p);
int sh_persistence_layer_at(const struct sh_persistence *p, int i_layer);
int sh_persistence_n_head(const struct sh_persistence *p, int i_layer);
int sh_persistence_head_at(const struct sh_persistence *p, int i_layer, int i_head);

/* SH_N_FIGURE numbers, which live as long as p: of a head; i_head -1: of a layer; i_layer -1: of all. */
const double *sh_persistence_figures(const struct sh_persistence *p, int i_cell, int i_layer, int i_head);

/* Index of the head with the smallest ratio, the first of equals; -1 when no head has a ratio. */
int sh_persistence_min_head(const struct sh_persistence *p, int i_cell, int i_layer);

#endif
