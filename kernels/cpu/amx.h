/* SPDX-License-Identifier: Apache-2.0 */
/* Products of f32 matrices by the processor's tiles of bf16 numbers (AMX), which multiply eight times as much
 * in a cycle as its f32 lanes: each f32 number is the sum of three bf16 pieces of 8 bits, rounded to nearest,
 * and of the nine products of pieces the six are taken that an f32 sum can tell from nothing; what is left out
 * is below 2^-25 of |a| |b|. With two pieces (16 bits, three products) that is 2^-16. Sums are f32, as those of
 * f32 products are: measured, three pieces err less than a serial f32 sum.
 *
 * A packed matrix consists of tiles of AMX_SIDE rows (of a) or columns (of b) by AMX_DEPTH of the inner dimension,
 * the pieces of a tile one after another, the largest first, tiles along the inner dimension next. Only in the
 * amx variant; between amx_begin and amx_end. */
#ifndef SH_KERNELS_CPU_AMX_H
#define SH_KERNELS_CPU_AMX_H

#ifdef CPU_HAS_AMX
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

enum { AMX_SIDE = 16, AMX_DEPTH = 32, AMX_TILE = AMX_SIDE * AMX_DEPTH /* numbers */, AMX_PIECES = 3 };

struct amx_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/* What was written is in memory, and what is read comes from there: the compiler's own functions do not say what
 * they read. */
static inline void amx_fence(const void *at)
{
    __asm__ volatile("" : : "r"(at) : "memory");
}

/* Whoever had tiles before (oneDNN remembers what it has set) gets them back. */
static inline void amx_begin(struct amx_config *before)
{
    struct amx_config own;
    memset(&own, 0, sizeof own);
    own.palette = 1;
    for (int i = 0; i < 8; i++) {
        own.row_bytes[i] = 64;
        own.rows[i] = AMX_SIDE;
    }
    amx_fence(&own);
    _tile_storeconfig(before);
    _tile_loadconfig(&own);
    amx_fence(before);
}

static inline void amx_end(const struct amx_config *before)
{
    amx_fence(before);
    if (before->palette)
        _tile_loadconfig(before);
    else
        _tile_release();
}

/* The pieces of 16 numbers, each in the upper half of its lane. */
static inline __attribute__((always_inline)) void amx_split(__m512 x, __m512i *piece, int pieces)
{
    const __m512i half = _mm512_set1_epi32(0x8000), upper = _mm512_set1_epi32(-0x10000);
    for (int p = 0; p < pieces; p++) {
        piece[p] = _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(x), half), upper);
        x = _mm512_sub_ps(x, _mm512_castsi512_ps(piece[p]));
    }
}

/* Row i of a tile of a: 32 numbers of its inner dimension. */
static inline __attribute__((always_inline)) void amx_put_row(uint16_t *tile, int i, __m512 first, __m512 second,
                                                              int pieces)
{
    __m512i low[AMX_PIECES], high[AMX_PIECES];
    amx_split(first, low, pieces);
    amx_split(second, high, pieces);
    for (int p = 0; p < pieces; p++) {
        __m256i a = _mm512_cvtepi32_epi16(_mm512_srli_epi32(low[p], 16));
        __m256i b = _mm512_cvtepi32_epi16(_mm512_srli_epi32(high[p], 16));
        _mm512_storeu_si512(tile + p * AMX_TILE + i * AMX_DEPTH, _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1));
    }
}

/* Numbers 2 i and 2 i + 1 of the inner dimension of a tile of b, of 16 columns each. */
static inline __attribute__((always_inline)) void amx_put_pair(uint16_t *tile, int i, __m512 even, __m512 odd,
                                                               int pieces)
{
    __m512i low[AMX_PIECES], high[AMX_PIECES];
    amx_split(even, low, pieces);
    amx_split(odd, high, pieces);
    for (int p = 0; p < pieces; p++)
        _mm512_storeu_si512(tile + p * AMX_TILE + i * AMX_DEPTH,
                            _mm512_or_si512(high[p], _mm512_srli_epi32(low[p], 16)));
}

struct amx_pair {                       /* of tiles with all their pieces, of a or of b, `next` numbers apart */
    const uint16_t *at;
    size_t next;
};

/* Tiles 0..3 are sums, 4 and 5 a piece of two tiles of a, 6 and 7 of two of b. */
static inline void amx_load_a(struct amx_pair a, int piece)
{
    _tile_loadd(4, a.at + piece * AMX_TILE, 64);
    _tile_loadd(5, a.at + a.next + piece * AMX_TILE, 64);
}

static inline void amx_load_b(struct amx_pair b, int piece)
{
    _tile_loadd(6, b.at + piece * AMX_TILE, 64);
    _tile_loadd(7, b.at + b.next + piece * AMX_TILE, 64);
}

static inline void amx_multiply(void)
{
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
}

/* The products of pieces that count, the smallest first. */
static inline void amx_six(struct amx_pair a, struct amx_pair b)
{
    amx_load_a(a, 0);
    amx_load_b(b, 2);
    amx_multiply();
    amx_load_b(b, 1);
    amx_multiply();
    amx_load_a(a, 1);
    amx_multiply();
    amx_load_b(b, 0);
    amx_multiply();
    amx_load_a(a, 2);
    amx_multiply();
    amx_load_a(a, 0);
    amx_multiply();
}

static inline void amx_three(struct amx_pair a, struct amx_pair b)
{
    amx_load_a(a, 0);
    amx_load_b(b, 1);
    amx_multiply();
    amx_load_b(b, 0);
    amx_multiply();
    amx_load_a(a, 1);
    amx_multiply();
}

/* c[32, 32] = a b, or += : two tiles of rows and two of columns; rows of c lie ldc floats apart. `steps` times
 * AMX_DEPTH of the inner dimension; `pieces` of each number, 3 or 2. */
static inline void amx_tiles(float *c, size_t ldc, struct amx_pair a, struct amx_pair b, int steps, int pieces, int add)
{
    size_t row = ldc * sizeof *c;
    amx_fence(a.at);
    if (add) {
        _tile_loadd(0, c, row);
        _tile_loadd(1, c + AMX_SIDE, row);
        _tile_loadd(2, c + AMX_SIDE * ldc, row);
        _tile_loadd(3, c + AMX_SIDE * ldc + AMX_SIDE, row);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    if (pieces == 3)
        for (int i = 0; i < steps; i++, a.at += 3 * AMX_TILE, b.at += 3 * AMX_TILE)
            amx_six(a, b);
    else
        for (int i = 0; i < steps; i++, a.at += 2 * AMX_TILE, b.at += 2 * AMX_TILE)
            amx_three(a, b);
    _tile_stored(0, c, row);
    _tile_stored(1, c + AMX_SIDE, row);
    _tile_stored(2, c + AMX_SIDE * ldc, row);
    _tile_stored(3, c + AMX_SIDE * ldc + AMX_SIDE, row);
}
#endif
#endif
