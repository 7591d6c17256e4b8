/* SPDX-License-Identifier: Apache-2.0 */
/* config.json of many model types: parameters and kinds of layers as transformers has them, from classic files
 * and from those that it writes today (tests/golden/capacity_configs.json, tests/oracle/capacity_configs.py);
 * and files whose keys change the memory in ways that are not known. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/capacity/kv_weights.h"
#include "src/model/config/config.h"
#include "src/model/model.h"
#include "src/model/weights.h"
#include "tests/tap.h"
#include "tests/unit/modern.h"
#include "tests/unit/scratch.h"

static struct sh_err e;

static int read_config(const json_t *config, struct sh_kv_facts *f)
{
    char *text = json_dumps(config, 0);
    const char *path = scratch_write("config.json", text, strlen(text));
    int bad = sh_config_facts(path, f, &e);
    free(text);
    scratch_clear();
    return bad;
}

static int same_kinds(const json_t *types, const struct sh_kv_shape *s)
{
    static const struct { const char *word; int mix; } kinds[] = {
        {"full_attention", SH_MIX_FULL}, {"sliding_attention", SH_MIX_WINDOW}, {"chunked_attention", SH_MIX_CHUNK},
        {"linear_attention", SH_MIX_STATE}, {"mlp", SH_MIX_NONE}, {"moe", SH_MIX_NONE},
        {"indexed_attention", SH_MIX_INDEXED}, {"shared_index", SH_MIX_LATENT},
        {"minimax_m3_sparse", SH_MIX_BLOCKS}, {"indexed_blocks", SH_MIX_BLOCKS},
        {"compressed_sparse_attention", SH_MIX_POOLED}, {"heavily_compressed_attention", SH_MIX_POOLED}};
    const json_t *word;
    size_t i, same = 0;
    json_array_foreach(types, i, word)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            same += !strcmp(json_string_value(word), kinds[k].word) && s->layer[i].mix == kinds[k].mix;
    return !json_is_array(types) || same == json_array_size(types);
}

static void check(const json_t *entry, const char *which)
{
    struct sh_kv_facts f;
    struct sh_kv_shape s = {.layer = NULL};
    struct sh_weight_types t;
    const json_t *config = json_object_get(entry, which);
    long long expected = json_integer_value(json_object_get(entry, "parameters")), found = 0;
    int kinds = 0, bad = read_config(config, &f) || sh_kv_shape_build(&f, &s, &e) ||
                         sh_weight_types_published(&f, &t, &e);
    if (!bad) {
        struct sh_kv_parts p = sh_kv_weights_all(&s, &t);
        found = (long long)sh_kv_parts_sum(p.parameters);
        kinds = same_kinds(json_object_get(entry, "layer_types"), &s);
    }
    if (bad || found != expected || !kinds)
        printf("# %s, %s: expected %lld parameters, found %lld; %s\n",
               json_string_value(json_object_get(config, "model_type")),
               which, expected, found, bad ? e.text : kinds ? "layers agree" : "layers differ");
    CU_ASSERT(!bad && found == expected && kinds);
    sh_kv_shape_clear(&s);
}

static void against_transformers(void)
{
    const char *path = tap_golden("capacity_configs.json");
    json_t *root = path ? json_load_file(path, 0, NULL) : NULL;
    const json_t *entry;
    size_t i;
    CU_ASSERT_FATAL(json_array_size(root) >= 30);
    json_array_foreach(root, i, entry) {
        check(entry, "config");
        check(entry, "today");
    }
    printf("# %zu models, each from two files\n", json_array_size(root));
    json_decref(root);
}

#define MODERN_NAME(family, folder) #folder,
static const char *const modern[] = {MODERN(MODERN_NAME) NULL};

/* Numbers that correct the choice of experts: transformers counts them as buffers. */
static size_t corrections(struct sh_model *m)
{
    size_t n = 0;
    for (int layer = 0; layer < sh_model_arch(m)->n_layer; layer++) {
        struct sh_tensor t;
        CU_ASSERT_FATAL(sh_model_tensor(m, SH_ROUTER_CHOICE, layer, &t, &e) == 0);
        n += t.at ? (size_t)t.cols : 0;
    }
    return n;
}

/* Those of indexes, which are counted and not run. */
static size_t indexes(const char *folder)
{
    size_t n = 0;
    struct sh_weights *w = sh_weights_open_folder(folder, &e);
    for (size_t i = 0; w && i < sh_weights_count(w); i++) {
        const char *name = sh_weights_at(w, i)->name;
        int is = strstr(name, ".indexer.") || strstr(name, ".self_attn.index_");
        n += is ? sh_weights_at(w, i)->bytes / sizeof(float) : 0;
    }
    sh_weights_close(w);
    return n;
}

/* A family that runs has as many parameters as its tables find in the checkpoint. */
static void against_checkpoints(void)
{
    for (int i = 0; modern[i]; i++) {
        struct sh_kv_facts f;
        struct sh_kv_shape s = {.layer = NULL};
        struct sh_weight_types t;
        char name[80], folder[400];
        snprintf(name, sizeof name, "checkpoints/modern/%s/config.json", modern[i]);
        const char *path = tap_golden(name) ? tap_golden(name) : tap_fixture(name + strlen("checkpoints/"));
        if (!path) {
            tap_skip("the shared fixtures are not there");
            return;
        }
        snprintf(folder, sizeof folder, "%s", path);
        *strrchr(folder, '/') = '\0';
        struct sh_model *m = sh_model_open(folder, &e);
        int bad = !m || sh_config_facts(folder, &f, &e) || sh_kv_shape_build(&f, &s, &e) ||
                  sh_weight_types_published(&f, &t, &e);
        struct sh_kv_parts p = {{0}, {0}};
        if (!bad)
            p = sh_kv_weights_all(&s, &t);
        long long expected = m ? (long long)(sh_model_parameters(m) - corrections(m) + indexes(folder)) : 0,
                  found = (long long)sh_kv_parts_sum(p.parameters);
        if (bad || found != expected)
            printf("# %s: expected %lld parameters, found %lld; %s\n", modern[i], expected, found, bad ? e.text : "");
        CU_ASSERT(!bad && found == expected);
        sh_kv_shape_clear(&s);
        sh_model_close(m);
    }
}

static void refused(void)
{
    static const struct { const char *more, *says; } cases[] = {
        {"\"model_type\": \"mamba9\"", "'model_type': found \"mamba9\", expected one of opt"},
        {"\"model_type\": null", "'model_type' is missing"},
        {"\"num_hidden_layers\": null", "'num_hidden_layers' is missing"},
        {"\"num_hidden_layers\": -3", "'num_hidden_layers': found -3"},
        {"\"num_hidden_layers\": 1e30", "'num_hidden_layers'"},
        {"\"hidden_size\": \"wide\"", "'hidden_size': found \"wide\""},
        {"\"vocab_size\": null", "'vocab_size' is missing"},
        {"\"kv_lora_rank\": 512", "'kv_lora_rank'"}, {"\"sliding_window\": 4096", "'sliding_window'"},
        {"\"attention_k_eq_v\": true", "'attention_k_eq_v'"},
        {"\"num_kv_shared_layers\": 10", "'num_kv_shared_layers'"},
        {"\"layer_types\": [\"full_attention\", \"odd\"]", "'layer_types'"},
        {"\"is_encoder_decoder\": true", "'is_encoder_decoder'"},
        {"\"linear_attn_config\": {\"a\": 1}", "'linear_attn_config'"},
        {"\"quantization_config\": {\"quant_method\": \"odd\"}", "'quantization_config.quant_method'"}};
    static const char *const neutral = "\"sliding_window\": null, \"is_encoder_decoder\": false, "
                                       "\"num_kv_shared_layers\": 0, "
                                       "\"no_rope_layers\": []";
    struct sh_kv_facts f;
    for (size_t i = 0; i <= sizeof cases / sizeof *cases; i++) {
        int last = i == sizeof cases / sizeof *cases;
        char text[800];
        snprintf(text, sizeof text, "{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 8, "
                 "\"num_attention_heads\": 2, \"intermediate_size\": 8, \"vocab_size\": 9}");
        json_t *config = json_loads(text, 0, NULL);
        snprintf(text, sizeof text, "{%s}", last ? neutral : cases[i].more);
        json_t *more = json_loads(text, 0, NULL);
        CU_ASSERT_FATAL(config && more && !json_object_update(config, more));
        int bad = read_config(config, &f);
        int good = last ? !bad : bad && e.status == SH_FAILED && strstr(e.text, cases[i].says);
        if (!good)
            printf("# %s: %s\n", text, bad ? e.text : "taken");
        CU_ASSERT(good);
        json_decref(config);
        json_decref(more);
    }
}

/* Infinity, -Infinity and NaN stand bare in files that Python wrote; as a count they are refused by name. */
static void python_numbers(void)
{
    static const struct { const char *text, *says; } cases[] = {
        {"\"time_step_limit\": [0.0, Infinity]", NULL}, {"\"a\": -Infinity, \"b\": NaN", NULL},
        {"\"a\": [NaN,Infinity , -Infinity\n], \"b\": {\"c\":NaN}", NULL},
        {"\"a\": \"x\\\\\", \"b\": \"\\\", NaN, [Infinity]\"", NULL},
        {"\"num_key_value_heads\": NaN", "'num_key_value_heads': found \"NaN\""},
        {"\"sliding_window\": Infinity", "'sliding_window': found \"Infinity\""},
        {"\"a\": Infinityx", "not valid JSON"}, {"\"a\": --Infinity", "not valid JSON"}, {"NaN: 1", "not valid JSON"},
        {"\"a\": 1Infinity", "not valid JSON"}, {"\"a\": +Infinity", "not valid JSON"}, {"\"a\": \"NaN", "not valid"},
        {"\"a\": NaN", "not valid JSON"}, {"\"a\": \"\\", "not valid JSON"}};
    struct sh_kv_facts f;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[400];                 /* the last two end where a letter is missing */
        int cut = i + 2 >= sizeof cases / sizeof *cases;
        snprintf(text, sizeof text, "{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 8, "
                 "\"num_attention_heads\": 2, \"intermediate_size\": 8, \"vocab_size\": 9,\n%s%s", cases[i].text,
                 cut ? "" : "}");
        int bad = sh_config_facts(scratch_write("config.json", text, strlen(text)), &f, &e);
        int good = cases[i].says ? bad && e.status == SH_FAILED && strstr(e.text, cases[i].says) : !bad;
        if (!good)
            printf("# %s: %s\n", cases[i].text, bad ? e.text : "taken");
        CU_ASSERT(good);
        scratch_clear();
    }
}

/* What compressed-tensors and modelopt say, as formats of the matrices and of the experts; NULL: refused by `says`.
 * "mixed": with a format for each matrix (tests/cli/capacity_modules.sh compares their bytes). */
#define GROUP(bits, type, more) "\"config_groups\": {\"group_0\": {\"targets\": [\"Linear\"], \"weights\": {" \
    "\"num_bits\": " bits ", \"type\": \"" type "\"" more "}}}, "
#define TENSORS "\"quant_method\": \"compressed-tensors\", "
#define MODELOPT "\"quant_method\": \"modelopt\", \"quant_algo\": "
#define HEAD "\"ignore\": [\"lm_head\"]"
static const struct { const char *text, *all, *experts, *says; } published[] = {
    {GROUP("8", "float", "") "\"quant_algo\": \"FP8\", " HEAD, "f8", "", ""},
    {TENSORS GROUP("8", "float", ", \"strategy\": \"tensor\"") HEAD, "f8", "", ""},
    {TENSORS GROUP("4", "int", ", \"group_size\": 32, \"strategy\": \"group\", \"symmetric\": true")
     "\"ignore\": [\"lm_head\", \"re:.*self_attn.*\", \"re:.*shared_experts.*\", "
     "\"re:.*mlp\\\\.(gate|up|gate_up|down)_proj.*\"]", "f16", "", ""},
    {MODELOPT "\"NVFP4\", " GROUP("4", "float", ", \"group_size\": 16") "\"ignore\": [\"lm_head\", "
     "\"model.layers.0.mlp.gate\", \"model.visual*\"]", "nvfp4", "", ""},
    {MODELOPT "\"NVFP4\", " GROUP("4", "float", ", \"group_size\": 16") "\"ignore\": [\"lm_head\", "
     "\"model.layers.0.self_attn*\"]", "f16", "", "mixed"},
    {MODELOPT "\"MIXED_PRECISION\", " HEAD, NULL, NULL, "'quantization_config.quant_algo'"},
    {MODELOPT "\"NVFP4\", " GROUP("4", "float", ", \"group_size\": 32") HEAD, NULL, NULL, "group_0.weights'"},
    {TENSORS GROUP("8", "float", ", \"strategy\": \"channel\"") HEAD, "f8:scale=16", "", ""},
    {TENSORS GROUP("4", "int", ", \"group_size\": 32, \"strategy\": \"group\", \"symmetric\": false") HEAD,
     "int4:group=32:scale=16:zero=8", "", ""},
    {TENSORS GROUP("8", "int", ", \"strategy\": \"channel\"") HEAD, "int8:group=0:scale=16:zero=0", "", ""},
    {TENSORS GROUP("8", "float", ", \"strategy\": \"block\", \"block_structure\": [128, 128]") HEAD, "f8:block=128",
     "", ""},
    {TENSORS GROUP("8", "float", ", \"strategy\": \"tensor_group\"") HEAD, NULL, NULL, "group_0.weights'"},
    {TENSORS GROUP("8", "float", ", \"strategy\": \"rows\"") HEAD, NULL, NULL, "group_0.weights.strategy'"},
    {TENSORS "\"format\": \"nvfp4-pack-quantized\", " GROUP("4", "float", ", \"strategy\": \"tensor_group\", "
     "\"group_size\": 16") HEAD, "nvfp4", "", ""},
    {TENSORS "\"format\": \"mxfp4-pack-quantized\", " GROUP("4", "float", ", \"strategy\": \"group\", "
     "\"group_size\": 32") HEAD, "mxfp4", "", ""},
    {TENSORS "\"format\": \"mxfp8-quantized\", " GROUP("8", "float", ", \"strategy\": \"group\", \"group_size\": 32")
     HEAD, "f8:group=32:scale=8", "", ""},
    {MODELOPT "\"NVFP4\", \"exclude_modules\": [\"lm_head\"]", "nvfp4", "", ""},
    {MODELOPT "\"FP8\", \"exclude_modules\": []", "f8", "", ""},
    {MODELOPT "\"NVFP4\", \"exclude_modules\": [\"lm_head\", \"*self_attn*\", \"*router*\"]", "nvfp4", "",
     "attention f16"},
    {MODELOPT "\"NVFP4\", \"exclude_modules\": [\"lm_head\", \"model.layers.1.self_attn*\"]", "f16", "", "mixed"},
    {MODELOPT "\"NVFP4\", \"exclude_modules\": [\"model.layers.*.odd\"]", NULL, NULL,
     "'quantization_config.exclude_modules.0'"},
    {MODELOPT "\"W4A16_NVFP4\"", "nvfp4", "", ""}, {MODELOPT "\"MXFP8\"", "f8:group=32:scale=8", "", ""},
    {MODELOPT "\"FP8_PER_CHANNEL_PER_TOKEN\"", "f8:scale=16", "", ""},
    {MODELOPT "\"MIXED_PRECISION\", " GROUP("8", "float", "") HEAD, NULL, NULL, "'quantization_config.quant_algo'"},
    {TENSORS GROUP("6", "int", ", \"strategy\": \"channel\"") HEAD, NULL, NULL, "group_0.weights'"},
    {TENSORS GROUP("4", "int", ", \"strategy\": \"group\"") HEAD, NULL, NULL, "group_0.weights'"},
    {TENSORS "\"format\": \"marlin-24\", " GROUP("4", "int", ", \"group_size\": 32") HEAD, NULL, NULL,
     "'quantization_config.format'"},
    {TENSORS GROUP("8", "float", "") "\"ignore\": []", "f16", "", "mixed"},
    {TENSORS "\"config_groups\": {\"group_0\": {}, \"group_1\": {}}, " HEAD, NULL, NULL, "config_groups'"},
    {TENSORS GROUP("8", "float", "") "\"ignore\": [\"lm_head\", \"re:.*self_attn.*\"]", "f8", "", "attention f16"},
    {TENSORS GROUP("8", "float", "") "\"ignore\": [\"lm_head\", \"a.layers.1.mlp*\", \"a.layers.0.mlp*\"]", "f16", "",
     "attention f8"},
    {TENSORS GROUP("8", "float", "") "\"ignore\": [\"lm_head\", \"a.layers.1.mlp*\", \"a.layers.2.*\"]", "f16", "",
     "mixed"},
    {TENSORS GROUP("8", "float", "") "\"ignore\": [\"lm_head\", \"a.layers.1.mlp.odd\"]", NULL, NULL,
     "'quantization_config.ignore.1'"},
    {"\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 64", "int4:group=64:scale=16:zero=8", "", ""},
    {"\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": -1", "int4:group=0:scale=16:zero=8", "", ""},
    {"\"quant_method\": \"gptq\", \"bits\": 8", "int8:group=128:scale=16:zero=8", "", ""},
    {"\"quant_method\": \"gptq\", \"bits\": 3", "int3:group=128:scale=16:zero=8", "", ""},
    {"\"quant_method\": \"gptq\", \"bits\": 5", NULL, NULL, "'quantization_config.bits': found 5, expected 2, 3"},
    {"\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 0", NULL, NULL, "group_size': found 0"},
    {"\"quant_method\": \"gptq\", \"bits\": 4, \"checkpoint_format\": \"marlin\"", NULL, NULL, "_format'"},
    {"\"quant_method\": \"awq\", \"bits\": 4, \"version\": \"gemv\"", NULL, NULL, "'quantization_config.version'"},
    {"\"quant_method\": \"awq\", \"bits\": 8", NULL, NULL, "'quantization_config.bits': found 8, expected 4"},
    {"\"quant_method\": \"bitsandbytes\", \"load_in_4bit\": true", "int4:group=64:scale=32:zero=0", "", ""},
    {"\"quant_method\": \"bitsandbytes\", \"load_in_4bit\": true, \"bnb_4bit_use_double_quant\": true",
     "int4:group=64:scale=8:zero=0", "", ""},
    {"\"quant_method\": \"bitsandbytes\", \"load_in_8bit\": true", "int8:group=0:scale=32:zero=0", "", ""},
    {"\"quant_method\": \"bitsandbytes\"", NULL, NULL, "load_in_4bit'"},
    {"\"quant_method\": \"bitnet\"", "int2:group=0:scale=0:zero=0", "", ""},
    {"\"quant_method\": \"fp8\", \"weight_block_size\": [128]", NULL, NULL, "weight_block_size'"},
    {"\"quant_method\": \"fp8\"", "f8", "", ""}, {"\"quant_method\": \"mxfp4\"", "f16", "mxfp4", ""},
    {"\"quant_method\": \"fp8\", \"fmt\": \"e3m4\"", NULL, NULL, "'quantization_config.fmt'"},
    {"\"quant_method\": \"hqq\"", NULL, NULL, "found \"hqq\", expected one of fp8 fbgemm_fp8 compressed-tensors awq"},
    {"\"quant_method\": \"awq\"", NULL, NULL, "'quantization_config.bits': found nothing"}};

static void quantised(void)
{
    struct sh_kv_facts f;
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        char text[900];
        snprintf(text, sizeof text, "{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 8, "
                 "\"num_attention_heads\": 2, \"intermediate_size\": 8, \"vocab_size\": 9, "
                 "\"quantization_config\": {%s}}", published[i].text);
        int bad = sh_config_facts(scratch_write("config.json", text, strlen(text)), &f, &e);
        int good = published[i].all ? !bad && !strcmp(f.published, published[i].all) &&
                                      !strcmp(f.published_experts, published[i].experts) &&
                                      !f.n_format == !!strcmp(published[i].says, "mixed") &&
                                      !strcmp(f.published_attention, strncmp(published[i].says, "attention ", 10)
                                                                         ? "" : published[i].says + 10)
                                : bad && strstr(e.text, published[i].says);
        if (!good)
            printf("# %s: %s\n", text, bad ? e.text : f.published);
        CU_ASSERT(good);
        scratch_clear();
    }
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"parameters and layers as transformers has them", against_transformers},
        {"parameters as checkpoints have them", against_checkpoints},
        {"keys of unknown effect are refused by name", refused},
        {"numbers as Python writes them", python_numbers},
        {"formats of compressed-tensors, modelopt, GPTQ and AWQ", quantised},
        {NULL, NULL}};
    return tap_run("capacity config", tests);
}
