/* SPDX-License-Identifier: Apache-2.0 */
/* Models and boards by name, from the catalogues or the user's own files, or by the path of a folder or config.json.
 * The error for an unknown name suggests the nearest ones. */
#ifndef SH_APP_CAPACITY_NAMES_H
#define SH_APP_CAPACITY_NAMES_H

#include "planner/catalog/catalog.h"
#include "planner/capacity/kv_shape.h"
#include "src/base/err.h"

struct sh_capacity_names {
    struct sh_catalog gpus, models;
    char **own_gpus, **own_models;      /* lines of the user's files                              */
};

/* Paths may be NULL. Every row of a user's file is checked at once. */
int sh_capacity_names_open(struct sh_capacity_names *n, const char *gpus, const char *models, struct sh_err *e);
void sh_capacity_names_close(struct sh_capacity_names *n);

/* A model by its name or path, or if that is NULL, row i; release with sh_kv_shape_clear. A board by its name or row.
 * 1: row i is after the last. */
int sh_capacity_model(const struct sh_capacity_names *n, const char *name, int i, struct sh_kv_shape *out,
                      struct sh_err *e);
int sh_capacity_board(const struct sh_capacity_names *n, const char *name, int i, struct sh_gpu *out,
                      struct sh_err *e);

/* The bytes of the tensors of a GGUF file, by part and layer: such files mix formats, so only the file says how large
 * the weights are. Fills s->stored if the path is a GGUF file, else leaves it NULL. -1: the file cannot be read, or has
 * a tensor of no known part of a model. */
int sh_capacity_stored(const char *path, struct sh_kv_shape *s, struct sh_err *e);

#endif
