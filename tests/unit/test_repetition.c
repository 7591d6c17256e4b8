/* SPDX-License-Identifier: Apache-2.0 */
/* src/engine/repetition.h and drift.h against their definitions, pair by pair. */
#include <math.h>
#include <string.h>

#include "src/base/rng.h"
#include "src/engine/drift.h"
#include "src/engine/repetition.h"
#include "tests/tap.h"

static void known_texts(void)
{
    static const int32_t text[] = {1, 2, 3, 4, 1, 2, 3, 4, 5}, same[] = {7, 7, 7, 7, 7, 7}, one[] = {3};
    CU_ASSERT_DOUBLE_EQUAL(sh_repetition(text, 9, 4), 1 - 5.0 / 6, 1e-15);      /* 1234 twice among six */
    CU_ASSERT_DOUBLE_EQUAL(sh_distinct(text, 9, 1), 5.0 / 9, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(sh_distinct(text, 9, 2), 5.0 / 8, 1e-15);
    CU_ASSERT_EQUAL(sh_longest_repeat(text, 9), 4);
    CU_ASSERT_DOUBLE_EQUAL(sh_repetition(same, 6, 4), 2.0 / 3, 1e-15);
    CU_ASSERT_EQUAL(sh_longest_repeat(same, 6), 5);
    CU_ASSERT(isnan(sh_distinct(one, 1, 2)));
    CU_ASSERT_EQUAL(sh_longest_repeat(one, 1), 0);
    CU_ASSERT_EQUAL(sh_longest_repeat(one, 0), 0);
}

static void random_texts(void)
{
    enum { N = 60 };
    for (uint64_t seed = 0; seed < 50; seed++) {
        int32_t text[N];
        int different = 0, longest = 0;
        for (int i = 0; i < N; i++)
            text[i] = (int32_t)(sh_rng(seed, (uint64_t)i) % 4);
        for (int i = 0; i + 3 <= N; i++) {
            int seen = 0;
            for (int j = 0; j < i; j++)
                seen |= !memcmp(text + i, text + j, 3 * sizeof *text);
            different += !seen;
        }
        for (int i = 0; i < N; i++)
            for (int j = 0; j < i; j++) {
                int n = 0;
                while (i + n < N && text[i + n] == text[j + n])
                    n++;
                longest = n > longest ? n : longest;
            }
        CU_ASSERT_DOUBLE_EQUAL(sh_distinct(text, N, 3), different / (N - 2.0), 1e-15);
        CU_ASSERT_EQUAL(sh_longest_repeat(text, N), longest);
    }
}

/* Three rows by hand: {0, 1}, {1, 2}, {1} pivotal, out of 4, 5 and 5 tokens. */
static void likeness_of_rows(void)
{
    static const int pos4[] = {0, 1, 2, 3}, pos5[] = {4, 1, 2, 3, -1, 0};
    static const float a[] = {0.4f, 0.4f, 0.1f, 0.1f}, b[] = {0.1f, 0.4f, 0.3f, 0.1f, 0, 0.1f},
                       c[] = {0.1f, 0.6f, 0.1f, 0.1f, 0, 0.1f};
    struct sh_row_likeness l = {0};
    sh_row_likeness_add(&l, 3, pos4, a, 4);
    CU_ASSERT_EQUAL(l.pairs, 0);
    sh_row_likeness_add(&l, 4, pos5, b, 6);
    CU_ASSERT_DOUBLE_EQUAL(l.sum, 1.0 / 3, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(l.chance, 0.8 / 3.2, 1e-15);
    sh_row_likeness_add(&l, 5, pos5, c, 6);
    CU_ASSERT_DOUBLE_EQUAL(l.sum, 1.0 / 3 + 1.0 / 2, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(l.chance, 0.8 / 3.2 + 0.4 / 2.6, 1e-15);
    CU_ASSERT_EQUAL(l.pairs, 2);
    sh_row_likeness_clear(&l);
    sh_row_likeness_clear(&l);
}

/* Tokens leave at random steps; the sets are then told one by one. */
static void drift_by_definition(void)
{
    enum { N = 40 };
    for (uint64_t seed = 0; seed < 40; seed++) {
        int a[N], b[N], first[2] = {N, N}, difference = N, same = 1;
        double like[N];
        for (int j = 0; j < N; j++) {
            a[j] = j + (int)(sh_rng(seed, (uint64_t)j) % (uint64_t)(N - j));
            b[j] = j + (int)(sh_rng(seed + 200, (uint64_t)j) % (uint64_t)(N - j));
            b[j] = sh_rng(seed + 100, (uint64_t)j) % 3 ? a[j] : b[j];
        }
        if (seed == 0)
            memcpy(b, a, sizeof b);
        struct sh_drift_head h = sh_drift_compare(a, b, N, like);
        for (int t = 0; t < N; t++) {
            int both = 0, any = 0, in_a = 0, in_b = 0;
            for (int j = 0; j <= t; j++) {
                both += a[j] >= t && b[j] >= t;
                any += a[j] >= t || b[j] >= t;
                in_a += a[j] >= t;
                in_b += b[j] >= t;
            }
            CU_ASSERT_DOUBLE_EQUAL(like[t], (double)both / any, 1e-15);
            first[0] = in_a <= t && first[0] == N ? t : first[0];
            first[1] = in_b <= t && first[1] == N ? t : first[1];
            difference = both != any && difference == N ? t : difference;
        }
        for (int j = 0; j < N && first[0] == first[1]; j++)
            same &= (a[j] < first[0]) == (b[j] < first[1]) || j > first[0];
        CU_ASSERT_EQUAL(h.first_left[0], first[0]);
        CU_ASSERT_EQUAL(h.first_left[1], first[1]);
        CU_ASSERT_EQUAL(h.first_difference, difference);
        CU_ASSERT_EQUAL(h.same_first, first[0] == first[1] && same);
        CU_ASSERT(seed > 0 || (h.same_first && difference == N));
    }
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"rep-n, distinct-n, longest repeat: known texts", known_texts},
        {"the same by definition, on random texts", random_texts},
        {"likeness of neighbouring rows, by hand", likeness_of_rows},
        {"kept sets of two runs, by definition", drift_by_definition},
        {0}};
    return tap_run("repetition", tests);
}
