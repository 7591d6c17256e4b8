/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU backend, inside kernels/cpu only: the device, and the operations that fill its table.
 * Products are oneDNN's; the rest are our own loops, compiled once per instruction set (variant.h). */
#ifndef SH_KERNELS_CPU_H
#define SH_KERNELS_CPU_H

#include "kernels/backend.h"
#include "kernels/cpu/variant.h"

struct dnnl_engine;
struct dnnl_stream;

struct cpu_scratch {
    float *at;
    size_t count;                       /* floats it can hold; grows                         */
};

struct sh_dev {
    struct dnnl_engine *engine;
    struct dnnl_stream *stream;
    const struct cpu_kernels *kernels;  /* the variant picked for this machine               */
    int n_threads;
    int native_bf16;                    /* bf16 products run as bf16; else as f32 of the same values */
    struct cpu_scratch widened, product;    /* bf16 x and out as f32, when bf16 is not native */
    int failed;
    struct sh_err error;                /* the first failure                                 */
};

extern const struct sh_backend sh_backend_cpu;

/* Keep the first failure. */
void cpu_fail(struct sh_dev *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* linear.c */
struct sh_weight *cpu_weight(struct sh_dev *d, const void *at, enum sh_type from, int rows, int cols,
                             enum sh_type to, struct sh_err *e);
void cpu_drop(struct sh_dev *d, struct sh_weight *w);
void cpu_linear(struct sh_dev *d, const struct sh_linear *a);

#endif
