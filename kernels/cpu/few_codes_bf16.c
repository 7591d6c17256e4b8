/* SPDX-License-Identifier: Apache-2.0 */
/* few_codes.c for bf16 operands by the processor's own bf16 products. The number that a code stands for
 * is rounded to bf16, as in products of many rows: of 8 bits after reading it, of 4 bits once for each of
 * a group's 16 codes, which then are looked up. x is bf16, with zeros behind its inputs up to whole groups;
 * for 4 bits in the order of the lookups (few_codes_order). */
#include "kernels/cpu/few_out.h"
#include "kernels/cpu/variant.h"

#ifdef CPU_HAS_BF16
#include <immintrin.h>

enum { GROUP = SH_CODE_GROUP, SCALES_AT_ONCE = 64 };

#define BF16 __attribute__((target("avx512bf16")))

struct scales {                         /* of some groups of an output */
    float scale[SCALES_AT_ONCE], least[SCALES_AT_ONCE];
};

static void read_scales(struct scales *s, const uint16_t *from, size_t n)
{
    float x[2 * SCALES_AT_ONCE];
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm512_storeu_ps(x + 2 * i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(from + 2 * i))));
    for (; i < n; i++) {
        x[2 * i] = sh_f16_to_f32(from[2 * i]);
        x[2 * i + 1] = sh_f16_to_f32(from[2 * i + 1]);
    }
    for (i = 0; i < n; i++) {
        s->scale[i] = x[2 * i];
        s->least[i] = x[2 * i + 1];
    }
}

/* 32 codes of 8 bits as numbers. */
BF16 static inline __m512bh numbers(const unsigned char *code, __m512 scale, __m512 least)
{
    __m512 x[2];
    for (int i = 0; i < 2; i++) {
        __m128i at = _mm_loadu_si128((const __m128i *)(const void *)(code + 16 * i));
        x[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(at)), scale, least);
    }
    return _mm512_cvtne2ps_pbh(x[1], x[0]);
}

BF16 static inline __attribute__((always_inline)) void add_8(__m512 *part, const unsigned char *code, float scale,
                                                             float least, const uint16_t *x, size_t stride, int rows)
{
    __m512 by = _mm512_set1_ps(scale), from = _mm512_set1_ps(least);
    for (int i = 0; i < GROUP; i += 32) {
        __m512bh w = numbers(code + i, by, from);
        for (int r = 0; r < rows; r++)
            part[r] = _mm512_dpbf16_ps(part[r], w, (__m512bh)_mm512_loadu_si512(x + (size_t)r * stride + i));
    }
}

/* Word i of a group has the codes 4 i .. 4 i + 3; a word's low 4 bits are what the lookup goes by. */
BF16 static inline __attribute__((always_inline)) void add_4(__m256 *part, const unsigned char *code, float scale,
                                                             float least, const uint16_t *x, size_t stride, int rows)
{
    const __m512 all = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m256i table =
        (__m256i)_mm512_cvtneps_pbh(_mm512_fmadd_ps(all, _mm512_set1_ps(scale), _mm512_set1_ps(least)));
    __m256i words = _mm256_loadu_si256((const __m256i *)(const void *)code);
    for (int k = 0; k < 4; k++) {
        __m256bh w = (__m256bh)_mm256_permutexvar_epi16(k ? _mm256_srli_epi16(words, 4 * k) : words, table);
        for (int r = 0; r < rows; r++) {
            const __m256i *at = (const __m256i *)(const void *)(x + (size_t)r * stride + 16 * k);
            part[r] = _mm256_dpbf16_ps(part[r], w, (__m256bh)_mm256_loadu_si256(at));
        }
    }
}

BF16 static inline __attribute__((always_inline)) void output(const struct few *a, int o, int row, int rows, int bits,
                                                              float *sum)
{
    const struct cpu_codes *c = a->codes;
    size_t groups = sh_code_groups(c->cols), bytes = sh_code_group_bytes(bits);
    const unsigned char *code = c->at + (size_t)o * groups * bytes;
    const void *all = c->at + sh_code_scales_at(c->rows, c->cols, bits);
    const uint16_t *pairs = (const uint16_t *)all + 2 * (size_t)o * groups;
    const uint16_t *x = (const uint16_t *)a->x.at + (size_t)row * a->x.stride;
    __m512 wide[FEW_ROWS];
    __m256 narrow[FEW_ROWS];
    for (int r = 0; r < rows; r++) {
        wide[r] = _mm512_setzero_ps();
        narrow[r] = _mm256_setzero_ps();
    }
    struct scales s;
    for (size_t g = 0, n; g < groups; g += n) {
        n = groups - g < SCALES_AT_ONCE ? groups - g : SCALES_AT_ONCE;
        read_scales(&s, pairs + 2 * g, n);
        for (size_t i = 0; i < n; i++, code += bytes, x += GROUP)
            if (bits == 8)
                add_8(wide, code, s.scale[i], s.least[i], x, a->x.stride, rows);
            else
                add_4(narrow, code, s.scale[i], s.least[i], x, a->x.stride, rows);
    }
    for (int r = 0; r < rows; r++)
        sum[r * FEW_COLS] = bits == 8 ? _mm512_reduce_add_ps(wide[r])
                                      : _mm512_reduce_add_ps(_mm512_zextps256_ps512(narrow[r]));
}

/* few_sums */
BF16 static void sums(const struct few *a, int first, int n, int row, int rows, float *sum)
{
    int kind = (a->codes->bits == 8 ? 0 : FEW_ROWS) + rows;
    for (int o = 0; o < n; o++)
        switch (kind) {
        case 1: output(a, first + o, row, 1, 8, sum + o); break;
        case 2: output(a, first + o, row, 2, 8, sum + o); break;
        case 3: output(a, first + o, row, 3, 8, sum + o); break;
        case 4: output(a, first + o, row, 4, 8, sum + o); break;
        case 5: output(a, first + o, row, 1, 4, sum + o); break;
        case 6: output(a, first + o, row, 2, 4, sum + o); break;
        case 7: output(a, first + o, row, 3, 4, sum + o); break;
        default: output(a, first + o, row, 4, 4, sum + o);
        }
}

void CPU_NAME(cpu_few_codes_bf16)(const struct few *a, int n_threads)
{
    few_run(a, n_threads, sums);
}
#endif
