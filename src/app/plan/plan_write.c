/* SPDX-License-Identifier: Apache-2.0 */
/* Writing of plan_file.h: a line for each field, and for each layer of budgets. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/file.h"
#include "src/base/mem.h"
#include "src/app/plan/plan_file.h"

static json_t *real_or_null(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

/* Names of folders can have any encoding; text that is not UTF-8 is left out. */
static json_t *text_of(const char *text)
{
    json_t *v = json_string(text);
    return v ? v : json_string("");
}

static json_t *spec_of(const char *name, const char *knobs)
{
    return json_pack("{s:s, s:s}", "name", name, "knobs", knobs);
}

static json_t *evidence_of(const struct sh_plan *p)
{
    json_t *all = json_array();
    for (int i = 0; i < p->n_evidence; i++) {
        const struct sh_plan_evidence *v = &p->evidence[i];
        json_t *one = json_pack("{s:o, s:o, s:o, s:o, s:i, s:I, s:i, s:o, s:o}", "metric", text_of(v->metric), "value",
                                real_or_null(v->value), "low", real_or_null(v->low), "high", real_or_null(v->high),
                                "sequences", v->sequences, "tokens", (json_int_t)v->tokens, "run", v->run, "store",
                                text_of(v->store), "program", text_of(v->program));
        if (*v->text)
            json_object_set_new(one, "text", text_of(v->text));
        if (*v->text_hash)
            json_object_set_new(one, "text_hash", text_of(v->text_hash));
        if (v->confidence > 0)
            json_object_set_new(one, "confidence", json_real(v->confidence));
        json_array_append_new(all, one);
    }
    return all;
}

/* Those of the heads of each layer, as tokens or as shares of the length. */
static json_t *budgets_of(const struct sh_plan *p, int as_shares)
{
    json_t *all = json_array();
    for (int l = 0; l < p->n_layer; l++) {
        json_t *row = json_array();
        for (int h = 0; h < p->heads[l]; h++) {
            int tokens = p->budget[l * p->n_kv_head + h];
            json_array_append_new(row, as_shares ? json_real((double)tokens / p->n_token) : json_integer(tokens));
        }
        json_array_append_new(all, row);
    }
    return all;
}

static json_t *root_of(const struct sh_plan *p)
{
    char knobs[SH_POLICY_TEXT];
    double mean = sh_plan_mean(p);
    json_t *root = json_object();
    json_object_set_new(root, "format", json_string("shears-plan"));
    json_object_set_new(root, "version", json_integer(SH_PLAN_VERSION));
    json_object_set_new(root, "model", json_pack("{s:o, s:o, s:o, s:i, s:i, s:i, s:i}", "name", text_of(p->model),
                        "weights", text_of(p->weights), "fingerprint", text_of(p->fingerprint), "n_layer", p->n_layer,
                        "n_head", p->n_head, "n_kv_head", p->n_kv_head, "d_head", p->d_head));
    json_object_set_new(root, "policy", spec_of(p->policy.policy->name, sh_policy_knobs(&p->policy, knobs)));
    json_object_set_new(root, "allocator",
                        spec_of(p->allocator.allocator->name, sh_allocator_knobs(&p->allocator, knobs)));
    json_object_set_new(root, "prefill", json_integer(p->prefill));
    json_object_set_new(root, "rows", json_string(p->recorded_rows ? "recorded" : "renormalised"));
    json_object_set_new(root, "n_token", json_integer(p->n_token));
    json_object_set_new(root, "total_tokens", json_integer(sh_plan_total(p)));
    json_object_set_new(root, "mean_tokens", json_real(mean));
    json_object_set_new(root, "share", json_real(mean / p->n_token));
    json_object_set_new(root, "target", *p->target_metric
        ? json_pack("{s:s, s:o}", "metric", p->target_metric, "value", real_or_null(p->target)) : json_null());
    if (*p->status)
        json_object_set_new(root, "status", json_string(p->status));
    json_object_set_new(root, "evidence", evidence_of(p));
    json_object_set_new(root, "budgets", budgets_of(p, 0));
    json_object_set_new(root, "shares", budgets_of(p, 1));
    return root;
}

static void write_value(FILE *to, const json_t *v)
{
    const size_t flags = JSON_ENCODE_ANY | JSON_REAL_PRECISION(12);
    size_t n = json_is_array(v) ? json_array_size(v) : 0;
    if (!n) {
        json_dumpf(v, to, flags);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        fputs(i ? ",\n    " : "[\n    ", to);
        json_dumpf(json_array_get(v, i), to, flags);
    }
    fputs("\n  ]", to);
}

char *sh_plan_text(const struct sh_plan *p)
{
    char *text = NULL;
    size_t bytes = 0;
    const char *key;
    FILE *to = xmemstream(&text, &bytes);
    json_t *root = root_of(p), *v;
    const char *before = "{\n";
    json_object_foreach(root, key, v) {
        fprintf(to, "%s  \"%s\": ", before, key);
        write_value(to, v);
        before = ",\n";
    }
    fputs("\n}\n", to);
    json_decref(root);
    xmemclose(to, &text, &bytes);
    return text;
}

int sh_plan_write(const struct sh_plan *p, const char *path, struct sh_err *e)
{
    struct sh_file *f = sh_file_begin(path, e);
    if (!f)
        return -1;
    char *text = sh_plan_text(p);
    fputs(text, sh_file_stream(f));
    free(text);
    return sh_file_end(f, 0, e);
}
