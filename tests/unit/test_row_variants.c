/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/row_bits.c and row_near.c: each instruction set, forced, against loops. The sources are compiled into this
 * file, so that what the processor has can be hidden from them. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/num.h"
#include "src/base/rng.h"
#include "tests/tap.h"

#ifdef __x86_64__
static int hidden;                      /* 1: AVX-512; 2: AVX2, too */

static int has_avx2(void) { return __builtin_cpu_supports("avx2") != 0; }
static int has_avx512(void) { return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"); }

#define __builtin_cpu_supports(feature)                                                                       \
    (hidden < 1 && (feature)[3] == '5' ? has_avx512() : hidden < 2 && (feature)[3] == '2' ? has_avx2() : 0)
#endif
#include "src/base/row_bits.c"
#include "src/base/row_near.c"

enum { LONGEST = 5000, MOST_WORDS = LONGEST / 64 + 1 };

static float at_limit[4];               /* ties with the limits are as likely as anything else */

static float draw(uint64_t seed, uint64_t i)
{
    static const float strange[] = {0, FLT_MIN / 4, 1e-30f, 1, NAN};
    uint64_t which = sh_rng(seed, 2 * i) % 16;
    if (which < 4)
        return at_limit[which];
    return which == 4 ? strange[sh_rng(seed, 2 * i + 1) % 5] : (float)exp(sh_rng_normal(seed, 2 * i + 1) - 8);
}

static void fill(float *row, int n, uint64_t seed)
{
    for (int i = 0; i < n; i++)
        row[i] = draw(seed, (uint64_t)i);
}

static int near_is_wrong(const float *row, int n, float low, float high)
{
    struct sh_row_near near;
    double sum = 0;
    int above = 0, between = 0, wrong = 0;
    sh_row_near(row, n, low, high, &near);
    for (int i = 0; i < n; i++) {
        above += row[i] >= high;
        sum += row[i] >= high ? (double)row[i] : 0;
        if (row[i] >= low && row[i] < high) {
            wrong |= between < SH_ROW_NEAR && near.score[between] != row[i];
            between++;
        }
    }
    return wrong || near.above != above || near.n != between || fabs(near.sum - sum) > 1e-12 * sum;
}

static int bits_are_wrong(const float *row, int n_word, const float *limit, int n_limit, float low)
{
    static uint64_t found[7 * MOST_WORDS];
    int wrong = 0;
    memset(found, 0x55, sizeof found);
    sh_row_bits(row, (size_t)n_word, limit, n_limit, low, found, MOST_WORDS);
    for (int k = 0; k <= n_limit; k++)
        for (int i = 0; i < 64 * n_word; i++) {
            int expected = k < n_limit ? row[i] > limit[k] : row[i] < low;
            wrong |= (int)(found[k * MOST_WORDS + i / 64] >> i % 64 & 1) != expected;
        }
    for (int k = 0; k <= n_limit; k++)                  /* and nothing after them */
        wrong |= n_word < MOST_WORDS && found[k * MOST_WORDS + n_word] != 0x5555555555555555u;
    return wrong;
}

static void check_all(void)
{
    static const int length[] = {1, 3, 4, 5, 15, 16, 17, 63, 64, 65, 200, 1000, 4096, LONGEST};
    float *row = xcalloc(LONGEST, sizeof *row), high = 5e-4f, low = 3e-4f;
    const float limit[6] = {3e-4f, 0.5f, 1e-4f, 5e-4f, 5e-4f, 2};
    int wrong = 0;
    memcpy(at_limit, (float[]){low, high, nextafterf(low, 0), nextafterf(high, 0)}, sizeof at_limit);
    for (size_t l = 0; l < sizeof length / sizeof *length; l++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            int n = length[l];
            fill(row, n, seed + 1000 * (uint64_t)n);
            wrong += near_is_wrong(row, n, low, high);
            wrong += near_is_wrong(row, n, FLT_MIN, 0.9f);          /* more than are kept */
            wrong += near_is_wrong(row, n, high, high);
            for (int n_limit = 0; n_limit <= 6; n_limit++)
                wrong += bits_are_wrong(row, n / 64, limit, n_limit, low);
            wrong += bits_are_wrong(row, n / 64, (float[]){2, 3}, 2, high);
        }
    CU_ASSERT(wrong == 0);
    free(row);
}

static void best(void)
{
    check_all();
}

#ifdef __x86_64__
static void avx2(void)
{
    if (!has_avx2()) {
        tap_skip("this processor has no AVX2");
        return;
    }
    hidden = 1;
    check_all();
}

static void plain(void)
{
    hidden = 2;
    check_all();
}
#endif

int main(void)
{
    static const struct tap_test tests[] = {
        {"rows against limits: what this processor has", best},
#ifdef __x86_64__
        {"rows against limits: AVX2", avx2},
        {"rows against limits: neither AVX2 nor AVX-512", plain},
#endif
        {NULL, NULL},
    };
    return tap_run("row_variants", tests);
}
