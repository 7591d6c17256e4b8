/* SPDX-License-Identifier: Apache-2.0 */
/* See simulate_cost.h. */
#include "planner/simulate/simulate_cost.h"

#include <math.h>

#include "planner/simulate/workload.h"

double sh_sim_point_seconds(struct sh_sim_cost *c, const struct sh_sim_point *p)
{
    struct sh_step_work w = {.tokens = p->prefill + p->sequences, .logits = (p->prefill > 0) + p->sequences};
    sh_sim_cost_reach(c, p->prefill > p->context ? p->prefill : p->context);
    if (p->prefill)
        sh_sim_work(c, SH_EVICT_PROMPT, 0, p->prefill, p->prefill, &w);
    if (p->sequences) {
        w.cache_bytes += p->sequences * c->size[p->context].whole_read;
        w.attention_flops += p->sequences * c->size[p->context].whole_flops;
    }
    return sh_sim_seconds(c, &w);
}

/* A place of the search: logarithms of the two efficiencies, overhead as a share of the shortest point. */
struct place { double at[3]; };

struct search {
    struct sh_sim_cost *c;
    const struct sh_sim_point *p;
    int n;
    double shortest, link;
};

static struct sh_sim_efficiency efficiency(const struct search *s, const struct place *x)
{
    double memory = exp(x->at[0]), math = exp(x->at[1]);
    return (struct sh_sim_efficiency){memory, memory, math, math, s->link, x->at[2] * s->shortest};
}

static double loss(const struct search *s, const struct place *x)
{
    double sum = 0;
    struct sh_sim_efficiency f = efficiency(s, x);
    sh_sim_cost_slow(s->c, &f);
    for (int i = 0; i < s->n; i++) {
        double d = log(sh_sim_point_seconds(s->c, &s->p[i]) / s->p[i].seconds);
        sum += d * d;
    }
    return sum;
}

static struct place clamped(struct place x, int k, double by)
{
    static const double low[3] = {-6, -6, 0}, high[3] = {0, 0, 1};
    x.at[k] = fmin(fmax(x.at[k] + by, low[k]), high[k]);
    return x;
}

/* Steps along one coordinate, and along each two at once since overhead and efficiencies trade; half as long when none
 * helps. */
static double descend(const struct search *s, struct place *x)
{
    double best = loss(s, x);
    for (double step = 0.5; step > 1e-7;) {
        struct place from = *x;
        for (int k = 0; k < 27; k++) {
            struct place y = from;
            int move[3] = {k % 3 - 1, k / 3 % 3 - 1, k / 9 - 1};
            for (int d = 0; d < 3; d++)
                y = clamped(y, d, move[d] * step * (d == 2 ? 0.5 : 1));
            double l = loss(s, &y);
            if (l < best) {
                best = l;
                *x = y;
            }
        }
        if (x->at[0] == from.at[0] && x->at[1] == from.at[1] && x->at[2] == from.at[2])
            step /= 2;
    }
    return best;
}

static int check(const struct sh_sim_point *p, int n, struct sh_err *e)
{
    if (n < 3 || n > SH_SIM_POINTS)
        return sh_misused(e, "%d measured steps, expected 3 to %d", n, SH_SIM_POINTS);
    for (int i = 0; i < n; i++)
        if (!(p[i].seconds > 0) || !isfinite(p[i].seconds) || (!p[i].prefill && !p[i].sequences) ||
            p[i].prefill > SH_REQUEST_TOKENS || p[i].context > SH_REQUEST_TOKENS || (p[i].sequences && !p[i].context))
            return sh_misused(e, "measured step %d: expected seconds above 0, and tokens of a prompt or sequences "
                              "with a context", i + 1);
    return 0;
}

int sh_sim_fit(struct sh_sim_cost *c, const struct sh_sim_point *p, int n, struct sh_sim_fit *out, struct sh_err *e)
{
    struct search s = {c, p, n, (double)INFINITY, c->efficiency.link};
    struct place best = {{0, 0, 0}};
    if (check(p, n, e))
        return -1;
    for (int i = 0; i < n; i++)
        s.shortest = fmin(s.shortest, p[i].seconds);
    double least = loss(&s, &best);
    *out = (struct sh_sim_fit){0};
    for (int i = 0; i < n; i++)
        out->is_bound |= sh_sim_point_seconds(c, &p[i]) > p[i].seconds * (1 + 1e-9);
    for (int k = 0; k < 8; k++) {
        struct place x = {{k & 1 ? -0.2 : -1, k & 2 ? -0.2 : -1, k & 4 ? 0.05 : 0.5}};
        double l = descend(&s, &x);
        if (l < least) {
            least = l;
            best = x;
        }
    }
    out->efficiency = efficiency(&s, &best);
    sh_sim_cost_slow(c, &out->efficiency);
    for (int i = 0; i < n; i++) {
        double d = sh_sim_point_seconds(c, &p[i]) / p[i].seconds - 1;
        out->rms += d * d / n;
        out->worst = fmax(out->worst, fabs(d));
    }
    out->rms = sqrt(out->rms);
    return 0;
}
