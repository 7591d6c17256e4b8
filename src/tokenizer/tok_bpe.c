/* SPDX-License-Identifier: Apache-2.0 */
/* See tok_model.h. A piece is a linked list of symbols; a queue holds the pairs that could merge, ordered by rank, then
 * place, so a piece of n characters takes n log n steps. Words seen before in the same call come out of a cache. */
#include "src/tokenizer/tok_model.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

#define LONG_WORD 64u                   /* bytes; longer pieces are not cached            */
#define CACHE_WORDS (1u << 17)          /* after that many no more words are remembered   */
#define FEW 24u                         /* up to so many symbols a queue does not pay     */
#define DEEPEST 100                     /* as in SentencePiece 0.2.3: then it stays whole    */
#define NONE UINT32_MAX
#define MARK "\xe2\x96\x81"             /* U+2581, a written space */

/* ---- the queue ---- */

/* The smallest key first: a radix heap (Ahuja and others 1990), which accesses memory in order where a binary heap
 * jumps. The rare keys below the one taken last (a token that is listed before its halves) go into a small binary
 * heap. */
struct keys { uint64_t *at; size_t n, cap; };

struct queue {                       /* start with {0} */
    struct keys bucket[65];          /* by the highest bit in which a key differs from `last` */
    struct keys late;                /* smaller than `last` */
    uint64_t last;
};

static void add_key(struct keys *k, uint64_t key)
{
    if (k->n == k->cap) {
        k->cap = k->cap ? 2 * k->cap : 64;
        k->at = xreallocarray(k->at, k->cap, sizeof *k->at);
    }
    k->at[k->n++] = key;
}

static uint64_t late_pop(struct keys *k)
{
    uint64_t top = k->at[0], key = k->at[--k->n];
    size_t i = 0, child;
    while ((child = 2 * i + 1) < k->n) {
        if (child + 1 < k->n && k->at[child + 1] < k->at[child])
            child++;
        if (key <= k->at[child])
            break;
        k->at[i] = k->at[child];
        i = child;
    }
    k->at[i] = key;
    return top;
}

static struct keys *bucket_of(struct queue *q, uint64_t key)
{
    return &q->bucket[key == q->last ? 0 : 64 - __builtin_clzll(key ^ q->last)];
}

static void queue_push(struct queue *q, uint64_t key)
{
    struct keys *k = key < q->last ? &q->late : bucket_of(q, key);
    add_key(k, key);
    if (k != &q->late)
        return;
    size_t i = k->n - 1;
    for (; i && k->at[(i - 1) / 2] > key; i = (i - 1) / 2)
        k->at[i] = k->at[(i - 1) / 2];
    k->at[i] = key;
}

/* The smallest key of the first bucket that has one becomes `last`; the others move down. */
static int refill(struct queue *q)
{
    int i = 1;
    while (i <= 64 && !q->bucket[i].n)
        i++;
    if (i > 64)
        return 0;
    struct keys *from = &q->bucket[i];
    uint64_t least = from->at[0];
    for (size_t k = 1; k < from->n; k++)
        least = from->at[k] < least ? from->at[k] : least;
    q->last = least;
    for (size_t k = 0; k < from->n; k++)
        add_key(bucket_of(q, from->at[k]), from->at[k]);
    from->n = 0;
    return 1;
}

/* 0: it is empty. */
static int queue_pop(struct queue *q, uint64_t *key)
{
    if (q->late.n) {
        *key = late_pop(&q->late);
        return 1;
    }
    if (!q->bucket[0].n && !refill(q))
        return 0;
    *key = q->bucket[0].at[--q->bucket[0].n];
    return 1;
}

/* ---- the model ---- */

struct symbol { int32_t id; uint32_t before, after; };  /* id -1: swallowed by its left neighbour */
struct halves { int32_t left, right; };
struct word {
    uint64_t hash;
    size_t key;                         /* where its text is; n 0: a free slot */
    uint32_t n, n_id;
    size_t id;
};

struct sh_bpe_work {
    const struct sh_bpe *bpe;
    struct symbol *symbol;
    size_t n, cap;
    struct queue queue;              /* rank << 32 | place of the left symbol */
    struct word *word;                  /* hash table */
    size_t n_word, n_slot;
    uint64_t seed;
    struct sh_text key;
    struct sh_ids known;
    struct halves *made_of;             /* by id, of unused tokens: the last pair offered */
    int after_unknown;                  /* by score: the id put last stands for unknown text */
};

/* ---- the table of merges ---- */

void sh_bpe_room(struct sh_bpe *b, size_t n)
{
    for (b->n_slot = 64; b->n_slot < 2 * n; b->n_slot *= 2)
        ;
    b->seed = sh_tok_seed();
    b->merge = xreallocarray(NULL, b->n_slot, sizeof *b->merge);
    for (size_t i = 0; i < b->n_slot; i++)
        b->merge[i].rank = -1;
}

void sh_bpe_put(struct sh_bpe *b, int32_t left, int32_t right, int32_t rank, int32_t id)
{
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t i = sh_tok_mix(b->seed, pair) & (b->n_slot - 1);
    while (b->merge[i].rank >= 0 && b->merge[i].pair != pair)
        i = (i + 1) & (b->n_slot - 1);
    b->merge[i] = (struct sh_merge){pair, rank, id};
}

/* Does it have a U+2581 after another character? */
static int has_inner_mark(const char *text, size_t n)
{
    for (size_t i = 1; i + 3 <= n; i++)
        if (!memcmp(text + i, MARK, 3) && (i < 3 || memcmp(text + i - 3, MARK, 3)))
            return 1;
    return 0;
}

/* If no merge spans the place before a written space, texts can be cut there without changing the result, provided that
 * the mark itself is a token (it ends a run of unknown characters). */
void sh_bpe_ready(struct sh_bpe *b)
{
    b->cut_words = !b->whole_first && !b->unused && sh_vocab_find(b->vocab, MARK, 3) >= 0;
    for (size_t i = 0; i < b->n_slot && b->cut_words; i++) {
        if (b->merge[i].rank < 0)
            continue;
        const struct sh_span *s = &b->vocab->at[b->merge[i].id];
        b->cut_words = !has_inner_mark(b->vocab->text.at + s->at, s->n);
    }
}

/* NULL when the pair is not in the list. */
static const struct sh_merge *find_merge(const struct sh_bpe *b, int32_t left, int32_t right)
{
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t i = sh_tok_mix(b->seed, pair) & (b->n_slot - 1);
    for (; b->merge[i].rank >= 0; i = (i + 1) & (b->n_slot - 1))
        if (b->merge[i].pair == pair)
            return &b->merge[i];
    return NULL;
}

void sh_bpe_free(struct sh_bpe *b)
{
    free(b->merge);
    free(b->unused);
    sh_vocab_free(&b->lone);
}

/* ---- a piece ---- */

/* The pair of symbol `i` and its right neighbour becomes a candidate if it is in the list. */
static void offer(struct sh_bpe_work *w, uint32_t i)
{
    if (i == NONE || w->symbol[i].after == NONE)
        return;
    int32_t left = w->symbol[i].id, right = w->symbol[w->symbol[i].after].id;
    const struct sh_merge *m = find_merge(w->bpe, left, right);
    if (!m)
        return;
    queue_push(&w->queue, (uint64_t)m->rank << 32 | i);
    if (w->made_of && w->bpe->unused[m->id])
        w->made_of[m->id] = (struct halves){left, right};
}

static void merge_many(struct sh_bpe_work *w)
{
    uint64_t top;
    for (int i = 0; i <= 64; i++)
        w->queue.bucket[i].n = 0;
    w->queue.last = w->queue.late.n = 0;
    for (uint32_t i = 0; i < w->n; i++)
        offer(w, i);
    while (queue_pop(&w->queue, &top)) {
        uint32_t i = (uint32_t)top;
        struct symbol *s = &w->symbol[i];
        if (s->id < 0 || s->after == NONE)
            continue;
        struct symbol *right = &w->symbol[s->after];
        const struct sh_merge *m = find_merge(w->bpe, s->id, right->id);
        if (!m || (uint64_t)m->rank != top >> 32)       /* the pair that was offered is gone */
            continue;
        s->id = m->id;
        s->after = right->after;
        right->id = -1;
        if (s->after != NONE)
            w->symbol[s->after].before = i;
        offer(w, s->before);
        offer(w, i);
    }
    size_t kept = 0;
    for (size_t i = 0; i < w->n; i++)
        if (w->symbol[i].id >= 0)
            w->symbol[kept++].id = w->symbol[i].id;
    w->n = kept;
}

/* The same for a handful of symbols; the links are not used. */
static void merge_few(struct sh_bpe_work *w)
{
    const struct sh_merge *pair[FEW];
    struct symbol *s = w->symbol;
    for (size_t i = 0; i + 1 < w->n; i++)
        pair[i] = find_merge(w->bpe, s[i].id, s[i + 1].id);
    while (w->n > 1) {
        size_t best = w->n;
        for (size_t i = 0; i + 1 < w->n; i++)
            if (pair[i] && (best == w->n || pair[i]->rank < pair[best]->rank))
                best = i;
        if (best == w->n)
            return;
        s[best].id = pair[best]->id;
        w->n--;
        for (size_t i = best + 1; i < w->n; i++) {
            s[i].id = s[i + 1].id;
            pair[i - 1] = pair[i];
        }
        if (best)
            pair[best - 1] = find_merge(w->bpe, s[best - 1].id, s[best].id);
        if (best + 1 < w->n)
            pair[best] = find_merge(w->bpe, s[best].id, s[best + 1].id);
    }
}

static void add_symbol(struct sh_bpe_work *w, int32_t id)
{
    if (w->n == w->cap) {
        w->cap = w->cap ? 2 * w->cap : 256;
        w->symbol = xreallocarray(w->symbol, w->cap, sizeof *w->symbol);
    }
    uint32_t i = (uint32_t)w->n++;
    w->symbol[i] = (struct symbol){id, i ? i - 1 : NONE, NONE};
    if (i)
        w->symbol[i - 1].after = i;
}

static int has_bytes(const struct sh_bpe *b, const char *at, int n)
{
    for (int i = 0; i < n; i++)
        if (b->byte_id[(unsigned char)at[i]] < 0)
            return 0;
    return b->byte_fallback;
}

/* Characters to symbols. An unknown token stays pending so that a run of unknown characters can become one; as in the
 * reference, bytes in place of a character do not end such a run. */
static int spell(struct sh_bpe_work *w, const char *piece, size_t n, struct sh_err *e)
{
    const struct sh_bpe *b = w->bpe;
    int pending = 0, length;
    w->n = 0;
    for (size_t i = 0; i < n; i += (size_t)length) {
        uint32_t code;
        length = sh_utf8_get(piece + i, &code);
        int32_t id = sh_vocab_find(b->vocab, piece + i, (size_t)length);
        if (id < 0 && b->by_score) {
            int32_t lone = sh_vocab_find(&b->lone, piece + i, (size_t)length);
            id = lone < 0 ? -1 : lone + b->lone_at;
        }
        if (id < 0 && has_bytes(b, piece + i, length)) {
            for (int k = 0; k < length; k++)
                add_symbol(w, b->byte_id[(unsigned char)piece[i + (size_t)k]]);
            continue;
        }
        if (id < 0 && b->unknown < 0)
            return sh_fail(e, "the vocabulary has no token for the character U+%04X and no unknown token", code);
        if (pending && (id >= 0 || !b->fuse_unknown)) {
            add_symbol(w, b->unknown);
            pending = 0;
        }
        if (id >= 0)
            add_symbol(w, id);
        else
            pending = 1;
    }
    if (pending)
        add_symbol(w, b->unknown);
    return 0;
}

/* By score: an unused token is taken apart as it was made, a lone character is unknown text. */
static void put(struct sh_bpe_work *w, int32_t id, int depth, struct sh_ids *out)
{
    const struct sh_bpe *b = w->bpe;
    const struct sh_vocab *v = &b->lone;
    int32_t lone = id - b->lone_at;
    if (lone < 0 && b->unused && b->unused[id] && w->made_of[id].left >= 0 && depth <= DEEPEST) {
        struct halves of = w->made_of[id];
        put(w, of.left, depth + 1, out);
        put(w, of.right, depth + 1, out);
        return;
    }
    if (lone >= 0 && has_bytes(b, v->text.at + v->at[lone].at, (int)v->at[lone].n)) {
        for (size_t k = 0; k < v->at[lone].n; k++)
            sh_ids_add(out, b->byte_id[(unsigned char)v->text.at[v->at[lone].at + k]]);
        w->after_unknown = 0;
        return;
    }
    int unknown = lone >= 0 || id == b->unknown;
    if (!unknown || !w->after_unknown)
        sh_ids_add(out, unknown ? b->unknown : id);
    w->after_unknown = unknown;
}

static int split(struct sh_bpe_work *w, const char *piece, size_t n, struct sh_ids *out, struct sh_err *e)
{
    int32_t whole = w->bpe->whole_first ? sh_vocab_find(w->bpe->vocab, piece, n) : -1;
    if (whole >= 0) {
        sh_ids_add(out, whole);
        return 0;
    }
    if (n >= NONE)
        return sh_fail(e, "found a piece of %zu bytes without a word break, which is too long", n);
    if (spell(w, piece, n, e))
        return -1;
    if (w->n <= FEW && !w->made_of)
        merge_few(w);
    else
        merge_many(w);
    sh_ids_reserve(out, w->n);
    w->after_unknown = 0;
    for (size_t i = 0; i < w->n; i++) {
        if (w->bpe->by_score)
            put(w, w->symbol[i].id, 0, out);
        else
            out->at[out->n++] = w->symbol[i].id;
    }
    return 0;
}

static struct word *look_up(struct sh_bpe_work *w, uint64_t hash, const char *piece, size_t n)
{
    size_t i = hash & (w->n_slot - 1);
    for (; w->word[i].n; i = (i + 1) & (w->n_slot - 1))
        if (w->word[i].hash == hash && w->word[i].n == n && !memcmp(w->key.at + w->word[i].key, piece, n))
            break;
    return &w->word[i];
}

static void grow_cache(struct sh_bpe_work *w)
{
    struct word *old = w->word;
    size_t n_old = w->n_slot;
    w->n_slot = n_old ? 4 * n_old : 512;
    w->word = xcalloc(w->n_slot, sizeof *w->word);
    for (size_t i = 0; i < n_old; i++)
        if (old[i].n)
            *look_up(w, old[i].hash, w->key.at + old[i].key, old[i].n) = old[i];
    free(old);
}

static int encode_word(struct sh_bpe_work *w, const char *piece, size_t n, struct sh_ids *out, struct sh_err *e)
{
    if (n > LONG_WORD || !n || w->made_of)
        return split(w, piece, n, out, e);
    uint64_t hash = sh_tok_hash(w->seed, piece, n);
    struct word *found = look_up(w, hash, piece, n);
    if (found->n) {
        sh_ids_reserve(out, found->n_id);
        memcpy(out->at + out->n, w->known.at + found->id, found->n_id * sizeof *out->at);
        out->n += found->n_id;
        return 0;
    }
    size_t before = out->n;
    if (split(w, piece, n, out, e))
        return -1;
    if (w->n_word >= CACHE_WORDS)
        return 0;
    *found = (struct word){hash, w->key.n, (uint32_t)n, (uint32_t)(out->n - before), w->known.n};
    sh_text_add(&w->key, piece, n);
    for (size_t i = before; i < out->n; i++)
        sh_ids_add(&w->known, out->at[i]);
    if (2 * ++w->n_word > w->n_slot)
        grow_cache(w);
    return 0;
}

/* The bytes up to the first written space that follows another character. */
static size_t word_length(const char *piece, size_t n)
{
    size_t i = 0;
    while (sh_starts_with(piece + i, n - i, MARK, 3))
        i += 3;
    for (;;) {
        const char *lead = memchr(piece + i, MARK[0], n - i);
        if (!lead)
            return n;
        i = (size_t)(lead - piece);
        if (sh_starts_with(lead, n - i, MARK, 3))
            return i;
        i++;
    }
}

int sh_bpe_encode(struct sh_bpe_work *w, const char *piece, size_t n, struct sh_ids *out, struct sh_err *e)
{
    if (!w->bpe->cut_words)
        return encode_word(w, piece, n, out, e);
    for (size_t length; n; piece += length, n -= length) {
        length = word_length(piece, n);
        if (encode_word(w, piece, length, out, e))
            return -1;
    }
    return 0;
}

struct sh_bpe_work *sh_bpe_begin(const struct sh_bpe *b)
{
    struct sh_bpe_work *w = xcalloc(1, sizeof *w);
    w->bpe = b;
    w->seed = b->seed;
    grow_cache(w);
    if (b->unused) {
        w->made_of = xreallocarray(NULL, (size_t)b->lone_at, sizeof *w->made_of);
        memset(w->made_of, -1, (size_t)b->lone_at * sizeof *w->made_of);
    }
    return w;
}

void sh_bpe_end(struct sh_bpe_work *w)
{
    if (!w)
        return;
    free(w->made_of);
    free(w->symbol);
    for (int i = 0; i <= 64; i++)
        free(w->queue.bucket[i].at);
    free(w->queue.late.at);
    free(w->word);
    free(w->key.at);
    free(w->known.at);
    free(w);
}
