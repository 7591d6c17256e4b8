/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that are recurrent, or one block alone (config.h). */
#include <stdio.h>

#include "src/model/config/config.h"

void sh_config_set_block(struct sh_arch *a, int layer, enum sh_layer_block block)
{
    a->linear[layer / 64] &= ~((uint64_t)1 << layer % 64);
    if (block == SH_BLOCK_RECURRENT)
        sh_arch_make_linear(a, layer);
    if (block == SH_BLOCK_FEED || block == SH_BLOCK_EXPERTS)
        sh_arch_make_feed(a, layer);
    if (block == SH_BLOCK_FEED)
        sh_arch_keep_dense(a, layer);
}

int sh_config_blocks(const struct sh_config *c, const char *list, const struct sh_word *words, struct sh_arch *a,
                     struct sh_err *e)
{
    for (int i = 0; i < a->n_layer; i++) {
        int block;
        if (sh_config_choice_at(c, list, i, words, &block, e))
            return -1;
        sh_config_set_block(a, i, (enum sh_layer_block)block);
    }
    return 0;
}

int sh_config_attending(const struct sh_config *c, const char *list, struct sh_arch *a, struct sh_err *e)
{
    int n = sh_config_length(c, list);
    if (!sh_config_has(c, list) || sh_config_is_null(c, list))
        return 1;
    if (n < 1)
        return sh_config_refuse(c, list, "a list of the numbers of layers", e);
    for (int i = 0; i < a->n_layer; i++)
        sh_config_set_block(a, i, SH_BLOCK_RECURRENT);
    for (int i = 0; i < n; i++) {
        char key[48];
        int layer = -1;
        snprintf(key, sizeof key, "%s.%d", list, i);
        if (sh_config_at_least(c, key, 0, a->n_layer - 1, &layer, e))
            return -1;
        if (layer < 0)
            return sh_config_refuse(c, key, "the number of a layer", e);
        sh_config_set_block(a, layer, SH_BLOCK_ATTENTION);
    }
    return 0;
}

int sh_config_check_attends(const struct sh_config *c, const char *key, const struct sh_arch *a, struct sh_err *e)
{
    for (int i = 0; i < a->n_layer; i++)
        if (sh_arch_attends(a, i))
            return 0;
    return sh_config_refuse(c, key, "at least one layer of attention", e);
}

int sh_config_check_delta(const struct sh_config *c, const struct sh_arch *a, struct sh_err *e)
{
    const struct sh_recurrent *r = &a->recurrent;
    if (r->n_v % r->n_k)
        return sh_config_refuse(c, "linear_num_value_heads", "a multiple of linear_num_key_heads", e);
    if ((long long)r->n_v * r->d_v > 1000000 || (long long)r->n_k * r->d_k > 1000000)
        return sh_config_refuse(c, "linear_value_head_dim", "heads of a total width of at most 10^6", e);
    return 0;
}

int sh_config_check_scan(const struct sh_config *c, const char *key, const struct sh_arch *a, struct sh_err *e)
{
    const struct sh_recurrent *r = &a->recurrent;
    if (r->n_v % r->n_k || (long long)r->n_v * r->d_v > 1000000 || (long long)r->n_k * r->d_k > 1000000)
        return sh_config_refuse(c, key, "a multiple of the number of groups, and heads and groups of a total width of "
                                "at most 10^6", e);
    if (sh_recurrent_state(r) > (size_t)1 << 30)
        return sh_config_refuse(c, key, "states of at most 2^30 numbers a layer", e);
    return 0;
}
