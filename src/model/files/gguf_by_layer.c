/* SPDX-License-Identifier: Apache-2.0 */
/* What GGUF metadata say of layers with a window and of those without one where the two differ (gguf_config.h): widths
 * of heads, KV heads and rotation of Gemma 4; and lists with a number of heads or a width for each layer. */
#include <stdio.h>
#include <string.h>

#include "src/model/files/gguf_config.h"

static const char pattern[] = "attention.sliding_window_pattern";

static const struct sh_gguf_value *list_of(struct sh_gguf_maker *m, const char *name)
{
    const struct sh_gguf_value *v = sh_gguf_find(m->g, sh_gguf_key(m, name));
    return v && v->kind == SH_GGUF_ARRAY ? v : NULL;
}

/* A number of layers with a window (or of those without); *out is unchanged if there are none. */
static int number_of(struct sh_gguf_maker *m, const char *name, int windowed, int64_t *out)
{
    const struct sh_gguf_value *v = list_of(m, name), *local = list_of(m, pattern);
    int64_t found = -1;
    if (!v)
        return sh_gguf_count(m, name, out);
    if (v->n < (size_t)m->n_layer || !sh_gguf_is_whole(v->item))
        return sh_gguf_cannot(m, name, "a whole number for each layer");
    for (size_t i = 0; i < (size_t)m->n_layer; i++) {
        int64_t n = sh_gguf_whole_at(v, i);
        if ((sh_gguf_whole_at(local, i) != 0) != windowed)
            continue;
        if (n < 0 || n > INT32_MAX || (found >= 0 && n != found))
            return sh_gguf_cannot(m, name, "one number for all layers with a window, and one for all others");
        found = n;
    }
    *out = found >= 0 ? found : *out;
    return 0;
}

/* Widths of queries, keys and values are the same within a layer. */
static int put_width(struct sh_gguf_maker *m, const char *name, const char *values, const char *hub, int64_t *width)
{
    int64_t same = 0;
    if (sh_gguf_count(m, name, width) || sh_gguf_count(m, values, &same))
        return -1;
    if (*width < 2)
        return sh_gguf_cannot(m, name, "the width of a head");
    if (same != *width)
        return sh_gguf_cannot(m, values, "the same as the width of keys");
    sh_gguf_put(m, hub, name, json_integer(*width));
    return 0;
}

/* Do the layers without a window use their keys as values? The first of them is never one that borrows. */
static int keys_are_values(struct sh_gguf_maker *m)
{
    const struct sh_gguf_value *local = list_of(m, pattern);
    for (size_t i = 0; i < (size_t)m->n_layer; i++)
        if (!sh_gguf_whole_at(local, i)) {
            char name[48];
            snprintf(name, sizeof name, "blk.%zu.attn_v.weight", i);
            return !sh_weights_find(m->w, name);
        }
    return 0;
}

/* The last layers, which borrow, may have feed-forward blocks of twice the width. */
static int put_feed(struct sh_gguf_maker *m)
{
    static const char name[] = "feed_forward_length";
    const struct sh_gguf_value *v = list_of(m, name);
    int64_t borrow = 0, n = 0;
    if (sh_gguf_count(m, "attention.shared_kv_layers", &borrow))
        return -1;
    if (!v && sh_gguf_count(m, name, &n))
        return -1;
    if (v && (v->n < (size_t)m->n_layer || !sh_gguf_is_whole(v->item)))
        return sh_gguf_cannot(m, name, "a whole number for each layer");
    n = v ? sh_gguf_whole_at(v, 0) : n;
    int64_t last = v ? sh_gguf_whole_at(v, (size_t)m->n_layer - 1) : n;
    for (int64_t i = 0; v && i < m->n_layer; i++)
        if (sh_gguf_whole_at(v, (size_t)i) != (i < m->n_layer - borrow ? n : last))
            return sh_gguf_cannot(m, name, "one number for all layers that borrow, and one for all others");
    if (n < 1 || n > INT32_MAX / 2 || (last != n && last != 2 * n))
        return sh_gguf_cannot(m, name, "a number from 1 on, or its double where layers borrow");
    sh_gguf_put(m, "intermediate_size", name, json_integer(n));
    sh_gguf_put(m, "use_double_wide_mlp", name, json_boolean(last != n));
    return 0;
}

int sh_gguf_put_two_heads(struct sh_gguf_maker *m)
{
    static const char heads[] = "attention.head_count_kv";
    const struct sh_gguf_value *local = list_of(m, pattern);
    int64_t width = 0, few = 0, all = 0;
    if (!local || local->n < (size_t)m->n_layer || (local->item != SH_GGUF_BOOL && !sh_gguf_is_whole(local->item)))
        return sh_gguf_cannot(m, pattern, "one true or false for each layer");
    if (put_width(m, "attention.key_length_swa", "attention.value_length_swa", "head_dim", &width) ||
        put_width(m, "attention.key_length", "attention.value_length", "global_head_dim", &m->d_head) ||
        number_of(m, heads, 1, &few) || number_of(m, heads, 0, &all) || put_feed(m))
        return -1;
    m->local_head = width;
    sh_gguf_put(m, "num_key_value_heads", heads, json_integer(few ? few : all));
    if (all)
        sh_gguf_put(m, "num_global_key_value_heads", heads, json_integer(all));
    sh_gguf_put(m, "attention_k_eq_v", NULL, json_boolean(keys_are_values(m)));
    return 0;
}

static const struct { const char *name, *hub; } uneven[] = {
    {"attention.head_count", "num_attention_heads_per_layer"},
    {"attention.head_count_kv", "num_key_value_heads_per_layer"},
    {"feed_forward_length", "intermediate_size_per_layer"}};

int sh_gguf_is_uneven(const struct sh_gguf_maker *m, const char *name)
{
    for (size_t i = 0; i < sizeof uneven / sizeof *uneven && m->form->traits & SH_GGUF_UNEVEN; i++)
        if (!strcmp(name, uneven[i].name))
            return 1;
    return 0;
}

int sh_gguf_put_uneven(struct sh_gguf_maker *m)
{
    for (size_t k = 0; k < sizeof uneven / sizeof *uneven && m->form->traits & SH_GGUF_UNEVEN; k++) {
        const struct sh_gguf_value *v = list_of(m, uneven[k].name);
        int differs = 0;
        if (!v)
            continue;
        if (v->n < (size_t)m->n_layer || m->n_layer > SH_GGUF_MOST_LAYERS || !sh_gguf_is_whole(v->item))
            return sh_gguf_cannot(m, uneven[k].name, "a whole number for each layer");
        json_t *list = json_array();
        for (size_t i = 0; i < (size_t)m->n_layer; i++) {
            differs |= sh_gguf_whole_at(v, i) != sh_gguf_whole_at(v, 0);
            json_array_append_new(list, json_integer(sh_gguf_whole_at(v, i)));
        }
        if (differs)
            sh_gguf_put(m, uneven[k].hub, uneven[k].name, list);
        else
            json_decref(list);
    }
    return 0;
}

int sh_gguf_put_kv_by_kind(struct sh_gguf_maker *m)
{
    static const char heads[] = "attention.head_count_kv";
    const struct sh_gguf_value *local = list_of(m, pattern);
    int64_t few = 0, all = 0;
    int windowed = 0;
    if (!local || local->n < (size_t)m->n_layer || (local->item != SH_GGUF_BOOL && !sh_gguf_is_whole(local->item)))
        return sh_gguf_cannot(m, pattern, "one true or false for each layer");
    if (number_of(m, heads, 1, &all) || number_of(m, heads, 0, &few))
        return -1;
    for (size_t i = 0; i < (size_t)m->n_layer; i++)
        windowed += sh_gguf_whole_at(local, i) != 0;
    few = windowed == m->n_layer ? all / 2 : few;
    if (few < 1 || (windowed && all != 2 * few))
        return sh_gguf_cannot(m, heads, "twice as many in layers with a window as in others");
    sh_gguf_put(m, "num_key_value_heads", heads, json_integer(few));
    return 0;
}

/* Pairs that do not turn have a frequency that is divided by more than any text is long. */
static int share_that_turns(struct sh_gguf_maker *m, double *share)
{
    const struct sh_stored *t = sh_weights_find(m->w, "rope_freqs.weight");
    size_t turn = 0, n = (size_t)m->d_head / 2;
    *share = 1;
    if (!t)
        return 0;
    if (strcmp(t->dtype, "F32") || t->rank != 1 || t->shape[0] != n)
        return sh_fail(m->e, "%s: tensor '%s': expected F32 of shape [%zu], one number for each rotary pair of a head "
                       "of the layers without a window", t->file, t->name, n);
    for (size_t i = 0; i < n; i++) {
        float by;
        memcpy(&by, t->at + 4 * i, sizeof by);
        int turns = by >= 1 && by <= 1, stands = by >= 1e20f;
        if (!(turns && turn == i) && !stands)
            return sh_fail(m->e, "%s: tensor '%s': found %g, expected 1 for each pair that turns, and 1e20 or more for "
                           "all after them", t->file, t->name, (double)by);
        turn += (size_t)turns;
    }
    *share = (double)turn / (double)n;
    return 0;
}

static int check_turns(struct sh_gguf_maker *m, const char *name, int64_t width)
{
    int64_t turning = width;
    if (sh_gguf_count(m, name, &turning))
        return -1;
    return turning == width ? 0 : sh_gguf_cannot(m, name, "the head width");
}

int sh_gguf_put_two_ropes(struct sh_gguf_maker *m)
{
    double base = 10000, local_base = 10000, share;
    if (sh_gguf_number(m, "rope.freq_base", &base) || sh_gguf_number(m, "rope.freq_base_swa", &local_base) ||
        check_turns(m, "rope.dimension_count", m->d_head) ||
        check_turns(m, "rope.dimension_count_swa", m->local_head) || share_that_turns(m, &share))
        return -1;
    if (sh_gguf_has(m, "rope.scaling.type") || sh_gguf_has(m, "rope.scaling.factor"))
        return sh_gguf_cannot(m, sh_gguf_has(m, "rope.scaling.type") ? "rope.scaling.type" : "rope.scaling.factor",
                              "no scaling for this family");
    sh_gguf_put(m, "rope_parameters", "rope.freq_base",
                json_pack("{s:{s:s, s:f, s:f}, s:{s:s, s:f}}", "full_attention", "rope_type", "proportional",
                          "rope_theta", base, "partial_rotary_factor", share, "sliding_attention", "rope_type",
                          "default", "rope_theta", local_base));
    return 0;
}
