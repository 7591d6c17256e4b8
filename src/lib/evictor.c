/* SPDX-License-Identifier: Apache-2.0 */
/* Policies for a cache elsewhere: src/app/policy/evictor.h through the public header. */
#include <stdlib.h>

#include "planner/policy/policy.h"
#include "src/app/policy/evictor.h"
#include "src/base/mem.h"
#include "src/lib/lib.h"

_Static_assert(SHEARS_NEEDS_SCORES == (int)SH_NEEDS_SCORES, "another number for a need");

struct shears_evictor {
    struct sh_evictor *x;
};

static struct shears_evictor *wrap(struct sh_evictor *x)
{
    struct shears_evictor *made = xmalloc(sizeof *made);
    made->x = x;
    return made;
}

struct shears_evictor *shears_evictor_open(const struct shears_evictor_setup *s, struct shears_error **e)
{
    struct sh_err why = {0};
    if (sh_lib_given(e, "shears_evictor_open", "a setup", s))
        return NULL;
    if (s->bytes != sizeof *s) {
        sh_lib_misused(e, "shears_evictor_open: found a setup of %zu bytes, expected %zu", s->bytes, sizeof *s);
        return NULL;
    }
    const struct sh_evictor_setup setup = {
        .policy = s->policy, .budget = s->budget, .plan = s->plan, .model = s->model, .n_layer = s->layers,
        .n_kv_head = s->kv_heads, .length = s->length, .prefill = s->prefill, .seed = s->seed};
    struct sh_evictor *x = sh_evictor_new(&setup, &why);
    if (!x)
        sh_lib_fail(e, &why);
    return x ? wrap(x) : NULL;
}

struct shears_evictor *shears_evictor_copy(const struct shears_evictor *x, struct shears_error **e)
{
    return sh_lib_given(e, "shears_evictor_copy", "an evictor", x) ? NULL : wrap(sh_evictor_copy(x->x));
}

void shears_evictor_free(struct shears_evictor *x)
{
    if (x)
        sh_evictor_free(x->x);
    free(x);
}

int shears_evictor_needs(const struct shears_evictor *x, struct shears_error **e)
{
    return sh_lib_given(e, "shears_evictor_needs", "an evictor", x) ? -1 : (int)sh_evictor_needs(x->x);
}

int shears_evictor_prefill(const struct shears_evictor *x, struct shears_error **e)
{
    return sh_lib_given(e, "shears_evictor_prefill", "an evictor", x) ? -1 : sh_evictor_prefill(x->x);
}

int shears_evictor_layer(struct shears_evictor *x, int layer, int kv_heads, int head_dim, int window,
                         struct shears_error **e)
{
    struct sh_err why = {0};
    if (sh_lib_given(e, "shears_evictor_layer", "an evictor", x))
        return -1;
    return sh_evictor_layer(x->x, layer, kv_heads, head_dim, window, &why) ? sh_lib_fail(e, &why) : 0;
}

int shears_evictor_next(struct shears_evictor *x, int layer, int n, struct shears_evictor_next *to,
                        struct shears_error **e)
{
    struct sh_err why = {0};
    struct sh_evictor_next next;
    if (sh_lib_given(e, "shears_evictor_next", "an evictor", x) ||
        sh_lib_given(e, "shears_evictor_next", "room for the answer", to))
        return -1;
    if (sh_evictor_next(x->x, layer, n, &next, &why))
        return sh_lib_fail(e, &why);
    *to = (struct shears_evictor_next){.n = next.n, .kv_heads = next.n_kv_head, .n_slot = next.n_slot,
                                       .slot = next.slot, .pos = next.pos};
    return 0;
}

int shears_evictor_read(struct shears_evictor *x, int layer, const struct shears_evictor_rows *rows,
                        struct shears_error **e)
{
    struct sh_err why = {0};
    if (sh_lib_given(e, "shears_evictor_read", "an evictor", x) ||
        sh_lib_given(e, "shears_evictor_read", "rows", rows))
        return -1;
    const struct sh_evictor_rows r = {.n = rows->n, .n_slot = rows->n_slot, .n_query = rows->n_query, .row = rows->row,
                                      .seen = rows->seen, .q = rows->q, .k = rows->k, .v = rows->v};
    return sh_evictor_read(x->x, layer, &r, &why) ? sh_lib_fail(e, &why) : 0;
}

int shears_evictor_settle(struct shears_evictor *x, int layer, struct shears_evictor_moved *to, struct shears_error **e)
{
    struct sh_err why = {0};
    struct sh_evictor_moved moved;
    if (sh_lib_given(e, "shears_evictor_settle", "an evictor", x) ||
        sh_lib_given(e, "shears_evictor_settle", "room for the answer", to))
        return -1;
    if (sh_evictor_settle(x->x, layer, &moved, &why))
        return sh_lib_fail(e, &why);
    *to = (struct shears_evictor_moved){.kv_heads = moved.n_kv_head, .n_slot = moved.n_slot, .from = moved.from};
    return 0;
}

int shears_evictor_budget(struct shears_evictor *x, int layer, int head, struct shears_error **e)
{
    struct sh_err why = {0};
    if (sh_lib_given(e, "shears_evictor_budget", "an evictor", x))
        return -1;
    int n = sh_evictor_budget(x->x, layer, head, &why);
    return n < 0 ? sh_lib_fail(e, &why) : n;
}

int shears_evictor_kept(struct shears_evictor *x, int layer, int head, int *to, int room, struct shears_error **e)
{
    struct sh_err why = {0};
    if (sh_lib_given(e, "shears_evictor_kept", "an evictor", x))
        return -1;
    int n = sh_evictor_kept(x->x, layer, head, to, room, &why);
    return n < 0 ? sh_lib_fail(e, &why) : n;
}

size_t shears_evictor_bytes(const struct shears_evictor *x)
{
    return x ? sh_evictor_bytes(x->x) : 0;
}
