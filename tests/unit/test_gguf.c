/* SPDX-License-Identifier: Apache-2.0 */
/* GGUF files: metadata of every kind, the numbers that blocks of every format stand for, and tiny models of every
 * architecture, as llama.cpp's converter writes them, against what PyTorch computes on the same weights
 * (tests/oracle/gguf_files.py). Limits as in test_families.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "src/base/mem.h"
#include "src/model/coded_blocks.h"
#include "src/model/config/config.h"
#include "src/model/files/gguf.h"
#include "src/model/files/gguf_tensors.h"
#include "src/model/layers/layer.h"
#include "src/model/weights.h"
#include "tests/tap.h"
#include "tests/unit/blocks.h"
#include "tests/unit/pass.h"
#include "tests/unit/reference.h"
#include "tests/unit/scratch.h"

static struct sh_err e;

/* The golden file as the test's own copy of its path. */
static const char *golden(const char *name)
{
    static char path[4096];
    char file[200];
    snprintf(file, sizeof file, "gguf/%s", name);
    CU_ASSERT_PTR_NOT_NULL_FATAL(tap_golden(file));
    snprintf(path, sizeof path, "%s", tap_golden(file));
    return path;
}

static struct sh_weights *opened(const char *name)
{
    struct sh_weights *w = sh_weights_open(golden(name), &e);
    if (!w)
        printf("# %s\n", e.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    return w;
}

/* ---- metadata ---- */

static int64_t whole(const struct sh_gguf *g, const char *key)
{
    const struct sh_gguf_value *v = sh_gguf_find(g, key);
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    return sh_gguf_whole_at(v, 0);
}

static double real(const struct sh_gguf *g, const char *key)
{
    const struct sh_gguf_value *v = sh_gguf_find(g, key);
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    return sh_gguf_real_at(v, 0);
}

static void scalars(void)
{
    struct sh_weights *w = opened("types.gguf");
    const struct sh_gguf *g = sh_weights_gguf(w);
    int64_t n = 7;
    double x = 7;
    int flag = 7;
    struct sh_gguf_text word = {NULL, 0};
    CU_ASSERT(whole(g, "all.u8") == 200 && whole(g, "all.i8") == -100 && whole(g, "all.u16") == 60000);
    CU_ASSERT(whole(g, "all.i16") == -30000 && whole(g, "all.u32") == 4000000000 && whole(g, "all.i32") == -5);
    CU_ASSERT(whole(g, "all.u64") == INT64_MAX && whole(g, "all.i64") == -((int64_t)1 << 62));
    CU_ASSERT(real(g, "all.f32") == 0.25 && real(g, "all.f64") == 1e300 && real(g, "all.u64") == 0x1p63);
    CU_ASSERT(real(g, "all.i8") == -100 && whole(g, "all.bool") == 1);
    CU_ASSERT(!sh_gguf_flag(g, "all.bool", &flag, &e) && flag == 1);
    CU_ASSERT(!sh_gguf_word(g, "all.string", &word, &e) && sh_gguf_text_is(word, "a word"));
    CU_ASSERT(!sh_gguf_whole(g, "all.absent", 0, 9, &n, &e) && n == 7);
    CU_ASSERT(!sh_gguf_real(g, "all.absent", &x, &e) && x == 7);
    CU_ASSERT(sh_gguf_whole(g, "all.u8", 0, 199, &n, &e) == -1 && strstr(e.text, "'all.u8': found 200, expected"));
    CU_ASSERT(sh_gguf_whole(g, "all.string", 0, 9, &n, &e) == -1 && strstr(e.text, "found 'a word', expected a whole"));
    CU_ASSERT(sh_gguf_real(g, "all.u8", &x, &e) == -1 && strstr(e.text, "found 200, expected a number"));
    CU_ASSERT(sh_gguf_flag(g, "all.f32", &flag, &e) == -1 && strstr(e.text, "found 0.25, expected true or false"));
    CU_ASSERT(sh_gguf_word(g, "all.bool", &word, &e) == -1 && strstr(e.text, "found true, expected a string"));
    CU_ASSERT(n == 7 && x == 7 && flag == 1);
    CU_ASSERT(sh_gguf_find(g, "all") == NULL && sh_gguf_find(g, "zzz") == NULL && g->alignment == 64);
    sh_weights_close(w);
}

static void arrays(void)
{
    static const char *const words[] = {"", "one", "\xc3\xbc" "ber", "four"};
    struct sh_weights *w = opened("types.gguf");
    const struct sh_gguf *g = sh_weights_gguf(w);
    struct sh_gguf_value *v = NULL;
    CU_ASSERT_FATAL(!sh_gguf_strings(g, "list.strings", &v, &e) && v->n == 4);
    for (size_t i = 4; i-- > 0;)
        CU_ASSERT(sh_gguf_text_is(sh_gguf_string_at(v, i), words[i]));
    CU_ASSERT(!sh_gguf_strings(g, "list.none", &v, &e) && v->n == 0);
    CU_ASSERT_FATAL(!sh_gguf_numbers(g, "list.reals", &v, &e) && v->n == 2);
    CU_ASSERT(sh_gguf_real_at(v, 0) == 0.5 && sh_gguf_real_at(v, 1) == -2.0 && sh_gguf_whole_at(v, 1) == -2);
    CU_ASSERT_FATAL(!sh_gguf_numbers(g, "list.whole", &v, &e) && v->n == 3);
    CU_ASSERT(sh_gguf_whole_at(v, 1) == -4 && sh_gguf_real_at(v, 2) == 5);
    CU_ASSERT_FATAL(!sh_gguf_numbers(g, "list.flags", &v, &e) && v->n == 2);
    CU_ASSERT(sh_gguf_whole_at(v, 0) == 1 && sh_gguf_whole_at(v, 1) == 0);
    CU_ASSERT(sh_gguf_find(g, "list.lists")->n == 2 && sh_gguf_find(g, "list.lists")->item == SH_GGUF_ARRAY);
    CU_ASSERT(!sh_gguf_strings(g, "list.absent", &v, &e) && v == NULL);
    CU_ASSERT(sh_gguf_strings(g, "list.reals", &v, &e) == -1 && strstr(e.text, "an array of 2 elements of kind f32"));
    CU_ASSERT(sh_gguf_numbers(g, "list.strings", &v, &e) == -1 && strstr(e.text, "expected an array of numbers"));
    sh_weights_close(w);
}

/* ---- formats ---- */

/* MXFP4 and NVFP4 have a negative zero, which the references read as 0. */
static int same(const float *x, const float *y, size_t n, int any_zero)
{
    for (size_t i = 0; i < n && any_zero; i++)
        if (!(x[i] == y[i]))
            return 0;
    return any_zero || !memcmp(x, y, n * sizeof *x);
}

static void check_formats(const char *file, const char *const *names, size_t n_name)
{
    char numbers[40];
    snprintf(numbers, sizeof numbers, "%s.f32", file);
    FILE *f = fopen(golden(numbers), "rb");
    snprintf(numbers, sizeof numbers, "%s.gguf", file);
    struct sh_weights *w = opened(numbers);
    CU_ASSERT_FATAL(f != NULL && sh_weights_count(w) == n_name);
    for (size_t i = 0; i < n_name; i++) {
        const struct sh_stored *t = sh_weights_at(w, i);
        size_t n = t->shape[0] * t->shape[1];
        float found[3 * 256], wanted[3 * 256];
        enum sh_type type = SH_BF16;
        CU_ASSERT_FATAL(t->rank == 2 && t->shape[0] == 3 && n <= 3 * 256 && t->packed != NULL);
        CU_ASSERT_FATAL(fread(wanted, sizeof *wanted, n, f) == n);
        CU_ASSERT(!strcmp(t->dtype, names[i]) && !sh_stored_type(t, &type, &e) && type == SH_F32);
        sh_stored_rows(t, 0, 1, found);
        sh_stored_rows(t, 1, 2, found + t->shape[1]);
        CU_ASSERT(same(found, wanted, n, !strcmp(names[i], "MXFP4")));
        CU_ASSERT(t->bytes == n / t->packed->elements * t->packed->bytes);
        CU_ASSERT((t->at - sh_weights_gguf(w)->map.at) % 32 == 0);
    }
    CU_ASSERT(fgetc(f) == EOF);
    fclose(f);
    sh_weights_close(w);
}

static void formats(void)
{
    static const char *const names[] = {"Q4_0", "Q4_1", "Q4_K", "Q5_0", "Q5_1", "Q5_K", "Q6_K", "Q8_0"};
    static const char *const few_bits[] = {"IQ1_M", "IQ1_S", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ3_S", "IQ3_XXS", "IQ4_NL",
                                           "IQ4_XS", "MXFP4", "Q1_0", "Q2_K", "Q3_K", "TQ1_0", "TQ2_0"};
    check_formats("types", names, 8);
    check_formats("blocks", few_bits, 15);
}

/* The blocks that products read are those numbers, too, but for the last digit. */
static void check_blocks(const struct sh_coded *c, size_t rows, const float *wanted)
{
    const struct sh_gguf_type *type = blocks_type(c->packing);
    unsigned char *at = xmalloc(rows * c->cols / type->elements * type->bytes);
    float x[128];
    CU_ASSERT(c->packing == SH_PACKED_FP4_128 && sh_coded_is_finite(c, 0, rows));
    sh_coded_blocks(c, c->packing, 0, rows, at);
    for (size_t i = 0; i < rows * c->cols; i++) {
        if (i % type->elements == 0)
            type->unpack(at + i / type->elements * type->bytes, x);
        CU_ASSERT(fabsf(x[i % type->elements] - wanted[i]) <= 2e-7f * fabsf(wanted[i]));
    }
    free(at);
}

/* NVFP4, whose blocks may have a factor in a tensor of its own; a stack has one for each matrix. */
static void scaled_blocks(void)
{
    static const struct sh_param none = {.name = NULL};
    static const struct sh_family family = {.params = &none};
    static const struct { const char *name; size_t rows, cols; int is_scaled; } known[] = {
        {"a.weight", 3, 64, 0}, {"b.weight", 3, 128, 1}, {"c.weight", 6, 64, 1}};
    struct sh_weights *w = opened("nvfp4.gguf");
    FILE *f = fopen(golden("nvfp4.f32"), "rb");
    CU_ASSERT_FATAL(f && !sh_gguf_fold_scales(w, &family, &e) && sh_weights_count(w) == 3);
    for (size_t i = 0; i < 3; i++) {
        const struct sh_stored *t = sh_weights_at(w, i);
        size_t rows = known[i].rows, cols = known[i].cols;
        float found[384], wanted[384];
        CU_ASSERT_FATAL(!strcmp(t->name, known[i].name) && !t->coded == !known[i].is_scaled);
        CU_ASSERT_FATAL(fread(wanted, sizeof *wanted, rows * cols, f) == rows * cols);
        CU_ASSERT(!strcmp(t->dtype, "NVFP4"));
        sh_stored_rows(t, 0, 2, found);
        sh_stored_rows(t, 2, rows - 2, found + 2 * cols);
        CU_ASSERT(same(found, wanted, rows * cols, 1));
        if (cols == 128)
            check_blocks(t->coded, rows, wanted);
    }
    fclose(f);
    sh_weights_close(w);
}

/* ---- models ---- */

static double largest(const float *x, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)x[i]));
    return most;
}

static double element(const struct sh_tensor *t, size_t i)
{
    return t->type == SH_F32   ? (double)((const float *)t->at)[i]
           : t->type == SH_F16 ? (double)sh_f16_to_f32(((const uint16_t *)t->at)[i])
                               : (double)sh_bf16_to_f32(((const uint16_t *)t->at)[i]);
}

static double attention_off(const struct pass *p, const float *wanted)
{
    int n = pass_length(p, 0), heads = p->arch->n_head;
    double off = 0;
    for (int layer = 0; layer < p->arch->n_layer; layer++) {
        const float *at = p->rows[layer][0];
        for (int row = 0; row < heads * n; row++)
            for (int k = 0; k <= row % n; k++, at++) {
                double x = (double)wanted[(size_t)(layer * heads * n + row) * (size_t)n + (size_t)k];
                off = fmax(off, isnan(*at) ? INFINITY : fabs((double)*at - x));
            }
    }
    return off;
}

/* The last norm of a row, in place. The norm's weights are those that multiply. */
static void last_norm(const struct sh_arch *c, const struct sh_tensor *w, const struct sh_tensor *b, double *x)
{
    double mean = 0, squares = 0;
    for (int i = 0; i < c->d_model && c->norm == SH_NORM_LAYER; i++)
        mean += x[i] / c->d_model;
    for (int i = 0; i < c->d_model; i++)
        squares += (x[i] - mean) * (x[i] - mean) / c->d_model;
    for (int i = 0; i < c->d_model; i++)
        x[i] = (x[i] - mean) / sqrt(squares + (double)c->norm_eps) * element(w, (size_t)i) +
               (b->at ? element(b, (size_t)i) : 0);
}

/* Largest deviation of the norm's output and of the logits, each as a share of the largest. */
static void check_end(struct sh_model *m, const struct pass *p, const float *final, const float *logits, double off[2])
{
    const struct sh_arch *c = p->arch;
    struct sh_tensor w, b, head;
    size_t n = (size_t)pass_length(p, 0), wide = (size_t)c->d_model, words = (size_t)c->n_vocab;
    double *x = xcalloc(wide, sizeof *x), cap = (double)c->head_softcap;
    CU_ASSERT_FATAL(!sh_model_tensor(m, SH_FINAL_NORM_W, -1, &w, &e) && !sh_model_tensor(m, SH_HEAD, -1, &head, &e));
    CU_ASSERT_FATAL(!sh_model_tensor(m, SH_FINAL_NORM_B, -1, &b, &e));
    for (size_t row = 0; row < n; row++) {
        for (size_t i = 0; i < wide; i++)
            x[i] = (double)p->hidden[c->n_layer][row * wide + i];
        last_norm(c, &w, &b, x);
        for (size_t i = 0; i < wide; i++)
            off[0] = fmax(off[0], fabs(x[i] - (double)final[row * wide + i]) / largest(final, n * wide));
        for (size_t i = 0; i < words; i++) {
            double y = 0;
            for (size_t k = 0; k < wide; k++)
                y += element(&head, i * wide + k) * x[k];
            y = cap > 0 ? cap * tanh(y / cap) : y;
            off[1] = fmax(off[1], fabs(y - (double)logits[row * words + i]) / largest(logits, n * words));
        }
    }
    free(x);
}

static void check_model(const char *name, const char *family, const char *stored_as)
{
    char file[80], place[80];
    const int32_t *tokens;
    double off[3] = {0};
    snprintf(file, sizeof file, "%s.gguf", name);
    snprintf(place, sizeof place, "../gguf/%s", name);
    struct reference *r = reference_open(place);
    struct sh_model *m = sh_model_open(golden(file), &e);
    if (!m)
        printf("# %s\n", e.text);
    CU_ASSERT_FATAL(r != NULL && m != NULL);
    const struct sh_arch *c = sh_model_arch(m);
    int n = reference_tokens(r, 0, &tokens);
    size_t rows = (size_t)n, cells = (size_t)c->n_layer * (size_t)c->n_head * rows * rows;
    CU_ASSERT_STRING_EQUAL(sh_model_family(m), family);
    CU_ASSERT_STRING_EQUAL(sh_model_name(m), name);
    CU_ASSERT_STRING_EQUAL(sh_model_stored_as(m), stored_as);
    struct pass *p = pass_run(ON_CPU, m, &tokens, &n, 1, SH_F32);
    off[0] = attention_off(p, reference_tensor(r, 0, "attn", cells));
    check_end(m, p, reference_tensor(r, 0, "final", rows * (size_t)c->d_model),
              reference_tensor(r, 0, "logits", rows * (size_t)c->n_vocab), off + 1);
    printf("# %s: off by %.1e in attention, %.1e at the end, %.1e in logits\n", name, off[0], off[1], off[2]);
    for (int i = 0; i < 3; i++)
        CU_ASSERT(off[i] <= 2e-5);
    pass_free(p);
    sh_model_close(m);
    reference_close(r);
}

#define MODELS(X) \
    X(llama, "llama", "f16") X(llama3, "llama", "bf16") X(llama3_turns, "llama", "f16") \
    X(llama3_step, "llama", "f16") X(llama_bias, "llama", "f16") X(llama_yarn, "llama", "f16") \
    X(qwen2, "qwen2", "f32") X(qwen3, "qwen3", "f16") X(phi3, "phi3", "f16") \
    X(gemma2, "gemma2", "f16") X(gemma3, "gemma3", "f16") X(gpt2, "gpt2", "f16") X(gptneox, "gpt_neox", "f16") \
    X(bloom, "bloom", "f16") X(phi3_long, "phi3", "f16") X(quantised, "llama", "Q8_0") X(quantised_k, "llama", "Q6_K") \
    X(quantised_nv, "llama", "NVFP4")
#define MODEL_TEST(name, family, stored) static void test_##name(void) { check_model(#name, family, stored); }
MODELS(MODEL_TEST)

/* LLaMA 3's parameters are found again, the usual ones exactly. */
static void scaling_is_found(void)
{
    struct sh_arch a;
    struct sh_config *c = sh_config_open(golden("llama3.gguf"), &e);
    CU_ASSERT_FATAL(c != NULL && !sh_config_arch(c, &a, &e));
    CU_ASSERT(a.rope.kind == SH_ROPE_LLAMA3 && a.rope.factor == 8 && a.rope.low == 1 && a.rope.high == 4);
    CU_ASSERT(a.rope.original == 100 && a.flags & SH_TIED_HEAD);
    sh_config_close(c);
}

/* A split model is the same model, tensor by tensor. */
static void split(void)
{
    struct sh_weights *whole_file = opened("llama.gguf"), *w = opened("split-00001-of-00002.gguf");
    CU_ASSERT_FATAL(sh_weights_count(w) == sh_weights_count(whole_file));
    for (size_t i = 0; i < sh_weights_count(w); i++) {
        const struct sh_stored *a = sh_weights_at(w, i), *b = sh_weights_at(whole_file, i);
        CU_ASSERT(!strcmp(a->name, b->name) && a->bytes == b->bytes && !memcmp(a->at, b->at, a->bytes));
    }
    CU_ASSERT(sh_weights_find(w, "output.weight") || sh_weights_find(w, "token_embd.weight"));
    sh_weights_close(w);
    sh_weights_close(whole_file);
    struct sh_model *m = sh_model_open(golden("split-00001-of-00002.gguf"), &e);
    CU_ASSERT(m != NULL);
    sh_model_close(m);
    CU_ASSERT(sh_weights_open(golden("split-00002-of-00002.gguf"), &e) == NULL);
    CU_ASSERT(strstr(e.text, "'split.no': found 1, expected 0") && strstr(e.hint, "first file"));
}

/* ---- where it may lie, and what it may not hold ---- */

/* `old`, unless it is NULL, becomes `new`, which is as long. */
static const char *changed(const char *from, const char *name, const char *old, const char *new)
{
    FILE *f = fopen(golden(from), "rb");
    char *all = xmalloc(1 << 20);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    size_t n = fread(all, 1, 1 << 20, f);
    char *found = old ? memmem(all, n, old, strlen(old)) : NULL;
    CU_ASSERT_FATAL(!old || (found && strlen(new) == strlen(old)));
    if (found)
        memcpy(found, new, strlen(new));
    const char *path = scratch_write(name, all, n);
    fclose(f);
    free(all);
    return path;
}

static void copy(const char *from, const char *name)
{
    changed(from, name, NULL, NULL);
}

/* Scales of NVFP4 matrices that do not fit them. */
static void spare_scales(void)
{
    static const struct { const char *from, *old, *new, *says; } cases[] = {
        {"quantised_nv.gguf", "blk.0.attn_k.scale", "blk.0.attn_x.scale", "tensor 'blk.0.attn_x.scale', which"},
        {"quantised_nv.gguf", "blk.0.attn_k.input_scale", "blk.0.attn_x.input_scale", "'blk.0.attn_x.input_scale'"},
        {"quantised_nv.gguf", "blk.0.attn_k.weight", "blk.1.attn_k.weight", "'blk.0.attn_k.weight' is missing"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sh_model *m = sh_model_open(changed(cases[i].from, "m.gguf", cases[i].old, cases[i].new), &e);
        if (m || !strstr(e.text, cases[i].says))
            printf("# %s: %s\n", cases[i].new, m ? "taken" : e.text);
        CU_ASSERT(m == NULL && strstr(e.text, cases[i].says));
        sh_model_close(m);
    }
    static const struct sh_param none = {.name = NULL};
    static const struct sh_family family = {.params = &none};
    struct sh_weights *w = sh_weights_open(changed("nvfp4.gguf", "m.gguf", "c.scale", "a.scale"), &e);
    CU_ASSERT_FATAL(w && sh_gguf_fold_scales(w, &family, &e) == -1);
    CU_ASSERT(strstr(e.text, "'a.scale': found shape [2], expected [1] (one scale a matrix)") != NULL);
    sh_weights_close(w);
    scratch_clear();
}

/* A tensor that the tables do not know would be left out of the model. */
static void spare_tensors(void)
{
    struct sh_model *m = sh_model_open(changed("llama3.gguf", "m.gguf", "rope_freqs.weight", "rope_other.weight"), &e);
    CU_ASSERT(m == NULL && strstr(e.text, "tensor 'rope_other.weight'"));
    m = sh_model_open(changed("llama3.gguf", "m.gguf", "blk.1.ffn_norm", "blk.2.ffn_norm"), &e);
    CU_ASSERT(m == NULL && strstr(e.text, "tensor 'blk.1.ffn_norm.weight' is missing"));
    m = sh_model_open(changed("llama3.gguf", "m.gguf", "rope_freqs.weight", "v.pe_freqs.weight"), &e);
    CU_ASSERT(m != NULL && sh_model_arch(m)->rope.kind == SH_ROPE_PLAIN);   /* of a model that sees pictures, too */
    sh_model_close(m);
    scratch_clear();
}

static void folders(void)
{
    scratch_clear();
    copy("qwen2.gguf", "it.gguf");
    struct sh_model *m = sh_model_open(scratch_folder(), &e), *other = sh_model_open(scratch_path("it.gguf"), &e);
    CU_ASSERT_FATAL(m != NULL && other != NULL);
    CU_ASSERT(sh_model_fingerprint(m) == sh_model_fingerprint(other));
    CU_ASSERT(!strcmp(sh_model_name(other), "it") && !strcmp(sh_model_name(m), "it"));
    sh_model_close(m);
    sh_model_close(other);
    scratch_write("config.json", "{}", 2);
    CU_ASSERT(sh_weights_open_folder(scratch_folder(), &e) == NULL && strstr(e.hint, ".gguf"));
    remove(scratch_path("config.json"));
    copy("llama.gguf", "that.gguf");
    CU_ASSERT(sh_model_open(scratch_folder(), &e) == NULL && strstr(e.text, "found 2 GGUF models, expected one"));
    scratch_clear();
    copy("split-00001-of-00002.gguf", "m-00001-of-00002.gguf");
    CU_ASSERT(sh_model_open(scratch_folder(), &e) == NULL && strstr(e.text, "m-00002-of-00002.gguf: cannot be opened"));
    copy("split-00002-of-00002.gguf", "m-00002-of-00002.gguf");
    m = sh_model_open(scratch_folder(), &e);
    CU_ASSERT(m != NULL);
    sh_model_close(m);
    scratch_clear();
}

/* Gemma's largest models scale scores by the model's width, the others by that of a head; no key says so. */
static void scale_of_scores(void)
{
    static const char name[] = "gemma2.block_count";
    struct sh_arch a;
    char all[1 << 15];
    FILE *f = fopen(golden("gemma2.gguf"), "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    size_t n = fread(all, 1, sizeof all, f);
    fclose(f);
    char *count = memmem(all, n, name, strlen(name));
    CU_ASSERT_PTR_NOT_NULL_FATAL(count);
    for (int large = 0; large <= 1; large++) {
        count[strlen(name) + 4] = large ? 46 : 2;       /* after the key and the kind */
        struct sh_config *c = sh_config_open(scratch_write("m.gguf", all, n), &e);
        CU_ASSERT_FATAL(c != NULL && !sh_config_arch(c, &a, &e) && a.n_layer == (large ? 46 : 2));
        CU_ASSERT(fabsf(a.scale - (large ? 0.5f : 0.35355339f)) < 1e-7f);
        sh_config_close(c);
    }
    scratch_clear();
}

/* The control with fresh weights knows the model from the metadata; its norms multiply by 1. */
static void random_twin(void)
{
    struct sh_tensor t;
    struct sh_model *m = sh_model_open_random(golden("gemma3.gguf"), 3, &e);
    CU_ASSERT_FATAL(m != NULL && !sh_model_tensor(m, SH_Q_NORM_W, 1, &t, &e));
    for (size_t i = 0; i < (size_t)t.cols; i++)
        CU_ASSERT(element(&t, i) == 1);
    CU_ASSERT(!sh_model_tensor(m, SH_Q_W, 0, &t, &e) && t.rows == 32 && t.cols == 16);
    CU_ASSERT_STRING_EQUAL(t.name, "blk.0.attn_q.weight");
    sh_model_close(m);
}

/* A layer that is dropped gives its memory back and comes again the same. */
static void layers_come_again(void)
{
    struct sh_tensor t;
    struct sh_model *m = sh_model_open(golden("quantised.gguf"), &e);
    CU_ASSERT_FATAL(m != NULL && !sh_model_tensor(m, SH_K_W, 0, &t, &e));
    size_t bytes = (size_t)t.rows * (size_t)t.cols * sizeof(float);
    float *before = xmalloc(bytes);
    memcpy(before, t.at, bytes);
    sh_model_drop(m, 0);
    CU_ASSERT(t.type == SH_F32 && !sh_model_tensor(m, SH_K_W, 0, &t, &e) && !memcmp(before, t.at, bytes));
    CU_ASSERT(sh_model_layer_bytes(m, 0) > bytes && sh_model_parameters(m) > 0);
    free(before);
    sh_model_close(m);
}

/* ---- a packed token table ---- */

enum { N_SOME = 4, WIDEST = 256 };
static const int32_t some_tokens[N_SOME] = {63, 0, 5, 63};

static int embed(struct sh_model *m, const int32_t *tokens, float *out)
{
    struct sh_dev *d = sh_backend_cpu.open(&(struct sh_open){.n_threads = 1}, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(d);
    int bad = sh_embed(&sh_backend_cpu, d, m, tokens, N_SOME, out, &e);
    sh_backend_cpu.close(d);
    return bad;
}

/* Rows that are looked up one by one are those of the whole table, which is not unpacked for them. */
static void packed_rows(void)
{
    static const char *const names[] = {"quantised.gguf", "quantised_k.gguf"};
    for (size_t i = 0; i < 2; i++) {
        static float rows[N_SOME * WIDEST], hidden[N_SOME * WIDEST], again[N_SOME * WIDEST];
        struct sh_tensor t;
        struct sh_model *m = sh_model_open(golden(names[i]), &e);
        CU_ASSERT_FATAL(m != NULL && sh_model_is_packed(m, SH_TOK_EMBED, -1, &t));
        CU_ASSERT_FATAL(!t.at && t.type == SH_F32 && t.rows == 64 && t.cols <= WIDEST);
        CU_ASSERT_STRING_EQUAL(t.name, "token_embd.weight");
        size_t width = (size_t)t.cols * sizeof(float);
        sh_model_rows(m, SH_TOK_EMBED, -1, some_tokens, N_SOME, rows);
        CU_ASSERT(!embed(m, some_tokens, hidden) && !memcmp(hidden, rows, N_SOME * width));
        CU_ASSERT(sh_model_is_packed(m, SH_TOK_EMBED, -1, &t));
        CU_ASSERT_FATAL(!sh_model_tensor(m, SH_TOK_EMBED, -1, &t, &e) && t.at);
        for (int k = 0; k < N_SOME; k++)
            CU_ASSERT(!memcmp(rows + k * t.cols, (const float *)t.at + some_tokens[k] * t.cols, width));
        CU_ASSERT(!sh_model_is_packed(m, SH_TOK_EMBED, -1, &t));
        CU_ASSERT(!embed(m, some_tokens, again) && !memcmp(hidden, again, N_SOME * width));
        sh_model_close(m);
    }
}

/* A row that is no number is named when its token occurs, and only then. */
static void packed_row_is_checked(void)
{
    static float hidden[N_SOME * WIDEST];
    static const int32_t others[N_SOME] = {1, 2, 3, 4}, outside[N_SOME] = {1, 64, 3, 4};
    char all[1 << 15];
    struct sh_weights *w = opened("quantised.gguf");
    const struct sh_stored *t = sh_weights_find(w, "token_embd.weight");
    FILE *f = fopen(golden("quantised.gguf"), "rb");
    CU_ASSERT_FATAL(f != NULL && t != NULL);
    size_t n = fread(all, 1, sizeof all, f);
    fclose(f);
    char *table = memmem(all, n, t->at, t->bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(table);
    memcpy(table + 5 * t->bytes / 64, "\0\x7e", 2);         /* the scale of row 5's first block */
    sh_weights_close(w);
    struct sh_model *m = sh_model_open(scratch_write("m.gguf", all, n), &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    CU_ASSERT(embed(m, some_tokens, hidden) && strstr(e.text, "tensor token_embd.weight: row 5, column 0 is nan"));
    CU_ASSERT(!embed(m, others, hidden));
    CU_ASSERT(embed(m, outside, hidden) && strstr(e.text, "token 64 at position 1 is outside the vocabulary of 64"));
    sh_model_close(m);
    scratch_clear();
}

int main(void)
{
#define MODEL_ROW(name, family, stored) {"model " #name, test_##name},
    static const struct tap_test tests[] = {
        {"scalars", scalars}, {"arrays", arrays}, {"formats", formats}, {"scaled blocks", scaled_blocks},
        MODELS(MODEL_ROW)
        {"LLaMA 3's scaling is found", scaling_is_found}, {"split files", split}, {"folders", folders},
        {"spare tensors", spare_tensors}, {"spare scales", spare_scales}, {"scale of scores", scale_of_scores},
        {"random twin", random_twin}, {"layers come again", layers_come_again},
        {"packed rows one by one", packed_rows}, {"a packed row is checked", packed_row_is_checked}, {0}};
    return tap_run("gguf", tests);
}
