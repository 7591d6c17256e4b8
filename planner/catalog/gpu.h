/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU board as its row in a catalogue says (gpus.txt explains the keys). */
#ifndef SH_PLANNER_CATALOG_GPU_H
#define SH_PLANNER_CATALOG_GPU_H

#include <stdint.h>

#include "src/base/err.h"

struct sh_gpu {
    char name[96];
    double gb;                          /* as sold                                                */
    double mib;                         /* the driver's total; 0: not known                       */
    double visible;                     /* GiB that a program is shown; 0: not known               */
    double gbps, f16, f8, link, watts;  /* 10^9 bytes/s, dense TFLOP/s (f8 0: none), 10^9 bytes/s both ways */
    int dies;                           /* devices that it is seen as; at least 1                  */
};

/* `at` names the row in errors. */
int sh_gpu_row(const char *row, const char *at, struct sh_gpu *out, struct sh_err *e);

/* Bytes of one of its devices: the driver's total or, where nobody has posted it, the seller's in 10^9. */
uint64_t sh_gpu_bytes(const struct sh_gpu *b);

#endif
