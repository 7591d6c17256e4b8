/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/replay/replay_store.h"

#include <stdlib.h>
#include <string.h>

#include "planner/replay/replay.h"
#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/app/common/recorded.h"
#include "src/app/eval/eval_dump.h"

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
            int tokens = sh_budget_tokens(&q->budget[b], s->n_tokens), least = sh_policy_least_budget(&q->spec[i]);
            if (tokens < least && tokens < s->n_tokens && !q->leave_out_small)
                return sh_misused(e, "%s: sequence %d: budget %s is %d tokens, but %s protects %d (sinks and recent)",
                                  path, s->id, sh_budget_text(&q->budget[b], text), tokens,
                                  q->spec[i].policy->name, sh_policy_protected(&q->spec[i], tokens)),
                       sh_hint(e, "use a budget of at least %d tokens", least);
        }
    return 0;
}

int sh_replay_check(const struct sh_replay_request *q, struct sh_store *s, struct sh_err *e)
{
    struct sh_runs runs;
    const char *path = sh_store_path(s);
    int bad = sh_runs_open(&runs, s, q->run, e);
    for (int i = 0; i < runs.n && !bad; i++) {
        const struct sh_stored_run *r = &runs.run[i];
        bad = check_needs(q, r, path, e);
        if (!bad && (r->n_kv_head < 1 || r->n_head < 1 || r->n_head % r->n_kv_head ||
                     r->n_head / r->n_kv_head > MOST_GROUP))
            bad = sh_fail(e, "%s: run %d: found n_head %d and n_kv_head %d: n_head must be a multiple of n_kv_head",
                          path, r->id, r->n_head, r->n_kv_head);
        for (int k = 0; k < runs.n_sequence[i] && !bad; k++)
            bad = check_budgets(q, &runs.sequence[i][k], path, e);
    }
    sh_runs_close(&runs);
    return bad;
}

/* ---- one layer of one sequence ---- */

struct layer {
    const struct sh_replay_request *q;
    int index;                          /* of the sequence, over all runs */
    struct sh_recorded r;
};

static int window_of(const struct layer *l)
{
    return l->r.scores.n_block ? l->r.scores.block[0].window : 0;
}

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
    fprintf(d->to, "{\"sequence\": %d, \"layer\": %d, \"head\": %d, \"step\": %d, ", d->l->index, d->l->r.layer,
            d->head, t);
    if (q->n_spec * q->n_budget > 1) {
        const struct sh_policy_spec *spec = &q->spec[cell / q->n_budget];
        fprintf(d->to, "\"policy\": \"%s\", \"knobs\": \"%s\", \"budget\": %s, ", spec->policy->name,
                sh_policy_knobs(spec, knobs), sh_budget_text(&q->budget[cell % q->n_budget], budget));
    }
    fputs("\"kept\": ", d->to);
    sh_dump_positions(d->to, c, t, window_of(d->l));
    fputs("}\n", d->to);
}

static int needs_future(const struct sh_replay_request *q)
{
    for (int i = 0; i < q->n_spec; i++)
        if (q->spec[i].policy->needs & SH_NEEDS_FUTURE)
            return 1;
    return 0;
}

/* The attention that each key receives in all rows, which only the oracle may use. */
static double *take_received(const struct layer *l, int kv_head, struct sh_err *e)
{
    struct sh_group_rows g;
    int n = l->r.sequence->n_tokens, first = 0, bad = 0;
    double *received = xcalloc((size_t)n, sizeof *received);
    sh_group_rows_begin(&g, &l->r, kv_head);
    for (int t = 0; t < n && !bad; t++) {
        bad = sh_group_rows_next(&g, t, &first, e);
        for (int i = 0; i < g.n && !bad; i++)
            for (int j = first; j <= t; j++)
                received[j] += (double)g.row[i][j - first] / g.n;
    }
    sh_group_rows_end(&g);
    if (!bad)
        return received;
    free(received);
    return NULL;
}

static struct sh_replay_pass *begin_replay(const struct layer *l, int kv_head, const double *received)
{
    const struct sh_replay_request *q = l->q;
    const struct sh_stored_run *run = l->r.run;
    int n_token = l->r.sequence->n_tokens, n_cell = q->n_spec * q->n_budget;
    struct sh_replay_cell *cell = xcalloc((size_t)n_cell, sizeof *cell);
    for (int i = 0; i < n_cell; i++) {
        int b = i % q->n_budget;
        cell[i].spec = &q->spec[i / q->n_budget];
        cell[i].budget = q->share_out ? q->share_out(q->share_to, b, n_token, l->r.layer, kv_head)
                                      : sh_budget_tokens(&q->budget[b], n_token);
        if (cell[i].budget < sh_policy_least_budget(cell[i].spec) && cell[i].budget < n_token)
            cell[i].spec = NULL;
    }
    int group = sh_recorded_group(&l->r);
    struct sh_replay_setup setup = {
        .n_token = n_token, .window = window_of(l), .prefill = q->prefill, .layer = l->r.layer, .head = kv_head,
        .n_layer = run->n_layer, .group = group, .rows = q->rows,
        .q = sh_recorded_vectors(&l->r, 'q', kv_head * group),
        .k = sh_recorded_vectors(&l->r, 'k', kv_head), .v = sh_recorded_vectors(&l->r, 'v', kv_head),
        .d_head = run->d_head, .seed = q->seed, .received = received, .has_sinks = l->r.has_sinks,
        .error_rows = q->error_every};
    int each_step = q->dump || (setup.v && setup.error_rows);
    struct sh_replay_pass *r = sh_replay_pass_new(&setup, cell, q->n_spec, q->n_budget, each_step);
    free(cell);
    return r;
}

struct heads {
    const struct layer *l;
    struct sh_replay_sums *sums;        /* [n_kv_head][cells] */
    char **text;                        /* [n_kv_head]: each dumps into memory, and the dumps are joined in order */
    size_t *bytes;
};

static int replay_head(void *to, int kv_head, struct sh_err *e)
{
    const struct heads *h = to;
    const struct layer *l = h->l;
    struct sh_group_rows g;
    int n_cell = l->q->n_spec * l->q->n_budget, first = 0;
    struct dump d = {l, l->q->dump ? xmemstream(&h->text[kv_head], &h->bytes[kv_head]) : NULL, kv_head};
    double *received = needs_future(l->q) ? take_received(l, kv_head, e) : NULL;
    int bad = needs_future(l->q) && !received;
    struct sh_replay_pass *r = bad ? NULL : begin_replay(l, kv_head, received);
    if (r && d.to)
        sh_replay_pass_set_watch(r, dump_kept, &d);
    sh_group_rows_begin(&g, &l->r, kv_head);
    for (int t = 0; t < l->r.sequence->n_tokens && !bad; t++)
        bad = sh_group_rows_next(&g, t, &first, e) || sh_replay_pass_row(r, t, first, g.row, e);
    sh_group_rows_end(&g);
    for (int i = 0; i < n_cell && !bad; i++)
        sh_replay_pass_sums(r, i, &h->sums[kv_head * n_cell + i]);
    sh_replay_pass_free(r);
    free(received);
    if (d.to)
        xmemclose(d.to, &h->text[kv_head], &h->bytes[kv_head]);
    return bad ? sh_err_prefix(e, "KV head %d", kv_head) : 0;
}

/* ---- layer by layer ---- */

struct item { int run, sequence, layer; };      /* run, sequence: places in their lists               */

struct sh_replay_walk {
    const struct sh_replay_request *q;
    struct sh_store *s;
    struct sh_runs runs;
    int *first;                                 /* [run]: place of its first sequence over all runs   */
    int *heads;                                 /* [layer]: sh_runs_layer_heads                       */
    struct item *item;
    int n_item;
};

static const struct sh_stored_sequence *sequence_of(const struct sh_replay_walk *w, const struct item *i)
{
    return &w->runs.sequence[i->run][i->sequence];
}

/* The finished layers of a run's sequences. */
static int find_layers(struct sh_replay_walk *w, int run, struct sh_err *e)
{
    const struct sh_stored_run *r = &w->runs.run[run];
    int n = w->runs.n_sequence[run], n_layer = r->last_layer - r->first_layer + 1;
    w->first[run + 1] = w->first[run] + n;
    w->item = xreallocarray(w->item, (size_t)w->n_item + (size_t)n * (size_t)n_layer + 1, sizeof *w->item);
    for (int k = 0; k < n; k++)
        for (int layer = r->first_layer; layer <= r->last_layer; layer++) {
            int done = sh_store_layer(w->s, w->runs.sequence[run][k].id, layer, e);
            if (done < 0)
                return -1;
            if (done == SH_LAYER_DONE)
                w->item[w->n_item++] = (struct item){run, k, layer};
        }
    return 0;
}

struct sh_replay_walk *sh_replay_walk_open(const struct sh_replay_request *q, struct sh_store *s, struct sh_err *e)
{
    if (sh_replay_check(q, s, e))
        return NULL;
    struct sh_replay_walk *w = xcalloc(1, sizeof *w);
    w->q = q;
    w->s = s;
    int bad = sh_runs_open(&w->runs, s, q->run, e) || sh_runs_agree(&w->runs, s, e);
    w->first = xcalloc((size_t)w->runs.n + 1, sizeof *w->first);
    if (!bad) {
        w->heads = xcalloc((size_t)(w->runs.run[0].last_layer - w->runs.run[0].first_layer + 1), sizeof *w->heads);
        bad = sh_runs_layer_heads(&w->runs, s, w->heads, e);
    }
    for (int i = 0; i < w->runs.n && !bad; i++)
        bad = find_layers(w, i, e);
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
    sh_runs_close(&w->runs);
    free(w->first);
    free(w->heads);
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
    return n * (n + 1) / 2 * w->runs.run[w->item[i].run].n_head;
}

int sh_replay_walk_sums(const struct sh_replay_walk *w)
{
    return w->runs.run[0].n_kv_head * w->q->n_spec * w->q->n_budget;
}

int sh_replay_walk_layer(const struct sh_replay_walk *w, int i, struct sh_replay_sums *sums, struct sh_err *e)
{
    const struct item *it = &w->item[i];
    struct layer l = {.q = w->q, .index = w->first[it->run] + it->sequence,
                      .r = {.store = w->s, .run = &w->runs.run[it->run], .sequence = sequence_of(w, it),
                            .layer = it->layer}};
    int n = l.r.run->n_kv_head;
    struct heads heads = {&l, sums, xcalloc((size_t)n, sizeof(char *)), xcalloc((size_t)n, sizeof(size_t))};
    memset(sums, 0, (size_t)sh_replay_walk_sums(w) * sizeof *sums);
    int bad = sh_recorded_read(&l.r, 1, e);
    if (!bad && sh_recorded_group(&l.r) > MOST_GROUP)
        bad = sh_fail(e, "found %d query heads for each KV head, expected at most %d", sh_recorded_group(&l.r),
                      MOST_GROUP);
    bad = bad || sh_each_head(l.r.n_kv_head, w->q->threads, replay_head, &heads, e);
    for (int h = 0; h < n; h++) {
        if (heads.text[h] && !bad)
            fwrite(heads.text[h], 1, heads.bytes[h], w->q->dump);
        free(heads.text[h]);
    }
    free(heads.text);
    free(heads.bytes);
    return sh_recorded_end(&l.r, bad, e);
}

void sh_replay_walk_begin(const struct sh_replay_walk *w, struct sh_replay_result *out)
{
    const struct sh_stored_run *r = w->runs.run;
    const struct sh_replay_request *q = w->q;
    *out = (struct sh_replay_result){.n_kv_head = r->n_kv_head, .d_head = r->d_head, .first_layer = r->first_layer,
                                     .last_layer = r->last_layer,
                                     .budget_tokens = xcalloc((size_t)q->n_budget, sizeof(double))};
    for (int i = 0; i < w->runs.n; i++)
        for (int k = 0; k < w->runs.n_sequence[i]; k++) {
            int n = w->runs.sequence[i][k].n_tokens;
            out->n_tokens += n;
            out->n_sequence++;
            for (int b = 0; b < q->n_budget; b++)
                out->budget_tokens[b] += sh_budget_tokens(&q->budget[b], n);
        }
    for (int b = 0; b < q->n_budget; b++)
        out->budget_tokens[b] /= out->n_sequence;
    out->total = sh_replay_total_new(q->n_spec * q->n_budget, r->last_layer - r->first_layer + 1, w->heads,
                                     r->n_kv_head, out->n_sequence);
}

void sh_replay_walk_add(const struct sh_replay_walk *w, int i, const struct sh_replay_sums *sums,
                        struct sh_replay_result *out)
{
    const struct item *it = &w->item[i];
    int n_cell = w->q->n_spec * w->q->n_budget;
    for (int cell = 0; cell < n_cell; cell++)
        sh_replay_total_add(out->total, cell, w->first[it->run] + it->sequence, it->layer - out->first_layer,
                            &sums[cell], n_cell);
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
    free(r->budget_tokens);
    *r = (struct sh_replay_result){0};
}
