# SPDX-License-Identifier: Apache-2.0
"""Eviction by plain lists, from the definitions: what `shears replay` must say of a store. Usage:

    kept.py STORE QUERY_HEADS KV_HEADS LAYERS WINDOW said.json kept.jsonl PREFILL recorded|renormalised

said.json has one result; kept.jsonl a line for every sequence, layer, KV head and step."""
import json
import math
import sys

from scores import head, load, query, tokens


def knobs(text):
    return dict(item.split("=") for item in text.split(",")) if text else {}


def leaves(policy, k, cached, t, rows):
    """The key by which tokens leave, the smallest first; rows[i]: what the policy saw of token i."""
    if policy in ("window", "streaming"):
        return {j: j for j in cached}
    if policy == "h2o":
        return {j: sum(rows[i][j] for i in range(j, t)) for j in cached}
    if policy == "tova":
        return {j: rows[t - 1][j] for j in cached}
    assert policy == "scissorhands" and k["threshold"] == "n" and k["counts"] == "raw"
    back = range(max(0, t - int(k["window"])), t)
    return {j: -sum(j in rows[i] and rows[i][j] < 1 / len(rows[i]) for i in back) for j in cached}


def drop_of(k, budget):
    drop = float(k.get("drop", 1))
    return max(1, int(drop * budget if drop < 1 else drop))


def simulate(policy, k, budget, prefill, attention, recorded, window):
    """The cached tokens at every step, itself included; attention: one matrix for each query head."""
    n, cached, kept, rows = len(attention[0]), [], [], []
    budget = min(budget, window) if window else budget
    for t in range(n):
        if t >= prefill and len(cached) >= budget:
            want = max(drop_of(k, budget), len(cached) - budget + 1)
            dead = [j for j in cached if window and j <= t - window]
            free = [j for j in cached if j not in dead and int(k.get("sinks", 0)) <= j < t - int(k.get("recent", 0))]
            key = leaves(policy, k, cached, t, rows)
            order = dead + sorted(free, key=lambda j: (key[j], j))
            cached = [j for j in cached if j not in order[:want]]
        cached = cached + [t]
        seen = {j: 0.0 for j in cached}
        for a in attention:
            mass = 1.0 if recorded else sum(a[t][j] for j in cached)
            for j in cached:
                seen[j] += a[t][j] / mass / len(attention)
        rows.append(seen)
        kept.append(cached)
    return kept


def figures(attention, kept, window):
    """Of one KV head: sums over rows of kept mass, without sinks and self, pivotal recall."""
    sums = {name: [0.0, 0] for name in ("kept_mass", "kept_mass_no_sink", "pivotal_recall")}
    for t, cached in enumerate(kept):
        values = {name: [] for name in sums}
        for a in attention:
            row, n = a[t], min(t + 1, window) if window else t + 1
            values["kept_mass"].append(sum(row[j] for j in cached) / sum(row))
            others = [j for j in range(t) if j >= 4]
            if sum(row[j] for j in others) > 1e-6:
                values["kept_mass_no_sink"].append(sum(row[j] for j in cached if j in others) / sum(row[j] for j in others))
            pivotal = [j for j in range(t + 1) if row[j] > 1 / n]
            if pivotal:
                values["pivotal_recall"].append(sum(j in cached for j in pivotal) / len(pivotal))
        for name, found in values.items():
            if found:
                sums[name][0] += sum(found) / len(found)
                sums[name][1] += 1
    return sums


def main(store, n_head, n_kv_head, n_layer, window, said, dump, prefill, rows):
    n_head, n_kv_head, n_layer, window, prefill = map(int, (n_head, n_kv_head, n_layer, window, prefill))
    said, group = load(said)["results"], n_head // n_kv_head
    assert len(said) == 1, said
    said = said[0]
    lines = {(x["sequence"], x["layer"], x["head"], x["step"]): x["kept"] for x in map(json.loads, open(dump))}
    texts = tokens(store)
    assert len(lines) == n_layer * n_kv_head * sum(map(len, texts)), len(lines)
    means = {name: [] for name in ("kept_mass", "kept_mass_no_sink", "pivotal_recall")}
    for layer in range(n_layer):
        of_heads = {name: [] for name in means}
        for kv in range(n_kv_head):
            total = {name: [0.0, 0] for name in means}
            for s, text in enumerate(texts):
                attention = [head(store, s, layer, kv * group + g) for g in range(group)]
                budget = said["budget"]
                budget = budget if isinstance(budget, int) else max(1, math.floor(budget * len(text) + 0.5))
                kept = simulate(said["policy"], knobs(said["knobs"]), budget, prefill, attention, rows == "recorded", window)
                for t, cached in enumerate(kept):
                    assert lines[s, layer, kv, t] == cached, (s, layer, kv, t, lines[s, layer, kv, t], cached)
                for name, (value, count) in figures(attention, kept, window).items():
                    total[name][0] += value
                    total[name][1] += count
            for name in means:
                of_heads[name].append(total[name][0] / total[name][1])
        for name in means:
            means[name].append(sum(of_heads[name]) / n_kv_head)
        assert abs(said["layers"][layer]["kept_mass"] - means["kept_mass"][-1]) < 1e-5
    for name in means:
        wanted = sum(means[name]) / n_layer
        assert abs(said[name] - wanted) < 1e-5, (name, said[name], wanted)
    longest = max(map(len, texts))
    assert said["peak_tokens"] <= longest and 0 < said["mean_tokens"] <= said["peak_tokens"]


main(*sys.argv[1:])
