/* SPDX-License-Identifier: Apache-2.0 */
/* The trace store: one SQLite file (schema.sql). Opaque; one connection, one thread at a time.
 *
 * Writing: sh_store_create, sh_store_begin (finds or makes the run with these settings), then sh_store_write with one
 * or more (sequence, layer) pairs: each call is one transaction, so a killed program leaves only whole layers in the
 * file, and the same command continues from there.
 * Reading: sh_store_open, sh_store_runs, sh_store_sequences, sh_store_blocks.
 * Every error names the file. A file of another program or of another version is refused. */
#ifndef SH_TRACES_STORE_H
#define SH_TRACES_STORE_H

#include "traces/trace.h"

/* A file identifies itself: application id "SHRS", and the version of its content. Version 1 had another log8. New
 * files have version 2; version 3 also allows rows that are not causal, and a file changes to it when the first of
 * them is written. */
/* The last two: with a run that is not causal; with one whose layers differ in their query heads. */
enum { SH_STORE_APPLICATION = 0x53485253, SH_STORE_VERSION = 2, SH_STORE_ORDERLESS = 3, SH_STORE_UNEVEN = 4 };

struct sh_store;

/* For the program, before it opens a store: memory that SQLite does not get ends it, as everywhere. Another program's
 * SQLite stays as it is, where the same failure is an error. */
void sh_store_take_memory(void);

struct sh_store *sh_store_create(const char *path, struct sh_err *e);   /* opens, or makes */
struct sh_store *sh_store_open(const char *path, struct sh_err *e);     /* must exist; read only */
struct sh_store *sh_store_open_read_only(const char *path, struct sh_err *e);     /* must exist; writes nothing, except
                                                                         * to undo a killed writer's change */
struct sh_store *sh_store_update(const char *path, struct sh_err *e);   /* must exist; for results */
void sh_store_close(struct sh_store *s);                                /* NULL is fine */
int sh_store_sync(struct sh_store *s, struct sh_err *e);              /* forces committed data to disk */
void sh_store_remove(const char *path);                 /* the file, and SQLite's files next to it */
void sh_store_remove_leftovers(const char *path);                   /* remove leftovers of a killed sh_store_create */
int sh_store_was_made(const struct sh_store *s);        /* did sh_store_create make the file? */
const char *sh_store_path(const struct sh_store *s);

/* Claim the store for one job, until it is closed (wait.c): the stores of a job by ranks, those of its ranks, and
 * shards. Waits some seconds for a holder that is about to end. -1: another process holds it. */
int sh_store_lock(struct sh_store *s, struct sh_err *e);

/* The same without a limit: tell is called once, after a second. -1: interrupted. */
int sh_store_wait_lock(struct sh_store *s, void (*tell)(const char *path), struct sh_err *e);

/* Is the store of that name claimed? Waits likewise for the holder to end. This process must not have the store
 * open. */
int sh_store_is_locked(const char *path);

/* ---- writing ---- */

/* The run with these settings and tokens: found (its finished layers are marked in done[sequence * n_layers + layer -
 * first_layer]) or made, with all its sequences, in one transaction. `key` is the hash that identifies it. Returns
 * the run's id, or -1. done: [n * n_layers], zeroed by the caller. */
int sh_store_begin(struct sh_store *s, const struct sh_trace_run *run, const char *key,
                   const struct sh_trace_sequence *sequence, int n, unsigned char *done, struct sh_err *e);

/* Marks the finished layers of the run with that key, as sh_store_begin does; 0: no such run. */
int sh_store_finished(struct sh_store *s, const struct sh_trace_run *run, const char *key, int n, unsigned char *done,
                      struct sh_err *e);

/* Write n whole (sequence, layer) pairs of that run in one transaction: all or none. They are on disk on return. A run
 * that was begun with fewer sequences gets those that batches make, in order; whoever does that has claimed the store,
 * so that a run's sequences have neighbouring numbers. */
int sh_store_write(struct sh_store *s, int run, const struct sh_batch *const *b, int n, struct sh_err *e);

/* Add to the run's computing time. */
int sh_store_add_seconds(struct sh_store *s, int run, double seconds, struct sh_err *e);

/* Say how the command was typed that stores results here: the line is stored with them for those who want to repeat
 * them. Until this is said, and with NULL, none is stored. Not copied. Returns the store, which may be NULL. */
struct sh_store *sh_store_typed(struct sh_store *s, const char *line);

/* Replace the results of (command, settings): erase them first, then put each, in one transaction. */
int sh_store_results_begin(struct sh_store *s, const char *command, const char *settings, struct sh_err *e);
int sh_store_result(struct sh_store *s, const char *command, const char *settings, const char *metric, int layer,
                    int head, double value, struct sh_err *e);          /* -1: NULL; NaN: NULL */
int sh_store_results_end(struct sh_store *s, struct sh_err *e);

/* Of the open results: what they were measured on, for which stores of before get a table. */
enum { SH_MEASURED_NAME = 64 };
struct sh_measured {                    /* some texts                                             */
    char name[SH_MEASURED_NAME];        /* names of their files, without folders; "": not known   */
    int texts;                          /* 0: not known                                           */
    long long tokens;                   /* tokens of all of them                                  */
    uint64_t hash;                      /* hash of their ids; 0: not known                        */
};
int sh_store_measured(struct sh_store *s, const char *command, const char *settings, const struct sh_measured *on,
                      struct sh_err *e);
/* Of the open results: sums of each sequence, n numbers, for which stores of before get a table, too. */
int sh_store_sums(struct sh_store *s, const char *command, const char *settings, const double *sums, size_t n,
                  struct sh_err *e);
int sh_store_results_erase(struct sh_store *s, const char *command, const char *settings, struct sh_err *e);

/* All results that begin and end in between form one transaction: all are stored, or none; each commit waits for the
 * disk. bad: something in between failed, so discard them; returns -1 then, and when the commit fails. */
int sh_store_group_begin(struct sh_store *s, struct sh_err *e);
int sh_store_group_end(struct sh_store *s, int bad, struct sh_err *e);

/* Store the plan of that name, as JSON, for the run's model; it replaces one of the same name. */
int sh_store_keep_plan(struct sh_store *s, int run, const char *name, const char *json, struct sh_err *e);

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

/* Number of scores in the rows of a run, or -1. Scans all blocks. */
long long sh_store_scores(struct sh_store *s, int run, struct sh_err *e);

/* Bytes of the scores and head_stats blobs of a run, or -1. Scans all of them. */
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

/* The blocks of one kind of one (sequence, layer), ordered by head and row; head -1: all. The block and its blob are
 * valid during the callback. A callback that fails fills e and returns nonzero. */
typedef int (*sh_block_fn)(void *to, const struct sh_block *b, struct sh_err *e);
int sh_store_blocks(struct sh_store *s, int kind, int sequence, int layer, int head, sh_block_fn fn, void *to,
                    struct sh_err *e);

/* A sh_block_fn that copies blocks into a struct sh_batch. */
int sh_store_keep(void *batch, const struct sh_block *b, struct sh_err *e);

/* Does the store have no finished layer, no result and no plan? A run without finished layers does not count. 0 also
 * on error. */
int sh_store_is_empty(struct sh_store *s);

/* Is this (sequence, layer) marked as done? 1, 0, or -1. */
int sh_store_is_done(struct sh_store *s, int sequence, int layer, struct sh_err *e);

/* The same for readers of rows. SILENT: it is done, but the layer does not attend, so that there are none. */
enum sh_layer_state { SH_LAYER_UNFINISHED, SH_LAYER_DONE, SH_LAYER_SILENT };
int sh_store_layer(struct sh_store *s, int sequence, int layer, struct sh_err *e);

/* The query and KV heads of a finished layer that attends: as many as the run has, or fewer if the layer says so; the
 * first are a multiple of the second. */
int sh_store_heads(struct sh_store *s, int sequence, int layer, const struct sh_stored_run *run,
                   struct sh_layer_heads *out, struct sh_err *e);

/* The results of a command (NULL: of all), grouped by settings, or (settings not NULL) those of these settings. Strings
 * are valid during the callback. */
struct sh_stored_result {
    const char *command, *settings, *metric;
    int layer, head;                        /* -1: whole model, whole layer */
    double value;                           /* NaN: undefined */
};
typedef int (*sh_result_fn)(void *to, const struct sh_stored_result *r, struct sh_err *e);
int sh_store_read_results(struct sh_store *s, const char *command, const char *settings, sh_result_fn fn, void *to,
                          struct sh_err *e);

/* What a command's results were measured on, in order of their settings. */
typedef void (*sh_measured_fn)(void *to, const char *settings, const struct sh_measured *on);
int sh_store_read_measured(struct sh_store *s, const char *command, sh_measured_fn fn, void *to, struct sh_err *e);

/* The command lines of a command's results: each different line once, unordered. */
typedef void (*sh_line_fn)(void *to, const char *line);
int sh_store_read_typed(struct sh_store *s, const char *command, sh_line_fn fn, void *to, struct sh_err *e);

/* SQLite's own check of the file structure: 0, or -1 with the first problem found. */
int sh_store_check_pages(struct sh_store *s, struct sh_err *e);

#endif
