/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/plan/judged_count.h"

#include <math.h>
#include <stdlib.h>

#include "src/base/student.h"

static const double surplus = 1.1;

static int larger_first(const void *x, const void *y)
{
    const struct sh_seen_budget *a = x, *b = y;
    return (a->mean < b->mean) - (a->mean > b->mean);
}

/* The mean where the value reaches the target on its way down from seen[0], which meets it. */
static double reaches(const struct sh_seen_budget *seen, int n, double target)
{
    for (int i = 1; i < n; i++)
        if (!(seen[i].value <= target)) {
            double part = (target - seen[i - 1].value) / (seen[i].value - seen[i - 1].value);
            return seen[i - 1].mean * pow((double)seen[i].mean / seen[i - 1].mean, part);
        }
    return seen[n - 1].mean;
}

int sh_judged_count(struct sh_seen_budget *seen, int n, double target, double confidence, int least, int most)
{
    if (n < 1)
        return least;
    qsort(seen, (size_t)n, sizeof *seen, larger_first);
    if (!(seen[0].value <= target))
        return least;
    double mean = surplus * reaches(seen, n, target), value = seen[0].value, spread = seen[0].spread;
    for (int i = 1; i < n && mean < seen[i - 1].mean; i++) {
        const struct sh_seen_budget *above = &seen[i - 1], *below = &seen[i];
        double part = mean > below->mean ? log(mean / above->mean) / log((double)below->mean / above->mean) : 1;
        value = above->value + part * (below->value - above->value);
        spread = above->spread + part * (below->spread - above->spread);
    }
    for (int k = least > 2 ? least : 2; k < most; k++)
        if (sh_student_t(confidence, k - 1) * spread / sqrt(k) <= target - value)
            return k;
    return most > least ? most : least;
}
