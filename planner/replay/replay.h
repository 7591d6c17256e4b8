/* SPDX-License-Identifier: Apache-2.0 */
/* Eviction over recorded attention: the rows of one head of one sequence go once through many caches, one for each
 * (policy, budget) asked for. A cell's policy sees the row as a cache of its own would have made it, restricted to what
 * is kept and renormalised (or as recorded, with SH_ROWS_RECORDED).
 *
 * This is the reference trajectory: queries, keys and values are those of the uncompressed model. With renormalised
 * rows it is what a live cache does in the first layer, and close to it in later ones.
 *
 * A figure is a mean over rows, and in a row over the query heads of the group; where it is not defined (no pivotal
 * token, nothing but sinks and the token itself) it is left out. One thread for one struct sh_replay. */
#ifndef SH_PLANNER_REPLAY_H
#define SH_PLANNER_REPLAY_H

#include "planner/policy/kept_slots.h"

enum sh_rows { SH_ROWS_RENORMALISED, SH_ROWS_RECORDED };

enum { SH_REPLAY_SINKS = 4 };           /* what kept_mass_no_sink leaves out, with the token itself */

struct sh_replay_cell {
    const struct sh_policy_spec *spec;  /* NULL: left out, no figure has a row                    */
    int budget;
};

struct sh_replay_setup {
    int n_token, window, prefill;
    int layer, head, n_layer;           /* KV head                                                */
    int group;                          /* query heads that share it                              */
    enum sh_rows rows;
    const float *q;                     /* [group, n_token, d_head]; NULL when not recorded       */
    const float *k, *v;                 /* [n_token, d_head]; likewise                            */
    int d_head;
    uint64_t seed;
    const double *received;             /* [n_token]: all attention that each key gets, mean over the
                                         * group; NULL unless a policy needs the future           */
    int error_rows;                     /* take the output error once in this many rows; 0: never */
};

enum sh_replay_figure {
    SH_KEPT_MASS,                       /* share of the full row that falls on kept tokens        */
    SH_KEPT_MASS_NO_SINK,               /* the same without the first SH_REPLAY_SINKS tokens and itself */
    SH_PIVOTAL_RECALL,                  /* share of the keys with score > 1/n that are kept       */
    SH_OUTPUT_ERROR,                    /* |o - o'| / |o|, mean over the group; needs v           */
    SH_STABILITY,                       /* Jaccard likeness of the kept sets of neighbouring steps */
    SH_OCCUPANCY,                       /* tokens kept, this one included                         */
    SH_N_REPLAY_FIGURE
};

struct sh_replay_sums {                 /* of one cell                                            */
    double sum[SH_N_REPLAY_FIGURE];
    long long rows[SH_N_REPLAY_FIGURE]; /* that the figure was defined in                         */
    int peak_tokens;
    size_t policy_bytes;                /* of policy state, without the cache                     */
};

struct sh_replay;

/* The cells' specs must outlive it. A policy's needs must be met: sh_replay_check. */
struct sh_replay *sh_replay_new(const struct sh_replay_setup *setup, const struct sh_replay_cell *cell, int n_cell);
void sh_replay_free(struct sh_replay *r);               /* NULL is fine */

/* Called with what is kept when query t attends. */
typedef void sh_replay_watch(void *to, int cell, int t, const struct sh_cache *c);
void sh_replay_set_watch(struct sh_replay *r, sh_replay_watch *fn, void *to);

/* The rows of query t, one for each query head of the group: scores of the keys from first_key to t. Rows come in
 * order. -1: one does not sum to 1 (within 5 %, the most that log8 makes of it). */
int sh_replay_row(struct sh_replay *r, int t, int first_key, const float *const *row, struct sh_err *e);

const struct sh_replay_sums *sh_replay_sums(const struct sh_replay *r, int cell);

#endif
