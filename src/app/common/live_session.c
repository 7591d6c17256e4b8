/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/common/live_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/weight_bits.h"
#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/base/read_number.h"

/* How prompts are read and tokens are numbered. */
static int read_ways(struct sh_live *l, const struct sh_live_options *o, struct sh_err *e)
{
    static const char *const modes[] = {"stream", "blocks", "once", NULL};
    static const char *const positions[] = {"original", "cache", NULL};
    int mode = sh_read_name("prefill-mode", o->prefill_mode, modes, e);
    int where = mode < 0 ? -1 : sh_read_name("positions", o->positions, positions, e);
    if (where < 0)
        return -1;
    l->prefill_mode = (enum sh_prefill_mode)mode;
    l->positions = (enum sh_positions)where;
    l->prefill = (int)o->prefill;
    if (o->prefill_block && l->prefill_mode != SH_PREFILL_BLOCKS)
        return sh_misused(e, "--prefill-block requires --prefill-mode blocks");
    if (o->prefill && l->prefill_mode == SH_PREFILL_ONCE)
        return sh_misused(e, "--prefill-mode once cannot be combined with --prefill: once reads the whole prompt "
                             "first");
    return 0;
}

int sh_live_read_keys(const char *keys, long long residual, struct sh_kv_format *f, struct sh_err *e)
{
    enum { RESIDUAL = 8 };
    static const char *const names[] = {"token", "channel", NULL};
    int by = sh_read_name("kv-keys", keys, names, e);
    if (by < 0)
        return -1;
    if (residual && (f->bits >= 16 || !by))
        return sh_misused(e, "--kv-residual requires --kv-keys channel and --kv-bits 8 or 4");
    if (keys && by && f->bits >= 16)
        return sh_misused(e, "--kv-keys requires --kv-bits 8 or 4, found %d", f->bits);
    f->by_channel = by;
    f->residual = by ? residual ? (int)residual : RESIDUAL : 0;
    return 0;
}

int sh_live_read_bits(long long weights, long long activations, double prune, struct sh_err *e)
{
    if (!sh_code_bits_fit((int)weights))
        return sh_misused(e, "--weight-bits: found %lld, expected 16, 8 or 4", weights);
    if (activations && activations != 32 && activations != 16 && activations != 8)
        return sh_misused(e, "--activation-bits: found %lld, expected 32, 16 or 8", activations);
    if (activations == 8 && (weights < 16 || prune > 0))
        return sh_misused(e, "--activation-bits 8 cannot be combined with --weight-%s, which replaces the weights that "
                          "activations are rounded for: those that the checkpoint has in integers",
                          weights < 16 ? "bits" : "prune");
    return 0;
}

int sh_live_check_activations(const struct sh_model *m, long long bits, struct sh_err *e)
{
    if (bits != 8 || sh_model_has_integers(m))
        return 0;
    return sh_misused(e, "--activation-bits 8: %s has no weights in integers that products read: expected GGUF, AWQ, "
                      "GPTQ, INT4, INT8 or MXFP4 (with plain numbers, FP8 and NF4, activations are not rounded)",
                      sh_model_name(m));
}

int sh_live_read(struct sh_live *l, const struct sh_live_options *o, const struct sh_common *c, const char *command,
                 struct sh_err *e)
{
    int bits = (int)o->kv_bits;
    l->options = o;
    l->seed = (uint64_t)c->seed;
    if (!o->model)
        return sh_misused(e, "%s requires --model DIR", command);
    if (sh_live_read_bits(o->weight_bits, o->activation_bits, o->weight_prune, e))
        return -1;
    if (bits && bits != 32 && bits != 16 && bits != 8 && bits != 4)
        return sh_misused(e, "--kv-bits: found %d, expected 32, 16, 8 or 4", bits);
    if (sh_read_dtype(o->dtype, &l->dtype, e))
        return -1;
    l->format = (struct sh_kv_format){.bits = bits ? bits : l->dtype == SH_F32 ? 32 : 16, .group = (int)o->kv_group,
                                      .meta = SH_F16};
    return sh_live_read_keys(o->kv_keys, o->kv_residual, &l->format, e) || read_ways(l, o, e) ? -1 : 0;
}

int sh_live_open(struct sh_live *l, const struct sh_common *c, struct sh_err *e)
{
    l->note.quiet = c->quiet;
    l->devices.x_bits = l->options->activation_bits ? (int)l->options->activation_bits : 16;
    if (sh_devices_open(&l->devices, c, l->options->device_memory, e))
        return -1;
    l->model = sh_model_open(l->options->model, e);
    if (!l->model)
        return -1;
    sh_model_prune(l->model, l->options->weight_prune);
    return sh_live_check_activations(l->model, l->options->activation_bits, e);
}

static struct sh_resident_setup setup_for(struct sh_live *l, int positions)
{
    int most = sh_model_arch(l->model)->max_pos;
    return (struct sh_resident_setup){.backend = l->devices.backend, .device = l->devices.at[0], .model = l->model,
                                      .dtype = l->dtype, .weight_bits = (int)l->options->weight_bits,
                                      .positions = positions < most ? positions : most, .stages = l->devices.stages,
                                      .on_host = sh_live_say_host, .on_eager = sh_live_say_eager, .to = &l->note};
}

static int load(struct sh_live *l, const struct sh_resident_setup *setup, struct sh_err *e)
{
    l->resident = sh_resident_open(setup, e);
    return l->resident ? 0 : sh_err_prefix(e, "%s", l->options->model);
}

int sh_live_load(struct sh_live *l, int positions, int rows, int block, struct sh_err *e)
{
    struct sh_props props;
    struct sh_resident_setup setup = setup_for(l, positions);
    l->devices.backend->props(l->devices.at[0], &props);
    setup.rows = props.rows_at_once < rows ? props.rows_at_once : rows;
    setup.rows = setup.rows < block ? block : setup.rows;
    return load(l, &setup, e);
}

int sh_live_load_texts(struct sh_live *l, int longest, long long all, struct sh_err *e)
{
    struct sh_resident_setup setup = setup_for(l, longest);
    sh_resident_for_texts(&setup, longest, all, 1);
    return load(l, &setup, e);
}

void sh_live_close(struct sh_live *l)
{
    sh_resident_close(l->resident);
    sh_model_close(l->model);
    sh_devices_close(&l->devices);
    l->resident = NULL;
    l->model = NULL;
}

int sh_live_keeps_all(const struct sh_policy_spec *p, int n_layer)
{
    for (int i = 0; i < n_layer; i++)
        if (!p->policy->keeps_all || !p->policy->keeps_all(p->knob, i))
            return 0;
    return 1;
}

int *sh_live_heads(const struct sh_arch *a)
{
    int *heads = xcalloc((size_t)a->n_layer, sizeof *heads);
    for (int l = 0; l < a->n_layer; l++)
        heads[l] = sh_arch_kv_heads(a, l);
    return heads;
}

/* A block is at most as long as the prompt; and with positions in the cache no place exceeds the model's positions,
 * unless a length was requested. */
static int shape_prompt(const struct sh_live *l, struct sh_live_shape *s, struct sh_err *e)
{
    enum { BLOCK = 128 };
    const struct sh_arch *a = sh_model_arch(l->model);
    int asked = (int)l->options->prefill_block, slots = s->budget ? s->budget : s->n_token;
    int by_place = l->positions == SH_POSITIONS_CACHE && a->pos != SH_POS_ALIBI;
    slots = slots < l->prefill ? l->prefill : slots;
    s->prefill = l->prefill;
    if (l->prefill_mode == SH_PREFILL_STREAM)
        return 0;
    if (l->prefill_mode == SH_PREFILL_ONCE) {
        s->prefill = s->block = s->block_asked = s->n_prompt;
        if (by_place && s->n_prompt > a->max_pos)
            return sh_misused(e, "--prefill-mode once: the prompt has %d tokens, more than the model's %d positions",
                              s->n_prompt, a->max_pos);
        return 0;
    }
    s->block_asked = asked ? asked : BLOCK;
    if (!asked && by_place && slots + s->block_asked > a->max_pos)
        s->block_asked = a->max_pos - slots < 1 ? 1 : a->max_pos - slots;
    s->block = s->block_asked > s->n_prompt ? s->n_prompt : s->block_asked;
    return 0;
}

static int most_of(const struct sh_plan *p, int n_token)
{
    int most = 0;
    for (int i = 0; i < p->n_layer * p->n_kv_head; i++) {
        int b = sh_plan_tokens(p, i / p->n_kv_head, i % p->n_kv_head, n_token);
        most = b > most ? b : most;
    }
    return most;
}

int sh_live_shape(const struct sh_live *l, const struct sh_live_cache *c, int n_prompt, int n_token,
                  struct sh_live_shape *out, struct sh_err *e)
{
    const struct sh_arch *a = sh_model_arch(l->model);
    const struct sh_policy *p = c->policy->policy;
    if (!c->budget && !c->plan && !sh_live_keeps_all(c->policy, a->n_layer))
        return sh_misused(e, "--policy %s requires --budget: how many tokens each head keeps", p->name);
    *out = (struct sh_live_shape){.n_prompt = n_prompt, .n_token = n_token, .plan_token = c->plan ? n_token : 0,
                                  .budget = c->plan ? most_of(c->plan, n_token)
                                                    : c->budget ? sh_budget_tokens(c->budget, n_token) : 0,
                                  .length = p->needs & SH_NEEDS_LENGTH ? n_token : 0,
                                  .angles = sh_arch_follows_length(a) ? sh_rope_length(&a->rope, n_prompt) : 0};
    out->fits = (!out->budget || n_token <= out->budget) | (!a->window || n_token <= a->window) << 1;
    return shape_prompt(l, out, e);
}

int sh_live_shape_join(struct sh_live_shape *s, const struct sh_live_shape *other)
{
    if (s->budget != other->budget || s->plan_token != other->plan_token || s->fits != other->fits ||
        s->length != other->length || s->angles != other->angles || s->prefill != other->prefill ||
        s->block_asked != other->block_asked)
        return 0;
    s->n_prompt = other->n_prompt > s->n_prompt ? other->n_prompt : s->n_prompt;
    s->n_token = other->n_token > s->n_token ? other->n_token : s->n_token;
    s->block = other->block > s->block ? other->block : s->block;
    return 1;
}

/* The session's setup; *budget for free(). */
static struct sh_session_setup setup_of(const struct sh_live *l, const struct sh_live_cache *c,
                                        const struct sh_live_shape *shape, int n_seq, int **budget)
{
    const struct sh_arch *a = sh_model_arch(l->model);
    *budget = xcalloc((size_t)(a->n_layer * a->n_kv_head), sizeof **budget);
    for (int i = 0; i < a->n_layer * a->n_kv_head; i++)
        (*budget)[i] = c->plan ? sh_plan_tokens(c->plan, i / a->n_kv_head, i % a->n_kv_head, shape->plan_token)
                               : shape->budget ? shape->budget : shape->n_token;
    return (struct sh_session_setup){.spec = c->policy, .budget = *budget, .n_seq = n_seq, .n_token = shape->n_token,
                                     .length = shape->angles, .prefill = shape->prefill,
                                     .whole = l->prefill_mode == SH_PREFILL_ONCE, .block = shape->block,
                                     .positions = l->positions, .format = l->format, .seed = l->seed,
                                     .watched = c->watched};
}

int sh_live_check(const struct sh_live *l, const struct sh_live_cache *c, const struct sh_live_shape *shape,
                  struct sh_err *e)
{
    int *budget;
    struct sh_session_setup setup = setup_of(l, c, shape, 1, &budget);
    int bad = sh_session_check(sh_model_arch(l->model), &setup, e);
    free(budget);
    return bad;
}

struct sh_session *sh_live_session(const struct sh_live *l, const struct sh_live_cache *c,
                                   const struct sh_live_shape *shape, int n_seq, struct sh_err *e)
{
    int *budget;
    struct sh_session_setup setup = setup_of(l, c, shape, n_seq, &budget);
    struct sh_session *s = sh_session_new(l->resident, &setup, e);
    free(budget);
    return s;
}

int sh_live_fit(const struct sh_live *l, const struct sh_live_cache *c, const struct sh_live_shape *shape, int most,
                int *on_host, struct sh_err *e)
{
    int *budget;
    struct sh_session_setup setup = setup_of(l, c, shape, 1, &budget);
    int n = sh_session_fit(l->resident, &setup, most, on_host, e);
    free(budget);
    return n;
}

void sh_live_say_host(void *note, const char *why)
{
    struct sh_host_note *n = note;
    if (n->quiet || !strcmp(n->why, why))
        return;
    snprintf(n->why, sizeof n->why, "%s", why);
    sh_say("shears: the cache is in host memory and its rows are copied: ", why);
}

void sh_live_say_eager(void *note, const char *why)
{
    struct sh_host_note *n = note;
    if (!n->quiet && !n->said_eager)
        sh_say("shears: steps do not run as CUDA graphs, which is slower: ", why);
    n->said_eager = 1;
}

void sh_live_put_peak(struct sh_out *o, const struct sh_devices *d)
{
    struct sh_props props = {.peak_bytes = 0};
    if (d->n)
        d->backend->props(d->at[0], &props);
    if (props.peak_bytes)
        sh_out_int(o, "device_peak_bytes", "device memory, at most", (long long)props.peak_bytes);
    if (props.used_bytes)
        sh_out_int(o, "device_used_bytes", "as the device counts", (long long)props.used_bytes);
}
