/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.json to struct sh_tokenizer. "truncation" and "padding" are ignored, as the reference resets them. */
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/tokenizer/tok.h"
#include "src/tokenizer/tok_regex.h"

static int claim_id(struct sh_vocab *v, const json_t *token, const char *text, size_t n, struct sh_err *e)
{
    const json_t *given = json_object_get(token, "id");
    int32_t known = sh_vocab_find(v, text, n);
    if (!json_is_integer(given))
        return sh_fail(e, "\"%.80s\": id: found %s, expected an integer", text, sh_json_kind(given));
    json_int_t id = json_integer_value(given);
    if (id < 0 || id > SH_TOK_MAX_ID)
        return sh_fail(e, "\"%.80s\": id %lld, expected 0 to %d", text, (long long)id, SH_TOK_MAX_ID);
    if (known >= 0 && known != id)
        return sh_fail(e, "\"%.80s\": id %lld, expected %d as in the vocabulary", text, (long long)id, (int)known);
    if (sh_vocab_has(v, id) && (v->at[id].n != n || (n && memcmp(v->text.at + v->at[id].at, text, n))))
        return sh_fail(e, "\"%.80s\": id %lld is already used by \"%.*s\"", text, (long long)id,
                       v->at[id].n > 80 ? 80 : (int)v->at[id].n, v->text.at + v->at[id].at);
    if (known < 0 && !sh_vocab_has(v, id))
        sh_vocab_put(v, (int32_t)id, text, n, 1);
    return (int)id;
}

static int add_token(struct sh_tokenizer *t, const json_t *token, struct sh_watch *watch, struct sh_err *e)
{
    int lstrip, rstrip, word, normalized, special;
    size_t n;
    if (!json_is_object(token))
        return sh_fail(e, "found %s, expected an object", sh_json_kind(token));
    const char *text = sh_tok_string(token, "content", &n, e);
    if (!text || sh_tok_flag(token, "lstrip", 0, &lstrip, e) || sh_tok_flag(token, "rstrip", 0, &rstrip, e) ||
        sh_tok_flag(token, "single_word", 0, &word, e) || sh_tok_flag(token, "special", 0, &special, e) ||
        sh_tok_flag(token, "normalized", !special, &normalized, e))
        return -1;
    int id = claim_id(&t->vocab, token, text, n, e);
    unsigned flags = (lstrip ? SH_ADDED_LSTRIP : 0u) | (rstrip ? SH_ADDED_RSTRIP : 0u) |
                     (word ? SH_ADDED_WORD : 0u);
    if (id < 0 || !n) /* an empty token has an id, but no text has it */
        return id < 0 ? -1 : 0;
    if (!normalized || t->sp.type)      /* with a tokenizer.model they are always cut out first */
        return sh_added_put(&t->added, text, n, id, flags, e);
    struct sh_text form = {0}; /* it is looked for as the text will look by then */
    int bad = sh_normal_run(&t->normal, text, n, 0, &form, watch, e);
    if (!bad && form.n)
        bad = sh_added_put(&t->added_normal, form.at, form.n, id, flags, e);
    free(form.at);
    return bad;
}

int sh_tok_read_added(struct sh_tokenizer *t, const json_t *tokens, struct sh_err *e)
{
    if (tokens && !json_is_null(tokens) && !json_is_array(tokens))
        return sh_fail(e, "added_tokens: found %s, expected an array", sh_json_kind(tokens));
    struct sh_watch watch;
    sh_watch_begin(&watch, SH_TOK_SECONDS, 0);
    for (size_t i = 0; i < json_array_size(tokens); i++)
        if (add_token(t, json_array_get(tokens, i), &watch, e))
            return sh_err_prefix(e, "added_tokens: number %zu", i);
    return 0;
}

/* The id of a template's special token; -1: error. */
static int32_t template_id(const struct sh_tokenizer *t, const json_t *from, const json_t *part, struct sh_err *e)
{
    const json_t *name = json_object_get(json_object_get(part, "SpecialToken"), "id");
    const char *text = json_is_string(name) ? json_string_value(name) : "";
    const json_t *specials = json_object_get(from, "special_tokens"),
                 *ids = json_object_get(json_object_get(specials, text), "ids"),
                 *id = json_array_get(ids, 0);
    if (json_array_size(ids) != 1 || !json_is_integer(id) || !sh_vocab_has(&t->vocab, json_integer_value(id)))
        return sh_fail(e, "special_tokens: \"%.80s\": expected the id of one known token", text);
    return (int32_t)json_integer_value(id);
}

/* The template must be the text with a few special tokens before it (GLM has two) and at most one after it. */
static int read_template(struct sh_tokenizer *t, const json_t *from, struct sh_err *e)
{
    const json_t *single = json_object_get(from, "single");
    size_t n = json_array_size(single), text = 0;
    while (text < n && !json_object_get(json_array_get(single, text), "Sequence"))
        text++;
    if (text == n || text > SH_TOK_MOST_START || n > text + 2)
        return sh_fail(e, "single: only the text with at most %d special tokens before and one after it is supported",
                       SH_TOK_MOST_START);
    for (size_t i = 0; i < text; i++)
        if ((t->start[i] = template_id(t, from, json_array_get(single, i), e)) < 0)
            return -1;
    t->n_start = (int)text;
    if (n > text + 1 && (t->eos = template_id(t, from, json_array_get(single, n - 1), e)) < 0)
        return -1;
    return 0;
}

/* Roberta's and Bert's: "cls" before and "sep" after the text, each [token, id]. */
static int read_pair(struct sh_tokenizer *t, const json_t *from, struct sh_err *e)
{
    static const char *const keys[] = {"cls", "sep"};
    int32_t *to[] = {&t->start[0], &t->eos};
    for (int i = 0; i < 2; i++) {
        const json_t *id = json_array_get(json_object_get(from, keys[i]), 1);
        if (!json_is_integer(id) || !sh_vocab_has(&t->vocab, json_integer_value(id)))
            return sh_fail(e, "%s: expected [token, id] of a known token", keys[i]);
        *to[i] = (int32_t)json_integer_value(id);
    }
    t->n_start = 1;
    return 0;
}

/* ---- steps ---- */

struct sh_step *sh_steps_add(struct sh_steps *s, int kind)
{
    s->at = xreallocarray(s->at, (size_t)s->n + 1, sizeof *s->at);
    s->at[s->n] = (struct sh_step){.kind = kind};
    return &s->at[s->n++];
}

void sh_steps_free(struct sh_steps *s)
{
    for (int i = 0; i < s->n; i++) {
        sh_regex_free(s->at[i].regex);
        free(s->at[i].text.at);
        sh_sp_normal_free(s->at[i].sp);
    }
    free(s->at);
}

int sh_tok_replace(struct sh_step *to, const json_t *from, struct sh_err *e)
{
    return sh_tok_text(from, "content", &to->text, e) ||
           !(to->regex = sh_regex_read(json_object_get(from, "pattern"), e)) ? -1 : 0;
}

struct post {
    struct sh_tokenizer *t;
    int n;                              /* steps that add tokens                                  */
};

static int read_post(void *to, const char *type, const json_t *from, struct sh_err *e)
{
    struct post *p = to;
    if (!strcmp(type, "ByteLevel"))                     /* moves offsets only, no ids */
        return 0;
    if (p->n++)
        return sh_fail(e, "found a second step that adds tokens, expected at most one");
    if (!strcmp(type, "TemplateProcessing"))
        return read_template(p->t, from, e);
    if (!strcmp(type, "RobertaProcessing") || !strcmp(type, "BertProcessing"))
        return read_pair(p->t, from, e);
    return SH_TOK_NO_STEP;
}

/* One token's bytes as a label. */
static void add_label(struct sh_text *to, const char *text, size_t n)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < n;) {
        int bad, length = sh_utf8_sequence(text + i, n - i, &bad);
        unsigned char c = (unsigned char)text[i];
        char shown[4] = {'\\', 'x', hex[c >> 4], hex[c & 15]};
        if (c == '\n' || c == '\t' || c == '\r') {
            shown[1] = c == '\n' ? 'n' : c == '\t' ? 't' : 'r';
            sh_text_add(to, shown, 2);
        } else if (!length || c < 0x20 || c == 0x7f) {
            sh_text_add(to, shown, 4);
        } else if (c == ' ') {
            sh_text_add(to, "\xc2\xb7", 2);
        } else {
            sh_text_add(to, text + i, (size_t)length);
        }
        i += (size_t)(length ? length : 1);
    }
    sh_text_add(to, "", 1);
}

void sh_tok_labels(struct sh_tokenizer *t)
{
    struct sh_text bytes = {0};
    int is_byte_level = sh_decode_is_byte_level(&t->decode);
    t->label.n = 0;
    t->label_at = xreallocarray(t->label_at, t->vocab.n_id, sizeof *t->label_at);
    for (size_t id = 0; id < t->vocab.n_id; id++) {
        t->label_at[id] = (size_t)-1;
        if (!sh_vocab_has(&t->vocab, (long long)id))
            continue;
        const char *text = t->vocab.text.at + t->vocab.at[id].at;
        size_t n = t->vocab.at[id].n;
        bytes.n = 0;
        if (!is_byte_level)
            sh_sp_put_spaced(text, n, &bytes);
        else if (sh_bytelevel_decode(&bytes, text, n))
            sh_text_add(&bytes, text, n);
        t->label_at[id] = t->label.n;
        add_label(&t->label, bytes.at, bytes.n);
    }
    free(bytes.at);
}

static int read_model(struct sh_tokenizer *t, const json_t *model, struct sh_err *e)
{
    const json_t *type = json_object_get(model, "type");
    const char *name = json_is_string(type) ? json_string_value(type) : "BPE";
    t->is_unigram = !strcmp(name, "Unigram");
    if (t->is_unigram)
        return sh_unigram_read(&t->unigram, &t->vocab, model, e);
    if (!strcmp(name, "Ranks"))
        return sh_vocab_read(&t->vocab, json_object_get(model, "vocab"), e) ||
               sh_bpe_from_ranks(&t->bpe, &t->vocab, e) ? -1 : 0;
    if (strcmp(name, "BPE"))
        return sh_fail(e, "type: %.80s is not supported, only BPE and Unigram are", name);
    return sh_vocab_read(&t->vocab, json_object_get(model, "vocab"), e) ||
           sh_bpe_read(&t->bpe, &t->vocab, model, e) ? -1 : 0;
}

int sh_tok_read(struct sh_tokenizer *t, const json_t *root, struct sh_err *e)
{
    const json_t *model = json_object_get(root, "model");
    struct post post = {.t = t};
    const struct sh_tok_steps steps[] = {
        {"normalizer", "normalizers", sh_normal_step, &t->normal, &t->normal.n},
        {"pre_tokenizer", "pretokenizers", sh_split_step, &t->split, &t->split.n},
        {"decoder", "decoders", sh_decode_step, &t->decode, &t->decode.n},
        {"post_processor", "processors", read_post, &post, &post.n}};
    t->n_start = 0;
    t->eos = -1;
    if (!json_is_object(model))
        return sh_fail(e, "model: found %s, expected an object", sh_json_kind(model));
    if (read_model(t, model, e))
        return sh_err_prefix(e, "model");
    for (int i = 0; i < 3; i++)
        if (sh_tok_read_steps(&steps[i], json_object_get(root, steps[i].what), e))
            return -1;
    if (sh_tok_read_added(t, json_object_get(root, "added_tokens"), e) ||
        sh_tok_read_steps(&steps[3], json_object_get(root, steps[3].what), e))
        return -1;
    sh_tok_labels(t);
    return 0;
}
