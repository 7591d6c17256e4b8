/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that writes finished layers to the store while the next ones are computed. Batches are
 * written in the order they are pushed, one transaction each. The queue is bounded in bytes, so a
 * slow disk slows the tracer down and does not fill the memory. */
#ifndef SH_TRACES_WRITER_H
#define SH_TRACES_WRITER_H

#include "traces/store.h"

struct sh_writer;

/* Borrows the store until sh_writer_end; nobody else may use it meanwhile. NULL: no thread was to be had. */
struct sh_writer *sh_writer_begin(struct sh_store *s, int run, size_t queue_bytes, struct sh_err *e);

/* Takes the batch's blocks. -1 once writing has failed: e says why, the blocks are freed. */
int sh_writer_push(struct sh_writer *w, struct sh_batch *b, struct sh_err *e);

/* Write what is queued, stop the thread, free. -1 if anything could not be written. */
int sh_writer_end(struct sh_writer *w, struct sh_err *e);

#endif
