/* SPDX-License-Identifier: Apache-2.0 */
/* What arithmetic says of a server before it is simulated. In the long run, at r requests/s of P and O tokens, steps of
 * mean length T decode b = r (O - 1) T sequences. A step reads prompts if a request came during the last one, so of
 * steps D long that only decode and steps M long that read prompts, too, the latter are the share
 *
 *     f = d / (1 - m + d), d = 1 - exp(-r D), m = 1 - exp(-r M), but at least r T P / chunk;
 *     D = step(b, 0), M = step(b, r T P / f), T = (1 - f) D + f M
 *
 * The server keeps up if such a T is within the limit and the cache has room for b sequences. */
#include <math.h>
#include <stdio.h>

#include "src/app/recommend/recommend.h"

enum { STEPS = 100 };                   /* of the iteration, at most                              */

int sh_screen_open(const struct sh_serving *v, const struct sh_load *load, struct sh_screen *out,
                   char why[SH_REASON])
{
    const struct sh_clock *c = &v->clock;
    struct sh_screen s = {.v = v, .load = load, .plain = v->ask};
    double gpu = v->memory - c->weight_bytes / c->layout.pp;
    if (!(gpu > 0))
        return snprintf(why, SH_REASON, "memory: the weights lack %.2f GiB on each GPU", -gpu / 0x1p30), -1;
    s.pool = gpu * c->layout.pp;
    s.plain.rule.budget = SH_BUDGET_NONE;
    double whole = (double)sh_split_cache(&s.plain, 0, load->longest_prompt).sequence;
    double need = fmax(whole, (double)sh_split_cache(&v->ask, 0, load->longest - 1).sequence);
    if (need > s.pool)
        return snprintf(why, SH_REASON, "memory: the cache of the longest request lacks %.2f GiB",
                        (need - s.pool) / 0x1p30), -1;
    double tpot = load->output > 1 ? sh_loop_decode_s(c, &v->ask, 1, (uint64_t)load->prompt, NULL) : 0;
    if (tpot > load->slo_tpot)
        return snprintf(why, SH_REASON, "TPOT: %.4g s for a request alone, limit %.4g s", tpot, load->slo_tpot), -1;
    double ttft = sh_loop_prompt_s(c, &s.plain, 0, load->prompt_at_goal, v->chunk);
    if (ttft > load->slo_ttft)
        return snprintf(why, SH_REASON, "TTFT: %.4g s for a request alone, limit %.4g s", ttft, load->slo_ttft), -1;
    s.context = sh_clock_sequence_at(&v->ask, (uint64_t)(load->prompt + load->output / 2));
    s.pairs = sh_clock_sequence_at(&s.plain, (uint64_t)load->prompt).prompt_flops / load->prompt;
    *out = s;
    return 0;
}

/* Decoding `batch` sequences and reading `tokens` of prompts, of all ranks. */
static double step(const struct sh_screen *s, double batch, double tokens)
{
    const struct sh_clock_layout *l = &s->v->clock.layout;
    double prompts = tokens / s->load->prompt, ranks = fmax(fmin(l->dp, prompts), 1), here = batch / l->dp;
    double by = l->pp > 1 ? fmax(1.0 / l->pp, 1 / fmax(batch + prompts, 1)) : 1;
    struct sh_clock_work w = {.decoding = by * here, .prompt_tokens = by * tokens / ranks,
                              .logits = by * (here + prompts / ranks), .all_tokens = by * (batch + tokens),
                              .all_sequences = here, .cache_bytes = by * here * s->context.cache_bytes,
                              .state_bytes = by * here * s->context.state_bytes,
                              .decode_flops = by * here * s->context.decode_flops,
                              .prompt_flops = by * tokens / ranks * s->pairs};
    return sh_clock_step(&s->v->clock, &w, NULL);
}

int sh_screen_serves(const struct sh_screen *s, double rate)
{
    const struct sh_load *q = s->load;
    double ranks = s->v->clock.layout.dp, chunk = s->v->chunk * ranks, t = 0, batch = 0, f = 0;
    double most = q->output > 1 ? q->slo_tpot : q->slo_ttft;
    for (int i = 0; i < STEPS && t < 4 * most; i++) {
        f = fmin(fmax(f, rate * t * q->prompt / chunk), 1);
        double tokens = fmin(fmax(f > 0 ? rate * q->prompt * t / f : 0, q->prompt), chunk);
        batch = rate * (q->output - 1) * t;
        double alone = step(s, batch, 0), mixed = step(s, batch, tokens), came = -expm1(-rate * alone);
        f = came / (exp(-rate * mixed) + came);
        double next = (1 - f) * alone + f * mixed;
        if (fabs(next - t) < 1e-3 * next)
            break;
        t = i ? (t + next) / 2 : next;  /* halfway, so as not to pass it by                       */
    }
    return t <= most && rate * q->prompt * t <= 1.01 * chunk && batch * s->context.held_bytes <= s->pool * ranks &&
           batch <= s->v->sequences * ranks;
}

double sh_screen_rate(const struct sh_screen *s)
{
    double low = 1e-9, high = 1e9;
    while (high > 1.01 * low) {
        double middle = sqrt(low * high);
        if (sh_screen_serves(s, middle))
            low = middle;
        else
            high = middle;
    }
    return low;
}
