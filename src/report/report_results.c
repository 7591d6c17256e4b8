/* SPDX-License-Identifier: Apache-2.0 */
/* See report_results.h. */
#include "src/report/report_results.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/base/mem.h"
#include "src/report/figures/figure_data.h"

int sh_results_read(const struct sh_report *r, const char *command, struct sh_results *out, struct sh_err *e)
{
    int bad = 0;
    *out = (struct sh_results){0};
    for (int i = 0; i < r->n_store && !bad; i++) {
        int before = out->n;
        struct sh_store *s = sh_store_open(r->store[i].path, e);
        bad = !s || sh_results_load(s, command, out, e);
        sh_store_close(s);
        while (before < out->n)
            out->row[before++].store = i;
    }
    if (bad)
        sh_results_free(out);
    return bad ? -1 : 0;
}

int sh_results_mixed(const struct sh_results *s)
{
    return s->n > 0 && s->row[0].store != s->row[s->n - 1].store;      /* rows of one store lie together */
}

char *sh_result_weights(const struct sh_result_row *r)
{
    double prune = 100 * sh_result_real(r, "weight_prune");
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
