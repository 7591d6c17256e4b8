/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of f32 numbers as codes and back. Clones give the same codes: division and rounding are exact, and nothing is
 * summed. */
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "src/base/clones.h"
#include "src/base/num.h"
#include "src/base/team.h"

enum { GROUP = SH_CODE_GROUP };

static unsigned char *codes_of(const struct cpu_codes *c, int row)
{
    return c->at + (size_t)row * sh_code_groups(c->cols) * sh_code_group_bytes(c->bits);
}

static uint16_t *scales_of(const struct cpu_codes *c, int row)
{
    void *scales = c->at + sh_code_scales_at(c->rows, c->cols, c->bits);
    return (uint16_t *)scales + 2 * (size_t)row * sh_code_groups(c->cols);
}

/* A group that is shorter than the others is read as if its first number filled the rest: that changes
 * neither least nor most. */
SH_INLINE void whole_group(float *x, const float *from, size_t n)
{
    for (size_t i = 0; i < GROUP; i++)
        x[i] = from[i < n ? i : 0];
}

SH_INLINE void encode_group(unsigned char *to, uint16_t *scales, const float *x, int bits)
{
    unsigned char code[GROUP];
    float low[16], high[16];
    for (int i = 0; i < 16; i++) {
        low[i] = high[i] = x[i];
        for (int j = i + 16; j < GROUP; j += 16) {
            low[i] = x[j] < low[i] ? x[j] : low[i];
            high[i] = x[j] > high[i] ? x[j] : high[i];
        }
    }
    for (int i = 1; i < 16; i++) {
        low[0] = low[i] < low[0] ? low[i] : low[0];
        high[0] = high[i] > high[0] ? high[i] : high[0];
    }
    scales[0] = sh_f32_to_f16((high[0] - low[0]) / (float)((1 << bits) - 1));
    scales[1] = sh_f32_to_f16(low[0]);
    float scale = sh_f16_to_f32(scales[0]), least = sh_f16_to_f32(scales[1]), top = sh_code_top(bits, scale);
    for (int i = 0; i < GROUP; i++)
        code[i] = (unsigned char)sh_code(x[i], scale, least, top);
    if (bits == 8)
        memcpy(to, code, GROUP);
    else
        for (int i = 0; i < GROUP / 2; i++)
            to[i] = (unsigned char)(code[2 * i] | code[2 * i + 1] << 4);
}

SH_CLONES
static void encode_row(unsigned char *to, uint16_t *scales, const float *from, size_t cols, int bits)
{
    for (size_t at = 0; at < cols; at += GROUP, to += sh_code_group_bytes(bits), scales += 2) {
        float x[GROUP];
        whole_group(x, from + at, cols - at < GROUP ? cols - at : GROUP);
        encode_group(to, scales, x, bits);
    }
}

SH_INLINE void decode_group(float *x, const unsigned char *code, float scale, float least, int bits)
{
    if (bits == 8)
        for (int i = 0; i < GROUP; i++)
            x[i] = sh_code_value(code[i], scale, least);
    else
        for (int i = 0; i < GROUP / 2; i++) {
            x[2 * i] = sh_code_value(code[i] & 15u, scale, least);
            x[2 * i + 1] = sh_code_value((unsigned)code[i] >> 4, scale, least);
        }
}

SH_CLONES
static void decode_row(float *to, const unsigned char *code, const uint16_t *scales, size_t cols, int bits)
{
    for (size_t at = 0; at < cols; at += GROUP, code += sh_code_group_bytes(bits), scales += 2) {
        float scale = sh_f16_to_f32(scales[0]), least = sh_f16_to_f32(scales[1]), x[GROUP];
        if (cols - at >= GROUP) {
            decode_group(to + at, code, scale, least, bits);
        } else {
            decode_group(x, code, scale, least, bits);
            memcpy(to + at, x, (cols - at) * sizeof *to);
        }
    }
}

struct some {                           /* rows of the weight, and theirs that are not coded */
    const struct cpu_codes *c;
    const float *from;
    float *to;
    int first;
};

static void put_row(void *arg, int i)
{
    const struct some *s = arg;
    size_t cols = (size_t)s->c->cols;
    encode_row(codes_of(s->c, s->first + i), scales_of(s->c, s->first + i), s->from + (size_t)i * cols, cols,
               s->c->bits);
}

static void get_row(void *arg, int i)
{
    const struct some *s = arg;
    size_t cols = (size_t)s->c->cols;
    decode_row(s->to + (size_t)i * cols, codes_of(s->c, s->first + i), scales_of(s->c, s->first + i), cols,
               s->c->bits);
}

void cpu_codes_put(const struct cpu_codes *c, const float *from, int first, int n, int n_threads)
{
    sh_team_each(n_threads, n, put_row, &(struct some){.c = c, .from = from, .first = first});
}

void cpu_codes_get(const struct cpu_codes *c, float *to, int first, int n, int n_threads)
{
    sh_team_each(n_threads, n, get_row, &(struct some){.c = c, .to = to, .first = first});
}
