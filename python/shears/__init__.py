# SPDX-License-Identifier: Apache-2.0
"""Attention traces, KV-cache eviction policies and capacity plans.

    store = shears.open("t.db")                             # a trace: of `shears trace`, or of shears.record
    store.scores(sequence=0, layer=3, head=5)               # float32 [rows, keys]
    store.persistence(recent=10, alpha="5/t").layers        # a table: columns as arrays
    store.replay(policies=["h2o", "tova"], budgets=[0.1, 0.2])
    store.plot("persistence")                               # a figure, shown by a notebook
    shears.capacity(model="llama-3.1-8b", gpu="H100-SXM", length=8192)

Arguments have the names of the program's options, with _ for -. Long work takes `progress`: True shows a bar, a function
is told the share that is done; Ctrl-C stops it. Errors are `ShearsError`, with what, found, expected and hint."""
from ._ask import ask, figure
from ._lib import AbsentError, MisusedError, ShearsError
from ._store import Store
from ._table import Figure, Result, Table

__all__ = ["AbsentError", "Cache", "Figure", "MisusedError", "Result", "ShearsError", "Store", "Table", "ask", "capacity",
           "figure", "gpus", "models", "open", "policies", "record", "simulate", "version"]

# Needs PyTorch, which is imported when these are first used.
_LATER = {"record": ".record", "Cache": ".cache"}


def __getattr__(name):
    if name not in _LATER:
        raise AttributeError("module 'shears' has no attribute %r" % name)
    from importlib import import_module
    value = globals()[name] = getattr(import_module(_LATER[name], __name__), name)
    return value


def version():
    """The version of the library that is loaded."""
    from ._lib import library, text
    return text(library().shears_version())


def open(path):
    """Opens a trace store for reading.

    >>> import shears
    >>> shears.open("t.db").runs["model"].tolist()
    ['tiny']
    >>> shears.open("missing.db")
    Traceback (most recent call last):
    shears._lib.ShearsError: missing.db: cannot open: No such file or directory
    """
    return Store(path)


def capacity(model=None, gpu=None, length=None, *, batch=None, kv=None, budget=None, tp=None, progress=None, **options):
    """How many sequences of `length` tokens fit on a GPU, in exact bytes, and how fast a step can be at most. Lists of
    models, GPUs, formats, budgets (tokens or shares kept per layer and KV head) and tensor parallelism give one row for
    each combination. With one row the `Result` has its single values: batch, weights_bytes, step_s, ...; else the table
    "rows".

    >>> import shears
    >>> shears.capacity(model="llama-3.1-8b", gpu="H100-SXM", length=8192)["kv_bytes_per_token"]
    131072
    >>> shears.capacity(model="llama-3.1-8b", gpu="H100", length=8192)
    Traceback (most recent call last):
    shears._lib.MisusedError: ...
    """
    return ask("capacity", model=model, gpu=gpu, length=length, batch=batch, kv=kv,
               budget=budget, tp=tp, progress=progress, **options)


def simulate(model=None, gpu=None, *, rate=None, prompt=None, output=None, budget=None, concurrency=None, progress=None,
             **options):
    """A server under load: latency, throughput and use of the cache. rate: requests per second; prompt, output: tokens
    (400, "lognormal:4000:0.8", "819-1024"); budget: also with a cache of that size; concurrency: clients in a closed
    loop instead of a rate. A `Result` with the table "results".

    >>> import shears
    >>> s = shears.simulate(model="llama-3.1-8b", gpu="H100-SXM", rate=[2, 4], prompt=400, output=20, requests=50)
    >>> len(s.results), s.results["rate_requests_per_s"].tolist()
    (2, [2.0, 4.0])
    """
    return ask("simulate", model=model, gpu=gpu, rate=rate, prompt=prompt, output=output,
               budget=budget, concurrency=concurrency, progress=progress, **options)


def policies():
    """A `Table` of the eviction policies: name, what they need, their knobs.

    >>> import shears
    >>> "h2o" in shears.policies()["name"]
    True
    """
    return ask("info", "policies")["policies"]


def gpus():
    """A `Table` of the GPUs that `capacity` knows by name."""
    return ask("info", "gpus")["gpus"]


def models():
    """A `Table` of the models that `capacity` knows by name."""
    return ask("info", "models")["models"]
