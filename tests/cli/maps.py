# SPDX-License-Identifier: Apache-2.0
"""A map's cells straight from the scores. Usage: maps.py DUMP.safetensors DRAWN.tsv WINDOW ROW..., where DRAWN is
`plot heatmap --rows ROW,... --data` of head 0 of the dump's only layer; WINDOW 0: a query sees all keys up to its own,
-1: all there are."""
import math
import sys

from dumps import read_safetensors

CELLS = 512


def blocks(path):
    found = {}
    for line in open(path):
        if line.startswith("#"):
            found[line[1:].strip()] = rows = []
        elif line.strip():
            rows.append([float(x) for x in line.split("\t")])
    return found


def same(drawn, wanted):
    return math.isnan(drawn) and math.isnan(wanted) or abs(drawn - wanted) <= 1e-6 * abs(wanted)


dump, drawn, window, *singles = sys.argv[1:]
window, singles = int(window), [int(s) for s in singles]
(_, n, keys), numbers = read_safetensors(dump)["s0.l0.attn"]
down, across = (n - 1) // CELLS + 1, (keys - 1) // CELLS + 1
shape = (n + down - 1) // down, (keys + across - 1) // across
score, above = ([[math.nan] * shape[1] for _ in range(shape[0])] for _ in range(2))
single = [[math.nan] * shape[1] for _ in singles]
most = lambda a, b: b if math.isnan(a) else max(a, b)
for q in range(n):
    seen = range(keys) if window < 0 else range(max(0, q + 1 - window) if window else 0, q + 1)
    for k in seen:
        x, r, c = numbers[q * keys + k], q // down, k // across
        score[r][c] = most(score[r][c], x)
        above[r][c] = most(above[r][c], float(x > 1 / len(seen)))
        for i, row in enumerate(singles):
            if row == q:
                single[i][c] = most(single[i][c], x)
found = blocks(drawn)
for name, wanted in ("score0", score), ("significant0", above), ("rows0", single):
    rows = found[name]
    assert len(rows) == len(wanted) and all(len(row) == shape[1] for row in rows), f"{name}: {len(rows)} rows"
    for r, (row, want) in enumerate(zip(rows, wanted)):
        for c, (a, b) in enumerate(zip(row, want)):
            assert same(a, b), f"{name}, row {r}, column {c}: {a}, expected {b}"
