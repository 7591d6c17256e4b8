/* SPDX-License-Identifier: Apache-2.0 */
/* See figure_data.h: score maps for the heatmap figure. Long sequences are reduced by taking the
 * largest score of each square, so that a lone bright column does not vanish. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/cli/args.h"
#include "src/cli/figure_data.h"
#include "traces/codec.h"
#include "traces/store.h"

enum { MOST = 5, SIDE = 512 };

struct map {
    float *value;                       /* [side, side], NaN where masked */
    int side, square;                   /* square x square scores are one cell */
    int n_tokens, rows;
    int n_key;                          /* of every row, where attention is not causal; else 0 */
};

static int take_row(void *to, const struct sh_row *r)
{
    struct map *m = to;
    if (r->q >= m->n_tokens)
        return 1;
    m->rows++;
    float *row = m->value + (size_t)(r->q / m->square) * (size_t)m->side;
    int n = r->sparse ? r->n_stored : r->n;
    if (r->first_key + r->n > m->n_tokens)
        return 1;
    for (int j = r->first_key; j < r->first_key + r->n; j++)    /* visible: at least 0 */
        row[j / m->square] = fmaxf(row[j / m->square], 0.0f);
    for (int i = 0; i < n; i++) {
        int key = r->sparse ? r->key[i] : r->first_key + i;
        row[key / m->square] = fmaxf(row[key / m->square], r->score[i]);
    }
    return 0;
}

static int take_block(void *to, const struct sh_block *b, struct sh_err *e)
{
    struct map *m = to;
    m->n_key = b->window < 0 ? sh_row_keys(0, b->window) : 0;
    if (m->n_key && m->n_key != m->n_tokens)
        return sh_fail(e, "has %d keys for %d queries, a map is square", m->n_key, m->n_tokens);
    return sh_codec_rows_any(b, take_row, to, e);
}

static int one_map(struct sh_store *s, const struct sh_figure_request *q, int n_tokens, int layer, int head,
                   struct sh_fig_map *out, void *(*own)(void *, void *), void *keeper, struct sh_err *e)
{
    struct map m = {.square = (n_tokens + SIDE - 1) / SIDE, .n_tokens = n_tokens};
    m.side = (n_tokens + m.square - 1) / m.square;
    size_t n = (size_t)m.side * (size_t)m.side;
    m.value = own(keeper, xmalloc(n * sizeof *m.value));
    for (size_t i = 0; i < n; i++)
        m.value[i] = NAN;
    if (sh_store_blocks(s, SH_BLOCK_SCORES, q->sequence, layer, head, take_block, &m, e))
        return sh_err_prefix(e, "%s: sequence %d, layer %d, head %d", q->db[0], q->sequence, layer, head);
    if (m.rows != n_tokens)
        return sh_fail(e, "%s: sequence %d has no scores of layer %d, head %d (%d rows of %d); shears info %s tells "
                       "what was recorded", q->db[0], q->sequence, layer, head, m.rows, n_tokens, q->db[0]);
    int *keys = own(keeper, xmalloc((size_t)m.side * sizeof *keys));
    for (int i = 0; i < m.side; i++)
        keys[i] = !m.n_key && (i + 1) * m.square < n_tokens ? (i + 1) * m.square : n_tokens;
    *out = (struct sh_fig_map){.title = own(keeper, xasprintf("layer %d, head %d", layer, head)), .n_rows = m.side,
                               .n_cols = m.side, .value = m.value, .n_keys = keys};
    return 0;
}

static int choose(const struct sh_figure_request *q, int n_layer, int layer[MOST], int head[MOST], int *n,
                  struct sh_err *e)
{
    int n_head = 1;
    *n = 1;
    layer[0] = n_layer / 2;
    head[0] = 0;
    if (q->layer && sh_args_ints("--layer", q->layer, layer, MOST, n, e))
        return -1;
    if (q->head && sh_args_ints("--head", q->head, head, MOST, &n_head, e))
        return -1;
    if (*n > 1 && n_head > 1 && *n != n_head)
        return sh_misused(e, "--layer has %d values, --head %d: expected one of either, or as many", *n, n_head);
    for (int i = 1; i < MOST; i++) {
        if (*n == 1)
            layer[i] = layer[0];
        if (n_head == 1)
            head[i] = head[0];
    }
    *n = *n > n_head ? *n : n_head;
    return 0;
}

int sh_figure_maps(const struct sh_figure_request *q, struct sh_fig_data *out, void *(*own)(void *keeper, void *at),
                   void *keeper, struct sh_err *e)
{
    struct sh_stored_run *runs = NULL;
    int layer[MOST], head[MOST], n = 0, n_run = 0, n_tokens = 0, n_marks = 0;
    int32_t *tokens = NULL;
    struct sh_store *s = sh_store_open(q->db[0], e);
    int bad = !s || sh_store_runs(s, &runs, &n_run, e);
    if (!bad && !n_run)
        bad = sh_fail(e, "%s: holds no run", q->db[0]);
    if (!bad)
        bad = sh_store_tokens(s, q->sequence, &tokens, &n_tokens, e) || choose(q, runs[0].n_layer, layer, head, &n, e);
    free(tokens);
    struct sh_fig_map *maps = own(keeper, xcalloc(MOST, sizeof *maps));
    for (int i = 0; i < n && !bad; i++)
        bad = one_map(s, q, n_tokens, layer[i], head[i], &maps[i], own, keeper, e);
    if (!bad) {
        int *marks = own(keeper, xcalloc(8, sizeof *marks)), square = (n_tokens + SIDE - 1) / SIDE;
        bad = q->rows && sh_args_ints("--rows", q->rows, marks, 8, &n_marks, e);
        for (int i = 0; i < n_marks; i++)
            marks[i] /= square;
        out->marks = marks;
        out->n_marks = n_marks;
        out->maps = maps;
        out->n_maps = n;
        out->title = own(keeper, xasprintf("%s: attention scores", runs[0].model));
        out->settings = own(keeper, xasprintf("sequence %d, %d tokens%s%s%s", q->sequence, n_tokens,
                                              strcmp(runs[0].weights, "checkpoint") ? ", " : "",
                                              strcmp(runs[0].weights, "checkpoint") ? runs[0].weights : "",
                                              square > 1 ? "; squares of several scores show the largest" : ""));
    }
    sh_stored_runs_free(runs, n_run);
    sh_store_close(s);
    return bad ? -1 : 0;
}
