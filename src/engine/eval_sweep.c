/* SPDX-License-Identifier: Apache-2.0 */
/* Whole texts layer by layer, as a trace reads them. What stays in a layer's cache depends on that layer's rows alone,
 * and a layer's input on the layers below: so all tokens of a text can go through a layer before any goes through the
 * next, at the speed of reading a prompt, and a cache is needed for one layer at a time. Each cell has hidden states of
 * its own; the weights are read once for all of them. Kept tokens and logits are those of eval_stream.c up to rounding.
 *
 * Cells whose caches have done the same in all layers so far have the same hidden states: they share them, and the
 * first of them, their lead, computes for all. A cell that keeps every token of a layer does there what the full cache
 * does. So a probe of one layer costs only that layer and those above.
 *
 * Nothing has left a cache before its budget is full: until then a text's rows are those of the full cache, and a lead
 * has only the rows from there on. Its caches get the queries, keys and values of the tokens before from the full
 * cache's run of the layer. (Where caches are on the host; a device computes all rows.) */
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/engine/eval_reading.h"

struct run {
    int *budget;                        /* [n_layer * n_kv_head]                                  */
    int lead;                           /* the run whose hidden states these are                  */
    int from;                           /* tokens before this one have the full cache's states    */
    void *hidden;                       /* of a lead: device, [n_text, n_token - from, sh_arch_row] f32 */
    double seconds;
    double budget_tokens;               /* sum over layers of a head's budget, the heads' mean    */
    size_t bytes;                       /* of a text's cache in all layers                        */
    int peak;
    struct sh_eval_place place;         /* of a text                                              */
};

struct sweep {
    struct sh_reading *r;
    struct sh_resident *on;
    struct run *run;                    /* [n_run]                                                */
    int layer;
    int feeds;                          /* leads have the rows from `from` on alone               */
    float *q, *k, *v;                   /* [n_text * n_token, …]: the full cache's, in this layer */
    double done, said;                  /* of all layers and the head; tokens that were reported  */
};

static size_t hidden_bytes(const struct sh_reading *r, int from)
{
    size_t rows = (size_t)r->n_text * (size_t)(r->n_token - from);
    return (rows ? rows : 1) * sh_arch_row(r->v->resident->arch) * sizeof(float);
}

/* ---- who does the same ---- */

static const int *layer_budget(const struct sweep *s, int run)
{
    return s->run[run].budget + s->layer * s->on->arch->n_kv_head;
}

/* In this layer, of f32 rows: does nothing ever leave? */
static int keeps_all(const struct sweep *s, int run)
{
    const struct sh_eval_cell *c = sh_reading_cell(s->r, run);
    const struct sh_policy *p = c->spec->policy;
    int all = 1;
    if (!sh_arch_attends(s->on->arch, s->layer))
        return 1;
    for (int h = 0; h < s->on->arch->n_kv_head; h++)
        all &= layer_budget(s, run)[h] >= s->r->n_token;
    return c->format.bits == 32 && (all || (p->keeps_all && p->keeps_all(c->spec->knob, s->layer)));
}

static int is_same_format(const struct sh_kv_format *a, const struct sh_kv_format *b)
{
    return a->bits == b->bits &&
           (a->bits >= 16 || (a->group == b->group && a->meta == b->meta && a->by_channel == b->by_channel &&
                              (!a->by_channel || a->residual == b->residual)));
}

/* The same cache in this layer. */
static int is_same_cache(const struct sweep *s, int i, int k)
{
    const struct sh_eval_cell *a = sh_reading_cell(s->r, i), *b = sh_reading_cell(s->r, k);
    if (!sh_arch_attends(s->on->arch, s->layer))
        return 1;
    return a->spec->policy == b->spec->policy && !memcmp(a->spec->knob, b->spec->knob, sizeof a->spec->knob) &&
           is_same_format(&a->format, &b->format) &&
           !memcmp(layer_budget(s, i), layer_budget(s, k), (size_t)s->on->arch->n_kv_head * sizeof(int));
}

/* This run's rows or logits are looked at, so it computes them itself. */
static int is_watched(const struct sh_reading *r, int run)
{
    return (r->v->watch || r->v->take) && r->v->watched + 1 == run;
}

static int find_lead(const struct sweep *s, int run, const int *was)
{
    for (int k = 0; k < run && !is_watched(s->r, run); k++)
        if (s->run[k].lead == k && was[k] == was[run] &&
            (is_same_cache(s, run, k) || (keeps_all(s, run) && keeps_all(s, k))))
            return k;
    return run;
}

/* The first token of a text whose row is another than the full cache's, in this layer. */
static int first_other(const struct sweep *s, int run)
{
    int first = s->r->n_token, block = s->r->v->block;
    if (!s->feeds || sh_reading_cell(s->r, run)->format.bits < 32)
        return 0;
    if (keeps_all(s, run))
        return first;
    for (int h = 0; h < s->on->arch->n_kv_head; h++) {
        int full = layer_budget(s, run)[h], prefill = block ? 0 : s->r->v->prefill;
        full = full > prefill ? full : prefill;
        first = full < first ? full : first;
    }
    /* Blocks stay as they are, and room is made at the end of one. */
    return block && first > 0 ? (first - 1) / block * block : first;
}

/* Rows [from, to) of a text, as a run has them. */
static struct sh_mat rows_at(const struct sweep *s, const struct run *of, int text, int from, int to)
{
    size_t width = sh_arch_row(s->on->arch);
    size_t row = (size_t)text * (size_t)(s->r->n_token - of->from) + (size_t)(from - of->from);
    return sh_dense((float *)of->hidden + row * width, SH_F32, to - from, (int)width);
}

/* Hidden states from token `from` on: those that the run that it followed has, before them the full cache's. */
static int take_rows(struct sweep *s, int run, int from, int followed, struct sh_err *e)
{
    const struct sh_resident_setup *d = &s->on->setup;
    const struct run was = s->run[followed], *full = &s->run[0];
    struct run own = s->run[run];
    int n_token = s->r->n_token;
    own.from = from;
    if (!(own.hidden = d->backend->alloc(d->device, hidden_bytes(s->r, from), e)))
        return sh_reading_no_run(s->r, run, e);
    for (int i = 0; i < s->r->n_text; i++) {
        int middle = was.from < from ? from : was.from;
        if (from < middle)
            d->backend->cast(d->device, rows_at(s, &own, i, from, middle), rows_at(s, full, i, from, middle));
        if (middle < n_token)
            d->backend->cast(d->device, rows_at(s, &own, i, middle, n_token), rows_at(s, &was, i, middle, n_token));
    }
    if (s->run[run].hidden)
        d->backend->release(d->device, s->run[run].hidden);
    s->run[run] = own;
    return 0;
}

/* Runs that will differ from their lead in this layer get hidden states of their own, and leads whose rows differ from
 * the full cache's earlier than before get these rows. */
static int part(struct sweep *s, struct sh_err *e)
{
    int n_run = s->r->n_run, *was = xcalloc((size_t)n_run, sizeof *was), bad = 0;
    for (int i = 0; i < n_run; i++)
        was[i] = s->run[i].lead;
    for (int i = 1; i < n_run && !bad; i++) {
        struct run *own = &s->run[i];
        own->lead = find_lead(s, i, was);
        int followed = own->hidden ? i : was[i], before = followed ? s->run[followed].from : s->r->n_token;
        int first = first_other(s, i), from = first < before ? first : before;
        if (own->lead == i && (!own->hidden || from < own->from))
            bad = take_rows(s, i, from, followed, e);
    }
    free(was);
    return bad ? -1 : 0;
}

/* The full cache's queries, keys and values, as its run left them. */
static void keep_vectors(struct sweep *s)
{
    const struct sh_arch *a = s->on->arch;
    size_t rows = (size_t)s->r->n_text * (size_t)s->r->n_token, d = (size_t)a->d_head * sizeof(float);
    if (!s->feeds)
        return;
    memcpy(s->q, s->on->act.q, rows * (size_t)a->n_head * d);
    memcpy(s->k, s->on->act.k, rows * (size_t)a->n_kv_head * d);
    memcpy(s->v, s->on->act.v, rows * (size_t)a->n_kv_head * d);
}

/* ---- a layer ---- */

static struct sh_session *open_layer(const struct sweep *s, int run, int n_text, struct sh_err *e)
{
    int *budget;
    struct sh_session_setup setup = sh_reading_setup(s->r, run, n_text, &budget);
    setup.first_layer = s->layer;
    setup.n_layer = 1;
    struct sh_session *session = sh_session_new(s->on, &setup, e);
    free(budget);
    if (!session)
        sh_reading_no_run(s->r, run, e);
    return session;
}

static void weigh(struct sweep *s, int run, const struct sh_session *session, int n_text, int peak)
{
    struct run *own = &s->run[run];
    struct sh_cache_bytes bytes = sh_session_bytes(session);
    struct sh_kv_kept kept = sh_session_kept(session);
    own->bytes += sh_cache_bytes_sum(&bytes) / (size_t)n_text;
    own->budget_tokens += kept.budget;
    own->peak = peak > own->peak ? peak : own->peak;
    own->peak = kept.peak > own->peak ? kept.peak : own->peak;
    own->place = (struct sh_eval_place){0};
    sh_eval_place_add(&own->place, sh_session_cache(session) != NULL, sh_session_why_host(session));
}

/* What the run's cache takes in the layer that another one computed: the lead's, or where it keeps all tokens its
 * own, which is made for that. */
static int weigh_shared(struct sweep *s, int run, const struct run *lead_was, struct sh_err *e)
{
    struct run *own = &s->run[run];
    const struct run *lead = &s->run[own->lead];
    if (is_same_cache(s, run, own->lead)) {
        own->bytes += lead->bytes - lead_was->bytes;
        own->budget_tokens += lead->budget_tokens - lead_was->budget_tokens;
        own->peak = lead->peak > own->peak ? lead->peak : own->peak;
        own->place = lead->place;
        return 0;
    }
    struct sh_session *session = open_layer(s, run, 1, e);
    if (session)
        weigh(s, run, session, 1, s->r->n_token);
    sh_session_free(session);
    return session ? 0 : -1;
}

static int run_layer(struct sweep *s, int run, struct sh_err *e)
{
    const struct sh_eval *v = s->r->v;
    struct sh_session *session = open_layer(s, run, s->r->n_text, e);
    if (session && v->watch && v->watched + 1 == run)
        sh_session_set_watch(session, v->watch, v->to);
    int from = s->run[run].from, n = s->r->n_token, prompt = run ? sh_reading_prompt(s->r) : 0;
    if (session && from)
        sh_session_feed(session, s->layer, &(struct sh_qkv){s->q, s->k, s->v}, n, from);
    int bad = !session || (from < n && sh_session_layers(session, s->run[run].hidden, n - from, prompt, e));
    if (!run && !bad)
        keep_vectors(s);
    if (!bad)
        weigh(s, run, session, s->r->n_text, 0);
    sh_session_free(session);
    return bad ? -1 : 0;
}

/* Tokens by their share of the layers and the head. */
static int move_on(struct sweep *s, double share, struct sh_err *e)
{
    const struct sh_reading *r = s->r;
    double tokens = (double)r->n_text * r->n_token * r->n_run;
    s->done += share;
    int more = (int)(tokens * (s->done / r->n_run) - s->said);
    s->said += more;
    if (r->v->progress && more > 0)
        r->v->progress(r->v->progress_to, more);
    return sh_interrupted() ? sh_fail(e, "interrupted in layer %d of %d", s->layer, s->on->arch->n_layer) : 0;
}

/* Runs that share a lead take the time that it took, as if each were alone. */
static int run_leads(struct sweep *s, struct sh_err *e)
{
    int n_run = s->r->n_run, bad = 0;
    double share = 1.0 / (s->on->arch->n_layer + 1);
    for (int i = 0; i < n_run && !bad; i++) {
        struct run was = s->run[i];
        double began = sh_now_s();
        if (was.lead != i)
            continue;
        bad = run_layer(s, i, e);
        double took = sh_now_s() - began;
        for (int k = i; k < n_run && !bad; k++)
            if (s->run[k].lead == i) {
                s->run[k].seconds += took;
                bad = (k > i && weigh_shared(s, k, &was, e)) || move_on(s, share, e);
            }
    }
    return bad ? -1 : 0;
}

static int run_layers(struct sweep *s, struct sh_err *e)
{
    for (s->layer = 0; s->layer < s->on->arch->n_layer; s->layer++) {
        int bad = part(s, e) || sh_resident_layer(s->on, s->layer, e) || run_leads(s, e);
        sh_resident_leave(s->on, s->layer);
        if (bad)
            return -1;
    }
    return 0;
}

/* ---- the two ends ---- */

static int embed(struct sweep *s, struct sh_err *e)
{
    const struct sh_resident_setup *d = &s->on->setup;
    const struct sh_reading *r = s->r;
    size_t width = sh_arch_row(s->on->arch);
    if (!(s->run[0].hidden = d->backend->alloc(d->device, hidden_bytes(r, 0), e)))
        return sh_reading_no_run(r, 0, e);
    for (int i = 0; i < r->n_text; i++)
        for (int t = 0, n; t < r->n_token; t += n) {
            n = r->n_token - t < d->rows ? r->n_token - t : d->rows;
            size_t row = (size_t)i * (size_t)r->n_token + (size_t)t;
            if (sh_entry_run(s->on->entry, r->text[i].tokens + t, 1, (int[]){0, n}, &t,
                             (float *)s->run[0].hidden + row * width, e))
                return -1;
        }
    return 0;
}

/* The block's rows of a text. */
static int judge(struct sweep *s, int run, int text, struct sh_err *e)
{
    struct sh_reading *r = s->r;
    int left = r->n_token - r->first, end = r->first + (left < r->block ? left : r->block);
    int from = s->run[run].from, same = from < end ? from : end;
    r->run = run;
    if (r->first < same)
        sh_reading_take_same(r, text, r->first, same - r->first);
    for (int t = r->first < same ? same : r->first, n; t < end; t += n) {
        n = end - t < s->on->logits_rows ? end - t : s->on->logits_rows;
        if (sh_head_run(s->on->head, s->run[run].hidden, text * (r->n_token - from) + t - from, n, s->on->logits, e))
            return -1;
        sh_reading_take(r, text, t, n, s->on->logits);
    }
    return 0;
}

static int judge_all(struct sweep *s, struct sh_err *e)
{
    struct sh_reading *r = s->r;
    double blocks = (r->n_token + r->block - 1) / r->block, share = 1.0 / (s->on->arch->n_layer + 1) / blocks;
    for (r->first = 0; r->first < r->n_token; r->first += r->block)
        for (int i = 0; i < r->n_run; i++) {
            double began = sh_now_s();
            for (int text = 0; text < r->n_text && s->run[i].lead == i; text++)
                if (judge(s, i, text, e))
                    return -1;
            double took = sh_now_s() - began;
            for (int k = 0; k < r->n_run; k++)
                s->run[k].seconds += s->run[k].lead == i ? took : 0;
            if (move_on(s, share, e))
                return -1;
        }
    return 0;
}

static int attending_layers(const struct sh_arch *a)
{
    int n = 0;
    for (int layer = 0; layer < a->n_layer; layer++)
        n += sh_arch_attends(a, layer);
    return n;
}

/* A run without rows of its own has its lead's figures, over a cache of its own. */
static void fill_totals(const struct sweep *s)
{
    const struct sh_reading *r = s->r;
    for (int i = 0; i < r->n_run; i++)
        for (int text = 0; text < r->n_text; text++) {
            const struct run *own = &s->run[i];
            struct sh_eval_total *total = sh_reading_total(r, text, i);
            size_t n = (size_t)r->text[text].n_answer;
            if (own->lead != i) {
                *total = *sh_reading_total(r, text, own->lead);
                memcpy(r->missed[text] + (size_t)i * n, r->missed[text] + (size_t)own->lead * n, n);
            }
            total->all.peak_tokens = own->peak;
            total->all.budget_tokens = own->budget_tokens / attending_layers(s->on->arch);
            total->all.texts = 1;
            total->all.kv_bytes = own->bytes;
            total->all.read = r->n_token;
            total->all.seconds = text ? 0 : own->seconds;
            total->place = own->place;
        }
}

static void open_runs(struct sweep *s, struct sh_reading *r)
{
    *s = (struct sweep){.r = r, .on = r->v->resident, .run = xcalloc((size_t)r->n_run, sizeof *s->run)};
    for (int i = 0; i < r->n_run; i++)
        (void)sh_reading_setup(r, i, 1, &s->run[i].budget);
    size_t rows = (size_t)r->n_text * (size_t)r->n_token, d = (size_t)s->on->arch->d_head * sizeof(float);
    /* The state of a recurrent layer follows from all rows before. */
    s->feeds = s->on->is_host && rows <= (size_t)s->on->setup.rows && !s->on->arch->recurrent.n_v;
    if (!s->feeds)
        return;
    s->q = xaligned(rows * (size_t)s->on->arch->n_head * d);
    s->k = xaligned(rows * (size_t)s->on->arch->n_kv_head * d);
    s->v = xaligned(rows * (size_t)s->on->arch->n_kv_head * d);
}

static void close_runs(struct sweep *s)
{
    for (int i = 0; i < s->r->n_run; i++) {
        s->on->setup.backend->release(s->on->setup.device, s->run[i].hidden);
        free(s->run[i].budget);
    }
    free(s->run);
    free(s->q);
    free(s->k);
    free(s->v);
}

int sh_eval_sweep(struct sh_reading *r, struct sh_err *e)
{
    struct sweep s;
    open_runs(&s, r);
    int bad = embed(&s, e) || run_layers(&s, e) || judge_all(&s, e);
    if (!bad)
        fill_totals(&s);
    close_runs(&s);
    return bad ? -1 : 0;
}

/* The layer in which the run's cache is largest, by the heads that it has. */
static int largest_layer(const struct sweep *s, int run)
{
    const struct sh_arch *a = s->on->arch;
    long long most = -1;
    int largest = 0;
    for (int l = 0; l < a->n_layer; l++) {
        long long sum = 0;
        for (int h = 0; h < sh_arch_kv_heads(a, l); h++)
            sum += (long long)s->run[run].budget[l * a->n_kv_head + h] * sh_arch_d_head(a, l);
        largest = sum > most ? l : largest;
        most = sum > most ? sum : most;
    }
    return largest;
}

/* By making everything that is there at once, on a device; *travels: a cache would be on the host. */
static int fits_device(struct sweep *s, int *travels)
{
    const struct sh_resident_setup *d = &s->on->setup;
    struct sh_err e;
    int fits = 1;
    for (int i = 0; i < s->r->n_run && fits; i++)
        fits = (s->run[i].hidden = d->backend->alloc(d->device, hidden_bytes(s->r, 0), &e)) != NULL;
    for (int i = 0; i < s->r->n_run && fits; i++) {
        s->layer = largest_layer(s, i);
        struct sh_session *session = open_layer(s, i, s->r->n_text, &e);
        fits = session != NULL;
        *travels |= session && sh_session_why_host(session);
        sh_session_free(session);
    }
    return fits;
}

int sh_eval_sweep_fits(struct sh_reading *r)
{
    struct sweep s;
    int travels = 0;
    if (r->n_text > 1 && r->n_text * r->n_token > r->v->resident->setup.rows)
        return 0;
    if (r->v->resident->is_host)
        return (size_t)r->n_run * hidden_bytes(r, 0) <= sh_host_memory_free() / 2;
    open_runs(&s, r);
    int fits = fits_device(&s, &travels);
    close_runs(&s);
    return fits && (!travels || r->n_text == 1);
}
