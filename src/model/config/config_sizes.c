/* SPDX-License-Identifier: Apache-2.0 */
/* See config.h: layers that differ in their heads and widths. */
#include <stddef.h>
#include <stdio.h>

#include "src/model/config/config.h"

int sh_config_take_largest(const struct sh_config *c, const char *key, struct sh_arch *a, struct sh_err *e)
{
    struct sh_layer_sizes most = {0};
    a->n_kv_head = a->n_kv_head ? a->n_kv_head : a->n_head;
    for (int i = 0; i < a->n_layer; i++) {
        int heads = sh_arch_query_heads(a, i), kv = sh_arch_kv_heads(a, i), d = sh_arch_d_head(a, i);
        int d_ff = sh_arch_feeds(a, i) ? sh_arch_d_ff(a, i) : 0;
        if (kv && heads % kv)
            return sh_fail(e, "%s: key '%s': layer %d: found %d query heads and %d KV heads, expected a multiple",
                           sh_config_path(c), sh_config_key_name(c, key), i, heads, kv);
        most.n_head = heads > most.n_head ? heads : most.n_head;
        most.n_kv_head = kv > most.n_kv_head ? kv : most.n_kv_head;
        most.d_head = kv && d > most.d_head ? d : most.d_head;
        most.d_ff = d_ff > most.d_ff ? d_ff : most.d_ff;
    }
    if (!most.n_head || !most.n_kv_head)
        return sh_config_refuse(c, key, "a layer that attends", e);
    if (most.n_head % most.n_kv_head)
        return sh_fail(e, "%s: key '%s': found at most %d query heads and %d KV heads in a layer, expected a multiple",
                       sh_config_path(c), sh_config_key_name(c, key), most.n_head, most.n_kv_head);
    if ((size_t)most.n_head * (size_t)most.d_head > SH_WIDEST_HEADS)
        return sh_fail(e, "%s: key '%s': found %d heads of %d, expected a product of at most %zu", sh_config_path(c),
                       sh_config_key_name(c, key), most.n_head, most.d_head, SH_WIDEST_HEADS);
    a->n_head = most.n_head;
    a->n_kv_head = most.n_kv_head;
    a->d_head = most.d_head;
    a->d_ff = most.d_ff ? most.d_ff : a->d_ff ? a->d_ff : a->d_model;      /* the last: no layer has such a block */
    return 0;
}

/* One of a list with a number for each layer; -1 stays where there is no list. */
static int read_one(const struct sh_config *c, const char *list, int layer, int most, int *out, struct sh_err *e)
{
    char key[64];
    snprintf(key, sizeof key, "%s.%d", list, layer);
    if (!sh_config_has(c, list) || sh_config_is_null(c, list))
        return 0;
    if (sh_config_at_least(c, key, 0, most, out, e))
        return -1;
    return *out < 0 ? sh_config_refuse(c, key, "a number for each layer", e) : 0;
}

int sh_config_read_sizes(const struct sh_config *c, struct sh_arch *a, int may_lack, struct sh_err *e)
{
    static const char queries[] = "num_attention_heads_per_layer", kv[] = "num_key_value_heads_per_layer";
    static const char widths[] = "intermediate_size_per_layer";
    const char *first = sh_config_is_set(c, queries) ? queries : sh_config_is_set(c, kv) ? kv : widths;
    if (!sh_config_is_set(c, first))
        return 0;
    struct sh_layer_sizes *s = sh_config_sizes(c, a);
    for (int i = 0; i < a->n_layer; i++) {
        int n_head = -1, n_kv = -1, d_ff = -1;
        if (read_one(c, queries, i, 100000, &n_head, e) || read_one(c, kv, i, 100000, &n_kv, e) ||
            read_one(c, widths, i, 100000000, &d_ff, e))
            return -1;
        if (!may_lack && (!n_head || !n_kv || !d_ff))
            return sh_config_refuse(c, !n_head ? queries : !n_kv ? kv : widths, "numbers from 1 on", e);
        s[i] = (struct sh_layer_sizes){.n_head = n_head < 0 ? 0 : n_head, .n_kv_head = n_kv < 0 ? 0 : n_kv,
                                       .d_ff = d_ff < 0 ? 0 : d_ff};
        s[i].attention = !n_head ? SH_BLOCK_NONE : !n_kv ? SH_BLOCK_PRODUCT : SH_BLOCK_USUAL;
        s[i].feed = !d_ff ? SH_BLOCK_NONE : SH_BLOCK_USUAL;
    }
    return sh_config_take_largest(c, first, a, e);
}
