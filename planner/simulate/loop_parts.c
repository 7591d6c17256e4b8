/* SPDX-License-Identifier: Apache-2.0 */
/* See loop_parts.h. */
#include "planner/simulate/loop_parts.h"

#include <math.h>

#include "src/base/mem.h"

enum { GRID = 64 };                     /* tokens between lengths at which attention is computed */

/* ---- heaps ---- */

static void swap(struct sh_loop_heap *h, uint32_t i, uint32_t k)
{
    struct sh_loop_item x = h->at[i];
    h->at[i] = h->at[k];
    h->at[k] = x;
}

void sh_loop_push(struct sh_loop_heap *h, double key, uint32_t place)
{
    if (h->n == h->room) {
        h->room = h->room ? 2 * h->room : 64;
        h->at = xreallocarray(h->at, h->room, sizeof *h->at);
    }
    uint32_t i = h->n++;
    h->at[i] = (struct sh_loop_item){key, place};
    for (; i && h->at[i].key < h->at[(i - 1) / 2].key; i = (i - 1) / 2)
        swap(h, i, (i - 1) / 2);
}

uint32_t sh_loop_pop(struct sh_loop_heap *h)
{
    uint32_t top = h->at[0].place, i = 0;
    h->at[0] = h->at[--h->n];
    for (;;) {
        uint32_t least = i;
        for (uint32_t k = 2 * i + 1; k <= 2 * i + 2 && k < h->n; k++)
            least = h->at[k].key < h->at[least].key ? k : least;
        if (least == i)
            return top;
        swap(h, i, least);
        i = least;
    }
}

/* ---- time ---- */

struct sh_loop_pace sh_loop_pace(const struct sh_clock *c, const struct sh_capacity_ask *ask, uint32_t draft,
                                 double accept)
{
    uint32_t checked = accept > 0 ? draft + 1 : 1;
    double gained = accept < 1 ? (1 - pow(accept, checked)) / (1 - accept) : checked;
    return (struct sh_loop_pace){.clock = c, .ask = ask, .checked = checked, .gained = gained};
}

/* held_bytes below 0: not computed yet. */
static const struct sh_clock_sequence *node(struct sh_loop_pace *p, size_t i)
{
    if (i >= p->n_grid) {
        size_t n = p->n_grid ? p->n_grid : 64;
        while (n <= i)
            n *= 2;
        p->grid = xreallocarray(p->grid, n, sizeof *p->grid);
        for (size_t k = p->n_grid; k < n; k++)
            p->grid[k].held_bytes = -1;
        p->n_grid = n;
    }
    if (p->grid[i].held_bytes < 0)
        p->grid[i] = sh_clock_sequence_at(p->ask, i ? i * GRID : 1);
    return &p->grid[i];
}

/* A prompt's pairs grow with the square of its length, so those of one token are what is linear. */
struct sh_clock_sequence sh_loop_at(struct sh_loop_pace *p, double length)
{
    size_t i = (size_t)(length / GRID);
    struct sh_clock_sequence high = *node(p, i + 1), low = *node(p, i);
    double from = i ? (double)i * GRID : 1, to = (double)(i + 1) * GRID, u = (length - from) / (to - from), v = 1 - u;
    double pairs = v * low.prompt_flops / from + u * high.prompt_flops / to;
    return (struct sh_clock_sequence){
        v * low.cache_bytes + u * high.cache_bytes, high.state_bytes, v * low.decode_flops + u * high.decode_flops,
        length * pairs, v * low.held_bytes + u * high.held_bytes};
}

void sh_loop_decode_work(const struct sh_clock *c, const struct sh_clock_sequence *q, double batch, uint32_t checked,
                         struct sh_clock_work *w)
{
    double here = ceil(batch / c->layout.dp);
    w->decoding = here * checked;
    w->logits += here * checked;
    w->all_tokens += batch * checked;
    w->all_sequences += here;
    w->cache_bytes += here * q->cache_bytes;
    w->state_bytes += here * q->state_bytes;
    w->decode_flops += here * q->decode_flops * checked;
}

void sh_loop_pipeline(const struct sh_clock *c, double batch, struct sh_clock_work *w)
{
    double *const part[] = {&w->decoding, &w->prompt_tokens, &w->logits, &w->all_tokens, &w->cache_bytes,
                            &w->state_bytes, &w->decode_flops, &w->prompt_flops};
    if (c->layout.pp > 1 && batch > 0)
        for (size_t i = 0; i < sizeof part / sizeof *part; i++)
            *part[i] *= fmax(1.0 / c->layout.pp, 1 / batch);
}

double sh_loop_step_s(const struct sh_clock *c, struct sh_clock_work w, double batch)
{
    sh_loop_pipeline(c, batch, &w);
    return sh_clock_step(c, &w, NULL);
}

double sh_loop_propose_s(const struct sh_loop_pace *p, const struct sh_clock_sequence *q, double batch)
{
    struct sh_clock_work w = {0};
    if (p->checked == 1)
        return 0;
    sh_loop_decode_work(p->clock, q, batch, 1, &w);
    return (p->checked - 1) * sh_loop_step_s(p->clock, w, batch) / p->clock->shape->f.layers;
}

double sh_loop_batch_s(struct sh_loop_pace *p, double batch, double length)
{
    struct sh_clock_work w = {0};
    struct sh_clock_sequence q = sh_loop_at(p, length);
    sh_loop_decode_work(p->clock, &q, batch, p->checked, &w);
    return sh_loop_step_s(p->clock, w, batch) + sh_loop_propose_s(p, &q, batch);
}

double sh_loop_stretch_s(struct sh_loop_pace *p, double batch, double length, double n, double first)
{
    double last = n > 1 ? sh_loop_batch_s(p, batch, length + (n - 1) * p->gained) : first;
    double middle = n > 2 ? sh_loop_batch_s(p, batch, length + (n - 1) / 2 * p->gained) : (first + last) / 2;
    return n * (first + 4 * middle + last) / 6;
}

double sh_loop_steps(const struct sh_loop_pace *p, uint32_t output)
{
    return ceil((output - 1) / p->gained * (1 - 1e-12));
}
