/* SPDX-License-Identifier: Apache-2.0 */
/* The products of a mixture of experts next to dense ones of the same FLOPs, in the same run and format. A line of JSON
 * for each number of tokens, the fastest of REPEAT runs:
 *
 *     mixture_speed FOLDER LAYER [REPEAT [BACKEND]]
 *
 * FOLDER: a checkpoint, maybe of random_experts.py; LAYER: one that has experts. "mixture" is all that the layer does
 * with a row of its experts: router, choice, gathered products, sums. "dense" are the same products of as many experts
 * as a token uses, each with all tokens, in their order: a feed-forward layer of that width. "share" is dense/mixture.
 * The inputs are random, so that tokens choose different experts. */
#include <stdio.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/base/read_number.h"
#include "src/base/rng.h"
#include "src/base/team.h"
#include "src/model/layers/layer_parts.h"

enum { MOST_ROWS = 512 };

struct bench {
    const struct sh_backend *b;
    struct sh_dev *d;
    const struct sh_layer *l;
    struct sh_activations a;
    struct sh_mat x, out;               /* MOST_ROWS rows                                         */
    struct sh_err *e;
};

static int run_mixture(struct bench *k, int rows)
{
    struct sh_mat x = k->x, out = k->out;
    x.rows = out.rows = rows;
    sh_mixture_run(k->l, &k->a, out, x, x, 0);
    return k->b->sync(k->d, k->e) || sh_layer_failed(k->l, k->e) ? -1 : 0;
}

static int run_dense(struct bench *k, int rows)
{
    const struct sh_mixture *m = &k->a.arch->mix;
    struct sh_mat x = k->x, out = k->out, up = sh_dense(k->a.up, k->a.dtype, rows, m->width);
    x.rows = out.rows = rows;
    for (int i = 0; i < m->used; i++) {
        const struct sh_expert *w = sh_experts_get(k->l, sh_experts_order(k->l)[i], -1);
        if (!w)
            break;
        struct sh_linear down = {.out = out, .x = up, .w = w->down, .bias = w->down_bias, .add = i > 0};
        sh_layer_feed(k->l, &k->a, up, x, w);
        k->b->linear(k->d, &down);
        sh_experts_done(k->l, sh_experts_order(k->l)[i]);
    }
    return k->b->sync(k->d, k->e) || sh_layer_failed(k->l, k->e) ? -1 : 0;
}

/* -1: it failed; the first run warms up. */
static double fastest(struct bench *k, int run(struct bench *, int), int rows, int repeat)
{
    double best = -1;
    for (int i = 0; i <= repeat; i++) {
        double began = sh_now_s();
        if (run(k, rows))
            return -1;
        double took = sh_now_s() - began;
        if (i && (best < 0 || took < best))
            best = took;
    }
    return best;
}

static int measure(struct bench *k, int repeat)
{
    static const int tokens[] = {1, 16, MOST_ROWS};
    const struct sh_arch *c = k->a.arch;
    for (int i = 0; i < 3; i++) {
        double mixture = fastest(k, run_mixture, tokens[i], repeat), dense = fastest(k, run_dense, tokens[i], repeat);
        double flop = 2.0 * tokens[i] * c->mix.used * c->mix.width * c->d_model * (c->flags & SH_GATED ? 3 : 2);
        if (mixture < 0 || dense < 0)
            return -1;
        printf("{\"tokens\": %d, \"experts\": %d, \"used\": %d, \"mixture_s\": %.4e, \"dense_s\": %.4e, "
               "\"mixture_flop_per_s\": %.4g, \"dense_flop_per_s\": %.4g, \"share\": %.3f}\n", tokens[i], c->mix.n,
               c->mix.used, mixture, dense, flop / mixture, flop / dense, dense / mixture);
        fflush(stdout);
    }
    return 0;
}

static int prepare(struct bench *k, const struct sh_arch *c)
{
    size_t n = MOST_ROWS * (size_t)c->d_model;
    if (sh_activations_new(&k->a, k->b, k->d, c, MOST_ROWS, SH_F32, k->e))
        return -1;
    float *host = xmalloc(n * sizeof *host);
    for (size_t i = 0; i < n; i++)
        host[i] = (float)sh_rng_normal(1, i);
    k->x = sh_dense(k->b->alloc(k->d, n * sizeof *host, k->e), SH_F32, MOST_ROWS, c->d_model);
    k->out = sh_dense(k->b->alloc(k->d, n * sizeof *host, k->e), SH_F32, MOST_ROWS, c->d_model);
    if (k->x.at && k->out.at)
        k->b->put(k->d, k->x.at, host, n * sizeof *host);
    free(host);
    return k->x.at && k->out.at ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct sh_err e = {0};
    if (argc < 3) {
        fprintf(stderr, "usage: mixture_speed FOLDER LAYER [REPEAT [BACKEND]]\n");
        return 2;
    }
    long long layer, repeat = 3;
    int bad = 1;
    if (sh_read_whole("LAYER", argv[2], 0, 100000, &layer, &e) ||
        (argc > 3 && sh_read_whole("REPEAT", argv[3], 1, 1000, &repeat, &e))) {
        fprintf(stderr, "mixture_speed: %s\n", e.text);
        return 2;
    }
    struct sh_model *m = sh_model_open(argv[1], &e);
    struct bench k = {.b = m ? sh_backend_find(argc > 4 ? argv[4] : "cpu", &e) : NULL, .e = &e};
    k.d = k.b ? k.b->open(&(struct sh_open){.n_threads = sh_team_threads(), .x_bits = 16}, &e) : NULL;
    struct sh_layer *l = k.d ? sh_layer_load(k.b, k.d, m, (int)layer, SH_F32, 16, &e) : NULL;
    k.l = l;
    if (l && !l->n_expert)
        sh_fail(&e, "%s: layer %lld has no experts", argv[1], layer);
    else if (l)
        bad = prepare(&k, sh_model_arch(m)) || measure(&k, (int)repeat);
    if (bad)
        fprintf(stderr, "mixture_speed: %s\n", e.text);
    if (k.d) {
        k.b->release(k.d, k.x.at);
        k.b->release(k.d, k.out.at);
        sh_activations_free(&k.a);
        sh_layer_drop(l);
        k.b->close(k.d);
    }
    sh_model_close(m);
    return bad ? 1 : 0;
}
