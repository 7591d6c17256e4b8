/* SPDX-License-Identifier: Apache-2.0 */
/* What the scores of one recorded row are shares of (the figures of replay.h). */
#ifndef SH_PLANNER_REPLAY_ROW_SHARES_H
#define SH_PLANNER_REPLAY_ROW_SHARES_H

#include "src/base/err.h"

struct sh_row_shares {
    double mass;                        /* of the whole row: 1, but for what the codec did to it  */
    double no_sink;                     /* on neither sinks nor the query's own token; 0: nothing to speak of */
    int above;                          /* scores > limit                                         */
};

/* Row t, scores of the keys from first_key on. -1: it does not sum to 1 (within 5 %, the most that log8
 * makes of it). */
int sh_row_shares(const float *score, int t, int first_key, float limit, struct sh_row_shares *out, struct sh_err *e);

#endif
