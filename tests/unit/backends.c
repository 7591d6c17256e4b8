/* SPDX-License-Identifier: Apache-2.0 */
/* See backends.h. */
#include "tests/unit/backends.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/rng.h"
#include "tests/tap.h"
#include "tests/unit/variants.h"

static const struct sh_backend *load_module(void)       /* NULL: there is none                    */
{
    const char *path = getenv("SH_TEST_MODULE");
    if (!path || !*path) {
        tap_skip("no module: SH_TEST_MODULE is not set");
        return NULL;
    }
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module)
        printf("# %s\n", dlerror());
    CU_ASSERT_PTR_NOT_NULL_FATAL(module);
    const struct sh_backend *b = dlsym(module, SH_BACKEND_SYMBOL);
    CU_ASSERT_FATAL(b != NULL && b->abi == SH_BACKEND_ABI);
    return b;
}

/* NULL: the device is no emulated one. */
static emulated_count *count_named(const char *name)
{
    const char *path = getenv("SH_TEST_MODULE");
    void *module = path && *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    emulated_count *count = NULL;
    if (module)
        *(void **)&count = dlsym(module, name);
    return count;
}

int target_is_emulated(void)
{
    return count_named("emu_launches") != NULL;
}

emulated_count *target_emulated(const char *name)
{
    emulated_count *count = count_named(name);
    if (!count)
        tap_skip("no emulated device (tests/emu)");
    return count;
}

static int open_module(struct target *t, int n_threads)
{
    const char *full = getenv("SH_TEST_FULL");
    struct sh_err e = {.text = ""};
    if (!(t->b = load_module()))
        return -1;
    t->small = !full || !*full;
    t->d = t->b->open(&(struct sh_open){.n_threads = n_threads}, &e);
    if (!t->d)
        printf("# %s\n", e.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t->d);
    return 0;
}

static int open_cpu(struct target *t, int n_threads)
{
    static const enum variant variant[] = {
        [ON_BASE] = VARIANT_BASE, [ON_AVX2] = VARIANT_AVX2, [ON_AVXVNNI] = VARIANT_AVXVNNI,
        [ON_AVX512] = VARIANT_AVX512, [ON_AMX] = VARIANT_AMX};
    struct sh_err e;
    t->b = &sh_backend_cpu;
    t->d = t->which == ON_CPU ? t->b->open(&(struct sh_open){.n_threads = n_threads}, &e)
                              : variant_open(variant[t->which], n_threads);
    return t->d ? 0 : -1;
}

int target_open(struct target *t, enum which which, int n_threads)
{
    *t = (struct target){.which = which};
    return which == ON_MODULE ? open_module(t, n_threads) : open_cpu(t, n_threads);
}

void target_close(struct target *t)
{
    t->b->close(t->d);
}

void target_run(enum which which, void (*fn)(const struct target *t))
{
    struct target t;
    if (target_open(&t, which, 3))
        return;
    emulated_count *spins = which == ON_MODULE ? count_named("emu_spins") : NULL;
    unsigned long before = spins ? spins() : 0;
    fn(&t);
    target_sync(&t);
    CU_ASSERT(!spins || spins() == before);             /* who waits for the device sleeps */
    target_close(&t);
}

void target_sync(const struct target *t)
{
    struct sh_err e = {.text = ""};
    int status = t->b->sync(t->d, &e);
    if (status)
        printf("# %s\n", e.text);
    CU_ASSERT_EQUAL_FATAL(status, 0);
}

static size_t bytes_of(const struct matrix *x)
{
    return (size_t)x->m.rows * x->m.stride * sh_type_bytes(x->m.type);
}

struct matrix matrix_new(const struct target *t, enum sh_type type, int rows, int cols, int gap)
{
    struct sh_err e;
    struct matrix x = {.m = {.type = type, .rows = rows, .cols = cols, .stride = (size_t)(cols + gap)}};
    x.host = xmalloc(bytes_of(&x));
    memset(x.host, 0xff, bytes_of(&x));
    x.m.at = t->b->alloc(t->d, bytes_of(&x), &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(x.m.at);
    matrix_put(t, &x);
    return x;
}

void matrix_free(const struct target *t, struct matrix *x)
{
    t->b->release(t->d, x->m.at);
    free(x->host);
}

/* Number i of a sequence: all begin somewhere in the same numbers, because making them took longer than what some tests
 * do with them. Their count is prime, so that no shape of powers of two has the same numbers twice in its columns. */
static double normal(uint64_t seed, uint64_t i)
{
    enum { N = 65521 };
    static double *all;
    if (!all) {
        all = xcalloc(N, sizeof *all);
        for (uint64_t k = 0; k < N; k++)
            all[k] = sh_rng_normal(1, k);
    }
    return all[(seed * 7919 + i) % N];
}

void matrix_normal(const struct target *t, struct matrix *x, uint64_t seed, double deviation)
{
    for (int i = 0; i < x->m.rows; i++)
        for (int j = 0; j < x->m.cols; j++)
            matrix_set(x, i, j, deviation * normal(seed, (uint64_t)i * (uint64_t)x->m.cols + (uint64_t)j));
    matrix_put(t, x);
}

void matrix_put(const struct target *t, struct matrix *x)
{
    t->b->put(t->d, x->m.at, x->host, bytes_of(x));
}

void matrix_get(const struct target *t, struct matrix *x)
{
    target_sync(t);
    t->b->get(t->d, x->host, x->m.at, bytes_of(x));
    target_sync(t);
}

static void host_set(enum sh_type type, void *at, size_t i, double value)
{
    float x = (float)rounded(type, value);
    if (type == SH_F32)
        ((float *)at)[i] = x;
    else
        ((uint16_t *)at)[i] = type == SH_F16 ? sh_f32_to_f16(x) : sh_f32_to_bf16(x);
}

double host_at(enum sh_type type, const void *at, size_t i)
{
    if (type == SH_F32)
        return (double)((const float *)at)[i];
    uint16_t half = ((const uint16_t *)at)[i];
    return (double)(type == SH_F16 ? sh_f16_to_f32(half) : sh_bf16_to_f32(half));
}

void *host_normal(enum sh_type type, size_t n, uint64_t seed, double deviation)
{
    void *at = xcalloc(n, sh_type_bytes(type));
    for (size_t i = 0; i < n; i++)
        host_set(type, at, i, deviation * normal(seed, i));
    return at;
}

double matrix_at(const struct matrix *x, int row, int col)
{
    return host_at(x->m.type, x->host, (size_t)row * x->m.stride + (size_t)col);
}

void matrix_set(struct matrix *x, int row, int col, double value)
{
    host_set(x->m.type, x->host, (size_t)row * x->m.stride + (size_t)col, value);
}

int matrix_gap_touched(const struct matrix *x)
{
    size_t bytes = sh_type_bytes(x->m.type), row = x->m.stride * bytes, used = (size_t)x->m.cols * bytes;
    const unsigned char *at = x->host;
    int touched = 0;
    for (int i = 0; i < x->m.rows; i++)
        for (size_t j = used; j < row; j++)
            touched += at[(size_t)i * row + j] != 0xff;
    return touched;
}

/* 2^n of a normal number; ldexp takes a tenth of some tests. */
static double power(int n)
{
    uint64_t bits = (uint64_t)(1023 + n) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

double rounded(enum sh_type type, double x)
{
    static const struct { int digits, least, most; } format[] = {   /* bits; exponents of the ends */
        [SH_F16] = {11, -24, 16}, [SH_BF16] = {8, -133, 128}};
    int exponent;
    if (type == SH_F32)
        return (double)(float)x;
    if (isnan(x) || isinf(x) || x == 0)
        return x;
    frexp(x, &exponent);
    int unit = exponent - format[type].digits;
    unit = unit < format[type].least ? format[type].least : unit;
    double y = rint(x * power(-unit)) * power(unit);    /* rint: ties to even                     */
    return fabs(y) >= power(format[type].most) ? copysign(INFINITY, x) : y;
}

double rounding(enum sh_type type, double magnitude)
{
    if (type == SH_F32)
        return 0;
    return type == SH_F16 ? 0x1.01p-11 * fabs(magnitude) + 0x1p-25 : 0x1.01p-8 * fabs(magnitude);
}

double activated(enum sh_act act, double x)
{
    double inner = 0.7978845608028654 * (x + 0.044715 * x * x * x);     /* sqrt(2 / pi) */
    switch (act) {
    case SH_ACT_RELU: return x > 0 ? x : 0;
    case SH_ACT_GELU: return 0.5 * x * (1 + erf(x * 0.7071067811865476));
    case SH_ACT_GELU_TANH: return 0.5 * x * (1 + tanh(inner));
    case SH_ACT_SILU: return x / (1 + exp(-x));
    case SH_ACT_RELU2: return x > 0 ? x * x : 0;
    case SH_ACT_SIGMOID: return 1 / (1 + exp(-x));
    default: return x;
    }
}

void compare(struct tally *t, double found, double expected, double limit)
{
    double error = found == expected ? 0 : fabs(found - expected);      /* infinities agree too   */
    double share = error > 0 ? error / limit : isnan(error) ? INFINITY : 0;
    if (share > t->worst)
        t->worst = share;
    t->wrong += !(share <= 1);
}
