# SPDX-License-Identifier: Apache-2.0
"""The figures of `shears theory --per head --json`, computed again from exported heads: the dropped mass
of the largest scores, the exponent above the reported xmin with its error and distance, the Lomax
likelihood's condition on k, the laws at the reported k and b, the printed theorem. Standard library.

    theory.py STORE SAID.json LAYERS HEADS EPSILON [CHECKPOINT]

With an OPT checkpoint, also the figures of Theorem 3.1."""
import array
import ctypes
import ctypes.util
import math
import sys

from scores import head, load, query

store, said, n_layer, n_head, epsilon = sys.argv[1], load(sys.argv[2]), *map(int, sys.argv[3:5]), float(sys.argv[5])
group = n_head // query(store, "SELECT n_kv_head FROM model")[0][0]
sequences = [(i, len(t) // 4) for i, t in query(store, "SELECT id, tokens FROM sequence ORDER BY id")]
zstd = ctypes.CDLL(ctypes.util.find_library("zstd"))
zstd.ZSTD_decompress.restype = ctypes.c_size_t
zstd.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]


def floats(blob):
    """A block of codec 0: zstd of four planes of bytes."""
    plain = ctypes.create_string_buffer(1 << 22)
    n = zstd.ZSTD_decompress(plain, 1 << 22, blob, len(blob))
    assert n <= 1 << 22 and n % 4 == 0, "no block of f32"
    planes = [plain.raw[i * n // 4:(i + 1) * n // 4] for i in range(4)]
    return array.array("f", bytes(b for number in zip(*planes) for b in number))


def near(found, expected, what, by=1e-6):
    assert found is not None and abs(found - expected) <= by * max(1, abs(expected)), (what, found, expected)


def integral(a, w):
    """y^-a from 1 to w"""
    return math.log(w) if abs(a - 1) < 1e-12 else (w ** (1 - a) - 1) / (1 - a)


def law_cut(rho, k, b, most):
    r = 1 + most / b
    w = min((r ** (1 - k) + rho * (1 - r ** (1 - k))) ** (-1 / (k - 1)), r)
    part = lambda y: integral(k - 1, y) - integral(k, y)
    return max(part(w), 0) / part(r)


def law(rho, k):
    return 1 - (k - 1) * rho ** ((k - 2) / (k - 1)) + (k - 2) * rho


def rows_of(layer, which):
    """The rows behind the middle of each sequence, visible keys only."""
    for i, (_, n) in enumerate(sequences):
        scores = head(store, i, layer, which)
        for t in range(n // 2, n):
            yield [scores[t][j] for j in range(t + 1)]


def values_of(layer, which):
    """What rows_of gives the rows of: the values of each row's sequence. Empty when none were recorded."""
    found = []
    for sequence, n in sequences:
        for blob, in query(store, "SELECT blob FROM vectors WHERE sequence = ? AND layer = ? AND head = ?"
                           " AND kind = 'v' AND codec = 0", sequence, layer, which // group):
            flat = floats(blob)
            d = len(flat) // n
            found += [[flat[j * d:(j + 1) * d].tolist() for j in range(n)]] * (n - n // 2)
    return found


def check_laws(f, rows):
    sample = [s * len(row) for row in rows for s in row if s > 0]
    assert f["values"] == len(sample) and f["sample_share"] == 1, (f["values"], len(sample))
    near(f["largest_x"], max(sample), "largest x")
    tail = sorted(x for x in sample if x >= f["xmin_x"])
    assert f["xmin_x"] in sample and f["tail_values"] == len(tail), "the tail above xmin"
    exponent = 1 + len(tail) / sum(math.log(x / f["xmin_x"]) for x in tail)
    near(f["exponent"], exponent, "exponent")
    near(f["exponent_sigma"], (exponent - 1) / math.sqrt(len(tail)), "sigma")
    model = [1 - (x / f["xmin_x"]) ** (1 - exponent) for x in tail]
    below = [next(i for i in range(len(tail)) if tail[i] == x) for x in tail]
    near(f["ks_distance"], max(abs(m - i / len(tail)) for m, i in zip(model, below)), "distance")
    if f["lomax_k"] is not None:
        near(f["lomax_k"] - 1, len(sample) / sum(math.log1p(x / f["lomax_b_x"]) for x in sample), "Lomax k")


def output_error(row, v, n):
    """|sum A v - sum A' v| with the n largest scores (of equal ones the newer), and 2 (1 - kept) max|v|."""
    kept = sorted(range(len(row)), key=lambda j: (-row[j], -j))[:n]
    whole, some = sum(row), sum(row[j] for j in kept)
    difference = [sum(row[j] * v[j][c] for j in range(len(row))) / whole - sum(row[j] * v[j][c] for j in kept) / some
                  for c in range(len(v[0]))]
    return math.hypot(*difference), 2 * (1 - some / whole) * max(math.hypot(*v[j]) for j in range(len(row)))


def check_budget(b, f, rows, values):
    rho, k, at = b["budget_share"], f["lomax_k"], f["lomax_b_x"]
    keep = [math.ceil(rho * len(row) - 1e-9) for row in rows]
    dropped = [1 - sum(sorted(row, reverse=True)[:n]) / sum(row) for row, n in zip(rows, keep)]
    mean = lambda of: sum(of) / len(of)
    near(b["kept_share"], mean([n / len(row) for row, n in zip(rows, keep)]), "kept share")
    near(b["dropped_mass"], mean(dropped), "dropped mass")
    if k is not None:
        cut = mean([law_cut(n / len(row), k, at, len(row)) for row, n in zip(rows, keep)])
        near(b["law_cut_dropped_mass"], cut, "law, cut", 1e-5)
        near(b["twice_law_cut"], 2 * cut, "twice", 1e-5)
        inner = k - (k - 1) * ((1 - epsilon) / (rho - epsilon)) ** (1 / (k - 1))
        assert b["theorem_41_informative_share"] == (inner > 0), (b, inner)
        if inner > 0:
            near(b["theorem_41_bound"], 2.1 * (1 - rho) / (1 - epsilon) ** 2 * inner, "Theorem 4.1")
        else:
            assert b["theorem_41_bound"] is None, b
    if k is not None and k > 2:
        near(b["law_dropped_mass"], mean([law(n / len(row), k) for row, n in zip(rows, keep)]), "law", 1e-5)
    else:
        assert b["law_dropped_mass"] is None, b
    assert (b["output_error"] is None) == (not values), b
    if values:
        errors = [output_error(row, v, n) for row, v, n in zip(rows, values, keep)]
        near(b["output_error"], mean([e for e, _ in errors]), "output error", 1e-5)
        near(b["output_error_bound"], mean([bound for _, bound in errors]), "its bound", 1e-5)


measured = []
for layer in range(n_layer):
    for which in range(n_head):
        rows = list(rows_of(layer, which))
        values = values_of(layer, which)
        f = said["layers"][layer]["heads"][which]
        check_laws(f, rows)
        mine = [b for b in said["layer_budgets"] if (b["layer"], b["head"]) == (layer, which)]
        assert len(mine) == len(said["budgets"]) > 1
        for b in mine:
            check_budget(b, f, rows, values)
        measured.append([b["dropped_mass"] for b in mine])
for i, b in enumerate(said["budgets"]):
    near(b["dropped_mass"], sum(m[i] for m in measured) / len(measured), "mean over heads and layers")


# ---- Theorem 3.1: g_jl = v_j W_O W_Q k_l, eps = max_{j <= t, j != l} |g_jl| / g_ll ----

def matrix(weights, layer, kind, first, n, by_row):
    """Rows (or columns) [first, first + n) of a projection, as a list of them."""
    (rows, columns), w = weights[f"model.decoder.layers.{layer}.self_attn.{kind}.weight"]
    return [[w[(first + i) * columns + j] if by_row else w[j * columns + first + i] for j in range(columns if by_row else rows)]
            for i in range(n)]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def repeat_head(weights, layer, which, i, sequence, n, total):
    get = lambda kind: floats(query(store, "SELECT blob FROM vectors WHERE sequence = ? AND layer = ? AND head = ?"
                                    " AND kind = ?", sequence, layer, which, kind)[0][0])
    d = len(get("v")) // n
    q, k, v = ([x[t * d:(t + 1) * d].tolist() for t in range(n)] for x in map(get, "qkv"))
    wq, wo = matrix(weights, layer, "q_proj", which * d, d, True), matrix(weights, layer, "out_proj", which * d, d, False)
    m = [[dot(o, r) for r in wq] for o in wo]
    scores = head(store, i, layer, which)
    vm = [[sum(x[a] * m[a][b] for a in range(d)) for b in range(d)] for x in v]
    g = [[dot(x, y) for y in k] for x in vm]
    for t in range(n - 1):
        out = [sum(scores[t][j] * v[j][a] for j in range(t + 1)) for a in range(d)]
        length = math.hypot(*(sum(out[a] * wo[a][c] for a in range(d)) for c in range(len(wo[0]))))
        for l in range(t + 1):
            total["pairs"] += 1
            if g[l][l] <= 0:
                continue
            eps = max([abs(g[j][l]) for j in range(t + 1) if j != l], default=0) / g[l][l]
            total["positive_pairs"] += 1
            total["informative_pairs"] += 3 * eps < 1
            total["above_zero_pairs"] += scores[t][l] > 3 * eps
            total["mean_epsilon"] += eps
            total["least_epsilon"] = min(total["least_epsilon"], eps)
            ahead = sum(scores[t][j] * g[j][l] for j in range(t + 1)) / length
            total["step"] += abs(dot(q[t + 1], k[l]) - ahead) / (g[l][l] / length)
            unit = (dot(q[t + 1], k[l])) / (g[l][l] / length)
            total["violations"] += not scores[t][l] - 3 * eps <= unit <= scores[t][l] + 3 * eps


def check_theorem_31(checkpoint):
    from scores import read_safetensors
    weights = read_safetensors(f"{checkpoint}/model.safetensors")
    for layer in range(n_layer):
        total = dict.fromkeys(("pairs", "positive_pairs", "informative_pairs", "above_zero_pairs", "violations",
                               "mean_epsilon", "step"), 0)
        total["least_epsilon"] = math.inf
        for which in range(n_head):
            for i, (sequence, n) in enumerate(sequences):
                repeat_head(weights, layer, which, i, sequence, n, total)
        found = said["theorem_31"][layer]
        for key in "pairs", "positive_pairs":
            assert found[key] == total[key], (layer, key, found[key], total[key])
        for key in "informative_pairs", "above_zero_pairs", "violations":     # one that lies on the edge may differ
            assert abs(found[key] - total[key]) <= 2, (layer, key, found[key], total[key])
        near(found["least_epsilon"], total["least_epsilon"], "least eps", 1e-4)
        near(found["mean_epsilon"], total["mean_epsilon"] / total["positive_pairs"], "mean eps", 1e-3)
        near(found["step"], total["step"] / total["positive_pairs"], "step", 1e-3)
        assert found["lemma_b2"] <= 1 + 1e-4, found


if len(sys.argv) > 6:
    check_theorem_31(sys.argv[6])
