# SPDX-License-Identifier: Apache-2.0
"""The library's recordings: a run of a store, written while something else computes the attention. Arrays are passed by
the address of their numbers; who has them keeps them until the call returns. `shears.record` is built on it."""
import ctypes
import weakref
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p

from . import _lib


class Recorded(ctypes.Structure):
    _fields_ = [("bytes", c_size_t), ("model", c_char_p), ("family", c_char_p), ("weights", c_char_p),
                ("fingerprint", c_uint64), ("n_layer", c_int), ("n_head", c_int), ("n_kv_head", c_int), ("d_head", c_int),
                ("d_model", c_int), ("n_vocab", c_int), ("max_pos", c_int), ("backend", c_char_p), ("device", c_char_p),
                ("dtype", c_char_p), ("command", c_char_p), ("attention", c_char_p), ("record", c_char_p),
                ("codec", c_char_p), ("vectors", c_char_p)]


class Rows(ctypes.Structure):
    _fields_ = [("sequence", c_int64), ("layer", c_int), ("first_row", c_int), ("n_row", c_int), ("first_key", c_int),
                ("n_key", c_int), ("window", c_int), ("n_head", c_int), ("score", c_void_p), ("logit", c_void_p),
                ("log8", c_void_p), ("sink", c_void_p)]


class Vectors(ctypes.Structure):
    _fields_ = [("sequence", c_int64), ("layer", c_int), ("kind", c_int), ("n_head", c_int), ("n_row", c_int),
                ("width", c_int), ("at", c_void_p)]


FUNCTIONS = {
    "record_open": (c_void_p, [c_char_p, _lib.ERROR]),
    "record_begin": (c_int, [c_void_p, POINTER(Recorded), _lib.ERROR]),
    "record_sequence": (c_int64, [c_void_p, c_char_p, POINTER(c_int32), c_size_t, c_int, _lib.ERROR]),
    "record_more": (c_int, [c_void_p, c_int64, POINTER(c_int32), c_size_t, _lib.ERROR]),
    "record_rows": (c_int, [c_void_p, POINTER(Rows), _lib.ERROR]),
    "record_vectors": (c_int, [c_void_p, POINTER(Vectors), _lib.ERROR]),
    "record_finish": (c_int, [c_void_p, c_int64, c_int, _lib.ERROR]),
    "record_close": (c_int, [c_void_p, _lib.ERROR]),
}


def _close(at):
    """At the interpreter's end, too: what is finished is written."""
    error = c_void_p()
    _lib.library().shears_record_close(at, ctypes.byref(error))
    if error:
        _lib.library().shears_error_free(error)


class Recording:
    """The methods are the functions of shears.h, which says what they take and refuse. Any thread may call them."""

    def __init__(self, path):
        for name, (result, arguments) in FUNCTIONS.items():
            _lib.declare(name, result, arguments)
        self.path, self._turn = path, _lib.Turn()
        self._at = _lib.call("record_open", _lib.encode(path))
        self._end = weakref.finalize(self, _close, self._at)

    def _call(self, name, *arguments):
        with self._turn:
            if self._at is None:
                raise _lib.MisusedError("%s: the recording has ended" % self.path, self.path, "the recording has ended", "",
                                        "", 2)
            return _lib.call("record_" + name, self._at, *arguments)

    def begin(self, **what):
        """Texts and numbers by the names of struct shears_recorded."""
        texts = {name: _lib.encode(value) if isinstance(value, str) else value for name, value in what.items()}
        self._call("begin", Recorded(bytes=ctypes.sizeof(Recorded), **texts))

    def sequence(self, source, tokens, grows=False):
        return self._call("sequence", _lib.encode(source), (c_int32 * len(tokens))(*tokens), len(tokens), grows)

    def more(self, sequence, tokens):
        self._call("more", sequence, (c_int32 * len(tokens))(*tokens), len(tokens))

    def rows(self, **rows):
        """Numbers and addresses by the names of struct shears_rows."""
        self._call("rows", Rows(**rows))

    def vectors(self, **vectors):
        """Numbers and an address by the names of struct shears_vectors; kind: "q", "k" or "v"."""
        self._call("vectors", Vectors(**dict(vectors, kind=ord(vectors["kind"]))))

    def finish(self, sequence, keep=True):
        self._call("finish", sequence, keep)

    def close(self):
        with self._turn:
            at, self._at = self._at, None
            if at is not None and self._end.detach():
                _lib.call("record_close", at)
