/* SPDX-License-Identifier: Apache-2.0 */
/* See eval_work.h: which cells are read when, by whom. */
#include "src/cli/eval_work.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

enum { AT_ONCE = 16 };                  /* caches that read in lockstep */

static int open_resident(struct sh_eval_work *w, struct sh_err *e)
{
    struct sh_props props;
    int longest = sh_text_source_longest(&w->source);
    w->devices.backend->props(w->devices.at[0], &props);
    struct sh_resident_setup setup = {.backend = w->devices.backend, .device = w->devices.at[0],
                                      .model = w->source.model, .dtype = w->dtype,
                                      .weight_bits = (int)w->a->weight_bits,
                                      .rows = props.rows_at_once < longest ? props.rows_at_once : longest,
                                      .positions = longest, .n_threads = (int)w->common->threads};
    w->eval.resident = sh_resident_open(&setup, e);
    return w->eval.resident ? 0 : sh_err_prefix(e, "%s", w->a->model);
}

static void on_host(void *to, const char *why)
{
    struct sh_eval_work *w = to;
    sh_live_say_host(&w->note, why, w->common);
}

static void on_tokens(void *to, int tokens)
{
    struct sh_eval_work *w = to;
    w->read += tokens;
    sh_progress_at(&w->progress, w->read, "");
}

/* The cells `of` [n] and, beside them, the reference on all texts. */
static int read_texts(struct sh_eval_work *w, const int *of, int n, struct sh_store *store, struct sh_err *e)
{
    struct sh_eval_cell cell[AT_ONCE];
    struct sh_eval_total *total = xcalloc(AT_ONCE + 1, sizeof *total), *full = &total[AT_ONCE];
    int bad = 0;
    for (int i = 0; i < n; i++)
        cell[i] = w->cell[of[i]];
    w->eval.cell = cell;
    w->eval.n_cell = n;
    w->eval.watched = n ? 0 : -1;
    for (int i = 0; i < w->source.texts.n && !bad; i++) {
        const struct sh_trace_sequence *q = &w->source.texts.sequence[i];
        struct sh_eval_text text = {.tokens = q->tokens, .n_token = q->n_tokens};
        if (w->answers.texts) {
            text.answer = w->answers.of[i];
            text.n_answer = w->answers.n[i];
        }
        w->dump.sequence = i;
        bad = sh_eval_read(&w->eval, &text, full, total, e) && sh_err_prefix(e, "%s", q->source);
    }
    for (int i = 0; i <= n && !bad; i++) {
        struct sh_eval_result *r = &w->result[i < n ? of[i] : w->n];
        sh_eval_result_fill(r, i < n ? &total[i] : full);
        bad = store && sh_eval_result_keep(r, store, e);
        w->kept += store && !bad;
    }
    free(total);
    return bad ? -1 : 0;
}

/* A cell without a run of its own has its twin's figures. */
static void take_twin(struct sh_eval_work *w, int i)
{
    struct sh_eval_result own = w->result[i];
    w->result[i] = w->result[w->twin[i]];
    w->result[i].cell = own.cell;
    w->result[i].settings = own.settings;
    w->result[i].is_known = own.is_known;
}

/* The cells that are not told by another one, in order: of[n], of all or of this shard. */
static int own_cells(const struct sh_eval_work *w, int *of)
{
    int n = 0, all = 0;
    for (int i = 0; i < w->n; i++)
        if (w->twin[i] == i && sh_part_has(&w->shard, all++))
            of[n++] = i;
    return n;
}

static void tell_twins(struct sh_eval_work *w)
{
    for (int i = 0; i < w->n; i++)
        if (w->twin[i] != i)
            take_twin(w, i);
}

static int read_groups(struct sh_eval_work *w, struct sh_store *store, struct sh_err *e)
{
    int *of = xcalloc((size_t)w->n + 1, sizeof *of), n = 0, bad = 0, own = own_cells(w, of);
    double tokens = (double)sh_text_source_tokens(&w->source);
    for (int i = 0; i < own; i++)
        if (!w->result[of[i]].is_known)
            of[n++] = of[i];
    int groups = n ? (n + AT_ONCE - 1) / AT_ONCE : !w->result[w->n].is_known;
    sh_progress_begin(&w->progress, "reading", "tokens", tokens * (n + groups), w->common->quiet);
    for (int g = 0; g < groups && !bad; g++) {
        int first = g * AT_ONCE, m = n - first < AT_ONCE ? n - first : AT_ONCE;
        bad = read_texts(w, of + first, m, store, e);
    }
    sh_progress_end(&w->progress);
    if (!bad)
        tell_twins(w);
    if (bad && store && w->kept && !e->hint[0])
        sh_hint(e, "finished results are in %s; the same command goes on from there", w->a->db);
    free(of);
    return bad;
}

static int all_known(const struct sh_eval_work *w)
{
    int known = w->result[w->n].is_known;
    for (int i = 0; i < w->n; i++)
        known &= w->result[i].is_known || w->twin[i] != i;
    return known;
}

static int check_lengths(const struct sh_eval_work *w, struct sh_err *e)
{
    for (int i = 0; i < w->source.texts.n; i++)
        if (sh_eval_check(&w->eval, w->source.texts.sequence[i].n_tokens, e))
            return -1;
    return 0;
}

/* ---- by several ranks: some cells are a unit, each with the reference beside them ---- */

/* Cells of a unit: two units a rank, but not fewer than four cells, since the reference costs as much as one. */
static int cells_of_unit(const struct sh_eval_work *w, int n)
{
    int size = w->cluster.me.size, per = (n + 2 * size - 1) / (2 * size), share = (n + size - 1) / size;
    per = per < 4 ? (share < 4 ? share : 4) : per;
    return per < 1 ? 1 : per > AT_ONCE ? AT_ONCE : per;
}

static int run_unit(void *to, int unit, struct sh_err *e)
{
    struct sh_eval_work *w = to;
    int *of = xcalloc((size_t)w->n + 1, sizeof *of), n = own_cells(w, of), per = cells_of_unit(w, n);
    int first = unit * per, m = n - first < per ? n - first : per;
    struct sh_store *own = sh_cluster_own(&w->cluster, e);
    w->read = 0;
    sh_progress_begin(&w->progress, "reading", "tokens", (double)sh_text_source_tokens(&w->source) * (m + 1), 1);
    int bad = !own || (!w->eval.resident && (open_resident(w, e) || check_lengths(w, e))) ||
              read_texts(w, of + first, m, own, e);
    sh_progress_end(&w->progress);
    free(of);
    return bad ? -1 : 0;
}

static int share(struct sh_eval_work *w, struct sh_store *store, struct sh_err *e)
{
    int *of = xcalloc((size_t)w->n + 1, sizeof *of), n = own_cells(w, of), per = cells_of_unit(w, n);
    int units = n ? (n + per - 1) / per : 1;            /* none: the reference alone */
    double *size = xcalloc((size_t)units, sizeof *size);
    unsigned char *known = xcalloc((size_t)units, 1);
    for (int u = 0; u < units; u++) {
        known[u] = (unsigned char)w->result[w->n].is_known;
        for (int i = u * per; i < (u + 1) * per && i < n; i++, size[u]++)
            known[u] &= (unsigned char)w->result[of[i]].is_known;
        size[u]++;
    }
    struct sh_share s = {.n = units, .size = size, .done = known, .run = run_unit, .to = w,
                         .timeout_s = w->a->rank_timeout, .what = "reading", .quiet = w->common->quiet};
    int bad = sh_cluster_run(&w->cluster, &s, store, e);
    free(of);
    free(size);
    free(known);
    return bad;
}

/* Rank 0 joins what all found, and shows it; rows that were there before stay marked. */
static int evaluate_shared(struct sh_eval_work *w, struct sh_store *store, struct sh_err *e)
{
    int *known = xcalloc((size_t)w->n + 1, sizeof *known);
    int bad = store && (sh_cluster_gather(&w->cluster, store, e) ||
                        (!w->a->force && sh_eval_results_find(w->result, w->n + 1, store, e)));
    for (int i = 0; i <= w->n; i++)
        w->kept |= known[i] = w->result[i].is_known;
    bad = bad || share(w, store, e) || (store && sh_eval_results_find(w->result, w->n + 1, store, e));
    for (int i = 0; i <= w->n; i++) {
        w->kept |= w->result[i].is_known;
        w->result[i].is_known = known[i];
    }
    tell_twins(w);
    free(known);
    return bad;
}

int sh_evaluate(struct sh_eval_work *w, struct sh_store *store, struct sh_err *e)
{
    const struct sh_eval_args *a = w->a;
    w->eval = (struct sh_eval){.cell = w->cell, .n_cell = w->n, .prefill = w->prefill,
                               .seed = (uint64_t)w->common->seed, .watch = a->dump ? sh_eval_dump_kept : NULL,
                               .take = a->logits ? sh_eval_dump_logits : NULL, .to = &w->dump,
                               .progress = on_tokens, .progress_to = w, .say = on_host};
    if (w->cluster.ranks)
        return evaluate_shared(w, store, e);
    if (store && !a->force && !a->logits && !a->dump && sh_eval_results_find(w->result, w->n + 1, store, e))
        return -1;
    w->dump = (struct sh_eval_dump){.kept_path = a->dump, .logits_path = a->logits, .every = (int)a->dump_every,
                                    .n_vocab = sh_model_arch(w->source.model)->n_vocab};
    if (all_known(w))
        return read_groups(w, store, e);
    if (open_resident(w, e) || check_lengths(w, e) ||
        sh_eval_dump_begin(&w->dump, sh_text_source_tokens(&w->source), e))
        return -1;
    return sh_eval_dump_end(&w->dump, read_groups(w, store, e), e);
}

/* ---- the answer ---- */
