/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy, versions 1 to 3: a magic word, a header in the form of a Python dictionary, raw data in C
 * order. One tensor, named for the file without its ending. Of types f2 (F16) and f4 (F32) can be read.
 *
 * The header is read as what numpy writes: a dictionary with exactly the keys 'descr', 'fortran_order' and
 * 'shape', in any order; a comma may follow the last. */
#include <string.h>

#include "src/base/mem.h"
#include "src/model/weights.h"

enum { MAGIC = 6, MOST_HEADER = 1 << 16, WORD = 24 };

struct text {                           /* what is left of the header */
    const char *at, *end;
};

static void skip_blanks(struct text *t)
{
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\n' || *t->at == '\t'))
        t->at++;
}

/* Take the character, whatever blanks lie before it. */
static int take(struct text *t, char c)
{
    skip_blanks(t);
    if (t->at == t->end || *t->at != c)
        return 0;
    t->at++;
    return 1;
}

/* A string without escapes; -1: none, or a longer one. */
static int take_string(struct text *t, char to[WORD])
{
    char quote = take(t, '\'') ? '\'' : take(t, '"') ? '"' : 0;
    size_t n = 0;
    while (quote && t->at < t->end && *t->at != quote && n < WORD - 1)
        to[n++] = *t->at++;
    to[n] = '\0';
    return quote && t->at < t->end && *t->at++ == quote ? 0 : -1;
}

static int take_word(struct text *t, const char *word)
{
    size_t n = strlen(word);
    skip_blanks(t);
    if ((size_t)(t->end - t->at) < n || memcmp(t->at, word, n))
        return 0;
    t->at += n;
    return 1;
}

static int take_number(struct text *t, size_t *out)
{
    size_t x = 0, digits = 0;
    skip_blanks(t);
    for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++, digits++)
        if (sh_mul(x, 10, &x) || sh_add(x, (size_t)(*t->at - '0'), &x))
            return -1;
    *out = x;
    return digits ? 0 : -1;
}

/* "()", "(3,)", "(2, 4)" */
static int take_shape(struct text *t, struct sh_stored *s)
{
    if (!take(t, '('))
        return -1;
    while (!take(t, ')')) {
        if (s->rank == SH_MAX_RANK || take_number(t, &s->shape[s->rank]))
            return -1;
        s->rank++;
        if (!take(t, ',') && !(t->at < t->end && *t->at == ')'))
            return -1;
    }
    return 0;
}

struct header {
    char descr[WORD];
    int fortran, seen;                  /* seen: a bit a key */
};

static int take_entry(struct text *t, struct header *h, struct sh_stored *s)
{
    char key[WORD];
    if (take_string(t, key) || !take(t, ':'))
        return -1;
    int which = !strcmp(key, "descr") ? 1 : !strcmp(key, "fortran_order") ? 2 : !strcmp(key, "shape") ? 4 : 0;
    if (!which || h->seen & which)
        return -1;
    h->seen |= which;
    if (which == 1)
        return take_string(t, h->descr);
    if (which == 4)
        return take_shape(t, s);
    h->fortran = take_word(t, "True");
    return h->fortran || take_word(t, "False") ? 0 : -1;
}

static int parse(struct text t, struct header *h, struct sh_stored *s)
{
    if (!take(&t, '{'))
        return -1;
    while (!take(&t, '}'))
        if (take_entry(&t, h, s) || (!take(&t, ',') && !(t.at < t.end && *t.at == '}')))
            return -1;
    skip_blanks(&t);
    return t.at == t.end && h->seen == 7 ? 0 : -1;
}

static const struct { const char *descr, *name; size_t bytes; } types[] = {
    {"<f4", "F32", 4}, {"<f2", "F16", 2}, {"<f8", "F64", 8}};

static int check(const struct header *h, struct sh_stored *s, size_t left, struct sh_err *e)
{
    char descr[WORD];
    size_t bytes = 0, n;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(h->descr, types[i].descr)) {
            memcpy(s->dtype, types[i].name, strlen(types[i].name) + 1);
            bytes = types[i].bytes;
        }
    if (!bytes)
        return sh_fail(e, "found numbers of type '%s', expected '<f4' or '<f2'",
                       sh_shown(h->descr, strlen(h->descr), descr, sizeof descr));
    if (h->fortran)
        return sh_fail(e, "found Fortran order, expected C order (convert it with numpy.ascontiguousarray)");
    if (sh_stored_elements(s, &n, e))
        return -1;
    s->bytes = n * bytes;
    return s->bytes == left ? 0 : sh_fail(e, "found %zu bytes of data, expected %zu for its shape and type", left,
                                          s->bytes);
}

static char *stem(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    char *copy = xstrdup(name);
    if (dot)
        copy[dot - name] = '\0';
    return copy;
}

int sh_npy_read(struct sh_part *p, struct sh_err *e)
{
    const unsigned char *at = p->map.at;
    size_t bytes = p->map.bytes, n = 0, from = 0;
    if (bytes >= 12 && !memcmp(at, "\x93NUMPY", MAGIC) && at[6] >= 1 && at[6] <= 3) {
        from = at[6] == 1 ? 10 : 12;
        n = at[8] | (size_t)at[9] << 8;
        if (at[6] > 1)
            n |= (size_t)at[10] << 16 | (size_t)at[11] << 24;
    }
    if (!from)
        return sh_fail(e, "not a .npy file (versions 1 to 3)");
    if (n > MOST_HEADER || n > bytes - from)
        return sh_fail(e, "found a header of %zu bytes, expected at most %zu", n,
                       bytes - from < MOST_HEADER ? bytes - from : (size_t)MOST_HEADER);
    struct sh_stored *s = p->tensors = xcalloc(1, sizeof *s);
    struct header h = {0};
    p->n = 1;
    s->name = stem(p->path);
    s->file = p->path;
    s->at = at + from + n;
    const char *text = (const char *)at + from;
    if (parse((struct text){text, text + n}, &h, s))
        return sh_fail(e, "malformed header, expected 'descr', 'fortran_order' and 'shape' as numpy writes them");
    return check(&h, s, bytes - from - n, e);
}
