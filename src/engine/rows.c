/* SPDX-License-Identifier: Apache-2.0 */
/* See rows.h. Codes by channel: block b holds the tokens [b * group, (b + 1) * group); in it channel
 * after channel. */
#include "src/engine/rows.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/clones.h"

static size_t rounded(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
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
}

size_t sh_kv_rows_bytes(const struct sh_kv_format *f, int by_channel, int capacity, int width)
{
    struct sh_kv_rows r = {.format = *f, .by_channel = by_channel, .capacity = capacity, .width = width};
    measure(&r);
    return r.at_bytes + r.meta_bytes + r.open_bytes;
}

int sh_kv_rows_new(struct sh_kv_rows *r, const struct sh_kv_format *f, int by_channel, int capacity, int width,
                   struct sh_err *e)
{
    *r = (struct sh_kv_rows){.format = *f, .by_channel = by_channel && f->bits < 16, .capacity = capacity,
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
    return 0;
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
    size_t i = (size_t)block * (size_t)r->width + (size_t)channel;
    return (char *)r->at + i * sh_quant_code_bytes(r->format.group, r->format.bits);
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

SH_CLONES static void narrow(uint16_t *restrict to, const float *restrict from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = sh_f32_to_f16(from[i]);
}

SH_CLONES static void widen(float *restrict to, const uint16_t *restrict from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = sh_f16_to_f32(from[i]);
}

void sh_kv_rows_put(struct sh_kv_rows *r, int slot, const float *row)
{
    size_t width = (size_t)r->width, at = (size_t)slot * width;
    if (r->format.bits == 32)
        memcpy((float *)r->at + at, row, width * sizeof *row);
    else if (r->format.bits == 16)
        narrow((uint16_t *)r->at + at, row, width);
    else if (r->by_channel)
        put_by_channel(r, slot, row);
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
        if (block >= r->whole) {
            memcpy(to, r->open + (size_t)from * width, (size_t)m * width * sizeof *to);
            continue;
        }
        for (int c = 0; c < r->width; c++)
            sh_quant_read(&r->format, block_codes(r, block, c), block_meta(r, block, c), from, m, to + c, width);
    }
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
