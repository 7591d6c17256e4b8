/* SPDX-License-Identifier: Apache-2.0 */
/* shears eval --task (eval_job.h). */
#include "src/app/eval/eval_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/app/store/results.h"

enum { MOST_POLICIES = 64 };

struct work {
    const struct sh_task_request *q;
    const struct sh_common *common;
    const struct sh_task *task;
    struct sh_live live;
    struct sh_timing timing;
    struct sh_tokenizer *tokenizer;
    struct sh_policy_spec spec[MOST_POLICIES], all;
    int n_spec, n_budget;
    struct sh_budget budget[SH_MAX_BUDGETS];
    struct sh_task_prompt *prompt;      /* [n]                                                    */
    int n, longest, n_cut;
    uint64_t hash;                      /* of all prompts                                         */
    struct sh_task_row *row;            /* [n_row + 1]; the last one: the full cache in f32       */
    int n_row;
    struct sh_task_score *full;         /* [n]: of the full cache                                 */
    FILE *items;
    int kept;                           /* rows written to the store                              */
};

static int read_request(struct work *w, struct sh_err *e)
{
    const struct sh_task_request *q = w->q;
    if (!(w->task = sh_task_find(q->task, e)))
        return sh_err_prefix(e, "--task");
    if (!q->data)
        return sh_misused(e, "--task requires --data FILE, a jsonl file of records");
    if (q->shots_data && !q->shots)
        return sh_misused(e, "--shots-data requires --shots N, the number of examples to take from it");
    if (sh_live_read(&w->live, &q->live, w->common, "eval", e))
        return -1;
    if (q->policy->n > MOST_POLICIES)
        return sh_misused(e, "--policy: more than %d policies", MOST_POLICIES);
    for (int i = 0; i < q->policy->n; i++)
        if (sh_policy_parse(q->policy->at[i], &w->spec[w->n_spec++], e))
            return sh_err_prefix(e, "--policy");
    if (q->budget->n && !q->policy->n)
        return sh_misused(e, "--budget requires --policy NAME");
    if (!w->n_spec && sh_policy_parse("full", &w->spec[w->n_spec++], e))
        return -1;
    if (!q->budget->n && sh_budget_parse("0.1,0.2,0.3,0.5", w->budget, &w->n_budget, e))
        return -1;
    for (int i = 0; i < q->budget->n; i++)
        if (sh_budget_parse(q->budget->at[i], w->budget, &w->n_budget, e))
            return sh_err_prefix(e, "--budget");
    return sh_policy_parse("full", &w->all, e);
}

/* FNV-1a over all tokens. */
static void add_hash(struct work *w, const struct sh_task_prompt *p)
{
    for (int i = 0; i < p->n; i++) {
        w->hash = (w->hash ^ (uint64_t)p->choice[i].n_context) * 0x100000001b3u;
        for (int t = 0; t < p->choice[i].n; t++)
            w->hash = (w->hash ^ (uint32_t)p->choice[i].ids[t]) * 0x100000001b3u;
        w->n_cut += p->choice[i].is_cut;
    }
    w->hash = (w->hash ^ (uint64_t)p->gold) * 0x100000001b3u;
    w->longest = p->longest > w->longest ? p->longest : w->longest;
}

static int make_prompts(struct work *w, const struct sh_task_item *shots, const struct sh_task_item *item, int n,
                        struct sh_err *e)
{
    int max_pos = sh_model_arch(w->live.model)->max_pos;
    w->prompt = xcalloc((size_t)n, sizeof *w->prompt);
    w->hash = 0xcbf29ce484222325u;
    for (; w->n < n; w->n++) {
        struct sh_task_prompt *p = &w->prompt[w->n];
        if (sh_task_prompt_make(p, &item[w->n], shots, (int)w->q->shots, w->tokenizer, max_pos, e)) {
            sh_task_prompt_free(p);
            return sh_err_prefix(e, "%s", w->q->data);
        }
        add_hash(w, p);
    }
    return 0;
}

static void free_items(struct sh_task_item *item, int n)
{
    for (int i = 0; i < n; i++)
        sh_task_item_free(&item[i]);
    free(item);
}

/* Examples are the first records of --shots-data, or of --data, where they are not scored. */
static int read_items(struct work *w, struct sh_err *e)
{
    const struct sh_task_request *q = w->q;
    struct sh_task_item *item = NULL, *other = NULL;
    int n_shot = (int)q->shots, own = q->shots_data ? 0 : n_shot, n = 0, n_other = 0;
    int most = q->count ? (int)q->count + own : 0;
    int bad = sh_task_load(w->task, q->data, most, &item, &n, e) ||
              (q->shots_data && sh_task_load(w->task, q->shots_data, n_shot, &other, &n_other, e));
    if (!bad && (q->shots_data ? n_other < n_shot : n <= n_shot))
        bad = sh_misused(e, "--shots %d: %s has only %d record%s", n_shot, q->shots_data ? q->shots_data : q->data,
                         q->shots_data ? n_other : n, (q->shots_data ? n_other : n) == 1 ? "" : "s");
    bad = bad || make_prompts(w, q->shots_data ? other : item, item + own, n - own, e);
    free_items(item, n);
    free_items(other, n_other);
    return bad ? -1 : 0;
}

static struct sh_measured measured(const struct work *w)
{
    struct sh_measured m = {.texts = w->n, .hash = w->hash};
    sh_measured_name(&m, w->q->data);
    return m;
}

static void name_row(const struct work *w, struct sh_task_row *r)
{
    const struct sh_task_reader *c = &r->reader;
    const struct sh_live_options *live = &w->q->live;
    struct sh_eval_scene scene = {.model = sh_model_fingerprint(w->live.model), .on = measured(w), .dtype = live->dtype,
                                  .task = w->task->name, .shots = w->q->shots, .prefill = c->prefill,
                                  .weight_bits = live->weight_bits, .activation_bits = live->activation_bits,
                                  .seed = c->seed,
                                  .weight_prune = live->weight_prune,
                                  .unpruned = sh_model_fingerprint_unpruned(w->live.model)};
    r->settings = sh_eval_settings(c->spec, &c->budget, &c->format, NULL, &scene);
}

/* One row per policy and budget; a policy that keeps everything at any budget has one. */
static void make_rows(struct work *w)
{
    const struct sh_budget whole = {.share = 1};
    struct sh_task_reader r = {.prefill = (int)w->q->live.prefill, .seed = w->live.seed};
    int n_layer = sh_model_arch(w->live.model)->n_layer;
    w->row = xcalloc((size_t)(w->n_spec * w->n_budget + 1), sizeof *w->row);
    r.format = w->live.format;
    for (int i = 0; i < w->n_spec; i++)
        for (int b = 0; b < w->n_budget; b++) {
            int all = sh_live_keeps_all(&w->spec[i], n_layer);
            r.spec = &w->spec[i];
            r.budget = all ? whole : w->budget[b];
            if (!all || !b)
                w->row[w->n_row++].reader = r;
        }
    r.spec = &w->all;
    r.budget = whole;
    r.format = (struct sh_kv_format){.bits = 32};
    w->row[w->n_row].reader = r;
    for (int i = 0; i <= w->n_row; i++)
        name_row(w, &w->row[i]);
}

static int open_all(struct work *w, struct sh_err *e)
{
    const char *path = w->q->live.model;
    w->live.devices.stages = sh_timing_begin(&w->timing, w->q->timing);
    if (sh_live_open(&w->live, w->common, e) ||
        !(w->tokenizer = sh_text_tokenizer(path, sh_model_arch(w->live.model)->n_vocab, e)) || read_items(w, e))
        return -1;
    make_rows(w);
    return 0;
}

static void write_item(const struct work *w, const struct sh_task_row *r, const struct sh_task_prompt *p,
                       const struct sh_task_score *s)
{
    char knobs[SH_POLICY_TEXT], budget[SH_BUDGET_TEXT];
    if (!w->items)
        return;
    fprintf(w->items, "{\"policy\": \"%s\", \"knobs\": \"%s\", \"budget\": \"%s\", \"kv_bits\": %d, \"line\": %d, "
            "\"gold\": %d, \"choice\": %d, \"choice_norm\": %d, \"choices\": [", r->reader.spec->policy->name,
            sh_policy_knobs(r->reader.spec, knobs), sh_budget_text(&r->reader.budget, budget), r->reader.format.bits,
            p->line, p->gold, s->best, s->best_norm);
    for (int i = 0; i < p->n; i++)
        fprintf(w->items, "%s{\"loglikelihood\": %.9g, \"context_tokens\": %d, \"tokens\": %d, \"characters\": %d, "
                "\"greedy\": %s}", i ? ", " : "", s->sum[i], p->choice[i].n_context,
                p->choice[i].n - p->choice[i].n_context, p->choice[i].characters, s->is_greedy[i] ? "true" : "false");
    fputs("]}\n", w->items);
}

static int read_row(struct work *w, struct sh_task_row *r, struct sh_progress *progress, double *done,
                    struct sh_store *store, struct sh_err *e)
{
    struct sh_task_sums sums = {0};
    int is_full = r == &w->row[w->n_row];
    for (int i = 0; i < w->n; i++) {
        struct sh_task_score score, *to = is_full ? &w->full[i] : &score;
        double began = sh_now_s();
        if (sh_task_score_item(&r->reader, &w->prompt[i], to, e))
            return sh_err_prefix(e, "%s", w->q->data);
        sums.seconds += sh_now_s() - began;
        sh_task_sums_add(&sums, w->task, &w->prompt[i], to, is_full ? NULL : &w->full[i]);
        write_item(w, r, &w->prompt[i], to);
        sh_progress_at(progress, *done += 1, "");
        if (sh_interrupted())
            return sh_fail(e, "interrupted");
    }
    sh_task_row_fill(r, w->task, &sums);
    w->kept += store != NULL;
    struct sh_measured on = measured(w);
    return store ? sh_result_keep_all(store, "task", r->settings, &sh_task_metrics, r->at, &on, e) : 0;
}

/* Are the settings those of the full cache? Such a row needs no run of its own. */
static int is_full(const struct work *w, const struct sh_task_row *r)
{
    return r->reader.spec->policy == w->all.policy && r->reader.format.bits == 32;
}

/* The full cache comes first, since the others are compared with it. */
static int read_rows(struct work *w, struct sh_store *store, struct sh_err *e)
{
    struct sh_progress progress;
    double done = 0, missing = 1;
    int bad = 0;
    for (int i = 0; i < w->n_row; i++)
        missing += !w->row[i].is_known && !is_full(w, &w->row[i]);
    if (missing > 1 || !w->row[w->n_row].is_known) {
        w->full = xcalloc((size_t)w->n, sizeof *w->full);
        sh_progress_begin(&progress, w->task->name, "items", missing * w->n, w->common->quiet);
        bad = read_row(w, &w->row[w->n_row], &progress, &done, store, e);
        for (int i = 0; i < w->n_row && !bad; i++)
            if (!w->row[i].is_known && !is_full(w, &w->row[i]))
                bad = read_row(w, &w->row[i], &progress, &done, store, e);
        sh_progress_end(&progress);
    }
    for (int i = 0; i < w->n_row && !bad; i++)
        if (is_full(w, &w->row[i])) {
            memcpy(w->row[i].at, w->row[w->n_row].at, sizeof w->row[i].at);
            w->row[i].place = w->row[w->n_row].place;
        }
    if (bad && w->kept && !e->hint[0])
        sh_hint(e, "finished results are in %s; run the same command again to resume", w->q->db);
    return bad;
}

static int evaluate(struct work *w, struct sh_store *store, struct sh_err *e)
{
    int all_known = 1, widest = 1;
    for (int i = 0; i <= w->n_row; i++) {
        struct sh_task_row *r = &w->row[i];
        int found = store && !w->q->force && !w->q->items
                        ? sh_result_recall(store, "task", r->settings, &sh_task_metrics, r->at, e) : 0;
        if (found < 0)
            return -1;
        r->is_known = found;
        all_known &= found || (i < w->n_row && is_full(w, r));
    }
    for (int i = 0; i < w->n; i++)
        widest = w->prompt[i].n > widest ? w->prompt[i].n : widest;
    if (all_known)
        return read_rows(w, store, e);
    if (sh_live_load(&w->live, w->longest, w->longest * widest, 0, e))
        return -1;
    for (int i = 0; i <= w->n_row; i++) {
        w->row[i].reader.resident = w->live.resident;
        for (int k = 0; k < w->n; k++)
            if (sh_task_score_check(&w->row[i].reader, &w->prompt[k], e))
                return sh_err_prefix(e, "%s", w->q->data);
    }
    struct sh_file *f = w->q->items ? sh_file_begin(w->q->items, e) : NULL;
    if (w->q->items && !f)
        return -1;
    w->items = f ? sh_file_stream(f) : NULL;
    return sh_file_end(f, read_rows(w, store, e), e);
}

static void put_answer(const struct work *w, struct sh_out *o)
{
    const double *full = w->row[w->n_row].at;
    struct sh_props props;
    int known = 0;
    w->live.devices.backend->props(w->live.devices.at[0], &props);
    sh_out_text(o, "model", "model", sh_model_name(w->live.model));
    sh_out_text(o, "backend", "backend", w->live.devices.backend->name);
    sh_out_text(o, "dtype", "dtype", w->q->live.dtype);
    sh_out_text(o, "task", "task", w->task->name);
    sh_out_text(o, "data", "data", w->q->data);
    sh_out_int(o, "shots", "shots", w->q->shots);
    sh_out_int(o, "items", "items", w->n);
    sh_out_int(o, "cut_choices", "choices truncated at the beginning", w->n_cut);
    sh_out_real(o, "acc", "full cache: acc", full[SH_T_ACC], 4);
    sh_out_real(o, "stderr", "+-", full[SH_T_STDERR], 4);
    sh_out_real(o, "acc_norm", "full cache: acc_norm", full[SH_T_ACC_NORM], 4);
    sh_out_real(o, "acc_norm_stderr", "+-", full[SH_T_ACC_NORM_STDERR], 4);
    sh_out_real(o, "ppl", "full cache: perplexity of the answers", full[SH_T_PPL], 4);
    sh_out_list(o, "results",
                "policies and budgets (same choice, change of log-likelihoods: compared with the full cache)");
    for (int i = 0; i < w->n_row; i++) {
        known += w->row[i].is_known;
        sh_task_row_write(&w->row[i], w->task, !props.is_host, o);
    }
    sh_out_end(o);
    sh_timing_put(o, &w->timing);
    if (known)
        sh_out_note(o, "%d of %d rows were read from the store; --force recomputes them.", known, w->n_row);
}

static void close_all(struct work *w)
{
    for (int i = 0; i < w->n; i++)
        sh_task_prompt_free(&w->prompt[i]);
    for (int i = 0; w->row && i <= w->n_row; i++)
        free(w->row[i].settings);
    free(w->prompt);
    free(w->row);
    free(w->full);
    sh_tokenizer_free(w->tokenizer);
    sh_live_close(&w->live);
}

int sh_eval_tasks(const struct sh_task_request *q, const struct sh_common *common, struct sh_out *o, struct sh_err *e)
{
    struct work *w = xcalloc(1, sizeof *w);
    struct sh_store *store = NULL;
    w->q = q;
    w->common = common;
    int bad = read_request(w, e) || open_all(w, e) ||
              (q->db && !(store = sh_store_typed(sh_store_create(q->db, e), common->line))) || evaluate(w, store, e);
    if (!bad)
        put_answer(w, o);
    int is_empty = bad && store && !w->kept && sh_store_was_made(store);
    sh_store_close(store);
    if (is_empty)
        sh_store_remove(q->db);
    close_all(w);
    free(w);
    return bad ? -1 : 0;
}
