/* SPDX-License-Identifier: Apache-2.0 */
/* What PyTorch's pickles are made of: storages, which are named by persistent ids, and tensors, which
 * are windows on them. */
#ifndef SH_MODEL_FILES_TORCH_TENSOR_H
#define SH_MODEL_FILES_TORCH_TENSOR_H

#include <stddef.h>

#include "src/base/err.h"
#include "src/model/files/pickle.h"
#include "src/model/weights.h"

/* The globals that these files may use. */
extern const struct sh_pickle_global sh_torch_globals[];

struct sh_torch_storage {
    const unsigned char *key;               /* its name in the file                                  */
    size_t key_bytes;
    const char *dtype;                      /* as sh_stored has it                                   */
    size_t n, element_bytes;                /* n * element_bytes does not overflow                   */
    const unsigned char *at;                /* NULL until it was found in the file                   */
};

struct sh_torch_storages {
    struct sh_torch_storage *list;          /* [n], by key, each once                                */
    size_t n;
};

/* The storages that a pickle refers to. `s` is freed also after an error. */
int sh_torch_storages(struct sh_torch_storages *s, const struct sh_pickle *p, struct sh_err *e);
struct sh_torch_storage *sh_torch_storage(const struct sh_torch_storages *s, const unsigned char *key, size_t bytes);

/* The tensors of the dictionary `p`, whose storages were all found. */
int sh_torch_tensors(struct sh_part *part, const struct sh_pickle *p, const struct sh_torch_storages *s,
                     struct sh_err *e);

#endif
