/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of the CPU backend that are worth more than one instruction set. The sources listed as
 * cpu_variant_sources are compiled once per variant with CPU_VARIANT set (base, avx2, avx512; a few for avxvnni and
 * amx); ops.c among them exports the variant's table. */
#ifndef SH_KERNELS_CPU_VARIANT_H
#define SH_KERNELS_CPU_VARIANT_H

#include "kernels/backend.h"
#include "kernels/cpu/gemm_few_rows.h"

struct cpu_kernels {
    const char *name;
    /* 0, or 1 + the number of a sequence with scores that are not numbers; stages may be NULL */
    int (*attend)(const struct sh_attend *a, int n_threads, struct sh_stages *stages);
    size_t (*attend_bytes)(const struct sh_attend *a);                  /* that each thread takes  */
    void (*embed)(const struct sh_embed *a, int n_threads);
    void (*norm)(const struct sh_norm *a, int n_threads);
    void (*rotary)(const struct sh_rotary *a, int n_threads);
    void (*gate)(const struct sh_gate *a, int n_threads);
    void (*gather)(const struct sh_gather *a, int n_threads);
    void (*scatter)(const struct sh_scatter *a, int n_threads);
    void (*conv)(const struct sh_conv *a, int n_threads);
    void (*delta)(const struct sh_delta *a, int n_threads);
    void (*scan)(const struct sh_scan *a, int n_threads);
    void (*lru)(const struct sh_lru *a, int n_threads);
    void (*convert)(struct sh_mat to, struct sh_mat from, int n_threads);   /* from any type to any */
    /* Each number as it is after a visit to a 16-bit type. */
    void (*snap)(float *x, enum sh_type type, size_t n, int n_threads);
    /* n products of the same x; with codes, of the same bits. */
    void (*few)(const struct few *a, int n, int n_threads);
    void (*many)(const struct few *a, const struct few_weight *w, int n_threads);       /* f32 x and weights */
    void (*few_codes)(const struct few *a, int n, int n_threads);
    size_t (*few_codes_room)(int cols);                 /* floats of few.room that a row takes     */
    void (*packed)(const struct few *a, int n, int n_threads);          /* f32 x                   */
    void (*packed_row)(const struct few *a, int n, int n_threads);      /* one row, rounded; of codes */
    int packed_rows;                    /* of x, at most; more are faster by `many`               */
    /* Of codes, x rounded, and NULL in variants without such instructions. A row is the same bits with both. */
    void (*packed_lanes)(const struct few *a, int n, int n_threads);    /* up to packed_rows rows  */
    void (*packed_lanes_many)(const struct few *a, int n_threads);
    int lanes_by_vnni;                  /* only where cpu_runs_vnni; 0: of groups alone (packed_group.h) */
    /* Floats of few.room that packed_lanes_many takes after the threads'. */
    size_t (*lanes_room)(int rows, int in, int n_threads);
    /* Groups of all rows (packed_group.h), 64-byte aligned and the caller's, to free; NULL: no memory, or no format of
     * codes. */
    unsigned char *(*grouped)(const struct sh_packed *p, int n_threads);
    size_t (*packed_room)(int in);                      /* floats of few.room that a thread takes  */
    void (*unpack)(const struct sh_packed *p, int first, int n, float *to);     /* rows, [n, cols]  */
    /* With bf16 operands; only where cpu_runs_bf16, and NULL in variants without such instructions. */
    void (*few_bf16)(const struct few *a, int n, int n_threads);
    void (*few_amx)(const struct few *a, int n, int n_threads);         /* the same by tiles; only in amx */
};

extern const struct cpu_kernels cpu_kernels_base;
#ifdef SH_X86_VARIANTS
extern const struct cpu_kernels cpu_kernels_avx2, cpu_kernels_avx512;

/* Whether this machine has the instructions. */
int cpu_runs_avx2(void);
int cpu_runs_avx512(void);
#endif
#ifdef SH_AVXVNNI_VARIANT
extern const struct cpu_kernels cpu_kernels_avxvnni;    /* avx2, and products of bytes               */
int cpu_runs_avxvnni(void);
#endif
#ifdef SH_AMX_VARIANT
extern const struct cpu_kernels cpu_kernels_amx;        /* avx512, and tiles of bf16 numbers (amx.h)   */
int cpu_runs_amx(void);                 /* asks the system to let this process use them           */
#endif
int cpu_runs_bf16(void);                /* products of bf16 numbers, in addition to avx512        */
int cpu_runs_vnni(void);                /* the same of bytes                                      */

/* The best variant that this machine runs, or the one that the environment variable SH_KERNELS names (base, avx2,
 * avxvnni, avx512, amx), which oneDNN then keeps to, too, if this is the first device. NULL: it names none that runs
 * here. */
const struct cpu_kernels *cpu_kernels_pick(struct sh_err *e);

/* A function of a variant: its name with the variant's suffix. CPU_REST: one of the variant whose functions this one
 * has, but for the few of its own. */
#define CPU_PASTE_(a, b) a##_##b
#define CPU_PASTE(a, b) CPU_PASTE_(a, b)
#define CPU_NAME(a) CPU_PASTE(a, CPU_VARIANT)
#ifdef __AVXVNNI__
#define CPU_REST(a) CPU_PASTE(a, avx2)
#else
#define CPU_REST CPU_NAME
#endif

#ifdef CPU_VARIANT                      /* for the table */
enum { PACKED_ROWS = CPU_FLOATS == 16 ? 16 : 8 };
int CPU_NAME(cpu_attend)(const struct sh_attend *a, int n_threads, struct sh_stages *stages);
size_t CPU_NAME(cpu_attend_bytes)(const struct sh_attend *a);
void CPU_NAME(cpu_conv)(const struct sh_conv *a, int n_threads);
void CPU_NAME(cpu_delta)(const struct sh_delta *a, int n_threads);
void CPU_NAME(cpu_scan)(const struct sh_scan *a, int n_threads);
void CPU_NAME(cpu_lru)(const struct sh_lru *a, int n_threads);
void CPU_NAME(cpu_few)(const struct few *a, int n, int n_threads);
void CPU_NAME(cpu_many)(const struct few *a, const struct few_weight *w, int n_threads);
void CPU_NAME(cpu_few_codes)(const struct few *a, int n, int n_threads);
size_t CPU_NAME(cpu_few_codes_room)(int cols);
void CPU_NAME(cpu_packed)(const struct few *a, int n, int n_threads);
void CPU_NAME(cpu_packed_row)(const struct few *a, int n, int n_threads);
size_t CPU_REST(cpu_packed_room)(int in);
void CPU_NAME(cpu_unpack)(const struct sh_packed *p, int first, int n, float *to);
/* Outputs [first, first + n), n <= FEW_COLS, as panels [FEW_COLS / MANY_WIDE, in, MANY_WIDE]; `to` has packed_room. */
void CPU_NAME(cpu_unpack_panel)(const struct sh_packed *p, int first, int n, float *to);
#ifdef __AVX2__
void CPU_NAME(cpu_packed_lanes)(const struct few *a, int n, int n_threads);
struct lane_run;                        /* lane_run.h: a row of x as products in lanes want it     */
/* Outputs [first, first + n), n <= FEW_COLS, of one row. */
void CPU_NAME(cpu_lanes_row)(const struct few *a, const struct lane_run *x, int first, int n);
void CPU_NAME(cpu_packed_lanes_many)(const struct few *a, int n_threads);
size_t CPU_NAME(cpu_lanes_room)(int rows, int in, int n_threads);
unsigned char *CPU_NAME(cpu_grouped)(const struct sh_packed *p, int n_threads);
#endif
#ifdef CPU_HAS_BF16
void CPU_NAME(cpu_few_bf16)(const struct few *a, int n, int n_threads);
#endif
#endif
#ifdef SH_AVXVNNI_VARIANT               /* functions that replace avx2's                          */
void cpu_packed_lanes_avxvnni(const struct few *a, int n, int n_threads);
void cpu_packed_lanes_many_avxvnni(const struct few *a, int n_threads);
size_t cpu_lanes_room_avxvnni(int rows, int in, int n_threads);
#endif
#ifdef SH_AMX_VARIANT                   /* functions that replace avx512's                        */
int cpu_attend_amx(const struct sh_attend *a, int n_threads, struct sh_stages *stages);
size_t cpu_attend_bytes_amx(const struct sh_attend *a);
void cpu_few_amx(const struct few *a, int n, int n_threads);
#endif

#endif
