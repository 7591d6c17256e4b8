/* SPDX-License-Identifier: Apache-2.0 */
/* See stats.h. The JSON object has
 *     length, sparse, spec (alpha, recent, split, window as in run.statistics),
 *     rows, entries, below_mean, below_1pct, rows_of_two, entropy, normalised_entropy, mass_top: sums over rows,
 *     last[lane][key], first[lane][recent][key]: rows, null for never; low[split][key],
 *     jaccard[lane][recent][lag] {sum, expected, rows}, lags 1, 8, 64
 * with the meanings given there. */
#include <stdio.h>
#include <stdlib.h>

#include "traces/stats.h"

/* [[…], …]: `n_list` lists of n > 0 numbers, one after another; -1 as null. */
static void lists(FILE *f, const int32_t *x, size_t n_list, size_t n)
{
    putc('[', f);
    for (size_t i = 0; i < n_list * n; i++) {
        fputs(i % n ? "," : i ? "],[" : "[", f);
        if (x[i] < 0)
            fputs("null", f);
        else
            fprintf(f, "%d", (int)x[i]);
    }
    fputs(n_list ? "]]" : "]", f);
}

static void likenesses(FILE *f, const struct sh_jaccard *j)
{
    for (int i = 0; i < SH_STATS_LAGS; i++)
        fprintf(f, "%s{\"sum\":%.17g,\"expected\":%.17g,\"rows\":%u}", i ? "," : "[", j[i].sum, j[i].expected,
                (unsigned)j[i].rows);
    putc(']', f);
}

static void cells(FILE *f, const struct sh_stats *s)
{
    size_t n = (size_t)s->length, n_recent = (size_t)s->spec.n_recent;
    fputs(",\"last\":", f);
    lists(f, s->last, (size_t)s->n_lane, n);
    fputs(",\"first\":[", f);
    for (size_t lane = 0; lane < (size_t)s->n_lane; lane++) {
        fputs(lane ? "," : "", f);
        lists(f, s->first + lane * n_recent * n, n_recent, n);
    }
    fputs("],\"low\":", f);
    lists(f, s->low, (size_t)s->spec.n_split, n);
    fputs(",\"jaccard\":[", f);
    for (size_t lane = 0; lane < (size_t)s->n_lane; lane++) {
        fputs(lane ? ",[" : "[", f);
        for (size_t i = 0; i < n_recent; i++) {
            fputs(i ? "," : "", f);
            likenesses(f, s->jaccard + (lane * n_recent + i) * SH_STATS_LAGS);
        }
        putc(']', f);
    }
    putc(']', f);
}

char *sh_stats_json(const struct sh_stats *s, struct sh_err *e)
{
    char *text = NULL, *spec = sh_stats_spec_write(&s->spec);
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    const struct sh_row_sums *r = &s->sums;
    if (f) {
        fprintf(f, "{\"length\":%d,\"sparse\":%s,\"spec\":%s,\"rows\":%llu,\"entries\":%llu,\"below_mean\":%llu,"
                "\"below_1pct\":%llu,\"rows_of_two\":%llu,\"entropy\":%.17g,\"normalised_entropy\":%.17g,"
                "\"mass_top\":%.17g", s->length, s->sparse ? "true" : "false", spec, (unsigned long long)r->rows,
                (unsigned long long)r->entries, (unsigned long long)r->below_mean, (unsigned long long)r->below_1pct,
                (unsigned long long)r->rows_of_two, r->entropy, r->normalised_entropy, r->mass_top);
        if (s->n_lane)
            cells(f, s);
        putc('}', f);
    }
    free(spec);
    int bad = !f || ferror(f);
    if (f && fclose(f))
        bad = 1;
    if (!bad)
        return text;
    free(text);
    sh_fail(e, "the statistics do not fit into memory");
    return NULL;
}
