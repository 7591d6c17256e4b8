/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/capacity/capacity_own.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/load.h"
#include "src/app/capacity/capacity_names.h"
#include "src/app/capacity/capacity_study.h"
#include "src/model/layers/layer.h"

enum {
    POSITION = 4,                       /* bytes that a cache has next to each token              */
    BLOCK = 128,                        /* tokens of a prompt that generate reads together        */
    MOST_ROWS = 1 << 22
};

int sh_capacity_is_own(const struct sh_capacity_args *a)
{
    return a->engine && !strcmp(a->engine, SH_CAPACITY_OWN) && access(a->engine, F_OK);
}

static int excludes(const struct sh_capacity_args *a, struct sh_err *e)
{
    const struct { const char *name; int is_given; } others[] = {
        {"gpu", a->gpu != NULL}, {"tp", a->tp != sh_capacity_defaults.tp}, {"pp", a->pp > 1}, {"ep", a->ep > 1},
        {"plan", a->plan != NULL}, {"db", a->db != NULL}, {"policy", a->policy != NULL},
        {"max-ppl-increase", a->max_ppl != NULL}, {"min-recall", a->min_recall != NULL},
        {"measured-on", a->measured_on != NULL}, {"draft", a->draft != NULL}, {"weights", a->weights != NULL},
        {"weights-attention", a->weights_attention != NULL}, {"page", a->page > 1}, {"shared-prefix", a->prefix > 0},
        {"max-seqs", a->sampled > 0}, {"price", a->price >= 0}, {"plot-memory", a->plot_memory != NULL},
        {"plot-frontier", a->plot_frontier != NULL}, {"memory", a->memory > 0}, {"overhead", a->overhead > 0},
        {"util", a->util >= 0}, {"reserve", a->reserve >= 0}, {"bandwidth", a->bandwidth >= 0},
        {"flops", a->flops >= 0}, {"link", a->link}, {"uneven", a->uneven}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].is_given) {
            sh_misused(e, "--engine shears cannot be combined with --%s", others[i].name);
            return sh_hint(e, "it counts what this program holds on the CPU, of a checkpoint as it is stored");
        }
    return 0;
}

/* Does this processor copy codes into the order of its products? */
static int settles(void)
{
    struct sh_err ignored;
    struct sh_props props = {.settles = 0};
    struct sh_open how = {.n_threads = 1, .x_bits = 16};
    const struct sh_backend *b = sh_backend_find("cpu", &ignored);
    struct sh_dev *d = b ? b->open(&how, &ignored) : NULL;
    if (d) {
        b->props(d, &props);
        b->close(d);
    }
    return props.settles;
}

static void add_weights(struct sh_capacity_own *o)
{
    int copies = settles();
    o->n_format = sh_model_kept_formats(o->of, SH_F32, o->format, SH_OWN_FORMATS);
    for (int i = 0; i < o->n_format; i++) {
        o->format[i].mapped -= copies ? o->format[i].settled : 0;
        o->weights += o->format[i].bytes;
        o->mapped += o->format[i].mapped;
    }
    o->copied = o->weights - o->mapped;
}

/* As eval and generate have it by default: f32, and one position for each token. */
static int add_cache(const struct sh_capacity_args *a, struct sh_capacity_own *o, struct sh_err *e)
{
    struct sh_capacity_args own = *a;
    struct sh_capacity_settings settings;
    struct sh_capacity_names names;
    struct sh_kv_shape shape = {0};
    struct sh_capacity_ask ask;
    uint64_t *layers = NULL;
    const struct sh_gpu none = {.name = "CPU", .dies = 1};
    own.kv = a->kv == sh_capacity_defaults.kv ? "f32" : a->kv;
    if (sh_capacity_settings(&own, &settings, e))
        return -1;
    if (settings.kv.n > 1 || settings.budget.n > 1)
        return sh_misused(e, "--engine shears: found several values of --%s, expected one",
                          settings.kv.n > 1 ? "kv" : "budget");
    snprintf(o->kv, sizeof o->kv, "%s", settings.kv.at[0]);
    struct sh_capacity_question q = {&shape, NULL, &none, o->kv, settings.budget.n ? settings.budget.at[0] : NULL, 1};
    own.memory = 1;                     /* there is no board that could say                       */
    own.bandwidth = own.flops = 1;
    int bad = sh_capacity_names_open(&names, NULL, NULL, e) || sh_capacity_model(&names, a->model, 0, &shape, e) ||
              sh_capacity_ask_fill(&own, &settings, &q, &ask, &layers, e);
    if (!bad) {
        ask.rule.state += ask.rule.state ? 0 : POSITION;
        struct sh_kv_bytes kv = sh_kv_bytes(&shape, &ask.rule, 0, shape.f.layers, 1, o->length);
        o->token = kv.token;
        o->sequence = kv.sequence;
        o->cache = sh_kv_mul(kv.sequence, o->batch);
    }
    free(layers);
    sh_kv_shape_clear(&shape);
    sh_capacity_names_close(&names);
    return bad ? -1 : 0;
}

/* Of the tokens that go through a layer together: a block of a prompt, or one of each sequence; their hidden states and
 * logits. */
static void add_activations(const struct sh_capacity_args *a, struct sh_capacity_own *o)
{
    const struct sh_arch *c = sh_model_arch(o->of);
    uint64_t rows = a->chunk ? (uint64_t)a->chunk : BLOCK;
    rows = rows < o->length ? rows : o->length;
    rows = rows < o->batch ? o->batch : rows;
    o->rows = rows < MOST_ROWS ? (int)rows : MOST_ROWS;
    o->activations = sh_activations_bytes(c, o->rows, SH_F32) + (uint64_t)o->rows * sh_arch_row(c) * sizeof(float) +
                     o->batch * (uint64_t)c->n_vocab * sizeof(float);
}

int sh_capacity_own(const struct sh_capacity_args *a, struct sh_capacity_own *out, struct sh_err *e)
{
    *out = (struct sh_capacity_own){.model = a->model, .length = (uint64_t)a->length,
                                    .batch = a->batch ? (uint64_t)a->batch : 1};
    if (excludes(a, e))
        return -1;
    if (!(out->of = sh_model_open(a->model, e)))
        return access(a->model, F_OK) ? sh_hint(e, "--engine shears reads the tensors of a checkpoint: a folder or a "
                                                "file of one") : -1;
    add_weights(out);
    add_activations(a, out);
    if (add_cache(a, out, e))
        return -1;
    out->most = sh_kv_add(sh_kv_add(out->copied, out->cache), out->activations);
    return 0;
}

void sh_capacity_own_clear(struct sh_capacity_own *o)
{
    sh_model_close(o->of);
}
