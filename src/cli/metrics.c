/* SPDX-License-Identifier: Apache-2.0 */
/* See metrics.h. */
#include "src/cli/metrics.h"

#include <math.h>
#include <string.h>

struct found {
    const struct sh_metrics *m;
    const struct sh_metric_row *row;
    int n_row;
};

static int take(void *to, const struct sh_stored_result *stored, struct sh_err *e)
{
    struct found *f = to;
    (void)e;
    for (int i = 0; i < f->n_row; i++)
        for (int m = 0; m < f->m->n && !strcmp(f->row[i].settings, stored->settings); m++)
            if (!strcmp(f->m->metric[m].key, stored->metric)) {
                f->row[i].at[m] = stored->value;
                *f->row[i].is_known = 1;
            }
    return 0;
}

int sh_metrics_find(const struct sh_metrics *m, const struct sh_metric_row *row, int n_row, struct sh_store *s,
                    struct sh_err *e)
{
    struct found f = {m, row, n_row};
    return sh_store_read_results(s, m->command, take, &f, e);
}

int sh_metrics_keep(const struct sh_metrics *m, const char *settings, const double *at, struct sh_store *s,
                    struct sh_err *e)
{
    int bad = sh_store_results_begin(s, m->command, settings, e);
    for (int i = 0; i < m->n && !bad; i++)
        bad = sh_store_result(s, m->command, settings, m->metric[i].key, -1, -1, at[i], e);
    return bad ? -1 : sh_store_results_end(s, e);
}

void sh_metrics_write(const struct sh_metrics *m, const double *at, struct sh_out *o)
{
    for (int i = 0; i < m->n; i++)
        if (m->metric[i].digits || isnan(at[i]))
            sh_out_real(o, m->metric[i].key, m->metric[i].label, at[i], m->metric[i].digits);
        else
            sh_out_int(o, m->metric[i].key, m->metric[i].label, llround(at[i]));
}
