#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which blocks of prompts a prefix cache has, from the definition (doc/simulate.md), one request after the other:

    python3 tests/oracle/prefix.py tests/golden/prefix.json     golden cases
    python3 tests/oracle/prefix.py TRACE.jsonl SIZE...          a trace of Mooncake's: blocks asked, and hits at each size

The cache is a tree of texts: a child is a text that is longer by one block. A request finds the longest path of its own
full blocks, but leaves one token to read. Then all of its full blocks are in the tree, used now; and while there are
more than the size, the leaf that was used longest ago is cut off. Levels below are told apart by rank: the blocks are
ordered by their last use, those of one use from the root on; the first ones are the GPU's, the next the host's."""
import heapq
import json
import random
import sys

PIECE = 512


class Node:
    def __init__(self, parent, name):
        self.parent, self.name, self.children, self.used = parent, name, {}, 0


class Tree:
    def __init__(self, size):
        self.size, self.root, self.blocks, self.now, self.leaves = size, Node(None, None), 0, 0, []

    def request(self, texts, findable):
        self.now += 1
        at, found = self.root, 0
        while found < findable and texts[found] in at.children:
            at = at.children[texts[found]]
            found += 1
        at = self.root
        for text in texts:
            if text not in at.children:
                at.children[text] = Node(at, text)
                self.blocks += 1
            at = at.children[text]
            at.used = self.now
        if texts:
            heapq.heappush(self.leaves, (at.used, id(at), at))
        while self.blocks > self.size:
            used, _, leaf = heapq.heappop(self.leaves)
            if leaf.used != used or leaf.children or leaf.name not in leaf.parent.children or \
                    leaf.parent.children[leaf.name] is not leaf:
                continue                # used again, no leaf, or cut off already
            del leaf.parent.children[leaf.name]
            self.blocks -= 1
            if leaf.parent is not self.root and not leaf.parent.children:
                heapq.heappush(self.leaves, (leaf.parent.used, id(leaf.parent), leaf.parent))
        return found


class Ranks:
    """The same by rank, with a size for each level: hits of each level."""

    def __init__(self, sizes):
        self.sizes, self.order = sizes, []

    def request(self, texts, findable):
        paths = [tuple(texts[:i + 1]) for i in range(len(texts))]
        hits = [0] * len(self.sizes)
        for path in paths[:findable]:
            if path not in self.order:
                break
            rank, level = self.order.index(path), 0
            while rank >= self.sizes[level]:
                rank -= self.sizes[level]
                level += 1
            hits[level] += 1
        self.order = (paths + [p for p in self.order if p not in paths])[:sum(self.sizes)]
        return hits


def trace(path, sizes):
    rows = [json.loads(line) for line in open(path, encoding='utf-8')]
    trees, hits, asked = [Tree(n) for n in sizes], [0] * len(sizes), 0
    for r in rows:
        full = r['input_length'] // PIECE
        asked += full
        for i, tree in enumerate(trees):
            hits[i] += tree.request(r['hash_ids'][:full], (r['input_length'] - 1) // PIECE)
    print(json.dumps({'asked': asked, 'hits': hits}))


def cases():
    dice = random.Random(11)
    for sizes in ([0], [1], [7], [40], [1000], [5, 5, 0], [3, 20, 9], [10, 0, 30], [1, 1, 1], [0, 12, 0]):
        block = dice.choice([1, 16, 512])
        talks, requests, fresh = [[]], [], 0
        for _ in range(60):
            text = list(dice.choice(talks))[:dice.randint(0, 40)]
            for _ in range(dice.randint(0, 6)):
                fresh += 1
                text.append(fresh)
            talks = (talks + [text])[-8:]
            requests.append([len(text) * block + dice.randint(0 if text else 1, block - 1) if block > 1 else max(len(text), 1),
                             text])
        tree, ranks, hits = Tree(sum(sizes)), Ranks(sizes), []
        for tokens, text in requests:
            full, findable = text[:tokens // block], (tokens - 1) // block
            hits.append(ranks.request(full, min(findable, len(full))))
            assert tree.request(full, min(findable, len(full))) == sum(hits[-1])
        yield {'block': block, 'sizes': sizes, 'requests': requests, 'hits': hits}


def main():
    if len(sys.argv) > 2:
        trace(sys.argv[1], [int(n) for n in sys.argv[2:]])
        return
    with open(sys.argv[1], 'w', encoding='utf-8') as f:
        json.dump({'cases': list(cases())}, f)
        f.write('\n')


if __name__ == '__main__':
    main()
