/* SPDX-License-Identifier: Apache-2.0 */
/* The output head (src/model/layers/head.c) of a large vocabulary on a device: how often a step of many texts reads the
 * output matrix, that the tokens it chooses are the likeliest of its logits, and that what is said to fit does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/engine/session.h"
#include "tests/tap.h"
#include "tests/unit/backends.h"
#include "tests/unit/scratch.h"

enum { VOCAB = 131072, SMALLER = 32768, BATCH = 256, STEPS = 4, BUDGET = 3 };

static struct sh_err e;

static struct sh_model *wide_model(int vocab)
{
    char text[600];
    snprintf(text, sizeof text,
             "{\"model_type\": \"opt\", \"vocab_size\": %d, \"hidden_size\": 8, \"ffn_dim\": 8,"
             " \"num_hidden_layers\": 1, \"num_attention_heads\": 1, \"max_position_embeddings\": 16,"
             " \"word_embed_proj_dim\": 8,"
             " \"do_layer_norm_before\": true, \"activation_function\": \"relu\", \"init_std\": 0.5}", vocab);
    scratch_write("config.json", text, strlen(text));
    struct sh_model *m = sh_model_open_random(scratch_folder(), 5, &e);
    if (!m)
        printf("# %s\n", e.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    return m;
}

static struct sh_resident *open_resident(struct target *on, struct sh_model *m, size_t memory)
{
    if (memory) {
        on->b->close(on->d);
        on->d = on->b->open(&(struct sh_open){.n_threads = 1, .memory_bytes = memory}, &e);
        CU_ASSERT_PTR_NOT_NULL_FATAL(on->d);
    }
    struct sh_resident_setup setup = {.backend = on->b, .device = on->d, .model = m, .dtype = SH_F32,
                                      .weight_bits = 16, .rows = BATCH, .positions = STEPS + 1};
    struct sh_resident *r = sh_resident_open(&setup, &e);
    if (!r)
        printf("# %s\n", e.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    return r;
}

static struct sh_session_setup setup_of(const struct sh_policy_spec *spec, const int *budget, int n_seq)
{
    return (struct sh_session_setup){.spec = spec, .budget = budget, .n_seq = n_seq, .n_token = STEPS + 1,
                                     .format = {.bits = 32}};
}

/* A step of a token of every text. */
static void step(struct sh_session *s, int n_seq, int number)
{
    int32_t token[BATCH];
    int start[BATCH + 1];
    for (int i = 0; i <= n_seq; i++)
        start[i] = i;
    for (int i = 0; i < n_seq; i++)
        token[i] = (i * 509 + number * 77) % SMALLER;
    CU_ASSERT_EQUAL_FATAL(sh_session_step(s, token, start, NULL, NULL, &e), 0);
}

static struct sh_session *new_session(struct sh_resident *r, const struct sh_policy_spec *spec, int n_seq)
{
    int budget[] = {BUDGET};
    struct sh_session_setup setup = setup_of(spec, budget, n_seq);
    struct sh_session *s = sh_session_new(r, &setup, &e);
    if (!s)
        printf("# %s\n", e.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    return s;
}

/* Kernels and products of a second step, which takes no memory any more. */
static unsigned long launches_of(struct sh_resident *r, const struct sh_policy_spec *spec, emulated_count *launches,
                                 int n_seq, int32_t *best)
{
    struct sh_session *s = new_session(r, spec, n_seq);
    sh_session_only_best(s);
    step(s, n_seq, 0);
    unsigned long before = launches();
    step(s, n_seq, 1);
    unsigned long n = launches() - before;
    for (int i = 0; i < n_seq; i++)
        best[i] = sh_session_best(s, i, &e);
    sh_session_free(s);
    return n;
}

static void reads_once(void)
{
    struct target on;
    struct sh_policy_spec spec;
    int32_t few[8], best[BATCH];
    int wrong = 0;
    emulated_count *launches = target_emulated("emu_launches");
    setenv("SH_EMU_MEMORY", "4G", 1);
    if (!launches || target_open(&on, ON_MODULE, 1))
        return;
    struct sh_model *m = wide_model(VOCAB);
    struct sh_resident *r = open_resident(&on, m, 0);
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse("window", &spec, &e), 0);
    unsigned long of_few = launches_of(r, &spec, launches, 8, few);
    unsigned long of_many = launches_of(r, &spec, launches, BATCH, best);
    if (of_many != of_few)
        printf("# launches of a step: %lu of 8 texts, %lu of %d\n", of_few, of_many, BATCH);
    CU_ASSERT_EQUAL(of_many, of_few);
    struct sh_session *s = new_session(r, &spec, BATCH);
    step(s, BATCH, 0);
    step(s, BATCH, 1);
    for (int i = 0; i < BATCH; i++)
        wrong += sh_session_best(s, i, &e) != best[i] || (i < 8 && few[i] != best[i]);
    CU_ASSERT_EQUAL(wrong, 0);
    sh_session_free(s);
    sh_resident_close(r);
    target_close(&on);
    sh_model_close(m);
    scratch_clear();
}

/* One device: as many texts as it says to fit do. Bytes that are taken before there is a cache. */
static size_t fill(struct target *on, struct sh_model *m, const struct sh_policy_spec *spec, size_t memory, int *n)
{
    int budget[] = {BUDGET}, on_host;
    struct sh_resident *r = open_resident(on, m, memory);
    struct sh_session_setup setup = setup_of(spec, budget, 1);
    struct sh_props before, after;
    on->b->props(on->d, &before);
    *n = sh_session_fit(r, &setup, BATCH, &on_host, &e);
    CU_ASSERT_FATAL(*n >= 0 && !on_host);
    if (*n) {
        struct sh_session *s = new_session(r, spec, *n);
        sh_session_only_best(s);
        for (int i = 0; i < STEPS; i++)
            step(s, *n, i);
        sh_session_free(s);
    }
    on->b->props(on->d, &after);
    CU_ASSERT(after.peak_bytes <= memory);
    sh_resident_close(r);
    return before.taken_bytes;
}

/* Devices of less and less memory: the head takes no more of it than they can spare. */
static void fits(void)
{
    struct target on;
    struct sh_policy_spec spec;
    int n, some = 0, least_all = 0;
    if (target_open(&on, ON_MODULE, 1))
        return;
    struct sh_model *m = wide_model(SMALLER);
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse("window", &spec, &e), 0);
    size_t large = fill(&on, m, &spec, (size_t)768 << 20, &n);
    size_t small = fill(&on, m, &spec, (size_t)160 << 20, &least_all);
    CU_ASSERT(n == BATCH && least_all == BATCH);
    CU_ASSERT(large > small + ((size_t)8 << 20));
    size_t low = small, high = (size_t)160 << 20;
    for (int i = 0; i < 16 && !some; i++) {             /* none at low, all at high */
        size_t memory = low + (high - low) / 2;
        fill(&on, m, &spec, memory, &n);
        some = n > 0 && n < BATCH;
        *(n ? &high : &low) = memory;
    }
    CU_ASSERT(some);                    /* a device held some texts and not all */
    target_close(&on);
    sh_model_close(m);
    scratch_clear();
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"a step of 256 texts reads the output matrix of a large vocabulary once (module)", reads_once},
        {"as many texts as are said to fit with a large vocabulary do (module)", fits},
        {0}};
    scratch_folder();
    return tap_run("head", tests);
}
