/* SPDX-License-Identifier: Apache-2.0 */
/* The results of simulate --concurrency (simulate_closed_show.h). */
#include "src/cli/simulate_closed_show.h"

#include <stdlib.h>

#include "src/app/simulate/simulate_closed.h"
#include "src/base/mem.h"
#include "src/cli/options.h"
#include "src/report/figures/simulate_plot.h"

static void times(struct sh_out *o, const char *key, const char *what, const double q[4], const struct sh_time_unit *u)
{
    static const struct { const char *key; int at, is_extra; } part[] = {
        {"mean", 3, 0}, {"p50", 0, 1}, {"p90", 1, 1}, {"p99", 2, 0}};
    sh_out_group(o, key);
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        char *label = xasprintf("%s %s, %s", what, part[i].key, u->name);
        sh_out_real(o, part[i].key, label, q[part[i].at] * u->per_s, u->digits);
        if (part[i].is_extra)
            sh_out_detail(o);
        free(label);
    }
    sh_out_group_end(o);
}

static void detail(struct sh_out *o, const char *key, const char *label, double x, int digits)
{
    sh_out_real(o, key, label, x, digits);
    sh_out_detail(o);
}

static void rows(struct sh_out *o, const struct sh_sim_study *s, const struct sh_closed *c, int is_text)
{
    const struct sh_simulate_args *a = s->args;
    static const struct sh_time_unit seconds = {"s", "seconds", 1, 4};
    double *at = xcalloc(2 * (size_t)c->n, sizeof *at);
    for (int i = 0; i < c->n; i++) {
        at[i] = c->row[i].ttft[3];
        at[c->n + i] = c->row[i].tpot[3];
    }
    struct sh_time_unit ttft = is_text ? sh_time_unit(at, c->n) : seconds;
    struct sh_time_unit tpot = is_text ? sh_time_unit(at + c->n, c->n) : seconds;
    free(at);
    sh_out_list(o, "results", "a fixed number of clients");
    for (int i = 0; i < c->n; i++) {
        const struct sh_closed_row *r = &c->row[i];
        sh_out_item(o);
        sh_out_text(o, "plan", "cache", r->cache);
        sh_out_int(o, "concurrency", "clients", r->concurrency);
        times(o, "ttft_s", "TTFT", r->ttft, &ttft);
        times(o, "tpot_s", "TPOT", r->tpot, &tpot);
        sh_out_real(o, "throughput_tokens_per_s", "tokens/s", r->output_rate, 1);
        sh_out_real(o, "throughput_tokens_per_s_per_gpu", "per GPU", r->per_gpu, 1);
        if (a->capacity.price >= 0 || !is_text)
            sh_out_real(o, "usd_per_million_tokens", "USD/Mtoken", r->usd, 4);
        if (a->slo_ttft >= 0 || a->slo_tpot >= 0) {
            sh_out_real(o, "good_share", "good", r->good_share, 4);
            detail(o, "goodput_requests_per_s", "good/s", r->goodput, 3);
        }
        if (s->ask.prefix.block)
            sh_metrics_write(&sh_simulate_prefix_metrics, r->prefix, o);
        detail(o, "total_tokens_per_s", "with prompts", r->total_rate, 1);
        detail(o, "requests", "requests", r->requests, 0);
        detail(o, "seconds", "seconds", r->seconds, 2);
        detail(o, "steps", "steps", r->steps, 0);
        detail(o, "busy_share", "busy", r->busy, 4);
        detail(o, "largest_batch", "largest batch", r->most_running, 0);
        detail(o, "tokens_in", "tokens in", r->tokens_in, 0);
        detail(o, "tokens_out", "tokens out", r->tokens_out, 0);
        detail(o, "kv_pool_bytes_per_gpu", "pool", r->pool, 0);
        detail(o, "gpus", "GPUs", c->gpus, 0);
    }
    sh_out_end(o);
}

static int show(const struct sh_sim_study *s, const struct sh_closed *c, struct sh_err *e)
{
    int is_text = sh_common_format(s->common) == SH_OUT_TEXT;
    char text[SH_ENGINE_TEXT];
    struct sh_out *o = sh_out_new();
    rows(o, s, c, is_text && !s->common->columns);
    if (s->source.file.skipped)
        sh_out_note(o, "%lld rows without prompt or output tokens were skipped.", s->source.file.skipped);
    sh_out_note(o, "Expected error of the mean time per token: %s.", sh_engine_says(&c->engine, s->board, &s->model,
                                                                                   text));
    if (s->settings.budget.n)
        sh_out_note(o, "Neither the loss of quality under these budgets nor the time to choose tokens is included.");
    for (int i = 0; i < s->args->plan.n; i++) {
        char *evidence = sh_capacity_plan_evidence(&s->plan[i], s->model.f.name, 0);
        sh_out_note(o, "%s: %s", s->args->plan.at[i], evidence);
        free(evidence);
    }
    return sh_common_write(s->common, o, 0, e);
}

int sh_simulate_closed(const struct sh_simulate_args *a, const struct sh_common *common, struct sh_err *e)
{
    struct sh_sim_study *s = xcalloc(1, sizeof *s);
    struct sh_closed c = {.n = 0};
    s->args = a;
    s->common = common;
    struct sh_gp_look look;
    int bad = sh_check_figure(a->plot_latency, &a->capacity.paper, e) || sh_closed_run(s, &c, e) ||
              sh_read_page(&a->capacity.paper, &look, e) ||
              (a->plot_latency && sh_closed_plot_latency(s, &c, a->plot_latency, &look, e)) || show(s, &c, e) ? -1 : 0;
    sh_closed_clear(&c);
    sh_sim_study_clear(s);
    free(s);
    return bad;
}
