/* SPDX-License-Identifier: Apache-2.0 */
/* See tok_model.h: the vocabulary. */
#include "src/tokenizer/tok_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "src/base/mem.h"

#define HOLE ((size_t)-1)
#define LONGEST 4096u                   /* bytes of a token; the published ones have up to 512 */

uint64_t sh_tok_seed(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
        seed = (uint64_t)(uintptr_t)&seed ^ (uint64_t)clock() << 32;    /* better than nothing */
    return seed;
}

uint64_t sh_tok_hash(uint64_t seed, const char *text, size_t n)
{
    uint64_t h = seed ^ n * 0x9e3779b97f4a7c15u, word;
    for (; n >= 8; n -= 8, text += 8) {
        memcpy(&word, text, 8);
        h = (h ^ word) * 0xbf58476d1ce4e5b9u;
        h ^= h >> 32;
    }
    word = 0;
    if (n)
        memcpy(&word, text, n);
    h = (h ^ word) * 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

int sh_vocab_has(const struct sh_vocab *v, long long id)
{
    return id >= 0 && (unsigned long long)id < v->n_id && v->at[id].at != HOLE;
}

/* The slot that holds this string, or the free one where it belongs. */
static size_t slot_of(const struct sh_vocab *v, const char *text, size_t n)
{
    size_t i = sh_tok_hash(v->seed, text, n) & (v->n_slot - 1);
    for (; v->slot[i] >= 0; i = (i + 1) & (v->n_slot - 1)) {
        const struct sh_span *s = &v->at[v->slot[i]];
        if (s->n == n && !memcmp(v->text.at + s->at, text, n))
            break;
    }
    return i;
}

int32_t sh_vocab_find(const struct sh_vocab *v, const char *text, size_t n)
{
    return v->n_slot ? v->slot[slot_of(v, text, n)] : -1;
}

void sh_vocab_bytes(const struct sh_vocab *v, int32_t ids[256])
{
    for (unsigned i = 0; i < 256; i++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", i);
        ids[i] = sh_vocab_find(v, name, 6);
    }
}

static void make_room(struct sh_vocab *v)
{
    if (2 * (v->n_used + 1) <= v->n_slot)
        return;
    int32_t *old = v->slot;
    size_t n_old = v->n_slot;
    if (!n_old)
        v->seed = sh_tok_seed();
    v->n_slot = n_old ? 2 * n_old : 1024;
    v->slot = xreallocarray(NULL, v->n_slot, sizeof *v->slot);
    for (size_t i = 0; i < v->n_slot; i++)
        v->slot[i] = -1;
    for (size_t i = 0; i < n_old; i++)
        if (old[i] >= 0)
            v->slot[slot_of(v, v->text.at + v->at[old[i]].at, v->at[old[i]].n)] = old[i];
    free(old);
}

void sh_vocab_put(struct sh_vocab *v, int32_t id, const char *text, size_t n, int hidden)
{
    size_t end = (size_t)id + 1;
    if (end > v->cap_id) {
        v->cap_id = end > 2 * v->cap_id ? end : 2 * v->cap_id;
        v->at = xreallocarray(v->at, v->cap_id, sizeof *v->at);
    }
    for (; v->n_id < end; v->n_id++)
        v->at[v->n_id] = (struct sh_span){HOLE, 0};
    v->at[id] = (struct sh_span){v->text.n, n};
    sh_text_add(&v->text, text, n);
    if (hidden)
        return;
    make_room(v);
    size_t slot = slot_of(v, text, n);
    v->n_used += v->slot[slot] < 0;
    v->slot[slot] = id;
}

int sh_vocab_read(struct sh_vocab *v, const json_t *object, struct sh_err *e)
{
    const char *key;
    json_t *value;
    if (!json_is_object(object))
        return sh_fail(e, "vocab: found %s, expected an object of token: id", sh_json_kind(object));
    json_object_foreach((json_t *)object, key, value) {
        if (!json_is_integer(value))
            return sh_fail(e, "vocab: token \"%.80s\": found %s, expected an id", key, sh_json_kind(value));
        json_int_t id = json_integer_value(value);
        if (id < 0 || id > SH_TOK_MAX_ID)
            return sh_fail(e, "vocab: token \"%.80s\" has id %lld, expected 0 to %d", key,
                           (long long)id, SH_TOK_MAX_ID);
        if (strlen(key) > LONGEST)
            return sh_fail(e, "vocab: token %lld, \"%.40s…\", has %zu bytes, expected at most %u",
                           (long long)id, key, strlen(key), LONGEST);
        if (sh_vocab_has(v, id))
            return sh_fail(e, "vocab: tokens \"%.*s\" and \"%.80s\" both have id %lld",
                           v->at[id].n > 80 ? 80 : (int)v->at[id].n, v->text.at + v->at[id].at, key, (long long)id);
        sh_vocab_put(v, (int32_t)id, key, strlen(key), 0);
    }
    return v->n_id ? 0 : sh_fail(e, "vocab: found no tokens, expected at least one");
}

void sh_vocab_free(struct sh_vocab *v)
{
    free(v->text.at);
    free(v->at);
    free(v->slot);
}
