/* SPDX-License-Identifier: Apache-2.0 */
/* Texts for targets that read them: a tokenizer of fifteen tokens with a start token, and what is asked of texts.
 * An input's first line is four characters: t for token ids, j for documents or x for a plain text; then a digit each
 * for the length, the least tokens and the most sequences, 0: not asked for. */
#ifndef TESTS_FUZZ_WORDS_H
#define TESTS_FUZZ_WORDS_H

#include "src/tracer/texts.h"
#include "tests/fuzz/fuzz.h"

enum { FUZZ_WORDS = 15, FUZZ_POSITIONS = 64 };

/* Takes the first line off; the kind, or 0 where there is no such line. */
char fuzz_texts_asked(const uint8_t **data, size_t *size, struct sh_texts *t);
void fuzz_texts_check(const struct sh_texts *t);        /* aborts when a sequence is not as asked for */

#endif
