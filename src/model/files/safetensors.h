/* SPDX-License-Identifier: Apache-2.0 */
/* A safetensors file: 8 bytes header length, a JSON header, raw little-endian data. Every name,
 * offset, shape and size is checked against the file. */
#ifndef SH_MODEL_FILES_SAFETENSORS_H
#define SH_MODEL_FILES_SAFETENSORS_H

#include "src/model/weights.h"

sh_read_part sh_safetensors_read;

#endif
