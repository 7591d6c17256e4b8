/* SPDX-License-Identifier: Apache-2.0 */
/* The items of a form (family.h): keys and tensors of a GGUF file as keys of config.json. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/model/files/gguf_config.h"

int sh_gguf_has_tensor(const struct sh_gguf_maker *m, const char *name)
{
    return sh_weights_find(m->w, name) != NULL;
}

static void put_text(struct sh_gguf_maker *m, const struct sh_gguf_item *item)
{
    int is_bias = item->name && !strcmp(item->name, "blk.0.attn_q.bias");   /* maybe with those of keys and values */
    const char *text = item->kind == SH_GGUF_FIXED || sh_gguf_has_tensor(m, item->name) ||
                               (is_bias && sh_gguf_has_tensor(m, "blk.0.attn_qkv.bias")) ? item->json : item->json_else;
    if (text)
        sh_gguf_put(m, item->hub, NULL, json_loads(text, JSON_DECODE_ANY, NULL));
}

static int put_gating(struct sh_gguf_maker *m, const struct sh_gguf_item *item)
{
    int64_t n = 0;
    if (sh_gguf_count(m, item->name, &n))
        return -1;
    if (item->hub ? n > 2 : n && n != item->value)
        return sh_gguf_cannot(m, item->name, item->hub ? "1 (softmax) or 2 (sigmoid)"
                                             : item->value == 2 ? "2 (sigmoid)" : "1 (softmax)");
    if (item->hub)
        sh_gguf_put(m, item->hub, item->name, json_string(n == 2 || (!n && item->value == 2) ? "sigmoid" : "softmax"));
    return 0;
}

static int put_word(struct sh_gguf_maker *m, const struct sh_gguf_item *item)
{
    struct sh_gguf_text word = {NULL, 0};
    if (sh_gguf_word(m->g, sh_gguf_key(m, item->name), &word, m->e))
        return -1;
    json_t *text = word.at ? json_stringn(word.at, word.bytes) : json_loads(item->json, JSON_DECODE_ANY, NULL);
    if (!text || (word.at && strlen(json_string_value(text)) != word.bytes)) {      /* not UTF-8 */
        json_decref(text);
        return sh_gguf_cannot(m, item->name, "a name");
    }
    sh_gguf_put(m, item->hub, item->name, text);
    return 0;
}

const struct sh_stored *sh_gguf_first(const struct sh_gguf_maker *m, const char *name, int64_t layers)
{
    const char *at = strchr(name, '#');
    const struct sh_stored *t = at ? NULL : sh_weights_find(m->w, name);
    for (int64_t i = 0; at && !t && i < layers && i < SH_GGUF_MOST_LAYERS; i++) {
        char one[80];
        snprintf(one, sizeof one, "%.*s%lld%s", (int)(at - name), name, (long long)i, at + 1);
        t = sh_weights_find(m->w, one);
    }
    return t;
}

static int put_rows(struct sh_gguf_maker *m, const struct sh_gguf_item *item)
{
    int64_t layers = 0;
    if (sh_gguf_count(m, "block_count", &layers))
        return -1;
    const struct sh_stored *t = sh_gguf_first(m, item->name, layers);
    if (!t && item->optional)
        return 0;
    if (!t || t->rank != 2 || t->shape[0] > INT32_MAX)
        return sh_fail(m->e, "%s: tensor '%s' is missing or not two-dimensional", m->g->path, item->name);
    sh_gguf_put(m, item->hub, NULL, json_integer((json_int_t)t->shape[0]));
    return 0;
}

static int put_deviations(struct sh_gguf_maker *m, const struct sh_gguf_item *item)
{
    const struct sh_gguf_value *v = sh_gguf_find(m->g, sh_gguf_key(m, item->name));
    if (!v || v->kind != SH_GGUF_ARRAY || v->n > SH_GGUF_MOST_LAYERS ||
        (v->item != SH_GGUF_F32 && v->item != SH_GGUF_F64))
        return sh_gguf_cannot(m, item->name, "a list of numbers, one for each layer");
    json_t *shares = json_array();
    for (size_t i = 0; i < v->n; i++) {
        double x = sh_gguf_real_at(v, i);
        json_array_append_new(shares, json_real(x > 0 ? erfc(-x / sqrt(2)) / 2 : 0));
    }
    sh_gguf_put(m, item->hub, item->name, shares);
    return 0;
}

static int put_share_of(struct sh_gguf_maker *m, const struct sh_gguf_item *item)
{
    int64_t all = 0, by = 0;
    if (sh_gguf_count(m, item->json, &all) || sh_gguf_count(m, item->name, &by))
        return -1;
    if (by < 1 || all % by)
        return sh_gguf_cannot(m, item->name, "a divisor of the width of all, which another key gives");
    sh_gguf_put(m, item->hub, item->name, json_integer(all / by));
    return 0;
}

static int has_layer_tensor(const struct sh_gguf_maker *m, int64_t layer, const char *name)
{
    char text[64];
    snprintf(text, sizeof text, "blk.%lld.%s.weight", (long long)layer, name);
    return sh_gguf_has_tensor(m, text);
}

/* Those that run: layers that predict further tokens follow them. */
static int count_layers(struct sh_gguf_maker *m, int64_t *n)
{
    int64_t more = 0;
    if (sh_gguf_count(m, "block_count", n) || sh_gguf_count(m, "nextn_predict_layers", &more))
        return -1;
    *n -= more < *n ? more : 0;
    return 0;
}

/* What each layer is, by its tensors. */
static int put_blocks(struct sh_gguf_maker *m, const struct sh_gguf_item *item)
{
    int64_t n = 0;
    if (count_layers(m, &n))
        return -1;
    json_t *list = json_array();
    for (int64_t i = 0; i < n && i < SH_GGUF_MOST_LAYERS; i++) {
        int mixes = has_layer_tensor(m, i, "ffn_gate_inp");
        int is_delta = has_layer_tensor(m, i, "ssm_beta");      /* which has queries, too */
        int attends = !is_delta && (has_layer_tensor(m, i, "attn_q") || has_layer_tensor(m, i, "attn_q_b") ||
                                    has_layer_tensor(m, i, "attn_qkv"));
        int recurs = is_delta || has_layer_tensor(m, i, "ssm_in") || has_layer_tensor(m, i, "shortconv.in_proj");
        const char *word = item->kind == SH_GGUF_FEEDS ? mixes ? "sparse" : "dense"
                           : attends ? "full_attention" : recurs || !item->value ? item->json : mixes ? "moe" : "mlp";
        json_array_append_new(list, json_string(word));
    }
    sh_gguf_put(m, item->hub, NULL, list);
    return 0;
}

/* A flag for each layer, in other words; or the base of the rotation where it is set, and 0 elsewhere. */
static int put_list(struct sh_gguf_maker *m, const struct sh_gguf_item *item)
{
    const struct sh_gguf_value *v = sh_gguf_find(m->g, sh_gguf_key(m, item->name));
    int64_t n = 0;
    double base = 10000;
    if (!v)
        return 0;
    if (count_layers(m, &n) || (!item->json && sh_gguf_number(m, "rope.freq_base", &base)))
        return -1;
    if (v->kind != SH_GGUF_ARRAY || (v->item != SH_GGUF_BOOL && !sh_gguf_is_whole(v->item)) || v->n < (size_t)n ||
        n > SH_GGUF_MOST_LAYERS)
        return sh_gguf_cannot(m, item->name, "one true or false for each layer");
    json_t *list = json_array();
    for (size_t i = 0; i < (size_t)n; i++) {
        int is_set = sh_gguf_whole_at(v, i) != 0;
        json_array_append_new(list, item->json ? json_string(is_set ? item->json : item->json_else)
                                               : json_real(is_set ? base : 0));
    }
    sh_gguf_put(m, item->hub, item->name, list);
    return 0;
}

static int check_must(struct sh_gguf_maker *m, const struct sh_gguf_item *item)
{
    int flag = item->optional ? item->value : !item->value;
    if (sh_gguf_flag(m->g, sh_gguf_key(m, item->name), &flag, m->e))
        return -1;
    return flag == item->value ? 0 : sh_gguf_cannot(m, item->name, item->value ? "true" : "false");
}

static int check_same(struct sh_gguf_maker *m, const struct sh_gguf_item *item)
{
    char expected[80];
    int64_t other = 0, n = 0;
    if (sh_gguf_count(m, item->json, &other))
        return -1;
    n = other;
    if (sh_gguf_count(m, item->name, &n))
        return -1;
    snprintf(expected, sizeof expected, "the same as %s", item->json);
    return n == other ? 0 : sh_gguf_cannot(m, item->name, expected);
}

static int put_by_head(struct sh_gguf_maker *m, const struct sh_gguf_item *item)
{
    const struct sh_stored *t = sh_weights_find(m->w, item->name);
    const struct sh_gguf_value *v = sh_gguf_find(m->g, sh_gguf_key(m, "attention.head_count"));
    int64_t heads = 0;
    if (sh_gguf_count(m, "attention.head_count", &heads))
        return -1;
    if (v && v->kind == SH_GGUF_ARRAY)          /* the tensor is of the first layer                   */
        heads = sh_gguf_whole_at(v, 0);
    if (!t || t->rank != 2)
        return sh_fail(m->e, "%s: tensor '%s' is missing or not two-dimensional", m->g->path, item->name);
    sh_gguf_put(m, item->hub, NULL, json_string(t->shape[0] == (size_t)heads ? item->json : item->json_else));
    return 0;
}

static int put_sections(struct sh_gguf_maker *m, const struct sh_gguf_item *item)
{
    const struct sh_gguf_value *v = sh_gguf_find(m->g, sh_gguf_key(m, item->name));
    if (!v)
        return 0;
    if (v->kind != SH_GGUF_ARRAY || !sh_gguf_is_whole(v->item))
        return sh_gguf_cannot(m, item->name, "a list of whole numbers");
    int has = v->n > 1 && sh_gguf_whole_at(v, 0) > 0 && sh_gguf_whole_at(v, 1) > 0;
    if (!item->hub)
        return has ? sh_gguf_cannot(m, item->name, "no sections for this family") : 0;
    sh_gguf_put(m, item->hub, item->name, json_boolean(has));
    return 0;
}

static int put_numbers(struct sh_gguf_maker *m, const struct sh_gguf_item *item)
{
    const struct sh_gguf_value *v = sh_gguf_find(m->g, sh_gguf_key(m, item->name));
    int64_t n = 0;
    if (!v)
        return 0;
    if (count_layers(m, &n))
        return -1;
    int is_list = v->kind == SH_GGUF_ARRAY, kind = is_list ? (int)v->item : (int)v->kind;
    if ((kind != SH_GGUF_F32 && kind != SH_GGUF_F64) || (is_list && v->n < (size_t)n) || n > SH_GGUF_MOST_LAYERS)
        return sh_gguf_cannot(m, item->name, "a number, or one for each layer");
    json_t *list = json_array();
    for (size_t i = 0; i < (size_t)n; i++)
        json_array_append_new(list, json_real(sh_gguf_real_at(v, is_list ? i : 0)));
    sh_gguf_put(m, item->hub, item->name, list);
    return 0;
}

int sh_gguf_put_item(struct sh_gguf_maker *m, const struct sh_gguf_item *item)
{
    int64_t n = 0;
    double x = 0;
    int flag = 0;
    if (item->kind == SH_GGUF_FIXED || item->kind == SH_GGUF_THERE) {
        put_text(m, item);
        return 0;
    }
    switch (item->kind) {
    case SH_GGUF_GATING: return put_gating(m, item);
    case SH_GGUF_WORD: return put_word(m, item);
    case SH_GGUF_ROWS: return put_rows(m, item);
    case SH_GGUF_DEVIATIONS: return put_deviations(m, item);
    case SH_GGUF_SHARE_OF: return put_share_of(m, item);
    case SH_GGUF_BLOCKS: return put_blocks(m, item);
    case SH_GGUF_FEEDS: return put_blocks(m, item);
    case SH_GGUF_MUST: return check_must(m, item);
    case SH_GGUF_SAME: return check_same(m, item);
    case SH_GGUF_BY_HEAD: return put_by_head(m, item);
    case SH_GGUF_SECTIONS: return put_sections(m, item);
    case SH_GGUF_NUMBERS: return put_numbers(m, item);
    case SH_GGUF_LIST: return put_list(m, item);
    default: break;
    }
    if (!sh_gguf_has(m, item->name))
        return item->optional ? 0 : sh_fail(m->e, "%s: key '%s' is missing", m->g->path, m->key);
    int is_count = item->kind == SH_GGUF_COUNT, is_number = item->kind == SH_GGUF_NUMBER;
    if (is_count ? sh_gguf_count(m, item->name, &n)
                 : is_number ? sh_gguf_number(m, item->name, &x) : sh_gguf_flag(m->g, m->key, &flag, m->e))
        return -1;
    if (is_count && n < item->value)
        return sh_gguf_cannot(m, item->name, "a number from 1 on");
    if (item->optional == 2 && ((is_count && !n) || (is_number && !(x > 0 || x < 0))))
        return 0;
    sh_gguf_put(m, item->hub, item->name, is_count ? json_integer(n) : is_number ? json_real(x) : json_boolean(flag));
    return 0;
}
