/* SPDX-License-Identifier: Apache-2.0 */
/* Typed access to JSON that came from elsewhere: a wrong type is an error that names the key. */
#ifndef SH_TOKENIZER_TOK_JSON_H
#define SH_TOKENIZER_TOK_JSON_H

#include <jansson.h>

#include "src/base/err.h"
#include "src/base/json_kind.h"
#include "src/tokenizer/tok_text.h"

int sh_tok_has(const char *folder, const char *name);   /* is there such a file? */

/* The object in a file of a folder, for json_decref; NULL: e says why. loose: integers are read as reals, for files
 * with an integer like 1e30. */
json_t *sh_tok_load(const char *folder, const char *name, int loose, struct sh_err *e);

/* The string under `key`: NULL and an error if it is missing or not a string. */
const char *sh_tok_string(const json_t *o, const char *key, size_t *n, struct sh_err *e);

/* Appends the string under `key`, which a step is going to put into texts. */
int sh_tok_text(const json_t *o, const char *key, struct sh_text *to, struct sh_err *e);

/* The boolean under `key`; `absent` if it is missing or null. */
int sh_tok_flag(const json_t *o, const char *key, int absent, int *out, struct sh_err *e);

enum { SH_TOK_STEPS = 64, SH_TOK_NO_STEP = 1 };

/* Reads one step, not a Sequence: 0, -1, or SH_TOK_NO_STEP for a type that it does not know. */
typedef int sh_read_step(void *to, const char *type, const json_t *step, struct sh_err *e);

/* A part of tokenizer.json that is one step, an object with a "type", or a Sequence of steps and Sequences. */
struct sh_tok_steps {
    const char *what, *list;            /* "decoder"; the key of a Sequence's steps: "decoders"   */
    sh_read_step *read;
    void *to;
    const int *n;                       /* how many steps that made so far: at most SH_TOK_STEPS  */
};

/* All steps in order; a part that is missing or null has none. Errors begin with the name of the part. */
int sh_tok_read_steps(const struct sh_tok_steps *s, const json_t *part, struct sh_err *e);

#endif
