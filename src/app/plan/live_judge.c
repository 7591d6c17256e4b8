/* SPDX-License-Identifier: Apache-2.0 */
/* The walk on the judged texts, with the setting that the search chose: down from large budgets, as long as the bound
 * holds. Budgets lie close together near the mean that the search found, and far apart above, where they hold nearly
 * always; if one up there fails, those between it and the one before come next. */
#include <stdlib.h>
#include <string.h>

#include "src/app/plan/live_plan.h"
#include "src/base/mem.h"

enum { MOST = 512, BATCH = 5, WIDE = 8 };
static const double step = 1.03, stride = 1.2;

static void add(int *mean, int *n, double x, int floor_, int below)
{
    int b = (int)(x + 0.5) > floor_ ? (int)(x + 0.5) : floor_;
    int last = *n ? mean[*n - 1] : below;
    if (b < last && *n < MOST)
        mean[(*n)++] = b;
}

/* Reads these means after those that were judged. 1: all hold; 0: one does not, and those after it are left out. */
static int judge(struct sh_live_plan *w, const int *mean, int n, struct sh_err *e)
{
    const struct sh_live_setting *s = &w->setting[w->best];
    struct sh_candidate *c = sh_live_candidates(w, s, mean, n, e);
    if (!c)
        return -1;
    if (sh_live_read_candidates(w, &s->policy, c, n, w->order + w->n_search, w->n_judge, "judging", e)) {
        sh_candidates_free(c, n);
        return -1;
    }
    int held = 0;
    while (held < n && sh_live_meets(w, &c[held].goal))
        held++;
    int kept = held < n ? held + 1 : n;                 /* the one that failed is shown, too */
    w->judged = xreallocarray(w->judged, (size_t)(w->n_judged + kept), sizeof *w->judged);
    memcpy(w->judged + w->n_judged, c, (size_t)kept * sizeof *c);
    w->n_judged += kept;
    w->chosen = held ? w->n_judged - kept + held - 1 : w->chosen;
    memset(c, 0, (size_t)kept * sizeof *c);
    sh_candidates_free(c, n);
    return held == n;
}

/* The first means: far apart from the whole text on, then close together down to what the search found. */
static int first_means(const struct sh_live_plan *w, int *mean)
{
    const struct sh_live_setting *s = &w->setting[w->best];
    int n = 0;
    double near = s->mean;
    for (int k = 0; k < WIDE; k++)
        near *= step;
    for (double x = w->n_token / step; x > near; x /= stride)
        add(mean, &n, x, s->allot.floor, w->n_token);
    for (int k = WIDE; k >= 0; k--, near /= step)
        if (near < w->n_token / step)
            add(mean, &n, near, s->allot.floor, w->n_token);
    if (!n)
        add(mean, &n, w->n_token / step, s->allot.floor, w->n_token);
    return n;
}

/* Between the last that held and the one that failed. */
static int means_between(const struct sh_live_plan *w, int *mean)
{
    int n = 0, from = w->chosen < 0 ? w->n_token : w->judged[w->chosen].mean, to = w->judged[w->n_judged - 1].mean;
    for (double x = from / step; x > to; x /= step)
        add(mean, &n, x, to + 1, from);
    return n;
}

int sh_live_judge(struct sh_live_plan *w, struct sh_err *e)
{
    int mean[MOST], n = first_means(w, mean), floor_ = w->setting[w->best].allot.floor;
    w->chosen = -1;
    if (!n)
        return 0;
    int holds = judge(w, mean, n, e);
    if (!holds && (n = means_between(w, mean)) > 0)
        return judge(w, mean, n, e) < 0 ? -1 : 0;
    while (holds > 0 && w->judged[w->n_judged - 1].mean > floor_) {
        int last = w->judged[w->n_judged - 1].mean;
        n = 0;
        for (double x = last / step; n < BATCH && (!n || mean[n - 1] > floor_); x /= step)
            add(mean, &n, x < last - 0.5 ? x : last - 1, floor_, last);
        holds = judge(w, mean, n, e);
    }
    return holds < 0 ? -1 : 0;
}
