/* SPDX-License-Identifier: Apache-2.0 */
/* What layer.c and mixture.c share: the weights of a layer, and its products. */
#ifndef SH_MODEL_LAYER_PARTS_H
#define SH_MODEL_LAYER_PARTS_H

#include "src/model/layer.h"

struct sh_expert {                      /* biases NULL: none                                      */
    struct sh_weight *gate, *up, *down;
    float *gate_bias, *up_bias, *down_bias;
};

struct sh_layer {
    int index;
    const struct sh_backend *b;
    struct sh_dev *d;
    struct sh_model *m;
    struct sh_weight *matrix[SH_N_ROLE];
    float *vector[SH_N_ROLE];
    float knob[4];                      /* of an activation that has some                         */
    struct sh_expert *expert;           /* [n_expert]                                             */
    int n_expert;
    struct sh_latent_head { struct sh_weight *key, *value; } *latent;   /* [n_latent]: of each head */
    int n_latent;
    float *sinks;                       /* host, [n_head]; NULL: none                             */
    float *choice;                      /* host: SH_ROUTER_CHOICE; NULL: none                     */
};

/* sh_layer_matrix for one of a numbered role. */
int sh_layer_numbered(const struct sh_layer *l, struct sh_model *m, enum sh_role role, int number, enum sh_type dtype,
                      struct sh_weight **out, struct sh_err *e);

/* Several products of one x. */
void sh_layer_linears(const struct sh_layer *l, const struct sh_linear *a, int n);

/* out = act(gate x) * (up x), or act(up x); the factors are kept in a->gate and a->gated. */
void sh_layer_feed(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat out, struct sh_mat x,
                   const struct sh_expert *w);

/* Loads the router and the experts of a layer that has some; 0 also where it has none. */
int sh_mixture_load(struct sh_layer *l, struct sh_model *m, enum sh_type dtype, struct sh_err *e);
void sh_mixture_drop(struct sh_layer *l);

/* out (+)= what the experts that tokens of x choose give; add 0: the first of it replaces what was there. */
void sh_mixture_run(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat out, struct sh_mat x,
                    int add);

/* The same of latent attention: what makes its keys and values. */
int sh_latent_load(struct sh_layer *l, struct sh_model *m, enum sh_type dtype, struct sh_err *e);
void sh_latent_drop(struct sh_layer *l);
/* Queries [rows, n_head * d_head] and keys [rows, d_head] of x, not yet turned. */
void sh_latent_project(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat q, struct sh_mat k,
                       struct sh_mat x);
/* out [rows, n_head * d_v]: the heads' values of what attention gave. */
void sh_latent_values(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat out,
                      struct sh_mat mixed);

#endif
