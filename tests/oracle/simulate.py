#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Expected events of the simulator: tests/oracle/simulate.py > tests/golden/simulate.json

A second simulator, written from the rules of doc/simulate.md and not from the program: one object a request, bytes
and FLOPs summed layer by layer in exact arithmetic, nothing tabulated. Small workloads on a small model; every
admission, first token and end. Needs nothing but Python."""
import json
import math
import random
from fractions import Fraction

LAYERS, HIDDEN, HEADS, KV_HEADS, WIDTH, FFN, VOCAB = 2, 64, 4, 2, 16, 128, 100
ROW = (f"tiny layers={LAYERS} hidden={HIDDEN} heads={HEADS} kv_heads={KV_HEADS} head_dim={WIDTH} ffn={FFN} "
       f"vocab={VOCAB} max_pos=4096 gated | made up | this test")
BANDWIDTH, PEAK = 4e8, 5e9

LAYER = 2 * HIDDEN * HEADS * WIDTH + 2 * HIDDEN * KV_HEADS * WIDTH + 3 * HIDDEN * FFN + 2 * HIDDEN
BODY = LAYERS * LAYER + HIDDEN
TABLE = VOCAB * HIDDEN
WEIGHTS = 2 * (BODY + 2 * TABLE)
CELL = KV_HEADS * 2 * WIDTH * 2


class Request:
    def __init__(self, number, arrival, prompt, output):
        self.number, self.arrival, self.prompt, self.output = number, arrival, prompt, output
        self.answer = 0                 # tokens it has said
        self.cached = 0                 # tokens in the cache
        self.held = 0
        self.admitted = self.first = self.finished = None
        self.preemptions = 0

    def share(self, room):
        """Tokens of the next step: up to the next word, not beyond the prompt's end."""
        end = self.prompt + self.answer
        if self.cached < self.prompt:
            end = min(end, self.prompt)
        return min(end - self.cached, room)


class Server:
    def __init__(self, case):
        self.c = case
        self.budget = case["budget"]

    def kept(self, n):
        if self.budget is None:
            return n
        b = math.ceil(Fraction(self.budget) * n) if "." in self.budget else int(self.budget)
        return min(n, b + self.c["headroom"])

    def pages(self, n):
        page = self.c["page"]
        return LAYERS * -(-n // page) * page * CELL

    def small(self, n):
        return self.pages(self.kept(n))

    def during(self, r, n):
        before, after = r.cached, r.cached + n
        if before >= r.prompt:
            return self.small(after)
        if self.c["evict"] == "prompt":
            return self.pages(after)
        return min(self.pages(after), self.small(before) + self.pages(n))

    def behind(self, r):
        whole = r.cached < r.prompt and self.c["evict"] == "prompt"
        return self.pages(r.cached) if whole else self.small(r.cached)

    def most(self, r):
        first = self.pages(r.prompt)
        if self.c["evict"] == "chunk" and self.c["step_tokens"] < r.prompt:
            first = min(first, self.small(r.prompt) + self.pages(self.c["step_tokens"]))
        return max(first, self.small(r.prompt + r.output - 1))

    def wanted(self, r, n):
        return self.most(r) if self.c["memory"] == "slots" else self.during(r, n)

    def attention(self, r, n):
        """Bytes read and FLOPs, over all layers."""
        pair = 4 * HEADS * WIDTH * LAYERS
        before, after = r.cached, r.cached + n
        if before >= r.prompt:
            return self.small(after), n * pair * self.kept(after)
        triangle = sum(range(before + 1, after + 1))
        if self.c["evict"] == "chunk" and before:
            fresh = sum(range(1, n + 1)) + n * self.kept(before)
            return self.small(before), pair * min(triangle, fresh)
        return self.pages(before), pair * triangle

    def seconds(self, work):
        f = self.c["efficiency"]
        tokens = sum(n for _, n in work)
        spoken = sum(r.cached + n == r.prompt + r.answer for r, n in work)
        read = flops = 0
        for r, n in work:
            a, b = self.attention(r, n)
            read += a
            flops += b
        weights = 2 * BODY + (2 * TABLE if spoken else 0)
        memory = (weights / f["weights"] + read / f["cache"]) / BANDWIDTH
        math_s = ((tokens * 2 * BODY + spoken * 2 * TABLE) / f["products"] + flops / f["attention"]) / PEAK
        return max(memory, math_s) + f["overhead_s"]

    def run(self):
        queue = [Request(i, *q) for i, q in enumerate(self.c["requests"])]
        everyone = list(queue)
        again, running, now, steps = [], [], queue[0].arrival, 0
        pool, used = self.c["pool"], lambda: sum(r.held for r in running)
        while True:
            while queue and self.most(queue[0]) > pool:
                queue.pop(0)            # refused: nothing of it is ever set
            if not (queue or again or running):
                break
            if not running and not again and queue[0].arrival > now:
                now = queue[0].arrival
            room, work, crowded = self.c["step_tokens"], [], False
            for r in list(running):
                if r not in running:
                    continue
                n = r.share(room)
                if not n:
                    continue
                bytes_ = self.wanted(r, n)
                while r in running and used() - r.held + bytes_ > pool:
                    out = running.pop()
                    out.held, out.cached = 0, 0
                    out.preemptions += 1
                    again.append(out)
                    crowded = True
                if r not in running:
                    break
                r.held = bytes_
                room -= n
                work.append((r, n))
            while not crowded and room and len(running) < self.c["max_running"]:
                if again:
                    r = again[-1]
                elif queue and queue[0].arrival <= now:
                    r = queue[0]
                else:
                    break
                n = r.share(room)
                if used() + self.wanted(r, n) > pool:
                    break
                (again.pop() if again else queue.pop(0))
                r.held = self.wanted(r, n)
                r.admitted = now if r.admitted is None else r.admitted
                running.append(r)
                work.append((r, n))
                room -= n
                while not again and queue and self.most(queue[0]) > pool:
                    queue.pop(0)
            now += self.seconds(work)
            steps += 1
            for r, n in work:
                speaks = r.cached + n == r.prompt + r.answer
                r.cached += n
                if speaks:
                    r.answer += 1
                    r.first = now if r.first is None else r.first
                if r.answer == r.output:
                    r.finished = now
                    running.remove(r)
                elif self.c["memory"] == "paged":
                    r.held = self.behind(r)
        return steps, [[r.admitted, r.first, r.finished, r.preemptions] if r.finished is not None else None
                       for r in everyone]


def cases():
    one = {"weights": 1.0, "cache": 1.0, "products": 1.0, "attention": 1.0, "link": 1.0, "overhead_s": 0.0}
    slow = {"weights": 0.8, "cache": 0.5, "products": 0.6, "attention": 0.3, "link": 1.0, "overhead_s": 0.0003}
    dice = random.Random(20240517)
    plain = dict(page=1, budget=None, headroom=0, evict="prompt", memory="paged", step_tokens=64, max_running=8,
                 efficiency=one, pool=10**7)
    page = LAYERS * CELL

    def flow(n, gap, prompt, output):
        now, rows = 0.0, []
        for _ in range(n):
            rows.append([round(now, 6), dice.randint(*prompt), dice.randint(*output)])
            now += dice.expovariate(1 / gap)
        return rows

    yield "one request", {**plain, "requests": [[0.5, 10, 5]]}
    yield "a prompt in chunks", {**plain, "requests": [[0, 200, 3]]}
    yield "answers of one token", {**plain, "requests": [[0, 7, 1], [0, 9, 1], [5, 3, 1]]}
    yield "two that share a step", {**plain, "requests": [[0, 30, 6], [0, 60, 4]]}
    yield "one at a time", {**plain, "max_running": 1, "requests": flow(6, 0.002, (5, 40), (1, 9))}
    yield "more sequences than tokens of a step", {**plain, "step_tokens": 3, "requests": flow(8, 0.0005, (1, 9), (2, 9))}
    yield "pages", {**plain, "page": 16, "requests": flow(10, 0.002, (5, 80), (1, 30))}
    yield "too few pages", {**plain, "page": 16, "pool": 12 * 16 * page, "requests": flow(12, 0.001, (20, 90), (5, 60))}
    yield "preempted again and again", {**plain, "pool": 150 * page, "requests": flow(12, 0.0005, (10, 60), (20, 80))}
    yield "some can never fit", {**plain, "pool": 100 * page, "requests": [[0, 90, 5], [0, 120, 3], [0.1, 20, 90],
                                                                          [0.2, 99, 2], [0.3, 100, 1]]}
    yield "slots", {**plain, "memory": "slots", "pool": 200 * page, "requests": flow(12, 0.001, (10, 60), (5, 80))}
    yield "slow", {**plain, "efficiency": slow, "requests": flow(10, 0.002, (5, 90), (1, 30))}
    yield "a budget, evicted behind the prompt", {**plain, "budget": "24", "pool": 200 * page,
                                                  "requests": flow(12, 0.001, (10, 150), (5, 80))}
    yield "a budget, evicted behind each chunk", {**plain, "budget": "24", "evict": "chunk", "pool": 150 * page,
                                                  "requests": flow(12, 0.001, (10, 300), (5, 80))}
    yield "a budget with headroom and pages", {**plain, "budget": "20", "headroom": 8, "page": 8, "evict": "chunk",
                                               "pool": 160 * page, "requests": flow(12, 0.001, (10, 200), (5, 60))}
    yield "a share", {**plain, "budget": "0.25", "pool": 220 * page, "requests": flow(12, 0.001, (10, 200), (5, 60))}
    yield "a share by chunks", {**plain, "budget": "0.25", "evict": "chunk", "pool": 160 * page, "page": 4,
                                "requests": flow(12, 0.001, (10, 200), (5, 60))}
    yield "slots of a budget", {**plain, "budget": "32", "memory": "slots", "evict": "chunk", "pool": 300 * page,
                                "requests": flow(14, 0.001, (10, 200), (5, 60))}
    yield "a budget that is preempted", {**plain, "budget": "40", "page": 4, "pool": 130 * page, "max_running": 16,
                                         "efficiency": slow, "requests": flow(16, 0.0005, (10, 110), (30, 90))}
    yield "idle in between", {**plain, "requests": [[0, 9, 3], [1, 9, 3], [1, 5, 5], [3.5, 70, 2]]}
    yield "long queue", {**plain, "page": 16, "pool": 20 * 16 * page, "step_tokens": 128,
                         "requests": flow(40, 0.0001, (10, 100), (1, 40))}


def main():
    out = []
    for name, c in cases():
        steps, events = Server(c).run()
        out.append({"name": name, **c, "steps": steps, "events": events})
    print(json.dumps({"model": ROW, "weights": WEIGHTS, "bandwidth": BANDWIDTH, "peak": PEAK, "cases": out}, indent=1))


if __name__ == '__main__':
    main()
