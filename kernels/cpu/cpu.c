/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU backend's table: opening, memory, and the operations of weight.c, linear.c and the variants. */
#include "kernels/cpu/cpu.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

enum { ROWS_AT_ONCE = 1024 };           /* more make no product faster, only activations larger */

void cpu_fail(struct sh_dev *d, const char *format, ...)
{
    if (d->failed)
        return;
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    d->failed = 1;
    sh_fail(&d->error, "backend cpu: %s", text);
}

void *cpu_scratch_at(struct cpu_scratch *s, size_t count)
{
    if (count > s->count) {
        free(s->at);
        s->at = xaligned(count * sizeof *s->at);
        s->count = count;
    }
    return s->at;
}

static void close_device(struct sh_dev *d)
{
    if (!d)
        return;
    if (d->engine)
        dnnl_engine_destroy(d->engine);
    free(d->widened.at);
    free(d->product.at);
    free(d->packed.at);
    free(d->panel.at);
    free(d->narrowed.at);
    free(d->rounded.at);
    free(d->sorted.at);
    free(d->ordered.at);
    free(d);
}

static int count(struct sh_err *e)
{
    (void)e;
    return 1;
}

static struct sh_dev *open_device(const struct sh_open *o, struct sh_err *e)
{
    if (o->ordinal != 0) {
        sh_misused(e, "backend cpu: --device %d: there is only device 0", o->ordinal);
        return NULL;
    }
    const struct cpu_kernels *kernels = cpu_kernels_pick(e);
    if (!kernels)
        return NULL;
    struct sh_dev *d = xcalloc(1, sizeof *d);
    d->n_threads = o->n_threads;
    d->stages = o->stages;
    d->weight_bits = 16;
    d->x_bits = o->x_bits ? o->x_bits : 32;
    d->kernels = kernels;
    d->few_bf16 = cpu_runs_bf16();
    d->has_vnni = cpu_runs_vnni();
    d->native_bf16 = (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16;
    d->own_sums = (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) != dnnl_cpu_isa_avx512_core;
    if (dnnl_engine_create(&d->engine, dnnl_cpu, 0)) {
        sh_fail(e, "backend cpu: oneDNN could not be started");
        close_device(d);
        return NULL;
    }
    return d;
}

/* The processor's name as the system tells it, or "CPU". */
static void chip_name(char *to, size_t bytes)
{
    char line[256];
    snprintf(to, bytes, "CPU");
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !colon)
            continue;
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(to, bytes, "%s", colon + 2);
        break;
    }
    if (f)
        fclose(f);
}

static void props(const struct sh_dev *d, struct sh_props *out)
{
    enum { LATE = 16 };                 /* VNNI reads blocks, too, with the same sums: many products pay for a copy */
    char chip[80];
    chip_name(chip, sizeof chip);
    snprintf(out->chip, sizeof out->chip, "%s, %s kernels, %d thread%s", chip, d->kernels->name, d->n_threads,
             d->n_threads == 1 ? "" : "s");
    out->native_bf16 = d->native_bf16;
    out->is_host = 1;
    out->settles = !cpu_has_lanes(d) ? 0 : d->kernels->lanes_by_vnni ? LATE : 1;
    out->memory_bytes = out->taken_bytes = out->peak_bytes = out->used_bytes = 0;
    out->rows_at_once = ROWS_AT_ONCE;
}

static void *alloc(struct sh_dev *d, size_t bytes, struct sh_err *e)
{
    (void)d;
    void *at = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    if (!at)
        sh_fail(e, "backend cpu: another %zu bytes do not fit into memory", bytes);
    return at;
}

static void release(struct sh_dev *d, void *at)
{
    (void)d;
    free(at);
}

static void copy(struct sh_dev *d, void *to, const void *from, size_t bytes)
{
    unsigned long long since = sh_stage_begin(d->stages);
    if (!d->failed)
        memcpy(to, from, bytes);
    sh_stage_end(d->stages, SH_STAGE_COPY, since, sh_stage_sharers(d->stages, 1));
}

static float *vector(struct sh_dev *d, const float *from, size_t n, struct sh_err *e)
{
    float *at = alloc(d, n * sizeof *at, e);
    if (at)
        copy(d, at, from, n * sizeof *at);
    return at;
}

static void weight_bits(struct sh_dev *d, int bits)
{
    d->weight_bits = bits;
}

static void embed(struct sh_dev *d, const struct sh_embed *a)
{
    unsigned long long since = sh_stage_begin(d->stages);
    if (!d->failed)
        d->kernels->embed(a, d->n_threads);
    sh_stage_end(d->stages, SH_STAGE_TOKENS, since, sh_stage_sharers(d->stages, 1));
}

static void norm(struct sh_dev *d, const struct sh_norm *a)
{
    if (!d->failed)
        d->kernels->norm(a, d->n_threads);
}

static void cast(struct sh_dev *d, struct sh_mat out, struct sh_mat x)
{
    if (!d->failed)
        d->kernels->convert(out, x, d->n_threads);
}

static void rotary(struct sh_dev *d, const struct sh_rotary *a)
{
    if (!d->failed)
        d->kernels->rotary(a, d->n_threads);
}

static void gate(struct sh_dev *d, const struct sh_gate *a)
{
    if (!d->failed)
        d->kernels->gate(a, d->n_threads);
}

static void gather(struct sh_dev *d, const struct sh_gather *a)
{
    if (!d->failed)
        d->kernels->gather(a, d->n_threads);
}

static void scatter(struct sh_dev *d, const struct sh_scatter *a)
{
    if (!d->failed)
        d->kernels->scatter(a, d->n_threads);
}

static size_t attend_bytes(const struct sh_dev *d, const struct sh_attend *a)
{
    return (size_t)d->n_threads * d->kernels->attend_bytes(a);
}

static void attend(struct sh_dev *d, const struct sh_attend *a)
{
    int faulty = d->failed ? 0 : d->kernels->attend(a, d->n_threads, d->stages);
    if (faulty)
        cpu_fail(d, "the attention of sequence %d of this batch is not a number: its activations overflowed",
                 faulty - 1);
}

static void conv(struct sh_dev *d, const struct sh_conv *a)
{
    if (!d->failed)
        d->kernels->conv(a, d->n_threads);
}

static void delta(struct sh_dev *d, const struct sh_delta *a)
{
    if (!d->failed)
        d->kernels->delta(a, d->n_threads);
}

static void scan(struct sh_dev *d, const struct sh_scan *a)
{
    if (!d->failed)
        d->kernels->scan(a, d->n_threads);
}

static void lru(struct sh_dev *d, const struct sh_lru *a)
{
    if (!d->failed)
        d->kernels->lru(a, d->n_threads);
}

static int sync(struct sh_dev *d, struct sh_err *e)
{
    if (!d->failed)
        return 0;
    *e = d->error;
    return -1;
}

const struct sh_backend sh_backend_cpu = {
    .abi = SH_BACKEND_ABI, .name = "cpu", .summary = "oneDNN products and our own attention, several threads",
    .count = count, .open = open_device, .close = close_device, .props = props,
    .alloc = alloc, .release = release, .put = copy, .get = copy,
    .weight = cpu_weight, .weight_bits = weight_bits, .vector = vector, .drop = cpu_drop,
    .attend_bytes = attend_bytes, .linear_bytes = cpu_linear_bytes,
    .embed = embed, .linear = cpu_linear, .linears = cpu_linears, .norm = norm, .cast = cast, .rotary = rotary,
    .gate = gate, .gather = gather, .scatter = scatter, .attend = attend, .conv = conv, .delta = delta, .scan = scan,
    .lru = lru, .sync = sync, .packed = cpu_packed_weight, .settle = cpu_settle};
