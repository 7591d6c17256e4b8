/* SPDX-License-Identifier: Apache-2.0 */
#include "src/tokenizer/tok_text.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "src/base/mem.h"

void sh_text_add(struct sh_text *t, const char *from, size_t n)
{
    if (t->cap - t->n < n || !t->at) {
        t->cap = t->cap * 2 > t->n + n ? t->cap * 2 : t->n + n + 64;
        t->at = xreallocarray(t->at, t->cap, 1);
    }
    if (n)
        memcpy(t->at + t->n, from, n);
    t->n += n;
}

void sh_pieces_add(struct sh_pieces *p, size_t at, size_t n)
{
    if (p->n == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 64;
        p->at = xreallocarray(p->at, p->cap, sizeof *p->at);
    }
    p->at[p->n++] = (struct sh_span){at, n};
}

void sh_pieces_clear(struct sh_pieces *p)
{
    p->n = p->text.n = 0;
}

void sh_pieces_free(struct sh_pieces *p)
{
    free(p->text.at);
    free(p->at);
    *p = (struct sh_pieces){0};
}

int sh_starts_with(const char *text, size_t n, const char *prefix, size_t n_prefix)
{
    return n >= n_prefix && !memcmp(text, prefix, n_prefix);
}

/* Table 3-7 of the Unicode standard: only the second byte has limits that depend on the first. */
int sh_utf8_sequence(const char *at, size_t n, int *bad)
{
    unsigned char first = (unsigned char)at[0], low = 0x80, high = 0xbf;
    int length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if ((first >= 0x80 && first < 0xc2) || first > 0xf4)
        length = 0;                     /* no sequence begins so */
    *bad = 1;
    if (length < 2)
        return length;
    if (first == 0xe0)
        low = 0xa0;
    if (first == 0xed)
        high = 0x9f;
    if (first == 0xf0)
        low = 0x90;
    if (first == 0xf4)
        high = 0x8f;
    for (int i = 1; i < length; i++) {
        unsigned char c = (size_t)i < n ? (unsigned char)at[i] : 0;
        if (c < low || c > high)
            return 0;
        low = 0x80;
        high = 0xbf;
        *bad = i + 1;
    }
    return length;
}

size_t sh_utf8_valid(const char *text, size_t n)
{
    size_t i = 0;
    for (int bad, length; i < n; i += (size_t)length)
        if (!(length = sh_utf8_sequence(text + i, n - i, &bad)))
            return i;
    return n;
}

int sh_utf8_get(const char *at, uint32_t *code)
{
    const unsigned char *s = (const unsigned char *)at;
    if (s[0] < 0x80) {
        *code = s[0];
        return 1;
    }
    int n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    uint32_t c = s[0] & (0x7fu >> n);
    for (int i = 1; i < n; i++)
        c = c << 6 | (s[i] & 0x3fu);
    *code = c;
    return n;
}

int sh_utf8_put(char *to, uint32_t code)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    int n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3f));
    to[0] = (char)((0xf00 >> n & 0xff) | code);
    return n;
}

size_t sh_utf8_before(const char *text, size_t end)
{
    do
        end--;
    while (end && ((unsigned char)text[end] & 0xc0) == 0x80);
    return end;
}

/* The property White_Space. */
static int is_space(uint32_t code)
{
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)code);
    return (code >= 9 && code <= 13) || code == 0x85 || (c >= UTF8PROC_CATEGORY_ZS && c <= UTF8PROC_CATEGORY_ZP);
}

size_t sh_spaces_end(const char *text, size_t from, size_t n)
{
    uint32_t code;
    for (int length; from < n; from += (size_t)length) {
        length = sh_utf8_get(text + from, &code);
        if (!is_space(code))
            break;
    }
    return from;
}

size_t sh_spaces_begin(const char *text, size_t from, size_t end)
{
    uint32_t code;
    for (size_t at; end > from; end = at) {
        at = sh_utf8_before(text, end);
        sh_utf8_get(text + at, &code);
        if (!is_space(code))
            break;
    }
    return end;
}

void sh_utf8_repair(struct sh_text *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        int bad, length = sh_utf8_sequence(text + i, n - i, &bad);
        if (length)
            sh_text_add(out, text + i, (size_t)length);
        else
            sh_text_add(out, "\xef\xbf\xbd", 3);
        i += (size_t)(length ? length : bad);
    }
}

/* Printable bytes of Latin-1 stand for themselves, the other 68 for U+0100 and up, in order. */
static uint32_t alphabet(unsigned char byte)
{
    if ((byte > 32 && byte < 127) || (byte > 160 && byte != 173))
        return byte;
    return 256u + (byte <= 32 ? byte : byte == 173 ? 67u : byte - 127u + 33u);
}

void sh_bytelevel_encode(struct sh_text *out, const char *text, size_t n)
{
    char buffer[512];
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        used += (size_t)sh_utf8_put(buffer + used, alphabet((unsigned char)text[i]));
        if (used > sizeof buffer - 4 || i + 1 == n) {
            sh_text_add(out, buffer, used);
            used = 0;
        }
    }
}

int sh_bytelevel_decode(struct sh_text *out, const char *text, size_t n)
{
    size_t before = out->n;
    for (size_t i = 0; i < n;) {
        uint32_t code;
        i += (size_t)sh_utf8_get(text + i, &code);
        uint32_t k = code - 256;
        uint32_t byte = code < 256 ? code : k <= 32 ? k : k < 67 ? k - 33 + 127 : 173;
        if (code > 323 || alphabet((unsigned char)byte) != code) {
            out->n = before;
            return -1;
        }
        char c = (char)byte;
        sh_text_add(out, &c, 1);
    }
    return 0;
}
