/* SPDX-License-Identifier: Apache-2.0 */
/* See replay.h. A row is handled after the policy has seen it, together with the decision for the next token:
 * both need, of every place of the list, what its token has, and fetch it at once. */
#include "planner/replay/replay.h"

#include <stdlib.h>
#include <string.h>

#include "planner/policy/budget_list.h"
#include "planner/policy/state.h"
#include "planner/policy/victims.h"
#include "planner/replay/list_walk.h"
#include "planner/replay/replay_row.h"
#include "src/base/clones.h"
#include "src/base/mem.h"
#include "src/base/num.h"

enum { FLUSH = 16 };                    /* rows that are added up in f32 */

struct walk {                           /* of one policy */
    const struct sh_policy_spec *spec;
    struct sh_policy_head head;
    void *state;
    struct sh_budget_list list;
    float *lately[SH_N_LINEAR];         /* [room]: what the tokens listed got in the last rows */
    double *before[SH_N_LINEAR];        /* [room]: … and in the rows before those */
    double *upto[SH_N_LINEAR];          /* [room]: sums of that down the list */
    int sinks, recent;
};

struct sh_replay_stack {
    struct sh_replay_setup setup;
    struct walk *walk;
    int n_walk, n_row, window;          /* window: places of a list */
    struct sh_replay_query query;
    struct sh_cache cache;
    int *pos;                           /* [n_token, padded as policy.h says] 0, 1, 2, …: slots are positions */
    float *age;                         /* [n_token] 0, 1, 2, …: the scores of policies that go by position */
    float *score, *future;              /* [n_token] */
    double *left;                       /* [n_token], NULL unless a policy needs the future */
    int64_t *pair;                      /* [1 + n_token], budget_list.h's; below: the row, or its mass */
    int64_t *rest;                      /* group > 1: [1 + n_token] no_sink above, pivotal below */
    int64_t *seen;                      /* [SH_LIST_RUN]: rest, by place */
    long long rows[SH_N_LINEAR];        /* that have a figure … */
    long long whole[SH_N_LINEAR];       /* … of them those in which everything was kept */
    double *grown;                      /* [2 + n_token]: sum of t / (t + 1) over rows 1 <= t < i */
    int is_summed;
};

int sh_replay_stack_can(const struct sh_replay_setup *setup, const struct sh_policy_spec *spec)
{
    const struct sh_policy *p = spec->policy;
    int keeps_all = p->keeps_all && p->keeps_all(spec->knob, setup->layer);
    return setup->rows == SH_ROWS_RECORDED && !keeps_all && sh_policy_knob(spec, "drop", 1) == 1 &&
           sh_policy_is_stack(spec);
}

static void begin_walk(struct walk *w, const struct sh_replay_stack *s, const struct sh_policy_spec *spec)
{
    const struct sh_replay_setup *setup = &s->setup;
    w->spec = spec;
    w->sinks = (int)sh_policy_knob(spec, "sinks", 0);
    w->recent = (int)sh_policy_knob(spec, "recent", 0);
    w->head = (struct sh_policy_head){.policy = spec->policy, .knob = spec->knob,
                                      .layer = setup->layer, .head = setup->head, .n_layer = setup->n_layer,
                                      .budget = setup->n_token, .prefill = setup->prefill,
                                      .capacity = setup->n_token, .n_token = setup->n_token,
                                      .d_head = setup->d_head, .seed = setup->seed};
    w->state = sh_state_new(spec->policy, &w->head);
    sh_state_restart(w->state, spec->policy, &w->head);
    sh_budget_list_begin(&w->list, s->window);
    for (int f = 0; f < SH_N_LINEAR; f++) {
        w->lately[f] = xaligned((size_t)w->list.room * sizeof(float));
        memset(w->lately[f], 0, (size_t)w->list.room * sizeof(float));
        w->before[f] = xcalloc((size_t)w->list.room, sizeof(double));
        w->upto[f] = xcalloc((size_t)w->list.room, sizeof(double));
    }
    if (setup->prefill <= 0)
        sh_budget_list_start(&w->list, 0, 0, s->pair);
}

struct sh_replay_stack *sh_replay_stack_new(const struct sh_replay_setup *setup,
                                            const struct sh_policy_spec *const *spec, int n_policy)
{
    struct sh_replay_stack *s = xcalloc(1, sizeof *s);
    size_t n = (size_t)setup->n_token;
    s->setup = *setup;
    s->window = setup->window > 0 && setup->window < setup->n_token ? setup->window : setup->n_token;
    sh_replay_query_begin(&s->query, setup->n_token, setup->group);
    s->query.has_sinks = setup->has_sinks;
    s->pos = xcalloc(n + 31, sizeof *s->pos);
    s->age = xmalloc((n + 1) * sizeof *s->age);
    for (int i = 0; i < setup->n_token; i++) {
        s->pos[i] = i;
        s->age[i] = (float)i;
    }
    s->score = xcalloc(n + 1, sizeof *s->score);
    s->pair = xcalloc(n + 1, sizeof *s->pair);
    s->pair[0] = SH_PAIR_EMPTY;
    s->rest = xcalloc(n + 1, sizeof *s->rest);
    s->seen = xcalloc(SH_LIST_RUN, sizeof *s->seen);
    s->grown = xcalloc(n + 2, sizeof *s->grown);
    for (int t = 1; t <= setup->n_token; t++)
        s->grown[t + 1] = s->grown[t] + (double)t / (t + 1);
    if (setup->received) {
        s->future = xcalloc(n + 1, sizeof *s->future);
        s->left = xmalloc(n * sizeof *s->left);
        memcpy(s->left, setup->received, n * sizeof *s->left);
    }
    s->cache = (struct sh_cache){.pos = s->pos, .k = setup->k, .v = setup->v, .d_head = setup->d_head};
    s->n_walk = n_policy;
    s->walk = xcalloc((size_t)n_policy, sizeof *s->walk);
    for (int i = 0; i < n_policy; i++)
        begin_walk(&s->walk[i], s, spec[i]);
    return s;
}

void sh_replay_stack_free(struct sh_replay_stack *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n_walk; i++) {
        free(s->walk[i].state);
        sh_budget_list_end(&s->walk[i].list);
        for (int f = 0; f < SH_N_LINEAR; f++) {
            free(s->walk[i].lately[f]);
            free(s->walk[i].before[f]);
            free(s->walk[i].upto[f]);
        }
    }
    sh_replay_query_end(&s->query);
    free(s->walk);
    free(s->pos);
    free(s->age);
    free(s->score);
    free(s->future);
    free(s->left);
    free(s->pair);
    free(s->rest);
    free(s->seen);
    free(s->grown);
    free(s);
}

/* pair[i]: the rank of score[i] above, the bits of low[i] below. */
SH_CLONES static void pack(int64_t *restrict pair, const float *restrict score, const float *restrict low, int n)
{
    for (int i = 0; i < n; i++) {
        int32_t rank = sh_score_order(score[i]);
        rank = rank < INT32_MAX ? rank : INT32_MAX - 1;
        pair[i] = (int64_t)((uint64_t)(uint32_t)rank << 32 | sh_bits(low[i]));
    }
}

SH_CLONES static void pack_two(int64_t *restrict pair, const float *restrict high, const float *restrict low, int n)
{
    for (int i = 0; i < n; i++)
        pair[i] = (int64_t)((uint64_t)sh_bits(high[i]) << 32 | sh_bits(low[i]));
}

static void set_rank(int64_t *pair, int32_t rank)
{
    *pair = (int64_t)((uint64_t)*pair & UINT32_MAX) + (int64_t)rank * ((int64_t)1 << 32);
}

/* What the next token's decision needs of each token, and what this row has of it. Only tokens from `first` on are
 * listed. */
static void rank_tokens(struct sh_replay_stack *s, struct walk *w, int first, int decides)
{
    int next = s->query.t + 1;
    struct sh_step step = {.t = next, .future = s->future};
    const float *score = NULL, *low = s->setup.group > 1 ? s->query.weight[SH_KEPT_MASS] : s->query.row;
    if (decides)
        score = sh_state_score(w->state, w->spec->policy, &s->cache, &step, s->score);
    pack(s->pair + first + 1, (score ? score : s->age) + first, low + first + 1, next - first);
    for (int i = first; i < w->sinks && i < next; i++)
        set_rank(&s->pair[i + 1], INT32_MAX);
    for (int i = next - w->recent > first ? next - w->recent : first; i < next; i++)
        set_rank(&s->pair[i + 1], INT32_MAX);
    if (next >= s->window)              /* dead when the next one comes */
        set_rank(&s->pair[next - s->window + 1], INT32_MIN);
}

SH_CLONES static void flush(double *restrict before, float *restrict lately, int n)
{
    for (int i = 0; i < n; i++) {
        before[i] += (double)lately[i];
        lately[i] = 0;
    }
}

static void flush_walk(struct walk *w)
{
    for (int f = 0; f < SH_N_LINEAR; f++)
        flush(w->before[f], w->lately[f], sh_budget_list_whole(&w->list));
}

/* The row, and what it decides for the token that comes next. */
static void step(struct sh_replay_stack *s, struct walk *w, const float *queries)
{
    int next = s->query.t + 1, first = next > s->window ? next - s->window : 0;
    int decides = next < s->setup.n_token && next >= s->setup.prefill;
    struct sh_step seen = {.t = s->query.t, .n_row = next, .row = s->query.row + 1, .q = queries,
                           .n_query = s->setup.group};
    s->cache.head = &w->head;
    if (w->spec->policy->observe)
        w->spec->policy->observe(w->state, &s->cache, &seen);
    if (!decides && !w->list.n)
        return;
    rank_tokens(s, w, first, decides);
    if (!w->list.n) {
        sh_budget_list_start(&w->list, next, next + 1 > s->window ? next + 1 - s->window : 0, s->pair);
        return;
    }
    const struct sh_replay_query *q = &s->query;
    struct sh_list_row row = {.pair = s->pair, .rest = s->setup.group > 1 ? s->rest : NULL, .seen = s->seen,
                              .mass = q->scale[SH_KEPT_MASS], .no_sink = q->scale[SH_KEPT_MASS_NO_SINK],
                              .pivotal = q->scale[SH_PIVOTAL_RECALL], .limit = q->limit, .self = q->t + 1};
    sh_list_walk(&w->list, w->lately, &row, decides ? next : -1);
}

static void admit(struct sh_replay_stack *s, int t)
{
    s->cache.n_slot = s->cache.n = t + 1;
    s->cache.newest = t;
    for (int i = 0; i < s->n_walk; i++) {
        const struct sh_policy *p = s->walk[i].spec->policy;
        s->cache.head = &s->walk[i].head;
        if (p->admit)
            p->admit(s->walk[i].state, t, &s->cache, &(struct sh_step){.t = t});
    }
}

int sh_replay_stack_row(struct sh_replay_stack *s, int t, int first_key, const float *const *row, struct sh_err *e)
{
    int group = s->setup.group;
    float queries[s->setup.q ? (size_t)group * (size_t)s->setup.d_head : 1];
    if (sh_replay_query_row(&s->query, t, first_key, row, e))
        return -1;
    for (int f = 0; f < SH_N_LINEAR; f++) {
        s->rows[f] += s->query.has[f] > 0;
        s->whole[f] += s->query.has[f] > 0 && t < s->setup.prefill;
    }
    const float *q = s->setup.q ? sh_replay_queries(&s->setup, t, queries) : NULL;
    if (s->left)
        sh_replay_look_ahead(&s->setup, t, first_key, row, s->left, s->future);
    if (group > 1)
        pack_two(s->rest + first_key + 1, s->query.weight[SH_KEPT_MASS_NO_SINK] + first_key + 1,
                 s->query.weight[SH_PIVOTAL_RECALL] + first_key + 1, t + 1 - first_key);
    admit(s, t);
    for (int i = 0; i < s->n_walk; i++)
        step(s, &s->walk[i], q);
    s->n_row = t + 1;
    if (s->n_row % FLUSH == 0)
        for (int i = 0; i < s->n_walk; i++)
            flush_walk(&s->walk[i]);
    s->is_summed = 0;
    return 0;
}

static void sum_up(struct sh_replay_stack *s)
{
    for (int i = 0; i < s->n_walk; i++) {
        struct walk *w = &s->walk[i];
        flush_walk(w);
        for (int f = 0; f < SH_N_LINEAR; f++) {
            double sum = (double)s->whole[f];
            for (int b = 0; b < s->window; b++)
                w->upto[f][b] = sum += w->before[f][sh_budget_list_at(b)];
        }
    }
    s->is_summed = 1;
}

/* What depends on numbers of tokens only. Row t < prefill keeps t + 1, a later one min(t + 1, budget). */
static void count_tokens(const struct sh_replay_stack *s, int budget, struct sh_replay_sums *out)
{
    int n = s->n_row, prefill = s->setup.prefill > 0 ? s->setup.prefill : 0;
    int early = prefill < n ? prefill : n, grown = budget < n ? budget : n;
    int full = budget > prefill + 1 ? budget : prefill + 1;             /* the first row of which one token left */
    if (!prefill)
        full = budget;
    grown = grown > early ? grown : early;
    out->sum[SH_OCCUPANCY] = (double)grown * (grown + 1) / 2 + (double)(n - grown) * budget;
    out->rows[SH_OCCUPANCY] = n;
    out->peak_tokens = grown;
    out->rows[SH_STABILITY] = n > 0 ? n - 1 : 0;
    out->sum[SH_STABILITY] = s->grown[n < full ? n : full];
    if (n > full)
        out->sum[SH_STABILITY] += (double)(n - full) * (budget - 1) / (budget + 1);
    if (prefill && n > prefill && budget <= prefill)                    /* all but budget - 1 leave at once */
        out->sum[SH_STABILITY] += (double)(budget - 1 - prefill) / (prefill + 1);
}

void sh_replay_stack_sums(struct sh_replay_stack *s, int policy, int budget, struct sh_replay_sums *out)
{
    const struct walk *w = &s->walk[policy];
    struct sh_policy_head head = w->head;
    budget = budget < s->window ? budget : s->window;
    *out = (struct sh_replay_sums){.peak_tokens = 0};
    if (!s->is_summed)
        sum_up(s);
    for (int f = 0; f < SH_N_LINEAR; f++) {
        out->sum[f] = w->upto[f][budget - 1];
        out->rows[f] = s->rows[f];
    }
    count_tokens(s, budget, out);
    int prefill = s->setup.prefill < s->setup.n_token ? s->setup.prefill : s->setup.n_token;
    head.budget = budget;
    head.capacity = budget > prefill ? budget : prefill;
    out->policy_bytes = sh_state_resident_bytes(w->spec->policy, &head);
}
