/* SPDX-License-Identifier: Apache-2.0 */
/* What `shears drift` left in the stores: Jaccard indices over steps, and changes of scores. One panel for each
 * policy and budget. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/report/figures/figure_data.h"
#include "src/app/store/results.h"
#include "src/engine/drift.h"

struct point { int layer, step; double like; };

struct cell {                           /* one policy under one budget */
    struct point *point;                /* [n] */
    size_t n;
    double change[2][SH_CHANGE_BINS];   /* scores, attention                                      */
    int has_change;
};

static void take_change(struct cell *c, const char *metric, double value)
{
    static const char *const kinds[] = {"score_change@pairs:", "score_change@mass:"};
    for (int k = 0; k < 2; k++) {
        size_t n = strlen(kinds[k]);
        if (strncmp(metric, kinds[k], n))
            continue;
        double from = strtod(metric + n, NULL);
        int bin = strcmp(metric + n, "left") ? (int)lround(from * 10) + 11 : 0;
        if (bin >= 0 && bin < SH_CHANGE_BINS && (from > -1.05 && from < 3.05)) {
            c->change[k][bin] = value;
            c->has_change = 1;
        }
    }
}

static struct cell read_cell(const struct sh_result_row *r)
{
    struct cell c = {.point = xcalloc((size_t)r->n + 1, sizeof *c.point)};
    for (int i = 0; i < r->n; i++) {
        const struct sh_result_figure *f = &r->at[i];
        take_change(&c, f->metric, f->value);
        if (!strncmp(f->metric, "jaccard_step_", 13) && f->layer >= 0 && isfinite(f->value))
            c.point[c.n++] = (struct point){f->layer, (int)strtol(f->metric + 13, NULL, 10), f->value};
    }
    return c;
}

static int in_order(const void *a, const void *b)
{
    const struct point *x = a, *y = b;
    return x->layer != y->layer ? (x->layer > y->layer) - (x->layer < y->layer)
                                : (x->step > y->step) - (x->step < y->step);
}

/* A line for each layer; of many layers some, evenly, the last among them. */
static void draw_steps(const struct cell *c, struct sh_fig_measured *m, struct sh_figure_data *d)
{
    struct sh_fig_measured_line *line = sh_figure_keep(d, xcalloc(SH_MEASURED_LINES, sizeof *line));
    double *x = sh_figure_keep(d, xmalloc(2 * c->n * sizeof *x)), *y = x + c->n;
    int layers = 1, at = -1;
    qsort(c->point, c->n, sizeof *c->point, in_order);
    for (size_t i = 1; i < c->n; i++)
        layers += c->point[i].layer != c->point[i - 1].layer;
    int stride = (layers + SH_MEASURED_LINES - 1) / SH_MEASURED_LINES;
    for (size_t i = 0; i < c->n; i++) {
        int is_new = !i || c->point[i].layer != c->point[i - 1].layer;
        at += is_new;
        x[i] = c->point[i].step;
        y[i] = c->point[i].like;
        if ((layers - 1 - at) % stride)
            continue;
        if (is_new)
            line[m->n_lines++] = (struct sh_fig_measured_line){
                .label = sh_figure_keep(d, xasprintf("layer %d", c->point[i].layer)), .x = x + i, .y = y + i};
        line[m->n_lines - 1].n++;
    }
    m->lines = line;
    m->x = "token of the text";
    m->y = "Jaccard index of the kept tokens, 0 to 1";
    m->ceiling = 1;
}

static void draw_change(const struct cell *c, struct sh_fig_measured *m, struct sh_figure_data *d)
{
    struct sh_fig_measured_line *line = sh_figure_keep(d, xcalloc(2, sizeof *line));
    double *x = sh_figure_keep(d, xmalloc(3 * SH_CHANGE_BINS * sizeof *x));
    for (int b = 0; b < SH_CHANGE_BINS; b++) {
        x[b] = b ? sh_score_change_from(b) + 0.05 : -1.05;
        for (int k = 0; k < 2; k++)
            x[(k + 1) * SH_CHANGE_BINS + b] = 100 * c->change[k][b];
    }
    for (int k = 0; k < 2; k++)
        line[k] = (struct sh_fig_measured_line){.label = k ? "weighted by attention" : "each score once",
                                                .n = SH_CHANGE_BINS, .x = x, .y = x + (k + 1) * SH_CHANGE_BINS};
    m->lines = line;
    m->n_lines = 2;
    m->x = "change of a score: (compressed − full) / full";
    m->y = "share (%)";
    m->floor = 0;
}

static int read_store(struct sh_figure_data *d, int is_change, const struct sh_figure_request *q, const char *path,
                      struct sh_fig_measured *panel, int *n, struct sh_err *e)
{
    struct sh_store *s = sh_store_open(path, e);
    struct sh_results all = {0};
    char *name = s ? sh_figure_named(q, path, sh_figure_name(s, e)) : NULL;
    int bad = !name || sh_results_load(s, "drift", &all, e), before = *n;
    sh_store_close(s);
    for (int i = 0; i < all.n && !bad && *n < SH_MEASURED_PANELS; i++) {
        struct cell c = read_cell(&all.row[i]);
        if (is_change ? c.has_change : c.n > 0) {
            char *policy = sh_figure_keep(d, sh_result_policy(&all.row[i])),
                 *title = xasprintf("%s%s%s, budget %s", q->n_db > 1 ? name : "", q->n_db > 1 ? ": " : "", policy,
                                    sh_result_text(&all.row[i], "budget"));
            panel[*n] = (struct sh_fig_measured){.floor = (double)NAN, .ceiling = (double)NAN,
                                                 .title = sh_figure_keep(d, title)};
            (is_change ? draw_change : draw_steps)(&c, &panel[(*n)++], d);
        }
        free(c.point);
    }
    sh_results_free(&all);
    if (!bad && q->n_db == 1)
        d->out.title = sh_figure_keep(d, xasprintf(is_change ? "%s: attention scores, compressed cache against full"
                                                             : "%s: kept tokens, live cache against replay", name));
    free(name);
    if (!bad && *n == before && before < SH_MEASURED_PANELS) {
        sh_fail(e, "%s: found no results of shears drift", path);
        bad = sh_hint(e, "make them: shears drift --model DIR --db %s --policy scissorhands --budget 0.33", path);
    }
    return bad ? -1 : 0;
}

static int load(struct sh_figure_data *d, unsigned figures, const struct sh_figure_request *q, struct sh_err *e)
{
    struct sh_fig_measured *panel = sh_figure_keep(d, xcalloc(SH_MEASURED_PANELS, sizeof *panel));
    struct sh_fig_measured_panels *all = sh_figure_keep(d, xcalloc(1, sizeof *all));
    int is_change = (figures & SH_FIG_BIT(score_change)) != 0;
    for (int i = 0; i < q->n_db; i++)
        if (read_store(d, is_change, q, q->db[i], panel, &all->n, e))
            return -1;
    all->panel = panel;
    *(is_change ? &d->out.score_change : &d->out.drift) = all;
    if (q->n_db != 1)
        d->out.title = is_change ? "Attention scores, compressed cache against full"
                                 : "Kept tokens, live cache against replay";
    d->out.settings = is_change ? "rows of all heads after the first eviction, at up to 64 steps of each text; first "
                                  "bar: dropped, last bar: 3 and above"
                                : "means over heads and texts";
    return 0;
}

const struct sh_figure_loader sh_figure_load_drift = {
    .figures = SH_FIG_BIT(drift) | SH_FIG_BIT(score_change), .load = load};
