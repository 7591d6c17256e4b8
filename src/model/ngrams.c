/* SPDX-License-Identifier: Apache-2.0 */
#include "src/model/ngrams.h"

#include <limits.h>

static int is_prime(int x)
{
    if (x < 4)
        return x > 1;
    if (x % 2 == 0)
        return 0;
    for (int k = 3; (long long)k * k <= x; k += 2)
        if (x % k == 0)
            return 0;
    return 1;
}

static int next_prime(int x)
{
    do
        x++;
    while (!is_prime(x));
    return x;
}

static int heads_of(const struct sh_ngrams *g)
{
    return (g->n - 1) * g->heads;
}

int sh_ngrams_size(struct sh_ngrams *g, int least, int divisor)
{
    int prime = least - 1;
    for (int i = 0; i < g->n_layer; i++) {
        long long rows = 0;
        g->at[i].after = prime;
        for (int k = 0; k < heads_of(g); k++)
            rows += prime = next_prime(prime);
        rows = (rows + divisor - 1) / divisor * divisor;
        if (rows > INT_MAX)
            return -1;
        g->at[i].rows = (int)rows;
    }
    return 0;
}

/* SplitMix64 (Steele et al., 2014): the number after the state x. */
static uint64_t split_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

void sh_ngrams_hash(const struct sh_ngrams *g, const struct sh_ngram_layer *at, int n_vocab, struct sh_ngram_hash *out)
{
    uint64_t half = (uint64_t)INT64_MAX / (uint64_t)n_vocab / 2, seed = g->seed + 10007 * (uint64_t)(at - g->at);
    *out = (struct sh_ngram_hash){.n = g->n, .heads = heads_of(g), .end = g->end};
    for (int i = 0; i < g->n; i++)
        out->by[i] = 2 * (split_mix(seed + 0x9e3779b97f4a7c15u * (uint64_t)(i + 1)) % half) + 1;
    for (int k = 0, prime = at->after, first = 0; k < out->heads; k++) {
        out->size[k] = prime = next_prime(prime);
        out->first[k] = first;
        first += prime;
    }
}

void sh_ngrams_rows(const struct sh_ngram_hash *h, const int *recent, int *row)
{
    uint64_t joined = (uint64_t)recent[0] * h->by[0];
    int each = h->heads / (h->n - 1), ended = 0;
    for (int i = 1; i < h->n; i++) {
        ended = ended || recent[i] < 0 || recent[i] == h->end;
        joined ^= (uint64_t)(ended ? h->end : recent[i]) * h->by[i];
        for (int k = (i - 1) * each; k < i * each; k++)
            row[k] = h->first[k] + (int)(joined % (uint64_t)h->size[k]);
    }
}
