/* SPDX-License-Identifier: Apache-2.0 */
/* Scalars are computed in double and rounded once, like Python's scalars when they are combined with an f32 tensor;
 * numbers that are elements of a tensor in transformers are f32 here. */
#include "src/model/layers/rope.h"

#include <math.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/base/team.h"

#define PI 3.14159265358979323846

int sh_rope_length(const struct sh_rope *r, int n_tokens)
{
    if (n_tokens <= r->original)
        return r->original;
    return r->kind == SH_ROPE_DYNAMIC ? n_tokens : r->kind == SH_ROPE_LONG ? r->original + 1 : r->original;
}

static float llama3(const struct sh_rope *r, float f)
{
    float wave = (float)(2 * PI) / f;
    double longest = (double)r->original / (double)r->low, shortest = (double)r->original / (double)r->high;
    if (wave < (float)shortest)
        return f;
    if (wave > (float)longest)
        return f / r->factor;
    if (!(r->high > r->low))            /* both bounds are one, which this is                     */
        return f;
    float share = ((float)r->original / wave - r->low) / (r->high - r->low);
    return (1 - share) * f / r->factor + share * f;
}

/* The element (of n_rot) whose frequency makes so many turns within the original length. */
static double element_of(const struct sh_rope *r, int n_rot, double turns)
{
    return n_rot * log(r->original / (turns * 2 * PI)) / (2 * log((double)r->base));
}

static void yarn(const struct sh_rope *r, int n_rot, float *f)
{
    double from = element_of(r, n_rot, (double)r->fast), to = element_of(r, n_rot, (double)r->slow);
    from = fmax(r->is_rough ? floor(from) : from, 0);
    to = fmin(r->is_rough ? ceil(to) : to, n_rot - 1);
    if (from == to)
        to += 0.001;
    for (int i = 0; i < n_rot / 2; i++) {
        float ramp = ((float)i - (float)from) / (float)(to - from);
        float kept = 1 - fminf(fmaxf(ramp, 0), 1);
        float turns = powf(r->base, (float)(2 * i) / (float)n_rot);
        f[i] = 1 / (r->factor * turns) * (1 - kept) + 1 / turns * kept;
    }
}

void sh_rope_frequencies(const struct sh_rope *r, int n_rot, int length, float *out)
{
    double base = (double)r->base, factor = (double)r->factor;
    if (r->kind == SH_ROPE_DYNAMIC)
        base *= pow(factor * length / r->original - (factor - 1), (double)n_rot / (n_rot - 2));
    for (int i = 0; i < n_rot / 2; i++) {
        out[i] = 1.0f / powf((float)base, (float)(2 * i) / (float)n_rot);
        if (r->kind == SH_ROPE_PROPORTIONAL && i >= r->pairs)
            out[i] = 0;
        if (r->kind == SH_ROPE_LINEAR || r->kind == SH_ROPE_PROPORTIONAL)
            out[i] /= r->factor;
        if (r->kind == SH_ROPE_LLAMA3)
            out[i] = llama3(r, out[i]);
        if (r->kind == SH_ROPE_LONG)
            out[i] = 1.0f / (r->stretch[length > r->original][i] * powf(r->base, (float)(2 * i) / (float)n_rot));
    }
    if (r->kind == SH_ROPE_YARN)
        yarn(r, n_rot, out);
    for (int i = 0; i < n_rot / 2 && r->is_learned; i++)
        out[i] *= expf(r->power[i]);
}

struct table {
    const float *frequency;
    int half, first;
    float by, by_sine, *cosine, *sine;
};

static void table_row(void *arg, int t)
{
    const struct table *a = arg;
    for (int i = 0; i < a->half; i++) {
        size_t at = (size_t)t * (size_t)a->half + (size_t)i;
        a->cosine[at] = cosf((float)(a->first + t) * a->frequency[i]) * a->by;
        a->sine[at] = sinf((float)(a->first + t) * a->frequency[i]) * a->by_sine;
    }
}

void sh_rope_table(const struct sh_rope *r, int n_rot, int length, int first, int n, float *cosine, float *sine)
{
    int half = n_rot / 2;
    float *f = xcalloc((size_t)half, sizeof *f);
    float by = r->kind == SH_ROPE_YARN || r->kind == SH_ROPE_LONG ? r->attention : 1;
    if (r->kind == SH_ROPE_LONG && length > r->original && r->long_attention > 0)
        by = r->long_attention;
    sh_rope_frequencies(r, n_rot, length, f);
    struct table t = {f, half, first, by, r->is_backward ? -by : by, cosine, sine};
    sh_team_each(n > 1024 ? 0 : 1, n, table_row, &t);
    free(f);
}

double sh_rope_sharpening(double factor, double weight)
{
    return factor <= 1 ? 1 : 0.1 * weight * log(factor) + 1;
}

double sh_rope_long_attention(double factor, int original)
{
    return factor <= 1 ? 1 : sqrt(1 + log(factor) / log(original));
}
