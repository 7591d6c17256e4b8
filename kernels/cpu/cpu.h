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
    const struct cpu_kernels *kernels;  /* the variant picked for this machine               */
    int n_threads;
    struct sh_stages *stages;           /* NULL: time is not measured                        */
    int native_bf16;                    /* bf16 products run as bf16; else as f32 of the same values */
    int own_sums;  /* ours for many rows, too: without AVX-512 oneDNN's depend on rows and threads */
    int x_bits;                         /* as in struct sh_open; 32: f32                              */
    int weight_bits;                    /* of the weights that are made                      */
    struct cpu_scratch widened, product;    /* 16-bit x and out as f32, where the type is not native */
    int few_bf16;                       /* the machine runs the variant's bf16 products of a few rows */
    int has_vnni;                       /* the machine runs the variant's products of bytes       */
    struct cpu_scratch rounded;         /* x of 8 bits, for products that do not round it themselves */
    struct cpu_scratch sorted;          /* x in the order of a weight's columns                   */
    struct cpu_scratch ordered;         /* x as products of a few rows with codes need it    */
    struct cpu_scratch packed;          /* weights as our products of many rows take them    */
    struct cpu_scratch panel, narrowed; /* rows of a weight out of their codes: f32, and as bf16 */
    int failed;
    struct sh_err error;                /* the first failure                                 */
};

extern const struct sh_backend sh_backend_cpu;

/* What oneDNN computes with when operands have this type: f32 where it has no products of the type. */
static inline enum sh_type cpu_computed(const struct sh_dev *d, enum sh_type type)
{
    return type == SH_BF16 && d->native_bf16 ? SH_BF16 : SH_F32;
}

/* Room for so many floats; what was there is lost. */
void *cpu_scratch_at(struct cpu_scratch *s, size_t count);

/* Keep the first failure. */
void cpu_fail(struct sh_dev *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* weight.c: may run next to the operations of another thread */
struct sh_weight *cpu_weight(struct sh_dev *d, const void *at, enum sh_type from, int rows, int cols,
                             enum sh_type to, struct sh_err *e);
int cpu_has_lanes(const struct sh_dev *d);   /* products of codes in lanes, with rounded x (packed_lanes.h) */
int cpu_settle(struct sh_dev *d, struct sh_weight *w);              /* sh_backend.settle          */
struct sh_weight *cpu_packed_weight(struct sh_dev *d, const struct sh_packed *p, enum sh_type to, struct sh_err *e);
void cpu_drop(struct sh_dev *d, struct sh_weight *w);
/* Rows [first, first + n) out of their code, [n, cols]. */
void cpu_unpack_rows(const struct sh_dev *d, const struct sh_packed *p, int first, int n, float *to);

/* weight_codes.c: rows [first, first + n) of a matrix from f32 numbers [n, cols], dense, and back. */
void cpu_codes_put(const struct cpu_codes *c, const float *from, int first, int n, int n_threads);
void cpu_codes_get(const struct cpu_codes *c, float *to, int first, int n, int n_threads);

/* halves.c: the type that such a weight is kept in, for products in f32; SH_F32: not in 16 bits. */
enum sh_type cpu_halves_type(const struct sh_dev *d, enum sh_type from, enum sh_type to);
/* Numbers of a panel of FEW_COLS outputs. */
size_t cpu_halves_panel(int in);
/* Makes the layout, whose memory is the caller's. -1: it does not fit. */
int cpu_halves(struct sh_dev *d, struct few_layout *l, const void *at, enum sh_type from, int rows, int cols,
               enum sh_type to);

/* linear.c */
size_t cpu_linear_bytes(const struct sh_dev *d, int rows, int in, int out, enum sh_type type, int bits);
void cpu_linear(struct sh_dev *d, const struct sh_linear *a);
void cpu_linears(struct sh_dev *d, const struct sh_linear *a, int n);

#endif
