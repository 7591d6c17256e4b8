/* SPDX-License-Identifier: Apache-2.0 */
/* Rank lists, tiktoken's files: lines "BASE64 RANK", a token's bytes and its id. Of neighbours that together are a
 * token, those with the lowest rank merge first (tiktoken's _byte_pair_merge). The files name neither the expression
 * that cuts texts nor special tokens: these are in code that comes with a model and is not run, so the few classes that
 * published models have are known here, and others are refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/tokenizer/tok.h"
#include "src/tokenizer/tok_rank_list.h"

enum { MOST_BYTES = 64 << 20 };         /* the largest published file has 3 MB */

struct class {
    const char *file, *name;            /* in the folder; the tokenizer_class */
    const char *pre;                    /* tok_pre.c                          */
    const char *const *named;           /* special tokens after the list's    */
    int n_numbered;                     /* and then so many of this form      */
    const char *numbered;
    int by_id;                          /* numbered by their ids, else from 0 */
    const char *const *before;          /* special tokens before each text    */
};

static const char *const none[] = {NULL}, *const qwen[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>", NULL},
                  *const glm[] = {"[gMASK]", "<sop>", NULL};
static const struct class classes[] = {
    {"tiktoken.model", "TikTokenTokenizer", "kimi-k2", none, 256, "<|reserved_token_%d|>", 1, none},
    {"qwen.tiktoken", "QWenTokenizer", "qwen2", qwen, 205, "<|extra_%d|>", 0, none},
    {"tokenizer.model", "ChatGLM4Tokenizer", "chatglm-bpe", none, 0, NULL, 0, glm}};
enum { N_CLASS = sizeof classes / sizeof *classes };

/* ---- the list ---- */

/* The id on a line after its gap; -1: none. */
static long long id_of(const char *at, const char *end)
{
    long long id = 0;
    if (at == end || end - at > 9)
        return -1;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9')
            return -1;
        id = 10 * id + (*at - '0');
    }
    return id <= SH_TOK_MAX_ID ? id : -1;
}

/* One line without its end. */
static int read_line(struct sh_rank_list *l, const char *at, size_t n, struct sh_err *e)
{
    const char *gap = memchr(at, ' ', n);
    long long id = gap ? id_of(gap + 1, at + n) : -1;
    if (id < 0 || sh_rank_list_bytes(l, at, (size_t)(gap - at)))
        return sh_fail(e, "found \"%.*s\", expected base64, a space and a number of at most %d", n > 80 ? 80 : (int)n,
                       at, SH_TOK_MAX_ID);
    return sh_rank_list_add(l, id, e);
}

static int read_list(struct sh_rank_list *l, const char *path, struct sh_err *e)
{
    struct sh_map map;
    if (sh_map_open(&map, path, e))
        return -1;
    const char *at = (const char *)map.at, *end = at + map.bytes;
    int bad = map.bytes > MOST_BYTES ? sh_fail(e, "found %zu bytes, expected at most %d", map.bytes, MOST_BYTES) : 0;
    for (size_t line = 1; !bad && at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((stop ? stop : end) - at);
        size_t used = n && at[n - 1] == '\r' ? n - 1 : n;
        if (used && (bad = read_line(l, at, used, e)))
            sh_err_prefix(e, "line %zu", line);
        at += n + 1;
    }
    sh_map_close(&map);
    return bad || sh_rank_list_check(l, e) ? sh_err_prefix(e, "%s", path) : 0;
}

/* ---- the rest ---- */

/* A copy of the folder's config in which added_tokens_decoder has the special tokens of the class, too. */
static json_t *whole_config(const struct class *c, const json_t *config, long long first)
{
    json_t *all = config ? json_deep_copy(config) : json_object();
    json_t *decoder = json_object_get(all, "added_tokens_decoder");
    int n_named = 0;
    while (c->named[n_named])
        n_named++;
    if (!json_is_object(decoder))
        json_object_set_new(all, "added_tokens_decoder", decoder = json_object());
    for (int i = 0; i < n_named + c->n_numbered; i++) {
        char key[24], text[64];
        snprintf(key, sizeof key, "%lld", first + i);
        if (i < n_named)
            snprintf(text, sizeof text, "%s", c->named[i]);
        else
            snprintf(text, sizeof text, c->numbered, c->by_id ? (int)first + i : i - n_named);
        if (!json_object_get(decoder, key))
            json_object_set_new(decoder, key, json_pack("{s:s, s:b}", "content", text, "special", 1));
    }
    return all;
}

json_t *sh_tok_begins_with(const char *const *before, const json_t *added, struct sh_err *e)
{
    json_t *single = json_array(), *tokens = json_object();
    for (; *before; before++) {
        const json_t *id = NULL;
        for (size_t i = 0; i < json_array_size(added); i++)
            if (!strcmp(json_string_value(json_object_get(json_array_get(added, i), "content")), *before))
                id = json_object_get(json_array_get(added, i), "id");
        if (!id) {
            json_decref(single);
            json_decref(tokens);
            return sh_fail_null(e, "found no token %s, which begins each text, expected one in added_tokens_decoder",
                                *before);
        }
        json_array_append_new(single, json_pack("{s:{s:s, s:i}}", "SpecialToken", "id", *before, "type_id", 0));
        json_object_set_new(tokens, *before, json_pack("{s:s, s:[O], s:[s]}", "id", *before, "ids", id, "tokens",
                                                       *before));
    }
    json_array_append_new(single, json_pack("{s:{s:s, s:i}}", "Sequence", "id", "A", "type_id", 0));
    return json_pack("{s:s, s:o, s:o}", "type", "TemplateProcessing", "single", single, "special_tokens", tokens);
}

static json_t *build(const struct class *c, const char *folder, const json_t *config, const struct sh_rank_list *l,
                     struct sh_err *e)
{
    json_t *root = sh_tok_pre(c->pre), *all = whole_config(c, config, l->largest + 1), *post = NULL;
    json_t *added = sh_tok_folder_added(folder, all, l->vocab, e);
    json_decref(all);
    if (added && *c->before && !(post = sh_tok_begins_with(c->before, added, e)))
        sh_err_prefix(e, "%s/tokenizer_config.json", folder);
    if (!added || (*c->before && !post)) {
        json_decref(root);
        json_decref(added);
        return NULL;
    }
    json_object_set_new(root, "added_tokens", added);
    if (post)
        json_object_set_new(root, "post_processor", post);
    json_object_set_new(root, "model", json_pack("{s:s, s:O}", "type", "Ranks", "vocab", l->vocab));
    return root;
}

/* Does a file begin as such a list does? tokenizer.model may also be SentencePiece's. */
static int begins_as_list(const char *folder, const char *name)
{
    char *path = xasprintf("%s/%s", folder, name);
    struct sh_map map;
    struct sh_err e;
    struct sh_rank_list l = {0};
    int is_list = 0;
    if (!sh_map_open(&map, path, &e)) {
        const char *at = (const char *)map.at;
        size_t n = map.bytes < 200 ? map.bytes : 200;
        const char *gap = n ? memchr(at, ' ', n) : NULL;
        const char *end = gap ? memchr(gap, '\n', (size_t)(at + n - gap)) : NULL;
        is_list = end && id_of(gap + 1, end[-1] == '\r' ? end - 1 : end) >= 0 &&
                  !sh_rank_list_bytes(&l, at, (size_t)(gap - at));
        sh_map_close(&map);
    }
    free(l.bytes.at);
    free(path);
    return is_list;
}

const char *sh_tok_ranks_file(const char *folder)
{
    for (int i = 0; i < N_CLASS; i++)
        if (sh_tok_has(folder, classes[i].file) && begins_as_list(folder, classes[i].file))
            return classes[i].file;
    return NULL;
}

static const struct class *class_of(const char *folder, const char *file, const json_t *config, struct sh_err *e)
{
    const json_t *name = json_object_get(config, "tokenizer_class");
    for (int i = 0; i < N_CLASS; i++)
        if (json_is_string(name) && !strcmp(classes[i].name, json_string_value(name)) && !strcmp(classes[i].file, file))
            return &classes[i];
    sh_fail(e, "%s/%s: a rank list (tiktoken's format) does not say how texts are cut, and tokenizer_class %.80s is "
            "not known: expected TikTokenTokenizer with tiktoken.model, QWenTokenizer with qwen.tiktoken or "
            "ChatGLM4Tokenizer with tokenizer.model", folder, file,
            json_is_string(name) ? json_string_value(name) : sh_json_kind(name));
    sh_hint(e, "use the tokenizer.json of the same model instead");
    return NULL;
}

json_t *sh_tok_ranks(const char *folder, const char *file, const json_t *config, struct sh_err *e)
{
    const struct class *c = class_of(folder, file, config, e);
    if (!c)
        return NULL;
    char *path = xasprintf("%s/%s", folder, file);
    struct sh_rank_list l;
    sh_rank_list_begin(&l);
    json_t *root = read_list(&l, path, e) ? NULL : build(c, folder, config, &l, e);
    sh_rank_list_free(&l);
    free(path);
    return root;
}
