/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/plan/plan_measure.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/app/common/recorded.h"
#include "src/app/store/measured.h"

static void set_text(char *to, size_t bytes, const char *text)
{
    snprintf(to, bytes, "%s", text);
}

void sh_plan_name(struct sh_plan *p, const struct sh_stored_run *run)
{
    set_text(p->model, sizeof p->model, run->model);
    set_text(p->weights, sizeof p->weights, run->weights);
    set_text(p->fingerprint, sizeof p->fingerprint, run->fingerprint);
    p->n_layer = run->n_layer;
    p->n_head = run->n_head;
    p->n_kv_head = run->n_kv_head;
    p->d_head = run->d_head;
}

struct sh_plan_evidence *sh_plan_add_evidence(struct sh_plan *p, const char *metric, double value, int sequences,
                                              long long tokens, int run, const char *store)
{
    const char *slash = strrchr(store, '/');
    assert(p->n_evidence < SH_PLAN_EVIDENCE);
    struct sh_plan_evidence *v = &p->evidence[p->n_evidence++];
    *v = (struct sh_plan_evidence){.value = value, .low = (double)NAN, .high = (double)NAN, .sequences = sequences,
                                   .tokens = tokens, .run = run};
    set_text(v->metric, sizeof v->metric, metric);
    set_text(v->store, sizeof v->store, slash ? slash + 1 : store);
    set_text(v->program, sizeof v->program, PACKAGE_VERSION);
    return v;
}

static void take_figures(struct sh_plan *p, const struct sh_replay_result *r, const struct sh_replay_request *q,
                         const char *store, const char *text)
{
    /* The bootstrap draws whole rows: the interval of a figure that some rows lack is that of another mean. */
    static const struct { enum sh_replay_figure figure; const char *metric; int in_all_rows; } figures[] = {
        {SH_KEPT_MASS, "kept_mass", 1}, {SH_KEPT_MASS_NO_SINK, "kept_mass_no_sink", 0},
        {SH_PIVOTAL_RECALL, "pivotal_recall", 0}, {SH_OUTPUT_ERROR, "output_error", 1}};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        double value = sh_replay_total_mean(r->total, 0, figures[i].figure, -1);
        if (isnan(value))
            continue;
        struct sh_plan_evidence *v = sh_plan_add_evidence(p, figures[i].metric, value, r->n_sequence, r->n_tokens,
                                                          q->run, store);
        set_text(v->text, sizeof v->text, text);
        if (!figures[i].in_all_rows ||
            sh_replay_total_interval(r->total, 0, figures[i].figure, q->seed, &v->low, &v->high))
            v->low = v->high = (double)NAN;
    }
}

static int of_plan(void *to, int i_budget, int n_token, int layer, int head)
{
    (void)i_budget;
    return sh_plan_tokens(to, layer, head, n_token);
}

int sh_plan_measure(struct sh_plan *p, const struct sh_replay_request *q, struct sh_store *s, struct sh_err *e)
{
    struct sh_replay_request one = *q;
    struct sh_replay_result r = {0};
    struct sh_budget whole = {0, 1};    /* a placeholder: of_plan gives the budgets */
    one.spec = &p->policy;
    one.n_spec = one.n_budget = 1;
    one.budget = &whole;
    one.prefill = p->prefill;
    one.rows = p->recorded_rows ? SH_ROWS_RECORDED : SH_ROWS_RENORMALISED;
    one.share_out = of_plan;
    one.share_to = p;
    struct sh_measured on = {0};
    struct sh_stored_run *run = NULL;
    int n_run = 0, bad = sh_runs_choose(s, q->run, &run, &n_run, e) || sh_measured_runs(&on, s, run, n_run, e) ||
                         sh_replay_run(&one, s, &r, e);
    if (!bad)
        take_figures(p, &r, q, sh_store_path(s), on.name);
    sh_stored_runs_free(run, n_run);
    sh_replay_result_free(&r);
    return bad;
}
