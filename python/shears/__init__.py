# SPDX-License-Identifier: Apache-2.0
"""Attention traces, KV-cache eviction policies and capacity plans.

    store = shears.open("t.db")                             # a trace: of `shears trace`, or of shears.record
    store.scores(sequence=0, layer=3, head=5)               # float32 [rows, keys]
    store.persistence(recent=10, alpha="5/t").layers        # a table: columns as arrays
    store.replay(policies=["h2o", "tova"], budgets=[0.1, 0.2])
    store.plot("persistence")                               # a figure, shown by a notebook
    shears.capacity(model="llama-3.1-8b", gpu="H100-SXM", length=8192)

Arguments have the names of the program's options, with _ for -. Long work takes `progress`: True shows a bar, a function
is called with the share that is done. Ctrl-C stops it. Errors are `ShearsError`, with what, found, expected and hint."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Sequence

from ._ask import Progress, ask, figure
from ._lib import AbsentError, MisusedError, ShearsError
from ._store import Store
from ._table import Figure, Result, Table

if TYPE_CHECKING:
    from ._cache import Cache
    from ._record import record

__all__ = ["AbsentError", "Figure", "MisusedError", "Result", "ShearsError", "Store", "Table", "ask", "capacity",
           "example", "figure", "gpus", "models", "open", "policies", "simulate", "version"]

# These need PyTorch, which is imported when they are first used; so `from shears import *` leaves them out.
_LATER = {"Cache": "._cache", "record": "._record"}


def __getattr__(name):
    if name not in _LATER:
        raise AttributeError("module 'shears' has no attribute %r" % name)
    from importlib import import_module
    try:
        value = globals()[name] = getattr(import_module(_LATER[name], __name__), name)
    except ModuleNotFoundError as e:
        if e.name not in ("torch", "transformers"):
            raise
        raise AbsentError("shears.%s: %s is not installed" % (name, e.name), "shears." + name, e.name + " is not installed", "",
                          "pip install torch transformers", 3) from None
    return value


def version() -> str:
    """The version of the loaded library."""
    from ._lib import library, text
    return text(library().shears_version())


for _kind in AbsentError, MisusedError, ShearsError:
    _kind.__module__ = __name__                     # as they are called by those who catch them


def example() -> str:
    """The path of a small store that comes with the package: two texts of 40 and 88 tokens, read by a model with two
    layers of four heads; scores, queries, keys and values."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "example.db")
    if not os.path.exists(path):
        raise AbsentError(path + ": not found", path, "not found", "", "install the package: pip install ./python", 3)
    return path


def open(path: str | os.PathLike) -> Store:
    """Opens a trace store for reading.

    >>> import shears
    >>> shears.open(shears.example()).runs["model"].tolist()
    ['opt']
    >>> shears.open("missing.db")
    Traceback (most recent call last):
    shears.ShearsError: missing.db: cannot be opened: No such file or directory
    """
    return Store(path)


def capacity(model: str | Sequence[str] | None = None, gpu: str | Sequence[str] | None = None, length: int | None = None,
             *, batch: int | None = None, kv: str | Sequence[str] | None = None,
             budget: float | str | Sequence | None = None, tp: int | str | Sequence | None = None,
             progress: Progress = None, **options: Any) -> Result:
    """How many sequences of `length` tokens fit on a GPU, in exact bytes, and how fast a step can be at most. Lists of
    models, GPUs, formats, budgets (tokens or shares kept per layer and KV head) and tensor parallelism give a row for each
    combination: the table "results" with batch, weights_bytes, decode_tokens_per_s, ... With one row there are the tables
    "results.terms", which says what takes the memory, and "results.frontier".

    >>> import shears
    >>> c = shears.capacity(model="llama-3.1-8b", gpu="H100-SXM", length=8192, budget=[0.1, 0.2])
    >>> c.results["batch"].tolist(), c.results["gpus"].tolist()
    ([646, 323], [1, 1])
    >>> shears.capacity(model="llama-3.1-8b", gpu="H100-SMX", length=8192)
    Traceback (most recent call last):
    shears.MisusedError: GPU "H100-SMX" is not known
    hint: did you mean H100-SXM or H200-SXM? shears info gpus lists them
    """
    return ask("capacity", model=model, gpu=gpu, length=length, batch=batch, kv=kv,
               budget=budget, tp=tp, progress=progress, **options)


def simulate(model: str | None = None, gpu: str | Sequence[str] | None = None, *,
             rate: float | Sequence[float] | None = None, prompt: int | str | None = None,
             output: int | str | None = None, budget: float | str | Sequence | None = None,
             concurrency: int | Sequence[int] | None = None, progress: Progress = None, **options: Any) -> Result:
    """A server under load: latency, throughput and use of the cache. rate: requests per second; prompt, output: tokens
    (400, "lognormal:4000:0.8", "819-1024"); budget: also with a cache of that size; concurrency: clients in a closed
    loop instead of a rate. A `Result` with the table "results".

    >>> import shears
    >>> s = shears.simulate(model="llama-3.1-8b", gpu="H100-SXM", rate=[2, 4], prompt=400, output=20, requests=50)
    >>> s.results["requests"].tolist(), bool((s.results["ttft_s.p50"] < 0.1).all())
    ([50, 50], True)
    """
    return ask("simulate", model=model, gpu=gpu, rate=rate, prompt=prompt, output=output,
               budget=budget, concurrency=concurrency, progress=progress, **options)


def policies() -> Table:
    """A `Table` of the eviction policies: policy, needs, knobs, ...

    >>> import shears
    >>> "h2o" in shears.policies()["policy"]
    True
    """
    return ask("info", "policies")["policies"]


def gpus() -> Table:
    """A `Table` of the GPUs that `capacity` knows by name."""
    return ask("info", "gpus")["gpus"]


def models() -> Table:
    """A `Table` of the models that `capacity` knows by name."""
    return ask("info", "models")["models"]
