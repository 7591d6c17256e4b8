/* SPDX-License-Identifier: Apache-2.0 */
/* The log-likelihoods of the choices of a task's item under a KV budget. Every choice is read through a cache of its
 * own, with evictions from the first token of the prompt on. What all choices begin with is read once, and each
 * continues from a copy of the cache, as a batch: the numbers are those of reading each choice as a whole. */
#ifndef SH_ENGINE_TASK_SCORE_H
#define SH_ENGINE_TASK_SCORE_H

#include "planner/policy/budget.h"
#include "src/engine/eval_sums.h"
#include "src/engine/session.h"
#include "src/engine/task.h"

struct sh_task_reader {
    struct sh_resident *resident;
    const struct sh_policy_spec *spec;
    struct sh_budget budget;            /* budget of every head; a share: of the tokens of the item's longest choice */
    struct sh_kv_format format;
    int prefill;
    uint64_t seed;
};

struct sh_task_score {
    double sum[SH_TASK_CHOICES];        /* log-likelihood of the choice's tokens, nats            */
    int is_greedy[SH_TASK_CHOICES];     /* every one of them is the likeliest                     */
    int best, best_norm;                /* choices: the largest sum, the largest per character; the first of equals */
    long long read;                     /* tokens; what choices share counts once                 */
    size_t kv_bytes;                    /* bytes of one choice's cache                            */
    int budget_tokens;
    struct sh_eval_place place;         /* place of the item, as one text                         */
};

/* Whether the item can be read under this budget: before anything runs. */
int sh_task_score_check(const struct sh_task_reader *r, const struct sh_task_prompt *p, struct sh_err *e);
int sh_task_score_item(const struct sh_task_reader *r, const struct sh_task_prompt *p, struct sh_task_score *out,
                       struct sh_err *e);

#endif
