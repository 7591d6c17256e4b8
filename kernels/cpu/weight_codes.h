/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of f32 numbers as codes (kernels/weight_bits.h) and back, in host memory. */
#ifndef SH_KERNELS_CPU_WEIGHT_CODES_H
#define SH_KERNELS_CPU_WEIGHT_CODES_H

#include "kernels/weight_bits.h"

struct cpu_codes {                      /* of a matrix [rows, cols]; at NULL: there are none      */
    unsigned char *at;                  /* sh_code_bytes(rows, cols, bits), the owner's           */
    int rows, cols, bits;
};

/* Rows [first, first + n): from and to are [n, cols], dense. Rows are shared among the threads. */
void cpu_codes_put(const struct cpu_codes *c, const float *from, int first, int n, int n_threads);
void cpu_codes_get(const struct cpu_codes *c, float *to, int first, int n, int n_threads);

#endif
