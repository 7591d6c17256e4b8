/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of quality as users write them; option is the name for the error. */
#ifndef SH_APP_COMMON_QUALITY_LIMIT_H
#define SH_APP_COMMON_QUALITY_LIMIT_H

#include "src/base/err.h"

/* "1%", "0.01" */
int sh_quality_share(const char *option, const char *text, double *out, struct sh_err *e);

/* The same without shares of 1 and more, which are mostly meant as per cent: those need the sign. */
int sh_quality_increase(const char *option, const char *text, double *out, struct sh_err *e);

#endif
