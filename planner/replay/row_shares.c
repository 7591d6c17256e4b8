/* SPDX-License-Identifier: Apache-2.0 */
/* See row_shares.h. */
#include "planner/replay/row_shares.h"

#include "planner/replay/replay.h"
#include "planner/replay/replay_row.h"

/* Mass below this is rounding of the row's sum, and no share of it means anything. */
static const double least_mass = 1e-6;

int sh_row_shares(const float *score, int t, int first_key, float limit, struct sh_row_shares *out, struct sh_err *e)
{
    struct sh_row_shares s;
    s.mass = sh_row_sum(score, t + 1 - first_key, limit, &s.above);
    if (!(s.mass > 0.95 && s.mass < 1.05))
        return sh_fail(e, "row %d sums to %g, expected 1", t, s.mass);
    s.no_sink = s.mass - (t >= SH_REPLAY_SINKS ? (double)score[t - first_key] : 0);
    for (int j = first_key; j < SH_REPLAY_SINKS && j <= t; j++)
        s.no_sink -= (double)score[j - first_key];
    if (s.no_sink <= least_mass)
        s.no_sink = 0;
    *out = s;
    return 0;
}
