# SPDX-License-Identifier: Apache-2.0
"""Questions to the library: keyword arguments as options, progress, Ctrl-C."""
import os
import sys
from contextlib import contextmanager

from . import _lib
from ._table import Figure, Result


def option_words(name, value):
    """The values of one option: texts, or None for a flag. A list is an option that is given several times."""
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
    """A function that is told the share of the work that is done, or None."""
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


def answer(function, name, positional, options, progress):
    """Calls shears_`function`. What the progress function raises, and Ctrl-C, stop the work and are raised here."""
    raised = []
    with shown(progress, name) as show:
        def told(_, share):
            try:
                if show and share == share:
                    show(share)
                return 0
            except BaseException as e:              # KeyboardInterrupt, too
                raised.append(e)
                return 1
        watch = _lib.Watch(_lib.PROGRESS(told), None)
        try:
            result = _lib.call(function, name.encode(), options_of(positional, options), watch)
        except _lib.ShearsError:
            if raised:
                raise raised[0] from None
            raise
    if raised:
        if function == "figure":
            _lib.library().shears_text_free(result)
        else:
            _lib.library().shears_result_free(result)
        raise raised[0]
    return result


def ask(command, *positional, progress=None, **options):
    """The answer of a command of shears, such as "persistence" or "info", as a `Result`.

    Keyword arguments are the command's options: `max_ppl_increase="1%"` is `--max-ppl-increase 1%`, True is an option
    without a value, a list is an option with several values. Positional arguments are those without a name.

    >>> import shears
    >>> "H100-SXM" in shears.ask("info", "gpus")["gpus"]["name"]
    True
    """
    return Result(answer("ask", command, positional, options, progress))


def figure(name, *, progress=None, **options):
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
