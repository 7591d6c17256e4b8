/* SPDX-License-Identifier: Apache-2.0 */
/* The regular expressions of tokenizer.json, written for Oniguruma (Ruby's syntax) and run by PCRE2: what the two read
 * differently is rewritten or refused. */
#ifndef SH_TOKENIZER_TOK_REGEX_H
#define SH_TOKENIZER_TOK_REGEX_H

#include "src/tokenizer/tok_json.h"

/* The same pattern for PCRE2 (tok_ruby.c). */
int sh_ruby_rewrite(const char *pattern, size_t n, struct sh_text *out, struct sh_err *e);

struct sh_regex;

/* What all matches of one job may take together: limits on single matches do not stop many slow ones, nor patterns that
 * scan the whole text for each. */
struct sh_watch { double end; unsigned calls; int is_over; };

/* From now on so many seconds of this thread's time plus 20 microseconds for each of `bytes`, a hundred times what the
 * slowest published pattern takes. */
void sh_watch_begin(struct sh_watch *w, double seconds, size_t bytes);

/* Successive matches in a text: set the first four fields and zero the rest (match may be reused), then call next until
 * it is not 1. */
struct sh_scan {
    const struct sh_regex *regex;
    const char *text;                   /* well-formed UTF-8 */
    size_t n;
    struct sh_watch *watch;
    size_t from, last;                  /* last: end of the last match + 1; 0: none yet */
    void *match;
};

struct sh_regex *sh_regex_new(const char *pattern, size_t n, int literal, struct sh_err *e);
/* From {"Regex": "…"} or {"String": "…"}. */
struct sh_regex *sh_regex_read(const json_t *pattern, struct sh_err *e);
void sh_regex_free(struct sh_regex *r);

/* 1: found, 0: there are no more, -1: error. */
int sh_scan_next(struct sh_scan *s, struct sh_span *found, struct sh_err *e);
void sh_scan_end(struct sh_scan *s);

/* Appends `text` with every match replaced. */
int sh_regex_replace(const struct sh_regex *r, const char *text, size_t n, const struct sh_text *with,
                     struct sh_text *out, struct sh_watch *watch, struct sh_err *e);

#endif
