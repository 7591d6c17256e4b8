/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors of a layer (layer.h), on the device and on the host. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/layers/layer_parts.h"

static int find(struct sh_model *m, enum sh_role role, int layer, struct sh_tensor *t, struct sh_err *e)
{
    return sh_model_tensor(m, role, layer, t, e) || sh_model_check_finite(t, e) ? -1 : 0;
}

/* By which a vector is multiplied as it is read: biases, where what they are added to has its factor elsewhere; norms
 * of latents that have one; of streams that are divided by their number. */
static float vector_factor(const struct sh_arch *c, enum sh_role role)
{
    float by = 1;
    if (role == SH_Q_B || role == SH_K_B || role == SH_V_B || role == SH_O_B)
        by = c->attention_bias_scale;
    else if (role == SH_KV_A_NORM_W)
        by = c->latent.by;
    else if (role == SH_MIXER_ATTN_NORM_W || role == SH_MIXER_MLP_NORM_W || role == SH_MIXER_HEAD_NORM_W)
        by = 1 / (float)c->streams.n;
    else if (role == SH_RECUR_X_B || role == SH_RECUR_Z_B || role == SH_RECUR_A_B)
        by = c->recurrent_bias_scale;
    return by > 0 ? by : 1;
}

int sh_layer_vector(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, enum sh_role role, int layer,
                    float **out, struct sh_err *e)
{
    int less_one = sh_role_is_less_one(role, sh_model_arch(m)), many = sh_model_count(m, role);
    struct sh_tensor t = {0};
    float *host = NULL, by = vector_factor(sh_model_arch(m), role);
    size_t n = 0;
    *out = NULL;
    for (int i = 0; i < many; i++) {
        if (sh_model_numbered(m, role, layer, i, &t, e) || sh_model_check_finite(&t, e)) {
            free(host);
            return -1;
        }
        n = (size_t)t.rows * (size_t)t.cols;
        if (!host && n)
            host = xmalloc((size_t)many * n * sizeof *host);
        for (size_t k = 0; k < n; k++)
            host[(size_t)i * n + k] = by * (sh_tensor_element(&t, k) + (less_one ? 1 : 0));
        for (size_t k = 0; k < n && role == SH_RECUR_LOG_A && sh_model_is_gguf(m); k++) {
            float *x = &host[(size_t)i * n + k];                            /* GGUF has -exp of it, bounded ones exp */
            float sign = sh_model_arch(m)->recurrent.decay_bound < 0 ? 1 : -1;
            if (sign * *x < 0) {
                sh_fail(e, "tensor '%s': found %g, expected no number %s 0", t.name, (double)*x,
                        sign < 0 ? "above" : "below");
                free(host);
                return -1;
            }
            *x = logf(sign * *x);
        }
    }
    if (!host)
        return 0;
    *out = b->vector(d, host, (size_t)many * n, e);
    free(host);
    return *out ? 0 : -1;
}

int sh_layer_read(struct sh_layer *l, struct sh_model *m, enum sh_role role, float **out, struct sh_err *e)
{
    struct sh_tensor t;
    *out = NULL;
    if (find(m, role, l->index, &t, e))
        return -1;
    size_t n = (size_t)t.rows * (size_t)t.cols;
    *out = t.at ? xmalloc(n * sizeof **out) : NULL;
    for (size_t i = 0; i < n && t.at; i++)
        (*out)[i] = sh_tensor_element(&t, i);
    return 0;
}

/* xIELU's numbers, of which two are stored before their softplus; others are the architecture's. */
int sh_layer_read_knobs(struct sh_layer *l, struct sh_model *m, struct sh_err *e)
{
    memcpy(l->knob, sh_model_arch(m)->knob, sizeof sh_model_arch(m)->knob);
    static const enum sh_role roles[] = {SH_ACT_AP, SH_ACT_AN, SH_ACT_BETA, SH_ACT_EPS};
    for (int i = 0; i < 4 && sh_model_arch(m)->act == SH_ACT_XIELU; i++) {
        struct sh_tensor t;
        if (find(m, roles[i], l->index, &t, e))
            return -1;
        float x = sh_tensor_element(&t, 0);
        l->knob[i] = i < 2 ? log1pf(expf(x)) : x;
    }
    l->knob[1] += l->knob[2];
    return 0;
}
