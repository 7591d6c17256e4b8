/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in golden files that JSON strings do not hold well. */
#ifndef TESTS_UNIT_BASE64_H
#define TESTS_UNIT_BASE64_H

#include <stddef.h>
#include <string.h>

/* Writes what `s` stands for to `out`; returns its length. */
static inline size_t from_base64(const char *s, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = 0;
    unsigned bits = 0, held = 0;
    for (; *s && *s != '='; s++) {
        bits = bits << 6 | (unsigned)(strchr(digits, *s) - digits);
        if ((held += 6) >= 8)
            out[n++] = (char)(bits >> (held -= 8));
    }
    return n;
}

#endif
