/* SPDX-License-Identifier: Apache-2.0 */
/* See figure_data.h: score maps for the heatmap figure, of every store the same layers and heads. */
#include <stdlib.h>
#include <string.h>

#include "plots/score_map.h"
#include "src/base/mem.h"
#include "src/base/read_number.h"
#include "src/report/figures/figure_data.h"
#include "traces/codec.h"
#include "traces/store.h"

enum { MOST = 5, MARKS = 8 };

struct map {                            /* of one head, as its rows come */
    int n_tokens, rows;
    const int *mark;
    int n_mark;
    struct sh_score_map *cells;         /* NULL: none has come */
    int n_keys;
};

static int take_row(void *to, const struct sh_row *r)
{
    struct map *m = to;
    if (r->q < 0 || r->q >= m->n_tokens || r->first_key < 0 || r->n > m->n_keys - r->first_key)
        return 1;
    m->rows++;
    sh_score_map_row(m->cells, r->q, r->first_key, r->n, r->sparse ? r->key : NULL, r->score,
                     r->sparse ? r->n_stored : r->n);
    return 0;
}

/* Rows without an order see the same keys, and say with each block how many. */
static int take_block(void *to, const struct sh_block *b, struct sh_err *e)
{
    struct map *m = to;
    int n_keys = b->window < 0 ? sh_row_keys(0, b->window) : m->n_tokens;
    if (n_keys < 1 || (m->cells && n_keys != m->n_keys))
        return sh_fail(e, "some of its rows have %d keys and others %d", m->n_keys, n_keys);
    if (!m->cells)
        m->cells = sh_score_map_new(m->n_tokens, m->n_keys = n_keys, m->mark, m->n_mark);
    return sh_codec_rows_any(b, take_row, to, e);
}

/* A store that maps are drawn of: its sequence of that number, counted in the run that is asked for. */
struct source {
    const char *path;
    struct sh_store *store;
    struct sh_stored_run *runs;
    int n_run, sequence, n_tokens;
    const struct sh_stored_run *run;    /* of the sequence */
    char *name;                         /* of the store in the figure */
    const char *label;                  /* what the titles of its maps begin with */
};

static int one_map(struct sh_figure_data *d, const struct source *from, int layer, int head,
                   const struct sh_fig_maps *all, struct sh_fig_map *out, struct sh_err *e)
{
    struct map m = {.n_tokens = from->n_tokens, .mark = all->marks, .n_mark = all->n_marks};
    int bad = sh_store_blocks(from->store, SH_BLOCK_SCORES, from->sequence, layer, head, take_block, &m, e);
    if (bad)
        sh_err_prefix(e, "%s: sequence %d, layer %d, head %d", from->path, from->sequence, layer, head);
    else if (m.rows != m.n_tokens)
        bad = (sh_fail(e, "%s: sequence %d has no scores of layer %d, head %d (%d rows of %d)", from->path,
                       from->sequence, layer, head, m.rows, m.n_tokens),
               sh_hint(e, "shears info %s shows what was recorded", from->path));
    if (bad) {
        free(m.cells);
        return -1;
    }
    *out = sh_score_map_cells(sh_figure_keep(d, m.cells));
    out->title = sh_figure_keep(d, xasprintf("%slayer %d, head %d", from->label, layer, head));
    return 0;
}

/* The finished layer that attends and is next to the middle; without one, the middle. -1: an error. */
static int middle(const struct source *from, struct sh_err *e)
{
    int n = from->run->n_layer;
    for (int i = 0; i < 2 * n; i++) {
        int layer = n / 2 + (i % 2 ? -(i + 1) / 2 : i / 2), state;
        if (layer < 0 || layer >= n)
            continue;
        if ((state = sh_store_layer(from->store, from->sequence, layer, e)) < 0)
            return -1;
        if (state == SH_LAYER_DONE)
            return layer;
    }
    return n / 2;
}

static int choose(const struct sh_figure_request *q, const struct source *from, int layer[MOST], int head[MOST],
                  int *n, struct sh_err *e)
{
    int n_head = 1;
    *n = 1;
    layer[0] = q->layer ? 0 : middle(from, e);
    head[0] = 0;
    if (layer[0] < 0)
        return -1;
    if (q->layer && sh_read_ints("--layer", q->layer, layer, MOST, n, e))
        return -1;
    if (q->head && sh_read_ints("--head", q->head, head, MOST, &n_head, e))
        return -1;
    if (*n > 1 && n_head > 1 && *n != n_head)
        return sh_misused(e, "--layer has %d values and --head has %d: expected one value of either, or "
                             "equally many", *n, n_head);
    for (int i = 1; i < MOST; i++) {
        if (*n == 1)
            layer[i] = layer[0];
        if (n_head == 1)
            head[i] = head[0];
    }
    *n = *n > n_head ? *n : n_head;
    return 0;
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
    int id = at >= 0 ? all[at].id : -1;
    sh_stored_sequences_free(all, n);
    if (!n)
        return sh_fail(e, "%s: contains no runs", path);
    if (!from->run && q->run)
        return sh_fail(e, "%s: run %d has no sequence %d", path, q->run, q->sequence),
               sh_hint(e, "shears info %s lists the runs", path);
    if (!from->run)
        return sh_fail(e, "%s: contains no sequence %d, found %d sequences", path, q->sequence, n);
    from->sequence = id;
    int bad = sh_store_tokens(from->store, id, &tokens, &from->n_tokens, e);
    free(tokens);
    return bad;
}

static char *settings_of(const struct source *from, const struct sh_figure_request *q)
{
    const char *weights = from->run->weights;
    int is_plain = q->n_db > 1 || !strcmp(weights, "checkpoint");
    return xasprintf("sequence %d%s, %d tokens%s%s%s", q->sequence, q->n_db > 1 ? " of each" : "", from->n_tokens,
                     is_plain ? "" : ", ", is_plain ? "" : weights,
                     from->n_tokens > SH_MAP_CELLS ? "; squares of several scores show the largest" : "");
}

/* The rows to be drawn one by one, which the first store's text has. */
static int read_marks(struct sh_figure_data *d, const struct source *from, const struct sh_figure_request *q,
                      struct sh_fig_maps *all, struct sh_err *e)
{
    int *marks = sh_figure_keep(d, xcalloc(MARKS, sizeof *marks));
    if (q->rows && sh_read_ints("--rows", q->rows, marks, MARKS, &all->n_marks, e))
        return -1;
    for (int i = 0; i < all->n_marks; i++)
        if (marks[i] < 0 || marks[i] >= from->n_tokens)
            return sh_misused(e, "--rows: %s: sequence %d has the queries 0 to %d, found %d", from->path, q->sequence,
                              from->n_tokens - 1, marks[i]);
    all->marks = marks;
    return 0;
}

/* The maps of one store: from map[all->n] on. */
static int add_store(struct sh_figure_data *d, struct source *from, const struct sh_figure_request *q,
                     struct sh_fig_maps *all, struct sh_fig_map *map, struct sh_err *e)
{
    int layer[MOST], head[MOST], more = 0;
    if (choose(q, from, layer, head, &more, e))
        return -1;
    if (all->n + more > MOST)
        return sh_misused(e, "figure heatmap shows 1 to %d score maps: give fewer stores, or fewer of --layer and "
                          "--head", MOST);
    from->label = q->n_db < 2 ? "" : sh_figure_keep(d, xasprintf("%.60s: ", from->name));
    for (int i = 0; i < more; i++)
        if (one_map(d, from, layer[i], head[i], all, &map[all->n++], e))
            return -1;
    return 0;
}

static int load(struct sh_figure_data *d, unsigned figures, const struct sh_figure_request *q, struct sh_err *e)
{
    struct sh_fig_map *map = sh_figure_keep(d, xcalloc(MOST, sizeof *map));
    struct sh_fig_maps *all = sh_figure_keep(d, xcalloc(1, sizeof *all));
    int bad = 0;
    (void)figures;
    for (int i = 0; i < q->n_db && !bad; i++) {
        struct source from;
        bad = open_source(&from, q->db[i], q, e);
        from.name = bad ? NULL : sh_figure_named(q, q->db[i], sh_figure_label(from.run->model, from.run->weights));
        bad = bad || (!i && read_marks(d, &from, q, all, e)) || add_store(d, &from, q, all, map, e);
        if (!bad && !i) {
            d->out.title = sh_figure_keep(d, xasprintf("%s: attention scores",
                                                        q->n_db > 1 ? from.run->model : from.name));
            d->out.settings = sh_figure_keep(d, settings_of(&from, q));
        }
        free(from.name);
        sh_stored_runs_free(from.runs, from.n_run);
        sh_store_close(from.store);
    }
    all->map = map;
    d->out.heatmap = all;
    return bad ? -1 : 0;
}

const struct sh_figure_loader sh_figure_load_maps = {.figures = SH_FIG_BIT(heatmap), .load = load};
