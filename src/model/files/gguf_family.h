/* SPDX-License-Identifier: Apache-2.0 */
/* A family's tables for the tensors of a GGUF file: the names are those of llama.cpp, the same in all architectures
 * ("blk.3.attn_q.weight"), fused tensors keep their parts one after another, matrices are never transposed, norms are
 * stored as they multiply (Gemma's with the 1). In files of the architecture "llama" the rows of each head of q and k
 * are in another order: row 2 i + j of a head there is row j w / 2 + i here, w the width of the head, since llama.cpp
 * rotates neighbouring elements and this program rotates halves. */
#ifndef SH_MODEL_FILES_GGUF_FAMILY_H
#define SH_MODEL_FILES_GGUF_FAMILY_H

#include "src/model/families/family.h"
#include "src/model/layout.h"
#include "src/model/weights.h"

enum { SH_GGUF_PAIRED = 1 << 8 };           /* added to enum sh_form: the order of rows above     */

/* A copy of the tables with these names; free it with sh_gguf_family_free. */
struct sh_family *sh_gguf_family(const struct sh_family *f);
void sh_gguf_family_free(struct sh_family *f);                      /* NULL is fine               */

/* The plain [rows, cols] of a parameter (layout.h): f32 if its tensor is packed, else elements of `element` bytes.
 * d_head: the width of a head if the rows are paired, else 0. */
void sh_gguf_gather(const struct sh_stored *t, const struct sh_layout *l, int d_head, size_t element, void *to);

#endif
