/* SPDX-License-Identifier: Apache-2.0 */
/* One token's logits through a compressed cache beside those over the full one: negative log-likelihood of the next
 * token, Kullback-Leibler divergence KL(full || compressed) of the next token's distribution, and whether both think
 * the same token the likeliest. In nats and double; the order of the sums is the same on every machine. */
#ifndef SH_ENGINE_EVAL_ROW_H
#define SH_ENGINE_EVAL_ROW_H

/* One row's logits [n_vocab] as the others are measured against. */
struct sh_eval_row {
    const float *logits;
    double total;                       /* log sum exp; NaN: a logit is NaN or infinitely large   */
    int best;                           /* the likeliest token; the first of equal ones           */
};

struct sh_eval_row sh_eval_row_of(const float *logits, int n_vocab);

/* What one row adds. */
struct sh_eval_point {
    double nll, change, kl;             /* change: nll - the full cache's                         */
    int has_next, same, is_right;       /* is_right: the next token is the likeliest one          */
};

/* next: the token that follows, -1: none does. full: the same row over the full cache; NULL: this is it. */
struct sh_eval_point sh_eval_point_of(const struct sh_eval_row *row, const struct sh_eval_row *full, int next,
                                      int n_vocab);

#endif
