/* SPDX-License-Identifier: Apache-2.0 */
/* What only the SentencePiece library has: its file, its normalisation, its decoding. */
#ifndef SH_TOKENIZER_SP_H
#define SH_TOKENIZER_SP_H

#include "src/model/files/map.h"
#include "src/tokenizer/tok_added.h"
#include "src/tokenizer/tok_arrays.h"
#include "src/tokenizer/tok_vocab.h"

/* tokenizer.model, a protobuf message (sentencepiece_model.proto: pieces, trainer_spec, normalizer_spec). */
struct sh_sp_model {
    struct sh_tok_arrays arrays;        /* points into the rest */
    struct sh_map map;
    struct sh_tok_string *token;
    float *score;
    int32_t *type;
};

/* On failure there is nothing to close. Features that are not implemented (word and character
 * models, spaces after words, denormalisation) are refused by name. */
int sh_sp_model_open(struct sh_sp_model *m, const char *path, struct sh_err *e);
void sh_sp_model_close(struct sh_sp_model *m);

/* Normalisation: characters are rewritten by a precompiled map, spaces squeezed, one prepended, and all become U+2581.
 * */
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

/* Ids to text: control tokens give nothing, unknown ones a fixed string, runs of byte tokens characters; the space that
 * normalisation prepended is removed. */
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

/* Appends a token's text with spaces for U+2581. */
void sh_sp_put_spaced(const char *text, size_t n, struct sh_text *out);

/* The byte of a token <0xXX>, or -1. */
int sh_byte_of(const char *token, size_t n);

#endif
