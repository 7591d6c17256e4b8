/* SPDX-License-Identifier: Apache-2.0 */
/* The names that a mistyped one may have meant. */
#ifndef SH_BASE_NEAR_H
#define SH_BASE_NEAR_H

#include <stddef.h>

#include "src/base/err.h"

/* Of the names in `all`, one a line, those that `name` may stand for, three at most: "h2o, tova or full", written to
 * `out`, cut to `bytes`. They have it in them, stand in it, differ in a third of its letters, or,
 * where no name does, are short for it: db for database. Case, points, dashes and spaces do not count. Empty when none
 * is near. Returns out. */
const char *sh_near(const char *name, size_t length, const char *all, char *out, size_t bytes);

/* The hint "did you mean H2O or TOVA? REST"; where nothing is near, REST alone. Returns -1. */
int sh_hint_near(struct sh_err *e, const char *name, size_t length, const char *all, const char *rest);

#endif
