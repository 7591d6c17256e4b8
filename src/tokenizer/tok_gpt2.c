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

/* Is each token that the class would else make <|endoftext|> named in one of the files? */
static int names_ends(const char *folder, const json_t *config, int *bad, struct sh_err *e)
{
    static const char *const names[] = {"bos_token", "eos_token", "unk_token"};
    json_t *map = sh_tok_optional(folder, "special_tokens_map.json", bad, e);
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
