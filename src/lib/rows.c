/* SPDX-License-Identifier: Apache-2.0 */
/* The attention and the vectors of one head, decoded. */
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/lib/lib.h"
#include "traces/codec.h"

/* A head of a sequence that the store may have. */
struct place {
    struct shears_store *s;
    const struct sh_stored_sequence *sequence;
    const struct sh_stored_run *run;
    int layer, head;
};

static int find(struct place *p, struct shears_store *s, int sequence, int layer, int head, int is_kv,
                struct sh_err *e)
{
    *p = (struct place){.s = s, .layer = layer, .head = head};
    if (!(p->sequence = sh_lib_sequence(s, sequence, &p->run, e)))
        return -1;
    const struct sh_stored_run *r = p->run;
    struct sh_layer_heads own = {r->n_head, r->n_kv_head};
    if (layer < r->first_layer || layer > r->last_layer)
        return sh_misused(e, "%s: sequence %d: found layer %d, expected %d to %d", sh_store_path(s->store), sequence,
                          layer, r->first_layer, r->last_layer);
    int done = sh_store_is_done(s->store, sequence, layer, e);
    if (done < 0 || (done && sh_store_heads(s->store, p->sequence->id, layer, r, &own, e)))
        return -1;
    int n_head = is_kv ? r->n_kv_head : own.query;
    if (head < 0 || head >= n_head)
        return sh_misused(e, "%s: sequence %d, layer %d: found head %d, expected 0 to %d", sh_store_path(s->store),
                          sequence, layer, head, n_head - 1);
    return 0;
}

static int place_fails(const struct place *p, struct sh_err *e)
{
    return sh_err_prefix(e, "%s: sequence %d, layer %d, head %d", sh_store_path(p->s->store), p->sequence->id, p->layer,
                         p->head);
}

/* ---- rows ---- */

struct reading {
    const struct place *place;
    int (*row)(void *to, const struct sh_row *row);
    void *to;
    int next;                           /* the row that must come                                 */
    int keys;                           /* that any row may see                                   */
    int is_stopped, is_bad;
    struct sh_err *e;
};

static int take_row(void *to, const struct sh_row *row)
{
    struct reading *r = to;
    if (row->q != r->next || row->first_key < 0 || row->n > r->keys - row->first_key) {
        r->is_bad = 1;
        sh_fail(r->e, "found row %d of the keys %d to %d, expected row %d and keys below %d", row->q, row->first_key,
                row->first_key + row->n - 1, r->next, r->keys);
        return 1;
    }
    r->next++;
    return r->is_stopped = r->row(r->to, row) != 0;
}

static int take_block(void *to, const struct sh_block *b, struct sh_err *e)
{
    struct reading *r = to;
    r->e = e;
    if (r->place->run->orderless ? b->window != -r->keys : b->window < 0)
        return sh_fail(e, "found a window of %d in a run that is %scausal", b->window,
                       r->place->run->orderless ? "not " : "");
    return sh_codec_rows_any(b, take_row, r, e) || r->is_bad || r->is_stopped ? -1 : 0;
}

static int is_first(void *to, const struct sh_block *b, struct sh_err *e)
{
    int *window = to;
    (void)e;
    *window = *window ? *window : b->window;
    return 0;
}

/* How many keys there are: the sequence's own tokens, or those of another one. */
static int count_keys(const struct place *p, int *keys, struct sh_err *e)
{
    int window = 0;
    *keys = p->sequence->n_tokens;
    if (p->run->orderless && sh_store_blocks(p->s->store, SH_BLOCK_SCORES, p->sequence->id, p->layer, p->head, is_first,
                                             &window, e))
        return -1;
    if (window < 0)
        *keys = -window;
    return 0;
}

/* The head has another number of rows than tokens. */
static int rows_missing(const struct place *p, int n, struct sh_err *e)
{
    struct sh_err ignored;
    int is_silent = !n && sh_store_layer(p->s->store, p->sequence->id, p->layer, &ignored) == SH_LAYER_SILENT;
    return sh_fail(e, "found %d rows, expected %d%s", n, p->sequence->n_tokens,
                   is_silent ? ": the layer does not attend" : n ? "" : ": the layer was not recorded to its end");
}

/* All rows of the head, in order. 1: `row` stopped. */
static int read_rows(const struct place *p, int (*row)(void *to, const struct sh_row *row), void *to, struct sh_err *e)
{
    struct reading r = {.place = p, .row = row, .to = to, .e = e};
    if (p->run->record == SH_RECORD_SUMMARY)
        return sh_fail(e, "the run has statistics only, expected scores"),
               sh_hint(e, "record with full or sparse to keep scores"), place_fails(p, e);
    if (count_keys(p, &r.keys, e))
        return -1;
    int bad = sh_store_blocks(p->s->store, SH_BLOCK_SCORES, p->sequence->id, p->layer, p->head, take_block, &r, e);
    if (r.is_stopped)
        return 1;
    if (!bad && r.next != p->sequence->n_tokens)
        bad = rows_missing(p, r.next, e);
    return bad ? place_fails(p, e) : 0;
}

int shears_store_shape(struct shears_store *s, int sequence, int layer, int head, size_t *rows, size_t *keys,
                       struct shears_error **e)
{
    struct sh_err why = {0};
    struct place p;
    int n;
    if (sh_lib_store(e, "shears_store_shape", s) || sh_lib_given(e, "shears_store_shape", "rows", rows) ||
        sh_lib_given(e, "shears_store_shape", "keys", keys))
        return -1;
    if (find(&p, s, sequence, layer, head, 0, &why) || count_keys(&p, &n, &why))
        return sh_lib_fail(e, &why);
    *rows = (size_t)p.sequence->n_tokens;
    *keys = (size_t)n;
    return 0;
}

struct matrix {
    float *at;
    size_t keys;
};

static int put_row(void *to, const struct sh_row *row)
{
    const struct matrix *m = to;
    float *at = m->at + (size_t)row->q * m->keys + (size_t)row->first_key;
    if (!row->sparse)
        memcpy(at, row->score, (size_t)row->n * sizeof *at);
    else
        for (int i = 0; i < row->n_stored; i++)
            at[row->key[i] - row->first_key] = row->score[i];
    return 0;
}

int shears_store_scores(struct shears_store *s, int sequence, int layer, int head, float *to, size_t rows, size_t keys,
                        struct shears_error **e)
{
    struct sh_err why = {0};
    struct place p;
    size_t n_row, n_key, n;
    if (sh_lib_given(e, "shears_store_scores", "room for the scores", to) ||
        shears_store_shape(s, sequence, layer, head, &n_row, &n_key, e))
        return -1;
    if (rows != n_row || keys != n_key || sh_mul(rows, keys, &n) || sh_mul(n, sizeof *to, &n))
        return sh_lib_misused(e, "shears_store_scores: found room for [%zu, %zu], expected [%zu, %zu]", rows, keys,
                              n_row, n_key);
    memset(to, 0, n);
    struct matrix m = {to, keys};
    if (find(&p, s, sequence, layer, head, 0, &why) || read_rows(&p, put_row, &m, &why))
        return sh_lib_fail(e, &why);
    return 0;
}

struct handing {
    int (*row)(void *to, const struct shears_row *row);
    void *to;
    float *whole;                       /* [most]: a sparse row with all its keys                 */
};

static int hand_row(void *to, const struct sh_row *row)
{
    struct handing *h = to;
    struct shears_row r = {.q = row->q, .first_key = row->first_key, .n = row->n, .score = row->score};
    if (row->sparse) {
        memset(h->whole, 0, (size_t)row->n * sizeof *h->whole);
        for (int i = 0; i < row->n_stored; i++)
            h->whole[row->key[i] - row->first_key] = row->score[i];
        r.score = h->whole;
        r.rest = row->residual;
    }
    return h->row(h->to, &r);
}

int shears_store_rows(struct shears_store *s, int sequence, int layer, int head,
                      int (*row)(void *to, const struct shears_row *row), void *to, struct shears_error **e)
{
    struct sh_err why = {0};
    struct place p;
    size_t rows, keys;
    if (sh_lib_given(e, "shears_store_rows", "a function", (const void *)(uintptr_t)row) ||
        shears_store_shape(s, sequence, layer, head, &rows, &keys, e))
        return -1;
    struct handing h = {row, to, xcalloc(keys, sizeof(float))};
    int bad = find(&p, s, sequence, layer, head, 0, &why) ? -1 : read_rows(&p, hand_row, &h, &why);
    free(h.whole);
    if (bad > 0)
        sh_fail(&why, "stopped by the caller");
    return bad ? sh_lib_fail(e, &why) : 0;
}

/* ---- vectors ---- */

struct vectors {
    char kind;
    float *at;
    size_t n;
};

static int take_vectors(void *to, const struct sh_block *b, struct sh_err *e)
{
    struct vectors *v = to;
    if (b->vector != v->kind || v->at)
        return 0;
    return (v->at = sh_codec_all_floats(b, &v->n, e)) ? 0 : -1;
}

int64_t shears_store_vectors(struct shears_store *s, int sequence, int layer, char kind, int head, float *to,
                             size_t room, struct shears_error **e)
{
    struct sh_err why = {0};
    struct place p;
    struct vectors v = {.kind = kind};
    if (sh_lib_store(e, "shears_store_vectors", s))
        return -1;
    if (!kind || !strchr("qkvs", kind))
        return sh_lib_misused(e, "shears_store_vectors: found kind %d, expected 'q', 'k', 'v' or 's'", kind);
    if (find(&p, s, sequence, layer, head, kind == 'k' || kind == 'v', &why))
        return sh_lib_fail(e, &why);
    if (sh_store_blocks(s->store, SH_BLOCK_VECTORS, sequence, layer, head, take_vectors, &v, &why)) {
        free(v.at);
        place_fails(&p, &why);
        return sh_lib_fail(e, &why);
    }
    if (!v.at) {
        sh_fail(&why, "found no vectors '%c'", kind);
        sh_hint(&why, "a run has queries, keys and values if it was recorded with --vectors qkv");
        place_fails(&p, &why);
        return sh_lib_fail(e, &why);
    }
    int fits = v.n <= room, is_table = !(v.n % (size_t)p.sequence->n_tokens);
    if (is_table && to && fits)
        memcpy(to, v.at, v.n * sizeof *to);
    free(v.at);
    if (!is_table)
        return sh_lib_misused(e, "%s: sequence %d, layer %d, head %d: found %zu numbers, expected a multiple of %d "
                              "tokens", sh_store_path(s->store), sequence, layer, head, v.n, p.sequence->n_tokens);
    if (to && !fits)
        return sh_lib_misused(e, "shears_store_vectors: found room for %zu numbers, expected %zu", room, v.n);
    return (int64_t)v.n;
}
