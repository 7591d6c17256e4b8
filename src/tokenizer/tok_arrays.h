/* SPDX-License-Identifier: Apache-2.0 */
/* A vocabulary as arrays, as a tokenizer.model or the metadata of a GGUF file holds it, and the
 * tokenizer that they describe. The arrays belong to the caller and are not needed afterwards. */
#ifndef SH_TOKENIZER_TOK_ARRAYS_H
#define SH_TOKENIZER_TOK_ARRAYS_H

#include <stddef.h>
#include <stdint.h>

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
    int specials_in_text;               /* control tokens are cut out of texts; else their names are plain text */

    /* SCORES and UNIGRAM */
    int add_prefix, squeeze, escape;    /* a leading space; runs of spaces become one, none at
                                           the ends; spaces are written U+2581      */
    int prefix_once;                    /* that space only before the text, not after each token cut out of it */
    int byte_fallback;                  /* what has no token becomes <0x00> … <0xFF> */
    struct sh_tok_string charsmap;      /* precompiled normalisation, n 0: none     */
    struct sh_tok_string unknown_text;  /* the decoded text of the unknown token    */
};

#endif
