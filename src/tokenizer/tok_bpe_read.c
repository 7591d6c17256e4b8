/* SPDX-License-Identifier: Apache-2.0 */
/* The table of merges (tok_model.h), from the "model" object of tokenizer.json or from scores. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/tokenizer/tok.h"

static int refuse_options(const json_t *model, struct sh_err *e)
{
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const json_t *type = json_object_get(model, "type"),
                 *dropout = json_object_get(model, "dropout");
    if (type && (!json_is_string(type) || strcmp(json_string_value(type), "BPE")))
        return sh_fail(e, "type: %s is not supported, only BPE is",
                       json_is_string(type) ? json_string_value(type) : sh_json_kind(type));
    if (!type && !json_object_get(model, "merges"))
        return sh_fail(e, "found neither a type nor merges, expected a BPE model");
    if (dropout && !json_is_null(dropout) && (!json_is_number(dropout) || json_number_value(dropout) != 0))
        return sh_fail(e, "dropout: random merging is not supported");
    for (int i = 0; i < 2; i++) {
        const json_t *affix = json_object_get(model, affixes[i]);
        if (affix && !json_is_null(affix) && (!json_is_string(affix) || json_string_length(affix)))
            return sh_fail(e, "%s: only an empty value is supported", affixes[i]);
    }
    return 0;
}

/* A merge is "left right" or ["left", "right"]. */
static int halves(const json_t *merge, struct sh_span part[2], const char *text[2], struct sh_err *e)
{
    if (json_is_string(merge)) {
        const char *s = json_string_value(merge);
        size_t n = json_string_length(merge);
        const char *gap = memchr(s, ' ', n);
        if (!gap || memchr(gap + 1, ' ', n - (size_t)(gap + 1 - s)))
            return sh_fail(e, "found \"%.80s\", expected two tokens separated by one space", s);
        text[0] = s;
        text[1] = gap + 1;
        part[0].n = (size_t)(gap - s);
        part[1].n = n - part[0].n - 1;
        return 0;
    }
    if (!json_is_array(merge) || json_array_size(merge) != 2)
        return sh_fail(e, "found %s, expected \"a b\" or [\"a\", \"b\"]", sh_json_kind(merge));
    for (size_t i = 0; i < 2; i++) {
        const json_t *half = json_array_get(merge, i);
        if (!json_is_string(half))
            return sh_fail(e, "found %s in a pair, expected a string", sh_json_kind(half));
        text[i] = json_string_value(half);
        part[i].n = json_string_length(half);
    }
    return 0;
}

static int add_merge(struct sh_bpe *b, const json_t *merge, int32_t rank, struct sh_text *joined, struct sh_err *e)
{
    struct sh_span part[2];
    const char *text[2];
    int32_t id[3];
    if (halves(merge, part, text, e))
        return -1;
    joined->n = 0;
    for (int i = 0; i < 2; i++)
        sh_text_add(joined, text[i], part[i].n);
    for (int i = 0; i < 3; i++) {
        const char *s = i < 2 ? text[i] : joined->at;
        size_t n = i < 2 ? part[i].n : joined->n;
        id[i] = sh_vocab_find(b->vocab, s, n);
        if (id[i] < 0)
            return sh_fail(e, "token \"%.*s\" is not in the vocabulary", n > 80 ? 80 : (int)n, s);
    }
    sh_bpe_put(b, id[0], id[1], rank, id[2]);
    return 0;
}

static int read_merges(struct sh_bpe *b, const json_t *merges, struct sh_err *e)
{
    struct sh_text joined = {0};
    size_t n = json_array_size(merges);
    int bad = 0;
    if (merges && !json_is_null(merges) && !json_is_array(merges))
        return sh_fail(e, "merges: found %s, expected an array", sh_json_kind(merges));
    if (n > INT32_MAX / 4)
        return sh_fail(e, "merges: found %zu, which is too many", n);
    sh_bpe_room(b, n);
    for (size_t i = 0; i < n && !bad; i++)
        if ((bad = add_merge(b, json_array_get(merges, i), (int32_t)i, &joined, e)))
            sh_err_prefix(e, "merges: number %zu", i);
    free(joined.at);
    return bad;
}

int sh_bpe_read(struct sh_bpe *b, const struct sh_vocab *vocab, const json_t *model, struct sh_err *e)
{
    *b = (struct sh_bpe){.vocab = vocab, .unknown = -1};
    if (refuse_options(model, e) || sh_tok_flag(model, "fuse_unk", 0, &b->fuse_unknown, e) ||
        sh_tok_flag(model, "byte_fallback", 0, &b->byte_fallback, e) ||
        sh_tok_flag(model, "ignore_merges", 0, &b->whole_first, e))
        return -1;
    const json_t *unknown = json_object_get(model, "unk_token");
    if (unknown && !json_is_null(unknown)) {
        size_t n;
        const char *text = sh_tok_string(model, "unk_token", &n, e);
        if (!text)
            return -1;
        b->unknown = sh_vocab_find(vocab, text, n);
        if (b->unknown < 0)
            return sh_fail(e, "unk_token: \"%.80s\" is not in the vocabulary", text);
    }
    sh_vocab_bytes(vocab, b->byte_id);
    if (read_merges(b, json_object_get(model, "merges"), e))
        return -1;
    sh_bpe_ready(b);
    return 0;
}

/* ---- merges from scores or ids ----
 *
 * As in SentencePiece's BPE: two neighbours (tokens or single characters) merge if their strings together are a token,
 * the highest score first, then the leftmost. So the merges of a token are its cuts into two such halves. */

#define MOST_WORK ((size_t)1 << 32)     /* bytes to be hashed for all cuts of all tokens; the
                                           published vocabularies take 50 million */

struct maker {
    struct sh_bpe *b;
    const float *score;                 /* NULL: a token's rank is its id */
    const int32_t *type;
    float *sorted;                      /* scores of the tokens that can come out, highest first */
    size_t n_sorted;
    size_t n_merge;                     /* counted in a first pass, put in a second */
    int counting;
};

static int takes_part(const struct maker *m, size_t id)
{
    return m->score ? m->type[id] == SH_TOK_NORMAL || m->type[id] == SH_TOK_UNUSED
                    : sh_vocab_has(m->b->vocab, (long long)id);
}

static int descending(const void *a, const void *b)
{
    float x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x < y) - (x > y);
}

/* Equal scores have equal ranks. */
static int32_t rank_of(const struct maker *m, size_t id)
{
    size_t low = 0, high = m->n_sorted;
    if (!m->score)
        return (int32_t)id;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (m->sorted[middle] > m->score[id])
            low = middle + 1;
        else
            high = middle;
    }
    return (int32_t)low;
}

/* The id of one half of a token: a token, or a character, which is made known. -1: neither. */
static int32_t half(struct maker *m, const char *text, size_t n)
{
    struct sh_bpe *b = m->b;
    uint32_t code;
    int32_t id = sh_vocab_find(b->vocab, text, n);
    if (id >= 0 || !m->score || (size_t)sh_utf8_get(text, &code) != n)
        return id;
    id = sh_vocab_find(&b->lone, text, n);
    if (id < 0) {
        id = (int32_t)b->lone.n_id;
        sh_vocab_put(&b->lone, id, text, n, 0);
    }
    return id + b->lone_at;
}

static void cut_token(struct maker *m, size_t id)
{
    const struct sh_span *s = &m->b->vocab->at[id];
    const char *text = m->b->vocab->text.at + s->at;
    uint32_t code;
    for (size_t i = (size_t)sh_utf8_get(text, &code); i < s->n; i += (size_t)sh_utf8_get(text + i, &code)) {
        int32_t left = half(m, text, i), right = left < 0 ? -1 : half(m, text + i, s->n - i);
        if (right < 0)
            continue;
        if (m->counting)
            m->n_merge++;
        else
            sh_bpe_put(m->b, left, right, rank_of(m, id), (int32_t)id);
    }
}

static int check(struct maker *m, struct sh_err *e)
{
    const struct sh_vocab *v = m->b->vocab;
    size_t work = 0;
    m->sorted = xreallocarray(NULL, v->n_id, sizeof *m->sorted);
    for (size_t i = 0; i < v->n_id; i++) {
        if (!takes_part(m, i))
            continue;
        if (m->score && !isfinite(m->score[i]))
            return sh_fail(e, "token %zu, \"%.*s\", has score %f, expected a finite number", i,
                           v->at[i].n > 80 ? 80 : (int)v->at[i].n, v->text.at + v->at[i].at, (double)m->score[i]);
        if (m->score)
            m->sorted[m->n_sorted++] = m->score[i];
        work += v->at[i].n * v->at[i].n;
    }
    if (work > MOST_WORK)
        return sh_fail(e, "the tokens are too long: the squares of their lengths in bytes sum to %zu, "
                       "expected at most %zu", work, MOST_WORK);
    qsort(m->sorted, m->n_sorted, sizeof *m->sorted, descending);
    return 0;
}

/* Counts the cuts of all tokens, then puts them. */
static int make(struct maker *m, struct sh_err *e)
{
    const struct sh_vocab *v = m->b->vocab;
    int bad = check(m, e);
    for (m->counting = 1; !bad && m->counting >= 0; m->counting--) {
        if (!m->counting)
            sh_bpe_room(m->b, m->n_merge);
        for (size_t i = 0; i < v->n_id; i++)
            if (takes_part(m, i) && v->at[i].n)
                cut_token(m, i);
    }
    free(m->sorted);
    return bad;
}

int sh_bpe_from_scores(struct sh_bpe *b, const struct sh_vocab *vocab, const float *score,
                       const int32_t *type, struct sh_err *e)
{
    struct maker m = {.b = b, .score = score, .type = type};
    *b = (struct sh_bpe){.vocab = vocab, .unknown = -1, .fuse_unknown = 1, .by_score = 1};
    b->lone_at = (int32_t)vocab->n_id;
    memset(b->byte_id, -1, sizeof b->byte_id);
    if (make(&m, e))
        return -1;
    for (size_t i = 0; i < b->n_slot; i++) {
        if (b->merge[i].rank < 0 || m.type[b->merge[i].id] != SH_TOK_UNUSED)
            continue;
        if (!b->unused)
            b->unused = xcalloc(b->vocab->n_id, 1);
        b->unused[b->merge[i].id] = 1;
    }
    sh_bpe_ready(b);
    return 0;
}

int sh_bpe_from_ranks(struct sh_bpe *b, const struct sh_vocab *vocab, struct sh_err *e)
{
    struct maker m = {.b = b};
    *b = (struct sh_bpe){.vocab = vocab, .unknown = -1, .whole_first = 1};
    memset(b->byte_id, -1, sizeof b->byte_id);
    if (make(&m, e))
        return -1;
    sh_bpe_ready(b);
    return 0;
}
