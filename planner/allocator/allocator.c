/* SPDX-License-Identifier: Apache-2.0 */
/* The list of allocators, their names as people write them, and what must hold before one runs. */
#include "planner/allocator/allocator.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "planner/policy/policy.h"
#include "src/base/err.h"

/* Every allocator, one line each: allocator_<name>.c exports sh_allocator_<name>, allocator_pyramid.c the funnel as
 * well. */
#define SH_ALLOCATORS(X) \
    X(uniform)           \
    X(funnel)            \
    X(pyramid)           \
    X(persistence)       \
    X(entropy)           \
    X(adakv)             \
    X(greedy)           \
    X(loss)

#define DECLARE(name) extern const struct sh_allocator sh_allocator_##name;
#define ENTRY(name) &sh_allocator_##name,
SH_ALLOCATORS(DECLARE)
const struct sh_allocator *const sh_allocators[] = {SH_ALLOCATORS(ENTRY) NULL};

static const struct sh_allocator *find(const char *name, size_t length, struct sh_err *e)
{
    char all[64 * 32] = "";
    for (int i = 0; sh_allocators[i]; i++) {
        if (strlen(sh_allocators[i]->name) == length && !memcmp(sh_allocators[i]->name, name, length))
            return sh_allocators[i];
        size_t at = strlen(all);
        snprintf(all + at, sizeof all - at, "%s%s", i ? "\n" : "", sh_allocators[i]->name);
    }
    sh_misused(e, "unknown allocator \"%.*s\"", (int)(length < 64 ? length : 64), name);
    sh_hint_near(e, name, length, all, "shears plan --help lists them");
    return NULL;
}

int sh_allocator_parse(const char *text, struct sh_allocator_spec *out, struct sh_err *e)
{
    struct sh_allocator_spec s = {0};
    size_t name = strcspn(text, ":");
    s.allocator = find(text, name, e);
    if (!s.allocator || sh_knobs_parse(s.allocator->name, s.allocator->knobs, text + name, s.knob, e))
        return -1;
    *out = s;
    return 0;
}

const char *sh_allocator_knobs(const struct sh_allocator_spec *s, char text[SH_POLICY_TEXT])
{
    return sh_knobs_text(s->allocator->knobs, s->knob, text);
}

double sh_allocator_knob(const struct sh_allocator_spec *s, const char *name)
{
    int i = 0;
    while (strcmp(s->allocator->knobs[i].name, name))
        i++;
    return s->knob[i];
}

int sh_allocation_heads(const struct sh_allocation *a, int layer)
{
    return a->heads ? a->heads[layer] : a->n_head;
}

int sh_allocation_first(const struct sh_allocation *a, int layer)
{
    int first = 0;
    for (int l = 0; l < layer; l++)
        first += sh_allocation_heads(a, l);
    return first;
}

/* ---- evidence ---- */

struct numbers {                        /* of one kind of evidence */
    enum sh_evidence kind;
    const char *what;
    const double *x;                    /* [head][each], in [0, most]                             */
    int by_head;                        /* else [n_layer][each]                                   */
    size_t each;
    double most;
};

static int are_sound(const struct numbers *n, const double *x)
{
    size_t i = 0;
    while (i < n->each && x[i] >= 0 && x[i] <= n->most)
        i++;
    return i == n->each;
}

static int check_numbers(const char *who, const struct numbers *n, const struct sh_allocation *a, struct sh_err *e)
{
    const double *x = n->x;
    if (!x)
        return sh_fail(e, "the allocator %s needs %s, but no measurements were given", who, n->what);
    for (int l = 0; l < a->n_layer; l++)
        for (int h = 0; h < (n->by_head ? sh_allocation_heads(a, l) : 1); h++, x += n->each) {
            int number = a->number ? a->number[l] : l;
            if (!are_sound(n, x))
                return n->by_head ? sh_fail(e, "the allocator %s needs %s, which layer %d, head %d does not have", who,
                                            n->what, number, h)
                                  : sh_fail(e, "the allocator %s needs %s, which layer %d does not have", who, n->what,
                                            number);
        }
    return 0;
}

static int rises(const int *point, int n, int from)
{
    int sound = n > 0 && point && point[0] == from;
    for (int i = 1; sound && i < n; i++)
        sound = point[i] > point[i - 1];
    return sound;
}

static int check(const struct sh_allocator *p, const struct sh_allocation *a, struct sh_err *e)
{
    const struct numbers all[] = {
        {SH_EVIDENCE_PERSISTENCE, "persistence ratios", a->persistence, 0, 1, 1},
        {SH_EVIDENCE_ENTROPY, "entropies", a->entropy, 1, 1, HUGE_VAL},
        {SH_EVIDENCE_SCORE, "attention per key", a->score, 1, (size_t)a->n_token, HUGE_VAL},
        {SH_EVIDENCE_CURVE, "budget curves", a->curve, 1, a->n_point > 0 ? (size_t)a->n_point : 1,
         1 + 1e-3},                     /* kept mass of stored rows is 1 within rounding */
        {SH_EVIDENCE_LOSS, "losses of layers", a->loss, 0, a->n_loss > 0 ? (size_t)a->n_loss : 1, DBL_MAX}};
    if (a->mean < a->floor || a->mean > a->n_token)
        return sh_misused(e, "a mean of %d tokens per head is out of range: every head needs %d, and the sequence "
                          "has %d", a->mean, a->floor, a->n_token);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (p->needs & all[i].kind && check_numbers(p->name, &all[i], a, e))
            return -1;
    if (p->needs & SH_EVIDENCE_LOSS && a->floor < a->n_token &&
        (!rises(a->loss_point, a->n_loss, a->floor) || a->loss_point[a->n_loss - 1] >= a->n_token))
        return sh_fail(e, "the budgets of losses must increase from %d to less than %d", a->floor, a->n_token);
    return !(p->needs & SH_EVIDENCE_CURVE) ||
                   (rises(a->point, a->n_point, a->floor) && a->point[a->n_point - 1] == a->n_token)
               ? 0 : sh_fail(e, "the budgets of a curve must increase from %d to %d", a->floor, a->n_token);
}

int sh_allocate(const struct sh_allocator_spec *s, const struct sh_allocation *a, int *budget, struct sh_err *e)
{
    if (check(s->allocator, a, e))
        return -1;
    s->allocator->share(a, s->knob, budget);
    return 0;
}
