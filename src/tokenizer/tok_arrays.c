/* SPDX-License-Identifier: Apache-2.0 */
/* See tok.h. What is refused here the SentencePiece library refuses, too. */
#include "src/tokenizer/tok.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

#define LONGEST 8000u                   /* bytes of a token */

static int type_of(const struct sh_tok_arrays *a, size_t id)
{
    return a->type ? a->type[id] : SH_TOK_NORMAL;
}

static int shown(const struct sh_tok_string *s)
{
    return s->n > 80 ? 80 : (int)s->n;
}

/* Normal tokens take part in the model, unused ones where they are made of others; the rest only have an id. */
static int put_token(struct sh_tokenizer *t, const struct sh_tok_arrays *a, size_t id, struct sh_err *e)
{
    const struct sh_tok_string *s = &a->token[id];
    int type = type_of(a, id), hidden = type != SH_TOK_NORMAL, bad;
    if (type < SH_TOK_NORMAL || type > SH_TOK_BYTE)
        return sh_fail(e, "token %zu has type %d, expected %d to %d", id, type, SH_TOK_NORMAL, SH_TOK_BYTE);
    if (!s->n || s->n >= LONGEST)
        return sh_fail(e, "token %zu has %zu bytes, expected 1 to %u", id, s->n, LONGEST - 1);
    if (sh_utf8_valid(s->at, s->n) < s->n || memchr(s->at, '\0', s->n))
        return sh_fail(e, "token %zu is not valid UTF-8 or contains a NUL", id);
    if (type == SH_TOK_UNUSED && (size_t)sh_utf8_sequence(s->at, s->n, &bad) < s->n)
        hidden = 0;
    if (!hidden && sh_vocab_find(&t->vocab, s->at, s->n) >= 0)
        return sh_fail(e, "token %zu: \"%.*s\" is a duplicate", id, shown(s), s->at);
    sh_vocab_put(&t->vocab, (int32_t)id, s->at, s->n, hidden);
    return 0;
}

/* The ids of byte tokens and of the unknown one. */
static int find_special(const struct sh_tok_arrays *a, int32_t bytes[256], int32_t *unknown, struct sh_err *e)
{
    memset(bytes, -1, 256 * sizeof *bytes);
    *unknown = -1;
    for (size_t i = 0; i < a->n; i++) {
        int type = type_of(a, i), byte;
        if (type == SH_TOK_UNKNOWN && *unknown >= 0)
            return sh_fail(e, "tokens %d and %zu are both of type unknown, expected one", (int)*unknown, i);
        if (type == SH_TOK_UNKNOWN)
            *unknown = (int32_t)i;
        if (type != SH_TOK_BYTE)
            continue;
        byte = sh_byte_of(a->token[i].at, a->token[i].n);
        if (!a->byte_fallback || byte < 0)
            return sh_fail(e, "token %zu, \"%.*s\", is of type byte, but %s", i, shown(&a->token[i]), a->token[i].at,
                           byte < 0 ? "its text is not <0xXX>" : "byte_fallback is off");
        bytes[byte] = (int32_t)i;
    }
    for (int i = 0; i < 256 && a->byte_fallback; i++)
        if (bytes[i] < 0)
            return sh_fail(e, "byte_fallback: no token for byte 0x%02X", (unsigned)i);
    if (*unknown < 0 && !a->byte_fallback)
        return sh_fail(e, "found neither an unknown token nor a token for each byte, expected one or the other");
    return 0;
}

static int has_space_mark(const struct sh_tok_string *s)
{
    return memmem(s->at, s->n, "\xe2\x96\x81", 3) != NULL;
}

static unsigned added_flags(const struct sh_tok_arrays *a, const struct sh_tok_string *token)
{
    static const char *const leave[] = {"<unk>", "<s>", "<|endoftext|>"};
    for (size_t i = 0; i < sizeof leave / sizeof *leave; i++)
        if (token->n == strlen(leave[i]) && !memcmp(token->at, leave[i], token->n))
            return 0;
    return a->takes_spaces ? SH_ADDED_RSTRIP : 0;
}

/* Where tokens that are not made of others are cut out of: the text as it comes, or the normalised text, in which
 * normalisation must then leave them as they are. (Older GGUF files of Gemma have runs of U+2581, later ones of
 * spaces.) */
static int put_added(struct sh_tokenizer *t, const struct sh_tok_arrays *a,
                     struct sh_sp_normal *normal, struct sh_err *e)
{
    for (size_t i = 0; i < a->n; i++) {
        const struct sh_tok_string *s = &a->token[i];
        int type = type_of(a, i), bad = 0;
        if (type != SH_TOK_USER && type != SH_TOK_CONTROL && type != SH_TOK_UNKNOWN)
            continue;
        if (a->specials_in_text)
            bad = sh_added_put(&t->added, s->at, s->n, (int32_t)i, added_flags(a, s), e) ||
                  (type == SH_TOK_USER && !t->is_unigram && has_space_mark(s) &&
                   sh_added_put(&t->added_normal, s->at, s->n, (int32_t)i, 0, e));
        else if (type == SH_TOK_USER)
            bad = sh_added_put(&normal->user, s->at, s->n, (int32_t)i, 0, e) ||
                  (!t->is_unigram && sh_added_put(&t->added_normal, s->at, s->n, (int32_t)i, 0, e));
        if (bad)
            return sh_err_prefix(e, "token %zu", i);
    }
    return 0;
}

static int read_unigram(struct sh_tokenizer *t, const struct sh_tok_arrays *a, struct sh_err *e)
{
    struct sh_unigram *u = &t->unigram;
    float lowest = FLT_MAX;
    *u = (struct sh_unigram){.vocab = &t->vocab, .single = 1};
    if (find_special(a, u->byte_id, &u->unknown, e))
        return -1;
    for (size_t i = 0; i < a->n; i++)
        if (type_of(a, i) == SH_TOK_NORMAL)
            lowest = fminf(lowest, a->score[i]);
    if (u->unknown < 0)
        return sh_fail(e, "found no unknown token, expected one");
    u->unknown_score = (double)(lowest - 10);
    u->score = xcalloc(a->n, sizeof *u->score);
    for (size_t i = 0; i < a->n; i++) {
        int is_user = type_of(a, i) == SH_TOK_USER;     /* always wins: no score of the others is above 0 */
        float score = is_user ? (float)(0.1 * (double)(a->token[i].n - 1)) : a->score[i];
        if ((is_user || type_of(a, i) == SH_TOK_NORMAL) && sh_unigram_put(u, (int32_t)i, (double)score, e))
            return sh_err_prefix(e, "token %zu", i);
    }
    return 0;
}

static int read_scores(struct sh_tokenizer *t, const struct sh_tok_arrays *a, struct sh_err *e)
{
    int32_t *type = xreallocarray(NULL, a->n, sizeof *type);
    for (size_t i = 0; i < a->n; i++)
        type[i] = type_of(a, i);
    int bad = sh_bpe_from_scores(&t->bpe, &t->vocab, a->score, type, e);
    free(type);
    t->bpe.byte_fallback = a->byte_fallback;
    return bad ? -1 : find_special(a, t->bpe.byte_id, &t->bpe.unknown, e);
}

/* BPE by merges: the tokenizer.json that says the same. */
static json_t *as_json(const struct sh_tok_arrays *a, struct sh_err *e)
{
    json_t *pre = a->pre ? sh_tok_pre(a->pre) : NULL, *vocab, *merges, *added;
    if (!pre)
        return sh_fail_null(e, "pre-tokenizer: %.80s is not supported", a->pre ? a->pre : "an unnamed one");
    vocab = json_object();
    merges = json_array();
    added = json_array();
    int bad = 0;
    for (size_t i = 0; i < a->n && !bad; i++) {
        const struct sh_tok_string *s = &a->token[i];
        int type = type_of(a, i) == SH_TOK_BYTE ? SH_TOK_NORMAL : type_of(a, i);
        json_t *id = json_integer((json_int_t)i), *text = json_stringn(s->at, s->n);
        if (!text || memchr(s->at, '\0', s->n))
            bad = sh_fail(e, "token %zu is not valid UTF-8 or contains a NUL", i);
        else if (type == SH_TOK_NORMAL && json_object_get(vocab, json_string_value(text)))
            bad = sh_fail(e, "token %zu: \"%.*s\" is a duplicate", i, shown(s), s->at);
        else if (type == SH_TOK_NORMAL)
            json_object_set(vocab, json_string_value(text), id);
        else if (type != SH_TOK_UNUSED)         /* those pad the embedding: no text is ever one */
            json_array_append_new(added, json_pack("{s:O, s:O, s:b}", "content", text, "id", id,
                                                   "special", type != SH_TOK_USER));
        json_decref(id);
        json_decref(text);
    }
    for (size_t i = 0; i < a->n_merge && !bad; i++)
        if (json_array_append_new(merges, json_stringn(a->merge[i].at, a->merge[i].n)))
            bad = sh_fail(e, "merge %zu is not valid UTF-8", i);
    json_object_set_new(pre, "added_tokens", added);
    json_object_set_new(pre, "model", json_pack("{s:s, s:o, s:o, s:b, s:b}", "type", "BPE", "vocab", vocab, "merges",
                                  merges, "ignore_merges", json_is_true(json_object_get(pre, "ignore_merges")),
                                  "byte_fallback", json_is_true(json_object_get(pre, "byte_fallback"))));
    if (!bad)
        return pre;
    json_decref(pre);
    return NULL;
}

static int set_ends(struct sh_tokenizer *t, const struct sh_tok_arrays *a, struct sh_err *e)
{
    int32_t ends[2] = {a->add_bos ? a->bos : -1, a->add_eos ? a->eos : -1};
    for (int i = 0; i < 2; i++)
        if (ends[i] < -1 || (ends[i] >= 0 && (size_t)ends[i] >= a->n) ||
            (ends[i] == -1 && (i ? a->add_eos : a->add_bos)))
            return sh_fail(e, "%s: id %d, expected 0 to %zu", i ? "eos" : "bos", (int)ends[i], a->n - 1);
    t->start[0] = ends[0];
    t->n_start = ends[0] >= 0;
    t->eos = ends[1];
    return 0;
}

int sh_tok_read_arrays(struct sh_tokenizer *t, const struct sh_tok_arrays *a, struct sh_err *e)
{
    t->n_start = 0;
    t->eos = -1;
    if (!a->n || a->n > (size_t)SH_TOK_MAX_ID + 1)
        return sh_fail(e, "found %zu tokens, expected 1 to %d", a->n, SH_TOK_MAX_ID + 1);
    if (a->model == SH_TOK_MERGES) {
        json_t *root = as_json(a, e);
        int bad = !root || sh_tok_read(t, root, e);
        json_decref(root);
        return bad ? -1 : set_ends(t, a, e);
    }
    if (!a->score)
        return sh_fail(e, "found no scores, expected one for each token");
    t->is_unigram = a->model == SH_TOK_UNIGRAM;
    for (size_t i = 0; i < a->n; i++)
        if (put_token(t, a, i, e))
            return -1;
    if (t->is_unigram ? read_unigram(t, a, e) : read_scores(t, a, e))
        return -1;
    struct sh_sp_normal *normal = xcalloc(1, sizeof *normal);
    sh_normal_sentencepiece(&t->normal, normal);
    if (sh_sp_normal_read(normal, a, e) || put_added(t, a, normal, e) || set_ends(t, a, e))
        return -1;
    sh_sp_decode_read(&t->sp, a);
    sh_tok_labels(t);
    return 0;
}
