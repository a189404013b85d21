"""Rows of the log as Arrow tables, net per key.

The images of rows that a transaction leaves in the log are a sequence: -row before, +row after.

    net(k) = (r, s)   r: the first image of key k, if it is one before, else none
                      s: its last image, if it is one after, else none

An update that changes the key is a deletion and an insertion, and an insertion that is deleted
again is nothing; both follow from the law. Cost: one look into a table per image, and none where a
transaction only inserts or only deletes, as each key is then there once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from belvedere.errors import SourceError
from belvedere.libraries import pa
from belvedere.sources.base import Relation, RelationChange
from belvedere.types import Column

Values = Sequence[Any]
_ZERO = datetime(1970, 1, 1)  # no TIMESTAMP has this moment: MariaDB keeps its zero date so
_WRAP = 1 << 32  # the client reads seconds as signed, newer servers have moments up to 2106
_ZERO_DATE = "a date that is none, such as 0000-00-00"


@dataclass(frozen=True, slots=True)
class Wire:
    """How a column travels in the log: the type's code, the length of fixed strings."""

    kind: str
    length: int = 0


@dataclass(frozen=True, slots=True)
class Images:
    """Some images of one relation, column by column; `signs` tells before (False) from after."""

    relation: Relation
    wires: tuple[Wire, ...]
    columns: tuple[Values, ...]
    signs: Sequence[bool]


def images(relation: Relation, wires: tuple[Wire, ...], rows: Values, kind: str) -> Images:
    """Those of one event: `rows` as the client has decoded them, of an insert, delete or update."""
    names = relation.schema.names
    if kind == "update":
        columns = tuple(
            [row[side][name] for row in rows for side in ("before_values", "after_values")]
            for name in names
        )
        return Images(relation, wires, columns, [False, True] * len(rows))
    columns = tuple([row["values"][name] for row in rows] for name in names)
    return Images(relation, wires, columns, [kind == "insert"] * len(rows))


def net(parts: Sequence[Images]) -> RelationChange:
    """The change that some images of one relation make together, in their order."""
    relation = parts[0].relation
    signs = list(chain.from_iterable(part.signs for part in parts))
    columns = [
        list(chain.from_iterable(part.columns[at] for part in parts))
        for at in range(len(relation.schema.columns))
    ]
    before, after = _net_rows(_keys(relation, columns), signs)
    wires = parts[0].wires
    return RelationChange(
        relation.name,
        _table(relation, wires, columns, before),
        _table(relation, wires, columns, after),
    )


def _keys(relation: Relation, columns: Sequence[Values]) -> Iterator[Hashable]:
    names = relation.schema.names
    found = [columns[names.index(name)] for name in relation.schema.key]
    return iter(found[0]) if len(found) == 1 else zip(*found, strict=True)


def _net_rows(keys: Iterator[Hashable], signs: Sequence[bool]) -> tuple[list[int], list[int]]:
    """The numbers of the images that count, before and after."""
    if all(signs):
        return [], list(range(len(signs)))
    if not any(signs):
        return list(range(len(signs))), []
    first: dict[Hashable, int] = {}
    last: dict[Hashable, int] = {}
    for at, key in enumerate(keys):
        first.setdefault(key, at)
        last[key] = at
    before = [at for at in first.values() if not signs[at]]
    after = [at for at in last.values() if signs[at]]
    return before, after


def _table(
    relation: Relation, wires: Sequence[Wire], columns: Sequence[Values], rows: list[int]
) -> pa.Table:
    arrays = []
    everything = len(rows) == len(columns[0])
    for column, wire, values in zip(relation.schema.columns, wires, columns, strict=True):
        chosen = values if everything else [values[at] for at in rows]
        try:
            arrays.append(_array(column, wire, chosen))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise SourceError(
                f"column {column.name} of {relation.name} has a value that is no"
                f" {str(column.type).upper()}: {error}"
            ) from error
    return pa.Table.from_arrays(arrays, schema=relation.schema.arrow)


def _array(column: Column, wire: Wire, values: Values) -> pa.Array:
    arrow = column.type.arrow
    if wire.kind in _CONVERTED:
        return _CONVERTED[wire.kind](wire, values).cast(arrow)
    return pa.array(values, arrow)


def _bits(wire: Wire, values: Values) -> pa.Array:
    return pa.array([None if value is None else value == "1" for value in values], pa.bool_())


def _years(wire: Wire, values: Values) -> pa.Array:
    """The client adds 1900 also to the year 0."""
    return pa.array([0 if value == 1900 else value for value in values], pa.int32())


def _fixed(wire: Wire, values: Values) -> pa.Array:
    """The log leaves out zero bytes at the end of BINARY(n); of none the client makes a text."""
    full = [None if v is None else (v or b"").ljust(wire.length, b"\0") for v in values]
    return pa.array(full, pa.binary())


def _moments(wire: Wire, values: Values) -> pa.Array:
    if _ZERO in values:
        raise ValueError(_ZERO_DATE)
    numbers = pa.array(values, pa.timestamp("us")).cast(pa.int64())
    late = [None if n is None else n + _WRAP * 1_000_000 * (n < 0) for n in numbers.to_pylist()]
    return _utc(pa.array(late, pa.int64()).cast(pa.timestamp("us")))


def _local(wire: Wire, values: Values) -> pa.Array:
    return _utc(pa.array(values, pa.timestamp("us")))


def _utc(moments: pa.Array) -> pa.Array:
    return moments.cast(pa.timestamp("us", tz=str(UTC)))


def _unsigned(wire: Wire, values: Values) -> pa.Array:
    return pa.array(values, pa.uint64())


_CONVERTED: dict[str, Callable[[Wire, Values], pa.Array]] = {
    "bit": _bits,
    "year": _years,
    "binary": _fixed,
    "timestamp": _moments,
    "datetime": _local,
    "unsigned bigint": _unsigned,
}


def check_dates(rows: Values, kind: str) -> None:
    """The client gives None for dates that are none, and says so beside: they are no NULLs."""
    sides = ("before_none_sources", "after_none_sources") if kind == "update" else ("none_sources",)
    for row in rows:
        for side in sides:
            for name, why in row[side].items():
                if why != "null":
                    raise SourceError(f"column {name} has {_ZERO_DATE}")
