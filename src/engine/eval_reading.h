/* SPDX-License-Identifier: Apache-2.0 */
/* A reading of some texts of one length by all cells of an evaluation: what eval.c, which judges rows of logits, shares
 * with the two ways in which these come: layer by layer over whole texts (eval_sweep.c), and token by token
 * (eval_stream.c). Only these three files include it. */
#ifndef SH_ENGINE_EVAL_READING_H
#define SH_ENGINE_EVAL_READING_H

#include "src/engine/eval.h"

struct sh_reading {
    const struct sh_eval *v;
    const struct sh_eval_text *text;    /* [n_text], of one length                                */
    int n_text, n_token;
    int n_vocab, n_threads;
    int block, first;                   /* tokens of a text whose logits of the full cache are held at a time; the
                                         * position of the first of them */
    float *logits;                      /* [n_text, block, n_vocab]: these                        */
    struct sh_eval_row *row;            /* [n_text, block]: the same rows                         */
    struct sh_eval_point *point;        /* [block]                                                */
    struct sh_policy_spec all;          /* the full cache's                                       */
    struct sh_eval_cell whole;          /* the same                                               */
    int n_run;                          /* n_cell + 1: run 0 has the full cache, run i + 1 that of cell i */
    int *answer_at;                     /* [n_text, n_token]: the answer that a token belongs to, or -1 */
    unsigned char **missed;             /* [n_text][n_run, n_answer]: some token was not the likeliest */
    struct sh_eval_total *total;        /* [n_text, n_run]                                        */
    int run;                            /* the run whose rows are judged                          */
};

const struct sh_eval_cell *sh_reading_cell(const struct sh_reading *r, int run);
struct sh_eval_total *sh_reading_total(const struct sh_reading *r, int text, int run);

/* The setup of a run's cache for n_text texts, with its budgets [n_layer * n_kv_head], which the caller frees. */
struct sh_session_setup sh_reading_setup(const struct sh_reading *r, int run, int n_text, int **budget);

/* Tokens of a text that come in blocks. */
static inline int sh_reading_prompt(const struct sh_reading *r)
{
    int n = r->v->block ? r->v->prefill : 0;
    return n < r->n_token ? n : r->n_token;
}

/* A session's sh_session_take: judges the rows of r->run, those of run 0 first. Positions within [first, first +
 * block). */
void sh_reading_take(void *reading, int sequence, int position, int n, const float *logits);

/* The same of rows that are the full cache's, which have been judged in this block. */
void sh_reading_take_same(struct sh_reading *r, int sequence, int position, int n);

/* Puts into the error which run could not be. */
int sh_reading_no_run(const struct sh_reading *r, int run, struct sh_err *e);

/* All rows, judged, and what the caches took. */
int sh_eval_stream(struct sh_reading *r, struct sh_err *e);
int sh_eval_sweep(struct sh_reading *r, struct sh_err *e);

/* Can these texts be read in this way? */
int sh_eval_stream_fits(struct sh_reading *r);
int sh_eval_sweep_fits(struct sh_reading *r);

#endif
