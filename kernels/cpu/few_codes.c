/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a few rows with weights that are kept as codes (few.h): a group is read back once, rounded
 * as the products want it, and used for all rows. x is f32. */
#include "kernels/cpu/few_out.h"
#include "kernels/cpu/variant.h"

enum { GROUP = SH_CODE_GROUP };

static inline __attribute__((always_inline)) void group_of(float *w, const unsigned char *code, int bits, float scale,
                                                           float least)
{
    if (bits == 8)
        for (int i = 0; i < GROUP; i++)
            w[i] = sh_code_value(code[i], scale, least);
    else
        for (int i = 0; i < GROUP / 2; i++) {
            w[2 * i] = sh_code_value(code[i] & 15u, scale, least);
            w[2 * i + 1] = sh_code_value((unsigned)code[i] >> 4, scale, least);
        }
}

static inline __attribute__((always_inline)) void round_group(float *w, enum sh_type type)
{
    if (type == SH_BF16)
        for (int i = 0; i < GROUP; i++)
            w[i] = sh_bf16_to_f32(sh_f32_to_bf16(w[i]));
    else if (type == SH_F16)
        for (int i = 0; i < GROUP; i++)
            w[i] = sh_f16_to_f32(sh_f32_to_f16(w[i]));
}

/* sum[r][0] of one output: lanes are added up in a fixed order. */
static inline __attribute__((always_inline)) void output(const struct few *a, int o, int row, int rows, int bits,
                                                         float *sum)
{
    const struct cpu_codes *c = a->codes;
    size_t groups = sh_code_groups(c->cols), bytes = sh_code_group_bytes(bits), in = (size_t)c->cols;
    const unsigned char *code = c->at + (size_t)o * groups * bytes;
    const void *all = c->at + sh_code_scales_at(c->rows, c->cols, bits);
    const uint16_t *scale = (const uint16_t *)all + 2 * (size_t)o * groups;
    float part[FEW_ROWS][CPU_FLOATS] = {{0}};
    for (size_t g = 0; g < groups; g++, code += bytes, scale += 2) {
        float w[GROUP];
        size_t at = g * GROUP, n = in - at < GROUP ? in - at : GROUP;
        group_of(w, code, bits, sh_f16_to_f32(scale[0]), sh_f16_to_f32(scale[1]));
        round_group(w, a->rounded);
        for (int r = 0; r < rows; r++) {
            const float *x = (const float *)a->x.at + (size_t)(row + r) * a->x.stride + at;
            if (n == GROUP)
                for (int i = 0; i < GROUP; i += CPU_FLOATS)
                    for (int k = 0; k < CPU_FLOATS; k++)
                        part[r][k] += x[i + k] * w[i + k];
            else
                for (size_t i = 0; i < n; i++)
                    part[r][i % CPU_FLOATS] += x[i] * w[i];
        }
    }
    for (int r = 0; r < rows; r++) {
        sum[r * FEW_COLS] = 0;
        for (int k = 0; k < CPU_FLOATS; k++)
            sum[r * FEW_COLS] += part[r][k];
    }
}

/* few_sums */
static void sums(const struct few *a, int first, int n, int row, int rows, float *sum)
{
    for (int o = 0; o < n; o++)
        if (a->codes->bits == 8)
            output(a, first + o, row, rows, 8, sum + o);
        else
            output(a, first + o, row, rows, 4, sum + o);
}

void CPU_NAME(cpu_few_codes)(const struct few *a, int n_threads)
{
    few_run(a, n_threads, sums);
}
