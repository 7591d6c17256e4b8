/* SPDX-License-Identifier: Apache-2.0 */
/* See serving_runs.h: the files of vLLM's and SGLang's benchmarks and of GuideLLM. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/simulate/workload.h"
#include "src/app/calibrate/serving_runs.h"
#include "src/base/json_kind.h"
#include "src/base/json_python.h"

/* A number at a path of keys separated by dots; NaN if there is none. */
static double number(const json_t *o, const char *path)
{
    char key[64];
    for (;;) {
        size_t n = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)n, path);
        o = json_object_get(o, key);
        if (!path[n])
            return json_is_number(o) ? json_number_value(o) : (double)NAN;
        path += n + 1;
    }
}

/* The first of several paths that has a number. */
static double first_of(const json_t *o, const char *const *paths)
{
    double x = NAN;
    for (int i = 0; paths[i] && isnan(x); i++)
        x = number(o, paths[i]);
    return x;
}

static int whole(const char *what, double x, double most, int *to, struct sh_err *e)
{
    if (!(x >= 1 && x <= most))
        return isnan(x) ? sh_fail(e, "%s is missing or not a number", what)
                        : sh_fail(e, "%s: found %g, expected 1 to %g", what, x, most);
    *to = (int)(x + 0.5);
    return 0;
}

static int milliseconds(const char *what, double x, double *to, struct sh_err *e)
{
    if (!(x > 0) || !isfinite(x))
        return isnan(x) ? sh_fail(e, "%s is missing or not a number", what)
                        : sh_fail(e, "%s: found %g, expected more than 0", what, x);
    *to = x / 1000;
    return 0;
}

/* The smallest and largest of a list of lengths, if it is there; else the mean. */
static int lengths(const json_t *o, const char *list, const char *total, double n, int *low, int *high,
                   struct sh_err *e)
{
    const json_t *a = json_object_get(o, list), *v;
    size_t i;
    double least = INFINITY, most = 0;
    json_array_foreach(a, i, v) {
        double x = json_is_number(v) ? json_number_value(v) : 0;
        if (x >= 1) {                   /* a request that failed has none */
            least = fmin(least, x);
            most = fmax(most, x);
        }
    }
    const char *name = most >= 1 ? list : total;
    if (!(most >= 1))
        least = most = number(o, total) / n;
    return whole(name, least, SH_REQUEST_TOKENS / 2, low, e) || whole(name, most, SH_REQUEST_TOKENS / 2, high, e);
}

/* SGLang's random prompts and answers have from ratio * length to length tokens, all equally likely, unless their mean,
 * total / n, says that these settings are not what was sent. */
static void random_lengths(const json_t *o, const char *length, const char *total, double n, int *low, int *high)
{
    const char *set = json_string_value(json_object_get(o, "dataset_name"));
    double most = number(o, length), ratio = number(o, "random_range_ratio"), mean = number(o, total) / n;
    double least = isnan(ratio) ? (double)NAN : fmax(floor(most * ratio), 1);
    if (set && !strncmp(set, "random", 6) && most >= least && most <= SH_REQUEST_TOKENS / 2 && mean >= least &&
        mean <= most) {
        *low = (int)least;
        *high = (int)most;
    }
}

/* vLLM and SGLang have the same ancestor and keys. Lists of lengths are there only with --save-detailed and
 * --output-details. */
static int bench_serving(const json_t *o, const struct sh_serving_run *server, struct sh_serving_runs *out,
                         struct sh_err *e)
{
    struct sh_serving_run r = *server;
    double done = number(o, "completed");
    if (whole("\"max_concurrency\"", number(o, "max_concurrency"), 100000, &r.concurrency, e))
        return sh_hint(e, "only a fixed number of clients can be compared: measure with --max-concurrency");
    if (whole("\"completed\"", done, 1e9, &r.requests, e) ||
        lengths(o, "input_lens", "total_input_tokens", done, &r.prompt_low, &r.prompt_high, e) ||
        lengths(o, "output_lens", "total_output_tokens", done, &r.output_low, &r.output_high, e) ||
        milliseconds("\"mean_ttft_ms\"", number(o, "mean_ttft_ms"), &r.ttft_s, e) ||
        milliseconds("\"mean_tpot_ms\"", number(o, "mean_tpot_ms"), &r.tpot_s, e))
        return -1;
    if (!json_is_array(json_object_get(o, "input_lens"))) {
        random_lengths(o, "random_input_len", "total_input_tokens", done, &r.prompt_low, &r.prompt_high);
        random_lengths(o, "random_output_len", "total_output_tokens", done, &r.output_low, &r.output_high);
    }
    if (sh_serving_check(&r, e))
        return -1;
    sh_serving_append(out, &r);
    return 0;
}

/* Clients of a strategy; releases of GuideLLM put it, and its kind, into different places. NaN: it has no fixed
 * number. */
static double clients(const json_t *o)
{
    static const char *const places[] = {"config", "args", "scheduler"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const json_t *strategy = json_object_get(json_object_get(o, places[i]), "strategy");
        const char *kind = json_string_value(json_object_get(strategy, "type_"));
        kind = kind ? kind : json_string_value(json_object_get(strategy, "kind"));
        if (kind && !strcmp(kind, "synchronous"))
            return 1;
        if (strategy)
            return number(strategy, "streams");
    }
    return (double)NAN;
}

static int guidellm(const json_t *o, const struct sh_serving_run *server, struct sh_serving_runs *out,
                    struct sh_err *e)
{
    static const char *const count[] = {"metrics.request_totals.successful",
                                        "scheduler_metrics.requests_made.successful",
                                        "run_stats.requests_made.successful", NULL};
    static const char *const names[] = {"prompt", "output"};
    struct sh_serving_run r = *server;
    int *const to[] = {&r.prompt_low, &r.prompt_high, &r.output_low, &r.output_high};
    if (whole("the strategy's \"streams\"", clients(o), 100000, &r.concurrency, e))
        return sh_hint(e, "only a fixed number of clients can be compared: measure with --rate-type concurrent");
    double requests = first_of(o, count);
    r.requests = requests >= 1 && requests <= 1e9 ? (int)requests : 0;
    for (int i = 0; i < 4; i++) {
        char path[64];
        snprintf(path, sizeof path, "metrics.%s_token_count.successful.%s", names[i / 2], i % 2 ? "max" : "min");
        if (whole(path, number(o, path), SH_REQUEST_TOKENS / 2, to[i], e))
            return -1;
    }
    if (milliseconds("time_to_first_token_ms", number(o, "metrics.time_to_first_token_ms.successful.mean"), &r.ttft_s,
                     e) ||
        milliseconds("inter_token_latency_ms", number(o, "metrics.inter_token_latency_ms.successful.mean"), &r.tpot_s,
                     e) ||
        sh_serving_check(&r, e))
        return -1;
    sh_serving_append(out, &r);
    return 0;
}

static int object(const json_t *o, const struct sh_serving_run *server, struct sh_serving_runs *out,
                  struct sh_err *e)
{
    const json_t *all = json_object_get(o, "benchmarks"), *one;
    size_t i;
    if (json_object_get(o, "mean_ttft_ms"))
        return bench_serving(o, server, out, e);
    if (!json_is_array(all))
        return sh_fail(e, "found neither \"mean_ttft_ms\", as vLLM and SGLang write it, nor \"benchmarks\", as "
                       "GuideLLM does");
    json_array_foreach(all, i, one)
        if (guidellm(one, server, out, e))
            return sh_err_prefix(e, "benchmark %zu", i + 1);
    return 0;
}

/* An object, or a list of them, as sweeps of vLLM write. */
static int one_value(const json_t *o, const struct sh_serving_run *server, struct sh_serving_runs *out,
                     struct sh_err *e)
{
    const json_t *one;
    size_t i;
    if (json_is_object(o))
        return object(o, server, out, e);
    if (!json_is_array(o))
        return sh_fail(e, "found %s, expected an object", sh_json_kind(o));
    json_array_foreach(o, i, one)
        if (json_is_object(one) ? object(one, server, out, e)
                                : sh_fail(e, "found %s, expected an object", sh_json_kind(one)))
            return sh_err_prefix(e, "element %zu", i + 1);
    return 0;
}

/* One value, or one in each line. */
static int values(const char *path, const char *text, size_t bytes, const struct sh_serving_run *server,
                  struct sh_serving_runs *out, struct sh_err *e)
{
    size_t at = 0;
    for (int k = 1; ; k++) {
        json_error_t why;
        while (at < bytes && strchr(" \t\r\n", text[at]))
            at++;
        if (at == bytes)
            return 0;
        json_t *o = json_loadb(text + at, bytes - at, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &why);
        if (!o)
            return sh_fail(e, "%s: value %d: line %d: %s", path, k, why.line, why.text);
        at += (size_t)why.position;
        int bad = one_value(o, server, out, e);
        json_decref(o);
        if (bad)
            return sh_err_prefix(e, "%s: value %d", path, k);
    }
}

/* SGLang writes its request rate as Infinity. */
int sh_serving_read_json(const char *path, const char *text, size_t bytes, const struct sh_serving_run *server,
                         struct sh_serving_runs *out, struct sh_err *e)
{
    size_t n;
    char *plain = sh_json_plain(text, bytes, &n);
    int bad = values(path, plain, n, server, out, e);
    free(plain);
    return bad;
}
