/* SPDX-License-Identifier: Apache-2.0 */
/* Observed attention (kvpress): a prompt token's score is the mean attention that it received from the prompt's rows
 * that could see it. The public code decides once, at the end of the prompt, and lets the cache grow. A fixed budget
 * must go on deciding: prompt tokens keep the score that they had at its end, and a later token has the mean over the
 * rows since it came. Without a prompt it would be h2o:score=mean. */
#include "planner/policy/policy.h"

static void observe(void *state, const struct sh_cache *c, const struct sh_step *t)
{
    struct sh_score_state *s = state;
    int from = t->t < c->head->prefill ? 0 : c->head->prefill;
    for (int i = 0; i < c->n_slot; i++)
        s->score[i] += c->pos[i] >= from ? t->row[i] : 0;
}

static const float *score(void *state, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    struct sh_score_state *s = state;
    int prefill = c->head->prefill;
    for (int i = 0; i < c->n_slot; i++) {
        int end = c->pos[i] < prefill && prefill < t->t ? prefill : t->t;
        scratch[i] = s->score[i] / (float)(end - c->pos[i]);
    }
    return scratch;
}

const struct sh_policy sh_policy_observed = {
    .name = "observed",
    .summary = "drops the prompt's tokens that got the least mean attention within the prompt",
    .knobs = sh_policy_protect_knobs,
    .needs = SH_NEEDS_SCORES | SH_NEEDS_PROMPT,
    .is_stack = sh_policy_always,
    .state_bytes = sizeof(struct sh_score_state), .arrays = sh_score_kept,
    .observe = observe, .score = score,
};
