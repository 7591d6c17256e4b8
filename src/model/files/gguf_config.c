/* SPDX-License-Identifier: Apache-2.0 */
/* See gguf_config.h. Keys and their defaults are those of llama.cpp (gguf-py's constants.py, the loaders of
 * its architectures). */
#include "src/model/files/gguf_config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

/* ---- what gguf_rope.c and gguf_by_layer.c use, too ---- */

const char *sh_gguf_key(struct sh_gguf_maker *m, const char *name)
{
    snprintf(m->key, sizeof m->key, "%s.%s", m->arch, name);
    return m->key;
}

int sh_gguf_has(struct sh_gguf_maker *m, const char *name)
{
    return sh_gguf_find(m->g, sh_gguf_key(m, name)) != NULL;
}

void sh_gguf_put(struct sh_gguf_maker *m, const char *hub, const char *name, json_t *value)
{
    const char *dot = strchr(hub, '.');
    char outer[64];
    json_t *to = m->root;
    if (dot) {
        snprintf(outer, sizeof outer, "%.*s", (int)(dot - hub), hub);
        if (!json_object_get(to, outer))
            json_object_set_new(to, outer, json_object());
        to = json_object_get(to, outer);
    }
    json_object_set_new(to, dot ? dot + 1 : hub, value);
    if (name)
        json_object_set_new(m->names, hub, json_string(sh_gguf_key(m, name)));
}

int sh_gguf_cannot(struct sh_gguf_maker *m, const char *name, const char *expected)
{
    return sh_gguf_refuse(m->g, sh_gguf_key(m, name), expected, m->e);
}

/* The numbers of a list that are of layers which run: those of layers that predict further tokens follow. */
static size_t running(struct sh_gguf_maker *m, size_t n)
{
    int64_t layers = 0, more = 0;
    struct sh_err ignored;
    sh_gguf_whole(m->g, sh_gguf_key(m, "block_count"), 0, INT32_MAX, &layers, &ignored);
    sh_gguf_whole(m->g, sh_gguf_key(m, "nextn_predict_layers"), 0, INT32_MAX, &more, &ignored);
    return layers > more && (size_t)(layers - more) < n ? (size_t)(layers - more) : n;
}

int sh_gguf_count(struct sh_gguf_maker *m, const char *name, int64_t *out)
{
    const struct sh_gguf_value *v = sh_gguf_find(m->g, sh_gguf_key(m, name));
    if (!v || v->kind != SH_GGUF_ARRAY)
        return sh_gguf_whole(m->g, m->key, 0, INT32_MAX, out, m->e);
    if (!v->n || !sh_gguf_is_whole(v->item))
        return sh_gguf_cannot(m, name, "a whole number");
    int64_t most = 0;
    size_t n_uneven = sh_gguf_is_uneven(m, name) ? running(m, v->n) : 0;
    for (size_t i = 0; i < n_uneven; i++) {
        int64_t n = sh_gguf_whole_at(v, i);
        if (n < 0 || n > INT32_MAX)
            return sh_gguf_cannot(m, name, "whole numbers from 0 on");
        most = n > most ? n : most;
    }
    if (most) {
        *out = most;
        return 0;
    }
    size_t first = 0;
    int skips = (m->form->traits & SH_GGUF_SPARSE) != 0;
    while (skips && first + 1 < v->n && !sh_gguf_whole_at(v, first))
        first++;
    for (size_t i = 0; i < v->n; i++)
        if ((sh_gguf_whole_at(v, i) != sh_gguf_whole_at(v, first) && !(skips && !sh_gguf_whole_at(v, i))) ||
            sh_gguf_whole_at(v, i) < 0)
            return sh_gguf_cannot(m, name, "the same number for all layers");
    *out = sh_gguf_whole_at(v, first);
    return 0;
}

int sh_gguf_number(struct sh_gguf_maker *m, const char *name, double *out)
{
    return sh_gguf_real(m->g, sh_gguf_key(m, name), out, m->e);
}

/* ---- heads, and what the tensors say ---- */

/* How DeepSeek's versions choose experts: from 3 on by a correction, before in groups or not. Youtu has none. */
static int put_choice(struct sh_gguf_maker *m)
{
    int64_t dense = 0;
    char name[48];
    if (sh_gguf_count(m, "leading_dense_block_count", &dense))
        return -1;
    snprintf(name, sizeof name, "blk.%lld.exp_probs_b.bias", (long long)dense);
    int corrects = sh_gguf_has_tensor(m, name), groups = json_object_get(m->root, "n_group") != NULL;
    int mixes = json_object_get(m->root, "n_routed_experts") != NULL;
    const char *type = !mixes ? "youtu" : corrects ? "deepseek_v3" : "deepseek_v2";
    json_object_set_new(m->root, "model_type", json_string(type));
    json_object_set_new(m->root, "topk_method",
                        json_string(corrects ? "noaux_tc" : groups ? "group_limited_greedy" : "greedy"));
    return 0;
}

/* Keys have the latent and rotary elements, values the latent; what they are made into has widths of its own. Files of
 * Kimi Linear give another width of values, which nothing has. */
static int put_latent(struct sh_gguf_maker *m, int64_t key, int64_t value)
{
    int64_t rank = 0, turning = 0, wide = 0, out = 0, one = 0;
    if (sh_gguf_count(m, "attention.kv_lora_rank", &rank) || sh_gguf_count(m, "rope.dimension_count", &turning) ||
        sh_gguf_count(m, "attention.head_count_kv", &one) ||
        sh_gguf_count(m, "attention.key_length_mla", &wide) || sh_gguf_count(m, "attention.value_length_mla", &out))
        return -1;
    if (!wide && (one != 1 || sh_gguf_has_tensor(m, "blk.0.attn_kv_b.weight"))) {
        wide = key;                     /* files with the whole product: the widths of what the latent is made into */
        out = value ? value : m->n_head && m->d_model % m->n_head == 0 ? m->d_model / m->n_head : 0;
    } else if (key != rank + turning || (value != rank && !(m->form->traits & SH_GGUF_SPARSE))) {
        return sh_gguf_cannot(m, "attention.key_length", "kv_lora_rank + rope.dimension_count");
    }
    if (wide <= turning)
        return sh_gguf_cannot(m, "attention.key_length_mla", "more than rope.dimension_count");
    m->d_head = turning;
    sh_gguf_put(m, "qk_rope_head_dim", "rope.dimension_count", json_integer(turning));
    sh_gguf_put(m, "qk_nope_head_dim", "attention.key_length_mla", json_integer(wide - turning));
    sh_gguf_put(m, "v_head_dim", "attention.value_length_mla", json_integer(out));
    return m->form->traits & SH_GGUF_VERSIONS ? put_choice(m) : 0;
}

/* Keys and values have the same width in nearly all other families that we know. */
static int put_head_width(struct sh_gguf_maker *m)
{
    int64_t key = 0, value = 0;
    if (sh_gguf_count(m, "embedding_length", &m->d_model) ||
        sh_gguf_count(m, "attention.head_count", &m->n_head) || sh_gguf_count(m, "attention.key_length", &key) ||
        sh_gguf_count(m, "attention.value_length", &value))
        return -1;
    if (m->form->traits & SH_GGUF_LATENT)
        return put_latent(m, key, value);
    if (m->form->traits & SH_GGUF_BY_LAYER)
        return sh_gguf_put_two_heads(m);
    int64_t usual = m->n_head && m->d_model % m->n_head == 0 ? m->d_model / m->n_head : 0;
    m->d_head = key ? key : usual;
    if (m->n_head && !m->d_head)
        return sh_gguf_cannot(m, "attention.head_count", "a divisor of embedding_length, unless key_length is given");
    if (m->form->traits & SH_GGUF_KV_BY_KIND) {
        sh_gguf_put(m, "v_head_dim", "attention.value_length", json_integer(value ? value : usual));
        if (sh_gguf_put_kv_by_kind(m))
            return -1;
    } else if ((value ? value : usual) != m->d_head)
        return sh_gguf_cannot(m, "attention.value_length", "the same as key_length");
    if (m->form->traits & SH_GGUF_HEAD)
        sh_gguf_put(m, "head_dim", key ? "attention.key_length" : "attention.head_count", json_integer(m->d_head));
    else if (key && key != usual)
        return sh_gguf_cannot(m, "attention.key_length", "embedding_length / head_count");
    return 0;
}

/* What no key says: the tensors do. */
static int put_from_tensors(struct sh_gguf_maker *m)
{
    const struct sh_stored *words = sh_weights_find(m->w, "token_embd.weight");
    int64_t n = m->form->traits & SH_GGUF_UNEVEN ? m->n_layer : 1;      /* where the first may lack the block */
    int out = sh_gguf_first(m, "blk.#.attn_output.bias", n) != NULL;
    int in = sh_gguf_first(m, "blk.#.attn_q.bias", n) || sh_gguf_first(m, "blk.#.attn_qkv.bias", n);
    if (!words || words->rank != 2)
        return sh_fail(m->e, "%s: tensor 'token_embd.weight' (the token embedding) is missing or not two-dimensional",
                       m->g->path);
    sh_gguf_put(m, "vocab_size", NULL, json_integer((json_int_t)(words->shape[0] < INT32_MAX ? words->shape[0]
                                                                                             : INT32_MAX)));
    sh_gguf_put(m, "tie_word_embeddings", NULL, json_boolean(!sh_gguf_has_tensor(m, "output.weight")));
    sh_gguf_put(m, "mlp_bias", NULL, json_boolean(sh_gguf_first(m, "blk.#.ffn_up.bias", n) != NULL));
    if (in == out)
        sh_gguf_put(m, "attention_bias", NULL, json_boolean(in));
    else if (!(m->form->traits & SH_GGUF_QKV_BIAS))
        return sh_fail(m->e, "%s: found biases for %s but not for %s, expected both or neither", m->g->path,
                       in ? "'attn_q'" : "'attn_output'", in ? "'attn_output'" : "'attn_q'");
    return 0;
}

/* ---- windows, caps and the scale of scores ---- */

/* Which layers have the window: each but every period-th, or as a list of flags says. */
static int put_layers(struct sh_gguf_maker *m)
{
    static const char name[] = "attention.sliding_window_pattern";
    const struct sh_gguf_value *v = sh_gguf_find(m->g, sh_gguf_key(m, name));
    int64_t period = m->form->period;
    int is_list = v && v->kind == SH_GGUF_ARRAY;
    unsigned by_kind = SH_GGUF_ROPES | SH_GGUF_SHARE;
    if (!v && !period)                  /* the family has a rule */
        return (m->form->traits & by_kind) == by_kind ? sh_gguf_cannot(m, name, "one true or false for each layer") : 0;
    if (is_list && (v->n < (size_t)m->n_layer || (v->item != SH_GGUF_BOOL && !sh_gguf_is_whole(v->item))))
        return sh_gguf_cannot(m, name, "a number, or one true or false for each layer");
    if (!is_list && sh_gguf_count(m, name, &period))
        return -1;
    json_t *types = json_array();
    int64_t each = period < 0 ? -period : period, at = m->form->period < 0 ? 0 : each - 1;
    for (int64_t i = 0; i < m->n_layer && i < SH_GGUF_MOST_LAYERS; i++) {
        int is_local = is_list ? sh_gguf_whole_at(v, (size_t)i) != 0 : !each || i % each != at;
        json_array_append_new(types, json_string(is_local ? "sliding_attention" : "full_attention"));
    }
    sh_gguf_put(m, "layer_types", name, types);
    return 0;
}

static int put_windows(struct sh_gguf_maker *m)
{
    static const char name[] = "attention.sliding_window";
    int64_t n = m->form->window;
    if (json_object_get(m->root, "attention_chunk_size"))   /* an item has taken it over */
        return 0;
    if (sh_gguf_count(m, name, &n))
        return -1;
    int listed = (m->form->traits & (SH_GGUF_CAPS | SH_GGUF_LAYERS)) != 0;
    if (n && !(m->form->traits & (SH_GGUF_WINDOW | SH_GGUF_CAPS)))
        return sh_gguf_cannot(m, name, "0: the file does not give the rules of this family's windows");
    if (!listed && sh_gguf_has(m, "attention.sliding_window_pattern"))
        return sh_gguf_cannot(m, "attention.sliding_window_pattern", "no such key for this family");
    sh_gguf_put(m, "sliding_window", name, n ? json_integer(n) : json_null());
    /* Files of Mistral say that they are of LLaMA, which has no windows. */
    if (n && m->form->windowed_type && !json_object_get(m->root, "num_local_experts"))
        json_object_set_new(m->root, "model_type", json_string(m->form->windowed_type));
    return listed && (n || m->form->traits & SH_GGUF_CAPS) ? put_layers(m) : 0;
}

static int put_cap(struct sh_gguf_maker *m, const char *name, double usual)
{
    double cap = m->form->traits & SH_GGUF_CAPS ? usual : 0;
    if (json_object_get(m->root, name))     /* an item has taken it over */
        return 0;
    if (sh_gguf_number(m, name, &cap))
        return -1;
    if (cap != 0 && !(m->form->traits & SH_GGUF_CAPS))
        return sh_gguf_cannot(m, name, "0 for this family");
    if (m->form->traits & SH_GGUF_CAPS)
        sh_gguf_put(m, name, name, cap != 0 ? json_real(cap) : json_null());
    return 0;
}

/* Gemma's scale follows from the width of a head or, in its largest models, from the model's; older files have no key
 * for it. */
static int put_scale(struct sh_gguf_maker *m)
{
    double usual = m->d_head ? 1 / sqrt((double)m->d_head) : 0, scale = usual;
    if (m->form->traits & SH_GGUF_SCALE)
        return m->form->traits & SH_GGUF_LATENT && sh_gguf_has(m, "attention.scale")
                   ? sh_gguf_cannot(m, "attention.scale", "no such key for this family") : 0;
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

/* ---- keys that would change what a model computes ----
 *
 * Of those of its architecture the ones about attention, rotation, experts and scales must be known; others (a chat
 * template, how pictures are cut) do not touch the layers. */

/* Read above, or in gguf_rope.c and gguf_by_layer.c. */
static const char *const read_keys[] = {
    "attention.head_count", "attention.head_count_kv", "attention.key_length", "attention.value_length",
    "attention.layer_norm_epsilon", "attention.layer_norm_rms_epsilon", "attention.scale", "attention.sliding_window",
    "attention.sliding_window_pattern", "attn_logit_softcapping", "final_logit_softcapping", "rope.dimension_count",
    "rope.dimension_sections", "rope.freq_base", "rope.freq_base_swa", "rope.global.freq_base", "rope.local.freq_base",
    "rope.scaling.type", "rope.scaling.factor", "rope.scale_linear", "rope.scaling.original_context_length",
    "rope.scaling.finetuned", "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow",
    "attention.key_length_mla", "attention.value_length_mla", NULL};
static const char *const by_layer_keys[] = {
    "attention.key_length_swa", "attention.value_length_swa", "rope.dimension_count_swa", NULL};

/* With this value they change nothing. */
static const struct neutral { const char *name; double value; } neutral[] = {
    {"expert_count", 0}, {"expert_used_count", 0}, {"expert_shared_count", 0}, {"expert_group_count", 1},
    {"expert_group_used_count", 1}, {"attention.clamp_kqv", 0}, {"attention.causal", 1},
    {"attention.recurrent_layer_count", 0}, {"residual_scale", 1}, {"embedding_scale", 1}, {"logit_scale", 1},
    {"rope.scaling.attn_factor", 1}, {"rope.scaling.yarn_attn_factor", 1}, {"rope.scaling.yarn_ext_factor", 1},
    {"rope.scaling.yarn_log_multiplier", 0}, {"expert_weights_scale", 1}, {NULL, 0}};

static int begins(struct sh_gguf_text text, const char *word)
{
    size_t n = strlen(word);
    return text.bytes >= n && !memcmp(text.at, word, n);
}

static int ends(struct sh_gguf_text text, const char *word)
{
    size_t n = strlen(word);
    return text.bytes >= n && !memcmp(text.at + text.bytes - n, word, n);
}

static int matters(struct sh_gguf_text name)
{
    return begins(name, "attention.") || begins(name, "rope.") || begins(name, "expert") || begins(name, "ssm.") ||
           begins(name, "attn_") || begins(name, "hidden_act") || begins(name, "swiglu") ||
           begins(name, "kda.") || ends(name, "_scale") || ends(name, "softcapping");
}

static int check_neutral(struct sh_gguf_maker *m, const struct sh_gguf_value *v, const struct neutral *n)
{
    char expected[40];
    if (v->kind == SH_GGUF_STRING || v->kind == SH_GGUF_ARRAY || sh_gguf_real_at(v, 0) != n->value) {
        snprintf(expected, sizeof expected, "%g", n->value);
        return sh_gguf_cannot(m, n->name, expected);
    }
    return 0;
}

static int check_key(struct sh_gguf_maker *m, const struct sh_gguf_value *v, struct sh_gguf_text name)
{
    char shown[100];
    for (const char *const *known = read_keys; *known; known++)
        if (sh_gguf_text_is(name, *known))
            return 0;
    unsigned by_kind = m->form->traits & (SH_GGUF_ROPES | SH_GGUF_SHARE);
    if (by_kind == (SH_GGUF_ROPES | SH_GGUF_SHARE) && sh_gguf_text_is(name, "rope.dimension_count_swa"))
        return 0;
    for (const char *const *known = by_layer_keys; *known && m->form->traits & SH_GGUF_BY_LAYER; known++)
        if (sh_gguf_text_is(name, *known))
            return 0;
    for (const struct sh_gguf_item *item = m->form->items; item->kind != SH_GGUF_COUNT || item->name; item++)
        if (item->name && item->kind != SH_GGUF_THERE && sh_gguf_text_is(name, item->name))
            return 0;
    if (sh_gguf_text_is(name, "rope.scaling.attn_factor") && sh_gguf_is_long(m))
        return 0;
    for (const struct neutral *n = neutral; n->name; n++)
        if (sh_gguf_text_is(name, n->name))
            return check_neutral(m, v, n);
    int is_alibi = (m->form->traits & SH_GGUF_ALIBI) != 0;
    if (sh_gguf_text_is(name, "attention.max_alibi_bias"))
        return check_neutral(m, v, &(struct neutral){"attention.max_alibi_bias", is_alibi ? 8 : 0});
    if (!matters(name))
        return 0;
    snprintf(shown, sizeof shown, "%.*s", (int)(name.bytes < sizeof shown ? name.bytes : sizeof shown - 1), name.at);
    return sh_fail(m->e, "%s: key '%s.%s' is not supported for this family: it would change what the model computes",
                   m->g->path, m->arch, shown);
}

static int check_keys(struct sh_gguf_maker *m)
{
    size_t skip = strlen(m->arch) + 1;
    for (size_t i = 0; i < m->g->n; i++) {
        const struct sh_gguf_value *v = &m->g->values[i];
        if (!begins(v->key, m->arch) || v->key.bytes <= skip || v->key.at[skip - 1] != '.')
            continue;
        if (check_key(m, v, (struct sh_gguf_text){v->key.at + skip, v->key.bytes - skip}))
            return -1;
    }
    return 0;
}

/* ---- the whole ---- */

/* Files of several families say that they are of one architecture. Layers that predict further tokens follow. */
static int put_types(struct sh_gguf_maker *m)
{
    int64_t experts = 0, more = 0, layers = 0;
    if (sh_gguf_count(m, "expert_count", &experts) || sh_gguf_count(m, "nextn_predict_layers", &more) ||
        sh_gguf_count(m, "block_count", &layers))
        return -1;
    if (experts && m->form->mixed_type)
        json_object_set_new(m->root, "model_type", json_string(m->form->mixed_type));
    if (more >= layers && more)
        return sh_gguf_cannot(m, "nextn_predict_layers", "fewer than block_count");
    m->n_layer = layers - more;
    if (more) {
        sh_gguf_put(m, "num_nextn_predict_layers", "nextn_predict_layers", json_integer(more));
        sh_gguf_put(m, "num_hidden_layers", "block_count", json_integer(layers - more));
    }
    return 0;
}

/* Without a key there are as many KV heads as heads, whatever the family's usual number is. */
static int put_kv_heads(struct sh_gguf_maker *m)
{
    static const char name[] = "attention.head_count_kv";
    int64_t heads = 0;
    if (sh_gguf_has(m, name) || m->form->traits & SH_GGUF_LATENT)
        return 0;
    if (sh_gguf_count(m, "attention.head_count", &heads))
        return -1;
    for (const struct sh_gguf_item *item = m->form->items; item->name || item->hub; item++)
        if (item->name && !strcmp(item->name, name))
            sh_gguf_put(m, item->hub, "attention.head_count", json_integer(heads));
    return 0;
}

static int take_over(struct sh_gguf_maker *m, const struct sh_gguf_item *items)
{
    for (; items->name || items->hub; items++)
        if (sh_gguf_put_item(m, items))
            return -1;
    return put_types(m) || sh_gguf_put_uneven(m) || put_kv_heads(m) || put_head_width(m) || put_from_tensors(m) ||
           sh_gguf_put_rope(m) || put_windows(m) || put_cap(m, "attn_logit_softcapping", m->form->cap) ||
           put_cap(m, "final_logit_softcapping", m->form->head_cap) || put_scale(m) || check_keys(m) ? -1 : 0;
}

/* Families may share a form. */
static int is_first(const struct sh_family *const *f)
{
    for (const struct sh_family *const *before = sh_families; before < f; before++)
        if ((*before)->gguf && !strcmp((*before)->gguf->arch, (*f)->gguf->arch))
            return 0;
    return 1;
}

static const struct sh_family *find_family(const struct sh_gguf *g, struct sh_err *e)
{
    struct sh_gguf_text arch = {NULL, 0}, type = {"model", 5};
    int64_t version = 2;
    if (sh_gguf_word(g, "general.architecture", &arch, e) || sh_gguf_word(g, "general.type", &type, e) ||
        sh_gguf_whole(g, "general.quantization_version", 2, 2, &version, e))
        return NULL;
    if (!sh_gguf_text_is(type, "model")) {
        sh_gguf_refuse(g, "general.type", "model", e);
        return NULL;
    }
    char expected[1000] = "one of";
    for (const struct sh_family *const *f = sh_families; *f; f++) {
        size_t used = strlen(expected);
        if (!(*f)->gguf)
            continue;
        if (arch.at && (sh_gguf_text_is(arch, (*f)->gguf->arch) ||
                        ((*f)->gguf->mixed_arch && sh_gguf_text_is(arch, (*f)->gguf->mixed_arch))))
            return *f;
        if (is_first(f))
            snprintf(expected + used, sizeof expected - used, " %s", (*f)->gguf->arch);
    }
    const char *why = arch.at ? sh_config_unplanned(arch.at, arch.bytes) : NULL;
    if (why)
        return sh_fail_null(e, "%s: key 'general.architecture': found \"%.*s\", %s; expected %s", g->path,
                            (int)arch.bytes, arch.at, why, SH_PLANNED);
    sh_gguf_refuse(g, "general.architecture", expected, e);
    return NULL;
}

/* For messages and people. */
static void put_name(struct sh_gguf_maker *m)
{
    struct sh_gguf_text name = {NULL, 0};
    struct sh_err ignored;
    sh_gguf_word(m->g, "general.name", &name, &ignored);
    json_t *text = name.bytes ? json_stringn(name.at, name.bytes) : NULL;   /* NULL: not UTF-8 */
    if (text && strlen(json_string_value(text)) == name.bytes)
        json_object_set(m->root, "_name_or_path", text);
    json_decref(text);
}

json_t *sh_gguf_config(const char *path, json_t **names, struct sh_err *e)
{
    struct sh_weights *w = sh_weights_open(path, e);
    const struct sh_gguf *g = w ? sh_weights_gguf(w) : NULL;
    const struct sh_family *f = g ? find_family(g, e) : NULL;
    if (!f) {
        sh_weights_close(w);
        return NULL;
    }
    struct sh_gguf_text arch = {NULL, 0};
    sh_gguf_word(g, "general.architecture", &arch, e);
    struct sh_gguf_maker m = {.g = g, .w = w, .form = f->gguf,
                              .arch = sh_gguf_text_is(arch, f->gguf->arch) ? f->gguf->arch : f->gguf->mixed_arch,
                              .root = json_object(), .names = json_object(), .e = e};
    json_object_set_new(m.root, "model_type", json_string(f->model_types[0]));
    json_object_set_new(m.names, "model_type", json_string("general.architecture"));
    put_name(&m);
    int bad = take_over(&m, f->gguf->items);
    sh_weights_close(w);
    if (bad) {
        json_decref(m.root);
        json_decref(m.names);
        return NULL;
    }
    *names = m.names;
    return m.root;
}
