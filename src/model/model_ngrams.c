/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of n-grams in a checkpoint (model_bound.h). */
#include <inttypes.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/model/model_bound.h"
#include "src/model/ngrams.h"

/* Some file's tensor of n numbers, if it is there, must hold what is expected. */
static int check_numbers(const struct sh_model *m, const char *stem, const char *name, const int64_t *expected, int n,
                         struct sh_err *e)
{
    char *whole = xasprintf("%s%s", stem, name), found[200];
    const struct sh_stored *t = sh_weights_find(m->file, whole);
    free(whole);
    if (!t)
        return 0;
    if (strcmp(t->dtype, "I64") || t->rank != 1 || t->shape[0] != (size_t)n)
        return sh_fail(e, "%s: tensor '%s': found %s %s, expected I64 [%d]", t->file, t->name, t->dtype,
                       sh_stored_shape(t, found, sizeof found), n);
    for (int i = 0; i < n; i++) {
        int64_t x;
        memcpy(&x, t->at + (size_t)i * sizeof x, sizeof x);
        if (x != expected[i])
            return sh_fail(e, "%s: tensor '%s': element %d: found %" PRId64 ", expected %" PRId64
                           ", which follows from the config", t->file, t->name, i, x, expected[i]);
    }
    return 0;
}

static int check_hash(const struct sh_model *m, const struct sh_ngram_layer *at, const char *stem, struct sh_err *e)
{
    struct sh_ngram_hash h;
    int64_t by[SH_NGRAM_MOST], size[SH_NGRAM_HEADS], first[SH_NGRAM_HEADS];
    sh_ngrams_hash(&m->arch.ngrams, at, m->arch.n_vocab, &h);
    for (int i = 0; i < h.n; i++)
        by[i] = (int64_t)h.by[i];
    for (int i = 0; i < h.heads; i++) {
        size[i] = h.size[i];
        first[i] = h.first[i];
    }
    return check_numbers(m, stem, "layer_multipliers", by, h.n, e) ||
           check_numbers(m, stem, "ngram_heads_vocab_sizes", size, h.heads, e) ||
           check_numbers(m, stem, "ngram_heads_offsets", first, h.heads, e) ? -1 : 0;
}

static int check_layer(const struct sh_model *m, const struct sh_ngram_layer *at, struct sh_err *e)
{
    int n = sh_model_count(m, SH_NGRAM_EMBED);
    const char *name = NULL;
    long long rows = 0;
    for (int i = n - 1; i >= 0; i--) {
        const struct bound *b = sh_bound_at(m, SH_NGRAM_EMBED, at->layer, i);
        name = b->name ? b->name : name;
        rows += b->name ? b->rows : 0;
    }
    if (!name)
        return sh_fail(e, "%s: the table of n-grams of layer %d is missing from the weights", m->path, at->layer);
    if (rows != at->rows)
        return sh_fail(e, "%s: tensor '%s': found %lld rows in all parts of the table, expected %d", m->path, name,
                       rows, at->rows);
    const char *end = strstr(name, "ngram_embedding.");
    char *stem = xasprintf("%.*s", end ? (int)(end - name) : 0, name);
    int bad = m->file && check_hash(m, at, stem, e);
    free(stem);
    return bad ? -1 : 0;
}

int sh_model_check_ngrams(const struct sh_model *m, struct sh_err *e)
{
    for (int i = 0; i < m->arch.ngrams.n_layer; i++)
        if (check_layer(m, &m->arch.ngrams.at[i], e))
            return -1;
    return 0;
}
