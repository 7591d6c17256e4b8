/* SPDX-License-Identifier: Apache-2.0 */
/* See zip.h. Sums of places are checked before they are made: `inside` compares what is left, so that
 * no number of 64 bits can wrap. Field places are those of PKWARE's APPNOTE, 4.3. */
#include "src/model/files/zip.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

enum { LOCAL = 0x04034b50, CENTRAL = 0x02014b50, END = 0x06054b50, LOCATOR64 = 0x07064b50, END64 = 0x06064b50 };
enum { LOCAL_BYTES = 30, CENTRAL_BYTES = 46, END_BYTES = 22, LOCATOR64_BYTES = 20, END64_BYTES = 56,
       MOST_COMMENT = 65535 };

struct archive {
    const struct sh_map *file;
    size_t from, end;                       /* of the central directory                              */
    uint64_t n;                             /* entries that it promises                              */
    struct sh_err *e;
};

static uint64_t number(const unsigned char *at, int bytes)
{
    uint64_t n = 0;
    for (int i = bytes; i-- > 0;)
        n = n << 8 | at[i];
    return n;
}

static int inside(uint64_t from, uint64_t bytes, uint64_t end)
{
    return from <= end && bytes <= end - from;
}

int sh_zip_is(const struct sh_map *file)
{
    return file->bytes >= 4 && number(file->at, 4) == LOCAL;
}

/* ---- the end records ---- */

static const unsigned char *find_end(const struct archive *a)
{
    if (a->file->bytes < END_BYTES)
        return NULL;
    size_t last = a->file->bytes - END_BYTES, tries = last < MOST_COMMENT ? last : MOST_COMMENT;
    for (size_t back = 0; back <= tries; back++) {
        const unsigned char *at = a->file->at + last - back;
        if (number(at, 4) == END && number(at + 20, 2) == back)
            return at;
    }
    return NULL;
}

/* In archives of more than 4 GiB or 65535 entries the numbers are in a record of their own, whose place
 * is told right in front of the old one. */
static int read_end64(struct archive *a, const unsigned char *end, const unsigned char **record)
{
    size_t place = (size_t)(end - a->file->at);
    const unsigned char *locator = place < LOCATOR64_BYTES ? NULL : end - LOCATOR64_BYTES;
    *record = NULL;
    if (!locator || number(locator, 4) != LOCATOR64)
        return 0;
    uint64_t at = number(locator + 8, 8);
    if (!inside(at, END64_BYTES, place - LOCATOR64_BYTES) || number(a->file->at + at, 4) != END64)
        return sh_fail(a->e, "found no zip64 end record at byte %llu, where its locator points",
                       (unsigned long long)at);
    *record = a->file->at + at;
    return 0;
}

static int read_ends(struct archive *a)
{
    const unsigned char *end = find_end(a), *end64;
    if (!end)
        return sh_fail(a->e, "found no end of the central directory (is the file truncated?)");
    if (read_end64(a, end, &end64))
        return -1;
    uint64_t disks = end64 ? number(end64 + 16, 4) | number(end64 + 20, 4) : number(end + 4, 2) | number(end + 6, 2);
    uint64_t bytes = end64 ? number(end64 + 40, 8) : number(end + 12, 4);
    uint64_t from = end64 ? number(end64 + 48, 8) : number(end + 16, 4);
    const unsigned char *limit = end64 ? end64 : end;
    a->n = end64 ? number(end64 + 32, 8) : number(end + 10, 2);
    if (disks)
        return sh_fail(a->e, "found a multi-disk archive, expected a single file");
    if (!inside(from, bytes, (uint64_t)(limit - a->file->at)))
        return sh_fail(a->e, "found a central directory of %llu bytes at byte %llu, expected it before its end record "
                       "at %td", (unsigned long long)bytes, (unsigned long long)from, limit - a->file->at);
    if (a->n > bytes / CENTRAL_BYTES)
        return sh_fail(a->e, "found %llu entries, expected at most the %llu that fit in %llu bytes of directory",
                       (unsigned long long)a->n, (unsigned long long)bytes / CENTRAL_BYTES, (unsigned long long)bytes);
    a->from = (size_t)from;
    a->end = (size_t)(from + bytes);
    return 0;
}

/* ---- entries ---- */

static int refuse(const struct archive *a, const struct sh_zip_entry *t, const char *what)
{
    char name[120];
    return sh_fail(a->e, "entry '%s': %s", sh_shown(t->name, t->name_bytes, name, sizeof name), what);
}

/* Numbers that do not fit in 32 bits are in extra field 1, in this order, only those that are missing. */
static int read_extra64(const unsigned char *extra, size_t bytes, uint64_t *const wanted[3])
{
    while (bytes >= 4) {
        uint64_t id = number(extra, 2), n = number(extra + 2, 2);
        extra += 4;
        bytes -= 4;
        if (n > bytes)
            return -1;
        for (int i = 0; i < 3 && id == 1; i++)
            if (*wanted[i] == UINT32_MAX) {
                if (n < 8)
                    return -1;
                *wanted[i] = number(extra, 8);
                extra += 8;
                bytes -= 8;
                n -= 8;
            }
        extra += n;
        bytes -= (size_t)n;
    }
    return 0;
}

static int check_local(const struct archive *a, struct sh_zip_entry *t)
{
    const unsigned char *local = a->file->at + t->from;
    if (!inside(t->from, LOCAL_BYTES, a->from) || number(local, 4) != LOCAL)
        return refuse(a, t, "found no local header where the directory points");
    size_t name = (size_t)number(local + 26, 2), extra = (size_t)number(local + 28, 2);
    if (!inside(t->from + LOCAL_BYTES, name + extra, a->from))
        return refuse(a, t, "its local header extends past the end of the data");
    if (name != t->name_bytes || memcmp(local + LOCAL_BYTES, t->name, name))
        return refuse(a, t, "found a different name in its local header");
    t->at = t->from + LOCAL_BYTES + name + extra;
    if (!inside(t->at, t->bytes, a->from))
        return refuse(a, t, "its data extend past the end of the file's data");
    return 0;
}

/* Reads the entry at *place and moves *place past it. */
static int read_entry(const struct archive *a, size_t *place, struct sh_zip_entry *t)
{
    const unsigned char *at = a->file->at + *place;
    if (!inside(*place, CENTRAL_BYTES, a->end) || number(at, 4) != CENTRAL)
        return sh_fail(a->e, "found no directory entry at byte %zu, expected %llu of them", *place,
                       (unsigned long long)a->n);
    size_t name = (size_t)number(at + 28, 2), extra = (size_t)number(at + 30, 2), note = (size_t)number(at + 32, 2);
    if (!inside(*place + CENTRAL_BYTES, name + extra + note, a->end))
        return sh_fail(a->e, "the directory entry at byte %zu extends past the end of the directory", *place);
    *place += CENTRAL_BYTES + name + extra + note;
    uint64_t packed = number(at + 20, 4), bytes = number(at + 24, 4), from = number(at + 42, 4);
    *t = (struct sh_zip_entry){.name = at + CENTRAL_BYTES, .name_bytes = name};
    if (read_extra64(at + CENTRAL_BYTES + name, extra, (uint64_t *const[]){&bytes, &packed, &from}))
        return refuse(a, t, "its extra fields are cut short");
    if (number(at + 10, 2) != 0)
        return refuse(a, t, "found compressed data, expected uncompressed data");
    if (number(at + 8, 2) & 0x2041)
        return refuse(a, t, "found encrypted data, expected unencrypted data");
    if (packed != bytes)
        return refuse(a, t, "found different compressed and uncompressed sizes, expected the same size for "
                      "uncompressed data");
    if (!inside(from, bytes, a->from))
        return refuse(a, t, "its data extend past the end of the file's data");
    t->from = (size_t)from;
    t->bytes = (size_t)bytes;
    return check_local(a, t);
}

static int by_place(const void *a, const void *b)
{
    const struct sh_zip_entry *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

static int by_name(const void *a, const void *b)
{
    const struct sh_zip_entry *x = a, *y = b;
    int order = memcmp(x->name, y->name, x->name_bytes < y->name_bytes ? x->name_bytes : y->name_bytes);
    return order ? order : x->name_bytes < y->name_bytes ? -1 : x->name_bytes > y->name_bytes;
}

static int check_entries(const struct archive *a, struct sh_zip *z)
{
    if (!z->n)
        return 0;
    qsort(z->entries, z->n, sizeof *z->entries, by_place);
    for (size_t i = 1; i < z->n; i++)
        if (z->entries[i].from < z->entries[i - 1].at + z->entries[i - 1].bytes)
            return refuse(a, &z->entries[i], "its bytes overlap those of another entry");
    qsort(z->entries, z->n, sizeof *z->entries, by_name);
    for (size_t i = 1; i < z->n; i++)
        if (!by_name(&z->entries[i - 1], &z->entries[i]))
            return refuse(a, &z->entries[i], "found a duplicate, expected each name once");
    return 0;
}

int sh_zip_open(struct sh_zip *z, const struct sh_map *file, struct sh_err *e)
{
    struct archive a = {.file = file, .e = e};
    *z = (struct sh_zip){0};
    if (read_ends(&a))
        return -1;
    z->entries = xcalloc((size_t)a.n, sizeof *z->entries);
    size_t place = a.from;
    for (; z->n < a.n; z->n++)
        if (read_entry(&a, &place, &z->entries[z->n]))
            return -1;
    if (place != a.end)
        return sh_fail(e, "found %zu bytes after the last directory entry, expected none", a.end - place);
    return check_entries(&a, z);
}

void sh_zip_close(struct sh_zip *z)
{
    free(z->entries);
    *z = (struct sh_zip){0};
}

const struct sh_zip_entry *sh_zip_find(const struct sh_zip *z, const char *name)
{
    struct sh_zip_entry wanted = {.name = (const unsigned char *)name, .name_bytes = strlen(name)};
    return z->n ? bsearch(&wanted, z->entries, z->n, sizeof *z->entries, by_name) : NULL;
}
