#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A second clock and a second closed loop, from their descriptions (planner/clock/step_time.h, planner/simulate/
closed_loop.h), token by token and sequence by sequence, for small models whose tensors are counted here by hand.

    python3 tests/oracle/clock.py tests/golden/clock.json
"""
import heapq
import json
import math
import random
import sys

CONSTANTS = ('dense_memory narrow_memory expert_memory cache_memory state_memory decode_products decode_experts '
             'decode_attention prompt_products prompt_experts prompt_attention vectors routed layer experts latent linear '
             'indexed quantised blocks launch sum sum_more link step sequence request token').split()
SHARES = {'dense_memory', 'narrow_memory', 'expert_memory', 'cache_memory', 'state_memory', 'decode_products',
          'decode_experts', 'decode_attention', 'prompt_products', 'prompt_experts', 'prompt_attention', 'link'}
SECONDS = {'step': 2e-4, 'sequence': 3e-6, 'request': 4e-3, 'token': 1e-6, 'sum': 4e-6, 'sum_more': 6e-7}
GPU = 'toy gb=80 gbps=2000 f16=500 f8=1000 f4=2000 gen=hopper link=400'
BANDWIDTH, PEAK, LINK = 2000e9, {'f16': 500e12, 'f8': 1000e12, 'nvfp4': 2000e12}, 200e9
BITS = {'f16': 16, 'f8': 8, 'nvfp4': 4.5}

DENSE = 'dense layers=4 hidden=512 heads=8 kv_heads=4 head_dim=64 ffn=1024 vocab=1000 max_pos=65536 gated'
MOE = ('moe layers=4 hidden=512 heads=8 kv_heads=4 head_dim=64 vocab=1000 max_pos=65536 gated experts=16 used=2 '
       'expert_ffn=256')
LATENT = ('latent layers=4 hidden=512 heads=8 kv_heads=8 ffn=1024 vocab=1000 max_pos=65536 gated experts=16 used=2 '
          'expert_ffn=256 latent=128 rope_dim=32 nope_dim=64 v_dim=64 dense_first=1 shared_ffn=256 q_latent=192')


class Clock:
    """A model on GPUs: what a step costs one of them."""

    def __init__(self, model, weights, attention, k, tp, ep, dp, pp):
        self.k, self.tp, self.dp, self.pp, self.model = k, tp, dp, pp, model
        h, d, layers, vocab = 512, 64, 4, 1000
        moe = {'dense': 0, 'moe': 4, 'latent': 3}[model]
        gpus = tp * dp
        self.latent = model == 'latent'
        if self.latent:
            mix = 192 * h + 8 * 96 * 192 + (128 + 32) * h + 8 * (64 + 64) * 128 + h * 8 * 64
            norms = 2 * h + 192 + 128
        else:
            mix, norms = h * 8 * d + 2 * h * 4 * d + h * 8 * d, 2 * h
        feed = 3 * h * 1024 * (layers - moe)
        shared = 3 * h * 256 * moe if self.latent else 0
        router = 16 * h * moe
        expert = 16 * 3 * h * 256 * moe
        size = lambda n, t: n * BITS[t] / 8
        self.narrow = ((size(mix * layers, attention) if attention == 'nvfp4' else 0) +
                       (size(feed + shared, weights) if weights == 'nvfp4' else 0)) / tp
        self.dense = (size(mix * layers, attention) + size(feed + shared, weights) + 2 * router +
                      2 * norms * layers) / tp
        self.expert = size(expert, weights) / gpus
        self.head = 2 * vocab * h / tp
        self.ends = self.head + 2 * vocab * h / tp + 2 * h / tp
        self.dense_s = 2 * (mix * layers / PEAK[attention] + (feed + shared) / PEAK[weights] +
                            router / PEAK['f16']) / tp
        self.expert_s = 2 * expert * (2 / 16) / PEAK[weights] / gpus
        self.head_s = 2 * vocab * h / PEAK['f16'] / tp
        self.share = 2 / 16 if moe else 0
        self.layer_s = layers * (k['layer'] + (k['latent'] if self.latent else 0) +
                                 (k['blocks'] if moe and weights == 'f8' else 0) +
                                 (k['quantised'] if attention != 'f16' else 0)) + moe * k['experts']
        self.moved = 2 * h * layers * (1 + k['vectors'] / tp) + moe * 2 * h * 2 * k['routed'] / tp
        self.sum_s = self.ring = 0
        for i in range(layers):
            apart = gpus if i >= layers - moe else tp
            if tp > 1:
                self.sum_s += k['sum'] + k['sum_more'] * (tp - 2)
                self.ring += 2 * (tp - 1) / tp * 2 * h
            if apart > 1:
                self.sum_s += k['sum'] + k['sum_more'] * (apart - 2)
                self.ring += 2 * (apart - 1) / apart * 2 * h * (dp if apart > tp else 1)
        self.lora, self.lora_all = 0, 0
        self.cell = layers * ((128 + 32) * 2 if self.latent else max(1, -(-4 // tp)) * 2 * d * 2)
        self.pair = layers * (2 * 8 * (2 * 128 + 32) if self.latent else 4 * 8 * d) / tp
        self.prompt_pair = layers * (2 * 8 * (96 + 64) if self.latent else 4 * 8 * d) / tp

    def add_adapters(self, n, rank):
        """n places; of q, k, v, o, and of gate, up and down where the block is dense."""
        h, layers, tp = 512, 4, self.tp
        q, kv, feed = -(-8 // tp) * 64, max(1, -(-4 // tp)) * 64, 1024 // tp
        one = (h + q) + 2 * (h + kv) + (q + h) + (3 * (h + feed) if self.model == 'dense' else 0)
        self.lora, self.lora_all = rank * one * layers, n

    def step(self, w):
        k = self.k
        tokens = w['decoding'] + w['prompt']
        touched = 1 - (1 - self.share) ** w['all'] if self.share else 0
        part = w['decoding'] / tokens
        plain = self.dense - self.narrow + (self.head if w['logits'] else 0)
        lora_s = 2 * self.lora / PEAK['f16']
        if self.lora:
            plain += 2 * self.lora * self.lora_all * (1 - (1 - 1 / self.lora_all) ** min(w['sequences'], tokens))
        t = [math.hypot((plain / k['dense_memory'] + self.narrow / k['narrow_memory']) / BANDWIDTH,
                        (w['decoding'] * (self.dense_s + lora_s) + w['logits'] * self.head_s) / k['decode_products'] +
                        w['prompt'] * (self.dense_s + lora_s) / k['prompt_products']),
             math.hypot(self.expert * touched / k['expert_memory'] / BANDWIDTH,
                        w['all'] * self.expert_s * (part / k['decode_experts'] + (1 - part) / k['prompt_experts'])),
             math.hypot(w['cache'] / k['cache_memory'] / BANDWIDTH,
                        w['decode_flops'] / k['decode_attention'] / PEAK['f16']) +
             w['prompt_flops'] / k['prompt_attention'] / PEAK['f16'],
             0.0, tokens * self.moved / BANDWIDTH]
        busy = sum(t)
        t.append(math.hypot(busy, k['launch'] * self.layer_s) - busy if w['prompt'] else self.layer_s)
        ring = tokens * self.ring / k['link'] / LINK
        gpus = self.tp * self.dp
        t.append(min(self.sum_s + ring * gpus / 2, 1.5 * self.sum_s + ring) if self.ring else 0.0)
        t.append(k['step'] + k['sequence'] * w['sequences'])
        return t


def loop(clock, engine, clients, requests, prompt, output, chunk, draft=0, accept=0.0):
    """Mean TTFT and TPOT; one rank, room for all, fixed lengths. draft: tokens proposed for each sequence in a decoding
    step, the k-th of which is accepted with probability accept^k."""
    gained = 1 + sum(accept ** k for k in range(1, draft + 1))
    now, sent, k = 0.0, 0, clock.k
    wait, reading, running, ttft, tpot = [], [], [], [], []

    def send():
        nonlocal sent
        if sent < requests:
            sent += 1
            wait.append({'sent': now, 'ready': now + k['request'] + k['token'] * prompt, 'read': 0, 'made': 0})
    for _ in range(clients):
        send()
    while wait or reading or running:
        if not reading and not running:
            now = max(now, wait[0]['ready'])
        seen = [q for q in wait if q['ready'] <= now + 1e-12]
        decodes = len(running) * (draft + 1) if engine != 'sglang' else 0
        room, parts = chunk - decodes, []
        for q in reading + seen:
            n = min(prompt - q['read'], room)
            if n < 1 or (engine == 'trtllm' and q in seen and prompt <= chunk and prompt > room):
                break
            parts.append((q, n))
            room -= n
        w = {'decoding': 0, 'prompt': sum(n for _, n in parts), 'cache': 0, 'decode_flops': 0, 'prompt_flops': 0,
             'logits': 0, 'sequences': len(parts)}
        for q, n in parts:
            if q in wait:
                wait.remove(q)
                reading.append(q)
            a, b = q['read'], q['read'] + n
            w['prompt_flops'] += clock.prompt_pair * (b * (b + 1) - a * (a + 1)) / 2
            w['cache'] += clock.cell * a
            q['read'] = b
            w['logits'] += b == prompt
        if not parts or decodes:
            for q in running:
                n = prompt + q['made']
                w['decoding'] += draft + 1
                w['logits'] += draft + 1
                w['sequences'] += 1
                w['cache'] += clock.cell * n
                w['decode_flops'] += clock.pair * n * (draft + 1)
            if draft:
                b, n = len(running), sum(prompt + q['made'] for q in running)
                one = {'decoding': b, 'prompt': 0, 'logits': b, 'sequences': b, 'cache': clock.cell * n,
                       'decode_flops': clock.pair * n, 'prompt_flops': 0, 'all': b}
                now += draft * sum(clock.step(one)) / 4 if b else 0
        w['all'] = w['decoding'] + w['prompt']
        now += sum(clock.step(w))
        if w['decoding']:
            for q in running[:]:
                q['made'] += gained
                if q['made'] >= output - 1e-9:
                    running.remove(q)
                    tpot.append((now - q['first']) / (output - 1))
                    send()
        for q in reading[:]:
            if q['read'] == prompt:
                reading.remove(q)
                q['first'], q['made'] = now, 1
                ttft.append(now - q['sent'])
                running.append(q)
    return sum(ttft) / len(ttft), sum(tpot) / len(tpot)


def split(read, write, readers, writers, clients, requests, prompt, output, chunk, bandwidth):
    """Mean TTFT and TPOT where prompts are read on some workers and answers decoded on others, step by step."""
    k, now, sent, ttft, tpot, order = read.k, 0.0, 0, [], [], 0
    queue, idle, link, events = [], set(range(readers)), [0.0] * readers, []
    wait, running, busy = [[] for _ in range(writers)], [[] for _ in range(writers)], [False] * writers

    def send():
        nonlocal sent
        if sent < requests:
            sent += 1
            queue.append({'sent': now, 'ready': now + k['request'] + k['token'] * prompt})

    def happens(at, kind, worker, what=None):
        nonlocal order
        order += 1
        heapq.heappush(events, (at, kind, order, worker, what))

    def read_s(n):
        if n > 1 or prompt <= chunk:
            parts = [(n * prompt, 0, n * prompt * (prompt + 1) / 2, n)]
        else:
            parts = [(min(chunk, prompt - a), a, 0, 0) for a in range(0, prompt, chunk)]
            parts = [(m, a, ((a + m) * (a + m + 1) - a * (a + 1)) / 2, a + m == prompt) for m, a, _, _ in parts]
        return sum(sum(read.step({'decoding': 0, 'prompt': m, 'all': m, 'logits': last, 'sequences': n,
                                  'cache': read.cell * a, 'decode_flops': 0, 'prompt_flops': read.prompt_pair * pairs}))
                   for m, a, pairs, last in parts)

    def step(w):
        running[w] += wait[w]
        wait[w] = []
        busy[w] = bool(running[w])
        if busy[w]:
            b, n = len(running[w]), sum(prompt + q['made'] for q in running[w])
            happens(now + sum(write.step({'decoding': b, 'prompt': 0, 'logits': b, 'all': b, 'sequences': b,
                                          'cache': write.cell * n, 'decode_flops': write.pair * n,
                                          'prompt_flops': 0})), 2, w)

    for _ in range(clients):
        send()
    while queue or events:
        for r in sorted(idle):
            batch = [q for q in queue if q['ready'] <= now][:max(1, chunk // prompt)]
            if batch:
                idle.remove(r)
                del queue[:len(batch)]
                happens(now + read_s(len(batch)), 0, r, batch)
        wake = min((q['ready'] for q in queue), default=math.inf) if idle else math.inf
        if not events or wake < events[0][0]:
            now = wake
            continue
        now, kind, _, worker, what = heapq.heappop(events)
        if kind == 0:
            idle.add(worker)
            for q in what:
                ttft.append(now - q['sent'])
                link[worker] = max(link[worker], now) + read.cell * prompt / bandwidth
                q.update(first=now, made=1)
                happens(link[worker], 1, worker, q)
        elif kind == 1:
            w = min(range(writers), key=lambda i: (len(running[i]) + len(wait[i]), i))
            wait[w].append(what)
            if not busy[w]:
                step(w)
        else:
            for q in running[worker]:
                q['made'] += 1
            for q in [q for q in running[worker] if q['made'] == output]:
                running[worker].remove(q)
                tpot.append((now - q['first']) / (output - 1))
                send()
            step(worker)
    return sum(ttft) / len(ttft), sum(tpot) / len(tpot)


def profile(engine, k):
    rows = [f'engine\t{engine}', 'release\ttest', 'fitted\tby nobody']
    rows += [f'rule\t{r}\t{x}\t{x}\t-\t-' for r, x in (('chunk', 1024), ('sequences', 256), ('memory', 0.9), ('poll', 1),
                                                       ('poll_busy', 1))]
    return rows + [f'constant\t{n}\t{k[n]!r}\t{k[n]!r}\t-\t-' for n in CONSTANTS]


def main():
    rng = random.Random(7)
    steps, loops, drafts, splits, adapters = [], [], [], [], []
    for model, row in (('dense', DENSE), ('moe', MOE), ('latent', LATENT)):
        for weights, attention, tp, ep, dp in (('f16', 'f16', 1, 1, 1), ('f8', 'f8', 2, 1, 1), ('nvfp4', 'f16', 4, 2, 1),
                                               ('nvfp4', 'nvfp4', 2, 2, 2)):
            ep, dp = (ep, dp) if model != 'dense' else (1, 1)
            k = {n: rng.uniform(0.2, 0.9) if n in SHARES else SECONDS.get(n, 5e-6) * rng.uniform(0.5, 2)
                 for n in CONSTANTS}
            k.update(vectors=rng.uniform(5, 20), routed=rng.uniform(1, 9), launch=rng.uniform(5, 20))
            clock = Clock(model, weights, attention, k, tp, ep, dp, 1)
            case = {'model': row, 'gpu': GPU, 'weights': weights, 'attention': attention, 'tp': tp, 'ep': ep, 'dp': dp}
            for decoding, prompt in ((3, 0), (0, 700), (5, 300)):
                w = {'decoding': decoding, 'prompt': prompt, 'logits': decoding + (prompt > 0),
                     'all': (decoding + prompt) * dp, 'sequences': decoding + 1, 'cache': rng.uniform(1e5, 1e7),
                     'decode_flops': rng.uniform(1e6, 1e9) if decoding else 0,
                     'prompt_flops': rng.uniform(1e8, 1e10) if prompt else 0}
                steps.append({**case, 'profile': profile('vllm', k), 'work': w, 'terms': clock.step(w)})
            if dp == 1:
                for engine in ('vllm', 'sglang', 'trtllm'):
                    for clients, requests, p, o, chunk in ((1, 3, 300, 40, 1024), (4, 20, 500, 60, 1024),
                                                           (6, 18, 1500, 20, 1024)):
                        first, each = loop(clock, engine, clients, requests, p, o, chunk)
                        loops.append({**case, 'profile': profile(engine, k), 'clients': clients, 'requests': requests,
                                      'prompt': p, 'output': o, 'chunk': chunk, 'ttft_s': first, 'tpot_s': each})
    for n, (draft, accept) in enumerate(((1, 0.8), (3, 0.6), (2, 1.0))):
        case = loops[30 * n + 7 * n]
        model = {DENSE: 'dense', MOE: 'moe', LATENT: 'latent'}[case['model']]
        k = {r.split('\t')[1]: float(r.split('\t')[2]) for r in case['profile'] if r.startswith('constant')}
        clock = Clock(model, case['weights'], case['attention'], k, case['tp'], case['ep'], case['dp'], 1)
        for engine in ('vllm', 'sglang', 'trtllm'):
            for clients, requests, p, o, chunk in ((1, 3, 300, 40, 1024), (4, 20, 500, 61, 1024)):
                first, each = loop(clock, engine, clients, requests, p, o, chunk, draft, accept)
                drafts.append({**case, 'profile': profile(engine, k), 'clients': clients, 'requests': requests,
                               'prompt': p, 'output': o, 'chunk': chunk, 'draft': draft, 'accept': accept,
                               'ttft_s': first, 'tpot_s': each})
    for n, (tp, read_tp, readers, writers, bandwidth) in enumerate(((1, 1, 1, 1, math.inf), (1, 2, 1, 2, 1e9),
                                                                    (2, 1, 3, 1, 2e8), (1, 1, 2, 3, 5e7))):
        model, row = (('dense', DENSE), ('moe', MOE), ('latent', LATENT))[n % 3]
        k = {r.split('\t')[1]: float(r.split('\t')[2]) for r in loops[9 * n]['profile'] if r.startswith('constant')}
        read, write = (Clock(model, 'f16', 'f16', k, x, 1, 1, 1) for x in (read_tp, tp))
        for clients, requests, p, o, chunk in ((1, 3, 300, 40, 1024), (5, 30, 500, 60, 1024), (12, 60, 1500, 30, 1024),
                                               (16, 64, 200, 100, 1024)):
            first, each = split(read, write, readers, writers, clients, requests, p, o, chunk, bandwidth)
            splits.append({'model': row, 'gpu': GPU, 'weights': 'f16', 'attention': 'f16', 'tp': tp, 'ep': 1, 'dp': 1,
                           'profile': profile('vllm', k), 'clients': clients, 'requests': requests, 'prompt': p,
                           'output': o, 'chunk': chunk, 'read_tp': read_tp, 'readers': readers, 'writers': writers,
                           'bandwidth': 0 if math.isinf(bandwidth) else bandwidth, 'ttft_s': first, 'tpot_s': each})
    for model, row in (('dense', DENSE), ('moe', MOE)):
        for tp, n, rank in ((1, 1, 16), (1, 50, 64), (2, 8, 8), (8, 200, 128)):
            k = {r.split('\t')[1]: float(r.split('\t')[2]) for r in loops[n % 60]['profile'] if r.startswith('constant')}
            clock = Clock(model, 'f8', 'f16', k, tp, 1, 1, 1)
            clock.add_adapters(n, rank)
            for decoding, prompt, sequences in ((1, 0, 1), (40, 0, 40), (0, 900, 2), (30, 500, 33)):
                w = {'decoding': decoding, 'prompt': prompt, 'logits': decoding, 'all': decoding + prompt,
                     'sequences': sequences, 'cache': 1e6, 'decode_flops': 1e7 if decoding else 0,
                     'prompt_flops': 1e9 if prompt else 0}
                adapters.append({'model': row, 'gpu': GPU, 'weights': 'f8', 'attention': 'f16', 'tp': tp, 'ep': 1, 'dp': 1,
                                 'profile': profile('vllm', k), 'lora': n, 'rank': rank, 'work': w,
                                 'terms': clock.step(w)})
    with open(sys.argv[1], 'w', encoding='utf-8') as f:
        json.dump({'steps': steps, 'loops': loops, 'drafts': drafts, 'splits': splits, 'adapters': adapters}, f, indent=0)
        f.write('\n')


if __name__ == '__main__':
    main()
