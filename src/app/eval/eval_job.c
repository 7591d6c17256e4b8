/* SPDX-License-Identifier: Apache-2.0 */
/* See eval_job.h: which cells are read when, by whom. */
#include "src/app/eval/eval_job.h"

#include <stdlib.h>

#include "src/base/mem.h"
#include "src/app/store/results.h"

enum { AT_ONCE = 32,                    /* caches that read together, at most: results are kept after each group */
       TEXTS = 64 };                    /* texts that are read side by side, at most              */

static int open_resident(struct sh_eval_job *w, struct sh_err *e)
{
    struct sh_props props;
    int longest = sh_text_source_longest(&w->source), block = (int)w->a->prefill_block;
    struct sh_resident_setup setup = {.backend = w->devices.backend, .device = w->devices.at[0],
                                      .model = w->source.model, .dtype = w->dtype,
                                      .weight_bits = (int)w->a->weight_bits,
                                      .positions = longest, .n_threads = (int)w->common->threads,
                                      .stages = w->devices.stages, .on_host = sh_live_say_host,
                                      .on_eager = sh_live_say_eager, .to = &w->note};
    w->note.quiet = w->common->quiet;
    setup.backend->props(setup.device, &props);
    if (w->a->stream)
        setup.rows = props.rows_at_once > block ? props.rows_at_once : block;
    else
        sh_resident_for_texts(&setup, longest, sh_text_source_tokens(&w->source), block);
    setup.rows = w->a->stream && setup.rows > longest ? longest : setup.rows;
    w->eval.resident = sh_resident_open(&setup, e);
    return w->eval.resident ? 0 : sh_err_prefix(e, "%s", w->a->model);
}

static void on_tokens(void *to, int tokens)
{
    struct sh_eval_job *w = to;
    w->read += tokens;
    sh_progress_at(&w->progress, w->read, "");
}

/* How many texts from `first` on have its length, up to `most`. */
static int of_one_length(const struct sh_eval_job *w, int first, int most)
{
    const struct sh_trace_sequence *q = w->source.texts.sequence;
    int n = 1;
    while (n < most && first + n < w->source.texts.n && q[first + n].n_tokens == q[first].n_tokens)
        n++;
    return n;
}

/* How many texts of this one's length go through the caches together. -1: not as many as were asked for. */
static int texts_at_once(const struct sh_eval_job *w, int first, struct sh_err *e)
{
    int asked = (int)w->a->batch, n_token = w->source.texts.sequence[first].n_tokens;
    if (!asked && (w->eval.watch || w->eval.take))
        return 1;
    int n = of_one_length(w, first, asked ? asked : TEXTS), fit = n > 1 ? sh_eval_fit(&w->eval, n_token, n) : 1;
    if (asked && fit < n)
        return sh_fail(e, "--batch %d: not enough memory for so many texts of %d tokens: at most %d fit", asked,
                       n_token, fit);
    return fit > 1 ? fit : 1;
}

/* Adds to sum and sequences [n_cell + 1]: the cells', then the full cache's. */
static int read_some(struct sh_eval_job *w, int first, int n, struct sh_eval_total *sum,
                     struct sh_eval_sequences *sequences, struct sh_err *e)
{
    const struct sh_trace_sequence *q = &w->source.texts.sequence[first];
    struct sh_eval_text *text = xcalloc((size_t)n, sizeof *text);
    for (int i = 0; i < n; i++) {
        text[i] = (struct sh_eval_text){.tokens = q[i].tokens, .n_token = q[i].n_tokens};
        if (w->answers.texts) {
            text[i].answer = w->answers.of[first + i];
            text[i].n_answer = w->answers.n[first + i];
        }
    }
    int n_run = w->eval.n_cell + 1;
    struct sh_eval_total *total = xcalloc((size_t)n * (size_t)n_run, sizeof *total);
    w->dump.sequence = first;
    int bad = sh_eval_read(&w->eval, text, n, total, e) && sh_err_prefix(e, "%s", q->source);
    for (int i = 0; i < n && !bad; i++)
        bad = sh_eval_check_finite(&w->eval, total + i * n_run, e) && sh_err_prefix(e, "%s", q[i].source);
    for (int i = 0; i < n * n_run && !bad; i++)
        sh_eval_total_add(&sum[i % n_run], &total[i]);
    for (int i = 0; i < n * n_run && !bad; i++)
        sh_eval_sequences_add(&sequences[i % n_run], &total[i], w->source.texts.n < SH_EVAL_LEAST_SEQUENCES);
    free(total);
    free(text);
    return bad ? -1 : 0;
}

/* Reads all texts with the cells `of` [n] and the reference. */
static int read_texts(struct sh_eval_job *w, const int *of, int n, struct sh_store *store, struct sh_err *e)
{
    struct sh_eval_cell cell[AT_ONCE];
    struct sh_eval_total *total = xcalloc((size_t)n + 1, sizeof *total);
    struct sh_eval_sequences *sequences = xcalloc((size_t)n + 1, sizeof *sequences);
    int bad = 0;
    for (int i = 0; i < n; i++)
        cell[i] = w->cell[of[i]];
    w->eval.cell = cell;
    w->eval.n_cell = n;
    w->eval.watched = n ? 0 : -1;
    for (int i = 0, some, at_once = 0; i < w->source.texts.n && !bad; i += some) {
        const struct sh_trace_sequence *q = &w->source.texts.sequence[i];
        if (!i || q->n_tokens != q[-1].n_tokens)
            at_once = texts_at_once(w, i, e);
        some = of_one_length(w, i, at_once);
        bad = at_once < 0 || read_some(w, i, some, total, sequences, e);
    }
    for (int i = 0; i <= n && !bad; i++) {
        struct sh_eval_result *r = &w->result[i < n ? of[i] : w->n];
        sh_eval_result_fill(r, &total[i], &sequences[i]);
        bad = store && sh_eval_result_keep(r, &sequences[i], store, e);
        w->kept += store && !bad;
    }
    for (int i = 0; i <= n; i++)
        free(sequences[i].at);
    free(sequences);
    free(total);
    return bad ? -1 : 0;
}

int sh_eval_own_cells(const struct sh_eval_job *w, int *of)
{
    int n = 0, all = 0;
    for (int i = 0; i < w->n; i++)
        if (w->twin[i] == i && sh_part_has(&w->shard, all++))
            of[n++] = i;
    return n;
}

/* Cells without a run of their own get their twins' figures. */
static void fill_twins(struct sh_eval_job *w)
{
    for (int i = 0; i < w->n; i++) {
        struct sh_eval_result *r = &w->result[i], own = *r;
        if (w->twin[i] == i)
            continue;
        *r = w->result[w->twin[i]];
        r->cell = own.cell;
        r->settings = own.settings;
        r->is_known = own.is_known;
    }
}

/* How many cells fit on the device together, with the longest text. */
static int cells_at_once(struct sh_eval_job *w, const int *of, int n)
{
    struct sh_eval_cell cell[AT_ONCE];
    int at_once = n < AT_ONCE ? n : AT_ONCE;
    struct sh_eval v = w->eval;
    for (int i = 0; i < at_once; i++)
        cell[i] = w->cell[of[i]];
    v.cell = cell;
    for (; at_once > 1; at_once = (at_once + 1) / 2) {
        v.n_cell = at_once;
        if (sh_eval_fit(&v, sh_text_source_longest(&w->source), 1))
            break;
    }
    return at_once;
}

static int read_groups(struct sh_eval_job *w, struct sh_store *store, struct sh_err *e)
{
    int *of = xcalloc((size_t)w->n + 1, sizeof *of), n = 0, bad = 0, own = sh_eval_own_cells(w, of);
    double tokens = (double)sh_text_source_tokens(&w->source);
    for (int i = 0; i < own; i++)
        if (!w->result[of[i]].is_known)
            of[n++] = of[i];
    int *size = xcalloc((size_t)w->n + 1, sizeof *size), groups = !n && !w->result[w->n].is_known;
    for (int first = 0; first < n; first += size[groups++])
        size[groups] = cells_at_once(w, of + first, n - first);
    sh_progress_begin(&w->progress, "reading", "tokens", tokens * (n + groups), w->common->quiet);
    for (int g = 0, first = 0; g < groups && !bad; first += size[g++])
        bad = read_texts(w, of + first, size[g], store, e);
    sh_progress_end(&w->progress);
    if (!bad)
        fill_twins(w);
    if (bad && store && w->kept && !e->hint[0])
        sh_hint(e, "finished results are in %s; run the same command again to resume", w->a->db);
    free(size);
    free(of);
    return bad;
}

static int check_lengths(const struct sh_eval_job *w, struct sh_err *e)
{
    for (int i = 0; i < w->source.texts.n; i++)
        if (sh_eval_check(&w->eval, w->source.texts.sequence[i].n_tokens, e))
            return -1;
    return 0;
}

/* ---- by several ranks: a unit is several cells and the reference ---- */

/* Cells of a unit: two units a rank, but not fewer than four cells, since the reference costs as much as one. */
static int cells_of_unit(const struct sh_eval_job *w, int n)
{
    int size = w->cluster.me.size, per = (n + 2 * size - 1) / (2 * size), share = (n + size - 1) / size;
    per = per < 4 ? (share < 4 ? share : 4) : per;
    return per < 1 ? 1 : per > AT_ONCE ? AT_ONCE : per;
}

static int run_unit(void *to, int unit, struct sh_err *e)
{
    struct sh_eval_job *w = to;
    int *of = xcalloc((size_t)w->n + 1, sizeof *of), n = sh_eval_own_cells(w, of), per = cells_of_unit(w, n);
    int first = unit * per, m = n - first < per ? n - first : per;
    struct sh_store *own = sh_job_own(&w->cluster, e);
    w->read = 0;
    sh_progress_begin(&w->progress, "reading", "tokens", (double)sh_text_source_tokens(&w->source) * (m + 1), 1);
    int bad = !own || (!w->eval.resident && (open_resident(w, e) || check_lengths(w, e))) ||
              read_texts(w, of + first, m, own, e);
    sh_progress_end(&w->progress);
    free(of);
    return bad ? -1 : 0;
}

static int share(struct sh_eval_job *w, struct sh_store *store, struct sh_err *e)
{
    int *of = xcalloc((size_t)w->n + 1, sizeof *of), n = sh_eval_own_cells(w, of), per = cells_of_unit(w, n);
    int units = n ? (n + per - 1) / per : 1;            /* none: the reference alone */
    struct sh_work_unit *unit = xcalloc((size_t)units, sizeof *unit);
    for (int u = 0; u < units; u++) {
        unit[u] = (struct sh_work_unit){.size = 1, .is_done = w->result[w->n].is_known};
        for (int i = u * per; i < (u + 1) * per && i < n; i++, unit[u].size++)
            unit[u].is_done &= w->result[of[i]].is_known;
    }
    struct sh_work_queue q = {.n = units, .unit = unit, .run = run_unit, .to = w, .what = "reading"};
    int bad = sh_job_run(&w->cluster, q, store, e);
    free(of);
    free(unit);
    return bad;
}

/* Erases what the ranks will compute: merging their results replaces nothing. */
static int forget_unknown(const struct sh_eval_job *w, struct sh_store *store, struct sh_err *e)
{
    int bad = 0;
    if (sh_store_group_begin(store, e))
        return -1;
    for (int i = 0; i <= w->n && !bad; i++)
        if (!w->result[i].is_known && (i == w->n || w->twin[i] == i))
            bad = sh_store_results_erase(store, "eval", w->result[i].settings, e);
    return sh_store_group_end(store, bad, e);
}

/* Rank 0 begins with the results of the store and of ranks that were killed, and joins those of all. With --force it
 * erases the store's before the ranks' stores are merged, so that different results do not conflict, and afterwards. */
static int evaluate_shared(struct sh_eval_job *w, struct sh_store *store, struct sh_err *e)
{
    int force = w->a->force, n = w->n + 1;
    int bad = store && ((force && forget_unknown(w, store, e)) || sh_job_gather(&w->cluster, store, e) ||
                        (!force && sh_eval_results_find(w->result, n, 0, store, e)) || forget_unknown(w, store, e));
    bad = bad || share(w, store, e) || (store && sh_eval_results_find(w->result, n, 1, store, e));
    fill_twins(w);
    return bad ? -1 : 0;
}

int sh_evaluate(struct sh_eval_job *w, struct sh_store *store, struct sh_err *e)
{
    const struct sh_eval_args *a = w->a;
    int known = 1;
    w->eval = (struct sh_eval){.cell = w->cell, .n_cell = w->n, .prefill = w->prefill,
                               .block = (int)w->a->prefill_block, .stream = w->a->stream,
                               .seed = (uint64_t)w->common->seed, .watch = a->dump ? sh_eval_dump_kept : NULL,
                               .take = a->logits ? sh_eval_dump_logits : NULL, .to = &w->dump,
                               .progress = on_tokens, .progress_to = w};
    if (w->cluster.ranks)
        return evaluate_shared(w, store, e);
    if (store && !a->force && !a->logits && !a->dump && sh_eval_results_find(w->result, w->n + 1, 0, store, e))
        return -1;
    w->dump = (struct sh_eval_dump){.kept_path = a->dump, .logits_path = a->logits, .every = (int)a->dump_every,
                                    .arch = sh_model_arch(w->source.model),
                                    .n_vocab = sh_model_arch(w->source.model)->n_vocab};
    for (int i = 0; i <= w->n; i++)
        known &= w->result[i].is_known || (i < w->n && w->twin[i] != i);
    if (known)
        return read_groups(w, store, e);
    if (open_resident(w, e) || check_lengths(w, e) ||
        sh_eval_dump_begin(&w->dump, sh_text_source_tokens(&w->source), e))
        return -1;
    return sh_eval_dump_end(&w->dump, read_groups(w, store, e), e);
}
