/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/plan/plan_bound.h"

#include <math.h>

#include "src/base/student.h"

/* The quantile of (m - mean) / error that -t stands for. */
static double skewed(double t, double skew, int n)
{
    double a = skew / (3 * sqrt(n));
    return a > 1e-6 ? (cbrt(1 + 3 * a * (-t - a / 2)) - 1) / a : -t;
}

struct sh_mean_bound sh_mean_bound_of(const double *x, const double *w, int n, double confidence)
{
    struct sh_mean_bound b = {0, (double)NAN, (double)NAN, (double)NAN, (double)NAN};
    double sum = 0, weight = 0, squares = 0, cubes = 0;
    for (int i = 0; i < n; i++)
        if (w[i] > 0) {
            b.n++;
            sum += x[i];
            weight += w[i];
        }
    if (!b.n)
        return b;
    b.mean = sum / weight;
    for (int i = 0; i < n; i++) {
        double r = w[i] > 0 ? (x[i] - b.mean * w[i]) / (weight / b.n) : 0;
        squares += r * r;
        cubes += r * r * r;
    }
    if (b.n < 2)
        return b;
    double t = sh_student_t(confidence, b.n - 1), variance = squares / b.n;
    b.error = sqrt(squares / (b.n - 1) / b.n);
    b.low = b.mean - t * b.error;
    b.high = b.mean - skewed(t, variance > 0 ? cubes / b.n / pow(variance, 1.5) : 0, b.n) * b.error;
    return b;
}

struct sh_mean_bound sh_mean_bound_of_share(const double *x, const double *w, int n, double confidence)
{
    struct sh_mean_bound b = sh_mean_bound_of(x, w, n, confidence);
    double all = 0;
    for (int i = 0; i < n; i++)
        all += w[i] > 0 ? w[i] : 0;
    if (b.n < 2)
        return b;
    double z = sh_student_t(confidence, 100000), p = b.mean, middle = (p + z * z / (2 * all)) / (1 + z * z / all);
    double reach = z / (1 + z * z / all) * sqrt(p * (1 - p) / all + z * z / (4 * all * all));
    b.low = fmax(0, fmin(b.low, middle - reach));
    b.high = fmin(1, fmax(b.high, middle + reach));
    return b;
}

int sh_mean_bound_needs(const struct sh_mean_bound *b, double target, double confidence)
{
    enum { MOST = 100000 };
    double spread = b->error * sqrt(b->n), per_t = (b->high - b->mean) / b->error / sh_student_t(confidence, b->n - 1);
    if (!(b->mean < target) || !isfinite(spread))
        return 0;
    for (int n = 2; n < MOST; n += 1 + n / 64)
        if (b->mean + (b->error > 0 ? per_t : 1) * sh_student_t(confidence, n - 1) * spread / sqrt(n) <= target)
            return n;
    return 0;
}
