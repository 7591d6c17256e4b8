/* SPDX-License-Identifier: Apache-2.0 */
/* A store comes from anywhere: a figure in its table of results is believed only where it can be one. */
#ifndef SH_APP_STORE_RESULT_CHECK_H
#define SH_APP_STORE_RESULT_CHECK_H

#include "traces/store.h"

/* -1 where the value is outside of what its metric can be; e names the store, the metric, the settings and
 * the way out. A value that is not defined (NaN) and metrics that are not known pass. */
int sh_result_check(const struct sh_stored_result *r, const char *store, const char *command, struct sh_err *e);

/* The same sentence for a figure that contradicts another one; `expected` says what would go with it. */
int sh_result_damaged(const char *store, const char *command, const char *settings, const char *metric, double value,
                      const char *expected, struct sh_err *e);

#endif
