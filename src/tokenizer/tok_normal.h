/* SPDX-License-Identifier: Apache-2.0 */
/* The "normalizer" of tokenizer.json: the rewriting of a text before tokens are looked up. */
#ifndef SH_TOKENIZER_TOK_NORMAL_H
#define SH_TOKENIZER_TOK_NORMAL_H

#include "src/tokenizer/sp_normal.h"
#include "src/tokenizer/tok_json.h"

struct sh_normal_step;
struct sh_normal { struct sh_normal_step *step; int n; };

int sh_normal_read(struct sh_normal *s, const json_t *normalizer, struct sh_err *e);
void sh_normal_sentencepiece(struct sh_normal *s, struct sh_sp_normal *sp);    /* takes over sp */
void sh_normal_free(struct sh_normal *s);

/* Appends the normalised text to `out`. at_start: it begins the whole text. */
int sh_normal_run(const struct sh_normal *s, const char *text, size_t n, int at_start,
                  struct sh_text *out, struct sh_err *e);

#endif
