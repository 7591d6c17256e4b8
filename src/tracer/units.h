/* SPDX-License-Identifier: Apache-2.0 */
/* A trace cut into units: neighbouring sequences, and where there are fewer sequences than units, a range of
 * layers of each. The layers below a range are computed again without being recorded (sweep.h). Every
 * process that cuts the same trace into as many units gets the same ones. */
#ifndef SH_TRACER_UNITS_H
#define SH_TRACER_UNITS_H

#include "traces/trace.h"

struct sh_unit {
    int first, n;                       /* sequences [first, first + n)                           */
    int first_layer, last_layer;        /* that are recorded, inclusive                           */
    double work;                        /* in arbitrary units: tokens and scores through layers   */
};

/* Into unit[wanted]; the number of units, at most `wanted` and at least 1. */
int sh_units_cut(struct sh_unit *unit, int wanted, const struct sh_trace_sequence *sequence, int n, int first_layer,
                 int last_layer);

#endif
