/* SPDX-License-Identifier: Apache-2.0 */
/* See tok.h. The map is <bytes of the double array, uint32><double array><strings>; the
 * array's units are those of Darts-clone: a label or value, an offset to the children, a flag. What
 * the map holds is checked where it is used, since only what a text reaches matters. */
#include "src/tokenizer/tok.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

#define LONGEST_RULE 256u               /* bytes that one rule may match, and may put there */
#define SPACE "\xe2\x96\x81"

static uint32_t little_endian(const char *at)
{
    const unsigned char *s = (const unsigned char *)at;
    return s[0] | (uint32_t)s[1] << 8 | (uint32_t)s[2] << 16 | (uint32_t)s[3] << 24;
}

int sh_sp_normal_read(struct sh_sp_normal *n, const struct sh_tok_arrays *a, struct sh_err *e)
{
    const struct sh_tok_string *map = &a->charsmap;
    n->add_prefix = a->add_prefix;
    n->prefix_once = a->prefix_once;
    n->squeeze = a->squeeze;
    n->escape = a->escape;
    if (!map->n)
        return 0;
    size_t bytes = map->n > 4 ? little_endian(map->at) : 0;
    if (!bytes || bytes % 4 || bytes > map->n - 4 || map->n - 4 - bytes < 1 || map->at[map->n - 1] != '\0')
        return sh_fail(e, "precompiled_charsmap: not a valid map: %zu bytes with an array of %zu bytes", map->n, bytes);
    n->n_unit = bytes / 4;
    n->unit = xreallocarray(NULL, n->n_unit, sizeof *n->unit);
    for (size_t i = 0; i < n->n_unit; i++)
        n->unit[i] = little_endian(map->at + 4 + 4 * i);
    sh_text_add(&n->to, map->at + 4 + bytes, map->n - 4 - bytes);
    return 0;
}

void sh_sp_normal_free(struct sh_sp_normal *n)
{
    if (!n)
        return;
    sh_added_free(&n->user);
    free(n->unit);
    free(n->to.at);
    free(n);
}

static uint32_t offset_of(uint32_t unit)
{
    return unit >> 10 << ((unit & 1u << 9) >> 6);
}

/* The bytes of the longest rule at `text`, 0: none; *value: where its string begins. */
static size_t find_rule(const struct sh_sp_normal *n, const char *text, size_t bytes, uint32_t *value)
{
    size_t found = 0, at = offset_of(n->unit[0]);
    for (size_t i = 0; i < bytes && i < LONGEST_RULE; i++) {
        at ^= (unsigned char)text[i];
        if (at >= n->n_unit)
            break;
        uint32_t unit = n->unit[at];
        if ((unit & (1u << 31 | 0xffu)) != (unsigned char)text[i])
            break;
        at ^= offset_of(unit);
        if (at >= n->n_unit)
            break;
        if (unit >> 8 & 1) {
            *value = n->unit[at] & 0x7fffffff;
            found = i + 1;
        }
    }
    return found;
}

struct part { const char *at; size_t n, taken; };

/* What the beginning of `text` becomes, and how much of it that is. */
static int next_part(const struct sh_sp_normal *n, const char *text, size_t bytes, struct part *p, struct sh_err *e)
{
    int32_t ignored;
    size_t taken = sh_added_longest(&n->user, text, bytes, &ignored);
    uint32_t value = 0, code;
    if (taken) {
        *p = (struct part){text, taken, taken};
        return 0;
    }
    if (!n->n_unit || !(taken = find_rule(n, text, bytes, &value))) {
        taken = (size_t)sh_utf8_get(text, &code);
        *p = (struct part){text, taken, taken};
        return 0;
    }
    const char *to = value < n->to.n ? n->to.at + value : NULL;
    size_t length = to ? strlen(to) : 0;
    if (!to || length > LONGEST_RULE || sh_utf8_valid(to, length) < length)
        return sh_fail(e, "precompiled_charsmap: a rule's replacement is not valid UTF-8");
    if (taken < bytes && ((unsigned char)text[taken] & 0xc0) == 0x80)
        return sh_fail(e, "precompiled_charsmap: a rule splits a character");
    *p = (struct part){to, length, taken};
    return 0;
}

static void put(const struct sh_sp_normal *n, const struct part *p, struct sh_text *out)
{
    size_t done = 0;
    for (size_t i = 0; i < p->n; i++)
        if (p->at[i] == ' ' && n->escape) {
            sh_text_add(out, p->at + done, i - done);
            sh_text_add(out, SPACE, 3);
            done = i + 1;
        }
    sh_text_add(out, p->at + done, p->n - done);
}

static int run_parts(const struct sh_sp_normal *n, const char *text, size_t bytes, size_t i,
                     struct sh_text *out, struct sh_err *e)
{
    int after_space = n->squeeze;
    while (i < bytes) {
        struct part p;
        if (next_part(n, text + i, bytes - i, &p, e))
            return -1;
        i += p.taken;
        while (after_space && p.n && p.at[0] == ' ') {
            p.at++;
            p.n--;
        }
        if (p.n) {
            put(n, &p, out);
            after_space = n->squeeze && p.at[p.n - 1] == ' ';
        }
        if (out->limit && out->n > out->limit)
            return sh_fail(e, "precompiled_charsmap: the normalised text exceeds %zu bytes", out->limit);
    }
    return 0;
}

/* With prefix_once, a text that begins with a space gets no other one: what the tokenizers library does for "legacy"
 * false (the slow class of transformers 4 added a second one). */
static int gets_prefix(const struct sh_sp_normal *n, const char *text, size_t bytes, int at_start)
{
    size_t width = strlen(SPACE);
    int has_one = *text == ' ' || (bytes >= width && !memcmp(text, SPACE, width));
    return n->add_prefix && (!n->prefix_once || (at_start && !has_one));
}

int sh_sp_normal_run(const struct sh_sp_normal *n, const char *text, size_t bytes, int at_start,
                     struct sh_text *out, struct sh_err *e)
{
    const char *space = n->escape ? SPACE : " ";
    size_t i = 0, begin = out->n, width = strlen(space);
    struct part p;
    while (n->squeeze && i < bytes) {
        if (next_part(n, text + i, bytes - i, &p, e))
            return -1;
        if (p.n != 1 || p.at[0] != ' ')
            break;
        i += p.taken;
    }
    if (i >= bytes)
        return 0;
    if (gets_prefix(n, text + i, bytes - i, at_start))
        sh_text_add(out, space, width);
    if (!n->squeeze && !n->n_unit && !n->user.n)
        put(n, &(struct part){text, bytes, bytes}, out);       /* only spaces change */
    else if (run_parts(n, text, bytes, i, out, e))
        return -1;
    while (n->squeeze && out->n >= begin + width && !memcmp(out->at + out->n - width, space, width))
        out->n -= width;
    return 0;
}
