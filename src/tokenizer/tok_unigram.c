/* SPDX-License-Identifier: Apache-2.0 */
/* See tok_model.h: unigram models. */
#include "src/tokenizer/tok_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>


#define PENALTY 10                      /* an unknown character scores so much below all tokens */
#define LONGEST_PIECE ((size_t)256 << 20)

/* The best way to get to one place in the piece. */
struct end { double score; uint32_t from; int32_t id; };
#define NOWHERE UINT32_MAX

struct sh_unigram_work {
    const struct sh_unigram *u;
    struct end *end;
    size_t cap;
    struct sh_ids back;                 /* ids, last first */
};

int sh_unigram_put(struct sh_unigram *u, int32_t id, double score, struct sh_err *e)
{
    const struct sh_span *s = &u->vocab->at[id];
    const char *text = u->vocab->text.at + s->at;
    if (!isfinite(score))
        return sh_fail(e, "token \"%.*s\" has score %f, expected a finite number",
                       s->n > 80 ? 80 : (int)s->n, text, score);
    u->score[id] = score;
    return sh_added_put(&u->trie, text, s->n, id, 0, e);
}

/* Bytes replace text without a token, if there are all 256. */
static void find_bytes(struct sh_unigram *u)
{
    sh_vocab_bytes(u->vocab, u->byte_id);
    for (int i = 0; i < 256; i++)
        if (u->byte_id[i] < 0) {
            memset(u->byte_id, -1, sizeof u->byte_id);
            return;
        }
}

/* Fills the vocabulary from [[token, score], …]. */
static int read_vocab(struct sh_vocab *v, const json_t *list, struct sh_err *e)
{
    size_t n = json_array_size(list);
    if (!json_is_array(list) || !n || n > (size_t)SH_TOK_MAX_ID + 1)
        return sh_fail(e, "vocab: found %s with %zu entries, expected an array of 1 to %d",
                       sh_json_kind(list), n, SH_TOK_MAX_ID + 1);
    for (size_t i = 0; i < n; i++) {
        const json_t *pair = json_array_get(list, i), *text = json_array_get(pair, 0);
        if (json_array_size(pair) != 2 || !json_is_string(text) || !json_is_number(json_array_get(pair, 1)))
            return sh_fail(e, "vocab: number %zu: expected [token, score]", i);
        if (sh_vocab_find(v, json_string_value(text), json_string_length(text)) >= 0)
            return sh_fail(e, "vocab: number %zu: \"%.80s\" is a duplicate", i, json_string_value(text));
        sh_vocab_put(v, (int32_t)i, json_string_value(text), json_string_length(text), 0);
    }
    return 0;
}

int sh_unigram_read(struct sh_unigram *u, struct sh_vocab *vocab, const json_t *model, struct sh_err *e)
{
    const json_t *list = json_object_get(model, "vocab"), *unknown;
    int bytes;
    *u = (struct sh_unigram){.vocab = vocab, .unknown = -1};
    memset(u->byte_id, -1, sizeof u->byte_id);
    if (sh_tok_flag(model, "byte_fallback", 0, &bytes, e) || read_vocab(vocab, list, e))
        return -1;
    u->score = xcalloc(vocab->n_id, sizeof *u->score);
    u->unknown_score = INFINITY;
    for (size_t i = 0; i < vocab->n_id; i++) {
        double score = json_number_value(json_array_get(json_array_get(list, i), 1));
        u->unknown_score = fmin(u->unknown_score, score - PENALTY);
        if (sh_unigram_put(u, (int32_t)i, score, e))
            return sh_err_prefix(e, "vocab: number %zu", i);
    }
    if (bytes)
        find_bytes(u);
    unknown = json_object_get(model, "unk_id");
    if (!unknown || json_is_null(unknown))
        return 0;
    if (!json_is_integer(unknown) || !sh_vocab_has(vocab, json_integer_value(unknown)))
        return sh_fail(e, "unk_id: expected the id of a token");
    u->unknown = (int32_t)json_integer_value(unknown);
    return 0;
}

void sh_unigram_free(struct sh_unigram *u)
{
    sh_added_free(&u->trie);
    free(u->score);
}

struct sh_unigram_work *sh_unigram_begin(const struct sh_unigram *u)
{
    struct sh_unigram_work *w = xcalloc(1, sizeof *w);
    w->u = u;
    return w;
}

void sh_unigram_end(struct sh_unigram_work *w)
{
    if (!w)
        return;
    free(w->end);
    free(w->back.at);
    free(w);
}

static void offer(const struct sh_unigram *u, struct end *to, double sum, size_t from, int32_t id)
{
    if (u->single)
        sum = (double)(float)sum;
    if (to->from == NOWHERE || sum > to->score)
        *to = (struct end){sum, (uint32_t)from, id};
}

/* As in SentencePiece 0.2.3: sums too large for the precision of a float start again from 0, also in the places ahead
 * that have been reached. */
static double begin_anew(struct sh_unigram_work *w, size_t i, size_t reached)
{
    double sum = w->end[i].score;
    if (!w->u->single || fabs(sum) <= 100000)
        return sum;
    for (size_t k = i; k <= reached; k++)
        w->end[k].score = (double)(float)(w->end[k].score - sum);
    return 0;
}

/* Fills w->end; fails on a character that nothing stands for. */
static int forward(struct sh_unigram_work *w, const char *piece, size_t n, struct sh_err *e)
{
    const struct sh_unigram *u = w->u;
    for (size_t i = 0; i <= n; i++)
        w->end[i] = (struct end){0, NOWHERE, -1};
    for (size_t i = 0, width, reached = 0; i < n; i += width) {
        uint32_t code;
        double here = begin_anew(w, i, reached);
        int alone = 0;
        width = (size_t)sh_utf8_get(piece + i, &code);
        int32_t node = u->trie.n ? u->trie.first[(unsigned char)piece[i]] : 0;
        for (size_t k = i + 1; node; k++) {
            int32_t id = u->trie.node[node].id;
            if (id >= 0) {
                offer(u, &w->end[k], u->score[id] + here, i, id);
                reached = k > reached ? k : reached;
                alone |= k - i == width;
            }
            node = k < n ? sh_added_child(&u->trie, node, (unsigned char)piece[k]) : 0;
        }
        if (!alone && u->unknown < 0)
            return sh_fail(e, "the vocabulary has no token for the character U+%04X and no unknown token", code);
        if (!alone && i + width > reached)
            reached = i + width;
        if (!alone)
            offer(u, &w->end[i + width], u->unknown_score + here, i, u->unknown);
    }
    return 0;
}

/* A run of unknown characters: their bytes, or one token. */
static void put_unknown(struct sh_unigram_work *w, const char *text, size_t n)
{
    const struct sh_unigram *u = w->u;
    int32_t id = u->single ? -1 : sh_vocab_find(u->vocab, text, n);
    if (id >= 0 || u->byte_id[0] < 0) {
        sh_ids_add(&w->back, id >= 0 ? id : u->unknown);
        return;
    }
    for (size_t i = n; i-- > 0;)
        sh_ids_add(&w->back, u->byte_id[(unsigned char)text[i]]);
}

int sh_unigram_encode(struct sh_unigram_work *w, const char *piece, size_t n, struct sh_ids *out, struct sh_err *e)
{
    if (n > LONGEST_PIECE)
        return sh_fail(e, "found a piece of %zu bytes without a word break, which is too long", n);
    if (n + 1 > w->cap) {
        w->cap = n + 1 > 2 * w->cap ? n + 1 : 2 * w->cap;
        free(w->end);
        w->end = xreallocarray(NULL, w->cap, sizeof *w->end);
    }
    if (forward(w, piece, n, e))
        return -1;
    w->back.n = 0;
    for (size_t i = n; i > 0;) {
        size_t stop = i;
        int32_t id = w->end[i].id;
        for (; i && w->end[i].id == w->u->unknown; i = w->end[i].from)
            ;
        if (i < stop) {
            put_unknown(w, piece + i, stop - i);
            continue;
        }
        sh_ids_add(&w->back, id);
        i = w->end[i].from;
    }
    for (size_t i = w->back.n; i-- > 0;)
        sh_ids_add(out, w->back.at[i]);
    return 0;
}
