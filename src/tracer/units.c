/* SPDX-License-Identifier: Apache-2.0 */
#include "src/tracer/units.h"

#include <stdlib.h>

#include "src/base/mem.h"

enum { WIDTH = 256 };                   /* tokens at which a row's scores weigh as much as its products */

/* Of a sequence through one layer: its products grow with its length, its scores with the square of it. */
static double layer_work(int n_tokens)
{
    return (double)n_tokens * (1 + (double)n_tokens / WIDTH);
}

static double unit_work(const struct sh_unit *u, const struct sh_trace_sequence *sequence)
{
    double work = 0;
    for (int i = 0; i < u->n; i++)
        work += layer_work(sequence[u->first + i].n_tokens) * (u->last_layer + 1);
    return work;
}

/* Neighbours of about the same work: a sequence belongs where its middle falls. */
static int cut_sequences(struct sh_unit *unit, int wanted, const struct sh_trace_sequence *sequence, int n)
{
    double all = 0, before = 0;
    int units = 0, last = -1;
    for (int i = 0; i < n; i++)
        all += layer_work(sequence[i].n_tokens);
    for (int i = 0; i < n; i++) {
        double work = layer_work(sequence[i].n_tokens);
        int at = (int)((before + work / 2) / all * wanted);
        before += work;
        at = at < wanted ? at : wanted - 1;
        if (at != last)
            unit[units++] = (struct sh_unit){.first = i};
        unit[units - 1].n++;
        last = at;
    }
    return units;
}

int sh_units_cut(struct sh_unit *unit, int wanted, const struct sh_trace_sequence *sequence, int n, int first_layer,
                 int last_layer)
{
    int n_layer = last_layer - first_layer + 1, ranges = wanted > n ? wanted / n : 1, units;
    ranges = ranges < n_layer ? ranges : n_layer;
    if (ranges == 1) {
        units = cut_sequences(unit, wanted, sequence, n);
        for (int u = 0; u < units; u++) {
            unit[u].first_layer = first_layer;
            unit[u].last_layer = last_layer;
        }
    } else {
        units = n * ranges;
        for (int u = 0; u < units; u++) {
            int range = u % ranges;
            unit[u] = (struct sh_unit){.first = u / ranges, .n = 1,
                                       .first_layer = first_layer + range * n_layer / ranges,
                                       .last_layer = first_layer + (range + 1) * n_layer / ranges - 1};
        }
    }
    for (int u = 0; u < units; u++)
        unit[u].work = unit_work(&unit[u], sequence);
    return units;
}

/* ---- chunks ---- */

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
