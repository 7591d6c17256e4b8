/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/common/runs.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

int sh_runs_hint(struct sh_err *e, const char *how)
{
    return sh_hint(e, "trace %s, or select a run recorded that way with --run N", how);
}

int sh_runs_choose(struct sh_store *s, int run, struct sh_stored_run **out, int *n, struct sh_err *e)
{
    struct sh_stored_run *all;
    int count, kept = 0;
    if (sh_store_runs(s, &all, &count, e))
        return -1;
    for (int i = 0; i < count; i++)
        if (!run || all[i].id == run) {
            struct sh_stored_run swap = all[kept];
            all[kept++] = all[i];
            all[i] = swap;
        }
    int bad = 0;
    if (!kept)
        bad = run ? sh_misused(e, "%s: contains no run %d", sh_store_path(s), run)
                  : sh_fail(e, "%s: contains no run, expected a trace", sh_store_path(s));
    for (int i = 1; i < kept && !bad; i++)
        if (strcmp(all[i].fingerprint, all[0].fingerprint) || strcmp(all[i].weights, all[0].weights) ||
            all[i].n_layer != all[0].n_layer || all[i].n_head != all[0].n_head)
            bad = (sh_misused(e, "%s: contains runs of several models (run %d: %s, %s; run %d: %s, %s)",
                              sh_store_path(s), all[0].id, all[0].model, all[0].weights, all[i].id, all[i].model,
                              all[i].weights),
                   sh_hint(e, "select one with --run N; shears info %s lists them", sh_store_path(s)));
    for (int i = 0; i < kept && !bad; i++)
        if (all[i].orderless)
            bad = (sh_misused(e, "%s: run %d (%s): attention is not causal", sh_store_path(s), all[i].id, all[i].model),
                   sh_hint(e, "every query sees all keys, so no cache grows; info, export, verify, report and plot "
                           "heatmap accept such runs"));
    if (bad) {
        sh_stored_runs_free(all, count);
        return -1;
    }
    for (int i = kept; i < count; i++) {        /* free the runs that were not chosen */
        struct sh_stored_run *one = xcalloc(1, sizeof *one);
        *one = all[i];
        sh_stored_runs_free(one, 1);
    }
    *out = all;
    *n = kept;
    return 0;
}

int sh_runs_open(struct sh_runs *r, struct sh_store *s, int run, struct sh_err *e)
{
    *r = (struct sh_runs){0};
    if (sh_runs_choose(s, run, &r->run, &r->n, e))
        return -1;
    r->sequence = xcalloc((size_t)r->n, sizeof(struct sh_stored_sequence *));
    r->n_sequence = xcalloc((size_t)r->n, sizeof *r->n_sequence);
    for (int i = 0; i < r->n; i++)
        if (sh_store_sequences(s, r->run[i].id, &r->sequence[i], &r->n_sequence[i], e)) {
            sh_runs_close(r);
            return -1;
        }
    return 0;
}

void sh_runs_close(struct sh_runs *r)
{
    for (int i = 0; i < r->n; i++)
        sh_stored_sequences_free(r->sequence[i], r->n_sequence[i]);
    free(r->sequence);
    free(r->n_sequence);
    sh_stored_runs_free(r->run, r->n);
    *r = (struct sh_runs){0};
}

int sh_runs_agree(const struct sh_runs *r, struct sh_store *s, struct sh_err *e)
{
    const struct sh_stored_run *one = r->run;
    for (int i = 1; i < r->n; i++) {
        const struct sh_stored_run *other = &r->run[i];
        if (other->n_kv_head != one->n_kv_head)
            return sh_fail(e, "%s: run %d has %d KV heads, but run %d of the same model has %d", sh_store_path(s),
                           other->id, other->n_kv_head, one->id, one->n_kv_head);
        if (other->first_layer != one->first_layer || other->last_layer != one->last_layer)
            return sh_misused(e, "%s: run %d has layers %d-%d, but run %d has layers %d-%d", sh_store_path(s), one->id,
                              one->first_layer, one->last_layer, other->id, other->first_layer, other->last_layer),
                   sh_hint(e, "select one with --run N");
    }
    return 0;
}
