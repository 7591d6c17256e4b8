/* SPDX-License-Identifier: Apache-2.0 */
/* src/engine keeps its promises for every policy of the list: in layer 0, where nothing has been left out
 * yet, it keeps what a replay of the full attention keeps; steps of any length, batches and used sessions
 * give the same; no more slots are taken than the budget has; bytes are what the shapes say. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/replay/replay.h"
#include "src/base/mem.h"
#include "src/engine/session.h"
#include "tests/tap.h"
#include "tests/unit/pass.h"
#include "tests/unit/tried_policies.h"

static struct sh_err e;

enum { N = 90, BUDGET = 24, PREFILL = 10, MOST_HEADS = 16 };

struct stage {                          /* a model with a text */
    struct target on;
    struct sh_model *m;
    struct sh_resident *r;
    const struct sh_arch *arch;
    int32_t tokens[N];
    int budget[MOST_HEADS];
};

static void open_stage_as(struct stage *s, const char *name, enum sh_type dtype, int weight_bits)
{
    char path[96];
    snprintf(path, sizeof path, "checkpoints/%s", name);
    *s = (struct stage){.m = sh_model_open(tap_golden(path), &e)};
    CU_ASSERT_PTR_NOT_NULL_FATAL(s->m);
    s->arch = sh_model_arch(s->m);
    CU_ASSERT_FATAL(s->arch->n_layer * s->arch->n_kv_head <= MOST_HEADS && !target_open(&s->on, ON_CPU, 1));
    for (int i = 0; i < N; i++)
        s->tokens[i] = (int32_t)((i * 37 + 11) % 100);  /* no two alike: scores that are equal but for roundings */
    for (int i = 0; i < MOST_HEADS; i++)
        s->budget[i] = BUDGET;
    struct sh_resident_setup setup = {.backend = s->on.b, .device = s->on.d, .model = s->m, .dtype = dtype,
                                      .weight_bits = weight_bits, .rows = 64, .positions = N, .n_threads = 1};
    s->r = sh_resident_open(&setup, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s->r);
}

static void open_stage(struct stage *s, const char *name)
{
    open_stage_as(s, name, SH_F32, 16);
}

static void close_stage(struct stage *s)
{
    sh_resident_close(s->r);
    target_close(&s->on);
    sh_model_close(s->m);
}

static struct sh_session *new_session(struct stage *s, const struct sh_policy_spec *spec, int n_seq, int bits)
{
    struct sh_session_setup setup = {.spec = spec, .budget = s->budget, .n_seq = n_seq, .n_token = N,
                                     .prefill = PREFILL, .format = {.bits = bits, .group = 8, .meta = SH_F16},
                                     .seed = 7};
    struct sh_session *session = sh_session_new(s->r, &setup, &e);
    if (!session)
        printf("# %s: %s\n", spec->policy->name, e.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(session);
    return session;
}

/* Who is there at each step: bit j of set[head][t], and what was in layer 0. */
struct story {
    unsigned char (*set)[N][N];         /* [n_layer * n_kv_head]; a byte a token                  */
    int n_kv_head, most, sequence;
    float *k, *v;                       /* [n_kv_head][N][d_head] of layer 0; NULL: not wanted    */
};

static void watch(void *to, int sequence, int layer, int head, int t, const struct sh_cache *c, const float *row)
{
    struct story *s = to;
    int live = 0;
    if (sequence != s->sequence)
        return;
    for (int i = 0; i < c->n_slot; i++)
        if (c->pos[i] >= 0) {
            s->set[layer * s->n_kv_head + head][t][c->pos[i]] = 1;
            live++;
            if (s->k && layer == 0 && c->pos[i] == t) {
                size_t at = ((size_t)head * N + (size_t)t) * (size_t)c->d_head, n = (size_t)c->d_head * sizeof(float);
                memcpy(s->k + at, sh_cache_row(c, c->k, i), n);
                memcpy(s->v + at, sh_cache_row(c, c->v, i), n);
            }
        } else {
            CU_ASSERT(row[i] == 0);
        }
    s->most = live > s->most ? live : s->most;
    CU_ASSERT(live == c->n && c->n_slot >= live);
}

static struct story new_story(const struct stage *s, int with_vectors)
{
    size_t heads = (size_t)(s->arch->n_layer * s->arch->n_kv_head);
    struct story y = {.set = xcalloc(heads, sizeof *y.set), .n_kv_head = s->arch->n_kv_head};
    if (with_vectors) {
        y.k = xcalloc(heads * N * (size_t)s->arch->d_head, sizeof *y.k);
        y.v = xcalloc(heads * N * (size_t)s->arch->d_head, sizeof *y.v);
    }
    return y;
}

static void free_story(struct story *y)
{
    free(y->set);
    free(y->k);
    free(y->v);
}

static int differ(const struct stage *s, const struct story *a, const struct story *b, int n_head)
{
    (void)s;
    return memcmp(a->set, b->set, (size_t)n_head * sizeof *a->set) != 0;
}

/* The text in steps of so many tokens; returns the session's last logits' largest difference from *last,
 * which they replace. */
static double read_text(struct stage *s, struct sh_session *session, int by, struct story *y, float *last)
{
    double off = 0;
    sh_session_set_watch(session, y ? watch : NULL, y);
    for (int i = 0; i < N; i += by)
        CU_ASSERT_EQUAL_FATAL(
            sh_session_step(session, s->tokens + i, (int[]){0, N - i < by ? N - i : by}, NULL, NULL, &e), 0);
    const float *logits = sh_session_logits(session, 0);
    for (int i = 0; i < s->arch->n_vocab; i++) {
        off = fmax(off, fabs((double)(logits[i] - last[i])));
        last[i] = logits[i];
    }
    return off;
}

/* ---- the live cache and the replayed one ---- */

struct echo {
    unsigned char (*set)[N];            /* [t][j] */
    int wrong;
};

static void compare_sets(void *to, int cell, int t, const struct sh_cache *c)
{
    struct echo *y = to;
    unsigned char kept[N] = {0};
    (void)cell;
    for (int i = 0; i < c->n_slot; i++)
        if (c->pos[i] >= 0)
            kept[c->pos[i]] = 1;
    y->wrong += memcmp(kept, y->set[t], N) != 0;
}

static int replayed(const struct stage *s, const struct pass *p, const struct sh_policy_spec *spec,
                    const struct story *vectors, struct story *live, int head)
{
    int group = s->arch->n_head / s->arch->n_kv_head;
    size_t width = (size_t)s->arch->d_head;
    struct sh_replay_cell cell = {spec, BUDGET};
    struct sh_replay_setup setup = {.n_token = N, .prefill = PREFILL, .head = head, .n_layer = s->arch->n_layer,
                                    .group = group, .rows = SH_ROWS_RENORMALISED, .d_head = s->arch->d_head,
                                    .k = vectors->k + (size_t)head * N * width,
                                    .v = vectors->v + (size_t)head * N * width, .seed = 7};
    struct echo y = {.set = live->set[head]};
    struct sh_replay *r = sh_replay_new(&setup, &cell, 1);
    sh_replay_set_watch(r, compare_sets, &y);
    for (int t = 0; t < N; t++) {
        const float *row[8];
        for (int g = 0; g < group; g++)
            row[g] = p->rows[0][0] + (size_t)(head * group + g) * pass_triangle(N) + pass_triangle(t);
        CU_ASSERT_EQUAL_FATAL(sh_replay_row(r, t, 0, row, &e), 0);
    }
    sh_replay_free(r);
    return y.wrong;
}

static void as_replay(void)
{
    struct stage s;
    struct sh_policy_spec full, spec;
    open_stage(&s, "llama_gqa");
    const int32_t *tokens = s.tokens;
    struct pass *p = pass_run(ON_CPU, s.m, &tokens, (int[]){N}, 1, SH_F32);
    struct story vectors = new_story(&s, 1);
    float *last = xcalloc((size_t)s.arch->n_vocab, sizeof *last);
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse("full", &full, &e), 0);
    struct sh_session *session = new_session(&s, &full, 1, 32);
    read_text(&s, session, N, &vectors, last);
    sh_session_free(session);
    for (int i = 0; tried_policies[i]; i++) {
        CU_ASSERT_EQUAL_FATAL(sh_policy_parse(tried_policies[i], &spec, &e), 0);
        if (spec.policy->needs & (SH_NEEDS_QUERIES | SH_NEEDS_FUTURE))
            continue;
        struct story live = new_story(&s, 0);
        session = new_session(&s, &spec, 1, 32);
        read_text(&s, session, 13, &live, last);
        for (int h = 0; h < s.arch->n_kv_head; h++) {
            int wrong = replayed(&s, p, &spec, &vectors, &live, h);
            if (wrong)
                printf("# %s, head %d: %d steps differ\n", tried_policies[i], h, wrong);
            CU_ASSERT_EQUAL(wrong, 0);
        }
        sh_session_free(session);
        free_story(&live);
    }
    free_story(&vectors);
    free(last);
    pass_free(p);
    close_stage(&s);
}

/* ---- promises ---- */

/* Steps of 1 and of 37, and a session that has read something else before. */
static void same_story(struct stage *s, const struct sh_policy_spec *spec, const char *name, int bits)
{
    int heads = s->arch->n_layer * s->arch->n_kv_head, keeps_all = !strcmp(spec->policy->name, "full");
    struct story one = new_story(s, 0), many = new_story(s, 0), again = new_story(s, 0);
    float *last = xcalloc((size_t)s->arch->n_vocab, sizeof *last);
    struct sh_session *a = new_session(s, spec, 1, bits), *b = new_session(s, spec, 1, bits);
    struct sh_cache_bytes before = sh_session_bytes(a);
    read_text(s, a, 1, &one, last);
    double off = read_text(s, b, 37, &many, last);
    sh_session_restart(b, 0);
    double twice = read_text(s, b, 37, &again, last);
    struct sh_cache_bytes after = sh_session_bytes(a);
    sh_session_restart(b, 0);           /* where nobody looks on, a beginning may go another way */
    off = fmax(off, read_text(s, b, 20, NULL, last));
    int bad = differ(s, &one, &many, heads) || differ(s, &one, &again, heads) || off > 1e-4 || twice > 0 ||
              one.most > (keeps_all ? N : BUDGET) || memcmp(&before, &after, sizeof before) != 0;
    if (bad)
        printf("# %s, %d bits: sets differ %d %d, logits by %.1e and %.1e, at most %d kept\n", name, bits,
               differ(s, &one, &many, heads), differ(s, &one, &again, heads), off, twice, one.most);
    CU_ASSERT(!bad);
    sh_session_free(a);
    sh_session_free(b);
    free(last);
    free_story(&one);
    free_story(&many);
    free_story(&again);
}

static void steps(void)
{
    struct stage s;
    struct sh_policy_spec spec;
    static const char *const checkpoints[] = {"llama_gqa", "gemma2", "bloom"};
    for (int c = 0; c < 3; c++) {
        open_stage(&s, checkpoints[c]);
        for (int i = 0; tried_policies[i]; i++) {
            CU_ASSERT_EQUAL_FATAL(sh_policy_parse(tried_policies[i], &spec, &e), 0);
            if (spec.policy->needs & SH_NEEDS_FUTURE)
                continue;
            same_story(&s, &spec, tried_policies[i], 32);
            if (c == 0)
                same_story(&s, &spec, tried_policies[i], 8);
        }
        close_stage(&s);
    }
}

/* Sequences of a batch, which begin at different times, are each what they are alone. */
static void batches(void)
{
    enum { SEQ = 3 };
    static const int begins[SEQ] = {0, 7, 31}, length[SEQ] = {N, 60, N - 31};
    struct stage s;
    struct sh_policy_spec spec;
    open_stage(&s, "llama_gqa");
    int heads = s.arch->n_layer * s.arch->n_kv_head;
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse("h2o:recent=2", &spec, &e), 0);
    for (int q = 0; q < SEQ; q++) {
        struct story alone = new_story(&s, 0), together = new_story(&s, 0);
        struct sh_session *a = new_session(&s, &spec, 1, 32), *b = new_session(&s, &spec, SEQ, 32);
        together.sequence = q;
        sh_session_set_watch(a, watch, &alone);
        sh_session_set_watch(b, watch, &together);
        for (int t = 0; t < N; t += 5) {
            int32_t tokens[SEQ * 5];
            int start[SEQ + 1] = {0}, m = 0;
            for (int i = 0; i < SEQ; i++) {             /* sequence i reads its text from its own time on */
                for (int k = t; k < t + 5; k++)
                    if (k >= begins[i] && k - begins[i] < length[i])
                        tokens[m++] = s.tokens[(k - begins[i]) * (i + 1) % N];
                start[i + 1] = m;
            }
            int own[] = {0, start[q + 1] - start[q]};
            CU_ASSERT_EQUAL_FATAL(sh_session_step(b, tokens, start, NULL, NULL, &e), 0);
            CU_ASSERT_EQUAL_FATAL(sh_session_step(a, tokens + start[q], own, NULL, NULL, &e), 0);
        }
        CU_ASSERT_EQUAL(sh_session_length(b, q), length[q]);
        CU_ASSERT(!differ(&s, &alone, &together, heads));
        for (int i = 0; i < s.arch->n_vocab; i++)
            CU_ASSERT_DOUBLE_EQUAL(sh_session_logits(b, q)[i], sh_session_logits(a, 0)[i], 1e-4);
        sh_session_free(a);
        sh_session_free(b);
        free_story(&alone);
        free_story(&together);
    }
    close_stage(&s);
}

/* With weights in codes products of a few rows and of many round otherwise: logits are those of the text alone up to
 * that, and no more is promised (src/app/generate/generate_batch.h). */
static void batches_in_codes(void)
{
    enum { SEQ = 12, LENGTH = 30 };                     /* more than kernels/cpu/linear.c calls a few */
    static const struct { enum sh_type dtype; int bits; double off; } as[] = {
        {SH_F32, 16, 1e-4}, {SH_F16, 16, 1e-4}, {SH_F32, 8, 1e-4}, {SH_F32, 4, 1e-4}, {SH_F16, 4, 2e-2}};
    struct sh_policy_spec spec;
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse("full", &spec, &e), 0);
    for (size_t k = 0; k < sizeof as / sizeof *as; k++) {
        struct stage s;
        open_stage_as(&s, "llama_gqa", as[k].dtype, as[k].bits);
        for (int i = 0; i < MOST_HEADS; i++)
            s.budget[i] = N;
        struct sh_session *a = new_session(&s, &spec, 1, 32), *b = new_session(&s, &spec, SEQ, 32);
        double worst = 0, widest = 0;
        for (int t = 0; t < LENGTH; t++) {
            int32_t tokens[SEQ];
            int start[SEQ + 1] = {0}, own[] = {0, 1};
            for (int i = 0; i < SEQ; i++) {
                tokens[i] = s.tokens[t * (i + 1) % N];
                start[i + 1] = i + 1;
            }
            CU_ASSERT_EQUAL_FATAL(sh_session_step(b, tokens, start, NULL, NULL, &e), 0);
            CU_ASSERT_EQUAL_FATAL(sh_session_step(a, tokens, own, NULL, NULL, &e), 0);
            for (int i = 0; i < s.arch->n_vocab; i++) {
                worst = fmax(worst, fabs(sh_session_logits(b, 0)[i] - sh_session_logits(a, 0)[i]));
                widest = fmax(widest, fabs(sh_session_logits(a, 0)[i]));
            }
        }
        printf("# %s, %d bits: %g off, of %g\n", sh_type_name(as[k].dtype), as[k].bits, worst, widest);
        CU_ASSERT(widest > 0.1 && worst <= as[k].off * fmax(widest, 1));
        sh_session_free(a);
        sh_session_free(b);
        close_stage(&s);
    }
}

static void bytes(void)
{
    struct stage s;
    struct sh_policy_spec spec;
    open_stage(&s, "llama_gqa");
    size_t heads = (size_t)(s.arch->n_layer * s.arch->n_kv_head), d = (size_t)s.arch->d_head;
    static const int bits[] = {32, 16, 8, 4};
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse("window", &spec, &e), 0);
    for (int i = 0; i < 4; i++) {
        struct sh_session *session = new_session(&s, &spec, 2, bits[i]);
        struct sh_cache_bytes b = sh_session_bytes(session);
        size_t groups = (d + 7) / 8, slots = 2 * heads * BUDGET;
        CU_ASSERT_EQUAL(b.rows, slots * 2 * d * (size_t)bits[i] / 8);
        CU_ASSERT_EQUAL(b.meta, bits[i] < 16 ? slots * 2 * groups * 4 : 0);
        CU_ASSERT_EQUAL(b.positions, slots * sizeof(int));
        CU_ASSERT_EQUAL(b.policy, 0);
        CU_ASSERT_EQUAL(sh_cache_bytes_sum(&b), b.rows + b.meta + b.positions);
        sh_session_free(session);
    }
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse("knorm", &spec, &e), 0);
    struct sh_session *session = new_session(&s, &spec, 1, 8);
    CU_ASSERT(sh_session_bytes(session).policy >= heads * BUDGET * d * sizeof(float));  /* the keys as floats */
    sh_session_free(session);
    close_stage(&s);
}

/* A layer with a window has no more slots than that. */
static void windows(void)
{
    struct stage s;
    struct sh_policy_spec full;
    int seen = 0;
    open_stage(&s, "gemma2");
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse("full", &full, &e), 0);
    struct sh_session_setup setup = {.spec = &full, .budget = s.budget, .n_seq = 1, .n_token = N,
                                     .format = {.bits = 32}};
    struct sh_session *session = sh_session_new(s.r, &setup, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(session);
    for (int l = 0; l < s.arch->n_layer; l++) {
        int window = sh_arch_window(s.arch, l);
        const struct sh_kv_head *h = sh_kv_cache_head(sh_session_cache(session), 0, l, 0);
        CU_ASSERT_EQUAL(sh_kept_cache(h->kept)->head->capacity, window ? window : N);
        seen += window > 0 && window < N;
    }
    CU_ASSERT(seen > 0);
    sh_session_free(session);
    close_stage(&s);
}

static void refuses(struct stage *s, const char *policy, int budget, int prefill, struct sh_kv_format f,
                    const char *sentence)
{
    struct sh_policy_spec spec;
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse(policy, &spec, &e), 0);
    s->budget[1] = budget;
    struct sh_session_setup setup = {.spec = &spec, .budget = s->budget, .n_seq = 1, .n_token = N, .prefill = prefill,
                                     .format = f};
    struct sh_session *session = sh_session_new(s->r, &setup, &e);
    if (session || !strstr(e.text, sentence))
        printf("# %s: %s\n", policy, session ? "not refused" : e.text);
    CU_ASSERT(!session && strstr(e.text, sentence) != NULL && e.status == SH_MISUSED);
    sh_session_free(session);
    s->budget[1] = BUDGET;
}

static void refusals(void)
{
    struct stage s;
    struct sh_policy_spec spec;
    const struct sh_kv_format plain = {.bits = 32};
    open_stage(&s, "llama_gqa");
    refuses(&s, "h2o:recent=8,sinks=2", 10, 0, plain, "10 tokens (layer 0, head 1), but 10 are protected");
    refuses(&s, "window", 0, 0, plain, "0 tokens");
    refuses(&s, "oracle", 20, 0, plain, "needs future attention");
    refuses(&s, "observed", 20, 0, plain, "observed decides");
    refuses(&s, "window", 20, 0, (struct sh_kv_format){.bits = 5}, "5 bits");
    refuses(&s, "window", 20, 0, (struct sh_kv_format){.bits = 4, .group = 12}, "multiple of 8");
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse("window", &spec, &e), 0);
    struct sh_session *session = new_session(&s, &spec, 1, 32);
    int32_t tokens[N + 1] = {3, 4, 1 << 20};
    CU_ASSERT(sh_session_step(session, tokens, (int[]){0, 3}, NULL, NULL, &e) == -1 && strstr(e.text, "position 2"));
    CU_ASSERT_EQUAL(sh_session_length(session, 0), 0);
    tokens[2] = 5;
    CU_ASSERT_EQUAL(sh_session_step(session, tokens, (int[]){0, N}, NULL, NULL, &e), 0);
    CU_ASSERT(sh_session_step(session, tokens, (int[]){0, 1}, NULL, NULL, &e) == -1 && strstr(e.text, "maximum of"));
    sh_session_free(session);
    close_stage(&s);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"every policy: in layer 0 it keeps what replay keeps", as_replay},
        {"every policy: steps of any length give the same, a used session too", steps},
        {"batches: each sequence is what it is alone", batches},
        {"batches: in codes up to rounding", batches_in_codes},
        {"bytes follow from the shapes", bytes},
        {"a layer with a window has slots for the window", windows},
        {"what cannot be done is refused", refusals},
        {0}};
    return tap_run("engine", tests);
}
