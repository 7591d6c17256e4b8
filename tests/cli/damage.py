#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damages copies of a trace store, one fault at a time, and runs every reading command on each. None
may crash or hang, and verify must find what matters. Prints what was wrong; silence is success.
    damage.py flips STORE FIRST COUNT     one bit of one byte, places spread over the file, fixed seed
    damage.py cuts STORE                  the file cut short
    damage.py lies STORE                  a sound database whose columns contradict each other"""
import ctypes
import ctypes.util
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile

from scores import PROGRAM, blobs

SEED = 20230526
FAST = "/dev/shm"                                               # where persistence need not wait for a disk
FOLDER = tempfile.TemporaryDirectory(dir=FAST if os.access(FAST, os.W_OK) else None)
COPY = FOLDER.name + "/damaged.db"
COMMANDS = {
    "verify": ["verify", "--db", COPY, "-q"],
    "info": ["info", COPY],
    "persistence": ["persistence", "--db", COPY, "-q", "--run", "1"],
    "persistence of statistics": ["persistence", "--db", COPY, "-q", "--run", "2", "--alpha", "split"],
    "export": ["export", "--db", COPY, "--sequence", "0", "--layer", "0", "--head", "0", "-o", "damaged.npy"],
    "export of sparse scores": ["export", "--db", COPY, "--sequence", "4", "--layer", "1", "--head", "1", "-o", "damaged.npy"],
    "plot": ["plot", "heatmap", "--db", COPY, "--run", "1", "--script", "-o", "damaged.gp", "-q"],
}
zstd = ctypes.util.find_library("zstd")
zstd = zstd and ctypes.CDLL(zstd)
faults = 0


def fault(what):
    global faults
    faults += 1
    print(what)


def run(arguments):
    try:
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, timeout=120)
    except subprocess.TimeoutExpired:
        return "hangs", ""
    return done.returncode, done.stderr.decode(errors="replace")


def check(what):
    """Run all commands on the copy; verify's status."""
    for end in "-wal", "-shm", "-journal":
        assert not os.path.exists(COPY + end), end              # of the last case
    first = None
    for name, arguments in COMMANDS.items():
        status, said = run(arguments)
        first = status if first is None else first
        if status not in (0, 1, 2, 3):
            fault(f"{what}: {name}: status {status}\n{said[:1500]}")
        elif status and not said.startswith("shears: "):
            fault(f"{what}: {name}: status {status} without a sentence: {said[:200]!r}")
        elif status and COPY not in said and "out of memory" not in said:
            fault(f"{what}: {name}: the file is not named: {said[:200]!r}")
        elif name == "verify" and status == 2:
            fault(f"{what}: verify says it was misused: {said[:200]!r}")
    return first


def unpacked(key, blob, whole):
    """What a blob holds; None when that cannot be told."""
    if key[0] == "scores":                                      # the copy has it in its place
        status, _ = run(["export", "--db", COPY, "--sequence", str(key[1]), "--layer", str(key[2]), "--head", str(key[3]),
                         "-o", "one.npy"])
        return open("one.npy", "rb").read() if status == 0 else None
    if zstd is None:
        return whole                                            # without libzstd only scores are compared
    plain = ctypes.create_string_buffer(1 << 22)
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    n = zstd.ZSTD_decompress(plain, ctypes.c_size_t(1 << 22), blob, ctypes.c_size_t(len(blob)))
    return plain.raw[:n] if n <= 1 << 22 else None


def changes_nothing(store, keys, now, original):
    """zstd does not look at every bit of a frame's head: what comes out may be what it was."""
    for key in keys:
        if now is None or key not in now:
            return False
        damaged = unpacked(key, now[key], original[key])
        shutil.copy(COPY, "kept.db")
        shutil.copy(store, COPY)
        sound = unpacked(key, original[key], original[key])
        shutil.copy("kept.db", COPY)
        if damaged is None or damaged != sound:
            return False
    return True


def flips(store, first, count):
    whole, original = open(store, "rb").read(), blobs(store)
    used = [i for i, byte in enumerate(whole) if byte]          # most of a small store is empty pages
    chance, in_blob, found = random.Random(SEED), 0, 0
    for n in range(count):
        at = used[chance.randrange(len(used) * n // count, len(used) * (n + 1) // count)]
        bit = chance.randrange(8)
        if n < first:
            continue
        with open(COPY, "wb") as f:
            f.write(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1:])
        status = check(f"bit {bit} of byte {at}")
        try:
            now = blobs(COPY)
        except sqlite3.Error:
            now = None
        hurt = [key for key in original if now is None or now.get(key) != original[key]]
        in_blob += bool(hurt)
        found += bool(hurt) and status == 1
        if hurt and status == 0 and not changes_nothing(store, hurt, now, original):
            fault(f"bit {bit} of byte {at}: {hurt[0]} is not what it was, and verify passes")
    if in_blob < count // 4:
        fault(f"only {in_blob} of {count} flips met a blob")
    print(f"# {in_blob} flips met a blob, verify found {found} of them", file=sys.stderr)


def cuts(store):
    whole, original = open(store, "rb").read(), blobs(store)
    for size in (0, 1, 15, 16, 99, 100, 512, 4096, 65535, 65536, 65537, 3 * 65536, len(whole) // 2, len(whole) - 65536,
                 len(whole) - 1):
        with open(COPY, "wb") as f:
            f.write(whole[:size])
        try:
            same = blobs(COPY) == original
        except sqlite3.Error:
            same = False
        if check(f"cut to {size} bytes") != 1 and not same:
            fault(f"cut to {size} bytes: verify finds nothing wrong")


LIES = [
    "UPDATE scores SET n_rows = n_rows - 1", "UPDATE scores SET n_rows = n_rows + 1", "UPDATE scores SET n_rows = 0",
    "UPDATE scores SET n_rows = -5", "UPDATE scores SET n_rows = 2147483647", "UPDATE scores SET first_row = first_row + 1",
    "UPDATE scores SET first_row = -1", "UPDATE scores SET first_row = 4194304",
    "UPDATE scores SET window = 3", "UPDATE scores SET window = -1", "UPDATE scores SET window = 2147483647",
    "UPDATE scores SET codec = 7", "UPDATE scores SET codec = (codec + 16) % 32", "UPDATE scores SET codec = 0",
    "UPDATE scores SET codec = 1", "UPDATE scores SET codec = -1", "UPDATE scores SET codec = 18",
    "UPDATE scores SET blob = x''", "UPDATE scores SET blob = 'text'", "UPDATE scores SET blob = x'28b52ffd0000'",
    "UPDATE scores SET blob = zeroblob(100)", "UPDATE scores SET head = -1 - head",
    "UPDATE scores SET head = head + 100000", "DELETE FROM scores WHERE head = 1", "DELETE FROM scores", "DROP TABLE scores",
    # the rows of a longer sequence in the place of a shorter one's, and the other way round
    "UPDATE scores SET sequence = 9 - sequence WHERE sequence IN (0, 1); UPDATE scores SET sequence = sequence - 8 WHERE sequence > 7",
    "UPDATE scores SET blob = (SELECT blob FROM scores AS s WHERE s.sequence = 1 LIMIT 1), n_rows = 88 WHERE sequence = 0",
    "UPDATE sequence SET n_tokens = 3", "UPDATE sequence SET n_tokens = 3, tokens = zeroblob(12)",
    "UPDATE sequence SET n_tokens = n_tokens - 1, tokens = substr(tokens, 5)",
    "UPDATE sequence SET n_tokens = n_tokens + 1, tokens = zeroblob(4 * n_tokens + 4)",
    "UPDATE sequence SET n_tokens = 0, tokens = x''", "UPDATE sequence SET n_tokens = -1",
    "UPDATE sequence SET n_tokens = 1 << 31", "UPDATE sequence SET n_tokens = 2147483647", "UPDATE sequence SET tokens = x''",
    "DELETE FROM sequence WHERE id = 0", "DELETE FROM sequence", "DELETE FROM done", "DELETE FROM run", "DELETE FROM model",
    "INSERT INTO done VALUES (0, 99)", "UPDATE run SET record = 'summary'", "UPDATE run SET record = 'sparse'",
    "UPDATE run SET record = 'nothing'", "UPDATE run SET codec = 'zip'", "UPDATE run SET statistics = '{'",
    "UPDATE run SET statistics = '{}'", "UPDATE run SET statistics = replace(statistics, '400', '5')",
    "UPDATE run SET statistics = replace(statistics, 'split', '7/t')", "UPDATE run SET vectors = 'xyz'",
    "UPDATE run SET vectors = 'q'", "UPDATE run SET first_layer = 1", "UPDATE run SET last_layer = 0",
    "UPDATE run SET last_layer = 7", "UPDATE run SET first_layer = -1", "UPDATE model SET n_head = 5",
    "UPDATE model SET n_head = 3", "UPDATE model SET n_head = 0", "UPDATE model SET n_head = 100000",
    "UPDATE model SET n_layer = 1", "UPDATE model SET n_layer = 2147483647", "UPDATE model SET n_kv_head = 9",
    "UPDATE model SET d_head = 9", "UPDATE model SET d_head = -8", "UPDATE model SET d_head = 2147483647",
    "UPDATE model SET n_kv_head = 0", "UPDATE head_stats SET blob = x'00'",
    "UPDATE head_stats SET blob = (SELECT blob FROM head_stats AS h WHERE h.sequence <> head_stats.sequence LIMIT 1)",
    "UPDATE head_stats SET head = head + 100", "DELETE FROM head_stats", "DELETE FROM head_stats WHERE head = 2",
    "UPDATE vectors SET blob = x''", "UPDATE vectors SET kind = 'x' || kind", "UPDATE vectors SET codec = 2",
    "UPDATE vectors SET head = head + 100", "DELETE FROM vectors WHERE kind = 'v'", "DROP TABLE head_stats", "DROP TABLE model",
    "ALTER TABLE scores RENAME COLUMN blob TO data", "ALTER TABLE run RENAME COLUMN seconds TO minutes",
]
# These tell of a smaller or an unfinished run, or of something that nothing depends on.
HARMLESS = {"INSERT INTO done VALUES (0, 99)", "DELETE FROM done", "UPDATE scores SET window = 2147483647",
            "UPDATE run SET first_layer = 1", "UPDATE run SET last_layer = 0", "UPDATE model SET n_layer = 2147483647", "UPDATE model SET n_kv_head = 9"}


def lies(store):
    for sql in LIES:
        shutil.copy(store, COPY)
        db = sqlite3.connect(COPY)
        db.executescript("PRAGMA foreign_keys = 0;" + sql)
        db.commit()
        db.close()
        if check(sql) == 0 and sql not in HARMLESS:
            fault(f"{sql}: verify finds nothing wrong")


if __name__ == "__main__":
    what, store, *numbers = sys.argv[1:]
    {"flips": flips, "cuts": cuts, "lies": lies}[what](store, *map(int, numbers))
    sys.exit(faults > 0)
