/* SPDX-License-Identifier: Apache-2.0 */
/* Growing byte strings, pieces of one, lists of ids, and UTF-8. Texts may contain NULs: lengths everywhere. */
#ifndef SH_TOKENIZER_TOK_TEXT_H
#define SH_TOKENIZER_TOK_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/mem.h"
#include "src/tokenizer/tokenizer.h"

/* Start with {0}; free(at). limit: steps that a file describes fail beyond this length, since a few bytes of a file can
 * make terabytes of text; 0: none. */
struct sh_text { char *at; size_t n, cap, limit; };
struct sh_span { size_t at, n; };                       /* bytes [at, at + n) of some text */

/* A text cut into pieces, in order. Steps that rewrite the text make new pieces. */
struct sh_pieces {
    struct sh_text text;
    struct sh_span *at;
    size_t n, cap;
};

#define SH_TOK_GROWTH(n) (64 * (n) + 4096)      /* a limit that no published file comes near */
#define SH_TOK_LONGEST_TEXT 512u                /* bytes that a step may put somewhere       */

void sh_text_add(struct sh_text *t, const char *from, size_t n);
void sh_pieces_add(struct sh_pieces *p, size_t at, size_t n);
void sh_pieces_clear(struct sh_pieces *p);              /* keeps the memory */
void sh_pieces_free(struct sh_pieces *p);
int sh_starts_with(const char *text, size_t n, const char *prefix, size_t n_prefix);

/* Bytes of the well-formed sequence at `at` (n > 0 bytes), or 0; then *bad is the length of the longest start of one,
 * at least 1: what one U+FFFD replaces. */
int sh_utf8_sequence(const char *at, size_t n, int *bad);
size_t sh_utf8_valid(const char *text, size_t n);   /* bytes before the first bad one */
int sh_utf8_get(const char *at, uint32_t *code);    /* at well-formed text; bytes taken */
int sh_utf8_put(char *to, uint32_t code);           /* bytes written, 1 to 4           */
size_t sh_utf8_before(const char *text, size_t end);    /* the start of what ends there */
/* The end of the white space that begins at `from`; the beginning, not before `from`, of that which ends at `end`. */
size_t sh_spaces_end(const char *text, size_t from, size_t n);
size_t sh_spaces_begin(const char *text, size_t from, size_t end);
void sh_utf8_repair(struct sh_text *out, const char *text, size_t n);

/* GPT-2's alphabet: each byte as one printable character. Decoding a character outside it gives -1 and writes
 * nothing. */
void sh_bytelevel_encode(struct sh_text *out, const char *text, size_t n);
int sh_bytelevel_decode(struct sh_text *out, const char *text, size_t n);

/* Makes room for `more` ids after the first n. */
static inline void sh_ids_reserve(struct sh_ids *ids, size_t more)
{
    if (ids->cap - ids->n >= more)
        return;
    ids->cap = 2 * ids->cap > ids->n + more ? 2 * ids->cap : ids->n + more + 64;
    ids->at = xreallocarray(ids->at, ids->cap, sizeof *ids->at);
}

static inline void sh_ids_add(struct sh_ids *ids, int32_t id)
{
    sh_ids_reserve(ids, 1);
    ids->at[ids->n++] = id;
}

#endif
