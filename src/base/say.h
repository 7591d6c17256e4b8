/* SPDX-License-Identifier: Apache-2.0 */
/* Remarks and errors for people, on stderr; with progress.h the only place where a library writes there. */
#ifndef SH_BASE_SAY_H
#define SH_BASE_SAY_H

#include "src/base/err.h"

/* A line. Texts may carry names out of foreign files: a terminal does not get to obey them. */
void sh_say(const char *label, const char *text);
void sh_sayf(const char *label, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The error and its hint; gives its exit status. */
int sh_report_error(const struct sh_err *e);

#endif
