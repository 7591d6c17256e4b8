/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of values in GGUF metadata, for its reader (gguf.h). */
#ifndef SH_MODEL_FILES_GGUF_VALUE_H
#define SH_MODEL_FILES_GGUF_VALUE_H

#include "src/model/files/gguf.h"

size_t sh_gguf_kind_bytes(enum sh_gguf_kind kind);                  /* of the smallest value      */
const char *sh_gguf_kind_name(enum sh_gguf_kind kind);              /* "u32"                      */

#endif
