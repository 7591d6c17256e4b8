/* SPDX-License-Identifier: Apache-2.0 */
/* Which matrices of a quantised checkpoint have which number format, by the names of their modules: the lists of those
 * that are not quantised (`ignore`, `exclude_modules`, `modules_to_not_convert`: names, patterns with '*', or regular
 * expressions after "re:"), compressed-tensors' groups with targets, and modelopt's quantized_layers. */
#ifndef SH_MODEL_MODULE_RULES_H
#define SH_MODEL_MODULE_RULES_H

#include "src/model/config/config.h"
#include "src/model/config/config_quant.h"

enum { SH_MOST_FORMATS = 16, SH_FORMAT_NAME = 48 };

struct sh_module_rules;

/* Formats are numbered from 1: the schemes of `q`, then those that quantized_layers names. `c` must stay open. NULL: a
 * list or a name that cannot be read. */
struct sh_module_rules *sh_module_rules_new(const struct sh_config *c, const struct sh_quant *q, struct sh_err *e);
void sh_module_rules_free(struct sh_module_rules *r);               /* NULL is fine */

/* Do the rules say more than that all matrices of layers have format 1? */
int sh_module_rules_differ(const struct sh_module_rules *r);

/* The format of a module; 0: not quantised. `name`: after the prefix, such as "layers.3.self_attn.q_proj"; prefixes:
 * those of the family, for regular expressions; NULL ends. is_head: the output head, which is quantised only if it is
 * named, or not left out by compressed-tensors. */
int sh_module_format(struct sh_module_rules *r, const char *name, const char *const *prefixes, int is_head);

/* The format of matrices in layers that no list names. */
int sh_module_usual(const struct sh_module_rules *r);
/* The format's name (planner/capacity/kv_type.h); n from 1. */
const char *sh_module_format_name(const struct sh_module_rules *r, int n);
int sh_module_format_count(const struct sh_module_rules *r);

/* After all modules have been looked up: -1: a list names something that is neither a matrix of a layer with a number
 * below n_layer nor known to be something else, such as a router. */
int sh_module_rules_check(const struct sh_module_rules *r, int n_layer, struct sh_err *e);

#endif
