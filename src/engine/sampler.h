/* SPDX-License-Identifier: Apache-2.0 */
/* The next token out of logits: the likeliest one, or drawn at random.
 *
 * In this order: logits / temperature; the top_k largest stay; softmax over them; of these, from the likeliest down, as
 * many stay as it takes to reach top_p; drawn in proportion. Of equal logits the smaller id counts as the larger one,
 * so every cut is exact. Pure functions: the n-th token of a seed depends on nothing but its logits. */
#ifndef SH_ENGINE_SAMPLER_H
#define SH_ENGINE_SAMPLER_H

#include <stdint.h>

#include "src/base/err.h"

struct sh_sampler {
    double temperature;                 /* 0: the likeliest token, whatever the rest says         */
    int top_k;                          /* 0: all                                                 */
    double top_p;                       /* probability that the kept tokens have together, in (0, 1]; 1: all */
    uint64_t seed;
};

struct sh_choice {
    float logit;
    int32_t token;
    double p;                           /* among those that stay; they sum to 1                   */
};

/* Those that stay, likeliest first where there is a cut (without one in order of id), into out
 * [n_vocab]; their number. -1: a logit is NaN or infinitely large, or all are infinitely small. */
int sh_sampler_choices(const struct sh_sampler *s, const float *logits, int n_vocab, struct sh_choice *out,
                       struct sh_err *e);

/* Token number `n` of a text; room: [n_vocab]. -1: as above. */
int32_t sh_sampler_pick(const struct sh_sampler *s, const float *logits, int n_vocab, uint64_t n,
                        struct sh_choice *room, struct sh_err *e);

/* The token, if a likeliest one's logit is a number; -1: as above. */
int32_t sh_sampler_check(int32_t token, float logit, struct sh_err *e);

/* The likeliest of all, the first of equal ones; -1: as above. */
int32_t sh_sampler_best(const float *logits, int n_vocab, struct sh_err *e);

#endif
