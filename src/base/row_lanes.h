/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over a row of attention: number i goes to partial sum i % LANES, however wide the machine's registers are. */
#ifndef SH_BASE_ROW_LANES_H
#define SH_BASE_ROW_LANES_H

enum { LANES = 16 };

static inline double total(const double lane[LANES])
{
    double sum = 0;
    for (int k = 0; k < LANES; k++)
        sum += lane[k];
    return sum;
}

#endif
