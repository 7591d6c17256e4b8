/* SPDX-License-Identifier: Apache-2.0 */
/* See weights.h. A checkpoint is a list of parts (files) and one table of their tensors, sorted by name. The formats
 * differ in their file names and in the reader of a part; the index of shards is the same JSON for all. */
#include "src/model/weights.h"

#include <dirent.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/model/coded.h"
#include "src/model/files/gguf_tensors.h"

#define MAX_INDEX_BYTES ((size_t)100000000)

struct sh_weights {
    struct sh_part *parts;
    size_t n_part;
    struct sh_stored *tensors;          /* [n], by name; names and copies belong to the parts */
    size_t n;
    struct sh_stored *pieces;           /* the table before some became coded matrices; NULL: as it was */
};

static const struct format { const char *file, *index; sh_read_part *read; } formats[] = {
    {"model.safetensors", "model.safetensors.index.json", sh_safetensors_read},
    {"pytorch_model.bin", "pytorch_model.bin.index.json", sh_torch_file_read}};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct sh_stored *)a)->name, ((const struct sh_stored *)b)->name);
}

int sh_part_sort(struct sh_part *p, struct sh_err *e)
{
    if (p->n)
        qsort(p->tensors, p->n, sizeof *p->tensors, by_name);
    for (size_t i = 1; i < p->n; i++)
        if (!by_name(&p->tensors[i - 1], &p->tensors[i]))
            return sh_fail(e, "tensor '%s': found a duplicate, expected each name once", p->tensors[i].name);
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct sh_stored *x = a, *y = b;
    return x->at != y->at ? (x->at < y->at ? -1 : 1) : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

void sh_part_sort_by_place(struct sh_part *p)
{
    if (p->n)
        qsort(p->tensors, p->n, sizeof *p->tensors, by_place);
}

int sh_stored_elements(const struct sh_stored *t, size_t *n, struct sh_err *e)
{
    char shape[200];
    int huge = 0;
    *n = 1;
    for (int i = 0; i < t->rank; i++)
        huge |= sh_mul(*n, t->shape[i], n);
    return huge || *n > SIZE_MAX / 64 ? sh_fail(e, "shape %s has more elements than any file can hold",
                         sh_stored_shape(t, shape, sizeof shape)) : 0;
}

const char *sh_stored_shape(const struct sh_stored *t, char *text, size_t bytes)
{
    size_t used = (size_t)snprintf(text, bytes, "[");
    for (int i = 0; i < t->rank && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, i ? ", %zu" : "%zu", t->shape[i]);
    if (used < bytes)
        snprintf(text + used, bytes - used, "]");
    return text;
}

int sh_stored_type(const struct sh_stored *t, enum sh_type *out, struct sh_err *e)
{
    if (!strcmp(t->dtype, "F32"))
        *out = SH_F32;
    else if (!strcmp(t->dtype, "F16"))
        *out = SH_F16;
    else if (!strcmp(t->dtype, "BF16"))
        *out = SH_BF16;
    else if (t->packed || t->coded)
        *out = SH_F32;
    else
        return sh_fail(e, "%s: tensor '%s': found dtype %s, expected F32, F16 or BF16%s", t->file, t->name, t->dtype,
                       sh_is_gguf_name(t->file) ? ", Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K, IQ1_S to IQ4_XS, "
                                                  "MXFP4, NVFP4, TQ1_0, TQ2_0, Q1_0" : "");
    return 0;
}

/* A copy has no file to come back from. */
void sh_stored_drop(const struct sh_stored *t)
{
    for (int i = 0; t->coded && i < SH_N_PIECE; i++)
        if (t->coded->piece[i])
            sh_stored_drop(t->coded->piece[i]);
    if (!t->copy)
        sh_map_drop(t->at, t->bytes);
}

void sh_stored_part(const struct sh_stored *t, size_t i, size_t n, int ask)
{
    size_t bytes = t->bytes / n;
    for (int k = 0; t->coded && k < SH_N_PIECE; k++)
        if (t->coded->piece[k])
            sh_stored_part(t->coded->piece[k], i, n, ask);
    if (!t->copy && !t->coded)
        (ask ? sh_map_ask : sh_map_drop)(t->at + i * bytes, bytes);
}

static const struct sh_stored *find(const struct sh_stored *tensors, size_t n, const char *name)
{
    struct sh_stored wanted = {.name = (char *)(uintptr_t)name};
    return n ? bsearch(&wanted, tensors, n, sizeof *tensors, by_name) : NULL;
}

/* Takes `path`. */
static struct sh_part *add_part(struct sh_weights *w, char *path, sh_read_part *read, struct sh_err *e)
{
    w->parts = xreallocarray(w->parts, w->n_part + 1, sizeof *w->parts);
    struct sh_part *p = &w->parts[w->n_part++];
    *p = (struct sh_part){.path = path};
    if (sh_map_open(&p->map, path, e))
        return NULL;
    if (!read(p, e))
        return p;
    sh_err_prefix(e, "%s", path);
    return NULL;
}

/* Files without an index: each holds what no other does. */
static int add_parts(struct sh_weights *w, const char *path, sh_read_part *read, struct sh_err *e)
{
    size_t n = 1;
    for (size_t i = 0; i < n; i++) {
        char *name = i ? sh_gguf_split_name(path, i, n) : xstrdup(path);
        const struct sh_part *p = add_part(w, name, read, e);
        if (!p || (p->gguf && sh_gguf_check_split(p->gguf, i, &n, e)))
            return -1;
        w->tensors = xreallocarray(w->tensors, w->n + p->n, sizeof *w->tensors);
        if (p->n)
            memcpy(w->tensors + w->n, p->tensors, p->n * sizeof *w->tensors);
        w->n += p->n;
    }
    if (n > 1 && w->n)
        qsort(w->tensors, w->n, sizeof *w->tensors, by_name);
    for (size_t i = 1; i < w->n && n > 1; i++)
        if (!by_name(&w->tensors[i - 1], &w->tensors[i]))
            return sh_fail(e, "%s: tensor '%s': found a duplicate in %s, expected each name once", w->tensors[i].file,
                           w->tensors[i].name, w->tensors[i - 1].file);
    return 0;
}

static struct sh_weights *open_file(const char *path, sh_read_part *read, struct sh_err *e)
{
    struct sh_weights *w = xcalloc(1, sizeof *w);
    if (!add_parts(w, path, read, e))
        return w;
    sh_weights_close(w);
    return NULL;
}

struct sh_weights *sh_weights_open(const char *path, struct sh_err *e)
{
    const char *end = strrchr(path, '.');
    sh_read_part *read = sh_is_gguf_name(path)                   ? sh_gguf_read_part
                         : end && !strcmp(end, ".safetensors") ? sh_safetensors_read
                         : end && !strcmp(end, ".npy")         ? sh_npy_read
                                                               : sh_torch_file_read;
    return open_file(path, read, e);
}

static const struct sh_part *shard_part(struct sh_weights *w, const char *folder, const char *shard,
                                        sh_read_part *read, struct sh_err *e)
{
    char *path = xasprintf("%s/%s", folder, shard);
    for (size_t i = 0; i < w->n_part; i++)
        if (!strcmp(w->parts[i].path, path)) {
            free(path);
            return &w->parts[i];
        }
    return add_part(w, path, read, e);
}

/* The index decides which tensors there are; each must be in the shard that it names. */
static int read_index(struct sh_weights *w, const char *folder, const char *index,
                      const json_t *root, sh_read_part *read, struct sh_err *e)
{
    json_t *places = json_object_get(root, "weight_map"), *v;
    const char *name;
    if (!json_is_object(places))
        return sh_fail(e, "%s: key 'weight_map' is missing or not an object", index);
    w->tensors = xcalloc(json_object_size(places), sizeof *w->tensors);
    json_object_foreach(places, name, v) {
        const char *shard = json_string_value(v);
        if (!shard || !*shard || strchr(shard, '/') || !strcmp(shard, ".") || !strcmp(shard, ".."))
            return sh_fail(e, "%s: tensor '%s': found the shard '%s', expected the name of a file in the same folder",
                           index, name, shard ? shard : "(not a string)");
        const struct sh_part *p = shard_part(w, folder, shard, read, e);
        if (!p)
            return sh_err_prefix(e, "%s: tensor '%s'", index, name);
        const struct sh_stored *t = find(p->tensors, p->n, name);
        if (!t)
            return sh_fail(e, "%s: tensor '%s' is missing from its shard %s", index, name, shard);
        w->tensors[w->n++] = *t;
    }
    if (w->n)
        qsort(w->tensors, w->n, sizeof *w->tensors, by_name);
    return 0;
}

static json_t *parse_index(const char *index, const struct sh_map *map, struct sh_err *e)
{
    json_error_t why;
    if (map->bytes > MAX_INDEX_BYTES)
        return sh_fail_null(e, "%s: found %zu bytes, expected at most %zu", index, map->bytes, MAX_INDEX_BYTES);
    json_t *root = json_loadb(map->at ? (const char *)map->at : "", map->bytes, JSON_REJECT_DUPLICATES, &why);
    if (!root)
        sh_fail(e, "%s: line %d: not valid JSON: %s", index, why.line, why.text);
    return root;
}

static struct sh_weights *open_index(const char *folder, const char *index, sh_read_part *read, struct sh_err *e)
{
    struct sh_map map;
    if (sh_map_open(&map, index, e))
        return NULL;
    struct sh_weights *w = xcalloc(1, sizeof *w);
    json_t *root = parse_index(index, &map, e);
    int result = root ? read_index(w, folder, index, root, read, e) : -1;
    json_decref(root);
    sh_map_close(&map);
    if (!result)
        return w;
    sh_weights_close(w);
    return NULL;
}

/* The only .safetensors file of the folder that is neither an adapter nor a shard, to free; NULL: there is none, or
 * more. */
static char *only_safetensors(const char *folder)
{
    static const char end[] = ".safetensors";
    char *found = NULL;
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        size_t bytes = strlen(entry->d_name);
        if (bytes < sizeof end || strcmp(entry->d_name + bytes - (sizeof end - 1), end) ||
            !strncmp(entry->d_name, "adapter_", 8) || strstr(entry->d_name, "-of-") || n++)
            continue;
        found = xasprintf("%s/%s", folder, entry->d_name);
    }
    if (d)
        closedir(d);
    if (n == 1)
        return found;
    free(found);
    return NULL;
}

/* None of the formats' files: say what is there instead. */
static void refuse_folder(const char *folder, struct sh_err *e)
{
    static const char *const others[] = {"tf_model.h5", "flax_model.msgpack", "rust_model.ot", NULL};
    const char *other = NULL;
    for (int i = 0; !other && others[i]; i++) {
        char *path = xasprintf("%s/%s", folder, others[i]);
        if (!access(path, F_OK))
            other = others[i];
        free(path);
    }
    sh_fail(e, "%s: found %s, expected model.safetensors, pytorch_model.bin or the index.json of their "
            "shards", folder, other ? other : "no weights");
    if (other)
        sh_hint(e, "in Python, model.save_pretrained(folder) writes model.safetensors");
    else if (sh_gguf_is_in(folder))
        sh_hint(e, "to open a .gguf file next to a config.json, give the path of the file itself");
}

struct sh_weights *sh_weights_open_folder(const char *folder, struct sh_err *e)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const struct format *f = &formats[i];
        char *file = xasprintf("%s/%s", folder, f->file), *index = xasprintf("%s/%s", folder, f->index);
        int has_file = !access(file, F_OK), has_index = !access(index, F_OK);
        struct sh_weights *w = has_file    ? open_file(file, f->read, e)
                               : has_index ? open_index(folder, index, f->read, e)
                                           : NULL;
        free(file);
        free(index);
        if (has_file || has_index)
            return w;
    }
    char *only = only_safetensors(folder);      /* as quantisers name it */
    struct sh_weights *w = only ? open_file(only, sh_safetensors_read, e) : NULL;
    if (!only)
        refuse_folder(folder, e);
    free(only);
    return w;
}

void sh_weights_close(struct sh_weights *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->n_part; i++) {
        for (size_t j = 0; j < w->parts[i].n; j++) {
            free(w->parts[i].tensors[j].name);
            free(w->parts[i].tensors[j].copy);
        }
        free(w->parts[i].tensors);
        sh_gguf_close(w->parts[i].gguf);
        sh_map_close(&w->parts[i].map);
        free(w->parts[i].path);
    }
    for (size_t i = 0; w->pieces && i < w->n; i++)
        if (w->tensors[i].coded) {
            free(w->tensors[i].name);
            sh_coded_free(w->tensors[i].coded);
        }
    free(w->parts);
    free(w->tensors);
    free(w->pieces);
    free(w);
}

void sh_weights_replace(struct sh_weights *w, struct sh_stored *tensors, size_t n)
{
    w->pieces = w->tensors;
    w->tensors = tensors;
    w->n = n;
    if (n)
        qsort(w->tensors, n, sizeof *w->tensors, by_name);
}

size_t sh_weights_count(const struct sh_weights *w)
{
    return w->n;
}

size_t sh_weights_file_bytes(const struct sh_weights *w)
{
    size_t bytes = 0;
    for (size_t i = 0; i < w->n_part; i++)
        bytes += w->parts[i].map.bytes;
    return bytes;
}

const struct sh_gguf *sh_weights_gguf(const struct sh_weights *w)
{
    return w->n_part ? w->parts[0].gguf : NULL;
}

const struct sh_stored *sh_weights_at(const struct sh_weights *w, size_t i)
{
    return &w->tensors[i];
}

const struct sh_stored *sh_weights_find(const struct sh_weights *w, const char *name)
{
    return find(w->tensors, w->n, name);
}
