/* SPDX-License-Identifier: Apache-2.0 */
/* Prompts in blocks and positions inside the cache, against a forward pass in Python that keeps a list of tokens
 * for every head (tests/oracle/prompt.py): what each query attends over, exactly; logits within 2e-5 of the
 * largest. And for every policy of the list: blocks of one token are the stream, one block is the stream with a
 * prefill, and a fork goes on as the text that it came from. Where a real device's near ties flip (near_ties.h) a
 * text is judged up to them. */
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
#include "tests/unit/near_ties.h"
#include "tests/unit/tried_policies.h"

enum { MOST_TOKENS = 256, MOST_HEADS = 16, ROWS = 64 };

static struct sh_err e;

struct stage {                          /* a model, opened */
    struct target on;
    struct sh_model *m;
    struct sh_resident *r;
    int heads, on_device;               /* on_device: sessions whose cache was there              */
};

/* -1: there is no such backend, and the running test has been skipped. */
static int open_stage(struct stage *s, const char *name, enum which which)
{
    char path[96];
    snprintf(path, sizeof path, "checkpoints/%s", name);
    *s = (struct stage){.m = sh_model_open(tap_golden(path), &e)};
    CU_ASSERT_PTR_NOT_NULL_FATAL(s->m);
    if (target_open(&s->on, which, 1)) {
        sh_model_close(s->m);
        return -1;
    }
    struct sh_resident_setup setup = {.backend = s->on.b, .device = s->on.d, .model = s->m, .dtype = SH_F32,
                                      .weight_bits = 16, .rows = ROWS, .positions = 160};
    s->r = sh_resident_open(&setup, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s->r);
    s->heads = s->r->arch->n_layer * s->r->arch->n_kv_head;
    CU_ASSERT_FATAL(s->heads <= MOST_HEADS);
    return 0;
}

static void close_stage(struct stage *s)
{
    sh_resident_close(s->r);
    target_close(&s->on);
    sh_model_close(s->m);
}

/* ---- golden runs ---- */

struct trial {
    int n, n_kv_head, wrong, taken, vocab;
    const int16_t *evict;               /* [n_layer, n_kv_head, n] */
    const float *logits;                /* [rows, vocab] */
    const json_t *rows;
    double off;
    struct near_ties *near;             /* NULL: nothing may differ                               */
    int is_reference;                   /* it learns the rows of this run                         */
};

static void see(void *to, int sequence, int layer, int head, int t, const struct sh_cache *c, const float *row)
{
    struct trial *y = to;
    const int16_t *evict = y->evict + (layer * y->n_kv_head + head) * y->n;
    unsigned char kept[MOST_TOKENS] = {0}, expected[MOST_TOKENS];
    int off = sequence != 0;
    double sum = 0;
    for (int i = 0; i < c->n_slot; i++) {
        if (c->pos[i] >= 0)
            kept[c->pos[i]]++;
        sum += (double)row[i];
    }
    for (int j = 0; j <= t; j++)
        expected[j] = evict[j] < 0 || evict[j] > t;
    off += memcmp(kept, expected, (size_t)t + 1) != 0 &&
           !(y->near && !y->is_reference && kept[t] && near_judge(y->near, layer, head, t, expected, kept));
    if (y->is_reference)
        near_row(y->near, layer, head, t, c->pos, row, c->n_slot, c->n);
    y->wrong += off > 0 || fabs(sum - 1) > 1e-5;
}

static void take_one(void *to, int sequence, int position, const float *logits)
{
    struct trial *y = to;
    size_t i;
    json_t *row;
    CU_ASSERT_FATAL(sequence == 0 && position == y->taken++);
    if (y->near && position >= near_until(y->near))
        return;
    json_array_foreach((json_t *)(uintptr_t)y->rows, i, row) {
        const float *want = y->logits + i * (size_t)y->vocab;
        double largest = 0;
        if (json_integer_value(row) != position)
            continue;
        for (int k = 0; k < y->vocab; k++)
            largest = fmax(largest, fabs((double)want[k]));
        for (int k = 0; k < y->vocab; k++) {
            double off = fabs((double)(logits[k] - want[k])) / largest;
            y->off = fmax(y->off, isnan(off) ? INFINITY : off);
        }
    }
}

static void take(void *to, int sequence, int position, int n, const float *logits)
{
    const struct trial *y = to;
    for (int i = 0; i < n; i++)
        take_one(to, sequence, position + i, logits + (size_t)i * (size_t)y->vocab);
}

static int whole(const json_t *c, const char *key)
{
    return (int)json_integer_value(json_object_get(c, key));
}

static const char *text(const json_t *c, const char *key)
{
    return json_string_value(json_object_get(c, key));
}

static const void *tensor(const struct sh_weights *file, int i, const char *what, size_t bytes)
{
    char name[64];
    snprintf(name, sizeof name, "%d.%s", i, what);
    const struct sh_stored *t = sh_weights_find(file, name);
    CU_ASSERT_FATAL(t && t->bytes == bytes);
    return t->at;
}

/* One case; bits 32. With near ties: watched, and nothing else. Was all as it should be? */
static int play_once(struct stage *s, const json_t *c, int number, const struct sh_weights *file,
                     struct near_ties *near)
{
    int ok = 1;
    int32_t tokens[MOST_TOKENS];
    const json_t *ids = json_object_get(c, "tokens");
    struct trial y = {.n = (int)json_array_size(ids), .n_kv_head = s->r->arch->n_kv_head,
                      .vocab = s->r->arch->n_vocab, .rows = json_object_get(c, "rows"), .near = near,
                      .is_reference = near && s->r->is_host};
    int budget[MOST_HEADS], prompt = whole(c, "prompt"), block = whole(c, "block");
    struct sh_policy_spec spec;
    CU_ASSERT_FATAL(y.n <= MOST_TOKENS && !sh_policy_parse(text(c, "policy"), &spec, &e));
    for (int i = 0; i < y.n; i++)
        tokens[i] = (int32_t)json_integer_value(json_array_get(ids, (size_t)i));
    for (int i = 0; i < MOST_HEADS; i++)
        budget[i] = whole(c, "budget");
    y.evict = tensor(file, number, "evict", (size_t)(s->heads * y.n) * sizeof *y.evict);
    y.logits = tensor(file, number, "logits", json_array_size(y.rows) * (size_t)y.vocab * sizeof(float));
    struct sh_session_setup setup = {
        .spec = &spec, .budget = budget, .n_seq = 1, .n_token = y.n, .prefill = whole(c, "prefill"), .block = block,
        .whole = whole(c, "prefill") > 0, .format = {.bits = 32},
        .positions = strcmp(text(c, "positions"), "cache") ? SH_POSITIONS_ORIGINAL : SH_POSITIONS_CACHE};
    int both = !near && (!s->on.small || number % 3 == 0);
    for (int watched = 1; watched >= !both; watched--) {        /* unwatched, a beginning may go another way */
        struct sh_session *session = sh_session_new(s->r, &setup, &e);
        CU_ASSERT_PTR_NOT_NULL_FATAL(session);
        s->on_device += !near && sh_session_cache(session) == NULL;
        if (watched)
            sh_session_set_watch(session, see, &y);
        y.taken = 0;
        CU_ASSERT_EQUAL(sh_session_prompt(session, tokens, (int[]){0, prompt}, take, &y, &e), 0);
        CU_ASSERT_EQUAL(sh_session_step(session, tokens + prompt, (int[]){0, y.n - prompt}, take, &y, &e), 0);
        CU_ASSERT_EQUAL(y.taken, y.n);
        CU_ASSERT((sh_session_bytes(session).block > 0) == (block > 0));
        if (y.wrong || y.off > 2e-5)
            printf("# %s, %s, %s positions, blocks of %d: %d sets wrong, logits off by %.1e\n", text(c, "checkpoint"),
                   text(c, "policy"), text(c, "positions"), block, y.wrong, y.off);
        ok &= !y.wrong && y.off <= 2e-5;
        sh_session_free(session);
    }
    return ok;
}

/* Once more, compared with the processor's rows: does it differ by near ties alone? */
static int play_judged(struct stage *s, const json_t *c, int number, const struct sh_weights *file)
{
    struct stage cpu;
    struct sh_policy_spec spec;
    const struct sh_arch *a = s->r->arch;
    if (s->r->is_host || target_is_emulated() || open_stage(&cpu, text(c, "checkpoint"), ON_CPU))
        return 0;
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse(text(c, "policy"), &spec, &e), 0);
    struct near_ties *near = near_new(&spec, a->n_layer, a->n_kv_head, a->n_head / a->n_kv_head, a->d_head,
                                      (int)json_array_size(json_object_get(c, "tokens")));
    int ok = play_once(&cpu, c, number, file, near) && play_once(s, c, number, file, near) && near->n_flip > 0;
    printf("# near ties that flipped in %s, %s: %d, the first at token %d\n", text(c, "checkpoint"),
           text(c, "policy"), near->n_flip, near_until(near));
    near_free(near);
    close_stage(&cpu);
    return ok;
}

static void play(struct stage *s, const json_t *c, int number, const struct sh_weights *file)
{
    CU_ASSERT(play_once(s, c, number, file, NULL) || play_judged(s, c, number, file));
}

static void golden(const char *checkpoint, enum which which)
{
    json_error_t error;
    struct stage s;
    json_t *root = json_load_file(tap_golden("session/prompt.json"), 0, &error), *c;
    struct sh_weights *file = sh_weights_open(tap_golden("session/prompt.safetensors"), &e);
    size_t i;
    int n = 0;
    CU_ASSERT_FATAL(root && file);
    if (open_stage(&s, checkpoint, which)) {
        sh_weights_close(file);
        json_decref(root);
        return;
    }
    json_array_foreach(json_object_get(root, "cases"), i, c)
        if (!strcmp(text(c, "checkpoint"), checkpoint)) {
            play(&s, c, (int)i, file);
            n++;
        }
    CU_ASSERT(n >= 20 && (s.on.small || s.on_device == (s.r->is_host ? 0 : 18)));
    close_stage(&s);
    sh_weights_close(file);
    json_decref(root);
}

static void learned(void) { golden("opt", ON_CPU); }
static void rotary(void) { golden("llama_gqa", ON_CPU); }
static void alibi(void) { golden("bloom", ON_CPU); }
static void learned_module(void) { golden("opt", ON_MODULE); }
static void rotary_module(void) { golden("llama_gqa", ON_MODULE); }
static void alibi_module(void) { golden("bloom", ON_MODULE); }

/* ---- every policy ---- */

enum { N = 90, BUDGET = 24, PROMPT = 50 };

struct story {                          /* who is there at each step, a byte a token */
    unsigned char (*set)[N][N];         /* [heads] */
    int n_kv_head, sequence;
    struct near_ties *near;             /* learns the rows; NULL: nobody does                     */
    const struct sh_arch *arch;
};

static void note(void *to, int sequence, int layer, int head, int t, const struct sh_cache *c, const float *row)
{
    struct story *y = to;
    int window = sh_arch_window(y->arch, layer), n_row = 0;
    for (int i = 0; i < c->n_slot; i++)
        n_row += c->pos[i] >= 0 && (!window || c->pos[i] > t - window);
    if (y->near)
        near_row(y->near, layer, head, t, c->pos, row, c->n_slot, n_row);
    for (int i = 0; i < c->n_slot && sequence == y->sequence; i++)
        if (c->pos[i] >= 0)
            y->set[layer * y->n_kv_head + head][t][c->pos[i]] = 1;
}

struct how { int block, prefill, whole, bits; enum sh_positions positions; };

static struct sh_session *new_session(struct stage *s, const struct sh_policy_spec *spec, const struct how *h,
                                      struct story *y, int n_seq)
{
    int budget[MOST_HEADS];
    for (int i = 0; i < MOST_HEADS; i++)
        budget[i] = BUDGET;
    struct sh_session_setup setup = {.spec = spec, .budget = budget, .n_seq = n_seq, .n_token = N, .seed = 7,
                                     .prefill = h->prefill, .whole = h->whole, .block = h->block,
                                     .positions = h->positions,
                                     .format = {.bits = h->bits, .group = 8, .meta = SH_F16}};
    struct sh_session *session = sh_session_new(s->r, &setup, &e);
    if (!session)
        printf("# %s\n", e.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(session);
    *y = (struct story){.set = xcalloc((size_t)s->heads, sizeof *y->set), .n_kv_head = s->r->arch->n_kv_head,
                        .arch = s->r->arch};
    sh_session_set_watch(session, note, y);
    return session;
}

/* No two alike: keys of the same token are of equal worth to some policies, and which of them leaves is then decided by
 * roundings, which need not be the same in a product of one row and in one of many. */
static const int32_t *words(void)
{
    static int32_t tokens[N];
    for (int i = 0; i < N; i++)
        tokens[i] = (int32_t)((i * 37 + 11) % 100);
    return tokens;
}

static double differ(const struct stage *s, const float *a, const float *b)
{
    double off = 0;
    for (int i = 0; i < s->r->arch->n_vocab; i++) {
        double x = fabs((double)(a[i] - b[i]));
        off = fmax(off, isnan(x) ? INFINITY : x);
    }
    return off;
}

/* Do two ways of reading a text keep the same but for near ties? */
static int near_alike(const struct stage *s, const struct story *x, const struct story *y)
{
    int ok = !target_is_emulated();
    for (int h = 0; h < s->heads; h++)
        for (int t = 0; t < N && ok; t++)
            ok = near_judge(x->near, h / x->n_kv_head, h % x->n_kv_head, t, x->set[h][t], y->set[h][t]);
    printf("# near ties that flipped: %d, the first at token %d\n", x->near->n_flip, near_until(x->near));
    return ok && x->near->n_flip > 0;
}

/* Two ways of reading the prompt that must end alike. */
static void same(struct stage *s, const char *policy, const struct how *a, const struct how *b)
{
    struct sh_policy_spec spec;
    struct story x, y;
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse(policy, &spec, &e), 0);
    struct sh_session *one = new_session(s, &spec, a, &x, 1), *two = new_session(s, &spec, b, &y, 1);
    struct sh_session *all[] = {one, two};
    const struct sh_arch *arch = s->r->arch;
    x.near = s->r->is_host ? NULL : near_new(&spec, arch->n_layer, arch->n_kv_head, arch->n_head / arch->n_kv_head,
                                             arch->d_head, N);
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL_FATAL(sh_session_prompt(all[i], words(), (int[]){0, PROMPT}, NULL, NULL, &e), 0);
        CU_ASSERT_EQUAL_FATAL(sh_session_step(all[i], words() + PROMPT, (int[]){0, N - PROMPT}, NULL, NULL, &e), 0);
    }
    double off = differ(s, sh_session_logits(one, 0), sh_session_logits(two, 0));
    int wrong = memcmp(x.set, y.set, (size_t)s->heads * sizeof *x.set) != 0;
    if (wrong || off > 1e-4)
        printf("# %s, blocks of %d and %d, %d bits: sets differ %d, logits by %.1e\n", policy, a->block, b->block,
               a->bits, wrong, off);
    CU_ASSERT((!wrong && off <= 1e-4) || (x.near && wrong && near_alike(s, &x, &y)));
    near_free(x.near);
    sh_session_free(one);
    sh_session_free(two);
    free(x.set);
    free(y.set);
}

static void alike(enum which which)
{
    static const char *const checkpoints[] = {"llama_gqa", "gemma2", "bloom"};
    static const struct how stream = {.bits = 32}, ones = {.bits = 32, .block = 1},
        seen = {.bits = 32, .prefill = PROMPT},
        once = {.bits = 32, .prefill = PROMPT, .whole = 1, .block = PROMPT},
        cache = {.bits = 32, .positions = SH_POSITIONS_CACHE},
        cache_ones = {.bits = 32, .positions = SH_POSITIONS_CACHE, .block = 1};
    for (int c = 0; c < 3; c++) {
        struct stage s;
        if (open_stage(&s, checkpoints[c], which))
            return;
        if (s.on.small && c > 0) {
            close_stage(&s);
            continue;
        }
        for (int i = 0; tried_policies[i]; i++) {
            struct sh_policy_spec spec;
            CU_ASSERT_EQUAL_FATAL(sh_policy_parse(tried_policies[i], &spec, &e), 0);
            if (spec.policy->needs & SH_NEEDS_FUTURE || (!s.r->is_host && !spec.policy->device) ||
                (target_is_emulated() && c && i % 2 != c - 1))      /* slow: all in the first, half in each other */
                continue;
            if (!(spec.policy->needs & SH_NEEDS_PROMPT)) {
                same(&s, tried_policies[i], &stream, &ones);
                same(&s, tried_policies[i], &cache, &cache_ones);
            }
            same(&s, tried_policies[i], &seen, &once);
        }
        close_stage(&s);
    }
}

static void as_stream(void) { alike(ON_CPU); }
static void as_stream_module(void) { alike(ON_MODULE); }

/* Sequence 0 reads PROMPT tokens, sequence 1 takes over, and both read the rest. */
static void fork(struct stage *s, const char *policy, int bits, enum sh_positions positions)
{
    struct sh_policy_spec spec;
    struct story first, second;
    struct how how = {.bits = bits, .prefill = 10, .positions = positions};
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse(policy, &spec, &e), 0);
    if (spec.policy->needs & SH_NEEDS_FUTURE)
        return;
    struct sh_session *a = new_session(s, &spec, &how, &first, 1), *b = new_session(s, &spec, &how, &second, 2);
    second.sequence = 1;
    CU_ASSERT_EQUAL_FATAL(sh_session_step(b, words() + 3, (int[]){0, 0, 30}, NULL, NULL, &e), 0);   /* is overwritten */
    CU_ASSERT_EQUAL_FATAL(sh_session_step(a, words(), (int[]){0, PROMPT}, NULL, NULL, &e), 0);
    sh_session_fork(b, 1, a, 0);
    CU_ASSERT_EQUAL(sh_session_length(b, 1), PROMPT);
    CU_ASSERT_EQUAL(differ(s, sh_session_logits(a, 0), sh_session_logits(b, 1)), 0);
    CU_ASSERT_EQUAL_FATAL(sh_session_step(b, words() + PROMPT, (int[]){0, 0, N - PROMPT}, NULL, NULL, &e), 0);
    CU_ASSERT_EQUAL_FATAL(sh_session_step(a, words() + PROMPT, (int[]){0, N - PROMPT}, NULL, NULL, &e), 0);
    double off = differ(s, sh_session_logits(a, 0), sh_session_logits(b, 1));
    int wrong = 0;
    for (int h = 0; h < s->heads; h++)
        wrong += memcmp(first.set[h][PROMPT], second.set[h][PROMPT], (N - PROMPT) * N) != 0;
    if (wrong || off > 0)
        printf("# %s, %d bits: %d heads differ, logits by %.1e\n", policy, bits, wrong, off);
    CU_ASSERT(!wrong && off == 0);
    sh_session_free(a);
    sh_session_free(b);
    free(first.set);
    free(second.set);
}

static void forks(void)
{
    struct stage s;
    if (open_stage(&s, "llama_gqa", ON_CPU))
        return;
    for (int i = 0; tried_policies[i]; i++) {
        fork(&s, tried_policies[i], 32, SH_POSITIONS_ORIGINAL);
        fork(&s, tried_policies[i], 4, SH_POSITIONS_CACHE);
    }
    close_stage(&s);
}

/* ---- a batch ---- */

enum { BATCH = 3 };

/* Prompts of a batch, one of which comes later, then tokens of all: each text as if it were alone, on the CPU. */
static void batch(struct stage *alone, struct stage *s, const char *policy)
{
    static const int first[BATCH + 1] = {0, 50, 50, 73}, later[BATCH + 1] = {0, 0, 31, 31};
    static const int rest[BATCH + 1] = {0, 5, 6, 13};
    struct how how = {.bits = 32, .block = 17};
    struct sh_policy_spec spec;
    struct story story;
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse(policy, &spec, &e), 0);
    struct sh_session *all = new_session(s, &spec, &how, &story, BATCH);
    CU_ASSERT((sh_session_cache(all) == NULL) == !s->r->is_host);
    sh_session_set_watch(all, NULL, NULL);
    free(story.set);
    CU_ASSERT_EQUAL_FATAL(sh_session_prompt(all, words(), first, NULL, NULL, &e), 0);
    CU_ASSERT_EQUAL_FATAL(sh_session_prompt(all, words() + 40, later, NULL, NULL, &e), 0);
    for (int i = 0; i < 3; i++)         /* steps of one row each become a graph */
        CU_ASSERT_EQUAL_FATAL(sh_session_step(all, words() + i, (int[]){0, 1, 2, 3}, NULL, NULL, &e), 0);
    CU_ASSERT_EQUAL_FATAL(sh_session_step(all, words() + 60, rest, NULL, NULL, &e), 0);
    for (int i = 0; i < BATCH; i++) {
        const int *start = i == 1 ? later : first;
        const int32_t *prompt = words() + (i == 1 ? 40 : 0) + start[i];
        int n = start[i + 1] - start[i];
        struct sh_session *one = new_session(alone, &spec, &how, &story, 1);
        sh_session_set_watch(one, NULL, NULL);
        free(story.set);
        CU_ASSERT_EQUAL_FATAL(sh_session_prompt(one, prompt, (int[]){0, n}, NULL, NULL, &e), 0);
        for (int k = 0; k < 3; k++)
            CU_ASSERT_EQUAL_FATAL(sh_session_step(one, words() + k + i, (int[]){0, 1}, NULL, NULL, &e), 0);
        n = rest[i + 1] - rest[i];
        CU_ASSERT_EQUAL_FATAL(sh_session_step(one, words() + 60 + rest[i], (int[]){0, n}, NULL, NULL, &e), 0);
        double off = differ(s, sh_session_logits(all, i), sh_session_logits(one, 0));
        if (off > 1e-4)
            printf("# %s, text %d: logits off by %.1e\n", policy, i, off);
        CU_ASSERT(off <= 1e-4);
        CU_ASSERT_EQUAL(sh_session_length(all, i), sh_session_length(one, 0));
        sh_session_free(one);
    }
    sh_session_free(all);
}

static void batches(enum which which)
{
    static const char *const some[] = {
        "window", "streaming", "h2o:score=mean,recent=3", "scissorhands:recent=4,window=20",
        "scissorhands:recent=4,window=8,counter=epochs,drop=1", NULL};
    struct stage alone, s;
    if (open_stage(&s, "llama_gqa", which))
        return;
    CU_ASSERT_EQUAL_FATAL(open_stage(&alone, "llama_gqa", ON_CPU), 0);
    for (int i = 0; some[i]; i++)
        batch(&alone, &s, some[i]);
    close_stage(&alone);
    close_stage(&s);
}

static void batches_cpu(void) { batches(ON_CPU); }
static void batches_module(void) { batches(ON_MODULE); }

int main(void)
{
    static const struct tap_test tests[] = {
        {"blocks and positions inside the cache: learned positions", learned},
        {"blocks and positions inside the cache: rotary, grouped heads", rotary},
        {"blocks and positions inside the cache: ALiBi", alibi},
        {"blocks: learned positions (module)", learned_module},
        {"blocks: rotary, grouped heads (module)", rotary_module},
        {"blocks: ALiBi (module)", alibi_module},
        {"every policy: blocks of one are the stream, one block a prefill", as_stream},
        {"the device's policies: blocks of one are the stream, one block a prefill (module)", as_stream_module},
        {"prompts of a batch in blocks, of different lengths", batches_cpu},
        {"prompts of a batch in blocks, of different lengths (module)", batches_module},
        {"every policy: a fork goes on as its text does, bit by bit", forks},
        {0}};
    return tap_run("prompt", tests);
}
