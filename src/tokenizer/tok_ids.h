/* SPDX-License-Identifier: Apache-2.0 */
/* Appending to a list of ids. */
#ifndef SH_TOKENIZER_TOK_IDS_H
#define SH_TOKENIZER_TOK_IDS_H

#include "src/base/mem.h"
#include "src/tokenizer/tokenizer.h"

/* Makes room for `more` ids after the first n. */
static inline void sh_ids_reserve(struct sh_ids *ids, size_t more)
{
    if (ids->cap - ids->n >= more)
        return;
    ids->cap = 2 * ids->cap > ids->n + more ? 2 * ids->cap : ids->n + more + 64;
    ids->at = xreallocarray(ids->at, ids->cap, sizeof *ids->at);
}

static inline void sh_ids_add(struct sh_ids *ids, int32_t id)
{
    sh_ids_reserve(ids, 1);
    ids->at[ids->n++] = id;
}

#endif
