/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary scaling in config.json (config.h): the object rope_scaling or, in newer files, rope_parameters. Its
 * `rope_type` (formerly `type`) determines which of its other keys count. */
#include <math.h>
#include <stdio.h>

#include "src/model/config/config.h"

static const struct sh_word kinds[] = {
    {"default", SH_ROPE_PLAIN}, {"mrope", SH_ROPE_PLAIN},   /* by three positions, which are one in a text */
    {"linear", SH_ROPE_LINEAR}, {"dynamic", SH_ROPE_DYNAMIC},
    {"llama3", SH_ROPE_LLAMA3}, {"yarn", SH_ROPE_YARN}, {"longrope", SH_ROPE_LONG},
    {"proportional", SH_ROPE_PROPORTIONAL},
    {"deepseek_yarn", SH_ROPE_YARN},    /* in the first files of Sarvam 105B                          */
    {"su", SH_ROPE_LONG},               /* in the first files of Phi-3                                */
    {NULL, 0}};

struct place {
    const struct sh_config *c;
    const char *object;
    char key[96];
};

static const char *inner(struct place *p, const char *name)
{
    snprintf(p->key, sizeof p->key, "%s.%s", p->object, name);
    return p->key;
}

static int real(struct place *p, const char *name, double max, float *out, struct sh_err *e)
{
    return sh_config_real(p->c, inner(p, name), max, out, e);
}

static int read_llama3(struct place *p, struct sh_rope *r, struct sh_err *e)
{
    if (real(p, "low_freq_factor", 1e6, &r->low, e) || real(p, "high_freq_factor", 1e6, &r->high, e))
        return -1;
    if (!(r->low > 0) || !(r->high >= r->low))          /* equal in Llama 4 Scout: nothing is in between */
        return sh_config_refuse(p->c, inner(p, "high_freq_factor"),
                                "a number of at least low_freq_factor, which must be greater than 0", e);
    return 0;
}

static int read_yarn(struct place *p, struct sh_rope *r, struct sh_err *e)
{
    float weight = 0, weight_all = 0;
    r->fast = 32;
    r->slow = 1;
    r->is_rough = 1;
    if (real(p, "beta_fast", 1e6, &r->fast, e) || real(p, "beta_slow", 1e6, &r->slow, e) ||
        real(p, "attention_factor", 1e6, &r->attention, e) || real(p, "mscale", 1e6, &weight, e) ||
        real(p, "mscale_all_dim", 1e6, &weight_all, e) || sh_config_flag(p->c, inner(p, "truncate"), &r->is_rough, e))
        return -1;
    if (!(r->slow > 0) || !(r->fast >= r->slow))
        return sh_config_refuse(p->c, inner(p, "beta_fast"), "a number of at least beta_slow, which must be greater "
                                "than 0", e);
    int both = weight > 0 && weight_all > 0;
    double sharper = sh_rope_sharpening((double)r->factor, both ? (double)weight : 1);
    if (both)
        sharper /= sh_rope_sharpening((double)r->factor, (double)weight_all);
    if (!(r->attention > 0))
        r->attention = (float)sharper;
    return 0;
}

static int read_long(struct place *p, const struct sh_arch *a, struct sh_rope *r, struct sh_err *e)
{
    if (a->n_rot / 2 > SH_ROPE_PAIRS)
        return sh_fail(e, "%s: found %d rotary elements in a head, expected at most %d for longrope",
                       sh_config_path(p->c), a->n_rot, 2 * SH_ROPE_PAIRS);
    if (r->original < 2)
        return sh_config_refuse(p->c, inner(p, "original_max_position_embeddings"), "at least 2 positions", e);
    if (sh_config_reals(p->c, inner(p, "short_factor"), 1e6, r->stretch[0], a->n_rot / 2, e) ||
        sh_config_reals(p->c, inner(p, "long_factor"), 1e6, r->stretch[1], a->n_rot / 2, e) ||
        real(p, "attention_factor", 1e6, &r->attention, e))
        return -1;
    if (!(r->attention > 0))
        r->attention = (float)sh_rope_long_attention((double)r->factor, r->original);
    return real(p, "short_mscale", 1e6, &r->attention, e) || real(p, "long_mscale", 1e6, &r->long_attention, e)
               ? -1 : 0;
}

/* Pairs of elements that are half a head apart, of which a share turns. */
static int read_proportional(struct place *p, const struct sh_arch *a, struct sh_rope *r, struct sh_err *e)
{
    float share = 1;
    r->factor = 1;
    r->original = a->max_pos;
    if (real(p, "factor", 1e6, &r->factor, e) || real(p, "partial_rotary_factor", 1, &share, e))
        return -1;
    if (!(r->factor > 0))
        return sh_config_refuse(p->c, inner(p, "factor"), "a number greater than 0", e);
    r->pairs = (int)floor((double)share * a->n_rot / 2 + 1e-6);
    return 0;
}

static int read_kind(struct place *p, struct sh_rope *r, struct sh_err *e)
{
    int kind = SH_ROPE_PLAIN;
    const char *name = sh_config_has(p->c, inner(p, "rope_type")) ? "rope_type" : "type";
    if (sh_config_choice(p->c, inner(p, name), kinds, &kind, e))
        return -1;
    if (kind == SH_ROPE_YARN && sh_config_has(p->c, inner(p, "short_factor")))
        kind = SH_ROPE_LONG;            /* so called in early files of Phi-3, and read so by transformers */
    r->kind = (enum sh_rope_kind)kind;
    return 0;
}

/* The factor; by default, the ratio of the model's positions to the original ones. For these, the config and then the
 * family take precedence over the object. */
static int read_factor(struct place *p, const struct sh_arch *a, struct sh_rope *r, struct sh_err *e)
{
    static const char *const original = "original_max_position_embeddings";
    int of_family = r->original;
    r->original = a->max_pos;
    r->factor = 0;
    if (sh_config_count(p->c, inner(p, original), (int)1e8, &r->original, e))
        return -1;
    r->original = of_family ? of_family : r->original;
    if (sh_config_count(p->c, original, (int)1e8, &r->original, e) || real(p, "factor", 1e6, &r->factor, e))
        return -1;
    if (r->kind == SH_ROPE_DYNAMIC)
        r->original = a->max_pos;       /* transformers' documentation says otherwise, its code does this */
    if ((r->kind == SH_ROPE_YARN || r->kind == SH_ROPE_LONG) && !(r->factor > 0))
        r->factor = (float)a->max_pos / (float)r->original;
    if (r->kind == SH_ROPE_LONG && r->factor < 1 && !sh_config_has(p->c, inner(p, "factor")))
        r->factor = 1;                  /* nothing is stretched so far, and nothing sharpened */
    if (!(r->factor >= 1))
        return sh_config_refuse(p->c, inner(p, "factor"), "a number of at least 1", e);
    return 0;
}

int sh_config_rope(const struct sh_config *c, const char *const *objects, struct sh_arch *a, struct sh_rope *r,
                   struct sh_err *e)
{
    struct place p = {.c = c};
    while (*objects && !p.object) {
        p.object = sh_config_is_filled(c, *objects) ? *objects : NULL;
        objects++;
    }
    if (p.object && (read_kind(&p, r, e) || real(&p, "rope_theta", 1e12, &r->base, e)))
        return -1;
    if (!(r->base > 1))
        return sh_fail(e, "%s: the base of the rotary frequencies: found %g, expected a number above 1",
                       sh_config_path(c), (double)r->base);
    if (r->kind == SH_ROPE_PLAIN) {
        r->original = a->max_pos;
        return 0;
    }
    if (r->kind == SH_ROPE_PROPORTIONAL)
        return p.object ? read_proportional(&p, a, r, e) : 0;
    if (read_factor(&p, a, r, e) || (r->kind == SH_ROPE_LLAMA3 && read_llama3(&p, r, e)) ||
        (r->kind == SH_ROPE_YARN && read_yarn(&p, r, e)) || (r->kind == SH_ROPE_LONG && read_long(&p, a, r, e)))
        return -1;
    if (r->kind == SH_ROPE_DYNAMIC && a->n_rot < 4)
        return sh_fail(e, "%s: found %d rotary elements in a head, expected at least 4 for dynamic scaling",
                       sh_config_path(c), a->n_rot);
    return 0;
}

void sh_config_lengthen(struct sh_arch *a, const struct sh_rope *r)
{
    int lengthens = r->kind == SH_ROPE_DYNAMIC || r->kind == SH_ROPE_YARN;
    if (lengthens && (float)r->original * r->factor > (float)a->max_pos)
        a->max_pos = (int)fminf((float)r->original * r->factor, 1e8f);
}

int sh_config_classic_rope(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char *const objects[] = {"rope_scaling", "rope_parameters", NULL};
    static const char *const by_kind[] = {"rope_parameters.full_attention", "rope_parameters.sliding_attention"};
    for (int i = 0; i < 2; i++)
        if (sh_config_is_filled(c, by_kind[i]))
            return sh_config_refuse(c, by_kind[i], "one set of parameters for all layers of this model type", e);
    if (sh_config_rope(c, objects, a, &a->rope, e))
        return -1;
    sh_config_lengthen(a, &a->rope);
    return 0;
}

int sh_config_turns_whole(const struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return a->rotary_share < 1 && !sh_config_is_gguf(c)
               ? sh_fail(e, "%s: key 'partial_rotary_factor': found %g, expected 1 for this model type",
                         sh_config_path(c), (double)a->rotary_share) : 0;
}

int sh_config_whole_rope(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_config_turns_whole(a, c, e) || sh_config_classic_rope(a, c, e) ? -1 : 0;
}

/* n_rot of a kind of layers; as it is without the key, and where pairs of a whole head stand still by the same key. */
static int read_share(struct sh_arch *a, const struct sh_config *c, const char *object, int *n_rot, struct sh_err *e)
{
    float share = 0;
    char key[80], kind[80];
    snprintf(key, sizeof key, "%s.partial_rotary_factor", object);
    snprintf(kind, sizeof kind, "%s.rope_type", object);
    if (sh_config_has(c, kind) && sh_config_is(c, kind, "\"proportional\""))
        return 0;
    if (sh_config_real(c, key, 1, &share, e))
        return -1;
    int n = share > 0 ? (int)((float)a->d_head * share) : *n_rot;
    if (n < 2 || n % 2)
        return sh_config_refuse(c, key, "a share that makes an even number of rotary elements, at least 2", e);
    *n_rot = n;
    return 0;
}

int sh_config_ropes_by_kind(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char *const whole[] = {"rope_parameters.full_attention", NULL};
    static const char *const local[] = {"rope_parameters.sliding_attention", NULL};
    if (sh_config_is_filled(c, "rope_parameters") && !sh_config_is_filled(c, *whole) && !sh_config_is_filled(c, *local))
        return sh_config_refuse(c, "rope_parameters", "an object with full_attention and sliding_attention", e);
    if (sh_config_is_filled(c, "rope_scaling"))
        return sh_config_refuse(c, "rope_scaling", "none: parameters of the rotation in rope_parameters", e);
    a->local_n_rot = a->n_rot;
    if (read_share(a, c, *whole, &a->n_rot, e) || read_share(a, c, *local, &a->local_n_rot, e) ||
        sh_config_rope(c, whole, a, &a->rope, e))
        return -1;
    int n_rot = a->n_rot;
    a->n_rot = a->local_n_rot;                  /* which sh_config_rope reads                         */
    if (sh_config_rope(c, local, a, &a->local_rope, e))
        return -1;
    a->n_rot = n_rot;
    sh_config_lengthen(a, &a->rope);
    return 0;
}

int sh_config_whole_ropes_by_kind(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (sh_config_ropes_by_kind(a, c, e))
        return -1;
    return a->n_rot == a->d_head && a->local_n_rot == a->d_head
               ? 0 : sh_config_refuse(c, "rope_parameters", "a rotation of whole heads, or a proportional one", e);
}

int sh_config_says_rope(const struct sh_config *c)
{
    return sh_config_is_filled(c, "rope_scaling") || sh_config_is_filled(c, "rope_parameters");
}
