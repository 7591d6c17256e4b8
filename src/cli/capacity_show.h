/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of shears capacity: every one as a row of the contract's keys; a single one in full, each term
 * of its sum in bytes, GiB and GB. */
#ifndef SH_CLI_CAPACITY_SHOW_H
#define SH_CLI_CAPACITY_SHOW_H

#include "src/app/capacity/capacity_study.h"
#include "src/base/out.h"

/* JSON and CSV: the list "results". Text: one table. The caller ends the list, whose last item is open. */
void sh_capacity_show_rows(struct sh_out *o, const struct sh_capacity_row *rows, int n, int is_text);

/* A single answer as text; `row` is its row. */
void sh_capacity_show_one(struct sh_out *o, const struct sh_capacity_answer *a, const struct sh_capacity_row *row);

/* The lists terms, server, stages and frontier inside the open item (JSON). */
void sh_capacity_show_lists(struct sh_out *o, const struct sh_capacity_answer *a, int is_text);

#endif
