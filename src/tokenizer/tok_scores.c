/* SPDX-License-Identifier: Apache-2.0 */
/* Merges from scores, as in SentencePiece's BPE: two neighbours (tokens or single characters) merge if their strings
 * together are a token, the highest score first, then the leftmost. So the merges of a token are its cuts into two such
 * halves. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/tokenizer/tok_arrays.h"
#include "src/tokenizer/tok_bpe.h"

#define MOST_WORK ((size_t)1 << 32)     /* bytes to be hashed for all cuts of all tokens; the
                                           published vocabularies take 50 million */

struct maker {
    struct sh_bpe *b;
    const float *score;
    const int32_t *type;
    float *sorted;                      /* scores of the tokens that can come out, highest first */
    size_t n_sorted;
    size_t n_merge;                     /* counted in a first pass, put in a second */
    int counting;
};

static int takes_part(const struct maker *m, size_t id)
{
    return m->type[id] == SH_TOK_NORMAL || m->type[id] == SH_TOK_UNUSED;
}

static int descending(const void *a, const void *b)
{
    float x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x < y) - (x > y);
}

/* Equal scores have equal ranks. */
static int32_t rank_of(const struct maker *m, float score)
{
    size_t low = 0, high = m->n_sorted;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (m->sorted[middle] > score)
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
    if (id >= 0 || (size_t)sh_utf8_get(text, &code) != n)
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
            sh_bpe_put(m->b, left, right, rank_of(m, m->score[id]), (int32_t)id);
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
        if (!isfinite(m->score[i]))
            return sh_fail(e, "token %zu, \"%.*s\", has the score %f", i,
                           v->at[i].n > 80 ? 80 : (int)v->at[i].n, v->text.at + v->at[i].at, (double)m->score[i]);
        m->sorted[m->n_sorted++] = m->score[i];
        work += v->at[i].n * v->at[i].n;
    }
    if (work > MOST_WORK)
        return sh_fail(e, "the tokens are too long: the squares of their lengths in bytes sum to %zu, "
                       "expected at most %zu", work, MOST_WORK);
    qsort(m->sorted, m->n_sorted, sizeof *m->sorted, descending);
    return 0;
}

static void mark_unused(struct maker *m)
{
    struct sh_bpe *b = m->b;
    for (size_t i = 0; i < b->n_slot; i++) {
        if (b->merge[i].rank < 0 || m->type[b->merge[i].id] != SH_TOK_UNUSED)
            continue;
        if (!b->unused)
            b->unused = xcalloc(b->vocab->n_id, 1);
        b->unused[b->merge[i].id] = 1;
    }
}

int sh_bpe_from_scores(struct sh_bpe *b, const struct sh_vocab *vocab, const float *score,
                       const int32_t *type, struct sh_err *e)
{
    struct maker m = {.b = b, .score = score, .type = type, .counting = 1};
    *b = (struct sh_bpe){.vocab = vocab, .unknown = -1, .fuse_unknown = 1, .by_score = 1};
    b->lone_at = (int32_t)vocab->n_id;
    memset(b->byte_id, -1, sizeof b->byte_id);
    int bad = check(&m, e);
    for (; !bad && m.counting >= 0; m.counting--) {
        if (!m.counting)
            sh_bpe_room(b, m.n_merge);
        for (size_t i = 0; i < vocab->n_id; i++)
            if (takes_part(&m, i) && vocab->at[i].n)
                cut_token(&m, i);
    }
    free(m.sorted);
    if (bad)
        return -1;
    mark_unused(&m);
    sh_bpe_ready(b);
    return 0;
}
