/* SPDX-License-Identifier: Apache-2.0 */
/* See tok_bpe.h. A piece is a linked list of symbols; a heap holds the pairs that could merge,
 * ordered by rank, then place, so a piece of n characters takes n log n steps. Words seen before in
 * the same call come out of a cache. */
#include "src/model/tok_bpe.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

#define LONG_WORD 64u                   /* bytes; longer pieces are not cached            */
#define CACHE_WORDS (1u << 17)          /* after that many no more words are remembered   */
#define NONE UINT32_MAX

struct symbol { int32_t id; uint32_t before, after; };  /* id -1: swallowed by its left neighbour */
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
    uint64_t *heap;                     /* rank << 32 | place of the left symbol, smallest on top */
    size_t n_heap, cap_heap;
    struct word *word;                  /* hash table */
    size_t n_word, n_slot;
    struct sh_text key;
    struct sh_ids known;
};

void sh_ids_add(struct sh_ids *ids, int32_t id)
{
    if (ids->n == ids->cap) {
        ids->cap = ids->cap ? 2 * ids->cap : 64;
        ids->at = xreallocarray(ids->at, ids->cap, sizeof *ids->at);
    }
    ids->at[ids->n++] = id;
}

static void heap_push(struct sh_bpe_work *w, uint64_t key)
{
    if (w->n_heap == w->cap_heap) {
        w->cap_heap = w->cap_heap ? 2 * w->cap_heap : 256;
        w->heap = xreallocarray(w->heap, w->cap_heap, sizeof *w->heap);
    }
    size_t i = w->n_heap++;
    for (; i && w->heap[(i - 1) / 2] > key; i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = key;
}

static uint64_t heap_pop(struct sh_bpe_work *w)
{
    uint64_t top = w->heap[0], key = w->heap[--w->n_heap];
    size_t i = 0, child;
    while ((child = 2 * i + 1) < w->n_heap) {
        if (child + 1 < w->n_heap && w->heap[child + 1] < w->heap[child])
            child++;
        if (key <= w->heap[child])
            break;
        w->heap[i] = w->heap[child];
        i = child;
    }
    w->heap[i] = key;
    return top;
}

static const struct sh_merge *find_merge(const struct sh_bpe *b, int32_t left, int32_t right)
{
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t i = (size_t)(pair * 0x9e3779b97f4a7c15u >> 20) & (b->n_slot - 1);
    for (; b->merge[i].rank >= 0; i = (i + 1) & (b->n_slot - 1))
        if (b->merge[i].pair == pair)
            return &b->merge[i];
    return NULL;
}

/* The pair of symbol `i` and its right neighbour becomes a candidate if it is in the list. */
static void offer(struct sh_bpe_work *w, uint32_t i)
{
    if (i == NONE || w->symbol[i].after == NONE)
        return;
    const struct sh_merge *m =
        find_merge(w->bpe, w->symbol[i].id, w->symbol[w->symbol[i].after].id);
    if (m)
        heap_push(w, (uint64_t)m->rank << 32 | i);
}

static void merge_all(struct sh_bpe_work *w)
{
    w->n_heap = 0;
    for (uint32_t i = 0; i < w->n; i++)
        offer(w, i);
    while (w->n_heap) {
        uint64_t top = heap_pop(w);
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

/* Characters to symbols. An unknown token stays pending so that a run of unknown characters can
 * become one; as in the reference, bytes that stand in for a character do not end such a run. */
static int spell(struct sh_bpe_work *w, const char *piece, size_t n, struct sh_err *e)
{
    const struct sh_bpe *b = w->bpe;
    int pending = 0, length;
    w->n = 0;
    for (size_t i = 0; i < n; i += (size_t)length) {
        uint32_t code;
        length = sh_utf8_get(piece + i, &code);
        int32_t id = sh_vocab_find(b->vocab, piece + i, (size_t)length);
        if (id < 0 && has_bytes(b, piece + i, length)) {
            for (int k = 0; k < length; k++)
                add_symbol(w, b->byte_id[(unsigned char)piece[i + (size_t)k]]);
            continue;
        }
        if (id < 0 && b->unknown < 0)
            return sh_fail(e, "the vocabulary has no token for the character U+%04X, and none for "
                           "unknown ones", code);
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

static int split(struct sh_bpe_work *w, const char *piece, size_t n, struct sh_ids *out,
                 struct sh_err *e)
{
    int32_t whole = w->bpe->whole_first ? sh_vocab_find(w->bpe->vocab, piece, n) : -1;
    if (whole >= 0) {
        sh_ids_add(out, whole);
        return 0;
    }
    if (n >= NONE)
        return sh_fail(e, "a piece of %zu bytes without a break is too long", n);
    if (spell(w, piece, n, e))
        return -1;
    merge_all(w);
    for (uint32_t i = w->n ? 0 : NONE; i != NONE; i = w->symbol[i].after)
        sh_ids_add(out, w->symbol[i].id);
    return 0;
}

static struct word *look_up(struct sh_bpe_work *w, uint64_t hash, const char *piece, size_t n)
{
    size_t i = hash & (w->n_slot - 1);
    for (; w->word[i].n; i = (i + 1) & (w->n_slot - 1))
        if (w->word[i].hash == hash && w->word[i].n == n &&
            !memcmp(w->key.at + w->word[i].key, piece, n))
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

int sh_bpe_encode(struct sh_bpe_work *w, const char *piece, size_t n, struct sh_ids *out,
                  struct sh_err *e)
{
    if (n > LONG_WORD || !n)
        return split(w, piece, n, out, e);
    uint64_t hash = sh_tok_hash(piece, n);
    struct word *found = look_up(w, hash, piece, n);
    if (found->n) {
        for (uint32_t i = 0; i < found->n_id; i++)
            sh_ids_add(out, w->known.at[found->id + i]);
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

struct sh_bpe_work *sh_bpe_begin(const struct sh_bpe *b)
{
    struct sh_bpe_work *w = xcalloc(1, sizeof *w);
    w->bpe = b;
    grow_cache(w);
    return w;
}

void sh_bpe_end(struct sh_bpe_work *w)
{
    free(w->symbol);
    free(w->heap);
    free(w->word);
    free(w->key.at);
    free(w->known.at);
    free(w);
}
