/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/capacity/capacity_study.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/base/mem.h"

const struct sh_capacity_args sh_capacity_defaults = {
    .kv = "f16", .tp = "1", .windows = "model", .pp = 1, .ep = 1, .page = 1, .util = -1, .reserve = -1,
    .bandwidth = -1, .flops = -1, .price = -1};

enum { MOST_TP = 64 };                  /* GPUs that share a layer, where somebody looks for them */

struct variant {
    const char *budget;
    const struct sh_quality_point *measured;
    int is_plan;
};

void sh_capacity_study_clear(struct sh_capacity_study *s)
{
    for (int i = 0; i < s->n_model; i++)
        sh_kv_shape_clear(&s->model[i]);
    sh_kv_shape_clear(&s->draft);
    sh_capacity_names_close(&s->names);
    free(s->model);
    free(s->board);
    free(s->row);
    free(s->layers);
    free(s->point);
    sh_plan_clear(&s->plan);
    for (int i = 0; i < s->n_evidence; i++)
        free(s->evidence[i]);
    free(s->evidence);
}

static int add_model(struct sh_capacity_study *s, const char *name, int i, struct sh_err *e)
{
    struct sh_kv_shape one;
    int end = sh_capacity_model(&s->names, name, i, &one, e);
    if (end)
        return end;
    s->model = xreallocarray(s->model, (size_t)s->n_model + 1, sizeof *s->model);
    s->model[s->n_model++] = one;
    return 0;
}

static int add_board(struct sh_capacity_study *s, const char *name, int i, struct sh_err *e)
{
    struct sh_gpu one;
    int end = sh_capacity_board(&s->names, name, i, &one, e);
    if (end)
        return end;
    s->board = xreallocarray(s->board, (size_t)s->n_board + 1, sizeof *s->board);
    s->board[s->n_board++] = one;
    return 0;
}

/* The word all, or names with commas. */
static int add_all(struct sh_capacity_study *s, const char *option, const char *text,
                   int (*add)(struct sh_capacity_study *, const char *, int, struct sh_err *), struct sh_err *e)
{
    struct sh_capacity_words w;
    int end = 0;
    if (!strcasecmp(text, "all")) {
        for (int i = 0; !end; i++)
            end = add(s, NULL, i, e);
        return end < 0 ? -1 : 0;
    }
    if (sh_capacity_split(option, text, &w, e))
        return -1;
    for (int i = 0; i < w.n; i++)
        if (add(s, w.at[i], 0, e))
            return -1;
    return 0;
}

static const char *keep_line(struct sh_capacity_study *s, char *line)
{
    s->evidence = xreallocarray(s->evidence, (size_t)s->n_evidence + 1, sizeof *s->evidence);
    return s->evidence[s->n_evidence++] = line;
}

/* What the engine is expected to need for it. Ranks of ep have their own sequences, so their attention is a copy. */
static int expect(struct sh_capacity_study *s, const struct sh_capacity_question *q, struct sh_err *e)
{
    const struct sh_capacity_ask *k = &s->ask;
    struct sh_clock_layout l = {k->tp, k->ep, k->ep, k->pp};
    struct sh_serving v;
    if (sh_serving_open(s->args, &s->settings, q, &s->engine, &l, &v, e))
        return -1;
    s->answer.engine = &s->engine;
    s->answer.clock = v.clock;
    s->answer.chunk = v.chunk;
    sh_serving_clear(&v);
    return 0;
}

static int answer(struct sh_capacity_study *s, const struct sh_capacity_question *q, const struct variant *v,
                  struct sh_err *e)
{
    const char *line = NULL, *budget = v->is_plan ? s->args->plan : q->budget;
    free(s->layers);
    s->layers = NULL;
    if (sh_capacity_ask_fill(s->args, &s->settings, q, &s->ask, &s->layers, e) ||
        (v->is_plan && sh_capacity_plan(&s->plan, s->args->plan, q->shape, q->tp, &s->ask.rule, e)))
        return -1;
    sh_capacity_add_state(s->args, v->is_plan ? &s->plan : NULL, v->measured, q->shape, s->ask.length, &s->ask.rule);
    if (v->is_plan)
        line = keep_line(s, sh_capacity_plan_evidence(&s->plan, q->shape->f.name, s->ask.length));
    else if (v->measured)
        line = keep_line(s, sh_quality_text(v->measured, s->args->db, q->shape->f.name, s->ask.length));
    s->answer = (struct sh_capacity_answer){.ask = &s->ask, .board = q->board, .budget = budget, .kv = q->kv,
                                            .evidence = line, .measured = v->measured, .price = s->args->price,
                                            .server = sh_capacity_server(s->args, q->board)};
    return (s->args->engine && expect(s, q, e)) || sh_capacity(&s->ask, &s->answer.c, e) ? -1 : 0;
}

static void keep(struct sh_capacity_study *s)
{
    s->row = xreallocarray(s->row, (size_t)s->n_row + 1, sizeof *s->row);
    sh_capacity_row(&s->answer, &s->row[s->n_row++]);
}

/* The smallest group of a power of two GPUs that holds the batch; when none does, the largest is shown. */
static int fewest(struct sh_capacity_study *s, struct sh_capacity_question *q, const struct variant *v,
                  struct sh_err *e)
{
    int done = 0;
    for (int tp = 1; tp <= MOST_TP && !done; tp *= 2) {
        if (!s->args->uneven && sh_capacity_divides(q->shape, tp, e))
            continue;
        q->tp = tp;
        if (answer(s, q, v, e))
            return -1;
        done = !s->answer.c.unfit;
    }
    keep(s);
    return 0;
}

static int each_tp(struct sh_capacity_study *s, struct sh_capacity_question *q, const struct variant *v,
                   struct sh_err *e)
{
    const struct sh_capacity_words *w = &s->settings.tp;
    int many = s->n_model > 1 || w->n > 1;
    if (!strcmp(w->at[0], "auto"))
        return fewest(s, q, v, e);
    for (int i = 0; i < w->n; i++) {
        q->tp = (int)strtol(w->at[i], NULL, 10);
        if (!s->args->uneven && sh_capacity_divides(q->shape, q->tp, e)) {
            if (many)
                continue;               /* of many shapes those that servers take are shown */
            return -1;
        }
        if (answer(s, q, v, e))
            return -1;
        keep(s);
    }
    return 0;
}

/* The caches to ask about under a format: those of --budget, --plan or --db, or the whole one. *out for free(). */
static int variants(struct sh_capacity_study *s, const char *kv, const struct sh_kv_shape *shape,
                    struct variant **out, int *n, struct sh_err *e)
{
    const struct sh_capacity_args *a = s->args;
    const struct sh_capacity_words *w = &s->settings.budget;
    struct sh_quality_ask q;
    struct variant *v = *out = xcalloc((size_t)(s->n_point + w->n + 2), sizeof *v);
    *n = 0;
    v[(*n)] = (struct variant){.is_plan = a->plan != NULL};
    for (int i = 0; i < w->n; i++)
        v[(*n)++].budget = w->at[i];
    if (!a->db) {
        *n += !w->n;
        return 0;
    }
    if (sh_quality_ask(a, kv, shape, s->point, s->n_point, &q, e))
        return -1;
    if (a->max_ppl || a->min_recall) {
        const struct sh_quality_point *p = sh_quality_least(s->point, s->n_point, a->db, &q, e);
        if (!p)
            return -1;
        v[(*n)++] = (struct variant){p->budget, p, 0};
        return 0;
    }
    for (int i = 0; i < s->n_point; i++) {
        q.kind = s->point[i].kind;
        if (sh_quality_fits(&s->point[i], &q))
            v[(*n)++] = (struct variant){s->point[i].budget, &s->point[i], 0};
    }
    if (*n)
        return 0;
    sh_fail(e, "%s: contains no budget measured with %s%s%d-bit keys and values%s%.80s", a->db,
            q.policy ? q.policy : "", q.policy ? " and " : "", q.bits, q.measured_on ? " on " : "",
            q.measured_on ? q.measured_on : "");
    q.kind = SH_QUALITY_PPL;
    sh_quality_more(a->db, &q, e);
    return -1;
}

static int each_variant(struct sh_capacity_study *s, struct sh_capacity_question q, struct sh_err *e)
{
    struct variant *v;
    int n, bad = variants(s, q.kv, q.shape, &v, &n, e);
    for (int i = 0; i < n && !bad; i++) {
        q.budget = v[i].budget;
        bad = each_tp(s, &q, &v[i], e);
    }
    free(v);
    return bad;
}

static int each(struct sh_capacity_study *s, struct sh_err *e)
{
    const struct sh_capacity_settings *t = &s->settings;
    for (int m = 0; m < s->n_model; m++)
        for (int b = 0; b < s->n_board; b++)
            for (int k = 0; k < t->kv.n; k++) {
                struct sh_capacity_question q = {&s->model[m], s->args->draft ? &s->draft : NULL, &s->board[b],
                                                 t->kv.at[k], NULL, 1};
                if (each_variant(s, q, e))
                    return -1;
            }
    return s->n_row ? 0 : sh_misused(e, "--tp %s does not divide the heads of any of the models", s->args->tp);
}

/* The least tp that holds what the only row does not. */
static int find_enough(struct sh_capacity_study *s, struct sh_err *e)
{
    struct sh_capacity_ask k = s->ask;
    struct sh_capacity c;
    struct sh_err ignored;
    for (int tp = s->ask.tp + 1; s->n_row == 1 && !s->row[0].fits && !s->answer.enough_tp && tp <= MOST_TP; tp++) {
        k.tp = tp;
        if (sh_capacity_divides(k.shape, tp, &ignored))
            continue;
        if ((s->args->plan && sh_capacity_plan(&s->plan, s->args->plan, k.shape, tp, &k.rule, e)) ||
            sh_capacity(&k, &c, e))
            return -1;
        s->answer.enough_tp = c.unfit ? 0 : tp;
    }
    return 0;
}

/* Rows that fit come first; then, with a batch, the least memory, else the fastest; then in the order asked. */
static int compare(const void *x, const void *y)
{
    const struct sh_capacity_row *a = x, *b = y;
    if (a->fits != b->fits)
        return b->fits - a->fits;
    double left = a->sort, right = b->sort;
    return left < right ? -1 : left > right ? 1 : a->order - b->order;
}

void sh_capacity_study_sort(struct sh_capacity_study *s)
{
    for (int i = 0; i < s->n_row; i++) {
        struct sh_capacity_row *r = &s->row[i];
        double memory = (double)r->memory * r->tp * r->pp * r->ep;
        r->order = i;
        r->sort = s->args->batch ? memory : r->fits ? -r->decode_rate : memory;
    }
    qsort(s->row, (size_t)s->n_row, sizeof *s->row, compare);
}

static int excludes(const struct sh_capacity_args *a, struct sh_err *e)
{
    if ((a->plan != NULL) + (a->db != NULL) + (a->budget != NULL) > 1)
        return sh_misused(e, "--plan, --db and --budget cannot be combined: expected one of them");
    if (!a->db && (a->max_ppl || a->min_recall || a->policy || a->measured_on))
        return sh_misused(e, "%s requires --db FILE",
                          a->measured_on ? "--measured-on" : a->max_ppl ? "--max-ppl-increase"
                          : a->min_recall ? "--min-recall" : "--policy");
    return sh_quality_one_limit(a, e);
}

int sh_capacity_study(struct sh_capacity_study *s, struct sh_capacity_args *a, struct sh_err *e)
{
    *s = (struct sh_capacity_study){.args = a};
    if (excludes(a, e))
        return -1;
    a->has_plan = a->plan || a->db;
    if (a->engine && sh_engine_open(a->engine, &s->engine, e))
        return -1;
    if (a->plan && sh_plan_read(&s->plan, a->plan, e))
        return -1;
    sh_plan_widen(&s->plan, a->sizes);
    return sh_capacity_settings(a, &s->settings, e) || sh_capacity_names_open(&s->names, a->gpus, a->models, e) ||
                   add_all(s, "--model", a->model, add_model, e) || add_all(s, "--gpu", a->gpu, add_board, e) ||
                   (a->draft && sh_capacity_model(&s->names, a->draft, 0, &s->draft, e)) ||
                   (a->db && sh_quality_read(a->db, a->model, &s->point, &s->n_point, e)) || each(s, e) ||
                   find_enough(s, e)
               ? -1 : 0;
}
