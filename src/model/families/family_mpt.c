/* SPDX-License-Identifier: Apache-2.0 */
/* MPT (MosaicML, 2023): ALiBi or learned positions, norms without biases. Its memory is counted. */
#include "src/model/config.h"
#include "src/model/families/families.h"

static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word kinds[] = {{"multihead_attention", 0}, {"multiquery_attention", 1},
                                           {"grouped_query_attention", 2}, {NULL, 0}};
    int kind = 0, none = 1, alibi = 0;
    float expansion = 4;
    if (sh_config_choice(c, "attn_config.attn_type", kinds, &kind, e) || sh_config_flag(c, "no_bias", &none, e) ||
        sh_config_flag(c, "attn_config.alibi", &alibi, e) || sh_config_real(c, "expansion_ratio", 64, &expansion, e))
        return -1;
    if (kind == 2 && !f->kv_heads)
        return sh_config_refuse(c, "attn_config.kv_n_heads", "a number of KV heads", e);
    f->kv_heads = kind == 1 ? 1 : f->kv_heads;
    f->norm = none ? SH_KEPT_SCALE : SH_KEPT_LAYER;
    f->qkv_bias = f->o_bias = f->mlp_bias = !none;
    f->positions = alibi ? 0 : f->max_pos;
    f->ffn = (int)(expansion * (float)f->hidden);
    return 0;
}

static const struct sh_fact_key facts[] = {SH_FACT(kv_heads, 1, "attn_config.kv_n_heads"), {.json = {NULL}}};

const struct sh_family sh_family_mpt = {
    .name = "mpt", .model_types = SH_WORDS("mpt"),
    .start = {.flags = SH_TIED_HEAD},
    .facts = facts, .count = count};
