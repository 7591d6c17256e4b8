/* SPDX-License-Identifier: Apache-2.0 */
/* See live_plan.h: what is asked, the texts' two parts, the settings one after another, and the plan with its
 * evidence. */
#include "src/app/plan/live_plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/app/plan/plan_measure.h"
#include "src/base/mem.h"
#include "src/base/rng.h"

enum { LENGTH = 512 };                  /* tokens of a sequence, by default                       */

void sh_candidates_free(struct sh_candidate *c, int n)
{
    for (int i = 0; i < n; i++) {
        free(c[i].budget);
        free(c[i].at);
    }
    free(c);
}

char *sh_live_setting_name(const struct sh_live_setting *s)
{
    char allocator[SH_ALLOT_TEXT], knobs[SH_POLICY_TEXT];
    char *full = xasprintf("%s:%s", s->policy.policy->name, sh_policy_knobs(&s->policy, knobs));
    int is_bound;
    char *policy = sh_policy_label(full, &is_bound);
    char *name = xasprintf("%s, %s", policy, sh_allot_text(&s->allocator, allocator));
    free(policy);
    free(full);
    return name;
}

/* ---- the request ---- */

/* -1: it cannot be planned for. */
static int check_policy(const struct sh_live_plan *w, const struct sh_policy_spec *s, struct sh_err *e)
{
    const char *name = s->policy->name;
    if (s->policy->needs & (SH_NEEDS_FUTURE | SH_IS_BOUND))
        return sh_misused(e, "--policy %s: uses future attention, which no live cache has", name);
    if (s->policy->needs & SH_NEEDS_PROMPT && !w->a->live.prefill)
        return sh_misused(e, "--policy %s requires --prefill N: it decides when the prompt has been read", name);
    if (sh_live_keeps_all(s, sh_model_arch(w->live.model)->n_layer))
        return sh_misused(e, "--policy %s keeps every token, so there is nothing to plan", name);
    if (sh_policy_least_budget(s) >= w->n_token)
        return sh_misused(e, "--policy %s protects %d tokens (sinks and recent), but the longest text has %d", name,
                          sh_policy_protected(s, w->n_token), w->n_token);
    return 0;
}

/* Where nobody said how many recent tokens stay: half of what a drop leaves, which serves most models better than a few
 * (doc/planning.md). Where they are also the rows that vote, a few: 16, or fewer in short texts. */
static void set_recent(const struct sh_live_plan *w, struct sh_policy_spec *s)
{
    int most = w->n_token / 32 < 1 ? 1 : w->n_token / 32 < 16 ? w->n_token / 32 : 16;
    double drop = sh_policy_knob(s, "drop", 1);
    for (int i = 0; s->policy->knobs && s->policy->knobs[i].name; i++) {
        const struct sh_knob *k = &s->policy->knobs[i];
        if (!strcmp(k->name, "recent"))
            s->knob[i] = k->whole == SH_KNOB_WHOLE_OR_SHARE ? (drop < 1 ? (1 - drop) / 2 : 0.5)
                                                            : s->knob[i] > most ? most : s->knob[i];
    }
}

/* Unless it is there. */
static void add_policy(struct sh_policy_spec *to, int *n, const struct sh_policy_spec *s)
{
    for (int i = 0; i < *n; i++)
        if (to[i].policy == s->policy && !memcmp(to[i].knob, s->knob, sizeof s->knob))
            return;
    to[(*n)++] = *s;
}

/* Without --policy: what serves most texts well. All: first these, then every other one that can run. */
static void add_usual(const struct sh_live_plan *w, int all, struct sh_policy_spec *to, int *n)
{
    static const char *const usual[] = {"h2o", "roco", "scissorhands:counts=rate,drop=1", "window"};
    struct sh_policy_spec s;
    struct sh_err ignored;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        (void)sh_policy_parse(usual[i], &s, &ignored);
        set_recent(w, &s);
        if (!check_policy(w, &s, &ignored))
            add_policy(to, n, &s);
    }
    for (int i = 0; all && sh_policies[i]; i++) {
        if (sh_policy_parse(sh_policies[i]->name, &s, &ignored))
            continue;
        set_recent(w, &s);
        if (!check_policy(w, &s, &ignored))
            add_policy(to, n, &s);
    }
}

enum { POLICIES = 64, ALLOCATORS = 16 };

/* The next of some names with knobs, "h2o:recent=5,score=sum,window": a comma ends one unless a knob follows. *list
 * moves on; NULL: there is none. For free(). */
static char *next_name(const char **list)
{
    const char *from = *list, *end = from;
    for (end += strcspn(end, ","); *end; end += 1 + strcspn(end + 1, ","))
        if (end[1 + strcspn(end + 1, ":=,")] != '=')
            break;
    *list = *end ? end + 1 : end;
    return *from ? xasprintf("%.*s", (int)(end - from), from) : NULL;
}

static int read_policy(const struct sh_live_plan *w, const char *text, struct sh_policy_spec *to, int *n,
                       struct sh_err *e)
{
    struct sh_policy_spec s;
    if (!strcmp(text, "all")) {
        add_usual(w, 1, to, n);
        return 0;
    }
    if (sh_policy_parse(text, &s, e))
        return sh_err_prefix(e, "--policy");
    if (check_policy(w, &s, e))
        return -1;
    if (*n >= POLICIES)
        return sh_misused(e, "--policy: more than %d policies", POLICIES);
    add_policy(to, n, &s);
    return 0;
}

static int read_policies(const struct sh_live_plan *w, struct sh_policy_spec *to, int *n, struct sh_err *e)
{
    const struct sh_list *typed = &w->a->policy;
    if (!typed->n)
        add_usual(w, 0, to, n);
    for (int i = 0; i < typed->n; i++) {
        const char *list = typed->at[i];
        for (char *name; (name = next_name(&list));) {
            int bad = read_policy(w, name, to, n, e);
            free(name);
            if (bad)
                return -1;
        }
    }
    return *n ? 0 : sh_misused(e, "--length: found %d tokens, too few for any policy to leave out some", w->n_token);
}

struct asked {                          /* an allocator                                           */
    struct sh_allocator_spec spec;
    int may_lack;                       /* as in struct sh_live_setting                           */
};

/* Unless it is there. */
static void add_allocator(struct asked *to, int *n, const struct sh_allocator_spec *s, int may_lack)
{
    for (int i = 0; i < *n; i++)
        if (to[i].spec.allocator == s->allocator && !memcmp(to[i].spec.knob, s->knob, sizeof s->knob)) {
            to[i].may_lack &= may_lack;
            return;
        }
    to[(*n)++] = (struct asked){*s, may_lack};
}

static int read_allocator(const struct sh_live_plan *w, const char *text, struct asked *to, int *n, struct sh_err *e)
{
    struct sh_allocator_spec s;
    if (!strcmp(text, "all")) {
        for (int i = 0; sh_allocators[i]; i++)
            if (!sh_allocator_parse(sh_allocators[i]->name, &s, e) && sh_live_can_allot(w, &s))
                add_allocator(to, n, &s, 1);
        return 0;
    }
    if (*n >= ALLOCATORS)
        return sh_misused(e, "--allocator: more than %d allocators", ALLOCATORS);
    if (sh_allocator_parse(text, &s, e))
        return sh_err_prefix(e, "--allocator");
    add_allocator(to, n, &s, 0);
    return 0;
}

static int read_allocators(const struct sh_live_plan *w, struct asked *to, int *n, struct sh_err *e)
{
    const struct sh_list *typed = &w->a->allocator;
    if (!typed->n) {        /* each is the better one on some texts; greedy shows whether loss has a chance */
        *n = 2;
        return sh_allocator_parse("greedy", &to[0].spec, e) || sh_allocator_parse("loss", &to[1].spec, e);
    }
    for (int i = 0; i < typed->n; i++) {
        const char *list = typed->at[i];
        for (char *name; (name = next_name(&list));) {
            int bad = read_allocator(w, name, to, n, e);
            free(name);
            if (bad)
                return -1;
        }
    }
    return *n ? 0 : sh_misused(e, "--allocator: found no name");
}

/* Every policy under every allocator. */
static int read_settings(struct sh_live_plan *w, struct sh_err *e)
{
    struct sh_policy_spec policy[POLICIES + 32];
    struct asked allocator[ALLOCATORS + 32] = {0};
    int n = 0, n_allocator = 0;
    if (read_allocators(w, allocator, &n_allocator, e) || read_policies(w, policy, &n, e))
        return -1;
    w->setting = xcalloc((size_t)n * (size_t)n_allocator, sizeof *w->setting);
    for (int p = 0; p < n; p++)
        for (int i = 0; i < n_allocator; i++)
            w->setting[w->n_setting++] = (struct sh_live_setting){
                .policy = policy[p], .allocator = allocator[i].spec, .may_lack = allocator[i].may_lack};
    return 0;
}

/* ---- the texts ---- */

/* Those of a trace, cut to the length. */
static int take_recorded(struct sh_live_plan *w, struct sh_err *e)
{
    struct sh_runs runs;
    struct sh_texts *t = &w->source.texts;
    char fingerprint[24];
    int bad = 0, length = (int)w->a->length;
    if (sh_runs_open(&runs, w->store, (int)w->a->run, e))
        return -1;
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, sh_model_fingerprint(w->live.model));
    for (int r = 0; r < runs.n && !bad; r++) {
        if (strcmp(runs.run[r].fingerprint, fingerprint))
            bad = sh_fail(e, "%s: run %d: found the texts of another model, %s; expected those of %s", w->a->db,
                          runs.run[r].id, runs.run[r].model, w->a->live.model);
        for (int i = 0; i < runs.n_sequence[r] && !bad; i++) {
            struct sh_trace_sequence q = {.source = xstrdup(runs.sequence[r][i].source)};
            bad = sh_store_tokens(w->store, runs.sequence[r][i].id, &q.tokens, &q.n_tokens, e);
            q.n_tokens = length && q.n_tokens > length ? length : q.n_tokens;
            t->sequence = xreallocarray(t->sequence, (size_t)t->n + 1, sizeof *t->sequence);
            t->sequence[t->n++] = q;
        }
    }
    sh_runs_close(&runs);
    return bad ? -1 : sh_texts_check_predicted(t, sh_model_arch(w->live.model), e);
}

static int open_texts(struct sh_live_plan *w, struct sh_err *e)
{
    const struct sh_live_plan_args *a = w->a;
    int most = sh_model_arch(w->live.model)->max_pos, length = most < LENGTH ? most : LENGTH;
    int is_recorded = !a->text.n && !a->jsonl && !a->tokens;
    w->source = (struct sh_text_source){.path = a->live.model, .text = &a->text, .jsonl = a->jsonl, .field = a->field,
                                        .tokens = a->tokens, .length = a->length ? (int)a->length : length,
                                        .least = a->least > 2 ? (int)a->least : 2};
    if (is_recorded ? take_recorded(w, e) : sh_text_source_open(&w->source, e))
        return -1;
    if (w->source.texts.n < 2) {
        sh_fail(e, "%s: found %d sequence of at most %d tokens, expected at least 2: one to search on, one to judge on",
                is_recorded ? a->db : w->source.texts.sequence[0].source, w->source.texts.n, w->source.length);
        return sh_hint(e, "a plan must be judged on at least %d sequences: give more text, or a smaller --length",
                       SH_JUDGED_LEAST);
    }
    if (a->known >= w->source.texts.n)
        return sh_misused(e, "--search-first: found %lld, expected fewer than the %d sequences: some must be judged",
                          a->known, w->source.texts.n);
    w->n_token = sh_text_source_longest(&w->source);
    for (int i = 0; i < w->source.texts.n; i++)
        if (w->source.texts.sequence[i].n_tokens > most)
            return sh_misused(e, "%s: found %d tokens, expected at most the model's %d positions: use --length",
                              w->source.texts.sequence[i].source, w->source.texts.sequence[i].n_tokens, most);
    if (a->target != SH_TARGET_ANSWERS && a->live.prefill > 0 && a->live.prefill >= w->n_token - 1)
        return sh_misused(e, "--prefill: found %lld, expected at most %d: the texts have up to %d tokens, so nothing "
                          "would be evicted before the last one is predicted", (long long)a->live.prefill,
                          w->n_token - 2, w->n_token);
    return a->answers ? sh_eval_answers_read(&w->answers, &w->source, a->answers, e) : 0;
}

/* Moves the first of the texts to the front, without changing the order otherwise. */
static void known_first(int *order, int n, int known)
{
    for (int i = 0, front = 0; i < n && front < known; i++) {
        int text = order[i];
        if (text >= known)
            continue;
        memmove(order + front + 1, order + front, (size_t)(i - front) * sizeof *order);
        order[front++] = text;
    }
}

/* Texts to judge on by default: the noise of a bound falls with the tokens that it is over. */
static int usual(const struct sh_live_plan *w)
{
    double mean = (double)sh_text_source_tokens(&w->source) / w->source.texts.n, n = ceil(SH_LIVE_TOKENS / mean);
    return n > SH_LIVE_JUDGED ? (int)n : SH_LIVE_JUDGED;
}

/* Shuffled by the seed (Fisher and Yates). As many as were asked for are judged if half of the texts or 12 are left to
 * search on. */
static void split(struct sh_live_plan *w)
{
    int n = w->source.texts.n, asked = w->a->sequences ? (int)w->a->sequences : usual(w);
    int known = (int)w->a->known;
    w->order = xcalloc((size_t)n, sizeof *w->order);
    for (int i = 0; i < n; i++) {
        int k = (int)(sh_rng((uint64_t)w->common->seed, (uint64_t)i) % (uint64_t)(i + 1));
        w->order[i] = w->order[k];
        w->order[k] = i;
    }
    known_first(w->order, n, known);
    int least = n / 2 < SH_JUDGED_LEAST ? n / 2 : SH_JUDGED_LEAST;
    w->n_judge = n - least < asked ? n - least : asked;
    if (w->n_judge < SH_JUDGED_LEAST && w->n_judge < asked && n >= SH_JUDGED_LEAST + 4)
        w->n_judge = asked < SH_JUDGED_LEAST ? asked : SH_JUDGED_LEAST;
    int most = asked > SH_JUDGED_LEAST ? asked : SH_JUDGED_LEAST;
    w->n_judge = w->n_judge < n - known ? w->n_judge : n - known;
    w->n_search = n - w->n_judge < most ? n - w->n_judge : most;
    w->n_search = w->n_search > known ? w->n_search : known;
}

static int open_all(struct sh_live_plan *w, struct sh_err *e)
{
    const struct sh_live_plan_args *a = w->a;
    int has_texts = a->text.n || a->jsonl || a->tokens;
    if (sh_live_read(&w->live, &a->live, w->common, "plan", e) || sh_live_open(&w->live, w->common, e))
        return -1;
    if (a->db && !(w->store = sh_store_typed(has_texts ? sh_store_create(a->db, e) : sh_store_update(a->db, e),
                                             w->common->line)))
        return -1;
    if (open_texts(w, e) || read_settings(w, e))
        return -1;
    long long tokens = sh_text_source_tokens(&w->source);
    split(w);
    w->goal = a->budget ? (double)INFINITY
              : a->target == SH_TARGET_PPL ? log1p(a->value) : a->target == SH_TARGET_KL ? a->value : -a->value;
    return sh_live_load_texts(&w->live, w->n_token, tokens, e);
}

/* ---- the search ---- */

/* By default, where the searched sequences vary much, more are judged. */
static void widen(struct sh_live_plan *w)
{
    struct sh_live_setting *s = &w->setting[w->best];
    int spare = w->source.texts.n - w->n_search - w->n_judge, most = SH_LIVE_WIDER * w->n_judge;
    if (w->a->sequences || w->a->budget || spare <= 0)
        return;
    most = most < w->n_judge + spare ? most : w->n_judge + spare;
    w->n_judge = sh_judged_count(s->seen, s->n_seen, w->goal, w->level, w->n_judge, most);
}

/* Whether the evidence lacks what the allocator needs, such as a persistence ratio of every head. */
static int lacks_evidence(const struct sh_live_plan *w, struct sh_live_setting *s)
{
    struct sh_err e = {.text = ""};
    int *budget = xcalloc((size_t)s->allot.n_layer * (size_t)s->allot.n_head, sizeof *budget);
    int lacks = s->may_lack && sh_allot_solve(&s->allot, w->n_token, w->n_token, budget, &e);
    free(budget);
    if (lacks)
        s->left_out = xstrdup(e.text);
    return lacks;
}

/* A search that ends at budgets of layers whose losses were not measured is repeated with these losses; the last one
 * counts. */
static int search_with(struct sh_live_plan *w, struct sh_live_setting *s, int limit, struct sh_err *e)
{
    int changes;
    do {
        s->meets = s->n_seen = 0;
        if (sh_live_search(w, s, limit, e) || sh_live_probe_more(w, s, &changes, e))
            return -1;
    } while (changes);
    return 0;
}

/* 1: this setting is left out, and s->left_out says why; -1. */
static int cannot_try(struct sh_live_plan *w, struct sh_live_setting *s, int limit, struct sh_err *e)
{
    int least = sh_policy_least_budget(&s->policy);
    if (w->a->budget && sh_live_given_mean(w, s, e) < 0)
        return -1;
    if (!w->a->budget && w->setting[w->best].meets && least > limit)
        s->left_out = xasprintf("it keeps at least %d tokens a head, and the best one so far needs %s%d", least,
                                w->a->by_bytes ? "the bytes of " : "", limit);
    return s->left_out ? 1 : sh_live_evidence(w, s, e) ? -1 : s->left_out || lacks_evidence(w, s);
}

static int search(struct sh_live_plan *w, struct sh_err *e)
{
    for (int i = 0; i < w->n_setting; i++) {
        struct sh_live_setting *s = &w->setting[i], *best = &w->setting[w->best];
        if (w->n_tried && w->a->seconds > 0 && sh_now_s() - w->began_s > w->a->seconds)
            break;
        int left = cannot_try(w, s, sh_live_limit(w, s), e);
        if (left > 0)
            continue;
        if (left < 0 || search_with(w, s, sh_live_limit(w, s), e)) {
            char *name = sh_live_setting_name(s);
            sh_err_prefix(e, "%s", name);
            free(name);
            return -1;
        }
        s->is_tried = 1;
        w->n_tried++;
        w->best = !best->is_tried || sh_live_is_better(w, s, best) ? i : w->best;
    }
    if (!w->setting[w->best].is_tried)
        return sh_fail(e, "no allocator has what it needs: %s", w->setting[0].left_out);
    widen(w);
    return 0;
}

/* The mean was given, or there are too few texts for a promise: what is seen with the mean that the search found. */
static int look(struct sh_live_plan *w, struct sh_err *e)
{
    const struct sh_live_setting *s = &w->setting[w->best];
    w->judged = sh_live_candidates(w, s, &s->mean, 1, e);
    if (!w->judged)
        return -1;
    w->n_judged = 1;
    w->judged->level = w->level = w->a->confidence;
    return sh_live_read_candidates(w, &s->policy, w->judged, 1, w->order + w->n_search, w->n_judge, "judging", e);
}

/* ---- the plan ---- */

static void add_evidence(struct sh_live_plan *w, const char *metric, double value, double low, double high)
{
    struct sh_plan_evidence *v = sh_plan_add_evidence(&w->plan, metric, value, w->n_judge, w->on.tokens, -1,
                                                      w->a->db ? w->a->db : "");
    v->low = low;
    v->high = high;
    v->confidence = w->a->confidence;                   /* at least */
    snprintf(v->text, sizeof v->text, "%s", w->on.name);
    snprintf(v->text_hash, sizeof v->text_hash, "%016" PRIx64, w->on.hash);
}

static void name_plan(struct sh_live_plan *w)
{
    const struct sh_arch *a = sh_model_arch(w->live.model);
    struct sh_plan *p = &w->plan;
    snprintf(p->model, sizeof p->model, "%s", sh_model_name(w->live.model));
    snprintf(p->weights, sizeof p->weights, w->a->live.weight_prune > 0 ? "pruned:%g" : "checkpoint",
             w->a->live.weight_prune);
    if (w->a->live.activation_bits == 8)
        snprintf(p->weights, sizeof p->weights, "checkpoint,activations:8");
    snprintf(p->fingerprint, sizeof p->fingerprint, "%016" PRIx64, sh_model_fingerprint(w->live.model));
    p->n_layer = a->n_layer;
    p->n_head = a->n_head;
    p->n_kv_head = a->n_kv_head;
    p->d_head = a->d_head;
}

static void fill_plan(struct sh_live_plan *w, const struct sh_candidate *c)
{
    static const char *const metric[] = {"ppl_increase", "kl", "answer_exact"};
    const struct sh_live_setting *s = &w->setting[w->best];
    struct sh_plan *p = &w->plan;
    size_t heads = (size_t)s->allot.n_layer * (size_t)s->allot.n_head;
    name_plan(w);
    p->policy = s->policy;
    p->allocator = s->allocator;
    p->prefill = (int)w->a->live.prefill;
    p->n_token = w->n_token;
    p->budget = xmalloc(heads * sizeof *p->budget);
    memcpy(p->budget, c->budget, heads * sizeof *p->budget);
    p->heads = sh_allot_heads(&s->allot);
    if (!w->a->budget) {
        snprintf(p->target_metric, sizeof p->target_metric, "%s", metric[w->a->target]);
        p->target = w->a->value;
        snprintf(p->status, sizeof p->status, "%s", w->is_met ? "met" : "not_shown");
    }
    add_evidence(w, "ppl_increase", expm1(w->ppl.mean), expm1(w->ppl.low), expm1(w->ppl.high));
    add_evidence(w, "kl", w->kl.mean, w->kl.low, w->kl.high);
    if (w->answers.texts)
        add_evidence(w, "answer_exact", w->exact.mean, w->exact.low, w->exact.high);
}

/* "0.4 to 1.3 %" of what the target is about, with as many decimals as show a small target. */
static char *range_of(const struct sh_live_plan *w)
{
    double low = 100 * expm1(w->ppl.low), high = 100 * expm1(w->ppl.high), goal = 100 * w->a->value;
    int decimals = goal > 0 && goal < 0.1 ? 1 - (int)floor(log10(goal)) : 2;
    if (w->a->target == SH_TARGET_PPL)
        return xasprintf("perplexity changes by %+.*f to %+.*f %%", decimals, low, decimals, high);
    if (w->a->target == SH_TARGET_KL)
        return xasprintf("%.3g to %.3g nats of divergence", fmax(w->kl.low, 0), w->kl.high);
    return xasprintf("%.1f to %.1f %% exact answers (full cache: %.1f %%)", 100 * w->exact.low, 100 * w->exact.high,
                     100 * w->full_exact);
}

static void say(struct sh_live_plan *w, const struct sh_candidate *c)
{
    int lacks = SH_JUDGED_LEAST - w->n_judge;
    char *range = range_of(w), *more = w->more     ? xasprintf("%d more would be enough", w->more)
                                       : lacks > 0 ? xasprintf("a larger budget and at least %d more are needed", lacks)
                                                   : xstrdup("more sequences would not help");
    double share = sh_plan_mean(&w->plan) / w->n_token;
    if (w->a->budget)
        w->verdict = xasprintf("%s on %d sequences, with %.1f %% of the cache", range, w->n_judge, 100 * share);
    else if (w->is_met)
        w->verdict = xasprintf("met: %s on %d sequences, with %.1f %% of the cache", range, w->n_judge, 100 * share);
    else if (w->n_judge < 2)
        w->verdict = xasprintf("not shown: one sequence has no bound; at least %d are needed, %d more",
                               SH_JUDGED_LEAST, lacks);
    else if (lacks > 0)
        w->verdict = xasprintf("not shown: %s on %d sequences, fewer than the %d that are needed; %s", range,
                               w->n_judge, SH_JUDGED_LEAST, more);
    else
        w->verdict = xasprintf("not shown: %s on %d sequences with the best plan, %d of %d tokens per head; %s",
                               range, w->n_judge, c->mean, w->n_token, more);
    free(more);
    free(range);
}

static int conclude(struct sh_live_plan *w, struct sh_err *e)
{
    int best = 0, n = w->n_judge;
    if (!w->n_judged)
        return sh_fail(e, "no budget below the full cache is possible: the policy protects all but one token");
    for (int i = 1; i < w->n_judged && w->chosen < 0; i++)
        best = w->judged[i].goal.high < w->judged[best].goal.high ? i : best;
    const struct sh_candidate *c = &w->judged[w->chosen < 0 ? best : w->chosen];
    w->level = c->level;
    double nll = 0, tokens = 0, right = 0, answers = 0;
    for (int i = 0; i < n; i++) {
        const struct sh_trace_sequence *q = &w->source.texts.sequence[w->order[w->n_search + i]];
        sh_measured_add(&w->on, q->source, q->tokens, q->n_tokens);
        nll += c->at[i].nll - c->at[i].change;
        tokens += c->at[i].tokens;
        right += c->at[i].full_right;
        answers += c->at[i].answers;
    }
    w->full_ppl = exp(nll / tokens);
    w->full_exact = right / answers;
    w->ppl = sh_live_bound(w, SH_TARGET_PPL, c->at, n);
    w->kl = sh_live_bound(w, SH_TARGET_KL, c->at, n);
    w->exact = sh_live_bound(w, SH_TARGET_ANSWERS, c->at, n);
    w->is_met = n >= SH_JUDGED_LEAST && w->chosen >= 0;
    int needs = w->is_met || w->a->budget ? 0 : sh_mean_bound_needs(&c->goal, w->goal, w->level);
    needs = needs && needs < SH_JUDGED_LEAST ? SH_JUDGED_LEAST : needs;
    w->more = needs > n ? needs - n : 0;
    fill_plan(w, c);
    say(w, c);
    if (w->a->judged && sh_live_write_judged(w, e))
        return -1;
    return w->store && (w->is_met || (w->a->budget && n >= SH_JUDGED_LEAST)) ? sh_live_keep_judged(w, c, e) : 0;
}

int sh_live_plan_make(struct sh_live_plan *w, struct sh_err *e)
{
    w->began_s = sh_now_s();
    w->chosen = -1;
    w->level = w->a->budget ? w->a->confidence : sh_live_level(w, 0);
    int bad = open_all(w, e) || search(w, e) ||
              (w->a->budget || w->n_judge < SH_JUDGED_LEAST ? look(w, e) : sh_live_judge(w, e)) || conclude(w, e);
    if (bad && w->store && sh_store_was_made(w->store) && sh_store_is_empty(w->store)) {
        sh_store_close(w->store);
        w->store = NULL;
        sh_store_remove(w->a->db);
    } else if (bad && w->store && w->setting && !e->hint[0] && e->status != SH_MISUSED) {
        sh_hint(e, "finished measurements are in %s; run the same command again to resume", w->a->db);
    }
    return bad ? -1 : 0;
}

void sh_live_plan_close(struct sh_live_plan *w)
{
    sh_live_rows_drop(w);
    sh_store_close(w->store);
    for (int i = 0; i < w->n_setting; i++) {
        sh_allot_close(&w->setting[i].allot);
        free(w->setting[i].seen);
        free(w->setting[i].left_out);
        sh_live_probe_free(w->setting[i].probe);
    }
    sh_candidates_free(w->judged, w->n_judged);
    sh_eval_answers_free(&w->answers);
    sh_text_source_close(&w->source);
    sh_live_close(&w->live);
    sh_plan_clear(&w->plan);
    free(w->setting);
    free(w->order);
    free(w->verdict);
}
