/* SPDX-License-Identifier: Apache-2.0 */
/* One layer of one sequence as a trace holds it: scores, queries, keys and values; its heads on threads, and the
 * rows of a head one after another. */
#ifndef SH_APP_COMMON_RECORDED_H
#define SH_APP_COMMON_RECORDED_H

#include "traces/codec.h"
#include "traces/store.h"

struct sh_recorded {                    /* set the first four, the rest zero                      */
    struct sh_store *store;
    const struct sh_stored_run *run;
    const struct sh_stored_sequence *sequence;
    int layer;
    struct sh_batch scores;             /* the blocks of all heads, in order of head and row      */
    float *vector[3];                   /* of q, k, v: [heads][n_tokens][d_head], f32; NULL: not read */
};

/* Read the scores and, if they are wanted, the vectors, of which all that the run says it recorded must be there. */
int sh_recorded_read(struct sh_recorded *r, int with_vectors, struct sh_err *e);

/* What was read goes. `bad`: did the work on it fail? Then e tells where; -1 also when the program was interrupted. */
int sh_recorded_end(struct sh_recorded *r, int bad, struct sh_err *e);

/* [n_tokens, d_head] of a head (of 'q' a query head, those of a group lie one after another); NULL: not read. */
const float *sh_recorded_vectors(const struct sh_recorded *r, char kind, int head);

/* work() for each of n heads, on so many threads. -1: it failed for some, and e is of the first that did. */
int sh_each_head(int n, int threads, int (*work)(void *to, int head, struct sh_err *e), void *to, struct sh_err *e);

/* The rows of one query head; one block is unpacked and one row decoded at a time. */
struct sh_head_rows {
    const struct sh_batch *blocks;
    int head;
    int i_block;                        /* the block in hand                                      */
    struct sh_codec_reader reader;      /* of it                                                  */
};

/* `blocks` in order of head and row, as the store hands them out. */
void sh_head_rows_begin(struct sh_head_rows *h, const struct sh_batch *blocks, int head);
void sh_head_rows_end(struct sh_head_rows *h);

/* Row t, valid until the next call; rows are asked for from 0 on. -1: it is not there, or damaged. */
int sh_head_rows_next(struct sh_head_rows *h, int t, const float **score, int *first_key, struct sh_err *e);

/* The rows of the query heads of a KV head, side by side. */
struct sh_group_rows {
    int n;                              /* query heads                                            */
    const float **row;                  /* [n]: row t of each                                     */
    struct sh_head_rows *head;          /* [n]                                                    */
};

void sh_group_rows_begin(struct sh_group_rows *g, const struct sh_recorded *r, int kv_head);
void sh_group_rows_end(struct sh_group_rows *g);

/* As sh_head_rows_next; -1 also when the rows do not all begin at the same key. */
int sh_group_rows_next(struct sh_group_rows *g, int t, int *first_key, struct sh_err *e);

#endif
