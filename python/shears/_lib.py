# SPDX-License-Identifier: Apache-2.0
"""libshears through ctypes: finding and loading it, its functions, and its errors as exceptions."""
import ctypes
import ctypes.util
import os
import threading
from ctypes import POINTER, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_void_p

NAME = "libshears.so.0"


class ShearsError(Exception):
    """What went wrong, in four parts: `what` it is about (a file, a row, an option), what was `found` there, what was
    `expected`, and a `hint` what to do. `status`: 1 the work could not be done, 2 the request makes no sense, 3
    something optional is missing (gnuplot, a GPU)."""

    def __init__(self, message="", what="", found="", expected="", hint="", status=1):
        super().__init__(message + ("\nhint: " + hint if hint else ""))
        self.message, self.what, self.found, self.expected = message, what, found, expected
        self.hint, self.status = hint, status

    def __reduce__(self):
        return type(self), (self.message, self.what, self.found, self.expected, self.hint, self.status)


class MisusedError(ShearsError, ValueError):
    """The request makes no sense: an unknown option, an impossible value."""


class AbsentError(ShearsError):
    """Something optional is missing: gnuplot, a GPU, a module."""


class Turn:
    """A lock for `with` that its owner may take again. After fork() it is a new one, because a thread that this process
    does not have may hold the old one."""

    def __init__(self):
        self._lock, self._pid, self._taken = threading.RLock(), os.getpid(), []

    def __enter__(self):
        if self._pid != os.getpid():
            self._lock, self._pid = threading.RLock(), os.getpid()
        lock = self._lock
        lock.acquire()
        self._taken.append(lock)

    def __exit__(self, *error):
        self._taken.pop().release()


class Option(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", c_char_p)]


PROGRESS = ctypes.CFUNCTYPE(c_int, c_void_p, c_double)


class Watch(ctypes.Structure):
    _fields_ = [("progress", PROGRESS), ("to", c_void_p)]


class Column(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("kind", c_int), ("ints", POINTER(c_int64)), ("reals", POINTER(c_double)),
                ("texts", POINTER(c_char_p))]


class Row(ctypes.Structure):
    _fields_ = [("q", c_int), ("first_key", c_int), ("n", c_int), ("rest", c_float), ("score", POINTER(c_float))]


ROW = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(Row))
ERROR = POINTER(c_void_p)
PLACE = [c_void_p, c_int, c_int, c_int]            # store, sequence, layer, head

# name: (result, arguments)
FUNCTIONS = {
    "version": (c_char_p, []),
    "error_status": (c_int, [c_void_p]),
    "error_message": (c_char_p, [c_void_p]),
    "error_what": (c_char_p, [c_void_p]),
    "error_found": (c_char_p, [c_void_p]),
    "error_expected": (c_char_p, [c_void_p]),
    "error_hint": (c_char_p, [c_void_p]),
    "error_free": (None, [c_void_p]),
    "result_tables": (c_size_t, [c_void_p]),
    "result_table": (c_void_p, [c_void_p, c_size_t]),
    "table_name": (c_char_p, [c_void_p]),
    "table_rows": (c_size_t, [c_void_p]),
    "table_columns": (c_size_t, [c_void_p]),
    "table_column": (POINTER(Column), [c_void_p, c_size_t]),
    "result_text": (c_char_p, [c_void_p, c_char_p, ERROR]),
    "result_remark": (c_char_p, [c_void_p, c_size_t]),
    "result_free": (None, [c_void_p]),
    "ask": (c_void_p, [c_char_p, POINTER(Option), POINTER(Watch), ERROR]),
    "figure": (c_void_p, [c_char_p, POINTER(Option), POINTER(Watch), ERROR]),
    "text_free": (None, [c_void_p]),
    "store_open": (c_void_p, [c_char_p, ERROR]),
    "store_create": (c_void_p, [c_char_p, ERROR]),
    "store_close": (None, [c_void_p]),
    "store_describe": (c_void_p, [c_void_p, ERROR]),
    "store_results": (c_void_p, [c_void_p, c_char_p, ERROR]),
    "store_tokens": (c_int64, [c_void_p, c_int, c_void_p, c_size_t, ERROR]),
    "store_shape": (c_int, PLACE + [POINTER(c_size_t), POINTER(c_size_t), ERROR]),
    "store_scores": (c_int, PLACE + [c_void_p, c_size_t, c_size_t, ERROR]),
    "store_rows": (c_int, PLACE + [ROW, c_void_p, ERROR]),
    "store_vectors": (c_int64, [c_void_p, c_int, c_int, c_char, c_int, c_void_p, c_size_t, ERROR]),
}

_loaded, _lock = None, threading.Lock()


def _places():
    """Where the library may be: named by the environment, in the package, in the folder it was built in, installed."""
    here = os.path.dirname(os.path.abspath(__file__))
    chosen = os.environ.get("SHEARS_LIBRARY")
    if chosen:
        return [chosen]
    own = [os.path.join(here, "lib", NAME), os.path.join(here, "..", "..", NAME)]
    return [path for path in own if os.path.exists(path)] + [NAME, ctypes.util.find_library("shears")]


def _load():
    why = []
    for path in filter(None, _places()):
        try:
            return ctypes.CDLL(path)
        except OSError as e:
            why.append(str(e))
    raise AbsentError("libshears: cannot load: " + "; ".join(why), "libshears", "; ".join(why), "",
                      "install the package with pip, or set SHEARS_LIBRARY to the file " + NAME, 3)


def library():
    """The library, loaded when it is first needed."""
    global _loaded
    with _lock:
        if _loaded is None:
            found = _load()
            for name, (result, arguments) in FUNCTIONS.items():
                f = getattr(found, "shears_" + name)
                f.restype, f.argtypes = result, arguments
            _loaded = found
    return _loaded


def declare(name, result, arguments):
    """Says what the function shears_`name` takes and returns, and returns it."""
    f = getattr(library(), "shears_" + name)
    f.restype, f.argtypes = result, arguments
    return f


def text(value):
    return None if value is None else value.decode("utf-8", "replace")


def raise_error(error):
    """Raises the error that a function of the library has set, and frees it."""
    lib = library()
    parts = [text(getattr(lib, "shears_error_" + part)(error)) for part in ("message", "what", "found", "expected", "hint")]
    status = lib.shears_error_status(error)
    lib.shears_error_free(error)
    kind = {2: MisusedError, 3: AbsentError}.get(status, ShearsError)
    raise kind(*parts, status)


def call(name, *arguments):
    """Calls shears_`name` with an error after the arguments; raises it if the function fails."""
    f, error = getattr(library(), "shears_" + name), c_void_p()
    result = f(*arguments, ctypes.byref(error))
    if error:
        raise_error(error)
    return result


def encode(value):
    """A path or text for the library."""
    value = os.fspath(value)
    value = value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
    if b"\0" in value:
        raise MisusedError("found a zero byte in %r, expected none" % value, status=2)
    return value
