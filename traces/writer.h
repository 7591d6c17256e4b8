/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that writes finished layers to the store while the next ones are computed. Batches are
 * written in the order they are pushed; those that wait when the thread is free share a transaction, up to 64 MiB of
 * them, since each commit waits for the disk. The queue is bounded in bytes, so a slow disk slows the tracer down and
 * does not fill the memory. Programs that read the store, or write to it, are waited for without end. */
#ifndef SH_TRACES_WRITER_H
#define SH_TRACES_WRITER_H

#include "src/base/stages.h"
#include "traces/store.h"

struct sh_writer;

/* Borrows the store until sh_writer_end; nobody else may use it meanwhile. NULL: no thread was to be had. */
struct sh_writer *sh_writer_begin(struct sh_store *s, int run, size_t queue_bytes, struct sh_err *e);

/* Transactions count their time from here on; NULL: they do not. Before anything is pushed. */
void sh_writer_time(struct sh_writer *w, struct sh_stages *stages);

/* Called, once a wait, by the writer's thread after some seconds of waiting for another program. Before anything is
 * pushed. */
void sh_writer_tell(struct sh_writer *w, void (*tell)(void *to, const char *path), void *to);

/* Takes the batch's blocks. -1 once writing has failed: e says why, the blocks are freed. */
int sh_writer_push(struct sh_writer *w, struct sh_batch *b, struct sh_err *e);

/* Write what is queued, stop the thread, free. -1 if anything could not be written. */
int sh_writer_end(struct sh_writer *w, struct sh_err *e);

#endif
