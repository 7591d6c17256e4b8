/* SPDX-License-Identifier: Apache-2.0 */
/* The results of shears theory: tables for text, JSON and CSV, and notes on what they mean. */
#ifndef SH_CLI_THEORY_SHOW_H
#define SH_CLI_THEORY_SHOW_H

#include "src/base/out.h"
#include "src/app/theory/theory_store.h"

/* repeat [n_layer]: Theorem 3.1; NULL: not requested. */
struct sh_out *sh_theory_show(const struct sh_theory_request *q, const struct sh_theory_result *r,
                              const struct sh_repeat *repeat, int per_head);

/* Stores the figures of every layer and of the whole model as results of "theory". */
int sh_theory_keep(const struct sh_theory_request *q, const struct sh_theory_result *r, struct sh_store *s,
                   struct sh_err *e);

#endif
