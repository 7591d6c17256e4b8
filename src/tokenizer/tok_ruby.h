/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites a pattern in Oniguruma's Ruby syntax as one that means the same to PCRE2:
 *
 *   \s \S           the Unicode property White_Space (PCRE2 counts U+180E as space as well)
 *   \w \W \b \B     alphabetic, marks, decimal digits, connectors; outside of a set also U+00B2, U+00B3,
 *                   U+00B9, U+00BC to U+00BE, as Oniguruma has it for Latin-1
 *   [:alpha:] …     the Unicode properties of these names
 *   \v              U+000B (PCRE2: all vertical space)
 *   \p{Han} …       the script (to PCRE2 a bare name also means the script's extensions)
 *   [a[bc]]         a set within a set is their union (to PCRE2 the inner bracket is a character)
 *   (?m)            the dot matches newlines (PCRE2's s)
 *   {,n}            {0,n}
 *
 * What has no such rewriting is refused by name: \h, \X, intersections with &&, negated inner sets, [:punct:],
 * which means one thing to Oniguruma 6.9.8 and another to 6.9.10, and a{1,3}+, which repeats in Ruby but is
 * possessive in PCRE2. */
#ifndef SH_TOKENIZER_TOK_RUBY_H
#define SH_TOKENIZER_TOK_RUBY_H

#include "src/base/err.h"
#include "src/tokenizer/tok_text.h"

int sh_ruby_rewrite(const char *pattern, size_t n, struct sh_text *out, struct sh_err *e);

#endif
