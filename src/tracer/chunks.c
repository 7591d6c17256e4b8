/* SPDX-License-Identifier: Apache-2.0 */
/* See chunks.h. */
#include "src/tracer/chunks.h"

#include <stdlib.h>

#include "src/base/mem.h"

void sh_chunks_cut(struct sh_chunks *c, const struct sh_trace_sequence *sequence, int n, int rows)
{
    *c = (struct sh_chunks){0};
    for (int i = 0; i < n;) {
        struct sh_chunk one = {.first = i, .row0 = c->n_rows};
        int end = i;
        do
            one.rows += sequence[end++].n_tokens;
        while (end < n && one.rows + sequence[end].n_tokens <= rows);
        one.n = end - i;
        one.start = xcalloc((size_t)one.n + 1, sizeof *one.start);
        for (int k = 0; k < one.n; k++)
            one.start[k + 1] = one.start[k] + sequence[i++].n_tokens;
        c->n_rows += (size_t)one.rows;
        c->most_rows = one.rows > c->most_rows ? one.rows : c->most_rows;
        c->at = xreallocarray(c->at, (size_t)c->n + 1, sizeof *c->at);
        c->at[c->n++] = one;
    }
}

void sh_chunks_free(struct sh_chunks *c)
{
    for (int i = 0; i < c->n; i++)
        free(c->at[i].start);
    free(c->at);
    *c = (struct sh_chunks){0};
}

size_t sh_chunks_rows(const struct sh_chunks *c, int number, int n)
{
    size_t rows = 0;
    for (int i = number; i < c->n; i += n)
        rows += (size_t)c->at[i].rows;
    return rows;
}
