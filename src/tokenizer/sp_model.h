/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.model: the file of the SentencePiece library, a protobuf message
 * (sentencepiece_model.proto: pieces, trainer_spec, normalizer_spec). */
#ifndef SH_TOKENIZER_SP_MODEL_H
#define SH_TOKENIZER_SP_MODEL_H

#include "src/tokenizer/tok_arrays.h"

struct sh_sp_model {
    struct sh_tok_arrays arrays;        /* points into the rest */
    char *file;
    struct sh_tok_string *token;
    float *score;
    int32_t *type;
};

/* On failure there is nothing to close. Features that are not implemented (word and character
 * models, spaces after words, denormalisation) are refused by name. */
int sh_sp_model_open(struct sh_sp_model *m, const char *path, struct sh_err *e);
void sh_sp_model_close(struct sh_sp_model *m);

#endif
