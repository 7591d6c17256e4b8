/* SPDX-License-Identifier: Apache-2.0 */
/* Modules for the tests of the loader: a backend "cuda" without any chip, and variants of it that each
 * have one fault. Like a real module it imports nothing from the program. The good one has devices that
 * open, tell what they were opened with, and hold no memory:
 *
 *     FAKE_DEVICES=N    how many there are (default 1); 0: what a machine without a GPU says
 *     FAKE_BUSY=I       device I does not open
 *
 * Compiled with one of
 *     FAKE_ABI=N        another interface number           FAKE_NAME="…"   another backend's name
 *     FAKE_HIDDEN       exports nothing                    FAKE_NEEDS      wants a function that nobody has
 *     FAKE_TRAP         ends the program, status 97, as soon as it is loaded */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/backend.h"

#ifndef FAKE_ABI
#define FAKE_ABI SH_BACKEND_ABI
#endif
#ifndef FAKE_NAME
#define FAKE_NAME "cuda"
#endif

struct sh_dev {
    struct sh_open with;
};

static int refuse(struct sh_err *e, enum sh_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int refuse(struct sh_err *e, enum sh_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    *e = (struct sh_err){.status = status};
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    return -1;
}

static long number(const char *variable, long otherwise)
{
    const char *text = getenv(variable);
    return text && *text ? strtol(text, NULL, 10) : otherwise;
}

static int count(struct sh_err *e)
{
#ifdef FAKE_NEEDS
    extern int fake_function_that_nobody_has(void);
    if (fake_function_that_nobody_has())
        return refuse(e, SH_FAILED, "unreachable");
#endif
    int n = (int)number("FAKE_DEVICES", 1);
    return n ? n : refuse(e, SH_ABSENT, "backend cuda: cannot open: no CUDA-capable device is detected");
}

static struct sh_dev *open_device(const struct sh_open *o, struct sh_err *e)
{
    int n = count(e);
    if (n > 0 && o->ordinal >= n)
        refuse(e, SH_ABSENT, "backend cuda: cannot open: no device %d, found %d devices", o->ordinal, n);
    else if (n > 0 && o->ordinal == number("FAKE_BUSY", -1))
        refuse(e, SH_ABSENT, "backend cuda: cannot open: device %d is busy", o->ordinal);
    else if (n > 0) {
        struct sh_dev *d = malloc(sizeof *d);
        if (d)
            d->with = *o;
        else
            refuse(e, SH_FAILED, "backend cuda: out of memory");
        return d;
    }
    return NULL;
}

static void close_device(struct sh_dev *d)
{
    free(d);
}

static void props(const struct sh_dev *d, struct sh_props *out)
{
    memset(out, 0, sizeof *out);
    snprintf(out->chip, sizeof out->chip, "chip %s, %d threads", d->with.ordinal < 2 ? "A" : "B", d->with.n_threads);
    out->native_bf16 = 1;
    out->memory_bytes = d->with.memory_bytes ? d->with.memory_bytes : 123456789;
    out->rows_at_once = 64;
}

static void *no_memory(struct sh_dev *d, size_t bytes, struct sh_err *e)
{
    refuse(e, SH_FAILED, "device %d of %d threads: %zu bytes do not fit into %zu", d->with.ordinal, d->with.n_threads,
           bytes, d->with.memory_bytes);
    return NULL;
}

static struct sh_weight *no_weight(struct sh_dev *d, const void *at, enum sh_type from, int rows, int cols,
                                   enum sh_type to, struct sh_err *e)
{
    (void)at, (void)from, (void)to;
    no_memory(d, (size_t)rows * (size_t)cols, e);
    return NULL;
}

static size_t attend_bytes(const struct sh_dev *d, const struct sh_attend *a)
{
    (void)d, (void)a;
    return 0;
}

static void weight_bits(struct sh_dev *d, int bits)
{
    (void)d, (void)bits;
}

static size_t linear_bytes(const struct sh_dev *d, int rows, int in, int out, enum sh_type type, int bits)
{
    (void)d, (void)rows, (void)in, (void)out, (void)type, (void)bits;
    return 0;
}

static void release(struct sh_dev *d, void *at)
{
    (void)d, (void)at;
}

static void drop(struct sh_dev *d, struct sh_weight *w)
{
    (void)d, (void)w;
}

static int sync_device(struct sh_dev *d, struct sh_err *e)
{
    (void)d, (void)e;
    return 0;
}

#ifdef FAKE_TRAP
__attribute__((constructor)) static void trap(void)
{
    _exit(97);
}
#endif

/* Without memory and weights there is nothing that an operation could be called with. */
#ifndef FAKE_HIDDEN
__attribute__((visibility("default")))
#endif
const struct sh_backend sh_backend_module = {
    .abi = FAKE_ABI,
    .name = FAKE_NAME,
    .summary = "no chip at all, for tests",
    .count = count,
    .open = open_device,
    .close = close_device,
    .props = props,
    .alloc = no_memory,
    .release = release,
    .weight = no_weight,
    .weight_bits = weight_bits,
    .drop = drop,
    .attend_bytes = attend_bytes,
    .linear_bytes = linear_bytes,
    .sync = sync_device,
};
