/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary positions in GGUF metadata (gguf_config.h). LLaMA 3's scaling has no key: converters store the divisor of each
 * pair's frequency in the tensor rope_freqs.weight. The parameters of the rule (rope.h) are recovered from these
 * numbers, and accepted only if they reproduce all of them. */
#include <math.h>
#include <string.h>

#include "src/model/files/gguf_config.h"

#define PI 3.14159265358979323846
#define CLOSE 1e-5                          /* of the factors, which are f32                      */

enum { MOST_PAIRS = 4096 };

struct factors {
    double wave[MOST_PAIRS], by[MOST_PAIRS];    /* of each pair: wavelength, divisor               */
    int n;
    double most, low, high, original;           /* the rule's parameters                          */
};

/* ---- factors ---- */

/* The divisor by the rule: `most` below `low` turns within the original length, 1 above `high`, a ramp between
 * (rope.c). */
static double rule(const struct factors *f, int i)
{
    double turns = f->original / f->wave[i], share = (turns - f->low) / (f->high - f->low);
    return turns < f->low ? f->most : turns > f->high || !(f->high > f->low) ? 1 : 1 / ((1 - share) / f->most + share);
}

static int fits(const struct factors *f)
{
    for (int i = 0; i < f->n; i++)
        if (!(fabs(rule(f, i) - f->by[i]) <= CLOSE * f->by[i]))
            return 0;
    return f->high >= f->low && f->low > 0 && f->original >= 1 && f->original <= 1e8;
}

static int is_between(const struct factors *f, int i)
{
    return f->by[i] > 1 && f->by[i] < f->most;
}

/* How far pair i is from divided by `most` (0) to untouched (1). */
static double share_of(const struct factors *f, int i)
{
    return (1 / f->by[i] - 1 / f->most) / (1 - 1 / f->most);
}

/* With the turns of all published models, 1 and 4, one pair on the ramp gives the original length; without one, the
 * pairs on both sides bound it. */
static int find_original(struct factors *f)
{
    double least = 1, most = 1e8;
    f->low = 1;
    f->high = 4;
    for (int i = 0; i < f->n; i++) {
        if (is_between(f, i)) {
            f->original = round(f->wave[i] * (f->low + share_of(f, i) * (f->high - f->low)));
            return fits(f);
        }
        if (f->by[i] > 1)
            most = fmin(most, f->low * f->wave[i]);
        else
            least = fmax(least, f->high * f->wave[i]);
    }
    f->original = exp2(ceil(log2(least)));
    if (!fits(f))
        f->original = round((least + most) / 2);
    return fits(f);
}

/* Other turns are found from two pairs between, on the scale of a given original length. */
static int find_turns(struct factors *f, double original)
{
    int first = 0, last = f->n - 1;
    while (first < f->n && !is_between(f, first))
        first++;
    while (last > first && !is_between(f, last))
        last--;
    if (first >= last)
        return 0;
    double x = original / f->wave[first], y = original / f->wave[last];
    double width = (x - y) / (share_of(f, first) - share_of(f, last));
    f->original = original;
    f->low = x - share_of(f, first) * width;
    f->high = f->low + width;
    return fits(f);
}

/* Equal turns, as Llama 4 Scout has them: no pair is between, and any length that parts the pairs does. */
static int find_step(struct factors *f, double original)
{
    double least = 1, most = 1e8;
    for (int i = 0; i < f->n; i++)
        if (f->by[i] > 1)
            most = fmin(most, f->wave[i]);
        else
            least = fmax(least, f->wave[i]);
    f->low = f->high = 1;
    f->original = original >= least && original <= most ? original : round((least + most) / 2);
    return fits(f);
}

static int check_shape(const struct sh_gguf_maker *m, const struct sh_stored *t, int64_t turning)
{
    char shape[100];
    if (strcmp(t->dtype, "F32") || t->rank != 1 || (int64_t)t->shape[0] != turning / 2 || t->shape[0] > MOST_PAIRS)
        return sh_fail(m->e, "%s: tensor '%s': found %s of shape %s, expected F32 of shape [%lld], one number for each "
                       "rotary pair of a head", t->file, t->name, t->dtype, sh_stored_shape(t, shape, sizeof shape),
                       (long long)turning / 2);
    return 0;
}

static int read_factors(const struct sh_gguf_maker *m, const struct sh_stored *t, double base, int64_t turning,
                        struct factors *f)
{
    if (check_shape(m, t, turning))
        return -1;
    f->n = (int)t->shape[0];
    f->most = 1;
    for (int i = 0; i < f->n; i++) {
        float by;
        memcpy(&by, t->at + 4 * i, sizeof by);
        f->by[i] = (double)by;
        f->wave[i] = 2 * PI * pow(base, 2 * i / (double)turning);
        if (!(by >= 1) || !(by <= 1e6f))
            return sh_fail(m->e, "%s: tensor '%s': found %g, expected numbers from 1 to 1000000", t->file, t->name,
                           (double)by);
        f->most = fmax(f->most, f->by[i]);
    }
    return 0;
}

static int put_factors(struct sh_gguf_maker *m, const struct sh_stored *t, double base, int64_t turning)
{
    struct factors f = {.n = 0};
    int64_t original = 8192;
    if (!(m->form->traits & SH_GGUF_FACTORS))
        return sh_fail(m->e, "%s: tensor '%s': frequency factors are not supported for this family", t->file, t->name);
    if (sh_gguf_count(m, "rope.scaling.original_context_length", &original) || read_factors(m, t, base, turning, &f))
        return -1;
    if (f.most <= 1)
        return 0;
    if (!find_original(&f) && !find_turns(&f, (double)original) && !find_step(&f, (double)original))
        return sh_fail(m->e, "%s: tensor '%s': expected the factors of LLaMA 3's rotary scaling, but none of its "
                             "parameters give these", t->file, t->name);
    sh_gguf_put(m, "rope_scaling", NULL,
                json_pack("{s:s, s:f, s:f, s:f, s:I}", "rope_type", "llama3", "factor", f.most, "low_freq_factor",
                          f.low, "high_freq_factor", f.high, "original_max_position_embeddings",
                          (json_int_t)f.original));
    return 0;
}

/* ---- "longrope": a divisor of each frequency, for short texts and for long ones ---- */

static const char long_factors[] = "rope_factors_long.weight", short_factors[] = "rope_factors_short.weight";

int sh_gguf_is_long(const struct sh_gguf_maker *m)
{
    return m->form->traits & SH_GGUF_LONG &&
           (sh_weights_find(m->w, long_factors) || sh_weights_find(m->w, short_factors));
}

/* NULL: m->e says why. */
static json_t *list_of(const struct sh_gguf_maker *m, const char *name, int64_t turning)
{
    const struct sh_stored *t = sh_weights_find(m->w, name);
    if (!t)
        return sh_fail_null(m->e, "%s: tensor '%s' is missing, expected it next to the other one of '%s' and '%s'",
                            m->g->path, name, short_factors, long_factors);
    if (check_shape(m, t, turning))
        return NULL;
    json_t *list = json_array();
    for (int i = 0; i < (int)t->shape[0]; i++) {
        float by;
        memcpy(&by, t->at + 4 * i, sizeof by);
        if (!(by > 0) || !(by <= 1e6f)) {
            json_decref(list);
            return sh_fail_null(m->e, "%s: tensor '%s': found %g, expected numbers above 0, at most 1000000", t->file,
                                t->name, (double)by);
        }
        json_array_append_new(list, json_real((double)by));
    }
    return list;
}

static int put_long(struct sh_gguf_maker *m, int64_t turning)
{
    static const char sharper[] = "rope.scaling.attn_factor";
    int64_t original = 0;
    double attention = 1;
    if (sh_gguf_number(m, sharper, &attention))
        return -1;
    if (!(attention > 0) || attention > 1e6)
        return sh_gguf_cannot(m, sharper, "a number above 0, at most 1000000");
    json_t *of_long = list_of(m, long_factors, turning),
           *of_short = of_long ? list_of(m, short_factors, turning) : NULL;
    if (!of_short || sh_gguf_count(m, "rope.scaling.original_context_length", &original)) {
        json_decref(of_long);
        json_decref(of_short);
        return -1;
    }
    json_t *scaling = json_pack("{s:s, s:o, s:o, s:f}", "rope_type", "longrope", "long_factor", of_long, "short_factor",
                                of_short, "attention_factor", attention);
    if (original)
        json_object_set_new(scaling, "original_max_position_embeddings", json_integer(original));
    sh_gguf_put(m, "rope_scaling", NULL, scaling);
    return 0;
}

/* ---- scaling by keys ---- */

static int put_yarn(struct sh_gguf_maker *m, json_t *scaling)
{
    int64_t original = 0;
    double fast = 32, slow = 1, log = 0;
    if (sh_gguf_count(m, "rope.scaling.original_context_length", &original) ||
        sh_gguf_number(m, "rope.scaling.yarn_beta_fast", &fast) ||
        sh_gguf_number(m, "rope.scaling.yarn_beta_slow", &slow) ||
        (m->form->traits & SH_GGUF_LATENT && sh_gguf_number(m, "rope.scaling.yarn_log_multiplier", &log)))
        return -1;
    if (m->form->traits & SH_GGUF_WHOLE_YARN)
        json_object_set_new(scaling, "truncate", json_false());
    if (log > 0) {                      /* a tenth of what sharpens scores; turns keep their size */
        json_object_set_new(scaling, "mscale", json_real(10 * log));
        json_object_set_new(scaling, "mscale_all_dim", json_real(10 * log));
    }
    if (json_object_get(scaling, "mscale_all_dim") && !json_object_get(scaling, "mscale"))
        json_object_set_new(scaling, "mscale", json_real(1));
    json_object_set_new(scaling, "beta_fast", json_real(fast));
    json_object_set_new(scaling, "beta_slow", json_real(slow));
    if (original)
        json_object_set_new(scaling, "original_max_position_embeddings", json_integer(original));
    return 0;
}

/* Without a type a factor is linear; 0 and 1 are none. */
static int put_scaling(struct sh_gguf_maker *m)
{
    static const char name[] = "rope.scaling.type";
    struct sh_gguf_text type = {"linear", 6};
    double factor = 0;
    if (sh_gguf_word(m->g, sh_gguf_key(m, name), &type, m->e) ||
        sh_gguf_number(m, sh_gguf_has(m, "rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear", &factor))
        return -1;
    if (sh_gguf_text_is(type, "none"))
        return 0;
    if (sh_gguf_is_long(m))             /* put_long does it                                       */
        return sh_gguf_text_is(type, "longrope") || factor == 0 || factor == 1
                   ? 0 : sh_gguf_cannot(m, name, "longrope in a file with factors for long texts");
    int is_yarn = sh_gguf_text_is(type, "yarn");
    if (!is_yarn && !sh_gguf_text_is(type, "linear"))
        return sh_gguf_cannot(m, name, "none, linear or yarn");
    if (factor == 0 || (factor == 1 && !is_yarn))
        return 0;
    if (!json_object_get(m->root, "rope_scaling"))      /* the family's items may have begun it */
        sh_gguf_put(m, "rope_scaling", NULL, json_object());
    json_t *scaling = json_object_get(m->root, "rope_scaling");
    json_object_set_new(scaling, "rope_type", json_string(is_yarn ? "yarn" : "linear"));
    json_object_set_new(scaling, "factor", json_real(factor));
    return is_yarn ? put_yarn(m, scaling) : 0;
}

/* ---- bases and share ---- */

/* It is put a little higher than it is, so that its product with the width is never rounded down to less than what
 * turns. */
static double turning_share(const struct sh_gguf_maker *m, int64_t turning)
{
    return turning == m->d_head ? 1 : ((double)turning + 0.25) / (double)m->d_head;
}

static int put_share(struct sh_gguf_maker *m, int64_t turning)
{
    static const unsigned by_kind = SH_GGUF_ROPES | SH_GGUF_SHARE;
    if ((m->form->traits & by_kind) == by_kind)         /* put_shares does it                             */
        return 0;
    if (turning == m->d_head || !m->d_head) {
        if (m->form->traits & SH_GGUF_COUNTS_TURNS)
            sh_gguf_put(m, m->form->share_key, "rope.dimension_count", json_integer(turning));
        else if (m->form->share_key)
            sh_gguf_put(m, m->form->share_key, "rope.dimension_count", json_real(1));
        return 0;
    }
    if (m->form->traits & SH_GGUF_COUNTS_TURNS) {
        sh_gguf_put(m, m->form->share_key, "rope.dimension_count", json_integer(turning));
        return 0;
    }
    if (!(m->form->traits & SH_GGUF_SHARE) || turning > m->d_head)
        return sh_gguf_cannot(m, "rope.dimension_count", "the head width");
    sh_gguf_put(m, m->form->share_key, "rope.dimension_count", json_real(turning_share(m, turning)));
    return 0;
}

static int put_local_base(struct sh_gguf_maker *m)
{
    const char *name = sh_gguf_has(m, "rope.freq_base_swa") ? "rope.freq_base_swa" : "rope.local.freq_base";
    double base = 10000;
    if (m->form->traits & SH_GGUF_ROPES)        /* put_ropes does it                              */
        return 0;
    if (sh_gguf_has(m, name) && !(m->form->traits & SH_GGUF_LOCAL_BASE))
        return sh_gguf_cannot(m, name, "no such key for this family");
    if (sh_gguf_number(m, name, &base))
        return -1;
    if (m->form->traits & SH_GGUF_LOCAL_BASE)
        sh_gguf_put(m, "rope_local_base_freq", name, json_real(base));
    return 0;
}

static int put_shares(struct sh_gguf_maker *m, int64_t turning, json_t *whole, json_t *local)
{
    int64_t turning_too = turning, half = m->form->traits & SH_GGUF_HALF_TURNS ? turning / 2 : turning;
    if (sh_gguf_count(m, "rope.dimension_count_swa", &turning_too))
        return -1;
    if (turning_too > m->d_head || half > m->d_head || half < 2 || turning_too < 2)
        return sh_gguf_cannot(m, half < 2 || half > m->d_head ? "rope.dimension_count" : "rope.dimension_count_swa",
                              "at most the head width, and at least one pair");
    json_object_set_new(whole, "partial_rotary_factor", json_real(turning_share(m, half)));
    json_object_set_new(local, "partial_rotary_factor", json_real(turning_share(m, turning_too)));
    return 0;
}

/* Layers with a window rotate without scaling. */
static int put_ropes(struct sh_gguf_maker *m, double base, int64_t turning)
{
    double own = m->form->local_base ? m->form->local_base : base;
    if (sh_gguf_number(m, "rope.freq_base_swa", &own))
        return -1;
    json_t *scaling = json_object_get(m->root, "rope_scaling");
    json_t *whole = scaling ? json_copy(scaling) : json_pack("{s:s}", "rope_type", "default");
    json_object_set_new(whole, "rope_theta", json_real(base));
    json_t *local = json_pack("{s:s, s:f}", "rope_type", "default", "rope_theta", own);
    json_object_del(m->root, "rope_scaling");
    sh_gguf_put(m, "rope_parameters", "rope.freq_base",
                json_pack("{s:o, s:o}", "full_attention", whole, "sliding_attention", local));
    return m->form->traits & SH_GGUF_SHARE ? put_shares(m, turning, whole, local) : 0;
}

/* Sections of a picture's positions: a text has the same in the first three and, in most families, none in the
 * fourth. */
static int check_sections(struct sh_gguf_maker *m)
{
    static const char name[] = "rope.dimension_sections";
    const struct sh_gguf_value *v = sh_gguf_find(m->g, sh_gguf_key(m, name));
    if (!v)
        return 0;
    if (v->kind != SH_GGUF_ARRAY || !sh_gguf_is_whole(v->item))
        return sh_gguf_cannot(m, name, "a list of whole numbers");
    int still = v->n > 3 && sh_gguf_whole_at(v, 3) && !(m->form->traits & SH_GGUF_FOUR_SECTIONS);
    return still ? sh_gguf_cannot(m, name, "0 as the fourth number") : 0;
}

int sh_gguf_put_rope(struct sh_gguf_maker *m)
{
    const struct sh_stored *factors = sh_weights_find(m->w, "rope_freqs.weight");
    const char *name = sh_gguf_has(m, "rope.freq_base") ? "rope.freq_base" : "rope.global.freq_base";
    double base = 10000;
    int64_t turning = m->d_head;
    if (!(m->form->traits & SH_GGUF_ROTARY))
        return 0;
    if (m->form->traits & SH_GGUF_BY_LAYER)
        return sh_gguf_put_two_ropes(m);
    if (check_sections(m) || sh_gguf_number(m, name, &base) || sh_gguf_count(m, "rope.dimension_count", &turning) ||
        put_share(m, turning) || put_local_base(m) || put_scaling(m))
        return -1;
    if (!(base > 1) || base > 1e12)
        return sh_gguf_cannot(m, name, "a number above 1");
    if (factors && put_factors(m, factors, base, turning))
        return -1;
    if (m->form->traits & SH_GGUF_ROPES)
        return put_ropes(m, base, turning);
    sh_gguf_put(m, m->form->base_key, name, json_real(base));
    return sh_gguf_is_long(m) ? put_long(m, turning) : 0;
}
