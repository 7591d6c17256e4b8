/* SPDX-License-Identifier: Apache-2.0 */
/* See live.h. */
#include "src/cli/live.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/weight_bits.h"
#include "src/base/mem.h"

void sh_live_preset(struct sh_live_options *o)
{
    o->dtype = "f32";
    o->weight_bits = 16;
    o->kv_group = 64;
}

static int read_dtype(const char *name, enum sh_type *out, struct sh_err *e)
{
    for (int t = SH_F32; t <= SH_BF16; t++)
        if (!strcmp(sh_type_name((enum sh_type)t), name)) {
            *out = (enum sh_type)t;
            return 0;
        }
    return sh_misused(e, "--dtype: \"%s\" is not known, expected one of f32, f16, bf16", name);
}

int sh_live_read(struct sh_live *l, const struct sh_live_options *o, const struct sh_common *c, const char *command,
                 struct sh_err *e)
{
    int bits = (int)o->kv_bits;
    l->options = o;
    l->seed = (uint64_t)c->seed;
    if (!o->model)
        return sh_misused(e, "%s needs --model DIR", command);
    if (!sh_code_bits_fit((int)o->weight_bits))
        return sh_misused(e, "--weight-bits: %lld, expected 16, 8 or 4", o->weight_bits);
    if (bits && bits != 32 && bits != 16 && bits != 8 && bits != 4)
        return sh_misused(e, "--kv-bits: %d, expected 32, 16, 8 or 4", bits);
    if (read_dtype(o->dtype, &l->dtype, e))
        return -1;
    l->format = (struct sh_kv_format){.bits = bits ? bits : l->dtype == SH_F32 ? 32 : 16, .group = (int)o->kv_group,
                                      .meta = SH_F16};
    return 0;
}

int sh_live_open(struct sh_live *l, const struct sh_common *c, struct sh_err *e)
{
    if (sh_devices_open(&l->devices, c, l->options->device_memory, e))
        return -1;
    l->model = sh_model_open(l->options->model, e);
    return l->model ? 0 : -1;
}

int sh_live_load(struct sh_live *l, int positions, int rows, struct sh_err *e)
{
    struct sh_props props;
    l->devices.backend->props(l->devices.at[0], &props);
    struct sh_resident_setup setup = {.backend = l->devices.backend, .device = l->devices.at[0], .model = l->model,
                                      .dtype = l->dtype, .weight_bits = (int)l->options->weight_bits,
                                      .rows = props.rows_at_once < rows ? props.rows_at_once : rows,
                                      .positions = positions};
    l->resident = sh_resident_open(&setup, e);
    return l->resident ? 0 : sh_err_prefix(e, "%s", l->options->model);
}

void sh_live_close(struct sh_live *l)
{
    sh_resident_close(l->resident);
    sh_model_close(l->model);
    sh_devices_close(&l->devices);
    l->resident = NULL;
    l->model = NULL;
}

static int keeps_all(const struct sh_policy_spec *p, int n_layer)
{
    for (int i = 0; i < n_layer; i++)
        if (!p->policy->keeps_all || !p->policy->keeps_all(p->knob, i))
            return 0;
    return 1;
}

struct sh_session *sh_live_session(const struct sh_live *l, const struct sh_policy_spec *p, const struct sh_budget *b,
                                   int n_seq, int n_token, struct sh_err *e)
{
    const struct sh_arch *a = l->resident->arch;
    int n = a->n_layer * a->n_kv_head;
    if (!b && !keeps_all(p, a->n_layer)) {
        sh_misused(e, "the policy %s drops tokens: say with --budget how many a head keeps", p->policy->name);
        return NULL;
    }
    int *budget = xcalloc((size_t)n, sizeof *budget);
    for (int i = 0; i < n; i++)
        budget[i] = b ? sh_budget_tokens(b, n_token) : n_token;
    struct sh_session_setup setup = {.spec = p, .budget = budget, .n_seq = n_seq, .n_token = n_token,
                                     .prefill = (int)l->options->prefill, .format = l->format, .seed = l->seed};
    struct sh_session *s = sh_session_new(l->resident, &setup, e);
    free(budget);
    return s;
}
