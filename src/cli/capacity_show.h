/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of shears capacity: every one as a row of the contract's keys; a single one in full, each term
 * of its sum in bytes, GiB and GB. */
#ifndef SH_CLI_CAPACITY_SHOW_H
#define SH_CLI_CAPACITY_SHOW_H

#include "src/app/capacity/capacity_own.h"
#include "src/app/capacity/capacity_study.h"
#include "src/base/out.h"

/* The list "results": for JSON and CSV, as a text table, or as all of both that --columns may name. The caller ends the
 * list, whose last item is open. */
enum sh_capacity_shown { SH_CAPACITY_FIELDS, SH_CAPACITY_TABLE, SH_CAPACITY_NAMED };
void sh_capacity_show_rows(struct sh_out *o, const struct sh_capacity_row *rows, int n, enum sh_capacity_shown how);

/* A single answer as text; `row` is its row. */
void sh_capacity_show_one(struct sh_out *o, const struct sh_capacity_answer *a, const struct sh_capacity_row *row);

/* The lists terms, server, stages and frontier inside the open item (JSON). */
void sh_capacity_show_lists(struct sh_out *o, const struct sh_capacity_answer *a, int is_text);

/* The columns of what an engine is expected to reach (capacity_rows.c). */
void sh_capacity_show_expected(struct sh_out *o, const struct sh_capacity_row *r);

/* What this program itself holds (capacity_own.c). */
void sh_capacity_show_own(struct sh_out *o, const struct sh_capacity_own *w);

#endif
