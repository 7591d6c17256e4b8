/* SPDX-License-Identifier: Apache-2.0 */
/* See powerlaw_bootstrap.h. */
#include "planner/theory/powerlaw_bootstrap.h"

#include <math.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/base/rng.h"

/* What replicas are drawn from. */
struct source {
    const struct sh_powerlaw *fit;
    const double *body;                 /* [n_body] the sample's values below xmin                */
    size_t n_body;
};

/* Two numbers a value: which part it comes from, and where in it. */
static void draw(const struct source *from, uint64_t seed, double *out)
{
    const struct sh_powerlaw *fit = from->fit;
    double p_tail = (double)fit->n_tail / (double)fit->n;
    for (size_t i = 0; i < fit->n; i++) {
        double u = sh_rng_uniform(seed, 2 * i + 1);
        if (!from->n_body || sh_rng_uniform(seed, 2 * i) < p_tail)
            out[i] = fit->xmin * pow(u, -1 / (fit->exponent - 1));
        else
            out[i] = from->body[(size_t)(sh_rng(seed, 2 * i + 1) % from->n_body)];
    }
}

void sh_powerlaw_bootstrap(const double *x, size_t n, size_t max_candidate,
                           const struct sh_powerlaw *fit, int n_replica, uint64_t seed,
                           struct sh_powerlaw_test *out)
{
    struct sh_powerlaw_test test = {.p = NAN};
    int n_worse = 0;
    *out = test;
    if (!isfinite(fit->ks) || fit->n > n || n_replica < 1)
        return;
    double *body = xcalloc(fit->n, sizeof *body), *replica = xcalloc(fit->n, sizeof *replica);
    struct source from = {.fit = fit, .body = body};
    for (size_t i = 0; i < n && from.n_body < fit->n; i++)
        if (x[i] > 0 && x[i] < fit->xmin)
            body[from.n_body++] = x[i];
    for (int i = 0; i < n_replica; i++) {
        struct sh_powerlaw again;
        draw(&from, sh_rng(seed, (uint64_t)i), replica);
        sh_powerlaw_scan(replica, fit->n, max_candidate, &again);
        if (isfinite(again.ks)) {
            test.n_replica++;
            n_worse += again.ks >= fit->ks;
        }
    }
    free(body);
    free(replica);
    if (test.n_replica) {
        test.p = (double)n_worse / test.n_replica;
        test.verdict = test.p > SH_POWERLAW_P ? SH_POWERLAW_PLAUSIBLE : SH_POWERLAW_REJECTED;
    }
    *out = test;
}
