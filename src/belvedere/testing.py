"""For tests of operators: tables as text, and one slot in memory on which operators run epoch by
epoch.

    changes('''
        id | region | amount | w
        o1 | emea   | 5      | +1
        o2 | NULL   | 7      | -1
    ''')
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from belvedere.operators.base import ID, WEIGHT, Stateful
from belvedere.stores.base import Shard, TableId
from belvedere.stores.memory import MemoryStore
from belvedere.types import SqlType, parse_type


def table(text: str) -> pa.Table:
    """A text table: `|` between columns, the names first, with a type after a name where it cannot
    be guessed from the values.
    """
    header, *lines = [
        [cell.strip() for cell in line.split("|")]
        for line in text.strip().splitlines()
        if line.strip(" -+|")
    ]
    arrays = {}
    for i, title in enumerate(header):
        name, _, kind = title.partition(" ")
        cells = [line[i] for line in lines]
        arrays[name] = _column(cells, parse_type(kind) if kind else None)
    return pa.table(arrays)


def changes(text: str) -> pa.Table:
    """Changes as operators take them: column `id` is the identity, `w` the weight (+1 if there is
    none), the others are the row.
    """
    found = table(text)
    rows = [name for name in found.column_names if name not in ("id", "w")]
    ids = (
        [str(v).encode() for v in found.column("id").to_pylist()]
        if "id" in found.column_names
        else [b""] * len(found)
    )
    weights = (
        found.column("w").cast(pa.int64())
        if "w" in found.column_names
        else pa.array([1] * len(found), pa.int64())
    )
    names = [*(f"c{i}" for i in range(len(rows))), WEIGHT, ID]
    return pa.table(
        [*(found.column(name) for name in rows), weights, pa.array(ids, pa.binary())], names=names
    )


def rows_of(found: pa.Table) -> list[tuple[Any, ...]]:
    """Rows in an order of their own, to compare tables whose rows have none."""
    return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True), key=repr)


class OneSlot:
    """A store in memory with one slot; each `step` is an epoch."""

    def __init__(self) -> None:
        self.store = MemoryStore(slots=1)
        self.epoch = 0

    def shard(self) -> Shard:
        """The shard of the next epoch; the caller commits."""
        self.epoch += 1
        return self.store.state.shard(0, self.epoch)

    def step(self, operator: Stateful, *batches: pa.Table) -> pa.Table | None:
        """Run the operator on changes that arrive in batches from several producers."""
        return self.step_parts(operator, [operator.prepare(0, batch) for batch in batches])

    def step_parts(
        self, operator: Stateful, prepared: Sequence[tuple[pa.Table, ...]]
    ) -> pa.Table | None:
        shard = self.shard()
        emitted = list(operator.step(shard, [list(parts) for parts in zip(*prepared, strict=True)]))
        shard.commit()
        return pa.concat_tables(emitted) if emitted else None

    def records(self, table_id: TableId) -> dict[bytes, bytes]:
        reader = self.store.state.reader(0, self.epoch)
        return {
            k: v
            for keys, values in reader.scan(table_id)
            for k, v in zip(keys.to_pylist(), values.to_pylist(), strict=True)
        }


def _column(cells: Sequence[str], kind: SqlType | None) -> pa.Array:
    values = [
        _value(cell) if kind is None or kind.name not in ("string", "binary") else _text(cell)
        for cell in cells
    ]
    if kind is not None and kind.name == "binary":
        values = [None if v is None else v.encode() for v in values]
    if kind is not None and kind.name not in ("string", "binary"):
        return pa.array([None if c == "NULL" else c for c in cells], pa.string()).cast(kind.arrow)
    return pa.array(values, kind.arrow if kind is not None else None)


def _value(cell: str) -> Any:
    for read in (int, float):
        try:
            return read(cell)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(cell, _text(cell))


def _text(cell: str) -> str | None:
    return (
        None
        if cell == "NULL"
        else cell[1:-1]
        if len(cell) > 1 and cell[0] == cell[-1] == "'"
        else cell
    )
