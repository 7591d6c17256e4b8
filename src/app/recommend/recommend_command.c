/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that start a replica, from the documentation of vLLM's engine arguments and SGLang's server arguments.
 * SGLang counts all GPUs that share a layer as tp, also those with their own sequences (dp). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/app/recommend/recommend.h"
#include "src/base/mem.h"

enum { COMMAND = 1024 };

static void add(char *to, const char *option, double value)
{
    size_t n = strlen(to);
    snprintf(to + n, COMMAND - n, " %s %.6g", option, value);
}

static void add_word(char *to, const char *words)
{
    size_t n = strlen(to);
    snprintf(to + n, COMMAND - n, " %s", words);
}

/* 'it'\''s a model' */
static void begin(char *to, const char *command, const char *model)
{
    size_t n = (size_t)snprintf(to, COMMAND, "%s ", command);
    int plain = !model[strspn(model, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-:")];
    if (plain) {
        snprintf(to + n, COMMAND - n, "%s", model);
        return;
    }
    to[n++] = '\'';
    for (; *model && n < COMMAND / 2; model++)
        n += (size_t)snprintf(to + n, COMMAND - n, *model == '\'' ? "'\\''" : "%c", *model);
    to[n++] = '\'';
    to[n] = '\0';
}

/* 8-bit weights of a model that is published with more are coded as it is loaded. */
static int codes_weights(const struct sh_recommend *r)
{
    const char *weights = r->args->capacity.weights;
    return weights && (!strcmp(weights, "f8") || !strcmp(weights, "fp8")) && !*r->model.f.published;
}

void sh_recommend_commands(const struct sh_recommend *r, struct sh_recommend_row *row)
{
    char vllm[COMMAND], sglang[COMMAND];
    const struct sh_clock_layout *l = &row->layout;
    int is_f8 = !strncmp(r->settings.kv.at[0], "f8", 2);
    begin(vllm, "vllm serve", r->args->capacity.model);
    begin(sglang, "python -m sglang.launch_server --model-path", r->args->capacity.model);
    add(vllm, "--tensor-parallel-size", l->tp);
    add(sglang, "--tp-size", l->tp * l->dp);
    if (l->pp > 1) {
        add(vllm, "--pipeline-parallel-size", l->pp);
        add(sglang, "--pp-size", l->pp);
    }
    if (l->dp > 1) {
        add(vllm, "--data-parallel-size", l->dp);
        add(sglang, "--dp-size", l->dp);
        add_word(sglang, "--enable-dp-attention");
    }
    if (l->ep > 1) {
        add_word(vllm, "--enable-expert-parallel");
        add(sglang, "--ep-size", l->ep);
    }
    add(vllm, "--max-model-len", r->load.longest);
    add(sglang, "--context-length", r->load.longest);
    add(vllm, "--max-num-seqs", row->sequences);
    add(sglang, "--max-running-requests", (double)row->sequences * l->dp);
    add(vllm, "--max-num-batched-tokens", row->chunk);
    add(sglang, "--chunked-prefill-size", (double)row->chunk * l->dp);
    add(vllm, "--gpu-memory-utilization", row->util);
    add(sglang, "--mem-fraction-static", row->util);
    if (is_f8) {
        add_word(vllm, "--kv-cache-dtype fp8");
        add_word(sglang, "--kv-cache-dtype fp8_e4m3");
    }
    if (codes_weights(r)) {
        add_word(vllm, "--quantization fp8");
        add_word(sglang, "--quantization fp8");
    }
    row->vllm = xstrdup(vllm);
    row->sglang = xstrdup(sglang);
}
