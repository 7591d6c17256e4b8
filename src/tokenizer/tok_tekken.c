/* SPDX-License-Identifier: Apache-2.0 */
/* tekken.json, which comes with the models of Mistral AI and which mistral_common reads: "config" has the expression
 * that cuts texts and two sizes, "vocab" the tokens by rank (more than are used), "special_tokens" names. Special
 * tokens have the first ids, the others their rank after these. Special tokens without a name are <SPECIAL_20> and so
 * on; files of versions up to v7 name none and have those of `unnamed`. <s> begins every text.
 *
 * Special tokens are cut out of texts here, as the tokenizer.json of the same models has it; mistral_common takes their
 * names in texts for text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/tokenizer/tok.h"
#include "src/tokenizer/tok_rank_list.h"

enum { MOST_SPECIAL = 1 << 16 };        /* published files have 1000 */

static const char *const unnamed[] = {
    "<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]",
    "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"};
enum { N_UNNAMED = sizeof unnamed / sizeof *unnamed };

struct tekken {
    const char *pattern;
    int n_special, n_token;             /* the ids of special tokens, and those after them */
    struct sh_rank_list list;
    json_t *added;                      /* "added_tokens" */
    int begins;                         /* is <s> among them? */
};

/* ---- parts of the file ---- */

static int whole_number(const json_t *o, const char *key, int least, int most, int *out, struct sh_err *e)
{
    const json_t *value = json_object_get(o, key);
    json_int_t n = json_integer_value(value);
    if (!json_is_integer(value))
        return sh_fail(e, "%s: found %s, expected a whole number", key, sh_json_kind(value));
    if (n < least || n > most)
        return sh_fail(e, "%s: found %lld, expected %d to %d", key, (long long)n, least, most);
    *out = (int)n;
    return 0;
}

/* One with a U+0000 would end there. */
static const char *whole_text(const json_t *o, const char *key, struct sh_err *e)
{
    size_t n;
    const char *text = sh_tok_string(o, key, &n, e);
    if (text && strlen(text) != n)
        return sh_fail_null(e, "%s: found U+0000 in it, expected none", key);
    return text;
}

static int read_config(struct tekken *t, const json_t *config, size_t n_vocab, struct sh_err *e)
{
    int size;
    if (!(t->pattern = whole_text(config, "pattern", e)) ||
        whole_number(config, "default_num_special_tokens", 0, MOST_SPECIAL, &t->n_special, e) ||
        whole_number(config, "default_vocab_size", t->n_special + 256, SH_TOK_MAX_ID, &size, e))
        return -1;
    t->n_token = size - t->n_special;
    if (n_vocab < (size_t)t->n_token)
        return sh_fail(e, "default_vocab_size: found %d, expected at most %zu: the special tokens and the vocabulary",
                       size, n_vocab + (size_t)t->n_special);
    return 0;
}

static int read_token(struct tekken *t, const json_t *token, int rank, struct sh_err *e)
{
    size_t n;
    int found;
    const char *bytes;
    if (whole_number(token, "rank", rank, rank, &found, e) || !(bytes = sh_tok_string(token, "token_bytes", &n, e)))
        return -1;
    if (sh_rank_list_bytes(&t->list, bytes, n))
        return sh_fail(e, "token_bytes: found \"%.40s\", expected base64", bytes);
    return sh_rank_list_add(&t->list, t->n_special + rank, e);
}

static int read_vocab(struct tekken *t, const json_t *vocab, struct sh_err *e)
{
    for (int i = 0; i < t->n_token; i++)
        if (read_token(t, json_array_get(vocab, (size_t)i), i, e))
            return sh_err_prefix(e, "vocab[%d]", i);
    return sh_rank_list_check(&t->list, e) ? sh_err_prefix(e, "vocab") : 0;
}

/* ---- special tokens ---- */

/* The names that the file has, by id; they belong to it. */
static int read_names(const struct tekken *t, const json_t *special, const char **names, struct sh_err *e)
{
    size_t i, n_special = json_array_size(special);
    json_t *one;
    if (n_special > (size_t)t->n_special)
        return sh_fail(e, "special_tokens: found %zu, expected at most default_num_special_tokens, %d", n_special,
                       t->n_special);
    json_array_foreach(special, i, one) {
        int rank;
        const char *name;
        if (whole_number(one, "rank", 0, (int)n_special - 1, &rank, e) ||
            !(name = whole_text(one, "token_str", e)))
            return sh_err_prefix(e, "special_tokens[%zu]", i);
        if (!*name || names[rank])
            return sh_fail(e, "special_tokens[%zu]: %s", i, *name ? "the rank is there already" : "token_str is empty");
        names[rank] = name;
    }
    return 0;
}

static int take_unnamed(const struct tekken *t, const json_t *config, const char **names, struct sh_err *e)
{
    static const char *const versions[] = {"v1", "v2", "v3", "v7"};
    const char *version = json_string_value(json_object_get(config, "version"));
    for (size_t i = 0; version && i < sizeof versions / sizeof *versions; i++)
        if (!strcmp(version, versions[i])) {
            for (int k = 0; k < N_UNNAMED && k < t->n_special; k++)
                names[k] = unnamed[k];
            return 0;
        }
    return sh_fail(e, "special_tokens: found nothing, expected an array: only files of versions v1, v2, v3 and v7 may "
                   "have none, and this is %.40s", version ? version : "of no version");
}

static int add_special(struct tekken *t, const char *const *names, struct sh_err *e)
{
    json_t *seen = json_object();
    int bad = 0;
    t->added = json_array();
    for (int i = 0; i < t->n_special && !bad; i++) {
        char made[32];
        snprintf(made, sizeof made, "<SPECIAL_%d>", i);
        const char *name = names[i] ? names[i] : made;
        if (json_object_get(seen, name))
            bad = sh_fail(e, "special_tokens: two tokens are \"%.40s\"", name);
        json_object_set_new(seen, name, json_true());
        json_array_append_new(t->added, json_pack("{s:s, s:i, s:b}", "content", name, "id", i, "special", 1));
    }
    t->begins = json_object_get(seen, "<s>") != NULL;
    json_decref(seen);
    return bad;
}

static int read_special(struct tekken *t, const json_t *root, struct sh_err *e)
{
    const json_t *special = json_object_get(root, "special_tokens");
    const char **names = xcalloc((size_t)t->n_special + 1, sizeof *names);
    int bad = special && !json_is_null(special) && !json_is_array(special)
                  ? sh_fail(e, "special_tokens: found %s, expected an array", sh_json_kind(special))
                  : json_is_array(special) ? read_names(t, special, names, e)
                                           : take_unnamed(t, json_object_get(root, "config"), names, e);
    bad = bad || add_special(t, names, e) ? -1 : 0;
    free(names);
    return bad;
}

/* ---- the whole ---- */

static int read_file(struct tekken *t, const json_t *root, struct sh_err *e)
{
    static const char *const parts[] = {"config", "vocab"};
    const json_t *config = json_object_get(root, parts[0]), *vocab = json_object_get(root, parts[1]);
    if (!json_is_object(config) || !json_is_array(vocab)) {
        int i = json_is_object(config);
        return sh_fail(e, "%s: found %s, expected an %s", parts[i], sh_json_kind(i ? vocab : config),
                       i ? "array" : "object");
    }
    if (read_config(t, config, json_array_size(vocab), e))
        return sh_err_prefix(e, "config");
    return read_vocab(t, vocab, e) || read_special(t, root, e) ? -1 : 0;
}

static json_t *build(const struct tekken *t, struct sh_err *e)
{
    static const char *const before[] = {"<s>", NULL};
    json_t *root = sh_tok_cut(t->pattern);
    json_object_set(root, "added_tokens", t->added);
    json_object_set_new(root, "model", json_pack("{s:s, s:O}", "type", "Ranks", "vocab", t->list.vocab));
    if (t->begins)
        json_object_set_new(root, "post_processor", sh_tok_begins_with(before, t->added, e));
    return root;
}

json_t *sh_tok_tekken(const char *folder, struct sh_err *e)
{
    struct tekken t = {.added = NULL};
    json_t *file = sh_tok_load(folder, "tekken.json", 0, e), *root = NULL;
    if (!file)
        return NULL;
    sh_rank_list_begin(&t.list);
    if (read_file(&t, file, e))
        sh_err_prefix(e, "%s/tekken.json", folder);
    else
        root = build(&t, e);
    sh_rank_list_free(&t.list);
    json_decref(t.added);
    json_decref(file);
    return root;
}
