/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a GGUF file (versions 2 and 3, little-endian): metadata and the place of the tensor
 * table. The layout is that of ggml's doc "gguf.md":
 *
 *     "GGUF", version u32, tensors u64, values u64
 *     values      key, kind u32, value; a string is a u64 length and its bytes, an array the kind of its
 *                 elements u32, their number u64 and the elements
 *     tensors     name, rank u32, dimensions u64 (the fastest first), type u32, offset u64
 *     data        from the next multiple of general.alignment (32) on; offsets count from there
 *
 * Every count and length is checked against the size of the file before it is used, and nothing is
 * copied: results point into the mapped file, which must stay mapped as long
 * as the struct sh_gguf lives. Reading a header touches no tensor data. */
#ifndef SH_MODEL_FILES_GGUF_H
#define SH_MODEL_FILES_GGUF_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"
#include "src/model/files/map.h"

enum sh_gguf_kind {                         /* numbers as in the file                             */
    SH_GGUF_U8, SH_GGUF_I8, SH_GGUF_U16, SH_GGUF_I16, SH_GGUF_U32, SH_GGUF_I32, SH_GGUF_F32, SH_GGUF_BOOL,
    SH_GGUF_STRING, SH_GGUF_ARRAY, SH_GGUF_U64, SH_GGUF_I64, SH_GGUF_F64, SH_GGUF_N_KIND
};

struct sh_gguf_text {                       /* not NUL-terminated                                 */
    const char *at;
    size_t bytes;
};

struct sh_gguf_value {
    struct sh_gguf_text key;
    enum sh_gguf_kind kind, item;           /* item: of an array's elements, else as kind         */
    size_t n;                               /* elements of an array, else 1                       */
    const unsigned char *at;                /* the first element                                  */
    const unsigned char **index;            /* of an array of strings: where each lies, once one has been asked for */
};

struct sh_gguf {
    const char *path;                       /* the caller's                                       */
    struct sh_map map;                      /* likewise                                           */
    struct sh_gguf_value *values;           /* [n], by key                                        */
    size_t n;
    size_t n_tensor, tensors_at;            /* tensors_at: byte of the tensor table               */
    size_t alignment;                       /* of the tensors' data                               */
};

/* `path`: for messages. NULL: e says why. */
struct sh_gguf *sh_gguf_open(const char *path, const struct sh_map *map, struct sh_err *e);
void sh_gguf_close(struct sh_gguf *g);                              /* NULL is fine               */

/* NULL: there is no such key. */
struct sh_gguf_value *sh_gguf_find(const struct sh_gguf *g, const char *key);

/* A scalar; *out is unchanged if the key is absent. -1: wrong kind or out of range. Integers and reals of any width are
 * accepted. */
int sh_gguf_whole(const struct sh_gguf *g, const char *key, int64_t min, int64_t max, int64_t *out, struct sh_err *e);
int sh_gguf_real(const struct sh_gguf *g, const char *key, double *out, struct sh_err *e);
int sh_gguf_flag(const struct sh_gguf *g, const char *key, int *out, struct sh_err *e);
int sh_gguf_word(const struct sh_gguf *g, const char *key, struct sh_gguf_text *out, struct sh_err *e);

/* An array; *out is NULL when the key is absent. -1: not an array, or wrong elements. */
int sh_gguf_strings(const struct sh_gguf *g, const char *key, struct sh_gguf_value **out, struct sh_err *e);
int sh_gguf_numbers(const struct sh_gguf *g, const char *key, struct sh_gguf_value **out, struct sh_err *e);

/* Element i < n of an array, or 0 of a scalar, of a kind already checked. Reals are rounded down to a whole number,
 * booleans are 0 or 1. The first request for a string builds an index of all, 8 bytes each. */
struct sh_gguf_text sh_gguf_string_at(struct sh_gguf_value *v, size_t i);
double sh_gguf_real_at(const struct sh_gguf_value *v, size_t i);
int64_t sh_gguf_whole_at(const struct sh_gguf_value *v, size_t i);

int sh_gguf_is_whole(enum sh_gguf_kind kind);
extern const struct sh_gguf_kind_facts {
    const char *name;                       /* "u32"                                              */
    size_t bytes;                           /* of the smallest value                              */
} sh_gguf_kinds[SH_GGUF_N_KIND];
int sh_gguf_text_is(struct sh_gguf_text text, const char *word);

/* -1 with "path: key '…': found …, expected …". */
int sh_gguf_refuse(const struct sh_gguf *g, const char *key, const char *expected, struct sh_err *e);

/* ---- for the reader of the tensor table ---- */

struct sh_gguf_cursor {
    const unsigned char *at;
    size_t left;
};

/* The next number, of so many bytes, or string; -1: too few bytes are left. */
int sh_gguf_take(struct sh_gguf_cursor *c, void *out, size_t bytes);
int sh_gguf_take_text(struct sh_gguf_cursor *c, struct sh_gguf_text *out);

#endif
