#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that share several servers through a router, from the description (planner/simulate/closed_loop.h), step by
step and token by token; the clock is that of clock.py.

    python3 tests/oracle/replicas.py tests/golden/replicas.json

The events are ends of steps. Of events at one time, those of the first server come first. A server that has nothing to
do begins a step when its next request has come."""
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


def main():
    dice = random.Random(28)
    k = {n: dice.uniform(0.3, 0.8) if n in SHARES else SECONDS.get(n, 5e-6) for n in CONSTANTS}
    k.update(vectors=12, routed=6, launch=10)
    clock, cases = Clock('dense', 'f16', 'f16', k, 1, 1, 1, 1), []
    for engine in ('vllm', 'sglang', 'trtllm'):
        for router in ('round-robin', 'least-loaded', 'prefix'):
            for servers, clients, count in ((1, 6, 40), (2, 1, 12), (2, 7, 60), (3, 24, 120), (5, 12, 60), (4, 3, 20)):
                cached = router == 'prefix' or dice.random() < 0.3
                texts, requests = dice.randint(2, 6), []
                for _ in range(count):
                    shared = BLOCK * dice.randint(8, 40) if cached else 0
                    requests.append((shared + dice.randint(20, 1400), dice.choice((1, 2, dice.randint(3, 90))),
                                     dice.randrange(texts), shared))
                s = System(clock, engine, servers, router, clients, requests, 1024, cached)
                cases.append({'model': DENSE, 'gpu': GPU, 'weights': 'f16', 'attention': 'f16', 'tp': 1, 'ep': 1, 'dp': 1,
                              'engine': engine, 'router': router, 'servers': servers, 'clients': clients, 'chunk': 1024,
                              'block': BLOCK if cached else 0, 'requests': requests, 'hits': s.hits, 'end_s': s.now,
                              'ttft_s': sum(s.ttft) / len(s.ttft), 'tpot_s': sum(s.tpot) / len(s.tpot)})
    with open(sys.argv[1], 'w', encoding='utf-8') as f:
        json.dump({'profiles': {e: profile(e, k) for e in ('vllm', 'sglang', 'trtllm')}, 'cases': cases}, f,
                  separators=(',', ':'))
        f.write('\n')


if __name__ == '__main__':
    main()
