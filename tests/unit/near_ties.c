/* SPDX-License-Identifier: Apache-2.0 */
/* See near_ties.h. The scores are those of planner/policy/policy.h's words, from the rows alone and in doubles. */
#include "tests/unit/near_ties.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

struct range { double low, high; };     /* where a score lies */

double near_off(int d_head, int n_key, int group, int layer)
{
    double side = 2.0 * (d_head + 2) * NEAR_LOGIT + 11 + n_key + group;
    return 2 * side * 0x1p-24 * (layer + 1);
}

struct near_ties *near_new(const struct sh_policy_spec *spec, int n_layer, int n_head, int group, int d_head,
                           int n_token)
{
    struct near_ties *n = xcalloc(1, sizeof *n);
    size_t rows = (size_t)n_layer * (size_t)n_head * (size_t)n_token;
    *n = (struct near_ties){.spec = *spec, .n_layer = n_layer, .n_head = n_head, .group = group, .d_head = d_head,
                            .n_token = n_token};
    n->score = xcalloc(rows * (size_t)n_token, sizeof *n->score);
    n->n_row = xcalloc(rows, sizeof *n->n_row);
    for (size_t i = 0; i < rows * (size_t)n_token; i++)
        n->score[i] = -1;
    return n;
}

void near_free(struct near_ties *n)
{
    if (!n)
        return;
    free(n->score);
    free(n->n_row);
    free(n);
}

static size_t row_at(const struct near_ties *n, int layer, int head, int t)
{
    return ((size_t)layer * (size_t)n->n_head + (size_t)head) * (size_t)n->n_token + (size_t)t;
}

static double score(const struct near_ties *n, int layer, int head, int t, int j)
{
    return (double)n->score[row_at(n, layer, head, t) * (size_t)n->n_token + (size_t)j];
}

void near_row(struct near_ties *n, int layer, int head, int t, const int *pos, const float *row, int n_slot, int n_row)
{
    float *to = n->score + row_at(n, layer, head, t) * (size_t)n->n_token;
    for (int j = 0; j < n->n_token; j++)
        to[j] = -1;
    for (int i = 0; i < n_slot; i++)
        if (pos[i] >= 0)
            to[pos[i]] = row[i];
    n->n_row[row_at(n, layer, head, t)] = n_row;
}

static int knob(const struct near_ties *n, const char *name)
{
    return (int)sh_policy_knob(&n->spec, name, 0);
}

static struct range by_sum(const struct near_ties *n, int layer, int head, int t, int j)
{
    enum { SUM, MEAN, FADING };
    int how = knob(n, "score"), rows = 0;
    double decay = how == FADING ? sh_policy_knob(&n->spec, "gamma", 1) : 1, sum = 0, off = 0;
    for (int i = j; i < t; i++) {
        double p = score(n, layer, head, i, j);
        if (p < 0)
            continue;
        sum = sum * decay + p;
        off = off * decay + p * near_off(n->d_head, n->n_row[row_at(n, layer, head, i)], n->group, layer) +
              4 * 0x1p-24 * sum;        /* two roundings, on two sides */
        rows++;
    }
    double by = how == MEAN && rows ? rows : 1;
    off += 4 * 0x1p-24 * sum;
    return (struct range){(sum - off) / by, (sum + off) / by};
}

/* Low rows of j among [from, t): certain ones, and those that may be. */
static struct range low_rows(const struct near_ties *n, int layer, int head, int from, int t, int j)
{
    int by_row = knob(n, "threshold") != 0;
    struct range r = {0, 0};
    for (int i = from > j ? from : j; i < t; i++) {
        double p = score(n, layer, head, i, j);
        int n_row = n->n_row[row_at(n, layer, head, i)];
        double limit = 1.0 / (by_row ? i + 1 : n_row), off = limit * near_off(n->d_head, n_row, n->group, layer);
        r.low += p >= 0 && p < limit - off;
        r.high += p >= 0 && p < limit + off;
    }
    return r;
}

static struct range by_low_rows(const struct near_ties *n, int layer, int head, int t, int j)
{
    int window = knob(n, "window"), is_rate = knob(n, "counts") == 1, seen = t - j;
    struct range r;
    if (knob(n, "counter") == 1) {      /* epochs: the running one, and what is still to count of the one before */
        int begin = t > 0 ? (t - 1) / window * window : 0;
        double still = t > window ? 1 - (double)((t - 1) % window + 1) / window : 0;
        struct range now = low_rows(n, layer, head, begin, t, j);
        struct range before = low_rows(n, layer, head, begin - window, begin, j);
        r = (struct range){now.low + still * before.low, now.high + still * before.high};
    } else {
        r = low_rows(n, layer, head, t - window, t, j);
    }
    seen = seen < 1 ? 1 : seen < window ? seen : window;
    double by = is_rate ? seen : 1;     /* of equal counts it is the same on both sides */
    return (struct range){-r.high / by, -r.low / by};
}

static struct range score_range(const struct near_ties *n, int layer, int head, int t, int j)
{
    const char *name = n->spec.policy->name;
    if (!strcmp(name, "h2o"))
        return by_sum(n, layer, head, t, j);
    if (!strcmp(name, "scissorhands") && (knob(n, "threshold") != 2 || knob(n, "counter") == 1))
        return by_low_rows(n, layer, head, t, j);
    return (struct range){j, j};
}

int near_is_apart(const struct near_ties *n, int layer, int head, int t)
{
    for (int i = 0; i < n->n_flip; i++) {
        const struct near_flip *f = &n->flip[i];
        if (t >= f->t && (layer > f->layer || (layer == f->layer && head == f->head)))
            return 1;
    }
    return 0;
}

int near_until(const struct near_ties *n)
{
    int until = n->n_token;
    for (int i = 0; i < n->n_flip; i++)
        until = n->flip[i].t < until ? n->flip[i].t : until;
    return until;
}

/* Equal scores are no flip: of these the older token leaves, whoever computes. They are exact only where nothing is
 * rounded, so of ranges that are points. */
static int may_change_places(struct range a, struct range b)
{
    int are_points = a.low == a.high && b.low == b.high;
    return !are_points && a.low <= b.high && b.low <= a.high;
}

int near_judge(struct near_ties *n, int layer, int head, int t, const unsigned char *expected,
               const unsigned char *found)
{
    int more = 0, less = 0, bad = 0;
    if (near_is_apart(n, layer, head, t) || !memcmp(expected, found, (size_t)t))
        return 1;
    for (int x = 0; x < t; x++) {
        more += found[x] && !expected[x];
        less += expected[x] && !found[x];
        for (int y = 0; y < t && expected[x] && !found[x]; y++)
            if (found[y] && !expected[y])
                bad |= !may_change_places(score_range(n, layer, head, t, x), score_range(n, layer, head, t, y));
    }
    if (bad || more != less || n->n_flip == NEAR_MOST_FLIPS)
        return 0;
    n->flip[n->n_flip++] = (struct near_flip){layer, head, t};
    return 1;
}
