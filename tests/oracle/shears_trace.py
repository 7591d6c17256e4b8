# SPDX-License-Identifier: Apache-2.0
"""A second reader of trace stores, written from doc/trace-format.md: needs numpy, and libzstd.

    import shears_trace
    store = shears_trace.Store("traces.db")
    store.sequences                                  # [(id, run, source, tokens), ...]
    store.matrix(sequence=0, layer=3, head=5)        # float32 [T, keys], 0 where masked or not stored
    for q, first_key, scores, rest in store.rows(0, 3, 5): ...     # row by row; rest: mass not stored
    store.vectors(0, 3, "k", 1)                      # float32 [T, d_head]
    store.stats(0, 3, 5)                             # statistics of sparse and summary runs
    store.persistence_per_layer()                    # [{"model": ..., "alpha": ..., "recent": ..., "layer": ...}, ...]
    store.sequence_sums()                            # {settings of an evaluation: float64 [sequences, 5], ...}

What is damaged raises ValueError."""
import ctypes
import ctypes.util
import json
import math
import sqlite3
import struct
import numpy as np

zstd = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
for name, result in ("getFrameContentSize", ctypes.c_ulonglong), ("decompress", ctypes.c_size_t):
    getattr(zstd, "ZSTD_" + name).restype = result
MOST_TOKENS, MOST_SCORES = 1 << 22, 1 << 26


def need(good, what):
    if not good:
        raise ValueError(what)


def unzstd(blob, limit):
    """The bytes of one frame that says its size, at most `limit`."""
    need(isinstance(blob, bytes), "not a blob")
    size = zstd.ZSTD_getFrameContentSize(blob, ctypes.c_size_t(len(blob)))
    need(size <= limit and size >> 17 <= len(blob) // 4, "not a zstd frame of at most %d bytes" % limit)
    to = ctypes.create_string_buffer(max(size, 1))
    got = zstd.ZSTD_decompress(to, ctypes.c_size_t(size), blob, ctypes.c_size_t(len(blob)))
    need(got == size, "damaged zstd frame")
    return to.raw[:size]


def unplane(plain, kind):
    """Numbers whose bytes lie in planes: all lowest bytes, then all next ones, and so on."""
    width = np.dtype(kind).itemsize
    need(len(plain) % width == 0, "bytes are left over")
    planes = np.frombuffer(plain, "u1").reshape(width, -1)
    return np.ascontiguousarray(planes.T).view(kind).ravel()


# ---- log8, see src/base/log8.h and traces/log8.c ----
CELLS, HIGHEST = 476, 220
edge = lambda k: math.log(2) if k == 9 else math.log(5) if k == 21 else k * math.log(10) / 30
cell = [(math.exp(edge(HIGHEST - i)), math.exp(edge(HIGHEST - i + 1)), edge(HIGHEST - i + 1) - edge(HIGHEST - i))
        for i in range(CELLS)]
MEAN = np.array([min((high - low) / width, 1.0396 * low) for low, high, width in cell], "f4")
LEAST = np.array([1.000001 * low for low, high, width in cell], "f4")


def log8_row(code):
    n, first, f4 = len(code), int(code.min()), np.float32
    if n == 1:
        return np.ones(1, "f4")
    octave = n.bit_length() - 1
    top = HIGHEST - 1 - ((octave << 16) + (n << 16 >> octave) - 65536) * 9030 // (1000 << 16)
    cut, scale = min(first + 60, 242), f4(1 / n)
    level = np.concatenate([MEAN[top:top + cut + 1], MEAN[top + cut:top + 255]]) * scale
    level[244:] = 0
    middle = level[first]
    level[first] = min(middle, f4(1))
    if middle > 0.5:                                # what the others leave, within its cell
        left = 1 - (level[code].sum(dtype="f8") - float(level[first]))
        ceiling = min(LEAST[top + first - 1] * f4(0.999998) * scale, f4(1))
        level[first] = min(max(f4(left), LEAST[top + first] * scale), ceiling)
    if cut == first + 60:
        level[cut + 1] = max(min(level[cut], f4(0.01) * level[first] * f4(0.99999)), LEAST[top + cut] * scale)
        level[cut] = f4(0.01) * max(middle, level[first]) * f4(1.00001)
    return level[code]


# ---- sparse, see traces/sparse.c ----
BOUNDARY = [0.0]
for k in range(1, 100):
    parts = math.ceil(math.log((k + 1) / k) / 0.07739782)
    BOUNDARY += [k * ((k + 1) / k) ** (i / parts) if i else float(k) for i in range(parts)]
BOUNDARY = np.array(BOUNDARY + [100 * math.exp(i * 0.07739782) for i in range(257 - len(BOUNDARY))])


def sparse_rows(blob, codec, first_row, start, keys):
    need(len(blob) >= 16, "too short")
    length, frames, at = struct.unpack("<4I", blob[:16]), [], 16
    width, most = (4 if codec == 16 else 1), int(keys.sum())
    for n, limit in zip(length, (4 * len(keys), 4 * len(keys), most, most * width)):
        need(n <= len(blob) - at, "a part reaches past the end")
        frames.append(unzstd(blob[at:at + n], limit))
        at += n
    need(at == len(blob) and len(frames[0]) == len(frames[1]) == 4 * len(keys), "parts do not fit the rows")
    stored, rest = np.frombuffer(frames[0], "<u4").astype("i8"), np.frombuffer(frames[1], "<f4")
    gap = np.frombuffer(frames[2], "u1")
    end = np.flatnonzero(gap != 255)                # where each stored score's gap ends
    total = int(stored.sum())
    need((stored <= keys).all() and len(end) == total and len(frames[3]) == total * width and
         (len(gap) == 0 or gap[-1] != 255), "counts do not fit")
    place = np.cumsum(gap, dtype="i8")[end] + np.arange(total)
    values, from_ = np.frombuffer(frames[3], "<f4" if width == 4 else "u1"), 0
    for i, n in enumerate(stored):
        mine = slice(from_, from_ + n)
        key = place[mine] - (place[from_ - 1] + 1 if from_ else 0)
        need(n == 0 or key[-1] < keys[i], "row %d is damaged" % (first_row + i))
        score = values[mine]
        if width == 1:
            middle = np.sqrt(BOUNDARY[score] * BOUNDARY[score.astype("i8") + 1])
            score = np.minimum(np.where(score == 0, 1.0, middle) / keys[i], 1).astype("f4")
        row = np.zeros(keys[i], "f4")
        row[key] = score
        yield first_row + i, int(start[i]), row, float(rest[i])
        from_ += n


def block_rows(blob, codec, first_row, n_rows, window):
    """Rows (q, first_key, scores, rest) of a block, all scores of the keys that q sees."""
    need(isinstance(blob, bytes) and all(isinstance(x, int) for x in (codec, first_row, n_rows, window)), "no block")
    need(0 <= first_row <= MOST_TOKENS and 1 <= n_rows <= MOST_TOKENS and -MOST_TOKENS <= window < 1 << 31, "no block")
    t = np.arange(first_row, first_row + n_rows)
    start = np.maximum(t - window + 1, 0) if window > 0 else np.zeros_like(t)
    keys = t + 1 - start if window >= 0 else np.full_like(t, -window)
    count = int(keys.sum())
    need(count <= MOST_SCORES, "a block of %d scores" % count)
    if codec in (16, 18):
        yield from sparse_rows(blob, codec, first_row, start, keys)
        return
    need(codec in (0, 1, 2), "codec %r is unknown" % (codec,))
    kind = ("<f4", "<f2", "u1")[codec]
    x = unplane(unzstd(blob, count * np.dtype(kind).itemsize), kind)
    need(len(x) == count, "%d scores, expected %d" % (len(x), count))
    for q, first, row in zip(t, start, np.split(x, np.cumsum(keys)[:-1])):
        yield int(q), int(first), log8_row(row) if codec == 2 else row.astype("f4"), 0.0


def read_stats(blob):
    """See traces/stats.h and traces/stats_pack.c; last and first are -1 for never."""
    plain = unzstd(blob, 1 << 27)
    need(len(plain) >= 18 and plain[:5] == b"SHST\1", "no statistics")
    sparse, n_alpha, n_recent, n_split, zero, T, window = struct.unpack_from("<5B2I", plain, 5)
    need(1 <= T <= 1 << 24 and max(n_alpha, n_recent, n_split) <= 8, "statistics out of range")
    width = 2 if T < 65536 else 4
    try:
        at = 18
        take = lambda form: (struct.unpack_from("<" + form, plain, at), at + struct.calcsize("<" + form))
        alphas = []
        for _ in range(n_alpha):
            a, at = take("Bd")
            alphas.append((("row", "split", "value")[a[0]], a[1]))
        recents, at = take("%dI" % n_recent)
        splits, at = take("%dd" % n_split)
        sums, at = take("5Q3d")
    except (struct.error, IndexError):
        raise ValueError("statistics end early") from None
    lanes = sum(n_split if a[0] == "split" else 1 for a in alphas) if n_recent else 0
    out = dict(zip(("rows", "entries", "below_mean", "below_1pct", "rows_of_two", "entropy", "normalised_entropy",
                    "mass_top"), sums), length=T, sparse=bool(sparse), alphas=alphas, recents=list(recents),
               splits=list(splits), window=window)
    need(all(0 < s < 1 for s in splits), "a split is out of range")
    ends = [s if 0 < (s := int(T * x)) < T else 0 for x in splits] if lanes else []
    sizes = [20 * lanes * n_recent * 3, width * lanes * T, width * lanes * n_recent * T] + [width * n for n in ends]
    need(len(plain) == at + sum(sizes), "statistics of another size")
    parts = np.split(np.frombuffer(plain, "u1")[at:], np.cumsum(sizes)[:-1])
    numbers = lambda part, n: np.concatenate([unplane(p.tobytes(), "<u%d" % width) for p in
                                              np.split(part, max(len(part) // (n * width), 1))]).astype("i8")
    if not lanes:
        return out
    out["jaccard"] = parts[0].view([("sum", "<f8"), ("expected", "<f8"), ("rows", "<u4")]).reshape(lanes, n_recent, 3)
    last = numbers(parts[1], T).reshape(lanes, T)
    out["last"] = np.where(last, T - last, -1)
    later, first = numbers(parts[2], T).reshape(lanes, n_recent, T), np.empty((lanes, n_recent, T), "i8")
    for i, recent in enumerate(recents):            # from the earliest row that it could be
        earliest = np.maximum(np.arange(T) + recent, first[:, i - 1] if i else -1)
        first[:, i] = np.where(later[:, i], earliest + later[:, i] - 1, -1)
    out["first"] = first
    out["low"] = [numbers(part, n) for part, n in zip(parts[3:], ends) if n]
    return out


class Store:
    def __init__(self, path):
        self.db = sqlite3.connect(path, timeout=60)     # a trace may be writing to it
        self.db.execute("PRAGMA query_only = 1")
        number = lambda name: self.db.execute("PRAGMA " + name).fetchone()[0]
        need(number("application_id") == 0x53485253, "%s is no trace store" % path)
        need(number("user_version") in (2, 3, 4), "%s has a version that is not known" % path)
        self.sequences = [(i, run, source, np.frombuffer(tokens, "<i4")) for i, run, source, tokens in
                          self.db.execute("SELECT id, run, source, tokens FROM sequence ORDER BY id")]

    def rows(self, sequence, layer, head):
        for block in self.db.execute("SELECT blob, codec, first_row, n_rows, window FROM scores WHERE sequence = ?"
                                     " AND layer = ? AND head = ? ORDER BY first_row", (sequence, layer, head)):
            yield from block_rows(*block)

    def matrix(self, sequence, layer, head):
        rows = list(self.rows(sequence, layer, head))
        need(rows, "no scores of sequence %d, layer %d, head %d: the store's sequences are %s" %
             (sequence, layer, head, ", ".join(str(s[0]) for s in self.sequences) or "none"))
        need([r[0] for r in rows] == list(range(len(rows))), "rows are missing")
        out = np.zeros((len(rows), max(first + len(row) for q, first, row, rest in rows)), "f4")
        for q, first, row, rest in rows:
            out[q, first:first + len(row)] = row
        return out

    def one(self, sql, *where):
        row = self.db.execute(sql, where).fetchone()
        need(row, "it is not in the store")
        return row

    def vectors(self, sequence, layer, kind, head):
        blob, codec, n = self.one("SELECT blob, codec, n_tokens FROM vectors JOIN sequence ON sequence.id = sequence"
                                  " WHERE sequence = ? AND layer = ? AND kind = ? AND head = ?",
                                  sequence, layer, kind, head)
        need(codec in (0, 1) and n > 0, "codec %r is unknown" % (codec,))
        x = unplane(unzstd(blob, MOST_SCORES * 4), ("<f4", "<f2")[codec])
        need(len(x) % n == 0, "%d numbers for %d tokens" % (len(x), n))
        return x.reshape(n, -1).astype("f4")

    def stats(self, sequence, layer, head):
        return read_stats(*self.one("SELECT blob FROM head_stats WHERE sequence = ? AND layer = ? AND head = ?",
                                    sequence, layer, head))

    def sequence_sums(self):
        """Of each evaluation, by the text of its settings: an array (sequences, 5) of the predicted tokens, the rows,
        and the sums of nll, of its change and of KL."""
        there = self.db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'sequence_sums'").fetchone()[0]
        found = self.db.execute("SELECT settings, sums FROM sequence_sums WHERE command = 'eval'") if there else ()
        sums = {}
        for settings, blob in found:
            need(isinstance(blob, bytes) and len(blob) % 40 == 0, "sums of sequences are no table of five columns")
            sums[settings] = np.frombuffer(blob, "<f8").reshape(-1, 5)
        return sums

    def persistence_per_layer(self):
        """What shears persistence kept: a dictionary for each layer under each alpha, recent and split. model: the
        models' names; run: 0 for all runs."""
        names = dict(self.db.execute("SELECT run.id, model.name FROM run JOIN model ON model.id = run.model"))
        rows = {}
        for settings, layer, metric, value in self.db.execute(
                "SELECT settings, layer, metric, value FROM result WHERE command = 'persistence' AND layer IS NOT NULL"
                " AND head IS NULL ORDER BY settings, layer"):
            try:
                asked = json.loads(settings)
                key = {k: asked.get(k) for k in ("alpha", "recent", "split", "run")}
            except (ValueError, AttributeError):
                raise ValueError("settings that are no JSON object: %r" % (settings,)) from None
            model = names.get(key["run"], "") if key["run"] else ", ".join(sorted(set(names.values())))
            rows.setdefault((settings, layer), dict(key, model=model, layer=layer))[metric] = value
        return list(rows.values())
