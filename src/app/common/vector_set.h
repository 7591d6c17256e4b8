/* SPDX-License-Identifier: Apache-2.0 */
/* The queries, keys and values that were recorded of one layer of one sequence, as f32. */
#ifndef SH_APP_COMMON_VECTOR_SET_H
#define SH_APP_COMMON_VECTOR_SET_H

#include "traces/store.h"

struct sh_vector_set {                  /* start with zeroed memory                               */
    int n_token, d_head, n_head[3];     /* of q, k, v                                             */
    float *at[3];                       /* [n_head][n_token][d_head]; NULL: not recorded          */
    unsigned char *seen[3];             /* [n_head]                                               */
};

/* All that the run says it recorded must be there: else -1. What was read is freed by the caller. */
int sh_vector_set_read(struct sh_vector_set *v, struct sh_store *s, const struct sh_stored_sequence *sequence,
                       int layer, const struct sh_stored_run *run, struct sh_err *e);
void sh_vector_set_free(struct sh_vector_set *v);

/* [n_token, d_head] of a head (of 'q' a query head, those of a group lie one after another); NULL: not
 * recorded. */
const float *sh_vector_set_of(const struct sh_vector_set *v, char kind, int head);

#endif
