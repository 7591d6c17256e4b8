/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are narrower than keys. Caches and attention have one width for both, so each head's values are padded
 * with zeros. The same part of attention's output is then zero, too, and is left out before the last product. The zeros
 * are written once (sh_activations_new): where they are does not depend on the number of heads. */
#include "src/model/layers/layer_parts.h"

struct sh_mat sh_values_made(const struct sh_activations *a, struct sh_mat v)
{
    const struct sh_arch *c = a->arch;
    return c->d_value ? sh_dense(a->value, SH_F32, v.rows, v.cols / c->d_head * c->d_value) : v;
}

void sh_values_widen(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat v)
{
    const struct sh_arch *c = a->arch;
    if (!c->d_value)
        return;
    int heads = v.cols / c->d_head;
    struct sh_norm scale = {.out = sh_columns_of(v, heads, 0, c->d_value),
                            .x = sh_columns_of(sh_values_made(a, v), heads, 0, c->d_value),
                            .weight = a->value_factor, .kind = SH_NORM_SCALE};
    l->b->norm(l->d, &scale);
}

struct sh_mat sh_values_narrow(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat mixed)
{
    const struct sh_arch *c = a->arch;
    int n = sh_arch_query_heads(c, l->index);
    struct sh_mat sub = sh_dense(a->sub, a->dtype, mixed.rows, n * c->d_value);
    l->b->cast(l->d, sh_columns_of(sub, n, 0, c->d_value), sh_columns_of(mixed, n, 0, c->d_value));
    return sub;
}
