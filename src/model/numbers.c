/* SPDX-License-Identifier: Apache-2.0 */
/* See model.h: random numbers for weights, pruning, a normed head, and the search for numbers that are not finite. */
#include "src/model/model.h"

#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/base/rng.h"
#include "src/base/team.h"

typedef uint32_t word32 __attribute__((may_alias));
typedef uint16_t word16 __attribute__((may_alias));

/* ---- fresh ----
 *
 * Each number is the sum of eight uniform 16-bit numbers from two draws: mean and
 * deviation are exact, the kurtosis is 2.85 (a normal has 3), no value lies beyond 4.9 deviations.
 * Only integers and one product are involved, so every machine makes the same weights. */

/* The sum of the four 16-bit parts. */
static inline uint32_t fold(uint64_t bits)
{
    uint64_t pairs = (bits & 0x0000ffff0000ffffu) + (bits >> 16 & 0x0000ffff0000ffffu);
    return (uint32_t)pairs + (uint32_t)(pairs >> 32);
}

enum { PIECE = 1 << 16 };               /* numbers that a thread takes at a time */

struct draw {
    float *out;
    size_t n;
    uint64_t seed;
    float unit;
};

static void draw_piece(void *arg, int piece)
{
    const struct draw *d = arg;
    const int32_t mean = 4 * 65535;                 /* of the sum of eight                        */
    size_t first = (size_t)piece * PIECE, end = d->n - first < PIECE ? d->n : first + PIECE;
    for (size_t i = first; i < end; i++) {
        uint32_t sum = fold(sh_rng(d->seed, 2 * (uint64_t)i)) + fold(sh_rng(d->seed, 2 * (uint64_t)i + 1));
        d->out[i] = (float)((int32_t)sum - mean) * d->unit;
    }
}

void sh_random_normal(float *out, size_t n, uint64_t seed, float std)
{
    struct draw d = {out, n, seed, std * 0x1.3988e2p-16f};      /* std / sqrt(8 * (65536^2 - 1) / 12) */
    sh_team_each(0, (int)((n + PIECE - 1) / PIECE), draw_piece, &d);
}

/* ---- pruned ----
 *
 * Without its sign a float orders as the whole number that its bits are, so the magnitude that
 * divides what goes from what stays is found by counting: in one pass over the upper 15 bits, for f32 in a
 * second one over the lower 16 of those that share them. No copy, no sort. */

enum { BINS = 1 << 16 };

/* The magnitude as a number of 31 bits; 16-bit types in the upper 15. */
static uint32_t magnitude(const void *at, enum sh_type type, size_t i)
{
    return type == SH_F32 ? ((const word32 *)at)[i] & 0x7fffffffu : (((const word16 *)at)[i] & 0x7fffu) << 16;
}

/* The bin in which the one of rank *left is; *left becomes its rank there. */
static uint32_t bin_of(const size_t *count, size_t *left)
{
    uint32_t b = 0;
    while (*left >= count[b])
        *left -= count[b++];
    return b;
}

void sh_prune(void *at, enum sh_type type, size_t n, double share)
{
    size_t k = (size_t)rint(share * (double)n), left = k;
    if (!k)
        return;
    size_t *count = xcalloc(BINS, sizeof *count);
    left--;                                     /* the largest that goes has rank k - 1 */
    for (size_t i = 0; i < n; i++)
        count[magnitude(at, type, i) >> 16]++;
    uint32_t edge = bin_of(count, &left) << 16;
    if (type == SH_F32) {
        for (int b = 0; b < BINS; b++)
            count[b] = 0;
        for (size_t i = 0; i < n; i++)
            if (magnitude(at, type, i) >> 16 == edge >> 16)
                count[magnitude(at, type, i) & 0xffff]++;
        edge |= bin_of(count, &left);
    }
    free(count);
    left++;                                     /* so many of the edge's own magnitude go */
    for (size_t i = 0; i < n; i++) {
        uint32_t m = magnitude(at, type, i);
        if (m > edge || (m == edge && !(left && left--)))
            continue;
        if (type == SH_F32)
            ((word32 *)at)[i] = 0;
        else
            ((word16 *)at)[i] = 0;
    }
}

/* ---- a normed head ---- */

typedef float float32 __attribute__((may_alias));

static float number_at(const void *at, enum sh_type type, size_t i)
{
    return type == SH_F32 ? ((const float32 *)at)[i] : type == SH_F16 ? sh_f16_to_f32(((const word16 *)at)[i])
                                                                      : sh_bf16_to_f32(((const word16 *)at)[i]);
}

static void put_number(void *at, enum sh_type type, size_t i, float x)
{
    if (type == SH_F32)
        ((float32 *)at)[i] = x;
    else
        ((word16 *)at)[i] = type == SH_F16 ? sh_f32_to_f16(x) : sh_f32_to_bf16(x);
}

/* The floors of lengths are those of the models' own code. */
void sh_norm_matrix(void *at, enum sh_type type, int rows, int cols, int by_column)
{
    size_t n = (size_t)(by_column ? cols : rows), width = (size_t)cols, all = (size_t)rows * width;
    double *length = xcalloc(n, sizeof *length);
    for (size_t i = 0; i < all; i++) {
        double x = (double)number_at(at, type, i);
        length[by_column ? i % width : i / width] += x * x;
    }
    for (size_t i = 0; i < n; i++)
        length[i] = by_column ? sqrt(length[i]) + 1e-7 : fmax(sqrt(length[i]), 1e-12);
    for (size_t i = 0; i < all; i++)
        put_number(at, type, i, (float)((double)number_at(at, type, i) / length[by_column ? i % width : i / width]));
    free(length);
}

/* ---- finite ----
 *
 * NaN and infinity are the numbers whose exponent bits are all ones; adding
 * one at the lowest exponent bit then carries into the sign's place. The whole tensor is tested
 * that way with plain integer operations; only a bad one is searched for the place. */

static int any_bad32(const word32 *at, size_t n)
{
    uint32_t carry = 0;
    for (size_t i = 0; i < n; i++)
        carry |= (at[i] & 0x7f800000u) + 0x00800000u;
    return carry >> 31 != 0;
}

/* exponent: the mask of the exponent bits; lowest: its lowest bit. */
static int any_bad16(const word16 *at, size_t n, uint16_t exponent, uint16_t lowest)
{
    uint16_t carry = 0;
    for (size_t i = 0; i < n; i++)
        carry = (uint16_t)(carry | (uint16_t)((at[i] & exponent) + lowest));
    return carry >> 15 != 0;
}

struct looked_at {
    const struct sh_tensor *t;
    size_t n;
    atomic_int is_bad;
};

static void look_at(void *arg, int piece)
{
    struct looked_at *l = arg;
    size_t first = (size_t)piece * PIECE, n = l->n - first < PIECE ? l->n - first : PIECE;
    int bad = 0;
    switch (l->t->type) {
    case SH_F32: bad = any_bad32((const word32 *)l->t->at + first, n); break;
    case SH_F16: bad = any_bad16((const word16 *)l->t->at + first, n, 0x7c00, 0x0400); break;
    case SH_BF16: bad = any_bad16((const word16 *)l->t->at + first, n, 0x7f80, 0x0080); break;
    }
    if (bad)
        atomic_store(&l->is_bad, 1);
}

float sh_tensor_element(const struct sh_tensor *t, size_t i)
{
    if (t->type == SH_F32)
        return sh_from_bits(((const word32 *)t->at)[i]);
    uint16_t half = ((const word16 *)t->at)[i];
    return t->type == SH_F16 ? sh_f16_to_f32(half) : sh_bf16_to_f32(half);
}

static int refuse(const char *name, size_t i, size_t cols, float x, struct sh_err *e)
{
    return sh_fail(e, "tensor '%s': element %zu (row %zu, column %zu) is %g, expected finite numbers", name, i,
                   i / cols, i % cols, (double)x);
}

int sh_model_check_finite(const struct sh_tensor *t, struct sh_err *e)
{
    size_t n = t->at ? (size_t)t->rows * (size_t)t->cols : 0, i = 0;
    struct looked_at l = {.t = t, .n = n};
    sh_team_each(0, (int)((n + PIECE - 1) / PIECE), look_at, &l);
    if (!atomic_load(&l.is_bad))
        return 0;
    while (i + 1 < n && isfinite(sh_tensor_element(t, i)))
        i++;
    return refuse(t->name, i, (size_t)t->cols, sh_tensor_element(t, i), e);
}

struct unpacked {
    const struct sh_packed *p;
    atomic_int first_bad;               /* piece; INT_MAX: none                                   */
};

static int piece_rows(const struct sh_packed *p, int piece)
{
    return p->rows - piece * SH_BLOCKS_ROWS < SH_BLOCKS_ROWS ? p->rows - piece * SH_BLOCKS_ROWS : SH_BLOCKS_ROWS;
}

static void look_at_rows(void *arg, int piece)
{
    struct unpacked *u = arg;
    int n = piece_rows(u->p, piece), before = atomic_load(&u->first_bad);
    float *x = xmalloc((size_t)n * (size_t)u->p->cols * sizeof *x);
    u->p->unpack(u->p->from, piece * SH_BLOCKS_ROWS, n, x);
    if (any_bad32((const word32 *)(const void *)x, (size_t)n * (size_t)u->p->cols))
        while (piece < before && !atomic_compare_exchange_weak(&u->first_bad, &before, piece))
            continue;
    free(x);
}

/* ---- from the scales alone: codes are small, so that numbers are finite unless a scale is not, or is huge ---- */

enum { MOST_POWER = 252 };              /* a scale of 2^(power - 127), of codes up to 6           */

struct scales {                         /* of 16 bits: where they are in a block, and how many; 0: there are others */
    int at, n;
};

static struct scales half_scales(enum sh_packing format)
{
    switch (format) {
    case SH_PACKED_Q4_1: case SH_PACKED_Q5_1: case SH_PACKED_Q4_K: case SH_PACKED_Q5_K: return (struct scales){0, 2};
    case SH_PACKED_Q6_K: return (struct scales){208, 1};
    case SH_PACKED_Q2_K: return (struct scales){80, 2};
    case SH_PACKED_Q3_K: return (struct scales){108, 1};
    case SH_PACKED_TQ1_0: return (struct scales){52, 1};
    case SH_PACKED_TQ2_0: return (struct scales){64, 1};
    case SH_PACKED_INT4_32: case SH_PACKED_INT4_128: case SH_PACKED_INT8_128: case SH_PACKED_FP4_128:
    case SH_PACKED_E4M3_32: case SH_PACKED_E4M3_128: case SH_PACKED_E5M2_128: case SH_PACKED_NF4_64:
        return (struct scales){0, 0};
    case SH_PACKED_IQ1_M: return (struct scales){0, 0};
    default: return (struct scales){0, 1};
    }
}

static int has_large_power(const unsigned char *power, size_t n, size_t step)
{
    unsigned most = 0;
    for (size_t i = 0; i < n; i++)
        most = power[i * step] > most ? power[i * step] : most;
    return most > MOST_POWER;
}

/* Whether the row must be unpacked to know. */
static int is_doubtful(const struct sh_packed *p, int row)
{
    struct sh_packing_shape s = sh_packing_shape(p->format);
    size_t blocks = (size_t)(p->cols / s.elements), at = (size_t)sh_packed_row(p, row) * blocks;
    const unsigned char *block = p->at + at * (size_t)s.bytes;
    int bad = 0;
    if (p->format == SH_PACKED_MXFP4_APART)
        return has_large_power(p->apart + at, blocks, 1);
    if (p->format == SH_PACKED_MXFP4)
        return has_large_power(block, blocks, (size_t)s.bytes);
    if (p->format == SH_PACKED_F16)
        return any_bad16((const word16 *)(const void *)block, (size_t)p->cols, 0x7c00, 0x0400);
    if (p->format == SH_PACKED_BF16)
        return any_bad16((const word16 *)(const void *)block, (size_t)p->cols, 0x7f80, 0x0080);
    struct scales scale = half_scales(p->format);
    for (size_t i = 0; i < blocks && p->format == SH_PACKED_IQ1_M; i++)    /* f16, in upper halves of four bytes */
        bad |= (block[i * (size_t)s.bytes + 55] & 0x70) == 0x70 && (block[i * (size_t)s.bytes + 53] & 0xc0) == 0xc0;
    if (!scale.n)
        return bad || p->format != SH_PACKED_IQ1_M;
    for (size_t i = 0; i < blocks; i++, block += s.bytes)
        for (int k = 0; k < scale.n; k++)
            bad |= (block[scale.at + 2 * k + 1] & 0x7c) == 0x7c;
    return bad;
}

static void look_at_scales(void *arg, int piece)
{
    struct unpacked *u = arg;
    int n = piece_rows(u->p, piece);
    if (u->p->is_finite && !u->p->is_finite(u->p->from, piece * SH_BLOCKS_ROWS, n))
        look_at_rows(arg, piece);
    for (int i = 0; i < n && !u->p->is_finite; i++)
        if (is_doubtful(u->p, piece * SH_BLOCKS_ROWS + i)) {
            look_at_rows(arg, piece);
            return;
        }
}

int sh_packed_check_finite(const struct sh_packed *p, const char *name, struct sh_err *e)
{
    struct unpacked u = {.p = p, .first_bad = INT_MAX};
    sh_team_each(0, (p->rows + SH_BLOCKS_ROWS - 1) / SH_BLOCKS_ROWS,
                 p->at || p->is_finite ? look_at_scales : look_at_rows, &u);
    int piece = atomic_load(&u.first_bad), n = piece_rows(p, piece == INT_MAX ? 0 : piece);
    if (piece == INT_MAX)
        return 0;
    size_t cols = (size_t)p->cols, first = (size_t)piece * SH_BLOCKS_ROWS * cols, i = 0;
    float *x = xmalloc((size_t)n * cols * sizeof *x);
    p->unpack(p->from, piece * SH_BLOCKS_ROWS, n, x);
    while (i + 1 < (size_t)n * cols && isfinite(x[i]))
        i++;
    refuse(name, first + i, cols, x[i], e);
    free(x);
    return -1;
}
