/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of models and boards for the capacity calculator: a config.json (bytes that begin with "{"), else
 * lines of a catalogue, the first a board, the second a model. What is taken is computed with. */
#include <string.h>

#include "planner/capacity/capacity.h"
#include "planner/catalog/catalog.h"
#include "src/model/config/config.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/scratch.h"

static void line(const uint8_t **data, size_t *size, char *to, size_t bytes)
{
    struct fuzz_part p = fuzz_until('\n', data, size);
    size_t n = p.bytes < bytes ? p.bytes : bytes - 1;
    memcpy(to, p.at, n);
    to[n] = '\0';
}

static void compute(const struct sh_kv_shape *s, uint64_t memory)
{
    static struct sh_capacity c;
    static const uint64_t lengths[] = {1, 4097, SH_KV_MOST_TOKENS};
    struct sh_err e;
    struct sh_server server = {0};
    struct sh_server_term terms[SH_SERVER_TERMS];
    for (int i = 0; i < 9; i++) {
        struct sh_capacity_ask a = {.shape = s, .tp = 1 + i % 3, .pp = 1, .ep = 1, .memory = memory, .util = 0.9,
                                    .bandwidth = 1e12, .peak = 1e14, .link = 1e11, .length = lengths[i / 3],
                                    .rule = {.page = 16, .windows = (enum sh_windows)(i % 4), .in_flight = 512}};
        if (sh_weight_types_published(&s->f, &a.weights, &e))
            return;
        a.rule.k = a.rule.v = a.weights.matrices;
        a.rule.budget = i % 2 ? SH_BUDGET_SHARE : SH_BUDGET_NONE;
        a.rule.share = 0.3;
        if (!sh_capacity(&a, &c, &e))
            sh_server_terms(&a, &server, c.fullest, terms);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sh_err e;
    struct sh_kv_facts f;
    struct sh_kv_shape s;
    struct sh_gpu b = {.gb = 80};
    int taken;
    if (size && data[0] == '{') {
        scratch_clear();
        taken = !sh_config_facts(scratch_write("config.json", data, size), &f, &e);
        b.dies = 1;
    } else {
        char board[512], model[4096];
        line(&data, &size, board, sizeof board);
        line(&data, &size, model, sizeof model);
        taken = !sh_gpu_row(board, "here", &b, &e) & !sh_kv_facts_row(model, "here", &f, &e);
    }
    if (taken && !sh_kv_shape_build(&f, &s, &e)) {
        compute(&s, sh_gpu_bytes(&b));
        sh_kv_shape_clear(&s);
        fuzz_accepted++;
    }
    return 0;
}
