/* SPDX-License-Identifier: Apache-2.0 */
/* See bound.h. */
#include "planner/theory/bound.h"

#include <math.h>

double sh_bound_dropped(double rho, double k)
{
    if (!(rho >= 0 && rho <= 1 && k > 2 && isfinite(k)))
        return NAN;
    return 1 - (k - 1) * pow(rho, (k - 2) / (k - 1)) + (k - 2) * rho;
}

/* The integral of y^-a from 1 to e^ln_w. */
static double power_integral(double a, double ln_w)
{
    double s = (1 - a) * ln_w;
    return fabs(s) < 1e-12 ? ln_w : ln_w * expm1(s) / s;
}

double sh_bound_dropped_cut(double rho, double k, double b, double most)
{
    if (!(rho >= 0 && rho <= 1 && k > 1 && isfinite(k) && b > 0 && most > 0 && isfinite(most / b)))
        return NAN;
    double ln_r = log1p(most / b), beyond = exp((1 - k) * ln_r);
    double ln_w = fmin(-log(beyond + rho * (1 - beyond)) / (k - 1), ln_r);
    double all = power_integral(k - 1, ln_r) - power_integral(k, ln_r);
    return fmax(power_integral(k - 1, ln_w) - power_integral(k, ln_w), 0) / all;
}

void sh_bound_at(double rho, double k, double eps, struct sh_bound *out)
{
    struct sh_bound at = {.inner = NAN, .bound = NAN, .dropped = sh_bound_dropped(rho, k)};
    at.corrected = 2 * at.dropped;
    if (k > 1 && isfinite(k) && eps >= 0 && eps < rho && rho <= 1) {
        at.inner = k - (k - 1) * pow((1 - eps) / (rho - eps), 1 / (k - 1));
        at.bound = 2.1 * (1 - rho) / ((1 - eps) * (1 - eps)) * at.inner;
        at.informative = at.inner > 0;
        at.proven = at.informative && rho >= 0.5 && k > 2;
    }
    *out = at;
}

double sh_bound_failure(double rho, double k, double eps, double b, double u, double t_min, double t_max)
{
    if (!(k > 2 && b > 0 && u > b && eps > 0 && eps < 1 && rho > 0 && rho <= 1 && t_min >= 1 && t_max >= t_min))
        return NAN;
    double spread = eps * b / ((k - 2) * (u - b)), drop = (1 - rho) / (1 - eps);
    return t_max * (exp(-spread * spread * (t_min - 1)) + exp(-2 * drop * drop * (t_min - 1)));
}
