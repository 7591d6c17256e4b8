/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors where their files are mapped: packed and 16-bit matrices for products that read them there, rows of an
 * embedding, and the pages of numbered tensors. */
#include <stdlib.h>

#include "src/base/clones.h"
#include "src/base/mem.h"
#include "src/model/coded_blocks.h"
#include "src/model/files/gguf_tensors.h"
#include "src/model/model_bound.h"

int sh_model_is_packed(const struct sh_model *m, enum sh_role role, int layer, struct sh_tensor *out)
{
    const struct bound *b = sh_bound_at(m, role, layer, 0);
    *out = (struct sh_tensor){.type = b->type, .rows = b->rows, .cols = b->cols, .name = b->name};
    return b->stored && sh_stored_is_coded(b->stored) && !b->own && sh_layout_is_plain(&b->layout) && !b->d_head;
}

/* sh_packed.unpack */
static void unpack_bound(const void *from, int first, int n, float *to)
{
    const struct bound *b = from;
    struct sh_layout stacked = sh_bound_in_stack(b);
    sh_gguf_rows(b->stored, &stacked, b->d_head, first, n, to);
}

/* How many of n rows from row `first` on follow each other in the tensor, from *row on. */
static int together(const struct bound *b, int first, int n, size_t *row)
{
    struct sh_layout l = sh_bound_in_stack(b);
    int some = 1;
    *row = sh_gguf_row(&l, b->d_head, first);
    while (some < n && sh_gguf_row(&l, b->d_head, first + some) == *row + (size_t)some)
        some++;
    return some;
}

/* sh_packed.blocks */
static void blocks_bound(const void *from, int first, int n, unsigned char *to)
{
    const struct bound *b = from;
    const struct sh_coded *c = b->stored->coded;
    struct sh_packing_shape s = sh_packing_shape(c->packing);
    size_t bytes = c->cols / (size_t)s.elements * (size_t)s.bytes, row;
    for (int i = 0, some; i < n; i += some, to += (size_t)some * bytes) {
        some = together(b, first + i, n - i, &row);
        sh_coded_blocks(c, c->packing, row, (size_t)some, to);
    }
}

/* sh_packed.is_finite */
static int is_finite_bound(const void *from, int first, int n)
{
    const struct bound *b = from;
    int is_finite = 1;
    size_t row;
    for (int i = 0, some; i < n && is_finite; i += some) {
        some = together(b, first + i, n - i, &row);
        is_finite = sh_coded_is_finite(b->stored->coded, row, (size_t)some);
    }
    return is_finite;
}

/* Rows of coded blocks for products from them, where they lie a fixed number of rows apart (gate and up in turns). */
static void from_blocks(const struct bound *b, struct sh_packed *out)
{
    const struct sh_coded *c = b->stored->coded;
    const struct sh_layout *l = &b->layout;
    size_t first = (size_t)sh_bound_in_stack(b).first;
    if (!c || c->order != SH_CODE_MXFP4 || (l->run != 1 && l->run != l->rows) || l->n_rot || b->d_head)
        return;
    out->format = SH_PACKED_MXFP4_APART;
    out->step = l->run == l->rows ? 1 : l->step;
    out->at = c->piece[SH_PIECE_CODES]->at + first * (c->cols / 2);
    out->apart = c->piece[SH_PIECE_SCALES]->at + first * c->groups;
}

int sh_model_packed(const struct sh_model *m, enum sh_role role, int layer, int number, struct sh_packed *out,
                    const char **name)
{
    if (role == SH_HEAD && (m->arch.flags & SH_TIED_HEAD))
        role = SH_TOK_EMBED;
    const struct bound *b = number < sh_model_count(m, role) ? sh_bound_at(m, role, layer, number) : NULL;
    if (!b || !b->stored || !sh_stored_is_coded(b->stored) || b->param->rows == SH_ONE || b->layout.is_transposed ||
        sh_bound_is_changed(m, b))
        return 0;
    const struct sh_gguf_type *type = b->stored->packed;
    *name = b->name;
    *out = (struct sh_packed){.rows = b->rows, .cols = b->cols, .unpack = unpack_bound, .from = b};
    if (type && type->packing != SH_PACKED_OTHER && sh_layout_is_plain(&b->layout)) {
        out->format = type->packing;
        out->d_head = b->d_head;
        out->at = b->stored->at + (size_t)sh_bound_in_stack(b).first * ((size_t)b->cols / type->elements * type->bytes);
    }
    from_blocks(b, out);
    if (b->stored->coded && b->stored->coded->packing) {
        out->format = b->stored->coded->packing;
        out->blocks = blocks_bound;
        out->is_finite = is_finite_bound;
        out->columns = b->stored->coded->columns;
    }
    return 1;
}

/* sh_packed.unpack of sh_model_halves, whose numbers may lie at any address. */
SH_CLONES
static void widen(const struct bound *b, const unsigned char *from, size_t n, float *to)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, from + i * sizeof half, sizeof half);
        to[i] = b->type == SH_F16 ? sh_f16_to_f32(half) : sh_bf16_to_f32(half);
    }
}

static void unpack_halves(const void *from, int first, int n, float *to)
{
    const struct bound *b = from;
    struct sh_layout stacked = sh_bound_in_stack(b);
    size_t cols = (size_t)b->cols;
    for (int i = 0; i < n; i++)
        widen(b, b->stored->at + sh_layout_row(&stacked, first + i) * cols * 2, cols, to + (size_t)i * cols);
}

/* Rows of 16-bit numbers for products from them, where they lie a fixed number of rows apart and fit blocks of 32. */
static void from_halves(const struct bound *b, struct sh_packed *out)
{
    const struct sh_layout *l = &b->layout;
    const unsigned char *at = b->stored->at + (size_t)sh_bound_in_stack(b).first * (size_t)b->cols * sizeof(uint16_t);
    if ((l->run != 1 && l->run != l->rows) || b->cols % 32 || (uintptr_t)at % sizeof(uint16_t))
        return;
    out->format = b->type == SH_F16 ? SH_PACKED_F16 : SH_PACKED_BF16;
    out->step = l->run == l->rows ? 1 : l->step;
    out->at = at;
}

int sh_model_halves(const struct sh_model *m, enum sh_role role, int layer, int number, struct sh_packed *out,
                    const char **name)
{
    const struct bound *b = number < sh_model_count(m, role) ? sh_bound_at(m, role, layer, number) : NULL;
    if (!b || !b->stored || b->type == SH_F32 || sh_stored_is_coded(b->stored) || b->param->rows == SH_ONE ||
        b->layout.is_transposed || b->layout.n_rot || b->d_head || sh_bound_is_changed(m, b))
        return 0;
    *name = b->name;
    *out = (struct sh_packed){.rows = b->rows, .cols = b->cols, .unpack = unpack_halves, .from = b};
    from_halves(b, out);
    return 1;
}

void sh_model_rows(const struct sh_model *m, enum sh_role role, int layer, const int32_t *row, int n, float *out)
{
    const struct bound *b = sh_bound_at(m, role, layer, 0);
    for (int i = 0; i < n; i++)
        sh_stored_rows(b->stored, (size_t)b->layout.first + (size_t)row[i], 1, out + (size_t)i * (size_t)b->cols);
}

/* In how many equal parts its tensor holds a numbered role. */
static size_t parts_of(const struct sh_model *m, const struct bound *b)
{
    return sh_bound_is_sliced(b->param) ? (size_t)sh_dim_size(&m->arch, b->param->count) : 1;
}

void sh_model_drop_numbered(struct sh_model *m, enum sh_role role, int layer, int number)
{
    struct bound *b = sh_bound_at(m, role, layer, number);
    if (number >= sh_model_count(m, role))
        return;
    if (b->stored)
        sh_stored_part(b->stored, sh_bound_is_sliced(b->param) ? (size_t)number : 0, parts_of(m, b), 0);
    free(b->own);
    b->own = NULL;
}

void sh_model_ask_numbered(const struct sh_model *m, enum sh_role role, int layer, int number)
{
    const struct bound *b = sh_bound_at(m, role, layer, number);
    if (number < sh_model_count(m, role) && b->stored)
        sh_stored_part(b->stored, sh_bound_is_sliced(b->param) ? (size_t)number : 0, parts_of(m, b), 1);
}

struct in_file {
    const struct bound *b;
    int number;
};

static int by_file(const void *x, const void *y)
{
    const struct in_file *a = x, *b = y;
    const struct sh_stored *s = a->b->stored, *t = b->b->stored;
    int order = s && t && s->file != t->file ? strcmp(s->file, t->file) : 0;
    if (!order && s && t && s->at != t->at)
        order = s->at < t->at ? -1 : 1;
    return order ? order : (a->number > b->number) - (a->number < b->number);
}

void sh_model_file_order(const struct sh_model *m, enum sh_role role, int layer, int *order)
{
    size_t n = (size_t)sh_model_count(m, role);
    struct in_file *all = xcalloc(n, sizeof *all);
    for (size_t i = 0; i < n; i++)
        all[i] = (struct in_file){sh_bound_at(m, role, layer, (int)i), (int)i};
    if (n)
        qsort(all, n, sizeof *all, by_file);
    for (size_t i = 0; i < n; i++)
        order[i] = all[i].number;
    free(all);
}
