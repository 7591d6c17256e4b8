/* SPDX-License-Identifier: Apache-2.0 */
/* How a trace is cut. Units are for processes: neighbouring sequences, and where there are fewer sequences than units,
 * a range of layers of each. The layers below a range are computed again without being recorded (sweep.h). Every
 * process that cuts the same trace into as many units gets the same ones. Chunks are for a device. Between two layers
 * their hidden states are kept (hidden.c). */
#ifndef SH_TRACER_UNITS_H
#define SH_TRACER_UNITS_H

#include <stddef.h>

#include "src/base/err.h"
#include "traces/trace.h"

struct sh_unit {
    int first, n;                       /* sequences [first, first + n)                           */
    int first_layer, last_layer;        /* the layers that are recorded, inclusive                */
    double work;                        /* work in arbitrary units: tokens and scores through layers */
};

/* Into unit[wanted]; the number of units, at most `wanted` and at least 1. */
int sh_units_cut(struct sh_unit *unit, int wanted, const struct sh_trace_sequence *sequence, int n, int first_layer,
                 int last_layer);

/* A chunk: consecutive sequences that go through a layer together. */
struct sh_chunk {
    int first, n, rows;                 /* sequences [first, first + n), their tokens together     */
    size_t row0;                        /* tokens of the sequences before                          */
    int *start;                         /* [n + 1]: where each begins, from 0                      */
};

struct sh_chunks {
    struct sh_chunk *at;
    int n, most_rows;                   /* most_rows: of the largest chunk                         */
    size_t n_rows;                      /* rows of all                                             */
};

/* As many sequences a chunk as stay within `rows` tokens, at least one. */
void sh_chunks_cut(struct sh_chunks *c, const struct sh_trace_sequence *sequence, int n, int rows);
/* The tokens of a device that takes chunk `number` and every n-th one after it. */
size_t sh_chunks_rows(const struct sh_chunks *c, int number, int n);
void sh_chunks_free(struct sh_chunks *c);

/* The hidden states of all sequences between two layers, [n_rows, width] f32. If they are larger than the memory they
 * may take, they are in an unlinked temporary file that is mapped: rows not used lately are then in the page cache or
 * on disk, not in the program. */
struct sh_hidden {
    float *at;
    size_t bytes, row_bytes;
    int spilled;
};

/* limit_bytes: above it the states go to a file in `folder`. */
int sh_hidden_new(struct sh_hidden *h, size_t n_rows, size_t width, size_t limit_bytes, const char *folder,
                  struct sh_err *e);
void sh_hidden_free(struct sh_hidden *h);

float *sh_hidden_row(const struct sh_hidden *h, size_t row);

/* These rows are not needed for a while: a spilled part leaves the program's memory. */
void sh_hidden_rest(const struct sh_hidden *h, size_t row, size_t n_rows);

#endif
