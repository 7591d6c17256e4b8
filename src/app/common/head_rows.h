/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of one query head out of the blocks of a layer, one after another; one block is unpacked and
 * one row decoded at a time. */
#ifndef SH_APP_COMMON_HEAD_ROWS_H
#define SH_APP_COMMON_HEAD_ROWS_H

#include "traces/codec.h"

struct sh_head_rows {
    const struct sh_batch *blocks;
    int head;
    int i_block;                        /* the block in hand                                      */
    struct sh_codec_reader reader;      /* of it                                                  */
};

/* `blocks` in order of head and row, as the store hands them out. Zeroed memory will do else. */
void sh_head_rows_begin(struct sh_head_rows *h, const struct sh_batch *blocks, int head);
void sh_head_rows_end(struct sh_head_rows *h);

/* Row t, valid until the next call; rows are asked for from 0 on. -1: it is not there, or damaged. */
int sh_head_rows_next(struct sh_head_rows *h, int t, const float **score, int *first_key, struct sh_err *e);

#endif
