/* SPDX-License-Identifier: Apache-2.0 */
/* See time_unit.h. */
#include "src/base/time_unit.h"

#include <math.h>
#include <stddef.h>

struct sh_time_unit sh_time_unit(const double *seconds, int n)
{
    static const struct sh_time_unit units[] = {
        {"s", "seconds", 1, 3}, {"ms", "milliseconds", 1e3, 3}, {"µs", "microseconds", 1e6, 3},
        {"ns", "nanoseconds", 1e9, 3}};
    double least = INFINITY, most = 0;
    for (int i = 0; i < n; i++)
        if (seconds[i] > 0 && isfinite(seconds[i])) {
            least = fmin(least, seconds[i]);
            most = fmax(most, seconds[i]);
        }
    size_t at = 0;
    while (at + 1 < sizeof units / sizeof *units && most > 0 && most * units[at].per_s < 1)
        at++;
    struct sh_time_unit u = units[at];
    if (most > 0)                       /* 0.0512: 4 digits, 51.2: 1 */
        u.digits = (int)fmin(fmax(2 - floor(log10(least * u.per_s)), 0), 6);
    return u;
}
