/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata of a GGUF model as the config.json that its family's tables read (config.h). The values of the keys are
 * carried over; a value that cannot be honoured is refused with the key's name, as is an unknown architecture. The
 * tensors tell whether there are biases, a separate output head and frequency factors. */
#ifndef SH_MODEL_FILES_GGUF_CONFIG_H
#define SH_MODEL_FILES_GGUF_CONFIG_H

#include <jansson.h>

#include "src/base/err.h"

/* `path`: the (first) file. A new object; NULL: e says why. *names, a new object too, gives the key of
 * the file for each that it was written under. */
json_t *sh_gguf_config(const char *path, json_t **names, struct sh_err *e);

#endif
