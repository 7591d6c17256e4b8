/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors of a 4-bit matrix of bitsandbytes: "X.weight" has the codes in a row; absmax the scales, one for a run of
 * codes, F32 or themselves coded in 8 bits (double quantisation); quant_map the numbers that codes stand for; and
 * quant_state.bitsandbytes__TYPE a JSON object with the matrix's shape. Of 8 bits (LLM.int8): SCB has the largest
 * number of each row, for which the code is 127. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/coded.h"

/* A whole number from 1 to `most`; 0: it is something else. */
static size_t whole(const json_t *v, size_t most)
{
    json_int_t n = json_integer_value(v);
    return json_is_integer(v) && n >= 1 && (unsigned long long)n <= most ? (size_t)n : 0;
}

static int read_state(struct sh_joining *j, const struct sh_stored *t, const json_t *state, struct sh_err *e)
{
    const json_t *shape = json_object_get(state, "shape"), *offset = json_object_get(state, "nested_offset");
    const struct sh_stored *codes = j->c.piece[SH_PIECE_CODES];
    size_t all;
    j->rank = 2;
    for (size_t i = 0; i < 2; i++)
        j->shape[i] = json_array_size(shape) == 2 ? whole(json_array_get(shape, i), (size_t)1 << 40) : 0;
    if (!j->shape[0] || !j->shape[1])
        return sh_fail(e, "%s: tensor '%s': 'shape' is not a pair of whole numbers above 0", t->file, t->name);
    if (sh_mul(j->shape[0], j->shape[1], &all) || all / 2 + all % 2 != codes->bytes)
        return sh_fail(e, "%s: tensor '%s': found the shape [%zu, %zu], expected that of a matrix with %zu bytes of "
                       "codes", t->file, t->name, j->shape[0], j->shape[1], codes->bytes);
    j->c.span_cols = whole(json_object_get(state, "blocksize"), (size_t)1 << 30);
    if (!j->c.span_cols)
        return sh_fail(e, "%s: tensor '%s': 'blocksize' is not a whole number above 0", t->file, t->name);
    j->c.rows = j->c.matrix_rows = j->shape[0];
    j->c.cols = j->shape[1];
    j->c.groups = all / j->c.span_cols + (all % j->c.span_cols != 0);
    j->c.scale_span = whole(json_object_get(state, "nested_blocksize"), (size_t)1 << 30);
    j->c.scale_offset = (float)json_number_value(offset);
    if (j->c.scale == SH_SCALE_CODED && (!j->c.scale_span || !json_is_number(offset) || !isfinite(j->c.scale_offset)))
        return sh_fail(e, "%s: tensor '%s': found coded scales without 'nested_blocksize' and 'nested_offset'", t->file,
                       t->name);
    return 0;
}

/* Types: the end of the state's name. */
static int find_state(struct sh_joining *j, const char *name, size_t stem, const struct sh_stored **state,
                      struct sh_err *e)
{
    snprintf(j->format, sizeof j->format, "NF4");
    if (sh_join_find(j, name, stem, ".quant_state.bitsandbytes__nf4", " U8 ", 0, state, e))
        return -1;
    if (*state)
        return 0;
    snprintf(j->format, sizeof j->format, "FP4");
    return sh_join_find(j, name, stem, ".quant_state.bitsandbytes__fp4", " U8 ", 0, state, e) ||
           (!*state && sh_join_find(j, name, stem, ".quant_state.bitsandbytes__nf4", " U8 ", 1, state, e)) ? -1 : 0;
}

/* Scales that are coded. */
static int find_nested(struct sh_joining *j, const char *name, size_t stem, struct sh_err *e)
{
    const struct sh_stored **table = &j->c.piece[SH_PIECE_SCALE_TABLE], **scales = &j->c.piece[SH_PIECE_SCALE_SCALES];
    static const size_t entries = 256;
    if (j->c.scale != SH_SCALE_CODED)
        return 0;
    size_t n = j->c.groups / j->c.scale_span + (j->c.groups % j->c.scale_span != 0);
    return sh_join_find(j, name, stem, ".nested_quant_map", " F32 ", 1, table, e) ||
           sh_join_find(j, name, stem, ".nested_absmax", " F32 ", 1, scales, e) ||
           sh_join_shape(*table, &entries, 1, "codes of 8 bits", e) ||
           sh_join_shape(*scales, &n, 1, "blocks of scales", e) ? -1 : 0;
}

int sh_join_bnb(struct sh_joining *j, const struct sh_stored *table, size_t stem, struct sh_err *e)
{
    static const size_t entries = 16;
    const struct sh_stored *state, *scales;
    const char *name = table->name;
    if (sh_join_find(j, name, stem, "", NULL, 1, &j->c.piece[SH_PIECE_CODES], e) ||
        sh_join_find(j, name, stem, ".absmax", " F32 U8 ", 1, &scales, e) || find_state(j, name, stem, &state, e) ||
        sh_join_shape(table, &entries, 1, "codes of 4 bits", e))
        return -1;
    j->c.order = SH_CODE_TABLE;
    j->c.bits = 4;
    j->c.piece[SH_PIECE_TABLE] = table;
    j->c.piece[SH_PIECE_SCALES] = scales;
    j->c.scale = strcmp(scales->dtype, "U8") ? SH_SCALE_F32 : SH_SCALE_CODED;
    json_error_t why;
    json_t *facts = json_loadb((const char *)state->at, state->bytes, 0, &why);
    int bad = facts ? read_state(j, state, facts, e)
                    : sh_fail(e, "%s: tensor '%s': not valid JSON: %s", state->file, state->name, why.text);
    json_decref(facts);
    bad = bad || sh_join_shape(scales, &j->c.groups, 1, "blocks of codes", e) || find_nested(j, name, stem, e);
    return bad ? -1 : 0;
}

int sh_join_int8(struct sh_joining *j, const struct sh_stored *t, size_t stem, struct sh_err *e)
{
    const struct sh_stored *scales, *order;
    if (sh_join_codes(j, t, 2, 2, e) || sh_join_find(j, t->name, stem, "SCB", " F32 ", 1, &scales, e) ||
        sh_join_shape(scales, j->shape, 1, "one scale a row", e) ||
        sh_join_find(j, t->name, stem, "weight_format", NULL, 0, &order, e))
        return -1;
    for (size_t i = 0; order && i < order->bytes; i++)
        if (order->at[i])
            return sh_fail(e, "%s: tensor '%s': found %d, expected 0: rows after each other", order->file, order->name,
                           order->at[i]);
    j->c.order = SH_CODE_INT8;
    j->c.bits = 8;
    j->c.span_rows = j->c.row_step = j->c.groups = 1;
    j->c.span_cols = j->c.cols;
    j->c.scale_by = 1.0f / 127;
    snprintf(j->format, sizeof j->format, "INT8");
    return sh_join_scales(j, scales);
}
