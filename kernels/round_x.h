/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of x in 8 bits (sh_open.x_bits), as programs multiply them that round activations: each SH_X_SPAN neighbours
 * have a scale, max |x| / 127, and x = scale * n with n the nearest integer (the even one of two) to 127 x / max |x|.
 * All neighbours are NaN where one of them is not finite, and 0 where all are below 2^-100. */
#ifndef SH_KERNELS_ROUND_X_H
#define SH_KERNELS_ROUND_X_H

#include <math.h>

enum { SH_X_SPAN = 32 };

static inline void sh_round_x(const float x[SH_X_SPAN], float to[SH_X_SPAN])
{
    float most = 0;
    int is_number = 1;
    for (int i = 0; i < SH_X_SPAN; i++) {
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
        is_number &= isfinite(x[i]) != 0;
    }
    float inverse = most >= 0x1p-100f ? 127 / most : 0, scale = is_number ? most / 127 : NAN;
    for (int i = 0; i < SH_X_SPAN; i++)
        to[i] = scale * (is_number ? rintf(x[i] * inverse) : 0);
}

#endif
