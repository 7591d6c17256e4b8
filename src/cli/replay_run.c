/* SPDX-License-Identifier: Apache-2.0 */
/* See replay_run.h. */
#include "src/cli/replay_run.h"

#include <stdlib.h>
#include <string.h>

#include "planner/replay_pass.h"
#include "src/base/interrupt.h"
#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/cli/head_rows.h"
#include "src/cli/runs.h"
#include "src/cli/vector_set.h"

enum { MOST_GROUP = 1024 };             /* query heads of a KV head */

/* ---- what must be true before anything runs ---- */

static const struct { enum sh_needs need; char letter; const char *what; } vectors[] = {
    {SH_NEEDS_KEYS, 'k', "keys"}, {SH_NEEDS_VALUES, 'v', "values"}, {SH_NEEDS_QUERIES, 'q', "queries"}};

static int check_needs(const struct sh_replay_request *q, const struct sh_stored_run *r, const char *path,
                       struct sh_err *e)
{
    if (r->record != SH_RECORD_FULL)
        return sh_fail(e, "%s: run %d recorded %s, replay needs full rows", path, r->id, sh_record_names[r->record]),
               sh_hint(e, "trace with --record full");
    for (int i = 0; i < q->n_spec; i++) {
        const struct sh_policy *p = q->spec[i].policy;
        for (size_t k = 0; k < sizeof vectors / sizeof *vectors; k++)
            if (p->needs & vectors[k].need && !strchr(r->vectors, vectors[k].letter))
                return sh_fail(e, "%s: the policy %s needs %s, and run %d recorded none", path, p->name,
                               vectors[k].what, r->id),
                       sh_hint(e, "trace with --vectors qkv");
        if (p->needs & SH_NEEDS_PROMPT && q->prefill < 1)
            return sh_misused(e, "the policy %s decides when the prompt has been read", p->name),
                   sh_hint(e, "say with --prefill N how many tokens the prompt has");
    }
    return 0;
}

static int check_budgets(const struct sh_replay_request *q, const struct sh_stored_sequence *s, const char *path,
                         struct sh_err *e)
{
    char text[SH_BUDGET_TEXT];
    for (int i = 0; i < q->n_spec; i++)
        for (int b = 0; b < q->n_budget; b++) {
            int tokens = sh_budget_tokens(&q->budget[b], s->n_tokens), protected = sh_policy_protected(&q->spec[i]);
            if (tokens <= protected && tokens < s->n_tokens && !q->leave_out_small)
                return sh_misused(e, "%s: sequence %d: budget %s is %d tokens, and %s protects %d (sinks and recent)",
                                  path, s->id, sh_budget_text(&q->budget[b], text), tokens,
                                  q->spec[i].policy->name, protected),
                       sh_hint(e, "a budget must be larger than what is protected");
        }
    return 0;
}

static int check_run(const struct sh_replay_request *q, struct sh_store *s, const struct sh_stored_run *r,
                     struct sh_err *e)
{
    struct sh_stored_sequence *sequence;
    int n, bad = check_needs(q, r, sh_store_path(s), e);
    if (bad || sh_store_sequences(s, r->id, &sequence, &n, e))
        return -1;
    if (r->n_kv_head < 1 || r->n_head < 1 || r->n_head % r->n_kv_head || r->n_head / r->n_kv_head > MOST_GROUP)
        bad = sh_fail(e, "%s: run %d: %d heads on %d KV heads make no groups", sh_store_path(s), r->id, r->n_head,
                      r->n_kv_head);
    for (int i = 0; i < n && !bad; i++)
        bad = check_budgets(q, &sequence[i], sh_store_path(s), e);
    sh_stored_sequences_free(sequence, n);
    return bad;
}

int sh_replay_check(const struct sh_replay_request *q, struct sh_store *s, struct sh_err *e)
{
    struct sh_stored_run *runs;
    int n, bad = 0;
    if (sh_runs_choose(s, q->run, &runs, &n, e))
        return -1;
    for (int i = 0; i < n && !bad; i++)
        bad = check_run(q, s, &runs[i], e);
    sh_stored_runs_free(runs, n);
    return bad;
}

/* ---- one layer of one sequence ---- */

struct layer {
    const struct sh_replay_request *q;
    const struct sh_stored_run *run;
    const struct sh_stored_sequence *sequence;
    int index, layer;                   /* index: of the sequence, over all runs */
    struct sh_batch scores;
    struct sh_vector_set vectors;
};

struct dump {
    const struct layer *l;
    FILE *to;
    int head;
};

static void dump_kept(void *to, int cell, int t, const struct sh_cache *c)
{
    const struct dump *d = to;
    const struct sh_replay_request *q = d->l->q;
    char knobs[SH_POLICY_TEXT], budget[SH_BUDGET_TEXT];
    if (t % q->dump_every)
        return;
    unsigned char *kept = xcalloc((size_t)t + 1, 1);
    for (int i = 0; i < c->n_slot; i++)
        if (c->pos[i] >= 0)
            kept[c->pos[i]] = 1;
    fprintf(d->to, "{\"sequence\": %d, \"layer\": %d, \"head\": %d, \"step\": %d, ", d->l->index, d->l->layer,
            d->head, t);
    if (q->n_spec * q->n_budget > 1) {
        const struct sh_policy_spec *spec = &q->spec[cell / q->n_budget];
        fprintf(d->to, "\"policy\": \"%s\", \"knobs\": \"%s\", \"budget\": %s, ", spec->policy->name,
                sh_policy_knobs(spec, knobs), sh_budget_text(&q->budget[cell % q->n_budget], budget));
    }
    fputs("\"kept\": [", d->to);
    for (int j = 0, n = 0; j <= t; j++)
        if (kept[j])
            fprintf(d->to, "%s%d", n++ ? ", " : "", j);
    fputs("]}\n", d->to);
    free(kept);
}

static int needs_future(const struct sh_replay_request *q)
{
    for (int i = 0; i < q->n_spec; i++)
        if (q->spec[i].policy->needs & SH_NEEDS_FUTURE)
            return 1;
    return 0;
}

/* The rows of a group's query heads, side by side. */
struct group {
    struct sh_head_rows head[MOST_GROUP];
    const float *row[MOST_GROUP];
    int n;
};

static void begin_group(struct group *g, const struct layer *l, int kv_head)
{
    g->n = l->run->n_head / l->run->n_kv_head;
    for (int i = 0; i < g->n; i++)
        sh_head_rows_begin(&g->head[i], &l->scores, kv_head * g->n + i);
}

static void end_group(struct group *g)
{
    for (int i = 0; i < g->n; i++)
        sh_head_rows_end(&g->head[i]);
}

static int next_row(struct group *g, int t, int *first_key, struct sh_err *e)
{
    for (int i = 0; i < g->n; i++) {
        int first;
        if (sh_head_rows_next(&g->head[i], t, &g->row[i], &first, e))
            return -1;
        if (i && first != *first_key)
            return sh_fail(e, "row %d begins at key %d in one head and at %d in another", t, *first_key, first);
        *first_key = first;
    }
    return 0;
}

/* All attention that each key gets: what the oracle may look at. */
static double *take_received(struct group *g, const struct layer *l, int kv_head, struct sh_err *e)
{
    int n = l->sequence->n_tokens, first = 0, bad = 0;
    double *received = xcalloc((size_t)n, sizeof *received);
    begin_group(g, l, kv_head);
    for (int t = 0; t < n && !bad; t++) {
        bad = next_row(g, t, &first, e);
        for (int i = 0; i < g->n && !bad; i++)
            for (int j = first; j <= t; j++)
                received[j] += (double)g->row[i][j - first] / g->n;
    }
    end_group(g);
    if (!bad)
        return received;
    free(received);
    return NULL;
}

static int replay_rows(struct sh_replay_pass *r, struct group *g, const struct layer *l, int kv_head, struct sh_err *e)
{
    int bad = 0, first = 0;
    begin_group(g, l, kv_head);
    for (int t = 0; t < l->sequence->n_tokens && !bad; t++)
        bad = next_row(g, t, &first, e) || sh_replay_pass_row(r, t, first, g->row, e);
    end_group(g);
    return bad;
}

static struct sh_replay_pass *begin_replay(const struct layer *l, int kv_head, const double *received)
{
    const struct sh_replay_request *q = l->q;
    int n_token = l->sequence->n_tokens, n_cell = q->n_spec * q->n_budget;
    struct sh_replay_cell *cell = xcalloc((size_t)n_cell, sizeof *cell);
    for (int i = 0; i < n_cell; i++) {
        int b = i % q->n_budget;
        cell[i].spec = &q->spec[i / q->n_budget];
        cell[i].budget = q->share_out ? q->share_out(q->share_to, b, n_token, l->layer, kv_head)
                                      : sh_budget_tokens(&q->budget[b], n_token);
        if (cell[i].budget <= sh_policy_protected(cell[i].spec) && cell[i].budget < n_token)
            cell[i].spec = NULL;
    }
    int group = l->run->n_head / l->run->n_kv_head, window = l->scores.n_block ? l->scores.block[0].window : 0;
    struct sh_replay_setup setup = {
        .n_token = n_token, .window = window, .prefill = q->prefill, .layer = l->layer, .head = kv_head,
        .n_layer = l->run->n_layer, .group = group, .rows = q->rows,
        .q = sh_vector_set_of(&l->vectors, 'q', kv_head * group),
        .k = sh_vector_set_of(&l->vectors, 'k', kv_head), .v = sh_vector_set_of(&l->vectors, 'v', kv_head),
        .d_head = l->run->d_head, .seed = q->seed, .received = received, .error_rows = q->error_every};
    int each_step = q->dump || (setup.v && setup.error_rows);
    struct sh_replay_pass *r = sh_replay_pass_new(&setup, cell, q->n_spec, q->n_budget, each_step);
    free(cell);
    return r;
}

static int replay_head(const struct layer *l, int kv_head, struct sh_replay_total *total, FILE *dump, struct sh_err *e)
{
    struct group *g = xcalloc(1, sizeof *g);
    struct dump d = {l, dump, kv_head};
    double *received = needs_future(l->q) ? take_received(g, l, kv_head, e) : NULL;
    int bad = needs_future(l->q) && !received;
    struct sh_replay_pass *r = bad ? NULL : begin_replay(l, kv_head, received);
    if (r && dump)
        sh_replay_pass_set_watch(r, dump_kept, &d);
    bad = bad || replay_rows(r, g, l, kv_head, e);
    for (int i = 0; i < l->q->n_spec * l->q->n_budget && !bad; i++) {
        struct sh_replay_sums sums;
        sh_replay_pass_sums(r, i, &sums);
        sh_replay_total_add(total, i, l->index, l->layer - l->run->first_layer, kv_head, &sums);
    }
    sh_replay_pass_free(r);
    free(received);
    free(g);
    return bad ? sh_err_prefix(e, "KV head %d", kv_head) : 0;
}

/* Heads on threads; each dumps into memory, and the dumps are joined in order. */
static int replay_layer(const struct layer *l, struct sh_replay_total *total, struct sh_err *e)
{
    int n = l->run->n_kv_head, bad = 0;
    char **text = xcalloc((size_t)n, sizeof *text);
    size_t *bytes = xcalloc((size_t)n, sizeof *bytes);
#pragma omp parallel for schedule(dynamic, 1) num_threads(l->q->threads)
    for (int h = 0; h < n; h++) {
        struct sh_err mine;
        FILE *dump = l->q->dump ? open_memstream(&text[h], &bytes[h]) : NULL;
        int failed = replay_head(l, h, total, dump, &mine);
        if (dump)
            fclose(dump);
        if (failed) {
#pragma omp critical
            if (!bad) {
                bad = -1;
                *e = mine;
            }
        }
    }
    for (int h = 0; h < n; h++) {
        if (text[h] && !bad)
            fwrite(text[h], 1, bytes[h], l->q->dump);
        free(text[h]);
    }
    free(text);
    free(bytes);
    return bad;
}

/* ---- all of it ---- */

static int load_layer(struct layer *l, struct sh_store *s, struct sh_err *e)
{
    return sh_store_blocks(s, SH_BLOCK_SCORES, l->sequence->id, l->layer, -1, sh_store_keep, &l->scores, e) ||
           (*l->run->vectors && sh_vector_set_read(&l->vectors, s, l->sequence, l->layer, l->run, e));
}

static int run_sequence(const struct sh_replay_request *q, struct sh_store *s, const struct sh_stored_run *run,
                        const struct sh_stored_sequence *sequence, struct sh_replay_result *out,
                        struct sh_progress *progress, struct sh_err *e)
{
    int bad = 0;
    for (int layer = run->first_layer; layer <= run->last_layer && !bad; layer++) {
        struct layer l = {.q = q, .run = run, .sequence = sequence, .index = out->n_sequence, .layer = layer};
        int done = sh_store_is_done(s, sequence->id, layer, e);
        if (done <= 0) {
            bad = done;
            out->n_unfinished++;
            continue;
        }
        bad = load_layer(&l, s, e) || replay_layer(&l, out->total, e);
        for (int i = 0; i < l.scores.n_block; i++)
            out->n_scores += (long long)sh_rows_scores(l.scores.block[i].first_row, l.scores.block[i].n_rows,
                                                       l.scores.block[i].window);
        sh_batch_clear(&l.scores);
        sh_vector_set_free(&l.vectors);
        if (bad)
            sh_err_prefix(e, "%s: sequence %d, layer %d", sh_store_path(s), sequence->id, layer);
        if (!bad && sh_interrupted())
            bad = sh_fail(e, "interrupted");
        sh_progress_at(progress, (double)out->n_scores, "");
    }
    return bad;
}

static void note_length(const struct sh_replay_request *q, struct sh_replay_result *out, int n_tokens)
{
    out->least_tokens = out->n_sequence && out->least_tokens < n_tokens ? out->least_tokens : n_tokens;
    out->most_tokens = out->most_tokens > n_tokens ? out->most_tokens : n_tokens;
    out->n_tokens += n_tokens;
    for (int b = 0; b < q->n_budget; b++)
        out->budget_tokens[b] += sh_budget_tokens(&q->budget[b], n_tokens);
}

static int run_runs(const struct sh_replay_request *q, struct sh_store *s, const struct sh_stored_run *runs, int n_run,
                    struct sh_replay_result *out, struct sh_err *e)
{
    struct sh_progress progress;
    double scores = 0;
    int bad = 0, n_sequence = 0;
    for (int i = 0; i < n_run; i++)
        n_sequence += runs[i].n_sequence;
    out->total = sh_replay_total_new(q->n_spec * q->n_budget, runs[0].last_layer - runs[0].first_layer + 1,
                                     runs[0].n_kv_head, n_sequence);
    for (int i = 0; i < n_run; i++)     /* as if no layer had a window, which is near enough for a progress line */
        scores += (double)runs[i].n_tokens * (double)runs[i].n_tokens / runs[i].n_sequence / 2 *
                  (runs[i].last_layer - runs[i].first_layer + 1) * runs[i].n_head;
    sh_progress_begin(&progress, "replaying", "scores", scores, q->quiet);
    for (int i = 0; i < n_run && !bad; i++) {
        struct sh_stored_sequence *sequence;
        int n;
        if (sh_store_sequences(s, runs[i].id, &sequence, &n, e))
            return -1;
        for (int k = 0; k < n && !bad; k++) {
            bad = run_sequence(q, s, &runs[i], &sequence[k], out, &progress, e);
            note_length(q, out, sequence[k].n_tokens);
            out->n_sequence++;
        }
        sh_stored_sequences_free(sequence, n);
    }
    sh_progress_end(&progress);
    for (int b = 0; b < q->n_budget; b++)
        out->budget_tokens[b] /= out->n_sequence;
    return bad;
}

int sh_replay_run(const struct sh_replay_request *q, struct sh_store *s, struct sh_replay_result *out, struct sh_err *e)
{
    struct sh_stored_run *runs;
    int n, bad = 0;
    if (sh_replay_check(q, s, e) || sh_runs_choose(s, q->run, &runs, &n, e))
        return -1;
    *out = (struct sh_replay_result){.model = xstrdup(runs[0].model), .weights = xstrdup(runs[0].weights),
                                     .n_layer = runs[0].n_layer, .n_head = runs[0].n_head,
                                     .n_kv_head = runs[0].n_kv_head, .d_head = runs[0].d_head,
                                     .first_layer = runs[0].first_layer, .last_layer = runs[0].last_layer,
                                     .has_values = strchr(runs[0].vectors, 'v') != NULL,
                                     .budget_tokens = xcalloc((size_t)q->n_budget, sizeof(double))};
    for (int i = 1; i < n && !bad; i++)
        if (runs[i].first_layer != runs[0].first_layer || runs[i].last_layer != runs[0].last_layer)
            bad = (sh_misused(e, "%s: run %d holds layers %d-%d, run %d layers %d-%d", sh_store_path(s), runs[0].id,
                             runs[0].first_layer, runs[0].last_layer, runs[i].id, runs[i].first_layer,
                             runs[i].last_layer),
                  sh_hint(e, "choose one with --run N"));
    bad = bad || run_runs(q, s, runs, n, out, e);
    sh_stored_runs_free(runs, n);
    if (!bad && !out->n_scores)
        bad = sh_fail(e, "%s: no layer is finished yet", sh_store_path(s));
    return bad ? -1 : 0;
}

void sh_replay_result_free(struct sh_replay_result *r)
{
    sh_replay_total_free(r->total);
    free(r->model);
    free(r->weights);
    free(r->budget_tokens);
    *r = (struct sh_replay_result){0};
}
