/* SPDX-License-Identifier: Apache-2.0 */
/* nGPT (Loshchilov et al., arXiv 2410.01131) as NVIDIA's Dory has it: hidden states have length 1, and a block moves
 * them towards its normed output y, each element by its own rate: h = h + |rate| (y - h). As in models whose norms
 * replace the hidden states (SH_NORM_TAKEN), this is h times 1 - |rate|, and y times |rate|. Queries after their
 * rotation, attention's gate, both factors of the feed-forward block, and logits have learned factors, which are stored
 * times a small number, so that all parameters are of one size in training. */
#include <math.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/model/layers/layer_parts.h"

/* By which the stored numbers of a role are multiplied. */
static float unit_of(const struct sh_arch *c, enum sh_role role, int layer)
{
    double start = c->learned_start, width = c->d_model;
    switch ((int)role) {
    case SH_QUERY_FACTOR: return (float)(sqrt(sh_arch_d_head(c, layer)) / start);
    case SH_ATTN_GATE_FACTOR: return (float)(sqrt(sqrt(width)) / start);
    case SH_GATE_FACTOR: case SH_UP_FACTOR: return (float)sqrt(width);
    case SH_ATTN_RATE: case SH_MLP_RATE: return (float)(c->rate_start / start);
    }
    return (float)(1 / start);
}

/* kept: of a rate, the share that is left. */
static int read_factor(const struct sh_layer *l, struct sh_model *m, enum sh_role role, int kept, float **out,
                       struct sh_err *e)
{
    int squared = role == SH_QUERY_FACTOR || role == SH_ATTN_GATE_FACTOR;
    int is_rate = role == SH_ATTN_RATE || role == SH_MLP_RATE;
    struct sh_tensor t;
    if (sh_model_tensor(m, role, l->index, &t, e) || sh_model_check_finite(&t, e))
        return -1;
    if (!t.at)
        return 0;
    float by = unit_of(sh_model_arch(m), role, l->index), *host = xmalloc((size_t)t.cols * sizeof *host);
    for (int i = 0; i < t.cols; i++) {
        float x = sh_tensor_element(&t, (size_t)i) * by;
        x = squared ? x * x : is_rate ? fabsf(x) : x;
        host[i] = kept ? 1 - x : x;
    }
    *out = l->b->vector(l->d, host, (size_t)t.cols, e);
    free(host);
    return *out ? 0 : -1;
}

int sh_ngpt_factor(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, enum sh_role role, int layer,
                   float **out, struct sh_err *e)
{
    const struct sh_layer l = {.index = layer, .b = b, .d = d};
    return read_factor(&l, m, role, 0, out, e);
}

int sh_ngpt_load(struct sh_layer *l, struct sh_model *m, struct sh_err *e)
{
    static const enum sh_role plain[] = {SH_QUERY_FACTOR, SH_ATTN_GATE_FACTOR, SH_GATE_FACTOR, SH_UP_FACTOR};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (read_factor(l, m, plain[i], 0, &l->vector[plain[i]], e))
            return -1;
    if (!(sh_model_arch(m)->rate_start > 0))
        return 0;
    return read_factor(l, m, SH_ATTN_RATE, 0, &l->vector[SH_ATTN_POST_W], e) ||
           read_factor(l, m, SH_ATTN_RATE, 1, &l->vector[SH_ATTN_KEEP], e) ||
           read_factor(l, m, SH_MLP_RATE, 0, &l->vector[SH_MLP_POST_W], e) ||
           read_factor(l, m, SH_MLP_RATE, 1, &l->vector[SH_MLP_KEEP], e) ? -1 : 0;
}
