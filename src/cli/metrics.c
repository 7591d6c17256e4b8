/* SPDX-License-Identifier: Apache-2.0 */
/* See metrics.h. */
#include "src/cli/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/cli/result_check.h"

struct found {
    const struct sh_metrics *m;
    const struct sh_metric_row *row;
    int n_row;
    int *seen;                          /* [n_row] metrics                                        */
    const char *store;
};

static int take(void *to, const struct sh_stored_result *stored, struct sh_err *e)
{
    struct found *f = to;
    if (stored->layer >= 0 || stored->head >= 0)
        return 0;
    for (int i = 0; i < f->n_row; i++)
        for (int m = 0; m < f->m->n && !strcmp(f->row[i].settings, stored->settings); m++)
            if (!strcmp(f->m->metric[m].key, stored->metric)) {
                if (sh_result_check(stored, f->store, f->m->command, e))
                    return -1;
                f->row[i].at[m] = stored->value;
                f->seen[i]++;
            }
    return 0;
}

int sh_metrics_find(const struct sh_metrics *m, const struct sh_metric_row *row, int n_row, struct sh_store *s,
                    struct sh_err *e)
{
    struct found f = {m, row, n_row, xcalloc((size_t)n_row, sizeof *f.seen), sh_store_path(s)};
    int bad = sh_store_read_results(s, m->command, take, &f, e);
    for (int i = 0; i < n_row && !bad; i++)
        *row[i].is_known = f.seen[i] == m->n;   /* others are of an older version, or in pieces: done again */
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

void sh_metrics_write(const struct sh_metrics *m, const double *at, struct sh_out *o)
{
    for (int i = 0; i < m->n; i++)
        if (m->metric[i].digits || isnan(at[i]))
            sh_out_real(o, m->metric[i].key, m->metric[i].label, at[i], m->metric[i].digits);
        else
            sh_out_int(o, m->metric[i].key, m->metric[i].label, llround(at[i]));
}
