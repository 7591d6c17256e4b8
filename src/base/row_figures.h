/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of one row of attention: how focused it is. Backends take them where the row is, statistics
 * add them up. The entropy is the one figure in which two ways may differ, by some 1e-7: where logits are at hand no
 * logarithm is taken. */
#ifndef SH_BASE_ROW_FIGURES_H
#define SH_BASE_ROW_FIGURES_H

#include <stdint.h>

struct sh_row_figures {
    double entropy;                     /* -sum p ln p, nats                                      */
    double mass_top;                    /* sum of the ceil(0.2 n) largest scores                  */
    double low_mass;                    /* sum of the scores < 1 / n                              */
    uint32_t below_1pct;                /* scores < 0.01 * the row's largest                      */
    uint32_t unused;                    /* so that the struct has the same size everywhere        */
};

/* Of a row of n >= 1 scores (>= 0; anything else gives meaningless figures, never a bad access).
 * The logarithm is a float polynomial: the entropy of a row is good to about 1e-7 relative. The
 * figures do not depend on the machine's vector width: score i is added to partial sum i % 16, in
 * order, and the partial sums are added from 0 to 15; products and sums are rounded one by one. */
void sh_row_figures(const float *row, int n, struct sh_row_figures *out);

#endif
