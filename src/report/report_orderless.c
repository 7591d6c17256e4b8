/* SPDX-License-Identifier: Apache-2.0 */
/* Report: attention without an order, which other programs recorded (shears import --kind bidirectional, cross): how
 * few keys carry it, and whether the later half of the queries attends to what the earlier half did. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/report/figures/figure_data.h"
#include "src/report/report.h"
#include "traces/codec.h"

enum { RATIO, CHANCE, LIFT, ABOVE, TENTH, N_METRIC, ROWS_SORTED = 64 };
#define PIVOTAL 5.0                     /* times the average of a row                             */

/* One head over one sequence. */
struct head {
    int n_query, n_key;
    unsigned char *early, *late;        /* [n_key] pivotal to some query of that half             */
    float *sorted;                      /* [n_key] of one row                                     */
    double above, tenth;                /* sums over rows                                         */
    int n_row, n_sorted;
};

/* One run: sums over sequences. A head without pivotal keys has no ratio. */
struct totals {
    int n_layer, n_head;
    double *sum, *n;                    /* [n_layer, n_head, N_METRIC]                             */
    long long n_query, n_key;
};

static int falling(const void *x, const void *y)
{
    float a = *(const float *)x, b = *(const float *)y;
    return (a < b) - (a > b);
}

/* The mass of the largest tenth of the keys, one at least; of some rows only, since sorting takes time. */
static void add_tenth(struct head *h, const struct sh_row *r)
{
    int n = (r->n + 9) / 10;
    if (r->q % (h->n_query / ROWS_SORTED + 1))
        return;
    memcpy(h->sorted, r->score, (size_t)r->n * sizeof *h->sorted);
    qsort(h->sorted, (size_t)r->n, sizeof *h->sorted, falling);
    for (int i = 0; i < n; i++)
        h->tenth += (double)h->sorted[i];
    h->n_sorted++;
}

static int take_row(void *to, const struct sh_row *r)
{
    struct head *h = to;
    unsigned char *half = r->q < h->n_query / 2 ? h->early : h->late;
    int above = 0;
    for (int i = 0; i < r->n; i++) {
        above += (double)r->score[i] * r->n > 1;
        half[i] |= (double)r->score[i] * r->n > PIVOTAL;
    }
    h->above += (double)above / r->n;
    h->n_row++;
    add_tenth(h, r);
    return 0;
}

static int take_block(void *to, const struct sh_block *b, struct sh_err *e)
{
    struct head *h = to;
    int n_key = sh_row_keys(b->first_row, b->window);
    if (h->n_key && n_key != h->n_key)
        return sh_fail(e, "found rows of %d and of %d keys in one head, expected equal numbers", h->n_key, n_key);
    if (!h->n_key) {
        h->n_key = n_key;
        h->early = xcalloc((size_t)n_key, 1);
        h->late = xcalloc((size_t)n_key, 1);
        h->sorted = xcalloc((size_t)n_key, sizeof *h->sorted);
    }
    return sh_codec_rows_any(b, take_row, h, e);
}

static void add(struct totals *t, int at, int metric, double value)
{
    if (!isfinite(value))
        return;
    t->sum[at * N_METRIC + metric] += value;
    t->n[at * N_METRIC + metric] += 1;
}

static void add_head(struct totals *t, int at, const struct head *h)
{
    int early = 0, late = 0, both = 0;
    for (int i = 0; i < h->n_key; i++) {
        early += h->early[i];
        late += h->late[i];
        both += h->early[i] & h->late[i];
    }
    double ratio = late ? (double)both / late : (double)NAN, chance = (double)early / h->n_key;
    add(t, at, RATIO, ratio);
    add(t, at, CHANCE, chance);
    add(t, at, LIFT, early ? ratio / chance : (double)NAN);
    add(t, at, ABOVE, h->above / h->n_row);
    add(t, at, TENTH, h->n_sorted ? h->tenth / h->n_sorted : (double)NAN);
}

static int measure_head(struct totals *t, struct sh_store *s, const struct sh_stored_sequence *q, int layer, int head,
                        int at, struct sh_err *e)
{
    struct head h = {.n_query = q->n_tokens};
    int bad = sh_store_blocks(s, SH_BLOCK_SCORES, q->id, layer, head, take_block, &h, e);
    if (!bad && h.n_row)
        add_head(t, at, &h);
    if (!bad && !at)
        t->n_key += h.n_key;
    free(h.early);
    free(h.late);
    free(h.sorted);
    return bad || (sh_interrupted() && sh_fail(e, "interrupted")) ? -1 : 0;
}

static int measure(struct totals *t, struct sh_store *s, const struct sh_stored_run *run, struct sh_err *e)
{
    struct sh_stored_sequence *q;
    int n, bad = 0;
    size_t cells = (size_t)t->n_layer * (size_t)t->n_head * N_METRIC;
    t->sum = xcalloc(2 * cells, sizeof *t->sum);
    t->n = t->sum + cells;
    if (sh_store_sequences(s, run->id, &q, &n, e))
        return -1;
    for (int i = 0; i < n && !bad; i++) {
        t->n_query += q[i].n_tokens;
        for (int at = 0; at < t->n_layer * t->n_head && !bad; at++)
            bad = measure_head(t, s, &q[i], run->first_layer + at / t->n_head, at % t->n_head, at, e);
    }
    sh_stored_sequences_free(q, n);
    return bad;
}

static double of_head(const struct totals *t, int at, int metric)
{
    double n = t->n[at * N_METRIC + metric];
    return n > 0 ? t->sum[at * N_METRIC + metric] / n : (double)NAN;
}

/* The mean over the heads that have a value, and the range over them. */
static struct span { double mean, least, most; } of_layer(const struct totals *t, int layer, int metric)
{
    struct span s = {0, (double)NAN, (double)NAN};
    int n = 0;
    for (int h = 0; h < t->n_head; h++) {
        double v = of_head(t, layer * t->n_head + h, metric);
        s.mean += isfinite(v) ? v : 0;
        n += isfinite(v) != 0;
        s.least = fmin(s.least, v);     /* fmin and fmax pass over NaN */
        s.most = fmax(s.most, v);
    }
    s.mean = n ? s.mean / n : (double)NAN;
    return s;
}

static void table(struct sh_report *r, const struct totals *t, const struct sh_stored_run *run, const char *path)
{
    static const struct { const char *key, *label; int metric, digits; } column[] = {
        {"above", "keys above average", ABOVE, 4}, {"tenth", "mass of the largest tenth", TENTH, 4},
        {"ratio", "ratio", RATIO, 4}, {"density", "chance", CHANCE, 4}, {"lift", "lift", LIFT, 3}};
    char *title = xasprintf("%s, run %d, %s: %s; means over heads", path, run->id, run->model, run->device);
    struct sh_out *o = sh_out_new();
    sh_out_list(o, "layers", title);
    for (int l = 0; l < t->n_layer; l++) {
        sh_out_item(o);
        sh_out_int(o, "layer", "layer", run->first_layer + l);
        for (size_t c = 0; c < sizeof column / sizeof *column; c++)
            sh_out_real(o, column[c].key, column[c].label, of_layer(t, l, column[c].metric).mean, column[c].digits);
        sh_out_real(o, "min_head", "minimum over heads", of_layer(t, l, RATIO).least, 4);
    }
    sh_out_end(o);
    sh_report_table(r, NULL, o);
    free(title);
}

static int draw(struct sh_report *r, const struct totals *t, const struct sh_stored_run *run, const char *id,
                struct sh_err *e)
{
    struct sh_figure_data *d = sh_figure_data_empty();
    size_t n = (size_t)t->n_layer;
    double *v = sh_figure_keep(d, xmalloc(4 * n * sizeof *v)), *chance = v + n, *low = v + 2 * n, *high = v + 3 * n;
    for (int l = 0; l < t->n_layer; l++) {
        struct span ratio = of_layer(t, l, RATIO);
        v[l] = ratio.mean;
        low[l] = ratio.least;
        high[l] = ratio.most;
        chance[l] = of_layer(t, l, CHANCE).mean;
    }
    struct sh_fig_series line = {run->model, t->n_layer, v, chance, low, high};
    struct sh_fig_panel panel = {"alpha 5/n, later half of the queries compared with the earlier", 1, &line};
    d->out.title = sh_figure_keep(d, xasprintf("%s: persistence over the queries", run->model));
    d->out.settings = sh_figure_keep(d, xasprintf("%s; %d sequence%s, %lld queries, %lld keys", run->device,
                                                  run->n_sequence, run->n_sequence == 1 ? "" : "s", t->n_query,
                                                  t->n_key));
    d->out.persistence = &(struct sh_fig_panels){1, &panel};
    int bad = sh_report_figure(r, &sh_figure_persistence, id, &d->out, e);
    sh_figure_data_free(d);
    return bad;
}

static int write_run(struct sh_report *r, const char *path, const struct sh_stored_run *run, int number,
                     struct sh_err *e)
{
    struct totals t = {.n_layer = run->last_layer - run->first_layer + 1, .n_head = run->n_head};
    char *id = xasprintf("orderless-%d", number);
    struct sh_store *s = sh_store_open(path, e);
    int bad = !s || measure(&t, s, run, e);
    sh_store_close(s);
    if (!bad) {
        table(r, &t, run, path);
        bad = draw(r, &t, run, id, e);
    }
    free(t.sum);
    free(id);
    return bad ? -1 : 0;
}

static void explain(struct sh_report *r)
{
    sh_report_say(r, "Every query sees every key (bidirectional), or the keys belong to another sequence (cross). All "
                     "keys are there from the first query on, so no cache grows, and the parts on caches and eviction "
                     "leave these runs out. Two questions remain. How few keys carry a query's attention? See the "
                     "share of keys with a score above the row's average, and the mass of the largest tenth. Does "
                     "importance persist? Take the keys that get more than five times the average (5/n) from some "
                     "query of the later half: the ratio is the share of them that also got it from some query of the "
                     "earlier half. Chance is the ratio for keys drawn at random, and lift is ratio / chance.");
}

static int write(struct sh_report *r, struct sh_err *e)
{
    int n = 0;
    for (int i = 0; i < r->n_store; i++)
        for (int k = 0; k < r->store[i].n_run; k++) {
            const struct sh_stored_run *run = &r->store[i].run[k];
            if (!run->orderless)
                continue;
            if (!n++)
                explain(r);
            if (run->record != SH_RECORD_FULL || !run->n_done)
                sh_report_missing(r, NULL, "%s, run %d: its scores were not recorded in full.", r->store[i].path,
                                  run->id);
            else if (write_run(r, r->store[i].path, run, n, e))
                return -1;
        }
    return 0;
}

const struct sh_report_part sh_report_orderless = {
    .name = "orderless", .title = "Attention without an order", .write = write};
