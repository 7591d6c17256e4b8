/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy, versions 1 to 3: a magic word, a header in the form of a Python dictionary, raw data in C
 * order. One tensor, named for the file without its ending. Of types f2 (F16) and f4 (F32) can be read. */
#ifndef SH_MODEL_FILES_NPY_H
#define SH_MODEL_FILES_NPY_H

#include "src/model/weights.h"

sh_read_part sh_npy_read;

#endif
