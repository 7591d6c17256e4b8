/* SPDX-License-Identifier: Apache-2.0 */
/* See prefix_cache.h. */
#include "planner/simulate/prefix_cache.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

#define NONE UINT32_MAX
enum { MOST = 1 << 30 };                /* blocks of a tier */

struct sh_prefix_node {
    uint64_t key;
    uint32_t holders;
    uint32_t before, after;             /* in its tier, while nobody holds it; after: also of unused nodes */
    uint32_t next;                      /* of the same place in the table                         */
    enum sh_tier tier;
};

void sh_prefix_open(struct sh_prefix_cache *c, const struct sh_prefix_ask *a, double block_bytes, double pool)
{
    *c = (struct sh_prefix_cache){.block = a->block, .block_bytes = block_bytes, .unused = NONE};
    for (int t = 0; t < SH_N_TIER; t++) {
        double bytes = t == SH_TIER_GPU ? fmin(a->bytes[t], a->share * pool) : a->bytes[t];
        c->most[t] = (uint32_t)fmin(bytes / block_bytes, MOST);
        c->load_s[t] = t == SH_TIER_GPU || !c->most[t] ? 0 : block_bytes / a->bandwidth[t];
        c->tier[t] = (struct sh_prefix_list){NONE, NONE, 0};
    }
    c->count.room = c->most[SH_TIER_GPU];
}

void sh_prefix_add(struct sh_prefix_count *to, const struct sh_prefix_count *from)
{
    for (int t = 0; t < SH_N_TIER; t++)
        to->hit[t] += from->hit[t];
    to->asked += from->asked;
    to->room += from->room;
}

void sh_prefix_clear(struct sh_prefix_cache *c)
{
    free(c->node);
    free(c->table);
    *c = (struct sh_prefix_cache){0};
}

void sh_prefix_name(struct sh_prefix_use *u, const uint64_t *key, uint32_t n)
{
    if (n > u->room) {
        u->room = n > 2 * u->room ? n : 2 * u->room;
        u->key = xreallocarray(u->key, u->room, sizeof *u->key);
        u->node = xreallocarray(u->node, u->room, sizeof *u->node);
    }
    if (n)
        memcpy(u->key, key, n * sizeof *key);
    u->n = n;
    u->held = 0;
}

void sh_prefix_drop(struct sh_prefix_use *u)
{
    free(u->key);
    free(u->node);
    *u = (struct sh_prefix_use){0};
}

/* ---- nodes by key ---- */

static uint32_t *place(const struct sh_prefix_cache *c, uint64_t key)
{
    return &c->table[(key * 0x9e3779b97f4a7c15u) >> 32 & (c->n_table - 1)];
}

static uint32_t find(const struct sh_prefix_cache *c, uint64_t key)
{
    if (!c->n_table)
        return NONE;
    uint32_t i = *place(c, key);
    while (i != NONE && c->node[i].key != key)
        i = c->node[i].next;
    return i;
}

static void grow(struct sh_prefix_cache *c)
{
    c->room = c->n_table = c->room ? 2 * c->room : 1024;
    c->node = xreallocarray(c->node, c->room, sizeof *c->node);
    c->table = xreallocarray(c->table, c->n_table, sizeof *c->table);
    memset(c->table, 0xff, c->n_table * sizeof *c->table);
    for (uint32_t i = 0; i < c->n_node; i++) {
        uint32_t *at = place(c, c->node[i].key);
        c->node[i].next = *at;
        *at = i;
    }
}

/* A new node, held once. The table grows only when no node is unused, so all of its nodes have a key. */
static uint32_t insert(struct sh_prefix_cache *c, uint64_t key)
{
    uint32_t i = c->unused;
    if (i == NONE) {
        if (c->n_node == c->room)
            grow(c);
        i = c->n_node++;
    } else {
        c->unused = c->node[i].after;
    }
    uint32_t *at = place(c, key);
    c->node[i] = (struct sh_prefix_node){.key = key, .holders = 1, .next = *at, .tier = SH_TIER_GPU};
    *at = i;
    c->n_held++;
    return i;
}

static void forget(struct sh_prefix_cache *c, uint32_t i)
{
    uint32_t *at = place(c, c->node[i].key);
    while (*at != i)
        at = &c->node[*at].next;
    *at = c->node[i].next;
    c->node[i].after = c->unused;
    c->unused = i;
}

/* ---- those that nobody holds ---- */

static void push(struct sh_prefix_cache *c, enum sh_tier t, uint32_t i)
{
    struct sh_prefix_list *l = &c->tier[t];
    c->node[i].tier = t;
    c->node[i].before = NONE;
    c->node[i].after = l->first;
    *(l->first == NONE ? &l->last : &c->node[l->first].before) = i;
    l->first = i;
    l->n++;
}

static void pull(struct sh_prefix_cache *c, uint32_t i)
{
    struct sh_prefix_node *x = &c->node[i];
    struct sh_prefix_list *l = &c->tier[x->tier];
    *(x->before == NONE ? &l->first : &c->node[x->before].after) = x->after;
    *(x->after == NONE ? &l->last : &c->node[x->after].before) = x->before;
    l->n--;
}

static void hold(struct sh_prefix_cache *c, uint32_t i)
{
    if (!c->node[i].holders++) {
        pull(c, i);
        c->node[i].tier = SH_TIER_GPU;
        c->n_held++;
    }
}

void sh_prefix_fit(struct sh_prefix_cache *c, double bytes)
{
    double room = floor(bytes / c->block_bytes) - c->n_held;
    for (int t = 0; t < SH_N_TIER; t++) {
        double most = t == SH_TIER_GPU ? fmin(room, c->most[t]) : c->most[t];
        int below = t + 1;
        while (below < SH_N_TIER && !c->most[below])
            below++;
        while (c->tier[t].n && c->tier[t].n > most) {
            uint32_t i = c->tier[t].last;
            pull(c, i);
            if (below < SH_N_TIER)
                push(c, (enum sh_tier)below, i);
            else
                forget(c, i);
        }
    }
}

/* ---- requests ---- */

struct sh_prefix_match sh_prefix_match(const struct sh_prefix_cache *c, const struct sh_prefix_use *u, uint32_t prompt)
{
    struct sh_prefix_match m = {0};
    uint32_t most = (prompt - 1) / c->block;
    for (; m.n < u->n && m.n < most; m.n++) {
        uint32_t i = find(c, u->key[m.n]);
        if (i == NONE)
            break;
        m.fresh += !c->node[i].holders;
        m.at[c->node[i].tier]++;
    }
    return m;
}

double sh_prefix_take(struct sh_prefix_cache *c, struct sh_prefix_use *u, uint32_t prompt,
                      const struct sh_prefix_match *m)
{
    double seconds = 0;
    for (u->held = 0; u->held < m->n; u->held++) {
        u->node[u->held] = find(c, u->key[u->held]);
        hold(c, u->node[u->held]);
    }
    for (int t = 0; t < SH_N_TIER; t++) {
        c->count.hit[t] += m->at[t];
        seconds += m->at[t] * c->load_s[t];
    }
    c->count.asked += prompt / c->block;
    return seconds;
}

void sh_prefix_reach(struct sh_prefix_cache *c, struct sh_prefix_use *u, uint32_t tokens)
{
    for (; u->held < u->n && u->held < tokens / c->block; u->held++) {
        uint32_t i = find(c, u->key[u->held]);
        if (i == NONE)
            i = insert(c, u->key[u->held]);
        else
            hold(c, i);
        u->node[u->held] = i;
    }
}

void sh_prefix_release(struct sh_prefix_cache *c, struct sh_prefix_use *u)
{
    while (u->held) {
        uint32_t i = u->node[--u->held];
        if (!--c->node[i].holders) {
            push(c, SH_TIER_GPU, i);
            c->n_held--;
        }
    }
}
