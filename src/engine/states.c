/* SPDX-License-Identifier: Apache-2.0 */
#include "src/engine/states.h"

#include <stdlib.h>

#include "src/base/mem.h"

struct sh_states {
    const struct sh_resident *r;
    int first_layer, n_layer;
    float **at;                         /* [n_layer]: device, [n_seq, sh_arch_state]; NULL: it is not recurrent */
    float *zeros;                       /* as many as a layer has at most                         */
};

size_t sh_states_bytes(const struct sh_session_setup *setup)
{
    size_t n = 0;
    for (int i = 0; i < sh_kv_setup_layers(setup); i++)
        n += sh_arch_state(setup->arch, setup->first_layer + i);
    return n * sizeof(float);
}

static size_t each(const struct sh_states *s, int i)
{
    return sh_arch_state(s->r->arch, s->first_layer + i);
}

struct sh_states *sh_states_new(const struct sh_resident *r, const struct sh_session_setup *setup, struct sh_err *e)
{
    const struct sh_resident_setup *d = &r->setup;
    struct sh_states *s = xcalloc(1, sizeof *s);
    *s = (struct sh_states){.r = r, .first_layer = setup->first_layer, .n_layer = sh_kv_setup_layers(setup)};
    s->at = xcalloc((size_t)s->n_layer, sizeof *s->at);
    s->zeros = xcalloc(sh_arch_most_state(r->arch) + 1, sizeof *s->zeros);
    for (int i = 0; i < s->n_layer; i++) {
        if (!sh_arch_recurs(r->arch, s->first_layer + i))
            continue;
        s->at[i] = d->backend->alloc(d->device, (size_t)setup->n_seq * each(s, i) * sizeof(float), e);
        if (!s->at[i]) {
            sh_states_free(s);
            return NULL;
        }
    }
    for (int i = 0; i < setup->n_seq; i++)
        sh_states_restart(s, i);
    return s;
}

void sh_states_free(struct sh_states *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n_layer; i++)
        s->r->setup.backend->release(s->r->setup.device, s->at[i]);
    free(s->at);
    free(s->zeros);
    free(s);
}

void sh_states_restart(struct sh_states *s, int sequence)
{
    for (int i = 0; i < s->n_layer; i++)
        if (s->at[i])
            s->r->setup.backend->put(s->r->setup.device, s->at[i] + (size_t)sequence * each(s, i), s->zeros,
                                     each(s, i) * sizeof(float));
}

static struct sh_mat of_sequence(const struct sh_states *s, int i, int sequence)
{
    size_t n = each(s, i);
    return (struct sh_mat){s->at[i] + (size_t)sequence * n, SH_F32, 1, (int)n, n};
}

void sh_states_copy(struct sh_states *to, int sequence_to, const struct sh_states *from, int sequence_from)
{
    for (int i = 0; i < to->n_layer; i++)
        if (to->at[i])
            to->r->setup.backend->cast(to->r->setup.device, of_sequence(to, i, sequence_to),
                                       of_sequence(from, i, sequence_from));
}

float *sh_states_of(const struct sh_states *s, int layer)
{
    return s->at[layer - s->first_layer];
}
