#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Persistence figures straight from their definitions, set by set, from exported heads; compared with
what the program says. Usage: figures.py STORE SAID.json, where SAID is `persistence --json` of STORE."""
import json
import math
import sys

from scores import head, query

FIGURES = ("ratio", "density", "chance", "lift", "relative_risk", "phi", "auc")


def share(a, b):
    return None if a is None or not b else a / b


def threshold(alpha, seen, t):
    """A score above this is pivotal in a row of `seen` keys."""
    if alpha in ("row", "split"):
        return 1 / (seen if alpha == "row" else t)
    return float(alpha[:-2]) / seen if alpha.endswith("/t") else float(alpha)


def of_head(rows, alpha, recent, split, window):
    n, t = len(rows), math.floor(len(rows) * split)
    pivotal = [{j for j in range(q + 1) if rows[q][j] > threshold(alpha, q + 1, t) and q - j >= recent} for q in range(n)]
    first, second = set().union(*pivotal[:t]), set().union(*pivotal[t:]) & set(range(t))
    rest = set(range(t)) - first
    low = [sum(rows[q][j] < 1 / (q + 1) for q in range(max(j, t - window), t)) for j in range(t)]
    pairs = [(low[a], low[b]) for a in second for b in set(range(t)) - second]
    ratio, density = share(len(first & second), len(second)), len(first) / t
    a, b, c, d = len(first & second), len(first - second), len(rest & second), len(rest - second)
    return {"ratio": ratio, "density": density, "chance": density, "lift": share(ratio, density),
            "relative_risk": share(share(a, a + b), share(c, c + d)),
            "phi": share(a * d - b * c, math.sqrt((a + b) * (c + d) * (a + c) * (b + d))),
            "auc": share(sum((x < y) + (x == y) / 2 for x, y in pairs), len(pairs))}


def mean(members):
    def of(key):
        known = [m[key] for m in members if m[key] is not None]
        return share(sum(known), len(known))
    return {key: of(key) for key in FIGURES}


def compare(what, said, wanted):
    for key in FIGURES:
        a, b = said[key], wanted[key]
        assert (a is None) == (b is None) and (a is None or abs(a - b) < 1e-12 * max(1, abs(b))), \
            f"{what}: {key} is {a}, expected {b}"


def main(store, path):
    said = json.load(open(path))
    sequences = [s for s, in query(store, "SELECT id FROM sequence ORDER BY id")]
    layers = []
    for layer in said["layers"]:
        heads = []
        for h in layer["heads"]:
            heads.append(mean([of_head(head(store, s, layer["layer"], h["head"]), said["alpha"], said["recent"],
                                       said["split"], said["window"]) for s in sequences]))
            compare(f"layer {layer['layer']}, head {h['head']}", h, heads[-1])
        layers.append(mean(heads))
        compare(f"layer {layer['layer']}", layer, layers[-1])
        ratios = [h["ratio"] for h in heads]
        assert layer["min_head_index"] == ratios.index(min(ratios)), f"layer {layer['layer']}: min_head_index"
        assert abs(layer["min_head"] - min(ratios)) < 1e-12, f"layer {layer['layer']}: min_head"
    whole = [g for g in said["grid"] if (g["alpha"], g["recent"], g["split"]) == (said["alpha"], said["recent"], said["split"])]
    assert len(whole) == 1, f"{len(whole)} cells of the grid"
    compare("whole model", whole[0], mean(layers))


main(*sys.argv[1:])
