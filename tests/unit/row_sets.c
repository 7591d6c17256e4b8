/* SPDX-License-Identifier: Apache-2.0 */
/* See row_sets.h. */
#include "tests/unit/row_sets.h"

#include <stdlib.h>

#include "src/base/mem.h"
#include "traces/trace.h"

struct sh_lanes row_sets_lanes(const struct sh_stats_spec *spec, int length, int values)
{
    struct sh_stats_limit limit[SH_STATS_MAX_LANES];
    struct sh_lanes lanes = {.n = sh_stats_limits(spec, length, limit), .values = values};
    for (int i = 0; i < lanes.n; i++)
        lanes.lane[i] = (struct sh_lane){limit[i].value, limit[i].per_key};
    return lanes;
}

static void put(uint64_t *set, int first_word, int key, int member)
{
    set[key / 64 - first_word] |= (uint64_t)member << key % 64;
}

void row_sets_make(const struct sh_lanes *lanes, const float *rows, int first_row, int n_rows, int window,
                   struct sh_row_sets *out)
{
    int first_word = sh_row_start(first_row, window) / 64;
    size_t n_word = (size_t)((first_row + n_rows - 1) / 64 - first_word + 1), n_value = 0;
    uint64_t *bits = xcalloc((size_t)n_rows * (size_t)(lanes->n + 1) * n_word, sizeof *bits), *set = bits;
    struct sh_row_figures *figures = xcalloc((size_t)n_rows, sizeof *figures);
    float *value = lanes->values ? xcalloc(sh_rows_scores(first_row, n_rows, window), sizeof *value) : NULL;
    for (int q = first_row; q < first_row + n_rows; q++) {
        int start = sh_row_start(q, window), n = q + 1 - start;
        for (int k = 0; k < lanes->n; k++, set += n_word) {
            double limit = lanes->lane[k].per_key ? lanes->lane[k].value / n : lanes->lane[k].value;
            for (int i = 0; i < n; i++)
                put(set, first_word, start + i, (double)rows[i] > limit);
        }
        for (int i = 0; i < n; i++) {
            int low = (double)rows[i] < 1.0 / n;
            put(set, first_word, start + i, low);
            if (value && !low)
                value[n_value++] = rows[i];
        }
        set += n_word;
        sh_row_figures(rows, n, &figures[q - first_row]);
        rows += n;
    }
    *out = (struct sh_row_sets){.first_word = first_word, .n_word = (int)n_word, .bits = bits, .figures = figures,
                                .value = value};
}

void row_sets_free(struct sh_row_sets *s)
{
    free((void *)(uintptr_t)s->bits);
    free((void *)(uintptr_t)s->figures);
    free((void *)(uintptr_t)s->value);
}
