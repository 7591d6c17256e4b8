/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/row_codes.h"

#include <math.h>
#include <string.h>

#include "src/base/clones.h"
#include "src/base/log8.h"
#include "src/base/row_lanes.h"

enum { FLUSH = 64 * LANES };            /* terms that are added as floats */

SH_CLONES static float largest(const float *x, int n)
{
    float lane[LANES], most = x[0];
    int i = 0;
    for (int k = 0; k < LANES; k++)
        lane[k] = x[0];
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k];
    for (; i < n; i++)
        most = x[i] > most ? x[i] : most;
    for (int k = 0; k < LANES; k++)
        most = lane[k] > most ? lane[k] : most;
    return most;
}

SH_CLONES static void put_codes(uint8_t *restrict to, const float *restrict s, const float *restrict p, int n,
                                const struct sh_log8 *row)
{
    const struct sh_log8 a = *row;
    for (int i = 0; i < n; i++)
        to[i] = sh_log8_code(&a, s[i], p[i]);
}

void sh_row_codes(uint8_t *to, const float *s, const float *p, int n)
{
    float most = largest(p, n), top = largest(s, n);
    if (!(most > 0)) {
        memset(to, SH_LOG8_ZERO, (size_t)n);
        return;
    }
    const struct sh_log8 row = sh_log8_row(n, top, top - logf(most), most);
    put_codes(to, s, p, n, &row);
}

/* The sum of at most FLUSH scores; *are_fine: all are >= 0. */
SH_CLONES static double part(const float *p, int n, int *are_fine)
{
    float lane[LANES] = {0};
    int fine[LANES], i = 0;
    double sum = 0;
    for (int k = 0; k < LANES; k++)
        fine[k] = 1;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) {
            lane[k] += p[i + k];
            fine[k] &= p[i + k] >= 0;
        }
    for (; i < n; i++) {
        sum += (double)p[i];
        fine[0] &= p[i] >= 0;
    }
    for (int k = 0; k < LANES; k++) {
        sum += (double)lane[k];
        *are_fine &= fine[k];
    }
    return sum;
}

int sh_row_total(const float *p, int n, double *sum)
{
    int are_fine = 1;
    *sum = 0;
    for (int i = 0; i < n; i += FLUSH)
        *sum += part(p + i, n - i < FLUSH ? n - i : FLUSH, &are_fine);
    return are_fine ? 0 : -1;
}
