/* SPDX-License-Identifier: Apache-2.0 */
/* See plan_measure.h: the search on a trace. */
#include "src/app/plan/plan_measure.h"

#include <math.h>
#include <stdlib.h>

#include "src/base/mem.h"

enum { GRID = 17, FINER = 8 };          /* budgets of the first pass, and of each that follows    */

static int meets(const struct sh_plan_search *p, double value)
{
    return p->at_least ? value >= p->target : value <= p->target;
}

/* The budgets of several plans, for the longest sequence. */
struct plans {
    const struct sh_allot *a;
    int *budget;                        /* [n][n_layer][n_head] */
};

static int of_plan(void *to, int i_budget, int n_token, int layer, int head)
{
    const struct plans *p = to;
    int row = i_budget * p->a->n_layer + layer - p->a->first_layer;
    return sh_plan_scale(p->budget[(size_t)row * (size_t)p->a->n_head + (size_t)head], sh_allot_longest(p->a), n_token,
                         p->a->floor);
}

static int replay_plans(const struct sh_plan_search *p, struct plans *plans, const struct sh_replay_request *q,
                        struct sh_store *s, int n, double *value, struct sh_err *e)
{
    struct sh_replay_request one = *q;
    struct sh_replay_result r = {0};
    struct sh_budget whole[GRID];       /* placeholders: of_plan gives the budgets */
    for (int i = 0; i < n; i++)
        whole[i] = (struct sh_budget){0, 1};
    one.budget = whole;
    one.n_budget = n;
    one.error_every = p->figure == SH_OUTPUT_ERROR ? q->error_every : 0;
    one.share_out = of_plan;
    one.share_to = plans;
    int bad = sh_replay_run(&one, s, &r, e);
    for (int l = 0; l < plans->a->n_layer && !bad; l++)
        if (plans->a->heads[l] && isnan(sh_replay_total_mean(r.total, n - 1, p->figure, l)))
            bad = sh_fail(e, "%s of layer %d is not defined in any finished sequence", p->what,
                          plans->a->first_layer + l);
    for (int i = 0; i < n && !bad; i++)
        value[i] = sh_replay_total_mean(r.total, i, p->figure, -1);
    sh_replay_result_free(&r);
    return bad;
}

/* The figure under n mean budgets. */
static int replay(const struct sh_plan_search *p, const struct sh_allot *a, const struct sh_replay_request *q,
                  struct sh_store *s, const int *tokens, int n, double *value, struct sh_err *e)
{
    size_t each = (size_t)a->n_layer * (size_t)a->n_head;
    struct plans plans = {a, xcalloc((size_t)n * each, sizeof *plans.budget)};
    int bad = 0;
    for (int i = 0; i < n && !bad; i++)
        bad = sh_allot_solve(a, tokens[i], sh_allot_longest(a), plans.budget + (size_t)i * each, e);
    bad = bad || replay_plans(p, &plans, q, s, n, value, e);
    free(plans.budget);
    return bad;
}

/* n evenly spaced budgets, `from` and `to` included; fewer if the range has not as many. */
static int spaced(int from, int to, int n, int *tokens)
{
    int count = 0;
    for (int i = 0; i < n; i++) {
        int x = from + (int)((long long)(to - from) * i / (n > 1 ? n - 1 : 1));
        if (!count || tokens[count - 1] != x)
            tokens[count++] = x;
    }
    return count;
}

/* Of budgets in ascending order, take the first that meets the target and the one before it. */
static int narrow(const struct sh_plan_search *p, const int *tokens, const double *value, int n,
                  struct sh_plan_found *out)
{
    out->n_pass++;
    out->n_budget += n;
    for (int i = 0; i < n; i++) {
        if (meets(p, value[i])) {
            out->tokens = tokens[i];
            out->value = value[i];
            return 0;
        }
        out->smaller_tokens = tokens[i];
        out->smaller_value = value[i];
    }
    return -1;
}

int sh_plan_search(const struct sh_plan_search *p, const struct sh_allot *a, const struct sh_replay_request *q,
                   struct sh_store *s, struct sh_plan_found *out, struct sh_err *e)
{
    struct sh_plan_found f = {0};
    int tokens[GRID], longest = sh_allot_longest(a);
    double value[GRID];
    int n = spaced(a->floor < longest ? a->floor : longest, longest, GRID, tokens);
    if (replay(p, a, q, s, tokens, n, value, e))
        return -1;
    if (narrow(p, tokens, value, n, &f))
        return sh_fail(e, "no budget reaches %s of %g: the full cache has %.6g", p->what, p->target, value[n - 1]);
    while (f.smaller_tokens && f.tokens - f.smaller_tokens > 1) {
        n = spaced(f.smaller_tokens + 1, f.tokens - 1, FINER, tokens);
        if (replay(p, a, q, s, tokens, n, value, e))
            return -1;
        narrow(p, tokens, value, n, &f);        /* when none meets it, only the smaller one moves up */
    }
    *out = f;
    return 0;
}
