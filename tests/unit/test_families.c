/* SPDX-License-Identifier: Apache-2.0 */
/* Every family of the table against what PyTorch computed on its fixtures: embedding, attention rows, hidden
 * states, the output of the last norm and the logits, on the CPU backend; a family without a fixture fails.
 * What follows the layers is computed here, in double precision. Limits: attention 2e-5 absolute and rows that
 * sum to 1 within 1e-5; everything else 2e-5 of the largest reference value. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/config/config.h"
#include "src/model/families/families.h"
#include "tests/tap.h"
#include "tests/unit/modern.h"
#include "tests/unit/pass.h"
#include "tests/unit/reference.h"
#include "tests/unit/scratch.h"

static struct sh_err e;

static const struct fixture { const char *family, *name; } fixtures[] = {
    {"opt", "opt"}, {"opt", "opt_350m_style"},
    {"llama", "llama"}, {"llama", "llama_gqa"}, {"llama", "llama3_rope"}, {"llama", "llama_linear_rope"},
    {"llama", "llama_dynamic_rope"}, {"llama", "llama_yarn_rope"}, {"llama", "llama_bias"},
    {"mistral", "mistral"},
    {"qwen2", "qwen2"}, {"qwen2", "qwen2_window"},
    {"qwen3", "qwen3"},
    {"phi3", "phi3"}, {"phi3", "phi3_longrope"},
    {"gemma2", "gemma2"},
    {"gemma3", "gemma3"}, {"gemma3", "gemma3_newer_config"},
    {"gpt2", "gpt2"}, {"gpt2", "gpt2_scaled_by_layer"},
    {"gpt_neo", "gpt_neo"},
    {"gpt_neox", "gpt_neox"}, {"gpt_neox", "gpt_neox_sequential"},
    {"bloom", "bloom"}, {"bloom", "bloom_transformer_prefix"}, {"bloom", "bloom_six_heads"}};
enum { N_FIXTURE = sizeof fixtures / sizeof *fixtures };

/* Checkpoints with coded matrices, among the shared fixtures; test_coded.c has single matrices. */
static const struct fixture coded[] = {
    {"llama", "quantised_fp8_block_1"}, {"qwen3", "quantised_fp8_block_2"}, {"llama", "quantised_ct_fp8_channel_1"},
    {"qwen3", "quantised_ct_fp8_tensor_1"}, {"llama", "quantised_ct_w4a16_g128"},
    {"qwen3", "quantised_ct_w4a16_g32_asym"}, {"llama", "quantised_ct_w8a16_channel"}, {"llama", "quantised_awq_1"},
    {"qwen3", "quantised_awq_2"}, {"llama", "quantised_gptq4_1"}, {"qwen3", "quantised_gptq4_2"},
    {"llama", "quantised_gptq8_1"}, {"llama", "quantised_gptq4_v2"}, {"llama", "quantised_bnb_nf4_1"},
    {"qwen3", "quantised_bnb_nf4_2"}};

/* The same among the golden files (tests/oracle/coded_models.py). */
static const struct fixture coded_here[] = {
    {"llama", "llama_nvfp4"}, {"llama", "llama_nvfp4_packed"}, {"llama", "llama_mxfp4_packed"}};
enum { N_CODED_HERE = sizeof coded_here / sizeof *coded_here };

/* Largest deviation as a share of the largest value of the reference. */
static double share_off(const float *found, const float *wanted, size_t n)
{
    double off = 0, most = 0;
    for (size_t i = 0; i < n; i++) {
        off = fmax(off, isnan(found[i]) ? INFINITY : fabs((double)found[i] - (double)wanted[i]));
        most = fmax(most, fabs((double)wanted[i]));
    }
    return off / most;
}

static double attention_off(const struct pass *p, int s, const float *wanted)
{
    int n = pass_length(p, s), heads = p->arch->n_head;
    double off = 0;
    for (int layer = 0; layer < p->arch->n_layer; layer++) {
        const float *at = p->rows[layer][s];
        for (int row = 0; row < heads * n; row++) {
            const float *reference = wanted + (size_t)(layer * heads * n + row) * (size_t)n;
            double sum = 0;
            for (int k = 0; k <= row % n; k++, at++) {
                off = fmax(off, isnan(*at) ? INFINITY : fabs((double)(*at - reference[k])));
                sum += (double)*at;
            }
            CU_ASSERT_FATAL(fabs(sum - 1) <= 1e-5);
        }
    }
    return off;
}

static double element(const struct sh_tensor *t, int row, int col)
{
    return (double)sh_tensor_element(t, (size_t)row * (size_t)t->cols + (size_t)col);
}

/* The final norm of one row, in place. */
static void last_norm(const struct sh_arch *c, const struct sh_tensor *w, const struct sh_tensor *b, double *x)
{
    double mean = 0, squares = 0;
    for (int i = 0; i < c->d_model && c->norm == SH_NORM_LAYER; i++)
        mean += x[i] / c->d_model;
    for (int i = 0; i < c->d_model; i++)
        squares += (x[i] - mean) * (x[i] - mean) / c->d_model;
    for (int i = 0; i < c->d_model; i++) {
        double weight = element(w, 0, i) + (c->flags & SH_NORM_PLUS_ONE ? 1 : 0);
        x[i] = (x[i] - mean) / sqrt(squares + (double)c->norm_eps) * weight + (b->at ? element(b, 0, i) : 0);
    }
}

static void product(const struct sh_tensor *w, const double *x, double *out)
{
    for (int i = 0; i < w->rows; i++) {
        out[i] = 0;
        for (int j = 0; j < w->cols; j++)
            out[i] += element(w, i, j) * x[j];
    }
}

/* What the layers left, to the head's input and to the logits. */
static void finish(struct sh_model *m, const float *hidden, int n, float *final, float *logits)
{
    static const enum sh_role roles[] = {SH_FINAL_NORM_W, SH_FINAL_NORM_B, SH_PROJ_OUT, SH_HEAD};
    const struct sh_arch *c = sh_model_arch(m);
    struct sh_tensor t[4];
    double *x = xcalloc((size_t)c->d_model, sizeof *x), *y = xcalloc((size_t)c->d_embed, sizeof *y);
    double *z = xcalloc((size_t)c->n_vocab, sizeof *z), cap = (double)c->head_softcap;
    for (int i = 0; i < 4; i++)
        CU_ASSERT_FATAL(sh_model_tensor(m, roles[i], -1, &t[i], &e) == 0);
    for (int row = 0; row < n; row++) {
        for (int i = 0; i < c->d_model; i++)
            x[i] = (double)hidden[row * c->d_model + i];
        if (t[0].at)
            last_norm(c, &t[0], &t[1], x);
        if (t[2].at)
            product(&t[2], x, y);
        product(&t[3], t[2].at ? y : x, z);
        for (int i = 0; i < c->d_embed; i++)
            final[row * c->d_embed + i] = (float)(t[2].at ? y[i] : x[i]);
        for (int i = 0; i < c->n_vocab; i++)
            logits[row * c->n_vocab + i] = (float)(cap > 0 ? cap * tanh(z[i] / cap) : z[i]);
    }
    free(x);
    free(y);
    free(z);
}

static void check_sequence(struct sh_model *m, struct reference *r, const struct pass *p, int s)
{
    const struct sh_arch *c = p->arch;
    size_t n = (size_t)pass_length(p, s), state = n * (size_t)c->d_model, at = (size_t)p->start[s] * (size_t)c->d_model;
    size_t width = n * (size_t)c->d_embed, words = n * (size_t)c->n_vocab;
    const float *attn = reference_tensor(r, s, "attn", (size_t)c->n_layer * (size_t)c->n_head * n * n);
    const float *hidden = reference_tensor(r, s, "hidden", (size_t)c->n_layer * state);
    const float *wanted = reference_tensor(r, s, "final", width);
    const float *wanted_logits = reference_tensor(r, s, "logits", words);
    float *final = xmalloc(width * sizeof *final), *logits = xmalloc(words * sizeof *logits);
    CU_ASSERT_FATAL(attn && wanted && wanted_logits);
    double off[4] = {attention_off(p, s, attn)};
    for (int layer = 0; hidden && layer < c->n_layer; layer++)
        off[1] = fmax(off[1], share_off(p->hidden[layer] + at, hidden + (size_t)layer * state, state));
    finish(m, p->hidden[c->n_layer] + at, (int)n, final, logits);
    off[2] = share_off(final, wanted, width);
    off[3] = share_off(logits, wanted_logits, words);
    printf("# %s, %zu tokens: off by %.1e in attention, %.1e in hidden states, %.1e at the end, %.1e in logits\n",
           sh_model_name(m), n, off[0], off[1], off[2], off[3]);
    for (int i = 0; i < 4; i++)
        CU_ASSERT(off[i] <= 2e-5);
    free(final);
    free(logits);
}

/* Products of 16-bit operands: the buffers between the operations have other types then. */
static void check_half(struct sh_model *m, const struct pass *exact, const int32_t *const tokens[], const int *length,
                       enum sh_type type)
{
    struct pass *p = pass_run(ON_CPU, m, tokens, length, exact->n_seq, type);
    double off = 0, n = 0;
    for (int layer = 0; layer < exact->arch->n_layer; layer++)
        for (int s = 0; s < exact->n_seq; s++)
            for (size_t i = 0; i < (size_t)exact->arch->n_head * pass_triangle(length[s]); i++, n++)
                off += fabs((double)p->rows[layer][s][i] - (double)exact->rows[layer][s][i]);
    off /= n;
    printf("# %s with %s products: off by %.1e on average in attention\n", sh_model_name(m), sh_type_name(type), off);
    CU_ASSERT(off > 0 && off <= (type == SH_F16 ? 2.5e-4 : 2.5e-3));    /* NaN fails */
    pass_free(p);
}

static void check_opened(const struct fixture *f, struct reference *r, struct sh_model *m)
{
    const int32_t *tokens[MOST_SEQ];
    int length[MOST_SEQ];
    CU_ASSERT_STRING_EQUAL(sh_model_family(m), f->family);
    for (int s = 0; s < reference_count(r); s++)
        length[s] = reference_tokens(r, s, &tokens[s]);
    struct pass *p = pass_run(ON_CPU, m, tokens, length, reference_count(r), SH_F32);
    for (int s = 0; s < p->n_seq; s++)
        check_sequence(m, r, p, s);
    check_half(m, p, tokens, length, SH_F16);
    check_half(m, p, tokens, length, SH_BF16);
    pass_free(p);
}

static struct sh_model *open_model(const char *folder)
{
    struct sh_model *m = sh_model_open(folder, &e);
    if (!m)
        printf("# %s\n", e.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    return m;
}

static void check_fixture(const struct fixture *f)
{
    struct reference *r = reference_open(f->name);
    if (!r) {
        printf("# %s: not among the fixtures\n", f->name);
        CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    }
    struct sh_model *m = open_model(reference_folder(r));
    check_opened(f, r, m);
    sh_model_close(m);
    reference_close(r);
}

/* How many matrices of the layers have numbers in `spots`, [row, column, value] each; every one is exact. */
static int check_spots(struct sh_model *m, const json_t *spots)
{
    int found = 0;
    for (int i = SH_LAYER_ROLE; i < SH_N_ROLE * sh_model_arch(m)->n_layer; i++) {
        struct sh_tensor t;
        enum sh_role role = (enum sh_role)(i % SH_N_ROLE);
        if (role < SH_LAYER_ROLE)
            continue;
        CU_ASSERT_FATAL(!sh_model_tensor(m, role, i / SH_N_ROLE, &t, &e));
        const json_t *list = t.at ? json_object_get(spots, t.name) : NULL;
        found += list != NULL;
        for (size_t k = 0; k < json_array_size(list); k++) {
            const json_t *spot = json_array_get(list, k);
            int row = (int)json_integer_value(json_array_get(spot, 0));
            int col = (int)json_integer_value(json_array_get(spot, 1));
            double wanted = json_number_value(json_array_get(spot, 2));
            if (element(&t, row, col) != wanted)
                printf("# %s [%d, %d]: %.9g, expected %.9g\n", t.name, row, col, element(&t, row, col), wanted);
            CU_ASSERT(element(&t, row, col) == wanted);
        }
    }
    return found;
}

static void check_coded(const struct fixture *f, int *n)
{
    char shared[80], path[4096];
    snprintf(shared, sizeof shared, "modern/%s", f->name);
    struct reference *r = reference_open(shared);
    if (!r)
        return;
    struct sh_model *m = open_model(reference_folder(r));
    snprintf(path, sizeof path, "%s/ref.json", reference_folder(r));
    json_t *facts = json_load_file(path, 0, NULL);
    const json_t *spots = json_object_get(facts, "weight_spots");
    CU_ASSERT(json_object_size(spots) > 0 && check_spots(m, spots) == (int)json_object_size(spots));
    check_opened(f, r, m);
    ++*n;
    json_decref(facts);
    sh_model_close(m);
    reference_close(r);
}

static void coded_matrices(void)
{
    int n = 0;
    for (size_t i = 0; i < N_CODED_HERE; i++)
        check_fixture(&coded_here[i]);
    for (size_t i = 0; i < sizeof coded / sizeof *coded; i++)
        check_coded(&coded[i], &n);
    if (!n)
        tap_skip("the shared fixtures are not here");
}

static void check_family(const struct sh_family *f)
{
    int n = is_modern(f->name);
    if (n)
        tap_skip("tests/unit/test_modern has it");
    for (int i = 0; i < N_FIXTURE; i++)
        if (!strcmp(fixtures[i].family, f->name)) {
            check_fixture(&fixtures[i]);
            n++;
        }
    if (!n)
        printf("# the family %s has no checkpoint in `fixtures` of tests/unit/test_families.c, nor in "
               "tests/unit/modern.h\n", f->name);
    CU_ASSERT(n > 0);
}

/* The beginning of a sequence on the module, against the CPU. */
static void check_beginning(const char *name)
{
    const int32_t *tokens;
    struct reference *r = reference_open(name);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    struct sh_model *m = sh_model_open(reference_folder(r), &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    int length = reference_tokens(r, 0, &tokens);
    length = length > 14 ? 14 : length;                 /* an emulated device is slow */
    struct pass *there = pass_run(ON_MODULE, m, &tokens, &length, 1, SH_F32);
    struct pass *here = there ? pass_run(ON_CPU, m, &tokens, &length, 1, SH_F32) : NULL;
    double rows_off = 0, off = 0;
    for (int layer = 0; here && layer < here->arch->n_layer; layer++) {
        size_t n = (size_t)here->arch->n_head * pass_triangle(length);
        rows_off = fmax(rows_off, share_off(there->rows[layer][0], here->rows[layer][0], n));
        off = fmax(off, share_off(there->hidden[layer + 1], here->hidden[layer + 1], pass_states(here)));
    }
    if (here) {
        printf("# %s: off by %.1e in attention, %.1e in hidden states\n", name, rows_off, off);
        CU_ASSERT(rows_off <= 2e-5 && off <= 2e-5);
        pass_free(here);
        pass_free(there);
    }
    sh_model_close(m);
    reference_close(r);
}

/* The family's last fixture. */
static void check_on_module(const struct sh_family *f)
{
    const struct fixture *last = NULL;
    if (is_modern(f->name)) {
        tap_skip("tests/unit/test_modern has it");
        return;
    }
    for (int i = 0; i < N_FIXTURE; i++)
        if (!strcmp(fixtures[i].family, f->name))
            last = &fixtures[i];
    CU_ASSERT_PTR_NOT_NULL_FATAL(last);
    check_beginning(last->name);
}

static void coded_on_module(void)
{
    for (size_t i = 0; i < N_CODED_HERE; i++)
        check_beginning(coded_here[i].name);
    for (size_t i = 0; i < sizeof coded / sizeof *coded && tap_fixture("modern/checkpoints.json"); i++) {
        char name[80];
        snprintf(name, sizeof name, "modern/%s", coded[i].name);
        check_beginning(name);
    }
}

/* A family that is only counted says so, with any architectures. */
static void check_refusal(const struct sh_family *f)
{
    char text[200];
    struct sh_arch a;
    int length = snprintf(text, sizeof text, "{\"model_type\":\"%s\",\"architectures\":[\"Any\"]}",
                          f->model_types[0]);
    scratch_write("config.json", text, (size_t)length);
    struct sh_config *c = sh_config_open(scratch_folder(), &e);
    CU_ASSERT_FATAL(c != NULL && sh_config_family(c, &e) == f);
    CU_ASSERT(sh_config_arch(c, &a, &e) == -1 && e.status == SH_FAILED);
    for (int random = 0; random < 2; random++) {
        CU_ASSERT(!(random ? sh_model_open_random(scratch_folder(), 1, &e) : sh_model_open(scratch_folder(), &e)));
        CU_ASSERT(strstr(e.text, "'model_type'") && strstr(e.text, f->model_types[0]) && strstr(e.text, "capacity"));
    }
    sh_config_close(c);
    scratch_clear();
}

/* Layers, as "wg…": windowed, global, that a config of `more` leads to; or what the refusal says. */
static const char *windows_of(const char *more, char *text)
{
    struct sh_arch a;
    char config[1024];
    int length = snprintf(config, sizeof config, "{%s,\"vocab_size\":8,\"hidden_size\":8,"
                          "\"max_position_embeddings\":64,"
                          "\"intermediate_size\":8,\"num_attention_heads\":2,\"num_key_value_heads\":2,\"head_dim\":4,"
                          "\"num_hidden_layers\":6}", more);
    scratch_write("config.json", config, (size_t)length);
    struct sh_config *c = sh_config_open(scratch_folder(), &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    int bad = sh_config_arch(c, &a, &e);
    for (int layer = 0; layer < 6 && !bad; layer++)
        text[layer] = sh_arch_window(&a, layer) ? 'w' : 'g';
    text[6] = '\0';
    sh_config_close(c);
    scratch_clear();
    return bad ? e.text : text;
}

static void windows(void)
{
    static const struct { const char *more, *layers; } cases[] = {
        {"\"model_type\":\"mistral\",\"sliding_window\":8", "wwwwww"},
        {"\"model_type\":\"mistral\"", "wwwwww"},
        {"\"model_type\":\"mistral\",\"sliding_window\":null", "gggggg"},
        {"\"model_type\":\"mistral\",\"sliding_window\":-1", "'sliding_window': found -1"},
        {"\"model_type\":\"phi3\"", "gggggg"},
        {"\"model_type\":\"qwen2\",\"sliding_window\":8", "gggggg"},
        {"\"model_type\":\"qwen2\",\"use_sliding_window\":true,\"max_window_layers\":4", "ggggww"},
        {"\"model_type\":\"qwen2\",\"use_sliding_window\":true,\"max_window_layers\":0", "wwwwww"},
        {"\"model_type\":\"qwen3\",\"use_sliding_window\":true,"
         "\"layer_types\":[\"sliding_attention\",\"full_attention\","
         "\"full_attention\",\"sliding_attention\",\"full_attention\",\"full_attention\"]", "wggwgg"},
        {"\"model_type\":\"gemma2\"", "wgwgwg"},
        {"\"model_type\":\"gemma2\",\"layer_types\":[\"full_attention\"]", "'layer_types.1': found nothing"},
        {"\"model_type\":\"gemma2\",\"layer_types\":[\"linear_attention\"]", "'layer_types.0': found \"linear_att"},
        {"\"model_type\":\"gemma3_text\"", "wwwwwg"},
        {"\"model_type\":\"gemma3_text\",\"sliding_window_pattern\":2", "wgwgwg"},
        {"\"model_type\":\"gemma3\",\"text_config\":{\"model_type\":\"gemma3_text\",\"sliding_window_pattern\":3}",
         "wwgwwg"},
        {"\"model_type\":\"gpt_neo\",\"num_heads\":2,\"attention_types\":[[[\"global\",\"local\"],3]]", "gwgwgw"},
        {"\"model_type\":\"gpt_neo\",\"num_heads\":2,\"attention_types\":[[[\"local\"],2],[[\"global\"],4]]", "wwgggg"},
        {"\"model_type\":\"gpt_neo\",\"num_heads\":2,\"attention_types\":[[[\"local\"],2]]",
         "attention_types"},
        {"\"model_type\":\"gpt_neo\",\"num_heads\":2,\"attention_types\":[[[],6]]",
         "attention_types"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[8];
        const char *found = windows_of(cases[i].more, text);
        if (!strstr(found, cases[i].layers))
            printf("# %s: expected %s, found %s\n", cases[i].more, cases[i].layers, found);
        CU_ASSERT_PTR_NOT_NULL(strstr(found, cases[i].layers));
    }
}

#define FAMILY_TEST(name) \
    static void test_##name(void) \
    { \
        sh_family_##name.params ? check_family(&sh_family_##name) : check_refusal(&sh_family_##name); \
    } \
    static void test_module_##name(void) \
    { \
        sh_family_##name.params ? check_on_module(&sh_family_##name) : tap_skip("it is not run"); \
    }
SH_FAMILIES(FAMILY_TEST)

int main(void)
{
#define FAMILY_ROW(name) {#name, test_##name}, {#name " (module)", test_module_##name},
    static const struct tap_test tests[] = {SH_FAMILIES(FAMILY_ROW)
        {"coded matrices", coded_matrices}, {"coded matrices (module)", coded_on_module},
        {"which layers have a window", windows}, {0}};
    return tap_run("families", tests);
}
