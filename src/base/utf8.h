/* SPDX-License-Identifier: Apache-2.0 */
/* What is UTF-8 and what is not: names of files and things in foreign files may be anything. */
#ifndef SH_BASE_UTF8_H
#define SH_BASE_UTF8_H

/* Bytes of the well-formed sequence that begins here (a string's end is 1); 0: it is none. */
static inline int sh_utf8_bytes(const char *at)
{
    const unsigned char *s = (const unsigned char *)at;
    int n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;                               /* overlong, a surrogate, or above U+10FFFF */
    return n;
}

#endif
