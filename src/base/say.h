/* SPDX-License-Identifier: Apache-2.0 */
/* Remarks and errors on stderr; apart from progress.h the only place where a library writes there. */
#ifndef SH_BASE_SAY_H
#define SH_BASE_SAY_H

#include "src/base/err.h"

/* One line. Control characters are replaced, as texts may contain names from untrusted files. */
void sh_say(const char *label, const char *text);
void sh_sayf(const char *label, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints the error and its hint; returns its exit status. */
int sh_report_error(const struct sh_err *e);

#endif
