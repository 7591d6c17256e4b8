/* SPDX-License-Identifier: Apache-2.0 */
/* Suggestions for a mistyped name. */
#ifndef SH_BASE_NEAR_H
#define SH_BASE_NEAR_H

#include <stddef.h>

#include "src/base/err.h"

/* The names in `all`, one per line, that `name` may stand for, at most three, as "h2o, tova or full", written to `out`
 * and cut to `bytes`. A name qualifies if it contains `name`, is contained in it, or differs in at most a third of
 * its letters; if none does, an abbreviation qualifies: db for database. Case, dots, dashes and spaces are ignored.
 * Empty if none qualifies. Returns out. */
const char *sh_near(const char *name, size_t length, const char *all, char *out, size_t bytes);

/* Sets the hint "did you mean H2O or TOVA? REST", or REST alone if nothing is near. Returns -1. */
int sh_hint_near(struct sh_err *e, const char *name, size_t length, const char *all, const char *rest);

#endif
