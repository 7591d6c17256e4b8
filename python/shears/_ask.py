# SPDX-License-Identifier: Apache-2.0
"""Questions to the library: keyword arguments as options, progress, Ctrl-C."""
from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import Any, Callable, Union

from . import _lib
from ._table import Figure, Result


# None: nothing is shown; True: a bar; a function is called with the share of the work that is done, in [0, 1].
Progress = Union[None, bool, Callable[[float], None]]


def option_words(name, value):
    """The values of one option: texts, or None for a flag. A list stands for an option that is given several times."""
    if value is None or value is False:
        return []
    if value is True:
        return [None]
    if isinstance(value, (str, bytes, os.PathLike)):
        return [_lib.encode(value)]
    if isinstance(value, dict):
        return [_lib.encode("%s=%s" % pair) for pair in value.items()]
    if hasattr(value, "__iter__"):
        return [word for one in value for word in option_words(name, one)]
    if hasattr(value, "item"):                      # a number of numpy
        value = value.item()
    if isinstance(value, (int, float)):
        return [repr(value).encode()]
    raise _lib.MisusedError("%s: found %r, expected a number, a text, a path, or a list of these" % (name, value), name,
                            repr(value), "a number, a text, a path, or a list of these", "", 2)


def options_of(positional, options):
    words = [(b"", _lib.encode(one)) for one in positional]
    for name, value in options.items():
        words += [(name.replace("_", "-").encode(), word) for word in option_words(name, value)]
    return (_lib.Option * (len(words) + 1))(*words)


@contextmanager
def shown(progress, what):
    """A function to call with the share of the work that is done, or None."""
    if progress is None or progress is False:
        yield None
    elif callable(progress):
        yield progress
    else:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            def write(share):
                sys.stderr.write("\r%s %3.0f %%" % (what, 100 * share))
                sys.stderr.flush()
            yield write
            sys.stderr.write("\r\033[K" if sys.stderr.isatty() else "\n")
        else:
            with tqdm(total=100, desc=what, unit="%", bar_format="{desc} {percentage:3.0f}% {bar} {remaining}") as bar:
                yield lambda share: bar.update(100 * share - bar.n)


@contextmanager
def held_interrupt():
    """Keeps Ctrl-C from interrupting Python code that the library calls, where no exception could be raised. The signal
    goes into a list, which that code checks, and the previous handler is called afterwards."""
    import signal
    import threading
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield []
        return
    caught = []
    signal.signal(signal.SIGINT, lambda *arguments: caught.append(arguments))
    try:
        yield caught
    finally:
        signal.signal(signal.SIGINT, handler)
    if caught:
        handler(*caught[0])


def answer(function, name, positional, options, progress):
    """Calls shears_`function`. What the progress function raises, and Ctrl-C, stop the work and are raised here."""
    raised = []
    with shown(progress, name) as show:
        def told(_, share):
            try:
                if show and share == share:
                    show(share)
                return len(caught) + len(raised)
            except BaseException as e:
                raised.append(e)
                return 1
        words = options_of(positional, options)
        result = failed = None
        with held_interrupt() as caught:
            try:
                result = _lib.call(function, name.encode(), words, _lib.Watch(_lib.PROGRESS(told), None))
            except _lib.ShearsError as e:
                failed = e
    if raised or failed:
        raise (raised or [failed])[0] from None
    return result


def ask(command: str, *positional: str, progress: Progress = None, **options: Any) -> Result:
    """The answer of a command of shears, such as "persistence" or "info", as a `Result`.

    Keyword arguments are the command's options: `max_ppl_increase="1%"` is `--max-ppl-increase 1%`, True is an option
    without a value, a list is an option with several values. Positional arguments are those without a name.

    >>> import shears
    >>> "H100-SXM" in shears.ask("info", "gpus")["gpus"]["gpu"]
    True
    """
    return Result(answer("ask", command, positional, options, progress))


def figure(name: str, *, progress: Progress = None, **options: Any) -> Figure:
    """A figure as SVG, drawn by gnuplot: one that `shears plot` draws, with its options, or "capacity", "frontier",
    "latency" and "occupancy" with those of `capacity` and `simulate`.

    >>> import shears
    >>> drawn = shears.figure("frontier", model="llama-3.1-8b", gpu="H100-SXM", length=8192, budget="0.1,0.2,0.5")
    >>> drawn.svg.startswith("<?xml")
    True
    """
    lib, at = _lib.library(), answer("figure", name, (), options, progress)
    try:
        return Figure(_lib.ctypes.string_at(at).decode())
    finally:
        lib.shears_text_free(at)
