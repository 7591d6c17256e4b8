/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors in safetensors files: 8 bytes header length, a JSON header, raw little-endian data. Files
 * are mapped, never copied. On opening every name, offset, shape and size is checked against the
 * file, so what this module hands out may be read without further checks.
 *
 * Ownership: everything returned points into the struct sh_safetensors and lives as long as it. */
#ifndef SH_MODEL_SAFETENSORS_H
#define SH_MODEL_SAFETENSORS_H

#include <stddef.h>

#include "src/base/err.h"
#include "src/base/num.h"

#define SH_MAX_RANK 8

struct sh_stored {                          /* one tensor as the file has it                      */
    char *name;
    const char *file;                       /* path of the file that it is in                     */
    const unsigned char *at;                /* may be at any address, aligned or not              */
    size_t bytes;
    size_t shape[SH_MAX_RANK];
    int rank;
    char dtype[16];                         /* "F32", "BF16", …; also ones that we cannot read    */
};

struct sh_safetensors;

/* One file. */
struct sh_safetensors *sh_safetensors_open(const char *path, struct sh_err *e);

/* model.safetensors of a folder, or the shards that model.safetensors.index.json names. */
struct sh_safetensors *sh_safetensors_open_folder(const char *folder, struct sh_err *e);

void sh_safetensors_close(struct sh_safetensors *s);                /* NULL is fine               */

size_t sh_safetensors_count(const struct sh_safetensors *s);
size_t sh_safetensors_file_bytes(const struct sh_safetensors *s);   /* all files together         */

/* In the order of their names; the one of that name, or NULL. */
const struct sh_stored *sh_safetensors_at(const struct sh_safetensors *s, size_t i);
const struct sh_stored *sh_safetensors_find(const struct sh_safetensors *s, const char *name);

/* The type of a tensor that is wanted for arithmetic; an error for all but F32, F16, BF16. */
int sh_stored_type(const struct sh_stored *t, enum sh_type *out, struct sh_err *e);

/* "[128, 32]" in `text`, cut to `bytes`. Returns text. */
const char *sh_stored_shape(const struct sh_stored *t, char *text, size_t bytes);

#endif
