/* SPDX-License-Identifier: Apache-2.0 */
/* See sampler.h. A cut takes from a heap only what stays, so a large vocabulary is never sorted. */
#include "src/engine/sampler.h"

#include <math.h>

#include "src/base/clones.h"
#include "src/base/rng.h"

int32_t sh_sampler_check(int32_t token, float logit, struct sh_err *e)
{
    if (!(logit < INFINITY))
        return sh_fail(e, "the logit of token %d is %s", token, isnan(logit) ? "not a number" : "infinite");
    return isinf(logit) ? sh_fail(e, "no token has a finite logit") : token;
}

/* The greatest; *odd: some are NaN or infinitely large. */
SH_CLONES static float greatest(const float *x, int n, int *odd)
{
    enum { LANES = 16 };
    float most[LANES], top;
    int bad[LANES] = {0}, any = 0, i;
    for (int k = 0; k < LANES; k++)
        most[k] = -INFINITY;
    for (i = 0; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) {
            bad[k] |= !(x[i + k] < INFINITY);
            most[k] = x[i + k] > most[k] ? x[i + k] : most[k];
        }
    for (top = most[0]; i < n; i++) {
        any |= !(x[i] < INFINITY);
        top = x[i] > top ? x[i] : top;
    }
    for (int k = 0; k < LANES; k++) {
        any |= bad[k];
        top = most[k] > top ? most[k] : top;
    }
    *odd = any;
    return top;
}

int32_t sh_sampler_best(const float *logits, int n_vocab, struct sh_err *e)
{
    int odd;
    float most = greatest(logits, n_vocab, &odd);
    int32_t at = 0;
    while (at < n_vocab - 1 && (odd ? logits[at] < INFINITY : logits[at] != most))
        at++;
    return sh_sampler_check(at, logits[at], e);
}

static int comes_first(const struct sh_choice *a, const struct sh_choice *b)
{
    return a->logit > b->logit || (a->logit == b->logit && a->token < b->token);
}

static void sink(struct sh_choice *heap, int n, int at)
{
    for (int child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && comes_first(&heap[child + 1], &heap[child]);
        if (!comes_first(&heap[child], &heap[at]))
            return;
        struct sh_choice c = heap[at];
        heap[at] = heap[child];
        heap[child] = c;
    }
}

/* Takes the first of heap[0 .. n) and moves it after the others, to heap[n - 1]. */
static void take_first(struct sh_choice *heap, int n)
{
    struct sh_choice c = heap[0];
    heap[0] = heap[n - 1];
    heap[n - 1] = c;
    sink(heap, n - 1, 0);
}

static double weigh(struct sh_choice *c, int n)
{
    double total = 0;
    for (int i = 0; i < n; i++)
        total += c[i].p;
    return total;
}

/* Cuts the n choices, whose p are weights that need not sum to 1: from the first down, at most `most` of
 * them, then as many as it takes to reach the share top_p of those. What stays is moved to the front. */
static int cut(struct sh_choice *c, int n, int most, double top_p)
{
    int taken = 0, stay = 0;
    double total = most < n ? 0 : weigh(c, n), sum = 0;
    for (int i = n / 2 - 1; i >= 0; i--)
        sink(c, n, i);
    if (most < n)
        for (; taken < most; taken++) {
            take_first(c, n - taken);
            total += c[n - 1 - taken].p;
        }
    for (; stay < most && (!stay || sum < top_p * total); stay++) {
        if (stay == taken)
            take_first(c, n - taken++);
        sum += c[n - 1 - stay].p;
    }
    for (int i = 0; i < n / 2; i++) {           /* they stand at the end, the first one last */
        struct sh_choice other = c[i];
        c[i] = c[n - 1 - i];
        c[n - 1 - i] = other;
    }
    return stay;
}

int sh_sampler_choices(const struct sh_sampler *s, const float *logits, int n_vocab, struct sh_choice *out,
                       struct sh_err *e)
{
    int32_t best = sh_sampler_best(logits, n_vocab, e);
    int n = n_vocab;
    if (best < 0)
        return -1;
    if (s->temperature <= 0) {
        out[0] = (struct sh_choice){logits[best], best, 1};
        return 1;
    }
    for (int32_t i = 0; i < n_vocab; i++)
        out[i] = (struct sh_choice){logits[i], i,
                                    exp(((double)logits[i] - (double)logits[best]) / s->temperature)};
    int most = s->top_k > 0 && s->top_k < n ? s->top_k : n;
    if (most < n || s->top_p < 1)
        n = cut(out, n, most, s->top_p);
    double total = weigh(out, n);
    for (int i = 0; i < n; i++)
        out[i].p /= total;
    return n;
}

int32_t sh_sampler_pick(const struct sh_sampler *s, const float *logits, int n_vocab, uint64_t n,
                        struct sh_choice *room, struct sh_err *e)
{
    int n_choice = sh_sampler_choices(s, logits, n_vocab, room, e), last = 0;
    if (n_choice < 0)
        return -1;
    double at = n_choice > 1 ? sh_rng_uniform(s->seed, n) : 0, sum = 0;
    for (int i = 0; i < n_choice; i++) {
        if (!(room[i].p > 0))
            continue;
        last = i;                               /* sums of rounded shares may end just below 1 */
        if ((sum += room[i].p) > at)
            break;
    }
    return room[last].token;
}
