/* SPDX-License-Identifier: Apache-2.0 */
/* What a text costs a model that reads it through a compressed cache, row by row beside the full cache:
 * negative log-likelihood of the next token, Kullback-Leibler divergence KL(full || compressed) of the
 * next token's distribution, and whether both think the same token the likeliest. In nats and double. */
#ifndef SH_ENGINE_EVAL_SUMS_H
#define SH_ENGINE_EVAL_SUMS_H

#include <stddef.h>
#include <stdint.h>

/* Sums over rows (a row: a token with its successor); they add up over texts. */
struct sh_eval_sums {
    long long tokens;                   /* that were predicted                                    */
    double nll, nll_2;                  /* and of squares, for the standard error                 */
    double change, change_2;            /* nll - the full cache's, token by token                 */
    double kl, kl_2;
    long long rows, same;               /* rows compared, the last of a text included; equal first choices */
    double seconds;
    long long read;                     /* tokens read in that time                               */
    double budget_tokens, texts;        /* sum over texts of the budget of a head, mean over heads */
    size_t kv_bytes;                    /* of the largest text                                    */
    int peak_tokens;                    /* of any head                                            */
};

/* One row's logits [n_vocab] as the others are measured against. */
struct sh_eval_row {
    const float *logits;
    double total;                       /* log sum exp                                            */
    int best;                           /* the likeliest token; the first of equal ones           */
};

struct sh_eval_row sh_eval_row_of(const float *logits, int n_vocab);

/* next: the token that follows, -1: none does. full: the same row over the full cache; NULL: this is it. */
void sh_eval_add(struct sh_eval_sums *s, const struct sh_eval_row *row, const struct sh_eval_row *full, int next,
                 int n_vocab);

struct sh_eval_mean { double value, error; };           /* standard error; NaN with fewer than two */

struct sh_eval_mean sh_eval_nll(const struct sh_eval_sums *s);
struct sh_eval_mean sh_eval_perplexity(const struct sh_eval_sums *s);   /* exp(nll); the error by its slope */
struct sh_eval_mean sh_eval_change(const struct sh_eval_sums *s);       /* paired */
struct sh_eval_mean sh_eval_kl(const struct sh_eval_sums *s);
double sh_eval_agreement(const struct sh_eval_sums *s);                 /* share of equal first choices */

#endif
