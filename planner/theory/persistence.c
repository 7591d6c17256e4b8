/* SPDX-License-Identifier: Apache-2.0 */
/* See persistence.h. */
#include "planner/theory/persistence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

struct item {                           /* what one sequence says of one head; a head; or a layer  */
    int layer, head, sequence;
    int begin, end;                     /* of a head its entries, of a layer its heads            */
    double *figure;                     /* [n_cell][SH_N_FIGURE]                                  */
};

struct sh_persistence {
    int n_cell, n_entry, room, n_head, n_layer;
    struct sh_persistence_cell *cell;
    struct item *entry, *head, *layer;
    double *all;
};

/* ---- one head ---- */

struct place {                          /* where a cell is in the statistics                      */
    int lane, i_recent;
    int i_split;                        /* -1: not one of the spec's                              */
    int known;                          /* 0: the rows were sparse and do not tell                */
};

/* The sets as counts; t = 0 when the sequence is too short for the split. */
struct sets {
    int t, first, second, both;
};

static int absent(const struct sh_persistence_cell *cell, const char *what, struct sh_err *e)
{
    char name[SH_ALPHA_NAME];
    sh_alpha_name(&cell->alpha, name);
    return sh_misused(e, "persistence: alpha %s, recent %d, split %g: statistics were not recorded for this "
                         "%s", name, cell->recent, cell->split, what);
}

static int find(const struct sh_stats *s, const struct sh_persistence_cell *cell, struct place *out, struct sh_err *e)
{
    const struct sh_stats_spec *spec = &s->spec;
    int alpha = 0, recent = 0, split = 0;
    while (alpha < spec->n_alpha && !sh_alpha_equal(&spec->alpha[alpha], &cell->alpha))
        alpha++;
    while (recent < spec->n_recent && spec->recent[recent] != cell->recent)
        recent++;
    while (split < spec->n_split && spec->split[split] != cell->split)
        split++;
    if (alpha == spec->n_alpha)
        return absent(cell, "alpha", e);
    if (recent == spec->n_recent)
        return absent(cell, "recent window", e);
    if (split == spec->n_split && cell->alpha.kind == SH_ALPHA_SPLIT)
        return absent(cell, "split", e);
    out->lane = sh_stats_lane(spec, alpha, split);
    out->i_recent = recent;
    out->i_split = split < spec->n_split ? split : -1;
    out->known = !s->sparse || sh_stats_sparse_can(&cell->alpha);
    return 0;
}

/* Whether key j belongs to each set. The last row that is far enough away is simply the last row, if that one is. */
static inline int in_first(const struct sh_stats *s, const struct place *at, int j, int t)
{
    size_t cell = (size_t)at->lane * (size_t)s->spec.n_recent + (size_t)at->i_recent;
    int32_t first = s->first[cell * (size_t)s->length + (size_t)j];
    return first >= 0 && first < t;
}

static inline int in_second(const struct sh_stats *s, const struct place *at, int j, int t)
{
    int32_t last = s->last[(size_t)at->lane * (size_t)s->length + (size_t)j];
    return last >= t && last - j >= s->spec.recent[at->i_recent];
}

static struct sets count_sets(const struct sh_stats *s, const struct place *at, double split)
{
    struct sets n = {.t = at->known ? sh_stats_split_at(split, s->length) : 0};
    for (int j = 0; j < n.t; j++) {
        int first = in_first(s, at, j, n.t), second = in_second(s, at, j, n.t);
        n.first += first;
        n.second += second;
        n.both += first && second;
    }
    return n;
}

static double quotient(double a, double b)
{
    return b != 0 ? a / b : NAN;
}

/* The figures of the 2 x 2 table of first and second. */
static void table(const struct sets *n, double out[SH_N_FIGURE])
{
    double first = n->first, second = n->second, both = n->both, t = n->t;
    double not_first = t - first, not_second = t - second, neither = t - first - second + both;
    out[SH_RATIO] = quotient(both, second);
    out[SH_DENSITY] = out[SH_CHANCE] = quotient(first, t);
    out[SH_LIFT] = quotient(out[SH_RATIO], out[SH_DENSITY]);
    out[SH_RELATIVE_RISK] = quotient(quotient(both, first), quotient(second - both, not_first));
    out[SH_PHI] = quotient(both * neither - (first - both) * (second - both),
                           sqrt(first * not_first) * sqrt(second * not_second));
}

/* How often a key of `second` has fewer low scores than another one, ties as one half. */
static double auc(const struct sh_stats *s, const struct place *at, const struct sets *n)
{
    if (at->i_split < 0 || !n->second || n->second == n->t)
        return NAN;
    const int32_t *low = s->low + (size_t)at->i_split * (size_t)s->length;
    int most = 0;
    for (int j = 0; j < n->t; j++)
        most = low[j] > most ? low[j] : most;
    double (*count)[2] = xcalloc((size_t)most + 1, sizeof *count);      /* [low count][in second] */
    for (int j = 0; j < n->t; j++)
        count[low[j]][in_second(s, at, j, n->t)]++;
    double wins = 0, lower = n->t - n->second;          /* others that have more low scores */
    for (int i = 0; i <= most; i++) {
        lower -= count[i][0];
        wins += count[i][1] * (lower + 0.5 * count[i][0]);
    }
    free(count);
    return wins / ((double)n->second * (n->t - n->second));
}

static void row_means(const struct sh_row_sums *r, double out[SH_N_FIGURE])
{
    double rows = (double)r->rows, entries = (double)r->entries;
    out[SH_ENTROPY] = quotient(r->entropy, rows);
    out[SH_NORMALISED_ENTROPY] = quotient(r->normalised_entropy, (double)r->rows_of_two);
    out[SH_MASS_TOP] = quotient(r->mass_top, rows);
    out[SH_BELOW_MEAN] = quotient((double)r->below_mean, entries);
    out[SH_BELOW_1PCT] = quotient((double)r->below_1pct, entries);
}

int sh_persistence_head(const struct sh_stats *s, const struct sh_persistence_cell *cell,
                        double out[SH_N_FIGURE], struct sh_err *e)
{
    struct place at = {0};
    if (find(s, cell, &at, e))
        return -1;
    for (int i = 0; i < SH_N_FIGURE; i++)
        out[i] = NAN;
    row_means(&s->sums, out);
    if (!at.known)
        return 0;
    size_t i_cell = (size_t)at.lane * (size_t)s->spec.n_recent + (size_t)at.i_recent;
    for (int i = 0; i < SH_STATS_LAGS; i++) {
        const struct sh_jaccard *j = &s->jaccard[i_cell * SH_STATS_LAGS + (size_t)i];
        out[SH_JACCARD + i] = quotient(j->sum, j->rows);
        out[SH_JACCARD_CHANCE + i] = quotient(j->expected, j->rows);
    }
    struct sets n = count_sets(s, &at, cell->split);
    table(&n, out);
    out[SH_AUC] = auc(s, &at, &n);
    return 0;
}

/* ---- many heads ---- */

struct sh_persistence *sh_persistence_new(const struct sh_persistence_cell *cell, int n_cell)
{
    struct sh_persistence *p = xcalloc(1, sizeof *p);
    p->n_cell = n_cell;
    p->cell = xcalloc((size_t)n_cell, sizeof *p->cell);
    for (int i = 0; i < n_cell; i++)
        p->cell[i] = cell[i];
    return p;
}

static void drop(struct item *item, int n)
{
    for (int i = 0; i < n; i++)
        free(item[i].figure);
    free(item);
}

void sh_persistence_free(struct sh_persistence *p)
{
    if (!p)
        return;
    drop(p->entry, p->n_entry);
    drop(p->head, p->n_head);
    drop(p->layer, p->n_layer);
    free(p->all);
    free(p->cell);
    free(p);
}

static size_t figures(const struct sh_persistence *p)
{
    return (size_t)p->n_cell * SH_N_FIGURE;
}

int sh_persistence_add(struct sh_persistence *p, int sequence, int layer, int head,
                       const struct sh_stats *s, struct sh_err *e)
{
    double *figure = xcalloc(figures(p), sizeof *figure);
    for (int i = 0; i < p->n_cell; i++)
        if (sh_persistence_head(s, &p->cell[i], figure + (size_t)i * SH_N_FIGURE, e)) {
            free(figure);
            return sh_err_prefix(e, "sequence %d, layer %d, head %d", sequence, layer, head);
        }
    if (p->n_entry == p->room) {
        p->room = 2 * p->room + 64;
        p->entry = xreallocarray(p->entry, (size_t)p->room, sizeof *p->entry);
    }
    p->entry[p->n_entry++] = (struct item){.sequence = sequence, .layer = layer, .head = head, .figure = figure};
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->layer != y->layer)
        return x->layer < y->layer ? -1 : 1;
    if (x->head != y->head)
        return x->head < y->head ? -1 : 1;
    return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

/* Means of the figures of items [begin, end); NaN is left out. */
static double *means(const struct sh_persistence *p, const struct item *item, int begin, int end)
{
    size_t n = figures(p);
    double *mean = xcalloc(n, sizeof *mean);
    for (size_t k = 0; k < n; k++) {
        int used = 0;
        for (int i = begin; i < end; i++) {
            double x = item[i].figure[k];
            if (!isnan(x)) {
                mean[k] += x;
                used++;
            }
        }
        mean[k] = quotient(mean[k], used);
    }
    return mean;
}

int sh_persistence_finish(struct sh_persistence *p, struct sh_err *e)
{
    if (p->n_entry)
        qsort(p->entry, (size_t)p->n_entry, sizeof *p->entry, by_place);
    for (int i = 1; i < p->n_entry; i++)
        if (!by_place(&p->entry[i - 1], &p->entry[i]))
            return sh_fail(e, "persistence: sequence %d, layer %d, head %d was added twice",
                           p->entry[i].sequence, p->entry[i].layer, p->entry[i].head);
    p->head = xcalloc((size_t)p->n_entry, sizeof *p->head);
    p->layer = xcalloc((size_t)p->n_entry, sizeof *p->layer);
    for (int i = 0; i < p->n_entry; i++) {
        const struct item *x = &p->entry[i], *before = i ? x - 1 : NULL;
        int new_layer = !before || before->layer != x->layer;
        if (new_layer || before->head != x->head) {
            if (new_layer)
                p->layer[p->n_layer++] = (struct item){.layer = x->layer, .begin = p->n_head, .end = p->n_head};
            p->head[p->n_head++] = (struct item){.head = x->head, .begin = i, .end = i};
            p->layer[p->n_layer - 1].end++;
        }
        p->head[p->n_head - 1].end++;
    }
    for (int i = 0; i < p->n_head; i++)
        p->head[i].figure = means(p, p->entry, p->head[i].begin, p->head[i].end);
    for (int i = 0; i < p->n_layer; i++)
        p->layer[i].figure = means(p, p->head, p->layer[i].begin, p->layer[i].end);
    p->all = means(p, p->layer, 0, p->n_layer);
    return 0;
}

/* ---- results ---- */

int sh_persistence_n_layer(const struct sh_persistence *p)
{
    return p->n_layer;
}

int sh_persistence_layer_at(const struct sh_persistence *p, int i_layer)
{
    return p->layer[i_layer].layer;
}

int sh_persistence_n_head(const struct sh_persistence *p, int i_layer)
{
    return p->layer[i_layer].end - p->layer[i_layer].begin;
}

int sh_persistence_head_at(const struct sh_persistence *p, int i_layer, int i_head)
{
    return p->head[p->layer[i_layer].begin + i_head].head;
}

const double *sh_persistence_figures(const struct sh_persistence *p, int i_cell, int i_layer, int i_head)
{
    const double *figure = i_layer < 0 ? p->all
                           : i_head < 0 ? p->layer[i_layer].figure : p->head[p->layer[i_layer].begin + i_head].figure;
    return figure + (size_t)i_cell * SH_N_FIGURE;
}

int sh_persistence_min_head(const struct sh_persistence *p, int i_cell, int i_layer)
{
    int best = -1;
    double least = INFINITY;
    for (int i = 0; i < sh_persistence_n_head(p, i_layer); i++) {
        double ratio = sh_persistence_figures(p, i_cell, i_layer, i)[SH_RATIO];
        if (ratio < least) {
            least = ratio;
            best = i;
        }
    }
    return best;
}
