# SPDX-License-Identifier: Apache-2.0
"""The Python reader against the program and its SQL functions. `reader.py whole STORE`: everything in it;
`reader.py fuzz STORE MODULE`: damaged blobs, about which both must say the same."""
import ctypes
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys

import numpy as np

import shears_trace
from scores import shears

E = 2e-6                                # a log8 level is rounded from exp() twice


def load_extension(db, module):
    db.enable_load_extension(True)
    db.load_extension(module)


def same(mine, theirs, what):
    assert mine.shape == theirs.shape, f"{what}: {mine.shape}, expected {theirs.shape}"
    worst = np.abs(mine - theirs) / np.maximum(np.abs(theirs), 1e-30)
    assert not mine.size or worst.max() <= E, f"{what}: off by {worst.max()}"


def whole(path):
    store, n = shears_trace.Store(path), 0
    for sequence, layer, head in store.db.execute("SELECT DISTINCT sequence, layer, head FROM scores").fetchall():
        shears("export", "--db", path, "--sequence", sequence, "--layer", layer, "--head", head, "-o", "head.npy")
        same(store.matrix(sequence, layer, head), np.load("head.npy"), f"{path}: {sequence}, {layer}, {head}")
        n += 1
    return n


def stats(path, module):
    """Every number of shears_stats_json, through the sqlite3 shell."""
    said = subprocess.run(["sqlite3", "-batch", path, f".load {module}",
                           "SELECT sequence, layer, head, shears_stats_json(blob) FROM head_stats"],
                          capture_output=True, text=True, check=True).stdout
    store, n = shears_trace.Store(path), 0
    never = lambda lists: [[-1 if x is None else x for x in one] for one in lists]
    for line in said.splitlines():
        sequence, layer, head, text = line.split("|", 3)
        mine, theirs = store.stats(int(sequence), int(layer), int(head)), json.loads(text)
        for key in ("length", "rows", "entries", "below_mean", "below_1pct", "rows_of_two", "entropy", "mass_top",
                    "normalised_entropy", "sparse"):
            assert mine[key] == theirs[key], f"{key}: {mine[key]}, expected {theirs[key]}"
        assert mine["recents"] == theirs["spec"]["recents"] and mine["splits"] == theirs["spec"]["splits"]
        assert len(mine["alphas"]) == len(theirs["spec"]["alphas"])
        assert never(theirs["last"]) == mine["last"].tolist(), "last"
        assert [never(lane) for lane in theirs["first"]] == mine["first"].tolist(), "first"
        for mine_low, theirs_low in zip(mine["low"], theirs["low"], strict=True):
            assert mine_low.tolist() == theirs_low[:len(mine_low)] and not any(theirs_low[len(mine_low):]), "low"
        flat = np.array([[[(j["sum"], j["expected"], j["rows"]) for j in cell] for cell in lane]
                         for lane in theirs["jaccard"]])
        for i, key in enumerate(("sum", "expected", "rows")):
            assert (mine["jaccard"][key] == flat[..., i]).all(), key
        n += 1
    return n


def damaged(rng, blob):
    blob = bytearray(blob)
    for _ in range(rng.randint(1, 3)):
        how, at = rng.randrange(4), rng.randrange(len(blob))
        if how == 0:
            blob[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            blob[at:at + 4] = rng.choice([0, 1, 0xff, 0xffff, 0x7fffffff, 0xffffffff]).to_bytes(4, "little")
        elif how == 2:
            del blob[at:]
            blob += b"\0"
        else:
            blob[at:at] = rng.randbytes(3)
    return bytes(blob)


zstd = shears_trace.zstd
zstd.ZSTD_compress.restype = ctypes.c_size_t


def frame(plain):
    to = ctypes.create_string_buffer(len(plain) + 1000)
    n = zstd.ZSTD_compress(to, ctypes.c_size_t(len(to)), plain, ctypes.c_size_t(len(plain)), 1)
    return to.raw[:n]


def variants(rng, block):
    """Damaged bytes, damaged contents of sound frames, and other numbers next to the blob."""
    blob, codec, first_row, n_rows, window = block
    if rng.randrange(2) and codec < 16:
        plain = shears_trace.unzstd(blob, 1 << 26)
        return frame(damaged(rng, plain)), codec, first_row, n_rows, window
    if rng.randrange(3) and codec >= 16:
        length = np.frombuffer(blob[:16], "<u4").tolist()
        ends = np.cumsum([16] + length)
        parts = [shears_trace.unzstd(blob[a:b], 1 << 26) for a, b in zip(ends, ends[1:])]
        i = rng.randrange(4)
        parts[i] = damaged(rng, parts[i]) if parts[i] else parts[i]
        if rng.randrange(2):
            parts[i] = parts[i][:length[i]]
        frames = [frame(part) for part in parts]
        return np.array([len(f) for f in frames], "<u4").tobytes() + b"".join(frames), codec, first_row, n_rows, window
    if rng.randrange(2):
        return damaged(rng, blob), codec, first_row, n_rows, window
    odd = [-1, 0, 1, 5, 16, 18, 64, 1 << 22, (1 << 22) + 1, 1 << 31, -(1 << 22), -(1 << 31), 1 << 40]
    return blob, *[rng.choice(odd) if rng.randrange(3) == 0 else x for x in (codec, first_row, n_rows, window)]


def decoded(block):
    try:
        return [(q, first + int(k), float(row[k])) for q, first, row, rest in shears_trace.block_rows(*block)
                for k in np.flatnonzero(row) if row[k] == row[k]]     # SQLite takes what is no number for NULL
    except ValueError:
        return None


def fuzz(path, module):
    """As many refused by one as by the other, and the same scores in the rest."""
    db, rng, count, agreed = sqlite3.connect(path), random.Random(7), 400, 0
    module and load_extension(db, module)
    blocks = db.execute("SELECT blob, codec, first_row, n_rows, window FROM scores").fetchall()
    signal.alarm(60)
    for i in range(count if blocks else 0):
        block = variants(rng, rng.choice(blocks))
        mine = decoded(block)
        if not module:
            continue
        try:
            theirs = [r for r in db.execute("SELECT q, key, score FROM shears_rows(?, ?, ?, ?, ?)", block) if r[2]]
        except sqlite3.OperationalError:
            theirs = None
        said = f"{i}: codec {block[1]}, rows {block[2]} + {block[3]}, window {block[4]}"
        assert (mine is None) == (theirs is None), f"{said}: only one of two refuses"
        if mine is not None:
            a, b = np.array(mine, "f8").reshape(-1, 3), np.array(theirs, "f8").reshape(-1, 3)
            assert a.shape == b.shape and (a[:, :2] == b[:, :2]).all(), f"{said}: other keys"
            good = np.isfinite(b[:, 2])
            assert (np.isfinite(a[:, 2]) == good).all(), said
            assert not good.any() or np.allclose(a[good, 2], b[good, 2], rtol=E, atol=0), f"{said}: other scores"
            agreed += 1
    for blob, in db.execute("SELECT blob FROM head_stats LIMIT 4").fetchall():
        plain = shears_trace.unzstd(blob, 1 << 26)
        for i in range(100):
            try:
                shears_trace.read_stats(frame(damaged(rng, plain)) if i % 2 else damaged(rng, blob))
            except ValueError:
                pass
    return agreed


if __name__ == "__main__":
    print({"whole": whole, "stats": stats, "fuzz": fuzz}[sys.argv[1]](*sys.argv[2:]))
