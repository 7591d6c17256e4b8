/* SPDX-License-Identifier: Apache-2.0 */
/* Records attention that another program computes while it computes it, as a run of a store: what `shears trace` would
 * have written. Sequences may grow, several at a time, and come into the store when they are complete; until then their
 * rows wait, compressed, in a temporary file. One thread at a time. */
#ifndef SH_APP_RECORD_RECORD_H
#define SH_APP_RECORD_RECORD_H

#include "traces/trace.h"

struct sh_recording;

/* How rows come: as scores, or as the codes that log8 has for them (src/base/log8.h). */
enum sh_recording_form { SH_RECORDING_F32, SH_RECORDING_LOG8 };

/* Rows [first_row, first_row + n_row) of all heads of a layer of a sequence. They follow the rows that came before. */
struct sh_recording_rows {
    int sequence, layer, first_row, n_row;
    int first_key, n_key;               /* the columns; at least the keys that one of the rows sees  */
    int window;                         /* width as in a block: > 0 a window, 0 none, < 0 not causal */
    int n_head;                         /* query heads of the layer; 0: as many as the model          */
    enum sh_recording_form form;
    const void *at;                     /* [n_head, n_row, n_key]; entries that a row does not see are ignored */
    const float *logit;                 /* logits of scores, up to a constant in each row; NULL: not known */
    const float *sink;                  /* [n_head, n_row]: the sink's share of each row; NULL: no sink */
};

/* Opens or makes the store and claims it. n_threads: threads that pack and compress. NULL: e says why. */
struct sh_recording *sh_recording_open(const char *path, int n_threads, struct sh_err *e);

/* What is recorded; everything is copied. Once, before the first sequence. run: all but statistics, layers (all are
 * recorded), program and command, which is as given. -1: the settings are not those of a run. */
int sh_recording_begin(struct sh_recording *r, const struct sh_trace_run *run, struct sh_err *e);

/* Begins a sequence, whose number is returned; -1: e says why. grows: more tokens may come. Unknown tokens are -1. */
int sh_recording_sequence(struct sh_recording *r, const char *source, const int32_t *token, int n, int grows,
                          struct sh_err *e);
int sh_recording_more(struct sh_recording *r, int sequence, const int32_t *token, int n, struct sh_err *e);

/* Queries 'q', keys 'k' or values 'v' of a layer's next n_row tokens. n_head: the layer's query heads, or at most the
 * KV heads, of which each then stands for several; width: numbers of each, at most the model's, which are then followed
 * by zeros. */
struct sh_recording_vectors {
    int sequence, layer;
    char kind;
    int n_head, n_row, width;
    const float *at;                    /* [n_head, n_row, width]                                  */
};

int sh_recording_vectors(struct sh_recording *r, const struct sh_recording_vectors *v, struct sh_err *e);
int sh_recording_rows(struct sh_recording *r, const struct sh_recording_rows *rows, struct sh_err *e);

/* Ends a sequence and writes it. Layers without rows count as layers that do not attend; each other layer must have a
 * row for each token. keep 0: the sequence is dropped. -1: nothing of it is in the store, or writing failed. */
int sh_recording_finish(struct sh_recording *r, int sequence, int keep, struct sh_err *e);

/* Number of sequences that were written or wait for the writer. */
int sh_recording_count(const struct sh_recording *r);

/* Writes what waits for the writer and closes; unfinished sequences are forgotten. A store that was made and has
 * nothing in it is removed. r is freed in any case; NULL is fine. -1: something could not be written. */
int sh_recording_close(struct sh_recording *r, struct sh_err *e);

/* Only frees memory: in a process that was forked from the one that records, whose threads and files are not here. */
void sh_recording_leave(struct sh_recording *r);

#endif
