/* SPDX-License-Identifier: Apache-2.0 */
/* Reference cases of tokenizers: {"ids": […], "decoded": the text, where it is another one}. */
#ifndef TESTS_UNIT_TOKENIZER_GOLDEN_H
#define TESTS_UNIT_TOKENIZER_GOLDEN_H

#include <jansson.h>

#include "src/tokenizer/tokenizer.h"

/* The first of the ids before every text; -1: there are none. */
static inline int tokenizer_bos(const struct sh_tokenizer *t)
{
    const int32_t *start;
    return sh_tokenizer_start(t, &start) ? start[0] : -1;
}

char *tokenizer_golden(const char *name);       /* the path under golden/tokenizers, malloc'ed */
json_t *tokenizer_golden_json(const char *name);        /* the file there; fatal when it is missing */

/* Encodes and decodes one text; what differs from the reference is said in a comment. */
int tokenizer_agrees(const struct sh_tokenizer *t, const char *text, size_t n, const json_t *one);
int tokenizer_refuses(const char *folder, const char *why);      /* opening it fails, and names it and why */
/* A folder that may be damaged: it is refused with a message, or opens and meets the text; returns whether it opens. */
int tokenizer_tried(const char *folder, const char *text);
int tokenizer_same_text(const char *got, size_t n, const json_t *wanted);

#endif
