/* SPDX-License-Identifier: Apache-2.0 */
/* See output_error.h. */
#include "planner/replay/output_error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/policy/vectors.h"
#include "src/base/mem.h"

struct sh_output_error {
    int n_token, group, d_head;
    const float *v;
    float *score;                       /* [group][n_token], by position, keys not seen 0 */
    float *out;                         /* [group][d_head], of the full row */
    float *kept;                        /* [d_head] */
};

struct sh_output_error *sh_output_error_new(int n_token, int group, int d_head, const float *v)
{
    struct sh_output_error *o = xcalloc(1, sizeof *o);
    o->n_token = n_token;
    o->group = group;
    o->d_head = d_head;
    o->v = v;
    o->score = xcalloc((size_t)group * (size_t)n_token + ((size_t)group + 1) * (size_t)d_head, sizeof *o->score);
    o->out = o->score + (size_t)group * (size_t)n_token;
    o->kept = o->out + (size_t)group * (size_t)d_head;
    return o;
}

void sh_output_error_free(struct sh_output_error *o)
{
    if (o)
        free(o->score);                 /* and what follows it */
    free(o);
}

void sh_output_error_row(struct sh_output_error *o, int t, int first_key, const float *const *row)
{
    for (int g = 0; g < o->group; g++) {
        float *score = o->score + (size_t)g * (size_t)o->n_token, *out = o->out + g * o->d_head;
        double mass = 0;
        memset(score, 0, (size_t)first_key * sizeof *score);
        memcpy(score + first_key, row[g], (size_t)(t + 1 - first_key) * sizeof *score);
        memset(out, 0, (size_t)o->d_head * sizeof *out);
        for (int j = first_key; j <= t; j++) {
            sh_add_scaled(out, o->v + (size_t)j * (size_t)o->d_head, score[j], o->d_head);
            mass += (double)score[j];
        }
        for (int i = 0; i < o->d_head; i++)
            out[i] = (float)((double)out[i] / mass);
    }
}

double sh_output_error_of(const struct sh_output_error *o, const int *pos, int n)
{
    double error = 0;
    for (int g = 0; g < o->group; g++) {
        const float *score = o->score + (size_t)g * (size_t)o->n_token, *out = o->out + g * o->d_head;
        double mass = 0, off = 0, norm = 0;
        memset(o->kept, 0, (size_t)o->d_head * sizeof *o->kept);
        for (int i = 0; i < n; i++) {
            if (pos[i] < 0)
                continue;
            sh_add_scaled(o->kept, o->v + (size_t)pos[i] * (size_t)o->d_head, score[pos[i]], o->d_head);
            mass += (double)score[pos[i]];
        }
        for (int i = 0; i < o->d_head; i++) {
            double d = (double)o->kept[i] / mass - (double)out[i];
            off += d * d;
            norm += (double)out[i] * (double)out[i];
        }
        error += mass > 0 && norm > 0 ? sqrt(off / norm) : (double)NAN;
    }
    return error / o->group;
}
