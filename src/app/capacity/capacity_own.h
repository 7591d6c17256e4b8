/* SPDX-License-Identifier: Apache-2.0 */
/* What this program itself holds in memory while it runs a checkpoint on the CPU, with products in f32: weights in the
 * format that they are kept in, caches, and activations. Scratch of products and attention, the program and its
 * libraries are not counted. */
#ifndef SH_APP_CAPACITY_OWN_H
#define SH_APP_CAPACITY_OWN_H

#include "src/app/capacity/capacity_ask.h"
#include "src/model/model.h"

#define SH_CAPACITY_OWN "shears"        /* --engine's name of it                                  */

enum { SH_OWN_FORMATS = 16 };

struct sh_capacity_own {
    const char *model;                  /* not owned                                              */
    struct sh_kept_format format[SH_OWN_FORMATS];
    struct sh_model *of;                /* owns the names of formats                              */
    int n_format, rows;                 /* rows: tokens that go through a layer together          */
    uint64_t weights, mapped, copied;   /* bytes: all; in the mapped file; copies in another order or type */
    uint64_t length, batch, token, sequence, cache;     /* bytes of a token, of a sequence, of the batch */
    uint64_t activations, most;         /* most: everything except mapped pages                   */
    char kv[SH_CAPACITY_WORD];
};

/* Does --engine name this program? */
int sh_capacity_is_own(const struct sh_capacity_args *a);

/* -1: an option that belongs to a GPU or a server, or the checkpoint cannot be read. Clear it in any case. */
int sh_capacity_own(const struct sh_capacity_args *a, struct sh_capacity_own *out, struct sh_err *e);
void sh_capacity_own_clear(struct sh_capacity_own *o);

#endif
