/* SPDX-License-Identifier: Apache-2.0 */
/* See head_rows.h. */
#include "src/app/common/head_rows.h"

void sh_head_rows_begin(struct sh_head_rows *h, const struct sh_batch *blocks, int head)
{
    *h = (struct sh_head_rows){.blocks = blocks, .head = head, .i_block = -1};
}

void sh_head_rows_end(struct sh_head_rows *h)
{
    sh_codec_close(&h->reader);
    *h = (struct sh_head_rows){0};
}

static int next_block(struct sh_head_rows *h, int t, struct sh_err *e)
{
    const struct sh_block *b = NULL;
    while (!b && ++h->i_block < h->blocks->n_block)
        if (h->blocks->block[h->i_block].head == h->head)
            b = &h->blocks->block[h->i_block];
    if (!b || b->first_row != t)
        return sh_fail(e, "row %d is missing", t);
    sh_codec_close(&h->reader);
    return sh_codec_open(&h->reader, b, e) ? sh_err_prefix(e, "rows from %d on", t) : 0;
}

int sh_head_rows_next(struct sh_head_rows *h, int t, const float **score, int *first_key, struct sh_err *e)
{
    struct sh_row row;
    while (!h->reader.block || !sh_codec_next(&h->reader, &row))
        if (next_block(h, t, e))
            return -1;
    *first_key = row.first_key;
    *score = row.score;
    return 0;
}
