/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/store/begin.h"

#include <string.h>

#include "src/base/progress.h"

void sh_begin_tell_waiting(const char *path)
{
    sh_sayf("shears: ", "%s: in use by another program; waiting for it to finish (Ctrl-C stops)", path);
}

int sh_begin_claim(struct sh_store *s, struct sh_err *e)
{
    return sh_store_wait_lock(s, sh_begin_tell_waiting, e);
}

int sh_begin_tell(struct sh_store *s, int run, int quiet, struct sh_err *e)
{
    struct sh_stored_run *runs;
    int n;
    if (quiet)
        return 0;
    if (sh_store_runs(s, &runs, &n, e))
        return -1;
    const struct sh_stored_run *new = &runs[n - 1], *other = NULL;
    for (int i = 0; i < n - 1; i++)
        if (!other && (strcmp(runs[i].fingerprint, new->fingerprint) || strcmp(runs[i].weights, new->weights)))
            other = &runs[i];
    const char *path = sh_store_path(s);
    if (n > 1 && new->id == run && !new->n_done && other)
        sh_sayf("shears: ", "%s: contains run %d of another model (%s, %s); this is run %d (%s, %s). Commands that "
                "read the store need --run N, or --model where they accept it", path, other->id, other->model,
                other->weights, new->id, new->model, new->weights);
    else if (n > 1 && new->id == run && !new->n_done)
        sh_sayf("shears: ", "%s: contains run %d of this model with other texts or settings; this is run %d. Commands "
                "that read the store use all its runs, or one with --run N", path, runs[0].id, new->id);
    sh_stored_runs_free(runs, n);
    return 0;
}
