/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors of a checkpoint by name, for every file format. Files are mapped; their
 * readers (files/safetensors.c, torch_file.c, gguf_tensors.c, npy.c) check every name, offset, shape and size
 * against the file when it is opened, so what this module hands out may be read without further checks.
 *
 * Ownership: everything returned points into the struct sh_weights and lives as long as it. */
#ifndef SH_MODEL_WEIGHTS_H
#define SH_MODEL_WEIGHTS_H

#include <stddef.h>

#include "src/base/err.h"
#include "src/base/num.h"
#include "src/model/files/map.h"

#define SH_MAX_RANK 8

struct sh_stored {                          /* one tensor as the file stores it                   */
    char *name;
    const char *file;                       /* path of its file                                   */
    const unsigned char *at;                /* row-major, little-endian, at any address           */
    size_t bytes;
    size_t shape[SH_MAX_RANK];
    int rank;
    char dtype[16];                         /* "F32", "BF16", …; also types that cannot be read   */
    const struct sh_gguf_type *packed;      /* the format of packed blocks (gguf_tensors.h); NULL: not packed */
    const struct sh_coded *coded;           /* made from several tensors (coded.h), `at` is its codes; else NULL */
    void *copy;                             /* what `at` points to if the file has another order; else NULL */
};

struct sh_weights;
struct sh_coded;
struct sh_gguf;
struct sh_gguf_type;

/* One file: .safetensors, .gguf or .npy by its name, else PyTorch's. The first file of a split GGUF model opens all. */
struct sh_weights *sh_weights_open(const char *path, struct sh_err *e);

/* Opens the first of these that is in the folder: model.safetensors, the shards that model.safetensors.index.json
 * names, pytorch_model.bin, the shards that pytorch_model.bin.index.json names. */
struct sh_weights *sh_weights_open_folder(const char *folder, struct sh_err *e);

void sh_weights_close(struct sh_weights *w);                        /* NULL is fine               */

size_t sh_weights_count(const struct sh_weights *w);
size_t sh_weights_file_bytes(const struct sh_weights *w);           /* all files together         */

/* Tensor i in the order of names; the tensor with a name, or NULL. */
const struct sh_stored *sh_weights_at(const struct sh_weights *w, size_t i);
const struct sh_stored *sh_weights_find(const struct sh_weights *w, const char *name);

/* The metadata of the (first) GGUF file; NULL: not a GGUF file. */
const struct sh_gguf *sh_weights_gguf(const struct sh_weights *w);

/* The type in which a tensor takes part in arithmetic: F32, F16, BF16, or f32 for packed and coded ones; an error for
 * others. */
int sh_stored_type(const struct sh_stored *t, enum sh_type *out, struct sh_err *e);

/* "[128, 32]" in `text`, cut to `bytes`. Returns text. */
const char *sh_stored_shape(const struct sh_stored *t, char *text, size_t bytes);

/* The tensor's pages may leave memory; they are read again when touched. */
void sh_stored_drop(const struct sh_stored *t);

/* The same for part `i` of `n` equal parts along the first dimension; ask 1: the part will soon be read. */
void sh_stored_part(const struct sh_stored *t, size_t i, size_t n, int ask);

/* Replaces the table of tensors by this one, [n]; the data of the tensors stay where they are. Coded tensors of the new
 * table own their names and what `coded` points to. */
void sh_weights_replace(struct sh_weights *w, struct sh_stored *tensors, size_t n);

/* ---- for the readers of file formats ---- */

struct sh_part {                            /* one file                                           */
    char *path;
    struct sh_map map;
    struct sh_stored *tensors;              /* [n], by name; they own names and copies            */
    size_t n;
    struct sh_gguf *gguf;                   /* the header of a GGUF file, else NULL               */
};

/* Fills `tensors` from the mapped file. After an error, the caller puts the path before the message and frees what was
 * filled. */
typedef int sh_read_part(struct sh_part *p, struct sh_err *e);
sh_read_part sh_safetensors_read, sh_torch_file_read, sh_npy_read;      /* GGUF's: gguf_tensors.h */

/* Sorts the tensors by name (-1: a name occurs twice); by place in the file, for readers that check the bytes between
 * tensors. */
int sh_part_sort(struct sh_part *p, struct sh_err *e);
void sh_part_sort_by_place(struct sh_part *p);

/* The number of elements of the tensor's shape; below 2^58, so that its bits can be counted, or an error. */
int sh_stored_elements(const struct sh_stored *t, size_t *n, struct sh_err *e);

#endif
