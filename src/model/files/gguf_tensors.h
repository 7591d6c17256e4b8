/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors of a GGUF file (weights.h), with the names, the shapes (outermost dimension first) and the number formats
 * that it gives them. Every shape, type, offset and size is checked against the file; data is not touched. */
#ifndef SH_MODEL_FILES_GGUF_TENSORS_H
#define SH_MODEL_FILES_GGUF_TENSORS_H

#include "kernels/backend.h"
#include "src/model/families/family.h"
#include "src/model/files/gguf.h"
#include "src/model/weights.h"

sh_read_part sh_gguf_read_part;

int sh_is_gguf_name(const char *path);                              /* ends with .gguf            */

/* The GGUF file that a path names: the file itself, or the one (or the first of a split one) in a folder without
 * config.json. *out is the caller's to free; NULL: the path names none. -1: the folder has several. */
int sh_gguf_path(const char *path, char **out, struct sh_err *e);

/* Does the folder hold a GGUF file, with or without config.json? */
int sh_gguf_is_in(const char *folder);

/* Split checkpoints: NAME-00001-of-00003.gguf and so on, the metadata in the first. The name of file i
 * (from 0) of n when that of the first is known; the caller frees it. */
char *sh_gguf_split_name(const char *first, size_t i, size_t n);

/* Is it file i? The first file sets the number of files, *n; the others must agree. */
int sh_gguf_check_split(const struct sh_gguf *g, size_t i, size_t *n, struct sh_err *e);

/* ---- number formats (gguf_type.c) ---- */

/* One block to `elements` floats. */
typedef void sh_gguf_unpack(const unsigned char *block, float *out);

struct sh_gguf_type {
    uint32_t number;                        /* in the file                                        */
    const char *name;                       /* "Q4_K"; of plain numbers as in safetensors         */
    unsigned elements, bytes;               /* of a block                                         */
    sh_gguf_unpack *unpack;                 /* NULL: plain numbers, or a format that is not read  */
    enum sh_packing packing;                /* for products from its blocks (kernels/packed.h)    */
};

enum { SH_N_IQ = 9 };
extern const struct sh_gguf_type sh_gguf_iq_types[SH_N_IQ];         /* gguf_iq.c                  */

/* NULL: unknown. */
const struct sh_gguf_type *sh_gguf_type(uint32_t number);

/* n elements, a multiple of a block's, of a type that has `unpack`. */
void sh_gguf_unpack_row(const struct sh_gguf_type *t, const unsigned char *row, size_t n, float *out);

/* Joins each NVFP4 matrix and the scale that such files have for it (gguf_scales.c) in a coded matrix; f: the family's
 * tables for these files. -1: the two do not fit. */
int sh_gguf_fold_scales(struct sh_weights *w, const struct sh_family *f, struct sh_err *e);

/* ---- a family's tables for such tensors (gguf_family.c) ---- */

/* A family's tables for the tensors of a GGUF file: the names are those of llama.cpp, the same in all architectures
 * ("blk.3.attn_q.weight"), fused tensors keep their parts one after another, matrices are never transposed, norms are
 * stored as they multiply (Gemma's with the 1). In files of the architecture "llama" the rows of each head of q and k
 * are in another order: row 2 i + j of a head there is row j w / 2 + i here, w the width of the head, since llama.cpp
 * rotates neighbouring elements and this program rotates halves. */
enum { SH_GGUF_PAIRED = 1 << 8 };           /* added to enum sh_form: the order of rows above     */

/* A copy of the tables with these names; free it with sh_gguf_family_free. joins: and, before them, with those of
 * tensors that some converters make of several. */
struct sh_family *sh_gguf_family(const struct sh_family *f, int joins);
void sh_gguf_family_free(struct sh_family *f);                      /* NULL is fine               */

/* The plain [rows, cols] of a parameter (family.h): f32 if its tensor is packed or coded (coded.h; in any file), else
 * elements of `element` bytes. d_head: the width of a head if the rows are paired, else 0. */
void sh_gguf_gather(const struct sh_stored *t, const struct sh_layout *l, int d_head, size_t element, void *to);

/* Where row `row` of it is in the tensor. */
size_t sh_gguf_row(const struct sh_layout *l, int d_head, int row);

/* Rows [first, first + n) of it, where the tensor is packed or coded. */
void sh_gguf_rows(const struct sh_stored *t, const struct sh_layout *l, int d_head, int first, int n, float *to);

#endif
