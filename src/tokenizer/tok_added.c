/* SPDX-License-Identifier: Apache-2.0 */
/* See tok_model.h: tokens that are cut out of the text as they are. */
#include "src/tokenizer/tok_model.h"

#include <stdlib.h>
#include <utf8proc.h>

#include "src/base/mem.h"

static int32_t new_node(struct sh_added *a)
{
    if (a->n == a->cap) {
        a->cap = a->cap ? 2 * a->cap : 256;
        a->node = xreallocarray(a->node, (size_t)a->cap, sizeof *a->node);
    }
    a->node[a->n] = (struct sh_added_node){.id = -1};
    return a->n++;
}

/* The slot of an edge, or the free one where it belongs. */
static struct sh_added_edge *slot_of(const struct sh_added *a, uint64_t from)
{
    size_t i = sh_tok_mix(a->seed, from) & (a->n_slot - 1);
    while (a->edge[i].from && a->edge[i].from != from)
        i = (i + 1) & (a->n_slot - 1);
    return &a->edge[i];
}

static void add_edge(struct sh_added *a, uint64_t from, int32_t to)
{
    if (2 * (a->n_edge + 1) > a->n_slot) {
        struct sh_added_edge *old = a->edge;
        size_t n_old = a->n_slot;
        if (!n_old)
            a->seed = sh_tok_seed();
        a->n_slot = n_old ? 2 * n_old : 256;
        a->edge = xcalloc(a->n_slot, sizeof *a->edge);
        for (size_t i = 0; i < n_old; i++)
            if (old[i].from)
                *slot_of(a, old[i].from) = old[i];
        free(old);
    }
    *slot_of(a, from) = (struct sh_added_edge){from, to};
    a->n_edge++;
}

int32_t sh_added_child(const struct sh_added *a, int32_t parent, unsigned char byte)
{
    if (!parent)
        return a->first[byte];
    return a->n_slot ? slot_of(a, (uint64_t)parent << 8 | byte)->to : 0;
}

int sh_added_put(struct sh_added *a, const char *text, size_t n, int32_t id, unsigned flags, struct sh_err *e)
{
    if (n > SH_ADDED_LONGEST)
        return sh_fail(e, "\"%.40s…\" has %zu bytes, expected at most %u", text, n, SH_ADDED_LONGEST);
    if (n > (size_t)(INT32_MAX / 4 - a->n))
        return sh_fail(e, "the added tokens are too long in total");
    if (!a->n)
        new_node(a);
    int32_t at = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)text[i];
        int32_t child = sh_added_child(a, at, byte);
        if (!child) {
            child = new_node(a);
            if (at)
                add_edge(a, (uint64_t)at << 8 | byte, child);
            else
                a->first[byte] = child;
        }
        at = child;
    }
    a->node[at].id = id;
    a->node[at].flags = flags;
    return 0;
}

void sh_added_free(struct sh_added *a)
{
    free(a->node);
    free(a->edge);
}

static int is_word(uint32_t code)
{
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)code);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NL) || c == UTF8PROC_CATEGORY_PC;
}

static int stands_alone(const char *text, size_t n, size_t at, size_t end)
{
    uint32_t before = 0, after = 0;
    if (at)
        sh_utf8_get(text + sh_utf8_before(text, at), &before);
    if (end < n)
        sh_utf8_get(text + end, &after);
    return !is_word(before) && !is_word(after);
}

size_t sh_added_longest(const struct sh_added *a, const char *text, size_t n, int32_t *node)
{
    if (!a->n || !n)
        return 0;
    size_t found = 0;
    int32_t at = a->first[(unsigned char)text[0]];
    for (size_t i = 1; at; i++) {
        if (a->node[at].id >= 0) {
            found = i;
            *node = at;
        }
        at = i < n ? sh_added_child(a, at, (unsigned char)text[i]) : 0;
    }
    return found;
}

int sh_added_next(const struct sh_added *a, const char *text, size_t n, size_t from, struct sh_added_match *m)
{
    if (!a->n)
        return 0;
    for (size_t at = from; at < n; at++) {
        int32_t node = 0;
        if (!a->first[(unsigned char)text[at]])
            continue;
        size_t length = sh_added_longest(a, text + at, n - at, &node);
        if (!length)
            continue;
        unsigned flags = a->node[node].flags;
        if (!(flags & SH_ADDED_WORD) || stands_alone(text, n, at, at + length)) {
            *m = (struct sh_added_match){at, at + length, a->node[node].id};
            if (flags & SH_ADDED_LSTRIP)
                m->at = sh_spaces_begin(text, from, at);
            if (flags & SH_ADDED_RSTRIP)
                m->end = sh_spaces_end(text, m->end, n);
            return 1;
        }
        at += length - 1;               /* a rejected match still uses its text up */
    }
    return 0;
}
