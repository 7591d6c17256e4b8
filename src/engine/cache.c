/* SPDX-License-Identifier: Apache-2.0 */
#include "src/engine/cache.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

static int check_format(const struct sh_kv_format *f, struct sh_err *e)
{
    if (f->bits != 32 && f->bits != 16 && f->bits != 8 && f->bits != 4)
        return sh_misused(e, "%d bits for keys and values: expected 32, 16, 8 or 4", f->bits);
    if (f->bits < 16 && (f->group < 8 || f->group > 1024 || f->group % 8))
        return sh_misused(e, "groups of %d: expected a multiple of 8 up to 1024", f->group);
    if (f->bits < 16 && f->by_channel && (f->residual < 1 || f->residual > 1024))
        return sh_misused(e, "%d keys as f16: expected 1 to 1024", f->residual);
    if (f->bits < 16 && f->meta != SH_F16 && f->meta != SH_F32)
        return sh_misused(e, "scales as %s: expected f16 or f32", sh_type_name(f->meta));
    return 0;
}

/* What a head keeps to. */
static struct sh_kept_setup kept_setup(const struct sh_session_setup *s, int layer, int head)
{
    int budget = s->budget[layer * s->arch->n_kv_head + head], window = sh_arch_window(s->arch, layer);
    int by_place = s->positions == SH_POSITIONS_CACHE;
    if (by_place && window && budget > window)          /* what is cached is then within the window   */
        budget = window;
    return (struct sh_kept_setup){.spec = s->spec, .budget = budget, .prefill = s->prefill,
                                  .window = by_place ? 0 : window, .n_token = s->n_token,
                                  .capacity = s->whole ? -1 : 0, .layer = layer, .head = head,
                                  .n_layer = s->arch->n_layer, .d_head = sh_arch_d_head(s->arch, layer),
                                  .rows_by_slot = 1, .seed = s->seed};
}

/* A window with places in the cache is a smaller budget, which must hold what is protected, too. */
static int check_budgets(const struct sh_session_setup *s, struct sh_err *e)
{
    int per_layer = s->arch->n_kv_head;
    for (int i = 0; i < s->arch->n_layer * per_layer; i++) {
        int layer = i / per_layer, head = i % per_layer, budget = kept_setup(s, layer, head).budget;
        if (head >= sh_arch_kv_heads(s->arch, layer))
            continue;
        if (sh_policy_check_budget(s->spec, s->budget[i], s->n_token, layer, head, e))
            return -1;
        if (sh_policy_check_budget(s->spec, budget, s->n_token, layer, head, e))
            return sh_hint(e, "with --positions cache, this layer keeps no more than its window of %d tokens", budget);
    }
    return 0;
}

static int most_slots(const struct sh_session_setup *s)
{
    int most = 0;
    for (int i = 0; i < s->arch->n_layer * s->arch->n_kv_head; i++) {
        if (i % s->arch->n_kv_head >= sh_arch_kv_heads(s->arch, i / s->arch->n_kv_head))
            continue;
        struct sh_kept_setup kept = kept_setup(s, i / s->arch->n_kv_head, i % s->arch->n_kv_head);
        int n = sh_kept_slots(&kept);
        most = n > most ? n : most;
    }
    return most;
}

int sh_kv_setup_places(const struct sh_session_setup *s)
{
    int most = most_slots(s) + s->block;
    return most > s->n_token ? s->n_token : most;
}

static int check_places(const struct sh_session_setup *s, struct sh_err *e)
{
    const struct sh_arch *a = s->arch;
    int places, slots;
    int late = (a->flags & SH_QK_NORM_LATE) != 0, learned = a->learned_start > 0;
    if (s->positions == SH_POSITIONS_CACHE && a->flags & (SH_CHUNKED | SH_ROUNDS_SLOPES))
        return sh_misused(e, "--positions cache: not possible with this model, whose chunks or slopes depend on the "
                          "place in the text");
    if (s->positions == SH_POSITIONS_CACHE && (late || learned || a->temper > 0))
        return sh_misused(e, "--positions cache: not possible with this model, which %s",
                          late      ? "normalises queries and keys after their rotation"
                          : learned ? "multiplies queries by learned factors after their rotation"
                                    : "scales queries by their place in the text");
    if (s->positions != SH_POSITIONS_CACHE || a->pos == SH_POS_ALIBI || a->pos == SH_POS_NONE ||
        (places = sh_kv_setup_places(s)) <= a->max_pos)
        return 0;
    slots = most_slots(s);
    sh_misused(e, "positions inside the cache reach %d (%d slots, blocks of %d token%s), but the model has only %d",
               places, slots, s->block, s->block == 1 ? "" : "s", a->max_pos);
    if (slots >= s->n_token)
        sh_hint(e, "texts can be longer with a --policy that evicts and a --budget");
    else if (a->max_pos - s->block >= sh_policy_least_budget(s->spec))
        sh_hint(e, "a budget of %d tokens per head fits if the prefill is no longer than that", a->max_pos - s->block);
    return -1;
}

int sh_kv_setup_check(const struct sh_session_setup *setup, struct sh_err *e)
{
    return sh_policy_check_live(setup->spec, setup->prefill, e) || check_format(&setup->format, e) ||
                   check_budgets(setup, e) || check_places(setup, e) ? -1 : 0;
}

static int new_head(struct sh_kv_cache *c, struct sh_kv_head *h, int layer, int head, struct sh_err *e)
{
    static const struct sh_kv_format plain = {.bits = 32};
    const struct sh_session_setup *s = &c->setup;
    const struct sh_policy *p = s->spec->policy;
    int d = sh_arch_d_head(s->arch, layer);
    if (head >= sh_arch_kv_heads(s->arch, layer))
        return 0;
    struct sh_kept_setup kept = kept_setup(s, layer, head);
    h->kept = sh_kept_new(&kept);
    int capacity = sh_kept_cache(h->kept)->head->capacity;
    int in_order = sh_kept_cache(h->kept)->head->budget >= s->n_token;
    if (s->positions == SH_POSITIONS_CACHE)
        h->place = xmalloc((size_t)capacity * sizeof *h->place);
    c->most_slots = capacity > c->most_slots ? capacity : c->most_slots;
    enum sh_kv_layout keys = in_order ? SH_KV_IN_ORDER : s->format.by_channel ? SH_KV_BY_CHANNEL : SH_KV_BY_TOKEN;
    int is_one = s->arch->latent.rank > 0, sees_v = (p->needs & SH_NEEDS_VALUES) != 0;
    int sees_k = p->needs & SH_NEEDS_KEYS || (is_one && sees_v);
    if (sh_kv_rows_new(&h->k, &s->format, keys, capacity, d, e) ||
        (!is_one && sh_kv_rows_new(&h->v, &s->format, 0, capacity, d, e)))
        return -1;
    if (s->format.bits < 32 && sees_k && sh_kv_rows_new(&h->seen_k, &plain, 0, capacity, d, e))
        return -1;
    if (s->format.bits < 32 && sees_v && !is_one && sh_kv_rows_new(&h->seen_v, &plain, 0, capacity, d, e))
        return -1;
    return 0;
}

/* Keys or values as a policy may look at them. */
static const float *floats(const struct sh_kv_rows *kept, const struct sh_kv_rows *seen)
{
    return kept->format.bits == 32 ? kept->at : seen->at;
}

static const float *value_floats(const struct sh_kv_head *h)
{
    return h->v.width ? floats(&h->v, &h->seen_v) : floats(&h->k, &h->seen_k);
}

static int heads(const struct sh_kv_cache *c)
{
    return sh_kv_setup_layers(&c->setup) * c->setup.arch->n_kv_head;
}

struct sh_kv_cache *sh_kv_cache_new(const struct sh_session_setup *setup, struct sh_err *e)
{
    if (sh_kv_setup_check(setup, e))
        return NULL;
    struct sh_kv_cache *c = xcalloc(1, sizeof *c);
    c->setup = *setup;
    int n_head = heads(c), bad = 0, per_layer = setup->arch->n_kv_head;
    size_t all = (size_t)setup->arch->n_layer * (size_t)per_layer;
    c->budget = xmalloc(all * sizeof *c->budget);
    memcpy(c->budget, setup->budget, all * sizeof *c->budget);
    c->setup.budget = c->budget;
    c->head = xcalloc((size_t)setup->n_seq * (size_t)n_head, sizeof *c->head);
    for (int i = 0; i < setup->n_seq * n_head && !bad; i++)
        bad = new_head(c, &c->head[i], setup->first_layer + i % n_head / per_layer, i % per_layer, e);
    for (int s = 0; s < setup->n_seq && !bad; s++)
        sh_kv_cache_restart(c, s);
    if (bad) {
        sh_kv_cache_free(c);
        return NULL;
    }
    return c;
}

void sh_kv_cache_free(struct sh_kv_cache *c)
{
    if (!c)
        return;
    for (int i = 0; i < c->setup.n_seq * heads(c); i++) {
        sh_kept_free(c->head[i].kept);
        free(c->head[i].place);
        sh_kv_rows_free(&c->head[i].k);
        sh_kv_rows_free(&c->head[i].v);
        sh_kv_rows_free(&c->head[i].seen_k);
        sh_kv_rows_free(&c->head[i].seen_v);
    }
    free(c->head);
    free(c->budget);
    free(c);
}

void sh_kv_cache_restart(struct sh_kv_cache *c, int sequence)
{
    for (int i = 0; i < heads(c); i++) {
        struct sh_kv_head *h = &c->head[sequence * heads(c) + i];
        if (!h->kept)
            continue;
        int n_slot = sh_kept_cache(h->kept)->n_slot;
        c->peak = n_slot > c->peak ? n_slot : c->peak;
        sh_kv_rows_clear(&h->k);
        sh_kept_restart(h->kept, floats(&h->k, &h->seen_k), value_floats(h));
    }
}

void sh_kv_head_put(struct sh_kv_head *h, int slot, const float *k, const float *v)
{
    sh_kv_rows_put(&h->k, slot, k);
    if (h->v.width)
        sh_kv_rows_put(&h->v, slot, v);
    if (h->seen_k.width)
        sh_kv_rows_put(&h->seen_k, slot, k);
    if (h->seen_v.width)
        sh_kv_rows_put(&h->seen_v, slot, v);
}

void sh_kv_cache_copy(struct sh_kv_cache *to, int sequence_to, const struct sh_kv_cache *from, int sequence_from)
{
    for (int i = 0; i < heads(from); i++) {
        struct sh_kv_head *t = &to->head[sequence_to * heads(to) + i];
        const struct sh_kv_head *f = &from->head[sequence_from * heads(from) + i];
        if (!f->kept)
            continue;
        const struct sh_cache *c = sh_kept_cache(f->kept);
        sh_kept_copy(t->kept, f->kept);
        sh_kv_rows_copy(&t->k, &f->k);
        sh_kv_rows_copy(&t->v, &f->v);
        sh_kv_rows_copy(&t->seen_k, &f->seen_k);
        sh_kv_rows_copy(&t->seen_v, &f->seen_v);
        if (f->place)
            memcpy(t->place, f->place, (size_t)c->n_slot * sizeof *t->place);
    }
}

struct sh_cache_bytes sh_kv_cache_bytes(const struct sh_kv_cache *c)
{
    struct sh_cache_bytes b = {0};
    for (int i = 0; i < c->setup.n_seq * heads(c); i++) {
        const struct sh_kv_head *h = &c->head[i];
        if (!h->kept)
            continue;
        b.rows += h->k.at_bytes + h->k.open_bytes + h->v.at_bytes;
        b.meta += h->k.meta_bytes + h->v.meta_bytes;
        b.positions += (size_t)sh_kept_cache(h->kept)->head->capacity * (h->place ? 2 : 1) * sizeof(int);
        b.policy += sh_kept_policy_bytes(h->kept) + h->seen_k.at_bytes + h->seen_v.at_bytes;
    }
    return b;
}

size_t sh_cache_bytes_sum(const struct sh_cache_bytes *b)
{
    return b->rows + b->meta + b->positions + b->policy + b->state;
}

struct sh_kv_kept sh_kv_cache_kept(const struct sh_kv_cache *c)
{
    struct sh_kv_kept k = {.peak = c->peak};
    int all = 0;
    for (int i = 0; i < c->setup.n_seq * heads(c); i++) {
        if (!c->head[i].kept)
            continue;
        all++;
        const struct sh_cache *seen = sh_kept_cache(c->head[i].kept);
        k.kept += seen->n;
        k.budget += sh_kept_cache(c->head[i].kept)->head->budget;
        k.peak = seen->n_slot > k.peak ? seen->n_slot : k.peak;
    }
    k.kept /= all ? all : 1;
    k.budget /= all ? all : 1;
    return k;
}
