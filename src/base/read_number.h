/* SPDX-License-Identifier: Apache-2.0 */
/* Values of options, as typed. `what` names the option in the error; -1 with SH_MISUSED if the text is not such a
 * value. */
#ifndef SH_BASE_READ_NUMBER_H
#define SH_BASE_READ_NUMBER_H

#include "src/base/err.h"
#include "src/base/num.h"

/* min and max 0: no limits. */
int sh_read_whole(const char *what, const char *text, double min, double max, long long *to, struct sh_err *e);
int sh_read_real(const char *what, const char *text, double min, double max, double *to, struct sh_err *e);

/* "1,10,50": whole numbers; "0.25,0.5": reals. At most `most`. */
int sh_read_ints(const char *what, const char *text, int *to, int most, int *n, struct sh_err *e);
int sh_read_reals(const char *what, const char *text, double *to, int most, int *n, struct sh_err *e);

/* A range "A-B" or one number "A". */
int sh_read_range(const char *what, const char *text, int *first, int *last, struct sh_err *e);

/* The place of a name among `names`, which end with NULL; a name of NULL is the first one. option: without dashes. */
int sh_read_name(const char *option, const char *name, const char *const names[], struct sh_err *e);

/* --dtype: "f32", "f16" or "bf16". */
int sh_read_dtype(const char *name, enum sh_type *out, struct sh_err *e);

#endif
