/* SPDX-License-Identifier: Apache-2.0 */
/* The search (recommend.h): every board, cache and layout is a candidate, whose replicas cost at least what arithmetic
 * says. The candidate that costs least is simulated, with more replicas until it holds; the first one that is simulated
 * and still costs least is the best of its board and cache. */
#include "src/app/recommend/recommend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

/* Arithmetic that rules out a number of replicas may be off by this much: they are simulated nonetheless. */
#define SLACK 0.8

/* The rate that arithmetic must not rule out for a replica that is to be simulated at `rate`: a queue that grows for
 * the whole run may end it within the limit. */
static double lenient(const struct sh_recommend *r, double rate)
{
    return SLACK * rate / (1 + r->load.slo_ttft * rate / (double)r->args->requests);
}

enum order { BY_COST, BY_GPUS };

int sh_recommend_server(const struct sh_recommend *r, const struct sh_candidate *c, struct sh_serving *out,
                        struct sh_err *e)
{
    const struct sh_clock_layout *l = &r->layouts.at[c->layout];
    const char *budget = r->cache[c->cache].budget;
    struct sh_capacity_question q = {&r->model, NULL, &r->board[c->board], r->settings.kv.at[0], budget, l->tp};
    struct sh_capacity_args a = r->args->capacity;
    a.length = r->load.longest;
    if (sh_serving_open(&a, &r->settings, &q, &r->engine, l, out, e))
        return -1;
    if (!budget)
        out->ask.rule.state = out->ask.rule.headroom = 0;
    sh_capacity_add_state(&a, NULL, r->cache[c->cache].measured, &r->model, r->load.longest, &out->ask.rule);
    return 0;
}

/* ---- order ---- */

static int gpus(const struct sh_candidate *c)
{
    return c->gpus * c->replicas;
}

static double margin(const struct sh_recommend *r, const struct sh_candidate *c)
{
    return c->is_simulated ? fmin(r->load.slo_ttft / c->at.ttft[3], r->load.slo_tpot / c->at.tpot[3]) : 0;
}

/* Less than 0: a comes first. Of equal ones that with the least memory, then the first board and cache; then those that
 * are not simulated yet, and the larger margin. */
static double compare(const struct sh_recommend *r, enum order by, const struct sh_candidate *a,
                      const struct sh_candidate *b)
{
    double cost[2], memory[2];
    const struct sh_candidate *const both[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        double price = r->price[both[i]->board];
        cost[i] = isnan(price) ? 1e300 : price * gpus(both[i]);
        memory[i] = (double)sh_gpu_bytes(&r->board[both[i]->board]) * gpus(both[i]);
    }
    const double differ[] = {by == BY_COST ? cost[0] - cost[1] : gpus(a) - gpus(b),
                             by == BY_COST ? gpus(a) - gpus(b) : cost[0] - cost[1], memory[0] - memory[1],
                             a->board - b->board, a->cache - b->cache, a->is_simulated - b->is_simulated,
                             margin(r, b) - margin(r, a), a->layout - b->layout};
    for (size_t i = 0; i < sizeof differ / sizeof *differ; i++)
        if (differ[i] < 0 || differ[i] > 0)
            return differ[i];
    return 0;
}

static int is_of(const struct sh_recommend_row *row, const struct sh_candidate *c)
{
    return row->of->board == c->board && row->of->cache == c->cache;
}

/* ---- candidates ---- */

/* The fewest replicas that keep up by arithmetic with a part of the rate. */
static int fewest(const struct sh_recommend *r, const struct sh_screen *s, int most)
{
    int low = 0, high = 1;
    while (high <= most && !sh_screen_serves(s, lenient(r, r->load.rate / high))) {
        low = high;
        high *= 2;
    }
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (sh_screen_serves(s, lenient(r, r->load.rate / middle)))
            high = middle;
        else
            low = middle;
    }
    return high;
}

static void lacks_gpus(const struct sh_recommend *r, struct sh_candidate *c)
{
    c->is_out = 1;
    snprintf(c->why, sizeof c->why, "throughput: more than %lld GPUs", r->args->most);
}

static int screen(const struct sh_recommend *r, struct sh_candidate *c, struct sh_err *e)
{
    struct sh_serving v;
    struct sh_screen s;
    struct sh_err why;
    c->replicas = 1;
    if (sh_recommend_server(r, c, &v, &why)) {
        if (c->gpus == 1) {             /* no fault of the layout                                 */
            *e = why;
            return -1;
        }
        c->is_out = 1;
        snprintf(c->why, sizeof c->why, "%.*s", SH_REASON - 1, why.text);
        return 0;
    }
    int most = (int)(r->args->most / c->gpus);
    if (sh_screen_open(&v, &r->load, &s, c->why))
        c->is_out = 1;
    else
        c->replicas = fewest(r, &s, most);
    if (!c->is_out && c->replicas > most)
        lacks_gpus(r, c);
    sh_serving_clear(&v);
    return 0;
}

static int screen_all(struct sh_recommend *r, struct sh_err *e)
{
    size_t n = (size_t)r->n_board * (size_t)r->n_cache * (size_t)r->layouts.n;
    r->candidate = xcalloc(n, sizeof *r->candidate);
    for (int b = 0; b < r->n_board; b++)
        for (int k = 0; k < r->n_cache; k++)
            for (int i = 0; i < r->layouts.n; i++) {
                struct sh_candidate *c = &r->candidate[r->n_candidate++];
                *c = (struct sh_candidate){.board = b, .cache = k, .layout = i,
                                           .gpus = sh_layout_gpus(&r->layouts.at[i])};
                if (screen(r, c, e))
                    return -1;
            }
    return 0;
}

/* The fewest replicas above `low`, which is too few, and up to those of c->at, which hold. low 0: nobody knows. */
static int fewest_that_hold(struct sh_recommend *r, struct sh_candidate *c, int low, struct sh_err *e)
{
    while (c->replicas - low > 1) {     /* below what arithmetic says one by one                  */
        int middle = low ? low + (c->replicas - low) / 2 : c->replicas - 1;
        struct sh_judged at;
        int holds = sh_recommend_judge(r, c, middle, 0, &at, e);
        if (holds < 0)
            return -1;
        if (holds) {
            c->at = at;
            c->replicas = middle;
        } else {
            low = middle;
        }
    }
    c->is_simulated = 1;
    return 0;
}

/* Simulates the replicas that it has, or a few more where there are many: either they hold, and the fewest that do are
 * found, or it has more from now on, and others may cost less. */
static int simulate(struct sh_recommend *r, struct sh_candidate *c, struct sh_err *e)
{
    int most = (int)(r->args->most / c->gpus), low = c->is_tried ? c->replicas - 1 : 0;
    int tried = c->replicas + c->replicas / 16 < most ? c->replicas + c->replicas / 16 : most;
    int holds = sh_recommend_judge(r, c, tried, 0, &c->at, e);
    if (holds < 0)
        return -1;
    c->is_tried = 1;
    c->replicas = tried + !holds;
    if (holds)
        return fewest_that_hold(r, c, low, e);
    if (c->replicas > most)
        lacks_gpus(r, c);
    return 0;
}

/* ---- why a smaller one fails ---- */

/* Has it no room for the model or a request, or is one request alone too slow? */
static int is_hopeless(const struct sh_candidate *c)
{
    return c->is_out && strncmp(c->why, "throughput", 10);
}

/* What `replicas` of them lack, which do not hold; or, 1, they do. */
static int fails(struct sh_recommend *r, const struct sh_candidate *c, int replicas, struct sh_judged *at,
                 char why[SH_REASON], struct sh_err *e)
{
    struct sh_serving v;
    struct sh_screen s;
    if (is_hopeless(c)) {
        memcpy(why, c->why, SH_REASON);
        return 0;
    }
    if (sh_recommend_server(r, c, &v, e))
        return -1;
    int open = !sh_screen_open(&v, &r->load, &s, why);
    double rate = open ? sh_screen_rate(&s) * replicas : 0;
    sh_serving_clear(&v);
    if (!open)
        return 0;
    int holds = sh_recommend_judge(r, c, replicas, 1, at, e);
    if (holds)
        return holds;
    int first = at->ttft[3] / r->load.slo_ttft > at->tpot[3] / r->load.slo_tpot;
    const double *q = first ? at->ttft : at->tpot;
    if (rate < r->load.rate)
        snprintf(why, SH_REASON, "throughput: %.4g of %.6g requests/s", rate, r->load.rate);
    else if (q[3] > (first ? r->load.slo_ttft : r->load.slo_tpot))
        snprintf(why, SH_REASON, "%s: p%.4g %.4g s, limit %.4g s", first ? "TTFT" : "TPOT", 100 * r->load.goal, q[3],
                 first ? r->load.slo_ttft : r->load.slo_tpot);
    else
        snprintf(why, SH_REASON, "TTFT and TPOT: %.4g %% of requests within both limits, expected %.4g %%",
                 100 * at->good, 100 * r->load.goal);
    return 0;
}

/* The largest deployment of the board and cache with fewer GPUs, if possible one of a layout that serves with more
 * replicas, of equal ones the same layout: `row` says why it fails. 1: it holds, and is what its candidate is from now
 * on. */
static int next_smaller(struct sh_recommend *r, struct sh_recommend_row *row, struct sh_err *e)
{
    struct sh_candidate *next = NULL;
    int most = 0;
    for (int i = 0; i < r->n_candidate; i++) {
        struct sh_candidate *c = &r->candidate[i];
        int n = is_of(row, c) ? (gpus(row->of) - 1) / c->gpus * c->gpus : 0;
        int more = next ? is_hopeless(next) - is_hopeless(c) : 1;
        if (n && (more > 0 || (!more && (n > most || (n == most && c == row->of))))) {
            most = n;
            next = c;
        }
    }
    if (!next) {
        snprintf(row->next, sizeof row->next, "nothing is smaller than one GPU");
        return 0;
    }
    row->has_smaller = 1;
    char why[SH_REASON], layout[SH_LAYOUT_TEXT];
    struct sh_judged at;
    int replicas = most / next->gpus, holds = fails(r, next, replicas, &at, why, e);
    if (holds > 0) {
        next->is_out = 0;
        next->is_simulated = next->is_tried = 1;
        next->replicas = replicas;
        next->at = at;
    }
    sh_layout_text(&r->layouts.at[next->layout], replicas, layout);
    snprintf(row->next, sizeof row->next, "%s: %s", layout, why);
    return holds;
}

/* ---- rows ---- */

static int fill(struct sh_recommend *r, const struct sh_candidate *c, struct sh_recommend_row *row, struct sh_err *e)
{
    const struct sh_gpu *b = &r->board[c->board];
    const double price = r->price[c->board], tokens = r->load.rate * r->load.output;
    enum sh_generation gen;
    struct sh_serving v;
    struct sh_screen s;
    char why[SH_REASON];
    if (sh_recommend_server(r, c, &v, e))
        return -1;
    const struct sh_engine_error *x = sh_clock_generation(b, &gen)
                                          ? sh_engine_error(&r->engine, gen, sh_clock_kind(&r->model)) : NULL;
    *row = (struct sh_recommend_row){
        .of = c, .board = b, .cache = &r->cache[c->cache], .layout = r->layouts.at[c->layout], .replicas = c->replicas,
        .gpus = gpus(c), .usd_per_hour = price * gpus(c), .usd = price * gpus(c) / 3600 / tokens * 1e6,
        .ttft_margin = r->load.slo_ttft / c->at.ttft[3] - 1, .tpot_margin = r->load.slo_tpot / c->at.tpot[3] - 1,
        .ttft_error = x ? x->ttft : (double)NAN, .tpot_error = x ? x->tpot : (double)NAN, .error_runs = x ? x->runs : 0,
        .chunk = v.chunk, .sequences = v.sequences, .util = v.memory / (double)v.ask.memory};
    row->is_sure = x && !(row->ttft_margin < row->ttft_error) && !(row->tpot_margin < row->tpot_error);
    if (!sh_screen_open(&v, &r->load, &s, why))
        row->rate = sh_screen_rate(&s) * c->replicas;
    sh_serving_clear(&v);
    sh_recommend_commands(r, row);
    return 0;
}

static void clear_row(struct sh_recommend_row *row)
{
    free(row->vllm);
    free(row->sglang);
}

/* The next candidate of a board and cache that has no row among the first n; NULL: none is left. */
static struct sh_candidate *first(struct sh_recommend *r, enum order by, const struct sh_recommend_row *rows, int n,
                                  struct sh_err *e)
{
    for (;;) {
        struct sh_candidate *best = NULL;
        for (int i = 0; i < r->n_candidate; i++) {
            struct sh_candidate *c = &r->candidate[i];
            int has_row = 0;
            for (int k = 0; k < n && !has_row; k++)
                has_row = is_of(&rows[k], c);
            if (!c->is_out && !has_row && (!best || compare(r, by, c, best) < 0))
                best = c;
        }
        if (!best || best->is_simulated)
            return best;
        if (simulate(r, best, e))
            return NULL;
    }
}

/* Adds up to `most` rows to `rows`, which has *n; with `by` they are the first ones. */
static int rank(struct sh_recommend *r, enum order by, int most, struct sh_recommend_row *rows, int *n,
                struct sh_err *e)
{
    while (*n < most) {
        e->status = SH_OK;
        const struct sh_candidate *c = first(r, by, rows, *n, e);
        if (!c)
            return e->status == SH_OK ? 0 : -1;
        int again = fill(r, c, &rows[*n], e) ? -1 : next_smaller(r, &rows[*n], e);
        if (again)
            clear_row(&rows[*n]);
        if (again < 0)
            return -1;
        *n += !again;
    }
    return 0;
}

/* The fewest GPUs of all, which may be a row already. */
static int add_fewest(struct sh_recommend *r, struct sh_err *e)
{
    struct sh_recommend_row one;
    int n = 0, k = 0;
    if (rank(r, BY_GPUS, 1, &one, &n, e))
        return -1;
    while (n && k < r->n_row && r->row[k].of != one.of)
        k++;
    if (n && k == r->n_row)
        r->row[r->n_row++] = one;
    else if (n)
        clear_row(&one);
    if (n)
        r->row[k].is_fewest = 1;
    r->row[0].is_cheapest = !isnan(r->row[0].usd);
    return 0;
}

/* Nothing holds: the largest layout on the fastest GPU says why. */
static int none(struct sh_recommend *r, struct sh_err *e)
{
    const struct sh_candidate *most = NULL;
    char layout[SH_LAYOUT_TEXT], why[SH_REASON];
    struct sh_judged at;
    for (int i = 0; i < r->n_candidate; i++) {
        const struct sh_candidate *c = &r->candidate[i];
        if (c->gpus <= r->args->most &&
            (!most || c->gpus > most->gpus ||
             (c->gpus == most->gpus && r->board[c->board].gbps > r->board[most->board].gbps)))
            most = c;
    }
    int replicas = (int)(r->args->most / most->gpus);
    if (fails(r, most, replicas, &at, why, e) < 0)
        return -1;
    sh_layout_text(&r->layouts.at[most->layout], replicas, layout);
    sh_fail(e, "%s: no deployment of at most %lld GPUs is within the limits; %s, %s: %s", r->model.f.name,
            r->args->most, r->board[most->board].name, layout, why);
    return sh_hint(e, "see --most-gpus, --machine, --gpu, --weights, --kv, --budget and the limits");
}

/* Arithmetic that was too strict may have put a row after dearer ones. */
static void sort_rows(struct sh_recommend *r)
{
    for (int i = 1; i < r->n_row; i++)
        for (int k = i; k > 0 && compare(r, BY_COST, r->row[k].of, r->row[k - 1].of) < 0; k--) {
            struct sh_recommend_row row = r->row[k];
            r->row[k] = r->row[k - 1];
            r->row[k - 1] = row;
        }
}

int sh_recommend_search(struct sh_recommend *r, struct sh_err *e)
{
    if (screen_all(r, e) || rank(r, BY_COST, (int)r->args->top, r->row, &r->n_row, e))
        return -1;
    sort_rows(r);
    return r->n_row ? add_fewest(r, e) : none(r, e);
}
