/* SPDX-License-Identifier: Apache-2.0 */
/* Text to token ids and back: BPE (byte-level, or characters with byte fallback) and unigram models as published in a
 * model folder: tokenizer.json, vocab.json + merges.txt, or SentencePiece's tokenizer.model; or within a GGUF file.
 * Features of the files that are not implemented are refused by name when they are opened, never ignored.
 *
 * A tokenizer is read-only once open: any number of threads may encode and decode with one. */
#ifndef SH_TOKENIZER_H
#define SH_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"

struct sh_tokenizer;

struct sh_ids { int32_t *at; size_t n, cap; };          /* start with {0}; free(at) when done */

/* `path` is a folder that holds tokenizer.json, tekken.json, a rank list (tok_ranks.c), vocab.json and merges.txt, or
 * tokenizer.model (the first that is there counts), with tokenizer_config.json, special_tokens_map.json and
 * added_tokens.json where there are any (next to a tokenizer.json, the last two only if tokenizer_config.json has no
 * added_tokens_decoder; next to a tekken.json, the first alone); or a GGUF file, or a folder without these that holds
 * one and no config.json. NULL: e says why. */
struct sh_tokenizer *sh_tokenizer_open(const char *path, struct sh_err *e);
void sh_tokenizer_free(struct sh_tokenizer *t);         /* NULL is fine */

/* Appends the ids of `text` (UTF-8, may contain NULs) to `out`; on failure `out` is as it was.
 * with_special: the tokens that start and end every text are put there, if this tokenizer has them.
 * Text that is not UTF-8 is an error that names the offset of the first bad byte. */
int sh_tokenizer_encode(const struct sh_tokenizer *t, const char *text, size_t bytes,
                        int with_special, struct sh_ids *out, struct sh_err *e);

/* The text of `n` ids, malloc'ed, always UTF-8, `*bytes` long (it may contain NULs) followed by a
 * NUL. Special tokens are written out (control tokens of a tokenizer.model, or of a GGUF
 * file with scores, are not, as in SentencePiece). Bytes that make no character become U+FFFD; ids
 * that no token has (holes, padding rows of the embedding) give nothing. */
char *sh_tokenizer_decode(const struct sh_tokenizer *t, const int32_t *ids, size_t n, size_t *bytes);

/* What with_special adds: the number of ids before the text, which *ids (may be NULL) then points to; the id after it,
 * -1: none. */
int sh_tokenizer_start(const struct sh_tokenizer *t, const int32_t **ids);
int sh_tokenizer_eos(const struct sh_tokenizer *t);
/* The largest id + 1 (there may be gaps). */
int sh_tokenizer_size(const struct sh_tokenizer *t);

/* One token as a label: spaces become a middle dot, control characters and partial characters \n, \t, \xE2. NULL: no
 * token has this id. Owned by the tokenizer. */
const char *sh_tokenizer_piece(const struct sh_tokenizer *t, int32_t id);

#endif
