/* SPDX-License-Identifier: Apache-2.0 */
/* A file that torch.save wrote (pytorch_model.bin): a dictionary of tensors, as a zip archive (PyTorch
 * 1.6 and later) or as pickles one behind the other with the storages after them (before). Tensors are
 * views into the mapped file; one whose elements lie in another than row-major order, a transposed one,
 * say, is copied into that order. Nothing in the file is executed (pickle.h). */
#ifndef SH_MODEL_FILES_TORCH_FILE_H
#define SH_MODEL_FILES_TORCH_FILE_H

#include "src/model/weights.h"

sh_read_part sh_torch_file_read;

#endif
