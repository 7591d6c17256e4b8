/* SPDX-License-Identifier: Apache-2.0 */
/* See trace.h. */
#include "traces/trace.h"

#include <stdlib.h>

#include "src/base/mem.h"

const char *const sh_record_names[] = {"full", "sparse", "summary", NULL};
const char *const sh_codec_names[] = {"f32", "f16", "log8", NULL};

void sh_batch_add(struct sh_batch *b, struct sh_block block)
{
    b->block = xreallocarray(b->block, (size_t)b->n_block + 1, sizeof *b->block);
    b->block[b->n_block++] = block;
}

void sh_batch_clear(struct sh_batch *b)
{
    for (int i = 0; i < b->n_block; i++)
        free(b->block[i].blob);
    free(b->block);
    b->block = NULL;
    b->n_block = 0;
    sh_sequences_free(b->made, b->made ? 1 : 0);
    b->made = NULL;
}

void sh_sequences_free(struct sh_trace_sequence *s, int n)
{
    for (int i = 0; s && i < n; i++) {
        free(s[i].source);
        free(s[i].tokens);
    }
    free(s);
}
