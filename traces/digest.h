/* SPDX-License-Identifier: Apache-2.0 */
/* Content hash of a store. It does not depend on the order of writing, row numbers, free pages, the machine,
 * computing time, or the command as typed.
 *
 * Every row of sequence, done, scores, vectors, head_stats, result and plan is hashed together with its context
 * (model, settings and key of its run, its place there), and the hashes are added. Blobs are hashed unpacked, so the
 * version of the compressor does not matter. Results measured by a clock (listed in digest.c) are left out; times
 * computed by a simulation are content. 128-bit FNV-1a, mixed at the end: it detects differences and gives no
 * protection against malice. */
#ifndef SH_TRACES_DIGEST_H
#define SH_TRACES_DIGEST_H

#include "traces/store.h"

struct sh_digest { uint64_t high, low; };

struct sh_digest_counts { long long runs, sequences, layers, blocks, results, plans; };

int sh_digest_store(struct sh_store *s, struct sh_digest *out, struct sh_digest_counts *n, struct sh_err *e);

/* Hash of one layer of one sequence without its context: for comparing the same layer of two stores. */
int sh_digest_layer(struct sh_store *s, int sequence, int layer, struct sh_digest *out, struct sh_err *e);

/* Hash of the results of one command and settings; *n: their number, times included. */
int sh_digest_results(struct sh_store *s, const char *command, const char *settings, struct sh_digest *out, int *n,
                      struct sh_err *e);

static inline int sh_digest_same(const struct sh_digest *a, const struct sh_digest *b)
{
    return a->high == b->high && a->low == b->low;
}

#endif
