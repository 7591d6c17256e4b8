/* SPDX-License-Identifier: Apache-2.0 */
/* Benchmarks of real servers, each with a fixed number of clients, and their mean times. Read from
 *
 *     a table        columns separated by tabs, named in the first line: model gpu engine concurrency isl osl tpot_ms,
 *                    and, if they are there, id version weights attn kv isl_min osl_min tp ep dp pp chunk recv client
 *                    ttft_ms; "-" is "not known"; others are ignored. client "unknown": ttft_ms is not counted
 *     vLLM           the JSON of bench serve --save-result, with --max-concurrency
 *     SGLang         the lines of bench_serving --output-file, with --max-concurrency
 *     GuideLLM       the JSON of a concurrent run
 *
 * The JSON files do not say on which server they were measured: options do. */
#ifndef SH_APP_CALIBRATE_SERVING_RUNS_H
#define SH_APP_CALIBRATE_SERVING_RUNS_H

#include "planner/clock/engine.h"
#include "src/base/err.h"

enum { SH_RUN_WORD = 160, SH_RUNS = 100000 };

struct sh_serving_run {
    char id[SH_RUN_WORD], model[SH_RUN_WORD], gpu[SH_RUN_WORD], weights[48], attention[48], kv[48], version[48];
    enum sh_scheduler engine;
    int prompt_low, prompt_high, output_low, output_high;
    int concurrency, requests, tp, ep, dp, pp, chunk, poll;     /* requests, chunk, poll 0: not known */
    double ttft_s, tpot_s;              /* ttft NaN: not known                                    */
};

struct sh_serving_runs {
    struct sh_serving_run *run;         /* [n]; owned                                             */
    int n;
    char *folder;                       /* folder of the file, where configs/MODEL.json may be; owned */
};

/* `server`: what a JSON file does not say; what a table says takes precedence. Appends to `out`. Errors name file and
 * line. */
int sh_serving_read(const char *path, const struct sh_serving_run *server, struct sh_serving_runs *out,
                    struct sh_err *e);
void sh_serving_runs_clear(struct sh_serving_runs *r);

/* serving_json.c: a file of one of the three programs. */
int sh_serving_read_json(const char *path, const char *text, size_t bytes, const struct sh_serving_run *server,
                         struct sh_serving_runs *out, struct sh_err *e);
void sh_serving_append(struct sh_serving_runs *out, const struct sh_serving_run *run);

/* Checks that a simulation accepts the values, and fills in those that are 0. */
int sh_serving_check(struct sh_serving_run *r, struct sh_err *e);

#endif
