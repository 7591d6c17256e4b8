/* SPDX-License-Identifier: Apache-2.0 */
/* See gguf_config.h. Keys and their defaults are those of llama.cpp (gguf-py's constants.py, the loaders of
 * its architectures). */
#include "src/model/files/gguf_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/families/families.h"
#include "src/model/files/gguf_maker.h"

/* ---- what the parts share ---- */

const char *sh_gguf_key(struct sh_gguf_maker *m, const char *name)
{
    snprintf(m->key, sizeof m->key, "%s.%s", m->form->arch, name);
    return m->key;
}

int sh_gguf_has(struct sh_gguf_maker *m, const char *name)
{
    return sh_gguf_find(m->g, sh_gguf_key(m, name)) != NULL;
}

void sh_gguf_put(struct sh_gguf_maker *m, const char *hub, const char *name, json_t *value)
{
    json_object_set_new(m->root, hub, value);
    if (name)
        json_object_set_new(m->names, hub, json_string(sh_gguf_key(m, name)));
}

int sh_gguf_cannot(struct sh_gguf_maker *m, const char *name, const char *expected)
{
    return sh_gguf_refuse(m->g, sh_gguf_key(m, name), expected, m->e);
}

int sh_gguf_count(struct sh_gguf_maker *m, const char *name, int64_t *out)
{
    const struct sh_gguf_value *v = sh_gguf_find(m->g, sh_gguf_key(m, name));
    if (!v || v->kind != SH_GGUF_ARRAY)
        return sh_gguf_whole(m->g, m->key, 0, INT32_MAX, out, m->e);
    if (!v->n || !sh_gguf_is_whole(v->item))
        return sh_gguf_cannot(m, name, "a whole number");
    for (size_t i = 0; i < v->n; i++)
        if (sh_gguf_whole_at(v, i) != sh_gguf_whole_at(v, 0) || sh_gguf_whole_at(v, i) < 0)
            return sh_gguf_cannot(m, name, "the same number for all layers");
    *out = sh_gguf_whole_at(v, 0);
    return 0;
}

int sh_gguf_number(struct sh_gguf_maker *m, const char *name, double *out)
{
    return sh_gguf_real(m->g, sh_gguf_key(m, name), out, m->e);
}

/* ---- taking over ---- */

static int put_item(struct sh_gguf_maker *m, const struct sh_gguf_item *item)
{
    int64_t n = 0;
    double x = 0;
    int flag = 0;
    if (!sh_gguf_has(m, item->name))
        return item->optional ? 0 : sh_fail(m->e, "%s: key '%s' is missing", m->g->path, m->key);
    int is_count = item->kind == SH_GGUF_COUNT, is_number = item->kind == SH_GGUF_NUMBER;
    if (is_count ? sh_gguf_count(m, item->name, &n)
                 : is_number ? sh_gguf_number(m, item->name, &x) : sh_gguf_flag(m->g, m->key, &flag, m->e))
        return -1;
    sh_gguf_put(m, item->hub, item->name, is_count ? json_integer(n) : is_number ? json_real(x) : json_boolean(flag));
    return 0;
}

/* Keys and values have the same width in all families that we know. */
static int put_head_width(struct sh_gguf_maker *m)
{
    int64_t key = 0, value = 0;
    if (sh_gguf_count(m, "block_count", &m->n_layer) || sh_gguf_count(m, "embedding_length", &m->d_model) ||
        sh_gguf_count(m, "attention.head_count", &m->n_head) || sh_gguf_count(m, "attention.key_length", &key) ||
        sh_gguf_count(m, "attention.value_length", &value))
        return -1;
    int64_t usual = m->n_head && m->d_model % m->n_head == 0 ? m->d_model / m->n_head : 0;
    m->d_head = key ? key : usual;
    if (m->n_head && !m->d_head)
        return sh_gguf_cannot(m, "attention.head_count", "a divisor of embedding_length, unless key_length is given");
    if ((value ? value : usual) != m->d_head)
        return sh_gguf_cannot(m, "attention.value_length", "the same as key_length");
    if (m->form->traits & SH_GGUF_HEAD)
        sh_gguf_put(m, "head_dim", key ? "attention.key_length" : "attention.head_count", json_integer(m->d_head));
    else if (key && key != usual)
        return sh_gguf_cannot(m, "attention.key_length", "embedding_length / head_count");
    return 0;
}

static int has_tensor(const struct sh_gguf_maker *m, const char *name)
{
    return sh_weights_find(m->w, name) != NULL;
}

/* What no key says: the tensors do. */
static int put_from_tensors(struct sh_gguf_maker *m)
{
    const struct sh_stored *words = sh_weights_find(m->w, "token_embd.weight");
    int out = has_tensor(m, "blk.0.attn_output.bias");
    int in = has_tensor(m, "blk.0.attn_q.bias") || has_tensor(m, "blk.0.attn_qkv.bias");
    if (!words || words->rank != 2)
        return sh_fail(m->e, "%s: tensor 'token_embd.weight' (the token embedding) is missing or not two-dimensional",
                       m->g->path);
    sh_gguf_put(m, "vocab_size", NULL, json_integer((json_int_t)(words->shape[0] < INT32_MAX ? words->shape[0]
                                                                                             : INT32_MAX)));
    sh_gguf_put(m, "tie_word_embeddings", NULL, json_boolean(!has_tensor(m, "output.weight")));
    sh_gguf_put(m, "mlp_bias", NULL, json_boolean(has_tensor(m, "blk.0.ffn_up.bias")));
    if (in == out)
        sh_gguf_put(m, "attention_bias", NULL, json_boolean(in));
    else if (!(m->form->traits & SH_GGUF_QKV_BIAS))
        return sh_fail(m->e, "%s: found biases of %s, expected biases there and of %s, or of neither", m->g->path,
                       in ? "'attn_q'" : "'attn_output'", in ? "'attn_output'" : "'attn_q'");
    return 0;
}

static int take_over(struct sh_gguf_maker *m, const struct sh_gguf_item *items)
{
    for (; items->name; items++)
        if (put_item(m, items))
            return -1;
    return put_head_width(m) || put_from_tensors(m) || sh_gguf_put_rope(m) || sh_gguf_put_windows(m) ||
           sh_gguf_put_scores(m) || sh_gguf_check_keys(m) ? -1 : 0;
}

/* ---- which family ---- */

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
    char expected[200] = "one of";
    const struct sh_gguf_form *last = NULL;
    for (const struct sh_family *const *f = sh_families; *f; f++) {
        size_t used = strlen(expected);
        if (!(*f)->gguf)
            continue;
        if (arch.at && sh_gguf_text_is(arch, (*f)->gguf->arch))
            return *f;
        if ((*f)->gguf != last)         /* a family may share that of the one before it */
            snprintf(expected + used, sizeof expected - used, " %s", (*f)->gguf->arch);
        last = (*f)->gguf;
    }
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
    struct sh_gguf_maker m = {.g = g, .w = w, .form = f->gguf, .root = json_object(), .names = json_object(), .e = e};
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
