/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that are kept in 16 bits for products in f32, where oneDNN has no products of their type (f16; bf16 on a
 * processor without its instructions) or the operands are f32 and the checkpoint is not: half the memory, and a row
 * alone is multiplied at the speed of reading it. Panels of FEW_COLS outputs, inputs one after another, padded with
 * zeros as oneDNN's own f32 panels are, which they become by widening alone (gemm_few_rows.h). */
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "src/base/team.h"

enum {
    BLOCK = 16,                         /* inputs that oneDNN's panels are padded to              */
    SOME = 256                          /* inputs whose rows are read together: they are cached   */
};

enum sh_type cpu_halves_type(const struct sh_dev *d, enum sh_type from, enum sh_type to)
{
    return cpu_computed(d, to) != SH_F32 ? SH_F32 : to != SH_F32 ? to : from;
}

size_t cpu_halves_panel(int in)
{
    return ((size_t)in + BLOCK - 1) / BLOCK * BLOCK * FEW_COLS;
}

struct halving {
    const struct sh_dev *d;
    const struct few_layout *l;
    uint16_t *to;
    const char *from;                   /* [rows, cols]                                           */
    enum sh_type type;                  /* of these                                               */
    int rows, cols;
};

/* Some inputs of a row as numbers of the layout's type: where they are, or in `own`. */
static const uint16_t *halves_at(const struct halving *h, int row, int col, int n, uint16_t *own)
{
    struct sh_mat from = {NULL, h->type, 1, n, (size_t)n}, to = {own, h->l->type, 1, n, (size_t)n};
    const char *at = h->from + ((size_t)row * (size_t)h->cols + (size_t)col) * sh_type_bytes(h->type);
    if (h->type == h->l->type)
        return (const uint16_t *)(const void *)at;
    *(const void **)&from.at = at;
    h->d->kernels->convert(to, from, 1);
    return own;
}

static void put_panel(void *arg, int panel)
{
    const struct halving *h = arg;
    uint16_t *to = h->to + (size_t)panel * h->l->panel, own[SOME];
    int first = panel * FEW_COLS, n = h->rows - first < FEW_COLS ? h->rows - first : FEW_COLS;
    if (n < FEW_COLS)
        memset(to, 0, h->l->panel * sizeof *to);
    memset(to + (size_t)h->cols * FEW_COLS, 0, (h->l->panel - (size_t)h->cols * FEW_COLS) * sizeof *to);
    for (int col = 0; col < h->cols; col += SOME)
        for (int o = 0; o < n; o++) {
            int some = h->cols - col < SOME ? h->cols - col : SOME;
            const uint16_t *from = halves_at(h, first + o, col, some, own);
            for (int i = 0; i < some; i++)
                to[(size_t)(col + i) * FEW_COLS + (size_t)o] = from[i];
        }
}

int cpu_halves(struct sh_dev *d, struct few_layout *l, const void *at, enum sh_type from, int rows, int cols,
               enum sh_type to)
{
    int panels = (rows + FEW_COLS - 1) / FEW_COLS;
    *l = (struct few_layout){.type = cpu_halves_type(d, from, to), .wide = FEW_COLS, .fold = 1,
                             .panel = cpu_halves_panel(cols)};
    struct halving h = {.d = d, .l = l, .from = at, .type = from, .rows = rows, .cols = cols,
                        .to = aligned_alloc(64, (size_t)panels * l->panel * sizeof *h.to)};
    if (!h.to)
        return -1;
    l->at = h.to;
    sh_team_each(d->n_threads, panels, put_panel, &h);
    return 0;
}
