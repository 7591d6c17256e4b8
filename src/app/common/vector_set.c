/* SPDX-License-Identifier: Apache-2.0 */
/* See vector_set.h. */
#include "src/app/common/vector_set.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "traces/codec.h"

static const char kinds[] = "qkv";

static int take(void *to, const struct sh_block *b, struct sh_err *e)
{
    struct sh_vector_set *v = to;
    const char *at = b->vector ? strchr(kinds, b->vector) : NULL;
    if (!at)
        return sh_fail(e, "found vectors of kind %d, expected q, k or v", b->vector);
    int k = (int)(at - kinds);
    size_t count = (size_t)v->n_token * (size_t)v->d_head;
    if (!v->at[k])
        return 0;                       /* the run does not say so: not wanted */
    if (b->head < 0 || b->head >= v->n_head[k])
        return sh_fail(e, "found vectors of head %d, expected 0 to %d", b->head, v->n_head[k] - 1);
    v->seen[k][b->head] = 1;
    return sh_codec_floats(b, v->at[k] + (size_t)b->head * count, count, e);
}

int sh_vector_set_read(struct sh_vector_set *v, struct sh_store *s, const struct sh_stored_sequence *sequence,
                       int layer, const struct sh_stored_run *run, struct sh_err *e)
{
    *v = (struct sh_vector_set){.n_token = sequence->n_tokens, .d_head = run->d_head,
                                .n_head = {run->n_head, run->n_kv_head, run->n_kv_head}};
    for (int k = 0; k < 3; k++)
        if (strchr(run->vectors, kinds[k])) {
            v->at[k] = xcalloc((size_t)v->n_head[k] * (size_t)v->n_token, (size_t)v->d_head * sizeof(float));
            v->seen[k] = xcalloc((size_t)v->n_head[k], 1);
        }
    if (sh_store_blocks(s, SH_BLOCK_VECTORS, sequence->id, layer, -1, take, v, e))
        return -1;
    for (int k = 0; k < 3; k++)
        for (int h = 0; v->at[k] && h < v->n_head[k]; h++)
            if (!v->seen[k][h])
                return sh_fail(e, "the %c vectors of head %d are missing", kinds[k], h);
    return 0;
}

void sh_vector_set_free(struct sh_vector_set *v)
{
    for (int k = 0; k < 3; k++) {
        free(v->at[k]);
        free(v->seen[k]);
    }
    *v = (struct sh_vector_set){0};
}

const float *sh_vector_set_of(const struct sh_vector_set *v, char kind, int head)
{
    int k = (int)(strchr(kinds, kind) - kinds);
    return v->at[k] ? v->at[k] + (size_t)head * (size_t)v->n_token * (size_t)v->d_head : NULL;
}
