/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/persistence/study.h"

int sh_study_add(struct sh_study *y, const struct sh_alpha *alpha, int recent, double split)
{
    for (int i = 0; i < y->n_cell; i++)
        if (sh_alpha_equal(&y->cell[i].alpha, alpha) && y->cell[i].recent == recent && y->cell[i].split == split)
            return i;
    if (y->n_cell == SH_STUDY_CELLS)
        return -1;
    y->cell[y->n_cell] = (struct sh_persistence_cell){*alpha, recent, split};
    return y->n_cell++;
}

int sh_study_add_if(struct sh_study *y, struct sh_store *s, const struct sh_persistence_cell *c, int *cell,
                    struct sh_err *e)
{
    int cannot = sh_collect_can(s, y->run, c, y->window, e);
    *cell = cannot ? -1 : sh_study_add(y, &c->alpha, c->recent, c->split);
    return cannot && e->status != SH_MISUSED ? -1 : 0;
}

/* Do some runs hold sparse scores? */
static int any_sparse(struct sh_store *s, struct sh_err *e)
{
    struct sh_stored_run *runs;
    int n, sparse = 0;
    if (sh_store_runs(s, &runs, &n, e))
        return -1;
    for (int i = 0; i < n; i++)
        sparse |= runs[i].record == SH_RECORD_SPARSE;
    sh_stored_runs_free(runs, n);
    return sparse;
}

int sh_study_run(struct sh_study *y, struct sh_store *s, struct sh_err *e)
{
    int n[2] = {0, 0}, sparse = any_sparse(s, e);
    if (sparse < 0)
        return -1;
    for (int i = 0; i < y->n_cell; i++) {
        int which = sparse && !sh_stats_sparse_can(&y->cell[i].alpha);
        y->part_of[i] = (short)which;
        y->index_of[i] = (short)n[which];
        y->part_cell[which][n[which]++] = y->cell[i];
    }
    y->n_part = 0;
    for (int k = 0; k < 2; k++) {
        if (!n[k])
            continue;
        for (int i = 0; i < y->n_cell; i++)
            if (y->part_of[i] == k)
                y->part_of[i] = (short)y->n_part;
        struct sh_collect *g = &y->part[y->n_part++];
        *g = (struct sh_collect){.cell = y->part_cell[k], .n_cell = n[k], .window = y->window, .threads = y->threads,
                                .quiet = y->quiet, .run = y->run};
        if (sh_collect_run(g, s, e))
            return -1;
    }
    return 0;
}

void sh_study_free(struct sh_study *y)
{
    for (int k = 0; k < y->n_part; k++)
        sh_collect_free(&y->part[k]);
    y->n_part = 0;
}

static const struct sh_persistence *of(const struct sh_study *y, int cell)
{
    return y->part[y->part_of[cell]].p;
}

const double *sh_study_all(const struct sh_study *y, int cell)
{
    return sh_persistence_of_all(of(y, cell), y->index_of[cell]);
}

const double *sh_study_layer(const struct sh_study *y, int cell, int i_layer)
{
    return sh_persistence_of_layer(of(y, cell), y->index_of[cell], i_layer);
}

const double *sh_study_head(const struct sh_study *y, int cell, int i_layer, int i_head)
{
    return sh_persistence_of_head(of(y, cell), y->index_of[cell], i_layer, i_head);
}

int sh_study_min_head(const struct sh_study *y, int cell, int i_layer)
{
    return sh_persistence_min_head(of(y, cell), y->index_of[cell], i_layer);
}
