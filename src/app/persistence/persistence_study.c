/* SPDX-License-Identifier: Apache-2.0 */
/* A layer of a sequence is read at a time; its heads are processed in parallel. */
#include "src/app/persistence/persistence_study.h"

#include <stdlib.h>
#include <string.h>

#include "src/app/common/recorded.h"
#include "src/base/mem.h"
#include "src/base/progress.h"

struct layer {                          /* the blocks of one (sequence, layer), copied */
    struct sh_recorded r;
    struct sh_batch stats;
    const struct sh_stats_spec *spec;
    int by_rows;                        /* from the rows, not from the stored statistics */
    struct sh_stats **s;                /* [r.n_head] */
};

struct feed {
    struct sh_stats *s;
    int bad;
};

static int feed_row(void *to, const struct sh_row *r)
{
    struct feed *f = to;
    f->bad = r->sparse ? sh_stats_row_sparse(f->s, r->q, r->first_key, r->n, r->key, r->score, r->n_stored)
                       : sh_stats_row(f->s, r->q, r->first_key, r->score, r->n);
    return f->bad;
}

static struct sh_stats *stored_stats(const struct layer *l, int head, struct sh_err *e)
{
    for (int i = 0; i < l->stats.n_block; i++) {
        const struct sh_block *b = &l->stats.block[i];
        unsigned char *plain;
        size_t n;
        struct sh_stats *s;
        if (b->head != head)
            continue;
        if (sh_codec_unbytes(b->blob, b->bytes, (size_t)1 << 32, &plain, &n, e))
            return NULL;
        int bad = sh_stats_unpack(plain, n, &s, e);
        free(plain);
        return bad ? NULL : s;
    }
    sh_fail(e, "statistics are missing");
    return NULL;
}

/* The statistics that all cells need. */
static void spec_of(const struct sh_collect *g, struct sh_stats_spec *spec)
{
    *spec = (struct sh_stats_spec){.window = g->window};
    for (int i = 0; i < g->n_cell; i++) {
        const struct sh_persistence_cell *c = &g->cell[i];
        int k;
        for (k = 0; k < spec->n_alpha && !sh_alpha_equal(&spec->alpha[k], &c->alpha); k++)
            ;
        if (k == spec->n_alpha)
            spec->alpha[spec->n_alpha++] = c->alpha;
        for (k = 0; k < spec->n_recent && spec->recent[k] < c->recent; k++)
            ;
        if (k == spec->n_recent || spec->recent[k] != c->recent) {
            memmove(spec->recent + k + 1, spec->recent + k, (size_t)(spec->n_recent - k) * sizeof(int));
            spec->recent[k] = c->recent;
            spec->n_recent++;
        }
        for (k = 0; k < spec->n_split && spec->split[k] < c->split; k++)
            ;
        if (k == spec->n_split || spec->split[k] != c->split) {
            memmove(spec->split + k + 1, spec->split + k, (size_t)(spec->n_split - k) * sizeof(double));
            spec->split[k] = c->split;
            spec->n_split++;
        }
    }
}

/* Statistics of one head, made from its rows. The stored statistics give what the rows cannot: the row sums of a sparse
 * head, and the sets that the codes of a log8 head do not decide. */
static struct sh_stats *from_rows(const struct layer *l, int head, struct sh_err *e)
{
    int sparse = 0, length = l->r.sequence->n_tokens;
    struct feed f = {.s = sh_stats_new(l->spec, length)};
    for (int i = 0; i < l->r.scores.n_block; i++) {
        const struct sh_block *b = &l->r.scores.block[i];
        if (b->head != head)
            continue;
        sparse |= b->codec & SH_CODEC_SPARSE;
        if (sh_codec_rows(b, feed_row, &f, e) || f.bad) {
            if (f.bad)
                sh_fail(e, "rows from %d on are not consecutive", b->first_row);
            sh_stats_free(f.s);
            return NULL;
        }
    }
    int wants = sparse || l->stats.n_block > 0;
    struct sh_stats *stored = wants ? stored_stats(l, head, e) : NULL;
    if (stored && sparse)
        f.s->sums = stored->sums;
    else if (stored && stored->length == length && sh_stats_is_complete(f.s))
        sh_stats_take_exact(f.s, stored);
    int bad = wants && !stored;
    sh_stats_free(stored);
    if (!bad && !sh_stats_is_complete(f.s))
        bad = sh_fail(e, "found %d rows, expected %d", f.s->n_row, length);
    if (!bad)
        return f.s;
    sh_stats_free(f.s);
    return NULL;
}

static int take_head(void *to, int head, struct sh_err *e)
{
    struct layer *l = to;
    l->s[head] = l->by_rows ? from_rows(l, head, e) : stored_stats(l, head, e);
    return l->s[head] ? 0 : sh_err_prefix(e, "head %d", head);
}

static int work_layer(struct sh_collect *g, struct layer *l, struct sh_err *e)
{
    const struct sh_stored_run *run = l->r.run;
    l->by_rows = run->record == SH_RECORD_FULL || (run->record == SH_RECORD_SPARSE && l->spec->n_alpha);
    for (int i = 0; i < l->spec->n_alpha && run->record == SH_RECORD_SPARSE; i++)
        l->by_rows &= sh_stats_sparse_can(&l->spec->alpha[i]);
    l->s = xcalloc((size_t)l->r.n_head, sizeof(struct sh_stats *));
    int bad = sh_each_head(l->r.n_head, g->threads, take_head, l, e);
    for (int h = 0; h < l->r.n_head; h++) {
        if (!bad)
            bad = sh_persistence_add(g->p, l->r.sequence->id, l->r.layer, h, l->s[h], e);
        sh_stats_free(l->s[h]);
    }
    free(l->s);
    return bad;
}

static int gather_run(struct sh_collect *g, struct sh_store *s, const struct sh_runs *runs, int i_run,
                      const struct sh_stats_spec *spec, struct sh_err *e)
{
    const struct sh_stored_run *run = &runs->run[i_run];
    const struct sh_stored_sequence *q = runs->sequence[i_run];
    struct sh_progress progress;
    int n = runs->n_sequence[i_run], bad = 0, n_layer = run->last_layer - run->first_layer + 1;
    sh_progress_begin(&progress, "persistence", "layers", (double)n * n_layer, g->quiet);
    for (int i = 0; i < n && !bad; i++) {
        g->n_sequence++;
        g->n_tokens += q[i].n_tokens;
        for (int layer = run->first_layer; layer <= run->last_layer && !bad; layer++) {
            struct layer l = {.r = {.store = s, .run = run, .sequence = &q[i], .layer = layer}, .spec = spec};
            int done = sh_store_layer(s, q[i].id, layer, e);
            if (done != SH_LAYER_DONE) {
                bad = done < 0 ? -1 : 0;
                g->n_unfinished += done <= 0;
                continue;
            }
            bad = (run->record == SH_RECORD_SUMMARY ? sh_recorded_heads(&l.r, e) : sh_recorded_read(&l.r, 0, e)) ||
                  sh_store_blocks(s, SH_BLOCK_STATS, q[i].id, layer, -1, sh_store_keep, &l.stats, e) ||
                  work_layer(g, &l, e);
            sh_batch_clear(&l.stats);
            bad = sh_recorded_end(&l.r, bad, e);
            sh_progress_at(&progress, (double)i * n_layer + layer - run->first_layer + 1, "");
        }
    }
    sh_progress_end(&progress);
    return bad;
}

static int run_can(const struct sh_stored_run *r, const struct sh_persistence_cell *c, int window, const char *path,
                   struct sh_err *e)
{
    char name[SH_ALPHA_NAME];
    struct sh_stats_spec spec;
    if (r->record == SH_RECORD_FULL || (r->record == SH_RECORD_SPARSE && sh_stats_sparse_can(&c->alpha)))
        return 0;
    if (sh_stats_spec_parse(r->statistics, &spec, e)) {
        e->status = SH_FAILED;                  /* an error in the store, not in the request */
        return sh_err_prefix(e, "%s: run %d", path, r->id);
    }
    int alpha = 0, recent = 0, split = 0;
    for (int i = 0; i < spec.n_alpha; i++)
        alpha |= sh_alpha_equal(&spec.alpha[i], &c->alpha);
    for (int i = 0; i < spec.n_recent; i++)
        recent |= spec.recent[i] == c->recent;
    for (int i = 0; i < spec.n_split; i++)
        split |= spec.split[i] == c->split;
    if (alpha && recent && split && spec.window == window)
        return 0;
    sh_alpha_name(&c->alpha, name);
    sh_misused(e, "%s: run %d recorded %s, without statistics for alpha %s, recent %d, split %g, window %d", path,
               r->id, sh_record_names[r->record], name, c->recent, c->split, window);
    return sh_hint(e, "it has %s; trace with other --alpha, --recent, --split, or with --record full", r->statistics);
}

int sh_collect_can(struct sh_store *s, int run, const struct sh_persistence_cell *c, int window, struct sh_err *e)
{
    struct sh_stored_run *runs;
    int n, bad = 0;
    if (sh_runs_choose(s, run, &runs, &n, e))
        return -1;
    for (int i = 0; i < n && !bad; i++)
        bad = run_can(&runs[i], c, window, sh_store_path(s), e);
    sh_stored_runs_free(runs, n);
    return bad;
}

int sh_collect_run(struct sh_collect *g, struct sh_store *s, struct sh_err *e)
{
    struct sh_runs runs;
    struct sh_stats_spec spec;
    if (sh_runs_open(&runs, s, g->run, e))
        return -1;
    const struct sh_stored_run *run = runs.run;
    int bad = 0;
    spec_of(g, &spec);
    g->p = sh_persistence_new(g->cell, g->n_cell);
    g->model = xstrdup(run->model);
    g->weights = xstrdup(run->weights);
    g->n_layer = run->n_layer;
    g->n_head = run->n_head;
    for (int i = 0; i < runs.n && !bad; i++)
        bad = gather_run(g, s, &runs, i, &spec, e);
    sh_runs_close(&runs);
    if (!bad)
        bad = sh_persistence_finish(g->p, e);
    if (!bad && !sh_persistence_n_layer(g->p))
        bad = sh_fail(e, "%s: no layer is finished", sh_store_path(s));
    return bad ? -1 : 0;
}

void sh_collect_free(struct sh_collect *g)
{
    sh_persistence_free(g->p);
    free(g->model);
    free(g->weights);
    g->p = NULL;
    g->model = g->weights = NULL;
}

/* ---- a study: cells in one or two passes ---- */

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
    return sh_persistence_figures(of(y, cell), y->index_of[cell], -1, -1);
}

const double *sh_study_layer(const struct sh_study *y, int cell, int i_layer)
{
    return sh_persistence_figures(of(y, cell), y->index_of[cell], i_layer, -1);
}

const double *sh_study_head(const struct sh_study *y, int cell, int i_layer, int i_head)
{
    return sh_persistence_figures(of(y, cell), y->index_of[cell], i_layer, i_head);
}

int sh_study_n_head(const struct sh_study *y, int cell, int i_layer)
{
    return sh_persistence_n_head(of(y, cell), i_layer);
}

int sh_study_min_head(const struct sh_study *y, int cell, int i_layer)
{
    return sh_persistence_min_head(of(y, cell), y->index_of[cell], i_layer);
}
