#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the Python package costs: arrays of a store compared with a reader that decodes in Python, and a replay called from
Python compared with the command.

    SHEARS_LIBRARY=$PWD/libshears.so.0 PYTHONPATH=python bench/reading_speed.py ./shears [FOLDER] [BYTES] [TURNS]

Makes a store of BYTES (by default 1e9) in FOLDER (by default a temporary one): the demo model's attention on its own text,
repeated, in log8.

    arrays    every head's scores as float32 [rows, keys]: Store.scores, and Store.matrix of tests/oracle/shears_trace.py
              on a sample of heads, the two in turn, their arrays compared
    replay    h2o at a budget of 0.2, all of the store, in turn: Store.replay in this process, `shears replay` in one of its
              own, TURNS times (by default 3); their results compared

The least time of each counts. Processor seconds are those of all threads."""
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
SAMPLE = 97                             # one head of so many is read by the reader in Python
POLICY = "h2o:recent=10"


def make(program, path, wanted):
    """A store of that size: sequences of 1024 tokens, repeated."""
    demo = os.path.join(TOP, "demo")
    subprocess.run([program, "trace", "-q", "--model", os.path.join(demo, "model"), "--db", path, "--text",
                    os.path.join(demo, "text", "natural.txt"), "--length", "1024", "--count", "32"], check=True,
                   stdout=subprocess.DEVNULL)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA synchronous = OFF")
    columns = {table: ", ".join(c[1] for c in db.execute("PRAGMA table_info(%s)" % table) if c[1] not in ("id", "sequence"))
               for table in ("sequence", "scores", "vectors", "head_stats", "done")}
    own = columns.pop("sequence")
    first = [i for i, in db.execute("SELECT id FROM sequence ORDER BY id")]
    last = first[-1]
    while os.path.getsize(path) < wanted:
        db.execute("BEGIN")
        for i in first:
            last += 1
            db.execute("INSERT INTO sequence (id, %s) SELECT ?, %s FROM sequence WHERE id = ?" % (own, own), (last, i))
            for table, names in columns.items():
                db.execute("INSERT INTO %s (sequence, %s) SELECT ?, %s FROM %s WHERE sequence = ?" % (
                    table, names, names, table), (last, i))
        db.execute("COMMIT")
    db.close()


def timed(call):
    """(what it returns, seconds, processor seconds of this process and of those that it has waited for)"""
    used = lambda: sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    began, before = time.monotonic(), used()
    value = call()
    return value, time.monotonic() - began, used() - before


def least(times):
    return [min(column) for column in zip(*times)]


def arrays(path):
    import shears
    sys.path.insert(0, os.path.join(TOP, "tests", "oracle"))
    import shears_trace
    new, old = shears.open(path), shears_trace.Store(path)
    run = new.runs.rows()[0]
    heads = [(s, layer, head) for s in new.sequences["id"].tolist() for layer in range(run["layers"])
             for head in range(run["heads"])]
    scores, spent = 0, []
    for place in heads:
        array, *times = timed(lambda: new.scores(*place))
        scores += array.shape[0] * (array.shape[0] + 1) // 2
        spent.append(times)
    wall, used = map(sum, zip(*spent))
    print("store: %d bytes, %d arrays, %d scores" % (os.path.getsize(path), len(heads), scores))
    print("all arrays by the library: %.2f s (%.2f of a processor), %.0f million scores/s" % (wall, used, scores / wall / 1e6))
    spent = {"library": [], "in Python": []}
    for place in heads[::SAMPLE]:
        a, *times = timed(lambda: new.scores(*place))
        spent["library"].append(times)
        b, *times = timed(lambda: old.matrix(*place))
        spent["in Python"].append(times)
        if not numpy.array_equal(a, b):
            sys.exit("the arrays of sequence %d, layer %d, head %d differ" % place)
    (wall, used), (old_wall, old_used) = ([sum(column) for column in zip(*spent[how])] for how in ("library", "in Python"))
    print("%d of the arrays: library %.3f s, in Python %.3f s: %.1f times as fast (%.1f by processor seconds)" % (
        len(heads[::SAMPLE]), wall, old_wall, old_wall / wall, old_used / used))


def replay(program, path, turns):
    import shears
    store = shears.open(path)
    command = [program, "replay", "--db", path, "--policy", POLICY, "--budget", "0.2", "--force", "--json", "-q"]
    spent = {"command": [], "Python": []}
    for _ in range(turns):
        said, *times = timed(lambda: json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))
        spent["command"].append(times)
        found, *times = timed(lambda: store.replay(policies=[POLICY], budgets=[0.2], force=True))
        spent["Python"].append(times)
        if found.results["kept_mass"].tolist() != [row["kept_mass"] for row in said["results"]]:
            sys.exit("the results of the command and of Python differ")
    (wall, used), (own, own_used) = least(spent["command"]), least(spent["Python"])
    print("replay: command %.3f s, from Python %.3f s: %+.1f %% (%+.1f %% by processor seconds)" % (
        wall, own, 100 * (own / wall - 1), 100 * (own_used / used - 1)))


def main(program, folder=None, wanted="1e9", turns="3"):
    with tempfile.TemporaryDirectory(dir=folder) as work:
        path = os.path.join(work, "speed.db")
        make(os.path.abspath(program), path, float(wanted))
        arrays(path)
        replay(os.path.abspath(program), path, int(turns))


if __name__ == "__main__":
    main(*sys.argv[1:])
