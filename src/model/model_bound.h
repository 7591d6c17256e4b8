/* SPDX-License-Identifier: Apache-2.0 */
/* A model's tensors as model.c binds them to a checkpoint, for the files that tell what a model consists of
 * (model_contents.c). No other file includes it. */
#ifndef SH_MODEL_MODEL_BOUND_H
#define SH_MODEL_MODEL_BOUND_H

#include "src/model/families/family.h"
#include "src/model/model.h"
#include "src/model/weights.h"

#define N_LAYER_ROLE (SH_N_ROLE - SH_LAYER_ROLE)

struct bound {
    char *name;
    const struct sh_param *param;
    const struct sh_stored *stored;     /* NULL in a random model                                 */
    void *own;                          /* made, or copied because it does not lie as it is wanted */
    enum sh_type type;
    int rows, cols;
    struct sh_layout layout;            /* of the parameter within `stored`, or within its slice  */
    size_t slice;                       /* elements before it                                     */
    int d_head;                         /* 0, or the width of heads whose rows are paired (gguf_tensors.h) */
    int number;                         /* of a numbered role                                     */
};

struct sh_model {
    char *path, *name;                  /* as given, for messages; for people                     */
    struct sh_config *config;
    const struct sh_family *family;
    struct sh_family *gguf_family;      /* the same with GGUF's names, else NULL                  */
    struct sh_arch arch;
    struct sh_weights *file;            /* NULL in a random model                                 */
    uint64_t seed;
    double pruned;                      /* share of each matrix of a layer                         */
    struct bound *bound;
    size_t n_bound, per_layer;          /* places of a layer                                      */
    size_t first[N_LAYER_ROLE + 1];     /* of a layer's places, by role                           */
};

/* In arithmetic. */
static inline size_t sh_bound_bytes(const struct bound *b)
{
    return (size_t)b->rows * (size_t)b->cols * sh_type_bytes(b->type);
}

#endif
