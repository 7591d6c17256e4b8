/* SPDX-License-Identifier: Apache-2.0 */
/* What a tokenizer is made of, for the files that read, run and build it. */
#ifndef SH_TOKENIZER_TOK_H
#define SH_TOKENIZER_TOK_H

#include "src/tokenizer/sp.h"
#include "src/tokenizer/tok_added.h"
#include "src/tokenizer/tok_bpe.h"
#include "src/tokenizer/tok_json.h"
#include "src/tokenizer/tok_unigram.h"
#include "src/tokenizer/tok_vocab.h"

/* The "pre_tokenizer" of tokenizer.json: cuts a text into the pieces within which tokens form. */
struct sh_split_step;
struct sh_split { struct sh_split_step *step; int n; };

int sh_split_read(struct sh_split *s, const json_t *pre_tokenizer, struct sh_err *e);
void sh_split_free(struct sh_split *s);

/* Cuts and rewrites `p` in place; `spare` is scratch. at_start: its first piece begins the whole text. No piece is
 * empty afterwards. */
int sh_split_run(const struct sh_split *s, struct sh_pieces *p, struct sh_pieces *spare,
                 int at_start, struct sh_err *e);

/* The "normalizer" of tokenizer.json: the rewriting of a text before tokens are looked up. */
struct sh_normal_step;
struct sh_normal { struct sh_normal_step *step; int n; };

int sh_normal_read(struct sh_normal *s, const json_t *normalizer, struct sh_err *e);
void sh_normal_sentencepiece(struct sh_normal *s, struct sh_sp_normal *sp);    /* takes over sp */
void sh_normal_free(struct sh_normal *s);

/* Appends the normalised text to `out`. at_start: it begins the whole text. */
int sh_normal_run(const struct sh_normal *s, const char *text, size_t n, int at_start,
                  struct sh_text *out, struct sh_err *e);

/* The "decoder" of tokenizer.json: strings of tokens back to text. */
struct sh_decode_step;
struct sh_decode {
    struct sh_decode_step *step;
    int n;
    int byte_level;                     /* tokens are written in GPT-2's alphabet */
};

int sh_decode_read(struct sh_decode *d, const json_t *decoder, struct sh_err *e);
void sh_decode_free(struct sh_decode *d);

/* `p` holds one piece a token; the text is appended to `out`. */
void sh_decode_run(const struct sh_decode *d, struct sh_pieces *p, struct sh_text *out);

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

/* A pre-tokenizer by its name in GGUF files, with what belongs to it ("normalizer", "decoder", "ignore_merges"), as
 * parts of a tokenizer.json. NULL: not a known name. */
json_t *sh_tok_pre(const char *name);

/* The "added_tokens" array that the other files of a folder make: tokenizer_config.json (config,
 * may be NULL), special_tokens_map.json, added_tokens.json. `ids`: token to id. NULL: error. */
json_t *sh_tok_folder_added(const char *folder, const json_t *config, const json_t *ids, struct sh_err *e);

/* The content of an equivalent tokenizer.json for a folder that has vocab.json and merges.txt. */
json_t *sh_tok_gpt2(const char *folder, const json_t *config, struct sh_err *e);

/* Fills a zeroed tokenizer from the (first) GGUF file of a model. On failure the caller frees it. */
int sh_tok_open_gguf(struct sh_tokenizer *t, const char *path, struct sh_err *e);

#endif
