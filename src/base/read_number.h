/* SPDX-License-Identifier: Apache-2.0 */
/* Values of options, as typed. `what` names the option in the error; -1 with SH_MISUSED if the text is not such a
 * value. */
#ifndef SH_BASE_READ_NUMBER_H
#define SH_BASE_READ_NUMBER_H

#include "src/base/err.h"
#include "src/base/num.h"

/* The whole number that the text begins with: "8192", "8k", "1.5k", "2M"; k is 1024, M 1024 k. Returns its end, or
 * `text` if there is none. */
const char *sh_whole(const char *text, long long *to);

/* min and max 0: no limits. Whole numbers as above; reals up to 1 at most may be percentages: "20%". */
int sh_read_whole(const char *what, const char *text, double min, double max, long long *to, struct sh_err *e);
int sh_read_real(const char *what, const char *text, double min, double max, double *to, struct sh_err *e);

/* Seconds: "1.5", "200ms", "1s", "5min"; units us, ms, s, min, h. */
int sh_read_seconds(const char *what, const char *text, double min, double max, double *to, struct sh_err *e);

/* Bytes: "1e9", "16G"; k, M, G, T are binary, with or without B or iB. */
int sh_read_bytes(const char *what, const char *text, double min, double max, size_t *to, struct sh_err *e);

/* A number format by its usual names in any case: "fp8" is f8, "bfloat16" bf16. NULL: not known. */
const char *sh_format_spelled(const char *name, size_t length);

/* "1,10,50": whole numbers; "0.25,0.5": reals, from 0 to max unless that is 0. At most `most`. */
int sh_read_ints(const char *what, const char *text, int *to, int most, int *n, struct sh_err *e);
int sh_read_reals(const char *what, const char *text, double max, double *to, int most, int *n, struct sh_err *e);

/* A range "A-B" or one number "A". */
int sh_read_range(const char *what, const char *text, int *first, int *last, struct sh_err *e);

/* The place of a name among `names`, which end with NULL; a name of NULL is the first one. option: without dashes. */
int sh_read_name(const char *option, const char *name, const char *const names[], struct sh_err *e);

/* --dtype: "f32", "f16" or "bf16". */
int sh_read_dtype(const char *name, enum sh_type *out, struct sh_err *e);

#endif
