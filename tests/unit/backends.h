/* SPDX-License-Identifier: Apache-2.0 */
/* The backends that a contract test runs on, and matrices that live on them. A test is written once
 * against struct target and runs on every compiled variant of the CPU backend and on the module that
 * the environment names:
 *
 *     SH_TEST_MODULE=PATH   the shared object of a backend, whose device 0 must be there; unset: the test
 *                           is skipped on modules
 *     SH_TEST_FULL=1        the module's device is fast: all sizes. Without it few and small ones, as for
 *                           an emulated device or one under a checker
 *
 * Nothing here or in the tests follows a device pointer. */
#ifndef TESTS_UNIT_BACKENDS_H
#define TESTS_UNIT_BACKENDS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/backend.h"

enum which { ON_BASE, ON_AVX2, ON_AVXVNNI, ON_AVX512, ON_AMX, ON_CPU, ON_MODULE };  /* ON_CPU: the one that it picks */

struct target {
    const struct sh_backend *b;
    struct sh_dev *d;
    enum which which;
    int small;                          /* slow: a test should be content with little             */
};

/* A count that an emulated device keeps (tests/emu/emu.h). NULL: the device is a real one, or there is none, and the
 * running test has been skipped. */
typedef unsigned long emulated_count(void);
emulated_count *target_emulated(const char *name);

/* Is the module's device an emulated one? */
int target_is_emulated(void);

/* Opens it; -1: the running test has been skipped: not compiled or no such instructions, no module. A
 * test that wants a device to fail opens another one of the same. */
int target_open(struct target *t, enum which which, int n_threads);
void target_close(struct target *t);

/* With the device open on 3 threads; fn leaves it without a failure. */
void target_run(enum which which, void (*fn)(const struct target *t));

/* The running test fails at once when the device has failed. */
void target_sync(const struct target *t);

/* Four tests for each function `void fn(const struct target *t)`. */
#define EACH_BACKEND(fn)                                            \
    static void fn##_base(void) { target_run(ON_BASE, fn); }        \
    static void fn##_avx2(void) { target_run(ON_AVX2, fn); }        \
    static void fn##_avx512(void) { target_run(ON_AVX512, fn); }    \
    static void fn##_amx(void) { target_run(ON_AMX, fn); }          \
    static void fn##_module(void) { target_run(ON_MODULE, fn); }
#define LIST_BACKENDS(text, fn) \
    {text " (base)", fn##_base}, {text " (avx2)", fn##_avx2}, {text " (avx512)", fn##_avx512}, \
    {text " (amx)", fn##_amx}, \
    {text " (module)", fn##_module}

/* The same for the variants whose products of rounded rows differ. */
#define EACH_ROUNDING(fn)                                               \
    static void fn##_base(void) { target_run(ON_BASE, fn); }            \
    static void fn##_avx2(void) { target_run(ON_AVX2, fn); }            \
    static void fn##_avxvnni(void) { target_run(ON_AVXVNNI, fn); }      \
    static void fn##_avx512(void) { target_run(ON_AVX512, fn); }
#define LIST_ROUNDINGS(text, fn) \
    {text " (base)", fn##_base}, {text " (avx2)", fn##_avx2}, {text " (avxvnni)", fn##_avxvnni}, \
    {text " (avx512)", fn##_avx512}

/* A matrix on the device and what the host last knew of it. Its rows lie `gap` elements further apart
 * than they are long. All of a new one, and always what lies between the rows, is 0xff bytes (NaN in
 * all formats): what is read or written by mistake shows. */
struct matrix {
    struct sh_mat m;
    void *host;                         /* [rows, stride], of m's type                            */
};

struct matrix matrix_new(const struct target *t, enum sh_type type, int rows, int cols, int gap);
void matrix_free(const struct target *t, struct matrix *x);

/* Normal numbers, rounded to the matrix's type, on the host and on the device. */
void matrix_normal(const struct target *t, struct matrix *x, uint64_t seed, double deviation);
void matrix_put(const struct target *t, struct matrix *x);
void matrix_get(const struct target *t, struct matrix *x);      /* with a sync before it          */

double matrix_at(const struct matrix *x, int row, int col);
void matrix_set(struct matrix *x, int row, int col, double value);      /* on the host            */
int matrix_gap_touched(const struct matrix *x);                 /* bytes between the rows that changed */

/* Rounded to nearest, ties to even, by the definition of the type; overflow gives infinity. */
double rounded(enum sh_type type, double x);
/* The most that one rounding to the type changes a value of this magnitude; 0 for f32. */
double rounding(enum sh_type type, double magnitude);

/* n host numbers of the type, normal, in new memory; number i is host_at(…, i). */
void *host_normal(enum sh_type type, size_t n, uint64_t seed, double deviation);
double host_at(enum sh_type type, const void *at, size_t i);

/* The activation's definition. */
double activated(enum sh_act act, double x);

struct tally {                          /* of comparisons                                         */
    double worst;                       /* error as a share of its limit                          */
    int wrong;
};
void compare(struct tally *t, double found, double expected, double limit);

#endif
