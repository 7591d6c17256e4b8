# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command line read: exported heads, safetensors, the rows of a trace store.
Standard library only. A head is a list of T rows of T numbers."""
import array
import json
import os
import sqlite3
import struct
import subprocess

PROGRAM = os.environ["SHEARS"]


def square(data, n):
    numbers = array.array("f", data)
    assert len(numbers) == n * n, f"{len(numbers)} numbers, expected {n} x {n}"
    return [list(numbers[i * n:(i + 1) * n]) for i in range(n)]


def read_npy(path):
    raw = open(path, "rb").read()
    assert raw[:8] == b"\x93NUMPY\x01\0", raw[:8]
    size, = struct.unpack("<H", raw[8:10])
    assert (10 + size) % 64 == 0, size
    facts = eval(raw[10:10 + size], {"__builtins__": {}})
    assert facts["descr"] == "<f4" and facts["fortran_order"] is False, facts
    rows, columns = facts["shape"]
    assert rows == columns, facts
    return square(raw[10 + size:], rows)


def read_safetensors(path):
    """name -> (shape, array of float32)"""
    raw = open(path, "rb").read()
    size, = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + size])
    header.pop("__metadata__", None)
    assert all(t["dtype"] == "F32" for t in header.values())
    begin = 8 + size
    return {name: (t["shape"], array.array("f", raw[begin + t["data_offsets"][0]:begin + t["data_offsets"][1]]))
            for name, t in header.items()}


def read_tsv(path):
    lines = open(path).read().split("\n")
    assert lines[0] == "query\tkey\tscore" and lines[-1] == "", lines[0]
    cells = [line.split("\t") for line in lines[1:-1]]
    n = 1 + max(int(c[0]) for c in cells)
    assert len(cells) == n * (n + 1) // 2, f"{len(cells)} lines for {n} tokens"
    head = [[0.0] * n for _ in range(n)]
    for q, k, score in cells:
        head[int(q)][int(k)] = struct.unpack("f", struct.pack("f", float(score)))[0]
    return head


def shears(*arguments):
    """Run the program; its stdout."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, f"{arguments}: status {done.returncode}: {done.stderr}"
    return done.stdout


def head(db, sequence, layer, which):
    shears("export", "--db", db, "--sequence", sequence, "--layer", layer, "--head", which, "-o", "log/head.npy")
    return read_npy("log/head.npy")


def query(db, sql, *values):
    """Rows of a store that nobody writes to; it is not touched."""
    connection = sqlite3.connect(f"file:{db}?mode=ro", uri=True)
    try:
        return connection.execute(sql, values).fetchall()
    finally:
        connection.close()


def blobs(db, first_layer=0, last_layer=10**6):
    """All that was recorded of some layers: key -> bytes."""
    found = {}
    for table, key in (("scores", "sequence, layer, head, first_row, n_rows, window, codec"),
                       ("vectors", "sequence, layer, kind, head, codec"), ("head_stats", "sequence, layer, head")):
        for *place, blob in query(db, f"SELECT {key}, blob FROM {table} WHERE layer BETWEEN ? AND ?",
                                  first_layer, last_layer):
            found[table, *place] = blob
    return found


def same_blobs(a, b):
    assert a, "nothing was recorded"
    assert a.keys() == b.keys(), f"only in one: {list(a.keys() ^ b.keys())[:5]}"
    differing = [key for key in a if a[key] != b[key]]
    assert not differing, f"{len(differing)} of {len(a)} blobs differ, the first is {differing[0]}"


def tokens(db):
    """The token ids of every sequence, in order of recording."""
    return [list(array.array("i", t)) for t, in query(db, "SELECT tokens FROM sequence ORDER BY id")]


def load(path):
    return json.load(open(path))
