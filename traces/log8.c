/* SPDX-License-Identifier: Apache-2.0 */
/* See codec.h. Cells are counted in steps above the row's mean: cell k is (edge(k), edge(k + 1)]. */
#include "traces/codec.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "src/base/clones.h"
#include "src/base/log8.h"

#if defined __x86_64__ && defined __GNUC__ && (defined __clang__ || __GNUC__ >= 12)
#include <immintrin.h>
#define WIDE __attribute__((target("avx512f")))
#endif

enum {
    HIGHEST = 220,                      /* highest cell of a row below 2^24 keys                    */
    CELLS = HIGHEST + 256,
    LANES = 16
};

static float mean[CELLS], least[CELLS]; /* of cell HIGHEST - i, in units of the row's mean; least: safely inside */
static pthread_once_t built = PTHREAD_ONCE_INIT;

static double edge(int k)               /* logarithm of a cell's lower end */
{
    return k == 9 ? log(2) : k == 21 ? log(5) : k * log(10) / 30;
}

/* The mean of a cell for a uniform density of logarithms; slightly less in the widest cells, so that their lower end
 * is within 4 %, too. */
static void build(void)
{
    for (int i = 0; i < CELLS; i++) {
        double low = edge(HIGHEST - i), high = edge(HIGHEST - i + 1);
        mean[i] = (float)fmin((exp(high) - exp(low)) / (high - low), 1.0396 * exp(low));
        least[i] = (float)(1.000001 * exp(low));
    }
}

SH_CLONES static int lowest(const uint8_t *code, int n)
{
    uint8_t lane[LANES];
    int i = 0, found = 255;
    memset(lane, 255, sizeof lane);
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            lane[k] = code[i + k] < lane[k] ? code[i + k] : lane[k];
    for (int k = 0; i + k < n; k++)
        lane[k] = code[i + k] < lane[k] ? code[i + k] : lane[k];
    for (int k = 0; k < LANES; k++)
        found = lane[k] < found ? lane[k] : found;
    return found;
}

/* A score above one half is what the others leave of 1: closer than its cell's mean, and exact where nothing is left
 * over. It stays within its cell, [bottom, ceiling]. */
static float largest_of(const float level[256], const uint8_t *code, int n, int first, float bottom, float ceiling)
{
    double lane[4] = {0};
    for (int i = 0; i < n; i++)
        lane[i % 4] += (double)level[code[i]];
    double left = 1 - (lane[0] + lane[1] + lane[2] + lane[3] - (double)level[first]);
    return fminf(fmaxf((float)left, bottom), fminf(ceiling, 1));
}

SH_CLONES static void scale_all(float *restrict level, const float *restrict cell, float scale)
{
    for (int c = 0; c < 256; c++)
        level[c] = cell[c] * scale;
}

/* level[code], given the row's codes and its lowest one. The two parts of the divided cell lie on either side of 1 %
 * of the largest score as decoded. */
static void levels(float level[256], const uint8_t *code, int n, int first)
{
    int top = HIGHEST - sh_log8_anchor(n), cut = sh_log8_cut(first);
    float scale = (float)(1.0 / n);
    scale_all(level, mean + top, scale);
    memmove(level + cut + 1, level + cut, (256 - (size_t)cut - 1) * sizeof *level);
    for (int c = SH_LOG8_ZERO; c < 256; c++)
        level[c] = 0;
    float middle = level[first];
    level[first] = middle < 1 ? middle : 1;
    if (middle > 0.5f)
        level[first] = largest_of(level, code, n, first, least[top + first] * scale,
                                  least[top + first - 1] * 0.999998f * scale);
    if (cut == first + SH_LOG8_CUT) {
        float low = 0.01f * level[first] * 0.99999f;
        level[cut + 1] = fmaxf(fminf(level[cut], low), least[top + cut] * scale);
        level[cut] = 0.01f * fmaxf(middle, level[first]) * 1.00001f;
    }
}

/* Apart from entropy decoding, table look-ups are the cost of reading: sixteen at a time on processors with gathers. */
#ifdef WIDE
WIDE static int look_up_wide(float *to, const float level[256], const uint8_t *code, int n)
{
    int whole = n / LANES * LANES;
    for (int i = 0; i < whole; i += LANES) {
        const __m512i at = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(code + i)));
        _mm512_storeu_ps(to + i, _mm512_i32gather_ps(at, level, 4));
    }
    return whole;
}
#endif

void sh_log8_scores(float *to, const uint8_t *code, int n)
{
    float level[256];
    int i = 0;
    pthread_once(&built, build);
    if (n == 1 && code[0] <= 2) {       /* higher codes: a sink took some of it */
        to[0] = 1;
        return;
    }
    levels(level, code, n, lowest(code, n));
#ifdef WIDE
    if (__builtin_cpu_supports("avx512f"))
        i = look_up_wide(to, level, code, n);
#endif
    for (; i < n; i++)
        to[i] = level[code[i]];
}

void sh_log8_codes(uint8_t *to, const float *score, int n)
{
    float most = 0;
    for (int i = 0; i < n; i++)
        most = score[i] > most ? score[i] : most;
    most = fminf(most, 1);
    const struct sh_log8 row = sh_log8_row(n, logf(most), 0, most);
    for (int i = 0; i < n; i++) {
        float p = fminf(score[i], 1);
        to[i] = p > 0 ? sh_log8_code(&row, logf(p), p) : SH_LOG8_ZERO;
    }
}
