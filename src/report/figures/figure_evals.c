/* SPDX-License-Identifier: Apache-2.0 */
/* Compression curves and quantisation from the results that `shears eval` left in the stores. Results belong
 * together when their settings agree in all but policy, knobs, budget, plan and bits of keys and values; of
 * several such groups of a text the one with most results is drawn. Every group has its full cache in f32,
 * which says how long the texts are. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/report/figures/figure_data.h"
#include "src/app/store/measured.h"
#include "src/app/store/results.h"

enum metric { PPL, CHANGE, CHANGE_ERROR, EXACT, EXACT_ERROR, ANSWER_CHANGE, ANSWER_CHANGE_ERROR, ANSWER_PPL, ACC,
              ACC_ERROR, BUDGET, BYTES, N_METRIC };
static const char *const metric_name[N_METRIC] = {
    "ppl", "nll_change", "nll_change_stderr", "answer_exact", "answer_exact_stderr", "answer_nll_change",
    "answer_nll_change_stderr", "answer_ppl", "acc", "stderr", "budget_tokens", "kv_bytes"};

struct point {                          /* one result                                             */
    const char *group, *label, *task;   /* task: "piqa, 5 shots"; NULL: not of a task             */
    const char *budget;
    int bits, is_full;
    double at[N_METRIC];
};

struct found {
    struct sh_results all;
    struct point *point;                /* [all.n] */
    int n;
};

/* ---- reading ---- */

/* What does not look like the settings of an evaluation has no group. */
static struct point read_point(struct sh_figure_data *d, const struct sh_result_row *r)
{
    static const char *const apart[] = {"policy", "knobs", "budget", "plan", "kv_bits", "group", NULL};
    const char *policy = sh_result_text(r, "policy"), *task = sh_result_text(r, "task");
    struct point p = {.label = sh_figure_keep(d, sh_result_policy(r)), .budget = sh_result_text(r, "budget"),
                      .bits = (int)sh_result_int(r, "kv_bits"), .is_full = !strcmp(policy, "full")};
    if (json_object_get(r->settings, "plan"))
        p.label = sh_figure_keep(d, xasprintf("%s, a plan", p.label));
    if (*task)
        p.task = sh_figure_keep(d, xasprintf("%s, %lld shots", task, sh_result_int(r, "shots")));
    if (*policy && p.bits > 0)
        p.group = sh_figure_keep(d, sh_result_group(r, apart));
    for (int m = 0; m < N_METRIC; m++)
        p.at[m] = sh_result(r, metric_name[m], -1);
    return p;
}

static int read_points(struct sh_figure_data *d, struct sh_store *s, const char *command, struct found *f,
                       struct sh_err *e)
{
    if (sh_results_load(s, command, &f->all, e))
        return -1;
    f->point = sh_figure_keep(d, xcalloc((size_t)f->all.n + 1, sizeof *f->point));
    for (; f->n < f->all.n; f->n++)
        f->point[f->n] = read_point(d, &f->all.row[f->n]);
    return 0;
}

/* ---- choosing ---- */

static const struct point *reference(const struct found *f, const char *group)
{
    for (int i = 0; i < f->n; i++) {
        const struct point *p = &f->point[i];
        if (p->group && !strcmp(p->group, group) && p->is_full && p->bits == 32 && p->at[BUDGET] > 0)
            return p;
    }
    return NULL;
}

static int counts(const struct point *p, const char *group, int bits, const char *task)
{
    return p->group && !strcmp(p->group, group) && !p->is_full && p->at[BUDGET] > 0 && (!bits || p->bits == bits) &&
           (!task || (p->task && !strcmp(p->task, task)));
}

static int is_candidate(const struct found *f, int i)
{
    return f->point[i].group && counts(&f->point[i], f->point[i].group, 0, NULL);
}

/* Is the point of a whole curve: is its policy there under another budget, or (is_quant) its group with fewer bits? */
static int is_of_curve(const struct found *f, int i, int is_quant)
{
    const struct point *p = &f->point[i];
    for (int k = 0; k < f->n && is_candidate(f, i); k++) {
        const struct point *q = &f->point[k];
        if (counts(q, p->group, 0, NULL) &&
            (is_quant ? q->bits < 16 : !strcmp(q->label, p->label) && strcmp(q->budget, p->budget)))
            return 1;
    }
    return 0;
}

/* Only results of one text can be drawn: those of others lose their group. -1: several texts have a curve, and none was
 * named. */
static int choose_text(struct found *f, int is_quant, const char *asked, const char *path, struct sh_err *e)
{
    struct sh_texts_met met = {0};
    for (int i = 0; i < f->n; i++)
        if (asked ? is_candidate(f, i) : is_of_curve(f, i, is_quant))
            sh_texts_meet(&met, &f->all.row[i].on);
    for (int i = 0, none = !met.n; i < f->n && none; i++)
        if (is_candidate(f, i))
            sh_texts_meet(&met, &f->all.row[i].on);
    const struct sh_measured *on = met.n ? sh_text_choose(&met, asked, path, e) : NULL;
    for (int i = 0; i < f->n && on; i++)
        if (!sh_measured_same(&f->all.row[i].on, on))
            f->point[i].group = NULL;
    int bad = met.n && !on;
    free(met.at);
    return bad ? -1 : 0;
}

/* The group, and its bits (bits_apart), with most results; NULL: none has a full cache and another result. */
static const char *largest(const struct found *f, int bits_apart, const char *task, int *bits)
{
    const char *best = NULL;
    int most = 0;
    for (int i = 0; i < f->n; i++) {
        const struct point *p = &f->point[i];
        int n = 0, coded = 0;
        if (!p->group || !counts(p, p->group, 0, task) || !reference(f, p->group))
            continue;
        for (int k = 0; k < f->n; k++) {
            n += counts(&f->point[k], p->group, bits_apart ? p->bits : 0, task);
            coded |= counts(&f->point[k], p->group, 0, task) && f->point[k].bits < 16;
        }
        if (n > most && (bits_apart || coded)) {
            most = n;
            best = p->group;
            *bits = p->bits;
        }
    }
    return best;
}

/* ---- lines ---- */

struct sort { double x, y, low, high; };

static int by_x(const void *a, const void *b)
{
    const struct sort *p = a, *q = b;
    return (p->x > q->x) - (p->x < q->x);
}

/* n points in any order become a line. */
static struct sh_fig_measured_line line_of(struct sort *s, int n, const char *label, struct sh_figure_data *d)
{
    double *v = sh_figure_keep(d, xmalloc(4 * (size_t)n * sizeof *v));
    qsort(s, (size_t)n, sizeof *s, by_x);
    for (int i = 0; i < n; i++) {
        v[i] = s[i].x;
        v[n + i] = s[i].y;
        v[2 * n + i] = s[i].low;
        v[3 * n + i] = s[i].high;
    }
    return (struct sh_fig_measured_line){sh_figure_keep(d, xstrdup(label)), n, v, v + n, v + 2 * n, v + 3 * n};
}

/* A figure of a point, and its 95 % interval: of perplexities that of the paired change against the full cache. */
static struct sort value_of(const struct point *p, const struct point *full, int metric)
{
    static const struct { int change, error, exp; } paired[N_METRIC] = {
        [PPL] = {CHANGE, CHANGE_ERROR, 1}, [ANSWER_PPL] = {ANSWER_CHANGE, ANSWER_CHANGE_ERROR, 1},
        [EXACT] = {EXACT, EXACT_ERROR, 0}, [ACC] = {ACC, ACC_ERROR, 0}, [CHANGE] = {CHANGE, CHANGE_ERROR, 0}};
    double error = 1.96 * p->at[paired[metric].error], change = p->at[paired[metric].change];
    if (paired[metric].exp)
        return (struct sort){0, p->at[metric], full->at[metric] * exp(change - error),
                             full->at[metric] * exp(change + error)};
    double unit = metric == CHANGE ? 1 : 100;
    double low = unit * (change - error), high = unit * (change + error);
    if (metric != CHANGE) {                     /* shares: the interval of a few is wider than what there is */
        low = isnan(low) ? low : fmax(low, 0);
        high = isnan(high) ? high : fmin(high, 100);
    }
    return (struct sort){0, unit * change, low, high};
}

enum x_axis { TIMES, BITS, BYTE_TIMES };

#define TIMES_LABEL "compression: tokens / kept tokens per head"
static const struct kind {
    enum metric metric;
    enum x_axis x;
    const char *title, *x_label, *y_label, *what;       /* title: after the store's name; what: in a caption */
} perplexity = {PPL, TIMES, "perplexity", TIMES_LABEL, "perplexity (log)", "perplexity"},
  exact = {EXACT, TIMES, "exact answers", TIMES_LABEL, "exact answers (%)", "exact answers"},
  answers = {ANSWER_PPL, TIMES, "answers' perplexity", TIMES_LABEL, "perplexity of answers' tokens (log)",
             "perplexity of the answers"},
  accuracy = {ACC, TIMES, NULL, TIMES_LABEL, "accuracy (%)", "accuracy in tasks"},
  fewer_bits = {CHANGE, BITS, "cost of fewer bits", "bits per number of keys and values",
                "nats per token above the full cache", "the cost of fewer bits per cached number"},
  bytes = {PPL, BYTE_TIMES, "bytes and perplexity", "compression in bytes: full cache in 16 bits / cache",
           "perplexity (log)", "perplexity against the compression of the cache in bytes"};

struct panel {
    const struct found *f;
    const char *name, *group, *task;    /* name: of the store; task: NULL: not of a task          */
    const struct point *full;
    int bits;                           /* 0: any                                                 */
    double bytes;                       /* of the full cache in 16 bits, for BYTE_TIMES           */
    const struct kind *kind;
};

static double x_of(const struct point *p, const struct panel *q)
{
    return q->kind->x == TIMES ? q->full->at[BUDGET] / p->at[BUDGET]
           : q->kind->x == BITS ? p->bits : q->bytes / p->at[BYTES];
}

static char *label_of(const struct point *p, const struct panel *q)
{
    return q->kind->x == TIMES || p->is_full ? xstrdup(p->label) : xasprintf("%s, %s", p->label, p->budget);
}

/* Whether the panel shows it: not the full cache's own point among policies. */
static int is_in(const struct point *p, const struct panel *q)
{
    if (!p->group || strcmp(p->group, q->group) || isnan(p->at[q->kind->metric]) || (q->bits && p->bits != q->bits))
        return 0;
    return q->kind->x == TIMES ? counts(p, q->group, q->bits, q->task) : p->at[BUDGET] > 0;
}

/* Points of the panel under one label; those of compression begin with the full cache. */
static int gather(const struct panel *q, const char *label, struct sort *to)
{
    int n = 0;
    for (int i = 0; i < q->f->n; i++) {
        const struct point *p = &q->f->point[i];
        if (!is_in(p, q))
            continue;
        char *own = label_of(p, q);
        if (!strcmp(own, label)) {
            to[n] = value_of(p, q->full, q->kind->metric);
            to[n++].x = x_of(p, q);
        }
        free(own);
    }
    if (q->kind->x == TIMES && n) {
        to[n] = value_of(q->full, q->full, q->kind->metric);
        to[n++].x = 1;
    }
    return n;
}

static int is_there(const struct sh_fig_measured_line *line, int n, const char *label)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(line[i].label, label))
            return 1;
    return 0;
}

/* 0: nothing to draw. A line of bits needs two of them. */
static int make_lines(const struct panel *q, struct sh_fig_measured *m, struct sh_figure_data *d)
{
    struct sort *s = xcalloc((size_t)q->f->n + 1, sizeof *s);
    struct sh_fig_measured_line *line = sh_figure_keep(d, xcalloc((size_t)q->f->n + 1, sizeof *line));
    for (int i = 0; i < q->f->n; i++) {
        if (!is_in(&q->f->point[i], q))
            continue;
        char *label = label_of(&q->f->point[i], q);
        int n = is_there(line, m->n_lines, label) ? 0 : gather(q, label, s);
        if (n > 1)
            line[m->n_lines++] = line_of(s, n, label, d);
        free(label);
    }
    free(s);
    m->lines = line;
    return m->n_lines;
}

/* ---- panels ---- */

static void add(struct panel *q, const struct kind *kind, struct sh_fig_measured_panels *out, struct sh_figure_data *d)
{
    struct sh_fig_measured *all = sh_figure_keep(d, xcalloc((size_t)out->n + 1, sizeof *all));
    int is_log_y = kind->metric == PPL || kind->metric == ANSWER_PPL;
    char *title = q->task ? xasprintf("%.60s: %.60s", q->name, q->task) : xasprintf("%.80s: %s", q->name, kind->title);
    struct sh_fig_measured m = {.title = sh_figure_keep(d, title), .x = kind->x_label, .y = kind->y_label,
                                .what = kind->what, .floor = is_log_y || kind->metric == CHANGE ? (double)NAN : 0,
                                .ceiling = (double)NAN, .is_log_x = kind->x != BYTE_TIMES, .is_log_y = is_log_y};
    q->kind = kind;
    if (out->n == SH_MEASURED_PANELS || !make_lines(q, &m, d))
        return;
    if (out->n)
        memcpy(all, out->panel, (size_t)out->n * sizeof *all);
    all[out->n++] = m;
    out->panel = all;
}

static void add_curves(const struct found *f, const char *name, struct sh_fig_measured_panels *out,
                       struct sh_figure_data *d)
{
    struct panel q = {.f = f, .name = name};
    if (!(q.group = largest(f, 1, NULL, &q.bits)))
        return;
    q.full = reference(f, q.group);
    add(&q, &perplexity, out, d);
    add(&q, &exact, out, d);
    add(&q, &answers, out, d);
}

static void add_tasks(const struct found *f, const char *name, struct sh_fig_measured_panels *out,
                      struct sh_figure_data *d)
{
    for (int i = 0; i < f->n; i++) {
        struct panel q = {.f = f, .name = name, .task = f->point[i].task};
        int is_new = q.task != NULL;
        for (int k = 0; k < i && is_new; k++)
            is_new = !f->point[k].task || strcmp(f->point[k].task, q.task);
        if (!is_new || !(q.group = largest(f, 1, q.task, &q.bits)))
            continue;
        q.full = reference(f, q.group);
        add(&q, &accuracy, out, d);
    }
}

static void add_quant(const struct found *f, const char *name, struct sh_fig_measured_panels *out,
                      struct sh_figure_data *d)
{
    struct panel q = {.f = f, .name = name};
    int bits;
    if (!(q.group = largest(f, 0, NULL, &bits)))
        return;
    q.full = reference(f, q.group);
    add(&q, &fewer_bits, out, d);
    for (int i = 0; i < f->n; i++)
        if (f->point[i].group && !strcmp(f->point[i].group, q.group) && f->point[i].is_full && f->point[i].bits == 16)
            q.bytes = f->point[i].at[BYTES];
    if (q.bytes > 0)
        add(&q, &bytes, out, d);
}

/* ---- a store ---- */

/* Evaluations need no trace, so the store may not know a name: the file's then. */
char *sh_figure_name(struct sh_store *s, struct sh_err *e)
{
    struct sh_stored_run *runs;
    int n;
    if (sh_store_runs(s, &runs, &n, e))
        return NULL;
    char *name = xstrdup(n ? runs[0].model : sh_figure_file(sh_store_path(s)));
    sh_stored_runs_free(runs, n);
    return name;
}

/* Curves of all stores come before tasks, so that many tasks of one do not leave another one out. */
enum pass { CURVES, TASKS };

static int read_store(int is_quant, enum pass pass, const struct sh_figure_request *q, const char *path,
                      struct sh_fig_measured_panels *out, struct sh_figure_data *d, struct sh_err *e)
{
    struct found eval = {0}, task = {0};
    struct sh_store *s = sh_store_open(path, e);
    char *name = s ? sh_figure_named(q, path, sh_figure_name(s, e)) : NULL;
    int bad = !name || read_points(d, s, "eval", &eval, e) || read_points(d, s, "task", &task, e) ||
              choose_text(&eval, is_quant, q->measured_on, path, e);
    sh_store_close(s);
    if (!bad && pass == TASKS)
        add_tasks(&task, name, out, d);
    else if (!bad && is_quant)
        add_quant(&eval, name, out, d);
    else if (!bad)
        add_curves(&eval, name, out, d);
    sh_results_free(&eval.all);
    sh_results_free(&task.all);
    free(name);
    return bad ? -1 : 0;
}

static int nothing_in(int is_quant, const char *path, struct sh_err *e)
{
    sh_fail(e, is_quant ? "%s: found no results of shears eval with --kv-bits 8 or 4"
                        : "%s: found no results of shears eval under a budget", path);
    return sh_hint(e, is_quant ? "make them, once for each of 16, 8 and 4 bits: shears eval --model DIR --text FILE "
                                 "--policy full tova --budget 0.5 --kv-bits 4 --db %s"
                               : "make them: shears eval --model DIR --text FILE --policy window h2o --budget "
                                 "0.1,0.2,0.5 --db %s", path);
}

static int load(struct sh_figure_data *d, unsigned figures, const struct sh_figure_request *q, struct sh_err *e)
{
    int *n = sh_figure_keep(d, xcalloc((size_t)q->n_db, sizeof *n)), is_quant = (figures & SH_FIG_BIT(quant)) != 0;
    struct sh_fig_measured_panels *all = sh_figure_keep(d, xcalloc(1, sizeof *all));
    for (enum pass pass = CURVES; pass <= (is_quant ? CURVES : TASKS); pass++)
        for (int i = 0; i < q->n_db; i++) {
            int before = all->n;
            if (read_store(is_quant, pass, q, q->db[i], all, d, e))
                return -1;
            n[i] += all->n - before + (before == SH_MEASURED_PANELS);   /* full: left out, not empty */
        }
    for (int i = 0; i < q->n_db; i++)
        if (!n[i])
            return nothing_in(is_quant, q->db[i], e);
    *(is_quant ? &d->out.quant : &d->out.compression) = all;
    d->out.title = is_quant ? "Fewer bits for keys and values" : "Quality over compression of the cache";
    d->out.settings = is_quant ? "bands: 95 % of the paired change from the full cache in f32"
                               : "1 is the full cache; bands: 95 %, for perplexities from the paired change";
    return 0;
}

const struct sh_figure_loader sh_figure_load_evals = {
    .figures = SH_FIG_BIT(compression) | SH_FIG_BIT(quant), .load = load};
