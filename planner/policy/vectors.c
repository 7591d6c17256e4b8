/* SPDX-License-Identifier: Apache-2.0 */
/* See vectors.h. */
#include "planner/policy/vectors.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "src/base/clones.h"
#include "src/base/num.h"

SH_CLONES void sh_add_scaled(float *restrict to, const float *restrict x, float factor, int n)
{
    for (int i = 0; i < n; i++)
        to[i] += factor * x[i];
}

/* Eight partial sums, so that the order is the same however wide the registers are. */
SH_CLONES float sh_dot(const float *a, const float *b, int n)
{
    float part[8] = {0}, sum = 0;
    int whole = n / 8 * 8;
    for (int i = 0; i < whole; i += 8)
        for (int k = 0; k < 8; k++)
            part[k] += a[i + k] * b[i + k];
    for (int k = 0; k < 8; k++)
        sum += part[k];
    for (int i = whole; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

float sh_key_scale(const struct sh_cache *c, int slot)
{
    const float *k = sh_cache_row(c, c->k, slot);
    float length = sqrtf(sh_dot(k, k, c->d_head));
    return length > 0 ? 1 / length : 0;
}

void sh_key_sum(const struct sh_cache *c, const float *scale, float *sum)
{
    for (int i = 0; i < c->d_head; i++)
        sum[i] = 0;
    for (int i = 0; i < c->n_slot; i++)
        if (c->pos[i] >= 0)
            sh_add_scaled(sum, sh_cache_row(c, c->k, i), scale[i], c->d_head);
}

/* ---- selecting and sorting ---- */

enum { DIGIT = 10, N_DIGIT = 1 << DIGIT, N_ROUND = 3, FEW = 32 };

/* Hoare's selection. */
float sh_quickselect(float *x, int n, int k)
{
    int low = 0, high = n - 1;
    while (low < high) {
        float pivot = x[low + (high - low) / 2];
        int i = low, j = high;
        while (i <= j) {
            while (x[i] < pivot)
                i++;
            while (pivot < x[j])
                j--;
            if (i <= j) {
                float swap = x[i];
                x[i++] = x[j];
                x[j--] = swap;
            }
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            break;
    }
    return x[k];
}

static void insert(float *x, int n)
{
    for (int i = 1; i < n; i++) {
        float y = x[i];
        int j = i;
        for (; j > 0 && x[j - 1] < y; j--)
            x[j] = x[j - 1];
        x[j] = y;
    }
}

static void deal(float *restrict to, const float *restrict from, int *restrict place, int shift, int n)
{
    for (int i = 0; i < n; i++)
        to[place[sh_bits(from[i]) >> shift & (N_DIGIT - 1)]++] = from[i];
}

/* The bits of floats from 0 to 2 are 30-bit integers of the same order: three rounds of a radix sort, digit by digit
 * from the lowest. */
void sh_descending(float *x, float *spare, int n)
{
    int place[N_ROUND][N_DIGIT] = {{0}};
    if (n <= FEW) {
        insert(x, n);
        return;
    }
    for (int i = 0; i < n; i++) {
        uint32_t bits = sh_bits(x[i]);
        for (int r = 0; r < N_ROUND; r++)
            place[r][bits >> (r * DIGIT) & (N_DIGIT - 1)]++;
    }
    for (int r = 0; r < N_ROUND; r++)
        for (int d = N_DIGIT - 1, at = 0; d >= 0; d--) {
            int count = place[r][d];
            place[r][d] = at;
            at += count;
        }
    deal(spare, x, place[0], 0, n);
    deal(x, spare, place[1], DIGIT, n);
    deal(spare, x, place[2], 2 * DIGIT, n);
    memcpy(x, spare, (size_t)n * sizeof *x);
}
