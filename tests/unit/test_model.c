/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: what is bound equals what an independent reader finds; what does not fit is refused
 * with its name; random models are reproducible. */
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/config/config.h"
#include "src/model/model.h"
#include "tests/tap.h"
#include "tests/unit/scratch.h"

static struct sh_err e;

static const char *const roles[SH_N_ROLE] = {
    [SH_TOK_EMBED] = "tok_embed", [SH_POS_EMBED] = "pos_embed", [SH_PROJ_IN] = "proj_in",
    [SH_PROJ_OUT] = "proj_out", [SH_FINAL_NORM_W] = "final_norm_w",
    [SH_FINAL_NORM_B] = "final_norm_b", [SH_HEAD] = "head", [SH_ATTN_NORM_W] = "attn_norm_w",
    [SH_ATTN_NORM_B] = "attn_norm_b", [SH_Q_W] = "q_w", [SH_Q_B] = "q_b", [SH_K_W] = "k_w",
    [SH_K_B] = "k_b", [SH_V_W] = "v_w", [SH_V_B] = "v_b", [SH_O_W] = "o_w", [SH_O_B] = "o_b",
    [SH_MLP_NORM_W] = "mlp_norm_w", [SH_MLP_NORM_B] = "mlp_norm_b", [SH_UP_W] = "up_w",
    [SH_UP_B] = "up_b", [SH_DOWN_W] = "down_w", [SH_DOWN_B] = "down_b", [SH_GATE_W] = "gate_w",
    [SH_GATE_B] = "gate_b", [SH_EMBED_NORM_W] = "embed_norm_w", [SH_EMBED_NORM_B] = "embed_norm_b",
    [SH_Q_NORM_W] = "q_norm_w", [SH_K_NORM_W] = "k_norm_w", [SH_ATTN_POST_W] = "attn_post_w",
    [SH_MLP_POST_W] = "mlp_post_w"};

static uint32_t crc32_of(const void *at, size_t bytes)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= ((const unsigned char *)at)[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static struct sh_model *open_golden(const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "checkpoints/%s", name);
    const char *folder = tap_golden(path);
    struct sh_model *m = folder ? sh_model_open(folder, &e) : NULL;
    if (!m)
        printf("# %s: %s\n", name, e.text);
    return m;
}

static void check_line(struct sh_model *m, const char *role_name, int layer,
                       const struct sh_tensor *wanted, uint32_t crc)
{
    struct sh_tensor t;
    int role = 0;
    while (role < SH_N_ROLE && (!roles[role] || strcmp(roles[role], role_name)))
        role++;
    CU_ASSERT_FATAL(role < SH_N_ROLE);
    CU_ASSERT_FATAL(sh_model_tensor(m, (enum sh_role)role, layer, &t, &e) == 0);
    CU_ASSERT((t.at != NULL) == (wanted->rows > 0));
    if (!t.at)
        return;
    CU_ASSERT(t.rows == wanted->rows && t.cols == wanted->cols && t.type == wanted->type);
    CU_ASSERT_STRING_EQUAL(t.name, wanted->name);
    CU_ASSERT(crc32_of(t.at, (size_t)t.rows * (size_t)t.cols * sh_type_bytes(t.type)) == crc);
    CU_ASSERT(sh_model_check_finite(&t, &e) == 0);
}

static void fixtures_bind(void)
{
    const char *path = tap_golden("checkpoints/expected.tsv");
    FILE *f = path ? fopen(path, "r") : NULL;
    CU_ASSERT_FATAL(f != NULL);
    char checkpoint[64], role[64], type[16], name[128], now[64] = "";
    int layer, n = 0;
    unsigned crc;
    struct sh_tensor wanted = {0};
    struct sh_model *m = NULL;
    while (fscanf(f, "%63s %63s %d %15s %d %d %127s %u", checkpoint, role, &layer, type,
                  &wanted.rows, &wanted.cols, name, &crc) == 8) {
        if (strcmp(now, checkpoint)) {
            sh_model_close(m);
            m = open_golden(checkpoint);
            CU_ASSERT_FATAL(m != NULL);
            snprintf(now, sizeof now, "%s", checkpoint);
        }
        wanted.name = name;
        wanted.type = !strcmp(type, "f16") ? SH_F16 : !strcmp(type, "bf16") ? SH_BF16 : SH_F32;
        check_line(m, role, layer, &wanted, crc);
        if (n++ % 7 == 0)
            sh_model_drop(m, layer);
    }
    CU_ASSERT(n == 234);
    sh_model_close(m);
    fclose(f);
}

static long long fact(const json_t *ref, const char *key)
{
    return json_integer_value(json_object_get(ref, key));
}

/* What config.json became against the shape facts that came with the references. */
static void fixtures_arch(void)
{
    static const char *const names[] = {"opt",     "opt_decoder_prefix", "opt_350m_style",
                                        "opt_f16", "opt_bf16",           "opt_sharded"};
    for (size_t i = 0; i < 6; i++) {
        struct sh_model *m = open_golden(names[i]);
        CU_ASSERT_FATAL(m != NULL);
        char path[200];
        snprintf(path, sizeof path, "checkpoints/%s/ref.json", names[i]);
        json_t *ref = json_load_file(tap_golden(path), 0, NULL);
        CU_ASSERT_FATAL(ref != NULL);
        const struct sh_arch *a = sh_model_arch(m);
        CU_ASSERT(a->n_layer == fact(ref, "n_layers") && a->n_head == fact(ref, "n_heads"));
        CU_ASSERT(a->n_kv_head == fact(ref, "n_kv_heads") && a->d_head == fact(ref, "head_dim"));
        CU_ASSERT(a->d_model == fact(ref, "hidden_size") && a->n_vocab == fact(ref, "vocab_size"));
        CU_ASSERT(a->d_embed == fact(ref, "final_width") && a->pos_offset == 2 &&
                  a->max_pos == 160);
        CU_ASSERT(a->act == SH_ACT_RELU && a->norm == SH_NORM_LAYER && a->pos == SH_POS_LEARNED);
        CU_ASSERT(a->norm_eps == 1e-5f && fabsf(a->scale - 0.35355339f) < 1e-7f);
        int post = !strcmp(names[i], "opt_350m_style");
        CU_ASSERT(a->norm_place == (post ? SH_NORM_POST : SH_NORM_PRE));
        CU_ASSERT(a->flags == ((post ? SH_HAS_PROJECTION : SH_HAS_FINAL_NORM) |
                               (unsigned)(SH_TIED_HEAD | SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS |
                                          SH_HAS_NORM_AFFINE)));
        CU_ASSERT(sh_model_type(m) == (i == 3 ? SH_F16 : i == 4 ? SH_BF16 : SH_F32));
        CU_ASSERT_STRING_EQUAL(sh_model_name(m), names[i]);
        CU_ASSERT_STRING_EQUAL(sh_model_family(m), "opt");
        json_decref(ref);
        sh_model_close(m);
    }
}

#define CONFIG                                                                                     \
    "\"architectures\":[\"OPTForCausalLM\"],\"num_hidden_layers\":1,\"num_attention_heads\":2,"    \
    "\"hidden_size\":4,\"ffn_dim\":6,\"vocab_size\":5,\"max_position_embeddings\":3"

static void write_config(const char *more, ...)
{
    char text[4096];
    va_list args;
    va_start(args, more);
    int length = vsnprintf(text, sizeof text, more, args);
    va_end(args);
    scratch_write("config.json", text, (size_t)length);
}

/* The tensors of the model in CONFIG, as [rows, cols]; rows 0: a vector. */
static const struct item { const char *name; int rows, cols; } items[] = {
    {"decoder.embed_tokens.weight", 5, 4},
    {"decoder.embed_positions.weight", 5, 4},
    {"decoder.final_layer_norm.weight", 0, 4},
    {"decoder.final_layer_norm.bias", 0, 4},
    {"decoder.layers.0.self_attn_layer_norm.weight", 0, 4},
    {"decoder.layers.0.self_attn_layer_norm.bias", 0, 4},
    {"decoder.layers.0.self_attn.q_proj.weight", 4, 4},
    {"decoder.layers.0.self_attn.q_proj.bias", 0, 4},
    {"decoder.layers.0.self_attn.k_proj.weight", 4, 4},
    {"decoder.layers.0.self_attn.k_proj.bias", 0, 4},
    {"decoder.layers.0.self_attn.v_proj.weight", 4, 4},
    {"decoder.layers.0.self_attn.v_proj.bias", 0, 4},
    {"decoder.layers.0.self_attn.out_proj.weight", 4, 4},
    {"decoder.layers.0.self_attn.out_proj.bias", 0, 4},
    {"decoder.layers.0.final_layer_norm.weight", 0, 4},
    {"decoder.layers.0.final_layer_norm.bias", 0, 4},
    {"decoder.layers.0.fc1.weight", 6, 4},
    {"decoder.layers.0.fc1.bias", 0, 6},
    {"decoder.layers.0.fc2.weight", 4, 6},
    {"decoder.layers.0.fc2.bias", 0, 4},
    {"decoder.layers.1.fc2.bias", 0, 4},
    {"lm_head.weight", 5, 4}};
#define N_ITEM (sizeof items / sizeof *items)
#define N_USUAL (N_ITEM - 2)                    /* without the surplus layer and the untied head */

/* Writes model.safetensors: the items that are wanted, the one called `odd` with `shape` and
 * `dtype`. `pad` spaces in front of the closing brace move the data to another alignment. */
static void write_weights(int (*wanted)(const struct item *), const char *odd, const char *shape,
                          const char *dtype, int pad)
{
    static float data[512];
    char header[8192] = "{", own[40];
    size_t at = 0, used = 1;
    for (size_t i = 0; i < N_ITEM; i++) {
        const struct item *t = &items[i];
        if (!wanted(t))
            continue;
        int is_odd = odd && !strcmp(t->name, odd), n = (t->rows ? t->rows : 1) * t->cols;
        for (int j = 0; j < n; j++)
            data[at + (size_t)j] = (float)j;
        if (t->rows)
            snprintf(own, sizeof own, "[%d,%d]", t->rows, t->cols);
        else
            snprintf(own, sizeof own, "[%d]", t->cols);
        used += (size_t)snprintf(
            header + used, sizeof header - used,
            "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}", at ? "," : "",
            t->name, is_odd ? dtype : "F32", is_odd ? shape : own, 4 * at, 4 * (at + (size_t)n));
        at += (size_t)n;
    }
    snprintf(header + used, sizeof header - used, "%*s}", (int)((8 - (used + 1) % 8) % 8) + pad,
             "");
    scratch_safetensors("model.safetensors", header, data, 4 * at);
}

static const char *without;                     /* a part of the names that usual() leaves out */
static int usual(const struct item *t)
{
    return t < items + N_USUAL && (!without || !strstr(t->name, without));
}

static int untied(const struct item *t) { return usual(t) || t == &items[N_ITEM - 1]; }
static int surplus(const struct item *t) { return usual(t) || t == &items[N_ITEM - 2]; }

static struct sh_model *open_scratch(void)
{
    snprintf(e.text, sizeof e.text, "(accepted)");
    return sh_model_open(scratch_folder(), &e);
}

static int refused(const char *part)
{
    struct sh_model *m = open_scratch();
    sh_model_close(m);
    return tap_says(e.text, part) && m == NULL;
}

static void weights_that_do_not_fit(void)
{
    static const struct { const char *odd, *shape, *dtype, *says; } bad[] = {
        {"decoder.layers.0.fc1.weight", "[4,6]", "F32",
         "found shape [4, 6], expected [6, 4] (ffn_dim, hidden_size)"},
        {"decoder.layers.0.fc1.weight", "[24]", "F32", "found shape [24], expected [6, 4]"},
        {"decoder.layers.0.fc1.weight", "[6,4,1]", "F32", "found shape [6, 4, 1], expected [6, 4]"},
        {"decoder.layers.0.fc1.bias", "[6,1]", "F32", "found shape [6, 1], expected [6] (ffn_dim)"},
        {"decoder.embed_positions.weight", "[10,2]", "F32",
         "expected [5, 4] (max_position_embeddings + offset"},
        {"decoder.layers.0.self_attn.v_proj.weight", "[4,4]", "I32",
         "v_proj.weight': found dtype I32, expected F32"},
        {"decoder.layers.0.self_attn.v_proj.weight", "[4,4]", "F99",
         "found dtype F99, expected F32"}};
    write_config("{\"model_type\":\"opt\"," CONFIG "}");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_weights(usual, bad[i].odd, bad[i].shape, bad[i].dtype, 0);
        CU_ASSERT(refused(bad[i].says));
    }
    for (size_t i = 1; i < N_USUAL; i++) {
        char part[128];
        without = items[i].name;
        snprintf(part, sizeof part, "tensor '%s' is missing", without);
        write_weights(usual, NULL, "", "", 0);
        CU_ASSERT(refused(part));
    }
    without = "embed_tokens";
    write_weights(usual, NULL, "", "", 0);
    CU_ASSERT(refused(
        "expected a tensor 'model.decoder.embed_tokens.weight' or 'decoder.embed_tokens.weight'"));
    without = NULL;
    write_weights(surplus, NULL, "", "", 0);
    CU_ASSERT(refused("'decoder.layers.1.fc2.bias', expected only the 1 layers of"));
    scratch_clear();
    CU_ASSERT(refused("config.json: cannot be opened"));
}

/* 1: the tensor is there. */
static int has(struct sh_model *m, enum sh_role role)
{
    struct sh_tensor t;
    return sh_model_tensor(m, role, 0, &t, &e) == 0 && t.at != NULL;
}

static void variants(void)
{
    write_config("{\"model_type\":\"opt\"," CONFIG ",\"tie_word_embeddings\":false}");
    write_weights(usual, NULL, "", "", 0);
    CU_ASSERT(refused("tensor 'lm_head.weight' is missing"));
    write_weights(untied, NULL, "", "", 0);
    struct sh_tensor head;
    struct sh_model *m = open_scratch();
    CU_ASSERT_FATAL(m != NULL);
    CU_ASSERT(sh_model_tensor(m, SH_HEAD, 0, &head, &e) == 0 &&
              !strcmp(head.name, "lm_head.weight"));
    CU_ASSERT(sh_model_layer_bytes(m, -1) == 4 * (20 + 20 + 4 + 4 + 20));
    CU_ASSERT(sh_model_layer_bytes(m, 0) == 4 * (4 * 4 + 4 * 20 + 24 + 6 + 24 + 4));
    CU_ASSERT(sh_model_tensor(m, SH_Q_W, 1, &head, &e) == -1 &&
              tap_says(e.text, "found layer 1, expected 0 to 0"));
    sh_model_close(m);
    write_config("{\"model_type\":\"opt\"," CONFIG
                 ",\"enable_bias\":false,\"_remove_final_layer_norm\":true}");
    m = open_scratch();
    CU_ASSERT_FATAL(m != NULL);
    CU_ASSERT(!has(m, SH_Q_B) && !has(m, SH_UP_B) && !has(m, SH_DOWN_B) &&
              !has(m, SH_FINAL_NORM_W));
    CU_ASSERT(has(m, SH_ATTN_NORM_B) && has(m, SH_HEAD) && has(m, SH_Q_W) && !has(m, SH_PROJ_IN));
    sh_model_close(m);
    without = "layer_norm";
    write_weights(usual, NULL, "", "", 0);
    without = NULL;
    CU_ASSERT(refused("is missing from the weights"));
    write_config("{\"model_type\":\"opt\"," CONFIG ",\"layer_norm_elementwise_affine\":false}");
    m = open_scratch();
    CU_ASSERT_FATAL(m != NULL);
    CU_ASSERT(!has(m, SH_ATTN_NORM_W) && !has(m, SH_FINAL_NORM_B) && has(m, SH_Q_B));
    CU_ASSERT(sh_model_arch(m)->flags & SH_HAS_FINAL_NORM);
    sh_model_close(m);
    scratch_clear();
}

/* Data at an odd address are handed out aligned, and again after a drop. */
static void alignment(void)
{
    write_config("{\"model_type\":\"opt\"," CONFIG "}");
    for (int pad = 0; pad < 4; pad++) {
        write_weights(usual, NULL, "", "", pad);
        struct sh_model *m = open_scratch();
        CU_ASSERT_FATAL(m != NULL);
        for (int again = 0; again < 2; again++) {
            struct sh_tensor t;
            CU_ASSERT(sh_model_tensor(m, SH_DOWN_W, 0, &t, &e) == 0 && (uintptr_t)t.at % 4 == 0);
            CU_ASSERT(((const float *)t.at)[23] == 23.0f);
            sh_model_drop(m, 0);
        }
        sh_model_close(m);
    }
    scratch_clear();
}

static void config_keys(void)
{
    static const struct { const char *more, *says; } bad[] = {
        {"\"hidden_size\":-4",
         "key 'hidden_size': found -4, expected a whole number from 1 to 10000000"},
        {"\"hidden_size\":0", "key 'hidden_size': found 0, expected"},
        {"\"hidden_size\":1099511627776", "key 'hidden_size': found 1099511627776, expected"},
        {"\"hidden_size\":\"4\"", "key 'hidden_size': found \"4\", expected"},
        {"\"hidden_size\":4.5", "key 'hidden_size': found 4.5, expected"},
        {"\"hidden_size\":5",
         "key 'hidden_size': found 5, expected a multiple of 'num_attention_heads', which is 2"},
        {"\"hidden_size\":null", "key 'hidden_size' is missing"},
        {"\"num_hidden_layers\":null", "key 'num_hidden_layers' is missing"},
        {"\"num_hidden_layers\":1000000", "key 'num_hidden_layers': found 1000000, expected"},
        {"\"num_attention_heads\":[]", "key 'num_attention_heads': found [], expected"},
        {"\"num_hidden_layers\":[null]", "key 'num_hidden_layers.0': found nothing, expected a whole number"},
        {"\"word_embed_proj_dim\":0", "key 'word_embed_proj_dim': found 0, expected"},
        {"\"ffn_dim\":true", "key 'ffn_dim': found true, expected"},
        {"\"enable_bias\":1", "key 'enable_bias': found 1, expected true or false"},
        {"\"do_layer_norm_before\":\"yes\"",
         "key 'do_layer_norm_before': found \"yes\", expected true or false"},
        {"\"activation_function\":\"quick_gelu\"",
         "key 'activation_function': found \"quick_gelu\", expected one of relu gelu"},
        {"\"activation_function\":3", "key 'activation_function': found 3, expected a string"},
        {"\"init_std\":-1", "key 'init_std': found -1, expected a number from 0"},
        {"\"dtype\":\"float64\"", "key 'dtype': found \"float64\", expected one of float32"},
        {"\"torch_dtype\":\"int8\"", "key 'torch_dtype': found \"int8\", expected one of float32"},
        {"\"model_type\":\"mamba9\"",
         "key 'model_type': found \"mamba9\", expected one of these model types: opt"},
        {"\"model_type\":null,\"architectures\":[\"FooForCausalLM\"]",
         "key 'architectures': found [\"FooForCausalLM\"], expected one of these model types: opt"},
        {"\"architectures\":[\"OPTForSequenceClassification\"]", "expected OPTForCausalLM"},
        {"\"architectures\":\"OPTForCausalLM\"", "expected a list of strings"},
        {"\"model_type\":null,\"architectures\":[]", "key 'model_type' is missing"},
        {"\"quantization_config\":{\"bits\":4}",
         "key 'quantization_config': found {\"bits\":4}, expected"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *c = json_loads("{\"model_type\":\"opt\"," CONFIG "}", 0, NULL);
        char text[200];
        snprintf(text, sizeof text, "{%s}", bad[i].more);
        json_t *more = json_loads(text, 0, NULL);
        json_object_update(c, more);
        char *whole = json_dumps(c, 0);
        write_config("%s", whole);
        CU_ASSERT(refused(bad[i].says));
        free(whole);
        json_decref(more);
        json_decref(c);
    }
    write_config("{\"model_type\":\"opt\",\"ffn_dim\":6," CONFIG "}");
    CU_ASSERT(refused("duplicate object key"));
    write_config("[1]");
    CU_ASSERT(refused("expected an object"));
    write_config("%s", "");
    CU_ASSERT(refused("not valid JSON"));
    scratch_clear();
}

static void config_reads(void)
{
    static const struct { const char *word; enum sh_act act; } acts[] = {
        {"relu", SH_ACT_RELU}, {"gelu", SH_ACT_GELU}, {"gelu_new", SH_ACT_GELU_TANH},
        {"gelu_pytorch_tanh", SH_ACT_GELU_TANH}};
    struct sh_arch a;
    for (size_t i = 0; i < 4; i++) {
        write_config(
            "{" CONFIG
            ",\"activation_function\":\"%s\",\"dtype\":\"bfloat16\",\"torch_dtype\":\"float16\","
            "\"word_embed_proj_dim\":2,\"init_std\":0.5}",
            acts[i].word);
        struct sh_config *c = sh_config_open(scratch_path("config.json"), &e); /* no model_type */
        CU_ASSERT_FATAL(c != NULL);
        CU_ASSERT(sh_config_arch(c, &a, &e) == 0);
        CU_ASSERT(a.act == acts[i].act && a.type == SH_BF16 && a.d_embed == 2 &&
                  a.init_std == 0.5f);
        CU_ASSERT((a.flags & SH_HAS_PROJECTION) && a.d_ff == 6 && a.d_head == 2 &&
                  a.n_kv_head == 2);
        sh_config_close(c);
    }
    scratch_clear();
}

static void finite_check(void)
{
    static uint32_t f32[70001];
    static uint16_t f16[70001];
    struct sh_tensor t = {.at = f32, .type = SH_F32, .rows = 1, .cols = 70001, .name = "w"};
    for (int i = 0; i < 70001; i++)
        f32[i] = 0xff7fffffu;                             /* the largest numbers there are */
    CU_ASSERT(sh_model_check_finite(&t, &e) == 0);
    f32[69999] = 0xff800000u;
    CU_ASSERT(sh_model_check_finite(&t, &e) == -1 &&
              tap_says(e.text, "tensor 'w': element 69999 (row 0, column 69999) is -inf"));
    f32[3] = 0x7f800001u;
    t.rows = 2, t.cols = 2;
    CU_ASSERT(sh_model_check_finite(&t, &e) == -1 && tap_says(e.text, "element 3 (row 1, column 1) is nan"));
    t = (struct sh_tensor){.at = f16, .rows = 1, .cols = 1, .name = "w"};
    for (uint32_t h = 0; h < 0x10000; h++) {                        /* every number there is */
        f16[0] = (uint16_t)h;
        t.type = SH_F16;
        CU_ASSERT_FATAL(!sh_model_check_finite(&t, &e) == !!isfinite(sh_f16_to_f32(f16[0])));
        t.type = SH_BF16;
        CU_ASSERT_FATAL(!sh_model_check_finite(&t, &e) == !!isfinite(sh_bf16_to_f32(f16[0])));
    }
    t.at = NULL;
    CU_ASSERT(sh_model_check_finite(&t, &e) == 0);
}

static void nan_in_a_file(void)
{
    write_config("{\"model_type\":\"opt\"," CONFIG "}");
    write_weights(usual, NULL, "", "", 0);
    FILE *f = fopen(scratch_path("model.safetensors"), "r+b");
    CU_ASSERT_FATAL(f != NULL);
    fseek(f, -8, SEEK_END);
    fwrite("\0\0\xc0\x7f", 4, 1, f);
    fclose(f);
    struct sh_model *m = open_scratch();
    struct sh_tensor t;
    CU_ASSERT_FATAL(m != NULL);
    CU_ASSERT(sh_model_tensor(m, SH_DOWN_W, 0, &t, &e) == 0 && sh_model_check_finite(&t, &e) == 0);
    CU_ASSERT(sh_model_tensor(m, SH_DOWN_B, 0, &t, &e) == 0 && sh_model_check_finite(&t, &e) == -1);
    CU_ASSERT(tap_says(e.text, "tensor 'decoder.layers.0.fc2.bias': element 2"));
    sh_model_close(m);
    scratch_clear();
}

static void random_numbers_are_normal(void)
{
    enum { N = 1 << 20 };
    float *x = malloc(N * sizeof *x);
    double sum[4] = {0}, within = 0;
    sh_random_normal(x, N, 7, 0.5f);
    for (int i = 0; i < N; i++) {
        double z = x[i] / 0.5, p = z;
        for (int k = 0; k < 4; k++, p *= z)
            sum[k] += p / N;
        within += (fabs(z) < 1) / (double)N;
    }
    CU_ASSERT(fabs(sum[0]) < 0.005 && fabs(sum[1] - 1) < 0.007 && fabs(sum[2]) < 0.012);
    CU_ASSERT(fabs(sum[3] - 2.85) < 0.03 && fabs(within - 0.6827) < 0.01);
    float again[100];
    sh_random_normal(again, 100, 7, 0.5f);
    CU_ASSERT(!memcmp(x, again, sizeof again));                     /* whatever n and the threads */
    free(x);
}

static void copy_of(struct sh_model *m, enum sh_role role, int layer, float *out, int n)
{
    struct sh_tensor t;
    CU_ASSERT_FATAL(sh_model_tensor(m, role, layer, &t, &e) == 0 && t.type == SH_F32 &&
                    t.rows * t.cols >= n);
    memcpy(out, t.at, (size_t)n * sizeof *out);
}

static void random_models(void)
{
    const char *folder = tap_golden("checkpoints/opt_350m_style");
    CU_ASSERT_FATAL(folder != NULL);
    struct sh_model *m = sh_model_open_random(folder, 1, &e), *same, *other;
    CU_ASSERT_FATAL(m != NULL);
    char *file = xasprintf("%s/config.json", folder);
    same = sh_model_open_random(file, 1, &e);
    other = sh_model_open_random(file, 2, &e);
    free(file);
    CU_ASSERT_FATAL(same != NULL && other != NULL);
    CU_ASSERT_STRING_EQUAL(sh_model_name(same), "opt_350m_style");
    float a[32], b[32];
    copy_of(m, SH_Q_W, 0, a, 32);
    sh_model_drop(m, 0);
    copy_of(m, SH_Q_W, 0, b, 32);
    CU_ASSERT(!memcmp(a, b, sizeof a));
    copy_of(same, SH_Q_W, 0, b, 32);
    CU_ASSERT(!memcmp(a, b, sizeof a));
    copy_of(same, SH_Q_W, 1, b, 32);
    CU_ASSERT(memcmp(a, b, sizeof a));
    copy_of(same, SH_K_W, 0, b, 32);
    CU_ASSERT(memcmp(a, b, sizeof a));
    copy_of(other, SH_Q_W, 0, b, 32);
    CU_ASSERT(memcmp(a, b, sizeof a));
    copy_of(m, SH_MLP_NORM_W, 1, a, 32);
    copy_of(m, SH_MLP_NORM_B, 1, b, 32);
    for (int i = 0; i < 32; i++)
        CU_ASSERT(a[i] == 1.0f && b[i] == 0.0f);
    copy_of(m, SH_UP_B, 0, b, 32);
    CU_ASSERT(b[7] == 0.0f);
    CU_ASSERT(has(m, SH_PROJ_IN) && has(m, SH_HEAD) && !has(m, SH_FINAL_NORM_W));
    CU_ASSERT(sh_model_fingerprint(m) == sh_model_fingerprint(same));
    CU_ASSERT(sh_model_fingerprint(m) != sh_model_fingerprint(other));
    sh_model_close(m);
    sh_model_close(same);
    sh_model_close(other);
}

static uint64_t fingerprint(void)
{
    struct sh_model *m = open_scratch();
    CU_ASSERT_FATAL(m != NULL);
    uint64_t print = sh_model_fingerprint(m);
    CU_ASSERT(print == sh_model_fingerprint(m));
    sh_model_close(m);
    return print;
}

static void fingerprints(void)
{
    uint64_t print[4];
    write_config("{\"model_type\":\"opt\"," CONFIG "}");
    write_weights(usual, NULL, "", "", 0);
    print[0] = fingerprint();
    write_weights(usual, NULL, "", "", 0);
    CU_ASSERT(fingerprint() == print[0]);
    write_weights(usual, NULL, "", "", 1);                          /* another file size   */
    print[1] = fingerprint();
    write_weights(usual, NULL, "", "", 0);
    FILE *f = fopen(scratch_path("model.safetensors"), "r+b");
    CU_ASSERT_FATAL(f != NULL);
    fseek(f, -1, SEEK_END);
    fputc(0x3f, f);                                                 /* another last number */
    fclose(f);
    print[2] = fingerprint();
    write_weights(usual, NULL, "", "", 0);
    write_config("{\"model_type\":\"opt\"," CONFIG ",\"activation_function\":\"gelu\"}");
    print[3] = fingerprint();
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++)
            CU_ASSERT(print[i] != print[j]);
    scratch_clear();
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"OPT checkpoints: every tensor equals what an independent reader finds", fixtures_bind},
        {"OPT checkpoints: the config's numbers equal the references' facts", fixtures_arch},
        {"weights that do not fit are refused by name", weights_that_do_not_fit},
        {"variants: untied head, no biases, plain norms", variants},
        {"data at an odd address are handed out aligned", alignment},
        {"config keys: missing, wrong and absurd values are refused", config_keys},
        {"config keys: activations, types, both spellings", config_reads},
        {"finite check: every f16 and bf16, both ends of f32", finite_check},
        {"a NaN in a file is found with its place", nan_in_a_file},
        {"random numbers: moments of a normal, same for any length", random_numbers_are_normal},
        {"random models: reproducible, different by role, layer and seed", random_models},
        {"fingerprints: change with config, size and weights", fingerprints},
        {0}};
    return tap_run("model", tests);
}
