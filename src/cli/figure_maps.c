/* SPDX-License-Identifier: Apache-2.0 */
/* See figure_data.h: score maps for the heatmap figure, of every store the same layers and heads. Long
 * sequences are reduced by taking the largest score of each square, so that a lone bright column does not
 * vanish. */
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

/* A store that maps are drawn of: its sequence of that number, counted in the run that is asked for. */
struct source {
    const char *path;
    struct sh_store *store;
    struct sh_stored_run *runs;
    int n_run, sequence, n_tokens;
    const struct sh_stored_run *run;    /* of the sequence */
};

static int one_map(const struct source *from, const char *label, int layer, int head, struct sh_fig_map *out,
                   void *(*own)(void *, void *), void *keeper, struct sh_err *e)
{
    int n_tokens = from->n_tokens, sequence = from->sequence;
    struct map m = {.square = (n_tokens + SIDE - 1) / SIDE, .n_tokens = n_tokens};
    m.side = (n_tokens + m.square - 1) / m.square;
    size_t n = (size_t)m.side * (size_t)m.side;
    m.value = own(keeper, xmalloc(n * sizeof *m.value));
    for (size_t i = 0; i < n; i++)
        m.value[i] = NAN;
    if (sh_store_blocks(from->store, SH_BLOCK_SCORES, sequence, layer, head, take_block, &m, e))
        return sh_err_prefix(e, "%s: sequence %d, layer %d, head %d", from->path, sequence, layer, head);
    if (m.rows != n_tokens)
        return sh_fail(e, "%s: sequence %d has no scores of layer %d, head %d (%d rows of %d); shears info %s tells "
                       "what was recorded", from->path, sequence, layer, head, m.rows, n_tokens, from->path);
    int *keys = own(keeper, xmalloc((size_t)m.side * sizeof *keys));
    for (int i = 0; i < m.side; i++)
        keys[i] = !m.n_key && (i + 1) * m.square < n_tokens ? (i + 1) * m.square : n_tokens;
    *out = (struct sh_fig_map){.title = own(keeper, xasprintf("%slayer %d, head %d", label, layer, head)),
                               .n_rows = m.side, .n_cols = m.side, .value = m.value, .n_keys = keys};
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

static void close_source(struct source *from)
{
    sh_stored_runs_free(from->runs, from->n_run);
    sh_store_close(from->store);
}

/* Numbers of sequences are those of the whole store; with --run those of that run. Close in any case. */
static int open_source(struct source *from, const char *path, const struct sh_figure_request *q, struct sh_err *e)
{
    struct sh_stored_sequence *all = NULL;
    int n = 0;
    int32_t *tokens = NULL;
    *from = (struct source){.path = path};
    from->store = sh_store_open(path, e);
    if (!from->store || sh_store_runs(from->store, &from->runs, &from->n_run, e) ||
        sh_store_sequences(from->store, 0, &all, &n, e))
        return -1;
    int at = -1;
    for (int i = 0, seen = 0; i < n && at < 0; i++)
        if (!q->run || all[i].run == q->run)
            at = seen++ == q->sequence ? i : -1;
    for (int i = 0; i < from->n_run && at >= 0; i++)
        from->run = from->runs[i].id == all[at].run ? &from->runs[i] : from->run;
    sh_stored_sequences_free(all, n);
    if (!n)
        return sh_fail(e, "%s: holds no run", path);
    if (!from->run && q->run)
        return sh_fail(e, "%s: run %d has no sequence %d; shears info %s lists the runs", path, q->run, q->sequence,
                       path);
    if (!from->run)
        return sh_fail(e, "%s: there is no sequence %d, it holds %d", path, q->sequence, n);
    from->sequence = at;
    int bad = sh_store_tokens(from->store, at, &tokens, &from->n_tokens, e);
    free(tokens);
    return bad;
}

/* "demo-opt, random weights: " in front of what a map shows, where there are several stores. */
static char *label_of(const struct source *from, int n_db)
{
    if (n_db < 2)
        return xstrdup("");
    return xasprintf("%.40s%s: ", from->run->model, strncmp(from->run->weights, "random", 6) ? "" : ", random");
}

static char *settings_of(const struct source *from, const struct sh_figure_request *q)
{
    const char *weights = from->run->weights;
    int is_plain = q->n_db > 1 || !strcmp(weights, "checkpoint"), square = (from->n_tokens + SIDE - 1) / SIDE;
    return xasprintf("sequence %d%s, %d tokens%s%s%s", q->sequence, q->n_db > 1 ? " of each" : "", from->n_tokens,
                     is_plain ? "" : ", ", is_plain ? "" : weights,
                     square > 1 ? "; squares of several scores show the largest" : "");
}

/* The rows to be drawn one by one, in cells of the first store's maps. */
static int read_marks(const struct sh_figure_request *q, int n_tokens, struct sh_fig_data *out,
                      void *(*own)(void *keeper, void *at), void *keeper, struct sh_err *e)
{
    int *marks = own(keeper, xcalloc(8, sizeof *marks)), square = (n_tokens + SIDE - 1) / SIDE;
    if (q->rows && sh_args_ints("--rows", q->rows, marks, 8, &out->n_marks, e))
        return -1;
    for (int i = 0; i < out->n_marks; i++)
        marks[i] /= square;
    out->marks = marks;
    return 0;
}

static int add_store(const struct source *from, const struct sh_figure_request *q, struct sh_fig_map *maps, int *n,
                     void *(*own)(void *keeper, void *at), void *keeper, struct sh_err *e)
{
    int layer[MOST], head[MOST], more = 0;
    if (choose(q, from->run->n_layer, layer, head, &more, e))
        return -1;
    if (*n + more > MOST)
        return sh_misused(e, "figure heatmap shows 1 to %d score maps: fewer stores, or fewer of --layer and --head",
                          MOST);
    char *label = own(keeper, label_of(from, q->n_db));
    for (int i = 0; i < more; i++)
        if (one_map(from, label, layer[i], head[i], &maps[(*n)++], own, keeper, e))
            return -1;
    return 0;
}

int sh_figure_maps(const struct sh_figure_request *q, struct sh_fig_data *out, void *(*own)(void *keeper, void *at),
                   void *keeper, struct sh_err *e)
{
    struct sh_fig_map *maps = own(keeper, xcalloc(MOST, sizeof *maps));
    int n = 0, bad = 0;
    for (int i = 0; i < q->n_db && !bad; i++) {
        struct source from;
        bad = open_source(&from, q->db[i], q, e) || add_store(&from, q, maps, &n, own, keeper, e);
        if (!bad && !i) {
            bad = read_marks(q, from.n_tokens, out, own, keeper, e);
            out->title = own(keeper, xasprintf("%s: attention scores", from.run->model));
            out->settings = own(keeper, settings_of(&from, q));
        }
        close_source(&from);
    }
    out->maps = maps;
    out->n_maps = n;
    return bad ? -1 : 0;
}
