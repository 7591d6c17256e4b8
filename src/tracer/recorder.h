/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the attention that a backend computes into blocks for the store: packed rows for full records, sets of keys
 * (SH_PACK_SETS) for sparse and summary ones, and for the statistics of full ones. One recorder covers the sequences of
 * one call of the backend and all their heads; rows of different heads may arrive at the same time. */
#ifndef SH_TRACER_RECORDER_H
#define SH_TRACER_RECORDER_H

#include "kernels/backend.h"
#include "traces/stats.h"
#include "traces/trace.h"

struct sh_recorder;

/* Leaves those thresholds in the spec of which a run keeps statistics: none that its scores give. named: somebody asked
 * for them; full runs have no others. */
void sh_recorder_thresholds(enum sh_record record, enum sh_codec codec, int named, struct sh_stats_spec *spec);

/* Says in the batch that the layer does not attend. */
void sh_recorder_say_silent(struct sh_batch *b);

/* Says which of the layer's heads are fewer than the model's. */
void sh_recorder_say_heads(struct sh_batch *b, const struct sh_layer_heads *layer, const struct sh_layer_heads *model);

struct sh_recorder_options {
    enum sh_record record;
    enum sh_codec codec;
    struct sh_stats_spec statistics;    /* full runs take none where it has no lane       */
    int n_head;
    int window;                         /* window of the layer's attention; 0: none       */
    size_t block_bytes;                 /* bytes of rows in a block, and in memory for each head; 0: 1 MiB */
    struct sh_stages *stages;           /* NULL: time is not measured                     */
    int n_threads;                      /* threads that hand out rows at the same time    */
};

/* n_tokens and wanted, [n_seq], stay the caller's and must outlive the recorder. Without statistics n_tokens may be
 * larger than what comes: then sh_recorder_end says that all is there. */
struct sh_recorder *sh_recorder_new(const struct sh_recorder_options *o, int n_seq, const int *n_tokens,
                                    const unsigned char *wanted);
void sh_recorder_free(struct sh_recorder *r);           /* NULL is fine */

/* The tap to give to the backend: packed as the record and codec need it. Valid as long as the recorder. */
struct sh_tap sh_recorder_tap(struct sh_recorder *r);

/* The sequence has no more rows. */
void sh_recorder_end(struct sh_recorder *r, int sequence);

/* After the backend's sync: the finished blocks of one sequence go to the end of the batch, and leave the recorder. */
void sh_recorder_take(struct sh_recorder *r, int sequence, struct sh_batch *b);

#endif
