/* SPDX-License-Identifier: Apache-2.0 */
/* The facts of a model from a row of a catalogue (catalog/models.txt says what each key means). kv_shape.h turns
 * them into layers. */
#ifndef SH_PLANNER_CAPACITY_KV_FACTS_H
#define SH_PLANNER_CAPACITY_KV_FACTS_H

#include "src/base/err.h"
#include "src/model/facts.h"

void sh_kv_facts_begin(struct sh_kv_facts *f);          /* zeros and the defaults of models.txt   */

/* One "key=value" or flag of a row. -1: unknown key, or a value out of range. */
int sh_kv_facts_set(struct sh_kv_facts *f, const char *key, const char *value, struct sh_err *e);

/* A row "NAME key=value... | STATUS | SOURCE". `at` names the row in errors, e.g. "models.txt: line 7". */
int sh_kv_facts_row(const char *row, const char *at, struct sh_kv_facts *out, struct sh_err *e);

#endif
