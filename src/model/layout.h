/* SPDX-License-Identifier: Apache-2.0 */
/* The place of a parameter within the tensor that holds it: checkpoints fuse q, k and v (or gate and up) into one
 * tensor, interleave them head by head, or keep matrices transposed. The backends want the plain [rows, cols]. */
#ifndef SH_MODEL_LAYOUT_H
#define SH_MODEL_LAYOUT_H

#include "src/model/families/family.h"

struct sh_layout {                          /* of a vector the elements are the rows, cols is 1   */
    int rows, cols;                         /* of the parameter                                   */
    int total;                              /* rows of the whole tensor                           */
    int first, run, step;                   /* `run` rows from `first` on, again every `step` rows */
    int is_transposed;                      /* the tensor is [cols, total]                        */
};

int sh_dim_size(const struct sh_arch *a, enum sh_dim dim);

/* Does the parameter exist in this model? */
int sh_param_exists(const struct sh_param *p, const struct sh_arch *a);

struct sh_layout sh_layout_of(const struct sh_family *f, const struct sh_arch *a, const struct sh_param *p);

/* 1: the parameter is stored as plain [rows, cols], from row `first` on. */
int sh_layout_is_plain(const struct sh_layout *l);

/* The plain matrix of elements of `bytes` bytes (2 or 4). */
void sh_layout_gather(const struct sh_layout *l, const void *from, void *to, size_t bytes);

#endif
