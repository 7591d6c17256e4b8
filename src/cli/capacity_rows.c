/* SPDX-License-Identifier: Apache-2.0 */
/* Results as rows (capacity_show.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/app/capacity/capacity_quality.h"
#include "src/base/mem.h"
#include "src/cli/capacity_show.h"

/* Larger numbers than JSON integers hold, more than any memory, are shown as the largest one. */
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
    sh_out_int(o, "kv_bytes_per_token_per_gpu", "KV per token", shown(r->token));
    sh_out_int(o, "kv_bytes_per_sequence_per_gpu", "KV per sequence", shown(r->sequence));
    sh_out_int(o, "max_batch", "max. batch", shown(r->max_batch));
    sh_out_int(o, "max_length", "max. length", shown(r->max_length));
    sh_out_real(o, "decode_tokens_per_s", "decode tokens/s", r->decode_rate, 1);
    sh_out_real(o, "prefill_tokens_per_s", "prefill tokens/s", r->prefill_rate, 1);
    sh_out_real(o, "usd_per_million_tokens", "USD/Mtoken", r->usd, 4);
    sh_out_text(o, "bound", "bound", r->bound);
    sh_out_text(o, "evidence", "evidence",
                r->evidence ? r->evidence
                : r->budget ? "quality under this budget was not measured"
                            : "full cache: nothing is evicted");
}

/* n below 0: not known. */
static void count(struct sh_out *o, const char *key, const char *label, int n)
{
    if (n < 0)
        sh_out_real(o, key, label, (double)NAN, 0);
    else
        sh_out_int(o, key, label, n);
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
    sh_out_real(o, "measured_bound", "its bound", q ? q->bound : (double)NAN, 4);
    count(o, "measured_sequences", "sequences", q && q->kind == SH_QUALITY_PPL ? q->sequences : -1);
    count(o, "measured_texts", "texts", q && q->on.texts ? q->on.texts : -1);
    sh_out_real(o, "measured_length", "tokens of a text", q ? q->length : (double)NAN, 1);
    sh_out_text(o, "measured_policy", "policy", q ? q->policy : NULL);
    sh_out_text(o, "measured_knobs", "knobs", q ? q->knobs : NULL);
    sh_out_text(o, "measured_text", "text", q && *q->on.name ? q->on.name : NULL);
    sh_out_int(o, "page_tokens", "page", shown(r->page));
    sh_out_int(o, "parameters", "parameters", shown(r->parameters));
    sh_out_int(o, "memory_bytes", "memory", shown(r->memory));
    sh_out_real(o, "util", "util", r->util, 3);
    sh_out_int(o, "limit_bytes_per_gpu", "limit", shown(r->limit));
    sh_out_int(o, "overhead_bytes_per_gpu", "overhead", shown(r->overhead));
    sh_out_bool(o, "fits", "fits", r->fits);
    sh_out_text(o, "unfit_term", "does not fit", r->unfit);
    sh_out_int(o, "shortfall_bytes", "shortfall", shown(r->shortfall));
    sh_out_int(o, "model_max_length", "model's context length", r->max_pos);
    sh_out_int(o, "kv_fixed_bytes_per_sequence_per_gpu", "KV fixed", shown(r->fixed));
    sh_out_int(o, "kv_bytes_per_further_token_per_gpu", "KV per further token", shown(r->further));
    sh_out_int(o, "kv_prefix_bytes_per_gpu", "prefix", shown(r->prefix));
    if (r->lora)
        sh_out_int(o, "lora_bytes_per_gpu", "adapters", shown(r->lora));
    sh_out_int(o, "max_budget_tokens", "max. budget", shown(r->max_budget));
    sh_out_int(o, "max_batch_with_prompt", "with a prompt", shown(r->with_prompt));
    if (r->uniform)
        sh_out_int(o, "kv_uniform_bytes_per_sequence_per_gpu", "KV, uniform", shown(r->uniform));
    else
        sh_out_text(o, "kv_uniform_bytes_per_sequence_per_gpu", "KV, uniform", NULL);
    sh_out_int(o, "kv_scattered_bytes_per_sequence_per_gpu", "KV, scattered", shown(r->scattered));
    sh_out_real(o, "time_per_token_s", "s per token", r->decode_s, 5);
    sh_out_real(o, "time_to_first_token_s", "s to the first", r->prefill_s, 4);
    sh_out_text(o, "prefill_bound", "prefill bound", r->prefill_bound);
    sh_out_real(o, "cache_share_of_step_bytes", "cache share", r->cache_share, 3);
    sh_out_real(o, "expected_room_bytes_per_gpu_low", "room from", r->room_low, 0);
    sh_out_real(o, "expected_room_bytes_per_gpu_high", "to", r->room_high, 0);
    sh_out_int(o, "expected_max_batch_low", "batch from", shown(r->batch_low));
    sh_out_int(o, "expected_max_batch_high", "to", shown(r->batch_high));
    if (r->engine)
        sh_capacity_show_expected(o, r);
}

void sh_capacity_show_expected(struct sh_out *o, const struct sh_capacity_row *r)
{
    sh_out_text(o, "engine", "engine", r->engine);
    sh_out_real(o, "expected_time_per_token_s", "expected s per token", r->expected_s, 5);
    sh_out_real(o, "expected_tokens_per_s", "expected tokens/s", r->expected_rate, 1);
    sh_out_real(o, "expected_time_to_first_token_s", "expected s to the first", r->expected_first_s, 4);
    if (!isnan(r->expected_rest_s))
        sh_out_real(o, "expected_time_to_first_token_after_prefix_s", "after the prefix", r->expected_rest_s, 4);
    sh_out_real(o, "expected_error", "+-", r->error, 3);
    sh_out_real(o, "expected_first_token_error", "+- to the first", r->first_error, 3);
    sh_out_int(o, "expected_error_runs", "of runs", r->error_runs);
}

/* What the budget of row i costs, as far as a result says, in few words: the result's policy, and its value. */
static void cost(struct sh_out *o, const struct sh_capacity_row *rows, int n, int i)
{
    const struct sh_quality_point *q = rows[i].measured, **all = xcalloc((size_t)n, sizeof *all);
    char *other = NULL, *policy = NULL, *line = NULL;
    int n_all = 0;
    for (int k = 0; k < n; k++)
        if (q && rows[k].measured && rows[k].measured->kind == q->kind)
            all[n_all++] = rows[k].measured;
    if (q) {
        policy = sh_quality_name(all, n_all, q);
        other = sh_capacity_same_model(q->model, rows[i].model)
                    ? NULL : xasprintf("measured on another model, %.60s: ", *q->model ? q->model : "unnamed");
        char *value = sh_quality_cost(q);
        line = xasprintf("%s%s", other ? other : "", value);
        free(value);
    }
    sh_out_text(o, "measured_with", "measured with", policy);
    sh_out_text(o, "cost", "cost", line ? line : rows[i].budget && !rows[i].evidence ? "not measured" : NULL);
    free(all);
    free(other);
    free(policy);
    free(line);
}

/* Columns that only people read: sizes in GiB, and where some rows were measured, what the budgets cost. */
static void sizes(struct sh_out *o, const struct sh_capacity_row *r)
{
    sh_out_real(o, "weights_gib", "weights GiB", (double)r->weights_bytes / 0x1p30, 2);
    sh_out_real(o, "room_gib", "room GiB", (double)r->room / 0x1p30, 2);
    sh_out_real(o, "sequence_gib", "sequence GiB", (double)r->sequence / 0x1p30, 4);
}

static void text_row(struct sh_out *o, const struct sh_capacity_row *r)
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
    sizes(o, r);
    sh_out_int(o, "max_batch", "max. batch", shown(r->max_batch));
    sh_out_int(o, "max_length", "max. length", shown(r->max_length));
    sh_out_real(o, "decode", "decode tokens/s", r->decode_rate, 0);
    sh_out_real(o, "prefill", "prefill tokens/s", r->prefill_rate, 0);
    if (r->engine)
        sh_out_real(o, "expected", "expected", r->expected_rate, 0);
    if (r->priced)
        sh_out_real(o, "usd", "USD/Mtoken", r->usd, 4);
    sh_out_text(o, "bound", "bound", r->fits ? r->bound : fits);
}

void sh_capacity_show_rows(struct sh_out *o, const struct sh_capacity_row *rows, int n, enum sh_capacity_shown how)
{
    int is_measured = 0, has_evidence = 0;
    for (int i = 0; i < n; i++) {
        is_measured |= rows[i].measured != NULL;
        has_evidence |= rows[i].evidence && !rows[i].measured;
    }
    sh_out_list(o, "results", "capacity of one group of GPUs; sizes are per GPU");
    for (int i = 0; i < n; i++) {
        sh_out_item(o);
        if (how == SH_CAPACITY_TABLE) {
            text_row(o, &rows[i]);
        } else {
            contract(o, &rows[i]);
            details(o, &rows[i]);
        }
        if (how == SH_CAPACITY_NAMED)
            sizes(o, &rows[i]);
        if (how == SH_CAPACITY_NAMED || (how == SH_CAPACITY_TABLE && is_measured))
            cost(o, rows, n, i);
        if (how == SH_CAPACITY_TABLE && has_evidence)
            sh_out_text(o, "evidence", "evidence", rows[i].evidence ? rows[i].evidence
                                                   : rows[i].budget ? "none" : "full cache");
    }
}
