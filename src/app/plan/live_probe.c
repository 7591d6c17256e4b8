/* SPDX-License-Identifier: Apache-2.0 */
/* What evictions cost in each layer: the live model reads some searched texts with a small budget in one layer and the
 * full cache in all others.
 *
 * Only budgets that a plan could give to a layer are measured, in steps. Losses of layers add up, so those known so far
 * predict the mean budgets at which the model would lose about as much as the target allows, and what each layer would
 * get there. The next step measures each layer about these budgets, where it was not measured. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/app/plan/layer_losses.h"
#include "src/app/plan/live_plan.h"
#include "src/base/mem.h"

enum { PROBED = 12,                     /* texts that are read, at most                           */
       MOST_POINTS = 9,
       HOPELESS = 4 };                  /* times the target                                       */

/* Times the target: a layer is measured from the budget that it has where the model loses that much to the one that it
 * has where the model loses this little. The search is expected to end between them. */
static const double most_loss = 2, least_loss = 0.25;

struct sh_live_probe {
    int point[MOST_POINTS], n;          /* budgets of a head, ascending                           */
    int n_text;
    double *loss, *change;              /* [n_layer][n], nats per token; NAN: not measured        */
    double tokens;                      /* that the losses are means over                         */
};

/* From the least budget to 0.8 of the text, more densely where it is small; the second one is a quarter larger than the
 * first at least. */
static int points(const struct sh_live_plan *w, const struct sh_live_setting *s, int *to)
{
    int n = 0, found[MOST_POINTS];
    for (double share = 0.8; n < MOST_POINTS - 1; share *= 0.6) {
        int b = (int)(share * w->n_token + 0.5);
        b = b < w->n_token ? b : w->n_token - 1;
        if (4 * b <= 5 * s->allot.floor)
            break;
        found[n++] = b;
    }
    to[0] = s->allot.floor;
    for (int i = 0; i < n; i++)
        to[i + 1] = found[n - 1 - i];
    return n + 1;
}

static int attends(const struct sh_live_plan *w, int layer)
{
    return sh_arch_attends(sh_model_arch(w->live.model), layer);
}

static struct sh_live_probe *open_probe(const struct sh_live_plan *w, const struct sh_live_setting *s)
{
    struct sh_live_probe *p = xcalloc(1, sizeof *p);
    p->n = points(w, s, p->point);
    p->n_text = w->n_search < PROBED ? w->n_search : PROBED;
    size_t all = (size_t)s->allot.n_layer * (size_t)p->n;
    p->loss = xcalloc(2 * all, sizeof *p->loss);
    p->change = p->loss + all;
    for (size_t i = 0; i < all; i++)
        if (attends(w, (int)(i / (size_t)p->n)))
            p->loss[i] = p->change[i] = NAN;
    return p;
}

void sh_live_probe_free(struct sh_live_probe *p)
{
    if (p)
        free(p->loss);
    free(p);
}

/* ---- measuring ---- */

/* One layer at its budget, the others whole; place: layer * n + point. */
static struct sh_candidate *candidates(const struct sh_live_plan *w, const struct sh_live_setting *s, const int *place,
                                       int n)
{
    const struct sh_allot *a = &s->allot;
    int heads = a->n_layer * a->n_head;
    struct sh_candidate *c = xcalloc((size_t)n, sizeof *c);
    for (int i = 0; i < n; i++) {
        int layer = place[i] / s->probe->n;
        c[i].mean = s->probe->point[place[i] % s->probe->n];
        c[i].budget = xcalloc((size_t)heads, sizeof *c[i].budget);
        for (int h = 0; h < heads; h++)
            c[i].budget[h] = w->n_token;
        sh_allot_layer(a, layer, c[i].mean, w->n_token, c[i].budget + layer * a->n_head);
    }
    return c;
}

static int measure(struct sh_live_plan *w, struct sh_live_setting *s, const int *place, int n, struct sh_err *e)
{
    struct sh_live_probe *p = s->probe;
    struct sh_candidate *c = candidates(w, s, place, n);
    int bad = sh_live_read_candidates(w, &s->policy, c, n, w->order, p->n_text, "probing layers with", e);
    for (int i = 0; i < n && !bad; i++) {
        double mean = sh_live_bound(w, SH_TARGET_KL, c[i].at, p->n_text).mean;
        p->loss[place[i]] = mean > 0 ? mean : 0;
        p->change[place[i]] = sh_live_bound(w, SH_TARGET_PPL, c[i].at, p->n_text).mean;
    }
    p->tokens = 0;
    for (int i = 0; i < p->n_text && !bad; i++)
        p->tokens += c->at[i].tokens;
    sh_candidates_free(c, n);
    return bad;
}

/* The losses as far as they are known, for the allocator. */
static void give_losses(const struct sh_live_plan *w, struct sh_live_setting *s)
{
    const struct sh_live_probe *p = s->probe;
    size_t all = (size_t)s->allot.n_layer * (size_t)p->n;
    double *loss = xmalloc(all * sizeof *loss);
    memcpy(loss, p->loss, all * sizeof *loss);
    if (w->a->target == SH_TARGET_PPL)
        sh_layer_losses_aim(loss, p->change, s->allot.n_layer, p->n, p->tokens);
    sh_layer_losses_fill(loss, p->point, s->allot.n_layer, p->n, w->n_token);
    sh_allot_losses(&s->allot, p->point, loss, p->n);
    free(loss);
}

/* ---- what a plan could give ---- */

/* The mean budget of each layer's heads, if the mean over all heads is `mean`: to [n_layer]. */
static int layer_budgets(const struct sh_live_plan *w, const struct sh_live_setting *s, int mean, double *to,
                         struct sh_err *e)
{
    const struct sh_allot *a = &s->allot;
    int *budget = xcalloc((size_t)a->n_layer * (size_t)a->n_head, sizeof *budget);
    int bad = sh_allot_solve(a, mean, w->n_token, budget, e);
    for (int l = 0; l < a->n_layer && !bad; l++) {
        double sum = 0;
        for (int h = 0; h < a->heads[l]; h++)
            sum += budget[l * a->n_head + h];
        to[l] = a->heads[l] ? sum / a->heads[l] : w->n_token;
    }
    free(budget);
    return bad;
}

/* The least mean with which the layers together lose at most this much, by the losses known so far; its budgets. */
static int budgets_at(const struct sh_live_plan *w, const struct sh_live_setting *s, double loss, double *to,
                      struct sh_err *e)
{
    const struct sh_allot *a = &s->allot;
    int low = a->floor, high = w->n_token;
    while (low < high) {
        int mean = low + (high - low) / 2;
        double sum = 0;
        if (layer_budgets(w, s, mean, to, e))
            return -1;
        for (int l = 0; l < a->n_layer; l++)
            sum += sh_loss_at(a->loss + (size_t)l * (size_t)a->n_loss, a->loss_point, a->n_loss, w->n_token, to[l]);
        if (sum <= loss)
            high = mean;
        else
            low = mean + 1;
    }
    return layer_budgets(w, s, low, to, e);
}

/* ---- which budgets to measure ---- */

/* The next step: places about these budgets of each layer. Returns how many. */
static int next_step(const struct sh_live_plan *w, const struct sh_live_setting *s, const double *low,
                     const double *high, int *to)
{
    const struct sh_live_probe *p = s->probe;
    int n = 0;
    for (int l = 0; l < s->allot.n_layer; l++) {
        if (!attends(w, l))
            continue;
        int wanted[MOST_POINTS];
        const double *loss = p->loss + (size_t)l * (size_t)p->n;
        int some = sh_layer_losses_wanted(loss, p->point, p->n, fmin(low[l], high[l]), fmax(low[l], high[l]), wanted);
        for (int i = 0; i < some; i++)
            to[n++] = l * p->n + wanted[i];
    }
    return n;
}

/* Budgets cannot be predicted from losses if the target is a share of answers. */
static int measures_all(const struct sh_live_plan *w)
{
    return !w->a->budget && w->a->target == SH_TARGET_ANSWERS;
}

/* Two points of every layer, one if there are few; or all. */
static int first_step(const struct sh_live_plan *w, const struct sh_live_setting *s, int *to)
{
    const struct sh_live_probe *p = s->probe;
    int n = 0;
    for (int l = 0; l < s->allot.n_layer; l++)
        for (int k = 0; k < p->n; k++)
            if (attends(w, l) && (measures_all(w) || k == p->n / 2 || k == p->n / 2 + 2))
                to[n++] = l * p->n + k;
    return n;
}

/* What each layer gets with the given mean, or where the model loses most_loss and least_loss of the target. */
static int ends(const struct sh_live_plan *w, const struct sh_live_setting *s, double *low, double *high,
                struct sh_err *e)
{
    if (!w->a->budget)
        return budgets_at(w, s, most_loss * w->goal, low, e) || budgets_at(w, s, least_loss * w->goal, high, e);
    int mean = sh_live_given_mean(w, s, e);
    return mean < 0 || layer_budgets(w, s, mean, low, e) || layer_budgets(w, s, mean, high, e);
}

static int probe_all(struct sh_live_plan *w, struct sh_live_setting *s, struct sh_err *e)
{
    size_t n_layer = (size_t)s->allot.n_layer;
    double *low = xcalloc(2 * n_layer, sizeof *low), *high = low + n_layer;
    int *place = xcalloc(n_layer * (size_t)s->probe->n, sizeof *place), n = first_step(w, s, place), bad = 0;
    while (n && !bad) {
        bad = measure(w, s, place, n, e);
        if (bad)
            break;
        give_losses(w, s);
        if (measures_all(w))
            break;
        bad = ends(w, s, low, high, e);
        n = bad ? 0 : next_step(w, s, low, high, place);
    }
    free(place);
    free(low);
    return bad;
}

int sh_live_probe_more(struct sh_live_plan *w, struct sh_live_setting *s, int *changes, struct sh_err *e)
{
    *changes = 0;
    if (!s->probe)
        return 0;
    size_t n_layer = (size_t)s->allot.n_layer;
    double *was = xcalloc(2 * n_layer, sizeof *was), *is = was + n_layer;
    int *place = xcalloc(n_layer * (size_t)s->probe->n, sizeof *place), bad = layer_budgets(w, s, s->mean, was, e);
    int n = bad ? 0 : next_step(w, s, was, was, place);
    bad = bad || (n && measure(w, s, place, n, e));
    if (n && !bad) {
        give_losses(w, s);
        bad = layer_budgets(w, s, s->mean, is, e);
        *changes = memcmp(was, is, n_layer * sizeof *was) != 0;
    }
    free(place);
    free(was);
    return bad;
}

/* ---- whether to probe ---- */

/* What the policy loses with this mean and the budgets of `greedy`; that setting may have been tried. NAN: see e. */
static double greedy_loss(struct sh_live_plan *w, struct sh_live_setting *s, int mean, struct sh_err *e)
{
    struct sh_allocator_spec greedy;
    (void)sh_allocator_parse("greedy", &greedy, e);
    for (const struct sh_live_setting *t = w->setting; t < s; t++)
        if (t->policy.policy == s->policy.policy && t->allocator.allocator == greedy.allocator && t->is_tried &&
            !memcmp(t->policy.knob, s->policy.knob, sizeof s->policy.knob) && t->mean == mean)
            return t->goal.mean;
    s->allot.spec = greedy;
    struct sh_candidate *c = sh_live_candidates(w, s, &mean, 1, e);
    s->allot.spec = s->allocator;
    int bad = !c || sh_live_read_candidates(w, &s->policy, c, 1, w->order, w->n_search, "looking at", e);
    double loss = bad ? (double)NAN : c->goal.mean;
    sh_candidates_free(c, c ? 1 : 0);
    return loss;
}

/* 1: a policy that loses several times the target with the budgets of `greedy` where it needs as much as the best
 * setting so far. Division by losses seldom makes up for so much (doc/planning.md). */
static int is_hopeless(struct sh_live_plan *w, struct sh_live_setting *s, struct sh_err *e)
{
    const struct sh_live_setting *best = &w->setting[w->best];
    if (w->a->budget || w->a->target == SH_TARGET_ANSWERS || !best->meets)
        return 0;
    int mean = sh_live_limit(w, s);
    double loss = greedy_loss(w, s, mean, e);
    if (isnan(loss))
        return -1;
    double times = w->a->target == SH_TARGET_PPL ? expm1(loss) / w->a->value : loss / w->goal;
    if (times > HOPELESS)
        s->left_out = xasprintf("with %d tokens a head and the budgets of greedy it loses %.3g times the target",
                                mean, times);
    return times > HOPELESS;
}

int sh_live_probe(struct sh_live_plan *w, struct sh_live_setting *s, struct sh_err *e)
{
    int left = is_hopeless(w, s, e);
    if (left)
        return left < 0 ? -1 : 0;
    s->probe = open_probe(w, s);
    return probe_all(w, s, e) ? -1 : 0;
}
