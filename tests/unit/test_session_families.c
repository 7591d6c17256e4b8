/* SPDX-License-Identifier: Apache-2.0 */
/* With a cache that holds everything a session is plain inference: logits of every golden checkpoint within
 * 2e-5 of the largest, the same when tokens come one at a time, and the greedy continuations of the
 * references; all sequences of a checkpoint as one batch. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/engine/session.h"
#include "src/model/families/families.h"
#include "tests/tap.h"
#include "tests/unit/backends.h"
#include "tests/unit/reference.h"

static struct sh_err e;

enum { MOST_SEQ = 8, GREEDY = 16 };

struct batch {
    struct reference *r;
    const struct sh_arch *arch;
    const int32_t *tokens[MOST_SEQ];
    int length[MOST_SEQ], n, longest;
    const float *logits[MOST_SEQ];      /* [length, vocab] */
    double largest[MOST_SEQ], off;
    int taken;
};

static void take_one(void *to, int sequence, int position, const float *logits)
{
    struct batch *b = to;
    int vocab = b->arch->n_vocab;
    const float *wanted = b->logits[sequence] + (size_t)position * (size_t)vocab;
    for (int i = 0; i < vocab; i++) {
        double off = fabs((double)(logits[i] - wanted[i])) / b->largest[sequence];
        b->off = fmax(b->off, isnan(off) ? INFINITY : off);
    }
    b->taken++;
}

static void take(void *to, int sequence, int position, int n, const float *logits)
{
    const struct batch *b = to;
    for (int i = 0; i < n; i++)
        take_one(to, sequence, position + i, logits + (size_t)i * (size_t)b->arch->n_vocab);
}

static void read_batch(struct batch *b, const char *name)
{
    b->n = reference_count(b->r);
    for (int s = 0; s < b->n; s++) {
        b->length[s] = reference_tokens(b->r, s, &b->tokens[s]);
        b->longest = b->length[s] > b->longest ? b->length[s] : b->longest;
        size_t n = (size_t)b->length[s] * (size_t)b->arch->n_vocab;
        b->logits[s] = reference_tensor(b->r, s, "logits", n);
        if (!b->logits[s])
            printf("# %s: no logits of sequence %d\n", name, s);
        CU_ASSERT_PTR_NOT_NULL_FATAL(b->logits[s]);
        for (size_t i = 0; i < n; i++)
            b->largest[s] = fmax(b->largest[s], fabs((double)b->logits[s][i]));
    }
}

/* From token `from` of every sequence on, as many as it has up to `n`. */
static void step(struct sh_session *s, struct batch *b, int from, int n)
{
    int32_t tokens[1024];
    int start[MOST_SEQ + 1] = {0};
    for (int i = 0; i < b->n; i++) {
        int m = b->length[i] - from < n ? b->length[i] - from : n;
        m = m < 0 ? 0 : m;
        start[i + 1] = start[i] + m;
        CU_ASSERT_FATAL(start[i + 1] <= 1024);
        if (m)
            memcpy(tokens + start[i], b->tokens[i] + from, (size_t)m * sizeof *tokens);
    }
    CU_ASSERT_EQUAL_FATAL(sh_session_step(s, tokens, start, take, b, &e), 0);
}

static int best(const float *logits, int n)
{
    int at = 0;
    for (int i = 1; i < n; i++)
        at = logits[i] > logits[at] ? i : at;
    return at;
}

/* Ids that differ from those of ref.json; sequences without any there count nothing. */
static int continue_greedily(struct sh_session *s, const struct batch *b)
{
    char *path = xasprintf("%s/ref.json", reference_folder(b->r));
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error), *list = json_object_get(root, "sequences");
    int differ = 0, start[MOST_SEQ + 1] = {0};
    int32_t id[MOST_SEQ];
    for (int g = 0; g < GREEDY; g++) {
        for (int i = 0; i < b->n; i++) {
            const json_t *ids = json_object_get(json_array_get(list, (size_t)i), "greedy");
            id[i] = best(sh_session_logits(s, i), b->arch->n_vocab);
            differ += ids && id[i] != json_integer_value(json_array_get(ids, (size_t)g));
            start[i + 1] = i + 1;
        }
        if (g < GREEDY - 1 && json_object_get(json_array_get(list, 0), "greedy"))
            CU_ASSERT_EQUAL_FATAL(sh_session_step(s, id, start, NULL, NULL, &e), 0);
    }
    json_decref(root);
    free(path);
    return differ;
}

/* Reads everything `by` tokens at a time, then goes on. */
static void read_all(struct sh_resident *r, struct batch *b, int by, int prefill, const char *name)
{
    struct sh_policy_spec full;
    int budget[64];
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse("full", &full, &e), 0);
    for (int i = 0; i < 64; i++)
        budget[i] = 1;                  /* not looked at */
    struct sh_session_setup setup = {.spec = &full, .budget = budget, .n_seq = b->n, .n_token = b->longest + GREEDY,
                                     .prefill = prefill, .format = {.bits = 32}};
    struct sh_session *s = sh_session_new(r, &setup, &e);
    CU_ASSERT_FATAL(s && b->arch->n_layer * b->arch->n_kv_head <= 64);
    int all = 0;
    b->taken = 0;
    b->off = 0;
    for (int from = 0; from < b->longest; from += by)
        step(s, b, from, by);
    for (int i = 0; i < b->n; i++)
        all += b->length[i];
    CU_ASSERT_EQUAL(b->taken, all);
    int differ = continue_greedily(s, b);
    if (b->off > 2e-5 || differ)
        printf("# %s by %d: logits off by %.1e of the largest, %d greedy ids differ\n", name, by, b->off, differ);
    CU_ASSERT(b->off <= 2e-5 && differ == 0);
    sh_session_free(s);
}

/* Angles that follow a text's length: each text alone, one token at a time, by a session that knows its end. */
static void read_known(struct sh_resident *r, const struct batch *all, const char *name)
{
    for (int i = 0; i < all->n; i++) {
        struct sh_policy_spec full;
        int budget[64];
        struct batch b = *all;
        b.n = 1;
        b.tokens[0] = all->tokens[i];
        b.length[0] = all->length[i];
        b.logits[0] = all->logits[i];
        b.largest[0] = all->largest[i];
        b.off = 0;
        b.taken = 0;
        CU_ASSERT_EQUAL_FATAL(sh_policy_parse("full", &full, &e), 0);
        for (int k = 0; k < 64; k++)
            budget[k] = 1;
        struct sh_session_setup setup = {.spec = &full, .budget = budget, .n_seq = 1, .n_token = b.length[0],
                                         .length = b.length[0], .format = {.bits = 32}};
        struct sh_session *s = sh_session_new(r, &setup, &e);
        CU_ASSERT_PTR_NOT_NULL_FATAL(s);
        for (int from = 0; from < b.length[0]; from++)
            step(s, &b, from, 1);
        if (b.off > 2e-5)
            printf("# %s, text %d one by one: logits off by %.1e of the largest\n", name, i, b.off);
        CU_ASSERT(b.taken == b.length[0] && b.off <= 2e-5);
        sh_session_free(s);
    }
}

static void checkpoint(const char *name, enum which which)
{
    struct target on;
    struct batch b = {.r = reference_open(name)};
    CU_ASSERT_PTR_NOT_NULL_FATAL(b.r);
    struct sh_model *m = sh_model_open(reference_folder(b.r), &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    b.arch = sh_model_arch(m);
    read_batch(&b, name);
    if (target_open(&on, which, 1) == 0) {
        struct sh_resident_setup setup = {.backend = on.b, .device = on.d, .model = m, .dtype = SH_F32,
                                          .weight_bits = 16, .rows = 600, .positions = b.longest + GREEDY};
        struct sh_resident *r = sh_resident_open(&setup, &e);
        CU_ASSERT_PTR_NOT_NULL_FATAL(r);
        read_all(r, &b, 1000, 0, name);
        read_all(r, &b, 1000, b.longest, name);         /* nothing leaves, and windows still hide */
        /* Angles that follow a text's length depend on how much has been read: one at a time is another text. */
        if (b.arch->rope.kind != SH_ROPE_DYNAMIC && b.arch->rope.kind != SH_ROPE_LONG && !on.small)
            read_all(r, &b, 1, 0, name);
        else if (!on.small)
            read_known(r, &b, name);
        sh_resident_close(r);
        target_close(&on);
    }
    sh_model_close(m);
    reference_close(b.r);
}

/* The checkpoint that bears the family's name; test_family_names reports a family without one. */
static void families(void)
{
    for (const struct sh_family *const *f = sh_families; *f; f++) {
        char path[200];
        snprintf(path, sizeof path, "checkpoints/%s/ref.json", (*f)->name);
        if ((*f)->params && tap_golden(path))
            checkpoint((*f)->name, ON_CPU);
    }
}

static void variants(void)
{
    static const char *const names[] = {
        "opt_350m_style", "opt_f16", "opt_bf16", "opt_sharded", "llama_gqa", "llama3_rope", "llama_linear_rope",
        "llama_dynamic_rope", "llama_yarn_rope", "llama_bias", "qwen2_window", "phi3_longrope", "gemma3_newer_config",
        "gpt2_scaled_by_layer", "gpt_neox_sequential", "bloom_transformer_prefix", "bloom_six_heads", NULL};
    for (int i = 0; names[i]; i++)
        checkpoint(names[i], ON_CPU);
}

static void checkpoints_module(void)
{
    static const char *const few[] = {"opt_350m_style", "gemma2", "gpt_neox", "bloom", NULL};
    for (int i = 0; few[i]; i++)
        checkpoint(few[i], ON_MODULE);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"full cache: logits and greedy continuations of every family", families},
        {"full cache: logits and greedy continuations of their variants", variants},
        {"full cache: logits and greedy continuations (module)", checkpoints_module},
        {0}};
    return tap_run("session_families", tests);
}
