/* SPDX-License-Identifier: Apache-2.0 */
/* Typed access to JSON that came from elsewhere: a wrong type is an error that names the key. */
#ifndef SH_TOKENIZER_TOK_JSON_H
#define SH_TOKENIZER_TOK_JSON_H

#include <jansson.h>

#include "src/base/err.h"
#include "src/base/json_kind.h"
#include "src/tokenizer/tok_text.h"

#define SH_TOK_DEPTH 16                 /* how deep Sequence within Sequence may go */

/* The object in a file, to be json_decref'ed; NULL: e. loose: integers are read as real numbers,
 * for files that write down 1e30 as an integer and where none is of interest. */
json_t *sh_tok_load(const char *path, int loose, struct sh_err *e);

/* The string under `key`: NULL and an error when it is not there or something else. */
const char *sh_tok_string(const json_t *o, const char *key, size_t *n, struct sh_err *e);

/* The truth value under `key`; `absent` when there is none or it is null. */
int sh_tok_flag(const json_t *o, const char *key, int absent, int *out, struct sh_err *e);

/* The step's "type", or NULL and an error when `step` is no object with one. */
const char *sh_tok_type(const json_t *step, const char *what, struct sh_err *e);

#endif
