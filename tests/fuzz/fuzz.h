/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of foreign bytes as fuzz targets: one file fuzz_<target>.c each, with the entry point that
 * libFuzzer calls. `make check` runs them with driver.c over corpus/<target>/ and seeded mutations of
 * it; long.sh runs the same programs, built by AFL++'s compiler, by coverage for as long as one likes. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Always 0. Whatever the bytes are: no crash, no exit, no read outside of them. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* How many inputs were taken for sound so far; the driver expects it of seeds named ok*. */
extern int fuzz_accepted;

/* The bytes up to the next `end`, or all that are left; *data and *size go on after it. */
struct fuzz_part {
    const uint8_t *at;
    size_t bytes;
};
struct fuzz_part fuzz_until(uint8_t end, const uint8_t **data, size_t *size);

/* Aborts unless the error names the file. */
struct sh_err;
void fuzz_names(const struct sh_err *e, const char *path);

/* A safetensors file in the scratch folder. When the bytes begin with "{": its header up to a NUL,
 * then the data (so that a mutated header keeps a length that fits); else the file as it is. */
void fuzz_safetensors(const char *name, const uint8_t *data, size_t size);

/* A tokenizer's file in the scratch folder, with this tokenizer_config.json (NULL: none): opened; when that works, a
 * text is encoded and decoded. Always 0. */
int fuzz_tokenizer_file(const char *name, const uint8_t *data, size_t size, const char *config);

/* The rows of a trace block: described by the first 14 bytes (first_row, n_rows, window: int32; codec,
 * how: a byte each), which are taken off. */
struct sh_block;
int fuzz_block(const uint8_t **data, size_t *size, struct sh_block *b);     /* how; -1: too short */
void fuzz_rows(const struct sh_block *b);       /* decodes; aborts when a row leaves the block    */

#endif
