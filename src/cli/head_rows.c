/* SPDX-License-Identifier: Apache-2.0 */
/* See head_rows.h. */
#include "src/cli/head_rows.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "traces/codec.h"

void sh_head_rows_begin(struct sh_head_rows *h, const struct sh_batch *blocks, int head)
{
    *h = (struct sh_head_rows){.blocks = blocks, .head = head, .i_block = -1};
}

void sh_head_rows_end(struct sh_head_rows *h)
{
    free(h->score);
    *h = (struct sh_head_rows){0};
}

/* Room is made for rows that are really there, not for what a damaged block says of itself. */
static int take(void *to, const struct sh_row *r)
{
    struct sh_head_rows *h = to;
    size_t n = (size_t)r->n;
    if (h->n_score + n > h->cap) {
        h->cap = 2 * (h->n_score + n);
        h->score = xreallocarray(h->score, h->cap, sizeof *h->score);
    }
    memcpy(h->score + h->n_score, r->score, n * sizeof *h->score);
    h->n_score += n;
    return 0;
}

static int next_block(struct sh_head_rows *h, int t, struct sh_err *e)
{
    const struct sh_block *b = NULL;
    while (!b && ++h->i_block < h->blocks->n_block)
        if (h->blocks->block[h->i_block].head == h->head)
            b = &h->blocks->block[h->i_block];
    if (!b || b->first_row != t)
        return sh_fail(e, "row %d is missing", t);
    if (b->codec & SH_CODEC_SPARSE)
        return sh_fail(e, "holds only the large scores, expected full rows");
    h->n_score = 0;
    h->row = t;
    h->block = b;
    if (sh_codec_rows(b, take, h, e))
        return sh_err_prefix(e, "rows from %d on", t);
    h->at = h->score;
    return 0;
}

int sh_head_rows_next(struct sh_head_rows *h, int t, const float **score, int *first_key, struct sh_err *e)
{
    if ((!h->block || h->row == h->block->first_row + h->block->n_rows) && next_block(h, t, e))
        return -1;
    *first_key = sh_row_start(t, h->block->window);
    *score = h->at;
    h->at += t + 1 - *first_key;
    h->row++;
    return 0;
}
