/* SPDX-License-Identifier: Apache-2.0 */
/* See simulate_run.h: the options as servers, caches and rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/progress.h"
#include "src/base/mem.h"
#include "src/app/simulate/simulate_run.h"

/* Efficiencies of the full cache's steps serve all. */
static int calibrate(struct sh_sim_study *s, struct sh_err *e)
{
    struct sh_capacity_question q = {&s->model, NULL, s->board, s->settings.kv.at[0], NULL, 1};
    struct sh_capacity_ask ask = {0};
    struct sh_sim_cost c = {0};
    uint64_t *layers = NULL;
    if (s->n_board > 1 || s->settings.kv.n > 1 || s->settings.tp.n > 1)
        return sh_misused(e, "--calibrate requires one --gpu, one --tp and one --kv: the server that was measured");
    struct sh_sim_point *p = xcalloc(SH_SIM_POINTS, sizeof *p);
    q.tp = (int)strtol(s->settings.tp.at[0], NULL, 10);
    int bad = sh_sim_points_read(s->args->calibrate, p, &s->n_point, e) ||
              sh_capacity_ask_fill(&s->args->capacity, &s->settings, &q, &ask, &layers, e) ||
              sh_sim_cost(&ask, &s->efficiency, &c, e) ||
              (sh_sim_fit(&c, p, s->n_point, &s->fit, e) && sh_err_prefix(e, "%s", s->args->calibrate));
    if (!bad)
        s->efficiency = s->fit.efficiency;
    sh_sim_cost_clear(&c);
    free(layers);
    free(p);
    return bad ? -1 : 0;
}

/* The caches of one server: the whole one, budgets, the measured budget (NULL: none), plans. */
static void add_caches(struct sh_sim_study *s, const struct sh_sim_cache *server, const struct sh_quality_point *least)
{
    for (int i = -1; i < s->n_each - 1; i++) {
        struct sh_sim_cache *v = &s->cache[s->n_cache++];
        int plan = i - s->settings.budget.n - (least != NULL);
        *v = *server;
        v->name = "full";
        if (i >= 0 && i < s->settings.budget.n) {
            v->name = v->budget = s->settings.budget.at[i];
        } else if (i >= 0 && plan < 0) {
            v->measured = least;
            v->name = v->budget = least->budget;
        }
        if (plan >= 0) {
            v->name = v->path = s->args->plan.at[plan];
            v->plan = &s->plan[plan];
        }
    }
}

/* Every cache is set up once, so that errors are found before the work. */
static int look_at(const struct sh_sim_study *s, struct sh_sim_cache *v, struct sh_err *e)
{
    struct sh_sim_server server;
    if (sh_sim_server_open(s, v, &server, e))
        return -1;
    v->pool = server.cost.pool;
    v->costs = sh_sim_costs(&server.cost);
    v->evidence = v->plan ? sh_capacity_plan_evidence(v->plan, s->model.f.name, 0)
                  : v->measured ? sh_quality_text(v->measured, s->args->capacity.db, s->model.f.name, s->longest)
                          : xstrdup(v->budget ? "quality under this budget was not measured"
                                              : "full cache: nothing is evicted");
    sh_sim_server_close(&server);
    return 0;
}

static void add_rows(struct sh_sim_study *s)
{
    int timed = s->args->timeline || s->args->plot_occupancy;
    s->row = xcalloc((size_t)s->n_row, sizeof *s->row);
    for (int i = 0; i < s->n_row; i++) {
        struct sh_sim_row *r = &s->row[i];
        *r = (struct sh_sim_row){.cache = &s->cache[i / s->source.n], .speed = s->source.speed[i % s->source.n]};
        for (int m = 0; m < SH_N_SIM_METRIC; m++)
            r->at[m] = (double)NAN;
        if (timed)
            r->occupancy = xcalloc(1, sizeof *r->occupancy);
    }
}

/* The parts of a server's name that differ among servers. */
static char *name_server(const struct sh_sim_study *s, const struct sh_sim_cache *v)
{
    const struct sh_capacity_settings *t = &s->settings;
    char group[32] = "";
    if (t->tp.n > 1)
        snprintf(group, sizeof group, ", tp %d", v->tp);
    return xasprintf("%s%s%s%s%s", s->n_board > 1 ? ", " : "", s->n_board > 1 ? v->board->name : "", group,
                     t->kv.n > 1 ? ", " : "", t->kv.n > 1 ? v->kv : "");
}

static int lay_out(struct sh_sim_study *s, struct sh_err *e)
{
    const struct sh_capacity_settings *t = &s->settings;
    s->n_each = 1 + t->budget.n + (s->least[0] != NULL) + s->args->plan.n;
    long long caches = (long long)s->n_board * t->tp.n * t->kv.n * s->n_each;
    if (caches * s->source.n > SH_SIM_CELLS)
        return sh_misused(e, "found a sweep of %lld cells, expected at most %d", caches * s->source.n, SH_SIM_CELLS);
    s->n_row = (int)caches * s->source.n;
    s->cache = xcalloc((size_t)caches, sizeof *s->cache);
    for (int b = 0; b < s->n_board; b++)
        for (int g = 0; g < t->tp.n; g++)
            for (int k = 0; k < t->kv.n; k++)
                add_caches(s, &(struct sh_sim_cache){.board = &s->board[b], .kv = t->kv.at[k],
                                                     .tp = (int)strtol(t->tp.at[g], NULL, 10)}, s->least[k]);
    for (int i = 0; i < s->n_cache; i++) {
        s->cache[i].on = name_server(s, &s->cache[i]);
        if (look_at(s, &s->cache[i], e))
            return -1;
    }
    add_rows(s);
    return 0;
}

int sh_sim_study_open(struct sh_sim_study *s, struct sh_err *e)
{
    const struct sh_simulate_args *a = s->args;
    struct sh_capacity_words gpu;
    s->efficiency = (struct sh_sim_efficiency){1, 1, 1, 1, 1, 0};
    if (strstr(a->capacity.tp, "auto"))
        return sh_misused(e, "--tp: expected numbers; shears capacity --tp auto finds how many are enough");
    if (sh_sim_settings(a, &s->ask, e) || sh_capacity_settings(&a->capacity, &s->settings, e) ||
        (a->efficiency && sh_sim_efficiency_parse(a->efficiency, &s->efficiency, e)) ||
        sh_sim_source(a, (uint64_t)s->common->seed, &s->source, e) ||
        sh_sim_prefix(a, &s->source, &s->ask.prefix, e) ||
        sh_capacity_names_open(&s->names, a->capacity.gpus, a->capacity.models, e) ||
        sh_capacity_model(&s->names, a->capacity.model, 0, &s->model, e) ||
        sh_capacity_split("--gpu", a->capacity.gpu, &gpu, e))
        return -1;
    s->board = xcalloc((size_t)gpu.n, sizeof *s->board);
    for (int i = 0; i < gpu.n; i++)
        if (sh_capacity_board(&s->names, gpu.at[i], 0, &s->board[s->n_board++], e))
            return -1;
    s->plan = xcalloc((size_t)a->plan.n + 1, sizeof *s->plan);
    for (int i = 0; i < a->plan.n; i++)
        if (sh_plan_read(&s->plan[i], a->plan.at[i], e))
            return -1;
    s->has_engine = a->engine != NULL;
    if (sh_sim_quality(s, e))
        return -1;
    if (s->has_engine && (sh_engine_open(a->engine, &s->engine, e) || sh_sim_engine_settings(a, &s->engine, s->board,
                                                                                            &s->ask, e)))
        return -1;
    s->efficiency.overhead_s = a->overhead_s >= 0 ? a->overhead_s : 0;
    s->ask.stopped = sh_interrupted;
    s->source.moved = sh_sim_moved;
    s->source.to = s;
    s->result = xmalloc(sizeof *s->result);
    return (a->calibrate && calibrate(s, e)) || lay_out(s, e) ? -1 : 0;
}

void sh_sim_study_clear(struct sh_sim_study *s)
{
    sh_sim_server_close(&s->server);
    for (int i = 0; s->row && i < s->n_row; i++) {
        free(s->row[i].settings);
        free(s->row[i].occupancy);
    }
    for (int i = 0; i < s->n_cache; i++) {
        free(s->cache[i].on);
        free(s->cache[i].evidence);
    }
    for (int i = 0; s->plan && i < s->args->plan.n; i++)
        sh_plan_clear(&s->plan[i]);
    free(s->plan);
    free(s->point);
    free(s->cache);
    free(s->row);
    free(s->board);
    free(s->result);
    sh_sim_source_close(&s->source);
    sh_kv_shape_clear(&s->model);
    sh_capacity_names_close(&s->names);
}
