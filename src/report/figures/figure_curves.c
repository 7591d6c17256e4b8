/* SPDX-License-Identifier: Apache-2.0 */
/* Budget curves from the results that `shears replay` left in the stores. Results of one store belong
 * together when their settings agree in all but policy, knobs and budget; of several such groups the one
 * with most results is drawn, of one text. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/policy/policy.h"
#include "planner/replay/replay_total.h"
#include "src/app/replay/replay_results.h"
#include "src/app/store/measured.h"
#include "src/app/store/results.h"
#include "src/base/mem.h"
#include "src/report/figures/figure_data.h"

enum { MOST_CURVES = 48 };

struct point {                          /* one policy under one budget */
    const char *group, *policy;         /* group: settings without policy, knobs, budget; policy: with its knobs */
    const struct sh_result_row *row;
    double length;                      /* mean tokens of a sequence */
    double at[SH_N_REPLAY_METRIC];
};

struct found {
    struct sh_results all;
    struct point *point;                /* [n]: results that look like a replay's */
    size_t n;
};

/* ---- reading ---- */

static int read_points(struct sh_figure_data *d, struct sh_store *s, struct found *f, struct sh_err *e)
{
    static const char *const apart[] = {"policy", "knobs", "budget", NULL};
    if (sh_results_load(s, "replay", &f->all, e))
        return -1;
    f->point = sh_figure_keep(d, xcalloc((size_t)f->all.n + 1, sizeof *f->point));
    for (int i = 0; i < f->all.n; i++) {
        const struct sh_result_row *r = &f->all.row[i];
        double tokens = sh_result_real(r, "tokens"), sequences = sh_result_real(r, "sequences");
        int has_all = sequences >= 1 && tokens >= 1;
        for (int k = 0; apart[k]; k++)
            has_all &= json_is_string(json_object_get(r->settings, apart[k]));
        if (!has_all)
            continue;
        struct point *p = &f->point[f->n++];
        *p = (struct point){sh_figure_keep(d, sh_result_group(r, apart)), sh_figure_keep(d, sh_result_spec(r)), r,
                            tokens / sequences, {0}};
        sh_result_get(r, &sh_replay_metrics, p->at);
    }
    return 0;
}

/* ---- choosing ---- */

static double share_of(const struct point *p)
{
    return p->at[SH_M_BUDGET_TOKENS] / p->length;
}

static int is_drawn(const struct point *p)
{
    return p->at[SH_M_KEPT_MASS] >= 0 && p->at[SH_M_BUDGET_TOKENS] > 0 && share_of(p) <= 1.000001;
}

static int in_order(const void *a, const void *b)
{
    const struct point *x = a, *y = b;
    if (is_drawn(x) != is_drawn(y))
        return is_drawn(y) - is_drawn(x);
    if (!is_drawn(x))
        return 0;
    int way = strcmp(x->group, y->group);
    way = way ? way : strcmp(x->policy, y->policy);
    return way ? way : (share_of(x) > share_of(y)) - (share_of(x) < share_of(y));
}

/* Keeps the points of one text. -1: there are several, none of which was named. */
static int choose_text(struct found *f, const char *asked, const char *path, struct sh_err *e)
{
    struct sh_texts_met met = {0};
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        if (is_drawn(&f->point[i]))
            sh_texts_meet(&met, &f->point[i].row->on);
    const struct sh_measured *on = met.n ? sh_text_choose(&met, asked, path, e) : NULL;
    for (size_t i = 0; i < f->n && on; i++)
        if (sh_measured_same(&f->point[i].row->on, on))
            f->point[n++] = f->point[i];
    int bad = met.n && !on;
    f->n = n;
    free(met.at);
    return bad ? -1 : 0;
}

/* The points of the largest group, sorted by policy and share; those without a figure are left out. */
static struct point *largest_group(struct found *f, size_t *n, int *others)
{
    size_t from = 0, best = 0;
    *n = 0;
    *others = -1;
    if (!f->n)
        return NULL;
    qsort(f->point, f->n, sizeof *f->point, in_order);
    for (size_t i = 0; i <= f->n; i++) {
        int ends = i == f->n || !is_drawn(&f->point[i]) || strcmp(f->point[i].group, f->point[from].group);
        if (!ends)
            continue;
        *others += i > from;
        if (i - from > *n) {
            best = from;
            *n = i - from;
        }
        from = i;
        if (i < f->n && !is_drawn(&f->point[i]))
            break;
    }
    return f->point + best;
}

/* ---- curves ---- */

static struct sh_fig_curve curve(const struct point *p, size_t n, struct sh_figure_data *d)
{
    double *column[SH_N_REPLAY_METRIC];
    struct sh_fig_curve c = {.n = (int)n, .height = (double)NAN};
    for (int m = 0; m < SH_N_REPLAY_METRIC; m++)
        column[m] = sh_figure_keep(d, xmalloc(n * sizeof **column));
    c.label = sh_figure_keep(d, sh_policy_label(p->policy, &c.is_bound));
    c.is_reference = !strncmp(c.label, "window", 6) && !strchr(c.label, ':');
    for (size_t i = 0; i < n; i++) {
        for (int m = 0; m < SH_N_REPLAY_METRIC; m++)
            column[m][i] = p[i].at[m];
        column[SH_M_BUDGET_TOKENS][i] = fmin(share_of(&p[i]), 1);
        c.is_over |= !c.is_bound && p[i].at[SH_M_PEAK_TOKENS] > 1.5 * p[i].at[SH_M_BUDGET_TOKENS] + 8;
    }
    c.share = column[SH_M_BUDGET_TOKENS];
    c.mass = column[SH_M_KEPT_MASS];
    c.low = column[SH_M_KEPT_MASS_LOW];
    c.high = column[SH_M_KEPT_MASS_HIGH];
    c.no_sink = column[SH_M_KEPT_MASS_NO_SINK];
    c.pivotal = column[SH_M_PIVOTAL_RECALL];
    c.error = column[SH_M_OUTPUT_ERROR];
    return c;
}

static int has_share(const struct sh_fig_curve *c, double share)
{
    for (int i = 0; i < c->n; i++)
        if (fabs(c->share[i] - share) < 1e-9)
            return 1;
    return 0;
}

/* Heights are taken over the same budgets for all: those that every policy has, not counting policies that
 * have less than half of the budgets. */
static char *set_heights(struct sh_fig_curve *c, int n)
{
    int most = 0, n_x = 0;
    for (int i = 1; i < n; i++)
        most = c[i].n > c[most].n ? i : most;
    double *x = xmalloc(2 * (size_t)c[most].n * sizeof *x), *y = x + c[most].n;
    for (int k = 0; k < c[most].n; k++) {
        int common = !n_x || c[most].share[k] > x[n_x - 1] + 1e-9;     /* 0.2 and as many tokens are one budget */
        for (int i = 0; i < n; i++)
            common &= 2 * c[i].n < c[most].n || has_share(&c[i], c[most].share[k]);
        if (common)
            x[n_x++] = c[most].share[k];
    }
    for (int i = 0; i < n; i++) {
        int at = 0;
        for (int k = 0; k < c[i].n && at < n_x; k++)
            if (fabs(c[i].share[k] - x[at]) < 1e-9)
                y[at++] = c[i].mass[k];
        c[i].height = at == n_x && n_x == 1 ? y[0] : at == n_x ? sh_area_mean(x, y, n_x) : (double)NAN;
    }
    char *note = n_x ? xasprintf("%.2g to %.2g", x[0], x[n_x - 1]) : xstrdup("in common: none");
    free(x);
    return note;
}

/* Best first; what cannot be compared comes last. */
static int by_height(const void *a, const void *b)
{
    const struct sh_fig_curve *x = a, *y = b;
    if (x->is_over != y->is_over)
        return x->is_over - y->is_over;
    if (isnan(x->height) || isnan(y->height))
        return (isnan(x->height) > 0) - (isnan(y->height) > 0);
    return (x->height < y->height) - (x->height > y->height);
}

static int make_set(struct point *p, size_t n, struct sh_fig_curves *out, struct sh_figure_data *d, struct sh_err *e)
{
    struct sh_fig_curve *c = sh_figure_keep(d, xcalloc(MOST_CURVES, sizeof *c));
    int n_curve = 0;
    for (size_t i = 0, from = 0; i <= n; i++)
        if (i == n || strcmp(p[i].policy, p[from].policy)) {
            if (n_curve == MOST_CURVES)
                return sh_fail(e, "more than %d policies have results", MOST_CURVES);
            c[n_curve++] = curve(p + from, i - from, d);
            from = i;
        }
    out->note = sh_figure_keep(d, set_heights(c, n_curve));
    qsort(c, (size_t)n_curve, sizeof *c, by_height);
    out->n_curves = n_curve;
    out->curve = c;
    return 0;
}

/* "12 sequences, 6044 tokens; rows renormalised over kept tokens, the same budget for each head": what all points of
 * the group share. */
static char *group_text(const struct point *p, int others)
{
    const char *rows = sh_result_text(p->row, "rows"), *allocator = sh_result_text(p->row, "allocator");
    double sequences = sh_result_real(p->row, "sequences");
    const char *name = p->row->on.name;
    char budgets[64] = "the same budget for each head", from[48] = "";
    long long prefill = sh_result_int(p->row, "prefill");
    if (strcmp(allocator, "uniform"))
        snprintf(budgets, sizeof budgets, "budgets divided by %.40s", *allocator ? allocator : "an unknown rule");
    if (prefill)
        snprintf(from, sizeof from, ", eviction after %lld tokens", prefill);
    return xasprintf("%s%s%.0f sequence%s, %.0f tokens; rows %s, %s%s%s", name, *name ? ": " : "", sequences,
                     sequences == 1 ? "" : "s", sh_result_real(p->row, "tokens"),
                     strcmp(rows, "recorded") ? "renormalised over kept tokens" : "as recorded", budgets, from,
                     others ? " (other settings are left out)" : "");
}

static char *model_name(struct sh_store *s, struct sh_err *e)
{
    struct sh_stored_run *runs;
    int n;
    if (sh_store_runs(s, &runs, &n, e))
        return NULL;
    char *name = n ? sh_figure_label(runs[0].model, runs[0].weights) : xstrdup("no run");
    sh_stored_runs_free(runs, n);
    return name;
}

/* *how: the settings that its results share. */
static int read_store(struct sh_figure_data *d, const struct sh_figure_request *q, const char *path,
                      struct sh_fig_curves *out, const char **how, struct sh_err *e)
{
    struct found f = {0};
    size_t n = 0;
    int others = 0;
    struct sh_store *s = sh_store_open(path, e);
    char *name = s ? sh_figure_named(q, path, model_name(s, e)) : NULL;
    int bad = !name || read_points(d, s, &f, e) || choose_text(&f, q->measured_on, path, e);
    sh_store_close(s);
    out->title = name ? sh_figure_keep(d, name) : "";
    struct point *p = bad ? NULL : largest_group(&f, &n, &others);
    if (!bad && !n) {
        sh_fail(e, "%s: found no results of shears replay", path);
        bad = sh_hint(e, "make them: shears replay --db %s --policy all --budget 0.05..1.0/20", path);
    }
    bad = bad || make_set(p, n, out, d, e);
    if (!bad) {
        *how = sh_figure_keep(d, group_text(p, others));
        out->text = *p->row->on.name ? sh_figure_keep(d, xstrdup(p->row->on.name)) : "unknown";
    }
    sh_results_free(&f.all);
    return bad ? -1 : 0;
}

static int load(struct sh_figure_data *d, unsigned figures, const struct sh_figure_request *q, struct sh_err *e)
{
    struct sh_fig_curves *set = sh_figure_keep(d, xcalloc((size_t)q->n_db, sizeof *set));
    struct sh_fig_curve_sets *all = sh_figure_keep(d, xcalloc(1, sizeof *all));
    (void)figures;
    for (int i = 0; i < q->n_db; i++) {
        const char *how;
        if (read_store(d, q, q->db[i], &set[i], &how, e))
            return -1;
        d->out.settings = i ? d->out.settings : how;
    }
    *all = (struct sh_fig_curve_sets){q->n_db, set};
    d->out.title = sh_figure_keep(d, xasprintf("%s: eviction policies replayed", set[0].title));
    d->out.budget_curve = d->out.leaderboard = all;
    return 0;
}

const struct sh_figure_loader sh_figure_load_curves = {
    .figures = SH_FIG_BIT(budget_curve) | SH_FIG_BIT(leaderboard), .load = load};
