/* SPDX-License-Identifier: Apache-2.0 */
/* What a tokenizer is made of, for the files that read, run and build it. */
#ifndef SH_TOKENIZER_TOK_H
#define SH_TOKENIZER_TOK_H

#include "src/tokenizer/sp_decode.h"
#include "src/tokenizer/tok_added.h"
#include "src/tokenizer/tok_bpe.h"
#include "src/tokenizer/tok_decode.h"
#include "src/tokenizer/tok_normal.h"
#include "src/tokenizer/tok_split.h"
#include "src/tokenizer/tok_unigram.h"
#include "src/tokenizer/tok_vocab.h"

struct sh_tokenizer {
    struct sh_vocab vocab;
    struct sh_added added;              /* cut out of the text as it came       */
    struct sh_added added_normal;       /* cut out of the normalised text       */
    struct sh_normal normal;
    struct sh_split split;
    int is_unigram;                     /* or else BPE */
    struct sh_bpe bpe;
    struct sh_unigram unigram;
    struct sh_decode decode;
    struct sh_sp_decode sp;             /* when it is there, instead of decode */
    int bos, eos;
    struct sh_text label;               /* NUL-ended, one after the other       */
    size_t *label_at;                   /* by id; (size_t)-1: no such token     */
};

/* Fills a zeroed tokenizer from the content of a tokenizer.json. On failure the caller frees it. */
int sh_tok_read(struct sh_tokenizer *t, const json_t *root, struct sh_err *e);

/* Adds the tokens of an "added_tokens" array. */
int sh_tok_read_added(struct sh_tokenizer *t, const json_t *tokens, struct sh_err *e);

void sh_tok_labels(struct sh_tokenizer *t);             /* the last step of all that build one */

/* Fills a zeroed tokenizer from arrays. On failure the caller frees it. */
int sh_tok_read_arrays(struct sh_tokenizer *t, const struct sh_tok_arrays *a, struct sh_err *e);

/* The pre-tokenizer that a GGUF file names, and what goes with it ("normalizer", "decoder",
 * "ignore_merges"), as the parts of a tokenizer.json. NULL: not a known name. */
json_t *sh_tok_pre(const char *name);

/* The "added_tokens" array that the other files of a folder make: tokenizer_config.json (config,
 * may be NULL), special_tokens_map.json, added_tokens.json. `ids`: token to id. NULL: error. */
json_t *sh_tok_folder_added(const char *folder, const json_t *config, const json_t *ids, struct sh_err *e);

/* The content of an equivalent tokenizer.json for a folder that has vocab.json and merges.txt. */
json_t *sh_tok_gpt2(const char *folder, const json_t *config, struct sh_err *e);

#endif
