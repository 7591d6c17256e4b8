/* SPDX-License-Identifier: Apache-2.0 */
/* A foreign file as read-only memory, which must not shrink while it is mapped, and text from it in messages. */
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

/* They will soon be read: the system may begin to. */
void sh_map_ask(const void *at, size_t bytes);

/* At most size - 1 bytes of a text in `to`; what is not printable ASCII, and could steer a terminal, becomes '?'.
 * Returns `to`. */
static inline const char *sh_shown(const void *from, size_t bytes, char *to, size_t size)
{
    const unsigned char *text = from;
    size_t n = bytes < size - 1 ? bytes : size - 1;
    for (size_t i = 0; i < n; i++)
        to[i] = text[i] >= ' ' && text[i] < 0x7f ? (char)text[i] : '?';
    to[n] = '\0';
    return to;
}

#endif
