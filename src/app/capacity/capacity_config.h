/* SPDX-License-Identifier: Apache-2.0 */
/* config.json of any model whose memory can be computed, runnable or not, as the facts of
 * planner/capacity/kv_facts.h. Each model type has a line that says what its config leaves unsaid, and a list of the
 * keys that change its memory; a key that would, and that is not on the list, is refused by name. */
#ifndef SH_APP_CAPACITY_CONFIG_H
#define SH_APP_CAPACITY_CONFIG_H

#include "planner/capacity/kv_facts.h"
#include "src/model/config.h"

/* `path`: a folder or the file. -1: not readable, a model type that is not known, a key that is missing,
 * absurd, or of unknown effect. */
int sh_capacity_config(const char *path, struct sh_kv_facts *out, struct sh_err *e);

/* ---- between the files that read it ---- */

/* What is particular to a model type; may be NULL. */
typedef int sh_capacity_quirk(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e);

sh_capacity_quirk sh_capacity_opt, sh_capacity_gpt2, sh_capacity_falcon, sh_capacity_mpt, sh_capacity_mistral,
    sh_capacity_phi3, sh_capacity_qwen, sh_capacity_qwen_moe, sh_capacity_mixtral, sh_capacity_gemma,
    sh_capacity_gemma4,
    sh_capacity_deepseek, sh_capacity_gpt_oss, sh_capacity_nemotron, sh_capacity_jamba, sh_capacity_llama4,
    sh_capacity_qwen_next, sh_capacity_gpt_neo, sh_capacity_qwen_5, sh_capacity_qwen_5_moe, sh_capacity_mimo,
    sh_capacity_minimax, sh_capacity_indexed;

/* A count under the first of up to three names that is there; stays as it is without one. */
int sh_capacity_count(const struct sh_config *c, const char *const names[3], int min, int *out, struct sh_err *e);

/* The pattern from layer_types, one letter a layer; 1: there is no such list. */
int sh_capacity_layer_types(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e);

#endif
