/* SPDX-License-Identifier: Apache-2.0 */
/* The boards and models that the program knows: gpus.txt and models.txt, put into the program row by row, and rows of
 * the user's own files, which come first. Names are compared without regard to case. */
#ifndef SH_PLANNER_CATALOG_H
#define SH_PLANNER_CATALOG_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"

/* The built-in rows; NULL ends. */
extern const char *const sh_catalog_gpus[];
extern const char *const sh_catalog_models[];

/* The lines of the engines' constants (planner/clock/engine.h); NULL ends. */
extern const char *const sh_catalog_vllm[];
extern const char *const sh_catalog_sglang[];
extern const char *const sh_catalog_trtllm[];

struct sh_catalog {
    const char *const *built_in;
    const char *const *own;             /* rows of a user's file, or NULL                         */
    const char *own_path;
};

/* The row of that name, or NULL; *at is filled with words that name the place of the row, for errors. */
const char *sh_catalog_find(const struct sh_catalog *c, const char *name, char at[256]);

/* The row of a model or board by another usual form of its name: "meta-llama/Llama-3.1-8B-Instruct", "NVIDIA
 * A100-SXM4-80GB", "rtx 4090", or one of the row's aka=. NULL: there is none, or there are several, whose names are
 * then listed. */
enum { SH_CATALOG_SEVERAL = 400 };
const char *sh_catalog_spelled(const struct sh_catalog *c, const char *name, char at[256],
                               char several[SH_CATALOG_SEVERAL]);

/* Row i of both lists, own rows first, those that they hide left out; NULL after the last. */
const char *sh_catalog_row(const struct sh_catalog *c, int i, char at[256]);

/* The names of both lists, one a line; for free(). */
char *sh_catalog_names(const struct sh_catalog *c);

/* The text after the n-th bar of a row: 1 its status, 2 its source. Empty if there is none. */
void sh_catalog_remark(const char *row, int n, char *to, size_t bytes);

/* A GPU board as its row in a catalogue says (gpus.txt explains the keys). */
struct sh_gpu {
    char name[96];
    double gb;                          /* memory in GB, as sold                                  */
    double mib;                         /* the driver's total; 0: not known                       */
    double visible;                     /* GiB that a program is shown; 0: not known               */
    double price;                       /* USD per hour; 0: not known                             */
    double gbps, f16, f8, f4, link, watts;      /* 10^9 bytes/s, dense TFLOP/s (f8, f4 0: none), 10^9 bytes/s both
                                         * ways                                                   */
    char generation[16];                /* "hopper"; empty: not known                             */
    int dies;                           /* devices that it appears as; at least 1                 */
};

/* `at` names the row in errors. */
int sh_gpu_row(const char *row, const char *at, struct sh_gpu *out, struct sh_err *e);

/* Bytes of one of its devices: the driver's total or, if unknown, the seller's in 10^9. */
uint64_t sh_gpu_bytes(const struct sh_gpu *b);

#endif
