/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary positions: configs of either age to the frequencies that transformers computes (tests/golden/rope.json,
 * made by tests/oracle/rope.py), the tables, and what is refused. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/config/config.h"
#include "tests/tap.h"
#include "tests/unit/scratch.h"

static struct sh_err e;

static int read_arch(const json_t *config, struct sh_arch *a)
{
    char *text = json_dumps(config, 0);
    scratch_write("config.json", text, strlen(text));
    free(text);
    struct sh_config *c = sh_config_open(scratch_folder(), &e);
    int bad = !c || sh_config_arch(c, a, &e);
    sh_config_close(c);
    scratch_clear();
    return bad;
}

static void check_case(const json_t *expected, const struct sh_arch *a)
{
    const json_t *list = json_object_get(expected, "frequencies");
    int n_tokens = (int)json_integer_value(json_object_get(expected, "length"));
    int length = sh_rope_length(&a->rope, n_tokens), half = a->n_rot / 2;
    double attention = json_number_value(json_object_get(expected, "attention")), off = 0, table_off = 0;
    float f[64], cosine[3 * 64], sine[3 * 64];
    CU_ASSERT_FATAL(half <= 64 && (size_t)half == json_array_size(list));
    sh_rope_frequencies(&a->rope, a->n_rot, length, f);
    sh_rope_table(&a->rope, a->n_rot, length, 0, 3, cosine, sine);
    sh_rope_table(&a->rope, a->n_rot, length, 2, 1, cosine + 2 * half, sine + 2 * half);
    for (int i = 0; i < half; i++) {
        double wanted = json_number_value(json_array_get(list, (size_t)i));
        off = fmax(off, fabs((double)f[i] / wanted - 1));
        for (int t = 0; t < 3; t++) {
            table_off = fmax(table_off, fabs((double)cosine[t * half + i] - attention * cos(t * wanted)));
            table_off = fmax(table_off, fabs((double)sine[t * half + i] - attention * sin(t * wanted)));
        }
    }
    printf("# %s: frequencies off by %.1e of themselves, tables by %.1e\n",
           json_string_value(json_object_get(json_object_get(expected, "config"), "model_type")), off, table_off);
    CU_ASSERT(off <= 1e-6 && table_off <= 1e-6);
}

static void frequencies(void)
{
    const char *path = tap_golden("rope.json");
    json_t *root = path ? json_load_file(path, 0, NULL) : NULL;
    const json_t *expected;
    size_t i, seen = 0;
    CU_ASSERT_FATAL(json_array_size(root) >= 10);
    json_array_foreach(root, i, expected) {
        struct sh_arch a;
        CU_ASSERT_FATAL(read_arch(json_object_get(expected, "config"), &a) == 0);
        seen |= (size_t)1 << a.rope.kind;
        check_case(expected, &a);
    }
    CU_ASSERT(seen == 63);                                      /* each kind */
    json_decref(root);
}

#define BASE \
    "\"model_type\":\"llama\",\"num_hidden_layers\":2,\"num_attention_heads\":2,\"hidden_size\":8," \
    "\"intermediate_size\":8,\"vocab_size\":8,\"max_position_embeddings\":64"

static int read_text(const char *more, struct sh_arch *a)
{
    char text[1024];
    snprintf(text, sizeof text, "{" BASE ",%s}", more);
    json_t *config = json_loads(text, 0, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(config);
    int bad = read_arch(config, a);
    json_decref(config);
    return bad;
}

static void refusals(void)
{
    static const struct { const char *more, *says; } bad[] = {
        {"\"rope_scaling\":{\"type\":\"ntk\"}", "'rope_scaling.type': found \"ntk\", expected one of default"},
        {"\"rope_scaling\":{\"type\":\"longrope\"}",
         "'rope_scaling.short_factor': found nothing, expected a list of 2"},
        {"\"rope_scaling\":{\"type\":\"su\",\"short_factor\":[1,1],\"long_factor\":[1]}",
         "'rope_scaling.long_factor': found [1], expected a list of 2 numbers"},
        {"\"rope_scaling\":{\"type\":\"longrope\",\"short_factor\":[1,0],\"long_factor\":[1,1]}",
         "'rope_scaling.short_factor': found [1,0], expected a list of 2 numbers above 0"},
        {"\"rope_scaling\":{\"rope_type\":3}", "'rope_scaling.rope_type': found 3, expected a string"},
        {"\"rope_scaling\":{\"type\":\"linear\"}",
         "'rope_scaling.factor': found nothing, expected a number of at least"},
        {"\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":0.5}", "'rope_parameters.factor': found 0.5"},
        {"\"rope_scaling\":{\"type\":\"linear\",\"factor\":\"2\"}", "'rope_scaling.factor': found \"2\""},
        {"\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":2}", "'rope_scaling.high_freq_factor': found nothing"},
        {"\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":2,\"low_freq_factor\":4,\"high_freq_factor\":3}",
         "high_freq_factor': found 3"},
        {"\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2,\"beta_slow\":40}",
         "'rope_scaling.beta_fast': found nothing"},
        {"\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2,\"original_max_position_embeddings\":0}",
         "'rope_scaling.original_max_position_embeddings': found 0"},
        {"\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2},\"head_dim\":2", "found 2 rotary elements in a head"},
        {"\"rope_theta\":1", "the base of the rotary frequencies: found 1, expected a number above 1"},
        {"\"head_dim\":5", "found 5 rotary elements in a head of 5"},
        {"\"partial_rotary_factor\":0.1", "found 0 rotary elements in a head of 4"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct sh_arch a;
        snprintf(e.text, sizeof e.text, "(accepted)");
        int refused = read_text(bad[i].more, &a);
        CU_ASSERT(tap_says(e.text, bad[i].says) && refused);
    }
}

/* Dynamic scaling lengthens what max_position_embeddings says, and only it depends on the sequence. */
static void lengths(void)
{
    struct sh_arch a;
    CU_ASSERT_FATAL(read_text("\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":3}", &a) == 0);
    CU_ASSERT(a.max_pos == 192 && a.rope.original == 64);
    CU_ASSERT(sh_rope_length(&a.rope, 64) == sh_rope_length(&a.rope, 1));
    CU_ASSERT(sh_rope_length(&a.rope, 65) != sh_rope_length(&a.rope, 64));
    CU_ASSERT(sh_rope_length(&a.rope, 65) != sh_rope_length(&a.rope, 66));
    CU_ASSERT_FATAL(read_text("\"rope_scaling\":{\"type\":\"linear\",\"factor\":3}", &a) == 0);
    CU_ASSERT(a.max_pos == 64 && sh_rope_length(&a.rope, 65) == sh_rope_length(&a.rope, 1));
}

/* Keys that are easily read otherwise; what stands here is what transformers 5.23 computes with (for
 * Arctic, the code that comes with its files). */
#define STRETCH "\"short_factor\":[1,1,1,1],\"long_factor\":[2,2,2,2]"

enum { PLAIN = SH_ROPE_PLAIN, LONG = SH_ROPE_LONG };
static const char llama[] = "\"model_type\":\"llama\",\"num_hidden_layers\":1,\"num_attention_heads\":2,"
                            "\"hidden_size\":16,\"intermediate_size\":8,\"vocab_size\":9,"
                            "\"max_position_embeddings\":64",
                  *const phi3 = "\"model_type\":\"phi3\"", *const neox = "\"model_type\":\"gpt_neox\"",
                  *const qwen2 = "\"model_type\":\"qwen2\"", *const gemma3 = "\"model_type\":\"gemma3_text\"",
                  *const mistral = "\"model_type\":\"mistral\"", *const gemma2 = "\"model_type\":\"gemma2\"",
                  *const arctic = "\"model_type\":\"arctic\"";
static const struct corner { const char *type, *more; double base; int kind, max_pos, original; } cases[] = {
    {"", "\"rope_theta\":77,\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":500}", 500, PLAIN, 64, 64},
    {"", "\"rope_scaling\":{\"type\":\"linear\",\"factor\":4,\"rope_theta\":123}", 123, SH_ROPE_LINEAR, 64, 64},
    {"", "\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2,\"original_max_position_embeddings\":16}", 1e4,
     SH_ROPE_DYNAMIC, 128, 64},
    {"", "\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"original_max_position_embeddings\":64}", 1e4,
     SH_ROPE_YARN, 256, 64},
    {"", "\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"original_max_position_embeddings\":16}", 1e4,
     SH_ROPE_YARN, 64, 16},
    {phi3, "\"original_max_position_embeddings\":32,\"rope_scaling\":{\"type\":\"yarn\",\"short_factor\":[1,1,1,1],"
           "\"long_factor\":[2,2,2,2]}", 1e4, LONG, 64, 32},
    {phi3, "\"original_max_position_embeddings\":16,\"rope_scaling\":{\"type\":\"longrope\"," STRETCH ","
           "\"original_max_position_embeddings\":32}", 1e4, LONG, 64, 16},
    {phi3, "\"rope_scaling\":{\"type\":\"longrope\"," STRETCH ",\"original_max_position_embeddings\":32}", 1e4,
     LONG, 64, 4096},
    {phi3, "\"partial_rotary_factor\":0.25,\"rope_parameters\":{\"rope_type\":\"longrope\"," STRETCH ","
           "\"partial_rotary_factor\":1}", 1e4, LONG, 64, 4096},
    {"", "\"rope_scaling\":null,\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":4,"
         "\"rope_theta\":9}", 9, SH_ROPE_LINEAR, 64, 64},
    {"", "\"rope_scaling\":{},\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":4}", 1e4,
     SH_ROPE_LINEAR, 64, 64},
    {"", "\"rope_theta\":500,\"rope_scaling\":{\"type\":\"linear\",\"factor\":4},"
         "\"rope_parameters\":{\"rope_theta\":9}", 500, SH_ROPE_LINEAR, 64, 64},
    {"", "\"original_max_position_embeddings\":32,\"rope_scaling\":{\"type\":\"yarn\",\"factor\":8,"
         "\"original_max_position_embeddings\":64}", 1e4, SH_ROPE_YARN, 256, 32},
    {neox, "\"rope_theta\":500,\"rotary_pct\":0.5", 1e4, PLAIN, 64, 64},
    {neox, "\"rope_parameters\":{\"rope_theta\":500},\"rotary_emb_base\":9", 500, PLAIN, 64, 64},
    {neox, "\"rope_scaling\":{\"type\":\"linear\",\"factor\":4,\"rope_theta\":300}", 300, SH_ROPE_LINEAR,
     64, 64},
    {qwen2, "\"attention_bias\":false,\"mlp_bias\":true", 1e4, PLAIN, 64, 64},
    {mistral, "\"attention_bias\":true,\"mlp_bias\":true", 1e4, PLAIN, 64, 64},
    {gemma2, "\"rope_theta\":500,\"rope_parameters\":{\"rope_theta\":3000},\"head_dim\":8,\"num_key_value_heads\":1",
     3000, PLAIN, 64, 64},
    {gemma3, "\"num_key_value_heads\":1,\"rope_scaling\":null,\"rope_parameters\":{\"full_attention\":"
             "{\"rope_type\":\"dynamic\",\"factor\":4,\"rope_theta\":9}}", 9, SH_ROPE_DYNAMIC, 256, 64},
    {gemma3, "\"attn_logit_softcapping\":50,\"num_key_value_heads\":1", 1e6, PLAIN, 64, 64},
    {arctic, "\"parallel_attn_mlp_res\":true,\"moe_layer_frequency\":1", 1e6, PLAIN, 64, 64}};

static void corners(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sh_arch a;
        char *text = xasprintf("{%s%s%s,%s}", llama, *cases[i].type ? "," : "", cases[i].type, cases[i].more);
        json_t *config = json_loads(text, 0, NULL);             /* of two keys the last one counts */
        CU_ASSERT_PTR_NOT_NULL_FATAL(config);
        if (read_arch(config, &a)) {
            printf("# %s\n", e.text);
            CU_FAIL_FATAL("refused");
        }
        CU_ASSERT((double)a.rope.base == cases[i].base && (int)a.rope.kind == cases[i].kind);
        CU_ASSERT(a.max_pos == cases[i].max_pos && a.rope.original == cases[i].original);
        CU_ASSERT(cases[i].type != phi3 || (double)fabsf(a.norm_eps - 1e-5f) < 1e-12);
        CU_ASSERT(a.n_rot == a.d_head || cases[i].type == neox);
        CU_ASSERT((cases[i].type != mistral && cases[i].type != qwen2) || !(a.flags & SH_HAS_MLP_BIAS));
        CU_ASSERT(cases[i].type != mistral || !(a.flags & (SH_HAS_BIAS | SH_HAS_OUT_BIAS)));
        CU_ASSERT(cases[i].type != qwen2 || (a.flags & (SH_HAS_BIAS | SH_HAS_OUT_BIAS)) == SH_HAS_BIAS);
        CU_ASSERT(cases[i].type != gemma3 || !(a.softcap > 0));
        json_decref(config);
        free(text);
    }
    json_t *config = json_loads("{\"model_type\":\"llama\",\"num_hidden_layers\":1,\"num_attention_heads\":2,"
                                "\"hidden_size\":16,\"intermediate_size\":8,\"vocab_size\":9,"
                                "\"partial_rotary_factor\":0.5}", 0, NULL);
    struct sh_arch a;
    CU_ASSERT(read_arch(config, &a) != 0 && strstr(e.text, "'partial_rotary_factor': found 0.5, expected 1"));
    json_decref(config);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"rope: frequencies and tables of every scaling equal transformers'", frequencies},
        {"rope: configs that make no sense are refused by the key", refusals},
        {"rope: what depends on a sequence's length", lengths},
        {"rope: keys in corners, of it and next to it", corners},
        {0}};
    return tap_run("rope", tests);
}
