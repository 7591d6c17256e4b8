/* SPDX-License-Identifier: Apache-2.0 */
/* src/tracer/recorder: whatever pieces a backend hands out, the blocks hold every row of every head once,
 * in order and in bounded pieces, and the statistics are those of the rows. */
#include "src/tracer/recorder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/rng.h"
#include "tests/tap.h"
#include "tests/unit/row_sets.h"
#include "traces/codec.h"

enum { N_SEQ = 2, N_HEAD = 2, MOST_SCORES = 1 << 18 };  /* 1 MiB of f32 */

static const int n_tokens[N_SEQ] = {800, 90};

static struct sh_err e;

static float *make_rows(int length, int window, uint64_t seed)
{
    float *rows = xcalloc(sh_rows_scores(0, length, window), sizeof *rows), *row = rows;
    for (int q = 0; q < length; q++) {
        int n = q + 1 - sh_row_start(q, window);
        double sum = 0;
        for (int i = 0; i < n; i++) {
            row[i] = (float)exp(3 * sh_rng_normal(seed, (uint64_t)(q * length + i)));
            sum += (double)row[i];
        }
        for (int i = 0; i < n; i++)
            row[i] = (float)((double)row[i] / sum);
        row += n;
    }
    return rows;
}

/* Hand out both heads of all sequences in turns, 1 to 60 rows at a time. */
static void hand_out(const struct sh_tap *tap, float *const rows[N_SEQ * N_HEAD], int window)
{
    int at[N_SEQ * N_HEAD] = {0}, busy = 1;
    size_t done[N_SEQ * N_HEAD] = {0};
    for (uint64_t turn = 0; busy; turn++) {
        busy = 0;
        for (int k = 0; k < N_SEQ * N_HEAD; k++) {
            int s = k / N_HEAD, left = n_tokens[s] - at[k], n = 1 + (int)(sh_rng(turn, (uint64_t)k) % 60);
            n = n < left ? n : left;
            if (!n)
                continue;
            busy = 1;
            const float *from = rows[k] + done[k];
            struct sh_row_sets sets = {0};
            if (tap->pack == SH_PACK_SETS)
                row_sets_make(&tap->lanes[s], from, at[k], n, window, &sets);
            tap->rows(tap->to, s, k % N_HEAD, at[k], n, tap->pack == SH_PACK_SETS ? (const void *)&sets : from);
            row_sets_free(&sets);
            done[k] += sh_rows_scores(at[k], n, window);
            at[k] += n;
        }
    }
}

struct told {                                           /* rows against those that were handed out */
    const float *rows;
    int q, window, sparse, wrong;
};

static int check_row(void *to, const struct sh_row *r)
{
    struct told *t = to;
    int at = 0;
    t->wrong += r->q != t->q || r->first_key != sh_row_start(t->q, t->window) || r->sparse != t->sparse;
    for (int i = 0; i < r->n; i++) {
        double was = (double)t->rows[i];
        if (r->sparse && was < 1.0 / r->n)
            continue;
        t->wrong += r->sparse && (at >= r->n_stored || r->key[at] != r->first_key + i);
        t->wrong += was != (double)r->score[r->sparse ? at : i];
        at++;
    }
    t->wrong += r->sparse && at != r->n_stored;
    t->rows += r->n;
    t->q++;
    return 0;
}

/* The statistics block against those made from the rows, as packed bytes. */
static void check_stats(const struct sh_block *b, const struct sh_recorder_options *o, const float *rows, int length)
{
    struct sh_stats *s = sh_stats_new(&o->statistics, length);
    for (int q = 0; q < length; q++) {
        int start = sh_row_start(q, o->window), n = q + 1 - start;
        CU_ASSERT_FATAL(sh_stats_row(s, q, start, rows, n) == 0);
        rows += n;
    }
    unsigned char *wanted, *found;
    size_t bytes = sh_stats_pack(s, &wanted), n;
    CU_ASSERT_FATAL(sh_codec_unbytes(b->blob, b->bytes, bytes, &found, &n, &e) == 0);
    CU_ASSERT(n == bytes && !memcmp(wanted, found, bytes));
    free(wanted);
    free(found);
    sh_stats_free(s);
}

/* Blocks of one sequence: of each head its rows, then its statistics. */
static void check_batch(struct sh_batch *batch, const struct sh_recorder_options *o, float *const rows[N_HEAD],
                        int length)
{
    struct told told[N_HEAD];
    int n_stats = 0, n_scores = 0;
    for (int h = 0; h < N_HEAD; h++)
        told[h] = (struct told){rows[h], 0, o->window, o->record == SH_RECORD_SPARSE, 0};
    for (int i = 0; i < batch->n_block; i++) {
        struct sh_block *b = &batch->block[i];
        CU_ASSERT_FATAL(b->head >= 0 && b->head < N_HEAD);
        if (b->kind == SH_BLOCK_STATS) {
            check_stats(b, o, rows[b->head], length);
            n_stats++;
            continue;
        }
        CU_ASSERT(b->window == o->window && b->first_row == told[b->head].q);
        CU_ASSERT(sh_rows_scores(b->first_row, b->n_rows, b->window) <= MOST_SCORES);
        CU_ASSERT(sh_codec_rows(b, check_row, &told[b->head], &e) == 0);
        n_scores++;
    }
    CU_ASSERT(n_stats == (o->record == SH_RECORD_FULL ? 0 : N_HEAD));
    int pieces = o->record == SH_RECORD_SUMMARY ? 0 : sh_rows_scores(0, length, o->window) > MOST_SCORES ? 2 : 1;
    CU_ASSERT(n_scores == pieces * N_HEAD);
    for (int h = 0; h < N_HEAD && pieces; h++)
        CU_ASSERT(told[h].q == length && told[h].wrong == 0);
}

static void record(enum sh_record kind, int window)
{
    struct sh_recorder_options o = {.record = kind, .codec = SH_CODEC_F32, .n_head = N_HEAD, .window = window};
    sh_stats_spec_default(&o.statistics);
    float *rows[N_SEQ * N_HEAD];
    for (int k = 0; k < N_SEQ * N_HEAD; k++)
        rows[k] = make_rows(n_tokens[k / N_HEAD], window, (uint64_t)k);
    struct sh_recorder *r = sh_recorder_new(&o, N_SEQ, n_tokens, NULL);
    struct sh_tap tap = sh_recorder_tap(r);
    CU_ASSERT(tap.pack == (kind == SH_RECORD_FULL ? SH_PACK_F32 : SH_PACK_SETS));
    hand_out(&tap, rows, window);
    for (int s = 0; s < N_SEQ; s++) {
        struct sh_batch batch = {0};
        sh_recorder_take(r, s, &batch);
        check_batch(&batch, &o, rows + s * N_HEAD, n_tokens[s]);
        sh_batch_clear(&batch);
        sh_recorder_take(r, s, &batch);                 /* they are handed over once */
        CU_ASSERT(batch.n_block == 0);
        sh_batch_clear(&batch);
    }
    sh_recorder_free(r);
    for (int k = 0; k < N_SEQ * N_HEAD; k++)
        free(rows[k]);
}

static void full_records(void)
{
    record(SH_RECORD_FULL, 0);
    record(SH_RECORD_FULL, 100);
}

static void sparse_records(void)
{
    record(SH_RECORD_SPARSE, 0);
    record(SH_RECORD_SPARSE, 100);
}

static void summary_records(void)
{
    record(SH_RECORD_SUMMARY, 0);
    record(SH_RECORD_SUMMARY, 100);
}

/* What is asked of the backend: packed as the record needs it, "split" by each sequence's own length. */
static void taps(void)
{
    static const enum sh_pack pack[] = {SH_PACK_F32, SH_PACK_F16, SH_PACK_LOG8};
    struct sh_recorder_options o = {.record = SH_RECORD_FULL, .n_head = 1};
    sh_stats_spec_default(&o.statistics);
    for (int codec = 0; codec < 3; codec++) {
        o.codec = (enum sh_codec)codec;
        struct sh_recorder *r = sh_recorder_new(&o, N_SEQ, n_tokens, NULL);
        CU_ASSERT(sh_recorder_tap(r).pack == pack[codec] && sh_recorder_tap(r).lanes == NULL);
        sh_recorder_free(r);
    }
    for (int sparse = 0; sparse < 2; sparse++) {
        o.record = sparse ? SH_RECORD_SPARSE : SH_RECORD_SUMMARY;
        struct sh_recorder *r = sh_recorder_new(&o, N_SEQ, n_tokens, NULL);
        const struct sh_lanes *lanes = sh_recorder_tap(r).lanes;
        for (int s = 0; s < N_SEQ; s++) {
            CU_ASSERT(lanes[s].n == 7 && lanes[s].values == sparse);
            CU_ASSERT(lanes[s].lane[3].per_key && lanes[s].lane[3].value == 10);
            CU_ASSERT(!lanes[s].lane[5].per_key && lanes[s].lane[5].value == 1.0 / (n_tokens[s] / 2));
        }
        sh_recorder_free(r);
    }
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"the tap asks for what the record needs", taps},
        {"full: every score of every head", full_records},
        {"sparse: the scores that are not low, and statistics", sparse_records},
        {"summary: statistics", summary_records},
        {0}};
    return tap_run("recorder", tests);
}
