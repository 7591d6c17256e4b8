/* SPDX-License-Identifier: Apache-2.0 */
/* See tok_added.h. */
#include "src/model/tok_added.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "src/base/mem.h"

static int32_t new_node(struct sh_added *a, unsigned char byte, int32_t next)
{
    if (a->n == a->cap) {
        a->cap = a->cap ? 2 * a->cap : 256;
        a->node = xreallocarray(a->node, (size_t)a->cap, sizeof *a->node);
    }
    a->node[a->n] = (struct sh_added_node){.id = -1, .next = next, .byte = byte};
    return a->n++;
}

/* The child of `parent` for a byte, 0 when there is none. */
static int32_t child_of(const struct sh_added *a, int32_t parent, unsigned char byte)
{
    if (!parent)
        return a->first[byte];
    int32_t i = a->node[parent].child;
    while (i && a->node[i].byte != byte)
        i = a->node[i].next;
    return i;
}

int sh_added_put(struct sh_added *a, const char *text, size_t n, int32_t id, unsigned flags)
{
    if (n > (size_t)(INT32_MAX / 4 - a->n))
        return -1;
    if (!a->n)
        new_node(a, 0, 0);
    int32_t at = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)text[i];
        int32_t child = child_of(a, at, byte);
        if (!child && at) {
            child = new_node(a, byte, a->node[at].child);
            a->node[at].child = child;
        } else if (!child) {
            child = a->first[byte] = new_node(a, byte, 0);
        }
        at = child;
    }
    a->node[at].id = id;
    a->node[at].flags = (unsigned char)flags;
    return 0;
}

void sh_added_free(struct sh_added *a)
{
    free(a->node);
}

static int is_space(uint32_t code)
{
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)code);
    return (code >= 9 && code <= 13) || code == 0x85 ||
           (c >= UTF8PROC_CATEGORY_ZS && c <= UTF8PROC_CATEGORY_ZP);
}

static int is_word(uint32_t code)
{
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)code);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NL) || c == UTF8PROC_CATEGORY_PC;
}

/* Where the character that ends at `end` begins; end > 0. */
static size_t before(const char *text, size_t end)
{
    do
        end--;
    while (end && ((unsigned char)text[end] & 0xc0) == 0x80);
    return end;
}

static int stands_alone(const char *text, size_t n, size_t at, size_t end)
{
    uint32_t code;
    if (at) {
        sh_utf8_get(text + before(text, at), &code);
        if (is_word(code))
            return 0;
    }
    if (end < n) {
        sh_utf8_get(text + end, &code);
        if (is_word(code))
            return 0;
    }
    return 1;
}

static void widen(const char *text, size_t n, size_t from, unsigned flags, struct sh_added_match *m)
{
    uint32_t code;
    while (flags & SH_ADDED_LSTRIP && m->at > from) {
        size_t at = before(text, m->at);
        sh_utf8_get(text + at, &code);
        if (!is_space(code))
            break;
        m->at = at;
    }
    while (flags & SH_ADDED_RSTRIP && m->end < n) {
        int length = sh_utf8_get(text + m->end, &code);
        if (!is_space(code))
            break;
        m->end += (size_t)length;
    }
}

int sh_added_next(const struct sh_added *a, const char *text, size_t n, size_t from,
                  struct sh_added_match *m)
{
    if (!a->n)
        return 0;
    for (size_t at = from; at < n; at++) {
        int32_t found = 0, node = a->first[(unsigned char)text[at]];
        size_t end = at;
        for (size_t i = at + 1; node; i++) {
            if (a->node[node].id >= 0) {
                found = node;
                end = i;
            }
            node = i < n ? child_of(a, node, (unsigned char)text[i]) : 0;
        }
        if (!found)
            continue;
        if (!(a->node[found].flags & SH_ADDED_WORD) || stands_alone(text, n, at, end)) {
            *m = (struct sh_added_match){at, end, a->node[found].id};
            widen(text, n, from, a->node[found].flags, m);
            return 1;
        }
        at = end - 1; /* a rejected match still uses its text up */
    }
    return 0;
}
