# SPDX-License-Identifier: Apache-2.0
"""Trace stores: what they hold as arrays, and what commands compute from them."""
from __future__ import annotations

import ctypes
import os
import weakref
from typing import TYPE_CHECKING, Any, Sequence

from . import _lib
from ._ask import Progress, ask, figure
from ._table import Figure, Result, Table

if TYPE_CHECKING:
    import numpy


class Store:
    """A trace store, opened for reading by `shears.open`. Commands that compute from it keep their results in the file
    if it is writable, and find them there the next time. Threads take turns."""

    def __init__(self, path: str | os.PathLike):
        self.path = os.fspath(path)
        self._turn = _lib.Turn()
        self._is_giving = False         # rows, to a function that must not ask again
        self._at = _lib.call("store_open", _lib.encode(path))
        self._close = weakref.finalize(self, _lib.library().shears_store_close, self._at)

    def close(self) -> None:
        """Closes the file; also done when nothing refers to the store any more."""
        with self._turn:                # not while another thread is in the library
            self._refuse_within()
            self._close()
            self._at = None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        return "<shears store %r>" % self.path

    def _refuse(self, found):
        raise _lib.MisusedError("%s: %s" % (self.path, found), self.path, found, "", "", 2)

    def _refuse_within(self):
        """A signal's handler or a destructor can run at any place, also where the library is at work."""
        if self._is_giving:
            self._refuse("the store is giving rows to this thread")

    def _call(self, name, *arguments):
        with self._turn:
            self._refuse_within()
            if self._at is None:
                self._refuse("the store is closed")
            try:
                self._is_giving = name == "rows"
                return _lib.call("store_" + name, self._at, *arguments)
            finally:
                self._is_giving = False

    # ---- what is in it ----

    @property
    def runs(self) -> Table:
        """A `Table` with a row for each run of trace, import or record: run, model, layers, heads, kv_heads, head_dim,
        record, codec, vectors, causal, tokens, ..."""
        return Result(self._call("describe"))["runs"]

    @property
    def sequences(self) -> Table:
        """A `Table` with a row for each sequence: id, run, tokens (their number), source.

        >>> import shears
        >>> store = shears.open(shears.example())
        >>> store.sequences["tokens"].tolist()
        [40, 88]
        """
        return Result(self._call("describe"))["sequences"]

    def tokens(self, sequence: int) -> numpy.ndarray:
        """The token ids of a sequence, int32 [tokens]; -1 where they are not known."""
        import numpy
        to = numpy.empty(self._call("tokens", sequence, None, 0), "i4")
        self._call("tokens", sequence, to.ctypes.data, len(to))
        return to

    def scores(self, sequence: int, layer: int, head: int) -> numpy.ndarray:
        """The attention of one query head, float32 [rows, keys]: row q is the softmax of query q, 0 where a key is masked
        or its score was not stored. sequence: an `id` of `sequences`; layers and heads count from 0.

        >>> import shears
        >>> scores = shears.open(shears.example()).scores(1, layer=1, head=2)
        >>> scores.shape, scores.dtype.name, bool(abs(scores.sum(axis=1) - 1).max() < 0.05)
        ((88, 88), 'float32', True)
        """
        import numpy
        rows, keys = ctypes.c_size_t(), ctypes.c_size_t()
        self._call("shape", sequence, layer, head, rows, keys)
        to = numpy.empty((rows.value, keys.value), "f4")
        self._call("scores", sequence, layer, head, to.ctypes.data, *to.shape)
        return to

    def rows(self, sequence: int, layer: int, head: int) -> list[tuple[int, int, numpy.ndarray, float]]:
        """The same row by row: a list of (q, first_key, scores, rest), scores float32 [n] of the keys first_key to
        first_key + n - 1 that query q sees, rest the sum of the scores that were not stored."""
        import numpy
        found = []

        def take(_, row):
            r = row.contents
            found.append((r.q, r.first_key, numpy.ctypeslib.as_array(r.score, shape=(r.n,)).copy(), r.rest))
            return 0
        self._call("rows", sequence, layer, head, _lib.ROW(take), None)
        return found

    def vectors(self, sequence: int, layer: int, kind: str, head: int) -> numpy.ndarray:
        """Queries "q", keys "k" or values "v" of a head, float32 [tokens, head_dim] (k and v have KV heads), or "s": the
        part of each row that the sink takes, float32 [tokens, 1]."""
        import numpy
        kind = kind.encode() if isinstance(kind, str) and len(kind) == 1 else b"?"
        n = self._call("vectors", sequence, layer, kind, head, None, 0)
        to = numpy.empty(n, "f4")
        self._call("vectors", sequence, layer, kind, head, to.ctypes.data, n)
        return to.reshape(self._call("tokens", sequence, None, 0), -1)

    def results(self, command: str | None = None) -> Table:
        """A `Table` of what commands computed and kept: command, settings (JSON), metric, layer (-1: the whole model),
        head, value. command: only of this one, such as "replay"."""
        return Result(self._call("results", None if command is None else _lib.encode(command)))["results"]

    # ---- what follows from it ----

    def persistence(self, *, recent: int | Sequence[int] | None = None, alpha: str | float | Sequence | None = None,
                    split: float | Sequence[float] | None = None, window: int | None = None, run: int | None = None,
                    progress: Progress = None, **options: Any) -> Result:
        """Do tokens that mattered early matter late? A `Result` with the tables "layers", "layers.heads", "rows" and
        "grid". recent: ignore pairs of query and key that are closer than this; alpha: threshold of a pivotal score
        ("row", "5/t", 0.01); split: boundary between early and late as a share of the length; window: rows used for the
        prediction.

        >>> import shears
        >>> p = shears.open(shears.example()).persistence(recent=4, alpha="2/t")
        >>> len(p.layers), sorted(p.layers.columns)[:3]
        (2, ['auc', 'chance', 'density'])
        """
        return ask("persistence", db=self.path, recent=recent, alpha=alpha, split=split, window=window, run=run,
                   progress=progress, **options)

    def replay(self, policies: str | Sequence[str] | None = None, budgets: float | str | Sequence | None = None, *,
               prefill: int | None = None, allocator: str | None = None, rows: str | None = None,
               run: int | None = None, progress: Progress = None, **options: Any) -> Result:
        """What eviction policies would have kept. policies: such as ["h2o:recent=10", "tova"], or "all"; budgets: tokens
        per KV head (64) or shares of the length (0.2). A `Result` with the tables "results" (a row for each policy and
        budget: kept_mass, output_error, ...), "results.layers" and "curves".

        >>> import shears
        >>> r = shears.open(shears.example()).replay(policies=["window", "h2o"], budgets=[0.25, 0.5])
        >>> r.results["policy"].tolist()
        ['window', 'window', 'h2o', 'h2o']
        """
        return ask("replay", db=self.path, policy=policies, budget=budgets, prefill=prefill, allocator=allocator,
                   rows=rows, run=run, progress=progress, **options)

    def plan(self, policy: str | None = None, *, target_recall: float | None = None, target_error: float | None = None,
             budget: float | str | None = None, allocator: str | None = None, progress: Progress = None,
             **options: Any) -> Result:
        """The smallest budget that meets a target on the trace, divided among layers and heads: a `Result` with the
        tables "layers" and "layers.heads". output="plan.json" writes the plan's file.

        >>> import shears
        >>> shears.open(shears.example()).plan("window", target_recall=0.9)["policy"]
        'window'
        """
        return ask("plan", db=self.path, policy=policy, target_recall=target_recall, target_error=target_error,
                   budget=budget, allocator=allocator, progress=progress, **options)

    def theory(self, *, progress: Progress = None, **options: Any) -> Result:
        """Power laws fitted to the scores, and what they say of eviction, as `shears theory --json`."""
        return ask("theory", db=self.path, progress=progress, **options)

    def plot(self, name: str, *, progress: Progress = None, **options: Any) -> Figure:
        """A `Figure` from this store, such as "persistence", "heatmap" or "budget-curve"; needs gnuplot. Options are those
        of `shears plot`: layer=3, head=5, width="16cm"."""
        return figure(name, db=self.path, progress=progress, **options)
