/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that writes finished layers to the store while the next ones are computed. Batches are written in the
 * order in which they are pushed; those waiting when the thread becomes free share a transaction, up to 64 MiB of
 * them, since each commit waits for the disk. The queue is bounded in bytes: a slow disk slows down the tracer
 * instead of filling the memory. Waits for other programs that read or write the store have no limit. */
#ifndef SH_TRACES_WRITER_H
#define SH_TRACES_WRITER_H

#include "src/base/stages.h"
#include "traces/store.h"

struct sh_writer;

/* Borrows the store until sh_writer_end; nobody else may use it meanwhile. NULL: the thread could not be started. */
struct sh_writer *sh_writer_begin(struct sh_store *s, int run, size_t queue_bytes, struct sh_err *e);

/* Call before the first push. stages: measure the time of transactions; NULL: do not. tell: called by the writer's
 * thread, once per wait, after some seconds of waiting for another program. */
void sh_writer_watch(struct sh_writer *w, struct sh_stages *stages, void (*tell)(void *to, const char *path), void *to);

/* Takes ownership of the batch's blocks. -1 once writing has failed: e says why, the blocks are freed. */
int sh_writer_push(struct sh_writer *w, struct sh_batch *b, struct sh_err *e);

/* Write what is queued, stop the thread, free. -1 if anything could not be written. */
int sh_writer_end(struct sh_writer *w, struct sh_err *e);

#endif
