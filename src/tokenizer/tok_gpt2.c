/* SPDX-License-Identifier: Apache-2.0 */
/* Older folders: vocab.json, merges.txt and files about special tokens become an equivalent tokenizer.json, so that
 * there is one reader. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/file.h"
#include "src/base/mem.h"
#include "src/tokenizer/tok.h"

enum { MOST_LINE = 1 << 20 };

static json_t *read_merges(const char *path, struct sh_err *e)
{
    FILE *from = sh_stream_open(path, NULL);
    if (!from)
        return sh_fail_null(e, "%s: cannot be opened: %s", path, strerror(errno));
    json_t *merges = json_array();
    char *line = NULL;
    size_t cap = 0, number = 0;
    int bad = 0;
    ssize_t got;
    while ((got = xgetline(&line, &cap, MOST_LINE, from)) >= 0) {
        size_t n = (size_t)got;
        number++;
        while (n && (line[n - 1] == '\n' || line[n - 1] == '\r'))
            n--;
        if (!n || sh_starts_with(line, n, "#version", 8))
            continue;
        json_t *merge = got > MOST_LINE ? NULL : json_stringn(line, n);
        if (!merge) {
            bad = sh_fail(e, got > MOST_LINE ? "%s: line %zu is too long" : "%s: line %zu is not UTF-8", path, number);
            break;
        }
        json_array_append_new(merges, merge);
    }
    if (!bad && ferror(from))
        bad = sh_fail(e, "%s: cannot be read: %s", path, strerror(errno));
    free(line);
    fclose(from);
    if (!bad)
        return merges;
    json_decref(merges);
    return NULL;
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

static json_t *optional(const char *folder, const char *name, int *bad, struct sh_err *e)
{
    int is_there = sh_tok_has(folder, name);
    json_t *o = is_there ? sh_tok_load(folder, name, 0, e) : NULL;
    *bad |= is_there && !o;
    return o;
}

enum class { GPT2, GPT_NEOX, UNKNOWN };

static enum class class_of(const char *folder, const json_t *config, struct sh_err *e)
{
    static const struct { const char *name; enum class class; } classes[] = {
        {"GPT2Tokenizer", GPT2}, {"GPT2TokenizerFast", GPT2}, {"GPTNeoXTokenizer", GPT_NEOX},
        {"GPTNeoXTokenizerFast", GPT_NEOX}, {NULL, UNKNOWN}};
    const json_t *class = json_object_get(config, "tokenizer_class");
    if (!json_is_string(class))
        return GPT2;
    for (int i = 0; classes[i].name; i++)
        if (!strcmp(classes[i].name, json_string_value(class)))
            return classes[i].class;
    sh_fail(e, "%s/tokenizer_config.json: tokenizer_class: %.80s without a tokenizer.json is "
            "not supported", folder, json_string_value(class));
    sh_hint(e, "save the tokenizer with the tokenizers library, which writes tokenizer.json");
    return UNKNOWN;
}

json_t *sh_tok_folder_added(const char *folder, const json_t *config, const json_t *ids, struct sh_err *e)
{
    int bad = 0;
    json_t *map = optional(folder, "special_tokens_map.json", &bad, e);
    json_t *more = bad ? NULL : optional(folder, "added_tokens.json", &bad, e);
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

/* Is each token that the class would else make <|endoftext|> named in one of the files? */
static int names_ends(const char *folder, const json_t *config, int *bad, struct sh_err *e)
{
    static const char *const names[] = {"bos_token", "eos_token", "unk_token"};
    json_t *map = optional(folder, "special_tokens_map.json", bad, e);
    int all = 1;
    for (int i = 0; i < 3; i++)
        all &= json_object_get(config, names[i]) || json_object_get(map, names[i]);
    json_decref(map);
    return all;
}

static json_t *build(const char *folder, json_t *vocab, json_t *merges, const json_t *config, enum class class,
                     struct sh_err *e)
{
    static const char fallback[] = "<|endoftext|>";
    int prefix, bad = 0;
    if (sh_tok_flag(config, "add_prefix_space", 0, &prefix, e)) {
        sh_err_prefix(e, "%s/tokenizer_config.json", folder);
        return NULL;
    }
    json_t *tokens = sh_tok_folder_added(folder, config, vocab, e), *id = json_object_get(vocab, fallback), *root;
    if (!tokens)
        return NULL;
    for (size_t i = 0; i < json_array_size(tokens) && id; i++)
        if (!strcmp(json_string_value(json_object_get(json_array_get(tokens, i), "content")), fallback))
            id = NULL;
    if (id && !names_ends(folder, config, &bad, e) && !bad)
        json_array_append_new(tokens, json_pack("{s:s, s:b, s:O}", "content", fallback, "special", 1, "id", id));
    if (bad) {
        json_decref(tokens);
        return NULL;
    }
    root = json_pack("{s:o, s:{s:s, s:b}, s:{s:s}, s:{s:s, s:O, s:O}}", "added_tokens", tokens,
                     "pre_tokenizer", "type", "ByteLevel", "add_prefix_space", prefix, "decoder",
                     "type", "ByteLevel", "model", "type", "BPE", "vocab", vocab, "merges", merges);
    if (class == GPT_NEOX)
        json_object_set_new(root, "normalizer", json_pack("{s:s}", "type", "NFC"));
    return root;
}

json_t *sh_tok_gpt2(const char *folder, const json_t *config, struct sh_err *e)
{
    char *merges_path = xasprintf("%s/merges.txt", folder);
    json_t *vocab = NULL, *merges = NULL, *root = NULL;
    enum class class = class_of(folder, config, e);
    if (class != UNKNOWN && (vocab = sh_tok_load(folder, "vocab.json", 0, e)) &&
        (merges = read_merges(merges_path, e)))
        root = build(folder, vocab, merges, config, class, e);
    json_decref(vocab);
    json_decref(merges);
    free(merges_path);
    return root;
}
