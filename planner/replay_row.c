/* SPDX-License-Identifier: Apache-2.0 */
/* See replay_row.h. Sums in a fixed number of lanes, so that every machine gets the same. */
#include "planner/replay_row.h"

#include "src/base/clones.h"

enum { LANES = 16 };

SH_INLINE double total(const float lane[LANES])
{
    double sum = 0;
    for (int k = 0; k < LANES; k++)
        sum += (double)lane[k];
    return sum;
}

SH_INLINE int total_int(const int lane[LANES])
{
    int sum = 0;
    for (int k = 0; k < LANES; k++)
        sum += lane[k];
    return sum;
}

SH_CLONES void sh_row_gather(const float *score, const int *pos, int n, float limit, int sinks, float *out,
                             struct sh_kept_row *kept)
{
    float mass[LANES] = {0}, sink[LANES] = {0};
    int above[LANES] = {0};
    int whole = n / LANES * LANES;
    for (int i = 0; i < whole; i += LANES)
        for (int k = 0; k < LANES; k++) {
            float x = score[pos[i + k]];
            out[i + k] = x;
            mass[k] += x;
            sink[k] += pos[i + k] < sinks ? x : 0;
            above[k] += x > limit;
        }
    for (int i = whole; i < n; i++) {
        float x = score[pos[i]];
        out[i] = x;
        mass[i - whole] += x;
        sink[i - whole] += pos[i] < sinks ? x : 0;
        above[i - whole] += x > limit;
    }
    kept->mass = total(mass);
    kept->sink_mass = total(sink);
    kept->above = total_int(above);
}

SH_CLONES void sh_row_scale(float *x, float factor, int n)
{
    for (int i = 0; i < n; i++)
        x[i] *= factor;
}

SH_CLONES double sh_row_sum(const float *score, int n, float limit, int *above)
{
    float sum[LANES] = {0};
    int count[LANES] = {0};
    int whole = n / LANES * LANES;
    for (int i = 0; i < whole; i += LANES)
        for (int k = 0; k < LANES; k++) {
            sum[k] += score[i + k];
            count[k] += score[i + k] > limit;
        }
    for (int i = whole; i < n; i++) {
        sum[i - whole] += score[i];
        count[i - whole] += score[i] > limit;
    }
    *above = total_int(count);
    return total(sum);
}

SH_CLONES void sh_row_add(float *restrict to, const float *restrict x, float factor, int n)
{
    for (int i = 0; i < n; i++)
        to[i] += factor * x[i];
}
