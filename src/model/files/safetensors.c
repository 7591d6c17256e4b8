/* SPDX-License-Identifier: Apache-2.0 */
/* A safetensors file: 8 bytes header length, a JSON header, raw little-endian data. Every name, offset, shape and size
 * is checked against the file, and the tensors must fill the data exactly, without holes or overlaps. */
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/weights.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors data is little-endian and is used where it lies"
#endif

#define MAX_HEADER_BYTES ((size_t)100000000)

/* Bits of an element; a dtype that is not listed is kept, but its size cannot be checked. */
static const struct { const char *name; unsigned bits; } dtypes[] = {
    {"F32", 32}, {"F16", 16}, {"BF16", 16}, {"F64", 64}, {"I64", 64}, {"I32", 32}, {"I16", 16},
    {"I8", 8}, {"U64", 64}, {"U32", 32}, {"U16", 16}, {"U8", 8}, {"BOOL", 8}, {"C64", 64},
    {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4}};

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
        return sh_fail(e, "'shape' is not a list of at most %d whole numbers", SH_MAX_RANK);
    t->rank = (int)json_array_size(shape);
    for (int i = 0; i < t->rank; i++)
        if (whole(shape, (size_t)i, &t->shape[i]))
            return sh_fail(e, "'shape' is not a list of whole numbers >= 0");
    return 0;
}

/* The bytes that shape and dtype ask for must be the bytes that are there. */
static int check_size(const struct sh_stored *t, struct sh_err *e)
{
    size_t bits = 0, all;
    char shape[200];
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(dtypes[i].name, t->dtype))
            bits = dtypes[i].bits;
    if (sh_stored_elements(t, &all, e))
        return -1;
    all *= bits;
    if (bits && (all % 8 || all / 8 != t->bytes))
        return sh_fail(e, "found %zu bytes, expected %zu for shape %s of %s", t->bytes, all / 8 + (all % 8 != 0),
                       sh_stored_shape(t, shape, sizeof shape), t->dtype);
    return 0;
}

/* `data`: the bytes after the header. */
static int read_tensor(struct sh_stored *t, const json_t *facts, struct sh_map data, struct sh_err *e)
{
    const char *dtype = json_string_value(json_object_get(facts, "dtype"));
    const json_t *offsets = json_object_get(facts, "data_offsets");
    size_t from, to;
    if (!dtype)
        return sh_fail(e, "'dtype' is not a string");
    snprintf(t->dtype, sizeof t->dtype, "%s", dtype);
    if (read_shape(t, json_object_get(facts, "shape"), e))
        return -1;
    if (json_array_size(offsets) != 2 || whole(offsets, 0, &from) || whole(offsets, 1, &to))
        return sh_fail(e, "'data_offsets' is not a pair of whole numbers >= 0");
    if (from > to)
        return sh_fail(e, "data_offsets [%zu, %zu] are reversed", from, to);
    if (to > data.bytes)
        return sh_fail(e, "data_offsets [%zu, %zu] extend past the %zu bytes of data (is the file truncated?)", from,
                       to, data.bytes);
    t->at = data.at + from;
    t->bytes = to - from;
    return check_size(t, e);
}

/* Sorted by place the tensors must follow each other from the first byte of data to the last. */
static int check_places(struct sh_part *p, struct sh_map data, struct sh_err *e)
{
    const unsigned char *next = data.at;
    sh_part_sort_by_place(p);
    for (size_t i = 0; i < p->n; i++) {
        const struct sh_stored *t = &p->tensors[i];
        if (t->at < next)
            return sh_fail(e, "tensor '%s': its data begin at byte %td and overlap the data of tensor '%s', which end "
                           "at %td", t->name, t->at - data.at, p->tensors[i - 1].name, next - data.at);
        if (t->at > next)
            return sh_fail(e, "tensor '%s': found a gap of %td bytes before its data, expected none", t->name,
                           t->at - next);
        next = t->at + t->bytes;
    }
    if (next != data.at + data.bytes)
        return sh_fail(e, "found %zu bytes of data, expected %td for its tensors", data.bytes, next - data.at);
    return sh_part_sort(p, e);
}

static int read_tensors(struct sh_part *p, json_t *header, struct sh_map data, struct sh_err *e)
{
    const char *name;
    json_t *facts;
    p->tensors = xcalloc(json_object_size(header), sizeof *p->tensors);
    json_object_foreach(header, name, facts) {
        if (!json_is_object(facts))
            return sh_fail(e, "'%s' in the header is not an object", name);
        if (!strcmp(name, "__metadata__"))
            continue;
        struct sh_stored *t = &p->tensors[p->n++];
        t->name = xstrdup(name);
        t->file = p->path;
        if (read_tensor(t, facts, data, e))
            return sh_err_prefix(e, "tensor '%s'", name);
    }
    return check_places(p, data, e);
}

/* The header's length is believed only after it is known to lie inside the file. */
int sh_safetensors_read(struct sh_part *p, struct sh_err *e)
{
    uint64_t header_bytes;
    if (p->map.bytes < sizeof header_bytes)
        return sh_fail(e, "found %zu bytes, expected a safetensors file, which has at least 8", p->map.bytes);
    memcpy(&header_bytes, p->map.at, sizeof header_bytes);
    if (header_bytes > MAX_HEADER_BYTES)
        return sh_fail(e, "found a header of %llu bytes, expected at most %zu (not a safetensors file?)",
                       (unsigned long long)header_bytes, MAX_HEADER_BYTES);
    if (header_bytes > p->map.bytes - sizeof header_bytes)
        return sh_fail(e, "found %zu bytes, expected at least %llu for its header (is the file truncated?)",
                       p->map.bytes, (unsigned long long)header_bytes + 8);
    const char *text = (const char *)p->map.at + sizeof header_bytes;
    json_error_t why;
    json_t *header = json_loadb(text, (size_t)header_bytes, JSON_REJECT_DUPLICATES, &why);
    if (!header)
        return sh_fail(e, "the header is not valid JSON: %s", why.text);
    struct sh_map data = {p->map.at + 8 + header_bytes, p->map.bytes - 8 - (size_t)header_bytes};
    int result = json_is_object(header)
                     ? read_tensors(p, header, data, e)
                     : sh_fail(e, "the header is not a JSON object");
    json_decref(header);
    return result;
}
