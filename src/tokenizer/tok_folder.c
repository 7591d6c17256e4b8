/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens that the files of a folder name besides its vocabulary: tokenizer_config.json, special_tokens_map.json and
 * added_tokens.json. */
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/tokenizer/tok.h"

json_t *sh_tok_optional(const char *folder, const char *name, int *bad, struct sh_err *e)
{
    int is_there = sh_tok_has(folder, name);
    json_t *o = is_there ? sh_tok_load(folder, name, 0, e) : NULL;
    *bad |= is_there && !o;
    return o;
}

struct gather {
    json_t *tokens;                     /* the added_tokens array being made */
    json_t *seen;                       /* an object with their contents as keys */
    const json_t *vocab, *more;         /* ids: of vocab.json, of added_tokens.json */
    json_int_t next;                    /* the id of a token that has none yet */
};

static void add(struct gather *g, const json_t *token, const json_t *id)
{
    /* A special token is a string or an object with its text as "content". */
    const json_t *content = json_is_object(token) ? json_object_get(token, "content") : token, *flag;
    static const char *const flags[] = {"lstrip", "rstrip", "single_word", "normalized", "special"};
    const char *text = json_string_value(content);
    if (!text || !*text || json_object_get(g->seen, text))
        return;
    json_object_set_new(g->seen, text, json_true());
    if (!id)
        id = json_object_get(g->vocab, text);
    if (!id)
        id = json_object_get(g->more, text);
    json_t *new = json_pack("{s:O, s:b}", "content", content, "special", 1);
    if (id)
        json_object_set(new, "id", (json_t *)id);
    else
        json_object_set_new(new, "id", json_integer(g->next++));
    for (int i = 0; i < 5; i++)
        if (json_is_object(token) && (flag = json_object_get(token, flags[i])))
            json_object_set(new, flags[i], (json_t *)flag);
    json_array_append_new(g->tokens, new);
}

/* The special tokens that one file names. */
static void add_named(struct gather *g, const json_t *file)
{
    static const char *const names[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                        "pad_token", "cls_token", "mask_token"};
    const json_t *more = json_object_get(file, "additional_special_tokens");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        add(g, json_object_get(file, names[i]), NULL);
    for (size_t i = 0; i < json_array_size(more); i++)
        add(g, json_array_get(more, i), NULL);
}

static void add_numbered(struct gather *g, const json_t *config)
{
    const char *key;
    json_t *token, *id;
    json_object_foreach(json_object_get(config, "added_tokens_decoder"), key, token) {
        char *end;
        long number = strtol(key, &end, 10);
        id = *key && !*end ? json_integer(number) : json_string(key);   /* a string is refused by the reader */
        add(g, token, id);
        json_decref(id);
    }
    json_object_foreach((json_t *)g->more, key, token) {
        json_t *content = json_string(key);
        json_t *plain = json_pack("{s:O, s:b}", "content", content, "special", 0);
        add(g, plain, token);
        json_decref(plain);
        json_decref(content);
    }
}

static json_int_t after_largest(const json_t *a, const json_t *b)
{
    const json_t *const lists[] = {a, b};
    json_int_t next = 0;
    const char *key;
    json_t *id;
    for (int i = 0; i < 2; i++)
        json_object_foreach((json_t *)lists[i], key, id)
            if (json_integer_value(id) >= next && json_integer_value(id) <= SH_TOK_MAX_ID)
                next = json_integer_value(id) + 1;
    return next;
}

json_t *sh_tok_folder_added(const char *folder, const json_t *config, const json_t *ids, struct sh_err *e)
{
    int bad = 0;
    json_t *map = sh_tok_optional(folder, "special_tokens_map.json", &bad, e);
    json_t *more = bad ? NULL : sh_tok_optional(folder, "added_tokens.json", &bad, e);
    struct gather g = {json_array(), json_object(), ids, more, after_largest(ids, more)};
    if (!bad) {
        add_numbered(&g, config);
        add_named(&g, config);
        add_named(&g, map);
    }
    json_decref(map);
    json_decref(more);
    json_decref(g.seen);
    if (bad) {
        json_decref(g.tokens);
        return NULL;
    }
    return g.tokens;
}

/* ---- next to a tokenizer.json, as transformers adds them ---- */

/* What is added to the array `to`: tokens whose texts are not in `seen`. */
struct more {
    json_t *to, *seen;
    const json_t *vocab;                /* of the model: token to id, or an array of [token, score]   */
    json_int_t next;
    json_t *ids;                        /* of such an array, once one is asked for: token to id       */
};

static json_t *ids_of(const json_t *vocab)
{
    json_t *ids = json_object();
    for (size_t i = json_array_size(vocab); i-- > 0;) {         /* of equal ones the first */
        const char *text = json_string_value(json_array_get(json_array_get(vocab, i), 0));
        if (text)
            json_object_set_new(ids, text, json_integer((json_int_t)i));
    }
    return ids;
}

/* The vocabulary's id of a token; NULL: it has none. */
static json_t *id_of(struct more *m, const char *text)
{
    if (!json_is_array(m->vocab))
        return json_incref(json_object_get(m->vocab, text));
    if (!m->ids)
        m->ids = ids_of(m->vocab);
    return json_incref(json_object_get(m->ids, text));
}

/* token: a text, which is then special, or an object. */
static void add_more(struct more *m, const json_t *token)
{
    const json_t *content = json_is_object(token) ? json_object_get(token, "content") : token;
    const char *text = json_string_value(content);
    if (!text || !*text || json_object_get(m->seen, text))
        return;
    json_object_set_new(m->seen, text, json_true());
    json_t *new = json_is_object(token) ? json_deep_copy(token)
                                        : json_pack("{s:s, s:b}", "content", text, "special", 1);
    json_t *id = id_of(m, text);
    json_object_set_new(new, "id", id ? id : json_integer(m->next++));
    json_array_append_new(m->to, new);
}

static int by_id(const void *a, const void *b)
{
    long long x = strtoll(*(const char *const *)a, NULL, 10), y = strtoll(*(const char *const *)b, NULL, 10);
    return x < y ? -1 : x > y;
}

/* added_tokens_decoder: tokens by their ids. */
static void add_decoder(struct more *m, const json_t *decoder)
{
    size_t n = 0;
    const char *key, **keys = xmalloc((json_object_size(decoder) + 1) * sizeof *keys);
    json_t *token;
    json_object_foreach((json_t *)decoder, key, token)
        keys[n++] = key;
    qsort(keys, n, sizeof *keys, by_id);
    for (size_t i = 0; i < n; i++)
        add_more(m, json_object_get(decoder, keys[i]));
    free(keys);
}

/* added_tokens.json: ids by token, which are special if they have a name, too. */
static void add_file(struct more *m, const json_t *file, const json_t *named)
{
    const char *key;
    json_t *id, *decoder = json_object();
    json_object_foreach((json_t *)file, key, id) {
        char *number = json_dumps(id, JSON_ENCODE_ANY);
        int is_named = json_object_get(named, key) != NULL;
        json_object_set_new(decoder, number ? number : "",
                            json_pack("{s:s, s:b}", "content", key, "special", is_named));
        free(number);
    }
    add_decoder(m, decoder);
    json_decref(decoder);
}

static int ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && !strcmp(text + n - m, end);
}

/* Keys such as bos_token, image_token: those with a place of their own first. */
static void add_keys(struct more *m, const json_t *config, const json_t *map)
{
    static const char *const names[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                        "pad_token", "cls_token", "mask_token"};
    const char *key;
    json_t *value;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        value = json_object_get(map, names[i]);
        add_more(m, value ? value : json_object_get(config, names[i]));
    }
    json_object_foreach((json_t *)config, key, value)
        if (ends_with(key, "_token") && !json_object_get(map, key))
            add_more(m, value);
    json_object_foreach((json_t *)map, key, value)
        if (ends_with(key, "_token"))
            add_more(m, value);
}

static void add_list(struct more *m, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        add_more(m, json_array_get(list, i));
}

/* Tokens by names of their own. */
static void add_values(struct more *m, const json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
        add_more(m, value);
}

/* extra_special_tokens, an object of named ones or a list, which replaces additional_special_tokens, its older name; of
 * the newer lists, the map's follows the config's. */
static void add_extra(struct more *m, const json_t *config, const json_t *map)
{
    static const char newer[] = "extra_special_tokens", older[] = "additional_special_tokens";
    const json_t *of_config = json_object_get(config, newer), *of_map = json_object_get(map, newer);
    const json_t *list = of_config, *next = of_map;
    add_values(m, json_object_get(config, "model_specific_special_tokens"));
    add_values(m, of_config);
    add_values(m, of_map);
    if (!json_array_size(list) && !json_object_size(list))
        list = json_object_get(config, older);
    if (!json_array_size(list) && !json_array_size(next))
        next = json_object_get(map, older) ? json_object_get(map, older) : json_object_get(config, older);
    add_list(m, list);
    add_list(m, next);
}

/* The text of a token's object; NULL: it has none, or one with a NUL. */
static const char *text_of(const json_t *token)
{
    const json_t *content = json_object_get(token, "content");
    const char *text = json_string_value(content);
    return text && strlen(text) == json_string_length(content) ? text : NULL;
}

/* The flags in added_tokens_decoder replace those of a token that tokenizer.json has already. */
static void replace_flags(json_t *added, const json_t *decoder)
{
    const char *key, *text;
    json_t *token, *by_text = json_object();
    json_object_foreach((json_t *)decoder, key, token)
        if ((text = text_of(token)) && json_object_update(json_object_get(by_text, text), token))
            json_object_set_new(by_text, text, json_copy(token));
    for (size_t i = 0; i < json_array_size(added); i++) {
        json_t *own = json_array_get(added, i), *id = json_object_get(own, "id");
        if (!(text = text_of(own)) || !(token = json_object_get(by_text, text)))
            continue;
        json_incref(id);
        json_object_update(own, token);
        if (id)
            json_object_set_new(own, "id", id);
    }
    json_decref(by_text);
}

int sh_tok_folder_more(const char *folder, const json_t *config, json_t *root, struct sh_err *e)
{
    int bad = 0, numbered = json_object_size(json_object_get(config, "added_tokens_decoder")) > 0;
    json_t *added = json_object_get(root, "added_tokens"), *vocab = json_object_get(json_object_get(root, "model"),
                                                                                     "vocab");
    json_t *map = numbered ? NULL : sh_tok_optional(folder, "special_tokens_map.json", &bad, e);
    json_t *file = numbered || bad ? NULL : sh_tok_optional(folder, "added_tokens.json", &bad, e);
    size_t n = json_is_object(vocab) ? json_object_size(vocab) : json_array_size(vocab);
    struct more m = {json_array(), json_object(), vocab, (json_int_t)n, NULL};
    for (size_t i = 0; i < json_array_size(added); i++) {
        const json_t *token = json_array_get(added, i);
        const char *text = json_string_value(json_object_get(token, "content"));
        json_int_t id = json_integer_value(json_object_get(token, "id"));
        if (text)
            json_object_set_new(m.seen, text, json_true());
        m.next = id >= m.next && id <= SH_TOK_MAX_ID ? id + 1 : m.next;
    }
    if (!bad) {
        replace_flags(added, json_object_get(config, "added_tokens_decoder"));
        add_decoder(&m, json_object_get(config, "added_tokens_decoder"));
        struct more named = {json_array(), json_object(), NULL, 0, NULL};
        add_keys(&named, config, map);
        add_extra(&named, config, map);
        add_file(&m, file, named.seen);
        json_decref(named.to);
        json_decref(named.seen);
        add_keys(&m, config, map);
        add_extra(&m, config, map);
        if (!added || json_is_null(added))
            json_object_set(root, "added_tokens", m.to);
        else
            json_array_extend(added, m.to);
    }
    json_decref(map);
    json_decref(file);
    json_decref(m.to);
    json_decref(m.seen);
    json_decref(m.ids);
    return bad ? -1 : 0;
}
