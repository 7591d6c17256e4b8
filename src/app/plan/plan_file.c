/* SPDX-License-Identifier: Apache-2.0 */
/* See plan_file.h: reading and validation. */
#include "src/app/plan/plan_file.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/file.h"
#include "src/base/json_kind.h"
#include "src/base/mem.h"

enum { MOST_BYTES = 64 << 20, MOST_TOKENS = 1 << 22, MOST_LAYERS = 4096, MOST_HEADS = 4096, MOST_D_HEAD = 1 << 16,
       MOST_PLACES = 1 << 14, MOST_ABSENT = 64 };

void sh_plan_clear(struct sh_plan *p)
{
    free(p->heads);
    free(p->budget);
    *p = (struct sh_plan){0};
}

long long sh_plan_total(const struct sh_plan *p)
{
    long long total = 0;
    for (int l = 0; l < p->n_layer; l++)
        for (int h = 0; h < p->heads[l]; h++)
            total += p->budget[l * p->n_kv_head + h];
    return total;
}

static int count_heads(const struct sh_plan *p)
{
    int n = 0;
    for (int l = 0; l < p->n_layer; l++)
        n += p->heads[l];
    return n;
}

double sh_plan_mean(const struct sh_plan *p)
{
    return (double)sh_plan_total(p) / count_heads(p);
}

uint64_t sh_plan_hash(const struct sh_plan *p)
{
    uint64_t h = (0xcbf29ce484222325u ^ (uint64_t)p->n_token) * 0x100000001b3u;
    for (int l = 0; l < p->n_layer; l++)
        for (int i = 0; i < p->heads[l]; i++)
            h = (h ^ (uint64_t)p->budget[l * p->n_kv_head + i]) * 0x100000001b3u;
    return h;
}

int sh_plan_scale(int tokens, int from, int to, int least)
{
    int n = (int)(((long long)tokens * to * 2 + from) / (2LL * from));
    n = n < least ? least : n;
    return n < to ? n : to;
}

int sh_plan_tokens(const struct sh_plan *p, int layer, int head, int n_token)
{
    return sh_plan_scale(p->budget[layer * p->n_kv_head + head], p->n_token, n_token,
                         sh_policy_least_budget(&p->policy));
}

void sh_plan_widen(struct sh_plan *p, enum sh_plan_sizes sizes)
{
    int all = 0;
    for (int pass = 0; pass < 2 && sizes != SH_SIZE_OF_HEAD; pass++)
        for (int l = 0; l < p->n_layer; l++) {
            int *budget = &p->budget[l * p->n_kv_head], most = 0;
            for (int h = 0; h < p->heads[l]; h++)
                most = budget[h] > most ? budget[h] : most;
            all = most > all ? most : all;
            for (int h = 0; h < p->heads[l] && pass; h++)
                budget[h] = sizes == SH_SIZE_OF_ALL ? all : most;
        }
}

static int take_text(const json_t *o, const char *key, char *to, size_t bytes, struct sh_err *e)
{
    const json_t *v = json_object_get(o, key);
    size_t n = json_string_length(v);
    if (!json_is_string(v))
        return sh_fail(e, "\"%s\": found %s, expected a string", key, sh_json_kind(v));
    if (n >= bytes)
        return sh_fail(e, "\"%s\": found %zu bytes, expected at most %zu", key, n, bytes - 1);
    memcpy(to, json_string_value(v), n + 1);
    return 0;
}

static int take_whole(const json_t *o, const char *key, long long min, long long max, long long *to, struct sh_err *e)
{
    const json_t *v = json_object_get(o, key);
    if (!json_is_integer(v))
        return sh_fail(e, "\"%s\": found %s, expected a whole number", key, sh_json_kind(v));
    if (json_integer_value(v) < min || json_integer_value(v) > max)
        return sh_fail(e, "\"%s\": found %lld, expected %lld to %lld", key, (long long)json_integer_value(v), min, max);
    *to = json_integer_value(v);
    return 0;
}

static int take_int(const json_t *o, const char *key, int min, int max, int *to, struct sh_err *e)
{
    long long x;
    if (take_whole(o, key, min, max, &x, e))
        return -1;
    *to = (int)x;
    return 0;
}

/* A number, or null if it is unknown. */
static int take_real(const json_t *o, const char *key, int may_be_null, double *to, struct sh_err *e)
{
    const json_t *v = json_object_get(o, key);
    if (json_is_null(v) && may_be_null) {
        *to = (double)NAN;
        return 0;
    }
    if (!json_is_number(v) || !isfinite(json_number_value(v)))
        return sh_fail(e, "\"%s\": found %s, expected a number", key, sh_json_kind(v));
    *to = json_number_value(v);
    return 0;
}

static const json_t *object_in(const json_t *o, const char *key, struct sh_err *e)
{
    const json_t *v = json_object_get(o, key);
    if (json_is_object(v))
        return v;
    sh_fail(e, "\"%s\": found %s, expected an object", key, sh_json_kind(v));
    return NULL;
}

static int read_model(const json_t *root, struct sh_plan *p, struct sh_err *e)
{
    const json_t *o = object_in(root, "model", e);
    if (!o || take_text(o, "name", p->model, sizeof p->model, e) ||
        take_text(o, "weights", p->weights, sizeof p->weights, e) ||
        take_text(o, "fingerprint", p->fingerprint, sizeof p->fingerprint, e) ||
        take_int(o, "n_layer", 1, MOST_LAYERS, &p->n_layer, e) || take_int(o, "n_head", 1, MOST_HEADS, &p->n_head, e) ||
        take_int(o, "n_kv_head", 1, MOST_HEADS, &p->n_kv_head, e) ||
        take_int(o, "d_head", 1, MOST_D_HEAD, &p->d_head, e))
        return -1;
    if (p->n_head % p->n_kv_head)
        return sh_fail(e, "\"model\": found n_head %d and n_kv_head %d: n_head must be a multiple of n_kv_head",
                       p->n_head, p->n_kv_head);
    return 0;
}

/* "name" and "knobs" as the command line takes them: "h2o:recent=5". */
static int read_spec(const json_t *root, const char *key, char *text, size_t bytes, struct sh_err *e)
{
    char name[64], knobs[SH_POLICY_TEXT];
    const json_t *o = object_in(root, key, e);
    if (!o || take_text(o, "name", name, sizeof name, e) || take_text(o, "knobs", knobs, sizeof knobs, e))
        return -1;
    snprintf(text, bytes, "%s%s%s", name, *knobs ? ":" : "", knobs);
    return 0;
}

static int read_rules(const json_t *root, struct sh_plan *p, struct sh_err *e)
{
    char text[64 + SH_POLICY_TEXT], rows[16];
    int bad = read_spec(root, "policy", text, sizeof text, e) || sh_policy_parse(text, &p->policy, e) ||
              read_spec(root, "allocator", text, sizeof text, e) || sh_allocator_parse(text, &p->allocator, e) ||
              take_int(root, "prefill", 0, MOST_TOKENS, &p->prefill, e) ||
              take_int(root, "n_token", 1, MOST_TOKENS, &p->n_token, e) ||
              take_text(root, "rows", rows, sizeof rows, e);
    if (bad)
        return -1;
    p->recorded_rows = !strcmp(rows, "recorded");
    if (!p->recorded_rows && strcmp(rows, "renormalised"))
        return sh_fail(e, "\"rows\": found \"%s\", expected renormalised or recorded", rows);
    return 0;
}

/* The array of a layer's numbers, one for each head that it has. */
static const json_t *row_of(const json_t *root, const char *key, int layer, const struct sh_plan *p, struct sh_err *e)
{
    const json_t *all = json_object_get(root, key), *row = json_array_get(all, (size_t)layer);
    if (json_array_size(all) != (size_t)p->n_layer)
        sh_fail(e, "\"%s\": found %zu layers, expected the model's %d", key, json_array_size(all), p->n_layer);
    else if (!json_is_array(row))
        sh_fail(e, "\"%s\": layer %d: found %s, expected the budgets of its heads", key, layer, sh_json_kind(row));
    else if (json_array_size(row) > (size_t)p->n_kv_head)
        sh_fail(e, "\"%s\": layer %d: found %zu heads, expected at most the model's %d KV heads", key, layer,
                json_array_size(row), p->n_kv_head);
    else
        return row;
    return NULL;
}

static int read_budget(const json_t *tokens, const json_t *share, int layer, int head, struct sh_plan *p,
                       struct sh_err *e)
{
    int least = sh_policy_least_budget(&p->policy);
    const json_t *v = json_array_get(tokens, (size_t)head);
    long long n = json_integer_value(v);
    least = least < p->n_token ? least : p->n_token;
    if (!json_is_integer(v) || n < least || n > p->n_token)
        return sh_fail(e, "\"budgets\": layer %d, head %d: expected a whole number from %d to %d", layer, head, least,
                       p->n_token);
    v = json_array_get(share, (size_t)head);
    if (!json_is_number(v) || !(fabs(json_number_value(v) - (double)n / p->n_token) < 1e-6))
        return sh_fail(e, "\"shares\": layer %d, head %d: does not match its budget of %lld of %d tokens", layer, head,
                       n, p->n_token);
    p->budget[layer * p->n_kv_head + head] = (int)n;
    return 0;
}

static int read_layer(const json_t *tokens, const json_t *share, int layer, struct sh_plan *p, struct sh_err *e)
{
    if (!tokens || !share)
        return -1;
    p->heads[layer] = (int)json_array_size(tokens);
    if (json_array_size(share) != json_array_size(tokens))
        return sh_fail(e, "\"shares\": layer %d: found %zu heads, expected %d as in its budgets", layer,
                       json_array_size(share), p->heads[layer]);
    for (int h = 0; h < p->heads[layer]; h++)
        if (read_budget(tokens, share, layer, h, p, e))
            return -1;
    return 0;
}

/* Heads that a layer does not have get the mean. */
static void fill_absent(struct sh_plan *p)
{
    int mean = (int)floor(sh_plan_mean(p) + 0.5);
    for (int l = 0; l < p->n_layer; l++)
        for (int h = p->heads[l]; h < p->n_kv_head; h++)
            p->budget[l * p->n_kv_head + h] = mean;
}

static int read_budgets(const json_t *root, struct sh_plan *p, struct sh_err *e)
{
    long long total;
    if (take_whole(root, "total_tokens", 1, INT64_MAX, &total, e))
        return -1;
    if (!row_of(root, "budgets", 0, p, e))              /* before memory is allocated for them */
        return -1;
    p->heads = xcalloc((size_t)p->n_layer, sizeof *p->heads);
    p->budget = xcalloc((size_t)p->n_layer * (size_t)p->n_kv_head, sizeof *p->budget);
    for (int l = 0; l < p->n_layer; l++)
        if (read_layer(row_of(root, "budgets", l, p, e), row_of(root, "shares", l, p, e), l, p, e))
            return -1;
    int heads = count_heads(p), places = p->n_layer * p->n_kv_head;
    if (!heads)
        return sh_fail(e, "\"budgets\": found no head, expected at least one");
    if (places > MOST_PLACES && places / MOST_ABSENT > heads)   /* figures have a place for each */
        return sh_fail(e, "\"budgets\": found %d heads, expected at least one in %d of the model's %d layers of %d KV "
                       "heads", heads, MOST_ABSENT, p->n_layer, p->n_kv_head);
    fill_absent(p);
    if (total != sh_plan_total(p))
        return sh_fail(e, "\"total_tokens\": found %lld, expected the sum of the budgets, %lld", total,
                       sh_plan_total(p));
    return 0;
}

static int read_evidence(const json_t *root, struct sh_plan *p, struct sh_err *e)
{
    const json_t *all = json_object_get(root, "evidence");
    size_t n = json_array_size(all);
    if (!json_is_array(all) || n > SH_PLAN_EVIDENCE)
        return sh_fail(e, "\"evidence\": expected a list of at most %d measurements", SH_PLAN_EVIDENCE);
    for (size_t i = 0; i < n; i++) {
        struct sh_plan_evidence *v = &p->evidence[i];
        const json_t *o = json_array_get(all, i);
        if (take_text(o, "metric", v->metric, sizeof v->metric, e) || take_real(o, "value", 0, &v->value, e) ||
            take_real(o, "low", 1, &v->low, e) || take_real(o, "high", 1, &v->high, e) ||
            take_int(o, "sequences", 0, INT32_MAX, &v->sequences, e) ||
            take_whole(o, "tokens", 0, INT64_MAX, &v->tokens, e) || take_int(o, "run", -1, INT32_MAX, &v->run, e) ||
            take_text(o, "store", v->store, sizeof v->store, e) ||
            take_text(o, "program", v->program, sizeof v->program, e) ||
            (json_object_get(o, "text") && take_text(o, "text", v->text, sizeof v->text, e)) ||
            (json_object_get(o, "text_hash") && take_text(o, "text_hash", v->text_hash, sizeof v->text_hash, e)) ||
            (json_object_get(o, "confidence") && take_real(o, "confidence", 0, &v->confidence, e)))
            return sh_err_prefix(e, "\"evidence\" %zu", i);
    }
    p->n_evidence = (int)n;
    return 0;
}

static int read_target(const json_t *root, struct sh_plan *p, struct sh_err *e)
{
    const json_t *o = json_object_get(root, "target");
    if (json_object_get(root, "status") && take_text(root, "status", p->status, sizeof p->status, e))
        return -1;
    if (*p->status && strcmp(p->status, "met") && strcmp(p->status, "not_shown"))
        return sh_fail(e, "\"status\": found \"%s\", expected met or not_shown", p->status);
    if (json_is_null(o))
        return 0;
    o = object_in(root, "target", e);
    return !o || take_text(o, "metric", p->target_metric, sizeof p->target_metric, e) ||
           take_real(o, "value", 0, &p->target, e) ? -1 : 0;
}

static int read_root(const json_t *root, struct sh_plan *p, struct sh_err *e)
{
    char format[32];
    int version;
    if (!json_is_object(root) || take_text(root, "format", format, sizeof format, e) || strcmp(format, "shears-plan"))
        return sh_fail(e, "not a plan: \"format\" is not \"shears-plan\"");
    if (take_int(root, "version", 1, INT32_MAX, &version, e))
        return -1;
    if (version != SH_PLAN_VERSION)
        return sh_fail(e, "found plan version %d, expected %d", version, SH_PLAN_VERSION);
    return read_model(root, p, e) || read_rules(root, p, e) || read_budgets(root, p, e) || read_target(root, p, e) ||
           read_evidence(root, p, e) ? -1 : 0;
}

int sh_plan_read(struct sh_plan *out, const char *path, struct sh_err *e)
{
    json_error_t where;
    struct sh_plan p = {0};
    size_t n;
    char *text = sh_file_read(path, MOST_BYTES, &n, e);
    if (!text)
        return -1;
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &where);
    free(text);
    int bad = root ? read_root(root, &p, e) : sh_fail(e, "expected a plan written by shears plan; line %d: not valid "
                                                      "JSON: %s", where.line, where.text);
    json_decref(root);
    if (bad) {
        e->status = SH_FAILED;          /* an error in the file, even if a name in it was parsed as if typed */
        sh_plan_clear(&p);
        return sh_err_prefix(e, "%s", path);
    }
    *out = p;
    return 0;
}

int sh_plan_check_model(const struct sh_plan *p, const char *path, const char *model, const char *fingerprint,
                        int n_layer, int n_kv_head, const int *heads, struct sh_err *e)
{
    if (p->n_layer != n_layer || p->n_kv_head != n_kv_head)
        return sh_fail(e, "%s: the plan is for %s (%d layers of %d KV heads), but %s has %d layers of %d",
                       path, p->model, p->n_layer, p->n_kv_head, model, n_layer, n_kv_head);
    if (fingerprint && *fingerprint && strcmp(p->fingerprint, fingerprint))
        return sh_fail(e, "%s: the plan is for %s (fingerprint %s), but %s is a different model (fingerprint %s)", path,
                       p->model, p->fingerprint, model, fingerprint);
    for (int l = 0; l < n_layer && heads; l++)
        if (p->heads[l] != heads[l])
            return sh_fail(e, "%s: the plan has budgets for %d KV heads of layer %d, but %s has %d there", path,
                           p->heads[l], l, model, heads[l]);
    return 0;
}
