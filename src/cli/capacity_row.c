/* SPDX-License-Identifier: Apache-2.0 */
/* Answers as rows (capacity_show.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/cli/capacity_quality.h"
#include "src/cli/capacity_show.h"

/* Room and batch behind what a server takes for itself; the least and the most of the fullest stage. */
static void expected(const struct sh_capacity_answer *a, struct sh_capacity_row *r)
{
    struct sh_server_term t[SH_SERVER_TERMS];
    const struct sh_kv_bytes *kv = &a->c.stage[a->c.fullest].kv;
    int n = sh_server_terms(a->ask, &a->server, a->c.fullest, t);
    double low = (double)a->c.room, high = low;
    for (int i = 0; i < n; i++) {
        low -= t[i].high;
        high -= t[i].low;
    }
    double ends[2] = {fmax(low, 0), fmax(high, 0)};
    uint64_t batch[2] = {0, 0};
    for (int i = 0; i < 2; i++)
        if (kv->sequence && ends[i] >= (double)kv->prefix)
            batch[i] = (uint64_t)((ends[i] - (double)kv->prefix) / (double)kv->sequence) * (uint64_t)a->ask->ep;
    r->room_low = ends[0];
    r->room_high = ends[1];
    r->batch_low = batch[0];
    r->batch_high = batch[1];
}

static void copy_sizes(const struct sh_capacity *c, struct sh_capacity_row *r)
{
    const struct sh_capacity_stage *g = &c->stage[c->fullest];
    r->limit = c->limit;
    r->weights_bytes = g->weights;
    r->room = c->room;
    r->shortfall = c->shortfall;
    r->unfit = c->unfit;
    r->fits = !c->unfit;
    r->batch = c->batch;
    r->max_batch = c->max_batch;
    r->max_length = c->max_length;
    r->token = g->kv.token;
    r->sequence = g->kv.sequence;
    r->prefix = g->kv.prefix;
    r->states = g->kv.states;
    r->fixed = c->fixed;
    r->further = c->further;
    r->max_budget = c->max_budget;
    r->beside_prompt = c->beside_prompt;
    r->uniform = c->uniform;
    r->scattered = c->scattered;
}

void sh_capacity_row(const struct sh_capacity_answer *a, struct sh_capacity_row *out)
{
    const struct sh_capacity_ask *k = a->ask;
    const struct sh_capacity *c = &a->c;
    struct sh_capacity_row r = {.model = k->shape->f.name, .gpu = a->board->name, .budget = a->budget, .kv = a->kv,
                                .evidence = a->evidence, .measured = a->measured, .tp = k->tp, .pp = k->pp,
                                .ep = k->ep, .memory = k->memory, .overhead = k->overhead,
                                .length = k->length, .util = k->util, .page = k->rule.page};
    const char *experts = strcmp(k->weights.experts.name, k->weights.matrices.name) ? k->weights.experts.name : NULL;
    snprintf(r.weights, sizeof r.weights, "%.24s%s%.24s", k->weights.stored ? "stored" : k->weights.matrices.name,
             experts ? ", experts " : "", experts ? experts : "");
    copy_sizes(c, &r);
    struct sh_kv_parts p = sh_kv_weights_all(k->shape, &k->weights);
    r.parameters = sh_kv_parts_sum(p.parameters);
    r.max_pos = k->shape->f.max_pos;
    r.decode_s = c->decode_s;
    r.decode_rate = c->decode_rate;
    r.prefill_s = c->prefill_s;
    r.prefill_rate = c->prefill_rate;
    r.cache_share = c->cache_share;
    r.bound = r.fits ? sh_bound_names[c->step.bound] : "memory";
    r.prefill_bound = r.fits ? sh_bound_names[c->prompt.bound] : "memory";
    r.usd = a->price >= 0 ? a->price * k->tp * k->pp * k->ep / 3600 / c->decode_rate * 1e6 : NAN;
    r.priced = a->price >= 0;
    expected(a, &r);
    *out = r;
}

/* The largest number that JSON readers keep whole is more than any memory; what is beyond is shown as it. */
static long long shown(uint64_t n)
{
    return n > INT64_MAX ? INT64_MAX : (long long)n;
}

static void contract(struct sh_out *o, const struct sh_capacity_row *r)
{
    sh_out_text(o, "model", "model", r->model);
    sh_out_text(o, "gpu", "GPU", r->gpu);
    sh_out_int(o, "tp", "tp", r->tp);
    sh_out_int(o, "pp", "pp", r->pp);
    sh_out_int(o, "length", "length", shown(r->length));
    sh_out_int(o, "batch", "batch", shown(r->batch));
    sh_out_int(o, "room_bytes_per_gpu", "room", shown(r->room));
    sh_out_int(o, "weights_bytes_per_gpu", "weights", shown(r->weights_bytes));
    sh_out_int(o, "kv_bytes_per_token_per_gpu", "KV a token", shown(r->token));
    sh_out_int(o, "kv_bytes_per_sequence_per_gpu", "KV a sequence", shown(r->sequence));
    sh_out_int(o, "max_batch", "max. batch", shown(r->max_batch));
    sh_out_int(o, "max_length", "max. length", shown(r->max_length));
    sh_out_real(o, "decode_tokens_per_s", "decode tokens/s", r->decode_rate, 1);
    sh_out_real(o, "prefill_tokens_per_s", "prefill tokens/s", r->prefill_rate, 1);
    sh_out_real(o, "usd_per_million_tokens", "USD/Mtoken", r->usd, 4);
    sh_out_text(o, "bound", "bound", r->bound);
    sh_out_text(o, "evidence", "evidence",
                r->evidence ? r->evidence
                : r->budget ? "what this budget costs in quality is not measured"
                            : "whole cache: nothing is evicted");
}

static void details(struct sh_out *o, const struct sh_capacity_row *r)
{
    sh_out_int(o, "ep", "ep", r->ep);
    sh_out_int(o, "gpus", "GPUs", (long long)r->tp * r->pp * r->ep);
    sh_out_text(o, "kv", "KV", r->kv);
    sh_out_text(o, "weights", "weights as", r->weights);
    sh_out_text(o, "budget", "budget", r->budget);
    const struct sh_quality_point *q = r->measured;
    sh_out_text(o, "measured", "measured", !q ? NULL : q->kind == SH_QUALITY_PPL ? "ppl_increase" : "kept_mass");
    sh_out_real(o, "measured_value", "measured value", q ? q->value : (double)NAN, 4);
    sh_out_text(o, "measured_policy", "policy", q ? q->policy : NULL);
    sh_out_text(o, "measured_knobs", "knobs", q ? q->knobs : NULL);
    sh_out_int(o, "page_tokens", "page", shown(r->page));
    sh_out_int(o, "parameters", "parameters", shown(r->parameters));
    sh_out_int(o, "memory_bytes", "memory", shown(r->memory));
    sh_out_real(o, "util", "util", r->util, 3);
    sh_out_int(o, "limit_bytes_per_gpu", "limit", shown(r->limit));
    sh_out_int(o, "overhead_bytes_per_gpu", "overhead", shown(r->overhead));
    sh_out_bool(o, "fits", "fits", r->fits);
    sh_out_text(o, "unfit_term", "does not fit", r->unfit);
    sh_out_int(o, "shortfall_bytes", "shortfall", shown(r->shortfall));
    sh_out_int(o, "model_max_length", "model's own length", r->max_pos);
    sh_out_int(o, "kv_fixed_bytes_per_sequence_per_gpu", "KV fixed", shown(r->fixed));
    sh_out_int(o, "kv_bytes_per_further_token_per_gpu", "KV a further token", shown(r->further));
    sh_out_int(o, "kv_prefix_bytes_per_gpu", "prefix", shown(r->prefix));
    sh_out_int(o, "max_budget_tokens", "max. budget", shown(r->max_budget));
    sh_out_int(o, "max_batch_beside_prompt", "beside a prompt", shown(r->beside_prompt));
    sh_out_int(o, "kv_uniform_bytes_per_sequence_per_gpu", "KV, uniform", shown(r->uniform));
    sh_out_int(o, "kv_scattered_bytes_per_sequence_per_gpu", "KV, scattered", shown(r->scattered));
    sh_out_real(o, "time_per_token_s", "s a token", r->decode_s, 5);
    sh_out_real(o, "time_to_first_token_s", "s to the first", r->prefill_s, 4);
    sh_out_text(o, "prefill_bound", "prefill bound", r->prefill_bound);
    sh_out_real(o, "cache_share_of_step_bytes", "cache share", r->cache_share, 3);
    sh_out_real(o, "expected_room_bytes_per_gpu_low", "room from", r->room_low, 0);
    sh_out_real(o, "expected_room_bytes_per_gpu_high", "to", r->room_high, 0);
    sh_out_int(o, "expected_max_batch_low", "batch from", shown(r->batch_low));
    sh_out_int(o, "expected_max_batch_high", "to", shown(r->batch_high));
}

static void text_row(struct sh_out *o, const struct sh_capacity_row *r, int has_evidence)
{
    char group[48], fits[64] = "";
    snprintf(group, sizeof group, "%d", r->tp * r->pp * r->ep);
    if (!r->fits)
        snprintf(fits, sizeof fits, "%s: %.2f GiB short", r->unfit, (double)r->shortfall / 0x1p30);
    sh_out_text(o, "model", "model", r->model);
    sh_out_text(o, "gpu", "GPU", r->gpu);
    sh_out_text(o, "gpus", "GPUs", group);
    sh_out_text(o, "kv", "KV", r->kv);
    sh_out_text(o, "budget", "budget", r->budget ? r->budget : "whole");
    sh_out_int(o, "length", "length", shown(r->length));
    sh_out_int(o, "batch", "batch", shown(r->batch));
    sh_out_real(o, "weights_gib", "weights GiB", (double)r->weights_bytes / 0x1p30, 2);
    sh_out_real(o, "room_gib", "room GiB", (double)r->room / 0x1p30, 2);
    sh_out_real(o, "sequence_gib", "a sequence GiB", (double)r->sequence / 0x1p30, 4);
    sh_out_int(o, "max_batch", "max. batch", shown(r->max_batch));
    sh_out_int(o, "max_length", "max. length", shown(r->max_length));
    sh_out_real(o, "decode", "decode tokens/s", r->decode_rate, 0);
    sh_out_real(o, "prefill", "prefill tokens/s", r->prefill_rate, 0);
    if (r->priced)
        sh_out_real(o, "usd", "USD/Mtoken", r->usd, 4);
    sh_out_text(o, "bound", "bound", r->fits ? r->bound : fits);
    if (has_evidence)
        sh_out_text(o, "evidence", "evidence", r->evidence ? r->evidence : r->budget ? "none" : "whole cache");
}

void sh_capacity_show_rows(struct sh_out *o, const struct sh_capacity_row *rows, int n, int is_text)
{
    int has_evidence = 0;
    for (int i = 0; i < n; i++)
        has_evidence |= rows[i].evidence != NULL;
    sh_out_list(o, "results", "capacity of one group; sizes are of one GPU of it");
    for (int i = 0; i < n; i++) {
        sh_out_item(o);
        if (is_text) {
            text_row(o, &rows[i], has_evidence);
            continue;
        }
        contract(o, &rows[i]);
        details(o, &rows[i]);
    }
}
