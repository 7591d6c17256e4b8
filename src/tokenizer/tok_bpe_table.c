/* SPDX-License-Identifier: Apache-2.0 */
/* The table of merges; see tok_bpe.h. */
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/tokenizer/tok_bpe.h"

#define MARK "\xe2\x96\x81"             /* U+2581, a written space */

void sh_bpe_room(struct sh_bpe *b, size_t n)
{
    for (b->n_slot = 64; b->n_slot < 2 * n; b->n_slot *= 2)
        ;
    b->seed = sh_tok_seed();
    b->merge = xreallocarray(NULL, b->n_slot, sizeof *b->merge);
    for (size_t i = 0; i < b->n_slot; i++)
        b->merge[i].rank = -1;
}

void sh_bpe_put(struct sh_bpe *b, int32_t left, int32_t right, int32_t rank, int32_t id)
{
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t i = sh_tok_mix(b->seed, pair) & (b->n_slot - 1);
    while (b->merge[i].rank >= 0 && b->merge[i].pair != pair)
        i = (i + 1) & (b->n_slot - 1);
    b->merge[i] = (struct sh_merge){pair, rank, id};
}

/* Does it have a U+2581 after another character? */
static int has_inner_mark(const char *text, size_t n)
{
    for (size_t i = 1; i + 3 <= n; i++)
        if (!memcmp(text + i, MARK, 3) && (i < 3 || memcmp(text + i - 3, MARK, 3)))
            return 1;
    return 0;
}

/* Where no merge spans the place before a written space, a text may be cut there without changing
 * what comes out, as long as the mark itself is a token (it ends a run of unknown characters). */
void sh_bpe_ready(struct sh_bpe *b)
{
    b->cut_words = !b->whole_first && !b->unused && sh_vocab_find(b->vocab, MARK, 3) >= 0;
    for (size_t i = 0; i < b->n_slot && b->cut_words; i++) {
        if (b->merge[i].rank < 0)
            continue;
        const struct sh_span *s = &b->vocab->at[b->merge[i].id];
        b->cut_words = !has_inner_mark(b->vocab->text.at + s->at, s->n);
    }
}

void sh_bpe_free(struct sh_bpe *b)
{
    free(b->merge);
    free(b->unused);
    sh_vocab_free(&b->lone);
}
