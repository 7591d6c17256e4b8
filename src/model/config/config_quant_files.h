/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints whose config.json does not say how their matrices are stored: other keys and files do. */
#ifndef SH_MODEL_CONFIG_QUANT_FILES_H
#define SH_MODEL_CONFIG_QUANT_FILES_H

#include <jansson.h>

#include "src/base/err.h"

/* Without a quantization_config in `root`, the content of the config.json at `path`, it gets one from
 * compression_config, or from hf_quant_config.json, quantize_config.json or quant_config.json in the same folder, if
 * there is any. -1: one of these files cannot be read. */
int sh_config_adopt_quant(json_t *root, const char *path, struct sh_err *e);

#endif
