/* SPDX-License-Identifier: Apache-2.0 */
/* What the tensors of a GGUF file take, part by part and layer by layer: such files mix formats as they like, so
 * nothing short of the file says how large the weights are. */
#ifndef SH_APP_CAPACITY_STORED_H
#define SH_APP_CAPACITY_STORED_H

#include "planner/capacity/kv_shape.h"

/* Fills s->stored when the path stands for a GGUF file, and leaves it NULL otherwise. -1: a file that cannot be
 * read, or has a tensor that belongs to no part of a model. */
int sh_capacity_stored(const char *path, struct sh_kv_shape *s, struct sh_err *e);

#endif
