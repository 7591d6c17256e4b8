/* SPDX-License-Identifier: Apache-2.0 */
/* What a tokenizer is made of, for the files that read, run and build it. */
#ifndef SH_TOKENIZER_TOK_H
#define SH_TOKENIZER_TOK_H

#include "src/model/files/map.h"
#include "src/tokenizer/tok_model.h"

/* ---- a vocabulary as arrays, as a tokenizer.model or the metadata of a GGUF file has it ---- */

enum sh_tok_model {
    SH_TOK_SCORES,                      /* SentencePiece's BPE: "llama" in GGUF     */
    SH_TOK_UNIGRAM,                     /* SentencePiece's unigram: "t5"            */
    SH_TOK_MERGES                       /* byte-level BPE with merges: "gpt2"       */
};

/* The numbers are those of SentencePiece's files and of GGUF's tokenizer.ggml.token_type. */
enum sh_tok_type {
    SH_TOK_NORMAL = 1, SH_TOK_UNKNOWN, SH_TOK_CONTROL, SH_TOK_USER, SH_TOK_UNUSED, SH_TOK_BYTE
};

struct sh_tok_string { const char *at; size_t n; };     /* need not end with a NUL */

struct sh_tok_arrays {
    enum sh_tok_model model;
    size_t n;                           /* tokens; the index is the id              */
    const struct sh_tok_string *token;
    const float *score;                 /* SCORES, UNIGRAM; else NULL               */
    const int32_t *type;                /* NULL: all normal                         */

    size_t n_merge;                     /* MERGES: "a b", the first to be done first */
    const struct sh_tok_string *merge;
    const char *pre;                    /* MERGES: the pre-tokenizer, in GGUF's words */

    int32_t bos, eos;                   /* ids, -1: none                            */
    int add_bos, add_eos;               /* added when special tokens are wanted */
    /* Control, unknown and user-defined tokens are cut out of texts as they come (llama.cpp); else only user-defined
     * ones, of normalised texts (SentencePiece) */
    int specials_in_text;
    int takes_spaces;                   /* white space after most of them is dropped (Phi-3) */

    /* SCORES and UNIGRAM */
    int add_prefix, squeeze, escape;    /* a leading space; one space for a run, none at the ends; U+2581 for spaces */
    int prefix_once;                    /* that space only before the text, not after each token cut out of it */
    int byte_fallback;                  /* what has no token becomes <0x00> … <0xFF> */
    struct sh_tok_string charsmap;      /* precompiled normalisation, n 0: none     */
    struct sh_tok_string unknown_text;  /* the decoded text of the unknown token    */
};

/* ---- SentencePiece (sp_*.c): its file, its normalisation, its decoding ---- */

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

/* Normalisation: characters are rewritten by a precompiled map, spaces squeezed, one prepended, and all become
 * U+2581. */
struct sh_sp_normal {
    int add_prefix, prefix_once, squeeze, escape;
    struct sh_added user;               /* what is left as it is          */
    uint32_t *unit;                     /* the map: a double array …      */
    size_t n_unit;
    struct sh_text to;                  /* … of places in these NUL-terminated strings */
};

/* Takes over the rules of `a`; user-defined tokens are put into n->user by the caller. */
int sh_sp_normal_read(struct sh_sp_normal *n, const struct sh_tok_arrays *a, struct sh_err *e);
void sh_sp_normal_free(struct sh_sp_normal *n);         /* and n itself; NULL is fine */

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

/* ---- the whole ---- */

/* What the normalizer, the pre_tokenizer and the decoder of a tokenizer.json consist of. `kind` is one of the enum in
 * tok_normal.c, tok_split.c or tok_decode.c, which says what the other fields mean. */
struct sh_step {
    int kind;
    struct sh_regex *regex;             /* NULL: this kind has none                 */
    struct sh_text text;                /* what to put, or to take off              */
    int form;                           /* tok_normal.c                             */
    struct sh_sp_normal *sp;            /* likewise                                 */
    int only_start, behaviour, invert;  /* tok_split.c                              */
    json_int_t start, stop;             /* tok_decode.c, tok_normal.c: of both ends */
};

struct sh_steps { struct sh_step *at; int n; };

struct sh_step *sh_steps_add(struct sh_steps *s, int kind);     /* zeroed but for its kind */
void sh_steps_free(struct sh_steps *s);

/* Read one step of the "normalizer", which rewrites a text before tokens are looked up, of the "pre_tokenizer", which
 * cuts it into the pieces within which tokens form, and of the "decoder", which makes text of tokens' strings. */
sh_read_step sh_normal_step, sh_split_step, sh_decode_step;
int sh_tok_replace(struct sh_step *to, const json_t *from, struct sh_err *e);    /* "Replace", in two of them */

/* Appends the normalised text to `out`. at_start: it begins the whole text. watch: see tok_regex.h. */
struct sh_watch;
int sh_normal_run(const struct sh_steps *s, const char *text, size_t n, int at_start, struct sh_text *out,
                  struct sh_watch *watch, struct sh_err *e);
void sh_normal_sentencepiece(struct sh_steps *s, struct sh_sp_normal *sp);      /* takes over sp */

/* Cuts and rewrites `p` in place; `spare` is scratch. at_start: its first piece begins the whole text. No piece is
 * empty afterwards. */
int sh_split_run(const struct sh_steps *s, struct sh_pieces *p, struct sh_pieces *spare, int at_start,
                 struct sh_watch *watch, struct sh_err *e);

/* `p` holds one piece a token; the text is appended to `out`. */
void sh_decode_run(const struct sh_steps *s, struct sh_pieces *p, struct sh_text *out);
int sh_decode_is_byte_level(const struct sh_steps *s);         /* tokens are written in GPT-2's alphabet */

enum { SH_TOK_MOST_START = 4, SH_TOK_SECONDS = 10 };   /* SECONDS: for the expressions of one file or text */

struct sh_tokenizer {
    struct sh_vocab vocab;
    struct sh_added added;              /* cut out of the text as it came       */
    struct sh_added added_normal;       /* cut out of the normalised text       */
    struct sh_steps normal, split, decode;
    int is_unigram;                     /* or else BPE */
    struct sh_bpe bpe;
    struct sh_unigram unigram;
    struct sh_sp_decode sp;             /* when it is there, instead of decode */
    int32_t start[SH_TOK_MOST_START];   /* before every text                    */
    int n_start, eos;                   /* eos: after it; -1: none              */
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
/* The same for byte-level tokens within the matches of an expression and what is between them. */
json_t *sh_tok_cut(const char *expression);
/* Does it put bos before texts where the file does not say? */
int sh_tok_pre_begins(const char *name);

/* The "added_tokens" array that the other files of a folder make: tokenizer_config.json (config,
 * may be NULL), special_tokens_map.json, added_tokens.json. `ids`: token to id. NULL: error. */
json_t *sh_tok_folder_added(const char *folder, const json_t *config, const json_t *ids, struct sh_err *e);

/* The same tokens, as far as they are not in the folder's tokenizer.json (root), become some of its added_tokens. Their
 * ids are those of the vocabulary or follow it; ids in the other files are ignored. */
int sh_tok_folder_more(const char *folder, const json_t *config, json_t *root, struct sh_err *e);
/* A file that may be absent: NULL then, and for an error, which sets *bad. */
json_t *sh_tok_optional(const char *folder, const char *name, int *bad, struct sh_err *e);

/* The content of an equivalent tokenizer.json for a folder that has vocab.json and merges.txt. */
json_t *sh_tok_gpt2(const char *folder, const json_t *config, struct sh_err *e);

/* A rank list (tiktoken's format) that a folder has; NULL: none. The content of an equivalent tokenizer.json, with a
 * model of type "Ranks"; config: tokenizer_config.json, may be NULL. */
const char *sh_tok_ranks_file(const char *folder);
json_t *sh_tok_ranks(const char *folder, const char *file, const json_t *config, struct sh_err *e);

/* The same of the folder's tekken.json (Mistral's format). */
json_t *sh_tok_tekken(const char *folder, struct sh_err *e);

/* A "post_processor" that puts tokens before each text: their contents, ended by a NULL. NULL: one of them is not in
 * the "added_tokens" array. */
json_t *sh_tok_begins_with(const char *const *before, const json_t *added, struct sh_err *e);

/* Fills a zeroed tokenizer from the (first) GGUF file of a model. On failure the caller frees it. */
int sh_tok_open_gguf(struct sh_tokenizer *t, const char *path, struct sh_err *e);

#endif
