/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/student.h"

#include <math.h>

enum { MOST_DEGREES = 100000 };

/* P(|T| < t) for a whole number of degrees: finite sums in a = atan(t / sqrt(df)), Abramowitz and Stegun 26.7.3 and
 * 26.7.4. */
static double share_within(double t, int df)
{
    double a = atan(t / sqrt(df)), c = cos(a), term = df % 2 ? c : 1, sum = 0;
    for (int k = df % 2 ? 3 : 2; k <= df && term > 1e-18; k += 2) {
        sum += term;
        term *= c * c * (k - 1) / k;
    }
    return df % 2 ? 2 / 3.14159265358979323846 * (a + sin(a) * sum) : sin(a) * sum;
}

double sh_student_t(double p, long long df)
{
    int n = df < MOST_DEGREES ? (int)df : MOST_DEGREES;
    double share = fabs(2 * p - 1), low = 0, high = 1;
    if (!(p > 0 && p < 1) || df < 1)
        return (double)NAN;
    while (share_within(high, n) < share && high < 1e15)
        high *= 2;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (share_within(middle, n) < share)
            low = middle;
        else
            high = middle;
    }
    return p < 0.5 ? -high : high;
}
