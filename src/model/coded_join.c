/* SPDX-License-Identifier: Apache-2.0 */
/* From the tensors of a checkpoint with a quantization_config to coded matrices (coded.h). A matrix that is not
 * quantised is stored under its own name, so nothing is done for it. */
#include "src/model/coded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/coded_blocks.h"

#define SCALE_DTYPES " F32 F16 BF16 "

static size_t up(size_t n, size_t by)
{
    return n / by + (n % by != 0);
}

/* ---- pieces ---- */

/* dtypes: with a blank before and after each. A file may name any dtype, also one with a blank. */
static int is_one_of(const struct sh_stored *t, const char *dtypes)
{
    char word[20];
    snprintf(word, sizeof word, " %s ", t->dtype);
    return !strchr(t->dtype, ' ') && strstr(dtypes, word);
}

static int refuse_dtype(const struct sh_stored *t, const char *dtypes, struct sh_err *e)
{
    return sh_fail(e, "%s: tensor '%s': found dtype %s, expected%s%.*s", t->file, t->name, t->dtype,
                   strchr(dtypes + 1, ' ')[1] ? " one of" : "", (int)strlen(dtypes) - 1, dtypes);
}

int sh_join_find(struct sh_joining *j, const char *stem, size_t n, const char *suffix, const char *dtypes, int needed,
                 const struct sh_stored **out, struct sh_err *e)
{
    char name[300];
    snprintf(name, sizeof name, "%.*s%s", (int)n, stem, suffix);
    const struct sh_stored *t = *out = sh_weights_find(j->w, name);
    if (!t)
        return needed ? sh_fail(e, "tensor '%s' is missing: the codes of '%s' need it", name, j->name) : 0;
    if (dtypes && !is_one_of(t, dtypes))
        return refuse_dtype(t, dtypes, e);
    j->is_piece[t - sh_weights_at(j->w, 0)] = 1;
    return 0;
}

static int rank_without_ones(const size_t *shape, int rank)
{
    while (rank && shape[rank - 1] == 1)
        rank--;
    return rank;
}

static int is_shape(const struct sh_stored *t, const size_t *shape, int rank)
{
    int n = rank_without_ones(shape, rank);
    return n == rank_without_ones(t->shape, t->rank) && !memcmp(t->shape, shape, (size_t)n * sizeof *shape);
}

int sh_join_shape(const struct sh_stored *t, const size_t *shape, int rank, const char *why, struct sh_err *e)
{
    struct sh_stored wanted = {.rank = rank};
    char found[200], expected[200];
    if (is_shape(t, shape, rank))
        return 0;
    memcpy(wanted.shape, shape, (size_t)rank * sizeof *shape);
    return sh_fail(e, "%s: tensor '%s': found shape %s, expected %s (%s)", t->file, t->name,
                   sh_stored_shape(t, found, sizeof found), sh_stored_shape(&wanted, expected, sizeof expected), why);
}

static enum sh_scale_type scale_type(const struct sh_stored *t)
{
    return !strcmp(t->dtype, "F32")    ? SH_SCALE_F32
           : !strcmp(t->dtype, "F16")  ? SH_SCALE_F16
           : !strcmp(t->dtype, "BF16") ? SH_SCALE_BF16
           : !strcmp(t->dtype, "F8_E4M3") ? SH_SCALE_E4M3 : SH_SCALE_E8M0;
}

int sh_join_scales(struct sh_joining *j, const struct sh_stored *t)
{
    j->c.piece[SH_PIECE_SCALES] = t;
    j->c.scale = scale_type(t);
    return 0;
}

int sh_join_codes(struct sh_joining *j, const struct sh_stored *t, int least, int most, struct sh_err *e)
{
    char shape[200];
    int bad = t->rank < least || t->rank > most;
    j->c.rows = 1;
    for (int i = 0; i < t->rank && !bad; i++)
        bad |= !t->shape[i];
    for (int i = 0; i + 1 < t->rank; i++)
        j->c.rows *= t->shape[i];
    if (bad)
        return sh_fail(e, "%s: tensor '%s': found shape %s, expected a matrix%s", t->file, t->name,
                       sh_stored_shape(t, shape, sizeof shape), most > 2 ? " or a stack of matrices" : "");
    j->rank = t->rank;
    memcpy(j->shape, t->shape, sizeof j->shape);
    j->c.cols = t->shape[t->rank - 1];
    j->c.matrix_rows = t->shape[t->rank - 2];
    return 0;
}

/* ---- scales in the order of the rows: floats, compressed-tensors ---- */

/* Of the scales under a scheme. */
static const char *scale_dtypes(const struct sh_quant_scheme *s)
{
    if (!s->is_float || s->span != SH_SPAN_GROUP)
        return SCALE_DTYPES "F8_E8M0 ";
    return s->bits == 4 && s->group == 16 ? " F8_E4M3 " : " U8 F8_E8M0 ";       /* NVFP4; MXFP4, MXFP8 */
}

/* The places of the scales under a scheme, and their shape, of *rank dimensions. */
static void spread(struct sh_coded *c, const struct sh_quant_scheme *s, size_t *shape, int *rank, char why[64])
{
    size_t n = c->rows / c->matrix_rows;
    c->span_rows = s->span == SH_SPAN_TENSOR ? c->matrix_rows : s->span == SH_SPAN_BLOCK ? (size_t)s->block[0] : 1;
    c->span_cols = s->span == SH_SPAN_BLOCK   ? (size_t)s->block[1]
                   : s->span == SH_SPAN_GROUP ? (size_t)s->group : c->cols;
    c->groups = up(c->cols, c->span_cols);
    c->row_step = c->groups;
    c->group_step = 1;
    *rank = 0;
    if (n > 1)
        shape[(*rank)++] = n;
    shape[(*rank)++] = up(c->matrix_rows, c->span_rows);
    shape[(*rank)++] = c->groups;
    if (s->span == SH_SPAN_BLOCK)
        snprintf(why, 64, "blocks of %d x %d", s->block[0], s->block[1]);
    else if (s->span == SH_SPAN_GROUP)
        snprintf(why, 64, "groups of %d", s->group);
    else
        snprintf(why, 64, s->span == SH_SPAN_TENSOR ? "one scale" : "one scale a row");
}

/* The first scheme with such codes under which the scales have their shape and dtype; NULL: none, or several that
 * differ, e says what was expected. */
static const struct sh_quant_scheme *fit(struct sh_joining *j, int is_float, int bits, const struct sh_stored *scales,
                                         struct sh_err *e)
{
    const struct sh_stored *codes = j->c.piece[SH_PIECE_CODES];
    const struct sh_quant_scheme *first = NULL;
    struct sh_coded other = j->c;
    int known = 0;
    for (int i = 0; i < j->q->n; i++) {
        const struct sh_quant_scheme *s = &j->q->scheme[i];
        size_t shape[3];
        int rank;
        char why[64];
        if (s->is_float != is_float || s->bits != bits)
            continue;
        spread(first ? &other : &j->c, s, shape, &rank, why);
        int fits = is_shape(scales, shape, rank) && is_one_of(scales, scale_dtypes(s));
        if (fits && first && (other.span_rows != j->c.span_rows || other.span_cols != j->c.span_cols)) {
            sh_fail(e, "%s: tensor '%s': found scales that fit two groups of settings in quantization_config, expected "
                    "only one to fit", scales->file, scales->name);
            return NULL;
        }
        first = fits && !first ? s : first;
        if (!known++ && !fits && !sh_join_shape(scales, shape, rank, why, e))
            refuse_dtype(scales, scale_dtypes(s), e);
    }
    if (first)
        return first;
    if (!known)
        sh_fail(e, "%s: tensor '%s': found %d-bit %s codes, expected those of quantization_config", codes->file,
                codes->name, bits, is_float ? "float" : "int");
    return NULL;
}

/* Bytes: floats, or signed integers with or without zero points. `stem`: the name's length without "weight". */
static int join_bytes(struct sh_joining *j, const struct sh_stored *t, struct sh_err *e)
{
    static const char *const aside[] = {"input_scale", "activation_scale"};     /* of activations, which stay whole */
    const struct sh_stored *scales = NULL, *zeros, *spare;
    size_t n = strlen(t->name), end = n > 7 && !strcmp(t->name + n - 7, ".weight") ? n - 6 : n;
    int is_float = t->dtype[0] == 'F';
    int may_be_bytes = is_float && j->q->method != SH_QUANT_FP8;        /* MXFP8 */
    const char *dtypes = may_be_bytes ? SCALE_DTYPES "F8_E8M0 U8 " : SCALE_DTYPES "F8_E8M0 ";
    snprintf(j->name, sizeof j->name, "%s", t->name);
    snprintf(j->format, sizeof j->format, is_float ? "FP8 %s" : "INT8", t->dtype + 3);
    j->c.order = is_float ? SH_CODE_FP8 : SH_CODE_INT8;
    j->c.is_e5m2 = !strcmp(t->dtype, "F8_E5M2");
    j->c.bits = 8;
    if (sh_join_codes(j, t, 2, 3, e) ||
        sh_join_find(j, t->name, n, "_scale_inv", dtypes, 0, &scales, e) ||
        (!scales && sh_join_find(j, t->name, n, "_scale", dtypes, 1, &scales, e)))
        return -1;
    const struct sh_quant_scheme *s = fit(j, is_float, 8, scales, e);
    if (!s || sh_join_find(j, t->name, n, "_zero_point", is_float ? NULL : " I8 ", s->asymmetric, &zeros, e))
        return -1;
    if (zeros && !is_float && sh_join_shape(zeros, scales->shape, scales->rank, "that of the scales", e))
        return -1;
    j->c.piece[SH_PIECE_ZEROS] = is_float ? NULL : zeros;
    for (int i = 0; i < 2; i++)
        if (sh_join_find(j, t->name, end, aside[i], NULL, 0, &spare, e))
            return -1;
    return sh_join_scales(j, scales);
}

/* The group of each column, all below `groups`; columns in the order of their groups need no list. */
static int read_groups(struct sh_joining *j, const struct sh_stored *t, struct sh_err *e)
{
    int is_in_order = 1;
    if (!t)
        return 0;
    if (sh_join_shape(t, &j->c.cols, 1, "inputs", e))
        return -1;
    for (size_t i = 0; i < j->c.cols; i++) {
        int32_t g;
        memcpy(&g, t->at + i * sizeof g, sizeof g);
        if (g < 0 || (size_t)g >= j->c.groups)
            return sh_fail(e, "%s: tensor '%s': element %zu is %d, expected a group from 0 to %zu", t->file, t->name, i,
                           (int)g, j->c.groups - 1);
        is_in_order &= (size_t)g == i / j->c.span_cols;
    }
    j->c.piece[SH_PIECE_GROUPS] = is_in_order ? NULL : t;
    return 0;
}

/* The sizes in weight_shape. */
static int declared_shape(struct sh_joining *j, const struct sh_stored *t, const struct sh_stored *codes,
                          struct sh_err *e)
{
    static const size_t two = 2;
    size_t width = strcmp(t->dtype, "I64") ? 4 : 8;
    uint64_t size[2] = {0};
    char shape[200];
    if (sh_join_shape(t, &two, 1, "rows, columns", e))
        return -1;
    for (size_t i = 0; i < 2; i++)
        memcpy(&size[i], t->at + i * width, width);
    if (size[0] != j->c.rows || !size[1] || size[1] > 32 * codes->shape[1])
        return sh_fail(e, "%s: tensor '%s': found [%llu, %llu], expected the shape of a matrix with codes %s", t->file,
                       t->name, (unsigned long long)size[0], (unsigned long long)size[1],
                       sh_stored_shape(codes, shape, sizeof shape));
    j->c.cols = j->shape[1] = (size_t)size[1];
    return 0;
}

/* "<stem>weight_packed" */
static int join_packed(struct sh_joining *j, const struct sh_stored *t, size_t stem, struct sh_err *e)
{
    const struct sh_stored *scales, *shape, *zeros, *groups;
    if (sh_join_codes(j, t, 2, 2, e) || sh_join_find(j, t->name, stem, "weight_shape", " I64 I32 ", 1, &shape, e) ||
        declared_shape(j, shape, t, e) || sh_join_find(j, t->name, stem, "weight_scale", SCALE_DTYPES, 1, &scales, e))
        return -1;
    int bits = t->shape[1] == up(j->c.cols, 8) ? 4 : t->shape[1] == up(j->c.cols, 4) ? 8 : 0;
    if (!bits)
        return sh_fail(e, "%s: tensor '%s': found %zu words in a row, expected %zu (4 bits) or %zu (8 bits) for %zu "
                       "columns", t->file, t->name, t->shape[1], up(j->c.cols, 8), up(j->c.cols, 4), j->c.cols);
    const struct sh_quant_scheme *s = fit(j, 0, bits, scales, e);
    if (!s || sh_join_find(j, t->name, stem, "weight_zero_point", " I32 ", s->asymmetric, &zeros, e) ||
        sh_join_find(j, t->name, stem, "weight_g_idx", " I32 ", s->ordered && s->span == SH_SPAN_GROUP, &groups, e) ||
        read_groups(j, groups, e))
        return -1;
    size_t places[2] = {up(j->c.rows, 32 / (size_t)bits), j->c.groups};
    if (zeros && s->span == SH_SPAN_TENSOR)
        return sh_fail(e, "%s: tensor '%s': found zero points, expected none with one scale", zeros->file, zeros->name);
    if (zeros && sh_join_shape(zeros, places, 2, "zero points, packed by rows", e))
        return -1;
    j->c.order = SH_CODE_ROWS;
    j->c.bits = bits;
    j->c.zero = 1 << (bits - 1);
    j->c.piece[SH_PIECE_ZEROS] = zeros;
    snprintf(j->format, sizeof j->format, "INT%d", bits);
    return sh_join_scales(j, scales);
}

/* "<stem>weight" of modelopt, "<stem>weight_packed" of compressed-tensors: two codes a byte. */
static int join_fp4(struct sh_joining *j, const struct sh_stored *t, size_t stem, struct sh_err *e)
{
    static const size_t one = 1;
    int is_modelopt = j->q->method == SH_QUANT_MODELOPT;
    const struct sh_stored *scales, *spare;
    if (sh_join_codes(j, t, 2, 2, e) ||
        sh_join_find(j, t->name, stem, "weight_scale", " F8_E4M3 U8 F8_E8M0 ", 1, &scales, e))
        return -1;
    j->c.cols *= 2;
    j->shape[1] = j->c.cols;
    j->c.bits = 4;
    const struct sh_quant_scheme *s = fit(j, 1, 4, scales, e);
    if (!s)
        return -1;
    if (j->c.cols % (size_t)s->group)
        return sh_fail(e, "%s: tensor '%s': found %zu codes in a row, expected a multiple of %d", t->file, t->name,
                       j->c.cols, s->group);
    j->c.order = s->group == 16 ? SH_CODE_FP4 : SH_CODE_MXFP4;
    j->c.divides = !is_modelopt;
    snprintf(j->format, sizeof j->format, s->group == 16 ? "NVFP4" : "MXFP4");
    const struct sh_stored **factor = &j->c.piece[SH_PIECE_FACTORS];
    if (s->group == 16 && (sh_join_find(j, t->name, stem, is_modelopt ? "weight_scale_2" : "weight_global_scale",
                                        " F32 ", 1, factor, e) || sh_join_shape(*factor, &one, 1, "one scale", e)))
        return -1;
    if (sh_join_find(j, t->name, stem, is_modelopt ? "input_scale" : "input_global_scale", NULL, 0, &spare, e))
        return -1;
    return sh_join_scales(j, scales);
}

/* ---- words in columns: GPTQ, AWQ ---- */

/* Scales [groups, rows] and zero points [groups, rows / per word]. */
static int column_scales(struct sh_joining *j, const char *name, size_t stem, struct sh_err *e)
{
    struct sh_coded *c = &j->c;
    const struct sh_stored *scales, *zeros;
    size_t bits = (size_t)c->bits, per = bits == 3 ? 32 : 32 / bits;
    char why[64];
    if (sh_join_find(j, name, stem, "scales", SCALE_DTYPES, 1, &scales, e) ||
        sh_join_find(j, name, stem, "qzeros", " I32 ", 1, &zeros, e))
        return -1;
    if (j->q->varies && scales->rank == 2 && scales->shape[0] && scales->shape[0] <= c->cols) {
        c->groups = scales->shape[0];
        c->span_cols = up(c->cols, c->groups);
    }
    snprintf(why, sizeof why, "groups of %zu, %zu outputs", c->span_cols, c->rows);
    if (c->rows % per)
        return sh_fail(e, "%s: tensor '%s': found %zu outputs, expected a multiple of %zu", scales->file, j->name,
                       c->rows, per);
    if (sh_join_shape(scales, (size_t[]){c->groups, c->rows}, 2, why, e) ||
        sh_join_shape(zeros, (size_t[]){c->groups, c->rows / per * (bits == 3 ? 3 : 1)}, 2, why, e))
        return -1;
    c->matrix_rows = c->rows;
    c->span_rows = c->row_step = 1;
    c->group_step = c->rows;
    c->piece[SH_PIECE_ZEROS] = zeros;
    j->rank = 2;
    j->shape[0] = c->rows;
    j->shape[1] = c->cols;
    return sh_join_scales(j, scales);
}

static void span_columns(struct sh_coded *c, const struct sh_quant_scheme *s)
{
    c->span_cols = s->span == SH_SPAN_GROUP ? (size_t)s->group : c->cols;
    c->groups = up(c->cols, c->span_cols);
}

/* Of the codes of `cols` inputs in so many words. */
static int bits_of(size_t words, size_t cols)
{
    static const int all[] = {2, 3, 8};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (cols % 32 == 0 ? words == cols / 32 * (size_t)all[i] : words == up(cols, 32 / (size_t)all[i]))
            return all[i];
    return 4;
}

/* qweight [cols * bits / 32, rows]; where the settings differ, the bits follow from the groups of the columns. */
static int join_gptq(struct sh_joining *j, const struct sh_stored *t, size_t stem, struct sh_err *e)
{
    const struct sh_stored *groups;
    if (sh_join_codes(j, t, 2, 2, e) ||
        sh_join_find(j, t->name, stem, "g_idx", " I32 ", j->q->scheme[0].ordered, &groups, e))
        return -1;
    size_t words = t->shape[0];
    j->c.bits = j->q->scheme[0].bits;
    if (j->q->varies && groups && groups->rank == 1 && groups->shape[0])
        j->c.bits = bits_of(words, groups->shape[0]);
    if (j->c.bits == 3 && words % 3)
        return sh_fail(e, "%s: tensor '%s': found %zu words, expected a multiple of 3", t->file, t->name, words);
    j->c.order = SH_CODE_COLUMNS;
    j->c.rows = t->shape[1];
    j->c.cols = words * 32 / (size_t)j->c.bits;
    j->c.zero_more = j->q->zero_less_one;
    snprintf(j->format, sizeof j->format, "GPTQ %d-bit", j->c.bits);
    span_columns(&j->c, &j->q->scheme[0]);
    if (column_scales(j, t->name, stem, e) || read_groups(j, groups, e))
        return -1;
    return groups || !j->q->varies || j->c.cols % j->c.groups == 0
               ? 0 : sh_fail(e, "%s: tensor '%.*sg_idx' is missing: groups of unequal size need it", t->file, (int)stem,
                             t->name);
}

/* qweight [cols, rows / 8] */
static int join_awq(struct sh_joining *j, const struct sh_stored *t, size_t stem, struct sh_err *e)
{
    if (sh_join_codes(j, t, 2, 2, e))
        return -1;
    j->c.bits = 4;
    j->c.order = SH_CODE_AWQ;
    j->c.cols = t->shape[0];
    j->c.rows = t->shape[1] * 8;
    snprintf(j->format, sizeof j->format, "AWQ 4-bit");
    span_columns(&j->c, &j->q->scheme[0]);
    return column_scales(j, t->name, stem, e);
}

/* ---- MXFP4 ---- */

/* "<stem>_blocks" [..., rows, cols / 32, 16] */
static int join_mxfp4(struct sh_joining *j, const struct sh_stored *t, size_t stem, struct sh_err *e)
{
    const struct sh_stored *scales;
    struct sh_stored blocks = *t;
    char shape[200];
    if (t->rank < 3 || t->shape[t->rank - 1] != 16)
        return sh_fail(e, "%s: tensor '%s': found shape %s, expected blocks of 16 bytes", t->file, t->name,
                       sh_stored_shape(t, shape, sizeof shape));
    blocks.rank--;
    if (sh_join_codes(j, &blocks, 2, 3, e) ||
        sh_join_find(j, t->name, stem, "_scales", " U8 F8_E8M0 ", 1, &scales, e) ||
        sh_join_shape(scales, blocks.shape, blocks.rank, "one scale a block", e))
        return -1;
    j->c.order = SH_CODE_MXFP4;
    j->c.bits = 4;
    j->c.groups = j->c.cols;
    j->c.cols *= 32;
    j->shape[j->rank - 1] = j->c.cols;
    snprintf(j->format, sizeof j->format, "MXFP4");
    return sh_join_scales(j, scales);
}

/* ---- BitNet ---- */

/* "<stem>weight" [rows / 4, cols] */
static int join_bitnet(struct sh_joining *j, const struct sh_stored *t, size_t stem, struct sh_err *e)
{
    static const size_t one = 1;
    const struct sh_stored *scale;
    if (sh_join_codes(j, t, 2, 2, e) ||
        sh_join_find(j, t->name, stem, "weight_scale", SCALE_DTYPES, 1, &scale, e) ||
        sh_join_shape(scale, &one, 1, "one scale", e))
        return -1;
    j->c.order = SH_CODE_BITNET;
    j->c.bits = 2;
    j->c.zero = 1;
    j->c.rows = j->c.matrix_rows = j->shape[0] = 4 * t->shape[0];
    j->c.span_rows = j->c.rows;
    j->c.span_cols = j->c.cols;
    j->c.groups = 1;
    j->c.divides = j->q->divides;
    snprintf(j->format, sizeof j->format, "BitNet");
    return sh_join_scales(j, scale);
}

/* ---- all ---- */

/* The length of the name before the suffix; 0: it has another end. */
static size_t before(const struct sh_stored *t, const char *suffix)
{
    size_t n = strlen(t->name), end = strlen(suffix);
    return n > end && !strcmp(t->name + n - end, suffix) ? n - end : 0;
}

typedef int join_words(struct sh_joining *, const struct sh_stored *, size_t, struct sh_err *);

/* Formats whose codes are told by the end of their name. */
static const struct suffix {
    enum sh_quant_method method;
    const char *end, *dtype;            /* of the codes; dtype of the tensor that has it          */
    int may_differ;                     /* with another dtype it is something else                */
    int kept;                           /* characters of `end` that the matrix's name keeps       */
    const char *whole;                  /* … and what follows                                     */
    join_words *join;
} suffixes[] = {
    {SH_QUANT_GROUPS, ".weight_packed", " U8 ", 1, 1, "weight", join_fp4},
    {SH_QUANT_GROUPS, ".weight_packed", " I32 ", 0, 1, "weight", join_packed},
    {SH_QUANT_MODELOPT, ".weight", " U8 ", 1, 1, "weight", join_fp4},
    {SH_QUANT_GPTQ, ".qweight", " I32 ", 0, 1, "weight", join_gptq},
    {SH_QUANT_AWQ, ".qweight", " I32 ", 0, 1, "weight", join_awq},
    {SH_QUANT_MXFP4, "_blocks", " U8 ", 0, 0, "", join_mxfp4},
    {SH_QUANT_BITNET, ".weight", " U8 ", 1, 1, "weight", join_bitnet},
    {SH_QUANT_BNB, ".quant_map", " F32 ", 0, 0, "", sh_join_bnb},
    {SH_QUANT_BNB, ".weight", " I8 ", 1, 1, "weight", sh_join_int8}};

/* 1: a matrix begins with this tensor, and is made; 0: none does. */
static int join(struct sh_joining *j, const struct sh_stored *t, struct sh_err *e)
{
    enum sh_quant_method method = j->q->method;
    int is_f8 = is_one_of(t, " F8_E4M3 F8_E5M2 ") && !before(t, "_zero_point") && !before(t, ".weight_scale");
    int is_i8 = !strcmp(t->dtype, "I8") && before(t, ".weight");
    int has_f8 = method == SH_QUANT_FP8 || method == SH_QUANT_GROUPS || method == SH_QUANT_MODELOPT;
    j->c.piece[SH_PIECE_CODES] = t;
    if ((is_f8 && has_f8) || (is_i8 && method == SH_QUANT_GROUPS))
        return join_bytes(j, t, e) ? -1 : 1;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        const struct suffix *s = &suffixes[i];
        size_t stem = s->method == method ? before(t, s->end) : 0;
        if (!stem || (s->may_differ && !is_one_of(t, s->dtype)))
            continue;
        stem += (size_t)s->kept;
        snprintf(j->name, sizeof j->name, "%.*s%s", (int)stem, t->name, s->whole);
        const struct sh_stored *other = s->method == SH_QUANT_BNB ? NULL : sh_weights_find(j->w, j->name);
        if (other && other != t)
            return sh_fail(e, "%s: tensor '%s': found '%s' as well, expected only one of them", t->file, t->name,
                           j->name);
        if (!is_one_of(t, s->dtype))
            return refuse_dtype(t, s->dtype, e);
        return s->join(j, t, stem, e) ? -1 : 1;
    }
    return 0;
}

static struct sh_stored made(const struct sh_joining *j)
{
    const struct sh_stored *codes = j->c.piece[SH_PIECE_CODES];
    struct sh_coded *c = xmalloc(sizeof *c);
    struct sh_stored t = {.name = xstrdup(j->name), .file = codes->file, .at = codes->at, .bytes = codes->bytes,
                          .rank = j->rank, .coded = c};
    *c = j->c;
    c->columns = sh_coded_columns(c);
    c->packing = sh_coded_packing(c);
    memcpy(t.shape, j->shape, (size_t)j->rank * sizeof *j->shape);
    snprintf(t.dtype, sizeof t.dtype, "%s", j->format);
    return t;
}

/* Numbers that change what a model computes, and that belong to no coded matrix: scales of activations (AutoAWQ's
 * ScaledActivation), factors of what a matrix reads (modelopt), scales of a matrix whose numbers are not codes. */
static int refuse_spare(const struct sh_stored *t, struct sh_err *e)
{
    static const char *const ends[] = {".scales", ".pre_quant_scale", ".weight_scale", ".weight_scale_inv",
                                       ".weight_scale_2", ".weight_global_scale"};
    static const struct { const char *dtype; size_t bytes; unsigned char one[4]; } ones[] = {
        {"F32", 4, {0, 0, 0x80, 0x3f}}, {"F16", 2, {0, 0x3c}}, {"BF16", 2, {0x80, 0x3f}}};
    int is_scale = 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        is_scale |= before(t, ends[i]) > 0;
    if (!is_scale)
        return 0;
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
        size_t at = 0, step = ones[i].bytes;
        if (strcmp(t->dtype, ones[i].dtype))
            continue;
        while (at + step <= t->bytes && !memcmp(t->at + at, ones[i].one, step))
            at += step;
        if (at == t->bytes)
            return 0;
    }
    return sh_fail(e, "%s: tensor '%s': found scales that belong to no coded matrix, expected none, or all of them 1",
                   t->file, t->name);
}

int sh_weights_join(struct sh_weights *w, const struct sh_quant *q, struct sh_err *e)
{
    size_t n = sh_weights_count(w), n_made = 0, n_kept = 0;
    if (q->method == SH_QUANT_NONE || !n)
        return 0;
    struct sh_stored *table = xcalloc(n, sizeof *table), *matrices = xcalloc(n, sizeof *matrices);
    unsigned char *is_piece = xcalloc(n, 1);
    int found = 0;
    for (size_t i = 0; i < n && found >= 0; i++) {
        struct sh_joining j = {.w = w, .q = q, .is_piece = is_piece};
        found = strlen(sh_weights_at(w, i)->name) < sizeof j.name ? join(&j, sh_weights_at(w, i), e) : 0;
        if (found > 0) {
            is_piece[j.c.piece[SH_PIECE_CODES] - sh_weights_at(w, 0)] = is_piece[i] = 1;
            matrices[n_made++] = made(&j);
        }
    }
    for (size_t i = 0; i < n && found >= 0; i++)
        if (!is_piece[i]) {
            table[n_kept++] = *sh_weights_at(w, i);
            found = refuse_spare(sh_weights_at(w, i), e) ? -1 : found;
        }
    if (n_made)
        memcpy(table + n_kept, matrices, n_made * sizeof *table);
    free(matrices);
    free(is_piece);
    sh_weights_replace(w, table, n_kept + n_made);
    return found < 0 ? -1 : 0;
}
