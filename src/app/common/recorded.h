/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace holds: the runs of a store that a command works on; one layer of one sequence (scores, queries, keys and
 * values), its heads on threads, and the rows of a head one after another. */
#ifndef SH_APP_COMMON_RECORDED_H
#define SH_APP_COMMON_RECORDED_H

#include "traces/codec.h"
#include "traces/store.h"

/* The run of that id, or all runs (0), which must then be of one model. Runs whose rows are not causal are refused,
 * since no cache grows token by token in them. Free with sh_stored_runs_free. */
int sh_runs_choose(struct sh_store *s, int run, struct sh_stored_run **out, int *n, struct sh_err *e);

/* In a store of several models, *run 0 becomes the only run of this checkpoint, if there is just one. */
int sh_runs_fit(struct sh_store *s, const char *model, int *run, struct sh_err *e);

/* The runs, with the sequences of each. */
struct sh_runs {
    struct sh_stored_run *run;
    struct sh_stored_sequence **sequence;       /* [n]                                                */
    int *n_sequence;                            /* [n]                                                */
    int n;
};

int sh_runs_open(struct sh_runs *r, struct sh_store *s, int run, struct sh_err *e);     /* -1: r is {0} */
void sh_runs_close(struct sh_runs *r);                                                 /* {0} is fine  */

/* -1: the runs do not all hold the same layers and number of KV heads; the hint is to select one run. */
int sh_runs_agree(const struct sh_runs *r, struct sh_store *s, struct sh_err *e);

/* heads [n_layer of the runs]: the number of KV heads of each layer; 0: it does not attend. The runs must agree (see
 * above). A layer that no sequence has finished counts as having the model's number. -1: sequences differ. */
int sh_runs_layer_heads(const struct sh_runs *r, struct sh_store *s, int *heads, struct sh_err *e);

/* Sets the hint for a run that was recorded without what is needed: `how` to trace it, "with --record full". It
 * mentions --run, since a store keeps the old run next to a new one. Returns -1. */
int sh_runs_hint(struct sh_err *e, const char *how);

/* ---- one layer of one sequence ---- */

struct sh_recorded {                    /* set the first four, the rest zero                      */
    struct sh_store *store;
    const struct sh_stored_run *run;
    const struct sh_stored_sequence *sequence;
    int layer;
    struct sh_batch scores;             /* the blocks of all heads, in order of head and row      */
    int n_head, n_kv_head;              /* query and KV heads of this layer: the run's, or fewer  */
    int has_sinks;                      /* rows sum to less than 1; known if vectors were asked for */
    float *vector[3];                   /* q, k, v: [heads][n_tokens][d_head], f32; NULL: not read    */
};

/* Finds n_head and n_kv_head. */
int sh_recorded_heads(struct sh_recorded *r, struct sh_err *e);

/* The same, and reads the scores and, if requested, all vectors that the run recorded. */
int sh_recorded_read(struct sh_recorded *r, int with_vectors, struct sh_err *e);

/* Frees what was read. bad: the work failed, so the place is put before the message in e. -1 also after an
 * interrupt. */
int sh_recorded_end(struct sh_recorded *r, int bad, struct sh_err *e);

/* Query heads of a KV head of this layer. */
int sh_recorded_group(const struct sh_recorded *r);

/* [n_tokens, d_head] of a head (for 'q' a query head; those of a group are consecutive; else a KV head of this layer);
 * NULL: not read. */
const float *sh_recorded_vectors(const struct sh_recorded *r, char kind, int head);

/* Calls work() for each of n heads, on that many threads. -1: it failed for some; e is the first error. */
int sh_each_head(int n, int threads, int (*work)(void *to, int head, struct sh_err *e), void *to, struct sh_err *e);

/* The rows of one query head; one block is unpacked and one row decoded at a time. */
struct sh_head_rows {
    const struct sh_batch *blocks;
    int head;
    int i_block;                        /* the block that is being read                           */
    struct sh_codec_reader reader;      /* reader of its scores                                   */
};

/* blocks: in order of head and row, as in the store. */
void sh_head_rows_begin(struct sh_head_rows *h, const struct sh_batch *blocks, int head);
void sh_head_rows_end(struct sh_head_rows *h);

/* Row t, valid until the next call; rows are read from 0 on. -1: it is missing or damaged. */
int sh_head_rows_next(struct sh_head_rows *h, int t, const float **score, int *first_key, struct sh_err *e);

/* The rows of the query heads of a KV head, side by side. */
struct sh_group_rows {
    int n;                              /* query heads                                            */
    const float **row;                  /* [n]: row t of each                                     */
    struct sh_head_rows *head;          /* [n]                                                    */
};

void sh_group_rows_begin(struct sh_group_rows *g, const struct sh_recorded *r, int kv_head);
void sh_group_rows_end(struct sh_group_rows *g);

/* As sh_head_rows_next; -1 also if the rows do not all begin at the same key. */
int sh_group_rows_next(struct sh_group_rows *g, int t, int *first_key, struct sh_err *e);

#endif
