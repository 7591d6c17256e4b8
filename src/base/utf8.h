/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of UTF-8: file names and names in foreign files may hold any bytes. */
#ifndef SH_BASE_UTF8_H
#define SH_BASE_UTF8_H

#include <stdio.h>

/* Does the text begin with UTF-16's mark? */
static inline int sh_is_utf16(const char *text, size_t bytes)
{
    unsigned first = bytes > 1 ? (unsigned char)text[0] : 0, second = bytes > 1 ? (unsigned char)text[1] : 0;
    return (first == 0xff && second == 0xfe) || (first == 0xfe && second == 0xff);
}
#define SH_UTF16_HINT "convert it with iconv -f UTF-16 -t UTF-8 FILE > NEW"

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
