/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values are read in chunks of slots, each once for all queries of the
 * group. Sums run in LANES parts whose order is written out, so that every machine gets the same. */
#include "src/engine/rows.h"

#include <math.h>
#include <string.h>

#include "src/base/clones.h"
#include "src/base/cpu.h"

enum { LANES = 16 };

typedef float lanes __attribute__((vector_size(64)));
typedef float half __attribute__((vector_size(32)));
typedef float quarter __attribute__((vector_size(16)));
typedef float loose __attribute__((vector_size(64), aligned(4), may_alias));    /* anywhere in memory */
typedef float loose_half __attribute__((vector_size(32), aligned(4), may_alias));

SH_INLINE float total(const lanes *x)
{
    half a, b;
    quarter c, d;
    memcpy(&a, x, sizeof a);
    memcpy(&b, (const char *)x + sizeof a, sizeof b);
    a += b;
    memcpy(&c, &a, sizeof c);
    memcpy(&d, (const char *)&a + sizeof c, sizeof d);
    c += d;
    return (c[0] + c[2]) + (c[1] + c[3]);
}

SH_INLINE float dot(const float *a, const float *b, int n)
{
    lanes part = {0};
    float sum = 0;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        part += *(const loose *)(a + i) * *(const loose *)(b + i);
    for (int c = 0; c < LANES / 2 && i + LANES / 2 <= n; c++)
        part[c] += a[i + c] * b[i + c];
    for (i = n - n % (LANES / 2); i < n; i++)
        sum += a[i] * b[i];
    return total(&part) + sum;
}

/* e^x for x <= 0, within two roundings: 2^n * e^r with |r| <= ln 2 / 2. */
SH_INLINE float exp_below_0(float x)
{
    x = x < -87 ? -87 : x;
    float n = x * 1.44269504f;
    n = (n + 12582912.0f) - 12582912.0f;                /* to the nearest whole number           */
    float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1;
    return p * sh_from_bits((uint32_t)((int32_t)n + 127) << 23);
}

/* The two halves of the parts, added, of four rows, whose last steps can be taken together. Eight numbers that are left
 * of a row belong to the first half. */
SH_INLINE void halves(const float *restrict q, const float *restrict row, size_t width, int d, half *restrict sum)
{
    half low[4] = {{0}}, high[4] = {{0}};
    int i = 0;
    for (; i + LANES <= d; i += LANES) {
        half x = *(const loose_half *)(q + i), y = *(const loose_half *)(q + i + LANES / 2);
#pragma GCC unroll 4
        for (int r = 0; r < 4; r++) {
            low[r] += x * *(const loose_half *)(row + (size_t)r * width + i);
            high[r] += y * *(const loose_half *)(row + (size_t)r * width + i + LANES / 2);
        }
    }
    if (i + LANES / 2 <= d)
#pragma GCC unroll 4
        for (int r = 0; r < 4; r++)
            low[r] += *(const loose_half *)(q + i) * *(const loose_half *)(row + (size_t)r * width + i);
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++)
        sum[r] = low[r] + high[r];
}

/* total() of four rows. */
SH_INLINE quarter totals(const half *x)
{
    quarter four[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++)
        four[r] = __builtin_shufflevector(x[r], x[r], 0, 1, 2, 3) + __builtin_shufflevector(x[r], x[r], 4, 5, 6, 7);
    quarter a = __builtin_shufflevector(four[0], four[1], 0, 1, 4, 5) +
                __builtin_shufflevector(four[0], four[1], 2, 3, 6, 7);
    quarter b = __builtin_shufflevector(four[2], four[3], 0, 1, 4, 5) +
                __builtin_shufflevector(four[2], four[3], 2, 3, 6, 7);
    return __builtin_shufflevector(a, b, 0, 2, 4, 6) + __builtin_shufflevector(a, b, 1, 3, 5, 7);
}

/* score[j] = scale * q k_j of n rows; four at once, so that q is read once for them. */
SH_CLONES static void products(const float *restrict q, const float *restrict k, float scale, int n, int d,
                               float *restrict score)
{
    size_t width = (size_t)d;
    int j = 0, rest = d - d % (LANES / 2);
    for (; j + 4 <= n; j += 4) {
        const float *row = k + (size_t)j * width;
        half part[4];
        halves(q, row, width, d, part);
        quarter sum = totals(part), more = {0};
        for (int r = 0; r < 4 && rest < d; r++)
            for (int c = rest; c < d; c++)
                more[r] += q[c] * row[(size_t)r * width + (size_t)c];
        sum = scale * (sum + more);
        memcpy(score + j, &sum, sizeof sum);
    }
    for (; j < n; j++)
        score[j] = scale * dot(q, k + (size_t)j * width, d);
}

/* Adds ALiBi; what is not seen becomes -INFINITY. Returns the largest. */
SH_CLONES static float settle(float *restrict score, const int *restrict pos, int n, float slope, int position,
                              int oldest)
{
    float part[LANES], most = -INFINITY;
    int j = 0;
    for (int k = 0; k < LANES; k++)
        part[k] = -INFINITY;
    for (; j + LANES <= n; j += LANES)
        for (int k = 0; k < LANES; k++) {
            float x = score[j + k] + slope * (float)(pos[j + k] - position);
            x = pos[j + k] >= oldest ? x : -INFINITY;
            score[j + k] = x;
            part[k] = x > part[k] ? x : part[k];
        }
    for (int k = 0; j < n; j++, k++) {
        float x = score[j] + slope * (float)(pos[j] - position);
        score[j] = pos[j] >= oldest ? x : -INFINITY;
        part[k] = score[j] > part[k] ? score[j] : part[k];
    }
    for (int k = 0; k < LANES; k++)
        most = part[k] > most ? part[k] : most;
    return most;
}

/* rest: a score without a slot; -INFINITY: none */
SH_CLONES static void softmax(float *restrict p, float most, int n, float rest)
{
    float part[LANES] = {0};
    int j = 0;
    for (; j + LANES <= n; j += LANES)
        for (int k = 0; k < LANES; k++) {
            float x = p[j + k], y = exp_below_0(x - most);
            p[j + k] = x == -INFINITY ? 0 : y;
            part[k] += p[j + k];
        }
    for (int k = 0; j < n; j++, k++) {
        float y = exp_below_0(p[j] - most);
        p[j] = p[j] == -INFINITY ? 0 : y;
        part[k] += p[j];
    }
    for (int step = LANES / 2; step; step /= 2)
        for (int k = 0; k < step; k++)
            part[k] += part[k + step];
    float by = 1 / (part[0] + (rest > -INFINITY ? expf(fminf(rest - most, 80)) : 0));
    for (j = 0; j < n; j++)
        p[j] *= by;
}

/* out += p v of n rows, of `parts` parts of the channels, which stay in registers. */
#define MIX(name, part, loose_part)                                                                                \
    SH_INLINE void name(const float *restrict p, const float *restrict v, int n, size_t width, int parts,          \
                        float *restrict out)                                                                       \
    {                                                                                                              \
        enum { EACH = sizeof(part) / sizeof(float) };                                                              \
        part sum[8];                                                                                               \
        _Pragma("GCC unroll 8") for (int c = 0; c < parts; c++)                                                    \
            sum[c] = *(const loose_part *)(out + c * EACH);                                                        \
        for (int j = 0; j < n; j++)                                                                                \
            _Pragma("GCC unroll 8") for (int c = 0; c < parts; c++)                                                \
                sum[c] += p[j] * *(const loose_part *)(v + (size_t)j * width + c * EACH);                          \
        _Pragma("GCC unroll 8") for (int c = 0; c < parts; c++)                                                    \
            *(loose_part *)(out + c * EACH) = sum[c];                                                              \
    }
MIX(mix_lanes, lanes, loose)
MIX(mix_halves, half, loose_half)
#undef MIX

/* Whether registers hold `lanes`; where they do not, compilers keep these in memory. */
static int holds_lanes(void)
{
#ifdef SH_HAS_CLONES
    return __builtin_cpu_supports("avx512vl");
#else
    return 0;
#endif
}

SH_CLONES static void mix(const float *restrict p, const float *restrict v, int n, int d, int is_wide,
                          float *restrict out)
{
    size_t width = (size_t)d;
    int c = 0;
    for (; is_wide && c + 4 * LANES <= d; c += 4 * LANES)
        mix_lanes(p, v + c, n, width, 4, out + c);
    for (; is_wide && c + 2 * LANES <= d; c += 2 * LANES)
        mix_lanes(p, v + c, n, width, 2, out + c);
    for (; c + 4 * LANES <= d; c += 4 * LANES)
        mix_halves(p, v + c, n, width, 8, out + c);
    for (; c + 2 * LANES <= d; c += 2 * LANES)
        mix_halves(p, v + c, n, width, 4, out + c);
    for (; c + LANES <= d; c += LANES)
        mix_halves(p, v + c, n, width, 2, out + c);
    for (; c + LANES / 2 <= d; c += LANES / 2)
        mix_halves(p, v + c, n, width, 1, out + c);
    for (int j = 0; j < n && c < d; j++)
        for (int i = c; i < d; i++)
            out[i] += p[j] * v[(size_t)j * width + (size_t)i];
}

/* Rows of f16 that one query looks at need not become floats first. */
static const uint16_t *read_in_place(const struct sh_slots_attend *a, const struct sh_kv_rows *r)
{
    return r->format.bits == 16 && a->group == 1 && !(a->turn && r == a->k) && sh_rows_f16_fit(r->width) ? r->at : NULL;
}

static void all_products(const struct sh_slots_attend *a)
{
    int n = a->n_slot, d = a->k->width;
    const uint16_t *whole = read_in_place(a, a->k);
    if (whole)
        sh_rows_f16_products(a->q, whole, a->scale, n, d, a->probs);
    for (int j = 0, m; j < n && !whole; j += m) {
        m = n - j < SH_ROWS_AT_ONCE ? n - j : SH_ROWS_AT_ONCE;
        const float *k = sh_kv_rows_get(a->k, j, m, a->chunk);
        if (a->turn) {
            sh_turn_rows(a->turn, k, a->pos + j, m, d, a->chunk);
            k = a->chunk;
        }
        for (int g = 0; g < a->group; g++)
            products(a->q + (size_t)(g * d), k, a->scale, m, d, a->probs + (size_t)g * (size_t)n + j);
    }
}

static void mix_all(const struct sh_slots_attend *a)
{
    int n = a->n_slot, d = a->v->width, is_wide = holds_lanes();
    const uint16_t *whole = read_in_place(a, a->v);
    /* Probabilities fall to e^-87 and are divided after that: in some heads most products would be subnormal. */
    unsigned was = sh_cpu_drop_subnormals();
    for (int c = 0; c < a->group * d; c++)
        a->out[c] = 0;
    if (whole)
        sh_rows_f16_mix(a->probs, whole, n, d, a->out);
    for (int j = 0, m; j < n && !whole; j += m) {
        m = n - j < SH_ROWS_AT_ONCE ? n - j : SH_ROWS_AT_ONCE;
        const float *v = sh_kv_rows_get(a->v, j, m, a->chunk);
        for (int g = 0; g < a->group; g++)
            mix(a->probs + (size_t)g * (size_t)n + j, v, m, d, is_wide, a->out + (size_t)(g * d));
    }
    sh_cpu_keep_subnormals(was);
}

static float to_bf16(float x)
{
    return sh_bf16_to_f32(sh_f32_to_bf16(x));
}

int sh_slots_attend(const struct sh_slots_attend *a)
{
    int n = a->n_slot, oldest = a->window > 0 ? a->position + 1 - a->window : 0, seen = 0;
    oldest = oldest < 0 ? 0 : oldest;
    if (a->span && oldest < a->position / a->span * a->span)
        oldest = a->position / a->span * a->span;
    unsigned long long since = sh_stage_begin(a->stages);
    all_products(a);
    since = sh_stage_end(a->stages, SH_STAGE_ATTENTION, since, a->sharers);
    for (int g = 0; g < a->group; g++) {
        float *row = a->probs + (size_t)g * (size_t)n;
        for (int j = 0; j < n && a->softcap > 0; j++)
            row[j] = a->softcap * tanhf(row[j] / a->softcap);
        float slope = a->slopes ? a->slopes[g] : 0;
        for (int j = 0; j < n && a->rounds_slopes; j++)
            row[j] += a->scale * to_bf16(to_bf16(slope) * (float)a->pos[j]);
        softmax(row, settle(row, a->pos, n, a->rounds_slopes ? 0 : slope, a->position, oldest), n,
                a->sinks ? a->sinks[g] : -INFINITY);
    }
    since = sh_stage_end(a->stages, SH_STAGE_SOFTMAX, since, a->sharers);
    if (a->out)
        mix_all(a);
    sh_stage_end(a->stages, SH_STAGE_ATTENTION, since, a->sharers);
    for (int j = 0; j < n; j++)
        seen += a->pos[j] >= oldest;
    return seen;
}

SH_CLONES static void add_row(float *restrict to, const float *restrict from, int n)
{
    for (int j = 0; j < n; j++)
        to[j] += from[j];
}

void sh_slots_mean(const float *probs, int group, int n_slot, float *row)
{
    for (int j = 0; j < n_slot; j++)
        row[j] = probs[j];
    for (int g = 1; g < group; g++)
        add_row(row, probs + (size_t)g * (size_t)n_slot, n_slot);
    for (int j = 0; j < n_slot && group > 1; j++)
        row[j] /= (float)group;
}
