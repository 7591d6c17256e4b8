/* SPDX-License-Identifier: Apache-2.0 */
/* See host_cache.h. The head's tokens move into a wider set of slots (`wide`: those that are cached by age, then
 * the block's), are decided upon there, and those that stay move back: cached ones into the slots that they
 * had, new ones into free ones. */
#include "src/engine/host_cache.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/engine/rows.h"

struct work {
    const struct sh_block *b;
    int d, group, n_old, m;             /* m = n_old + the block's                                */
    int *old;                           /* [n_old]: slots of the cached tokens, by age            */
    int *place;                         /* [m]: 0, 1, …                                           */
    struct sh_kv_rows k, v;             /* [m, d] floats to attend over                           */
    struct sh_kv_rows seen_k, seen_v;   /* [m, d] as the policy sees them, where these differ     */
    struct sh_kept *wide;
    float *probs, *mean, *chunk, *q;    /* [group, m], [m], [SH_ROWS_AT_ONCE, d], [group, d]      */
};

static size_t wide_at(const struct work *w, int row)
{
    return (size_t)row * (size_t)(w->b->what->n_head * w->d) + (size_t)(w->b->head * w->group * w->d);
}

static size_t narrow_at(const struct work *w, int row)
{
    return (size_t)row * (size_t)(w->b->what->n_kv_head * w->d) + (size_t)(w->b->head * w->d);
}

/* Slots of the cached tokens, the oldest first. */
static void list_old(struct work *w)
{
    const struct sh_cache *c = sh_kept_cache(w->b->h->kept);
    int *at = xmalloc(((size_t)w->b->first + 1) * sizeof *at);
    for (int t = 0; t < w->b->first; t++)
        at[t] = -1;
    for (int i = 0; i < c->n_slot; i++)
        if (c->pos[i] >= 0)
            at[c->pos[i]] = i;
    for (int t = 0; t < w->b->first; t++)
        if (at[t] >= 0)
            w->old[w->n_old++] = at[t];
    free(at);
}

/* to: the cached rows of `from`, then the block's own. */
static int copy_rows(const struct work *w, struct sh_kv_rows *to, const struct sh_kv_rows *from, const float *own,
                     struct sh_err *e)
{
    static const struct sh_kv_format plain = {.bits = 32};
    size_t width = (size_t)w->d;
    int n_slot = sh_kept_cache(w->b->h->kept)->n_slot;
    if (sh_kv_rows_new(to, &plain, 0, w->m, w->d, e))
        return -1;
    float *all = xmalloc(((size_t)n_slot + 1) * width * sizeof *all);
    for (int i = 0, n; i < n_slot; i += n) {
        n = n_slot - i < SH_ROWS_AT_ONCE ? n_slot - i : SH_ROWS_AT_ONCE;
        memcpy(all + (size_t)i * width, sh_kv_rows_get(from, i, n, w->chunk), (size_t)n * width * sizeof *all);
    }
    for (int i = 0; i < w->n_old; i++)
        sh_kv_rows_put(to, i, all + (size_t)w->old[i] * width);
    for (int i = w->n_old; i < w->m; i++)
        sh_kv_rows_put(to, i, own + narrow_at(w, i - w->n_old));
    free(all);
    return 0;
}

static int open_rows(struct work *w, struct sh_err *e)
{
    const struct sh_block *b = w->b;
    const struct sh_kv_head *h = b->h;
    int policy_k = h->seen_k.width > 0;
    if (copy_rows(w, &w->k, &h->k, b->k, e) || copy_rows(w, &w->v, sh_kv_head_values(h), b->v, e))
        return -1;
    if ((policy_k || (b->turn && (b->needs & SH_NEEDS_KEYS))) &&
        copy_rows(w, &w->seen_k, policy_k ? &h->seen_k : &h->k, b->k, e))
        return -1;
    if (h->seen_v.width && copy_rows(w, &w->seen_v, &h->seen_v, b->v, e))
        return -1;
    if (b->turn)
        sh_turn_rows(b->turn, w->k.at, w->place, w->m, w->d, w->k.at);
    return 0;
}

/* One token of the block, which has just been admitted. */
static void attend(const struct work *w, int row)
{
    const struct sh_block *b = w->b;
    const struct sh_attend *what = b->what;
    const struct sh_cache *c = sh_kept_cache(w->wide);
    const float *own = b->q + wide_at(w, row), *q = own;
    int t = b->first + row, at = w->n_old + row;
    if (b->turn) {
        int all[1] = {at};
        for (int g = 0; g < w->group; g++)
            sh_turn_rows(b->turn, own + g * w->d, all, 1, w->d, w->q + g * w->d);
        q = w->q;
    }
    struct sh_slots_attend a = {
        .k = &w->k, .v = &w->v, .pos = b->h->place ? w->place : c->pos, .n_slot = c->n_slot, .group = w->group, .q = q,
        .position = b->h->place ? at : t, .window = what->window, .scale = what->scale, .softcap = what->softcap,
        .slopes = what->slopes ? what->slopes + b->head * w->group : NULL,
        .rounds_slopes = what->rounds_slopes, .sinks = what->sinks ? what->sinks + b->head * w->group : NULL,
        .span = what->chunk, .out = b->mixed + wide_at(w, row),
        .probs = w->probs, .chunk = w->chunk, .stages = b->stages, .sharers = b->sharers};
    int n_row = sh_slots_attend(&a);
    if (!b->observes && !b->watch)
        return;
    unsigned long long since = sh_stage_begin(b->stages);
    sh_slots_mean(w->probs, w->group, c->n_slot, w->mean);
    struct sh_step step = {.t = t, .n_row = n_row, .row = w->mean, .q = own, .n_query = w->group};
    if (b->watch)
        b->watch(b->watch_to, b->sequence, b->layer, b->head, t, c, w->mean);
    sh_kept_observe(w->wide, &step);
    sh_stage_end(b->stages, SH_STAGE_EVICTION, since, b->sharers);
}

/* Where those that stay go: from[slot] of the cache, -1 free. Returns the number of slots. */
static int settle(const struct work *w, int *from)
{
    const struct sh_cache *c = sh_kept_cache(w->wide), *was = sh_kept_cache(w->b->h->kept);
    int n_slot = was->n_slot, free_slot = 0;
    for (int i = 0; i < n_slot + w->b->n; i++)
        from[i] = -1;
    for (int i = 0; i < w->n_old; i++)
        if (c->pos[i] >= 0)
            from[w->old[i]] = i;
    for (int i = w->n_old; i < w->m; i++) {
        if (c->pos[i] < 0)
            continue;
        while (free_slot < n_slot && from[free_slot] >= 0)
            free_slot++;
        n_slot += free_slot == n_slot;
        from[free_slot] = i;
    }
    return n_slot;
}

static void store(const struct work *w)
{
    const struct sh_block *b = w->b;
    struct sh_kv_head *h = b->h;
    const struct sh_cache *c = sh_kept_cache(w->wide);
    int *from = xmalloc(((size_t)sh_kept_cache(h->kept)->n_slot + (size_t)b->n) * sizeof *from), live = 0;
    int n_slot = settle(w, from);
    sh_kept_move(h->kept, w->wide, from, n_slot);
    for (int i = 0; i < w->m; i++)                      /* of those that stay, how many are older */
        w->place[i] = c->pos[i] < 0 ? -1 : live++;
    for (int i = 0; i < n_slot; i++) {
        if (h->place)
            h->place[i] = from[i] < 0 ? -1 : w->place[from[i]];
        if (from[i] >= w->n_old) {
            size_t at = narrow_at(w, from[i] - w->n_old);
            sh_kv_head_put(h, i, b->k + at, b->v + at);
        }
    }
    free(from);
}

static size_t close_work(struct work *w)
{
    struct sh_kv_rows *all[] = {&w->k, &w->v, &w->seen_k, &w->seen_v};
    size_t bytes = (w->wide ? sh_kept_all_bytes(w->wide) : 0) + (size_t)(w->group + 3) * (size_t)w->m * sizeof(float);
    for (int i = 0; i < 4; i++) {
        bytes += all[i]->all_bytes;
        sh_kv_rows_free(all[i]);
    }
    sh_kept_free(w->wide);
    free(w->old);
    free(w->place);
    free(w->probs);
    return bytes;
}

int sh_block_run(const struct sh_block *b, size_t *bytes, struct sh_err *e)
{
    struct work w = {.b = b, .d = b->what->d_head, .group = b->what->n_head / b->what->n_kv_head};
    w.m = sh_kept_cache(b->h->kept)->n + b->n;
    size_t m = (size_t)w.m, group = (size_t)w.group, d = (size_t)w.d;
    w.old = xmalloc(m * sizeof *w.old);
    w.place = xmalloc(m * sizeof *w.place);
    w.probs = xmalloc(((group + 1) * m + (SH_ROWS_AT_ONCE + group) * d) * sizeof *w.probs);
    w.mean = w.probs + group * m;
    w.chunk = w.mean + m;
    w.q = w.chunk + SH_ROWS_AT_ONCE * d;
    for (int i = 0; i < w.m; i++)
        w.place[i] = i;
    unsigned long long since = sh_stage_begin(b->stages);
    list_old(&w);
    if (open_rows(&w, e)) {
        close_work(&w);
        return -1;
    }
    const struct sh_kv_rows *seen_v = w.seen_v.width ? &w.seen_v : !b->h->v.width && w.seen_k.width ? &w.seen_k : &w.v;
    w.wide = sh_kept_like(b->h->kept, w.m, w.seen_k.width ? w.seen_k.at : w.k.at, seen_v->at);
    sh_kept_move(w.wide, b->h->kept, w.old, w.n_old);
    sh_stage_end(b->stages, SH_STAGE_EVICTION, since, b->sharers);
    for (int row = 0; row < b->n; row++) {
        sh_kept_admit(w.wide, b->first + row);
        if (b->mixed)
            attend(&w, row);
    }
    since = sh_stage_begin(b->stages);
    sh_kept_make_room(w.wide, b->first + b->n, NULL, NULL);
    store(&w);
    sh_stage_end(b->stages, SH_STAGE_EVICTION, since, b->sharers);
    *bytes = close_work(&w);
    return 0;
}
