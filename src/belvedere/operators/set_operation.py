"""SetOperation: rows of the left input compared with those of the right: INTERSECT [ALL] and EXCEPT
[ALL].

    l[x](e) = l[x](e-1) + sum of weights of x on the left          r[x] on the right
    n[x]    = intersect    1 if l > 0 and r > 0      ALL   min(l, r)
              except       1 if l > 0 and r = 0      ALL   max(0, l - r)
    d(out)  = the copies of x between n[x](e-1) and n[x](e)           for every touched x

Neither is bilinear, so each different row keeps both counts; they are linear, so changes are added
up before they travel and once more on arrival. Rows are compared as keys are: NULL equals NULL,
-0.0 is 0.0, all NaNs are one; output rows are decoded from the key. Copy n of a row has the
identity (row, n), so a count that moves touches no other copy. Cost: one record read and written
per touched row, whatever its number of copies, plus the copies that appear or vanish.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from belvedere.encoding import KeyCodec
from belvedere.encoding.arrays import BATCH, Ints
from belvedere.encoding.binaries import data_of, fixed_binary, weave
from belvedere.libraries import np, pa, pc
from belvedere.operators.base import (
    ID,
    KEY,
    WEIGHT,
    Identity,
    IdentityPart,
    KeptTable,
    NewId,
    Origin,
    StateTable,
    Wording,
    columns,
)
from belvedere.operators.grouping import group, group_count
from belvedere.operators.lineage import Below, Gap, Pieces, Wanted, times_of
from belvedere.operators.sides import LEFT, RIGHT
from belvedere.stores.base import Shard, TableId, Write
from belvedere.types import BIGINT, SqlType

SetKind = Literal["intersect", "except"]
_NOTHING = bytes(16)
_COPY = 8  # bytes of the number of a copy


def set_kind(word: str) -> SetKind:
    """The kind of set operation that a word of SQL names."""
    kinds: tuple[SetKind, ...] = ("intersect", "except")
    for kind in kinds:
        if kind == word.lower():
            return kind
    raise TypeError(f"there is no set operation {word}")


@dataclass(frozen=True, slots=True)
class SetOperation(Origin):
    """`all` keeps copies."""

    table: TableId
    types: tuple[SqlType, ...]
    kind: SetKind
    all: bool

    def tables(self) -> tuple[StateTable, ...]:
        return (StateTable(self.table, "counts of both sides", self.types, (BIGINT, BIGINT)),)

    def with_tables(self, new_id: NewId) -> SetOperation:
        return replace(self, table=new_id())

    def kept(self) -> tuple[KeptTable, ...]:
        return (KeptTable(self.table, self.types),)

    def explain(self, words: Wording) -> str:
        name = f"{self.kind.upper()} ALL" if self.all else self.kind.upper()
        return f"{name} of {', '.join(words.inputs[LEFT])}"

    def columns(self, inputs: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        return inputs[LEFT]

    def identify(self, inputs: Sequence[Identity]) -> Identity:
        names = tuple(f"column {i + 1}" for i in range(len(self.types)))
        return (IdentityPart(names, self.types),)

    def prepare(self, port: int, changes: pa.Table) -> tuple[pa.Table, ...]:
        keys, codes = group(self.state_key(changes))
        counts = group_count(codes, len(keys), changes.column(WEIGHT).to_numpy())
        return (
            pa.table([keys, pa.array(counts)], names=[KEY, WEIGHT]).filter(pa.array(counts != 0)),
        )

    def step(self, shard: Shard, parts: Sequence[Sequence[pa.Table]]) -> Iterator[pa.Table]:
        keys, delta = _combined(parts)
        if not len(keys):
            return
        before = shard.get_many(self.table, keys)
        old = counts_of_sides(before)
        new = old + delta
        shard.write(Write(self.table, keys, _encoded(new), before))
        yield from self._copies(keys, self._present(old), self._present(new))

    def state_key(self, changes: pa.Table) -> pa.BinaryArray:
        return KeyCodec(self.types).encode(
            [changes.column(name) for name in columns(len(self.types))]
        )

    def output(self, shard: Shard, low: bytes, high: bytes | None) -> Iterator[pa.Table]:
        for keys, values in shard.scan_batches(self.table, low, high):
            present = self._present(counts_of_sides(values))
            yield from self._copies(keys, np.zeros_like(present), present)

    # ------------------------------------------------------------ of which rows its rows are made

    @property
    def grows(self) -> bool:
        return self.kind == "intersect"

    def sought(self, wanted: Wanted) -> tuple[Wanted | None, ...]:
        rows = self._without_copies(wanted)
        return rows, rows if self.kind == "intersect" else None

    def needs(self, wanted: Wanted, below: Below) -> tuple[Wanted, ...]:
        rows = self._without_copies(wanted)
        return rows, rows

    def made_of(self, made: Pieces, below: Below) -> tuple[Pieces, ...]:
        """All equal rows of both sides: with `ALL` their numbers count, and of EXCEPT without it
        the right side has none.
        """
        equal = Wanted.like(made.rows, range(len(self.types)), self.types)
        deciding = made.ids.filter(pa.array(made.decides))
        return tuple(self._side(below.find(port, equal), deciding) for port in (LEFT, RIGHT))

    def why_not(self, wanted: Wanted, below: Below) -> Gap:
        rows = self._without_copies(wanted)
        found = [below.find(port, rows) for port in (LEFT, RIGHT)]
        word = self.kind.upper()
        for port, side in ((LEFT, "left"), (RIGHT, "right")):
            if not found[port].num_rows and (port == LEFT or self.kind == "intersect"):
                return Gap(f"the {side} side of {word} has no such row", port, rows)
        if self.kind == "intersect":
            return Gap(f"no row is on both sides of {word}", LEFT, rows=found[LEFT])
        return Gap(f"the right side of {word} takes it away", RIGHT, rows=found[RIGHT])

    def _side(self, rows: pa.Table, deciding: pa.BinaryArray) -> Pieces:
        """Without `ALL` a row decides if no other row of its side is equal."""
        keys = self.state_key(rows)
        alone = times_of(keys) == 1 if len(keys) and not self.all else np.zeros(len(keys), bool)
        decides = alone & np.asarray(pc.is_in(keys, value_set=deciding).to_numpy(False), bool)
        return Pieces(rows, decides)

    def _without_copies(self, wanted: Wanted) -> Wanted:
        """What is said of identities, said of all columns."""
        if wanted.ids is None or wanted.nothing:
            return wanted
        end = -_COPY if self.all else None
        keys = pa.array([key[:end] for key in wanted.ids.to_pylist()], pa.binary()).unique()
        return Wanted.of(range(len(self.types)), self.types, KeyCodec(self.types).decode(keys))

    # ------------------------------------------------------------ what it emits

    def _present(self, counts: Ints) -> Ints:
        """How many copies of each row the result has."""
        left, right = counts[:, LEFT], counts[:, RIGHT]
        if not self.all:
            return np.asarray((left > 0) & ((right > 0) == (self.kind == "intersect")), np.int64)
        return np.asarray(
            np.minimum(left, right) if self.kind == "intersect" else np.maximum(left - right, 0)
        )

    def _copies(self, keys: pa.BinaryArray, old: Ints, new: Ints) -> Iterator[pa.Table]:
        """The copies that appear and vanish, sorted by identity, in batches: one row may have a
        million.
        """
        moved = np.flatnonzero(old != new)
        low, weight = np.minimum(old, new)[moved], np.sign(new - old)[moved]
        ends = np.cumsum(np.abs(new - old)[moved])
        begins = np.append(0, ends)[:-1]
        for start in range(0, int(ends[-1]) if len(ends) else 0, BATCH):
            copy = np.arange(start, min(start + BATCH, int(ends[-1])))
            place = np.searchsorted(ends, copy, side="right")
            first, last = int(place[0]), int(place[-1]) + 1
            rows = keys.take(pa.array(moved[first:last]))
            yield self._changes(
                rows, place - first, low[place] + copy - begins[place] + 1, weight[place]
            )

    def _changes(self, rows: pa.BinaryArray, place: Ints, number: Ints, weight: Ints) -> pa.Table:
        """Rows decoded once each, and repeated as `place` says."""
        at = pa.array(place)
        ids = rows.take(at)
        if self.all:
            ids = weave([ids, fixed_binary(number.astype(">i8"))], len(ids))
        data = [column.take(at) for column in KeyCodec(self.types).decode(rows)]
        return pa.table([*data, pa.array(weight), ids], names=[*columns(len(data)), WEIGHT, ID])


def _combined(parts: Sequence[Sequence[pa.Table]]) -> tuple[pa.BinaryArray, Ints]:
    """The rows whose counts move, and by how much on the left and on the right."""
    tables = [(port, table) for port, arrived in enumerate(parts) for table in arrived]
    if not tables:
        return pa.array([], pa.binary()), np.zeros((0, 2), np.int64)
    keys, codes = group(
        pa.concat_tables([table for _, table in tables]).column(KEY).combine_chunks()
    )
    weights = np.concatenate([table.column(WEIGHT).to_numpy() for _, table in tables])
    side = np.repeat([port for port, _ in tables], [len(table) for _, table in tables])
    delta = group_count(2 * codes + side, 2 * len(keys), weights).reshape(-1, 2)
    moved = delta.any(axis=1)
    return keys.filter(pa.array(moved)), delta[moved]


def counts_of_sides(values: pa.BinaryArray) -> Ints:
    """Both counts of each record, left and right; 0 where absent."""
    return np.frombuffer(data_of(values.fill_null(_NOTHING)), np.int64).reshape(-1, 2)


def _encoded(counts: Ints) -> pa.BinaryArray:
    """16-byte values, NULL where neither side has the row."""
    values = fixed_binary(np.ascontiguousarray(counts).view("V16").reshape(-1))
    return pc.if_else(pa.array(counts.any(axis=1)), values, pa.scalar(None, pa.binary()))
