#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory of replaying a long trace: a store made long by repeating its sequences, and the peak of a replay.

    bench/long_trace.py ./shears STORE.db LONG.db BYTES [shears replay options]

Copies the first run of STORE.db and repeats its sequences until LONG.db holds BYTES (50e9; there must be as
much room), then replays it. Prints one JSON object: bytes, sequences, scores, seconds and peak memory of the
short and of the long replay. f32 scores of random weights hardly compress, so that bytes come fast.
"""
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time

shears, short, long = sys.argv[1:4]
wanted, options = float(sys.argv[4]), sys.argv[5:] or ["--policy", "window", "--budget", "0.2"]


def lengthen():
    shutil.copy(short, long)
    db = sqlite3.connect(long, isolation_level=None)
    for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -200000"):
        db.execute(f"PRAGMA {pragma}").fetchall()
    first = [row[0] for row in db.execute("SELECT id FROM sequence WHERE run = 1 ORDER BY id")]
    last, begin, repeat = max(first), time.time(), 0
    columns = {table: ", ".join(c[1] for c in db.execute(f"PRAGMA table_info({table})") if c[1] not in ("id", "sequence"))
               for table in ("scores", "vectors", "head_stats", "done")}
    while os.path.getsize(long) < wanted:
        repeat += 1
        db.execute("BEGIN")
        for s in first:
            last += 1
            db.execute("INSERT INTO sequence (id, run, source, n_tokens, tokens) SELECT ?, run, source || ?, n_tokens, "
                       "tokens FROM sequence WHERE id = ?", (last, f" again {repeat}", s))
            for table, names in columns.items():
                db.execute(f"INSERT INTO {table} (sequence, {names}) SELECT ?, {names} FROM {table} WHERE sequence = ?",
                           (last, s))
        db.execute("COMMIT")
    db.close()
    return time.time() - begin


def replay(store):
    command = [shears, "replay", "--db", store, "--json", "-q", "--force"] + options
    begin = time.time()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as p:
        said = json.load(p.stdout)
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = status
    assert status == 0, status
    scores = sqlite3.connect(store).execute(
        "SELECT sum(s.n_tokens * (s.n_tokens + 1) / 2) * m.n_head * m.n_layer FROM sequence s JOIN run r ON r.id = s.run "
        "JOIN model m ON m.id = r.model").fetchone()[0]
    return {"bytes": os.path.getsize(store), "sequences": said["sequences"], "scores": scores,
            "seconds": round(time.time() - begin, 1), "peak_kib": usage.ru_maxrss,
            "kept_mass": said["results"][0]["kept_mass"]}


before = replay(short)
took = lengthen()
after = replay(long)
chip = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
print(json.dumps({"chip": chip.group(1) if chip else "", "options": options, "lengthening_s": round(took, 1),
                  "short": before, "long": after}, indent=1))
