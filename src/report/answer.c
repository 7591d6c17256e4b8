/* SPDX-License-Identifier: Apache-2.0 */
#include "src/report/answer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "planner/policy/policy.h"
#include "src/base/mem.h"
#include "src/app/capacity/capacity_names.h"
#include "src/app/capacity/capacity_study.h"
#include "src/app/plan/judged_count.h"
#include "src/app/store/measured.h"
#include "src/report/answer_plan.h"
#include "src/report/report_model.h"

struct asking {
    const struct sh_report *r;
    struct sh_report_model m;
    const char *db;
    char gpu[64];
    char *text;                         /* the label of the texts                                 */
    struct sh_answer_plan plan;         /* path NULL: none answers                                */
    struct sh_quality_point judged;     /* its evidence                                           */
    double confidence;                  /* of the bounds                                          */
    double asked;                       /* the target; 0: the least usual one that is met         */
    const struct sh_quality_point *point;       /* of the choice                                  */
    const struct sh_quality_point *even;        /* the least evaluated budget within the limit; NULL: none */
    long long length;                   /* tokens of a request                                    */
    int is_evaluated;                   /* there are budgets without a plan                       */
    int has_own;                        /* the store has results of this model, so that others do not count */
    const char *failed;                 /* path of a plan that fails where a budget does not; or NULL */
};

/* ---- words ---- */

/* "81,388" */
static const char *grouped(unsigned long long n, char to[32])
{
    char plain[24];
    int digits = snprintf(plain, sizeof plain, "%llu", n), k = 0;
    for (int i = 0; i < digits; i++) {
        if (i && (digits - i) % 3 == 0)
            to[k++] = ',';
        to[k++] = plain[i];
    }
    to[k] = '\0';
    return to;
}

static void name_share(const struct sh_quality_point *p, char *to, size_t bytes)
{
    if (strchr(p->budget, '.'))
        snprintf(to, bytes, "%.3g %%", 100 * strtod(p->budget, NULL));
    else
        snprintf(to, bytes, "%.20s token%s", p->budget, strcmp(p->budget, "1") ? "s" : "");
}

/* "rises by 0.64 %, and with 95 % confidence by at most 1.19 %" */
static char *cost(const struct asking *q)
{
    const struct sh_quality_point *p = q->point;
    char *change = fabs(p->value) < 5e-5 ? xstrdup("changes by less than 0.01 %")
                                         : xasprintf("%s by %.2f %%", p->value < 0 ? "falls" : "rises",
                                                     100 * fabs(p->value)),
         *bound = isnan(p->bound) ? xstrdup("; a bound is not known")
                                  : xasprintf(", and with %.4g %% confidence %sby at %s %.2f %%", 100 * q->confidence,
                                              p->value < 0 && p->bound >= 0 ? "rises " : "",
                                              p->bound < 0 ? "least" : "most", 100 * fabs(p->bound)),
         *all = xasprintf("%s%s", change, bound);
    free(change);
    free(bound);
    return all;
}

static const struct sh_answer_row *chosen_row(const struct sh_answer *a)
{
    for (int i = 0; i < a->n_row; i++)
        if (a->row[i].is_chosen)
            return &a->row[i];
    return NULL;
}

/* " of its tokens (15.2 % of its bytes)"; empty for a number of tokens. */
static void name_size(const struct sh_answer *a, const struct sh_quality_point *p, char *text, size_t bytes)
{
    const struct sh_answer_row *row = chosen_row(a);
    int is_share = strchr(p->budget, '.') != NULL;
    if (is_share && row && row->bytes > 0 && a->full_bytes > 0)
        snprintf(text, bytes, " of its tokens (%.3g %% of its bytes)", 100 * row->bytes / a->full_bytes);
    else
        snprintf(text, bytes, "%s", is_share ? " of its tokens" : "");
}

static void say_small(struct sh_answer *a, const struct asking *q, double asked)
{
    const struct sh_quality_point *p = q->point;
    char share[48], size[64], *says = cost(q), few[96] = "";
    name_share(p, share, sizeof share);
    name_size(a, p, size, sizeof size);
    if (!q->plan.path && p->bound <= asked)
        snprintf(few, sizeof few, "; at least %d sequences are needed to show anything, not %d", SH_JUDGED_LEAST,
                 p->sequences ? p->sequences : p->on.texts);
    if (isnan(a->target))
        a->small = xasprintf("No measured budget is shown to keep the increase of the perplexity within %.3g %%. With "
                             "the best, %s of the cache, the perplexity %s%s%s.%s", 100 * asked, share, says,
                             q->plan.lacks, few,
                             p->sequences < SH_JUDGED_LEAST ? " Use more text, or a larger --count." : "");
    else
        a->small = xasprintf("The cache can shrink to %s%s: the perplexity %s (allowed: %.3g %%).", share, size,
                             says, 100 * a->target);
    free(says);
}

/* "streaming, which keeps the first tokens …"; for free(). */
static char *described(const struct sh_quality_point *p)
{
    struct sh_policy_spec spec;
    struct sh_err ignored;
    char *name = sh_quality_policy(p), *text;
    int is_known = !sh_policy_parse(p->policy, &spec, &ignored);
    text = xasprintf("%s%s%s", name, is_known ? ", which " : "", is_known ? spec.policy->summary : "");
    free(name);
    return text;
}

#define CHOSEN " Of the measured budgets and policies that stay within the limit, this one takes the fewest bytes; " \
               "its bound does not allow for that choice, as a plan's does."

/* What a reader who does not know the policy and what a plan is must know of them. */
static void say_how(struct sh_answer *a, const struct asking *q, double asked)
{
    const struct sh_quality_point *p = q->point, *even = q->even;
    char *policy = described(p), *other = even ? described(even) : NULL, share[48];
    if (even)
        name_share(even, share, sizeof share);
    if (!p->is_plan)
        a->how = xasprintf("How: the policy is %s. Each attention head keeps the same number of tokens.%s%s%s%s",
                           policy, isnan(a->target) ? "" : CHOSEN,
                           q->failed ? " (The plan " : "", q->failed ? q->failed : "",
                           q->failed ? " is not shown to stay within the limit.)" : "");
    else if (even)
        a->how = xasprintf("How: the policy is %s. A plan sets how many tokens each attention head keeps. Without a "
                           "plan, when each head keeps the same number of tokens, %s is the smallest evaluated budget, "
                           "by its bytes, that is shown to stay within %.3g %%, with the policy %s.", policy, share,
                           100 * asked, other);
    else if (q->is_evaluated)
        a->how = xasprintf("How: the policy is %s. A plan sets how many tokens each attention head keeps. Without a "
                           "plan, when each head keeps the same number of tokens, no budget that was evaluated on at "
                           "least %d sequences stays within the limit.", policy, SH_JUDGED_LEAST);
    else
        a->how = xasprintf("How: the policy is %s. A plan sets how many tokens each attention head keeps.", policy);
    free(policy);
    free(other);
}

/* The most requests with one size for all layers and heads that stay within the limit: an evaluated budget, or the plan
 * with its largest size everywhere. how: which budget it is; empty for the plan. */
static unsigned long long most_alike(const struct sh_answer *a, const struct sh_answer_row *plan, char *how,
                                     size_t bytes)
{
    unsigned long long most = plan->alike;
    *how = '\0';
    for (const struct sh_answer_row *row = a->row; row < a->row + a->n_row; row++)
        if (row != plan && row->policy && row->bound <= a->target && row->requests > most) {
            most = row->requests;
            snprintf(how, bytes, " (with %s at %s instead of the plan)", row->policy, row->label);
        }
    return most;
}

/* What a server must be able to do, and the gain if it has fewer sizes; empty if one size is all that is needed. For
 * free(). */
static char *say_sizes(const struct sh_answer *a, const struct sh_answer_row *row)
{
    char how[280];
    if (!row->alike || !row->by_layer || row->alike >= row->requests)
        return xstrdup("");
    double one = (double)most_alike(a, row, how, sizeof how) / (double)a->full;
    double by_layer = (double)row->by_layer / (double)a->full;
    int differ = row->by_layer < row->requests;         /* the heads of a layer */
    char *layers = differ && by_layer > one ? xasprintf("all heads of a layer, it is %.1f times; with one size for ",
                                                        by_layer) : xstrdup("");
    char *text = xasprintf(" The server must then give the cache of each layer%s a size of its own. With one size for "
                           "%sall layers and heads, as in most servers, %s%.1f times%s.", differ ? " and head" : "",
                           layers, *layers ? "" : "it is ", one, how);
    free(layers);
    return text;
}

static void say_buys(struct sh_answer *a, const struct asking *q)
{
    char more[32], full[32];
    const struct sh_answer_row *row = chosen_row(a);
    if (!row || isnan(a->target) || !row->requests || !a->full)
        return;
    double times = (double)row->requests / (double)a->full;
    char *sizes = say_sizes(a, row);
    grouped(row->requests, more);
    a->buys = row->requests == a->full
                  ? xasprintf("On one %s, as many requests of %lld tokens fit at once as with the full cache: %s.",
                              a->gpu, q->length, more)
                  : xasprintf("On one %s, up to %.1f times as many requests of %lld tokens fit at once: %s instead of "
                              "%s.%s", a->gpu, times, q->length, more, grouped(a->full, full), sizes);
    free(sizes);
}

/* "24 sequences of 512 tokens from book.txt"; for free(). */
static char *sequences(const struct sh_quality_point *p)
{
    int n = p->sequences ? p->sequences : p->on.texts;
    char *length = isfinite(p->length) ? xasprintf(" of %.0f tokens", p->length) : xstrdup(""),
         *text = xasprintf("%d sequence%s%s from %s", n, n == 1 ? "" : "s", length,
                           *p->on.name ? p->on.name : "a text without a name");
    free(length);
    return text;
}

static void say_on(struct sh_answer *a, const struct asking *q)
{
    const struct sh_quality_point *p = q->point;
    const char *name = *p->on.name ? p->on.name : "a text without a name";
    char *length = isfinite(p->length) ? xasprintf(" of %.0f tokens", p->length) : xstrdup(""), *judged = sequences(p);
    if (q->plan.path)
        a->on = xasprintf("Measured on %s that were not used to search for the plan.", judged);
    else if (p->sequences)
        a->on = xasprintf("Measured on %d sequences from %d text%s%s, %s.", p->sequences, p->on.texts,
                          p->on.texts == 1 ? "" : "s", length, name);
    else
        a->on = xasprintf("Measured on %d text%s%s, %s: too few for an error over texts, so the bound treats tokens as "
                          "independent and is too small.", p->on.texts, p->on.texts == 1 ? "" : "s", length, name);
    if (!q->plan.path && !q->has_own) {
        char *on = a->on;
        a->on = xasprintf("%s These are results of another model, %.60s.", on, *p->model ? p->model : "unnamed");
        free(on);
    }
    a->lacks = xasprintf("Not shown: other kinds of text, %s, whether answers stay right%s.",
                         p->length > 0 && (double)q->length > 1.1 * p->length ? "texts as long as these requests"
                                                                              : "longer texts",
                         strstr(p->settings, "prefill=0\n") ? ", and prompts that are read whole before eviction "
                         "starts (prefill)" : "");
    free(length);
    free(judged);
}

/* ---- the choice ---- */

static struct sh_capacity_args ask(const struct asking *q)
{
    struct sh_capacity_args args = sh_capacity_defaults;
    args.model = q->m.name;
    args.gpu = q->gpu;
    args.gpus = q->r->gpus;
    args.length = q->length;
    return args;
}

/* Fills in the requests that fit with a plan, NULL: with the full cache, and their bytes; 0: none, or not known. */
static void fit(const struct asking *q, const char *plan, enum sh_plan_sizes sizes, struct sh_answer_row *to)
{
    struct sh_capacity_study s;
    struct sh_err ignored;
    struct sh_capacity_args args = ask(q);
    args.plan = plan;
    args.sizes = sizes;
    args.policy_state = plan != NULL;
    if (!sh_capacity_study(&s, &args, &ignored) && s.n_row && s.row[0].fits) {
        to->requests = s.row[0].max_batch;
        to->bytes = (double)s.row[0].sequence;
    }
    sh_capacity_study_clear(&s);
}

static void fit_plan(const struct asking *q, struct sh_answer_row *to)
{
    struct sh_answer_row by_layer = {0}, alike = {0};
    fit(q, q->plan.path, SH_SIZE_OF_HEAD, to);
    fit(q, q->plan.path, SH_SIZE_OF_LAYER, &by_layer);
    fit(q, q->plan.path, SH_SIZE_OF_ALL, &alike);
    to->by_layer = by_layer.requests;
    to->alike = alike.requests;
}

/* A cost in perplexity of a budget that all heads share, at the length of a request, of this model if there is one. */
static int counts(const struct asking *q, const struct sh_quality_point *p)
{
    return p && p->kind == SH_QUALITY_PPL && p->bits == 16 && !p->is_plan &&
           sh_quality_reaches(p, (uint64_t)q->length) && (!q->has_own || sh_capacity_same_model(p->model, q->m.name));
}

static double kept(const struct asking *q, const struct sh_capacity_row *row)
{
    return sh_quality_kept(row->measured, (uint64_t)q->length);
}

static int is_shown(const struct sh_quality_point *p, double limit)
{
    return p->bound <= limit && sh_quality_has_enough(p);
}

/* A bound that is not known is the worst. */
static int is_lower(const struct sh_quality_point *a, const struct sh_quality_point *b)
{
    return a->bound < b->bound || (isnan(b->bound) && !isnan(a->bound));
}

/* The one of the fewest bytes that is shown to stay within the limit, of equal ones that of the lowest bound; limit
 * infinite: the lowest bound. */
static const struct sh_capacity_row *choose(const struct asking *q, const struct sh_capacity_study *s, double limit)
{
    const struct sh_capacity_row *best = NULL;
    for (int i = 0; i < s->n_row; i++) {
        const struct sh_capacity_row *row = &s->row[i];
        const struct sh_quality_point *p = row->measured;
        if (!counts(q, p) || !(isinf(limit) ? p->bound <= limit : is_shown(p, limit)))
            continue;
        double more = !best || isinf(limit) ? 0 : (double)row->sequence - (double)best->sequence;
        if (!best || more < 0 || (more <= 0 && is_lower(p, best->measured)))
            best = row;
    }
    return best;
}

static int smallest_first(const void *x, const void *y)
{
    const struct sh_answer_row *a = x, *b = y;
    return (a->share > b->share) - (a->share < b->share);
}

/* Is the bound of this row the lowest of its budget, among those that were measured alike? The choice goes before all
 * others, the first of equal ones before the rest. */
static int is_best(const struct asking *q, const struct sh_capacity_study *s, const struct sh_capacity_row *row)
{
    const struct sh_quality_point *p = row->measured;
    if (p == q->point)
        return 1;
    for (int i = 0; i < s->n_row; i++) {
        const struct sh_quality_point *other = s->row[i].measured;
        if (&s->row[i] == row || !counts(q, other) || strcmp(other->settings, p->settings) ||
            fabs(kept(q, &s->row[i]) - kept(q, row)) > 1e-9)
            continue;
        if (other == q->point || is_lower(other, p) || (!is_lower(p, other) && &s->row[i] < row))
            return 0;
    }
    return 1;
}

/* A row for the plan, one for each budget that was measured with the settings of `p` (NULL: none), and one for the full
 * cache. */
static void fill_rows(struct sh_answer *a, const struct asking *q, const struct sh_capacity_study *s,
                      const struct sh_quality_point *p)
{
    a->row = xcalloc((size_t)s->n_row + 2, sizeof *a->row);
    if (q->plan.path) {
        struct sh_answer_row *to = &a->row[a->n_row++];
        to->share = strtod(q->judged.budget, NULL);
        to->increase = q->judged.value;
        to->bound = q->judged.bound;
        fit_plan(q, to);
        to->is_chosen = 1;
        snprintf(to->label, sizeof to->label, "plan, %.3g %%", 100 * to->share);
        to->policy = sh_quality_policy(&q->judged);
    }
    for (int i = 0; i < s->n_row && p; i++) {
        const struct sh_capacity_row *row = &s->row[i];
        if (!counts(q, row->measured) || strcmp(row->measured->settings, p->settings) || !is_best(q, s, row))
            continue;
        struct sh_answer_row *to = &a->row[a->n_row++];
        name_share(row->measured, to->label, sizeof to->label);
        to->policy = sh_quality_policy(row->measured);
        to->share = kept(q, row) / (double)q->length;
        to->increase = row->measured->value;
        to->bound = row->measured->bound;
        to->requests = row->fits ? row->max_batch : 0;
        to->bytes = (double)row->sequence;
        to->is_chosen = row->measured == q->point;
    }
    qsort(a->row, (size_t)a->n_row, sizeof *a->row, smallest_first);
    struct sh_answer_row whole = {.label = "all", .share = 1, .requests = a->full};
    a->row[a->n_row++] = whole;
}

/* The texts of the most sequences, or those asked for, and how long they are. NULL: nothing was evaluated. */
static char *choose_text(struct asking *q, struct sh_err *e)
{
    struct sh_quality_point *point;
    struct sh_texts_met met = {0};
    const struct sh_quality_point *best = NULL;
    int n;
    if (sh_quality_read(q->db, q->m.name, &point, &n, e))
        return NULL;
    for (int i = 0; i < n; i++)
        q->has_own |= sh_capacity_same_model(point[i].model, q->m.name);
    for (int i = 0; i < n; i++) {
        const struct sh_quality_point *p = &point[i];
        sh_texts_meet(&met, &p->on);
        if (p->kind != SH_QUALITY_PPL || p->bits != 16 || p->is_plan ||
            (q->has_own && !sh_capacity_same_model(p->model, q->m.name)) ||
            (q->r->measured_on && !sh_text_answers(&p->on, q->r->measured_on)))
            continue;
        if (!best || p->sequences > best->sequences ||
            (p->sequences == best->sequences && p->tokens > best->tokens))
            best = p;
    }
    char *label = best ? sh_text_label(&met, &best->on) : NULL;
    if (!q->length)
        q->length = best && best->length >= 1 ? llround(best->length) : 0;
    free(met.at);
    free(point);
    return label;
}

/* Are these the other settings, and that line? */
static int are_with(const char *settings, const char *line, const char *others)
{
    const char *at = strstr(settings, line);
    size_t before = at ? (size_t)(at - settings) : 0;
    return at && !strncmp(settings, others, before) && !strcmp(at + strlen(line), others + before);
}

/* The plan on the texts on which the other rows were measured, if it was evaluated there. */
static void compare_plan(struct sh_answer *a, const struct asking *q, const struct sh_capacity_study *s,
                         const struct sh_quality_point *bars)
{
    char line[32];
    snprintf(line, sizeof line, "plan=%016" PRIx64 "\n", q->plan.hash);
    a->same = a->same_bound = (double)NAN;
    for (int i = 0; i < s->n_row && a->bars_on; i++) {
        const struct sh_quality_point *p = s->row[i].measured;
        if (p && p->kind == SH_QUALITY_PPL && p->bits == 16 && are_with(p->settings, line, bars->settings) &&
            sh_measured_same(&p->on, &bars->on)) {
            a->same = p->value;
            a->same_bound = p->bound;
        }
    }
}

static void decide(struct sh_answer *a, struct asking *q, const struct sh_capacity_study *s)
{
    static const double usual[] = {0.01, 0.02, 0.05, 0.1};
    const struct sh_capacity_row *chosen = NULL;
    double limit = q->asked;
    for (int i = 0; i < (q->asked > 0 ? 1 : 4) && !chosen; i++) {
        limit = q->asked > 0 ? q->asked : usual[i];
        chosen = choose(q, s, limit);
    }
    if (q->plan.path && !q->plan.is_met && chosen) {
        q->failed = q->plan.path;
        q->plan.path = NULL;
    }
    q->even = chosen ? chosen->measured : NULL;
    a->target = (q->plan.path ? q->plan.is_met : chosen != NULL) ? limit : (double)NAN;
    chosen = chosen ? chosen : choose(q, s, (double)INFINITY);
    q->point = q->plan.path ? &q->judged : chosen ? chosen->measured : NULL;
    if (!q->point)
        return;
    q->is_evaluated = chosen != NULL;
    a->is_planned = q->plan.path != NULL;
    a->confidence = q->confidence;
    a->sequences = q->point->sequences;
    fill_rows(a, q, s, chosen ? chosen->measured : NULL);
    a->bars_on = q->plan.path && chosen ? sequences(chosen->measured) : NULL;
    compare_plan(a, q, s, chosen ? chosen->measured : NULL);
    say_small(a, q, limit);
    say_how(a, q, limit);
    say_buys(a, q);
    say_on(a, q);
}

static int answer(struct sh_answer *a, struct asking *q, struct sh_err *e)
{
    struct sh_capacity_study s = {0};
    struct sh_capacity_args args;
    const char *gpu = q->r->gpu && strcasecmp(q->r->gpu, "all") ? q->r->gpu : "H100-SXM";
    snprintf(q->gpu, sizeof q->gpu, "%.*s", (int)strcspn(gpu, ","), gpu);
    snprintf(a->gpu, sizeof a->gpu, "%s", q->gpu);
    a->length = q->length = q->length ? q->length : q->m.length;
    args = ask(q);
    args.db = q->db;
    args.policy_state = 1;
    args.measured_on = q->text;
    int bad = q->text && sh_capacity_study(&s, &args, e);
    if (!bad) {
        struct sh_answer_row full = {0};
        fit(q, NULL, SH_SIZE_OF_HEAD, &full);
        a->full = full.requests;
        a->full_bytes = full.bytes;
        decide(a, q, &s);
    }
    sh_capacity_study_clear(&s);
    return bad ? -1 : a->small != NULL;
}

/* The evidence of the plan that answers as a measured budget. */
static void take_plan(struct asking *q)
{
    const struct sh_answer_plan *p = &q->plan;
    struct sh_quality_point *to = &q->judged;
    *to = (struct sh_quality_point){.kind = SH_QUALITY_PPL, .bits = 16, .is_plan = 1, .value = p->value,
                                    .bound = p->bound, .sequences = p->sequences, .length = p->n_token};
    snprintf(to->policy, sizeof to->policy, "%s", p->policy);
    snprintf(to->knobs, sizeof to->knobs, "%.191s", p->knobs);
    snprintf(to->settings, sizeof to->settings, "prefill=%d\n", p->prefill);
    snprintf(to->on.name, sizeof to->on.name, "%s", p->text);
    snprintf(to->budget, sizeof to->budget, "%.6f", p->share);
    q->confidence = p->confidence;
    q->asked = p->target;
    q->length = q->length ? q->length : p->n_token;
}

int sh_answer_read(struct sh_answer *a, const struct sh_report *r, struct sh_err *e)
{
    struct asking q = {.r = r, .asked = r->target, .length = r->length, .confidence = 0.95};
    int at;
    *a = (struct sh_answer){.target = (double)NAN};
    int planned = sh_answer_plan_find(&q.plan, r, e);
    if (planned < 0 || sh_report_measured(r, &at, e))
        return -1;
    if (planned)
        take_plan(&q);
    e->text[0] = '\0';
    int found = planned || at >= 0 ? sh_report_find_model(r, &q.m, e) : 0;
    if (found > 0 && at >= 0) {
        q.db = r->store[at].path;
        q.text = choose_text(&q, e);
        found = *e->text ? -1 : q.text || planned;
    }
    if (found > 0)
        found = answer(a, &q, e);
    sh_report_model_clear(&q.m);
    free(q.text);
    return found;
}

void sh_answer_clear(struct sh_answer *a)
{
    free(a->small);
    free(a->buys);
    free(a->on);
    free(a->lacks);
    free(a->bars_on);
    free(a->how);
    for (int i = 0; i < a->n_row; i++)
        free(a->row[i].policy);
    free(a->row);
}
