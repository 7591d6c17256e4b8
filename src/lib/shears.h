/* SPDX-License-Identifier: Apache-2.0 */
/* libshears: attention traces, eviction policies and capacity plans in C. Link with `pkg-config --libs shears`.
 *
 *     struct shears_error *e = NULL;
 *     const struct shears_option options[] = {{"db", "t.db"}, {"policy", "h2o:recent=25"}, {"budget", "0.2"}, {0}};
 *     struct shears_result *r = shears_ask("replay", options, NULL, &e);
 *     const struct shears_column *mass = shears_column(shears_table(r, "results"), "kept_mass");
 *     printf("%g\n", mass->reals[0]);
 *     shears_result_free(r);
 *
 * Errors. A function that can fail returns NULL or -1 and, where `e` is not NULL, sets *e to a new error, which the
 * caller frees. Invalid input (NULL, indices out of range, damaged files) gives an error, never a crash. After a
 * failure the contents of outputs are undefined.
 *
 * Memory. The caller owns what a function returns as a pointer to non-const, and frees it with the function named
 * there. A pointer to const belongs to the object that was asked, and is valid as long as that object exists. Strings
 * are UTF-8, end with a zero byte and are copied. If a small allocation fails, the process ends with a message on
 * stderr, as the program does.
 *
 * Threads. Any thread may use any object, but one thread at a time. Different objects are independent, also two stores
 * opened from one file. Long work starts threads of its own, which end with the thread that asked. After fork() the
 * child may ask for new work but must not touch a store that was open before. The library keeps no state outside its
 * objects, installs no signal handler, and writes nothing to stdout.
 *
 * Indices count from 0. A row of attention is the softmax of one query over the keys that it sees. */
#ifndef SHEARS_H
#define SHEARS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHEARS_API __attribute__((visibility("default")))

/* The version of the loaded library, such as "0.1.0". */
SHEARS_API const char *shears_version(void);

/* ---- errors ---- */

enum shears_status {
    SHEARS_OK = 0,
    SHEARS_FAILED = 1,                  /* the work could not be done: bad file, full disk, stopped */
    SHEARS_MISUSED = 2,                 /* the request makes no sense: unknown option, impossible value */
    SHEARS_ABSENT = 3                   /* something optional is not here: GPU, module, gnuplot    */
};

struct shears_error;

SHEARS_API enum shears_status shears_error_status(const struct shears_error *e);        /* NULL: SHEARS_OK */
SHEARS_API const char *shears_error_message(const struct shears_error *e);  /* the next three parts in one line     */
SHEARS_API const char *shears_error_what(const struct shears_error *e);     /* the file, row or option in question  */
SHEARS_API const char *shears_error_found(const struct shears_error *e);    /* what is wrong there                  */
SHEARS_API const char *shears_error_expected(const struct shears_error *e); /* what would be right; may be ""       */
SHEARS_API const char *shears_error_hint(const struct shears_error *e);     /* what to do about it; may be ""       */
SHEARS_API void shears_error_free(struct shears_error *e);                  /* NULL is fine                         */

/* ---- results ---- */

/* The answer to a question: the tables of the program's --json, with the same names. The table "" holds the single
 * values, in one row. The items of a list are the rows of the table of its name. A list within an item is a table
 * "results.layers", whose first column "parent" is the row of "results" that the item belongs to. A value in an object
 * "ttft_s": {"p50": ...} is the column "ttft_s.p50". */
struct shears_result;
struct shears_table;

enum shears_kind { SHEARS_INT, SHEARS_REAL, SHEARS_TEXT, SHEARS_BOOL };

struct shears_column {
    const char *name;                   /* with its unit: "resident_bytes", "ttft_s.p50"           */
    enum shears_kind kind;              /* which of these is not NULL:                             */
    const int64_t *ints;                /* [rows] of INT and BOOL (0 or 1)                         */
    const double *reals;                /* [rows] of REAL; NaN: not defined                        */
    const char *const *texts;           /* [rows] of TEXT; NULL: null                              */
};

SHEARS_API size_t shears_result_tables(const struct shears_result *r);
SHEARS_API const struct shears_table *shears_result_table(const struct shears_result *r, size_t i); /* NULL: none    */
SHEARS_API const struct shears_table *shears_table(const struct shears_result *r, const char *name); /* NULL: none   */
SHEARS_API const char *shears_table_name(const struct shears_table *t);
SHEARS_API size_t shears_table_rows(const struct shears_table *t);
SHEARS_API size_t shears_table_columns(const struct shears_table *t);
SHEARS_API const struct shears_column *shears_table_column(const struct shears_table *t, size_t i); /* NULL: none    */
SHEARS_API const struct shears_column *shears_column(const struct shears_table *t, const char *name); /* NULL: none  */

/* The result as the program prints it: "text", "json", "csv" or "html" (a fragment). NULL: unknown format. */
SHEARS_API const char *shears_result_text(struct shears_result *r, const char *format, struct shears_error **e);

/* Remarks, such as where a value is from, each of one or more sentences. NULL: i is after the last. */
SHEARS_API const char *shears_result_remark(const struct shears_result *r, size_t i);
SHEARS_API void shears_result_free(struct shears_result *r);            /* NULL is fine */

/* ---- questions ---- */

/* Options are those of the program's commands, by the same names, without the dashes. */
struct shears_option {
    const char *name;                   /* "budget"; "": an argument that has no name; NULL ends the list */
    const char *value;                  /* "0.2"; NULL: an option without a value ("force")        */
};

/* Who watches long work. */
struct shears_watch {
    /* Called in the thread that asked, at most twenty times a second: the share of the work done, in [0, 1], or NaN.
     * Nonzero stops the work at the end of a transaction, with an error of status SHEARS_FAILED. */
    int (*progress)(void *to, double share);
    void *to;
};

/* Runs a command and returns its result: persistence, replay, theory, plan, capacity, simulate, calibrate, info,
 * verify, trace, import, merge, eval, drift, repetition, report. `shears COMMAND --help` and doc/commands.md describe
 * options and results. info takes an argument: {"", "policies"}, gpus, models, families, backends, or a store. An
 * option with several values is repeated. options and watch may be NULL. Free with shears_result_free. */
SHEARS_API struct shears_result *shears_ask(const char *command, const struct shears_option *options,
                                            const struct shears_watch *watch, struct shears_error **e);

/* A figure as SVG text: one of `shears plot`, with its options except -o; or one of capacity ("capacity",
 * "frontier") or simulate ("latency", "occupancy"), with the options of these commands. Needs gnuplot. Free with
 * shears_text_free. */
SHEARS_API char *shears_figure(const char *name, const struct shears_option *options, const struct shears_watch *watch,
                               struct shears_error **e);
SHEARS_API void shears_text_free(char *text);                           /* NULL is fine */

/* ---- stores ---- */

struct shears_store;

SHEARS_API struct shears_store *shears_store_open(const char *path, struct shears_error **e);   /* must exist; reads  */
SHEARS_API struct shears_store *shears_store_create(const char *path, struct shears_error **e); /* opens or makes     */
SHEARS_API void shears_store_close(struct shears_store *s);             /* NULL is fine */
SHEARS_API const char *shears_store_path(const struct shears_store *s);

/* The tables "runs" (run, model, n_layer, n_head, n_kv_head, d_head, record, codec, vectors, ...) and "sequences" (id,
 * run, tokens, source), in order of recording. Free with shears_result_free. */
SHEARS_API struct shears_result *shears_store_describe(struct shears_store *s, struct shears_error **e);

/* The table "results": what commands computed from the store (command, settings, metric, layer, value). layer -1: the
 * whole model; settings: JSON. command NULL: of all. Free with shears_result_free. */
SHEARS_API struct shears_result *shears_store_results(struct shears_store *s, const char *command,
                                                      struct shears_error **e);

/* Token ids, int32 [n], -1 where they are not known. `room`: the size of `to`, in numbers; to NULL: only count. Returns
 * n, or -1; no more than `room` ids are written. sequence: an id of the table "sequences". */
SHEARS_API int64_t shears_store_tokens(struct shears_store *s, int sequence, int32_t *to, size_t room,
                                       struct shears_error **e);

/* The attention of one query head: scores [rows, keys], f32, row-major, 0 where a key is masked or its score was not
 * stored. shears_store_shape gives rows and keys; `to` has room for rows * keys numbers. -1: no such head, missing
 * rows, or damage. */
SHEARS_API int shears_store_shape(struct shears_store *s, int sequence, int layer, int head, size_t *rows, size_t *keys,
                                  struct shears_error **e);
SHEARS_API int shears_store_scores(struct shears_store *s, int sequence, int layer, int head, float *to, size_t rows,
                                   size_t keys, struct shears_error **e);

/* The same row by row: query q sees the keys [first_key, first_key + n), score [n], f32; rest: the mass of scores that
 * were not stored. The pointer is valid during the call. Nonzero stops, with an error of status SHEARS_FAILED. */
struct shears_row {
    int q, first_key, n;
    float rest;
    const float *score;
};
SHEARS_API int shears_store_rows(struct shears_store *s, int sequence, int layer, int head,
                                 int (*row)(void *to, const struct shears_row *row), void *to, struct shears_error **e);

/* Queries 'q', keys 'k' or values 'v' of a head (of k and v a KV head), f32 [tokens, d_head]; 's': what the sink takes
 * of each row, f32 [tokens]. `room`: the size of `to`, in numbers; to NULL: only count. Returns the number of numbers,
 * or -1; nothing is written if they do not fit. */
SHEARS_API int64_t shears_store_vectors(struct shears_store *s, int sequence, int layer, char kind, int head, float *to,
                                        size_t room, struct shears_error **e);

/* ---- recording ---- */

/* Attention that the caller computes, written as `shears trace` writes what it computes: as one run of a store.
 *
 *     struct shears_recording *r = shears_record_open("t.db", &e);
 *     shears_record_begin(r, &what, &e);
 *     int64_t s = shears_record_sequence(r, "book.txt:0", ids, 512, 0, &e);
 *     for each layer:  shears_record_vectors(r, &q, &e); ...; shears_record_rows(r, &rows, &e); ...
 *     shears_record_finish(r, s, 1, &e);
 *     shears_record_close(r, &e);
 *
 * Sequences wait in a temporary file in the store's folder until they are finished, so several may grow at a time. A
 * store is claimed while it is recorded into: other programs can read it, but cannot record there. A function that
 * fails leaves the sequence unchanged, except shears_record_rows and shears_record_vectors: after these fail, the
 * sequence can only be forgotten. One thread at a time. In a child process after fork(), a recording can only be
 * closed, which writes nothing. */
struct shears_recording;

SHEARS_API struct shears_recording *shears_record_open(const char *path, struct shears_error **e);

struct shears_recorded {
    size_t bytes;                       /* sizeof (struct shears_recorded)                         */
    const char *model, *family;         /* "opt-125m", "opt"                                       */
    const char *weights;                /* "checkpoint", or another source of the weights          */
    uint64_t fingerprint;               /* equal only for the same model                           */
    int n_layer, n_head, n_kv_head;     /* n_head: query heads, a multiple of the KV heads         */
    int d_head, d_model;                /* numbers of a head's vector; of a token between layers, or 0 */
    int n_vocab, max_pos;               /* or 0 */
    const char *backend, *device;       /* what computes: "torch", "NVIDIA H100"                   */
    const char *dtype;                  /* "f32", "f16", "bf16"                                    */
    const char *command;                /* the command that recorded it                            */
    const char *attention;              /* "causal", "bidirectional", "cross"; the last two only full */
    const char *record, *codec, *vectors;   /* as of `shears trace`; vectors "" or any of "qkv", none of cross */
};

/* Says what is recorded. Once, before the first sequence. */
SHEARS_API int shears_record_begin(struct shears_recording *r, const struct shears_recorded *what,
                                   struct shears_error **e);

/* Begins a sequence of n tokens and returns its number, or -1. token: [n]; -1: not known. grows: not 0 if more tokens
 * may follow. */
SHEARS_API int64_t shears_record_sequence(struct shears_recording *r, const char *source, const int32_t *token,
                                          size_t n, int grows, struct shears_error **e);
SHEARS_API int shears_record_more(struct shears_recording *r, int64_t sequence, const int32_t *token, size_t n,
                                  struct shears_error **e);

/* Rows [first_row, first_row + n_row) of all query heads of a layer, which follow those that came before; n_head is 0
 * unless the layer has fewer than the model. Row t sees
 * the keys max(0, t - window + 1) to t (window 0: from 0 on), or, if window < 0, as in attention that is not causal,
 * the keys 0 to -window - 1. */
struct shears_rows {
    int64_t sequence;
    int layer, first_row, n_row;
    int first_key, n_key;               /* the columns: all keys that one of the rows sees, or more */
    int window, n_head;
    const float *score;                 /* [n_head, n_row, n_key] f32, the softmax; or NULL, and then */
    const float *logit;                 /* with score: what the softmax was taken of, up to a constant in each row; */
                                        /* or NULL: log8 needs more time without it                */
    const uint8_t *log8;                /* the same in the codes of log8 (doc/trace-format.md)     */
    const float *sink;                  /* [n_head, n_row]: what a sink takes of each row, or NULL */
};
SHEARS_API int shears_record_rows(struct shears_recording *r, const struct shears_rows *rows, struct shears_error **e);

/* Queries 'q', keys 'k' or values 'v' of a layer's next n_row tokens. n_head: the layer's query heads; of its KV heads
 * the model's or a divisor. width may be less than the model's d_head: zeros follow. */
struct shears_vectors {
    int64_t sequence;
    int layer;
    int kind;
    int n_head, n_row, width;
    const float *at;                    /* [n_head, n_row, width] f32                              */
};
SHEARS_API int shears_record_vectors(struct shears_recording *r, const struct shears_vectors *v,
                                     struct shears_error **e);

/* Ends a sequence. keep 0: forgets it. Otherwise each layer must have as many rows and vectors as there are tokens, or
 * none at all if it does not attend. */
SHEARS_API int shears_record_finish(struct shears_recording *r, int64_t sequence, int keep, struct shears_error **e);

/* Writes the finished sequences, and frees the recording in any case. Unfinished sequences are forgotten; a new store
 * without any sequence is removed. r may be NULL. */
SHEARS_API int shears_record_close(struct shears_recording *r, struct shears_error **e);

/* ---- eviction policies from outside ---- */

/* A policy only gives each cached token a score; the tokens with the lowest scores are evicted. For token t, with n
 * cached tokens and budget B:
 *   1. if t >= prefill and n >= B: the max(drop, n - B + 1) tokens with the lowest scores are evicted, the older first
 *      if scores are equal; the first `sinks` positions and the `recent` newest tokens are never evicted; `recent` and
 *      `drop` below 1 are fractions of B;
 *   2. token t takes a free slot: admit;
 *   3. the query of t attends over the cached tokens, itself included;
 *   4. the policy observes that row: observe.
 * With grouped heads the row is the mean over the query heads that share the KV head. Heads are replayed by several
 * threads at once, each with a state of its own: callbacks may share only data that they do not change. The same rows,
 * seed and knobs must give the same scores. */
struct shears_head {                    /* one KV head of one sequence                             */
    const double *knob;                 /* [knobs], in the order of the policy's                   */
    int layer, head, n_layer;
    int budget, prefill, capacity;      /* tokens; slots                                           */
    int n_token, d_head;                /* tokens that will come; numbers of a key, 0: none        */
    uint64_t seed;
};

struct shears_cache {
    const struct shears_head *head;
    int n_slot, n;                      /* slots [0, n_slot) have been used; n of them are live    */
    int newest;                         /* the slot of the newest token                            */
    const int *pos;                     /* [n_slot]: the token in a slot; -1: free                 */
    const float *k, *v;                 /* keys, values: [.., d_head] by position, or NULL         */
    int d_head, rows_by_slot;           /* 1: k and v are by slot                                  */
};

struct shears_step {
    int t, n_row;                       /* the token; entries that the row's softmax ran over      */
    const float *row;                   /* observe: [n_slot], by slot, 0 in free ones              */
    const float *q;                     /* observe: [n_query, d_head] or NULL                      */
    int n_query;
    const float *future;                /* not for policies from outside: NULL                     */
};

enum { SHEARS_NEEDS_KEYS = 2, SHEARS_NEEDS_VALUES = 4, SHEARS_NEEDS_QUERIES = 8, SHEARS_NEEDS_PROMPT = 16 };

struct shears_knob {
    const char *name;                   /* NULL ends the list                                      */
    double value, least, most;          /* by default, and the limits                              */
    int is_whole;                       /* whole numbers only                                      */
};

struct shears_policy {
    size_t bytes;                       /* sizeof (struct shears_policy)                           */
    const char *name;                   /* [a-z0-9_]: what {"policy", "NAME:knob=value"} calls it  */
    const struct shears_knob *knobs;    /* at most 8; NULL: none. Those named sinks, recent and drop are the cache's */
    unsigned needs;                     /* SHEARS_NEEDS_...                                        */
    unsigned rows;                      /* of state: f32 [rows, capacity]; a slot's are 0 when a token comes */
    /* Each may be NULL. state: NULL without rows. */
    void (*admit)(float *state, int slot, const struct shears_cache *c, const struct shears_step *s);
    void (*observe)(float *state, const struct shears_cache *c, const struct shears_step *s);
    /* The score of every slot, to score [n_slot]; s->t is the token that arrives. NULL: the position, so that the
     * oldest is evicted. A score that is not a number counts as the lowest. */
    void (*score)(float *state, const struct shears_cache *c, const struct shears_step *s, float *score);
};

/* The same as shears_ask("replay", ...), with one more policy. Its results are not kept in the store. */
SHEARS_API struct shears_result *shears_replay(const struct shears_policy *policy, const struct shears_option *options,
                                               const struct shears_watch *watch, struct shears_error **e);

/* ---- policies for a cache of the caller's own ---- */

/* Policies for a cache that the caller holds: the caller stores keys and values and computes attention, and an evictor
 * decides which tokens stay. One evictor serves one sequence, with all layers and KV heads of the model. It keeps what
 * `shears eval` keeps with the same policy, budget, prefill and seed. For each layer, once it has been described, and
 * for tokens in order:
 *
 *     shears_evictor_next(x, layer, n, &next, &e);      makes room for the next next.n tokens
 *     ... their keys and values go to next.slot; query t attends over the slots with 0 <= pos <= t ...
 *     shears_evictor_read(x, layer, &rows, &e);         the policy sees these rows
 *     shears_evictor_settle(x, layer, &moved, &e);      when there are no more tokens for now
 *
 * Free with shears_evictor_free. */
struct shears_evictor;

struct shears_evictor_setup {
    size_t bytes;                       /* sizeof (struct shears_evictor_setup)                    */
    const char *policy;                 /* "h2o:recent=25"; NULL with a plan                       */
    const char *budget;                 /* one: "64" tokens of each head, or "0.2" of length; NULL with a plan, or
                                         * for a policy that keeps all                             */
    const char *plan;                   /* a plan's file; NULL: none                               */
    const char *model;                  /* the model's name, for errors; may be NULL               */
    int layers, kv_heads;               /* of the model; a layer may have fewer KV heads           */
    int length;                         /* tokens that a share or a plan refers to; and the most that may come,
                                         * for a policy that depends on the length                 */
    int prefill;                        /* the first tokens see everything; -1: the plan's, or 0   */
    uint64_t seed;
};

/* NULL: the setup makes no sense, or the plan cannot be read or is for another model. */
SHEARS_API struct shears_evictor *shears_evictor_open(const struct shears_evictor_setup *setup,
                                                      struct shears_error **e);
SHEARS_API struct shears_evictor *shears_evictor_copy(const struct shears_evictor *x, struct shears_error **e);
SHEARS_API void shears_evictor_free(struct shears_evictor *x);          /* NULL is fine */

/* What rows must contain: a sum of SHEARS_NEEDS_...; -1: x is NULL. */
enum { SHEARS_NEEDS_SCORES = 1 };
SHEARS_API int shears_evictor_needs(const struct shears_evictor *x, struct shears_error **e);

/* Tokens that see everything: the setup's, or the plan's. */
SHEARS_API int shears_evictor_prefill(const struct shears_evictor *x, struct shears_error **e);

/* Describes a layer: its KV heads, the numbers of a key and of a value (0: the policy gets none), its window in tokens
 * (0: none; tokens outside it are evicted first). Call it before the layer's first token. */
SHEARS_API int shears_evictor_layer(struct shears_evictor *x, int layer, int kv_heads, int head_dim, int window,
                                    struct shears_error **e);

/* The layer's next tokens: n of them, from 1 to what was asked for. */
struct shears_evictor_next {            /* arrays are valid until the next call for x              */
    int n, kv_heads, n_slot;            /* n_slot: of the head with the most slots                 */
    const int *slot;                    /* [kv_heads, n]: where each token goes                    */
    const int *pos;                     /* [kv_heads, n_slot]: the token in each slot, these included; -1: none */
};
SHEARS_API int shears_evictor_next(struct shears_evictor *x, int layer, int n, struct shears_evictor_next *to,
                                   struct shears_error **e);

/* The rows of the first n of these tokens. Arrays that the policy does not need may be NULL. -1: a number is not
 * finite, or something is missing. */
struct shears_evictor_rows {
    int n, n_slot;                      /* as shears_evictor_next answered; n may be less          */
    int n_query;                        /* query heads of a KV head                                */
    const float *row;                   /* [kv_heads, n, n_slot]: the mean of the query heads' softmax, 0 where a
                                         * slot is free or not seen                                */
    const int *seen;                    /* [kv_heads, n]: slots that the softmax ran over          */
    const float *q;                     /* [kv_heads, n, n_query, head_dim]                        */
    const float *k, *v;                 /* [kv_heads, n, head_dim]                                 */
};
SHEARS_API int shears_evictor_read(struct shears_evictor *x, int layer, const struct shears_evictor_rows *rows,
                                   struct shears_error **e);

/* When exactly `prefill` tokens have been read, room is made as for one more. Heads that then have more slots than
 * their budget give these up, and tokens move; n_slot 0: nothing has moved. */
struct shears_evictor_moved {           /* valid until the next call for x                         */
    int kv_heads, n_slot;
    const int *from;                    /* [kv_heads, n_slot]: the old slot of the token in each slot; -1: none */
};
SHEARS_API int shears_evictor_settle(struct shears_evictor *x, int layer, struct shears_evictor_moved *to,
                                     struct shears_error **e);

/* How many tokens a head may keep; and which it keeps, in order, written to `to` (`room`: its size; NULL: only count):
 * returns how many. -1: there is no such head, or its layer has not been described. */
SHEARS_API int shears_evictor_budget(struct shears_evictor *x, int layer, int head, struct shears_error **e);
SHEARS_API int shears_evictor_kept(struct shears_evictor *x, int layer, int head, int *to, int room,
                                   struct shears_error **e);

/* Bytes that the policy keeps for its decisions, copies of keys and values included. */
SHEARS_API size_t shears_evictor_bytes(const struct shears_evictor *x);         /* 0: x is NULL */

#ifdef __cplusplus
}
#endif
#endif
