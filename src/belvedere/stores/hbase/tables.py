"""Which state tables there are, and where: a row beside the catalog's, an entry for each table.

An entry is written when everything of the table is there. It stays when the table is dropped, and
says so: ids are never used again, and whoever comes late with one must not make it anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from belvedere.stores.base import TableId, TableShape
from belvedere.stores.hbase.client import Cell, Cells, Client, Records
from belvedere.stores.hbase.forms import Counted, Form, ManyCells, OneCell
from belvedere.types import Column, parse_type

FAMILY = "t"
STATE = "state"
_ROW = b"tables"
_MADE, _DROPPED = 1, 2  # timestamps, so that a drop is never undone
_ILLEGAL = re.compile(r"[^\w.-]", re.ASCII)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the records of a state table are: in an HBase table of its own, or with others."""

    table: TableId
    name: str
    form: Form
    is_dropped: bool = False

    @property
    def is_own(self) -> bool:
        return self.name != STATE

    @property
    def prefix(self) -> bytes:
        return b"" if self.is_own else self.table.to_bytes(4, "big")


def place_of(shape: TableShape) -> Place:
    """Only what other clients can understand gets a table of its own: HBase does not like
    thousands of tables.
    """
    if not shape.name or not (shape.key or shape.values):
        return Place(shape.table, STATE, OneCell())
    legal = _ILLEGAL.sub("_", shape.name).lstrip(".-")
    form: Form = Counted() if shape.counts else ManyCells(shape.values)
    return Place(shape.table, f"{legal or '_'}.{shape.table}", form)


class Registry:
    """The places of this store's state tables; what was once seen is not asked again."""

    def __init__(self, cells: Cells, client: Client, namespace: str) -> None:
        self._cells, self._client, self._namespace = cells, client, namespace
        self._places: dict[TableId, Place] = {}
        self._records: dict[TableId, Records] = {}

    def find(self, table: TableId) -> Place | None:
        if table not in self._places:
            self.refresh()
        return self._places.get(table)

    def all(self) -> list[Place]:
        self.refresh()
        return list(self._places.values())

    def refresh(self) -> None:
        found = self._cells.newest(_ROW, {FAMILY: 0})
        places = [_decode(cell) for cell in found]
        self._places = {place.table: place for place in places}

    def knows(self, table: TableId) -> bool:
        return table in self._places

    def add(self, places: Sequence[Place]) -> None:
        """Whoever else adds a table has the same definition of it, so no condition is needed; an
        entry that says "dropped" is newer than any that comes here.
        """
        self._cells.apply([_encode(place, _MADE) for place in places])
        self.refresh()

    def mark_dropped(self, place: Place) -> None:
        self._cells.apply([_encode(place, _DROPPED)])
        self.refresh()

    def records(self, place: Place) -> Records:
        found = self._records.get(place.table)
        if found is None:
            name = self.full_name(place.name)
            form = place.form
            found = self._client.records(name, place.prefix, form.family, form.names())
            self._records[place.table] = found
        return found

    def full_name(self, name: str) -> str:
        return f"{self._namespace}:{name}"


def _encode(place: Place, state: int) -> Cell:
    entry: dict[str, Any] = {"name": place.name}
    if isinstance(place.form, Counted):
        entry["counts"] = True
    if isinstance(place.form, ManyCells):
        entry["columns"] = [[c.name, str(c.type), c.nullable] for c in place.form.columns]
    qualifier = place.table.to_bytes(4, "big")
    return Cell(_ROW, FAMILY, qualifier, state, json.dumps(entry).encode())


def _decode(cell: Cell) -> Place:
    entry = json.loads(cell.value)
    form: Form = Counted() if entry.get("counts") else OneCell()
    if "columns" in entry:
        columns = (Column(name, parse_type(kind), null) for name, kind, null in entry["columns"])
        form = ManyCells(tuple(columns))
    table = int.from_bytes(cell.qualifier, "big")
    return Place(table, entry["name"], form, cell.timestamp == _DROPPED)
