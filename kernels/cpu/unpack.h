/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of packed weights (kernels/packed.h) as codes and scales: x = scale * code - less. Runs are 32 numbers. The
 * format is a constant wherever these functions are inlined. Scales and codes are few bits, so that scale * code is
 * exact in f32, and x the same number as src/model unpacks.
 *
 * Nibbles and bytes are widened from the block itself, which is one instruction; codes that take more work are made 32
 * at a time. With AVX2 it costs more to widen these than all the rest, so that there a vector has every fourth of them,
 * which shifts alone give: "in fours". Where neighbours share a byte, their codes come "in pairs": first those of the
 * even numbers, then those of the odd ones. Codes that are stored with an offset keep it: x = scale * code - scale *
 * offset in one multiply-add, which is exact, because x is. */
#ifndef SH_KERNELS_CPU_UNPACK_H
#define SH_KERNELS_CPU_UNPACK_H

#include "kernels/cpu/packed_bytes.h"
#include "kernels/cpu/unpack_points.h"

#define E4M3_AS_F16 0x1p8f              /* E4M3 bits moved into an f16 are the number divided by this */

static const float nf4_all[16] = {SH_NF4_NUMBERS};

/* Whether its blocks are numbers of 16 bits, without codes and scales. */
UNPACK int is_halves(enum sh_packing format)
{
    return format == SH_PACKED_F16 || format == SH_PACKED_BF16;
}

/* ---- scales ---- */

/* Whether a block has one scale, which is then not in arrays. */
UNPACK int has_one_scale(enum sh_packing format)
{
    return sh_packing_shape(format).elements == RUN;
}

/* An f16 number in all lanes. */
UNPACK vec half_in_all(const unsigned char *at)
{
#if defined __AVX512F__
    uint16_t h;
    memcpy(&h, at, sizeof h);
    return (vec)_mm512_cvtph_ps(_mm256_set1_epi16((short)h));
#elif defined __F16C__
    uint16_t h;
    memcpy(&h, at, sizeof h);
    return (vec)_mm256_cvtph_ps(_mm_set1_epi16((short)h));
#else
    return half_at(at) - (vec){0};
#endif
}

/* The first word of a block of INT4: an f32 number whose lowest byte counts as 0 and is the zero point. */
UNPACK float int4_scale(const unsigned char *at)
{
    return sh_from_bits(word_at(at) & 0xffffff00u);
}

UNPACK float int4_less(const unsigned char *at)
{
    return int4_scale(at) * (float)at[0];
}

/* A byte E4M3; finite. */
UNPACK float e4m3_at(const unsigned char *at)
{
    unsigned half = (*at & 128u) << 8 | (*at & 127u) << 7;
    unsigned char bytes[2] = {(unsigned char)(half & 255), (unsigned char)(half >> 8)};
    return half_at(bytes) * E4M3_AS_F16;
}

/* What codes are stored with. */
UNPACK float offset_of(enum sh_packing format)
{
    switch (format) {
    case SH_PACKED_Q4_0: return 8;
    case SH_PACKED_Q5_0: return 16;
    case SH_PACKED_Q6_K: return 32;
    case SH_PACKED_Q3_K: return 4;
    case SH_PACKED_TQ1_0: case SH_PACKED_TQ2_0: case SH_PACKED_Q1_0: return 1;
    default: return 0;
    }
}

/* d times each of eight signed bytes, given as two words. */
UNPACK void times_8(float *to, float d, uint32_t first, uint32_t second)
{
#ifdef __AVX2__
    __m256i n = _mm256_cvtepi8_epi32(_mm_cvtsi64_si128((long long)((uint64_t)second << 32 | first)));
    _mm256_storeu_ps(to, _mm256_mul_ps(_mm256_set1_ps(d), _mm256_cvtepi32_ps(n)));
#else
    for (int j = 0; j < 4; j++) {
        to[j] = d * (float)(int8_t)(first >> 8 * j);
        to[j + 4] = d * (float)(int8_t)(second >> 8 * j);
    }
#endif
}

/* The same of the word's eight nibbles with two bits more each in `high`, less 32: the lowest first. */
UNPACK void times_8_of_6(float *to, float d, uint32_t low, uint32_t high)
{
    for (int j = 0; j < 8; j++)
        to[j] = d * (float)((int)((low >> 4 * j & 15) | (high >> 2 * j & 3) << 4) - 32);
}

/* Eight pairs of 6 bits: of the first four, each has a byte; of the others four bits are there and two on top of an
 * earlier byte. */
UNPACK void pairs_of_6(const unsigned char *b, float *scale, float *less)
{
    uint32_t s[3], six = 0x3f3f3f3f, four = 0x0f0f0f0f, two = 0x30303030;
    memcpy(s, b + 4, sizeof s);
    times_8(scale, half_at(b), s[0] & six, (s[2] & four) | (s[0] >> 2 & two));
    times_8(less, half_at(b + 2), s[1] & six, (s[2] >> 4 & four) | (s[1] >> 2 & two));
}

/* Q3_K's sixteen: four low bits in eight bytes, two high ones in the last four. */
UNPACK void sixteen_of_6(const unsigned char *b, float *scale)
{
    uint32_t low[2] = {word_at(b + 96), word_at(b + 100)}, high = word_at(b + 104), w[4];
    for (int k = 0; k < 4; k++) {       /* less 32: bit 5 is turned, and fills the byte from there on */
        w[k] = ((low[k % 2] >> k / 2 * 4 & 0x0f0f0f0f) | (high >> 2 * k & 0x03030303) << 4) ^ 0x20202020;
        w[k] |= (w[k] & 0x20202020) << 1 | (w[k] & 0x20202020) << 2;
    }
    times_8(scale, half_at(b + 108), w[0], w[1]);
    times_8(scale + 8, half_at(b + 108), w[2], w[3]);
}

/* Where blocks of several spans have one f16 scale for all of them; -1: they do not. */
UNPACK int scale_of_all(enum sh_packing format)
{
    switch (format) {
    case SH_PACKED_TQ1_0: return 52;
    case SH_PACKED_TQ2_0: return 64;
    case SH_PACKED_Q1_0: return 0;
    default: return -1;
    }
}

/* Of the spans of a block that has several. */
UNPACK void scales_of(enum sh_packing format, const unsigned char *b, float *scale, float *less)
{
    if (sh_packed_is_points(format))
        scales_of_points(format, b, scale);
    for (int i = 0; i < MOST_SPANS && scale_of_all(format) >= 0; i++)
        scale[i] = half_at(b + scale_of_all(format));
    switch (format) {
    case SH_PACKED_Q4_K: case SH_PACKED_Q5_K:
        pairs_of_6(b, scale, less);
        break;
    case SH_PACKED_Q6_K:
        for (int i = 0; i < 16; i += 8)
            times_8(scale + i, half_at(b + 208), word_at(b + 192 + i), word_at(b + 196 + i));
        break;
    case SH_PACKED_Q2_K:
        for (int i = 0; i < 16; i += 8) {
            uint32_t s[2] = {word_at(b + i), word_at(b + i + 4)}, four = 0x0f0f0f0f;
            times_8(scale + i, half_at(b + 80), s[0] & four, s[1] & four);
            times_8(less + i, half_at(b + 82), s[0] >> 4 & four, s[1] >> 4 & four);
        }
        break;
    case SH_PACKED_Q3_K:
        sixteen_of_6(b, scale);
        break;
    case SH_PACKED_IQ4_XS:
        times_8_of_6(scale, half_at(b), word_at(b + 4), (uint32_t)(b[2] | b[3] << 8));
        break;
    case SH_PACKED_INT4_128:
        for (int i = 0; i < 4; i++) {
            scale[i] = int4_scale(b);
            less[i] = int4_less(b);
        }
        break;
    case SH_PACKED_INT8_128: case SH_PACKED_E5M2_128: case SH_PACKED_NF4_64:
        for (int i = 0; i < 4; i++)
            scale[i] = sh_from_bits(word_at(b));
        break;
    case SH_PACKED_FP4_128:             /* codes are twice the numbers */
        for (int i = 0; i < 8; i++)
            scale[i] = e4m3_at(b + 4 + i) * sh_from_bits(word_at(b)) * 0.5f;
        break;
    case SH_PACKED_E4M3_128:
        for (int i = 0; i < 4; i++)
            scale[i] = sh_from_bits(word_at(b)) * E4M3_AS_F16;
        break;
    default:
        break;
    }
    for (int i = 0; i < MOST_SPANS && !has_one_scale(format) && offset_of(format) > 0; i++)
        less[i] = scale[i] * offset_of(format);
}

/* ---- codes ---- */

/* 32 nibbles of 16 bytes: first the low ones. */
UNPACK bytes32 nibbles(const unsigned char *q)
{
#ifdef __AVX2__
    __m256i both = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)q));
    both = _mm256_srlv_epi64(both, _mm256_setr_epi64x(0, 0, 4, 4));
    return (bytes32)_mm256_and_si256(both, _mm256_set1_epi8(15));
#else
    pairs16 v = *(const pairs16 *)(const void *)q;
    pairs16 low = v & 0x0f0f, high = v >> 4 & 0x0f0f;
    bytes32 all;
    memcpy(&all, &low, 16);
    memcpy((char *)&all + 16, &high, 16);
    return all;
#endif
}

/* The same as numbers of a table. */
UNPACK bytes32 looked_up(const int8_t *table, const unsigned char *q)
{
#ifdef __AVX2__
    __m256i all = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)table));
    return (bytes32)_mm256_shuffle_epi8(all, (__m256i)nibbles(q));
#else
    bytes32 to;
    for (int i = 0; i < 16; i++) {
        to[i] = table[q[i] & 15];
        to[i + 16] = table[q[i] >> 4];
    }
    return to;
#endif
}

/* 32 codes of four bits as numbers of a table. */
UNPACK bytes32 looked_up_bytes(const int8_t *table, bytes32 code)
{
#ifdef __AVX2__
    __m256i all = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)table));
    return (bytes32)_mm256_shuffle_epi8(all, (__m256i)code);
#else
    for (int i = 0; i < RUN; i++)
        code[i] = table[code[i]];
    return code;
#endif
}

/* 16 where a bit is set. */
UNPACK bytes32 fifths(uint32_t bits)
{
    return set_bytes(bits) & 16;
}

/* Bits [shift, …) of 32 bytes under a mask of each. */
UNPACK bytes32 bits_of(const unsigned char *at, int shift, unsigned mask)
{
    return (bytes32)(*(const pairs32 *)(const void *)at >> (uint16_t)shift & (uint16_t)(mask * 0x0101));
}

/* The same bits as bits `to` and up of a code. */
UNPACK bytes32 bits_to(const unsigned char *at, int from, int to, unsigned mask)
{
    pairs32 v = *(const pairs32 *)(const void *)at;
    v = to > from ? v << (uint16_t)(to - from) : v >> (uint16_t)(from - to);
    return (bytes32)(v & (uint16_t)(mask * 0x0101 << to));
}

/* A digit of base 3 of each of 32 bytes, which are fractions of 256; power: the digit is the first after the bytes were
 * multiplied by it. */
UNPACK bytes32 thirds(pairs32 v, pairs32 power)
{
    pairs32 even = (v << 8) * power >> 8, odd = (v & 0xff00) * power >> 8;
    return (bytes32)(even * 3 >> 8 | (odd * 3 & 0xff00));
}

/* TQ1_0: the first 32 bytes have five runs, the next 16 two and a half. */
UNPACK bytes32 run_of_thirds(const unsigned char *b, int run)
{
    static const uint16_t powers[5] = {1, 3, 9, 27, 81};
    pairs32 v, power = {0};
    if (run < 5)
        return thirds(*(const pairs32 *)(const void *)b, power + powers[run]);
    memcpy(&v, b + 32, 16);
    memcpy((char *)&v + 16, b + 32, 16);
    for (int i = 0; i < 4 && run == 7; i++)
        memcpy((char *)&v + 16 + 4 * i, b + 48, 4);
    for (int i = 0; i < 16; i++)
        power[i] = powers[run < 7 ? run * 2 - 10 + i / 8 : i < 8 ? 4 : (i - 8) / 2];
    return thirds(v, power);
}

/* The codes of a run, for formats that number_codes does not read from the block. */
UNPACK bytes32 run_codes(enum sh_packing format, const unsigned char *b, int run)
{
    static const int8_t iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    static const int8_t fp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    int half = run / 4, quarter = run % 4;
    switch (format) {
    case SH_PACKED_Q5_0: return nibbles(b + 6) | fifths(word_at(b + 2));
    case SH_PACKED_Q5_1: return nibbles(b + 8) | fifths(word_at(b + 4));
    case SH_PACKED_IQ4_NL: return looked_up(iq4, b + 2);
    case SH_PACKED_IQ4_XS: return looked_up(iq4, b + 8 + 16 * run);
    case SH_PACKED_MXFP4: return looked_up(fp4, b + 1);
    case SH_PACKED_MXFP4_APART: return looked_up(fp4, b);
    case SH_PACKED_FP4_128: return looked_up_bytes(fp4, bits_of(b + 12 + run / 2 * 32, run % 2 * 4, 15));
    case SH_PACKED_Q5_K: return bits_of(b + 48 + run / 2 * 32, run % 2 * 4, 15) | bits_to(b + 16, run, 4, 1);
    case SH_PACKED_Q6_K:
        return bits_of(b + half * 64 + run % 2 * 32, quarter / 2 * 4, 15) |
               bits_to(b + 128 + half * 32, 2 * quarter, 4, 3);
    case SH_PACKED_Q2_K: return bits_of(b + 16 + half * 32, 2 * quarter, 3);
    case SH_PACKED_TQ2_0: return bits_of(b + half * 32, 2 * quarter, 3);
    case SH_PACKED_TQ1_0: return run_of_thirds(b, run);
    case SH_PACKED_Q1_0: return set_bytes(word_at(b + 2 + 4 * run)) & 2;
    case SH_PACKED_Q3_K: return bits_of(b + 32 + half * 32, 2 * quarter, 3) | bits_to(b, run, 2, 1);
    default: return *(const bytes32 *)(const void *)(b + run * RUN);    /* a block of points, as codes */
    }
}

/* CPU_FLOATS bytes; is_signed is a constant. */
UNPACK ints widened_bytes(const unsigned char *at, int is_signed)
{
#if defined __AVX512F__
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
    return (ints)(is_signed ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes));
#elif defined __AVX2__
    __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)at);
    return (ints)(is_signed ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes));
#else
    ints w = {0};
    for (int k = 0; k < CPU_FLOATS; k++)
        w[k] = is_signed ? (int8_t)at[k] : at[k];
    return w;
#endif
}

/* The low or high nibbles of CPU_FLOATS bytes. */
UNPACK ints widened_nibbles(const unsigned char *at, int is_high)
{
    ints w = widened_bytes(at, 0);
    return is_high ? (ints)((words32)w >> 4) : w & 15;
}

/* Whether vector j of a run's four has the numbers 4 k + j. */
UNPACK int in_fours(enum sh_packing format)
{
    switch (format) {
    case SH_PACKED_Q8_0: case SH_PACKED_Q4_0: case SH_PACKED_Q4_1: case SH_PACKED_Q4_K: case SH_PACKED_OTHER: return 0;
    case SH_PACKED_INT4_32: case SH_PACKED_INT4_128: case SH_PACKED_INT8_128: return 0;
    case SH_PACKED_F16: case SH_PACKED_BF16: case SH_PACKED_E4M3_32: case SH_PACKED_E4M3_128:
    case SH_PACKED_E5M2_128: case SH_PACKED_NF4_64: return 0;
    default: return CPU_FLOATS == 8 && !sh_packed_is_points(format);
    }
}

UNPACK int in_pairs(enum sh_packing format)
{
    return format == SH_PACKED_MXFP4_APART;
}

UNPACK int is_apart(enum sh_packing format)
{
    return format == SH_PACKED_MXFP4_APART;
}

/* Whether the numbers of a run come in another order than that of the row. */
UNPACK int is_ordered(enum sh_packing format)
{
    return in_fours(format) || in_pairs(format);
}

UNPACK int same_order(enum sh_packing a, enum sh_packing b)
{
    return in_fours(a) == in_fours(b) && in_pairs(a) == in_pairs(b);
}

/* The place of number i of a run. */
UNPACK int place_of(enum sh_packing format, int i)
{
    i = in_pairs(format) ? i % 2 * 16 + i / 2 : i;
    return in_fours(format) ? i % 4 * 8 + i / 4 : i;
}

/* CPU_FLOATS of 32 codes, from place i on. */
UNPACK ints widened_codes(bytes32 code, int i, int is_signed)
{
#if defined __AVX512F__
    __m128i part = i < 16 ? _mm256_castsi256_si128((__m256i)code) : _mm256_extracti128_si256((__m256i)code, 1);
    return (ints)(is_signed ? _mm512_cvtepi8_epi32(part) : _mm512_cvtepu8_epi32(part));
#elif CPU_FLOATS == 8
    words32 w = (words32)code;
    return is_signed ? (ints)(w << (24 - i)) >> 24 : (ints)(w >> i & 255);
#else
    ints w = {0};
    for (int k = 0; k < CPU_FLOATS; k++)
        w[k] = is_signed ? code[i + k] : (unsigned char)code[i + k];
    return w;
#endif
}

#ifdef __AVX512F__
/* Nibbles of CPU_FLOATS bytes as numbers of a table: the lookup sees four bits of each lane, so that low ones need no
 * mask. */
UNPACK vec looked_up_nibbles(__m512 table, const unsigned char *at, int is_high)
{
    words32 w = (words32)widened_bytes(at, 0);
    return (vec)_mm512_permutexvar_ps((__m512i)(is_high ? w >> 4 : w), table);
}

/* Whether number_codes looks nibbles up, and where those of a run are; the codes 0, 1, 2 … are their own table. */
UNPACK const unsigned char *nibbles_at(enum sh_packing format, const unsigned char *b, int run, int i, int *is_high)
{
    int in_16 = sh_packing_shape(format).elements == RUN || format == SH_PACKED_IQ4_XS;
    *is_high = in_16 ? i >= 16 : run % 2;
    switch (format) {
    case SH_PACKED_Q4_0: case SH_PACKED_IQ4_NL: return b + 2;
    case SH_PACKED_Q4_1: case SH_PACKED_INT4_32: return b + 4;
    case SH_PACKED_INT4_128: return b + 4 + run / 2 * 32 + i;
    case SH_PACKED_FP4_128: return b + 12 + run / 2 * 32 + i;
    case SH_PACKED_NF4_64: return b + 4 + i;
    case SH_PACKED_MXFP4: return b + 1;
    case SH_PACKED_MXFP4_APART: return b;
    case SH_PACKED_IQ4_XS: return b + 8 + 16 * run;
    case SH_PACKED_Q4_K: return b + 16 + run / 2 * 32 + i;
    default: return NULL;
    }
}

UNPACK __m512 table_of(enum sh_packing format)
{
    switch (format) {
    case SH_PACKED_IQ4_NL: case SH_PACKED_IQ4_XS:
        return _mm512_setr_ps(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
    case SH_PACKED_MXFP4: case SH_PACKED_MXFP4_APART: case SH_PACKED_FP4_128:
        return _mm512_setr_ps(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
    case SH_PACKED_NF4_64: return _mm512_loadu_ps(nf4_all);
    default:
        return _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    }
}
#endif

/* CPU_FLOATS bytes E5M2, or E4M3 times 2^-8: as f16 numbers the first have a byte of zeros more, the second a bit more
 * of exponent after the sign. */
UNPACK vec bytes_as_floats(const unsigned char *at, int is_e5m2)
{
#if defined __AVX512F__
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
    __m256i half = _mm256_cvtepi8_epi16(bytes);
    half = is_e5m2 ? _mm256_slli_epi16(half, 8)
                   : _mm256_and_si256(_mm256_slli_epi16(half, 7), _mm256_set1_epi16((short)0xbf80));
    return (vec)_mm512_cvtph_ps(half);
#elif defined __AVX2__
    __m128i half = _mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)(const void *)at));
    half = is_e5m2 ? _mm_slli_epi16(half, 8) : _mm_and_si128(_mm_slli_epi16(half, 7), _mm_set1_epi16((short)0xbf80));
    return (vec)_mm256_cvtph_ps(half);
#else
    uint16_t half[CPU_FLOATS];
    for (int k = 0; k < CPU_FLOATS; k++)
        half[k] = (uint16_t)(is_e5m2 ? at[k] << 8 : (at[k] & 128) << 8 | (at[k] & 127) << 7);
    return load_vec(SH_F16, half);
#endif
}

/* The numbers that codes of NF4 stand for. */
UNPACK vec nf4_numbers(ints code)
{
#if CPU_FLOATS == 8
    __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(nf4_all), (__m256i)code);
    __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(nf4_all + 8), (__m256i)code);
    return (vec)_mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32((__m256i)code, 28)));
#else
    vec to = {0};
    for (int k = 0; k < CPU_FLOATS; k++)
        to[k] = nf4_all[code[k]];
    return to;
#endif
}

/* Codes i to i + CPU_FLOATS of a run, or those at these places in fours; own: from run_codes. */
UNPACK vec number_codes(enum sh_packing format, const unsigned char *b, int run, int i, bytes32 own)
{
    ints w;
#ifdef __AVX512F__
    int is_high;
    const unsigned char *at = nibbles_at(format, b, run, i, &is_high);
    if (at)
        return looked_up_nibbles(table_of(format), at, is_high);
#endif
    switch (format) {
    case SH_PACKED_NF4_64: return nf4_numbers(widened_nibbles(b + 4 + i, run));
    case SH_PACKED_E4M3_32: case SH_PACKED_E4M3_128: case SH_PACKED_E5M2_128:
        return bytes_as_floats(b + 4 + run * RUN + i, format == SH_PACKED_E5M2_128);
    case SH_PACKED_Q8_0: w = widened_bytes(b + 2 + i, 1); break;
    case SH_PACKED_Q4_0: w = widened_nibbles(b + 2 + i % 16, i >= 16); break;
    case SH_PACKED_Q4_1: case SH_PACKED_INT4_32: w = widened_nibbles(b + 4 + i % 16, i >= 16); break;
    case SH_PACKED_INT4_128: w = widened_nibbles(b + 4 + run / 2 * 32 + i, run % 2); break;
    case SH_PACKED_INT8_128: w = widened_bytes(b + 4 + run * RUN + i, 1); break;
    case SH_PACKED_Q4_K: w = widened_nibbles(b + 16 + run / 2 * 32 + i, run % 2); break;
    case SH_PACKED_IQ4_NL: case SH_PACKED_IQ4_XS: case SH_PACKED_MXFP4: case SH_PACKED_MXFP4_APART:
    case SH_PACKED_FP4_128:
        w = widened_codes(own, i, 1);
        break;
    default: w = sh_packed_is_points(format) ? widened_bytes(b + run * RUN + i, 1) : widened_codes(own, i, 0);
    }
    return __builtin_convertvector(w, vec);
}

/* The number in all lanes. */
UNPACK vec in_all(float x)
{
    return x - (vec){0};
}

/* Of the span that number i of a run belongs to, or of the two that a run in fours has. */
UNPACK vec of_span(enum sh_packing format, const float *x, int run, int i)
{
#if CPU_FLOATS == 8
    if (in_fours(format) && sh_packing_shape(format).span < RUN) {
        double two;
        memcpy(&two, x + 2 * run, sizeof two);
        return (vec)_mm256_permutevar_ps((__m256)_mm256_set1_pd(two), _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
    }
#endif
    return in_all(x[(run * RUN + i) / sh_packing_shape(format).span]);
}

/* A block, and where its scale is if that is apart. */
struct block_at {
    const unsigned char *b, *apart;
};

/* The first block of a row of the matrix. */
static inline struct block_at blocks_of_row(const struct sh_packed *p, int row)
{
    struct sh_packing_shape s = sh_packing_shape(p->format);
    size_t block = (size_t)sh_packed_row(p, row) * (size_t)(p->cols / s.elements);
    return (struct block_at){p->at + block * (size_t)s.bytes, p->apart ? p->apart + block : NULL};
}

/* The scales of numbers i to i + CPU_FLOATS of a run, and what the numbers of their codes are less by; scale and less:
 * of blocks with several spans. */
UNPACK vec scale_in_all(enum sh_packing format, struct block_at at, const float *scale, int run, int i)
{
    if (!has_one_scale(format))
        return of_span(format, scale, run, i);
    if (format == SH_PACKED_MXFP4)
        return in_all(sh_e8m0_half(at.b[0]));
    if (format == SH_PACKED_MXFP4_APART)
        return in_all(sh_e8m0_half(at.apart[0]));
    if (format == SH_PACKED_INT4_32)
        return in_all(int4_scale(at.b));
    if (format == SH_PACKED_E4M3_32)
        return in_all(sh_from_bits(word_at(at.b)) * E4M3_AS_F16);
    return half_in_all(at.b);
}

UNPACK vec less_in_all(enum sh_packing format, struct block_at at, const float *less, int run, int i)
{
    if (!has_one_scale(format))
        return of_span(format, less, run, i);
    if (format == SH_PACKED_INT4_32)
        return in_all(int4_less(at.b));
    if (sh_packing_shape(format).has_less)
        return -half_in_all(at.b + 2);
    return scale_in_all(format, at, NULL, run, i) * offset_of(format);
}

/* The same as numbers. */
UNPACK vec numbers_of(enum sh_packing format, struct block_at at, int run, int i, bytes32 own,
                      const float *scale, const float *less)
{
    if (is_halves(format))
        return load_vec(format == SH_PACKED_F16 ? SH_F16 : SH_BF16, at.b + 2 * i);
    vec w = number_codes(format, at.b, run, i, own) * scale_in_all(format, at, scale, run, i);
    if (sh_packing_shape(format).has_less || offset_of(format) > 0)
        w -= less_in_all(format, at, less, run, i);
    return w;
}

#endif
