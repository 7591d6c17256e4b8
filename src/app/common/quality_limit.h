/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of quality as users write them; option is the name for the error. */
#ifndef SH_APP_COMMON_QUALITY_LIMIT_H
#define SH_APP_COMMON_QUALITY_LIMIT_H

#include "src/base/err.h"

/* "1%", "0.01" */
int sh_quality_share(const char *option, const char *text, double *out, struct sh_err *e);

/* As above, but a number of 1 or more needs the % sign, because it is mostly meant as per cent. */
int sh_quality_increase(const char *option, const char *text, double *out, struct sh_err *e);

#endif
