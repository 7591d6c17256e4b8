/* SPDX-License-Identifier: Apache-2.0 */
/* The trace store: one SQLite file (schema.sql). Opaque; one connection, one thread at a time.
 *
 * Writing: sh_store_create, sh_store_begin (finds the run of the same settings or makes it), then
 * sh_store_write with one (sequence, layer) or several: each call is one transaction, so a killed program leaves a
 * file that holds whole layers only, and the same command goes on after them.
 * Reading: sh_store_open, sh_store_runs, sh_store_sequences, sh_store_blocks.
 * Every error names the file. A file of another program or of another version is refused. */
#ifndef SH_TRACES_STORE_H
#define SH_TRACES_STORE_H

#include "traces/trace.h"

/* A file says what it is: "SHRS", and the version of what is in it. Version 1 had another log8. A file is
 * made with version 2; version 3 is the same but for rows that are not causal, and a file gets it when the
 * first of them comes. */
enum { SH_STORE_APPLICATION = 0x53485253, SH_STORE_VERSION = 2, SH_STORE_ORDERLESS = 3 };

struct sh_store;

struct sh_store *sh_store_create(const char *path, struct sh_err *e);   /* opens or makes */
struct sh_store *sh_store_open(const char *path, struct sh_err *e);     /* must exist; read only */
struct sh_store *sh_store_look(const char *path, struct sh_err *e);     /* must exist; nothing is written to it, but
                                                                         * that a killed writer's change is undone */
struct sh_store *sh_store_update(const char *path, struct sh_err *e);   /* must exist; for results */
void sh_store_close(struct sh_store *s);                                /* NULL is fine */
int sh_store_settle(struct sh_store *s, struct sh_err *e);              /* what was committed is on the disk */
void sh_store_remove(const char *path);                 /* the file, and what SQLite laid beside it */
void sh_store_tidy(const char *path);                   /* what a killed program left of the making of the file */
int sh_store_was_made(const struct sh_store *s);        /* did sh_store_create make the file? */
const char *sh_store_path(const struct sh_store *s);

/* ---- writing ---- */

/* The run with these settings and tokens: found (its finished layers are marked in done[sequence *
 * n_layers + layer - first_layer]) or made with all its sequences in one transaction. `key` is the
 * hash that identifies it. Gives the run's id, or -1. done: [n * n_layers], zeroed by the caller. */
int sh_store_begin(struct sh_store *s, const struct sh_trace_run *run, const char *key,
                   const struct sh_trace_sequence *sequence, int n, unsigned char *done, struct sh_err *e);

/* What is finished of the run of that key, as sh_store_begin marks it; 0: no such run. */
int sh_store_finished(struct sh_store *s, const struct sh_trace_run *run, const char *key, int n, unsigned char *done,
                      struct sh_err *e);

/* Whole (sequence, layer)s of that run, n of them in one transaction: all or none is there. It is on the disk when this
 * returns. */
int sh_store_write(struct sh_store *s, int run, const struct sh_batch *const *b, int n, struct sh_err *e);

/* Add to the run's computing time. */
int sh_store_add_seconds(struct sh_store *s, int run, double seconds, struct sh_err *e);

/* How the command was typed that stores results here: kept next to them, for those who want to repeat them. Until this
 * is said, and with NULL, nothing is kept. The line is not copied. Gives the store, which may be NULL. */
struct sh_store *sh_store_typed(struct sh_store *s, const char *line);

/* Replace the results of (command, settings): erase them first, then put each, in one transaction. */
int sh_store_results_begin(struct sh_store *s, const char *command, const char *settings, struct sh_err *e);
int sh_store_result(struct sh_store *s, const char *command, const char *settings, const char *metric, int layer,
                    int head, double value, struct sh_err *e);          /* -1: NULL; NaN: NULL */
int sh_store_results_end(struct sh_store *s, struct sh_err *e);
int sh_store_results_erase(struct sh_store *s, const char *command, const char *settings, struct sh_err *e);

/* All results that begin and end in between are one transaction, they are all there or none of them is: a commit waits
 * for the disk. bad: something in between failed, so nothing is kept; gives -1 then, and when the commit fails. */
int sh_store_group_begin(struct sh_store *s, struct sh_err *e);
int sh_store_group_end(struct sh_store *s, int bad, struct sh_err *e);

/* ---- reading ---- */

struct sh_stored_run {
    int id;
    char *model, *family, *weights, *fingerprint, *program, *backend, *device, *dtype, *vectors, *statistics,
        *command, *started;
    enum sh_record record;
    enum sh_codec codec;
    int n_layer, n_head, n_kv_head, d_head, first_layer, last_layer, weight_bits;
    int n_sequence, n_done;                 /* n_done: finished (sequence, layer) pairs */
    int orderless;                          /* its rows are not causal                  */
    long long n_tokens;
    double seconds;
};

int sh_store_runs(struct sh_store *s, struct sh_stored_run **out, int *n, struct sh_err *e);
void sh_stored_runs_free(struct sh_stored_run *r, int n);

/* Scores that the rows of a run can have, or -1. Walks over all blocks. */
long long sh_store_scores(struct sh_store *s, int run, struct sh_err *e);

/* Bytes of the scores and head_stats blobs of a run, or -1. Walks over all of them. */
long long sh_store_blob_bytes(struct sh_store *s, int run, struct sh_err *e);

struct sh_stored_sequence {
    int id, run, n_tokens;
    char *source;
};

/* All sequences in order of recording; run 0: of every run. */
int sh_store_sequences(struct sh_store *s, int run, struct sh_stored_sequence **out, int *n, struct sh_err *e);
void sh_stored_sequences_free(struct sh_stored_sequence *q, int n);

/* The tokens of a sequence: new array of n_tokens. */
int sh_store_tokens(struct sh_store *s, int sequence, int32_t **tokens, int *n, struct sh_err *e);

/* Blocks of one kind of one (sequence, layer) in order of head and row; head -1: all. The block and
 * its blob are valid during the callback. A callback that fails fills e and returns nonzero. */
typedef int (*sh_block_fn)(void *to, const struct sh_block *b, struct sh_err *e);
int sh_store_blocks(struct sh_store *s, int kind, int sequence, int layer, int head, sh_block_fn fn, void *to,
                    struct sh_err *e);

/* A sh_block_fn that copies blocks into a struct sh_batch. */
int sh_store_keep(void *batch, const struct sh_block *b, struct sh_err *e);

/* Has it no finished layer, no result and no plan? A run of which nothing was finished is nothing. 0 also where that
 * cannot be told. */
int sh_store_is_empty(struct sh_store *s);

/* Is this (sequence, layer) marked as done? 1, 0, or -1. */
int sh_store_is_done(struct sh_store *s, int sequence, int layer, struct sh_err *e);

/* The results of a command, sorted by their settings, or (settings not NULL) those of these settings. Strings are valid
 * during the callback. */
struct sh_stored_result {
    const char *settings, *metric;
    int layer, head;                        /* -1: of the whole model, of the whole layer */
    double value;                           /* NaN: undefined */
};
typedef int (*sh_result_fn)(void *to, const struct sh_stored_result *r, struct sh_err *e);
int sh_store_read_results(struct sh_store *s, const char *command, const char *settings, sh_result_fn fn, void *to,
                          struct sh_err *e);

/* How the results of a command were asked for: each different line once, in no order. */
typedef void (*sh_line_fn)(void *to, const char *line);
int sh_store_read_typed(struct sh_store *s, const char *command, sh_line_fn fn, void *to, struct sh_err *e);

/* SQLite's own check of the file's structure: 0, or -1 with its first complaint. */
int sh_store_check_pages(struct sh_store *s, struct sh_err *e);

#endif
