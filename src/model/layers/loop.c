/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that run several times (Dory): the pass after another one is a layer of its own here, with the weights of the
 * first pass and with keys and values of its own. Each pass reads the normed output of the pass before it plus what the
 * first pass read, the normed output of the layers before the loop, which stays at the end of a token's row. */
#include "src/model/layers/layer_parts.h"

void sh_loop_end(const struct sh_layer *l, const struct sh_activations *a, void *hidden, struct sh_mat h)
{
    const struct sh_arch *c = a->arch;
    const struct sh_loop *o = &c->loop;
    int next = l->index + 1 - o->first;
    if (!o->n || next < 0 || next % o->n || next / o->n >= o->times)
        return;
    struct sh_mat first = sh_layer_part(c, hidden, h.rows, sh_arch_late_at(c), c->d_model);
    struct sh_norm norm = {.out = h, .x = h, .eps = c->norm_eps, .kind = c->norm};
    struct sh_scatter add = {.out = h, .x = first, .by = 1};
    l->b->norm(l->d, &norm);
    if (!next)
        l->b->cast(l->d, first, h);
    l->b->scatter(l->d, &add);
}
