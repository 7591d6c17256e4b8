/* SPDX-License-Identifier: Apache-2.0 */
/* A file as read-only memory. It must not shrink while it is mapped. */
#ifndef SH_MODEL_FILES_MAP_H
#define SH_MODEL_FILES_MAP_H

#include <stddef.h>

#include "src/base/err.h"

struct sh_map {
    const unsigned char *at;        /* NULL when the file is empty */
    size_t bytes;
};

int sh_map_open(struct sh_map *m, const char *path, struct sh_err *e);
void sh_map_close(struct sh_map *m);        /* a zeroed one is fine */

/* The pages wholly inside [at, at + bytes) may leave memory; they come back when touched. */
void sh_map_drop(const void *at, size_t bytes);

#endif
