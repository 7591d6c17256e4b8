/* SPDX-License-Identifier: Apache-2.0 */
/* The walk on the judged texts, with the setting that the search chose: down from large budgets, as long as the bound
 * holds. Budgets lie close together near the mean that the search found, and far apart above, where they hold nearly
 * always. Then come those between the last that holds and the one that fails, again from large to small. */
#include <stdlib.h>
#include <string.h>

#include "src/app/plan/live_plan.h"
#include "src/base/mem.h"

enum { MOST = 512, BATCH = 5, WIDE = 8 };
static const double step = 1.03, stride = 1.2, finest = 1.005;

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

/* The first means: far apart from the whole text on, then close together down to what the search found, if it did. */
static int first_means(const struct sh_live_plan *w, int *mean)
{
    const struct sh_live_setting *s = &w->setting[w->best];
    int n = 0, floor_ = s->allot.floor;
    double top = w->n_token / step, near = s->mean;
    for (int k = 0; k < WIDE; k++)
        near *= step;
    for (double x = top; x > (s->meets ? near : floor_ / stride); x /= stride)
        add(mean, &n, x, floor_, w->n_token);
    for (int k = WIDE; k >= 0 && s->meets; k--, near /= step)
        if (near < top)
            add(mean, &n, near, floor_, w->n_token);
    if (!n)
        add(mean, &n, top, floor_, w->n_token);
    return n;
}

/* Between one that holds and one that fails. */
static int means_between(int holds, int fails, double ratio, int *mean)
{
    int n = 0;
    for (double x = holds / ratio; x > fails && n < MOST; x /= ratio)
        add(mean, &n, x, fails + 1, holds);
    return n;
}

/* Down from one that holds. */
static int means_below(int holds, int floor_, int *mean)
{
    int n = 0;
    for (double x = holds / step; n < BATCH && (!n || mean[n - 1] > floor_); x /= step)
        add(mean, &n, x < holds - 0.5 ? x : holds - 1, floor_, holds);
    return n;
}

int sh_live_judge(struct sh_live_plan *w, struct sh_err *e)
{
    int mean[MOST], n = first_means(w, mean), floor_ = w->setting[w->best].allot.floor;
    w->chosen = -1;
    int holds = judge(w, mean, n, e);
    while (holds > 0 && w->judged[w->chosen].mean > floor_) {
        n = means_below(w->judged[w->chosen].mean, floor_, mean);
        holds = judge(w, mean, n, e);
    }
    int fails = holds ? 0 : w->judged[w->n_judged - 1].mean;
    for (double ratio = step; fails && holds >= 0 && ratio > finest; ratio = 1 + (ratio - 1) / 3) {
        n = means_between(w->chosen < 0 ? w->n_token : w->judged[w->chosen].mean, fails, ratio, mean);
        holds = n ? judge(w, mean, n, e) : 1;
        fails = holds ? fails : w->judged[w->n_judged - 1].mean;
    }
    return holds < 0 ? -1 : 0;
}
