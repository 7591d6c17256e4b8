/* SPDX-License-Identifier: Apache-2.0 */
/* A hash of what a store holds: equal for the same content, whatever the order in which it was written,
 * the rows' numbers, free pages, the machine, the time it took and the command as it was typed.
 *
 * Every row of sequence, done, scores, vectors, head_stats, result and plan is hashed by itself, with what
 * it hangs on (model, settings and key of its run, its place there), and the hashes are added. Blobs count as
 * they are unpacked, so the compressor's version does not matter. Results that a clock measured (digest.c lists
 * them) are left out; what a simulation says of time is content. 128-bit FNV-1a, mixed at the end: it finds
 * differences and is no proof against malice. */
#ifndef SH_TRACES_DIGEST_H
#define SH_TRACES_DIGEST_H

#include "traces/store.h"

struct sh_digest { uint64_t high, low; };

struct sh_digest_counts { long long runs, sequences, layers, blocks, results, plans; };

int sh_digest_store(struct sh_store *s, struct sh_digest *out, struct sh_digest_counts *n, struct sh_err *e);

/* What one layer of one sequence holds, without what it hangs on: for comparing the same layer of two
 * stores. */
int sh_digest_layer(struct sh_store *s, int sequence, int layer, struct sh_digest *out, struct sh_err *e);

/* The results of one command and settings; *n: how many there are, times included. */
int sh_digest_results(struct sh_store *s, const char *command, const char *settings, struct sh_digest *out, int *n,
                      struct sh_err *e);

static inline int sh_digest_same(const struct sh_digest *a, const struct sh_digest *b)
{
    return a->high == b->high && a->low == b->low;
}

#endif
