/* SPDX-License-Identifier: Apache-2.0 */
/* The "decoder" of tokenizer.json: strings of tokens back to text. */
#ifndef SH_TOKENIZER_TOK_DECODE_H
#define SH_TOKENIZER_TOK_DECODE_H

#include "src/tokenizer/tok_json.h"

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

#endif
