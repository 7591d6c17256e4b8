/* SPDX-License-Identifier: Apache-2.0 */
/* What a tokenizer is made of, for the files that read, run and build it. */
#ifndef SH_MODEL_TOK_H
#define SH_MODEL_TOK_H

#include "src/model/tok_added.h"
#include "src/model/tok_bpe.h"
#include "src/model/tok_decode.h"
#include "src/model/tok_normal.h"
#include "src/model/tok_split.h"
#include "src/model/tok_vocab.h"

struct sh_tokenizer {
    struct sh_vocab vocab;
    struct sh_added added;              /* cut out of the text as it came       */
    struct sh_added added_normal;       /* cut out of the normalised text       */
    struct sh_normal normal;
    struct sh_split split;
    struct sh_bpe bpe;
    struct sh_decode decode;
    int bos;
    struct sh_text label;               /* NUL-ended, one after the other       */
    size_t *label_at;                   /* by id; (size_t)-1: no such token     */
};

/* Fills a zeroed tokenizer from the content of a tokenizer.json. On failure the caller frees it. */
int sh_tok_read(struct sh_tokenizer *t, const json_t *root, struct sh_err *e);

/* The content of an equivalent tokenizer.json for a folder that has vocab.json and merges.txt. */
json_t *sh_tok_gpt2(const char *folder, const json_t *config, struct sh_err *e);

#endif
