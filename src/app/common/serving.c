/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/common/serving.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/mem.h"

enum { MOST_BYTES = 1 << 20, MOST_LINES = 1000, FEW_RUNS = 5 };

int sh_engine_open(const char *name, struct sh_engine *out, struct sh_err *e)
{
    for (int i = 0; i < SH_N_SCHED; i++)
        if (!strcasecmp(name, sh_scheduler_names[i]) && (access(name, F_OK) || !strcmp(name, sh_scheduler_names[i])))
            return sh_engine_built_in(sh_scheduler_names[i], out, e);
    if (access(name, F_OK))
        return sh_misused(e, "--engine \"%.100s\": expected vllm, sglang, trtllm, or a file written by "
                          "shears calibrate", name);
    size_t bytes;
    char *text = sh_file_read(name, MOST_BYTES, &bytes, e), *at = text;
    if (!text)
        return -1;
    const char **rows = xcalloc(MOST_LINES + 1, sizeof *rows);
    int n = 0, bad = strlen(text) != bytes && sh_fail(e, "%s: found a zero byte, expected text", name);
    for (char *line; !bad && (line = strsep(&at, "\n")); n++) {
        if (n == MOST_LINES)
            bad = sh_fail(e, "%s: found more than %d lines", name, MOST_LINES);
        else
            rows[n] = line;
    }
    bad = bad || sh_engine_read(rows, name, out, e);
    free(rows);
    free(text);
    return bad ? -1 : 0;
}

const char *sh_engine_says(const struct sh_engine *g, const struct sh_gpu *b, const struct sh_kv_shape *s, char *text)
{
    enum sh_generation gen;
    const char *kind = sh_clock_kind(s), *engine = sh_scheduler_names[g->scheduler];
    const struct sh_engine_error *x = sh_clock_generation(b, &gen) ? sh_engine_error(g, gen, kind) : NULL;
    char first[64] = "";
    if (!x) {
        snprintf(text, SH_ENGINE_TEXT, "%s on %s, %s: nothing like it was measured; the constants are those of %s",
                 engine, b->name, kind, sh_generation_names[gen]);
        return text;
    }
    if (!isnan(x->ttft))
        snprintf(first, sizeof first, ", first token +-%.0f %%", 100 * x->ttft);
    snprintf(text, SH_ENGINE_TEXT, "%s on %s, %s: +-%.0f %%%s, %d run%s%s", engine, b->name, kind, 100 * x->tpot, first,
             x->runs, x->runs == 1 ? "" : "s", x->runs < FEW_RUNS ? ", too few to tell the error at other loads" : "");
    return text;
}

int sh_serving_open(const struct sh_capacity_args *a, const struct sh_capacity_settings *t,
                    const struct sh_capacity_question *q, const struct sh_engine *g, const struct sh_clock_layout *l,
                    struct sh_serving *out, struct sh_err *e)
{
    struct sh_capacity_args plain = *a;
    struct sh_serving s = {.scheduler = g->scheduler};
    plain.pp = plain.ep = 1;
    plain.link = 0;
    if (sh_capacity_ask_fill(&plain, t, q, &s.ask, &s.layers, e))
        return -1;
    if ((!a->uneven && sh_capacity_divides(q->shape, l->tp, e)) || sh_clock(g, q->board, &s.ask, l, &s.clock, e)) {
        free(s.layers);
        return -1;
    }
    const double *rule = g->rule[s.clock.generation];
    double util = a->util >= 0 || a->reserve >= 0 ? t->util : rule[SH_RULE_MEMORY];
    s.memory = (double)s.ask.memory * util - (double)a->overhead;
    s.chunk = (uint32_t)(a->chunk ? (double)a->chunk : rule[SH_RULE_CHUNK]);
    s.sequences = (uint32_t)(a->sampled ? (double)a->sampled : rule[SH_RULE_SEQUENCES]);
    s.poll = (uint32_t)rule[SH_RULE_POLL];
    s.poll_busy = (uint32_t)rule[SH_RULE_POLL_BUSY];
    *out = s;
    return 0;
}

void sh_serving_clear(struct sh_serving *s)
{
    free(s->layers);
    s->layers = NULL;
}

struct sh_loop_ask sh_serving_loop(const struct sh_serving *s, uint32_t concurrency, uint64_t requests)
{
    return (struct sh_loop_ask){.clock = &s->clock, .ask = &s->ask, .scheduler = s->scheduler, .chunk = s->chunk,
                                .sequences = s->sequences, .concurrency = concurrency,
                                .poll = concurrency < 16 ? s->poll : s->poll_busy,
                                .requests = requests ? requests : 10ull * concurrency, .memory = s->memory};
}
