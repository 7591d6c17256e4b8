/* SPDX-License-Identifier: Apache-2.0 */
/* The output head: hidden states after the last layer to logits. Final norm, projection to the
 * embedding's width, product with the head's matrix (the token embedding where the model is tied),
 * soft cap; as far as the model has these. */
#ifndef SH_MODEL_HEAD_H
#define SH_MODEL_HEAD_H

#include "kernels/backend.h"
#include "src/model/model.h"

struct sh_head;

/* Loads its weights (checked for NaN) for products of `dtype`, and allocates all its device memory, sized for calls of
 * about `rows` rows. NULL: e says which tensor and why. */
struct sh_head *sh_head_new(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, enum sh_type dtype,
                            int rows, struct sh_err *e);
void sh_head_free(struct sh_head *h);                           /* NULL is fine */

/* Logits of rows [first, first + rows) of hidden [.., d_model] f32 on the device, into logits
 * [rows, n_vocab] on the host. Waits for the device and reports its errors, earlier ones included. */
int sh_head_run(struct sh_head *h, const void *hidden, int first, int rows, float *logits, struct sh_err *e);

/* The most rows in one pass; more rows take several passes. */
int sh_head_rows(const struct sh_head *h);

/* The most likely token of each of these rows, into out [rows] on the host: found on the device, without copying the
 * logits. Not available if the device memory is the host's or if logits are capped. */
int sh_head_can_choose(const struct sh_head *h);
int sh_head_choose(struct sh_head *h, const void *hidden, int first, int rows, struct sh_best *out, struct sh_err *e);

#endif
