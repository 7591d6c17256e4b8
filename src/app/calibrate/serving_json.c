/* SPDX-License-Identifier: Apache-2.0 */
/* See serving_runs.h: the files of vLLM's and SGLang's benchmarks and of GuideLLM. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/simulate/workload.h"
#include "src/app/calibrate/serving_runs.h"
#include "src/base/json_kind.h"

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
    if (!json_is_array(a) || !most)
        least = most = number(o, total) / n;
    return whole(total, least, SH_REQUEST_TOKENS / 2, low, e) || whole(total, most, SH_REQUEST_TOKENS / 2, high, e);
}

/* vLLM and SGLang have the same ancestor and keys. */
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
        milliseconds("\"mean_tpot_ms\"", number(o, "mean_tpot_ms"), &r.tpot_s, e) || sh_serving_check(&r, e))
        return -1;
    sh_serving_append(out, &r);
    return 0;
}

static int guidellm(const json_t *o, const struct sh_serving_run *server, struct sh_serving_runs *out,
                    struct sh_err *e)
{
    static const char *const streams[] = {"args.strategy.streams", "config.strategy.streams",
                                          "scheduler.strategy.streams", NULL};
    static const char *const tpot[] = {"metrics.inter_token_latency_ms.successful.mean",
                                       "metrics.time_per_output_token_ms.successful.mean", NULL};
    static const char *const count[] = {"metrics.request_totals.successful", "request_totals.successful", NULL};
    static const char *const names[] = {"prompt", "output"};
    struct sh_serving_run r = *server;
    int *const to[] = {&r.prompt_low, &r.prompt_high, &r.output_low, &r.output_high};
    if (whole("the strategy's \"streams\"", first_of(o, streams), 100000, &r.concurrency, e))
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
        milliseconds("inter_token_latency_ms", first_of(o, tpot), &r.tpot_s, e) || sh_serving_check(&r, e))
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

/* One value, or one in each line. */
int sh_serving_read_json(const char *path, const char *text, size_t bytes, const struct sh_serving_run *server,
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
        int bad = json_is_object(o) ? object(o, server, out, e)
                                    : sh_fail(e, "found %s, expected an object", sh_json_kind(o));
        json_decref(o);
        if (bad)
            return sh_err_prefix(e, "%s: value %d", path, k);
    }
}
