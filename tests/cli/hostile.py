#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trace stores as nobody's program writes them: values of other kinds, tables without rules, schemas that would run
something. Every command that reads a store runs on a copy of each. None may crash, hang or take more memory than
there is reason for, each must say one sentence that names the file when it refuses, and a refusal leaves nothing.
    hostile.py schemas STORE MODEL TOKENS              views, triggers, virtual tables, computed columns, pages in circles
    hostile.py values STORE MODEL TOKENS FIRST COUNT   cells and rows, one to three at a time, fixed seed"""
import os
import random
import resource
import shutil
import sqlite3
import struct
import subprocess
import sys
import time

from damage import COPY, FOLDER
from scores import PROGRAM

SEED, PATIENCE, MEMORY = 20231121, 120, 4 << 30
OUT = os.path.abspath("hostile-out")               # a file in /dev is written to, never made
SLOW = os.environ.get("SH_HOSTILE_LOG")                         # where to note what took long
sanitized = b"__asan" in open(PROGRAM, "rb").read()            # its shadow is larger than any limit
faults = 0


def figures():
    """The figures that read a store, as the program lists them."""
    said = subprocess.run([PROGRAM, "plot", "--help"], capture_output=True, text=True, check=True).stdout
    listed = said.split("\nfigures:\n")[1].split("\n\n")[0].splitlines()
    names = [line.split()[0] for line in listed if line[2] != " "]
    assert len(names) > 10 and "heatmap" in names, said
    return [name for name in names if name != "allocation"]     # of a plan's file


def commands(model, tokens):
    db, out = ["--db", COPY], ["-o", OUT + "/"]
    policy = ["--policy", "h2o:recent=4", "--budget", "8"]
    figure = [["plot", name, *db, "-o", OUT + "/f.gp", "--script"] for name in figures()]
    return [["verify", *db], ["info", COPY], ["info", COPY, "--hash"], ["persistence", *db, "--run", "1"],
            ["persistence", *db, "--run", "2", "--alpha", "split"], ["persistence", *db, "--run", "3"],
            ["replay", *db, "--run", "1", *policy, "--force"], ["replay", *db, "--run", "2", *policy],
            ["plan", *db, "--run", "1", "--policy", "h2o:recent=4", "--target-recall", "0.8", "-o", OUT + "/p.json"],
            ["theory", *db, "--run", "1", "--replicas", "2"], ["drift", *db, "--run", "1", "--model", model, *policy],
            ["eval", *db, "--model", model, "--tokens", tokens, *policy],
            ["capacity", *db, "--model", "opt-125m", "--gpu", "all", "--length", "64", "--min-recall", "0.5"],
            ["trace", *db, "--model", model, "--tokens", tokens], ["merge", "--db", OUT + "/merged.db", COPY],
            ["merge", *db, COPY + ".sound"], ["report", *db, "-o", OUT + "/r.html"],
            ["export", *db, "--sequence", "0", "--layer", "0", "--head", "0", *out[:1], out[1] + "x.npy"],
            ["export", *db, "--sequence", "4", "--layer", "1", "--head", "1", *out[:1], out[1] + "x.tsv"], *figure]


def fault(what):
    global faults
    faults += 1
    print(what, flush=True)


def limit():
    if not sanitized:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def run(arguments):
    began = time.time()
    try:
        done = subprocess.run([PROGRAM, *arguments, "--threads", "1", "-q"], capture_output=True, timeout=PATIENCE,
                              preexec_fn=limit, check=False)
    except subprocess.TimeoutExpired:
        return "hangs", ""
    if SLOW and time.time() - began > 5:
        print(f"# {time.time() - began:.0f} s: {arguments}", file=sys.stderr)
    return done.returncode, done.stderr.decode(errors="replace")


def judge(what, arguments, status, said):
    name = " ".join(arguments[:2])
    if status not in (0, 1, 2):
        fault(f"{what}: {name}: status {status}\n{said[:3000]}")
    elif status and not said.startswith("shears: "):
        fault(f"{what}: {name}: status {status} without a sentence: {said[:300]!r}")
    elif status and COPY not in said and "out of memory" not in said:
        fault(f"{what}: {name}: the file is not named: {said[:300]!r}")
    elif status and arguments[0] != "merge" and os.listdir(OUT):        # what was merged before is kept
        fault(f"{what}: {name}: left behind: {os.listdir(OUT)}")


def run_judged(what, arguments):
    """Did it refuse?"""
    shutil.rmtree(OUT, ignore_errors=True)
    os.mkdir(OUT)
    status, said = run(arguments)
    judge(what, arguments, status, said)
    return status != 0


def check(what, changed, all_commands):
    """Does any of them refuse it?"""
    refused = False
    for arguments in all_commands:
        shutil.copy(changed, COPY)
        refused |= run_judged(what, arguments)
        for end in "-wal", "-shm", "-journal":
            if os.path.exists(COPY + end):
                os.unlink(COPY + end)
    return refused


def change(store, statements):
    """A changed copy; statements that SQLite refuses change nothing."""
    changed = FOLDER.name + "/changed.db"
    shutil.copy(store, changed)
    db = sqlite3.connect(changed)
    db.execute("PRAGMA foreign_keys = 0")
    for sql in statements:
        try:
            db.executescript(sql) if isinstance(sql, str) else db.execute(*sql)
        except (sqlite3.Error, OverflowError, ValueError):
            pass
    db.commit()
    db.close()
    return changed


TABLES = ["model", "run", "sequence", "done", "scores", "vectors", "head_stats", "result", "typed", "plan", "shard",
          "held", "measured"]


def columns(db, table):
    return [row[1] for row in db.execute(f"PRAGMA table_info({table})")]


def loose(store):
    """The same rows in tables without types, keys and rules."""
    path = FOLDER.name + "/loose.db"
    shutil.copy(store, path)
    db = sqlite3.connect(path)
    db.executescript("DROP VIEW trace_summary; DROP VIEW persistence_per_layer; DROP VIEW bytes_per_layer;")
    for table in TABLES:
        names = ", ".join(f'"{name}"' for name in columns(db, table))
        if names:
            db.executescript(f"CREATE TABLE l_{table} ({names}); INSERT INTO l_{table} SELECT * FROM {table};"
                             f"DROP TABLE {table}; ALTER TABLE l_{table} RENAME TO {table};")
    db.commit()
    db.close()
    return path


VALUES = [None, 0, 1, -1, 2, 7, 2**31 - 1, 2**31, -2**31, 2**40, 2**63 - 1, -2**63, 0.5, -0.0, 1e308, float("inf"),
          float("-inf"), "", "abc", "1", "a\0b", "é\x1b[31m\u202e", "<script>'\"`$(id)`", "x" * 70000, b"", b"\0", b"\xff\xfe",
          bytes(100), bytes(1 << 20), "{}", "[]", '{"a":', "[" * 100000, '{"policy": 5}', "full", "sparse", "summary", "f32",
          "q", "%s%n", "-"]


def pick(chance, db, table):
    """A statement on one cell or row."""
    names = columns(db, table)
    count = db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    row = chance.randrange(max(count, 1))
    place = f"rowid IN (SELECT rowid FROM {table} LIMIT 1 OFFSET {row})"
    if chance.randrange(4) == 0:
        place = "1"
    name, other = chance.choice(names), chance.choice(names)
    times = chance.choice(["-", "2 * ", "1000003 * ", "1 + ", "-1 + "])
    kind, byte = chance.choice(["TEXT", "BLOB", "REAL", "INTEGER"]), chance.choice([0, 34, 39, 60, 123, 255])
    rows = [f"DELETE FROM {table}", f"INSERT INTO {table} SELECT * FROM {table}"]
    cells = [f"(SELECT {other} FROM {table} LIMIT 1)", f"{times}{name}", f"CAST({name} AS {kind})", f"substr({name}, 2)",
             f"{name} || char({byte})"] + 5 * ["?"]
    statements = rows + [f"UPDATE {table} SET {name} = {cell}" for cell in cells]
    statement = chance.choice(statements) + f" WHERE {place}"
    return (statement, (chance.choice(VALUES),)) if "= ?" in statement else statement


def values(store, model, tokens, first, count):
    base, all_commands, refused = loose(store), commands(model, tokens), 0
    plain = sqlite3.connect(base)
    filled = [t for t in TABLES if columns(plain, t) and plain.execute(f"SELECT count(*) FROM {t}").fetchone()[0]]
    for n in range(first, first + count):
        chance = random.Random(SEED + n)
        statements = [pick(chance, plain, chance.choice(filled)) for _ in range(chance.randrange(1, 4))]
        shown = "; ".join(repr(s)[:160] for s in statements)
        refused += check(f"values {n}: {shown}", change(base, statements), all_commands)
    if refused < count // 3:
        fault(f"only {refused} of {count} stores were refused by any command")


def over(table, sql):
    return f"ALTER TABLE {table} RENAME TO other; CREATE VIEW {table} AS {sql}"


ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT "
SCHEMAS = [
    over("scores", "SELECT * FROM other"),
    over("run", ENDLESS + "i AS id, model, key || i AS key, program, backend, device, dtype, weight_bits, record, codec, vectors,"
         " statistics, first_layer, last_layer, seed, command, started, seconds FROM n, other"),
    over("sequence", ENDLESS + "i AS id, 1 AS run, 'x' AS source, 1 AS n_tokens, zeroblob(4) AS tokens FROM n"),
    over("result", ENDLESS + "i AS id, 1 AS run, 'replay' AS command, '{}' AS settings, 'kept_mass' AS metric, NULL AS layer,"
         " NULL AS head, 0.5 AS value FROM n"),
    "DROP TABLE head_stats; CREATE TABLE head_stats (id, sequence, layer, head, blob AS (zeroblob(900000000)));"
    "INSERT INTO head_stats SELECT 1, 0, 0, 0",
    "DROP TABLE scores; CREATE TABLE scores (id, sequence, layer, head, first_row, n_rows, window, codec,"
    " blob AS (zeroblob(900000000)))",
    "DROP TABLE typed; CREATE VIRTUAL TABLE typed USING fts5 (command, settings, line)",
    "DROP TABLE done; CREATE VIRTUAL TABLE done USING rtree (sequence, layer, x)",
    "DROP TABLE plan; CREATE TABLE plan (id, model, name COLLATE nobody, json)",
    "DROP TABLE result; CREATE TABLE result (id INTEGER PRIMARY KEY, run, command, settings, metric, layer, head,"
    " value DEFAULT (abs(-9223372036854775808)))",
    "DROP TABLE model", "DROP TABLE run", "DROP TABLE sequence", "DROP TABLE done", "DROP TABLE result", "DROP TABLE vectors",
    "ALTER TABLE run RENAME COLUMN key TO kex",
]


def circles(store, table):
    """A table whose pages lead to its rows over and over: 400 ** 12 times."""
    data, db = bytearray(open(store, "rb").read()), sqlite3.connect(store)
    root, size = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()[0], 65536
    leaf, first, depth = data[(root - 1) * size:root * size], len(data) // size + 1, 12
    assert leaf[0] in (13, 5), (table, leaf[0])                 # a table's, whether it has a page or more
    for k in range(depth):
        cell = struct.pack(">IB", first + k, 1)                 # the child; a key
        page = struct.pack(">BHHHBI", 5, 0, 400, size - 5, 0, first + k) + struct.pack(">H", size - 5) * 400
        page += bytes(size - len(page) - 5) + cell
        if k == 0:
            data[(root - 1) * size:root * size] = page
        else:
            data += page
    data += leaf
    data[28:32] = struct.pack(">I", len(data) // size)
    changed = FOLDER.name + "/changed.db"
    with open(changed, "wb") as f:
        f.write(data)
    return changed


def schemas(store, model, tokens):
    all_commands = commands(model, tokens)
    without_index = loose(store)
    few = [c for c in all_commands if c[0] in ("info", "merge", "export")]       # seconds each: every row is looked at
    for table in "run", "sequence":
        if not check(f"{table} in circles", circles(without_index, table), few):
            fault(f"{table} in circles: nobody refuses it")
    for sql in SCHEMAS:
        if not check(sql, change(store, [sql]), all_commands):
            fault(f"{sql}: nobody refuses it")
    trigger = "CREATE TRIGGER t AFTER INSERT ON result BEGIN DELETE FROM scores; END"
    shutil.copy(change(store, [trigger]), COPY)
    for arguments in all_commands:
        if arguments[0] not in ("trace", "merge"):              # they may add blocks
            run_judged(trigger, arguments)
    before, after = (sqlite3.connect(p).execute("SELECT count(*) FROM scores").fetchone()[0] for p in (store, COPY))
    if after != before:
        fault(f"a trigger of the file ran: {after} blocks of {before} are left")


if __name__ == "__main__":
    what, path, *rest = sys.argv[1:]
    shutil.copy(path, COPY + ".sound")
    {"schemas": schemas, "values": values}[what](path, *rest[:2], *map(int, rest[2:]))
    sys.exit(faults > 0)
