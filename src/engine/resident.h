/* SPDX-License-Identifier: Apache-2.0 */
/* A model with all its layers on a device, or one of them at a time, ready for sessions (session.h), any number of
 * which share it. Used by one thread at a time. */
#ifndef SH_ENGINE_RESIDENT_H
#define SH_ENGINE_RESIDENT_H

#include "src/model/layers/layer.h"

struct sh_resident_setup {
    const struct sh_backend *backend;
    struct sh_dev *device;
    struct sh_model *model;             /* stays open as long as the resident                     */
    enum sh_type dtype;                 /* type of the products' operands                         */
    int weight_bits;                    /* bits of the layers' matrices: 16 (as dtype), 8, 4; the output matrix: 8  */
    int rows;                           /* tokens that go through a layer together, at most       */
    int positions;                      /* length of the longest sequence                         */
    int n_threads;                      /* threads of the host, for attention; 0: all (team.h) */
    int streams;                        /* 1: a layer is here from sh_resident_layer to sh_resident_leave */
    struct sh_stages *stages;           /* NULL: time is not measured                             */
    void (*on_host)(void *to, const char *why); /* why a cache is on the host, not in device memory; may be NULL */
    void (*on_eager)(void *to, const char *why);        /* steps do not run as graphs, and why; may be NULL       */
    void *to;
};

struct sh_resident {
    struct sh_resident_setup setup;
    const struct sh_arch *arch;
    struct sh_layer **layer;            /* [n_layer]; NULL: not here, where they come one by one  */
    struct sh_entry *entry;
    struct sh_head *head;
    struct sh_activations act;
    void *hidden;                       /* device: [rows, sh_arch_row] f32                         */
    float *logits;                      /* host: [logits_rows, n_vocab], for rows that are taken one after another */
    int logits_rows;
    int is_host, settles;               /* of the device: sh_props                                */
};

/* NULL: e names the tensor and what is wrong with it, or it does not fit. Weights that cannot fit are refused before
 * any is read. */
struct sh_resident *sh_resident_open(const struct sh_resident_setup *setup, struct sh_err *e);
void sh_resident_close(struct sh_resident *r);          /* NULL is fine */

/* Bytes of memory or of the device that all layers and the head need at least, and what is left of it. */
void sh_resident_room(const struct sh_resident_setup *setup, size_t *needs, size_t *left);

/* For whole texts, layer by layer, of `longest` tokens at most and `all` together: sets rows (at least `least`) and
 * streams of a setup that has the rest. A text should not be cut: its full cache is then attended to by the backend, at
 * once. Weights that do not fit come layer by layer. */
void sh_resident_for_texts(struct sh_resident_setup *setup, int longest, long long all, int least);

/* Before a session of this layer runs, and after the last one has; where all layers are here there is nothing to do. */
int sh_resident_layer(struct sh_resident *r, int layer, struct sh_err *e);
void sh_resident_leave(struct sh_resident *r, int layer);

/* The backend's own attention, among the rows [start[i], start[i + 1]) of each sequence, which may be none. */
void sh_resident_attend(const struct sh_resident *r, const struct sh_attend *what, int n_seq, const int *start);

#endif
