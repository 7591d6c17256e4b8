/* SPDX-License-Identifier: Apache-2.0 */
/* The newer families against what PyTorch computed on the checkpoints of the shared fixtures: attention rows within
 * 3e-5, hidden states, what the head multiplies and logits within 1e-4 of the largest; layer by layer, and by a session
 * with a cache that holds everything, at once and token by token; on the CPU, and the beginnings on the module. On the
 * module also what a layer takes of its memory, for formats, too, that it does not keep. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/engine/session.h"
#include "src/model/layers/layer_parts.h"
#include "tests/tap.h"
#include "tests/unit/modern.h"
#include "tests/unit/pass.h"
#include "tests/unit/reference.h"

static struct sh_err e;

enum { MOST_ROWS = 128, ON_A_MODULE = 20, STEPS_ON_A_MODULE = 6 };

struct known {                          /* of one sequence                                        */
    int n_row, row[MOST_ROWS];          /* the positions that the tensors hold                    */
    int length, vocab, out, width;      /* out: logits of each row that the tensors hold */
    const float *attn, *hidden, *final, *logits;
};

struct fixture {
    struct reference *r;
    struct sh_model *m;
    const struct sh_arch *arch;
    int n_attn, attn_layer[MOST_LAYER];
    int n, length[MOST_SEQ];
    const int32_t *tokens[MOST_SEQ];
    struct known known[MOST_SEQ];
};

static const float *tensor(struct fixture *f, int s, const char *what, int whole, size_t n)
{
    char name[40];
    snprintf(name, sizeof name, whole ? "%s" : "%s_rows", what);
    return reference_tensor(f->r, s, name, n);
}

static void read_known(struct fixture *f, int s, const json_t *sequence)
{
    struct known *k = &f->known[s];
    const struct sh_arch *c = f->arch;
    const json_t *rows = json_object_get(sequence, "rows");
    int whole = !rows;
    *k = (struct known){.length = f->length[s], .vocab = c->n_vocab, .out = sh_dim_size(c, SH_DIM_OUT),
                        .width = c->d_embed};
    k->n_row = whole ? k->length : (int)json_array_size(rows);
    CU_ASSERT_FATAL(k->n_row <= MOST_ROWS);
    for (int i = 0; i < k->n_row; i++)
        k->row[i] = whole ? i : (int)json_integer_value(json_array_get(rows, (size_t)i));
    size_t n = (size_t)k->n_row, layers = (size_t)c->n_layer, heads = (size_t)f->n_attn * (size_t)c->n_head;
    k->attn = tensor(f, s, "attn", whole, heads * n * (size_t)k->length);
    k->hidden = tensor(f, s, "hidden", whole, layers * n * (size_t)c->d_model);
    k->final = tensor(f, s, "final", whole, n * (size_t)k->width);
    k->logits = tensor(f, s, "logits", whole, n * (size_t)k->out);
    CU_ASSERT_FATAL(k->attn && k->logits);
}

/* 0: the fixtures are not there, and the test has been skipped. family: NULL is any. */
static int open_fixture(struct fixture *f, const char *folder, const char *family)
{
    char name[80];
    snprintf(name, sizeof name, "modern/%s", folder);
    *f = (struct fixture){.r = reference_open(name)};
    if (!f->r) {
        tap_skip("the shared fixtures are not there");
        return 0;
    }
    f->m = sh_model_open(reference_folder(f->r), &e);
    if (!f->m)
        printf("# %s\n", e.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f->m);
    CU_ASSERT(!family || !strcmp(sh_model_family(f->m), family));
    f->arch = sh_model_arch(f->m);
    f->n = reference_count(f->r);
    char *path = xasprintf("%s/ref.json", reference_folder(f->r));
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error), *layers = json_object_get(root, "attn_layers");
    f->n_attn = (int)json_array_size(layers);
    CU_ASSERT_FATAL(f->n_attn > 0 && f->n_attn <= MOST_LAYER);
    for (int i = 0; i < f->n_attn; i++)
        f->attn_layer[i] = (int)json_integer_value(json_array_get(layers, (size_t)i));
    for (int s = 0; s < f->n; s++) {
        f->length[s] = reference_tokens(f->r, s, &f->tokens[s]);
        read_known(f, s, json_array_get(json_object_get(root, "sequences"), (size_t)s));
    }
    json_decref(root);
    free(path);
    return 1;
}

static void close_fixture(struct fixture *f)
{
    sh_model_close(f->m);
    reference_close(f->r);
}

/* Of those that are no logits of tokens which never come next. */
static double largest(const float *x, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = x[i] > -1e29f ? fmax(most, fabs((double)x[i])) : most;
    return most;
}

static double off_by(const float *found, const float *wanted, size_t n)
{
    double off = 0;
    for (size_t i = 0; i < n; i++)
        off = fmax(off, isnan(found[i]) ? INFINITY : fabs((double)found[i] - (double)wanted[i]));
    return off;
}

/* Rows of the pass that the reference has, in sequence s. */
static double attention_off(const struct fixture *f, const struct pass *p, int s)
{
    const struct known *k = &f->known[s];
    size_t length = (size_t)k->length;
    int n = pass_length(p, s);
    double off = 0;
    for (int a = 0; a < f->n_attn; a++)
        for (int head = 0; head < f->arch->n_head; head++)
            for (int i = 0; i < k->n_row && k->row[i] < n; i++) {
                const float *at = p->rows[f->attn_layer[a]][s] + (size_t)head * pass_triangle(n);
                size_t row = ((size_t)a * (size_t)f->arch->n_head + (size_t)head) * (size_t)k->n_row + (size_t)i;
                off = fmax(off, off_by(at + pass_triangle(k->row[i]), k->attn + row * length, (size_t)k->row[i] + 1));
            }
    return off;
}

static double hidden_off(const struct fixture *f, const struct pass *p, int s)
{
    const struct known *k = &f->known[s];
    size_t width = (size_t)f->arch->d_model, all = (size_t)k->n_row * width;
    double off = 0;
    for (int layer = 0; layer < f->arch->n_layer && k->hidden; layer++)
        for (int i = 0; i < k->n_row && k->row[i] < pass_length(p, s); i++) {
            const float *found = p->hidden[layer] + (size_t)(p->start[s] + k->row[i]) * sh_arch_row(f->arch);
            off = fmax(off, off_by(found, k->hidden + (size_t)layer * all + (size_t)i * width, width) /
                            largest(k->hidden + (size_t)layer * all, all));
        }
    return off;
}

static void check_pass(const struct fixture *f, enum which on, int most)
{
    int length[MOST_SEQ];
    for (int s = 0; s < f->n; s++)
        length[s] = f->length[s] < most ? f->length[s] : most;
    int n = most < MOST_ROWS ? 1 : f->n;
    struct pass *p = pass_run(on, f->m, f->tokens, length, n, SH_F32);
    for (int s = 0; p && s < n; s++) {
        double attention = attention_off(f, p, s), hidden = hidden_off(f, p, s);
        printf("# %s, %d tokens: off by %.1e in attention, %.1e in hidden states\n", sh_model_name(f->m), length[s],
               attention, hidden);
        CU_ASSERT(attention <= 3e-5 && hidden <= 1e-4);
    }
    if (p)
        pass_free(p);
}

struct reading {
    const struct fixture *f;
    double off;
    int taken;
};

static void take(void *to, int sequence, int position, int n, const float *logits)
{
    struct reading *r = to;
    const struct known *k = &r->f->known[sequence];
    size_t vocab = (size_t)k->vocab, out = (size_t)k->out;
    double most = largest(k->logits, (size_t)k->n_row * out);
    for (int i = 0; i < k->n_row; i++) {
        int at = k->row[i] - position;
        if (at < 0 || at >= n)
            continue;
        r->off = fmax(r->off, off_by(logits + (size_t)at * vocab, k->logits + (size_t)i * out, out) / most);
        for (size_t t = out; t < vocab; t++)
            r->off = logits[(size_t)at * vocab + t] > -1e29f ? 1 : r->off;
        r->taken++;
    }
}

/* Sequence s alone, its first `most` tokens, `by` at a time. */
static void read_sequence(struct sh_resident *res, const struct fixture *f, int s, int most, int by)
{
    struct sh_policy_spec full;
    int length = f->length[s] < most ? f->length[s] : most;
    int *budget = xcalloc((size_t)f->arch->n_layer * (size_t)f->arch->n_kv_head, sizeof *budget);
    for (int i = 0; i < f->arch->n_layer * f->arch->n_kv_head; i++)
        budget[i] = 1;                  /* not looked at */
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse("full", &full, &e), 0);
    struct sh_session_setup setup = {.spec = &full, .budget = budget, .n_seq = 1, .n_token = length,
                                     .length = sh_arch_follows_length(f->arch) ? f->length[s] : 0,
                                     .format = {.bits = 32}};
    struct sh_session *session = sh_session_new(res, &setup, &e);
    if (!session)
        printf("# %s\n", e.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(session);
    struct fixture one = *f;
    one.known[0] = f->known[s];
    struct reading r = {.f = &one};
    for (int at = 0; at < length; at += by) {
        int start[] = {0, length - at < by ? length - at : by};
        CU_ASSERT_EQUAL_FATAL(sh_session_step(session, f->tokens[s] + at, start, take, &r, &e), 0);
    }
    if (r.off > 1e-4 || !r.taken)
        printf("# %s, sequence %d by %d: logits off by %.1e\n", sh_model_name(f->m), s, by, r.off);
    CU_ASSERT(r.taken > 0 && r.off <= 1e-4);
    sh_session_free(session);
    free(budget);
}

static void check_session(const struct fixture *f, enum which on, int most)
{
    struct target t;
    if (target_open(&t, on, 2))
        return;
    struct sh_resident_setup setup = {.backend = t.b, .device = t.d, .model = f->m, .dtype = SH_F32,
                                      .weight_bits = 16, .rows = MOST_ROWS, .positions = MOST_ROWS};
    struct sh_resident *r = sh_resident_open(&setup, &e);
    if (!r)
        printf("# %s\n", e.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    int n = most < MOST_ROWS ? 1 : f->n;
    for (int s = 0; s < n; s++) {
        read_sequence(r, f, s, most < MOST_ROWS ? STEPS_ON_A_MODULE : most, 1);     /* while tables are empty */
        read_sequence(r, f, s, most, MOST_ROWS);
    }
    sh_resident_close(r);
    target_close(&t);
}

/* A layer with all its experts takes no more of a device's memory than sh_model_kept_bytes predicts. */
static void check_room(const struct fixture *f)
{
    struct target t;
    if (target_open(&t, ON_MODULE, 2))
        return;
    for (int i = 0; i < 2 * f->arch->n_layer; i++) {
        enum sh_type dtype = i % 2 ? SH_F16 : SH_F32;
        struct sh_props before, after;
        t.b->props(t.d, &before);
        struct sh_layer *l = sh_layer_load(t.b, t.d, f->m, i / 2, dtype, 16, &e);
        CU_ASSERT_PTR_NOT_NULL_FATAL(l);
        CU_ASSERT_EQUAL(sh_experts_load_copies(l, &e), 0);
        t.b->props(t.d, &after);
        size_t said = sh_model_kept_bytes(f->m, i / 2, dtype, 0), took = after.taken_bytes - before.taken_bytes;
        size_t rounding = 512 * (40 + 3 * (size_t)f->arch->mix.n);      /* of each matrix and vector */
        if (took > said + rounding)
            printf("# %s, layer %d, %s: %zu bytes taken, %zu predicted\n", sh_model_name(f->m), i / 2,
                   sh_type_name(dtype), took, said);
        CU_ASSERT(took <= said + rounding);
        sh_layer_drop(l);
    }
    target_close(&t);
}

static void check(const char *folder, const char *family, enum which on, int most)
{
    struct fixture f;
    if (!open_fixture(&f, folder, family))
        return;
    check_pass(&f, on, most);
    check_session(&f, on, most);
    if (on == ON_MODULE)
        check_room(&f);
    close_fixture(&f);
}

#define MODERN_TEST(family, folder) \
    static void test_##folder(void) { check(#folder, #family, ON_CPU, MOST_ROWS); } \
    static void module_##folder(void) { check(#folder, #family, ON_MODULE, ON_A_MODULE); }
MODERN(MODERN_TEST)

/* Formats that a device has no kernels for. */
#define QUANTISED(TEST) \
    TEST(quantised_awq_1) TEST(quantised_bnb_nf4_1) TEST(quantised_fp8_block_1) TEST(quantised_gptq4_1) \
    TEST(quantised_ct_w8a16_channel)
#define ROOM_TEST(folder) \
    static void room_##folder(void) \
    { \
        struct fixture f; \
        if (!open_fixture(&f, #folder, NULL)) \
            return; \
        check_room(&f); \
        close_fixture(&f); \
    }
QUANTISED(ROOM_TEST)

/* Folders that are named, for families_variants.py. */
static char **named;

static void test_named(void)
{
    const char *name = *named++;
    check(name, NULL, ON_CPU, MOST_ROWS);
}

static int run_named(int n)
{
    struct tap_test *tests = xcalloc((size_t)n + 1, sizeof *tests);
    for (int i = 0; i < n; i++)
        tests[i] = (struct tap_test){named[i], test_named};
    int bad = tap_run("modern", tests);
    free(tests);
    return bad;
}

int main(int argc, char **argv)
{
    named = argv + 1;
    if (argc > 1)
        return run_named(argc - 1);
#define MODERN_ROW(family, folder) {#folder, test_##folder}, {#folder " (module)", module_##folder},
#define ROOM_ROW(folder) {#folder ": room (module)", room_##folder},
    static const struct tap_test tests[] = {MODERN(MODERN_ROW) QUANTISED(ROOM_ROW){0}};
    return tap_run("modern", tests);
}
