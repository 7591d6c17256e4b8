/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of generated files for tests of readers. It is removed when the program ends. */
#ifndef TESTS_UNIT_SCRATCH_H
#define TESTS_UNIT_SCRATCH_H

#include <stddef.h>

const char *scratch_folder(void);
void scratch_clear(void);                                       /* removes the files in it        */
const char *scratch_path(const char *name);                     /* valid until the next call      */
const char *scratch_write(const char *name, const void *at, size_t bytes);    /* returns its path */

/* A safetensors file: the length of `header`, the header, the data. */
const char *scratch_safetensors(const char *name, const char *header, const void *data,
                                size_t bytes);

#endif
