/* SPDX-License-Identifier: Apache-2.0 */
/* src/engine/sampler.h: who may be drawn, and how often. */
#include <math.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/base/rng.h"
#include "src/engine/sampler.h"
#include "tests/tap.h"

enum { N = 10, DRAWS = 20000 };

static struct sh_err e;
static struct sh_choice room[1 << 12];

static const float ten[N] = {0.5f, 2, -1, 2, 0, 1.5f, 1.5f, -INFINITY, 3, 1};

static int count(const struct sh_sampler *s)
{
    return sh_sampler_choices(s, ten, N, room, &e);
}

/* Pearson's statistic of draws with seeds 0, 1, … against the shares that the definition gives; above
 * 33.7 for 9 degrees of freedom or fewer happens by chance once in 10,000. */
static double chi_square(struct sh_sampler s, const double *p)
{
    int seen[N] = {0};
    double sum = 0;
    for (int i = 0; i < DRAWS; i++) {
        s.seed = (uint64_t)i;
        int32_t token = sh_sampler_pick(&s, ten, N, (uint64_t)(i % 3), room, &e);
        CU_ASSERT_FATAL(token >= 0 && token < N);
        seen[token]++;
    }
    for (int i = 0; i < N; i++) {
        double wanted = p[i] * DRAWS;
        if (p[i] > 0)
            sum += (seen[i] - wanted) * (seen[i] - wanted) / wanted;
        else
            CU_ASSERT_EQUAL(seen[i], 0);
    }
    return sum;
}

/* Softmax of the logits in `of` (a bit a token) at a temperature. */
static void shares(double *p, unsigned of, double temperature)
{
    double total = 0;
    for (int i = 0; i < N; i++)
        total += p[i] = of >> i & 1 ? exp((double)ten[i] / temperature) : 0;
    for (int i = 0; i < N; i++)
        p[i] /= total;
}

static void greedy(void)
{
    struct sh_sampler s = {.temperature = 0, .top_p = 1, .seed = 5};
    static const float tie[4] = {1, 7, 7, 2};
    CU_ASSERT_EQUAL(sh_sampler_pick(&s, ten, N, 0, room, &e), 8);
    CU_ASSERT_EQUAL(sh_sampler_pick(&s, tie, 4, 0, room, &e), 1);
    CU_ASSERT_EQUAL(sh_sampler_best(tie, 4, &e), 1);
}

static void draws_as_softmax_says(void)
{
    static const double temperature[] = {0.5, 1, 2};
    double p[N];
    for (int i = 0; i < 3; i++) {
        shares(p, 0x3ff, temperature[i]);
        CU_ASSERT(chi_square((struct sh_sampler){.temperature = temperature[i], .top_p = 1}, p) < 33.7);
    }
}

/* By size: 8 (3), 1 and 3 (2), 5 and 6 (1.5), 9 (1), 0 (0.5), 4 (0), 2 (-1), 7 (none). */
static void top_k_is_exact(void)
{
    static const int order[N] = {8, 1, 3, 5, 6, 9, 0, 4, 2, 7};
    double p[N];
    unsigned of = 0;
    for (int k = 1; k < N; k++) {
        struct sh_sampler s = {.temperature = 1, .top_k = k, .top_p = 1};
        double sum = 0;
        CU_ASSERT_EQUAL(count(&s), k);
        for (int i = 0; i < k; i++) {
            CU_ASSERT_EQUAL(room[i].token, order[i]);
            sum += room[i].p;
        }
        CU_ASSERT_DOUBLE_EQUAL(sum, 1, 1e-12);
        of |= 1u << order[k - 1];
        shares(p, of, 1);
        CU_ASSERT(chi_square(s, p) < 33.7);
    }
    CU_ASSERT_EQUAL(count(&(struct sh_sampler){.temperature = 1, .top_k = 100, .top_p = 1}), N);
}

/* The fewest tokens from the top that reach the share; a bit more, and one more is needed. */
static void top_p_is_exact(void)
{
    static const int order[N - 1] = {8, 1, 3, 5, 6, 9, 0, 4, 2};
    double p[N], reached = 0;
    shares(p, 0x3ff, 1);
    for (int n = 1; n < N - 1; n++) {
        reached += p[order[n - 1]];
        CU_ASSERT_EQUAL(count(&(struct sh_sampler){.temperature = 1, .top_p = reached - 1e-9}), n);
        for (int i = 0; i < n; i++)
            CU_ASSERT_EQUAL(room[i].token, order[i]);
        CU_ASSERT_EQUAL(count(&(struct sh_sampler){.temperature = 1, .top_p = reached + 1e-9}), n + 1);
    }
    double q[N];
    shares(q, 1u << 8 | 1u << 1 | 1u << 3, 1);
    CU_ASSERT(chi_square((struct sh_sampler){.temperature = 1, .top_p = p[8] + p[1] + 0.01}, q) < 33.7);
}

/* The share is one of what top_k left: 8, 1 and 3 of the three largest. */
static void top_p_counts_what_top_k_left(void)
{
    double p[N];
    shares(p, 1u << 8 | 1u << 1 | 1u << 3, 1);
    CU_ASSERT_EQUAL(count(&(struct sh_sampler){.temperature = 1, .top_k = 3, .top_p = p[8] - 1e-9}), 1);
    CU_ASSERT_EQUAL(count(&(struct sh_sampler){.temperature = 1, .top_k = 3, .top_p = p[8] + 1e-9}), 2);
    CU_ASSERT_EQUAL(count(&(struct sh_sampler){.temperature = 1, .top_k = 3, .top_p = p[8] + p[1] + 1e-9}), 3);
}

static int by_size(const void *a, const void *b)
{
    const struct sh_choice *x = a, *y = b;
    if (x->logit != y->logit)
        return x->logit < y->logit ? 1 : -1;
    return x->token - y->token;
}

/* A large vocabulary of few different logits, against a sort. */
static void many_ties(void)
{
    enum { V = 3000 };
    float *logits = xmalloc(V * sizeof *logits);
    struct sh_choice *sorted = xcalloc(V, sizeof *sorted);
    for (int i = 0; i < V; i++) {
        logits[i] = (float)(sh_rng(3, (uint64_t)i) % 17);
        sorted[i] = (struct sh_choice){logits[i], i, 0};
    }
    qsort(sorted, V, sizeof *sorted, by_size);
    for (int k = 1; k < V; k += 101) {
        int wrong = 0, n = sh_sampler_choices(&(struct sh_sampler){.temperature = 1, .top_k = k, .top_p = 1}, logits, V,
                                              room, &e);
        CU_ASSERT_EQUAL_FATAL(n, k);
        for (int i = 0; i < n; i++)
            wrong += room[i].token != sorted[i].token;
        CU_ASSERT_EQUAL(wrong, 0);
    }
    free(logits);
    free(sorted);
}

static void the_same_seed_draws_the_same(void)
{
    struct sh_sampler a = {.temperature = 1, .top_p = 1, .seed = 9}, b = a;
    int differ = 0;
    b.seed = 10;
    for (uint64_t n = 0; n < 200; n++) {
        int32_t token = sh_sampler_pick(&a, ten, N, n, room, &e);
        CU_ASSERT_EQUAL(token, sh_sampler_pick(&a, ten, N, n, room, &e));
        differ += token != sh_sampler_pick(&b, ten, N, n, room, &e);
    }
    CU_ASSERT(differ > 50);
}

/* What would overflow exp, and what has no distribution. */
static void extremes(void)
{
    static const float wide[3] = {-3e38f, 3e38f, 0}, nan[3] = {0, NAN, 1}, inf[2] = {0, INFINITY},
                       none[2] = {-INFINITY, -INFINITY};
    struct sh_sampler s = {.temperature = 1e-3, .top_p = 1};
    CU_ASSERT_EQUAL(sh_sampler_pick(&s, wide, 3, 0, room, &e), 1);
    s.temperature = 1;
    CU_ASSERT_EQUAL(sh_sampler_pick(&s, nan, 3, 0, room, &e), -1);
    CU_ASSERT_STRING_EQUAL(e.text, "the logit of token 1 is not a number");
    CU_ASSERT_EQUAL(sh_sampler_pick(&s, inf, 2, 0, room, &e), -1);
    CU_ASSERT_EQUAL(sh_sampler_pick(&s, none, 2, 0, room, &e), -1);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"temperature 0: the likeliest, the first of equal ones", greedy},
        {"temperature: shares of softmax", draws_as_softmax_says},
        {"top-k: exactly the k largest", top_k_is_exact},
        {"top-p: exactly as many as it takes", top_p_is_exact},
        {"top-p is a share of what top-k left", top_p_counts_what_top_k_left},
        {"many equal logits: cuts as a sort makes them", many_ties},
        {"the same seed draws the same", the_same_seed_draws_the_same},
        {"extreme logits, and none at all", extremes},
        {0}};
    return tap_run("sampler", tests);
}
