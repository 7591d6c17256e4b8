/* SPDX-License-Identifier: Apache-2.0 */
/* See neighbours.h. A policy is not told who leaves: an entry whose slot no longer holds its position
 * is dropped when the list is next used. */
#include "planner/policy/neighbours.h"

static void forget(struct sh_neighbours *o, const struct sh_cache *c)
{
    int n = 0;
    for (int i = 0; i < o->n; i++)
        if (c->pos[o->slot[i]] == o->pos[i]) {
            o->slot[n] = o->slot[i];
            o->pos[n++] = o->pos[i];
        }
    o->n = n;
}

void sh_neighbours_admit(struct sh_neighbours *o, const struct sh_cache *c, int slot)
{
    forget(o, c);
    o->slot[o->n] = slot;
    o->pos[o->n++] = c->pos[slot];
}

void sh_neighbours_pool(struct sh_neighbours *o, const struct sh_cache *c, const float *score, int end, int kernel,
                        enum sh_pool pool, float *out)
{
    int reach = kernel / 2, n = 0, first = 0;
    forget(o, c);
    while (n < o->n && o->pos[n] < end)
        n++;
    for (int i = 0; i < n; i++) {
        while (o->pos[first] < o->pos[i] - reach)
            first++;
        float sum = 0, most = score[o->slot[i]];
        for (int k = first; k < n && o->pos[k] <= o->pos[i] + reach; k++) {
            float x = score[o->slot[k]];
            sum += x;
            most = x > most ? x : most;
        }
        out[o->slot[i]] = pool == SH_POOL_MAX ? most : sum / (float)kernel;
    }
}

void sh_neighbours_move(struct sh_neighbours *o, const struct sh_neighbours *from, const struct sh_move *m)
{
    o->n = 0;
    for (int i = 0; i < from->n; i++)
        if (from->slot[i] < m->n_from && m->to[from->slot[i]] >= 0) {
            o->slot[o->n] = m->to[from->slot[i]];
            o->pos[o->n++] = from->pos[i];
        }
}
