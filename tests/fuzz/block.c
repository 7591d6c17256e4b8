/* SPDX-License-Identifier: Apache-2.0 */
/* See fuzz.h: trace blocks. */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "traces/codec.h"

int fuzz_block(const uint8_t **data, size_t *size, struct sh_block *b)
{
    int32_t number[3];
    if (*size < 14)
        return -1;
    memcpy(number, *data, sizeof number);
    *b = (struct sh_block){.first_row = number[0], .n_rows = number[1], .window = number[2], .codec = (*data)[12]};
    int how = (*data)[13];
    *data += 14;
    *size -= 14;
    return how;
}

static int look(void *to, const struct sh_row *r)
{
    float *sum = to;
    int before = r->first_key - 1;
    if (r->n != r->q + 1 - r->first_key || r->first_key < 0 || r->n < 1 || r->n_stored > r->n || r->n_stored < 0)
        abort();
    for (int i = 0; i < (r->sparse ? r->n_stored : r->n); i++) {
        int key = r->sparse ? r->key[i] : r->first_key + i;
        if (key <= before || key > r->q)
            abort();
        *sum += r->score[i];
        before = key;
    }
    return 0;
}

void fuzz_rows(const struct sh_block *b)
{
    struct sh_err e;
    float sum = 0;
    fuzz_accepted += sh_codec_rows(b, look, &sum, &e) == 0;
}
