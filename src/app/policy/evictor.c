/* SPDX-License-Identifier: Apache-2.0 */
/* See evictor.h. A head has slots for what it keeps now, and gets more when tokens come: its owner's budget may be that
 * of the longest text. */
#include "src/app/policy/evictor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/policy/budget.h"
#include "planner/policy/kept_slots.h"
#include "src/app/plan/plan_file.h"
#include "src/base/mem.h"

enum { FIRST_SLOTS = 64, MOST_LAYERS = 4096, MOST_HEADS = 4096, MOST_WIDTH = 1 << 20,
       AT_ONCE = 1 << 14 };            /* tokens that an answer names, at most                   */

struct head {
    struct sh_kept *kept;
    float *k, *v;                       /* [capacity, d_head] by slot; NULL: the policy looks at none */
};

struct layer {
    int n_kv_head, d_head, window;      /* n_kv_head 0: not described yet                         */
    int t;                              /* tokens read                                            */
    int named;                          /* tokens that sh_evictor_next has named after t          */
    int n_slot;                         /* that it named                                          */
    struct head *head;                  /* [n_kv_head]                                            */
};

struct sh_evictor {
    struct sh_policy_spec spec;
    int n_layer, n_kv_head, prefill, n_token;
    uint64_t seed;
    int *budget;                        /* [n_layer, n_kv_head]                                   */
    int *planned;                       /* [n_layer]: heads of each layer in the plan; NULL: there is none */
    struct layer *layer;                /* [n_layer]                                              */
    int *slot, *pos;                    /* what the last answer points to                         */
};

/* ---- the setup ---- */

static int check_shape(const struct sh_evictor_setup *s, struct sh_err *e)
{
    if (s->n_layer < 1 || s->n_layer > MOST_LAYERS || s->n_kv_head < 1 || s->n_kv_head > MOST_HEADS)
        return sh_misused(e, "evictor: found %d layers of %d KV heads, expected 1 to %d of 1 to %d", s->n_layer,
                          s->n_kv_head, MOST_LAYERS, MOST_HEADS);
    if (s->length < 1 || s->length > SH_EVICTOR_MOST)
        return sh_misused(e, "length: found %d tokens, expected 1 to %d", s->length, SH_EVICTOR_MOST);
    if (s->prefill < -1 || s->prefill > SH_EVICTOR_MOST)
        return sh_misused(e, "prefill: found %d tokens, expected 0 to %d", s->prefill, SH_EVICTOR_MOST);
    if (s->plan && (s->policy || s->budget))
        return sh_misused(e, "plan: found a %s too, expected a plan or a policy with a budget",
                          s->policy ? "policy" : "budget");
    if (!s->plan && !s->policy) {
        sh_misused(e, "policy: found none, expected a policy such as h2o:recent=25, or a plan");
        return sh_hint(e, "shears info policies lists the policies");
    }
    return 0;
}

static int read_plan(struct sh_evictor *x, const struct sh_evictor_setup *s, struct sh_err *e)
{
    struct sh_plan p = {0};
    if (sh_plan_read(&p, s->plan, e))
        return -1;
    int bad = sh_plan_check_model(&p, s->plan, s->model ? s->model : "the model", NULL, s->n_layer, s->n_kv_head,
                                  NULL, e);
    x->spec = p.policy;
    x->prefill = s->prefill < 0 ? p.prefill : s->prefill;
    for (int i = 0; i < s->n_layer * s->n_kv_head && !bad; i++)
        x->budget[i] = sh_plan_tokens(&p, i / s->n_kv_head, i % s->n_kv_head, s->length);
    x->planned = p.heads;
    p.heads = NULL;
    sh_plan_clear(&p);
    return bad;
}

static int read_policy(struct sh_evictor *x, const struct sh_evictor_setup *s, struct sh_err *e)
{
    struct sh_budget b[SH_MAX_BUDGETS];
    int n = 0;
    if (sh_policy_parse(s->policy, &x->spec, e) || (s->budget && sh_budget_parse(s->budget, b, &n, e)))
        return -1;
    if (n > 1)
        return sh_misused(e, "budget: found %d budgets, expected one", n);
    for (int i = 0; i < s->n_layer * s->n_kv_head; i++) {
        const struct sh_policy *p = x->spec.policy;
        if (!n && !(p->keeps_all && p->keeps_all(x->spec.knob, i / s->n_kv_head)))
            return sh_misused(e, "budget: found none, expected the tokens that %s may keep (64, or 0.2 of the text)",
                              p->name);
        x->budget[i] = n ? sh_budget_tokens(&b[0], s->length) : SH_EVICTOR_MOST;
    }
    x->prefill = s->prefill < 0 ? 0 : s->prefill;
    return 0;
}

static int check_budgets(const struct sh_evictor *x, int length, struct sh_err *e)
{
    for (int i = 0; i < x->n_layer * x->n_kv_head; i++)
        if (sh_policy_check_budget(&x->spec, x->budget[i], x->n_token, i / x->n_kv_head, i % x->n_kv_head, e))
            return sh_hint(e, "shares are of a text of %d tokens: give a larger length, or the budget in tokens",
                           length);
    return 0;
}

struct sh_evictor *sh_evictor_new(const struct sh_evictor_setup *s, struct sh_err *e)
{
    if (check_shape(s, e))
        return NULL;
    struct sh_evictor *x = xcalloc(1, sizeof *x);
    *x = (struct sh_evictor){.n_layer = s->n_layer, .n_kv_head = s->n_kv_head, .seed = s->seed};
    x->budget = xcalloc((size_t)s->n_layer * (size_t)s->n_kv_head, sizeof *x->budget);
    x->layer = xcalloc((size_t)s->n_layer, sizeof *x->layer);
    int bad = s->plan ? read_plan(x, s, e) : read_policy(x, s, e);
    if (!bad) {
        x->n_token = x->spec.policy->needs & SH_NEEDS_LENGTH ? s->length : SH_EVICTOR_MOST;
        bad = sh_policy_check_live(&x->spec, x->prefill, e) || check_budgets(x, s->length, e);
    }
    if (bad) {
        sh_evictor_free(x);
        return NULL;
    }
    return x;
}

static void free_head(struct head *h)
{
    sh_kept_free(h->kept);
    free(h->k);
    free(h->v);
    *h = (struct head){0};
}

void sh_evictor_restart(struct sh_evictor *x)
{
    for (int i = 0; i < x->n_layer; i++) {
        struct layer *l = &x->layer[i];
        for (int h = 0; h < l->n_kv_head; h++)
            free_head(&l->head[h]);
        free(l->head);
        *l = (struct layer){0};
    }
}

void sh_evictor_free(struct sh_evictor *x)
{
    if (!x)
        return;
    sh_evictor_restart(x);
    free(x->budget);
    free(x->planned);
    free(x->layer);
    free(x->slot);
    free(x->pos);
    free(x);
}

unsigned sh_evictor_needs(const struct sh_evictor *x)
{
    const struct sh_policy *p = x->spec.policy;
    return (p->needs & (SH_NEEDS_KEYS | SH_NEEDS_VALUES | SH_NEEDS_QUERIES)) | (p->observe ? SH_NEEDS_SCORES : 0);
}

int sh_evictor_prefill(const struct sh_evictor *x)
{
    return x->prefill;
}

/* ---- layers and heads ---- */

static struct layer *layer_at(struct sh_evictor *x, int layer, struct sh_err *e)
{
    if (layer >= 0 && layer < x->n_layer)
        return &x->layer[layer];
    sh_misused(e, "evictor: found layer %d, expected 0 to %d", layer, x->n_layer - 1);
    return NULL;
}

static struct layer *known_layer(struct sh_evictor *x, int layer, struct sh_err *e)
{
    struct layer *l = layer_at(x, layer, e);
    if (!l || l->n_kv_head)
        return l;
    sh_misused(e, "evictor: layer %d: its KV heads were not set, expected them to be set first", layer);
    return NULL;
}

static int capacity_of(const struct head *h)
{
    return sh_kept_cache(h->kept)->head->capacity;
}

static int budget_of(const struct head *h)
{
    return sh_kept_cache(h->kept)->head->budget;
}

static float *new_vectors(const struct sh_evictor *x, unsigned need, int capacity, int d_head)
{
    size_t n = (size_t)capacity * (size_t)d_head;
    return x->spec.policy->needs & need ? xcalloc(n ? n : 1, sizeof(float)) : NULL;
}

static void open_head(const struct sh_evictor *x, const struct layer *l, int layer, int head, struct head *h)
{
    struct sh_kept_setup setup = {
        .spec = &x->spec, .budget = x->budget[layer * x->n_kv_head + head], .prefill = x->prefill, .window = l->window,
        .n_token = x->n_token, .layer = layer, .head = head, .n_layer = x->n_layer, .d_head = l->d_head,
        .rows_by_slot = 1, .seed = x->seed};
    int room = sh_kept_room(&setup);
    setup.capacity = room < FIRST_SLOTS ? room : FIRST_SLOTS;
    setup.capacity = setup.capacity < 1 ? 1 : setup.capacity;
    setup.k = h->k = new_vectors(x, SH_NEEDS_KEYS, setup.capacity, l->d_head);
    setup.v = h->v = new_vectors(x, SH_NEEDS_VALUES, setup.capacity, l->d_head);
    h->kept = sh_kept_new(&setup);
}

int sh_evictor_layer(struct sh_evictor *x, int layer, int n_kv_head, int d_head, int window, struct sh_err *e)
{
    struct layer *l = layer_at(x, layer, e);
    if (!l)
        return -1;
    if (n_kv_head < 1 || n_kv_head > x->n_kv_head || d_head < 0 || d_head > MOST_WIDTH / n_kv_head || window < 0)
        return sh_misused(e, "evictor: layer %d: found %d KV heads of %d numbers, window %d, expected 1 to %d heads, "
                          "at most %d numbers together, a window from 0", layer, n_kv_head, d_head, window,
                          x->n_kv_head, MOST_WIDTH);
    if (l->n_kv_head && (l->n_kv_head != n_kv_head || l->d_head != d_head || l->window != window))
        return sh_misused(e, "evictor: layer %d: found %d KV heads of %d numbers, window %d, expected %d of %d, window "
                          "%d, as before", layer, n_kv_head, d_head, window, l->n_kv_head, l->d_head, l->window);
    if (x->planned && x->planned[layer] != n_kv_head)
        return sh_misused(e, "evictor: layer %d: found %d KV heads, but the plan has budgets for %d", layer, n_kv_head,
                          x->planned[layer]);
    if (l->n_kv_head)
        return 0;
    *l = (struct layer){.n_kv_head = n_kv_head, .d_head = d_head, .window = window,
                        .head = xcalloc((size_t)n_kv_head, sizeof *l->head)};
    for (int h = 0; h < n_kv_head; h++)
        open_head(x, l, layer, h, &l->head[h]);
    return 0;
}

/* The head's tokens move into other slots: slot i [n] of the new ones has the token of slot from[i]; -1: free. */
static void move_head(const struct sh_evictor *x, struct head *h, int d_head, int capacity, const int *from, int n)
{
    struct head to = {.k = new_vectors(x, SH_NEEDS_KEYS, capacity, d_head),
                      .v = new_vectors(x, SH_NEEDS_VALUES, capacity, d_head)};
    size_t width = (size_t)d_head, bytes = width * sizeof(float);
    to.kept = sh_kept_like(h->kept, capacity, to.k, to.v);
    sh_kept_move(to.kept, h->kept, from, n);
    for (int i = 0; i < n; i++) {
        if (from[i] >= 0 && to.k)
            memcpy(to.k + (size_t)i * width, h->k + (size_t)from[i] * width, bytes);
        if (from[i] >= 0 && to.v)
            memcpy(to.v + (size_t)i * width, h->v + (size_t)from[i] * width, bytes);
    }
    free_head(h);
    *h = to;
}

static void grow(const struct sh_evictor *x, struct head *h, int d_head, int slots)
{
    const struct sh_cache *c = sh_kept_cache(h->kept);
    int capacity = capacity_of(h), budget = budget_of(h), n = c->n_slot;
    if (slots <= capacity)
        return;
    capacity = capacity > budget / 2 ? budget : 2 * capacity;
    capacity = slots > capacity ? slots : capacity;
    int *same = xmalloc(((size_t)n + 1) * sizeof *same);
    for (int i = 0; i < n; i++)
        same[i] = c->pos[i] < 0 ? -1 : i;
    move_head(x, h, d_head, capacity, same, n);
    free(same);
}

static void copy_head(const struct sh_evictor *x, const struct layer *l, struct head *to, const struct head *from)
{
    int capacity = capacity_of(from);
    size_t bytes = (size_t)capacity * (size_t)l->d_head * sizeof(float);
    struct sh_kept *kept = to->kept;
    free(to->k);
    free(to->v);
    to->k = new_vectors(x, SH_NEEDS_KEYS, capacity, l->d_head);
    to->v = new_vectors(x, SH_NEEDS_VALUES, capacity, l->d_head);
    to->kept = sh_kept_like(kept, capacity, to->k, to->v);
    sh_kept_free(kept);
    sh_kept_copy(to->kept, from->kept);
    if (to->k)
        memcpy(to->k, from->k, bytes);
    if (to->v)
        memcpy(to->v, from->v, bytes);
}

struct sh_evictor *sh_evictor_copy(const struct sh_evictor *x)
{
    struct sh_evictor *to = xmalloc(sizeof *to);
    size_t n = (size_t)x->n_layer * (size_t)x->n_kv_head;
    *to = *x;
    to->slot = to->pos = NULL;
    to->budget = xmalloc(n * sizeof *to->budget);
    memcpy(to->budget, x->budget, n * sizeof *to->budget);
    if (x->planned) {
        to->planned = xmalloc((size_t)x->n_layer * sizeof *to->planned);
        memcpy(to->planned, x->planned, (size_t)x->n_layer * sizeof *to->planned);
    }
    to->layer = xcalloc((size_t)x->n_layer, sizeof *to->layer);
    for (int i = 0; i < x->n_layer; i++) {
        struct layer *l = &to->layer[i];
        *l = x->layer[i];
        l->named = 0;
        l->head = l->n_kv_head ? xcalloc((size_t)l->n_kv_head, sizeof *l->head) : NULL;
        for (int h = 0; h < l->n_kv_head; h++) {
            open_head(to, l, i, h, &l->head[h]);
            copy_head(to, l, &l->head[h], &x->layer[i].head[h]);
        }
    }
    return to;
}

/* ---- tokens ---- */

/* Tokens from t on that a head can take before one leaves, when room has been made for t. */
static int free_run(const struct sh_evictor *x, const struct head *h, int t)
{
    int room = budget_of(h) - sh_kept_cache(h->kept)->n, see_all = x->prefill - t;
    room = room > see_all ? room : see_all;
    return room < 1 ? 1 : room;
}

/* The answer's tables for n tokens from l->t on. */
static void name_slots(struct sh_evictor *x, struct layer *l, int n)
{
    size_t heads = (size_t)l->n_kv_head;
    int most = 0;
    x->slot = xreallocarray(x->slot, heads * (size_t)n, sizeof *x->slot);
    for (int h = 0; h < l->n_kv_head; h++) {
        int *slot = x->slot + (size_t)h * (size_t)n, used = sh_kept_cache(l->head[h].kept)->n_slot;
        sh_kept_next_slots(l->head[h].kept, n, slot);
        for (int i = 0; i < n; i++)
            used = slot[i] >= used ? slot[i] + 1 : used;
        most = used > most ? used : most;
        grow(x, &l->head[h], l->d_head, used);
        sh_kept_next_slots(l->head[h].kept, n, slot);
    }
    x->pos = xreallocarray(x->pos, heads * (size_t)most, sizeof *x->pos);
    for (int h = 0; h < l->n_kv_head; h++) {
        const struct sh_cache *c = sh_kept_cache(l->head[h].kept);
        int *pos = x->pos + (size_t)h * (size_t)most;
        for (int i = 0; i < most; i++)
            pos[i] = i < c->n_slot ? c->pos[i] : -1;
        for (int i = 0; i < n; i++)
            pos[x->slot[(size_t)h * (size_t)n + (size_t)i]] = l->t + i;
    }
    l->named = n;
    l->n_slot = most;
}

int sh_evictor_next(struct sh_evictor *x, int layer, int n, struct sh_evictor_next *out, struct sh_err *e)
{
    struct layer *l = known_layer(x, layer, e);
    if (!l)
        return -1;
    if (n < 1)
        return sh_misused(e, "evictor: layer %d: found %d tokens, expected at least 1", layer, n);
    if (n > x->n_token - l->t)
        return sh_misused(e, "evictor: layer %d: found %d tokens after %d, expected %d in all%s", layer, n, l->t,
                          x->n_token, x->n_token < SH_EVICTOR_MOST ? ": the policy depends on the length" : "");
    n = n < AT_ONCE ? n : AT_ONCE;
    for (int h = 0; h < l->n_kv_head; h++) {
        sh_kept_make_room(l->head[h].kept, l->t, NULL, NULL);
        int run = free_run(x, &l->head[h], l->t);
        n = run < n ? run : n;
    }
    name_slots(x, l, n);
    *out = (struct sh_evictor_next){.n = n, .n_kv_head = l->n_kv_head, .n_slot = l->n_slot, .slot = x->slot,
                                    .pos = x->pos};
    return 0;
}

static int check_numbers(const float *x, size_t n, const char *what, int layer, struct sh_err *e)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return sh_fail(e, "evictor: layer %d: %s: found %g, expected finite numbers", layer, what, (double)x[i]);
    return 0;
}

static int check_rows(const struct sh_evictor *x, const struct layer *l, int layer, const struct sh_evictor_rows *r,
                      struct sh_err *e)
{
    unsigned needs = sh_evictor_needs(x);
    size_t tokens = (size_t)l->n_kv_head * (size_t)r->n, d = (size_t)l->d_head;
    if (r->n < 1 || r->n > l->named || r->n_slot != l->n_slot)
        return sh_misused(e, "evictor: layer %d: found rows of %d tokens over %d slots, expected 1 to %d over %d",
                          layer, r->n, r->n_slot, l->named, l->n_slot);
    if (((needs & SH_NEEDS_SCORES) && (!r->row || !r->seen)) || ((needs & SH_NEEDS_KEYS) && !r->k) ||
        ((needs & SH_NEEDS_VALUES) && !r->v) || ((needs & SH_NEEDS_QUERIES) && !r->q) || r->n_query < 1)
        return sh_misused(e, "evictor: layer %d: the rows lack scores, keys, values or queries that %s needs", layer,
                         x->spec.policy->name);
    if ((needs & SH_NEEDS_SCORES) && check_numbers(r->row, tokens * (size_t)r->n_slot, "scores", layer, e))
        return -1;
    if (((needs & SH_NEEDS_KEYS) && check_numbers(r->k, tokens * d, "keys", layer, e)) ||
        ((needs & SH_NEEDS_VALUES) && check_numbers(r->v, tokens * d, "values", layer, e)) ||
        ((needs & SH_NEEDS_QUERIES) && check_numbers(r->q, tokens * (size_t)r->n_query * d, "queries", layer, e)))
        return -1;
    return 0;
}

static void read_head(const struct sh_evictor *x, const struct layer *l, int head, const struct sh_evictor_rows *r)
{
    struct head *h = &l->head[head];
    size_t d = (size_t)l->d_head, group = (size_t)r->n_query;
    unsigned needs = sh_evictor_needs(x);
    for (int i = 0; i < r->n; i++) {
        size_t at = (size_t)head * (size_t)r->n + (size_t)i;
        size_t slot = (size_t)sh_kept_admit(h->kept, l->t + i);
        if (h->k)
            memcpy(h->k + slot * d, r->k + at * d, d * sizeof *h->k);
        if (h->v)
            memcpy(h->v + slot * d, r->v + at * d, d * sizeof *h->v);
        struct sh_step step = {.t = l->t + i, .n_query = r->n_query};
        if (needs & SH_NEEDS_SCORES) {
            step.row = r->row + at * (size_t)r->n_slot;
            step.n_row = r->seen[at];
        }
        if (needs & SH_NEEDS_QUERIES)
            step.q = r->q + at * group * d;
        sh_kept_observe(h->kept, &step);
    }
}

int sh_evictor_read(struct sh_evictor *x, int layer, const struct sh_evictor_rows *r, struct sh_err *e)
{
    struct layer *l = known_layer(x, layer, e);
    if (!l || check_rows(x, l, layer, r, e))
        return -1;
    for (int h = 0; h < l->n_kv_head; h++)
        read_head(x, l, h, r);
    l->t += r->n;
    l->named -= r->n;
    return 0;
}

/* Slots of the cached tokens, the oldest first; their number. */
static int list_by_age(const struct sh_cache *c, int t, int *slot)
{
    int *at = xmalloc(((size_t)t + 1) * sizeof *at), n = 0;
    for (int i = 0; i < t; i++)
        at[i] = -1;
    for (int i = 0; i < c->n_slot; i++)
        if (c->pos[i] >= 0)
            at[c->pos[i]] = i;
    for (int i = 0; i < t; i++)
        if (at[i] >= 0)
            slot[n++] = at[i];
    free(at);
    return n;
}

int sh_evictor_settle(struct sh_evictor *x, int layer, struct sh_evictor_moved *out, struct sh_err *e)
{
    struct layer *l = known_layer(x, layer, e);
    int most = 0, over = 0;
    if (!l)
        return -1;
    *out = (struct sh_evictor_moved){.n_kv_head = l->n_kv_head};
    for (int h = 0; h < l->n_kv_head && l->t >= x->prefill; h++) {
        const struct sh_cache *c = sh_kept_cache(l->head[h].kept);
        if (l->t == x->prefill && l->t)
            sh_kept_make_room(l->head[h].kept, l->t, NULL, NULL);
        over |= c->n_slot > budget_of(&l->head[h]);
        most = c->n > most ? c->n : most;
    }
    if (!over)
        return 0;
    size_t n = (size_t)l->n_kv_head * (size_t)(most ? most : 1);
    x->slot = xreallocarray(x->slot, n, sizeof *x->slot);
    for (size_t i = 0; i < n; i++)
        x->slot[i] = -1;
    for (int h = 0; h < l->n_kv_head; h++) {
        int *from = x->slot + (size_t)h * (size_t)most, budget = budget_of(&l->head[h]);
        int kept = list_by_age(sh_kept_cache(l->head[h].kept), l->t, from);
        move_head(x, &l->head[h], l->d_head, kept > budget ? kept : budget, from, kept);
    }
    l->named = 0;
    *out = (struct sh_evictor_moved){.n_kv_head = l->n_kv_head, .n_slot = most, .from = x->slot};
    return 0;
}

/* ---- what is kept ---- */

static const struct head *head_at(struct sh_evictor *x, int layer, int head, struct sh_err *e)
{
    struct layer *l = known_layer(x, layer, e);
    if (l && head >= 0 && head < l->n_kv_head)
        return &l->head[head];
    if (l)
        sh_misused(e, "evictor: layer %d: found head %d, expected 0 to %d", layer, head, l->n_kv_head - 1);
    return NULL;
}

int sh_evictor_budget(struct sh_evictor *x, int layer, int head, struct sh_err *e)
{
    const struct head *h = head_at(x, layer, head, e);
    return h ? budget_of(h) : -1;
}

int sh_evictor_kept(struct sh_evictor *x, int layer, int head, int *to, int room, struct sh_err *e)
{
    const struct head *h = head_at(x, layer, head, e);
    if (!h)
        return -1;
    const struct sh_cache *c = sh_kept_cache(h->kept);
    int *slot = xmalloc(((size_t)c->n + 1) * sizeof *slot), n = list_by_age(c, x->layer[layer].t, slot);
    for (int i = 0; i < n && i < room && to; i++)
        to[i] = c->pos[slot[i]];
    free(slot);
    return n;
}

size_t sh_evictor_bytes(const struct sh_evictor *x)
{
    size_t bytes = 0;
    for (int i = 0; i < x->n_layer; i++) {
        const struct layer *l = &x->layer[i];
        for (int h = 0; h < l->n_kv_head; h++) {
            size_t rows = (size_t)capacity_of(&l->head[h]) * (size_t)l->d_head * sizeof(float);
            bytes += sh_kept_policy_bytes(l->head[h].kept) + (l->head[h].k ? rows : 0) + (l->head[h].v ? rows : 0);
        }
    }
    return bytes;
}
