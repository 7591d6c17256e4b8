/* SPDX-License-Identifier: Apache-2.0 */
/* Text that grows token by token, handed out in whole characters: a token may end in the middle of one,
 * even while it ends another, and some tokenizers write a token differently at the beginning of a text. So
 * what is shown is the end of the last tokens' text, without what the next token may still change. Only
 * the last tokens, some dozens at most, are decoded again. */
#ifndef SH_ENGINE_TEXT_STREAM_H
#define SH_ENGINE_TEXT_STREAM_H

#include "src/tokenizer/tokenizer.h"

struct sh_text_stream {
    const struct sh_tokenizer *tokenizer;
    struct sh_ids ids;                  /* the last of the prompt's, and of those that came; owned */
    size_t from;                        /* decoding begins with this one                          */
    char *text;                         /* text of ids [from, ids.n); owned                       */
    size_t bytes, held;                 /* its length; bytes at its end that are not shown yet    */
};

/* The text after a prompt (n ids, may be 0). */
void sh_text_stream_begin(struct sh_text_stream *s, const struct sh_tokenizer *t, const int32_t *prompt, size_t n);
void sh_text_stream_end(struct sh_text_stream *s);      /* frees; {0} is fine */

/* One more token: what can be shown now, malloc'ed and ended by a NUL, `*bytes` long (often 0). */
char *sh_text_stream_add(struct sh_text_stream *s, int32_t id, size_t *bytes);

/* The rest; what makes no character is U+FFFD. */
char *sh_text_stream_rest(struct sh_text_stream *s, size_t *bytes);

#endif
