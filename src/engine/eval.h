/* SPDX-License-Identifier: Apache-2.0 */
/* Teacher-forced reading of texts: once over the full cache (in f32), and through any number of compressed caches,
 * whose logits are compared with its. Layer by layer over whole texts (eval_sweep.c), or token by token
 * (eval_stream.c). */
#ifndef SH_ENGINE_EVAL_H
#define SH_ENGINE_EVAL_H

#include "planner/policy/budget.h"
#include "src/engine/eval_sums.h"
#include "src/engine/session.h"

struct sh_eval_cell {
    const struct sh_policy_spec *spec;
    struct sh_budget budget;            /* budget of every head; a share is one of the text's tokens */
    int (*tokens)(const void *plan, int layer, int head, int n_token);  /* NULL, or budgets by themselves */
    const void *plan;
    struct sh_kv_format format;
};

struct sh_eval {
    struct sh_resident *resident;
    const struct sh_eval_cell *cell;    /* [n_cell] */
    int n_cell;
    int prefill;                        /* the first tokens see everything                        */
    int block;                          /* or, if > 0, come in blocks of so many, the cache compressed after each */
    uint64_t seed;
    int stream;                         /* 1: token by token; the resident then has all layers    */
    sh_watch *watch;                    /* observer of cell `watched`, -1 the full cache; NULL: none */
    sh_session_take *take;              /* taker of the logits of that one; NULL: none            */
    void *to;                           /* first argument of both                                 */
    int watched;
    void (*progress)(void *to, int tokens);     /* so many have been read by all cells; may be NULL */
    void *progress_to;
};

/* Whether a text of n_token tokens can be read by all cells. */
int sh_eval_check(const struct sh_eval *v, int n_token, struct sh_err *e);

/* Are a text's sums [n_cell + 1], as sh_eval_read gives them, numbers? -1: e names the cache that gave others. */
int sh_eval_check_finite(const struct sh_eval *v, const struct sh_eval_total *total, struct sh_err *e);

/* Tokens [from, to) of a text that answer something, from > 0. */
struct sh_eval_answer {
    int from, to;
    int said;                           /* where the same was said before; -1: not told           */
};

struct sh_eval_text {
    const int32_t *tokens;              /* [n_token] */
    int n_token;
    const struct sh_eval_answer *answer;        /* [n_answer] in order, none inside another; may be NULL */
    int n_answer;
};

/* Reads n_text texts of one length, as many side by side as there is memory for, and where there is none for all cells,
 * some of these after others; token by token, all together. total [n_text][n_cell + 1]: of each text the cells', then
 * the full cache's; written over. -1 also when Ctrl-C was pressed. */
int sh_eval_read(const struct sh_eval *v, const struct sh_eval_text *text, int n_text, struct sh_eval_total *total,
                 struct sh_err *e);

/* Texts of so many tokens that can be read side by side: most, most / 2, …; 0: there is no memory for one. */
int sh_eval_fit(const struct sh_eval *v, int n_token, int most);

#endif
