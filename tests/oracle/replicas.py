#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that share several servers through a router, or that have prompts read on some workers and answers decoded on
others, with prefix caches, from the descriptions (planner/simulate/closed_loop.h, split_loop.h), step by step and token
by token; the clock is that of clock.py.

    python3 tests/oracle/replicas.py tests/golden/replicas.json

The events are ends of steps. Of events at one time, those of the first server come first. A server that has nothing to
do begins a step when its next request has come."""
import collections
import heapq
import json
import math
import random
import sys

from clock import CONSTANTS, DENSE, GPU, SECONDS, SHARES, Clock, profile

BLOCK = 16


class Server:
    def __init__(self, system):
        self.of, self.queue, self.reading, self.running, self.texts, self.step = system, [], [], [], set(), None

    def load(self):
        return len(self.queue) + len(self.reading) + len(self.running)

    def known(self, q):
        """Tokens of the prompt that need not be read: whole blocks from its beginning, not all of it."""
        n = 0
        while n < (q['prompt'] - 1) // BLOCK and tuple(q['names'][:n + 1]) in self.texts:
            n += 1
        return n * BLOCK

    def begin(self, now):
        """The next step: when it ends; infinity if there is nothing to do."""
        o = self.of
        if not self.reading and not self.running:
            if not self.queue:
                return math.inf
            if self.queue[0]['ready'] > now:
                self.step = None
                return self.queue[0]['ready']
        decodes = o.engine != 'sglang'
        room, parts = o.chunk - (len(self.running) if decodes else 0), []
        for q in self.reading:
            parts.append([q, min(q['prompt'] - q['read'], room)])
            room -= parts[-1][1]
        while self.queue and self.queue[0]['ready'] <= now and room > 0:
            q = self.queue[0]
            known = self.known(q) if o.cached else 0
            left = q['prompt'] - known
            if o.engine == 'trtllm' and room < left <= o.chunk:
                break
            self.queue.pop(0)
            self.reading.append(q)
            q['read'] = known
            o.hits += known // BLOCK
            parts.append([q, min(left, room)])
            room -= parts[-1][1]
        parts = [(q, n) for q, n in parts if n > 0]
        self.step = (parts, self.running[:] if decodes or not parts else [])
        return now + self.seconds()

    def seconds(self):
        c = self.of.clock
        parts, decoding = self.step
        w = {'decoding': len(decoding), 'prompt': sum(n for _, n in parts), 'logits': len(decoding), 'prompt_flops': 0,
             'sequences': len(parts) + len(decoding), 'cache': sum(c.cell * (q['prompt'] + q['made']) for q in decoding),
             'decode_flops': sum(c.pair * (q['prompt'] + q['made']) for q in decoding)}
        w['all'] = w['decoding'] + w['prompt']
        for q, n in parts:
            a, b = q['read'], q['read'] + n
            w['prompt_flops'] += c.prompt_pair * (b * (b + 1) - a * (a + 1)) / 2
            w['cache'] += c.cell * a
            w['logits'] += b == q['prompt']
        return sum(c.step(w))

    def end(self, now):
        if not self.step:
            return
        parts, decoding = self.step
        for q in decoding:
            q['made'] += 1
        over = [q for q in decoding if q['made'] == q['output']]
        for q in over:
            self.running.remove(q)
            self.of.answer(q, now)
        for q, n in parts:
            q['read'] += n
            self.texts.update(tuple(q['names'][:i + 1]) for i in range(q['read'] // BLOCK))
            if q['read'] == q['prompt']:
                self.reading.remove(q)
                q['first'], q['made'] = now, 1
                if q['output'] == 1:
                    self.of.answer(q, now)
                else:
                    self.running.append(q)


class System:
    def __init__(self, clock, engine, servers, router, clients, requests, chunk, cached):
        self.clock, self.engine, self.router, self.chunk, self.cached = clock, engine, router, chunk, cached
        self.requests, self.sent, self.hits, self.now, self.ttft, self.tpot = requests, 0, 0, 0.0, [], []
        self.server = [Server(self) for _ in range(servers)]
        self.idle, self.events = set(range(servers)), []
        for _ in range(clients):
            self.send()
        while self.events:
            self.now, i = heapq.heappop(self.events)
            self.server[i].end(self.now)
            at = self.server[i].begin(self.now)
            if math.isinf(at):
                self.idle.add(i)
            else:
                heapq.heappush(self.events, (at, i))

    def send(self):
        if self.sent == len(self.requests):
            return
        n, (prompt, output, text, shared) = self.sent, self.requests[self.sent]
        self.sent += 1
        names = [(text if (i + 1) * BLOCK <= shared else 1000 + n) * 1000 + i for i in range(prompt // BLOCK)]
        k = self.clock.k
        q = {'prompt': prompt, 'output': output, 'names': names, 'read': 0, 'made': 0, 'sent': self.now,
             'ready': self.now + k['request'] + k['token'] * prompt}
        if self.router == 'round-robin':
            i = n % len(self.server)
        elif self.router == 'least-loaded':
            i = min(range(len(self.server)), key=lambda i: (self.server[i].load(), i))
        else:
            i = min(range(len(self.server)), key=lambda i: (-self.server[i].known(q), self.server[i].load(), i))
        self.server[i].queue.append(q)
        if i in self.idle:
            self.idle.remove(i)
            self.server[i].step = None
            heapq.heappush(self.events, (q['ready'], i))

    def answer(self, q, now):
        self.ttft.append(q['first'] - q['sent'])
        if q['output'] > 1:
            self.tpot.append((now - q['first']) / (q['output'] - 1))
        self.send()


class Apart:
    """Prompts are read on workers with a prefix cache each, answers decoded on others. Nobody lacks memory; a block that no
    request of the worker holds takes `load` seconds to come back."""

    def __init__(self, clock, readers, writers, clients, requests, chunk, bandwidth, load):
        self.clock, self.chunk, self.requests, self.sent, self.hits = clock, chunk, requests, 0, 0
        self.now, self.ttft, self.tpot, self.queue, self.events, self.order = 0.0, [], [], [], [], 0
        self.idle, self.link, self.texts = set(range(readers)), [0.0] * readers, [set() for _ in range(readers)]
        self.wait, self.running = [[] for _ in range(writers)], [[] for _ in range(writers)]
        self.busy, self.bandwidth, self.load = [False] * writers, bandwidth, load
        self.held = [collections.Counter() for _ in range(readers)]
        for _ in range(clients):
            self.send()
        while self.queue or self.events:
            for r in sorted(self.idle):
                self.read(r)
            wake = min((q['ready'] for q in self.queue[:1]), default=math.inf) if self.idle else math.inf
            if not self.events or wake < self.events[0][0]:
                self.now = wake
                continue
            self.now, kind, _, worker, what = heapq.heappop(self.events)
            (self.has_read, self.has_come, self.has_written)[kind](worker, what)

    def happens(self, at, kind, worker, what=None):
        self.order += 1
        heapq.heappush(self.events, (at, kind, self.order, worker, what))

    def send(self):
        if self.sent == len(self.requests):
            return
        n, (prompt, output, text, shared) = self.sent, self.requests[self.sent]
        self.sent += 1
        names = [(text if (i + 1) * BLOCK <= shared else 1000 + n) * 1000 + i for i in range(prompt // BLOCK)]
        k = self.clock.k
        self.queue.append({'prompt': prompt, 'output': output, 'names': names, 'made': 0, 'sent': self.now,
                           'ready': self.now + k['request'] + k['token'] * prompt})

    def read(self, r):
        """A step of what fits into one, of a prompt that is longer so many as it needs."""
        c, batch, room, seconds = self.clock, [], self.chunk, 0.0
        while self.queue and self.queue[0]['ready'] <= self.now:
            q, n = self.queue[0], 0
            while n < (q['prompt'] - 1) // BLOCK and tuple(q['names'][:n + 1]) in self.texts[r]:
                n += 1
            left = q['prompt'] - n * BLOCK
            if batch and left > room:
                break
            batch.append((self.queue.pop(0), n * BLOCK))
            self.hits += n
            paths = [tuple(q['names'][:i + 1]) for i in range(n)]
            seconds += sum(not self.held[r][p] for p in paths) * self.load
            self.held[r].update(paths)
            q['held'] = paths
            room -= left
        if not batch:
            return
        pairs = lambda a, b: c.prompt_pair * (b * (b + 1) - a * (a + 1)) / 2
        work = lambda parts, ends: sum(c.step({
            'decoding': 0, 'prompt': sum(b - a for a, b in parts), 'all': sum(b - a for a, b in parts), 'logits': ends,
            'sequences': len(parts), 'cache': sum(c.cell * a for a, _ in parts), 'decode_flops': 0,
            'prompt_flops': sum(pairs(a, b) for a, b in parts)}))
        if room < 0:
            q, a = batch[0]
            while a < q['prompt']:
                b = min(a + self.chunk, q['prompt'])
                seconds += work([(a, b)], b == q['prompt'])
                a = b
        else:
            seconds += work([(a, q['prompt']) for q, a in batch], len(batch))
        self.idle.remove(r)
        self.happens(self.now + seconds, 0, r, [q for q, _ in batch])

    def has_read(self, r, batch):
        self.idle.add(r)
        for q in batch:
            self.ttft.append(self.now - q['sent'])
            paths = [tuple(q['names'][:i + 1]) for i in range(len(q['names']))]
            self.texts[r].update(paths)
            self.held[r].update(paths[len(q['held']):])
            q.update(first=self.now, made=1, held=paths)
            if q['output'] == 1:
                self.held[r].subtract(paths)
                self.send()
                continue
            self.link[r] = max(self.link[r], self.now) + self.clock.cell * q['prompt'] / self.bandwidth
            self.happens(self.link[r], 1, r, q)

    def has_come(self, r, q):
        self.held[r].subtract(q['held'])
        w = min(range(len(self.wait)), key=lambda i: (len(self.running[i]) + len(self.wait[i]), i))
        self.wait[w].append(q)
        if not self.busy[w]:
            self.write(w)

    def write(self, w):
        c = self.clock
        self.running[w] += self.wait[w]
        self.wait[w] = []
        self.busy[w] = bool(self.running[w])
        if self.busy[w]:
            b, n = len(self.running[w]), sum(q['prompt'] + q['made'] for q in self.running[w])
            self.happens(self.now + sum(c.step({'decoding': b, 'prompt': 0, 'logits': b, 'all': b, 'sequences': b,
                                                'cache': c.cell * n, 'decode_flops': c.pair * n, 'prompt_flops': 0})),
                         2, w)

    def has_written(self, w, _):
        for q in self.running[w]:
            q['made'] += 1
        for q in [q for q in self.running[w] if q['made'] == q['output']]:
            self.running[w].remove(q)
            self.tpot.append((self.now - q['first']) / (q['output'] - 1))
            self.send()
        self.write(w)


def several(dice, count, cached):
    """Requests: tokens of prompt and answer, a text, and the tokens that the prompt has of it."""
    texts, requests = dice.randint(2, 6), []
    for _ in range(count):
        shared = BLOCK * dice.randint(8, 40) if cached else 0
        requests.append((shared + dice.randint(20, 1400), dice.choice((1, 2, dice.randint(3, 90))), dice.randrange(texts),
                         shared))
    return requests


def main():
    dice = random.Random(28)
    k = {n: dice.uniform(0.3, 0.8) if n in SHARES else SECONDS.get(n, 5e-6) for n in CONSTANTS}
    k.update(vectors=12, routed=6, launch=10)
    clock, cases = Clock('dense', 'f16', 'f16', k, 1, 1, 1, 1), []
    for engine in ('vllm', 'sglang', 'trtllm'):
        for router in ('round-robin', 'least-loaded', 'prefix'):
            for servers, clients, count in ((1, 6, 40), (2, 1, 12), (2, 7, 60), (3, 24, 120), (5, 12, 60), (4, 3, 20)):
                cached = router == 'prefix' or dice.random() < 0.3
                requests = several(dice, count, cached)
                s = System(clock, engine, servers, router, clients, requests, 1024, cached)
                cases.append({'model': DENSE, 'gpu': GPU, 'weights': 'f16', 'attention': 'f16', 'tp': 1, 'ep': 1, 'dp': 1,
                              'engine': engine, 'router': router, 'servers': servers, 'clients': clients, 'chunk': 1024,
                              'block': BLOCK if cached else 0, 'requests': requests, 'hits': s.hits, 'end_s': s.now,
                              'ttft_s': sum(s.ttft) / len(s.ttft), 'tpot_s': sum(s.tpot) / len(s.tpot)})
    apart = []
    for readers, writers, bandwidth, load in ((1, 1, 1e12, 0), (1, 2, 1e9, 0), (2, 1, 2e8, 0), (3, 2, 1e8, 0),
                                              (2, 2, 1e9, 2e-4)):
        for cached in (False, True):
            for clients, count in ((1, 15), (6, 60), (20, 100)):
                requests = several(dice, count, cached)
                s = Apart(clock, readers, writers, clients, requests, 1024, bandwidth, load)
                apart.append({'model': DENSE, 'gpu': GPU, 'engine': 'vllm', 'readers': readers, 'writers': writers,
                              'clients': clients, 'chunk': 1024, 'block': BLOCK if cached else 0, 'bandwidth': bandwidth,
                              'load_s': load, 'requests': requests, 'hits': s.hits, 'end_s': s.now,
                              'ttft_s': sum(s.ttft) / len(s.ttft), 'tpot_s': sum(s.tpot) / len(s.tpot)})
    with open(sys.argv[1], 'w', encoding='utf-8') as f:
        json.dump({'profiles': {e: profile(e, k) for e in ('vllm', 'sglang', 'trtllm')}, 'cases': cases,
                   'apart': apart}, f,
                  separators=(',', ':'))
        f.write('\n')


if __name__ == '__main__':
    main()
