/* SPDX-License-Identifier: Apache-2.0 */
/* See replay_run.h. */
#include "src/app/replay/replay_run.h"

#include <stdlib.h>
#include <string.h>

#include "planner/replay/replay_pass.h"
#include "src/base/interrupt.h"
#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/app/common/head_rows.h"
#include "src/app/common/runs.h"
#include "src/app/common/vector_set.h"

enum { MOST_GROUP = 1024 };             /* query heads of a KV head */

/* ---- checks before anything runs ---- */

static const struct { enum sh_needs need; char letter; const char *what; } vectors[] = {
    {SH_NEEDS_KEYS, 'k', "keys"}, {SH_NEEDS_VALUES, 'v', "values"}, {SH_NEEDS_QUERIES, 'q', "queries"}};

static int check_needs(const struct sh_replay_request *q, const struct sh_stored_run *r, const char *path,
                       struct sh_err *e)
{
    if (r->record != SH_RECORD_FULL)
        return sh_fail(e, "%s: run %d recorded %s, expected full rows", path, r->id, sh_record_names[r->record]),
               sh_runs_hint(e, "with --record full");
    for (int i = 0; i < q->n_spec; i++) {
        const struct sh_policy *p = q->spec[i].policy;
        for (size_t k = 0; k < sizeof vectors / sizeof *vectors; k++)
            if (p->needs & vectors[k].need && !strchr(r->vectors, vectors[k].letter))
                return sh_fail(e, "%s: policy %s requires %s, but run %d recorded none", path, p->name,
                               vectors[k].what, r->id),
                       sh_runs_hint(e, "with --vectors qkv");
        if (p->needs & SH_NEEDS_PROMPT && q->prefill < 1)
            return sh_misused(e, "policy %s requires --prefill: it evicts once the prompt has been read", p->name),
                   sh_hint(e, "give the number of prompt tokens with --prefill N");
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
                return sh_misused(e, "%s: sequence %d: budget %s is %d tokens, but %s protects %d (sinks and recent)",
                                  path, s->id, sh_budget_text(&q->budget[b], text), tokens,
                                  q->spec[i].policy->name, protected),
                       sh_hint(e, "use a budget of at least %d tokens", protected + 1);
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
        bad = sh_fail(e, "%s: run %d: found n_head %d and n_kv_head %d: n_head must be a multiple of n_kv_head",
                      sh_store_path(s), r->id, r->n_head, r->n_kv_head);
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
    int window = d->l->scores.n_block ? d->l->scores.block[0].window : 0;
    int first = window && t >= window ? t + 1 - window : 0;             /* what the query sees */
    unsigned char *kept = xcalloc((size_t)t + 1, 1);
    for (int i = 0; i < c->n_slot; i++)
        if (c->pos[i] >= first)
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
            return sh_fail(e, "row %d begins at key %d in one head and at key %d in another", t, *first_key, first);
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

static int replay_head(const struct layer *l, int kv_head, struct sh_replay_sums *sums, FILE *dump, struct sh_err *e)
{
    struct group *g = xcalloc(1, sizeof *g);
    struct dump d = {l, dump, kv_head};
    double *received = needs_future(l->q) ? take_received(g, l, kv_head, e) : NULL;
    int bad = needs_future(l->q) && !received;
    struct sh_replay_pass *r = bad ? NULL : begin_replay(l, kv_head, received);
    if (r && dump)
        sh_replay_pass_set_watch(r, dump_kept, &d);
    bad = bad || replay_rows(r, g, l, kv_head, e);
    for (int i = 0; i < l->q->n_spec * l->q->n_budget && !bad; i++)
        sh_replay_pass_sums(r, i, &sums[i]);
    sh_replay_pass_free(r);
    free(received);
    free(g);
    return bad ? sh_err_prefix(e, "KV head %d", kv_head) : 0;
}

/* Heads on threads; each dumps into memory, and the dumps are joined in order. */
static int replay_layer(const struct layer *l, struct sh_replay_sums *sums, struct sh_err *e)
{
    int n = l->run->n_kv_head, n_cell = l->q->n_spec * l->q->n_budget, bad = 0;
    char **text = xcalloc((size_t)n, sizeof *text);
    size_t *bytes = xcalloc((size_t)n, sizeof *bytes);
#pragma omp parallel for schedule(dynamic, 1) num_threads(l->q->threads)
    for (int h = 0; h < n; h++) {
        struct sh_err mine;
        FILE *dump = l->q->dump ? xmemstream(&text[h], &bytes[h]) : NULL;
        int failed = replay_head(l, h, &sums[(size_t)h * (size_t)n_cell], dump, &mine);
        if (dump)
            xmemclose(dump, &text[h], &bytes[h]);
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

/* ---- layer by layer ---- */

struct item { int run, sequence, layer; };      /* run, sequence: places in their lists               */

struct sh_replay_walk {
    const struct sh_replay_request *q;
    struct sh_store *s;
    struct sh_stored_run *runs;
    struct sh_stored_sequence **sequence;       /* [run]                                              */
    int *n_sequence, *first;                    /* [run]; first: place of its first over all runs     */
    struct item *item;
    int n_run, n_item, n_unfinished;
};

static const struct sh_stored_sequence *sequence_of(const struct sh_replay_walk *w, const struct item *i)
{
    return &w->sequence[i->run][i->sequence];
}

static int same_layers(const struct sh_replay_walk *w, struct sh_err *e)
{
    const struct sh_stored_run *r = w->runs;
    for (int i = 1; i < w->n_run; i++) {
        if (r[i].n_kv_head != r[0].n_kv_head)
            return sh_fail(e, "%s: run %d has %d KV heads, but run %d of the same model has %d", sh_store_path(w->s),
                           r[i].id, r[i].n_kv_head, r[0].id, r[0].n_kv_head);
        if (r[i].first_layer != r[0].first_layer || r[i].last_layer != r[0].last_layer)
            return sh_misused(e, "%s: run %d has layers %d-%d, but run %d has layers %d-%d", sh_store_path(w->s),
                              r[0].id, r[0].first_layer, r[0].last_layer, r[i].id, r[i].first_layer, r[i].last_layer),
                   sh_hint(e, "select one with --run N");
    }
    return 0;
}

static int find_sequence(struct sh_replay_walk *w, int run, int sequence, struct sh_err *e)
{
    for (int layer = w->runs[run].first_layer; layer <= w->runs[run].last_layer; layer++) {
        int done = sh_store_is_done(w->s, w->sequence[run][sequence].id, layer, e);
        if (done < 0)
            return -1;
        if (done)
            w->item[w->n_item++] = (struct item){run, sequence, layer};
        else
            w->n_unfinished++;
    }
    return 0;
}

static int find_run(struct sh_replay_walk *w, int run, struct sh_err *e)
{
    const struct sh_stored_run *r = &w->runs[run];
    int n, bad = sh_store_sequences(w->s, r->id, &w->sequence[run], &n, e);
    if (bad)
        return -1;
    w->n_sequence[run] = n;
    if (run + 1 < w->n_run)
        w->first[run + 1] = w->first[run] + n;
    w->item = xreallocarray(w->item, (size_t)w->n_item + (size_t)n * (size_t)(r->last_layer - r->first_layer + 1) + 1,
                            sizeof *w->item);
    for (int k = 0; k < n && !bad; k++)
        bad = find_sequence(w, run, k, e);
    return bad;
}

struct sh_replay_walk *sh_replay_walk_open(const struct sh_replay_request *q, struct sh_store *s, struct sh_err *e)
{
    if (sh_replay_check(q, s, e))
        return NULL;
    struct sh_replay_walk *w = xcalloc(1, sizeof *w);
    w->q = q;
    w->s = s;
    int bad = sh_runs_choose(s, q->run, &w->runs, &w->n_run, e) || same_layers(w, e);
    w->sequence = xcalloc((size_t)w->n_run + 1, sizeof(void *));
    w->n_sequence = xcalloc((size_t)w->n_run + 1, sizeof *w->n_sequence);
    w->first = xcalloc((size_t)w->n_run + 1, sizeof *w->first);
    for (int i = 0; i < w->n_run && !bad; i++)
        bad = find_run(w, i, e);
    if (!bad && !w->n_item)
        bad = sh_fail(e, "%s: no layer is finished yet", sh_store_path(s));
    if (!bad)
        return w;
    sh_replay_walk_close(w);
    return NULL;
}

void sh_replay_walk_close(struct sh_replay_walk *w)
{
    if (!w)
        return;
    for (int i = 0; i < w->n_run; i++)
        if (w->sequence[i])
            sh_stored_sequences_free(w->sequence[i], w->n_sequence[i]);
    if (w->runs)
        sh_stored_runs_free(w->runs, w->n_run);
    free(w->sequence);
    free(w->n_sequence);
    free(w->first);
    free(w->item);
    free(w);
}

int sh_replay_walk_n(const struct sh_replay_walk *w)
{
    return w->n_item;
}

double sh_replay_walk_scores(const struct sh_replay_walk *w, int i)
{
    double n = sequence_of(w, &w->item[i])->n_tokens;
    return n * (n + 1) / 2 * w->runs[w->item[i].run].n_head;
}

int sh_replay_walk_sums(const struct sh_replay_walk *w)
{
    return w->runs[0].n_kv_head * w->q->n_spec * w->q->n_budget;
}

static int load_layer(struct layer *l, struct sh_store *s, struct sh_err *e)
{
    return sh_store_blocks(s, SH_BLOCK_SCORES, l->sequence->id, l->layer, -1, sh_store_keep, &l->scores, e) ||
           (*l->run->vectors && sh_vector_set_read(&l->vectors, s, l->sequence, l->layer, l->run, e));
}

int sh_replay_walk_layer(const struct sh_replay_walk *w, int i, struct sh_replay_sums *sums, struct sh_err *e)
{
    const struct item *it = &w->item[i];
    struct layer l = {.q = w->q, .run = &w->runs[it->run], .sequence = sequence_of(w, it),
                      .index = w->first[it->run] + it->sequence, .layer = it->layer};
    int bad = load_layer(&l, w->s, e) || replay_layer(&l, sums, e);
    sh_batch_clear(&l.scores);
    sh_vector_set_free(&l.vectors);
    if (bad)
        sh_err_prefix(e, "%s: sequence %d, layer %d", sh_store_path(w->s), l.sequence->id, l.layer);
    else if (sh_interrupted())
        bad = sh_fail(e, "interrupted");
    return bad ? -1 : 0;
}

static void note_length(const struct sh_replay_request *q, struct sh_replay_result *out, int n_tokens)
{
    out->least_tokens = out->n_sequence && out->least_tokens < n_tokens ? out->least_tokens : n_tokens;
    out->most_tokens = out->most_tokens > n_tokens ? out->most_tokens : n_tokens;
    out->n_tokens += n_tokens;
    out->n_sequence++;
    for (int b = 0; b < q->n_budget; b++)
        out->budget_tokens[b] += sh_budget_tokens(&q->budget[b], n_tokens);
}

void sh_replay_walk_begin(const struct sh_replay_walk *w, struct sh_replay_result *out)
{
    const struct sh_stored_run *r = w->runs;
    const struct sh_replay_request *q = w->q;
    *out = (struct sh_replay_result){.model = xstrdup(r->model), .weights = xstrdup(r->weights),
                                     .n_layer = r->n_layer, .n_head = r->n_head,
                                     .n_kv_head = r->n_kv_head, .d_head = r->d_head,
                                     .first_layer = r->first_layer, .last_layer = r->last_layer,
                                     .n_unfinished = w->n_unfinished,
                                     .has_values = strchr(r->vectors, 'v') != NULL,
                                     .budget_tokens = xcalloc((size_t)q->n_budget, sizeof(double))};
    for (int i = 0; i < w->n_run; i++)
        for (int k = 0; k < w->n_sequence[i]; k++)
            note_length(q, out, w->sequence[i][k].n_tokens);
    for (int b = 0; b < q->n_budget; b++)
        out->budget_tokens[b] /= out->n_sequence;
    out->total = sh_replay_total_new(q->n_spec * q->n_budget, r->last_layer - r->first_layer + 1, r->n_kv_head,
                                     out->n_sequence);
}

void sh_replay_walk_add(const struct sh_replay_walk *w, int i, const struct sh_replay_sums *sums,
                        struct sh_replay_result *out)
{
    const struct item *it = &w->item[i];
    int n_cell = w->q->n_spec * w->q->n_budget;
    for (int h = 0; h < out->n_kv_head; h++)
        for (int cell = 0; cell < n_cell; cell++)
            sh_replay_total_add(out->total, cell, w->first[it->run] + it->sequence, it->layer - out->first_layer, h,
                                &sums[h * n_cell + cell]);
}

int sh_replay_run(const struct sh_replay_request *q, struct sh_store *s, struct sh_replay_result *out, struct sh_err *e)
{
    struct sh_replay_walk *w = sh_replay_walk_open(q, s, e);
    struct sh_progress progress;
    double scores = 0, done = 0;
    int bad = 0;
    if (!w)
        return -1;
    struct sh_replay_sums *sums = xcalloc((size_t)sh_replay_walk_sums(w), sizeof *sums);
    for (int i = 0; i < w->n_item; i++)
        scores += sh_replay_walk_scores(w, i);
    sh_replay_walk_begin(w, out);
    sh_progress_begin(&progress, "replaying", "scores", scores, q->quiet);
    for (int i = 0; i < w->n_item && !bad; i++) {
        bad = sh_replay_walk_layer(w, i, sums, e);
        if (!bad)
            sh_replay_walk_add(w, i, sums, out);
        done += sh_replay_walk_scores(w, i);
        sh_progress_at(&progress, done, "");
    }
    sh_progress_end(&progress);
    free(sums);
    sh_replay_walk_close(w);
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
