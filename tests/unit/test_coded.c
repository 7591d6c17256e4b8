/* SPDX-License-Identifier: Apache-2.0 */
/* Coded matrices of every format: bit for bit the numbers that their codes, scales and zero points stand for
 * (tests/oracle/coded.py, coded_blocks.py), in any pieces of rows, and as blocks where there are some; and versions of
 * the same checkpoints with one thing wrong, each refused by the name of what is wrong. test_families.c has whole
 * models. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/coded_blocks.h"
#include "src/model/config/config.h"
#include "src/model/model.h"
#include "tests/tap.h"
#include "tests/unit/blocks.h"
#include "tests/unit/coded_folder.h"
#include "tests/unit/scratch.h"

static struct sh_err e;

/* ---- numbers ---- */

/* wanted: f32 numbers at any address. */
static void check_blocks(const struct sh_coded *c, size_t first, size_t n, const unsigned char *wanted)
{
    const struct sh_gguf_type *type = blocks_type(c->packing);
    size_t blocks = n * (c->cols / type->elements);
    unsigned char *at = xmalloc(blocks * type->bytes);
    float *x = xmalloc(n * c->cols * sizeof *x);
    sh_coded_blocks(c, c->packing, first, n, at);
    for (size_t i = 0; i < blocks; i++)
        type->unpack(at + i * type->bytes, x + i * type->elements);
    for (size_t i = 0; i < n * c->cols; i++) {
        float w;
        size_t col = c->columns ? (size_t)c->columns[i % c->cols] : i % c->cols;
        memcpy(&w, wanted + ((first + i / c->cols) * c->cols + col) * sizeof w, sizeof w);
        CU_ASSERT(x[i] == w || (c->divides && fabsf(x[i] - w) <= 2e-7f * fabsf(w)));
    }
    free(x);
    free(at);
}

static void check_matrix(const struct sh_stored *t, const struct sh_stored *wanted)
{
    size_t rows = 1, cols = wanted->shape[wanted->rank - 1];
    CU_ASSERT_FATAL(t && t->coded && t->rank == wanted->rank);
    CU_ASSERT_FATAL(!memcmp(t->shape, wanted->shape, (size_t)t->rank * sizeof *t->shape));
    for (int i = 0; i + 1 < t->rank; i++)
        rows *= t->shape[i];
    float *x = xcalloc(rows * cols, sizeof *x);
    for (size_t some = 1; some <= 17; some += 8) {
        memset(x, 0, rows * cols * sizeof *x);
        for (size_t row = 0; row < rows; row += some)
            sh_stored_rows(t, row, rows - row < some ? rows - row : some, x + row * cols);
        if (memcmp(x, wanted->at, rows * cols * sizeof *x))
            printf("# %s (%s): other numbers, in pieces of %zu rows\n", t->name, t->dtype, some);
        CU_ASSERT(!memcmp(x, wanted->at, rows * cols * sizeof *x));
    }
    for (size_t i = 0; i < rows && blocks_type(t->coded->packing); i += 7)
        check_blocks(t->coded, i, rows - i, wanted->at);
    free(x);
}

/* All matrices of the folder; what is left is whole: "whole.weight", say. */
static void check_folder(const char *folder, const char *format, size_t n_matrix, size_t n_whole)
{
    struct sh_weights *wanted = sh_weights_open(coded_golden(folder, "expected.safetensors"), &e);
    char *config = xstrdup(coded_golden(folder, "config.json"));
    struct sh_weights *w = coded_joined(config, coded_golden(folder, "model.safetensors"), &e);
    if (!w)
        printf("# %s: %s\n", folder, e.text);
    CU_ASSERT_FATAL(wanted != NULL && w != NULL);
    CU_ASSERT(sh_weights_count(wanted) == n_matrix && sh_weights_count(w) == n_matrix + n_whole);
    for (size_t i = 0; i < sh_weights_count(wanted); i++)
        check_matrix(sh_weights_find(w, sh_weights_at(wanted, i)->name), sh_weights_at(wanted, i));
    const struct sh_stored *first = sh_weights_find(w, sh_weights_at(wanted, 0)->name);
    enum sh_type type;
    CU_ASSERT_STRING_EQUAL(first->dtype, format);
    CU_ASSERT(!sh_stored_type(first, &type, &e) && type == SH_F32);
    sh_weights_close(wanted);
    sh_weights_close(w);
    free(config);
}

static void numbers(void)
{
    check_folder("fp8", "FP8 E4M3", 4, 1);
    check_folder("fp8_tensor", "FP8 E4M3", 2, 0);
    check_folder("compressed", "INT4", 5, 1);
    check_folder("gptq", "GPTQ 4-bit", 2, 2);
    check_folder("gptq_v2", "GPTQ 8-bit", 2, 0);
    check_folder("awq", "AWQ 4-bit", 2, 0);
    check_folder("bnb", "NF4", 3, 1);
    check_folder("mxfp4", "MXFP4", 1, 1);
    check_folder("nvfp4", "NVFP4", 2, 2);
    check_folder("modelopt_mixed", "NVFP4", 4, 0);
    check_folder("compressed_fp4", "NVFP4", 5, 1);
    check_folder("blocks_awq", "AWQ 4-bit", 2, 0);
    check_folder("blocks_gptq", "GPTQ 4-bit", 3, 0);
    check_folder("blocks_gptq8", "GPTQ 8-bit", 2, 0);
    check_folder("blocks_compressed", "INT4", 5, 0);
    check_folder("blocks_fp8", "FP8 E4M3", 3, 0);
    check_folder("blocks_fp8_rows", "FP8 E4M3", 2, 0);
    check_folder("blocks_nvfp4", "NVFP4", 1, 0);
    check_folder("blocks_bnb", "NF4", 3, 0);
    check_folder("blocks_nvfp4_packed", "NVFP4", 1, 0);
    check_folder("blocks_fp8_short", "FP8 E4M3", 4, 0);
    check_folder("blocks_bitnet", "BitNet", 3, 1);
    check_folder("blocks_bitnet_divides", "BitNet", 2, 0);
    check_folder("blocks_bnb8", "INT8", 2, 1);
    check_folder("blocks_gptq2", "GPTQ 2-bit", 2, 0);
    check_folder("blocks_gptq3", "GPTQ 3-bit", 2, 0);
}

/* ---- one thing wrong ---- */

struct file {
    json_t *header;
    unsigned char *data;
    size_t n;
};

static void read_file(const char *path, struct file *f)
{
    FILE *from = fopen(path, "rb");
    unsigned char length[8];
    CU_ASSERT_FATAL(from != NULL && fread(length, 1, 8, from) == 8);
    size_t n = length[0] | (size_t)length[1] << 8;
    char *text = xmalloc(n);
    CU_ASSERT_FATAL(fread(text, 1, n, from) == n);
    f->header = json_loadb(text, n, 0, NULL);
    free(text);
    f->data = xmalloc(1 << 16);
    f->n = fread(f->data, 1, 1 << 16, from);
    CU_ASSERT_FATAL(f->header != NULL && f->n < 1 << 16);
    fclose(from);
}

static size_t offset(const json_t *facts, size_t i)
{
    return (size_t)json_integer_value(json_array_get(json_object_get(facts, "data_offsets"), i));
}

/* What is wrong with a checkpoint, and what the refusal says. */
struct wrong {
    const char *folder, *config;        /* config: keys in place of those of quantization_config  */
    const char *name, *facts;           /* a tensor; null: it is left out; {"dtype", "shape", "bytes"}: zeros instead of
                                         * it; [shape]: another shape; "name": another name       */
    const char *says;
};

static json_t *changed(const json_t *facts, const json_t *change)
{
    json_t *t = json_deep_copy(facts);
    if (json_is_object(change))
        json_object_update(t, (json_t *)(uintptr_t)change);
    if (json_is_array(change))
        json_object_set(t, "shape", (json_t *)(uintptr_t)change);
    return t;
}

static void write_file(const struct file *f, const char *name, const char *facts)
{
    json_t *header = json_object(), *t, *change = json_loads(facts, JSON_DECODE_ANY, NULL);
    unsigned char *data = xcalloc(1, 1 << 17);
    size_t n = 0;
    const char *key;
    CU_ASSERT_PTR_NOT_NULL_FATAL(change);
    json_object_foreach(f->header, key, t) {
        int is_it = !strcmp(key, name), is_new = is_it && json_is_object(change);
        size_t bytes = is_new ? (size_t)json_integer_value(json_object_get(change, "bytes"))
                              : offset(t, 1) - offset(t, 0);
        if (is_it && json_is_null(change))
            continue;
        json_t *copy = is_it ? changed(t, change) : json_deep_copy(t);
        if (!is_new)
            memcpy(data + n, f->data + offset(t, 0), bytes);
        json_object_set_new(copy, "data_offsets", json_pack("[II]", (json_int_t)n, (json_int_t)(n + bytes)));
        json_object_set_new(header, is_it && json_is_string(change) ? json_string_value(change) : key, copy);
        n += bytes;
    }
    char *text = json_dumps(header, 0);
    scratch_safetensors("model.safetensors", text, data, n);
    free(text);
    free(data);
    json_decref(header);
    json_decref(change);
}

static void write_config(const char *folder, const char *patch)
{
    json_t *config = json_load_file(coded_golden(folder, "config.json"), 0, NULL), *more = json_loads(patch, 0, NULL);
    CU_ASSERT_FATAL(config != NULL && more != NULL);
    json_object_update(json_object_get(config, "quantization_config"), more);
    char *text = json_dumps(config, 0);
    scratch_write("config.json", text, strlen(text));
    free(text);
    json_decref(more);
    json_decref(config);
}

/* With `to`, `from` becomes `to` in the tensor's data, or its first four bytes do. */
static void check_refused(const struct wrong *c, const char *from, const char *to)
{
    struct file f;
    read_file(coded_golden(c->folder, "model.safetensors"), &f);
    if (to) {
        const json_t *t = json_object_get(f.header, c->name);
        unsigned char *at = f.data + offset(t, 0);
        while (from && memcmp(at, from, strlen(from)))
            at++;
        memcpy(at, to, from ? strlen(from) : 4);
    }
    write_config(c->folder, c->config);
    write_file(&f, to ? "" : c->name, to ? "null" : c->facts);
    free(f.data);
    json_decref(f.header);
    char *path = xstrdup(scratch_path("config.json"));
    struct sh_weights *w = coded_joined(path, scratch_path("model.safetensors"), &e);
    int good = !w && e.status == SH_FAILED && strstr(e.text, c->says);
    if (!good)
        printf("# %s, %s %s: expected \"%s\", found: %s\n", c->folder, c->name, c->facts, c->says,
               w ? "taken" : e.text);
    CU_ASSERT(good);
    sh_weights_close(w);
    free(path);
    scratch_clear();
}

#define ZEROS(type, shape, bytes) "{\"dtype\": \"" type "\", \"shape\": " shape ", \"bytes\": " bytes "}"
static const struct wrong tensors[] = {
    {"fp8", "{}", "a.weight_scale_inv", "[9]", "found shape [9], expected [3, 3] (blocks of 16 x 32)"},
    {"fp8", "{}", "a.weight_scale_inv", ZEROS("F32", "[3, 2]", "24"), "expected [3, 3]"},
    {"fp8", "{}", "c.weight_scale_inv", ZEROS("U8", "[2, 2]", "4"), "found dtype U8, expected one of F32 F16"},
    {"fp8", "{}", "c.weight_scale_inv", ZEROS("F32 F16", "[2, 2]", "1"), "found dtype F32 F16, expected one of"},
    {"fp8", "{}", "stack_scale_inv", ZEROS("F32", "[2, 2]", "16"), "expected [3, 2, 2]"},
    {"fp8", "{}", "a.weight", ZEROS("F8_E4M3", "[0, 70]", "0"), "found shape [0, 70], expected a matrix"},
    {"fp8", "{}", "a.weight", ZEROS("F8_E4M3", "[70]", "70"), "found shape [70], expected a matrix"},
    {"fp8_tensor", "{}", "b.weight_scale", ZEROS("F32", "[5]", "20"), "expected [9, 1] (one scale a row)"},
    {"compressed", "{}", "a.weight_shape", ZEROS("I64", "[2]", "16"), "found [0, 0], expected the shape of a matrix"},
    {"compressed", "{}", "a.weight_shape", ZEROS("I64", "[3]", "24"), "expected [2] (rows, columns)"},
    {"compressed", "{}", "a.weight_shape", ZEROS("F32", "[2]", "8"), "found dtype F32"},
    {"compressed", "{}", "a.weight_zero_point", ZEROS("I32", "[11, 3]", "132"), "expected [2, 3] (zero points"},
    {"compressed", "{}", "a.weight_zero_point", "null", "is missing: the codes of 'a.weight'"},
    {"compressed", "{}", "a.weight_g_idx", ZEROS("I32", "[39]", "156"), "expected [40] (inputs)"},
    {"compressed", "{}", "a.weight_scale", ZEROS("BF16", "[11, 4]", "88"), "expected [11, 3] (groups of 16)"},
    {"compressed", "{}", "a.weight_packed", ZEROS("I32", "[11, 6]", "264"), "found 6 words in a row, expected 5"},
    {"compressed", "{}", "b.weight_packed", ZEROS("I32", "[6, 0]", "0"), "expected a matrix"},
    {"compressed", "{}", "d.weight_zero_point", ZEROS("I8", "[6, 1]", "6"), "expected [7, 1]"},
    {"gptq", "{}", "a.scales", ZEROS("F16", "[2, 16]", "64"), "expected [3, 16] (groups of 16, 16 outputs)"},
    {"gptq", "{}", "a.qzeros", ZEROS("I32", "[3, 3]", "36"), "expected [3, 2]"},
    {"gptq", "{}", "a.qzeros", "null", "is missing"},
    {"gptq", "{}", "a.qweight", ZEROS("I64", "[6, 16]", "768"), "found dtype I64, expected I32"},
    {"gptq", "{}", "a.qweight", ZEROS("I32", "[6, 15]", "360"), "'a.weight': found 15 outputs, expected"},
    {"gptq", "{}", "whole.weight", "\"a.weight\"", "'a.qweight': found 'a.weight' as well"},
    {"gptq", "{}", "b.g_idx", ZEROS("I32", "[47]", "188"), "expected [48] (inputs)"},
    {"gptq", "{\"desc_act\": true}", "b.g_idx", "null", "g_idx' is missing"},
    {"gptq", "{}", "whole.weight", "\"act.scales\"", "'act.scales': found scales that belong to no coded matrix"},
    {"compressed", "{}", "lm_head.weight", "\"x.weight_scale\"", "'x.weight_scale': found scales that belong to no"},
    {"compressed", "{}", "lm_head.weight", "\"x.pre_quant_scale\"", "'x.pre_quant_scale': found scales that belong"},
    {"awq", "{}", "b.scales", ZEROS("F16", "[1, 16]", "32"), "expected [1, 24]"},
    {"awq", "{}", "b.qzeros", ZEROS("I32", "[1, 24]", "96"), "expected [1, 3]"},
    {"awq", "{}", "b.scales", "null", "is missing"},
    {"bnb", "{}", "a.weight.absmax", "null", "is missing"},
    {"bnb", "{}", "a.weight.absmax", ZEROS("F32", "[2]", "8"), "expected [3] (blocks of codes)"},
    {"bnb", "{}", "a.weight.quant_map", ZEROS("F32", "[15]", "60"), "expected [16] (codes of 4 bits)"},
    {"bnb", "{}", "a.weight.quant_state.bitsandbytes__nf4", "null", "is missing"},
    {"bnb", "{}", "a.weight.quant_state.bitsandbytes__nf4", ZEROS("U8", "[4]", "4"), "not valid JSON"},
    {"bnb", "{}", "a.weight", ZEROS("U8", "[17, 1]", "17"), "the shape [5, 7], expected that of a matrix"},
    {"bnb", "{}", "c.weight.nested_quant_map", ZEROS("F32", "[255]", "1020"), "expected [256]"},
    {"bnb", "{}", "c.weight.nested_absmax", ZEROS("F32", "[11]", "44"), "expected [12]"},
    {"bnb", "{}", "a.weight.absmax", ZEROS("U8", "[3]", "3"), "without 'nested_blocksize'"},
    {"mxfp4", "{}", "experts.up_scales", ZEROS("U8", "[3, 5]", "15"), "expected [3, 5, 2] (one scale a block)"},
    {"mxfp4", "{}", "experts.up_blocks", ZEROS("U8", "[3, 5, 2, 8]", "240"), "expected blocks of 16 bytes"},
    {"mxfp4", "{}", "experts.up_scales", "null", "is missing: the codes of 'experts.up'"},
    {"nvfp4", "{}", "a.weight_scale_2", "null", "is missing: the codes of 'a.weight'"},
    {"nvfp4", "{}", "a.weight_scale_2", ZEROS("F32", "[9]", "36"), "found shape [9], expected [1] (one scale)"},
    {"nvfp4", "{}", "a.weight_scale_2", ZEROS("F32", "[0]", "0"), "found shape [0], expected [1] (one scale)"},
    {"nvfp4", "{}", "a.weight_scale_2", ZEROS("BF16", "[1]", "2"), "found dtype BF16, expected F32"},
    {"nvfp4", "{}", "a.weight_scale", ZEROS("F8_E4M3", "[9, 4]", "36"), "expected [9, 3] (groups of 16)"},
    {"nvfp4", "{}", "a.weight_scale", ZEROS("U8", "[9, 3]", "27"), "found dtype U8, expected F8_E4M3"},
    {"nvfp4", "{}", "a.weight_scale", ZEROS("F32", "[9, 3]", "108"), "found dtype F32, expected one of F8_E4M3 U8"},
    {"nvfp4", "{}", "a.weight_scale", "null", "'a.weight_scale' is missing"},
    {"nvfp4", "{}", "a.weight", ZEROS("U8", "[9, 20]", "180"), "found 40 codes in a row, expected a multiple of 16"},
    {"nvfp4", "{}", "a.weight", ZEROS("U8", "[216]", "216"), "found shape [216], expected a matrix"},
    {"nvfp4", "{}", "a.weight", ZEROS("U8", "[9, 0]", "0"), "found shape [9, 0], expected a matrix"},
    {"nvfp4", "{}", "a.weight", ZEROS("U8", "[3, 3, 24]", "216"), "found shape [3, 3, 24], expected a matrix"},
    {"nvfp4", "{}", "a.weight", "null", "'a.weight_scale': found scales that belong to no coded matrix"},
    {"nvfp4", "{}", "whole.weight", "\"x.weight_scale_2\"", "'x.weight_scale_2': found scales that belong to no"},
    {"nvfp4", "{}", "whole.weight", "\"x.pre_quant_scale\"", "'x.pre_quant_scale': found scales that belong to no"},
    {"modelopt_mixed", "{}", "b.weight_scale", ZEROS("F32", "[5, 2]", "40"), "'b.weight_scale': found shape [5, 2]"},
    {"modelopt_mixed", "{}", "c.weight_scale", ZEROS("U8", "[7]", "7"), "'c.weight_scale': found shape [7], expected"},
    {"modelopt_mixed", "{}", "d.weight_scale", ZEROS("U8", "[]", "1"), "found dtype U8, expected one of F32 F16"},
    {"compressed_fp4", "{}", "a.weight_global_scale", "null", "is missing: the codes of 'a.weight'"},
    {"compressed_fp4", "{}", "b.weight_scale", ZEROS("F8_E4M3", "[18, 3]", "54"), "'b.weight_scale': found shape"},
    {"compressed_fp4", "{}", "b.weight_packed", ZEROS("U8", "[18, 40]", "720"), "found 80 codes in a row, expected a "
     "multiple of 32"},
    {"compressed_fp4", "{}", "c.weight_scale", ZEROS("BF16", "[7, 3]", "42"), "BF16, expected one of U8 F8_E8M0"},
    {"compressed_fp4", "{}", "c.weight_scale", ZEROS("U8", "[7, 2]", "14"), "expected [7, 3] (groups of 32)"},
    {"compressed_fp4", "{}", "a.weight_packed", ZEROS("F32", "[19, 8]", "608"), "found dtype F32, expected I32"},
    {"compressed_fp4", "{}", "whole.weight", "\"a.weight\"", "'a.weight_packed': found 'a.weight' as well"},
    {"compressed_fp4", "{}", "whole.weight", "\"x.weight_global_scale\"", "'x.weight_global_scale': found scales"},
    {"blocks_gptq3", "{}", "a.qweight", ZEROS("I32", "[25, 32]", "3200"), "found 25 words, expected a multiple of 3"},
    {"blocks_gptq3", "{}", "a.qweight", ZEROS("I32", "[24, 30]", "2880"), "30 outputs, expected a multiple of 32"},
    {"blocks_bnb8", "{}", "a.SCB", "null", "'a.SCB' is missing: the codes of 'a.weight'"},
    {"blocks_bnb8", "{}", "a.SCB", ZEROS("F32", "[1]", "4"), "found shape [1], expected [17] (one scale a row)"},
    {"blocks_bnb8", "{}", "a.SCB", ZEROS("F16", "[17]", "34"), "found dtype F16, expected F32"},
    {"blocks_bitnet", "{}", "a.weight_scale", "null", "is missing: the codes of 'a.weight'"},
    {"blocks_bitnet", "{}", "a.weight_scale", ZEROS("F32", "[20]", "80"), "found shape [20], expected [1] (one scale)"},
    {"blocks_bitnet", "{}", "a.weight_scale", ZEROS("U8", "[1]", "1"), "found dtype U8, expected one of F32 F16 BF16"},
    {"blocks_bitnet", "{}", "a.weight", ZEROS("U8", "[5, 0]", "0"), "found shape [5, 0], expected a matrix"},
    {"blocks_bitnet", "{}", "a.weight", ZEROS("F32", "[5, 2]", "40"), "'a.weight_scale': found scales that belong"}};

/* The checkpoints under another quantization_config. */
#define GROUPS(weights) "{\"config_groups\": {\"g\": {\"weights\": {" weights "}}}}"
#define FOURS(group) \
    "{\"config_groups\": {\"g\": {\"weights\": {\"num_bits\": 4, \"type\": \"int\", \"group_size\": " group "}}}}"
static const struct wrong configs[] = {
    {"fp8", "{\"weight_block_size\": [16, 16]}", "", "null",
     "'a.weight_scale_inv': found shape [3, 3], expected [3, 5]"},
    {"fp8", "{\"weight_block_size\": [0, 32]}", "", "null", "'quantization_config.weight_block_size.0': found 0"},
    {"fp8", "{\"quant_method\": \"quip\"}", "", "null",
     "'quantization_config.quant_method': found \"quip\", expected one of fp8"},
    {"compressed", "{\"config_groups\": {}}", "", "null", "'quantization_config.config_groups'"},
    {"compressed", FOURS("32"), "", "null", "'a.weight_scale': found shape [11, 3], expected [11, 2] (groups of 32)"},
    {"compressed", FOURS("16"), "", "null",
     "'b.weight_packed': found 8-bit int codes, expected those of quantization_config"},
    {"compressed", "{\"transform_config\": {\"config_groups\": {\"R4\": {\"apply\": [{\"location\": "
     "\"weight_output\"}, {\"location\": \"input\"}]}}}}", "", "null", "R4.apply.1.location': found \"input\""},
    {"gptq", "{\"checkpoint_format\": \"gptq\", \"format\": \"gptq_v2\"}", "", "null",
     "'quantization_config.format': found \"gptq_v2\", expected the same as checkpoint_format"},
    {"gptq", "{\"quant_method\": \"auto-round\"}", "", "null", "'quantization_config.packing_format': found nothing"},
    {"gptq", "{\"group_size\": 8}", "", "null", "'a.scales': found shape [3, 16], expected [6, 16]"},
    {"gptq", "{\"group_size\": -2}", "", "null", "'quantization_config.group_size': found -2"},
    {"gptq", "{\"bits\": 8}", "", "null", "'a.scales': found shape [3, 16], expected [2, 16]"},
    {"gptq", "{\"bits\": 5}", "", "null", "'quantization_config.bits': found 5, expected 2, 3, 4 or 8"},
    {"blocks_gptq3", "{\"bits\": 4}", "", "null", "'a.qzeros': found shape [2, 3], expected [2, 4]"},
    {"awq", "{\"group_size\": 40}", "", "null", "'a.scales': found shape [3, 16], expected [1, 16]"},
    {"nvfp4", "{\"quant_algo\": \"NVFP4_AWQ\"}", "", "null", "'quantization_config.quant_algo': found \"NVFP4_AWQ\""},
    {"nvfp4", "{\"quant_algo\": \"FP8\"}", "", "null", "'a.weight_scale': found scales that belong to no coded matrix"},
    {"nvfp4", "{\"quant_algo\": \"MXFP8\", \"config_groups\": null}", "", "null",
     "'a.weight': found 4-bit float codes, expected those of quantization_config"},
    {"compressed_fp4", GROUPS("\"num_bits\": 4, \"type\": \"float\", \"group_size\": 16"), "", "null",
     "'b.weight_scale': found shape [18, 3], expected [18, 6] (groups of 16)"},
    {"compressed_fp4", GROUPS("\"num_bits\": 4, \"type\": \"float\", \"group_size\": 64"), "", "null", "g.weights'"},
    {"compressed_fp4", GROUPS("\"num_bits\": 8, \"type\": \"float\", \"group_size\": 64"), "", "null", "g.weights'"},
    {"compressed_fp4", GROUPS("\"num_bits\": 4, \"type\": \"int\", \"group_size\": 16, \"strategy\": "
     "\"tensor_group\""), "", "null", "g.weights'"},
    {"compressed_fp4", GROUPS("\"num_bits\": 4, \"type\": \"float\", \"group_size\": 16, \"symmetric\": false"), "",
     "null", "g.weights'"},
    {"bnb", "{\"load_in_8bit\": true}", "", "null", "'quantization_config.load_in_8bit': found true"},
    {"blocks_bitnet", "{\"linear_class\": \"linear\"}", "", "null", "'quantization_config.linear_class'"},
    {"blocks_bitnet", "{\"quantization_mode\": \"online\"}", "", "null", "_mode': found \"online\", expected offline"},
    {"blocks_bitnet", "{\"use_rms_norm\": true}", "", "null", "'quantization_config.use_rms_norm': found true"}};

static void tensors_refused(void)
{
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        check_refused(&tensors[i], NULL, NULL);
}

static void configs_refused(void)
{
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++)
        check_refused(&configs[i], NULL, NULL);
}

/* Settings in other places than quantization_config are the same. */
static void adopted(void)
{
    static const struct { const char *folder, *file, *rename[2][2]; } places[] = {
        {"gptq", "quantize_config.json", {{NULL}}}, {"compressed", NULL, {{NULL}}},
        {"awq", "quant_config.json", {{"bits", "w_bit"}, {"group_size", "q_group_size"}}}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        json_t *config = json_load_file(coded_golden(places[i].folder, "config.json"), 0, NULL);
        json_t *quant = json_incref(json_object_get(config, "quantization_config"));
        struct sh_quant direct, found;
        struct sh_config *c = sh_config_open(coded_golden(places[i].folder, "config.json"), &e);
        CU_ASSERT_FATAL(c && !sh_config_quant(c, &direct, &e));
        sh_config_close(c);
        json_object_del(config, "quantization_config");
        for (int k = 0; k < 2 && places[i].rename[k][0]; k++) {
            json_object_set(quant, places[i].rename[k][1], json_object_get(quant, places[i].rename[k][0]));
            json_object_del(quant, places[i].rename[k][0]);
        }
        if (places[i].file)
            json_object_del(quant, "quant_method");
        else
            json_object_set(config, "compression_config", quant);
        char *text = json_dumps(config, 0), *settings = json_dumps(quant, 0);
        scratch_write("config.json", text, strlen(text));
        if (places[i].file)
            scratch_write(places[i].file, settings, strlen(settings));
        c = sh_config_open(scratch_folder(), &e);
        CU_ASSERT_FATAL(c && !sh_config_quant(c, &found, &e));
        CU_ASSERT(direct.method == found.method && direct.n == found.n &&
                  !memcmp(direct.scheme, found.scheme, (size_t)direct.n * sizeof *direct.scheme));
        sh_config_close(c);
        if (places[i].file) {
            scratch_write(places[i].file, "[", 1);
            CU_ASSERT(!sh_config_open(scratch_folder(), &e) && strstr(e.text, places[i].file));
        }
        scratch_clear();
        free(text);
        free(settings);
        json_decref(quant);
        json_decref(config);
    }
}

/* What modelopt's settings mean, next to config.json or in it. */
static void of_modelopt(void)
{
    static const struct { const char *config, *settings; enum sh_quant_method method; int n, bits; } cases[] = {
        {"{}", "{\"quantization\": {\"quant_algo\": \"FP8\"}}", SH_QUANT_FP8, 1, 8},
        {"{}", "{\"quantization\": {\"quant_algo\": \"NVFP4\", \"group_size\": 16, \"exclude_modules\": []}}",
         SH_QUANT_MODELOPT, 1, 4},
        {"{}", "{\"quantization\": {\"quant_algo\": \"MIXED_PRECISION\", \"quantized_layers\": {}}}",
         SH_QUANT_MODELOPT, 4, 8},
        {"{\"quantization_config\": {\"quant_method\": \"modelopt_fp4\"}}", NULL, SH_QUANT_MODELOPT, 1, 4},
        {"{\"quantization_config\": {\"quant_method\": \"modelopt_fp4\", \"quant_algo\": \"W4A16_NVFP4\"}}", NULL,
         SH_QUANT_MODELOPT, 1, 4},
        {"{\"quantization_config\": {\"quant_method\": \"modelopt_fp8\"}}", NULL, SH_QUANT_FP8, 1, 8},
        {"{\"quantization_config\": {\"quant_method\": \"modelopt\"}}", NULL, SH_QUANT_FP8, 1, 8},
        {"{\"quantization_config\": {\"quant_algo\": \"NVFP4\"}}", NULL, SH_QUANT_MODELOPT, 1, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sh_quant q = {.n = 0};
        scratch_write("config.json", cases[i].config, strlen(cases[i].config));
        if (cases[i].settings)
            scratch_write("hf_quant_config.json", cases[i].settings, strlen(cases[i].settings));
        struct sh_config *c = sh_config_open(scratch_folder(), &e);
        int good = c && !sh_config_quant(c, &q, &e) && q.method == cases[i].method && q.n == cases[i].n &&
                   q.scheme[0].bits == cases[i].bits;
        if (!good)
            printf("# case %zu: %s\n", i, e.text);
        CU_ASSERT(good);
        sh_config_close(c);
        scratch_clear();
    }
}

static void data_refused(void)
{
#define STATE ".weight.quant_state.bitsandbytes__nf4"
    static const struct { const char *folder, *name, *from, *to, *says; } cases[] = {
        {"gptq", "b.g_idx", NULL, "\3\0\0", "'b.g_idx': element 0 is 3, expected a group from 0 to 2"},
        {"gptq", "b.g_idx", NULL, "\xff\xff\xff\xff", "'b.g_idx': element 0 is -1"},
        {"compressed", "a.weight_g_idx", NULL, "\xff\xff\xff\x7f", "'a.weight_g_idx': element 0 is 2147483647"},
        {"compressed", "a.weight_shape", NULL, "\xff\xff\xff\x7f", "'a.weight_shape': found [2147483647, 40]"},
        {"bnb", "a" STATE, "[5, 7]", "[5,-7}", "not valid JSON"},
        {"bnb", "a" STATE, "[5, 7]", "[5,-7]", "'shape' is not a pair of whole numbers"},
        {"bnb", "a" STATE, "[5, 7]", "[8, 7]", "found the shape [8, 7], expected that of a matrix"},
        {"bnb", "a" STATE, ": 16", ": -1", "'blocksize' is not a whole number above 0"},
        {"bnb", "a" STATE, ": 16", ": 18", "'a.weight.absmax': found shape [3], expected [2]"},
        {"bnb", "c" STATE, "nested_off", "nested_oof", "'nested_offset'"},
        {"bnb", "c" STATE, "ize\": 4", "ize\": 0", "'nested_blocksize'"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_refused(&(struct wrong){cases[i].folder, "{}", cases[i].name, "", cases[i].says}, cases[i].from,
                      cases[i].to);
}

/* ---- in a model ---- */

static struct sh_model *scratch_model(const char *quant)
{
    json_t *config = json_load_file(tap_golden("checkpoints/llama_nvfp4/config.json"), 0, NULL);
    json_object_set_new(config, "quantization_config", json_loads(quant, 0, NULL));
    char *text = json_dumps(config, 0);
    scratch_write("config.json", text, strlen(text));
    free(text);
    json_decref(config);
    return sh_model_open(scratch_folder(), &e);
}

static void rewrite(struct file *f, const char *name, const char *facts)
{
    write_file(f, name, facts);
    free(f->data);
    json_decref(f->header);
    read_file(scratch_path("model.safetensors"), f);
}

static unsigned char *data_of(const struct file *f, const char *name)
{
    return f->data + offset(json_object_get(f->header, name), 0);
}

/* A vector may be stored as one row, and so may its codes. */
static void vector_of_codes(void)
{
    struct file f;
    read_file(tap_golden("checkpoints/llama_nvfp4/model.safetensors"), &f);
    rewrite(&f, "model.layers.0.self_attn.k_proj.k_scale", "\"model.norm.weight_scale\"");
    rewrite(&f, "model.norm.weight", ZEROS("F8_E4M3", "[1, 32]", "32"));
    for (unsigned i = 0; i < 32; i++)
        data_of(&f, "model.norm.weight")[i] = (unsigned char)(0x38 + i);        /* 1 and up, 8 in each octave */
    rewrite(&f, "", "null");
    struct sh_model *m = scratch_model("{\"quant_algo\": \"MIXED_PRECISION\"}");
    struct sh_tensor t = {0};
    CU_ASSERT_FATAL(m && !sh_model_tensor(m, SH_FINAL_NORM_W, -1, &t, &e) && t.cols == 32 && t.type == SH_F32);
    for (int i = 0; i < 32; i++)
        CU_ASSERT(((const float *)t.at)[i] == ldexpf((float)(8 + i % 8), i / 8 - 3));
    sh_model_close(m);
    free(f.data);
    json_decref(f.header);
    scratch_clear();
}

/* Scales that are no numbers are found before a product. */
static void scales_are_checked(void)
{
#define UP "model.layers.0.mlp.up_proj."
    static const struct { const char *name; unsigned char bytes[4]; int n; const char *says; } cases[] = {
        {UP "weight_scale", {0x7f}, 1, "'" UP "weight': element 0 (row 0, column 0) is "},
        {UP "weight_scale", {0x58, 0, 0x58, 0xff}, 4, "'" UP "weight': element 48 (row 1, column 16) is "},
        {UP "weight_scale_2", {0, 0, 0xc0, 0x7f}, 4, "'" UP "weight': element 0 (row 0, column 0) is "},
        {UP "weight_scale_2", {0, 0, 0, 0}, 4, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct file f;
        struct sh_packed p;
        const char *name = NULL;
        read_file(tap_golden("checkpoints/llama_nvfp4/model.safetensors"), &f);
        memcpy(data_of(&f, cases[i].name), cases[i].bytes, (size_t)cases[i].n);
        rewrite(&f, "", "null");
        struct sh_model *m = scratch_model("{\"quant_algo\": \"NVFP4\"}");
        CU_ASSERT_FATAL(m && sh_model_packed(m, SH_UP_W, 0, 0, &p, &name) == 1);
        int bad = sh_packed_check_finite(&p, name, &e);
        if (bad != -!!cases[i].says || (bad && !strstr(e.text, cases[i].says)))
            printf("# case %zu: %s\n", i, bad ? e.text : "taken");
        CU_ASSERT(cases[i].says ? bad == -1 && strstr(e.text, cases[i].says) : !bad);
        sh_model_close(m);
        free(f.data);
        json_decref(f.header);
        scratch_clear();
    }
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"numbers of every format", numbers}, {"tensors that do not fit are refused", tensors_refused},
        {"so is a config that does not fit the tensors", configs_refused},
        {"and numbers out of range", data_refused}, {"settings in other files", adopted},
        {"modelopt's settings", of_modelopt}, {"a vector of codes", vector_of_codes},
        {"scales are checked", scales_are_checked}, {NULL, NULL}};
    return tap_run("coded matrices", tests);
}
