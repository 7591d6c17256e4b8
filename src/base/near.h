/* SPDX-License-Identifier: Apache-2.0 */
/* The names that a mistyped one may have meant. */
#ifndef SH_BASE_NEAR_H
#define SH_BASE_NEAR_H

#include <stddef.h>

/* Of the names in `all`, one a line, those (three at most) that need fewest edits to become `name`:
 * "h2o, tova or full", written to `out`, cut to `bytes`. Returns out. */
const char *sh_near(const char *name, size_t length, const char *all, char *out, size_t bytes);

#endif
