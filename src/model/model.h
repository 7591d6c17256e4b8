/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint as named weights. Opening reads config.json (or a GGUF file's metadata), finds every tensor that the
 * family's tables ask for and checks its type and shape; no weight is read. Packed weights are unpacked to f32 on
 * request, whole or by rows. After that a caller asks for tensors by role and layer and says when it is done with a
 * layer, so that a model larger than memory can be swept layer by layer:
 *
 *     struct sh_model *m = sh_model_open(folder, &e);
 *     for (int l = 0; l < sh_model_arch(m)->n_layer; l++) {
 *         struct sh_tensor w;
 *         if (sh_model_tensor(m, SH_Q_W, l, &w, &e)) …
 *         sh_model_drop(m, l);
 *     }
 *     sh_model_close(m);
 *
 * The model owns everything it returns. It is used by one thread at a time; several that share it call sh_model_enter
 * and sh_model_leave around what they do. */
#ifndef SH_MODEL_H
#define SH_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/backend.h"
#include "src/base/err.h"
#include "src/base/num.h"
#include "src/model/arch.h"
#include "src/model/families/family.h"

struct sh_model;

struct sh_tensor {                  /* row-major view, [rows, cols], aligned for its type         */
    const void *at;                 /* NULL: the model has no such tensor (a bias, say)          */
    enum sh_type type;
    int rows, cols;                 /* a vector has one row                                       */
    const char *name;               /* name, as in the checkpoint                                 */
};

/* A hub's folder, or a GGUF file, or a folder that holds one and no config.json. */
struct sh_model *sh_model_open(const char *path, struct sh_err *e);

/* From config.json alone (`path`: the folder or the file), with f32 weights made from the seed when
 * they are asked for: matrices and embeddings normal with the config's deviation, norms 1, the rest
 * 0, as PyTorch begins training. Each tensor depends on seed, role and layer only. */
struct sh_model *sh_model_open_random(const char *path, uint64_t seed, struct sh_err *e);

/* Prunes every matrix of a layer (query, key, value, output, feed-forward; each part of a fused tensor by itself): this
 * share of its numbers, the smallest in magnitude, becomes 0 (numbers.c). 0: unchanged. The fingerprint changes. */
void sh_model_prune(struct sh_model *m, double share);

void sh_model_close(struct sh_model *m);                            /* NULL is fine               */

void sh_model_enter(struct sh_model *m);
void sh_model_leave(struct sh_model *m);

const struct sh_arch *sh_model_arch(const struct sh_model *m);

/* The view stays valid until the layer is dropped. `layer` counts for the roles from SH_LAYER_ROLE
 * on. SH_HEAD of a tied model is its token embedding. */
int sh_model_tensor(struct sh_model *m, enum sh_role role, int layer, struct sh_tensor *out, struct sh_err *e);

/* As sh_model_tensor, for tensor `number` of a numbered role (struct sh_param); the number of tensors of such a
 * role. */
int sh_model_numbered(struct sh_model *m, enum sh_role role, int layer, int number, struct sh_tensor *out,
                      struct sh_err *e);
int sh_model_count(const struct sh_model *m, enum sh_role role);
/* Its number of rows; 0: the model has no such tensor. */
int sh_model_numbered_rows(const struct sh_model *m, enum sh_role role, int layer, int number);

/* Whether the tensor is packed and not unpacked yet. If so, *out is complete except for `at`, and sh_model_rows unpacks
 * n of its rows into out [n, cols]. */
int sh_model_is_packed(const struct sh_model *m, enum sh_role role, int layer, struct sh_tensor *out);
void sh_model_rows(const struct sh_model *m, enum sh_role role, int layer, const int32_t *row, int n, float *out);

/* A matrix in the packed format of its checkpoint, as backends keep it. Nothing is read yet, and it stays valid until
 * the model is closed, also after a drop. 0: the matrix is stored in another way, or it is pruned. */
int sh_model_packed(const struct sh_model *m, enum sh_role role, int layer, int number, struct sh_packed *out,
                    const char **name);

/* The same for 16-bit numbers that are stored row by row in the checkpoint: products widen them. */
int sh_model_halves(const struct sh_model *m, enum sh_role role, int layer, int number, struct sh_packed *out,
                    const char **name);

/* The numbers of the tensors of a numbered role in the order of the files, into order [sh_model_count]. */
void sh_model_file_order(const struct sh_model *m, enum sh_role role, int layer, int *order);

/* The layer's weights are not needed for now: their memory is released. -1: the weights outside the layers. */
void sh_model_drop(struct sh_model *m, int layer);

/* The same for one tensor of a numbered role. */
void sh_model_drop_numbered(struct sh_model *m, enum sh_role role, int layer, int number);

/* Announces that the tensor will soon be read, so that the system may begin to read it. */
void sh_model_ask_numbered(const struct sh_model *m, enum sh_role role, int layer, int number);

size_t sh_model_layer_bytes(const struct sh_model *m, int layer);   /* -1: outside the layers     */
/* Bytes that the processor, or a device, keeps of a layer's weights for products of `dtype`. Packed and coded matrices
 * are kept as they are stored or in blocks (on a device only the formats of kernels/packed.h), 16-bit numbers as they
 * are on the processor. Layer -1: the output matrix. */
size_t sh_model_kept_bytes(const struct sh_model *m, int layer, enum sh_type dtype, int is_host);
/* The part of these bytes that is not copied: it stays in the mapped file. */
size_t sh_model_mapped_bytes(const struct sh_model *m, int layer);
int sh_model_has_integers(const struct sh_model *m);    /* do products read a matrix in codes (sh_packed_is_code)? */
int sh_model_has_codes(const struct sh_model *m, int layer);        /* is a matrix of a layer kept in codes? */
/* The bytes of all layers by the format in which weights are kept, most bytes first; returns the number of formats (at
 * most `most`). The token embedding counts only if it is also the output matrix: otherwise its rows are read from the
 * file when they are needed. `step` counts what one token reads; in a mixture this is the share of the experts that it
 * uses. */
struct sh_kept_format {
    const char *name;                   /* "f16", "Q4_K"                                          */
    size_t parameters, bytes, mapped;
    size_t settled;                     /* of the mapped: what sh_layer_settle may copy           */
    double step;                        /* bytes                                                  */
};
int sh_model_kept_formats(const struct sh_model *m, enum sh_type dtype, struct sh_kept_format *out, int most);
/* The bytes that sh_model_kept_bytes counts for one tensor of a numbered role; 0: the layer has none. */
size_t sh_model_numbered_bytes(const struct sh_model *m, enum sh_role role, int layer, enum sh_type dtype, int is_host);
size_t sh_model_layer_parameters(const struct sh_model *m, int layer);      /* numbers, whatever type each has */
size_t sh_model_bytes(const struct sh_model *m);        /* of all tensors; what is shared counts once */
size_t sh_model_parameters(const struct sh_model *m);   /* numbers in all tensors; what is shared counts once */
enum sh_type sh_model_type(const struct sh_model *m);               /* of most weights, by bytes  */
const char *sh_model_stored_as(const struct sh_model *m);           /* the same in the file: "f32", "Q4_K" */
/* The names of all stored formats, that of most weights first: "INT4, FP8 E4M3, bf16"; for free(). NULL: each tensor
 * has a plain type. */
char *sh_model_formats(const struct sh_model *m);
const char *sh_model_name(const struct sh_model *m);                /* for people                 */
const char *sh_model_family(const struct sh_model *m);              /* "opt"                      */
int sh_model_is_gguf(const struct sh_model *m);

/* Changes with config.json, the tensors' names, shapes and types, the files' sizes, the share that is pruned, and most
 * likely with the weights, of which it reads a few places. For a random model: config.json and seed. */
uint64_t sh_model_fingerprint(const struct sh_model *m);
uint64_t sh_model_fingerprint_unpruned(const struct sh_model *m);    /* the same of all weights    */

/* Element i of rows * cols, as f32. */
float sh_tensor_element(const struct sh_tensor *t, size_t i);

/* An error for the first element that is NaN or infinite. Reads the whole tensor. */
int sh_model_check_finite(const struct sh_tensor *t, struct sh_err *e);

/* The same for a matrix in its packed format, read some rows at a time. */
int sh_packed_check_finite(const struct sh_packed *p, const char *name, struct sh_err *e);

/* ---- the numbers of a weight (numbers.c) ---- */

/* out[i] for i < n: mean 0, deviation `std`, near-normal; a function of seed and i alone. */
void sh_random_normal(float *out, size_t n, uint64_t seed, float std);

/* Of the n numbers at `at`, row-major [outputs, inputs], the rint(share * n) of smallest magnitude become +0
 * (ties of the rounding to even, as torch.nn.utils.prune counts); of numbers of equal magnitude those that
 * come first go first. Magnitudes are compared in the type that is stored. share in [0, 1). */
void sh_prune(void *at, enum sh_type type, size_t n, double share);

/* Each row, or each column, divided by its length. */
void sh_norm_matrix(void *at, enum sh_type type, int rows, int cols, int by_column);

#endif
