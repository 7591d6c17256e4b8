/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/near_ties.c tells flips of near ties from errors: injected ones of both kinds, for each kind of score. */
#include <stdio.h>
#include <string.h>

#include "planner/policy/policy.h"
#include "tests/tap.h"
#include "tests/unit/near_ties.h"

enum { N = 12, KEYS = 6 };              /* tokens 0 to KEYS - 1 are there for token KEYS               */

/* Every row gives token j base[j], scaled to its length; the reference keeps all but `out`, the device all but
 * `other`. */
struct question {
    const char *policy;
    float share[KEYS];                  /* of each row of KEYS keys, or of their beginning         */
    float last[KEYS];                   /* of the last row, where it is not 0                      */
    int out, other, expected;
};

static struct near_ties *told(const struct question *q)
{
    struct sh_policy_spec spec;
    struct sh_err e;
    int pos[KEYS] = {0, 1, 2, 3, 4, 5};
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse(q->policy, &spec, &e), 0);
    struct near_ties *n = near_new(&spec, 2, 1, 1, 16, N);
    for (int t = 0; t < KEYS; t++)
        near_row(n, 1, 0, t, pos, t == KEYS - 1 && q->last[0] > 0 ? q->last : q->share, t + 1, t + 1);
    return n;
}

static int judged(const struct question *q)
{
    struct near_ties *n = told(q);
    unsigned char here[N], there[N];
    memset(here, 1, sizeof here);
    memset(there, 1, sizeof there);
    here[q->out] = there[q->other] = 0;
    int verdict = near_judge(n, 1, 0, KEYS, here, there);
    int noted = n->n_flip == (verdict && q->out != q->other) && near_until(n) == (n->n_flip ? KEYS : N);
    near_free(n);
    return noted ? verdict : -1;
}

static void told_apart(void)
{
    static const struct question q[] = {
        /* sums: token 1 has 5 rows, token 2 has 4 */
        {"h2o:recent=0", {.9f, .08f, .1f, .3f, .5f, .9f}, {0}, 1, 1, 1},        /* alike */
        {"h2o:recent=0", {.9f, .08f, .1f, .3f, .5f, .9f}, {0}, 1, 2, 1},        /* 0.4 and 0.4: a tie */
        {"h2o:recent=0", {.9f, .08f, .100001f, .3f, .5f, .9f}, {0}, 1, 2, 1},   /* within rounding */
        {"h2o:recent=0", {.9f, .08f, .1002f, .3f, .5f, .9f}, {0}, 1, 2, 0},     /* 2e-3 apart */
        {"h2o:recent=0", {.9f, .08f, .1f, .3f, .5f, .9f}, {0}, 1, 3, 0},
        {"h2o:score=mean,recent=0", {.9f, .1f, .1f, .3f, .5f, .9f}, {0}, 1, 2, 1},
        {"h2o:score=mean,recent=0", {.9f, .1f, .1003f, .3f, .5f, .9f}, {0}, 1, 2, 0},
        /* positions are never near */
        {"window", {.1f, .1f, .1f, .1f, .1f, .1f}, {0}, 0, 1, 0},
        {"streaming", {.1f, .1f, .1f, .1f, .1f, .1f}, {0}, 4, 5, 0},
        /* counts: the last row has 6 keys, so 1 / 6 is its threshold */
        {"scissorhands:window=1,recent=0,drop=1", {1, 1, 1, 1, 1, 1}, {.2f, .1f, .2f, .2f, .2f, .2f}, 1, 2, 0},
        {"scissorhands:window=1,recent=0,drop=1", {1, 1, 1, 1, 1, 1}, {.2f, .1f, .1666666f, .2f, .2f, .2f}, 1, 2, 1},
        {"scissorhands:window=1,recent=0,drop=1", {1, 1, 1, 1, 1, 1}, {.2f, .1f, .1f, .2f, .2f, .2f}, 1, 2, 0}};
    for (size_t i = 0; i < sizeof q / sizeof *q; i++) {
        int found = judged(&q[i]);
        if (found != q[i].expected)
            printf("# question %zu, %s: %d, expected %d\n", i, q[i].policy, found, q[i].expected);
        CU_ASSERT_EQUAL(found, q[i].expected);
    }
}

/* More or fewer tokens are no flip, whatever their scores. */
static void another_number(void)
{
    const struct question q = {"h2o:recent=0", {.9f, .08f, .1f, .3f, .5f, .9f}, {0}, 1, 2, 1};
    struct near_ties *n = told(&q);
    unsigned char here[N], there[N];
    memset(here, 1, sizeof here);
    memset(there, 1, sizeof there);
    here[1] = 0;
    CU_ASSERT_EQUAL(near_judge(n, 1, 0, KEYS, here, there), 0);
    there[1] = there[2] = 0;
    CU_ASSERT_EQUAL(near_judge(n, 1, 0, KEYS, here, there), 0);
    CU_ASSERT_EQUAL(n->n_flip, 0);
    near_free(n);
}

/* After a flip its head and the layers above are apart, nothing else is. */
static void afterwards(void)
{
    const struct question q = {"h2o:recent=0", {.9f, .08f, .1f, .3f, .5f, .9f}, {0}, 1, 2, 1};
    struct near_ties *n = told(&q);
    unsigned char here[N], there[N];
    memset(here, 1, sizeof here);
    memset(there, 1, sizeof there);
    here[1] = there[2] = 0;
    CU_ASSERT_EQUAL(near_judge(n, 1, 0, KEYS, here, there), 1);
    there[5] = 0;
    CU_ASSERT_EQUAL(near_judge(n, 1, 0, KEYS + 1, here, there), 1);
    CU_ASSERT(near_is_apart(n, 1, 0, KEYS) && !near_is_apart(n, 1, 0, KEYS - 1));
    CU_ASSERT(!near_is_apart(n, 1, 1, N - 1) && !near_is_apart(n, 0, 0, N - 1) && near_is_apart(n, 2, 1, KEYS));
    near_free(n);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"ties within rounding are flips, others are errors", told_apart},
        {"another number of tokens is an error", another_number},
        {"what is apart after a flip", afterwards},
        {0}};
    return tap_run("near_ties", tests);
}
