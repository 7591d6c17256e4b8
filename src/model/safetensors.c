/* SPDX-License-Identifier: Apache-2.0 */
/* See safetensors.h. A checkpoint is a list of parts (files) and one table of their tensors, sorted
 * by name. Within a part the tensors must fill the data exactly, without holes or overlaps. */
#include "src/model/safetensors.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/model/map.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors data is little-endian and is used where it lies"
#endif

#define MAX_HEADER_BYTES ((size_t)100000000)

struct part {
    char *path;
    struct sh_map map;
    struct sh_stored *tensors;          /* [n], by name; they own their names */
    size_t n;
};

struct sh_safetensors {
    struct part *parts;
    size_t n_part;
    struct sh_stored *tensors;          /* [n], by name; names belong to the parts */
    size_t n;
};

/* Bits of an element; a dtype that is not listed is kept, but its size cannot be checked. */
static const struct { const char *name; unsigned bits; } dtypes[] = {
    {"F32", 32}, {"F16", 16}, {"BF16", 16}, {"F64", 64}, {"I64", 64}, {"I32", 32}, {"I16", 16},
    {"I8", 8}, {"U64", 64}, {"U32", 32}, {"U16", 16}, {"U8", 8}, {"BOOL", 8}, {"C64", 64},
    {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4}};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct sh_stored *)a)->name, ((const struct sh_stored *)b)->name);
}

static int by_place(const void *a, const void *b)
{
    const struct sh_stored *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
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

/* *out = array[i] when that is a whole number >= 0. */
static int whole(const json_t *array, size_t i, size_t *out)
{
    const json_t *v = json_array_get(array, i);
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return -1;
    *out = (size_t)json_integer_value(v);
    return 0;
}

static int read_shape(struct sh_stored *t, const json_t *shape, struct sh_err *e)
{
    if (!json_is_array(shape) || json_array_size(shape) > SH_MAX_RANK)
        return sh_fail(e, "%s: tensor '%s': 'shape' is not a list of at most %d whole numbers",
                       t->file, t->name, SH_MAX_RANK);
    t->rank = (int)json_array_size(shape);
    for (int i = 0; i < t->rank; i++)
        if (whole(shape, (size_t)i, &t->shape[i]))
            return sh_fail(e, "%s: tensor '%s': 'shape' is not a list of whole numbers >= 0",
                           t->file, t->name);
    return 0;
}

/* The bytes that shape and dtype ask for must be the bytes that are there. */
static int check_size(const struct sh_stored *t, struct sh_err *e)
{
    size_t bits = 0, all = 1;
    char shape[200];
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(dtypes[i].name, t->dtype))
            bits = dtypes[i].bits;
    sh_stored_shape(t, shape, sizeof shape);
    int huge = 0;
    for (int i = 0; i < t->rank; i++)
        huge |= sh_mul(all, t->shape[i], &all);
    if (huge || sh_mul(all, bits, &all))
        return sh_fail(e, "%s: tensor '%s': shape %s has more elements than any file can hold",
                       t->file, t->name, shape);
    if (bits && (all % 8 || all / 8 != t->bytes))
        return sh_fail(e, "%s: tensor '%s': found %zu bytes, expected %zu for shape %s of %s",
                       t->file, t->name, t->bytes, all / 8 + (all % 8 != 0), shape, t->dtype);
    return 0;
}

/* `data`: the bytes after the header. */
static int read_tensor(struct sh_stored *t, const json_t *facts, struct sh_map data,
                       struct sh_err *e)
{
    const char *dtype = json_string_value(json_object_get(facts, "dtype"));
    const json_t *offsets = json_object_get(facts, "data_offsets");
    size_t from, to;
    if (!dtype)
        return sh_fail(e, "%s: tensor '%s': 'dtype' is not a string", t->file, t->name);
    snprintf(t->dtype, sizeof t->dtype, "%s", dtype);
    if (read_shape(t, json_object_get(facts, "shape"), e))
        return -1;
    if (json_array_size(offsets) != 2 || whole(offsets, 0, &from) || whole(offsets, 1, &to))
        return sh_fail(e, "%s: tensor '%s': 'data_offsets' is not a pair of whole numbers >= 0",
                       t->file, t->name);
    if (from > to)
        return sh_fail(e, "%s: tensor '%s': data_offsets [%zu, %zu] are reversed", t->file, t->name,
                       from, to);
    if (to > data.bytes)
        return sh_fail(e, "%s: tensor '%s': data_offsets [%zu, %zu] end behind the %zu bytes of "
                       "data (is the file cut short?)", t->file, t->name, from, to, data.bytes);
    t->at = data.at + from;
    t->bytes = to - from;
    return check_size(t, e);
}

/* Sorted by place the tensors must follow each other from the first byte of data to the last. */
static int check_places(struct part *p, struct sh_map data, struct sh_err *e)
{
    const unsigned char *next = data.at;
    qsort(p->tensors, p->n, sizeof *p->tensors, by_place);
    for (size_t i = 0; i < p->n; i++) {
        const struct sh_stored *t = &p->tensors[i];
        if (t->at < next)
            return sh_fail(e, "%s: tensor '%s': its data begin at byte %td and overlap those of "
                           "tensor '%s', which end at %td", p->path, t->name, t->at - data.at,
                           p->tensors[i - 1].name, next - data.at);
        if (t->at > next)
            return sh_fail(e, "%s: tensor '%s': %td bytes in front of its data belong to no tensor",
                           p->path, t->name, t->at - next);
        next = t->at + t->bytes;
    }
    if (next != data.at + data.bytes)
        return sh_fail(e, "%s: found %zu bytes of data, expected %td for its tensors", p->path,
                       data.bytes, next - data.at);
    qsort(p->tensors, p->n, sizeof *p->tensors, by_name);
    return 0;
}

static int read_tensors(struct part *p, json_t *header, struct sh_map data, struct sh_err *e)
{
    const char *name;
    json_t *facts;
    p->tensors = xcalloc(json_object_size(header), sizeof *p->tensors);
    json_object_foreach(header, name, facts) {
        if (!json_is_object(facts))
            return sh_fail(e, "%s: '%s' in the header is not an object", p->path, name);
        if (!strcmp(name, "__metadata__"))
            continue;
        struct sh_stored *t = &p->tensors[p->n++];
        t->name = xstrdup(name);
        t->file = p->path;
        if (read_tensor(t, facts, data, e))
            return -1;
    }
    return check_places(p, data, e);
}

/* The header's length is believed only after it is known to lie inside the file. */
static int read_part(struct part *p, struct sh_err *e)
{
    uint64_t header_bytes;
    if (sh_map_open(&p->map, p->path, e))
        return -1;
    if (p->map.bytes < sizeof header_bytes)
        return sh_fail(e, "%s: found %zu bytes, expected a safetensors file, which has at least 8",
                       p->path, p->map.bytes);
    memcpy(&header_bytes, p->map.at, sizeof header_bytes);
    if (header_bytes > MAX_HEADER_BYTES)
        return sh_fail(e, "%s: found a header of %llu bytes, expected at most %zu (not a "
                       "safetensors file?)", p->path, (unsigned long long)header_bytes,
                       MAX_HEADER_BYTES);
    if (header_bytes > p->map.bytes - sizeof header_bytes)
        return sh_fail(e, "%s: found %zu bytes, expected at least %llu for its header (is the "
                       "file cut short?)", p->path, p->map.bytes,
                       (unsigned long long)header_bytes + 8);
    const char *text = (const char *)p->map.at + sizeof header_bytes;
    json_error_t why;
    json_t *header = json_loadb(text, (size_t)header_bytes, JSON_REJECT_DUPLICATES, &why);
    if (!header)
        return sh_fail(e, "%s: the header is not valid JSON: %s", p->path, why.text);
    struct sh_map data = {p->map.at + 8 + header_bytes, p->map.bytes - 8 - (size_t)header_bytes};
    int result = json_is_object(header)
                     ? read_tensors(p, header, data, e)
                     : sh_fail(e, "%s: the header is not a JSON object", p->path);
    json_decref(header);
    return result;
}

static const struct sh_stored *find(const struct sh_stored *tensors, size_t n, const char *name)
{
    struct sh_stored wanted = {.name = (char *)(uintptr_t)name};
    return n ? bsearch(&wanted, tensors, n, sizeof *tensors, by_name) : NULL;
}

/* Takes `path`. */
static struct part *add_part(struct sh_safetensors *s, char *path, struct sh_err *e)
{
    s->parts = xreallocarray(s->parts, s->n_part + 1, sizeof *s->parts);
    struct part *p = &s->parts[s->n_part++];
    *p = (struct part){.path = path};
    return read_part(p, e) ? NULL : p;
}

struct sh_safetensors *sh_safetensors_open(const char *path, struct sh_err *e)
{
    struct sh_safetensors *s = xcalloc(1, sizeof *s);
    const struct part *p = add_part(s, xstrdup(path), e);
    if (!p) {
        sh_safetensors_close(s);
        return NULL;
    }
    s->n = p->n;
    s->tensors = xcalloc(p->n, sizeof *s->tensors);
    if (p->n)
        memcpy(s->tensors, p->tensors, p->n * sizeof *s->tensors);
    return s;
}

/* A shard lies beside its index, so its name is a plain file name. */
static int check_shard_name(const char *index, const char *tensor, const char *shard,
                            struct sh_err *e)
{
    if (!shard || !*shard || strchr(shard, '/') || !strcmp(shard, ".") || !strcmp(shard, ".."))
        return sh_fail(e, "%s: tensor '%s': found the shard '%s', expected the name of a file in "
                       "the same folder", index, tensor, shard ? shard : "(not a string)");
    return 0;
}

static const struct part *shard_part(struct sh_safetensors *s, const char *folder,
                                     const char *shard, struct sh_err *e)
{
    char *path = xasprintf("%s/%s", folder, shard);
    for (size_t i = 0; i < s->n_part; i++)
        if (!strcmp(s->parts[i].path, path)) {
            free(path);
            return &s->parts[i];
        }
    return add_part(s, path, e);
}

/* The index decides which tensors there are; each must be in the shard that it names. */
static int read_index(struct sh_safetensors *s, const char *folder, const char *index,
                      const json_t *root, struct sh_err *e)
{
    json_t *places = json_object_get(root, "weight_map"), *v;
    const char *name;
    if (!json_is_object(places))
        return sh_fail(e, "%s: key 'weight_map' is missing or not an object", index);
    s->tensors = xcalloc(json_object_size(places), sizeof *s->tensors);
    json_object_foreach(places, name, v) {
        const char *shard = json_string_value(v);
        if (check_shard_name(index, name, shard, e))
            return -1;
        const struct part *p = shard_part(s, folder, shard, e);
        if (!p)
            return sh_err_prefix(e, "%s: tensor '%s'", index, name);
        const struct sh_stored *t = find(p->tensors, p->n, name);
        if (!t)
            return sh_fail(e, "%s: tensor '%s' is not in the shard %s that should hold it", index,
                           name, shard);
        s->tensors[s->n++] = *t;
    }
    qsort(s->tensors, s->n, sizeof *s->tensors, by_name);
    return 0;
}

static json_t *parse_index(const char *index, const struct sh_map *map, struct sh_err *e)
{
    json_error_t why;
    if (map->bytes > MAX_HEADER_BYTES) {
        sh_fail(e, "%s: found %zu bytes, expected at most %zu", index, map->bytes,
                MAX_HEADER_BYTES);
        return NULL;
    }
    json_t *root = json_loadb(map->at ? (const char *)map->at : "", map->bytes,
                              JSON_REJECT_DUPLICATES, &why);
    if (!root)
        sh_fail(e, "%s: line %d: not valid JSON: %s", index, why.line, why.text);
    return root;
}

static struct sh_safetensors *open_index(const char *folder, const char *index, struct sh_err *e)
{
    struct sh_map map;
    if (sh_map_open(&map, index, e))
        return NULL;
    struct sh_safetensors *s = xcalloc(1, sizeof *s);
    json_t *root = parse_index(index, &map, e);
    int result = root ? read_index(s, folder, index, root, e) : -1;
    json_decref(root);
    sh_map_close(&map);
    if (!result)
        return s;
    sh_safetensors_close(s);
    return NULL;
}

/* Neither model.safetensors nor its index: say what is there instead. */
static void refuse_folder(const char *folder, struct sh_err *e)
{
    static const char *const others[] = {"pytorch_model.bin", "pytorch_model.bin.index.json",
                                         "tf_model.h5", "flax_model.msgpack", NULL};
    const char *other = NULL;
    for (int i = 0; !other && others[i]; i++) {
        char *path = xasprintf("%s/%s", folder, others[i]);
        if (!access(path, F_OK))
            other = others[i];
        free(path);
    }
    if (!other) {
        sh_fail(e, "%s: found no weights, expected model.safetensors or "
                "model.safetensors.index.json", folder);
        return;
    }
    sh_fail(e, "%s: found %s, expected model.safetensors or model.safetensors.index.json", folder,
            other);
    sh_hint(e, "this release reads safetensors only; in Python, model.save_pretrained(folder, "
            "safe_serialization=True) writes them");
}

struct sh_safetensors *sh_safetensors_open_folder(const char *folder, struct sh_err *e)
{
    struct sh_safetensors *s = NULL;
    char *file = xasprintf("%s/model.safetensors", folder);
    char *index = xasprintf("%s/model.safetensors.index.json", folder);
    if (!access(file, F_OK))
        s = sh_safetensors_open(file, e);
    else if (!access(index, F_OK))
        s = open_index(folder, index, e);
    else
        refuse_folder(folder, e);
    free(file);
    free(index);
    return s;
}

void sh_safetensors_close(struct sh_safetensors *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_part; i++) {
        for (size_t j = 0; j < s->parts[i].n; j++)
            free(s->parts[i].tensors[j].name);
        free(s->parts[i].tensors);
        sh_map_close(&s->parts[i].map);
        free(s->parts[i].path);
    }
    free(s->parts);
    free(s->tensors);
    free(s);
}

size_t sh_safetensors_count(const struct sh_safetensors *s)
{
    return s->n;
}

size_t sh_safetensors_file_bytes(const struct sh_safetensors *s)
{
    size_t bytes = 0;
    for (size_t i = 0; i < s->n_part; i++)
        bytes += s->parts[i].map.bytes;
    return bytes;
}

const struct sh_stored *sh_safetensors_at(const struct sh_safetensors *s, size_t i)
{
    return &s->tensors[i];
}

const struct sh_stored *sh_safetensors_find(const struct sh_safetensors *s, const char *name)
{
    return find(s->tensors, s->n, name);
}

int sh_stored_type(const struct sh_stored *t, enum sh_type *out, struct sh_err *e)
{
    if (!strcmp(t->dtype, "F32"))
        *out = SH_F32;
    else if (!strcmp(t->dtype, "F16"))
        *out = SH_F16;
    else if (!strcmp(t->dtype, "BF16"))
        *out = SH_BF16;
    else
        return sh_fail(e, "%s: tensor '%s': found dtype %s, expected F32, F16 or BF16", t->file,
                       t->name, t->dtype);
    return 0;
}
