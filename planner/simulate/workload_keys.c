/* SPDX-License-Identifier: Apache-2.0 */
/* See workload.h. */
#include <stdlib.h>

#include "planner/simulate/workload.h"
#include "src/base/mem.h"
#include "src/base/rng.h"

static void append(struct sh_keys *k, uint64_t key)
{
    if (k->n == k->room) {
        k->room = k->room ? 2 * k->room : 64;
        k->at = xreallocarray(k->at, k->room, sizeof *k->at);
    }
    k->at[k->n++] = key;
}

void sh_keys_text(struct sh_keys *k, uint32_t block, uint64_t name, uint32_t tokens)
{
    while (k->n < tokens / block)
        append(k, sh_rng(name, k->n));
}

void sh_keys_pieces(struct sh_keys *k, uint32_t block, uint32_t piece, const uint64_t *id, uint32_t n, uint32_t tokens)
{
    uint64_t text = 0;
    for (uint32_t i = 0; i < n; i++) {
        text = sh_rng(text, id[i]);
        for (uint32_t at = 0; at < piece && k->n < tokens / block; at += block < piece ? block : piece)
            if (block <= piece)
                append(k, sh_rng(text, at));
            else if ((i + 1) % (block / piece) == 0)
                append(k, text);
    }
}
