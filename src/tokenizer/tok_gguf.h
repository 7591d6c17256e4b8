/* SPDX-License-Identifier: Apache-2.0 */
/* The tokenizer that is in a GGUF file's metadata, under the keys tokenizer.ggml.*, which are described in
 * ggml's doc "gguf.md". Defaults are those of llama.cpp (llama-vocab.cpp):
 *
 *     model       pieces become ids by            bos  eos  before     after
 *     "llama"     scores (SentencePiece's BPE)    1    2    bos        -
 *     "t5"        scores (unigram)                -    1    -          eos
 *     "gpt2"      merges                          -    -    bos for LLaMA 3's and Tekken's pre-tokenizers
 *
 * Texts of the first two get a leading space unless add_space_prefix is false, which converters always write
 * for "t5". Other models, and a model whose arrays do not fit together, are refused by the key's name. */
#ifndef SH_TOKENIZER_TOK_GGUF_H
#define SH_TOKENIZER_TOK_GGUF_H

#include "src/base/err.h"
#include "src/model/files/gguf.h"

struct sh_tokenizer;

/* Fills a zeroed tokenizer. On failure the caller frees it. `g` is not needed afterwards. */
int sh_tok_read_gguf(struct sh_tokenizer *t, const struct sh_gguf *g, struct sh_err *e);

/* The same from the (first) file of a model. */
int sh_tok_open_gguf(struct sh_tokenizer *t, const char *path, struct sh_err *e);

#endif
