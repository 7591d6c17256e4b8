/* SPDX-License-Identifier: Apache-2.0 */
/* See workload.h. */
#include "planner/simulate/workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/read_number.h"
#include "src/base/rng.h"

enum { HALF = SH_REQUEST_TOKENS / 2 };

/* A number that ends where `stop` says. */
static int number(const char **at, char stop, double max, double *out)
{
    char *point;
    if (**at < '0' || **at > '9')
        return -1;
    long long whole = 0;
    const char *end = sh_whole(*at, &whole);
    *out = strtod(*at, &point);
    if (end > point)                    /* 8k, 1.5k */
        *out = (double)whole;
    else
        end = point;
    if (*end != stop || !(*out <= max))
        return -1;
    *at = stop ? end + 1 : end;
    return 0;
}

int sh_lengths_parse(const char *option, const char *text, struct sh_lengths *out, struct sh_err *e)
{
    const char *at = text;
    struct sh_lengths l = {SH_SPREAD_FIXED, 0, 0};
    int bad;
    if (!strncmp(text, "exp:", 4)) {
        at += 4;
        l.spread = SH_SPREAD_EXPONENTIAL;
        bad = number(&at, '\0', HALF, &l.low);
    } else if (!strncmp(text, "lognormal:", 10)) {
        at += 10;
        l.spread = SH_SPREAD_LOGNORMAL;
        bad = number(&at, ':', HALF, &l.low) || number(&at, '\0', 5, &l.high);
    } else if (strchr(text, '-')) {
        l.spread = SH_SPREAD_UNIFORM;
        bad = number(&at, '-', HALF, &l.low) || number(&at, '\0', HALF, &l.high) || l.high < l.low;
    } else {
        bad = number(&at, '\0', HALF, &l.low);
    }
    int is_whole = l.spread == SH_SPREAD_FIXED || l.spread == SH_SPREAD_UNIFORM;
    if (bad || l.low < 1 || (is_whole && (l.low != floor(l.low) || l.high != floor(l.high))))
        return sh_misused(e, "%s: found \"%.60s\", expected a number of tokens up to %d, such as 512, 100-900 (least "
                          "first), exp:512 or lognormal:512:0.8", option, text, HALF);
    *out = l;
    return 0;
}

static uint32_t sample(const struct sh_lengths *l, uint64_t seed, uint64_t n)
{
    double x = l->low, u = sh_rng_uniform(seed, n);
    if (l->spread == SH_SPREAD_UNIFORM)
        x = floor(l->low + u * (l->high - l->low + 1));
    else if (l->spread == SH_SPREAD_EXPONENTIAL)
        x = ceil(-l->low * log(u));
    else if (l->spread == SH_SPREAD_LOGNORMAL)
        x = ceil(l->low * exp(l->high * sh_rng_normal(seed, n) - l->high * l->high / 2));
    return x < 1 ? 1 : x > HALF ? HALF : (uint32_t)x;
}

/* A text of its own for each prompt, after that of the prefix it shares. */
static void name_text(struct sh_workload_random *w, const struct sh_request *q)
{
    uint64_t seed = sh_rng(w->seed, UINT64_MAX - 2), prefix = sh_rng(seed, w->at) % (w->prefixes ? w->prefixes : 1);
    uint32_t tokens = q->prompt + q->output - 1, shared = w->prefix_tokens < q->prompt ? w->prefix_tokens : q->prompt;
    w->keys.n = 0;
    if (w->prefixes)
        sh_keys_text(&w->keys, w->base.block, sh_rng(seed, prefix), shared);
    sh_keys_text(&w->keys, w->base.block, sh_rng(sh_rng(w->seed, UINT64_MAX - 3), w->at), tokens);
    w->base.key = w->keys.at;
    w->base.n_key = w->keys.n;
}

static int next(struct sh_workload *base, struct sh_request *out, struct sh_err *e)
{
    struct sh_workload_random *w = (struct sh_workload_random *)base;
    (void)e;
    if (w->at == w->requests)
        return 0;
    w->now += -log(sh_rng_uniform(w->seed, w->at)) / w->rate;
    *out = (struct sh_request){w->now, sample(&w->prompt, sh_rng(w->seed, UINT64_MAX), w->at),
                               sample(&w->output, sh_rng(w->seed, UINT64_MAX - 1), w->at)};
    if (w->base.block)
        name_text(w, out);
    w->at++;
    return 1;
}

void sh_workload_random(struct sh_workload_random *w, double rate, uint64_t requests, uint64_t seed)
{
    w->base.next = next;
    w->rate = rate;
    w->requests = requests;
    w->seed = seed;
    w->at = 0;
    w->now = 0;
}
