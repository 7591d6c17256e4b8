/* SPDX-License-Identifier: Apache-2.0 */
/* What shears reproduce says at its end: a row for each model, and what was left out. */
#ifndef SH_REPORT_REPRODUCE_SHOW_H
#define SH_REPORT_REPRODUCE_SHOW_H

#include "src/base/out.h"

/* Of a store of trained weights, into the open item: persistence, perplexity, what smaller caches and coarser weights
 * cost, and where a store of its random twin is given its ratio. What was not measured is left open. */
int sh_model_figures(struct sh_out *o, const char *trained, const char *random, struct sh_err *e);

/* The row of one model, of trained.db and random.db in its folder, as its steps left them. What was not measured is
 * left open. */
int sh_reproduce_row(struct sh_out *o, const char *name, double parameters, const char *folder, struct sh_err *e);

#endif
