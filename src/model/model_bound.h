/* SPDX-License-Identifier: Apache-2.0 */
/* A model's tensors as model.c binds them to a checkpoint. Only model.c and its parts include this header:
 * model_contents.c, which lists what a model consists of, and model_mapped.c, which says where its tensors are in the
 * files. */
#ifndef SH_MODEL_MODEL_BOUND_H
#define SH_MODEL_MODEL_BOUND_H

#include <pthread.h>
#include <string.h>

#include "src/model/families/family.h"
#include "src/model/model.h"
#include "src/model/weights.h"

#define N_LAYER_ROLE (SH_N_ROLE - SH_LAYER_ROLE)

struct bound {
    char *name;
    const struct sh_param *param;
    const struct sh_stored *stored;     /* NULL in a random model                                 */
    void *own;                          /* random numbers, or a copy in the layout that is needed */
    enum sh_type type;
    int rows, cols;
    struct sh_layout layout;            /* place of the parameter within `stored`, or within its slice */
    size_t slice;                       /* elements of `stored` before the slice                  */
    int d_head;                         /* 0, or the width of heads whose rows are paired (gguf_tensors.h) */
    int number;                         /* number of a numbered role                              */
};

struct sh_model {
    char *path, *name;                  /* path as given, for messages; name for people           */
    struct sh_config *config;
    const struct sh_family *family;
    struct sh_family *gguf_family;      /* `family` with GGUF's names, else NULL                  */
    struct sh_arch arch;
    struct sh_weights *file;            /* NULL in a random model                                 */
    uint64_t seed;
    double pruned;                      /* share of each matrix of a layer that is set to 0       */
    struct bound *bound;
    size_t n_bound, per_layer;          /* places of a layer                                      */
    size_t first[N_LAYER_ROLE + 1];     /* starts of a layer's places, by role                    */
    pthread_mutex_t lock;               /* sh_model_enter                                         */
};

/* Bytes in the type for arithmetic. */
static inline size_t sh_bound_bytes(const struct bound *b)
{
    return (size_t)b->rows * (size_t)b->cols * sh_type_bytes(b->type);
}

/* `number`: of a tensor of a numbered role; otherwise 0. */
static inline struct bound *sh_bound_at(const struct sh_model *m, enum sh_role role, int layer, int number)
{
    if (role < SH_LAYER_ROLE)
        return &m->bound[role];
    size_t in_layer = m->first[role - SH_LAYER_ROLE] + (size_t)number;
    return &m->bound[SH_LAYER_ROLE + (size_t)layer * m->per_layer + in_layer];
}

/* Does one tensor of the file hold all numbers of a numbered role? */
static inline int sh_bound_is_sliced(const struct sh_param *p)
{
    return p->count != SH_ONE && !strchr(p->name, '@');
}

/* Is it a tensor of a shared block, or of a loop, that an earlier layer already has? */
static inline int sh_bound_is_again(const struct sh_model *m, const struct bound *b, int layer)
{
    int first = sh_arch_block_layer(&m->arch, layer);
    if (b->param && sh_arch_first_pass(&m->arch, layer) != layer)
        return 1;
    if (!b->param || !(b->param->form & SH_OF_BLOCK) || strchr(b->param->name, '%') || first == layer)
        return 0;
    return m->file ? b->stored == sh_bound_at(m, b->param->role, first, 0)->stored
                   : (m->arch.flags & SH_TIED_HEAD) != 0;
}

static inline int sh_bound_is_pruned(const struct sh_model *m, const struct bound *b)
{
    return m->pruned > 0 && b->param->role >= SH_LAYER_ROLE && b->param->rows != SH_ONE &&
           b->param->role != SH_NGRAM_EMBED;
}

/* A table of which only the rows that are asked for are read: none of it is kept. */
static inline int sh_bound_is_table(const struct bound *b)
{
    return b->param && b->param->role == SH_NGRAM_EMBED;
}

static inline int sh_bound_is_normed(const struct sh_model *m, const struct bound *b)
{
    return m->arch.head_norm != SH_HEAD_PLAIN && b->param->role == SH_HEAD;
}

/* Do its numbers differ from those of the file? */
static inline int sh_bound_is_changed(const struct sh_model *m, const struct bound *b)
{
    return sh_bound_is_pruned(m, b) || sh_bound_is_normed(m, b);
}

/* The layout with rows numbered through all matrices of a stack. */
static inline struct sh_layout sh_bound_in_stack(const struct bound *b)
{
    struct sh_layout l = b->layout;
    l.first += (int)(b->slice / (size_t)l.cols);
    return l;
}

/* Finds the place of every tensor of the model, whose family, arch and file are set (model_bind.c). -1: a tensor is
 * missing, differs from the config, or belongs to another kind of model. */
int sh_model_bind(struct sh_model *m, struct sh_err *e);
/* Checks that the parts of tables of n-grams are whole, and that what the file says about hashing is what the config
 * implies (model_ngrams.c). */
int sh_model_check_ngrams(const struct sh_model *m, struct sh_err *e);

#endif
