/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of UTF-8: file names and names in foreign files may hold any bytes. */
#ifndef SH_BASE_UTF8_H
#define SH_BASE_UTF8_H

#include <stdio.h>
#include <string.h>

/* The bytes of UTF-8's mark (BOM) at the beginning of a text, which are not part of it: 3 or 0. */
static inline size_t sh_utf8_mark(const char *text, size_t bytes)
{
    return bytes >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
}

/* The encoding of a text whose units have two or four bytes, by the name that iconv takes: found by its mark or,
 * without one, by the places of zero bytes. NULL: it has neither; UTF-8 has no zero bytes. */
static inline const char *sh_wide_text(const char *text, size_t bytes)
{
    static const struct { const char *mark; size_t n; const char *name; } marks[] = {
        {"\xff\xfe\0\0", 4, "UTF-32"}, {"\0\0\xfe\xff", 4, "UTF-32"}, {"\xff\xfe", 2, "UTF-16"},
        {"\xfe\xff", 2, "UTF-16"}};
    size_t zeros[4] = {0}, n = (bytes < 4096 ? bytes : 4096) / 4;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (bytes >= marks[i].n && !memcmp(text, marks[i].mark, marks[i].n))
            return marks[i].name;
    for (size_t i = 0; i < 4 * n; i++)
        zeros[i % 4] += !text[i];
    size_t even = zeros[0] + zeros[2], odd = zeros[1] + zeros[3];
    if (even + odd < 4 || 25 * (even + odd) < n)        /* some text has a zero or two */
        return NULL;
    if ((zeros[3] == n && 2 * zeros[2] > n) || (zeros[0] == n && 2 * zeros[1] > n))
        return zeros[3] == n ? "UTF-32LE" : "UTF-32BE";
    return !even ? "UTF-16LE" : !odd ? "UTF-16BE" : NULL;
}
#define SH_WIDE_HINT "convert it with iconv -f %s -t UTF-8 FILE > NEW"

/* Bytes of the well-formed sequence that begins here (1 at a string's end); 0: it is not well-formed. */
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

/* Bytes of the character that begins here (1 at a string's end), and whether it may be shown: neither a control
 * character, which a terminal would obey, nor a mark that changes the writing direction, nor an invalid one. */
static inline int sh_utf8_plain(const char *at, int *is_shown)
{
    const unsigned char *s = (const unsigned char *)at;
    int n = sh_utf8_bytes(at);
    unsigned code = n == 1 ? *s : *s & (0x7fu >> n);
    for (int i = 1; i < n; i++)
        code = code << 6 | (s[i] & 0x3fu);
    int is_control = (code && code < 32) || (code >= 0x7f && code < 0xa0);
    int turns_text = (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
                     (code >= 0x2066 && code <= 0x2069);
    *is_shown = n && !is_control && !turns_text && (code & 0xfffe) != 0xfffe;
    return n ? n : 1;
}

/* Prints a text from a foreign file; characters that may not be shown become question marks. */
static inline void sh_put_plain(FILE *to, const char *text)
{
    for (int n, is_shown; *text; text += n) {
        n = sh_utf8_plain(text, &is_shown);
        fwrite(is_shown ? text : "?", 1, is_shown ? (size_t)n : 1, to);
    }
}

#endif
