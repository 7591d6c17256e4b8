/* SPDX-License-Identifier: Apache-2.0 */
/* How one attention score is kept in a byte (log8). Everything that writes packed scores takes the
 * numbers from here; traces/log8.c reads them.
 *
 * A code is linear in the logit, so that no logarithm is needed where logits are at hand, and its
 * lattice is anchored at the row: with n keys and y = ln(n p) / STEP, cell k holds k < y <= k + 1 and
 * has the code A(n) - k. STEP = ln(10) / 30 puts 1/n and 10/n on edges between cells, and 2/n and 5/n so
 * near to one (y = 9.03 and 20.97) that it is moved there. At 1/n, and where an edge was moved, the very
 * score that f32 would keep is compared, and whoever reads the code decides the same. A cell is at most
 * 1.031 STEP wide: scores from 1e-8 to 1 come back with at most 4 % error.
 *
 * "Below 1 % of the row's largest" begins 60 cells below the largest score, inside of a cell. That cell
 * is cut in two there, and all codes after the cut are one higher; the row's lowest code tells a reader
 * where. So the share of such scores is also that of f32, except for scores within 0.03 cells of the cut (as
 * at a moved edge).
 *
 * Code 244 stands for exactly 0 and for everything below 8e-9 to 9.2e-9; those above it are unused. */
#ifndef SH_BASE_LOG8_H
#define SH_BASE_LOG8_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define SH_LOG8_FN static __host__ __device__ __forceinline__
#else
#define SH_LOG8_FN static inline
#endif

#define SH_LOG8_STEP 0.0767528364f
#define SH_LOG8_ZERO 244
#define SH_LOG8_CUT 60                  /* cells from the largest score to its hundredth            */
#define SH_LOG8_LAST 243                /* the last code of a score, after the cut                  */
#define SH_LOG8_ROUND 12582912.0f       /* 1.5 * 2^23: adding it rounds to a whole number, to even  */

/* What the codes of one row need. Codes are computed with as floats, with ROUND added to them. A limit is the
 * largest float that is not above K/n, its code that of the lowest cell above K/n. */
struct sh_log8 {
    float origin;                       /* the logit of code 0                                      */
    float percent;                      /* a score below it is below 1 % of the largest             */
    float limit_1, limit_2, limit_5;
    float code_1, code_2, code_5;
};

/* A(n): the code of the cell just above 1/n, so that a score of 1 has code 0, 1 or 2. Whole numbers only
 * (log2 n linear within each octave): writers and readers must agree on every machine. 1 <= n < 2^24. */
SH_LOG8_FN int sh_log8_anchor(int n)
{
    int octave = 0;
    while (n >> octave > 1)
        octave++;
    int64_t octaves = ((int64_t)octave << 16) + (((int64_t)n << 16 >> octave) - 65536);     /* times 2^16 */
    return 1 + (int)(octaves * 9030 / (1000 << 16));
}

/* The code of the cell that is cut, in a row whose lowest code is `lowest`. */
SH_LOG8_FN int sh_log8_cut(int lowest)
{
    return lowest + SH_LOG8_CUT < SH_LOG8_LAST ? lowest + SH_LOG8_CUT : SH_LOG8_LAST - 1;
}

/* x as a float, rounded down, or up: as in num.h, for code that runs on any device. 0 < x. */
SH_LOG8_FN float sh_log8_limit(double x, int up)
{
    float f = (float)x;
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    u += up ? (uint32_t)((double)f < x) : 0u - (uint32_t)((double)f > x);
    memcpy(&f, &u, sizeof u);
    return f;
}

/* The code of a score with logit s <= the row's largest, which is p as f32 would keep it. Anything that is
 * no number gives some code.
 *
 * Logits are rounded, so 1/n needs care on both sides. The edges at 2/n and 5/n lie 0.03 cells from where
 * the logits would put them, on a known side; the one at 10/n is where the logits put it. */
SH_LOG8_FN uint8_t sh_log8_code(const struct sh_log8 *a, float s, float p)
{
    float x = (s - a->origin) * (-1.0f / SH_LOG8_STEP) + SH_LOG8_ROUND;
    x = x < SH_LOG8_LAST + SH_LOG8_ROUND ? x : SH_LOG8_LAST + SH_LOG8_ROUND;    /* NaN becomes LAST */
    x += p < a->percent ? 1.0f : 0.0f;
    float low_2 = p > a->limit_2 ? SH_LOG8_ROUND : a->code_2 + 1;
    float high_5 = p > a->limit_5 ? a->code_5 : SH_LOG8_ZERO + SH_LOG8_ROUND;
    x = x > low_2 ? x : low_2;
    x = x < high_5 ? x : high_5;
    float high_1 = x < a->code_1 ? x : a->code_1, low_1 = x > a->code_1 + 1 ? x : a->code_1 + 1;
    x = p > a->limit_1 ? high_1 : low_1;
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return (uint8_t)u;
}

/* A row of n keys whose largest logit is `top`, with the score `most`; lse = ln of the sum of exp. */
SH_LOG8_FN struct sh_log8 sh_log8_row(int n, float top, float lse, float most)
{
    float anchor = (float)sh_log8_anchor(n), cut;
    struct sh_log8 a;
    a.origin = lse + ((anchor + 0.5f) * SH_LOG8_STEP - logf((float)n));
    a.percent = 0;
    a.limit_1 = sh_log8_limit(1.0 / n, 0);
    a.limit_2 = 2 * a.limit_1;
    a.limit_5 = sh_log8_limit(5.0 / n, 0);
    a.code_1 = anchor + SH_LOG8_ROUND;
    a.code_2 = a.code_1 - 9;
    a.code_5 = a.code_1 - 21;
    cut = SH_LOG8_ROUND + (float)sh_log8_cut(sh_log8_code(&a, top, most));
    a.percent = sh_log8_limit(0.01 * (double)most, 1);
    a.code_1 += a.code_1 >= cut ? 1.0f : 0.0f;          /* cells after the cut */
    a.code_2 += a.code_2 >= cut ? 1.0f : 0.0f;
    a.code_5 += a.code_5 >= cut ? 1.0f : 0.0f;
    return a;
}

#endif
