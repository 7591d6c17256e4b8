/* SPDX-License-Identifier: Apache-2.0 */
/* A file that torch.save wrote (pytorch_model.bin): a dictionary of tensors, as a zip archive (PyTorch
 * 1.6 and later) or as consecutive pickles with the storages after them (before). Tensors are
 * views into the mapped file; one whose elements lie in another than row-major order, a transposed one,
 * say, is copied into that order. Nothing in the file is executed (pickle.h).
 *
 * Both forms come down to a pickle and the place of every storage that it speaks of:
 *
 *     zip       NAME/data.pkl, NAME/data/KEY for each storage, NAME/byteorder since PyTorch 2.1
 *     stacked   pickles of a magic number, a version, facts about the writer, the dictionary, and a list
 *               of keys; then for each key 8 bytes with its number of elements and the elements */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/files/pickle.h"
#include "src/model/files/zip.h"
#include "src/model/weights.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "storages are little-endian and are used where they are"
#endif

enum { ORDERED_DICT, REBUILD_TENSOR, REBUILD_PARAMETER, FIRST_STORAGE };

static const struct sh_pickle_global globals[] = {
    [ORDERED_DICT] = {"collections", "OrderedDict", SH_PICKLE_NEW_DICT},
    [REBUILD_TENSOR] = {"torch._utils", "_rebuild_tensor_v2", SH_PICKLE_FUNCTION},
    [REBUILD_PARAMETER] = {"torch._utils", "_rebuild_parameter", SH_PICKLE_FUNCTION},
    [FIRST_STORAGE] = {"torch", "FloatStorage", SH_PICKLE_TYPE}, {"torch", "HalfStorage", SH_PICKLE_TYPE},
    {"torch", "BFloat16Storage", SH_PICKLE_TYPE}, {"torch", "DoubleStorage", SH_PICKLE_TYPE},
    {"torch", "LongStorage", SH_PICKLE_TYPE}, {"torch", "IntStorage", SH_PICKLE_TYPE},
    {"torch", "ShortStorage", SH_PICKLE_TYPE}, {"torch", "CharStorage", SH_PICKLE_TYPE},
    {"torch", "ByteStorage", SH_PICKLE_TYPE}, {"torch", "BoolStorage", SH_PICKLE_TYPE}, {NULL, NULL, SH_PICKLE_TYPE}};

static const struct { const char *dtype; size_t bytes; } elements[] = {   /* of the storages, in that order */
    {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F64", 8}, {"I64", 8}, {"I32", 4}, {"I16", 2}, {"I8", 1}, {"U8", 1},
    {"BOOL", 1}};

static int is_call(const struct sh_pickle_value *v, int global)
{
    return v && v->kind == SH_PICKLE_CALL && v->global == &globals[global];
}

/* *out = v when that is a whole number >= 0. */
static int whole(const struct sh_pickle_value *v, size_t *out)
{
    if (!v || v->kind != SH_PICKLE_INT || v->whole < 0)
        return -1;
    *out = (size_t)v->whole;
    return 0;
}

/* ---- storages, which persistent ids name ---- */

struct storage {
    const unsigned char *key;               /* its name in the file                                  */
    size_t key_bytes;
    const char *dtype;                      /* as sh_stored has it                                   */
    size_t n, element_bytes;                /* n * element_bytes does not overflow                   */
    const unsigned char *at;                /* NULL until it was found in the file                   */
};

struct storages {
    struct storage *list;                   /* [n], by key, each once                                */
    size_t n;
};

/* ('storage', type, key, device, elements), and None in the older form. */
static int read_storage(struct storage *s, const struct sh_pickle *p, const struct sh_pickle_value *persistent,
                        struct sh_err *e)
{
    const struct sh_pickle_value *id = sh_pickle_member(p, persistent, 0), *part[6];
    for (size_t i = 0; i < 6; i++)
        part[i] = sh_pickle_member(p, id, i);
    if (id->kind != SH_PICKLE_TUPLE || id->count > 6 || !sh_pickle_is(part[0], "storage") || !part[1] ||
        part[1]->kind != SH_PICKLE_GLOBAL || part[1]->global < &globals[FIRST_STORAGE] || !part[2] ||
        part[2]->kind != SH_PICKLE_STRING || whole(part[4], &s->n))
        return sh_fail(e, "pickle at byte %zu: found an unknown persistent id, expected ('storage', type, key, device, "
                       "elements)", persistent->place);
    if (part[5] && part[5]->kind != SH_PICKLE_NONE)
        return sh_fail(e, "pickle at byte %zu: found a view of another storage, expected a whole storage",
                       persistent->place);
    size_t i = (size_t)(part[1]->global - &globals[FIRST_STORAGE]), bytes;
    s->key = part[2]->text;
    s->key_bytes = part[2]->bytes;
    s->dtype = elements[i].dtype;
    s->element_bytes = elements[i].bytes;
    if (sh_mul(s->n, s->element_bytes, &bytes))
        return sh_fail(e, "pickle at byte %zu: found a storage of %zu elements, more than any file can hold",
                       persistent->place, s->n);
    return 0;
}

static int by_key(const void *a, const void *b)
{
    const struct storage *x = a, *y = b;
    int order = memcmp(x->key, y->key, x->key_bytes < y->key_bytes ? x->key_bytes : y->key_bytes);
    return order ? order : x->key_bytes < y->key_bytes ? -1 : x->key_bytes > y->key_bytes;
}

/* Tensors that share a storage name it once each; they must agree. */
static int unite(struct storages *s, struct sh_err *e)
{
    size_t n = 0;
    char key[80];
    if (s->n)
        qsort(s->list, s->n, sizeof *s->list, by_key);
    for (size_t i = 0; i < s->n; i++) {
        const struct storage *now = &s->list[i], *last = n ? &s->list[n - 1] : NULL;
        if (!last || by_key(last, now))
            s->list[n++] = *now;
        else if (last->dtype != now->dtype || last->n != now->n)
            return sh_fail(e, "storage '%s': found %zu elements of %s and %zu of %s, expected the same",
                           sh_shown(now->key, now->key_bytes, key, sizeof key), last->n, last->dtype, now->n,
                           now->dtype);
    }
    s->n = n;
    return 0;
}

/* The storages that a pickle refers to. `s` is freed also after an error. */
static int list_storages(struct storages *s, const struct sh_pickle *p, struct sh_err *e)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_value; i++)
        n += p->values[i].kind == SH_PICKLE_PERSISTENT;
    *s = (struct storages){.list = xcalloc(n, sizeof *s->list)};
    for (size_t i = 0; i < p->n_value; i++)
        if (p->values[i].kind == SH_PICKLE_PERSISTENT && read_storage(&s->list[s->n++], p, &p->values[i], e))
            return -1;
    return unite(s, e);
}

static struct storage *find_storage(const struct storages *s, const unsigned char *key, size_t bytes)
{
    struct storage wanted = {.key = key, .key_bytes = bytes};
    return s->n ? bsearch(&wanted, s->list, s->n, sizeof *s->list, by_key) : NULL;
}

/* ---- tensors: windows on storages ----
 *
 * A tensor is a call of _rebuild_tensor_v2(storage, offset, shape, strides, …), with
 * numbers of elements; a parameter wraps one. Every number comes from the file and is used only after
 * the last element that it leads to is known to lie inside the storage. */

struct window {                             /* all in elements                                       */
    const struct storage *storage;
    size_t offset, n, stride[SH_MAX_RANK];
};

static int read_sizes(size_t *to, int *n, const struct sh_pickle *p, const struct sh_pickle_value *tuple)
{
    if (!tuple || tuple->kind != SH_PICKLE_TUPLE || tuple->count > SH_MAX_RANK)
        return -1;
    *n = (int)tuple->count;
    for (size_t i = 0; i < tuple->count; i++)
        if (whole(sh_pickle_member(p, tuple, i), &to[i]))
            return -1;
    return 0;
}

static int read_window(struct window *w, struct sh_stored *t, const struct sh_pickle *p,
                       const struct sh_pickle_value *call, const struct storages *s, struct sh_err *e)
{
    const struct sh_pickle_value *args = sh_pickle_member(p, call, 0);
    const struct sh_pickle_value *storage = sh_pickle_member(p, args, 0);
    int n_stride = 0;
    if (args->count < 6 || args->count > 7 || storage->kind != SH_PICKLE_PERSISTENT ||
        whole(sh_pickle_member(p, args, 1), &w->offset) ||
        read_sizes(t->shape, &t->rank, p, sh_pickle_member(p, args, 2)) ||
        read_sizes(w->stride, &n_stride, p, sh_pickle_member(p, args, 3)) || n_stride != t->rank)
        return sh_fail(e, "pickle at byte %zu: found unknown arguments of _rebuild_tensor_v2, expected a storage, an "
                       "offset, and equally many sizes and strides, at most %d, whole numbers >= 0", call->place,
                       SH_MAX_RANK);
    const struct sh_pickle_value *key = sh_pickle_member(p, sh_pickle_member(p, storage, 0), 2);
    w->storage = find_storage(s, key->text, key->bytes);
    snprintf(t->dtype, sizeof t->dtype, "%s", w->storage->dtype);
    return 0;
}

/* Orders the dimensions of more than one element from the smallest stride to the largest. */
static int by_stride(const struct sh_stored *t, const struct window *w, int *order)
{
    int n = 0;
    for (int i = 0; i < t->rank; i++) {
        int at = n;
        if (t->shape[i] < 2)
            continue;
        for (; at > 0 && w->stride[order[at - 1]] > w->stride[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
        n++;
    }
    return n;
}

/* The last element must lie inside the storage, and no two elements at one place: so a tensor is never
 * larger than its storage, and that never larger than the file. */
static int check_window(struct window *w, const struct sh_stored *t, struct sh_err *e)
{
    int order[SH_MAX_RANK], n = by_stride(t, w, order), far = 0;
    size_t span = 0, reach;
    char shape[200], key[80];
    w->n = 0;
    for (int i = 0; i < t->rank; i++)
        if (t->shape[i] == 0)
            return 0;
    w->n = 1;
    for (int i = 0; i < n; i++) {
        size_t size = t->shape[order[i]], stride = w->stride[order[i]];
        if (stride <= span && !far)
            return sh_fail(e, "found stride %zu in dimension %d of shape %s, expected strides that do not make "
                              "elements overlap", stride, order[i], sh_stored_shape(t, shape, sizeof shape));
        far |= sh_mul(size - 1, stride, &reach) || sh_add(span, reach, &span) || sh_mul(w->n, size, &w->n);
    }
    if (far || sh_add(span, w->offset, &reach) || reach >= w->storage->n)
        return sh_fail(e, "found a storage '%s' of %zu elements, expected room for shape %s from element %zu on (the "
                       "storage is shorter than the tensor)",
                       sh_shown(w->storage->key, w->storage->key_bytes, key, sizeof key), w->storage->n,
                       sh_stored_shape(t, shape, sizeof shape), w->offset);
    return 0;
}

static int is_row_major(const struct sh_stored *t, const struct window *w)
{
    size_t expected = 1;
    for (int i = t->rank; i-- > 0 && w->n;) {
        if (t->shape[i] != 1 && w->stride[i] != expected)
            return 0;
        expected *= t->shape[i];
    }
    return 1;
}

/* The elements in row-major order; index[] counts like an odometer. */
static void gather(unsigned char *to, const struct sh_stored *t, const struct window *w)
{
    size_t index[SH_MAX_RANK] = {0}, bytes = w->storage->element_bytes, at = w->offset;
    for (size_t i = 0; i < w->n; i++, to += bytes) {
        memcpy(to, w->storage->at + at * bytes, bytes);
        for (int d = t->rank; d-- > 0;) {
            at += w->stride[d];
            if (++index[d] < t->shape[d])
                break;
            at -= w->stride[d] * t->shape[d];
            index[d] = 0;
        }
    }
}

/* `left`: bytes that copies may still take. A file cannot ask for more of them than it has itself. */
static int place(struct sh_stored *t, const struct window *w, size_t *left, struct sh_err *e)
{
    t->bytes = w->n * w->storage->element_bytes;
    if (!w->n || is_row_major(t, w)) {
        t->at = w->n ? w->storage->at + w->offset * w->storage->element_bytes : w->storage->at;
        return 0;
    }
    if (t->bytes > *left)
        return sh_fail(e, "tensors that are not in row-major order take more bytes than the file has");
    *left -= t->bytes;
    unsigned char *copy = malloc(t->bytes);
    if (!copy)
        return sh_fail(e, "no memory for its %zu bytes", t->bytes);
    gather(copy, t, w);
    t->at = t->copy = copy;
    return 0;
}

static int read_name(struct sh_stored *t, const struct sh_pickle_value *key, const struct sh_pickle_value *of,
                     struct sh_err *e)
{
    char shown[80];
    if (key->kind != SH_PICKLE_STRING)
        return sh_fail(e, "pickle at byte %zu: found %s as a tensor name, expected a string", of->place,
                       sh_pickle_kind(key));
    for (size_t i = 0; i < key->bytes; i++)
        if (key->text[i] < ' ' || key->text[i] == 0x7f)
            return sh_fail(e, "pickle at byte %zu: found a control character in the name of tensor '%s'", key->place,
                           sh_shown(key->text, key->bytes, shown, sizeof shown));
    t->name = xmalloc(key->bytes + 1);
    memcpy(t->name, key->text, key->bytes);
    t->name[key->bytes] = '\0';
    return 0;
}

static int read_tensor(struct sh_stored *t, const struct sh_pickle *p, const struct sh_pickle_value *call,
                       const struct storages *s, size_t *left, struct sh_err *e)
{
    struct window w = {0};
    if (is_call(call, REBUILD_PARAMETER)) {
        const struct sh_pickle_value *args = sh_pickle_member(p, call, 0);
        const struct sh_pickle_value *inner = sh_pickle_member(p, args, 0);
        if (!is_call(inner, REBUILD_TENSOR))
            return sh_fail(e, "pickle at byte %zu: found %s in a parameter, expected a tensor", call->place,
                           sh_pickle_kind(inner));
        call = inner;
    }
    return read_window(&w, t, p, call, s, e) || check_window(&w, t, e) || place(t, &w, left, e) ? -1 : 0;
}

/* Of the dictionary only the tensors count; what else is there (a step, an epoch) is passed over. */
static int read_tensors(struct sh_part *part, const struct sh_pickle *p, const struct storages *s, struct sh_err *e)
{
    const struct sh_pickle_value *root = &p->values[p->root], *key, *v;
    size_t left = part->map.bytes;
    if (root->kind != SH_PICKLE_DICT)
        return sh_fail(e, "found %s, expected a dictionary of tensors", sh_pickle_kind(root));
    part->tensors = xcalloc(root->count, sizeof *part->tensors);
    for (uint32_t link = 0; sh_pickle_next(p, root, &link, &key, &v);) {
        struct sh_stored *t = &part->tensors[part->n];
        if (v->kind != SH_PICKLE_CALL)
            continue;
        t->file = part->path;
        if (read_name(t, key, v, e))
            return -1;
        part->n++;
        if (read_tensor(t, p, v, s, &left, e))
            return sh_err_prefix(e, "tensor '%s'", t->name);
    }
    return sh_part_sort(part, e);
}

/* ---- the file ---- */

struct reader {
    struct sh_part *part;
    struct sh_pickle *pickle;               /* the dictionary                                        */
    struct storages storages;
    struct sh_zip zip;
    struct sh_err *e;
};

static int refuse_storage(const struct reader *r, const struct storage *s, const char *found, size_t n,
                          const char *expected, size_t wanted)
{
    char key[80];
    return sh_fail(r->e, "storage '%s': found %s%zu, expected %s%zu", sh_shown(s->key, s->key_bytes, key, sizeof key),
                   found, n, expected, wanted);
}

/* ---- zip ---- */

/* The archive's folder is named after the file at the time of saving: it is where data.pkl is. */
static const struct sh_zip_entry *find_pickle(const struct reader *r, size_t *folder_bytes)
{
    static const char name[] = "/data.pkl";
    const struct sh_zip_entry *found = NULL;
    for (size_t i = 0; i < r->zip.n; i++) {
        const struct sh_zip_entry *t = &r->zip.entries[i];
        size_t n = t->name_bytes < sizeof name - 1 ? 0 : t->name_bytes - (sizeof name - 1);
        if (!n || memchr(t->name, '/', n) || memcmp(t->name + n, name, sizeof name - 1))
            continue;
        if (found)
            return sh_fail_null(r->e, "zip: found two entries */data.pkl, expected one");
        found = t;
        *folder_bytes = n;
    }
    if (!found)
        sh_fail(r->e, "zip: found no entry */data.pkl, expected an archive written by torch.save");
    return found;
}

static const struct sh_zip_entry *find_entry(const struct reader *r, const struct sh_zip_entry *pickle,
                                             size_t folder_bytes, const char *name, size_t name_bytes)
{
    char *full = xasprintf("%.*s/%.*s", (int)folder_bytes, (const char *)pickle->name, (int)name_bytes, name);
    const struct sh_zip_entry *t = sh_zip_find(&r->zip, full);
    free(full);
    return t;
}

static int place_in_zip(struct reader *r, const struct sh_zip_entry *pickle, size_t folder_bytes)
{
    char shown[80];
    for (size_t i = 0; i < r->storages.n; i++) {
        struct storage *s = &r->storages.list[i];
        char *name = xasprintf("data/%.*s", s->key_bytes < 1000 ? (int)s->key_bytes : 1000, (const char *)s->key);
        const struct sh_zip_entry *t = find_entry(r, pickle, folder_bytes, name, strlen(name));
        free(name);
        if (!t)
            return sh_fail(r->e, "zip: found no entry */data/%s, expected the storage its pickle refers to",
                           sh_shown(s->key, s->key_bytes, shown, sizeof shown));
        if (t->bytes != s->n * s->element_bytes)
            return refuse_storage(r, s, "bytes: ", t->bytes, "", s->n * s->element_bytes);
        s->at = r->part->map.at + t->at;
    }
    return 0;
}

static int read_zip(struct reader *r)
{
    const struct sh_map *map = &r->part->map;
    size_t folder_bytes = 0, end;
    if (sh_zip_open(&r->zip, map, r->e))
        return sh_err_prefix(r->e, "zip");
    const struct sh_zip_entry *pickle = find_pickle(r, &folder_bytes);
    if (!pickle)
        return -1;
    const struct sh_zip_entry *order = find_entry(r, pickle, folder_bytes, "byteorder", 9);
    if (order && (order->bytes != 6 || memcmp(map->at + order->at, "little", 6)))
        return sh_fail(r->e, "zip: entry */byteorder: found a byte order other than 'little', expected 'little'");
    r->pickle = sh_pickle_read(map->at, pickle->at + pickle->bytes, pickle->at, &end, globals, r->e);
    if (!r->pickle || list_storages(&r->storages, r->pickle, r->e))
        return -1;
    return place_in_zip(r, pickle, folder_bytes);
}

/* ---- consecutive pickles ---- */

/* A pickle without globals. Moves *next past it. */
static struct sh_pickle *read_plain(const struct reader *r, size_t *next)
{
    static const struct sh_pickle_global none[] = {{NULL, NULL, SH_PICKLE_TYPE}};
    return sh_pickle_read(r->part->map.at, r->part->map.bytes, *next, next, none, r->e);
}

static int is_magic(const struct sh_pickle *p)
{
    static const unsigned char magic[10] = {0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};
    const struct sh_pickle_value *v = &p->values[p->root];
    return v->kind == SH_PICKLE_LONG && v->bytes == sizeof magic && !memcmp(v->text, magic, sizeof magic);
}

static int is_version(const struct sh_pickle *p)
{
    const struct sh_pickle_value *v = &p->values[p->root];
    return v->kind == SH_PICKLE_INT && v->whole == 1001;
}

static int is_little_endian(const struct sh_pickle *p)
{
    const struct sh_pickle_value *root = &p->values[p->root], *key, *v;
    int little = 0;
    for (uint32_t link = 0; root->kind == SH_PICKLE_DICT && sh_pickle_next(p, root, &link, &key, &v);)
        if (sh_pickle_is(key, "little_endian"))
            little = v->kind == SH_PICKLE_BOOL && v->whole;
    return little;
}

static int check_plain(const struct reader *r, size_t *next, int (*is)(const struct sh_pickle *), const char *expected)
{
    size_t from = *next;
    struct sh_pickle *p = read_plain(r, next);
    if (!p)
        return -1;
    int right = is(p);
    sh_pickle_free(p);
    return right ? 0 : sh_fail(r->e, "pickle at byte %zu: found a different value, expected %s", from, expected);
}

/* The elements at *next belong to the storage of this key. */
static int place_behind(const struct reader *r, const struct sh_pickle_value *key, size_t *next)
{
    const struct sh_map *map = &r->part->map;
    struct storage *s = key->kind == SH_PICKLE_STRING
                                     ? find_storage(&r->storages, key->text, key->bytes)
                                     : NULL;
    uint64_t n;
    if (!s || s->at)
        return sh_fail(r->e, "pickle at byte %zu: found a key of an unknown storage or a duplicate key, expected one "
                       "key for each storage of the tensors", key->place);
    if (map->bytes - *next < 8)
        return refuse_storage(r, s, "bytes left: ", map->bytes - *next, "at least ", 8);
    memcpy(&n, map->at + *next, 8);
    *next += 8;
    if (n != s->n)
        return refuse_storage(r, s, "elements: ", (size_t)n, "", s->n);
    if (s->n * s->element_bytes > map->bytes - *next)
        return refuse_storage(r, s, "bytes left: ", map->bytes - *next, "", s->n * s->element_bytes);
    s->at = map->at + *next;
    *next += s->n * s->element_bytes;
    return 0;
}

static int place_all_behind(const struct reader *r, const struct sh_pickle *keys, size_t next)
{
    const struct sh_pickle_value *root = &keys->values[keys->root], *none, *key;
    if (root->kind != SH_PICKLE_LIST)
        return sh_fail(r->e, "pickle at byte %zu: found %s, expected the list of storages", root->place,
                       sh_pickle_kind(root));
    for (uint32_t link = 0; sh_pickle_next(keys, root, &link, &none, &key);)
        if (place_behind(r, key, &next))
            return -1;
    for (size_t i = 0; i < r->storages.n; i++)
        if (!r->storages.list[i].at)
            return refuse_storage(r, &r->storages.list[i], "elements: ", 0, "", r->storages.list[i].n);
    if (next != r->part->map.bytes)
        return sh_fail(r->e, "found %zu bytes after the last storage, expected none", r->part->map.bytes - next);
    return 0;
}

static int read_stacked(struct reader *r)
{
    const struct sh_map *map = &r->part->map;
    size_t next = 0;
    if (check_plain(r, &next, is_magic, "the magic number of torch.save") ||
        check_plain(r, &next, is_version, "version 1001 of the format") ||
        check_plain(r, &next, is_little_endian, "system info with 'little_endian' True"))
        return -1;
    r->pickle = sh_pickle_read(map->at, map->bytes, next, &next, globals, r->e);
    if (!r->pickle || list_storages(&r->storages, r->pickle, r->e))
        return -1;
    struct sh_pickle *keys = read_plain(r, &next);
    int result = keys ? place_all_behind(r, keys, next) : -1;
    sh_pickle_free(keys);
    return result;
}

int sh_torch_file_read(struct sh_part *p, struct sh_err *e)
{
    struct reader r = {.part = p, .e = e};
    int is_stacked = p->map.bytes && p->map.at[0] == 0x80, bad;
    if (!sh_zip_is(&p->map) && !is_stacked)
        return sh_fail(e, "found neither a zip archive nor a pickle in its %zu bytes, expected a file written by "
                       "torch.save", p->map.bytes);
    bad = is_stacked ? read_stacked(&r) : read_zip(&r);
    bad = bad || read_tensors(p, r.pickle, &r.storages, e);
    free(r.storages.list);
    sh_pickle_free(r.pickle);
    sh_zip_close(&r.zip);
    return bad ? -1 : 0;
}
