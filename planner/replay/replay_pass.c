/* SPDX-License-Identifier: Apache-2.0 */
/* See replay.h. */

#include <stdlib.h>

#include "planner/replay/replay.h"
#include "src/base/mem.h"

enum way { BY_CELL, BY_STACK, BY_BOUND };

struct sh_replay_pass {
    int n_policy, n_budget;
    struct sh_replay_cell *cell;        /* as asked for */
    struct { enum way way; int index; } *policy;        /* index: in the stack */
    struct sh_replay *cells;            /* NULL: no policy needs them */
    struct sh_replay_stack *stack;
    struct sh_replay_bound *bound;
};

/* The spec of a policy, from whichever of its budgets is not left out. */
static const struct sh_policy_spec *spec_of(const struct sh_replay_pass *p, int policy)
{
    for (int b = 0; b < p->n_budget; b++)
        if (p->cell[policy * p->n_budget + b].spec)
            return p->cell[policy * p->n_budget + b].spec;
    return NULL;
}

static enum way way_of(const struct sh_replay_setup *setup, const struct sh_policy_spec *spec, int each_step)
{
    if (spec && spec->policy->needs & SH_IS_BOUND)
        return BY_BOUND;
    return spec && !each_step && sh_replay_stack_can(setup, spec) ? BY_STACK : BY_CELL;
}

static void begin_cells(struct sh_replay_pass *p, const struct sh_replay_setup *setup)
{
    int n = p->n_policy * p->n_budget, any = 0;
    struct sh_replay_cell *cell = xcalloc((size_t)n, sizeof *cell);
    for (int i = 0; i < n; i++)
        if (p->policy[i / p->n_budget].way == BY_CELL && p->cell[i].spec) {
            cell[i] = p->cell[i];
            any = 1;
        }
    if (any)
        p->cells = sh_replay_new(setup, cell, n);
    free(cell);
}

struct sh_replay_pass *sh_replay_pass_new(const struct sh_replay_setup *setup, const struct sh_replay_cell *cell,
                                          int n_policy, int n_budget, int each_step)
{
    struct sh_replay_pass *p = xcalloc(1, sizeof *p);
    const struct sh_policy_spec **stacked = xcalloc((size_t)n_policy, sizeof *stacked);
    int n_stacked = 0, bounded = 0;
    p->n_policy = n_policy;
    p->n_budget = n_budget;
    p->cell = xcalloc((size_t)n_policy * (size_t)n_budget, sizeof *p->cell);
    p->policy = xcalloc((size_t)n_policy, sizeof *p->policy);
    for (int i = 0; i < n_policy * n_budget; i++)
        p->cell[i] = cell[i];
    for (int i = 0; i < n_policy; i++) {
        const struct sh_policy_spec *spec = spec_of(p, i);
        p->policy[i].way = way_of(setup, spec, each_step);
        bounded |= p->policy[i].way == BY_BOUND;
        if (p->policy[i].way == BY_STACK) {
            p->policy[i].index = n_stacked;
            stacked[n_stacked++] = spec;
        }
    }
    begin_cells(p, setup);
    if (n_stacked)
        p->stack = sh_replay_stack_new(setup, stacked, n_stacked);
    if (bounded)
        p->bound = sh_replay_bound_new(setup);
    free(stacked);
    return p;
}

void sh_replay_pass_free(struct sh_replay_pass *p)
{
    if (!p)
        return;
    sh_replay_free(p->cells);
    sh_replay_stack_free(p->stack);
    sh_replay_bound_free(p->bound);
    free(p->cell);
    free(p->policy);
    free(p);
}

void sh_replay_pass_set_watch(struct sh_replay_pass *p, sh_replay_watch *fn, void *to)
{
    if (p->cells)
        sh_replay_set_watch(p->cells, fn, to);
}

int sh_replay_pass_row(struct sh_replay_pass *p, int t, int first_key, const float *const *row, struct sh_err *e)
{
    return (p->cells && sh_replay_row(p->cells, t, first_key, row, e)) ||
           (p->stack && sh_replay_stack_row(p->stack, t, first_key, row, e)) ||
           (p->bound && sh_replay_bound_row(p->bound, t, first_key, row, e)) ? -1 : 0;
}

void sh_replay_pass_sums(struct sh_replay_pass *p, int cell, struct sh_replay_sums *out)
{
    int policy = cell / p->n_budget, budget = p->cell[cell].budget;
    *out = (struct sh_replay_sums){0};
    if (!p->cell[cell].spec)
        return;
    if (p->policy[policy].way == BY_STACK)
        sh_replay_stack_sums(p->stack, p->policy[policy].index, budget, out);
    else if (p->policy[policy].way == BY_BOUND)
        sh_replay_bound_sums(p->bound, budget, out);
    else
        *out = *sh_replay_sums(p->cells, cell);
}
