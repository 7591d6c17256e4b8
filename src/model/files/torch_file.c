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
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/files/pickle.h"
#include "src/model/shown.h"
#include "src/model/files/torch_tensor.h"
#include "src/model/files/zip.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "storages are little-endian and are used where they lie"
#endif

struct reader {
    struct sh_part *part;
    struct sh_pickle *pickle;               /* the dictionary                                        */
    struct sh_torch_storages storages;
    struct sh_zip zip;
    struct sh_err *e;
};

static int refuse_storage(const struct reader *r, const struct sh_torch_storage *s, const char *found, size_t n,
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
        if (found) {
            sh_fail(r->e, "zip: found two entries */data.pkl, expected one");
            return NULL;
        }
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
        struct sh_torch_storage *s = &r->storages.list[i];
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
    r->pickle = sh_pickle_read(map->at, pickle->at + pickle->bytes, pickle->at, &end, sh_torch_globals, r->e);
    if (!r->pickle || sh_torch_storages(&r->storages, r->pickle, r->e))
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
    struct sh_torch_storage *s = key->kind == SH_PICKLE_STRING
                                     ? sh_torch_storage(&r->storages, key->text, key->bytes)
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
    r->pickle = sh_pickle_read(map->at, map->bytes, next, &next, sh_torch_globals, r->e);
    if (!r->pickle || sh_torch_storages(&r->storages, r->pickle, r->e))
        return -1;
    struct sh_pickle *keys = read_plain(r, &next);
    int result = keys ? place_all_behind(r, keys, next) : -1;
    sh_pickle_free(keys);
    return result;
}

static int read_either(struct reader *r)
{
    if (sh_zip_is(&r->part->map))
        return read_zip(r);
    if (r->part->map.bytes && r->part->map.at[0] == 0x80)
        return read_stacked(r);
    return sh_fail(r->e, "found neither a zip archive nor a pickle in its %zu bytes, expected a file written by "
                   "torch.save", r->part->map.bytes);
}

int sh_torch_file_read(struct sh_part *p, struct sh_err *e)
{
    struct reader r = {.part = p, .e = e};
    int result = read_either(&r) || sh_torch_tensors(p, r.pickle, &r.storages, e) ? -1 : 0;
    free(r.storages.list);
    sh_pickle_free(r.pickle);
    sh_zip_close(&r.zip);
    return result;
}
