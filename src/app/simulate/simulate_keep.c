/* SPDX-License-Identifier: Apache-2.0 */
/* The results of shears simulate --db (simulate_run.h): a set of figures for each cell, under settings that name
 * everything that decides them; the contents of files and rows of a catalogue by their hash. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/app/store/results.h"
#include "src/app/simulate/simulate_run.h"

static void mix(uint64_t *h, double x)
{
    char text[32];
    snprintf(text, sizeof text, "%.9g", x);             /* the last digits may be another machine's */
    sh_part_hash(h, text);
}

/* Covers the costs of sequences of many lengths, up to the longest possible. */
uint64_t sh_sim_costs(const struct sh_sim_cost *c)
{
    const struct sh_roofline *r = &c->line;
    const double line[] = {r->plain_bytes, r->head_bytes, r->expert_bytes, r->expert_share, r->token_flops,
                           r->head_flops, r->link_bytes, r->bandwidth, r->peak, r->link, r->ranks, (double)c->pool,
                           c->efficiency.cache, c->efficiency.attention, c->efficiency.overhead_s};
    uint64_t h = SH_PART_HASH;
    for (size_t i = 0; i < sizeof line / sizeof *line; i++)
        mix(&h, line[i]);
    if (r->adapters > 0) {
        mix(&h, r->adapters);
        mix(&h, r->adapter_bytes);
    }
    for (int i = 0; c->clock && i < SH_N_CLOCK_CONSTANT; i++)
        mix(&h, c->clock->constant[i]);
    for (uint64_t n = 1; n <= SH_REQUEST_TOKENS; n += n < 4 ? 1 : n / 4) {
        struct sh_sim_size z = sh_sim_size_at(c, n);
        const double size[] = {(double)z.kept, (double)z.whole, z.kept_read, z.whole_read, z.kept_flops, z.whole_flops,
                               z.prompt_flops};
        for (size_t i = 0; i < sizeof size / sizeof *size; i++)
            mix(&h, size[i]);
    }
    return h;
}

/* Everything that decides the figures; `requests`: hash of the workload's file. For free(). NULL: a name is not
 * UTF-8. */
static char *settings_of(const struct sh_sim_study *s, const struct sh_sim_row *r, uint64_t requests)
{
    const struct sh_simulate_args *a = s->args;
    const struct sh_capacity_args *c = &a->capacity;
    const struct sh_sim_cache *v = r->cache;
    return sh_settings_text("simulate", (const struct sh_value[]){
        {"model", .text = c->model}, {"gpu", .text = v->board->name}, {"plan", .text = v->name},
        {"evidence", .text = v->evidence}, {"costs", .bits = v->costs}, {"workload", .text = a->workload},
        {"prompt", .text = a->prompt}, {"output", .text = a->output}, {"kv", .text = v->kv},
        {"weights", .text = c->weights}, {"windows", .text = c->windows}, {"evict", .text = a->evict},
        {"allocator", .text = a->memory}, {"efficiency", .text = a->efficiency}, {"calibrate", .text = a->calibrate},
        {"engine", .text = a->engine},
        {"ep", .whole = c->ep, .is_absent = c->ep == 1},
        {"weights_attention", .text = c->weights_attention},
        {"lora", .whole = c->lora, .is_absent = !c->lora}, {"lora_rank", .whole = c->lora_rank, .is_absent = !c->lora},
        {"gpus", .text = c->gpus}, {"models", .text = c->models},
        {"speed", .real = r->speed * (a->workload ? 1 : s->source.rate)}, {"slo_ttft_s", .real = a->slo_ttft},
        {"slo_tpot_s", .real = a->slo_tpot}, {"goal", .real = a->goal}, {"step_overhead_s", .real = a->overhead_s},
        {"util", .real = c->util}, {"reserve", .real = c->reserve}, {"memory_bytes", .real = (double)c->memory},
        {"overhead_bytes", .real = (double)c->overhead}, {"bandwidth", .real = c->bandwidth},
        {"flops", .real = c->flops}, {"link", .whole = c->link}, {"max_rate", .whole = a->max_rate},
        {"requests_hash", .bits = requests, .is_absent = !a->workload},
        {"requests", .whole = (long long)s->source.requests, .is_absent = a->workload && !a->requests},
        {"prefix_cache", .text = s->ask.prefix.block ? a->prefix_cache : NULL},
        {"block", .whole = s->ask.prefix.block, .is_absent = !s->ask.prefix.block},
        {"host_cache_bytes", .real = (double)a->host_cache, .is_absent = !a->host_cache},
        {"host_bandwidth", .real = a->host_bandwidth}, {"disk_bandwidth", .real = a->disk_bandwidth},
        {"disk_cache_bytes", .real = (double)a->disk_cache, .is_absent = !a->disk_cache},
        {"replicas", .whole = a->replicas, .is_absent = a->replicas < 2},
        {"router", .text = a->replicas > 1 ? a->router : NULL},
        {"prefix_tokens", .whole = a->prefix_tokens, .is_absent = !a->prefix_tokens},
        {"prefixes", .whole = s->source.random.prefixes, .is_absent = !a->prefix_tokens},
        {"page", .whole = c->page}, {"step_tokens", .whole = s->ask.step_tokens},
        {"max_seqs", .whole = s->ask.max_running}, {"headroom", .whole = c->headroom}, {"state", .whole = c->state},
        {"policy_state", .whole = 1, .is_absent = !c->policy_state || (!v->plan && !v->measured)},
        {"seed", .whole = s->common->seed}, {"tp", .whole = v->tp}, {0}});
}

int sh_sim_names(struct sh_sim_study *s, struct sh_err *e)
{
    uint64_t requests = 0;
    if (s->args->workload && sh_workload_hash(&s->source.file, &requests, e))
        return -1;
    for (int i = 0; i < s->n_row; i++)
        if (!(s->row[i].settings = settings_of(s, &s->row[i], requests)))
            return sh_fail(e, "--db: a name in these options is not valid UTF-8, which the store requires");
    return 0;
}

static int recall(const struct sh_sim_study *s, struct sh_sim_row *r, struct sh_store *store, struct sh_err *e)
{
    struct sh_result_row found;
    int got = sh_result_find(store, "simulate", r->settings, &found, e);
    if (got > 0)
        got = sh_result_get(&found, &sh_simulate_metrics, r->at) &&
              (!s->ask.prefix.block || sh_result_get(&found, &sh_simulate_prefix_metrics, r->prefix));
    sh_result_free(&found);
    return got;
}

int sh_sim_find(struct sh_sim_study *s, int are_new, struct sh_store *store, struct sh_err *e)
{
    for (int i = 0; i < s->n_row; i++) {
        struct sh_sim_row *r = &s->row[i];
        if (r->is_known)
            continue;
        r->is_there = recall(s, r, store, e);
        if (r->is_there < 0)
            return -1;
        r->is_known = r->is_there && !are_new;
    }
    return 0;
}

static int is_older(const json_t *one, const json_t *new)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)new, key, value)
        if (strcmp(key, "costs") && strcmp(key, "evidence") && !json_equal(value, json_object_get(one, key)))
            return 0;
    return json_object_size(one) == json_object_size(new);
}

/* A plan's file was written anew: results of what it contained before have nothing left that they are of. */
static int forget_older(const struct sh_sim_row *r, struct sh_store *store, struct sh_err *e)
{
    struct sh_results all = {0};
    int bad = sh_results_load(store, "simulate", &all, e);
    json_t *new = json_loads(r->settings, 0, NULL);
    for (int i = 0; i < all.n && !bad; i++)
        if (strcmp(all.row[i].text, r->settings) && is_older(all.row[i].settings, new))
            bad = sh_store_results_erase(store, "simulate", all.row[i].text, e);
    json_decref(new);
    sh_results_free(&all);
    return bad;
}

static int keep(const struct sh_sim_study *s, const struct sh_sim_row *r, struct sh_store *store, struct sh_err *e)
{
    struct sh_result_row row = {0};
    sh_result_add_all(&row, &sh_simulate_metrics, -1, r->at);
    if (s->ask.prefix.block)
        sh_result_add_all(&row, &sh_simulate_prefix_metrics, -1, r->prefix);
    return sh_result_keep(store, "simulate", r->settings, &row, e);
}

int sh_sim_keep(const struct sh_sim_study *s, int first, int n, struct sh_store *store, struct sh_err *e)
{
    int bad = 0;
    if (sh_store_group_begin(store, e))
        return -1;
    for (int i = first; i < first + n && !bad; i++)
        if (s->row[i].is_there && !s->row[i].is_known)
            bad = (s->row[i].cache->plan && forget_older(&s->row[i], store, e)) || keep(s, &s->row[i], store, e);
    return sh_store_group_end(store, bad, e);
}

int sh_sim_forget(const struct sh_sim_study *s, struct sh_store *store, struct sh_err *e)
{
    int bad = 0;
    if (sh_store_group_begin(store, e))
        return -1;
    for (int i = 0; i < s->n_row && !bad; i++)
        if (!s->row[i].is_known)
            bad = sh_store_results_erase(store, "simulate", s->row[i].settings, e);
    return sh_store_group_end(store, bad, e);
}
