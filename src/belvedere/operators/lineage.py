"""Lineage: of which rows of its inputs a row of an operator's result is made.

    sought      wanted rows of the result -> rows of an input, among which each of them has one
                with its own state key, if any has
    needs       wanted rows of the result -> wanted rows of each input, which are enough: over them
                alone, or with others, the operator emits the same wanted rows
    made_of     rows of the result -> the rows of each input of which they are made
    why_not     wanted rows, of which the result has none -> what is missing, and where to look next

Every operator says these four of itself, beside its law. What it may read is `Below`: rows of its
inputs and of its own result that satisfy conditions on columns or have some identities, all as of
one cut. Values are compared as keys are: NULL equals NULL, -0.0 is 0.0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

from belvedere.encoding import KeyCodec
from belvedere.encoding.arrays import Mask
from belvedere.libraries import np, pa, pc
from belvedere.stores.base import Shard
from belvedere.types import SqlType

_ID = "_id"
_SHOWN = 3  # values that a text lists
_LONGEST = 200  # characters of a value in a text
MOST_LOOKED_UP = 50_000  # rows that are looked up one by one; beyond, a scan costs less
Names: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Rows that have one of some tuples in these columns, and one of these identities; without
    columns, or without `ids`, nothing is said about them.
    """

    columns: tuple[int, ...] = ()
    types: tuple[SqlType, ...] = ()
    values: tuple[pa.Array, ...] = field(default=(), compare=False)
    ids: pa.BinaryArray | None = field(default=None, compare=False)

    @classmethod
    def like(
        cls, rows: pa.Table, columns: Sequence[int], types: Sequence[SqlType], ids: bool = False
    ) -> Wanted:
        """Rows that agree with one of these in some columns, and are one of them if `ids`."""
        found = cls.of(columns, types, [rows.column(f"c{i}") for i in columns])
        return replace(found, ids=_one(rows.column(_ID)).unique()) if ids else found

    @classmethod
    def of(
        cls, columns: Sequence[int], types: Sequence[SqlType], values: Sequence[pa.Array]
    ) -> Wanted:
        """Each tuple once."""
        arrays = [_one(array) for array in values]
        if not arrays:
            return cls()
        _, first = _distinct(KeyCodec(tuple(types)).encode(arrays))
        return cls(tuple(columns), tuple(types), tuple(array.take(first) for array in arrays))

    @property
    def nothing(self) -> bool:
        """No row can satisfy it."""
        no_tuple = bool(self.columns) and not len(self.values[0])
        return no_tuple or (self.ids is not None and not len(self.ids))

    @property
    def everything(self) -> bool:
        return not self.columns and self.ids is None

    def keys(self, first: int) -> pa.BinaryArray | None:
        """The keys of the first so many columns of a row; None if they are not all known."""
        if not set(range(first)) <= set(self.columns):
            return None
        at = [self.columns.index(i) for i in range(first)]
        codec = KeyCodec(tuple(self.types[i] for i in at))
        return codec.encode([self.values[i] for i in at], rows=None if at else 1).unique()

    def among(self, renamed: Mapping[int, int], ids: bool = False) -> Wanted:
        """What it says of some columns, under other numbers; and of identities if `ids`."""
        if self.nothing:
            return Wanted(ids=pa.array([], pa.binary()))
        at = [i for i, column in enumerate(self.columns) if column in renamed]
        found = Wanted.of(
            [renamed[self.columns[i]] for i in at],
            [self.types[i] for i in at],
            [self.values[i] for i in at],
        )
        return replace(found, ids=self.ids) if ids else found

    def only(self, columns: Collection[int]) -> Wanted:
        """What it says of these columns."""
        return self.among({i: i for i in columns})

    def not_null(self, columns: Collection[int]) -> Wanted:
        """The same, without those of these columns for which it knows a NULL: that may stand for a
        row that is not there.
        """
        unsure = {
            column
            for column, array in zip(self.columns, self.values, strict=True)
            if column in columns and array.null_count
        }
        return self.among({i: i for i in self.columns if i not in unsure}, ids=True)

    def holds(self, rows: pa.Table) -> Mask:
        """Which rows satisfy it; keys are made only of those that may."""
        found = np.ones(rows.num_rows, bool)
        for column, kind, values in zip(self.columns, self.types, self.values, strict=True):
            mine = _one(rows.column(f"c{column}"))
            if kind.name != "double" and mine.type == values.type:
                found &= _is_in(mine, values)
        if self.columns:
            codec = KeyCodec(self.types)
            some = [rows.column(f"c{i}").filter(pa.array(found)) for i in self.columns]
            found[found] = _is_in(codec.encode(some), codec.encode(self.values))
        if self.ids is not None:
            found &= _is_in(_one(rows.column(_ID)), self.ids)
        return found

    def keep(self, rows: pa.Table) -> pa.Table:
        return rows if self.everything else rows.filter(pa.array(self.holds(rows)))

    def text(self, names: Names) -> str:
        """In the users' words, such as `region = 'emea' and day = 2026-11-18`."""
        said = [
            _equals(names[column], array)
            for column, array in zip(self.columns, self.values, strict=True)
        ]
        return " and ".join(said)


EVERYTHING = Wanted()


@dataclass(frozen=True, slots=True)
class Pieces:
    """Rows of a relation that make up the record, each with columns and identity.

    `decides` says of each that the record is another one if this row goes and no row comes.
    `matters` are columns of which the same is known: if a row is replaced by one that differs in
    them, the record is another one.
    """

    rows: pa.Table
    decides: Mask
    matters: frozenset[int] = frozenset()

    @classmethod
    def undecided(cls, rows: pa.Table) -> Pieces:
        return cls(rows, np.zeros(rows.num_rows, bool))

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def ids(self) -> pa.BinaryArray:
        return _one(self.rows.column(_ID))

    def where(self, mask: Mask) -> Pieces:
        return replace(self, rows=self.rows.filter(pa.array(mask)), decides=self.decides[mask])

    def deciding(self, rows: pa.Table) -> Mask:
        """Which of some rows have the identity of one that decides."""
        return _is_in(_one(rows.column(_ID)), self.ids.filter(pa.array(self.decides)))


@dataclass(frozen=True, slots=True)
class Gap:
    """What is missing: a text, which may be empty, and where to look next.

    With a `port`, either `wanted` rows of that input are not there, or `rows` of it are, and say
    why the record is not.
    """

    text: str
    port: int = -1
    wanted: Wanted | None = None
    rows: pa.Table | None = None


class Below(Protocol):
    """What an operator may read while it explains a record, all as of one cut."""

    @property
    def ports(self) -> int: ...

    def find(self, port: int, wanted: Wanted, first: int | None = None) -> pa.Table:
        """Rows of an input; of one that is kept in order, those of one key in that order. With
        `first`, `wanted` is about the key alone, and so many rows of each key are enough.
        """

    def own(self, wanted: Wanted) -> pa.Table:
        """Rows of the operator's own result."""

    def reaches(self, port: int, wanted: Wanted) -> bool:
        """Whether wanted rows of an input are found without a scan."""

    def shard(self, key: bytes) -> Shard:
        """The slot of a state key, to read it."""

    def names(self, port: int) -> Names:
        """What the columns of an input hold, in the users' words."""

    def note(self, text: str) -> None:
        """Say something about the answer as a whole."""


def merged(parts: Iterable[Pieces]) -> Pieces:
    """The rows of all, each once; it decides if it does so anywhere."""
    found = list(parts)
    rows = pa.concat_tables([p.rows for p in found])
    _, first = _distinct(_one(rows.column(_ID)))
    once = rows.take(first)
    deciding = [p.ids.filter(pa.array(p.decides)) for p in found]
    matters = frozenset.intersection(*(p.matters for p in found))
    return Pieces(once, _is_in(_one(once.column(_ID)), pa.concat_arrays(deciding)), matters)


def times_of(keys: pa.Array) -> Any:
    """How often the value of each row is there."""
    encoded = keys.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    return np.bincount(codes, minlength=max(len(encoded.dictionary), 1))[codes]


def _distinct(keys: pa.BinaryArray) -> tuple[pa.BinaryArray, pa.Array]:
    """Each key once, and the number of its first row."""
    encoded = keys.dictionary_encode()
    _, first = np.unique(encoded.indices.to_numpy(zero_copy_only=False), return_index=True)
    return encoded.dictionary, pa.array(np.sort(first))


def _is_in(values: pa.Array, among: pa.Array) -> Mask:
    same = among if among.type == values.type else among.cast(values.type)
    found = pc.is_in(values, value_set=same)
    return np.asarray(found.to_numpy(zero_copy_only=False), bool)


def _one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _equals(name: str, values: pa.Array) -> str:
    found = values.unique().slice(0, _SHOWN + 1).to_pylist()
    if len(found) == 1:
        return f"{name} IS NULL" if found[0] is None else f"{name} = {literal(found[0])}"
    shown = ", ".join(map(literal, found[:_SHOWN]))
    return f"{name} IN ({shown}{', ...' if len(found) > _SHOWN else ''})"


def literal(value: Any) -> str:
    """A value as it stands in a text: on one line whatever is in it, and only its beginning."""
    if value is None:
        return "NULL"
    text = "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
    beginning = text[:_LONGEST]
    if not beginning.isprintable():
        beginning = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in beginning)
    return beginning if len(text) <= _LONGEST else f"{beginning}... ({len(text):,} characters)"
