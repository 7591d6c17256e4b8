/* SPDX-License-Identifier: Apache-2.0 */
/* See rows.h: numbers to codes and back. */
#include "src/engine/rows.h"

#include <math.h>

#include "src/base/clones.h"

#define F16_MOST 65504.0f

static float stored(float x, enum sh_type type, void *at, int i)
{
    if (type == SH_F32) {
        ((float *)at)[i] = x;
        return x;
    }
    uint16_t h = sh_f32_to_f16(fminf(fmaxf(x, -F16_MOST), F16_MOST));
    ((uint16_t *)at)[i] = h;
    return sh_f16_to_f32(h);
}

static float loaded(enum sh_type type, const void *at, int i)
{
    return type == SH_F32 ? ((const float *)at)[i] : sh_f16_to_f32(((const uint16_t *)at)[i]);
}

static unsigned code_of(float x, float least, float scale, float most)
{
    float c = scale > 0 ? rintf((x - least) / scale) : 0;
    return (unsigned)fminf(fmaxf(c, 0), most);
}

void sh_quant_write(const struct sh_kv_format *f, const float *x, size_t stride, int n, void *codes, void *meta)
{
    float low = x[0], high = x[0], most = f->bits == 8 ? 255 : 15;
    for (int i = 1; i < n; i++) {
        float y = x[(size_t)i * stride];
        low = y < low ? y : low;
        high = y > high ? y : high;
    }
    float scale = stored((high - low) / most, f->meta, meta, 0), least = stored(low, f->meta, meta, 1);
    uint8_t *to = codes;
    if (f->bits == 8) {
        for (int i = 0; i < n; i++)
            to[i] = (uint8_t)code_of(x[(size_t)i * stride], least, scale, most);
        return;
    }
    for (int i = 0; i < n; i += 2) {
        unsigned first = code_of(x[(size_t)i * stride], least, scale, most);
        unsigned second = i + 1 < n ? code_of(x[(size_t)(i + 1) * stride], least, scale, most) : 0;
        to[i / 2] = (uint8_t)(first | second << 4);
    }
}

void sh_quant_set_range(const struct sh_kv_format *f, float low, float high, void *meta)
{
    stored((high - low) / (f->bits == 8 ? 255 : 15), f->meta, meta, 0);
    stored(low, f->meta, meta, 1);
}

void sh_quant_range(const struct sh_kv_format *f, const void *meta, float *low, float *high)
{
    *low = loaded(f->meta, meta, 1);
    *high = *low + loaded(f->meta, meta, 0) * (f->bits == 8 ? 255 : 15);
}

void sh_quant_put(const struct sh_kv_format *f, float x, int i, void *codes, const void *meta)
{
    unsigned code = code_of(x, loaded(f->meta, meta, 1), loaded(f->meta, meta, 0), f->bits == 8 ? 255 : 15);
    uint8_t *at = (uint8_t *)codes + i * f->bits / 8;
    if (f->bits == 8)
        *at = (uint8_t)code;
    else
        *at = (uint8_t)(i % 2 ? (*at & 15) | code << 4 : (*at & 240) | code);
}

SH_INLINE void read_8(const uint8_t *restrict code, float scale, float least, int n, float *restrict x)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)code[i] * scale + least;
}

SH_INLINE void read_4(const uint8_t *restrict code, float scale, float least, int n, float *restrict x)
{
    for (int i = 0; i < n / 2; i++) {
        x[2 * i] = (float)(code[i] & 15) * scale + least;
        x[2 * i + 1] = (float)(code[i] >> 4) * scale + least;
    }
    if (n % 2)
        x[n - 1] = (float)(code[n / 2] & 15) * scale + least;
}

SH_CLONES static void read_group(const uint8_t *restrict code, int bits, float scale, float least, int n,
                                 float *restrict x)
{
    if (bits == 8)
        read_8(code, scale, least, n, x);
    else
        read_4(code, scale, least, n, x);
}

void sh_quant_read(const struct sh_kv_format *f, const void *codes, const void *meta, int first, int n, float *x)
{
    const uint8_t *code = (const uint8_t *)codes + first * f->bits / 8;
    read_group(code, f->bits, loaded(f->meta, meta, 0), loaded(f->meta, meta, 1), n, x);
}

/* Columns of some numbers, each from[k][0 .. n), into rows. */
enum { COLUMNS = 4, DEEP = 64 };

typedef float row_part __attribute__((vector_size(4 * COLUMNS)));
typedef float loose_part __attribute__((vector_size(4 * COLUMNS), aligned(4), may_alias));

SH_INLINE void turn(float (*from)[DEEP], int n, float *to, size_t width)
{
    int i = 0;
    for (; i + COLUMNS <= n; i += COLUMNS, to += COLUMNS * width) {
        row_part a = *(const row_part *)(from[0] + i), b = *(const row_part *)(from[1] + i);
        row_part c = *(const row_part *)(from[2] + i), d = *(const row_part *)(from[3] + i);
        row_part ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
        *(loose_part *)to = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
        *(loose_part *)(to + width) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
        ab = __builtin_shufflevector(a, b, 2, 6, 3, 7), cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
        *(loose_part *)(to + 2 * width) = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
        *(loose_part *)(to + 3 * width) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    }
    for (; i < n; i++, to += width)
        for (int k = 0; k < COLUMNS; k++)
            to[k] = from[k][i];
}

/* Up to COLUMNS groups: codes of the first, and bytes from there to those of the next; scales and minimums. */
struct columns {
    const uint8_t *code;
    size_t step;
    float scale[COLUMNS], least[COLUMNS];
    int bits, n;
};

/* n <= DEEP numbers of each, from number `first` on. */
SH_CLONES static void read_columns(const struct columns *of, int first, int n, float *to, size_t width)
{
    float x[COLUMNS][DEEP] __attribute__((aligned(64)));
    const uint8_t *code = of->code + first * of->bits / 8;
    for (int k = 0; k < of->n; k++, code += of->step)
        if (of->bits == 8)
            read_8(code, of->scale[k], of->least[k], n, x[k]);
        else
            read_4(code, of->scale[k], of->least[k], n, x[k]);
    if (of->n == COLUMNS)
        turn(x, n, to, width);
    else
        for (int i = 0; i < n; i++)
            for (int k = 0; k < of->n; k++)
                to[(size_t)i * width + (size_t)k] = x[k][i];
}

void sh_quant_read_columns(const struct sh_kv_format *f, const void *codes, size_t step, const void *metas, int first,
                           int n, int width, float *x)
{
    struct columns some = {.code = codes, .step = step, .bits = f->bits};
    const char *meta = metas;
    for (int c = 0; c < width; c += some.n, some.code += (size_t)some.n * step) {
        some.n = width - c < COLUMNS ? width - c : COLUMNS;
        for (int k = 0; k < some.n; k++, meta += sh_quant_meta_bytes(f->meta)) {
            some.scale[k] = loaded(f->meta, meta, 0);
            some.least[k] = loaded(f->meta, meta, 1);
        }
        for (int i = 0; i < n; i += DEEP)
            read_columns(&some, first + i, n - i < DEEP ? n - i : DEEP, x + (size_t)i * (size_t)width + c,
                         (size_t)width);
    }
}

static int rest(const struct sh_kv_format *f, int width, int first)
{
    return width - first < f->group ? width - first : f->group;
}

size_t sh_quant_row_code_bytes(const struct sh_kv_format *f, int width)
{
    size_t bytes = 0;
    for (int i = 0; i < width; i += f->group)
        bytes += sh_quant_code_bytes(rest(f, width, i), f->bits);
    return bytes;
}

size_t sh_quant_row_meta_bytes(const struct sh_kv_format *f, int width)
{
    return (size_t)((width + f->group - 1) / f->group) * sh_quant_meta_bytes(f->meta);
}

void sh_quant_row_write(const struct sh_kv_format *f, const float *x, int width, void *codes, void *meta)
{
    char *code = codes, *about = meta;
    for (int i = 0; i < width; i += f->group) {
        sh_quant_write(f, x + i, 1, rest(f, width, i), code, about);
        code += sh_quant_code_bytes(rest(f, width, i), f->bits);
        about += sh_quant_meta_bytes(f->meta);
    }
}

void sh_quant_row_read(const struct sh_kv_format *f, const void *codes, const void *meta, int width, float *x)
{
    const char *code = codes, *about = meta;
    for (int i = 0; i < width; i += f->group) {
        sh_quant_read(f, code, about, 0, rest(f, width, i), x + i);
        code += sh_quant_code_bytes(rest(f, width, i), f->bits);
        about += sh_quant_meta_bytes(f->meta);
    }
}
