# SPDX-License-Identifier: Apache-2.0
"""What the library answers with: single values and tables of columns."""
from __future__ import annotations

import json
import os
import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import _lib

if TYPE_CHECKING:
    import numpy
    import pandas

INT, REAL, TEXT, BOOL = range(4)


def _plain(value):
    return value.item() if hasattr(value, "item") else value


class _Owner:
    """Frees the library's result when no table of it is in use any more."""

    def __init__(self, at):
        self.at = at
        weakref.finalize(self, _lib.library().shears_result_free, at)


class Table(Mapping):
    """Columns of equal length, by name: `table["ratio"]` or `table.ratio` is a NumPy array (int64, float64 with NaN for
    what is not defined, bool, or object for texts). `len(table)`: rows."""

    def __init__(self, owner, at):
        lib = _lib.library()
        self._owner, self._kept = owner, {}
        self.name = _lib.text(lib.shears_table_name(at))
        self._rows = lib.shears_table_rows(at)
        columns = [lib.shears_table_column(at, i).contents for i in range(lib.shears_table_columns(at))]
        self._columns = {_lib.text(c.name): c for c in columns}

    @property
    def columns(self) -> list[str]:
        """Their names."""
        return list(self._columns)

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __bool__(self):
        return self._rows > 0

    def __getitem__(self, name: str) -> numpy.ndarray:
        if name not in self._kept:
            self._kept[name] = self._array(self._columns[name])
        return self._kept[name]

    def __getattr__(self, name):
        if name.startswith("_") or name not in self._columns:
            raise AttributeError("table %r has no column %r, but %s" % (self.name, name, ", ".join(self._columns)))
        return self[name]

    def __dir__(self):
        return list(super().__dir__()) + [name for name in self._columns if name.isidentifier()]

    def _array(self, column):
        import numpy
        n = self._rows
        if column.kind == TEXT:
            return numpy.array([_lib.text(column.texts[i]) for i in range(n)] + [None], dtype=object)[:n]
        at = column.reals if column.kind == REAL else column.ints
        array = numpy.ctypeslib.as_array(at, shape=(n,)).copy() if n else numpy.empty(0, "f8" if column.kind == REAL else "i8")
        return array.astype(bool) if column.kind == BOOL else array

    def rows(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        columns = {name: self[name].tolist() for name in self._columns}
        return [dict(zip(columns, values)) for values in zip(*columns.values())]

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas.DataFrame of the columns."""
        import pandas
        return pandas.DataFrame({name: self[name] for name in self._columns})

    def __repr__(self):
        return "<shears table %r: %d rows of %s>" % (self.name, self._rows, ", ".join(self._columns))

    def _repr_html_(self):
        from html import escape
        cell = lambda v: "" if v is None or v != v else "%.5g" % v if isinstance(v, float) else escape(str(v))
        line = lambda tag, values: "<tr>%s</tr>" % "".join("<%s>%s</%s>" % (tag, cell(v), tag) for v in values)
        return "<table>%s%s</table>" % (line("th", self._columns), "".join(line("td", r.values()) for r in self.rows()))


class Result(Mapping):
    """The answer to a question. `result["model"]`, or `result.model`, is a single value or a `Table`, with the names of
    the program's --json; a list within a list is the table "results.layers", whose column "parent" is the row of
    "results". `remarks`: sentences about the values."""

    def __init__(self, at):
        self._at, self._owner, lib = at, _Owner(at), _lib.library()
        tables = [Table(self._owner, lib.shears_result_table(at, i)) for i in range(lib.shears_result_tables(at))]
        self._single = tables[0]
        self._tables = {table.name: table for table in tables[1:]}

    @property
    def tables(self) -> list[str]:
        """The tables' names."""
        return list(self._tables)

    @property
    def remarks(self) -> list[str]:
        """Sentences about the values: where they come from, and what they do not show."""
        found = []
        while (one := _lib.library().shears_result_remark(self._at, len(found))) is not None:
            found.append(_lib.text(one))
        return found

    def __len__(self) -> int:
        return len(self._single.columns) + len(self._tables)

    def __iter__(self) -> Iterator[str]:
        yield from self._single.columns
        yield from self._tables

    def __getitem__(self, name: str) -> Any:
        return self._tables[name] if name in self._tables else _plain(self._single[name][0])

    def __getattr__(self, name):
        if name.startswith("_") or name not in self:
            raise AttributeError("the result has no %r, but %s" % (name, ", ".join(self)))
        return self[name]

    def __dir__(self):
        return list(super().__dir__()) + [name for name in self if name.isidentifier()]

    def _text(self, form):
        return _lib.text(_lib.call("result_text", self._at, form.encode()))

    def to_dict(self) -> dict[str, Any]:
        """All values as the program's --json has them."""
        return json.loads(self._text("json"))

    def to_pandas(self, table: str | None = None) -> pandas.DataFrame:
        """A pandas.DataFrame of a table: the one named, or the first."""
        if table is None and not self._tables:
            return self._single.to_pandas()
        return self._tables[table or next(iter(self._tables))].to_pandas()

    def __repr__(self):
        return self._text("text").rstrip("\n")

    def _repr_html_(self):
        return self._text("html")


class Figure:
    """A figure. A notebook shows it; `svg` is its text."""

    def __init__(self, svg: str):
        self.svg = svg

    def save(self, path: str | os.PathLike) -> None:
        """Writes the SVG to a file."""
        with open(path, "w", encoding="utf-8") as to:
            to.write(self.svg)

    def _repr_svg_(self):
        return self.svg

    def __repr__(self):
        return "<shears figure, %d bytes of SVG>" % len(self.svg)
