/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of a zip archive (zip64 too) in memory, as torch.save writes it: entries are uncompressed. Compressed
 * and encrypted ones are refused, so nothing can grow when it is read. The central directory is authoritative; each
 * entry must be inside the file, before the directory, after its own local header, and share no byte with another. */
#ifndef SH_MODEL_FILES_ZIP_H
#define SH_MODEL_FILES_ZIP_H

#include <stddef.h>

#include "src/base/err.h"
#include "src/model/files/map.h"

struct sh_zip_entry {
    const unsigned char *name;              /* in the map; no terminating NUL                        */
    size_t name_bytes;
    size_t from;                            /* place of its local header                             */
    size_t at, bytes;                       /* place of its data                                     */
};

struct sh_zip {
    struct sh_zip_entry *entries;           /* [n], by name, each name once                          */
    size_t n;
};

int sh_zip_is(const struct sh_map *file);   /* does it begin like an archive with entries?           */

/* Close it also when this failed. */
int sh_zip_open(struct sh_zip *z, const struct sh_map *file, struct sh_err *e);
void sh_zip_close(struct sh_zip *z);

const struct sh_zip_entry *sh_zip_find(const struct sh_zip *z, const char *name);   /* or NULL       */

#endif
