/* SPDX-License-Identifier: Apache-2.0 */
/* Accepts a file of a checkpoint in place of its folder. */
#ifndef SH_MODEL_FILES_CHECKPOINT_H
#define SH_MODEL_FILES_CHECKPOINT_H

/* The folder of a file that checkpoints have under this name: config.json, NAME.safetensors, pytorch_model.bin or
 * NAME.index.json. NULL: the path is no such file, or not there. For free(). */
char *sh_checkpoint_folder(const char *path);

#endif
