/* SPDX-License-Identifier: Apache-2.0 */
/* See dump.h. Tensors become parts (a layer of a sequence each), the parts are sorted and then checked
 * against one another. */
#include "src/tracer/dump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

enum {
    MATRIX = 3,                         /* dimensions of a part                           */
    MOST_HEADS = 100000,
    MOST_ROWS = 1 << 22,                /* tokens of a sequence, as in a store            */
    MOST_LAYERS = 100000
};

#define MOST_PARTS 10000000
#define MOST_NUMBER 10000000             /* in a name                                    */

/* ---- names ---- */

/* Sequence, layer and kind of a tensor, from its name. */
struct name {
    enum sh_dump_kind kind;             /* attn if the pattern does not give it                   */
    int sequence, layer;                /* -1: the pattern does not give it                       */
};

const char *const sh_dump_kinds[] = {"attn", "q", "k", "v", NULL};

static const char *const words[] = {"{sequence}", "{layer}", "{kind}"};

enum { SEQUENCE, LAYER, KIND, N_WORD };

/* The word that the pattern goes on with; N_WORD: none. */
static int word_at(const char *pattern)
{
    int i = 0;
    while (i < N_WORD && strncmp(pattern, words[i], strlen(words[i])))
        i++;
    return i;
}

/* Each of {sequence}, {layer}, {kind} at most once, nothing else in braces. */
static int check_pattern(const char *pattern, struct sh_err *e)
{
    int seen[N_WORD] = {0};
    for (const char *p = pattern; *p; p++) {
        int i = *p == '{' ? word_at(p) : N_WORD;
        if (*p == '{' && (i == N_WORD || seen[i]))
            return sh_misused(e, "--key %s: at \"%s\": expected {sequence}, {layer} or {kind}, each at most once",
                              pattern, p);
        if (i < N_WORD) {
            seen[i] = 1;
            p += strlen(words[i]) - 1;
        }
    }
    return 0;
}

static int take_number(const char **name, int *out)
{
    int x = 0;
    const char *p = *name;
    for (; *p >= '0' && *p <= '9'; p++)
        if ((x = 10 * x + (*p - '0')) > MOST_NUMBER)
            return 0;
    int some = p > *name;
    *name = p;
    *out = x;
    return some;
}

static int take_kind(const char **name, enum sh_dump_kind *out)
{
    for (int i = 0; i < SH_N_DUMP_KIND; i++) {
        size_t n = strlen(sh_dump_kinds[i]);
        if (!strncmp(*name, sh_dump_kinds[i], n)) {
            *name += n;
            *out = (enum sh_dump_kind)i;
            return 1;
        }
    }
    return 0;
}

/* 1: the name is of that pattern. A number takes all digits there are, so nothing is ever tried twice. */
static int match(const char *pattern, const char *name, struct name *out)
{
    *out = (struct name){.kind = SH_DUMP_ATTN, .sequence = -1, .layer = -1};
    while (*pattern) {
        int word = *pattern == '{' ? word_at(pattern) : N_WORD;
        if (word == N_WORD) {
            if (*pattern++ != *name++)
                return 0;
            continue;
        }
        pattern += strlen(words[word]);
        if (word == KIND ? !take_kind(&name, &out->kind)
                         : !take_number(&name, word == LAYER ? &out->layer : &out->sequence))
            return 0;
    }
    return !*name;
}

/* ---- parts ---- */

static int by_place(const void *a, const void *b)
{
    const struct sh_dump_part *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->sequence != y->sequence)
        return x->sequence < y->sequence ? -1 : 1;
    return x->layer < y->layer ? -1 : x->layer > y->layer;
}

static int misfit(const struct sh_stored *t, const char *why, struct sh_err *e)
{
    char shape[160];
    sh_fail(e, "%s: tensor '%s' is %s: %s", t->file, t->name, sh_stored_shape(t, shape, sizeof shape), why);
    return sh_hint(e, "attention is [heads, queries, keys]; dimensions that the name does not give come first: layers, "
                      "then sequences");
}

/* The leading dimensions: how many layers and sequences lie in a tensor. */
static int lead(const struct sh_stored *t, const struct name *name, size_t *n_layer, size_t *n_seq,
                struct sh_err *e)
{
    size_t extra[2] = {1, 1};
    int n = t->rank - MATRIX;
    if (n < 0 || n > 2)
        return misfit(t, "expected 3 to 5 dimensions", e);
    for (int i = 0; i < n; i++)
        extra[i] = t->shape[i];
    /* one dimension: of layers, unless the name says the layer */
    *n_layer = n == 2 || (n == 1 && name->layer < 0) ? extra[0] : 1;
    *n_seq = n == 2 ? extra[1] : n == 1 && name->layer >= 0 ? extra[0] : 1;
    if (*n_layer > 1 && name->layer >= 0)
        return misfit(t, "its name gives one layer, but it holds several", e);
    if (*n_seq > 1 && name->sequence >= 0)
        return misfit(t, "its name gives one sequence, but it holds several", e);
    return 0;
}

static int check_shape(const struct sh_stored *t, struct sh_err *e)
{
    for (int i = 0; i < t->rank; i++)
        if (!t->shape[i])
            return misfit(t, "it is empty", e);
    const size_t *m = t->shape + t->rank - MATRIX;
    if (m[0] > MOST_HEADS || m[1] > MOST_ROWS || m[2] > MOST_ROWS)
        return misfit(t, "too many heads, queries or keys", e);
    return 0;
}

static int add_parts(struct sh_dump *d, const struct sh_stored *t, const struct name *name, struct sh_err *e)
{
    size_t n_layer = 1, n_seq = 1;
    enum sh_type type;
    if (lead(t, name, &n_layer, &n_seq, e) || check_shape(t, e) || sh_stored_type(t, &type, e))
        return -1;
    size_t n = n_layer * n_seq, bytes = t->bytes / n;
    if (n_layer > MOST_LAYERS || n > (size_t)(MOST_PARTS - d->n_part))
        return misfit(t, "too many layers or sequences", e);
    const size_t *m = t->shape + t->rank - MATRIX;
    d->part = xreallocarray(d->part, (size_t)d->n_part + n, sizeof *d->part);
    for (size_t i = 0; i < n; i++)
        d->part[d->n_part++] = (struct sh_dump_part){
            .kind = name->kind, .sequence = name->sequence >= 0 ? name->sequence : (int)(i % n_seq),
            .layer = name->layer >= 0 ? name->layer : (int)(i / n_seq), .tensor = t, .at = t->at + i * bytes,
            .type = type, .n_head = (int)m[0], .n_row = (int)m[1], .n_col = (int)m[2]};
    return 0;
}

static int gather(struct sh_dump *d, const char *pattern, struct sh_err *e)
{
    for (int f = 0; f < d->n_file; f++)
        for (size_t i = 0; i < sh_weights_count(d->file[f]); i++) {
            const struct sh_stored *t = sh_weights_at(d->file[f], i);
            struct name name;
            if (match(pattern, t->name, &name) && add_parts(d, t, &name, e))
                return -1;
        }
    return 0;
}

static int no_match(const struct sh_dump *d, const char *pattern, struct sh_err *e)
{
    enum { SHOWN = 3 };
    char names[300] = "";
    size_t n = 0, used = 0;
    for (int f = 0; f < d->n_file; f++)
        for (size_t i = 0; i < sh_weights_count(d->file[f]); i++, n++)
            if (n < SHOWN && used < sizeof names)
                used += (size_t)snprintf(names + used, sizeof names - used, "%s'%.60s'", n ? ", " : "",
                                         sh_weights_at(d->file[f], i)->name);
    sh_fail(e, "%s: no tensor name matches \"%s\"; found %zu: %s%s", sh_weights_count(d->file[0])
            ? sh_weights_at(d->file[0], 0)->file : "--attention", pattern, n, names, n > SHOWN ? ", …" : "");
    return sh_hint(e, "give the pattern of the names with --key, for example --key 'attention_{layer}'");
}

/* Without a pattern: those that doc/import.md writes, else the only tensor. */
static int find_parts(struct sh_dump *d, const char *pattern, struct sh_err *e)
{
    static const char *const usual[] = {"s{sequence}.l{layer}.{kind}", "s{sequence}.{kind}"};
    size_t n = 0;
    if (pattern) {
        if (check_pattern(pattern, e) || gather(d, pattern, e))
            return -1;
        return d->n_part ? 0 : no_match(d, pattern, e);
    }
    for (size_t i = 0; i < sizeof usual / sizeof *usual && !d->n_part; i++)
        if (gather(d, usual[i], e))
            return -1;
    for (int f = 0; f < d->n_file; f++)
        n += sh_weights_count(d->file[f]);
    const struct name whole = {.kind = SH_DUMP_ATTN, .sequence = -1, .layer = -1};
    if (!d->n_part && n == 1)
        for (int f = 0; f < d->n_file; f++)
            if (sh_weights_count(d->file[f]) && add_parts(d, sh_weights_at(d->file[f], 0), &whole, e))
                return -1;
    return d->n_part ? 0 : no_match(d, usual[0], e);
}

static int describe(const struct sh_dump_part *p, const char *what, struct sh_err *e)
{
    return sh_fail(e, "%s: sequence %d, layer %d, %s: %s", p->tensor->file, p->sequence, p->layer,
                   sh_dump_kinds[p->kind], what);
}

/* Attention decides which sequences and layers there are. */
static int read_sequences(struct sh_dump *d, struct sh_err *e)
{
    int n = 0;
    d->first_layer = MOST_PARTS;
    while (n < d->n_part && d->part[n].kind == SH_DUMP_ATTN) {
        const struct sh_dump_part *p = &d->part[n++];
        d->first_layer = p->layer < d->first_layer ? p->layer : d->first_layer;
        d->last_layer = p->layer > d->last_layer ? p->layer : d->last_layer;
        if (d->n_seq && d->sequence[d->n_seq - 1].number == p->sequence)
            continue;
        d->sequence = xreallocarray(d->sequence, (size_t)d->n_seq + 1, sizeof *d->sequence);
        d->sequence[d->n_seq++] = (struct sh_dump_sequence){p->sequence, p->n_row, p->n_col};
    }
    if (!n)
        return sh_fail(e, "%s: found vectors but no attention", d->part[0].tensor->file);
    d->n_head = d->part[0].n_head;
    return 0;
}

static int check_part(struct sh_dump *d, const struct sh_dump_part *p, const struct sh_dump_sequence *s,
                      struct sh_err *e)
{
    char what[120];
    int attention = p->kind == SH_DUMP_ATTN, shared = p->kind == SH_DUMP_K || p->kind == SH_DUMP_V;
    if (!attention) {
        d->d_head = d->d_head ? d->d_head : p->n_col;
        d->n_kv_head = shared && !d->n_kv_head ? p->n_head : d->n_kv_head;
    }
    int heads = shared ? d->n_kv_head : d->n_head, columns = attention ? s->n_key : d->d_head;
    if (p->n_head == heads && p->n_row == s->n_row && p->n_col == columns)
        return 0;
    snprintf(what, sizeof what, "found [%d, %d, %d], expected [%d, %d, %d] as in the other parts", p->n_head, p->n_row,
             p->n_col, heads, s->n_row, columns);
    return describe(p, what, e);
}

/* Each kind is there for every layer of every sequence, once, or not at all. */
static int check_all(struct sh_dump *d, struct sh_err *e)
{
    int at = 0;
    for (int kind = 0; kind < SH_N_DUMP_KIND; kind++) {
        if (at == d->n_part || d->part[at].kind != (enum sh_dump_kind)kind)
            continue;
        d->has[kind] = 1;
        for (int i = 0; i < d->n_seq; i++)
            for (int layer = d->first_layer; layer <= d->last_layer; layer++) {
                struct sh_dump_part wanted = {.kind = (enum sh_dump_kind)kind, .sequence = d->sequence[i].number,
                                              .layer = layer, .tensor = d->part[0].tensor};
                int order = at < d->n_part ? by_place(&d->part[at], &wanted) : 1;
                if (order)
                    return describe(order < 0 ? &d->part[at] : &wanted,
                                    order > 0 ? "is missing" : "is a duplicate, or has no attention", e);
                if (check_part(d, &d->part[at++], &d->sequence[i], e))
                    return -1;
            }
        if (at < d->n_part && d->part[at].kind == (enum sh_dump_kind)kind)
            return describe(&d->part[at], "is a duplicate, or has no attention", e);
    }
    return 0;
}

static struct sh_weights *open_file(const char *path, struct sh_err *e)
{
    const char *end = strrchr(path, '.');
    if (!end || strcmp(end, ".npz"))
        return sh_weights_open(path, e);
    sh_fail(e, "%s: found an archive of NumPy (.npz), expected .npy or .safetensors", path);
    sh_hint(e, "unpack it: python3 -m zipfile -e %s FOLDER, then give FOLDER/*.npy", path);
    return NULL;
}

int sh_dump_open(struct sh_dump *d, const char *const *path, int n_path, const char *pattern, struct sh_err *e)
{
    *d = (struct sh_dump){0};
    d->file = xcalloc((size_t)n_path, sizeof *d->file);
    for (; d->n_file < n_path; d->n_file++)
        if (!(d->file[d->n_file] = open_file(path[d->n_file], e)))
            return -1;
    if (find_parts(d, pattern, e))
        return -1;
    qsort(d->part, (size_t)d->n_part, sizeof *d->part, by_place);
    return read_sequences(d, e) || check_all(d, e) ? -1 : 0;
}

void sh_dump_close(struct sh_dump *d)
{
    for (int i = 0; i < d->n_file; i++)
        sh_weights_close(d->file[i]);
    free(d->file);
    free(d->part);
    free(d->sequence);
    *d = (struct sh_dump){0};
}

const struct sh_dump_part *sh_dump_find(const struct sh_dump *d, enum sh_dump_kind kind, int sequence, int layer)
{
    struct sh_dump_part wanted = {.kind = kind, .sequence = sequence, .layer = layer};
    return bsearch(&wanted, d->part, (size_t)d->n_part, sizeof wanted, by_place);
}

void sh_dump_read(const struct sh_dump_part *p, size_t from, size_t n, float *to)
{
    const unsigned char *at = p->at + from * sh_type_bytes(p->type);
    if (p->type == SH_F32) {
        memcpy(to, at, n * sizeof *to);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, at + 2 * i, sizeof half);
        to[i] = p->type == SH_F16 ? sh_f16_to_f32(half) : sh_bf16_to_f32(half);
    }
}

void sh_dump_drop(const struct sh_dump_part *p)
{
    sh_map_drop(p->at, (size_t)p->n_head * (size_t)p->n_row * (size_t)p->n_col * sh_type_bytes(p->type));
}
