/* SPDX-License-Identifier: Apache-2.0 */
/* The question: what the options name, read and checked, and the load that they describe. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/app/recommend/recommend.h"
#include "src/base/mem.h"

void sh_recommend_clear(struct sh_recommend *r)
{
    for (int i = 0; i < r->n_row; i++) {
        free(r->row[i].vllm);
        free(r->row[i].sglang);
    }
    for (int i = 0; i < r->n_cache; i++)
        free(r->cache[i].evidence);
    sh_recommend_sizes_clear(r);
    sh_kv_shape_clear(&r->model);
    sh_capacity_names_close(&r->names);
    free(r->board);
    free(r->price);
    free(r->point);
    free(r->candidate);
}

/* ---- boards and their prices ---- */

static int add_board(struct sh_recommend *r, const char *name, int i, struct sh_err *e)
{
    struct sh_gpu one;
    int end = sh_capacity_board(&r->names, name, i, &one, e);
    if (end)
        return end;
    for (int k = 0; k < r->n_board; k++)
        if (!strcmp(r->board[k].name, one.name))
            return sh_misused(e, "--gpu: found %s twice", one.name);
    r->board = xreallocarray(r->board, (size_t)r->n_board + 1, sizeof *r->board);
    r->price = xreallocarray(r->price, (size_t)r->n_board + 1, sizeof *r->price);
    r->price[r->n_board] = one.price > 0 ? one.price / one.dies : (double)NAN;
    r->board[r->n_board++] = one;
    return 0;
}

static int add_boards(struct sh_recommend *r, struct sh_err *e)
{
    struct sh_capacity_words w;
    int end = 0;
    if (!strcasecmp(r->args->capacity.gpu, "all")) {
        for (int i = 0; !end; i++)
            end = add_board(r, NULL, i, e);
        return end < 0 ? -1 : 0;
    }
    if (sh_capacity_split("--gpu", r->args->capacity.gpu, &w, e))
        return -1;
    for (int i = 0; i < w.n; i++)
        if (add_board(r, w.at[i], 0, e))
            return -1;
    return 0;
}

/* "2.5" for every board, or "H100-SXM=2.5,L4=0.8". */
static int read_prices(struct sh_recommend *r, struct sh_err *e)
{
    struct sh_capacity_words w;
    if (!r->args->price)
        return 0;
    if (sh_capacity_split("--price", r->args->price, &w, e))
        return -1;
    for (int i = 0; i < w.n; i++) {
        struct sh_gpu named = {.name = ""};
        char *is = strchr(w.at[i], '='), *end, *number = is ? is + 1 : w.at[i];
        double price = strtod(number, &end);
        if (is)
            *is = '\0';
        if (end == number || *end || !(price > 0) || price > 1e6)
            return sh_misused(e, "--price: found \"%.40s\", expected USD per GPU and hour, such as 2.5 or "
                              "H100-SXM=2.5,L4=0.8", number);
        if (is && sh_capacity_board(&r->names, w.at[i], 0, &named, e))
            return sh_err_prefix(e, "--price");
        int found = 0;
        for (int b = 0; b < r->n_board; b++)
            if (!is || !strcmp(r->board[b].name, named.name)) {
                r->price[b] = price;
                found = 1;
            }
        if (!found)
            return sh_misused(e, "--price: %s is not one of the GPUs of --gpu", named.name);
    }
    return 0;
}

/* ---- the load ---- */

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int read_load(struct sh_recommend *r, struct sh_err *e)
{
    const struct sh_recommend_args *a = r->args;
    struct sh_load *l = &r->load;
    *l = (struct sh_load){.rate = a->rate, .slo_ttft = a->slo_ttft, .slo_tpot = a->slo_tpot, .goal = a->goal};
    if (sh_lengths_parse("--prompt", a->prompt, &r->prompt, e) ||
        sh_lengths_parse("--output", a->output, &r->output, e))
        return -1;
    struct sh_workload_random w = {.prompt = r->prompt, .output = r->output};
    struct sh_request q;
    uint64_t n = (uint64_t)a->requests;
    uint32_t *prompts = xcalloc(n, sizeof *prompts);
    sh_workload_random(&w, a->rate, n, (uint64_t)a->seed);
    for (uint64_t i = 0; i < n && w.base.next(&w.base, &q, e) > 0; i++) {
        prompts[i] = q.prompt;
        l->prompt += (double)q.prompt / (double)n;
        l->output += (double)q.output / (double)n;
        l->longest_prompt = q.prompt > l->longest_prompt ? q.prompt : l->longest_prompt;
        l->longest = q.prompt + q.output > l->longest ? q.prompt + q.output : l->longest;
    }
    qsort(prompts, n, sizeof *prompts, compare);
    uint64_t k = (uint64_t)ceil(l->goal * (double)n - 1e-9);
    l->prompt_at_goal = prompts[k ? k - 1 : 0];
    free(prompts);
    if (r->model.f.max_pos && l->longest > (uint32_t)r->model.f.max_pos) {
        sh_misused(e, "%s: found a request of %u tokens, expected at most %d, the model's context", r->model.f.name,
                   l->longest, r->model.f.max_pos);
        return sh_hint(e, "servers refuse longer requests; see --prompt and --output");
    }
    return 0;
}

/* ---- caches ---- */

static int check_quality(const struct sh_capacity_args *a, struct sh_err *e)
{
    int has_limit = a->max_ppl || a->min_recall;
    if (!a->db && (has_limit || a->policy || a->measured_on))
        return sh_misused(e, "%s requires --db FILE", a->max_ppl ? "--max-ppl-increase" : a->min_recall ? "--min-recall"
                          : a->policy ? "--policy" : "--measured-on");
    if (a->db && !has_limit)
        return sh_misused(e, "--db requires --max-ppl-increase F or --min-recall F");
    return sh_quality_one_limit(a, e);
}

/* The full cache, each budget, and the smallest measured one that meets the limit. */
static int read_caches(struct sh_recommend *r, struct sh_err *e)
{
    const struct sh_capacity_args *a = &r->args->capacity;
    struct sh_quality_ask q;
    int n;
    r->cache[r->n_cache++] = (struct sh_recommend_cache){.name = "full"};
    for (int i = 0; i < r->settings.budget.n; i++)
        r->cache[r->n_cache++] = (struct sh_recommend_cache){.name = r->settings.budget.at[i],
                                                             .budget = r->settings.budget.at[i]};
    if (!a->db)
        return 0;
    if (sh_quality_read(a->db, a->model, &r->point, &n, e) ||
        sh_quality_ask(a, r->settings.kv.at[0], &r->model, r->point, n, &q, e))
        return -1;
    q.length = r->load.longest;
    const struct sh_quality_point *p = sh_quality_least(r->point, n, a->db, &q, e);
    if (!p)
        return -1;
    r->cache[r->n_cache++] = (struct sh_recommend_cache){
        .name = p->budget, .budget = p->budget, .measured = p,
        .evidence = sh_quality_text(p, a->db, r->model.f.name, r->load.longest)};
    return 0;
}

/* Formats and budgets as every server has them: what is wrong with them is no fault of a layout. */
static int read_layouts(struct sh_recommend *r, struct sh_err *e)
{
    struct sh_capacity_args a = r->args->capacity;
    a.length = r->load.longest;
    for (int i = 0; i < r->n_cache; i++) {
        struct sh_capacity_question q = {&r->model, NULL, r->board, r->settings.kv.at[0], r->cache[i].budget, 1};
        struct sh_capacity_ask ask;
        uint64_t *layers;
        int bad = sh_capacity_ask_fill(&a, &r->settings, &q, &ask, &layers, e);
        free(layers);
        if (bad)
            return -1;
        if (!i)
            sh_recommend_layouts(&r->model, &ask.weights, (int)r->args->machine, a.uneven, &r->layouts);
    }
    return 0;
}

int sh_recommend(struct sh_recommend *r, const struct sh_recommend_args *a, struct sh_err *e)
{
    const struct sh_capacity_args *c = &a->capacity;
    *r = (struct sh_recommend){.args = a};
    if (check_quality(c, e) || sh_engine_open(a->engine, &r->engine, e) || sh_capacity_settings(c, &r->settings, e))
        return -1;
    if (r->settings.kv.n > 1)
        return sh_misused(e, "--kv: found %d formats, expected one", r->settings.kv.n);
    return sh_capacity_names_open(&r->names, c->gpus, c->models, e) ||
                   sh_capacity_model(&r->names, c->model, 0, &r->model, e) || add_boards(r, e) || read_prices(r, e) ||
                   read_load(r, e) || read_caches(r, e) || read_layouts(r, e) || sh_recommend_search(r, e)
               ? -1 : 0;
}
