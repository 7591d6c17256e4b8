/* SPDX-License-Identifier: Apache-2.0 */
/* See tokenizer.h. A text passes five stations: added tokens are cut out, the rest is normalised,
 * added tokens of normalised text are cut out, the rest is cut into pieces, pieces become ids. */
#include "src/model/tokenizer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/model/tok.h"

/* ---- opening ---- */

/* The id of a token by its string, added tokens included; -1: none. */
static int32_t id_of(const struct sh_tokenizer *t, const char *text, size_t n)
{
    int32_t id = sh_vocab_find(&t->vocab, text, n);
    for (size_t i = 0; id < 0 && i < t->vocab.n_id; i++) {
        const struct sh_span *s = &t->vocab.at[i];
        if (sh_vocab_has(&t->vocab, (long long)i) && s->n == n &&
            !memcmp(t->vocab.text.at + s->at, text, n))
            id = (int32_t)i;
    }
    return id;
}

/* tokenizer_config.json has the last word on the token in front, as in the reference. */
static int apply_config(struct sh_tokenizer *t, const json_t *config, struct sh_err *e)
{
    int front, behind;
    if (sh_tok_flag(config, "add_bos_token", -1, &front, e) ||
        sh_tok_flag(config, "add_eos_token", 0, &behind, e))
        return -1;
    if (behind)
        return sh_fail(e, "add_eos_token: a token behind every text is not supported");
    if (front == 0)
        t->bos = -1;
    if (front != 1 || t->bos >= 0)
        return 0;
    const json_t *token = json_object_get(config, "bos_token");
    if (json_is_object(token))
        token = json_object_get(token, "content");
    if (!json_is_string(token))
        return sh_fail(e, "bos_token: found %s, expected a token, since add_bos_token is true",
                       sh_tok_kind(token));
    t->bos = id_of(t, json_string_value(token), json_string_length(token));
    if (t->bos < 0)
        return sh_fail(e, "bos_token: \"%.80s\" is no token", json_string_value(token));
    return 0;
}

static int has(const char *folder, const char *name)
{
    char *path = xasprintf("%s/%s", folder, name);
    int there = access(path, F_OK) == 0;
    free(path);
    return there;
}

static json_t *load(const char *folder, const char *name, int loose, struct sh_err *e)
{
    char *path = xasprintf("%s/%s", folder, name);
    json_t *root = sh_tok_load(path, loose, e);
    free(path);
    return root;
}

static json_t *content_of(const char *folder, const json_t *config, struct sh_err *e)
{
    if (has(folder, "tokenizer.json"))
        return load(folder, "tokenizer.json", 0, e);
    if (has(folder, "vocab.json") && has(folder, "merges.txt"))
        return sh_tok_gpt2(folder, config, e);
    if (has(folder, "tokenizer.model")) {
        sh_fail(e, "%s: tokenizer.model (SentencePiece) is not supported, tokenizer.json is",
                folder);
        sh_hint(e,
                "save the tokenizer once with the tokenizers library: that writes tokenizer.json");
    } else {
        sh_fail(e, "%s: found neither tokenizer.json nor vocab.json and merges.txt", folder);
    }
    return NULL;
}

struct sh_tokenizer *sh_tokenizer_open(const char *folder, struct sh_err *e)
{
    json_t *config = NULL, *root;
    if (has(folder, "tokenizer_config.json") &&
        !(config = load(folder, "tokenizer_config.json", 1, e)))
        return NULL;
    if (!(root = content_of(folder, config, e))) {
        json_decref(config);
        return NULL;
    }
    struct sh_tokenizer *t = xcalloc(1, sizeof *t);
    int bad = sh_tok_read(t, root, e);
    if (bad)
        sh_err_prefix(e, "%s/%s", folder,
                      has(folder, "tokenizer.json") ? "tokenizer.json" : "vocab.json, merges.txt");
    else if (config && (bad = apply_config(t, config, e)))
        sh_err_prefix(e, "%s/tokenizer_config.json", folder);
    json_decref(root);
    json_decref(config);
    if (bad) {
        sh_tokenizer_free(t);
        return NULL;
    }
    return t;
}

void sh_tokenizer_free(struct sh_tokenizer *t)
{
    if (!t)
        return;
    sh_vocab_free(&t->vocab);
    sh_added_free(&t->added);
    sh_added_free(&t->added_normal);
    sh_normal_free(&t->normal);
    sh_split_free(&t->split);
    sh_bpe_free(&t->bpe);
    sh_decode_free(&t->decode);
    free(t->label.at);
    free(t->label_at);
    free(t);
}

/* ---- encoding ---- */

struct work {
    const struct sh_tokenizer *t;
    struct sh_bpe_work *bpe;
    struct sh_text normal;
    struct sh_pieces pieces, spare;
    struct sh_ids *out;
    struct sh_err *e;
};

/* Normalised text without added tokens. */
static int plain(struct work *w, const char *text, size_t n, int at_start)
{
    struct sh_pieces *p = &w->pieces;
    if (!n)
        return 0;
    sh_pieces_clear(p);
    sh_text_add(&p->text, text, n);
    sh_pieces_add(p, 0, n);
    if (sh_split_run(&w->t->split, p, &w->spare, at_start, w->e))
        return -1;
    for (size_t i = 0; i < p->n; i++)
        if (sh_bpe_encode(w->bpe, p->text.at + p->at[i].at, p->at[i].n, w->out, w->e))
            return -1;
    return 0;
}

/* Text as it came, without the added tokens that are cut out first. */
static int normalised(struct work *w, const char *text, size_t n, int at_start)
{
    struct sh_added_match m;
    size_t done = 0;
    if (!n)
        return 0;
    if (w->t->normal.n) {
        w->normal.n = 0;
        if (sh_normal_run(&w->t->normal, text, n, &w->normal, w->e))
            return -1;
        text = w->normal.at;
        n = w->normal.n;
    }
    while (sh_added_next(&w->t->added_normal, text, n, done, &m)) {
        if (plain(w, text + done, m.at - done, at_start && !done))
            return -1;
        sh_ids_add(w->out, m.id);
        done = m.end;
    }
    return plain(w, text + done, n - done, at_start && !done);
}

static int all(struct work *w, const char *text, size_t n)
{
    struct sh_added_match m;
    size_t done = 0;
    while (sh_added_next(&w->t->added, text, n, done, &m)) {
        if (normalised(w, text + done, m.at - done, !done))
            return -1;
        sh_ids_add(w->out, m.id);
        done = m.end;
    }
    return normalised(w, text + done, n - done, !done);
}

int sh_tokenizer_encode(const struct sh_tokenizer *t, const char *text, size_t bytes,
                        int with_special, struct sh_ids *out, struct sh_err *e)
{
    size_t before = out->n, valid = sh_utf8_valid(text, bytes);
    if (valid < bytes)
        return sh_fail(e, "the text is not UTF-8: byte 0x%02X at offset %zu begins no character",
                       (unsigned char)text[valid], valid);
    if (bytes > (size_t)1 << 30)
        return sh_fail(e, "the text has %zu bytes: at most 1 GiB is taken at a time", bytes);
    struct work w = {.t = t, .bpe = sh_bpe_begin(&t->bpe), .out = out, .e = e};
    if (with_special && t->bos >= 0)
        sh_ids_add(out, t->bos);
    int bad = all(&w, text, bytes);
    if (bad)
        out->n = before;
    sh_bpe_end(w.bpe);
    free(w.normal.at);
    sh_pieces_free(&w.pieces);
    sh_pieces_free(&w.spare);
    return bad;
}

/* ---- decoding ---- */

char *sh_tokenizer_decode(const struct sh_tokenizer *t, const int32_t *ids, size_t n, size_t *bytes)
{
    struct sh_pieces p = {0};
    struct sh_text out = {0};
    for (size_t i = 0; i < n; i++) {
        if (!sh_vocab_has(&t->vocab, ids[i]))
            continue;
        const struct sh_span *s = &t->vocab.at[ids[i]];
        sh_pieces_add(&p, p.text.n, s->n);
        sh_text_add(&p.text, t->vocab.text.at + s->at, s->n);
    }
    sh_decode_run(&t->decode, &p, &out);
    sh_pieces_free(&p);
    *bytes = out.n;
    sh_text_add(&out, "", 1);
    return out.at;
}

int sh_tokenizer_bos(const struct sh_tokenizer *t)
{
    return t->bos;
}

int sh_tokenizer_size(const struct sh_tokenizer *t)
{
    return (int)t->vocab.n_id;
}

const char *sh_tokenizer_piece(const struct sh_tokenizer *t, int32_t id)
{
    return sh_vocab_has(&t->vocab, id) ? t->label.at + t->label_at[id] : NULL;
}
