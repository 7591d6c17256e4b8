/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest mean with which a setting meets the target on the searched texts, by the bound that will judge it: a few
 * budgets together, from large to small, then some between the last that meets it and the first that does not. A
 * setting that fails where it needs as much as the best one so far has lost and is read only once. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/app/plan/live_plan.h"
#include "src/base/mem.h"

enum { GRID = 24, BATCH = 4, FINER = 3 };

int sh_live_meets(const struct sh_live_plan *w, const struct sh_mean_bound *b)
{
    return b->high <= w->goal;          /* not if it is NaN */
}

struct sh_candidate *sh_live_candidates(const struct sh_live_plan *w, const struct sh_live_setting *s, const int *mean,
                                        int n, struct sh_err *e)
{
    size_t heads = (size_t)s->allot.n_layer * (size_t)s->allot.n_head;
    struct sh_candidate *c = xcalloc((size_t)n + 1, sizeof *c);
    for (int i = 0; i < n; i++) {
        c[i].mean = mean[i];
        c[i].budget = xcalloc(heads, sizeof *c[i].budget);
        if (sh_allot_solve(&s->allot, mean[i], w->n_token, c[i].budget, e)) {
            sh_candidates_free(c, n);
            return NULL;
        }
    }
    return c;
}

/* From `most` down to the floor, each `ratio` of the one before. */
static int falling(const struct sh_live_setting *s, double most, double ratio, int *mean)
{
    int n = 0;
    for (double x = most; n < GRID; x *= ratio) {
        int b = (int)(x + 0.5) > s->allot.floor ? (int)(x + 0.5) : s->allot.floor;
        if (!n || mean[n - 1] != b)
            mean[n++] = b;
        if (b == s->allot.floor)
            break;
    }
    return n;
}

static void note(struct sh_live_setting *s, const struct sh_candidate *c)
{
    s->seen = xreallocarray(s->seen, (size_t)s->n_seen + 1, sizeof *s->seen);
    s->seen[s->n_seen++] = (struct sh_seen_budget){c->mean, c->goal.mean, c->goal.error * sqrt(c->goal.n)};
}

/* Tries means that fall. Of those that hold in a row from the first on the last is taken, with its bound; *fails: the
 * next one, 0 if all hold. */
static int try(struct sh_live_plan *w, struct sh_live_setting *s, const int *mean, int n, int *fails, struct sh_err *e)
{
    struct sh_candidate *c = sh_live_candidates(w, s, mean, n, e);
    int bad = !c || sh_live_read_candidates(w, &s->policy, c, n, w->order, w->n_search, "searching the budget of", e);
    for (int i = 0; i < n && !bad; i++)
        note(s, &c[i]);
    for (int i = 0; i < n && !bad; i++) {
        if (!sh_live_meets(w, &c[i].goal)) {
            *fails = mean[i];
            if (!s->meets && !i)
                s->goal = c[i].goal;
            break;
        }
        s->meets = 1;
        s->mean = mean[i];
        s->goal = c[i].goal;
    }
    sh_candidates_free(c, c ? n : 0);
    return bad ? -1 : 0;
}

int sh_live_given_mean(const struct sh_live_plan *w, const struct sh_live_setting *s, struct sh_err *e)
{
    int mean = sh_budget_tokens(w->a->budget, w->n_token);
    mean = mean < w->n_token ? mean : w->n_token;
    if (mean < sh_policy_least_budget(&s->policy))
        return sh_misused(e, "--budget: found %d tokens of %d, but %s protects %d (sinks and recent)", mean, w->n_token,
                          s->policy.policy->name, sh_policy_protected(&s->policy, mean));
    return mean;
}

static int look_at(struct sh_live_plan *w, struct sh_live_setting *s, struct sh_err *e)
{
    int fails;
    s->mean = sh_live_given_mean(w, s, e);
    return s->mean < 0 || try(w, s, &s->mean, 1, &fails, e) ? -1 : 0;
}

/* The grid, in batches until one does not hold. Or, where another setting holds and this one must do so with `limit`
 * tokens, these alone. */
static int find_range(struct sh_live_plan *w, struct sh_live_setting *s, int limit, int *fails, struct sh_err *e)
{
    int mean[GRID], is_first = !w->setting[w->best].meets;
    int n = falling(s, is_first ? 0.92 * w->n_token : limit, 0.72, mean), bad = 0;
    s->mean = mean[0];
    if (!is_first)
        return try(w, s, mean, 1, fails, e);
    for (int i = 0; i < n && !*fails && !bad; i += BATCH)
        bad = try(w, s, mean + i, n - i < BATCH ? n - i : BATCH, fails, e);
    return bad;
}

int sh_live_search(struct sh_live_plan *w, struct sh_live_setting *s, int limit, struct sh_err *e)
{
    if (w->a->budget)
        return look_at(w, s, e);
    int mean[GRID], n, fails = 0;
    if (find_range(w, s, limit, &fails, e))
        return -1;
    while (s->meets && !fails && s->mean > s->allot.floor) {
        n = falling(s, 0.82 * s->mean, 0.82, mean);
        if (try(w, s, mean, n < BATCH ? n : BATCH, &fails, e))
            return -1;
    }
    while (s->meets && fails && s->mean - fails > 1 + s->mean / 40) {
        int from = s->mean, to = fails;
        n = 0;
        for (int k = 1; k <= FINER; k++) {
            int b = from - (from - to) * k / (FINER + 1);
            if (b < from && b > to && (!n || mean[n - 1] > b))
                mean[n++] = b;
        }
        if (try(w, s, mean, n, &fails, e))
            return -1;
    }
    return 0;
}
