/* SPDX-License-Identifier: Apache-2.0 */
/* Text out of foreign files, made fit for messages. */
#ifndef SH_MODEL_SHOWN_H
#define SH_MODEL_SHOWN_H

#include <stddef.h>

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
