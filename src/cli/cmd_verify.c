/* SPDX-License-Identifier: Apache-2.0 */
/* shears verify: checks that a trace store is complete and undamaged. */
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/cli/options.h"
#include "src/cli/paths.h"
#include "traces/codec.h"
#include "traces/merge.h"
#include "traces/stats.h"
#include "traces/store.h"

struct verify_args {
    const char *db;
    int complete;
};

static const struct sh_opt opts[] = {
    SH_STORE_OPT(offsetof(struct verify_args, db)),
    SH_FLAG("complete", offsetof(struct verify_args, complete),
            "exit status 1 also if layers or shards are still missing"),
    {0}};

/* One (sequence, layer) while its blocks pass by. */
struct layer_check {
    const struct sh_stored_run *run;
    struct sh_layer_heads heads;        /* of the layer                                            */
    int n_tokens;
    int head, next_row;                 /* scores: what must come next */
    float *sink;                        /* [n_head, n_tokens]: what sinks take of each row; NULL: nothing */
    int row;                            /* of the block on its way */
    int n_stats;
    long long n_vectors;
    long long blocks, rows;
};

static int count_row(void *to, const struct sh_row *row)
{
    struct layer_check *c = to;
    double sum = row->sparse ? row->residual : 0;
    int n = row->sparse ? row->n_stored : row->n;
    for (int i = 0; i < n; i++)
        sum += row->score[i];
    if (c->sink)
        sum += (double)c->sink[(size_t)c->head * (size_t)c->n_tokens + (size_t)c->row];
    c->row++;
    if (!(sum > 0.9 && sum < 1.1))              /* a row of attention sums to 1, log8 within 4 % */
        return 1;
    c->rows++;
    return 0;
}

static int check_scores(void *to, const struct sh_block *b, struct sh_err *e)
{
    struct layer_check *c = to;
    if (b->head >= c->heads.query)
        return sh_fail(e, "found scores of head %d, expected %d heads", b->head, c->heads.query);
    if (b->head != c->head || b->first_row != c->next_row) {
        if (c->next_row != c->n_tokens || b->head != c->head + 1 || b->first_row != 0)
            return sh_fail(e, "head %d, row %d: rows before it are missing", b->head, b->first_row);
        c->head = b->head;
        c->next_row = 0;
    }
    if (b->n_rows < 1 || b->n_rows > c->n_tokens - b->first_row)
        return sh_fail(e, "head %d: found a block from row %d, %d rows long, in a "
                          "sequence of %d tokens", b->head, b->first_row, b->n_rows,
                       c->n_tokens);
    long long before = c->rows;
    c->row = b->first_row;
    if (sh_codec_rows_any(b, count_row, c, e))
        return sh_err_prefix(e, "head %d, row %d", b->head, b->first_row);
    if (c->rows - before != b->n_rows)
        return sh_fail(e, "head %d, row %lld: scores do not sum to 1", b->head, b->first_row + c->rows - before);
    c->next_row += b->n_rows;
    c->blocks++;
    return 0;
}

static int check_stats(void *to, const struct sh_block *b, struct sh_err *e)
{
    struct layer_check *c = to;
    unsigned char *plain;
    size_t n;
    struct sh_stats *s = NULL;
    if (b->head != c->n_stats)
        return sh_fail(e, "found statistics of head %d, expected those of head %d", b->head, c->n_stats);
    if (sh_codec_unbytes(b->blob, b->bytes, (size_t)1 << 32, &plain, &n, e))
        return sh_err_prefix(e, "statistics of head %d", b->head);
    int bad = sh_stats_unpack(plain, n, &s, e);
    free(plain);
    if (bad)
        return sh_err_prefix(e, "statistics of head %d", b->head);
    if (s->length != c->n_tokens)
        bad = sh_fail(e, "statistics of head %d: found %d tokens, expected %d", b->head, s->length, c->n_tokens);
    char *spec = sh_stats_spec_write(&s->spec);
    if (!bad && strcmp(spec, c->run->statistics))
        bad = sh_fail(e, "statistics of head %d: found settings %s, expected the run's %s", b->head, spec,
                      c->run->statistics);
    free(spec);
    sh_stats_free(s);
    c->n_stats++;
    c->blocks++;
    return bad;
}

/* An empty block, whose number has been checked. */
static int check_mark(struct layer_check *c, const struct sh_block *b, struct sh_err *e)
{
    unsigned char *plain;
    size_t n;
    if (b->codec != SH_CODEC_F32 || sh_codec_unbytes(b->blob, b->bytes, 0, &plain, &n, e))
        return sh_fail(e, "the row with the number of heads: found codec %d and %zu bytes, expected codec 0 and an "
                       "empty block", b->codec, b->bytes);
    free(plain);
    c->blocks++;
    return 0;
}

static int check_vectors(void *to, const struct sh_block *b, struct sh_err *e)
{
    struct layer_check *c = to;
    unsigned char *plain;
    if (b->vector == 'h' || b->vector == 'a')
        return check_mark(c, b, e);
    int is_sink = b->vector == 's', n_head = b->vector == 'q' || is_sink ? c->heads.query : c->run->n_kv_head;
    if (!b->vector || (!is_sink && !strchr(c->run->vectors, b->vector)) || b->head < 0 || b->head >= n_head ||
        (b->codec != SH_CODEC_F32 && b->codec != SH_CODEC_F16))
        return sh_fail(e, "found vectors '%c' of head %d in codec %d, expected one of \"%s\", %d heads, codec 0 or 1",
                       b->vector ? b->vector : '?', b->head, b->codec, c->run->vectors, n_head);
    size_t width = is_sink ? 1 : (size_t)c->run->d_head;
    size_t n, expected = (size_t)c->n_tokens * width * (b->codec == SH_CODEC_F32 ? 4 : 2);
    if (sh_codec_unbytes(b->blob, b->bytes, expected, &plain, &n, e))
        return sh_err_prefix(e, "%c of head %d", b->vector, b->head);
    free(plain);
    if (n != expected)
        return sh_fail(e, "%c of head %d: found %zu bytes, expected %zu", b->vector, b->head, n, expected);
    c->n_vectors++;
    c->blocks++;
    return 0;
}

/* What sinks take, before the rows are looked at. */
static int take_sinks(void *to, const struct sh_block *b, struct sh_err *e)
{
    struct layer_check *c = to;
    size_t n = (size_t)c->n_tokens;
    if (b->vector != 's')
        return 0;
    if (b->head < 0 || b->head >= c->heads.query)
        return sh_fail(e, "found a sink of head %d, expected 0 to %d", b->head, c->heads.query - 1);
    if (!c->sink)
        c->sink = xcalloc((size_t)c->heads.query * n, sizeof *c->sink);
    return sh_codec_floats(b, c->sink + (size_t)b->head * n, n, e);
}

static int check_layer(struct sh_store *s, const struct sh_stored_run *run, const struct sh_stored_sequence *q,
                       int layer, struct layer_check *c, struct sh_err *e)
{
    c->run = run;
    c->n_tokens = q->n_tokens;
    c->head = -1;
    c->next_row = q->n_tokens;
    c->n_stats = 0;
    c->n_vectors = 0;
    int scores = run->record != SH_RECORD_SUMMARY, stats = run->record != SH_RECORD_FULL;
    long long vectors = 0;
    if (sh_store_heads(s, q->id, layer, run, &c->heads, e))
        return -1;
    for (const char *v = run->vectors; *v; v++)
        vectors += *v == 'q' ? c->heads.query : run->n_kv_head;
    c->sink = NULL;
    int bad = sh_store_blocks(s, SH_BLOCK_VECTORS, q->id, layer, -1, take_sinks, c, e) ||
              sh_store_blocks(s, SH_BLOCK_SCORES, q->id, layer, -1, check_scores, c, e);
    vectors += c->sink ? c->heads.query : 0;
    free(c->sink);
    if (bad ||
        sh_store_blocks(s, SH_BLOCK_STATS, q->id, layer, -1, check_stats, c, e) ||
        sh_store_blocks(s, SH_BLOCK_VECTORS, q->id, layer, -1, check_vectors, c, e))
        return -1;
    if (scores && (c->head != c->heads.query - 1 || c->next_row != q->n_tokens))
        return sh_fail(e, "scores end at head %d, row %d, expected %d heads of %d rows", c->head, c->next_row,
                       c->heads.query, q->n_tokens);
    if ((stats || c->n_stats) && c->n_stats != c->heads.query)
        return sh_fail(e, "found statistics of %d heads, expected %d", c->n_stats, c->heads.query);
    if (c->n_vectors != vectors)
        return sh_fail(e, "found vectors of %lld heads, expected %lld", c->n_vectors, vectors);
    return 0;
}

static int refuse_block(void *to, const struct sh_block *b, struct sh_err *e)
{
    (void)to;
    return b->vector == 'n' ? 0 : sh_fail(e, "found data of head %d in a layer that does not attend, expected none",
                                          b->head);
}

/* A layer that does not attend has nothing else. */
static int check_silent(struct sh_store *s, const struct sh_stored_run *run, const struct sh_stored_sequence *q,
                        int layer, struct layer_check *c, struct sh_err *e)
{
    (void)run, (void)c;
    return sh_store_blocks(s, SH_BLOCK_VECTORS, q->id, layer, -1, refuse_block, NULL, e) ||
           sh_store_blocks(s, SH_BLOCK_SCORES, q->id, layer, -1, refuse_block, NULL, e) ||
           sh_store_blocks(s, SH_BLOCK_STATS, q->id, layer, -1, refuse_block, NULL, e) ? -1 : 0;
}

struct totals {
    long long done, missing;
    struct layer_check check;
};

static int check_run(struct sh_store *s, const struct sh_stored_run *run, struct totals *t, int quiet, struct sh_err *e)
{
    struct sh_stored_sequence *q;
    struct sh_progress progress;
    int n, bad = 0, n_layer = run->last_layer - run->first_layer + 1;
    if (sh_store_sequences(s, run->id, &q, &n, e))
        return -1;
    sh_progress_begin(&progress, "verifying", "layers", (double)n * n_layer, quiet);
    for (int i = 0; i < n && !bad; i++) {
        int32_t *tokens = NULL;
        int count;
        bad = sh_store_tokens(s, q[i].id, &tokens, &count, e);
        free(tokens);
        for (int layer = run->first_layer; layer <= run->last_layer && !bad; layer++) {
            int state = sh_store_layer(s, q[i].id, layer, e);
            if (state <= 0) {
                bad = state;
                t->missing++;
                continue;
            }
            t->done++;
            bad = (state == SH_LAYER_SILENT ? check_silent : check_layer)(s, run, &q[i], layer, &t->check, e);
            if (bad)
                sh_err_prefix(e, "%s: sequence %d, layer %d", sh_store_path(s), q[i].id, layer);
            sh_progress_at(&progress, (double)i * n_layer + layer - run->first_layer + 1, "");
        }
    }
    sh_progress_end(&progress);
    sh_stored_sequences_free(q, n);
    return bad;
}

/* Appends to text the parts of one job that are not in have[0 to n - 1]. */
static char *missing_of_job(const struct sh_shard *have, int n, char *text)
{
    enum { MOST = 100 };                /* numbers that are named: a file may claim a million parts */
    int expected = 1, any = 0, left = have[0].parts - n;
    for (int i = 0; i <= n; i++, expected++)
        for (; any < MOST && expected < (i < n ? have[i].part : have[0].parts + 1); expected++) {
            char *more = any++ ? xasprintf("%s, %d", text, expected)
                               : xasprintf("%s%s%s %d", text ? text : "", text ? "; " : "", have[0].command, expected);
            free(text);
            text = more;
        }
    if (!any)
        return text;
    char *more = left > any ? xasprintf("%s and %d more of %d", text, left - any, have[0].parts)
                            : xasprintf("%s of %d", text, have[0].parts);
    free(text);
    return more;
}

/* The parts that a merged file lacks of its jobs: "trace 2, 5 of 8"; NULL: none. Caller frees. */
static char *missing_parts(const struct sh_shard *have, int n)
{
    char *text = NULL;
    for (int first = 0, end; first < n; first = end) {
        for (end = first; end < n && !strcmp(have[end].job, have[first].job); end++)
            ;
        text = missing_of_job(have + first, end - first, text);
    }
    return text;
}

/* The parts that a store has, what they held, and what is missing; owned. */
struct parts {
    struct sh_shard *shard;
    struct sh_inventory *held;
    int n, n_held;
    char *missing, *holes, *unfinished; /* NULL: none                                             */
};

/* A result that was there is gone. */
static int is_hole(const struct sh_inventory *h)
{
    return h->found < h->rows;
}

/* Expected, and not computed yet. */
static int is_to_come(const struct sh_inventory *h)
{
    return !h->rows && !h->found;
}

/* The parts for which is_so holds: "simulate 2 of 8, simulate 5 of 8". */
static char *parts_with(const struct parts *p, int (*is_so)(const struct sh_inventory *))
{
    enum { MOST = 100 };                /* that are named */
    char *text = NULL;
    int any = 0;
    for (int i = 0, k = 0; i < p->n && any <= MOST; i++) {
        const struct sh_shard *h = &p->shard[i];
        int hole = 0;
        for (; k < p->n_held && p->held[k].part == h->part && !strcmp(p->held[k].job, h->job); k++)
            hole |= is_so(&p->held[k]);
        if (!hole)
            continue;
        char *more = any++ == MOST ? xasprintf("%s, ...", text)
                                   : xasprintf("%s%s%s %d of %d", text ? text : "", text ? ", " : "", h->command,
                                               h->part, h->parts);
        free(text);
        text = more;
    }
    return text;
}

static int check_parts(struct sh_store *s, struct parts *p, struct sh_err *e)
{
    if (sh_shard_list(s, &p->shard, &p->n, e) || sh_inventory_list(s, p->shard, p->n, &p->held, &p->n_held, e) ||
        sh_inventory_look(s, p->held, p->n_held, e))
        return -1;
    p->missing = missing_parts(p->shard, p->n);
    p->holes = parts_with(p, is_hole);
    p->unfinished = parts_with(p, is_to_come);
    return 0;
}

/* Holes: results that were there are gone. Not complete: there are more to come. */
static int judge(struct sh_store *s, const struct parts *p, int is_complete, int must_be, struct sh_err *e)
{
    if (p->holes) {
        sh_fail(e, "%s: results of these shards are missing: %s", sh_store_path(s), p->holes);
        return sh_hint(e, "merge the shard's file again, or run the command that made it again");
    }
    return must_be && !is_complete ? sh_fail(e, "%s: not complete", sh_store_path(s)) : 0;
}

static int report(struct sh_store *s, const struct totals *t, const struct parts *p, int must_be_complete,
                  const struct sh_common *common, struct sh_err *e)
{
    int is_complete = t->missing == 0 && !p->missing && !p->holes && !p->unfinished;
    struct sh_out *o = sh_out_new();
    sh_out_text(o, "db", "store", sh_store_path(s));
    sh_out_bool(o, "sound", "sound", 1);
    sh_out_bool(o, "complete", "complete", is_complete);
    sh_out_int(o, "layers_done", "layers finished", t->done);
    sh_out_int(o, "layers_missing", "layers missing", t->missing);
    sh_out_text(o, "shards_missing", "shards missing", p->missing ? p->missing : "none");
    if (p->n) {
        sh_out_text(o, "shards_with_holes", "shards with holes", p->holes ? p->holes : "none");
        sh_out_text(o, "shards_unfinished", "shards unfinished", p->unfinished ? p->unfinished : "none");
    }
    sh_out_int(o, "blocks", "blocks checked", t->check.blocks);
    sh_out_int(o, "rows", "rows checked", t->check.rows);
    if (p->unfinished && !p->holes)
        sh_out_note(o, "These shards are unfinished, or results that they reused from the store they read are not yet "
                       "merged into this one.");
    else if (p->n && t->missing && !p->holes)
        sh_out_note(o, "This store is a shard, or other shards of its job have not been merged yet.");
    else if (t->missing && !p->holes)
        sh_out_note(o, "The run is not finished: run the same trace command again to resume.");
    return sh_common_write(common, o, 0, e) || judge(s, p, is_complete, must_be_complete, e) ? -1 : 0;
}

static int verify(struct sh_store *s, int must_be_complete, const struct sh_common *common, struct sh_err *e)
{
    struct sh_stored_run *runs;
    struct totals t = {0};
    struct parts parts = {0};
    int n;
    if (sh_store_check_pages(s, e) || sh_store_runs(s, &runs, &n, e))
        return -1;
    int bad = 0;
    for (int i = 0; i < n && !bad; i++)
        bad = check_run(s, &runs[i], &t, common->quiet, e);
    sh_stored_runs_free(runs, n);
    bad = bad || check_parts(s, &parts, e) || report(s, &t, &parts, must_be_complete, common, e);
    free(parts.shard);
    free(parts.held);
    free(parts.missing);
    free(parts.holes);
    free(parts.unfinished);
    return bad;
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    const struct verify_args *a = args;
    const char *path = sh_store_path_of("verify", a->db, positional, e);
    if (!path)
        return -1;
    struct sh_store *s = sh_store_open(path, e);
    int bad = !s || verify(s, a->complete, common, e);
    sh_store_close(s);
    return bad ? -1 : 0;
}

const struct sh_cmd sh_cmd_verify = {
    .name = "verify",
    .usage = "--db FILE",
    .summary = "check a trace store: pages, checksums, missing parts",
    .about = "Reads everything: SQLite's own structure, the checksum and counts of every block, the sum of every row,\n"
             "and that each finished layer has all of its heads and rows. If something is damaged, the exit status is\n"
             "1 and the message names the first fault. The exit status is also 1 if results that a shard held when it\n"
             "was written or merged are missing. A run that was stopped early, or a shard that has not been merged\n"
             "yet, is sound but not complete: exit status 1 only with --complete.\n\n"
             "  shears verify --db traces.db",
    .opts = opts, .args_bytes = sizeof(struct verify_args), .run = run};
