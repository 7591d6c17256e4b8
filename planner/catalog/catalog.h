/* SPDX-License-Identifier: Apache-2.0 */
/* The boards and models that the program knows: gpus.txt and models.txt, put into the program row by row, and
 * rows of a user's own files, which come first. Names are compared without regard to case. */
#ifndef SH_PLANNER_CATALOG_H
#define SH_PLANNER_CATALOG_H

#include <stddef.h>

#include "planner/catalog/gpu.h"
#include "planner/capacity/kv_facts.h"

/* The built-in rows; NULL ends. */
extern const char *const sh_catalog_gpus[];
extern const char *const sh_catalog_models[];

struct sh_catalog {
    const char *const *built_in;
    const char *const *own;             /* rows of a user's file, or NULL                         */
    const char *own_path;
};

/* The row of that name, or NULL; *at is filled with words that name the place of the row, for errors. */
const char *sh_catalog_find(const struct sh_catalog *c, const char *name, char at[256]);

/* Row i of both lists, own rows first, those that they hide left out; NULL behind the last. */
const char *sh_catalog_row(const struct sh_catalog *c, int i, char at[256]);

/* The names of both lists, one a line; for free(). */
char *sh_catalog_names(const struct sh_catalog *c);

/* What stands behind the n-th bar of a row: 1 its status, 2 its source. Empty when there is none. */
void sh_catalog_remark(const char *row, int n, char *to, size_t bytes);

#endif
