/* SPDX-License-Identifier: Apache-2.0 */
/* One attend with everything it needs, its definition in double precision, and what its tap hands out. */
#ifndef TESTS_UNIT_ATTENTION_H
#define TESTS_UNIT_ATTENTION_H

#include <pthread.h>

#include "tests/unit/backends.h"

enum { MAX_SEQ = 4, MAX_HEAD = 8 };

struct shape {                          /* what an attend is made of                              */
    int n_head, n_kv_head, d_head, window;
    float softcap;
    int slopes;                         /* 1: ALiBi                                               */
    enum sh_type type;                  /* of out: the type that the backend may round operands to */
    int rough;                          /* 1: q, k, v are any f32 numbers; 0: rounded to the type before */
};

struct attention {
    struct sh_attend a;
    struct matrix q, k, v, out;         /* rows with gaps between them                            */
    int start[MAX_SEQ + 1], longest, rough;
    float slope[MAX_HEAD];
};

/* Points into itself: it stays where it is made. The scale is a power of two, so that it makes no
 * difference whether it is applied before or after operands are rounded. */
void attention_new(const struct target *t, struct attention *c, const struct shape *s, const int *lengths, int n_seq);
void attention_free(const struct target *t, struct attention *c);
/* With the tap that is set, or none; ends with a sync. */
void attention_run(const struct target *t, struct attention *c);

int attention_length(const struct attention *c, int sequence);
int attention_first(const struct attention *c, int row);        /* key that it sees                */
size_t attention_scores(const struct attention *c, int rows);   /* of the first `rows` rows of a head */

/* The most by which the backend rounds an element of q, k or v of magnitude 1, and of magnitude 0. */
double attention_unit(const struct attention *c);
double attention_step(const struct attention *c);

/* Row `row`'s keys in turn: x[i] = ln of the probability, off[i] = the most by which it may differ, since
 * it is computed in f32 and q and k may be rounded. */
void attention_row(const struct attention *c, int sequence, int head, int row, double *x, double *off);

/* What the tap handed out. Of sets: of all rows, bits at their absolute places. */
struct recorded {
    unsigned char *packed;              /* all scores; NULL: nothing came                         */
    uint64_t *bits;                     /* [rows][lanes + 1][words]                               */
    struct sh_row_figures *figures;     /* [rows]                                                 */
    float *value;
    size_t n_value;
    int rows, disorder;                 /* disorder: rows that were not expected, from the wrong thread */
    pthread_t thread;
};

struct recording {
    const struct attention *c;
    struct sh_tap tap;                  /* what was asked for                                     */
    struct recorded head[MAX_SEQ * MAX_HEAD];   /* [sequence * n_head + head]                     */
};

/* Runs the attention with this tap. lanes and wanted may be NULL. */
struct recording *attention_record(const struct target *t, struct attention *c, enum sh_pack pack,
                                   const struct sh_lanes *lanes, const unsigned char *wanted);
void recording_free(struct recording *r);
int recording_words(const struct recording *r, int sequence);   /* of a set of the longest row    */
size_t pack_bytes(enum sh_pack pack);

#endif
