/* SPDX-License-Identifier: Apache-2.0 */
/* A folder's files, or a GGUF file, to a tokenizer; see tokenizer.h. */
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/files/checkpoint.h"
#include "src/model/files/gguf_tensors.h"
#include "src/tokenizer/tok.h"

/* The id of a token by its string, added tokens included; -1: none. */
static int32_t id_of(const struct sh_tokenizer *t, const char *text, size_t n)
{
    int32_t id = sh_vocab_find(&t->vocab, text, n);
    for (size_t i = 0; id < 0 && i < t->vocab.n_id; i++) {
        const struct sh_span *s = &t->vocab.at[i];
        if (sh_vocab_has(&t->vocab, (long long)i) && s->n == n && !memcmp(t->vocab.text.at + s->at, text, n))
            id = (int32_t)i;
    }
    return id;
}

/* The id of the token that the config names under `key`; -1: error. */
static int32_t named(const struct sh_tokenizer *t, const json_t *config, const char *key, struct sh_err *e)
{
    const json_t *token = json_object_get(config, key);
    if (json_is_object(token))
        token = json_object_get(token, "content");
    if (!json_is_string(token))
        return sh_fail(e, "%s: found %s, expected a token because add_%s is true", key, sh_json_kind(token), key);
    int32_t id = id_of(t, json_string_value(token), json_string_length(token));
    return id >= 0 ? id : sh_fail(e, "%s: \"%.80s\" is not a token", key, json_string_value(token));
}

/* Some classes build the post_processor of a tokenizer.json anew from the two flags below; others ignore the flags. */
static int heeds_flags(const json_t *config)
{
    static const char *const families[] = {"Llama", "CodeLlama", "Gemma", "Cohere", "GPTNeoX"};
    const json_t *class = json_object_get(config, "tokenizer_class");
    const char *name = json_is_string(class) ? json_string_value(class) : "LlamaTokenizer";
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        size_t n = strlen(families[i]);
        if (!strncmp(name, families[i], n) && (!strcmp(name + n, "Tokenizer") || !strcmp(name + n, "TokenizerFast")))
            return 1;
    }
    return 0;
}

/* tokenizer_config.json has the last word on the tokens before and after the text. */
static int apply_config(struct sh_tokenizer *t, const json_t *config, struct sh_err *e)
{
    static const char *const keys[] = {"bos_token", "eos_token"};
    int32_t *to[] = {&t->start[0], &t->eos};
    int wanted[2];
    if (sh_tok_flag(config, "add_bos_token", -1, &wanted[0], e) ||
        sh_tok_flag(config, "add_eos_token", -1, &wanted[1], e))
        return -1;
    for (int i = 0; i < 2; i++) {
        int has_one = i ? t->eos >= 0 : t->n_start > 0;
        if (wanted[i] == 1 && !has_one && (*to[i] = named(t, config, keys[i], e)) < 0)
            return -1;
    }
    t->n_start = wanted[0] == 0 ? 0 : wanted[0] == 1 && !t->n_start ? 1 : t->n_start;
    t->eos = wanted[1] == 0 ? -1 : t->eos;
    return 0;
}

/* What a folder has. */
struct files {
    int whole, tekken, pair, model;     /* tokenizer.json; tekken.json; vocab.json and merges.txt; tokenizer.model */
    const char *ranks;                  /* a rank list's name; NULL: none */
};

/* tokenizer.json, or what the others come to. */
static int open_json(struct sh_tokenizer *t, const char *folder, const json_t *config, const struct files *f,
                     struct sh_err *e)
{
    const char *name = f->whole ? "tokenizer.json" : f->tekken ? "tekken.json" : f->ranks ? f->ranks
                                                                               : "vocab.json, merges.txt";
    json_t *root = f->whole ? sh_tok_load(folder, name, 0, e)
                            : f->tekken ? sh_tok_tekken(folder, e)
                                        : f->ranks ? sh_tok_ranks(folder, name, config, e)
                                                   : sh_tok_gpt2(folder, config, e);
    if (!root || (f->whole && sh_tok_folder_more(folder, config, root, e))) {
        json_decref(root);
        return -1;
    }
    int bad = sh_tok_read(t, root, e);
    json_decref(root);
    return bad ? sh_err_prefix(e, "%s/%s", folder, name) : 0;
}

/* The special tokens named by the files next to tokenizer.model are cut out of texts. */
static int add_named(struct sh_tokenizer *t, const char *folder, const json_t *config, struct sh_err *e)
{
    json_t *ids = json_object();
    for (size_t i = 0; i < t->sp.n_type; i++)
        if (t->sp.type[i] != SH_TOK_NORMAL && t->sp.type[i] != SH_TOK_BYTE) {
            const struct sh_span *s = &t->vocab.at[i];
            json_t *text = json_stringn(t->vocab.text.at + s->at, s->n);
            json_object_set_new(ids, json_string_value(text), json_integer((json_int_t)i));
            json_decref(text);
        }
    json_t *tokens = sh_tok_folder_added(folder, config, ids, e);
    int bad = !tokens || sh_tok_read_added(t, tokens, e);
    json_decref(ids);
    json_decref(tokens);
    return bad;
}

/* tokenizer_config.json tells whether a leading space is wanted at all and, with "legacy" false, only at the start of
 * the text. */
static int open_model(struct sh_tokenizer *t, const char *folder, const json_t *config, struct sh_err *e)
{
    struct sh_sp_model model;
    char *path = xasprintf("%s/tokenizer.model", folder);
    int legacy = 1, prefix = 1, bad = sh_sp_model_open(&model, path, e);
    if (!bad && (sh_tok_flag(config, "legacy", 1, &legacy, e) ||
                 sh_tok_flag(config, "add_prefix_space", 1, &prefix, e))) {
        bad = sh_err_prefix(e, "%s/tokenizer_config.json", folder);
        sh_sp_model_close(&model);
    } else if (!bad) {
        model.arrays.add_prefix &= prefix;
        model.arrays.prefix_once = !legacy;
        bad = sh_tok_read_arrays(t, &model.arrays, e);
        sh_sp_model_close(&model);
        if (bad || (bad = add_named(t, folder, config, e)))
            sh_err_prefix(e, "%s", path);
        else
            sh_tok_labels(t);
    }
    free(path);
    return bad;
}

static int open_files(struct sh_tokenizer *t, const char *folder, const struct files *f, struct sh_err *e)
{
    json_t *config = NULL;
    if (sh_tok_has(folder, "tokenizer_config.json") && !(config = sh_tok_load(folder, "tokenizer_config.json", 1, e)))
        return -1;
    int is_json = f->whole || f->tekken || f->ranks || f->pair;
    int bad = is_json ? open_json(t, folder, config, f, e) : open_model(t, folder, config, e);
    if (!bad && config && (!f->whole || heeds_flags(config)) && (bad = apply_config(t, config, e)))
        sh_err_prefix(e, "%s/tokenizer_config.json", folder);
    json_decref(config);
    return bad;
}

/* A GGUF file is complete: files next to it come from elsewhere and are not read. */
static int open_gguf(struct sh_tokenizer *t, const char *path, struct sh_err *e)
{
    char *file;
    if (sh_gguf_path(path, &file, e))
        return -1;
    int bad = file ? sh_tok_open_gguf(t, file, e)
                   : sh_fail(e, "%s: found no tokenizer, expected tokenizer.json, vocab.json with merges.txt, "
                             "tokenizer.model, tekken.json, tiktoken.model or qwen.tiktoken", path);
    free(file);
    return bad;
}

static struct sh_tokenizer *open_path(const char *path, struct sh_err *e)
{
    struct sh_tokenizer *t = xcalloc(1, sizeof *t);
    struct files f = {.whole = sh_tok_has(path, "tokenizer.json"), .tekken = sh_tok_has(path, "tekken.json"),
                      .pair = sh_tok_has(path, "vocab.json") && sh_tok_has(path, "merges.txt"),
                      .model = sh_tok_has(path, "tokenizer.model")};
    f.ranks = f.whole ? NULL : sh_tok_ranks_file(path);
    int in_files = f.whole || f.tekken || f.ranks || f.pair || f.model;
    if (!(in_files ? open_files(t, path, &f, e) : open_gguf(t, path, e)))
        return t;
    sh_tokenizer_free(t);
    return NULL;
}

struct sh_tokenizer *sh_tokenizer_open(const char *path, struct sh_err *e)
{
    char *folder = sh_checkpoint_folder(path);
    struct sh_tokenizer *t = open_path(folder ? folder : path, e);
    free(folder);
    return t;
}
