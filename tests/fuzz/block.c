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

struct seen {
    int window;
    float sum;
};

static int look(void *to, const struct sh_row *r)
{
    struct seen *s = to;
    int before = r->first_key - 1;
    if (r->n != sh_row_keys(r->q, s->window) || r->first_key != sh_row_start(r->q, s->window) ||
        r->n < 1 || r->n_stored > r->n || r->n_stored < 0)
        abort();
    for (int i = 0; i < (r->sparse ? r->n_stored : r->n); i++) {
        int key = r->sparse ? r->key[i] : r->first_key + i;
        if (key <= before || key >= r->first_key + r->n)
            abort();
        s->sum += r->score[i];
        before = key;
    }
    return 0;
}

void fuzz_rows(const struct sh_block *b)
{
    struct sh_err e;
    struct seen s = {.window = b->window};
    int good = sh_codec_rows_any(b, look, &s, &e) == 0;
    if (b->window < 0 && !sh_codec_rows(b, look, &s, &e))
        abort();
    fuzz_accepted += good;
}
