#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What shears recommend must find, by brute force from doc/recommend.md: every GPU, layout, number of replicas and cache
is simulated, with the second clock (clock.py) and the second server (simulate.py), and nothing is ruled out by
arithmetic but a layout whose weights leave no room.

    python3 tests/oracle/recommend.py tests/golden/recommend.json
"""
import json
import math
import sys

import clock
import simulate

K = {'dense_memory': 0.7, 'narrow_memory': 0.5, 'expert_memory': 0.8, 'cache_memory': 0.6, 'state_memory': 0.5,
     'decode_products': 0.4, 'decode_experts': 0.1, 'decode_attention': 0.4, 'prompt_products': 0.5,
     'prompt_experts': 0.2, 'prompt_attention': 0.4, 'vectors': 11, 'routed': 5, 'layer': 2e-4, 'experts': 1e-4,
     'latent': 3e-5, 'linear': 3e-5, 'indexed': 3e-5, 'quantised': 1e-5, 'blocks': 1e-5, 'launch': 19, 'sum': 5e-6,
     'sum_more': 7e-7, 'link': 0.5, 'step': 7e-4, 'sequence': 1e-4, 'request': 0.01, 'token': 2e-6}
CHUNK, SEQUENCES, SHARE = 1024, 256, 0.9
MASK = (1 << 64) - 1


def draw(seed, n):
    """Uniform in (0, 1): SplitMix64."""
    z = (seed + (n + 1) * 0x9e3779b97f4a7c15) & MASK
    z = ((z ^ z >> 30) * 0xbf58476d1ce4e5b9) & MASK
    z = ((z ^ z >> 27) * 0x94d049bb133111eb) & MASK
    z ^= z >> 31
    return ((z >> 11) + 0.5) * 2.0 ** -53


def uniform(low, high, n, seed):
    return math.floor(low + draw(seed, n) * (high - low + 1))


def bits(seed, n):
    z = (seed + (n + 1) * 0x9e3779b97f4a7c15) & MASK
    z = ((z ^ z >> 30) * 0xbf58476d1ce4e5b9) & MASK
    z = ((z ^ z >> 27) * 0x94d049bb133111eb) & MASK
    return z ^ z >> 31


def load(case, rate):
    """Arrivals and lengths of the requests, which do not depend on the rate."""
    now, out = 0.0, []
    prompts, outputs = bits(case['seed'], MASK), bits(case['seed'], MASK - 1)
    for i in range(case['requests']):
        now += -math.log(draw(case['seed'], i)) / rate
        out.append((now, uniform(*case['prompt'], i, prompts), uniform(*case['output'], i, outputs)))
    return out


class Replica(simulate.Server):
    """A server of several GPUs with the clock of an engine."""

    def __init__(self, case, clocked):
        super().__init__(case)
        self.clock = clocked

    def pages(self, n):
        return -(-n // 16) * 16 * self.clock.cell

    def seconds(self, work):
        c = self.clock
        w = {'decoding': 0, 'prompts': 0, 'prompt': 0, 'logits': 0, 'read': 0, 'decode_flops': 0, 'prompt_flops': 0}
        for r, n in work:
            before, after = r.cached, r.cached + n
            w['logits'] += after == r.prompt + r.answer
            if before >= r.prompt:
                w['decoding'] += n
                w['read'] += self.small(after)
                w['decode_flops'] += n * c.pair * self.kept(after)
            else:
                w['prompts'] += 1
                w['prompt'] += n
                w['read'] += self.pages(before)
                w['prompt_flops'] += c.prompt_pair * sum(range(before + 1, after + 1))
        here, logits = -(-w['decoding'] // c.dp), -(-w['logits'] // c.dp)
        ranks = max(min(c.dp, w['prompts']), 1)
        part = here / w['decoding'] if w['decoding'] else 1 / ranks
        by = 1 / max(min(c.pp, w['decoding'] + w['prompts']), 1)
        return sum(c.step({'decoding': by * here, 'prompt': by * w['prompt'] / ranks, 'logits': by * logits,
                           'all': by * (w['decoding'] + w['prompt']), 'sequences': max(here, logits),
                           'cache': by * part * w['read'], 'decode_flops': by * part * w['decode_flops'],
                           'prompt_flops': by * w['prompt_flops'] / ranks}))


def at_share(values, share):
    return sorted(values)[max(math.ceil(share * len(values) - 1e-9), 1) - 1]


def judge(case, gb, layout, budget, replicas):
    """Times at the goal, and do they hold? None: no room for the weights."""
    tp, ep, dp, pp = layout
    c = clock.Clock(case['model'], case['weights'], case['weights'], K, tp, ep, dp, pp)
    pool = gb * 1e9 * SHARE - (c.dense + c.expert + c.ends) / pp
    if pool <= 0:
        return None
    requests = load(case, case['rate'] / replicas)
    server = Replica({'requests': requests, 'pool': int(pool * pp * dp), 'step_tokens': CHUNK * dp,
                      'max_running': SEQUENCES * dp, 'budget': budget, 'headroom': 0, 'evict': 'prompt',
                      'memory': 'paged', 'page': 16}, c)
    _, ends = server.run()
    ttft, tpot = [], []
    for (arrival, prompt, output), end in zip(requests, ends):
        ttft.append(end[1] - arrival + K['request'] + K['token'] * prompt if end else math.inf)
        tpot.append(math.inf if not end else (end[2] - end[1]) / (output - 1) if output > 1 else 0)
    good = sum(a <= case['slo_ttft'] and b <= case['slo_tpot'] for a, b in zip(ttft, tpot)) / len(ttft)
    return at_share(ttft, case['goal']), at_share(tpot, case['goal']), good >= case['goal'] - 1e-12


def layouts(case):
    powers = [1, 2, 4, 8]
    for tp in powers:
        for dp in powers if case['model'] == 'moe' else [1]:
            if tp * dp <= case['machine']:
                for pp in (1, 2, 4):
                    yield tp, tp * dp if dp > 1 else 1, dp, pp


def solve(case):
    rows = []
    for b, (name, gb, gbps, link, price) in enumerate(case['boards']):
        clock.BANDWIDTH, clock.LINK = gbps * 1e9, link * 1e9 / 2
        for k, budget in enumerate([None] + case['budgets']):
            found = []
            for i, layout in enumerate(layouts(case)):
                gpus = layout[0] * layout[2] * layout[3]
                for n in range(1, case['most'] // gpus + 1):
                    at = judge(case, gb, layout, budget, n)
                    if at and at[2]:
                        margin = min(case['slo_ttft'] / at[0], case['slo_tpot'] / at[1])
                        found.append((n * gpus, -margin, i, layout, n, at))
                        break
            if found:
                gpus, _, _, layout, n, at = min(found)
                cost = price * gpus if price else math.inf
                rows.append((cost, gpus, gb * gpus, b, k, {
                    'gpu': name, 'gpus': gpus, 'replicas': n, 'tp': layout[0], 'ep': layout[1], 'dp': layout[2],
                    'pp': layout[3], 'plan': budget or 'full', 'usd_per_hour': price * gpus if price else None,
                    'ttft_s': at[0], 'tpot_s': at[1]}))
    return [r[-1] for r in sorted(rows, key=lambda r: r[:-1])]


def main():
    small, large, slow = ['small', 0.05, 2000, 400], ['large', 0.4, 3000, 400], ['slow', 0.4, 400, 64]
    tiny = ['tiny', 0.012, 2000, 400]
    base = {'weights': 'f16', 'prompt': (200, 900), 'output': (10, 60), 'requests': 60, 'seed': 3, 'goal': 0.9,
            'machine': 4, 'most': 8, 'budgets': ['0.5']}
    cases = [
        {**base, 'model': 'dense', 'rate': 60, 'slo_ttft': 0.4, 'slo_tpot': 0.02,
         'boards': [small + [None], large + [None], slow + [None]]},
        {**base, 'model': 'dense', 'rate': 150, 'slo_ttft': 0.3, 'slo_tpot': 0.012,
         'boards': [small + [1.0], large + [1.7], slow + [0.4]]},
        {**base, 'model': 'dense', 'rate': 20, 'slo_ttft': 0.5, 'slo_tpot': 0.03, 'boards': [tiny + [0.5]]},
        {**base, 'model': 'moe', 'rate': 100, 'slo_ttft': 0.4, 'slo_tpot': 0.02, 'budgets': [],
         'boards': [small + [1.0], large + [3.0]]},
        {**base, 'model': 'moe', 'weights': 'f8', 'rate': 150, 'slo_ttft': 0.3, 'slo_tpot': 0.02, 'seed': 8,
         'boards': [small + [1.0], slow + [0.7]]}]
    for case in cases:
        case['rows'] = solve(case)
        print(case['model'], case['rate'], [(r['gpu'], r['plan'], r['gpus'], r['tp'], r['dp'], r['pp'], r['replicas'])
                                            for r in case['rows']], flush=True)
        case['row'] = clock.DENSE if case['model'] == 'dense' else clock.MOE
        case['profile'] = [line.replace('\t256\t256\t', f'\t{SEQUENCES}\t{SEQUENCES}\t')
                           for line in clock.profile('vllm', K)]
        case['gpus'] = [f'{n} gb={gb} gbps={gbps} f16=500 f8=1000 f4=2000 gen=hopper link={link}' +
                        (f' price={price}' if price else '') for n, gb, gbps, link, price in case['boards']]
    with open(sys.argv[1], 'w', encoding='utf-8') as f:
        json.dump({'cases': cases}, f, indent=0)
        f.write('\n')


if __name__ == '__main__':
    main()
