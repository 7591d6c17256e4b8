/* SPDX-License-Identifier: Apache-2.0 */
/* See simulate.h. */
#include "planner/simulate/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

struct search {
    struct sh_sim_ask ask;
    struct sh_sim_cost *c;
    sh_workload_fn *again;
    void *from;
    double share;
    struct sh_sim_result *try, *at;
    struct sh_rate *out;
};

/* 1: the limits hold at that speed, and *at is the run; 0: they do not; -1. */
static int holds(struct search *s, double speed, struct sh_err *e)
{
    struct sh_workload *w = s->again(s->from, e);
    s->ask.speed = speed;
    if (!w || sh_simulate(&s->ask, s->c, w, s->try, e))
        return -1;
    s->out->runs++;
    if ((double)s->try->good < s->share * (double)s->try->requests)
        return 0;
    memcpy(s->at, s->try, sizeof *s->at);
    s->out->speed = speed;
    return 1;
}

/* Doubles or halves until one end holds and the other does not, then bisects on the logarithm. */
static int search(struct search *s, struct sh_err *e)
{
    double low = 1, high = 1;
    int is_good = holds(s, 1, e);
    enum { DOUBLINGS = 20 };
    for (int i = 0; i < DOUBLINGS && is_good == 1; i++) {
        low = high;
        high *= 2;
        is_good = holds(s, high, e);
    }
    if (is_good == 1) {
        s->out->is_open = 1;
        return 0;
    }
    for (int i = 0; i < DOUBLINGS && is_good == 0 && low == high; i++) {
        low /= 2;
        is_good = holds(s, low, e);
        high = is_good ? high : low;
    }
    if (is_good < 0 || low == high)
        return is_good < 0 ? -1 : 0;
    while (high / low > 1.01) {
        double middle = sqrt(low * high);
        is_good = holds(s, middle, e);
        if (is_good < 0)
            return -1;
        *(is_good ? &low : &high) = middle;
    }
    return 0;
}

int sh_sim_rate(const struct sh_sim_ask *a, struct sh_sim_cost *c, sh_workload_fn *again, void *from, double share,
                struct sh_sim_result *at, struct sh_rate *out, struct sh_err *e)
{
    struct search s = {*a, c, again, from, share, xmalloc(sizeof *at), at, out};
    *out = (struct sh_rate){0};
    s.ask.done = NULL;
    int bad = search(&s, e);
    free(s.try);
    if (!bad && out->speed > 0 && at->requests > 1)
        out->requests_per_s = (double)(at->requests - 1) / (at->last_arrival_s - at->start_s);
    return bad;
}
