/* SPDX-License-Identifier: Apache-2.0 */
/* Data that wait until their sequence is complete: bytes at the end of a temporary file without a name in the store's
 * folder. The file starts again from its beginning when nothing waits. Reading is possible from several threads. */
#ifndef SH_APP_RECORD_SPOOL_H
#define SH_APP_RECORD_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"

struct sh_spool;

struct sh_spool *sh_spool_new(const char *store_path);
void sh_spool_free(struct sh_spool *s);                 /* NULL is fine */

/* Keeps the bytes. *at: where they are. */
int sh_spool_put(struct sh_spool *s, const void *from, size_t bytes, uint64_t *at, struct sh_err *e);
int sh_spool_get(struct sh_spool *s, void *to, size_t bytes, uint64_t at, struct sh_err *e);

/* Nothing waits any more. */
void sh_spool_empty(struct sh_spool *s);

#endif
