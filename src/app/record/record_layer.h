/* SPDX-License-Identifier: Apache-2.0 */
/* One layer of one sequence while it is recorded: its rows on their way through a recorder, whose finished blocks wait
 * in the spool, as the vectors do. */
#ifndef SH_APP_RECORD_RECORD_LAYER_H
#define SH_APP_RECORD_RECORD_LAYER_H

#include "src/app/record/record.h"
#include "src/app/record/spool.h"
#include "src/tracer/recorder.h"

struct sh_record_setup {                /* what all layers share */
    struct sh_recorder_options record;  /* all but the window                                     */
    char vectors[4];                    /* any of "qkv"                                            */
    int n_head, n_kv_head, d_head, orderless;
    int n_threads;
    struct sh_spool *spool;
};

struct sh_record_layer;

/* grows: the sequence may get longer. */
struct sh_record_layer *sh_record_layer_new(const struct sh_record_setup *s, int grows);
void sh_record_layer_free(struct sh_record_layer *l);   /* NULL is fine */

/* n_tokens: the number of tokens that the sequence has so far. */
int sh_record_layer_rows(struct sh_record_layer *l, const struct sh_recording_rows *rows, int n_tokens,
                         struct sh_err *e);
int sh_record_layer_vectors(struct sh_record_layer *l, const struct sh_recording_vectors *v, int n_tokens,
                            struct sh_err *e);

int sh_record_layer_is_empty(const struct sh_record_layer *l);     /* nothing has come, or l is NULL */

/* Has the layer all rows and vectors of a sequence of n_tokens? */
int sh_record_layer_check(const struct sh_record_layer *l, int n_tokens, struct sh_err *e);

/* Appends the layer, in the form in which it is stored, to the batch. Afterwards the layer can only be freed. */
int sh_record_layer_take(struct sh_record_layer *l, int n_tokens, struct sh_batch *b, struct sh_err *e);

#endif
