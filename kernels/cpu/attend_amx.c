/* SPDX-License-Identifier: Apache-2.0 */
/* The products of attention (attend.h) by tiles of bf16 pieces (amx.h): three to a number where `out` is as
 * exact as f32 or f16, two where it is rounded to bf16 anyway. */
#include "kernels/cpu/attend.h"

enum { PART = 16 };                     /* steps of the keys' dimension whose P is in tiles at once */

static __mmask16 lanes(int n)
{
    return (__mmask16)(n >= 16 ? 0xffff : n > 0 ? (1 << n) - 1 : 0);
}

static size_t numbers(const struct scratch *w, int sides, int steps)
{
    return (size_t)(sides * steps * w->pieces) * AMX_TILE;
}

void CPU_NAME(cpu_operands_lay_out)(struct scratch *w, const struct sh_attend *a, char *base, size_t *at)
{
    int side_d = w->d_pad / AMX_SIDE, side_n = w->n_pad / AMX_SIDE, n_steps = w->n_pad / AMX_DEPTH;
    w->pieces = a->out.type == SH_BF16 ? 2 : 3;
    w->d_steps = w->d_pad / AMX_DEPTH;
    w->kt = carve(base, at, numbers(w, side_n, w->d_steps) * sizeof *w->kt);
    w->v = carve(base, at, numbers(w, side_d, n_steps) * sizeof *w->v);
    w->q = carve(base, at, numbers(w, BLOCK / AMX_SIDE, w->d_steps) * sizeof *w->q);
    w->p_part = carve(base, at, numbers(w, BLOCK / AMX_SIDE, PART) * sizeof *w->p_part);
    w->turned = carve(base, at, (size_t)w->d_pad * AMX_SIDE * sizeof *w->turned);
}

void CPU_NAME(cpu_operands_begin)(struct scratch *w)
{
    memset(w->turned, 0, (size_t)w->d_pad * AMX_SIDE * sizeof *w->turned);
    amx_begin(&w->before);
}

void CPU_NAME(cpu_operands_end)(struct scratch *w)
{
    amx_end(&w->before);
}

/* AMX_SIDE keys from k on, of which n are there: columns of K^T. */
static void load_keys(struct scratch *w, const struct sh_attend *a, const float *k, int n, uint16_t *to)
{
    for (int c = 0; c < a->d_head; c++)
        for (int j = 0; j < AMX_SIDE; j++)
            w->turned[c * AMX_SIDE + j] = j < n ? k[(size_t)j * a->k.stride + (size_t)c] : 0;
    for (int s = 0; s < w->d_steps; s++, to += w->pieces * AMX_TILE)
        for (int i = 0; i < AMX_DEPTH / 2; i++) {
            const float *c = w->turned + (s * AMX_DEPTH + 2 * i) * AMX_SIDE;
            amx_put_pair(to, i, _mm512_loadu_ps(c), _mm512_loadu_ps(c + AMX_SIDE), w->pieces);
        }
}

/* AMX_SIDE columns of V from v on, `cols` of them there; n keys. */
static void load_values(const struct scratch *w, const struct sh_attend *a, const float *v, int cols, int n,
                        uint16_t *to)
{
    __mmask16 there = lanes(cols);
    for (int j = 0; j < w->n_pad; j += AMX_DEPTH, to += w->pieces * AMX_TILE)
        for (int i = 0; i < AMX_DEPTH / 2; i++) {
            int at = j + 2 * i;
            const float *row = v + (size_t)at * a->v.stride;
            amx_put_pair(to, i, _mm512_maskz_loadu_ps(at < n ? there : 0, row),
                         _mm512_maskz_loadu_ps(at + 1 < n ? there : 0, row + a->v.stride), w->pieces);
        }
}

void CPU_NAME(cpu_load_keys_values)(struct scratch *w, const struct sh_attend *a, int row0, int n, int kv_head)
{
    int d = a->d_head, col = kv_head * d;
    for (int j = 0; j < w->n_pad; j += AMX_SIDE)
        load_keys(w, a, at_row(&a->k, row0 + (j < n ? j : 0), col), n - j,
                  w->kt + numbers(w, j / AMX_SIDE, w->d_steps));
    for (int c = 0; c < w->d_pad && a->out.at; c += AMX_SIDE)
        load_values(w, a, at_row(&a->v, row0, col + c), d - c, n,
                    w->v + numbers(w, c / AMX_SIDE, w->n_pad / AMX_DEPTH));
}

/* BLOCK rows, `steps` times AMX_DEPTH of their numbers; of each row `cols` are there. */
static void put_rows(const struct scratch *w, uint16_t *to, const float *from, size_t stride, int rows, int cols,
                     int steps, float factor)
{
    const __m512 times = _mm512_set1_ps(factor);
    for (int i = 0; i < BLOCK; i++) {
        uint16_t *tile = to + numbers(w, i / AMX_SIDE, steps);
        const float *x = from + (size_t)i * stride;
        int left = i < rows ? cols : 0;
        for (int s = 0; s < steps; s++, tile += w->pieces * AMX_TILE, x += AMX_DEPTH, left -= AMX_DEPTH)
            amx_put_row(tile, i % AMX_SIDE, _mm512_mul_ps(times, _mm512_maskz_loadu_ps(lanes(left), x)),
                        _mm512_mul_ps(times, _mm512_maskz_loadu_ps(lanes(left - 16), x + 16)), w->pieces);
    }
}

void CPU_NAME(cpu_multiply_keys)(struct scratch *w, const struct sh_attend *a, const struct block *b)
{
    int d = a->d_head;
    size_t next = numbers(w, 1, w->d_steps);
    const struct amx_pair q = {w->q, next};
    struct amx_pair k = {w->kt + (size_t)(b->first_column / AMX_SIDE) * next, next};
    put_rows(w, w->q, at_row(&a->q, a->start[b->sequence] + b->q0, b->head * d), a->q.stride, b->n_rows, d, w->d_steps,
             a->scale);
    for (int j = 0; j < b->width; j += 2 * AMX_SIDE, k.at += 2 * next)
        amx_tiles(w->s + j, (size_t)w->s_pad, q, k, w->d_steps, w->pieces, 0);
}

void CPU_NAME(cpu_multiply_values)(struct scratch *w, const struct sh_attend *a, const struct block *b)
{
    int steps = b->width / AMX_DEPTH, from = b->first_column / AMX_DEPTH;
    size_t next = numbers(w, 1, w->n_pad / AMX_DEPTH);
    (void)a;
    for (int s = 0, n; s < steps; s += n) {
        n = steps - s < PART ? steps - s : PART;
        const struct amx_pair p = {w->p_part, numbers(w, 1, n)};
        struct amx_pair v = {w->v + numbers(w, 1, from + s), next};
        put_rows(w, w->p_part, w->p + s * AMX_DEPTH, (size_t)w->s_pad, b->n_rows, n * AMX_DEPTH, n, 1);
        for (int c = 0; c < w->d_pad; c += 2 * AMX_SIDE, v.at += 2 * next)
            amx_tiles(w->o + c, (size_t)w->d_pad, p, v, n, w->pieces, s > 0);
    }
}
