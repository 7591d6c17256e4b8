/* SPDX-License-Identifier: Apache-2.0 */
/* src/engine: inference under a KV budget against what PyTorch computed with eviction inside its decoding
 * loop (tests/oracle/session.py), and for sinks, latents, chunks and layers without positions what a plain forward pass
 * computed (session_plain.py). For every policy: what is kept when each token attends, exactly; logits
 * within 5e-5 of the largest, negative log-likelihoods within 1e-4, greedy continuations the same. Where a real
 * device's near ties flip (near_ties.h) a case is judged up to them. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/engine/session.h"
#include "src/model/weights.h"
#include "tests/tap.h"
#include "tests/unit/backends.h"
#include "tests/unit/device_policies.h"
#include "tests/unit/near_ties.h"

enum { MOST_TOKENS = 128, GREEDY = 16, LONG_AT = 6, LONG_STEP = 20 };

static struct sh_err e;

struct golden {
    json_t *root;
    struct sh_weights *file;
    char *folder;                       /* of the checkpoint */
};

struct trial {                          /* one case of a golden file */
    struct sh_policy_spec spec;
    int32_t tokens[MOST_TOKENS];
    int n, budget[16], prefill, n_head;
    const int8_t *evict;                /* [layer][kv_head][n + 15] */
    const float *nll, *logits;          /* [n - 1], [rows, vocab] */
    const json_t *rows, *greedy;
    int vocab, wrong_sets, taken;
    int per_step;                       /* tokens; 0: one, but LONG_STEP from LONG_AT on */
    double logits_off, nll_off;
    struct near_ties *near;             /* NULL: nothing may differ                               */
    int is_reference;                   /* it learns the rows of this run                         */
    int has_sinks;                      /* rows sum to less than 1                                */
};

static struct golden open_golden(const char *name)
{
    struct golden g;
    json_error_t error;
    char path[256];
    snprintf(path, sizeof path, "session/%s.json", name);
    CU_ASSERT_PTR_NOT_NULL_FATAL(tap_golden(path));
    g.root = json_load_file(tap_golden(path), 0, &error);
    snprintf(path, sizeof path, "session/%s.safetensors", name);
    CU_ASSERT_FATAL(g.root && (g.file = sh_weights_open(tap_golden(path), &e)));
    snprintf(path, sizeof path, "checkpoints/%s/config.json", name);
    CU_ASSERT_PTR_NOT_NULL_FATAL(tap_golden(path));
    g.folder = xstrdup(tap_golden(path));
    *strrchr(g.folder, '/') = '\0';
    return g;
}

static void close_golden(struct golden *g)
{
    json_decref(g->root);
    sh_weights_close(g->file);
    free(g->folder);
}

static const void *tensor(const struct golden *g, const char *name, const char *what, size_t bytes)
{
    char full[128];
    snprintf(full, sizeof full, "%s.%s", name, what);
    const struct sh_stored *t = sh_weights_find(g->file, full);
    CU_ASSERT_FATAL(t && t->bytes == bytes);
    return t->at;
}

static void read_case(const struct golden *g, const json_t *c, const struct sh_arch *a, struct trial *t)
{
    const json_t *tokens = json_object_get(c, "tokens"), *budget = json_object_get(c, "budget");
    const char *name = json_string_value(json_object_get(c, "name"));
    *t = (struct trial){.n = (int)json_array_size(tokens), .n_head = a->n_kv_head, .vocab = a->n_vocab,
                        .has_sinks = (a->flags & SH_HAS_SINKS) != 0};
    CU_ASSERT_FATAL(t->n + GREEDY <= MOST_TOKENS && (int)json_array_size(budget) == a->n_layer);
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse(json_string_value(json_object_get(c, "policy")), &t->spec, &e), 0);
    for (int i = 0; i < t->n; i++)
        t->tokens[i] = (int32_t)json_integer_value(json_array_get(tokens, (size_t)i));
    for (int i = 0; i < a->n_layer * a->n_kv_head; i++)
        t->budget[i] = (int)json_integer_value(json_array_get(budget, (size_t)(i / a->n_kv_head)));
    t->prefill = (int)json_integer_value(json_object_get(c, "prefill"));
    t->greedy = json_object_get(c, "greedy");
    t->rows = json_object_get(g->root, "rows");
    size_t n = (size_t)t->n, heads = (size_t)(a->n_layer * a->n_kv_head);
    t->evict = tensor(g, name, "evict_step", heads * (n + GREEDY - 1));
    t->nll = tensor(g, name, "nll", (n - 1) * sizeof(float));
    t->logits = tensor(g, name, "logits", json_array_size(t->rows) * (size_t)a->n_vocab * sizeof(float));
}

static void watch(void *to, int sequence, int layer, int head, int t, const struct sh_cache *c, const float *row)
{
    struct trial *trial = to;
    const int8_t *evict = trial->evict + (layer * trial->n_head + head) * (trial->n + GREEDY - 1);
    unsigned char kept[MOST_TOKENS] = {0}, expected[MOST_TOKENS];
    int off = 0;
    double sum = 0;
    (void)sequence;
    if (trial->near && !trial->is_reference && t >= trial->n && trial->near->n_flip)
        return;                         /* another text */
    for (int i = 0; i < c->n_slot; i++) {
        sum += (double)row[i];
        if (c->pos[i] >= 0)
            kept[c->pos[i]]++;
        else
            off += row[i] != 0;
    }
    for (int j = 0; j <= t; j++)
        expected[j] = evict[j] < 0 || evict[j] > t;
    off += memcmp(kept, expected, (size_t)t + 1) != 0 &&
           !(trial->near && !trial->is_reference && kept[t] && near_judge(trial->near, layer, head, t, expected, kept));
    if (trial->is_reference)
        near_row(trial->near, layer, head, t, c->pos, row, c->n_slot, c->n);
    trial->wrong_sets += off > 0 || (trial->has_sinks ? !(sum > 0 && sum < 1) : fabs(sum - 1) > 1e-5);
}

/* log sum exp */
static double total(const float *x, int n)
{
    double most = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, (double)x[i]);
    for (int i = 0; i < n; i++)
        sum += exp((double)x[i] - most);
    return most + log(sum);
}

static void take_one(void *to, int sequence, int position, const float *logits)
{
    struct trial *t = to;
    double largest = 0;
    size_t i;
    const json_t *row;
    CU_ASSERT_FATAL(sequence == 0 && position == t->taken++);
    if (t->near && position >= near_until(t->near))
        return;
    if (position + 1 < t->n) {
        double nll = total(logits, t->vocab) - (double)logits[t->tokens[position + 1]];
        t->nll_off = fmax(t->nll_off, fabs(nll - (double)t->nll[position]));
    }
    for (i = 0; i < json_array_size(t->rows) * (size_t)t->vocab; i++)
        largest = fmax(largest, fabs((double)t->logits[i]));
    json_array_foreach((json_t *)(uintptr_t)t->rows, i, row)
        for (int k = 0; k < t->vocab && json_integer_value(row) == position; k++) {
            double off = fabs((double)(logits[k] - t->logits[i * (size_t)t->vocab + (size_t)k])) / largest;
            t->logits_off = fmax(t->logits_off, isnan(off) ? INFINITY : off);
        }
}

static void take(void *to, int sequence, int position, int n, const float *logits)
{
    const struct trial *t = to;
    for (int i = 0; i < n; i++)
        take_one(to, sequence, position + i, logits + (size_t)i * (size_t)t->vocab);
}

static int step_at(const struct trial *t, int at)
{
    int n = t->per_step ? t->per_step : at == LONG_AT ? LONG_STEP : 1;
    return t->n - at < n ? t->n - at : n;
}

/* The text in steps of so many tokens, then the continuation. Was all as it should be? */
static int play(struct sh_session *s, struct trial *t, const char *name)
{
    int differ = 0;
    for (int i = 0, n; i < t->n; i += n) {
        n = step_at(t, i);
        CU_ASSERT_EQUAL_FATAL(sh_session_step(s, t->tokens + i, (int[]){0, n}, take, t, &e), 0);
    }
    CU_ASSERT_EQUAL(t->taken, t->n);
    for (size_t i = 0; i < GREEDY; i++) {
        int32_t id = sh_session_best(s, 0, &e);
        differ += id != json_integer_value(json_array_get(t->greedy, i));
        if (i < GREEDY - 1)
            CU_ASSERT_EQUAL_FATAL(sh_session_step(s, &id, (int[]){0, 1}, NULL, NULL, &e), 0);
    }
    CU_ASSERT_EQUAL(sh_session_length(s, 0), t->n + GREEDY - 1);
    differ = t->near && t->near->n_flip ? 0 : differ;
    int ok = t->wrong_sets == 0 && differ == 0 && t->logits_off <= 5e-5 && t->nll_off <= 1e-4;
    if (!ok)
        printf("# %s by %d: %d sets wrong, %d ids differ, logits off by %.1e, nll by %.1e\n", name, t->per_step,
               t->wrong_sets, differ, t->logits_off, t->nll_off);
    return ok;
}

static struct sh_resident *open_resident(const struct target *on, struct sh_model *m, int rows)
{
    struct sh_resident_setup setup = {.backend = on->b, .device = on->d, .model = m, .dtype = SH_F32,
                                      .weight_bits = 16, .rows = rows, .positions = MOST_TOKENS};
    struct sh_resident *r = sh_resident_open(&setup, &e);
    if (!r)
        printf("# %s\n", e.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    return r;
}

/* On a device the cache is the device's, but for the policies that need more than it keeps, and sinks and chunks. */
static void check_place(const struct sh_session *s, const struct trial *t, const struct sh_resident *r)
{
    struct sh_slots_policy unused;
    int is_host = r->is_host, is_plain = !(r->arch->flags & (SH_HAS_SINKS | SH_CHUNKED));
    int expected = !is_host && is_plain && !sh_policy_device(&t->spec, t->n + GREEDY - 1, &unused);
    CU_ASSERT((sh_session_cache(s) == NULL) == expected);
    CU_ASSERT((sh_session_why_host(s) != NULL) == (!is_host && !expected));
}

/* Of those that are played once more. */
static int is_repeated(const char *policy)
{
    return !strcmp(policy, "h2o:recent=8") || !strcmp(policy, "scissorhands:window=16,recent=4,drop=8");
}

static int play_once(const struct golden *g, const json_t *c, struct sh_resident *r, int per_step, int is_watched,
                     struct near_ties *near)
{
    struct trial t;
    read_case(g, c, r->arch, &t);
    t.per_step = per_step;
    t.near = near;
    t.is_reference = near && r->is_host;
    struct sh_session_setup setup = {.spec = &t.spec, .budget = t.budget, .n_seq = 1, .n_token = t.n + GREEDY - 1,
                                     .prefill = t.prefill, .format = {.bits = 32}};
    struct sh_session *s = sh_session_new(r, &setup, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    check_place(s, &t, r);
    if (is_watched)
        sh_session_set_watch(s, watch, &t);
    if (per_step != 1)
        sh_session_only_best(s);
    int ok = play(s, &t, json_string_value(json_object_get(c, "name")));
    sh_session_free(s);
    return ok;
}

/* Once more, compared with the processor's rows: does it differ by near ties alone? */
static int play_judged(const struct golden *g, const json_t *c, struct sh_resident *r, int per_step)
{
    struct target cpu;
    struct trial t;
    read_case(g, c, r->arch, &t);
    const struct sh_arch *a = r->arch;
    if (target_is_emulated() || target_open(&cpu, ON_CPU, 1))
        return 0;
    struct near_ties *near = near_new(&t.spec, a->n_layer, a->n_kv_head, a->n_head / a->n_kv_head, a->d_head,
                                      t.n + GREEDY);
    struct sh_resident *reference = open_resident(&cpu, r->setup.model, 25);
    int ok = play_once(g, c, reference, 1, 1, near) && play_once(g, c, r, per_step, 1, near) && near->n_flip > 0;
    printf("# near ties that flipped in %s: %d, the first at token %d\n",
           json_string_value(json_object_get(c, "name")), near->n_flip, near_until(near));
    sh_resident_close(reference);
    target_close(&cpu);
    near_free(near);
    return ok;
}

/* Looked at: unless it is to run as graphs. */
static void play_case(const struct golden *g, const json_t *c, struct sh_resident *r, int per_step, int is_watched)
{
    CU_ASSERT(play_once(g, c, r, per_step, is_watched, NULL) || (!r->is_host && play_judged(g, c, r, per_step)));
}

static void play_some(const struct golden *g, struct sh_resident *r, const json_t *c, int is_small)
{
    int alone = !r->is_host && is_repeated(json_string_value(json_object_get(c, "policy")));
    for (int per_step = is_small && !alone ? 60 : 1; per_step <= 60; per_step += 59)    /* alone: steps as graphs */
        play_case(g, c, r, per_step, r->is_host || per_step > 1);
}

/* Graphs of steps of one token, before and after a step that needs more scratch than any before it. */
static void play_long_step(const struct golden *g, struct sh_resident *r, const json_t *c, int is_small)
{
    (void)is_small;
    play_case(g, c, r, 0, 0);
}

/* Every case whose policy begins with `only`. */
static void every(const char *name, const char *only, enum which which,
                  void (*play_it)(const struct golden *g, struct sh_resident *r, const json_t *c, int is_small))
{
    struct target on;
    struct golden g = open_golden(name);
    struct sh_model *m = sh_model_open(g.folder, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    if (target_open(&on, which, 1) == 0) {
        struct sh_resident *r = open_resident(&on, m, 25);
        const json_t *c;
        size_t i;
        int n = 0;
        json_array_foreach(json_object_get(g.root, "cases"), i, c)
            if (!strncmp(json_string_value(json_object_get(c, "policy")), only, strlen(only))) {
                play_it(&g, r, c, on.small);
                n++;
            }
        CU_ASSERT(n > 0);
        sh_resident_close(r);
        target_close(&on);
    }
    sh_model_close(m);
    close_golden(&g);
}

/* What caches of many sequences take of the device, by its count, and what their shapes predict: within 2 %. */
static void device_bytes(void)
{
    enum { N_SEQ = 24, BUDGET = 40, GROUP = 8 };
    static const struct { const char *policy; int bits; } setting[] = {
        {"window", 32}, {"h2o", 16}, {"h2o:recent=8", 8}, {"streaming", 4},
        {"scissorhands:window=16,recent=4,drop=8", 16}};
    struct target on;
    char *folder = xasprintf("%s/demo/model", getenv("SH_TOP") ? getenv("SH_TOP") : ".");
    struct sh_model *m = sh_model_open(folder, &e);
    free(folder);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    if (target_open(&on, ON_MODULE, 1)) {
        sh_model_close(m);
        return;
    }
    struct sh_resident *r = open_resident(&on, m, 25);
    int heads = r->arch->n_layer * r->arch->n_kv_head, budget[64];
    CU_ASSERT_FATAL(heads <= 64 && r->arch->d_head == 32);      /* a row of 4-bit codes fills 16 bytes */
    for (int i = 0; i < heads; i++)
        budget[i] = BUDGET;
    for (int i = 0; i < 5; i++) {
        struct sh_policy_spec spec;
        struct sh_props before, after;
        CU_ASSERT_EQUAL_FATAL(sh_policy_parse(setting[i].policy, &spec, &e), 0);
        struct sh_session_setup setup = {.spec = &spec, .budget = budget, .n_seq = N_SEQ, .n_token = 2 * BUDGET,
                                         .format = {.bits = setting[i].bits, .group = GROUP, .meta = SH_F16}};
        on.b->props(on.d, &before);
        struct sh_session *s = sh_session_new(r, &setup, &e);
        CU_ASSERT_PTR_NOT_NULL_FATAL(s);
        on.b->props(on.d, &after);
        struct sh_cache_bytes bytes = sh_session_bytes(s);
        double taken = (double)(after.taken_bytes - before.taken_bytes);
        double predicted = (double)(sh_cache_bytes_sum(&bytes) + bytes.scratch);
        double numbers = 2.0 * N_SEQ * heads * BUDGET * r->arch->d_head;
        if (fabs(taken / predicted - 1) > 0.02)
            printf("# %s, %d bits: %.0f bytes taken, %.0f predicted\n", setting[i].policy, setting[i].bits, taken,
                   predicted);
        CU_ASSERT(fabs(taken / predicted - 1) <= 0.02);
        CU_ASSERT_EQUAL((double)bytes.rows, numbers * setting[i].bits / 8);
        CU_ASSERT_EQUAL((double)bytes.meta, setting[i].bits < 16 ? numbers / GROUP * 4 : 0);
        sh_session_free(s);
    }
    sh_resident_close(r);
    target_close(&on);
    sh_model_close(m);
}

enum { WAIT_SEQ = 4, WAIT_BUDGET = 12 };

/* A batch reads texts, is asked what it keeps, and begins anew, twice. Such a question, and such a beginning, waits
 * for the device once at most, however many heads and sequences there are; a text that has filled no budget says all
 * by its length. */
static void ask(struct sh_session *s, emulated_count *waits, struct sh_kv_kept found[2])
{
    static const int lengths[2][WAIT_SEQ] = {{30, 5, 12, 3}, {2, 41, 11, 13}};
    static const int32_t tokens[64] = {3, 1, 4, 1, 5, 9, 2, 6};
    for (int k = 0; k < 2; k++) {
        int start[WAIT_SEQ + 1] = {0};
        for (int i = 0; i < WAIT_SEQ; i++)
            start[i + 1] = start[i] + lengths[k][i];
        int32_t *all = xcalloc((size_t)start[WAIT_SEQ], sizeof *all);
        for (int i = 0; i < start[WAIT_SEQ]; i++)
            all[i] = tokens[i % 8] + i % 3;
        CU_ASSERT_EQUAL_FATAL(sh_session_step(s, all, start, NULL, NULL, &e), 0);
        free(all);
        unsigned long before = waits ? waits() : 0;
        found[k] = sh_session_kept(s);
        CU_ASSERT(!waits || waits() - before <= 1);
        for (int i = WAIT_SEQ - 1; i >= 0; i--) {
            before = waits ? waits() : 0;
            sh_session_restart(s, i);
            CU_ASSERT(!waits || waits() - before <= (lengths[k][i] >= WAIT_BUDGET));
        }
    }
}

static void few_waits_of(const struct target *on, struct sh_model *m, const char *policy, emulated_count *waits,
                         struct sh_kv_kept found[2])
{
    struct sh_resident *r = open_resident(on, m, 90);
    struct sh_policy_spec spec;
    int budget[64], heads = r->arch->n_layer * r->arch->n_kv_head;
    CU_ASSERT_FATAL(heads > 4 && heads <= 64 && sh_policy_parse(policy, &spec, &e) == 0);
    for (int i = 0; i < heads; i++)
        budget[i] = WAIT_BUDGET;
    struct sh_session_setup setup = {.spec = &spec, .budget = budget, .n_seq = WAIT_SEQ, .n_token = 50,
                                     .format = {.bits = 32}};
    struct sh_session *s = sh_session_new(r, &setup, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    CU_ASSERT((sh_session_cache(s) == NULL) == !r->is_host);
    ask(s, waits, found);
    sh_session_free(s);
    sh_resident_close(r);
}

static void few_waits(void)
{
    static const char *const policy[] = {"window", "streaming:sinks=2", "scissorhands:window=16,recent=4,drop=4"};
    emulated_count *waits = target_emulated("emu_waits");
    struct target on[2];
    char *folder = xasprintf("%s/demo/model", getenv("SH_TOP") ? getenv("SH_TOP") : ".");
    struct sh_model *m = waits ? sh_model_open(folder, &e) : NULL;
    free(folder);
    if (!waits)
        return;
    CU_ASSERT_FATAL(m && !target_open(&on[0], ON_MODULE, 1) && !target_open(&on[1], ON_CPU, 1));
    for (size_t p = 0; p < sizeof policy / sizeof *policy; p++) {
        struct sh_kv_kept there[2], here[2];
        few_waits_of(&on[0], m, policy[p], waits, there);
        few_waits_of(&on[1], m, policy[p], NULL, here);
        for (int k = 0; k < 2; k++) {
            int same = there[k].peak == here[k].peak && fabs(there[k].kept - here[k].kept) < 1e-9 &&
                       fabs(there[k].budget - here[k].budget) < 1e-9;
            if (!same)
                printf("# %s: %g of %g kept, peak %d; on the host %g of %g, %d\n", policy[p], there[k].kept,
                       there[k].budget, there[k].peak, here[k].kept, here[k].budget, here[k].peak);
            CU_ASSERT(same);
        }
    }
    for (int i = 0; i < 2; i++)
        target_close(&on[i]);
    sh_model_close(m);
}

static void every_policy(void)
{
    struct golden g = open_golden("llama_gqa");
    const json_t *cases = json_object_get(g.root, "cases"), *c;
    const char *given[256];
    size_t i;
    CU_ASSERT_FATAL(json_array_size(cases) <= 256);
    json_array_foreach(cases, i, c)
        given[i] = json_string_value(json_object_get(c, "policy"));
    check_device_policies(given, (int)json_array_size(cases));
    close_golden(&g);
}

static void opt_full(void) { every("opt", "full", ON_CPU, play_some); }
static void opt_window(void) { every("opt", "window", ON_CPU, play_some); }
static void opt(void) { every("opt", "", ON_CPU, play_some); }
static void llama(void) { every("llama", "", ON_CPU, play_some); }
static void llama_gqa(void) { every("llama_gqa", "", ON_CPU, play_some); }
static void opt_module(void) { every("opt", "s", ON_MODULE, play_some); }
static void long_step(void) { every("opt", "h2o:recent=8", ON_MODULE, play_long_step); }
static void sinks(void) { every("modern/sinks", "", ON_CPU, play_some); }
static void latents(void) { every("modern/latent", "", ON_CPU, play_some); }
static void chunks(void) { every("modern/chunks", "", ON_CPU, play_some); }
static void sinks_module(void) { every("modern/sinks", "h2o", ON_MODULE, play_some); }
static void latents_module(void) { every("modern/latent", "h2o", ON_MODULE, play_some); }
static void chunks_module(void) { every("modern/chunks", "h2o", ON_MODULE, play_some); }
static void llama_gqa_module(void) { every("llama_gqa", "", ON_MODULE, play_some); }

int main(void)
{
    static const struct tap_test tests[] = {
        {"every policy with a rule for devices has a case", every_policy},
        {"opt: full cache", opt_full},
        {"opt: window", opt_window},
        {"opt: every policy", opt},
        {"llama: every policy", llama},
        {"llama, grouped heads: every policy", llama_gqa},
        {"sinks: every policy", sinks},
        {"latent attention: every policy", latents},
        {"chunks, and layers without positions: every policy", chunks},
        {"sinks (module)", sinks_module},
        {"latent attention (module)", latents_module},
        {"chunks, and layers without positions (module)", chunks_module},
        {"opt: streaming, scissorhands (module)", opt_module},
        {"llama, grouped heads: every policy (module)", llama_gqa_module},
        {"opt: a long step between short ones that run as graphs (module)", long_step},
        {"what a cache takes of the device is what its shapes predict (module)", device_bytes},
        {"what is kept, and beginning anew: one wait at most, and the host's figures (module)", few_waits},
        {0}};
    return tap_run("session", tests);
}
