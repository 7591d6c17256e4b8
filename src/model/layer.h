/* SPDX-License-Identifier: Apache-2.0 */
/* One layer of a transformer on a backend: its weights loaded, then hidden states sent through it.
 * The caller decides how long a layer's weights stay. The operations only queue: errors of the
 * device come out of the backend's sync. */
#ifndef SH_MODEL_LAYER_H
#define SH_MODEL_LAYER_H

#include "kernels/backend.h"
#include "src/model/model.h"

struct sh_layer;                        /* the weights of one layer on the device            */

/* Loads (and checks for NaN) the layer's weights for products of `dtype`. The model's own pages of
 * the layer are given back. NULL: e says which tensor and why. */
struct sh_layer *sh_layer_load(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, int layer,
                               enum sh_type dtype, struct sh_err *e);
void sh_layer_drop(struct sh_layer *l);                         /* NULL is fine */

/* Device memory for the activations of up to `rows` tokens. After sh_layer_run q, k, v hold the
 * layer's queries [rows, n_head * d_head] and keys, values [rows, n_kv_head * d_head], f32. */
struct sh_activations {
    const struct sh_backend *backend;
    struct sh_dev *device;
    const struct sh_arch *arch;
    enum sh_type dtype;
    int rows;
    void *x, *q, *k, *v, *mixed, *up;   /* x [rows, d_model], mixed [rows, q], up [rows, d_ff]: dtype */
};

int sh_activations_new(struct sh_activations *a, const struct sh_backend *b, struct sh_dev *d,
                       const struct sh_arch *arch, int rows, enum sh_type dtype, struct sh_err *e);
void sh_activations_free(struct sh_activations *a);
size_t sh_activations_bytes(const struct sh_arch *arch, int rows, enum sh_type dtype);

/* hidden [n, d_model] f32 on the device, n_seq sequences at start[0..n_seq], becomes the input of
 * the next layer. attention_only: stop once the probabilities are out; hidden is left as it was. */
void sh_layer_run(const struct sh_layer *l, struct sh_activations *a, void *hidden, int n_seq, const int *start,
                  const struct sh_tap *tap, int attention_only);

/* The input of layer 0 of one sequence, on the host: hidden [n_tokens, d_model] f32 = token embedding
 * (projected when d_embed differs from d_model) plus the learned positions 0..n_tokens - 1. */
int sh_embed(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, const int32_t *tokens, int n_tokens,
             float *hidden, struct sh_err *e);

#endif
