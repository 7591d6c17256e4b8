/* SPDX-License-Identifier: Apache-2.0 */
/* A policy from outside as one of planner/policy/policy.h. Its structs have the fields of those, at the same offsets,
 * so that no array is copied for a step. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/policy/policy.h"
#include "src/base/mem.h"
#include "src/lib/lib.h"

#define SAME(ours, theirs, field) \
    _Static_assert(offsetof(struct ours, field) == offsetof(struct theirs, field), "the field is elsewhere")
SAME(shears_cache, sh_cache, n_slot);
SAME(shears_cache, sh_cache, n);
SAME(shears_cache, sh_cache, newest);
SAME(shears_cache, sh_cache, pos);
SAME(shears_cache, sh_cache, k);
SAME(shears_cache, sh_cache, v);
SAME(shears_cache, sh_cache, d_head);
SAME(shears_cache, sh_cache, rows_by_slot);
SAME(shears_step, sh_step, t);
SAME(shears_step, sh_step, n_row);
SAME(shears_step, sh_step, row);
SAME(shears_step, sh_step, q);
SAME(shears_step, sh_step, n_query);
SAME(shears_step, sh_step, future);
_Static_assert(SHEARS_NEEDS_KEYS == (int)SH_NEEDS_KEYS && SHEARS_NEEDS_VALUES == (int)SH_NEEDS_VALUES &&
               SHEARS_NEEDS_QUERIES == (int)SH_NEEDS_QUERIES && SHEARS_NEEDS_PROMPT == (int)SH_NEEDS_PROMPT,
               "another number for a need");

enum { NEEDS = SHEARS_NEEDS_KEYS | SHEARS_NEEDS_VALUES | SHEARS_NEEDS_QUERIES | SHEARS_NEEDS_PROMPT,
       MOST_ROWS = 1 << 16 };

struct own {
    struct sh_policy policy;            /* first: a head's policy leads here                      */
    struct shears_policy theirs;
    struct sh_knob knob[SH_MAX_KNOBS + 1];
};

struct state {
    float *rows;                        /* [theirs.rows, capacity]                                */
};

static const struct own *own_of(const struct sh_policy_head *h)
{
    return (const struct own *)h->policy;
}

static size_t count_rows(const struct sh_policy_head *h)
{
    return own_of(h)->theirs.rows;
}

static const struct sh_array arrays[] = {SH_ARRAY_ROWS(rows, SH_PER_SLOT, sizeof(float), count_rows), {0}};

/* Without values in the cache when a token comes: policy.h has them then for observe alone. */
static struct shears_head head_of(const struct sh_policy_head *h)
{
    return (struct shears_head){.knob = h->knob, .layer = h->layer, .head = h->head, .n_layer = h->n_layer,
                                .budget = h->budget, .prefill = h->prefill, .capacity = h->capacity,
                                .n_token = h->n_token, .d_head = h->d_head, .seed = h->seed};
}

static struct shears_cache cache_of(const struct sh_cache *c, const struct shears_head *h)
{
    struct shears_cache mine;
    memcpy(&mine, c, sizeof mine);
    mine.head = h;
    return mine;
}

static void admit(void *s, int slot, const struct sh_cache *c, const struct sh_step *t)
{
    const struct shears_head h = head_of(c->head);
    const struct shears_cache mine = cache_of(c, &h);
    own_of(c->head)->theirs.admit(((struct state *)s)->rows, slot, &mine, (const void *)t);
}

static void observe(void *s, const struct sh_cache *c, const struct sh_step *t)
{
    const struct shears_head h = head_of(c->head);
    const struct shears_cache mine = cache_of(c, &h);
    own_of(c->head)->theirs.observe(((struct state *)s)->rows, &mine, (const void *)t);
}

static const float *score(void *s, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    const struct shears_head h = head_of(c->head);
    const struct shears_cache mine = cache_of(c, &h);
    own_of(c->head)->theirs.score(((struct state *)s)->rows, &mine, (const void *)t, scratch);
    for (int i = 0; i < c->n_slot; i++)
        if (isnan(scratch[i]))                      /* an order must be one */
            scratch[i] = -INFINITY;
    return scratch;
}

static const float *by_position(void *s, const struct sh_cache *c, const struct sh_step *t, float *scratch)
{
    (void)s;
    (void)t;
    for (int i = 0; i < c->n_slot; i++)
        scratch[i] = (float)c->pos[i];
    return scratch;
}

static int is_name(const char *name)
{
    return name && *name && strlen(name) < 48 && !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")];
}

static int take_knobs(struct own *o, struct shears_error **e)
{
    int n = 0;
    for (const struct shears_knob *k = o->theirs.knobs; k && k->name; k++) {
        if (n == SH_MAX_KNOBS)
            return sh_lib_misused(e, "policy %s: found more knobs, expected at most %d", o->theirs.name, SH_MAX_KNOBS);
        if (!is_name(k->name) || !(k->least <= k->value && k->value <= k->most) || !isfinite(k->most - k->least))
            return sh_lib_misused(e, "policy %s: knob %d: found \"%.40s\" with %g in [%g, %g], expected a name of a-z, "
                                  "0-9 and _ and least <= value <= most", o->theirs.name, n, k->name, k->value,
                                  k->least, k->most);
        if ((!strcmp(k->name, "sinks") || !strcmp(k->name, "recent") || !strcmp(k->name, "drop")) &&
            (k->least < 0 || k->most > 1 << 20))
            return sh_lib_misused(e, "policy %s: knob %s: found the limits %g and %g, expected them in [0, %d]",
                                  o->theirs.name, k->name, k->least, k->most, 1 << 20);
        o->knob[n++] = (struct sh_knob){k->name, k->value, k->least, k->most, NULL, "",
                                        k->is_whole ? SH_KNOB_WHOLE : SH_KNOB_ANY};
    }
    return 0;
}

static int make(struct own *o, const struct shears_policy *p, struct shears_error **e)
{
    if (sh_lib_given(e, "shears_replay", "a policy", p))
        return -1;
    if (p->bytes != sizeof *p)
        return sh_lib_misused(e, "shears_replay: found a policy of %zu bytes, expected %zu", p->bytes, sizeof *p);
    if (!is_name(p->name))
        return sh_lib_misused(e, "shears_replay: found the policy name \"%.60s\", expected a-z, 0-9 and _, at most 47",
                              p->name ? p->name : "NULL");
    for (int i = 0; sh_policies[i]; i++)
        if (!strcmp(sh_policies[i]->name, p->name))
            return sh_lib_misused(e, "policy %s: found the name of a built-in policy, expected another", p->name);
    if (p->rows > MOST_ROWS || p->needs & ~(unsigned)NEEDS)
        return sh_lib_misused(e, "policy %s: found %u rows and needs %#x, expected at most %d and SHEARS_NEEDS_ alone",
                              p->name, p->rows, p->needs, MOST_ROWS);
    o->theirs = *p;
    if (take_knobs(o, e))
        return -1;
    o->policy = (struct sh_policy){
        .name = p->name, .summary = "", .knobs = o->knob, .needs = p->needs | SH_NEEDS_SCORES,
        .state_bytes = sizeof(struct state), .arrays = arrays, .admit = p->admit ? admit : NULL,
        .observe = p->observe ? observe : NULL, .score = p->score ? score : by_position};
    return 0;
}

struct shears_result *shears_replay(const struct shears_policy *policy, const struct shears_option *options,
                                    const struct shears_watch *watch, struct shears_error **e)
{
    struct own o = {0};
    struct sh_err why = {0};
    if (make(&o, policy, e))
        return NULL;
    struct sh_out *out = sh_lib_run("replay", options, watch, &o.policy, &why);
    if (!out)
        sh_lib_fail(e, &why);
    return out ? sh_lib_result(out) : NULL;
}
