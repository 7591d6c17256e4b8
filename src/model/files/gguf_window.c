/* SPDX-License-Identifier: Apache-2.0 */
/* Windows, caps and the scale of scores in GGUF metadata (gguf_maker.h). */
#include <math.h>
#include <string.h>

#include "src/model/files/gguf_maker.h"

enum { MOST_LAYERS = 10000 };

/* ---- windows ---- */

/* Which layers have the window: each but every period-th, or as a list of flags says. */
static int put_layers(struct sh_gguf_maker *m)
{
    static const char name[] = "attention.sliding_window_pattern";
    const struct sh_gguf_value *v = sh_gguf_find(m->g, sh_gguf_key(m, name));
    int64_t period = m->form->period;
    int is_list = v && v->kind == SH_GGUF_ARRAY;
    if (is_list && (v->n < (size_t)m->n_layer || (v->item != SH_GGUF_BOOL && !sh_gguf_is_whole(v->item))))
        return sh_gguf_cannot(m, name, "a number, or one true or false for each layer");
    if (!is_list && sh_gguf_count(m, name, &period))
        return -1;
    json_t *types = json_array();
    for (int64_t i = 0; i < m->n_layer && i < MOST_LAYERS; i++) {
        int is_local = is_list ? sh_gguf_whole_at(v, (size_t)i) != 0 : period > 0 && (i + 1) % period != 0;
        json_array_append_new(types, json_string(is_local ? "sliding_attention" : "full_attention"));
    }
    sh_gguf_put(m, "layer_types", name, types);
    return 0;
}

int sh_gguf_put_windows(struct sh_gguf_maker *m)
{
    static const char name[] = "attention.sliding_window";
    int64_t n = m->form->window;
    if (sh_gguf_count(m, name, &n))
        return -1;
    if (n && !(m->form->traits & (SH_GGUF_WINDOW | SH_GGUF_CAPS)))
        return sh_gguf_cannot(m, name, "0: the file does not give the rules of this family's windows");
    if (!(m->form->traits & SH_GGUF_CAPS) && sh_gguf_has(m, "attention.sliding_window_pattern"))
        return sh_gguf_cannot(m, "attention.sliding_window_pattern", "no such key for this family");
    sh_gguf_put(m, "sliding_window", name, n ? json_integer(n) : json_null());
    /* Files of Mistral say that they are of LLaMA, which has no windows. */
    if (n && m->form->windowed_type)
        json_object_set_new(m->root, "model_type", json_string(m->form->windowed_type));
    return m->form->traits & SH_GGUF_CAPS ? put_layers(m) : 0;
}

/* ---- scores ---- */

static int put_cap(struct sh_gguf_maker *m, const char *name, double usual)
{
    double cap = m->form->traits & SH_GGUF_CAPS ? usual : 0;
    if (sh_gguf_number(m, name, &cap))
        return -1;
    if (cap != 0 && !(m->form->traits & SH_GGUF_CAPS))
        return sh_gguf_cannot(m, name, "0 for this family");
    if (m->form->traits & SH_GGUF_CAPS)
        sh_gguf_put(m, name, name, cap != 0 ? json_real(cap) : json_null());
    return 0;
}

/* Gemma's scale follows from the width of a head, of its largest models from the model's width: no key used
 * to say so. */
static int put_scale(struct sh_gguf_maker *m)
{
    double usual = m->d_head ? 1 / sqrt((double)m->d_head) : 0, scale = usual;
    if (m->form->traits & SH_GGUF_CAPS && m->n_layer == m->form->large && m->n_head)
        scale = 1 / sqrt((double)m->d_model / (double)m->n_head);
    if (sh_gguf_number(m, "attention.scale", &scale))
        return -1;
    if (!(scale > 0) && m->d_head)
        return sh_gguf_cannot(m, "attention.scale", "a number greater than 0");
    if (m->form->traits & SH_GGUF_CAPS)
        sh_gguf_put(m, "query_pre_attn_scalar", "attention.scale", json_real(1 / (scale * scale)));
    else if (fabs(scale - usual) > 1e-6 * usual)
        return sh_gguf_cannot(m, "attention.scale", "1 / sqrt(head width) for this family");
    return 0;
}

int sh_gguf_put_scores(struct sh_gguf_maker *m)
{
    return put_cap(m, "attn_logit_softcapping", m->form->cap) ||
           put_cap(m, "final_logit_softcapping", m->form->head_cap) || put_scale(m) ? -1 : 0;
}
