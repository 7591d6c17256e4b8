/* SPDX-License-Identifier: Apache-2.0 */
/* Falcon (Almazrouei et al., 2023). num_kv_heads counts in the new architecture only; the old one has one KV head with
 * multi_query and else as many as heads. Its memory is counted. */
#include "src/model/config.h"
#include "src/model/families/families.h"

static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    int newer = 0, multi = 1, parallel = 1, bias = 0, kv = 0, norms = 2;
    if (sh_config_flag(c, "new_decoder_architecture", &newer, e) || sh_config_flag(c, "multi_query", &multi, e) ||
        sh_config_flag(c, "parallel_attn", &parallel, e) || sh_config_flag(c, "bias", &bias, e) ||
        sh_facts_count(c, sh_config_first(c, SH_WORDS("num_kv_heads", "n_head_kv"), 2), 1, &kv, e) ||
        sh_facts_count(c, "num_ln_in_parallel_attn", 1, &norms, e))
        return -1;
    f->kv_heads = newer ? kv : multi ? 1 : f->heads;
    f->norms = newer ? norms : parallel ? 1 : 2;
    f->qkv_bias = f->o_bias = f->mlp_bias = bias;
    return 0;
}

const struct sh_family sh_family_falcon = {
    .name = "falcon", .model_types = SH_WORDS("falcon"),
    .start = {.norm = SH_NORM_LAYER, .pos = SH_POS_ROTARY, .flags = SH_TIED_HEAD},
    .knows = " multi_query new_decoder_architecture num_ln_in_parallel_attn ", .shape = sh_four_wide, .count = count};
