/* SPDX-License-Identifier: Apache-2.0 */
/* See pass.h. */
#include "tests/unit/pass.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "tests/tap.h"

static struct sh_err e;

size_t pass_triangle(int n)
{
    return (size_t)n * (size_t)(n + 1) / 2;
}

int pass_length(const struct pass *p, int sequence)
{
    return p->start[sequence + 1] - p->start[sequence];
}

static void take(void *to, int sequence, int head, int first_row, int n_rows, const void *packed)
{
    struct pass *p = to;
    int *filled = &p->filled[sequence * p->arch->n_head + head];
    float *rows = p->rows[p->layer][sequence] + (size_t)head * pass_triangle(pass_length(p, sequence));
    if (*filled != first_row || first_row + n_rows > pass_length(p, sequence)) {
        p->disorder = 1;
        return;
    }
    *filled += n_rows;
    const float *at = packed;
    int window = sh_arch_window(p->arch, p->layer);
    for (int t = first_row; t < first_row + n_rows; t++) {
        int start = window && t + 1 > window ? t + 1 - window : 0;
        memcpy(rows + pass_triangle(t) + start, at, (size_t)(t + 1 - start) * sizeof *rows);
        at += t + 1 - start;
    }
}

size_t pass_states(const struct pass *p)
{
    return (size_t)p->start[p->n_seq] * sh_arch_row(p->arch);
}

/* The layer's rows into p->rows[layer]; hidden on the device is left as it is with attention_only. */
static void run_layer(struct pass *p, const struct target *t, const struct sh_layer *l, struct sh_activations *a,
                      void *hidden, int layer, int attention_only)
{
    struct sh_tap tap = {.pack = SH_PACK_F32, .rows = take, .to = p};
    p->layer = layer;
    memset(p->filled, 0, sizeof p->filled);
    sh_layer_run(l, a, hidden, p->n_seq, p->start, &tap, attention_only, NULL);
    target_sync(t);
    CU_ASSERT_FATAL(!p->disorder);
    for (int i = 0; i < p->n_seq * p->arch->n_head; i++)
        CU_ASSERT(p->filled[i] == (i % p->arch->n_head < sh_arch_query_heads(p->arch, layer)
                                       ? pass_length(p, i / p->arch->n_head) : 0));
}

/* p->hidden[0] on the device is what the layers begin with. */
static void run_layers(struct pass *p, const struct target *t, struct sh_model *m, enum sh_type dtype)
{
    struct sh_activations a;
    size_t bytes = pass_states(p) * sizeof(float);
    CU_ASSERT_FATAL(sh_activations_new(&a, t->b, t->d, p->arch, p->start[p->n_seq], dtype, &e) == 0);
    void *hidden = t->b->alloc(t->d, bytes, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(hidden);
    t->b->put(t->d, hidden, p->hidden[0], bytes);
    for (int layer = 0; layer < p->arch->n_layer; layer++) {
        struct sh_layer *l = sh_layer_load(t->b, t->d, m, layer, dtype, 16, &e);
        CU_ASSERT_PTR_NOT_NULL_FATAL(l);
        for (int s = 0; s < p->n_seq; s++)
            p->rows[layer][s] = xcalloc((size_t)p->arch->n_head * pass_triangle(pass_length(p, s)), sizeof(float));
        run_layer(p, t, l, &a, hidden, layer, 0);
        p->hidden[layer + 1] = xmalloc(bytes);
        t->b->get(t->d, p->hidden[layer + 1], hidden, bytes);
        sh_layer_drop(l);
    }
    t->b->release(t->d, hidden);
    sh_activations_free(&a);
}

struct pass *pass_run(enum which on, struct sh_model *m, const int32_t *const tokens[], const int *lengths, int n_seq,
                      enum sh_type dtype)
{
    struct target t;
    if (target_open(&t, on, 2))
        return NULL;
    struct pass *p = xcalloc(1, sizeof *p);
    p->arch = sh_model_arch(m);
    p->n_seq = n_seq;
    CU_ASSERT_FATAL(n_seq <= MOST_SEQ && p->arch->n_layer <= MOST_LAYER && p->arch->n_head <= 16);
    for (int s = 0; s < n_seq; s++)
        p->start[s + 1] = p->start[s] + lengths[s];
    p->hidden[0] = xmalloc(pass_states(p) * sizeof(float));
    for (int s = 0; s < n_seq; s++)
        CU_ASSERT_FATAL(sh_embed(t.b, t.d, m, tokens[s], lengths[s],
                                 p->hidden[0] + (size_t)p->start[s] * sh_arch_row(p->arch), &e) == 0);
    run_layers(p, &t, m, dtype);
    target_sync(&t);
    target_close(&t);
    return p;
}

void pass_free(struct pass *p)
{
    for (int layer = 0; layer <= p->arch->n_layer; layer++) {
        free(p->hidden[layer]);
        for (int s = 0; layer < p->arch->n_layer && s < p->n_seq; s++)
            free(p->rows[layer][s]);
    }
    free(p);
}

void pass_attention_only(enum which on, struct pass *p, struct sh_model *m, int layer, float *hidden)
{
    struct target t;
    struct sh_activations a;
    size_t bytes = pass_states(p) * sizeof(float);
    if (target_open(&t, on, 2))
        return;
    CU_ASSERT_FATAL(sh_activations_new(&a, t.b, t.d, p->arch, p->start[p->n_seq], SH_F32, &e) == 0);
    void *at = t.b->alloc(t.d, bytes, &e);
    struct sh_layer *l = sh_layer_load(t.b, t.d, m, layer, SH_F32, 16, &e);
    CU_ASSERT_FATAL(at != NULL && l != NULL);
    for (int s = 0; s < p->n_seq; s++)
        memset(p->rows[layer][s], 0, (size_t)p->arch->n_head * pass_triangle(pass_length(p, s)) * sizeof(float));
    t.b->put(t.d, at, p->hidden[layer], bytes);
    run_layer(p, &t, l, &a, at, layer, 1);
    t.b->get(t.d, hidden, at, bytes);
    sh_layer_drop(l);
    t.b->release(t.d, at);
    sh_activations_free(&a);
    target_close(&t);
}
