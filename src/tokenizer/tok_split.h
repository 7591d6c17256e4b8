/* SPDX-License-Identifier: Apache-2.0 */
/* The "pre_tokenizer" of tokenizer.json: cuts a text into the pieces within which tokens form. */
#ifndef SH_TOKENIZER_TOK_SPLIT_H
#define SH_TOKENIZER_TOK_SPLIT_H

#include "src/tokenizer/tok_json.h"

struct sh_split_step;
struct sh_split { struct sh_split_step *step; int n; };

int sh_split_read(struct sh_split *s, const json_t *pre_tokenizer, struct sh_err *e);
void sh_split_free(struct sh_split *s);

/* Cuts and rewrites `p` in place; `spare` is scratch. at_start: its first piece begins the whole
 * text. No piece is empty afterwards. */
int sh_split_run(const struct sh_split *s, struct sh_pieces *p, struct sh_pieces *spare,
                 int at_start, struct sh_err *e);

#endif
