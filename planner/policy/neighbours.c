/* SPDX-License-Identifier: Apache-2.0 */
/* See neighbours.h. */
#include "planner/policy/neighbours.h"

/* Entries whose slot no longer holds their token go; tokens newer than the last entry are inserted, mostly at the end.
 * When the state has moved to other slots, all entries are zeros: at most the first of them is right. */
static void update(struct sh_neighbours *o, const struct sh_cache *c)
{
    int n = 0, newest = -1;
    for (int i = 0; i < o->n; i++)
        if (o->pos[i] > newest && c->pos[o->slot[i]] == o->pos[i]) {
            newest = o->pos[i];
            o->slot[n] = o->slot[i];
            o->pos[n++] = newest;
        }
    for (int slot = 0; slot < c->n_slot; slot++)
        if (c->pos[slot] > newest) {
            int at = n++;
            for (; at > 0 && o->pos[at - 1] > c->pos[slot]; at--) {
                o->slot[at] = o->slot[at - 1];
                o->pos[at] = o->pos[at - 1];
            }
            o->slot[at] = slot;
            o->pos[at] = c->pos[slot];
        }
    o->n = n;
}

void sh_neighbours_pool(struct sh_neighbours *o, const struct sh_cache *c, const float *score, int end, int kernel,
                        enum sh_pool pool, float *out)
{
    int reach = kernel / 2, n = 0, first = 0;
    update(o, c);
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
