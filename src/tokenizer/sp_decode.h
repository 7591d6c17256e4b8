/* SPDX-License-Identifier: Apache-2.0 */
/* Ids to text as SentencePiece does it: control tokens give nothing, unknown ones a fixed string,
 * runs of byte tokens characters; the space that normalisation prepended is removed. */
#ifndef SH_TOKENIZER_SP_DECODE_H
#define SH_TOKENIZER_SP_DECODE_H

#include "src/tokenizer/tok_arrays.h"
#include "src/tokenizer/tok_vocab.h"

struct sh_sp_decode {
    unsigned char *type;                /* enum sh_tok_type by id; NULL: not such a tokenizer */
    size_t n_type;                      /* later ids are added tokens, written out            */
    struct sh_text unknown;
    int strip, squeeze;
};

void sh_sp_decode_read(struct sh_sp_decode *d, const struct sh_tok_arrays *a);
void sh_sp_decode_free(struct sh_sp_decode *d);
void sh_sp_decode_run(const struct sh_sp_decode *d, const struct sh_vocab *v, const int32_t *ids,
                      size_t n, struct sh_text *out);

/* The byte of a token <0xXX>, or -1. */
int sh_byte_of(const char *token, size_t n);

#endif
