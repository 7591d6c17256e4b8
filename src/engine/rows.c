/* SPDX-License-Identifier: Apache-2.0 */
/* See rows.h. Codes by channel: block b holds the slots [b * group, (b + 1) * group), the last one perhaps
 * fewer; in it channel after channel. */
#include "src/engine/rows.h"

#if defined __x86_64__ && defined __GNUC__
#include <immintrin.h>
#endif
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/cpu.h"

static size_t rounded(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* No more than there are slots. */
static int residual_rows(const struct sh_kv_rows *r)
{
    return r->format.residual < r->capacity ? r->format.residual : r->capacity;
}

/* The sizes of a head's parts. */
static void measure(struct sh_kv_rows *r)
{
    const struct sh_kv_format *f = &r->format;
    size_t n = (size_t)r->capacity, width = (size_t)r->width;
    r->meta_bytes = r->open_bytes = 0;
    if (f->bits >= 16) {
        r->at_bytes = n * width * (size_t)f->bits / 8;
    } else if (!r->by_channel) {
        r->at_bytes = n * sh_quant_row_code_bytes(f, r->width);
        r->meta_bytes = n * sh_quant_row_meta_bytes(f, r->width);
    } else {
        size_t blocks = n / (size_t)f->group;
        r->at_bytes = blocks * width * sh_quant_code_bytes(f->group, f->bits);
        r->meta_bytes = blocks * width * sh_quant_meta_bytes(f->meta);
        r->open_bytes = (size_t)f->group * width * sizeof(float);
    }
    if (f->bits < 16 && r->by_channel == SH_KV_BY_CHANNEL) {
        int rest = r->capacity % f->group;
        r->at_bytes += rest ? width * sh_quant_code_bytes(rest, f->bits) : 0;
        r->meta_bytes += rest ? width * sh_quant_meta_bytes(f->meta) : 0;
        r->open_bytes = (size_t)residual_rows(r) * (width * sizeof(uint16_t) + sizeof(int));
    }
}

int sh_kv_rows_new(struct sh_kv_rows *r, const struct sh_kv_format *f, enum sh_kv_layout by_channel, int capacity,
                   int width, struct sh_err *e)
{
    *r = (struct sh_kv_rows){.format = *f, .by_channel = f->bits < 16 ? by_channel : SH_KV_BY_TOKEN,
                             .capacity = capacity,
                             .width = width};
    measure(r);
    size_t at = rounded(r->at_bytes), meta = rounded(r->meta_bytes), all = at + meta + rounded(r->open_bytes);
    char *block = aligned_alloc(64, all ? all : 64);
    if (!block)
        return sh_fail(e, "the KV cache does not fit into memory: %d tokens of one head take %zu bytes", capacity, all);
    r->all_bytes = all;
    r->at = block;
    r->meta = block + at;
    r->open = (float *)(void *)(block + at + meta);
    if (r->by_channel == SH_KV_BY_CHANNEL) {
        r->held = (int *)(void *)r->open;
        r->fresh = (uint16_t *)(r->held + residual_rows(r));
    }
    sh_kv_rows_clear(r);
    return 0;
}

/* A block without a coded token has NaN as its scale. */
void sh_kv_rows_clear(struct sh_kv_rows *r)
{
    r->whole = 0;
    if (r->by_channel != SH_KV_BY_CHANNEL)
        return;
    memset(r->meta, 0xff, r->meta_bytes);
    memset(r->at, 0, r->at_bytes);
    for (int i = 0; i < residual_rows(r); i++)
        r->held[i] = -1;
}

void sh_kv_rows_free(struct sh_kv_rows *r)
{
    free(r->at);
    *r = (struct sh_kv_rows){0};
}

void sh_kv_rows_copy(struct sh_kv_rows *to, const struct sh_kv_rows *from)
{
    if (from->all_bytes)
        memcpy(to->at, from->at, from->all_bytes);
    to->whole = from->whole;
}

static char *block_codes(const struct sh_kv_rows *r, int block, int channel)
{
    int group = r->format.group, rest = r->capacity - block * group;
    size_t before = (size_t)block * (size_t)r->width * sh_quant_code_bytes(group, r->format.bits);
    return (char *)r->at + before + (size_t)channel * sh_quant_code_bytes(rest < group ? rest : group, r->format.bits);
}

static char *block_meta(const struct sh_kv_rows *r, int block, int channel)
{
    size_t i = (size_t)block * (size_t)r->width + (size_t)channel;
    return (char *)r->meta + i * sh_quant_meta_bytes(r->format.meta);
}

static void put_by_channel(struct sh_kv_rows *r, int slot, const float *row)
{
    int group = r->format.group, block = slot / group;
    r->whole = block;                   /* after a restart slots begin anew */
    size_t width = (size_t)r->width;
    memcpy(r->open + (size_t)(slot % group) * width, row, width * sizeof *row);
    if (slot % group < group - 1)
        return;
    for (int c = 0; c < r->width; c++)
        sh_quant_write(&r->format, r->open + c, width, group, block_codes(r, block, c), block_meta(r, block, c));
    r->whole = block + 1;
}

/* f16 and back. The processor's conversions give the same numbers as ours, many times faster. */
#if defined __x86_64__ && defined __GNUC__
#define WITH_F16C __attribute__((target("avx,f16c")))

WITH_F16C static size_t narrow_fast(uint16_t *to, const float *from, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}

WITH_F16C static size_t widen_fast(float *to, const uint16_t *from, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i))));
    return i;
}
#else
static size_t narrow_fast(uint16_t *to, const float *from, size_t n) { (void)to; (void)from; (void)n; return 0; }
static size_t widen_fast(float *to, const uint16_t *from, size_t n) { (void)to; (void)from; (void)n; return 0; }
#endif

static void narrow(uint16_t *to, const float *from, size_t n)
{
    for (size_t i = sh_cpu_has_f16c() ? narrow_fast(to, from, n) : 0; i < n; i++)
        to[i] = sh_f32_to_f16(from[i]);
}

static void widen(float *to, const uint16_t *from, size_t n)
{
    for (size_t i = sh_cpu_has_f16c() ? widen_fast(to, from, n) : 0; i < n; i++)
        to[i] = sh_f16_to_f32(from[i]);
}

static int is_coded(const struct sh_kv_rows *r, int block)
{
    float low, high;
    sh_quant_range(&r->format, block_meta(r, block, 0), &low, &high);
    return !isnan(high);
}

/* One channel of a block takes in the residual's tokens that are in it. */
static void code_channel(struct sh_kv_rows *r, int block, int channel)
{
    const struct sh_kv_format *f = &r->format;
    int group = f->group, n = r->capacity - block * group < group ? r->capacity - block * group : group;
    char *codes = block_codes(r, block, channel), *meta = block_meta(r, block, channel);
    float low = INFINITY, high = -INFINITY, from, to, old[1024];
    for (int i = 0; i < residual_rows(r); i++)
        if (r->held[i] >= 0 && r->held[i] / group == block) {
            float x = sh_f16_to_f32(r->fresh[(size_t)i * (size_t)r->width + (size_t)channel]);
            low = x < low ? x : low;
            high = x > high ? x : high;
        }
    sh_quant_range(f, meta, &from, &to);
    if (isnan(to)) {
        sh_quant_set_range(f, low, high, meta);
    } else {
        float half = (to - from) / (f->bits == 8 ? 255 : 15) / 2;
        if (low < from - half || high > to + half) {
            sh_quant_read(f, codes, meta, 0, n, old);
            sh_quant_set_range(f, low < from ? low : from, high > to ? high : to, meta);
            for (int i = 0; i < n; i++)
                sh_quant_put(f, old[i], i, codes, meta);
        }
    }
    for (int i = 0; i < residual_rows(r); i++)
        if (r->held[i] >= 0 && r->held[i] / group == block)
            sh_quant_put(f, sh_f16_to_f32(r->fresh[(size_t)i * (size_t)r->width + (size_t)channel]), r->held[i] % group,
                         codes, meta);
}

/* The block that has most tokens in the residual takes them in. */
static void flush(struct sh_kv_rows *r)
{
    int group = r->format.group, best = 0, most = 0;
    for (int i = 0; i < residual_rows(r); i++) {
        int n = 0;
        for (int k = 0; k < residual_rows(r); k++)
            n += r->held[k] / group == r->held[i] / group;      /* all are taken */
        if (n > most) {
            most = n;
            best = r->held[i] / group;
        }
    }
    for (int c = 0; c < r->width; c++)
        code_channel(r, best, c);
    for (int i = 0; i < residual_rows(r); i++)
        if (r->held[i] >= 0 && r->held[i] / group == best)
            r->held[i] = -1;
}

static void put_fresh(struct sh_kv_rows *r, int slot, const float *row)
{
    int at = -1, n = residual_rows(r);
    for (int i = 0; i < n; i++)                         /* a slot that is taken again before it was coded */
        if (r->held[i] == slot)
            at = i;
    while (at < 0) {
        for (int i = 0; i < n && at < 0; i++)
            at = r->held[i] < 0 ? i : at;
        if (at < 0)
            flush(r);
    }
    r->held[at] = slot;
    narrow(r->fresh + (size_t)at * (size_t)r->width, row, (size_t)r->width);
}

void sh_kv_rows_put(struct sh_kv_rows *r, int slot, const float *row)
{
    size_t width = (size_t)r->width, at = (size_t)slot * width;
    if (r->format.bits == 32)
        memcpy((float *)r->at + at, row, width * sizeof *row);
    else if (r->format.bits == 16)
        narrow((uint16_t *)r->at + at, row, width);
    else if (r->by_channel == SH_KV_IN_ORDER)
        put_by_channel(r, slot, row);
    else if (r->by_channel == SH_KV_BY_CHANNEL)
        put_fresh(r, slot, row);
    else
        sh_quant_row_write(&r->format, row, r->width,
                           (char *)r->at + (size_t)slot * sh_quant_row_code_bytes(&r->format, r->width),
                           (char *)r->meta + (size_t)slot * sh_quant_row_meta_bytes(&r->format, r->width));
}

static const float *get_by_channel(const struct sh_kv_rows *r, int first, int n, float *scratch)
{
    int group = r->format.group;
    size_t width = (size_t)r->width;
    for (int i = first, m; i < first + n; i += m) {
        int block = i / group, from = i % group;
        m = group - from < first + n - i ? group - from : first + n - i;
        float *to = scratch + (size_t)(i - first) * width;
        if (r->by_channel == SH_KV_BY_CHANNEL && !is_coded(r, block)) {
            memset(to, 0, (size_t)m * width * sizeof *to);
            continue;
        }
        if (r->by_channel == SH_KV_IN_ORDER && block >= r->whole) {
            memcpy(to, r->open + (size_t)from * width, (size_t)m * width * sizeof *to);
            continue;
        }
        const char *codes = block_codes(r, block, 0);
        sh_quant_read_columns(&r->format, codes, (size_t)(block_codes(r, block, 1) - codes), block_meta(r, block, 0),
                              from, m, r->width, to);
    }
    for (int i = 0; r->held && i < residual_rows(r); i++)
        if (r->held[i] >= first && r->held[i] < first + n)
            widen(scratch + (size_t)(r->held[i] - first) * width, r->fresh + (size_t)i * width, width);
    return scratch;
}

const float *sh_kv_rows_get(const struct sh_kv_rows *r, int first, int n, float *scratch)
{
    size_t width = (size_t)r->width, at = (size_t)first * width;
    if (r->format.bits == 32)
        return (const float *)r->at + at;
    if (r->format.bits == 16) {
        widen(scratch, (const uint16_t *)r->at + at, (size_t)n * width);
        return scratch;
    }
    if (r->by_channel)
        return get_by_channel(r, first, n, scratch);
    size_t codes = sh_quant_row_code_bytes(&r->format, r->width), meta = sh_quant_row_meta_bytes(&r->format, r->width);
    for (int i = 0; i < n; i++)
        sh_quant_row_read(&r->format, (const char *)r->at + (size_t)(first + i) * codes,
                          (const char *)r->meta + (size_t)(first + i) * meta, r->width, scratch + (size_t)i * width);
    return scratch;
}
