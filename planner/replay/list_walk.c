/* SPDX-License-Identifier: Apache-2.0 */
/* See list_walk.h. With AVX-512 the three steps are one: while a block's tokens are fetched, which the load units do,
 * the one before passes down, which takes arithmetic. The same numbers in the same order. */
#include "planner/replay/list_walk.h"

#include "planner/policy/simd_gather.h"
#include "src/base/clones.h"
#include "src/base/num.h"

#ifdef SH_GATHER_WIDE
#include <immintrin.h>
#endif

static unsigned others_of(const struct sh_list_row *row)
{
    return (unsigned)(row->self - (SH_REPLAY_SINKS + 1));
}

SH_CLONES static void share_out(float *restrict mass, float *restrict no_sink, float *restrict pivotal,
                                const int64_t *restrict pair, const int32_t *restrict token,
                                const struct sh_list_row *row, int n)
{
    const struct sh_list_row r = *row;
    const unsigned others = others_of(row);
    for (int i = 0; i < n; i++) {
        float x = sh_from_bits((uint32_t)pair[i]);
        mass[i] += x * r.mass;
        no_sink[i] += (unsigned)(token[i] - (SH_REPLAY_SINKS + 1)) < others ? x * r.no_sink : 0;
        pivotal[i] += x > r.limit ? r.pivotal : 0;
    }
}

SH_CLONES static void share_out_group(float *restrict mass, float *restrict no_sink, float *restrict pivotal,
                                      const int64_t *restrict pair, const int64_t *restrict rest, int n)
{
    for (int i = 0; i < n; i++) {
        mass[i] += sh_from_bits((uint32_t)pair[i]);
        no_sink[i] += sh_from_bits((uint32_t)((uint64_t)rest[i] >> 32));
        pivotal[i] += sh_from_bits((uint32_t)rest[i]);
    }
}

static int64_t run(struct sh_budget_list *l, float *const lately[SH_N_LINEAR], const struct sh_list_row *row,
                   int from, int n, int comes, int64_t carried)
{
    float *mass = lately[SH_KEPT_MASS] + from, *no_sink = lately[SH_KEPT_MASS_NO_SINK] + from;
    float *pivotal = lately[SH_PIVOTAL_RECALL] + from;
    int32_t *token = l->token + from;
    sh_simd_gather_pairs(l->pair, row->pair, token, n);
    if (row->rest) {
        sh_simd_gather_pairs(row->seen, row->rest, token, n);
        share_out_group(mass, no_sink, pivotal, l->pair, row->seen, n);
    } else {
        share_out(mass, no_sink, pivotal, l->pair, token, row, n);
    }
    return comes ? sh_budget_list_pass(token, l->pair, carried, n) : carried;
}

#ifdef SH_GATHER_WIDE

#define WIDE static inline __attribute__((always_inline, target("avx512f,avx512vl,avx2")))

/* The lower (0) or upper (1) halves of sixteen pairs. */
WIDE __m512i halves(__m512i a, __m512i b, int upper)
{
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_epi32(a, upper ? _mm512_add_epi32(even, _mm512_set1_epi32(1)) : even, b);
}

WIDE void add_to(float *at, __mmask16 where, __m512 x)
{
    __m512 before = _mm512_loadu_ps(at);
    _mm512_storeu_ps(at, _mm512_mask_add_ps(before, where, before, x));
}

/* Sixteen places: their keys into key[0..1], their shares added. */
WIDE void look_and_share(__m512i key[2], const int32_t *token, float *mass, float *no_sink, float *pivotal,
                         const struct sh_list_row *row, int in_group)
{
    const __m512i t = _mm512_loadu_si512(token);
    const __m256i t0 = _mm512_castsi512_si256(t), t1 = _mm512_extracti64x4_epi64(t, 1);
    const __m512i a = _mm512_i32gather_epi64(t0, row->pair, 8), b = _mm512_i32gather_epi64(t1, row->pair, 8);
    const __m512 x = _mm512_castsi512_ps(halves(a, b, 0));
    key[0] = _mm512_mask_blend_epi32(0x5555, a, _mm512_cvtepu32_epi64(t0));
    key[1] = _mm512_mask_blend_epi32(0x5555, b, _mm512_cvtepu32_epi64(t1));
    if (in_group) {
        const __m512i c = _mm512_i32gather_epi64(t0, row->rest, 8), d = _mm512_i32gather_epi64(t1, row->rest, 8);
        add_to(mass, 0xffff, x);
        add_to(no_sink, 0xffff, _mm512_castsi512_ps(halves(c, d, 1)));
        add_to(pivotal, 0xffff, _mm512_castsi512_ps(halves(c, d, 0)));
    } else {
        const __m512i place = _mm512_sub_epi32(t, _mm512_set1_epi32(SH_REPLAY_SINKS + 1));
        const __m512i others = _mm512_set1_epi32((int)others_of(row));
        add_to(mass, 0xffff, _mm512_mul_ps(x, _mm512_set1_ps(row->mass)));
        add_to(no_sink, _mm512_cmplt_epu32_mask(place, others), _mm512_mul_ps(x, _mm512_set1_ps(row->no_sink)));
        add_to(pivotal, _mm512_cmp_ps_mask(x, _mm512_set1_ps(row->limit), _CMP_GT_OQ), _mm512_set1_ps(row->pivotal));
    }
}

/* budget_list.c's pass over one block whose keys are loaded: eight columns at once, each down its places. */
WIDE void pass(__m512i key[8], int64_t *carried)
{
    const __m512i none = _mm512_set1_epi64(INT64_MAX), to_next = _mm512_setr_epi64(8, 0, 1, 2, 3, 4, 5, 6);
    const __m512i by_two = _mm512_setr_epi64(8, 8, 0, 1, 2, 3, 4, 5);
    const __m512i by_four = _mm512_setr_epi64(8, 8, 8, 8, 0, 1, 2, 3);
    const __m512i half = _mm512_min_epi64(_mm512_min_epi64(key[0], key[1]), _mm512_min_epi64(key[2], key[3]));
    __m512i least = _mm512_min_epi64(_mm512_min_epi64(key[4], key[5]), _mm512_min_epi64(key[6], key[7]));
    least = _mm512_min_epi64(least, half);
    least = _mm512_min_epi64(least, _mm512_permutex2var_epi64(least, to_next, none));
    least = _mm512_min_epi64(least, _mm512_permutex2var_epi64(least, by_two, none));
    least = _mm512_min_epi64(least, _mm512_permutex2var_epi64(least, by_four, none));
    __m512i down = _mm512_min_epi64(_mm512_permutex2var_epi64(least, to_next, none), _mm512_set1_epi64(*carried));
    int64_t last = _mm_extract_epi64(_mm512_extracti32x4_epi32(least, 3), 1);
    *carried = last < *carried ? last : *carried;
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        const __m512i stays = _mm512_max_epi64(key[i], down);
        down = _mm512_min_epi64(key[i], down);
        key[i] = stays;
    }
}

WIDE void walk_blocks(struct sh_budget_list *l, float *const lately[SH_N_LINEAR], const struct sh_list_row *row,
                      int n, int comes, int64_t carried, int in_group)
{
    const struct sh_list_row r = *row;
    float *mass = lately[SH_KEPT_MASS], *no_sink = lately[SH_KEPT_MASS_NO_SINK], *pivotal = lately[SH_PIVOTAL_RECALL];
    for (int b = 0; b < n; b += SH_LIST_BLOCK) {
        __m512i key[8];
        int32_t *token = l->token + b;
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            look_and_share(key + 2 * i, token + 16 * i, mass + b + 16 * i, no_sink + b + 16 * i, pivotal + b + 16 * i,
                           &r, in_group);
        if (!comes)
            continue;
        pass(key, &carried);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            _mm512_storeu_si512(token + 16 * i, halves(key[2 * i], key[2 * i + 1], 0));
    }
}

SH_GATHER_WIDE static void walk_wide(struct sh_budget_list *l, float *const lately[SH_N_LINEAR],
                                     const struct sh_list_row *row, int n, int comes, int64_t carried)
{
    if (row->rest)
        walk_blocks(l, lately, row, n, comes, carried, 1);
    else
        walk_blocks(l, lately, row, n, comes, carried, 0);
}
#else
#define walk_wide(l, lately, row, n, comes, carried) ((void)(carried))
#endif

void sh_list_walk_portable(struct sh_budget_list *l, float *const lately[SH_N_LINEAR], const struct sh_list_row *row,
                           int next)
{
    int64_t carried = sh_budget_list_comes(next);
    for (int from = 0, n, whole = sh_budget_list_whole(l); from < whole; from += n) {
        n = whole - from < SH_LIST_RUN ? whole - from : SH_LIST_RUN;
        carried = run(l, lately, row, from, n, next >= 0, carried);
    }
    if (next >= 0)
        l->n += l->n < l->most;
}

void sh_list_walk(struct sh_budget_list *l, float *const lately[SH_N_LINEAR], const struct sh_list_row *row, int next)
{
    if (!sh_simd_gather_is_wide()) {
        sh_list_walk_portable(l, lately, row, next);
        return;
    }
    walk_wide(l, lately, row, sh_budget_list_whole(l), next >= 0, sh_budget_list_comes(next));
    if (next >= 0)
        l->n += l->n < l->most;
}
