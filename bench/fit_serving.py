#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the constants of the serving engines (planner/catalog/engines) to a table of measured servers, and prints how far
off the clock is: in the fit, and with one model, one board, one engine left out in turn.

    bench/fit_serving.py --table runs.tsv --shears ./shears --write planner/catalog/engines

The program itself predicts (shears calibrate --only-errors --rows), so there is one implementation. A constant of an
engine on a generation of GPUs is base * generation's factor * engine's factor of its group; each is drawn towards a
starting value by a prior, so that what the table does not tell stays where physics puts it. Gauss-Newton on logarithmic
errors, large ones counted less; the same table gives the same files. Needs numpy.
"""
import argparse
import csv
import io
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np

ENGINES = ['vllm', 'sglang', 'trtllm']
GENERATIONS = ['hopper', 'blackwell']
BOARDS = {'H100': 'hopper', 'H200': 'hopper', 'B200': 'blackwell', 'GB200': 'blackwell', 'B300': 'blackwell'}

# name: start, group of the engines' factors, deviations of the logarithm: base, generation
CONSTANTS = {
    'dense_memory': (0.75, 'memory', 0.1, 0.064),
    'narrow_memory': (0.5, 'memory', 0.2, 0.08),
    'expert_memory': (0.70, 'memory', 0.2, 0.12),
    'cache_memory': (0.60, 'memory', 0.3, 0.16),
    'state_memory': (0.50, 'memory', 0.4, 0.08),
    'decode_products': (0.40, 'products', 0.4, 0.24),
    'decode_experts': (0.10, 'products', 0.4, 0.24),
    'decode_attention': (0.40, 'products', 0.4, 0.16),
    'prompt_products': (0.60, 'prompts', 0.2, 0.16),
    'prompt_experts': (0.20, 'prompts', 0.3, 0.16),
    'prompt_attention': (0.40, 'prompts', 0.3, 0.16),
    'vectors': (12, 'prompts', 0.4, 0.12),
    'routed': (6, 'prompts', 0.5, 0.12),
    'layer': (25e-6, 'layers', 0.25, 0.096),
    'experts': (35e-6, 'layers', 0.3, 0.24),
    'latent': (30e-6, 'layers', 0.4, 0.16),
    'linear': (40e-6, 'layers', 0.4, 0.16),
    'indexed': (50e-6, 'layers', 0.4, 0.16),
    'quantised': (10e-6, 'layers', 0.4, 0.16),
    'blocks': (15e-6, 'layers', 0.4, 0.16),
    'launch': (15, 'launch', 0.5, 0.16),
    'sum': (5e-6, 'sums', 0.3, 0.16),
    'sum_more': (0.8e-6, 'sums', 0.4, 0.16),
    'link': (0.5, 'sums', 0.3, 0.16),
    'step': (0.7e-3, 'host', 0.5, 0.16),
    'sequence': (6e-6, 'host', 0.5, 0.16),
    'request': (15e-3, 'requests', 0.5, 0.008),
    'token': (2e-6, 'requests', 0.5, 0.008),
}
GROUP_DEVIATION = {'memory': 0.07, 'products': 0.2, 'prompts': 0.2, 'layers': 0.15, 'launch': 0.4, 'sums': 0.15,
                   'host': 0.4, 'requests': 0.4}
GROUPS = list(GROUP_DEVIATION)
SHARES = {'dense_memory', 'narrow_memory', 'expert_memory', 'cache_memory', 'state_memory', 'decode_products', 'decode_experts',
          'decode_attention', 'prompt_products', 'prompt_experts', 'prompt_attention', 'link'}
RULES = {                       # hopper, blackwell: as the engines' defaults and launch scripts have them
    'vllm': {'chunk': (8192, 8192), 'sequences': (1024, 1024), 'memory': (0.9, 0.9), 'poll': (1, 1), 'poll_busy': (1, 1)},
    'sglang': {'chunk': (16384, 16384), 'sequences': (1024, 1024), 'memory': (0.9, 0.9), 'poll': (1, 10), 'poll_busy': (1, 30)},
    'trtllm': {'chunk': (8192, 16384), 'sequences': (1024, 1024), 'memory': (0.9, 0.9), 'poll': (1, 1), 'poll_busy': (1, 1)},
}
RULE_TEXT = {'chunk': ('tokens', 'most tokens of a step'), 'sequences': ('', 'most sequences that run at once'),
             'memory': ('1', "share of the GPU's memory that the engine takes"),
             'poll': ('steps', 'decoding steps between checks for new requests'),
             'poll_busy': ('steps', 'the same with 16 or more clients')}

NAMES = list(CONSTANTS)
N = len(NAMES)
SIZE = 2 * N + 2 * len(ENGINES) * len(GROUPS)
DEVIATION = np.array([CONSTANTS[k][2] for k in NAMES] + [CONSTANTS[k][3] for k in NAMES] +
                     [GROUP_DEVIATION[g] for _ in ENGINES for g in GROUPS] +
                     [GROUP_DEVIATION[g] * 0.3 for _ in ENGINES for g in GROUPS])


def constants(theta, engine, generation, bump=None):
    """Of an engine on a generation; bump (i, x): the logarithm of the i-th is x larger."""
    out = []
    for i, k in enumerate(NAMES):
        x = np.log(CONSTANTS[k][0]) + theta[i]
        if generation == 'blackwell':
            x += theta[N + i]
        at = 2 * N + ENGINES.index(engine) * len(GROUPS) + GROUPS.index(CONSTANTS[k][1])
        x += theta[at]
        if generation == 'blackwell':
            x += theta[at + len(ENGINES) * len(GROUPS)]
        x += bump[1] if bump and bump[0] == i else 0
        out.append(min(np.exp(x), 0.98) if k in SHARES else np.exp(x))
    return out


def profile(theta, engine, units, release, fitted, errors=(), bump=None):
    """theta None: nothing but what the GPUs' numbers allow."""
    lines = [f'engine\t{engine}', f'release\t{release}', f'fitted\t{fitted}']
    for k, (low, high) in RULES[engine].items():
        lines.append(f'rule\t{k}\t{low:g}\t{high:g}\t' + '\t'.join(RULE_TEXT[k]))
    values = [[1 if k in SHARES else 1e-7 if k == 'step' else 1e-6 if k == 'request' else 0.1 if k in ('vectors', 'launch')
               else 0.01 if k == 'routed' else 1e-8 for k in NAMES] if theta is None
              else constants(theta, engine, g, bump) for g in GENERATIONS]
    for i, k in enumerate(NAMES):
        unit, text = units.get(k, ('-', '-'))
        lines.append(f'constant\t{k}\t{values[0][i]:.5g}\t{values[1][i]:.5g}\t{unit}\t{text}')
    return '\n'.join(lines + list(errors)) + '\n'


class Table:
    def __init__(self, path, shears):
        self.path, self.shears = path, shears
        with open(path) as f:
            self.rows = list(csv.DictReader((l for l in f if not l.startswith('#')), delimiter='\t'))
        self.tpot = np.array([float(r['tpot_ms']) for r in self.rows]) / 1000
        self.ttft = np.array([float('nan') if r['client'] == 'unknown' else float(r['ttft_ms']) / 1000
                              for r in self.rows])
        self.kind = None
        self.folder = tempfile.mkdtemp(prefix='fit-serving-')
        self.blackwell = np.tile([BOARDS[r['gpu'].split('-')[0]] == 'blackwell' for r in self.rows], 2)
        self.engine = np.tile([r['engine'] for r in self.rows], 2)

    def predict(self, theta, bump=None):
        """TPOT and TTFT of every row, in seconds."""
        where = tempfile.mkdtemp(dir=self.folder)
        paths = []
        for e in ENGINES:
            paths.append(os.path.join(where, e + '.tsv'))
            with open(paths[-1], 'w') as f:
                f.write(profile(theta, e, {}, '-', '-', (), bump))
        run = subprocess.run([self.shears, 'calibrate', self.path, '--only-errors', '--rows', '--csv', '--columns',
                              'id,kind,tpot_predicted_s,ttft_predicted_s', '--engine', ','.join(paths)],
                             capture_output=True, text=True, check=False)
        for p in paths:
            os.remove(p)
        os.rmdir(where)
        if run.returncode:
            sys.exit(run.stderr)
        rows = list(csv.DictReader(io.StringIO(run.stdout)))
        self.kind = [r['kind'] for r in rows]
        return (np.array([float(r['tpot_predicted_s'] or 'nan') for r in rows]),
                np.array([float(r['ttft_predicted_s'] or 'nan') for r in rows]))

    def residuals(self, theta, bump=None):
        tpot, ttft = self.predict(theta, bump)
        return np.concatenate([np.log(tpot / self.tpot), np.log(ttft / self.ttft)])


NOISE, FIRST = 0.3, 0.5        # of a row's logarithm: rows of a curve err alike, so one tells little; weight of a TTFT
FAR = 0.08                      # beyond it the absolute error counts


def weights(r):
    n = len(r) // 2
    w = np.where(np.isnan(r), 0, np.concatenate([np.ones(n), np.full(n, FIRST ** 2)]) / NOISE ** 2)
    far = np.abs(np.nan_to_num(r)) / FAR
    return np.where(far > 1, w / np.maximum(far, 1), w)


def loss(r, theta, use):
    x = np.nan_to_num(r) * use
    return float(np.sum(weights(r) * x * x) + np.sum((theta / DEVIATION) ** 2))


def slopes(table, theta, r, pool, by=0.03):
    """A row's errors depend on the constants of its engine and generation alone, so each constant is moved for all of
    these at once."""
    of = np.array(list(pool.map(lambda i: np.nan_to_num((table.residuals(theta, (i, by)) - r) / by), range(N)))).T
    out = np.zeros((len(r), SIZE))
    out[:, :N] = of
    out[:, N:2 * N] = of * table.blackwell[:, None]
    for e, engine in enumerate(ENGINES):
        for g, group in enumerate(GROUPS):
            mine = of[:, [i for i, k in enumerate(NAMES) if CONSTANTS[k][1] == group]].sum(1) * (table.engine == engine)
            at = 2 * N + e * len(GROUPS) + g
            out[:, at] = mine
            out[:, at + len(ENGINES) * len(GROUPS)] = mine * table.blackwell
    return out


def newton(theta, r, jacobian, use):
    w = weights(r) * use
    x = np.nan_to_num(r)
    a = jacobian.T @ (w[:, None] * jacobian) + np.diag(1 / DEVIATION ** 2)
    return -np.linalg.solve(a, jacobian.T @ (w * x) + theta / DEVIATION ** 2)


def fit(table, theta, use, pool, rounds, keep=None):
    r = table.residuals(theta)
    best = loss(r, theta, use)
    for turn in range(rounds):
        step = newton(theta, r, slopes(table, theta, r, pool), use)
        for length in (1, 0.5, 0.25):
            tried = theta + length * step
            now = table.residuals(tried)
            if loss(now, tried, use) < best * (1 - 1e-4):
                break
        else:
            break
        theta, r, best = tried, now, loss(now, tried, use)
        if keep is not None:
            np.save(keep, theta)
            print(f'  round {turn + 1}: loss {best:.1f}, ' + text(errors(r, np.ones(len(r) // 2, bool))), flush=True)
    return theta, r


def errors(r, rows):
    n = len(r) // 2
    tpot, ttft = np.exp(r[:n][rows]) - 1, np.exp(r[n:][rows]) - 1
    tpot, ttft = tpot[~np.isnan(tpot)], ttft[~np.isnan(ttft)]
    return (len(tpot), np.mean(np.abs(tpot)) if len(tpot) else float('nan'),
            len(ttft), np.mean(np.abs(ttft)) if len(ttft) else float('nan'))


def text(x):
    first = '' if np.isnan(x[3]) else f', TTFT {100 * x[3]:.1f} % of {x[2]}'
    return f'TPOT {100 * x[1]:.1f} % of {x[0]}' + first


def left_out(table, theta, full, column, pool):
    """Each value of a column left out in turn; the residuals of rows while they were left out."""
    out = np.full(len(full), np.nan)
    values = sorted({r[column] for r in table.rows})
    n = len(table.rows)

    def one(value):
        rows = np.array([r[column] == value for r in table.rows])
        use = np.tile(~rows, 2).astype(float)
        return rows, fit(table, theta, use, pool, 3)[1]
    print(f'one {column} left out in turn:')
    for value in values:
        rows, r = one(value)
        both = np.tile(rows, 2)
        out[both] = r[both]
        print(f'  {value:22}' + text(errors(r, rows)), flush=True)
    print(f'  {"all":22}' + text(errors(out, np.ones(n, bool))), flush=True)
    return out


def units_of(shears_header):
    """Units and meanings of the constants, as the program's header has them."""
    import re
    with open(shears_header) as f:
        return {m[1]: (m[2], m[3]) for m in re.finditer(r'X\((\w+), "(.*?)", [^"]*, "(.*?)"\)', f.read())}


def main():
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    p.add_argument('--table', required=True)
    p.add_argument('--shears', default='./shears')
    p.add_argument('--write', help='folder for the three files')
    p.add_argument('--start', help='a file of --keep to start from')
    p.add_argument('--keep', help='file for the state of the fit')
    p.add_argument('--rounds', type=int, default=8)
    p.add_argument('--jobs', type=int, default=2)
    p.add_argument('--only', action='store_true', help='leave nothing out')
    a = p.parse_args()
    table = Table(a.table, a.shears)
    theta = np.zeros(SIZE)
    if a.start and os.path.exists(a.start):
        old = np.load(a.start)
        theta = old if len(old) == SIZE else theta
    with ThreadPoolExecutor(a.jobs) as pool:
        r = table.residuals(theta)
        n = len(table.rows)
        everything = np.ones(n, bool)
        print('at the start: ' + text(errors(r, everything)), flush=True)
        theta, r = fit(table, theta, np.ones(2 * n), pool, a.rounds, keep=a.keep)
        print('in the fit:   ' + text(errors(r, everything)))
        out = r
        if not a.only:
            out = left_out(table, theta, r, 'model', pool)
        if a.write:
            write(a, table, theta, out)
        if not a.only:
            left_out(table, theta, r, 'gpu', pool)
            left_out(table, theta, r, 'engine', pool)


def write(a, table, theta, out):
    here = os.path.dirname(os.path.abspath(__file__))
    units = units_of(os.path.join(here, '..', 'planner', 'clock', 'engine.h'))
    board = np.array([BOARDS[r['gpu'].split('-')[0]] for r in table.rows])
    kind = np.array(table.kind)
    engine = np.array([r['engine'] for r in table.rows])
    allowed = table.predict(None)[0] <= table.tpot
    print(f'{np.sum(~allowed)} runs are faster than the GPUs allow (cached prompts?), and do not count in the files')
    for e in ENGINES:
        rows = []
        for g in GENERATIONS:
            for k in sorted(set(kind)):
                x = errors(out, allowed & (engine == e) & (board == g) & (kind == k))
                if x[0]:
                    first = '-' if np.isnan(x[3]) else f'{100 * x[3]:.1f}'
                    rows.append(f'error\t{g}\t{k}\t{x[0]}\t{100 * x[1]:.1f}\t{first}')
        mine = [r for r in table.rows if r['engine'] == e]
        versions = sorted({r['version'].split('-')[0] for r in mine if r['version'][0].isdigit()})
        dates = [r['date'] for r in mine if r['date'] != '-']
        fitted = (f'{len(mine)} runs of {len({r["model"] for r in mine})} models on '
                  f'{", ".join(sorted({r["gpu"] for r in mine}))}, '
                  f'{min(dates)} to {max(dates)}')
        head = ('# SPDX-License-Identifier: Apache-2.0\n'
                '# Constants of an engine (planner/clock/engine.h explains the rows), made by bench/fit_serving.py from\n'
                '# measurements of InferenceX and AIConfigurator (Apache-2.0). The rows "error" are of models that were '
                'left out\n# of the fit: mean |predicted / measured - 1|, per cent, of TPOT and of TTFT;\n# runs that are faster than the GPUs allow do not count.\n')
        with open(os.path.join(a.write, e + '.tsv'), 'w') as f:
            f.write(head + profile(theta, e, units, f'{versions[0]} to {versions[-1]}', fitted, rows))


if __name__ == '__main__':
    main()
