/* SPDX-License-Identifier: Apache-2.0 */
/* See gguf.h. What is there by key is in gguf_value.c. */
#include "src/model/files/gguf.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "GGUF data is little-endian and is used where it lies"
#endif

enum { MOST_VALUES = 1 << 16, MOST_TENSORS = 1 << 18, MOST_KEY = 1 << 16, DEEPEST = 4, LEAST_VALUE = 13,
       LEAST_TENSOR = 24, MOST_ALIGNMENT = 1 << 20 };

int sh_gguf_take(struct sh_gguf_cursor *c, void *out, size_t bytes)
{
    if (c->left < bytes)
        return -1;
    memcpy(out, c->at, bytes);
    c->at += bytes;
    c->left -= bytes;
    return 0;
}

int sh_gguf_take_text(struct sh_gguf_cursor *c, struct sh_gguf_text *out)
{
    uint64_t n;
    if (sh_gguf_take(c, &n, sizeof n) || n > c->left)
        return -1;
    *out = (struct sh_gguf_text){(const char *)c->at, (size_t)n};
    c->at += n;
    c->left -= (size_t)n;
    return 0;
}

/* ---- one value ---- */

static int cut_short(struct sh_err *e)
{
    return sh_fail(e, "its value extends past the end of the file (is the file truncated?)");
}

static int check_kind(uint32_t kind, const char *what, struct sh_err *e)
{
    return kind < SH_GGUF_N_KIND ? 0 : sh_fail(e, "found %s %u, expected 0 to %d", what, kind, SH_GGUF_N_KIND - 1);
}

/* A flag is one byte, 0 or 1. */
static int skip_fixed(struct sh_gguf_cursor *c, enum sh_gguf_kind kind, size_t n, struct sh_err *e)
{
    size_t bytes = n * sh_gguf_kinds[kind].bytes;
    for (size_t i = 0; i < n && kind == SH_GGUF_BOOL; i++)
        if (c->at[i] > 1)
            return sh_fail(e, "found a boolean of %d, expected 0 or 1", c->at[i]);
    c->at += bytes;
    c->left -= bytes;
    return 0;
}

static int skip_array(struct sh_gguf_cursor *c, int depth, struct sh_err *e);

/* n elements of a kind; each is known to find its smallest size. */
static int skip(struct sh_gguf_cursor *c, enum sh_gguf_kind kind, size_t n, int depth, struct sh_err *e)
{
    struct sh_gguf_text text;
    if (kind != SH_GGUF_STRING && kind != SH_GGUF_ARRAY)
        return skip_fixed(c, kind, n, e);
    for (size_t i = 0; i < n; i++) {
        if (kind == SH_GGUF_STRING && sh_gguf_take_text(c, &text))
            return cut_short(e);
        if (kind == SH_GGUF_ARRAY && skip_array(c, depth, e))
            return -1;
    }
    return 0;
}

/* The head of an array: what its elements are and how many. So many must find room. */
static int take_head(struct sh_gguf_cursor *c, enum sh_gguf_kind *item, size_t *n, struct sh_err *e)
{
    uint32_t kind;
    uint64_t count;
    if (sh_gguf_take(c, &kind, sizeof kind) || sh_gguf_take(c, &count, sizeof count))
        return cut_short(e);
    if (check_kind(kind, "an array of elements of kind", e))
        return -1;
    *item = (enum sh_gguf_kind)kind;
    if (count > c->left / sh_gguf_kinds[*item].bytes)
        return sh_fail(e, "found an array of %llu elements of kind %s, expected at most the %zu for which the file "
                          "has room", (unsigned long long)count, sh_gguf_kinds[*item].name,
                       c->left / sh_gguf_kinds[*item].bytes);
    *n = (size_t)count;
    return 0;
}

static int skip_array(struct sh_gguf_cursor *c, int depth, struct sh_err *e)
{
    enum sh_gguf_kind item;
    size_t n;
    if (depth >= DEEPEST)
        return sh_fail(e, "found nested arrays, expected at most %d levels", DEEPEST);
    return take_head(c, &item, &n, e) || skip(c, item, n, depth + 1, e) ? -1 : 0;
}

static int read_value(struct sh_gguf_cursor *c, struct sh_gguf_value *v, struct sh_err *e)
{
    uint32_t kind;
    if (sh_gguf_take(c, &kind, sizeof kind))
        return cut_short(e);
    if (check_kind(kind, "the kind", e))
        return -1;
    v->kind = v->item = (enum sh_gguf_kind)kind;
    v->n = 1;
    if (v->kind == SH_GGUF_ARRAY && take_head(c, &v->item, &v->n, e))
        return -1;
    if (v->kind != SH_GGUF_ARRAY && c->left < sh_gguf_kinds[v->kind].bytes)
        return cut_short(e);
    v->at = c->at;
    return skip(c, v->item, v->n, 1, e);
}

/* ---- all values ---- */

/* Keys are looked up and shown, so they are plain text. */
static int read_key(size_t i, struct sh_gguf_cursor *c, struct sh_gguf_text *key, struct sh_err *e)
{
    char shown[80];
    if (sh_gguf_take_text(c, key))
        return sh_fail(e, "key %zu extends past the end of the file (is the file truncated?)", i);
    for (size_t k = 0; k < key->bytes; k++)
        if (key->at[k] <= ' ' || key->at[k] > '~')
            return sh_fail(e, "key %zu: found '%s', expected plain ASCII", i,
                           sh_shown(key->at, key->bytes, shown, sizeof shown));
    if (!key->bytes || key->bytes >= MOST_KEY)
        return sh_fail(e, "key %zu: found %zu characters, expected 1 to %d", i, key->bytes, MOST_KEY - 1);
    return 0;
}

static int by_key(const void *a, const void *b)
{
    const struct sh_gguf_value *v = a, *w = b;
    const struct sh_gguf_text *x = &v->key, *y = &w->key;
    int order = memcmp(x->at, y->at, x->bytes < y->bytes ? x->bytes : y->bytes);
    return order ? order : x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

struct sh_gguf_value *sh_gguf_find(const struct sh_gguf *g, const char *key)
{
    struct sh_gguf_value wanted = {.key = {key, strlen(key)}};
    return g->n ? bsearch(&wanted, g->values, g->n, sizeof *g->values, by_key) : NULL;
}

static int read_values(struct sh_gguf *g, size_t n, struct sh_gguf_cursor *c, struct sh_err *e)
{
    char shown[80];
    g->values = xcalloc(n, sizeof *g->values);
    for (; g->n < n; g->n++) {
        struct sh_gguf_value *v = &g->values[g->n];
        if (read_key(g->n, c, &v->key, e))
            return -1;
        if (read_value(c, v, e))
            return sh_err_prefix(e, "key '%s'", sh_shown(v->key.at, v->key.bytes, shown, sizeof shown));
    }
    if (n)
        qsort(g->values, n, sizeof *g->values, by_key);
    for (size_t i = 1; i < n; i++) {
        const struct sh_gguf_text *key = &g->values[i].key;
        if (!by_key(&g->values[i - 1], &g->values[i]))
            return sh_fail(e, "key '%s': found a duplicate, expected each key once",
                           sh_shown(key->at, key->bytes, shown, sizeof shown));
    }
    return 0;
}

/* ---- the file ---- */

/* A count is believed only when the file could hold so many of the smallest. */
static int check_count(const struct sh_gguf *g, const char *what, uint64_t n, size_t most, size_t smallest, size_t left,
                       struct sh_err *e)
{
    if (n > most || n > left / smallest)
        return sh_fail(e, "found %llu %s, expected at most %zu in a file of %zu bytes", (unsigned long long)n, what,
                       most < left / smallest ? most : left / smallest, g->map.bytes);
    return 0;
}

static int read_alignment(struct sh_gguf *g, struct sh_err *e)
{
    int64_t n = 32;
    if (sh_gguf_whole(g, "general.alignment", 1, MOST_ALIGNMENT, &n, e))
        return -1;
    if (n & (n - 1))
        return sh_gguf_refuse(g, "general.alignment", "a power of two", e);
    g->alignment = (size_t)n;
    return 0;
}

static int read_header(struct sh_gguf *g, struct sh_err *e)
{
    struct sh_gguf_cursor c = {g->map.at, g->map.bytes};
    uint32_t version = 0;
    uint64_t n_tensor = 0, n_value = 0;
    if (c.left < 24 || memcmp(c.at, "GGUF", 4))
        return sh_fail(e, "not a GGUF file: its %zu bytes %s", c.left,
                       c.left < 4 || memcmp(c.at, "GGUF", 4) ? "do not begin with GGUF" :
                       "end within the header (is the file truncated?)");
    c.at += 4;
    c.left -= 4;
    sh_gguf_take(&c, &version, sizeof version);
    if (version && !(version & 0xffffu))
        return sh_fail(e, "found a big-endian GGUF file, expected little-endian");
    if (version < 2 || version > 3)
        return sh_fail(e, "found GGUF version %u, expected 2 or 3", version);
    sh_gguf_take(&c, &n_tensor, sizeof n_tensor);
    sh_gguf_take(&c, &n_value, sizeof n_value);
    if (check_count(g, "values", n_value, MOST_VALUES, LEAST_VALUE, c.left, e) ||
        check_count(g, "tensors", n_tensor, MOST_TENSORS, LEAST_TENSOR, c.left, e) ||
        read_values(g, (size_t)n_value, &c, e))
        return -1;
    g->n_tensor = (size_t)n_tensor;
    g->tensors_at = g->map.bytes - c.left;
    return read_alignment(g, e);
}

struct sh_gguf *sh_gguf_open(const char *path, const struct sh_map *map, struct sh_err *e)
{
    struct sh_gguf *g = xcalloc(1, sizeof *g);
    g->path = path;
    g->map = *map;
    if (!read_header(g, e))
        return g;
    sh_err_prefix(e, "%s", path);
    sh_gguf_close(g);
    return NULL;
}

void sh_gguf_close(struct sh_gguf *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->n; i++)
        free(g->values[i].index);
    free(g->values);
    free(g);
}
