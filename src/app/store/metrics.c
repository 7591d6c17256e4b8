/* SPDX-License-Identifier: Apache-2.0 */
/* See metrics.h. */
#include "src/app/store/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/app/store/result_check.h"

struct found {
    const struct sh_metrics *m;
    const struct sh_metric_row *row;
    int n_row;
    const struct sh_metric_row **order; /* [n_row], by settings: there may be thousands           */
    int *seen;                          /* [n_row] metrics                                        */
    const char *store;
};

static int by_settings(const void *a, const void *b)
{
    const struct sh_metric_row *const *x = a, *const *y = b;
    return strcmp((*x)->settings, (*y)->settings);
}

/* The first place in that order whose settings do not come before these. */
static int place_of(const struct found *f, const char *settings)
{
    int low = 0, high = f->n_row;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (strcmp(f->order[middle]->settings, settings) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int take_figure(const struct found *f, const struct sh_metric_row *row, const struct sh_stored_result *stored,
                       struct sh_err *e)
{
    for (int m = 0; m < f->m->n; m++)
        if (!strcmp(f->m->metric[m].key, stored->metric)) {
            if (sh_result_check(stored, f->store, f->m->command, e))
                return -1;
            row->at[m] = stored->value;
            f->seen[row - f->row]++;
        }
    return 0;
}

static int take(void *to, const struct sh_stored_result *stored, struct sh_err *e)
{
    const struct found *f = to;
    if (stored->layer >= 0 || stored->head >= 0)
        return 0;
    for (int k = place_of(f, stored->settings); k < f->n_row && !strcmp(f->order[k]->settings, stored->settings); k++)
        if (take_figure(f, f->order[k], stored, e))
            return -1;
    return 0;
}

int sh_metrics_find(const struct sh_metrics *m, const struct sh_metric_row *row, int n_row, struct sh_store *s,
                    struct sh_err *e)
{
    struct found f = {m, row, n_row, xcalloc((size_t)n_row, sizeof *f.order), xcalloc((size_t)n_row, sizeof *f.seen),
                      sh_store_path(s)};
    for (int i = 0; i < n_row; i++)
        f.order[i] = &row[i];
    qsort(f.order, (size_t)n_row, sizeof *f.order, by_settings);
    int bad = sh_store_read_results(s, m->command, take, &f, e);
    for (int i = 0; i < n_row && !bad; i++)
        *row[i].is_known = f.seen[i] == m->n;   /* others are of an older version, or in pieces: done again */
    free(f.order);
    free(f.seen);
    return bad;
}

int sh_metrics_put(const struct sh_metrics *m, const char *settings, const double *at, struct sh_store *s,
                   struct sh_err *e)
{
    int bad = 0;
    for (int i = 0; i < m->n && !bad; i++)
        bad = sh_store_result(s, m->command, settings, m->metric[i].key, -1, -1, at[i], e);
    return bad;
}

int sh_metrics_keep(const struct sh_metrics *m, const char *settings, const double *at, struct sh_store *s,
                    struct sh_err *e)
{
    return sh_store_results_begin(s, m->command, settings, e) || sh_metrics_put(m, settings, at, s, e) ||
                   sh_store_results_end(s, e)
               ? -1 : 0;
}

int sh_results_forget(const char *command, const char *const *settings, int n, struct sh_store *s, struct sh_err *e)
{
    int bad = sh_store_group_begin(s, e);
    if (bad)
        return -1;
    const char *line = sh_store_typed(NULL);    /* there is nothing that the running command made yet */
    for (int i = 0; i < n && !bad; i++)
        bad = settings[i] && (sh_store_results_begin(s, command, settings[i], e) || sh_store_results_end(s, e));
    sh_store_typed(line);
    return sh_store_group_end(s, bad, e);
}

void sh_metrics_write(const struct sh_metrics *m, const double *at, struct sh_out *o)
{
    for (int i = 0; i < m->n; i++)
        if (m->metric[i].digits || isnan(at[i]))
            sh_out_real(o, m->metric[i].key, m->metric[i].label, at[i], m->metric[i].digits);
        else
            sh_out_int(o, m->metric[i].key, m->metric[i].label, llround(at[i]));
}
