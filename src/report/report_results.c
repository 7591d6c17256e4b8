/* SPDX-License-Identifier: Apache-2.0 */
/* See report_results.h. */
#include "src/report/report_results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/policy/policy_label.h"
#include "src/base/interrupt.h"
#include "src/base/mem.h"
#include "src/report/figures/figure_data.h"

struct reading {
    struct sh_results *out;
    int store;
};

static void drop_unreadable(struct sh_results *s)
{
    if (!s->n || json_is_object(s->row[s->n - 1].settings))
        return;
    struct sh_result_row *r = &s->row[--s->n];
    json_decref(r->settings);
    free(r->text);
    free(r->at);
}

static int take(void *to, const struct sh_stored_result *r, struct sh_err *e)
{
    struct reading *g = to;
    struct sh_results *s = g->out;
    (void)e;
    struct sh_result_row *row = s->n ? &s->row[s->n - 1] : NULL;
    if (!row || row->store != g->store || strcmp(row->text, r->settings)) {
        drop_unreadable(s);
        s->row = xreallocarray(s->row, (size_t)s->n + 1, sizeof *s->row);
        row = &s->row[s->n++];
        *row = (struct sh_result_row){.settings = json_loads(r->settings, JSON_REJECT_DUPLICATES, NULL),
                                      .text = xstrdup(r->settings), .store = g->store};
    }
    if (r->head >= 0)
        return 0;
    row->at = xreallocarray(row->at, (size_t)row->n + 1, sizeof *row->at);
    struct sh_result_figure *f = &row->at[row->n++];
    *f = (struct sh_result_figure){.layer = r->layer, .value = r->value};
    snprintf(f->metric, sizeof f->metric, "%s", r->metric);
    return 0;
}

int sh_results_read(const struct sh_report *r, const char *command, struct sh_results *out, struct sh_err *e)
{
    *out = (struct sh_results){0};
    for (int i = 0; i < r->n_store; i++) {
        struct reading g = {out, i};
        struct sh_store *s = sh_store_open(r->store[i].path, e);
        int bad = !s || sh_store_read_results(s, command, take, &g, e);
        sh_store_close(s);
        drop_unreadable(out);
        if (bad) {
            sh_results_free(out);
            return -1;
        }
    }
    return 0;
}

void sh_results_free(struct sh_results *s)
{
    for (int i = 0; i < s->n; i++) {
        json_decref(s->row[i].settings);
        free(s->row[i].text);
        free(s->row[i].at);
    }
    free(s->row);
    *s = (struct sh_results){0};
}

int sh_results_mixed(const struct sh_results *s)
{
    return s->n > 0 && s->row[0].store != s->row[s->n - 1].store;      /* rows of one store lie together */
}

double sh_result(const struct sh_result_row *r, const char *metric, int layer)
{
    for (int i = 0; i < r->n; i++)
        if (r->at[i].layer == layer && !strcmp(r->at[i].metric, metric))
            return r->at[i].value;
    return (double)NAN;
}

const char *sh_result_text(const struct sh_result_row *r, const char *key)
{
    const char *text = json_string_value(json_object_get(r->settings, key));
    return text ? text : "";
}

long long sh_result_int(const struct sh_result_row *r, const char *key)
{
    return json_integer_value(json_object_get(r->settings, key));
}

char *sh_result_policy(const struct sh_result_row *r)
{
    const char *knobs = sh_result_text(r, "knobs");
    int is_bound;
    char *whole = xasprintf("%s%s%s", sh_result_text(r, "policy"), *knobs ? ":" : "", knobs),
         *label = sh_policy_label(whole, &is_bound);
    free(whole);
    return label;
}

char *sh_result_weights(const struct sh_result_row *r)
{
    double prune = 100 * json_number_value(json_object_get(r->settings, "weight_prune"));
    long long bits = sh_result_int(r, "weight_bits");
    if (prune > 0)
        return bits < 16 ? xasprintf("%g %% pruned, %lld bits", prune, bits) : xasprintf("%g %% pruned", prune);
    return bits < 16 ? xasprintf("%lld bits", bits) : xstrdup("whole");
}

const char *sh_result_budget(const struct sh_result_row *r)
{
    return strcmp(sh_result_text(r, "policy"), "full") ? sh_result_text(r, "budget") : "all";
}

/* Whether the figure has something to show of that one store. What it lacks is in *why; -1: e ends the command. */
static int has_figure(const struct sh_report *r, const struct sh_figure *f, const char *db, struct sh_err *why,
                      struct sh_err *e)
{
    struct sh_figure_request q = {.db = &db, .n_db = 1, .split = 0.5, .threads = r->threads, .quiet = 1};
    struct sh_err lacks = {0};
    struct sh_figure_data *d = sh_figure_data_new(1u << f->number, &q, &lacks);
    int found = d != NULL;
    sh_figure_data_free(d);
    if (!found && (sh_interrupted() || lacks.is_io || lacks.status == SH_ABSENT)) {
        *e = lacks;
        return -1;
    }
    if (!found)
        *why = lacks;
    return found;
}

int sh_results_figure(struct sh_report *r, const struct sh_results *s, const char *name, struct sh_err *e)
{
    const char *db[SH_REPORT_STORES];
    const struct sh_figure *f = sh_figure_find(name, e);
    struct sh_err why = {0};
    int n = 0, last = -1, found = 0;
    for (int i = 0; f && found >= 0 && i < s->n; last = s->row[i++].store) {       /* rows of one store lie together */
        const char *path = r->store[s->row[i].store].path;
        if (s->row[i].store == last)
            continue;
        found = has_figure(r, f, path, &why, e);
        if (found > 0)
            db[n++] = path;
    }
    if (!f || found < 0)
        return -1;
    if (!n) {
        *e = why;
        return sh_report_lacks(r, NULL, e);
    }
    struct sh_figure_request q = {.db = db, .n_db = n, .split = 0.5, .threads = r->threads, .quiet = r->quiet};
    struct sh_figure_data *d = sh_figure_data_new(1u << f->number, &q, e);
    int bad = d ? sh_report_figure(r, name, &d->out, e) : sh_report_lacks(r, NULL, e);
    sh_figure_data_free(d);
    return bad;
}
