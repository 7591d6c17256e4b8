/* SPDX-License-Identifier: Apache-2.0 */
/* See config_quant.h. */
#include "src/model/config/config_quant.h"

#include <stdio.h>
#include <string.h>

#include "src/model/config/config.h"

#define QUANT "quantization_config"
enum { MOST_GROUP = 65536, AUTO_ROUND = 100 };

static const struct sh_word methods[] = {
    {"fp8", SH_QUANT_FP8}, {"fbgemm_fp8", SH_QUANT_FP8}, {"compressed-tensors", SH_QUANT_GROUPS},
    {"awq", SH_QUANT_AWQ}, {"gptq", SH_QUANT_GPTQ}, {"auto-round", AUTO_ROUND}, {"bitsandbytes", SH_QUANT_BNB},
    {"mxfp4", SH_QUANT_MXFP4}, {"bitnet", SH_QUANT_BITNET}, {"modelopt", SH_QUANT_MODELOPT},
    {"modelopt_fp8", SH_QUANT_MODELOPT}, {"modelopt_fp4", SH_QUANT_MODELOPT}, {NULL, 0}};

static void add(struct sh_quant *q, struct sh_quant_scheme s)
{
    q->scheme[q->n++] = s;
}

/* ---- one scheme for all matrices ---- */

/* Two sizes at "<key>.0" and "<key>.1". */
static int read_block(const struct sh_config *c, const char *key, int block[2], struct sh_err *e)
{
    char part[96];
    if (sh_config_length(c, key) != 2)
        return sh_config_refuse(c, key, "two block sizes", e);
    for (int i = 0; i < 2; i++) {
        snprintf(part, sizeof part, "%s.%d", key, i);
        if (sh_config_count(c, part, MOST_GROUP, &block[i], e))
            return -1;
        if (!block[i])
            return sh_config_refuse(c, key, "two block sizes", e);
    }
    return 0;
}

static int fp8(const struct sh_config *c, struct sh_quant *q, struct sh_err *e)
{
    static const struct sh_word formats[] = {{"e4m3", 0}, {"e5m2", 0}, {"float8_e4m3fn", 0},
                                             {"float8_e5m2", 0}, {NULL, 0}};
    struct sh_quant_scheme s = {.is_float = 1, .bits = 8, .span = SH_SPAN_CHANNEL};
    int ignored;
    if (sh_config_choice(c, QUANT ".fmt", formats, &ignored, e))
        return -1;
    if (sh_config_is_set(c, QUANT ".weight_block_size")) {
        s.span = SH_SPAN_BLOCK;
        if (read_block(c, QUANT ".weight_block_size", s.block, e))
            return -1;
    }
    add(q, s);
    if (s.span == SH_SPAN_CHANNEL)      /* without blocks either may be meant: the scales tell */
        add(q, (struct sh_quant_scheme){.is_float = 1, .bits = 8, .span = SH_SPAN_TENSOR});
    return 0;
}

/* Bits and groups of GPTQ and AWQ; -1: the group is a row. */
static int words(const struct sh_config *c, struct sh_quant *q, struct sh_err *e)
{
    int bits = 0, group = 128, ordered = 0;
    if (sh_config_at_least(c, QUANT ".bits", 1, 32, &bits, e) ||
        (q->method == SH_QUANT_GPTQ && sh_config_flag(c, QUANT ".desc_act", &ordered, e)) ||
        sh_config_at_least(c, QUANT ".group_size", -1, MOST_GROUP, &group, e))
        return -1;
    int is_gptq = q->method == SH_QUANT_GPTQ && (bits == 2 || bits == 3 || bits == 8);
    if (bits != 4 && !is_gptq)
        return sh_config_refuse(c, QUANT ".bits", q->method == SH_QUANT_AWQ ? "4" : "2, 3, 4 or 8", e);
    if (!group)
        return sh_config_refuse(c, QUANT ".group_size", "a whole number from 1, or -1 for whole rows", e);
    add(q, (struct sh_quant_scheme){.bits = bits, .span = group < 0 ? SH_SPAN_CHANNEL : SH_SPAN_GROUP,
                                    .group = group < 0 ? 0 : group, .asymmetric = 1,
                                    .ordered = ordered && group > 0});
    return 0;
}

static int gptq(const struct sh_config *c, struct sh_quant *q, struct sh_err *e)
{
    static const struct sh_word formats[] = {{"gptq", 1}, {"gptq_v2", 0}, {"GPTQ", 1}, {"GPTQ_V2", 0}, {NULL, 0}};
    static const char *const keys[] = {QUANT ".checkpoint_format", QUANT ".format"};    /* older and newer name */
    int is_marlin = 0, older = -1, newer = -1;
    q->varies = sh_config_is_filled(c, QUANT ".dynamic") || sh_config_is_filled(c, QUANT ".extra_config");
    if (sh_config_choice(c, keys[0], formats, &older, e) || sh_config_choice(c, keys[1], formats, &newer, e))
        return -1;
    if (older >= 0 && newer >= 0 && older != newer)
        return sh_config_refuse(c, keys[1], "the same as checkpoint_format", e);
    q->zero_less_one = newer >= 0 ? newer : older >= 0 ? older : 1;
    if (sh_config_flag(c, QUANT ".is_marlin_format", &is_marlin, e))
        return -1;
    return is_marlin ? sh_config_refuse(c, QUANT ".is_marlin_format", "false", e) : words(c, q, e);
}

static int awq(const struct sh_config *c, struct sh_quant *q, struct sh_err *e)
{
    /* the last two are about kernels: their files are those of gemm */
    static const struct sh_word versions[] = {{"gemm", 0}, {"GEMM", 0}, {"exllama", 0}, {"ipex", 0}, {NULL, 0}};
    int ignored;
    return sh_config_choice(c, QUANT ".version", versions, &ignored, e) || words(c, q, e) ? -1 : 0;
}

/* AutoRound's files in the form of another method. */
static int auto_round(const struct sh_config *c, struct sh_quant *q, struct sh_err *e)
{
    static const struct sh_word forms[] = {
        {"auto_round:auto_gptq", SH_QUANT_GPTQ}, {"auto_round:auto_awq", SH_QUANT_AWQ}, {NULL, 0}};
    static const char key[] = QUANT ".packing_format";
    int form = SH_QUANT_NONE;
    if (sh_config_choice(c, key, forms, &form, e))
        return -1;
    if (!form)
        return sh_config_refuse(c, key, "auto_round:auto_gptq or auto_round:auto_awq", e);
    q->method = (enum sh_quant_method)form;
    return (form == SH_QUANT_GPTQ ? gptq : awq)(c, q, e);
}

static int bnb(const struct sh_config *c, struct sh_quant *q, struct sh_err *e)
{
    static const struct sh_word types[] = {{"nf4", 0}, {"fp4", 0}, {NULL, 0}};
    static const char *const keys[] = {QUANT ".load_in_4bit", QUANT ".load_in_8bit",
                                       QUANT ".bnb_4bit_use_double_quant"};
    int is[3] = {0}, ignored;
    for (int i = 0; i < 3; i++)
        if (sh_config_flag(c, keys[i], &is[i], e))
            return -1;
    if (sh_config_choice(c, QUANT ".bnb_4bit_quant_type", types, &ignored, e))
        return -1;
    if (is[0] == is[1])
        return sh_config_refuse(c, keys[is[1]], "true for load_in_4bit or for load_in_8bit", e);
    if (is[1]) {
        add(q, (struct sh_quant_scheme){.bits = 8, .span = SH_SPAN_CHANNEL});
        return 0;
    }
    q->is_double = is[2];
    add(q, (struct sh_quant_scheme){.bits = 4, .span = SH_SPAN_GROUP, .group = 64});
    return 0;
}

/* transformers' BitLinear divides by the scale, its AutoBitLinear multiplies. */
static int bitnet(const struct sh_config *c, struct sh_quant *q, struct sh_err *e)
{
    static const struct sh_word classes[] = {{"bitlinear", 1}, {"autobitlinear", 0}, {NULL, 0}};
    static const struct sh_word modes[] = {{"offline", 0}, {"online", 1}, {NULL, 0}};
    static const char mode[] = QUANT ".quantization_mode", norm[] = QUANT ".use_rms_norm";
    int is_online = 0, has_norm = 0;
    q->divides = 1;
    if (sh_config_choice(c, QUANT ".linear_class", classes, &q->divides, e) ||
        sh_config_choice(c, mode, modes, &is_online, e) || sh_config_flag(c, norm, &has_norm, e))
        return -1;
    if (has_norm)
        return sh_config_refuse(c, norm, "false: norms before every matrix are not supported", e);
    if (is_online && !q->divides)
        return sh_config_refuse(c, mode, "offline: weights that are rounded while the model runs are not supported", e);
    add(q, (struct sh_quant_scheme){.bits = 2, .span = SH_SPAN_TENSOR});
    return 0;
}

/* ---- compressed-tensors: several schemes, each for some matrices ---- */

/* both: a scale for each group and one for the matrix. */
static int is_known(const struct sh_quant *q, const struct sh_quant_scheme *s, int both)
{
    int is_mx = s->span == SH_SPAN_GROUP && s->group == 32 && !both;
    if (s->span == SH_SPAN_GROUP && s->group < 1)
        return 0;
    if (!s->is_float)
        return (s->bits == 4 || s->bits == 8) && s->span != SH_SPAN_BLOCK && !both;
    if (s->bits == 4)
        return !s->asymmetric && s->span == SH_SPAN_GROUP &&
               (s->group == 16 || (is_mx && q->method == SH_QUANT_GROUPS));
    return !s->asymmetric && s->bits == 8 && (s->span != SH_SPAN_GROUP || is_mx);
}

static int group_scheme(const struct sh_config *c, const char *group, struct sh_quant *q, struct sh_err *e)
{
    static const struct sh_word types[] = {{"int", 0}, {"float", 1}, {NULL, 0}};
    enum { BOTH = 100 };
    static const struct sh_word spans[] = {{"tensor", SH_SPAN_TENSOR}, {"channel", SH_SPAN_CHANNEL},
                                           {"group", SH_SPAN_GROUP}, {"block", SH_SPAN_BLOCK},
                                           {"tensor_group", BOTH}, {NULL, 0}};
    static const char *const names[] = {"num_bits", "type", "strategy", "group_size", "symmetric", "block_structure",
                                        "actorder"};
    struct sh_quant_scheme s = {.bits = 8};
    char key[7][160], weights[128];
    int span = -1, is_even = 1;
    for (int i = 0; i < 7; i++)
        snprintf(key[i], sizeof key[i], QUANT ".config_groups.%.60s.weights.%s", group, names[i]);
    snprintf(weights, sizeof weights, QUANT ".config_groups.%.60s.weights", group);
    if (!sh_config_is_set(c, weights))  /* activations alone */
        return 0;
    if (sh_config_at_least(c, key[0], 1, 8, &s.bits, e) || sh_config_choice(c, key[1], types, &s.is_float, e) ||
        sh_config_choice(c, key[2], spans, &span, e) || sh_config_at_least(c, key[3], -1, MOST_GROUP, &s.group, e) ||
        sh_config_flag(c, key[4], &is_even, e))
        return -1;
    s.span = span == BOTH ? SH_SPAN_GROUP : span >= 0 ? (enum sh_quant_span)span
             : s.group > 0 ? SH_SPAN_GROUP : SH_SPAN_TENSOR;
    s.asymmetric = !is_even;
    s.ordered = sh_config_is_set(c, key[6]) && !sh_config_is(c, key[6], "\"weight\"") &&
                !sh_config_is(c, key[6], "\"static\"");
    s.group = s.span == SH_SPAN_GROUP ? s.group : 0;
    if (s.span == SH_SPAN_BLOCK && read_block(c, key[5], s.block, e))
        return -1;
    if (!is_known(q, &s, span == BOTH))
        return sh_config_refuse(c, weights, "8-bit float for tensors, channels, blocks or groups of 32, 4-bit float "
                                "for groups of 16 or 32, or 4- or 8-bit int for tensors, channels or groups", e);
    add(q, s);
    return 0;
}

/* Transforms that were made once, on the weights, are part of the file; those of activations would have to be run. */
static int refuse_transforms(const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word places[] = {{"weight_input", 0}, {"weight_output", 0}, {NULL, 0}};
    enum { MOST = 64 };
    const char *name;
    int ignored;
    if (sh_config_key_at(c, QUANT ".transform_config.config_groups", MOST))
        return sh_config_refuse(c, QUANT ".transform_config", "at most 64 groups", e);
    for (int i = 0; (name = sh_config_key_at(c, QUANT ".transform_config.config_groups", i)); i++) {
        char list[160], key[200];
        snprintf(list, sizeof list, QUANT ".transform_config.config_groups.%.60s.apply", name);
        if (strchr(name, '.') || strlen(name) > 60 || sh_config_length(c, list) < 0 ||
            sh_config_length(c, list) > MOST)
            return sh_config_refuse(c, QUANT ".transform_config", "groups with short names and a short list `apply`",
                                    e);
        for (int k = 0; k < sh_config_length(c, list); k++) {
            snprintf(key, sizeof key, "%s.%d.location", list, k);
            if (!sh_config_has(c, key) || sh_config_choice(c, key, places, &ignored, e)) {
                sh_config_refuse(c, key, "weight_input or weight_output", e);
                return sh_hint(e, "transforms of activations are not run");
            }
        }
    }
    return 0;
}

static int groups(const struct sh_config *c, struct sh_quant *q, struct sh_err *e)
{
    static const struct sh_word formats[] = {
        {"pack-quantized", 0}, {"float-quantized", 0}, {"int-quantized", 0}, {"naive-quantized", 0},
        {"nvfp4-pack-quantized", 0}, {"mxfp4-pack-quantized", 0}, {"mxfp8-quantized", 0}, {"mixed-precision", 0},
        {"dense", 0}, {NULL, 0}};
    const char *name;
    int ignored;
    char key[128];
    if (sh_config_choice(c, QUANT ".format", formats, &ignored, e) || refuse_transforms(c, e))
        return -1;
    for (int i = 0; (name = sh_config_key_at(c, QUANT ".config_groups", i)); i++) {
        snprintf(key, sizeof key, QUANT ".config_groups.%.60s.format", name);
        if (i >= SH_MOST_SCHEMES || strchr(name, '.') || strlen(name) > 60)
            return sh_config_refuse(c, QUANT ".config_groups", "at most 16 groups with short names", e);
        if (sh_config_choice(c, key, formats, &ignored, e) || group_scheme(c, name, q, e))
            return -1;
    }
    return q->n ? 0 : sh_config_refuse(c, QUANT ".config_groups", "groups of settings with weights", e);
}

static int is_set_to(const struct sh_config *c, const char *key, const char *json)
{
    return sh_config_is_set(c, key) && sh_config_is(c, key, json);
}

/* The files' config_groups say the same; of several formats in one checkpoint the tensors tell which is whose. */
static int modelopt(const struct sh_config *c, struct sh_quant *q, struct sh_err *e)
{
    enum { TENSOR = 1, ROW = 2, MX = 4, NV = 8, ANY = 15 };
    static const struct sh_word algos[] = {
        {"FP8", TENSOR}, {"FP8_PER_CHANNEL_PER_TOKEN", ROW}, {"MXFP8", MX}, {"NVFP4", NV}, {"W4A16_NVFP4", NV},
        {"MIXED_PRECISION", ANY}, {NULL, 0}};
    static const struct sh_quant_scheme schemes[] = {
        {.is_float = 1, .bits = 8, .span = SH_SPAN_TENSOR}, {.is_float = 1, .bits = 8, .span = SH_SPAN_CHANNEL},
        {.is_float = 1, .bits = 8, .span = SH_SPAN_GROUP, .group = 32},
        {.is_float = 1, .bits = 4, .span = SH_SPAN_GROUP, .group = 16}};
    int algo = is_set_to(c, QUANT ".quant_method", "\"modelopt_fp4\"") ? NV : TENSOR;
    if (sh_config_choice(c, QUANT ".quant_algo", algos, &algo, e))
        return -1;
    q->method = algo == TENSOR || algo == ROW ? SH_QUANT_FP8 : SH_QUANT_MODELOPT;
    if (sh_config_is_filled(c, QUANT ".config_groups") && algo != ANY)
        return groups(c, q, e);
    for (int i = 0; i < 4; i++)
        if (algo >> i & 1)
            add(q, schemes[i]);
    return 0;
}

/* ---- all ---- */

int sh_config_quant(const struct sh_config *c, struct sh_quant *out, struct sh_err *e)
{
    struct sh_quant q = {.method = SH_QUANT_NONE};
    int method = SH_QUANT_NONE, bad = 0;
    if (sh_config_choice(c, QUANT ".quant_method", methods, &method, e))
        return sh_hint(e, "shears capacity and shears simulate take any format given as published= in a row of a "
                       "--models FILE");
    if (!method && sh_config_has(c, QUANT ".quant_algo"))
        method = SH_QUANT_MODELOPT;
    if (!method && sh_config_is_set(c, QUANT))
        return sh_config_refuse(c, QUANT, "an object with quant_method", e);
    q.method = (enum sh_quant_method)method;
    switch (method) {
    case SH_QUANT_FP8: bad = fp8(c, &q, e); break;
    case SH_QUANT_GROUPS: bad = groups(c, &q, e); break;
    case SH_QUANT_AWQ: bad = awq(c, &q, e); break;
    case SH_QUANT_GPTQ: bad = gptq(c, &q, e); break;
    case SH_QUANT_BNB: bad = bnb(c, &q, e); break;
    case SH_QUANT_BITNET: bad = bitnet(c, &q, e); break;
    case SH_QUANT_MODELOPT: bad = modelopt(c, &q, e); break;
    case AUTO_ROUND: bad = auto_round(c, &q, e); break;
    default: break;
    }
    *out = q;
    return bad ? -1 : 0;
}

/* ---- capacity ---- */

int sh_config_quant_published(const struct sh_config *c, const struct sh_family *family, const struct sh_arch *a,
                              struct sh_kv_facts *f, struct sh_err *e)
{
    struct sh_quant q;
    if (sh_config_quant(c, &q, e))
        return -1;
    if (q.method == SH_QUANT_NONE)
        return 0;
    if (q.method == SH_QUANT_MXFP4) {
        snprintf(f->published_experts, sizeof f->published_experts, "mxfp4");
        return 0;
    }
    int has_names = sh_config_is_filled(c, QUANT ".quantized_layers");
    if (is_set_to(c, QUANT ".quant_algo", "\"MIXED_PRECISION\"") && !has_names)
        return sh_config_refuse(c, QUANT ".quant_algo", "one format, or quantized_layers with names of matrices", e);
    if (q.method == SH_QUANT_FP8 && q.n == 2) {         /* one scale or one a row: the smaller */
        q.scheme[0] = q.scheme[1];
        q.n = 1;
    }
    if (q.n != 1 && !has_names && q.method != SH_QUANT_GROUPS)
        return sh_config_refuse(c, QUANT ".config_groups", "one group", e);
    for (int i = 0; i < q.n; i++)
        if (q.scheme[i].span == SH_SPAN_BLOCK && q.scheme[i].block[0] != q.scheme[i].block[1])
            return sh_config_refuse(c, QUANT ".weight_block_size", "square blocks", e);
    return sh_config_module_formats(c, family, a, &q, f, e);
}
