/* SPDX-License-Identifier: Apache-2.0 */
/* SentencePiece's normalisation: characters are rewritten by a precompiled map, spaces squeezed,
 * one prepended, and all written U+2581. */
#ifndef SH_TOKENIZER_SP_NORMAL_H
#define SH_TOKENIZER_SP_NORMAL_H

#include "src/tokenizer/tok_added.h"
#include "src/tokenizer/tok_arrays.h"

struct sh_sp_normal {
    int add_prefix, prefix_once, squeeze, escape;
    struct sh_added user;               /* what is left as it is          */
    uint32_t *unit;                     /* the map: a double array …      */
    size_t n_unit;
    struct sh_text to;                  /* … of places in these NUL-terminated strings */
};

/* Takes over the rules of `a`; user-defined tokens are put into n->user by the caller. */
int sh_sp_normal_read(struct sh_sp_normal *n, const struct sh_tok_arrays *a, struct sh_err *e);
void sh_sp_normal_free(struct sh_sp_normal *n);

/* Appends the normalised text (well-formed UTF-8 in, the same out) to `out`. at_start: it begins the whole text. */
int sh_sp_normal_run(const struct sh_sp_normal *n, const char *text, size_t bytes, int at_start,
                     struct sh_text *out, struct sh_err *e);

#endif
