/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of numbers of any type read as floats, and floats written as any type, rounded to nearest even.
 * The operations work on CHUNK floats at a time between the two. */
#ifndef SH_KERNELS_CPU_FLOATS_H
#define SH_KERNELS_CPU_FLOATS_H

#ifdef __F16C__
#include <immintrin.h>
#endif

#include "kernels/cpu/vector.h"

enum { CHUNK = 256 };

static inline size_t chunk_at(size_t at, size_t n)      /* length of the one at `at`, of n floats */
{
    return n - at < CHUNK ? n - at : CHUNK;
}

static inline void load_floats(float *to, enum sh_type type, const void *from, size_t n)
{
    const uint16_t *half = from;
    if (type == SH_F32)
        memcpy(to, from, n * sizeof *to);
    else if (type == SH_F16)
        for (size_t i = 0; i < n; i++)
            to[i] = sh_f16_to_f32(half[i]);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = sh_bf16_to_f32(half[i]);
}

typedef uint16_t halves __attribute__((vector_size(2 * CPU_FLOATS), aligned(2), may_alias));
typedef uint32_t words32 __attribute__((vector_size(4 * CPU_FLOATS)));

/* CPU_FLOATS numbers of the type, a constant wherever this is inlined. */
static inline __attribute__((always_inline)) vec load_vec(enum sh_type type, const void *from)
{
    if (type == SH_F32)
        return *(const vec *)from;
    if (type == SH_BF16)
#if defined __AVX2__ && !defined __AVX512F__    /* the compiler does it in two halves */
        return (vec)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(from)), 16);
#else
        return (vec)(__builtin_convertvector(*(const halves *)from, words32) << 16);
#endif
#if defined __AVX512F__
    return (vec)_mm512_cvtph_ps(_mm256_loadu_si256(from));
#elif defined __F16C__
    return (vec)_mm256_cvtph_ps(_mm_loadu_si128(from));
#else
    words32 h = __builtin_convertvector(*(const halves *)from, words32);       /* sh_f16_to_f32 */
    words32 magnitude = (h & 0x7fff) << 13, whole = (words32)((vec)magnitude * 0x1p112f);
    words32 special = (words32)((h & 0x7c00) == 0x7c00);
    return (vec)((special & (magnitude | 0x7f800000)) | (~special & whole) | (h & 0x8000) << 16);
#endif
}

/* Each float times `factor`, as f16. */
static inline void store_f16(uint16_t *to, const float *from, size_t n, float factor)
{
    size_t i = 0;
#ifdef __F16C__
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(to + i),
                         _mm256_cvtps_ph(_mm256_mul_ps(_mm256_loadu_ps(from + i), _mm256_set1_ps(factor)),
                                         _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#endif
    for (; i < n; i++)
        to[i] = sh_f32_to_f16(from[i] * factor);
}

static inline void store_floats(void *to, enum sh_type type, const float *from, size_t n)
{
    uint16_t *half = to;
    if (type == SH_F32)
        memcpy(to, from, n * sizeof *from);
    else if (type == SH_F16)
        store_f16(half, from, n, 1.0f);
    else
        for (size_t i = 0; i < n; i++)
            half[i] = sh_f32_to_bf16(from[i]);
}

#endif
