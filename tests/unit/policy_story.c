/* SPDX-License-Identifier: Apache-2.0 */
/* See policy_story.h. */
#include "tests/unit/policy_story.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/rng.h"

static void weigh(const struct story *s, uint64_t key, int t, int first, uint64_t *w)
{
    int n = t + 1 - first;
    uint64_t important = sh_rng(s->seed, 999);
    memset(w, 0, (size_t)s->n_token * sizeof *w);
    if (!strcmp(s->kind, "onehot"))
        w[first + (int)(sh_rng(key, 64 * (uint64_t)t) % (uint64_t)n)] = 1;
    for (int i = 0; !strcmp(s->kind, "ties") && i < 16; i++)
        w[first + (int)(sh_rng(key, 64 * (uint64_t)t + (uint64_t)i) % (uint64_t)n)]++;
    for (int j = first; j <= t; j++) {
        if (!strcmp(s->kind, "uniform"))
            w[j] = 1;
        if (strcmp(s->kind, "random") && strcmp(s->kind, "sinks"))
            continue;
        w[j] = (1 + 65536 / (1 + sh_rng(key, 64 * (uint64_t)t + (uint64_t)j) % 4096)) *
               (1 + 64 / (1 + sh_rng(important, (uint64_t)j) % 64));
        if (!strcmp(s->kind, "sinks") && j < 2)
            w[j] += (uint64_t)1 << (24 - 3 * j);
    }
}

static int first_of(const struct story *s, int t)
{
    return s->window && t + 1 > s->window ? t + 1 - s->window : 0;
}

static float *row_of(const struct story *s, int t, int g)
{
    return s->row + ((size_t)t * (size_t)s->group + (size_t)g) * (size_t)s->n_token;
}

static void draw_rows(struct story *s, int from, uint64_t salt)
{
    uint64_t *w = xmalloc((size_t)s->n_token * sizeof *w);
    for (int t = from; t < s->n_token; t++)
        for (int g = 0; g < s->group; g++) {
            uint64_t total = 0;
            int first = first_of(s, t);
            weigh(s, sh_rng(s->seed, 1000 + salt + (uint64_t)g), t, first, w);
            for (int j = first; j <= t; j++)
                total += w[j];
            for (int j = first; j <= t; j++)
                row_of(s, t, g)[j - first] = (float)((double)w[j] / (double)total);
        }
    free(w);
    memset(s->received, 0, (size_t)s->n_token * sizeof *s->received);
    for (int t = 0; t < s->n_token; t++)
        for (int g = 0; g < s->group; g++)
            for (int j = first_of(s, t); j <= t; j++)
                s->received[j] += (double)row_of(s, t, g)[j - first_of(s, t)] / s->group;
}

static void draw_vectors(const struct story *s, uint64_t stream, int from, float *to)
{
    uint64_t key = sh_rng(s->seed, 2000 + stream);
    for (int i = from * s->d_head; i < s->n_token * s->d_head; i++) {
        int x = (int)(sh_rng(key, (uint64_t)i) % 16) - 8 + (i % s->d_head ? 0 : 8);
        to[i] = (float)x / 8;
    }
}

static void draw(struct story *s, int from, uint64_t salt)
{
    size_t one = (size_t)s->n_token * (size_t)s->d_head;
    draw_rows(s, from, salt);
    draw_vectors(s, salt, from, s->k);
    draw_vectors(s, salt + 1, from, s->v);
    for (int g = 0; g < s->group; g++)
        draw_vectors(s, salt + 2 + (uint64_t)g, from, s->q + (size_t)g * one);
}

void story_tell(struct story *s)
{
    size_t n = (size_t)s->n_token, one = n * (size_t)s->d_head;
    s->row = xcalloc(n * n * (size_t)s->group, sizeof(float));
    s->q = xmalloc(one * (size_t)s->group * sizeof(float));
    s->k = xmalloc(one * sizeof(float));
    s->v = xmalloc(one * sizeof(float));
    s->received = xmalloc(n * sizeof(double));
    draw(s, 0, 0);
}

void story_change(struct story *s, int from)
{
    draw(s, from, 100);
}

void story_free(struct story *s)
{
    free(s->row);
    free(s->q);
    free(s->k);
    free(s->v);
    free(s->received);
}

static float score(const struct story *s, int t, int g, int j)
{
    int first = first_of(s, t);
    return j < first || j > t ? 0 : row_of(s, t, g)[j - first];
}

float story_score(const struct story *s, int t, int j)
{
    float sum = 0, scale = (float)(1.0 / s->group);
    for (int g = 0; g < s->group; g++)
        sum += score(s, t, g, j) * scale;
    return sum;
}

double story_future(const struct story *s, int t, int j)
{
    double left = s->received[j];
    for (int i = j; i < t; i++)
        for (int g = 0; g < s->group; g++)
            left -= (double)score(s, i, g, j) / s->group;
    return left > 0 ? left : 0;
}

struct watched {
    int *leaves, n_token, wrong;
};

static void watch(void *to, int cell, int t, const struct sh_cache *c)
{
    struct watched *w = to;
    int live = 0;
    (void)cell;
    for (int j = 0; j <= t; j++) {
        int kept = 0;
        for (int i = 0; i < c->n_slot; i++)
            kept += c->pos[i] == j;
        live += kept;
        if (!kept && w->leaves[j] < 0)
            w->leaves[j] = t;
        w->wrong |= kept > 1 || (kept && w->leaves[j] >= 0);    /* nobody comes back */
    }
    w->wrong |= live != c->n || live < 1;
}

int story_replay(const struct story *s, const struct sh_policy_spec *spec, int budget, int *leaves,
                 struct sh_replay_sums *sums)
{
    struct sh_err e;
    struct watched w = {leaves, s->n_token, 0};
    struct sh_replay_cell cell = {spec, budget};
    struct sh_replay_setup setup = {.n_token = s->n_token, .window = s->window, .prefill = s->prefill,
                                    .layer = s->layer, .head = s->head, .n_layer = s->layer + 1, .group = s->group,
                                    .rows = s->rows, .q = s->q, .k = s->k, .v = s->v, .d_head = s->d_head,
                                    .seed = s->seed, .received = s->received};
    struct sh_replay *r = sh_replay_new(&setup, &cell, 1);
    sh_replay_set_watch(r, watch, &w);
    for (int j = 0; j < s->n_token; j++)
        leaves[j] = -1;
    for (int t = 0; t < s->n_token; t++) {
        const float *row[8];
        for (int g = 0; g < s->group; g++)
            row[g] = row_of(s, t, g);
        w.wrong |= sh_replay_row(r, t, first_of(s, t), row, &e) != 0;
    }
    if (sums)
        *sums = *sh_replay_sums(r, 0);
    sh_replay_free(r);
    return w.wrong ? -1 : 0;
}
