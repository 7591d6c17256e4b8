/* SPDX-License-Identifier: Apache-2.0 */
/* Consecutive sequences that go through a layer together. */
#ifndef SH_TRACER_CHUNKS_H
#define SH_TRACER_CHUNKS_H

#include <stddef.h>

#include "traces/trace.h"

struct sh_chunk {
    int first, n, rows;                 /* sequences [first, first + n), their tokens together     */
    size_t row0;                        /* tokens of the sequences before                          */
    int *start;                         /* [n + 1]: where each begins, from 0                      */
};

struct sh_chunks {
    struct sh_chunk *at;
    int n, most_rows;                   /* most_rows: of the largest chunk                         */
    size_t n_rows;                      /* of all                                                  */
};

/* As many sequences a chunk as stay within `rows` tokens, at least one. */
void sh_chunks_cut(struct sh_chunks *c, const struct sh_trace_sequence *sequence, int n, int rows);
/* The tokens of a device that takes chunk `number` and every n-th one after it. */
size_t sh_chunks_rows(const struct sh_chunks *c, int number, int n);
void sh_chunks_free(struct sh_chunks *c);

#endif
