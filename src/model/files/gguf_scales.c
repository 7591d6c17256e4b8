/* SPDX-License-Identifier: Apache-2.0 */
/* See gguf_tensors.h: the scales of NVFP4 matrices. llama.cpp's converter keeps the second scale of "X.weight", one for
 * a matrix, as "X.scale" (one number, or one for each expert), and multiplies the product by it; here it multiplies the
 * numbers of the matrix. "X.input_scale" is for activations, which stay whole. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/coded_blocks.h"
#include "src/model/files/gguf_tensors.h"

enum { NVFP4 = 40 };

/* "blk.3.ffn_down_exps.scale": has the family such a parameter? */
static int is_param(const struct sh_family *f, const char *name)
{
    const char *end = strncmp(name, "blk.", 4) ? NULL : strchr(name + 4, '.');
    for (const struct sh_param *p = f->params; p->name && end; p++)
        if (!strncmp(p->name, "blk.#", 5) && !strcmp(p->name + 5, end))
            return 1;
    return 0;
}

/* The tensor "<stem><end>", the stem n characters of a name. */
static const struct sh_stored *sibling(const struct sh_weights *w, const char *stem, size_t n, const char *end)
{
    char *name = xasprintf("%.*s%s", (int)n, stem, end);
    const struct sh_stored *t = sh_weights_find(w, name);
    free(name);
    return t;
}

static int check(const struct sh_stored *t, const struct sh_stored *scale, struct sh_err *e)
{
    static const size_t one = 1;
    char shape[200];
    if (t->rank < 2 || t->rank > 3)
        return sh_fail(e, "%s: tensor '%s': found shape %s, expected a matrix or a stack of matrices, since there is a "
                       "tensor '%s'", t->file, t->name, sh_stored_shape(t, shape, sizeof shape), scale->name);
    if (strcmp(scale->dtype, "F32"))
        return sh_fail(e, "%s: tensor '%s': found dtype %s, expected F32", scale->file, scale->name, scale->dtype);
    return sh_join_shape(scale, t->rank == 3 ? t->shape : &one, 1, "one scale a matrix", e);
}

static void scale_by(struct sh_stored *t, const struct sh_stored *blocks, const struct sh_stored *scale)
{
    struct sh_coded *c = xmalloc(sizeof *c);
    *c = (struct sh_coded){.order = SH_CODE_BLOCKS, .piece = {[SH_PIECE_CODES] = blocks, [SH_PIECE_FACTORS] = scale},
                           .rows = 1, .cols = t->shape[t->rank - 1], .matrix_rows = t->shape[t->rank - 2], .bits = 4};
    for (int i = 0; i + 1 < t->rank; i++)
        c->rows *= t->shape[i];
    c->packing = sh_coded_packing(c);
    t->name = xstrdup(t->name);
    t->packed = NULL;
    t->coded = c;
}

int sh_gguf_fold_scales(struct sh_weights *w, const struct sh_family *f, struct sh_err *e)
{
    size_t n = sh_weights_count(w), kept = 0, n_found = 0;
    struct sh_stored *table = xcalloc(n, sizeof *table);
    const struct sh_stored *first = n ? sh_weights_at(w, 0) : NULL, *scale, *input;
    const struct sh_stored **scales = xcalloc(n, sizeof *scales);
    unsigned char *is_aside = xcalloc(n, 1);
    int bad = 0;
    for (size_t i = 0; i < n && !bad; i++) {
        const struct sh_stored *t = &first[i];
        size_t stem = strlen(t->name) - (strlen(t->name) > 7 ? 6 : 0);
        if (!t->packed || t->packed->number != NVFP4 || strcmp(t->name + stem, "weight"))
            continue;
        scale = sibling(w, t->name, stem, "scale");
        input = sibling(w, t->name, stem, "input_scale");
        if (scale && !is_param(f, scale->name)) {
            scales[i] = scale;
            is_aside[scale - first] = 1;
            bad = check(t, scale, e);
        }
        if (input)
            is_aside[input - first] = 1;
        n_found++;
    }
    for (size_t i = 0; i < n && n_found && !bad; i++)
        if (!is_aside[i]) {
            table[kept] = first[i];
            if (scales[i])
                scale_by(&table[kept], &first[i], scales[i]);
            kept++;
        }
    free(scales);
    free(is_aside);
    if (n_found && !bad)
        sh_weights_replace(w, table, kept);
    else
        free(table);
    return bad ? -1 : 0;
}
