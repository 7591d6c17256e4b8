/* SPDX-License-Identifier: Apache-2.0 */
#include "src/model/files/gguf_tensors.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/mem.h"

enum { MOST_RANK = 4, MOST_NAME = 255, MOST_FILES = 999, MOST_LAYERS = 10000 };
#define SPLIT_END "-%05zu-of-%05zu.gguf"

/* ---- the tensor table ---- */

static int read_name(size_t i, struct sh_gguf_cursor *c, struct sh_stored *t, struct sh_err *e)
{
    struct sh_gguf_text name;
    char shown[80];
    if (sh_gguf_take_text(c, &name))
        return sh_fail(e, "tensor %zu: its name extends past the end of the file (is the file truncated?)", i);
    if (!name.bytes || name.bytes > MOST_NAME)
        return sh_fail(e, "tensor %zu: found a name of %zu characters, expected 1 to %d", i, name.bytes, MOST_NAME);
    sh_shown(name.at, name.bytes, shown, sizeof shown);
    for (size_t k = 0; k < name.bytes; k++)
        if (name.at[k] < ' ' || name.at[k] > '~')
            return sh_fail(e, "tensor %zu: found the name '%s', expected plain ASCII", i, shown);
    t->name = xasprintf("%.*s", (int)name.bytes, name.at);
    return 0;
}

static int cut_short(struct sh_err *e)
{
    return sh_fail(e, "the file ends within its table entry (is the file truncated?)");
}

static int read_shape(struct sh_gguf_cursor *c, struct sh_stored *t, struct sh_err *e)
{
    uint32_t rank;
    if (sh_gguf_take(c, &rank, sizeof rank))
        return cut_short(e);
    if (rank < 1 || rank > MOST_RANK)
        return sh_fail(e, "found %u dimensions, expected 1 to %d", rank, MOST_RANK);
    t->rank = (int)rank;
    for (int i = t->rank - 1; i >= 0; i--) {
        uint64_t n;
        if (sh_gguf_take(c, &n, sizeof n))
            return cut_short(e);
        if (!n)
            return sh_fail(e, "found a dimension of 0, expected at least 1");
        t->shape[i] = (size_t)n;
    }
    return 0;
}

/* The bytes of the tensor; 0 for a type that nobody has told us of. */
static int read_type(struct sh_gguf_cursor *c, struct sh_stored *t, struct sh_err *e)
{
    char shape[200];
    uint32_t number;
    size_t all;
    if (sh_gguf_take(c, &number, sizeof number))
        return cut_short(e);
    if (sh_stored_elements(t, &all, e))
        return -1;
    const struct sh_gguf_type *type = sh_gguf_type(number);
    if (!type) {
        snprintf(t->dtype, sizeof t->dtype, "type %u", number);
        return 0;
    }
    snprintf(t->dtype, sizeof t->dtype, "%s", type->name);
    t->packed = type->unpack ? type : NULL;
    if (t->shape[t->rank - 1] % type->elements)
        return sh_fail(e, "found shape %s, expected a row length that is a multiple of %u for format %s",
                       sh_stored_shape(t, shape, sizeof shape), type->elements, type->name);
    t->bytes = all / type->elements * type->bytes;      /* at most 8 an element: it cannot overflow */
    return 0;
}

/* Offsets count from the start of the data, whose place is known after the table. */
static int read_offset(const struct sh_gguf *g, struct sh_gguf_cursor *c, uint64_t *offset, struct sh_err *e)
{
    if (sh_gguf_take(c, offset, sizeof *offset))
        return cut_short(e);
    if (*offset % g->alignment)
        return sh_fail(e, "found its data at offset %llu, expected a multiple of general.alignment, which is %zu",
                       (unsigned long long)*offset, g->alignment);
    return 0;
}

/* Between tensors there may be filling, but no byte belongs to two. */
static int check_places(struct sh_part *p, struct sh_err *e)
{
    sh_part_sort_by_place(p);
    for (size_t i = 1; i < p->n; i++) {
        const struct sh_stored *before = &p->tensors[i - 1], *t = &p->tensors[i];
        if (before->at + before->bytes > t->at)
            return sh_fail(e, "tensor '%s': its data overlap the data of tensor '%s'", t->name, before->name);
    }
    return sh_part_sort(p, e);
}

static int place(const struct sh_part *p, size_t data_at, const uint64_t *offsets, struct sh_err *e)
{
    size_t left = data_at <= p->map.bytes ? p->map.bytes - data_at : 0;
    for (size_t i = 0; i < p->n; i++) {
        struct sh_stored *t = &p->tensors[i];
        if (offsets[i] >= left || t->bytes > left - offsets[i])
            return sh_fail(e, "tensor '%s': found its %zu bytes at offset %llu, expected them within the %zu bytes of "
                           "data (is the file truncated?)", t->name, t->bytes, (unsigned long long)offsets[i], left);
        t->at = p->map.at + data_at + offsets[i];
    }
    return 0;
}

/* The numbers of xIELU, one for each layer or one for all, are metadata; here they are tensors of one element. */
static const char *const xielu[] = {"xielu.alpha_p", "xielu.alpha_n", "xielu.beta", "xielu.eps"};
enum { N_XIELU = sizeof xielu / sizeof *xielu };

static int layers_of(const struct sh_gguf *g, size_t *n, struct sh_err *e)
{
    struct sh_gguf_text arch = {"", 0};
    char key[80];
    int64_t layers = 0;
    *n = 0;
    if (!sh_gguf_find(g, xielu[0]))
        return 0;
    if (sh_gguf_word(g, "general.architecture", &arch, e))
        return -1;
    snprintf(key, sizeof key, "%.*s.block_count", (int)(arch.bytes < 40 ? arch.bytes : 40), arch.at);
    if (sh_gguf_whole(g, key, 0, MOST_LAYERS, &layers, e))
        return -1;
    *n = (size_t)layers;
    return 0;
}

static int add_xielu(struct sh_part *p, size_t n_layer, struct sh_err *e)
{
    for (int i = 0; i < N_XIELU && n_layer; i++) {
        const struct sh_gguf_value *v = sh_gguf_find(p->gguf, xielu[i]);
        if (!v || v->item != SH_GGUF_F32 || (v->kind == SH_GGUF_ARRAY && v->n != n_layer))
            return sh_fail(e, "%s: key '%s': expected a number of kind f32, or one for each of the %zu layers", p->path,
                           xielu[i], n_layer);
        for (size_t layer = 0; layer < n_layer; layer++)
            p->tensors[p->n++] = (struct sh_stored){
                .name = xasprintf("blk.%zu.%s", layer, xielu[i]), .file = p->path, .dtype = "F32",
                .bytes = sizeof(float), .shape = {1}, .rank = 1,
                .at = v->at + (v->kind == SH_GGUF_ARRAY ? layer : 0) * sizeof(float)};
    }
    return n_layer ? sh_part_sort(p, e) : 0;
}

int sh_gguf_read_part(struct sh_part *p, struct sh_err *e)
{
    struct sh_gguf *g = p->gguf = sh_gguf_open(p->path, &p->map, e);
    if (!g)
        return -1;
    struct sh_gguf_cursor c = {g->map.at + g->tensors_at, g->map.bytes - g->tensors_at};
    size_t n_layer;
    if (layers_of(g, &n_layer, e))
        return -1;
    uint64_t *offsets = xcalloc(g->n_tensor, sizeof *offsets);
    int bad = 0;
    p->tensors = xcalloc(g->n_tensor + N_XIELU * n_layer, sizeof *p->tensors);
    while (p->n < g->n_tensor && !bad) {
        struct sh_stored *t = &p->tensors[p->n];
        t->file = p->path;
        bad = read_name(p->n, &c, t, e);
        if (!bad && (read_shape(&c, t, e) || read_type(&c, t, e) || read_offset(g, &c, &offsets[p->n], e)))
            bad = sh_err_prefix(e, "tensor '%s'", t->name);
        p->n++;
    }
    size_t end = g->map.bytes - c.left, mask = g->alignment - 1;
    bad = bad || place(p, (end + mask) & ~mask, offsets, e) || check_places(p, e) || add_xielu(p, n_layer, e);
    free(offsets);
    return bad ? -1 : 0;
}

/* ---- which file ---- */

int sh_is_gguf_name(const char *path)
{
    size_t n = strlen(path);
    return n > 5 && !strcmp(path + n - 5, ".gguf");
}

/* "NAME-00002-of-00003.gguf": 2; 0 for other names. */
static size_t split_number(const char *name, size_t *n)
{
    size_t bytes = strlen(name), i = 0;
    char again[32];
    if (bytes < 20 || sscanf(name + bytes - 20, "-%5zu-of-%5zu", &i, n) != 2)
        return 0;
    snprintf(again, sizeof again, SPLIT_END, i, *n);
    return strcmp(again, name + bytes - 20) ? 0 : i;
}

/* How many models; *first is one of them and the caller's. */
static size_t count_in(const char *folder, char **first)
{
    DIR *d = opendir(folder);
    size_t found = 0, n;
    *first = NULL;
    for (const struct dirent *entry; d && (entry = readdir(d));) {
        if (!sh_is_gguf_name(entry->d_name) || split_number(entry->d_name, &n) > 1)
            continue;
        found++;
        free(*first);
        *first = xasprintf("%s/%s", folder, entry->d_name);
    }
    if (d)
        closedir(d);
    return found;
}

int sh_gguf_is_in(const char *folder)
{
    char *file;
    size_t n = count_in(folder, &file);
    free(file);
    return n > 0;
}

int sh_gguf_path(const char *path, char **out, struct sh_err *e)
{
    struct stat facts;
    *out = NULL;
    if (stat(path, &facts) || !S_ISDIR(facts.st_mode)) {
        *out = sh_is_gguf_name(path) ? xstrdup(path) : NULL;
        return 0;
    }
    char *config = xasprintf("%s/config.json", path), *file = NULL;
    size_t n = access(config, F_OK) ? count_in(path, &file) : 0;
    free(config);
    if (n <= 1) {
        *out = file;
        return 0;
    }
    free(file);
    return sh_fail(e, "%s: found %zu GGUF models, expected one, or the path of one of them", path, n);
}

char *sh_gguf_split_name(const char *first, size_t i, size_t n)
{
    return xasprintf("%.*s" SPLIT_END, (int)(strlen(first) - 20), first, i + 1, n);
}

int sh_gguf_check_split(const struct sh_gguf *g, size_t i, size_t *n, struct sh_err *e)
{
    int64_t count = 0, number = (int64_t)i;
    size_t named = 0;
    if (sh_gguf_whole(g, "split.count", 0, MOST_FILES, &count, e) ||
        sh_gguf_whole(g, "split.no", 0, MOST_FILES, &number, e))
        return -1;
    if (number != (int64_t)i) {
        sh_gguf_refuse(g, "split.no", i ? "the file number in the file's name" : "0", e);
        return sh_hint(e, "to open a split model, name its first file, …-00001-of-….gguf");
    }
    if (i && count != (int64_t)*n)
        return sh_gguf_refuse(g, "split.count", "the number of files given in the first file", e);
    if (!i && count > 1 && (split_number(g->path, &named) != 1 || named != (size_t)count))
        return sh_fail(e, "%s: key 'split.count': found %lld, expected a file name ending in -00001-of-%05lld.gguf",
                       g->path, (long long)count, (long long)count);
    *n = count > 1 ? (size_t)count : 1;
    return 0;
}
